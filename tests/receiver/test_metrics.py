"""A scrape gets what is known, within a second, whatever the journal does."""

import asyncio
import threading

import pytest

from octo_sync.errors import JournalError
from octo_sync.receiver import metrics as module
from octo_sync.receiver.metrics import Metrics


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(module, "_READ_FOR", 0.0)
    monkeypatch.setattr(module, "_WAIT", 0.2)


def lines(page):
    return {
        line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in page.decode().splitlines() if line[0] != "#"
    }


async def test_what_was_read_is_shown_with_its_labels(quick):
    metrics = Metrics(lambda: {"octo_sync_lag_seconds": {("a", 'odd"\n'): 3}, "octo_sync_runs": {("sync", "ok"): 2}})
    page = await metrics.page()
    assert lines(page)['octo_sync_lag_seconds{connection="a",kind="odd\\"\\n"}'] == 3
    assert lines(page)['octo_sync_runs_total{command="sync",result="ok"}'] == 2
    assert lines(page)["octo_sync_journal_readable"] == 1
    assert b"# TYPE octo_sync_runs_total counter" in page


async def test_many_scrapes_look_once():
    looks = []
    metrics = Metrics(lambda: looks.append(1) or {})
    await asyncio.gather(*(metrics.page() for _ in range(20)))
    assert len(looks) == 1


async def test_a_journal_that_hangs_keeps_no_scrape_waiting_and_nobody_looks_twice(quick):
    go, looks = threading.Event(), []

    def read():
        looks.append(1)
        if len(looks) > 1:
            go.wait(60)
        return {"octo_sync_journal_bytes": {(): len(looks)}}

    metrics = Metrics(read)
    metrics.delivery("acme", "stored")
    assert lines(await metrics.page())["octo_sync_journal_bytes"] == 1
    begun = asyncio.get_running_loop().time()
    for _ in range(3):
        page = lines(await metrics.page())
    spent = asyncio.get_running_loop().time() - begun
    assert page["octo_sync_journal_bytes"] == 1
    assert page['octo_sync_deliveries_total{connection="acme",result="stored"}'] == 1
    assert page["octo_sync_read_age_seconds"] > 0
    assert (len(looks), spent < 30) == (2, True)
    go.set()
    await metrics.close()
    assert lines(await metrics.page())["octo_sync_journal_bytes"] >= 2


@pytest.mark.parametrize("error", [JournalError("The disk is full."), RuntimeError("a mistake of ours")])
async def test_what_cannot_be_read_is_left_out_and_the_receivers_own_counts_stay(quick, caplog, error):
    broken = []

    def read():
        if broken:
            raise error
        return {"octo_sync_journal_bytes": {(): 7}}

    metrics = Metrics(read)
    assert "octo_sync_journal_bytes" in lines(await metrics.page())
    broken.append(1)
    for _ in range(2):
        page = lines(await metrics.page())
    assert page["octo_sync_journal_readable"] == 0
    assert "octo_sync_journal_bytes" not in page
    assert "octo_sync_read_age_seconds" not in page
    assert caplog.text.count("action=metrics_unread") == 1
    broken.clear()
    assert lines(await metrics.page())["octo_sync_journal_bytes"] == 7


async def test_numbers_that_nobody_renews_are_not_shown_for_ever(quick, monkeypatch):
    go, looks = threading.Event(), []

    def read():
        looks.append(1)
        if len(looks) > 1:
            go.wait(60)
        return {"octo_sync_journal_bytes": {(): 1}}

    metrics = Metrics(read)
    await metrics.page()
    monkeypatch.setattr(module, "_SHOWN_FOR", 0.0)
    assert "octo_sync_journal_bytes" not in lines(await metrics.page())
    go.set()
    await metrics.close()
