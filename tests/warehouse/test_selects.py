"""Sums of bookings and lists of departures on the pages: against the sandbox's own state, whatever is chosen."""

from statistics import median
from zoneinfo import ZoneInfo

import pytest
from tests.flows.harness import NOON, TODAY
from tests.warehouse.conftest import LATER
from tests.warehouse.test_finance import sums
from tests.warehouse.test_questions import AROUND, same
from tests.warehouse.test_revenue import page
from tests.warehouse.truth import DAY, grouped, month_of, people, total

NOW, THEN = NOON + LATER, TODAY - 25 * DAY
MONTHS = ("currency", "travel_month", "connection_id", "channel_name")
PRODUCTS = ("currency", "product_key", "product_name", "connection_id", "channel_name")
MADE_IN = ("booking_month", "connection_id", "channel_name")
MADE_OF = ("product_key", "product_name", "currency")


def named(b):
    """A booking with what the selects call its parts."""
    months = {f"{which}_month": (day := b[f"{which}_date"]) and month_of(day) for which in ("travel", "booking")}
    return b | months | {"product_key": "|".join(b["slot"][:2]), "connection_id": b["connection"]}


def is_sold(b):
    return b["sold"]


def was_there_then(b):
    """On the books at the end of a day."""
    return b["was_sold"] and b["sold_date"] <= THEN and not (b["cancelled"] and b["cancelled_date"] <= THEN)


def was_sold(b):
    return b["was_sold"]


def margins(rows):
    margins = [b | {"margin": b["retail"] - b["net"]} for b in rows if b["net"] is not None]
    return sums(rows) | {"margin_amount": total(margins, "margin")}


def lost(rows):
    gone = [b for b in rows if b["cancelled"]]
    return {"was_sold": len(rows), "cancelled": len(gone), "cancellation_rate": len(gone) / len(rows)}


def lost_money(rows):
    gone = [b for b in rows if b["cancelled"]]
    return lost(rows) | {
        "cancelled_retail": total(gone, "retail") if gone else 0,
        "cancelled_guests": total(gone, "guests"),
    }


@pytest.mark.parametrize(
    ("name", "given", "day", "counts", "keys", "figures", "order"),
    [
        ("revenue_months", {"by": None}, "travel_date", is_sold, MONTHS, sums, MONTHS[:2]),
        ("revenue_months", {"by": THEN}, "travel_date", was_there_then, MONTHS, sums, MONTHS[:2]),
        ("revenue_products", {}, "travel_date", is_sold, PRODUCTS, margins, ("currency", "-retail_amount")),
        ("cancellations_months", {}, "booking_date", was_sold, MADE_IN, lost, ("booking_month", "channel_name")),
        ("cancellations_products", {}, "booking_date", was_sold, MADE_OF, lost_money, ("-cancelled", "product_name")),
    ],
)
def test_sums_of_bookings_are_those_of_what_is_chosen(engine, late, name, given, day, counts, keys, figures, order):
    within = [named(b) for b in late.bookings if counts(b) and b[day]]
    within = [b for b in within if AROUND["first"] <= b[day] <= AROUND["last"]]
    chosen = {"product": within[0]["product_key"], "channel": "agents"}
    chosen |= {"currency": "EUR"} if name.startswith("revenue") else {}
    columns = {"product": "product_key", "channel": "connection_id", "currency": "currency"}
    for only in ({}, *({field: value} for field, value in chosen.items())):
        of = [b for b in within if all(b[columns[field]] == value for field, value in only.items())]
        found = page(engine, name, **AROUND, **given, **only)

        same(found, [dict(zip(keys, key, strict=True)) | figures(rows) for key, rows in grouped(of, *keys).items()])
        assert found == sorted(found, key=lambda row: [-row[n[1:]] if n[0] == "-" else row[n] for n in order])
        assert 0 < len(of) < len(within) or not only


def departures(world, first, last, below, product=None):
    """Those of a time, as they were last seen, each with the list that it belongs to."""
    seen = {d["slot"]: d for d in (*world.before.departures, *world.now.departures)}
    ours = grouped([b for b in world.now.bookings if b["sold"]], "slot")
    for d in seen.values():
        if not first <= d["travel_date"] <= last or product not in (None, "|".join(d["product"])):
            continue
        known = world.now.products[d["product"]]
        zone = ZoneInfo(known["time_zone"])
        is_over = d["travel_date"] < NOW.astimezone(zone).date()
        has_left = not is_over and d["utc_start"] <= NOW and known["availability_type"] != "OPENING_HOURS"
        states = {
            "closed": d["closed"],
            "sold out": d["sold_out"],
            "nearly": d["rate"] is not None and d["rate"] >= 0.9,
            "weak": d["rate"] is not None and d["rate"] < below / 100 and not has_left,
            "other": True,
        }
        state = next(name for name, is_so in states.items() if is_so)
        ended = not is_over and d["utc_cutoff"] is not None and d["utc_cutoff"] <= NOW
        yield {
            "slot_key": "|".join(d["slot"]),
            "travel_date": d["travel_date"],
            "local_start_at": d["start"],
            "product_name": d["product_name"],
            "option_name": d["option_name"],
            "state": state,
            "list": "full" if state in ("sold out", "nearly") else state,
            "status": d["status"],
            "sold_until": d["utc_cutoff"].astimezone(zone).replace(tzinfo=None) if ended else None,
            "taken": d["taken"],
            "capacity": d["capacity"],
            "fill_rate": d["rate"],
            "our_guests": people(ours.get((d["slot"],), [])),
        }


@pytest.mark.parametrize("days", [(-1, 25), (0, 0), (1, 1), (2, 2)], ids=str)
@pytest.mark.parametrize("below", [20, 60])
def test_departures_are_listed_by_how_full_they_are(engine, world, days, below):
    window = {"first": TODAY + days[0] * DAY, "last": TODAY + days[1] * DAY}
    alone = "|".join(world.now.departures[0]["product"])
    for most, only in ((1000, {}), (3, {}), (1000, {"product": alone})):
        of = [
            d for d in departures(world, **window, below=below, **only)
            if d["state"] != "other" or window["first"] == window["last"]
        ]  # fmt: skip
        order = ("local_start_at", "product_name", "option_name", "slot_key")
        places = [
            d | {"place": place} | {name.replace(" ", "_"): sum(each["state"] == name for each in of)
                                    for name in ("closed", "sold out", "nearly", "weak")} | {"departures": len(of)}
            for rows in grouped(of, "list").values()
            for place, d in enumerate(sorted(rows, key=lambda d: [d[name] for name in order]), 1)
        ]  # fmt: skip
        found = page(engine, "occupancy_departures", **window, below=below, most=most, **only)

        same(found, [d for d in places if d["place"] <= most])
    assert len({d["state"] for d in departures(world, **window, below=below)}) > 1


def test_bookings_of_a_day_are_counted_by_channel(engine, world):
    made = grouped(
        [b for b in world.now.bookings if AROUND["first"] <= b["booking_date"] <= TODAY], "booking_date", "connection"
    )

    def counted(day, channel):
        rows = made.get((day, channel.connection), [])
        sold = [b for b in rows if b["sold"]]
        return {
            "booking_date": day,
            "connection_id": channel.connection,
            "channel_name": channel.name,
            "made": len(rows),
            "bookings": sum(b["was_sold"] for b in rows),
            "sold": len(sold),
            "sold_without_guests": sum(b["guests"] is None for b in sold),
            "still_open": sum(b["status"] in ("ON_HOLD", "PENDING") for b in rows),
            "cancelled": sum(b["was_sold"] and b["cancelled"] for b in rows),
            "guests": people(sold),
            "is_complete": channel.knows(day),
        }

    found = page(engine, "bookings_by_channel", first=AROUND["first"], last=TODAY)

    days = {row["booking_date"] for row in found}
    same(found, [counted(day, channel) for day in days for channel in world.now.channels])
    assert {day for day, _ in made} <= days


def test_sold_bookings_without_a_day_of_travel_are_in_no_month(engine, world):
    undated = [named(b) for b in world.now.bookings if b["sold"] and b["travel_date"] is None]
    for only in ({}, {"channel": undated[0]["connection"]}, {"currency": undated[0]["currency"]}):
        columns = {"channel": "connection", "currency": "currency"}
        of = [b for b in undated if all(b[columns[field]] == value for field, value in only.items())]
        same(
            page(engine, "revenue_undated", **only),
            [
                {
                    "currency": currency,
                    "bookings": len(rows),
                    "redeemed": sum(b["status"] == "REDEEMED" for b in rows),
                    "retail_amount": total(rows, "retail"),
                }
                for (currency,), rows in grouped(of, "currency").items()
            ],
        )


def test_guests_come_on_the_books_and_leave_them_day_by_day(engine, late):
    since, by = TODAY - 30 * DAY, TODAY - DAY
    moves = [
        {"day": day, "guests": guests}
        for b in late.bookings
        if b["was_sold"] and b["travel_date"] and month_of(TODAY) <= month_of(b["travel_date"]) <= TODAY + 30 * DAY
        for day, guests in (
            (b["sold_date"], b["guests"]),
            *([(max(b["cancelled_date"], b["sold_date"]), b["guests"] and -b["guests"])] if b["cancelled"] else []),
        )
        if since <= day <= by
    ]

    found = page(engine, "pace_days", first=TODAY, last=TODAY + 30 * DAY, since=since, by=by)

    same(found, [{"day": day, "guests": total(rows, "guests")} for (day,), rows in grouped(moves, "day").items()])
    assert any(move["guests"] < 0 for move in moves)


def test_guests_of_a_day_are_those_of_sold_bookings(engine, world):
    window = {"first": TODAY - 29 * DAY, "last": TODAY + 2 * DAY}
    dated = [b for b in world.now.bookings if b["sold"] and b["travel_date"]]
    within = [b for b in dated if window["first"] <= b["travel_date"] <= window["last"]]

    found = page(engine, "today_guests", **window)

    days = grouped(within, "travel_date")
    same(found, [{"travel_date": day, "guests": total(rows, "guests")} for (day,), rows in days.items()])


def test_lead_times_of_the_last_days_stand_beside_those_before(engine, world):
    before, first, last = TODAY - 60 * DAY, TODAY - 30 * DAY, TODAY - DAY
    made = [
        {"lead": b["lead"] if b["sold"] else None, "cancelled": b["cancelled"], "is_recent": b["booking_date"] >= first,
         "weeks_ago": (last - b["booking_date"]).days // 7}
        for b in world.now.bookings
        if b["was_sold"] and before <= b["booking_date"] <= last
    ]  # fmt: skip

    def told(rows):
        leads = [row["lead"] for row in rows if row["lead"] is not None]
        return {
            "was_sold": len(rows),
            "cancelled": sum(row["cancelled"] for row in rows),
            "with_lead": len(leads),
            "median_lead_days": float(median(leads)) if leads else None,
        }

    same(
        page(engine, "lead_time", before=before, first=first, last=last),
        [
            {"is_recent": None, "weeks_ago": None} | {by: value} | told(rows)
            for by in ("is_recent", "weeks_ago")
            for (value,), rows in grouped(made, by).items()
        ],
    )
