"""Write docs/metrics.md from the catalogue itself: `scripts/write.sh`."""

from pathlib import Path

from octo_sync.receiver.metrics import CATALOGUE

PAGE = Path(__file__).resolve().parent.parent / "docs" / "metrics.md"

HEAD = """# Metrics

<!-- Written by scripts/metrics.py from CATALOGUE in src/octo_sync/receiver/metrics.py; a test keeps it current. -->

`octo-sync serve` shows them at `/metrics` of `webhooks.bind`, in Prometheus' text format. [Monitoring](monitoring.md)
has the dashboard and the alert
rules. The page has no password: let a proxy pass the path of `webhooks.url` alone.

A scrape takes less than a second and reads the journal at most every 5 s. What cannot be read, or is older than two
minutes, is left
out, and `octo_sync_journal_readable` is 0. Each process shows its own counters; what
it reads from the journal is of the whole project, in each. A worker has the page where `--only receiver` stands beside
`--only worker`.

| metric | kind | labels | meaning |
|---|---|---|---|
"""

TAIL = """
`kind` is the kind of subject: `supplier`, `products`, `product`, `availability`, `bookings` (a month), `booking`,
`subscription`; in
quarantine also of a record. `connection` is the name in the pipeline file. `[notify] stale_after` and the alert *stale* look at
the largest `octo_sync_staleness_seconds` of a connection.
"""


def render() -> str:
    """The whole page."""
    rows = [
        f"| `{each.shown}` | {each.kind} | {', '.join(f'`{label}`' for label in each.labels)} | {each.meaning} |"
        for each in CATALOGUE.values()
    ]
    return HEAD + "\n".join(rows) + "\n" + TAIL


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
