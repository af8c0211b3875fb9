"""Hooks: somebody else is told of what happened, by a command, an address, a chat or a mail.

A hook never decides anything: what it does is its own affair, and when it fails that is said and nothing else changes.
"""

import asyncio
import contextlib
import json
import logging
import shlex
import smtplib
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import localtime, make_msgid
from functools import partial
from typing import Any

from octo_sync.pipeline.hooks import hook, mail_addresses, mail_server

log = logging.getLogger("octo_sync")

_WITHIN, _WITH_FILES = 30.0, 300.0
"""Seconds that a hook may take, all in all; and a mail with files, which servers look into before they answer."""


def tell(target: str, document: Mapping[str, Any], *, smtp: str = "", within: float = _WITHIN) -> str | None:
    """Tell a hook; what went wrong, or None. Blocking.

    A command gets the document as JSON on its standard input, an address by POST; chats and mails get its `text`.

    Args:
        target: A command, an address, `slack+https://…`, `teams+https://…` or `mailto:…`.
        document: What happened.
        smtp: The mail server, for mails.
        within: Seconds that it may take, all in all.
    """
    try:
        form, where = hook(target)
        names = (document.get(key) for key in ("pipeline", "reconciliation", "connection"))
        title = " · ".join(["octo-sync", *(str(name) for name in names if name)])
        if form == "mail":
            _, problem = mail(smtp, mail_addresses(where), title, str(document.get("text")), (), within=within)
        elif form == "command":
            problem = _run(where, _json(document), within)
        else:
            said = {"slack": _for_slack, "teams": _for_teams}
            content = said[form](title, str(document.get("text"))) if form in said else document
            problem = _call("POST", where, _json(content), within)
    except Exception as error:  # noqa: BLE001 - whatever it is, nothing else changes; its text may repeat the hook
        problem = type(error).__name__
    if problem is not None:
        log.warning("action=hook_failed event=%s error=%s", document.get("event"), problem)
    return problem


def mail(
    smtp: str,
    to: Sequence[str],
    subject: str,
    text: str,
    files: Sequence[tuple[str, bytes]],
    *,
    within: float = _WITH_FILES,
) -> tuple[bool | None, str | None]:
    """Send a mail with HTML files (name, content); whether anybody gets it, and what went wrong, or None. Blocking.

    Where the server had the mail and said nothing, nobody knows whether it sends it: None.

    Raises:
        ValueError: `smtp` is no mail server's address.
    """
    server, message = mail_server(smtp), EmailMessage()
    # A line break would begin another header.
    message["Subject"], message["From"], message["To"] = " ".join(subject.split()), server.sender, ", ".join(to)
    message["Date"], message["Message-ID"] = localtime(), make_msgid(domain=server.sender.rpartition("@")[2])
    message.set_content(text)
    for name, content in files:
        message.add_attachment(content, maintype="text", subtype="html", filename=name)
    sending = _Sending()

    def send() -> str | None:
        trusted = ssl.create_default_context()
        kind = partial(smtplib.SMTP_SSL, context=trusted) if server.is_encrypted else smtplib.SMTP
        session = sending.session = kind(server.host, server.port, timeout=within)
        try:
            session.ehlo()
            if session.has_extn("starttls"):
                session.starttls(context=trusted)
            elif server.password and not server.is_encrypted:
                return f"{server.host} offers no encryption, so it was not told the password"
            if server.password:
                session.login(server.user, server.password)
            sending.is_sent = None
            refused = session.send_message(message, server.sender, list(to))
            sending.is_sent = True
            return f"{server.host} refused {len(refused)} of {len(to)} addresses" if refused else None
        except smtplib.SMTPResponseException as error:
            sending.is_sent = False
            return f"{server.host} answered {error.smtp_code}"
        except smtplib.SMTPRecipientsRefused:
            sending.is_sent = False
            return f"{server.host} refused all addresses"
        finally:
            # What it answers to the end of the conversation changes nothing.
            with contextlib.suppress(Exception):
                session.quit()

    problem = _bounded(send, within, sending.give_up)
    return sending.is_sent, problem


def ping(address: str, *, within: float = _WITHIN) -> str | None:
    """Call an address that waits to be called; what went wrong, or None. Blocking."""
    problem = _call("GET", address, None, within)
    if problem is not None:
        log.warning("action=ping_failed error=%s", problem)
    return problem


def _run(command: str, body: bytes, within: float) -> str | None:
    """What went wrong, or None; without the command, which may be an address that was misspelt."""
    words = shlex.split(command)
    if not words:
        return "there is no command in it"
    try:
        done = subprocess.run(words, input=body, capture_output=True, timeout=within, check=False)  # noqa: S603 - the user's own
    except subprocess.TimeoutExpired:
        return f"the command took longer than {within:g} s"
    except OSError as error:
        return f"the command cannot be started: {error.strerror or type(error).__name__}"
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        return f"the command ended with {done.returncode}{': ' + said[0][:200] if said else ''}"
    return None


def _call(method: str, address: str, body: bytes | None, within: float) -> str | None:
    """What went wrong, or None; never with more of the address than its host, because its path may be a secret."""
    import httpx  # noqa: PLC0415 - only where a hook is an address

    async def ask() -> str | None:
        # httpx's own times are for one read each, and who sends a byte now and then stays below all of them. A proxy of the
        # environment would be told the address; of the answer only the status is read.
        async with (
            asyncio.timeout(within),
            httpx.AsyncClient(timeout=None, follow_redirects=False, trust_env=False) as client,  # noqa: S113 - see above
            client.stream(method, address, content=body, headers={"Content-Type": "application/json"}) as answer,
        ):
            return None if answer.is_success else f"{answer.url.host} answered {answer.status_code}"

    return _bounded(lambda: asyncio.run(ask()), within)


@dataclass(slots=True)
class _Sending:
    """A mail on its way. `is_sent` is None from when the server begins to be told of it until it has answered."""

    session: smtplib.SMTP | None = None
    is_sent: bool | None = False

    def give_up(self) -> None:
        """Say nothing more to the server, so that what was not sent by now never is."""
        if self.session is not None and self.session.sock is not None:
            with contextlib.suppress(OSError):
                self.session.sock.shutdown(socket.SHUT_RDWR)


def _json(content: object) -> bytes:
    return json.dumps(content, ensure_ascii=False, default=str).encode()


def _for_slack(title: str, text: str) -> object:
    """A message as Slack's incoming webhooks read it, and those of Mattermost; three characters are escaped."""
    said = f"{title}\n{text}".replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return {"text": said, "mrkdwn": False}


def _for_teams(title: str, text: str) -> object:
    """A message as the workflows of Teams read it: an adaptive card, with texts in which nothing is markup."""
    lines = [{"type": "TextRun", "text": title, "weight": "Bolder"}], [{"type": "TextRun", "text": text}]
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": [{"type": "RichTextBlock", "inlines": line} for line in lines],
    }
    kind = "application/vnd.microsoft.card.adaptive"
    return {"type": "message", "attachments": [{"contentType": kind, "content": card}]}


def _bounded(work: Callable[[], str | None], within: float, give_up: Callable[[], None] = lambda: None) -> str | None:
    """What the work says, or that it took too long; then `give_up` ends what it still does.

    In a thread, because a loop may run in this one, and a name that is looked up cannot be cancelled.
    """
    said: list[str | None] = []

    def run() -> None:
        try:
            said.append(work())
        except TimeoutError:
            pass  # said below, as where not even this came in time
        except Exception as error:  # noqa: BLE001 - a proxy that is not installed, an address that is none: all the same
            said.append(f"it did not answer: {type(error).__name__}")

    calling = threading.Thread(target=run, name="octo-sync hook", daemon=True)
    calling.start()
    calling.join(within)
    if said:
        return said[0]
    give_up()
    return f"it took longer than {within:g} s"
