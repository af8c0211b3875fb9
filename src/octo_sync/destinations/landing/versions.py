"""Write the versions that changed rows leave behind. Every statement runs inside the landing's transaction.

The merge puts what a row was beside what it is (`old_…` in its work table), so that nothing has to be looked up twice, and only
rows that really changed cost anything. Only versions of the landing's own keys are read.
"""

import duckdb

from octo_sync.destinations.ddl import placed
from octo_sync.destinations.relations import equal, run, sql
from octo_sync.tables.schema import Table


def _key(history: Table) -> list[str]:
    return [k for k in history.key if k != "version_no"]


def _parts(history: Table) -> dict[str, str]:
    """What statements about a history have places for."""
    names = [*_key(history), "version_no", "valid_from_utc", "valid_to_utc", "is_current", "changed_fields", "source"]
    return {
        "history": placed(history),
        "table": history.history_of,
        "keys": ", ".join(_key(history)),
        "followed": ", ".join(history.followed),
        "old": ", ".join(f"old_{c}" for c in history.followed),
        "same": equal(_key(history), "t", "v"),
        "into": f"insert into {placed(history)} ({', '.join([*names, *history.followed])})",
    }


def beside(history: Table) -> str:
    """What the merge has to select beside each row, over the incoming row `i` and the one that is there, `t`."""
    former = {"old_is_deleted": "is_deleted", "old_deleted_at": "deleted_at_utc"}
    former |= {f"old_{c}": c for c in history.followed}
    return f", i._source, {', '.join(f't.{value} as {name}' for name, value in former.items())}"


def insert_first(db: duckdb.DuckDBPyConnection, history: Table, work: str) -> int:
    """The first version of every new row in the work table; how many."""
    return run(db, sql("first_versions", work=work, **_parts(history)))


def insert_changed(db: duckdb.DuckDBPyConnection, history: Table, work: str, prune: str) -> int:
    """A version of every row in the work table that was there and is not what it was; how many. The one before is closed.

    `prune` narrows which rows of the history, alias `t`, can be of these keys.
    """
    parts = _parts(history)
    differs = {c: f"{c} is distinct from old_{c}" for c in history.followed} | {"is_deleted": "old_is_deleted"}
    names = ", ".join(f"case when {differs[c]} then '{c}' end" for c in sorted(differs))
    if not run(db, sql("versioned", work=work, changed=names, differs=" or ".join(differs.values()), **parts)):
        return 0
    closed = run(db, sql("end_versions", prune=prune, **parts))
    first, former = "", ""
    if history.from_first_change:
        first = ", greatest(case when old_is_deleted then old_deleted_at else landing_now() end, old_seen)"
        former = sql("former_versions", **parts)
    more = {"first": first, "former": former, "before_first": 1 if former else 0, "prune": prune}
    own = ", ".join(f"t.{k}" for k in _key(history))
    return closed + run(db, sql("next_versions", history_keys=own, **more, **parts))


def close(db: duckdb.DuckDBPyConnection, history: Table, followed: str, buried: str) -> int:
    """Close the version of every row of the table `followed` that is marked as deleted now; how many.

    `buried` is the condition by which a version, alias `t`, is of what was buried, alias `b`.
    """
    same = equal(_key(history), "t", "p")
    return run(db, sql("end_buried_versions", history=history.full_name, buried=buried, followed=followed, same=same))


def begin_anew(db: duckdb.DuckDBPyConnection, history: Table) -> int:
    """The first version of every row of the table it follows, for a history that was lost; how many."""
    return 0 if history.from_first_change else run(db, sql("begin_anew", **_parts(history)))


def make_rows(db: duckdb.DuckDBPyConnection, history: Table) -> int:
    """Rows of the table it follows, which were lost, from their newest versions; how many."""
    return run(db, sql("make_rows", **_parts(history)))
