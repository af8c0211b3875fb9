"""Rows of several months and channels together, and whether what they come to is all of it."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from octo_sync.dashboard.view import Column, Table, listed
from octo_sync.flows import wording

CURRENCY = Column("Currency", "text", "currency", none="no currency")
_FLAGS = ("is_over", "is_complete")


def all_of_it(row: dict[str, Any]) -> bool:
    """Whether amounts are known whole: every booking, and both prices of each."""
    return bool(row["is_complete"]) and not row["without_net"] and not row["without_retail"]


def per(amount: str, number: str) -> Callable[[Mapping[str, Any]], Decimal | None]:
    """A row's amount for each of a number, such as guests; None where either is not known, or there is none."""

    def of(row: Mapping[str, Any]) -> Decimal | None:
        known = row[amount] is not None and row[number]
        return wording.rounded(row[amount] / row[number], row["currency"]) if known else None

    return of


KNOWN = (Column("Month over", "yes", "is_over"), Column("Complete", "yes", all_of_it))


def known_sum(rows: Sequence[Mapping[str, Any]], name: str) -> Any:  # noqa: ANN401 - a count, an average or an amount
    """Of all rows together; None where one of them does not say it."""
    return None if any(row[name] is None for row in rows) else sum(row[name] for row in rows)


def all_together(
    caption: str,
    rows: list[dict[str, Any]],
    *columns: Column,
    by: Sequence[str] = ("currency",),
    last_first: bool = False,
) -> Table:
    """A table of all months and channels together, in order of what they are counted by.

    An amount that is not known adds nothing; where all others are 0, nothing is known.
    """
    shown = {column.of for column in columns if isinstance(column.of, str)}
    names = {*shown, "without_net", "without_retail"} & set(rows[0] if rows else ()) - {*by, *_FLAGS}
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[tuple(row[name] for name in by)].append(row)

    def of_all(of: list[dict[str, Any]], name: str) -> Any:  # noqa: ANN401 - an amount or a number
        known = [row[name] for row in of if row[name] is not None]
        return sum(known) if len(known) == len(of) or any(known) else None

    together = [
        dict(zip(by, group, strict=True))
        | {name: of_all(of, name) for name in names}
        | {flag: all(row[flag] for row in of) for flag in _FLAGS if flag in of[0]}
        for group, of in sorted(groups.items(), key=lambda each: [(value is None, value) for value in each[0]])
    ]
    if last_first:
        together.sort(key=lambda row: row[by[0]], reverse=True)
    return listed(caption, together, *columns)
