"""Closed periods: what a month of travel had when somebody closed it. A closing is written once and never again.

They lie among the settings, a row each, so that they stay when the warehouse is made anew.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from datetime import datetime
from decimal import Decimal

import msgspec
from sqlalchemy import select

from octo_sync.journal.models import Setting, columns, to_text
from octo_sync.journal.store import Table

_PREFIX = "closed "


@dataclass(frozen=True, slots=True)
class ClosedBooking:
    """A sold booking of the month, as one connection saw it. Amounts are exact; None where nobody said."""

    connection_id: str
    booking_uuid: str
    currency: str | None
    retail_amount: Decimal | None
    net_amount: Decimal | None
    pax_count: int | None


@dataclass(frozen=True, slots=True)
class ClosedTotal:
    """What a `kind` came to, as `marts.month_totals` has it; `name` is that of a tax, `currency` '' where nobody said."""

    kind: str
    name: str
    connection_id: str
    currency: str
    bookings: int
    retail_amount: Decimal | None
    net_amount: Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Closing:
    """A month of travel, `2026-10`, when it was closed. `is_complete`: all its bookings were known then."""

    period: str
    closed_at: datetime
    is_complete: bool
    bookings: tuple[ClosedBooking, ...]
    totals: tuple[ClosedTotal, ...] | None = None
    """None where an older octo-sync closed it, which kept none."""
    digest: str = ""
    """SHA-256 of the month's figures and of whether all were known, hex; of an older octo-sync also of when it was closed."""

    def computed_digest(self) -> str:
        """What the digest is of these figures, whoever closes them, when, and on which engine."""
        totals = None if self.totals is None else _texts(self.totals)
        content = [self.period, self.is_complete, _texts(self.bookings), totals]
        return hashlib.sha256(msgspec.json.encode(content)).hexdigest()

    @property
    def is_altered(self) -> bool:
        """Whether these are not the figures that were closed."""
        return self.digest not in (self.computed_digest(), self._older_digest())

    def _older_digest(self) -> str:
        content: list[object] = [self.period, to_text(self.closed_at), self.is_complete, self.bookings]
        if self.totals is not None:
            content.append(self.totals)
        return hashlib.sha256(msgspec.json.encode(content)).hexdigest()


def _texts(rows: Sequence[ClosedBooking | ClosedTotal]) -> list[list[object]]:
    """Each row as texts and numbers, in one order; amounts have four decimals, as where they are kept."""
    texts = [[f"{value:.4f}" if isinstance(value, Decimal) else value for value in astuple(row)] for row in rows]
    return sorted(texts, key=msgspec.json.encode)


_READ = msgspec.json.Decoder(Closing)


class Closings(Table):
    """The settings that are closed periods."""

    def add(self, closing: Closing) -> bool:
        """Keep it, durably; False where the period is closed already, which changes nothing."""
        return self._store.settings.replace(_PREFIX + closing.period, None, msgspec.json.encode(closing).decode())

    def all(self) -> Sequence[Closing]:
        """All of them, the latest period first."""
        setting = columns(Setting)
        found = self._store.ask(select(setting.value).where(setting.name.like(f"{_PREFIX}%")))
        return sorted((_READ.decode(value) for (value,) in found), key=lambda one: one.period, reverse=True)

    def periods(self) -> set[str]:
        """Which are closed; cheap."""
        setting = columns(Setting)
        found = self._store.ask(select(setting.name).where(setting.name.like(f"{_PREFIX}%")))
        return {name.removeprefix(_PREFIX) for (name,) in found}
