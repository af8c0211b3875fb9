"""What the journal knows, copied into the warehouse for those who look in SQL, and shown to them."""

from collections.abc import Mapping
from typing import Any

from octo_sync.flows.periods import mirror_closings
from octo_sync.flows.ports import Ports
from octo_sync.flows.publish import Published, publish_everywhere
from octo_sync.flows.reconcile.tables import mirror_reconciliations, row_of
from octo_sync.model import SubjectKind
from octo_sync.tables.ops import CONNECTIONS, QUARANTINE, RUNS, UNANSWERED


def mirror_and_publish(ports: Ports) -> Published:
    """Copy what the journal knows, then build marts, run checks and swap the read copy that the pipeline names. Blocking.

    Raises:
        JournalError, WarehouseError: One could not be read or written; the old read copy stays.
    """
    mirror(ports)
    return publish_everywhere(ports)


def mirror(ports: Ports) -> None:
    """Copy what the journal knows about runs, quarantine, debts, connections and comparisons into `ops`, for SQL."""
    journal, warehouse = ports.journal, ports.warehouse
    counts = ("requests", "subjects", "unchanged", "rows_written")
    runs = [row_of(RUNS, run, {name: run.counts.get(name) for name in counts}) for run in journal.runs.last(200)]
    warehouse.write_log("ops.runs", runs)
    quarantined = [row_of(QUARANTINE, entry, {"seen_count": entry.count}) for entry in journal.quarantine.entries()]
    warehouse.write_log("ops.quarantine", quarantined, replace=True)
    warehouse.write_log("ops.unanswered", _unanswered(ports), replace=True)
    mirror_reconciliations(ports)
    mirror_closings(ports)
    suppliers = warehouse.query(
        "select connection_id, max(supplier_id) from core.suppliers where not is_deleted group by 1"
    )
    supplier = dict(suppliers.rows)
    rows: list[Mapping[str, Any]] = [
        row_of(
            CONNECTIONS,
            client.connection,
            {"connection_id": name, "channel": client.connection.channel or name, "supplier_id": supplier.get(name)}
            | {"capabilities": ",".join(client.connection.capabilities), "is_active": True},
        )
        for name, client in ports.clients.items()
    ]
    former = warehouse.query("select * from core.connections").records()
    rows += [row | {"is_active": False} for row in former if row["connection_id"] not in ports.clients]
    warehouse.write_log("core.connections", rows, replace=True)


def _unanswered(ports: Ports) -> list[Mapping[str, Any]]:
    """What is owed and has no row in `ops.coverage`: what no answer ever spoke of would otherwise pass for complete."""
    owed = [
        row.subject
        for backlog in ports.journal.subjects.backlog()
        if backlog.connection in ports.clients and backlog.kind is not SubjectKind.SUBSCRIPTION
        for row in ports.journal.subjects.rows(backlog.connection, backlog.kind)
        if row.dirty
    ]
    answered = ports.warehouse.covered(owed)
    return [row_of(UNANSWERED, subject, {"resource": str(subject.kind)}) for subject in owed if subject not in answered]
