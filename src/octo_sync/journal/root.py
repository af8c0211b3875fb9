"""The journal: the small transactional truth about what is owed.

One SQLite file (write-ahead log, `synchronous=FULL`, mode 0600), or the schema `journal` of a PostgreSQL database
(`synchronous_commit=on`). What a method has returned from is on the disk. The warehouse is derived and can always be
rebuilt by marking everything; the journal says what has to be looked at and what was.

- `store.py`: what every noun stands on: opening, schema, transactions · `faults.py`: errors as sentences
- `database.py`: what differs between a file and a server
- `sqlite.py`: the file · `damage.py`: is it whole · `copying.py`: its backups
- `postgres.py`: the server · `translation.py`: SQLite's spelling of statements as PostgreSQL's
- `models.py`: every table, column and state, and the rows of them · `queries.sql`: the hand-tuned statements
- one file for each noun that `Journal` has
"""

from pathlib import Path

from octo_sync.journal.acts import Acts
from octo_sync.journal.closings import Closings
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


class Journal(Store):
    """An open journal; `Journal.open(path, clock=clock)`. Synchronous and thread-safe, a context manager.

    Every method raises JournalError, in a sentence, when the file or the server cannot be read or written; the next call
    tries again with a new connection.
    """

    def __init__(self, path: Path | str, *, clock: Clock, recovered_from: Path | None = None) -> None:
        super().__init__(path, clock=clock, recovered_from=recovered_from)
        self.numbers = Numbers(self)
        self.subjects = Subjects(self)
        self.timers = Timers(self)
        self.inbox = Inbox(self)
        self.quarantine = Quarantine(self)
        self.runs = Runs(self)
        self.leases = Leases(self)
        self.settings = Settings(self)
        self.endpoints = Endpoints(self)
        self.erasures = Erasures(self)
        self.closings = Closings(self)
        self.acts = Acts(self)
        self.reconciliations = Reconciliations(self)
