"""What was asked of a service and answered, and what a check of it says."""

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any, Literal

from octo_sync.errors import OctoSyncError, ServiceError
from octo_sync.flows.doctor.advice import NONE, Fix
from octo_sync.model import Horizon, Window
from octo_sync.octo import checking, quirks
from octo_sync.octo.answer import Answer

Result = Literal["passed", "differs", "unknown"]


@dataclass(frozen=True, slots=True)
class Check:
    """One thing a service may do otherwise: what was seen, what follows for the copy, and what to do about it, if anything."""

    name: str
    result: Result
    text: str
    consequence: str = ""
    fix: Fix = NONE


def passed(name: str, text: str) -> Check:
    """It does what the copy would wish."""
    return Check(name, "passed", text)


def unknown(name: str, text: str) -> Check:
    """What was seen does not tell."""
    return Check(name, "unknown", text)


def differs(name: str, text: str, consequence: str, fix: Fix = NONE) -> Check:
    """It does something else."""
    return Check(name, "differs", text, consequence, fix)


@dataclass(frozen=True, slots=True)
class Kept:
    """What of the pipeline file decides whether a habit of a service matters."""

    bookings: Horizon
    availability: Horizon
    pulls: bool = False
    """Whether [schedule] pulls bookings."""


@dataclass(slots=True)
class Seen:
    """What was asked and answered; None where it was not asked, or not answered."""

    products: Answer | None = None
    respelled: Answer | None = None
    """The products with the other spelling of capabilities, where one of them seems to be ignored."""
    offered: Answer | None = None
    """What the service says it can do, where something is missing."""
    availability: list[tuple[Answer, Window]] = field(default_factory=list)
    """Of one option each, over whole days."""
    far: tuple[Answer, Window] | None = None
    """Of the first of these options, the last days of the horizon."""
    bookings: list[tuple[Answer, Window]] = field(default_factory=list)
    """Lists by date, the first one being the widest."""
    halves: list[Answer] = field(default_factory=list)
    """The first list again, as two smaller ones that were both answered, where it had exactly 100 records."""
    cancelled: tuple[str, Answer, Answer] | None = None
    """A booking that the copy knows as cancelled: its uuid, its own answer, and the list of its day or days."""
    lapsed: Answer | ServiceError | None = None
    """A lapsed hold of a list, by its own id."""
    stranger: Answer | ServiceError | None = None
    """What was said to a token that nobody has."""
    unknown: dict[str, ServiceError | None] = field(default_factory=dict)
    """What was said of a product and of a booking that nobody has; None: it was shown as if it were there."""
    subscriptions: Answer | None = None
    no_subscriptions: ServiceError | None = None

    @property
    def listed(self) -> list[dict[str, Any]]:
        """The bookings of all lists."""
        return [row for answer, _ in self.bookings for row in rows_of(answer)]

    @property
    def departures(self) -> list[dict[str, Any]]:
        """The records of availability."""
        return [row for answer, _ in self.availability for row in rows_of(answer)]

    def dates(self) -> Iterator[tuple[str, Sequence[tuple[date | None, date | None]]]]:
        """Of each list of bookings what its dates mean, as far as it shows, and the days of travel and of booking in it."""
        for answer, window in self.bookings:
            with contextlib.suppress(OctoSyncError):
                checked = checking.check_bookings(answer.body)
                yield quirks.booking_dates_mean(checked.dates, window), checked.dates


def said_in(answer: Answer | None) -> object:
    """What an answer says; None where there is none, or no JSON in it."""
    with contextlib.suppress(OctoSyncError):
        return answer and answer.json()
    return None


def rows_of(answer: Answer | None) -> list[dict[str, Any]]:
    """The records of a list; none of an answer that is no list."""
    return objects(said_in(answer))


def objects(value: object) -> list[dict[str, Any]]:
    """Those entries of a list that are objects; none of what is no list."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def options_of(product: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Product and option ids of a product's options, as far as it has them."""
    options = [option for option in objects(product.get("options")) if option.get("id") and product.get("id")]
    return [(str(product["id"]), str(option["id"])) for option in options]


def day_of(row: Mapping[str, Any]) -> date | None:
    """The local day of a record of availability."""
    text = row.get("localDate") or row.get("localDateTimeStart")
    with contextlib.suppress(ValueError):
        if isinstance(text, str) and re.match(r"\d{4}-\d\d-\d\d", text):
            return date.fromisoformat(text[:10])
    return None


def days_ahead(today: date, days: int) -> Window:
    """So many days from tomorrow on."""
    return Window(today + timedelta(days=1), today + timedelta(days=days))
