"""Two connections of one process to the journal, as receiver and worker have them, while other processes come and go.

A process loses all its locks on a file when it closes any descriptor of it. The look at the file before it is opened did
that to the connection that was open already: the next reader began the shared index anew, and the service died of SIGBUS.
"""

import contextlib
import fcntl
import json
import sqlite3
import subprocess
import sys

import pytest
from tests.faults.serving import canonical

IN_USE = 128
"""The byte of SQLite's shared index whose lock says that somebody has it open (`UNIX_SHM_DMS` in os_unix.c)."""

TWO = """
import sys
from pathlib import Path
from octo_sync.journal import Journal, Received
from octo_sync.app.machine import SystemClock
path, clock = Path(sys.argv[1]), SystemClock()
with Journal.open(path, clock=clock) as receiver, Journal.open(path, clock=clock) as worker:
    print("open", flush=True)
    for line in sys.stdin:
        for journal in (receiver, worker):
            journal.inbox.accept([Received(connection="main", endpoint="e", received_at=clock.now(), body=line.encode(),
                                      type="", reading="", subscription="", subjects=(), months=(), confirm_at=())])
        print("stored", worker.subjects.dirty_count(), flush=True)
"""


def test_a_second_connection_of_the_process_costs_the_first_one_none_of_its_locks(tmp_path):
    path = tmp_path / "journal.sqlite"
    with subprocess.Popen(
        [sys.executable, "-c", TWO, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        try:
            assert child.stdout.readline() == "open\n"
            with path.with_name("journal.sqlite-shm").open("r+b") as index, pytest.raises(OSError, match="unavailable"):
                fcntl.lockf(index, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, IN_USE)
            for number in range(5):
                with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as reader:
                    reader.execute("select count(*) from deliveries").fetchone()
                with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as writer:
                    writer.execute("update counters set value = value + 1")
                child.stdin.write(json.dumps({"n": number}) + "\n")
                child.stdin.flush()
                assert child.stdout.readline() == "stored 0\n", f"it died of signal {-child.wait(10)}"
            child.stdin.close()
            assert child.wait(10) == 0
        finally:
            child.kill()
    with contextlib.closing(sqlite3.connect(path)) as reader:
        bodies = [canonical(body) for (body,) in reader.execute("select body from deliveries")]
    assert sorted(bodies) == sorted(2 * [canonical({"n": number}) for number in range(5)])
