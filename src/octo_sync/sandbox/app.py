"""The ASGI application: the API under its base path, the control plane beside it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from starlette.applications import Starlette
from starlette.types import Receive, Scope, Send

from octo_sync.sandbox.api import Api
from octo_sync.sandbox.config import BASE_PATH
from octo_sync.sandbox.control import Control
from octo_sync.sandbox.service import Service

TICK = 0.2


class SandboxApp(Starlette):
    """The control plane as routes; API requests go past the middleware, so that faults reach the connection.

    Usable in-process without its lifespan.

    Args:
        service: the service behind.
    """

    def __init__(self, service: Service) -> None:
        self.service = service
        self.api = Api(service)
        self.control = Control(service, self.api)
        super().__init__(routes=self.control.routes(), lifespan=self._life)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One connection event."""
        path = scope.get("path", "")
        if scope["type"] == "http" and (path == BASE_PATH or path.startswith(f"{BASE_PATH}/")):
            await self.api(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)

    @contextlib.asynccontextmanager
    async def _life(self, _app: Starlette) -> AsyncIterator[None]:
        ticker = asyncio.create_task(self._ticking())
        self.service.outbox.start()
        try:
            yield
        finally:
            ticker.cancel()
            await asyncio.gather(ticker, return_exceptions=True)
            await self.aclose()

    async def _ticking(self) -> None:
        """Holds lapse also while nobody asks."""
        while True:
            await asyncio.sleep(TICK)
            self.service.tick()

    async def aclose(self) -> None:
        """Stop traffic and deliveries; for use without a lifespan."""
        self.api.closing.set()
        await self.control.aclose()
        await self.service.outbox.close()
