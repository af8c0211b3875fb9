"""What a month has on the books, then and now: the mart against the sandbox's bookings, question and page against the mart."""

import datetime as dt
import statistics
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from tests.flows.harness import TODAY
from tests.warehouse.engines import planted
from tests.warehouse.test_questions import answer
from tests.warehouse.truth import grouped, total

from octo_sync.flows import ask

DAY = dt.timedelta(days=1)
BACK = 340
"""Every other booking is moved back by so many days: of last year's, a part was not booked yet a year ago."""
ALL = {"first": TODAY - 900 * DAY, "last": TODAY + 900 * DAY}
ANY = {"product": None, "channel": None}
AGO = {"guests": 0, "guests_1_day_ago": 1, "guests_7_days_ago": 7, "guests_30_days_ago": 30, "guests_35_days_ago": 35}
AMOUNTS = {"retail_amount": 0} | {f"amount_{days}_day{'s' * (days > 1)}_ago": days for days in (1, 7, 30, 35)}


@pytest.fixture
def moved(engine, late):
    """Which bookings are in last year while the test runs."""
    found = set(sorted(b["booking_uuid"] for b in late.bookings)[::2])
    names = ", ".join(f"'{uuid}'" for uuid in found)
    shift = (
        f"update core.bookings set local_date = local_date {{0}} {BACK}, utc_created_at = utc_created_at {{0}} "
        f"interval '{BACK} days', utc_confirmed_at = utc_confirmed_at {{0}} interval '{BACK} days', "
        f"utc_cancelled_at = utc_cancelled_at {{0}} interval '{BACK} days' "
        f"where booking_uuid in ({names})"
    )
    with planted(engine, shift.format("-"), shift.format("+")):
        yield found


def read(engine, sql, values=()):
    found = engine.query(sql, values)
    return [dict(zip(found.columns, row, strict=True)) for row in found.rows]


def of_the_page(name):
    (query,) = (q for q in ask.questions(Path("nowhere"), "dashboard") if q.file.path.stem == name)
    return query


def dated(truth, moved):
    """Sold bookings as they are planted: month of travel, first day on the books, first day no longer there."""
    zones = {c.connection: ZoneInfo(c.zone) for c in truth.channels}
    for b in truth.bookings:
        if b["was_sold"] and b["travel_date"]:
            back = BACK * DAY * (b["booking_uuid"] in moved)

            def local(name, booking=b, back=back):
                at = dt.datetime.fromisoformat(booking["raw"][name]) - back
                return at.astimezone(zones[booking["connection"]]).date()

            gone = local("utc_cancelled_at") if b["cancelled"] else dt.date.max
            month = (b["travel_date"] - back).replace(day=1)
            sold = max(local("utc_created_at"), local("utc_confirmed_at"))
            yield b | {"month": month, "from": sold, "until": gone}


def later(month, years):
    return month.replace(year=month.year + years)


def test_the_mart_is_what_was_on_the_books_then_and_a_year_before(engine, world, late, moved):
    channels = {c.connection: c for c in world.now.channels}
    now = dt.datetime.fromisoformat(world.now.channels[0].state["now"])
    # Connections of one supplier share the latest of their days; the one before it is the last whole one.
    whole = {
        name: max(now.astimezone(ZoneInfo(c.zone)).date() for c in channels.values() if c.seller == own.seller) - DAY
        for name, own in channels.items()
    }
    bookings = list(dated(late, moved))

    def there(key, day, years=0):
        """The bookings of a row's month, or of the one so many years before, that were on the books by the end of a day."""
        connection, product, month, currency = key
        month = later(month, -years)
        return [
            b
            for b in bookings
            if (b["connection"], b["product_name"], b["month"], b["currency"]) == (connection, product, month, currency)
            and b["from"] <= day < b["until"]
        ]

    def people(found, field="guests"):
        return total(found, field) if found else 0

    rows = read(engine, "select * from marts.agg_pickup")
    by_key = {(r["connection_id"], r["product_name"], r["travel_month"], r["currency"]): r for r in rows}
    assert len(by_key) == len(rows)
    assert set(by_key) == {
        (b["connection"], b["product_name"], later(b["month"], years), b["currency"])
        for b in bookings
        for years in (0, 1)
    }
    differ = 0
    for key, row in by_key.items():
        day = whole[key[0]]
        year_ago = later(day, -1)
        now_there, then, final = there(key, day), there(key, year_ago, 1), there(key, day, 1)
        differ += then != final and bool(then)
        assert row["as_of_date"] == day
        assert row["bookings"] == len(now_there)
        assert {n: row[n] for n in AGO} == {n: people(there(key, day - days * DAY)) for n, days in AGO.items()}, key
        wanted = {n: people(there(key, day - days * DAY), "retail") for n, days in AMOUNTS.items()}
        assert {n: row[n] for n in AMOUNTS} == wanted, key
        for days in (7, 30):
            before = there(key, year_ago - days * DAY, 1)
            assert row[f"last_year_guests_{days}_days_before"] == people(before)
            assert row[f"last_year_amount_{days}_days_before"] == people(before, "retail")
        assert (row["last_year_guests"], row["last_year_amount"]) == (people(then), people(then, "retail"))
        assert (row["last_year_final_guests"], row["last_year_final_amount"]) == (
            people(final),
            people(final, "retail"),
        )
        counted = {b["booking_uuid"]: b for b in (*now_there, *then, *final)}
        assert row["bookings_without_guests"] == sum(b["guests"] is None for b in counted.values())
        before = later(key[2], -1)
        assert row["is_complete"] is channels[key[0]].knows_month(key[2])
        assert row["is_last_year_complete"] is channels[key[0]].knows_month(before)
    assert differ, "otherwise last year's time would not be told from its end"


def summed(rows, name):
    """What all rows together have; None where one of them is unknown."""
    return None if any(row[name] is None for row in rows) else sum(row[name] for row in rows)


def less(rows, now, then, parts=1):
    new, old = summed(rows, now), summed(rows, then)
    return None if new is None or old is None else (new - old) / parts


def a_quarter(amount):
    return None if amount is None else (amount / 4).quantize(Decimal("0.0001"), ROUND_HALF_UP)


def known(rows, name):
    return summed(rows, name) if all(row["is_last_year_complete"] for row in rows) else None


@pytest.mark.usefixtures("moved")
def test_the_question_adds_the_channels_of_a_product(engine):
    lines = grouped(read(engine, "select * from marts.agg_pickup"), "product_name", "travel_month", "currency")
    asked = {(r["product_name"], r["travel_month"], r["currency"]): r for r in answer(engine, 23, **ALL)}

    assert set(asked) == set(lines)
    assert any(row["last_year_final"] for row in asked.values())
    assert any(row["last_year_guests"] is None for row in asked.values())
    for key, row in asked.items():
        assert row == {
            **dict(zip(("product_name", "travel_month", "currency"), key, strict=True)),
            "guests": summed(lines[key], "guests"),
            "new_in_7_days": less(lines[key], "guests", "guests_7_days_ago"),
            "usual_week": less(lines[key], "guests_7_days_ago", "guests_35_days_ago", 4),
            "last_year_guests": known(lines[key], "last_year_guests"),
            "last_year_final": known(lines[key], "last_year_final_guests"),
            "retail_amount": summed(lines[key], "retail_amount"),
            "last_year_amount": known(lines[key], "last_year_amount"),
            "bookings_without_guests": summed(lines[key], "bookings_without_guests"),
            "is_complete": all(line["is_complete"] for line in lines[key]),
        }


def as_of(lines):
    """The first and the last of the days by whose ends they were counted."""
    days = [line["as_of_date"] for line in lines]
    return {"first_as_of_date": min(days), "as_of_date": max(days)}


GROUPS = {
    "month": ["travel_month"],
    "product": ["travel_month", "product_key", "product_name"],
    "channel": ["product_key", "product_name", "connection_id", "channel_name"],
}
NAMES = dict.fromkeys(name for names in GROUPS.values() for name in names)


@pytest.mark.usefixtures("moved")
@pytest.mark.parametrize("by", GROUPS)
def test_the_page_adds_what_travels_in_a_month(engine, by):
    names = GROUPS[by]
    lines = grouped(read(engine, "select * from marts.agg_pickup"), *names)

    shown = read(engine, of_the_page("pace").sql, {**ALL, **ANY, "by": by})

    assert sorted(tuple(row[each] for each in names) for row in shown) == sorted(lines)
    for row in shown:
        of = lines[tuple(row[each] for each in names)]
        assert row == {
            **NAMES,
            **{each: row[each] for each in names},
            **as_of(of),
            "guests": summed(of, "guests"),
            "last_day": less(of, "guests", "guests_1_day_ago"),
            "last_week": less(of, "guests", "guests_7_days_ago"),
            "last_30_days": less(of, "guests", "guests_30_days_ago"),
            "usual_week": less(of, "guests_7_days_ago", "guests_35_days_ago", 4),
            "last_year": summed(of, "last_year_guests"),
            "last_year_week": less(of, "last_year_guests", "last_year_guests_7_days_before"),
            "last_year_30_days": less(of, "last_year_guests", "last_year_guests_30_days_before"),
            "last_year_final": summed(of, "last_year_final_guests"),
            "is_complete": all(line["is_complete"] for line in of),
            "is_last_year_complete": all(line["is_last_year_complete"] for line in of),
        }
    known = [(row["travel_month"] or dt.date.min, -row["guests"]) for row in shown if row["guests"] is not None]
    assert known == sorted(known) != []


@pytest.mark.usefixtures("moved")
@pytest.mark.parametrize("by", ["month", "product"])
def test_the_page_adds_amounts_of_one_currency(engine, by):
    names = [*GROUPS[by], "currency"]
    lines = grouped(read(engine, "select * from marts.agg_pickup"), *names)

    shown = read(engine, of_the_page("pace_amounts").sql, {**ALL, **ANY, "by": by})

    assert sorted(tuple(row[each] for each in names) for row in shown) == sorted(lines)
    known = [(row["travel_month"], row["currency"], -row["amount"]) for row in shown if row["amount"] is not None]
    assert known == sorted(known) != []
    for row in shown:
        of = lines[tuple(row[each] for each in names)]
        assert row == {
            "product_key": None,
            "product_name": None,
            **{each: row[each] for each in names},
            **as_of(of),
            "amount": summed(of, "retail_amount"),
            "last_day": less(of, "retail_amount", "amount_1_day_ago"),
            "last_week": less(of, "retail_amount", "amount_7_days_ago"),
            "last_30_days": less(of, "retail_amount", "amount_30_days_ago"),
            "usual_week": a_quarter(less(of, "amount_7_days_ago", "amount_35_days_ago")),
            "last_year": summed(of, "last_year_amount"),
            "last_year_week": less(of, "last_year_amount", "last_year_amount_7_days_before"),
            "last_year_30_days": less(of, "last_year_amount", "last_year_amount_30_days_before"),
            "last_year_final": summed(of, "last_year_final_amount"),
            "is_complete": all(line["is_complete"] for line in of),
            "is_last_year_complete": all(line["is_last_year_complete"] for line in of),
        }


def test_a_channel_alone_is_what_the_page_shows_of_it(engine, world):
    (name, *_) = [c.connection for c in world.now.channels]
    lines = read(engine, f"select * from marts.agg_pickup where connection_id = '{name}'")
    for query, given, *by in (
        ("pace", {"by": "month"}, "travel_month"),
        ("pace_amounts", {"by": "month"}, "travel_month", "currency"),
        ("pace", {"by": "channel"}, "channel_name"),
    ):
        shown = read(engine, of_the_page(query).sql, {**ALL, **ANY, "channel": name, **given})
        assert {tuple(row[each] for each in by) for row in shown} == set(grouped(lines, *by)), query
    curve = read(engine, f"select * from marts.agg_pickup_curve where connection_id = '{name}' and days_out = 0")
    shown = read(engine, of_the_page("pickup").sql, {**ALL, **ANY, "channel": name})
    final = {month: summed(of, "final_guests") for (month,), of in grouped(curve, "travel_month").items()}
    assert {row["travel_month"]: row["final_guests"] for row in shown if row["days_out"] == 0} == final != {}


def test_lead_times_are_counted_from_booking_to_travel_at_the_venue(engine, world):
    wanted = {}
    for b in world.now.bookings:
        if b["sold"] and b["travel_date"]:
            made = dt.datetime.fromisoformat(b["raw"]["utc_created_at"]).astimezone(ZoneInfo(b["raw"]["time_zone"]))
            wanted.setdefault(b["channel_name"], []).append((b["travel_date"] - made.date()).days)
    spans = {
        "same_day": (-9_999, 0),
        "days_1_2": (1, 2),
        "days_3_7": (3, 7),
        "days_8_30": (8, 30),
        "days_31_90": (31, 90),
    }
    spans["over_90"] = (91, 9_999)
    connections = {c.name: c.connection for c in world.now.channels}
    shown = read(engine, of_the_page("lead_times").sql, {**ALL, **ANY})
    assert shown == [
        {
            "channel_name": row["channel_name"],
            "connection_id": connections[row["channel_name"]],
            "bookings": len(days := wanted[row["channel_name"]]),
            "median_lead_days": statistics.median(days),
            "not_known": 0,
        }
        | {name: sum(first <= each <= last for each in days) for name, (first, last) in spans.items()}
        for row in shown
    ]
    assert {row["channel_name"] for row in shown} == wanted.keys()
    assert sum(sum(row[name] > 0 for name in spans) for row in shown) > len(spans)
