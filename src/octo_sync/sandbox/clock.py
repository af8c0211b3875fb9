"""The sandbox's clock: real time plus an offset, or frozen; always an argument, never a global."""

import datetime as dt
import time
from collections.abc import Callable

UTC = dt.UTC
DAY = 86_400


class Clock:
    """A clock that can be shifted, frozen and advanced.

    Args:
        source: seconds since 1970 UTC; the system clock when not given.
        start: the instant the clock shows now; when not given it shows the source's time.
        frozen: whether it stands still until advanced.
    """

    def __init__(
        self, source: Callable[[], float] | None = None, *, start: dt.datetime | None = None, frozen: bool = False
    ) -> None:
        self._source = source or time.time  # noqa: TID251 - the one adapter that touches the system clock
        self._offset = 0.0
        self._stopped: float | None = None  # what the source showed when the clock was frozen
        if start is not None:
            self.set(start)
        if frozen:
            self.freeze()

    def seconds(self) -> float:
        """Seconds since 1970 UTC."""
        return self._offset + (self._source() if self._stopped is None else self._stopped)

    def whole(self) -> int:
        """Seconds since 1970 UTC without the fraction."""
        return int(self.seconds())

    def now(self) -> dt.datetime:
        """The instant shown, aware, in UTC."""
        return dt.datetime.fromtimestamp(self.seconds(), UTC)

    def set(self, instant: dt.datetime) -> None:
        """Show this instant from now on."""
        self.advance(instant.timestamp() - self.seconds())

    def advance(self, seconds: float) -> None:
        """Move the clock, also when frozen."""
        self._offset += seconds

    def freeze(self) -> None:
        """Stand still."""
        if self._stopped is None:
            self._stopped = self._source()

    def thaw(self) -> None:
        """Run again from the instant shown."""
        self._offset = self.offset
        self._stopped = None

    @property
    def frozen(self) -> bool:
        """Whether the clock stands still."""
        return self._stopped is not None

    @property
    def offset(self) -> float:
        """Seconds between the instant shown and the source."""
        return self.seconds() - self._source()


def utc_text(epoch: int) -> str:
    """An instant as `2026-11-20T10:00:00Z`."""
    return dt.datetime.fromtimestamp(epoch, UTC).isoformat().replace("+00:00", "Z")


def utc_text_or_none(epoch: int | None) -> str | None:
    """The same, passing None through."""
    return None if epoch is None else utc_text(epoch)
