"""When departures sold out: the mart and the question against what the sandbox said at each pull, and against planted lives."""

import contextlib
import dataclasses
import datetime as dt
from statistics import median
from zoneinfo import ZoneInfo

import pytest
from tests.flows.harness import NOON, TODAY
from tests.warehouse.conftest import CHANNELS, LATER
from tests.warehouse.engines import planted, rebuilt
from tests.warehouse.test_dashboard import _rows_of
from tests.warehouse.test_questions import answer, separated
from tests.warehouse.truth import DAY, Truth, grouped

ON_SALE = ("AVAILABLE", "LIMITED", "FREESALE")
PULL = dt.timedelta(minutes=10)
"""A pull takes less."""
ALL = {"first": TODAY - 60 * DAY, "last": TODAY + 60 * DAY}


def sellouts(engine):
    found = engine.query("select * from marts.fct_sellouts")
    rows = [dict(zip(found.columns, row, strict=True)) for row in found.rows]
    assert len({row["departure_key"] for row in rows}) == len(rows)
    return {row["departure_key"]: row for row in rows}


def lives(world):
    """What each departure was, and since when it was seen so, from the two pulls."""
    found = {}
    for at, truth in ((NOON, world.before), (NOON + LATER, world.now)):
        for d in truth.departures:
            life = found.setdefault("|".join(d["slot"]), {"departure": d, "seen": []})
            if not life["seen"] or life["seen"][-1][1] != d["status"]:
                life["seen"].append((at, d["status"]))
    return found


def told(world, life):
    """The row of a life; None where it was never sold out before it started."""
    departure = life["departure"]
    product = world.now.products[departure["product"]]
    whole_day = product["availability_type"] == "OPENING_HOURS"
    seen = [(at, status) for at, status in life["seen"] if whole_day or at < departure["utc_start"]]
    first = next((n for n, (_, status) in enumerate(seen) if status == "SOLD_OUT"), None)
    if first is None:
        return None
    again = [at for at, status in seen[first:] if status in ON_SALE]
    became = [n for n, (_, status) in enumerate(seen) if status == "SOLD_OUT" and (not n or seen[n - 1][1] != status)]
    return {
        "product_name": departure["product_name"],
        "option_name": departure["option_name"],
        "local_start_at": departure["start"],
        "travel_date": departure["travel_date"],
        "at": seen[first][0],
        "days_ahead": (
            departure["travel_date"] - seen[first][0].astimezone(ZoneInfo(product["time_zone"])).date()
        ).days,
        "was_on_sale": any(status in ON_SALE for _, status in seen[:first]),
        "times_sold_out": len(became),
        "again": again[0] if again else None,
        "status": life["seen"][-1][1],
        "is_sold_out": life["seen"][-1][1] == "SOLD_OUT",
    }


def same(found, wanted):
    assert set(found) == set(wanted)
    for key, row in wanted.items():
        here = found[key]
        exact = [name for name in row if name not in ("at", "again")]
        assert {name: here[name] for name in exact} == {name: row[name] for name in exact}, key
        assert row["at"] <= here["sold_out_at_utc"] < row["at"] + PULL
        assert (here["reopened_at_utc"] is None) is (row["again"] is None)
        if row["again"]:
            assert row["again"] <= here["reopened_at_utc"] < row["again"] + PULL


def every(world, found):
    rows = {key: told(world, life) for key, life in found.items()}
    return {key: row for key, row in rows.items() if row}


def test_what_was_sold_out_at_a_pull_is_a_sell_out(engine, world):
    wanted = every(world, lives(world))
    same(sellouts(engine), wanted)
    assert {row["was_on_sale"] for row in wanted.values()} == {True, False}
    assert {row["is_gone"] for row in sellouts(engine).values()} == {False}


def test_where_no_supplier_is_shared_each_connection_has_its_own(engine, world):
    def alone(truth):
        return Truth([dataclasses.replace(channel, supplier=None) for channel in truth.channels])

    apart = dataclasses.replace(world, before=alone(world.before), now=alone(world.now))
    with separated(engine, world.project.directory):
        same(sellouts(engine), every(apart, lives(apart)))


def hours(n):
    return NOON + dt.timedelta(hours=n)


LIVES = {
    "twice": [(-90, "AVAILABLE"), (-50, "SOLD_OUT"), (-40, "LIMITED"), (-30, "SOLD_OUT"), (-10, "CLOSED")],
    "from closed": [(-90, "CLOSED"), (-40, "SOLD_OUT"), (-20, "FREESALE")],
    "once, said twice": [(-90, "AVAILABLE"), (-60, "SOLD_OUT"), (-30, "SOLD_OUT"), (-10, "SOLD_OUT")],
    "closed again": [(-90, "AVAILABLE"), (-30, "SOLD_OUT"), (-10, "CLOSED")],
    "never": [(-90, "AVAILABLE"), (-30, "CLOSED")],
}


def _departures(world, *, whole_day=False):
    """Departures ahead that never changed, the same for both connections."""
    changed = {key for key, life in lives(world).items() if len(life["seen"]) > 1}
    for d in world.now.departures:
        product = world.now.products[d["product"]]
        ahead = d["travel_date"] > TODAY + 5 * DAY
        if (
            ahead
            and "|".join(d["slot"]) not in changed
            and (product["availability_type"] == "OPENING_HOURS") is whole_day
        ):
            yield d


@contextlib.contextmanager
def living(engine, given):
    """Departures with these lives: key → what it was, and since when."""
    plant, undo = [], []
    for departure, life in given:
        _, product, option, availability = departure["slot"]
        ids = f"product_id = '{product}' and option_id = '{option}' and availability_id = '{availability}'"
        rows = f"core.availability_history where {ids}"
        kept = engine.query(f"select * from {rows}")
        plant.append(f"delete from {rows}")
        undo.append(f"delete from {rows}")
        for values in kept.rows:
            texts = ", ".join("null" if value is None else f"'{value}'" for value in values)
            undo.append(f"insert into core.availability_history ({', '.join(kept.columns)}) values ({texts})")
        for connection in CHANNELS:
            for number, (at, status) in enumerate(life, 1):
                until = f"'{life[number][0].isoformat()}'" if number < len(life) else "null"
                plant.append(
                    "insert into core.availability_history (connection_id, product_id, option_id, availability_id, "
                    "version_no, valid_from_utc, valid_to_utc, is_current, status) values "
                    f"('{connection}', '{product}', '{option}', '{availability}', {number}, '{at.isoformat()}', {until}, "
                    f"{until == 'null'}, '{status}')"
                )
        plant.append(f"update core.availability set status = '{life[-1][1]}' where {ids}")
        undo.append(f"update core.availability set status = '{departure['status']}' where {ids}")
    with planted(engine, "; ".join(plant), "; ".join(undo)):
        yield


def _given(world):
    """Each of the lives for a departure of its own, and of one that leaves while they go on."""
    free = _departures(world)
    given = [(next(free), [(hours(at), status) for at, status in life]) for life in LIVES.values()]
    gone = next(free)
    start = gone["utc_start"]
    minute = dt.timedelta(minutes=1)
    given.append((gone, [(hours(-90), "AVAILABLE"), (start, "SOLD_OUT")]))
    again = next(free)
    given.append(
        (
            again,
            [(hours(-90), "AVAILABLE"), (again["utc_start"] - minute, "SOLD_OUT"), (again["utc_start"], "AVAILABLE")],
        )
    )
    day = next(_departures(world, whole_day=True))
    given.append((day, [(hours(-90), "AVAILABLE"), (day["utc_start"] + 60 * minute, "SOLD_OUT")]))
    return given


def _all_lives(world, given):
    found = lives(world)
    for departure, life in given:
        found["|".join(departure["slot"])]["seen"] = life
    return found


def test_the_first_sell_out_the_times_and_the_opening_of_lives_that_are_longer(engine, world):
    given = _given(world)
    wanted = every(world, _all_lives(world, given))
    with living(engine, given):
        same(sellouts(engine), wanted)
    keys = ["|".join(departure["slot"]) for departure, _ in given]
    assert [key in wanted for key in keys] == [True] * 4 + [False, False, True, True]
    assert [wanted[key]["times_sold_out"] for key in keys if key in wanted] == [2, 1, 1, 1, 1, 1]
    assert wanted[keys[-1]]["days_ahead"] == 0


def test_an_open_day_is_not_sold_out_after_it_is_over(engine, world):
    over = next(_departures(world, whole_day=True))
    late = dt.datetime.combine(
        over["travel_date"], dt.time(23, 30), ZoneInfo(world.now.products[over["product"]]["time_zone"])
    )
    key = "|".join(over["slot"])
    for at, is_one in ((late, True), (late + dt.timedelta(hours=1), False)):
        with living(engine, [(over, [(hours(-90), "AVAILABLE"), (at.astimezone(dt.UTC), "SOLD_OUT")])]):
            assert (key in sellouts(engine)) is is_one


def test_what_lay_ahead_when_the_connections_left_is_in_no_share(engine, world):
    given = _given(world)
    ahead = {"first": TODAY + 3 * DAY, "last": ALL["last"]}
    with living(engine, given):
        assert answer(engine, 27, **ahead)
    left = "update core.connections set is_active = {}"
    with rebuilt(engine, world.project.directory, left.format("false"), left.format("true")), living(engine, given):
        assert answer(engine, 27, **ahead) == []


def asked(world, found):
    rows = [row for row in every(world, found).values() if ALL["first"] <= row["travel_date"] <= ALL["last"]]
    of = grouped([life["departure"] for life in found.values()], "product_name")
    for (product,), same_product in grouped(rows, "product_name").items():
        ahead = [row["days_ahead"] for row in same_product if row["was_on_sale"]]
        yield {
            "product_name": product,
            "departures": len(of[product,]),
            "sold_out": len(same_product),
            "share_sold_out": len(same_product) / len(of[product,]),
            "median_days_ahead": float(median(ahead)) if ahead else None,
            "shortest": min(ahead, default=None),
            "longest": max(ahead, default=None),
            "already_sold_out": len(same_product) - len(ahead),
            "opened_again": sum(row["again"] is not None for row in same_product),
        }


def test_the_question_is_of_those_that_were_seen_on_sale_before(engine, world):
    given = _given(world)
    wanted = {row["product_name"]: row for row in asked(world, _all_lives(world, given))}
    with living(engine, given):
        rows = {row["product_name"]: row for row in answer(engine, 27, **ALL)}
    assert {name: {n: row[n] for n in wanted[name]} for name, row in rows.items()} == wanted
    assert any(row["already_sold_out"] and row["median_days_ahead"] is not None for row in wanted.values())
    assert any(row["opened_again"] for row in wanted.values())


def shown(world, found, first):
    """What the page Availability has of each product, by its key."""
    rows = [row | {"key": "|".join(key.split("|")[:2])} for key, row in every(world, found).items()]
    for (key,), same_product in grouped([row for row in rows if row["travel_date"] >= first], "key").items():
        known = [row for row in same_product if row["was_on_sale"]]
        days = [row["travel_date"] for row in known]
        yield {
            "product_key": key,
            "product_name": same_product[0]["product_name"],
            "sold_out": len(known),
            "median_days_ahead": float(median(row["days_ahead"] for row in known)) if known else None,
            "opened_again": sum(row["again"] is not None for row in known),
            "first_date": min(days, default=None),
            "last_date": max(days, default=None),
            "already_sold_out": len(same_product) - len(known),
        }


def test_the_page_counts_those_alone_of_which_is_known_since_when(engine, world):
    given = _given(world)
    found = _all_lives(world, given)
    with living(engine, given):
        for first in (TODAY + 8 * DAY, ALL["first"]):
            wanted = list(shown(world, found, first))
            rows = _rows_of(engine, "availability_sellouts", first=first)
            assert sorted(rows, key=lambda row: row["product_key"]) == sorted(
                wanted, key=lambda row: row["product_key"]
            )
            assert [row["sold_out"] for row in rows] == sorted((row["sold_out"] for row in wanted), reverse=True)
        (one,) = _rows_of(engine, "availability_sellouts", first=first, product=rows[0]["product_key"])
    assert one == rows[0]
    assert any(row["opened_again"] for row in wanted)
    assert any(row["sold_out"] and row["already_sold_out"] for row in wanted)


@pytest.mark.parametrize("gone", [True, False])
def test_one_that_is_gone_was_sold_out_all_the_same_and_is_in_no_share(engine, world, gone):
    departure = next(_departures(world))
    key = "|".join(departure["slot"])
    ids = " and ".join(
        f"{name} = '{value}'"
        for name, value in zip(("product_id", "option_id", "availability_id"), departure["slot"][1:], strict=True)
    )
    with (
        living(engine, [(departure, [(hours(-90), "AVAILABLE"), (hours(-30), "SOLD_OUT")])]),
        planted(
            engine,
            f"update core.availability set is_deleted = {gone} where {ids}",
            f"update core.availability set is_deleted = false where {ids}",
        ),
    ):
        assert sellouts(engine)[key]["is_gone"] is gone
        rows = {row["product_name"]: row["sold_out"] for row in answer(engine, 27, **ALL)}
    before = sum(row["product_name"] == departure["product_name"] for row in every(world, lives(world)).values())
    assert rows.get(departure["product_name"], 0) == before + (not gone)
