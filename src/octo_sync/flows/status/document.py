"""The status and runs for machines: names and values as JSON can say them."""

from dataclasses import asdict
from typing import Any

from octo_sync.flows.status.report import KindStatus, Status
from octo_sync.journal import Run


def as_document(found: Status) -> dict[str, Any]:
    """The status for machines; times are instants, ages seconds."""
    run = found.last_run
    return {
        "connections": [
            {
                "name": c.name,
                "age_seconds": c.age,
                "staleness_seconds": c.staleness,
                **_fields(c, "complete", "open", "permits", "backlog", "quarantined"),
                "held_deletions": c.held,
                "missing_fields": c.kept,
                "given_up": None if c.given_up is None else {"at": c.given_up[0], "why": c.given_up[1]},
                "webhooks": None if c.webhooks is None else asdict(c.webhooks),
                "webhooks_removed_at": c.webhooks_removed_at,
                "kinds": [_kind(k) for k in c.kinds.values()],
            }
            for c in found.connections
        ],
        "next_runs": [
            {"schedule": n.name, "cron": n.expression, "next_at": n.at, "last_at": n.last_at, "late": n.late}
            for n in found.next_runs
        ],
        "open_differences": [
            {"name": d.name, "bucket": d.bucket, "open": d.open, "accepted": d.accepted, "oldest_found_at": d.oldest}
            for d in found.differences
        ],
        "pii": None if found.pii is None else asdict(found.pii),
        "last_run": None if run is None else run_document(run),
        "failed_runs": [run_document(each) for each in found.failures if each.status == "failed"],
        "running": None if found.running is None else asdict(found.running),
        "workers": [asdict(worker) for worker in found.workers],
    }


def _fields(of: object, *names: str) -> dict[str, Any]:
    return {name: getattr(of, name) for name in names}


def _kind(kind: KindStatus) -> dict[str, Any]:
    return {
        **_fields(kind, "kind", "subjects", "verified", "owed", "due", "quarantined"),
        "oldest_verified_at": kind.oldest,
        "newest_verified_at": kind.newest,
        "unverified_since": kind.unverified_since,
        "covered_from": kind.covered.start if kind.covered else None,
        "covered_to": kind.covered.end if kind.covered else None,
        "booked_from": kind.booked.start if kind.booked else None,
        "booked_to": kind.booked.end if kind.booked else None,
        "incomplete": kind.incomplete,
    }


def run_document(run: Run) -> dict[str, Any]:
    """One run for machines."""
    return _fields(
        run, "run_id", "command", "pipeline", "status", "started_at", "ended_at", "options", "counts", "error"
    )
