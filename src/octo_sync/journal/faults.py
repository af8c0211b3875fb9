"""Every driver error becomes one `JournalError` with a sentence: what, where, what to do."""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from octo_sync.errors import JournalError

BUSY_TIMEOUT_MS = 5_000
"""How long one waits for another process's lock: less than a sender waits for an answer (`webhooks.request_timeout`), so
that a receiver says 503, which is tried again, before it is cut off."""

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


# Beginnings of SQLSTATE codes (https://www.postgresql.org/docs/current/errcodes-appendix.html); the first that fits.
_SERVERS_SENTENCES = {
    "55P03": "was locked for more than {seconds} s; nothing was changed. Try again, or end the session that holds the lock",
    "40P01": "was locked by two sessions waiting for each other; nothing was changed. Try again",
    "57014": "took longer than the server allows; nothing was changed. Try again",
    "57P": "cannot be reached: the server is stopping, starting or has ended this session. What was not acknowledged counts "
    "as not done; the next try connects anew",
    "25P03": "ended a transaction that stood still; nothing was changed. Try again",
    "25006": "cannot be written: the server or the session is read-only. Use the primary server, or allow writing",
    "53100": "cannot grow because the server's disk is full; nothing was changed. Free some space and run again",
    "53300": "cannot be reached: the server has too many connections. End some, or raise max_connections",
    "53": "cannot be used: the server is short of memory or of something else; nothing was changed. Look at its log",
    "28": "cannot be opened: the server refused this user. Check the user, and the password in PGPASSWORD or a password file",
    "3D000": "cannot be opened: the server has no such database. Create it, in UTF8",
    "42501": "cannot be used: this user may not. Grant it the schema `journal` (see docs/postgresql.md)",
    "22": "refused a value that would have broken one of its rules; nothing was changed. Please report this",
    "23": "refused a change that would have broken one of its rules; nothing was changed. Please report this",
    "08": "cannot be reached: the connection broke. What was not acknowledged counts as not done; the next try connects "
    "anew",
}
_UNREACHABLE = (
    "cannot be reached: no connection, or it broke. Check that the server runs and the address is right; what was not "
    "acknowledged counts as not done, and the next try connects anew"
)


def is_damage(error: BaseException) -> bool:
    """Whether the error says that the file's content is broken."""
    return str(getattr(error, "sqlite_errorname", "")).startswith(_DAMAGE)


def _sentence(path: Path | str, error: Any) -> str:  # noqa: ANN401 - psycopg's errors are not imported here
    kind = type(error).__name__
    if not hasattr(error, "sqlstate"):
        return _told(
            path, _SENTENCES, str(getattr(error, "sqlite_errorname", "")), f"{error}", otherwise=f"{kind}: {error}"
        )
    if not error.sqlstate and kind in {"OperationalError", "InterfaceError", "ConnectionTimeout"}:
        return f"The journal {path} {_UNREACHABLE}."
    # The server's primary message only: its details repeat the values of the row.
    return _told(path, _SERVERS_SENTENCES, str(error.sqlstate or ""), error.diag.message_primary, otherwise=kind)


def _told(path: Path | str, sentences: Mapping[str, str], code: str, said: str, *, otherwise: str) -> str:
    for beginning, sentence in sentences.items():
        if code.startswith(beginning):
            return f"The journal {path} {sentence.format(seconds=BUSY_TIMEOUT_MS // 1000)} ({code}: {said})."
    return f"The journal {path} cannot be used: {f'{code}: {said}' if code else otherwise}."


@contextmanager
def translated(path: Path | str) -> Iterator[None]:
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
    except Exception as error:
        if not hasattr(error, "sqlstate"):  # psycopg's own
            raise
        raise JournalError(_sentence(path, error)) from error
