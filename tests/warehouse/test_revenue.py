"""Revenue per guest and seat, occupancy by weekday and hour, channel mix: against the sandbox's bookings and departures."""

import contextlib
import copy
from pathlib import Path

import pytest
from tests.flows.harness import TODAY
from tests.warehouse.engines import planted, rebuilt
from tests.warehouse.test_questions import AHEAD, AROUND, answer, same, separated
from tests.warehouse.truth import DAY, WEEKDAYS, Truth, grouped, money, month_of, share, total

from octo_sync.flows import ask

ALL = {"first": TODAY - 400 * DAY, "last": TODAY + 400 * DAY}
ANY = {"product": None, "channel": None, "currency": None}


def page(engine, name, **given):
    (query,) = (q for q in ask.questions(Path("nowhere"), "dashboard") if q.file.path.stem == name)
    found = engine.query(query.sql, {p.name: (ALL | ANY | given)[p.name] for p in query.parameters})
    return [dict(zip(found.columns, row, strict=True)) for row in found.rows]


def knows(truth, connection, month):
    return next(c for c in truth.channels if c.connection == connection).knows_month(month)


def monthly(world, truth, offered_until=TODAY + 400 * DAY):
    """Each product, month and currency; departures are as they were last seen, and known up to the day before that one."""
    departures = {d["slot"]: d for d in (*world.before.departures, *truth.departures)}
    measured = {
        slot: d for slot, d in departures.items() if d["taken"] is not None and d["travel_date"] < offered_until
    }
    offered = grouped(
        [{**d, "month": month_of(d["travel_date"]), "key": "|".join(d["product"])} for d in measured.values()],
        "key",
        "month",
    )
    sold = [b | {"month": month_of(b["travel_date"]), "key": "|".join(b["slot"][:2])} for b in truth.sold(**ALL)]
    for (key, month, currency), rows in grouped(sold, "key", "month", "currency").items():
        told = [b for b in rows if b["guests"] is not None]
        on_seats = total([b for b in rows if b["slot"] in measured], "retail") or 0
        seats = offered.get((key, month), [])
        places = total(seats, "capacity")
        yield {
            "product_key": key,
            "product_name": rows[0]["product_name"],
            "travel_month": month,
            "currency": currency,
            "bookings": len(rows),
            "guests": total(rows, "guests"),
            "bookings_without_guests": len(rows) - len(told),
            "retail_amount": total(rows, "retail"),
            "guest_amount": total(told, "retail"),
            "amount_per_guest": (told and float(total(told, "retail")) / total(rows, "guests")) or None,
            "seats_offered": places,
            "seat_amount": on_seats if seats else None,
            "amount_per_seat": float(on_seats) / places if seats else None,
            "first_day_offered": min((d["travel_date"] for d in seats), default=None),
            "last_day_offered": max((d["travel_date"] for d in seats), default=None),
            "is_complete": all(knows(truth, b["connection"], month) for b in rows),
        }


@contextlib.contextmanager
def seen_twice(engine, booking, **otherwise):
    """The booking of `direct` through `agents` too, there with these values: column → SQL."""
    columns = engine.query("select * from core.bookings limit 0").columns
    seen = ", ".join(({"connection_id": "'agents'"} | otherwise).get(name, name) for name in columns)
    of = f"where booking_uuid = '{booking['booking_uuid']}'"
    with planted(
        engine,
        f"insert into core.bookings ({', '.join(columns)}) select {seen} from core.bookings {of}",
        f"delete from core.bookings {of} and connection_id = 'agents'",
    ):
        yield


def mart(engine):
    found = engine.query("select * from marts.agg_revenue_monthly")
    return [dict(zip(found.columns, row, strict=True)) for row in found.rows]


def test_what_a_guest_and_a_seat_bring_in(engine, world):
    wanted = list(monthly(world, world.now))
    same(mart(engine), wanted)
    assert {row["seats_offered"] is None for row in wanted} == {True, False}
    assert any(row["seat_amount"] and row["seat_amount"] < row["retail_amount"] for row in wanted)

    asked = [n for n in wanted[0] if n != "product_key"]
    same(answer(engine, 28, **ALL), [{n: row[n] for n in asked} for row in wanted])
    shown = ("travel_month", "product_name", "currency", "guests", "guest_amount", "seats_offered", "seat_amount")
    same(page(engine, "revenue_per_seat"), [{n: row[n] for n in shown} for row in wanted])
    same(
        page(engine, "revenue_per_seat", currency="EUR"),
        [{n: row[n] for n in shown} for row in wanted if row["currency"] == "EUR"],
    )


def test_guests_that_nobody_counts_leave_their_price_out_and_closed_departures_their_seats(engine, world):
    channels = copy.deepcopy(world.now.channels)
    ahead = [b for b in world.now.sold(**AHEAD) if b["slot"][3]]
    silent = {b["booking_uuid"]: b["guests"] for b in ahead[::3]}
    for channel in channels:
        for raw in channel.state["bookings"]:
            raw["nobody_counts"] = raw["uuid"] in silent
    of = "booking_uuid in ({})".format(", ".join(f"'{uuid}'" for uuid in silent))
    again = "; ".join(f"update core.bookings set pax_count = {n} where booking_uuid = '{u}'" for u, n in silent.items())
    with planted(
        engine,
        f"update core.bookings set pax_count = null where {of}; "
        f"update core.booking_unit_items set is_deleted = true where {of} and not is_deleted",
        f"{again}; update core.booking_unit_items set is_deleted = false where {of} and deleted_at_utc is null",
    ):
        same(mart(engine), list(monthly(world, Truth(channels))))
    closed = {d["slot"] for d in world.now.departures if d["closed"] and d["capacity"]}
    assert any(b["slot"] in closed for b in world.now.sold(**ALL)), "otherwise closed ones would not be told apart"


def test_a_booking_that_two_connections_see_brings_in_its_price_once(engine, world):
    chosen = next(b for b in world.now.sold(**AHEAD) if b["connection"] == "direct" and b["retail"])
    with seen_twice(engine, chosen):
        same(mart(engine), list(monthly(world, world.now)))


def test_how_many_bookings_several_connections_see_is_known_where_a_sum_of_all_has_them_for_each(engine, world):
    chosen, deleted, of_tests = [b for b in world.now.sold(**AHEAD) if b["connection"] == "direct"][:3]

    def found():
        (shared,) = page(engine, "shared_bookings")
        return shared["bookings"], sum(row["bookings"] for row in page(engine, "revenue_months", by=None))

    once = len(list(world.now.sold(**ALL)))
    assert found() == (0, once)
    with seen_twice(engine, deleted, is_deleted="true"), seen_twice(engine, of_tests, is_test="true"):
        assert found() == (0, once)
        with seen_twice(engine, chosen):
            assert found() == (1, once + 1)
            with separated(engine, world.project.directory):
                assert found() == (0, once + 1)


@pytest.mark.parametrize("newer", ["agents", "direct"])
def test_of_a_booking_that_two_connections_see_differently_the_newer_counts(engine, world, newer):
    channels = copy.deepcopy(world.now.channels)
    chosen = next(b for b in world.now.sold(**AHEAD) if b["connection"] == "direct" and b["retail"])
    for channel in channels if newer == "agents" else ():
        channel.state["bookings"] = [r for r in channel.state["bookings"] if r["uuid"] != chosen["booking_uuid"]]
    here = f"where booking_uuid = '{chosen['booking_uuid']}' and connection_id = 'direct'"
    ((at,),) = engine.query(f"select verified_at_utc from core.bookings {here}").rows
    with (
        seen_twice(
            engine,
            chosen,
            status="'CANCELLED'",
            retail_amount="1",
            currency="'XTS'",
            verified_at_utc="'2026-12-24 12:00:00+00'",
        ),
        planted(
            engine,
            f"update core.bookings set verified_at_utc = '2026-12-2{5 if newer == 'direct' else 3} 12:00:00+00' {here}",
            f"update core.bookings set verified_at_utc = '{at}' {here}",
        ),
    ):
        same(mart(engine), list(monthly(world, Truth(channels))))


@pytest.mark.parametrize("blind", ["direct", "agents"])
def test_seats_are_the_suppliers_whichever_connection_reads_its_departures(engine, world, blind):
    of = f"where connection_id = '{blind}'"
    with rebuilt(
        engine,
        world.project.directory,
        f"update core.availability set is_deleted = true {of}",
        f"update core.availability set is_deleted = false {of} and deleted_at_utc is null",
    ):
        same(mart(engine), list(monthly(world, world.now)))


def test_seats_after_the_connections_left_are_not_known(engine, world):
    with rebuilt(
        engine,
        world.project.directory,
        "update core.connections set is_active = false",
        "update core.connections set is_active = true",
    ):
        found = mart(engine)
        ((last,),) = engine.query("select max(travel_date) from marts.fct_departures where is_followed").rows
    assert TODAY - DAY <= last <= TODAY + DAY
    assert max(row["last_day_offered"] for row in found if row["last_day_offered"]) <= last
    assert {row["seats_offered"] for row in found if row["travel_month"] > last} == {None}


@pytest.mark.parametrize("way", ["question", "page"])
def test_how_full_the_hours_of_a_week_are(engine, world, way):
    rows = []
    for d in world.now.departures:
        if AHEAD["first"] <= d["travel_date"] <= AHEAD["last"]:
            whole_day = world.now.products[d["product"]]["availability_type"] == "OPENING_HOURS"
            rows.append(d | {"day": d["travel_date"].isoweekday(), "hour": None if whole_day else d["start"].hour})
    wanted = []
    for (day, hour), at in grouped(rows, "day", "hour").items():
        measured = [d for d in at if d["taken"] is not None]
        wanted.append(
            {
                "weekday": day,
                "weekday_name": WEEKDAYS[day - 1],
                "start_hour": hour,
                "departures": len(at),
                "capacity": total(measured, "capacity"),
                "taken": total(measured, "taken"),
                "fill_rate": share(total(measured, "taken"), total(measured, "capacity")),
                "sold_out_departures": sum(d["sold_out"] for d in at),
                "closed_departures": sum(d["closed"] for d in at),
            }
        )
    found = answer(engine, 29, **AHEAD) if way == "question" else page(engine, "occupancy_hours", **AHEAD)
    same(found, wanted)
    assert {row["start_hour"] is None for row in wanted} == {True, False}


@pytest.mark.parametrize("way", ["question", "page"])
def test_the_mix_of_channels_and_what_each_leaves(engine, world, way):
    first, last = AROUND["first"].replace(day=1), AROUND["last"].replace(day=28) + 4 * DAY
    sold = [b | {"month": month_of(b["travel_date"])} for b in world.now.sold(first, last - last.day * DAY)]
    whole = {key: total(rows, "retail") for key, rows in grouped(sold, "month", "currency").items()}
    wanted = []
    for (month, currency, connection), rows in grouped(sold, "month", "currency", "connection").items():
        with_net = [b | {"margin": b["retail"] - b["net"]} for b in rows if b["net"] is not None]
        margin = total(with_net, "margin")
        wanted.append(
            {
                "travel_month": month,
                "currency": currency,
                "channel_name": rows[0]["channel_name"],
                "bookings": len(rows),
                "retail_amount": total(rows, "retail"),
                "retail_share": float(total(rows, "retail")) / float(whole[month, currency]),
                "net_amount": total(rows, "net"),
                "margin_amount": margin,
                "margin_rate": None if margin is None else float(margin) / float(total(with_net, "retail")),
                "without_net": len(rows) - len(with_net),
                "is_complete": knows(world.now, connection, month),
            }
        )
    found = answer(engine, 30, **AROUND) if way == "question" else page(engine, "channel_mix", **AROUND)
    same(found, wanted)
    assert any(row["without_net"] and row["margin_rate"] for row in wanted)
    assert len({row["channel_name"] for row in wanted}) > 1


def extras(truth, first, last):
    """Each extra that was bought with a sold booking or one of its tickets."""
    for b in truth.sold(first, last):
        option = truth.options[b["slot"][:3]]
        known = {e["id"]: e["title"]["en"] for of in (option, *option["units"]) for e in of.get("extras", ())}
        raw = b["raw"]
        for extra in (*raw["extra_items"], *(e for item in raw["unit_items"] for e in item["extra_items"])):
            prices = {f"{part}_amount": money(extra[part], raw["precision"]) for part in ("retail", "net")}
            named = {"extra_id": extra["extra_id"], "extra_name": known[extra["extra_id"]]}
            named["travel_month"] = month_of(b["travel_date"])
            yield b | named | prices | {"product_key": "|".join(b["slot"][:2])}


def bought(rows, *keys):
    return [
        dict(zip(keys, key, strict=True))
        | {"bookings": len({b["booking_uuid"] for b in of}), "quantity": len(of)}
        | {name: total(of, name) for name in ("retail_amount", "net_amount")}
        for key, of in grouped(rows, *keys).items()
    ]


def test_extras_are_those_of_sold_bookings_by_product_and_month(engine, world):
    found = list(extras(world.now, **ALL))
    same(answer(engine, 32, **ALL), bought(found, "travel_month", "product_name", "extra_name", "currency"))

    named = ("product_key", "product_name", "extra_id", "extra_name", "currency")
    around = list(extras(world.now, **AROUND))
    only = {"product": around[0]["product_key"], "channel": "agents", "currency": around[0]["currency"]}
    columns = {"product": "product_key", "channel": "connection", "currency": "currency"}
    for chosen in ({}, *({name: value} for name, value in only.items())):
        of = [b for b in around if all(b[columns[name]] == value for name, value in chosen.items())]
        shown = page(engine, "extras", **AROUND, **chosen)
        same(shown, bought(of, *named))
        assert [row["quantity"] for row in shown] == sorted((row["quantity"] for row in shown), reverse=True)
    (most, *_) = page(engine, "extras", **AROUND)
    asked = {
        "alone": "extra",
        "tax": most["extra_id"],
        "kind": "sold",
        **dict.fromkeys(("by", "since", "now", "least", "greatest")),
    }
    asked |= {**AROUND, "product": most["product_key"], "currency": most["currency"], "most": 1000}
    assert len(page(engine, "bookings", **asked)) == most["bookings"]
    assert [row["bookings"] for row in page(engine, "bookings_totals", **asked)] == [most["bookings"]]
    assert {most["bookings"] < most["quantity"], len({b["extra_name"] for b in found}) > 1} == {True}


def person(b):
    """Whom a booking names: by e-mail address, else by telephone number."""
    contact = b["raw"]["contact"]
    digits = "".join(filter(str.isdigit, contact["phone_number"] or "")).lstrip("0")
    return (contact["email_address"] or "").strip().casefold() or digits or None


def test_who_travelled_before_with_the_supplier_is_one_who_comes_back(engine, world):
    """One booked four times, the last two on one day; one names nobody any more."""
    sold = sorted(world.now.sold(**ALL), key=lambda b: b["travel_date"])
    twice = [sold[0], sold[len(sold) // 2], *[b for b in sold if b["travel_date"] == sold[-1]["travel_date"]][-2:]]
    silent = sold[1]
    people = {b["booking_uuid"]: person(b) for b in sold} | {b["booking_uuid"]: person(sold[0]) for b in twice}
    people[silent["booking_uuid"]] = None
    first = {who: min(b["travel_date"] for b in sold if people[b["booking_uuid"]] == who) for who in people.values()}
    wanted = []
    named = [b | {"travel_month": month_of(b["travel_date"]), "product_key": "|".join(b["slot"][:2])} for b in sold]
    for (product, name, month), rows in grouped(named, "product_key", "product_name", "travel_month").items():
        who = {people[b["booking_uuid"]] for b in rows} - {None}
        back = {p for b in rows if (p := people[b["booking_uuid"]]) and first[p] < b["travel_date"]}
        wanted.append(
            {
                "product_key": product,
                "product_name": name,
                "travel_month": month,
                "bookings": len(rows),
                "contacts": len(who),
                "returning_contacts": len(back),
                "bookings_without_contact": sum(people[b["booking_uuid"]] is None for b in rows),
                "is_complete": all(knows(world.now, b["connection"], month) for b in rows),
            }
        )
    of = "update core.bookings set contact_key = {} where booking_uuid = '{}'"
    keys = dict(engine.query("select booking_uuid, contact_key from core.bookings").rows)
    changed = {b["booking_uuid"]: f"'{keys[sold[0]['booking_uuid']]}'" for b in twice} | {
        silent["booking_uuid"]: "null"
    }
    with planted(
        engine,
        "; ".join(of.format(key, uuid) for uuid, key in changed.items()),
        "; ".join(of.format(f"'{keys[uuid]}'" if keys[uuid] else "null", uuid) for uuid in changed),
    ):
        found = engine.query("select * from marts.agg_returning")
        same([dict(zip(found.columns, row, strict=True)) for row in found.rows], wanted)
        asked = [n for n in wanted[0] if n != "product_key"]
        same(answer(engine, 33, **ALL), [{n: row[n] for n in asked} for row in wanted])
        shown = ("travel_month", "product_name", "contacts", "returning_contacts", "bookings_without_contact")
        same(page(engine, "returning"), [{n: row[n] for n in shown} for row in wanted if row["contacts"]])
    assert sum(row["returning_contacts"] for row in wanted) >= 2
