"""The program with its warehouse in PostgreSQL: every command, as a role with a password and no more rights than it needs."""

import csv
import json
import shutil
import signal
import time
from decimal import Decimal
from pathlib import Path

import psycopg
import pyarrow.parquet as pq
import pytest
from tests.cli.conftest import Program
from tests.cli.test_reading import READING
from tests.faults.serving import Copy, Sandbox, until
from tests.postgres import Server

import octo_sync
from octo_sync.destinations.migrations import SCHEMA_VERSION
from octo_sync.flows import ask

SEEN = {"first_seen_at_utc", "last_seen_at_utc", "verified_at_utc", "event_at_utc", "minutes_behind"}
SEEN |= {"oldest_verified_at", "last_verified_at"}
"""Columns that say when a copy saw something, which no two copies do at the same moment."""


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
def _both(_synced, server, tmp_path_factory):
    """Two new projects with their first sync, into the database and into a file.

    A day begins somewhere with each half hour, and a copy reaches from today: both are synced within one.
    """
    until(lambda: time.time() % 1800 < 1770, 60, "the next half hour")
    made = []
    for kind, more in (("postgres", f'destination = "{server[0]}"\n'), ("file", "")):
        directory = tmp_path_factory.mktemp(kind)
        shutil.copytree(_synced / "pipelines", directory / "pipelines")
        pipeline = directory / "pipelines" / "shop.toml"
        pipeline.write_text(more + pipeline.read_text())
        made.append((Program(directory), Program(directory)("sync", environment=server[1])))
    return made


@pytest.fixture(scope="module")
def program(_both, server):
    """A project that was synced once into the database."""
    made, first = _both[0]

    def run(*words, **more):
        return made(*words, environment=server[1], **more)

    run.directory, run.first = made.directory, first
    return run


@pytest.fixture(scope="module")
def looked(_both):
    """A project that was synced once into a file."""
    return _both[1][0]


def test_a_sync_fills_the_database_and_leaves_no_warehouse_file(program):
    assert program.first.returncode == 0, program.first.stderr
    assert "published" in program.first.stdout + program.first.stderr
    left = {p.name for p in program.directory.rglob("*") if p.is_file() and "journal" not in p.name}
    assert left == {"shop.toml"}


@pytest.mark.deep(0.3, everyday=["status", "sql select 1 as one"])
@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_json_is_one_document_and_nothing_else(program, words):
    done = program(*words, "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["schema_version"] == 1


@pytest.mark.deep(0.3, everyday=1)
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
    there = json.loads(program("tables", "--digests", "--json").stdout)["tables"]
    assert there == looked.json("tables", "--digests")["tables"]


def without_seen(rows):
    return sorted((sorted((k, v) for k, v in row.items() if k not in SEEN) for row in rows), key=str)


@pytest.mark.deep(0.5, everyday=["weak_departures", "net_owed"])
@pytest.mark.parametrize("question", ask.questions(Path("nowhere")), ids=lambda q: q.name)
def test_every_question_has_the_answer_that_a_copy_in_duckdb_gives(program, looked, question):
    given = [f"--param={name}=RS-000001" for name in question.required]

    done = program("ask", question.number, *given, "--limit", "0", "--json")
    there = looked.json("ask", question.number, *given, "--limit", "0")

    assert done.returncode == 0, done.stderr
    here = json.loads(done.stdout)
    assert (here["name"], here["columns"]) == (question.name, there["columns"])
    assert without_seen(here["rows"]) == without_seen(there["rows"])


@pytest.mark.deep(2)
def test_most_questions_have_rows_to_compare(looked):
    required = {q.number: [f"--param={name}=RS-000001" for name in q.required] for q in ask.questions(Path("nowhere"))}
    answered = {n for n, given in required.items() if looked.json("ask", n, *given)["rows"]}
    assert len(answered) >= 15, answered


@pytest.mark.deep(3)
@pytest.mark.parametrize(("name", "columns"), [("fct_bookings", 40), ("core.availability", 20)])
def test_a_table_and_a_mart_are_exported_as_csv_and_parquet_as_from_duckdb(program, looked, tmp_path, name, columns):
    for form in ("csv", "parquet"):
        for side, copy in (("here", program), ("there", looked)):
            done = copy("export", name, "--to", tmp_path / f"{side}.{form}")
            assert done.returncode == 0, done.stderr

    parquet = [pq.read_table(tmp_path / f"{side}.parquet") for side in ("here", "there")]
    assert parquet[0].num_rows > 50
    assert len(parquet[0].schema) >= columns
    assert parquet[0].schema.names == parquet[1].schema.names
    here, there = (without_seen(table.to_pylist()) for table in parquet)
    assert here == there
    here, there = (
        without_seen(csv.DictReader((tmp_path / f"{side}.csv").read_text(encoding="utf-8").splitlines()))
        for side in ("here", "there")
    )
    assert len(here) == parquet[0].num_rows
    assert here == there


def test_versions_are_told_as_they_are_of_a_file(program, server, postgres_server):
    known = {"program": SCHEMA_VERSION, "file": SCHEMA_VERSION}
    versions = json.loads(program("db", "migrate", "--check", "--json").stdout)
    assert versions["schema"] == known
    assert versions["journal"]["file"] == versions["journal"]["program"] >= 1
    shown = program("db", "migrate", "--check").stdout
    assert "warehouse schema" in shown
    assert server[1]["PGPASSWORD"] not in shown
    with psycopg.connect(postgres_server.dsn(server[2]), autocommit=True) as db:
        db.execute("insert into landing.schema_migrations values (999, now(), '99.0')")
        try:
            newer = program("db", "migrate", "--check", "--json")
        finally:
            db.execute("delete from landing.schema_migrations where version = 999")
    assert newer.returncode == 3
    assert json.loads(newer.stdout)["schema"] == {"program": SCHEMA_VERSION, "file": 999}


@pytest.mark.deep(2)
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


@pytest.mark.deep(5)
def test_a_table_gives_the_same_types_on_both_engines(copy, looked):
    with octo_sync.open(looked.directory / "octo.read.duckdb") as other:
        for exact in (False, True):
            kinds = set()
            for table in copy.tables():
                here, there = (c.table(table.full_name).df(exact=exact).dtypes for c in (copy, other))
                assert here.to_dict() == there.to_dict(), (table.full_name, exact)
                kinds |= set(map(str, here))
            amount = "decimal128(38, 4)[pyarrow]" if exact else "float64"
            assert kinds >= {"Int64", "boolean", "datetime64[us, UTC]", "datetime64[us]", amount}
            assert not kinds & {"Int32", "Int16", "int64", "bool", "object"}
        here, there = (
            c.table("fct_bookings").df().sort_values("booking_key", ignore_index=True) for c in (copy, other)
        )
        columns = [
            "booking_key",
            "lead_days",
            "is_sold",
            "travel_date",
            "retail_amount",
            "local_start_at",
            "utc_start_at",
        ]
        assert here[columns].equals(there[columns])


def test_numbers_whose_decimals_nobody_announces_are_never_cut(copy):
    late = "select case when n > 3 then 1.5::numeric when n > {} then 1::numeric end as a from generate_series(1, 5) n"

    amounts = [v for b in copy.sql(late.format(3)).batches(2) for v in b.column(0).to_pylist()]
    assert amounts == [None, None, None, Decimal("1.5000"), Decimal("1.5000")]
    with pytest.raises(octo_sync.QueryError, match="those of the first rows had none"):
        copy.sql(late.format(0)).batches(2).read_all()
    assert copy.sql("select sum(retail_amount) as a from fct_bookings where false").arrow().schema.types[0].scale == 4
    assert copy.sql("select array[1, 2] as a").arrow().column(0).to_pylist() == [[1, 2]]


def test_status_and_doctor_call_the_private_schema_what_it_is(program, looked):
    for words in (["status"], ["doctor", "--offline"]):
        assert "private schema" in program(*words).stdout
        assert "private file" in looked(*words).stdout


@pytest.mark.deep(2)
def test_before_the_first_publish_a_question_says_so(looked, postgres_server, tmp_path):
    name = postgres_server.make()
    (tmp_path / "pipelines").mkdir()
    text = (looked.directory / "pipelines" / "shop.toml").read_text()
    (tmp_path / "pipelines" / "shop.toml").write_text(f'destination = "{postgres_server.dsn(name)}"\n{text}')
    program = Program(tmp_path)
    program.ok("sync", "--no-publish", "--only", "products")

    for words in (["ask", "2"], ["sql", "select 1 from fct_bookings"], ["sql", "select count(*) from core.products"]):
        done = program(*words)
        assert done.returncode == 1
        assert "Nothing was published in" in done.stderr
        assert "octo-sync publish" in done.stderr
    assert "none yet" in program("status").stdout
    assert "Nothing was published in" in program("tables").stderr
    program.ok("publish")
    wrong = program("sql", "select 1 from core.nothing")
    assert wrong.returncode == 2
    assert "does not exist" in wrong.stderr
    postgres_server.drop(name)


def test_init_takes_an_address(tmp_path):
    made = Program(tmp_path)
    words = ["init", "--url", "https://api.example.com/octo/v1", "--token-env", "ACME_TOKEN", "--no-test"]

    assert made(*words, "--destination", "postgresql://octo@db.example:5432/analytics").returncode == 0
    (file,) = (tmp_path / "pipelines").glob("*.toml")
    assert 'destination = "postgresql://octo@db.example:5432/analytics"' in file.read_text()
    refused = made(*words, "--yes", "--destination", "postgresql://octo:tell-tale@db.example/analytics")
    assert refused.returncode == 2
    assert "without a password" in refused.stderr
    assert "tell-tale" not in refused.stdout + refused.stderr
    assert "PostgreSQL address" in made("init", "--help").stdout


# -- publishing ----------------------------------------------------------------------------------------------------------


@pytest.mark.deep(2)
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


@pytest.mark.deep(2)
def test_marts_that_are_defined_anew_wait_for_no_reader_of_the_former_ones(program, server, postgres_server):
    name, mine = server[2], program.directory / "warehouse" / "custom" / "mine.sql"
    former = "select nspname from pg_namespace where nspname like 'marts_former_%'"
    mine.parent.mkdir(parents=True, exist_ok=True)
    mine.write_text("-- name: mine\n-- grain: x\nselect 1 as x")
    with psycopg.connect(postgres_server.dsn(name)) as reader:
        before = reader.execute("select count(*) from marts.fct_bookings").fetchone()
        assert program("publish").returncode == 0
        assert postgres_server.execute(former, database=name) != [], "it is still read"
    with psycopg.connect(postgres_server.dsn(name)) as reader:
        assert reader.execute("select count(*) from marts.fct_bookings").fetchone() == before
    assert program("publish").returncode == 0
    assert postgres_server.execute(former, database=name) == []
    mine.unlink()


@pytest.mark.deep(2)
def test_status_says_when_readers_were_last_given_something_new(program):
    checks = program.directory / "warehouse" / "checks"
    checks.mkdir(parents=True, exist_ok=True)
    published = lambda: json.loads(program("status", "--json").stdout)["read_copy"]["published_at"]  # noqa: E731
    before = published()
    (checks / "never.sql").write_text("-- name: never\nselect 1 as wrong")
    assert program("publish").returncode == 3
    (checks / "never.sql").unlink()
    assert published() == before
    assert program("publish").returncode == 0
    assert published() > before


# -- serving -------------------------------------------------------------------------------------------------------------


@pytest.mark.deep(16)
def test_a_served_project_acknowledges_while_the_warehouse_is_away_and_lands_it_when_it_is_back(tmp_path):
    server = Server()
    try:
        database = server.make("octo")
        environment = {"OCTO_SYNC_DESTINATION": server.dsn(database)}
        with Sandbox(tmp_path / "sandbox", bookings=30, products=2, days=10) as sandbox:
            copy = Copy(tmp_path / "project", sandbox)
            with copy.serve(env=environment) as program:
                copy.ready(program)
                copy.first_landing()
                secret = copy.secret()
            server.stop()
            booking = next(b["uuid"] for b in sandbox.state()["bookings"] if b["token"] == "all")
            with copy.serve(env=environment) as program:
                copy.ready(program)
                until(lambda: "cannot be reached" in program.said(), 10, program.said)
                sandbox.control("POST", f"/admin/bookings/{booking}", {"supplier_reference": "WHILE-AWAY"})
                body = json.dumps({"notificationType": "BOOKING_UPDATE", "data": {"uuid": booking}})
                # For longer than the first attempts to open the warehouse take all together.
                ends, slowest = time.monotonic() + 4, 0.0
                while (began := time.monotonic()) < ends:
                    assert copy.deliver(body, secret)[0] == 200
                    slowest = max(slowest, time.monotonic() - began)
                assert slowest < 20, "nobody who delivers waits for the warehouse"
                assert copy.owed() > 0
                server.start()
                landed = "select supplier_reference from core.bookings where booking_uuid = %s"
                until(lambda: server.execute(landed, booking, database=database) == [("WHILE-AWAY",)], 60, program.said)
                assert program.said().count("cannot be reached") == 1, "it is said once"
                code, _ = program.terminate()
            assert code == 128 + signal.SIGTERM
    finally:
        server.remove()


@pytest.mark.deep(5)
def test_who_is_stopped_while_the_warehouse_is_away_stops(tmp_path):
    server = Server()
    try:
        dsn = server.dsn(server.make("octo"))
        server.stop()
        with Sandbox(tmp_path / "sandbox", bookings=5, products=1, days=3) as sandbox:
            copy = Copy(tmp_path / "project", sandbox)
            with copy.serve(env={"OCTO_SYNC_DESTINATION": dsn}) as program:
                copy.ready(program)
                until(lambda: "cannot be reached" in program.said(), 10, program.said)
                code, _ = program.terminate()
    finally:
        server.remove()
    assert code == 128 + signal.SIGTERM


@pytest.mark.deep(3)
def test_a_ledger_is_compared_with_what_is_on_the_server_and_the_result_is_shown_there(program, looked, server):
    """The ledger is what the DuckDB copy says, but for one booking that it lost and one that it has at another price."""
    from_duckdb = (
        "select booking_uuid as id, retail_amount as gross, currency from fct_bookings where was_sold order by 1"
    )
    rows = [row for row in looked.json("sql", from_duckdb, "--limit", "0")["rows"] if row["gross"]]
    wrong = rows[3] | {"gross": "0.01"}
    lines = ["id,gross,currency", *(f"{r['id']},{r['gross']},{r['currency']}" for r in [wrong, *rows[:3], *rows[5:]])]
    (program.directory / "ledger.csv").write_text("\n".join(lines) + "\n")
    file = program.directory / "pipelines" / "shop.toml"
    before = file.read_text()
    file.write_text(
        before
        + """
[reconcile.ledger]
here = "select * from marts.fct_bookings where was_sold and retail_amount <> 0"
there = { file = "ledger.csv" }
keys = ["booking_uuid=id"]
fields = { retail_amount = "gross", currency = "currency" }
window = "-60d..+60d"
"""
    )
    try:
        done = program("reconcile", "ledger", "--json")
        shown = json.loads(program("sql", "select recon_key, bucket from marts.recon_open order by 2", "--json").stdout)
    finally:
        file.write_text(before)

    assert done.returncode == 3, done.stderr
    counts = json.loads(done.stdout)["reconciliations"][0]["counts"]
    assert {bucket: count for bucket, count in counts.items() if count} == {
        "matched": len(rows) - 2,
        "mismatched": 1,
        "missing_there": 1,
    }
    assert [(row["recon_key"], row["bucket"]) for row in shown["rows"]] == [
        (f"booking_uuid={rows[3]['id']}", "mismatched"),
        (f"booking_uuid={rows[4]['id']}", "missing_there"),
    ]
    assert server[1]["PGPASSWORD"] not in done.stdout + done.stderr
