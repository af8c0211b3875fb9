"""Make every picture of the docs again, from a demo that is run for it: `uv run python scripts/pictures.py`.

Written are docs/img/demo.svg (what `octo-sync demo` says), four pages of its dashboard as PNG, and docs/img/marts.svg (the
relations that docs/warehouse.md draws, with the types of the published tables). Chromium takes the pictures of the pages.
"""

import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from html import escape
from pathlib import Path

from playwright.sync_api import sync_playwright
from rich.console import Console
from rich.text import Text

import octo_sync

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "img"
PAGES = {"dashboard": "", "revenue": "revenue", "occupancy": "occupancy", "sync": "sync"}
"""A picture's name and the page that it shows."""
SIZE = {"width": 1280, "height": 920}
COLUMNS = 140
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# Coloured, but without the bars that move.
TERMINAL = {"FORCE_COLOR": "1", "TTY_COMPATIBLE": "1", "TTY_INTERACTIVE": "0", "COLUMNS": str(COLUMNS)}


def _run(folder: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "octo_sync", *arguments]
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **TERMINAL}, check=True, capture_output=True, text=True
    )
    return done.stdout


def demo(folder: Path) -> None:
    """Run the demo in a folder and keep what it says; its project stays in `octo-demo`."""
    said = _run(folder, "demo").split("\nNext\n")[0].rstrip()
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text("$ octo-sync demo", style="bold"))
    console.print(Text.from_ansi(said))
    console.save_svg(str(IMAGES / "demo.svg"), title="octo-sync demo", unique_id="demo")
    _run(folder, "publish", "-C", "octo-demo")  # so that the copy knows what the ledger was compared to


def pages(project: Path) -> None:
    """Take pictures of the demo's dashboard."""
    environment = {**os.environ, "OCTO_SYNC_DASHBOARD__BIND": "127.0.0.1:0", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "octo_sync", "serve", "-C", str(project), "--only", "dashboard"]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        base = next(
            found[1] for line in process.stdout or () if (found := re.search(r"dashboard on (http://\S+?)/?\s", line))
        )
        with sync_playwright() as playwright:
            program = next(filter(None, map(shutil.which, BROWSERS)), None)
            arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
            browser = playwright.chromium.launch(executable_path=program, args=arguments)
            page = browser.new_page(viewport=SIZE, color_scheme="light")
            for name, path in PAGES.items():
                page.goto(f"{base}/{path}", wait_until="load")
                page.wait_for_function(
                    "() => [...document.querySelectorAll('.chart')].every(c => c.querySelector('svg'))"
                )
                page.screenshot(path=IMAGES / f"{name}.png")
            browser.close()
    finally:
        process.terminate()
        process.wait(timeout=20)


LINE, WIDE, GAP, TOP, SPACE = 18, 260, 150, 20, 10
SIDES = (
    {
        "dim_date",
        "dim_product",
        "dim_option",
        "dim_channel",
        "supplier_connections",
        "sync_freshness",
        "coverage",
        "booking_coverage",
    },
    {"fct_departures", "fct_bookings"},
)
"""The tables of the left and the middle column; all others stand at the right."""


def relations() -> list[tuple[str, str, list[str]]]:
    """The relations that docs/warehouse.md draws: two tables and the columns that join them."""
    drawn = re.search(r"```mermaid\nerDiagram\n(.*?)```", (ROOT / "docs/warehouse.md").read_text("utf-8"), re.DOTALL)
    if drawn is None:
        raise SystemExit("docs/warehouse.md draws no relations.")
    found = re.findall(r'^ +(\w+) +\S+ +(\w+) : "?([^"\n]+)"?$', drawn[1], re.MULTILINE)
    return [(one, other, columns.split(", ")) for one, other, columns in found]


def marts(copy: Path) -> None:
    """Draw the marts, their joining columns and how they are related."""
    lines = relations()
    with octo_sync.open(copy) as opened:
        types = {t.name: {c.name: c.type.lower() for c in t.columns} for t in opened.tables() if t.schema == "marts"}
    keys: dict[str, list[str]] = {}
    for one, other, columns in lines:
        for table in (one, other):
            # A calendar's only key is its first column.
            mine = [name for name in columns if name in types[table]] or list(types[table])[:1]
            keys.setdefault(table, []).extend(name for name in mine if name not in keys[table])
    columns_of = [[t for t in keys if t in side] for side in SIDES]
    columns_of.append([t for t in keys if not any(t in side for side in SIDES)])
    heights = [sum(_height(keys[t]) + SPACE for t in column) for column in columns_of]
    at: dict[str, tuple[int, int]] = {}
    for number, column in enumerate(columns_of):
        space = SPACE + (max(heights) - heights[number]) // (len(column) + 1)
        y = TOP + space - SPACE
        for table in column:
            at[table] = (10 + number * (WIDE + GAP), y)
            y += _height(keys[table]) + space
    paths = [_path(at, keys, one, other, columns) for one, other, columns in lines]
    boxes = [_box(table, *at[table], keys[table], types[table]) for table in keys]
    width, height = 60 + 3 * WIDE + 2 * GAP, max(heights) + 2 * TOP
    style = (
        "rect{fill:#fff;stroke:#6b7a90}.n{font-weight:600}.t{fill:#6b7a90}path{fill:none;stroke:#6b7a90}"
        "text{font:13px system-ui,sans-serif;fill:#1d2733}"
    )
    (IMAGES / "marts.svg").write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="The marts and how '
        f'they join"><style>{style}</style><rect width="{width}" height="{height}" style="stroke:none"/>\n'
        + "\n".join([*paths, *boxes])
        + "\n</svg>\n",
        encoding="utf-8",
    )


def _height(keys: list[str]) -> int:
    return LINE * (len(keys) + 1) + 12 + LINE


def _path(at: dict[str, tuple[int, int]], keys: dict[str, list[str]], one: str, other: str, columns: list[str]) -> str:
    """A curve from the joining column of one table to that of the other."""

    def row(table: str) -> int:
        named = [keys[table].index(name) for name in columns if name in keys[table]]
        return at[table][1] + 26 + LINE * (min(named, default=0) + 1) - 5

    (x1, _), (x2, _) = at[one], at[other]
    y1, y2 = row(one), row(other)
    if x1 == x2:
        edge = x1 + WIDE
        return f'<path d="M{edge} {y1}C{edge + 45} {y1} {edge + 45} {y2} {edge} {y2}"/>'
    if x1 > x2:
        x1, x2, y1, y2 = x2, x1, y2, y1
    start, middle = x1 + WIDE, (x1 + WIDE + x2) // 2
    return f'<path d="M{start} {y1}C{middle} {y1} {middle} {y2} {x2} {y2}"/>'


def _box(table: str, x: int, y: int, keys: list[str], types: dict[str, str]) -> str:
    rows = [f'<text class="n" x="{x + 10}" y="{y + 20}">{escape(table)}</text>']
    for number, name in enumerate(keys):
        line = y + 26 + LINE * (number + 1)
        rows.append(f'<text x="{x + 10}" y="{line}">{escape(name)}</text>')
        rows.append(f'<text class="t" x="{x + WIDE - 10}" y="{line}" text-anchor="end">{escape(types[name])}</text>')
    more = y + 26 + LINE * (len(keys) + 1)
    rows.append(f'<text class="t" x="{x + 10}" y="{more}">and {len(types) - len(keys)} more</text>')
    return f'<g><rect x="{x}" y="{y}" width="{WIDE}" height="{_height(keys)}" rx="4"/>{"".join(rows)}</g>'


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        demo(Path(scratch))
        pages(Path(scratch) / "octo-demo")
        marts(Path(scratch) / "octo-demo" / "octo.read.duckdb")
