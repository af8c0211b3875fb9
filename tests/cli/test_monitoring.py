"""Knowing how it is from outside: log lines, notices, the dead-man's switch, what is due next."""

import datetime as dt
import http.server
import json
import re
import sys

import pytest
from tests.cli.conftest import finish, wait_until
from tests.cli.test_terminal import on_a_terminal
from tests.listening import listening

SECRET = "sandbox-token-all"


@pytest.fixture
def listener():
    class Handler(http.server.BaseHTTPRequestHandler):
        def _note(self):
            body = self.rfile.read(int(self.headers["Content-Length"] or 0))
            self.server.told.append((self.path, json.loads(body) if body else None))
            self.send_response(200)
            self.end_headers()

        do_GET = do_POST = _note  # noqa: N815 - the base class calls them so

    with listening(Handler) as server:
        yield server


def lines(text):
    return [json.loads(line) for line in text.splitlines()]


# -- log lines -------------------------------------------------------------------------------------------------------


@pytest.mark.deep(3)
def test_with_json_every_line_of_stderr_is_an_object_and_stdout_is_as_ever(project, service):
    service.refuse_a_product()
    done = project("sync", "--json", "--log-format", "json")
    assert done.returncode == 5
    said = lines(done.stderr)
    assert {"land", "sync"} <= {line["action"] for line in said}
    assert {tuple(line)[:3] for line in said} == {("ts", "level", "action")}
    run = json.loads(done.stdout)["run_id"]
    assert [line["run"] for line in said if line["action"] == "sync"] == [run]
    assert SECRET not in done.stderr
    report = project("sync", "--log-format", "json")
    assert "trouble" in {line["action"] for line in lines(report.stderr)}, (
        "what a person would read there is a line too"
    )
    assert report.stdout.startswith("partial ")


@pytest.mark.deep(2)
def test_debug_shows_no_address_of_a_hook(project, listener):
    environment = {
        "OCTO_SYNC_NOTIFY__TO": f"{listener.url}/stale-s3cret",
        "OCTO_SYNC_NOTIFY__PING": f"{listener.url}/ping-s3cret",
        "OCTO_SYNC_NOTIFY__STALE_AFTER": "0",
    }
    done = project("--debug", "sync", environment=environment)
    assert done.returncode == 0, done.stderr
    assert {path for path, _ in listener.told} == {"/stale-s3cret", "/ping-s3cret"}, done.stderr
    assert "action=notice" in done.stderr
    assert "s3cret" not in done.stderr + done.stdout


@pytest.mark.deep(5)
def test_text_and_the_pipeline_files_key_do_the_same(project):
    text = project("sync", "--log-format", "text").stderr
    assert " info action=sync run=" in text
    by_variable = project("sync", environment={"OCTO_SYNC_LOG_FORMAT": "json"}).stderr
    assert lines(by_variable)[-1]["action"] == "sync"
    assert "action=" not in project("sync").stderr, "sentences are for persons"
    assert lines(project("-q", "sync", "--log-format", "json").stderr or "") == []


def test_an_error_that_ends_the_command_is_a_line_too(project):
    (project.directory / "octo.duckdb").write_bytes(b"no database")
    done = project("sync", "--log-format", "json")
    assert done.returncode == 1
    assert [line["level"] for line in lines(done.stderr)][-1] == "error"


@pytest.mark.deep(2)
def test_serve_writes_lines_until_its_end(project):
    process = project.start(
        "serve",
        *("--only", "receiver", "--only", "worker"),
        *("--log-format", "json"),
        environment={"OCTO_SYNC_WEBHOOKS__BIND": "127.0.0.1:0"},
    )
    said = []
    while not said or not said[-1].get("message", "").startswith("worker keeps "):
        said.append(json.loads(process.stderr.readline()))
    code, _, rest = finish(process, 15)
    assert code == 143
    assert any(line.get("message", "").startswith("receiver listens on ") for line in said)
    assert {line["level"] for line in lines(rest)} <= {"info", "warning"}


# -- notices and the dead-man's switch -------------------------------------------------------------------------------


def told(listener, path):
    return [document for place, document in listener.told if place == path]


@pytest.mark.deep(8)
def test_a_sync_tells_its_hook_once_and_calls_the_switch_after_a_full_pull(project, service, listener):
    service.refuse_a_product()
    environment = {
        "OCTO_SYNC_NOTIFY__TO": f"{listener.url}/quarantine",
        "OCTO_SYNC_NOTIFY__PING": f"{listener.url}/ping-secret",
    }
    for _ in range(2):
        done = project("sync", "--log-format", "json", environment=environment)
        assert done.returncode == 5
        assert "secret" not in done.stderr + done.stdout

    (document,) = told(listener, "/quarantine")
    assert (document["event"], document["connection"], document["pipeline"]) == ("quarantine", "shop", "shop")
    assert document["entries"] >= 1
    assert len(told(listener, "/ping-secret")) == 2

    project("sync", "--only", "products", environment=environment)
    assert len(told(listener, "/ping-secret")) == 2, "part of a pull is none"

    service.faults()
    project.ok("sync", environment=environment)
    service.refuse_a_product()
    project("sync", "--full", environment=environment)
    assert len(told(listener, "/quarantine")) == 2, "it was over in between"


def test_a_service_that_is_down_leaves_the_switch_alone(project, service, listener):
    service.faults({"fault": "status_5xx"})
    done = project("sync", environment={"OCTO_SYNC_NOTIFY__PING": f"{listener.url}/ping"})
    assert done.returncode == 1
    assert listener.told == []


@pytest.mark.deep(1)
def test_a_hook_that_fails_changes_neither_result_nor_exit_code(project):
    environment = {
        "OCTO_SYNC_NOTIFY__PING": "http://127.0.0.1:9/ping-secret",
        "OCTO_SYNC_NOTIFY__TO": f"{sys.executable} -c 'raise SystemExit(3)'",
        "OCTO_SYNC_NOTIFY__STALE_AFTER": "0",
    }
    done = project("sync", "--log-format", "json", environment=environment)
    assert done.returncode == 0
    said = {line["action"] for line in lines(done.stderr)}
    assert {"ping_failed", "notice", "hook_failed"} <= said
    assert "secret" not in done.stderr


@pytest.mark.deep(5)
def test_serve_tells_of_a_copy_that_becomes_stale_and_calls_the_switch_after_its_first_pull(fresh, service, listener):
    environment = {
        "OCTO_SYNC_WEBHOOKS__BIND": "127.0.0.1:0",
        "OCTO_SYNC_PUBLISH__EVERY": "0.1",
        "OCTO_SYNC_NOTIFY__PING": f"{listener.url}/ping",
        "OCTO_SYNC_NOTIFY__TO": f"{listener.url}/stale",
        "OCTO_SYNC_NOTIFY__STALE_AFTER": "0.5",
    }
    process = fresh.start("serve", "--only", "receiver", "--only", "worker", environment=environment)
    try:
        wait_until(lambda: told(listener, "/ping"))
        wait_until(lambda: told(listener, "/stale"))
        assert (fresh.directory / "octo.read.duckdb").exists(), "readers have what the switch was called for"
    finally:
        code, _, _ = finish(process, 15)
    assert code == 143
    assert len(told(listener, "/ping")) == 1
    assert {document["event"] for document in told(listener, "/stale")} == {"stale"}


# -- status ----------------------------------------------------------------------------------------------------------

SCHEDULE = {"OCTO_SYNC_SCHEDULE__FULL": "0 3 * * *", "OCTO_SYNC_SCHEDULE__NEAR": "*/5 * * * *"}


def test_status_says_what_is_due_next_and_that_only_serve_does_it(looked):
    text = looked.ok("status", environment=SCHEDULE)
    (line,) = [line for line in text.splitlines() if line.startswith("Next runs")]
    assert line.index("near in ") < line.index("full in ")
    assert line.endswith("only while octo-sync serve runs")
    assert "Next runs" not in looked.ok("status")

    found = looked.json("status", environment=SCHEDULE)["next_runs"]
    assert [(one["schedule"], one["cron"], one["late"], one["last_at"]) for one in found] == [
        ("full", "0 3 * * *", False, None),
        ("near", "*/5 * * * *", False, None),
    ]
    soon = dt.datetime.fromisoformat(found[1]["next_at"]) - dt.datetime.now(dt.UTC)
    assert dt.timedelta(0) < soon <= dt.timedelta(minutes=5)


def test_status_says_which_runs_were_missed(project):
    from octo_sync.app.machine import SystemClock
    from octo_sync.journal import Journal

    with Journal.open(project.directory / "octo.journal.sqlite", clock=SystemClock()) as journal:
        journal.settings.set("schedule full", (dt.datetime.now(dt.UTC) - dt.timedelta(days=3)).isoformat())
    text = project.ok("status", environment=SCHEDULE)
    assert "missed: full" in text
    assert [one["late"] for one in project.json("status", environment=SCHEDULE)["next_runs"]] == [True, False]


def test_status_says_what_is_open_with_other_systems(project):
    from octo_sync.app.machine import SystemClock
    from octo_sync.journal import FoundDifference, Journal, ReconciliationRun

    now, day = dt.datetime.now(dt.UTC) - dt.timedelta(hours=3), dt.date(2026, 11, 1)
    found = [
        FoundDifference(key=f"k{n}", bucket=bucket, reason="x")
        for n, bucket in enumerate(["missing_here"] * 3 + ["mismatched"])
    ]
    with Journal.open(project.directory / "octo.journal.sqlite", clock=SystemClock()) as journal:
        run = ReconciliationRun(
            name="ledger", run_id="r", started_at=now, ended_at=now, window_start=day, window_end=day, here_origin="a",
            there_origin="b", counts={}, totals=[], verdict="over",
        )  # fmt: skip
        journal.reconciliations.store(run, found)
        journal.reconciliations.accept("ledger", "k0", note="known", by="me", until=None, now=now)
    text = project.ok("status")
    (line,) = [line for line in text.splitlines() if line.startswith("Differences")]
    assert "ledger  3 open: 1 mismatched, 2 missing here, the oldest for 3 h · 1 accepted" in line
    document = project.json("status")["open_differences"]
    assert [(one["bucket"], one["open"], one["accepted"]) for one in document] == [
        ("mismatched", 1, 0),
        ("missing_here", 3, 1),
    ]


def test_status_fits_into_a_terminal_of_80_columns(project):
    _, seen = on_a_terminal(project, "status", width=80, environment=SCHEDULE)
    text = [line for line in seen.splitlines() if line.strip()]
    assert any(line.lstrip("\x1b[1m").startswith("Next runs") for line in text)
    assert max(len(re.sub(r"\x1b\[[0-9;]*m", "", line)) for line in text) <= 80


def test_looking_needs_no_hook_whose_address_is_not_set(project):
    path = project.directory / "pipelines/shop.toml"
    path.write_text(path.read_text() + '\n[notify]\nping = { env = "PING_URL" }\n')
    assert project("status").returncode == 0
    done = project("sync")
    assert done.returncode == 2
    assert "notify.ping: the environment variable PING_URL is not set" in done.stderr
    shown = project.ok("config", "show", "--origin", environment={"PING_URL": "https://ping.example.com/secret"})
    assert "secret" not in shown
    assert "PING_URL" in shown
