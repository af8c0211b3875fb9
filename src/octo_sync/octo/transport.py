"""httpx's transport interface on aiohttp's connections: request in, response out, httpx's errors and no others.

aiohttp because its parser is C: an answer costs about half of what it costs with httpx's own transport, which sets how
many answers one event loop can take (docs/internals/decisions.md). Nothing here decides anything: no redirect is followed,
nothing is inflated, kept, logged or sent again, and no variable of the environment is read. Importing this module takes
about 0.15 s, so it is imported when the first request goes out.
"""

import asyncio
import math
import ssl
from collections.abc import AsyncIterator

import aiohttp
import httpx
from aiohttp.connector import Connection
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.resolver import ThreadedResolver
from yarl import URL

BUFFER = 256 * 1024
"""Bytes of a body that wait to be taken; the service is held back beyond twice that."""

HEAD = 64 * 1024
"""The longest header: aiohttp's own 8 KiB are too few for some proxies' policies."""

KEEP_ALIVE = 5.0
"""Seconds an idle connection is kept, httpx's own default: many services close theirs after that."""

CONNECTIONS = 8
"""How many connections are tried for one request while nothing of it was sent: some services speak first."""


class AiohttpTransport(httpx.AsyncBaseTransport):
    """Carries requests for one client in one event loop; its caller bounds how many at once.

    `context` is used for https. Of httpx's time-outs only `connect` counts: names, TCP and TLS together.
    """

    def __init__(self, context: ssl.SSLContext | None) -> None:
        self._context = context
        self._session: aiohttp.ClientSession | None = None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send `request`; the response's stream gives the body's bytes as they come from the wire."""
        failed: httpx.TransportError = httpx.RemoteProtocolError("it speaks before it is asked")
        for _ in range(CONNECTIONS):
            try:
                answer = await self._send(request)
            except _StaleError:
                continue
            except (aiohttp.ClientError, OSError, ValueError) as error:
                failed = _translated(error)
                break
            return httpx.Response(answer.status, headers=answer.raw_headers, stream=_Stream(answer))
        raise failed

    async def aclose(self) -> None:
        """Close every socket."""
        if self._session is not None:
            await self._session.close()

    async def _send(self, request: httpx.Request) -> aiohttp.ClientResponse:
        seconds = request.extensions.get("timeout", {}).get("connect")
        return await self._open().request(
            request.method,
            _address(request.url),
            headers=[(name.decode("ascii"), value.decode("ascii")) for name, value in request.headers.raw],
            data=await request.aread() or None,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=None, connect=seconds, ceil_threshold=math.inf),
        )

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    ssl=self._context or True,
                    limit=0,
                    keepalive_timeout=KEEP_ALIVE,
                    # The default depends on what else is installed.
                    resolver=ThreadedResolver(),
                    timeout_ceil_threshold=math.inf,
                ),
                request_class=_Request,
                cookie_jar=aiohttp.DummyCookieJar(),
                skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
                auto_decompress=False,
                read_bufsize=BUFFER,
                max_line_size=HEAD,
                max_field_size=HEAD,
            )
            # It would send GET and DELETE again by itself when a kept connection breaks: neither counted nor allowed.
            self._session._retry_connection = False  # noqa: SLF001 - there is no public way; a test sees to it
        return self._session


class _StaleError(aiohttp.ClientError):
    """A kept connection cannot be used. Nothing was sent."""


class _Request(aiohttp.ClientRequest):
    async def send(self, conn: Connection) -> aiohttp.ClientResponse:
        """Not over a connection on which something came unasked: aiohttp would take that for the answer."""
        if conn.protocol is None or conn.protocol.should_close:
            raise _StaleError
        return await super().send(conn)


class _Stream(httpx.AsyncByteStream):
    """The body of one answer. Closing it early closes the connection."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self._answer = answer
        self._protocol = answer.connection.protocol if answer.connection else None
        # Compared with None: it is a queue too, and an empty one is false.
        self._closed = self._protocol.closed if self._protocol is not None else None
        if self._closed is not None:
            self._closed.add_done_callback(self._lost)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        content = self._answer.content
        failed: httpx.TransportError | None = None
        try:
            while chunk := await content.readany():
                yield chunk
        except (aiohttp.ClientError, OSError) as error:
            failed = _translated(error)
        if failed:
            raise failed

    async def aclose(self) -> None:
        if self._closed is not None:
            self._closed.remove_done_callback(self._lost)
        self._answer.close()

    def _lost(self, closed: asyncio.Future[None]) -> None:
        """Tell the reader about a body that cannot be parsed: aiohttp hangs up then, and leaves it waiting."""
        if not closed.cancelled():
            closed.exception()  # whoever reads hears of it
        content, protocol = self._answer.content, self._protocol
        error = protocol.exception() if protocol is not None else None
        if isinstance(error, HttpProcessingError) and not content.is_eof() and content.exception() is None:
            content.set_exception(aiohttp.ClientPayloadError("broken"), error)


def _address(url: httpx.URL) -> URL:
    """`url` with every byte of its path as it is, and without its user: aiohttp would send that in place of the token."""
    return URL(f"{url.scheme}://{url.netloc.decode('ascii')}{url.raw_path.decode('ascii')}", encoded=True)


def _translated(error: Exception) -> httpx.TransportError:
    """The same as one of httpx's errors, in words that hold nothing of request or answer: aiohttp's quote both."""
    reason = type(error.__cause__ or error).__name__
    kind: type[httpx.TransportError] = httpx.ReadError
    match error:
        case aiohttp.ConnectionTimeoutError():
            kind, reason = httpx.ConnectTimeout, "no connection in time"
        case aiohttp.ClientConnectorError():
            kind, reason = httpx.ConnectError, str(error.os_error)
        case aiohttp.ServerDisconnectedError():
            kind, reason = httpx.RemoteProtocolError, "the connection was closed without an answer"
        case aiohttp.ClientResponseError():
            kind, reason = httpx.RemoteProtocolError, f"the head of the answer cannot be read: {reason}"
        case aiohttp.ClientPayloadError():
            kind, reason = httpx.RemoteProtocolError, f"the body is not whole: {reason}"
        case ValueError() | aiohttp.NonHttpUrlClientError():
            kind = httpx.LocalProtocolError
        case OSError():
            reason = error.strerror or reason
    return kind(reason)
