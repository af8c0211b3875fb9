"""Virtual days of the whole system under every fault end equal. More: `python -m tests.simulation --seeds N`."""

import re
import subprocess
import sys

import pytest


def run(*arguments):
    return subprocess.run([sys.executable, "-m", *arguments], capture_output=True, text=True, check=False, timeout=3600)


def test_days_full_of_faults_end_equal_and_none_of_the_faults_was_missing(tier):
    days = tier.choose(4, 8, 200)
    done = run("tests.simulation", "--seeds", str(days), "--first", str(1 + 1000 * tier.seed))
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert f"{days} virtual days, 0 red" in done.stdout


def test_days_of_three_workers_that_die_and_stand_still_end_equal(tier):
    days, first = tier.choose((1, 2), (1, 2), (40, 2 + 1000 * tier.seed))
    done = run("tests.simulation", "--workers", "3", "--seeds", str(days), "--first", str(first))
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert f"{days} virtual days, 0 red" in done.stdout
    # Of many days the simulation itself says what never happened.
    assert days > 1 or re.search(r"connection taken over from one that stood still +[1-9]", done.stdout)


@pytest.mark.parametrize(
    "days",
    [
        pytest.param(("--seeds", "3", "--first", "4"), id="one worker"),
        pytest.param(("--seeds", "2", "--first", "2", "--workers", "3"), id="three"),
    ],
)
@pytest.mark.deep(40)
def test_one_seed_has_one_trace(days):
    traces = [re.findall(r"trace (\w+)", run("tests.simulation", *days, "--jobs", jobs).stdout) for jobs in ("1", "2")]
    assert len(traces[0]) == int(days[1])
    assert traces[0] == traces[1]
