"""How full departures are beside what is usual: the mart and the question against lives planted in the past."""

import datetime as dt
from statistics import median
from zoneinfo import ZoneInfo

import pytest
from tests.flows.harness import NOON
from tests.warehouse.conftest import CHANNELS, LATER
from tests.warehouse.engines import rebuilt
from tests.warehouse.test_questions import answer
from tests.warehouse.truth import DAY

MARKS = (1, 2, 3, 5, 7, 10, 14, 21, 30)
TODAY = NOON + LATER
PLACES = 20


def pace(engine):
    found = engine.query("select * from marts.filling_pace")
    rows = [dict(zip(found.columns, row, strict=True)) for row in found.rows]
    assert len({row["departure_key"] for row in rows}) == len(rows)
    return {row["departure_key"]: row for row in rows}


def an_option(world):
    """A departure ahead of a product with starting times, and all that share its option."""
    for d in world.now.departures:
        product = world.now.products[d["product"]]
        if product["availability_type"] != "OPENING_HOURS" and d["capacity"]:
            return d, ZoneInfo(product["time_zone"])
    raise AssertionError("the world has no such departure")


LIVES = {
    # days ago → what was free since when: (days ahead, vacancies, status); ahead counts to the hour of the start
    3: [(40, 20, "AVAILABLE"), (6, 10, "AVAILABLE"), (2.5, 2, "LIMITED")],
    4: [(40, 18, "AVAILABLE"), (4, 4, "AVAILABLE")],
    9: [(40, 16, "AVAILABLE")],
    20: [(8, 12, "AVAILABLE"), (1, 0, "SOLD_OUT")],
    55: [(40, 20, "AVAILABLE"), (5, 5, "LIMITED")],
    30: [(40, 0, "CLOSED"), (9.5, 15, "AVAILABLE"), (3, 0, "CLOSED")],
    57: [(40, 0, "SOLD_OUT")],
}
"""The last one is too long ago."""


EMPTY = {ago: [(60, PLACES, "AVAILABLE")] for ago in range(1, 7)}


def planting(departure, zone, lives=LIVES):
    """Past departures of its option with such lives, the same for both connections; and what takes them away again."""
    _, product, option, _ = departure["slot"]
    today = TODAY.astimezone(zone).date()
    plant, undo = [], []
    for ago, life in lives.items():
        start = dt.datetime.combine(today - ago * DAY, dt.time(10), zone)
        name = f"past-{ago}"
        moments = [(start.astimezone(dt.UTC) - dt.timedelta(days=ahead), free, status) for ahead, free, status in life]
        for connection in CHANNELS:
            key = f"'{connection}', '{product}', '{option}', '{name}'"
            plant.append(
                "insert into core.availability (connection_id, product_id, option_id, availability_id, local_start_at, "
                "local_date, time_zone, utc_start_at, status, vacancies, capacity, first_seen_at_utc, is_deleted) values "
                f"({key}, '{start:%Y-%m-%d 10:00:00}', '{start:%Y-%m-%d}', '{zone.key}', '{start.isoformat()}', "
                f"'{moments[-1][2]}', {moments[-1][1]}, {PLACES}, '{moments[0][0].isoformat()}', false)"
            )
            for number, (at, free, status) in enumerate(moments, 1):
                if len(moments) == 1:
                    break
                until = f"'{moments[number][0].isoformat()}'" if number < len(moments) else "null"
                plant.append(
                    "insert into core.availability_history (connection_id, product_id, option_id, availability_id, "
                    "version_no, valid_from_utc, valid_to_utc, is_current, status, vacancies, capacity) values "
                    f"({key}, {number}, '{at.isoformat()}', {until}, {until == 'null'}, '{status}', {free}, {PLACES})"
                )
        undo += [
            f"delete from core.{table} where availability_id = '{name}'"
            for table in ("availability", "availability_history")
        ]
    return "; ".join(plant), "; ".join(undo)


def usual(days):
    """The median share taken so many days ahead, and of how many."""
    shares = []
    for ago, life in LIVES.items():
        said = [(free, status) for ahead, free, status in life if ahead >= days]
        if ago <= 56 and said and said[-1][1] != "CLOSED":
            shares.append((PLACES - said[-1][0]) / PLACES)
    return (median(shares) if len(shares) >= 5 else None), len(shares)


def test_a_departure_is_held_against_what_others_had_so_many_days_ahead(engine, world):
    departure, zone = an_option(world)
    plant, undo = planting(departure, zone)
    option = "|".join(departure["slot"][:3])
    before = {row["departure_key"] for row in pace(engine).values()}
    with rebuilt(engine, world.project.directory, plant, undo):
        found = {key: row for key, row in pace(engine).items() if row["option_key"] == option}
        everything = pace(engine)
    assert everything.keys() == before, "what is over is not ahead"
    today = TODAY.astimezone(zone).date()
    assert len(found) > 10
    for row in found.values():
        ahead = (row["travel_date"] - today).days
        mark = max(each for each in MARKS if each <= ahead)
        share, number = usual(mark)
        assert (row["days_ahead"], row["compared_days_ahead"], row["compared_departures"]) == (ahead, mark, number)
        assert row["usual_fill_rate"] == (share if share is None else pytest.approx(share))
    assert {row["usual_fill_rate"] is None for row in found.values()} == {True, False}
    others = [row for row in everything.values() if row["option_key"] != option]
    assert {(row["usual_fill_rate"], row["compared_departures"]) for row in others} == {(None, 0)}


def test_the_rows_are_the_open_departures_of_thirty_days(engine, world):
    wanted = {
        "|".join(d["slot"]): d["whole_day"]
        for d in world.now.departures
        if d["taken"] is not None
        and d["status"] != "CLOSED"
        and 1
        <= (d["travel_date"] - TODAY.astimezone(ZoneInfo(world.now.products[d["product"]]["time_zone"])).date()).days
        <= 30
    }
    assert {key: row["is_all_day"] for key, row in pace(engine).items()} == wanted
    assert set(wanted.values()) == {True, False}


def test_the_question_has_those_that_are_fuller_by_so_much(engine, world):
    departure, zone = an_option(world)
    plant, undo = planting(departure, zone)
    with rebuilt(engine, world.project.directory, plant, undo):
        rows = [row for row in pace(engine).values() if row["usual_fill_rate"] is not None]
        for above in (-1, 0.0, 0.2):
            found = answer(engine, 31, above=above)
            wanted = [row for row in rows if row["fill_rate"] - row["usual_fill_rate"] >= above]
            assert len(found) == len(wanted)
            gaps = [row["fill_rate"] - row["usual_fill_rate"] for row in found]
            assert gaps == sorted(gaps, reverse=True)
    assert answer(engine, 31, above=-1) == [], "nothing is usual where no past is known"
