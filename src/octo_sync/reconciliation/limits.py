"""Which limits an outcome passes."""

from collections.abc import Iterator
from decimal import Decimal

from octo_sync.reconciliation.model import Bucket, Outcome
from octo_sync.reconciliation.rows import currencies, plain, total_in


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
        return sum((abs(delta) for delta in _deltas(outcome, currency)), Decimal(0))
    return Decimal(outcome.counts.get(Bucket(measure), 0))


def _deltas(outcome: Outcome, currency: str) -> Iterator[Decimal]:
    """What the first amount differs by, in one currency."""
    rules = outcome.rules
    first = next((field for field in rules.fields if outcome.kinds[field.here] == "amount"), None)
    if first is None:
        return
    for item in outcome.items:
        if not item.bucket.is_difference:
            continue
        if len(currencies(rules, item.here, item.there)) > 1:
            # Amounts of two currencies were not compared: each is missing on the other side.
            yield total_in(rules, currency, item.here, item.there, first)
        else:
            for d in item.differences:
                if d.field in ("", first.here) and d.currency == currency and d.delta_amount is not None:
                    yield d.delta_amount
