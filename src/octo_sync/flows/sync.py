"""Sync: one run from lease to read copy. Pull, write down how it went, publish."""

import asyncio
import logging
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from octo_sync.errors import OctoSyncError
from octo_sync.flows.care import care
from octo_sync.flows.erase import erase
from octo_sync.flows.land import Totals
from octo_sync.flows.ports import Ports
from octo_sync.flows.publish import Published, publish
from octo_sync.flows.pull import Pull, Scope
from octo_sync.flows.reconcile_mirror import mirror_reconciliations
from octo_sync.flows.settle import HELD
from octo_sync.flows.work import Trouble
from octo_sync.journal import QuarantineEntry
from octo_sync.model import SubjectKind

__all__ = ["Status", "SyncResult", "mirror", "sync"]

log = logging.getLogger("octo_sync")

Status = Literal["ok", "partial", "failed", "interrupted"]


@dataclass(slots=True)
class SyncResult:
    """How a run went. `status` is derived from its parts: `ok` only when nothing is owed."""

    run_id: str
    status: Status
    started_at: datetime
    ended_at: datetime
    totals: Totals = field(default_factory=Totals)
    requests: int = 0
    retries: int = 0
    resumed: bool = False
    troubles: tuple[Trouble, ...] = ()
    failed: dict[str, str] = field(default_factory=dict)
    quarantined: tuple[QuarantineEntry, ...] = ()
    held: tuple[str, ...] = ()
    published: Published | None = None

    @property
    def seconds(self) -> float:
        """Wall clock of the run."""
        return (self.ended_at - self.started_at).total_seconds()


async def sync(ports: Ports, scope: Scope, *, command: str, publishing: bool = True) -> SyncResult:
    """Pull the scope, record the run, publish the read copy.

    Raises:
        OctoSyncError: The journal or the warehouse failed; the run is recorded as failed, what had landed stays.
    """
    started = ports.clock.now()
    journal = ports.journal
    await asyncio.to_thread(
        journal.start_run,
        command,
        ports.pipeline.name,
        run_id=ports.run_id,
        fence=ports.fence,
        options={"only": sorted(scope.only), "travel": str(scope.travel or ""), "full": scope.full},
    )
    pull = Pull(ports, scope)
    result = SyncResult(ports.run_id, "failed", started, started)
    try:
        worker = await pull.run()
        result.totals, result.resumed = worker.lander.totals, pull.resumed
        result.troubles = tuple(worker.troubles)
        result.failed = {str(s): why for s, why in worker.failed.items()}
        result.quarantined = tuple(await asyncio.to_thread(journal.quarantined))
        result.held = tuple(q.reason for q in result.quarantined if q.resource == HELD)
        result.status = _status(result, everything=len(worker.troubles) == len(ports.clients))
        _count(ports, result)
        await asyncio.to_thread(journal.end_run, ports.run_id, result.status, _counts(result), _error(result))
        await asyncio.to_thread(mirror, ports)
        await asyncio.to_thread(care, ports)
        # What was asked for while it ran; what was asked for before is done since the project was opened.
        await asyncio.to_thread(erase, ports)
        if publishing and ports.pipeline.publish.enabled and result.status != "failed":
            settings = ports.pipeline.publish
            contacts = settings.path.with_suffix(".private.duckdb") if settings.contacts else None
            result.published = await asyncio.to_thread(
                publish, ports.warehouse, ports.pipeline.directory, settings.path, contacts=contacts
            )
    except asyncio.CancelledError:
        result.status = "interrupted"
        journal.end_run(ports.run_id, "interrupted", _counts(result), "stopped by a signal")
        raise
    except OctoSyncError as error:
        journal.end_run(ports.run_id, "failed", _counts(result), str(error))
        raise
    finally:
        result.ended_at = ports.clock.now()
    log.info("action=sync run=%s status=%s subjects=%d", ports.run_id, result.status, result.totals.subjects)
    return result


def _status(result: SyncResult, *, everything: bool) -> Status:
    if everything and result.troubles:
        return "failed"
    return "partial" if result.troubles or result.failed or result.quarantined else "ok"


def _count(ports: Ports, result: SyncResult) -> None:
    result.requests = sum(c.stats.requests for c in ports.clients.values())
    result.retries = sum(c.stats.retries for c in ports.clients.values())


def _counts(result: SyncResult) -> dict[str, int]:
    return {
        "subjects": result.totals.subjects,
        "unchanged": result.totals.unchanged,
        "rows_written": result.totals.rows,
        "requests": result.requests,
        "retries": result.retries,
        "quarantined": len(result.quarantined),
    }


def _error(result: SyncResult) -> str | None:
    return "; ".join(str(t.error) for t in result.troubles)[:1000] or None


def mirror(ports: Ports) -> None:
    """Copy what the journal knows about runs, quarantine, debts, connections and comparisons into `ops`, for SQL."""
    journal, warehouse = ports.journal, ports.warehouse
    runs: list[dict[str, Any]] = []
    for run in journal.runs(200):
        counts = dict(run.counts)
        runs.append(
            {
                "run_id": run.run_id,
                "command": run.command,
                "pipeline": run.pipeline,
                "status": run.status,
                "started_at_utc": run.started_at,
                "ended_at_utc": run.ended_at,
                "requests": counts.get("requests"),
                "subjects": counts.get("subjects"),
                "unchanged": counts.get("unchanged"),
                "rows_written": counts.get("rows_written"),
                "error": run.error,
            }
        )
    warehouse.write_log("ops.runs", runs)
    warehouse.write_log(
        "ops.quarantine",
        [
            {
                "connection_id": q.connection,
                "resource": q.resource,
                "key": q.key,
                "path": q.path or "",
                "reason": q.reason,
                "seen_count": q.count,
                "first_at_utc": q.first_at,
                "last_at_utc": q.last_at,
            }
            for q in journal.quarantined()
        ],
        replace=True,
    )
    warehouse.write_log("ops.unanswered", _unanswered(ports), replace=True)
    mirror_reconciliations(ports)
    suppliers = warehouse.query(
        "select connection_id, max(supplier_id) from core.suppliers where not is_deleted group by 1"
    )
    supplier = dict(suppliers.rows)
    known = {row[0] for row in warehouse.query("select connection_id from core.connections").rows}
    rows = []
    for name, client in ports.clients.items():
        c = client.connection
        rows.append(
            {
                "connection_id": name,
                "role": c.role,
                "channel": c.channel or name,
                "base_url": c.base_url,
                "supplier_id": supplier.get(name),
                "business_time_zone": c.business_time_zone,
                "capabilities": ",".join(c.capabilities),
                "is_active": True,
            }
        )
    gone = known - set(ports.clients)
    if gone:
        old = warehouse.query("select * from core.connections")
        rows += [{**dict(zip(old.columns, row, strict=True)), "is_active": False} for row in old.rows if row[0] in gone]
    warehouse.write_log("core.connections", rows, replace=True)


def _unanswered(ports: Ports) -> list[dict[str, Any]]:
    """What is owed and has no row in `ops.coverage`: what no answer ever spoke of would otherwise pass for complete."""
    owed = [
        row.subject
        for backlog in ports.journal.backlog()
        if backlog.connection in ports.clients and backlog.kind is not SubjectKind.SUBSCRIPTION
        for row in ports.journal.subjects(backlog.connection, backlog.kind)
        if row.dirty
    ]
    answered = ports.warehouse.covered(owed)
    return [
        {
            "connection_id": s.connection,
            "resource": str(s.kind),
            "key": s.key,
            "product_id": s.product_id,
            "option_id": s.option_id,
            "travel_month": s.travel_month,
        }
        for s in owed
        if s not in answered
    ]
