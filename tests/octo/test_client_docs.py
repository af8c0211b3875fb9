"""docs/internals/client.md is kept true."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/internals/client.md").read_text()


def test_every_quirk_names_tests_that_exist():
    tests = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    named = set(re.findall(r"`(test_\w+)`", PAGE))
    assert len(named) > 20
    assert not [name for name in named if f"def {name}(" not in tests]


def test_every_quirk_of_a_client_has_a_row():
    rows = {int(number) for number in re.findall(r"^\| Q(\d+) ", PAGE, re.MULTILINE)}
    assert rows == set(range(1, 40)) - {12, 14, 27, 29}
