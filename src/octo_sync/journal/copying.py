"""The journal as a whole: copying its file, being sure of having it alone, and moving its rows to another place."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sqlalchemy import delete, insert, select

from octo_sync.errors import LeaseHeld
from octo_sync.journal.faults import translated
from octo_sync.journal.models import metadata
from octo_sync.journal.sqlite import FileLease
from octo_sync.journal.store import Store

_OWN = ("schema_version", "leases")
_ROWS = 1_000
_PATIENCE = 0.2
"""Seconds to wait for a lock that another process holds for a moment."""


def copy_journal(path: Path, target: Path) -> None:
    """A copy of one committed state in a new file, whole and by itself, also while others write.

    Raises:
        JournalError: It cannot be read, or the copy cannot be written.
    """
    with translated(str(path)):
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        uri = f"{path.resolve().as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True)) as source, closing(sqlite3.connect(target)) as copy:
            source.backup(copy)


def move_rows(former: Store, journal: Store) -> int:
    """Put all rows of one journal in the place of another's, in one transaction; how many.

    Each keeps its own schema's versions and its lease: whoever owns it has that already.
    """
    moved = 0
    with former.reading() as source, journal.writing(alone=True) as target:
        for table in metadata.sorted_tables:
            if table.name in _OWN:
                continue
            target.execute(delete(table))
            told = [column for column in table.columns if column.computed is None]
            for rows in source.execute(select(*told)).mappings().partitions(_ROWS):
                target.execute(insert(table), [dict(row) for row in rows])
                moved += len(rows)
            journal.database.number_on(target, table)
    return moved


def is_in_use(path: Path) -> bool:
    """Whether a process has the journal open, one that only takes deliveries too. What is no journal is not in use."""
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=rw", uri=True, timeout=_PATIENCE)) as connection:
            # Whoever has it open holds a shared lock for as long.
            connection.execute("PRAGMA locking_mode=EXCLUSIVE").fetchall()
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
    except sqlite3.OperationalError as error:
        return "locked" in str(error)
    except sqlite3.DatabaseError:
        return False
    return False


@contextmanager
def locked(lock_path: Path) -> Iterator[None]:
    """The writer's lock without its journal, for who puts another journal in place: nobody can take the lease meanwhile.

    Raises:
        LeaseHeld: Another process has it.
    """
    lock = FileLease(lock_path)
    if not lock.acquire():
        raise LeaseHeld("Another octo-sync process works on this project; wait until it has ended, or end it.")
    try:
        yield
    finally:
        lock.release()
