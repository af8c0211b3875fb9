"""Every driver error becomes one `JournalError` with a sentence: what, where, what to do."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from octo_sync.errors import JournalError

__all__ = ["BUSY_TIMEOUT_MS", "is_damage", "translated"]

BUSY_TIMEOUT_MS = 10_000

_DAMAGE = ("SQLITE_CORRUPT", "SQLITE_NOTADB")
# Beginnings of SQLite's result code names (https://sqlite.org/rescode.html); extended codes begin with the primary one.
_SENTENCES = {
    "SQLITE_BUSY": "was locked by another process for more than {seconds} s; nothing was changed. Try again, or end "
    "the process that holds it",
    "SQLITE_LOCKED": "is locked by another statement of this process; nothing was changed",
    "SQLITE_FULL": "cannot grow because the disk is full; nothing was changed. Free some space and run again",
    "SQLITE_READONLY": "cannot be written: the file, its directory or the disk is read-only. Make both writable for "
    "this user",
    "SQLITE_CANTOPEN": "cannot be opened: check that its directory exists and that this user may write there",
    "SQLITE_PERM": "cannot be opened: this user may not",
    "SQLITE_CORRUPT": "is damaged. Run again: it will be moved aside and everything will be marked to be fetched anew",
    "SQLITE_NOTADB": "is damaged or no database. Run again: it will be moved aside and everything will be marked to be "
    "fetched anew",
    "SQLITE_IOERR": "cannot be read or written: the disk reported an error. Look at the system's log, then run again",
    "SQLITE_CONSTRAINT": "refused a change that would have broken one of its rules; nothing was changed. "
    "Please report this",
}


def is_damage(error: BaseException) -> bool:
    """Whether the error says that the file's content is broken."""
    return str(getattr(error, "sqlite_errorname", "")).startswith(_DAMAGE)


def _sentence(path: Path, error: BaseException) -> str:
    name = str(getattr(error, "sqlite_errorname", ""))
    for beginning, sentence in _SENTENCES.items():
        if name.startswith(beginning):
            return f"The journal {path} {sentence.format(seconds=BUSY_TIMEOUT_MS // 1000)} ({name}: {error})."
    return f"The journal {path} cannot be used: {name or type(error).__name__}: {error}."


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Inside, errors of the driver, of SQLAlchemy and of the operating system become `JournalError`."""
    try:
        yield
    except DBAPIError as error:
        # The text of the driver's own error: SQLAlchemy's would show the parameters too.
        raise JournalError(_sentence(path, error.orig or error)) from error.orig
    except (sqlite3.Error, SQLAlchemyError) as error:
        raise JournalError(_sentence(path, error)) from error
    except OSError as error:
        raise JournalError(f"The journal {path} cannot be used: {error.strerror or error}.") from error
