"""Who can be told of something, and how that is written: a command, an address, a chat, mail addresses and a mail server."""

import re
import shlex
from collections.abc import Collection
from typing import Literal, NamedTuple
from urllib.parse import unquote, urlsplit

from octo_sync.pipeline import values

STAND_INS = {
    "to": "https://stand-in.invalid/",
    "ping": "https://stand-in.invalid/",
    "report": "mailto:nobody@stand-in.invalid",
    "smtp": "smtps://stand-in.invalid?from=nobody@stand-in.invalid",
}
"""For the secrets of `notify` where nobody is told, so that a file is read without them."""

_MAIL_ADDRESS = re.compile(
    r"[\w!#$%&'*+/=^`{|}~-]+(\.[\w!#$%&'*+/=^`{|}~-]+)*@[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*",
    re.ASCII | re.IGNORECASE,
)
"""Without what libraries read as comments, encoded words or groups: who is written is who gets it."""
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*(?=:)", re.IGNORECASE)
_WITHOUT_SCHEME = re.compile(r"[^\s/.~][^\s/]*\.[^\s/]+/")
_MAIL_PORTS = {"smtps": 465, "smtp": 587}


class Hook(NamedTuple):
    """Who is told: a command, the addresses of a mail, or an address and the form that it reads."""

    form: Literal["command", "mail", "json", "slack", "teams"]
    where: str


def hook(text: str) -> Hook:
    """A hook as it is written: `mailto:…`, `slack+https://…`, `teams+https://…`, an address, or a command."""
    found = _SCHEME.match(text)
    scheme = found[0].lower() if found else ""
    form, _, plain = scheme.rpartition("+")
    address = plain + text[len(scheme) :]
    if scheme == "mailto":
        return Hook("mail", text[len("mailto:") :])
    if plain in ("https", "http") and form in ("", "slack", "teams"):
        is_slack = form == "slack" or (not form and address.startswith("https://hooks.slack.com/"))
        return Hook("slack" if is_slack else "teams" if form else "json", address)
    return Hook("command", text)


def wrong(text: str, allow_hosts: Collection[str], *, has_server: bool) -> str | None:
    """Why nobody can be told so, or None. Whatever it says repeats nothing of what may be secret."""
    form, where = hook(text)
    if form == "command":
        return _wrong_command(where)
    if form == "mail":
        try:
            mail_addresses(where)
        except ValueError as error:
            return str(error)
        return None if has_server else "expected notify.smtp too, the mail server that sends it"
    return wrong_address(where, allow_hosts)


def _wrong_command(text: str) -> str | None:
    try:
        words = shlex.split(text)
    except ValueError:
        words = []
    if not words:
        return "expected a command; a quote in it is not closed, or there is nothing in it"
    # Else who mistypes an address tells nobody, and the address is in the log.
    if _SCHEME.match(words[0]) or _WITHOUT_SCHEME.match(words[0]):
        return "expected mailto:ADDRESS, slack+https://…, teams+https://…, https://… or a command"
    return None


def wrong_address(text: str, allow_hosts: Collection[str]) -> str | None:
    """The same of an address."""
    try:
        host = urlsplit(text).hostname
    except ValueError:
        host = None
    if not host or re.search(r"[\s\\]", text):
        return "expected an address with a host, without spaces"
    why = "whoever reads the address on its way can tell the same; a host named in notify.allow_hosts may be told over http"
    return values.refuse_address(text, allow_hosts=allow_hosts, why_https=why)


def mail_addresses(text: str) -> list[str]:
    """The addresses of a mail, separated by commas."""
    found = [address.strip() for address in text.split(",")]
    if not all(_MAIL_ADDRESS.fullmatch(address) for address in found):
        raise ValueError("expected mail addresses with a comma between them, such as me@example.com,you@example.com")
    return found


class MailServer(NamedTuple):
    """Where mails are handed over, by whom, and whether the connection is encrypted from its first byte."""

    host: str
    port: int
    sender: str
    user: str
    password: str
    is_encrypted: bool

    def __repr__(self) -> str:
        return f"MailServer({self.host}:{self.port})"


def mail_server(text: str) -> MailServer:
    """A mail server as it is written: `smtps://USER:PASSWORD@HOST?from=ADDRESS`; smtp:// begins without encryption."""
    expected = (
        "expected smtps://USER:PASSWORD@HOST or smtp://HOST, with ?from=ADDRESS where the user is no mail address"
    )
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ValueError(expected) from None
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    sender = next((unquote(part[5:]) for part in parts.query.split("&") if part.startswith("from=")), user)
    if parts.scheme not in _MAIL_PORTS or not host or re.search(r"\s", host) or not _MAIL_ADDRESS.fullmatch(sender):
        raise ValueError(expected)
    return MailServer(host, port or _MAIL_PORTS[parts.scheme], sender, user, password, parts.scheme == "smtps")
