"""Every question answers what plain Python finds in the sandbox's own state, on both engines."""

import contextlib
import copy
import dataclasses
import datetime as dt
from decimal import Decimal
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from tests.flows.harness import NOON, TODAY
from tests.warehouse.conftest import CHANNELS, LATER
from tests.warehouse.engines import planted, rebuilt
from tests.warehouse.test_recon_open import _insert as recon_insert
from tests.warehouse.test_recon_open import _rows as recon_rows
from tests.warehouse.truth import Truth, availability_changes, booking_changes, grouped, month_of, price_changes

from octo_sync.flows import ask
from octo_sync.flows.publish import run_checks

DAY = dt.timedelta(days=1)
NOW = NOON + LATER
TODAYS = {name: NOW.astimezone(ZoneInfo(zone)).date() for name, (_, _, zone) in CHANNELS.items()}
ALL = {q.number: q for q in ask.questions(Path("nowhere"))}


def answer(engine, number, **given):
    """Rows of a question as dictionaries."""
    question = ALL[number]
    values = ask.values(question, {k: str(v) for k, v in given.items()}, now=NOW, time_zone="UTC")
    found = engine.query(question.sql, values)
    return [dict(zip(found.columns, row, strict=True)) for row in found.rows]


def same(found, wanted):
    """Both have the same rows in the columns that the oracle knows, and there are some."""
    assert wanted, "the oracle has no row: nothing would be compared"
    columns = list(wanted[0])
    missing = [c for c in columns if c not in found[0]] if found else []
    assert missing == []
    assert sorted(map(repr, ([_plain(row[c]) for c in columns] for row in found))) == sorted(
        map(repr, ([_plain(row[c]) for c in columns] for row in wanted))
    )


def _plain(value):
    if isinstance(value, Decimal):
        return value.normalize() + 0
    if isinstance(value, dt.datetime) and value.tzinfo:
        return value.astimezone(dt.UTC).isoformat()
    return value


PAST = {"first": TODAY - 60 * DAY, "last": TODAY + DAY}
AROUND = {"first": TODAY - 60 * DAY, "last": TODAY + 30 * DAY}
AHEAD = {"first": TODAY + 3 * DAY, "last": TODAY + 25 * DAY}


@pytest.mark.parametrize(
    ("number", "window", "more"),
    [
        (1, PAST, {}),
        (2, AROUND, {}),
        (3, AHEAD, {}),
        (4, AHEAD, {"below": 0.2}),
        (5, PAST, {}),
        (6, PAST, {}),
        (8, AHEAD, {}),
        (9, {"first": TODAY - 60 * DAY, "last": TODAY - DAY}, {}),
        (9, AHEAD, {}),
        (11, {"first": TODAY - 50 * DAY, "last": TODAY - 20 * DAY}, {}),
        (16, AROUND, {}),
        (17, AROUND, {}),
        (18, AROUND, {}),
        (19, PAST, {}),
    ],
)
def test_a_question_over_a_window_answers_what_the_service_holds(engine, world, number, window, more):
    same(answer(engine, number, **window, **more), getattr(world.now, f"q{number}")(**window, **more))


def test_where_nothing_is_redeemed_nobody_is_called_a_no_show(engine, world):
    rates = [row["no_show_rate"] for row in answer(engine, 9, **AHEAD) if row["redeemed"] == 0]

    assert rates
    assert set(rates) == {None}


@pytest.mark.parametrize("window", [{"first": TODAY - 60 * DAY, "last": TODAY - DAY}, AHEAD])
def test_who_is_told_not_to_have_come_has_bought_and_is_a_no_show(engine, world, window):
    """Also where nobody is redeemed: somebody counts arrivals then."""
    uuid = next(b["booking_uuid"] for b in world.now.sold(**window) if b["status"] == "CONFIRMED")
    channels = copy.deepcopy(world.now.channels)
    next(b for c in channels for b in c.state["bookings"] if b["uuid"] == uuid)["status"] = "NOSHOW"
    told = Truth(channels)

    with planted(
        engine,
        f"update core.bookings set status = 'NOSHOW' where booking_uuid = '{uuid}'",
        f"update core.bookings set status = 'CONFIRMED' where booking_uuid = '{uuid}'",
    ):
        same(answer(engine, 9, **window), told.q9(**window))


@contextlib.contextmanager
def separated(engine, directory):
    """With suppliers that nobody knows: each connection stands alone."""
    ((supplier,),) = engine.query("select distinct supplier_id from core.connections").rows
    told = "update core.connections set supplier_id = "
    with rebuilt(engine, directory, f"{told} null", f"{told} '{supplier}'"):
        yield


@pytest.mark.deep(2, everyday=1)
def test_what_lay_ahead_of_a_connection_that_left_is_in_no_answer(engine, world):
    """Nobody asks for it any more; its past, and all of its bookings, stay as they were."""
    alone = {"supplier": None}
    gone = Truth([dataclasses.replace(c, active=c.connection != "agents", **alone) for c in world.now.channels])
    after = (NOW + DAY).isoformat()
    directory = world.project.directory
    told = "update core.connections set is_active = %s where connection_id = 'agents'"
    sold = answer(engine, 2, **AROUND)
    with separated(engine, directory):
        past = answer(engine, 3, first=TODAY, last=TODAY)
    with separated(engine, directory), rebuilt(engine, directory, told % "false", told % "true"):
        same(answer(engine, 3, **AHEAD), gone.q3(**AHEAD))
        same(answer(engine, 4, **AHEAD, below=0.2), gone.q4(**AHEAD, below=0.2))
        same(answer(engine, 8, **AHEAD), gone.q8(**AHEAD))
        same(answer(engine, 21, after=after, last=AHEAD["last"], above=0.9), gone.q21(NOW + DAY, AHEAD["last"], 0.9))
        assert answer(engine, 3, first=TODAY, last=TODAY) == past
        assert answer(engine, 2, **AROUND) == sold
        health = engine.query("select distinct connection_id from marts.availability_health").rows
    assert past
    assert health == [("direct",)]


def test_days_without_bookings_are_there_with_zero(engine, world):
    rows = answer(engine, 1, **PAST)

    assert [row["booking_date"] for row in rows] == [PAST["first"] + n * DAY for n in range(62)]
    assert rows[-1]["is_complete"] is False, "the day is not over"
    assert all(row["is_complete"] for row in rows[-40:-2])


def test_a_day_is_complete_where_every_connection_was_answered_for_all_months_since(engine, world):
    """Also a day on which nothing was sold: that is known only where somebody was asked."""
    month, quiet = "2026-10", dt.date(2026, 9, 25)
    channels = [dataclasses.replace(c, unanswered=frozenset({month})) for c in world.now.channels[:1]]
    doubtful = Truth([*channels, *world.now.channels[1:]])
    chosen = f"connection_id = '{channels[0].connection}' and travel_month = '{month}' and resource"
    hidden = f"cast(utc_created_at as date) between date '{quiet - DAY}' and date '{quiet + DAY}'"
    with planted(
        engine,
        f"update core.bookings set is_deleted = true where {hidden} and not is_deleted",
        f"update core.bookings set is_deleted = false where {hidden} and deleted_at_utc is null",
    ):
        (day,) = (row for row in answer(engine, 1, **PAST) if row["booking_date"] == quiet)
        assert (day["bookings"], day["is_complete"]) == (0, True)
        with planted(
            engine,
            f"update ops.coverage set resource = 'kept' where {chosen} = 'bookings'",
            f"update ops.coverage set resource = 'bookings' where {chosen} = 'kept'",
        ):
            rows = answer(engine, 1, **PAST)
    assert {r["booking_date"]: r["bookings"] for r in rows}[quiet] == 0
    wanted = {r["booking_date"]: r["is_complete"] for r in doubtful.q1(**PAST)}
    assert {r["booking_date"]: r["is_complete"] for r in rows} == wanted
    assert set(wanted.values()) == {False, True}
    assert wanted[quiet] is False


@pytest.mark.parametrize("number", [number for number, question in ALL.items() if "_month" in question.sql])
def test_every_month_in_an_answer_is_a_date_the_first_day_of_it(engine, number):
    rows = answer(engine, number, first=TODAY - 400 * DAY, last=TODAY + 400 * DAY)
    months = {value for row in rows for name, value in row.items() if name.endswith("_month")}
    assert {(type(month), month.day) for month in months} == {(dt.date, 1)}


def test_pick_up_is_of_months_that_are_over(engine, world):
    window = {"first": dt.date(2026, 8, 1), "last": dt.date(2026, 12, 1)}
    rows = answer(engine, 7, **window)

    same(rows, world.now.q7(**window, today=TODAYS))
    complete = {row["travel_month"]: row["is_complete"] for row in rows}
    august, *later = (dt.date(2026, number, 1) for number in (8, 9, 10))
    assert complete == {august: False, **dict.fromkeys(later, True)}, "August lies only in part in the horizon"
    assert any(0 < row["share_7"] < 1 for row in rows)


def test_the_guests_of_a_channel_that_left_are_not_left_out_and_are_not_all(engine, world):
    """It was last heard of before the months were over; whoever booked through it since is missing."""
    window = {"first": dt.date(2026, 8, 1), "last": dt.date(2026, 12, 1)}
    left = (
        "update ops.coverage set verified_at_utc = verified_at_utc {} interval '70 days' where connection_id = 'agents'"
    )
    with planted(engine, left.format("-"), left.format("+")):
        rows = answer(engine, 7, **window)
        lines = engine.query("select distinct travel_month, is_final from marts.agg_pickup_curve").rows

    gone = {
        (b["product_name"], month_of(b["travel_date"]))
        for b in world.now.bookings
        if b["connection"] == "agents" and b["was_sold"] and b["travel_date"]
    }
    asked = world.now.q7(**window, today=TODAYS)
    for row in asked:
        row["is_complete"] &= (row["product_name"], row["travel_month"]) not in gone
    same(rows, asked)
    assert {row["is_complete"] for row in asked} == {True, False}
    assert len({month for month, _ in lines}) == len(lines), "one month is over for all its channels, or for none"


@pytest.mark.deep(0.5, everyday=1)
def test_people_that_nobody_counts_are_not_0_and_a_part_is_not_the_whole(engine, world):
    """All sold bookings of one day, and all of a product in one month, do not say how many they are for."""
    channels = copy.deepcopy(world.now.channels)
    made = grouped(world.now.sold(PAST["first"], PAST["last"], "booking_date"), "booking_date")
    lonely = min(made.values(), key=len)
    over = [
        b for b in world.now.bookings if b["was_sold"] and b["travel_date"] and f"{b['travel_date']:%Y-%m}" == "2026-10"
    ]
    month = min(grouped(over, "connection", "product_name").values(), key=len)
    ahead = [b for b in world.now.sold(**AHEAD) if b["slot"][3]]
    silent = {b["booking_uuid"]: b["guests"] for b in [*lonely, *month, ahead[0]]}
    for channel in channels:
        for raw in channel.state["bookings"]:
            raw["nobody_counts"] = raw["uuid"] in silent
    told = Truth(channels)
    chosen = ", ".join(f"'{uuid}'" for uuid in silent)
    of = f"booking_uuid in ({chosen})"
    again = "; ".join(
        f"update core.bookings set pax_count = {guests} where booking_uuid = '{u}'" for u, guests in silent.items()
    )
    window = {"first": dt.date(2026, 8, 1), "last": dt.date(2026, 12, 1)}
    with rebuilt(
        engine,
        world.project.directory,
        f"update core.bookings set pax_count = null where {of}; "
        f"update core.booking_unit_items set is_deleted = true where {of} and not is_deleted",
        f"{again}; update core.booking_unit_items set is_deleted = false where {of} and deleted_at_utc is null",
    ):
        days, months = answer(engine, 1, **PAST), answer(engine, 7, **window)
        sizes = answer(engine, 18, **AROUND)
        same(days, told.q1(**PAST))
        same(sizes, told.q18(**AROUND))
        same(months, told.q7(**window, today=TODAYS))
        same(answer(engine, 21, after=NOW.isoformat(), last=AHEAD["last"], above=-1), told.q21(NOW, AHEAD["last"], -1))
        key = "|".join(ahead[0]["slot"])
        read = "select our_guests from marts.%s where travel_date = date '%s' and %s = '%s'"
        day = (ahead[0]["travel_date"], "product_key", "|".join(ahead[0]["slot"][:2]))
        assert engine.query(read % ("fct_departures", day[0], "departure_key", key)).rows == [(None,)]
        assert engine.query(read % ("agg_occupancy_daily", *day)).rows == [(None,)]
    assert {row["guests"] for row in days if row["sold"] == row["sold_without_guests"] > 0} == {None}
    assert any(row["bookings_without_guests"] > 0 for row in sizes)
    assert {row["final_guests"] for row in months if row["guests_7_days_out"] is None} >= {None}


def _with_slots(world, changes):
    """The oracle with other departures, and the statements that make the copy's such and as they were."""
    channels = copy.deepcopy(world.now.channels)
    plant, undo = [], []
    for (product, option, availability), fields in changes.items():
        for raw in channels[0].slots:
            if (raw["product_id"], raw["option_id"], raw["availability_id"]) == (product, option, availability):
                was = {name: raw[name] for name in fields}
                break
        for channel in channels:
            for raw in channel.slots:
                if (raw["product_id"], raw["option_id"], raw["availability_id"]) == (product, option, availability):
                    raw.update(fields)
        for into, values in ((plant, fields), (undo, was)):
            told = ", ".join(f"{name} = '{value}'" for name, value in values.items())
            into.append(
                f"update core.availability set {told} where product_id = '{product}' and option_id = '{option}' "
                f"and availability_id = '{availability}'"
            )
    return Truth(channels), "; ".join(plant), "; ".join(undo)


def _open_days(world):
    """Days of one product on which everything is measured and open, as the departures of each."""
    days = grouped([d for d in world.now.departures if AHEAD["first"] <= d["travel_date"] <= AHEAD["last"]], "slot")
    found = grouped([d for (d,) in days.values()], "product", "travel_date")
    return [same for same in found.values() if all(d["taken"] is not None and not d["sold_out"] for d in same)]


@pytest.mark.deep(0.6, everyday=1)
def test_a_departure_without_places_or_with_more_left_than_it_has_is_not_measured(engine, world):
    """Services say such of sold-out ones; taken would be below 0, or the day full of nothing."""
    (first, second, *_) = [same[0]["slot"][1:] for same in _open_days(world)]
    told, plant, undo = _with_slots(
        world,
        {
            first: {"status": "SOLD_OUT", "capacity": 0, "vacancies": 0},
            second: {"status": "SOLD_OUT", "capacity": 4, "vacancies": 9},
        },
    )
    with rebuilt(engine, world.project.directory, plant, undo):
        same(answer(engine, 3, **AHEAD), told.q3(**AHEAD))
        same(answer(engine, 4, **AHEAD, below=2), told.q4(**AHEAD, below=2))
        checked = run_checks(engine, world.project.directory)
        ((least,),) = engine.query("select min(taken) from marts.fct_departures").rows
    assert [each for each in checked if each.rows.rows] == []
    assert least >= 0


@pytest.mark.deep(0.6, everyday=1)
def test_what_is_sold_out_is_not_weak(engine, world):
    """Though a service may say that nobody has taken a place: a day is one or the other."""
    day = min(_open_days(world), key=len)
    changes = {d["slot"][1:]: {"status": "SOLD_OUT", "vacancies": d["capacity"]} for d in day}
    told, plant, undo = _with_slots(world, changes)
    read = "select product_key, days, sold_out_days, closed_days, weak_days from marts.availability_health"
    before = {row[0]: row for row in engine.query(read).rows}
    with rebuilt(engine, world.project.directory, plant, undo):
        same(answer(engine, 4, **AHEAD, below=0.2), told.q4(**AHEAD, below=0.2))
        after = {row[0]: row for row in engine.query(read).rows}
    key = "|".join(day[0]["product"])
    _, days, sold_out, closed, weak = before[key]
    assert after[key][1:] in ((days, sold_out + 1, closed, weak), (days, sold_out + 1, closed, weak - 1))


def test_the_manifest_is_of_one_day_and_names_nobody(engine, world):
    day = max(
        (b["travel_date"] for b in world.now.bookings if b["sold"] and b["travel_date"]),
        key=lambda d: len(world.now.q10(d)),
    )
    rows = answer(engine, 10, day=day)

    same(rows, world.now.q10(day))
    kept = {d["slot"] for d in world.now.departures}
    sold = (b for b in world.now.bookings if b["sold"] and b["travel_date"])
    before = next(b["travel_date"] for b in sold if b["whole_day"] and b["slot"] not in kept)
    same(answer(engine, 10, day=before), world.now.q10(before))
    assert not {"full_name", "email_address", "notes"} & set(rows[0])


def test_a_departure_says_itself_whether_it_spans_the_day_and_its_product_where_it_is_not_known(engine, world):
    """Of a product with times of start one is for the whole day; of one with opening hours another does not say."""
    timed, open_ = (
        next(
            b for b in world.now.sold(**AHEAD)
            if b["whole_day"] is whole_day and b["slot"] in {d["slot"] for d in world.now.departures}
        )
        for whole_day in (False, True)
    )  # fmt: skip
    told = (
        "update core.availability set is_all_day = {} "
        "where product_id = '{}' and option_id = '{}' and availability_id = '{}'"
    )
    with planted(
        engine,
        "; ".join(told.format(said, *b["slot"][1:]) for b, said in ((timed, "true"), (open_, "null"))),
        "; ".join(told.format(said, *b["slot"][1:]) for b, said in ((timed, "false"), (open_, "true"))),
    ):
        for booking in (timed, open_):
            rows = {row["booking_uuid"]: row for row in answer(engine, 10, day=booking["travel_date"])}
            assert rows[booking["booking_uuid"]]["is_all_day"] is True


def test_open_dated_bookings_are_in_no_row_and_counted(engine, world):
    sold = [b for b in world.now.bookings if b["sold"]]
    ever = {"first": "2000-01-01", "last": "2099-12-31"}
    for number in (2, 11):
        ((what, which),) = ALL[number].not_shown
        ((count,),) = engine.query(f"select count(*) from marts.fct_bookings where {which}").rows
        assert (what, count) == ("open-dated booking", len([b for b in sold if b["travel_date"] is None]))
        assert count + sum(row["bookings"] for row in answer(engine, number, **ever)) == len(sold)


def test_nearly_full_departures_are_open_and_ahead(engine, world):
    """Ahead of an instant, not of a wall clock: asked at the very start of a departure in each time zone."""
    last = TODAY + 25 * DAY
    full = [d for d in world.now.departures if (d["rate"] or 0) > 0.9 and TODAY + 3 * DAY <= d["travel_date"] < last]
    starts = {d["start"].replace(tzinfo=dt.UTC) - d["utc_start"]: d["utc_start"] for d in full}

    assert len(starts) > 2
    for after in starts.values():
        asked = {"after": after.isoformat(), "last": last, "above": 0.9}
        rows = answer(engine, 21, **asked)
        same(rows, world.now.q21(after, last, 0.9))
        assert [row["utc_start_at"] for row in rows] == sorted(row["utc_start_at"] for row in rows)
        assert all(
            row["utc_start_at"].astimezone(ZoneInfo(row["time_zone"])).replace(tzinfo=None) == row["local_start_at"]
            for row in rows
        )


def test_what_changed_is_every_booking_that_differs(engine, world):
    since = NOON + dt.timedelta(hours=1)
    rows = answer(engine, 12, since=since.isoformat())
    wanted = booking_changes(world.before, world.now, NOON)

    same(rows, wanted)
    assert [r["event_at_utc"] for r in rows] == sorted((r["event_at_utc"] for r in rows), reverse=True)
    assert all(NOON + LATER <= r["event_at_utc"] < NOON + LATER + dt.timedelta(minutes=10) for r in rows)
    assert len({(r["previous_status"], r["status"]) for r in wanted}) > 2
    assert {"", "status"} < {r["changed_fields"] for r in wanted}, "moved ones too"


def test_what_was_only_read_for_the_first_time_did_not_change(engine, world):
    rows = answer(engine, 12, since=(NOON - DAY).isoformat())

    made = {
        b["booking_uuid"]: b["raw"]["utc_created_at"] for b in world.now.bookings if not b["raw"]["utc_cancelled_at"]
    }
    assert (
        min(made[r["booking_uuid"]] for r in rows if r["version_no"] == 1 and r["booking_uuid"] in made)
        >= (NOON - DAY).isoformat()[:16]
    )
    assert [
        r for r in rows if r["version_no"] > 1 and made.get(r["booking_uuid"], "9") < (NOON - DAY).isoformat()[:16]
    ], "what changed is there"


@pytest.mark.parametrize("name", ["booking_uuid", "supplier_reference", "reseller_reference"])
def test_a_booking_is_shown_as_it_was_by_each_name_it_has(engine, world, name):
    change = next(
        c for c in booking_changes(world.before, world.now, NOON) if c["previous_status"] not in (None, c["status"])
    )
    uuid = change["booking_uuid"]
    states = [next(b for b in t.bookings if b["booking_uuid"] == uuid) for t in (world.before, world.now)]
    booking = {**states[1]["raw"], "booking_uuid": uuid}[name]
    (then,) = answer(engine, 13, booking=booking, at=(NOON + dt.timedelta(hours=1)).isoformat())
    (today,) = answer(engine, 13, booking=booking, at=(NOW + dt.timedelta(hours=1)).isoformat())

    told = ("connection_id", "booking_uuid", "supplier_reference", "status", "travel_date", "product_name", "option_name",
            "currency", "retail_amount", "net_amount", "pax_count")  # fmt: skip
    for row, b in zip((then, today), states, strict=True):
        assert tuple(_plain(row[column]) for column in told) == tuple(map(_plain, (
            b["connection"], uuid, b["raw"]["supplier_reference"], b["status"], b["travel_date"], b["product_name"],
            b["option_name"], b["currency"], b["retail"], b["net"], b["guests"],
        )))  # fmt: skip
    assert then["valid_to_utc"] == today["event_at_utc"]
    (at_change,) = answer(engine, 13, booking=booking, at=today["event_at_utc"].isoformat())
    assert at_change["version_no"] == today["version_no"], (
        "at the very instant of the change it is the new one, and only that"
    )
    assert answer(engine, 13, booking=booking, at=(NOON - DAY).isoformat()) == []


def test_freshness_is_per_connection_and_complete(engine, world):
    at = (NOW + dt.timedelta(minutes=90)).isoformat()
    rows = answer(engine, 14, at=at)

    kinds = {"supplier", "products", "availability", "bookings"}
    assert {(r["connection_id"], r["resource"]) for r in rows} >= {(c, k) for c in CHANNELS for k in kinds}
    assert {r["incomplete_subjects"] for r in rows} == {0}
    assert all(88 <= r["minutes_behind"] <= 90 for r in rows if r["resource"] in kinds)
    for hours, is_fresh in ((26, True), (1.6, True), (1.4, False)):
        fresh = {r["is_fresh"] for r in answer(engine, 14, at=at, hours=hours) if r["resource"] in kinds}
        assert fresh == {is_fresh}, hours
    assert {(r["bookings_from"], r["bookings_to"]) for r in rows if r["connection_id"] == "direct"} == {
        (TODAYS["direct"] - 85 * DAY, TODAYS["direct"] + 40 * DAY)
    }


def test_what_is_missed_or_held_does_not_look_complete(engine, world):
    """A booking that its month no longer shows: neither its own kind nor the month's is complete until that is proven."""
    uuid = next(b["booking_uuid"] for b in world.now.bookings if b["connection"] == "direct")
    with planted(
        engine,
        "insert into ops.absences (connection_id, table_name, key, resource, subject_key, misses) "
        f"""values ('direct', 'core.bookings', '["{uuid}"]', 'booking', '["{uuid}"]', 1)""",
        "delete from ops.absences",
    ):
        rows = {(r["connection_id"], r["resource"]): r for r in answer(engine, 14)}
    lacking = {key for key, row in rows.items() if not row["is_complete"]}

    assert lacking == {("direct", "booking"), ("direct", "bookings")}
    assert {rows[key]["missed_rows"] for key in lacking} == {1}
    assert all(row["is_complete"] for row in answer(engine, 14))


@pytest.mark.parametrize(
    ("one", "lists", "list_key"), [("product", "products", "[]"), ("booking", "bookings", '["2026-12"]')]
)
def test_rows_not_found_that_wait_for_their_list_are_missed_and_the_list_is_one(engine, world, one, lists, list_key):
    """Three of them: the list is one subject, owed once."""
    before = {r["resource"]: r for r in answer(engine, 14) if r["connection_id"] == "direct"}
    rows = ", ".join(f"""('direct', 'core.{lists}', '["{n}"]', '{lists}', '{list_key}', 1)""" for n in range(3))
    with planted(
        engine,
        f"insert into ops.absences (connection_id, table_name, key, resource, subject_key, misses) values {rows}",
        "delete from ops.absences",
    ):
        after = {r["resource"]: r for r in answer(engine, 14) if r["connection_id"] == "direct"}
    assert {kind: row["missed_rows"] for kind, row in after.items() if row["missed_rows"]} == {one: 3, lists: 3}
    assert (after[lists]["subjects"], after[lists]["open_subjects"]) == (before[lists]["subjects"], 1)


def test_no_difference_is_open_before_a_reconciliation(engine, world):
    assert answer(engine, 15) == []


def test_changed_departures_are_shown_with_what_they_were(engine, world):
    rows = answer(engine, 20, since=(NOON + dt.timedelta(hours=1)).isoformat())

    same(rows, availability_changes(world.before, world.now))
    assert {"CLOSED"} <= {row["status"] for row in rows}


def test_a_departure_that_was_proven_gone_is_a_change_without_a_status(engine, world):
    gone = next(d for d in world.now.departures if d["capacity"] and d["travel_date"] > TODAY + 3 * DAY)
    at = NOW + dt.timedelta(hours=1)
    _, product, option, availability = gone["slot"]
    of = f"where product_id = '{product}' and option_id = '{option}' and availability_id = '{availability}'"
    with planted(
        engine,
        f"update core.availability set is_deleted = true, deleted_at_utc = '{at.isoformat()}' {of}",
        f"update core.availability set is_deleted = false, deleted_at_utc = null {of}",
    ):
        (row,) = answer(engine, 20, since=at.isoformat())
        assert answer(engine, 20, since=(at + dt.timedelta(seconds=1)).isoformat()) == []
    assert row == {
        "product_name": gone["product_name"], "option_name": gone["option_name"], "local_start_at": gone["start"],
        "is_all_day": gone["whole_day"],
        "changed_at_utc": at, "changed_fields": "is_deleted", "status_before": gone["status"], "status": None,
        "vacancies_before": gone["vacancies"], "vacancies": None, "capacity_before": gone["capacity"], "capacity": None,
    }  # fmt: skip


def test_tickets_of_a_unit_that_nobody_counts_are_told_apart(engine, world):
    told = Truth(world.now.channels)
    sold = {id(b) for b in told.sold(**AROUND)}
    of = next(t for t in told.tickets if id(t["booking"]) in sold and t["guests"])
    (seller, product, option, _), unit = of["booking"]["slot"], of["raw"]["unit_id"]
    known = of["guests"]
    for ticket in told.tickets:
        if (*ticket["booking"]["slot"][:3], ticket["raw"]["unit_id"]) == (seller, product, option, unit):
            ticket["guests"] = None
    one_option = f"product_id = '{product}' and option_id = '{option}'"
    change = (
        f"update core.units set pax_count = {{0}} where {one_option} and unit_id = '{unit}'; "
        f"update core.booking_unit_items set pax_count = {{0}} where unit_id = '{unit}' "
        f"and booking_uuid in (select booking_uuid from core.bookings where {one_option})"
    )
    with planted(engine, change.format("null"), change.format(known)):
        rows = answer(engine, 17, **AROUND)
        same(rows, told.q17(**AROUND))
    assert any(row["tickets_without_guests"] for row in rows)


def test_price_changes_are_shown_with_what_they_were(engine, world):
    rows = answer(engine, 22, since=(NOON + dt.timedelta(hours=1)).isoformat())

    same(rows, price_changes(world.before, world.now))
    assert answer(engine, 22, since=(NOW + DAY).isoformat()) == []
    first_prices_too = answer(engine, 22, since=(NOON - DAY).isoformat())
    assert first_prices_too == rows, "a price that was never another is no change"


@pytest.mark.parametrize("number", range(1, 31))
def test_each_question_runs_with_its_defaults(engine, world, number):
    question = ALL[number]
    rows = answer(engine, number, **dict.fromkeys(question.required, "none of that name"))

    assert question.question.endswith("?")
    assert isinstance(rows, list)


SHOWN = {
    7: {"first": dt.date(2026, 8, 1)},
    13: {"at": NOW + dt.timedelta(hours=1)},
    12: {"since": NOON - DAY},
    20: {"since": NOON - DAY},
}
"""What is asked for where the defaults would show nothing, or one row."""


@pytest.mark.parametrize("number", range(1, 31))
def test_a_question_has_its_rows_in_the_same_order_on_both_engines(duck, postgres, world, number):
    of = {13: next(b["booking_uuid"] for b in world.now.bookings)}
    given = {**dict.fromkeys(ALL[number].required, of.get(number)), **SHOWN.get(number, {})}
    runs, results = recon_rows()
    found = []
    for engine in (duck, postgres):
        with planted(
            engine,
            f"{recon_insert('recon_runs', runs)}; {recon_insert('recon_results', results)}",
            "delete from ops.recon_runs; delete from ops.recon_results",
        ):
            found.append(_comparable(answer(engine, number, **given)))

    assert found[0] == found[1]
    assert len(found[0]) > (0 if number == 13 else 1), "two empty lists have the same order"


def _comparable(rows):
    return [{name: _plain(value) for name, value in row.items()} for row in rows]
