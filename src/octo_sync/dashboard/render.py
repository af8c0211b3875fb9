"""Views into HTML.

Every text is escaped by the template engine, values of the data stand in `<bdi>`, and the charts' data is one JSON block
that no browser runs.
"""

import base64
import csv
import hashlib
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from octo_sync.dashboard.standing import Standing
from octo_sync.dashboard.view import Chart, Column, Item, Link, Money, Page, Shade, Table, Tiles, View
from octo_sync.flows import wording
from octo_sync.flows.export.files import formula_safe

_HERE = Path(__file__).parent
STATIC: Mapping[str, str] = {
    "dashboard.css": "text/css; charset=utf-8",
    "noscript.css": "text/css; charset=utf-8",
    "dashboard.js": "text/javascript; charset=utf-8",
    "echarts.common.min.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
"""What is served as it lies there, and its type."""
_PIECE = re.compile(
    r"(\d{4}-\d\d-\d\d|(?<![\w:.])[+-]?\d[\d,]*(?:\.\d+)? [A-Z]{3}\b|(?<!\S)[^\s\d,;]{1,20} \d+(?=[,;]| \(|$))",
    re.MULTILINE,
)
"""What is not broken over two lines: a day, an amount with its currency, a kind of guest or extra with its number."""
_ESCAPED = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


Choices = Mapping[str, Sequence[tuple[str, str]]]
"""What the filters product, channel and currency can be set to: (value, what a person reads)."""


@dataclass(frozen=True, slots=True)
class Frame:
    """What stands around a page's content."""

    copy: str
    """The name of what is shown."""
    now: str
    pages: Sequence[Page] = ()
    page: Page | None = None
    standing: Standing | None = None
    choices: Choices = field(default_factory=dict)
    fields: Sequence[tuple[str, str]] | None = None
    """What the page's address asks for; None where its tables are no files."""
    dates: str = ""
    """The days that were asked for, as fields of an address: what all pages hand on to those with dates."""
    presets: Sequence[tuple[str, str, date, date]] = ()
    """Times to choose: name, fields of an address, first and last day."""
    root: str = "./"
    """The way from this page up to the first one: relative, so that a proxy may put a path of its own before it."""


def page_html(view: View, frame: Frame, *, report: bool = False) -> bytes:
    """A page; a `report` is one self-contained file."""
    scripts = [_text("dashboard.js"), _text("echarts.common.min.js")] if report else []
    styles = [_text("dashboard.css")] if report else []
    charts = [item for section in view.sections for item in section.items if isinstance(item, Chart) and item.option]
    drawn = [{"id": c.id, "height": c.height, "option": c.option, "leads": {} if report else c.leads} for c in charts]
    template = _environment().get_template("page.html.j2")
    text = template.render(
        view=view,
        frame=frame,
        report=report,
        scripts=scripts,
        styles=styles,
        policy=_policy(scripts, styles),
        data=_json(drawn) if drawn else "",
    )
    return text.encode("utf-8", "replace")


def _json(value: object) -> str:
    """JSON that cannot end the element it stands in: what HTML would take for markup is escaped."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(_ESCAPED)


def _policy(scripts: Sequence[str], styles: Sequence[str]) -> str:
    """What the report's own policy permits: its scripts and styles, by their hashes, and no address."""

    def hashes(texts: Sequence[str]) -> str:
        return " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(t.encode()).digest()).decode()}'" for t in texts)

    return (
        f"default-src 'none'; script-src {hashes(scripts)}; style-src {hashes(styles)}; img-src data:; base-uri 'none'"
    )


@cache
def _text(name: str) -> str:
    return (_HERE / "static" / name).read_text(encoding="utf-8")


@cache
def static_address(name: str) -> str:
    """`static/NAME?v=…`, which changes with the file, so that browsers may keep it."""
    digest = hashlib.sha256((_HERE / "static" / name).read_bytes()).hexdigest()
    return f"static/{name}?v={digest[:12]}"


def _kinds(columns: Sequence[Column]) -> list[tuple[Column, str]]:
    """Each column, and its class in the style sheet: `number` stands to the right, `at` is one line, all else is text."""
    classes = dict.fromkeys(("number", "share", "money", "amount"), "number") | dict.fromkeys(("instant", "date"), "at")
    classes |= {"sentence": "sentence", "digest": "digest"}
    return [(column, classes.get(column.kind, "")) for column in columns]


def cell(value: object, column: Column) -> str:  # noqa: PLR0911 - one line for each kind of value
    """A value of a table as text."""
    if value is None:
        return column.none
    if isinstance(value, Money):
        told = wording.money if column.kind == "amount" else wording.money_text
        return told(value.amount, value.currency, sign=value.sign)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if column.kind == "month" and isinstance(value, date):
        return wording.month(value)
    if column.kind == "share" and isinstance(value, float | int):
        return wording.share(value)
    if isinstance(value, int):
        return wording.count(value)
    if isinstance(value, float):
        return f"{value:,.1f}".removesuffix(".0")
    if isinstance(value, Decimal):
        return f"{value:,f}"
    if isinstance(value, datetime):
        return wording.instant(value)
    return value.isoformat() if isinstance(value, date) else wording.plain(value)


def csv_of(table: Table) -> bytes:
    """A table as a file: all rows, each value whole and as exports write it; the currency of its amounts is the last column."""
    amounts = [[found for value in row if isinstance(found := _bare(value), Money)] for row in table.rows]
    currencies = [[" / ".join(dict.fromkeys(each.currency or "" for each in of))] for of in amounts]
    if not any(amounts) or any(column.title == "Currency" for column in table.columns):
        currencies = [[] for _ in amounts]
    text = io.StringIO(newline="")
    rows = csv.writer(text, lineterminator="\r\n")
    heads = [*(formula_safe(column.title) for column in table.columns), *(["Currency"] if any(currencies) else [])]
    rows.writerows([heads, *([*map(_raw, row), *of] for row, of in zip(table.rows, currencies, strict=True))])
    return text.getvalue().encode()


def _bare(value: object) -> object:
    return value.value if isinstance(value, Link) else value


def _raw(value: object) -> str | int | float | None:
    found = _bare(value)
    if isinstance(found, Money):
        found = found.amount
    if isinstance(found, bool):
        return str(found).lower()
    if isinstance(found, int | float) or found is None:
        return found
    if isinstance(found, Decimal):
        return f"{found:f}"
    if isinstance(found, datetime):
        return found.isoformat().replace("+00:00", "Z")
    return found.isoformat() if isinstance(found, date) else formula_safe(str(found))


def _groups(items: Sequence[Item]) -> list[tuple[str, list[Item]]]:
    """Items in order, charts that follow each other together: they stand side by side."""
    found: list[tuple[str, list[Item]]] = []
    kinds: dict[type[Item], str] = {str: "text", Tiles: "tiles", Table: "table", Chart: "chart"}
    for item in items:
        kind = kinds.get(type(item), "block")
        if found and kind == "chart" == found[-1][0]:
            found[-1][1].append(item)
        else:
            found.append((kind, [item]))
    return found


def _course(days: Sequence[float | None]) -> str:
    """The path of a line through numbers in a box of 100 by 24, from 0 or what is less at its bottom; None breaks it."""
    known = [0, *(day for day in days if day is not None)]
    least, span = min(known), (max(known) - min(known)) or 1
    drawn, moves = [], True
    for number, day in enumerate(days):
        if day is not None:
            at = f"{100 * number / max(1, len(days) - 1):.1f} {23 - 22 * (day - least) / span:.1f}"
            # A day between two that are not known is a dot.
            drawn.append(f"{'M' if moves else 'L'}{at}" + ("h.1" if moves else ""))
        moves = day is None
    return " ".join(drawn)


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    filters: dict[str, Any] = {
        "cell": lambda value, column: cell(value.value if isinstance(value, Link) else value, column),
        "file_fields": lambda table, fields: urlencode([*fields, ("table", table.caption)]),
        "plain": wording.plain,
        "groups": _groups,
        "kinds": _kinds,
        "link": lambda value: value.href if isinstance(value, Link) else "",
        "shade": lambda value: value if isinstance(value, Shade) else None,
        "static": static_address,
        "course": _course,
        "pieces": _PIECE.split,
        "instant": wording.instant,
        "age": wording.age,
    }
    made.filters |= filters
    return made
