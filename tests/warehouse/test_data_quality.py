"""What a service says although it cannot be so is in the copy and in `data_quality`: which rule, where, since when."""

from contextlib import ExitStack

import pytest
from tests.warehouse.engines import planted
from tests.warehouse.test_checks import LIVE, insert

from octo_sync.tables import by_name


def at(day):
    return f"timestamptz '2026-11-{day:02} 12:00:00+00'"


SEEN = {
    "first_seen_at_utc": at(1),
    "last_seen_at_utc": at(9),
    "status": "'AVAILABLE'",
    "local_date": "date '2026-11-20'",
}


@pytest.fixture
def found(engine):
    """The rules that rows break which are planted for a moment, with field, value and day since."""
    with ExitStack() as stack:

        def look(name, *versions, **values):
            for table, row in [(f"core.{name}", values), *(("core.availability_history", v) for v in versions)]:
                usual = {"status": "'CONFIRMED'"} if table == "core.bookings" else {}
                plant = insert(by_name(table), **{**LIVE, **SEEN, **usual, **row, "connection_id": "'odd'"})
                stack.enter_context(planted(engine, plant, f"delete from {table} where connection_id = 'odd'"))
            rows = engine.query("select rule, field, value, since from marts.data_quality order by rule, field").rows
            return [(rule, field, value, since.day) for rule, field, value, since in rows]

        yield look


SYDNEY = {"local_start_at": "timestamp '2026-12-01 08:00:00'", "time_zone": "'Australia/Sydney'"}


@pytest.mark.parametrize(("change", "wanted"), [("is_deleted = true", 1), ("is_deleted = false", 0)])
def test_a_sold_booking_without_its_departure_is_named_where_departures_are_known(engine, change, wanted):
    ((uuid, departure),) = engine.query(
        "select b.booking_uuid, b.availability_id from marts.fct_bookings b join marts.fct_departures d using (departure_key) "
        "where b.is_sold and d.our_bookings = 1 and b.travel_date > date '2026-11-25' order by 1 limit 1"
    ).rows
    where = f"where availability_id = '{departure}'"
    with planted(
        engine,
        f"update core.availability set {change} {where}",
        f"update core.availability set is_deleted = false {where}",
    ):
        found = engine.query("select rule, booking_uuid, value from marts.data_quality").rows
    assert found == [("no_departure", uuid, departure)] * wanted


def test_a_faithful_service_breaks_no_rule(engine):
    assert engine.query("select * from marts.data_quality").rows == []


@pytest.mark.parametrize(
    ("name", "values", "wanted"),
    [
        ("availability", {"vacancies": 10, "capacity": 10}, []),
        ("availability", {"vacancies": 0, "capacity": 0, "status": "'SOLD_OUT'"}, []),
        ("availability", {"vacancies": 5}, []),
        ("availability", {"vacancies": 11, "capacity": 10}, [("more_vacancies_than_capacity", "vacancies", "11", 1)]),
        ("availability", {"vacancies": -3, "capacity": 10}, [("oversold", "vacancies", "-3", 1)]),
        ("availability", {"capacity": -1}, [("capacity_below_zero", "capacity", "-1", 1)]),
        ("availability", {"capacity": 2**63 - 1}, [("not_countable", "capacity", str(2**63 - 1), 1)]),
        ("availability", {"utc_cutoff_at": "timestamptz '9999-12-31 00:00:00+00'"},
         [("date_out_of_range", "utc_cutoff_at", "9999-12-31", 9)]),
        ("availability", {"oddities": "'stands_twice:unitPricing'"}, [("stands_twice", "unitPricing", None, 9)]),
        ("bookings", {"unit_count": 1}, []),
        ("bookings", {"unit_count": 1, "status": "'CHECKED_IN'"}, [("unknown_status", "status", "CHECKED_IN", 9)]),
        ("bookings", {"unit_count": 1, "status": "'NOSHOW'"}, []),
        ("bookings", {"unit_count": 1, **SYDNEY, "utc_start_at": "timestamptz '2026-11-30 21:00:00+00'"}, []),
        ("bookings", {"unit_count": 1, **SYDNEY, "utc_start_at": "timestamptz '2026-12-01 08:00:00+00'"},
         [("other_time_zone", "local_start_at", "2026-12-01 08:00:00", 9)]),
        ("bookings", {"unit_count": 0, "is_test": "true"}, []),
        ("bookings", {"unit_count": 0}, [("no_ticket", "unit_count", "0", 9)]),
        ("bookings", {"utc_expires_at": "timestamptz '9999-12-31 23:59:59+00'", "local_date": "date '0001-01-01'"},
         [("date_out_of_range", "local_date", "0001-01-01", 9), ("date_out_of_range", "utc_expires_at", "9999-12-31", 9)]),
        ("bookings", {"oddities": "'stands_twice:unitItems,unknown_time_zone:product.timeZone'"},
         [("stands_twice", "unitItems", None, 9), ("unknown_time_zone", "product.timeZone", None, 9)]),
        ("products", {"oddities": "'stands_twice:options.units'"}, [("stands_twice", "options.units", None, 9)]),
    ],
)  # fmt: skip
def test_a_rule_that_is_broken_is_named_with_what_was_said(found, name, values, wanted):
    assert found(name, **values) == wanted


def version(number, start, end, vacancies, changed="vacancies"):
    return {
        "version_no": number, "valid_from_utc": at(start), "valid_to_utc": at(end) if end else "null",
        "is_current": str(not end).lower(), "changed_fields": f"'{changed}'", "vacancies": vacancies, "capacity": 10,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("versions", "since"),
    [
        ([version(1, 1, 3, 4, ""), version(2, 3, 5, 12), version(3, 5, None, 15)], 3),
        ([version(1, 1, 3, 12, ""), version(2, 3, None, 15)], 1),
        ([version(4, 6, 7, 12), version(5, 7, None, 15)], 6),  # earlier ones are not kept any more
        ([version(1, 1, 3, 12, ""), version(2, 6, None, 12, "is_deleted")], 6),  # it was gone in between
    ],
)
def test_since_is_the_first_of_the_versions_that_say_so_without_a_break(found, versions, since):
    assert found("availability", *versions, vacancies=versions[-1]["vacancies"], capacity=10) == [
        ("more_vacancies_than_capacity", "vacancies", str(versions[-1]["vacancies"]), since)
    ]
