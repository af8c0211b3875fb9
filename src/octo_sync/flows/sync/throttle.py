"""The throttle: a subject that notifications asked for again and again is fetched twice at once, then only every so often.

Ten thousand deliveries about one booking must not become ten thousand requests, and the first of them must not wait. Kept
in memory only: whoever starts anew may fetch once more. Pure apart from that; times are seconds of any steady clock.
"""

from collections import deque

from octo_sync.model import Claim, Source, Subject

__all__ = ["Throttle"]

_AT_ONCE = 2
"""Fetches of one subject within a pause: the first sees the change, the second whatever came while it was under way."""
_PRUNE = 4096


class Throttle:
    """Who was fetched when, as far as it matters. `rest` is in seconds; 0 switches it off."""

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
