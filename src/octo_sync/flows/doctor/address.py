"""The address for webhooks, as a service sees it: is there a name, a certificate, and our receiver behind it?

One POST goes there with a wrong secret. Our receiver refuses it from the headers alone, with 401 and an empty body, and stores
nothing; whatever else answers says that deliveries would go astray.
"""

import http.client
import ssl
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from urllib.parse import urlsplit

from octo_sync.flows.doctor.advice import advise
from octo_sync.flows.doctor.machine import Finding
from octo_sync.flows.webhooks.plan import HEADER
from octo_sync.pipeline.values import is_loopback

_WITHIN = 10.0
_READ = 1024
_AREA = "webhooks"


@dataclass(frozen=True, slots=True)
class Reached:
    """What came of asking an address; `problem` says why nothing did."""

    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    certificate_ends: datetime | None = None
    problem: str = ""


def certificate_of(host: str, port: int, context: ssl.SSLContext) -> datetime | str:
    """When a host's certificate ends, or why it shows none that is good. Blocking."""
    with closing(http.client.HTTPSConnection(host, port, timeout=_WITHIN, context=context)) as connection:
        try:
            connection.connect()
        except OSError as error:
            return _reason(error)
        return _ends(connection) or "it showed no certificate"


def reach(url: str, endpoint: str, context: ssl.SSLContext) -> Reached:
    """POST to an address that no subscription has, below `webhooks.url`, with a secret that is none. Blocking."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port
    kind: Callable[..., http.client.HTTPConnection] = http.client.HTTPConnection
    if parts.scheme == "https":
        kind = partial(http.client.HTTPSConnection, context=context)
    ends = None
    with closing(kind(host, port, timeout=_WITHIN)) as connection:
        try:
            connection.connect()
            ends = _ends(connection)
            headers = {HEADER: "octo-sync doctor", "Content-Type": "application/json"}
            connection.request("POST", f"{parts.path}/hooks/{endpoint}", body=b"{}", headers=headers)
            answer = connection.getresponse()
            told = {name.lower(): value for name, value in answer.getheaders()}
            return Reached(answer.status, told, answer.read(_READ), ends)
        except (OSError, http.client.HTTPException) as error:
            return Reached(certificate_ends=ends, problem=_reason(error))


def _ends(connection: http.client.HTTPConnection) -> datetime | None:
    if not isinstance(connection.sock, ssl.SSLSocket):
        return None
    shown = connection.sock.getpeercert() or {}
    text = shown.get("notAfter")
    return datetime.fromtimestamp(ssl.cert_time_to_seconds(text), UTC) if isinstance(text, str) else None


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate is not good: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"no TLS: {error.reason or type(error).__name__}"
    if isinstance(error, TimeoutError):
        return f"nobody answered within {_WITHIN:g} s"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return type(error).__name__


def webhook_findings(url: str, reached: Reached, *, serves: bool) -> list[Finding]:
    """What that means, purely. `serves`: `octo-sync serve` runs on this project now."""
    host, status = urlsplit(url).hostname or "", reached.status
    is_ours = status == 401 and not reached.body and "www-authenticate" not in reached.headers  # noqa: PLR2004 - HTTP's
    finding = partial(Finding, _AREA, "address")
    if is_ours:
        return [finding("ok", f"{host} reaches the receiver: a wrong secret is refused with 401")]
    usual = "proxy" if serves else "serve"
    if reached.problem:
        text, fix = f"{host} cannot be reached from here: {reached.problem}", advise("unreachable", start=advise(usual))
        consequence = "Services cannot deliver; the copy is as fresh as its pulls."
        if is_loopback(url) and not serves:
            return [finding("warn", text, advise(usual), consequence=consequence)]
        return [finding("fail", text, fix, consequence=consequence)]
    cases = (
        (range(200, 300), " to a wrong secret: that is not our receiver", "proxy answers"),
        ((502, 503, 504), ": the proxy is there, the receiver behind it is not", usual),
        ((404,), ": the path is not passed to the receiver", "proxy path"),
        (range(300, 400), ", a redirect: services do not follow one", "redirect"),
        ((401, 403), ", but not as our receiver does: something before it asks for a password", "proxy password"),
        ((status,), ", which our receiver does not", usual),
    )
    how, name = next((how, name) for statuses, how, name in cases if status in statuses)
    consequence = "Deliveries are refused, and the service repeats them in vain."
    if status in range(200, 300):
        consequence = "Deliveries are acknowledged by somebody who does not keep them, so they are lost."
    return [finding("fail", f"{host} answered {status}{how}", advise(name), consequence=consequence)]
