"""Each check sees the fault it is for, in every table it speaks of; honest rows pass."""

import datetime as dt
from pathlib import Path

import pytest

from octo_sync.destinations.duckdb.warehouse import DuckDBWarehouse
from octo_sync.flows.publish import apply_marts, sql_files
from octo_sync.tables import all_tables, nouns
from octo_sync.tables.schema import Merge

WAREHOUSE = Path("nowhere")
CORE = [t for t in all_tables() if t.schema == "core" and t.noun]
PRICED = [
    (t, part)
    for t in CORE
    for part in ("original", "retail", "net", "tax")
    if f"{part}_amount" in {c.name for c in t.columns}
]


@pytest.fixture(scope="module")
def _made(tmp_path_factory):
    directory = tmp_path_factory.mktemp("checks")
    made = DuckDBWarehouse(
        directory / "octo.duckdb",
        directory / "octo.private.duckdb",
        tables=all_tables(),
        nouns=nouns(),
        now=dt.datetime(2026, 11, 20, tzinfo=dt.UTC),
    )
    yield made
    made.close()


@pytest.fixture
def warehouse(_made):
    """An empty warehouse; made once, because that takes longer than a test."""
    yield _made
    _made.run_script([f"delete from {t.full_name}" for t in all_tables() if t.schema in ("core", "ops")])


@pytest.fixture
def failed(warehouse, tmp_path):
    """Whether a check returns rows once these statements have run."""
    checks = {check.name: check for check in sql_files(tmp_path, "checks")}

    def red(check, *statements):
        warehouse.run_script(statements)
        if "marts." in checks[check].sql:
            apply_marts(warehouse, tmp_path)
        return bool(warehouse.query(checks[check].sql).rows)

    return red


def insert(table, **values):
    """One row: keys are texts unless told otherwise, the rest is null."""
    types = {c.name: c.type for c in table.all_columns}
    row = {name: f"'{name}'" if types[name] == "text" else "timestamptz '2026-11-20 12:00:00+00'" for name in table.key}
    row |= {name: str(value) for name, value in values.items() if name in types}
    return f"insert into {table.full_name} ({', '.join(row)}) values ({', '.join(row.values())})"


LIVE = {"is_deleted": "false", "is_test": "false", "is_current": "true"}


@pytest.mark.deep(0.1, everyday=3)
@pytest.mark.parametrize("table", CORE, ids=lambda t: t.full_name)
def test_a_key_that_occurs_twice_is_found_in_every_table(failed, table):
    assert not failed("unique_keys", insert(table, **LIVE))
    second = dict(LIVE)
    if table.merge is Merge.VERSIONS:
        second["valid_from_utc"] = "timestamptz '2026-11-21 12:00:00+00'"
    assert failed("unique_keys", insert(table, **second))


@pytest.mark.deep(0.1, everyday=6)
@pytest.mark.parametrize("precision", [0, 2, 3])
@pytest.mark.parametrize(("table", "part"), PRICED, ids=lambda v: getattr(v, "full_name", v))
def test_an_amount_that_is_not_its_minor_units_is_found(failed, table, part, precision):
    money = {"currency": "'XXX'", "currency_precision": precision, f"{part}_minor": 12345}
    right = {0: "12345", 2: "123.45", 3: "12.345"}[precision]
    assert not failed("money_exact", insert(table, **LIVE, **money, **{f"{part}_amount": right}))

    wrong = {0: "123.45", 2: "123.46", 3: "123.45"}[precision]
    assert failed("money_exact", f"update {table.full_name} set {part}_amount = {wrong}")


@pytest.mark.parametrize(
    ("detail", "owner", "key"),
    [
        ("booking_extra_items", "bookings", "booking_uuid"),
        ("availability_prices", "availability", "product_id"),
        ("unit_prices", "products", "product_id"),
    ],
)
def test_an_amount_beside_older_values_is_left_out_and_that_of_no_other_record(failed, detail, owner, key):
    """Ids of departures and units are the same in many products."""
    of = {t.name: t for t in CORE}
    wrong = {"currency": "'EUR'", "currency_precision": 2, "net_minor": 400, "net_amount": "5.00"}
    older = insert(of[owner], **LIVE, **{key: "'older'"}, stale_columns="'x'")
    assert not failed("money_exact", older, insert(of[detail], **LIVE, **{key: "'older'"}, **wrong))
    assert failed("money_exact", insert(of[detail], **LIVE, **{key: "'another'"}, **wrong))


@pytest.mark.parametrize("name", ["bookings", "booking_unit_items", "unit_prices"])
def test_a_price_without_a_currency_is_found(failed, name):
    (table,) = [t for t in CORE if t.name == name]
    assert not failed("known_currencies", insert(table, **LIVE, currency="'EUR'", currency_precision=2, retail_minor=1))
    assert failed("known_currencies", f"update {table.full_name} set currency_precision = null")
    assert "currency" in table.key or failed(
        "known_currencies", f"update {table.full_name} set currency = null, currency_precision = 2"
    )


DETAILS = {
    "booking_unit_items": "bookings",
    "booking_extra_items": "bookings",
    "booking_taxes": "bookings",
    "booking_history": "bookings",
    "availability_prices": "availability",
    "availability_history": "availability",
    "options": "products",
    "product_content": "products",
    "units": "options",
    "extras": "options",
    "unit_prices": "units",
}


@pytest.mark.parametrize(("detail", "parent"), DETAILS.items())
def test_a_detail_without_its_row_is_found(failed, detail, parent):
    of = {t.name: t for t in all_tables()}
    above = [insert(of[name], **LIVE) for name in dict.fromkeys((parent, "products", "options", "bookings"))]

    assert not failed("orphans", *above, insert(of[detail], **LIVE, version_no=1))
    assert failed("orphans", f"delete from core.{parent}")


def test_a_price_per_booking_needs_its_option_and_no_unit(failed):
    of = {t.name: t for t in CORE}
    above = [insert(of[name], **LIVE) for name in ("products", "options")]

    assert not failed("orphans", *above, insert(of["unit_prices"], **LIVE, unit_id="''"))
    assert failed("orphans", "delete from core.options")


@pytest.mark.parametrize(
    ("versions", "wrong"),
    [
        ([(1, 2, False), (2, None, True)], False),
        ([(1, 2, False), (3, None, True)], False),  # it was told no longer, and came back
        ([(1, 3, False), (2, None, True)], True),
        ([(1, 2, True)], True),
        ([(1, None, False)], True),
        ([(2, 1, False)], True),
        ([(1, None, True), (2, None, True)], True),
    ],
)
def test_versions_of_a_price_that_overlap_or_are_not_half_open_are_found(failed, versions, wrong):
    (table,) = [t for t in CORE if t.name == "unit_prices"]

    def at(day):
        return "null" if day is None else f"timestamptz '2026-11-{day:02} 12:00:00+00'"

    rows = [insert(table, valid_from_utc=at(a), valid_to_utc=at(b), is_current=str(c).lower()) for a, b, c in versions]
    assert failed("history_versions", *rows) is wrong


def coverage(resource, key, month="null"):
    return (
        "insert into ops.coverage (connection_id, resource, key, product_id, option_id, travel_month) "
        f"values ('connection_id', '{resource}', '{key}', 'product_id', 'option_id', {month})"
    )


@pytest.mark.deep(1)
def test_rows_without_any_answer_on_record_are_found(failed):
    of = {t.name: t for t in CORE}
    answers = [coverage("availability", "a"), coverage("booking", '["booking_uuid"]')]
    rows = [insert(of[name], **LIVE) for name in ("availability", "bookings")]

    assert not failed("coverage_holes", *answers, *rows)
    assert failed("coverage_holes", "delete from ops.coverage where resource = 'booking'")
    assert failed("coverage_holes", answers[1], "delete from ops.coverage where resource = 'availability'")


def test_an_answer_about_one_booking_says_nothing_of_another(failed):
    (table,) = [t for t in CORE if t.name == "bookings"]
    rows = [insert(table, **LIVE), insert(table, **LIVE, booking_uuid="'other'")]

    assert failed("coverage_holes", coverage("booking", '["booking_uuid"]'), *rows)
    assert not failed("coverage_holes", coverage("bookings", '["2026-11"]', "'2026-11'"))


OWED = (
    "insert into ops.unanswered (connection_id, resource, key, product_id, option_id, travel_month) "
    "values ('connection_id', 'availability', 'x', 'product_id', 'option_id', '2027-01')"
)


@pytest.mark.deep(0.4, everyday=1)
@pytest.mark.parametrize(
    ("day", "more", "wrong"),
    [
        ("2026-11-20", (), False),
        ("2027-01-20", (), True),
        ("2027-03-20", (), True),
        ("2027-01-20", (OWED,), False),  # marts.coverage says so
        ("2026-10-20", (), False),  # over before the first answer that is still on record
    ],
)
def test_a_departure_in_a_month_that_was_never_answered_is_found(failed, day, more, wrong):
    (table,) = [t for t in CORE if t.name == "availability"]
    answers = [coverage("availability", month, f"'{month}'") for month in ("2026-11", "2026-12", "2027-02")]

    assert failed("coverage_holes", *answers, *more, insert(table, **LIVE, local_date=f"date '{day}'")) is wrong


def test_an_aggregate_that_is_older_than_the_facts_is_found(failed, warehouse):
    of = {t.name: t for t in CORE}
    day = {"local_date": "date '2026-11-20'", "status": "'AVAILABLE'"}
    assert not failed("departure_totals", insert(of["availability"], **LIVE, **day))
    warehouse.run_script(["update marts.agg_occupancy_daily set departures = 2"])
    (check,) = [c for c in sql_files(WAREHOUSE, "checks") if c.name == "departure_totals"]

    assert [row[0] for row in warehouse.query(check.sql).rows] == ["agg_occupancy_daily: departures"]


@pytest.mark.deep(1)
def test_a_shared_name_that_doubles_bookings_is_found(failed):
    of = {t.name: t for t in CORE}
    booking = insert(of["bookings"], **LIVE, product_id="'product_id'", option_id="'option_id'")

    assert not failed("mart_totals", booking, insert(of["options"], **LIVE))
    assert failed("mart_totals", insert(of["options"], **LIVE))


SALE = {
    "status": "'CONFIRMED'", "local_date": "date '2026-11-20'", "utc_created_at": "timestamptz '2026-11-10 12:00:00+00'",
    "currency": "'EUR'", "currency_precision": 2, "pax_count": 2,
    **{f"{part}_amount": amount for part, amount in (("original", 12), ("retail", 10), ("net", 8), ("tax", 1))},
}  # fmt: skip
MEASURES = (
    "bookings", "sold", "cancelled", "guests", "original_amount", "retail_amount", "net_amount", "tax_amount",
    "margin_amount",
)  # fmt: skip
ONE_MORE = "select * replace ({0} + 1 as {0}) from ({{}}) as right_one"
NONE = "select * from ({}) as right_one where false"


@pytest.mark.deep(
    0.5,
    everyday=["--fct_guests: tickets", "--agg_pickup_curve: guests_on_books"],
)  # fmt: skip
@pytest.mark.parametrize(
    ("mart", "wrong", "told"),
    [
        ("fct_bookings", NONE, "fct_bookings: bookings"),
        ("fct_guests", NONE, "fct_guests: tickets"),
        ("fct_departures", NONE, "fct_departures: departures"),
        *(("agg_occupancy_daily", ONE_MORE.format(name), f"agg_occupancy_daily: {name}")
          for name in ("departures", "taken", "capacity")),
        *(("agg_bookings_daily", ONE_MORE.format(name), f"agg_bookings_daily: {name}") for name in MEASURES),
        *(("agg_pickup_curve", ONE_MORE.format(name), f"agg_pickup_curve: {name}")
          for name in ("final_guests", "guests_on_books")),
    ],
    ids=lambda value: value if ": " in value else "",
)  # fmt: skip
def test_a_mart_that_loses_or_multiplies_is_found_in_each_of_its_totals(failed, warehouse, mart, wrong, told):
    of = {t.name: t for t in CORE}
    rows = ["insert into core.connections (connection_id) values ('connection_id')"]
    rows += [insert(of[name], **LIVE, **SALE) for name in ("products", "bookings", "booking_unit_items")]
    open_day = {"status": "'AVAILABLE'", "local_date": "date '2026-11-20'", "capacity": 10, "vacancies": 4}
    name = "departure_totals" if mart in {"fct_departures", "agg_occupancy_daily"} else "mart_totals"
    assert not failed(name, *rows, insert(of["availability"], **LIVE, **open_day))

    shipped = {each.name: each for each in sql_files(WAREHOUSE, "marts")}
    kind = "table" if mart == "agg_occupancy_daily" else "view"
    warehouse.run_script([f"create or replace {kind} marts.{mart} as {wrong.format(shipped[mart].sql)}"])
    (check,) = [c for c in sql_files(WAREHOUSE, "checks") if c.name == name]
    found = {row[0] for row in warehouse.query(check.sql).rows}

    assert told in found
    assert found == {told} or mart.startswith("fct_"), "others are made of facts"
