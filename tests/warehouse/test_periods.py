"""Closed months: figures as they were, every later change with its cause, and both together the figures of now."""

import contextlib
import datetime as dt
from decimal import Decimal

import pytest
from tests.flows.harness import NOON, TODAY
from tests.warehouse.conftest import LATER
from tests.warehouse.engines import planted
from tests.warehouse.test_questions import same
from tests.warehouse.test_revenue import page
from tests.warehouse.truth import grouped, month_of, total

OCTOBER = "2026-10"
TENTH = dt.date(2026, 10, 1)
FIELDS = ("retail", "net", "guests")


def of_month(truth, month):
    return {
        (b["connection"], b["booking_uuid"]): b
        for b in truth.bookings
        if b["sold"] and b["travel_date"] and f"{b['travel_date']:%Y-%m}" == month
    }


def literal(value):
    return "null" if value is None else f"'{value}'"


@contextlib.contextmanager
def closed(engine, month, rows, *, at=NOON + dt.timedelta(hours=1)):
    """The month closed with these bookings, as the command keeps them."""
    values = [
        f"('{month}', '{b['connection']}', '{b['booking_uuid']}', "
        + ", ".join(literal(b[name]) for name in ("currency", *FIELDS))
        + ")"
        for b in rows
    ]
    plant = f"insert into ops.closed_periods values ('{month}', '{at.isoformat()}', true, 'abc', null)"
    if values:
        plant += f"; insert into ops.closed_bookings values {', '.join(values)}"
    with planted(engine, plant, "delete from ops.closed_bookings; delete from ops.closed_periods"):
        yield


def records(engine, name):
    found = engine.query(f"select * from marts.{name}")
    return [dict(zip(found.columns, row, strict=True)) for row in found.rows]


def test_what_changed_since_is_told_booking_by_booking_and_adds_up(engine, world):
    """November was closed after the first pull, though it was not over: so much has changed since."""
    month = f"{TODAY:%Y-%m}"
    then, now = of_month(world.before, month), of_month(world.now, month)
    known_then = {(b["connection"], b["booking_uuid"]): b for b in world.before.bookings}
    present = {(b["connection"], b["booking_uuid"]): b for b in world.now.bookings}
    with closed(engine, month, then.values()):
        adjustments, figures = records(engine, "period_adjustments"), records(engine, "closed_periods")
        shown = {
            next(iter(only.values()), ""): [
                page(engine, f"finance_{which}", **only) for which in ("adjustments", "closed")
            ]
            for only in ({}, {"channel": "agents"}, {"currency": "EUR"})
        }

    def cause(key):
        before, after = then.get(key), now.get(key)
        if after is None:
            return "cancelled" if present[key]["cancelled"] else "moved_out"
        if before is None:
            if dt.datetime.fromisoformat(after["raw"]["utc_created_at"]) > NOON + dt.timedelta(hours=1):
                return "booked_later"
            if key not in known_then:
                return "learnt_later"
            was = known_then[key]["travel_date"]
            return "sold_later" if was and f"{was:%Y-%m}" == month else "moved_in"
        return next(
            name for name, field in (("price", "retail"), ("net_price", "net"), ("guests", "guests"))
            if before[field] != after[field]
        )  # fmt: skip

    changed = [
        key for key in then.keys() | now.keys()
        if key not in then or key not in now or any(then[key][f] != now[key][f] for f in FIELDS)
    ]  # fmt: skip
    wanted = [
        {
            "period": month_of(TODAY),
            "booking_key": "|".join(key),
            "cause": cause(key),
            "currency": {**then, **now}[key]["currency"],
            "reseller_reference": {**then, **now}[key]["raw"]["reseller_reference"],
            **{f"{name}_adjustment": adjusted(then.get(key), now.get(key), name) for name in ("retail", "net")},
        }
        for key in changed
    ]
    same(adjustments, wanted)
    assert {row["cause"] for row in adjustments} >= {"cancelled", "booked_later", "sold_later"}
    for only, (those, sums) in shown.items():
        same(those, [row for row in wanted if only in ("", row["currency"], row["booking_key"].partition("|")[0])])
        all_of_them = of_the_page(then, now, wanted)
        same(sums, [row for row in all_of_them if only in ("", row["currency"], row["connection_id"])])
        at = [row["changed_at_utc"] for row in those if row["changed_at_utc"]]
        assert at == sorted(at, reverse=True)
    for row in adjustments:
        key = row["connection_id"], row["booking_uuid"]
        assert row["bookings"] == (key in now) - (key in then)
        assert (row["retail_before"], row["retail_now"]) == tuple(
            side.get(key, {}).get("retail") for side in (then, now)
        )
        if row["cause"] != "learnt_later":
            assert NOON + dt.timedelta(hours=1) < row["changed_at_utc"] < NOON + LATER + dt.timedelta(hours=1)
    _adds_up(figures, then, now)


def adjusted(then, now, name):
    """What a booking comes to now, less what it came to; None where neither is known."""
    was, is_now = (side[name] if side else None for side in (then, now))
    return None if was is None and is_now is None else (is_now or 0) - (was or 0)


def of_the_page(then, now, adjustments):
    """Of each channel and currency what was there when the month was closed, what is now, and what lies between."""
    before, after = (grouped(side.values(), "connection", "currency") for side in (then, now))
    for connection, currency in before.keys() | after.keys():
        between = [a for a in adjustments if a["booking_key"].startswith(connection) and a["currency"] == currency]
        yield {"connection_id": connection, "currency": currency, "adjustments": len(between)} | {
            f"{name}_{when}": total(rows, field)
            for name in ("retail", "net")
            for when, field, rows in (
                ("amount", name, before.get((connection, currency), [])),
                ("adjustment", f"{name}_adjustment", between),
                ("now", name, after.get((connection, currency), [])),
            )
        }


def _adds_up(figures, then, now):
    before = grouped(then.values(), "connection", "currency")
    after = grouped(now.values(), "connection", "currency")
    assert {(row["connection_id"], row["currency"]) for row in figures} == before.keys() | after.keys()
    for row in figures:
        key = row["connection_id"], row["currency"]
        was, is_now = before.get(key, []), after.get(key, [])
        assert (row["bookings"], row["bookings_now"]) == (len(was), len(is_now))
        assert (row["retail_amount"], row["net_amount"]) == (total(was, "retail"), total(was, "net"))
        assert row["guests"] + row["guests_adjustment"] == (total(is_now, "guests") or 0)
        for name, field in (("retail", "retail"), ("net", "net")):
            assert row[f"{name}_now"] == (total(is_now, field) if total(is_now, field) is not None else
                                          0 if total(was, field) is not None else None)  # fmt: skip


def test_totals_kept_at_the_closing_stand_beside_those_of_now_and_both_add_up(engine, world):
    """What was kept is a cent more than what is there now, of a tax that is gone, and of a refund that nobody knew."""
    of = "select kind, tax_name, connection_id, currency, bookings_now, retail_now, net_now from marts.month_totals "
    priced = "bookings_now > 0 order by retail_now is null, kind, tax_name, connection_id, currency"
    present = engine.query(f"{of} where period = '{TENTH}' and {priced}").rows
    kept = [
        (
            kind,
            name or "",
            connection,
            currency or "",
            bookings,
            None if retail is None else retail + Decimal("0.01"),
            net,
        )
        for kind, name, connection, currency, bookings, retail, net in present[1:]
    ] + [("tax", "old tax", "agents", "EUR", 3, Decimal(9), Decimal(7))]
    values = ", ".join(f"('{OCTOBER}', {', '.join(map(literal, row))})" for row in kept)
    plant = f"insert into ops.closed_periods values ('{OCTOBER}', '{NOON.isoformat()}', true, '', true)"
    with planted(
        engine,
        f"{plant}; insert into ops.closed_totals values {values}",
        "delete from ops.closed_totals; delete from ops.closed_periods",
    ):
        rows = [row for row in records(engine, "month_totals") if row["period"] == TENTH]
        others = [row for row in records(engine, "month_totals") if row["period"] != TENTH]
    assert len(rows) == len(present) + 1
    for row in rows:
        for name in ("retail", "net"):
            then, between, now = (row[f"{name}_{of}"] for of in ("amount", "adjustment", "now"))
            # Of no bookings nothing is unknown.
            unknown = (row["bookings"] and then is None) or (row["bookings_now"] and now is None)
            assert (between is None) is bool(unknown)
            assert unknown or (then or 0) + between == (now or 0)
        assert row["bookings"] + row["bookings_adjustment"] == row["bookings_now"]
        assert row["is_kept"]
    by = {(row["kind"], row["tax_name"], row["connection_id"], row["currency"]): row for row in rows}
    assert by["tax", "old tax", "agents", "EUR"]["retail_adjustment"] == -9
    assert by[present[0][:4]]["retail_amount"] is None, "nobody kept it"
    assert by[present[0][:4]]["retail_adjustment"] == present[0][5] is not None, "all of it is new"
    assert by[present[1][:4]]["retail_adjustment"] == (None if present[1][5] is None else Decimal("-0.01"))
    assert {row["retail_adjustment"] for row in others} == {None}
    assert others


def test_a_month_without_changes_has_no_adjustment(engine, world):
    rows = of_month(world.now, OCTOBER)
    with closed(engine, OCTOBER, rows.values(), at=NOON + LATER + dt.timedelta(hours=2)):
        assert records(engine, "period_adjustments") == []
        _adds_up(records(engine, "closed_periods"), rows, rows)
    with closed(engine, "2020-01", []):
        ((row),) = records(engine, "closed_periods")
        assert (row["period"], row["connection_id"], row["bookings_now"]) == (dt.date(2020, 1, 1), None, None)


@pytest.mark.parametrize(
    ("change", "cause", "adjusted"),
    [
        ("status = 'CANCELLED'", "cancelled", "all"),
        ("status = 'EXPIRED'", "not_sold", "all"),
        ("is_deleted = true", "deleted", "all"),
        ("is_test = true", "not_sold", "all"),
        ("local_date = date '2026-12-24'", "moved_out", "all"),
        ("local_date = null", "moved_out", "all"),
        ("retail_amount = retail_amount + 1.25", "price", Decimal("1.25")),
        ("net_amount = net_amount - 3", "net_price", 0),
        ("pax_count = pax_count + 1", "guests", 0),
    ],
)
def test_each_cause_is_told(engine, world, change, cause, adjusted):
    rows = of_month(world.now, OCTOBER)
    chosen = next(b for b in rows.values() if b["retail"] and b["net"] and b["guests"])
    of = f"where booking_uuid = '{chosen['booking_uuid']}' and connection_id = '{chosen['connection']}'"
    columns = [part.partition(" = ")[0] for part in (change,)]
    ((was,),) = engine.query(f"select {columns[0]} from core.bookings {of}").rows
    undo = f"update core.bookings set {columns[0]} = {literal(was)} {of}"
    with (
        closed(engine, OCTOBER, rows.values(), at=NOON + LATER + dt.timedelta(hours=2)),
        planted(engine, f"update core.bookings set {change} {of}", undo),
    ):
        (row,) = records(engine, "period_adjustments")
        figures = records(engine, "closed_periods")
    assert (row["cause"], row["booking_uuid"]) == (cause, chosen["booking_uuid"])
    assert row["changed_at_utc"] is None, "no version is younger than the closing"
    assert row["retail_adjustment"] == (-chosen["retail"] if adjusted == "all" else adjusted)
    assert sum(line["retail_adjustment"] or 0 for line in figures) == row["retail_adjustment"]


def test_a_booking_in_another_currency_leaves_one_sum_and_enters_the_other(engine, world):
    rows = of_month(world.now, OCTOBER)
    chosen = next(b for b in rows.values() if b["retail"])
    of = f"where booking_uuid = '{chosen['booking_uuid']}' and connection_id = '{chosen['connection']}'"
    with (
        closed(engine, OCTOBER, rows.values(), at=NOON + LATER + dt.timedelta(hours=2)),
        planted(
            engine,
            f"update core.bookings set currency = 'XTS' {of}",
            f"update core.bookings set currency = '{chosen['currency']}' {of}",
        ),
    ):
        found = {row["currency"]: row for row in records(engine, "period_adjustments")}
    assert found.keys() == {"XTS", chosen["currency"]}
    assert {row["cause"] for row in found.values()} == {"currency"}
    assert found["XTS"]["retail_adjustment"] == -found[chosen["currency"]]["retail_adjustment"] == chosen["retail"]


def test_a_booking_that_left_the_copy_is_gone_and_one_that_came_with_it_was_learnt_later(engine, world):
    rows = of_month(world.now, OCTOBER)
    chosen = next(b for b in rows.values() if b["retail"])
    gone = chosen | {"booking_uuid": "never-there"}
    rest = [b for b in rows.values() if b is not chosen]
    with closed(engine, OCTOBER, [*rest, gone], at=NOON - dt.timedelta(days=2)):
        found = {row["booking_uuid"]: row["cause"] for row in records(engine, "period_adjustments")}
    assert found == {"never-there": "gone", chosen["booking_uuid"]: "learnt_later"}
