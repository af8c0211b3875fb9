"""Several tokens of one supplier show the same products and departures: they count once, whichever token shows them."""

import asyncio
import contextlib
import datetime as dt
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.flows.harness import NOON, TODAY, Asked, Project, Service, small
from tests.warehouse.engines import Postgres
from tests.warehouse.test_marts import one

from octo_sync.destinations.duckdb.warehouse import DuckDBWarehouse
from octo_sync.flows import ask
from octo_sync.flows.publish import apply_marts, run_checks
from octo_sync.tables import all_tables, nouns

TOKENS = {"everybody": "all", "agents": "a", "direct": "b", "kiosk": "sandbox-token-readonly"}
"""Connections and their tokens; the first sees all bookings, the others those they made."""
NOWHERE = Path("nowhere")
QUESTIONS = {q.number: q for q in ask.questions(NOWHERE)}
PAGES = {q.file.path.stem: q for q in ask.questions(NOWHERE, "dashboard")}
OF_ONE_COPY = (
    "connection_id",
    "supplier_key",
    "sold_through",
    "product_key",
    "option_key",
    "departure_key",
    "verified_at_utc",
)
"""Columns whose values name connections or instants."""


@dataclass
class Copy:
    """A warehouse with its marts."""

    engine: Any
    directory: Path

    def rows(self, sql, values=()):
        found = self.engine.query(sql, values)
        return [dict(zip(found.columns, row, strict=True)) for row in found.rows]

    def compared(self, sql, values=()):
        """Rows in an order of their own, without what differs between copies of the same departures."""
        return sorted(
            [{k: v for k, v in row.items() if k not in OF_ONE_COPY} for row in self.rows(sql, values)], key=repr
        )

    def asked(self, question, **given):
        told = {name: str(value) for name, value in given.items()}
        open_ones = {p.name: None for p in question.parameters if not p.default}
        defaults = [p for p in question.parameters if p.default]
        return question.sql, open_ones | ask.filled(defaults, told, now=NOON, time_zone="UTC")

    @contextlib.contextmanager
    def changed(self, *statements):
        """With the copy changed for a while, checked and with its marts made anew."""
        tables = ("core.availability", "core.connections", "core.products", "ops.coverage")
        names = {table: f"kept_{table.partition('.')[2]}" for table in tables}
        self.engine.run_script([f"create table {kept} as select * from {table}" for table, kept in names.items()])
        try:
            self.engine.run_script(statements)
            apply_marts(self.engine, self.directory)
            assert [each.check.name for each in run_checks(self.engine, self.directory) if each.rows.rows] == []
            yield
        finally:
            for table, kept in names.items():
                self.engine.run_script(
                    [f"delete from {table}", f"insert into {table} select * from {kept}", f"drop table {kept}"]
                )
            apply_marts(self.engine, self.directory)


def _pulled(service, directory, tokens, destination=None):
    connections = {
        name: Asked(token=token, bookings=(-60, 40), availability=(0, 30), settings={"channel": name.title()})
        for name, token in tokens.items()
    }
    project = Project(directory, service, publish=True, connections=connections, destination=destination)
    assert asyncio.run(project.sync()).status == "ok"
    return project


@pytest.fixture(scope="module")
def service():
    with Service(small(bookings=150, days=35, products=6)) as found:
        found.traffic(200, kinds=["closeout", "capacity", "book"])
        yield found


@pytest.fixture(scope="module", params=["duckdb", pytest.param("postgres", marks=pytest.mark.deep(0.5))])
def copies(request, service, tmp_path_factory):
    """The copy of one token and that of four, on each engine."""
    found, names = [], []
    server = request.getfixturevalue("postgres_server") if request.param == "postgres" else None
    for tokens in (dict([*TOKENS.items()][:1]), TOKENS):
        directory = tmp_path_factory.mktemp(request.param)
        if server:
            names.append(server.make())
            _pulled(service, directory, tokens, server.dsn(names[-1]))
            engine = Postgres(server.dsn(names[-1]))
        else:
            project = _pulled(service, directory / "project", tokens)
            for name in ("octo.duckdb", "octo.private.duckdb"):
                shutil.copy(project.directory / name, directory / name)
            files = (directory / "octo.duckdb", directory / "octo.private.duckdb")
            engine = DuckDBWarehouse(*files, tables=all_tables(), nouns=nouns(), now=NOON)
            apply_marts(engine, NOWHERE)
        found.append(Copy(engine, NOWHERE))
    yield found
    for copy in found:
        copy.engine.close()
    for name in names:
        server.drop(name)


EARLIER = NOON - dt.timedelta(days=5)
AHEAD = {"first": TODAY, "last": TODAY + dt.timedelta(days=29)}
AVAILABILITY = [
    *(f"select * from marts.{name}" for name in (
        "dim_product", "dim_option", "fct_departures", "agg_occupancy_daily", "availability_health",
    )),
    *((QUESTIONS[number], given) for number, given in (
        (3, AHEAD), (4, AHEAD | {"below": 0.4}), (8, AHEAD), (21, {"above": 0.5}),
    )),
    *((PAGES[name], AHEAD) for name in ("occupancy", "occupancy_days", "occupancy_products", "overview_ahead")),
    *((PAGES[name], {}) for name in ("availability", "products")),
]  # fmt: skip


@pytest.mark.parametrize(
    "read", AVAILABILITY, ids=lambda read: read.split(".")[1] if isinstance(read, str) else read[0].file.path.stem
)
def test_four_tokens_show_the_products_and_departures_of_one(copies, read):
    """Also the bookings on each departure: one that two tokens see is one."""
    alone, shared = copies
    sql, values = (read, ()) if isinstance(read, str) else alone.asked(read[0], **read[1])

    wanted = alone.compared(sql, values)
    assert wanted
    assert shared.compared(sql, values) == wanted


def test_the_world_has_what_is_compared(copies):
    (row,) = copies[1].rows(
        "select sum(sold_out_departures) as sold_out, sum(closed_departures) as closed, sum(our_bookings) as ours, "
        "sum(differing_departures) as differing from marts.agg_occupancy_daily"
    )
    (health,) = copies[1].rows(
        "select sum(weak_days) as weak, sum(sold_out_days) as full_days from marts.availability_health"
    )
    assert min(row["sold_out"], row["closed"], row["ours"], health["weak"], health["full_days"]) > 0
    assert row["differing"] == 0


def test_bookings_stay_with_their_channels_and_find_product_and_departure(copies, service):
    (_, shared) = copies
    rows = shared.rows(
        "select b.channel_name, b.booking_uuid, p.product_key, b.availability_id, d.departure_key from marts.fct_bookings b "
        "left join marts.dim_product p on p.product_key = b.product_key "
        "left join marts.fct_departures d on d.departure_key = b.departure_key and d.option_key = b.option_key "
        f"where b.travel_date between '{TODAY}' and '{AHEAD['last']}'"
    )
    seen = {
        (name.title(), b["uuid"])
        for name, token in TOKENS.items()
        for b in service.state(token)["bookings"]
        if not b["test"] and f"{TODAY}" <= (b["local_date"] or "") <= f"{AHEAD['last']}"
    }
    assert {(row["channel_name"], row["booking_uuid"]) for row in rows} == seen
    assert len({channel for channel, _ in seen}) > 2
    assert all(row["product_key"] for row in rows)
    assert all(row["departure_key"] for row in rows if row["availability_id"])
    (row,) = shared.rows("select distinct sold_through from marts.dim_product")
    assert row["sold_through"] == ",".join(sorted(TOKENS))


def test_the_coverage_map_has_each_product_once_and_the_bookings_of_each_channel(copies):
    (alone, shared) = (copy.rows(*copy.asked(PAGES["sync_coverage"], first=TODAY)) for copy in copies)
    for rows in (alone, shared):
        cells = [(row["product_key"], row["connection_id"], row["travel_month"]) for row in rows]
        assert len(cells) == len(set(cells))
        assert all(row["is_complete"] for row in rows)
    products = [[row["product_name"] for row in rows if row["product_key"]] for rows in (alone, shared)]
    assert sorted(products[0]) == sorted(products[1])
    assert {row["channel_name"] for row in shared if not row["product_key"]} == {name.title() for name in TOKENS}


@pytest.mark.deep(2)
def test_the_coverage_map_counts_the_records_of_one_and_names_what_any_lacks(copies):
    """Several tokens are told of the same departures."""
    alone, shared = copies
    lacking = (
        "update ops.coverage set missing_capabilities = '{}' where resource = 'availability' and connection_id = '{}'"
    )
    with shared.changed(lacking.format("octo/pricing", "agents"), lacking.format("octo/extras", "kiosk")):
        found = _cells(shared)
    assert {cell["missing_capabilities"] for cell in found if cell["product_key"]} == {"octo/extras,octo/pricing"}
    records = [
        sorted(
            (cell["product_key"].split("|")[1], cell["travel_month"], cell["row_count"])
            for cell in cells
            if cell["product_key"]
        )
        for cells in (_cells(alone), found)
    ]
    assert records[0] == records[1]


def _cells(copy):
    return copy.rows(*copy.asked(PAGES["sync_coverage"], first=TODAY))


def _departure(copy):
    """An open departure of known capacity, and what to write behind `where` to find it."""
    (row, *_) = copy.rows(
        "select * from marts.fct_departures where taken > 0 and not is_sold_out and not is_closed and travel_date > "
        f"'{TODAY + dt.timedelta(days=3)}' order by travel_date, departure_key"
    )
    return row, " and ".join(f"{name} = '{row[name]}'" for name in ("product_id", "option_id", "availability_id"))


def _day(copy, departure):
    (row,) = copy.rows(
        "select * from marts.agg_occupancy_daily "
        f"where product_id = '{departure['product_id']}' and travel_date = '{departure['travel_date']}'"
    )
    return row


def test_of_two_capacities_the_larger_stands_and_the_marts_say_so(copies):
    (_, shared) = copies
    was, of = _departure(shared)
    day = _day(shared, was)
    with shared.changed(
        "update core.availability set capacity = capacity + 7, vacancies = vacancies + 3 "
        f"where {of} and connection_id = 'kiosk'",
        f"update core.availability set capacity = null, vacancies = null where {of} and connection_id = 'direct'",
    ):
        (row,) = shared.rows(f"select * from marts.fct_departures where {of}")
        now = _day(shared, was)
    assert (row["connection_id"], row["capacity"], row["taken"]) == ("kiosk", was["capacity"] + 7, was["taken"] + 4)
    assert (row["least_capacity"], was["least_capacity"]) == (was["capacity"], was["capacity"])
    assert (now["capacity"], now["taken"], now["departures"]) == (
        day["capacity"] + 7,
        day["taken"] + 4,
        day["departures"],
    )
    assert (now["differing_departures"], day["differing_departures"]) == (1, 0)


@pytest.mark.deep(1)
def test_of_equal_capacities_what_was_verified_last_stands(copies):
    (_, shared) = copies
    was, of = _departure(shared)
    with shared.changed(
        f"update core.availability set vacancies = vacancies - 1 where {of} and connection_id = 'direct'",
        "update ops.coverage set verified_at_utc = verified_at_utc + interval '1 hour' where connection_id = 'direct'",
    ):
        (row,) = shared.rows(f"select * from marts.fct_departures where {of}")
    assert (row["connection_id"], row["taken"]) == ("direct", was["taken"] + 1)


@pytest.mark.deep(1)
def test_what_a_connection_that_left_was_told_stands_back(copies):
    """Whatever it had seen: nobody asks it any more. The others go on."""
    (_, shared) = copies
    was, of = _departure(shared)
    with shared.changed(
        "update core.connections set is_active = false where connection_id in ('agents', 'kiosk')",
        f"update core.availability set capacity = 1000 where {of} and connection_id = 'kiosk'",
        f"update core.availability set capacity = 1, vacancies = 1 where {of} and connection_id = 'agents'",
        "update ops.coverage set is_complete = false where connection_id = 'kiosk'",
    ):
        (row,) = shared.rows(f"select * from marts.fct_departures where {of}")
        rows = shared.rows("select distinct connection_id, sold_through from marts.dim_product")
        covered = shared.rows("select distinct is_covered from marts.availability_health")
        cells = shared.rows(*shared.asked(PAGES["sync_coverage"], first=TODAY))
    assert (row["capacity"], row["least_capacity"], row["is_followed"]) == (was["capacity"], was["capacity"], True)
    assert row["departure_key"] == was["departure_key"]
    assert rows == [{"connection_id": "direct", "sold_through": "direct,everybody"}]
    assert covered == [{"is_covered": True}]
    assert {cell["is_complete"] for cell in cells if cell["product_key"]} == {True}


@pytest.mark.deep(2)
def test_what_is_gone_for_one_token_is_sold_through_the_others(copies):
    (_, shared) = copies
    was, of = _departure(shared)
    gone = "set is_deleted = true, deleted_at_utc = timestamptz '2026-11-20 10:00:00+00'"
    product = f"product_id = '{was['product_id']}'"
    fewer = "update ops.coverage set row_count = 0 where resource = 'availability'"
    read = f"select is_retired, retired_at_utc, sold_through from marts.dim_product where {product}"
    count = f"select count(*) as n from marts.fct_departures where {of}"
    with shared.changed(
        f"update core.products {gone} where {product} and connection_id <> 'kiosk'",
        f"update core.availability {gone}, capacity = capacity + 9 where {of} and connection_id <> 'kiosk'",
        fewer,
    ):
        assert shared.rows(read) == [{"is_retired": False, "retired_at_utc": None, "sold_through": "kiosk"}]
        assert shared.rows(count) == [{"n": 1}]
    with shared.changed(
        f"update core.products {gone} where {product}",
        f"update core.availability {gone} where {of}",
        fewer,
        "update core.products set deleted_at_utc = deleted_at_utc + interval '1 hour' "
        f"where {product} and connection_id = 'direct'",
    ):
        (row,) = shared.rows(read)
        assert shared.rows(count) == [{"n": 0}]
        health = shared.rows(f"select * from marts.availability_health where {product}")
    assert (row["is_retired"], f"{row['retired_at_utc']:%H}", row["sold_through"]) == (True, "11", "")
    assert health == []


@pytest.mark.deep(1, everyday=1)
@pytest.mark.parametrize(
    "other",
    ["supplier_id = null", "supplier_id = 'another'", "base_url = 'https://another.example/octo/v1'"],
    ids=["unknown", "another supplier", "another service"],
)
def test_equal_product_ids_of_others_are_other_products(copies, other):
    """A supplier's id is its service's own, a product's its supplier's."""
    alone, shared = copies
    totals = "select count(*) as n, cast(sum(capacity) as bigint) as capacity from marts.fct_departures"
    keys = "select product_key from marts.dim_product order by 1"
    (wanted,), products = alone.rows(totals), len(alone.rows(keys))
    with shared.changed(f"update core.connections set {other} where connection_id in ('agents', 'kiosk')"):
        (found,), times = shared.rows(totals), 3 if other.endswith("null") else 2
        assert {len({row["product_key"] for row in shared.rows(keys)}), len(shared.rows(keys))} == {times * products}
    assert found == {name: value * times for name, value in wanted.items()}


@pytest.mark.deep(1)
def test_a_day_is_covered_where_every_connection_was_answered(copies):
    (_, shared) = copies
    was, _ = _departure(shared)
    of = f"resource = 'availability' and product_id = '{was['product_id']}' and connection_id = 'agents'"
    assert _day(shared, was)["is_covered"]
    with shared.changed(
        f"update ops.coverage set is_complete = false, verified_at_utc = '{EARLIER}', source = 'confirm' where {of}"
    ):
        assert not _day(shared, was)["is_covered"]
        cells = shared.rows(*shared.asked(PAGES["sync_coverage"], first=TODAY))
        doubtful = one(shared.engine, "select product_id from marts.availability_health where not is_covered")
    assert doubtful == [{"product_id": was["product_id"]}]
    told = {(cell["is_complete"], cell["verified_at_utc"] == EARLIER, cell["verified_by"]) for cell in cells}
    assert told == {(True, False, "schedule"), (False, True, "confirm")}
