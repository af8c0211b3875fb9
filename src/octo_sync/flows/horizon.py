"""The horizon: what a pipeline keeps of its connections, as subjects. Nothing is marked here."""

from collections.abc import Collection

from octo_sync.flows.ports import Ports
from octo_sync.model import Subject, SubjectKind, Window

EVERYTHING = frozenset({"products", "availability", "bookings"})
"""The parts that can be asked for apart: `products` are all documents, the supplier's too."""


def subjects(
    ports: Ports,
    connections: Collection[str],
    parts: Collection[str] = EVERYTHING,
    *,
    travel: Window | None = None,
    near: bool = False,
) -> list[Subject]:
    """All that the pipeline keeps of connections, as far as their products are known. Blocking.

    Bookings of `travel` where a user named days of travel; with `near` only months that `horizon.near` touches.
    """
    found = []
    for name in connections:
        if "products" in parts:
            found += documents(name)
        if "bookings" in parts:
            window = ports.bookings_window(name, travel)
            if near:
                window = window.clip(_near(ports, ports.connection(name).business_time_zone)) or window
            found += booking_months(name, window)
    return found + (availability(ports, connections, near=near) if "availability" in parts else [])


def documents(connection: str) -> list[Subject]:
    """What is one document per connection: the supplier and the product list."""
    return [Subject(connection, SubjectKind.SUPPLIER), Subject(connection, SubjectKind.PRODUCTS)]


def booking_months(connection: str, window: Window) -> list[Subject]:
    """One subject per calendar month that a window of bookings touches."""
    return [Subject(connection, SubjectKind.BOOKINGS, (month,)) for month in window.months()]


def _near(ports: Ports, time_zone: str | None) -> Window:
    return ports.pipeline.horizons.near.window(ports.today(time_zone))


OFFERED = (
    "select o.connection_id, o.product_id, o.option_id, p.time_zone from core.options o "
    "join core.products p using (connection_id, product_id) where not o.is_deleted and not p.is_deleted"
)
"""Asks for the options that are offered now."""


def missing_availability(ports: Ports, connections: Collection[str], fetched: Collection[Subject]) -> list[Subject]:
    """The availability of connections but for what is `fetched` already, or will be. Blocking.

    What was fetched before its product's time zone was known, or while it was another one, is asked for all the same.
    """
    before = dict(ports.time_zones)
    subjects = availability(ports, connections)
    news = {product for product, zone in ports.time_zones.items() if before.get(product) != zone}
    return [s for s in subjects if s not in fetched or (s.connection, s.product_id) in news]


def offered_options(ports: Ports) -> list[tuple[str, str, str, str | None]]:
    """The options that are offered now: connection, product id, option id, the product's time zone. Blocking.

    From then on `ports` knows these zones.
    """
    # Sorted here: databases do not agree on the order of texts.
    catalog = sorted(ports.warehouse.query(OFFERED).rows, key=lambda row: row[:3])
    ports.time_zones.update({(name, product): zone for name, product, _, zone in catalog if zone})
    return catalog


def availability(ports: Ports, connections: Collection[str], *, near: bool = False) -> list[Subject]:
    """One subject per option and calendar month of its horizon, for products the pipeline keeps. Blocking.

    Time zones are learned before anything can be fetched by them.
    """
    found = []
    for name, product, option, time_zone in offered_options(ports):
        keeps = ports.pipeline.products.get(name)
        if name not in connections or (keeps and not keeps.keeps(product)):
            continue
        days: Window | None = ports.travel or ports.availability_window(name, product)
        if near and days:
            days = days.clip(_near(ports, time_zone))
        months = days.months() if days else ()
        found += [Subject(name, SubjectKind.AVAILABILITY, (product, option, month)) for month in months]
    return found
