"""`octo-sync listen`: deliveries as they come."""

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from octo_sync.cli import console, options

if TYPE_CHECKING:
    from collections.abc import Iterator

    from octo_sync.journal import Delivery, Journal

_EVERY = 0.2


@click.command()
@options.pipeline_options
@click.option("-n", "--last", type=click.IntRange(0), default=10, show_default=True, help="First the last so many.")
@click.option("--count", type=click.IntRange(1), help="Stop after so many.")
@click.option("--bodies", is_flag=True, help="With what is kept of the bodies: identifiers, dates and types.")
@click.option("--json", "json_", is_flag=True, help="One JSON object a line.")
def command(pipeline: str | None, directory: Path, *, last: int, count: int | None, bodies: bool, json_: bool) -> int:
    """Print what services deliver, as it is received by `serve`, until Ctrl-C."""
    from octo_sync.pipeline import find  # noqa: PLC0415 - commands start fast

    loaded, _ = options.without_tokens(find(pipeline, directory), directory)
    shown = 0
    from octo_sync.app.project import SystemClock, open_journal  # noqa: PLC0415 - commands start fast

    with open_journal(loaded, SystemClock()) as journal:
        if not json_:
            console.note(f"Deliveries of {loaded.name}; Ctrl-C stops.")
        for delivery in _follow(journal, last):
            _show(delivery, bodies=bodies, json_=json_)
            shown += 1
            if shown == count:
                break
    return 0


def _follow(journal: "Journal", last: int) -> "Iterator[Delivery]":
    """Those that are there, then each that comes."""
    newest = journal.inbox.deliveries(max(last, 1))
    yield from newest[-last:] if last else ()
    after = newest[-1].id if newest else 0
    pause = threading.Event()
    while True:
        for delivery in journal.inbox.deliveries(100, after_id=after):
            after = delivery.id
            yield delivery
        pause.wait(_EVERY)  # a journal that another process writes has no event to wait for


def _show(delivery: "Delivery", *, bodies: bool, json_: bool) -> None:
    if json_:
        console.line(as_document(delivery, bodies=bodies))
        return
    body = f"  {console.clean(delivery.body.decode('utf-8', 'replace'))}" if bodies else ""
    about = console.clean(about_text(delivery))
    marked = f"{delivery.marks} subject{'' if delivery.marks == 1 else 's'} marked"
    odd = console.styled(f"  {delivery.reading}", fg="yellow") if delivery.reading else ""
    click.echo(
        f"{delivery.received_at:%Y-%m-%d %H:%M:%S}  {delivery.connection}  "
        f"{console.clean(delivery.type) or '(no type)'}  {about + '  ' if about else ''}{marked}{odd}{body}"
    )


def about_text(delivery: "Delivery") -> str:
    """What a delivery names, for people: a booking's uuid, or product, option and days; empty when it names nothing."""
    from octo_sync.octo.notifications import read  # noqa: PLC0415 - commands start fast

    said = read(delivery.body)
    names = [name for name in (said.booking, said.product, said.option) if name]
    if said.first is not None and said.last is not None:
        names.append(f"{said.first}" if said.first == said.last else f"{said.first}..{said.last}")
    return " ".join(names)


def as_document(delivery: "Delivery", *, bodies: bool) -> dict[str, Any]:
    """A delivery for machines."""
    from octo_sync.octo.notifications import read  # noqa: PLC0415 - commands start fast

    said = read(delivery.body)
    document: dict[str, Any] = {
        "id": delivery.id,
        "received_at": delivery.received_at,
        "connection": delivery.connection,
        "type": delivery.type,
        "reading": delivery.reading,
        "subscription_id": delivery.subscription,
        "booking": said.booking,
        "product": said.product,
        "option": said.option,
        "first_day": said.first,
        "last_day": said.last,
        "marks": delivery.marks,
    }
    return document | ({"body": delivery.body.decode("utf-8", "replace")} if bodies else {})
