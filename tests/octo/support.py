"""Real little servers, on real sockets, that say exactly the bytes they are told to."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from octo_sync.model import Connection, Limits, Secret
from octo_sync.octo.client import OctoClient

TOKEN = "tok-3b9f7d-secret"


class WallClock:
    def now(self) -> datetime:
        return datetime.now(UTC)


class StoppedClock:
    """Always the same instant."""

    def __init__(self, at: datetime) -> None:
        self.at = at

    def now(self) -> datetime:
        return self.at


@dataclass(frozen=True)
class Seen:
    """A request as it arrived."""

    number: int
    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes
    at: float


Handler = Callable[[Seen, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Server:
    """`seen` holds the requests in the order of their arrival."""

    origin: str
    seen: list[Seen] = field(default_factory=list)


async def reply(
    writer: asyncio.StreamWriter, status: int, body: bytes = b"", headers: Mapping[str, str] | None = None
) -> None:
    lines = {"Content-Type": "application/json", "Content-Length": str(len(body)), **(headers or {})}
    head = f"HTTP/1.1 {status} Whatever\r\n" + "".join(f"{k}: {v}\r\n" for k, v in lines.items())
    writer.write(head.encode("latin-1") + b"\r\n" + body)
    await writer.drain()


def says(status: int, body: bytes = b"", headers: Mapping[str, str] | None = None) -> Handler:
    """A server that always says the same."""

    async def handler(seen: Seen, writer: asyncio.StreamWriter) -> None:
        await reply(writer, status, body, headers)

    return handler


def in_turn(*handlers: Handler) -> Handler:
    """The first handler for the first request, and so on; the last one for all further ones."""

    async def handler(seen: Seen, writer: asyncio.StreamWriter) -> None:
        await handlers[min(seen.number, len(handlers)) - 1](seen, writer)

    return handler


@asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[Server]:
    server = Server("")

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                while not writer.is_closing():
                    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                    method, target, _ = head[0].split(" ")
                    headers = {k.lower(): v for k, v in (line.split(": ", 1) for line in head[1:] if line)}
                    body = await reader.readexactly(int(headers.get("content-length", "0")))
                    now = asyncio.get_running_loop().time()
                    seen = Seen(len(server.seen) + 1, method, target, headers, body, now)
                    server.seen.append(seen)
                    await handler(seen, writer)
                writer.close()
                await writer.wait_closed()
        finally:
            writer.transport.abort()

    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(connected(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        # A task that is cancelled before its first step never comes to its own end.
        task.add_done_callback(lambda _: writer.transport.abort())

    listener = await asyncio.start_server(accept, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    server.origin = f"http://127.0.0.1:{port}"
    try:
        yield server
    finally:
        listener.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await listener.wait_closed()
        await asyncio.sleep(0)


QUICK = {"deadline": 20.0, "connect_timeout": 10.0, "attempts": 3, "backoff": 0.01, "backoff_cap": 0.05}


def connection(origin: str, *, limits: Mapping[str, Any] | None = None, **given: Any) -> Connection:
    return Connection(
        name="pier",
        base_url=f"{origin}/octo/v1",
        token=given.pop("token", Secret(TOKEN, "environment variable PIER_TOKEN")),
        limits=Limits(**{**QUICK, **(limits or {})}),
        **given,
    )


def client(origin: str, *, seed: int = 1, clock: Any = None, limits: Any = None, extra: Any = None, **given: Any):
    return OctoClient(
        connection(origin, limits=limits, **given),
        clock=clock or WallClock(),
        random=random.Random(seed),
        **(extra or {}),
    )
