"""A reconciliation as one page: no script, nothing fetched from anywhere, light and dark, for a screen, a telephone and paper.

Everything a ledger or a booking says is escaped by the template engine and isolated, so that neither its markup nor its
writing direction reaches what stands around it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from octo_sync.flows.export.files import writing
from octo_sync.flows.reconcile import words
from octo_sync.flows.reconcile.both_rows import ROWS, said, side_by_side
from octo_sync.flows.templates import environment
from octo_sync.flows.wording import currency_name, days_old, money, money_text, plain
from octo_sync.reconciliation.model import Difference, Item, Outcome

ITEMS = 500
"""At most so many items of a bucket are on the page."""
_CUT = 120
"""Characters of a value in the list of items; all of them are below it."""


Remembered = Callable[[Item], Mapping[str, Sequence[Mapping[str, Any]]]]
"""What this copy knows of an item's booking beyond the row that was compared: rows under a title, alike in their columns."""


def write_html(outcome: Outcome, path: Path, *, remembered: Remembered | None = None) -> None:
    """Write the page. `remembered` is asked once for each item that is shown. An older file of the name is overwritten.

    Raises:
        ConfigError: The path cannot be written.
    """
    filters = {"money": money, "signed": partial(money, sign=True), "said": said, "text": plain, "cut": _cut}
    pages = environment(Path(__file__).parent, filters, is_html=True)
    totals = words.controls(outcome)
    view = {
        "outcome": outcome,
        "rules": outcome.rules,
        "verdict": words.verdict(outcome),
        "no_difference": words.no_difference(outcome),
        "sides": (("Here", words.facts(outcome.here)), ("There", words.facts(outcome.there))),
        "controls": totals,
        "proven": words.proven(totals),
        "ages": _ages(outcome),
        "names": words.BUCKETS,
        "counts": [(bucket, outcome.counts[bucket]) for bucket in words.BUCKETS if outcome.counts.get(bucket)],
        "sections": _sections(outcome, remembered),
        "listed": {item.bucket for item in outcome.items},
        "currency_name": currency_name,
    }
    with writing(path, force=True) as fresh, fresh.open("w", encoding="utf-8") as file:
        file.writelines(pages.get_template("page.html.j2").generate(view))


def _sections(outcome: Outcome, remembered: Remembered | None) -> Iterator[Mapping[str, Any]]:
    """One for each bucket that has items; they are made while the page is written."""
    for bucket in words.BUCKETS:
        items = words.items_by_importance(item for item in outcome.items if item.bucket is bucket)
        if items:
            shown = (_shown(outcome, item, remembered) for item in items[:ITEMS])
            yield {"bucket": bucket, "shown": shown, "listed": len(items), "more": max(0, len(items) - ITEMS)}


def _shown(outcome: Outcome, item: Item, remembered: Remembered | None) -> Mapping[str, Any]:
    more = remembered(item) if remembered else {}
    # Of an item without a difference what is worth saying is its remark, or how its keys were made equal.
    remark = item.remark or ("The keys are equal once normalised." if item.normalised else "")
    none = dict.fromkeys(("field", "here", "there", "delta", "age", "age_class"), "") | {
        "reason": remark,
        "is_new": False,
    }
    return {
        "key": item.key,
        "lines": [_line(outcome, item, difference) for difference in item.differences] or [none],
        "about": _about(item),
        "heads": _heads(item),
        "rows": side_by_side(outcome.rules, item),
        "hidden_rows": sum(max(0, len(rows) - ROWS) for rows in (item.here, item.there)),
        "histories": [
            (title, list(rows[0]), [[said(row.get(name), row.get("currency")) for name in rows[0]] for row in rows])
            for title, rows in more.items()
            if rows
        ],
    }


def _line(outcome: Outcome, item: Item, difference: Difference) -> Mapping[str, Any]:
    """One difference of an item; texts as they are shown."""
    currency, days = difference.currency or item.currency, words.age_days(difference, outcome.rules)
    values = difference.here_value, difference.there_value
    here, there = (words.value_text(outcome, difference.field, value, currency) for value in values)
    unsaid = not difference.field and values == (None, None)
    return {
        "field": difference.field or "whole row",
        "here": "" if unsaid else here,
        "there": "" if unsaid else there,
        "delta": money_text(difference.delta_amount, currency, sign=True),
        "reason": difference.reason,
        "age": "" if days is None else days_old(days),
        "age_class": "" if days is None else words.age_class(days),
        "is_new": difference.is_new,
    }


def _about(item: Item) -> list[tuple[str, str]]:
    """What is known of an item as a whole."""
    found = [
        ("Place in the ledger", "; ".join(item.places)),
        ("Matched by", f"{item.rule}{', after normalising' if item.normalised else ''}" if item.rule else ""),
        ("Remark", item.remark),
        ("Accepted", words.accepted_text(item.acceptance) if item.acceptance else ""),
        ("Found as", words.BUCKETS[item.found][0] if item.found is not item.bucket else ""),
        ("Day", item.day.isoformat() if item.day else ""),
        ("Connection", item.connection or ""),
        ("Booking uuid", item.booking_uuid or ""),
    ]
    return [(name, value) for name, value in found if value]


def _heads(item: Item) -> list[str]:
    heads = []
    for name, rows in (("Here", item.here[:ROWS]), ("There", item.there[:ROWS])):
        if len(rows) > 1:
            heads += [f"{name} {number}" for number in range(1, len(rows) + 1)]
        else:
            heads.append(name if rows else f"{name}: nothing")
    return heads


def _ages(outcome: Outcome) -> list[tuple[str, int]]:
    """How many of the differences to look at are of each age; none before results are stored."""
    days = [words.age_days(difference, outcome.rules) for _, difference in words.open_pairs(outcome)]
    classes = [words.age_class(each) for each in days if each is not None]
    return [(name, classes.count(name)) for name in words.AGE_CLASSES] if classes else []


def _cut(text: str, length: int = _CUT) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
