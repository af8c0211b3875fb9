"""Running a sandbox on a socket: blocking, or in a background thread."""

import contextlib
import socket
import threading
from collections.abc import Callable
from types import FrameType
from typing import Self

import uvicorn

from octo_sync.sandbox.app import SandboxApp
from octo_sync.sandbox.clock import Clock
from octo_sync.sandbox.config import BASE_PATH, SandboxConfig
from octo_sync.sandbox.service import Service

Ready = Callable[[str], None]
_GRACE = 1
_KEEP_ALIVE = 75
_START_TIMEOUT = 120.0


class _Server(uvicorn.Server):
    """Says when it listens, and leaves at once when told."""

    def __init__(self, app: SandboxApp, ready: Callable[[], None]) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                log_level="critical",
                access_log=False,
                server_header=False,
                lifespan="on",
                http="h11",
                ws="none",
                loop="asyncio",
                timeout_keep_alive=_KEEP_ALIVE,
                timeout_graceful_shutdown=_GRACE,
            )
        )
        self._app = app
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then say so."""
        await super().startup(sockets)
        self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End hanging answers, then stop."""
        self._app.api.closing.set()
        await super().shutdown(sockets)

    def handle_exit(self, _sig: int, _frame: FrameType | None) -> None:
        """A signal ends the service in an orderly way, without being raised again."""
        self.should_exit = True


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio turns Nagle's delay off only where the protocol is named; without it a small answer takes 40 ms.
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
    except OSError:
        sock.close()
        raise
    return sock


def _origin(sock: socket.socket) -> str:
    host, port = sock.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class Sandbox:
    """A sandbox on a socket: `run` blocks; as a context manager it runs in a background thread.

    Args:
        config: size, seed and behaviour.
        clock: the clock to live by; made from the configuration when None.
        host: address to listen on.
        port: port to listen on; a free one when 0.
        ready: called with the base URL once requests are answered.

    Raises:
        OSError: when the address cannot be bound.

    Attributes:
        base_url: ends with `/octo/v1`.
        control_url: ends with `/_sandbox`.
    """

    def __init__(
        self,
        config: SandboxConfig | None = None,
        clock: Clock | None = None,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        ready: Ready | None = None,
    ) -> None:
        self._sock = _bound(host, port)
        origin = _origin(self._sock)
        self.base_url = f"{origin}{BASE_PATH}"
        self.control_url = f"{origin}/_sandbox"
        self.app = SandboxApp(Service(config or SandboxConfig(), clock, base_url=self.base_url))
        self.app.service.warm()
        self._listening = threading.Event()
        self._ready = ready
        self._server = _Server(self.app, self._listens)
        self._thread = threading.Thread(target=self.run, name="sandbox", daemon=True)

    @property
    def service(self) -> Service:
        """The service behind, for looking at; it belongs to the sandbox's thread."""
        return self.app.service

    def run(self) -> None:
        """Serve until SIGINT or SIGTERM; off the main thread until the block is left."""
        with contextlib.closing(self._sock):
            self._server.run(sockets=[self._sock])

    def _listens(self) -> None:
        self._listening.set()
        if self._ready is not None:
            self._ready(self.base_url)

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._listening.wait(_START_TIMEOUT):
            raise TimeoutError("The sandbox did not start.")
        return self

    def __exit__(self, *_error: object) -> None:
        self._server.should_exit = True
        self._thread.join()
