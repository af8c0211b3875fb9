"""`octo-sync export`: tables, marts, questions and queries as files."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from octo_sync.app.machine import SystemClock
from octo_sync.cli import ask as asking
from octo_sync.cli import console, options
from octo_sync.flows import ask
from octo_sync.flows.export import delta
from octo_sync.flows.export import files as export
from octo_sync.flows.export.dbt import project as dbt_project
from octo_sync.flows.export.dbt import sources
from octo_sync.flows.publish import sql_files

if TYPE_CHECKING:
    from octo_sync.app.reading import Copy, Query
    from octo_sync.flows.export.files import Exported

_FORMATS = ("csv", "parquet", "xlsx", "json", "jsonl")
_DELTA = "delta"


class _Item(NamedTuple):
    """Something to write: what its file and sheet are called, and its rows; no rows = what dbt reads."""

    name: str
    query: "Query | None"


@click.command()
@click.argument("what", nargs=-1)
@click.option("--sql", "query", metavar="QUERY", help="Export the rows of this SQL query instead.")
@click.option(
    "--to",
    "target",
    required=True,
    metavar="FILE|DIR",
    help="A file, or a folder for several; folders are created. Delta tables may go to an object store (s3://…).",
)
@click.option(
    "--format",
    "form",
    type=click.Choice((*_FORMATS, _DELTA)),
    help="The kind of file.  [default: by the ending of its name]",
)
@click.option(
    "--param", "given", metavar="NAME=VALUE", multiple=True, help="A value for a question's parameter; repeatable."
)
@click.option("--raw", is_flag=True, help="CSV: do not escape texts that a spreadsheet would run as formulas.")
@click.option("--force", is_flag=True, help="Overwrite files that are there.")
@options.timeout()
@options.project
@options.as_json
def command(
    what: tuple[str, ...],
    query: str | None,
    target: str,
    form: str | None,
    given: tuple[str, ...],
    directory: Path,
    pipeline: str | None,
    *,
    raw: bool,
    force: bool,
    timeout: float,
    json_: bool,
) -> int:
    """Write tables, marts, questions or a query into files.

    WHAT is a table, a mart, a schema, a question's name, or dbt: a dbt project, or the file sources.yml alone. Files appear
    only when they are complete, and only their owner may read them.
    """
    if bool(what) == (query is not None):
        raise click.UsageError("Say what: names of tables, marts or questions, or --sql QUERY.")
    project = options.places(directory, pipeline)
    with options.open_copy(project) as copy:
        if query is not None:
            items = [_Item("query", copy.sql(query, timeout=timeout or None))]
        else:
            items = [item for name in what for item in _found(copy, project.directory, name, given, timeout or None)]
        if form == _DELTA:
            written = _delta(items, target)
        else:
            files = _files(items, target, form)
            written = [
                _write(copy, project, item, path, kind, raw=raw, force=force)
                for item, (path, kind) in zip(items, files, strict=True)
            ]
    if json_:
        console.document("export", {"files": [{"path": str(w.path), "rows": w.rows, "bytes": w.size} for w in written]})
    else:
        for item, one in zip(items, written, strict=True):
            what_of = "rows" if item.query is not None else "tables"
            click.echo(f"{one.path}  {one.rows:,} {what_of}  {console.bytes_text(one.size)}")
    return 0


def _found(copy: "Copy", directory: Path, name: str, given: Sequence[str], timeout: float | None) -> "list[_Item]":
    """What a name means: dbt, a schema, a table or mart, a question, in this order."""
    tables = copy.tables()
    if name == "dbt":
        return [_Item("dbt", None)]
    wanted = name.lower()
    inside = [t for t in tables if t.schema == wanted]
    own = next((t for t in tables if wanted in (t.full_name, t.name)), None)
    if inside and own is None:
        twice = {t.name for t in tables if sum(t.name == other.name for other in tables) > 1}
        return [
            _Item(t.full_name if t.name in twice else t.name, copy.table(t.full_name, timeout=timeout)) for t in inside
        ]
    if own is not None:
        return [_Item(wanted, copy.table(own.full_name, timeout=timeout))]
    known = ask.questions(directory)
    question = ask.find(known, name)
    if question is None:
        hint = options.did_you_mean(
            wanted, [*(t.full_name for t in tables), *(t.name for t in tables), *(q.name for q in known)]
        )
        raise click.UsageError(
            f"There is no table, mart or question {name!r}{hint or '.'} octo-sync tables and octo-sync ask list them."
        )
    return [_Item(question.name, copy.sql(question.sql, asking.answers(copy, question, given), timeout=timeout))]


def _files(items: Sequence[_Item], where: str, form: str | None) -> list[tuple[Path, str]]:
    """Path and format of each. A slash at the end says that it is a folder, there or not; a `Path` would forget it."""
    if not where:
        raise click.UsageError("Where to? Name a file, or a folder.")
    target = Path(where)
    many = len(items) > 1 or target.is_dir() or where.endswith(("/", "\\"))
    kind = form or ("" if many else target.suffix.removeprefix(".").lower())
    if kind not in _FORMATS and any(item.query is not None for item in items):
        raise click.UsageError(f"Which format? Say --format {'|'.join(_FORMATS)}, or give a file with such an ending.")
    if not many:
        return [(target, kind)]
    if not kind and len(items) == 1:
        return [(target, "")]
    return [(target / (item.name if item.query is None else f"{item.name}.{kind}"), kind) for item in items]


def _write(
    copy: "Copy", project: options.Places, item: _Item, path: Path, form: str, *, raw: bool, force: bool
) -> "Exported":
    if item.query is None:
        tables, where = copy.tables(), project.published
        shown = [file.sql for file in sql_files(project.directory, "dashboard")]
        files = {path / name: text for name, text in dbt_project(tables, where, shown).items()}
        if form in ("yml", "yaml"):
            files = {path: sources(tables)}
        with ExitStack() as all_of_them:
            for file, text in files.items():
                all_of_them.enter_context(export.writing(file, force=force)).write_text(text, encoding="utf-8")
        return export.Exported(path, len(tables), sum(len(text.encode()) for text in files.values()))
    with _counting(item.name) as tell:
        return export.export(
            item.query.batches(),
            path,
            form,
            raw=raw,
            force=force,
            title=item.name,
            decimals=_decimals(copy) if form == "xlsx" else {},
            progress=tell,
        )


def _delta(items: Sequence[_Item], target: str) -> "list[Exported]":
    """Each item as a Delta table."""
    if not target:
        raise click.UsageError("Where to? Name a folder, or an address such as s3://bucket/octo.")
    tables = []
    for item in items:
        if item.query is None:
            raise click.UsageError("dbt is no table; it has no format.")
        tables.append((item.name, item.query))
    return delta.write(((name, query.batches()) for name, query in tables), target, SystemClock().now())


def _decimals(copy: "Copy") -> dict[str, int]:
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
