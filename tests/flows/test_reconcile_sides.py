"""What is compared with what, and how sure the copy is of it: on a small copy of two connections."""

import contextlib
import datetime as dt
import os
import re
import sqlite3
import tomllib
import tracemalloc
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace

import duckdb
import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.journal.helpers import HandClock, fail

from octo_sync.app import reading as api
from octo_sync.errors import ConfigError, LedgerError
from octo_sync.flows.reconcile.reading import remembered
from octo_sync.flows.reconcile.run import compare, write
from octo_sync.journal import Journal
from octo_sync.model import Source, Subject, SubjectKind
from octo_sync.pipeline import load
from octo_sync.reconciliation.model import Bucket

ROOT = Path(__file__).resolve().parents[2]
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
  is_deleted boolean, local_date date, utc_created_at timestamptz, retail_amount decimal(18, 4), currency text,
  utc_start_at timestamptz, local_start_at timestamp, pax_count bigint);
create view marts.fct_bookings as select *, status = 'CONFIRMED' as was_sold, local_date as travel_date,
  cast(utc_created_at as date) as booking_date from core.bookings;
create table marts.coverage (
  connection_id text, resource text, travel_month date, verified_at_utc timestamptz, is_complete boolean);
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


def book(copy, connection, reference, travels="2026-11-20", booked="2026-11-10", amount="10", currency="EUR", **more):
    row = {
        "connection_id": connection, "booking_uuid": f"{connection}-{reference}", "supplier_reference": reference,
        "status": "CONFIRMED", "is_test": False, "is_deleted": False, "local_date": travels, "utc_created_at": booked,
        "retail_amount": amount, "currency": currency,
    } | more  # fmt: skip
    copy.execute(
        f"insert into core.bookings ({', '.join(row)}) values ({', '.join('?' * len(row))})", list(row.values())
    )


@contextlib.contextmanager
def looking(copy, tmp_path, section):
    """The pipeline with its one reconciliation, and a reader of the copy."""
    copy.close()
    path = tmp_path / "shop.toml"
    path.write_text(BASE + section)
    pipeline = load(path, directory=tmp_path, environ={"TOKEN": "secret"}, overrides={})
    with contextlib.closing(api.reader(tmp_path / "copy.duckdb")) as reader:
        yield pipeline, reader


def compared(copy, tmp_path, section, *, journal=None, environ=None, there=None):
    with looking(copy, tmp_path, section) as (pipeline, reader):
        [name] = pipeline.reconciliations
        return compare(
            pipeline, name, reader=reader, journal=journal, now=NOW, environ=environ or {}, there=there
        )  # fmt: skip


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
there = { file = "ledger.csv" }
keys = ["supplier_reference=no"]
fields = { retail_amount = "gross", currency = "currency" }
window = "-21d..+0d"
"""


def cover(copy, connection, month, verified, *, is_complete=True):
    copy.execute(
        "insert into marts.coverage values (?, 'bookings', ?, ?, ?)", [connection, f"{month}-01", verified, is_complete]
    )


def ledger(tmp_path, *rows, head="no,gross,currency"):
    path = tmp_path / "ledger.csv"
    path.write_text("".join(f"{row}\n" for row in (head, *rows)))
    os.utime(path, (NOW.timestamp(),) * 2)


def codes(outcome):
    return [d.code for item in outcome.items for d in item.differences]


@pytest.fixture
def journal(tmp_path):
    with contextlib.closing(Journal.open(tmp_path / "journal.sqlite", clock=HandClock(NOW))) as opened:
        yield opened


def remember(copy, uuid, **version):
    row = {
        "connection_id": uuid.partition("-")[0], "booking_uuid": uuid, "version_no": 1, "status": "CONFIRMED",
        "valid_from_utc": "2026-11-10 08:00Z", "valid_to_utc": "2026-11-15 09:30Z", "changed_fields": "retail_amount",
        "currency": "EUR", "source": "notification",
    } | version  # fmt: skip
    statement = f"insert into core.booking_history ({', '.join(row)}) values ({', '.join('?' * len(row))})"
    copy.execute(statement, list(row.values()))


def test_a_price_that_changed_after_booking_is_in_the_history(copy, tmp_path):
    book(copy, "ours", "B1")
    book(copy, "ours", "B2")
    remember(copy, "ours-B1", retail_amount="12")
    remember(copy, "ours-B1", version_no=2, valid_from_utc="2026-11-15 09:30Z", valid_to_utc=None, retail_amount="10")
    ledger(tmp_path, "B1,12.00,EUR", "B2,13.00,EUR")

    outcome = compared(copy, tmp_path, LEDGER)

    changed, unknown = (item.differences[0] for item in sorted(outcome.items, key=lambda item: item.key))
    assert (changed.code, unknown.code) == ("price_changed", "other_amount")
    assert "until 2026-11-15 09:30 UTC" in changed.reason


def test_what_was_told_and_is_not_landed_explains_what_differs_and_what_is_missing(copy, tmp_path, journal):
    for reference in ("B1", "B2"):
        book(copy, "ours", reference)
    journal.subjects.mark(
        [Subject("ours", SubjectKind.BOOKING, (uuid,)) for uuid in ("ours-B1", "ours-N1")], Source.NOTIFICATION
    )
    head = "uuid,no,gross,currency"
    ledger(
        tmp_path,
        "ours-B1,B1,11.00,EUR",
        "ours-B2,B2,11.00,EUR",
        "ours-N1,N1,9.00,EUR",
        "ours-N2,N2,9.00,EUR",
        head=head,
    )
    section = LEDGER.replace("keys = [", 'keys = ["booking_uuid=uuid", ')

    outcome = compared(copy, tmp_path, section, journal=journal)

    found = {item.key: [d.code for d in item.differences] for item in outcome.items}
    assert found == {
        "booking_uuid=ours-B1": ["notification_not_landed"],
        "booking_uuid=ours-B2": ["other_amount"],
        "booking_uuid=ours-N1": ["notification_not_landed"],
        "booking_uuid=ours-N2": ["unknown_here"],
    }


def test_a_booking_in_quarantine_is_still_owed(copy, tmp_path, journal):
    book(copy, "ours", "B1")
    journal.subjects.mark([Subject("ours", SubjectKind.BOOKING, ("ours-B1",))], Source.NOTIFICATION)
    fail(journal, *journal.subjects.claim(1, run_id="r"), quarantine=True)
    ledger(tmp_path, "B1,11.00,EUR")

    assert codes(compared(copy, tmp_path, LEDGER, journal=journal)) == ["notification_not_landed"]


def test_a_month_that_was_not_verified_wholly_explains_what_is_missing(copy, tmp_path):
    cover(copy, "ours", "2026-11", "2026-11-22 11:00Z")
    cover(copy, "theirs", "2026-11", "2026-11-22 11:00Z", is_complete=False)
    cover(copy, "ours", "2026-12", "2026-11-22 11:00Z")
    ledger(tmp_path, "B8,10.00,EUR,2026-11-20", "B9,10.00,EUR,2026-12-02", head="no,gross,currency,day")
    section = LEDGER.replace('currency = "currency"', 'currency = "currency", travel_date = "day"').replace(
        "+0d", "+30d"
    )

    outcome = compared(copy, tmp_path, section)

    assert {item.key: [d.code for d in item.differences] for item in outcome.items} == {
        "supplier_reference=B8": ["not_covered"],
        "supplier_reference=B9": ["unknown_here"],
    }
    assert outcome.here.complete is False


def test_the_page_shows_the_versions_that_the_copy_has(copy, tmp_path):
    book(copy, "ours", "B1")
    remember(copy, "ours-B1", retail_amount="12.5")
    remember(copy, "ours-B1", connection_id="theirs", retail_amount="77")
    ledger(tmp_path, "B1,12.00,EUR")

    with looking(copy, tmp_path, LEDGER) as (pipeline, reader):
        outcome = compare(pipeline, "ledger", reader=reader, journal=None, now=NOW, environ={})
        detail = remembered(reader, None, {"ours-B1"})
        write(outcome, tmp_path / "ledger.html", remembered=detail)
        [version] = detail(outcome.items[0])["Versions of the booking here"]

    assert (version["retail_amount"], version["changed_fields"]) == (Decimal("12.5000"), "retail_amount")
    assert version["valid_to_utc"] == dt.datetime(2026, 11, 15, 9, 30, tzinfo=dt.UTC)
    page = (tmp_path / "ledger.html").read_text()
    assert "Versions of the booking here" in page
    assert "12.50" in page
    assert "77" not in page, "another connection's booking has the same history"


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
        detail = remembered(reader, SimpleNamespace(inbox=SimpleNamespace(all_deliveries=deliveries)), {"u1", "u2"})
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert [told["received_at"] for told in detail(item)["Notifications"]] == list(range(2980, 3000))
        assert list(detail(other)["Notifications"]) == []
    assert held < 5_000_000


# ── where the other side is ───────────────────────────────────────────────────────────────────────────────────────────

SOURCES = {
    "csv": 'file = "sales-*.csv"',
    "xlsx": 'file = "sales.xlsx", format = {{ sheet = "Sales", header_row = 2 }}',
    "parquet": 'file = "sales.parquet"',
    "dsn": 'dsn = "sqlite:///{folder}/sales.db", sql = "select * from sales where day between :from and :to"',
    "relative": 'dsn = "sqlite:///sales.db", sql = "select * from sales where day between :from and :to"',
    "variable": 'dsn = "sqlite:///${{SALES}}/sales.db", sql = "select * from sales where day between :from and :to"',
}
SOURCE = """
[reconcile.sales]
there = {{ {source} }}
keys = ["supplier_reference=no"]
fields = {{ retail_amount = "gross", currency = "currency", travel_date = "day" }}
window = "-21d..+0d"
"""
HEAD = ("no", "gross", "currency", "day")
SALES = (
    ("B1", "10.00", "EUR", dt.date(2026, 11, 20)),
    ("B2", "12.50", "EUR", dt.date(2026, 11, 20)),
    ("B9", "7.00", "EUR", dt.date(2026, 11, 20)),
    ("OLD", "7.00", "EUR", dt.date(2026, 1, 20)),
)


def sell(tmp_path, rows):
    """The same sales as a CSV file, a sheet below another one, a Parquet file and a table."""
    (tmp_path / "sales-1.csv").write_text("".join(f"{','.join(map(str, row))}\n" for row in (HEAD, *rows)))
    book = openpyxl.Workbook()
    book.active.append(["nothing of this"])
    sheet = book.create_sheet("Sales")
    for row in (["November"], HEAD, *((no, float(gross), currency, day) for no, gross, currency, day in rows)):
        sheet.append(row)
    book.save(tmp_path / "sales.xlsx")
    columns = list(zip(*rows, strict=True)) or [()] * len(HEAD)
    types = pa.string(), pa.string(), pa.string(), pa.date32()
    arrays = [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]
    pq.write_table(pa.table(arrays, names=HEAD), tmp_path / "sales.parquet")
    with contextlib.closing(sqlite3.connect(tmp_path / "sales.db")) as db:
        db.execute("create table sales (no text, gross text, currency text, day text)")
        db.executemany("insert into sales values (?, ?, ?, ?)", [(*row[:3], str(row[3])) for row in rows])
        db.commit()


@pytest.mark.parametrize("source", SOURCES)
def test_every_kind_of_source_is_compared(source, copy, tmp_path):
    for reference in ("B1", "B2", "B3"):
        book(copy, "ours", reference)
    sell(tmp_path, SALES)

    section = SOURCE.format(source=SOURCES[source].format(folder=tmp_path))
    outcome = compared(copy, tmp_path, section, environ={"SALES": str(tmp_path)})

    found = {item.key.partition("=")[2]: str(item.bucket) for item in outcome.items}
    # A query leaves out itself what its days do not ask for.
    old = {} if "sql" in SOURCES[source] else {"OLD": "out_of_window"}
    assert found == {"B2": "mismatched", "B3": "missing_there", "B9": "missing_here"} | old
    assert outcome.counts[Bucket.MATCHED] == 1
    [mismatch] = [item for item in outcome.items if item.bucket is Bucket.MISMATCHED]
    assert (mismatch.differences[0].here_value, mismatch.differences[0].there_value) == ("10", "12.5")
    place = {"csv": "sales-1.csv, line 3", "xlsx": "sales.xlsx, sheet Sales, row 4", "parquet": "sales.parquet, row 2"}
    assert mismatch.places == (place.get(source, "row 2 of the select"),)
    assert str(tmp_path) in outcome.there.origin or outcome.there.origin.startswith("sales")


@pytest.mark.parametrize("source", SOURCES)
def test_a_source_without_a_row_is_an_export_that_failed(source, copy, tmp_path):
    book(copy, "ours", "B1")
    sell(tmp_path, ())

    section = SOURCE.format(source=SOURCES[source].format(folder=tmp_path))
    with pytest.raises(LedgerError) as caught:
        compared(copy, tmp_path, section, environ={"SALES": str(tmp_path)})

    words = ("sales.db", "no row for 2026-11-01..2026-11-22") if "sql" in SOURCES[source] else ("sales", "no row below")
    assert all(word in str(caught.value) for word in (*words, "nothing was compared")), caught.value


def test_a_connection_or_a_frame_without_a_row_is_one(copy, tmp_path):
    book(copy, "ours", "B1")
    frame = pa.table(
        {"no": pa.array([], pa.string()), "gross": pa.array([], pa.string()), "currency": pa.array([], pa.string())}
    )

    assert counted(compared(copy, tmp_path, MIRROR)) == {"missing_there": 1}
    assert counted(compared(copy, tmp_path, LEDGER, there=frame)) == {"missing_there": 1}


def test_a_variable_that_is_not_set_is_named(copy, tmp_path):
    section = SOURCE.format(source=SOURCES["variable"].format())

    with pytest.raises(ConfigError, match="The environment has no SALES"):
        compared(copy, tmp_path, section)


# ── what the pipeline file says of how ────────────────────────────────────────────────────────────────────────────────

RULES = {
    "tolerance": "EUR = 0.05, default = 1",
    "relative": "relative = 0.001",
    "grace": '"2h"',
    "changed": '"changed"',
    "strip": '"BK-"',
    "fail_on": '"mismatched>1, missing_here>0, abs_amount_eur>100"',
}
DECIDED = {
    "ABSOLUTE": "matched_within_tolerance", "DEFAULT": "matched_within_tolerance", "SHARE": "matched_within_tolerance",
    "OTHER": "mismatched", "OLD": "missing_here", "NEW": "too_fresh",
}  # fmt: skip
WITHOUT = {
    "tolerance": {"ABSOLUTE": "mismatched", "DEFAULT": "mismatched"},
    "relative": {"SHARE": "mismatched"},
    "grace": {"NEW": "missing_here"},
    "changed": {"NEW": "missing_here"},
    "strip": {"BK-7": "missing_here", "7": "missing_there"},
    "fail_on": {},
}


@pytest.mark.deep(0.2, everyday=3)
@pytest.mark.parametrize("left_out", [None, *RULES])
def test_each_rule_of_the_file_decides(left_out, copy, tmp_path):
    cover(copy, "ours", "2026-11", "2026-11-22 11:00Z")
    for reference, amount in (("ABSOLUTE", 10), ("SHARE", 1000), ("OTHER", 10), ("7", 10)):
        book(copy, "ours", reference, amount=amount)
    book(copy, "ours", "DEFAULT", amount=100, currency="JPY")
    ledger(
        tmp_path, "ABSOLUTE,10.05,EUR,", "DEFAULT,101,JPY,", "SHARE,1000.95,EUR,", "OTHER,12.50,EUR,", "BK-7,10.00,EUR,",
        "OLD,5.00,EUR,2026-11-22T08:30:00Z", "NEW,5.00,EUR,2026-11-22T10:00:00Z", head="no,gross,currency,changed",
    )  # fmt: skip
    rules = RULES | ({"grace": "0"} if left_out == "grace" else {})

    rules = {key: rule for key, rule in rules.items() if key != left_out or key == "grace"}
    apart = ", ".join(rules.pop(key) for key in ("tolerance", "relative") if key in rules)
    begins = f"format = {{ strip = {rules.pop('strip')} }}" if "strip" in rules else ""
    section = LEDGER.replace('file = "ledger.csv"', f'file = "ledger.csv", {begins}'.rstrip(", "))
    section += f"tolerance = {{ {apart} }}\n" + "".join(f"{key} = {rule}\n" for key, rule in rules.items())
    outcome = compared(copy, tmp_path, section)

    found = {
        item.key.partition("=")[2]: str(item.bucket) for item in outcome.items if item.bucket is not Bucket.MATCHED
    }
    assert found == DECIDED | WITHOUT.get(left_out, {})
    assert [item.normalised for item in outcome.items if item.bucket is Bucket.MATCHED] == [True] * (
        left_out != "strip"
    )
    if left_out is None:
        assert outcome.breached == ("1 missing here, at most 0 allowed",)
    elif left_out == "fail_on":
        assert outcome.breached == ("2 differences, at most 0 allowed",)


def test_what_the_file_leaves_out_is_told_and_a_query_may_have_several_lines(copy, tmp_path):
    for reference in ("B1", "B2"):
        book(copy, "ours", reference)
    rows = ("B1,10.00,EUR,SALE", "B1-F,1.00,EUR,FEE", "B2,10.00,EUR,SALE", ",21.00,,Total")
    ledger(tmp_path, *rows, head="no,gross,currency,kind")
    section = (
        LEDGER.replace('"ledger.csv"', '"ledger.csv", format = { skip_footer = 1, where = "kind <> \'FEE\'" }')
        + 'here = """\nselect *\n\tfrom marts.fct_bookings -- all of them\nwhere travel_date between :from and :to\n"""\n'
    )
    outcome = compared(copy, tmp_path, section)
    assert counted(outcome) == {"matched": 2}
    assert outcome.there.rows == 2
    assert outcome.there.notes == (
        "ledger.csv: the last 1 row, from 5 on, was left out (skip_footer).",
        "ledger.csv: 1 row for which where is not true was left out.",
    )
    outcome = compared(copy, tmp_path, LEDGER)
    assert {item.differences[0].code for item in outcome.items} == {"unknown_here", "totals_row"}


@pytest.mark.parametrize(
    ("last", "code"),
    [
        (",12.00,,Summe EUR", "totals_row"),
        (",12.00,,Sumatra", "unknown_here"),
        ("B9,12.00,,Total", "unknown_here"),
        (",13.00,,Total\nB9,2.00,,", "unknown_here"),
    ],
)
def test_a_last_row_without_a_key_may_say_in_a_column_that_nobody_reads_that_it_is_a_total(copy, tmp_path, last, code):
    """It is proposed, and is a difference still."""
    book(copy, "ours", "B1")
    ledger(tmp_path, "B1,10.00,EUR,SALE", last, head="no,gross,currency,kind")
    outcome = compared(copy, tmp_path, LEDGER)
    assert set(codes(outcome)) == {code}
    assert counted(outcome) == {"matched": 1, "missing_here": len(last.splitlines())}


def test_the_eight_lines_of_the_page_reconcile_its_rows(copy, tmp_path):
    """A spreadsheet's export: decimal commas, days first, wall clocks of Lisbon."""
    page = (ROOT / "docs" / "reconciliation.md").read_text(encoding="utf-8").partition("## The two sides")[0]
    rows, section, _ = re.findall(r"^```\w*\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    head, line = rows.splitlines()
    cells = dict(zip(head.split(";"), line.split(";"), strict=True))
    said = {"uuid": cells["octo_uuid"], "no": cells["booking_no"], "gross": Decimal(cells["gross"].replace(",", "."))}
    local = dt.datetime.strptime(cells["start"], "%d.%m.%Y %H:%M")  # noqa: DTZ007 - a wall clock
    start = dt.datetime(2026, 10, 22, 16, 30, tzinfo=dt.UTC)
    assert start.replace(tzinfo=None) == local - dt.timedelta(hours=1), "summer, in which the zone matters"
    more = {
        "utc_start_at": start,
        "local_start_at": local,
        "pax_count": int(cells["pax"]),
        "travels": str(local.date()),
    }
    for uuid, number in ((said["uuid"], said["no"]), ("u-utc", "UTC")):
        agent = cells["agent_ref"] if number == said["no"] else None
        book(copy, "ours", number, booking_uuid=uuid, reseller_reference=agent, amount=said["gross"], **more)
    in_utc = line.replace(said["uuid"], "u-utc").replace(said["no"], "UTC").replace(cells["agent_ref"], "")
    (tmp_path / "exports").mkdir()
    (tmp_path / "exports" / "ledger-2026-11.csv").write_text(
        f"{rows}{in_utc.replace('17:30', '16:30')}\n", encoding="utf-8"
    )

    outcome = compared(copy, tmp_path, section)

    assert len([row for row in section.splitlines() if row.strip()]) == 8
    assert tomllib.loads(section)["reconcile"]["ledger"]["there"]["format"]["time_zone"] == "Europe/Lisbon"
    assert counted(outcome) == {"matched": 1, "mismatched": 1}
    [wrong] = [item for item in outcome.items if item.bucket is Bucket.MISMATCHED]
    assert wrong.booking_uuid == "u-utc", "of the page's own row, whose clock is that of Lisbon, nothing differs"
    assert [(d.field, d.code) for d in wrong.differences] == [("utc_start_at", "wall_clock_as_utc")]
    assert outcome.breached == ("1 mismatched, at most 0 allowed",)
