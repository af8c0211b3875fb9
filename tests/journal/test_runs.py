"""Runs and settings."""

import pytest
from tests.journal.helpers import NOON, HandClock

from octo_sync.errors import JournalError
from octo_sync.journal import Journal
from octo_sync.model import Source, Subject, SubjectKind


def test_run_is_kept_with_what_it_did(journal: Journal, clock: HandClock) -> None:
    journal.runs.start("run", "sandbox", run_id="r1", fence=7, options={"full": True})
    ended = clock.forward(90)
    journal.runs.end("r1", "partial", {"landed": 120, "failed": 1}, "1 subject failed.")
    run = journal.runs.find("r1")
    assert run is not None
    assert (run.command, run.pipeline, run.fence, run.options) == ("run", "sandbox", 7, {"full": True})
    assert (run.status, run.started_at, run.ended_at) == ("partial", NOON, ended)
    assert (run.counts, run.error) == ({"landed": 120, "failed": 1}, "1 subject failed.")


def test_newest_runs_come_first(journal: Journal) -> None:
    for name in ("a", "b", "c"):
        journal.runs.start("run", "sandbox", run_id=name, fence=1)
    assert [run.run_id for run in journal.runs.last(2)] == ["c", "b"]
    assert journal.runs.find("never") is None
    journal.runs.start("other", "sandbox", run_id="d", fence=1)
    journal.runs.start("run", "sandbox", run_id="e", fence=1)
    assert [run.run_id for run in journal.runs.last_of_each()] == ["e", "d"]


def test_run_left_open_is_closed_as_killed_by_the_next_owner_and_stays_so(
    journal: Journal, clock: HandClock, tmp_path
) -> None:
    journal.runs.start("run", "sandbox", run_id="lost", fence=1)
    journal.runs.start("run", "sandbox", run_id="done", fence=1)
    journal.runs.end("done", "ok")
    with journal.leases.acquire(tmp_path / "lock", owner="test"):
        assert {run.run_id: run.status for run in journal.runs.last()} == {"lost": "killed", "done": "ok"}
    journal.runs.end("lost", "ok")
    lost = journal.runs.find("lost")
    assert lost is not None
    assert lost.status == "killed"


def test_run_ids_are_unique_and_unknown_ones_named(journal: Journal) -> None:
    journal.runs.start("run", "sandbox", run_id="r", fence=1)
    with pytest.raises(JournalError):
        journal.runs.start("run", "sandbox", run_id="r", fence=1)
    with pytest.raises(JournalError, match="nobody"):
        journal.runs.end("nobody", "ok")


def test_a_run_gives_its_claims_back_though_its_end_cannot_be_written(journal: Journal, monkeypatch) -> None:
    subject = Subject("acme", SubjectKind.BOOKING, ("b",))
    journal.runs.start("serve", "sandbox", run_id="a", fence=1)
    journal.subjects.mark([subject], Source.NOTIFICATION)
    assert len(journal.subjects.claim(1, run_id="a")) == 1

    def full() -> None:
        raise JournalError("No space is left.")

    with monkeypatch.context() as patched:
        patched.setattr(journal, "writing", full)
        with pytest.raises(JournalError, match="No space"):
            journal.runs.end("a", "ok")
    assert [claim.subject for claim in journal.subjects.claim(1, run_id="b")] == [subject]


def test_setting_is_kept_per_connection(journal: Journal, path, clock: HandClock) -> None:
    assert journal.settings.get("booking_date_means", connection="acme") is None
    journal.settings.set("booking_date_means", "travel", connection="acme")
    journal.settings.set("booking_date_means", "created", connection="other")
    journal.settings.set("booking_date_means", "created", connection="acme")
    journal.settings.set("booking_date_means", None, connection="other")
    journal.close()
    with Journal.open(path, clock=clock) as reopened:
        assert reopened.settings.get("booking_date_means", connection="acme") == "created"
        assert reopened.settings.get("booking_date_means", connection="other") is None
        assert reopened.settings.get("booking_date_means") is None
