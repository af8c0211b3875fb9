"""The network between the service and the program: requests in, answers out, nothing leaves the process.

Both ways run the real ASGI application of the other side, in a task of the other side: when one side dies, the other goes
on, and whoever waits for a dead side sees its connection break.
"""

import asyncio

import httpx

__all__ = ["ToReceiver", "ToService", "ask"]


class _Body(httpx.AsyncByteStream):
    def __init__(self, body, broken):
        self._body, self._broken = body, broken

    async def __aiter__(self):
        if self._body:
            yield self._body
        if self._broken:
            raise httpx.RemoteProtocolError("the connection was closed in the middle of the body")


async def ask(app, request):
    """One request to an ASGI application: status, headers, body, whether the body broke off."""
    content = await request.aread()
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": request.url.scheme,
        "path": request.url.path,
        "raw_path": request.url.raw_path.partition(b"?")[0],
        "query_string": request.url.query,
        "headers": [(name.lower(), value) for name, value in request.headers.raw],
        "client": ("127.0.0.1", 1),
        "server": ("sandbox.test", 80),
    }
    sent = False
    messages = []

    async def receive():
        nonlocal sent
        if sent:
            return {"type": "http.disconnect"}
        sent = True
        return {"type": "http.request", "body": content, "more_body": False}

    async def send(message):
        messages.append(message)

    broken = False
    try:
        await app(scope, receive, send)
    except ConnectionResetError:
        broken = True
    if not messages:
        return None
    head = messages[0]
    body = b"".join(message.get("body", b"") for message in messages[1:])
    length = dict(head["headers"]).get(b"content-length")
    return head["status"], head["headers"], body, broken or (length is not None and len(body) < int(length))


class ToService(httpx.AsyncBaseTransport):
    """From the program to the service. `world` knows the service, its process, the state of the network and the log."""

    def __init__(self, world):
        self._world = world

    async def handle_async_request(self, request):
        world = self._world
        await asyncio.sleep(world.random.uniform(0.001, 0.03))
        if world.network_is_down:
            world.count("network down")
            raise httpx.ConnectError("no route to host")
        await request.aread()
        world.asked(request)
        loop = asyncio.get_running_loop()
        task = loop.create_task(ask(world.service_app, request), context=world.service.context())
        answer = await asyncio.shield(task)
        # An answer may be overtaken on its way by another one's.
        await asyncio.sleep(world.slowness())
        if answer is None:
            raise httpx.RemoteProtocolError("the connection was closed without an answer")
        status, headers, body, broken = answer
        world.answered(status)
        return httpx.Response(status, headers=headers, stream=_Body(body, broken))


class ToReceiver(httpx.AsyncBaseTransport):
    """From the service to whichever program receives; what was acknowledged is written down."""

    def __init__(self, world):
        self._world = world
        self._silent = set()

    async def handle_async_request(self, request):
        world = self._world
        body = await request.aread()
        await asyncio.sleep(world.random.uniform(0.001, 0.02))
        open_for = [program for program in world.programs if program.alive and program.app is not None]
        # Who balances between them sends nothing more to one that stands still, once it has not answered.
        open_for = [one for one in open_for if not (one.frozen and one in self._silent)] or open_for
        if not open_for:
            world.count("delivery found nobody")
            raise httpx.ConnectError("connection refused")
        program = world.random.choice(open_for)
        loop = asyncio.get_running_loop()
        outcome = loop.create_future()
        program.visitors[outcome] = None

        async def visit():
            answer = await ask(program.app, request)
            if answer is not None and answer[0] == 200:
                world.acknowledged(request.url.path.rpartition("/")[2], body)
            if not outcome.done():
                outcome.set_result(answer)

        try:
            async with asyncio.timeout(120):
                visiting = loop.create_task(visit(), context=program.context())
                program.visits.add(visiting)
                visiting.add_done_callback(program.visits.discard)
                answer = await outcome
        except TimeoutError:
            self._silent.add(program)
            world.count("delivery timed out")
            raise httpx.ReadTimeout("no answer in time") from None
        finally:
            program.visitors.pop(outcome, None)
        if answer is None:
            raise httpx.RemoteProtocolError("closed without an answer")
        if world.chance(world.acknowledgements_lost):
            world.count("acknowledgement lost")
            raise httpx.ReadError("the acknowledgement was lost")
        world.count(f"delivery answered {answer[0]}")
        return httpx.Response(answer[0])
