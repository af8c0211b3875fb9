"""Exactly one webhook subscription per connection and receiver address: ensure, look, rotate, remove.

Creating is not idempotent and any answer may get lost. So the endpoint and the hash of its secret are durable before the
service hears of them, and after every change the list is read again until it asks for nothing: what was made in spite of
an error is found by its address, what is too many goes. Processes need no lock between them, because each reads the list
after its last change and all keep the same one.

`plan` decides, pure · `steps` carries it out · here are the verbs and what they say.
A secret lives in one step and in the request that hands it over, and nowhere else.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from octo_sync.errors import AuthenticationRefused, RequestRefused, ServiceError
from octo_sync.flows import horizon
from octo_sync.flows.ports import Ports
from octo_sync.flows.webhooks import plan as planning
from octo_sync.flows.webhooks.plan import Found, Patch
from octo_sync.flows.webhooks.steps import REMOVED, ROUNDS, NotWantedError, Steps, Tokens, Turn
from octo_sync.journal import EndpointRow
from octo_sync.model import Source

log = logging.getLogger("octo_sync")

Whose = Literal["ours", "another connection's", "somebody else's"]
State = Literal["current", "to mend", "surplus", ""]
_NONE_HERE = frozenset({404, 405, 501})

TOLD_AT = "told_at_endpoint"
"""The endpoint since whose making every change was told, or everything was asked for."""
_TOLD_BELOW = "told_at_url"
"""The journal's setting with the `webhooks.url` of that endpoint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ensured:
    """How it stands with one connection's subscription, with a sentence for a person.

    `ok`: there is exactly one. `unavailable`: the service or the token does not allow it; pulls go on alone. `off`: none is
    wanted. `changed` tells what this run did: `created`, `adopted`, `changed`, `deleted`, each with a number.
    """

    connection: str
    state: Literal["ok", "unavailable", "off"]
    text: str
    subscription_id: str | None = None
    endpoint: EndpointRow | None = None
    changed: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One subscription at the service, ready to be shown: `url` holds neither password nor whole endpoint id.

    `state` of ours: `current`, `to mend` (wrong address, types or secret), `surplus`; empty without an address to judge by.
    """

    connection: str
    subscription_id: str
    url: str
    types: tuple[str, ...]
    whose: Whose
    state: State = ""
    endpoint: EndpointRow | None = None


class Subscriber(Steps):
    """Takes care of one connection's subscription.

    `address` is the public address that reaches the receiver (`webhooks.url`), empty to look and to remove only.
    `automatic`: made by a schedule, so that it does not undo a removal that a person asked for.

    The methods raise what the client raises, where trying again later may help (`ServiceUnavailable`, `RateLimited`,
    `AnswerInvalid`) or a person must look (`AuthenticationRefused` with 401); and JournalError.
    """

    async def ensure(self) -> Ensured:
        """See to it that there is exactly one subscription, at our address, with all types and a secret of its own.

        Asked for by a person it also ends a former `remove`.
        """
        turn = Turn(connection=self.connection, base=self.address)
        await self._begin()
        try:
            return await self._done(await self.settle(turn), turn)
        except ServiceError as error:
            return self._lacking(error)

    async def rotate(self) -> Ensured:
        """Ensure, then move the subscription to a new address with a new secret; the old ones are accepted meanwhile.

        Where the service does not let a subscription be changed, a new one takes its place before the old one goes.
        """
        turn = Turn(connection=self.connection, base=self.address)
        await self._begin()
        try:
            found, before = await self.settle(turn)
            if before.endpoint in turn.written:  # made anew just now
                return await self._done((found, before), turn)
            await self.act(Patch(found.subscription.id), turn)
            found, row = await self.settle(turn)
            if row.endpoint == before.endpoint:
                turn.unwanted.add(found.subscription.id)
                found, row = await self.settle(turn)
            if await self._noted(TOLD_AT) == before.endpoint:
                # The old address was good until the new one was: there is no gap.
                await self._note(TOLD_AT, row.endpoint)
            return await self._done((found, row), turn)
        except ServiceError as error:
            return self._lacking(error)

    async def remove(self) -> Ensured:
        """Delete what is ours at the service, then accept nothing more. Safe to repeat; needs no address."""
        if not await self._noted(REMOVED):
            now = self.clock.now().isoformat(timespec="seconds")
            await self._note(REMOVED, now)
        turn = Turn(connection=self.connection, base=self.address)
        try:
            await self._delete_all(turn)
        except ServiceError as error:
            return self._lacking(error)
        if turn.stuck:
            return self._ended("unavailable", _stuck(turn), turn)
        await self._retire([row.endpoint for row in await self._rows()])
        # Whoever wants one again has lost none.
        await self._note(TOLD_AT, None)
        count = turn.changed["deleted"]
        text = f"{count} deleted at the service" if count else "nothing was there"
        return self._ended("off", f"{text}; `octo-sync subscriptions ensure` makes one again", turn)

    async def look(self) -> list[Listed]:
        """Every subscription that the token sees: ours, other connections', somebody else's. Changes nothing there."""
        turn = Turn(connection=self.connection, base=self.address)
        listed = await self.listed(turn)
        rows = await self._all_rows()
        mine = {f.subscription.id: f for f in planning.ours(rows, listed, self.connection, self.address)}
        plan = planning.plan(rows, listed, turn)
        others = {
            f.subscription.id
            for name in {row.connection for row in rows} - {self.connection}
            for f in planning.ours(rows, listed, name, "")
        }
        keep = plan.keep.subscription.id if plan.keep else None
        shown = []
        for each in sorted(listed, key=lambda each: (each.id not in mine, each.id not in others, each.id)):
            found = mine.get(each.id)
            whose: Whose = "ours" if found else "another connection's" if each.id in others else "somebody else's"
            state: State = "surplus" if each.id != keep else "current" if plan.is_good else "to mend"
            shown.append(
                Listed(
                    connection=self.connection,
                    subscription_id=str(each.id),
                    url=planning.masked(each.url, own=found is not None),
                    types=each.notification_types,
                    whose=whose,
                    state=state if found and self.address else "",
                    endpoint=found.row if found else None,
                )
            )
        return shown

    async def _begin(self) -> None:
        """A person's wish ends a former removal; and what was never used for so long is accepted no more."""
        if not self.automatic:
            await self._note(REMOVED, None)
        rows = await self._rows()
        await self._retire(planning.abandoned(rows, self.clock.now()))

    async def _delete_all(self, turn: Turn) -> None:
        for _ in range(ROUNDS):
            listed = await self.listed(turn)
            found = planning.ours(await self._all_rows(), listed, self.connection, self.address)
            left = [each.subscription.id for each in found if each.subscription.id not in turn.stuck]
            if not left:
                return
            for subscription_id in left:
                await self.delete(subscription_id, turn)
        raise turn.doubt or self.restless()

    # -- saying -------------------------------------------------------------------------------------------------

    async def _done(self, settled: tuple[Found, EndpointRow], turn: Turn) -> Ensured:
        found, row = settled
        rows = await self._rows()
        await self._retire(planning.outdated(rows, row, self.clock.now()))
        words = {"created": "made", "adopted": "found again", "changed": "moved to a new address"}
        did = [words[name] for name in words if turn.changed[name]]
        if turn.changed["deleted"]:
            did.append(f"{turn.changed['deleted']} too many deleted")
        text = ", ".join(did) or "as it should be"
        if turn.stuck:
            text += f"; {_stuck(turn)}"
        types = found.subscription.notification_types
        if types and (lacking := set(planning.TYPES) - set(types)):
            text += f"; the service leaves out {', '.join(sorted(lacking))}"
        return replace(self._ended("ok", text, turn), subscription_id=str(found.subscription.id), endpoint=row)

    def _ended(self, state: Literal["ok", "unavailable", "off"], text: str, turn: Turn) -> Ensured:
        changed = {name: count for name, count in turn.changed.items() if count}
        return Ensured(connection=self.connection, state=state, text=text, changed=changed)

    def _lacking(self, error: ServiceError) -> Ensured:
        """The error as an outcome, where it means that there are no subscriptions here; otherwise it is raised."""
        if isinstance(error, NotWantedError):
            return _off(self.connection, "removed on request")
        if isinstance(error, AuthenticationRefused):
            if error.status != 403 and error.code != "FORBIDDEN":  # noqa: PLR2004 - 401 is about the token itself
                raise error
            text = f"the token may not do that (it needs octo:read.notifications and octo:write.notifications): {error}"
        elif error.status in _NONE_HERE:
            text = "the service has no subscriptions for webhooks"
        elif isinstance(error, RequestRefused):
            text = f"the service refuses subscriptions: {error}"
        else:
            raise error
        log.warning("action=subscription_unavailable connection=%s error=%s", self.connection, type(error).__name__)
        return Ensured(connection=self.connection, state="unavailable", text=f"{text}; pulls go on alone")


async def check(ports: Ports, connection: str, *, tokens: Tokens) -> Ensured:
    """Make a connection's `subscription` subject clean: ensure what the pipeline wants. Raises as `Subscriber` does.

    There is nothing to land: the journal's endpoints are the copy. A removal on request stands until a person runs
    `subscriptions ensure`; one that was cut off is finished.
    """
    journal, client, address = ports.journal, ports.clients[connection], ports.pipeline.webhooks.url
    subscriber = Subscriber(journal, client, address, clock=ports.clock, tokens=tokens, automatic=True)
    if await asyncio.to_thread(journal.settings.get, REMOVED, connection=connection) is not None:
        accepts = await asyncio.to_thread(journal.endpoints.rows, connection)
        return await subscriber.remove() if accepts else _off(connection, "removed on request")
    if not address:
        return _off(connection, "webhooks.url is not set")
    return await subscriber.ensure()


def _off(connection: str, text: str) -> Ensured:
    return Ensured(connection=connection, state="off", text=text)


def _stuck(turn: Turn) -> str:
    return f"the service does not let {', '.join(sorted(turn.stuck))} be deleted: remove it there"


def close_gap(ports: Ports, connection: str, endpoint: str) -> Literal["lost", "refused", ""]:
    """Ask for everything once when a connection is told at an address that is not the one it was told at before. Blocking.

    What changed until then nobody was told of. What a person should hear of it: the subscription was deleted or edited at the
    service (`lost`), or left because of a delivery with a wrong secret or none (`refused`). Empty where there is no gap, or
    where persons wanted it: it is the first, or `webhooks.url` is another one.
    """
    settings = ports.journal.settings
    before = settings.get(TOLD_AT, connection=connection)
    if before == endpoint:
        return ""
    # In this order: who is killed in between asks for it all once more.
    # Marked as a schedule does, so that a pull under way is not over before what it asked for has landed.
    ports.mark(horizon.subjects(ports, [connection]), Source.SCHEDULE)
    below, url = settings.get(_TOLD_BELOW, connection=connection), ports.pipeline.webhooks.url
    settings.set(_TOLD_BELOW, url, connection=connection)
    settings.set(TOLD_AT, endpoint, connection=connection)
    if before is None or below not in (None, url):
        return ""
    rows = ports.journal.endpoints.rows(connection, retired=True)
    return "refused" if any(row.endpoint == before and row.refused_at for row in rows) else "lost"
