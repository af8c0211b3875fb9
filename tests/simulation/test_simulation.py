"""Virtual days of the whole system under every fault end equal. More: `python -m tests.simulation --seeds N`."""

import re
import subprocess
import sys

import pytest


def run(*arguments):
    return subprocess.run([sys.executable, "-m", *arguments], capture_output=True, text=True, check=False, timeout=3600)


def test_days_full_of_faults_end_equal_and_none_of_the_faults_was_missing(tier):
    days = tier.choose(5, 10, 200)
    done = run("tests.simulation", "--seeds", str(days), "--first", str(1 + 1000 * tier.seed))
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert f"{days} virtual days, 0 red" in done.stdout


@pytest.mark.deep(40)
def test_one_seed_has_one_trace():
    traces = [
        re.findall(r"trace (\w+)", run("tests.simulation", "--seeds", "3", "--first", "4", "--jobs", jobs).stdout)
        for jobs in ("1", "2")
    ]
    assert len(traces[0]) == 3
    assert traces[0] == traces[1]
