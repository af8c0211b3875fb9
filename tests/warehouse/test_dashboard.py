"""The dashboard's selects: one dialect, no clock, the same rows on both engines, whatever they are asked."""

import contextlib
import copy
import dataclasses
import datetime as dt
import re
from collections import Counter
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
import sqlglot
from tests.flows.harness import NOON, TODAY
from tests.warehouse.conftest import LATER
from tests.warehouse.engines import planted, rebuilt
from tests.warehouse.test_engines import plain
from tests.warehouse.test_filling import EMPTY, an_option, planting
from tests.warehouse.test_questions import separated
from tests.warehouse.test_recon_open import _insert, _rows
from tests.warehouse.truth import Truth

from octo_sync.flows import ask

DAY = dt.timedelta(days=1)
ALL = {q.file.path.stem: q for q in ask.questions(Path("nowhere"), "dashboard")}


def _select(query):
    return re.sub(r"--.*", "", query.sql)


@pytest.mark.parametrize("name", ALL)
def test_a_select_is_one_in_both_dialects_and_reads_no_clock(name):
    text = re.sub(r"\$([a-z]\w*)", r":\1", _select(ALL[name]))
    for dialect in ("duckdb", "postgres"):
        (parsed,) = sqlglot.parse(text, dialect=dialect)
        assert isinstance(parsed, sqlglot.exp.Query)

    assert not re.search(r"\b(current_date|current_timestamp|localtimestamp|now\(\)|random)", text.lower())


@pytest.mark.parametrize("name", ALL)
def test_a_select_declares_the_parameters_it_uses_and_says_what_it_is_for(name):
    query = ALL[name]

    assert {p.name for p in query.parameters} == set(re.findall(r"\$([a-z]\w*)", _select(query)))
    assert query.description.endswith(".")


def _given(query, one):
    """Values for its parameters: the defaults, and for those that choose one thing all of them or `one` of them."""
    chosen = {p.name: one[p.name] for p in query.parameters if not p.default}
    rest = [p for p in query.parameters if p.default]
    return ask.filled(rest, {}, now=NOON + LATER, time_zone="UTC") | chosen


@pytest.mark.deep(0.1, everyday=20)
@pytest.mark.parametrize("which", ["all", "one"])
@pytest.mark.parametrize("name", ALL)
def test_a_select_has_the_same_rows_on_both_engines(world, duck, postgres, name, which):
    ((key, connection),) = duck.query(
        "select product_key, connection_id from marts.fct_bookings group by 1, 2 order by count(*) desc, 1 limit 1"
    ).rows
    one = {
        "product": key,
        "channel": connection,
        "currency": "EUR",
        "bucket": "mismatched",
        "alone": "no_net",
        "tax": "VAT",
        "since": NOON.date() - 30 * DAY,
        "by": NOON.date() - 30 * DAY,
        "least": 1,
        "greatest": 30,
    }
    given = _given(ALL[name], one if which == "one" else dict.fromkeys(one))
    if name in ("bookings", "bookings_totals") and which == "one":
        everything = dict.fromkeys(("product", "channel", "currency"))
        given |= {"kind": "books", "first": NOON.date(), "last": NOON.date() + 90 * DAY, **everything}
    if name.startswith(("booking_", "departure")) or name == "booking":
        given |= _picked(duck, ALL[name])
    runs, results = _rows()
    drifted = (
        "insert into ops.schema_drift values ('direct', 'booking', 'field', 'new', 3, '2026-11-20', '2026-11-21', null)"
    )
    held = "insert into ops.quarantine values ('direct', 'booking', '[\"x\"]', '$.a', 'No.', 3, '2026-11-20', '2026-11-21')"
    add = f"{_insert('recon_runs', runs)}; {_insert('recon_results', results)}; {drifted}; {held}"
    # A booking that was in a closed month and is gone.
    add += (
        f"; insert into ops.closed_periods values ('2026-10', '2026-11-01', true, '', true); insert into ops.closed_bookings "
        f"values ('2026-10', '{connection}', 'u-gone', 'EUR', 10, 8, 2); insert into ops.closed_totals values "
        f"('2026-10', 'refund', '', '{connection}', '', 1, 10, null)"
    )
    if name == "booking_differences":
        add += f"; update ops.recon_results set connection_id = null, booking_uuid = '{given['booking']}'"
    if name == "difference":
        given |= {"recon": results[0]["recon_name"], "key": results[0]["recon_key"]}
    gone = (
        "recon_runs",
        "recon_results",
        "schema_drift",
        "quarantine",
        "closed_periods",
        "closed_bookings",
        "closed_totals",
    )
    remove = "; ".join(f"delete from ops.{table}" for table in gone)
    where, past = world.project.directory, planting(*an_option(world), EMPTY)
    with contextlib.ExitStack() as stack:
        for engine in (duck, postgres):
            stack.enter_context(planted(engine, add, remove))
            if name == "availability_faster":
                stack.enter_context(rebuilt(engine, where, *past))
        here, there = (engine.query(ALL[name].sql, given) for engine in (duck, postgres))

    assert here.columns == there.columns
    found = [row for row in here.rows if name != "availability_faster" or row[2] is not None]
    assert found or which == "one"
    assert [[plain(v) for v in row] for row in here.rows] == [[plain(v) for v in row] for row in there.rows], "in order"


def _picked(duck, query):
    """A booking that was bought with extras on a departure that is known, for the selects about one of them."""
    ((departure, day, connection, booking),) = duck.query(
        "select b.departure_key, b.travel_date, b.connection_id, b.booking_uuid from marts.fct_bookings b "
        "join core.booking_extra_items x using (connection_id, booking_uuid) "
        "join marts.fct_departures d using (departure_key) where b.is_sold order by b.booking_uuid limit 1"
    ).rows
    known = {"key": departure, "day": day, "connection": connection, "booking": booking, "find": booking}
    return {p.name: known[p.name] for p in query.parameters if p.name in known}


def _rows_of(engine, name, **given):
    values = _given(ALL[name], dict.fromkeys(("product", "channel", "currency"))) | given
    found = engine.query(ALL[name].sql, values)
    return [dict(zip(found.columns, row, strict=True)) for row in found.rows]


@pytest.mark.deep(0.7, everyday=1)
def test_pages_do_not_count_what_lay_ahead_of_a_connection_that_left(engine, world):
    window = {"first": TODAY + 3 * DAY, "last": TODAY + 25 * DAY}
    alone = Truth([dataclasses.replace(c, supplier=None) for c in world.now.channels])
    ours = [
        d
        for d in alone.departures
        if d["slot"][0] == "direct" and window["first"] <= d["travel_date"] <= window["last"]
    ]
    told = "update core.connections set is_active = %s where connection_id = 'agents'"
    directory = world.project.directory
    with separated(engine, directory), rebuilt(engine, directory, told % "false", told % "true"):
        for name in ("occupancy", "occupancy_products", "occupancy_days"):
            assert sum(row["departures"] for row in _rows_of(engine, name, **window)) == len(ours), name
        ahead = _rows_of(engine, "overview_ahead", **window)
        (now,) = _rows_of(engine, "standing")
        health = {row["product_key"] for row in _rows_of(engine, "availability")}
    assert sum(row["product_days"] for row in ahead) == len({(d["product"], d["travel_date"]) for d in ours})
    assert len(health) == now["products"] == len({d["product"] for d in ours})


def test_what_is_said_to_be_covered_is_known_of_every_connection(engine, world):
    """Where charts begin is another question: with the first day of which anything is known."""
    where = "where connection_id = 'agents' and resource"
    months = "('2026-08', '2026-09', '2026-12', '2027-01')"
    with planted(
        engine,
        f"update ops.coverage set resource = 'kept' {where} = 'bookings' and travel_month in {months}",
        f"update ops.coverage set resource = 'bookings' {where} = 'kept'",
    ):
        channels = {row["connection_id"]: row for row in _rows_of(engine, "channels")}
        (now,) = _rows_of(engine, "standing")
    direct, agents = channels["direct"], channels["agents"]
    assert direct["bookings_from"] < agents["bookings_from"]
    assert direct["bookings_to"] > agents["bookings_to"]
    assert (now["bookings_from"], now["bookings_to"]) == (agents["bookings_from"], agents["bookings_to"])
    assert (now["booked_from"], now["begins"]) == (agents["booked_from"], direct["booked_from"])


def test_what_waits_for_proof_is_counted_once(engine):
    with planted(
        engine,
        "insert into ops.absences (connection_id, table_name, key, resource, subject_key, misses) "
        """values ('direct', 'core.bookings', '["x"]', 'booking', '["x"]', 1)""",
        "delete from ops.absences",
    ):
        (now,) = _rows_of(engine, "standing")
    assert (now["missed_rows"], now["open_subjects"], now["is_complete"]) == (1, 1, False)


NOTICE = ((-1, "after travel"), (0, "same day"), (2, "1-2 days"), (7, "3-7 days"), (30, "8-30 days"))


def _bands(days):
    told = [[name for most, name in NOTICE if n is not None and n <= most] for n in days]
    return Counter(
        "unknown" if n is None else names[0] if names else "over 30 days" for n, names in zip(days, told, strict=True)
    )


def test_notice_is_counted_in_the_days_of_the_venue(engine, world):
    """On each side of each bound, late in the venue's day: the business day and the UTC day are others."""
    window = {"first": TODAY - 60 * DAY, "last": TODAY + 2 * DAY}

    def cancelled(truth):
        return [
            b for b in truth.bookings
            if b["was_sold"] and b["cancelled"] and window["first"] <= b["booking_date"] <= window["last"]
        ]  # fmt: skip

    edges = [n for most, _ in NOTICE for n in (most, most + 1)]
    dated = [b for b in cancelled(world.now) if b["travel_date"]]
    channels, plant, undo = copy.deepcopy(world.now.channels), [], []
    raws = {raw["uuid"]: raw for channel in channels for raw in channel.state["bookings"]}
    for n, b in zip(edges, dated[:: len(dated) // len(edges)], strict=False):
        raw = raws[b["booking_uuid"]]
        venue = ZoneInfo(world.now.products[b["slot"][:2]]["time_zone"])
        at = dt.datetime.combine(b["travel_date"] - n * DAY, dt.time(23, 30), tzinfo=venue).astimezone(dt.UTC)
        told = f"update core.bookings set utc_cancelled_at = '{{}}' where booking_uuid = '{raw['uuid']}'"
        plant.append(told.format(at.isoformat()))
        undo.append(told.format(raw["utc_cancelled_at"]))
        raw["utc_cancelled_at"] = at.isoformat()
    of = cancelled(Truth(channels))
    with planted(engine, "; ".join(plant), "; ".join(undo)):
        found = {row["notice"]: row["bookings"] for row in _rows_of(engine, "cancellations_notice", **window)}

    assert found == _bands([b["notice"] for b in of])
    assert len(plant) == len(edges) <= len(of)
    assert {*found} >= {*(name for _, name in NOTICE), "over 30 days", "unknown"}
    business = [b["travel_date"] and (b["travel_date"] - b["cancelled_date"]).days for b in of]
    assert _bands(business) != found
