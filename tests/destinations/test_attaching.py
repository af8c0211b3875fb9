"""Opening a published file while others are swapped in: what is attached is one of them, whole."""

import itertools
import os
import shutil
import threading
from pathlib import Path

import duckdb
import pytest

import octo_sync
from octo_sync.destinations.duckdb import files as attaching
from octo_sync.errors import WarehouseError

ROWS = 20_000


def made(path: Path, version: int, *, moved: bool) -> Path:
    """A file that says which version it is. `moved`: its rows are in other blocks of the file."""
    with duckdb.connect(str(path)) as db:
        for schema in ("marts", "core", "ops"):
            db.execute(f"create schema {schema}")
        if moved:
            db.execute("create table core.ballast as select random() from range(200000)")
            db.execute("checkpoint")
        db.execute(f"create table core.t as select range a, {version} as version from range({ROWS})")
        db.execute("checkpoint")
        if moved:
            db.execute("drop table core.ballast")
            db.execute("checkpoint")
    return path


def read(path: Path) -> list[tuple[object, ...]]:
    with octo_sync.open(path) as copy:
        return copy.sql("select count(*), min(version), max(version), sum(a) from core.t").rows()


@pytest.mark.deep(2)
def test_each_of_many_readers_has_one_whole_file(tmp_path):
    both = [made(tmp_path / f"{n}.duckdb", n, moved=bool(n)) for n in (0, 1)]
    # Many files, so that none comes back while one reader opens it; as with publications, each of which is a new file.
    files = [Path(shutil.copyfile(both[n % 2], tmp_path / f"copy-{n}")) for n in range(16)]
    target, ended = tmp_path / "octo.read.duckdb", threading.Event()
    shutil.copyfile(both[0], target)

    def publish():
        for file in itertools.cycle(files):
            os.link(file, tmp_path / "fresh")
            (tmp_path / "fresh").replace(target)
            if ended.wait(0.002):
                return

    publisher = threading.Thread(target=publish)
    publisher.start()
    try:
        seen = [read(target) for _ in range(80)]
    finally:
        ended.set()
        publisher.join()
    whole = [[(ROWS, n, n, sum(range(ROWS)))] for n in (0, 1)]
    assert [rows for rows in seen if rows not in whole] == []
    assert all(rows in seen for rows in whole), "it must have been replaced meanwhile, or nothing is shown"


@pytest.fixture
def replaced(tmp_path, monkeypatch):
    """A file that is replaced while it is attached, as often as its list has versions left."""
    target, waiting = made(tmp_path / "octo.read.duckdb", 0, moved=False), []
    identity, looks = attaching._identity, itertools.count()

    def replacing(path):
        found = identity(path)
        if next(looks) % 2 == 0 and waiting:
            made(tmp_path / "fresh", waiting.pop(0), moved=False).replace(target)
        return found

    monkeypatch.setattr(attaching, "_identity", replacing)
    return target, waiting


def test_it_is_opened_again_when_it_was_replaced_meanwhile(replaced):
    target, waiting = replaced
    waiting += [1, 2, 3]
    assert read(target) == [(ROWS, 3, 3, sum(range(ROWS)))]
    assert waiting == []


def test_what_is_replaced_all_the_time_is_given_up_in_a_sentence(replaced, monkeypatch):
    target, waiting = replaced
    monkeypatch.setattr(attaching, "_ATTEMPTS", 3)
    waiting += [1, 2, 3, 4]
    with pytest.raises(WarehouseError, match="was replaced 3 times while it was being opened"):
        read(target)
    assert waiting == [4]


def test_a_damaged_file_that_stays_is_not_opened_again_and_again(tmp_path):
    target = made(tmp_path / "octo.read.duckdb", 0, moved=True)
    with target.open("r+b") as file:
        file.truncate(300_000)
    with pytest.raises(WarehouseError, match="octo-sync publish makes it anew"):
        read(target)


def test_a_block_that_is_damaged_is_said_to_be_damage(tmp_path):
    """DuckDB's sentence has the word block in it, which is no lock."""
    target = made(tmp_path / "octo.read.duckdb", 0, moved=False)
    blocks = 12_288  # after three headers of 4 KB
    with target.open("r+b") as file:
        file.seek(blocks)
        file.write(bytes(target.stat().st_size - blocks))
    with pytest.raises(WarehouseError, match=r"is damaged or cut off \(.*block.*\); octo-sync publish makes it anew"):
        read(target)
