"""The program with its warehouse in PostgreSQL: every command, as a role with a password and no more rights than it needs."""

import json

import psycopg
import pytest
from tests.cli.conftest import Program
from tests.cli.test_reading import READING

import octo_sync


@pytest.fixture(scope="module")
def server(postgres_server):
    """A database where `keeper` may make schemas and do nothing else; (address, its environment)."""
    name = postgres_server.make()
    secret = postgres_server.make_role("keeper_cli")
    postgres_server.execute(f'revoke all on database "{name}" from public')
    postgres_server.execute(f'grant connect, create on database "{name}" to keeper_cli')
    yield postgres_server.dsn(name, user="keeper_cli"), {"PGPASSWORD": secret}, name
    postgres_server.drop(name)
    postgres_server.execute("drop role keeper_cli")


@pytest.fixture(scope="module")
def program(_synced, server, tmp_path_factory):
    """A project that was synced once into the database."""
    address, environment, _ = server
    directory = tmp_path_factory.mktemp("postgres")
    (directory / "pipelines").mkdir()
    text = (_synced / "pipelines" / "shop.toml").read_text()
    (directory / "pipelines" / "shop.toml").write_text(f'destination = "{address}"\n{text}')
    made = Program(directory)

    def run(*words, **more):
        return made(*words, environment=environment, **more)

    run.directory, run.first = directory, run("sync")
    return run


def test_a_sync_fills_the_database_and_leaves_no_warehouse_file(program):
    assert program.first.returncode == 0, program.first.stderr
    assert "published" in program.first.stdout + program.first.stderr
    left = {p.name for p in program.directory.rglob("*") if p.is_file() and "journal" not in p.name}
    assert left == {"shop.toml"}


@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_json_is_one_document_and_nothing_else(program, words):
    done = program(*words, "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["schema_version"] == 1


@pytest.mark.parametrize(
    "words", [["status"], ["tables"], ["tables", "fct_bookings"], ["publish"], ["sync"], ["verify"]]
)
def test_a_person_reads_an_answer_without_a_secret(program, server, words):
    done = program(*words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert server[1]["PGPASSWORD"] not in done.stdout + done.stderr
    assert "keeper_cli" not in done.stdout + done.stderr


def test_the_copy_equals_the_service_and_the_one_in_duckdb(program, looked):
    assert program("verify", "--live").returncode == 0
    there = json.loads(program("digest", "--json").stdout)["tables"]
    assert there == looked.json("digest")["tables"]


def test_a_query_cannot_write_and_ends_in_time(program):
    for sql in (
        "delete from core.bookings",
        "select 1; commit; drop table core.bookings",
        "with gone as (delete from core.bookings returning 1) select * from gone",
        "set transaction read write",
        "select set_config('transaction_read_only', 'off', false)",
    ):
        done = program("sql", sql)
        assert done.returncode != 0, sql
        assert "octo-sync" in done.stderr
    slow = program("sql", "--timeout", "0.3", "select count(*) from generate_series(1, 900000000)")
    assert slow.returncode != 0
    assert "stopped after" in slow.stderr
    assert program("sql", "select count(*) from core.bookings").returncode == 0


def test_a_wrong_password_and_a_server_that_is_away_are_told_in_one_sentence(program, server):
    name = server[2]
    bare = Program(program.directory)
    refused = bare("status", environment={"PGPASSWORD": "tell-tale"})
    assert refused.returncode == 1
    assert "tell-tale" not in refused.stdout + refused.stderr
    assert f"{name} at 127.0.0.1" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_doctor_looks_at_the_server(program):
    assert "PostgreSQL 18" in program("doctor", "--offline").stdout
    refused = Program(program.directory)("doctor", "--offline", environment={"PGPASSWORD": "tell-tale"})
    assert refused.returncode != 0
    assert "password" in refused.stdout
    assert "tell-tale" not in refused.stdout + refused.stderr


# -- as a library --------------------------------------------------------------------------------------------------------


@pytest.fixture
def copy(program, postgres_server, server):
    with octo_sync.open(postgres_server.dsn(server[2])) as opened:
        yield opened


def test_a_notebook_reads_frames_with_the_types_of_the_columns(copy):
    frame = copy.table("fct_bookings").df()
    assert len(frame) == copy.sql("select count(*) from fct_bookings").rows()[0][0] > 0
    arrow = copy.table("core.bookings").arrow()
    types = {field.name: str(field.type) for field in arrow.schema}
    assert types["utc_created_at"] == "timestamp[us, tz=UTC]"
    assert types["local_start_at"] == "timestamp[us]"
    assert types["retail_amount"] == "decimal128(18, 4)"
    assert types["is_test"] == "bool"
    assert (
        copy.sql("select sum(retail_amount) as s, sum(retail_minor) as n from core.bookings").arrow().schema.types[1]
        == "int64"
    )
    assert [row[0] for row in copy.sql("select $x::int + $y::int as n", {"x": 1, "y": 2}).rows()] == [3]


def test_large_results_come_in_batches_while_others_are_asked(copy):
    batches = copy.sql("select n, n::text as t from generate_series(1, 120000) n").batches(50_000)
    first = next(batches)
    assert first.num_rows == 50_000
    assert copy.sql("select 1").rows() == [(1,)]
    assert first.num_rows + sum(b.num_rows for b in batches) == 120_000


def test_an_empty_result_has_its_columns(copy):
    assert copy.sql("select * from core.bookings where false").arrow().num_columns > 20


def test_every_table_and_column_says_what_it_means(copy):
    tables = copy.tables()
    assert {t.schema for t in tables} == {"marts", "core", "ops"}
    assert [t.full_name for t in tables if not t.description] == []
    assert [f"{t}.{c.name}" for t in tables if t.schema != "marts" for c in t.columns if not c.description] == []


# -- publishing ----------------------------------------------------------------------------------------------------------


def test_grants_default_rights_and_comments_survive_a_publish(program, server, postgres_server):
    name = server[2]
    postgres_server.execute("create role dashboards login")
    run = lambda sql: postgres_server.execute(sql, database=name)  # noqa: E731
    run("grant connect on database " + f'"{name}" to dashboards')
    run("grant usage on schema marts to dashboards")
    run("grant select on marts.fct_bookings to dashboards with grant option")
    run("alter default privileges for role keeper_cli in schema marts grant select on tables to dashboards")
    (program.directory / "warehouse" / "custom").mkdir(parents=True)
    (program.directory / "warehouse" / "custom" / "mine.sql").write_text("-- name: mine\n-- grain: x\nselect 1 as x")
    for _ in range(2):
        assert program("publish").returncode == 0
        with psycopg.connect(postgres_server.dsn(name, user="dashboards")) as reader:
            assert reader.execute("select count(*) from marts.fct_bookings").fetchone()[0] > 0
            assert reader.execute("select x from marts.mine").fetchall() == [(1,)]
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                reader.execute("select 1 from private.booking_contacts")
    assert run("select has_table_privilege('dashboards', 'marts.fct_guests', 'select')") == [(False,)]
    assert run("select obj_description('marts.fct_bookings'::regclass) is not null") == [(True,)]
    (program.directory / "warehouse" / "custom" / "mine.sql").unlink()
    assert program("publish").returncode == 0
    run("alter default privileges for role keeper_cli in schema marts revoke select on tables from dashboards")
    run("drop owned by dashboards")
    run("drop role dashboards")


def test_a_reader_in_the_middle_of_its_work_blocks_no_publish_and_keeps_what_it_reads(program, server, postgres_server):
    name = server[2]
    former = "select nspname from pg_namespace where nspname like 'marts_former_%'"
    with psycopg.connect(postgres_server.dsn(name)) as reader:
        before = reader.execute("select count(*) from marts.fct_bookings").fetchone()
        assert program("publish").returncode == 0
        assert postgres_server.execute(former, database=name) != [], "it is still read"
    with psycopg.connect(postgres_server.dsn(name)) as reader:
        assert reader.execute("select count(*) from marts.fct_bookings").fetchone() == before
    assert program("publish").returncode == 0
    assert postgres_server.execute(former, database=name) == []


def test_when_a_check_finds_something_the_former_marts_stay(program, server, postgres_server):
    name = server[2]
    oid = postgres_server.execute("select 'marts.fct_bookings'::regclass::oid", database=name)
    checks = program.directory / "warehouse" / "checks"
    checks.mkdir(parents=True, exist_ok=True)
    (checks / "never.sql").write_text("-- name: never\nselect 1 as wrong")
    assert program("publish").returncode == 3
    (checks / "never.sql").unlink()
    assert postgres_server.execute("select 'marts.fct_bookings'::regclass::oid", database=name) == oid
    assert program("publish").returncode == 0
    assert postgres_server.execute("select 'marts.fct_bookings'::regclass::oid", database=name) != oid
