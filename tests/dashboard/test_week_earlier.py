"""Tiles of days ahead stand beside what the service said a week earlier, of what was asked for then."""

import datetime as dt
from collections import defaultdict

import pytest
from tests.dashboard.test_pages import _lived, ask, tiles
from tests.flows.harness import NOON, TODAY
from tests.flows.test_history import later

from octo_sync.dashboard.render import _course

THEN = TODAY + dt.timedelta(days=20)
"""The last day that was asked for a week earlier."""


def slots(project):
    """(product, day) → its departures as the service has them now, by the independent normaliser."""
    days = defaultdict(list)
    for row in project.oracle()["core.availability"]:
        days[row["product_id"], row["local_date"]].append(row)
    return days


def states(rows):
    return {row["status"] for row in rows}


def gone(rows):
    return "SOLD_OUT" in states(rows) <= {"SOLD_OUT", "CLOSED"}


def closed(rows):
    return states(rows) == {"CLOSED"}


def filled(rows):
    """Taken and places of those that are open."""
    known = [row for row in rows if row["status"] != "CLOSED" and row["capacity"]]
    return sum(row["capacity"] - row["vacancies"] for row in known), sum(row["capacity"] for row in known)


def weak(rows):
    taken, places = filled(rows)
    return places and taken / places < 0.2 and not gone(rows)


async def test_what_was_sold_out_a_week_earlier_stands_beside_what_is_now(shown, variant, published):
    day = TODAY + dt.timedelta(days=5)
    of = f"from core.availability where local_date = '{day}'"
    ((ids, sold_out),) = ask(
        published,
        "select any_value((product_id, option_id, availability_id)) filter (where status = 'AVAILABLE'), "
        f"count(*) filter (where status = 'SOLD_OUT') {of}",
    )
    ago = [(NOON - dt.timedelta(days=10), "AVAILABLE"), (NOON - dt.timedelta(days=2), "SOLD_OUT")]
    since = "update core.availability set first_seen_at_utc = timestamptz '2026-11-10 12:00+00'"
    folder = variant("earlier", since, *_lived(ids, *ago), remake=True)
    value, note = tiles(await shown(folder).text(f"/occupancy?first={day}&last={day}"))["sold-out"]
    assert value == str(sold_out + 1)
    assert note.startswith(f"vs {sold_out} 7 days earlier; of ")


async def pulled_twice(project, service):
    """What the service said at the first pull, and what it says eight days later, when everything was pulled again."""
    await project.sync()
    then = slots(project)
    later(project, days=8)
    project.today = TODAY + dt.timedelta(days=8)
    assert service.traffic(250, seed="a week")
    sold = next(s for s in service.slots() if s["capacity"] and s["vacancies"] and s["vacancies"] < s["capacity"])
    of = {name: sold[name] for name in ("product_id", "option_id")} | {"from": str(THEN), "to": str(THEN)}
    service.control("POST", "/admin/availability", {**of, "action": "capacity", "capacity": 0})
    assert (await project.sync()).published
    return then, slots(project)


@pytest.mark.deep(6)
async def test_days_ahead_stand_beside_what_the_service_said_a_week_earlier(shown, project, service):
    made = project(publish=True)
    then, now = await pulled_twice(made, service)
    dashboard = shown(made.directory, now=made.clock.now)
    first = TODAY + dt.timedelta(days=9)

    def of(days, last):
        return {key: rows for key, rows in days.items() if first <= key[1] <= last}

    def every(days):
        return [row for rows in of(days, THEN).values() for row in rows]

    found = tiles(await dashboard.text(f"/occupancy?first={first}&last={THEN}"))
    taken, places = filled(every(then))
    counts = [sum(row["status"] == "SOLD_OUT" for row in every(days)) for days in (then, now)]
    assert filled(every(now)) != (taken, places)
    assert counts[0] != counts[1]
    assert found["occupancy"][1].startswith(f"vs {taken / places:.0%} 7 days earlier; ".replace("%", " %"))
    assert found["sold-out"][0] == f"{counts[1]}"
    assert found["sold-out"][1].startswith(f"vs {counts[0]} 7 days earlier; of ")
    few = [sum(bool(weak([row])) for row in every(days)) for days in (then, now)]
    assert found["weak"] == (str(few[1]), f"vs {few[0]} 7 days earlier; not closed and less than 20 % full")

    later_on = THEN + dt.timedelta(days=1)
    page = await dashboard.text(f"/occupancy?first={first}&last={later_on}")
    assert "7 days earlier" not in page, "nobody asked for the last of these days then"
    drawn = [sum(r["status"] == "SOLD_OUT" for (_, at), rows in now.items() if at == day for r in rows)
             for day in sorted({at for _, at in of(now, later_on)})]  # fmt: skip
    assert f'd="{_course(drawn)}"' in page.partition('data-tile="sold-out"')[2].partition("</li>")[0]

    ahead = {key: rows for key, rows in now.items() if key[1] >= made.today}
    known = [key for key in ahead if key in then]
    assert 0 < len(known) < len(ahead)
    found = tiles(await dashboard.text("/availability"))
    for name, test in (("sold-out-days", gone), ("closed-days", closed), ("weak-days", weak)):
        counts = [sum(bool(test(days[key])) for key in known) for days in (now, then)]
        assert found[name][0] == str(sum(map(bool, map(test, ahead.values()))))
        assert found[name][1].startswith(
            f"{counts[0]} vs {counts[1]} 7 days earlier on {len(known)} of them known then; "
        )
