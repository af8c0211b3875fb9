"""Texts of a pipeline file → values: durations, horizons, addresses, names.

Every function takes whatever TOML, an environment variable or a flag can hold and returns the value, or raises
`ValueError` with what was expected. None reads anything from outside, none repeats a text that may be secret.
"""

import ipaddress
import re
import socket
import zoneinfo
from collections.abc import Callable, Collection
from difflib import get_close_matches
from urllib.parse import urlsplit

from octo_sync.model import Horizon, zone_of

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_LONGEST = 366 * 86400.0
_FURTHEST = 3660
_LARGEST_PORT = 65535

_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,9})?) ?(ms|s|m|h|d)?", re.ASCII)
_HORIZON = re.compile(r"([+-]?\d{1,6})d\.\.([+-]?\d{1,6})d", re.ASCII)
_HOST = re.compile(r"(?=.{1,253}\Z)[a-z0-9_](?:[a-z0-9_-]{0,62})(?:\.[a-z0-9_](?:[a-z0-9_-]{0,62}))*\.?", re.ASCII)
_CRON_FIELD = re.compile(r"[0-9A-Za-z*/,#?L-]{1,64}", re.ASCII)

# Sent by the connector itself; a second one would contradict it, or carry a secret in the open.
_OWN_HEADERS = frozenset({
    "accept", "accept-encoding", "accept-language", "authorization", "connection", "content-length",
    "content-type", "cookie", "host", "octo-capabilities", "proxy-authorization", "te", "trailer",
    "transfer-encoding", "upgrade", "user-agent",
})  # fmt: skip


def suggest(text: str, known: Collection[str]) -> str:
    """`, did you mean "x"?` when one of `known` is close to `text`, else nothing."""
    close = get_close_matches(text[:100], known, n=1, cutoff=0.6)
    return f', did you mean "{close[0]}"?' if close else ""


def duration(value: object) -> float:
    """Seconds from `0.1`, `5`, `"100ms"`, `"5s"`, `"2m"`, `"1h"` or `"1d"`."""
    wanted = 'expected a duration of 0 to 366 days, such as 0.1 (seconds), "100ms", "5s", "2m", "1h" or "1d"'
    return _seconds(value, _LONGEST, wanted)


def age(value: object) -> float:
    """Seconds like `duration`, up to a hundred years: how long something is kept."""
    return _seconds(value, 100 * _LONGEST, 'expected 0 (for ever) or how long it is kept, such as "90d" or "400d"')


def _seconds(value: object, most: float, wanted: str) -> float:
    seconds: float = -1
    if isinstance(value, str) and (match := _DURATION.fullmatch(value.strip())):
        seconds = float(match[1]) * _SECONDS[match[2] or "s"]
    elif isinstance(value, int | float) and not isinstance(value, bool):
        seconds = value
    if not 0 <= seconds <= most:
        raise ValueError(wanted)
    return float(seconds)


def horizon(value: object) -> Horizon:
    """Days before and after today at the venue from `"-90d..+365d"`."""
    if isinstance(value, Horizon):
        return value
    match = _HORIZON.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise ValueError('expected days before and after today, such as "-90d..+365d"')
    before, after = int(match[1]), int(match[2])
    if before > after:
        raise ValueError(f'expected the first day not after the last, such as "{after:+d}d..{before:+d}d"')
    if before < -_FURTHEST or after > _FURTHEST:
        raise ValueError(f"expected days within {_FURTHEST} before and after today")
    return Horizon(before, after)


def plain_text(value: object) -> str:
    """A text of 1 to 1000 characters without control characters or surrogates."""
    if not isinstance(value, str):
        raise ValueError("expected a text")  # noqa: TRY004 - pydantic collects ValueError only
    if not value.strip():
        raise ValueError("expected a text that is not empty")
    if len(value) > 1000 or not value.isprintable():  # noqa: PLR2004 - said in the sentence
        raise ValueError("expected at most 1000 printable characters, without control characters")
    return value


def sql(value: object) -> str:
    """A query or condition of 1 to 20,000 characters, of any number of lines."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError("expected SQL as a text")
    if len(value) > 20_000 or not "".join(value.split()).isprintable():  # noqa: PLR2004 - said in the sentence
        raise ValueError("expected at most 20,000 characters of SQL, without control characters but line ends and tabs")
    return value


def _shaped(pattern: str, wanted: str) -> Callable[[object], str]:
    """A reader of texts of one shape."""
    shape = re.compile(pattern, re.ASCII)

    def read(value: object) -> str:
        if not isinstance(value, str) or not shape.fullmatch(value):
            raise ValueError(wanted)
        return value

    return read


name = _shaped(
    r"[a-z0-9](?:[a-z0-9]|[_-](?=[a-z0-9])){0,62}",
    'expected a name of a-z, 0-9 and single "-" or "_", at most 63 characters',
)
"""A name that fits into a key, a file name and an environment variable alike."""


language = _shaped(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8}){0,3}", 'expected a language tag such as "en" or "pt-BR"')
"""A BCP 47 tag such as `en` or `pt-BR`."""


def time_zone(value: object) -> str:
    """The IANA name of a time zone this machine knows."""
    text = plain_text(value)
    if zone_of(text) is None:
        hint = suggest(text, zoneinfo.available_timezones())
        raise ValueError(f'expected an IANA time zone such as "Europe/Lisbon"{hint}')
    return text


variable_name = _shaped(
    "[A-Z_][A-Z0-9_]*", 'expected the NAME of an environment variable, in capitals, such as "ACME_TOKEN"'
)
"""The name of an environment variable; capitals, so that a token in the wrong place is not taken for a name."""


def cron(value: object) -> str:
    """Five fields: minute, hour, day of month, month, day of week. Only the form; `checks.schedule` asks what it means."""
    fields = value.split() if isinstance(value, str) else []
    if len(fields) != 5 or not all(_CRON_FIELD.fullmatch(field) for field in fields):  # noqa: PLR2004 - cron's five
        raise ValueError('expected a cron expression of five fields, such as "0 3 * * *" (every night at three)')
    return " ".join(fields)


_header = _shaped("[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}", "expected the name of an HTTP header")


def header_name(value: object) -> str:
    """The name of an extra request header, none of those the connector sends itself."""
    if (text := _header(value)).lower() in _OWN_HEADERS:
        raise ValueError(
            "expected a header that octo-sync does not send itself (token, languages and capabilities have keys)"
        )
    return text


header_text = _shaped("[!-~](?:[ -~]*[!-~])?", "expected printable ASCII characters without a space at either end")
"""A header's value: visible ASCII and inner spaces, so that nothing can be smuggled into the request."""


def service_url(value: object, *, example: str = "https://api.example.com/octo/v1") -> str:
    """The base URL of an OCTO service without a trailing slash: scheme, host, optional port and path, nothing else."""
    text = plain_text(value)
    wanted = f'expected an address such as "{example}"'
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise ValueError(wanted) from None
    if parts.scheme not in {"http", "https"} or not parts.hostname or port == 0 or re.search(r"[\s\\]", text):
        raise ValueError(wanted)
    if parts.username is not None or parts.password is not None:
        raise ValueError(f"{wanted}, without a user or a password in it")
    if parts.query or parts.fragment or "?" in text or "#" in text:
        raise ValueError(f'{wanted}, without "?" or "#"')
    if _literal(parts.hostname) is None and not _HOST.fullmatch(parts.hostname):
        raise ValueError(f"{wanted}, with a host name of a-z, 0-9, - and . (an international name in its xn-- form)")
    return text.rstrip("/")


def host_and_port(value: object) -> str:
    """Where to listen: an address or a name of this machine, and a port; an IPv6 address stands in brackets."""
    host, _, port = value.rpartition(":") if isinstance(value, str) else ("", "", "")
    inner = host[1:-1] if host.startswith("[") and host.endswith("]") else ""
    named = bool(_HOST.fullmatch(host)) or (":" in inner and _literal(inner) is not None)
    if not named or not re.fullmatch(r"\d{1,5}", port, re.ASCII) or int(port) > _LARGEST_PORT:
        raise ValueError('expected host and port, such as "127.0.0.1:8787", "[::1]:8787" or "0.0.0.0:8787"')
    return f"{host}:{int(port)}"


def _literal(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address a host spells out, also as `127.1`, `0x7f000001` or IPv4 inside IPv6; None for a name."""
    try:
        address = ipaddress.ip_address(host.rstrip("."))
    except ValueError:
        if not re.fullmatch(r"(?:0[xX][0-9a-fA-F]*|\d+)(?:\.(?:0[xX][0-9a-fA-F]*|\d+)){0,3}\.?", host, re.ASCII):
            return None
        try:
            return ipaddress.IPv4Address(socket.inet_aton(host.rstrip(".")))  # the resolver's own reading, no lookup
        except OSError:
            return None
    if isinstance(address, ipaddress.IPv6Address):
        return address.ipv4_mapped or address.sixtofour or address
    return address


def is_loopback(url: str) -> bool:
    """Whether the address is this machine and nothing else."""
    host = (urlsplit(url).hostname or "").rstrip(".")
    address = _literal(host)
    return address.is_loopback if address else host == "localhost" or host.endswith(".localhost")


def refuse_address(
    url: str,
    *,
    allow_hosts: Collection[str],
    why_https: str = "the token travels with every request; a host named in allow_hosts may be spoken to over http",
) -> str | None:
    """Why a token must not be sent to this address, or None when it may.

    https only, unless the host is loopback or named in `allow_hosts`; private, link-local
    and other special addresses only when named.
    """
    parts = urlsplit(url)
    host = (parts.hostname or "").rstrip(".")
    if is_loopback(url) or host in {allowed.lower().strip("[]").rstrip(".") for allowed in allow_hosts}:
        return None
    address = _literal(host)
    if address and (not address.is_global or address.is_multicast):
        return f'expected a public address; if this private one is meant, name it: allow_hosts = ["{host}"]'
    if parts.scheme != "https":
        return f"expected https, because {why_https}"
    return None
