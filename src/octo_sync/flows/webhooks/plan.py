"""What there should be at a service, what there is, and the steps between. Pure.

There should be one subscription per connection, at our address, with all three types. Its address ends in an endpoint id
that nobody can guess and that is never used twice, so:

- **ours** is what has one of this connection's endpoint ids as its last path segment, wherever the rest of it points;
  what the journal knows by its subscription id (unless that is a mere number, which a service may give out again); and
  what stands under our own address with an id that nobody knows, which a lost journal left behind. An address belongs to
  one project: nobody else can receive there.
- **not ours**, and never touched: another connection's endpoint, and everything else.
- the address that a service shows tells which secret it was given: both are only ever sent together.

Of several the same one is kept by every process: a good one before a bad one, then the oldest row, then the lowest id.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from urllib.parse import unquote, urlsplit

from octo_sync.journal import EndpointRow
from octo_sync.octo.records import Subscription

HEADER = "X-Octo-Sync-Secret"
TYPES = ("AVAILABILITY_UPDATE", "BOOKING_UPDATE", "PRODUCT_UPDATE")

_ENDPOINT = re.compile(r"[A-Za-z0-9_-]{32}")
_PORTS = {"http": 80, "https": 443}
_SHOWN = 6
_OVERLAP, _LATEST = timedelta(hours=1), timedelta(days=1)
"""How long a former endpoint is accepted (`outdated`)."""


@dataclass(frozen=True, slots=True)
class Create:
    """Make a subscription at a new address."""


@dataclass(frozen=True, slots=True)
class Adopt:
    """Note that this subscription has this endpoint's address; only the journal changes."""

    endpoint: str
    subscription_id: str


@dataclass(frozen=True, slots=True)
class Patch:
    """Give the subscription a new address, all types and a new secret, together."""

    subscription_id: str


@dataclass(frozen=True, slots=True)
class Delete:
    """End a subscription too many."""

    subscription_id: str


Step = Create | Adopt | Patch | Delete


@dataclass(frozen=True, slots=True)
class Found:
    """One of our subscriptions, and the row of its address; None when no row is known."""

    subscription: Subscription
    row: EndpointRow | None


@dataclass(slots=True, kw_only=True)
class Wanted:
    """For whom, where, and what was learned on the way.

    `written` are endpoints that this very run has sent to the service: what it makes of them is as good as it gets.
    `taken` is the `shape` that an earlier run has settled on so, empty when there is none: a service that leaves out types,
    or spells an address its own way, would be mended for ever.
    `unwanted` are subscriptions that cannot be mended, `stuck` those that cannot be deleted, by id. `headers_shown`: the
    service is known to show headers, so one that it does not show is not there.
    """

    connection: str
    base: str
    written: set[str] = field(default_factory=set)
    taken: str = ""
    unwanted: set[str] = field(default_factory=set)
    stuck: set[str] = field(default_factory=set)
    headers_shown: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """The subscription that stays, whether it is as it should be, and the steps."""

    keep: Found | None
    is_good: bool
    steps: tuple[Step, ...]

    @property
    def acts(self) -> bool:
        """Whether one of the steps changes the service."""
        return any(not isinstance(step, Adopt) for step in self.steps)


def hook_url(base: str, endpoint: str) -> str:
    """The address of one endpoint below our own."""
    return f"{base.rstrip('/')}/hooks/{endpoint}"


def looks_like_endpoint(segment: str) -> bool:
    """Whether the last part of an address can be an endpoint id at all."""
    return _ENDPOINT.fullmatch(segment) is not None


def hash_of(secret: str) -> str:
    """What is stored of a secret: the SHA-256 of its bytes, hexadecimal."""
    return hashlib.sha256(secret.encode()).hexdigest()


def masked(url: str, *, own: bool) -> str:
    """An address that may be shown: without user and password, and of the endpoint id only its beginning.

    Of a stranger's address only the host: whatever stands behind it may be somebody's secret.
    """
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
        scheme, path = parts.scheme, parts.path
    except ValueError:
        return "(an address that cannot be read)"
    start, _, last = path.rstrip("/").rpartition("/")
    return f"{scheme}://{host}{start}/{last[:_SHOWN]}…" if own else f"{scheme}://{host}/…"


def ours(rows: Iterable[EndpointRow], listed: Iterable[Subscription], connection: str, base: str) -> tuple[Found, ...]:
    """Which of the listed subscriptions are this connection's. `rows` are those of all connections, retired ones too."""
    rows = list(rows)
    mine = {row.endpoint: row for row in rows if row.connection == connection}
    others = {row.endpoint for row in rows} - mine.keys()
    by_id = {row.subscription_id: row for row in mine.values() if row.subscription_id}
    found: dict[str, Found] = {}
    for subscription in listed:
        segment = _segment(subscription.url)
        if segment in others:
            continue
        row = mine.get(segment)
        if row is None and not subscription.id.isdigit():
            row = by_id.get(subscription.id)
        if row is not None or (base and _is_below(base, subscription.url)):
            found[subscription.id] = Found(subscription, row)
    return tuple(found.values())


def plan(rows: Sequence[EndpointRow], listed: Iterable[Subscription], wanted: Wanted) -> Plan:
    """The steps from what is listed to exactly one good subscription. Two rounds of them are enough from any state."""
    found = [f for f in ours(rows, listed, wanted.connection, wanted.base) if f.subscription.id not in wanted.stuck]
    if not found:
        return Plan(None, is_good=False, steps=(Create(),))
    keep = min(found, key=lambda each: _rank(each, wanted))
    surplus: tuple[Step, ...] = tuple(Delete(each.subscription.id) for each in found if each is not keep)
    if not _is_good(keep, wanted):
        if _is_distrusted(keep, wanted):
            # A new one first: until it is there the old one may still bring something.
            return Plan(keep, is_good=False, steps=(Create(), *surplus))
        # One after the other: whoever else is at it must see the same subscription stay.
        return Plan(keep, is_good=False, steps=surplus or (Patch(keep.subscription.id),))
    row = keep.row
    if row and row.subscription_id != keep.subscription.id:
        surplus = (Adopt(row.endpoint, keep.subscription.id), *surplus)
    return Plan(keep, is_good=True, steps=surplus)


def outdated(rows: Iterable[EndpointRow], current: EndpointRow, now: datetime) -> list[str]:
    """The endpoints to accept nothing more at, now that `current` is in use.

    One that was left stays an hour after the first delivery to the current one, because services try again with the address
    and headers of their first attempt; and at most a day without any delivery.
    """
    over = []
    for row in rows:
        if row.state == "retired" or row.connection != current.connection or row.endpoint == current.endpoint:
            continue
        left = max(row.created_at, current.created_at)
        seen = None if current.seen_at is None else max(row.created_at, current.seen_at)
        if now - left >= _LATEST or (seen and now - seen >= _OVERLAP):
            over.append(row.endpoint)
    return over


def abandoned(rows: Iterable[EndpointRow], now: datetime) -> list[str]:
    """The endpoints that were made ready and that nothing came of: no answer, no listing, no delivery."""
    return [row.endpoint for row in rows if row.state == "pending" and now - row.created_at >= _LATEST]


def _rank(found: Found, wanted: Wanted) -> tuple[bool, bool, bool, int, bool, str]:
    row = found.row
    return (
        not _is_good(found, wanted),
        _is_distrusted(found, wanted),
        row is None,
        row.id if row else 0,
        row is not None and row.subscription_id != found.subscription.id,
        found.subscription.id,
    )


def _is_distrusted(found: Found, wanted: Wanted) -> bool:
    """Whether its secret is wrong or it cannot be changed: only another subscription helps."""
    refused = found.row is not None and found.row.refused_at is not None
    return refused or found.subscription.id in wanted.unwanted


def _is_good(found: Found, wanted: Wanted) -> bool:
    row, subscription = found.row, found.subscription
    if row is None or row.state == "retired" or _is_distrusted(found, wanted):
        return False
    if row.endpoint in wanted.written:
        return _segment(subscription.url) == row.endpoint
    return is_usual(subscription, row, wanted) or shape(subscription, row, wanted.base) == wanted.taken


def is_usual(subscription: Subscription, row: EndpointRow, wanted: Wanted) -> bool:
    """Whether a service shows what it was sent for this endpoint: our address, all types, the secret where it shows any."""
    types = subscription.notification_types
    return (
        _plain(subscription.url) == _plain(hook_url(wanted.base, row.endpoint))
        and (not types or set(TYPES) <= set(types))  # a service may not show them
        # Some show no headers and some show stars: then the deliveries themselves tell.
        and (has_secret(subscription, row) or not (wanted.headers_shown and isinstance(subscription.headers, dict)))
    )


def shape(subscription: Subscription, row: EndpointRow, base: str) -> str:
    """All that a service shows of this endpoint, as one hash: whatever is edited there, or another base, gives another."""
    types = sorted(subscription.notification_types)
    return hash_of(json.dumps((hook_url(base, row.endpoint), subscription.url, types, _secrets(subscription))))


def has_secret(subscription: Subscription, row: EndpointRow) -> bool:
    """Whether the service shows the very secret that was given to this endpoint."""
    return any(hash_of(value) == row.secret_hash for value in _secrets(subscription) or ())


def _secrets(subscription: Subscription) -> list[str] | None:
    """What a service shows of our header; None where it shows no headers."""
    headers = subscription.headers
    if not isinstance(headers, dict):
        return None
    return [value for name, value in headers.items() if name.lower() == HEADER.lower()]


def _segment(url: str) -> str:
    try:
        return unquote(urlsplit(url).path).rstrip("/").rpartition("/")[2]
    except ValueError:
        return ""


def _plain(url: str) -> tuple[str, str, int | None, str, str] | None:
    """An address in one spelling: case of the host, the scheme's own port and a last slash do not count."""
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme)
        return parts.scheme, parts.hostname or "", port, unquote(parts.path).rstrip("/"), parts.query
    except ValueError:
        return None


def _is_below(base: str, url: str) -> bool:
    """Whether it is one of our addresses by its looks."""
    segment = _segment(url)
    return looks_like_endpoint(segment) and _plain(url) == _plain(hook_url(base, segment))
