"""A server for a receiver that strangers can reach: uvicorn inside a running event loop, with the limits it lacks.

uvicorn gives a sender all the time in the world for head and body, and its fast parser takes heads of any size. Here a
head has `header_timeout` and `header_limit`, a whole request `request_timeout`, and one connection more than
`max_connections` is told to come back later.
"""

import asyncio
import contextlib
import errno
import socket
from collections.abc import AsyncIterator, Callable, Iterator

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from octo_sync.errors import ConfigError
from octo_sync.pipeline import WebhookSettings

_KEEP_ALIVE = 15
"""Seconds that a connection may wait for its next request. Only those who were answered 2xx or 3xx may wait at all."""
_LOOKS_PER_TIMEOUT = 10
_SHORTEST_LOOK = 0.01

_WAITING, _AT_ONCE = 2048, 32
"""Connections that the system keeps until they are accepted, and that are accepted at once: each has a file open for some
turns of the loop before one too many is refused."""

_CHOOSING = {"webhooks.bind": "--bind HOST:PORT", "dashboard.bind": "--dashboard HOST:PORT"}

_SLOW = b"408 Request Timeout", "slow"
_HEAD_TOO_LARGE = b"431 Request Header Fields Too Large", "head_too_large"
_RETRY = b"503 Service Unavailable\r\nretry-after: 5"
_TOO_MANY, _UNANSWERED = (_RETRY, "too_many"), (_RETRY, "unanswered")


class _Config(uvicorn.Config):
    limits: WebhookSettings
    refused: Callable[[str], object]


class _Protocol(HttpToolsProtocol):
    """One connection.

    nothing yet → head (bytes are counted, `header_timeout`) → body and answer (`request_timeout`) → answered (uvicorn's
    keep-alive) → head …; a connection that never says anything has not sent its head in time either.
    """

    config: _Config
    _ended = False
    _in_head = True
    _head_bytes = 0
    _unanswered = 0
    """Requests that have come as a whole; only of the one behind them may a part be missing."""
    _began: float | None = None
    """When the request began that is not answered yet; None while there is none."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A new connection: one too many is told so."""
        super().connection_made(transport)
        self._began = self.loop.time()
        if len(self.connections) > self.config.limits.max_connections:
            self.end(*_TOO_MANY)

    def data_received(self, data: bytes) -> None:
        """Bytes of a head, a body, or a next request."""
        if self._ended:
            return
        if self._began is None:
            self._began, self._in_head, self._head_bytes = self.loop.time(), True, 0
        super().data_received(data)
        # A head that is not whole yet is kept by the parser: count what it was given.
        if self._in_head and not self._ended:
            self._head_bytes += len(data)
            if self._head_bytes > self.config.limits.header_limit:
                self.end(*_HEAD_TOO_LARGE)

    def on_message_begin(self) -> None:
        """A head begins; of a pipelined request perhaps before the one before it was answered."""
        super().on_message_begin()
        self._in_head = True

    def on_headers_complete(self) -> None:
        """A head is whole; one that came at once may be too large all the same."""
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if size > self.config.limits.header_limit:
            self.end(*_HEAD_TOO_LARGE)
            raise ValueError("the head is too large")  # stops the parser; nobody sees it
        self._in_head, self._head_bytes = False, 0
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """A request is whole; some are answered before."""
        super().on_message_complete()
        self._unanswered += not self.cycle.response_complete

    def send_400_response(self, msg: str) -> None:
        """What cannot be parsed is refused once."""
        if not self._ended:
            self._ended = True
            super().send_400_response(msg)

    def on_response_complete(self) -> None:
        """Answered; the next request has its own time, a pipelined one from now on."""
        self._began = self.loop.time() if self.pipeline else None
        self._unanswered = max(0, self._unanswered - 1)
        super().on_response_complete()

    def look(self, now: float) -> None:
        """End the connection if its request takes too long."""
        limits = self.config.limits
        if self._began is None or self._ended:
            return
        allowed = limits.header_timeout if self._in_head and not self._unanswered else limits.request_timeout
        if now - self._began > allowed:
            # Whoever has sent everything is not the slow one, and is to send it again.
            self.end(*(_UNANSWERED if self._unanswered else _SLOW))

    def end(self, status: bytes, reason: str) -> None:
        """Say why, unless an answer has begun, and close."""
        self._ended = True
        self.config.refused(reason)
        if self._in_head or not self.cycle.response_started:
            self.transport.write(b"HTTP/1.1 " + status + b"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        if self.transport.get_write_buffer_size():
            self.loop.call_later(1.0, self.transport.abort)  # whoever does not read either is not waited for
        self.transport.close()


class WebServer(uvicorn.Server):
    """Leaves signals to whoever runs the loop, and says when and where it listens."""

    url = ""
    """With the port that was really taken."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening, self.stopping = asyncio.Event(), asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then say so."""
        await super().startup(sockets)
        for sock in sockets or ():
            sock.listen(_WAITING)
        self.listening.set()

    async def main_loop(self) -> None:
        """Until it is told to stop; nothing needs to be looked at ten times a second."""
        await self.stopping.wait()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are the program's, not the server's."""
        yield


@contextlib.asynccontextmanager
async def serving(
    app: ASGIApp,
    limits: WebhookSettings,
    *,
    stop_within: float = 5.0,
    key: str = "webhooks.bind",
    refused: Callable[[str], object] = lambda _: None,
) -> AsyncIterator[WebServer]:
    """Serve an ASGI application on a socket, in the running loop, while the block runs.

    At its end nobody new is accepted, the answers in hand are finished, and everything is closed.

    Args:
        app: The application.
        limits: `[webhooks]`: where to listen, sizes, times, connections.
        stop_within: Seconds that a stop waits for answers in hand.
        key: The key of the pipeline file that says where to listen, for errors.
        refused: Told the reason whenever a connection is ended before its request was whole.

    Raises:
        ConfigError: The address cannot be had.
    """
    config = _Config(
        app,
        http=_Protocol,
        ws="none",
        loop="none",
        lifespan="off",
        log_config=None,
        log_level="error",  # strangers' mistakes are no news
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_keep_alive=_KEEP_ALIVE,
        timeout_graceful_shutdown=stop_within,  # type: ignore[arg-type]  # it waits for parts of a second too
        backlog=_AT_ONCE,
    )
    config.limits, config.refused = limits, refused
    server, loop, sock = WebServer(config), asyncio.get_running_loop(), _bound(*limits.address, key)
    host, port = sock.getsockname()[:2]
    server.url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    work = loop.create_task(server.serve(sockets=[sock]))
    listening = loop.create_task(server.listening.wait())
    await asyncio.wait([work, listening], return_when=asyncio.FIRST_COMPLETED)
    if not server.listening.is_set():
        listening.cancel()
        work.result()
    watching = loop.create_task(_watch(server, limits))
    try:
        yield server
    finally:
        server.stopping.set()
        await asyncio.wait([work])
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        work.result()


async def _watch(server: WebServer, limits: WebhookSettings) -> None:
    """Look at every connection now and then: one timer for all costs less than one for each request."""
    pause = max(_SHORTEST_LOOK, min(limits.header_timeout, limits.request_timeout) / _LOOKS_PER_TIMEOUT)
    time = asyncio.get_running_loop().time
    while True:
        await asyncio.sleep(pause)
        now = time()
        for connection in list(server.server_state.connections):
            if isinstance(connection, _Protocol):
                connection.look(now)


def _bound(host: str, port: int, key: str) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError:
        raise ConfigError(f"{key}: {host} is no address of this machine.") from None
    # Named, because asyncio turns Nagle's delay off only then; without it a small answer takes 40 ms.
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
    except OSError as error:
        sock.close()
        is_taken = error.errno == errno.EADDRINUSE
        advice = "End what listens there (it may be another `octo-sync serve`), or choose" if is_taken else "Choose"
        own = "" if is_taken else " that this machine has and this user may listen on"
        raise ConfigError(
            f"{key}: cannot listen on {host}:{port}: {error.strerror or error}. {advice} another address{own}: "
            f"{_CHOOSING.get(key, key)}."
        ) from None
    return sock
