"""`octo-sync db`: the project's databases as a whole: schema, backup, restore, rebuild."""

from dataclasses import asdict
from pathlib import Path

import click

from octo_sync.app.move import Moved, move
from octo_sync.app.places import files
from octo_sync.app.project import open_files, rebuild_files, restore_files
from octo_sync.cli import console, options
from octo_sync.destinations.duckdb.files import schema_of_file
from octo_sync.destinations.migrations import SCHEMA_VERSION
from octo_sync.flows.backup.save import back_up
from octo_sync.journal import newest_schema
from octo_sync.pipeline import Pipeline


@click.group(cls=options.Group, epilog=options.example("db backup ../octo-backup"))
def command() -> None:
    """Back up, restore, migrate or rebuild the databases."""


command.default = ""


def _place(value: str) -> Path | str:
    """A file, or the address of a PostgreSQL database."""
    return value if value.startswith(("postgresql://", "postgres://")) else Path(value)


def _versions(loaded: Pipeline) -> int:
    """The versions of both schemas, this program's and those that are there."""
    # First: a restore that was cut off is finished by it.
    journal = next(iter(options.ask_journal(loaded, lambda journal: [journal.schema_version()])), None)
    schema = _schema(loaded)
    rows = [("warehouse schema", SCHEMA_VERSION, schema), ("journal schema", newest_schema(), journal)]
    found = {name.split()[0]: {"program": ours, "file": there} for name, ours, there in rows}
    if not console.wrote_json("db_version", {"schema": found["warehouse"], "journal": found["journal"]}):
        console.write_rows(("what", "this program", "there"), [(*row[:2], row[2] or "-") for row in rows], "table")
    return 3 if schema not in (None, SCHEMA_VERSION) else 0


def _schema(loaded: Pipeline) -> int | None:
    """The schema's version in the warehouse."""
    if isinstance(loaded.destination, Path):
        return schema_of_file(loaded.destination)
    from octo_sync.destinations.postgres.schema import schema_of_server  # noqa: PLC0415 - its driver is an extra

    return schema_of_server(loaded.destination)


@command.command("migrate", epilog=options.example("db migrate --check"))
@options.pipeline_of
@click.option("--check", is_flag=True, help="Only show the versions; exit 3 when they differ.")
@options.as_json
def migrate(loaded: Pipeline, *, check: bool) -> int:
    """Bring the databases to this program's schema; every command that writes does so by itself.

    It can be interrupted at any moment: the next one finishes it.
    """
    if check:
        return _versions(loaded)
    with open_files(loaded, command="db migrate") as opened:
        taken = opened.warehouse.migrated
    steps = [console.fields(step, "version", "what") for step in taken]
    if console.wrote_json("db_migrate", {"schema": SCHEMA_VERSION, "steps": steps}):
        return 0
    for step in taken:
        click.echo(f"version {step.version}  {step.what}")
    if taken:
        console.note("The read copy is as it was until the next publish: octo-sync publish")
    else:
        click.echo(f"current  schema {SCHEMA_VERSION}; nothing to do")
    return 0


@command.command("backup", epilog=options.example("db backup ../octo-backup"))
@click.argument("target", type=options.FOLDER)
@options.pipeline_of
@options.as_json
def backup(target: Path, loaded: Pipeline) -> None:
    """Copy warehouse, private file and journal into the new directory TARGET.

    It holds personal data, only its owner may read it, and it appears only when complete. `serve` must not run.
    """
    here = files(loaded)
    if not here.warehouse.exists():
        raise click.UsageError(f"There is nothing to back up: {here.warehouse} does not exist yet.")
    with open_files(loaded, command="db backup") as opened:
        opened.warehouse.close()
        now, run = opened.ports.clock.now(), opened.ports.run_id
        made = back_up(here, target, now=now, run=run, name=loaded.name)
    if not console.wrote_json("db_backup", {"path": str(target), "bytes": made.size, "files": asdict(made)["files"]}):
        size, what = console.bytes_text(made.size), f"{len(made.files)} files and a manifest"
        console.outcome("backed up", f"{target} ({size}) · {what} · {made.created_at[:19]}Z")


@command.command("restore", epilog=options.example("db restore ../octo-backup --force"))
@click.argument("source", type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.option(
    "--force",
    is_flag=True,
    help="Replace an existing project, whose files are kept; also by a backup of another pipeline.",
)
@options.pipeline_of
@options.as_json
def restore(source: Path, loaded: Pipeline, *, force: bool) -> None:
    """Restore the backup in SOURCE, and mark everything for the next sync.

    The backup is verified first, and replaces the project in one step.
    """
    manifest, done = restore_files(loaded, source, force=force)
    document = {
        "created_at": manifest.created_at,
        "pipeline": manifest.pipeline,
        "bytes": manifest.size,
        "kept": [str(path) for path in done.kept],
    }
    document |= console.fields(done, "closed", "closed_otherwise")
    if console.wrote_json("db_restore", document):
        return
    size = console.bytes_text(manifest.size)
    console.outcome("restored", f"the state of {manifest.created_at[:19]}Z ({size}); everything is marked")
    for path in done.kept:
        click.echo(f"  kept     {path}")
    if manifest.pipeline != loaded.name:
        console.note(f"It was a backup of the pipeline {manifest.pipeline!r}; this is {loaded.name!r}.")
    if done.closed:
        console.note(f"Closed since that backup, and still closed: {', '.join(done.closed)}.")
    if done.closed_otherwise:
        console.trouble(
            f"octo-sync: {', '.join(done.closed_otherwise)}: the backup has another closing than the project that it "
            f"replaced. The backup's stays; the other is in the journal that was kept."
        )
    console.note("Catch up: octo-sync sync. Whoever was erased since that backup must be erased again.")


@command.command("rebuild", epilog=options.example("db rebuild"))
@click.option(
    "--from",
    "former",
    metavar="PLACE",
    type=_place,
    help="The DuckDB file, or postgresql:// address, that a project moves from, whose pipeline file names another by now.",
)
@click.option(
    "--journal",
    "former_journal",
    metavar="PLACE",
    type=_place,
    help="With --from: the journal's file or address.",
)
@options.pipeline_of
@options.as_json
def rebuild(former: Path | str | None, former_journal: Path | str | None, loaded: Pipeline) -> None:
    """Rebuild the warehouse from every row that can be read, and mark everything for the next sync.

    It makes no network calls. The former files are kept. With --from a project moves with all it has.
    """
    if former is not None:
        _moved(move(loaded, former, former_journal))
        return
    if former_journal is not None:
        raise click.UsageError("--journal goes with --from.")
    made, kept = rebuild_files(loaded)
    document = console.fields(made, "rows", "marked", "unread") | {"kept": [str(path) for path in kept]}
    if console.wrote_json("db_rebuild", document):
        return
    marked = f"everything is marked ({made.marked:,} subjects)"
    console.outcome("rebuilt", f"{made.rows:,} rows taken over; {marked}")
    for name in made.unread:
        click.echo(f"  unread   {name}: missing or damaged; the next sync fetches what the service still has", err=True)
    if made.unread:
        console.note("Histories, or what was proven deleted, begin anew where they could not be read.")
    for path in kept:
        click.echo(f"  kept     {path}")
    console.note("Fetch everything anew: octo-sync sync")


def _moved(made: Moved) -> None:
    tables = [console.fields(table, "table", "rows", "digest") for table in made.tables]
    if console.wrote_json("db_rebuild", console.fields(made, "rows", "journal_rows") | {"tables": tables}):
        return
    kept = "" if made.journal_rows is None else f" and {made.journal_rows:,} of the journal"
    equal = f"{len(made.tables)} tables are equal in both"
    console.outcome("moved", f"{made.rows:,} rows of the warehouse{kept}; {equal}")
    console.note("Go on: octo-sync sync. When all is well, delete what is in the former place.")
