"""Is the file whole? SQLite notices some damage late and some never; this looks before anything is read from it.

Three looks: is it a database at all (an emptied file is one, to SQLite); does every page of every tree make sense
(`quick_check`); was anything committed in the write-ahead log that SQLite would drop. The last is the dangerous one:
SQLite reads the log up to the first frame whose checksum is wrong and takes the rest for the remains of a transaction
that was never finished. That is right for one transaction at the end, which is what a power cut leaves. Commits
*behind* that one were acknowledged, because each is on the disk before the next begins.
"""

import os
import sqlite3
import struct
import threading
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from octo_sync.disk import fsync
from octo_sync.errors import JournalError
from octo_sync.journal.faults import BUSY_TIMEOUT_MS, is_damage

APPLICATION_ID = 0x4F43_544A
"""`OCTJ`, written into the file's header, so that another program's database is never taken for a journal."""

_WAL_HEADER = struct.Struct(
    ">8I"
)  # magic, version, page size, checkpoint number, salt 1, salt 2, checksum 1, checksum 2
_WAL_FRAME = struct.Struct(">4I")  # page, size of the database after a commit or 0, salt 1, salt 2; then the checksum
_WAL_FRAME_HEADER = 24
_SMALLEST_PAGE, _LARGEST_PAGE = 512, 65536

_indexes: dict[Path, int] = {}
"""Descriptors of the indexes beside the logs that were looked at. They stay open: closing any descriptor of a file drops all
locks that the process has on it, also those of SQLite's own connections. Another process would then take itself for the
first one and begin the index anew under this one's feet (SIGBUS), or write and fold the log beside a writer."""
_indexes_lock = threading.Lock()


def wal_of(path: Path) -> Path:
    """The write-ahead log beside the database."""
    return path.with_name(path.name + "-wal")


def find_damage(path: Path) -> str | None:
    """What is wrong with the file, or None. Only looks: the evidence stays as it is.

    Raises JournalError when it is another program's database, and `sqlite3.Error` or `OSError` when it cannot be
    looked at.
    """
    if not path.exists():
        return "the database is gone and its write-ahead log is still there"
    log = _read_log(path)
    try:
        # Read-only, because a writer that closes last folds the log into the database and deletes it.
        uri = f"{path.resolve().as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True, timeout=BUSY_TIMEOUT_MS / 1000)) as connection:
            application = connection.execute("PRAGMA application_id").fetchone()[0]
            tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
            if tables and application == 0:
                raise JournalError(
                    f"{path} is a database, but not an octo-sync journal; it was left alone. "
                    "Give the journal another path."
                )
            if application != APPLICATION_ID:  # an emptied file too: to SQLite that is a database without tables
                return "the file's header is not a journal's"
            found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            if found != "ok":
                return str(found).splitlines()[-1]
            lost = _lost_commits(log, _readable_frames(path))
            # Another process may have been writing while this one was reading: then the log has changed, and it was no
            # damage.
            return lost if lost is None or _read_log(path) == log else None
    except sqlite3.DatabaseError as error:
        if is_damage(error):
            return str(error)
        raise


@dataclass(frozen=True, slots=True)
class _Log:
    """What the write-ahead log says about itself (https://sqlite.org/walformat.html)."""

    header: bytes
    frames: list[tuple[int, ...]]
    """Page, size of the database after a commit or 0, salt 1, salt 2."""


def _read_log(path: Path) -> _Log:
    frames: list[tuple[int, ...]] = []
    try:
        with wal_of(path).open("rb") as file:
            header = file.read(_WAL_HEADER.size)
            size = os.fstat(file.fileno()).st_size
            page_size = _WAL_HEADER.unpack(header)[2] if len(header) == _WAL_HEADER.size else 0
            if _SMALLEST_PAGE <= page_size <= _LARGEST_PAGE:
                step = _WAL_FRAME_HEADER + page_size
                for at in range(_WAL_HEADER.size, size - step + 1, step):
                    file.seek(at)
                    frames.append(_WAL_FRAME.unpack(file.read(_WAL_FRAME.size)))
    except FileNotFoundError:
        return _Log(b"", [])
    return _Log(header, frames)


def _readable_frames(path: Path) -> int:
    """How many frames SQLite goes by: `mxFrame` of the index that it has just built or found beside the log."""
    index = path.with_name(path.name + "-shm").resolve()
    with _indexes_lock:
        there, known = index.stat(), _indexes.get(index)
        if known is None or not os.path.samestat(os.fstat(known), there):
            if known is not None:
                os.close(known)  # a former file of that name, which nobody can open any more
            known = _indexes[index] = os.open(index, os.O_RDONLY)
        head = os.pread(known, 20, 0)
    return int(struct.unpack_from("=I", head, 16)[0]) if len(head) == 20 else 0  # noqa: PLR2004 - the file's format


def _lost_commits(log: _Log, readable: int) -> str | None:
    """Whether the log held commits behind the frames that SQLite went by."""
    if not log.header:
        return None
    if not _header_is_whole(log.header):
        return "the write-ahead log's header is broken, so nothing in it can be read"
    salts = _WAL_HEADER.unpack(log.header)[4:6]
    # What carries this log's salts was written into this log; other frames are left from before its last restart.
    commits = sum(1 for _, commit, *own in log.frames[readable:] if commit and tuple(own) == salts)
    if commits < 2:  # noqa: PLR2004 - one is the transaction that a power cut tore
        return None
    return f"the write-ahead log is broken and {commits} commits in it cannot be read"


def _header_is_whole(wal: bytes) -> bool:
    if len(wal) < _WAL_HEADER.size:
        return False
    magic, *_, check_1, check_2 = _WAL_HEADER.unpack_from(wal)
    if magic not in (0x377F_0682, 0x377F_0683):
        return False
    words = struct.unpack_from(">6I" if magic & 1 else "<6I", wal)
    one = two = 0
    for x, y in zip(words[::2], words[1::2], strict=True):
        one = (one + x + two) & 0xFFFF_FFFF
        two = (two + y + one) & 0xFFFF_FFFF
    return (one, two) == (check_1, check_2)


def move_aside(path: Path, now: datetime) -> Path:
    """Rename the database and its companions; the new name of the database."""
    name = f"{path.name}.corrupt-{now.astimezone(UTC):%Y%m%dT%H%M%SZ}"
    target, number = path.with_name(name), 1
    while target.exists() or wal_of(target).exists():
        number += 1
        target = path.with_name(f"{name}-{number}")
    for suffix in ("-wal", "-shm", ""):
        with suppress(FileNotFoundError):
            path.with_name(path.name + suffix).rename(target.with_name(target.name + suffix))
    with suppress(OSError):  # where the system can
        fsync(path.parent)
    return target
