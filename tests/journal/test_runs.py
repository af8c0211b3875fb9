"""Runs and settings."""

import pytest
from tests.journal.helpers import NOON, HandClock

from octo_sync.errors import JournalError
from octo_sync.journal import Journal, Lease
from octo_sync.model import Source, Subject, SubjectKind


def test_run_is_kept_with_what_it_did(journal: Journal, clock: HandClock) -> None:
    journal.start_run("run", "sandbox", run_id="r1", fence=7, options={"full": True})
    ended = clock.forward(90)
    journal.end_run("r1", "partial", {"landed": 120, "failed": 1}, "1 subject failed.")
    run = journal.run("r1")
    assert run is not None
    assert (run.command, run.pipeline, run.fence, run.options) == ("run", "sandbox", 7, {"full": True})
    assert (run.status, run.started_at, run.ended_at) == ("partial", NOON, ended)
    assert (run.counts, run.error) == ({"landed": 120, "failed": 1}, "1 subject failed.")


def test_newest_runs_come_first(journal: Journal) -> None:
    for name in ("a", "b", "c"):
        journal.start_run("run", "sandbox", run_id=name, fence=1)
    assert [run.run_id for run in journal.runs(2)] == ["c", "b"]
    assert journal.run("never") is None


def test_run_left_open_is_closed_as_killed_by_the_next_owner_and_stays_so(
    journal: Journal, clock: HandClock, tmp_path
) -> None:
    journal.start_run("run", "sandbox", run_id="lost", fence=1)
    journal.start_run("run", "sandbox", run_id="done", fence=1)
    journal.end_run("done", "ok")
    with Lease.acquire(journal, tmp_path / "lock", owner="test", clock=clock):
        assert {run.run_id: run.status for run in journal.runs()} == {"lost": "killed", "done": "ok"}
    journal.end_run("lost", "ok")
    lost = journal.run("lost")
    assert lost is not None
    assert lost.status == "killed"


def test_run_ids_are_unique_and_unknown_ones_named(journal: Journal) -> None:
    journal.start_run("run", "sandbox", run_id="r", fence=1)
    with pytest.raises(JournalError):
        journal.start_run("run", "sandbox", run_id="r", fence=1)
    with pytest.raises(JournalError, match="nobody"):
        journal.end_run("nobody", "ok")


def test_a_run_gives_its_claims_back_though_its_end_cannot_be_written(journal: Journal, monkeypatch) -> None:
    subject = Subject("acme", SubjectKind.BOOKING, ("b",))
    journal.start_run("serve", "sandbox", run_id="a", fence=1)
    journal.mark([subject], Source.NOTIFICATION)
    assert len(journal.claim(1, run_id="a")) == 1

    def full() -> None:
        raise JournalError("No space is left.")

    with monkeypatch.context() as patched:
        patched.setattr(journal, "_writing", full)
        with pytest.raises(JournalError, match="No space"):
            journal.end_run("a", "ok")
    assert [claim.subject for claim in journal.claim(1, run_id="b")] == [subject]


def test_setting_is_kept_per_connection(journal: Journal, path, clock: HandClock) -> None:
    assert journal.setting("booking_date_means", connection="acme") is None
    journal.set_setting("booking_date_means", "travel", connection="acme")
    journal.set_setting("booking_date_means", "created", connection="other")
    journal.set_setting("booking_date_means", "created", connection="acme")
    journal.set_setting("booking_date_means", None, connection="other")
    journal.close()
    with Journal.open(path, clock=clock) as reopened:
        assert reopened.setting("booking_date_means", connection="acme") == "created"
        assert reopened.setting("booking_date_means", connection="other") is None
        assert reopened.setting("booking_date_means") is None
