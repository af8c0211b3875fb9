"""Rate limits, when a quirk asks for them."""

import collections

from octo_sync.sandbox.errors import OctoError
from octo_sync.sandbox.messages import Answer, refused
from octo_sync.sandbox.service import Service

MINUTE = 60.0
_CLIENT_ERROR = 400
_SERVER_ERROR = 500


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
        """A 429 when a limit is exceeded. Booking calls are not counted, retries are."""
        now = self._service.clock.seconds()
        if self._service.quirks["block_after_4xx"] and now < self._blocked_until:
            return self._too_many(self._blocked_until - now, "Retry-After")
        limit = self._service.quirks["rate_limit_per_minute"]
        if not limit or path.startswith("/bookings"):
            return None
        _forget(self._seen, now)
        if len(self._seen) >= limit:
            return self._too_many(self._seen[0] + MINUTE - now, "OCTO-RateLimit-RetryAfter")
        self._seen.append(now)
        return None

    def count(self, status: int) -> None:
        """Note an answer's status."""
        limit = self._service.quirks["block_after_4xx"]
        if not limit or not _CLIENT_ERROR <= status < _SERVER_ERROR:
            return
        now = self._service.clock.seconds()
        _forget(self._refused, now)
        self._refused.append(now)
        if len(self._refused) >= limit:
            self._blocked_until = now + MINUTE

    def decorate(self, answer: Answer, path: str) -> None:
        """Add the limit's headers."""
        limit = self._service.quirks["rate_limit_per_minute"]
        if limit and not path.startswith("/bookings"):
            answer.headers.append(("OCTO-RateLimit-Limit", str(limit)))
            answer.headers.append(("OCTO-RateLimit-Remaining", str(max(0, limit - len(self._seen)))))

    @staticmethod
    def _too_many(seconds: float, header: str) -> Answer:
        answer = refused(OctoError(429, "TOO_MANY_REQUESTS", "Too many requests."))
        answer.headers.append((header, str(max(1, int(seconds + 0.999)))))
        return answer


def _forget(times: collections.deque[float], now: float) -> None:
    while times and times[0] <= now - MINUTE:
        times.popleft()
