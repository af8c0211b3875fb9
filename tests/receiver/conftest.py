"""A receiver on a socket of this machine, in the test's own loop."""

import asyncio
import contextlib
import dataclasses
import json
import tomllib
from dataclasses import dataclass, field

import pytest
from tests.receiver import process

from octo_sync.flows.webhooks.receive import Inbox, Routing
from octo_sync.journal import Journal
from octo_sync.pipeline import values
from octo_sync.receiver.endpoints import EndpointCache
from octo_sync.receiver.metrics import Metrics
from octo_sync.receiver.routes import Receiver
from octo_sync.receiver.server import WebServer, serving


def booking_body(uuid="b-1") -> bytes:
    return json.dumps({"subscriptionId": "s-1", "notificationType": "BOOKING_UPDATE", "data": {"uuid": uuid}}).encode()


def post(body: bytes, *headers: bytes, path=f"/hooks/{process.ENDPOINT}", secret=process.SECRET, length=None) -> bytes:
    lines = [b"POST " + path.encode() + b" HTTP/1.1", b"Host: x", *headers]
    if secret is not None:
        lines.append(b"x-octo-sync-secret: " + secret)
    lines.append(b"Content-Length: %d" % (len(body) if length is None else length))
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


class Client:
    """One connection, spoken to by hand."""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer

    async def say(self, raw: bytes) -> None:
        self.writer.write(raw)
        await self.writer.drain()

    async def answer(self, within=60.0) -> Answer:
        async with asyncio.timeout(within):
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = {n.lower(): v.strip() for n, _, v in (line.partition(":") for line in head[1:]) if n}
            body = await self.reader.readexactly(int(headers.get("content-length", "0")))
        return Answer(int(head[0].split()[1]), headers, body)

    async def ask(self, raw: bytes, within=60.0) -> Answer:
        await self.say(raw)
        return await self.answer(within)

    async def ended(self, within=60.0) -> bool:
        """Whether the server has closed the connection, whatever it still said."""
        with contextlib.suppress(ConnectionError):
            async with asyncio.timeout(within):
                await self.reader.read()
        return True

    async def close(self) -> None:
        self.writer.close()
        with contextlib.suppress(ConnectionError):
            await self.writer.wait_closed()


@dataclass
class Running:
    journal: Journal
    inbox: Inbox
    endpoints: EndpointCache
    metrics: Metrics
    server: WebServer
    clients: list[Client] = field(default_factory=list)

    async def client(self) -> Client:
        host, port = self.server.url.removeprefix("http://").rsplit(":", 1)
        client = Client(*await asyncio.open_connection(host.strip("[]"), int(port)))
        self.clients.append(client)
        return client

    async def ask(self, raw: bytes, within=60.0) -> Answer:
        return await (await self.client()).ask(raw, within)

    async def get(self, path: str) -> Answer:
        return await self.ask(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())

    def counted(self, name: str, **labels: str) -> float:
        return self.metrics._registry.get_sample_value(name, labels) or 0.0

    def deliveries(self, result: str, connection="acme") -> float:
        return self.counted("octo_sync_deliveries_total", connection=connection, result=result)


@pytest.fixture
async def receiver(tmp_path):
    """Makes a receiver: `await receiver("body_limit = 100")`, with other values of what `[webhooks]` has no keys for."""
    async with contextlib.AsyncExitStack() as stack:

        async def make(more="", *, journal=None) -> Running:
            pipeline = process.a_pipeline(tmp_path)
            limits = {name: values.duration(v) if isinstance(v, str) else v for name, v in tomllib.loads(more).items()}
            pipeline = dataclasses.replace(pipeline, webhooks=dataclasses.replace(pipeline.webhooks, **limits))
            clock = process.Clock()
            journal = journal or stack.enter_context(process.opened(tmp_path, clock))
            inbox, endpoints = Inbox(journal, Routing(pipeline, clock)), EndpointCache(journal)
            metrics = Metrics(
                lambda: {"octo_sync_backlog_subjects": {("acme", "booking"): journal.subjects.dirty_count()}}
            )
            app = Receiver(inbox, endpoints, pipeline.webhooks, metrics)
            stack.push_async_callback(inbox.close)
            stack.push_async_callback(endpoints.close)
            server = serving(app, pipeline.webhooks, stop_within=60.0, refused=metrics.refused)
            running = Running(journal, inbox, endpoints, metrics, await stack.enter_async_context(server))

            async def hang_up() -> None:
                for client in running.clients:
                    await client.close()

            stack.push_async_callback(hang_up)
            return running

        yield make
