"""Mark proven deletions on DuckDB, with what hangs on them. Runs inside a transaction that the caller opened."""

from collections.abc import Mapping, Sequence

import duckdb

from octo_sync.destinations.base import Absence
from octo_sync.destinations.ddl import placed
from octo_sync.destinations.landing import versions
from octo_sync.destinations.landing.merge import key_json
from octo_sync.destinations.relations import equal, given, run, sql
from octo_sync.tables.schema import Merge, Table


def _stage(db: duckdb.DuckDBPyConnection, table: Table, absences: Sequence[Absence]) -> None:
    """The keys to bury as columns, in `buried`. What was shown again since it was decided is not among them."""
    columns = [c for c in table.key if c != "connection_id"]
    parts = ", ".join(f"json_extract_string(n.key, '$[{i}]') as {c}" for i, c in enumerate(columns))
    rows = [(a.connection, a.key, a.misses) for a in absences]
    select, values = given({"connection_id": "varchar", "key": "varchar", "misses": "bigint"}, rows)
    db.execute(sql("buried", parts=parts, absences=select, table=table.full_name), values)


def bury(db: duckdb.DuckDBPyConnection, tables: Mapping[str, Table], absences: Sequence[Absence]) -> int:
    """Mark the rows and those that go with them; how many were marked.

    Rows are marked, never removed. Their details (prices, taxes, extras) are removed: they are part of a row that is no
    longer there, come back with it, and would otherwise be counted by whoever sums a detail table.
    """
    marked = 0
    for name in sorted({a.table for a in absences}):
        table = tables[name]
        _stage(db, table, [a for a in absences if a.table == name])
        for target in (table, *(tables[c] for c in table.cascade)):
            # What was offered in the past stays as it was seen.
            is_offer = target.full_name == "core.availability" and target is not table
            future = " and t.local_date >= landing_now()::date - 1" if is_offer else ""
            marked += run(db, sql("bury", table=target.full_name, same=equal(table.key, "t", "b"), future=future))
            for history in tables.values():
                if history.history_of == target.full_name:
                    versions.close(db, history, target.full_name, equal(table.key, "t", "b"))
            if is_offer:
                # Should it come back, answers of the same bytes are read again. Months that are asked for no more claim
                # what is left.
                db.execute(sql("departures_buried", same=equal(table.key, "t", "b")))
        _bury_details(db, tables, table)
        db.execute(sql("buried_absences", table=name))
    for table in tables.values():
        if table.merge is Merge.MERGE and not table.private:
            db.execute(sql("absences_of_deleted", table=table.full_name, key=key_json(table, "t")))
    return marked


def _bury_details(db: duckdb.DuckDBPyConnection, tables: Mapping[str, Table], table: Table) -> None:
    """Details of what was marked: a row of their own says nothing without it."""
    for detail in tables.values():
        if detail.merge is Merge.REPLACE and detail.parent in (table.full_name, *table.cascade):
            parts = {"parent": detail.parent, "parent_key": equal(detail.parent_key, "t", "p")}
            db.execute(sql("bury_details", table=detail.full_name, same=equal(table.key, "t", "b"), **parts))
        elif detail.merge is Merge.VERSIONS and set(table.key) < set(detail.key):
            db.execute(sql("bury_versions", table=detail.full_name, same=equal(table.key, "t", "b")))


def bury_private(db: duckdb.DuckDBPyConnection, tables: Mapping[str, Table], absences: Sequence[Absence]) -> None:
    """The same for what the private file holds of the rows."""
    for name in sorted({a.table for a in absences}):
        for target in tables.values():
            if target.private and target.merge is Merge.MERGE and set(tables[name].key) < set(target.key):
                _stage(db, tables[name], [a for a in absences if a.table == name])
                db.execute(sql("bury", table=placed(target), same=equal(tables[name].key, "t", "b"), future=""))
