"""The receiver: an ASGI application that takes deliveries, and says how it is.

A delivery is a POST to an address whose last part is the endpoint id, whatever stands before it: a reverse proxy may keep
or strip its prefix. Order of work, and none of it can be swapped: the secret from the headers, then the size, then the
body, then the disk, then `200` with an empty body. Deliveries go past Starlette's routes, which the other pages use,
because a router costs as much as all of the rest.
"""

import asyncio

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from octo_sync.errors import JournalError
from octo_sync.flows.webhooks.receive import Inbox, InboxFull
from octo_sync.pipeline import WebhookSettings
from octo_sync.receiver.endpoints import SECRET_HEADER, EndpointCache
from octo_sync.receiver.metrics import Metrics

_PROBED_FOR = 1.0
"""Seconds that an answer of /readyz is good for: each look costs a sync of the disk, and anybody may ask."""
_RETRY_AFTER = b"5"

_EMPTY: Message = {"type": "http.response.body", "body": b""}
_CLOSE = (b"connection", b"close")


def _head(status: int, *headers: tuple[bytes, bytes]) -> Message:
    return {"type": "http.response.start", "status": status, "headers": [(b"content-length", b"0"), *headers]}


_STORED = _head(200)
# What is not stored ends the connection: the rest of its body is not wanted, and strangers keep none open.
_UNAUTHORIZED = _head(401, _CLOSE)
_TOO_LARGE = _head(413, _CLOSE)
_UNAVAILABLE = _head(503, (b"retry-after", _RETRY_AFTER), _CLOSE)


class _TooLarge(Exception):  # noqa: N818 - caught a few lines on
    """The body is larger than the limit."""


class Receiver:
    """The receiver as an ASGI application; usable without a server, in one process with everything else.

    Args:
        inbox: Makes deliveries durable.
        endpoints: Which addresses are open.
        limits: `[webhooks]` of the pipeline file; sizes are enforced here, times and connections by `receiver/server.py`.
        metrics: Where to count; a registry of its own when None.
    """

    def __init__(
        self, inbox: Inbox, endpoints: EndpointCache, limits: WebhookSettings, metrics: Metrics | None = None
    ) -> None:
        self._inbox, self._endpoints, self._metrics = inbox, endpoints, metrics or Metrics()
        self._body_limit = limits.body_limit
        self._pages = Starlette(
            routes=[
                Route("/livez", self._livez, methods=["GET"]),
                Route("/readyz", self._readyz, methods=["GET"]),
                Route("/metrics", self._metrics_page, methods=["GET"]),
            ]
        )
        self._ready: tuple[float, JournalError | None] = float("-inf"), None
        self._probing = asyncio.Lock()
        inbox.batches.append(self._metrics.committed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] == "http" and scope["method"] == "POST":
            await self._deliver(scope, receive, send)
        else:
            await self._pages(scope, receive, send)

    async def _deliver(self, scope: Scope, receive: Receive, send: Send) -> None:
        time, metrics = asyncio.get_running_loop().time, self._metrics
        started = time()
        secrets, length, odd = [], b"", ""
        for name, value in scope["headers"]:
            if name == SECRET_HEADER:
                secrets.append(value)
            elif name == b"content-length":
                length = value
            elif name == b"content-encoding" and value.strip().lower() not in {b"", b"identity"}:
                odd = f"encoded as {value[:40].decode('latin-1').encode('ascii', 'replace').decode()}"
        endpoint = scope["path"].rpartition("/")[2]
        connection = ""
        try:
            door = await self._endpoints.admit(endpoint, secrets)
            if door is None:
                answer, result = _UNAUTHORIZED, "unauthorized"
            else:
                connection = door.connection
                body = await self._read(receive, length)
                if body is None:
                    metrics.delivery(connection, "cut")
                    return  # whoever sent it has gone
                stored = await self._inbox.receive(connection, endpoint, body, odd=odd)
                answer, result = _STORED, "odd" if stored.reading else "stored"
                self._endpoints.seen(endpoint, stored.subscription)
                metrics.acknowledged(time() - started)
        except _TooLarge:
            answer, result = _TOO_LARGE, "too_large"
        except InboxFull:
            answer, result = _UNAVAILABLE, "busy"
        except JournalError:
            answer, result = _UNAVAILABLE, "failed"
        metrics.delivery(connection, result)
        await send(answer)
        await send(_EMPTY)

    async def _read(self, receive: Receive, length: bytes) -> bytes | None:
        """The body; None when the sender has gone before it was whole."""
        if length.isdigit() and int(length) > self._body_limit:
            raise _TooLarge
        body = b""
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return None
            part: bytes = message.get("body", b"")
            body += part
            if len(body) > self._body_limit:
                raise _TooLarge
            if not message.get("more_body", False):
                return body

    async def _livez(self, _request: Request) -> Response:
        return PlainTextResponse("alive\n")

    async def _readyz(self, _request: Request) -> Response:
        """Whether a delivery would be stored now."""
        async with self._probing:
            now = asyncio.get_running_loop().time()
            if now - self._ready[0] > _PROBED_FOR:
                try:
                    await self._inbox.probe()
                    self._ready = now, None
                except JournalError as error:
                    self._ready = now, error
        if (trouble := self._ready[1]) is not None:
            return PlainTextResponse(f"{trouble}\n", status_code=503, headers={"retry-after": _RETRY_AFTER.decode()})
        return PlainTextResponse("ready\n")

    async def _metrics_page(self, _request: Request) -> Response:
        page = await self._metrics.page()
        return Response(page, media_type="text/plain; version=0.0.4; charset=utf-8")
