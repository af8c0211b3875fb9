"""What one connection may do to a service: how many requests at once, how fast, and when to stop.

Time is the running event loop's own, so that a simulated loop drives it.
"""

import asyncio
from collections import deque

from octo_sync.model import Limits

__all__ = ["Budget", "Gate"]

MINUTE = 60.0
SLOWEST = 1.0
"""Requests a minute below which a 429 does not slow further."""

UNKNOWN = 60.0
"""Requests a minute assumed to be too fast when fewer were sent before the first 429."""

RECOVERY = 0.2
"""Requests a minute regained with each good answer: a fifth of the rate per minute, at any rate."""


class Budget:
    """Concurrency, a token bucket that adapts to 429, pauses the service asks for, and a brake on 4xx (Q1, Q2).

    `slots` bounds the calls at work. The bucket holds a tenth of a minute's requests, at most one per slot, and refills
    so that no 60 seconds ever hold more than `requests_per_minute`. A 429 halves the rate (once for all requests that
    were already on the wire), good answers raise it again slowly. Without `requests_per_minute` there is no rate until
    the first 429, which halves what was really sent in the minute before; the retry of that first one goes as soon as
    backoff or the service says.
    """

    def __init__(self, limits: Limits) -> None:
        self.slots = asyncio.Semaphore(max(1, limits.concurrency))
        self._limits = limits
        self._ceiling = limits.requests_per_minute
        self._rate = self._ceiling
        self._tokens = self._burst
        self._filled_at: float | None = None
        self._paused_until = 0.0
        self._halved_at = -1.0
        self._started: deque[float] = deque(maxlen=10_000)
        self._refused: deque[float] = deque(maxlen=max(1, limits.max_4xx_per_minute))

    @property
    def requests_per_minute(self) -> float | None:
        """The rate now, None while there is none."""
        return self._rate

    def wait(self) -> float:
        """Seconds until the next request may go; 0.0 takes its token. Call it again after waiting."""
        now = asyncio.get_running_loop().time()
        wait = max(self._paused_until - now, self._brake(now))
        if wait > 0:
            return wait
        if self._rate is not None:
            self._fill(now, self._rate)
            if self._tokens < 1 - 1e-9:
                return (1 - self._tokens) * MINUTE / self._refill(self._rate)
            self._tokens -= 1
        self._started.append(now)
        return 0.0

    def heard(self, status: int, *, started: float, pause: float | None = None) -> None:
        """Learn from an answer to a request that started at loop time `started`."""
        now = asyncio.get_running_loop().time()
        if 400 <= status < 500:  # noqa: PLR2004
            self._refused.append(now)
        if status == 429:  # noqa: PLR2004
            self._paused_until = max(self._paused_until, now + (pause or 0.0))
            if started > self._halved_at:
                self._halve(now)
        elif status < 400 and self._rate is not None:  # noqa: PLR2004
            rate = self._rate + RECOVERY
            self._rate = rate if self._ceiling is None else min(rate, self._ceiling)

    def _halve(self, now: float) -> None:
        rate = self._rate
        if rate is None:
            rate = max(UNKNOWN, float(sum(1 for moment in self._started if moment > now - MINUTE)))
            self._filled_at, self._tokens = now, 1.0
        self._rate = max(rate / 2, min(SLOWEST, rate))
        self._tokens = min(self._tokens, self._burst)
        self._halved_at = now

    def _fill(self, now: float, rate: float) -> None:
        if self._filled_at is not None:
            self._tokens = min(self._burst, self._tokens + (now - self._filled_at) * self._refill(rate) / MINUTE)
        self._filled_at = now

    @property
    def _burst(self) -> float:
        return 1.0 if self._rate is None else max(1.0, min(float(self._limits.concurrency), self._rate / 10))

    def _refill(self, rate: float) -> float:
        return rate - (self._burst - 1)

    def _brake(self, now: float) -> float:
        """Seconds until fewer than `max_4xx_per_minute` refusals lie within the last minute.

        Requests already on the wire may overshoot it by `concurrency - 1`: hence 50 for services that block at 60.
        """
        if len(self._refused) < (self._refused.maxlen or 0):
            return 0.0
        return self._refused[0] + MINUTE - now


class Gate:
    """Stops a connection whose token is refused, after `limit` calls at most.

    While the token is trusted everybody passes. Before the first good answer, and again after a refusal, the refusals
    heard plus the requests on the wire stay within `limit`; a good answer to a request that started after the last
    refusal restores trust. At `limit` refusals the gate shuts until `reopen`.
    """

    def __init__(self, limit: int = 3) -> None:
        self.shut = False
        self._limit = limit
        self._trusted = False
        self._refusals = 0
        self._count = 0
        self._refused_at = 0
        self._on_wire: set[int] = set()
        self._changed = asyncio.Event()

    async def enter(self) -> int | None:
        """A ticket for one request, None when the gate is shut. May wait for the answers of others."""
        while not self.shut and not self._trusted and self._refusals + len(self._on_wire) >= self._limit:
            await self._changed.wait()
        if self.shut:
            return None
        self._count += 1
        self._on_wire.add(self._count)
        return self._count

    def leave(self, ticket: int, *, accepted: bool | None) -> None:
        """The request of `ticket` is over: the token was accepted, refused, or nobody knows (None). Once per ticket."""
        if ticket not in self._on_wire:
            return
        self._on_wire.discard(ticket)
        if accepted is False:
            self._trusted = False
            self._refusals += 1
            self._refused_at = self._count
            self.shut = self.shut or self._refusals >= self._limit
        elif accepted and ticket > self._refused_at:
            self._trusted = True
            self._refusals = 0
        self._wake()

    def reopen(self) -> None:
        """Try again: somebody says that the token is good now."""
        self.shut, self._trusted, self._refusals = False, False, 0
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
