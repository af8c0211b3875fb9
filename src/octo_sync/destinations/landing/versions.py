"""Write the versions that changed rows leave behind. Every statement runs inside the landing's transaction.

The merge puts what a row was beside what it is (`old_…` in its work table), so that nothing has to be looked up twice, and only
rows that really changed cost anything. Only versions of the landing's own keys are read.
"""

import duckdb

from octo_sync.destinations.ddl import MAIN, placed
from octo_sync.destinations.relations import run
from octo_sync.tables.schema import Table

PRUNE = (
    "delete from core.availability_history h where valid_to_utc < $1 and exists (select 1 from core.availability_history n "
    "where n.connection_id = h.connection_id and n.product_id = h.product_id and n.option_id = h.option_id "
    "and n.availability_id = h.availability_id and n.version_no > h.version_no)"
)
"""Former versions that ended before $1, on both engines. The newest one stays, also of a departure that is gone: should it
come back, its versions are counted on from there."""


def _key(history: Table) -> list[str]:
    return [k for k in history.key if k != "version_no"]


def _same(history: Table) -> str:
    return " and ".join(f"t.{k} = v.{k}" for k in _key(history))


def _into(history: Table) -> str:
    names = [*_key(history), "version_no", "valid_from_utc", "valid_to_utc", "is_current", "changed_fields", "source"]
    return f"insert into {placed(history)} ({', '.join([*names, *history.followed])})"


def beside(history: Table) -> str:
    """What the merge has to select beside each row, over the incoming row `i` and the one that is there, `t`."""
    return f", i._source, {', '.join(f'{value} as {name}' for name, value in _former(history).items())}"


def _former(history: Table) -> dict[str, str]:
    """What the row that is there, `t`, was: name beside the incoming row → its value."""
    audit = {"old_is_deleted": "t.is_deleted", "old_deleted_at": "t.deleted_at_utc"}
    return audit | {f"old_{c}": f"t.{c}" for c in history.followed}


def insert_first(db: duckdb.DuckDBPyConnection, history: Table, work: str) -> int:
    """The first version of every new row in the work table; how many."""
    keys, followed = ", ".join(_key(history)), ", ".join(history.followed)
    return run(
        db,
        f"{_into(history)} select {keys}, 1, landing_now(), null, true, '', _source, {followed} "
        f"from {work} where old_row is null",
    )


def insert_changed(db: duckdb.DuckDBPyConnection, history: Table, work: str, prune: str) -> int:
    """A version of every row in the work table that was there and is not what it was; how many. The one before is closed.

    `prune` narrows which rows of the history, alias `t`, can be of these keys.
    """
    keys, target = ", ".join(_key(history)), placed(history)
    differs = {c: f"{c} is distinct from old_{c}" for c in history.followed} | {"is_deleted": "old_is_deleted"}
    names = ", ".join(f"case when {differs[c]} then '{c}' end" for c in sorted(differs))
    changed = run(
        db,
        f"create or replace temp table versioned as select {keys}, {', '.join(history.followed)}, "
        f"{', '.join(f'old_{c}' for c in history.followed)}, old_is_deleted, old_deleted_at, old_seen, _source, "
        f"concat_ws(',', {names}) as changed_fields from {work} "
        f"where old_row is not null and ({' or '.join(differs.values())})",
    )
    if not changed:
        return 0
    closed = run(
        db,
        f"update {target} t set valid_to_utc = greatest(landing_now(), t.valid_from_utc), is_current = false "
        f"from versioned v where {_same(history)} and t.is_current{prune}",
    )
    # A clock that was put back must not make versions overlap.
    last = (
        f"select {', '.join(f't.{k}' for k in _key(history))}, max(t.version_no) as last_no, max(t.valid_to_utc) as ended "
        f"from {target} t semi join versioned v on {_same(history)}{prune} group by all"
    )
    first = former = ""
    if history.from_first_change:
        first = ", greatest(case when old_is_deleted then old_deleted_at else landing_now() end, old_seen)"
        former = (
            f"select {keys}, 1, old_seen, ended, false, '', '', {', '.join(f'old_{c}' for c in history.followed)} "
            f"from changes where last_no is null union all "
        )
    return closed + run(
        db,
        f"{_into(history)} with changes as (select v.*, t.last_no, coalesce(t.ended{first}) as ended "
        f"from versioned v left join ({last}) t on {_same(history)}) {former}"
        f"select {keys}, coalesce(last_no, {1 if former else 0}) + 1, greatest(landing_now(), ended), null, true, "
        f"changed_fields, _source, {', '.join(history.followed)} from changes",
    )


def close(db: duckdb.DuckDBPyConnection, history: Table, followed: str, buried: str) -> int:
    """Close the version of every row of the table `followed` that is marked as deleted now; how many.

    `buried` is the condition by which a version, alias `t`, is of what was buried, alias `b`.
    """
    same = " and ".join(f"t.{k} = p.{k}" for k in _key(history))
    return run(
        db,
        f"update {history.full_name} t set valid_to_utc = greatest(landing_now(), t.valid_from_utc), is_current = false "
        f"from buried b where {buried} and t.is_current and exists "
        f"(select 1 from {followed} p where {same} and p.is_deleted)",
    )


def begin_anew(db: duckdb.DuckDBPyConnection, history: Table) -> int:
    """The first version of every row of the table it follows, for a history that was lost; how many.

    What a row was before it was last written is not known, so the version begins there.
    """
    if history.from_first_change:
        return 0
    names, keys = ", ".join(history.followed), ", ".join(_key(history))
    return run(
        db,
        f"{_into(history)} select {keys}, 1, last_seen_at_utc, "
        f"case when is_deleted then greatest(deleted_at_utc, last_seen_at_utc) end, not is_deleted, '', '', {names} "
        f"from {MAIN}.{history.history_of}",
    )


def make_rows(db: duckdb.DuckDBPyConnection, history: Table) -> int:
    """Rows of the table it follows, which were lost, from their newest versions; how many. They say that they are older."""
    names, keys = ", ".join(history.followed), ", ".join(_key(history))
    return run(
        db,
        f"insert into {MAIN}.{history.history_of} ({keys}, {names}, first_seen_at_utc, last_seen_at_utc, is_deleted, "
        f"deleted_at_utc, stale_columns) select {keys}, {names}, valid_from_utc, valid_from_utc, not is_current, "
        f"valid_to_utc, '*' from {placed(history)} qualify version_no = max(version_no) over (partition by {keys})",
    )
