"""Which limits an outcome passes."""

from decimal import Decimal

from octo_sync.reconciliation.model import Bucket, Outcome
from octo_sync.reconciliation.rows import plain

__all__ = ["breaches"]


def breaches(outcome: Outcome) -> tuple[str, ...]:
    """The limits that an outcome passes, each a sentence."""
    found = []
    for limit in outcome.rules.limits:
        value = _measured(outcome, limit.measure)
        if value > limit.above:
            found.append(f"{limit.measure} is {plain(value)}, more than {plain(limit.above)}.")
    return tuple(found)


def _measured(outcome: Outcome, measure: str) -> Decimal:
    open_items = [item for item in outcome.items if item.bucket.is_difference]
    if measure == "differences":
        return Decimal(outcome.differences)
    if measure == "new":
        return Decimal(sum(any(d.is_new for d in item.differences) for item in open_items))
    if measure.startswith("abs_amount_"):
        currency = measure.removeprefix("abs_amount_").upper()
        first = next((field.here for field in outcome.rules.fields if outcome.kinds[field.here] == "amount"), "")
        deltas = [
            d.delta_amount
            for item in open_items
            for d in item.differences
            if d.field in ("", first) and d.currency == currency
        ]
        return sum((abs(delta) for delta in deltas if delta is not None), Decimal(0))
    return Decimal(outcome.counts.get(Bucket(measure), 0))
