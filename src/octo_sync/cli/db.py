"""`octo-sync db`: the warehouse's schema."""

from pathlib import Path

import click

from octo_sync.cli import console, options


@click.group(cls=options.DefaultGroup)
def command() -> None:
    """Print, write or check the warehouse's table definitions."""


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
