"""SIGKILL at the k-th system call that writes, syncs, renames or deletes, on the roads that must survive it.

strace puts the kill exactly there; without it (or where tracing is not allowed) these tests are skipped and say so.
`pytest tests/faults/test_strace_kill.py --every-call -s` takes each call instead of some of them, for hours.
"""

import math
import random
import re
import signal
import sys
import time
from collections import Counter, defaultdict

import pytest
from tests.faults.serving import Copy, Pourer, Sandbox, notifications, twin, until
from tests.receiver.process import Clock

from octo_sync.journal import Journal, store

CALLS = ("write", "pwrite64", "fsync", "fdatasync", "rename", "ftruncate", "unlink", "link")
PATIENCE = 120.0
"""Seconds to wait for a kill: a busy machine takes long to start a program that is traced."""
KILLED = -signal.SIGKILL


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with Sandbox(tmp_path_factory.mktemp("sandbox"), bookings=40, products=2, days=15, more=["--frozen"]) as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def template(service, tmp_path_factory):
    """A project that has been pulled once, with a subscription; and its secret."""
    copy = Copy(tmp_path_factory.mktemp("template") / "copy", service)
    with copy.serve() as program:
        copy.first_landing()
        secret = copy.secret()
        assert program.terminate()[0] == 143
    return copy, secret


def counted(log):
    """Call → how often the busiest thread made it, on files of the project, from a trace."""
    threads = defaultdict(Counter)
    for line in log.read_text(errors="replace").splitlines():
        if (found := re.match(r"(\d+) +(\w+)\(", line)) and found[2] in CALLS:
            threads[found[2]][found[1]] += 1
    return {call: max(by_thread.values()) for call, by_thread in threads.items()}


def chosen(counts, request, tier, name):
    """Which calls to die at: some of all that there were, the rarer kinds as likely as the frequent ones.

    The kill comes to the first thread that makes its own so-manieth call of the kind.
    """
    every = [(call, number) for call, most in sorted(counts.items()) for number in range(1, most + 1)]
    if request.config.getoption("--every-call", default=False):
        return every
    some = tier.choose(1, 3, 6)
    chance = random.Random(f"{name}/{tier.seed}")
    kinds = defaultdict(list)
    for call, number in every:
        kinds[call].append((call, number))
    for numbers in kinds.values():
        chance.shuffle(numbers)
    taken = []
    while len(taken) < min(some, len(every)):
        taken += [numbers.pop() for numbers in kinds.values() if numbers]
    chance.shuffle(taken)
    return sorted(taken[:some])


def tracing(strace, log):
    return [strace, "-f", "-qq", "-o", log, "-e", f"trace={','.join(CALLS)}"]


def dying(strace, call, number):
    return [*tracing(strace, "/dev/null"), "-e", f"inject={call}:signal=SIGKILL:when={number}"]


def intact(copy, acknowledged):
    """What was acknowledged is in the journal, and nothing was damaged."""
    with Journal.open(copy.directory / "octo.journal.sqlite", clock=Clock()) as journal:
        assert journal.recovered_from is None
    assert copy.kept(acknowledged) == acknowledged
    assert not list(copy.directory.glob("*.corrupt-*"))


def receive(copy, secret, bodies, wrapper, most=math.inf):
    """Deliver to a receiver until it dies or `most` are acknowledged; what was acknowledged, and its exit code if it died."""
    with copy.serve("--only", "receiver", wrapper=wrapper) as program:
        pourers = [Pourer(copy, secret, bodies, f"{n}", n) for n in range(3)]
        for pourer in pourers:
            pourer.start()
        until(
            lambda: program.code is not None or sum(sum(p.acknowledged.values()) for p in pourers) >= most,
            PATIENCE,
            program.said,
        )
        code = program.code
        program.kill()
        return sum((p.end() for p in pourers), Counter()), code


@pytest.mark.deep(30)
def test_receiving_survives_a_kill_at_each_of_its_calls(tmp_path, strace, service, template, request, tier):
    copy, secret = template
    bodies = notifications(service.state())
    counting = twin(copy, tmp_path / "counting")
    acknowledged, _ = receive(counting, secret, bodies, tracing(strace, tmp_path / "trace"), 40)
    assert counting.kept(acknowledged) == acknowledged
    calls = chosen(counted(tmp_path / "trace"), request, tier, "receive")
    for call, number in calls:
        one = twin(copy, tmp_path / f"{call}-{number}")
        acknowledged, code = receive(one, secret, bodies, dying(strace, call, number))
        assert code == KILLED, (call, number, one.log.read_text())
        intact(one, acknowledged)
    assert calls, "kills that never come test nothing"
    print(f"\nreceiving: killed at {len(calls)} calls")  # noqa: T201


def asked_until_dead(copy, program):
    """Ask whether it is ready, as the one was asked whose calls were counted; the exit code."""
    while program.code is None:
        copy.is_ready()
        assert time.monotonic() < program.started + PATIENCE, program.said()
        time.sleep(0.02)
    return program.code


def test_opening_survives_a_kill_at_each_call_of_creating_and_migrating(tmp_path, strace, service, request, tier):
    counting = Copy(tmp_path / "counting", service)
    with counting.serve("--only", "receiver", wrapper=tracing(strace, tmp_path / "trace")) as program:
        counting.ready(program)
        program.kill()
    calls = chosen(counted(tmp_path / "trace"), request, tier, "opening")
    for call, number in calls:
        copy = Copy(tmp_path / f"{call}-{number}", service)
        with copy.serve("--only", "receiver", wrapper=dying(strace, call, number)) as program:
            assert asked_until_dead(copy, program) == KILLED, program.said()
        # Each further process opens what the one before has left.
        with Journal.open(copy.directory / "octo.journal.sqlite", clock=Clock()) as journal:
            assert journal.recovered_from is None
            assert journal.subjects.dirty_count() == 0
            assert journal.endpoints.rows() == []
        assert copy.number("select max(version) from schema_version") == store.newest_schema()
        assert not list(copy.directory.glob("*.corrupt-*"))
    assert calls
    print(f"\nopening: killed at {len(calls)} calls")  # noqa: T201


# Small files are left alone, and those that were looked at lately: this program takes care of them all the same.
CARING = """
import sys
from octo_sync.pipeline import CareSettings
CareSettings.__init__.__kwdefaults__ |= {"small": 0, "every": 0.0}
from octo_sync.cli import main
main(sys.argv[1:])
"""


@pytest.mark.deep(40)
def test_landing_and_publishing_survive_a_kill_at_each_of_their_calls(
    tmp_path, strace, service, template, request, tier
):
    copy, _ = template
    chance, caring = random.Random("land"), [sys.executable, "-c", CARING]

    def changed(name):
        service.change(chance, 12)
        return twin(copy, tmp_path / name)

    def killed(call, number):
        """A project whose sync died at this call, or at an earlier one: other changes need fewer of them."""
        while number:
            one = changed(f"{call}-{number}-{chance.random()}")
            code, said = one.run("sync", "--full", wrapper=dying(strace, call, number), within=PATIENCE, program=caring)
            if code == KILLED:
                return one, said
            assert code == 0, said
            number //= 2
        raise AssertionError(f"{call} never came")

    counting = changed("counting")
    assert counting.run("sync", "--full", wrapper=tracing(strace, tmp_path / "trace"), program=caring)[0] == 0
    counts = counted(tmp_path / "trace")
    assert ".octo.duckdb.anew" in (tmp_path / "trace").read_text(), "care of the files is among what is killed"
    assert counts["fdatasync"] < 100, "statements share a transaction, or each is a sync of the disk"
    calls = chosen(counts, request, tier, "land")
    for call, number in calls:
        one, said = killed(call, number)
        assert "Traceback" not in said, said
        code, said = one.run("sync")
        assert code == 0, said
        code, said = one.run("verify", "--live")
        assert code == 0, (call, number, said)
        left = [f.name for f in one.directory.iterdir() if f.name.startswith(".octo.read")]
        assert left == [], (call, number)
    assert calls
    print(f"\nlanding: killed at {len(calls)} calls")  # noqa: T201
