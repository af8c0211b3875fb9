"""The nouns of octo-sync.

A **subject** is the smallest thing that can be fetched again on its own: the supplier, the product list, one product, one
calendar month of one option's availability, one month of bookings by travel date, one booking. Each is one row in the
journal with two numbers: `wanted_seq` grows whenever anything says "look again", `landed_seq` is the `wanted_seq` that was
read *before* the fetch whose result is now committed in the warehouse. `wanted_seq > landed_seq` means dirty.

Notifications, schedules, timers, repairs and users all do the same thing: they mark subjects. One worker makes dirty
subjects clean. Nothing else coordinates anything.
"""

import calendar
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from typing import Literal, Protocol, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

__all__ = [
    "Claim",
    "Clock",
    "Connection",
    "Horizon",
    "Limits",
    "Secret",
    "Source",
    "Subject",
    "SubjectKind",
    "ValueKind",
    "Window",
    "day_at",
    "zone_of",
]


class Clock(Protocol):
    """The wall clock as an argument (R14). Waiting and monotonic time belong to the event loop that was handed in."""

    def now(self) -> datetime:
        """The current instant, timezone-aware, UTC."""
        ...


def zone_of(name: str) -> ZoneInfo | None:
    """The time zone of this name; None when this machine knows none of it."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def day_at(time_zone: str | None, now: datetime) -> date:
    """Which day it is at a place; an unknown time zone counts as UTC."""
    return now.astimezone(zone_of(time_zone or "UTC") or UTC).date()


ValueKind = Literal["text", "amount", "whole", "instant", "date", "flag"]
"""What values of a compared column are: exact decimals for amounts, UTC instants; `flag` is true or false."""


class SubjectKind(StrEnum):
    """What a subject is; the value is what the journal and the logs show."""

    SUPPLIER = "supplier"
    PRODUCTS = "products"
    PRODUCT = "product"
    AVAILABILITY = "availability"
    BOOKINGS = "bookings"
    BOOKING = "booking"
    SUBSCRIPTION = "subscription"


class Source(StrEnum):
    """Who said "look again"; stored with what it led to."""

    SCHEDULE = "schedule"
    NOTIFICATION = "notification"
    CONFIRM = "confirm"
    TIMER = "timer"
    REPAIR = "repair"
    USER = "user"


@dataclass(frozen=True, slots=True, order=True)
class Window:
    """Whole days at the venue, both ends included."""

    start: date
    end: date

    @classmethod
    def month(cls, text: str) -> Self:
        """The calendar month `YYYY-MM`."""
        year, month = (int(part) for part in text.split("-"))
        return cls(date(year, month, 1), date(year, month, calendar.monthrange(year, month)[1]))

    @property
    def days(self) -> int:
        """How many days the window has."""
        return (self.end - self.start).days + 1

    def clip(self, other: "Window") -> "Window | None":
        """The days that both windows have, or None."""
        start, end = max(self.start, other.start), min(self.end, other.end)
        return Window(start, end) if start <= end else None

    def months(self) -> Iterator[str]:
        """The calendar months it touches, `YYYY-MM`, in order."""
        year, month = self.start.year, self.start.month
        while (year, month) <= (self.end.year, self.end.month):
            yield f"{year:04d}-{month:02d}"
            year, month = (year, month + 1) if month < 12 else (year + 1, 1)  # noqa: PLR2004 - December

    def halves(self) -> "tuple[Window, Window]":
        """Two windows that together are this one; it must have at least two days."""
        middle = self.start + timedelta(days=self.days // 2 - 1)
        return Window(self.start, middle), Window(middle + timedelta(days=1), self.end)

    def __contains__(self, day: date) -> bool:
        return self.start <= day <= self.end

    def wider(self, before: int, after: int) -> "Window":
        """It and so many days on each side, cut to what a calendar can say."""
        first, last = self.start.toordinal() - before, self.end.toordinal() + after
        return Window(date.fromordinal(max(1, first)), date.fromordinal(min(date.max.toordinal(), last)))

    def __str__(self) -> str:
        return f"{self.start}..{self.end}"


@dataclass(frozen=True, slots=True)
class Horizon:
    """Days before and after today at the venue, e.g. `-90d..+365d`."""

    before: int
    after: int

    def window(self, today: date) -> Window:
        """The horizon as days, seen from `today`; cut to what a calendar can say."""
        return Window(today, today).wider(-self.before, self.after)

    def __str__(self) -> str:
        return f"{self.before:+d}d..{self.after:+d}d"


@dataclass(frozen=True, slots=True, order=True)
class Subject:
    """The smallest thing that can be fetched again on its own.

    `parts` are opaque OCTO ids and `YYYY-MM` months: nothing for `supplier`, `products` and `subscription`;
    (product id) · (product id, option id, month) · (month) · (booking uuid) for the others.
    """

    connection: str
    kind: SubjectKind
    parts: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """One unambiguous text for any ids: a JSON array, as stored in the journal."""
        return json.dumps(self.parts, ensure_ascii=False, separators=(",", ":"))

    @property
    def product_id(self) -> str | None:
        """OCTO product id, where the subject has one."""
        return self.parts[0] if self.kind in (SubjectKind.PRODUCT, SubjectKind.AVAILABILITY) else None

    @property
    def option_id(self) -> str | None:
        """OCTO option id, where the subject has one."""
        return self.parts[1] if self.kind is SubjectKind.AVAILABILITY else None

    @property
    def travel_month(self) -> str | None:
        """`YYYY-MM`, where the subject has one."""
        return self.parts[-1] if self.kind in (SubjectKind.AVAILABILITY, SubjectKind.BOOKINGS) else None

    @classmethod
    def from_key(cls, connection: str, kind: str, key: str) -> Self:
        """The inverse of `key`."""
        return cls(connection, SubjectKind(kind), tuple(json.loads(key)))

    def __str__(self) -> str:
        return " ".join([f"{self.connection}:{self.kind}", *self.parts])


@dataclass(frozen=True, slots=True)
class Claim:
    """A dirty subject handed to a worker. `wanted_seq` was read before the fetch (R2)."""

    subject: Subject
    wanted_seq: int
    attempts: int
    source: Source


class Secret:
    """A text that never shows itself: not in `repr`, not in a log, not in a traceback."""

    __slots__ = ("_value", "again", "origin")

    def __init__(self, value: str, origin: str = "given", again: "Callable[[], Secret] | None" = None) -> None:
        self._value = value
        self.origin = origin
        self.again = again
        """Looks there once more, where it may have changed meanwhile; raises ValueError with a sentence."""

    def reveal(self) -> str:
        """The secret itself; for the one place that sends it."""
        return self._value

    def __repr__(self) -> str:
        return f"set ({self.origin})"

    __str__ = __repr__


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one connection may cost (R12) and how patient it is (R13). Times in seconds, sizes in bytes."""

    concurrency: int = 6
    requests_per_minute: float | None = None
    deadline: float = 90.0
    connect_timeout: float = 10.0
    attempts: int = 4
    backoff: float = 0.5
    backoff_cap: float = 30.0
    retry_after_cap: float = 3600.0
    max_body: int = 256 * 1024 * 1024
    max_inflation: float = 200.0
    max_4xx_per_minute: int = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """One token at one OCTO service. Ids are unique per connection only, so its name is part of every key."""

    name: str
    base_url: str
    token: Secret
    capabilities: tuple[str, ...] = ("pricing", "content", "extras")
    capability_spelling: str = "prefixed"
    capability_overrides: Mapping[str, tuple[str, ...] | None] = field(default_factory=dict)
    languages: tuple[str, ...] = ("en",)
    headers: Mapping[str, str] = field(default_factory=dict)
    role: str = "reseller"
    channel: str = ""
    business_time_zone: str = "UTC"
    booking_date_means: str = "auto"
    limits: Limits = field(default_factory=Limits)
