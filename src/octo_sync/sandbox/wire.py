"""Bytes in and out of ASGI, the faults of the connection included."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from octo_sync.sandbox.messages import Answer
from octo_sync.sandbox.service import Service

Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]
Receive = Callable[[], Awaitable[Message]]
MAX_BODY = 10_000_000
_PROMISED_TOO_MUCH = 1_000


async def read_body(receive: Receive) -> bytes | None:
    """The request's body; None when it is larger than the sandbox takes."""
    message = await receive()
    first = message.get("body", b"")
    if not message.get("more_body"):
        return bytes(first)
    parts, size = [first], len(first)
    while message.get("more_body"):
        message = await receive()
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > MAX_BODY:
            return None
    return b"".join(parts)


async def transmit(
    answer: Answer,
    service: Service,
    method: str,
    path: str,
    send: Send,
    wait: Callable[[float], Awaitable[None]],
) -> None:
    """Send an answer, or what a fault leaves of it."""
    faults = service.faults
    length = len(answer.body)
    truncated = faults.pick("truncated", method, path)
    if truncated is not None:
        length += _PROMISED_TOO_MUCH
    headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in answer.headers]
    if answer.kind is not None:
        headers.append((b"content-type", answer.kind.encode()))
    if answer.status != 204:  # noqa: PLR2004 - No Content has no length
        headers.append((b"content-length", str(length).encode()))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    if truncated is not None:
        await send({"type": "http.response.body", "body": answer.body, "more_body": True})
        raise ConnectionResetError
    if faults.pick("reset", method, path):
        half = answer.body[: len(answer.body) // 2]
        await send({"type": "http.response.body", "body": half, "more_body": True})
        abort(send)
        raise ConnectionResetError
    drip = faults.pick("drip", method, path)
    if drip is not None:
        step = max(1, int(drip.params["bytes"]))
        for start in range(0, len(answer.body), step):
            await wait(float(drip.params["interval"]))
            await send({"type": "http.response.body", "body": answer.body[start : start + step], "more_body": True})
        await send({"type": "http.response.body", "body": b""})
        return
    await send({"type": "http.response.body", "body": answer.body})


def abort(send: Send) -> None:
    """Cut the connection without a farewell, where the server lets us reach it."""
    transport = getattr(getattr(send, "__self__", None), "transport", None)
    if transport is not None:
        transport.abort()
