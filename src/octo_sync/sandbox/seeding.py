"""The seeded bookings: who bought what, when and through whom."""

import dataclasses
import math
import random

from octo_sync.sandbox import sales
from octo_sync.sandbox.catalog import seeded_uuid
from octo_sync.sandbox.clock import DAY
from octo_sync.sandbox.config import WRITE_NOTIFICATIONS, SandboxConfig, Token
from octo_sync.sandbox.nouns import (
    NOBODY,
    SLOTS_PER_DAY,
    Booking,
    Cancellation,
    Contact,
    Option,
    Product,
    Unit,
    UnitItem,
)
from octo_sync.sandbox.store import Store
from octo_sync.sandbox.zones import local_ordinal, slot_times, utc_midnight

_SHORT_PAST = 90
_LEAD = 35 * DAY  # seconds between booking and travel, on average
_SUMMER, _SWING = 200, 0.3  # the best day of the year, and by how much it is above the average
_FIRST_NAMES = (
    "Ana", "Bruno", "Clara", "Daisuke", "Emily", "Farid", "Grace", "Haruka", "Inês", "Jonas", "Keiko", "Liam",
)  # fmt: skip
_LAST_NAMES = (
    "Almeida", "Brown", "Carvalho", "Dubois", "Endō", "Fischer", "Garcia", "Haddad", "Itō", "Jones", "Khan",
    "Lopes",
)  # fmt: skip
_COUNTRIES = ("PT", "GB", "JP", "US", "DE", "BH", "FR", "NZ")
_NOTES = (
    "Vegetarian, please",
    "We arrive a little late",
    'Says "hello, world"; twice',
    "Anniversary 🎉",
    "Line one\nline two",
)
_REASONS = ("Changed plans", "Illness", None, "Duplicate booking")
_PAST_STATES = ("REDEEMED",) * 11 + ("CONFIRMED",) * 4 + ("CANCELLED",) * 3 + ("EXPIRED",) * 2
_FUTURE_STATES = ("CONFIRMED",) * 14 + ("CANCELLED",) * 3 + ("EXPIRED",) * 2 + ("ON_HOLD",)
_ON_REQUEST_STATES = ("CONFIRMED",) * 5 + ("PENDING",) * 2 + ("REJECTED",) * 2 + ("CANCELLED",)
_TRIES = 6
_OPEN_SPREAD = 3 * DAY


@dataclasses.dataclass(frozen=True, slots=True)
class _Trip:
    product: Product
    option: Option
    slot: int | None
    ordinal: int
    start: int


class Seeder:
    """Fills a store; deterministic in the seed and the anchor date."""

    def __init__(self, config: SandboxConfig, store: Store, today: int, tokens: tuple[Token, ...]) -> None:
        self._config = config
        self._store = store
        self._today = today
        self._midnight = utc_midnight(today)
        self._rng = random.Random(f"{config.seed}/bookings")
        self._products = list(store.products.values())
        sellers = [one for one in tokens if WRITE_NOTIFICATIONS in one.abilities] or tokens[:1]
        self._owners = [one.name for one in sellers for _ in range(one.share)]
        self._long = config.past > _SHORT_PAST

    def run(self) -> None:
        """Make the bookings."""
        if not self._products:
            return
        for number in range(self._config.bookings):
            self._store.put_booking(self._booking(number))

    def _booking(self, number: int) -> Booking:
        rng = self._rng
        for _ in range(_TRIES):
            trip = self._trip()
            status = self._status(trip)
            units = self._party(trip.option)
            if self._fits(trip, status, units):
                break
        else:
            status = "CANCELLED"
        return self._written(number, trip, status, units, rng)

    def _trip(self) -> _Trip:
        rng = self._rng
        product = self._products[int(len(self._products) * rng.random() ** 1.3)]
        option = product.options[0 if rng.random() < 0.7 else rng.randrange(len(product.options))]  # noqa: PLR2004
        if product.freesale and rng.random() < 0.5:  # noqa: PLR2004 - half of them open-dated
            instant = self._midnight - rng.randrange(self._config.past * DAY)
            return _Trip(product, option, None, local_ordinal(product.time_zone, instant), instant)
        ordinal = self._today + (self._day() if self._long else self._near_day())
        slot = ordinal * SLOTS_PER_DAY + rng.randrange(max(1, len(option.start_times)))
        return _Trip(product, option, slot, ordinal, slot_times(product, option, slot).start_epoch)

    def _near_day(self) -> int:
        """A day of travel, counted from today: most people travel within a few weeks of it."""
        reach = self._config.days if self._rng.random() < 0.75 else -self._config.past  # noqa: PLR2004
        return int(reach * self._rng.random() ** 1.4)

    def _day(self) -> int:
        """The same of a business with seasons; of the days to come as much is sold as was booked by now."""
        rng = self._rng
        while True:
            day = rng.randrange(-self._config.past, self._config.days + 1)
            turn = math.cos(math.tau * (self._today + day - _SUMMER) / 365.25)
            sold = math.exp(-max(0, day) * DAY / _LEAD)
            if rng.random() * (1 + _SWING) < sold * (1 + _SWING * turn):
                return day

    def _status(self, trip: _Trip) -> str:
        if trip.start < self._midnight:
            return self._rng.choice(_PAST_STATES)
        if not trip.product.instant_confirmation:
            return self._rng.choice(_ON_REQUEST_STATES)
        return self._rng.choice(_FUTURE_STATES)

    def _party(self, option: Option) -> list[Unit]:
        rng = self._rng
        party = [option.units[0]] * rng.choice((1, 1, 2, 2, 2, 3))
        if len(option.units) > 1:
            party.extend(rng.choice(option.units[1:]) for _ in range(rng.choice((0, 0, 1, 1, 2))))
        return party

    def _fits(self, trip: _Trip, status: str, units: list[Unit]) -> bool:
        if trip.slot is None:
            return True
        state = self._store.facts(trip.product, trip.option, trip.slot)
        if state.closed:
            return False
        if status in {"CANCELLED", "EXPIRED", "REJECTED"} or state.vacancies is None:
            return True
        return sum(unit.pax_count for unit in units) <= state.vacancies

    def _written(self, number: int, trip: _Trip, status: str, units: list[Unit], rng: random.Random) -> Booking:
        created = self._created(trip, status)
        confirmed = created + rng.randrange(30, 1_500) if status in {"CONFIRMED", "REDEEMED", "CANCELLED"} else None
        if status == "CANCELLED" and rng.random() < 0.1:  # noqa: PLR2004 - a cancelled hold was never confirmed
            confirmed = None
        redeemed = trip.start + rng.randrange(-600, 1_800) if status == "REDEEMED" else None
        if redeemed is not None:
            redeemed = max(redeemed, (confirmed or created) + 60)
        cancellation = self._cancellation(created, confirmed) if status == "CANCELLED" else None
        # Not on the day itself: what a hold gives back nobody is told, so two looks of one day show one state.
        opens_until = self._midnight + DAY + rng.randrange(_OPEN_SPREAD) if status in {"ON_HOLD", "PENDING"} else None
        expires = {"ON_HOLD": opens_until, "EXPIRED": created + 1_800}.get(status)
        contact = self._contact() if status not in {"ON_HOLD", "EXPIRED"} else NOBODY
        items = self._tickets(trip, status, units, redeemed)
        extra_items = sales.bought(rng, trip.option.extras[:1]) if trip.option.extras and rng.random() < 0.3 else ()  # noqa: PLR2004
        uuid = seeded_uuid(rng)
        updated = max(created, confirmed or 0, redeemed or 0, cancellation.at if cancellation else 0)
        if status == "EXPIRED" and expires is not None:
            updated = expires
        return Booking(
            uuid=uuid,
            id=self._id(trip.product, number, uuid),
            token=rng.choice(self._owners),
            status=status,
            test=rng.random() < 0.02,  # noqa: PLR2004
            product_id=trip.product.id,
            option_id=trip.option.id,
            slot=trip.slot,
            local_date=trip.ordinal,
            created=created,
            updated=updated,
            expires=expires,
            confirmed=confirmed,
            redeemed=redeemed,
            cancellation=cancellation,
            reseller_reference=f"RS-{number:06d}" if rng.random() < 0.8 else None,  # noqa: PLR2004
            supplier_reference=f"SB{number:06d}" if rng.random() < 0.85 else None,  # noqa: PLR2004
            contact=contact,
            notes=rng.choice(_NOTES) if rng.random() < 0.15 else None,  # noqa: PLR2004
            unit_items=items,
            extra_items=extra_items,
            price=sales.booking_price(trip.product, trip.option, trip.ordinal, items, extra_items),
            decide_at=opens_until if status == "PENDING" and self._config.pending_minutes is not None else None,
            decision=rng.choice(("CONFIRMED", "CONFIRMED", "CONFIRMED", "REJECTED")) if status == "PENDING" else None,
        )

    def _created(self, trip: _Trip, status: str) -> int:
        rng = self._rng
        if trip.slot is None:
            return trip.start
        if status in {"ON_HOLD", "PENDING"}:
            return self._midnight - rng.randrange(60, DAY)
        latest = min(self._midnight, trip.start) - 3_600
        if self._long:
            return latest - int(rng.expovariate(1 / _LEAD))
        earliest = self._midnight - self._config.past * DAY
        return rng.randrange(earliest, latest) if latest > earliest else latest - rng.randrange(DAY)

    def _cancellation(self, created: int, confirmed: int | None) -> Cancellation:
        since = confirmed or created
        at = min(since + self._rng.randrange(60, 10 * DAY), max(since + 60, self._midnight - 60))
        return Cancellation(self._rng.choice(("FULL", "FULL", "PARTIAL", "NONE")), self._rng.choice(_REASONS), at)

    def _tickets(self, trip: _Trip, status: str, units: list[Unit], redeemed: int | None) -> tuple[UnitItem, ...]:
        rng = self._rng
        items: list[UnitItem] = []
        for position, unit in enumerate(units):
            extras = unit.extras if unit.extras and rng.random() < 0.25 else ()  # noqa: PLR2004
            item = sales.ticket(
                rng,
                trip.product,
                unit,
                trip.ordinal,
                status=status,
                contact=self._contact() if rng.random() < 0.3 else NOBODY,  # noqa: PLR2004
                reseller_reference=f"L{position + 1}" if rng.random() < 0.3 else None,  # noqa: PLR2004
                extras=extras,
            )
            items.append(dataclasses.replace(item, redeemed=redeemed))
        return tuple(items)

    def _contact(self) -> Contact:
        rng = self._rng
        first, last = rng.choice(_FIRST_NAMES), rng.choice(_LAST_NAMES)
        number = rng.randrange(100_000)
        return Contact(
            full_name=f"{first} {last}",
            first_name=first,
            last_name=last,
            email_address=f"guest{number:05d}@example.com",
            # Numbers of this block are reserved for fiction.
            phone_number=f"+447700900{number % 1_000:03d}" if rng.random() < 0.8 else None,  # noqa: PLR2004
            locales=rng.choice((("en",), ("pt", "en"), ("ja",), ())),
            postal_code=f"{number % 9_000 + 1_000}" if rng.random() < 0.4 else None,  # noqa: PLR2004
            country=rng.choice(_COUNTRIES),
            notes="Call before noon" if rng.random() < 0.05 else None,  # noqa: PLR2004
        )

    def _id(self, product: Product, number: int, uuid: str) -> str:
        if product.id.isdigit():
            return str(100_000 + number)
        return uuid if product.id_style == "pipe" else f"BK-{number:06d}"
