"""Bytes in and out of ASGI, the faults of the connection included."""

from collections.abc import Awaitable, Callable
from typing import NoReturn

from starlette.types import Send

from octo_sync.sandbox.faults import Faults
from octo_sync.sandbox.messages import Answer, Call

_PROMISED_TOO_MUCH = 1_000


async def transmit(
    answer: Answer, faults: Faults, call: Call, send: Send, wait: Callable[[float], Awaitable[None]]
) -> None:
    """Send an answer, or what a fault leaves of it."""
    length = len(answer.body)
    truncated = faults.pick("truncated", call.method, call.path)
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
    if faults.pick("reset", call.method, call.path):
        await _part(send, answer.body[: len(answer.body) // 2])
        abort(send)
    rest = answer.body
    if drip := faults.pick("drip", call.method, call.path):
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
