"""The rows of an item side by side, as people read them."""

import json
from datetime import date, datetime
from decimal import Decimal

from octo_sync.flows.wording import NOTHING, exact, instant, plain
from octo_sync.reconciliation.model import Item, Rules

ROWS = 10
"""At most so many rows of a side are shown of one item."""
_CUT = 300
"""Characters of a value that are kept."""


def side_by_side(rules: Rules, item: Item) -> list[tuple[str, list[object], list[object], bool]]:
    """Each column: its label, values here, values there, and whether it is one that differs.

    Compared fields come first, then keys, then what helps a reader. A side without rows has one value, None.
    """
    here, there = item.here[:ROWS] or ({},), item.there[:ROWS] or ({},)
    paired = [(f.here, f.there) for f in rules.fields]
    paired += [both for k in rules.keys for both in zip(k.here, k.there, strict=True)]
    known_here, known_there = {h for h, _ in paired}, {t for _, t in paired}
    paired += [(name, "") for name in dict.fromkeys(n for row in here for n in row) if name not in known_here]
    paired += [("", name) for name in dict.fromkeys(n for row in there for n in row) if name not in known_there]
    # A composite key is named by its columns, joined by +.
    differing = {name for difference in item.differences for name in difference.field.split("+")}
    rows: list[tuple[str, list[object], list[object], bool]] = []
    for name, name_there in dict.fromkeys(paired):
        ours, theirs = [row.get(name) for row in here], [row.get(name_there) for row in there]
        label = " · ".join(dict.fromkeys(each for each in (name, name_there) if each))
        if any(value is not None for value in (*ours, *theirs)):
            rows.append((label, ours, theirs, bool(name) and name in differing))
    return rows


def as_json(rules: Rules, item: Item) -> str:
    """The same as a text that is kept: values as people read them, cut; `[label, here, there, differs]` each."""

    def texts(values: list[object]) -> list[str]:
        return [said(value, item.currency)[:_CUT] for value in values]

    rows = [(label, texts(here), texts(there), differs) for label, here, there, differs in side_by_side(rules, item)]
    return json.dumps(rows, ensure_ascii=False)


def said(value: object, currency: str | None = None) -> str:
    """A value of a row as text."""
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Decimal):
        return exact(value, currency)
    if isinstance(value, datetime):
        return instant(value, seconds=True)
    return value.isoformat() if isinstance(value, date) else plain(value)
