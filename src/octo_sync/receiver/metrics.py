"""What can be scraped: the receiver's own counts, and what a look at the journal says, in a registry of its own.

`CATALOGUE` has every metric with its labels and meaning: what is exposed, `docs/metrics.md`, the dashboard and the alert rules
in `deploy/` are held against it. A scrape waits for no one: the journal is read at most every few seconds, beside the scrape,
and what a slow one says comes with the next.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from octo_sync.errors import OctoSyncError

log = logging.getLogger("octo_sync")

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)

_READ_FOR = 5.0
"""Seconds that a look at the journal is good for, however many scrape."""
_WAIT = 0.8
"""Seconds that a scrape waits for a look that is under way."""
_SHOWN_FOR = 120.0
"""Seconds after which the last look is no longer shown: old numbers would hide that nobody looks."""

Read = Callable[[], Mapping[str, Mapping[tuple[str, ...], float]]]
"""Metric of `CATALOGUE` → label values → value. Blocking; it raises an OctoSyncError when it cannot look."""


Kind = Literal["counter", "gauge", "histogram"]


@dataclass(frozen=True, slots=True)
class Described:
    """One metric. A counter's samples end in `_total`."""

    name: str
    labels: tuple[str, ...]
    meaning: str
    kind: Kind

    @property
    def shown(self) -> str:
        """As queries spell it."""
        return f"{self.name}_total" if self.kind == "counter" else self.name


def _metric(name: str, labels: tuple[str, ...], meaning: str, kind: Kind = "gauge") -> Described:
    return Described(f"octo_sync_{name}", labels, meaning, kind)


_CONNECTION, _KIND = ("connection",), ("connection", "kind")
_OWN = (
    _metric(
        "deliveries",
        ("connection", "result"),
        "Deliveries: stored, odd (stored, malformed), unauthorized, too_large, busy, failed (answered 503), cut.",
        "counter",
    ),
    _metric(
        "connections_refused",
        ("reason",),
        "Connections ended before a request was complete or answered: slow, unanswered, head_too_large, too_many.",
        "counter",
    ),
    _metric("acknowledge_seconds", (), "From the head of a delivery to its acknowledgement.", "histogram"),
    _metric("commit_deliveries", (), "Deliveries that one transaction made durable.", "histogram"),
)
_ABOUT_THE_LOOK = (
    _metric("journal_readable", (), "1: the journal could be read; 0: not, and the reason is logged."),
    _metric("read_age_seconds", (), "Age of the numbers read from the journal."),
)
_READ = (
    _metric("build_info", ("version", "python", "duckdb"), "Always 1; the versions are its labels."),
    _metric(
        "last_success_timestamp_seconds", _KIND, "When anything of this kind was last fetched and stored, as Unix time."
    ),
    _metric(
        "staleness_seconds",
        _KIND,
        "Age of the oldest verification in the horizon: nothing the copy shows is older. Never verified parts "
        "count from when they were wanted; +Inf before the first fetch.",
    ),
    _metric("unverified_subjects", _KIND, "Subjects in the horizon that were never verified, without quarantine."),
    _metric("backlog_subjects", _KIND, "Subjects waiting to be fetched."),
    _metric("lag_seconds", _KIND, "How long the oldest of them has waited; 0: none."),
    _metric("quarantine_entries", _KIND, "Entries in quarantine, held deletions included."),
    _metric(
        "runs",
        ("command", "result"),
        "Runs of all processes that ended since this process began: ok, partial, failed, interrupted, killed. "
        "Scheduled pulls are `pull`.",
        "counter",
    ),
    _metric(
        "requests", ("connection", "code"), "Requests of this process by status code; `none`: no answer.", "counter"
    ),
    _metric(
        "subscription_held",
        _CONNECTION,
        "1: the subscription for webhooks exists; 0: it was lost and could not be restored.",
    ),
    _metric(
        "webhook_silence_seconds",
        _CONNECTION,
        "How long a connection has sent no delivery, once that is unusual for it; else 0.",
    ),
    _metric("last_delivery_timestamp_seconds", _CONNECTION, "When the last delivery came, as Unix time."),
    _metric("reconcile_open", ("name", "bucket"), "Open differences that nobody accepted."),
    _metric("reconcile_last_run_timestamp_seconds", ("name",), "When the last comparison ended, as Unix time."),
    _metric("published_timestamp_seconds", (), "When the read copy was last published, as Unix time; only for files."),
    _metric(
        "warehouse_bytes",
        ("file",),
        "Size of `warehouse`, `private` and `read copy`; on PostgreSQL all is `warehouse`.",
    ),
    _metric("journal_bytes", (), "Size of the journal with its write-ahead log."),
)
CATALOGUE: Mapping[str, Described] = {each.name: each for each in (*_READ, *_ABOUT_THE_LOOK, *_OWN)}


class Metrics(Collector):
    """The receiver's counters, and what the last look at the journal said; one look at a time.

    Args:
        read: Looks at the journal; by default nothing is seen there.
    """

    def __init__(self, read: Read = dict) -> None:
        self._registry = CollectorRegistry()
        deliveries, refusals, seconds, sizes = _OWN
        self._deliveries = Counter(deliveries.name, deliveries.meaning, deliveries.labels, registry=self._registry)
        self._refusals = Counter(refusals.name, refusals.meaning, refusals.labels, registry=self._registry)
        acknowledged = Histogram(seconds.name, seconds.meaning, buckets=_SECONDS, registry=self._registry)
        committed = Histogram(sizes.name, sizes.meaning, buckets=_SIZES, registry=self._registry)
        self.acknowledged: Callable[[float], None] = acknowledged.observe
        """A delivery was acknowledged after so many seconds."""
        self.committed: Callable[[float], None] = committed.observe
        """One transaction made so many deliveries durable."""
        self._read = read
        self._looking: asyncio.Task[None] | None = None
        self._values: Mapping[str, Mapping[tuple[str, ...], float]] = {}
        self._looked_at = self._begun_at = float("-inf")
        self._readable, self._age = True, 0.0
        self._registry.register(self)

    def delivery(self, connection: str, result: str) -> None:
        """A delivery was answered. `connection` is empty while nobody knows whose it is."""
        self._deliveries.labels(connection, result).inc()

    def refused(self, reason: str) -> None:
        """A connection was ended."""
        self._refusals.labels(reason).inc()

    async def page(self) -> bytes:
        """Everything, as Prometheus reads it; within a second, whatever the journal does: it is waited for a moment at most."""
        loop = asyncio.get_running_loop()
        if self._looking is None or (self._looking.done() and loop.time() - self._begun_at >= _READ_FOR):
            self._begun_at = loop.time()
            self._looking = loop.create_task(self._look())
        await asyncio.wait([self._looking], timeout=_WAIT)
        self._age = loop.time() - self._looked_at
        if self._age > _SHOWN_FOR:
            self._values = {}
        return await asyncio.to_thread(generate_latest, self._registry)

    async def close(self) -> None:
        """Wait for a look that is under way."""
        if self._looking is not None:
            await asyncio.wait([self._looking])

    async def _look(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            self._values = await asyncio.to_thread(self._read)
        except Exception as error:  # noqa: BLE001 - a mistake of ours must not hide the receiver's own counts
            if self._readable:
                told = str(error) if isinstance(error, OctoSyncError) else type(error).__name__
                log.warning("action=metrics_unread error=%s", told)
            # What is not known is not shown: a number that stands still looks like a good one.
            self._values, self._readable = {}, False
        else:
            self._looked_at, self._readable = loop.time(), True

    def collect(self) -> Iterable[Metric]:
        """The last look's numbers."""
        values = self._values
        for each in _READ:
            samples = values.get(each.name)
            if samples is None:
                continue
            family = GaugeMetricFamily if each.kind == "gauge" else CounterMetricFamily
            metric = family(each.name, each.meaning, labels=each.labels)
            for labels, value in samples.items():
                metric.add_metric(labels, value)
            yield metric
        readable, age = _ABOUT_THE_LOOK
        yield GaugeMetricFamily(readable.name, readable.meaning, value=float(self._readable))
        if values:
            yield GaugeMetricFamily(age.name, age.meaning, value=max(0.0, self._age))

    def describe(self) -> Iterable[Metric]:
        """Nothing is asked before the first scrape."""
        return ()
