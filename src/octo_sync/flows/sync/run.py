"""Sync: one run from lease to read copy. Pull, write down how it went, publish."""

import asyncio
import contextlib
import logging
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from octo_sync.errors import OctoSyncError, WarehouseError
from octo_sync.flows.ports import Ports
from octo_sync.flows.privacy.erase import erase
from octo_sync.flows.publish import Published, keep_marts
from octo_sync.flows.sync.breaker import Trouble
from octo_sync.flows.sync.compaction import care
from octo_sync.flows.sync.land import Totals
from octo_sync.flows.sync.mirror import mirror, mirror_and_publish
from octo_sync.flows.sync.pull import Pull, Scope
from octo_sync.flows.sync.settle import HELD
from octo_sync.journal import QuarantineEntry

log = logging.getLogger("octo_sync")

Status = Literal["ok", "partial", "failed", "interrupted"]


@dataclass(slots=True)
class SyncResult:
    """How a run went. `status` is derived from its parts: `ok` only when nothing is owed, `failed` when nothing was done."""

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
    notes: tuple[str, ...] = ()
    """What a user has to know of a run that went well. Each is a sentence."""
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
        journal.runs.start,
        command,
        ports.pipeline.name,
        run_id=ports.run_id,
        fence=ports.fence,
        options={"only": sorted(scope.only), "travel": str(scope.travel or ""), "full": scope.full},
    )
    pull, publishing = Pull(ports, scope), publishing and ports.pipeline.publish.enabled
    result = SyncResult(ports.run_id, "failed", started, started)
    try:
        worker, _ = await asyncio.gather(pull.run(), asyncio.to_thread(_prepare, ports, publishing=publishing))
        _count(ports, pull, result)
        result.troubles = tuple(worker.troubles)
        result.failed = {str(s): why for s, why in worker.failed.items()}
        result.quarantined = tuple(await asyncio.to_thread(journal.quarantine.entries))
        result.notes = tuple(_notes(ports, scope))
        result.held = tuple(q.reason for q in result.quarantined if q.resource == HELD)
        result.status = how_it_went(
            result.totals.subjects,
            is_owed=bool(result.troubles or result.failed),
            is_held=bool(result.quarantined),
            is_every_service_gone=ports.clients.keys() <= worker.failed_services,
        )
        await asyncio.to_thread(journal.runs.end, ports.run_id, result.status, _counts(result), _error(result))
        await asyncio.to_thread(mirror, ports)
        await asyncio.to_thread(care, ports)
        # What was asked for while it ran; what was asked for before is done since the project was opened.
        await asyncio.to_thread(erase, ports)
        if publishing and result.status != "failed":
            result.published = await asyncio.to_thread(mirror_and_publish, ports)
    except asyncio.CancelledError:
        result.status = "interrupted"
        _count(ports, pull, result)
        journal.runs.end(ports.run_id, "interrupted", _counts(result), "stopped by a signal")
        raise
    except Exception as error:
        said = f"It broke ({type(error).__name__}); please report this."
        if isinstance(error, OctoSyncError):
            error.run_id, said = ports.run_id, str(error)
        _count(ports, pull, result)
        journal.runs.end(ports.run_id, "failed", _counts(result), said)
        raise
    finally:
        result.ended_at = ports.clock.now()
    log.info("action=sync run=%s status=%s subjects=%d", ports.run_id, result.status, result.totals.subjects)
    return result


def _prepare(ports: Ports, *, publishing: bool) -> None:
    """Make the marts of a new warehouse while the first answers are waited for: half a second."""
    if publishing:
        with contextlib.suppress(WarehouseError):  # publishing says it
            keep_marts(ports.warehouse, ports.pipeline.directory)


def how_it_went(
    subjects: int, *, is_owed: bool, is_held: bool, is_every_service_gone: bool
) -> Literal["ok", "partial", "failed"]:
    """The word for a pull that landed so many subjects, by whoever: whether any is owed, anything is in quarantine. Pure."""
    if is_every_service_gone or (is_owed and not subjects):
        return "failed"
    return "partial" if is_owed or is_held else "ok"


def _notes(ports: Ports, scope: Scope) -> list[str]:
    if scope.travel is None or not scope.wants("bookings"):
        return []
    return [
        f'"{name}" lists bookings by day of booking, not of travel: looked at were those made {ports.bookings_window(name)}, '
        f"and of earlier ones those that the copy has. An earlier one that it does not have was not found."
        for name in ports.clients
        if ports.lists_by_booking(name)
    ]


def _count(ports: Ports, pull: Pull, result: SyncResult) -> None:
    """What was done so far, also where the run ends before its end."""
    if pull.worker is not None:
        result.totals, result.resumed = pull.worker.lander.totals, pull.resumed
    result.requests = sum(c.stats.requests for c in ports.clients.values())
    result.retries = sum(c.stats.retries for c in ports.clients.values())


def _counts(result: SyncResult) -> dict[str, int]:
    calls = {"requests": result.requests, "retries": result.retries}
    return result.totals.counts | calls | {"quarantined": len(result.quarantined)}


def _error(result: SyncResult) -> str | None:
    return "; ".join(str(t.error) for t in result.troubles)[:1000] or None
