"""A database of an older schema comes to the present one, with all rows, wherever the session is ended on the way."""

import contextlib
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from tests.destinations.test_migrating import SECOND, a_step_more
from tests.destinations.test_postgres import blank, opened
from tests.faults.serving import until

from octo_sync.destinations.migrations import SCHEMA_VERSION
from octo_sync.destinations.postgres import schema
from octo_sync.destinations.postgres import warehouse as postgres
from octo_sync.errors import WarehouseError

__all__ = ["a_step_more", "blank"]

_VALUES = {
    "text": "'t{n}'",
    "bigint": "{n}",
    "integer": "2",
    "boolean": "false",
    "date": "date '2026-12-0{n}'",
    "timestamp without time zone": "timestamp '2026-12-0{n} 09:00:00'",
    "timestamp with time zone": "timestamptz '2026-11-0{n} 08:00:00.123456Z'",
    "numeric(18,4)": "{n}.2500",
    "numeric(38,4)": "{n}.2500",
}
_OURS = "n.nspname in ('core', 'landing', 'ops', 'private', 'raw')"
_NOTED = (
    "core.booking_history",
    "landing.booking_history",
    "landing.changed",
    "landing.schema_migrations",
    "ops.schema_migrations",
)


def shape(server, database):
    """Type, nullability and comment of every column, comment of every table, every index and every trigger.

    In no order: a table that is there gains its new columns at the end.
    """
    run = lambda sql: server.execute(sql, database=database)  # noqa: E731
    columns = run(
        "select n.nspname || '.' || c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, "
        "col_description(c.oid, a.attnum) from pg_attribute a join pg_class c on c.oid = a.attrelid join pg_namespace n "
        f"on n.oid = c.relnamespace where c.relkind = 'r' and a.attnum > 0 and not a.attisdropped and {_OURS}"
    )
    tables = run(
        "select n.nspname || '.' || c.relname, obj_description(c.oid) from pg_class c join pg_namespace n "
        f"on n.oid = c.relnamespace where c.relkind = 'r' and {_OURS}"
    )
    indexes = run(
        "select schemaname, indexdef from pg_indexes where schemaname in ('core', 'landing', 'ops', 'private', 'raw')"
    )
    triggers = run(
        "select tgrelid::regclass::text, tgname, pg_get_triggerdef(oid) from pg_trigger where not tgisinternal"
    )
    schemas = run("select nspname from pg_namespace where nspname !~ '^pg_' and nspname <> 'information_schema'")
    return {*columns, *tables, *indexes, *triggers, *schemas}


def rows(server, database, of):
    """The rows of the tables and columns that `of` names."""
    return {
        table: sorted(server.execute(f"select {', '.join(names)} from {table}", database=database), key=str)
        for table, names in of.items()
    }


def columns(server, database):
    """The columns of each table, with their types, but for the record of migrations."""
    found = {}
    for table, name, type_ in server.execute(
        "select n.nspname || '.' || c.relname, a.attname, format_type(a.atttypid, a.atttypmod) from pg_attribute a "
        "join pg_class c on c.oid = a.attrelid join pg_namespace n on n.oid = c.relnamespace "
        f"where c.relkind = 'r' and a.attnum > 0 and not a.attisdropped and {_OURS} order by 1, a.attnum",
        database=database,
    ):
        if table not in _NOTED:
            found.setdefault(table, {})[name] = type_
    return found


def make(server, blank):
    """A database as a program of the former version left it, two rows in every table: its name, and what must be kept."""
    database = server.make(like=blank)
    older = [f"drop table {schema}.booking_history" for schema in ("core", "landing")]
    older += [f"alter table {schema}.products drop column title" for schema in ("core", "landing")]
    server.execute(";".join(older), database=database)
    filled, kept = [], {}
    for table, names in columns(server, database).items():
        for number in (1, 2) if not table.endswith((".writer", "private.landed")) else (1,):
            values = ", ".join(_VALUES[type_].format(n=number) for type_ in names.values())
            filled.append(f"insert into {table} values ({values})")
        kept[table] = [name for name in names if (table, name) != ("landing.bookings", "status")]
    server.execute(";".join(filled), database=database)
    server.execute("create view marts.fct_bookings as select * from core.bookings", database=database)
    return database, kept


@pytest.fixture
def old(postgres_server, blank, a_step_more):
    """A database of the former version to be copied, and the columns that must keep their values."""
    database, kept = make(postgres_server, blank)
    yield database, kept
    postgres_server.drop(database)


class Fuse:
    """A session that is ended (`pg_terminate_backend`) before its n-th statement; after the last: before its commit."""

    def __init__(self, real, server, at):
        self.real, self.server, self.left, self.said = real, server, at, []

    def burn(self):
        if self.left == len(self.said):
            self.server.execute("select pg_terminate_backend(%s, 10000)", self.real.info.backend_pid)
            self.left = -1

    def execute(self, sql, *more):
        self.burn()
        self.said.append(sql if isinstance(sql, str) else sql.decode())
        return self.real.execute(sql, *more)

    @contextlib.contextmanager
    def transaction(self):
        with self.real.transaction():
            yield
            self.burn()


@pytest.fixture
def fused(monkeypatch, postgres_server):
    """`fused(n)`: the next migration is ended there, once; what it said is in the list that is given back."""
    migrate = postgres.migrate

    def light(at):
        lit, said = [at], []

        def burning(db, *more, **named):
            fuse = Fuse(db, postgres_server, lit.pop() if lit else -1)
            try:
                return migrate(fuse, *more, **named)
            finally:
                said[:] = said or fuse.said

        monkeypatch.setattr(postgres, "migrate", burning)
        return said

    return light


def test_a_migrated_database_is_a_fresh_one_with_all_its_rows(old, blank, postgres_server, tmp_path):
    template, kept = old
    database = postgres_server.make(like=template)
    before = rows(postgres_server, database, kept)
    assert len(before) > 20
    assert shape(postgres_server, database) != shape(postgres_server, blank)

    warehouse = opened(postgres_server.dsn(database), tmp_path)
    assert warehouse.migrated == (SECOND,)
    warehouse.close()
    assert shape(postgres_server, database) == shape(postgres_server, blank)
    assert rows(postgres_server, database, kept) == before
    again = opened(postgres_server.dsn(database), tmp_path)
    assert again.migrated == ()
    numbers = again.query("select version from ops.schema_migrations order by 1").rows
    assert [number for (number,) in numbers] == [SCHEMA_VERSION, SECOND.version]
    assert again.query("select count(*) from marts.fct_bookings").rows == [(2,)]
    again.close()
    postgres_server.drop(database)


def moments(said):
    """Where to end a session: at the first statement of each kind, at all that change rows, and before the commit."""
    kinds = {}
    for number, sql in enumerate(said):
        kinds.setdefault(" ".join(sql.split()[:2]), number)
    changes = [n for n, sql in enumerate(said) if sql.startswith(("insert", "update"))]
    return sorted({*kinds.values(), *changes, len(said)})


@pytest.mark.deep(30)
def test_a_migration_whose_session_is_ended_anywhere_goes_on(old, blank, postgres_server, fused, tmp_path):
    """By itself, and where the program ended with the session, at the next opening; until then nothing is changed."""
    template, kept = old
    fresh, former = shape(postgres_server, blank), shape(postgres_server, template)
    before = rows(postgres_server, template, kept)
    whole = postgres_server.make(like=template)
    said = fused(-1)
    opened(postgres_server.dsn(whole), tmp_path).close()
    every = columns(postgres_server, whole)
    unkilled = rows(postgres_server, whole, every)
    assert any(sql.startswith("alter table") for sql in said)
    tried = moments(said)
    assert len(tried) > 8

    for number, moment in enumerate(tried):
        where = (moment, said[moment : moment + 1])
        database = postgres_server.make(like=template)
        fused(moment)
        if number % 2:
            with pytest.raises(WarehouseError):
                opened(postgres_server.dsn(database), tmp_path, waits=())
            assert shape(postgres_server, database) == former, where
            assert rows(postgres_server, database, kept) == before, where
        warehouse = opened(postgres_server.dsn(database), tmp_path)
        assert warehouse.migrated == (SECOND,), where
        warehouse.close()
        assert shape(postgres_server, database) == fresh, where
        assert rows(postgres_server, database, kept) == before, where
        assert rows(postgres_server, database, every) == unkilled, where
        postgres_server.drop(database)
    postgres_server.drop(whole)


def test_a_session_that_is_ended_while_the_tables_are_made_leaves_none_of_them(
    postgres_server,
    blank,
    fused,
    tmp_path,
):
    database = postgres_server.make()
    said = fused(60)
    with pytest.raises(WarehouseError):
        opened(postgres_server.dsn(database), tmp_path, waits=())
    assert len(said) == 61, "in the middle of it"
    assert postgres_server.execute("select count(*) from pg_namespace where nspname = 'core'", database=database) == [
        (0,)
    ]
    opened(postgres_server.dsn(database), tmp_path).close()
    assert shape(postgres_server, database) == shape(postgres_server, blank)
    postgres_server.drop(database)


def test_of_two_that_open_an_empty_database_one_makes_the_tables(postgres_server, tmp_path, monkeypatch):
    """The other may come when somebody lands already, and would wait for a landing that waits for it."""
    database, made, real = postgres_server.make(), [], schema._shape_landing
    monkeypatch.setattr(schema, "_shape_landing", lambda *args: (made.append(args), real(*args)))
    waiting = "select count(*) from pg_stat_activity where datname = %s and wait_event = 'advisory'"
    with psycopg.connect(postgres_server.dsn(database), autocommit=True) as other, ThreadPoolExecutor() as pool:
        other.execute("select pg_advisory_lock(%s)", [schema._LOCK])
        opening = [pool.submit(opened, postgres_server.dsn(database), tmp_path / name) for name in "ab"]
        until(lambda: other.execute(waiting, [database]).fetchone() == (2,), 30, "both wait")
        other.execute("select pg_advisory_unlock(%s)", [schema._LOCK])
        for one in opening:
            one.result().close()
    assert len(made) == 1
    postgres_server.drop(database)


def test_a_migration_waits_for_a_landing_which_never_waits_for_it(old, postgres_server, tmp_path):
    template, _ = old
    database = postgres_server.make(like=template)
    dsn, waiting = (
        postgres_server.dsn(database),
        "select count(*) from pg_locks where not granted and database = %s::oid",
    )
    ((oid,),) = postgres_server.execute("select oid from pg_database where datname = %s", database)
    with ThreadPoolExecutor() as pool, psycopg.connect(dsn) as landing:
        landing.execute("set local lock_timeout = 100")
        landing.execute("lock table landing.writer in row exclusive mode")
        opening = pool.submit(opened, dsn, tmp_path)
        until(lambda: postgres_server.execute(waiting, oid) == [(1,)], 30, "it waits")
        for (table,) in landing.execute("select tablename from pg_tables where schemaname = 'landing'").fetchall():
            landing.execute(f"delete from landing.{table} where false")
        landing.commit()
        warehouse = opening.result()
    assert warehouse.migrated == (SECOND,)
    warehouse.close()
    postgres_server.drop(database)
