"""What reads: rows in every format, one document with --json, nothing but the read copy."""

import csv
import dataclasses
import datetime as dt
import io
import json
import os
import re
import socket
import sqlite3
import time
from contextlib import closing

import pytest

from octo_sync.app.machine import SystemClock
from octo_sync.app.places import duckdb_warehouse
from octo_sync.flows.sync.due import THINNED
from octo_sync.journal import Journal, Received
from octo_sync.model import Source, Subject, SubjectKind

READING = [
    ["status"],
    ["doctor", "--offline"],
    ["doctor"],
    ["tables", "--digests"],
    ["tables"],
    ["tables", "bookings"],
    ["runs"],
    ["runs", "last"],
    ["quarantine"],
    ["check"],
    ["config"],
    ["config", "validate"],
    ["sql", "select 1 as one"],
    ["sync", "--dry-run"],
]


@pytest.mark.deep(0.1, everyday=3)
@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_json_is_one_document_and_nothing_else(looked, words):
    done = looked(*words, "--json")

    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["schema_version"] == 1
    assert document["kind"]


@pytest.mark.deep(0.1, everyday=3)
@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_a_pipe_gets_no_escape_bytes(looked, words):
    done = looked(*words)

    assert "\x1b" not in done.stdout + done.stderr
    assert done.stdout or words == ["quarantine"]


@pytest.mark.parametrize("words", [("verify",), ("sync", "--dry-run")])
def test_what_calls_nobody_needs_no_token(project, words):
    file = project.directory / "pipelines" / "shop.toml"
    file.write_text(file.read_text().replace(', default = "sandbox-token-all"', ""))

    assert project(*words).returncode == 0
    refused = project(*({"verify": ("verify", "--live"), "sync": ("sync",)}[words[0]]))
    assert refused.returncode == 2
    assert "the environment variable SHOP_TOKEN is not set" in refused.stderr


def test_status_says_how_fresh_and_complete_the_copy_is(looked):
    (shop,) = looked.json("status")["connections"]

    assert shop["complete"]
    assert shop["backlog"] == 0
    assert shop["age_seconds"] < 3600
    assert {k["kind"] for k in shop["kinds"]} >= {"supplier", "products", "availability", "bookings"}
    assert all(k["verified"] == k["subjects"] for k in shop["kinds"])


def test_status_says_that_webhooks_have_gone_quiet_and_that_looks_were_left_out(project):
    now, minute = dt.datetime.now(dt.UTC), dt.timedelta(minutes=1)
    hook = {"connection": "shop", "endpoint": "e" * 32, "body": b"{}"}

    def receive(journal, ages):
        journal.inbox.accept([Received(received_at=now - minute * age, **hook) for age in ages])

    with Journal.open(project.directory / "octo.journal.sqlite", clock=SystemClock()) as journal:
        journal.endpoints.add("e" * 32, connection="shop", secret_hash="0" * 64)
        journal.endpoints.activate("e" * 32, "subscription")
        receive(journal, range(9 * 60 + 30, 29 * 60, 60))
        journal.settings.set(THINNED, (now - 30 * minute).isoformat(), connection="shop")
        quiet = project.ok("status")
        receive(journal, [1])
        journal.settings.set(THINNED, None, connection="shop")
        told = project.ok("status")

    (line,) = re.findall(r"^Webhooks .*$", quiet, re.MULTILINE)
    assert " · silent for 9 h, longer than usual: octo-sync subscriptions list" in line
    assert re.search(r" · call budget too short for every confirming look \(3[01] min ago\)$", line)
    (line,) = re.findall(r"^Webhooks .*$", told, re.MULTILINE)
    assert re.search(r"deliveries in 24 h, last \d+ (s|min) ago$", line), "neither any more"


def test_status_says_that_there_is_no_subscription_whether_it_was_refused_or_lost(project):
    file = project.directory / "pipelines" / "shop.toml"
    file.write_text(file.read_text() + '\n[webhooks]\nurl = "https://hooks.example.com"\n')

    def lacks():
        return "no subscription at the service; octo-sync subscriptions ensure says why" in project.ok("status")

    with Journal(project.directory / "octo.journal.sqlite", clock=SystemClock()) as journal:
        never = lacks()
        journal.subjects.mark([Subject("shop", SubjectKind.SUBSCRIPTION)], Source.SCHEDULE)
        journal.subjects.landed(journal.subjects.claim(1, run_id="r"), run_id="r")
        refused = lacks()
        journal.endpoints.add("e" * 32, connection="shop", secret_hash="0" * 64)
        journal.endpoints.activate("e" * 32, "subscription")
        there = lacks()
        journal.endpoints.subscription_gone("shop", "subscription")
        lost = lacks()
    assert (never, refused, there, lost) == (False, True, False, True)


def test_a_run_without_an_end_is_going_on_or_was_cut_off(project):
    with closing(sqlite3.connect(project.directory / "octo.journal.sqlite")) as journal, journal:
        journal.execute("update runs set status = 'running', command = 'serve', ended_at = null")
        journal.execute("update leases set released_at = null, owner = 'serve, user me', pid = ?", [os.getpid()])
    going_on = project.ok("status")
    with closing(sqlite3.connect(project.directory / "octo.journal.sqlite")) as journal, journal:
        journal.execute("update runs set command = 'pull'")
    inside = project.ok("status")
    with closing(sqlite3.connect(project.directory / "octo.journal.sqlite")) as journal, journal:
        journal.execute("update leases set released_at = acquired_at")
    left = project("status")
    gone = left.stdout

    assert re.search(rf"^Running +serve, user me \(pid {os.getpid()} ", going_on, re.MULTILINE)
    assert "Last run" not in going_on, "the line above says it"
    assert re.search(r"^Last run +pull, running since \d+ (s|min) ", inside, re.MULTILINE)
    assert re.search(r"^Last run +pull cut off, begun \d+ (s|min) ago ", gone, re.MULTILINE)
    assert "Running" not in gone
    assert left.returncode == 3


def test_a_serve_that_was_killed_is_missed_though_it_had_pulled_well(project):
    with Journal(project.directory / "octo.journal.sqlite", clock=SystemClock()) as journal:
        journal.runs.start("serve", "shop", run_id="served", fence=1)
        journal.runs.start("pull", "shop", run_id="pulled", fence=1)
        journal.runs.end("pulled", "ok")
    left = project("status")

    assert re.search(r"^Last run +pull ok ", left.stdout, re.MULTILINE)
    assert re.search(r"^Earlier +serve cut off, begun .* \(run served\)$", left.stdout, re.MULTILINE)
    assert left.returncode == 3


def test_every_worker_is_named_also_one_that_has_nothing_to_do(project):
    rows = [
        ("worker 7", os.getpid()),
        ("worker 8", os.getppid()),
        ("worker 9", 999_999_999),
        ("connection b", os.getpid()),
    ]
    with closing(sqlite3.connect(project.directory / "octo.journal.sqlite")) as journal, journal:
        journal.executemany(
            "insert into leases (name, fence, owner, pid, host, acquired_at) values (?, 0, 'serve', ?, ?, '2026-11-29')",
            [(*row, socket.gethostname()) for row in rows],
        )
    told = project.ok("status")

    assert re.findall(r"^Worker +pid (\d+) on \S+ (.*)$", told, re.MULTILINE) == [
        (str(os.getpid()), "works on b"),
        (str(os.getppid()), "has nothing to do now"),
    ]
    workers = [(one["pid"], one["connections"]) for one in project.json("status")["workers"]]
    assert workers == [(os.getpid(), ["b"]), (os.getppid(), [])]


def test_what_was_verified_while_the_clock_was_ahead_is_as_old_as_it_was_ahead(project):
    with closing(sqlite3.connect(project.directory / "octo.journal.sqlite")) as journal, journal:
        journal.execute("update subjects set landed_at = replace(landed_at, substr(landed_at, 1, 4), '2099')")
    told = project("status", "--fail-if-stale", "26h")
    assert told.returncode == 3, told.stdout


def test_verify_says_that_it_asked_nobody(looked):
    *_, last = looked.ok("verify").splitlines()

    assert last.startswith("Checked the copy only.")
    assert last.endswith("octo-sync verify --live")


@pytest.mark.deep(3)
def test_looking_needs_no_token(project):
    path = project.directory / "pipelines/shop.toml"
    path.write_text(path.read_text().replace(', default = "sandbox-token-all"', ""))

    for words in (
        ["status"],
        ["sql", "select 1"],
        ["tables"],
        ["runs"],
        ["quarantine"],
        ["tables", "--digests"],
        ["check"],
        ["publish"],
        ["webhooks", "list"],
        ["webhooks", "replay", "--since", "1h"],
    ):
        assert project(*words).returncode == 0, words
    shown = project("config", "show", "--origin")
    assert "not set" in shown.stdout
    assert project("config", "validate").returncode == 2
    assert project("sync").returncode == 2


def test_looking_at_an_empty_directory_makes_no_file(fresh):
    before = sorted(fresh.directory.rglob("*"))

    for words in (
        ["status"],
        ["tables"],
        ["runs"],
        ["quarantine"],
        ["config"],
        ["doctor", "--offline"],
        ["sql", "select 1"],
    ):
        fresh(*words)

    assert sorted(fresh.directory.rglob("*")) == before


def test_there_are_no_tables_before_there_is_a_copy(fresh):
    done = fresh("tables", "core.bookings")

    assert (done.returncode, done.stdout) == (1, "")
    assert "does not exist yet" in done.stderr


def test_a_table_that_is_none_gets_a_hint(looked):
    done = looked("tables", "boookings")

    assert done.returncode == 2
    assert 'did you mean "bookings"' in done.stderr


def test_rows_come_in_every_format(looked):
    query = "select 1 as a, 'x|y' as b, null as c, [1, 2] as d, 1.50::decimal(9,2) as e, timestamptz '2026-01-02 03:04Z' as f"

    def ask(form):
        return looked.ok("sql", query, "--format", form)

    assert json.loads(ask("jsonl")) == {
        "a": 1,
        "b": "x|y",
        "c": None,
        "d": [1, 2],
        "e": "1.50",
        "f": "2026-01-02T03:04:00Z",
    }
    assert json.loads(ask("json"))["rows"][0]["e"] == "1.50"
    assert list(csv.reader(io.StringIO(ask("csv"))))[1] == ["1", "x|y", "", "[1, 2]", "1.50", "2026-01-02T03:04:00Z"]
    assert "x\\|y" in ask("md").splitlines()[2]
    assert ask("table").splitlines()[0].split() == ["a", "b", "c", "d", "e", "f"]


def test_people_read_amounts_in_their_currencys_way_and_machines_all_digits(looked):
    query = (
        "select * from (values (1, 'JPY', 8843520::decimal(18,4), 0.2, -1200::decimal(18,4), 450000), "
        "(2, 'EUR', 5009.09, 0.2, 12.3456, 500909), (3, 'KWD', 1.5, 0.2, null, 1500), (4, null, 7, 0.2, 8.5, 7)) "
        "as t (n, currency, retail_amount, share, retail_now, retail_minor) order by n"
    )

    for form, split in (("table", str.split), ("md", lambda line: line.replace("|", " ").split())):
        assert [split(line) for line in looked.ok("sql", query, "--format", form).splitlines()[2:]] == [
            ["1", "JPY", "8,843,520", "0.2", "-1,200", "450000"],
            ["2", "EUR", "5,009.09", "0.2", "12.3456", "500909"],
            ["3", "KWD", "1.500", "0.2", "1500"],
            ["4", "7.0000", "0.2", "8.5000", "7"],
        ]
    ends = {line.index("0.2") for line in looked.ok("sql", query).splitlines()[2:]}
    assert len(ends) == 1, "amounts stand to the right"
    assert [row["retail_amount"] for row in looked.json("sql", query)["rows"]] == [
        "8843520.0000",
        "5009.0900",
        "1.5000",
        "7.0000",
    ]
    assert "8843520.0000" in looked.ok("sql", query, "--format", "csv")


def test_without_a_currency_people_read_as_many_decimals_as_the_most_exact_value_needs(looked):
    query = (
        "select * from (values (1, 48.67::decimal(18,4), 7::decimal(18,4), 1234567::decimal(12,0)), (2, -5009.125, 12000, 8), "
        "(3, null, null, null)) as t (n, price, whole, counted) order by n"
    )

    assert [line.split() for line in looked.ok("sql", query).splitlines()[2:]] == [
        ["1", "48.670", "7", "1234567"],
        ["2", "-5,009.125", "12,000", "8"],
        ["3"],
    ]
    assert looked.json("sql", query)["rows"][0] == {"n": 1, "price": "48.6700", "whole": "7.0000", "counted": "1234567"}
    assert "1,48.6700,7.0000,1234567" in looked.ok("sql", query, "--format", "csv")


def test_a_column_name_that_occurs_twice_keeps_both_values(looked):
    (row,) = looked.json("sql", "select 1 as a, 2 as a")["rows"]

    assert sorted(row.values()) == [1, 2]


@pytest.mark.deep(1)
def test_escape_bytes_in_data_are_neutralised_where_a_person_reads(looked):
    query = "select chr(27) || '[31mred' as x"

    for form in ("table", "md", "json", "jsonl"):
        assert "\x1b" not in looked.ok("sql", query, "--format", form), form
    assert json.loads(looked.ok("sql", query, "--format", "jsonl"))["x"] == "\x1b[31mred"


@pytest.mark.deep(2)
def test_more_rows_than_the_limit_are_cut_and_it_says_so(looked):
    done = looked("sql", "from range(30)", "--limit", "10", "--format", "csv")

    assert len(done.stdout.splitlines()) == 11
    assert "first 10 rows" in done.stderr
    assert len(looked.ok("sql", "from range(20000)", "--limit", "0", "--format", "csv").splitlines()) == 20_001
    assert len(looked.ok("sql", "from range(20000)", "--format", "csv").splitlines()) == 10_001


def test_a_query_comes_as_text_from_a_file_and_from_the_standard_input(looked, tmp_path):
    (tmp_path / "q.sql").write_text("select 42 as x;\n")

    assert "42" in looked.ok("sql", "-f", tmp_path / "q.sql")
    assert "43" in looked.ok("sql", "-", stdin="select 43 as x")
    assert looked("sql", "-f", tmp_path / "none.sql").returncode == 1


def test_a_query_that_takes_too_long_is_stopped(looked):
    done = looked("sql", "select count(*) from range(1000000000) a, range(1000) b", "--timeout", "0.3")

    assert done.returncode == 1
    assert "stopped after 0.3 s" in done.stderr


@pytest.mark.deep(0.2, everyday=5)
@pytest.mark.parametrize(
    "query",
    [
        "select * from read_csv('/etc/passwd')",
        "select * from '/etc/passwd'",
        "select * from glob('/etc/*')",
        "select read_text('/etc/passwd')",
        "attach '/tmp/planted.duckdb' as planted",
        "copy (select 1) to '/tmp/planted.csv'",
        "copy core.bookings from '/etc/passwd'",
        "export database '/tmp/planted'",
        "install httpfs",
        "load httpfs",
        "set enable_external_access = true",
        "pragma database_list",
        "create temp table t (a int)",
        "insert into core.suppliers select * from core.suppliers",
        "delete from core.bookings",
        "drop table core.bookings",
        "use memory",
        "detach octo",
        "attach ':memory:' as other",
        "set variable x = 1",
        "reset memory_limit",
        "pragma memory_limit='100GB'",
        "prepare x as select 1",
        "begin",
        "checkpoint",
        "vacuum",
        "create macro f() as 1",
        "call enable_logging(storage = 'file', storage_path = 'planted')",
        "from enable_logging(storage := 'file', storage_path := 'planted')",
        "from enable_profiling(save_location := 'planted')",
        "from force_checkpoint('octo')",
        "from query('delete from bookings')",
        "from duckdb_secrets()",
        "from sql_auto_complete('sel')",
        "from read_duckdb('octo.duckdb')",
        "from read_blob('/etc/passwd')",
        "from sniff_csv('/etc/passwd')",
        "from parquet_metadata('/etc/passwd')",
        "from 'https://example.com/x.parquet'",
        "select getenv('HOME')",
        "explain analyze delete from bookings",
        "copy (select 1) to '/dev/stdout'",
        "select 1; select 2",
        "",
        "-- nothing",
        "selec 1",
    ],
)
def test_only_one_reading_statement_without_access_to_anything_outside_is_accepted(looked, query):
    done = looked("sql", "--", query or " ")

    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.deep(3, everyday=["select * from range(3000000000) order by hash(range)"])
@pytest.mark.parametrize(
    "query",
    [
        "with recursive t(n) as (select 1 union all select n + 1 from t) select max(n) from t",
        "with recursive t(n) as (select 1 union all select n + 1 from t, range(10)) select count(*) from t",
        "select list(range) from range(10000000000)",
        "select * from range(3000000000) order by hash(range)",
        "select sum(length(repeat('x', 100000000 + range::int))) from range(1000)",
        "select levenshtein(repeat('a', 300000), repeat('b', 300000))",
        "select string_agg(repeat('x', 1000000), '') from range(100000)",
        "select sleep_ms(60000)",
    ],
)
def test_a_bomb_ends_with_a_sentence_and_without_a_file(looked, query):
    before, begun = sorted(looked.directory.rglob("*")), time.monotonic()
    done = looked("sql", query, "--timeout", "1")

    assert done.returncode == 1
    assert re.search("stopped after 1 s|did not stop after 1 s|more memory", done.stderr), done.stderr
    assert time.monotonic() - begun < 59
    assert sorted(looked.directory.rglob("*")) == before


@pytest.mark.deep(2)
def test_every_reading_statement_is_accepted(looked):
    for query in (
        "from suppliers",
        "values (1)",
        "show tables",
        "describe bookings",
        "summarize suppliers",
        "explain select 1",
        "with a as (select 1) select * from a",
        "pivot bookings on status using count(*)",
        "select count(*) from fct_bookings",
    ):
        assert looked("sql", query).returncode == 0, query


@pytest.mark.deep(2)
def test_the_digest_of_the_copy_is_that_of_the_warehouse(looked):
    names = ("octo.duckdb", "octo.private.duckdb")
    with closing(duckdb_warehouse(*(looked.directory / name for name in names), SystemClock())) as warehouse:
        found = sorted(warehouse.digest(), key=lambda one: one.table)
    assert looked.json("tables", "--digests")["tables"] == [dataclasses.asdict(one) for one in found]


def test_the_configuration_is_shown_as_one_writes_it(empty):
    """What is printed is a pipeline file, but for the token."""
    shown = empty.ok("config", "show", "-p", "example")
    before = {key: each["value"] for key, each in empty.json("config", "-p", "example")["settings"].items()}
    (empty.directory / "pipelines").mkdir()
    token = 'connections.acme.token = { env = "ACME_TOKEN" }\n'
    (empty.directory / "pipelines/again.toml").write_text(shown + token)

    again = empty.json("config")["settings"]
    assert {key: each["value"] for key, each in again.items()} == before
    assert 'connections.acme.limits.deadline = "90s"\n' in shown
    assert 'sync.confirm_after = ["5s", "30s"]\n' in shown
    assert "# publish.delta: not set\n" in shown
    assert again["reconcile.ledger.fields"]["origin"] == "pipeline file"


def test_a_token_is_never_shown(project):
    secret = "xyzzy-secret-token"
    for words in (
        ["config", "show", "--origin"],
        ["config", "--json"],
        ["doctor"],
        ["sync", "--dry-run"],
        ["sync"],
        ["status"],
    ):
        done = project(*words, environment={"SHOP_TOKEN": secret})
        assert secret not in done.stdout + done.stderr, words
    assert "set (env SHOP_TOKEN)" in project("config", environment={"SHOP_TOKEN": secret}).stdout


@pytest.mark.deep(2)
def test_the_shipped_pipeline_can_be_looked_at_without_a_file_of_ones_own(empty, service):
    url = {"OCTO_SYNC_CONNECTIONS__SANDBOX__BASE_URL": service.base_url}
    assert empty("sync", "-p", "sandbox", "--only", "products", environment=url).returncode == 0

    assert empty.json("sql", "select count(*) as n from products")["rows"] == [{"n": 3}]
    assert empty.json("status")["connections"][0]["name"] == "sandbox"
    assert empty("tables").returncode == 0


@pytest.mark.deep(2)
def test_an_answer_without_rows_says_so_beside_the_data(looked):
    none = "select 1 as a where false"

    table = looked("sql", none)
    assert table.stdout.split() == ["a", "-"]
    assert table.stderr == "No rows.\n"
    asked = looked("ask", "4", "--param", "below=-1")
    assert "No rows for these values; --param gives others (first, last, below)." in asked.stderr
    for form in ("csv", "json", "jsonl"):
        for words in (["sql", none], ["ask", "4", "--param", "below=-1"]):
            done = looked(*words, "--format", form)
            assert "No rows" not in done.stdout + done.stderr
    assert looked("sql", none, "--format", "csv").stdout == "a\n"
    assert looked("sql", none, "--format", "jsonl").stdout == ""
    assert looked.json("sql", none)["rows"] == []
    assert looked("-q", "sql", none).stderr == ""


@pytest.mark.deep(2)
def test_a_pull_is_noted_as_schedule_and_what_a_person_names_as_user(project, service):
    roads = lambda: {r["source"] for r in project.json("sql", "select distinct source from ops.coverage")["rows"]}  # noqa: E731
    assert roads() == {"schedule"}, "a sync that was typed is a pull"
    service.refuse_a_product()
    assert project("sync").returncode == 5
    service.faults()

    project.ok("quarantine", "--retry", "--all")
    project.ok("sync")

    assert roads() == {"schedule", "user"}


def test_deliveries_of_a_connection_that_left_the_pipeline_are_listed_under_its_name(project):
    with Journal(project.directory / "octo.journal.sqlite", clock=SystemClock()) as journal:
        for name in ("shop", "former"):
            one = Received(connection=name, endpoint="e", received_at=SystemClock().now(), body=b"{}", type="X")
            journal.inbox.accept([one])
            listed = project.ok("webhooks", "list")
            assert ("connection" in listed, name in listed) == ((name == "former"),) * 2
