"""What is compared with what, and how sure the copy is of it: on a small copy of two connections."""

import contextlib
import datetime as dt
import tracemalloc
from types import SimpleNamespace

import duckdb
import pytest

from octo_sync import api
from octo_sync.flows.reconcile import compare
from octo_sync.flows.reconcile_here import drill
from octo_sync.pipeline import load
from octo_sync.reconciliation import Bucket

NOW = dt.datetime(2026, 11, 22, 12, tzinfo=dt.UTC)
COPY = """
create schema marts; create schema core; create schema ops;
create table core.connections (connection_id text, business_time_zone text, is_active boolean);
insert into core.connections values ('ours', 'UTC', true), ('theirs', 'UTC', true);
create table core.booking_history (
  connection_id text, booking_uuid text, version_no bigint, valid_from_utc timestamptz, valid_to_utc timestamptz, status text,
  local_date date, retail_amount decimal(18, 4), net_amount decimal(18, 4), currency text, pax_count bigint,
  changed_fields text, source text);
create table core.bookings (
  connection_id text, booking_uuid text, supplier_reference text, reseller_reference text, status text, is_test boolean,
  is_deleted boolean, local_date date, utc_created_at timestamptz, retail_amount decimal(18, 4), currency text);
create view marts.fct_bookings as select *, status = 'CONFIRMED' as was_sold, local_date as travel_date,
  cast(utc_created_at as date) as booking_date from core.bookings;
create table marts.coverage (
  connection_id text, resource text, travel_month text, verified_at_utc timestamptz, is_complete boolean);
"""
BASE = """
[connections.ours]
base_url = "https://ours.example.com"
token = { env = "TOKEN" }
[connections.theirs]
base_url = "https://theirs.example.com"
token = { env = "TOKEN" }
"""
MIRROR = """
[reconcile.mirror]
there = { connection = "theirs" }
keys = ["supplier_reference"]
fields = { retail_amount = "retail_amount", currency = "currency" }
"""


@pytest.fixture
def copy(tmp_path):
    """A connection to the copy's file, to plant rows in; closed before somebody looks."""
    with contextlib.closing(duckdb.connect(str(tmp_path / "copy.duckdb"))) as db:
        db.execute(COPY)
        yield db


def book(copy, connection, reference, travels="2026-11-20", booked="2026-11-10"):
    uuid = f"{connection}-{reference}"
    row = [connection, uuid, reference, None, "CONFIRMED", False, False, travels, booked, "10", "EUR"]
    copy.execute(f"insert into core.bookings values ({', '.join('?' * len(row))})", row)


def compared(copy, tmp_path, section):
    copy.close()
    path = tmp_path / "shop.toml"
    path.write_text(BASE + section)
    pipeline = load(path, directory=tmp_path, environ={"TOKEN": "secret"}, overrides={})
    [name] = pipeline.reconciliations
    with contextlib.closing(api.reader(tmp_path / "copy.duckdb")) as reader:
        return compare(pipeline, name, reader=reader, journal=None, now=NOW, environ={})


def counted(outcome):
    return {str(bucket): n for bucket, n in outcome.counts.items() if n}


def test_another_connection_is_compared_with_the_others_and_not_with_itself(copy, tmp_path):
    for connection in ("ours", "theirs"):
        book(copy, connection, "B1")
    book(copy, "theirs", "B2")

    outcome = compared(copy, tmp_path, MIRROR)

    assert counted(outcome) == {"matched": 1, "missing_here": 1}
    [missing] = [item for item in outcome.items if item.bucket is Bucket.MISSING_HERE]
    assert [d.code for d in missing.differences] == ["unknown_here"], "that it is there is no reason"


def test_what_a_connection_there_has_is_chosen_by_the_same_day(copy, tmp_path):
    for connection in ("ours", "theirs"):
        book(copy, connection, "B1", travels="2026-12-24")
        book(copy, connection, "B2", booked="2026-08-01")

    outcome = compared(copy, tmp_path, MIRROR + 'date = "booking_date"\n')

    assert counted(outcome) == {"matched": 1}


# ── how sure the copy is ──────────────────────────────────────────────────────────────────────────────────────────────

LEDGER = """
[reconcile.ledger]
there = { csv = "ledger.csv" }
keys = ["supplier_reference=no"]
fields = { retail_amount = "gross", currency = "currency" }
window = "-21d..+0d"
"""


def cover(copy, connection, month, verified, *, is_complete=True):
    copy.execute(
        "insert into marts.coverage values (?, 'bookings', ?, ?, ?)", [connection, month, verified, is_complete]
    )


def ledger(tmp_path, *rows):
    (tmp_path / "ledger.csv").write_text("no,gross,currency\n" + "".join(f"{row}\n" for row in rows))


def test_a_connection_that_the_pipeline_has_no_more_says_nothing_of_how_old_the_copy_is(copy, tmp_path):
    cover(copy, "ours", "2026-11", "2026-11-22 11:00Z")
    cover(copy, "theirs", "2026-11", "2026-03-01 11:00Z", is_complete=False)
    copy.execute("update core.connections set is_active = false where connection_id = 'theirs'")
    ledger(tmp_path, "B9,10.00,EUR")

    outcome = compared(copy, tmp_path, LEDGER)

    assert (outcome.here.as_of, outcome.here.complete) == (NOW - dt.timedelta(hours=1), True)
    assert [d.code for item in outcome.items for d in item.differences] == ["unknown_here"]


def test_nobody_knows_whether_all_that_was_booked_in_a_window_was_verified(copy, tmp_path):
    """Bookings are verified by the month in which they travel."""
    cover(copy, "ours", "2026-11", "2026-11-22 11:00Z")
    cover(copy, "ours", "2026-12", "2026-11-22 10:00Z", is_complete=False)
    ledger(tmp_path, "B9,10.00,EUR")

    by_travel = compared(copy, tmp_path, LEDGER)
    by_booking = compared(copy, tmp_path, LEDGER + 'date = "booking_date"\n')

    assert (by_travel.here.as_of, by_travel.here.complete) == (NOW - dt.timedelta(hours=1), True)
    assert (by_booking.here.as_of, by_booking.here.complete) == (NOW - dt.timedelta(hours=2), None)


def test_what_was_told_is_held_of_the_shown_bookings_alone(copy, tmp_path):
    def deliveries():
        for number in range(3000):
            texts = [f"{number}-{i}" for i in range(20)] + ["u1"] * 2
            body = ", ".join(f'"{text}"' for text in texts).encode()
            yield SimpleNamespace(body=body, received_at=number, type="booking_update", reading="booking")

    copy.close()
    item, other = (SimpleNamespace(booking_uuid=uuid, connection="ours") for uuid in ("u1", "u2"))
    with contextlib.closing(api.reader(tmp_path / "copy.duckdb")) as reader:
        tracemalloc.start()
        detail = drill(reader, SimpleNamespace(all_deliveries=deliveries), {"u1", "u2"})
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert [told["received_at"] for told in detail(item).deliveries] == list(range(2980, 3000))
        assert list(detail(other).deliveries) == []
    assert held < 5_000_000
