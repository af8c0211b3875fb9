"""Moving a project between files, PostgreSQL and Delta tables with its history: the next sync goes on where the last ended."""

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from octo_sync.app.machine import SystemClock
from octo_sync.app.places import duckdb_warehouse, open_warehouse
from octo_sync.app.project import journal_and_warehouse, owner
from octo_sync.destinations.base import TableDigest
from octo_sync.errors import ConfigError, JournalError, WarehouseError
from octo_sync.flows.backup import place as placing
from octo_sync.journal import Journal, locked, move_rows
from octo_sync.model import Clock
from octo_sync.pipeline import Pipeline
from octo_sync.pipeline.checks import beside

if TYPE_CHECKING:
    from octo_sync.destinations.duckdb.warehouse import DuckDBWarehouse
    from octo_sync.destinations.postgres.warehouse import PostgresWarehouse

_DOING = "db rebuild"


@dataclass(frozen=True, slots=True)
class Moved:
    """What was moved: rows of the warehouse and of the journal (None: it stays where it is), and digests equal in both."""

    rows: int
    journal_rows: int | None
    tables: tuple[TableDigest, ...]


def move(pipeline: Pipeline, former: Path | str, former_journal: Path | str | None) -> Moved:
    """Take over all of a project into the place that the pipeline file names by now. Blocking.

    Where it was stays as it is. What was cut off is done again by another call: the warehouse is moved first, all of it or
    none, and the journal, which says what of it is owed, after it.

    Args:
        pipeline: With the destination, and the journal, that it shall have.
        former: The DuckDB file, beside which the private one lies, or the `postgresql://` address.
        former_journal: The journal's file or address, where the pipeline file names another journal by now.

    Raises:
        ConfigError: It is no move, or what is to be moved is not there.
        LeaseHeld: Another process works on the project, by its old pipeline file or the new one.
        WarehouseError, JournalError: Another copy is there already, or one cannot be read or written; nothing counts as moved.
    """
    clock = SystemClock()
    os.umask(0o077)
    _refuse(pipeline, former, former_journal)
    with contextlib.ExitStack() as stack:
        source = stack.enter_context(_owned(former_journal, clock)) if former_journal is not None else None
        journal, lease, warehouse = stack.enter_context(journal_and_warehouse(pipeline, clock, _DOING, None))
        if source is not None and journal.value("SELECT count(*) FROM subjects"):
            raise JournalError(f"The journal {journal.name} belongs to a project already; name an empty database.")
        files, wanted = stack.enter_context(_files_of(pipeline, former, clock))
        rows = _moved_rows(cast("PostgresWarehouse | DuckDBWarehouse", warehouse), files, wanted, lease.fence)
        moved = None if source is None else _moved_journal(source, journal)
        return Moved(rows, moved, tuple(wanted))


def _refuse(pipeline: Pipeline, former: Path | str, former_journal: Path | str | None) -> None:
    if isinstance(former, Path) and isinstance(pipeline.destination, Path) and pipeline.lake is None:
        raise ConfigError(
            'The destination is a file. First write the new one into the pipeline file: destination = "postgresql://…".'
        )
    if isinstance(former, str) and isinstance(pipeline.destination, str):
        raise ConfigError("Both are PostgreSQL: move the database with its own tools, such as pg_dump and pg_restore.")
    if former_journal is None and isinstance(pipeline.journal, str) and isinstance(former, Path):
        raise ConfigError(
            "The journal is in PostgreSQL by now: say in which file it was, --journal octo.journal.sqlite."
        )
    if former_journal is None and isinstance(former, str) and _is_missing(pipeline.journal):
        raise ConfigError("The journal is a file by now: say where it was, --journal postgresql://…")
    if isinstance(former_journal, type(pipeline.journal)):
        raise ConfigError("The journal stays where it is, as the pipeline file says; leave out --journal.")
    _look(former, former_journal)


def _is_missing(place: Path | str) -> bool:
    return isinstance(place, Path) and not place.is_file()


def _look(former: Path | str, former_journal: Path | str | None) -> None:
    private = [beside(former, "private")] if isinstance(former, Path) else []
    for place in (former, former_journal, *private):
        if place is not None and _is_missing(place):
            raise ConfigError(f"{place} is not there; name the files that the project was in.")
    if isinstance(former_journal, str) and not Journal.exists(former_journal):
        raise ConfigError("In the database that --journal names there is no journal of octo-sync.")
    if isinstance(former, str):
        from octo_sync.destinations.postgres.schema import schema_of_server  # noqa: PLC0415 - its driver is an extra

        if schema_of_server(former) is None:
            raise ConfigError("In the database that --from names there are no tables of octo-sync.")


@contextlib.contextmanager
def _owned(place: Path | str, clock: Clock) -> Iterator[Journal]:
    """The former journal, which nobody else works with meanwhile."""
    if isinstance(place, Path):
        with locked(placing.lock_beside(place)), Journal.open(place, clock=clock) as journal:
            yield journal
    else:
        with (
            Journal.open(place, clock=clock) as journal,
            journal.leases.acquire(placing.lock_beside(Path(_DOING)), owner=owner(_DOING)),
        ):
            yield journal


@contextlib.contextmanager
def _files_of(
    pipeline: Pipeline, former: Path | str, clock: Clock
) -> Iterator[tuple[Mapping[bool, Path], list[TableDigest]]]:
    """Both files with the rows of the former place, the private one under True, and what its tables are."""
    if isinstance(former, Path):
        private = beside(former, "private")
        with contextlib.closing(duckdb_warehouse(former, private, clock)) as opened:
            wanted = opened.digest()
        yield {False: former, True: private}, wanted
        return
    with tempfile.TemporaryDirectory(prefix=f"octo-move-{os.getpid()}-", dir=pipeline.directory) as folder:
        files = {False: Path(folder, "octo.duckdb"), True: Path(folder, "octo.private.duckdb")}
        there = open_warehouse(replace(pipeline, destination=former, lake=None), clock)
        with contextlib.closing(cast("PostgresWarehouse", there)) as server:
            wanted = server.digest()
            server.move_out(files)
        yield files, wanted


def _moved_rows(
    warehouse: "PostgresWarehouse | DuckDBWarehouse", files: Mapping[bool, Path], wanted: list[TableDigest], fence: int
) -> int:
    if any(table.rows for table in warehouse.digest()):
        if warehouse.digest() != wanted:
            raise WarehouseError(f"{warehouse.name} has another copy already; name an empty place.")
        return 0
    rows = warehouse.move_in(files, fence)
    if warehouse.digest() != wanted:
        raise WarehouseError(f"{warehouse.name} is not equal to what it was moved from; please report it.")
    return rows


def _moved_journal(source: Journal, journal: Journal) -> int:
    moved = move_rows(source, journal)
    last = source.leases.last()
    journal.numbers.at_least(fence=last.fence + 1 if last else 0)
    return moved
