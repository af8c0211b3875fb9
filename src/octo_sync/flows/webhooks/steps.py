"""Carrying out the steps of `plan` at a service whose every answer may get lost."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from octo_sync import errors
from octo_sync.flows.webhooks import plan as planning
from octo_sync.flows.webhooks.plan import Adopt, Create, Delete, Found, Patch, Step, Wanted
from octo_sync.journal import EndpointRow, Journal
from octo_sync.model import Clock, Secret
from octo_sync.octo.quirks import looks_capped
from octo_sync.octo.records import Subscription

if TYPE_CHECKING:
    from octo_sync.octo.client import OctoClient

log = logging.getLogger("octo_sync")

Tokens = Callable[[int], str]
"""A source of url-safe random texts from so many bytes: `secrets.token_urlsafe`."""

REMOVED = "subscription_removed_at"
"""The journal's setting that a person has removed a connection's subscription, and when."""
ROUNDS = 10
"""Looks at a service that does not come to rest."""

_HEADERS_SHOWN = "subscription_headers_shown"
_TAKEN = "subscription_taken_as_shown"
"""The journal's setting with the `shape` of what a service makes of the endpoint in use, where it is not what was sent."""
_TRIES = 2
_LOOKED_UP = 5
"""Subscriptions asked for by their id at most, when a list does not show them."""
_GONE = frozenset({404, 410})
_PIECE = 8
"""So much of a secret in an error's text is too much."""


class NotWantedError(errors.ServiceError):
    """A person has removed the subscription while a scheduled check was at it."""


@dataclass(slots=True, kw_only=True)
class Turn(Wanted):
    """What one run wants, and what it has tried so far."""

    tried: Counter[tuple[str, str]] = field(default_factory=Counter)
    changed: Counter[str] = field(default_factory=Counter)
    doubt: errors.ServiceError | None = None
    """Why nobody knows whether the last change was made."""
    complete: bool = True
    """Whether the last list was."""


@dataclass(slots=True)
class Steps:
    """One connection's service, and the journal that knows what was asked of it.

    The journal is asked in threads: while another process keeps it locked, deliveries are answered all the same.
    """

    journal: Journal
    client: "OctoClient"
    address: str
    clock: Clock
    tokens: Tokens
    automatic: bool = False

    @property
    def connection(self) -> str:
        """The connection's name."""
        return self.client.connection.name

    async def settle(self, turn: Turn) -> tuple[Found, EndpointRow]:
        """Steps and looks in turn, until a look asks for no more steps; the subscription and its row."""
        for _ in range(ROUNDS):
            listed = await self.listed(turn)
            plan = planning.plan(await self._all_rows(), listed, turn)
            for step in plan.steps:
                await self.act(step, turn)
            if plan.acts or plan.keep is None or plan.keep.row is None:
                continue
            rows = {row.endpoint: row for row in await self._rows()}
            if (row := rows.get(plan.keep.row.endpoint)) is not None:  # or somebody has retired it meanwhile
                await self._note_shape(plan.keep.subscription, row, turn)
                return plan.keep, row
        raise turn.doubt or self.restless()

    async def _note_shape(self, subscription: Subscription, row: EndpointRow, turn: Turn) -> None:
        """Let the next run know what this one was content with. Forgotten as soon as the service shows what it was sent."""
        usual = planning.is_usual(subscription, row, turn)
        shape = "" if usual else planning.shape(subscription, row, self.address)
        if shape != await self._noted(_TAKEN):
            await self._note(_TAKEN, shape or None)

    async def listed(self, turn: Turn) -> list[Subscription]:
        """What the service has, with those of ours that its list leaves out (lists may be cut, or lag)."""
        listed = (await self.client.list_subscriptions()).record
        turn.complete = listed.complete and not looks_capped(len(listed.subscriptions))
        found = {str(each.id): each for each in listed.subscriptions}
        rows = await self._rows()
        known = {row.subscription_id: None for row in reversed(rows) if row.subscription_id}
        for name in [name for name in known if name not in found][:_LOOKED_UP]:
            try:
                one = (await self.client.get_subscription(name)).record
            except (errors.RequestRefused, errors.NotFound):
                await self._gone(name)
                self._say("gone", name)
            except errors.AnswerInvalid:
                continue
            else:
                found[str(one.id)] = one
        is_shown = any(planning.has_secret(o, r) for o in found.values() for r in rows)
        if is_shown and not await self._noted(_HEADERS_SHOWN):
            await self._note(_HEADERS_SHOWN, "yes")
        turn.taken, turn.headers_shown = await self._noted(_TAKEN), bool(await self._noted(_HEADERS_SHOWN))
        return list(found.values())

    async def _noted(self, name: str) -> str:
        return await asyncio.to_thread(self.journal.settings.get, name, connection=self.connection) or ""

    async def _note(self, name: str, value: str | None) -> None:
        await asyncio.to_thread(self.journal.settings.set, name, value, connection=self.connection)

    async def _rows(self) -> list[EndpointRow]:
        return await asyncio.to_thread(self.journal.endpoints.rows, self.connection)

    async def _all_rows(self) -> list[EndpointRow]:
        """Also those of other connections, and what is accepted no more."""
        return await asyncio.to_thread(self.journal.endpoints.rows, retired=True)

    async def _retire(self, endpoints: Sequence[str]) -> None:
        await asyncio.to_thread(self.journal.endpoints.retire, endpoints)

    async def _gone(self, subscription_id: str) -> None:
        await asyncio.to_thread(self.journal.endpoints.subscription_gone, self.connection, subscription_id)

    async def act(self, step: Step, turn: Turn) -> None:
        """Carry out one step. What is in doubt after it, the next look tells."""
        match step:
            case Adopt(endpoint, subscription_id):
                await asyncio.to_thread(self.journal.endpoints.activate, endpoint, subscription_id)
                turn.changed["adopted"] += 1
            case Create():
                await self._create(turn)
            case Patch(subscription_id):
                await self._patch(subscription_id, turn)
            case Delete(subscription_id):
                await self.delete(subscription_id, turn)

    async def _create(self, turn: Turn) -> None:
        if self.automatic and await self._noted(REMOVED):
            raise NotWantedError("removed on request")
        # What may not be found again must not be made again.
        if turn.tried["create", ""] >= (_TRIES if turn.complete else 1):
            raise turn.doubt or self.restless()
        turn.tried["create", ""] += 1
        error = await self._write(None, turn)
        if isinstance(error, errors.RequestRefused):
            raise error

    async def _patch(self, subscription_id: str, turn: Turn) -> None:
        if turn.tried["patch", subscription_id] >= _TRIES:
            turn.unwanted.add(subscription_id)
            return
        turn.tried["patch", subscription_id] += 1
        if isinstance(await self._write(subscription_id, turn), errors.RequestRefused):
            turn.unwanted.add(subscription_id)

    async def _write(self, subscription_id: str | None, turn: Turn) -> errors.ServiceError | None:
        """Give a subscription, or else a new one, an endpoint and a secret of its own; why it was not done, if it was not.

        What was refused was not done, so nothing will ever come to its endpoint. Raises a refused token.
        """
        endpoint, secret = self.tokens(24), Secret(self.tokens(32), "a subscription's header")
        # From here on it is accepted.
        digest = planning.hash_of(secret.reveal())
        await asyncio.to_thread(self.journal.endpoints.add, endpoint, connection=self.connection, secret_hash=digest)
        turn.written.add(endpoint)
        url, headers = planning.hook_url(self.address, endpoint), {planning.HEADER: secret.reveal()}
        what = "created" if subscription_id is None else "changed"
        try:
            if subscription_id is None:
                made = await self.client.create_subscription(url, planning.TYPES, headers)
                subscription_id = made.record.id
            else:
                await self.client.update_subscription(subscription_id, url, planning.TYPES, headers)
        except errors.ServiceError as caught:
            error = _harmless(caught, secret)
        else:
            await asyncio.to_thread(self.journal.endpoints.activate, endpoint, subscription_id)
            turn.changed[what] += 1
            self._say(what, subscription_id)
            return None
        if isinstance(error, errors.RequestRefused | errors.AuthenticationRefused):
            await self._retire([endpoint])
        else:
            turn.doubt = error
            log.warning("action=subscription_in_doubt connection=%s error=%s", self.connection, type(error).__name__)
        if isinstance(error, errors.AuthenticationRefused):
            raise error
        return error

    async def delete(self, subscription_id: str, turn: Turn) -> None:
        """End a subscription. One that the service does not let go is `stuck` after some tries."""
        turn.tried["delete", subscription_id] += 1
        last = turn.tried["delete", subscription_id] > _TRIES
        try:
            await self.client.delete_subscription(subscription_id)
        except errors.RequestRefused as error:
            if error.status in _GONE:
                await self._gone(subscription_id)
            if last:
                turn.stuck.add(subscription_id)
        except errors.ServiceError as error:
            if last or isinstance(error, errors.AuthenticationRefused):
                raise
            turn.doubt = error
        else:
            await self._gone(subscription_id)
            turn.changed["deleted"] += 1
            self._say("deleted", subscription_id)

    def restless(self) -> errors.ServiceUnavailable:
        """The error for a service that never shows what it was asked for."""
        return errors.ServiceUnavailable(
            f'The subscriptions at "{self.connection}" do not come to rest: each look shows something else than was asked '
            "for; nothing is lost, try again later"
        )

    def _say(self, what: str, subscription_id: str) -> None:
        log.info("action=subscription_%s connection=%s subscription=%s", what, self.connection, subscription_id)


def _harmless(error: errors.ServiceError, secret: Secret) -> errors.ServiceError:
    """The error; without its text when a service repeats the secret in it, whole or in part."""
    text, hidden = str(error), secret.reveal()
    if not any(hidden[at : at + _PIECE] in text for at in range(len(hidden) - _PIECE + 1)):
        return error.with_traceback(None)
    text = (
        f"The service did not take the subscription ({error.status or 'no answer'}); its words are left out, because they "
        "repeat the secret"
    )
    if isinstance(error, errors.RateLimited):
        return errors.RateLimited(text, status=error.status, retry_after=error.retry_after)
    return type(error)(text, status=error.status)
