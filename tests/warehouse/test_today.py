"""The day sheet, a departure and a booking: the dashboard's selects against the sandbox's own state, on both engines."""

import datetime as dt
import json
from collections import Counter
from decimal import Decimal
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from tests.flows.harness import NOON, TODAY
from tests.warehouse.conftest import LATER
from tests.warehouse.engines import planted
from tests.warehouse.truth import grouped, instant, money, total

from octo_sync.flows import ask

NOW = NOON + LATER
DAY = dt.timedelta(days=1)
ALL = {q.file.path.stem: q for q in ask.questions(Path("nowhere"), "dashboard")}


def rows(engine, name, **given):
    if name.startswith("today"):
        given = {"product": None} | ({"now": NOW} if name == "today_changes" else {}) | given
    assert {p.name for p in ALL[name].parameters} == set(given)
    found = engine.query(ALL[name].sql, given)
    return [dict(zip(found.columns, row, strict=True)) for row in found.rows]


def days_ahead(truth, product, day, now=NOW):
    zone = ZoneInfo(truth.products[product]["time_zone"])
    return None if day is None else (day - now.astimezone(zone).date()).days


def bookings_of_the_days(truth, now=NOW):
    """Sold, pending and unexpired held ones of today and tomorrow at the venue, by departure."""
    return [
        b
        for b in truth.bookings
        if days_ahead(truth, b["slot"][:2], b["travel_date"], now) in (0, 1) and (b["sold"] or is_held(b, now))
    ]


def is_held(b, now=NOW):
    expires = instant(b["raw"]["utc_expires_at"])
    return b["status"] == "PENDING" or (b["status"] == "ON_HOLD" and (expires is None or expires > now))


def reference(b):
    return b["raw"]["supplier_reference"] or b["raw"]["reseller_reference"] or b["booking_uuid"]


def never_sold(b):
    return b["status"] in ("EXPIRED", "REJECTED") or (b["cancelled"] and not b["was_sold"])


def key_of(b):
    *ids, availability = b["slot"]
    return "|".join((*ids, availability or str(b["start"] or "")))


def by_type(truth, sold):
    """`Adult 2, Family 1 (4 guests)`: tickets, and their guests where these are not as many."""
    tickets, guests = Counter(), Counter()
    ids = {id(b) for b in sold}
    for ticket in truth.tickets:
        if id(ticket["booking"]) in ids:
            tickets[ticket["unit_type"].capitalize()] += 1
            guests[ticket["unit_type"].capitalize()] += ticket["guests"]
    said = (f"{kind} {n}" + (f" ({guests[kind]} guests)" if guests[kind] != n else "") for kind, n in tickets.items())
    return ", ".join(sorted(said)) or None


def extras_of(truth, b):
    option = truth.options[b["slot"][:3]]
    titles = {e["id"]: e["title"]["en"] for e in option["extras"]}
    for unit in option["units"]:
        titles |= {e["id"]: e["title"]["en"] for e in unit.get("extras", ())}
    bought = [*b["raw"]["extra_items"], *(e for item in b["raw"]["unit_items"] for e in item["extra_items"])]
    return Counter(titles[e["extra_id"]] for e in bought)


def told(counts):
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items())) or None


def test_each_departure_of_the_two_days_has_its_guests_and_places(engine, world):
    truth = world.now
    booked = grouped([b | {"key": key_of(b)} for b in bookings_of_the_days(truth)], "key")
    departures = {
        "|".join(d["slot"]): d for d in truth.departures if days_ahead(truth, d["product"], d["travel_date"]) in (0, 1)
    }
    found = {row["slot_key"]: row for row in rows(engine, "today", now=NOW)}

    assert set(found) == set(departures) | {key for (key,) in booked}
    for key, row in found.items():
        of = booked.get((key,), [])
        sold, held = [b for b in of if b["sold"]], [b for b in of if not b["sold"]]
        same = [b for b in truth.bookings if key_of(b) == key and b["sold"]]
        departure = departures.get(key)
        about = departure or of[0]
        assert row["days_ahead"] == days_ahead(truth, about["slot"][:2], about["travel_date"])
        assert (row["local_start_at"], row["travel_date"]) == (about["start"], about["travel_date"])
        assert (row["product_name"], row["option_name"]) == (about["product_name"], about["option_name"])
        assert row["bookings"] == len(sold) == len(same)
        assert row["sold"] == (total(sold, "guests") or 0)
        assert row["on_hold"] == (total(held, "guests") or 0)
        assert row["is_known"] is (departure is not None)
        if departure:
            told_of = ("status", "vacancies", "capacity", "taken")
            assert {n: row[n] for n in told_of} == {n: departure[n] for n in told_of}
            assert row["utc_start_at"] == departure["utc_start"]
            assert row["local_end_at"] == departure["end"]
            cutoff = departure["utc_cutoff"].astimezone(ZoneInfo(row["time_zone"])).replace(tzinfo=None)
            assert row["sold_until"] == (cutoff if departure["utc_cutoff"] <= NOW else None)
        # A booking is a dictionary of the oracle's own: what it is made of is found by its uuid.
        uuids = {b["booking_uuid"] for b in sold}
        own = [b for b in truth.bookings if b["booking_uuid"] in uuids]
        assert row["guests"] == by_type(truth, own)
        waiting = {b["booking_uuid"] for b in held}
        assert row["held_guests"] == by_type(truth, [b for b in truth.bookings if b["booking_uuid"] in waiting])
        for name, those in (("booking_references", sold), ("held_references", held)):
            assert row[name] == (", ".join(sorted(reference(b) for b in those)) or None)
        assert row["extras"] == told(sum((extras_of(truth, b) for b in own), Counter()))
    assert {row["days_ahead"] for row in found.values()} == {0, 1}
    assert len({row["travel_date"] for row in found.values()}) == 3, "venues whose days differ"
    assert any(row["extras"] for row in found.values())
    assert {row["sold_until"] is None for row in found.values()} == {False, True}
    assert any(row["on_hold"] for row in found.values())
    assert any(row["taken"] and not row["sold"] for row in found.values()), "one that others sold"
    starts = [(row["days_ahead"], row["utc_start_at"]) for row in found.values() if row["utc_start_at"]]
    assert starts == sorted(starts)


def test_guests_of_a_departure_that_the_service_offers_no_more_are_not_lost(engine, world):
    whole = {row["slot_key"]: row for row in rows(engine, "today", now=NOW)}
    key, row = max(whole.items(), key=lambda each: each[1]["sold"])
    mark = "update core.availability set is_deleted = {} where '" + world.now.channels[0].seller
    mark += f"' || '|' || product_id || '|' || option_id || '|' || availability_id = '{key}'"
    with planted(engine, mark.format("true"), mark.format("false")):
        found = {row["slot_key"]: row for row in rows(engine, "today", now=NOW)}
    assert set(found) == set(whole)
    assert found[key] == row | {
        "is_known": False,
    } | dict.fromkeys(("status", "vacancies", "capacity", "taken", "local_end_at", "sold_until"))
    assert row["sold"] > 0


@pytest.mark.parametrize("unknown", ["option_id", "product_id"])
def test_a_booking_of_which_not_even_the_option_is_known_is_on_the_day_sheet_and_leads_to_itself(
    engine, world, unknown
):
    chosen = next(b for b in bookings_of_the_days(world.now) if b["sold"])
    of = f"where booking_uuid = '{chosen['booking_uuid']}'"
    was = chosen["slot"][{"product_id": 1, "option_id": 2}[unknown]]
    guests = sum(row["sold"] for row in rows(engine, "today", now=NOW))
    with planted(
        engine,
        f"update core.bookings set {unknown} = null {of}",
        f"update core.bookings set {unknown} = '{was}' {of}",
    ):
        found = rows(engine, "today", now=NOW)
        (row,) = rows(engine, "booking", connection=chosen["connection"], booking=chosen["booking_uuid"])
        there = rows(engine, "departure_bookings", key=row["slot_key"], day=row["travel_date"])
    assert sum(row["sold"] for row in found) == guests
    (sheet,) = (line for line in found if line["slot_key"] == row["slot_key"])
    assert (sheet["bookings"], sheet["sold"]) == (1, chosen["guests"])
    assert [line["booking_uuid"] for line in there] == [chosen["booking_uuid"]]
    assert (sheet["product_name"] if unknown == "product_id" else sheet["option_name"]) is None


def test_a_product_alone_is_the_part_of_it(engine, world):
    key = rows(engine, "today_ahead", now=NOW)[0]["slot_key"]
    (ids,) = (ids for ids in world.now.products if key.startswith("|".join(ids) + "|"))
    product, name = "|".join(ids), world.now.products[ids]["title"]["en"]
    asked = {
        "today": {"now": NOW},
        "today_ahead": {"now": NOW},
        "today_changes": {"since": NOON},
        "today_days": {"now": NOW},
    }
    asked["today_holds"] = {"now": NOW, "until": NOW + 9 * DAY}
    for select, given in asked.items():
        whole = rows(engine, select, **given)
        part = [row for row in whole if row["product_name"] == name]
        assert rows(engine, select, **given, product=product) == part != whole
        assert part or select == "today_holds", select


def test_a_hold_whose_time_is_over_is_on_hold_no_more(engine, world):
    held = [b for b in bookings_of_the_days(world.now) if b["status"] == "ON_HOLD"]
    later = max(instant(b["raw"]["utc_expires_at"]) for b in held)
    before = sum(row["on_hold"] for row in rows(engine, "today", now=NOW))
    lapsed = "update core.bookings set utc_expires_at = '{}' where booking_uuid = '{}'"
    (one, *_) = held
    undo = lapsed.format(one["raw"]["utc_expires_at"], one["booking_uuid"])
    with planted(engine, lapsed.format((NOW - DAY).isoformat(), one["booking_uuid"]), undo):
        after = sum(row["on_hold"] for row in rows(engine, "today", now=NOW))
    assert before - after == one["guests"] > 0
    assert later > NOW


def test_who_has_not_bought_yet_is_on_hold_and_in_no_list_of_guests(engine, world):
    truth = world.now
    before = {row["slot_key"]: row for row in rows(engine, "today", now=NOW)}
    one = next(b for b in bookings_of_the_days(truth) if b["sold"] and extras_of(truth, b))
    status = f"update core.bookings set status = '{{}}' where booking_uuid = '{one['booking_uuid']}'"
    with planted(engine, status.format("PENDING"), status.format(one["status"])):
        found = {row["slot_key"]: row for row in rows(engine, "today", now=NOW)}
    was, now = before[key_of(one)], found.pop(key_of(one))
    assert (now["sold"], now["on_hold"]) == (was["sold"] - one["guests"], was["on_hold"] + one["guests"])
    others = [b for b in truth.bookings if key_of(b) == key_of(one) and b["sold"] and b is not one]
    assert now["guests"] == by_type(truth, others) != was["guests"]
    assert now["extras"] == told(sum((extras_of(truth, b) for b in others), Counter())) != was["extras"]
    assert found == {key: row for key, row in before.items() if key != key_of(one)}


def test_holds_that_lapse_soon_or_travel_soon_come_with_the_next_one_first(engine, world):
    until = NOW + 2 * DAY
    chosen = next(b for b in bookings_of_the_days(world.now) if b["status"] == "ON_HOLD")
    late = until + 3 * DAY
    lapses = {b["booking_uuid"]: instant(b["raw"]["utc_expires_at"]) for b in world.now.bookings}
    was, lapses[chosen["booking_uuid"]] = lapses[chosen["booking_uuid"]], late
    wanted = sorted(
        (lapses[b["booking_uuid"]], f"{b['connection']}|{b['booking_uuid']}", b["guests"])
        for b in world.now.bookings
        if b["status"] == "ON_HOLD" and (at := lapses[b["booking_uuid"]]) > NOW
        and (at <= until or days_ahead(world.now, b["slot"][:2], b["travel_date"]) in (0, 1))
    )  # fmt: skip
    of = f"where booking_uuid = '{chosen['booking_uuid']}'"
    told_until = "update core.bookings set utc_expires_at = '{}' " + of
    with planted(engine, told_until.format(late.isoformat()), told_until.format(was.isoformat())):
        found = rows(engine, "today_holds", now=NOW, until=until)
    assert [(row["utc_expires_at"], row["booking_key"], row["pax_count"]) for row in found] == wanted != []
    assert [row["is_soon"] for row in found] == [at <= until for at, *_ in wanted]
    bookings = {f"{b['connection']}|{b['booking_uuid']}": b for b in world.now.bookings}
    for row in found:
        b = bookings[row["booking_key"]]
        at = row["utc_expires_at"].astimezone(ZoneInfo(b["raw"]["time_zone"]))
        assert row["lapses_at"] == at.replace(tzinfo=None)
        assert row["slot_key"] == key_of(b)
        starts = b["start"].replace(tzinfo=ZoneInfo(b["raw"]["time_zone"]))
        assert row["is_late"] is (row["utc_expires_at"] > starts + (DAY if b["whole_day"] else 0 * DAY))
    assert {row["is_late"] for row in found} == {False, True}


def test_a_hold_of_a_whole_day_is_late_when_the_day_is_over(engine, world):
    b = next(
        b for b in world.now.bookings if b["whole_day"] and b["travel_date"] and b["travel_date"] > NOW.date() + DAY
    )
    raw, of = b["raw"], f"where booking_uuid = '{b['booking_uuid']}'"
    told = f"update core.bookings set status = '{{}}', utc_expires_at = {{}} {of}"
    was = raw["utc_expires_at"] and f"'{raw['utc_expires_at']}'"
    starts = b["start"].replace(tzinfo=ZoneInfo(raw["time_zone"]))
    for hours in (12, 36):
        at = starts + dt.timedelta(hours=hours)
        with planted(engine, told.format("ON_HOLD", f"'{at.isoformat()}'"), told.format(b["status"], was or "null")):
            found = rows(engine, "today_holds", now=NOW, until=at)
        assert [row["is_late"] for row in found if b["booking_uuid"] in row["booking_key"]] == [hours > 24]


def test_what_changed_since_the_first_pull_is_new_changed_or_cancelled(engine, world):
    before = {b["booking_uuid"]: b for b in world.before.bookings}
    told_of = ("status", "travel_date", "retail", "net", "guests", "product_name", "option_name")
    wanted = {}
    for b in world.now.bookings:
        was = before.get(b["booking_uuid"])
        if was is None:
            made = instant(b["raw"]["utc_created_at"]) >= NOON
            kind = "read" if not made else "released" if never_sold(b) else "new"
        elif all(was[name] == b[name] for name in told_of):
            continue
        else:
            gone = "cancelled" if b["cancelled"] and not was["cancelled"] else "changed"
            kind = "released" if never_sold(b) and not was["sold"] else gone
        wanted[f"{b['connection']}|{b['booking_uuid']}"] = (kind, was and was["status"], b["status"])
    now = {f"{b['connection']}|{b['booking_uuid']}": b for b in world.now.bookings}
    days = sorted(now[key]["travel_date"] for key in wanted if now[key]["travel_date"])
    at = dt.datetime.combine(days[len(days) // 2], dt.time(12), tzinfo=dt.UTC)
    found = rows(engine, "today_changes", now=at, since=NOON + dt.timedelta(hours=1))

    assert {row["booking_key"]: (row["kind"], row["status_before"], row["status"]) for row in found} == wanted
    assert Counter(kind for kind, *_ in wanted.values()).keys() >= {"new", "changed", "cancelled"}
    names = {"travel_date": "travel_date", "pax_count": "guests", "retail_amount": "retail", "net_amount": "net"}
    names |= {name: name for name in ("product_name", "option_name", "currency")}
    for row in found:
        b, was = now[row["booking_key"]], before.get(row["booking_key"].partition("|")[2], {})
        assert {name: row[name] for name in names} == {name: b[of] for name, of in names.items()}
        assert {name: row[f"{name}_before"] for name in names} == {name: was.get(of) for name, of in names.items()}
        assert row["slot_key"] == key_of(b)
        assert row["is_soon"] is (days_ahead(world.now, b["slot"][:2], b["travel_date"], at) in (0, 1))
    order = [(row["kind"] == "released", not row["is_soon"], NOW - row["event_at_utc"]) for row in found]
    assert order == sorted(order)
    assert {(released, soon) for released, soon, _ in order} == {(False, False), (False, True), (True, True)}


def test_what_is_again_as_it_was_is_no_change_and_what_was_never_sold_is_released(engine):
    since = NOON + dt.timedelta(hours=1)
    before = {row["booking_key"]: row for row in rows(engine, "today_changes", since=since)}
    changed = next(key for key, row in before.items() if row["kind"] == "changed")
    connection, uuid = changed.split("|")
    of = f"where connection_id = '{connection}' and booking_uuid = '{uuid}' and version_no = "
    ((last,),) = engine.query(f"select max(version_no) from core.booking_history {of} version_no").rows
    told = ("status", "local_date", "product_id", "option_id", "retail_amount", "net_amount", "currency", "pax_count")
    names = [
        n for n in engine.query("select * from core.booking_history limit 0").columns if n not in ("version_no", *told)
    ]
    # One more version: what it was before the first of the changes.
    again = f"insert into core.booking_history ({', '.join(names)}, version_no, {', '.join(told)}) select "
    again += f"{', '.join(f'l.{n}' for n in names)}, l.version_no + 1, {', '.join(f'w.{n}' for n in told)} "
    again += "from core.booking_history l join core.booking_history w using (connection_id, booking_uuid) "
    again += f"where connection_id = '{connection}' and booking_uuid = '{uuid}' and l.version_no = {last} and w.version_no = 1"
    with planted(engine, again, f"delete from core.booking_history {of} {last + 1}"):
        after = {row["booking_key"] for row in rows(engine, "today_changes", since=since)}
    assert after == before.keys() - {changed}

    gone = next(
        key for key, row in before.items() if row["kind"] == "cancelled" and row["status_before"] == "CONFIRMED"
    )
    connection, uuid = gone.split("|")
    one = f"where connection_id = '{connection}' and booking_uuid = '{uuid}'"
    ((at,),) = engine.query(f"select utc_confirmed_at from core.bookings {one}").rows
    held = f"update core.booking_history set status = '{{}}' {one} and status = '{{}}'"
    confirmed = f"update core.bookings set utc_confirmed_at = {{}} {one}"
    with planted(
        engine,
        f"{held.format('ON_HOLD', 'CONFIRMED')}; {confirmed.format('null')}",
        f"{held.format('CONFIRMED', 'ON_HOLD')}; " + confirmed.format(f"'{at.isoformat()}'" if at else "null"),
    ):
        after = {row["booking_key"]: row["kind"] for row in rows(engine, "today_changes", since=since)}
    assert after == {key: row["kind"] for key, row in before.items()} | {gone: "released"}


@pytest.mark.parametrize(("status", "kind"), [("EXPIRED", "released"), ("REJECTED", "released"), ("CANCELLED", "new")])
def test_what_was_made_since_is_new_whatever_came_later_unless_it_was_never_sold(engine, status, kind):
    since = NOON + dt.timedelta(hours=1)
    before = rows(engine, "today_changes", since=since)
    one = next(row for row in before if row["kind"] == "new" and row["status"] == "CONFIRMED")
    where = "where connection_id = '{}' and booking_uuid = '{}'".format(*one["booking_key"].split("|"))
    told = "; ".join(f"update core.{table} set status = '{{0}}' {where}" for table in ("bookings", "booking_history"))
    with planted(engine, told.format(status), told.format("CONFIRMED")):
        after = rows(engine, "today_changes", since=since)
    (place,) = [n for n, row in enumerate(after) if row["booking_key"] == one["booking_key"]]
    assert (after[place]["kind"], after[place]["status"]) == (kind, status)
    assert all(row["kind"] == "released" for row in after[place:]) is (kind == "released")


def test_a_booking_that_two_connections_see_changed_once(engine, world):
    since = NOON + dt.timedelta(hours=1)
    before = rows(engine, "today_changes", since=since)
    chosen = next(row for row in before if row["kind"] == "changed" and row["booking_key"].startswith("direct|"))
    of = f"where connection_id = 'direct' and booking_uuid = '{chosen['booking_key'].partition('|')[2]}'"
    plant, undo = [], []
    for table in ("core.bookings", "core.booking_history"):
        columns = engine.query(f"select * from {table} limit 0").columns
        seen = ", ".join("'agents'" if name == "connection_id" else name for name in columns)
        plant.append(f"insert into {table} ({', '.join(columns)}) select {seen} from {table} {of}")
        undo.append(f"delete from {table} {of.replace('direct', 'agents')}")
    with planted(engine, "; ".join(plant), "; ".join(undo)):
        after = rows(engine, "today_changes", since=since)
    assert len(after) == len(before)


def test_what_was_only_read_for_the_first_time_is_no_change(engine, world):
    since = NOON - dt.timedelta(hours=1)
    made = {b["booking_uuid"]: instant(b["raw"]["utc_created_at"]) for b in world.now.bookings}
    old = {uuid for uuid, at in made.items() if at < since}
    kinds = grouped(rows(engine, "today_changes", since=since), "kind")
    read = {row["booking_key"].partition("|")[2] for row in kinds["read",]}
    new = {row["booking_key"].partition("|")[2] for row in kinds["new",]}
    assert read <= old
    assert len(read) > len(old) / 2
    assert not new & old


def test_a_booking_that_was_cancelled_since_is_so_though_it_is_read_for_the_first_time(engine):
    since = NOON - dt.timedelta(hours=1)
    found = rows(engine, "today_changes", since=since)
    one = next(row for row in found if row["kind"] == "read" and row["status"] == "CANCELLED")
    connection, uuid = one["booking_key"].split("|")
    where = f"where connection_id = '{connection}' and booking_uuid = '{uuid}'"
    ((at,),) = engine.query(f"select utc_cancelled_at from core.bookings {where}").rows
    assert at < since
    update = f"update core.bookings set utc_cancelled_at = '{{}}' {where}"
    with planted(engine, update.format(since.isoformat()), update.format(at.isoformat())):
        (now,) = [row for row in rows(engine, "today_changes", since=since) if row["booking_key"] == one["booking_key"]]
    assert (now["kind"], now["status_before"]) == ("cancelled", None)


def test_the_days_ahead_name_sold_out_and_weak_departures(engine, world):
    wanted = {
        "|".join(d["slot"]): (
            "sold out" if d["sold_out"] else "weak", d["taken"], d["our_guests"], d["utc_cutoff"] > NOW,
        )
        for d in world.now.departures
        if 0 <= days_ahead(world.now, d["product"], d["travel_date"]) <= 7
        and (d["utc_start"] > NOW or d["start"].time() == dt.time())
        and (d["sold_out"] or (d["rate"] is not None and d["rate"] < 0.2))
    }  # fmt: skip
    found = rows(engine, "today_ahead", now=NOW)
    assert {
        row["slot_key"]: (row["state"], row["taken"], row["our_guests"], row["sold_until"] is None) for row in found
    } == wanted
    assert {(state, on_sale) for state, _, _, on_sale in wanted.values()} >= {("weak", True), ("weak", False)}
    of_today = [d for d in world.now.departures if days_ahead(world.now, d["product"], d["travel_date"]) == 0]
    assert {"|".join(d["slot"]) in wanted for d in of_today} == {False, True}
    starts = [row["local_start_at"] for row in found]
    assert starts == sorted(starts)


def test_a_day_is_known_where_each_connection_answered_for_it(engine, world):
    today = rows(engine, "today_days", now=NOW)
    assert {(row["days_ahead"], row["bookings_complete"], row["departures_complete"]) for row in today} == {
        (0, True, True),
        (1, True, True),
    }
    for row in today:
        product = tuple(row["product_key"].split("|"))
        assert days_ahead(world.now, product, row["travel_date"]) == row["days_ahead"]
    month = "connection_id = 'agents' and resource = 'bookings' and travel_month = '2026-11'"
    told_until = "update ops.coverage set {} where " + month
    doubts = (
        (told_until.format("is_complete = false"), told_until.format("is_complete = true")),
        (
            told_until.format("window_end = window_end - 30"),
            told_until.format("window_end = window_end + 30"),
        ),
    )
    for plant, undo in doubts:
        with planted(engine, plant, undo):
            assert {row["bookings_complete"] for row in rows(engine, "today_days", now=NOW)} == {False}
    product = min(p["id"] for p in world.now.channels[0].state["products"])
    one = f"where resource = 'availability' and product_id = '{product}' and travel_month = '2026-11'"
    with planted(
        engine,
        f"update ops.coverage set is_complete = false {one}",
        f"update ops.coverage set is_complete = true {one}",
    ):
        of = grouped(rows(engine, "today_days", now=NOW), "departures_complete")
        assert {row["product_key"].partition("|")[2] for row in of[False,]} == {product}
        assert len(of[True,]) > len(of[False,])


def test_a_departure_has_all_its_bookings(engine, world):
    truth = world.now
    first = NOW.date() + 2 * DAY
    ahead = [b | {"key": key_of(b)} for b in truth.bookings if b["travel_date"] and b["travel_date"] >= first]
    by_key = grouped(ahead, "key")
    keys = sorted(by_key, key=lambda key: (-len({b["status"] for b in by_key[key]}), key))[:3]
    keys += [key for key in by_key if by_key[key][0]["slot"][3] is None][:1]
    offered = {"|".join(d["slot"]): d for d in truth.departures}
    for (key,) in keys:
        day = by_key[key,][0]["travel_date"]
        found = rows(engine, "departure_bookings", key=key, day=day)
        assert {
            row["booking_key"]: (row["status"], row["pax_count"], row["retail_amount"], row["is_sold"]) for row in found
        } == {
            f"{b['connection']}|{b['booking_uuid']}": (b["status"], b["guests"], b["retail"], b["sold"])
            for b in by_key[key,]
        }
        for row in found:
            b = next(b for b in by_key[key,] if b["booking_uuid"] == row["booking_uuid"])
            assert row["extras"] == told(extras_of(truth, b))
            assert row["tickets"] == by_type(
                truth, [t for t in truth.bookings if t["booking_uuid"] == b["booking_uuid"]]
            )
            codes = [item["supplier_reference"] or item["reseller_reference"] for item in b["raw"]["unit_items"]]
            assert row["codes"] == (", ".join(sorted(filter(None, codes))) or None)
            lapses = instant(b["raw"]["utc_expires_at"]) if b["status"] == "ON_HOLD" else None
            assert (row["lapses_at_utc"], row["utc_redeemed_at"]) == (lapses, instant(b["raw"]["utc_redeemed_at"]))
        assert [row["is_sold"] for row in found] == sorted((row["is_sold"] for row in found), reverse=True)
        guests = {row["is_sold"]: row["tickets"] for row in rows(engine, "departure_guests", key=key, day=day, now=NOW)}
        alive = [b for b in truth.bookings if key_of(b) == key and (b["sold"] or is_held(b))]
        for is_sold in (True, False):
            assert guests.get(is_sold) == by_type(truth, [b for b in alive if b["sold"] is is_sold])
        about = rows(engine, "departure", key=key, day=day, now=NOW)
        wanted = [offered[key]] if key in offered else []
        names = ("vacancies", "status", "capacity", "taken")
        assert [[row[name] for name in names] for row in about] == [[d[name] for name in names] for d in wanted]


def test_tickets_are_counted_and_their_guests_where_they_are_not_as_many(engine, world):
    """On the day sheet, of the departure, and of its booking."""
    b = next(b for b in bookings_of_the_days(world.now) if b["sold"] and b["slot"][3] and b["raw"]["unit_items"])
    at, items = {"key": key_of(b), "day": b["travel_date"]}, b["raw"]["unit_items"]
    kind = next(t for t in world.now.tickets if t["raw"] is items[0])["unit_type"].capitalize()
    update = "update core.booking_unit_items set pax_count = {} where unit_item_uuid in ("
    update += ", ".join(f"'{item['uuid']}'" for item in items) + ")"
    ((was,),) = engine.query(
        update.format(1).replace(
            "update core.booking_unit_items set pax_count = 1",
            ("select distinct pax_count from core.booking_unit_items"),
        )
    ).rows
    with planted(engine, update.format(4), update.format("null" if was is None else was)):
        sheet = {row["slot_key"]: row["guests"] for row in rows(engine, "today", now=NOW)}[at["key"]]
        (whole, *_) = rows(engine, "departure_guests", **at, now=NOW)
        (one,) = [r for r in rows(engine, "departure_bookings", **at) if r["booking_uuid"] == b["booking_uuid"]]
    assert sheet == whole["tickets"]
    assert f"{kind} " in sheet
    assert "guests)" in sheet
    count = sum(
        t["unit_type"].capitalize() == kind
        for t in world.now.tickets
        if t["booking"]["booking_uuid"] == b["booking_uuid"]
    )
    assert f"{kind} {count} ({4 * count} guests)" in one["tickets"]


def test_a_departure_that_sold_out_once_says_since_when(engine, world):
    key = next("|".join(d["slot"]) for d in world.now.departures if d["sold_out"] and d["travel_date"] > NOW.date())
    day = next(d["travel_date"] for d in world.now.departures if "|".join(d["slot"]) == key)
    product, option, availability = key.split("|")[1:]
    of = f"product_id = '{product}' and option_id = '{option}' and availability_id = '{availability}'"
    kept = engine.query(f"select connection_id, status, valid_from_utc from core.availability_history where {of}").rows
    ((first,),) = engine.query(f"select min(first_seen_at_utc) from core.availability where {of}").rows
    (row,) = rows(engine, "departure", key=key, day=day, now=NOW)
    since = min((at for _, status, at in kept if status == "SOLD_OUT"), default=first)
    assert (row["sold_out_at_utc"], row["was_on_sale"]) == (since, any(s != "SOLD_OUT" for _, s, _ in kept))
    other = next(d for d in world.now.departures if d["status"] == "AVAILABLE" and d["travel_date"] > NOW.date())
    (row,) = rows(engine, "departure", key="|".join(other["slot"]), day=other["travel_date"], now=NOW)
    assert row["sold_out_at_utc"] is None


@pytest.mark.parametrize("chosen", ["with extras and taxes", "held", "cancelled"])
def test_a_booking_is_found_and_has_all_its_parts(engine, world, chosen):
    raws = {(c.connection, raw["uuid"]): raw for c in world.now.channels for raw in c.state["bookings"]}

    def fits(b):
        if chosen == "with extras and taxes":
            return extras_of(world.now, b) and b["raw"]["taxes"]
        return b["status"] == {"held": "ON_HOLD", "cancelled": "CANCELLED"}[chosen]

    b = min((b for b in world.now.bookings if fits(b)), key=lambda b: b["booking_uuid"])
    raw = raws[b["connection"], b["booking_uuid"]]
    one = {"connection": b["connection"], "booking": b["booking_uuid"]}
    codes = [item["supplier_reference"] for item in raw["unit_items"]]
    for find in ("|".join(one.values()), raw["uuid"], raw["id"], raw["supplier_reference"], *codes):
        if find:
            assert (b["connection"], raw["uuid"]) in {
                (row["connection_id"], row["booking_uuid"]) for row in rows(engine, "booking_found", now=NOW, find=find)
            }
    (row,) = rows(engine, "booking", **one)
    amounts = {f"{part}_amount": b[part] for part in ("original", "retail", "net", "tax")}
    same = {name: raw[name] for name in ("status", "supplier_reference", "reseller_reference")}
    moments = {f"utc_{n}_at": instant(raw[f"utc_{n}_at"]) for n in ("created", "confirmed", "expires", "cancelled")}
    wanted = amounts | same | moments | {"local_start_at": b["start"], "slot_key": key_of(b), "pax_count": b["guests"]}
    assert {name: row[name] for name in wanted} == wanted

    tickets = {row["unit_item_uuid"]: row for row in rows(engine, "booking_tickets", **one)}
    assert {uuid: (t["unit_type"], t["pax_count"]) for uuid, t in tickets.items()} == {
        t["raw"]["uuid"]: (t["unit_type"], t["guests"])
        for t in world.now.tickets
        if (t["booking"]["connection"], t["booking"]["booking_uuid"]) == tuple(one.values())
    }
    parts = grouped(rows(engine, "booking_parts", **one), "part")
    bought = Counter()
    for part in parts.get(("extra",), []):
        bought[part["part_name"]] += part["quantity"]
    assert bought == extras_of(world.now, b)
    taxes = Counter()
    for tax in raw["taxes"]:
        taxes[tax["name"]] += money(tax["retail"], raw["precision"])
    assert {part["part_name"]: part["retail_amount"] for part in parts.get(("tax",), [])} == taxes

    versions = rows(engine, "booking_versions", **one)
    was = {x["booking_uuid"]: x for x in world.before.bookings}.get(b["booking_uuid"])
    assert versions[0]["status"] == b["status"]
    assert versions[0]["retail_amount"] == b["retail"]
    if was:
        assert (versions[-1]["status"], versions[-1]["retail_amount"]) == (was["status"], was["retail"])
    assert [v["version_no"] for v in versions] == list(range(len(versions), 0, -1))


def test_a_booking_names_the_answers_that_speak_for_it(engine, world):
    asked = engine.query(
        "select connection_id, resource, key, window_start, window_end, verified_at_utc, source from ops.coverage"
    ).rows
    found = set()
    for b in [b for b in world.now.bookings if b["travel_date"]][::40]:
        wanted = [
            (resource, at, why)
            for connection, resource, key, first, last, at, why in asked
            if connection == b["connection"]
            and (
                key == json.dumps([b["booking_uuid"]])
                if resource in ("booking", "open_dated")
                else resource == "bookings" and first <= b["travel_date"] <= last
            )
        ]
        one = {"connection": b["connection"], "booking": b["booking_uuid"]}
        answers = [(r["resource"], r["verified_at_utc"], r["source"]) for r in rows(engine, "booking_answers", **one)]
        assert sorted(answers) == sorted(wanted)
        assert [at for _, at, _ in answers] == sorted((at for _, at, _ in answers), reverse=True)
        (now,) = rows(engine, "booking", **one)
        if answers and now["verified_by"]:
            assert (now["verified_at_utc"], now["verified_by"]) in [(at, why) for _, at, why in answers]
        found |= {resource for resource, _, _ in answers}
    assert "bookings" in found


def test_capitals_blanks_and_hyphens_of_what_is_looked_for_do_not_matter(engine, world):
    def bare(text):
        return "".join(letter for letter in (text or "").lower() if letter not in " -")

    one = next(b["raw"] for b in world.now.bookings if "-" in (b["raw"]["reseller_reference"] or ""))
    asked = one["reseller_reference"]
    named = {
        b["booking_uuid"]
        for b in world.now.bookings
        if bare(asked) in [bare(b["raw"][name]) for name in ("id", "supplier_reference", "reseller_reference")]
    }
    for find in (asked, asked.lower(), asked.replace("-", ""), f" {asked.replace('-', ' - ')}"):
        assert {row["booking_uuid"] for row in rows(engine, "booking_found", now=NOW, find=find)} == named != set(), (
            find
        )
    code = one["unit_items"][0]["supplier_reference"]
    (found,) = rows(engine, "booking_found", now=NOW, find=f"{code[:3]}-{code[3:]}".lower())
    assert found["booking_uuid"] == one["uuid"]
    (found,) = rows(engine, "booking_found", now=NOW, find=one["uuid"].upper())
    assert found["booking_uuid"] == one["uuid"]
    ticket = f"where unit_item_uuid = '{one['unit_items'][0]['uuid']}'"
    was = one["unit_items"][0]["reseller_reference"]
    undo = f"update core.booking_unit_items set reseller_reference = nullif('{was or ''}', '') {ticket}"
    with planted(engine, f"update core.booking_unit_items set reseller_reference = 'GYG-X 7' {ticket}", undo):
        (found,) = rows(engine, "booking_found", now=NOW, find="gygx7")
    assert found["booking_uuid"] == one["uuid"]
    with planted(
        engine,
        f"update core.bookings set reseller_reference = '-' where booking_uuid = '{one['uuid']}'",
        f"update core.bookings set reseller_reference = '{asked}' where booking_uuid = '{one['uuid']}'",
    ):
        assert rows(engine, "booking_found", now=NOW, find=" -- ") == []


def test_what_comparisons_found_of_a_booking_is_open_accepted_or_settled(engine, world):
    b = world.now.bookings[0]
    seen = "'2026-11-20 12:00:00+00'"
    values = [
        f"('ledger', 'k{n}', 'mismatched', 'retail_amount', null, '{b['connection']}', '{b['booking_uuid']}', '10', '12', "
        f"2.0, 'EUR', 'more', null, date '2026-11-20', null, {seen}, {seen}, {settled}, {note}, null, null)"
        for n, settled, note in ((1, "null", "null"), (2, seen, "null"), (3, "null", "'agreed'"))
    ]
    with planted(engine, f"insert into ops.recon_results values {', '.join(values)}", "delete from ops.recon_results"):
        found = rows(engine, "booking_differences", connection=b["connection"], booking=b["booking_uuid"])
        other = rows(engine, "booking_differences", connection=b["connection"], booking="another")
    assert [row["state"] for row in found] == ["open", "no longer found", "accepted"]
    assert {row["amount"] for row in found} == {Decimal(2)}
    sold = next(b for b in world.now.bookings if b["sold"] and b["retail"])
    only_here = (
        "insert into ops.recon_results (recon_name, recon_key, bucket, field, code, connection_id, booking_uuid, currency, "
        f"reason, first_seen_at_utc, last_seen_at_utc) values ('ledger', 'k', 'mismatched', 'status', 'cancelled_there', "
        f"'{sold['connection']}', '{sold['booking_uuid']}', '{sold['currency']}', '', {seen}, {seen})"
    )
    with planted(engine, only_here, "delete from ops.recon_results"):
        (row,) = rows(engine, "booking_differences", connection=sold["connection"], booking=sold["booking_uuid"])
    assert row["amount"] == -sold["retail"], "as on the page Reconcile"
    assert other == []


def test_a_booking_that_two_connections_see_counts_once(duck):
    tables = ("bookings", "booking_unit_items", "booking_extra_items")
    twin = (
        "insert into core.{} select * replace ('agents' as connection_id) from core.{} where connection_id = 'direct'"
    )
    seen = "select booking_uuid from core.bookings where connection_id = 'direct'"
    gone = f"delete from core.{{}} where connection_id = 'agents' and booking_uuid in ({seen})"
    asked = {
        "today": {"now": NOW},
        "today_guests": {"first": TODAY - 29 * DAY, "last": TODAY + 2 * DAY},
        "today_holds": {"now": NOW, "until": NOW + 2 * DAY},
    }
    before = {name: rows(duck, name, **given) for name, given in asked.items()}
    add = "; ".join(twin.format(table, table) for table in tables)
    with planted(duck, add, "; ".join(gone.format(table) for table in tables)):
        after = {name: rows(duck, name, **given) for name, given in asked.items()}
        ((seen_twice,),) = duck.query("select count(*) - count(distinct booking_uuid) from core.bookings").rows
    assert seen_twice > 100
    assert (after["today"], after["today_guests"]) == (before["today"], before["today_guests"])
    assert len(after["today_holds"]) == len(before["today_holds"])
