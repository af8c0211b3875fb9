"""Which rows of a file are the ledger's: without the last ones (`skip_footer`), and those for which `where` is true.

`where` is SQL over the file's columns by their names in the header, each as text; it sees a row before any value is read as an
amount or a day, so that a totals row may hold whatever it likes.
"""

import json
from array import array
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa  # type: ignore[import-untyped] # it ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]

from octo_sync.errors import LedgerError
from octo_sync.reconciliation.ledgers import values
from octo_sync.reconciliation.ledgers.base import Format, Wanted

if TYPE_CHECKING:
    from octo_sync.reconciliation.ledgers.assembling import Found

_ROW = "row of octo-sync"


def columns(form: Format) -> list[Wanted]:
    """The columns that `where` names.

    Raises:
        LedgerError: It is no condition.
    """
    if not form.where:
        return []
    with closing(_database()) as db:
        (text,) = db.execute("select json_serialize_sql(?)", [_statement(form)]).fetchall()[0]
    parsed = json.loads(text)
    if parsed["error"] or parsed["statements"][0]["node"]["type"] != "SELECT_NODE":
        raise LedgerError(f"where is no condition in SQL: {parsed.get('error_message', 'it is more than one')}.")
    return [Wanted(name, "text") for name in dict.fromkeys(_named(parsed))]


def kept(found: "Found", asked: Sequence[Wanted], label: str, form: Format) -> "Found":
    """Without rows that `where` leaves out, and without its columns `asked`, which are the last ones of `found`."""
    if not form.where:
        return found
    ours = found.columns[: len(found.columns) - len(asked)]
    texts = {
        c.name: values.read(parts, "text", form)[0] for c, parts in zip(asked, found.columns[len(ours) :], strict=True)
    }
    with closing(_database()) as db:
        db.register("ledger", pa.table(texts | {_ROW: pa.array(range(len(found.stretch.numbers)), pa.int64())}))
        try:
            rows = sorted(row for (row,) in db.execute(_statement(form)).fetchall())
        except (duckdb.BinderException, duckdb.CatalogException) as error:
            raise LedgerError(f"where cannot be used: {str(error).splitlines()[0]}") from None
        except duckdb.Error as error:
            # The error may hold a value, which may be anybody's name.
            raise LedgerError(
                f"{label}: where fails ({type(error).__name__}). Its columns are texts; try_cast gives null where a text is no "
                "number."
            ) from None
    true = pa.array(rows, pa.int64())
    left = len(found.stretch.numbers) - len(true)
    note = f"{label}: {_rows(left)} for which where is not true {_were(left)} left out."
    # What has something in the columns of `where` alone is as blank as it would be without it.
    blank = pa.chunked_array([pa.array([True] * len(found.stretch.numbers))])
    for part in (part for parts in ours for part in parts):
        blank = pc.and_(blank, pc.is_null(values.plain(part)))
    at = true.filter(pc.invert(blank.take(true)))
    return replace(
        found,
        columns=[[part.take(at) for part in parts] for parts in ours],
        stretch=replace(found.stretch, numbers=array("q", (found.stretch.numbers[n] for n in at.to_pylist()))),
        notes=(*found.notes, note) if left else found.notes,
    )


def footer(label: str, left: Sequence[int]) -> str:
    """What is said of the rows that `skip_footer` leaves out, by their numbers."""
    return f"{label}: the last {_rows(len(left))}, from {left[0]:,} on, {_were(len(left))} left out (skip_footer)."


def _rows(count: int) -> str:
    return f"{count:,} row{'s' * (count != 1)}"


def _were(count: int) -> str:
    return "was" if count == 1 else "were"


def _statement(form: Format) -> str:
    # The project's own SQL, in a database without files. The newline ends a comment.
    return f'select "{_ROW}" from ledger where ({form.where}\n)'


def _database() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(":memory:", config={"threads": "2", "enable_external_access": "false"})


def _named(tree: Any) -> Iterator[str]:  # noqa: ANN401 - JSON
    if isinstance(tree, dict):
        if tree.get("class") == "COLUMN_REF" and tree["column_names"] != [_ROW]:
            yield tree["column_names"][-1]
        tree = list(tree.values())
    for part in tree if isinstance(tree, list) else ():
        yield from _named(part)
