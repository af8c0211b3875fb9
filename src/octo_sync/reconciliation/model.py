"""The nouns of a comparison: its rules, its two sides, and what came of it.

*Here* is this copy, *there* is the ledger, CRM or other system. An **item** is what was compared as one: a pair of rows, a
group of rows that share a key, or a row that only one side has. Every row of both sides belongs to exactly one item, so the
money of the items adds up to the money of the sides. A **difference** is what a person is to look at: one field of an item
that differs, or an item as a whole. It is the same difference tomorrow when `name`, `key`, `bucket` and `field` are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Any, Literal

from octo_sync.model import ValueKind, Window

Kind = ValueKind


class Bucket(StrEnum):
    """Where an item belongs."""

    MATCHED = "matched"
    MATCHED_WITHIN_TOLERANCE = "matched_within_tolerance"
    MISMATCHED = "mismatched"
    MISSING_HERE = "missing_here"
    MISSING_THERE = "missing_there"
    DUPLICATE_HERE = "duplicate_here"
    DUPLICATE_THERE = "duplicate_there"
    AMBIGUOUS = "ambiguous"
    TOO_FRESH = "too_fresh"
    OUT_OF_WINDOW = "out_of_window"
    ACCEPTED = "accepted"

    @property
    def is_difference(self) -> bool:
        """Whether somebody has to look at it."""
        return self.has_differences and self not in (Bucket.TOO_FRESH, Bucket.ACCEPTED)

    @property
    def has_differences(self) -> bool:
        """Whether its differences are counted; otherwise its items, each a booking."""
        return self not in (Bucket.MATCHED, Bucket.MATCHED_WITHIN_TOLERANCE, Bucket.OUT_OF_WINDOW)


@dataclass(frozen=True, slots=True)
class KeyRule:
    """One pass of matching: columns here, and those there that hold the same. More than one make a composite key."""

    here: tuple[str, ...]
    there: tuple[str, ...]

    @property
    def name(self) -> str:
        """What results call it: the columns here, joined by `+`."""
        return "+".join(self.here)


@dataclass(frozen=True, slots=True)
class FieldRule:
    """One field that is compared: the column here and the one there.

    `mapping` says which values here a value there stands for.
    """

    here: str
    there: str
    mapping: Mapping[str, tuple[str, ...]] | None = None


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far apart amounts may be: absolutely per currency (`default` for others), or by a share of the amount here."""

    absolute: Mapping[str, Decimal] = field(default_factory=dict)
    default: Decimal = Decimal(0)
    relative: Decimal = Decimal(0)


@dataclass(frozen=True, slots=True)
class Limit:
    """What fails a run: more than `above` in `measure`.

    A measure is a bucket, `differences` (of all buckets that somebody has to look at), `new` (those first seen in this run), or
    `abs_amount_eur` (the sum of |there - here| over all differences of one currency; of two currencies each
    amount in full).
    """

    measure: str
    above: Decimal

    def __str__(self) -> str:
        return f"{self.measure}>{self.above}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How two sides are compared, as the pipeline file says.

    `currency` and `date` name fields (their column here): whose currency amounts are in, and which day decides whether a row
    is inside `window`; `date_there` and `changed_there` are the columns there for that day and for when a row last changed.
    `strip` is a regular expression whose match at the start of a key is no part of it.
    """

    name: str
    keys: tuple[KeyRule, ...]
    fields: tuple[FieldRule, ...]
    window: Window
    now: datetime
    currency: str | None = "currency"
    date: str = "travel_date"
    date_there: str | None = None
    changed_there: str | None = None
    tolerance: Tolerance = Tolerance()
    grace: timedelta = timedelta(0)
    strip: str | None = None
    limits: tuple[Limit, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One side as it was read. `origin` is a sentence's name for it: a file, a table of a server, the read copy."""

    origin: str
    rows: int
    as_of: datetime | None = None
    verified_from: datetime | None = None
    """The oldest moment at which a row of it was seen at its source; None where nobody knows."""
    complete: bool | None = None
    """Whether all of the window was covered by answers; None where nobody knows."""
    notes: tuple[str, ...] = ()
    """What a reader should know of how it was read, each a sentence."""


@dataclass(frozen=True, slots=True)
class SideTotal:
    """Control total of one side and currency, counted from the rows as they were read, before any matching.

    `amounts` are per amount field (its name here), exact. `currency` is None for rows without one; of a word that stands for
    several it is that of the row's item here.
    """

    side: Literal["here", "there"]
    currency: str | None
    rows: int
    amounts: Mapping[str, Decimal]


@dataclass(frozen=True, slots=True)
class ExplainedMoney:
    """What one bucket adds to the difference of one currency: rows and money on both sides, and there less here."""

    bucket: Bucket | None
    """None for all of them together."""
    currency: str | None
    field: str
    rows_here: int
    rows_there: int
    amount_here: Decimal
    amount_there: Decimal

    @property
    def difference(self) -> Decimal:
        """There minus here."""
        return self.amount_there - self.amount_here


@dataclass(frozen=True, slots=True)
class Difference:
    """One field of an item that differs, or the item as a whole (`field` is '')."""

    field: str
    here_value: str | None
    there_value: str | None
    delta_amount: Decimal | None
    currency: str | None
    reason: str
    """A sentence."""
    code: str
    """The rule that gave the reason, e.g. `commission_left_out`; '' when none fits."""
    first_seen_at: datetime | None = None
    """When it was first found; None before results are stored."""
    is_new: bool = True


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Somebody has looked at a difference and lets it be, until a day (included) or for good."""

    key: str
    note: str
    accepted_by: str
    accepted_at: datetime
    until: date | None = None


@dataclass(frozen=True, slots=True)
class Earlier:
    """An item of an earlier comparison that is still open, and by what it is known again."""

    key: str
    booking_uuid: str | None
    day: date | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A pair, a group of rows with one key, or a row that only one side has.

    `here` and `there` are its rows, each a mapping of column to value with the columns named by keys and fields (and, here, a
    few that help a reader); `places` say where the rows there were read, e.g. `ledger.csv, line 17`.
    """

    key: str
    bucket: Bucket
    found: Bucket
    """The bucket before it was accepted or found too fresh; otherwise the same."""
    rule: str | None
    """The key that made the pair; None without a pair."""
    normalised: bool
    """Whether the keys were equal only after trimming, case, leading zeros or a prefix."""
    remark: str
    """What is worth saying of the item as a whole, e.g. that two lines make up the amount; else ''."""
    here: tuple[Mapping[str, Any], ...]
    there: tuple[Mapping[str, Any], ...]
    places: tuple[str, ...]
    differences: tuple[Difference, ...]
    acceptance: Acceptance | None = None
    connection: str | None = None
    booking_uuid: str | None = None
    day: date | None = None
    """The day that decides whether it is in the window, as `rows.day_of` says."""
    currency: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a comparison.

    `items` are all but plain matches: everything in a bucket that is a difference, what was accepted, too fresh or outside of
    the window, and matches that needed a tolerance, normalised keys or a remark. `counts` are the differences of each bucket,
    or its items where `Bucket.has_differences` is false.
    """

    rules: Rules
    here: Side
    there: Side
    kinds: Mapping[str, Kind]
    """What each compared field is."""
    items: Sequence[Item]
    counts: Mapping[Bucket, int]
    totals: Sequence[SideTotal]
    explained: Sequence[ExplainedMoney]
    resolved: int = 0
    """Differences that were open before and are no longer found."""
    breached: tuple[str, ...] = ()
    """The limits that were passed, each a sentence."""

    @property
    def differences(self) -> int:
        """How many somebody has to look at."""
        return sum(n for bucket, n in self.counts.items() if bucket.is_difference)

    @property
    def new(self) -> int:
        """Of these: not open before."""
        return sum(d.is_new for item in self.items if item.bucket.is_difference for d in item.differences)
