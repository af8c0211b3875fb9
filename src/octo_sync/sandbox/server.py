"""Running a sandbox on a socket: blocking, or in a background thread."""

import contextlib
import socket
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Self

import uvicorn

from octo_sync.sandbox.app import SandboxApp, create_app
from octo_sync.sandbox.clock import Clock
from octo_sync.sandbox.config import BASE_PATH, SandboxConfig
from octo_sync.sandbox.service import Service
from octo_sync.sandbox.warm import warm

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

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A signal ends the service in an orderly way, without being raised again."""
        del sig, frame
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


def serve(
    config: SandboxConfig | None = None, host: str = "127.0.0.1", port: int = 0, ready: Ready | None = None
) -> None:
    """Run a sandbox until SIGINT or SIGTERM.

    Args:
        config: size, seed and behaviour.
        host: address to listen on.
        port: port to listen on; a free one when 0.
        ready: called with the base URL once requests are answered.

    Raises:
        OSError: when the address cannot be bound.
    """
    with contextlib.closing(_bound(host, port)) as sock:
        origin = _origin(sock)
        base_url = f"{origin}{BASE_PATH}"
        app = create_app(config, base_url=base_url)
        warm(app.service)
        server = _Server(app, lambda: ready(base_url) if ready else None)
        server.run(sockets=[sock])


class Sandbox:
    """A sandbox in a background thread on a free port, as a context manager.

    Args:
        config: size, seed and behaviour.
        clock: the clock to live by; made from the configuration when None.
        port: port to listen on; a free one when 0.

    Attributes:
        base_url: ends with `/octo/v1`.
        control_url: ends with `/_sandbox`.
    """

    def __init__(self, config: SandboxConfig | None = None, clock: Clock | None = None, *, port: int = 0) -> None:
        self._sock = _bound("127.0.0.1", port)
        origin = _origin(self._sock)
        self.base_url = f"{origin}{BASE_PATH}"
        self.control_url = f"{origin}/_sandbox"
        self.app = create_app(config, clock, base_url=self.base_url)
        self._listening = threading.Event()
        self._server = _Server(self.app, self._listening.set)
        self._thread = threading.Thread(target=self._server.run, args=([self._sock],), name="sandbox", daemon=True)

    @property
    def service(self) -> Service:
        """The service behind, for looking at; it belongs to the sandbox's thread."""
        return self.app.service

    def __enter__(self) -> Self:
        warm(self.app.service)
        self._thread.start()
        if not self._listening.wait(_START_TIMEOUT):
            raise TimeoutError("The sandbox did not start.")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._sock.close()
