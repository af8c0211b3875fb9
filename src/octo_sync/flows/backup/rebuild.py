"""A rebuild makes new warehouse files with every row of the former ones that can be read, and asks no service.

All of it is looked at again by the next sync. What lists do not show any more, because it travelled before the horizon, is
kept as it was; where it cannot be read, it is asked for by its own id.
"""

import logging
from dataclasses import dataclass
from pathlib import Path

from octo_sync.destinations.duckdb.warehouse import DuckDBWarehouse
from octo_sync.destinations.landing.lists import unlisted
from octo_sync.flows.backup.save import mark_everything
from octo_sync.journal import Journal
from octo_sync.model import Clock, Connection, Source, Subject, SubjectKind, day_at
from octo_sync.pipeline import Pipeline
from octo_sync.tables import all_tables

log = logging.getLogger("octo_sync")


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What a rebuild made: rows taken over, subjects marked, and what could not be read: tables, or whole files."""

    rows: int
    marked: int
    unread: tuple[str, ...]


def rebuild(
    fresh: DuckDBWarehouse, former: tuple[Path, Path], journal: Journal, pipeline: Pipeline, clock: Clock
) -> Rebuilt:
    """Fill a new warehouse from the former files, open nowhere, of which either may be missing or damaged. Blocking."""
    rows, unread = fresh.take_over(*former)
    lost = {t.noun for t in all_tables() if t.full_name in unread}
    if former[0].name in unread:
        lost |= {"products", "bookings"}
    # Departures are told on the days of their products, which have to come first: the next pull asks for them.
    marked = mark_everything(journal, pipeline, clock, but=[SubjectKind.AVAILABILITY] if "products" in lost else ())
    if "bookings" in lost or former[1].name in unread:
        asked = [subject for c in pipeline.connections for subject in _unlisted(fresh, c, pipeline, clock)]
        marked += len(asked)
        journal.subjects.mark(asked, Source.REPAIR)
    log.info("action=rebuild rows=%d marked=%d unread=%d", rows, marked, len(unread))
    return Rebuilt(rows, marked, tuple(unread))


def _unlisted(fresh: DuckDBWarehouse, connection: Connection, pipeline: Pipeline, clock: Clock) -> list[Subject]:
    window = pipeline.horizons.bookings.window(day_at(connection.business_time_zone, clock.now()))
    found = fresh.query(unlisted(fresh.private), [connection.name, window.start, window.end]).rows
    return [Subject(connection.name, SubjectKind.BOOKING, (uuid,)) for (uuid,) in found]
