"""`octo-sync publish`: the read copy, without a pull."""

import asyncio

import click

from octo_sync.app.machine import run_until_done
from octo_sync.app.project import open_project
from octo_sync.cli import console, options
from octo_sync.flows.publish import Published
from octo_sync.flows.sync.mirror import mirror_and_publish
from octo_sync.pipeline import Pipeline


@click.command(epilog=options.example("publish"))
@options.places_of
@options.as_json
def command(project: options.Places, *, json_: bool) -> int:
    """Build the marts, run the checks, and swap in the read copy.

    Readers keep what they have open. When a check finds something, nothing is published and the exit code is 3.
    """
    loaded = options.with_warehouse(project)
    published = _run(loaded)
    if json_:
        console.document(
            "publish",
            {
                "published": published.size is not None,
                "path": options.published_name(loaded, whole=True),
                "bytes": published.size,
                "marts": published.marts,
                "checks": published.checks,
                "failed_checks": [{"name": f.check.name, "rows": len(f.rows.rows)} for f in published.failed],
            },
        )
    elif published.failed:
        click.echo(f"{console.styled('not published', fg='red', bold=True)}  {len(published.failed)} checks failed")
        for failed in published.failed:
            click.echo(f"  {failed.check.name}: {failed.check.description or 'returned rows'}", err=True)
        console.note("See the rows: octo-sync check --next")
    else:
        click.echo(
            f"{console.styled('published', fg='green', bold=True)}  {options.published_name(loaded, whole=True)} "
            f"({console.bytes_text(published.size or 0)}) · {published.marts} marts · {published.checks} checks passed"
        )
    return 3 if published.failed else 0


def _run(loaded: Pipeline) -> Published:
    async def run() -> Published:
        async with open_project(loaded, command="publish") as project:
            return await asyncio.to_thread(mirror_and_publish, project.ports)

    return run_until_done(run())
