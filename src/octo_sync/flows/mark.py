"""Mark subjects: the one way to say "look again". Planning is pure; marking is one call on the journal."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import timedelta

from octo_sync.flows.ports import Ports
from octo_sync.model import Horizon, Source, Subject, SubjectKind, Window

__all__ = ["availability_subjects", "booking_windows", "documents", "everything", "known_options", "mark"]


def documents(connection: str) -> list[Subject]:
    """What is one document per connection: the supplier and the product list."""
    return [Subject(connection, SubjectKind.SUPPLIER), Subject(connection, SubjectKind.PRODUCTS)]


def everything(ports: Ports, connections: Collection[str]) -> list[Subject]:
    """All that the pipeline keeps of connections, as far as their products are known. Blocking."""
    subjects = [s for name in connections for s in documents(name)]
    subjects += [s for name in connections for s in booking_windows(name, [ports.bookings_window(name)])]
    return subjects + availability_subjects(ports, connections)


def booking_windows(connection: str, windows: Iterable[Window]) -> list[Subject]:
    """One subject per calendar month of travel that the windows touch."""
    months = sorted({month for window in windows for month in window.months()})
    return [Subject(connection, SubjectKind.BOOKINGS, (month,)) for month in months]


@dataclass(frozen=True, slots=True)
class Offered:
    """An option that is offered now, with its product's time zone."""

    connection: str
    product_id: str
    option_id: str
    time_zone: str | None


_OFFERED = (
    "select o.connection_id, o.product_id, o.option_id, p.time_zone from core.options o "
    "join core.products p using (connection_id, product_id) where not o.is_deleted and not p.is_deleted"
)


def known_options(ports: Ports) -> list[Offered]:
    """The options that are offered now; from then on `ports` knows their products' time zones. Blocking."""
    # Sorted here: databases do not agree on the order of texts.
    catalog = [Offered(*row) for row in sorted(ports.warehouse.query(_OFFERED).rows, key=lambda row: row[:3])]
    ports.time_zones.update({(o.connection, o.product_id): o.time_zone for o in catalog if o.time_zone})
    return catalog


def availability_subjects(
    ports: Ports, connections: Collection[str], *, horizon: Horizon | None = None
) -> list[Subject]:
    """One subject per option and calendar month of its horizon, for products the pipeline keeps. Blocking.

    `horizon` narrows it: only months that it touches too. Time zones are learned before anything can be fetched by them.
    """
    found = []
    for option in known_options(ports):
        keeps = ports.pipeline.products.get(option.connection)
        if option.connection not in connections or (keeps and not keeps.keeps(option.product_id)):
            continue
        window = ports.travel or ports.availability_window(option.connection, option.product_id)
        near = horizon and horizon.window(ports.today(option.time_zone))
        windows = [clipped] if (clipped := window.clip(near) if near else window) else []
        found += [
            Subject(option.connection, SubjectKind.AVAILABILITY, (option.product_id, option.option_id, month))
            for window in windows
            for month in window.months()
        ]
    return found


def mark(ports: Ports, subjects: Collection[Subject], source: Source, *, delay: float = 0.0) -> int:
    """Mark subjects and count them as planned; with `delay` they are due that many seconds from now."""
    if not subjects:
        return 0
    due = ports.clock.now() + timedelta(seconds=delay) if delay else None
    ports.journal.mark(subjects, source, due_at=due)
    for subject in subjects:
        ports.progress.total[str(subject.kind)] = ports.progress.total.get(str(subject.kind), 0) + 1
    ports.progress.changed(ports.progress)
    return len(subjects)
