"""Bytes in and out of ASGI, the faults of the connection included."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, NoReturn

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
        await _part(send, answer.body)
        raise ConnectionResetError
    if faults.pick("reset", method, path):
        await _part(send, answer.body[: len(answer.body) // 2])
        abort(send)
    drip = faults.pick("drip", method, path)
    rest = answer.body
    if drip is not None:
        step, rest = max(1, int(drip.params["bytes"])), b""
        for start in range(0, len(answer.body), step):
            await wait(float(drip.params["interval"]))
            await _part(send, answer.body[start : start + step])
    await _part(send, rest, more=False)


async def _part(send: Send, body: bytes, *, more: bool = True) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": more})


def abort(send: Send) -> NoReturn:
    """Cut the connection without a farewell, where the server lets us reach it."""
    transport = getattr(getattr(send, "__self__", None), "transport", None)
    if transport is not None:
        transport.abort()
    raise ConnectionResetError
