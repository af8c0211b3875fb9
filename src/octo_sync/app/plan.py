"""What a sync would mark, from what is known without asking."""

import contextlib

from octo_sync.app.machine import SystemClock
from octo_sync.app.places import published
from octo_sync.app.project import open_journal
from octo_sync.app.reading import open as open_copy
from octo_sync.errors import WarehouseError
from octo_sync.flows.horizon import OFFERED, booking_months, documents
from octo_sync.flows.ports import booking_dates_mean, booking_days
from octo_sync.flows.sync.pull import Scope
from octo_sync.journal import Journal
from octo_sync.model import day_at
from octo_sync.pipeline import Pipeline


def plan_without_asking(pipeline: Pipeline, scope: Scope) -> list[tuple[str, str, int]]:
    """What `sync` would mark, per connection and kind, from what is known now; nothing is written or asked."""
    clock = SystemClock()
    known: list[tuple[str, str]] = []
    with open_journal(pipeline, clock) if Journal.exists(pipeline.journal) else contextlib.nullcontext() as journal:
        means = {c.name: booking_dates_mean(c, journal) for c in pipeline.connections}
    where = published(pipeline)
    if isinstance(where, str) or where.exists():
        # A database that holds nothing yet is no reason not to plan.
        unless = contextlib.suppress(WarehouseError) if isinstance(where, str) else contextlib.nullcontext()
        with unless, open_copy(where) as copy:
            known = [(connection, product) for connection, product, *_ in copy.sql(OFFERED).rows()]
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
