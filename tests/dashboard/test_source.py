"""The copy that pages read: noticed when another one is published, kept open while it is read, told apart from none."""

import asyncio
import contextlib
import datetime as dt
import shutil
import threading
import time
from pathlib import Path

import duckdb
import pytest
from tests.dashboard.conftest import READ
from tests.flows.harness import NOON, Project

from octo_sync.dashboard import Source
from octo_sync.dashboard import source as source_module
from octo_sync.errors import QueryError, WarehouseError
from octo_sync.flows.sync.mirror import mirror_and_publish


class Clock:
    """One that is put forward by hand."""

    def __init__(self):
        self.at = NOON

    def __call__(self):
        return self.at

    def pass_(self, **time):
        self.at += dt.timedelta(**time)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def folder(published, tmp_path):
    """A copy of the published copy, to be replaced."""
    shutil.copy(published / READ, tmp_path / READ)
    return tmp_path


@pytest.fixture
def source(folder, clock):
    opened = Source(folder / READ, folder, now=clock)
    yield opened
    opened.close()


def replaced(path, statement):
    """Another copy in the file's place, as a publish puts it there."""
    fresh = path.with_name("fresh")
    shutil.copy(path, fresh)
    with duckdb.connect(fresh) as copy:
        copy.execute(statement)
    fresh.replace(path)


def _titles(source):
    return {row["product_name"] for row in source.rows("products")}


def test_another_copy_is_noticed_within_two_seconds_by_the_clock(source, folder, clock):
    before = source.revision
    assert "Renamed" not in _titles(source)
    replaced(folder / READ, "update core.products set title = 'Renamed'")
    clock.pass_(seconds=0.5)
    assert source.revision == before, "it is looked at once a second"
    clock.pass_(seconds=1)
    assert source.revision != before
    assert _titles(source) == {"Renamed"}


@pytest.mark.deep(4)
async def test_a_publish_while_it_runs_is_on_the_page_soon(published, service, tmp_path, shown):
    """The whole way: a change at the service, a sync, and the page shows it, by the real clock."""
    shutil.copytree(published, tmp_path / "project")
    project = Project(tmp_path / "project", service, publish=True)
    dashboard = shown(project.directory, now=lambda: dt.datetime.now(dt.UTC))
    product = service.state()["products"][0]["id"]
    assert "Renamed by hand" not in await dashboard.text("/availability")
    service.control("PATCH", f"/admin/products/{product}", {"title": {"en": "Renamed by hand"}})
    await project.sync()
    async with project.opened() as opened:
        await asyncio.to_thread(mirror_and_publish, opened.ports)
    began = time.monotonic()
    while "Renamed by hand" not in await dashboard.text("/availability"):
        assert time.monotonic() - began < 60
        await asyncio.sleep(0.05)


def test_a_reader_keeps_its_copy_though_another_is_published_meanwhile(source, folder, clock):
    with source.using() as opened:
        replaced(folder / READ, "update core.products set title = 'Renamed'")
        clock.pass_(seconds=2)
        assert _titles(source) == {"Renamed"}
        old = opened.pages.query("select count(*) from core.products where title = 'Renamed'").rows
        assert old == [(0,)]
    with pytest.raises(WarehouseError, match="closed"):
        opened.pages.query("select 1")


async def test_a_page_is_of_one_copy_though_another_is_published_while_it_is_made(shown, folder, clock, monkeypatch):
    """Else its numbers would not add up, and would be kept."""
    dashboard = shown(folder, now=clock)
    rows = dashboard.source.rows

    def swapping(name, **parameters):
        found = rows(name, **parameters)
        if name == "standing":
            replaced(folder / READ, "update core.products set title = 'Renamed'")
            clock.pass_(seconds=2)
        return found

    monkeypatch.setattr(dashboard.source, "rows", swapping)

    assert "Renamed" not in await dashboard.text("/availability")
    assert "Renamed" in await dashboard.text("/availability")


@pytest.mark.deep(1)
def test_many_threads_read_through_swaps_and_nothing_is_left_open(source, folder, clock):
    failures, stop = [], threading.Event()

    def read():
        while not stop.is_set():
            try:
                assert source.rows("channels")
            except Exception as error:  # noqa: BLE001 - whatever it is, it is a failure
                failures.append(error)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(5):
        replaced(folder / READ, f"update core.products set title = 'Number {number}'")
        clock.pass_(seconds=2)
        assert _titles(source) == {f"Number {number}"}
    stop.set()
    for thread in threads:
        thread.join(10)
    assert failures == []
    source.close()
    held = [link for link in Path("/proc/self/fd").iterdir() if str(folder) in str(_target(link))]
    assert held == []


def _target(link):
    try:
        return link.readlink()
    except OSError:
        return ""


def test_a_copy_that_comes_later_is_found_and_one_that_goes_is_missed(source, folder, clock):
    copy, aside = folder / READ, folder / "aside"
    assert source.trouble is None
    copy.rename(aside)
    clock.pass_(seconds=2)
    assert "does not exist yet; run `octo-sync sync`" in source.trouble
    assert source.revision == ""
    aside.rename(copy)
    clock.pass_(seconds=2)
    assert source.trouble is None


def test_a_damaged_copy_is_a_sentence_and_is_tried_again(source, folder, clock):
    whole = (folder / READ).read_bytes()
    (folder / "fresh").write_bytes(whole[:8192])
    (folder / "fresh").replace(folder / READ)
    clock.pass_(seconds=2)
    assert "is damaged or cut off" in source.trouble
    (folder / "fresh").write_bytes(whole)
    (folder / "fresh").replace(folder / READ)
    clock.pass_(seconds=2)
    assert source.trouble is None


def test_a_select_that_is_not_there_or_wants_other_parameters_is_refused(source):
    with pytest.raises(QueryError, match=r"no warehouse/dashboard/nothing\.sql"):
        source.rows("nothing")
    with pytest.raises(QueryError, match="wants first, last, product"):
        source.rows("occupancy", first=dt.date(2026, 11, 20))


def test_a_projects_own_select_takes_the_place_of_the_shipped_one(folder, clock):
    own = folder / "warehouse/dashboard"
    own.mkdir(parents=True)
    (own / "products.sql").write_text("-- name: products\nselect 'k' as product_key, 'Mine' as product_name")
    mine = Source(folder / READ, folder, now=clock)
    assert _titles(mine) == {"Mine"}
    mine.close()


@pytest.mark.deep(3)
def test_who_asks_in_sql_does_not_hold_up_the_pages(source):
    """Else one slow question would stop the dashboard for everybody."""

    def ask():
        with pytest.raises(WarehouseError, match="stopped after"):
            source.sql("select count(*) from range(100000000000) a", timeout=3.0)

    asking = threading.Thread(target=ask)
    asking.start()
    assert source.rows("channels")
    assert asking.is_alive(), "a machine this busy shows nothing"
    asking.join()


def test_when_every_connection_is_busy_it_is_said(source, monkeypatch):
    with source.using() as opened, opened.reader(), opened.reader():
        with monkeypatch.context() as patch:
            patch.setattr(source_module, "PAGE_SECONDS", 0.1)
            with pytest.raises(WarehouseError, match="All connections to the copy are busy; try again in a moment"):
                source.rows("channels")
            with pytest.raises(WarehouseError, match="are busy"):
                source.tables()
        assert source.sql("select 7").rows == [(7,)], "people have their own"
    assert source.rows("channels"), "nothing of it is remembered"


@pytest.mark.deep(2)
def test_on_a_server_nobody_waits_for_the_look_when_every_connection_is_busy(
    postgres_database, published, service, tmp_path, clock
):
    shutil.copytree(published, tmp_path / "project")
    project = Project(tmp_path / "project", service, publish=True, destination=postgres_database)
    asyncio.run(project.sync())
    with contextlib.closing(Source(postgres_database, tmp_path, now=clock)) as source:
        assert source.trouble is None
        clock.pass_(seconds=2)
        before, titles = source.revision, _titles(source)
        with source.using() as opened, opened.reader(), opened.reader():
            clock.pass_(seconds=2)
            assert (source.revision, _titles(source)) == (before, titles)


@pytest.mark.deep(3)
def test_on_a_server_a_publish_is_noticed_and_a_landing_is_not(postgres_database, published, service, tmp_path, clock):
    shutil.copytree(published, tmp_path / "project")
    project = Project(tmp_path / "project", service, publish=True, destination=postgres_database)
    asyncio.run(project.sync())
    source = Source(postgres_database, tmp_path, now=clock)
    assert source.trouble is None
    clock.pass_(seconds=2)
    before, titles = source.revision, _titles(source)
    assert before
    assert titles
    service.control(
        "PATCH", f"/admin/products/{service.state()['products'][0]['id']}", {"title": {"en": "Renamed by hand"}}
    )
    project.clock.advance(seconds=3600)
    asyncio.run(project.sync(publishing=False))
    clock.pass_(seconds=2)
    assert (source.revision, _titles(source)) == (before, titles)
    asyncio.run(project.sync(publishing=True))
    clock.pass_(seconds=2)
    assert source.revision != before
    assert "Renamed by hand" in _titles(source)
    assert "@" not in source.name
    source.close()
