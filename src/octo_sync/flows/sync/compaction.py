"""Care: what keeps the files from growing. Retention, and writing a file anew when it holds much that nobody needs.

How large a file is when it holds nothing else is known from the last time it was written anew, per value; before the first
time, from its free blocks and deleted rows. It is looked at in quiet moments, once an hour by default.
"""

import asyncio
import json
import logging
from datetime import datetime, timedelta
from math import inf

from octo_sync.destinations.base import FileSize
from octo_sync.errors import WarehouseError, WarehouseLocked
from octo_sync.flows.ports import Ports
from octo_sync.pipeline import CareSettings

log = logging.getLogger("octo_sync")

_NOTE = "care"
"""The journal's setting: when the files were looked at, and what each of them needs per value."""

_OVERDUE = 6
"""After so many times `care.every` without a quiet moment it is not waited for any longer."""


def is_worth_it(size: FileSize, per_value: float | None, settings: CareSettings) -> bool:
    """Whether a file is so much larger than it need be that it is written anew. Pure."""
    needed = size.needed if per_value is None else per_value * size.values
    return size.bytes > needed * (1 + settings.waste) and size.bytes - needed >= settings.least


def retain(ports: Ports, now: datetime) -> int:
    """Remove what is older than is to be kept: deliveries, runs, settled differences, former payloads and departures.

    How much went. Blocking.
    """
    settings = ports.pipeline.retention
    raw, runs, history = (
        now - timedelta(seconds=keep) if keep else None
        for keep in (settings.raw, settings.runs, settings.availability_history)
    )
    gone = thin_deliveries(ports, now)
    if runs is not None:
        journal = ports.journal
        gone += journal.runs.prune(runs) + journal.reconciliations.prune(runs) + journal.acts.prune(runs)
    return gone + ports.warehouse.prune(raw_before=raw, runs_before=runs, history_before=history)


def thin_deliveries(ports: Ports, now: datetime) -> int:
    """Remove deliveries that are older than they are kept; how many. Cheap, so that it may be done every minute. Blocking."""
    return ports.journal.inbox.prune(now - timedelta(seconds=ports.pipeline.webhooks.keep))


def care(ports: Ports) -> dict[str, int]:
    """Apply retention, and write anew the files that are worth it; nothing when that was lately, or they are new. Blocking.

    Which files, with their bytes afterwards.

    A file that cannot be written anew is left as it is, and the log says why.

    Raises:
        WarehouseLocked: Another process took the file in the moment between the old one and the new one.
    """
    settings, now = ports.pipeline.care, ports.clock.now()
    noted = json.loads(ports.journal.settings.get(_NOTE) or "{}")
    # The files of a first run are new: nothing in them is worth the time.
    first = None if "at" in noted else min((run.started_at for run in ports.journal.runs.last(200)), default=None)
    last = datetime.fromisoformat(noted["at"]) if "at" in noted else first
    if last is not None and timedelta() <= now - last < timedelta(seconds=settings.every):
        return {}
    retain(ports, now)
    per_value: dict[str, float] = dict(noted.get("bytes_per_value", {}))
    done: dict[str, int] = {}
    for file, size in ports.warehouse.sizes(least=settings.small).items():
        if is_worth_it(size, per_value.get(file), settings):
            if (after := _rewrite(ports, file, size)) is not None:
                done[file] = after
                per_value[file] = after / max(1, size.values)
        elif file not in per_value:
            per_value[file] = size.needed / max(1, size.values)
    ports.journal.settings.set(_NOTE, json.dumps({"at": now.isoformat(), "bytes_per_value": per_value}))
    return done


def _rewrite(ports: Ports, file: str, size: FileSize) -> int | None:
    try:
        after = ports.warehouse.rewrite(file, within=ports.pipeline.care.within)
    except WarehouseLocked:
        raise
    except WarehouseError as error:
        log.warning("action=rewrite_failed run=%s file=%s error=%s", ports.run_id, file, error)
        return None
    log.info("action=rewrite run=%s file=%s before=%d after=%d", ports.run_id, file, size.bytes, after)
    return after


class Compactor:
    """Care beside other work: in quiet moments, and when none comes for long, all the same."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._since = asyncio.get_running_loop().time()
        self._looked_at = -inf

    async def when_quiet(self) -> None:
        """Call it when nothing is due; what becomes due meanwhile waits until a file is written."""
        await self._after(self._looked_at, self._ports.pipeline.care.every)

    async def when_overdue(self) -> None:
        """Call it now and then in between: under steady load there is no quiet moment."""
        await self._after(max(self._since, self._looked_at), self._ports.pipeline.care.every * _OVERDUE)

    async def _after(self, last: float, pause: float) -> None:
        now = asyncio.get_running_loop().time()
        if now - last >= pause:
            self._looked_at = now
            await asyncio.to_thread(care, self._ports)
