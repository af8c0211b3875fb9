"""Each exit code means one thing, and an error is one line that says what to do."""

import json
import re
import shutil
import signal
import tempfile
from pathlib import Path

import pytest
from tests.cli.conftest import PIPELINE, Program, finish, wait_until, without_override

from octo_sync.app.machine import SystemClock
from octo_sync.flows.backup.place import lock_beside
from octo_sync.journal import Journal

DEAD = "http://127.0.0.1:9/octo/v1"


def one_line(text):
    lines = [line for line in text.splitlines() if line]
    assert len(lines) == 1, text
    assert "Traceback" not in text
    return lines[0]


def test_a_sync_that_brought_everything_exits_0_and_a_second_one_finds_nothing_new(project):
    document = project.json("sync")

    assert document["status"] == "ok"
    assert document["rows_written"] == 0
    assert document["published"]


def test_a_service_that_is_down_is_exit_1_and_one_line(fresh):
    (fresh.directory / "pipelines/shop.toml").write_text(PIPELINE.format(url=DEAD))

    done = fresh("-q", "sync")

    assert done.returncode == 1
    assert "127.0.0.1:9" in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr


def test_an_address_with_nothing_there_is_exit_1_after_one_request_and_says_base_url(project, service):
    """Nothing was verified: nothing is published, though all was well before, and `status` says it too."""
    published = (project.directory / "octo.read.duckdb").stat().st_mtime_ns
    file = project.directory / "pipelines/shop.toml"
    file.write_text(PIPELINE.format(url=service.base_url.removesuffix("/v1")))
    service.control("DELETE", "/requests")

    done = project("-q", "sync")

    assert done.returncode == 1
    assert "base_url" in one_line(done.stderr)
    assert len(service.control("GET", "/requests")["requests"]) <= 1
    assert (project.directory / "octo.read.duckdb").stat().st_mtime_ns == published
    assert project("status").returncode == 3
    with Journal.open(project.directory / "octo.journal.sqlite", clock=SystemClock()) as journal:
        journal.runs.start("serve", "shop", run_id="r-serve", fence=99)
        journal.runs.end("r-serve", "ok")
    after = project("status")
    assert after.returncode == 3, "what went well since did not pull"
    assert re.search(r"^Last run +serve ok .*\nEarlier +sync failed .*\n +\S", after.stdout, re.MULTILINE | re.DOTALL)
    assert [run["command"] for run in json.loads(project("status", "--json").stdout)["failed_runs"]] == ["sync"]
    for number, status in enumerate(("ok", "partial")):
        place = project.directory / "octo.journal.sqlite"
        with (
            Journal.open(place, clock=SystemClock()) as journal,
            journal.leases.acquire(lock_beside(place), owner="serve"),
        ):
            journal.runs.start("pull", "shop", run_id=f"r-{status}", fence=100 + number)
            beginning = project("status", "--json")
            journal.runs.end(f"r-{status}", status)
        assert beginning.returncode == (0 if number else 3), (
            "a pull that has just begun makes nothing good, and nothing worse"
        )
        assert project("status").returncode == 0, "one of serve's pulled well"
        assert json.loads(project("status", "--json").stdout)["failed_runs"] == []
    file.write_text(PIPELINE.format(url=service.base_url))
    assert project("sync").returncode == 0
    assert project("status").returncode == 0


def test_usage_mistakes_are_exit_2(empty):
    for words in (["sync", "--nope"], ["nope"], ["sql"], ["runs", "x"], ["deploy", "windows"], ["init"]):
        done = empty(*words)

        assert done.returncode == 2, words
        assert done.stdout == ""
        assert "Traceback" not in done.stderr


def test_a_wrong_pipeline_file_names_every_mistake(fresh):
    (fresh.directory / "pipelines/shop.toml").write_text(
        '[connections.shop]\nbase_url = "ftp://x"\ntoken = { env = "SHOP_TOKEN" }\nlanguagess = ["en"]\n'
        '[horizon]\nbookings = "soon"\n'
    )

    done = fresh("sync")

    assert done.returncode == 2
    for key in (
        "connections.shop.base_url",
        "connections.shop.languagess",
        "horizon.bookings",
        "connections.shop.token",
    ):
        assert f"  - {key}" in done.stderr, key
    assert done.stderr.splitlines()[0].startswith("octo-sync: error: ")
    assert "started" in done.stderr
    assert "started" not in fresh("config", "validate").stderr


def test_a_directory_without_a_pipeline_says_how_to_make_one(empty):
    done = empty("sync")

    assert done.returncode == 2
    assert "octo-sync init" in one_line(done.stderr)


@pytest.mark.deep(2)
def test_an_error_that_ended_a_run_names_the_run(project):
    broken = project.directory / "warehouse/custom/broken.sql"
    broken.parent.mkdir(parents=True)
    broken.write_text("-- name: broken\n-- grain: None.\n-- description: Broken.\nselect nothing from nowhere\n")

    ended, logged = project("sync"), project("sync", "--log-format", "json")
    newest = project.json("runs")["runs"]

    assert (ended.returncode, logged.returncode) == (1, 1)
    assert one_line(ended.stderr).endswith(f" (run {newest[1]['run_id']})")
    line = json.loads(logged.stderr.splitlines()[-1])
    assert (line["action"], line["run"]) == ("ended", newest[0]["run_id"])
    assert newest[0]["run_id"] not in line["error"]


def test_a_check_that_finds_rows_is_exit_3_and_nothing_is_published(project):
    checks = project.directory / "warehouse/checks"
    checks.mkdir(parents=True)
    (checks / "planted.sql").write_text("-- name: planted\n-- description: Always fails.\nselect 'x' as reason\n")
    before = (project.directory / "octo.read.duckdb").stat().st_mtime_ns

    published, checked, synced = project("publish"), project("check"), project("sync")

    assert (published.returncode, checked.returncode, synced.returncode) == (3, 3, 3)
    assert "planted" in published.stderr
    assert "reason" in checked.stdout
    assert (project.directory / "octo.read.duckdb").stat().st_mtime_ns == before


@pytest.mark.deep(3)
def test_the_rows_that_stopped_a_publish_are_shown_though_the_read_copy_passes(project):
    mine, check = project.directory / "warehouse/custom/mine.sql", project.directory / "warehouse/checks/mine.sql"
    for path in (mine, check):
        path.parent.mkdir(parents=True, exist_ok=True)
    check.write_text("-- name: mine\n-- description: Nothing.\nselect oddity from marts.mine\n")
    header = "-- name: mine\n-- grain: None.\n-- description: Mine.\n"
    mine.write_text(f"{header}select 'overbooked' as oddity where false\n")
    assert project("publish").returncode == 0
    mine.write_text(f"{header}select 'overbooked' as oddity\n")

    published, checked, of_next = project("publish"), project("check"), project("check", "--next", "--json")

    assert (published.returncode, checked.returncode, of_next.returncode) == (3, 0, 3)
    assert "octo-sync check --next" in published.stderr
    failed = {c["name"]: c["rows"] for c in json.loads(of_next.stdout)["checks"] if not c["ok"]}
    assert failed == {"mine": [{"oddity": "overbooked"}]}
    assert project("check").returncode == 0, "nothing was published by looking"


def test_stale_is_exit_3_and_fresh_is_0(looked):
    assert looked("status", "--fail-if-stale", "26h").returncode == 0
    stale = looked("status", "--fail-if-stale", "1ms")

    assert stale.returncode == 3
    assert "shop" in stale.stderr
    assert looked("status", "--fail-if-stale", "soon").returncode == 2


def test_a_project_that_never_ran_is_stale(fresh):
    assert fresh("status", "--fail-if-stale", "26h").returncode == 3


def test_a_refused_token_is_exit_4_after_at_most_3_calls_and_deletes_nothing(project, service):
    before = project.json("tables", "--digests")["tables"]
    service.control("DELETE", "/requests")

    done = project("sync", environment={"SHOP_TOKEN": "revoked-xyzzy"})

    requests = service.control("GET", "/requests")["requests"]
    assert done.returncode == 4
    assert "SHOP_TOKEN" in done.stderr
    assert "revoked-xyzzy" not in done.stdout + done.stderr
    assert 1 <= len(requests) <= 3
    assert project.json("tables", "--digests")["tables"] == before
    assert "nothing is fetched: the token is refused (401), " in project("status").stdout
    project.ok("sync")
    assert "nothing is fetched" not in project.ok("status")


def test_some_connections_failing_is_exit_5_and_the_others_are_there(fresh):
    path = fresh.directory / "pipelines/shop.toml"
    dead = f'\n[connections.dead]\nbase_url = "{DEAD}"\ntoken = {{ env = "DEAD_TOKEN" }}\n'
    path.write_text(path.read_text() + dead + "limits = { attempts = 1, concurrency = 1, backoff = 0.05 }\n")

    done = fresh("sync", environment={"DEAD_TOKEN": "x"})

    assert done.returncode == 5
    assert "dead" in done.stderr
    assert fresh.json("sql", "select connection_id, count(*) > 0 as some from bookings group by 1")["rows"] == [
        {"connection_id": "shop", "some": True}
    ]


def test_a_second_sync_is_exit_6_and_names_the_first_while_looking_goes_on(project, service):
    service.faults({"fault": "latency", "seconds": 2.0})
    first = project.start("sync", "--full")
    try:
        wait_until(lambda: "running" in project("runs", "--json").stdout)
        second = project("sync")
        status, asked = project.json("status"), project("sql", "select count(*) from bookings")
    finally:
        code, _, _ = finish(first, signal.SIGTERM)

    assert second.returncode == 6
    assert f"pid {first.pid}" in one_line(second.stderr)
    assert status["running"]["pid"] == first.pid
    assert asked.returncode == 0
    assert code == 143
    assert project.json("status")["running"] is None


@pytest.mark.deep(6, everyday=["2-130"])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_sync_in_order_and_the_next_one_takes_it_up(fresh, service, number, code):
    service.faults({"fault": "latency", "seconds": 0.4})
    process = fresh.start("sync")
    wait_until(lambda: re.search(r'"verified": [1-9]', fresh("status", "--json").stdout))

    ended, _, err = finish(process, number)
    service.faults()

    assert ended == code
    assert "Traceback" not in err
    assert "run it again" in err
    ran = fresh.json("runs")["runs"][0]
    assert ran["status"] == "interrupted"
    assert ran["counts"]["requests"] >= ran["counts"]["subjects"] >= 1
    assert ran["counts"]["rows_written"] >= 1
    after = fresh.json("sync")
    assert (after["status"], after["resumed"]) == ("ok", True)


def test_a_read_only_directory_gives_one_clear_line(service):
    directory = Path(tempfile.mkdtemp(prefix="octo-read-only-"))
    try:
        (directory / "pipelines").mkdir()
        (directory / "pipelines/shop.toml").write_text(PIPELINE.format(url=service.base_url))
        directory.chmod(0o555)
        done = Program(directory)("-q", "sync", preexec_fn=without_override)
    finally:
        directory.chmod(0o755)
        shutil.rmtree(directory)

    assert done.returncode == 1
    assert str(directory) in one_line(done.stderr) or "octo.journal.sqlite" in one_line(done.stderr)


def test_sql_that_is_wrong_is_exit_2_and_one_line_with_its_place(looked):
    done = looked("sql", "select\n  nope from bookings")

    assert done.returncode == 2
    assert "line 2, column 3" in one_line(done.stderr)
