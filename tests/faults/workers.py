"""A project that several workers share, on PostgreSQL."""

import contextlib
import datetime as dt
import os
import re
from collections import Counter

import deltalake
import duckdb
import psycopg
from deltalake.exceptions import TableNotFoundError
from tests.faults.serving import SLACK, TOKEN, Copy, Program, until
from tests.forks import forks
from tests.oracle import BOOKKEEPING, KEYS

from octo_sync.tables import all_tables

NAMES = [f"shop{number}" for number in range(6)]


class Workers(Copy):
    """A project of several connections, journal and warehouse in one database; the workers are processes of its directory."""

    def __init__(
        self,
        directory,
        sandbox,
        address,
        *,
        names=NAMES,
        still=2000,
        concurrency=1,
        lake="",
        publish="0.5s",
        token=TOKEN,
    ):
        """`token` has a place for the connection's number where each has its own."""
        directory.mkdir(parents=True, exist_ok=True)
        self.directory, self.sandbox, self.address, self.names = directory, sandbox, address, names
        self.log = directory / "serve.log"
        connections = "".join(
            f'[connections.{name}]\nbase_url = "{sandbox.base_url}"\n'
            f'token = {{ env = "OCTO_TEST_TOKEN_UNSET", default = "{token.format(number)}" }}\n'
            f"[connections.{name}.limits]\nconcurrency = {concurrency}\n"
            for number, name in enumerate(names)
        )
        (directory / "pipeline.toml").write_text(
            f'name = "copy"\ndestination = "{address}"\njournal = "{address}?tcp_user_timeout={still}"\n'
            '[horizon]\nbookings = "-30d..+60d"\navailability = "0d..+60d"\nnear = "0d..+10d"\n'
            f'{connections}[sync]\nconfirm_after = ["0.5s"]\nbackoff = "0.2s"\nbackoff_cap = "2s"\n'
            f'[publish]\nevery = "{publish}"\n' + (f'delta = "{lake}"\n' if lake else "")
        )
        self._numbers = iter(range(100))

    def worker(self):
        """A worker with a log of its own."""
        log = self.directory / f"worker-{next(self._numbers)}.log"
        return Program("serve", "-p", "pipeline.toml", "--only", "worker", cwd=self.directory, log=log)

    def ask(self, sql, *parameters):
        with psycopg.connect(self.address, options="-c search_path=journal", autocommit=True) as session:
            return session.execute(sql, parameters).fetchall()

    def journal(self, sql, *parameters):
        with contextlib.suppress(psycopg.errors.UndefinedTable):
            return self.ask(sql, *parameters)
        return []

    def owners(self):
        """Connection → process of who owns it now."""
        return dict(
            self.journal(
                "select substr(name, 12), pid from leases where name like 'connection %%' and released_at is null"
            )
        )

    def until_clean(self, within=60.0):
        done = "select count(distinct connection) from subjects where kind = 'availability' and landed_seq > 0"
        until(lambda: self.number(done) == len(self.names) and self.owed() == 0, within, self.left)

    def left(self):
        """What is owed and whose it is, and what the workers said."""
        owed = self.ask("select row_to_json(s)::text from subjects s where wanted_seq > landed_seq limit 5")
        owed += self.ask("select row_to_json(t)::text from timers t limit 5")
        return f"{owed}\n{self.owners()}\n{self.said()}"

    def said(self):
        return "\n".join(
            f"{log.name}\n{log.read_text()[-2000:]}" for log in sorted(self.directory.glob("worker-*.log"))
        )

    def rows(self):
        """Everything that has landed, without when and by which run it was seen."""
        return {
            table.full_name: Counter(self.ask(f"select {', '.join(compared(table))} from {landed(table)}"))
            for table in all_tables()
            if table.full_name.startswith(("core.", "private.booking"))
        }

    def on_one_machine(self):
        """Of each table of core the rows that only this copy has, and those that only one process pulls into a file.

        Of bookings those of the horizon: this one was told of others too.
        """
        alone = self.directory / "alone"
        alone.mkdir()
        text = re.sub("(?m)^(destination|journal|delta) = .*\n", "", (self.directory / "pipeline.toml").read_text())
        (alone / "pipeline.toml").write_text(text)
        done = forks().run(["sync", "-p", "pipeline.toml"], alone, dict(os.environ), within=300 * SLACK)
        assert done.returncode == 0, done.stdout + done.stderr
        days = "local_date between current_date - 29 and current_date + 59"
        asked = f"booking_uuid in (select booking_uuid from core.bookings where {days})"
        found = {}
        with duckdb.connect(alone / "octo.read.duckdb", read_only=True) as db:
            for table in all_tables():
                if table.full_name not in KEYS.keys() - {"private.booking_contacts"}:
                    continue
                names = {c.name for c in table.columns}
                told = ", ".join(sorted({"connection_id"} | names - BOOKKEEPING))
                where = [asked] * ("booking_uuid" in names) + ["not is_deleted"] * ("is_deleted" in names)
                wanted = f"select {told} from {table.full_name} where {' and '.join(['true', *where])}"
                found[table.full_name] = Counter(self.ask(wanted)), Counter(db.execute(wanted).fetchall())
        assert all(found[name][0].total() > 50 for name in ("core.bookings", "core.availability")), found
        return {name: (here - there, there - here) for name, (here, there) in found.items() if here != there}

    def runs(self):
        """How runs of workers ended, or that they did not."""
        return Counter(status for (status,) in self.ask("select status from runs where command = 'serve'"))

    def landed_in(self, run):
        """What was seen last in a run, and when."""
        return set(
            self.ask(
                "select connection_id, resource, key, verified_at_utc from landing.coverage where run_id = %s", run
            )
        )

    def published(self):
        return self.number("select count(*) from marts.fct_bookings") if self.ask(THERE) else 0


def differing(address, lake):
    """Of each table the rows that only PostgreSQL has, and those that only readers of the Delta tables have."""
    try:
        state = deltalake.DeltaTable(f"{lake}/octo_sync_published").to_pyarrow_table().to_pylist()
    except TableNotFoundError:
        return "nothing is there"
    found = {}
    with psycopg.connect(address) as session:
        session.execute("begin isolation level repeatable read read only")
        named = "select table_schema || '/' || table_name from information_schema.tables where table_schema = any(%s)"
        names = {name for (name,) in session.execute(named, [["core", "ops", "marts"]])}
        for row in state:
            name = row["table_name"]
            there = deltalake.DeltaTable(f"{lake}/{name}", version=row["version"]).to_pyarrow_table()
            columns = ", ".join(f'"{column}"' for column in there.column_names)
            here = Counter(map(_told, session.execute(f"select {columns} from {name.replace('/', '.')}")))
            found[name] = here, Counter(zip(*there.to_pydict().values(), strict=True))
    assert found.keys() == names
    assert sum(here.total() for here, _ in found.values()) > 1000
    return {name: (here - there, there - here) for name, (here, there) in found.items() if here != there}


def _told(row):
    """A wall clock is a text in Delta."""
    return tuple(v.isoformat() if isinstance(v, dt.datetime) and v.tzinfo is None else v for v in row)


THERE = "select 1 from pg_class where relnamespace = to_regnamespace('marts') and relname = 'fct_bookings'"


def compared(table):
    """The columns but those that say when a copy saw something, and a hash with the project's own secret."""
    own = {"valid_from_utc", "valid_to_utc", "verified_at_utc", "contact_key"}
    return [c.name for c in table.columns if c.name not in own]


def landed(table):
    return table.full_name.replace("core.", "landing.")
