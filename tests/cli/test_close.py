"""`octo-sync close`: a month is closed once, what changes later is told, and nothing is claimed that is not known."""

import calendar
import json
import re
import sqlite3
from datetime import date, timedelta
from decimal import Decimal

import duckdb
import pytest
from tests.cli.test_exit_codes import one_line
from tests.cli.test_terminal import ESCAPES, on_a_terminal

from octo_sync.app.machine import SystemClock
from octo_sync.journal import Journal
from octo_sync.model import Source, Subject, SubjectKind

SECTION = """
[reconcile.ledger]
there = { file = "ledger.csv" }
keys = ["booking_uuid=uuid"]
fields = { retail_amount = "gross", currency = "currency", travel_date = "day" }
"""


@pytest.fixture
def months(project):
    """Months of travel with sold bookings: one that is known completely and over, one that is over, one that is not over."""
    known = {
        row["travel_month"][:7]: row["known"]
        for row in project.json(
            "sql", "select travel_month, min(is_complete::int) = 1 as known from booking_months group by 1 order by 1"
        )["rows"]
    }
    sold = [
        row["travel_month"][:7]
        for row in project.json("sql", "select distinct travel_month from fct_bookings where is_sold order by 1")[
            "rows"
        ]
        if row["travel_month"]
    ]
    today = project.json("sql", "select max(as_of_date)::text as today from dim_channel")["rows"][0]["today"][:7]
    year, number = map(int, min(known).split("-"))
    before = f"{year - (number == 1)}-{(number - 2) % 12 + 1:02}"
    over = [month for month in sold if month < today]
    return {
        "complete": next(month for month in reversed(over) if known.get(month)),
        # Where the first day asked for began a month, it is the one before.
        "in part": next((month for month in known if month < today and not known[month]), before),
        "not over": today,
    }


def figures(project, month):
    found = project.json(
        "sql",
        "select connection_id, currency, count(*) as bookings, sum(retail_amount)::text as retail from fct_bookings "
        f"where is_sold and travel_month = '{month}-01' group by all order by all",
    )
    return [(r["connection_id"], r["currency"], r["bookings"], r["retail"]) for r in found["rows"]]


def told(document):
    return [(r["connection_id"], r["currency"], r["bookings"], r["retail_amount"]) for r in document["figures"]]


def marked(project, *subjects):
    """Say that these are to be fetched again, as a webhook does."""
    with Journal.open(project.directory / "octo.journal.sqlite", clock=SystemClock()) as journal:
        journal.subjects.mark([Subject("shop", kind, (part,)) for kind, part in subjects], Source.NOTIFICATION)


def kept_in_the_journal(project, change):
    """Change what the journal keeps of the one closing, without its knowledge."""
    with sqlite3.connect(project.directory / "octo.journal.sqlite") as journal:
        name, value = journal.execute("select name, value from settings where name like 'closed %'").fetchone()
        change(content := json.loads(value))
        journal.execute("update settings set value = ? where name = ?", (json.dumps(content), name))
    journal.close()


def assert_it_fits(project, width):
    """No line of `close` is wider, nothing is cut but the digest, and columns that do not fit are named."""
    _, seen = on_a_terminal(project, "close", width=width)
    lines = ESCAPES.sub("", seen).splitlines()
    assert max(map(len, lines)) <= width
    assert seen.count("…") == 1
    said = re.findall(r"Columns that do not fit: ([^.]*)\.", " ".join(lines))
    heads = [line for line in project.ok("close").splitlines() if line.startswith(("channel", "total"))]
    shown = [re.split("  +", line) for line in lines if line.startswith(("channel", "total  "))]
    left = [[c for c in re.split("  +", line) if c not in there] for line, there in zip(heads, shown, strict=True)]
    assert [", ".join(columns) for columns in left if columns] == said != []


def test_a_month_is_closed_once_and_what_changes_later_is_an_adjustment(project, months):
    month = months["complete"]
    before = figures(project, month)
    said = project("close", month)
    assert said.returncode == 0, said.stderr
    assert said.stdout.startswith(f"{month}     closed ")
    (first,) = project.json("close", month)["periods"]
    assert told(first) == before != []
    assert (first["is_complete"], first["adjustments"], len(first["digest"])) == (True, [], 64)

    kept = {(row["kind"], row["tax_name"], row["connection_id"], row["currency"]): row for row in first["totals"]}
    assert {kind for kind, *_ in kept} >= {"tax", "deferred"}
    assert all(
        row["retail_amount"] == row["retail_now"] and not Decimal(row["retail_adjustment"] or 0)
        for row in kept.values()
    )

    taxed = f"travel_month = '{month}-01' and retail_amount > 0"
    sold = f"select booking_uuid from fct_taxes where status = 'CONFIRMED' and {taxed} limit 1"
    ((uuid,),) = [tuple(row.values()) for row in project.json("sql", sold)["rows"]]
    # In the warehouse: the service is not this test's alone.
    with duckdb.connect(project.directory / "octo.duckdb") as warehouse:
        for rows in ("core.bookings where", "core.booking_history where is_current and"):
            table, _, where = rows.partition(" ")
            warehouse.execute(f"update {table} set status = 'CANCELLED' {where} booking_uuid = $1", [uuid])
    project.ok("publish")
    again = project("close", month)
    assert f"{month} was closed before and stays as it is" in again.stderr
    assert "cancelled, -" in again.stdout
    (second,) = project.json("close")["periods"]
    assert told(second) == before, "figures stay"
    assert (second["digest"], second["closed_at"]) == (first["digest"], first["closed_at"])
    changed = [row for row in second["totals"] if Decimal(row["retail_adjustment"] or 0)]
    assert {row["kind"] for row in changed} >= {"tax"}
    for row in second["totals"]:
        was = kept.get((row["kind"], row["tax_name"], row["connection_id"], row["currency"]))
        assert row["retail_amount"] == (was and was["retail_amount"]), "totals stay, too"
    ((row),) = second["adjustments"]
    assert (row["booking_uuid"], row["cause"], row["bookings"]) == (uuid, "cancelled", -1)
    now = [
        (r["connection_id"], r["currency"], r["bookings_now"], r["retail_now"])
        for r in second["figures"]
        if r["bookings_now"]
    ]
    assert now == figures(project, month)
    assert_it_fits(project, width=80)


@pytest.mark.parametrize(
    ("which", "words"),
    [
        ("not over", "; close it after that day"),
        ("in part", "Not all bookings that travel in"),
        ("2026-13", "is no month"),
        ("0000-01", "is no month"),
        ("9999-12", "is no month"),
    ],
)
def test_what_is_not_over_or_not_known_is_not_closed(project, months, which, words):
    done = project("close", months.get(which, which))
    assert done.returncode == (2 if which not in months else 1)
    assert words in one_line(done.stderr)
    assert project.json("close")["periods"] == []
    assert "No month is closed" in project("close").stderr


def test_a_month_that_is_not_known_completely_can_be_closed_and_says_so(project, months):
    said = project.ok("close", months["in part"], "--incomplete")
    assert "with not all bookings known" in said
    (kept,) = project.json("close")["periods"]
    assert kept["is_complete"] is False
    assert project.json("sql", "select was_complete from ops.closed_periods")["rows"] == [{"was_complete": False}]


def test_a_month_whose_bookings_are_pending_is_not_closed_before_they_are_fetched(project, months, tmp_path):
    month = months["complete"]
    project.ok("db", "backup", tmp_path / "backup")
    project.ok("db", "restore", tmp_path / "backup", "--force")

    refused = project("close", month)

    assert refused.returncode == 1
    assert f"Bookings of {month} are pending (channel shop)" in one_line(refused.stderr)
    assert "Run octo-sync sync first" in refused.stderr
    project.ok("sync")
    project.ok("close", month)
    assert project.json("close")["periods"][0]["is_complete"] is True


def test_a_booking_that_is_pending_holds_up_its_own_month_alone(project, months):
    month = months["complete"]
    uuids = "select booking_uuid from fct_bookings where travel_month {} '{}-01' limit 1"
    here, elsewhere = (
        project.json("sql", uuids.format(sign, month))["rows"][0]["booking_uuid"] for sign in ("=", "<>")
    )
    others = (SubjectKind.BOOKING, elsewhere), (SubjectKind.BOOKINGS, months["not over"])
    for pending in (here, "a-booking-that-the-copy-does-not-have"):
        marked(project, (SubjectKind.BOOKING, pending))
        assert project("close", month).returncode == 1, pending
        project.ok("sync")

    marked(project, *others)
    project.ok("close", month)

    assert project.json("close")["periods"][0]["is_complete"] is True


def test_a_month_whose_list_is_pending_can_be_closed_and_says_so(project, months):
    marked(project, (SubjectKind.BOOKINGS, months["complete"]))
    assert "with not all bookings known" in project.ok("close", months["complete"], "--incomplete")


def test_an_unknown_net_is_called_so_and_tables_stand_apart(project, months):
    project.ok("close", months["complete"])
    with duckdb.connect(project.directory / "octo.read.duckdb") as copy:
        none = "null::decimal(38, 4)"
        copy.execute(
            f"create table marts.ours as select * replace ({none} as net_amount, {none} as net_now) from marts.closed_periods; "
            "drop view marts.closed_periods; alter table marts.ours rename to closed_periods"
        )
    lines = project.ok("close").splitlines()
    totals = next(place for place, line in enumerate(lines) if line.startswith("total "))
    assert [place for place, line in enumerate(lines) if not line] == [totals - 1]
    assert totals > 4, "a month, heads, a line, rows, and nothing"
    for line in lines[3 : totals - 1]:
        _, bookings, net, adjustments, now, _ = re.split("  +", line)
        assert (int(bookings) > 0, net, adjustments, now) == (True, "unknown", "0", "unknown")


def test_figures_that_no_publish_has_shown_yet_are_not_called_none(project, months):
    said = project("close", months["complete"], environment={"OCTO_SYNC_PUBLISH__ENABLED": "false"})
    assert said.returncode == 0, said.stderr
    assert "The next publish shows its figures." in said.stdout
    assert "no bookings" not in said.stdout


@pytest.mark.deep(6)
@pytest.mark.parametrize(
    ("short", "wrong", "words"),
    [
        (1, 1, "{month} has 1 open difference with other systems; octo-sync reconcile names it."),
        (1, 2, "{month} has 2 open differences with other systems; octo-sync reconcile names them."),
        (2, 0, "No comparison with another system looked at the whole of {month}."),
        (1, 0, ""),
    ],
)
def test_what_speaks_against_a_closing_is_said_as_page_finance_does(project, months, short, wrong, words):
    month = months["complete"]
    inside = f"was_sold and travel_date between '{month}-01' and last_day('{month}-01'::date)"
    fields = "booking_uuid as uuid, retail_amount::text as gross, currency, travel_date::text as day"
    rows = project.json("sql", f"select {fields} from fct_bookings where {inside} order by gross desc nulls last")[
        "rows"
    ]
    for row in rows[:wrong]:
        row["gross"] = str(Decimal(row["gross"]) + 7)
    ledger = ["uuid,gross,currency,day", *(",".join(value or "" for value in row.values()) for row in rows)]
    (project.directory / "ledger.csv").write_text("\n".join(ledger))
    with (project.directory / "pipelines" / "shop.toml").open("a") as pipeline:
        pipeline.write(SECTION)
    end = date.fromisoformat(f"{month}-01") + timedelta(
        days=calendar.monthrange(*map(int, month.split("-")))[1] - short
    )
    done = project("reconcile", "ledger", "--travel", f"{month}-01..{end}")
    assert done.returncode in (0, 3), done.stderr

    done = project("close", month)

    assert done.returncode == 0
    assert done.stderr.strip() == (f"{words.format(month=month)} It is closed all the same." if words else "")


@pytest.mark.deep(6)
def test_a_closing_outlives_the_warehouse_and_one_that_was_altered_is_noticed(project, months):
    month = months["complete"]
    project.ok("close", month)
    (before,) = project.json("close")["periods"]
    project.ok("db", "rebuild")
    project.ok("sync", "--full")
    (after,) = project.json("close")["periods"]
    assert (after["digest"], told(after)) == (before["digest"], told(before))

    with duckdb.connect(project.directory / "octo.duckdb") as warehouse:
        warehouse.execute("update ops.closed_periods set digest = 'of another closing'")
    project.ok("publish")
    assert project("close").returncode == 3
    with duckdb.connect(project.directory / "octo.duckdb") as warehouse:
        warehouse.execute("update ops.closed_periods set digest = $1, was_complete = false", [before["digest"]])
    project.ok("publish")
    assert project("close").returncode == 3
    with duckdb.connect(project.directory / "octo.duckdb") as warehouse:
        warehouse.execute("update ops.closed_periods set was_complete = true")
    project.ok("publish")
    assert project("close").returncode == 0
    kept_in_the_journal(project, lambda content: content["totals"][0].update(retail_amount="0.01"))
    altered = project("close")
    assert altered.returncode == 3
    assert f"what was closed was altered: {month}" in altered.stderr


def test_a_month_that_was_closed_since_the_backup_stays_closed_when_it_is_restored(project, months, tmp_path):
    month = months["complete"]
    project.ok("db", "backup", tmp_path / "before")
    project.ok("close", month)
    (closed,) = project.json("close")["periods"]

    restored = project("db", "restore", tmp_path / "before", "--force")

    assert f"Closed since that backup, and still closed: {month}." in restored.stderr
    project.ok("sync")
    again = project("close", month)
    assert f"{month} was closed before and stays as it is" in again.stderr
    (after,) = project.json("close")["periods"]
    assert (after["digest"], after["closed_at"], told(after)) == (closed["digest"], closed["closed_at"], told(closed))


def test_a_month_that_the_backup_has_closed_otherwise_stays_as_in_the_backup_which_is_said(project, months, tmp_path):
    month = months["complete"]
    project.ok("close", month)
    (closed,) = project.json("close")["periods"]
    project.ok("db", "backup", tmp_path / "backup")
    assert "closing" not in project("db", "restore", tmp_path / "backup", "--force").stderr, "equal ones are no news"
    kept_in_the_journal(project, lambda content: content["bookings"].pop())

    restored = project("db", "restore", tmp_path / "backup", "--force")

    assert f"{month}: the backup has another closing than the project that it replaced" in " ".join(
        restored.stderr.split()
    )
    project.ok("sync")
    (after,) = project.json("close")["periods"]
    assert (after["digest"], told(after)) == (closed["digest"], told(closed))


@pytest.mark.parametrize(
    "altering",
    [
        "update ops.closed_bookings set retail_amount = retail_amount + 1 where retail_amount is not null",
        "delete from ops.closed_bookings",
        "update ops.closed_totals set retail_amount = 0.01",
    ],
)
def test_figures_of_a_closed_month_that_were_changed_in_the_warehouse_are_called_altered(project, months, altering):
    month = months["complete"]
    project.ok("close", month)
    with duckdb.connect(project.directory / "octo.duckdb") as warehouse:
        warehouse.execute(altering)
    project.ok("publish")

    altered = project("close")

    assert altered.returncode == 3
    assert f"what was closed was altered: {month}" in altered.stderr


@pytest.mark.parametrize("again", ["sync", "close"])
def test_a_month_whose_closing_the_journal_has_lost_is_taken_back_from_the_warehouse(project, months, again):
    month = months["complete"]
    project.ok("close", month)
    (closed,) = project.json("close")["periods"]
    for file in project.directory.glob("octo.journal.sqlite*"):
        file.unlink()

    said = project("close")

    assert (said.returncode, said.stdout) == (0, "")
    assert f"Closed, but no longer in the journal: {month}" in one_line(said.stderr)
    assert project.json("close")["lost"] == [month]
    if again == "close":  # before anything is fetched
        Journal.open(project.directory / "octo.journal.sqlite", clock=SystemClock()).close()
        assert "was closed before and stays as it is" in project("close", month).stderr
    project.ok("sync")
    (after,) = project.json("close")["periods"]
    assert (after["digest"], after["closed_at"], told(after)) == (closed["digest"], closed["closed_at"], told(closed))


def test_a_closing_that_the_journal_has_lost_and_that_does_not_fit_its_digest_is_called_altered(project, months):
    month = months["complete"]
    project.ok("close", month)
    with sqlite3.connect(project.directory / "octo.journal.sqlite") as journal:
        journal.execute("delete from settings where name like 'closed %'")
    journal.close()
    with duckdb.connect(project.directory / "octo.duckdb") as warehouse:
        warehouse.execute("update ops.closed_bookings set retail_amount = 0.01")
    project.ok("publish")

    altered = project("close")

    assert altered.returncode == 3
    assert f"what was closed was altered: {month}" in altered.stderr


@pytest.mark.parametrize(
    "words", [("ask", "23"), ("close", "2026-01"), ("reconcile", "ledger"), ("report", "--to", "r.html")]
)
def test_a_copy_whose_months_are_texts_is_of_an_older_version(project, words):
    with duckdb.connect(project.directory / "octo.read.duckdb") as copy:
        copy.execute("alter table marts.dim_date alter travel_month type varchar")
    pipeline = project.directory / "pipelines" / "shop.toml"
    ledger = '[reconcile.ledger]\nthere = { file = "l.csv" }\nkeys = ["booking_uuid=id"]\nfields = { status = "s" }\n'
    pipeline.write_text(f"{pipeline.read_text()}\n{ledger}")
    (project.directory / "l.csv").write_text("id,s\nx,CONFIRMED\n")

    done = project(*words)

    assert done.returncode == 1
    said = "octo.read.duckdb was published by an older octo-sync; make it anew: octo-sync publish."
    assert one_line(done.stderr) == f"octo-sync: error: {said}"
    assert project("sql", "select count(*) from fct_bookings").returncode == 0
