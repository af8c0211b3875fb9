"""What `/metrics` says of the copy and of what is owed: numbers by name and labels, from the journal and the files' sizes.

`receiver/metrics.py` lists every metric with its meaning; here they get their values. Read with a journal connection of
its own, so that a large journal keeps no delivery waiting.
"""

import contextlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import product
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from octo_sync.errors import OctoSyncError
from octo_sync.flows.status.report import PULLED, KindStatus, Status, status
from octo_sync.flows.webhooks.silence import silences
from octo_sync.journal import Journal
from octo_sync.model import Clock, SubjectKind
from octo_sync.pipeline import Pipeline

if TYPE_CHECKING:
    from octo_sync.octo.client import Stats

Values = Mapping[tuple[str, ...], float]
Reading = Mapping[str, Values]
"""Metric → label values, in the order of the metric's labels → value."""

_SILENCE_FOR = timedelta(seconds=60)
"""How long a look at the rhythm of deliveries is good for: it reads two weeks of them."""
_SIZED_FOR = timedelta(seconds=60)
"""How long the size of a warehouse on a server is good for, or that there is none to be had: asking opens a session."""
_BACKLOG, _LAG = "octo_sync_backlog_subjects", "octo_sync_lag_seconds"
_UNVERIFIED, _STALE = "octo_sync_unverified_subjects", "octo_sync_staleness_seconds"
_SUCCESS = "octo_sync_last_success_timestamp_seconds"
_NO_ANSWER = "none"
"""The code of a request that got no answer."""
_RESULTS = ("ok", "partial", "failed", "interrupted", "killed")
_COMMANDS = ("sync", "pull")


class Requests:
    """Requests per connection and status code, over every client that this process ever had."""

    def __init__(self) -> None:
        self._gone: Counter[tuple[str, str]] = Counter()
        self._clients: Mapping[str, Stats] = {}

    def follow(self, clients: Mapping[str, "Stats"]) -> None:
        """Count these from now on; those before are added up."""
        self._gone, self._clients = self.counts(), dict(clients)

    def counts(self) -> Counter[tuple[str, str]]:
        """(Connection, status code) → requests that ended; `none` is one that got no answer."""
        found = Counter(self._gone)
        for name, stats in self._clients.items():
            for code, count in dict(stats.by_status).items():
                found[name, str(code)] += count
            found[name, _NO_ANSWER] += stats.unanswered
        return found


@dataclass(slots=True)
class Gauges:
    """Reads the numbers; one object for the life of a process, because runs are counted since it began."""

    pipeline: Pipeline
    journal: Journal
    """A connection of its own to the journal."""
    clock: Clock
    build: tuple[str, ...]
    """Versions, by the labels of `octo_sync_build_info`."""
    requests: Requests
    """What was asked of services."""
    size: Callable[[], int] | None = None
    """Bytes of a warehouse on a server; for a file it is not called."""
    _runs: Counter[tuple[str, str]] = field(
        default_factory=lambda: Counter(dict.fromkeys(product(_COMMANDS, _RESULTS), 0))
    )
    _last_run: int | None = None
    _open_runs: frozenset[int] = frozenset()
    _silences: tuple[datetime, Mapping[str, timedelta]] | None = None
    _server_size: tuple[datetime, int | None] | None = None

    def read(self) -> Reading:
        """All of them, as of now. Blocking.

        Raises:
            JournalError: The journal cannot be read.
        """
        pipeline, journal, now = self.pipeline, self.journal, self.clock.now()
        found = status(pipeline, journal, None, clock=self.clock, alive=lambda *_: True, silent=self._silent(now))
        return {
            "octo_sync_build_info": {self.build: 1},
            "octo_sync_journal_bytes": {(): journal.size()},
            "octo_sync_warehouse_bytes": self._bytes(now),
            "octo_sync_published_timestamp_seconds": _published(pipeline),
            "octo_sync_quarantine_entries": self._quarantine(),
            "octo_sync_runs": self._count_runs(),
            "octo_sync_requests": self._count_requests(),
            **_owed_and_verified(found, now),
            **_webhooks(pipeline, found),
            **self._differences(found),
        }

    def _count_requests(self) -> Values:
        nothing: dict[tuple[str, ...], float] = {(c.name, "200"): 0 for c in self.pipeline.connections}
        return nothing | {(name, code): count for (name, code), count in self.requests.counts().items()}

    def _silent(self, now: datetime) -> Mapping[str, timedelta]:
        if self._silences is None or not timedelta() <= now - self._silences[0] < _SILENCE_FOR:
            names = [c.name for c in self.pipeline.connections]
            after = self.pipeline.webhooks.silence_after
            self._silences = now, silences(self.journal, names, self.clock, after=after)
        return self._silences[1]

    def _count_runs(self) -> Values:
        """Runs that ended since this object was made, whoever made them: `sync` of another process too."""
        if self._last_run is None:
            self._last_run = self.journal.runs.last_id()
        still_open = set()
        for number, command, result in self.journal.runs.after(self._last_run, self._open_runs):
            self._last_run = max(self._last_run, number)
            if result == "running":
                still_open.add(number)
            else:
                self._runs[command, result] += 1
        self._open_runs = frozenset(still_open)
        return {(command, result): count for (command, result), count in self._runs.items()}

    def _quarantine(self) -> Values:
        names = {c.name for c in self.pipeline.connections}
        nothing: dict[tuple[str, ...], float] = {(name, str(kind)): 0 for name in names for kind in PULLED}
        counts = self.journal.quarantine.counts()
        return nothing | {of: entries for of, entries in counts.items() if of[0] in names}

    def _differences(self, found: Status) -> Reading:
        names, runs = self.pipeline.reconciliations, self.journal.reconciliations.runs
        last: Values = {(name,): run.ended_at.timestamp() for name in names for run in runs(name, 1)}
        # Nothing open is a zero for every reconciliation, so that alerts have something to look at.
        open_: dict[tuple[str, ...], float] = {(name, "mismatched"): 0 for name in names}
        open_ |= {(d.name, d.bucket): d.open - d.accepted for d in found.differences}
        return {"octo_sync_reconcile_open": open_, "octo_sync_reconcile_last_run_timestamp_seconds": last}

    def _bytes(self, now: datetime) -> Values:
        pipeline = self.pipeline
        if self.size is not None:
            if self._server_size is None or not timedelta() <= now - self._server_size[0] < _SIZED_FOR:
                found = None
                with contextlib.suppress(OctoSyncError):  # a server that is away hides nothing of the journal
                    found = self.size()
                self._server_size = now, found
            size = self._server_size[1]
            return {} if size is None else {("warehouse",): size}
        files = {
            "warehouse": pipeline.destination,
            "private": pipeline.private_path,
            "read copy": pipeline.publish.path,
        }
        sizes = {name: _file_size(path) for name, path in files.items() if isinstance(path, Path)}
        return {(name,): size for name, size in sizes.items() if size is not None}


def _file_size(path: Path) -> int | None:
    """Bytes of a database file and its log; only the directory is asked, no file is opened."""
    found = None
    for each in (path, path.with_name(f"{path.name}.wal")):
        with contextlib.suppress(OSError):
            found = (found or 0) + each.stat().st_size
    return found


def _published(pipeline: Pipeline) -> Values:
    if isinstance(pipeline.destination, Path):
        with contextlib.suppress(OSError):
            return {(): pipeline.publish.path.stat().st_mtime}
    return {}


def _owed_and_verified(found: Status, now: datetime) -> Reading:
    """Nothing owed is a zero for every kind, so that alerts and graphs have something to look at."""
    read: dict[str, dict[tuple[str, ...], float]] = {
        name: {} for name in (_BACKLOG, _LAG, _UNVERIFIED, _SUCCESS, _STALE)
    }
    for connection in found.connections:
        for kind in map(str, SubjectKind):
            labels, here = (connection.name, kind), connection.kinds.get(kind, KindStatus(kind))
            read[_BACKLOG][labels] = here.owed
            read[_LAG][labels] = max(0.0, (now - (here.oldest_mark or now)).total_seconds())
            if here.subjects:
                read[_UNVERIFIED][labels] = here.subjects - here.verified
            if here.newest:
                read[_SUCCESS][labels] = here.newest.timestamp()
            if kind not in PULLED:
                continue
            if (age := here.staleness(now)) is not None:
                read[_STALE][labels] = max(0.0, age)
            elif kind != SubjectKind.AVAILABILITY and not any(each.subjects for each in connection.kinds.values()):
                read[_STALE][labels] = inf
    return read


def _webhooks(pipeline: Pipeline, found: Status) -> Reading:
    watched = [c for c in found.connections if pipeline.webhooks.url and c.was_told and c.webhooks_removed_at is None]
    return {
        "octo_sync_subscription_held": {(c.name,): not c.has_lost_subscription for c in watched},
        "octo_sync_webhook_silence_seconds": {
            (c.name,): c.webhooks.silent or 0.0 if c.webhooks else 0.0 for c in watched
        },
        "octo_sync_last_delivery_timestamp_seconds": {
            (c.name,): c.webhooks.last_delivery_at.timestamp()
            for c in found.connections
            if c.webhooks and c.webhooks.last_delivery_at
        },
    }
