"""Write docs/metrics.md from the catalogue itself: `uv run python scripts/metrics.py`."""

from pathlib import Path

from octo_sync.receiver.metrics import CATALOGUE

PAGE = Path(__file__).resolve().parent.parent / "docs" / "metrics.md"

HEAD = """# Metrics

<!-- Written by scripts/metrics.py from CATALOGUE in src/octo_sync/receiver/metrics.py; a test keeps it current. -->

`octo-sync serve` shows them at `/metrics` of the receiver's address (`webhooks.bind`), in Prometheus' text format.
[`deploy/grafana.json`](../deploy/grafana.json) is a dashboard of them, [`deploy/alerts.yml`](../deploy/alerts.yml) are alert
rules; [monitoring.md](monitoring.md) says how to use both. The page has no password: let a proxy pass the path of
`webhooks.url` and nothing else.

A scrape never waits for the journal longer than 0.8 s and reads it at most every 5 s, on a connection of its own, so that no
delivery waits for it. What could not be read is left out, and `octo_sync_journal_readable` is 0; what is older than two minutes
is left out too. Of several processes that share a project each shows its own counters; what is read from the journal is the
same everywhere. `serve --only worker` has no receiver and no page.

| metric | kind | labels | meaning |
|---|---|---|---|
"""

TAIL = """
`kind` is the kind of subject: `supplier`, `products`, `product`, `availability`, `bookings` (a month of them), `booking`,
`subscription`; of quarantine also what a record is one of. `connection` is the name in the pipeline file.

`octo_sync_staleness_seconds` is the number that says what the copy is worth: whatever it shows was verified no longer ago than
that. Its largest value per connection is what `[notify] stale_after` and the alert *stale* look at.
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
