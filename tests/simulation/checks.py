"""What must hold after every step, and what must hold in the end."""

import contextlib
import datetime as dt
import shutil
import sqlite3
from collections import Counter
from pathlib import Path
from random import Random
from zoneinfo import ZoneInfo

import duckdb
import msgspec
from tests import oracle
from tests.flows.harness import beside
from tests.simulation.faults import FORGED

from octo_sync.app.project import open_project
from octo_sync.destinations.duckdb.warehouse import DuckDBWarehouse
from octo_sync.flows.sync.pull import Scope
from octo_sync.flows.verify import verify_live
from octo_sync.journal import Journal
from octo_sync.sandbox import state
from octo_sync.tables import all_tables, nouns

__all__ = ["acknowledged_is_durable", "after_landing", "bounded", "differences", "pulled_anew"]


def acknowledged_is_durable(world):
    """Every delivery that was answered 200 is in the journal's file as it lies there, and no forged one."""
    with sqlite3.connect(f"file:{world.pipeline.journal_path}?mode=ro", uri=True) as db:
        stored = Counter(db.execute("select endpoint, body from deliveries").fetchall())
    db.close()
    if any(FORGED.encode() in body for _, body in stored):
        world.fail("a forged delivery is in the journal")
    for (endpoint, body), count in world.acks.items():
        if stored[endpoint, body] < count:
            world.fail(
                f"acknowledged is not durable: {count} times answered 200, {stored[endpoint, body]} stored: {body!r}"
            )


_HALF = """
select 'a booking without its unit items: ' || b.booking_uuid from core.bookings b
where not b.is_deleted and b.unit_count <> (select count(*) from core.booking_unit_items i
  where i.connection_id = b.connection_id and i.booking_uuid = b.booking_uuid and not i.is_deleted)
union all
select 'coverage without a row: ' || c.key from ops.coverage c
where c.resource = 'booking' and c.row_count > 0 and not exists
  (select 1 from core.bookings b where b.connection_id = c.connection_id and to_json([b.booking_uuid])::varchar = c.key)
union all
select 'coverage without rows: ' || c.key from ops.coverage c
where c.resource = 'availability' and c.row_count > 0 and c.is_complete and c.window_start is not null
  and not exists (select 1 from core.availability a
  where a.connection_id = c.connection_id and a.product_id = c.product_id and a.option_id = c.option_id
  and a.local_date between c.window_start and c.window_end)
union all
select 'a booking twice: ' || booking_uuid from core.bookings group by connection_id, booking_uuid having count(*) > 1
union all
select 'a departure twice: ' || availability_id from core.availability
group by connection_id, product_id, option_id, availability_id having count(*) > 1
union all
select 'a unit item twice: ' || unit_item_uuid from core.booking_unit_items
group by connection_id, unit_item_uuid having count(*) > 1
union all
select 'a booking deleted without proof: ' || booking_uuid from core.bookings where is_deleted
"""

_VERSIONS = (Path(__file__).parents[2] / "warehouse" / "checks" / "history_versions.sql").read_text(encoding="utf-8")


def after_landing(world, warehouse):
    """No half batch, unique keys, whole histories, nothing invented, nothing deleted without proof, no older over newer."""
    with warehouse._reader_lock:
        reader = warehouse._reader
        for (sentence,) in reader.execute(_HALF).fetchall():
            world.fail(sentence)
        for table, _, key, what in reader.execute(_VERSIONS).fetchall():
            world.fail(f"{table} of {key}: {what}")
        rows = reader.execute(
            "select connection_id, booking_uuid, reseller_reference, status, currency is not null from core.bookings"
        ).fetchall()
    for connection, uuid, reference, status, is_priced in rows:
        booking = connection, uuid
        if is_priced:
            world.priced.add(booking)
        elif booking in world.priced:
            world.fail(f"absent became null: the price of booking {uuid}")
        known, number = world.versions.get(uuid), int(reference[1:])
        if known is None or number >= len(known) or known[number] != status:
            world.fail(f"invented: booking {uuid} {reference} {status}")
        before = world.shown.get(booking, 0)
        if number < before and world.loop.time() > world.lag_until:
            world.fail(f"older over newer: booking {uuid} went from v{before} to v{number}")
        world.shown[booking] = number


def bounded(world, program):
    """Nothing that waits in memory grows with what comes (R12)."""
    if program.keeper is None:
        return
    worker, limits = program.keeper._worker, program.keeper.ports.connection("main").limits
    tasks = Counter(claim.subject.connection for claim in worker._tasks.values())
    for name, health in worker._health.items():
        if tasks[name] > 2 * limits.concurrency or len(health.claimed) > 64:
            world.fail(f"not bounded: {tasks[name]} fetches, {len(health.claimed)} claims of {name}")


async def pulled_anew(world):
    """What `verify --live` finds: a fresh pull into an empty copy beside the one that the program left."""
    fresh = world.folder / "fresh"
    shutil.copytree(world.folder, fresh / "here")
    async with open_project(
        world.pipeline,
        command="verify",
        clock=world.machine_clock,
        random=Random(f"{world.seed}/verify"),
        transport=lambda _: world.to_service,
        patient=False,
    ) as project:
        with (
            contextlib.closing(
                DuckDBWarehouse(
                    fresh / "octo.duckdb",
                    fresh / "octo.private.duckdb",
                    tables=all_tables(),
                    nouns=nouns(),
                    now=world.now(),
                )
            ) as scratch,
            contextlib.closing(Journal.open(fresh / "journal.sqlite", clock=world.machine_clock)) as journal,
        ):
            found = await verify_live(
                beside(project.ports, journal, scratch),
                here=fresh / "here" / "octo.duckdb",
                scratch=fresh / "octo.duckdb",
                scope=Scope(),
            )
    world.count("compared with a fresh pull")
    if found.failed or found.troubles:
        return f"a fresh pull was not whole: {found.failed} {found.troubles}"
    compared = found.comparison
    return None if compared.equal else f"a fresh pull says something else: {compared}"[:2000]


async def differences(world, *, only=None):
    """What the copy says and the source does not, and the other way round, for every table, row and column."""
    from tests.simulation.world import AVAILABILITY, BOOKINGS, CAPABILITIES

    service = world.sandbox.service
    service.tick()
    truth = msgspec.to_builtins(state.whole(service, service.token_named("all")))
    pulled = oracle.Pulled(
        capabilities=frozenset(CAPABILITIES),
        bookings=BOOKINGS,
        availability=AVAILABILITY,
        texts=await world.texts(),
        former_products=[world.former_products[key] for key in truth["deleted_products"]],
    )
    today = service.clock.now().date()
    slots = [
        msgspec.json.decode(row)
        for row in state.availability(
            service, today.toordinal() + AVAILABILITY[0] - 2, today.toordinal() + AVAILABILITY[1] + 2, None, None
        )
    ]
    wanted = oracle.expected(truth, slots, pulled)
    differing = []
    for connection in world.connections:
        found = _within(world, tables(world, connection), wanted, truth)
        if only:
            wanted = {name: rows for name, rows in wanted.items() if only(name)}
            found = {name: rows for name, rows in found.items() if only(name)}
        of = "" if world.server is None else f"{connection}: "
        differing += [f"{of}{sentence}" for sentence in oracle.compare(wanted, found)]
    return differing


def tables(world, connection):
    """Live rows of every table the oracle has an opinion about, through the owner's connection when there is one."""
    keepers = [one.keeper.ports.warehouse for one in world.programs if one.alive and one.keeper is not None]
    for warehouse in keepers if world.server is None else [world.server.warehouse]:
        with warehouse._lock:
            return {name: _rows(warehouse._db, name, connection) for name in oracle.KEYS}
    db = duckdb.connect(":memory:", config={"threads": 1})
    try:
        db.execute(f"attach '{world.pipeline.destination}' as warehouse")
        db.execute(f"attach '{world.pipeline.destination.with_name('octo.private.duckdb')}' as personal")
        db.execute("set timezone = 'UTC'")
        return {name: _rows(db, name, connection) for name in oracle.KEYS}
    finally:
        db.close()


_live = {}


def _rows(db, name, connection):
    """Live rows as the oracle spells them: no bookkeeping, instants in UTC."""
    catalog = "personal" if name.startswith("private.") else "warehouse"
    if name not in _live:
        described = db.execute(f"describe {catalog}.{name}").fetchall()
        names = {column for column, *_ in described}
        live = "not is_deleted" if "is_deleted" in names else "is_current" if "is_current" in names else "true"
        _live[name] = live, [(c, kind) for c, kind, *_ in described if c not in oracle.BOOKKEEPING]
    live, kept = _live[name]
    instants = [place for place, (_, kind) in enumerate(kept) if kind == "TIMESTAMP WITH TIME ZONE"]
    picked = ", ".join(f"{c} at time zone 'UTC'" if kind == "TIMESTAMP WITH TIME ZONE" else c for c, kind in kept)
    columns = [column for column, _ in kept]
    found = []
    asked = f"select {picked} from {catalog}.{name} where connection_id = $1 and {live}"
    for row in db.execute(asked, [connection]).fetchall():
        values = list(row)
        for place in instants:
            values[place] = values[place] and values[place].replace(tzinfo=dt.UTC)
        found.append(dict(zip(columns, values, strict=True)))
    return found


def _within(world, found, wanted, truth):
    """What has left the horizon since it was landed stays as it was, and is nobody's concern."""
    from tests.simulation.world import AVAILABILITY, BOOKINGS

    now = world.sandbox.service.clock.now()
    zones = {product["id"]: product["time_zone"] for product in truth["products"]}
    days = {
        product: [now.astimezone(ZoneInfo(zone)).date() + dt.timedelta(days=n) for n in AVAILABILITY]
        for product, zone in zones.items()
    }
    for name in ("core.availability", "core.availability_prices"):
        found[name] = [
            row
            for row in found[name]
            if row["product_id"] not in days
            or days[row["product_id"]][0] <= row["local_date"] <= days[row["product_id"]][1]
        ]
    low, high = (now.date() + dt.timedelta(days=n) for n in BOOKINGS)
    expected = {row["booking_uuid"] for row in wanted["core.bookings"]}
    outside = {
        row["booking_uuid"]
        for row in found["core.bookings"]
        if row["booking_uuid"] not in expected and not low <= row["local_date"] <= high
    }
    for name, rows in found.items():
        if rows and "booking_uuid" in rows[0]:
            found[name] = [row for row in rows if row["booking_uuid"] not in outside]
    return found
