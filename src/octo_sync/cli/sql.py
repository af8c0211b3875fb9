"""`octo-sync sql`: ask the read copy."""

import sys
from pathlib import Path

import click

from octo_sync.cli import console, guard, options


@click.command(epilog=options.example('sql "select status, count(*) from fct_bookings group by 1"'))
@click.argument("query", required=False)
@click.option("-f", "--file", type=options.FILE, help="Read the query from this file.")
@options.places_of
@options.limit(10_000)
@options.timeout(300)
@options.as_form
def command(
    query: str | None, file: Path | None, project: options.Places, *, limit: int, timeout: float, form: str
) -> None:
    """Run one query on the read copy and print its rows.

    QUERY is one reading statement, such as "select * from fct_bookings", or - for standard input. See octo-sync tables for
    the names; the schemas marts, core and ops may be omitted. Works while a sync is running.
    """
    text = _query(query, file)
    with options.open_copy(project) as copy, guard.bounded(timeout or None):
        found = copy.sql(text, timeout=timeout or None).fetch(limit or None)
    console.write_rows(found.columns, found.rows, form, types=list(found.types), truncated=found.truncated)
    if not found.rows and form in ("table", "md"):
        console.note("No rows.")
    if found.truncated:
        console.note(f"Only the first {limit:,} rows are shown; --limit 0 shows all.")


def _query(query: str | None, file: Path | None) -> str:
    if (query is None) == (file is None):
        raise click.UsageError("Give one query: as text, as - for the standard input, or with -f FILE.")
    try:
        if file is not None and str(file) != "-":
            return file.read_text(encoding="utf-8-sig")
        if query == "-" or file is not None:
            return sys.stdin.read()
    except UnicodeDecodeError:
        raise click.UsageError("The query is not UTF-8 text.") from None
    return query or ""
