"""What a service says about the pace it permits. Pure: headers in, numbers out.

Two things are said in many spellings. *Wait*: `Retry-After` (seconds or an HTTP date) and `OCTO-RateLimit-RetryAfter` (Q1).
*So many in so long, so many left*: `RateLimit-Limit`, `-Remaining` and `-Reset`, the same after `X-` and `OCTO-`, with
`-Minute` and the like behind it, and the later drafts' `RateLimit` and `RateLimit-Policy`. What makes no sense is not said.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import inf, isfinite

_HEADER = re.compile(
    r"(x-|octo-)?rate-?limit(?:-(limit|remaining|reset|retryafter|policy))?(?:-(second|minute|hour|day))?"
)
_SPANS = {"second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86_400.0}
_OCTO_SPAN = _SPANS["minute"]
"""Of `OCTO-RateLimit-Limit` (Q1), which says no window."""
_SHORT = {"q": "limit", "w": "window", "r": "remaining", "t": "reset"}
"""The later drafts' parameters."""
_EPOCH, _EPOCH_MS = 1e9, 1e11
"""From these on a reset is an instant, in seconds or in milliseconds, and no number of seconds to wait."""


@dataclass(frozen=True, slots=True)
class Pace:
    """At most so many requests in so many seconds."""

    requests: int
    seconds: float

    def __str__(self) -> str:
        for word, span in _SPANS.items():
            if abs(self.seconds - span) <= span / 20:
                return f"{self.requests:,} requests a {word}"
        return f"{self.requests:,} requests in {self.seconds:,.0f} s"


@dataclass(frozen=True, slots=True)
class Stated:
    """What one answer says: the limit, the window it is for, how many are left, in how many seconds there are more."""

    limit: int | None = None
    window: float | None = None
    left: int | None = None
    resets_in: float | None = None


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds the service asks to wait, `inf` for more than a number can say; None when it says nothing sensible.

    `Retry-After` is seconds or an HTTP date, `OCTO-RateLimit-RetryAfter` is seconds. The longer one counts.
    """
    asked = [
        seconds
        for name in ("retry-after", "octo-ratelimit-retryafter")
        if (seconds := _seconds(headers.get(name, ""), now)) is not None
    ]
    return max(asked, default=None)


def stated(headers: Mapping[str, str], now: datetime) -> Stated | None:
    """The limit that an answer tells; of several the one with the fewest requests left, then the slowest."""
    found: dict[str, dict[str, float]] = defaultdict(dict)
    for name, text in headers.items():
        match = _HEADER.fullmatch(name.lower()) if "limit" in name.lower() else None
        if match is None:
            continue
        prefix, part, span = match.groups()
        for place, item in enumerate(_items(text, part)):
            # One header may hold several limits; those that are told in one place belong together.
            told = found[f"{span or ''}{place or ''}"]
            told.update(item)
            if span:
                told["window"] = _SPANS[span]
            elif prefix == "octo-":
                told.setdefault("window", _OCTO_SPAN)
    every = [each for told in found.values() if (each := _made(told, now))]
    return min(every, key=_strictness, default=None)


def _items(text: str, part: str | None) -> Iterator[dict[str, float]]:
    """The limits in one header's text, each by what is said: `limit`, `remaining`, `reset`, `window`."""
    if part and part != "policy":
        # `100, 100;w=60` of an early draft repeats the limit with its window.
        first = _number(text.replace(";", ",").partition(",")[0])
        numbers = {"reset" if part == "retryafter" else part: first}
        windows = [_number(w) for w in re.findall(r"\bw=(\d+)", text)]
        if part == "limit" and len(windows) == 1:
            numbers["window"] = windows[0]
        yield {name: number for name, number in numbers.items() if number is not None}
        return
    pairs = [[piece.strip().partition("=") for piece in item.split(";")] for item in text.split(",")]
    if part is None and all(len(item) == 1 for item in pairs):  # `limit=100, remaining=50, reset=5`
        pairs = [[pair for item in pairs for pair in item]]
    for item in pairs:
        named = {_SHORT.get(key.strip().lower(), key.strip().lower()): _number(value) for key, _, value in item}
        told = {key: number for key, number in named.items() if number is not None and key in {*_SHORT.values()}}
        if (first := _number(item[0][0])) is not None:  # `100;w=60`
            told["limit"] = first
        yield told


def _made(told: Mapping[str, float], now: datetime) -> Stated | None:
    limit, left, window, reset = (told.get(name) for name in ("limit", "remaining", "window", "reset"))
    if reset is not None and reset >= _EPOCH:
        reset = max(0.0, (reset / 1000 if reset >= _EPOCH_MS else reset) - now.timestamp())
    if not limit and left is None:
        return None
    return Stated(
        limit=int(limit) if limit else None,
        window=window or None,
        left=None if left is None else int(left),
        resets_in=reset,
    )


def _strictness(each: Stated) -> tuple[float, float]:
    rate = each.limit / each.window if each.limit and each.window else inf
    return inf if each.left is None else each.left, rate


def _number(text: str) -> float | None:
    try:
        number = float(text.strip().strip('"'))
    except ValueError:
        return None
    return number if number >= 0 and isfinite(number) else None


def _seconds(text: str, now: datetime) -> float | None:
    text = text.strip()
    try:
        seconds = float(text)
    except ValueError:
        try:
            moment = parsedate_to_datetime(text)
            # A date without a zone is UTC, as HTTP wants it.
            seconds = ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - now).total_seconds()
        except (ValueError, TypeError, IndexError, OverflowError):
            return None
        return max(seconds, 0.0)
    return seconds if seconds >= 0 else None  # NaN is not >= 0 either
