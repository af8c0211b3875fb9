"""A damaged file is noticed when opened, moved aside whole, and replaced; never silently shorter."""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.journal.helpers import HandClock, booking, bookings

from octo_sync.errors import JournalError
from octo_sync.journal import Journal, damage
from octo_sync.model import Source


@pytest.fixture
def engine() -> str:
    """Only a file can be damaged so that we must notice."""
    return "sqlite"


@pytest.fixture
def filled(path: Path, clock: HandClock) -> Path:
    """A closed journal of many pages."""
    with Journal.open(path, clock=clock) as journal:
        journal.subjects.mark(bookings(3000), Source.SCHEDULE)
    return path


@pytest.fixture
def killed(tmp_path: Path, clock: HandClock) -> Path:
    """A journal as `kill -9` leaves it, copied from under an open one: 20 commits in its write-ahead log."""
    (tmp_path / "killed").mkdir()
    path = tmp_path / "killed" / "journal.sqlite"
    with Journal.open(tmp_path / "alive.sqlite", clock=clock) as journal:
        for number in range(20):
            journal.subjects.mark([booking(str(number))], Source.NOTIFICATION)
        for suffix in ("", "-wal"):
            shutil.copy(tmp_path / f"alive.sqlite{suffix}", f"{path}{suffix}")
    return path


def middle_page(content: bytes) -> bytes:
    return content[:8192] + b"\xa5" * 8192 + content[16384:]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "garbage over the header": lambda content: b"\xa5" * 100 + content[100:],
    "garbage over pages": middle_page,
    "garbage over the last page": lambda content: content[:-4096] + b"\xa5" * 4096,
    "zeros over pages": lambda content: content[:12288] + b"\0" * 12288 + content[24576:],
    "cut in half": lambda content: content[: len(content) // 2],
    "cut by a page": lambda content: content[:-4096],
    "cut within the header": lambda content: content[:50],
    "emptied": lambda _: b"",
    "another text": lambda _: b"These are not the pages you are looking for.\n" * 999,
    "foreign mark": lambda content: content[:68] + b"\0\0\0\7" + content[72:],
}


@pytest.mark.deep(0.1, everyday=3)
@pytest.mark.parametrize("name", DAMAGES)
def test_damaged_file_is_moved_aside_and_a_fresh_one_works(filled: Path, clock: HandClock, name: str) -> None:
    broken = DAMAGES[name](filled.read_bytes())
    filled.write_bytes(broken)
    clock.forward(3600)
    with Journal.open(filled, clock=clock) as journal:
        assert journal.recovered_from == filled.with_name("journal.sqlite.corrupt-20260701T130000Z")
        assert journal.recovered_from.read_bytes() == broken
        assert journal.subjects.dirty_count() == 0
        journal.subjects.mark([booking()], Source.REPAIR)
    with Journal.open(filled, clock=clock) as journal:
        assert journal.recovered_from is None
        assert journal.subjects.dirty_count() == 1


def test_numbers_and_fences_go_on_above_those_of_the_damaged_file(path: Path, clock: HandClock, tmp_path) -> None:
    with Journal.open(path, clock=clock) as journal:
        numbers = journal.numbers.reserve(100_000)
        for _ in range(5):
            with journal.leases.acquire(tmp_path / "lock", owner="test") as lease:
                fence = lease.fence
    path.write_bytes(middle_page(path.read_bytes()))
    clock.forward(60)
    with Journal.open(path, clock=clock) as journal:
        assert journal.recovered_from is not None
        assert journal.numbers.reserve(1)[0] > numbers[-1]
        with journal.leases.acquire(tmp_path / "lock", owner="test") as lease:
            assert lease.fence > fence


def test_two_damaged_files_of_one_second_are_both_kept(filled: Path, clock: HandClock) -> None:
    kept = set()
    for _ in range(3):
        filled.write_bytes(b"")
        with Journal.open(filled, clock=clock) as journal:
            kept.add(journal.recovered_from)
    assert len(kept) == 3
    assert all(one is not None and one.exists() for one in kept)


def copy_with_log(killed: Path, folder: Path, change: Callable[[bytes], bytes]) -> Path:
    path = folder / "journal.sqlite"
    shutil.copy(killed, path)
    (folder / "journal.sqlite-wal").write_bytes(change(killed.with_name(killed.name + "-wal").read_bytes()))
    return path


def test_log_left_by_a_kill_is_read_to_its_last_commit(killed: Path, tmp_path, clock: HandClock) -> None:
    with Journal.open(copy_with_log(killed, tmp_path, lambda log: log), clock=clock) as journal:
        assert journal.recovered_from is None
        assert journal.subjects.dirty_count() == 20


def test_one_torn_transaction_at_the_end_of_the_log_is_what_a_power_cut_leaves(
    killed: Path, tmp_path, clock: HandClock
) -> None:
    with Journal.open(copy_with_log(killed, tmp_path, lambda log: log[:-1]), clock=clock) as journal:
        assert journal.recovered_from is None
        assert journal.subjects.dirty_count() == 19


def test_last_transaction_torn_in_its_beginning_is_a_power_cut_too(killed: Path, tmp_path, clock: HandClock) -> None:
    log = damage._read_log(killed)
    commits = [number for number, (_, commit, *_) in enumerate(log.frames) if commit]
    assert commits[-1] == len(log.frames) - 1
    assert commits[-1] - commits[-2] > 1
    page_size = damage._WAL_HEADER.unpack(log.header)[2]
    torn = 32 + (commits[-2] + 1) * (24 + page_size) + 100
    path = copy_with_log(killed, tmp_path, lambda log: log[:torn] + b"\xa5" * 8 + log[torn + 8 :])
    with Journal.open(path, clock=clock) as journal:
        assert journal.recovered_from is None
        assert journal.subjects.dirty_count() == 19


def test_frames_of_an_earlier_log_are_no_damage(path: Path, tmp_path, clock: HandClock) -> None:
    with Journal.open(path, clock=clock) as journal:
        for number in range(20):
            journal.subjects.mark([booking(str(number))], Source.NOTIFICATION)
        with journal.reading() as connection:
            assert connection.exec_driver_sql("PRAGMA wal_checkpoint(RESTART)").one()[0] == 0
        journal.subjects.mark([booking("after")], Source.NOTIFICATION)
        (tmp_path / "image").mkdir()
        image = tmp_path / "image" / path.name
        for suffix in ("", "-wal"):
            shutil.copy(f"{path}{suffix}", f"{image}{suffix}")
    assert len({frame[2:] for frame in damage._read_log(image).frames}) == 2
    with Journal.open(image, clock=clock) as journal:
        assert journal.recovered_from is None
        assert journal.subjects.dirty_count() == 21


def test_log_that_grows_while_it_is_looked_at_is_no_damage(path: Path, clock: HandClock, monkeypatch) -> None:
    with Journal.open(path, clock=clock) as journal:
        for number in range(20):
            journal.subjects.mark([booking(str(number))], Source.NOTIFICATION)

        def meanwhile(_: Path) -> int:
            journal.subjects.mark([booking("meanwhile")], Source.NOTIFICATION)
            return 0

        with monkeypatch.context() as patched:
            patched.setattr(damage, "_readable_frames", meanwhile)
            assert damage.find_damage(path) is None
            patched.setattr(damage, "_readable_frames", lambda _: 0)
            assert damage.find_damage(path) is not None


@pytest.mark.parametrize(
    "change",
    [
        lambda log: log[: len(log) // 2] + b"\xa5" + log[len(log) // 2 + 1 :],
        lambda log: b"\0" * 32 + log[32:],
        lambda log: log[:16] + b"\xa5" * 8 + log[24:],
        lambda log: log[:20],
    ],
    ids=["a byte in its middle", "its header zeroed", "its salts overwritten", "cut within its header"],
)
def test_commits_behind_a_break_in_the_log_are_not_dropped_without_a_word(
    killed: Path, tmp_path, clock: HandClock, change
) -> None:
    path = copy_with_log(killed, tmp_path, change)
    log = path.with_name(path.name + "-wal").read_bytes()
    with Journal.open(path, clock=clock) as journal:
        assert journal.recovered_from is not None
        assert journal.recovered_from.with_name(journal.recovered_from.name + "-wal").read_bytes() == log


def test_log_without_its_database_is_damage(killed: Path, tmp_path, clock: HandClock) -> None:
    path = copy_with_log(killed, tmp_path, lambda log: log)
    path.unlink()
    with Journal.open(path, clock=clock) as journal:
        assert journal.recovered_from is not None
        assert journal.subjects.dirty_count() == 0


def test_another_programs_database_is_left_alone(path: Path, clock: HandClock) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE customers (name TEXT)")
        other.commit()
    before = path.read_bytes()
    with pytest.raises(JournalError, match="not an octo-sync journal"):
        Journal.open(path, clock=clock)
    assert path.read_bytes() == before


def test_looking_for_damage_does_not_disturb_those_who_work(path: Path, clock: HandClock) -> None:
    with Journal.open(path, clock=clock) as journal:
        for number in range(30):
            journal.subjects.mark([booking(str(number))], Source.NOTIFICATION)
            with Journal.open(path, clock=clock) as other:
                assert other.recovered_from is None
                assert other.subjects.dirty_count() == number + 1
