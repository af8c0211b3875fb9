"""A reconciliation as one page: no script, nothing fetched from anywhere, light and dark, for a screen, a telephone and paper.

Everything a ledger or a booking says is escaped by the template engine and isolated, so that neither its markup nor its
writing direction reaches what stands around it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from octo_sync.flows.export.files import writing
from octo_sync.flows.export.html import plain
from octo_sync.flows.reconcile.words import (
    AGE_CLASSES,
    BUCKETS,
    NOTHING,
    accepted_text,
    age_class,
    age_days,
    age_text,
    controls,
    currency_name,
    exact,
    instant_text,
    items_by_importance,
    money,
    open_pairs,
    proven,
    value_text,
    verdict,
)
from octo_sync.reconciliation.model import Bucket, Difference, Item, Outcome, Side

__all__ = ["ITEMS", "Drill", "write_html"]

ITEMS = 500
"""At most so many items of a bucket are on the page."""
_ROWS = 10
"""At most so many rows of a side are shown of one item."""
_CUT = 120
"""Characters of a value in the list of items; all of them are below it."""


@dataclass(frozen=True, slots=True)
class Drill:
    """What this copy knows of a booking beyond the row that was compared.

    `versions` are rows of `core.booking_history`, newest first: valid_from_utc, status, amounts, changed_fields, source.
    `deliveries` are the notifications about it: received_at, type, state. The columns shown are those of the first row.
    """

    versions: Sequence[Mapping[str, Any]]
    deliveries: Sequence[Mapping[str, Any]]


def write_html(outcome: Outcome, path: Path, *, drill: Callable[[Item], Drill] | None = None) -> None:
    """Write the page. `drill` is asked once for each item that is shown. An older file of the name is overwritten.

    Raises:
        ConfigError: The path cannot be written.
    """
    loader = FileSystemLoader(Path(__file__).parent)
    pages = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    pages.filters |= {"money": _money, "signed": _signed, "said": _said, "text": plain, "cut": _cut}
    totals = controls(outcome)
    view = {
        "outcome": outcome,
        "rules": outcome.rules,
        "verdict": verdict(outcome),
        "sides": (("Here", _facts(outcome.here)), ("There", _facts(outcome.there))),
        "controls": totals,
        "proven": proven(totals),
        "ages": _ages(outcome),
        "new": sum(difference.is_new for _, difference in open_pairs(outcome)),
        "names": BUCKETS,
        "counts": [(bucket, outcome.counts[bucket]) for bucket in BUCKETS if outcome.counts.get(bucket)],
        "sections": _sections(outcome, drill),
        "listed": {item.bucket for item in outcome.items},
        "currency_name": currency_name,
    }
    with writing(path, force=True) as fresh, fresh.open("w", encoding="utf-8") as file:
        file.writelines(pages.get_template("page.html.j2").generate(view))


@dataclass(frozen=True, slots=True)
class _Section:
    bucket: Bucket
    items: Iterator["_Shown"]
    listed: int
    more: int


@dataclass(frozen=True, slots=True)
class _Line:
    """One difference of an item; texts as they are shown."""

    field: str
    here: str
    there: str
    delta: str
    reason: str
    age: str
    age_class: str
    is_new: bool


@dataclass(frozen=True, slots=True)
class _Shown:
    item: Item
    lines: list[_Line]
    about: list[tuple[str, str]]
    heads: list[str]
    rows: list[tuple[str, list[object], bool]]
    """Column, its value in each row, and whether it differs."""
    hidden_rows: int
    histories: list[tuple[str, list[str], list[list[object]]]]


def _sections(outcome: Outcome, drill: Callable[[Item], Drill] | None) -> list[_Section]:
    found = []
    for bucket in BUCKETS:
        items = items_by_importance(item for item in outcome.items if item.bucket is bucket)
        if items:
            shown = (_shown(outcome, item, drill) for item in items[:ITEMS])
            found.append(_Section(bucket, shown, len(items), max(0, len(items) - ITEMS)))
    return found


def _shown(outcome: Outcome, item: Item, drill: Callable[[Item], Drill] | None) -> _Shown:
    more = drill(item) if drill else Drill((), ())
    return _Shown(
        item=item,
        lines=[_line(outcome, item, difference) for difference in item.differences] or [_nothing(item)],
        about=_about(item),
        heads=_heads(item),
        rows=_side_by_side(outcome, item),
        hidden_rows=sum(max(0, len(rows) - _ROWS) for rows in (item.here, item.there)),
        histories=[
            (title, list(rows[0]), [[row.get(name) for name in rows[0]] for row in rows])
            for title, rows in (("Versions of the booking here", more.versions), ("Notifications", more.deliveries))
            if rows
        ],
    )


def _line(outcome: Outcome, item: Item, difference: Difference) -> _Line:
    currency = difference.currency or item.currency
    days, delta, nothing = age_days(difference, outcome.rules), difference.delta_amount, not difference.field
    unsaid = nothing and difference.here_value is None and difference.there_value is None
    return _Line(
        field=difference.field or "whole row",
        here="" if unsaid else value_text(outcome, difference.field, difference.here_value, currency),
        there="" if unsaid else value_text(outcome, difference.field, difference.there_value, currency),
        delta="" if delta is None else f"{money(delta, currency, sign=True)} {currency or ''}".strip(),
        reason=difference.reason,
        age="" if days is None else age_text(days),
        age_class="" if days is None else age_class(days),
        is_new=difference.is_new,
    )


def _nothing(item: Item) -> _Line:
    """Of an item without a difference what is worth saying is its remark, or how its keys were made equal."""
    reason = item.remark or ("The keys are equal once normalised." if item.normalised else "")
    return _Line("", "", "", "", reason, "", "", is_new=False)


def _about(item: Item) -> list[tuple[str, str]]:
    """What is known of an item as a whole."""
    found = [
        ("Place in the ledger", "; ".join(item.places)),
        ("Matched by", f"{item.rule}{', after normalising' if item.normalised else ''}" if item.rule else ""),
        ("Remark", item.remark),
        ("Accepted", accepted_text(item.acceptance) if item.acceptance else ""),
        ("Found as", BUCKETS[item.found][0] if item.found is not item.bucket else ""),
        ("Day", item.day.isoformat() if item.day else ""),
        ("Connection", item.connection or ""),
        ("Booking uuid", item.booking_uuid or ""),
    ]
    return [(name, value) for name, value in found if value]


def _heads(item: Item) -> list[str]:
    heads = []
    for name, rows in (("Here", item.here[:_ROWS]), ("There", item.there[:_ROWS])):
        if len(rows) > 1:
            heads += [f"{name} {number}" for number in range(1, len(rows) + 1)]
        else:
            heads.append(name if rows else f"{name}: nothing")
    return heads


def _side_by_side(outcome: Outcome, item: Item) -> list[tuple[str, list[object], bool]]:
    """Each column with its values in the rows here and there: compared fields first, then keys, then what helps a reader."""
    here, there = item.here[:_ROWS] or ({},), item.there[:_ROWS] or ({},)
    paired = [(f.here, f.there) for f in outcome.rules.fields]
    paired += [both for k in outcome.rules.keys for both in zip(k.here, k.there, strict=True)]
    known_here, known_there = {h for h, _ in paired}, {t for _, t in paired}
    paired += [(name, "") for name in dict.fromkeys(n for row in here for n in row) if name not in known_here]
    paired += [("", name) for name in dict.fromkeys(n for row in there for n in row) if name not in known_there]
    # A composite key is named by its columns, joined by +.
    differing = {name for difference in item.differences for name in difference.field.split("+")}
    rows: list[tuple[str, list[object], bool]] = []
    for name, name_there in dict.fromkeys(paired):
        values = [row.get(name) for row in here] + [row.get(name_there) for row in there]
        label = " · ".join(dict.fromkeys(each for each in (name, name_there) if each))
        if any(value is not None for value in values):
            rows.append((label, values, bool(name) and name in differing))
    return rows


def _facts(side: Side) -> list[tuple[str, str]]:
    covered = {True: "yes", False: "no, not all of it", None: "not known"}[side.complete]
    return [
        ("Source", side.origin),
        ("Rows", f"{side.rows:,}"),
        ("As of", _said(side.as_of) if side.as_of else "not known"),
        ("Seen at its source since", _said(side.verified_from) if side.verified_from else "not known"),
        ("All of the window covered", covered),
    ]


def _ages(outcome: Outcome) -> list[tuple[str, int]]:
    """How many of the differences to look at are of each age; none before results are stored."""
    days = [age_days(difference, outcome.rules) for _, difference in open_pairs(outcome)]
    classes = [age_class(each) for each in days if each is not None]
    return [(name, classes.count(name)) for name in AGE_CLASSES] if classes else []


def _money(amount: Decimal, currency: str | None) -> str:
    return money(amount, currency)


def _signed(amount: Decimal, currency: str | None) -> str:
    return money(amount, currency, sign=True)


def _said(value: object, currency: str | None = None) -> str:
    """A value of a row as text."""
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Decimal):
        return exact(value, currency)
    if isinstance(value, datetime):
        return instant_text(value)
    return value.isoformat() if isinstance(value, date) else plain(value)


def _cut(text: str, length: int = _CUT) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
