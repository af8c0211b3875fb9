"""`octo-sync webhooks`: what was delivered, and to mark it again."""

import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from octo_sync.app.machine import SystemClock
from octo_sync.app.project import open_journal
from octo_sync.cli import console, options
from octo_sync.flows.webhooks.receive import Routing, replay
from octo_sync.journal import Delivery, Journal
from octo_sync.octo.notifications import read
from octo_sync.pipeline import Pipeline
from octo_sync.pipeline.values import age

_EVERY = 0.2
"""Seconds between two looks at the journal."""


@click.group(cls=options.Group, epilog=options.example("webhooks --follow"))
def command() -> None:
    """List or follow the webhook deliveries, or replay them."""


@command.command("list", epilog=options.example("webhooks list --last 50"))
@options.pipeline_of
@click.option("-n", "--last", type=click.IntRange(0), default=20, show_default=True, help="Show the last N deliveries.")
@click.option("-f", "--follow", is_flag=True, help="Go on until Ctrl-C; with --json one object a line.")
@click.option("--bodies", is_flag=True, help="Include what is kept of the bodies: identifiers, dates and types.")
@options.as_form
def list_(loaded: Pipeline, *, last: int, follow: bool, bodies: bool, form: str) -> None:
    """List the last deliveries, newest last; with --follow also those that come."""
    with open_journal(loaded, SystemClock()) as journal:
        found = journal.inbox.deliveries(last) if last else []
        if follow:
            if not console.wants_json():
                console.note(f"Deliveries of {loaded.name}; Ctrl-C stops.")
            for delivery in _follow(journal, found):
                _show(delivery, bodies=bodies)
    if form == "table" and not bodies:
        _table(found, several=len({d.connection for d in found}.union(c.name for c in loaded.connections)) > 1)
        return
    columns = ("received_at", "connection", "type", "about", "marks", "odd", "body")[: 7 if bodies else 6]
    rows = [
        (d.received_at, d.connection, d.type, about_text(d), d.marks, d.reading, d.body.decode("utf-8", "replace"))
        for d in found
    ]
    if not console.wrote_json("deliveries", {"deliveries": [as_document(d, bodies=bodies) for d in found]}):
        console.write_rows(columns, [row[: len(columns)] for row in rows], form)


def _table(found: Sequence[Delivery], *, several: bool) -> None:
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
    console.table(heads, rows)


def _follow(journal: Journal, newest: Sequence[Delivery]) -> Iterator[Delivery]:
    """Those that are there, then each that comes."""
    yield from newest
    newest = newest or journal.inbox.deliveries(1)
    after = newest[-1].id if newest else 0
    pause = threading.Event()
    while True:
        for delivery in journal.inbox.deliveries(100, after_id=after):
            after = delivery.id
            yield delivery
        pause.wait(_EVERY)  # a journal that another process writes has no event to wait for


def _show(delivery: Delivery, *, bodies: bool) -> None:
    if console.wants_json():
        click.echo(console.plain_json(as_document(delivery, bodies=bodies)))
        return
    body = f"  {console.clean(delivery.body.decode('utf-8', 'replace'))}" if bodies else ""
    about = console.clean(about_text(delivery))
    marked = f"{delivery.marks} subject{'' if delivery.marks == 1 else 's'} marked"
    odd = console.styled(f"  {delivery.reading}", fg="yellow") if delivery.reading else ""
    click.echo(
        f"{delivery.received_at:%Y-%m-%d %H:%M:%S}  {delivery.connection}  "
        f"{console.clean(delivery.type) or '(no type)'}  {about + '  ' if about else ''}{marked}{odd}{body}"
    )


def about_text(delivery: Delivery) -> str:
    """What a delivery names, for people: a booking's uuid, or product, option and days; empty when it names nothing."""
    said = read(delivery.body)
    names = [name for name in (said.booking, said.product, said.option) if name]
    if said.first is not None and said.last is not None:
        names.append(f"{said.first}" if said.first == said.last else f"{said.first}..{said.last}")
    return " ".join(names)


def as_document(delivery: Delivery, *, bodies: bool) -> dict[str, Any]:
    """A delivery for machines."""
    said = read(delivery.body)
    document = console.fields(delivery, "id", "received_at", "connection", "type", "reading", "marks")
    document |= {"subscription_id": delivery.subscription, "first_day": said.first, "last_day": said.last}
    document |= console.fields(said, "booking", "product", "option")
    return document | ({"body": delivery.body.decode("utf-8", "replace")} if bodies else {})


@command.command("replay", epilog=options.example("webhooks replay --since 2h"))
@options.pipeline_of
@click.option(
    "--since",
    required=True,
    metavar="TIME",
    help="An age such as 10m, 2h or 3d, or ISO 8601; without an offset it is UTC.",
)
@click.option("-c", "--connection", metavar="NAME", help="Only this connection's.")
@options.as_json
def replay_(loaded: Pipeline, *, since: str, connection: str | None) -> None:
    """Mark again what the deliveries since then named, so that `serve` or the next `sync` fetches it."""
    start = _start(since, SystemClock().now())
    if connection is not None and connection not in {c.name for c in loaded.connections}:
        raise click.UsageError(f'-c: the pipeline has no connection "{connection}"')
    with open_journal(loaded, SystemClock()) as journal:
        found, marking = replay(journal, Routing(loaded, SystemClock()), since=start, connection=connection)
    if not console.wrote_json("replay", {"deliveries": found, "marked_by": marking}):
        click.echo(f"{found:,} deliveries since {start:%Y-%m-%d %H:%M} UTC, {marking:,} of them marked something")


def _start(since: str, now: datetime) -> datetime:
    """The instant that is meant: `2026-11-20T08:00`, in UTC where it has no offset, or so long before `now`: `26h`."""
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
