"""`octo-sync status`: how fresh and complete the copy is, and what is pending."""

from collections.abc import Iterator
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from octo_sync.app.machine import SystemClock, alive
from octo_sync.app.reading import Copy
from octo_sync.cli import console, options
from octo_sync.errors import ConfigError
from octo_sync.flows.status.document import as_document
from octo_sync.flows.status.report import ConnectionStatus, Running, Status, status
from octo_sync.flows.wording import age
from octo_sync.journal import Run
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
def command(project: options.Places, *, limit: str | None) -> int:
    """Show how fresh and complete the copy is, and what is pending.

    Works while a sync is running: it reads the journal and the read copy only. AGE is a duration such as 90m, 26h or 2d.
    """
    seconds = _seconds(limit)
    with (
        options.open_journal(project) or nullcontext() as journal,
        options.open_copy(project) if project.has_published else nullcontext() as copy,
    ):
        ask = (lambda sql: copy.sql(sql).rows()) if copy else None
        found = status(project.pipeline, journal, ask, clock=SystemClock(), alive=alive, next_time=next_time)
        published = _published(project, copy)
    stale = [c.name for c in found.connections if seconds is not None and c.stale(seconds)]
    if seconds is not None and not found.connections:
        stale = [project.name]
    more = {"stale": stale, "stale_after_seconds": seconds} if seconds is not None else {}
    document = {"pipeline": project.name, **as_document(found), "read_copy": published, **more}
    if not console.wrote_json("status", document):
        _report(found, project, published)
        if stale:
            click.echo(f"octo-sync: stale: {', '.join(stale)} was not verified within {limit}", err=True)
    # Whoever asks has to see that a run brought nothing, whatever the copy was before and whatever went well since.
    return 3 if stale or any(run.status in {"failed", "running"} for run in found.failures) else 0


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
    console.label("Pipeline", f"{project.name}  {project.pipeline.path if project.pipeline else project.directory}")
    _running(found)
    _last_run(found, now)
    _readers(published, now)
    _next_runs(found, now)
    for connection in found.connections:
        colour = "green" if connection.complete and not connection.given_up else "yellow"
        more = f" · {connection.backlog} pending" if connection.backlog else ""
        if connection.given_up:
            at, why = connection.given_up
            more += f" · nothing is fetched: {why}, {age(now - at)} ago; octo-sync doctor says more"
        if booked := next((k.booked for k in connection.kinds.values() if k.booked), None):
            more += f" · bookings only as made since {booked.start}: the service lists by day of booking"
        more += f" · the service permits {connection.permits}" if connection.permits else ""
        console.label("Connection", f"{connection.name}  {console.styled(_fresh(connection), fg=colour)}{more}")
    if found.pii:
        console.label("Personal", console.styled(found.pii.text, fg="green" if found.pii.is_settled else "yellow"))
    for connection in found.connections:
        _webhooks(connection, now)
    for said in _differences(found, now):
        console.label("Differences", said)
    _kinds(found, now)
    for connection in found.connections:
        for reason in (*connection.held, *connection.kept):
            console.outcome("held", f"{connection.name}: {console.clean(reason)}", "yellow")
    left_alone = sum(c.quarantined for c in found.connections)
    if left_alone:
        console.note(f"{left_alone} in quarantine: octo-sync quarantine")


def _running(found: Status) -> None:
    if running := found.running:
        since = console.instant_text(running.since)
        console.label("Running", f"{running.owner} (pid {running.pid} on {running.host}), since {since}")
    for worker in found.workers:
        does = f"works on {', '.join(worker.connections)}" if worker.connections else "has nothing to do now"
        console.label("Worker", f"pid {worker.pid} on {worker.host} {does}")


def _last_run(found: Status, now: datetime) -> None:
    run = found.last_run
    if run is None:
        console.label("Last run", "none yet: octo-sync sync")
        return
    _run(run, found.running, now, "Last run")
    for each in found.failures:
        if each is not run:
            _run(each, found.running, now, "Earlier")


def _run(run: Run, running: Running | None, now: datetime, label: str) -> None:
    if run.status == "running":
        _unended(run, running, age(now - run.started_at), label)
    else:
        _ended(run, now, label)


def _ended(run: Run, now: datetime, label: str) -> None:
    ago = age(now - (run.ended_at or run.started_at))
    colour = {"ok": "green", "partial": "yellow"}.get(run.status, "red")
    word = console.styled(run.status, fg=colour, bold=True)
    console.label(label, f"{run.command} {word} {ago} ago  (run {run.run_id})")
    if "subjects" in run.counts:
        console.label("", f"{run.counts['subjects']:,} subjects, {run.counts['rows_written']:,} rows written")
    if run.error:
        console.label("", console.clean(run.error))


def _unended(run: Run, running: Running | None, ago: str, label: str) -> None:
    """A run without an end: the line above may say it already, or its process may be gone."""
    if running is None:
        word = console.styled("cut off", fg="red", bold=True)
        console.label(label, f"{run.command} {word}, begun {ago} ago  (run {run.run_id})")
    elif running.owner.partition(",")[0] != run.command:
        word = console.styled("running", fg="cyan", bold=True)
        console.label(label, f"{run.command}, {word} since {ago}  (run {run.run_id})")


def _readers(published: dict[str, Any] | None, now: datetime) -> None:
    if published is None:
        console.label("Read copy", "none yet: octo-sync sync")
    else:
        at = published["published_at"]
        when = f"published {age(now - at)} ago" if at else "published by an older octo-sync"
        name, size = published["path"], published["bytes"]
        what = f"marts, core and ops of {name}" if size is None else f"{Path(name).name}, {console.bytes_text(size)}"
        console.label("Read copy", f"{what}, {when}")


def _next_runs(found: Status, now: datetime) -> None:
    if not found.next_runs:
        return
    coming = sorted((n for n in found.next_runs if n.at is not None), key=lambda n: (n.at, n.name))
    text = " · ".join(f"{n.name} in {age(n.at - now)}" for n in coming if n.at)
    serves = found.running is not None and found.running.owner.partition(",")[0] == "serve"
    if not serves:
        late = [n.name for n in found.next_runs if n.late]
        missed = f"; missed: {', '.join(late)}" if late else ""
        text += console.styled(f" · only while octo-sync serve runs{missed}", fg="yellow")
    console.label("Next runs", text)


def _fresh(connection: ConnectionStatus) -> str:
    within = console.age_text(connection.age)
    if connection.age is None:
        return "never verified"
    if connection.complete:
        return f"everything verified within {within}"
    if connection.verified:
        return f"verified within {within}, but {connection.open:,} open: octo-sync ask 14"
    return "not everything was verified yet"


def _webhooks(connection: ConnectionStatus, now: datetime) -> None:
    hooks, name = connection.webhooks, connection.name
    none = console.styled("no subscription at the service; octo-sync subscriptions ensure says why", fg="yellow")
    if hooks is None:
        if connection.webhooks_removed_at:
            console.label("Webhooks", f"{name}  off, removed on request (octo-sync subscriptions ensure)")
        elif connection.lacks_subscription:
            console.label("Webhooks", f"{name}  {none}")
        return
    last = f"last {age(now - hooks.last_delivery_at)} ago" if hooks.last_delivery_at else "none yet"
    text = f"{name}  {hooks.last_day:,} deliveries in 24 h, {last}"
    if connection.lacks_subscription:
        text += f" · {none}"
    if hooks.odd:
        text += f" · {hooks.odd:,} odd"
    if hooks.silent is not None:
        silent = f" · silent for {console.age_text(hooks.silent)}, longer than usual: octo-sync subscriptions list"
        text += console.styled(silent, fg="yellow")
    if hooks.canary:
        text += f" · canary {age(now - hooks.canary.at)} ago: {hooks.canary.text}"
    if hooks.thinned_at:
        text += f" · call budget too short for every confirming look ({age(now - hooks.thinned_at)} ago)"
    console.label("Webhooks", text)


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
