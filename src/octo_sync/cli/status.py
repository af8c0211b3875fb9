"""`octo-sync status`: how fresh and complete the copy is, and what is pending."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from octo_sync.app.machine import SystemClock, alive
from octo_sync.app.reading import Copy
from octo_sync.cli import console, options
from octo_sync.errors import ConfigError
from octo_sync.flows.status.document import as_document
from octo_sync.flows.status.report import ConnectionStatus, Status, status
from octo_sync.flows.wording import age
from octo_sync.pipeline.schedule import next_time
from octo_sync.pipeline.values import duration

_PUBLISHED_AT = (
    "select substring(obj_description(to_regnamespace('marts'), 'pg_namespace') from 'at (.+ UTC)')::timestamptz"
)
"""On PostgreSQL each publish says so in the schema's comment."""


@click.command(epilog=options.example("status --fail-if-stale 26h"))
@options.places_of
@click.option(
    "--fail-if-stale", "limit", metavar="AGE", help="Exit with code 3 when something was not verified within this time."
)
@options.as_json
def command(project: options.Places, *, limit: str | None, json_: bool) -> int:
    """Show how fresh and complete the copy is, and what is pending.

    Works while a sync is running: it reads the journal and the read copy only. AGE is a duration such as 90m, 26h or 2d.
    """
    seconds = _seconds(limit)
    journal = options.open_journal(project)
    copy = options.open_copy(project) if project.has_published else None
    try:
        ask = (lambda sql: copy.sql(sql).rows()) if copy else None
        found = status(project.pipeline, journal, ask, clock=SystemClock(), alive=alive, next_time=next_time)
        published = _published(project, copy)
    finally:
        if copy:
            copy.close()
        if journal:
            journal.close()
    stale = [c.name for c in found.connections if seconds is not None and c.stale(seconds)]
    if seconds is not None and not found.connections:
        stale = [project.name]
    if json_:
        more = {"stale": stale, "stale_after_seconds": seconds} if seconds is not None else {}
        console.document("status", {"pipeline": project.name, **as_document(found), "read_copy": published, **more})
    else:
        _report(found, project, published)
        if stale:
            click.echo(f"octo-sync: stale: {', '.join(stale)} was not verified within {limit}", err=True)
    # Whoever asks has to see that the last run brought nothing, whatever the copy was before.
    return 3 if stale or (found.last_run and found.last_run.status == "failed") else 0


def _seconds(limit: str | None) -> float | None:
    if limit is None:
        return None
    try:
        return duration(limit)
    except ValueError as error:
        raise ConfigError(f"--fail-if-stale {limit!r}: {error}.") from None


def _published(project: options.Places, copy: Copy | None) -> dict[str, Any] | None:
    path = project.published
    if copy is None:
        return None
    if isinstance(path, str):
        return {"path": copy.name, "bytes": None, "published_at": copy.sql(_PUBLISHED_AT).rows()[0][0]}
    about = path.stat()
    return {"path": str(path), "bytes": about.st_size, "published_at": datetime.fromtimestamp(about.st_mtime, UTC)}


def _report(found: Status, project: options.Places, published: dict[str, Any] | None) -> None:
    now = SystemClock().now()
    filters = {
        "name": lambda path: Path(path).name,
        "instant": console.instant_text,
        "ago": lambda at: age(now - at),
        "until": lambda at: age(at - now),
        "lasting": console.age_text,
    }
    template = Path(__file__).with_name("status.txt.j2")
    console.summary(template, filters, found=found, project=project, published=published, fresh=_fresh)
    for said in _differences(found, now):
        console.label("Differences", said)
    _kinds(found, now)
    for connection in found.connections:
        for reason in (*connection.held, *connection.kept):
            console.outcome("held", f"{connection.name}: {console.clean(reason)}", "yellow")
    left_alone = sum(c.quarantined for c in found.connections)
    if left_alone:
        console.note(f"{left_alone} in quarantine: octo-sync quarantine")


def _fresh(connection: ConnectionStatus) -> str:
    within = console.age_text(connection.age)
    if connection.age is None:
        return "never verified"
    if connection.complete:
        return f"everything verified within {within}"
    if connection.verified:
        return f"verified within {within}, but {connection.open:,} open: octo-sync ask 14"
    return "not everything was verified yet"


def _differences(found: Status, now: datetime) -> Iterator[str]:
    for name in dict.fromkeys(each.name for each in found.differences):
        counts = [each for each in found.differences if each.name == name]
        accepted = sum(c.accepted for c in counts)
        left = [(c.bucket.replace("_", " "), c.open - c.accepted) for c in counts if c.open > c.accepted]
        text = f"{name}  {sum(count for _, count in left):,} open"
        if left:
            oldest = age(now - min(c.oldest for c in counts if c.open > c.accepted))
            text += f": {', '.join(f'{count:,} {bucket}' for bucket, count in left)}, the oldest for {oldest}"
        if accepted:
            text += f" · {accepted:,} accepted"
        yield text


def _kinds(found: Status, now: datetime) -> None:
    order = ("supplier", "products", "product", "availability", "bookings", "open_dated", "unlisted", "booking")
    # Fits into 80 columns; what is in quarantine is said below, and listed by a command of its own.
    several = len(found.connections) > 1
    rows = [
        (
            *([c.name] if several else []),
            k.kind,
            f"{k.verified:,}/{k.subjects:,}",
            k.owed,
            age(now - k.oldest) if k.oldest else "never",
            str(k.covered or (f"booked {k.booked}" if k.booked else "")),
        )
        for c in found.connections
        for k in sorted(c.kinds.values(), key=lambda k: order.index(k.kind) if k.kind in order else len(order))
    ]
    if rows:
        click.echo()
        heads = [*(["connection"] if several else []), "kind", "verified", "pending", "oldest", "days covered"]
        console.table(heads, rows)
