"""Two connections of one service, pulled twice with changes between: on DuckDB, and copied to PostgreSQL."""

import asyncio
import copy
import datetime as dt
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.flows.harness import NOON, Asked, Project, Service, small
from tests.warehouse.engines import Postgres, planted
from tests.warehouse.truth import DAY, Channel, Truth, instant

from octo_sync.destinations.duckdb.warehouse import DuckDBWarehouse
from octo_sync.flows.publish import apply_marts
from octo_sync.tables import all_tables, nouns

LATER = dt.timedelta(hours=26)
HORIZONS = {"bookings": (-85, 40), "availability": (0, 30)}
CHANNELS = {"direct": ("a", "Direct sale", "America/New_York"), "agents": ("b", "Agents", "Pacific/Chatham")}
"""Where the business day of neither is the UTC day."""


@dataclass
class World:
    """What the service said before and after, and a project that has seen both."""

    project: Project
    before: Truth
    now: Truth
    price_changed: list


def truth(service, days=0):
    """What both channels see now; `days` after the first pull, whose bookings stay when the horizon moves on."""
    day = dt.date.fromisoformat(service.state()["today"])
    low, high = HORIZONS["bookings"]
    slots = service.slots(**{"from": str(day - dt.timedelta(3)), "to": str(day + dt.timedelta(40))})
    return Truth(
        [
            Channel(
                name, channel, zone, service.state(token), slots, (low - days, high), HORIZONS["availability"], low,
                pulled=NOON, supplier=min(CHANNELS),
            )
            for name, (token, channel, zone) in CHANNELS.items()
        ]
    )  # fmt: skip


def _change(service):
    """A day of business: sales, cancellations, closed and smaller departures, other prices."""
    service.control("PUT", "/clock", {"advance": LATER.total_seconds()})
    for token in ("a", "b"):
        kinds = ["book", "reserve", "cancel", "redeem", "confirm", "move"]
        service.control("POST", "/traffic", {"changes": 30, "seed": token, "kinds": kinds, "token": token})
    service.traffic(12, kinds=["closeout", "capacity"])
    changed = [p["id"] for p in service.state()["products"][:2]]
    for product in changed:
        service.control("PATCH", f"/admin/products/{product}", {"price_percent": 110})
    return changed


@pytest.fixture(scope="session")
def world(tmp_path_factory):
    with Service(small(bookings=700, days=45, products=8)) as service:
        service.control("PUT", "/clock", {"now": NOON.isoformat(), "freeze": True})
        asked = {
            name: Asked(token=token, business_time_zone=zone, settings={"channel": channel}, **HORIZONS)
            for name, (token, channel, zone) in CHANNELS.items()
        }
        project = Project(tmp_path_factory.mktemp("world") / "project", service, publish=True, connections=asked)
        before = truth(service)
        assert asyncio.run(project.sync()).status == "ok"
        changed = _change(service)
        project.clock.advance(seconds=LATER.total_seconds())
        assert asyncio.run(project.sync()).status == "ok"
        yield World(project, before, truth(service, LATER.days), changed)


def copied(world, directory):
    """The warehouse with its marts: a copy, because tests read the project's own files by other means."""
    files = [
        Path(shutil.copy(world.project.directory / name, directory)) for name in ("octo.duckdb", "octo.private.duckdb")
    ]
    opened = DuckDBWarehouse(*files, tables=all_tables(), nouns=nouns(), now=NOON)
    apply_marts(opened, world.project.directory)
    return opened


@pytest.fixture(scope="session")
def duck(world, tmp_path_factory):
    opened = copied(world, tmp_path_factory.mktemp("duck"))
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def postgres(duck, world, postgres_server):
    """The same rows on PostgreSQL, with the same marts."""
    name = postgres_server.make()
    opened = Postgres(postgres_server.dsn(name))
    opened.fill_from(duck)
    apply_marts(opened, world.project.directory)
    yield opened
    opened.close()
    postgres_server.drop(name)


@pytest.fixture(params=["duckdb", "postgres"])
def engine(request):
    """Each engine in turn."""
    return request.getfixturevalue({"duckdb": "duck", "postgres": "postgres"}[request.param])


@pytest.fixture
def late(engine, world):
    """What the service says where every third booking is confirmed nine days after it was; so does the copy meanwhile."""
    channels, plant = copy.deepcopy(world.now.channels), {"+": [], "-": []}
    for number, raw in enumerate(raw for channel in channels for raw in channel.state["bookings"]):
        if raw["utc_confirmed_at"] and number % 3 == 0:
            raw["utc_confirmed_at"] = (instant(raw["utc_confirmed_at"]) + 9 * DAY).isoformat()
            for sign, into in plant.items():
                into.append(
                    f"update core.bookings set utc_confirmed_at = utc_confirmed_at {sign} interval '9 days' "
                    f"where booking_uuid = '{raw['uuid']}'"
                )
    with planted(engine, *("; ".join(statements) for statements in plant.values())):
        yield Truth(channels)
