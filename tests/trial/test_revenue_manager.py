"""A revenue manager's ten questions, each from Overview to a figure, against the service's own state."""

import datetime as dt
from collections import defaultdict
from decimal import Decimal
from statistics import median

import pytest
from tests.trial.morning import LAST_MONTH, NAMES, NOW, THIS_MONTH, TODAY
from tests.trial.person import amount, number, starts
from tests.warehouse.truth import DAY, WEEKDAYS, grouped, total

MONTHS = {LAST_MONTH: "Oct 2026", THIS_MONTH: "Nov 2026"}
YESTERDAY = TODAY - DAY
PACE = "Guests on the books, by month of travel"
ROUNDED = 0.5001
"""What is shown without decimals is off by half at most."""


def travelled(truth, month):
    return [b for b in truth.bookings if b["sold"] and b["travel_date"] and f"{b['travel_date']:%Y-%m}" == month]


def on_the_books(truth, first, last, day):
    """Guests who travel from first to last, of the bookings that stood at the end of a day."""
    return sum(
        b["guests"]
        for b in truth.bookings
        if b["was_sold"] and b["travel_date"] and first <= b["travel_date"] <= last
        if b["booking_date"] <= day and not (b["cancelled"] and b["cancelled_date"] <= day)
    )


def by_channel(person, month, *columns):
    """(currency, channel) → what the page Channels says in a month."""
    return {
        (caption.split()[2].rstrip(","), row["Channel"]): [row[column] for column in columns]
        for caption in person.captions()
        if caption.startswith("Channels in")
        for row in person.table(caption)
        if row["Travel month"] == MONTHS[month]
    }


async def test_on_the_books(person, morning):
    await person.click("Pick-up")
    (row,) = [row for row in person.table(PACE) if row["Travel month"] == "Dec 2026"]

    december, last_december = ([dt.date(year, 12, day) for day in (1, 31)] for year in (2026, 2025))
    now = on_the_books(morning.now, *december, YESTERDAY)
    then = on_the_books(morning.now, *last_december, YESTERDAY.replace(year=2025))
    assert [number(row["Guests"]), number(row["Same time last year"])] == [now, then]
    assert now != then != 0 != now


async def test_pick_up(person, morning):
    await person.click("Pick-up")
    (row,) = [row for row in person.table(PACE) if row["Travel month"] == "all of them"]

    months = dt.date(2026, 8, 1), dt.date(2027, 3, 31)
    now, week_ago, before = (on_the_books(morning.now, *months, YESTERDAY - days * DAY) for days in (0, 7, 35))
    assert number(row["New in 7 days"]) == now - week_ago != 0
    assert float(number(row["Usual week"])) == pytest.approx((week_ago - before) / 4, abs=0.051)


async def test_channel_mix(person, morning):
    await person.click("Channels")
    found = {key: number(share) for key, (share,) in by_channel(person, THIS_MONTH, "Share").items()}

    sold = [b for b in travelled(morning.now, THIS_MONTH) if b["currency"]]
    whole = {currency: total(rows, "retail") for (currency,), rows in grouped(sold, "currency").items()}
    wanted = {
        key: 100 * float(total(rows, "retail") / whole[key[0]])
        for key, rows in grouped(sold, "currency", "channel_name").items()
    }
    assert {key: float(share) for key, share in found.items()} == pytest.approx(wanted, abs=ROUNDED)
    assert len(whole) > 4


async def test_margin(person, morning):
    await person.click("Channels")
    found = by_channel(person, LAST_MONTH, "Seller's margin", "Rate")

    rows = grouped([b for b in travelled(morning.now, LAST_MONTH) if b["currency"]], "currency", "channel_name")
    assert found.keys() == rows.keys()
    for key, sold in rows.items():
        known = [b for b in sold if b["net"] is not None]
        retail, net = total(known, "retail"), total(known, "net")
        margin, rate = found[key]
        if not known:
            assert [margin, rate] == ["unknown", "unknown"]
            continue
        assert amount(margin) == (retail - net, key[0])
        assert float(number(rate)) == pytest.approx(100 * float((retail - net) / retail), abs=ROUNDED)
    assert {channel for _, channel in rows} == set(NAMES.values())


async def test_revenue_per_guest(person, morning):
    await person.click("Revenue")
    caption = "Revenue per guest and per seat offered, by month of travel and product; all channels together"
    rows = [row for row in person.table(caption) if row["Travel month"] == MONTHS[THIS_MONTH]]
    found = {row["Product"]: amount(row["Per guest"]) for row in rows}

    sold = grouped(travelled(morning.now, THIS_MONTH), "product_name", "currency")
    assert found.keys() == {product for product, _ in sold}
    for (product, currency), those in sold.items():
        exact = total(those, "retail") / total(those, "guests")
        shown, of = found[product]
        assert of == currency
        assert abs(shown - exact) <= Decimal(5).scaleb(shown.as_tuple().exponent - 1)


async def test_lead_time(person, morning):
    await person.click("Pick-up")
    rows = person.table("Days from booking to travel, by channel")
    found = {row["Channel"]: float(number(row["Median days"])) for row in rows}

    sold = morning.now.sold(dt.date(2026, 8, 1), dt.date(2027, 3, 31))
    wanted = {channel: median(b["lead"] for b in those) for (channel,), those in grouped(sold, "channel_name").items()}
    assert found == wanted
    assert wanted.keys() == set(NAMES.values())


async def test_fullest_hour(person, morning):
    await person.click("Occupancy")
    rows = person.table("Occupancy by weekday and hour of departure")
    fullest = max(rows, key=lambda row: -1 if row["Occupancy"] in ("unknown", "—") else number(row["Occupancy"]))

    places = defaultdict(lambda: [0, 0])
    for d in morning.departures:
        if d["taken"] is not None and TODAY <= d["travel_date"] < TODAY + 42 * DAY:
            whole_day = morning.now.products[d["product"]]["availability_type"] == "OPENING_HOURS"
            hour = "all day" if whole_day else f"{d['start']:%H}:00"
            for n, name in enumerate(("taken", "capacity")):
                places[WEEKDAYS[d["travel_date"].weekday()], hour][n] += d[name]
    best = max(100 * taken / capacity for taken, capacity in places.values())
    here = places[fullest["Weekday"], fullest["Hour"]]
    assert [number(fullest["Taken"]), number(fullest["Capacity"])] == here
    assert 100 * here[0] / here[1] == pytest.approx(best, abs=2 * ROUNDED)
    assert float(number(fullest["Occupancy"])) == pytest.approx(best, abs=2 * ROUNDED)


def usual(morning, departure, ahead):
    """The median share taken of its option's departures of last week, as the pull a week ago saw them, and of how many."""
    shares = [
        (d["capacity"] - d["vacancies"]) / d["capacity"]
        for d in morning.before.departures
        if d["slot"][:3] == departure["slot"][:3] and d["taken"] is not None
        if morning.days_ahead(d) < 0 and d["utc_start"] - ahead * DAY > NOW - 8 * DAY
    ]
    return (median(shares) if len(shares) >= 5 else None), len(shares)


async def test_filling_faster(person, morning):
    await person.click("Availability")
    found = {
        (row["Departure"], row["Product"], row["Option"]): [
            float(number(row["Full"])), float(number(row["Usually"])), int(row["Departures compared"])
        ]
        for row in person.table("Departures that fill faster than usual")
    }  # fmt: skip

    wanted = {}
    for d in morning.now.departures:
        days = morning.days_ahead(d)
        if d["rate"] is None or not 1 <= days <= 30:
            continue
        mark = max(each for each in (1, 2, 3, 5, 7, 10, 14, 21, 30) if each <= days)
        share, of = usual(morning, d, mark)
        if share is not None and d["rate"] >= share + 0.2:
            wanted[starts(d), d["product_name"], d["option_name"]] = [100 * d["rate"], 100 * share, of]
    assert found.keys() == wanted.keys()
    for key, figures in found.items():
        assert figures == pytest.approx(wanted[key], abs=ROUNDED)
    assert len(wanted) > 5


async def test_sold_out_ahead(person, morning):
    await person.click_tile("Product-days sold out, next 30 days")
    found = {row["Product"]: int(row["Sold-out days"]) for row in person.table("Occupancy by product")}

    wanted = dict.fromkeys(found, 0)
    ahead = [d for d in morning.departures if TODAY <= d["travel_date"] < TODAY + 30 * DAY]
    for (product, _), rows in grouped(ahead, "product_name", "travel_date").items():
        gone = all(d["closed"] or d["sold_out"] for d in rows)
        wanted[product] += gone and any(d["sold_out"] for d in rows)
    assert found == wanted
    assert any(wanted.values())
    assert len(found) == len(morning.now.products)


async def test_cancelled(person, morning):
    await person.click("Cancellations")
    rows = person.table("Share cancelled, by month of booking and channel")
    found = {r["Channel"]: float(number(r["Share"])) for r in rows if r["Month of booking"] == MONTHS[LAST_MONTH]}

    made = [b for b in morning.now.bookings if b["was_sold"] and f"{b['booking_date']:%Y-%m}" == LAST_MONTH]
    wanted = {
        channel: 100 * sum(b["cancelled"] for b in those) / len(those)
        for (channel,), those in grouped(made, "channel_name").items()
    }
    assert found == pytest.approx(wanted, abs=ROUNDED)
    assert any(wanted.values())
