"""What a reconciliation gives to other programs: a CSV of its differences, and one document for `--json`.

| | csv | json |
|---|---|---|
| amount | `-12.50` | `"-12.50"`, exact |
| instant | `2026-01-02T03:04:05Z` | the same |
| nothing | nothing | `null` |
"""

import csv
from collections.abc import Mapping
from dataclasses import fields
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from octo_sync.flows.export.files import formula_safe, writing
from octo_sync.flows.reconcile.words import COLUMNS, cells, controls, difference_cells, pairs, proven
from octo_sync.flows.wording import exact
from octo_sync.reconciliation.model import Acceptance, Bucket, Difference, ExplainedMoney, Item, Outcome, Side


def write_csv(outcome: Outcome, path: Path) -> None:
    """One row a difference, and one for each item that has none; texts that a spreadsheet would run are neutralised.

    An older file of the name is overwritten; it is for its owner only.

    Raises:
        ConfigError: The path cannot be written.
    """
    with writing(path, force=True) as fresh, fresh.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\r\n")  # as flows/export/files.py, RFC 4180
        rows.writerow(COLUMNS)
        for item, difference in pairs(outcome.items):
            found = cells(outcome, item, difference)
            rows.writerow([_cell(value, found["currency"]) for value in found.values()])


def _cell(value: object, currency: str | None) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value if _is_number(value) else formula_safe(value) or ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(_plain(value, currency))


def _is_number(text: str) -> bool:
    """A plain number is none of the texts that a spreadsheet would run, though it may begin with a minus."""
    try:
        return text[:1] in "-0123456789" and Decimal(text).is_finite()
    except InvalidOperation:
        return False


def as_document(outcome: Outcome) -> dict[str, Any]:
    """All of an outcome as JSON can say it; keys stay as they are.

    Buckets nobody is in are 0. `totals` prove themselves: `difference` is the sum of the buckets' and `unexplained` is 0.
    Every item has the rows it was made of, with the columns that keys and fields name.
    """
    rules, totals = outcome.rules, controls(outcome)
    return {
        "name": rules.name,
        "window": {"from": rules.window.start.isoformat(), "to": rules.window.end.isoformat()},
        "compared_at": _plain(rules.now),
        "here": _plain(outcome.here),
        "there": _plain(outcome.there),
        "within_limits": not outcome.breached,
        "limits": [str(limit) for limit in rules.limits],
        "breached": list(outcome.breached),
        "counts": {bucket.value: outcome.counts.get(bucket, 0) for bucket in Bucket},
        "differences": outcome.differences,
        "resolved": outcome.resolved,
        "explained": proven(totals),
        "totals": [
            {
                "currency": c.currency,
                "field": c.field or None,
                **_sums(c, c.currency),
                "unexplained": exact(c.unexplained, c.currency),
                "buckets": [{"bucket": part.bucket, **_sums(part, c.currency)} for part in c.parts],
            }
            for c in totals
        ],
        "items": [
            {
                **_plain(item, item.currency),
                "differences": [_difference(outcome, item, difference) for difference in item.differences],
            }
            for item in outcome.items
        ],
    }


def _sums(sums: ExplainedMoney, currency: str | None) -> dict[str, Any]:
    return {
        "rows_here": sums.rows_here,
        "rows_there": sums.rows_there,
        "here": exact(sums.amount_here, currency),
        "there": exact(sums.amount_there, currency),
        "difference": exact(sums.difference, currency),
    }


def _difference(outcome: Outcome, item: Item, difference: Difference) -> dict[str, Any]:
    found = difference_cells(outcome, item, difference)
    names = {"first_seen": "first_seen_at"}
    return {names.get(name, name): _plain(value, found["currency"]) for name, value in found.items()}


def _plain(value: object, currency: str | None = None) -> Any:  # noqa: ANN401, PLR0911 - JSON; a line for each kind of value
    """What JSON can say of a value; a wall clock time has no Z."""
    match value:
        case Decimal():
            return exact(value, currency)
        case datetime():
            at = value.astimezone(UTC) if value.tzinfo else value
            return at.isoformat().replace("+00:00", "Z")
        case Mapping():
            return {name: _plain(each, currency) for name, each in value.items()}
        case tuple():
            return [_plain(each, currency) for each in value]
        case Side() | Item() | Acceptance():
            # An acceptance stands in its item, whose key it has.
            names = (each.name for each in fields(value) if isinstance(value, Item) or each.name != "key")
            return {name: _plain(getattr(value, name), currency) for name in names}
        case None | bool() | int() | str():
            return value
        case _:
            return str(value)
