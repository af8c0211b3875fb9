"""The installed program over real sockets and files: a sandbox and a project as processes of their own.

Every wait has a deadline, and every process is ended by whoever started it. What processes say goes to files beside the
project, and into the message of whatever fails.
"""

import contextlib
import datetime as dt
import http.client
import itertools
import json
import os
import random
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

from tests.forks import forks

from octo_sync.flows.webhooks.plan import HEADER

PROGRAM = Path(sys.executable).with_name("octo-sync")
TOKEN = "sandbox-token-all"
READY_WITHIN = 30.0
"""Seconds that a process may take to be ready on a quiet machine."""
SLACK = 10
"""How many times what is plenty on a quiet machine a wait lasts before it gives up: it ends what hangs and judges no speed."""


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def until(condition, within, what):
    """Wait until `condition()` is true and return it; fail with a sentence after `SLACK` times `within` seconds."""
    ends = time.monotonic() + SLACK * within
    while not (found := condition()):
        assert time.monotonic() < ends, f"{what() if callable(what) else what}: not within {SLACK * within:g} s"
        time.sleep(0.02)
    return found


def asked(method, host, path, body=None, headers=None, *, timeout=20.0 * SLACK):
    """One request on a connection of its own: status and body."""
    connection = http.client.HTTPConnection(host, timeout=timeout)
    try:
        content = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        connection.request(method, path, content, headers or {})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


class Program:
    """A process of the installed program, or a `wrapper` that runs it; `started` is when, on the monotonic clock."""

    program = (PROGRAM,)

    def __init__(self, *arguments, cwd, log, env=None, wrapper=()):
        self.log = log
        self._said = log.open("ab")
        self.started = time.monotonic()
        self._process = subprocess.Popen(
            [*map(str, wrapper), *self.program, *map(str, arguments)],
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=self._said,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(env or {})},
            start_new_session=True,  # so that it can be ended together with what it runs
        )

    @property
    def pid(self):
        return self._process.pid

    @property
    def code(self):
        return self._process.poll()

    def starved(self):
        """Seconds that its main thread had no processor although it could run: what a busy machine adds. 0 if not Linux."""
        told = Path(f"/proc/{self.pid}/schedstat")
        return int(told.read_text().split()[1]) / 1e9 if told.exists() else 0.0

    def send(self, number):
        self._process.send_signal(number)

    def wait(self, within=20.0):
        code = self._process.wait(SLACK * within)
        self._said.close()
        return code

    def kill(self):
        """SIGKILL, also for what it started; the exit code."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        return self.wait()

    def terminate(self, within=20.0):
        """SIGTERM; exit code and how long it took."""
        began = time.monotonic()
        self._process.terminate()
        return self.wait(within), time.monotonic() - began

    def said(self):
        return self.log.read_text(errors="replace")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._process.poll() is None:
            # A stopped process dies of SIGKILL as well.
            self.kill()
        elif not self._said.closed:
            self._said.close()


class Sandbox(Program):
    """The built-in service, with its control plane."""

    program = (sys.executable, "-m", "octo_sync.sandbox")
    token = TOKEN
    """Whose subscriptions are looked at."""

    def __init__(self, directory, *, bookings=150, products=4, days=40, more=()):
        directory.mkdir(parents=True, exist_ok=True)
        self.port, self._told = free_port(), None
        size = ["--bookings", bookings, "--products", products, "--days", days]
        # Tried again often and for long: what a killed receiver did not take comes again.
        patience = ["--retry-base", "0.1", "--retry-max", "1", "--retry-attempts", "120"]
        arguments = ["--port", self.port, *size, *patience, *more]
        super().__init__(*arguments, cwd=directory, log=directory / "sandbox.log")
        self.host = f"127.0.0.1:{self.port}"
        self.base_url = f"http://{self.host}/octo/v1"
        try:
            until(self._answers, READY_WITHIN, self.said)
        except BaseException:
            self.kill()
            raise

    def _answers(self):
        assert self.code is None, self.said()
        with contextlib.suppress(OSError, http.client.HTTPException):
            return asked("GET", self.host, "/_sandbox/clock")[0] == 200
        return False

    def control(self, method, path, body=None):
        status, content = asked(method, self.host, f"/_sandbox{path}", body)
        assert status < 300, content
        return json.loads(content) if content else None

    def octo(self, path):
        headers = {"Authorization": f"Bearer {self.token}", "Octo-Capabilities": "octo/notifications"}
        status, content = asked("GET", self.host, f"/octo/v1{path}", headers=headers)
        assert status == 200, content
        return json.loads(content)

    def faults(self, *specs):
        self.control("PUT", "/faults", list(specs))

    def change(self, chance, changes):
        """Make changes of which everything is notified to us; a sale takes seats too, of which nobody is told."""
        state = self._told or self._remember()
        for number in (chance.randrange(1_000_000) for _ in range(changes)):
            product = chance.choice(state["products"])["id"]
            kind = chance.choice(["booking", "booking", "booking", "product", "seats"])
            if kind == "booking":
                uuid = chance.choice(state["bookings"])["uuid"]
                self.control("POST", f"/admin/bookings/{uuid}", {"notes": f"note {number}"})
            elif kind == "product":
                self.control("PATCH", f"/admin/products/{product}", {"internal_name": f"name {number}"})
            else:
                first = dt.date.fromisoformat(state["today"]) + dt.timedelta(days=chance.randrange(20))
                days = {"from": first.isoformat(), "to": (first + dt.timedelta(days=chance.randrange(4))).isoformat()}
                seats = {"action": "capacity", "capacity": 20 + number % 40}
                self.control("POST", "/admin/availability", {"product_id": product, **days, **seats})

    def _remember(self):
        """Products, and the bookings whose changes our token is told."""
        state = self.state()
        self._told = {**state, "bookings": [b for b in state["bookings"] if b["token"] == "all"]}
        assert len(self._told["bookings"]) > 5, "too few bookings of our own"
        return self._told

    def traffic(self, changes, *, seed, kinds=None):
        """Changes of all kinds, as resellers and administrators make them."""
        body = {"changes": changes, "seed": seed} | ({"kinds": kinds} if kinds else {})
        return self.control("POST", "/traffic", body)["changes"]

    def state(self):
        return self.control("GET", "/state")

    def requests(self):
        """The API requests so far (the last 2,000 of them)."""
        return self.control("GET", "/requests")["requests"]

    def forget_requests(self):
        self.control("DELETE", "/requests")

    def deliveries(self):
        return self.control("GET", "/deliveries")

    def acknowledged(self):
        """The bodies of deliveries that were answered 200, as often as they were."""
        return Counter(
            canonical(each["body"])
            for each in self.deliveries()["deliveries"]
            for attempt in each["attempts"]
            if attempt["status"] == 200
        )

    def secrets(self):
        """URL → secret header of every subscription, as a service has them."""
        self.control("PUT", "/quirks", {"subscription_headers_shown": True})
        try:
            found = self.octo("/notifications/subscriptions")
        finally:
            self.control("PUT", "/quirks", {"subscription_headers_shown": False})
        return {
            one["url"]: next(value for name, value in one["headers"].items() if name.lower() == HEADER.lower())
            for one in found
        }


def canonical(body):
    """A body's JSON, however it was spelled."""
    return json.dumps(json.loads(body) if isinstance(body, bytes) else body, sort_keys=True)


def marked(body, mark):
    """The body with a mark to tell it apart: the notification's own id, which is stored and means nothing to us."""
    return canonical(body | {"id": f"mark {mark}"})


class Copy:
    """A project directory beside a sandbox, and the processes that work on it."""

    def __init__(
        self,
        directory,
        sandbox,
        *,
        limits="",
        confirm=(0.5, 2),
        journal="octo.journal.sqlite",
        publish_every="0.5s",
        more="",
    ):
        directory.mkdir(parents=True, exist_ok=True)
        self.directory, self.sandbox, self.port = directory, sandbox, free_port()
        self.log, self._journal = directory / "serve.log", directory / journal
        # The days asked for reach beyond those the sandbox has, so that a midnight in the middle changes nothing.
        (directory / "pipeline.toml").write_text(
            f'name = "copy"\njournal = "{journal}"\n'
            '[horizon]\nbookings = "-30d..+60d"\navailability = "0d..+60d"\nnear = "0d..+10d"\n'
            f'[connections.main]\nbase_url = "{sandbox.base_url}"\n'
            f'token = {{ env = "OCTO_TEST_TOKEN_UNSET", default = "{TOKEN}" }}\n'
            f"[connections.main.limits]\n{limits}\n"
            f'[webhooks]\nurl = "http://127.0.0.1:{self.port}/hooks"\nbind = "127.0.0.1:{self.port}"\n'
            f'[sync]\nconfirm_after = {json.dumps([f"{look}s" for look in confirm])}\nbackoff = "0.2s"\nbackoff_cap = "2s"\n'
            f'[publish]\nevery = "{publish_every}"\n{more}\n'
        )

    @property
    def host(self):
        return f"127.0.0.1:{self.port}"

    def serve(self, *arguments, **how):
        """`octo-sync serve`; returns at once."""
        return Program("serve", "-p", "pipeline.toml", *arguments, cwd=self.directory, log=self.log, **how)

    def is_ready(self, port=None):
        with contextlib.suppress(OSError, http.client.HTTPException):
            return asked("GET", f"127.0.0.1:{port or self.port}", "/readyz", timeout=5 * SLACK)[0] == 200
        return False

    def ready(self, program, within=READY_WITHIN, *, port=None):
        """Wait for /readyz; seconds since the process was started."""

        def answers():
            assert program.code is None, program.said()
            return self.is_ready(port)

        until(answers, within, lambda: f"ready {program.said()}")
        return time.monotonic() - program.started

    def deliver(self, body, secret, *, port=None, timeout=10.0 * SLACK):
        """One delivery on a connection of its own: status, and the Retry-After header."""
        url, value = secret
        connection = http.client.HTTPConnection(f"127.0.0.1:{port or self.port}", timeout=timeout)
        try:
            connection.request("POST", url, body, {HEADER: value})
            answer = connection.getresponse()
            answer.read()
            return answer.status, answer.headers.get("retry-after")
        finally:
            connection.close()

    def secret(self):
        """Path and secret of this project's subscription; waits until there is one."""

        def made():
            for url, value in self.sandbox.secrets().items():
                if f":{self.port}/" in url:
                    return "/" + url.split("/", 3)[3], value
            return None

        return until(made, READY_WITHIN, "a subscription")

    def run(self, *arguments, within=60.0, wrapper=(), program=(PROGRAM,)):
        """A command to its end: exit code and what it said; with a `wrapper` it is a process from its first line."""
        words = [*arguments, "-p", "pipeline.toml"]
        if not wrapper:
            done = forks().run(words, self.directory, dict(os.environ), within=SLACK * within)
            return done.returncode, done.stdout + done.stderr
        done = subprocess.run(
            [*map(str, wrapper), *program, *words],
            cwd=self.directory,
            capture_output=True,
            text=True,
            timeout=SLACK * within,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    def equal(self, within=60.0):
        """Wait until `verify --live` says equal; seconds that took, the command's own time included."""
        began = time.monotonic()
        while True:
            self.until_clean(within)
            code, said = self.run("verify", "--live", within=60)
            took = time.monotonic() - began
            if code == 0:
                return took
            assert took < SLACK * within, (
                f"verify --live: exit {code} after {took:.1f} s\n{said}\n{self.log.read_text()[-3000:]}"
            )
            time.sleep(0.5)

    def a_day_passes(self):
        """While nobody serves: the schedules ran last more than a day ago, as far as the journal knows."""
        ago = (dt.datetime.now(dt.UTC) - dt.timedelta(hours=25)).isoformat()
        with contextlib.closing(sqlite3.connect(self._journal, timeout=10 * SLACK)) as opened, opened:
            changed = opened.execute("update settings set value = ? where name like 'schedule %'", [ago]).rowcount
        assert changed, "no schedule ever ran"

    # -- the journal, read beside whoever writes it ---------------------------------------------------------------------

    def journal(self, sql, *parameters):
        """Ask the journal; an empty list while there is none."""
        if not self._journal.exists():
            return []
        with contextlib.closing(
            sqlite3.connect(f"{self._journal.as_uri()}?mode=ro", uri=True, timeout=10 * SLACK)
        ) as opened:
            return opened.execute(sql, parameters).fetchall()

    def number(self, sql, *parameters):
        """The one number that a question to the journal has as its answer; 0 while there is no journal."""
        found = self.journal(sql, *parameters)
        return found[0][0] if found else 0

    def is_writable(self):
        """Whether nobody is in the middle of a transaction of the journal right now."""
        with contextlib.closing(sqlite3.connect(self._journal, timeout=0.2, isolation_level=None)) as opened:
            try:
                opened.execute("begin immediate")
            except sqlite3.OperationalError:
                return False
            opened.execute("rollback")
            return True

    def stored(self):
        """The bodies of all deliveries, as often as they were stored."""
        return Counter(canonical(body) for (body,) in self.journal("select body from deliveries"))

    def kept(self, bodies):
        """How often each of these bodies was stored: what was sent once and acknowledged has to be there once."""
        stored = self.stored()
        return Counter({body: stored[body] for body in bodies})

    def owed(self):
        """Subjects to fetch and confirming looks to come."""
        dirty = "select count(*) from subjects where wanted_seq > landed_seq and quarantined_at is null"
        return self.number(f"select ({dirty}) + (select count(*) from timers)")

    def until_clean(self, within=60.0):
        """Wait until nothing is owed."""
        until(lambda: self.owed() == 0, within, lambda: f"{self.owed()} owed\n{self.log.read_text()[-3000:]}")

    def first_landing(self, within=60.0):
        """Wait until the project was pulled once and nothing is owed."""
        landed = "select count(*) from subjects where landed_seq > 0 and kind = 'availability'"
        until(lambda: self.number(landed) > 0, within, lambda: self.log.read_text()[-3000:])
        self.until_clean(within)


def twin(template, directory):
    """The same project once more, for another death."""
    shutil.copytree(template.directory, directory)
    made = object.__new__(Copy)
    made.__dict__ = {**vars(template), "directory": directory, "log": directory / "serve.log"}
    made._journal = directory / template._journal.name
    return made


class Pourer(threading.Thread):
    """Delivers real notifications as fast as answers come, until its receiver is gone; notes what was acknowledged.

    Each body has a mark of its own and is sent once: one that was stored unanswered cannot stand for one that was lost.
    """

    def __init__(self, copy, secret, bodies, mark, seed, *, pause=0.0):
        super().__init__(daemon=True)
        self._copy, self._secret, self._bodies, self._mark = copy, secret, bodies, mark
        self._numbers = itertools.count(1)
        self._chance = random.Random(seed)
        self._pause = pause
        self.over = threading.Event()
        self.acknowledged = Counter()
        self.refused = Counter()

    def run(self):
        while not self.over.is_set():
            with contextlib.suppress(OSError, http.client.HTTPException):
                self._pour()
            time.sleep(0.01)

    def _pour(self):
        connection = http.client.HTTPConnection(self._copy.host, timeout=10 * SLACK)
        try:
            while not self.over.is_set():
                body = marked(self._chance.choice(self._bodies), f"{self._mark}/{next(self._numbers)}")
                connection.request("POST", self._secret[0], body, {HEADER: self._secret[1]})
                answer = connection.getresponse()
                answer.read()
                if answer.status == 200:
                    self.acknowledged[body] += 1
                else:
                    self.refused[answer.status] += 1
                if self._pause:
                    time.sleep(self._pause)
        finally:
            connection.close()

    def end(self):
        self.over.set()
        self.join(15 * SLACK)
        assert not self.is_alive()
        return self.acknowledged


def notifications(state):
    """Bodies about what a sandbox has: some of each type."""
    bookings = [{"notificationType": "BOOKING_UPDATE", "data": {"uuid": b["uuid"]}} for b in state["bookings"][:40]]
    products = [{"notificationType": "PRODUCT_UPDATE", "data": {"productId": p["id"]}} for p in state["products"]]
    ranges = [
        {
            "notificationType": "AVAILABILITY_UPDATE",
            "data": {"productId": p["id"], "localDateStart": "0001-01-01", "localDateEnd": "9999-12-31"},
        }
        for p in state["products"]
    ]
    return [*bookings, *products, *ranges]


def stop(pid):
    os.kill(pid, signal.SIGSTOP)


def go_on(pid):
    os.kill(pid, signal.SIGCONT)


def figures(values):
    """Median and largest, for a line of the log."""
    ordered = sorted(values)
    if not ordered:
        return "none"
    return f"median {ordered[len(ordered) // 2]:.2f} s, largest {ordered[-1]:.2f} s of {len(ordered)}"
