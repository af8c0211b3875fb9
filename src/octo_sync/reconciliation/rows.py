"""What single rows say: small readings of values that items, names and reasons share."""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from octo_sync.reconciliation.model import FieldRule, Rules

Row = Mapping[str, Any]


def shown(value: object) -> str | None:
    """A value as results hold it: amounts without needless zeros, instants in UTC."""
    match value:
        case None:
            return None
        case bool():
            return str(value).lower()
        case Decimal():
            return plain(value)
        case datetime() if value.tzinfo is not None:
            return f"{value.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
        case datetime() | date():
            return value.isoformat()
        case _:
            return str(value)


def plain(value: Decimal) -> str:
    """An amount with all of its digits and no needless zeros; `normalize` would round to 28 digits."""
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def instant(value: object) -> datetime | None:
    """A moment in UTC; one without a zone is meant in UTC."""
    if not isinstance(value, datetime):
        return None
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def exact(value: object) -> Decimal | None:
    """An amount of whatever type as a decimal."""
    return Decimal(str(value)) if value is not None else None


def day_of(rules: Rules, here: Sequence[Row], there: Sequence[Row]) -> date | None:
    """The day that decides whether an item is in the window: here's, else there's.

    What is open-dated here is in it by when it was booked.
    """
    undated = "booking_date" if rules.date == "travel_date" else None
    for rows, name in ((here, rules.date), (here, undated), (there, rules.date_there)):
        for row in rows:
            value = row.get(name) if name else None
            if isinstance(value, datetime):
                return value.date()
            if isinstance(value, date):
                return value
    return None


def currency_of(rules: Rules, here: Sequence[Row], there: Sequence[Row]) -> str | None:
    """The currency of an item: here's, else there's."""
    return next(iter(currencies(rules, here, there)), None)


def currencies(rules: Rules, here: Sequence[Row], there: Sequence[Row]) -> list[str]:
    """All that its rows say, each once, here's first; one that is mapped is called as here."""
    ours = [_code(row.get(rules.currency or "currency")) for row in here]
    return list(dict.fromkeys(filter(None, [*ours, *(_currency_there(rules, row, ours) for row in there)])))


def total_in(rules: Rules, currency: str, here: Sequence[Row], there: Sequence[Row], amount: FieldRule) -> Decimal:
    """There minus here of an amount in one of the currencies of an item."""
    ours = [_code(row.get(rules.currency or "currency")) for row in here]
    theirs = [_currency_there(rules, row, ours) for row in there]
    of_here = total([row for row, code in zip(here, ours, strict=True) if code == currency], amount.here)
    of_there = total([row for row, code in zip(there, theirs, strict=True) if code == currency], amount.there)
    return (of_there or Decimal(0)) - (of_here or Decimal(0))


def _currency_there(rules: Rules, row: Row, ours: Collection[str]) -> str:
    """What a row there is in; a word that stands for several currencies is the one that its item has here."""
    rule = next((f for f in rules.fields if f.here == rules.currency), None)
    if rule is None:
        return ""
    words = meant(rule.mapping, row.get(rule.there)) or ()
    return min((word for word in words if len(words) == 1 or word in ours), default=_code(row.get(rule.there)))


def _code(value: object) -> str:
    return str(value or "").strip().upper()


def total(rows: Sequence[Row], name: str) -> Decimal | None:
    """The sum of a column; None when no row has a value."""
    values = [Decimal(str(row[name])) for row in rows if row.get(name) is not None]
    return sum(values, Decimal(0)) if values else None


def meant(mapping: Mapping[str, tuple[str, ...]] | None, value: object) -> tuple[str, ...] | None:
    """What a value there stands for here: None without a mapping, `()` when the mapping does not name it."""
    if mapping is None or value is None:
        return None
    wanted = str(value).strip().upper()
    return tuple(
        here.strip().upper() for there, values in mapping.items() if there.strip().upper() == wanted for here in values
    )
