"""A shift leader's ten questions, each from Overview to an answer, against the service's own state."""

import datetime as dt
import re
from collections import Counter

from tests.trial.morning import NOW, called
from tests.trial.person import number, said, starts
from tests.warehouse.truth import grouped, instant

DAY_SHEET = {0: "Departures today", 1: "Departures tomorrow"}
HELD = ("ON_HOLD", "PENDING")


def named(of):
    return f"{of['product_name']} · {of['option_name']}"


def sheet(person, ahead, column):
    """(start, departure) → what a day sheet says; a start is without its end and the place whose clock it is."""
    start = re.compile(r"\w+ \d+ \w+(, \d\d:\d\d)?")
    return {(start.match(row["Start"])[0], row["Departure"]): row[column] for row in person.table(DAY_SHEET[ahead])}


def departures(morning, ahead):
    return {(starts(d), named(d)): d for d in morning.departures if morning.days_ahead(d) == ahead}


def on_board(morning, departure):
    return [b for b in morning.now.bookings if b["sold"] and b["slot"] == departure["slot"]]


def counted(text):
    """`Adult 6, Family 1 (4 guests)` → how many of each."""
    return {kind: int(count) for kind, count in re.findall(r"([^,;]+?) (\d+)(?: \([^)]*\))?(?:, |$)", text)}


def has_left(departure):
    return departure["start"].time() != dt.time.min and departure["utc_start"] <= NOW


async def test_today(person, morning):
    await person.click("Today")
    found = {key: int(guests) for key, guests in sheet(person, 0, "Our guests").items()}

    wanted = {key: sum(b["guests"] for b in on_board(morning, d)) for key, d in departures(morning, 0).items()}
    assert found == wanted
    assert sum(guests > 0 for guests in wanted.values()) > 1


async def test_tomorrow(person, morning):
    await person.click("Today")
    found = {
        key: counted(kinds.partition("on hold:")[0].rstrip("; ")) for key, kinds in sheet(person, 1, "By kind").items()
    }

    wanted = {
        key: Counter(
            t["unit_type"].capitalize()
            for t in morning.now.tickets
            if t["booking"]["sold"] and t["booking"]["slot"] == d["slot"]
        )
        for key, d in departures(morning, 1).items()
    }
    assert found == wanted
    assert {kind for kinds in wanted.values() for kind in kinds} >= {"Adult", "Child"}


async def test_extras(person, morning):
    await person.click("Today")
    found = {key: counted(extras) for key, extras in sheet(person, 1, "Extras").items()}

    def extras(d):
        option = morning.now.options[d["slot"][:3]]
        offered = [*option["extras"], *(extra for unit in option["units"] for extra in unit["extras"])]
        names = {extra["id"]: extra["title"]["en"] for extra in offered}
        return Counter(
            names[item["extra_id"]]
            for b in on_board(morning, d)
            for part in (b["raw"], *b["raw"]["unit_items"])
            for item in part["extra_items"]
        )

    wanted = {key: extras(d) for key, d in departures(morning, 1).items()}
    assert found == wanted
    assert sum(map(bool, wanted.values())) > 1


async def test_lapsing(person, morning):
    await person.click("Today")
    rows = person.table("Holds that lapse in the next 24 hours, or travel today or tomorrow")
    found = {(row["Booking"], row["Lapses in"]) for row in rows}

    soon = {d["slot"] for d in morning.departures if morning.days_ahead(d) in (0, 1)}
    held = [(b, instant(b["raw"]["utc_expires_at"]) - NOW) for b in morning.now.bookings if b["status"] == "ON_HOLD"]
    wanted = {
        (called(b), f"{left.seconds // 60} min")
        for b, left in held
        if left > dt.timedelta(0) and (left <= dt.timedelta(hours=24) or b["slot"] in soon)
    }
    assert found == wanted
    assert len(wanted) > 1


async def test_weak(person, morning):
    await person.click("Today")
    rows = person.table("Weak departures of today and the next seven days")
    found = {(row["Start"], row["Departure"]): (number(row["Taken"]), number(row["Capacity"])) for row in rows}

    wanted = {
        (starts(d), named(d)): (d["taken"], d["capacity"])
        for d in morning.departures
        if 0 <= morning.days_ahead(d) <= 7 and d["rate"] is not None and d["rate"] < 0.2
        if not d["sold_out"] and not has_left(d)
    }
    assert found == wanted
    assert len(wanted) > 5


async def test_sold_out(person, morning):
    await person.click("Today")
    found = {key: re.sub("^sale ended.*", "sale ended", free) for key, free in sheet(person, 1, "Free").items()}

    def free(d):
        if d["status"] in ("SOLD_OUT", "CLOSED"):
            return {"SOLD_OUT": "sold out", "CLOSED": "closed"}[d["status"]]
        if d["utc_cutoff"] <= NOW:
            return "sale ended"
        return "not limited" if d["capacity"] is None else f"{d['vacancies']} of {d['capacity']}"

    wanted = {key: free(d) for key, d in departures(morning, 1).items()}
    assert found == wanted
    assert "sold out" in wanted.values()


async def test_changed(person, morning):
    await person.click("Today")
    await person.click("hour")
    found = grouped(person.table("Bookings that changed in the last hour"), "What")

    then, now = ({b["booking_uuid"]: b for b in truth.bookings} for truth in (morning.eight, morning.now))
    new = {called(b) for uuid, b in now.items() if uuid not in then}
    gone = {called(b) for uuid, b in now.items() if b["cancelled"] and uuid in then and then[uuid]["sold"]}
    assert {row["Booking"] for row in found["new",]} == new != set()
    assert {row["Booking"] for row in found["cancelled",]} == gone != set()


async def test_call_list(person, morning):
    busiest = max(departures(morning, 1).values(), key=lambda d: len(on_board(morning, d)))
    await person.click("Today")
    (row,) = [
        row for row in person.cells(DAY_SHEET[1])
        if said(row["Departure"]) == named(busiest) and said(row["Start"]).startswith(starts(busiest))
    ]  # fmt: skip
    await person.click(named(busiest), within=row["Departure"])
    found = {row["Booking"]: int(row["Guests"]) for row in person.table("Bookings of this departure")}

    expected = on_board(morning, busiest)
    expected += [b for b in morning.now.bookings if b["slot"] == busiest["slot"] and b["status"] in HELD]
    assert found == {called(b): b["guests"] for b in expected}
    assert len(found) > 1
    contacts = [part["contact"] for b in expected for part in (b["raw"], *b["raw"]["unit_items"])]
    private = {c[name] for c in contacts for name in ("full_name", "email_address", "phone_number") if c[name]}
    assert private
    assert not [words for words in private if words in person.text()]


async def test_one_code(person, morning):
    ticket = next(
        t
        for d in departures(morning, 1).values()
        for t in morning.now.tickets
        if t["booking"]["slot"] == d["slot"]
        and t["booking"]["status"] == "CONFIRMED"
        and t["raw"]["supplier_reference"]
    )
    await person.click("Bookings")
    await person.fill("Find", Booking=ticket["raw"]["supplier_reference"])
    facts = person.facts()

    booking = ticket["booking"]
    assert person.title == f"Booking {called(booking)}"
    assert [facts["Status"], facts["Product"], facts["Option"]] == [
        "confirmed", booking["product_name"], booking["option_name"]
    ]  # fmt: skip
    assert f"{booking['start']:%d %b %Y}".lstrip("0") in facts["Travels"]
    assert int(facts["Guests"]) == booking["guests"]
