"""What the journal knows of comparisons, shown in `ops` for those who look in SQL.

The journal is the truth, because whoever compares need not own the warehouse; this is a copy of it.
"""

import json
import logging
from collections.abc import Mapping
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any

from octo_sync.flows.ports import Ports
from octo_sync.journal import ReconciliationRun, StoredDifference
from octo_sync.reconciliation.model import Bucket

log = logging.getLogger("octo_sync")

_MOST_RUNS = 2_000
"""Comparisons that are shown; more than five years of nightly ones."""
_PLACES = Decimal("0.0001")
_BEYOND = Decimal(10) ** 14
"""What `numeric(18,4)` cannot hold: such an amount is a mistake in a ledger, and must not stop a publish."""


def mirror_reconciliations(ports: Ports) -> bool:
    """Copy comparisons and differences into `ops.recon_runs` and `ops.recon_results`; whether anything had changed.

    The runs say which state of the journal the copy shows, so that a copy that is current costs two counts. They are
    written last: a kill in between leaves a copy that says it is old.

    Raises:
        JournalError, WarehouseError: One could not be read or written.
    """
    journal, warehouse = ports.journal, ports.warehouse
    revision, stored = journal.reconciliations.revision(), journal.reconciliations.count()
    shown = warehouse.query(
        "select coalesce((select max(revision) from ops.recon_runs), 0), (select count(*) from ops.recon_results)"
    ).rows[0]
    if tuple(shown) == (revision, stored):
        return False
    differences = journal.reconciliations.differences()
    runs = [_run(run, revision) for run in journal.reconciliations.runs(None, _MOST_RUNS)]
    warehouse.write_log("ops.recon_results", map(_result, differences), replace=True)
    warehouse.write_log("ops.recon_runs", runs, replace=True)
    log.info("action=mirror_reconciliations run=%s rows=%d", ports.run_id, len(differences))
    return True


def _run(run: ReconciliationRun, revision: int) -> Mapping[str, Any]:
    return {
        "recon_name": run.name,
        "run_id": run.run_id,
        "verdict": run.verdict,
        "started_at_utc": run.started_at,
        "ended_at_utc": run.ended_at,
        "window_start": run.window.start,
        "window_end": run.window.end,
        "here_origin": run.here_origin,
        "there_origin": run.there_origin,
        "differences": run.differences,
        "new_differences": run.new_differences,
        "resolved_differences": run.resolved_differences,
        "open_differences": run.open_differences,
        # A run that compared counted every bucket, those of no item too.
        **{name: None if run.verdict == "failed" else run.counts.get(name, 0) for name in map(str, Bucket)},
        "control_totals": json.dumps(list(run.totals), ensure_ascii=False),
        "revision": revision,
    }


def _result(one: StoredDifference) -> Mapping[str, Any]:
    return {
        "recon_name": one.name,
        "recon_key": one.key,
        "bucket": one.bucket,
        "field": one.field,
        "match_rule": one.rule,
        "connection_id": one.connection,
        "booking_uuid": one.booking_uuid,
        "here_value": one.here_value,
        "there_value": one.there_value,
        "delta_amount": _amount(one.delta_amount),
        "currency": one.currency,
        "reason": one.reason,
        "code": one.code,
        "day": one.day,
        "both_rows": one.both_rows,
        "first_seen_at_utc": one.first_seen_at,
        "last_seen_at_utc": one.last_seen_at,
        "resolved_at_utc": one.resolved_at,
        "accepted_note": one.accepted_note,
        "accepted_by": one.accepted_by,
        "accepted_until": one.accepted_until,
    }


def _amount(value: Decimal | None) -> Decimal | None:
    if value is None or not value.is_finite() or abs(value) >= _BEYOND:
        return None
    rounded = value.quantize(_PLACES, rounding=ROUND_HALF_EVEN)
    return rounded if abs(rounded) < _BEYOND else None
