"""Mark proven deletions on DuckDB, with what hangs on them. Runs inside a transaction that the caller opened."""

from collections.abc import Mapping, Sequence

import duckdb

from octo_sync.destinations.base import Absence
from octo_sync.destinations.ddl import placed
from octo_sync.destinations.landing import versions
from octo_sync.destinations.landing.merge import key_json
from octo_sync.destinations.relations import given, run
from octo_sync.tables.schema import Merge, Table


def _same(columns: Sequence[str]) -> str:
    return " and ".join(f"t.{c} = b.{c}" for c in columns)


def _stage(db: duckdb.DuckDBPyConnection, table: Table, absences: Sequence[Absence]) -> None:
    """The keys to bury as columns, in `buried`. What was shown again since it was decided is not among them."""
    columns = [c for c in table.key if c != "connection_id"]
    parts = ", ".join(f"json_extract_string(n.key, '$[{i}]') as {c}" for i, c in enumerate(columns))
    rows = [(a.connection, a.key, a.misses) for a in absences]
    select, values = given({"connection_id": "varchar", "key": "varchar", "misses": "bigint"}, rows)
    db.execute(
        f"create or replace temp table buried as select n.connection_id, n.key, {parts} "
        f"from ({select}) n join ops.absences a on a.table_name = '{table.full_name}' "
        f"and a.connection_id = n.connection_id and a.key = n.key and a.misses >= n.misses",
        values,
    )


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
            future = target.full_name == "core.availability" and target is not table
            marked += run(
                db,
                f"update {target.full_name} t set is_deleted = true, deleted_at_utc = landing_now() "
                f"from buried b where {_same(table.key)} and not t.is_deleted"
                + (" and t.local_date >= landing_now()::date - 1" if future else ""),
            )
            for history in tables.values():
                if history.history_of == target.full_name:
                    versions.close(db, history, target.full_name, _same(table.key))
            if future:
                _doubt_answers(db, table)
        _bury_details(db, tables, table)
        db.execute(
            "delete from ops.absences a using buried b "
            "where a.table_name = $1 and a.connection_id = b.connection_id and a.key = b.key",
            [name],
        )
    for table in tables.values():
        # What hung on a buried row needs no proof of its own any more.
        if table.merge is Merge.MERGE and not table.private:
            db.execute(
                f"delete from ops.absences a where a.table_name = $1 and exists (select 1 from {table.full_name} t "
                f"where t.connection_id = a.connection_id and t.is_deleted and {key_json(table, 't')} = a.key)",
                [table.full_name],
            )
    return marked


def _bury_details(db: duckdb.DuckDBPyConnection, tables: Mapping[str, Table], table: Table) -> None:
    """Details of what was marked: a row of their own says nothing without it."""
    for detail in tables.values():
        if detail.merge is Merge.REPLACE and detail.parent in (table.full_name, *table.cascade):
            parent_key = " and ".join(f"t.{c} = p.{c}" for c in detail.parent_key)
            db.execute(
                f"delete from {detail.full_name} t using buried b where {_same(table.key)} and exists "
                f"(select 1 from {detail.parent} p where {parent_key} and p.is_deleted)"
            )
        elif detail.merge is Merge.VERSIONS and set(table.key) < set(detail.key):
            db.execute(
                f"update {detail.full_name} t set is_current = false, "
                f"valid_to_utc = greatest(landing_now(), t.valid_from_utc) "
                f"from buried b where {_same(table.key)} and t.is_current"
            )


def _doubt_answers(db: duckdb.DuckDBPyConnection, table: Table) -> None:
    """Departures went with what they hang on, so their months' answers are no longer what is landed.

    Should it come back, answers of the same bytes are read again. Months that are asked for no more claim what is left.
    """
    days = "a.local_date between t.window_start and t.window_end"
    ids = " and ".join(f"a.{c} = t.{c}" for c in ("connection_id", "product_id", "option_id"))
    db.execute(
        f"update ops.coverage t set answer_hash = null, row_count = least(t.row_count, n.live) from "
        f"(select t.connection_id, t.key, count(a.availability_id) as live from ops.coverage t "
        f"join buried b on {_same(table.key)} left join core.availability a on {ids} and {days} and not a.is_deleted "
        f"where t.resource = 'availability' group by all) n "
        f"where t.resource = 'availability' and t.connection_id = n.connection_id and t.key = n.key"
    )


def bury_private(db: duckdb.DuckDBPyConnection, tables: Mapping[str, Table], absences: Sequence[Absence]) -> None:
    """The same for what the private file holds of the rows."""
    for name in sorted({a.table for a in absences}):
        for target in tables.values():
            if target.private and target.merge is Merge.MERGE and set(tables[name].key) < set(target.key):
                _stage(db, tables[name], [a for a in absences if a.table == name])
                db.execute(
                    f"update {placed(target)} t set is_deleted = true, deleted_at_utc = landing_now() "
                    f"from buried b where {_same(tables[name].key)} and not t.is_deleted"
                )
