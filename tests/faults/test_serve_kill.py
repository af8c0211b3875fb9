"""`octo-sync serve` under load, killed with SIGKILL again and again: what was acknowledged is there, and the copy ends equal.

`pytest tests/faults/test_serve_kill.py --tier deep -s` kills more often and shows the figures.
"""

import functools
import random
import sys
import time

import pytest
from tests.faults.serving import Copy, Pourer, Sandbox, figures, notifications, until

READY = 30.0
"""Seconds that a start after a kill may take; about one on a quiet machine, as the figures that are printed show."""


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.deep(60)) for part in (1, 2, 3))])
def test_no_acknowledged_delivery_is_lost_and_after_the_last_kill_the_copy_ends_equal(part, tmp_path, tier):
    kills = tier.choose(1, 12, 50)
    chance = random.Random(f"serve-kill/{part}/{tier.seed}")
    # Its clock stands still: every change of a booking has the same utcUpdatedAt, so no clock can put them in order.
    with Sandbox(tmp_path / "sandbox", bookings=80, products=3, days=25, more=["--frozen"]) as sandbox:
        copy = Copy(tmp_path / "copy", sandbox)
        # The bytecode of its modules stays, as it does where a program is installed: compiling takes longer than starting.
        if sys.dont_write_bytecode:
            installed = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(tmp_path / "bytecode")}
            copy.serve = functools.partial(copy.serve, env=installed)
        with copy.serve() as program:
            copy.first_landing()
            secret = copy.secret()
            program.kill()
        pourer = Pourer(copy, secret, notifications(sandbox.state()), f"{part}", part, pause=0.003)
        pourer.start()
        ready, alone, resumed = [], [], []
        for _ in range(kills):
            _live(copy, chance, ready, alone, resumed)
        acknowledged = pourer.end()
        assert sum(acknowledged.values()) > kills, "deliveries that never come in test nothing"

        sandbox.forget_requests()
        assert copy.owed() > 0, "the last process has to find work"
        with copy.serve() as program:
            _readied(copy, program, ready, alone)
            until(sandbox.requests, 10, program.said)
            resumed.append(time.monotonic() - program.started - program.starved())
            until(lambda: sandbox.deliveries()["idle"], 30, "every delivery of the sandbox came in")
            took = copy.equal(within=60)
            assert copy.kept(acknowledged) == acknowledged
            theirs = sandbox.acknowledged()
            assert theirs - copy.stored() == {}
            code, stopped = program.terminate()
        assert code == 143
        assert "Traceback" not in copy.log.read_text(), copy.log.read_text()[-4000:]
        assert copy.number("select count(*) from subjects where quarantined_at is not null") == 0
        assert not list(copy.directory.glob("*.corrupt-*"))
    print(  # noqa: T201 - the figures of the docs
        f"\n{kills} kills, {sum(acknowledged.values())} + {sum(theirs.values())} deliveries acknowledged; "
        f"ready: {figures(ready)}, with a processor to itself {figures(alone)}; "
        f"first request, with a processor to itself: {figures(resumed)}; equal after {took:.1f} s; stopped in {stopped:.2f} s"
    )
    assert sorted(alone)[len(alone) // 2] < READY, figures(alone)
    assert max(resumed) < 100


def _readied(copy, program, ready, alone):
    """Wait until it is ready: seconds as they passed, and without those that it waited for a processor."""
    ready.append(copy.ready(program))
    alone.append(ready[-1] - program.starved())


def _live(copy, chance, ready, alone, resumed):
    """One life: the whole program or the receiver alone, killed while it opens, receives, fetches, lands or publishes."""
    sandbox = copy.sandbox
    whole = chance.random() < 0.3
    sandbox.forget_requests()
    with copy.serve(*([] if whole else ["--only", "receiver"])) as program:
        if chance.random() < 0.15:
            time.sleep(chance.uniform(0.2, 1.2))
        else:
            _readied(copy, program, ready, alone)
            sandbox.change(chance, chance.randrange(1, 4))
            if whole and chance.random() < 0.5:
                until(sandbox.requests, 10, program.said)
                resumed.append(time.monotonic() - program.started - program.starved())
            time.sleep(chance.random() * 0.4)
        assert program.code is None, program.said()
        program.kill()


@pytest.mark.deep(20)
def test_what_had_landed_before_a_kill_is_published_after_it(tmp_path):
    with Sandbox(tmp_path / "sandbox", bookings=80, products=2, days=15, more=["--frozen"]) as sandbox:
        copy = Copy(tmp_path / "copy", sandbox, publish_every="1h")
        with copy.serve() as program:
            copy.first_landing()
            copy.equal(within=30)
            sandbox.change(random.Random(1), 5)
            until(lambda: sandbox.deliveries()["idle"], 10, "delivered")
            copy.until_clean()
            program.kill()
        assert copy.run("verify", "--live")[0] == 3, "nothing was left to publish"
        with copy.serve():
            copy.equal(within=30)
