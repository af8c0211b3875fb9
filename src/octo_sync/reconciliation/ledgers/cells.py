"""Rows of Python values, as drivers and sheets hand them out, to parts (`values.py`)."""

from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from types import NoneType
from typing import Any
from uuid import UUID

import pyarrow as pa  # type: ignore[import-untyped] # it ships no types

from octo_sync.reconciliation.ledgers.amounts import AMOUNT
from octo_sync.reconciliation.ledgers.assembling import end_to_end
from octo_sync.reconciliation.ledgers.base import Wanted

ROWS = 10_000
"""How many rows are worth collecting before they become arrays."""
_TYPES: dict[type, pa.DataType] = {
    str: pa.string(),
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    Decimal: AMOUNT,
    date: pa.date32(),
}


class Cells:
    """Collects rows, some at a time. A row has one value for each wanted column, None where there is none."""

    def __init__(self, wanted: Sequence[Wanted]) -> None:
        self._wanted = wanted
        self._parts: list[list[list[pa.ChunkedArray]]] = [[] for _ in wanted]
        self._lengths: list[int] = []

    def add(self, rows: Sequence[Sequence[Any]]) -> None:
        """Some more rows."""
        self._lengths.append(len(rows))
        for at, column in enumerate(self._wanted):
            exact = column.kind != "text"
            made = _parts([row[at] for row in rows], exact=exact)
            self._parts[at].append([pa.chunked_array([array]) for array in made])

    def columns(self) -> list[list[pa.ChunkedArray]]:
        """All rows, as parts for each wanted column."""
        return [end_to_end(batches, self._lengths) for batches in self._parts]


def _parts(cells: list[Any], *, exact: bool) -> list[pa.Array]:
    """An array for each type among `cells`, null where a cell is of another. `exact`: decimals as numbers, else as texts."""
    types = sorted(set(map(type, cells)) - {NoneType}, key=lambda kind: kind.__name__) or [str]
    if len(types) == 1:
        return _arrays(cells, types[0], exact=exact)
    return [
        array
        for kind in types
        for array in _arrays([cell if type(cell) is kind else None for cell in cells], kind, exact=exact)
    ]


def _arrays(cells: list[Any], kind: type, *, exact: bool) -> list[pa.Array]:
    """`cells` are of one type or None."""
    if kind is datetime:
        naive = [cell if cell is not None and cell.tzinfo is None else None for cell in cells]
        zoned = [cell if cell is not None and cell.tzinfo is not None else None for cell in cells]
        made = [pa.array(naive, pa.timestamp("us")), pa.array(zoned, pa.timestamp("us", "UTC"))]
        return [array for array in made if array.null_count < len(array)]
    if kind in _TYPES and (exact or kind is not Decimal):
        try:
            return [pa.array(cells, _TYPES[kind])]
        except (OverflowError, pa.ArrowInvalid):  # too many digits, or NaN: what reads texts says so, with the row
            return [_texts(cells)]
    if kind in {Decimal, UUID, time, timedelta}:
        return [_texts(cells)]
    # Bytes, JSON and whatever else a database may have: its type is refused later, with the row.
    return [pa.array([cell if cell is None else b"" for cell in cells], pa.binary())]


def _texts(cells: list[Any]) -> pa.Array:
    return pa.array([cell if cell is None else str(cell) for cell in cells], pa.string())
