"""What the marts say beyond the questions: unknown stays unknown, currencies apart, tests out, coverage shown."""

import dataclasses
import datetime as dt
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from tests.flows.harness import NOON, QUICK, QUICK_SYNC, TODAY, Wire, api_path, reply
from tests.warehouse.conftest import CHANNELS, HORIZONS, LATER
from tests.warehouse.engines import planted, rebuilt
from tests.warehouse.truth import Truth, grouped, month_of, total

DAY = dt.timedelta(days=1)


def one(engine, sql):
    found = engine.query(sql)
    return [dict(zip(found.columns, row, strict=True)) for row in found.rows]


def test_the_world_has_what_these_tests_are_about(world):
    """Otherwise they would compare nothing."""
    assert any(d["capacity"] is None and not d["closed"] for d in world.now.departures)
    assert any(d["closed"] and d["capacity"] for d in world.now.departures)
    assert any(b["travel_date"] is None for b in world.now.bookings)
    assert {p["currency_precision"] for p in world.now.products.values()} == {0, 2, 3}
    assert any(b["test"] for c in world.now.channels for b in c.state["bookings"])


def test_every_booking_is_there_once_with_its_exact_amounts_and_its_own_days(engine, late):
    rows = one(
        engine,
        "select booking_uuid, status, channel_name, product_name, option_name, booking_date, travel_date, cancelled_date, "
        "lead_days, notice_days, sold_date, currency, retail_amount, net_amount, margin_amount, pax_count, is_sold, "
        "is_redeemed, is_cancelled from marts.fct_bookings",
    )
    wanted = {b["booking_uuid"]: b for b in late.bookings}

    assert {r["booking_uuid"] for r in rows} == set(wanted)
    assert len(rows) == len(wanted)
    for row in rows:
        b = wanted[row["booking_uuid"]]
        margin = None if b["net"] is None else b["retail"] - b["net"]
        assert tuple(row.values()) == (
            b["booking_uuid"], b["status"], b["channel_name"], b["product_name"], b["option_name"], b["booking_date"],
            b["travel_date"], b["cancelled_date"], b["lead"], b["notice"],
            b["sold_date"] if b["was_sold"] else None, b["currency"], b["retail"], b["net"], margin,
            b["guests"], b["sold"], b["redeemed"], b["cancelled"],
        )  # fmt: skip


def test_a_cancelled_booking_that_this_copy_saw_sold_was_sold_whatever_the_service_leaves_out(engine, world):
    """Not one that nobody says was ever confirmed, and that this copy saw cancelled only."""
    was = {b["booking_uuid"]: b for b in world.before.bookings}
    gone = [b for b in world.now.bookings if b["cancelled"] and b["was_sold"]]
    told = {b["booking_uuid"]: b["raw"]["utc_confirmed_at"] for b in gone if b["booking_uuid"] in was}
    wanted = {uuid: was[uuid]["sold"] for uuid in told}
    chosen = ", ".join(f"'{uuid}'" for uuid in told)
    again = "; ".join(
        f"update core.bookings set utc_confirmed_at = '{at}' where booking_uuid = '{u}'" for u, at in told.items()
    )
    with planted(engine, f"update core.bookings set utc_confirmed_at = null where booking_uuid in ({chosen})", again):
        rows = engine.query(
            f"select booking_uuid, was_sold from marts.fct_bookings where booking_uuid in ({chosen})"
        ).rows
    assert dict(rows) == wanted
    assert set(wanted.values()) == {False, True}


def test_the_business_day_is_not_the_utc_day(engine, world):
    shifted = one(
        engine,
        "select connection_id, count(*) as n from marts.fct_bookings "
        "where booking_date <> cast(utc_created_at at time zone 'UTC' as date) group by connection_id",
    )
    assert {r["connection_id"] for r in shifted} == set(CHANNELS)


def test_time_before_travel_is_counted_in_the_days_of_the_venue(engine, world):
    """Not from the business day to the venue's: that is a day more or less, and may be below 0."""
    (row,) = one(
        engine,
        "select count(case when travel_date - booking_date <> lead_days then 1 end) as lead, "
        "count(case when travel_date - cancelled_date <> notice_days then 1 end) as notice, min(lead_days) as least "
        "from marts.fct_bookings",
    )
    assert row["lead"] > 0
    assert row["notice"] > 0
    assert row["least"] == min(b["lead"] for b in world.now.bookings if b["lead"] is not None)


def test_departures_of_unknown_capacity_and_closed_ones_have_no_fill_rate(engine, world):
    rows = one(
        engine,
        "select departure_key, capacity, taken, fill_rate, is_closed, our_guests, our_bookings from marts.fct_departures",
    )
    wanted = {"|".join(d["slot"]): d for d in world.now.departures}
    compared = [r for r in rows if r["departure_key"] in wanted]

    assert len(compared) == len(wanted)
    for row in compared:
        d = wanted[row["departure_key"]]
        assert tuple(row.values())[1:] == (
            d["capacity"], d["taken"], d["rate"], d["closed"], d["our_guests"], d["our_bookings"],
        )  # fmt: skip
    assert len({row["our_bookings"] for row in compared}) > 2


def test_what_we_sold_on_a_departure_is_in_one_currency_or_not_told(engine, world):
    sold = grouped([b for b in world.now.bookings if b["sold"]], "slot")
    rows = one(
        engine, "select departure_key, our_sold_amount, our_currency from marts.fct_departures where our_bookings > 0"
    )

    assert rows
    for row in rows:
        ours = next(bookings for (slot,), bookings in sold.items() if "|".join(map(str, slot)) == row["departure_key"])
        assert (row["our_sold_amount"], row["our_currency"]) == (total(ours, "retail"), ours[0]["currency"])


def test_sales_in_two_currencies_are_not_added_up(duck, world):
    """Planted in the copy, because the sandbox sells a product in one currency."""
    ((uuid, currency, key),) = duck.query(
        "select b.booking_uuid, b.currency, b.departure_key from marts.fct_bookings b join marts.fct_departures d "
        "on d.departure_key = b.departure_key where b.is_sold and d.our_bookings >= 2 limit 1"
    ).rows
    read = "select our_sold_amount, our_currency from marts.fct_departures where departure_key = $1"
    duck.run_script([f"update core.bookings set currency = 'XTS' where booking_uuid = '{uuid}'"])
    try:
        assert duck.query(read, [key]).rows == [(None, None)]
    finally:
        duck.run_script([f"update core.bookings set currency = '{currency}' where booking_uuid = '{uuid}'"])


def test_guests_add_up_to_their_bookings(engine, world):
    (row,) = one(
        engine,
        "select count(*) as tickets, cast(sum(pax_count) as bigint) as guests from marts.fct_guests where is_sold",
    )
    sold = [t for t in world.now.tickets if t["booking"]["sold"]]

    assert (row["tickets"], row["guests"]) == (len(sold), sum(t["guests"] for t in sold))


@pytest.mark.parametrize(
    ("booking", "ticket", "used"),
    [
        ("REDEEMED", (None, None), True),  # services leave the tickets' status out
        ("REDEEMED", ("CONFIRMED", None), False),  # some of them came
        ("CONFIRMED", ("REDEEMED", None), True),
        ("CONFIRMED", (None, "2026-11-20 10:00:00+00"), True),
        ("NOSHOW", ("REDEEMED", "2026-11-20 10:00:00+00"), False),
        ("CONFIRMED", (None, None), False),
    ],
)
def test_a_ticket_is_used_by_what_it_says_or_else_its_booking(engine, world, booking, ticket, used):
    chosen = next(b for b in world.now.bookings if b["status"] == "CONFIRMED")
    uuid = chosen["booking_uuid"]
    read = f"from core.booking_unit_items where booking_uuid = '{uuid}'"
    ((status, at),) = engine.query(f"select distinct status, utc_redeemed_at {read}").rows

    def told(values):
        return ", ".join("null" if value is None else f"'{value}'" for value in values)

    items = (
        "update core.booking_unit_items set status = {0}, utc_redeemed_at = cast({1} as timestamptz) "
        f"where booking_uuid = '{uuid}'"
    )
    with planted(
        engine,
        f"update core.bookings set status = '{booking}' where booking_uuid = '{uuid}'; "
        + items.format(*(told([value]) for value in ticket)),
        f"update core.bookings set status = 'CONFIRMED' where booking_uuid = '{uuid}'; "
        + items.format(told([status]), told([at])),
    ):
        found = engine.query(f"select distinct is_redeemed from marts.fct_guests where booking_uuid = '{uuid}'").rows
    assert found == [(used,)]


def test_pick_up_tells_those_apart_who_cancelled_since(engine, world):
    rows = one(engine, "select * from marts.agg_pickup_curve where cancelled_since_guests > 0")
    assert rows
    for row in rows:
        gone = [
            b
            for b in world.now.bookings
            if b["was_sold"] and b["cancelled"] and b["travel_date"] and month_of(b["travel_date"]) == row["travel_month"]
            and (b["connection"], b["product_name"]) == (row["connection_id"], row["product_name"])
            and b["lead"] >= row["days_out"] > b["notice"]
        ]  # fmt: skip
        assert row["cancelled_since_guests"] == sum(b["guests"] for b in gone)


def test_who_cancelled_at_an_unknown_time_is_not_on_the_books_for_ever(engine, world):
    """Nor counted among those who cancelled since a day: nobody knows until when they were there."""
    gone = next(
        b
        for b in world.now.bookings
        if b["was_sold"] and b["cancelled"] and b["travel_date"] and b["notice"] < 7 <= b["lead"]
    )
    key = (gone["connection"], gone["product_name"], month_of(gone["travel_date"]))
    read = (
        "select days_out, guests_on_books, cancelled_since_guests, final_guests from marts.agg_pickup_curve "
        f"where connection_id = '{key[0]}' and product_name = '{key[1]}' and travel_month = '{key[2]}'"
    )
    uuid, instant = gone["booking_uuid"], gone["raw"]["utc_cancelled_at"]
    before = {row["days_out"]: row for row in one(engine, read)}
    with planted(
        engine,
        f"update core.bookings set utc_cancelled_at = null where booking_uuid = '{uuid}'",
        f"update core.bookings set utc_cancelled_at = '{instant}' where booking_uuid = '{uuid}'",
    ):
        after = {row["days_out"]: row for row in one(engine, read)}

    left = gone["notice"]
    for days, row in before.items():
        since = gone["guests"] if gone["lead"] >= days > left else 0
        assert after[days] == row | {"cancelled_since_guests": row["cancelled_since_guests"] - since}
    assert any(gone["lead"] >= days > left for days in before)


@pytest.mark.parametrize(
    ("month", "read"),
    [
        ("2026-10", dt.datetime(2026, 10, 30, 12, tzinfo=dt.UTC)),  # before its end
        ("2026-10", dt.datetime(2026, 10, 31, 23, tzinfo=dt.UTC)),  # still its last day in New York, not on Chatham
        ("2026-10", dt.datetime(2026, 11, 1, 12, tzinfo=dt.UTC)),
        ("2026-12", None),
        ("2026-12", dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC)),  # then its last days were too far ahead
    ],
)
def test_a_month_is_known_wholly_where_it_was_asked_for_to_its_end_and_since(engine, world, month, read):
    channels = {channel.connection: channel for channel in world.now.channels}
    curve = "select distinct connection_id, travel_month, is_complete from marts.agg_pickup_curve"
    wanted, plant, undo, first = {}, ["select 1"], ["select 1"], dt.date.fromisoformat(f"{month}-01")
    for name, channel in channels.items():
        wanted[name] = channel.knows_month(first, read)
        chosen = f"where connection_id = '{name}' and resource = 'bookings' and travel_month = '{month}'"
        ((was, end),) = engine.query(f"select verified_at_utc, window_end from ops.coverage {chosen}").rows
        undo.append(f"update ops.coverage set verified_at_utc = '{was.isoformat()}', window_end = '{end}' {chosen}")
        if read:
            asked_to = min(end, read.astimezone(ZoneInfo(channel.zone)).date() + channel.bookings[1] * DAY)
            plant.append(
                f"update ops.coverage set verified_at_utc = '{read.isoformat()}', window_end = '{asked_to}' {chosen}"
            )
    with planted(engine, "; ".join(plant), "; ".join(undo)):
        rows = one(engine, curve)

    assert {r["connection_id"]: r["is_complete"] for r in rows if r["travel_month"] == first} == wanted
    for row in rows:
        if row["travel_month"] != first:
            assert row["is_complete"] is channels[row["connection_id"]].knows_month(row["travel_month"]), row


def test_the_health_of_the_days_ahead(engine, world):
    rows = {r["product_key"]: r for r in one(engine, "select * from marts.availability_health")}
    days = grouped(world.now.departures, "product", "travel_date")

    assert set(rows) == {"|".join(product) for product in world.now.products}
    for key, row in rows.items():
        zone = world.now.products[tuple(key.split("|"))]["time_zone"]
        assert row["as_of_date"] == (NOON + LATER).astimezone(ZoneInfo(zone)).date()
        ahead = {d: same for (p, d), same in days.items() if "|".join(p) == key and d >= row["as_of_date"]}
        closed = {d for d, same in ahead.items() if all(x["closed"] for x in same)}
        full = {d for d, same in ahead.items() if all(x["closed"] or x["sold_out"] for x in same)} - closed
        measured = {d: [x for x in same if x["taken"] is not None] for d, same in ahead.items()}
        weak = {d for d, m in measured.items() if m and total(m, "taken") / total(m, "capacity") < 0.2} - full
        assert (row["days"], row["closed_days"], row["sold_out_days"], row["weak_days"]) == (
            len(ahead), len(closed), len(full), len(weak),
        )  # fmt: skip
        assert row["next_sold_out_day"] == min(full, default=None)
        assert row["last_day_loaded"] == max(ahead) == row["covered_to"]
        assert row["is_covered"]


@pytest.mark.deep(0.5, everyday=1)
def test_days_of_which_an_option_was_never_asked_are_not_covered(engine, world):
    """It has no departure that could say so; other months and products are as they were."""
    days = grouped(world.now.departures, "product", "travel_date")
    (key, option, month) = next(
        (product, d["slot"][2], f"{day:%Y-%m}")
        for (product, day), same in days.items()
        for d in same
        if len({x["slot"][2] for x in same}) > 1 and day > TODAY + 12 * DAY
    )
    of = f"product_id = '{key[1]}' and option_id = '{option}'"
    rows = f"{of} and substr(cast(local_date as text), 1, 7) = '{month}'"
    asked = f"{of} and travel_month = '{month}' and resource"
    with rebuilt(
        engine,
        world.project.directory,
        f"update ops.coverage set resource = 'kept' where {asked} = 'availability'; "
        f"update core.availability set is_deleted = true where {rows} and not is_deleted; insert into ops.unanswered "
        f"values ('{key[0]}', 'availability', 'x', '{key[1]}', '{option}', '{month}')",
        f"update ops.coverage set resource = 'availability' where {asked} = 'kept'; delete from ops.unanswered; "
        f"update core.availability set is_deleted = false where {rows} and deleted_at_utc is null",
    ):
        found = one(engine, "select product_key, travel_date, is_covered from marts.agg_occupancy_daily")
        health = one(engine, "select product_key from marts.availability_health where not is_covered")
    ahead = [row for row in found if row["travel_date"] > TODAY + DAY]
    doubtful = {(row["product_key"], f"{row['travel_date']:%Y-%m}") for row in ahead if not row["is_covered"]}

    assert doubtful == {("|".join(key), month)}
    assert health == [{"product_key": "|".join(key)}]


def test_the_channel_says_what_is_known(engine, world):
    for row in one(engine, "select * from marts.dim_channel"):
        _, name, zone = CHANNELS[row["connection_id"]]
        assert (row["channel_name"], row["business_time_zone"]) == (name, zone)
        assert NOON <= row["first_pulled_at_utc"] < NOON + dt.timedelta(minutes=10)
        assert NOON + LATER <= row["last_verified_at_utc"] < NOON + LATER + dt.timedelta(minutes=10)
        assert row["as_of_date"] == (NOON + LATER).astimezone(ZoneInfo(zone)).date()


@pytest.mark.parametrize("hole", [(), ("2026-09",), ("2026-09", "2026-10"), ("2026-11",), ("2026-12",)])
def test_what_is_known_begins_after_the_last_month_that_was_never_answered(engine, world, hole):
    months = ", ".join(f"'{month}'" for month in hole) or "''"
    chosen = f"connection_id = 'agents' and travel_month in ({months}) and resource"
    with planted(
        engine,
        f"update ops.coverage set resource = 'kept' where {chosen} = 'bookings'",
        f"update ops.coverage set resource = 'bookings' where {chosen} = 'kept'",
    ):
        found = one(engine, "select connection_id, bookings_from from marts.dim_channel")

    for row in found:
        (channel,) = [c for c in world.now.channels if c.connection == row["connection_id"]]
        holes = frozenset(hole if channel.connection == "agents" else ())
        assert row["bookings_from"] == dataclasses.replace(channel, unanswered=holes).known_from(NOON), row


def test_a_day_of_booking_says_whether_all_of_it_is_known(engine, world):
    """Neither today, which is not over, nor a day of which only those who travelled later are in the copy."""
    assert days_known(engine, world.now) == {(True, False), (False, True), (False, False)}


def days_known(engine, truth):
    """Compare each connection's days with the oracle; the kinds of days there were: known, too old."""
    kinds = set()
    channels = {channel.connection: channel for channel in truth.channels}
    for mart in ("agg_bookings_daily", "booking_coverage"):
        for row in one(engine, f"select connection_id, booking_date, is_complete from marts.{mart}"):
            channel = channels[row["connection_id"]]
            assert row["is_complete"] is channel.knows(row["booking_date"]), (mart, row)
            today = (NOON + LATER).astimezone(ZoneInfo(channel.zone)).date()
            kinds.add((row["is_complete"], row["booking_date"] < today + HORIZONS["bookings"][0] * DAY))
    return kinds


@pytest.mark.parametrize(
    ("month", "told"),
    [("2026-10", False), ("2026-10", True), ("2026-12", True)],
    ids=["nobody knows of it", "asked for, past", "asked for, ahead"],
)
def test_a_month_that_was_never_answered_leaves_the_days_up_to_it_in_doubt(engine, world, month, told):
    """There is no row that would say that it is incomplete: what is not there has to be missed."""
    owned = "connection_id = 'agents' and resource = 'bookings'"
    row = f"insert into ops.unanswered values ('agents', 'bookings', '[\"{month}\"]', null, null, '{month}')"
    channels = [
        dataclasses.replace(c, unanswered=frozenset({month} if c.connection == "agents" else ()))
        for c in world.now.channels
    ]
    doubtful = Truth(channels)
    with planted(
        engine,
        f"update ops.coverage set resource = 'kept' where {owned} and travel_month = '{month}'"
        + (f"; {row}" if told else ""),
        "update ops.coverage set resource = 'bookings' where resource = 'kept'; delete from ops.unanswered",
    ):
        known = days_known(engine, doubtful)
        evidence = one(engine, f"select * from marts.coverage where {owned} and travel_month = '{month}-01'")
        owed = one(engine, f"select * from marts.sync_freshness where {owned}")
    assert (False, False) in known
    assert [(row["parts"], row["parts_wanted"], row["is_complete"]) for row in evidence] == [(0, 1, False)] * told
    assert [row["open_subjects"] for row in owed] == [int(told)]


@pytest.mark.parametrize(
    ("month", "column", "day", "skipped"),
    [
        ("2026-11", "window_start", "2026-11-15", dt.date(2026, 11, 14)),  # pulled anew after a long rest, for few days
        ("2026-10", "window_end", "2026-10-20", dt.date(2026, 10, 31)),  # as far as the horizon went before it
    ],
)
def test_days_of_travel_that_nobody_asked_for_leave_the_days_up_to_them_in_doubt(
    engine, world, month, column, day, skipped
):
    chosen = f"where connection_id = 'agents' and resource = 'bookings' and travel_month = '{month}'"
    ((was,),) = engine.query(f"select {column} from ops.coverage {chosen}").rows
    doubtful = Truth(
        [dataclasses.replace(c, skipped=skipped if c.connection == "agents" else None) for c in world.now.channels]
    )
    with planted(
        engine,
        f"update ops.coverage set {column} = date '{day}' {chosen}",
        f"update ops.coverage set {column} = date '{was}' {chosen}",
    ):
        assert (False, False) in days_known(engine, doubtful)


@pytest.mark.deep(3)
async def test_what_a_service_never_answered_is_told_until_it_does(project, service):
    copy = project(publish=True, limits=QUICK, sync=QUICK_SYNC)

    def refuse(request, answer):
        january = api_path(request) == "/bookings" and request.url.params["localDateStart"] == "2027-01-01"
        return reply({"error": "INTERNAL_SERVER_ERROR", "errorMessage": "no"}, 500) if january else None

    days = "select bool_or(is_complete) from octo.marts.booking_coverage"
    owed = "select connection_id, resource, key, product_id, option_id, travel_month from octo.ops.unanswered"
    held = "select travel_month, parts from octo.marts.coverage where resource = 'bookings' and not is_complete"
    await copy.sync(transport=Wire.by(refuse))
    assert copy.query(owed) == [("main", "bookings", '["2027-01"]', None, None, "2027-01")]
    assert copy.query(held) == [(dt.date(2027, 1, 1), 0)]
    assert copy.query(days) == [(False,)], "a booking of any day may travel then"
    copy.clock.advance(days=1)
    await copy.sync()
    assert copy.query(owed) == copy.query(held) == []
    assert copy.query(days) == [(True,)]


def test_a_booking_says_when_it_was_last_verified(engine, world):
    rows = one(engine, "select travel_date, verified_at_utc, verified_by from marts.fct_bookings")
    fresh = [r for r in rows if r["travel_date"] and r["travel_date"] > TODAY]

    assert fresh
    assert all(r["verified_at_utc"] >= NOON + LATER for r in fresh)
    assert {r["verified_by"] for r in fresh} <= {"user", "schedule"}


def test_a_booking_that_its_month_no_longer_shows_is_not_verified_by_it(engine, world):
    booking = next(b for b in world.now.bookings if b["travel_date"] and b["travel_date"] > TODAY + 2 * DAY)
    uuid = booking["booking_uuid"]
    read = f"select verified_at_utc from marts.fct_bookings where booking_uuid = '{uuid}'"
    ((shown,),) = engine.query(
        "select greatest(b.verified_at_utc, o.verified_at_utc) from core.bookings b left join ops.coverage o "
        "on o.connection_id = b.connection_id and o.resource = 'booking' and o.key = '[\"' || b.booking_uuid || '\"]' "
        f"where b.booking_uuid = '{uuid}'"
    ).rows
    # The month's answer of the second pull is made later than all that showed the booking itself.
    month = f"{booking['travel_date']:%Y-%m}"
    chosen = f"where connection_id = '{booking['connection']}' and resource = 'bookings' and travel_month = '{month}'"
    with planted(
        engine,
        f"update ops.coverage set verified_at_utc = verified_at_utc + interval '1 hour' {chosen}",
        f"update ops.coverage set verified_at_utc = verified_at_utc - interval '1 hour' {chosen}",
    ):
        assert engine.query(read).rows[0][0] > shown
        with planted(
            engine,
            "insert into ops.absences (connection_id, table_name, key, resource, subject_key, misses) values "
            f"""('{booking["connection"]}', 'core.bookings', '["{uuid}"]', 'booking', '["{uuid}"]', 1)""",
            "delete from ops.absences",
        ):
            assert engine.query(read).rows == [(shown,)]


def test_a_booking_or_product_by_itself_is_as_fresh_as_its_list(engine, world):
    """And a booking that has travelled is not waited for: else its own answer would age for ever."""
    ahead = next(b for b in world.now.bookings if b["travel_date"] and b["travel_date"] > TODAY + 2 * DAY)
    behind = next(b for b in world.now.bookings if b["travel_date"] and b["travel_date"] < TODAY - 2 * DAY)
    old = NOON - dt.timedelta(days=300)
    rows = ", ".join(
        f"""('{b["connection"]}', 'booking', '["{b["booking_uuid"]}"]', '{old.isoformat()}', 1, true)"""
        for b in (ahead, behind)
    )
    with planted(
        engine,
        "update ops.coverage set resource = 'kept' where resource in ('booking', 'product'); insert into ops.coverage "
        f"(connection_id, resource, key, verified_at_utc, row_count, is_complete) values {rows}, "
        f"('{ahead['connection']}', 'product', '[\"p\"]', '{old.isoformat()}', 1, true)",
        "delete from ops.coverage where resource in ('booking', 'product'); "
        "update ops.coverage set resource = case when product_id is not null then 'product' else 'booking' end "
        "where resource = 'kept'",
    ):
        found = one(
            engine,
            "select resource, subjects, oldest_verified_at from marts.sync_freshness "
            "where resource in ('booking', 'product') order by resource",
        )
    assert [(row["resource"], row["subjects"]) for row in found] == [("booking", 1), ("product", 1)]
    assert all(row["oldest_verified_at"] >= NOON + LATER for row in found)


def test_the_calendar_has_every_day_of_its_years(engine, world):
    rows = one(engine, "select * from marts.dim_date order by date_key")
    first, last = rows[0]["date_key"], rows[-1]["date_key"]

    assert (first, f"{last:%m-%d}") == (dt.date(2026, 1, 1), "12-31")
    assert [r["date_key"] for r in rows] == [first + n * DAY for n in range((last - first).days + 1)]
    for r in rows:
        year, week, weekday = r["date_key"].isocalendar()
        assert (r["iso_year"], r["iso_week"], r["weekday"], r["is_weekend"]) == (year, week, weekday, weekday > 5)
        assert (r["weekday_name"], r["travel_month"]) == (f"{r['date_key']:%A}", month_of(r["date_key"]))
        assert r["quarter"] == (r["date_key"].month + 2) // 3


def test_the_calendar_has_the_days_of_the_business_time_zone_and_the_copys_today(engine, world, tmp_path):
    """Two in the morning of New Year's Day in UTC is the year before in New York."""
    uuid, connection = world.now.bookings[0]["booking_uuid"], world.now.bookings[0]["connection"]
    zone = f"update core.connections set business_time_zone = '{{}}' where connection_id = '{connection}'"
    made = f"update core.bookings set utc_created_at = {{}} where booking_uuid = '{uuid}'"
    undo = one(engine, f"select utc_created_at as at from core.bookings where booking_uuid = '{uuid}'")[0]["at"]
    former = one(
        engine, f"select business_time_zone as zone from core.connections where connection_id = '{connection}'"
    )
    with rebuilt(
        engine,
        tmp_path,
        f"{zone.format('America/New_York')}; {made.format(repr('2025-01-01 02:00:00+00'))}",
        f"{zone.format(former[0]['zone'])}; {made.format(repr(undo.isoformat()))}",
    ):
        days = {row["date_key"] for row in one(engine, "select date_key from marts.dim_date")}
        booked = one(engine, "select booking_date, sold_date, cancelled_date, travel_date from marts.fct_bookings")
        today = one(engine, "select as_of_date from marts.dim_channel")

    used = {day for row in booked for day in row.values() if day}
    assert dt.date(2024, 12, 31) in used
    assert used | {row["as_of_date"] for row in today} <= days


@pytest.mark.deep(1)
async def test_guests_are_counted_where_the_service_leaves_the_units_out(project, service):
    """Then the product says how many people a unit admits; a unit that nobody knows makes the booking unknown, not 0."""
    copy, lost = project(publish=True, availability=(0, 1)), []

    def edit(request, answer):
        if api_path(request) != "/bookings":
            return None
        rows = answer.json()
        for row in rows:
            for item in row["unitItems"]:
                item.pop("unit")
        if rows and not lost:
            lost.append(rows[0]["uuid"])
        for row in rows:
            if row["uuid"] in lost:
                row["unitItems"][0]["unitId"] = "nobody-knows"
        return reply(rows)

    await copy.sync(transport=Wire.by(edit))
    units = {
        (p["id"], o["id"], u["id"]): u["pax_count"]
        for p in service.state()["products"]
        for o in p["options"]
        for u in o["units"]
    }
    expected = {
        b["uuid"]: sum(units[b["product_id"], b["option_id"], i["unit_id"]] for i in b["unit_items"])
        for b in service.state()["bookings"]
    }
    found = dict(copy.query("select booking_uuid, pax_count from octo.marts.fct_bookings"))
    assert len(found) > 50
    assert found == {uuid: None if uuid in lost else expected[uuid] for uuid in found}
    assert copy.query("select count(*) from octo.marts.fct_guests where unit_type is null") == [(1,)]


@pytest.mark.parametrize("precision", [0, 2, 3])
def test_totals_per_currency_are_exact(engine, world, precision):
    currencies = {p["default_currency"] for p in world.now.products.values() if p["currency_precision"] == precision}
    sold = [b for b in world.now.bookings if b["sold"]]
    for currency in currencies:
        (row,) = one(
            engine, f"select sum(retail_amount) as retail from marts.agg_bookings_daily where currency = '{currency}'"
        )
        minor = sum(b["raw"]["retail"] for b in sold if b["currency"] == currency)
        assert row["retail"] == Decimal(minor).scaleb(-precision)
