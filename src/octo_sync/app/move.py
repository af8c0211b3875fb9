"""Moving a project from files to PostgreSQL or Delta tables, with its history: the next sync goes on where the last ended."""

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from octo_sync.app.machine import SystemClock
from octo_sync.app.places import duckdb_warehouse
from octo_sync.app.project import journal_and_warehouse
from octo_sync.destinations.base import TableDigest
from octo_sync.errors import ConfigError, JournalError, WarehouseError
from octo_sync.flows.backup import place as placing
from octo_sync.journal import Journal, locked, move_rows
from octo_sync.model import Clock
from octo_sync.pipeline import Pipeline
from octo_sync.pipeline.checks import beside

if TYPE_CHECKING:
    from octo_sync.destinations.delta.warehouse import DeltaWarehouse
    from octo_sync.destinations.postgres.warehouse import PostgresWarehouse


@dataclass(frozen=True, slots=True)
class Moved:
    """What was moved: rows of the warehouse and of the journal (None: it stays where it is), and digests equal in both."""

    rows: int
    journal_rows: int | None
    tables: tuple[TableDigest, ...]


def move(pipeline: Pipeline, former: Path, former_journal: Path | None) -> Moved:
    """Take over the files of a project into the database that the pipeline file names by now. Blocking.

    The files stay as they are. What was cut off is done again by another call: the warehouse is moved in one transaction, and
    the journal, which says what of it is owed, in one after it.

    Args:
        pipeline: With a `postgresql://` destination, or Delta tables.
        former: The DuckDB file; the private one lies beside it.
        former_journal: The journal's file, where the pipeline file names another journal by now.

    Raises:
        ConfigError: The destination is a file, or a file is not there.
        LeaseHeld: Another process works on the project, by its old pipeline file or the new one.
        WarehouseError, JournalError: There is another copy in the database already, or it cannot be written; nothing was moved.
    """
    clock = SystemClock()
    os.umask(0o077)
    private = beside(former, "private")
    _refuse(pipeline, former, private, former_journal)
    with contextlib.ExitStack() as stack:
        if former_journal is not None:
            stack.enter_context(locked(placing.lock_beside(former_journal)))
        journal, lease, warehouse = stack.enter_context(journal_and_warehouse(pipeline, clock, "db rebuild", None))
        if former_journal is not None and journal.value("SELECT count(*) FROM subjects"):
            raise JournalError(f"The journal {journal.name} belongs to a project already; name an empty database.")
        with contextlib.closing(duckdb_warehouse(former, private, clock)) as opened:
            wanted = opened.digest()
        rows = _moved_rows(cast("PostgresWarehouse | DeltaWarehouse", warehouse), former, private, wanted, lease.fence)
        moved = _moved_journal(former_journal, journal, clock)
        return Moved(rows, moved, tuple(wanted))


def _refuse(pipeline: Pipeline, former: Path, private: Path, former_journal: Path | None) -> None:
    if isinstance(pipeline.destination, Path) and pipeline.lake is None:
        raise ConfigError(
            'The destination is a file. First write the new one into the pipeline file: destination = "postgresql://…".'
        )
    if isinstance(pipeline.journal, str) and former_journal is None:
        raise ConfigError(
            "The journal is in PostgreSQL by now: say in which file it was, --journal octo.journal.sqlite."
        )
    if isinstance(pipeline.journal, Path) and former_journal is not None:
        raise ConfigError(
            f"The journal stays in {pipeline.journal.name}, as the pipeline file says; leave out --journal."
        )
    for file in (former, private, *([former_journal] if former_journal else [])):
        if not file.is_file():
            raise ConfigError(f"{file} is not there; name the files that the project was in.")


def _moved_rows(
    warehouse: "PostgresWarehouse | DeltaWarehouse", former: Path, private: Path, wanted: list[TableDigest], fence: int
) -> int:
    if any(table.rows for table in warehouse.digest()):
        if warehouse.digest() != wanted:
            raise WarehouseError(f"{warehouse.name} has another copy already; name an empty database.")
        return 0
    rows = warehouse.move_in({False: former, True: private}, fence)
    if warehouse.digest() != wanted:
        raise WarehouseError(f"{warehouse.name} is not equal to {former.name} after the move; please report it.")
    return rows


def _moved_journal(former: Path | None, journal: Journal, clock: Clock) -> int | None:
    if former is None:
        return None
    with Journal.open(former, clock=clock) as source:
        moved = move_rows(source, journal)
        last = source.leases.last()
    journal.numbers.at_least(fence=last.fence + 1 if last else 0)
    return moved
