"""The journal: the small transactional truth about what is owed.

One SQLite file (write-ahead log, `synchronous=FULL`, mode 0600), or the schema `journal` of a PostgreSQL database
(`synchronous_commit=on`). What a method has returned from is on the disk. The warehouse is derived and can always be
rebuilt by marking everything; the journal says what has to be looked at and what was.

- `store.py`: opening, schema, transactions · `faults.py`: errors as sentences
- `database.py`: what differs between a file and a server
- `sqlite.py`: the file · `damage.py`: is it whole · `copying.py`: its backups
- `postgres.py`: the server · `translation.py`: SQLite's spelling of statements as PostgreSQL's
- `models.py`: every table, column and state, and the rows of them · `sql.py`: the hand-tuned statements
- one file for each noun that `Journal` has
"""

from pathlib import Path
from typing import Self

from octo_sync.journal.endpoints import Endpoints
from octo_sync.journal.erasures import Erasures
from octo_sync.journal.inbox import Inbox
from octo_sync.journal.lease import Leases
from octo_sync.journal.numbers import Numbers
from octo_sync.journal.quarantine import Quarantine
from octo_sync.journal.reconciliations import Reconciliations
from octo_sync.journal.runs import Runs
from octo_sync.journal.settings import Settings
from octo_sync.journal.store import Store
from octo_sync.journal.subjects import Subjects
from octo_sync.journal.timers import Timers
from octo_sync.model import Clock

__all__ = ["Journal"]


class Journal:
    """An open journal; `Journal.open(path, clock=clock)`. Synchronous and thread-safe, a context manager.

    Every method raises JournalError, in a sentence, when the file or the server cannot be read or written; the next call
    tries again with a new connection.
    """

    def __init__(self, path: Path | str, *, clock: Clock, store: Store | None = None) -> None:
        self.store = store or Store(path, clock=clock)
        """The file or the server: upkeep, transactions."""
        store = self.store
        self.path = store.path
        """The file, or the `postgresql://` address."""
        self.name = store.name
        """What sentences call it; without a password."""
        self.recovered_from = store.recovered_from
        """Where a damaged predecessor was moved to when this file was opened; the caller then marks everything."""
        self.numbers = Numbers(store)
        self.subjects = Subjects(store)
        self.timers = Timers(store)
        self.inbox = Inbox(store)
        self.quarantine = Quarantine(store, self.subjects)
        self.runs = Runs(store, self.subjects)
        self.leases = Leases(store)
        self.settings = Settings(store)
        self.endpoints = Endpoints(store)
        self.erasures = Erasures(store, self.settings, self.numbers)
        self.reconciliations = Reconciliations(store, self.settings, self.erasures)

    @classmethod
    def open(cls, path: Path | str, *, clock: Clock) -> Self:
        """Open the journal, or create it; move a damaged file aside and start a fresh one.

        `path` is an SQLite file or the address of a PostgreSQL database, `postgresql://user@host/database`.

        Raises:
            JournalError: Another program's database, a newer octo-sync's schema, no right to write, locked, disk full, no
                server.
        """
        return cls(path, clock=clock, store=Store.open(path, clock=clock))

    @staticmethod
    def exists(path: Path | str) -> bool:
        """Whether a journal was ever made there; looking makes none."""
        return Store.exists(path)

    def close(self) -> None:
        """Close it; the last one to close a file also empties its write-ahead log. Closing twice is fine."""
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
