"""Write the time of each test file into docs/internals/tests.md, from what pytest wrote about two runs.

`uv run pytest --junitxml everyday.xml`, `uv run pytest --tier deep --junitxml deep.xml`, then
`uv run python scripts/test_times.py everyday.xml deep.xml`.
"""

import sys
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree as ET

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/internals/tests.md"
HEAD = "| file | tests every day | seconds | all tests | seconds |\n|---|---|---|---|---|\n"


def by_file(report: str) -> dict[str, tuple[int, float]]:
    """File → (tests, seconds of all of them), from one junit report."""
    found: dict[str, tuple[int, float]] = defaultdict(lambda: (0, 0.0))
    for case in ET.parse(report).iter("testcase"):  # noqa: S314 - what pytest wrote
        parts = case.attrib["classname"].split(".")
        parts = parts[: 1 + next(n for n, part in enumerate(parts) if part.startswith("test_"))]
        tests, seconds = found["/".join(parts) + ".py"]
        found["/".join(parts) + ".py"] = tests + 1, seconds + float(case.attrib["time"])
    return found


def main(everyday: str, deep: str) -> None:
    """Replace the table."""
    often, everything = by_file(everyday), by_file(deep)
    rows = [
        f"| `{file}` | {often[file][0]} | {often[file][1]:.1f} | {tests} | {seconds:.1f} |\n"
        for file, (tests, seconds) in sorted(everything.items(), key=lambda found: -found[1][1])
    ]
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(text[: text.index(HEAD)] + HEAD + "".join(rows), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
