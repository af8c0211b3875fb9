"""`octo-sync export`: tables, marts, questions and queries as files."""

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import click

from octo_sync.app.machine import SystemClock
from octo_sync.app.reading import Copy, Query
from octo_sync.cli import ask as asking
from octo_sync.cli import console, options
from octo_sync.flows import ask
from octo_sync.flows.export import files as export
from octo_sync.flows.export.dbt import project as dbt_project
from octo_sync.flows.export.dbt import sources
from octo_sync.flows.export.files import Exported
from octo_sync.flows.export.workbook import export_together
from octo_sync.flows.publish import sql_files

_XLSX, _DELTA = "xlsx", "delta"


class _Item(NamedTuple):
    """Something to write: what its file and sheet are called, its rows (none = what dbt reads), its name with the schema."""

    name: str
    query: Query | None
    full_name: str = ""


@click.command(epilog=options.example("export fct_bookings --to bookings.csv"))
@click.argument("what", nargs=-1)
@click.option("--sql", "query", metavar="QUERY", help="Export the rows of this SQL query instead.")
@click.option(
    "--to",
    "target",
    required=True,
    metavar="FILE|DIR",
    help="A file, or a folder for several; an .xlsx file takes several, too, a sheet each. Folders are created. "
    "Delta tables may go to an object store (s3://…).",
)
@click.option(
    "--format",
    "form",
    type=click.Choice((*export.FORMATS, _DELTA)),
    help="The kind of file.  [default: by the ending of its name]",
)
@options.param()
@click.option("--raw", is_flag=True, help="CSV: do not escape texts that a spreadsheet would run as formulas.")
@click.option("--force", is_flag=True, help="Overwrite files that are there.")
@options.timeout()
@options.places_of
@options.as_json
def command(
    what: tuple[str, ...],
    query: str | None,
    target: str,
    form: str | None,
    given: tuple[str, ...],
    project: options.Places,
    *,
    raw: bool,
    force: bool,
    timeout: float,
) -> None:
    """Write tables, marts, questions or a query into files.

    WHAT is a table, a mart, a schema, a question's name, or dbt: a dbt project, or the file sources.yml alone. Files appear
    only when they are complete, and only their owner may read them.
    """
    if bool(what) == (query is not None):
        raise click.UsageError("Say what: names of tables, marts or questions, or --sql QUERY.")
    with options.open_copy(project) as copy:
        if query is not None:
            items = [_Item("query", copy.sql(query, timeout=timeout or None))]
        else:
            found = [i for name in what for i in _found(copy, project.directory, name, given, timeout or None)]
            # Delta tables are overwritten without a word: of two schemas none may take the other's place later.
            items = _named(found, [table.name for table in copy.tables()] if form == _DELTA else ())
        sheets: dict[str, int] = {}
        if len(items) > 1 and form in (None, _XLSX) and not _is_folder(target) and _ending(target) == _XLSX:
            one, sheets = _workbook(copy, items, Path(target), force=force)
            written = [one]
        elif form == _DELTA:
            written = _delta(items, target)
        else:
            files = _files(items, target, form)
            written = [
                _write(copy, project, item, path, kind, raw=raw, force=force)
                for item, (path, kind) in zip(items, files, strict=True)
            ]
    held = {"sheets": [{"name": name, "rows": rows} for name, rows in sheets.items()]} if sheets else {}
    made = [{"path": str(one.path), "rows": one.rows, "bytes": one.size, **held} for one in written]
    if console.wrote_json("export", {"files": made}):
        return
    for item, one in zip(items, written, strict=False):
        count = f"{len(sheets)} sheets, " if sheets else ""
        what_of = "tables" if item.query is None else "rows"
        click.echo(f"{one.path}  {count}{one.rows:,} {what_of}  {console.bytes_text(one.size)}")


def _found(copy: Copy, directory: Path, name: str, given: Sequence[str], timeout: float | None) -> list[_Item]:
    """What a name means: dbt, a schema, a table or mart, a question, in this order."""
    tables = copy.tables()
    if name == "dbt":
        return [_Item("dbt", None)]
    wanted = name.lower()
    inside = [t for t in tables if t.schema == wanted]
    own = next((t for t in tables if wanted in (t.full_name, t.name)), None)
    if meant := [own] if own is not None else inside:
        return [_Item(t.name, copy.table(t.full_name, timeout=timeout), t.full_name) for t in meant]
    known = ask.questions(directory)
    question = ask.find(known, name)
    if question is None:
        names = [*(t.full_name for t in tables), *(t.name for t in tables), *(q.name for q in known)]
        hint = options.did_you_mean(wanted, names)
        raise click.UsageError(
            f"There is no table, mart or question {name!r}{hint or '.'} octo-sync tables and octo-sync ask list them."
        )
    rows = copy.sql(question.sql, asking.answers(copy, question, given), timeout=timeout)
    for remark in asking.remarks(copy, question):
        console.note(remark)
    return [_Item(question.name, rows)]


def _named(items: Sequence[_Item], others: Sequence[str]) -> list[_Item]:
    """Each once, by its name alone; where two of them, or of the `others`, have the same, with their schemas."""
    once = {item.full_name or item.name: item for item in items}
    names, more = Counter(item.name for item in once.values()), Counter(others)
    return [
        item._replace(name=full) if max(names[item.name], more[item.name]) > 1 else item for full, item in once.items()
    ]


def _is_folder(where: str) -> bool:
    """A slash at the end says so, whether it is there or not; a `Path` would forget it."""
    return Path(where).is_dir() or where.endswith(("/", "\\"))


def _ending(where: str) -> str:
    return Path(where).suffix.removeprefix(".").lower()


def _files(items: Sequence[_Item], where: str, form: str | None) -> list[tuple[Path, str]]:
    """Path and format of each."""
    if not where:
        raise click.UsageError("Where to? Name a file, or a folder.")
    target = Path(where)
    folder, ending = _is_folder(where), _ending(where)
    kind = form or ("" if folder else ending)
    if any(item.query is not None for item in items):
        _check(target, kind, ending, tables=len(items), folder=folder)
    if len(items) == 1 and not (folder and kind):
        return [(target, kind)]
    return [(target / (item.name if item.query is None else f"{item.name}.{kind}"), kind) for item in items]


def _check(target: Path, kind: str, ending: str, *, tables: int, folder: bool) -> None:
    """Refuse what cannot be meant, in a sentence."""
    formats = "|".join(export.FORMATS)
    if folder and not kind and ending in export.FORMATS:
        raise click.UsageError(f"{target} is a folder; name another file, or say --format for files in it.")
    if kind not in export.FORMATS:
        which = f"No format ends in .{ending}; say" if ending and not folder else "Which format? Say"
        raise click.UsageError(f"{which} --format {formats}, or give a file with such an ending.")
    if tables > 1 and not folder and ending in export.FORMATS:
        bare = target.with_suffix("")
        raise click.UsageError(
            f"A {kind} file holds one table, and here are {tables}. A file of each: --to {bare}/ --format {kind}; "
            f"one workbook with a sheet of each: --to {bare}.xlsx, without --format."
        )


def _workbook(copy: Copy, items: Sequence[_Item], path: Path, *, force: bool) -> tuple[Exported, dict[str, int]]:
    """All items as sheets of one file: the file, and the rows of each sheet."""
    queries = [(item.name, _rows(item)) for item in items]
    with _counting(path.name) as tell:
        tables = ((name, query.batches()) for name, query in queries)
        return export_together(tables, path, force=force, decimals=_decimals(copy), progress=tell)


def _rows(item: _Item) -> Query:
    if item.query is None:
        raise click.UsageError("dbt is no table; it has no format.")
    return item.query


def _write(
    copy: Copy, project: options.Places, item: _Item, path: Path, form: str, *, raw: bool, force: bool
) -> Exported:
    if item.query is None:
        tables, where = copy.tables(), project.published
        shown = [file.sql for file in sql_files(project.directory, "dashboard")]
        files = {path / name: text for name, text in dbt_project(tables, where, shown).items()}
        if form in ("yml", "yaml"):
            files = {path: sources(tables)}
        export.write_texts(files, force=force)
        return export.Exported(path, len(tables), sum(len(text.encode()) for text in files.values()))
    with _counting(item.name) as tell:
        return export.export(
            item.query.batches(),
            path,
            form,
            raw=raw,
            force=force,
            title=item.name,
            decimals=_decimals(copy) if form == _XLSX else {},
            progress=tell,
        )


def _delta(items: Sequence[_Item], target: str) -> list[Exported]:
    """Each item as a Delta table."""
    if not target:
        raise click.UsageError("Where to? Name a folder, or an address such as s3://bucket/octo.")
    return export.export_delta({item.name: _rows(item).batches for item in items}, target, SystemClock().now())


def _decimals(copy: Copy) -> dict[str, int]:
    """Currency → digits, as the service says."""
    return dict(copy.sql("select currency, max(currency_precision) from core.unit_prices group by 1").rows())


@contextmanager
def _counting(name: str) -> Iterator[Callable[[int], None]]:
    """Rows so far, on stderr, where somebody watches."""
    if console.quiet() or not sys.stderr.isatty():
        yield lambda _: None
        return
    try:
        yield lambda rows: click.echo(f"\r{name}  {rows:,} rows", nl=False, err=True)
    finally:
        click.echo("\r" + " " * (len(name) + 24) + "\r", nl=False, err=True)
