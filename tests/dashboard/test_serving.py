"""`serve` and the dashboard: beside the rest, alone, where its port is taken, and without ever holding up the receiver."""

import asyncio
import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

import httpx
import pytest


@pytest.fixture
def project(published, tmp_path):
    shutil.copytree(published, tmp_path / "project")
    return tmp_path / "project"


def files(folder):
    return {file.name: (file.stat().st_size, file.stat().st_mtime_ns) for file in folder.iterdir() if file.is_file()}


class Program:
    """`octo-sync serve …` in a process of its own; what it says is kept."""

    def __init__(self, folder, *arguments, **environ):
        settings = {
            "OCTO_SYNC_WEBHOOKS__BIND": "127.0.0.1:0",
            "OCTO_SYNC_DASHBOARD__BIND": "127.0.0.1:0",
            "NO_COLOR": "1",
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "octo_sync", "serve", "-p", "pipeline.toml", *arguments],
            cwd=folder, stderr=subprocess.PIPE, text=True, env={**os.environ, **settings, **environ},
        )  # fmt: skip
        self.said = []
        self._reading = threading.Thread(target=lambda: self.said.extend(self.process.stderr), daemon=True)
        self._reading.start()

    def wait_for(self, pattern, within=300):
        """The first group of what it says that matches."""
        until = time.monotonic() + within
        while time.monotonic() < until:
            for line in list(self.said):
                if found := re.search(pattern, line):
                    return found[1] if found.groups() else found[0]
            if self.process.poll() is not None and not self._reading.is_alive():
                break
            time.sleep(0.02)
        raise AssertionError(f"{pattern!r} was not said: {''.join(self.said)}")

    def end(self):
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(15)
        self._reading.join(5)
        self.process.stderr.close()
        return code


@pytest.fixture
def serve(project):
    programs = []

    def start(*arguments, **environ):
        programs.append(Program(project, *arguments, **environ))
        return programs[-1]

    yield start
    for program in programs:
        program.end()


def get(url, **headers):
    try:
        asked = urllib.request.Request(url, headers=headers)  # noqa: S310 - our own address
        with urllib.request.urlopen(asked, timeout=20) as answer:  # noqa: S310 - the same
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_alone_it_shows_the_copy_needs_no_token_of_a_service_and_writes_nothing(project, serve):
    text = (project / "pipeline.toml").read_text()
    (project / "pipeline.toml").write_text(re.sub(r', default = "[^"]*"', "", text))
    (project / "octo.journal.sqlite").unlink()
    before = files(project)
    program = serve("--only", "dashboard")
    url = program.wait_for(r"dashboard on (http://127\.0\.0\.1:\d+)")
    for path in ("/", "/sync", "/sql", "/data/dim_product.csv"):
        assert get(url + path)[0] == 200
    assert not any(word in line for line in program.said for word in ("receiver", "worker", "webhooks.url"))
    assert program.end() == 143
    assert files(project) == before


@pytest.mark.deep(2)
def test_beside_the_rest_it_has_a_port_of_its_own_and_ends_with_it(serve):
    program = serve()
    dashboard = program.wait_for(r"dashboard on (http://127\.0\.0\.1:\d+)")
    receiver = program.wait_for(r"receiver listens on (http://127\.0\.0\.1:\d+)")
    assert dashboard != receiver
    assert get(f"{dashboard}/")[0] == 200
    assert get(f"{receiver}/livez") == (200, "alive\n")
    assert get(f"{receiver}/occupancy")[0] == 404, "who publishes the receiver publishes no page"
    assert program.end() == 143
    with pytest.raises(OSError, match="refused"):
        get(f"{dashboard}/")


@pytest.mark.deep(3)
def test_a_long_query_fits_into_its_address_whatever_deliveries_may_have(serve):
    program = serve()
    dashboard = program.wait_for(r"dashboard on (http://127\.0\.0\.1:\d+)")
    query = f"select 1 as one -- {'é' * 5_900}"
    assert get(f"{dashboard}/sql?{urllib.parse.urlencode({'q': query})}")[0] == 200


@pytest.mark.deep(2)
def test_it_can_be_left_out(serve):
    program = serve("--only", "receiver", "--only", "worker")
    program.wait_for(r"worker keeps")
    assert not any("dashboard" in line for line in program.said)


@pytest.fixture
def taken():
    with socket.create_server(("127.0.0.1", 0)) as there:
        yield f"127.0.0.1:{there.getsockname()[1]}"


@pytest.mark.deep(2)
def test_where_its_port_is_taken_everything_else_runs(serve, taken):
    program = serve("--dashboard", taken)
    said = program.wait_for(rf".*dashboard\.bind: cannot listen on {taken}.*")
    assert "choose another address: --dashboard HOST:PORT. There is no dashboard; everything else runs." in said
    program.wait_for("worker keeps")


@pytest.mark.deep(2)
@pytest.mark.parametrize(
    "text", [b"-- parameter: day\nselect 1\n", b"-- name: mine\nselect '\xe9'\n"], ids=["header", "latin-1"]
)
def test_where_a_query_of_its_own_cannot_be_read_everything_else_runs(project, serve, text):
    mine = project / "warehouse/dashboard/mine.sql"
    mine.parent.mkdir(parents=True)
    mine.write_bytes(text)
    program = serve()
    assert "mine.sql" in program.wait_for(r".*There is no dashboard; everything else runs\.")
    receiver = program.wait_for(r"receiver listens on (http://127\.0\.0\.1:\d+)")
    program.wait_for("worker keeps")
    assert get(f"{receiver}/livez") == (200, "alive\n")


@pytest.mark.deep(2)
def test_alone_where_its_port_is_taken_it_ends_with_a_sentence(serve, taken):
    program = serve("--only", "dashboard", "--dashboard", taken)
    program.wait_for(rf"octo-sync: error: dashboard\.bind: cannot listen on {taken}")
    assert program.process.wait(10) == 2


@pytest.mark.deep(2)
def test_with_a_token_a_browser_has_to_know_it(serve):
    program = serve("--only", "dashboard", OCTO_SYNC_DASHBOARD__TOKEN="s3cret")
    url = program.wait_for(r"dashboard on (\S+)")
    assert get(url)[0] == 401
    assert get(url, Authorization="Bearer s3cret")[0] == 200
    assert not any("s3cret" in line for line in program.said)


@pytest.mark.deep(1)
def test_a_token_that_cannot_be_had_is_refused_not_replaced(project, serve):
    text = (project / "pipeline.toml").read_text()
    (project / "pipeline.toml").write_text(text + '[dashboard]\ntoken = { env = "NOT_SET_ANYWHERE" }\n')
    program = serve("--only", "dashboard")
    program.wait_for("NOT_SET_ANYWHERE is not set")
    assert program.process.wait(10) == 2


def test_beyond_this_machine_without_a_token_nothing_starts(serve):
    program = serve("--only", "dashboard", "--dashboard", "0.0.0.0:0")
    program.wait_for("which others can reach; expected dashboard.token too")
    assert program.process.wait(10) == 2


@pytest.mark.deep(2)
def test_open_asks_the_systems_browser_for_it(project, serve, tmp_path):
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/asked\n')
    browser.chmod(0o755)
    program = serve("--only", "dashboard", "--open", BROWSER=str(browser))
    url = program.wait_for(r"dashboard on (\S+)")
    until = time.monotonic() + 10
    while not (tmp_path / "asked").exists() or not (tmp_path / "asked").read_text():
        assert time.monotonic() < until
        time.sleep(0.02)
    assert (tmp_path / "asked").read_text().strip() == url


def test_an_address_for_a_receiver_that_is_left_out_is_a_mistake(serve):
    program = serve("--only", "worker", "--bind", "127.0.0.1:0")
    program.wait_for("--bind is where the receiver listens, and --only leaves it out; add --only receiver")
    assert program.process.wait(10) == 2


def test_open_without_a_dashboard_is_a_mistake(serve):
    program = serve("--only", "receiver", "--open")
    program.wait_for("--open shows the dashboard, and --only leaves it out")
    assert program.process.wait(10) == 2


@pytest.mark.deep(1)
async def test_more_pages_than_can_be_made_are_told_so_and_a_slow_one_holds_up_no_other(shown, monkeypatch):
    """Two threads make pages; 32 may wait."""
    dashboard = shown()
    await dashboard.text("/")
    goes_on = threading.Event()
    real = dashboard.source.rows

    def slowly(name, **parameters):
        if name == "occupancy":
            goes_on.wait(20)
        return real(name, **parameters)

    dashboard.source.forget()
    monkeypatch.setattr(dashboard.source, "rows", slowly)
    transport = httpx.ASGITransport(dashboard._app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        slow = asyncio.create_task(client.get("/occupancy"))
        async with asyncio.timeout(120):
            assert (await client.get("/pickup")).status_code == 200, "the other thread is free"
        asked = [asyncio.create_task(client.get(f"/occupancy?first=2026-12-{n:02}")) for n in range(1, 32)]
        await asyncio.sleep(0)
        async with asyncio.timeout(120):
            while not any(task.done() for task in asked):
                asked.append(asyncio.create_task(client.get("/occupancy?first=2026-12-01")))
                await asyncio.sleep(0)
        busy = [task.result() for task in asked if task.done()]
        assert {answer.status_code for answer in busy} == {503}
        assert "Too many pages are asked for at once" in busy[0].text
        goes_on.set()
        answers = await asyncio.gather(slow, *asked)
    assert {a.status_code for a in answers} == {200, 503}
