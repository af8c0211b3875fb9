"""One service, by asking: does it answer, who is it, what does it really do. It costs a few calls, and nothing is written.

What a service does is found out by asking, not by what it says about itself: a capability works when its fields are there. The
quick look costs five calls; the whole one goes on to what `conformance` holds against what the copy would wish.
"""

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar
from urllib.parse import urlsplit

from octo_sync.errors import AuthenticationRefused, OctoSyncError, ServiceError, ServiceUnavailable
from octo_sync.flows.doctor.advice import NONE, Fix, advise
from octo_sync.flows.doctor.capabilities import NO_SUCH_PATH, fruitful_spelling, ignored
from octo_sync.flows.doctor.conformance import checks, quick_checks
from octo_sync.flows.doctor.machine import Finding, Level
from octo_sync.flows.doctor.probe import KnownBooking, probe
from octo_sync.flows.doctor.seen import Check, Kept, Result, Seen, days_ahead, options_of, rows_of, said_in
from octo_sync.model import Clock, Connection, Secret, Window
from octo_sync.octo import checking, endpoints, quirks
from octo_sync.octo.answer import Answer
from octo_sync.octo.client import OctoClient
from octo_sync.octo.endpoints import Call
from octo_sync.pipeline.values import is_loopback

T = TypeVar("T")
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
Certificate = Callable[[str, int], Awaitable[datetime | str]]
"""When the certificate of a host ends, or a sentence that says why none was shown."""

MOST_CALLS = 16
"""Of the whole look at one service; the quick one costs five, and two more each where a capability seems to be
ignored and where a list of bookings may be cut."""
_STRANGER = Secret("octo-sync-doctor-asks", "doctor")
"""A token that nobody was given."""
_SKEW = 5.0
_PATIENCE = 20.0
_QUICK_DAYS, _WHOLE_DAYS = 14, 31
_SOON = timedelta(days=14)


@dataclass(slots=True)
class Examined:
    """What was found of one service. `checks` are empty after the quick look, or where it did not answer."""

    connection: str
    findings: list[Finding] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    calls: int = 0


def with_little_patience(connection: Connection) -> Connection:
    """The connection for a look: one try, and no long waits."""
    limits = replace(connection.limits, attempts=1, deadline=min(connection.limits.deadline, _PATIENCE))
    return replace(connection, limits=limits)


async def service(
    client: OctoClient,
    *,
    clock: Clock,
    kept: Kept,
    quick: bool = False,
    cancelled: KnownBooking | None = None,
    resolve: Resolve | None = None,
    certificate: Certificate | None = None,
) -> Examined:
    """Ask one service what it does.

    Args:
        client: Of the connection, with little patience.
        clock: Now.
        kept: What the pipeline keeps.
        quick: Five calls mostly, and only whether it works.
        cancelled: A booking that the copy knows as cancelled, to see whether lists show it.
        resolve: The addresses of a host; the system's by default.
        certificate: When the certificate of a host ends; None: it is not looked at.
    """
    return await _Look(client, clock, kept, quick=quick).all(resolve or _resolve, certificate, cancelled)


def certificate_finding(area: str, ends: datetime | str, now: datetime) -> Finding:
    """How long a certificate is good for, as a finding. `ends` is a sentence where none was shown."""
    if isinstance(ends, str):
        return Finding(area, "certificate", "fail", ends, advise("certificate"))
    left = ends - now
    text = f"good until {ends:%Y-%m-%d}, {left.days} days"
    if left < _SOON:
        return Finding(area, "certificate", "warn", text, advise("certificate soon"))
    return Finding(area, "certificate", "ok", text)


def as_finding(area: str, check: Check) -> Finding:
    """A check, as one line of the report."""
    levels: dict[Result, Level] = {"passed": "ok", "differs": "warn", "unknown": "unknown"}
    return Finding(area, check.name, levels[check.result], check.text, check.fix, consequence=check.consequence)


async def _resolve(host: str, port: int) -> Sequence[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return sorted({str(each[4][0]) for each in found})


class _UnansweredError(Exception):
    """What was asked has no answer that can be used; a finding says why."""


class _Look:
    """One connection's findings, in the order they are made."""

    def __init__(self, client: OctoClient, clock: Clock, kept: Kept, *, quick: bool) -> None:
        self._client, self._clock, self._kept, self._quick = client, clock, kept, quick
        self._connection, self._own = client.connection, client.connection.name
        self._found: list[Finding] = []
        self._seen = Seen()

    def _say(self, name: str, level: Level, text: str, fix: Fix = NONE, *, refused: bool = False) -> None:
        self._found.append(Finding(self._own, name, level, text, fix, refused))

    async def all(self, resolve: Resolve, certificate: Certificate | None, cancelled: KnownBooking | None) -> Examined:
        """Every question, until one answer makes the next pointless."""
        found: list[Check] = []
        with suppress(_UnansweredError):
            await self._name(resolve, certificate)
            await self._supplier()
            products = await self._products()
            await self._another_spelling(products)
            with suppress(_UnansweredError):
                await self._availability(products)
            with suppress(_UnansweredError):
                await self._bookings()
            await self._subscriptions()
            today, left = self._clock.now().date(), MOST_CALLS - 1 - self._client.stats.requests
            reach = None if self._quick else self._kept.availability
            await probe(self._ask, self._seen, today=today, calls=left, cancelled=cancelled, availability=reach)
            if self._quick:
                some = quick_checks(self._seen, self._connection, self._kept)
                self._found += [as_finding(self._own, check) for check in some]
            else:
                await self._stranger()
                found = checks(self._seen, self._connection, self._kept)
        calls = self._client.stats.requests
        self._say("calls", "ok", f"calls made: {calls}")
        return Examined(self._own, self._found, found, calls)

    async def _ask(self, call: Call[Any]) -> Answer | ServiceError:
        try:
            return await self._client.send(call)
        except ServiceError as error:
            return error

    async def _answer(self, call: Call[Any]) -> Answer | None:
        said = await self._ask(call)
        return said if isinstance(said, Answer) else None

    async def _name(self, resolve: Resolve, certificate: Certificate | None) -> None:
        parts = urlsplit(self._connection.base_url)
        host = parts.hostname or ""
        try:
            addresses = await resolve(host, parts.port or (443 if parts.scheme == "https" else 80))
        except OSError:
            self._say("name", "fail", f"{host} has no address", advise("address", name=self._own))
            raise _UnansweredError from None
        self._say("name", "ok", host if host in addresses else f"{host} is {', '.join(addresses[:3])}")
        if parts.scheme != "https" and not is_loopback(self._connection.base_url):
            self._say("tls", "warn", "the token travels unencrypted", advise("https"))
        if parts.scheme == "https" and certificate is not None:
            ends = await certificate(host, parts.port or 443)
            self._found.append(certificate_finding(self._own, ends, self._clock.now()))

    async def _send(self, name: str, call: Call[Any]) -> Answer:
        """The answer, or a finding that says why there is none."""
        try:
            return await self._client.send(call)
        except AuthenticationRefused as error:
            fix = advise("token", origin=self._connection.token.origin)
            self._say(name, "fail", str(error), fix, refused=True)
        except ServiceUnavailable as error:
            silent = error.status is None and is_loopback(self._connection.base_url)
            self._say(name, "fail", str(error), advise("address, here" if silent else "address, again", name=self._own))
        except ServiceError as error:
            self._say(name, "fail", str(error))
        raise _UnansweredError

    async def _checked(self, name: str, call: Call[Any], check: Callable[[bytes], T]) -> tuple[Answer, T]:
        """The answer and what it becomes, or a finding that says why there is none."""
        answer = await self._send(name, call)
        try:
            return answer, check(answer.body)
        except OctoSyncError as error:
            self._say(name, "fail", str(error))
        raise _UnansweredError

    async def _supplier(self) -> None:
        before = self._clock.now()
        answer = await self._send("answer", endpoints.supplier())
        after = self._clock.now()
        tls = "TLS, " if self._connection.base_url.startswith("https") else ""
        name = f", supplier {name}" if (name := _text(answer, "name")) else ""
        self._say("answer", "ok", f"{tls}token accepted, {(after - before).total_seconds() * 1000:.0f} ms{name}")
        self._clock_skew(answer, before, after)

    def _clock_skew(self, answer: Answer, before: datetime, after: datetime) -> None:
        try:
            told = parsedate_to_datetime(answer.headers.get("date", ""))
        except (ValueError, TypeError):
            self._say("clock", "ok", "the service does not say what time it is")
            return
        told = told if told.tzinfo else told.replace(tzinfo=UTC)
        # The header has whole seconds, and was written between the two.
        skew = max((before - told).total_seconds() - 1, (told - after).total_seconds(), 0.0)
        if skew > _SKEW:
            ahead = "ahead of" if told < before else "behind"
            self._say("clock", "warn", f"this machine is {skew:.0f} s {ahead} the service", advise("clock"))
        else:
            self._say("clock", "ok", "agrees with the service")

    async def _products(self) -> Answer:
        answer, checked = await self._checked("products", endpoints.products(), checking.check_products)
        bad = f", {len(checked.bad)} that do not fit" if checked.bad else ""
        level: Level = "warn" if checked.bad or not checked.ids else "ok"
        fix = advise("bad records") if checked.bad else NONE if checked.ids else advise("no products")
        self._seen.products = answer
        self._say("products", level, f"{len(checked.ids)} products{bad}", fix)
        offered = quirks.languages_offered(answer.headers)
        if offered and "content" in self._connection.capabilities:
            self._languages(offered)
        return answer

    def _languages(self, offered: Sequence[str]) -> None:
        has = {language.split("-")[0] for language in offered}
        lacking = [lang for lang in self._connection.languages if lang.split("-")[0] not in has]
        text = f"offered: {', '.join(offered)}"
        if not lacking:
            self._say("languages", "ok", text)
            return
        left = [lang for lang in self._connection.languages if lang not in lacking] or [offered[0]]
        fix = advise("languages", languages=json.dumps(left), name=self._own)
        self._say("languages", "warn", f"{text}; not {', '.join(lacking)}", fix)

    async def _another_spelling(self, products: Answer) -> None:
        """Where a capability seems to be ignored: what the service says it has, and whether the other spelling brings it."""
        if not ignored(products, self._connection):
            return
        self._seen.offered = await self._answer(endpoints.capabilities())
        with self._spelled(quirks.other_spelling(self._connection.capability_spelling)):
            self._seen.respelled = await self._answer(endpoints.products())

    @contextmanager
    def _spelled(self, spelling: str) -> Iterator[None]:
        """Capabilities in another spelling."""
        self._client.connection = replace(self._connection, capability_spelling=spelling)
        try:
            yield
        finally:
            self._client.connection = self._connection

    async def _stranger(self) -> None:
        """Last of all, whether a token is looked at; the client is used no more."""
        token = self._client.token
        self._client.use(_STRANGER)
        self._seen.stranger = await self._ask(endpoints.supplier())
        self._client.use(token)

    async def _availability(self, products: Answer) -> None:
        first = next((option for row in rows_of(products) for option in options_of(row)), None)
        if first is None:
            return
        days = _QUICK_DAYS if self._quick else _WHOLE_DAYS
        window = days_ahead(self._clock.now().date(), days)
        call = endpoints.availability(*first, window.start, window.end)
        answer, checked = await self._checked("availability", call, checking.check_availability)
        level: Level = "warn" if checked.bad else "ok"
        self._seen.availability.append((answer, window))
        self._say("availability", level, f"{len(checked.ids)} slots of product {first[0]} in the next {days} days")

    async def _bookings(self) -> None:
        today = self._clock.now().date()
        window = Window(today - timedelta(days=7), today + timedelta(days=7))
        call = endpoints.bookings(start=window.start, end=window.end)
        answer, checked = await self._checked("bookings", call, checking.check_bookings)
        self._seen.bookings.append((answer, window))
        means = quirks.booking_dates_mean(checked.dates, window)
        told = {"travel": "; dates are travel dates", "creation": "; dates are creation dates"}.get(means, "")
        self._say("bookings", "warn" if checked.bad else "ok", f"{len(checked.ids)} from {window}{told}")

    async def _subscriptions(self) -> None:
        # In the spelling that was found to work, because it is told there what to do about the other one.
        spelling = fruitful_spelling(self._seen, self._connection) or self._connection.capability_spelling
        with self._spelled(spelling):
            said = await self._ask(endpoints.list_subscriptions())
        if isinstance(said, Answer):
            self._seen.subscriptions = said
            return
        self._seen.no_subscriptions = said
        if said.status in NO_SUCH_PATH and self._seen.offered is None and not self._quick:
            self._seen.offered = await self._answer(endpoints.capabilities())


def _text(answer: Answer, key: str) -> str:
    body = said_in(answer)
    value = body.get(key) if isinstance(body, dict) else None
    return "".join(c for c in str(value or "") if c.isprintable())[:60]
