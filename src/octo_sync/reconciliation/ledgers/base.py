"""What is asked of a ledger, what the pipeline file says of it, and what was read."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from itertools import accumulate
from os.path import commonprefix
from pathlib import Path
from typing import Literal
from zoneinfo import ZoneInfo

import pyarrow as pa  # type: ignore[import-untyped] # it ships no types

from octo_sync.errors import LedgerError
from octo_sync.model import ValueKind, zone_of

LARGEST = 2_000_000_000
"""Bytes of all files together: what a machine for such work has room for, and what one Arrow array of texts can hold."""
_SHOWN = 30


@dataclass(frozen=True, slots=True)
class Wanted:
    """A column that is needed. `name` is as in the header: the same, or the same but for case and space around it."""

    name: str
    kind: ValueKind


@dataclass(frozen=True, slots=True)
class Format:
    """What the pipeline file says about how values are written; "" means find out.

    `header_row` counts from 1 (lines of a CSV, rows of a sheet); `skip_footer` rows at the end of each file are none of the
    ledger's, and neither are those for which `where` is not true (`keeping.py`). `time_zone` is where clocks without an offset
    hang.
    """

    delimiter: str = ""
    encoding: str = ""
    decimal: Literal["", ".", ","] = ""
    dates: Literal["", "iso", "dmy", "mdy", "serial"] = ""
    sheet: str = ""
    header_row: int = 1
    skip_footer: int = 0
    where: str = ""
    time_zone: str = "UTC"

    def zone(self) -> ZoneInfo:
        """`time_zone` as a zone; a `LedgerError` when there is none of that name."""
        if (zone := zone_of(self.time_zone)) is None:
            raise LedgerError(
                f'There is no time zone "{self.time_zone[:_SHOWN]}"; set time_zone to a name such as "Europe/Lisbon".'
            )
        return zone


@dataclass(frozen=True, slots=True)
class Stretch:
    """Rows that came one after another from one place: `before`, a number of `numbers`, and `after` say where one is.

    `cells` has all that stands in the row of a number, also in columns that nobody wants; it is asked for the last row alone.
    """

    before: str
    numbers: Sequence[int]
    after: str = ""
    cells: Callable[[int], Iterable[object]] = lambda _: ()


@dataclass(frozen=True, slots=True)
class Ledger:
    """The other side of a reconciliation, as it was read.

    `rows` has one column for each wanted one, by its name: text → string (trimmed, nothing blank), amount → decimal128(38, 8),
    whole → int64, instant → timestamp("us", "UTC") and beside it `NAME.wall`, timestamp("us"): the clock as it was written,
    whatever the offset; date → date32, flag → bool. What is blank is null.
    """

    rows: pa.Table
    origin: str
    """For people, e.g. `ledger-2026-11.csv`; never with a password."""
    as_of: datetime | None
    """When the newest of the files was last changed, UTC; None for what is no file."""
    notes: tuple[str, ...] = ()
    """What a reader should know of how it was read, each a sentence."""
    stretches: tuple[Stretch, ...] = ()

    def place(self, row: int) -> str:
        """Where row `row` (from 0) begins, e.g. `ledger-2026-11.csv, line 17`."""
        stretch, at = self._at(row)
        return f"{stretch.before}{stretch.numbers[at]}{stretch.after}"

    def last(self, row: int) -> Iterable[object]:
        """All cells of row `row` where it is the last one of its file, also of columns that nobody wants; else none."""
        stretch, at = self._at(row)
        return stretch.cells(stretch.numbers[at]) if at + 1 == len(stretch.numbers) else ()

    def _at(self, row: int) -> tuple[Stretch, int]:
        ends = list(accumulate(len(stretch.numbers) for stretch in self.stretches))
        if not 0 <= row < (ends[-1] if ends else 0):
            raise IndexError(row)
        at = bisect_right(ends, row)
        return self.stretches[at], row - (ends[at - 1] if at else 0)


def labels(paths: Sequence[Path]) -> list[str]:
    """What each file is called in a sentence: its name, and its folder where names are the same."""
    names = [path.name for path in paths]
    return [path.name if names.count(path.name) == 1 else f"{path.parent.name}/{path.name}" for path in paths]


def origin(paths: Sequence[Path]) -> str:
    """All of them in a few words, e.g. `3 files exports/ledger-*.csv`."""
    if len(paths) == 1:
        return paths[0].name
    names = [path.name for path in paths]
    start = commonprefix(names)  # noqa: RUF071 - of the characters of names, which is what is asked
    end = commonprefix([name[len(start) :][::-1] for name in names])[::-1]  # noqa: RUF071
    folders = {path.parent.name for path in paths}
    folder = f"{folders.pop()}/" if len(folders) == 1 else ""
    return f"{len(paths)} files {folder if folder != '/' else ''}{start}*{end}"


def look(paths: Sequence[Path]) -> datetime:
    """When the newest was changed.

    Raises:
        LedgerError: One cannot be read, or together they are too large.
    """
    newest, size = 0.0, 0
    for path, label in zip(paths, labels(paths), strict=True):
        try:
            found = path.stat()
            with path.open("rb"):
                pass
        except OSError as error:
            raise LedgerError(f"{label} cannot be read: {error.strerror or error}.") from None
        newest, size = max(newest, found.st_mtime), size + found.st_size
    if size > LARGEST:
        raise LedgerError(
            f"{origin(paths)}: {size / 1e9:.1f} GB are more than the {LARGEST / 1e9:.0f} GB that are read at once; "
            "export a shorter period, or name a database instead."
        )
    return datetime.fromtimestamp(newest, UTC)


def same_kinds(wanted: Sequence[Wanted]) -> list[Wanted]:
    """Each wanted column once; a `LedgerError` for one that is wanted as two kinds of value."""
    kinds: dict[str, ValueKind] = {}
    for column in wanted:
        if kinds.setdefault(column.name, column.kind) != column.kind:
            raise LedgerError(
                f'Column "{column.name}" is wanted as {kinds[column.name]} and as {column.kind}: compare it with columns of '
                "one kind."
            )
    return [Wanted(name, kind) for name, kind in kinds.items()]


def find(headers: Sequence[str], wanted: Sequence[Wanted], place: str) -> list[int]:
    """The position of each wanted column among `headers`; `place` is where they stand, e.g. `ledger.csv, line 1`.

    Raises:
        LedgerError: One is missing, or there more than once.
    """
    plain = [header.strip().casefold() for header in headers]
    positions, missing = [], []
    for column in wanted:
        hits = [at for at, header in enumerate(headers) if header == column.name] or [
            at for at, header in enumerate(plain) if header == column.name.strip().casefold()
        ]
        if len(hits) > 1:
            raise LedgerError(
                f'{place}: column "{column.name}" is there {len(hits)} times ({_listed(str(at + 1) for at in hits)}); '
                "which one is meant cannot be told. Rename or remove the others."
            )
        if not hits:
            close = get_close_matches(column.name.strip().casefold()[:100], plain, n=1, cutoff=0.6)
            hint = f' (did you mean "{headers[plain.index(close[0])].strip()}"?)' if close else ""
            missing.append(f'"{column.name}"{hint}')
        positions += hits
    if missing:
        there = [f'"{header.strip()[:_SHOWN]}"' for header in headers if header.strip()]
        shown = _listed(there[:_SHOWN]) + (f" and {len(there) - _SHOWN} more" if len(there) > _SHOWN else "")
        raise LedgerError(
            f"{place}: there is no column {_listed(missing)}. The columns there are {shown or 'none'}. "
            "If the names stand further down, set header_row."
        )
    return positions


def _listed(words: Iterable[str]) -> str:
    return ", ".join(words)
