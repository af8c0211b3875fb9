"""What one connection may do to a service: how many requests at once, how fast, and when to stop.

Time is the running event loop's own, so that a simulated loop drives it.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from math import ceil, inf

from octo_sync.model import Limits
from octo_sync.octo.pace import Pace, Stated

MINUTE = 60.0
MOMENT = 1e-6
"""Seconds that are not worth waiting for: sums of floats leave as much."""
ALONE = 5.0
"""Seconds that others wait for the answer to a request that goes alone: one that hangs must not hold them for longer."""

TRIES = 8
"""Refusals in a row, with nothing let through and a longer wait after each, after which a connection is given up: from half a
second on that is longer than a minute, the window that most services count in."""

WIDEN = 8
"""Answers after which one more request may be at work at once, as many as before the service refused some."""

SLACK = 1.02
"""How much longer than the service's window ours is: requests take a different time to arrive."""

IDLE = 0.1
"""Share of a time in which nobody asked, above which what was let through in it shows no limit."""

RISE = 2.0
"""Seconds by which the moment when more requests are left must move for a new window; by less it moves by rounding."""

REMEMBERED = 10_000
"""Requests whose times are remembered; a larger pace is kept in as much smaller a time."""


@dataclass(slots=True)
class _Row:
    """Refusals since the last request that was let through after one."""

    began: float
    """When the first of them was heard."""
    heard: float
    """When the last of those was heard that were not on the wire yet at the one before."""
    count: int = 1
    """Of these."""
    refused: int = 1
    passed: int = 0
    """Requests that were on the wire when the first refusal came, by their answers."""
    is_limit: bool = True
    """Whether all of them were 429: a 503 with a wait is an outage."""


class Budget:
    """What a connection may cost: our own limits, the pace that the service states or shows, and a brake on 4xx (Q1, Q2).

    `slots` bounds the calls at work. With `requests_per_minute` a bucket holds a tenth of a minute's requests, at most one
    per slot, and refills so that no 60 seconds ever hold more.

    What the service permits is `pace`, so many requests in so many seconds, and no such time ever holds more of ours. It is
    taken from the headers of any answer. Where they tell none, it is learned from what was let through until the service
    refused, and the time until it let something through again, when that was the same twice; and forgotten when the service
    refuses although it was kept.

    A refusal (429, or 503 with a wait) holds the whole connection: for as long as was asked, or longer after each. Then
    one request goes alone. `gave_up` is the wait for which nobody should stay: what was asked is longer
    than `retry_after_cap`, or nothing was let through for so long, or `TRIES` times.
    """

    def __init__(self, limits: Limits, jitter: Callable[[], float] = lambda: 1.0) -> None:
        self.slots = asyncio.Semaphore(max(1, limits.concurrency))
        self.pace: Pace | None = None
        self.gave_up: float | None = None
        self._limits, self._jitter = limits, jitter
        self._tokens = self._burst
        self._filled_at: float | None = None
        self._paused_until = 0.0
        self._started: deque[float] = deque(maxlen=REMEMBERED)
        self._refused: deque[float] = deque(maxlen=max(1, limits.max_4xx_per_minute))
        self._on_wire = 0
        self._width = max(1, limits.concurrency)
        self._answers = 0
        self._is_alone = False
        self._row: _Row | None = None
        self._passed, self._passed_since = 0, 0.0
        self._busy_until = inf
        self._idle = 0.0
        """Seconds since then in which nothing was asked and nobody waited."""
        self._last: Pace | None = None
        """What was let through between the last two rows of refusals; None where it shows no limit."""
        self._left, self._left_until = inf, 0.0
        self._longest_reset = 0.0
        self.is_told = False
        """Whether the pace is what the service says, and not what it did."""
        self._changed = asyncio.Event()

    @property
    def permits(self) -> Pace | None:
        """The slower of our own limit and the pace that the service permits."""
        own = self._limits.requests_per_minute
        mine = Pace(max(1, int(own)), MINUTE * max(1, int(own)) / own) if own else None
        both = [pace for pace in (mine, self.pace) if pace]
        return min(both, key=lambda pace: pace.requests / pace.seconds, default=None)

    async def turn(self, ends: float = inf) -> float:
        """Wait until a request may go, and let it: 0.0. Or the seconds that takes, if it is later than loop time `ends`.

        Also 0.0 when the connection is given up meanwhile: look at `gave_up`. Each turn ends in `over`.
        """
        time = asyncio.get_running_loop().time
        while self.gave_up is None and (wait := self.wait()) > 0:
            if wait < inf and time() + wait >= ends:
                return wait
            changed = self._changed
            with suppress(TimeoutError):
                async with asyncio.timeout(None if wait == inf else wait):
                    await changed.wait()
        return 0.0

    def wait(self) -> float:
        """Seconds until the next request may go; 0.0 takes its turn. `inf`: as soon as one of those on the wire is over."""
        now = asyncio.get_running_loop().time()
        wait = self._until_next(now)
        if not self._on_wire:
            self._idle += max(0.0, now - self._busy_until)
            self._busy_until = now + wait
        if wait > 0:
            return wait
        if not self._started:
            self._passed_since = now
        self._started.append(now)
        self._on_wire += 1
        self._left -= 1
        return 0.0

    def over(self) -> None:
        """A request is over, whatever came of it."""
        self._on_wire -= 1
        self._busy_until = asyncio.get_running_loop().time()
        self._wake()

    def heard(self, status: int, *, started: float, asked: float | None = None, told: Stated | None = None) -> bool:
        """Learn from an answer to a request that started at loop time `started`; whether it asks for patience."""
        now = asyncio.get_running_loop().time()
        if 400 <= status < 500:  # noqa: PLR2004
            self._refused.append(now)
        if told:
            self._take(told, now)
        is_refusal = status == 429 or (status == 503 and asked is not None)  # noqa: PLR2004
        if is_refusal:
            self._hold(now, started, asked or 0.0, is_limit=status == 429)  # noqa: PLR2004
        else:
            self._let(now, started)
        self._wake()
        return is_refusal

    def reopen(self) -> None:
        """Somebody says that it is worth trying again; the pause that was asked for is still kept."""
        self.gave_up, self._row = None, None
        self._wake()

    def needs(self, requests: int) -> float | None:
        """Seconds that so many requests take at the pace that is kept; None where there is none, and nothing is waited for."""
        now = asyncio.get_running_loop().time()
        pause = max(0.0, self._paused_until - now)
        rate = self._limits.requests_per_minute
        if self.pace is None and rate is None and not pause:
            return None
        seconds = pause
        if rate is not None:
            seconds = max(seconds, requests * MINUTE / rate)
        if (pace := self._kept) is not None:
            sent = self._sent(now - pace.seconds * SLACK)
            windows = ceil(max(0, requests - max(0, pace.requests - sent)) / pace.requests)
            if windows:
                began = self._started[-sent] if sent else now
                seconds = max(seconds, pause, began - now + windows * pace.seconds)
        return seconds

    def asked(self, now: float) -> int:
        """Requests that began within the time that the slower limit counts in; 0 where there is none."""
        pace = self.permits
        return self._sent(now - pace.seconds * SLACK) if pace else 0

    def held(self, now: float) -> float:
        """Seconds for which the service wants no request; 0.0: it takes one."""
        return max(0.0, self._paused_until - now, self._left_until - now if self._left < 1 else 0.0)

    def charge(self, requests: int, now: float, *, held: float = 0.0) -> None:
        """Another process has asked so many just now, and has been `held`. To be called before anything is asked here."""
        if held:
            self._paused_until, self._is_alone = max(self._paused_until, now + held), True
        self._started.extend([now] * requests)
        self._tokens, self._filled_at, self._passed_since = 0.0, now, now

    # -- what the service says ----------------------------------------------------------------------------------

    def _take(self, told: Stated, now: float) -> None:
        """Keep the limit that an answer tells."""
        cap = self._limits.retry_after_cap
        if told.left is not None and told.resets_in is not None and told.resets_in <= cap:
            until = now + told.resets_in
            if 0 < self._left_until < until - RISE:
                # Only where a window begins does its end say how long it is.
                self._longest_reset = max(self._longest_reset, told.resets_in)
            # Some of those on the wire are counted in it already: rather too few.
            self._left, self._left_until = told.left - max(0, self._on_wire - 1), until
        window = told.window or self._longest_reset
        if told.limit and 0 < window <= cap:
            self.pace, self.is_told = Pace(told.limit, window), True

    # -- what the service does ----------------------------------------------------------------------------------

    def _hold(self, now: float, started: float, asked: float, *, is_limit: bool) -> None:
        """The service refuses: nobody asks until the wait is over, and then one alone."""
        row, wait, limits = self._row, asked, self._limits
        if row is None:
            row = self._row = _Row(now, now)
        else:
            row.refused += 1
            if started > row.heard:
                row.heard, row.count = now, row.count + 1
        row.is_limit &= is_limit
        if not asked or row.count > 1:
            wait = max(wait, min(limits.backoff_cap, limits.backoff * 2 ** (row.count - 1)) * self._jitter())
        self._paused_until = max(self._paused_until, now + min(wait, limits.retry_after_cap))
        self._is_alone = True
        waited = now - row.began if row.count > 1 else 0.0
        if row.count >= TRIES or waited + wait > limits.retry_after_cap:
            self.gave_up = wait

    def _let(self, now: float, started: float) -> None:
        """The service answers: whatever it says, it was no refusal for asking too much."""
        row = self._row
        if row is not None and started > row.heard:
            self._learn(row, started)
            row = self._row = None
            self._passed, self._passed_since, self._idle = 0, started, 0.0
        self._passed += 1
        if row is not None:
            row.passed += 1
            return
        if self._left > 0 or now >= self._left_until:
            self._is_alone = False
        self._answers += 1
        if self._answers >= WIDEN and self._width < self._limits.concurrency:
            self._answers, self._width = 0, self._width + 1

    def _learn(self, row: _Row, started: float) -> None:
        """A row of refusals is over. Whether it was a limit, and which."""
        if row.refused == 1 and row.passed > 1:
            return  # others that were on the wire with it were let through: one refusal by the way
        self._width, self._answers = max(1, self._width // 2), 0
        if not self._passed or self.is_told or not row.is_limit:
            return
        seen, last, known = Pace(self._passed, started - self._passed_since), self._last, self.pace
        is_filled = self._idle <= seen.seconds * IDLE and seen.seconds <= self._limits.retry_after_cap * SLACK
        self._last = seen if is_filled and known is None else None
        if known is not None:
            if self._started[0] < started - known.seconds:
                self.pace = None  # it was kept, and was not it; before that an earlier run may have used it up
        elif is_filled and last and abs(seen.requests - last.requests) <= max(1, last.requests // 10):
            self.pace = seen  # and not the one before, which may have begun in the middle of the service's window

    # -- waiting ------------------------------------------------------------------------------------------------

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def _until_next(self, now: float) -> float:
        """Seconds until the next request may go; 0.0 takes it from what our own limit permits."""
        until_more_left = 0.0 if self._left >= 1 else self._left_until - now
        wait = max(self._paused_until - now, self._brake(now), self._window(now), until_more_left)
        if wait <= MOMENT and self._on_wire:
            if self._is_alone:
                wait = self._started[-1] + ALONE - now
            elif self._on_wire >= self._width:
                wait = inf
        if wait > MOMENT:
            return wait
        if (rate := self._limits.requests_per_minute) is not None:
            self._fill(now, rate)
            if self._tokens < 1 - 1e-9:
                return (1 - self._tokens) * MINUTE / self._refill(rate)
            self._tokens -= 1
        return 0.0

    def _sent(self, since: float) -> int:
        """Requests that were started after `since`, as far as they are remembered."""
        count = 0
        for moment in reversed(self._started):
            if moment <= since:
                break
            count += 1
        return count

    def _window(self, now: float) -> float:
        """Seconds until the pace permits one more request."""
        pace = self._kept
        if pace is None or len(self._started) < pace.requests:
            return 0.0
        return self._started[-pace.requests] + pace.seconds * SLACK - now

    @property
    def _kept(self) -> Pace | None:
        """The pace, in a shorter time where it is more than is remembered."""
        pace = self.pace
        if pace is None or pace.requests <= REMEMBERED:
            return pace
        return Pace(REMEMBERED, pace.seconds * REMEMBERED / pace.requests)

    def _fill(self, now: float, rate: float) -> None:
        if self._filled_at is not None:
            self._tokens = min(self._burst, self._tokens + (now - self._filled_at) * self._refill(rate) / MINUTE)
        self._filled_at = now

    @property
    def _burst(self) -> float:
        rate = self._limits.requests_per_minute
        return 1.0 if rate is None else max(1.0, min(float(self._limits.concurrency), rate / 10))

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
