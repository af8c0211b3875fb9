"""Write the time of each test file into docs/tests.md, from what pytest wrote about a run.

`uv run pytest --junitxml everyday.xml`, `uv run pytest --tier deep --junitxml deep.xml`, then
`uv run python scripts/test_times.py everyday.xml deep.xml`; without the second, the columns of the deep tier are empty.
"""

import sys
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree as ET

PAGE = Path(__file__).resolve().parent.parent / "docs" / "tests.md"
HEAD = "| file | everyday | seconds | deep | seconds |\n|---|---|---|---|---|\n"


def by_file(report: str) -> dict[str, tuple[int, float]]:
    """File → (tests, seconds of all of them), from one junit report."""
    found: dict[str, tuple[int, float]] = defaultdict(lambda: (0, 0.0))
    for case in ET.parse(report).iter("testcase"):  # noqa: S314 - what pytest wrote
        parts = case.attrib["classname"].split(".")
        parts = parts[: 1 + next(n for n, part in enumerate(parts) if part.startswith("test_"))]
        tests, seconds = found["/".join(parts) + ".py"]
        found["/".join(parts) + ".py"] = tests + 1, seconds + float(case.attrib["time"])
    return found


def main(everyday: str, deep: str | None = None) -> None:
    """Replace the table."""
    often, all_of_them = by_file(everyday), by_file(deep) if deep else {}
    whole = {**often, **all_of_them}
    rows = []
    for file in sorted(whole, key=lambda name: -whole[name][1]):
        columns = [
            f"{tests} | {seconds:.1f}" if tests else " | "
            for tests, seconds in (of.get(file, (0, 0.0)) for of in (often, all_of_them))
        ]
        rows.append(f"| `{file}` | {' | '.join(columns)} |\n")
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(text[: text.index(HEAD)] + HEAD + "".join(rows), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
