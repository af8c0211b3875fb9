"""The dashboard as people see it: the installed program serves it, Debian's Chromium shows it.

`--screenshots DIR` keeps the pictures in DIR (else they are in pytest's own folder). Those of
the docs are made by `scripts/pictures.py`.
No browser is downloaded: where there is none, the tests are skipped and say so.
"""

import contextlib
import datetime as dt
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import uvicorn
from filelock import FileLock
from tests.absent import absent
from tests.browser import copies

from octo_sync.dashboard import Dashboard, Source

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WIDTHS = {"narrow": 390, "wide": 1440}
THEMES = ("light", "dark")


def pytest_addoption(parser):
    parser.addoption("--screenshots", metavar="DIR", help="Keep the dashboard's pictures in DIR.")


@pytest.fixture(scope="session")
def chromium():
    """The browser's path; without one there is nothing to test."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        absent(f"no browser on PATH ({', '.join(NAMES)}): what pages look like was not tested")
    return found


@pytest.fixture(scope="module")
def browser(chromium):
    # One for each module: as long as it runs, the thread has an event loop that tests of coroutines cannot share.
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        opened = playwright.chromium.launch(executable_path=chromium, args=arguments)
        yield opened
        opened.close()


@dataclass
class Watched:
    """A page, and everything it said or asked for that it should not have."""

    page: object
    base: str
    complaints: list[str] = field(default_factory=list)

    def open(self, path=""):
        answer = self.page.goto(f"{self.base}/{path}", wait_until="load")
        # Charts are drawn when the page is there; numbers are there before.
        self.page.wait_for_function("() => [...document.querySelectorAll('.chart')].every(c => c.querySelector('svg'))")
        return answer

    def said(self):
        """What was complained about since it was last asked."""
        found, self.complaints[:] = list(self.complaints), []
        return found


@pytest.fixture
def look(browser):
    """Opens a window: `look(base, width=390, theme="dark")` is a `Watched` page; more keywords go to the browser."""
    with contextlib.ExitStack() as stack:

        def make(base, *, width=1440, height=900, theme="light", **more):
            context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=theme, **more)
            context.set_default_timeout(15_000)
            stack.callback(context.close)
            watched = Watched(context.new_page(), base)
            page, complaints = watched.page, watched.complaints
            page.on("console", lambda m: complaints.append(f"{m.type}: {m.text}") if m.type != "log" else None)
            page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
            # What was still on its way when the page was left, its icon for example, is ended by the browser itself.
            page.on(
                "requestfailed",
                lambda r: (
                    None if r.failure == "net::ERR_ABORTED" else complaints.append(f"failed: {r.url} {r.failure}")
                ),
            )
            page.on("response", lambda r: complaints.append(f"{r.status}: {r.url}") if r.status >= 400 else None)
            page.on("dialog", lambda d: complaints.append(f"dialog: {d.message}"))
            page.on(
                "request",
                lambda r: None if r.url.startswith((f"{base}/", "data:")) else complaints.append(f"strange: {r.url}"),
            )
            return watched

        yield make


@pytest.fixture(scope="session")
def demo(chromium, tmp_path_factory):
    """The folder of a demo, made once for all workers; to be copied, not changed."""
    shared = tmp_path_factory.getbasetemp()
    if os.environ.get("PYTEST_XDIST_WORKER"):
        shared = shared.parent
    made = shared / "dashboard-demo"
    with FileLock(shared / "dashboard-demo.lock"):
        if not (made / "done").exists():
            copies.make_demo(made)
            (made / "done").touch()
    return made


@pytest.fixture(scope="module")
def serving():
    """Shows a folder's copy from a thread of this process: `serving(folder)` is its address; `at` is the time it is there."""
    with contextlib.ExitStack() as stack:
        yield lambda folder, at=None: stack.enter_context(in_a_thread(folder, at))


@contextlib.contextmanager
def in_a_thread(folder: Path, at: dt.datetime | None = None):
    """The application on a socket, without the two seconds that a process takes to start."""
    source = Source(folder / copies.READ, folder, now=lambda: at or dt.datetime.now(dt.UTC))
    app = Dashboard(source, host="127.0.0.1")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(20)
            app.close()


@contextlib.contextmanager
def served(folder: Path, **more: str):
    """`octo-sync serve --only dashboard` in a process of its own, on a free port; `more` is of its environment."""
    environ = {**os.environ, "OCTO_SYNC_DASHBOARD__BIND": "127.0.0.1:0", "NO_COLOR": "1", **more}
    process = subprocess.Popen(
        [sys.executable, "-m", "octo_sync", "serve", "-C", str(folder), "--only", "dashboard"],
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        said = ""
        for line in process.stdout:
            said += line
            if found := re.search(r"dashboard on (http://\S+?)/?\s", line):
                break
        else:
            pytest.fail(f"the dashboard did not start: {said}")
        yield found[1]
    finally:
        process.terminate()
        process.stdout.close()
        process.wait(timeout=20)


@pytest.fixture(scope="session")
def base(chromium, demo):
    """The address of the demo's dashboard, as the program serves it."""
    with served(demo) as address:
        yield address


@pytest.fixture(scope="session")
def pictures(request, tmp_path_factory):
    """Where screenshots go."""
    folder = Path(request.config.getoption("--screenshots", None) or tmp_path_factory.mktemp("screenshots"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture
def pictured(request, pictures):
    """Takes a picture of a page that is only looked at when somebody asks for pictures: `pictured(window, name)`."""
    asked = request.config.getoption("--screenshots", None)

    def take(window, name):
        if asked:
            window.page.screenshot(path=pictures / f"{name}.png", full_page=True)

    return take
