"""What can be scraped: counts and times of the receiver, in a registry of its own."""

from collections.abc import Callable, Iterable, Mapping

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

__all__ = ["Metrics"]

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)

Backlog = Callable[[], Mapping[tuple[str, str], int]]


class Metrics:
    """The receiver's counters.

    Args:
        backlog: Dirty subjects per (connection, kind), asked at each scrape, in the scrape's own thread.
    """

    def __init__(self, backlog: Backlog | None = None) -> None:
        self._registry = CollectorRegistry()
        self._deliveries = Counter(
            "octo_sync_deliveries",
            "Deliveries: stored, odd (stored, not as agreed), unauthorized, too_large, busy, failed (answered 503), cut.",
            ["connection", "result"],
            registry=self._registry,
        )
        self._refusals = Counter(
            "octo_sync_connections_refused",
            "Connections ended before a request was whole: slow, head_too_large, too_many.",
            ["reason"],
            registry=self._registry,
        )
        self._seconds = Histogram(
            "octo_sync_acknowledge_seconds",
            "From the head of a delivery to its acknowledgement.",
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._sizes = Histogram(
            "octo_sync_commit_deliveries",
            "Deliveries that one transaction made durable.",
            buckets=_SIZES,
            registry=self._registry,
        )
        if backlog is not None:
            self._registry.register(_Backlog(backlog))
        self.committed: Callable[[float], None] = self._sizes.observe
        self._children: dict[tuple[str, str], Callable[[], None]] = {}

    def delivery(self, connection: str, result: str) -> None:
        """A delivery was answered. `connection` is empty while nobody knows whose it is."""
        count = self._children.get((connection, result))
        if count is None:
            count = self._children[connection, result] = self._deliveries.labels(connection, result).inc
        count()

    def acknowledged(self, seconds: float) -> None:
        """A delivery was acknowledged after so long."""
        self._seconds.observe(seconds)

    def refused(self, reason: str) -> None:
        """A connection was ended."""
        self._refusals.labels(reason).inc()

    def page(self) -> bytes:
        """Everything, as Prometheus reads it. Blocking, because of the backlog."""
        return generate_latest(self._registry)


class _Backlog(Collector):
    def __init__(self, backlog: Backlog) -> None:
        self._backlog = backlog

    def collect(self) -> Iterable[Metric]:
        """The gauge, as of now."""
        gauge = GaugeMetricFamily(
            "octo_sync_backlog_subjects", "Subjects that are owed a look.", labels=["connection", "kind"]
        )
        for (connection, kind), count in self._backlog().items():
            gauge.add_metric([connection, kind], count)
        yield gauge

    def describe(self) -> Iterable[Metric]:
        """Nothing is asked before the first scrape."""
        return ()
