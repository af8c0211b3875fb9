"""What a comparison found, kept in the journal and aged from run to run; and what is news."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

from octo_sync.flows.reconcile.both_rows import as_json
from octo_sync.flows.reconcile.words import cells, open_pairs
from octo_sync.flows.wording import plural
from octo_sync.journal import FoundDifference, Journal, ReconciliationRun
from octo_sync.reconciliation.limits import breaches
from octo_sync.reconciliation.model import Bucket, Difference, Item, Outcome, Rules


def store(journal: Journal, outcome: Outcome, *, run_id: str, started_at: datetime, now: datetime) -> Outcome:
    """Age and keep what was found; the outcome with the ages, what is new, and the limits that it passes.

    Raises:
        JournalError: It cannot be written, or there are too many; nothing was stored.
    """
    rules = outcome.rules
    known = {(d.key, d.bucket, d.field): d.first_seen_at for d in journal.reconciliations.open_differences(rules.name)}
    aged = replace(outcome, items=[_aged(item, known, now) for item in outcome.items])
    aged = replace(aged, breached=breaches(aged))
    run = ReconciliationRun(
        name=rules.name,
        run_id=run_id,
        started_at=started_at,
        ended_at=now,
        window_start=rules.window.start,
        window_end=rules.window.end,
        here_origin=outcome.here.origin,
        there_origin=outcome.there.origin,
        counts={str(bucket): count for bucket, count in outcome.counts.items()},
        totals=[
            {**asdict(total), "amounts": {n: str(a) for n, a in total.amounts.items()}} for total in outcome.totals
        ],
        verdict="over" if aged.breached else "ok",
    )
    kept = [item for item in outcome.items if _is_kept(item)]
    found = [_found(rules, item, each, number) for item in kept for number, each in enumerate(item.differences)]
    too_fresh = [item for item in outcome.items if item.bucket is Bucket.TOO_FRESH]
    seen = [(item.key, str(item.found), each.field) for item in too_fresh for each in item.differences]
    journal.reconciliations.store(run, found, seen)
    [run] = journal.reconciliations.runs(rules.name, 1)
    return replace(aged, resolved=run.resolved_differences)


def _aged(item: Item, known: Mapping[tuple[str, str, str], datetime], now: datetime) -> Item:
    """With since when each difference is known; one that nobody has to look at has no age."""
    if not _is_kept(item):
        return replace(item, differences=tuple(replace(d, is_new=False) for d in item.differences))
    since = [(d, known.get((item.key, str(item.found), d.field))) for d in item.differences]
    return replace(
        item, differences=tuple(replace(d, first_seen_at=seen or now, is_new=seen is None) for d, seen in since)
    )


def _found(rules: Rules, item: Item, difference: Difference, number: int) -> FoundDifference:
    of_item = {name: getattr(item, name) for name in ("key", "rule", "connection", "booking_uuid", "day")}
    own = {name: value for name, value in asdict(difference).items() if name not in ("first_seen_at", "is_new")}
    # Once for all differences of the item.
    both_rows = None if number else as_json(rules, item)
    return FoundDifference(bucket=str(item.found), both_rows=both_rows, **of_item, **own)


def _is_kept(item: Item) -> bool:
    """What somebody has to look at, or has looked at. What is too fresh is told when it is not, and keeps its age till then."""
    return item.bucket.is_difference or item.acceptance is not None


def news(outcome: Outcome) -> dict[str, Any] | None:
    """What a hook is told: the differences first seen in this run; None when there are none."""
    told = ("key", "bucket", "field", "here", "there", "currency", "reason")
    cells_of = [cells(outcome, *pair) for pair in open_pairs(outcome)]
    new = [{name: found[name] for name in told} for found in cells_of if found["new"]]
    if not new:
        return None
    return {
        "event": "reconcile.new_differences",
        "text": f"{plural(len(new), 'new difference')} from {outcome.rules.name}, {outcome.rules.window}.",
        "reconciliation": outcome.rules.name,
        "window": str(outcome.rules.window),
        "count": len(new),
        "differences": new[:100],
    }
