"""What the journal knows of comparisons is in `ops` and `marts.recon_open` after a publish, and costs nothing when it was."""

import dataclasses
import datetime as dt
import json
from decimal import Decimal
from types import SimpleNamespace

import duckdb
import pytest

from octo_sync.destinations.duckdb.warehouse import DuckDBWarehouse
from octo_sync.destinations.postgres.warehouse import PostgresWarehouse
from octo_sync.flows.privacy.erase import erase
from octo_sync.flows.reconcile import tables as reconcile_mirror
from octo_sync.flows.reconcile.tables import mirror_reconciliations
from octo_sync.flows.sync.compaction import retain
from octo_sync.flows.sync.pull import Scope
from octo_sync.flows.sync.run import sync
from octo_sync.journal import FoundDifference, Journal, ReconciliationRun
from octo_sync.model import Window
from octo_sync.pipeline.settings import RetentionSettings
from octo_sync.reconciliation.model import Bucket
from octo_sync.tables import all_tables, by_name, nouns

NOON = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC)
DAY = dt.timedelta(days=1)
WINDOW = Window(dt.date(2026, 11, 1), dt.date(2026, 11, 30))
GROSS = FoundDifference(
    key="b-1",
    bucket="mismatched",
    field="gross",
    rule="booking_uuid",
    connection="main",
    booking_uuid="u-1",
    here_value="80.00",
    there_value="90.00",
    delta_amount=Decimal("10.00"),
    currency="EUR",
    reason="The price changed after booking.",
    code="price_changed",
    day=dt.date(2026, 11, 4),
    both_rows='[["gross", ["80.00"], ["90.00"], true]]',
)
LINE = FoundDifference(key="L-17", bucket="missing_here", reason="Nobody knows it here.")


def moved(found, **changes):
    return found.model_copy(update=changes)


def store(journal, *found, day=0, verdict="over", **changes):
    said = {
        "name": "ledger",
        "run_id": f"run-{day}",
        "started_at": NOON + day * DAY - dt.timedelta(seconds=5),
        "ended_at": NOON + day * DAY,
        "window_start": WINDOW.start,
        "window_end": WINDOW.end,
        "verdict": verdict,
        "here_origin": "the copy",
        "there_origin": "ledger.csv",
        "counts": {"matched": 7, "mismatched": 1},
        "totals": [{"side": "here", "currency": "EUR", "rows": 9, "amounts": {"gross": "80.00"}}],
    }
    journal.reconciliations.store(ReconciliationRun(**{**said, **changes}), found)


class Clock:
    at = NOON

    def now(self):
        return self.at


@pytest.fixture(params=["duckdb", "postgres"])
def warehouse(request, tmp_path):
    about = {"tables": all_tables(), "nouns": nouns(), "now": NOON}
    if request.param == "duckdb":
        opened = DuckDBWarehouse(tmp_path / "octo.duckdb", tmp_path / "octo.private.duckdb", **about)
    else:
        opened = PostgresWarehouse(request.getfixturevalue("postgres_database"), spool=tmp_path / "spool", **about)
    yield opened
    opened.close()


@pytest.fixture
def ports(tmp_path, warehouse):
    """What the mirror needs of a project; `written` are the tables it wrote."""
    written = []
    write = warehouse.write_log

    def write_log(table, rows, **how):
        written.append(table)
        write(table, rows, **how)

    warehouse.write_log = write_log
    pipeline = SimpleNamespace(retention=RetentionSettings(), webhooks=SimpleNamespace(keep=30 * 86400.0))
    with Journal.open(tmp_path / "journal.sqlite", clock=Clock()) as journal:
        yield SimpleNamespace(
            journal=journal, warehouse=warehouse, pipeline=pipeline, run_id="run", written=written, clock=Clock()
        )


def shown(warehouse, table):
    """The rows of a table as dictionaries, in order of their keys."""
    rows = warehouse.query(f"select * from ops.{table} order by {', '.join(by_name(f'ops.{table}').key)}")
    return [dict(zip(rows.columns, row, strict=True)) for row in rows.rows]


def test_every_column_is_what_the_journal_knows(ports):
    store(ports.journal, GROSS, LINE)
    store(ports.journal, GROSS, day=1)
    store(ports.journal, day=2, verdict="failed")
    ports.journal.reconciliations.accept(
        "ledger", "b-1", note="Agreed.", by="ana", until=dt.date(2026, 12, 1), now=NOON + DAY
    )
    assert mirror_reconciliations(ports)
    line, gross = shown(ports.warehouse, "recon_results")
    assert gross == {
        "recon_name": "ledger", "recon_key": "b-1", "bucket": "mismatched", "field": "gross",
        "match_rule": "booking_uuid", "connection_id": "main", "booking_uuid": "u-1", "here_value": "80.00",
        "there_value": "90.00", "delta_amount": Decimal("10.0000"), "currency": "EUR",
        "reason": "The price changed after booking.", "code": "price_changed", "day": dt.date(2026, 11, 4),
            "both_rows": GROSS.both_rows,
        "first_seen_at_utc": NOON, "last_seen_at_utc": NOON + DAY, "resolved_at_utc": None,
        "accepted_note": "Agreed.", "accepted_by": "ana", "accepted_until": dt.date(2026, 12, 1),
    }  # fmt: skip
    unknown = ("match_rule", "connection_id", "booking_uuid", "here_value", "delta_amount", "day", "accepted_note")
    assert [line[name] for name in unknown] == [None] * len(unknown)
    assert (line["field"], line["code"], line["resolved_at_utc"]) == ("", "", NOON + DAY)
    _, second, failed = shown(ports.warehouse, "recon_runs")
    counts = {bucket.value: 0 for bucket in Bucket} | {"matched": 7, "mismatched": 1}
    assert second == {
        "recon_name": "ledger", "run_id": "run-1", "verdict": "over", "started_at_utc": NOON + DAY - dt.timedelta(seconds=5),
        "ended_at_utc": NOON + DAY, "window_start": WINDOW.start, "window_end": WINDOW.end, "here_origin": "the copy",
        "there_origin": "ledger.csv", "differences": 1, "new_differences": 0, "resolved_differences": 1,
        "open_differences": 1, **counts, "control_totals": second["control_totals"],
        "revision": ports.journal.reconciliations.revision(),
    }  # fmt: skip
    assert json.loads(second["control_totals"])[0]["amounts"] == {"gross": "80.00"}
    assert (failed["verdict"], failed["matched"], failed["open_differences"]) == ("failed", None, 1)


@pytest.mark.deep(0.3, everyday=1)
def test_a_copy_that_is_current_is_not_written_again_and_every_change_is(ports):
    assert not mirror_reconciliations(ports), "where nobody ever compared"
    journal = ports.journal
    for change in (
        lambda: store(journal, GROSS, LINE),
        lambda: journal.reconciliations.accept("ledger", "b-1", note="why", by="ana", until=None, now=NOON),
        lambda: journal.reconciliations.accept("ledger", "b-1", note="why not", by="ana", until=None, now=NOON),
        lambda: journal.reconciliations.unaccept("ledger", "b-1"),
        lambda: journal.reconciliations.blank(["u-1"], lambda text: "nobody" in text),
        lambda: store(journal, day=1, verdict="failed"),
        lambda: store(journal, LINE, day=2),
        lambda: journal.reconciliations.prune(NOON + 9 * DAY),
    ):
        change()
        ports.written.clear()
        assert mirror_reconciliations(ports)
        assert ports.written == ["ops.recon_results", "ops.recon_runs"]
        assert not mirror_reconciliations(ports)
        assert ports.written == ["ops.recon_results", "ops.recon_runs"]
        notes = [one.accepted_note for one in journal.reconciliations.differences()]
        assert [row["accepted_note"] for row in shown(ports.warehouse, "recon_results")] == notes
        assert [row["here_value"] for row in shown(ports.warehouse, "recon_results")] == [
            one.here_value for one in journal.reconciliations.differences()
        ]


@pytest.mark.deep(0.3, everyday=1)
def test_a_warehouse_made_anew_is_given_them_back(ports):
    store(ports.journal, GROSS, LINE)
    mirror_reconciliations(ports)
    before = shown(ports.warehouse, "recon_results"), shown(ports.warehouse, "recon_runs")
    for lost in (["recon_runs"], ["recon_results"], ["recon_results", "recon_runs"]):
        ports.warehouse.run_script([f"delete from ops.{table}" for table in lost])
        assert mirror_reconciliations(ports)
        assert (shown(ports.warehouse, "recon_results"), shown(ports.warehouse, "recon_runs")) == before


@pytest.mark.deep(0.3, everyday=1)
def test_a_kill_between_the_two_tables_leaves_a_copy_that_says_it_is_old(ports, monkeypatch):
    store(ports.journal, GROSS, LINE)
    mirror_reconciliations(ports)
    store(ports.journal, GROSS, moved(LINE, key="L-18"), day=1)
    store(ports.journal, GROSS, LINE, day=2)

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(reconcile_mirror, "_run", killed)
        with pytest.raises(KeyboardInterrupt):
            mirror_reconciliations(ports)
    assert mirror_reconciliations(ports)
    assert [row["run_id"] for row in shown(ports.warehouse, "recon_runs")] == ["run-0", "run-1", "run-2"]


@pytest.mark.deep(0.3, everyday=1)
def test_an_amount_that_no_column_can_hold_does_not_stop_a_publish(ports):
    amounts = {
        "0.00005": Decimal("0.0000"),
        "0.00015": Decimal("0.0002"),
        "-99999999999999.9999": Decimal("-99999999999999.9999"),
        "99999999999999.99995": None,
        "1E+14": None,
        "1E+400": None,
        "NaN": None,
        "-Infinity": None,
    }
    store(ports.journal, LINE, *(moved(GROSS, key=delta, delta_amount=Decimal(delta)) for delta in amounts))
    assert mirror_reconciliations(ports)
    assert {row["recon_key"]: row["delta_amount"] for row in shown(ports.warehouse, "recon_results")} == {
        **amounts,
        "L-17": None,
    }
    assert {str(one.delta_amount) for one in ports.journal.reconciliations.open_differences("ledger")} == {
        *amounts,
        "None",
    }


@pytest.mark.deep(0.3, everyday=1)
def test_what_was_settled_long_ago_goes_with_the_runs(ports):
    store(ports.journal, GROSS, LINE)
    store(ports.journal, LINE, day=1)
    store(ports.journal, LINE, day=600)
    ports.pipeline.retention = dataclasses.replace(RetentionSettings(), runs=0.0)
    retain(ports, NOON + 2000 * DAY)
    assert ports.journal.reconciliations.count() == 2, "0 keeps all"
    ports.pipeline.retention = RetentionSettings()
    retain(ports, NOON + 600 * DAY)
    mirror_reconciliations(ports)
    assert [row["recon_key"] for row in shown(ports.warehouse, "recon_results")] == ["L-17"]
    assert [row["run_id"] for row in shown(ports.warehouse, "recon_runs")] == ["run-600"]


# -- the whole road --------------------------------------------------------------------------------------------------


@pytest.mark.deep(2)
async def test_a_sync_publishes_what_is_open(project):
    copy = project(publish=True, availability=(0, 1), bookings=(0, 1))
    async with copy.opened() as opened:
        store(opened.journal, GROSS, LINE)
        opened.journal.reconciliations.accept("ledger", "b-1", note="Agreed.", by="ana", until=None, now=NOON)
        await sync(opened.ports, Scope(full=True), command="test")
    with duckdb.connect(copy.directory / "octo.read.duckdb", read_only=True) as read:
        assert read.execute("select recon_key, is_new, age_class from marts.recon_open").fetchall() == [
            ("L-17", True, "0-1")
        ]
        assert read.execute("select recon_key from ops.recon_results order by 1").fetchall() == [("L-17",), ("b-1",)]


@pytest.mark.deep(4)
async def test_the_values_of_an_erased_booking_leave_the_journal_the_warehouse_and_the_read_copy(project, service):
    copy = project(publish=True, availability=(0, 1))
    hers = next(b["uuid"] for b in service.state()["bookings"] if b["status"] == "CONFIRMED")
    needles = ["Quuxowitz wants 7A", "Quuxowitz wants 7B"]
    async with copy.opened() as opened:
        ours = moved(GROSS, booking_uuid=hers, here_value=needles[0], there_value=needles[1])
        store(opened.journal, ours, LINE)
        await sync(opened.ports, Scope(full=True), command="test")
    assert {name for name, text in holding(copy.directory, needles)} >= {"octo.duckdb", "octo.read.duckdb"}
    async with copy.opened() as opened:
        opened.journal.erasures.request([], [hers])
        (done,) = erase(opened.ports)
        assert done.counts["journal: differences"] == 1
        assert [row["here_value"] for row in shown(opened.ports.warehouse, "recon_results")] == [None, None]
    assert done.left == ()
    assert holding(copy.directory, needles) == set()
    async with copy.opened() as opened:
        store(opened.journal, ours, LINE, day=1)
        await sync(opened.ports, Scope(full=True), command="test")
    assert holding(copy.directory, needles) == set(), "the next comparison brings them back"


def holding(directory, needles):
    """Names of a project's files, each with a text that is in its bytes."""
    return {
        (file.name, needle)
        for file in directory.rglob("*")
        if file.is_file()
        for needle in needles
        if needle.encode() in file.read_bytes()
    }
