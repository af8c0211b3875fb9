"""The journal: the small transactional truth about what is owed.

One SQLite file (write-ahead log, `synchronous=FULL`, mode 0600), or the schema `journal` of a PostgreSQL database
(`synchronous_commit=on`). What a method has returned from is on the disk. The warehouse is derived and can always be
rebuilt by marking everything; the journal says what has to be looked at and what was.

The class is put together from one file per concern:

- `store.py`: its schema, transactions, and what differs between a file and a server · `faults.py`: errors as sentences
- `sqlite.py`: the file · `damage.py`: is it whole · `copying.py`: its backups
- `postgres.py`: the server · `translation.py`: SQLite's spelling of statements and tables as PostgreSQL's
- `subjects.py`: mark, claim, landed, failed, release, forget · `sql.py`: their statements
- `quarantine.py`: what is left alone, with its reason
- `inbox.py`: deliveries, and the timers that they and others set
- `runs.py`: runs, leases, settings · `lease.py`: the one writer
- `endpoints.py`: where webhooks are accepted
- `erasing.py`: who was asked to be forgotten, and what goes from here
- `reconciliations.py`: what comparisons with other systems found, since when, and what somebody lets be
- `overview.py`: counts over all of it, for status and metrics
- `models.py`: every table and column, every state · `migrations/`: how the tables came to be
"""

from octo_sync.journal.endpoints import Endpoints
from octo_sync.journal.overview import Overview
from octo_sync.journal.reconciliations import Reconciliations

__all__ = ["Journal"]


class Journal(Reconciliations, Endpoints, Overview):
    """An open journal; `Journal.open(path, clock=clock)`. Synchronous and thread-safe, a context manager.

    Every method raises JournalError, in a sentence, when the file or the server cannot be read or written; the next call
    tries again with a new connection.
    """
