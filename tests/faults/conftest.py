"""How much is killed: `pytest tests/faults/test_strace_kill.py --tier deep --every-call`."""

import shutil
import subprocess

import pytest
from tests.absent import absent


def pytest_addoption(parser):
    parser.addoption("--every-call", action="store_true", help="SIGKILL at each system call, not at some of them.")


@pytest.fixture(scope="session")
def strace():
    """The path of strace, where there is one that may trace; whatever else fails under it is a failure."""
    found = shutil.which("strace")
    if found is None:
        absent("strace is not installed (apt-get install strace)")
    tried = subprocess.run([found, "-f", "-e", "trace=write", "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"tracing is not allowed here: {tried.stderr.strip()[-200:]}")
    return found
