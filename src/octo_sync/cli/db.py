"""`octo-sync db`: the project's databases as a whole: schema, backup, restore, rebuild."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from octo_sync.cli import console, options

if TYPE_CHECKING:
    from octo_sync.pipeline import Pipeline


@click.group(cls=options.DefaultGroup)
def command() -> None:
    """Look after the databases: table definitions, schema version, backup, restore, rebuild."""


command.default = "ddl"


@command.command("ddl")
@click.argument("tables", nargs=-1)
@click.option(
    "-C",
    "--directory",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    help="Directory that holds warehouse/core.  [default: this one]",
)
@click.option(
    "--write", is_flag=True, help="Write warehouse/core/SCHEMA.TABLE.sql, and remove files of tables that are gone."
)
@click.option("--check", is_flag=True, help="Exit 3 when the files there differ from what would be written.")
def ddl(tables: tuple[str, ...], directory: Path, *, write: bool, check: bool) -> int:
    """Print the CREATE TABLE statements with their comments, of all TABLES or of those named."""
    from octo_sync.destinations.ddl import script  # noqa: PLC0415 - commands start fast
    from octo_sync.tables import all_tables  # noqa: PLC0415

    known = {t.full_name: t for t in all_tables()}
    for name in tables:
        if name not in known:
            raise click.UsageError(f"There is no table {name!r}{options.did_you_mean(name, known) or '.'}")
    if (write or check) and (tables or write == check):
        raise click.UsageError("--write and --check are about all files: give one of them, and no table.")
    scripts = {f"{name}.sql": script(table) for name, table in sorted(known.items()) if not tables or name in tables}
    if not (write or check):
        click.echo("\n".join(scripts.values()), nl=False)
        return 0
    folder = directory / "warehouse" / "core"
    there = {p.name: p.read_text(encoding="utf-8") for p in folder.glob("*.sql")}
    differ = sorted(name for name in scripts.keys() | there.keys() if scripts.get(name) != there.get(name))
    if check:
        for name in differ:
            what = "is of no table" if name not in scripts else "is not current" if name in there else "is missing"
            click.echo(f"{name} {what}")
        if differ:
            console.note("Write them: octo-sync db ddl --write")
        return 3 if differ else 0
    folder.mkdir(parents=True, exist_ok=True)
    for name in differ:
        if name in scripts:
            (folder / name).write_text(scripts[name], encoding="utf-8")
        else:
            (folder / name).unlink()
        click.echo(f"{'wrote' if name in scripts else 'removed'} {folder / name}")
    return 0


def _pipeline(directory: Path, name: str | None) -> "Pipeline":
    """The pipeline, without its tokens: nothing here asks a service."""
    loaded = options.places(directory, name).pipeline
    if loaded is None:
        raise click.UsageError("This needs a pipeline file; name one, e.g. -p sandbox.")
    return loaded


@command.command("version")
@options.reading_options
@options.as_json
def version(pipeline: str | None, directory: Path, *, json_: bool) -> int:
    """Show the schema's version here and in the warehouse, that of the journal, and of DuckDB's storage or of the server.

    Exit code 3 = `db migrate` has something to do, or the warehouse is of a newer octo-sync.
    """
    from octo_sync.destinations.migrations import SCHEMA_VERSION  # noqa: PLC0415 - commands start fast
    from octo_sync.journal import newest_schema  # noqa: PLC0415

    loaded = _pipeline(directory, pipeline)
    known = newest_schema()
    # First: a restore that was cut off is finished by it.
    journal = options.open_journal(options.places(directory, pipeline))
    kept = None
    if journal is not None:
        with journal:
            kept = journal.store.schema_version()
    schema, engine = _of_warehouse(loaded)
    if json_:
        document = {"schema": {"program": SCHEMA_VERSION, "file": schema}, "journal": {"program": known, "file": kept}}
        console.document("db_version", {"duckdb": None, "postgres": None, **document, **engine})
    else:
        shown: list[tuple[object, ...]] = [
            ("warehouse schema", SCHEMA_VERSION, schema or "-"),
            ("journal schema", known, kept or "-"),
        ]
        if duckdb := engine.get("duckdb"):
            shown.append(("DuckDB and its storage", duckdb["program"], duckdb["storage"] or "-"))
        else:
            shown.append(("PostgreSQL server", "-", engine["postgres"]["server"]))
        console.write_rows(("what", "this program", "there"), shown, "table")
    return 3 if schema not in (None, SCHEMA_VERSION) else 0


def _of_warehouse(loaded: "Pipeline") -> tuple[int | None, dict[str, dict[str, str | None]]]:
    """Schema version of the warehouse, and what its engine says of itself."""
    if isinstance(loaded.destination, Path):
        from octo_sync.destinations.duckdb.compaction import about_file  # noqa: PLC0415 - commands start fast

        found = about_file(loaded.destination)
        return found.schema, {"duckdb": {"program": found.duckdb, "storage": found.storage}}
    from octo_sync.destinations.postgres.schema import about_server  # noqa: PLC0415 - its driver is an extra

    schema, server = about_server(loaded.destination)
    return schema, {"postgres": {"server": server}}


@command.command("migrate")
@options.reading_options
@options.as_json
def migrate(pipeline: str | None, directory: Path, *, json_: bool) -> int:
    """Bring the databases to this program's schema; every command that writes does the same by itself.

    A kill at any moment does no harm: what is left is done the next time.
    """
    from octo_sync.app.project import open_files  # noqa: PLC0415 - commands start fast
    from octo_sync.destinations.migrations import SCHEMA_VERSION  # noqa: PLC0415

    loaded = _pipeline(directory, pipeline)
    with open_files(loaded, command="db migrate") as project:
        taken = project.warehouse.migrated
    if json_:
        steps = [{"version": step.version, "what": step.what} for step in taken]
        console.document("db_migrate", {"schema": SCHEMA_VERSION, "steps": steps})
        return 0
    for step in taken:
        click.echo(f"version {step.version}  {step.what}")
    if taken:
        console.note("The read copy is as it was until the next publish: octo-sync publish")
    else:
        click.echo(f"current  schema {SCHEMA_VERSION}; nothing to do")
    return 0


@command.command("backup")
@click.argument("target", type=click.Path(path_type=Path, file_okay=False))
@options.reading_options
@options.as_json
def backup(target: Path, pipeline: str | None, directory: Path, *, json_: bool) -> int:
    """Copy warehouse, private file and journal of one moment into the new directory TARGET.

    It holds personal data, is for its owner alone (0700), and appears only when it is whole. `serve` must not run.
    """
    from octo_sync import __version__  # noqa: PLC0415 - commands start fast
    from octo_sync.app.places import files  # noqa: PLC0415
    from octo_sync.app.project import open_files  # noqa: PLC0415
    from octo_sync.flows.backup.save import back_up  # noqa: PLC0415

    loaded = _pipeline(directory, pipeline)
    here = files(loaded)
    if not here.warehouse.exists():
        raise click.UsageError(f"There is nothing to back up: {here.warehouse} does not exist yet.")
    with open_files(loaded, command="db backup") as project:
        project.warehouse.close()
        now, run = project.ports.clock.now(), project.ports.run_id
        made = back_up(here, target, now=now, run=run, name=loaded.name, program=__version__)
    if json_:
        console.document("db_backup", {"path": str(target), "bytes": made.size, "files": made.files})
    else:
        click.echo(
            f"{console.styled('backed up', fg='green', bold=True)}  {target} ({console.bytes_text(made.size)}) · "
            f"{len(made.files)} files and a manifest · {made.created_at[:19]}Z"
        )
    return 0


@command.command("restore")
@click.argument("source", type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.option("--force", is_flag=True, help="Replace the project that is there; it is kept beside.")
@options.reading_options
@options.as_json
def restore(source: Path, pipeline: str | None, directory: Path, *, force: bool, json_: bool) -> int:
    """Put the backup in SOURCE in place, and mark everything, so that the next sync catches up.

    The manifest is verified first. Until the last moment nothing is changed, and after it everything is.
    """
    from octo_sync.app.project import restore_files  # noqa: PLC0415 - commands start fast

    loaded = _pipeline(directory, pipeline)
    manifest, kept = restore_files(loaded, source, force=force)
    if json_:
        document = {"created_at": manifest.created_at, "bytes": manifest.size, "kept": [str(path) for path in kept]}
        console.document("db_restore", document)
        return 0
    click.echo(
        f"{console.styled('restored', fg='green', bold=True)}  the state of {manifest.created_at[:19]}Z "
        f"({console.bytes_text(manifest.size)}); everything is marked"
    )
    for path in kept:
        click.echo(f"  kept     {path}")
    console.note("Catch up: octo-sync sync. Whoever was erased since that backup must be erased again.")
    return 0


@command.command("rebuild")
@options.reading_options
@options.as_json
def rebuild(pipeline: str | None, directory: Path, *, json_: bool) -> int:
    """Make the warehouse's files anew from every row that can be read, and mark everything, so that the next sync fetches it.

    It asks no service. The former files are kept beside.
    """
    from octo_sync.app.project import rebuild_files  # noqa: PLC0415 - commands start fast

    made, kept = rebuild_files(_pipeline(directory, pipeline))
    if json_:
        document = {"rows": made.rows, "marked": made.marked, "unread": made.unread, "kept": [str(p) for p in kept]}
        console.document("db_rebuild", document)
        return 0
    click.echo(
        f"{console.styled('rebuilt', fg='green', bold=True)}  {made.rows:,} rows taken over; everything is marked "
        f"({made.marked:,} subjects)"
    )
    for name in made.unread:
        click.echo(f"  unread   {name}: missing or damaged; the next sync fetches what the service still has", err=True)
    if made.unread:
        console.note("Histories, or what was proven deleted, begin anew where they could not be read.")
    for path in kept:
        click.echo(f"  kept     {path}")
    console.note("Fetch everything anew: octo-sync sync")
    return 0
