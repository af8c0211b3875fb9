"""A real mail server that keeps what it was handed."""

import asyncio
import email
import email.policy
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

from aiosmtpd.smtp import SMTP, AuthResult

# The library says how they are called and what they are given.
# ruff: noqa: ARG002, N802


class Inbox:
    """What a server was handed."""

    def __init__(self):
        self.mails, self.logins = [], []
        self.answer, self.goodbye = "250 OK", ""
        self.seconds = self.greets_after = 0

    async def handle_RCPT(self, server, session, envelope, address, options):
        if address.startswith("nobody@"):
            return "550 no such person: s3cret"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        self.mails.append((envelope, email.message_from_bytes(envelope.content, policy=email.policy.default)))
        await asyncio.sleep(self.seconds)
        return self.answer

    async def handle_EHLO(self, server, session, envelope, hostname, responses):
        await asyncio.sleep(self.greets_after)
        session.host_name = hostname
        return responses

    async def handle_QUIT(self, server, session, envelope):
        return self.goodbye or "221 Bye"


@contextmanager
def serving(*, tls=None, starttls=None):
    """A mail server on a free port: in the clear, encrypted from the first byte (`tls`), or with STARTTLS."""
    inbox = Inbox()

    def login(server, session, envelope, mechanism, given):
        inbox.logins.append((given.login, given.password))
        return AuthResult(success=given.password == b"p@ss/word", handled=False)

    async def listen():
        loop, sessions = asyncio.get_running_loop(), []

        def session():
            secured = {"tls_context": starttls, "auth_require_tls": tls is None}
            sessions.append(SMTP(inbox, authenticator=login, loop=loop, **secured))
            return sessions[-1]

        server = await loop.create_server(session, "127.0.0.1", 0, ssl=tls)
        inbox.port = server.sockets[0].getsockname()[1]
        ends = loop.create_future()
        ready.set_result(partial(loop.call_soon_threadsafe, ends.set_result, None))
        await ends
        server.close()
        for transport in filter(None, (each.transport for each in sessions)):
            transport.abort()
        await asyncio.sleep(0)

    ready = Future()
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(asyncio.run, listen())
        end = ready.result(30)
        try:
            yield inbox
        finally:
            end()
            running.result(30)
