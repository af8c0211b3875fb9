"""A project and the built-in service in virtual time: hours of waiting pass in a moment, and no socket is opened."""

import asyncio
import datetime as dt
import inspect
from random import Random

import httpx
from tests.flows.harness import NOON, Project, api_path, keeping, small
from tests.simulation.loop import Loop
from tests.simulation.wire import ask

from octo_sync.sandbox.app import SandboxApp
from octo_sync.sandbox.clock import Clock
from octo_sync.sandbox.service import Service

__all__ = ["Virtual", "lived"]


class _Body(httpx.AsyncByteStream):
    def __init__(self, content):
        self._content = content

    async def __aiter__(self):
        yield self._content


class Virtual(httpx.AsyncBaseTransport):
    """The service, the way to it and the clock of both.

    `edit(request, response)`, if set, sees every exchange and may replace the answer; `log` has when each path was asked for.
    """

    base_url = "http://127.0.0.1:8080/octo/v1"

    def __init__(self, loop, **config):
        self.loop, self.edit, self.log = loop, None, []
        self.app = SandboxApp(Service(small(**config), Clock(source=lambda: self.now().timestamp())))

    def now(self):
        return NOON + dt.timedelta(seconds=self.loop.time())

    async def handle_async_request(self, request):
        self.log.append((self.loop.time(), api_path(request)))
        await asyncio.sleep(0.02)
        status, headers, body, _ = await ask(self.app, request)
        headers = [(k, v) for k, v in headers if k not in {b"content-length", b"content-encoding"}]
        whole = httpx.Response(status, headers=headers, content=body, request=request)
        changed = self.edit(request, whole) if self.edit else None
        given = whole if changed is None else changed
        return httpx.Response(given.status_code, headers=given.headers, stream=_Body(given.content))

    def asked(self, path):
        """When this path was asked for."""
        return [moment for moment, asked in self.log if asked == path]

    def project(self, directory, **settings):
        """A project of this service; `opened(transport=…)` must be given `self.way`."""
        project = Project(directory, self, **settings)
        project.clock = self
        return project

    def way(self, _connection):
        return self

    def keeping(self, project, **more):
        """A keeper at work; `more` is the keeper's."""
        return keeping(project, transport=self.way, **more)


def lived(life, **config):
    """Run `life(virtual)` to its end on a loop whose time is virtual; what it gave."""
    loop = Loop(Random(1))
    asyncio.set_event_loop(loop)
    try:
        coroutine = life(Virtual(loop, **config))
        assert inspect.iscoroutine(coroutine)
        return loop.run_until_complete(coroutine)
    finally:
        asyncio.set_event_loop(None)
        loop.close()
