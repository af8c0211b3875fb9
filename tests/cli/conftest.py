"""The real program as a process, against a sandbox over real sockets."""

# ruff: noqa: S310 - our own sandbox

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from tests.forks import forks

from octo_sync.sandbox.config import SandboxConfig
from octo_sync.sandbox.server import Sandbox

PIPELINE = """\
[connections.shop]
base_url = "{url}"
token = {{ env = "SHOP_TOKEN", default = "sandbox-token-all" }}

[connections.shop.limits]
attempts = 2
backoff = 0.05
concurrency = 4

[sync]
attempts = 2
backoff = 0.05
backoff_cap = 0.1

[horizon]
bookings = "-60d..+60d"
availability = "0d..+45d"
"""
CLEAN = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "LANG": "C.UTF-8", "COLUMNS": "120"}


class Program:
    """Runs `octo-sync` in a project directory; with `real` as a new process from its first line."""

    def __init__(self, directory):
        self.directory = Path(directory)

    def arguments(self, *words):
        return [sys.executable, "-m", "octo_sync", *map(str, words)]

    def __call__(self, *words, stdin="", environment=None, real=False, **more):
        env = CLEAN | (environment or {})
        if not (real or more):
            return forks().run(words, self.directory, env, stdin)
        return subprocess.run(
            self.arguments(*words),
            cwd=self.directory,
            env=env,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            **more,
        )

    def start(self, *words, environment=None, program=None):
        """Start the command, or a `program` of Python with its words."""
        return subprocess.Popen(
            [sys.executable, "-c", program, *words] if program else self.arguments(*words),
            preexec_fn=_hearing,  # noqa: PLW1509 - it only sets signals
            cwd=self.directory,
            env=CLEAN | (environment or {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def ok(self, *words, **more):
        done = self(*words, **more)
        assert done.returncode == 0, (words, done.returncode, done.stdout, done.stderr)
        return done.stdout

    def json(self, *words, **more):
        document = json.loads(self.ok(*words, "--json", **more))
        assert document["schema_version"] == 1
        return document


class Service:
    """The sandbox, and its control plane."""

    def __init__(self, running):
        self.base_url, self._control = running.base_url, running.control_url

    def control(self, method, path, body=None):
        request = urllib.request.Request(
            self._control + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read() or "null")

    def refuse_a_product(self):
        """Availability of one product is refused for good."""
        products = self.control("GET", "/state")["products"]
        self.faults({"fault": "option_400", "product_id": products[0]["id"]})

    def faults(self, *faults):
        self.control("PUT", "/faults", list(faults))


@pytest.fixture(scope="session")
def _running():
    with Sandbox(SandboxConfig(products=3, bookings=120, days=50)) as running:
        yield running


@pytest.fixture
def service(_running):
    box = Service(_running)
    yield box
    box.faults()


@pytest.fixture(scope="session")
def _synced(_running, tmp_path_factory):
    """A project that was synced once, to be copied."""
    directory = tmp_path_factory.mktemp("synced")
    (directory / "pipelines").mkdir()
    (directory / "pipelines" / "shop.toml").write_text(PIPELINE.format(url=_running.base_url))
    Program(directory).ok("sync")
    return directory


@pytest.fixture(scope="session")
def looked(_synced):
    """The synced project, for tests that only look."""
    return Program(_synced)


@pytest.fixture
def project(_synced, tmp_path):
    """A copy of the synced project, for tests that change it."""
    directory = tmp_path / "project"
    shutil.copytree(_synced, directory)
    return Program(directory)


@pytest.fixture
def fresh(_running, tmp_path):
    """A project that was never synced."""
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines" / "shop.toml").write_text(PIPELINE.format(url=_running.base_url))
    return Program(tmp_path)


@pytest.fixture
def empty(tmp_path):
    """A directory with nothing in it."""
    return Program(tmp_path)


def wait_until(what, seconds=200):
    """Until the function gives something true; what it gave."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := what():
            return found
        time.sleep(0.02)
    raise AssertionError("it did not happen")


def without_override():
    """Root in the child obeys file modes like everybody else (drops CAP_DAC_OVERRIDE before the program starts)."""
    if os.geteuid() == 0:
        ctypes.CDLL(None).prctl(24, 1, 0, 0, 0)


def _hearing():
    """A child inherits what is ignored: in the background of a shell that is Ctrl-C, under nohup a closed terminal."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def finish(process, number=None):
    """Send a signal, wait for the end: (exit code, stdout, stderr)."""
    if number is not None:
        process.send_signal(number)
    try:
        out, err = process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        out, err = process.communicate()
        raise AssertionError(f"it did not end: {out} {err}") from None
    return process.returncode, out, err
