"""What was found is aged from run to run, also over days on which it cannot be told."""

import datetime as dt
from types import SimpleNamespace

import pytest
from tests.flows.reconcile_outcome import NOW, difference, here_row, item, outcome, there_row

from octo_sync.flows.reconcile.history import store
from octo_sync.journal import Journal
from octo_sync.reconciliation.model import Bucket

DAY = dt.timedelta(days=1)


@pytest.fixture
def journal(tmp_path):
    with Journal.open(tmp_path / "journal.sqlite", clock=SimpleNamespace(now=lambda: NOW)) as journal:
        yield journal


def kept(journal, day, *found):
    now = NOW + day * DAY
    return store(journal, outcome(found), run_id=f"run-{day}", started_at=now, now=now)


def priced(bucket, field="retail_amount"):
    found = Bucket.MISMATCHED
    return item("b-1", bucket, [difference(field, "120", "96")], [here_row(1)], [there_row(1, "96")], found=found)


def test_what_is_too_fresh_to_tell_keeps_its_age(journal):
    kept(journal, 0, priced(Bucket.MISMATCHED))
    fresh = kept(journal, 1, priced(Bucket.TOO_FRESH))
    again = kept(journal, 2, priced(Bucket.MISMATCHED))

    assert (fresh.resolved, again.resolved) == (0, 0)
    [stored] = journal.reconciliations.differences()
    assert (stored.first_seen_at, stored.last_seen_at, stored.resolved_at) == (NOW, NOW + 2 * DAY, None)
    [[told]] = [each.differences for each in again.items]
    assert (told.first_seen_at, told.is_new) == (NOW, False)


def test_what_is_too_fresh_is_not_kept_before_it_can_be_told(journal):
    kept(journal, 0, priced(Bucket.TOO_FRESH))
    assert journal.reconciliations.differences() == []
    kept(journal, 1, priced(Bucket.MISMATCHED))
    other = kept(journal, 2, priced(Bucket.TOO_FRESH, field="net_amount"))
    assert other.resolved == 1, "another field, which is not the same difference"
