"""Looking, with nothing changed: what the copy claims, what is published and marked next, and what the service says."""

import asyncio
import contextlib
import os
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import SystemRandom
from typing import TYPE_CHECKING, cast

from octo_sync.app.machine import SystemClock, run_until_done
from octo_sync.app.places import duckdb_warehouse, published, read_file
from octo_sync.app.project import journal_if_any, make_ports, open_clients, open_connections, run_in_project
from octo_sync.app.reading import reader as reader_of
from octo_sync.errors import LeaseHeld, WarehouseError
from octo_sync.flows.contacts import Privacy
from octo_sync.flows.horizon import OFFERED, booking_months, documents
from octo_sync.flows.ports import Ports, Progress, adopt_meanings, booking_dates_mean, booking_days
from octo_sync.flows.publish import Checked, run_checks, unpublished
from octo_sync.flows.sync.mirror import mirror
from octo_sync.flows.sync.paces import restore_paces
from octo_sync.flows.sync.pull import Scope
from octo_sync.flows.verify import Claims, LiveResult, claims, incomplete, verify_live
from octo_sync.journal import Journal
from octo_sync.model import Window, day_at
from octo_sync.pipeline import Pipeline

if TYPE_CHECKING:
    from octo_sync.destinations.warehouse import Destination


def verify_claims(pipeline: Pipeline) -> Claims:
    """Check the copy's own claims; asks no service. Beside another process it is the copy that readers have."""

    async def beside() -> Claims:
        async with open_connections(pipeline) as (journal, clients):
            with contextlib.closing(reader_of(published(pipeline), is_whole=True)) as reader:
                copy = cast("Destination", reader)  # it is asked, and that is all
                found = await asyncio.to_thread(run_checks, copy, pipeline.directory)
                privacy, clock, random = Privacy("drop", b""), SystemClock(), SystemRandom()
                ports = make_ports(pipeline, journal, copy, clients, privacy, clock=clock, random=random, fence=0)
                marts = await asyncio.to_thread(incomplete, copy)
                return replace(await asyncio.to_thread(claims, ports, _failed(found), marts=marts), of_readers=True)

    try:
        return run_in_project(pipeline, "verify", _claims_of_owner)
    except LeaseHeld:
        return run_until_done(beside())


def _claims_of_owner(ports: Ports) -> Claims:
    """By marts made for it: those that readers have are as old as the last publish. Blocking."""
    mirror(ports)
    directory = ports.pipeline.directory
    with unpublished(ports.warehouse, directory) as draft:
        found, marts = run_checks(draft, directory), incomplete(draft)
    return claims(ports, _failed(found), marts=marts)


def _failed(found: Sequence[Checked]) -> list[tuple[str, int]]:
    return [(checked.check.name, len(checked.rows.rows)) for checked in found if checked.rows.rows]


def check_next(pipeline: Pipeline, *, limit: int) -> list[Checked]:
    """What the checks say of that which the next publish would show; publishes nothing.

    Raises:
        LeaseHeld: Another process works on the project.
        WarehouseError: A mart or a check does not run.
    """

    def look(ports: Ports) -> list[Checked]:
        mirror(ports)
        with unpublished(ports.warehouse, pipeline.directory) as draft:
            return run_checks(draft, pipeline.directory, limit=limit)

    return run_in_project(pipeline, "check", look)


def verify_against_service(
    pipeline: Pipeline, *, sample: int | None, travel: Window | None, progress: Progress
) -> LiveResult:
    """Fetch again into a scratch warehouse and compare with the read copy; needs no lease, touches nothing of the project."""
    if isinstance(pipeline.destination, Path) and not pipeline.publish.path.exists():
        raise WarehouseError(f"{pipeline.publish.path} does not exist yet; run `octo-sync sync` first.")
    clock, random = SystemClock(), SystemRandom()

    async def run() -> LiveResult:
        with tempfile.TemporaryDirectory(prefix=f"octo-verify-{os.getpid()}-", dir=pipeline.directory) as folder:
            fresh = Path(folder) / "fresh.duckdb"
            async with contextlib.AsyncExitStack() as stack:
                journal = stack.enter_context(Journal.open(Path(folder) / "journal.sqlite", clock=clock))
                scratch = duckdb_warehouse(fresh, Path(folder) / "private.duckdb", clock)
                stack.callback(scratch.close)
                privacy = Privacy("drop", b"")
                clients = await open_clients(stack, pipeline, clock, random)
                with journal_if_any(pipeline, clock) as owned:
                    if owned:
                        # What was erased is left out of this side too.
                        privacy = Privacy.open("drop", owned, random)
                        restore_paces(owned, clients.values(), clock)
                        adopt_meanings(clients, owned, journal)
                # Contacts are not compared, so none are fetched into the scratch file.
                ports = make_ports(pipeline, journal, scratch, clients, privacy, clock=clock, random=random, fence=1)
                ports.travel, ports.progress = travel, progress
                here = read_file(pipeline, Path(folder) / "here.duckdb")
                return await verify_live(ports, here=here, scratch=fresh, scope=Scope(travel=travel), sample=sample)

    return run_until_done(run())


def plan_without_asking(pipeline: Pipeline, scope: Scope) -> list[tuple[str, str, int]]:
    """What `sync` would mark, per connection and kind, from what is known now; nothing is written or asked."""
    clock = SystemClock()
    known: list[tuple[str, str]] = []
    with journal_if_any(pipeline, clock) as journal:
        means = {c.name: booking_dates_mean(c, journal) for c in pipeline.connections}
    where = published(pipeline)
    if isinstance(where, str) or where.exists():
        # A database that holds nothing yet is no reason not to plan.
        unless = contextlib.suppress(WarehouseError) if isinstance(where, str) else contextlib.nullcontext()
        with unless, contextlib.closing(reader_of(where)) as copy:
            known = [(connection, product) for connection, product, *_ in copy.query(OFFERED).rows]
    rows: list[tuple[str, str, int]] = []
    for connection in pipeline.connections:
        rows += [(connection.name, str(s.kind), 1) for s in documents(connection.name)]
        today = day_at(connection.business_time_zone, clock.now())
        window = booking_days(pipeline.horizons.bookings, today, means[connection.name], scope.travel)
        if scope.wants("bookings"):
            rows.append((connection.name, "bookings", len(booking_months(connection.name, window))))
        if scope.wants("availability"):
            days = scope.travel or pipeline.horizons.availability.window(clock.now().date())
            keeps = pipeline.products.get(connection.name)
            options = [p for c, p in known if c == connection.name and (not keeps or keeps.keeps(p))]
            rows.append((connection.name, "availability", len(options) * len(list(days.months()))))
    return rows
