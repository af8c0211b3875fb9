"""Acknowledged is durable: a receiver in a process of its own is killed, its disk filled, its journal made read-only."""

import asyncio
import contextlib
import os
import random
import resource
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from tests.receiver import process
from tests.receiver.conftest import Client, booking_body, post

from octo_sync.journal import Journal
from octo_sync.model import Subject, SubjectKind

PROGRAM = Path(process.__file__)


def start(directory, how):
    return subprocess.Popen([sys.executable, PROGRAM, directory], stdout=subprocess.PIPE, text=True, **how)


@contextlib.asynccontextmanager
async def started(directory, **how):
    """The process, and a way to connect to it."""
    child, clients = start(directory, how), []
    try:
        url = (await asyncio.to_thread(child.stdout.readline)).strip()
        assert url, "the receiver did not start"
        host, port = url.removeprefix("http://").split(":")

        async def connect() -> Client:
            clients.append(Client(*await asyncio.open_connection(host, int(port))))
            return clients[-1]

        yield child, connect
    finally:
        for client in clients:
            await client.close()
        child.kill()
        child.stdout.close()
        child.wait()


async def pour(connect, acknowledged, prefix):
    """Deliver as fast as answers come, until the connection breaks; note what was acknowledged."""
    number = 0
    with contextlib.suppress(OSError, asyncio.IncompleteReadError, TimeoutError):
        client = await connect()
        while True:
            uuid = f"{prefix}-{number}"
            if (await client.ask(post(booking_body(uuid)))).status == 200:
                acknowledged.add(uuid)
            number += 1


def stored(directory):
    with Journal.open(directory / "journal.sqlite", clock=process.Clock()) as journal:
        assert journal.recovered_from is None
        return (
            [one.body for one in journal.inbox.all_deliveries()],
            {row.subject for row in journal.subjects.rows() if row.dirty},
            {timer.subject for timer in journal.timers.rows(limit=1_000_000)},
        )


async def test_kill_9_under_load_loses_no_acknowledged_delivery_r1(tmp_path):
    chance = random.Random(7)
    acknowledged: set[str] = set()
    for life in range(3):
        before = len(acknowledged)
        async with started(tmp_path) as (child, connect):
            pouring = [asyncio.create_task(pour(connect, acknowledged, f"{life}-{n}")) for n in range(16)]
            enough = before + 50 + chance.randrange(500)
            while len(acknowledged) < enough:  # noqa: ASYNC110 - other tasks count
                await asyncio.sleep(0.001)
            child.kill()
            await asyncio.gather(*pouring)
    bodies, dirty, timers = stored(tmp_path)
    assert {booking_body(uuid) for uuid in acknowledged} <= set(bodies)
    subjects = {Subject("acme", SubjectKind.BOOKING, (uuid,)) for uuid in acknowledged}
    assert subjects <= dirty
    assert subjects <= timers


@pytest.mark.deep(1)
async def test_sigterm_under_load_answers_what_it_stored_and_ends(tmp_path):
    acknowledged: set[str] = set()
    async with started(tmp_path) as (child, connect):
        pouring = [asyncio.create_task(pour(connect, acknowledged, f"{n}")) for n in range(8)]
        await asyncio.sleep(0.3)
        child.terminate()
        await asyncio.gather(*pouring)
        assert await asyncio.to_thread(child.wait, 10) == 0
    bodies, _, _ = stored(tmp_path)
    assert {booking_body(uuid) for uuid in acknowledged} == set(bodies)


def no_growth():
    resource.setrlimit(resource.RLIMIT_FSIZE, (900_000, resource.RLIM_INFINITY))
    import signal

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


@pytest.mark.deep(1)
async def test_a_journal_that_cannot_grow_is_503_and_never_a_false_200(tmp_path):
    """RLIMIT_FSIZE stands in for a full disk: writes beyond it fail, whichever file they are for."""
    acknowledged, refused = set(), 0
    async with started(tmp_path, preexec_fn=no_growth) as (child, connect):
        for number in range(40):
            client = await connect()
            answer = await client.ask(post(booking_body(f"{number}") + b" " * 60_000))
            if answer.status == 200:
                acknowledged.add(number)
            else:
                assert (answer.status, answer.headers["retry-after"]) == (503, "5")
                refused += 1
        assert acknowledged
        assert refused
        resource.prlimit(child.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        client = await connect()
        assert (await client.ask(post(booking_body("after")))).status == 200
    bodies, _, _ = stored(tmp_path)
    assert {booking_body(f"{number}") + b" " * 60_000 for number in acknowledged} | {booking_body("after")} == set(
        bodies
    )


@pytest.fixture
def disk(tmp_path):
    """A small disk of its own, where the machine lets us mount one."""
    place = tmp_path / "disk"
    place.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", place], capture_output=True, check=False)
    if done.returncode:
        pytest.skip("mounting is not allowed here")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


async def test_a_full_disk_is_503_and_receiving_resumes_when_there_is_room(disk):
    async with started(disk) as (_, connect):
        client = await connect()
        assert (await client.ask(post(booking_body("before")))).status == 200
        free = os.statvfs(disk)
        (disk / "ballast").write_bytes(b"x" * (free.f_bavail * free.f_frsize - 200_000))
        statuses = []
        for number in range(8):
            client = await connect()
            statuses.append((await client.ask(post(booking_body(f"{number}") + b" " * 60_000))).status)
        assert statuses[-1] == 503
        assert set(statuses) <= {200, 503}
        (disk / "ballast").unlink()
        client = await connect()
        assert (await client.ask(post(booking_body("after")))).status == 200
    bodies, _, _ = stored(disk)
    assert len(bodies) == 2 + statuses.count(200)


@pytest.mark.deep(6)
async def test_a_journal_that_somebody_has_locked_is_503_before_the_sender_is_cut_off(tmp_path):
    async with started(tmp_path) as (_, connect):
        client = await connect()
        with contextlib.closing(sqlite3.connect(tmp_path / "journal.sqlite", isolation_level=None)) as other:
            other.execute("begin immediate")
            answer = await client.ask(post(booking_body("during")), within=30.0)
            # 408 would be the end of the request's own time.
            assert (answer.status, answer.headers["retry-after"]) == (503, "5")
            other.execute("rollback")
        client = await connect()
        assert (await client.ask(post(booking_body("after")))).status == 200
    assert stored(tmp_path)[0] == [booking_body("after")]


@pytest.mark.parametrize("how", ["removed", "replaced"])
async def test_nothing_is_acknowledged_into_a_journal_that_was_removed_or_replaced(receiver, tmp_path, how):
    running = await receiver()
    path, aside = tmp_path / "journal.sqlite", tmp_path / "aside.sqlite"
    assert (await running.ask(post(booking_body("before")))).status == 200
    with contextlib.closing(sqlite3.connect(path)) as own, contextlib.closing(sqlite3.connect(aside)) as backup:
        own.backup(backup)
    former = path.rename(tmp_path / "former.sqlite")
    if how == "replaced":
        aside.rename(path)
    for number in range(3):
        assert (await running.ask(post(booking_body(f"lost {number}")))).status == 503
    ready = await running.get("/readyz")
    assert ready.status == 503
    assert b"was removed or replaced while it was in use" in ready.body
    former.rename(path)
    assert (await running.ask(post(booking_body("after")))).status == 200
