"""What a service says although it cannot be so is in the copy and in `data_quality`: which rule, where, since when."""

from contextlib import ExitStack

import pytest
from tests.flows.harness import TODAY
from tests.warehouse.engines import planted
from tests.warehouse.test_checks import LIVE, insert
from tests.warehouse.truth import DAY

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


STARTS = [
    ("2026-11-30 21:00:00", "+00", "Australia/Sydney", "2026-11-30 21:00:00"),  # 08:00 of the next day there
    ("2026-11-30 08:00:00", "+10", "Australia/Sydney", "2026-11-30 08:00:00"),  # that of the winter
    ("2026-11-30 08:00:00", "+11", "Australia/Sydney", None),
    ("2026-11-30 08:00:00", "+00", "Europe/Lisbon", None),
    ("2026-11-01 01:30:00", "-04", "America/New_York", None),  # an hour that is there twice
    ("2026-11-01 01:30:00", "-05", "America/New_York", None),
    ("2026-11-01 01:30:00", "-06", "America/New_York", "2026-11-01 01:30:00"),
]


def starts(local, offset, zone):
    return {
        "local_start_at": f"timestamp '{local}'", "utc_start_at": f"timestamptz '{local}{offset}'", "time_zone": f"'{zone}'"
    }  # fmt: skip


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
        ("bookings", {"unit_count": 0, "is_test": "true"}, []),
        ("bookings", {"unit_count": 0}, [("no_ticket", "unit_count", "0", 9)]),
        ("bookings", {"utc_expires_at": "timestamptz '9999-12-31 23:59:59+00'", "local_date": "date '0001-01-01'"},
         [("date_out_of_range", "local_date", "0001-01-01", 9), ("date_out_of_range", "utc_expires_at", "9999-12-31", 9)]),
        ("bookings", {"oddities": "'stands_twice:unitItems,unknown_time_zone:product.timeZone'"},
         [("stands_twice", "unitItems", None, 9), ("unknown_time_zone", "product.timeZone", None, 9)]),
        *((name, {**starts(*written), **more}, [("other_time_zone", "local_start_at", told, 9)] * (told is not None))
          for name, more in (("availability", {}), ("bookings", {"unit_count": 1}))
          for *written, told in STARTS),
        ("bookings", {"unit_count": 1, **starts(*STARTS[0][:3]), "time_zone": "null"}, []),
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


def test_a_sold_booking_of_a_departure_that_is_not_there_is_named_where_its_day_was_asked_for(engine, world):
    """Not one of a departure that another connection of the supplier shows, nor before its day was asked for again."""
    ahead = [b for b in world.now.bookings if b["sold"] and b["raw"]["availability_id"] and b["travel_date"]]
    near, far = (
        next(b for b in ahead if start < b["travel_date"] < end)
        for start, end in ((TODAY + 3 * DAY, TODAY + 29 * DAY), (TODAY + 35 * DAY, TODAY + 41 * DAY))
    )
    past = next(b for b in ahead if b["travel_date"] < TODAY)

    def named():
        rows = engine.query(
            "select booking_uuid, field, value from marts.data_quality where rule = 'no_departure'"
        ).rows
        return sorted(rows)

    def of(b, connection="%"):
        product, option, availability = b["slot"][1:]
        return (
            f"product_id = '{product}' and option_id = '{option}' and availability_id = '{availability}' "
            f"and connection_id like '{connection}'"
        )

    def gone(of):
        into = "update core.availability set is_deleted = {} where "
        return planted(engine, f"{into.format('true')}{of}", f"{into.format('false')}{of}")

    wanted = sorted(
        (b["booking_uuid"], "availability_id", b["slot"][3]) for b in ahead if b["slot"] == near["slot"]
    )  # fmt: skip
    with gone(of(near)):
        assert named() == wanted
        read = "update ops.coverage set verified_at_utc = verified_at_utc {} interval '200 days'"
        with planted(engine, read.format("-"), read.format("+")):
            assert named() == []
    with gone(of(near, "direct")):
        assert named() == []
    for other in (far, past):
        with gone(of(other)):
            assert named() == []
    spelled = "update core.availability set availability_id = {} where "
    theirs, ours = f"'X' || '{near['slot'][3]}'", f"'{near['slot'][3]}'"
    again = of(near).replace(ours, theirs)
    with planted(engine, spelled.format(theirs) + of(near), spelled.format(ours) + again):
        assert named() == wanted
    free = "update core.bookings set is_freesale = {} where " + of(near)
    with gone(of(near)), planted(engine, free.format("true"), free.format("false")):
        assert named() == []
