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
_OF_RUN = (
    "run_id", "verdict", "window_start", "window_end", "here_origin", "there_origin", "differences", "new_differences",
    "resolved_differences", "open_differences",
)  # fmt: skip
"""Of a run, what is called the same in `ops`."""
_RENAMED = {"name": "recon_name", "key": "recon_key", "rule": "match_rule", "connection": "connection_id"}
"""Of a difference, what is called something else there; instants are called `…_utc` besides."""
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
        "started_at_utc": run.started_at,
        "ended_at_utc": run.ended_at,
        **{name: getattr(run, name) for name in _OF_RUN},
        # A run that compared counted every bucket, those of no item too.
        **{name: None if run.verdict == "failed" else run.counts.get(name, 0) for name in map(str, Bucket)},
        "control_totals": json.dumps(list(run.totals), ensure_ascii=False),
        "revision": revision,
    }


def _result(one: StoredDifference) -> Mapping[str, Any]:
    found = one.model_dump() | {"delta_amount": _amount(one.delta_amount)}
    named = {name: f"{name}_utc" if name.endswith("_at") else name for name in found} | _RENAMED
    return {named[name]: value for name, value in found.items()}


def _amount(value: Decimal | None) -> Decimal | None:
    if value is None or not value.is_finite() or abs(value) >= _BEYOND:
        return None
    rounded = value.quantize(_PLACES, rounding=ROUND_HALF_EVEN)
    return rounded if abs(rounded) < _BEYOND else None
