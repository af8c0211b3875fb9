"""`octo-sync serve` against a service and a network that fail all the time: when the faults end, the copy ends equal.

`pytest tests/faults/test_chaos.py --tier deep -s` shows the figures.
"""

import contextlib
import http.client
import itertools
import os
import random
import subprocess
import sys
import time

import pytest
from tests.faults.serving import (
    Copy,
    Pourer,
    Sandbox,
    asked,
    figures,
    free_port,
    go_on,
    marked,
    notifications,
    stop,
    until,
)

CHANGES, AT_ONCE, KILLS = 1000, 10, 5
FAULTS = [
    # 30 % of the calls fail, in ways that a service and what stands before it have.
    {"fault": "status_5xx", "share": 0.14},
    {"fault": "html_502", "share": 0.06},
    {"fault": "reset", "share": 0.06},
    {"fault": "truncated", "share": 0.04},
    {"fault": "read_lag", "seconds": 5},
    {"fault": "delivery_lost", "share": 0.2},
    {"fault": "delivery_doubled", "share": 0.2},
    {"fault": "delivery_reordered", "share": 0.5, "seconds": 2},
]
QUICK = 'attempts = 4\nbackoff = "0.05s"\ndeadline = "10s"'


class Counting:
    """Counts the requests that a sandbox was asked, although it remembers only the last ones."""

    def __init__(self, sandbox):
        self._sandbox, self.count = sandbox, 0

    def __call__(self):
        found = len(self._sandbox.requests())
        self._sandbox.forget_requests()
        assert found < 2000, "some were forgotten before they were counted"
        self.count += found
        return self.count


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=pytest.mark.deep(40)) for seed in range(5)])
def test_a_thousand_changes_among_faults_and_kills_end_equal(seed, tmp_path):
    chance = random.Random(f"chaos/{seed}")
    with Sandbox(tmp_path / "sandbox", bookings=80, products=3, days=25, more=["--seed", seed]) as sandbox:
        copy = Copy(tmp_path / "copy", sandbox, limits=QUICK, confirm=(2, 6), more='[schedule]\nfull = "0 3 * * *"\n')
        counting, ready = Counting(sandbox), []
        program = copy.serve()
        try:
            copy.first_landing()
            counting()
            a_pull = counting.count
            sandbox.faults(*FAULTS)
            moments = sorted(chance.sample(range(CHANGES // AT_ONCE), KILLS - 1))
            for step in range(CHANGES // AT_ONCE):
                assert len(sandbox.traffic(AT_ONCE, seed=f"chaos/{seed}/{step}")) == AT_ONCE
                if step in moments:
                    program.kill()
                    program = copy.serve()
                    ready.append(copy.ready(program))
                time.sleep(0.1)
                if step % 10 == 0:
                    counting()
            # A slow machine asks less in the same time: it gets more of the same, until nothing was spared it.
            for step in itertools.count(CHANGES // AT_ONCE):
                fired = sandbox.control("GET", "/faults")["fired"]
                missing = {fault["fault"] for fault in FAULTS} - set(fired)
                if not missing:
                    break
                assert step < 10 * CHANGES // AT_ONCE, f"faults that never happened: {missing}; those that did: {fired}"
                sandbox.traffic(1, seed=f"chaos/{seed}/{step}")
                time.sleep(0.1)
            ended = time.monotonic()
            sandbox.faults()
            # What was lost, and what nobody is told of, is healed by the next pull: the one that was missed meanwhile.
            program.kill()
            copy.a_day_passes()
            program = copy.serve()
            ready.append(copy.ready(program))
            until(lambda: sandbox.deliveries()["idle"], 30, "every delivery that was not lost came in")
            copy.equal()
            took = time.monotonic() - ended
            calls = counting()
            assert sandbox.acknowledged() - copy.stored() == {}
            code, stopped = program.terminate()
        finally:
            with program:
                pass
        assert code == 143
        assert "Traceback" not in copy.log.read_text(), copy.log.read_text()[-4000:]
        print(  # noqa: T201 - the figures of the docs
            f"\nseed {seed}: {CHANGES} changes, {sum(copy.stored().values())} deliveries, {sum(fired.values())} faults, "
            f"equal {took:.1f} s after the end; {calls} calls, of which {a_pull} the first pull; "
            f"ready: {figures(ready)}; stopped in {stopped:.2f} s"
        )
        # Two pulls and `verify`, which pulls too.
        assert calls <= 3 * CHANGES + 4 * a_pull


@pytest.fixture
def sandbox(tmp_path):
    with Sandbox(tmp_path / "sandbox", bookings=80, products=3, days=25, more=["--frozen"]) as sandbox:
        yield sandbox


@pytest.mark.deep(15)
def test_sigterm_in_the_middle_of_a_pull_ends_and_the_next_process_goes_on(tmp_path, sandbox):
    copy = Copy(tmp_path / "copy", sandbox)
    sandbox.faults({"fault": "latency", "seconds": 0.1})
    with copy.serve() as program:
        until(lambda: len(sandbox.requests()) > 8, 30, program.said)
        code, _ = program.terminate()
    assert code == 143
    assert copy.owed() > 0, "a pull that was over tests nothing"
    sandbox.faults()
    with copy.serve() as program:
        copy.first_landing()
        copy.equal()


@pytest.mark.deep(20)
def test_a_process_that_was_stopped_keeps_its_right_and_two_processes_receive_while_one_writes(tmp_path, sandbox):
    """SIGSTOP for five seconds, its lock file deleted meanwhile: the file's own lock still keeps the other one out."""
    copy, other = Copy(tmp_path / "copy", sandbox), free_port()
    with copy.serve() as first:
        copy.first_landing()
        secret = copy.secret()
        body = next(b for b in notifications(sandbox.state()) if "uuid" in b["data"])
        with copy.serve("--bind", f"127.0.0.1:{other}") as second:
            copy.ready(second, port=other)
            sandbox.faults({"fault": "latency", "seconds": 0.3})
            sandbox.change(random.Random(1), 20)
            until(lambda: copy.owed() > 3, 60, "something to do")
            # Stopped in the middle of a transaction it keeps everybody out of the journal: the other one answers 503 then.
            until(lambda: stop(first.pid) or copy.is_writable() or go_on(first.pid), 60, "between two transactions")
            (copy.directory / "octo.journal.sqlite.lock").unlink()
            began = time.monotonic()
            number = 0
            while time.monotonic() < began + 5:
                number += 1
                assert copy.deliver(marked(body, f"second/{number}"), secret, port=other)[0] == 200
                time.sleep(0.05)
            assert second.code is None, second.said()
            go_on(first.pid)
            sandbox.faults()
            assert copy.deliver(marked(body, "first"), secret)[0] == 200
            copy.until_clean()
            sent = [marked(body, "first"), *(marked(body, f"second/{n}") for n in range(1, number + 1))]
            assert copy.kept(sent) == dict.fromkeys(sent, 1)
            assert first.code is None, first.said()
            copy.equal()
            first.kill()
            sandbox.change(random.Random(2), 5)
            until(lambda: copy.owed() > 0 or sandbox.deliveries()["idle"], 60, "something to do")
            # Its address is that of the one that died: somebody sends what comes there to the other one.
            assert copy.deliver(marked(body, "after"), secret, port=other)[0] == 200
            # Nobody has helped.
            copy.until_clean()
            assert "Traceback" not in copy.log.read_text(), copy.log.read_text()[-4000:]


@pytest.fixture
def disk(tmp_path):
    """A small disk of its own, where the machine lets us mount one."""
    place = tmp_path / "copy" / "disk"
    place.mkdir(parents=True)
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", place], capture_output=True, check=False)
    if done.returncode:
        pytest.skip("mounting is not allowed here")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


@pytest.mark.deep(20)
def test_a_full_disk_below_the_journal_is_503_with_retry_after_and_serve_recovers_by_itself(tmp_path, disk, sandbox):
    copy = Copy(tmp_path / "copy", sandbox, journal="disk/octo.journal.sqlite")
    with copy.serve() as program:
        copy.first_landing()
        secret, bodies = copy.secret(), notifications(sandbox.state())
        free = os.statvfs(disk)
        (disk / "ballast").write_bytes(b"x" * (free.f_bavail * free.f_frsize - 150_000))
        answers, acknowledged = [], []
        for number in range(12):
            body = marked(bodies[0], number)
            answers.append(copy.deliver(body + " " * 60_000, secret))
            if answers[-1][0] == 200:
                acknowledged.append(body)
        assert answers[-1] == (503, "5"), answers
        assert {status for status, _ in answers} <= {200, 503}
        assert asked("GET", copy.host, "/livez")[0] == 200
        assert program.code is None, program.said()
        (disk / "ballast").unlink()
        until(lambda: copy.deliver(marked(bodies[1], "after"), secret)[0] == 200, 30, program.said)
        sandbox.change(random.Random(3), 5)
        copy.equal()
        assert program.code is None, program.said()
        assert copy.kept(acknowledged) == dict.fromkeys(acknowledged, 1)
        assert "Traceback" not in program.said(), program.said()


@pytest.mark.deep(20)
def test_a_warehouse_that_somebody_else_holds_costs_no_delivery_and_the_backlog_drains_after(tmp_path, sandbox):
    copy = Copy(tmp_path / "copy", sandbox)
    with copy.serve() as program:
        copy.first_landing()
        secret = copy.secret()
        program.terminate()
    held = "import duckdb, sys; db = duckdb.connect(sys.argv[1]); print('held', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", held, copy.directory / "octo.duckdb"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        try:
            holder.stdout.readline()
            with copy.serve() as program:
                copy.ready(program)
                pourer = Pourer(copy, secret, notifications(sandbox.state()), "locked", 1, pause=0.01)
                pourer.start()
                sandbox.change(random.Random(4), 20)
                until(lambda: sum(pourer.acknowledged.values()) > 20, 30, "twenty deliveries")
                until(lambda: copy.owed() > 10, 30, "a backlog")
                acknowledged = pourer.end()
                assert not pourer.refused, pourer.refused
                holder.stdin.close()
                holder.wait(100)
                copy.equal()
                assert copy.kept(acknowledged) == acknowledged
                assert "Traceback" not in program.said(), program.said()
        finally:
            holder.kill()


@pytest.mark.deep(12)
def test_an_answer_that_never_came_was_not_stored_in_vain(tmp_path, sandbox):
    """Whoever hangs up in the middle of a delivery harms nobody; whoever sends it again is stored again."""
    copy = Copy(tmp_path / "copy", sandbox)
    with copy.serve() as program:
        copy.first_landing()
        secret, (body, *_) = copy.secret(), notifications(sandbox.state())
        for _ in range(20):
            connection = http.client.HTTPConnection(copy.host, timeout=5)
            connection.putrequest("POST", secret[0])
            connection.putheader("X-Octo-Sync-Secret", secret[1])
            connection.putheader("Content-Length", "500")
            with contextlib.suppress(OSError):
                connection.endheaders(b'{"cut')
            connection.close()
        again = marked(body, "again")
        assert copy.deliver(again, secret)[0] == 200
        assert program.code is None
        assert copy.stored() == {again: 1}
