"""What the journal knows of comparisons, shown in `ops` for those who look in SQL.

The journal is the truth, because whoever compares need not own the warehouse; this is a copy of it.
"""

import json
import logging
from collections.abc import Mapping
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any

from octo_sync.flows.ports import Ports
from octo_sync.journal import ReconciliationRun
from octo_sync.reconciliation.model import Bucket
from octo_sync.tables.reconciliation import RECON_RESULTS, RECON_RUNS
from octo_sync.tables.schema import Table

log = logging.getLogger("octo_sync")

_MOST_RUNS = 2_000
"""Comparisons that are shown; more than five years of nightly ones."""
_KEPT = {"recon_name": "name", "recon_key": "key", "match_rule": "rule", "connection_id": "connection"}
"""Columns that the journal has under another name."""
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
    results = [row_of(RECON_RESULTS, one, {"delta_amount": _amount(one.delta_amount)}) for one in differences]
    warehouse.write_log("ops.recon_results", results, replace=True)
    warehouse.write_log("ops.recon_runs", runs, replace=True)
    log.info("action=mirror_reconciliations run=%s rows=%d", ports.run_id, len(differences))
    return True


def _run(run: ReconciliationRun, revision: int) -> Mapping[str, Any]:
    # A run that compared counted every bucket, those of no item too.
    counts = {name: None if run.verdict == "failed" else run.counts.get(name, 0) for name in map(str, Bucket)}
    totals = json.dumps(list(run.totals), ensure_ascii=False)
    return row_of(RECON_RUNS, run, {**counts, "control_totals": totals, "revision": revision})


def row_of(table: Table, kept: object, made: Mapping[str, Any]) -> Mapping[str, Any]:
    """What is `made` for a row, and for all other columns what the journal has."""
    others = [column.name for column in table.columns if column.name not in made]
    return {**made, **{name: getattr(kept, _KEPT.get(name, name.removesuffix("_utc"))) for name in others}}


def _amount(value: Decimal | None) -> Decimal | None:
    if value is None or not value.is_finite() or abs(value) >= _BEYOND:
        return None
    rounded = value.quantize(_PLACES, rounding=ROUND_HALF_EVEN)
    return rounded if abs(rounded) < _BEYOND else None
