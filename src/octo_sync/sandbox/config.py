"""What a sandbox can be started with."""

import dataclasses
import datetime as dt

READ_NOTIFICATIONS = "octo:read.notifications"
WRITE_NOTIFICATIONS = "octo:write.notifications"
BASE_PATH = "/octo/v1"


@dataclasses.dataclass(frozen=True, slots=True)
class Token:
    """An API token: its secret, a printable name for state and logs, what it may do, and how much it sells beside others."""

    secret: str
    name: str
    abilities: frozenset[str] = frozenset({READ_NOTIFICATIONS, WRITE_NOTIFICATIONS})
    sees_all: bool = False
    share: int = 1


DEFAULT_TOKENS = (
    Token("sandbox-token-all", "all", sees_all=True),
    Token("sandbox-token-a", "a"),
    Token("sandbox-token-b", "b"),
    Token("sandbox-token-readonly", "readonly", frozenset({READ_NOTIFICATIONS})),
    Token("sandbox-token-none", "none", frozenset()),
)

CHANNELS = (
    Token("sandbox-token-website", "website", share=5),
    Token("sandbox-token-citytrips", "citytrips", share=3),
    Token("sandbox-token-hotels", "hotels", share=2),
)
"""Who sells for the supplier of the demo; each sees its own bookings."""


@dataclasses.dataclass(slots=True)
class SandboxConfig:
    """Size, seed and behaviour of a sandbox; the defaults are the demo.

    Attributes:
        seed: everything random follows from it.
        products: number of products; the kinds of product take turns.
        bookings: number of bookings.
        past: availability and bookings begin so many days before today. Above 90 the bookings are those of a business
            with a history: spread over its seasons, each made some time before its day of travel.
        days: availability exists to this many days after today.
        today: the date the data is anchored to; the clock's UTC date when None.
        slots: when given, about this many availability slots between today and the horizon: sizes the products.
        at_home: all products are in one city, in its currency, but one that has no net price; else all over the world.
        start_times: start times per day and option of START_TIME products; the product's own when None.
        frozen: whether the clock stands still until advanced over the control plane.
        warm: encode every calendar month's availability before listening.
        cache_bytes: bound of the cache of encoded availability bodies.
        uuid_only_share: share of BOOKING_UPDATE deliveries whose data holds only the uuid.
        retry_base: first retry of a failed delivery after this many seconds, doubled each time up to `retry_max`.
        retry_attempts: attempts per delivery, the first included.
        pending_minutes: minutes until the supplier decides about a PENDING booking; never by itself when None.
    """

    seed: int = 7
    products: int = 8
    bookings: int = 5_000
    past: int = 90
    days: int = 180
    today: dt.date | None = None
    slots: int | None = None
    at_home: bool = False
    start_times: int | None = None
    frozen: bool = False
    warm: bool = False
    cache_bytes: int = 512 * 1024 * 1024
    tokens: tuple[Token, ...] = DEFAULT_TOKENS
    uuid_only_share: float = 0.1
    retry_base: float = 1.0
    retry_max: float = 128.0
    retry_attempts: int = 8
    delivery_timeout: float = 10.0
    pending_minutes: int | None = 30
    request_log: int = 2_000
    quirks: dict[str, object] = dataclasses.field(default_factory=dict)
    faults: list[dict[str, object]] = dataclasses.field(default_factory=list)


def demo_config() -> SandboxConfig:
    """Three channels of one city, and bookings of fourteen months: this year beside the last one."""
    return SandboxConfig(bookings=2_000, days=90, past=425, at_home=True, tokens=CHANNELS)


def benchmark_config(slots: int) -> SandboxConfig:
    """A sandbox of about `slots` availability slots, sized for measuring and warmed before it listens."""
    return SandboxConfig(
        products=max(8, min(200, slots // 2_000)),
        slots=slots,
        days=365,
        warm=True,
        cache_bytes=4 * 1024**3,
    )
