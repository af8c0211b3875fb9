"""The canary: a hold that is made and released now and then, to see whether and how soon webhooks tell of it.

Silence alone says little: webhooks may be dead, or nothing may be sold. A hold of one's own must be told, and when it is not,
the connection counts as silent at once, so that everything that is done about silence is done.
"""

import asyncio
import contextlib
import json
import logging
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from octo_sync.errors import NotFound, OctoSyncError, RequestRefused
from octo_sync.flows.ports import Ports
from octo_sync.flows.wording import plural
from octo_sync.journal import Journal
from octo_sync.octo import endpoints

if TYPE_CHECKING:
    from octo_sync.octo.client import OctoClient
    from octo_sync.octo.endpoints import Call
    from octo_sync.octo.records import Booking

log = logging.getLogger("octo_sync")

_NOTED = "canary"
"""The journal's setting of a connection: how its last canary ended."""
_HOLDS = "canary_holds"
"""And when it made which holds, by their uuids."""
_KEPT = timedelta(days=8)
"""How long these are remembered; pages tell of what changed in seven days at most."""
_PATIENCE, _LOOK = 120.0, 0.2
"""Seconds until a hold counts as not told, and between two looks: a process of its own may receive."""
_DAYS_AHEAD = 30
_TRIES = 3
"""Departures that are asked for, each of another day: one may be sold out meanwhile, or be refused for a reason of its own."""
_MOST_TOLD = 100
"""Deliveries about one hold: it is made and not yet released, so one or two are usual."""
_EXPIRES = 5
"""Minutes after which the service releases a hold whose maker was killed."""


@dataclass(frozen=True, slots=True)
class Canary:
    """How the last one went."""

    at: datetime
    """When its hold had been made, or could not be made."""
    lag: float | None = None
    """Seconds until it was told; None: it was not, within two minutes."""
    problem: str | None = None
    """Why no hold could be made, so that nothing is known."""
    held: str | None = None
    """The uuid of a hold that is to be released: it was made, or was asked for and may have been."""

    @property
    def is_untold(self) -> bool:
        """Whether a hold was made and nobody told of it."""
        return self.lag is None and self.problem is None and self.held is None

    @property
    def text(self) -> str:
        """In a few words, for a person."""
        if self.problem is not None:
            known = "no hold could be made" if self.held is None else "nobody knows whether a hold was made"
            return f"{known}: {self.problem}"
        if self.held is not None:
            return "a hold was made, and is waited for"
        return "not told" if self.lag is None else f"told after {self.lag:.1f} s"


def last(journal: Journal, connection: str) -> Canary | None:
    """How the last one of a connection went; None where there was none. Blocking."""
    noted = json.loads(journal.settings.get(_NOTED, connection=connection) or "null")
    return Canary(**noted | {"at": datetime.fromisoformat(noted["at"])}) if noted else None


def holds(journal: Journal, connections: Iterable[str]) -> frozenset[str]:
    """The uuids of what canaries held, or may have held, in the last eight days. Blocking."""
    return frozenset(uuid for connection in connections for uuid in _held(journal, connection))


def _held(journal: Journal, connection: str) -> dict[str, str]:
    found: dict[str, str] = json.loads(journal.settings.get(_HOLDS, connection=connection) or "{}")
    return found


def _remember(journal: Journal, connection: str, uuid: str, at: datetime) -> None:
    before = _held(journal, connection).items()
    kept = {each: when for each, when in before if datetime.fromisoformat(when) > at - _KEPT}
    journal.settings.set(_HOLDS, json.dumps(kept | {uuid: at.isoformat()}), connection=connection)


def untold_since(journal: Journal, connection: str) -> datetime | None:
    """Since when a hold is untold; None where something came since, or nothing is known. Blocking."""
    canary = last(journal, connection)
    if canary is None or not canary.is_untold:
        return None
    delivered = journal.inbox.last_delivery_at(connection)
    return canary.at if delivered is None or delivered < canary.at else None


def forget(journal: Journal, connection: str) -> None:
    """There is none any more. Blocking."""
    if journal.settings.get(_NOTED, connection=connection) is not None:
        journal.settings.set(_NOTED, None, connection=connection)


async def fly(ports: Ports, connection: str, product_id: str, *, patience: float = _PATIENCE) -> Canary:
    """Make a hold of a product, wait until a webhook tells of it, release it, and note how it went."""
    client, journal = ports.clients[connection], ports.journal
    before = await asyncio.to_thread(last, journal, connection)
    if before is not None and before.held is not None:
        # Who asked for it was stopped before releasing it, or got no answer.
        await _release(client, before.held)
    held, refused = None, ""
    try:
        calls = await _reservations(client, product_id, ports)
        for uuid, call in calls.items():
            held = uuid
            await _note(journal, connection, Canary(ports.clock.now(), held=held))
            try:
                held = (await client.ask(call)).record.uuid
                break
            except (NotFound, RequestRefused) as error:
                held, refused = None, f"{plural(len(calls), 'departure')} tried; the last: {error}"
        if held is None:
            raise RequestRefused(refused)
    except OctoSyncError as error:
        return await _note(journal, connection, Canary(ports.clock.now(), problem=str(error), held=held))
    at = ports.clock.now()
    await _note(journal, connection, Canary(at, held=held))
    told = None
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(patience):
            while told is None:
                await asyncio.sleep(_LOOK)
                deliveries = await asyncio.to_thread(journal.inbox.about, connection, held, _MOST_TOLD)
                # The first of them is the last.
                told = deliveries[-1].received_at if deliveries else None
    await _release(client, held)
    # It may have come before the service's own answer.
    lag = None if told is None else max(0.0, (told - at).total_seconds())
    return await _note(journal, connection, Canary(at, lag=lag))


async def _note(journal: Journal, connection: str, canary: Canary) -> Canary:
    value = json.dumps(asdict(canary) | {"at": canary.at.isoformat()})
    if canary.held is not None:
        await asyncio.to_thread(_remember, journal, connection, canary.held, canary.at)
    await asyncio.to_thread(journal.settings.set, _NOTED, value, connection=connection)
    if canary.held is None or canary.problem is not None:
        log.info("action=canary connection=%s lag=%s problem=%s", connection, canary.lag, canary.problem)
    return canary


async def _reservations(client: "OctoClient", product_id: str, ports: Ports) -> dict[str, "Call[Booking]"]:
    """By uuid: calls that hold one ticket on the first departure of each of the next days that has room and can be booked."""
    product = (await client.ask(endpoints.product(product_id))).record
    option = next((each for each in product.options if each.default is True), next(iter(product.options), None))
    units = option.units if option is not None else None
    if option is None or not isinstance(units, list) or not units:
        raise RequestRefused(f"the product {product_id} has no option with a ticket")
    today = ports.today(ports.time_zones.get((client.connection.name, product_id)))
    first, last_day = today + timedelta(days=1), today + timedelta(days=_DAYS_AHEAD)
    slots = (await client.ask(endpoints.availability(product_id, str(option.id), first, last_day))).record
    now = ports.clock.now()
    days: dict[date, str] = {}
    for each in slots:
        if each.available is True and (not each.utc_cutoff_at or each.utc_cutoff_at > now):
            days.setdefault(each.local_date_time_start.date(), str(each.id))
    if not days:
        raise RequestRefused(f"the product {product_id} has no free departure within {_DAYS_AHEAD} days")
    uuids = [str(UUID(int=ports.random.getrandbits(128), version=4)) for _ in range(_TRIES)]
    return {
        uuid: endpoints.reserve(
            product_id,
            str(option.id),
            slot,
            unit_items=[{"unitId": units[0].id}],
            uuid=uuid,
            expiration_minutes=_EXPIRES,
            notes="octo-sync canary: released within minutes",
        )
        for uuid, slot in zip(uuids, days.values(), strict=False)
    }


async def _release(client: "OctoClient", uuid: str) -> None:
    """Cancel the hold, by whichever of the two ways the service knows; else it expires."""
    try:
        try:
            await client.send(endpoints.cancel(uuid, reason="octo-sync canary"))
        except RequestRefused:
            await client.send(endpoints.cancel(uuid, reason="octo-sync canary", by_delete=True))
    except OctoSyncError as error:
        log.warning("action=canary_not_released connection=%s error=%s", client.connection.name, error)
