"""Rows of Python values, as drivers and files hand them out, to columns."""

from array import array
from collections.abc import Iterable, Sequence
from typing import Any

from octo_sync.reconciliation.ledgers.assembling import Found
from octo_sync.reconciliation.ledgers.base import Stretch, Wanted
from octo_sync.reconciliation.ledgers.values import trimmed

ROWS = 10_000
"""How many rows are worth collecting before they become columns."""


def collected(
    rows: Iterable[tuple[int, Sequence[Any]]], positions: Sequence[int], wanted: Sequence[Wanted], place: str, unit: str
) -> Found:
    """The cells at `positions` of numbered rows of a file; `unit` is what the numbers count.

    Rows that have nothing in any wanted column are none; a note says so where others follow.
    """
    numbers, empty, holes = array("q"), 0, 0
    columns: list[list[Any]] = [[] for _ in wanted]
    waiting: list[list[Any]] = []
    for number, row in rows:
        values = trimmed([row[at] for at in positions])
        if values.count(None) == len(values):
            empty += 1
            continue
        holes, empty = holes + empty, 0
        numbers.append(number)
        waiting.append(values)
        if len(waiting) == ROWS:
            extend(columns, waiting)
            waiting = []
    extend(columns, waiting)
    note = f"{place}: {holes} row{'s' * (holes > 1)} with nothing in the wanted columns were left out."
    return Found(columns, Stretch(f"{place}, {unit} ", numbers), (note,) if holes else ())


def extend(columns: Sequence[list[Any]], rows: Sequence[Sequence[Any]]) -> None:
    """Some more rows, with a value for each column."""
    for column, cells in zip(columns, zip(*rows, strict=True), strict=False):
        column.extend(cells)
