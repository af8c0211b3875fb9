"""Readers that leave, full disks, closed streams and signals: the output is whole, or the exit code says it is not."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from tests.cli.conftest import CLEAN, finish, wait_until

UNBUFFERED = pytest.mark.parametrize("environment", [{}, {"PYTHONUNBUFFERED": "1"}], ids=["buffered", "unbuffered"])
ENDLESS = "with recursive t(i) as (select 1 union all select i + 1 from t) select max(i) from t"
MANY = ("sql", "--limit", "0", "--format", "csv", "from availability a, range(200)")


def shell(program, line, *words, environment=None):
    """A line of bash in which "$@" is the command."""
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", line, "bash", *program.arguments(*words)],
        cwd=program.directory, env=CLEAN | (environment or {}), capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.mark.deep(3, everyday=["sql-unbuffered", "status-buffered"])
@UNBUFFERED
@pytest.mark.parametrize("words", [MANY, ("status",), ("tables",)], ids=lambda words: words[0])
def test_a_reader_that_leaves_is_no_error(looked, words, environment):
    done = shell(looked, '"$@" | head -c 1 >/dev/null', *words, environment=environment)
    assert (done.returncode, done.stderr.count("\n") <= 1) == (0, True), done


@pytest.mark.deep(6, everyday=["csv-unbuffered"])
@UNBUFFERED
@pytest.mark.parametrize("form", ["csv", "table", "json", "jsonl", "md"])
def test_what_a_full_disk_does_not_take_is_an_error(looked, form, environment):
    words = tuple(form if word == "csv" else word for word in MANY)
    done = shell(looked, 'ulimit -f 100; "$@" > cut.txt', *words, environment=environment)
    (looked.directory / "cut.txt").unlink()
    assert done.returncode == 1
    assert "File too large" in done.stderr
    done = shell(looked, '"$@" > /dev/full', "status", environment=environment)
    assert (done.returncode, "No space left on device" in done.stderr) == (1, True)


@pytest.mark.deep(6, everyday=["all"])
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"], ids=["stdout", "stderr", "stdin", "all"])
def test_a_closed_stream_changes_nothing_else(looked, closed):
    for words, code in ((("status",), 0), (("--version",), 0), (("no-such-command",), 2), (("sql", "from no_such"), 2)):
        done = shell(looked, f'"$@" {closed}', *words)
        assert (done.returncode, "Traceback" in done.stderr) == (code, False), (words, done)
        assert (done.stdout != "") is (code == 0 and ">&-" not in closed.replace("2>&-", ""))
    done = shell(looked, f'"$@" {closed}', "sql", "-")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


@pytest.mark.deep(4, everyday=["stderr"])
@pytest.mark.parametrize("closed", ["2>&-", "2>/dev/full", ">&-"], ids=["stderr", "full", "stdout"])
def test_a_sync_that_nobody_reads_is_a_sync(project, closed):
    before = len(project.json("runs")["runs"])
    assert shell(project, f'"$@" {closed}', "sync").returncode == 0
    assert len(project.json("runs")["runs"]) == before + 1


@pytest.mark.deep(4, everyday=["sql-15", "export-2"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("words", [("sql",), ("export", "--to", "never.csv", "--sql")], ids=lambda words: words[0])
def test_a_signal_ends_a_query_at_once(looked, words, number):
    process = looked.start(*words, ENDLESS)
    wait_until(lambda: _is_at_work(process.pid))
    began = time.monotonic()
    code, _, err = finish(process, number)
    assert code == {signal.SIGINT: 130}.get(number, 143)
    assert time.monotonic() - began < 10
    assert "Traceback" not in err
    assert not (looked.directory / "never.csv").exists()


MOVING = """
import sys
import duckdb
from octo_sync.cli import db, main

# Alone, so that DuckDB looks for signals between any two pieces of its work.
alone = duckdb.connect(config={"threads": 1})
db.move = lambda *_: alone.execute("select sum(range % 7) from range(1000000000000)").fetchone()
main(sys.argv[1:])
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_a_statement_that_nothing_watches_is_one_line(looked, number):
    process = looked.start("db", "rebuild", "--from", "octo.duckdb", program=MOVING)
    wait_until(lambda: _is_at_work(process.pid))
    code, _, err = finish(process, number)
    assert code == {signal.SIGINT: 130}.get(number, 143)
    assert (err.count("\n"), err.startswith("octo-sync: ")) == (1, True), err


LATE = """
import sys, time
from octo_sync.cli import main
from octo_sync.destinations.duckdb import transactions

class Told:
    def __init__(self, told):
        self.told = told
    def recv(self, size):
        heard = self.told.recv(size)
        time.sleep(0.5)
        return heard

hear = transactions._Signals._hear
transactions._Signals._hear = lambda self, told: hear(self, Told(told))
main(sys.argv[1:])
"""


def test_a_signal_that_duckdb_notices_first_is_still_that_signal(looked):
    process = looked.start("export", "--to", "never.csv", "--sql", ENDLESS, program=LATE)
    wait_until(lambda: _is_at_work(process.pid))
    code, _, err = finish(process, signal.SIGTERM)
    assert (code, "Traceback" in err) == (143, False), err


def _is_at_work(pid):
    """Whether a process has used more than the second of processor time that it takes to start."""
    times = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK") > 3


@pytest.mark.deep(10)
def test_rows_that_do_not_fit_into_memory_are_a_sentence(looked):
    done = looked("sql", "--limit", "0", "select range from range(100000000)", real=True)
    assert done.returncode == 1
    assert "more memory than it may have" in done.stderr
    assert "Traceback" not in done.stderr
