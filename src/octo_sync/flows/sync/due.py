"""Upkeep: what nobody notifies about. Holds that lapse by themselves, and bookings that were not looked at for long.

Level-triggered, like everything here: the copy says which bookings are on hold and when each was verified last, and what
is due is marked. Nothing of it is remembered anywhere else, so nothing of it can be forgotten by a crash.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from octo_sync.destinations.landing.lists import speaks_for
from octo_sync.destinations.relations import sql
from octo_sync.destinations.warehouse import Destination
from octo_sync.model import Subject, SubjectKind

THINNED = "confirmations_thinned_at"
"""The journal's setting that says when a connection's call budget was too short for all confirming looks."""
_MARGIN = timedelta(seconds=1)
"""After a hold's end, before it is looked at: a service needs a moment to notice itself."""
_AGAIN = timedelta(seconds=60)
"""Between two looks at a hold that should be over but is not."""
_WITHOUT_END = timedelta(seconds=300)
"""Between two looks at a hold whose end the service does not tell."""
_NEVER = datetime(9999, 1, 1, tzinfo=UTC)
"""Holds without an end say so with the last day that a calendar has, to which nothing can be added."""
_FAR = 14
"""Days before travel from which a booking is verified only as often as all are."""
_NEAREST = 1 / 24
_HOUR = timedelta(hours=1)

OPEN = ("ON_HOLD", "CONFIRMED", "PENDING")
"""States that a booking may still leave."""


@dataclass(frozen=True, slots=True)
class Known:
    """A booking as the copy has it: what decides when it is looked at again."""

    subject: Subject
    status: str
    local_date: date | None
    expires_at: datetime | None
    verified_at: datetime


def known_bookings(warehouse: Destination, statuses: Iterable[str] = OPEN, *, since: date | None = None) -> list[Known]:
    """The live bookings in these states, with the moment each was verified last, by its own look or by a list's.

    `since` leaves out those that travelled before. One whose own id was not found the last time is left to its list.
    """
    asked = sql("open_bookings", speaks_for=speaks_for("b", "w"))
    found = warehouse.query(asked, [list(statuses), since or date.min])
    return [
        Known(Subject(connection, SubjectKind.BOOKING, (uuid,)), status, day, expires, verified)
        for connection, uuid, status, day, expires, verified in found.rows
    ]


def unshown(warehouse: Destination) -> list[Subject]:
    """The live bookings without a day of travel that are in no answer on record, or there in two cases of their uuid."""
    found = warehouse.query(sql("unshown_bookings"))
    return [Subject(connection, SubjectKind.BOOKING, (uuid,)) for connection, uuid in found.rows]


def due_holds(known: Iterable[Known], now: datetime) -> tuple[list[Subject], datetime | None]:
    """The holds to look at now, and when the next one is due. Pure."""
    due: list[Subject] = []
    later: list[datetime] = []
    for booking in known:
        if booking.status != "ON_HOLD":
            continue
        at = min(booking.expires_at, _NEVER) + _MARGIN if booking.expires_at else booking.verified_at + _WITHOUT_END
        if booking.expires_at and booking.verified_at >= at:
            at = booking.verified_at + _AGAIN
        if at <= now:
            due.append(booking.subject)
        else:
            later.append(at)
    return due, min(later, default=None)


def verify_within(local_date: date | None, today: date, within: timedelta) -> timedelta:
    """How old the last look at an open booking may be: the closer travel, the younger. Pure."""
    if local_date is None or local_date < today:
        return within
    days = (local_date - today).days
    return within * min(1.0, max(_NEAREST, days / _FAR))


def calls_within(per_hour: int, last: timedelta, now: datetime) -> int:
    """How many of an hour's calls belong to the time `last` before `now`, an hour at most. Pure.

    They are spread over the hour of the clock, so that times that follow one another make up the budget to the call, and
    none is lost by a restart, however few they are.
    """
    into_hour = now - now.replace(minute=0, second=0, microsecond=0)
    return per_hour * into_hour // _HOUR - per_hour * (into_hour - last) // _HOUR


def due_verifications(
    known: Iterable[Known], now: datetime, *, within: timedelta, at_most: Callable[[str], int]
) -> dict[str, list[Subject]]:
    """Per connection the open bookings whose last look is too old, the most overdue first, at most so many. Pure."""
    overdue: dict[str, list[tuple[float, Subject]]] = defaultdict(list)
    for booking in known:
        allowed = verify_within(booking.local_date, now.date(), within)
        share = (now - booking.verified_at) / allowed
        if share >= 1:
            overdue[booking.subject.connection].append((-share, booking.subject))
    return {connection: [s for _, s in sorted(found)[: at_most(connection)]] for connection, found in overdue.items()}
