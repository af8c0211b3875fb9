"""The journal: the small transactional truth about what is owed.

One SQLite file: write-ahead log, `synchronous=FULL`, mode 0600. What a method has returned from is on the disk. The
warehouse is derived and can always be rebuilt by marking everything; the journal says what has to be looked at and what
was.

The class is put together from one file per concern:

- `store.py`: the file, its schema, transactions · `damage.py`: is it whole · `faults.py`: errors as sentences
- `subjects.py`: mark, claim, landed, failed, release, forget · `sql.py`: their statements
- `quarantine.py`: what is left alone, with its reason
- `inbox.py`: deliveries, and the timers that they and others set
- `runs.py`: runs, leases, settings · `lease.py`: the one writer
- `endpoints.py`: where webhooks are accepted
- `models.py`: every table and column, every state · `migrations/`: how the tables came to be
"""

from octo_sync.journal.endpoints import Endpoints
from octo_sync.journal.inbox import Inbox
from octo_sync.journal.runs import Runs

__all__ = ["Journal"]


class Journal(Inbox, Endpoints, Runs):
    """An open journal; `Journal.open(path, clock=clock)`. Synchronous and thread-safe, a context manager.

    Every method raises JournalError, in a sentence, when the file cannot be read or written; the next call tries again
    with a new connection.
    """
