"""Which limits an outcome passes."""

from decimal import Decimal

from octo_sync.reconciliation.model import Bucket, Outcome
from octo_sync.reconciliation.rows import plain


def breaches(outcome: Outcome) -> tuple[str, ...]:
    """The limits that an outcome passes, each in words without a full stop."""
    found = []
    for limit in outcome.rules.limits:
        value = _measured(outcome, limit.measure)
        if value > limit.above:
            found.append(f"{_said(limit.measure, plain(value))}, at most {plain(limit.above)} allowed")
    return tuple(found)


def _said(measure: str, value: str) -> str:
    """`9 differences`, `3 new differences`, `5 missing there`, `EUR 12.50 of differences`."""
    if measure.startswith("abs_amount_"):
        return f"{measure.removeprefix('abs_amount_').upper()} {value} of differences"
    words = {"differences": "differences", "new": "new differences"}.get(measure, measure.replace("_", " "))
    return f"{value} {words.removesuffix('s') if value == '1' and words.endswith('differences') else words}"


def _measured(outcome: Outcome, measure: str) -> Decimal:
    if measure == "differences":
        return Decimal(outcome.differences)
    if measure == "new":
        return Decimal(outcome.new)
    if measure.startswith("abs_amount_"):
        currency = measure.removeprefix("abs_amount_").upper()
        first = next((field.here for field in outcome.rules.fields if outcome.kinds[field.here] == "amount"), "")
        deltas = [
            d.delta_amount
            for item in outcome.items
            for d in item.differences
            if item.bucket.is_difference and d.field in ("", first) and d.currency == currency
        ]
        return sum((abs(delta) for delta in deltas if delta is not None), Decimal(0))
    return Decimal(outcome.counts.get(Bucket(measure), 0))
