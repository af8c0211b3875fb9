"""`octo-sync webhooks`: what was delivered, and to mark it again."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from octo_sync.cli import console, options
from octo_sync.cli.listen import about_text, as_document

if TYPE_CHECKING:
    from collections.abc import Sequence

    from octo_sync.journal import Delivery


@click.group(cls=options.DefaultGroup)
def command() -> None:
    """Look at what services delivered, or mark it again."""


command.default = "list"


@command.command("list")
@options.pipeline_options
@click.option("-n", "--last", type=click.IntRange(1), default=50, show_default=True, help="The last so many.")
@click.option("--bodies", is_flag=True, help="With what is kept of the bodies: identifiers, dates and types.")
@options.as_form
def list_(pipeline: str | None, directory: Path, *, last: int, bodies: bool, form: str, json_: bool) -> int:
    """The last deliveries, newest last; they are kept for webhooks.keep."""
    from octo_sync.pipeline import find  # noqa: PLC0415 - commands start fast

    loaded, _ = options.without_tokens(find(pipeline, directory), directory)
    from octo_sync.app.project import SystemClock, open_journal  # noqa: PLC0415

    with open_journal(loaded, SystemClock()) as journal:
        found = journal.inbox.deliveries(last)
    if json_:
        console.document("deliveries", {"deliveries": [as_document(d, bodies=bodies) for d in found]})
        return 0
    if form == "table" and not bodies:
        click.echo(_table(found, several=len(loaded.connections) > 1))
        return 0
    columns = ("received_at", "connection", "type", "about", "marks", "odd", "body")[: 7 if bodies else 6]
    rows = [
        (d.received_at, d.connection, d.type, about_text(d), d.marks, d.reading, d.body.decode("utf-8", "replace"))
        for d in found
    ]
    console.write_rows(columns, [row[: len(columns)] for row in rows], form)
    return 0


def _table(found: "Sequence[Delivery]", *, several: bool) -> str:
    """For people: a booking's whole uuid fits into 80 columns."""
    heads = ["received (UTC)", *(["connection"] if several else []), "type", "about", "marks", "odd"]
    rows = [
        (
            f"{d.received_at:%m-%d %H:%M:%S}",
            *([d.connection] if several else []),
            d.type.removesuffix("_UPDATE").lower(),
            about_text(d),
            d.marks,
            d.reading,
        )
        for d in found
    ]
    return console.rows_text(heads, rows, width=console.terminal_width())


@command.command("replay")
@options.pipeline_options
@click.option(
    "--since",
    required=True,
    metavar="TIME",
    help="An age such as 10m, 2h or 3d, or ISO 8601; without an offset it is UTC.",
)
@click.option("-c", "--connection", metavar="NAME", help="Only this connection's.")
@options.as_json
def replay_(pipeline: str | None, directory: Path, *, since: str, connection: str | None, json_: bool) -> int:
    """Mark again what the deliveries since then said, so that it is fetched anew; `serve` or `sync` then do it."""
    from octo_sync.pipeline import find  # noqa: PLC0415 - commands start fast

    loaded, _ = options.without_tokens(find(pipeline, directory), directory)
    from octo_sync.app.project import SystemClock, open_journal  # noqa: PLC0415
    from octo_sync.flows.webhooks.receive import Routing, replay  # noqa: PLC0415

    start = _start(since, SystemClock().now())
    if connection is not None and connection not in {c.name for c in loaded.connections}:
        raise click.UsageError(f'-c: the pipeline has no connection "{connection}"')
    with open_journal(loaded, SystemClock()) as journal:
        found, marking = replay(journal, Routing(loaded, SystemClock()), since=start, connection=connection)
    if json_:
        console.document("replay", {"deliveries": found, "marked_by": marking})
    else:
        click.echo(f"{found:,} deliveries since {start:%Y-%m-%d %H:%M} UTC, {marking:,} of them marked something")
    return 0


def _start(since: str, now: datetime) -> datetime:
    """The instant that is meant: `2026-11-20T08:00`, in UTC where it has no offset, or so long before `now`: `26h`."""
    from octo_sync.pipeline.values import age  # noqa: PLC0415 - commands start fast

    try:
        start = datetime.fromisoformat(since)
        start = start if start.tzinfo else start.replace(tzinfo=UTC)
    except ValueError:
        try:
            start = now - timedelta(seconds=age(since))
        except ValueError:
            raise click.UsageError(
                f'--since: "{since}" is neither an age nor a time; write 10m, 26h or 2026-11-20T08:00.'
            ) from None
    if start > now:
        raise click.UsageError(f"--since: {since} lies in the future; it is {now:%Y-%m-%d %H:%M} UTC now.")
    return start
