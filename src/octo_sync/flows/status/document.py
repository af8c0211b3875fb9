"""The status and runs for machines: names and values as JSON can say them."""

import json
from dataclasses import asdict
from typing import Any

from octo_sync.flows.status.report import Status
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
                "complete": c.complete,
                "open": c.open,
                "permits": c.permits,
                "backlog": c.backlog,
                "quarantined": c.quarantined,
                "held_deletions": c.held,
                "missing_fields": c.kept,
                "webhooks": None if c.webhooks is None else asdict(c.webhooks),
                "webhooks_removed_at": c.webhooks_removed_at,
                "kinds": [
                    {
                        "kind": k.kind,
                        "subjects": k.subjects,
                        "verified": k.verified,
                        "owed": k.owed,
                        "due": k.due,
                        "quarantined": k.quarantined,
                        "oldest_verified_at": k.oldest,
                        "newest_verified_at": k.newest,
                        "unverified_since": k.unverified_since,
                        "covered_from": k.covered.start if k.covered else None,
                        "covered_to": k.covered.end if k.covered else None,
                        "booked_from": k.booked.start if k.booked else None,
                        "booked_to": k.booked.end if k.booked else None,
                        "incomplete": k.incomplete,
                    }
                    for k in c.kinds.values()
                ],
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
        "running": None if found.running is None else asdict(found.running),
        "workers": [asdict(worker) for worker in found.workers],
    }


def run_document(run: Run) -> dict[str, Any]:
    """One run for machines."""
    return {
        "run_id": run.run_id,
        "command": run.command,
        "pipeline": run.pipeline,
        "status": run.status,
        "started_at": run.started_at,
        "ended_at": run.ended_at,
        "options": json.loads(json.dumps(dict(run.options), default=str)),
        "counts": dict(run.counts),
        "error": run.error,
    }
