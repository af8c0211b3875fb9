"""The OCTO client: one connection's calls, with everything that keeps a hostile or sick service from doing harm.

This module speaks httpx's transport interface, request in, response out; httpx's errors are translated here, once. `send`
carries out a `Call` and gives an `Answer` (bytes); `ask` gives its record (`Typed`). A connection to an
unknown service goes wrong in many ways, and each has its place: too fast or too many (`budget.Budget`), refused tokens
(`budget.Gate`), bodies (`body.Body`), what an answer means (`verdict.judge`). What carries the requests is
`transport.AiohttpTransport`, or what is handed in. Longer than most modules, so that the life of a call, from its first
attempt to its answer, can be read in one place.
"""

import asyncio
import random
import ssl
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from math import inf
from typing import Any, Self

import httpx
import stamina

from octo_sync import __version__
from octo_sync.errors import (
    AnswerInvalid,
    AnswerTooLarge,
    AuthenticationRefused,
    ConfigError,
    RateLimited,
    RequestRefused,
    ServiceError,
    ServiceUnavailable,
)
from octo_sync.model import Clock, Connection, Secret
from octo_sync.octo import pace, verdict
from octo_sync.octo.answer import Answer
from octo_sync.octo.body import Body, BodyBroken, BodyInvalid, BodyTooLarge
from octo_sync.octo.budget import Budget, Gate
from octo_sync.octo.endpoints import Call
from octo_sync.octo.quirks import capability_header
from octo_sync.octo.typed import Typed

ERROR_BODY = 64 * 1024
"""How much of a refusal is read: an OCTO error object is far smaller, an HTML page is of no use."""

_HELD_AT_MOST = 20
"""Times that one call is held off while others are let through: then it is this call that the service refuses."""

_LONG = 1 << 20
"""Bytes of a body that is digested beside the next requests."""


@dataclass(slots=True)
class Stats:
    """What a client has done so far. `bytes` came over the wire, before inflation."""

    requests: int = 0
    retries: int = 0
    bytes: int = 0
    by_status: Counter[int] = field(default_factory=Counter)
    unanswered: int = 0
    """Requests that ended without a status."""


@dataclass(slots=True)
class _Sending:
    """One call on its way: until when, which attempt, and why the last one failed."""

    call: Call[Any]
    on_start: Callable[[], int] | None
    ends: float = 0.0
    patient: bool = False
    has_turn: bool = False
    """Whether its next attempt is in the budget already."""
    attempt: int = 0
    held: int = 0
    """Attempts that the service held off, which are none of its own."""
    failed: "_AgainError | None" = None


class _AgainError(Exception):
    """This attempt failed in a way that another one may heal."""

    def __init__(self, error: ServiceError, *, wait: float | None = None, always: bool = False) -> None:
        super().__init__(str(error))
        self.error = error
        self.wait = wait
        self.always = always


class _HeldError(Exception):
    """The service asks the whole connection for patience, and this call has it."""

    def __init__(self, error: ServiceError) -> None:
        super().__init__(str(error))
        self.error = error


class OctoClient(Typed):
    """One connection to one OCTO service; an async context manager.

    `clock` reads HTTP dates, `random` spreads retries: the same seed gives the same waits. `transport` replaces the one
    on aiohttp; it is closed with the client. A token from a file is read again when it is refused (Q8). `on_token` is told the
    text of each token that is used in place of the first, so that no log line shows it. Proxies and certificates of the
    environment count for nothing, so that a stray variable cannot redirect a token.

    Raises nothing but `octo_sync.errors`.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        clock: Clock,
        random: random.Random,
        transport: httpx.AsyncBaseTransport | None = None,
        on_token: Callable[[str], object] = lambda _: None,
    ) -> None:
        limits = connection.limits
        self.connection = connection
        self.stats = Stats()
        # Never less than the wait that doubles: eight of them have to be longer than a minute.
        self.budget = Budget(limits, lambda: 1 + random.random() / 2)
        self.gate = Gate()
        self._base = _address(connection)
        self._clock = clock
        self._random = random
        self._on_token = on_token
        self.token = _usable(connection.token)
        self._voice = verdict.Voice(connection, connection.token)
        self._transport = transport
        # httpx's own transport asks for all four; the deadline bounds the others.
        self._timeout = {"timeout": {"connect": limits.connect_timeout, "read": None, "write": None, "pool": None}}
        self._headers = httpx.Headers(
            {
                "Accept": "application/json",
                "Accept-Encoding": "gzip, deflate",
                "Cache-Control": "no-cache",  # an older answer, kept on the way, would pass for what is so now
                "User-Agent": f"octo-sync/{__version__}",
                **connection.headers,
            }
        )
        self._url = lru_cache(64)(httpx.URL)  # most requests go to the same few, and httpx reads each anew

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close every socket."""
        if self._transport is not None:
            await self._transport.aclose()

    def readmit(self) -> None:
        """Let calls out again after the token or too many of them were refused; for somebody who has a reason to try."""
        self.gate.reopen()
        self.budget.reopen()

    def use(self, token: Secret) -> None:
        """Send this token from now on, and let calls out again if the former one was refused."""
        self.token = _usable(token)
        self._on_token(token.reveal())
        self._voice = verdict.Voice(self.connection, token)
        self.gate.reopen()

    async def send(
        self, call: Call[Any], *, on_start: Callable[[], int] | None = None, patient: bool = False
    ) -> Answer:
        """Carry out `call`: wait for a free slot, then at most `limits.deadline` seconds for everything else.

        Who is `patient` waits for its turn in this connection's budget before the deadline starts, as for the slot, and
        again whenever the service asks for patience: that costs none of `limits.attempts`, and ends when the budget gives up.
        `on_start` is called just before each attempt goes out; what the last one gave is the answer's `request_seq`.
        Only calls that are safe to retry are retried. Raises a `ServiceError`.
        """
        error: ServiceError
        async with self.budget.slots:
            # Before the deadline starts: the first time it loads an HTTP library.
            self._transport = self._transport or _transport(self._base)
            sending = _Sending(call, on_start, patient=patient and call.safe_to_retry)
            try:
                return await self._carry_out(sending)
            except _HeldError as held:
                error = self._given_up(sending.call, held.error)
            except _AgainError as again:
                error = again.error
            except ServiceError as final:
                error = final
            except TimeoutError:
                error = self._too_late(sending)
            finally:
                self._end_turn(sending)
        # Outside the handlers and without its past: neither httpx's errors, with the request and its headers, nor our
        # own frames, with the body, must hang on to this error.
        raise error.with_traceback(None)

    async def _carry_out(self, sending: _Sending) -> Answer:
        """Attempts until there is an answer, or no more are allowed."""
        limits = self.connection.limits
        while True:
            if sending.patient:
                await self._take_turn(sending)
            sending.ends = asyncio.get_running_loop().time() + limits.deadline
            left = max(1, limits.attempts - (sending.attempt - sending.held))
            try:
                async with asyncio.timeout_at(sending.ends):
                    try:
                        return await self._attempt(sending)
                    except _AgainError as error:
                        first = error
                    # Few requests need it, and to set it up costs as much as a third of all else here.
                    async for attempt in stamina.retry_context(
                        on=lambda error: self._again(sending, error), attempts=left, timeout=None
                    ):
                        with attempt:
                            if attempt.num == 1:
                                raise first
                            return await self._attempt(sending)
            except _HeldError as held:
                sending.held += 1
                if self.budget.gave_up is not None or sending.held >= _HELD_AT_MOST:
                    raise held from None

    def _again(self, sending: _Sending, error: Exception) -> float | bool:
        """Stamina's hook: False for no more attempts, otherwise the seconds to wait, from our own randomness (R14)."""
        if not isinstance(error, _AgainError) or not (sending.call.safe_to_retry or error.always):
            return False
        sending.failed = error
        if error.always:
            return 0.0
        limits = self.connection.limits
        failures = sending.attempt - sending.held
        wait = min(limits.backoff_cap, limits.backoff * 2 ** (failures - 1)) * (0.5 + self._random.random() / 2)
        wait = max(wait, error.wait or 0.0)
        return wait if asyncio.get_running_loop().time() + wait < sending.ends else False

    async def _attempt(self, sending: _Sending) -> Answer:
        """One request and its answer."""
        if not sending.has_turn:
            await self._take_turn(sending, sending.ends)
        ticket = await self.gate.enter()
        if ticket is None:
            raise AuthenticationRefused(self._sealed(sending.call))
        failure: Exception
        try:
            return await self._exchange(sending, ticket)
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError, BodyBroken) as error:
            failure = self._broken(sending.call, error)
        except (BodyTooLarge, BodyInvalid) as error:
            kind, advice = AnswerInvalid, "nothing of it was used; try again later"
            if isinstance(error, BodyTooLarge):
                kind, advice = AnswerTooLarge, "ask for a smaller window"
            failure = kind(self._voice.say(sending.call, f"gave an answer {error}", advice), status=200)
        finally:
            self.gate.leave(ticket, accepted=None)
            self._end_turn(sending)
        raise failure

    async def _take_turn(self, sending: _Sending, ends: float = inf) -> None:
        """Wait until this connection's budget has a request for this call: until `ends`, or however long the others take."""
        if self.gate.shut:
            raise AuthenticationRefused(self._sealed(sending.call))
        if (wait := await self.budget.turn(ends)) > 0:
            advice = f"the next request may go in {wait:.1f} s, later than the deadline: ask again then"
            what = "was held back by this connection's own budget"
            raise RateLimited(self._voice.say(sending.call, what, advice), status=None, retry_after=wait)
        if self.budget.gave_up is not None:
            raise self._given_up(sending.call)
        sending.has_turn = True

    def _end_turn(self, sending: _Sending) -> None:
        if sending.has_turn:
            sending.has_turn = False
            self.budget.over()

    async def _exchange(self, sending: _Sending, ticket: int) -> Answer:
        call, token, started = sending.call, self.token, asyncio.get_running_loop().time()
        request = self._request(call, token)
        sending.attempt += 1
        self.stats.requests += 1
        self.stats.retries += sending.attempt > 1
        seq = sending.on_start() if sending.on_start else 0
        assert self._transport is not None  # noqa: S101 - `send` made it
        try:
            response = await self._transport.handle_async_request(request)
        except BaseException:  # also when it is cancelled: no answer will come
            self.stats.unanswered += 1
            raise
        try:
            status = response.status_code
            headers = dict(response.headers.items())
            self.stats.by_status[status] += 1
            good = 200 <= status < 300  # noqa: PLR2004
            if good or status in {401, 403}:
                # At once: the body may take its time.
                self.gate.leave(ticket, accepted=good)
            body = await self._read(response, good=good)
        finally:
            await response.aclose()
        error = verdict.judge(call, status, headers, body, self._voice)
        now = self._clock.now()
        asked = pace.retry_after(headers, now)
        is_held = self.budget.heard(status, started=started, asked=asked, told=pace.stated(headers, now))
        if isinstance(error, AuthenticationRefused):
            self.gate.leave(ticket, accepted=False)
            raise _AgainError(error, always=True) if self._is_rotated(token) else error
        if not good:
            self.gate.leave(ticket, accepted=None if status >= 500 or status == 429 else True)  # noqa: PLR2004
        if isinstance(error, RateLimited):
            error.retry_after = asked
        if error is not None and sending.patient and is_held:
            raise _HeldError(error)
        if error is not None:
            raise _AgainError(error, wait=asked) if status in verdict.RETRIED else error
        # A long one in a thread: it takes as long as the next ten requests.
        digest = await asyncio.to_thread(_digest, body) if len(body) > _LONG else _digest(body)
        return Answer(body, status, headers, seq, digest, call)

    def _request(self, call: Call[Any], token: Secret) -> httpx.Request:
        connection = self.connection
        headers = self._headers.copy()
        capabilities = capability_header(connection, call.operation, call.needs)
        if capabilities is not None:
            headers["Octo-Capabilities"] = capabilities
        language = call.language or (connection.languages[0] if connection.languages else "")
        if language:
            headers["Accept-Language"] = language
        if call.json is not None:
            headers["Content-Type"] = "application/json"
        # Last, and nowhere but here.
        headers["Authorization"] = f"Bearer {token.reveal()}"
        return httpx.Request(
            call.method,
            self._url(self._base + call.path),
            params=call.params or None,
            headers=headers,
            content=call.body,
            extensions=self._timeout,
        )

    async def _read(self, response: httpx.Response, *, good: bool) -> bytes:
        """The whole body, raw: httpx would inflate a whole chunk at once, however large it becomes.

        Of a refusal as much as may hold an error object: its status counts even when its body is broken.
        """
        limits, encoding = self.connection.limits, response.headers.get("content-encoding", "")
        declared = response.headers.get("content-length", "")
        assert isinstance(response.stream, httpx.AsyncByteStream)  # noqa: S101 - it comes from an asynchronous transport
        if good and declared.isascii() and declared.isdigit() and int(declared[:20]) > limits.max_body:
            raise BodyTooLarge(f"larger than {limits.max_body:,} bytes")
        try:
            size = limits.max_body if good else ERROR_BODY
            body = Body(encoding, max_size=size, max_inflation=limits.max_inflation)
            async for chunk in response.stream:
                self.stats.bytes += len(chunk)
                body.feed(chunk)
            return body.finish()
        except (BodyBroken, BodyInvalid, BodyTooLarge, httpx.HTTPError):
            if good:
                raise
            return b""

    def _is_rotated(self, refused: Secret) -> bool:
        """Whether another token than the refused one is to be sent: another call found it, or it is in the file by now."""
        token = self.token
        if token is refused and token.again is not None:
            with suppress(ValueError, ConfigError):  # as it is being written: the next look may find it whole
                fresh = token.again()
                if fresh.reveal() != token.reveal():
                    self.use(fresh)
        return self.token is not refused

    def _broken(self, call: Call[Any], error: Exception) -> Exception:
        """What a broken exchange means. The types are told apart, their texts only shown when they hold no header."""
        if isinstance(error, httpx.LocalProtocolError | httpx.UnsupportedProtocol | httpx.InvalidURL):
            what = f"cannot be sent ({type(error).__name__})"
            return RequestRefused(self._voice.say(call, what, "check base_url, headers and the ids in the request"))
        advice = "try again later"
        if isinstance(error, httpx.ConnectTimeout | httpx.ConnectError):
            advice = f"check connections.{self.connection.name}.base_url, or {advice}"
        if isinstance(error, httpx.ConnectTimeout):
            what = f"found nobody answering within {self.connection.limits.connect_timeout:g} s"
        elif isinstance(error, httpx.ConnectError):
            what = f"could not connect ({self._voice.clean(str(error), 120)})"
        else:
            what = f"broke off ({self._voice.clean(str(error), 120) or type(error).__name__})"
        return _AgainError(ServiceUnavailable(self._voice.say(call, what, advice)))

    def _given_up(self, call: Call[Any], last: ServiceError | None = None) -> RateLimited:
        """The error of a connection that is asked for more patience than it has."""
        wait = self.budget.gave_up
        cap = self.connection.limits.retry_after_cap
        what, advice = "is refused again and again", "run again later, or lower limits.concurrency"
        if wait is not None and wait > cap:
            long = f"{wait:,.0f} s" if wait < inf else "for ever"
            what = f"is asked to wait {long}, longer than the {cap:g} s that a call waits"
            advice = "run again later: what has landed stays"
        status = last.status if last else None
        text = self._voice.say(call, f"{what} ({status})" if status else what, advice)
        return RateLimited(text, status=status, code=last.code if last else None, retry_after=wait)

    def _too_late(self, sending: _Sending) -> ServiceError:
        what = f"gave no whole answer within {self.connection.limits.deadline:g} s"
        if sending.failed:
            status = sending.failed.error.status
            what += f" ({sending.attempt} attempts, the last failure: {status or 'a broken connection'})"
        return ServiceUnavailable(self._voice.say(sending.call, what, "try again later or raise limits.deadline"))

    def _sealed(self, call: Call[Any]) -> str:
        what = "was not sent, because this token has been refused before"
        return self._voice.say(call, what, f"check the token ({self.connection.token.origin}) and start again")


def trusted() -> ssl.SSLContext:
    """Whom clients believe: the certificates that came with the program, nothing from the environment."""
    return httpx.create_ssl_context(trust_env=False)


def _transport(base: str) -> httpx.AsyncBaseTransport:
    """What carries requests to `base`."""
    # Loading the trusted certificates takes 20 ms. Without TLS an empty list will do: it trusts nobody.
    tls = httpx.URL(base).scheme == "https"
    from octo_sync.octo.transport import AiohttpTransport  # noqa: PLC0415 - 0.15 s, for those who call a service

    return AiohttpTransport(trusted() if tls else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))


def _address(connection: Connection) -> str:
    """The address without its last slash, if requests can be sent there."""
    problem = ""
    try:
        url = httpx.URL(connection.base_url)
        if url.scheme not in {"http", "https"} or not url.host or url.query or url.fragment:
            problem = "it needs http or https and a host, and must not have a query"
    except (httpx.InvalidURL, ValueError) as error:
        problem = str(error)
    if problem:
        raise ConfigError(f'The base_url of connection "{connection.name}" cannot be used: {problem}')
    return connection.base_url.rstrip("/")


def _usable(token: Secret) -> Secret:
    """`token` if it can stand in a header; httpx's own error would show it."""
    text = token.reveal()
    if not text or not text.isascii() or not text.isprintable() or text != text.strip():
        raise ConfigError(f"The token ({token.origin}) is empty or holds characters that no HTTP header may have")
    return token


def _digest(body: bytes) -> bytes:
    return sha256(body).digest()  # processors have instructions for it: twice as fast as BLAKE2
