"""The demo's ledger: all that is planted in it is there, and what a comparison misses or adds is said and fails the demo."""

from datetime import timedelta
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from tests.flows.harness import TODAY, Service, small

from octo_sync.cli import acts, demo
from octo_sync.errors import OctoSyncError, WarehouseError
from octo_sync.flows.demo import ledger as demo_ledger
from octo_sync.flows.publish import Checked, Published
from octo_sync.model import Horizon
from octo_sync.reconciliation.model import Bucket

WINDOW = Horizon(-90, 365).window(TODAY)


@pytest.mark.deep(1, everyday=["20-4", "100-7"])
@pytest.mark.parametrize(("bookings", "seed"), [(20, 4), (100, 7), (150, 1), (2500, 7)])
def test_nine_differences_are_planted_however_few_bookings_there_are(bookings, seed):
    with Service(small(bookings=bookings, seed=seed, days=90)) as service:
        rows, planted = demo_ledger.plant(service.state(), WINDOW)

    assert len(planted) == 9
    assert len({each.uuid for each in planted}) == 9, "none hides another one"
    uuids = [row["octo_uuid"] for row in rows]
    by_bucket = {each.bucket: uuids.count(each.uuid) for each in planted}
    assert by_bucket == {"mismatched": 1, "missing_there": 0, "duplicate_there": 2, "missing_here": 1}
    strange = {each.uuid for each in planted if each.bucket == "missing_here"}
    for name in ("gross", "tickets"):
        real = {row[name] for row in rows if row["octo_uuid"] not in strange}
        assert all(row[name] not in real for row in rows if row["octo_uuid"] in strange), "no double of a real one"


def test_what_the_demo_changes_of_bookings_and_products_takes_and_gives_no_places():
    """Of places nobody would tell, and the copy would not be equal."""
    kinds = [kind for kind in acts._KINDS if kind not in ("closeout", "capacity")]
    with Service(small(bookings=300, days=30)) as service:

        def places():
            days = {"from": TODAY, "to": TODAY + timedelta(days=29)}
            return [service.slots(product_id=each["id"], **days) for each in service.state()["products"]]

        before = places()
        assert len(service.traffic(60, kinds=kinds)) == 60
        assert places() == before


def test_what_cannot_be_planted_is_an_error():
    with Service(small(bookings=20, days=90)) as service:
        state = service.state()
    sold = [booking | {"status": "CONFIRMED"} for booking in state["bookings"]]

    with pytest.raises(OctoSyncError, match=r"none is left to plant a difference \(status, cancelled_here\)"):
        demo_ledger.plant(state | {"bookings": sold}, WINDOW)


def test_what_was_missed_and_what_nobody_planted_are_told_apart():
    def item(uuid, bucket, *codes):
        differences = [SimpleNamespace(code=code) for code in codes]
        return SimpleNamespace(key=f"booking_uuid={uuid}", bucket=bucket, differences=differences)

    planted = [
        demo_ledger.Planted("amount", "u1", "mismatched", "minor_units"),
        demo_ledger.Planted("amount", "u2", "mismatched", "commission_left_out"),
        demo_ledger.Planted("missing there", "u3", "missing_there", "unknown_there"),
    ]
    right = [item("u1", Bucket.MISMATCHED, "minor_units"), item("u3", Bucket.MISSING_THERE, "unknown_there")]
    equal = item("u4", Bucket.MATCHED_WITHIN_TOLERANCE, "within_tolerance")
    found = item("u2", Bucket.MISMATCHED, "commission_left_out")

    assert demo_ledger.found(SimpleNamespace(items=[*right, found, equal]), planted) == ([], 0)
    assert demo_ledger.found(SimpleNamespace(items=[*right, equal]), planted) == ([planted[1]], 0)
    wrong_reason = item("u2", Bucket.MISMATCHED, "other_amount")
    assert demo_ledger.found(SimpleNamespace(items=[*right, wrong_reason]), planted) == ([planted[1]], 1)
    twice = item("u1", Bucket.MISMATCHED, "minor_units", "moved_day")
    assert demo_ledger.found(SimpleNamespace(items=[*right, found, twice]), planted) == ([], 1)


@pytest.mark.deep(6)
def test_a_demo_whose_report_would_be_of_the_former_copy_fails(tmp_path, monkeypatch):
    publish, copies = acts.mirror_and_publish, []
    failed = Checked(check=SimpleNamespace(name="capacity"), rows=None)
    stopped = Published(marts=16, checks=10, failed=(failed,), size=None)

    def stopped_the_second_time(ports):
        copies.append(publish(ports) if not copies else stopped)
        return copies[-1]

    monkeypatch.setattr(acts, "mirror_and_publish", stopped_the_second_time)
    words = ["--bookings", "60", "--products", "2", "--days", "5", "-C", str(tmp_path / "demo")]

    done = CliRunner().invoke(demo.command, words, standalone_mode=False)

    assert isinstance(done.exception, WarehouseError)
    assert str(done.exception).endswith("does not show the comparison, because checks failed: capacity.")
    assert not (tmp_path / "demo" / "report.html").exists()


@pytest.mark.deep(7)
def test_a_demo_whose_ledger_was_not_told_rightly_fails_and_says_which(tmp_path, monkeypatch):
    """The whole demo, of which one planted difference is concealed and one that is not there is claimed."""
    plant = demo_ledger.plant

    def untruly(state, window):
        rows, planted = plant(state, window)
        return rows, [*planted[1:], demo_ledger.Planted("status", "nobody", "mismatched", "cancelled_there")]

    monkeypatch.setattr(demo_ledger, "plant", untruly)
    words = ["--bookings", "60", "--products", "2", "--days", "5", "-C", str(tmp_path / "demo")]

    done = CliRunner().invoke(demo.command, words, standalone_mode=False)

    assert done.exception is None, done.output
    assert done.return_value == 1
    assert "planted and not found: status (cancelled_there) of nobody" in done.output
    assert "found and never planted: 1 differences" in done.output
    assert "equal to the service" in done.output
    assert "were found, and no other" not in done.output
