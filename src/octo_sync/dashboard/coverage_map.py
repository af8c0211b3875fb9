"""The coverage map: product by travel month, by the age of the last verification. One look says what the copy is worth.

Pure: rows of `marts.coverage` in, cells with their words out. The age of a cell is that of the part of it that was verified
longest ago, counted to the copy's own now, the last verification of anything. Months that were over by then are shown, but
they do not count: nobody verifies them any more.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from octo_sync.flows import wording
from octo_sync.flows.wording import NOTHING

ROWS = 40
"""At most so many products are in the map."""

_BOUNDS = (
    ("hour", "1 h", timedelta(hours=1)),
    ("day", "24 h", timedelta(hours=24)),
    ("three", "3 d", timedelta(days=3)),
    ("week", "7 d", timedelta(days=7)),
)
_TIMES = "×"  # noqa: RUF001 - the sign that is meant
_OLDER, _OVER, _NEVER, _NONE = "older", "over", "never", "none"
LEGEND = (
    *((level, f"≤ {name}") for level, name, _ in _BOUNDS),
    (_OLDER, "older"),
    ("incomplete", "! incomplete"),
    (_NEVER, "✕ never answered"),
    (_OVER, "month is over"),
    (_NONE, f"{NOTHING} not fetched"),
)
"""Level → what a cell of it means, as the legend says it."""
_SEVERITY = {_NEVER: 6, _OLDER: 5, "week": 4, "three": 3, "day": 2, "hour": 1, _OVER: 0, _NONE: 0}


@dataclass(frozen=True, slots=True)
class Cell:
    """One product and month. `level` is one of `LEGEND`; `text` stands in the cell, `title` says all that is known."""

    month: str
    level: str
    text: str
    title: str
    is_complete: bool = True
    counts: bool = False
    """Whether the month is not over, so that it counts for what the copy is worth."""


@dataclass(frozen=True, slots=True)
class Line:
    """One product, or all bookings of a connection (`product_key` None), with a cell for every month."""

    product_key: str | None
    name: str
    cells: tuple[Cell, ...]
    oldest: datetime | None

    @property
    def incomplete(self) -> int:
        """Months that count and were answered in part."""
        return sum(c.counts and not c.is_complete and c.level != _NEVER for c in self.cells)

    @property
    def never(self) -> int:
        """Months that count and were never answered."""
        return sum(c.counts and c.level == _NEVER for c in self.cells)


@dataclass(frozen=True, slots=True)
class CoverageMap:
    """The map of one supplier. `lines` are drawn, the bookings first; `hidden` are the products that are not."""

    supplier: str
    months: tuple[date, ...]
    lines: tuple[Line, ...]
    hidden: tuple[Line, ...]
    worth: str
    is_whole: bool
    """Whether everything that counts was answered wholly."""


def coverage_map(supplier: str, rows: Iterable[Mapping[str, Any]], now: datetime, today: date) -> CoverageMap:
    """The map of one supplier: each product once, and the bookings of each connection that sells for it.

    Args:
        supplier: Its key.
        rows: Its rows of `sync_coverage`; none of other suppliers.
        now: When anything of the copy was last verified.
        today: The day of that at the business; months before its month are over.
    """
    found: dict[tuple[str | None, str | None], dict[date, Mapping[str, Any]]] = defaultdict(dict)
    for row in rows:
        found[row["product_key"], row["channel_name"]][row["travel_month"] or row["booking_month"]] = row
    several = sum(product is None for product, _ in found) > 1
    months = tuple(sorted({month for cells in found.values() for month in cells}))
    this_month = today.replace(day=1)
    lines = [
        _line(product, f"{channel}: all bookings" if several else "All bookings", cells, months, now, this_month)
        for (product, channel), cells in found.items()
    ]
    products = sorted((each for each in lines if each.product_key is not None), key=_place)
    bookings = [each for each in lines if each.product_key is None]
    return CoverageMap(
        supplier=supplier,
        months=months,
        lines=(*bookings, *products[:ROWS]),
        hidden=tuple(products[ROWS:]),
        worth=_worth(products, bookings, now),
        is_whole=not any(each.never or each.incomplete for each in lines),
    )


def _place(line: Line) -> tuple[int, int, int, str, str]:
    """The worst come first."""
    level = max((_SEVERITY[c.level] for c in line.cells if c.counts), default=0)
    return -line.never, -line.incomplete, -level, line.name.casefold(), line.product_key or ""


def _line(
    product: str | None,
    bookings: str,
    cells: Mapping[date, Mapping[str, Any]],
    months: Sequence[date],
    now: datetime,
    this_month: date,
) -> Line:
    name = next((str(row["product_name"]) for row in cells.values() if row.get("product_name")), product or "")
    verified = [
        row["verified_at_utc"] for month, row in cells.items() if row["verified_at_utc"] and month >= this_month
    ]
    if product is None:
        by_booking = any(row.get("booking_month") for row in cells.values())
        name = f"{bookings}{', by month of booking' if by_booking else ''}"
    return Line(
        product_key=product,
        name=name,
        cells=tuple(
            _cell(name, f"{month:%Y-%m}", cells.get(month), now, counts=month >= this_month) for month in months
        ),
        oldest=min(verified, default=None),
    )


def _cell(name: str, month: str, row: Mapping[str, Any] | None, now: datetime, *, counts: bool) -> Cell:
    if row is None:
        return Cell(month, _NONE, NOTHING, f"{name}, {month}: not fetched.")
    if not row["parts"] or row["verified_at_utc"] is None:
        title = f"{name}, {month}: asked for and never answered."
        return Cell(month, _NEVER, "✕ never", title, is_complete=False, counts=counts)
    age = now - row["verified_at_utc"]
    level = next((level for level, _, bound in _BOUNDS if age <= bound), _OLDER if counts else _OVER)
    is_complete = bool(row["is_complete"])
    text = wording.age(age).replace(" days", " d")
    text = text if is_complete else f"! {text}"
    return Cell(month, level, text, _title(name, month, row, age), is_complete=is_complete, counts=counts)


def _title(name: str, month: str, row: Mapping[str, Any], age: timedelta) -> str:
    """When, by what, what was asked for, and whether the answer was complete."""
    at = wording.instant(row["verified_at_utc"])
    said = [
        f"{name}, {month}: verified {at}, {wording.age(age)} before the copy's now, by {row['verified_by'] or 'unknown means'}"
    ]
    if first := row["window_start"] or row.get("booked_start"):
        said.append(f"asked for {first} to {row['window_end'] or row.get('booked_end')}")
    said.append(f"{row['row_count'] or 0:,} records")
    if not row["is_complete"]:
        answered, wanted = row["parts"], row["parts_wanted"]
        said.append(f"incomplete: {answered} of {wanted} parts answered" if answered < wanted else "incomplete")
    else:
        said.append("complete")
    if row["missing_capabilities"]:
        said.append(f"without {row['missing_capabilities']}, which the service did not serve")
    return "; ".join(said) + "."


def _worth(products: Sequence[Line], bookings: Sequence[Line], now: datetime) -> str:
    """What it comes to, in words: all products and months verified within 24 h, and how many are incomplete."""
    said = _said(products, now, "product", "product-months"), _said(bookings, now, "", "months of bookings")
    return " ".join(filter(None, said)) or "Nothing of what lies ahead was asked for yet."


def _said(lines: Sequence[Line], now: datetime, noun: str, unit: str) -> str:
    cells = [cell for line in lines for cell in line.cells if cell.counts]
    if not cells:
        return ""
    verified = [cell for cell in cells if cell.level != _NEVER]
    months = wording.plural(len({cell.month for cell in cells}), "month")
    subject = f"{months} of bookings"
    if noun:
        is_grid = len({len([c for c in line.cells if c.counts]) for line in lines}) == 1
        subject = f"{wording.plural(len(lines), noun)} {_TIMES} {months}" if is_grid else f"{len(cells):,} {unit}"
    oldest = min((line.oldest for line in lines if line.oldest), default=None)
    if oldest is None:
        return f"None of {subject} was ever verified."
    everything = subject if subject.startswith("1 ") else f"All {subject}"
    head = everything if len(verified) == len(cells) else f"{len(verified):,} of {len(cells):,} {unit}"
    levels = Counter(cell.level for cell in verified)
    within = next((name for level, name, _ in reversed(_BOUNDS) if levels[level]), "1 h")
    when = f", the oldest {wording.age(now - oldest)} ago" if levels[_OLDER] else f" within {within}"
    incomplete = sum(not cell.is_complete for cell in verified)
    remarks = [
        f"{count:,} {word}"
        for count, word in ((incomplete, "incomplete"), (len(cells) - len(verified), "never answered"))
        if count
    ]
    return f"{head} verified{when}{'; ' if remarks else ''}{', '.join(remarks)}."
