"""A published copy, and the dashboard over it without a server."""

import asyncio
import contextlib
import datetime as dt
import shutil
from pathlib import Path

import duckdb
import httpx
import pytest
from tests.flows.harness import NOON, Project

from octo_sync.dashboard import Dashboard, Source
from octo_sync.flows.sync.mirror import mirror_and_publish

READ = "octo.read.duckdb"
MARTS = Path(__file__).parents[2] / "warehouse/marts"


@pytest.fixture(scope="session")
def published(_synced, _service, tmp_path_factory):
    """The folder of a project that was pulled and published once; to be copied, not changed."""
    folder = tmp_path_factory.mktemp("published") / "project"
    shutil.copytree(_synced, folder)
    project = Project(folder, _service)

    async def publish():
        async with project.opened() as opened:
            await asyncio.to_thread(mirror_and_publish, opened.ports)

    asyncio.run(publish())
    return folder


@pytest.fixture(scope="session")
def variant(published, tmp_path_factory):
    """Makes a folder with the published copy changed by statements: `variant("huge", "insert …")`.

    Marts are views but for those that a publish keeps as tables; `remake` makes these again.
    """

    def make(name, *statements, remake=False):
        folder = tmp_path_factory.mktemp(name)
        shutil.copy(published / READ, folder / READ)
        with duckdb.connect(folder / READ) as copy:
            copy.execute("set timezone = 'UTC'")
            for statement in statements:
                copy.execute(statement)
            kept = "select table_name from duckdb_tables() where schema_name = 'marts'"
            for (mart,) in copy.execute(kept).fetchall() if remake else ():
                select = (MARTS / f"{mart}.sql").read_text(encoding="utf-8").rstrip().rstrip(";")
                copy.execute(f"create or replace table marts.{mart} as {select}")
        return folder

    return make


class Shown:
    """The dashboard of a folder, asked without a socket."""

    def __init__(self, folder, now, *, token=None, user_header="", **more):
        self.source = Source(folder / READ, folder, now=now, **more)
        self._app = Dashboard(self.source, host="127.0.0.1", token=token, user_header=user_header)

    async def get(self, path, **headers):
        return await self.ask("GET", path, headers=headers)

    async def ask(self, method, path, **more):
        transport = httpx.ASGITransport(self._app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8788") as client:
            return await client.request(method, path, **more)

    async def text(self, path):
        answer = await self.get(path)
        assert answer.status_code == 200, answer.text
        return answer.text

    def close(self):
        self._app.close()


AN_HOUR_LATER = NOON + dt.timedelta(hours=1)


@pytest.fixture(scope="session")
def _shown(published):
    with contextlib.closing(Shown(published, lambda: AN_HOUR_LATER)) as made:
        yield made


@pytest.fixture
def shown(published, _shown, request):
    """Opens the dashboard: `shown()` of the published copy, `shown(folder)` of another; an hour after the pull.

    All tests share that of the published copy, which keeps what it has made; who takes `monkeypatch` has one of their own.
    """
    with contextlib.ExitStack() as stack:

        def make(folder=published, *, now=lambda: AN_HOUR_LATER, **more):
            if (
                not more
                and folder == published
                and now() == AN_HOUR_LATER
                and "monkeypatch" not in request.fixturenames
            ):
                return _shown
            return stack.enter_context(contextlib.closing(Shown(folder, now, **more)))

        yield make
