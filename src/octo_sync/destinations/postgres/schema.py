"""The warehouse's schema in PostgreSQL: made from the tables' definitions, and brought up to date in one transaction."""

from collections.abc import Sequence
from datetime import datetime

from octo_sync import __version__
from octo_sync.destinations import ddl, migrations
from octo_sync.destinations.migrations import Step
from octo_sync.destinations.postgres import Session
from octo_sync.destinations.postgres.landed import LANDING, NOTES, group_of, in_landing, landed, noting
from octo_sync.destinations.postgres.session import asking, value_of
from octo_sync.destinations.relations import sql
from octo_sync.tables.schema import Table

_LOCK = 0x6F63746F
"""Advisory lock of whoever changes the schema: "octo" in ASCII."""
_TYPES = {
    "text": "text",
    "timestamptz": "timestamp with time zone",
    "timestamp": "timestamp without time zone",
}


def migrate(db: Session, tables: Sequence[Table], *, now: datetime, name: str) -> tuple[Step, ...]:
    """Make what is missing, in one transaction; the steps that were taken, none for a database that was current or is new.

    A database that is current is only read, so that a role which may not make schemas can open it.

    Raises:
        WarehouseError: It was written by a newer program.
    """
    if _is_current(db, tables, name):
        return ()
    with db.transaction():
        db.execute("select pg_advisory_xact_lock($1)", [_LOCK])
        if _is_current(db, tables, name):
            return ()  # another worker has made it meanwhile, and somebody may be landing into it
        found = _found(db)
        if found is not None:
            db.execute(f"lock table {LANDING}.writer in share row exclusive mode".encode())
        taken = migrations.steps_after(found, name)
        _shape(db, tables)
        _shape_landing(db, landed(tables))
        for statement in (statement for step in taken for statement in step.statements):
            db.execute(in_landing(statement).encode())
        for version in [migrations.SCHEMA_VERSION] if found is None else [step.version for step in taken]:
            db.execute(
                f"insert into {LANDING}.schema_migrations values ($1, $2, $3)".encode(), [version, now, __version__]
            )
    return taken


def _is_current(db: Session, tables: Sequence[Table], name: str) -> bool:
    found = _found(db)
    return found is not None and not migrations.steps_after(found, name) and _is_shaped(db, tables)


def schema_of_server(address: str) -> int | None:
    """Schema version of the warehouse there; None when it has no tables yet.

    Raises:
        WarehouseError: It cannot be reached, or refuses us.
    """
    with asking(address) as session:
        return _found(session)


def _found(db: Session) -> int | None:
    # Asked of the catalogue itself: `to_regclass` answers from a cache that has not heard of what was made while it waited.
    there = "select exists (select from pg_catalog.pg_tables where schemaname = $1 and tablename = 'schema_migrations')"
    if not value_of(db, there, [LANDING]):
        return None
    found = value_of(db, f"select max(version) from {LANDING}.schema_migrations")
    return None if found is None else int(found)


def _columns(db: Session) -> dict[str, dict[str, str]]:
    """Types of each table's columns."""
    found: dict[str, dict[str, str]] = {}
    for table, column, kind in db.execute(sql("postgres_columns")).fetchall():
        found.setdefault(table, {})[column] = kind
    return found


def _wanted(table: Table) -> dict[str, str]:
    return {c.name: _TYPES.get(c.type, c.type) for c in table.all_columns}


def _is_shaped(db: Session, tables: Sequence[Table]) -> bool:
    there = _columns(db)
    marts = value_of(db, "select exists (select from pg_catalog.pg_namespace where nspname = 'marts')")
    every = [*tables, *landed(tables)]
    return marts and all(_wanted(t).items() <= there.get(t.full_name, {}).items() for t in every)


def _shape_landing(db: Session, tables: Sequence[Table]) -> None:
    """The same for what is landed into. A table made now notes what changes."""
    made = _shape(db, tables)
    notes = NOTES if "schema_migrations" in {table.name for table in made} else ()
    for statement in (*notes, *(statement for table in made for statement in noting(table))):
        db.execute(statement.encode())


def _shape(db: Session, tables: Sequence[Table]) -> list[Table]:
    """Make the tables; one that is there gains columns in place. Columns that are not ours to define stay. Those made now."""
    made = []
    have = {name for (name,) in db.execute("select nspname from pg_namespace").fetchall()}
    for schema in sorted({*ddl.schemas(tables), "marts"} - have):
        db.execute(f"create schema {schema}".encode())
    there = _columns(db)
    for table in tables:
        old, wanted = there.get(table.full_name), _wanted(table)
        if old is None:
            db.execute(ddl.create_table(table).encode())
            made.append(table)
        else:
            changes = [f"add column {n} {k}" for n, k in wanted.items() if n not in old]
            changes += [
                f"alter column {n} type {k} using {n}::{k}" for n, k in wanted.items() if n in old and old[n] != k
            ]
            if changes:
                db.execute(f"alter table {table.full_name} {', '.join(changes)}".encode())
        for number, columns in enumerate(indexes(table), start=1):
            name = f"{table.name}_octo_{number}"
            db.execute(f"create index if not exists {name} on {table.full_name} ({', '.join(columns)})".encode())
        for comment in ddl.comments(table) if table.schema != LANDING else ():
            db.execute(comment.encode())
    return made


def indexes(table: Table) -> list[tuple[str, ...]]:
    """What rows are looked up by. None is unique: the landing keeps keys so, and a check proves it, as on DuckDB."""
    if table.name == "bookings":
        return [group_of(table), ("connection_id", "local_date"), ("connection_id", "utc_created_at")]
    if table.name == "coverage":
        return [group_of(table), ("request_seq",)]
    if table.full_name == "raw.records":
        return [("connection_id", "resource", "key")]
    if table.schema != LANDING and "local_date" in group_of(table):
        # As reports ask. Of the whole group it takes a third longer to publish a million departures.
        return [("local_date",)]
    return [group_of(table)]
