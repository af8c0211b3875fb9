"""A workbook, written row by row in constant memory; the only import of XlsxWriter.

Nothing of the data becomes a formula or a link. Texts, ids among them, are text cells; what Excel's numbers (15 digits) and
dates (1900 to 9999) cannot hold is a text too, never another value.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped] # it ships no types

from octo_sync.destinations.reading import as_json
from octo_sync.errors import ConfigError, install
from octo_sync.flows.export.files import Exported, ExportError, writing

ROWS, COLUMNS, TEXT, NAME = 1_048_576, 16_384, 32_767, 31
"""What a sheet can hold: rows with the head, columns, characters of a cell and of its name."""
DIGITS, _EXACT = 15, 10**15
"""What Excel keeps of a number."""
_EPOCH, _FIRST_DAY, _LAST_DAY = 25_569, -25_202, 2_932_897
"""1970-01-01 as Excel counts; 1901-01-01 and 10000-01-01 as days from there. 1900 is counted wrongly by Excel."""
_WIDEST = 60


def export_together(
    tables: Iterable[tuple[str, pa.RecordBatchReader]],
    target: Path,
    *,
    force: bool = False,
    decimals: Mapping[str, int] | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> tuple[Exported, dict[str, int]]:
    """Write each table into a sheet of its own in the workbook `target`: the file, and its sheets with their rows. Blocking.

    Raises:
        ConfigError: The target is there and `force` is not said, it cannot be written, or XlsxWriter is not installed.
        ExportError: A table does not fit into a sheet.
        QueryError, WarehouseError: The rows cannot be read. The target is as it was in every case.
    """
    rows, sheets = 0, dict[str, int]()
    with writing(target, force=force) as fresh:
        with opened(fresh) as book:
            for title, batches in tables:
                sheet = _Batches(book, batches.schema, title, decimals or {})
                for batch in batches:
                    sheet.write(batch)
                    rows += batch.num_rows
                    progress(rows)
                sheet.finish()
                sheets[sheet.sheet.get_name()] = sheet.next - 1
        size = fresh.stat().st_size
    return Exported(target, rows, size), sheets


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """A workbook of XlsxWriter in which nothing becomes a formula or a link; the file is whole when the block ends well.

    Raises:
        ConfigError: XlsxWriter is not installed.
        OSError: It cannot be written.
    """
    try:
        import xlsxwriter  # noqa: PLC0415 - an extra that few need
        from xlsxwriter.exceptions import XlsxFileError  # noqa: PLC0415 - the same
    except ImportError:
        raise ConfigError(f"Writing xlsx needs XlsxWriter: {install('xlsx')}.") from None
    # Rows wait in a file of the library's until the end: in a folder that is the owner's alone, gone afterwards.
    waiting = Path(tempfile.mkdtemp(prefix=f"{path.name}.", dir=path.parent))
    try:
        book = xlsxwriter.Workbook(
            str(path),
            {
                "constant_memory": True,
                "tmpdir": str(waiting),
                "strings_to_formulas": False,
                "strings_to_urls": False,
                "strings_to_numbers": False,
            },
        )
        try:
            yield book
        except BaseException:
            # Closing would write what is half done, and fail in its turn where the disk is full.
            book.fileclosed = True
            for sheet in book.worksheets():
                with suppress(OSError):
                    sheet.row_data_fh.close()
            raise
        book.close()
    except XlsxFileError as error:
        # The library wraps what the system said.
        raise OSError(*getattr(error.args[0], "args", (str(error),))) from None
    finally:
        shutil.rmtree(waiting, ignore_errors=True)


class Sheet:
    """Rows one after the other below a bold head that stays in sight; `keep` columns stay, too."""

    def __init__(self, book: Any, title: str, heads: Sequence[str], *, keep: int = 0) -> None:  # noqa: ANN401
        self.sheet = book.add_worksheet(_name(title, [sheet.get_name() for sheet in book.worksheets()]))
        self.next = 0
        self.widths = {column: len(head) for column, head in enumerate(heads)}
        self._book, self._title, self._formats = book, title, dict[str, Any]()
        for column, head in enumerate(heads):
            self.text(column, head, bold=True)
        self.next = 1
        self.sheet.freeze_panes(1, keep)

    def room(self, rows: int) -> None:
        """Refuse what has no place below."""
        if self.next + rows > ROWS:
            raise ExportError(
                f"A sheet holds {ROWS:,} rows with its head, and {self._title} has more; take csv, or ask for fewer."
            )

    def text(self, column: int, text: str, *, bold: bool = False) -> None:
        """A text that stays one."""
        if len(text) > TEXT:
            raise ExportError(
                f"A text in row {self.next + 1} of {self._title} has {len(text):,} characters, and a cell holds {TEXT:,}; "
                "take csv."
            )
        self.sheet.write_string(self.next, column, text, self.form("@", bold=bold))

    def form(self, number: str = "", *, bold: bool = False) -> Any:  # noqa: ANN401 - the library's
        """How a cell shows its value."""
        key = f"{number}{bold}"
        if key not in self._formats:
            self._formats[key] = self._book.add_format({"bold": bold} | ({"num_format": number} if number else {}))
        return self._formats[key]

    def finish(self, *, filters: bool = True) -> None:
        """Filters and widths, once all rows are there."""
        if filters and self.widths:
            self.sheet.autofilter(0, 0, self.next - 1, max(self.widths))
        for column, width in self.widths.items():
            self.sheet.set_column(column, column, min(_WIDEST, width) + 3)


class _Batches(Sheet):
    """A sheet of Arrow batches."""

    def __init__(self, book: Any, schema: pa.Schema, title: str, decimals: Mapping[str, int]) -> None:  # noqa: ANN401
        if len(schema) > COLUMNS:
            raise ExportError(
                f"A sheet holds {COLUMNS:,} columns and {title} has {len(schema):,}; take csv or parquet."
            )
        super().__init__(book, title, schema.names)
        self._decimals = decimals
        self._precision = _index(schema.names, "currency_precision")
        self._currency = _index(schema.names, "currency")

    def write(self, batch: pa.RecordBatch) -> None:
        self.room(batch.num_rows)
        is_first = self.next == 1
        kinds = [_kind(field.type) for field in batch.schema]
        columns = [_plain(column, kind) for column, kind in zip(batch.columns, kinds, strict=True)]
        cells = [self._cells(kind) for kind in kinds]
        for row in zip(*columns, strict=True):
            for column, value in enumerate(row):
                if value is not None:
                    self._put(column, cells[column](value, row))
            self.next += 1
        if is_first:
            for column, (values, kind) in enumerate(zip(columns, kinds, strict=True)):
                wide = _WIDTHS.get(kind) or max(
                    (len(str(value)) for value in values[:200] if value is not None), default=0
                )
                self.widths[column] = max(self.widths[column], wide)

    def _put(self, column: int, cell: "_Cell") -> None:
        if isinstance(cell, str):
            self.text(column, cell)
        elif isinstance(cell, bool):
            self.sheet.write_boolean(self.next, column, cell)
        else:
            self.sheet.write_number(self.next, column, *cell)

    def _cells(self, kind: str) -> "_Maker":
        """What becomes of a value of a kind, and of its row."""
        number_format, per_day = _MOMENTS.get(kind, ("", 1))
        form = self.form(number_format)

        def number(value: float, _: Sequence[Any]) -> _Cell:
            # An endless one, or one of more digits than Excel keeps, stays a text.
            return (value, form) if abs(value) < _EXACT else str(value)

        def amount(value: Decimal, row: Sequence[Any]) -> _Cell:
            is_exact = len(value.normalize().as_tuple().digits) <= DIGITS
            return (float(value), self.form(self._shown(value, row))) if is_exact else str(value)

        def moment(value: int, _: Sequence[Any]) -> _Cell:
            days = value / per_day
            if kind == "time":
                return days, form
            return (days + _EPOCH, form) if _FIRST_DAY <= days < _LAST_DAY else _iso(days)

        cells: dict[str, _Maker] = {"number": number, "amount": amount, **dict.fromkeys(_MOMENTS, moment)}
        return cells.get(kind, lambda value, _: value if isinstance(value, str | bool) else _said(value))

    def _shown(self, value: Decimal, row: Sequence[Any]) -> str:
        """An amount's number format: its row's currency decides about the decimals, else what the value has."""
        digits = row[self._precision] if self._precision is not None else None
        if digits is None and self._currency is not None:
            digits = self._decimals.get(row[self._currency])
        if digits is None:
            exponent = value.normalize().as_tuple().exponent
            digits = max(2, -exponent) if isinstance(exponent, int) else 2
        return "#,##0" + ("." + "0" * min(int(digits), 10) if digits else "")


def _name(title: str, others: Sequence[str]) -> str:
    """What a sheet may be called: short, none twice whatever the capitals, and not "History", which Excel keeps for itself."""
    taken = {"history", *(name.lower() for name in others)}
    name = unique = "".join("_" if c in "[]:*?/\\'" else c for c in title)[:NAME] or "rows"
    number = 1
    while unique.lower() in taken:
        number += 1
        unique = f"{name[: NAME - len(f'_{number}')]}_{number}"
    return unique


_Cell = str | bool | tuple[float, Any]
"""A text, yes or no, or a number and how it is shown."""
_Maker = Callable[[Any, Sequence[Any]], _Cell]
_MOMENTS = {
    "instant": ("yyyy-mm-dd hh:mm:ss", 86_400_000_000),
    "date": ("yyyy-mm-dd", 1),
    "time": ("hh:mm:ss", 86_400_000_000),
}
"""Number format, and units in a day: Excel counts days."""
_WIDTHS = {"instant": 19, "date": 10, "time": 8, "amount": 14}


def _kind(kind: pa.DataType) -> str:
    tests = {
        "boolean": pa.types.is_boolean,
        "number": lambda t: pa.types.is_integer(t) or pa.types.is_floating(t),
        "amount": pa.types.is_decimal,
        "instant": pa.types.is_timestamp,
        "date": pa.types.is_date,
        "time": pa.types.is_time,
    }
    return next((name for name, fits in tests.items() if fits(kind)), "text")


def _plain(column: pa.Array, kind: str) -> list[Any]:
    """The values; instants and times as microseconds, dates as days, which is ten times faster than as objects."""
    if kind == "instant":
        column = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    elif kind == "date":
        column = column.cast(pa.date32()).cast(pa.int32())
    elif kind == "time":
        column = column.cast(pa.time64("us")).cast(pa.int64())
    return list(column.to_pylist())


def _iso(days: float) -> str:
    """A date outside what Excel knows."""
    try:
        return (datetime(1970, 1, 1) + timedelta(days=days)).isoformat(" ")  # noqa: DTZ001 - days of UTC or of a wall
    except OverflowError:
        return f"{days:+.0f} days from 1970-01-01"


def _said(value: object) -> str:
    if isinstance(value, bytes):
        return value.hex()
    return as_json(value) if isinstance(value, list | dict) else str(value)


def _index(names: Sequence[str], name: str) -> int | None:
    return names.index(name) if name in names else None
