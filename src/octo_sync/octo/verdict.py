"""What an answer means, and the sentence that says so. Pure: status, headers and bytes in, an error or None out.

Services disagree on statuses and on the spelling of codes (Q28): the status decides first, the code second and without
regard to case. `NotFound` is the only proof of a deletion, so it needs an OCTO error object with the very code the call
expects, and no other id in it than the one that was asked for.
"""

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin, urlsplit

import msgspec

from octo_sync.errors import (
    AnswerInvalid,
    AuthenticationRefused,
    NotFound,
    RateLimited,
    RequestRefused,
    ServiceError,
    ServiceUnavailable,
)
from octo_sync.model import Connection, Secret
from octo_sync.octo.endpoints import Call

RETRIED = frozenset({429, 500, 502, 503, 504, 506, 507, 508, 510, 511})
"""The statuses worth trying again: the list of OCTO Cloud's own code."""

SAID = 200
SMALL = 8192
BLANK = b" \t\r\n"


@dataclass(frozen=True, slots=True)
class Voice:
    """Builds the sentences: what was tried, where, what came of it, what to do. Never a token, never a payload."""

    connection: Connection
    secret: Secret

    def say(self, call: Call[Any], what: str, advice: str) -> str:
        """`products (GET /products) at "zaui" (api.zaui.io) <what>; <advice>`."""
        host = urlsplit(self.connection.base_url).netloc.rpartition("@")[2]
        return self.clean(
            f'{call.operation} ({call.method} {call.path}) at "{self.connection.name}" ({host}) {what}; {advice}', 1000
        )

    def clean(self, text: str, limit: int = SAID) -> str:
        """`text` on one line, without control characters and without the token, cut to `limit`."""
        token = self.secret.reveal()
        if token:
            text = text.replace(token, "[token]")
        text = "".join(" " if unicodedata.category(char)[0] == "C" else char for char in text[: limit * 4])
        text = " ".join(text.split())
        return text if len(text) <= limit else f"{text[: limit - 1]}…"


def judge(call: Call[Any], status: int, headers: Mapping[str, str], body: bytes, voice: Voice) -> ServiceError | None:
    """The error this answer is, or None when it is a good one. `body` may be cut for other statuses than 2xx."""
    if status in {200, 201} or (status == 204 and not call.opens_with):  # noqa: PLR2004 - HTTP's own numbers
        return _judge_body(call, status, headers, body, voice)
    code, message, context = _error_object(body)
    told = f"{status} {voice.clean(code, 64)}".strip() + (f' "{voice.clean(message)}"' if message else "")
    kind, advice = _kind(call, status, code, context, voice)
    if 300 <= status < 400:  # noqa: PLR2004
        told = f"{status}, a redirect to {voice.clean(_target(voice.connection.base_url, headers), 100)}"
        advice = "redirects are not followed, so that the token stays here: set base_url to the service's real address"
    verb = "failed with" if issubclass(kind, ServiceUnavailable | AnswerInvalid) else "was refused with"
    return kind(voice.say(call, f"{verb} {told}", advice), status=status, code=voice.clean(code, 64) or None)


def _kind(
    call: Call[Any], status: int, code: str, context: Mapping[str, object], voice: Voice
) -> tuple[type[ServiceError], str]:
    kind: type[ServiceError] = AnswerInvalid
    advice = "nothing of it was used: only 200 and 201 are whole answers"
    if status in {401, 403} or (status == 400 and code in {"UNAUTHORIZED", "FORBIDDEN"}):  # noqa: PLR2004
        kind, advice = AuthenticationRefused, f"check the token ({voice.connection.token.origin}) and its abilities"
    elif status == 429:  # noqa: PLR2004
        kind, advice = RateLimited, "ask later or lower limits.requests_per_minute"
    elif status >= 500:  # noqa: PLR2004
        kind, advice = ServiceUnavailable, "try again later"
    elif status >= 400:  # noqa: PLR2004
        kind, advice = RequestRefused, "the same request will be refused again: correct it or leave it out"
        if status in {400, 404, 422} and code in call.missing:
            key, asked = call.missing[code]
            named = context.get(key)
            if named is None or str(named) in asked:
                kind, advice = NotFound, "the service does not know this id, or not for this token"
            else:
                advice = f"its {key} is not the one that was asked for, so this proves nothing"
        elif status in {404, 405, 410}:
            advice = _nothing_there(call, voice)
    elif status >= 300:  # noqa: PLR2004
        kind = RequestRefused
    return kind, advice


def _nothing_there(call: Call[Any], voice: Voice) -> str:
    """What to do where nothing is at a path."""
    if call.operation in {"products", "supplier"}:  # every service has them
        path = voice.clean(urlsplit(voice.connection.base_url).path, 100)
        return f'check base_url: nothing is at its path "{path}", which usually ends with /octo/v1'
    if call.operation in {"list_subscriptions", "create_subscription"}:
        return "the service does not offer this: let [schedule] pull"
    return "nothing is at this path, or nobody has this id, which only a typed error would prove"


def _error_object(body: bytes) -> tuple[str, str, Mapping[str, object]]:
    """(code upper-cased, message, the whole object) when the body is an OCTO error object, else nothing."""
    try:
        decoded = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return "", "", {}
    if not isinstance(decoded, dict) or not isinstance(decoded.get("error"), str):
        return "", "", {}
    message = decoded.get("errorMessage")
    return decoded["error"].strip().upper(), message if isinstance(message, str) else "", decoded


def _judge_body(
    call: Call[Any], status: int, headers: Mapping[str, str], body: bytes, voice: Voice
) -> AnswerInvalid | None:
    """A first look, cheap at any size: does it begin and end like the JSON that was promised?"""
    if not call.opens_with:
        return None
    start, end = body[:SMALL].lstrip(BLANK)[:2], body[-SMALL:].rstrip(BLANK)[-1:]
    kind = voice.clean(headers.get("content-type", "no content type"), 60)
    problem = ""
    if start[:1] not in {b"[", b"{"} or b"\0" in start:
        problem = f"with something that is not JSON ({kind}, {len(body):,} bytes)"
    elif (start[:1] + end) not in {b"[]", b"{}"}:
        problem = f"with JSON that is cut off ({kind}, {len(body):,} bytes)"
    elif start[:1] not in call.opens_with:
        problem = "with an object where a list is promised" if start[:1] == b"{" else "with a list instead of an object"
    if (
        start[:1] == b"{"
        and len(body) < SMALL
        and b'"error"' in body
        and (error := _error_object(body))[0]
        and "errorMessage" in error[2]
    ):
        problem = f'with the error {voice.clean(error[0], 64)} "{voice.clean(error[1])}"'
    if not problem:
        return None
    return AnswerInvalid(
        voice.say(call, f"answered {status} {problem}", "nothing of it was used; check base_url, or try again later"),
        status=status,
    )


def _target(base: str, headers: Mapping[str, str]) -> str:
    try:
        parts = urlsplit(urljoin(base, headers.get("location", "")))
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}" if headers.get("location") else "nowhere"
    except ValueError:
        return "an address that cannot be read"
