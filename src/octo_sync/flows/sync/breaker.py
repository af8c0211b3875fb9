"""The circuit breaker: how each connection does, and which of its subjects is fetched next. Kept in memory only."""

from collections import deque
from dataclasses import dataclass, field

from octo_sync.destinations.base import Covered
from octo_sync.errors import AuthenticationRefused, RateLimited, ServiceError
from octo_sync.model import Claim, Source, Subject, SubjectKind

_HEAVY = 2
"""Lists of bookings fetched at a time per connection: memory is bounded by them (R12)."""
_AT_ONCE = 2
"""Fetches of one subject within a pause: the first sees the change, the second whatever came while it was under way."""
_PRUNE = 4096
GIVEN_UP = "given_up"
"""The journal's setting that says when a connection was given up last, and why."""


@dataclass(slots=True)
class Trouble:
    """What went wrong with a connection as a whole, and why its subjects were given back."""

    connection: str
    error: ServiceError

    @property
    def refused(self) -> bool:
        """Whether the token was."""
        return isinstance(self.error, AuthenticationRefused)

    @property
    def why(self) -> str:
        """In our own words: a service's may be about a person, and this is kept."""
        status = self.error.status
        if self.refused:
            return f"the token is refused ({status})" if status else "the token is refused"
        if isinstance(self.error, RateLimited):
            return "the service permits no more for now"
        return f"the service answers {status}" if status else "the service does not answer"


@dataclass(slots=True)
class Health:
    """A connection's run of failures; one success ends it."""

    failures: int = 0
    stopped: Trouble | None = None
    stopped_at: float = 0.0
    unwell: ServiceError | None = None
    """Why it was given up last; None since it answered."""
    answered: bool = False
    """Whether anything came of a first request; until then it goes alone, and is for the products where they are owed."""
    in_flight: int = 0
    heavy: int = 0
    """Lists of bookings in flight: megabytes each, and no faster for being many."""
    claimed: deque[tuple[Claim, Covered | None]] = field(default_factory=deque)

    @property
    def waits(self) -> bool:
        """Whether only heavy claims are left, which must wait; lighter ones may be claimed meanwhile."""
        return self.heavy >= _HEAVY and all(c.subject.kind is SubjectKind.BOOKINGS for c, _ in self.claimed)

    def next(self) -> tuple[Claim, Covered | None] | None:
        """The next claim to fetch, or None while only heavy ones are left and enough of them are in flight."""
        if not self.answered:
            if self.in_flight:
                return None
            # An address that is none of a service shows there: other paths need not exist.
            first = next((c for c in self.claimed if c[0].subject.kind is SubjectKind.PRODUCTS), None)
            if first:
                self.claimed.remove(first)
                return first
        for index, (claim, covered) in enumerate(self.claimed):
            if self.heavy < _HEAVY or claim.subject.kind is not SubjectKind.BOOKINGS:
                del self.claimed[index]
                return claim, covered
        return None


class Throttle:
    """A subject that notifications asked for again and again is fetched twice at once, then only every so often.

    Ten thousand deliveries about one booking must not become ten thousand requests, and the first of them must not wait. Who
    starts anew may fetch once more. `rest` is in seconds, as times are, of any steady clock; 0 switches it off.
    """

    def __init__(self, rest: float) -> None:
        self._rest = rest
        self._begun: dict[Subject, deque[float]] = {}

    def begun(self, claim: Claim, now: float) -> None:
        """A fetch begins. Only those asked for by notifications and their confirmations count."""
        if not self._rest or claim.source not in (Source.NOTIFICATION, Source.CONFIRM):
            return
        if len(self._begun) >= _PRUNE:
            self._begun = {s: times for s, times in self._begun.items() if now - times[-1] < self._rest}
        self._begun.setdefault(claim.subject, deque(maxlen=_AT_ONCE)).append(now)

    def throttled(self, now: float) -> list[Subject]:
        """The subjects not to be fetched now."""
        return [s for s, times in self._begun.items() if self._left(times, now) > 0]

    def first(self, now: float) -> float | None:
        """Seconds until the first throttled subject may be fetched again; None when none is throttled."""
        return min((left for times in self._begun.values() if (left := self._left(times, now)) > 0), default=None)

    def _left(self, times: "deque[float]", now: float) -> float:
        return times[0] + self._rest - now if len(times) == _AT_ONCE else 0.0
