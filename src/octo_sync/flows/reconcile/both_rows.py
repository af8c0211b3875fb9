"""The rows of an item side by side, as people read them."""

import json
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from octo_sync.flows.wording import NOTHING, are_timed, instant, money_text, plain
from octo_sync.reconciliation.model import Item, Rules
from octo_sync.reconciliation.rows import currency_of

ROWS = 10
"""At most so many rows of a side are shown of one item."""
_CUT = 300
"""Characters of a value that are kept."""
_BETWEEN = " · "
"""What stands between the names of a column here and there."""


def side_by_side(rules: Rules, item: Item) -> list[tuple[str, list[str], list[str], bool]]:
    """Each column: its label, values here, values there, as people read them, and whether it is one that differs.

    Compared fields come first, then keys, then what helps a reader. A side without rows has one value, nothing.
    """
    here, there = item.here[:ROWS] or ({},), item.there[:ROWS] or ({},)
    paired = [(f.here, f.there) for f in rules.fields]
    paired += [both for k in rules.keys for both in zip(k.here, k.there, strict=True)]
    known_here, known_there = {h for h, _ in paired}, {t for _, t in paired}
    paired += [(name, "") for name in dict.fromkeys(n for row in here for n in row) if name not in known_here]
    paired += [("", name) for name in dict.fromkeys(n for row in there for n in row) if name not in known_there]
    # A composite key is named by its columns, joined by +.
    differing = {name for difference in item.differences for name in difference.field.split("+")}
    rows: list[tuple[str, list[str], list[str], bool]] = []
    for name, name_there in dict.fromkeys(paired):
        timed = are_timed([*(row.get(name) for row in here), *(row.get(name_there) for row in there)])
        ours = [said(row.get(name), currency_of(rules, (row,), ()) or item.currency, timed=timed) for row in here]
        theirs = [
            said(row.get(name_there), currency_of(rules, (), (row,)) or item.currency, timed=timed) for row in there
        ]
        label = _BETWEEN.join(dict.fromkeys(each for each in (name, name_there) if each))
        if {*ours, *theirs} != {NOTHING}:
            rows.append((label, ours, theirs, bool(name) and name in differing))
    return rows


def as_json(rules: Rules, item: Item) -> str:
    """The same as a text that is kept: values cut; `[label, here, there, differs]` each."""
    rows = [
        (label, *([value[:_CUT] for value in values] for values in both), differs)
        for label, *both, differs in side_by_side(rules, item)
    ]
    return json.dumps(rows, ensure_ascii=False)


def reference(rows: Iterable[Sequence[Any]]) -> str | None:
    """What people call the booking of such rows, whichever side says it: the supplier's reference, else the reseller's."""
    named = {label.split(_BETWEEN)[0]: [*here, *there] for label, here, there, _ in rows}
    found = [*named.get("supplier_reference", ()), *named.get("reseller_reference", ())]
    return next((value for value in found if value != NOTHING), None)


def said(value: object, currency: str | None = None, *, timed: bool = False) -> str:
    """A value of a row as text; an amount in its currency; midnight as a time where it is `timed`, else as a day."""
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Decimal):
        return money_text(value, currency)
    if isinstance(value, datetime):
        return instant(value, seconds=True, timed=timed)
    return value.isoformat() if isinstance(value, date) else plain(value)
