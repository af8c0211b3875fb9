"""What every request goes through first: who may ask, under which name, and the headers that every answer has.

The name in `Host` must be one of ours: else a page of somebody else's, whose name was made to lead to this machine, could
read the copy through a visitor's browser (DNS rebinding). The token is compared as a digest, in constant time.
"""

import base64
import binascii
import contextlib
import hashlib
import hmac
import ipaddress
import logging
from collections.abc import Collection
from http import HTTPStatus
from urllib.parse import urlsplit

from starlette.datastructures import MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from octo_sync.model import Secret

log = logging.getLogger("octo_sync")

_HEADERS = {
    "content-security-policy": "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    # To ourselves, or a browser does not say where a form came from.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
}
ACT = "/act"
"""Where forms go that change something."""
WHO = "octo_sync.who"
"""In the scope of a request to `ACT`: the name of who asks."""
_LONGEST_NAME = 100
_HERE = frozenset({"localhost", "127.0.0.1", "::1"})
_WILDCARDS = frozenset({"0.0.0.0", "::"})  # noqa: S104 - recognised, not bound


class Refusal(PlainTextResponse):
    """A sentence and its code, for whom nothing is shown."""

    def __init__(self, status: HTTPStatus, sentence: str, **headers: str) -> None:
        super().__init__(f"{sentence}\n", status, {name.replace("_", "-"): value for name, value in headers.items()})


def names_of(host: str, allow_hosts: Collection[str]) -> frozenset[str]:
    """The names by which the dashboard may be called when it listens on `host`; `*` stands for any address, not any name."""
    named = {each.strip("[]").lower() for each in (host, *allow_hosts)}
    return frozenset(_HERE | named | ({"*"} if host.strip("[]") in _WILDCARDS else set()))


class Guard:
    """The application `inner` behind all of it.

    Args:
        inner: Answers who may ask.
        names: From `names_of`.
        token: What a caller has to know; None where anybody who reaches it may look.
        guarded: Paths, or beginnings of paths that end with `/`, that no other site may make a browser ask for.
        user_header: In which a proxy says who asks; empty without one. With it or a token, people may act.
    """

    def __init__(
        self,
        inner: ASGIApp,
        *,
        names: frozenset[str],
        token: Secret | None,
        guarded: Collection[str] = (),
        user_header: str = "",
    ) -> None:
        self._inner, self._names = inner, names
        self._user_header = user_header.lower().encode()
        self._digest = _digest(token.reveal().encode()) if token else None
        self._guarded = tuple(guarded)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request. `inner` answers its own failures; here they are written down."""
        if scope["type"] != "http":
            return
        ended = False

        async def sending(message: Message) -> None:
            nonlocal ended
            ended = message["type"] == "http.response.body" and not message.get("more_body", False)
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(_HEADERS)
                headers.setdefault("cache-control", "no-store")
            await send(message)

        refused = self._refused(scope)
        try:
            await (refused or self._inner)(scope, receive, sending)
        except Exception:
            log.exception("action=dashboard_failed path=%s", scope["path"])
            if not ended:
                raise  # the connection is ended, so that nobody takes a part for the whole

    def _refused(self, scope: Scope) -> Refusal | None:
        """Why this request gets nothing; None when it may go on."""
        headers: dict[bytes, bytes] = dict(scope["headers"])
        if not self._is_ours(headers.get(b"host", b"")):
            return Refusal(
                HTTPStatus.MISDIRECTED_REQUEST,
                "The dashboard does not go by this name. Name it in dashboard.allow_hosts of the pipeline file, or call "
                "it by its address.",
            )
        if self._digest is not None and not self._knows(headers.get(b"authorization", b"")):
            return Refusal(
                HTTPStatus.UNAUTHORIZED,
                "The dashboard wants its token: as the password of any user, or as a bearer token.",
                www_authenticate='Basic realm="octo-sync", charset="UTF-8"',
            )
        path: str = scope["path"]
        if scope["method"] == "POST" and path == ACT and (self._digest or self._user_header):
            return self._refused_act(scope, headers)
        if scope["method"] not in ("GET", "HEAD"):
            return Refusal(HTTPStatus.METHOD_NOT_ALLOWED, "The dashboard is only read.", allow="GET, HEAD")
        if headers.get(b"sec-fetch-site") == b"cross-site" and any(
            path == each or (each.endswith("/") and path.startswith(each)) for each in self._guarded
        ):
            return Refusal(
                HTTPStatus.FORBIDDEN, "Another site asked your browser for this; open it from the dashboard instead."
            )
        return None

    def _refused_act(self, scope: Scope, headers: dict[bytes, bytes]) -> Refusal | None:
        """Only a form of our own pages may act, and only for somebody with a name. Browsers say which page sent it.

        A page of another site can send what it likes here with a visitor's password, but not under our own address.
        """
        site, origin = headers.get(b"sec-fetch-site"), headers.get(b"origin", b"").decode("latin-1")
        is_own = site == b"same-origin" if site else urlsplit(origin).netloc.encode() == headers[b"host"]
        if not is_own:
            return Refusal(HTTPStatus.FORBIDDEN, "Only the dashboard's own forms may act; open its page and try again.")
        scope[WHO] = self._who(headers)
        if not scope[WHO]:
            return Refusal(
                HTTPStatus.FORBIDDEN, "Nobody may act without a name: the proxy, or the browser's login, says it."
            )
        return None

    def _who(self, headers: dict[bytes, bytes]) -> str:
        """The name of who asks: what the proxy says, else the user of the login; for a bearer token, that."""
        login, _ = _login(headers.get(b"authorization", b""))
        name = headers.get(self._user_header, b"") if self._user_header else login
        text = name.decode("utf-8", "replace")
        return "".join(each for each in text if each.isprintable()).strip()[:_LONGEST_NAME]

    def _is_ours(self, host: bytes) -> bool:
        text = host.decode("latin-1").strip().lower()
        name = text[1:].partition("]")[0] if text.startswith("[") else text.partition(":")[0]
        name = name.rstrip(".")
        return name in self._names or name.endswith(".localhost") or ("*" in self._names and _is_address(name))

    def _knows(self, authorization: bytes) -> bool:
        _, password = _login(authorization)
        return hmac.compare_digest(_digest(password), self._digest or b"")


def _login(authorization: bytes) -> tuple[bytes, bytes]:
    """The name and the password, or token, that a caller gives; nothing where they are none."""
    scheme, _, value = authorization.partition(b" ")
    if scheme.lower() == b"bearer":
        return b"bearer token", value.strip()
    with contextlib.suppress(binascii.Error, ValueError):
        name, _, password = base64.b64decode(value.strip(), validate=True).partition(b":")
        if scheme.lower() == b"basic":
            return name, password
    return b"", b""


def _digest(value: bytes) -> bytes:
    return hashlib.sha256(value).digest()


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
