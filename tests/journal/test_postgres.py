"""The journal on a server: what only a server can do to it."""

import random
import threading
import time
from collections import Counter

import psycopg
import pytest
from sqlalchemy import inspect
from tests.faults.serving import Copy, Sandbox, canonical, until
from tests.journal.helpers import NO_FILE, HandClock, booking, bookings, delivery, kill, start

from octo_sync.errors import JournalError, LeaseHeld
from octo_sync.journal import Journal, models, postgres, sql
from octo_sync.journal.faults import BUSY_TIMEOUT_MS, translated
from octo_sync.model import Source

OWNER = """
lease = journal.leases.acquire(Path("unused"), owner="x")
say("mine")
sys.stdin.readline()
"""


@pytest.fixture
def engine() -> str:
    return "postgresql"


def backend(journal: Journal) -> int:
    with journal.reading() as connection:
        return connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()


# -- sessions --------------------------------------------------------------------------------------------------------


def test_a_session_killed_between_two_calls_costs_nobody_an_error(journal: Journal, admin) -> None:
    journal.subjects.mark([booking("a")], Source.USER)
    admin.execute("SELECT pg_terminate_backend(%s, 5000)", [backend(journal)])
    journal.subjects.mark([booking("b")], Source.USER)
    admin.execute("SELECT pg_terminate_backend(%s, 5000)", [backend(journal)])
    assert journal.subjects.dirty_count() == 2


def test_a_session_killed_in_a_transaction_keeps_nothing_of_it_and_the_next_call_goes_on(
    journal: Journal, admin
) -> None:
    with pytest.raises(JournalError, match=r"cannot be reached.*not done"), journal.writing() as connection:  # noqa: PT012 - the block is the point
        connection.exec_driver_sql("UPDATE counters SET value = value + 1")
        pid = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
        admin.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
        connection.exec_driver_sql("UPDATE counters SET value = value + 1")
    number = journal.subjects.mark([booking()], Source.USER)
    assert journal.numbers.last() == number
    assert journal.subjects.dirty_count() == 1


def test_a_commit_whose_answer_was_lost_is_not_acknowledged_and_may_be_repeated(
    journal: Journal, admin, monkeypatch
) -> None:
    commit = postgres.PostgresServer.commit

    def unheard(self, connection) -> None:
        pid = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
        commit(self, connection)
        admin.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
        commit(self, connection)  # here the network would have failed

    with monkeypatch.context() as patched:
        patched.setattr(postgres.PostgresServer, "commit", unheard)
        with pytest.raises(JournalError, match="cannot be reached"):
            journal.inbox.accept([delivery(b"1")])
    journal.inbox.accept([delivery(b"1")])
    assert [one.body for one in journal.inbox.deliveries()] == [b"1", b"1"]
    assert journal.subjects.dirty_count() == 1


def test_a_transaction_that_the_server_gave_up_is_never_taken_for_committed(journal: Journal) -> None:
    with (
        pytest.raises(JournalError, match="did not keep"),
        journal.writing() as connection,
        pytest.raises(psycopg.Error),
    ):
        connection.connection.driver_connection.execute("SELECT 1 / 0")
    assert journal.subjects.dirty_count() == 0


@pytest.mark.deep(15)
def test_a_server_that_restarts_is_waited_for_by_nobody_and_found_again(clock: HandClock, postgres_server) -> None:
    name = postgres_server.make()
    with Journal.open(postgres_server.dsn(name), clock=clock) as journal:
        acknowledged = journal.inbox.accept([delivery(b"1")])
        postgres_server.stop(immediately=True)
        with pytest.raises(JournalError, match="cannot be reached") as said:
            journal.inbox.accept([delivery(b"2")])
        assert "\n" not in str(said.value)
        postgres_server.start()
        assert [one.seq for one in journal.inbox.deliveries()] == [acknowledged]
        assert journal.inbox.accept([delivery(b"2")]) > acknowledged


# -- refusals --------------------------------------------------------------------------------------------------------


def test_a_table_locked_for_too_long_is_said_and_nothing_is_kept(journal: Journal, admin, monkeypatch) -> None:
    assert setting(journal, "lock_timeout") == f"{BUSY_TIMEOUT_MS // 1000}s"
    with journal.reading() as connection:
        connection.exec_driver_sql("SET lock_timeout TO 50")
    with admin.transaction():
        admin.execute("LOCK TABLE journal.subjects")
        with pytest.raises(JournalError, match="was locked for more than 5 s"):
            journal.inbox.accept([delivery(b"1")])
    assert journal.inbox.deliveries() == []
    journal.inbox.accept([delivery(b"1")])
    assert len(journal.inbox.deliveries()) == 1


def test_a_read_only_server_is_said(journal: Journal, path, admin, clock: HandClock) -> None:
    journal.subjects.mark([booking()], Source.USER)
    name = admin.info.dbname
    admin.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only TO on')
    try:
        journal._disconnect()
        with pytest.raises(JournalError, match="read-only"):
            journal.subjects.mark([booking("b")], Source.USER)
        assert journal.subjects.dirty_count() == 1
    finally:
        admin.execute("SET default_transaction_read_only TO off")
        admin.execute(f'ALTER DATABASE "{name}" RESET default_transaction_read_only')
    journal._disconnect()
    journal.subjects.mark([booking("b")], Source.USER)
    assert journal.subjects.dirty_count() == 2


def test_a_full_disk_is_said(journal: Journal) -> None:
    class DiskFull(psycopg.errors.DiskFull):
        pass

    with pytest.raises(JournalError, match="disk is full"), translated(journal.name):
        raise DiskFull("no space left on device")


def setting(journal: Journal, name: str) -> str:
    with journal.reading() as connection:
        return connection.exec_driver_sql(f"SHOW {name}").scalar_one()


def test_commits_are_durable_whatever_the_database_says(path, admin, clock: HandClock) -> None:
    name = admin.info.dbname
    for asked, granted in {"off": "on", "local": "on", "remote_apply": "remote_apply"}.items():
        admin.execute(f'ALTER DATABASE "{name}" SET synchronous_commit TO {asked}')
        try:
            with Journal.open(path, clock=clock) as journal:
                assert setting(journal, "synchronous_commit") == granted
        finally:
            admin.execute(f'ALTER DATABASE "{name}" RESET synchronous_commit')


def test_a_session_that_cannot_be_made_durable_is_refused(path, clock: HandClock, monkeypatch) -> None:
    monkeypatch.setitem(postgres._SQL, "session", "SET synchronous_commit TO off")
    with pytest.raises(JournalError, match="do not commit durably"):
        Journal.open(path, clock=clock)


def test_no_password_and_no_value_is_in_any_error(journal: Journal, path, clock: HandClock) -> None:
    wrong = path.replace("postgres@", "nobody:hunter2@").replace("/journals", "/journals?connect_timeout=2")
    for address in (
        wrong,
        "postgresql://nobody:hunter2@127.0.0.1:1/none",
        wrong.replace("?", "?password=hunter2&odd="),
    ):
        with pytest.raises(JournalError) as said:
            Journal.open(address, clock=clock)
        assert "hunter2" not in str(said.value)
        assert "\n" not in str(said.value)
    with pytest.raises(JournalError, match="rules") as said, journal.writing() as connection:
        connection.exec_driver_sql("INSERT INTO settings VALUES (?, ?, ?, ?)", ("", "", "hunter2", "x"))
    assert "hunter2" not in str(said.value)


def test_a_user_with_the_schema_and_nothing_else_can_work(path, admin, postgres_server, clock: HandClock) -> None:
    secret = postgres_server.make_role("journal_only")
    name = admin.info.dbname
    with pytest.raises(JournalError, match="may not"):
        Journal.open(postgres_server.dsn(name, user="journal_only", password=secret), clock=clock)
    admin.execute("CREATE SCHEMA journal AUTHORIZATION journal_only")
    with Journal.open(postgres_server.dsn(name, user="journal_only", password=secret), clock=clock) as journal:
        journal.inbox.accept([delivery(b"1")])
        assert journal.compact()
        with journal.leases.acquire(NO_FILE, owner="test"):
            assert journal.subjects.dirty_count() == 1


def test_looking_makes_nothing(path, admin, clock: HandClock) -> None:
    assert not Journal.exists(path)
    assert admin.execute("SELECT to_regnamespace('journal')").fetchone() == (None,)
    Journal.open(path, clock=clock).close()
    assert Journal.exists(path)


def test_the_character_that_postgresql_has_not_stops_nothing(journal: Journal) -> None:
    journal.subjects.mark([booking()], Source.USER)
    (claim,) = journal.subjects.claim(1, run_id="r")
    journal.subjects.failed(claim, error_code="X", message="a\0b", retry_at=None, quarantine=False, run_id="r")
    (row,) = journal.subjects.rows()
    assert row.error_message == "a\N{REPLACEMENT CHARACTER}b"


def test_what_is_due_is_looked_up_connection_by_connection_by_whatever_plan_was_made_when_there_was_little(
    journal: Journal,
) -> None:
    journal.subjects.mark([booking()], Source.SCHEDULE)
    with journal.reading() as connection:
        connection.exec_driver_sql("SET plan_cache_mode TO force_generic_plan")
        plan = connection.exec_driver_sql(f"EXPLAIN {sql.DUE}", ("9999", '["booking"]')).scalars().all()
    assert not [line for line in plan if "Join" in line]
    assert [line for line in plan if "Index Cond: (connection = owing.name)" in line]


# -- schema ----------------------------------------------------------------------------------------------------------


def test_migrated_tables_have_the_columns_of_the_models(journal: Journal) -> None:
    with journal.reading() as connection:
        there = inspect(connection)
        assert set(there.get_table_names(schema="journal")) == set(models.metadata.tables)
        for table in models.metadata.tables.values():
            found = {column["name"]: column for column in there.get_columns(table.name, schema="journal")}
            assert set(found) == {column.name for column in table.columns}
            for column in table.columns:
                wanted = column.type.compile(dialect=connection.dialect)
                assert found[column.name]["type"].compile(dialect=connection.dialect) == wanted, (
                    table.name,
                    column.name,
                )
                assert found[column.name]["nullable"] == column.nullable, (table.name, column.name)
            keys = there.get_pk_constraint(table.name, schema="journal")["constrained_columns"]
            assert set(keys) == {column.name for column in table.primary_key}
            checks = {check["name"] for check in there.get_check_constraints(table.name, schema="journal")}
            assert checks == {one.name for one in table.constraints if type(one).__name__ == "CheckConstraint"}
            indexes = {index["name"] for index in there.get_indexes(table.name, schema="journal")}
            assert indexes >= {index.name for index in table.indexes}


def test_of_two_processes_that_make_the_journal_at_once_one_waits_and_finds_it_made(
    path, admin, clock: HandClock
) -> None:
    made: list[Journal] = []
    admin.execute("SELECT pg_advisory_lock(%s, %s)", [postgres._OURS, postgres._WRITERS])
    threads = [threading.Thread(target=lambda: made.append(Journal.open(path, clock=clock))) for _ in range(2)]
    for thread in threads:
        thread.start()
    waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND database = %s::oid"
    oid = admin.execute("SELECT oid FROM pg_database WHERE datname = current_database()").fetchone()[0]
    until(lambda: admin.execute(waiting, [oid]).fetchone() == (2,), 5, "both wait")
    admin.execute("SELECT pg_advisory_unlock_all()")
    for thread in threads:
        thread.join(10)
    assert len(made) == 2
    for journal in made:
        journal.close()


# -- the lease -------------------------------------------------------------------------------------------------------


def test_an_owner_whose_session_was_killed_is_stopped_by_the_next_owner_and_not_before(
    journal: Journal, path, admin, clock: HandClock
) -> None:
    journal.subjects.mark(bookings(3), Source.SCHEDULE)
    with journal.leases.acquire(NO_FILE, owner="first") as lease:
        first, second, third = journal.subjects.claim(3, run_id="r")
        admin.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_locks WHERE locktype = 'advisory' AND objid = %s",
            [postgres._LEASE],
        )
        journal.subjects.landed([first], run_id="r")  # nobody has taken over
        with (
            Journal.open(path, clock=clock) as other,
            other.leases.acquire(NO_FILE, owner="second") as next_,
        ):
            assert next_.fence == lease.fence + 1
            with pytest.raises(LeaseHeld, match="taken over"):
                journal.subjects.landed([second], run_id="r")
            with pytest.raises(LeaseHeld):
                journal.subjects.failed(third, error_code="X", message="", retry_at=None, quarantine=True, run_id="r")
            with pytest.raises(LeaseHeld):
                journal.subjects.forget([third.subject])
            with pytest.raises(LeaseHeld):
                journal.subjects.claim(1, run_id="r")
            assert other.subjects.dirty_count() == 2
            journal.inbox.accept([delivery(b"a receiver needs no lease")])
            lease.release()
            assert other.leases.last().released_at is None
    with journal.leases.acquire(NO_FILE, owner="again"):
        claims = journal.subjects.claim(3, run_id="r")
        journal.subjects.landed(claims, run_id="r")


def test_a_killed_owner_leaves_the_lease_at_once(journal: Journal, path, clock: HandClock) -> None:
    owner = start(OWNER, path)
    try:
        assert owner.stdout.readline() == "mine\n"
        with pytest.raises(LeaseHeld, match=f"pid {owner.pid}"):
            journal.leases.acquire(NO_FILE, owner="y")
    finally:
        kill(owner)
    until = time.monotonic() + 5
    while True:
        try:
            journal.leases.acquire(NO_FILE, owner="y").release()
        except LeaseHeld:
            assert time.monotonic() < until
            time.sleep(0.02)
        else:
            return


# -- the programs ----------------------------------------------------------------------------------------------------


class Shared(Copy):
    """A project whose journal is on a server."""

    def __init__(self, directory, sandbox, journal) -> None:
        super().__init__(directory, sandbox, journal=journal)
        self._address = journal

    def journal(self, sql, *parameters):
        with psycopg.connect(self._address, options="-c search_path=journal", autocommit=True) as session:
            there = session.execute("SELECT to_regclass('endpoints')").fetchone() != (None,)
            return session.execute(sql, parameters).fetchall() if there else []

    def stored(self) -> Counter[str]:
        return Counter(canonical(bytes(body)) for (body,) in self.journal("SELECT body FROM deliveries"))


@pytest.mark.deep(15)
def test_what_one_process_receives_another_lands_and_when_that_is_killed_a_third_goes_on(
    tmp_path, postgres_database
) -> None:
    chance = random.Random(4)
    with Sandbox(tmp_path / "sandbox", bookings=60, products=2, days=15, more=["--frozen"]) as sandbox:
        copy = Shared(tmp_path / "copy", sandbox, postgres_database)
        with copy.serve("--only", "receiver") as receiver, copy.serve("--only", "worker") as first:
            copy.ready(receiver)
            copy.first_landing()
            with copy.serve("--only", "worker") as second:
                until(lambda: f"pid {first.pid} on" in second.said(), 20, second.said)
                copy.secret()
                sandbox.change(chance, 10)
                until(lambda: sandbox.deliveries()["idle"], 20, "delivered")
                copy.until_clean(within=60)
                assert first.code is second.code is None

                first.kill()
                sandbox.change(chance, 10)
                until(lambda: sandbox.deliveries()["idle"], 20, "delivered")
                took_over = "SELECT count(*) FROM runs WHERE status = 'killed'"
                until(lambda: copy.number(took_over) == 1, 20, second.said)
                copy.equal(within=60)

                acknowledged = sandbox.acknowledged()
                assert sum(acknowledged.values()) >= 10
                assert acknowledged - copy.stored() == Counter()
                for command in (
                    ["status"],
                    ["runs"],
                    ["quarantine"],
                    ["doctor", "--offline"],
                ):
                    code, said = copy.run(*command)
                    assert code == 0, said
                code, said = copy.run("db", "backup", "saved")
                assert (code, "pg_dump" in said) == (2, True), said
                code, said = copy.run("sync")
                assert (code, "works on this project" in said) == (6, True), said
                assert second.terminate()[0] == receiver.terminate()[0] == 143
        assert not list(copy.directory.glob("*journal*"))
        for command in (["db", "migrate", "--check"], ["sync"]):
            code, said = copy.run(*command)
            assert code == 0, said
        assert "Traceback" not in copy.log.read_text()


@pytest.mark.deep(8)
def test_a_server_that_goes_and_comes_back_costs_the_programs_nothing_but_time(
    tmp_path, postgres_server, postgres_database
) -> None:
    chance = random.Random(5)
    with Sandbox(tmp_path / "sandbox", bookings=60, products=2, days=15, more=["--frozen"]) as sandbox:
        copy = Shared(tmp_path / "copy", sandbox, postgres_database)
        with copy.serve() as program:
            copy.ready(program)
            copy.first_landing()
            copy.secret()
            sandbox.change(chance, 3)
            postgres_server.stop(immediately=True)
            try:
                sandbox.change(chance, 5)
                until(lambda: 503 in _statuses(sandbox), 20, "refused while nothing can be stored")
                # What was found out is told for a second.
                until(lambda: not copy.is_ready(), 10, "not ready")
            finally:
                postgres_server.start()
            until(copy.is_ready, 20, program.said)
            until(lambda: sandbox.deliveries()["idle"], 30, "delivered")
            copy.equal(within=60)
            assert program.code is None
            assert sandbox.acknowledged() - copy.stored() == Counter()
            assert program.terminate()[0] == 143
        assert "Traceback" not in copy.log.read_text()


def _statuses(sandbox: Sandbox) -> set[int]:
    return {attempt["status"] for each in sandbox.deliveries()["deliveries"] for attempt in each["attempts"]}
