"""A server for a receiver that strangers can reach: uvicorn inside a running event loop, with the limits it lacks.

uvicorn gives a sender all the time in the world for head and body, and its fast parser takes heads of any size. Here a
head has `header_timeout` and `header_limit`, a whole request `request_timeout`, and one connection more than
`max_connections` is told to come back later.
"""

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator
from typing import Any, Self

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from octo_sync.errors import ConfigError
from octo_sync.pipeline import WebhookSettings

_KEEP_ALIVE = 15
"""Seconds that a connection may wait for its next request. Only those who were answered 2xx or 3xx may wait at all."""
_LOOKS_PER_TIMEOUT = 10
_SHORTEST_LOOK = 0.01

_CHOOSING = {"webhooks.bind": "--bind HOST:PORT", "dashboard.bind": "--dashboard HOST:PORT"}

_SLOW = b"408 Request Timeout", "slow"
_HEAD_TOO_LARGE = b"431 Request Header Fields Too Large", "head_too_large"
_TOO_MANY = b"503 Service Unavailable\r\nretry-after: 5", "too_many"


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

    def send_400_response(self, msg: str) -> None:
        """What cannot be parsed is refused once."""
        if not self._ended:
            self._ended = True
            super().send_400_response(msg)

    def on_response_complete(self) -> None:
        """Answered; the next request has its own time, a pipelined one from now on."""
        self._began = self.loop.time() if self.pipeline else None
        super().on_response_complete()

    def look(self, now: float) -> None:
        """End the connection if its request takes too long."""
        limits = self.config.limits
        if self._began is None or self._ended:
            return
        allowed = limits.header_timeout if self._in_head else limits.request_timeout
        if now - self._began > allowed:
            self.end(*_SLOW)

    def end(self, status: bytes, reason: str) -> None:
        """Say why, unless an answer has begun, and close."""
        self._ended = True
        self.config.refused(reason)
        if self._in_head or not self.cycle.response_started:
            self.transport.write(b"HTTP/1.1 " + status + b"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        if self.transport.get_write_buffer_size():
            self.loop.call_later(1.0, self.transport.abort)  # whoever does not read either is not waited for
        self.transport.close()


class _Uvicorn(uvicorn.Server):
    """Leaves signals to whoever runs the loop, and says when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening, self.stopping = asyncio.Event(), asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then say so."""
        await super().startup(sockets)
        self.listening.set()

    async def main_loop(self) -> None:
        """Until it is told to stop; nothing needs to be looked at ten times a second."""
        await self.stopping.wait()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are the program's, not the server's."""
        yield


class WebServer:
    """Serves an ASGI application on a socket, in the running loop.

    Args:
        app: The application.
        limits: `[webhooks]`: where to listen, sizes, times, connections.
        stop_within: Seconds that a stop waits for answers in hand.
        key: The key of the pipeline file that says where to listen, for errors.
        refused: Told the reason whenever a connection is ended before its request was whole.

    `async with WebServer(…) as server:` listens when it is entered, and stops accepting, finishes the answers in hand and
    closes when it is left.
    """

    def __init__(
        self,
        app: ASGIApp,
        limits: WebhookSettings,
        *,
        stop_within: float = 5.0,
        key: str = "webhooks.bind",
        refused: Callable[[str], object] = lambda _: None,
    ) -> None:
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
            backlog=2048,
        )
        config.limits, config.refused = limits, refused
        self._server, self._limits, self._key = _Uvicorn(config), limits, key
        self._tasks: list[asyncio.Task[Any]] = []
        self.url = ""
        """Where it listens, with the port that was really taken."""

    async def __aenter__(self) -> Self:
        """Listen.

        Raises:
            ConfigError: The address cannot be had.
        """
        sock = _bound(*self._limits.address, self._key)
        host, port = sock.getsockname()[:2]
        self.url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        loop = asyncio.get_running_loop()
        serving = loop.create_task(self._server.serve(sockets=[sock]))
        listening = loop.create_task(self._server.listening.wait())
        await asyncio.wait([serving, listening], return_when=asyncio.FIRST_COMPLETED)
        if not self._server.listening.is_set():
            listening.cancel()
            serving.result()
        self._tasks = [serving, loop.create_task(self._watch())]
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop accepting, finish what is in hand, close."""
        await self.stop()

    async def stop(self) -> None:
        """The same before its time; a second call does nothing."""
        tasks, self._tasks = self._tasks, []
        if not tasks:
            return
        serving, watching = tasks
        self._server.stopping.set()
        await asyncio.wait([serving])
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        serving.result()

    async def _watch(self) -> None:
        """Look at every connection now and then: one timer for all costs less than one for each request."""
        shortest = min(self._limits.header_timeout, self._limits.request_timeout)
        pause = max(_SHORTEST_LOOK, shortest / _LOOKS_PER_TIMEOUT)
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(pause)
            now = loop.time()
            for connection in list(self._server.server_state.connections):
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
        raise ConfigError(
            f"{key}: cannot listen on {host}:{port}: {error.strerror or error}. End what listens there (it may be "
            f"another `octo-sync serve`), or choose another address: {_CHOOSING.get(key, key)}."
        ) from None
    return sock
