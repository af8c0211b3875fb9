"""What a reconciliation gives to other programs: a CSV of its differences, and one document for `--json`.

| | csv | json |
|---|---|---|
| amount | `-12.50` | `"-12.50"`, exact |
| instant | `2026-01-02T03:04:05Z` | the same |
| nothing | nothing | `null` |
"""

import csv
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from octo_sync.flows.export.files import formula_safe, writing
from octo_sync.flows.reconcile.words import COLUMNS, age_days, cells, controls, exact, instant, pairs, proven
from octo_sync.reconciliation.model import Acceptance, Bucket, Difference, Item, Outcome, Side

__all__ = ["as_document", "write_csv"]


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
        "compared_at": instant(rules.now),
        "here": _side(outcome.here),
        "there": _side(outcome.there),
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
                "rows_here": c.rows_here,
                "rows_there": c.rows_there,
                "here": exact(c.here, c.currency),
                "there": exact(c.there, c.currency),
                "difference": exact(c.difference, c.currency),
                "unexplained": exact(c.unexplained, c.currency),
                "buckets": [
                    {
                        "bucket": part.bucket.value,
                        "rows_here": part.rows_here,
                        "rows_there": part.rows_there,
                        "here": exact(part.amount_here, c.currency),
                        "there": exact(part.amount_there, c.currency),
                        "difference": exact(part.difference, c.currency),
                    }
                    for part in c.parts
                ],
            }
            for c in totals
        ],
        "items": [_item(outcome, item) for item in outcome.items],
    }


def _side(side: Side) -> dict[str, Any]:
    return {
        "origin": side.origin,
        "rows": side.rows,
        "as_of": instant(side.as_of) if side.as_of else None,
        "verified_from": instant(side.verified_from) if side.verified_from else None,
        "complete": side.complete,
    }


def _item(outcome: Outcome, item: Item) -> dict[str, Any]:
    return {
        "key": item.key,
        "bucket": item.bucket.value,
        "found": item.found.value,
        "rule": item.rule,
        "normalised": item.normalised,
        "remark": item.remark,
        "connection": item.connection,
        "booking_uuid": item.booking_uuid,
        "day": item.day.isoformat() if item.day else None,
        "currency": item.currency,
        "places": list(item.places),
        "acceptance": _acceptance(item.acceptance) if item.acceptance else None,
        "differences": [_difference(outcome, item, difference) for difference in item.differences],
        "here": [_row(row, item.currency) for row in item.here],
        "there": [_row(row, item.currency) for row in item.there],
    }


def _difference(outcome: Outcome, item: Item, difference: Difference) -> dict[str, Any]:
    currency, delta = difference.currency or item.currency, difference.delta_amount
    return {
        "field": difference.field,
        "here": difference.here_value,
        "there": difference.there_value,
        "difference": None if delta is None else exact(delta, currency),
        "currency": currency,
        "reason": difference.reason,
        "code": difference.code,
        "first_seen_at": instant(difference.first_seen_at) if difference.first_seen_at else None,
        "age_days": age_days(difference, outcome.rules),
        "new": difference.is_new,
    }


def _acceptance(acceptance: Acceptance) -> dict[str, Any]:
    return {
        "note": acceptance.note,
        "accepted_by": acceptance.accepted_by,
        "accepted_at": instant(acceptance.accepted_at),
        "until": acceptance.until.isoformat() if acceptance.until else None,
    }


def _row(row: Mapping[str, Any], currency: str | None) -> dict[str, Any]:
    return {name: _plain(value, currency) for name, value in row.items()}


def _plain(value: object, currency: str | None) -> object:
    """What JSON can say of a value of a row; a wall clock time has no Z."""
    if isinstance(value, Decimal):
        return exact(value, currency)
    if isinstance(value, datetime):
        return instant(value) if value.tzinfo else value.isoformat()
    if isinstance(value, date):
        return value.isoformat()
    return value if value is None or isinstance(value, bool | int | str) else str(value)
