"""Rows go to PostgreSQL and come back as they were, whatever is in them; only what differs travels."""

import dataclasses
import datetime as dt
import random
from decimal import Decimal

import pytest
from tests.destinations.contract import answered, booking, december, departures, landing, one, slot
from tests.destinations.test_postgres import blank, open_warehouse  # noqa: F401 - fixtures

from octo_sync.destinations.postgres.rows import numbered
from octo_sync.destinations.postgres.workbench import PRIVATE, Workbench
from octo_sync.model import Window
from octo_sync.tables import all_tables

PIECES = [
    "",
    '"',
    "'",
    "\n",
    "\r",
    "\r\n",
    "\\",
    "\\.",
    "\\N",
    ",",
    "\t",
    " ",
    "NULL",
    "#",
    "\x01",
    "\x1f",
    "é",
    "漢",
    "😀",
]
MICRO = dt.timedelta(microseconds=1)
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def value(rng, kind):
    if kind == "text":
        return "".join(rng.choices(PIECES, k=rng.randrange(6)))
    if kind == "boolean":
        return rng.choice([True, False])
    if kind == "date":
        return dt.date(1900, 1, 1) + dt.timedelta(days=rng.randrange(90_000))
    if kind.startswith("timestamp"):
        moment = EPOCH + rng.randrange(-(10**15), 4 * 10**15) * MICRO
        return moment if kind == "timestamptz" else moment.replace(tzinfo=None)
    if kind.startswith("numeric"):
        return Decimal(rng.randrange(-(10**18) + 1, 10**18)).scaleb(-4)
    return rng.randrange(-(2**31), 2**31) if kind == "integer" else rng.randrange(-(2**63), 2**63)


def rows_of(rng, table, count):
    return [
        tuple(None if c.name not in table.key and rng.random() < 0.2 else value(rng, c.type) for c in table.all_columns)
        for _ in range(count)
    ]


@pytest.fixture
def warehouse(open_warehouse):  # noqa: F811
    made = open_warehouse()
    made.claim_writer(1, "test")
    yield made
    made.close()


def in_order(rows):
    return sorted((tuple(row) for row in rows), key=repr)


@pytest.mark.deep(
    0.6, everyday=["core.products", "core.bookings", "core.availability", "core.availability_prices", "ops.coverage"]
)
@pytest.mark.parametrize(
    "table", [t for t in all_tables() if t.full_name != "ops.schema_migrations"], ids=lambda t: t.full_name
)
def test_every_value_of_every_type_goes_there_and_comes_back(warehouse, table):
    rng = random.Random(table.full_name)
    bench, rows = warehouse._bench, rows_of(rng, table, 60)
    session = warehouse._sessions.opened(read_only=False)
    session.execute(f"delete from {table.full_name}")
    target = f"{PRIVATE}.{table.full_name}" if table.private else table.full_name
    marks = ", ".join(f"${i}" for i in range(1, len(table.all_columns) + 1))
    bench.db.executemany(f"insert into {target} values ({marks})", rows)
    assert bench.send(session) == {table.full_name: 60}
    names = ", ".join(c.name for c in table.all_columns)
    assert in_order(warehouse.query(f"select {names} from {table.full_name}").rows) == in_order(rows)
    bench.clear()
    bench.bring(session, table, "true", ())
    wanted = rows
    if table.full_name == "raw.records":
        place = [c.name for c in table.all_columns].index("payload")
        wanted = [(*row[:place], "", *row[place + 1 :]) for row in rows]
    assert in_order(bench.db.execute(f"from {target}").fetchall()) == in_order(wanted)
    assert bench.send(session) == {}, "nothing differs"
    bench.clear()


def test_more_rows_than_fit_into_memory_are_written(warehouse):
    bench, session = warehouse._bench, warehouse._sessions.opened(read_only=False)
    (drift,) = (t for t in all_tables() if t.full_name == "ops.schema_drift")
    bench.db.execute(
        "insert into ops.schema_drift (connection_id, resource, kind, name) "
        "select 'c', 'r', 'k', repeat('n', 900) || n from range(130_000) t(n)"
    )
    bench.db.execute("set memory_limit = '150MB'")  # of the text that it makes of them, DuckDB would want 256 MB
    session.execute("begin")
    assert bench.copy(session, drift, "from ops.schema_drift") == 130_000
    session.execute("rollback")
    bench.clear()


def test_a_landing_brings_only_what_it_can_touch(warehouse, monkeypatch):
    days = range(1, 29)
    warehouse.land(landing(december([booking(n, day=n) for n in days], 10), departures([slot(d) for d in days], 11)))
    other = departures([slot(3, month=11)], 12)
    brought, real = {}, Workbench.bring

    def bring(self, session, table, where, parameters):
        came = real(self, session, table, where, parameters)
        count = self.db.execute(f"select count(*) from before.{table.full_name}").fetchone()[0]
        brought[table.full_name] = count
        return came

    monkeypatch.setattr(Workbench, "bring", bring)
    warehouse.land(landing(one(booking(4, day=4, retail=9), 20)))
    assert (brought["core.bookings"], brought["core.booking_unit_items"]) == (1, 2)
    assert "core.availability" not in brought
    brought.clear()
    november = Window.month("2026-11")
    subject = dataclasses.replace(other.subject, parts=("p", "o", "2026-11"))
    warehouse.land(landing(dataclasses.replace(other, subject=subject, window=november)))
    assert brought["core.availability"] == 0
    assert "core.bookings" not in brought


def test_a_landing_of_several_months_brings_of_each_option_its_own(warehouse, monkeypatch):
    def months(seq, *pairs, vacancies=3):
        return landing(
            *(
                answered(
                    "availability",
                    [slot(day, month=month, vacancies=vacancies) for day in (1, 2, 3)],
                    seq + number,
                    parts=("p", option, f"2026-{month}"),
                    window=Window.month(f"2026-{month}"),
                )
                for number, (option, month) in enumerate(pairs)
            )
        )

    warehouse.land(months(10, *((option, month) for option in "abc" for month in (10, 11, 12))))
    assert warehouse.query("select count(*) from core.availability where not is_deleted").rows == [(27,)]
    brought, real = {}, Workbench.bring

    def bring(self, session, table, where, parameters):
        came = real(self, session, table, where, parameters)
        if table.full_name == "core.availability":
            rows = self.db.execute("select option_id, local_date from before.core.availability").fetchall()
            brought.update({(option, day.month): brought.get((option, day.month), 0) + 1 for option, day in rows})
        return came

    monkeypatch.setattr(Workbench, "bring", bring)
    report = warehouse.land(months(30, ("a", 10), ("b", 12), vacancies=1))
    assert set(brought) == {("a", 10), ("b", 12)}
    assert report.written["core.availability"] == 6
    counts = "select vacancies, count(*) from core.availability where not is_deleted group by 1 order by 1"
    assert warehouse.query(counts).rows == [(1, 6), (3, 21)]


@pytest.mark.parametrize(
    ("sql", "given", "wanted"),
    [
        ("select $a, $b, $a", {"a": 1, "b": 2}, ("select $1, $2, $1", [1, 2])),
        ("select '$a', \"$a\", $a -- $a\n/* $a */", {"a": 1}, ("select '$a', \"$a\", $1 -- $a\n/* $a */", [1])),
        ("select $1", [5], ("select $1", [5])),
        ("select $other", {"a": 1}, ("select $other", [])),
    ],
)
def test_named_parameters_become_numbers_outside_texts_and_comments(sql, given, wanted):
    assert numbered(sql, given) == wanted
