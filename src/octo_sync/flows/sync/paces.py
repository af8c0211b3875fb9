"""Paces: what services permit, remembered for the next run, and when a run that keeps it will be over."""

import asyncio
import json
import logging
from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from math import inf
from typing import TYPE_CHECKING

from octo_sync.flows.ports import Ports
from octo_sync.journal import Journal
from octo_sync.model import Clock, SubjectKind
from octo_sync.octo.pace import Pace

if TYPE_CHECKING:
    from octo_sync.octo.client import OctoClient

log = logging.getLogger("octo_sync")

_PACE = "pace"
"""The journal's setting of a connection whose service permits so many requests in so many seconds, and since when."""
_ASKED = "asked lately"
"""The journal's setting of a connection that several workers share: how much of its pace is used up, until when the service
wants no request, when that was seen, and by whom."""
_FORGOTTEN = timedelta(days=1)
"""After which it is found out anew: it may have been taken for what it is not, and services change their mind, too."""
_AFRESH = timedelta(hours=1)
"""After which one that the service still tells is noted again."""
_EVERY = 1.0
_WORTH_SAYING = 10.0
"""Seconds that a run still takes for its pace's sake, from which on somebody who watches wants to know."""


def known_pace(journal: Journal, connection: str, clock: Clock) -> Pace | None:
    """What a connection's service permits, as last seen; None when that is long ago, or never was. Blocking."""
    pace, _ = _noted(journal, connection, clock)
    return pace


def restore_paces(journal: Journal, clients: Iterable["OctoClient"], clock: Clock) -> None:
    """Let clients begin with what former runs found out. Blocking."""
    for client in clients:
        client.budget.pace = known_pace(journal, client.connection.name, clock)


def _noted(journal: Journal, connection: str, clock: Clock) -> tuple[Pace | None, datetime | None]:
    noted = json.loads(journal.settings.get(_PACE, connection=connection) or "null")
    if noted is None:
        return None, None
    at = datetime.fromisoformat(noted["at"])
    return (Pace(noted["requests"], noted["seconds"]) if clock.now() - at < _FORGOTTEN else None), at


class Paces:
    """The paces of one run's connections."""

    def __init__(self, ports: Ports) -> None:
        self._ports, self._noted_at, self._time = ports, -inf, asyncio.get_running_loop().time
        self._asked: dict[str, tuple[int, int]] = {}
        self._known = {name: _noted(ports.journal, name, ports.clock) for name in ports.clients}

    def take(self, connection: str) -> None:
        """Go on with what the former owner of a connection found out. Blocking."""
        self._known[connection] = _noted(self._ports.journal, connection, self._ports.clock)
        budget = self._ports.clients[connection].budget
        budget.pace = self._known[connection][0]
        asked = json.loads(self._ports.journal.settings.get(_ASKED, connection=connection) or "null")
        if asked is None or asked["by"] == self._ports.run_id:
            return
        age = (self._ports.clock.now() - datetime.fromisoformat(asked["at"])).total_seconds()
        permits, held = budget.permits, max(0.0, asked.get("held", 0.0) - age)
        requests = asked["requests"] if permits and age < permits.seconds else 0
        if requests or held:
            budget.charge(requests, self._time(), held=held)

    def note(self, kinds: Collection[SubjectKind], *, at_once: bool = False) -> None:
        """Remember what was found out, and say when what is owed of `kinds` will be done; about once a second. Blocking."""
        now = self._time()
        if now - self._noted_at < _EVERY and not at_once:
            return
        self._noted_at = now
        for name, client in self._ports.clients.items():
            if self._ports.share is None:
                self._remember(name, client)
            elif name in self._ports.share.owned:
                self._remember(name, client)
                self._note_asked(name, client)
        self._expect(kinds)

    def _remember(self, name: str, client: "OctoClient") -> None:
        journal, now = self._ports.journal, self._ports.clock.now()
        known, at = self._known[name]
        pace = client.budget.pace
        if at is not None and pace == known and now - at >= _FORGOTTEN:
            pace = client.budget.pace = None
        if pace == known and (pace is None or at is None or now - at < _AFRESH or not client.budget.is_told):
            return
        said = json.dumps({"requests": pace.requests, "seconds": pace.seconds, "at": now.isoformat()}) if pace else None
        journal.settings.set(_PACE, said, connection=name)
        if pace != known:
            log.info("action=pace run=%s connection=%s permits=%s", self._ports.run_id, name, pace)
        self._known[name] = pace, now

    def _note_asked(self, name: str, client: "OctoClient") -> None:
        """What the next owner of the connection has to count as its own."""
        now = self._time()
        asked, held = client.budget.asked(now), client.budget.held(now)
        seen = asked, round(now + held) if held > _EVERY else 0
        if any(seen) and seen != self._asked.get(name):
            self._asked[name] = seen
            said = {
                "requests": asked,
                "held": held,
                "at": self._ports.clock.now().isoformat(),
                "by": self._ports.run_id,
            }
            self._ports.journal.settings.set(_ASKED, json.dumps(said), connection=name)

    def _expect(self, kinds: Collection[SubjectKind]) -> None:
        progress = self._ports.progress
        if progress.ends_at is not None:
            progress.expect(None, "")
        budgets = {name: client.budget for name, client in self._ports.clients.items()}
        if all(budget.needs(0) is None for budget in budgets.values()):
            return
        owed = dict.fromkeys(budgets, 0)
        for backlog in self._ports.journal.subjects.backlog():
            if backlog.connection in owed and backlog.kind in kinds:
                owed[backlog.connection] += backlog.dirty
        waits = {name: seconds for name, budget in budgets.items() if (seconds := budget.needs(owed[name])) is not None}
        slowest = max(waits, key=lambda name: waits[name])
        if waits[slowest] < _WORTH_SAYING:
            return
        pace = budgets[slowest].permits
        why = f"{slowest} permits {pace}" if pace else f"{slowest} asks to wait"
        progress.expect(self._ports.clock.now() + timedelta(seconds=waits[slowest]), why)
