"""A difference keeps its age from run to run, is settled only by somebody who looked, and accepted ones stay what they are."""

import dataclasses
import datetime as dt
import json
from decimal import Decimal

import pytest
from tests.journal.helpers import NOON, HandClock

from octo_sync.errors import JournalError
from octo_sync.journal import FoundDifference, Journal, ReconciliationRun, reconciliations
from octo_sync.model import Window

DAY = dt.timedelta(days=1)
JULY = Window(dt.date(2026, 7, 1), dt.date(2026, 7, 31))
GROSS = FoundDifference(
    key="b-1",
    bucket="mismatched",
    field="gross",
    rule="booking_uuid",
    connection="acme",
    booking_uuid="u-1",
    here_value="80.00",
    there_value="90.00",
    delta_amount=Decimal("10.0000"),
    currency="EUR",
    reason="The price changed after booking.",
    code="price_changed",
    day=dt.date(2026, 7, 4),
    both_rows='[["gross", ["80.00"], ["90.00"], true]]',
)
LINE = FoundDifference(key="L-17", bucket="missing_here", reason="Nobody knows it here.")
OF_GROSS, OF_LINE = ("b-1", "mismatched", "gross"), ("L-17", "missing_here", "")


def moved(found: FoundDifference, **changes: object) -> FoundDifference:
    return found.model_copy(update=changes)


def store(journal: Journal, *found: FoundDifference, day: int = 0, window: Window = JULY, seen=(), **changes):
    """A run on a day after the first; since when each that it found is known, if it is open."""
    now = NOON + day * DAY
    said = {
        "name": "ledger",
        "run_id": f"run-{day}",
        "started_at": now - dt.timedelta(seconds=5),
        "ended_at": now,
        "window_start": window.start,
        "window_end": window.end,
        "here_origin": "the copy",
        "there_origin": "ledger.csv",
        "counts": {"matched": 7},
        "totals": [{"side": "here", "currency": "EUR", "rows": 9, "amounts": {"gross": "80.00"}}],
        "verdict": "over" if found else "ok",
    }
    run = ReconciliationRun(**{**said, **changes})
    journal.reconciliations.store(run, found, seen)
    since = {(d.key, d.bucket, d.field): d.first_seen_at for d in journal.reconciliations.open_differences(run.name)}
    told = {(one.key.replace("\0", "\N{REPLACEMENT CHARACTER}"), one.bucket, one.field): one.key for one in found}
    return {(key, *identity[1:]): since[identity] for identity, key in told.items() if identity in since}


def open_keys(journal: Journal, name: str | None = "ledger") -> list[str]:
    return [one.key for one in journal.reconciliations.open_differences(name)]


def nobodys(text: str) -> bool:
    del text
    return False


def last_run(journal: Journal):
    (run,) = journal.reconciliations.runs("ledger", 1)
    return run


# -- ageing ----------------------------------------------------------------------------------------------------------


def test_a_run_and_its_differences_come_back_as_they_were_stored(journal: Journal, path, clock: HandClock) -> None:
    assert store(journal, GROSS, LINE) == {OF_GROSS: NOON, OF_LINE: NOON}
    journal.close()
    with Journal.open(path, clock=clock) as reopened:
        line, gross = reopened.reconciliations.open_differences("ledger")
        for stored, found in ((gross, GROSS), (line, LINE)):
            assert stored.model_dump(include=set(FoundDifference.model_fields)) == found.model_dump()
            assert (stored.name, stored.first_seen_at, stored.last_seen_at) == ("ledger", NOON, NOON)
            assert (stored.resolved_at, stored.accepted_note, stored.accepted_by) == (None, None, None)
        assert str(gross.delta_amount) == "10.0000"
        run = last_run(reopened)
    assert (run.name, run.run_id, run.started_at, run.ended_at) == (
        "ledger", "run-0", NOON - dt.timedelta(seconds=5), NOON,
    )  # fmt: skip
    assert (run.window, run.here_origin, run.there_origin, run.verdict) == (JULY, "the copy", "ledger.csv", "over")
    assert (run.counts, run.totals[0]["amounts"]) == ({"matched": 7}, {"gross": "80.00"})
    assert (run.differences, run.new_differences, run.resolved_differences, run.open_differences) == (2, 2, 0, 2)


def test_a_difference_found_again_keeps_its_age_and_gets_the_new_values(journal: Journal) -> None:
    store(journal, GROSS)
    newer = moved(
        GROSS, here_value="85.00", delta_amount=Decimal("5.0"), reason="Other.", code="", rule="supplier_reference"
    )
    assert store(journal, newer, LINE, day=1) == {OF_GROSS: NOON, OF_LINE: NOON + DAY}
    _, gross = journal.reconciliations.open_differences("ledger")
    assert (gross.first_seen_at, gross.last_seen_at) == (NOON, NOON + DAY)
    assert (gross.here_value, gross.there_value, gross.delta_amount) == ("85.00", "90.00", Decimal("5.0"))
    assert (gross.reason, gross.code, gross.rule) == ("Other.", "", "supplier_reference")
    run = last_run(journal)
    assert (run.differences, run.new_differences, run.resolved_differences, run.open_differences) == (2, 1, 0, 2)


def test_another_bucket_or_field_is_another_difference(journal: Journal) -> None:
    store(journal, GROSS)
    others = [moved(GROSS, field="net"), moved(GROSS, bucket="ambiguous")]
    first_seen = store(journal, GROSS, *others, day=1)
    assert sorted(first_seen.values()) == [NOON, NOON + DAY, NOON + DAY]


def test_what_is_not_found_any_more_is_resolved_and_found_after_that_it_is_new(journal: Journal) -> None:
    store(journal, GROSS, LINE)
    store(journal, LINE, day=1)
    assert open_keys(journal) == ["L-17"]
    gross = journal.reconciliations.differences()[-1]
    assert (gross.key, gross.last_seen_at, gross.resolved_at) == ("b-1", NOON, NOON + DAY)
    run = last_run(journal)
    assert (run.differences, run.new_differences, run.resolved_differences, run.open_differences) == (1, 0, 1, 1)
    store(journal, LINE, day=2)
    assert journal.reconciliations.differences()[-1].resolved_at == NOON + DAY
    assert store(journal, GROSS, LINE, day=3) == {OF_GROSS: NOON + 3 * DAY, OF_LINE: NOON}
    assert journal.reconciliations.open_differences("ledger")[-1].resolved_at is None
    assert last_run(journal).new_differences == 1


@pytest.mark.parametrize(
    ("day", "is_looked_at"),
    [
        (None, False),
        (JULY.start - DAY, False),
        (JULY.start, True),
        (JULY.end, True),
        (JULY.end + DAY, False),
    ],
)
def test_only_what_a_run_looked_at_can_be_resolved_by_it(journal: Journal, day: dt.date | None, is_looked_at) -> None:
    store(journal, moved(GROSS, day=day), window=Window(JULY.start - 9 * DAY, JULY.end + 9 * DAY))
    before = journal.reconciliations.differences()
    store(journal, day=1)
    assert (open_keys(journal) == []) is is_looked_at
    if not is_looked_at:
        assert journal.reconciliations.differences() == before
        run = last_run(journal)
        assert (run.differences, run.resolved_differences, run.open_differences) == (0, 0, 1)


@pytest.mark.parametrize(
    ("window", "is_resolved"),
    [
        (JULY, True),
        (Window(JULY.start + DAY, JULY.end + DAY), True),
        (Window(JULY.start - DAY, JULY.end), True),
        (Window(JULY.start, JULY.end - DAY), False),
        (Window(JULY.end + DAY, JULY.end + 99 * DAY), False),
    ],
)
def test_what_has_no_day_is_resolved_by_a_run_that_looks_at_as_much(journal: Journal, window, is_resolved) -> None:
    """A nightly window moves on; a look at some other month says nothing of it."""
    store(journal, LINE)
    store(journal, LINE, name="crm", run_id="crm", window=Window(JULY.start, JULY.end + 999 * DAY))
    store(journal, day=1, window=window)
    assert (open_keys(journal) == []) is is_resolved
    store(journal, day=2)
    assert open_keys(journal) == [], "not for good"


def test_what_is_seen_and_cannot_be_told_stays_as_it_was_and_nothing_opens(journal: Journal) -> None:
    store(journal, GROSS, LINE)
    store(journal, LINE, day=1, seen=[OF_GROSS, ("b-2", "mismatched", "gross")])
    line, gross = journal.reconciliations.open_differences("ledger")
    assert (gross.first_seen_at, gross.last_seen_at, gross.here_value) == (NOON, NOON + DAY, "80.00")
    assert (line.key, last_run(journal).resolved_differences, last_run(journal).differences) == ("L-17", 0, 1)
    store(journal, day=2, seen=[OF_LINE])
    assert open_keys(journal) == ["L-17"]
    store(journal, LINE, day=3, seen=[OF_GROSS])
    assert open_keys(journal) == ["L-17"], "what was resolved is not opened by it"


def test_a_run_stored_twice_changes_nothing_twice(journal: Journal) -> None:
    store(journal, GROSS, LINE)
    store(journal, GROSS, day=1)
    before = (
        journal.reconciliations.differences(),
        journal.reconciliations.runs(None, 9),
        journal.reconciliations.revision(),
    )
    again = NOON + 2 * DAY
    said = {"run_id": "run-1", "verdict": "ok"}
    assert store(journal, GROSS, day=2, **said) == {OF_GROSS: NOON}
    assert store(journal, LINE, day=3, run_id="run-0") == {}, "another run has resolved it since"
    assert (
        journal.reconciliations.differences(),
        journal.reconciliations.runs(None, 9),
        journal.reconciliations.revision(),
    ) == before
    assert store(journal, LINE, day=2, name="crm", run_id="run-1") == {OF_LINE: again}, (
        "one run may compare with several"
    )


def test_two_runs_in_one_instant_are_two_runs(journal: Journal) -> None:
    store(journal, GROSS, LINE)
    store(journal, LINE, run_id="another")
    assert open_keys(journal) == ["L-17"]
    assert last_run(journal).new_differences == 0


def test_a_run_that_could_not_compare_leaves_differences_as_they_are(journal: Journal) -> None:
    store(journal, GROSS, LINE)
    before = journal.reconciliations.differences()
    assert store(journal, day=1, verdict="failed") == {}
    assert journal.reconciliations.differences() == before
    run = last_run(journal)
    assert (run.verdict, run.differences, run.resolved_differences, run.open_differences) == ("failed", 0, 0, 2)
    with pytest.raises(ValueError, match="failed"):
        store(journal, GROSS, day=2, verdict="failed")


def test_reconciliations_do_not_touch_each_other(journal: Journal) -> None:
    store(journal, GROSS)
    store(journal, GROSS, name="crm", run_id="crm-1", day=1)
    store(journal, name="crm", run_id="crm-2", day=2)
    assert open_keys(journal) == ["b-1"]
    assert open_keys(journal, "crm") == []
    assert [one.name for one in journal.reconciliations.open_differences(None)] == ["ledger"]
    assert [run.run_id for run in journal.reconciliations.runs(None, 2)] == ["crm-2", "crm-1"]


def test_more_than_anybody_can_work_through_is_refused_whole(journal: Journal, monkeypatch) -> None:
    monkeypatch.setattr(reconciliations, "MOST_DIFFERENCES", 2)
    store(journal, GROSS, LINE)
    before = (
        journal.reconciliations.differences(),
        journal.reconciliations.runs(None, 9),
        journal.reconciliations.revision(),
    )
    with pytest.raises(JournalError, match=r"ledger has more than 2 differences: is it the right ledger\? Nothing was"):
        store(journal, GROSS, LINE, moved(LINE, key="L-18"), day=1)
    later = Window(JULY.end + DAY, JULY.end + 2 * DAY)  # so the first two stay open
    with pytest.raises(JournalError, match="more than 2"):
        store(journal, moved(GROSS, key="b-2"), moved(GROSS, key="b-3"), day=1, window=later)
    assert (
        journal.reconciliations.differences(),
        journal.reconciliations.runs(None, 9),
        journal.reconciliations.revision(),
    ) == before
    store(journal, LINE, moved(LINE, key="L-18"), day=1)  # as many as allowed; the other is resolved
    assert open_keys(journal) == ["L-17", "L-18"]


def test_what_a_ledger_can_hold_is_stored_or_refused_in_a_sentence(journal: Journal) -> None:
    odd = moved(GROSS, key="a\0b\"'\\é", here_value="x" * 5000, there_value="null", delta_amount=Decimal("-0.00100"))
    assert store(journal, odd) == {(odd.key, "mismatched", "gross"): NOON}
    assert store(journal, odd, day=1) == {(odd.key, "mismatched", "gross"): NOON}
    (stored,) = journal.reconciliations.open_differences(None)
    assert stored.key == "a\N{REPLACEMENT CHARACTER}b\"'\\é"
    assert stored.here_value == "x" * 999 + "…"
    assert (stored.there_value, str(stored.delta_amount)) == ("null", "-0.00100")
    with pytest.raises(JournalError, match="a key of 501 characters"):
        store(journal, moved(GROSS, key="k" * 501), day=2)
    store(journal, moved(GROSS, key="é" * 500), day=2)
    with pytest.raises(ValueError, match="twice"):
        store(journal, GROSS, moved(GROSS, here_value="81.00"), day=3)


# -- acceptance ------------------------------------------------------------------------------------------------------


def accept(journal: Journal, key: str = "b-1", **changes) -> int:
    said = {"note": "Agreed with the agency.", "by": "ana", "until": dt.date(2026, 8, 1), "now": NOON}
    return journal.reconciliations.accept("ledger", key, **{**said, **changes})


def test_an_accepted_difference_is_the_same_one_with_a_note(journal: Journal) -> None:
    store(journal, GROSS, moved(GROSS, field="net"), LINE)
    store(journal, GROSS, name="crm")
    assert accept(journal) == 2
    assert [one.model_dump(exclude={"id"}) for one in journal.reconciliations.acceptances("ledger")] == [
        {
            "name": "ledger",
            "key": "b-1",
            "note": "Agreed with the agency.",
            "accepted_by": "ana",
            "accepted_at": NOON,
            "until": dt.date(2026, 8, 1),
        }
    ]
    assert journal.reconciliations.acceptances("crm") == []
    assert store(journal, GROSS, LINE, moved(GROSS, field="tax"), day=1)[OF_GROSS] == NOON
    notes = {
        (d.key, d.field): (d.accepted_note, d.accepted_by, d.accepted_until)
        for d in journal.reconciliations.open_differences("ledger")
    }
    theirs = ("Agreed with the agency.", "ana", dt.date(2026, 8, 1))
    assert notes == {("b-1", "gross"): theirs, ("b-1", "tax"): theirs, ("L-17", ""): (None, None, None)}
    assert [one.accepted_note for one in journal.reconciliations.open_differences("crm")] == [None]


def test_an_acceptance_is_replaced_and_taken_back(journal: Journal) -> None:
    store(journal, GROSS)
    store(journal, GROSS, name="crm")
    journal.reconciliations.accept("crm", "b-1", note="Another ledger.", by="ana", until=None, now=NOON)
    accept(journal)
    assert accept(journal, note=" For good. ", by="rui", until=None, now=NOON + DAY) == 1
    (row,) = journal.reconciliations.acceptances("ledger")
    assert (row.note, row.accepted_by, row.accepted_at, row.until) == ("For good.", "rui", NOON + DAY, None)
    journal.reconciliations.unaccept("ledger", "b-1")
    assert journal.reconciliations.acceptances("ledger") == []
    assert journal.reconciliations.open_differences("ledger")[0].accepted_note is None
    assert [row.note for row in journal.reconciliations.acceptances("crm")] == ["Another ledger."]
    with pytest.raises(JournalError, match="Nothing of ledger was accepted under the key b-1"):
        journal.reconciliations.unaccept("ledger", "b-1")


def test_a_key_that_is_not_open_is_refused_with_the_nearest(journal: Journal) -> None:
    keys = ["b9a8", "b9c8", "x1y2", "zzzz", "L-17"]
    store(journal, *(moved(LINE, key=key) for key in keys))
    store(journal, *(moved(LINE, key=key) for key in keys if key != "zzzz"), day=1)
    with pytest.raises(
        JournalError, match=r"No open difference of ledger has the key zzzz; nothing was changed\. The nearest"
    ) as refused:
        accept(journal, "zzzz")
    assert "zzzz," not in str(refused.value), "what was resolved is not offered"
    with pytest.raises(JournalError, match="The nearest: b9c8, "):
        accept(journal, "b9c")
    with pytest.raises(JournalError, match="The nearest: x1y2, "):
        accept(journal, "Q1Y2")
    with pytest.raises(JournalError, match="No difference of crm is open"):
        journal.reconciliations.accept("crm", "b9a8", note="why", by="ana", until=None, now=NOON)
    for note in ("", " \n"):
        with pytest.raises(JournalError, match="needs a note"):
            accept(journal, "b9a8", note=note)
    assert journal.reconciliations.acceptances("ledger") == []


# -- what goes -------------------------------------------------------------------------------------------------------


def test_old_runs_and_old_resolutions_go_and_what_is_open_stays(journal: Journal) -> None:
    store(journal, GROSS, LINE, moved(LINE, key="L-18"))
    store(journal, LINE, moved(LINE, key="L-18"), day=1)
    store(journal, LINE, day=2)
    for day in (3, 4):
        store(journal, day=day, verdict="failed")
    store(journal, name="crm", run_id="crm")
    kept = journal.reconciliations.differences()
    assert journal.reconciliations.prune(NOON) == 0
    assert journal.reconciliations.differences() == kept
    assert journal.reconciliations.prune(NOON + DAY + dt.timedelta(seconds=1)) == 3
    assert [one.key for one in journal.reconciliations.differences()] == ["L-17", "L-18"]
    assert journal.reconciliations.prune(NOON + 99 * DAY) == 2
    assert open_keys(journal) == [one.key for one in journal.reconciliations.differences()] == ["L-17"]
    runs = [(run.name, run.run_id) for run in journal.reconciliations.runs(None, 9)]
    assert runs == [("crm", "crm"), ("ledger", "run-4"), ("ledger", "run-2")], "the last, and the last that compared"
    assert journal.reconciliations.prune(NOON + 99 * DAY) == 0


def test_the_values_of_an_erased_booking_go_and_do_not_come_back(journal: Journal) -> None:
    both = json.dumps([["guest", ['"the Countess"'], ["80.00"], True]])
    changes = {"reason": "Ada moved to another day.", "here_value": "Ada L.", "both_rows": both}
    other = moved(GROSS, key="b-2", booking_uuid="u-2", **changes)
    store(journal, GROSS, other, LINE)
    accept(journal, note="Ada paid cash.")
    accept(journal, "b-2")

    def is_hers(text: str) -> bool:
        return "Ada" in text or '"the Countess"' in text

    assert journal.reconciliations.repeats([], is_hers)
    assert journal.reconciliations.repeats(["u-1"], nobodys)
    assert journal.reconciliations.blank(["u-1"], is_hers) == 3
    assert not journal.reconciliations.repeats(["u-1"], is_hers)
    assert journal.reconciliations.blank(["u-1"], is_hers) == 0
    line, gross, hers = journal.reconciliations.open_differences("ledger")
    assert (gross.here_value, gross.there_value, gross.both_rows, gross.reason) == (None, None, None, GROSS.reason)
    assert (gross.delta_amount, gross.first_seen_at, gross.accepted_note) == (Decimal(10), NOON, "(erased)")
    assert (hers.here_value, hers.there_value, hers.reason) == ("(erased)", "90.00", "(erased)")
    assert (hers.both_rows, line.both_rows) == (None, None)
    assert (hers.accepted_note, line.reason) == ("Agreed with the agency.", LINE.reason)
    journal.erasures.request((), ["u-1"])
    asked = journal.erasures.request(["hash"], ())
    journal.erasures.note(dataclasses.replace(asked, contacts=(("acme", "u-2", ""),)))
    store(journal, GROSS, other, moved(GROSS, key="b-3", booking_uuid="u-3"), day=1)
    opened = journal.reconciliations.open_differences("ledger")
    assert {one.key: (one.here_value, one.there_value, one.both_rows) for one in opened} == {
        "b-1": (None, None, None),
        "b-2": (None, None, None),
        "b-3": ("80.00", "90.00", GROSS.both_rows),
    }


def test_every_change_is_seen_by_a_number_that_only_grows(journal: Journal) -> None:
    seen = [journal.reconciliations.revision()]
    assert seen == [0]
    for change in (
        lambda: store(journal, GROSS, LINE),
        lambda: store(journal, day=1, verdict="failed"),
        lambda: accept(journal),
        lambda: journal.reconciliations.unaccept("ledger", "b-1"),
        lambda: journal.reconciliations.blank(["u-1"], nobodys),
        lambda: store(journal, LINE, day=2),
        lambda: journal.reconciliations.prune(NOON + 9 * DAY),
    ):
        change()
        assert journal.reconciliations.revision() > seen[-1]
        seen.append(journal.reconciliations.revision())
    journal.reconciliations.open_differences(None)
    journal.reconciliations.acceptances("ledger")
    journal.reconciliations.prune(NOON)
    assert journal.reconciliations.revision() == seen[-1]
