"""What was found is aged from run to run, also over days on which it cannot be told."""

import datetime as dt
import json
from types import SimpleNamespace

import pytest
from tests.flows.reconcile_outcome import NOW, difference, here_row, item, outcome, there_row

from octo_sync.flows.reconcile.history import store
from octo_sync.flows.wording import NOTHING
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


def test_both_rows_are_kept_once_with_the_columns_that_differ(journal):
    two = [difference("retail_amount", "120", "96"), difference("net_amount", "96", "90")]
    rows = [here_row(1)], [there_row(1, "96")]
    kept(journal, 0, item("b-1", Bucket.MISMATCHED, two, *rows))
    first, second = (json.loads(d.both_rows) if d.both_rows else None for d in journal.reconciliations.differences())
    both = first or second
    assert (first is None) != (second is None)
    said = {label: (here, there, differs) for label, here, there, differs in both}
    assert said["retail_amount · gross"] == (["120.00 EUR"], ["96.00 EUR"], True)
    assert said["status · state"][2] is False
    assert all(len(here) == len(there) == 1 for here, there, _ in said.values())


def test_an_amount_is_in_the_currency_of_its_own_row(journal):
    differs = item(
        "b-1", Bucket.MISMATCHED, [difference("currency", "EUR", "JPY")], [here_row(1)], [there_row(1, "96", "JPY")]
    )
    kept(journal, 0, differs)
    (stored,) = journal.reconciliations.differences()
    said = {label: both for label, *both, _ in json.loads(stored.both_rows)}
    assert said["retail_amount · gross"] == [["120.00 EUR"], ["96 JPY"]]


def test_a_start_at_midnight_by_a_wall_clock_is_the_whole_day(journal):
    starts = (dt.datetime(2026, 11, 20), dt.datetime(2026, 11, 21))  # noqa: DTZ001 - a wall clock
    here = [here_row(n, local_start_at=at) for n, at in enumerate(starts)]
    kept(journal, 0, item("b-1", Bucket.DUPLICATE_HERE, [difference()], here, [there_row(1)]))
    (stored,) = journal.reconciliations.differences()
    said = {label: ours for label, ours, *_ in json.loads(stored.both_rows)}
    assert said["local_start_at"] == ["2026-11-20", "2026-11-21"]


def test_a_side_without_a_row_is_kept_as_nothing(journal):
    kept(journal, 0, item("b-1", Bucket.MISSING_HERE, [difference("", None, "96")], [], [there_row(1, "96")]))
    (stored,) = journal.reconciliations.differences()
    assert {tuple(here) for _, here, _, _ in json.loads(stored.both_rows)} == {(NOTHING,)}
