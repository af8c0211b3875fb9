"""What the columns of the marts hold, against the service's own state: every row and every value, on both engines."""

import datetime as dt

import pytest
from tests.flows.harness import NOON
from tests.warehouse.conftest import CHANNELS, LATER
from tests.warehouse.engines import planted
from tests.warehouse.test_marts import one
from tests.warehouse.test_questions import TODAYS, same
from tests.warehouse.truth import booking_events, instant

DAY = dt.timedelta(days=1)
MARTS = ("dim_product", "dim_option", "fct_bookings", "fct_guests", "agg_bookings_daily")


@pytest.mark.parametrize("mart", MARTS)
def test_a_mart_holds_what_the_service_does(engine, world, mart):
    same(one(engine, f"select * from marts.{mart}"), getattr(world.now, mart)())


def test_the_oracle_has_what_these_columns_are_about(world):
    """Otherwise None would be compared with None, and one value with itself."""
    bookings, tickets = world.now.fct_bookings(), world.now.fct_guests()
    for name in ("utc_expires_at", "utc_confirmed_at", "utc_cancelled_at", "utc_redeemed_at", "cancellation_refund"):
        assert {row[name] is None for row in bookings} == {True, False}, name
    assert any(row["original_amount"] != b["retail"] for row, b in zip(bookings, world.now.bookings, strict=True))
    assert any(row["tax_amount"] for row in bookings)
    assert {row["is_freesale"] for row in bookings} == {True, False}
    assert {row["retail_amount"] is None for row in tickets} == {True, False}
    assert {row["net_amount"] is None for row in tickets if row["retail_amount"] is not None} == {True, False}
    assert {row["utc_redeemed_at"] is None for row in tickets} == {True, False}
    assert {row["is_default"] for row in world.now.dim_option()} == {True, False}
    assert any(row["sold_without_net"] for row in world.now.agg_bookings_daily())


def test_a_days_occupancy_is_of_the_departures_that_are_measured(engine, world):
    """The day before the first pull is of the copy alone: the oracle begins today."""
    wanted = world.now.agg_occupancy_daily()
    days = {(row["product_key"], row["travel_date"]) for row in wanted}
    rows = one(engine, "select * from marts.agg_occupancy_daily")
    same([row for row in rows if (row["product_key"], row["travel_date"]) in days], wanted)
    assert any(0 < row["measured_departures"] < row["departures"] for row in wanted)
    assert any(row["our_bookings"] for row in wanted)


def test_what_the_service_no_longer_has_is_retired_and_keeps_its_name(engine, world):
    (key, product), *_ = world.now.products.items()
    at = NOON + LATER
    of = f"product_id = '{key[1]}'"
    told = "update core.{0} set is_deleted = {1}, deleted_at_utc = {2} where " + of
    gone = "; ".join(told.format(table, "true", f"'{at.isoformat()}'") for table in ("products", "options"))
    back = "; ".join(told.format(table, "false", "null") for table in ("products", "options"))
    with planted(engine, gone, back):
        products = one(engine, "select * from marts.dim_product where is_retired")
        options = one(engine, "select * from marts.dim_option where is_retired")
    assert [(row["product_id"], row["product_name"], row["retired_at_utc"]) for row in products] == [
        (key[1], product["title"]["en"], at)
    ]
    assert {row["option_id"] for row in options} == {option["id"] for option in product["options"]}


def test_a_booking_says_whether_an_answer_that_landed_wholly_shows_it(engine, world):
    """Its month's, where that was asked for to its day; an open-dated one's is the list that showed it."""
    horizon = {c.connection: c.bookings[0] + LATER.days for c in world.now.channels}
    first = {name: TODAYS[name] + horizon[name] * DAY for name in CHANNELS}
    wanted = {
        b["booking_uuid"]: b["travel_date"] is None or b["travel_date"] >= first[b["connection"]]
        for b in world.now.bookings
    }
    rows = one(engine, "select * from marts.fct_bookings")

    assert {row["booking_uuid"]: row["is_covered"] for row in rows} == wanted
    assert set(wanted.values()) == {True, False}
    for row in rows:
        verified = (row["verified_by"], row["missing_capabilities"])
        assert verified == (("schedule", "") if row["is_covered"] else (None, None))
        if row["is_covered"]:
            assert NOON + LATER <= row["verified_at_utc"] < NOON + LATER + dt.timedelta(minutes=10)
    was = {b["booking_uuid"]: b for b in world.before.bookings}
    now = {b["booking_uuid"]: b for b in world.now.bookings}
    still = [
        row for row in rows
        if not row["is_covered"] and was.get(row["booking_uuid"], {}).get("raw") == now[row["booking_uuid"]]["raw"]
    ]  # fmt: skip
    assert still
    assert all(NOON <= row["verified_at_utc"] < NOON + dt.timedelta(minutes=10) for row in still)


def test_where_lists_are_by_day_of_booking_no_month_of_travel_speaks_for_a_booking(engine, world):
    """Of those that no answer of the second pull changed, which came by other months than such lists would have."""
    (channel,) = [c for c in world.now.channels if c.connection == "direct"]
    asked = [TODAYS["direct"] + n * DAY for n in (channel.bookings[0] + LATER.days, channel.bookings[1])]
    was = {b["booking_uuid"]: b["raw"] for b in world.before.bookings}
    wanted = {
        b["booking_uuid"]: asked[0] <= instant(b["raw"]["utc_created_at"]).date() <= asked[1]
        for b in world.now.bookings
        if b["connection"] == "direct" and was.get(b["booking_uuid"]) == b["raw"]
    }
    chosen = ", ".join(f"'{uuid}'" for uuid in wanted)
    read = f"select booking_uuid, is_covered from marts.fct_bookings where booking_uuid in ({chosen})"
    by_travel = dict(engine.query(read).rows)
    with planted(
        engine,
        "insert into ops.schema_drift (connection_id, resource, kind, name, seen_count) "
        "values ('direct', 'bookings', 'meaning', 'creation', 1)",
        "delete from ops.schema_drift where kind = 'meaning'",
    ):
        assert dict(engine.query(read).rows) == wanted
    assert set(wanted.values()) == {True, False}
    assert by_travel != wanted


def test_where_lists_are_by_day_of_booking_no_mart_claims_a_month_of_travel(engine, world):
    """And of the other connection every mart says what it said."""
    asked = (
        "select connection_id, bookings_from is null, bookings_to is null, booked_from is null from marts.dim_channel",
        "select distinct connection_id, is_complete or is_final from marts.agg_pickup_curve where is_complete or is_final",
        "select distinct connection_id, travel_month is null, booking_month is null from marts.booking_lists",
        "select distinct connection_id, true from marts.booking_coverage where is_complete",
    )
    before = [sorted(engine.query(sql).rows) for sql in asked]
    with planted(
        engine,
        "insert into ops.schema_drift (connection_id, resource, kind, name, seen_count) "
        "values ('direct', 'bookings', 'meaning', 'creation', 1)",
        "delete from ops.schema_drift where kind = 'meaning'",
    ):
        told = [sorted(engine.query(sql).rows) for sql in asked]
        ahead = engine.query("select count(*) from marts.booking_lists where booked_end > date '2026-11-23'").rows
    both = [{row[0] for row in rows} for rows in before]
    assert both == [{"agents", "direct"}] * 4
    assert [[row for row in rows if row[0] == "agents"] for rows in told] == [
        [row for row in rows if row[0] == "agents"] for rows in before
    ]
    direct = [[tuple(row[1:]) for row in rows if row[0] == "direct"] for rows in told]
    assert direct == [[(True, True, False)], [], [(True, False)], [(True,)]]
    assert ahead == [(0,)], "nobody has booked on days to come"


@pytest.mark.parametrize(
    ("hours", "is_complete", "lacking", "told"),
    [
        (1, True, "", ("notification", True, "")),
        (1, True, "octo/pricing", ("notification", True, "octo/pricing")),
        (-1, True, "octo/pricing", ("schedule", True, "")),  # the month's is newer
        (1, False, "", ("schedule", True, "")),  # a landing that set a record aside proves nothing
    ],
)
def test_a_booking_is_as_verified_as_its_newest_whole_answer(engine, world, hours, is_complete, lacking, told):
    booking = next(b for b in world.now.bookings if b["travel_date"] and b["travel_date"] > TODAYS["direct"] + 2 * DAY)
    at = NOON + LATER + hours * dt.timedelta(hours=1)
    with planted(
        engine,
        "insert into ops.coverage (connection_id, resource, key, verified_at_utc, source, row_count, is_complete, "
        f"""missing_capabilities) values ('{booking["connection"]}', 'booking', '["{booking["booking_uuid"]}"]', """
        f"'{at.isoformat()}', 'notification', 1, {str(is_complete).lower()}, '{lacking}')",
        "delete from ops.coverage where resource = 'booking'",
    ):
        (row,) = one(engine, f"select * from marts.fct_bookings where booking_uuid = '{booking['booking_uuid']}'")
    assert (row["verified_by"], row["is_covered"], row["missing_capabilities"]) == told
    assert (row["verified_at_utc"] == at) is (told[0] == "notification")


def test_a_change_that_came_with_an_answer_in_part_is_all_that_is_known(engine, world):
    """Such an answer renews no coverage of the booking, and the former one did not see the change."""
    booking = next(b for b in world.now.bookings if b["travel_date"] and b["travel_date"] > TODAYS["direct"] + 2 * DAY)
    of = f"where booking_uuid = '{booking['booking_uuid']}'"
    ((was,),) = engine.query(f"select verified_at_utc from core.bookings {of}").rows
    at = NOON + LATER + dt.timedelta(hours=1)
    told = "update core.bookings set verified_at_utc = '{}' " + of
    with planted(engine, told.format(at.isoformat()), told.format(was.isoformat())):
        (row,) = one(engine, f"select * from marts.fct_bookings {of}")
    assert (row["verified_at_utc"], row["verified_by"], row["is_covered"], row["missing_capabilities"]) == (
        at, None, False, None,
    )  # fmt: skip


def test_an_event_says_when_it_travels_whether_it_was_sold_and_its_departure_where_that_is_known(engine, world):
    wanted = booking_events(world.before, world.now)
    same(one(engine, "select * from marts.fct_booking_events"), wanted)
    moved = [row["booking_uuid"] for row in wanted if row["travel_date"] and not row["departure_key"]]
    assert any(row["departure_key"] for row in wanted if row["booking_uuid"] in moved), "what it was moved to is known"
    assert {row["departure_key"] is None for row in wanted if row["version_no"] == 1} == {True, False}


def test_a_booking_that_was_proven_gone_is_an_event(engine, world):
    """With its last values, no status any more, and the same again where it came back."""
    booking = next(b for b in world.now.bookings if b["status"] == "CONFIRMED" and b["travel_date"])
    of = f"where booking_uuid = '{booking['booking_uuid']}'"
    read = f"select * from marts.fct_booking_events {of} order by event_at_utc, is_gone"
    before = one(engine, read)
    last = before[-1]
    gone, back = (last["event_at_utc"] + n * DAY for n in (3, 4))
    key = f"{of} and version_no = {last['version_no']}"
    again = last["version_no"] + 1
    columns = (
        "connection_id, booking_uuid, {}, status, local_date, product_id, option_id, retail_amount, net_amount, currency, "
        "pax_count"
    )
    version = "version_no, valid_from_utc, valid_to_utc, is_current, changed_fields, source"
    values = f"{again}, timestamptz '{back.isoformat()}', null, true, 'is_deleted', 'schedule'"
    with planted(
        engine,
        f"update core.booking_history set valid_to_utc = '{gone.isoformat()}', is_current = false {key}",
        f"update core.booking_history set valid_to_utc = null, is_current = true {key}",
    ):
        after = one(engine, read)
        with planted(
            engine,
            f"insert into core.booking_history ({columns.format(version)}) "
            f"select {columns.format(values)} from core.booking_history {key}",
            f"delete from core.booking_history {of} and version_no = {again}",
        ):
            returned = one(engine, read)
    event = last | {
        "event_at_utc": gone, "valid_to_utc": None, "is_current": False, "is_gone": True,
        "previous_status": "CONFIRMED", "status": None, "is_sold": False, "changed_fields": "is_deleted", "source": "",
    }  # fmt: skip
    closed = last | {"valid_to_utc": gone, "is_current": False}
    assert [row["is_gone"] for row in before] == [False] * len(before)
    assert after == [*before[:-1], closed, event]
    assert returned[:-1] == after
    assert (returned[-1]["version_no"], returned[-1]["is_gone"], returned[-1]["status"]) == (again, False, "CONFIRMED")


def test_failures_are_of_seven_days_before_the_copys_now(engine, world):
    ((now,),) = engine.query("select max(verified_at_utc) from ops.coverage where connection_id = 'direct'").rows
    days = {"a": now, "b": now - 7 * DAY, "c": now - 7 * DAY - dt.timedelta(minutes=1)}
    rows = ", ".join(f"('direct', 'product', '{key}', '', '{at.isoformat()}')" for key, at in days.items())
    read = "select connection_id, resource, failures_7d, open_subjects from marts.sync_freshness where failures_7d > 0"
    assert one(engine, read) == []
    with planted(
        engine,
        f"insert into ops.quarantine (connection_id, resource, key, path, last_at_utc) values {rows}",
        "delete from ops.quarantine",
    ):
        assert [tuple(row.values()) for row in one(engine, read)] == [("direct", "product", 2, 3)]
