"""The warehouse's two DuckDB files, attached to one connection, and how one of them is written anew while it is held.

The storage version is pinned, so that BI drivers on an older DuckDB can open the read copy.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from octo_sync.destinations.ddl import MAIN, PRIVATE, quoted
from octo_sync.destinations.duckdb import compaction as caring
from octo_sync.destinations.duckdb.transactions import stopping_after
from octo_sync.errors import WarehouseError
from octo_sync.tables.schema import Table

__all__ = ["STORAGE", "Files"]

STORAGE = "v1.2.0"


@dataclass(frozen=True, slots=True)
class Files:
    """Both files: `main`, and `private` for personal data and payloads."""

    main: Path
    private: Path

    @property
    def by_name(self) -> Mapping[str, Path]:
        """Name in SQL → file."""
        return {MAIN: self.main, PRIVATE: self.private}

    def attach_both(self, db: duckdb.DuckDBPyConnection) -> None:
        """Open both, made when they are not there."""
        for name, file in self.by_name.items():
            _attach(db, file, name, is_private=name == PRIVATE)

    def write_anew(
        self,
        db: duckdb.DuckDBPyConnection,
        reader: duckdb.DuckDBPyConnection,
        name: str,
        tables: Sequence[Table],
        *,
        within: float,
    ) -> int:
        """Write one file anew with the live rows of its `tables` and put it in place; its size in bytes.

        Nobody may use the two connections meanwhile.

        Raises:
            WarehouseError: It took longer than `within` seconds, or there is no room; the file is as it was.
        """
        path = self.by_name[name]
        fresh = caring.fresh_path(path)
        caring.room_for(path, path.stat().st_size)
        caring.sweep(path)
        try:
            _attach(db, fresh, "anew", is_private=name == PRIVATE)
            try:
                with stopping_after(db, within):
                    caring.copy_rows(db, name, "anew", tables)
                    db.execute("checkpoint anew")
            finally:
                db.execute(f"use {MAIN}")
                db.execute("detach anew")
            self._swap(db, reader, name, fresh)
        except duckdb.InterruptException as error:
            raise WarehouseError(
                f"Writing {path.name} anew takes longer than {within:g} s; it is as it was."
            ) from error
        finally:
            caring.sweep(path)
        return path.stat().st_size

    def _swap(self, db: duckdb.DuckDBPyConnection, reader: duckdb.DuckDBPyConnection, name: str, fresh: Path) -> None:
        path = self.by_name[name]
        db.execute(f"checkpoint {name}")
        for connection in (db, reader):
            connection.execute("use memory").fetchall()  # also lets go of a result that was not read to its end
        try:
            db.execute(f"detach {name}")
            caring.put_in_place(fresh, path)
        finally:
            _attach(db, path, name, is_private=name == PRIVATE)
            for connection in (db, reader):
                connection.execute(f"use {MAIN}")


def _attach(db: duckdb.DuckDBPyConnection, file: Path, name: str, *, is_private: bool) -> None:
    # Payloads are long and few: in small row groups they go straight to the file instead of through its log.
    options = ", row_group_size 2048" if is_private else ""
    db.execute(f"attach {quoted(str(file))} as {name} (storage_version '{STORAGE}'{options})")
