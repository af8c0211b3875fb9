"""`octo-sync tables`: what is in the copy, and what it means."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from octo_sync.app.reading import Copy, TableInfo
from octo_sync.cli import console, options
from octo_sync.destinations.ddl import script
from octo_sync.tables import all_tables
from octo_sync.tables.schema import Table

_RESOURCES = {
    "supplier": ("supplier",),
    "products": ("products", "product"),
    "availability": ("availability",),
    "bookings": ("bookings", "booking"),
}


@click.command(epilog=options.example("tables fct_bookings"))
@click.argument("name", required=False)
@click.option("--ddl", is_flag=True, help="Print the CREATE TABLE statements with their comments.")
@click.option("--digests", is_flag=True, help="Row count and digest per table, to compare two copies.")
@options.project
@options.as_form
def command(name: str | None, directory: Path, pipeline: str | None, *, ddl: bool, digests: bool, form: str) -> None:
    """List tables and marts, or the columns of one, and what they mean.

    NAME may have its schema or not, e.g. fct_bookings.
    """
    if ddl:
        _ddl(name)
        return
    with options.open_copy(options.places(directory, pipeline)) as copy:
        if digests:
            _digests(copy, form)
            return
        tables = copy.tables()
        about = _facts(copy, tables) if name is None else {}
    if name:
        _one(name, tables, form)
    else:
        _all(tables, about, form)


def _ddl(name: str | None) -> None:
    known = sorted(all_tables(), key=lambda t: t.full_name)
    found = [t for t in known if name is None or name.lower() in (t.full_name, t.name)]
    if not found:
        raise _unknown(str(name), known)
    click.echo("\n".join(map(script, found)), nl=False)


def _digests(copy: Copy, form: str) -> None:
    found = sorted(copy.digest(), key=lambda d: d.table)
    heads, rows = ("table", "rows", "digest"), [(d.table, d.rows, d.digest) for d in found]
    document = {"of": "read copy", "tables": console.dicts(heads, rows)}
    console.write_list(form, "digest", document, heads, rows)


def _facts(copy: Copy, tables: list[TableInfo]) -> dict[str, dict[str, Any]]:
    """Rows of each table, and when its answers were last verified."""
    nouns = {t.full_name: t.noun for t in all_tables()}
    verified: dict[str, tuple[Any, float]] = {}
    if any(t.full_name == "ops.coverage" for t in tables):
        newest = copy.sql(
            "select resource, max(verified_at_utc), floor(extract(epoch from now() - max(verified_at_utc)))::bigint "
            "from ops.coverage group by 1"
        )
        verified = {resource: (at, age) for resource, at, age in newest.rows()}
    about = {}
    for table in tables:
        times = [verified[r] for r in _RESOURCES.get(nouns.get(table.full_name, ""), ()) if r in verified]
        at, age = max(times, default=(None, None))
        rows = copy.sql(f"select count(*) from {table.quoted}").rows()[0][0]  # noqa: S608 - a name the copy gave
        about[table.full_name] = {"rows": rows, "verified_at": at, "age_seconds": age}
    return about


def _all(tables: list[TableInfo], about: dict[str, dict[str, Any]], form: str) -> None:
    def row(table: TableInfo) -> tuple[object, ...]:
        facts = about.get(table.full_name, {})
        verified, age, meaning = facts.get("verified_at"), facts.get("age_seconds"), table.description
        if form == "table":
            verified, meaning = "" if age is None else f"{console.age_text(age)} ago", _short(meaning)
        return table.full_name, facts.get("rows"), verified, meaning

    heads, rows = ("table", "rows", "verified", "meaning"), [row(table) for table in tables]
    document = {"tables": [_document(t) | about.get(t.full_name, {}) for t in tables]}
    hint = "Details: octo-sync tables NAME"
    console.write_list(form, "tables", document, heads, rows, hint=hint, fold="meaning", least=["verified"])


def _one(name: str, tables: list[TableInfo], form: str) -> None:
    wanted = name.lower()
    found = next((t for t in tables if wanted in (t.full_name, t.name)), None)
    if found is None:
        raise _unknown(name, tables)
    rows = [(c.name, c.type, c.description) for c in found.columns]
    if form == "table":
        console.note(f"{found.full_name}: {found.description}" if found.description else found.full_name)
    console.write_list(form, "table", _document(found), ("column", "type", "meaning"), rows, fold="meaning")


def _unknown(name: str, tables: Sequence[TableInfo | Table]) -> click.UsageError:
    hint = options.did_you_mean(name.lower(), [*(t.full_name for t in tables), *(t.name for t in tables)])
    return click.UsageError(f"There is no table {name!r}{hint or '.'} octo-sync tables lists them.")


def _short(meaning: str) -> str:
    """The first sentence, where a person looks at the list."""
    if console.terminal_width() is None:
        return meaning
    return re.split(r"(?<=[.!?:])\s+(?=[A-Z`])", meaning, maxsplit=1)[0].rstrip(":")


def _document(table: TableInfo) -> dict[str, Any]:
    columns = [console.fields(c, "name", "type", "description") for c in table.columns]
    return console.fields(table, "schema", "name", "kind", "description") | {"columns": columns}
