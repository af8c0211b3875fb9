"""What a controller asks: net payable, taxes, refunds, deferred revenue, against the sandbox's bookings."""

import contextlib
import copy
import datetime as dt
from collections import defaultdict
from decimal import Decimal
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from tests.flows.harness import TODAY
from tests.warehouse.engines import planted
from tests.warehouse.test_questions import answer, same
from tests.warehouse.truth import DAY, Truth, grouped, instant, money, month_of, total

from octo_sync.flows import ask

ALL = {"first": TODAY - 400 * DAY, "last": TODAY + 400 * DAY}
REFUNDS = ("PARTIAL", None, "VOUCHER")
"""What services say besides FULL and NONE; the sandbox says only those."""


def page(engine, name, **given):
    (query,) = (q for q in ask.questions(Path("nowhere"), "dashboard") if q.file.path.stem == name)
    given = {**ALL, "channel": None, "currency": None} | given
    found = engine.query(query.sql, {p.name: given[p.name] for p in query.parameters})
    return [dict(zip(found.columns, row, strict=True)) for row in found.rows]


def channel_of(world, connection):
    return next(c for c in world.now.channels if c.connection == connection)


def today_of(channel):
    return instant(channel.state["now"]).astimezone(ZoneInfo(channel.zone)).date()


# -- net payable and taxes ------------------------------------------------------------------------------------------------


def test_net_payable_is_that_of_sold_bookings_by_month_of_travel(engine, world):
    sold = [b | {"month": month_of(b["travel_date"])} for b in world.now.sold(**ALL)]

    def margin(rows):
        known = [b["retail"] - b["net"] for b in rows if b["net"] is not None]
        return sum(known) if known else None

    wanted = [
        {
            "travel_month": month,
            "channel_name": rows[0]["channel_name"],
            "currency": currency,
            "bookings": len(rows),
            "retail_amount": total(rows, "retail"),
            "retail_with_net": total([b for b in rows if b["net"] is not None], "retail"),
            "net_amount": total(rows, "net"),
            "margin_amount": margin(rows),
            "without_net": sum(b["net"] is None for b in rows),
            "is_over": month < month_of(today_of(channel_of(world, connection))),
            "is_complete": channel_of(world, connection).knows_month(month),
        }
        for (month, connection, currency), rows in grouped(sold, "month", "connection", "currency").items()
    ]
    same(page(engine, "finance_net"), wanted)
    assert {row["is_complete"] for row in wanted} == {row["is_over"] for row in wanted} == {True, False}
    assert any(row["retail_with_net"] != row["retail_amount"] for row in wanted)


def taxes(world):
    """Each tax of each sold booking, a name that stands twice added up."""
    for b in world.now.sold(**ALL):
        named = defaultdict(lambda: {"retail": 0, "net": 0})
        for tax in b["raw"]["taxes"]:
            for part, counted in named[tax["name"]].items():
                named[tax["name"]][part] = None if tax[part] is None or counted is None else counted + tax[part]
        for name, parts in named.items():
            yield (
                b
                | {"tax": name, "month": month_of(b["travel_date"])}
                | {f"{part}_tax": money(minor, b["raw"]["precision"]) for part, minor in parts.items()}
            )


def behind_taxes(engine, row):
    """How many bookings a row of taxes leads to: the list's rows, and what it counts."""
    first = row["travel_month"]
    only = {"alone": "tax" if row["tax_name"] else "no_tax", "tax": row["tax_name"], "product": None}
    asked = {
        **only,
        "channel": row["connection_id"],
        "currency": row["currency"],
        "kind": "sold",
        "first": first,
        "last": next(ends(first, first)),
        **dict.fromkeys(("by", "since", "now", "least", "greatest")),
        "most": 1000,
    }
    listed, totals = (page(engine, name, **asked) for name in ("bookings", "bookings_totals"))
    return [len(listed), sum(row["bookings"] for row in totals)]


def test_taxes_by_name_are_those_of_the_bookings(engine, world):
    """Those that state none are a row without a name: one lost its taxes. Another's are in another currency than its price."""
    found = list(taxes(world))
    gone, other = found[0]["booking_uuid"], found[-1]["booking_uuid"]
    untaxed = [
        b | {"tax": None, "month": month_of(b["travel_date"]), "retail_tax": None, "net_tax": None}
        for b in world.now.sold(**ALL)
        if not b["raw"]["taxes"] or b["booking_uuid"] == gone
    ]

    def summed(rows):
        return {
            "bookings": len(rows),
            "retail_tax": total(rows, "retail_tax"),
            "net_tax": total(rows, "net_tax"),
            "is_complete": all(channel_of(world, b["connection"]).knows_month(b["month"]) for b in rows),
        }

    named = ("travel_month", "tax_name", "currency", "channel_name")
    wanted = [
        dict(zip(named, key, strict=True)) | summed(rows)
        for key, rows in grouped(found, "month", "tax", "currency", "channel_name").items()
    ]
    same(answer(engine, 24, **ALL), wanted)
    kept = f"from core.booking_taxes where booking_uuid = '{gone}'"
    with planted(
        engine,
        f"create table ops.taxes_gone as select * {kept}; delete {kept}; "
        f"update core.booking_taxes set currency = 'XTS' where booking_uuid = '{other}'",
        "insert into core.booking_taxes select * from ops.taxes_gone; drop table ops.taxes_gone; "
        f"update core.booking_taxes set currency = '{found[-1]['currency']}' where booking_uuid = '{other}'",
    ):
        shown = page(engine, "finance_taxes")
        assert [behind_taxes(engine, row) for row in shown] == [[row["bookings"]] * 2 for row in shown]
    stated = [
        b | ({"currency": "XTS", "retail": None} if b["booking_uuid"] == other else {})
        for b in found
        if b["booking_uuid"] != gone
    ]
    same(
        shown,
        [
            dict(zip(named, key, strict=True))
            | summed(rows)
            | {
                "retail_amount": total(rows, "retail"),
                "is_over": all(key[0] < month_of(today_of(channel_of(world, b["connection"]))) for b in rows),
            }
            for key, rows in grouped([*stated, *untaxed], "month", "tax", "currency", "channel_name").items()
        ],
    )
    assert len({b["tax"] for b in found}) > 1
    ((here, there),) = engine.query(
        "select (select sum(retail_amount) from marts.fct_taxes where is_sold and currency = 'EUR'), "
        "(select sum(tax_amount) from marts.fct_bookings where is_sold and currency = 'EUR')"
    ).rows
    assert here == there > 0


# -- refunds --------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def told(engine, world):
    """The oracle where some cancellations say what the sandbox never says, while the copy has it too."""
    channels = copy.deepcopy(world.now.channels)
    raws = [r for c in channels for r in c.state["bookings"] if r["status"] == "CANCELLED" and r["utc_confirmed_at"]]
    plant, undo = [], []
    for number, raw in enumerate(raws):
        if number % 5 < len(REFUNDS):
            was, raw["refund"] = raw["refund"], REFUNDS[number % 5]
            for into, refund in ((plant, raw["refund"]), (undo, was)):
                value = f"'{refund}'" if refund else "null"
                into.append(
                    f"update core.bookings set cancellation_refund = {value} where booking_uuid = '{raw['uuid']}'"
                )
    with planted(engine, "; ".join(plant), "; ".join(undo)):
        yield Truth(channels)


def refunds(truth, window):
    gone = [
        b | {"month": month_of(b["cancelled_date"]), "refund": b["raw"]["refund"]}
        for b in truth.bookings
        if b["was_sold"] and b["cancelled"] and window["first"] <= b["cancelled_date"] <= window["last"]
    ]
    for (month, channel, currency), rows in grouped(gone, "month", "channel_name", "currency").items():
        by = grouped(rows, "refund")
        full, partial, kept = (by.get((refund,), []) for refund in ("FULL", "PARTIAL", "NONE"))
        yield {
            "cancelled_month": month,
            "channel_name": channel,
            "currency": currency,
            "cancelled": len(rows),
            "full_refunds": len(full),
            "refund_amount": total(full, "retail") if full else Decimal(0),
            "partial_refunds": len(partial),
            "partial_at_most": total(partial, "retail") if partial else Decimal(0),
            "no_refund": len(kept),
            "kept_retail": total(kept, "retail") if kept else Decimal(0),
            "kept_net": total(kept, "net") if kept else Decimal(0),
            "kept_without_net": sum(b["net"] is None for b in kept),
            "refund_not_stated": len(by.get((None,), [])) + len(by.get(("VOUCHER",), [])),
            "refund_net_amount": total(full, "net") if full else Decimal(0),
            "without_amount": sum(b["retail"] is None for b in full),
        }


def test_refunds_are_due_as_the_cancellations_say(engine, world):
    window = {"first": TODAY - 40 * DAY, "last": TODAY}
    with told(engine, world) as truth:
        asked, shown = answer(engine, 25, **window), page(engine, "finance_refunds")
    wanted, all_of_them = list(refunds(truth, window)), list(refunds(truth, ALL))

    same(asked, [{n: v for n, v in row.items() if not n.startswith("kept_")} for row in wanted])
    same(shown, all_of_them)
    for name in (
        "full_refunds",
        "partial_refunds",
        "no_refund",
        "refund_not_stated",
        "kept_retail",
        "kept_without_net",
    ):
        assert any(row[name] for row in wanted), name


def test_a_full_refund_without_a_price_and_a_cancellation_without_a_time_are_told(engine, world):
    full = [
        (b, next(r for c in world.now.channels for r in c.state["bookings"] if r["uuid"] == b["booking_uuid"]))
        for b in world.now.bookings
        if b["was_sold"] and b["cancelled"] and b["raw"]["refund"] == "FULL" and b["retail"]
    ]
    (priceless, _), (timeless, raw) = full[0], full[-1]
    of = "update core.bookings set {} where booking_uuid = '{}'"
    with planted(
        engine,
        of.format("retail_amount = null", priceless["booking_uuid"])
        + "; "
        + of.format("utc_cancelled_at = null", timeless["booking_uuid"]),
        of.format(f"retail_amount = {priceless['retail']}", priceless["booking_uuid"])
        + "; "
        + of.format(f"utc_cancelled_at = '{raw['utc_cancelled_at']}'", timeless["booking_uuid"]),
    ):
        rows = page(engine, "finance_refunds")
    assert sum(row["without_amount"] for row in rows) == 1
    assert [(row["cancelled"], row["refund_amount"]) for row in rows if row["cancelled_month"] is None] == [
        (1, timeless["retail"])
    ]
    assert rows[-1]["cancelled_month"] is None


def test_the_totals_of_a_month_are_those_of_its_bookings(engine, world):
    month, end = dt.date(2026, 10, 1), dt.date(2026, 10, 31)
    with told(engine, world) as truth:
        found = engine.query(
            "select kind, tax_name, connection_id, currency, bookings_now, retail_now, net_now from marts.month_totals "
            f"where period = '{month}' and bookings_now > 0"
        ).rows
    sold = [b for b in truth.bookings if b["was_sold"] and b["travel_date"]]
    kinds = {
        "refund": [
            b for b in truth.bookings
            if b["was_sold"] and b["cancelled"] and b["raw"]["refund"] == "FULL" and month_of(b["cancelled_date"]) == month
        ],
        "deferred": [
            b for b in sold
            if b["sold_date"] <= end < b["travel_date"] and (not b["cancelled"] or b["cancelled_date"] > end)
        ],
    }  # fmt: skip

    def whole(rows, name):
        return None if any(row[name] is None for row in rows) else total(rows, name)

    wanted = {
        (kind, None, *key): (len(rows), whole(rows, "retail"), whole(rows, "net"))
        for kind, of in kinds.items()
        for key, rows in grouped(of, "connection", "currency").items()
    }
    of_month = [tax for tax in taxes(world) if tax["month"] == month]
    for (name, *key), rows in grouped(of_month, "tax", "connection", "currency").items():
        wanted["tax", name, *key] = (len(rows), whole(rows, "retail_tax"), whole(rows, "net_tax"))
    assert {tuple(row[:4]): tuple(row[4:]) for row in found} == wanted
    assert {kind for kind, *_ in wanted} == {"tax", "refund", "deferred"}
    assert {retail is None or net is None for _, retail, net in wanted.values()} == {True, False}, (
        "one price is missing"
    )


# -- open-dated bookings, and what may be closed --------------------------------------------------------------------------


@pytest.mark.parametrize("month", [dt.date(2026, number, 1) for number in (9, 10, 11)])
def test_open_dated_bookings_are_used_in_a_month_or_not_by_its_end(engine, world, late, month):
    """Used at half past eleven of the last evening of October where the business is, the next one, and nobody knows when."""
    undated = [b for b in late.bookings if b["sold"] and not b["travel_date"]]
    day = month.replace(day=5)
    channels, plant, undo = late.channels, [], []
    raws = {raw["uuid"]: raw for channel in channels for raw in channel.state["bookings"]}
    ends = ("2026-10-31T23:30", "2026-11-01T00:30", None)
    for number, b in enumerate(undated[: 2 * len(ends)]):
        raw, end = raws[b["booking_uuid"]], ends[number % len(ends)]
        zone = ZoneInfo(channel_of(world, b["connection"]).zone)
        at = dt.datetime.fromisoformat(end).replace(tzinfo=zone).astimezone(dt.UTC).isoformat() if end else None
        for into, status, when in ((plant, "REDEEMED", at), (undo, raw["status"], raw["utc_redeemed_at"])):
            value = f"'{when}'" if when else "null"
            into.append(
                f"update core.bookings set status = '{status}', utc_redeemed_at = {value} where booking_uuid = '{raw['uuid']}'"
            )
        raw["status"], raw["utc_redeemed_at"] = "REDEEMED", at
    # Confirmed after the end of October.
    raw = next(
        raws[b["booking_uuid"]] for b in undated[2 * len(ends) :] if b["status"] == "CONFIRMED" and not b["redeemed"]
    )
    for into, when in ((plant, "2026-11-10T12:00:00+00:00"), (undo, raw["utc_confirmed_at"])):
        into.append(f"update core.bookings set utc_confirmed_at = '{when}' where booking_uuid = '{raw['uuid']}'")
    raw["utc_confirmed_at"] = "2026-11-10T12:00:00+00:00"
    of = [b for b in Truth(channels).bookings if b["was_sold"] and not b["travel_date"]]
    with planted(engine, "; ".join(plant), "; ".join(undo)):
        shown = page(engine, "finance_open", first=day, last=day)

    def month_used(b):
        at, zone = instant(b["raw"]["utc_redeemed_at"]), ZoneInfo(channel_of(world, b["connection"]).zone)
        return at and month_of(at.astimezone(zone).date())

    wanted = []
    for (connection, currency), rows in grouped(of, "connection", "currency").items():
        sold = [b for b in rows if b["sold"]]
        used = [b for b in sold if b["redeemed"] and month_used(b) == month]
        unused = [
            b for b in rows
            if month_of(b["sold_date"]) <= month and b["status"] != "NOSHOW"
            and not (b["redeemed"] and (month_used(b) or dt.date.min) <= month)
            and not (b["cancelled"] and month_of(b["cancelled_date"]) <= month)
        ]  # fmt: skip
        if not sold and not unused:
            continue
        wanted.append(
            {
                "connection_id": connection,
                "currency": currency,
                "bookings": len(sold),
                "without_net": sum(b["net"] is None for b in sold),
                "used": len(used),
                "used_retail": total(used, "retail") if used else Decimal(0),
                "used_net": total(used, "net") if used else Decimal(0),
                "used_some_day": sum(b["redeemed"] and not month_used(b) for b in sold),
                "unused": len(unused),
                "unused_retail": total(unused, "retail") if unused else Decimal(0),
                "unused_net": total(unused, "net") if unused else Decimal(0),
            }
        )
    same(shown, wanted)
    assert sum(row["used"] for row in wanted) >= 2 * (month.month > 9)
    assert sum(row["used_some_day"] for row in wanted) >= 1
    assert sum(row["unused"] for row in wanted) >= 1
    now = sum(b["status"] == "CONFIRMED" and not b["redeemed"] for b in of)
    assert (sum(row["unused"] for row in wanted) == now) is (month.month == 11)


@pytest.mark.parametrize("closed", [(), ("2026-10",)])
def test_months_that_are_over_and_not_closed_may_be_closed_where_every_channel_knows_them(engine, world, closed):
    add = "; ".join(
        f"insert into ops.closed_periods values ('{month}', '2026-11-05', true, '', null)" for month in closed
    )
    with planted(engine, add or "select 1", "delete from ops.closed_periods"):
        (query,) = (q for q in ask.questions(Path("nowhere"), "dashboard") if q.file.path.stem == "finance_ready")
        rows = engine.query(query.sql, {"first": dt.date(2026, 8, 9), "last": dt.date(2026, 12, 9)}).rows
    over = [dt.date(2026, number, 1) for number in (10, 9, 8) if f"2026-{number:02}" not in closed]
    bookings = [b for b in world.now.bookings if b["was_sold"]]
    wanted = []
    for month in over:
        of = [b for b in bookings if b["sold"] and b["travel_date"] and month_of(b["travel_date"]) == month]
        gone = [b for b in bookings if b["cancelled"] and month_of(b["cancelled_date"]) == month]
        counts = (
            sum(b["status"] == "CONFIRMED" and not b["redeemed"] for b in of),
            sum(b["net"] is None for b in of),
            sum(b["raw"]["refund"] not in ("FULL", "PARTIAL", "NONE") for b in gone),
        )
        wanted.append((month, all(c.knows_month(month) for c in world.now.channels), *counts))
    assert rows == wanted
    assert {row[1] for row in rows} == {True, False}
    assert any(row[2] for row in rows)
    assert any(row[3] for row in rows) is not bool(closed)


def test_a_month_that_one_channel_does_not_know_is_not_known(engine):
    of = "where connection_id = 'agents' and resource = 'bookings' and travel_month = '2026-10'"
    told = f"update ops.coverage set is_complete = {{}} {of}"
    (query,) = (q for q in ask.questions(Path("nowhere"), "dashboard") if q.file.path.stem == "finance_ready")
    october = {"first": dt.date(2026, 10, 9), "last": dt.date(2026, 10, 9)}
    assert [row[:2] for row in engine.query(query.sql, october).rows] == [(dt.date(2026, 10, 1), True)]
    with planted(engine, told.format("false"), told.format("true")):
        assert [row[:2] for row in engine.query(query.sql, october).rows] == [(dt.date(2026, 10, 1), False)]


def test_cancelled_since_and_cancelled_in_a_time_are_two_sums_of_money(engine, world):
    window = {"first": TODAY - 40 * DAY, "last": TODAY - 10 * DAY}

    def within(day):
        return day is not None and window["first"] <= day <= window["last"]

    def by_refund(left):
        for refund, name in (("FULL", "refund_amount"), ("PARTIAL", "partial_at_most"), ("NONE", "kept_retail")):
            of = [b for b in left if b["raw"]["refund"] == refund]
            yield name, total(of, "retail") if of else Decimal(0)

    with told(engine, world) as truth:
        (query,) = (q for q in ask.questions(Path("nowhere"), "dashboard") if q.file.path.stem == "cancellations_money")
        answered = engine.query(query.sql, {**window, "product": None, "channel": None})
    wanted = []
    for (currency,), rows in grouped([b for b in truth.bookings if b["was_sold"]], "currency").items():
        made = [b for b in rows if within(b["booking_date"])]
        since, left = (
            [b for b in made if b["cancelled"]],
            [b for b in rows if b["cancelled"] and within(b["cancelled_date"])],
        )
        if not made and not left:
            continue
        wanted.append(
            {
                "currency": currency,
                "was_sold": len(made),
                "sold_retail": total(made, "retail") if made else Decimal(0),
                "cancelled": len(since),
                "cancelled_retail": total(since, "retail") if since else Decimal(0),
                "left_bookings": len(left),
                "left_retail": total(left, "retail") if left else Decimal(0),
            }
            | dict(by_refund(left))
        )
    found = [dict(zip(answered.columns, row, strict=True)) for row in answered.rows]
    same(found, wanted)
    assert any(row["cancelled"] != row["left_bookings"] > 0 for row in wanted)
    assert all(any(row[name] for row in wanted) for name in ("refund_amount", "partial_at_most", "kept_retail"))
    assert [row["cancelled_share"] for row in found] == pytest.approx(
        [float(row["cancelled_retail"] / row["sold_retail"]) if row["sold_retail"] else None for row in found]
    )


# -- deferred revenue -----------------------------------------------------------------------------------------------------


def ends(first, last):
    """The last days of the months from that of one day to that of another."""
    found = (first.replace(day=1) + 31 * DAY).replace(day=1) - DAY
    while found.replace(day=1) <= last:
        yield found
        found = (found + 32 * DAY).replace(day=1) - DAY


def dated(truth, connection):
    """A channel's sold bookings of which it is known when they were on the books, for which day."""
    return [
        b for b in truth.bookings
        if b["connection"] == connection and b["was_sold"] and b["travel_date"]
        and not (b["cancelled"] and b["cancelled_date"] is None)
    ]  # fmt: skip


def to_travel_after(end, sold):
    """Those of them that were on the books at the end of a month, to travel later."""
    return [
        b for b in sold
        if month_of(b["sold_date"]) <= month_of(end) and b["travel_date"] > end
        and not (b["cancelled"] and b["cancelled_date"] <= end)
    ]  # fmt: skip


def sums(rows):
    return {
        "bookings": len(rows),
        "guests": total(rows, "guests"),
        "retail_amount": total(rows, "retail"),
        "net_amount": total(rows, "net"),
        "without_net": sum(b["net"] is None for b in rows),
    }


def deferred(truth):
    for channel in truth.channels:
        today = today_of(channel)
        reach = today + channel.bookings[1] * DAY
        sold = dated(truth, channel.connection)
        for end in ends(min(b["sold_date"] for b in sold), today):
            later = [month_of(day) for day in ends(end + DAY, reach)]
            # The last month that was asked for counts as far as it was.
            known = all(
                channel.knows_month(month) or (month == month_of(reach) and month > month_of(today)) for month in later
            )
            for (currency,), rows in grouped(to_travel_after(end, sold), "currency").items():
                yield {
                    "channel_name": channel.name,
                    "month_end": end,
                    "currency": currency,
                    "is_over": end < today,
                    **sums(rows),
                    "known_to": reach,
                    "is_complete": known,
                }


def deferred_rows(engine):
    found = engine.query("select * from marts.agg_deferred_revenue")
    return [dict(zip(found.columns, row, strict=True)) for row in found.rows]


def test_deferred_is_what_was_sold_by_the_months_end_and_travels_later(engine, late):
    wanted = list(deferred(late))
    rows = deferred_rows(engine)

    same(rows, wanted)
    assert {row["is_over"] for row in wanted} == {True, False}
    same(
        answer(engine, 26, **ALL),
        wanted,
    )
    same(page(engine, "finance_deferred"), [{n: v for n, v in row.items() if n != "known_to"} for row in wanted])


@pytest.mark.parametrize("end", [dt.date(2026, 10, 31), dt.date(2026, 11, 30)])
@pytest.mark.parametrize("number", [None, 1])
def test_deferred_revenue_by_month_of_travel(engine, late, end, number):
    channels = [c.connection for c in late.channels]
    chosen = channels if number is None else channels[number : number + 1]
    there = to_travel_after(end, [b for connection in chosen for b in dated(late, connection)])
    found = page(engine, "finance_deferred_months", month=end, channel=None if number is None else chosen[0])

    same(
        found,
        [
            {"travel_month": month, "currency": currency, **sums(rows)}
            for (month, currency), rows in grouped(
                [b | {"travel_month": month_of(b["travel_date"])} for b in there], "travel_month", "currency"
            ).items()
        ],
    )
    assert len({row["travel_month"] for row in found}) > 1


def test_the_end_of_a_month_before_all_of_its_travel_is_known_is_not_complete(engine, world):
    """August is known in part: who travelled in its first weeks may have booked in July."""
    channels = copy.deepcopy(world.now.channels)
    chosen = next(r for c in channels for r in c.state["bookings"] if r["status"] == "CONFIRMED" and not r["test"])
    told_at = "update core.bookings set utc_created_at = '{}', utc_confirmed_at = '{}' "
    told_at += f"where booking_uuid = '{chosen['uuid']}'"
    before = chosen["utc_created_at"], chosen["utc_confirmed_at"]
    now = chosen["utc_created_at"], chosen["utc_confirmed_at"] = ("2026-07-10T12:00:00+00:00",) * 2
    with planted(engine, told_at.format(*now), told_at.format(*before)):
        rows = deferred_rows(engine)
    same(rows, list(deferred(Truth(channels))))
    july = [row for row in rows if row["month_end"] == dt.date(2026, 7, 31)]
    assert [row["is_complete"] for row in july] == [False]


def test_what_was_cancelled_at_an_unknown_time_is_not_deferred_for_ever(engine, world):
    channels = copy.deepcopy(world.now.channels)
    chosen = next(
        r for c in channels for r in c.state["bookings"]
        if r["status"] == "CANCELLED" and r["utc_confirmed_at"] and r["local_date"] > f"{TODAY}"
    )  # fmt: skip
    of = f"where booking_uuid = '{chosen['uuid']}'"
    before = chosen["utc_cancelled_at"]
    chosen["utc_cancelled_at"] = None
    with planted(
        engine,
        f"update core.bookings set utc_cancelled_at = null {of}",
        f"update core.bookings set utc_cancelled_at = '{before}' {of}",
    ):
        rows = deferred_rows(engine)
    same(rows, list(deferred(Truth(channels))))


def test_what_was_sold_at_an_unknown_time_is_not_deferred_since_ever(engine, world):
    channels = copy.deepcopy(world.now.channels)
    chosen = next(
        r for c in channels for r in c.state["bookings"] if r["status"] == "CONFIRMED" and r["local_date"] > f"{TODAY}"
    )
    for channel in channels:
        channel.state["bookings"] = [r for r in channel.state["bookings"] if r["uuid"] != chosen["uuid"]]
    told_at = f"update core.bookings set utc_created_at = {{}}, utc_confirmed_at = {{}} where booking_uuid = '{chosen['uuid']}'"
    known = f"'{chosen['utc_created_at']}'", f"'{chosen['utc_confirmed_at']}'"
    with planted(engine, told_at.format("null", "null"), told_at.format(*known)):
        rows = deferred_rows(engine)
    same(rows, list(deferred(Truth(channels))))


def test_lists_that_were_read_before_a_months_end_do_not_know_what_was_booked_by_it(engine):
    of = "connection_id = 'agents' and resource = 'bookings' and travel_month > '2026-10'"
    shift = f"update ops.coverage set verified_at_utc = verified_at_utc {{}} interval '37 days' where {of}"
    with planted(
        engine,
        shift.format("-"),
        shift.format("+"),
    ):
        rows = engine.query(
            "select connection_id, is_complete from marts.agg_deferred_revenue where month_end = '2026-10-31'"
        )
    assert set(rows.rows) == {("direct", True), ("agents", False)}


@pytest.mark.parametrize("month", ["2026-10", "2026-11", "2026-12"])
@pytest.mark.parametrize("way", ["in part", "never", "not to its end"])
def test_a_later_month_that_was_not_read_leaves_the_ends_before_it_in_doubt(engine, month, way):
    of = f"connection_id = 'agents' and travel_month = '{month}' and resource"
    ((end,),) = engine.query(f"select window_end from ops.coverage where {of} = 'bookings'").rows
    plant, undo = {
        "in part": ("set is_complete = false", "set is_complete = true"),
        "never": ("set resource = 'kept'", "set resource = 'bookings'"),
        "not to its end": (f"set window_end = date '{end - DAY}'", f"set window_end = date '{end}'"),
    }[way]
    owed = f"insert into ops.unanswered values ('agents', 'bookings', '[\"{month}\"]', null, null, '{month}')"
    with planted(
        engine,
        f"update ops.coverage {plant} where {of} = 'bookings'" + (f"; {owed}" if way == "never" else ""),
        f"update ops.coverage {undo} where {of} in ('bookings', 'kept'); delete from ops.unanswered",
    ):
        rows = engine.query(
            "select connection_id, month_end, is_complete from marts.agg_deferred_revenue where month_end >= '2026-08-31'"
        ).rows
    assert {name for name, *_ in rows} == {"direct", "agents"}
    for name, day, done in rows:
        assert done is (name == "direct" or f"{day:%Y-%m}" >= month), (day, month)


def test_days_of_the_business_decide_what_was_sold_by_a_months_end(engine, world):
    """Confirmed in the last hour of October where the business is: the UTC day is another one in both zones."""
    chosen = {
        c.connection: next(
            b for b in world.now.bookings
            if b["connection"] == c.connection and b["sold"] and b["travel_date"] and b["travel_date"] > dt.date(2026, 12, 1)
        )
        for c in world.now.channels
    }  # fmt: skip
    told_at = "update core.bookings set utc_created_at = '{}', utc_confirmed_at = '{}' where booking_uuid = '{}'"
    plant, undo = [], []
    channels = copy.deepcopy(world.now.channels)
    for channel in channels:
        uuid = chosen[channel.connection]["booking_uuid"]
        raw = next(r for r in channel.state["bookings"] if r["uuid"] == uuid)
        at = dt.datetime(2026, 10, 31, 23, 30, tzinfo=ZoneInfo(channel.zone))
        if channel.connection == "agents":
            at = dt.datetime(2026, 11, 1, 0, 30, tzinfo=ZoneInfo(channel.zone))
        undo.append(told_at.format(raw["utc_created_at"], raw["utc_confirmed_at"], uuid))
        raw["utc_created_at"], raw["utc_confirmed_at"] = (
            when.astimezone(dt.UTC).isoformat() for when in (at - 20 * DAY, at)
        )
        plant.append(told_at.format(raw["utc_created_at"], raw["utc_confirmed_at"], uuid))
    with planted(engine, "; ".join(plant), "; ".join(undo)):
        rows = deferred_rows(engine)
    same(rows, list(deferred(Truth(channels))))
