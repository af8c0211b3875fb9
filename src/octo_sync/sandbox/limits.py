"""Rate limits, when a quirk asks for them."""

import collections
import math
from email.utils import formatdate

from octo_sync.sandbox.errors import OctoError
from octo_sync.sandbox.messages import Answer, refused
from octo_sync.sandbox.service import Service

MINUTE = 60.0
_PREFIXES = {"octo": "OCTO-RateLimit", "ratelimit": "RateLimit", "x-ratelimit": "X-RateLimit"}


class Limits:
    """Counts requests and client errors over the last minute of the sandbox's clock.

    Args:
        service: the service behind.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self.reset()

    def reset(self) -> None:
        """Forget what was counted."""
        self._seen: collections.deque[float] = collections.deque()
        self._refused: collections.deque[float] = collections.deque()
        self._blocked_until = 0.0

    def refuse(self, path: str) -> Answer | None:
        """A 429 when a limit is exceeded. Refused requests are not counted."""
        now = self._service.clock.seconds()
        if self._service.quirks["block_after_4xx"] and now < self._blocked_until:
            return self._too_many("Retry-After", self._blocked_until - now)
        limit = self._limit(path)
        if not limit:
            return None
        _forget(self._seen, now)
        if len(self._seen) >= limit:
            return self._too_many("OCTO-RateLimit-RetryAfter" if self._octo() else "Retry-After", self._reset_in(now))
        self._seen.append(now)
        return None

    def counted(self, answer: Answer, path: str) -> Answer:
        """The answer with the limit's headers, its status noted."""
        self._decorate(answer, path)
        self._count(answer.status)
        return answer

    def _count(self, status: int) -> None:
        limit = self._service.quirks["block_after_4xx"]
        if not limit or not 400 <= status < 500:  # noqa: PLR2004 - the errors of a client
            return
        now = self._service.clock.seconds()
        _forget(self._refused, now)
        self._refused.append(now)
        if len(self._refused) >= limit:
            self._blocked_until = now + MINUTE

    def _decorate(self, answer: Answer, path: str) -> None:
        limit = self._limit(path)
        prefix = _PREFIXES.get(self._service.quirks["rate_limit_style"])
        if not limit or prefix is None:
            return
        answer.headers.append((f"{prefix}-Limit", str(limit)))
        answer.headers.append((f"{prefix}-Remaining", str(max(0, limit - len(self._seen)))))
        if not self._octo():
            now = self._service.clock.seconds()
            # One says the seconds that are left, the other the second at which they are over.
            over = self._reset_in(now) + (now if prefix.startswith("X-") else 0)
            answer.headers.append((f"{prefix}-Reset", str(math.ceil(over))))

    def _octo(self) -> bool:
        return bool(self._service.quirks["rate_limit_style"] == "octo")

    def _limit(self, path: str) -> int | None:
        """The limit that concerns a request. In OCTO's own style booking calls are not counted."""
        if self._octo() and path.startswith("/bookings"):
            return None
        limit: int | None = self._service.quirks["rate_limit_per_minute"]
        return limit

    def _reset_in(self, now: float) -> float:
        return self._seen[0] + MINUTE - now if self._seen else 0.0

    def _too_many(self, header: str, seconds: float) -> Answer:
        answer = refused(OctoError(429, "TOO_MANY_REQUESTS", "Too many requests."))
        wait = max(1, math.ceil(seconds))
        text = str(wait)
        if header == "Retry-After" and self._service.quirks["rate_limit_style"] == "date":
            text = formatdate(math.ceil(self._service.clock.seconds()) + wait, usegmt=True)
        answer.headers.append((header, text))
        return answer


def _forget(times: collections.deque[float], now: float) -> None:
    while times and not now - MINUTE < times[0] <= now:  # later than now: the clock was set back
        times.popleft()
