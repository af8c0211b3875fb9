"""The composition root of notices: status, journal and hooks put together. It decides nothing.

Hooks are told by a thread of their own, one after the other, so that a slow one keeps neither the worker nor the end of the
program waiting; what goes wrong there is a log line and nothing else.
"""

import contextlib
import logging
import os
import queue
import socket
import threading
from collections.abc import Callable
from datetime import date
from functools import partial
from typing import Any

from octo_sync.app import hooks
from octo_sync.app.machine import alive
from octo_sync.errors import ConfigError, OctoSyncError
from octo_sync.flows.status.notices import conditions, events, recall, remember
from octo_sync.flows.status.report import status
from octo_sync.journal import Journal
from octo_sync.model import Clock
from octo_sync.pipeline import Pipeline
from octo_sync.pipeline.hooks import mail_addresses

log = logging.getLogger("octo_sync")

_WAITING = 100
"""Notices that wait for a slow hook, at most; more are dropped and logged."""


def _NO_MORE() -> None:  # noqa: N802 - a constant that is a call
    """Ends the thread."""


def smtp_of(pipeline: Pipeline) -> str:
    """The mail server as it is written; empty without one."""
    server = pipeline.told.get("smtp")
    return server.reveal() if server else ""


def addressed(pipeline: Pipeline, to: str) -> tuple[str, list[str]]:
    """By which server a mail is sent, and to which addresses.

    Raises:
        ConfigError: There is no mail server, or one of the addresses is none.
    """
    smtp = smtp_of(pipeline)
    if not smtp:
        raise ConfigError("notify.smtp names no mail server, so nothing can be sent; see docs/monitoring.md.")
    try:
        return smtp, mail_addresses(to)
    except ValueError as error:
        raise ConfigError(f"{error}.") from None


def send_report(pipeline: Pipeline, page: bytes, to: str, day: date) -> str | None:
    """Send the Overview, one HTML file, by mail; None, or a sentence where not everybody gets it or nobody knows. Blocking.

    Args:
        pipeline: `notify.smtp` says by which server.
        page: The file.
        to: Mail addresses, separated by commas.
        day: Today, for its name.

    Raises:
        ConfigError: As of `addressed`.
        OctoSyncError: Nobody gets it; the sentence says why.
    """
    smtp, addresses = addressed(pipeline, to)
    text = f"How bookings of {pipeline.name} stand: open the attached file in a browser. It needs no network.\n"
    files = [(f"octo-sync-{pipeline.name}-{day}.html", page)]
    is_sent, problem = hooks.mail(smtp, addresses, f"octo-sync · {pipeline.name} · {day}", text, files)
    if problem is not None:
        log.warning("action=mail_failed sent=%s error=%s", is_sent, problem)
    if is_sent is False:
        raise OctoSyncError(f"The report was not sent: {problem}.")
    if is_sent is None:
        return f"Nobody knows whether the report was sent: {problem}."
    return problem and f"The report was sent, but {problem}."


class Notifier:
    """Tells who wants to know, each thing once, and calls the dead-man's switch.

    Args:
        pipeline: `notify` says who is told.
        journal: Where what was told is kept; its own connection beside the worker's.
        clock: Now.
    """

    def __init__(self, pipeline: Pipeline, journal: Journal, clock: Clock) -> None:
        self._pipeline, self._journal, self._clock = pipeline, journal, clock
        self._waiting: queue.Queue[Callable[[], object]] = queue.Queue(_WAITING)
        self._thread: threading.Thread | None = None

    @property
    def looks(self) -> bool:
        """Whether anybody wants to know anything."""
        return "to" in self._pipeline.told

    def look(self) -> None:
        """Tell what became so. Left to the process that works on the project, if that is another one. Blocking.

        Raises:
            JournalError: The journal could not be read or written.
        """
        pipeline, journal, now = self._pipeline, self._journal, self._clock.now()
        found = status(pipeline, journal, None, clock=self._clock, alive=alive, silent={})
        if found.running is not None and (found.running.pid, found.running.host) != (os.getpid(), socket.gethostname()):
            return
        before = recall(journal, [c.name for c in found.connections])
        has_webhooks = bool(pipeline.webhooks.url)
        is_so = conditions(found, stale_after=pipeline.notify.stale_after, has_webhooks=has_webhooks)
        fresh, after = events(before, is_so)
        # Kept first: told twice for every restart would be worse than once too few.
        remember(journal, before, after)
        for event in fresh:
            self.tell(event.kind, event.connection, event.text, at=now.isoformat(), **event.details)

    def tell(self, kind: str, connection: str, text: str, **details: Any) -> None:  # noqa: ANN401 - as JSON can say it
        """Tell whoever wants to know, beside whatever else is done."""
        log.warning("action=notice kind=%s connection=%s text=%s", kind, connection, text)
        target = self._pipeline.told.get("to")
        if target is not None:
            about = {"event": kind, "pipeline": self._pipeline.name, "connection": connection, "text": text}
            self._later(partial(hooks.tell, target.reveal(), about | details, smtp=smtp_of(self._pipeline)))

    def all_is_well(self) -> None:
        """Call the dead-man's switch: a full pull has ended, and readers have what it brought."""
        if (address := self._pipeline.told.get("ping")) is not None:
            self._later(partial(hooks.ping, address.reveal()))

    def finish(self, within: float) -> None:
        """Wait until everybody was told, so many seconds at most."""
        thread, self._thread = self._thread, None
        if thread is not None:
            with contextlib.suppress(queue.Full):
                self._waiting.put_nowait(_NO_MORE)
            thread.join(within)

    def _later(self, call: Callable[[], object]) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="octo-sync notices", daemon=True)
            self._thread.start()
        try:
            self._waiting.put_nowait(call)
        except queue.Full:
            log.warning("action=notice_dropped waiting=%d", _WAITING)

    def _work(self) -> None:
        while True:
            call = self._waiting.get()
            if call is _NO_MORE:
                return
            try:
                call()
            except Exception:
                log.exception("action=notice_broke")
