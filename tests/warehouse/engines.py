"""Both engines as marts, checks and questions see them: `run_script` and `query`, as destinations have them.

The PostgreSQL side knows nothing of octo-sync's own PostgreSQL destination: its tables are made from the registry's DDL and
filled with the rows of a DuckDB warehouse, so what is compared is the SQL of `warehouse/` alone.
"""

import re
from contextlib import contextmanager

import psycopg

from octo_sync.destinations import ddl
from octo_sync.destinations.base import Rows
from octo_sync.errors import WarehouseError
from octo_sync.flows.publish import apply_marts
from octo_sync.tables import all_tables

PUBLISHED = [t for t in all_tables() if not t.private]


@contextmanager
def planted(engine, plant, undo):
    """What the sandbox never does, in the copy for a while: two statements, the second undoes the first."""
    engine.run_script([plant])
    try:
        yield
    finally:
        engine.run_script([undo])


@contextmanager
def rebuilt(engine, directory, plant, undo):
    """The same with the marts built anew, for those that are tables."""
    try:
        with planted(engine, plant, undo):
            apply_marts(engine, directory)
            yield
    finally:
        apply_marts(engine, directory)


class Postgres:
    """A PostgreSQL database that is given the marts."""

    def __init__(self, dsn):
        self.connection = psycopg.connect(dsn, autocommit=True)
        self.connection.execute("set timezone = 'UTC'")

    def run_script(self, statements):
        try:
            with self.connection.transaction():
                for statement in statements:
                    self.connection.execute(statement)
        except psycopg.Error as error:
            raise WarehouseError(str(error)) from error

    def query(self, sql, parameters=(), *, limit=None):
        named = re.sub(r"\$([a-z_]\w*)", r"%(\1)s", sql.replace("%", "%%")) if parameters else sql
        with self.connection.cursor() as cursor:
            cursor.execute(named, parameters or None)
            rows = cursor.fetchall() if limit is None else cursor.fetchmany(limit)
            return Rows(tuple(c.name for c in cursor.description), rows)

    def make_tables(self):
        """Empty tables, as the registry says."""
        for schema in ddl.schemas(PUBLISHED):
            self.connection.execute(f"drop schema if exists {schema} cascade")
            self.connection.execute(f"create schema {schema}")
        for table in PUBLISHED:
            self.connection.execute(ddl.create_table(table))

    def fill_from(self, warehouse):
        """The rows of a DuckDB warehouse, table by table."""
        self.make_tables()
        for table in PUBLISHED:
            names = ", ".join(c.name for c in table.all_columns)
            rows = warehouse.query(f"select {names} from {table.full_name}").rows
            with (
                self.connection.cursor() as cursor,
                cursor.copy(f"copy {table.full_name} ({names}) from stdin") as copy,
            ):
                for row in rows:
                    copy.write_row(row)
        self.connection.execute("analyze")

    def close(self):
        self.connection.close()
