"""What is asked of a ledger, what the pipeline file says of it, and what was read."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Literal
from zoneinfo import ZoneInfo

import pyarrow as pa  # type: ignore[import-untyped] # it ships no types

from octo_sync.errors import LedgerError
from octo_sync.model import ValueKind, zone_of

LARGEST = 500_000_000
"""Bytes of all files together: some millions of rows, which take fourteen times as much memory while they are read."""
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
    """Rows that came one after another from one place: `before`, a number of `numbers`, and `after` say where one is."""

    before: str
    numbers: Sequence[int]
    after: str = ""


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
        left = row
        for stretch in self.stretches:
            if 0 <= left < len(stretch.numbers):
                return f"{stretch.before}{stretch.numbers[left]}{stretch.after}"
            left -= len(stretch.numbers)
        raise IndexError(row)


def labels(paths: Sequence[Path]) -> list[str]:
    """What each file is called in a sentence: its name, and its folder where names are the same."""
    names = [path.name for path in paths]
    return [path.name if names.count(path.name) == 1 else f"{path.parent.name}/{path.name}" for path in paths]


def origin(paths: Sequence[Path]) -> str:
    """All of them in a few words, e.g. `3 files, ledger-09.csv to ledger-11.csv`."""
    names = labels(paths)
    return names[0] if len(names) == 1 else f"{len(names)} files, {names[0]} to {names[-1]}"


def look(paths: Sequence[Path]) -> datetime:
    """When the newest was changed.

    Raises:
        LedgerError: One cannot be read, or together they are too large.
    """
    try:
        found = [path.stat() for path in paths]
    except OSError as error:
        raise LedgerError(f"{Path(error.filename).name} cannot be read: {error.strerror or error}.") from None
    size = sum(each.st_size for each in found)
    if size > LARGEST:
        raise LedgerError(
            f"{origin(paths)}: {size / 1e6:,.0f} MB are more than the {LARGEST / 1e6:,.0f} MB that are read at once; "
            "export a shorter period, or name a database instead."
        )
    return datetime.fromtimestamp(max(each.st_mtime for each in found), UTC)


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
                f'{place}: column "{column.name}" is there {len(hits)} times ({", ".join(str(at + 1) for at in hits)}); '
                "which one is meant cannot be told. Rename or remove the others."
            )
        if not hits:
            close = get_close_matches(column.name.strip().casefold()[:100], plain, n=1, cutoff=0.6)
            hint = f' (did you mean "{headers[plain.index(close[0])].strip()}"?)' if close else ""
            missing.append(f'"{column.name}"{hint}')
        positions += hits
    if missing:
        there = [f'"{header.strip()[:_SHOWN]}"' for header in headers if header.strip()]
        shown = ", ".join(there[:_SHOWN]) + (f" and {len(there) - _SHOWN} more" if len(there) > _SHOWN else "")
        raise LedgerError(
            f"{place}: there is no column {', '.join(missing)}. The columns there are {shown or 'none'}. "
            "If the names stand further down, set header_row."
        )
    return positions
