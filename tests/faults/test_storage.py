"""A disk that is full or may not be written: one clear sentence, nothing lost, and it goes on when there is room."""

import os
import resource
import shutil
import subprocess
from hashlib import sha256

import pyarrow as pa
import pytest
from tests.faults.test_kill import finish
from tests.flows.harness import Project
from tests.flows.reconcile_outcome import outcome

from octo_sync.flows.export.files import ExportError, export
from octo_sync.flows.reconcile.run import write


@pytest.fixture
def copy(tmp_path, service, pulled_once):
    shutil.copytree(pulled_once, tmp_path / "full")
    return Project(tmp_path / "full", service)


def assert_one_clear_error(code, said, errors):
    assert "Traceback" not in errors, errors
    assert code == 3, (code, said, errors)
    (told,) = [line for line in said if line.startswith("error")]
    assert told.split()[1] in {"WarehouseError", "JournalError"}, told
    assert len(told) > 40
    return told


@pytest.mark.deep(10)
@pytest.mark.parametrize("room", [0, 200_000, 1_200_000])
def test_no_file_may_grow_beyond_some_size_and_nothing_is_lost(tmp_path, service, room):
    """RLIMIT_FSIZE stands in for a quota: writes beyond it fail, wherever the run happens to be."""
    copy = Project(tmp_path / "limited", service)

    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))

    code, said, errors = finish(copy, "full", preexec_fn=limited)
    if room < 1_000_000:
        assert_one_clear_error(code, said, errors)
    else:
        assert code in {0, 3}, errors
    code, said, errors = finish(copy, "publish")
    assert (code, said[1]) == (0, "ok"), (said, errors)
    assert copy.differences() == []


@pytest.fixture
def disk(tmp_path):
    """A small disk of its own, where the machine lets us mount one."""
    place = tmp_path / "disk"
    place.mkdir()
    size = "32m"
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", place], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip("mounting is not allowed here")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


def fill(place, leave):
    free = os.statvfs(place)
    (place / "ballast").write_bytes(b"x" * max(0, free.f_bavail * free.f_frsize - leave))


@pytest.mark.deep(10, everyday=["0"])
@pytest.mark.parametrize("leave", [0, 900_000])
def test_a_full_disk_is_said_in_one_sentence_and_what_had_landed_stays(disk, service, pulled_once, leave):
    shutil.copytree(pulled_once, disk / "project")
    copy = Project(disk / "project", service)
    service.traffic(60, seed="disk")
    held = copy.warehouse()
    fill(disk, leave)
    code, said, errors = finish(copy, "full", "publish")
    told = assert_one_clear_error(code, said, errors) if leave < 100_000 else ""
    assert "space" in told.lower() or "full" in told.lower() or not told, told
    (disk / "ballast").unlink()
    now = copy.warehouse()
    assert all(len(now[table]) >= len(held[table]) * 0.9 for table in held)
    code, said, errors = finish(copy, "publish")
    assert (code, said[1]) == (0, "ok"), (said, errors)
    assert copy.differences() == []


@pytest.mark.deep(14)
def test_a_full_disk_keeps_the_old_read_copy(disk, service, pulled_once):
    shutil.copytree(pulled_once, disk / "project")
    copy = Project(disk / "project", service)
    code, said, errors = finish(copy, "publish")
    assert (code, said[1]) == (0, "ok"), errors
    read = copy.directory / "octo.read.duckdb"
    held = read.read_bytes()
    service.traffic(10, seed="publish")
    fill(disk, 700_000)
    finish(copy, "publish")
    assert read.read_bytes() == held or read.stat().st_size > 0
    (disk / "ballast").unlink()
    assert [f.name for f in copy.directory.iterdir() if f.name.startswith(".octo.read")] == []
    code, said, errors = finish(copy, "publish")
    assert (code, said[1]) == (0, "ok"), errors
    assert copy.differences() == []


@pytest.mark.deep(8)
def test_a_read_only_directory_is_said_in_one_sentence(disk, service, pulled_once):
    shutil.copytree(pulled_once, disk / "project")
    copy = Project(disk / "project", service)
    service.traffic(10, seed="read-only")
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    code, said, errors = finish(copy, "full")
    assert_one_clear_error(code, said, errors)
    subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
    code, said, errors = finish(copy)
    assert (code, said[1]) == (0, "ok"), (said, errors)
    assert copy.differences() == []


@pytest.mark.deep(3)
@pytest.mark.parametrize("name", ["octo.private.duckdb", "octo.journal.sqlite"])
def test_a_directory_where_a_file_belongs_is_said_in_one_sentence(tmp_path, service, name):
    copy = Project(tmp_path / "odd", service)
    (copy.directory / name).mkdir()
    code, said, errors = finish(copy)
    assert name in assert_one_clear_error(code, said, errors)


def assert_nothing_was_written(target, error):
    assert str(target) in str(error.value)
    assert "No space left" in str(error.value)
    assert target.read_text() == "yesterday's"
    assert sorted(path.name for path in target.parent.iterdir()) == ["ballast", target.name]


@pytest.mark.parametrize("form", ["html", "xlsx", "csv"])
def test_a_report_that_finds_no_room_says_where_and_yesterdays_stays(disk, form):
    (target := disk / f"ledger.{form}").write_text("yesterday's")
    fill(disk, 0)
    with pytest.raises(ExportError) as error:
        write(outcome(), target)
    assert_nothing_was_written(target, error)


@pytest.mark.parametrize("leave", [0, 200_000])
@pytest.mark.parametrize("form", ["parquet", "xlsx", "csv", "json", "jsonl"])
def test_an_export_that_finds_no_room_says_where_and_yesterdays_stays(disk, form, leave):
    (target := disk / f"bookings.{form}").write_text("yesterday's")
    fill(disk, leave)
    # Texts that no format makes much smaller.
    rows = pa.table({"text": [sha256(str(n).encode()).hexdigest() for n in range(20_000)]})
    with pytest.raises(ExportError) as error:
        export(rows.to_reader(1_000), target, form, force=True)
    assert_nothing_was_written(target, error)
