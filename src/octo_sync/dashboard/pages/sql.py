"""The SQL page: an editor on the read copy, the ready-made questions, what there is to ask about.

A query is a GET with its text in the address: it only reads, so it can be bookmarked, shared and asked again, and needs no
script. One that another site causes is refused, because it could keep the machine busy.
"""

from collections import defaultdict
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode

from octo_sync.dashboard.query import FIELD, LONGEST, Asked, asked
from octo_sync.dashboard.source import PAGE_SECONDS, Source
from octo_sync.dashboard.view import Block, Column, Filters, Kind, Page, Section, Table, View
from octo_sync.destinations.base import Rows
from octo_sync.destinations.reading import TableInfo
from octo_sync.errors import OctoSyncError, QueryError
from octo_sync.flows import ask
from octo_sync.flows.wording import are_timed, decimals, instant

ROWS = 1_000
"""At most so many rows are shown; the download has all."""
_WIDEST = 2_000
"""Characters of a value that are shown; the download has all. One value may have hundreds of millions."""
_FIRST = (
    "-- Marts, then core, then ops tables need no schema. Ctrl+Enter runs it.\nselect *\nfrom fct_bookings\nlimit 100"
)

_SCHEMAS = {
    "marts": "What questions and charts are made of.",
    "core": "The service's own records, normalised.",
    "ops": "How the copy was made: coverage, runs, quarantine.",
}


def build(source: Source, filters: Filters) -> View:
    """The page: the editor with what was asked, the answer or why there is none, the questions and the tables."""
    fields = dict(filters.more)
    wanted, problem, found, seconds = Asked("", "", (), {}), "", None, 0.0
    try:
        wanted = asked(source, fields)
        if wanted.text and not wanted.missing:
            began = source.now()
            found = source.sql(wanted.text, wanted.values(source), limit=ROWS, timeout=PAGE_SECONDS)
            seconds = (source.now() - began).total_seconds()
    except OctoSyncError as error:
        problem = str(error)
    text = wanted.text or fields.get("q", "")
    editor = {
        "text": text or _FIRST,
        "rows": min(30, max(6, (text or _FIRST).count("\n") + 2)),
        "longest": LONGEST,
        "field": FIELD,
        "fields": [(p, wanted.given.get(p.name, p.default)) for p in wanted.parameters],
        "problem": problem,
        "hint": _hint(wanted, problem),
    }
    sections = [Section("Query", [Block("sql.html.j2", editor)])]
    if found is not None:
        sections.append(_answer(wanted, found, seconds))
    sections += [_questions(source), _schema(source)]
    lead = (
        f"Read-only SQL on {source.name}: {ROWS:,} rows are shown at most, within {PAGE_SECONDS:g} seconds. "
        "Files, networks and extensions are out of reach."
    )
    return View("SQL", lead, sections)


def _hint(wanted: Asked, problem: str) -> str:
    if problem or not wanted.missing:
        return ""
    return f"It wants to know {', '.join(wanted.missing)}: fill it in and press Run."


def _answer(wanted: Asked, found: Rows, seconds: float) -> Section:
    fields = {"q": wanted.text} | {FIELD + name: value for name, value in wanted.given.items() if value}
    count = f"{len(found.rows):,} row{'' if len(found.rows) == 1 else 's'}"
    more = f"Only the first {ROWS:,} rows are shown; the download has all of them." if found.truncated else ""
    timed = [are_timed(row[place] for row in found.rows) for place in range(len(found.columns))]
    table = Table(
        caption=f"{'The first ' if found.truncated else ''}{count}, {seconds:.2f} s",
        columns=[Column(_cut(name), _kind(found, place)) for place, name in enumerate(found.columns)],
        rows=[
            [_plain(value, timed=is_timed) for value, is_timed in zip(row, timed, strict=True)]
            for row in decimals(found.columns, found.rows)
        ],
        empty="No rows.",
        more=more,
    )
    links = Block("downloads.html.j2", {"name": "sql", "fields": urlencode(fields)})
    return Section("Answer", [table, links], id="answer")


def _kind(found: Rows, place: int) -> Kind:
    """How a column is written: what its first value is."""
    value = next((row[place] for row in found.rows if row[place] is not None), None)
    if isinstance(value, bool):
        return "yes"
    if isinstance(value, int | float | Decimal):
        return "number"
    if isinstance(value, datetime):
        return "instant"
    return "date" if isinstance(value, date) else "text"


def _plain(value: Any, *, timed: bool) -> Any:  # noqa: ANN401 - whatever an engine hands out
    """What a table shows as it is: nothing of a number is rounded away, and a long value is cut.

    Where a column has times (`timed`), midnight is one too.
    """
    if timed and isinstance(value, datetime):
        return instant(value, timed=True)
    if value is None or isinstance(value, bool | date):
        return value
    if isinstance(value, Decimal):
        return _cut(f"{value:f}")
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return _cut(bytes(value[:_WIDEST]).hex())
    return _cut(str(value))


def _cut(text: str) -> str:
    return text if len(text) <= _WIDEST else text[:_WIDEST] + "…"


def _questions(source: Source) -> Section:
    try:
        known = ask.questions(source.directory)
    except QueryError as error:
        return Section("Ready-made questions", [str(error)])
    found = [(q, urlencode({"ask": q.name})) for q in known]
    return Section("Ready-made questions", [Block("questions.html.j2", {"questions": found})], id="questions")


def _schema(source: Source) -> Section:
    try:
        tables = source.tables()
    except OctoSyncError as error:
        return Section("Tables", [str(error)])
    grouped = defaultdict[str, list[tuple[TableInfo, Table, str]]](list)
    for table in tables:
        columns = Table(
            f"Columns of {table.full_name}",
            [Column("Column"), Column("Type"), Column("Meaning")],
            [(column.name, column.type, column.description) for column in table.columns],
        )
        first = urlencode({"q": f"select *\nfrom {table.full_name}\nlimit 100"})
        grouped[table.schema].append((table, columns, first))
    schemas = [(name, _SCHEMAS.get(name, ""), found) for name, found in grouped.items()]
    return Section("Tables", [Block("schema.html.j2", {"schemas": schemas})], id="tables")


PAGE = Page(name="sql", title="SQL", order=90, build=build, takes_more=True, guarded=True, works_empty=True)
