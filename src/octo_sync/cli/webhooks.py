"""`octo-sync webhooks`: what was delivered, and to mark it again."""

from datetime import UTC, datetime
from pathlib import Path

import click

from octo_sync.cli import console, options
from octo_sync.cli.listen import as_document


@click.group(cls=options.DefaultGroup)
def command() -> None:
    """Look at what services delivered, or mark it again."""


command.default = "list"


@command.command("list")
@options.pipeline_options
@click.option("-n", "--last", type=click.IntRange(1), default=50, show_default=True, help="The last so many.")
@click.option("--bodies", is_flag=True, help="With the bodies as received (--json).")
@options.as_form
def list_(pipeline: str | None, directory: Path, *, last: int, bodies: bool, form: str, json_: bool) -> int:
    """The last deliveries, newest last; they are kept for webhooks.keep."""
    loaded = options.load_pipeline(directory, pipeline)
    from octo_sync.app import SystemClock, open_journal  # noqa: PLC0415 - commands start fast

    with open_journal(loaded, SystemClock()) as journal:
        found = journal.deliveries(last)
    if json_:
        console.document("deliveries", {"deliveries": [as_document(d, bodies=bodies) for d in found]})
        return 0
    columns = ("received (UTC)", "connection", "type", "marks", "odd")
    rows = [(f"{d.received_at:%Y-%m-%d %H:%M:%S}", d.connection, d.type, d.marks, d.reading) for d in found]
    console.write_rows(columns, rows, form)
    return 0


@command.command("replay")
@options.pipeline_options
@click.option("--since", required=True, metavar="TIME", help="ISO 8601; without an offset it is UTC.")
@click.option("-c", "--connection", metavar="NAME", help="Only this connection's.")
@options.as_json
def replay_(pipeline: str | None, directory: Path, *, since: str, connection: str | None, json_: bool) -> int:
    """Mark again what the deliveries since then said, so that it is fetched anew; `serve` or `sync` then do it."""
    loaded = options.load_pipeline(directory, pipeline)
    from octo_sync.app import SystemClock, open_journal  # noqa: PLC0415
    from octo_sync.flows.receive import Routing, replay  # noqa: PLC0415

    try:
        start = datetime.fromisoformat(since)
    except ValueError:
        raise click.UsageError(f'--since: "{since}" is not a time; write 2026-11-20T08:00') from None
    start = start if start.tzinfo else start.replace(tzinfo=UTC)
    if connection is not None and connection not in {c.name for c in loaded.connections}:
        raise click.UsageError(f'-c: the pipeline has no connection "{connection}"')
    with open_journal(loaded, SystemClock()) as journal:
        found, marking = replay(journal, Routing(loaded, SystemClock()), since=start, connection=connection)
    if json_:
        console.document("replay", {"deliveries": found, "marked_by": marking})
    else:
        click.echo(f"{found:,} deliveries since {start:%Y-%m-%d %H:%M} UTC, {marking:,} of them marked something")
    return 0
