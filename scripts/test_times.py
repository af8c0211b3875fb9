"""Write the time of each test file into docs/internals/tests.md, from what pytest wrote about a run.

`uv run pytest --junitxml everyday.xml`, then `uv run python scripts/test_times.py everyday.xml`. A file that the run did not
meet has deep tests only.
"""

import sys
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree as ET

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/internals/tests.md"
HEAD = "| file | tests | seconds |\n|---|---|---|\n"


def by_file(report: str) -> dict[str, tuple[int, float]]:
    """File → (tests, seconds of all of them), from one junit report."""
    found: dict[str, tuple[int, float]] = defaultdict(lambda: (0, 0.0))
    for case in ET.parse(report).iter("testcase"):  # noqa: S314 - what pytest wrote
        parts = case.attrib["classname"].split(".")
        parts = parts[: 1 + next(n for n, part in enumerate(parts) if part.startswith("test_"))]
        tests, seconds = found["/".join(parts) + ".py"]
        found["/".join(parts) + ".py"] = tests + 1, seconds + float(case.attrib["time"])
    return found


def main(report: str) -> None:
    """Replace the table."""
    found = by_file(report)
    rows = [
        f"| `{file}` | {found[file][0]} | {found[file][1]:.1f} |\n"
        for file in sorted(found, key=lambda file: -found[file][1])
    ]
    others = {str(file.relative_to(ROOT)) for file in ROOT.glob("tests/**/test_*.py")} - found.keys()
    rows += [f"| `{file}` | deep only | |\n" for file in sorted(others)]
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(text[: text.index(HEAD)] + HEAD + "".join(rows), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
