"""What the terminal, the page, the workbook and the files say alike of a reconciliation: names, ages, order, proof."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

from octo_sync.flows.wording import NOTHING, instant, money
from octo_sync.reconciliation.model import (
    Acceptance,
    Bucket,
    Difference,
    ExplainedMoney,
    Item,
    Outcome,
    Rules,
    Side,
    SideTotal,
)

T = TypeVar("T")

BUCKETS: Mapping[Bucket, tuple[str, str]] = {
    Bucket.MISMATCHED: ("mismatched", "Both sides have it and a field differs."),
    Bucket.MISSING_HERE: ("missing here", "Only the other side has it."),
    Bucket.MISSING_THERE: ("missing there", "Only this copy has it."),
    Bucket.DUPLICATE_HERE: ("duplicate here", "Several rows here share the key of one there."),
    Bucket.DUPLICATE_THERE: ("duplicate there", "Several rows there share the key of one here."),
    Bucket.AMBIGUOUS: (
        "ambiguous",
        "Several rows on both sides share the key, so it is unclear which belong together.",
    ),
    Bucket.TOO_FRESH: ("too fresh", "Differences within the grace time: one side may not be up to date yet."),
    Bucket.OUT_OF_WINDOW: ("out of window", "Their day is outside of the compared window."),
    Bucket.ACCEPTED: ("accepted", "A person looked at the difference and accepted it."),
    Bucket.MATCHED_WITHIN_TOLERANCE: ("within tolerance", "The amounts differ by no more than the tolerance."),
    Bucket.MATCHED: ("matched", "Both sides say the same."),
}
"""Bucket → its name for people, and what it means; those that somebody has to look at come first."""

AGE_CLASSES = ("0–1", "2–7", "8–30", ">30")  # noqa: RUF001 - a dash between numbers
"""Days since a difference was first found."""


def value_text(outcome: Outcome, field: str, value: str | None, currency: str | None) -> str:
    """A compared value for people: amounts as money, instants without their T, all else as it is.

    Of a whole row (`field` '') the values are amounts.
    """
    if value is None:
        return NOTHING
    kind = outcome.kinds.get(field) if field else "amount"
    try:
        if kind == "amount":
            return money(Decimal(value), currency)
        return instant(datetime.fromisoformat(value), seconds=True) if kind == "instant" else value
    except (InvalidOperation, ValueError):
        return value


def age_days(difference: Difference, rules: Rules) -> int | None:
    """Days (UTC) since it was first found, as `marts.recon_open` counts them; None before results are stored."""
    if difference.first_seen_at is None:
        return None
    return (rules.now.astimezone(UTC).date() - difference.first_seen_at.astimezone(UTC).date()).days


def age_class(days: int) -> str:
    """One of `AGE_CLASSES`."""
    return next((name for name, last in zip(AGE_CLASSES, (1, 7, 30), strict=False) if days <= last), AGE_CLASSES[-1])


def verdict(outcome: Outcome) -> str:
    """Whether limits were passed, and which."""
    if outcome.breached:
        return f"over the limits: {'; '.join(outcome.breached)}"
    if not outcome.rules.limits:
        return "no limits are set, so nothing fails (fail_on)"
    return f"within the limits: {', '.join(map(str, outcome.rules.limits))}"


def no_difference(outcome: Outcome) -> str:
    """The sentence where nobody has to look at anything: that all is the same, or what was set aside."""
    aside = (Bucket.TOO_FRESH, Bucket.ACCEPTED, Bucket.OUT_OF_WINDOW)
    found = [f"{outcome.counts[bucket]:,} {BUCKETS[bucket][0]}" for bucket in aside if outcome.counts.get(bucket)]
    if not found:
        return "No difference: every row has its counterpart, and both sides say the same."
    return f"No difference to look at. Not counted: {', '.join(found)}."


@dataclass(frozen=True, slots=True)
class Control(ExplainedMoney):
    """The control total of one currency and amount field, and what each bucket adds to its difference.

    Where no amount is compared, `field` is '' and only the rows count.
    """

    parts: tuple[ExplainedMoney, ...]

    @property
    def unexplained(self) -> Decimal:
        """What no bucket accounts for; 0, or the comparison itself is wrong."""
        return self.difference - sum((p.difference for p in self.parts), Decimal(0))

    @property
    def unexplained_rows(self) -> int:
        """Rows of both sides that are in no bucket, or in two; 0, or the comparison itself is wrong."""
        here = self.rows_here - sum(p.rows_here for p in self.parts)
        return abs(here) + abs(self.rows_there - sum(p.rows_there for p in self.parts))


def controls(outcome: Outcome) -> list[Control]:
    """Control totals: currencies by the alphabet, rows without one last; in each the amounts as the rules name them."""
    parts: dict[tuple[str | None, str], list[ExplainedMoney]] = defaultdict(list)
    order = list(BUCKETS)
    for e in sorted(outcome.explained, key=lambda e: order.index(e.bucket) if e.bucket else -1):
        parts[e.currency, e.field].append(e)
    sides = {(t.side, t.currency): t for t in outcome.totals}
    currencies = {t.currency for t in outcome.totals} | {e.currency for e in outcome.explained}
    zero, found = Decimal(0), []
    for currency in sorted(currencies, key=lambda c: (c is None, c or "")):
        here = sides.get(("here", currency), SideTotal("here", currency, 0, {}))
        there = sides.get(("there", currency), SideTotal("there", currency, 0, {}))
        for name in _amounts(outcome) or [""]:
            amounts = here.amounts.get(name, zero), there.amounts.get(name, zero)
            found.append(Control(None, currency, name, here.rows, there.rows, *amounts, tuple(parts[currency, name])))
    return found


def proven(found: Iterable[Control]) -> bool:
    """Whether every difference of the control totals is explained to exactly 0."""
    return not any(c.unexplained or c.unexplained_rows for c in found)


def facts(side: Side) -> dict[str, str | int | datetime]:
    """What is known of a side as a whole."""
    covered = {True: "yes", False: "no, not all of it", None: "not known"}
    said: dict[str, str | int | datetime] = {
        "source": side.origin,
        "rows": side.rows,
        "as of": side.as_of or "not known",
        "verified at the service since": side.verified_from or "not known",
        "all of the window covered": covered[side.complete],
    }
    return said | ({"how it was read": " ".join(side.notes)} if side.notes else {})


def main_amount(outcome: Outcome) -> str | None:
    """The amount field that summaries show, the first of the rules; None where no amount is compared."""
    return next(iter(_amounts(outcome)), None)


def _amounts(outcome: Outcome) -> list[str]:
    named = [f.here for f in outcome.rules.fields if outcome.kinds.get(f.here) == "amount"]
    return list(dict.fromkeys([*named, *(name for t in outcome.totals for name in t.amounts)]))


def pairs(items: Iterable[Item]) -> Iterator[tuple[Item, Difference | None]]:
    """An item with each of its differences; one that has none (a match worth a remark, say) comes once."""
    for item in items:
        yield from ((item, difference) for difference in item.differences or (None,))


def open_pairs(outcome: Outcome) -> list[tuple[Item, Difference]]:
    """The differences that somebody has to look at, with their items."""
    return [(i, d) for i, d in pairs(outcome.items) if d is not None and i.bucket.is_difference]


def by_importance(found: Iterable[tuple[Item, Difference]]) -> list[tuple[Item, Difference]]:
    """The largest amounts first, then what has none: the new before the old.

    Amounts of different currencies cannot be compared, so currencies take turns: the largest of each, then the second of
    each; the currency with the most differences begins.
    """
    return _ranked((_Weight(_size(d), d.currency, d.is_new, (i.key, d.field)), (i, d)) for i, d in found)


def items_by_importance(items: Iterable[Item]) -> list[Item]:
    """The same order for whole items, by their largest difference."""
    weighed = []
    for item in items:
        largest = max(item.differences, key=_size, default=None)
        amount, currency = (_size(largest), largest.currency) if largest else (Decimal(0), None)
        is_new = any(d.is_new for d in item.differences)
        weighed.append((_Weight(amount, currency, is_new, (item.key,)), item))
    return _ranked(weighed)


def _size(difference: Difference) -> Decimal:
    return abs(difference.delta_amount or Decimal(0))


class _Weight(NamedTuple):
    amount: Decimal
    currency: str | None
    is_new: bool
    key: tuple[str, ...]


def _ranked(weighed: Iterable[tuple[_Weight, T]]) -> list[T]:
    ordered = sorted(weighed, key=lambda each: (-each[0].amount, not each[0].is_new, each[0].key))
    common = Counter(weight.currency for weight, _ in ordered if weight.amount)
    turns = Counter[str | None]()
    placed = []
    for weight, thing in ordered:
        turns[weight.currency] += 1
        # Sorting is stable: what has no amount stays in the order above.
        turn = (0, turns[weight.currency], -common[weight.currency], weight.currency or "")
        placed.append((turn if weight.amount else (1, 0, 0, ""), thing))
    return [thing for _, thing in sorted(placed, key=itemgetter(0))]


COLUMNS = (
    "bucket", "key", "field", "here", "there", "difference", "currency", "reason", "code", "first_seen", "age_days", "new",
    "rule", "normalised", "place_there", "booking_uuid", "connection", "travel_date", "remark", "acceptance",
)  # fmt: skip
"""What files and frames say of each difference."""


def cells(outcome: Outcome, item: Item, difference: Difference | None) -> dict[str, Any]:
    """The values of `COLUMNS`; of an item without a difference those of the item."""
    found: dict[str, Any] = {
        "bucket": item.bucket.value,
        "key": item.key,
        "currency": item.currency,
        "new": False,
        "rule": item.rule,
        "normalised": item.normalised,
        "place_there": "; ".join(item.places),
        "booking_uuid": item.booking_uuid,
        "connection": item.connection,
        "travel_date": item.day,
        "remark": item.remark,
        "acceptance": accepted_text(item.acceptance) if item.acceptance else None,
    }
    if difference is not None:
        found |= difference_cells(outcome, item, difference)
    return {name: found.get(name) for name in COLUMNS}


def difference_cells(outcome: Outcome, item: Item, difference: Difference) -> dict[str, Any]:
    """Those that a difference has of its own."""
    return {
        "field": difference.field,
        "here": difference.here_value,
        "there": difference.there_value,
        "difference": difference.delta_amount,
        "currency": difference.currency or item.currency,
        "reason": difference.reason,
        "code": difference.code,
        "first_seen": difference.first_seen_at,
        "age_days": age_days(difference, outcome.rules),
        "new": difference.is_new,
    }


def accepted_text(acceptance: Acceptance) -> str:
    """What was said when a difference was accepted, by whom and until when."""
    end = f"until {acceptance.until:%Y-%m-%d}" if acceptance.until else "for good"
    return f"{acceptance.note} (accepted by {acceptance.accepted_by} on {acceptance.accepted_at:%Y-%m-%d}, {end})"
