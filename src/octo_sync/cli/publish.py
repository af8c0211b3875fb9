"""`octo-sync publish`: the read copy, without a pull."""

from pathlib import Path

import click

from octo_sync.app.project import run_in_project
from octo_sync.cli import console, options
from octo_sync.errors import WarehouseError
from octo_sync.flows.ports import Ports
from octo_sync.flows.publish import Published
from octo_sync.flows.sync.mirror import mirror_and_publish
from octo_sync.pipeline import Pipeline


@click.command(epilog=options.example("publish"))
@options.pipeline_of
@options.as_json
def command(loaded: Pipeline) -> int:
    """Build the marts, run the checks, and swap in the read copy.

    Readers keep what they have open. When a check finds something, nothing is published and the exit code is 3.
    """
    if isinstance(loaded.destination, Path) and loaded.lake is None and not loaded.destination.exists():
        raise WarehouseError(f"{loaded.destination} does not exist yet; run `octo-sync sync` first.")
    published = run_in_project(loaded, "publish", _publish)
    where = options.published_name(loaded, whole=True)
    code = 3 if published.failed else 0
    failed_checks = [{"name": f.check.name, "rows": len(f.rows.rows)} for f in published.failed]
    about = {"published": published.size is not None, "path": where, "bytes": published.size}
    counts = console.fields(published, "marts", "checks")
    if console.wrote_json("publish", about | counts | {"failed_checks": failed_checks}):
        return code
    if published.failed:
        console.outcome("not published", f"{len(published.failed)} checks failed", "red")
        for failed in published.failed:
            click.echo(f"  {failed.check.name}: {failed.check.description or 'returned rows'}", err=True)
        console.note("See the rows: octo-sync check --next")
    else:
        copy = f"{where} ({console.bytes_text(published.size or 0)})"
        console.outcome("published", f"{copy} · {published.marts} marts · {published.checks} checks passed")
    return code


def _publish(ports: Ports) -> Published:
    if not ports.warehouse.query("select 1 from ops.coverage limit 1").rows:
        raise WarehouseError("Nothing has landed yet; run `octo-sync sync` first.")
    return mirror_and_publish(ports)
