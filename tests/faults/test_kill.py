"""`kill -9` at any moment: the next run needs no human, and ends with the truth."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.flows.harness import NOON, Project, Service, small

WORKER = Path(__file__).with_name("worker.py")


def start(copy, *flags, **more):
    batch = copy.settings.get("batch_bodies", 0)
    return subprocess.Popen(
        [sys.executable, WORKER, copy.directory, NOON.isoformat(), f"batch={batch}", *flags],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **more,
    )


def finish(copy, *flags, **more):
    """Run to the end; exit code, what it said, what it complained about."""
    process = start(copy, *flags, **more)
    out, err = process.communicate(timeout=120)
    return process.returncode, out.split("\n"), err


def died_of(process, after):
    """Kill it so many seconds after it owns the project; what it had said."""
    said = process.stdout.readline()
    time.sleep(after)
    process.kill()
    rest, errors = process.communicate(timeout=120)
    assert "Traceback" not in errors, errors
    return said + rest


@pytest.fixture
def copy(tmp_path, service):
    return Project(tmp_path / "killed", service, sync={"batch_bodies": 4}, languages=("en", "pt"))


def test_after_kills_at_random_moments_the_next_run_ends_with_the_truth(copy, service, tier):
    rng, kills = random.Random(20261120 + tier.seed), tier.choose(1, 10, 10)
    killed = 0
    for round_ in range(kills):
        flags = ["full"] if round_ % 3 == 0 else ["publish"] if round_ % 3 == 1 else []
        said = died_of(start(copy, *flags), rng.random() * 0.7)
        assert said.startswith("open"), said
        killed += "ok" not in said
        service.traffic(5, seed=f"kill/{round_}", kinds=["book", "note", "cancel", "capacity", "move"])
    assert killed >= kills // 2, "kills that come too late test nothing"
    code, said, errors = finish(copy, "full")
    assert (code, said[:2]) == (0, ["open", "ok"]), errors
    assert copy.differences() == []
    assert list(copy.directory.glob(".octo.spool/*.ndjson")) == []
    assert copy.query("select status, count(*) from ops.runs where status not in ('ok', 'killed') group by 1") == []


@pytest.mark.deep(8)
def test_a_killed_run_is_taken_up_and_what_had_landed_is_not_asked_for_again(copy, service):
    copy.settings["batch_bodies"] = 1
    copy.write()
    service.faults({"fault": "latency", "seconds": 0.05})
    process = start(copy)
    process.stdout.readline()
    while len(service.requests()) < 20:
        time.sleep(0.02)
    process.kill()
    process.communicate()
    first = len(service.requests())
    done = {tuple(r) for r in copy.query("select resource, key from ops.coverage")}
    assert done
    service.faults()
    service.forget_requests()
    code, said, errors = finish(copy)
    assert (code, said[1]) == (0, "ok"), errors
    assert len(service.requests()) < 55 - len(done) // 2, (first, len(done))
    assert not (("supplier", "[]") in done and any(r["path"] == "/supplier" for r in service.requests()))
    assert copy.differences() == []


@pytest.mark.deep(8)
def test_a_process_that_sleeps_in_the_middle_keeps_its_right_and_finishes(copy, service):
    """SIGSTOP and, when somebody else has been refused meanwhile, SIGCONT."""
    service.faults({"fault": "latency", "seconds": 0.1})
    process = start(copy, "full")
    process.stdout.readline()
    while len(service.requests()) < 6:
        time.sleep(0.01)
    process.send_signal(signal.SIGSTOP)
    code, said, _ = finish(copy)
    assert code == 3
    assert said[0].startswith(("error LeaseHeld", "error WarehouseLocked"))
    process.send_signal(signal.SIGCONT)
    out, errors = process.communicate(timeout=120)
    assert "ok" in out, errors
    assert copy.differences() == []


@pytest.mark.deep(8)
def test_a_service_that_dies_in_the_middle_costs_nothing_but_time(tmp_path):
    """Stopped after some answers, started again on the same port with the same data: the run is taken up."""
    config = small(bookings=100, days=40)
    with Service(config) as first:
        port = int(first.base_url.rsplit(":", 1)[1].split("/")[0])
        copy = Project(
            tmp_path / "down",
            first,
            sync={"attempts": 2, "batch_bodies": 1},
            limits={"attempts": 1, "backoff": "0.01s", "deadline": "1s", "concurrency": 2},
        )
        first.faults({"fault": "latency", "seconds": 0.03})
        process = start(copy)
        process.stdout.readline()
        while len(first.requests()) < 10:
            time.sleep(0.01)
    out, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert out.split() in (["failed"], ["partial"])
    done = {tuple(r) for r in copy.query("select resource, key from ops.coverage")}
    assert done
    with Service(config, port=port) as again:
        copy.service = again
        code, said, errors = finish(copy)
        assert (code, said[1]) == (0, "ok"), errors
        assert copy.differences() == []
        assert not (("supplier", "[]") in done and any(r["path"] == "/supplier" for r in again.requests()))
