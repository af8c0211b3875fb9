"""`octo-sync digest`: row counts and hashes by which two copies are compared."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from octo_sync.cli import console, options
from octo_sync.errors import WarehouseError

if TYPE_CHECKING:
    from octo_sync.destinations.base import TableDigest


@click.command()
@options.pipeline_options
@click.option("--warehouse", is_flag=True, help="Of the warehouse itself; refused while another run works on it.")
@options.as_form
def command(pipeline: str | None, directory: Path, *, warehouse: bool, form: str, json_: bool) -> int:
    """Print row count and digest per table of the read copy.

    Two copies that say the same have the same digests, whichever engine holds them and whenever their rows arrived. The
    digest does not depend on the rows' order; docs/commands.md defines it.
    """
    project = options.places(directory, pipeline)
    if warehouse:
        found = _of_warehouse(project)
    else:
        with options.open_copy(project) as copy:
            found = copy.digest()
    found = sorted(found, key=lambda d: d.table)
    if json_ or form == "json":
        tables = [{"table": d.table, "rows": d.rows, "digest": d.digest} for d in found]
        console.document("digest", {"of": "warehouse" if warehouse else "read copy", "tables": tables})
    else:
        console.write_rows(("table", "rows", "digest"), [(d.table, d.rows, d.digest) for d in found], form)
    return 0


def _of_warehouse(project: options.Places) -> "list[TableDigest]":
    from octo_sync.app.project import open_project, run_until_done  # noqa: PLC0415 - commands start fast

    loaded = project.pipeline
    if loaded is None:
        raise click.UsageError("--warehouse needs a pipeline file; octo-sync init writes one.")
    if isinstance(loaded.destination, Path) and not loaded.destination.exists():
        raise WarehouseError(f"{loaded.destination} does not exist yet; run `octo-sync sync` first.")

    async def run() -> "list[TableDigest]":
        async with open_project(loaded, command="digest") as opened:
            return opened.warehouse.digest()

    return run_until_done(run())
