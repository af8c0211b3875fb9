"""Every error of octo-sync, and what each one means.

```
OctoSyncError
├── ConfigError               the pipeline file, a flag or a secret is wrong; nothing was tried
├── ServiceError              the OCTO service, as told by status first and code second
│   ├── AuthenticationRefused the token is missing, wrong, revoked or lacks an ability
│   ├── NotFound              a typed "this id does not exist": the only proof of a deletion (R7)
│   ├── RequestRefused        any other 4xx: this one request is wrong, others may be right
│   ├── RateLimited           429 beyond what waiting was allowed for
│   ├── ServiceUnavailable    down, slow, 5xx, or the connection broke
│   └── AnswerInvalid         an answer that is not whole and valid JSON of the promised shape
│       └── AnswerTooLarge    larger than the caps; ask for a smaller window
├── JournalError              the control database cannot be read or written
├── WarehouseError            the warehouse cannot be read or written
│   ├── WarehouseLocked       another process holds the database file
│   ├── RowsRefused           a value of a landing fits no column; nothing of the landing was kept
│   └── WriterFenced          a newer writer took over; nothing of this landing was kept
├── LeaseHeld                 another run owns this project
├── ReconcileError            two sides cannot be compared as asked; nothing of it was stored
├── LedgerError               the other side of a reconciliation cannot be read
├── QueryError                a user's SQL is wrong, or wants more than to read
└── MassDeletionHeld          a pull would lose more than is plausible; a person must allow it
```

Lower errors (httpx, duckdb, sqlalchemy) are translated once, where they are caught: `octo/client.py`, `journal/`,
`destinations/`. An error's text is a sentence that says what, where and what to do. It never carries a token or a payload.
"""

__all__ = [
    "AnswerInvalid",
    "AnswerTooLarge",
    "AuthenticationRefused",
    "ConfigError",
    "JournalError",
    "LeaseHeld",
    "LedgerError",
    "MassDeletionHeld",
    "NotFound",
    "OctoSyncError",
    "QueryError",
    "RateLimited",
    "ReconcileError",
    "RequestRefused",
    "RowsRefused",
    "ServiceError",
    "ServiceUnavailable",
    "WarehouseError",
    "WarehouseLocked",
    "WriterFenced",
]


class OctoSyncError(Exception):
    """Something octo-sync cannot go on with.

    `run_id` is the run that it ended, if that is in the journal: `octo-sync runs ID` has the rest.
    """

    run_id: str | None = None


class ConfigError(OctoSyncError):
    """The configuration is wrong.

    `mistakes` holds every one that was found, each a sentence with its key.
    """

    def __init__(self, message: str, mistakes: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.mistakes = mistakes


class ServiceError(OctoSyncError):
    """The OCTO service refused, failed or answered rubbish.

    `status` is the HTTP status (None when there was no answer) and `code` OCTO's `error` field, upper-cased.
    """

    def __init__(self, message: str, *, status: int | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class AuthenticationRefused(ServiceError):
    """The service refused the token."""


class NotFound(ServiceError):
    """The service says, with a typed error, that this id does not exist."""


class RequestRefused(ServiceError):
    """The service refused this request; another one may well succeed."""


class RateLimited(ServiceError):
    """The service asks for fewer requests, for longer than this request may wait.

    `retry_after` is what it asked for, in seconds, or None.
    """

    def __init__(
        self, message: str, *, status: int | None = 429, code: str | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(message, status=status, code=code)
        self.retry_after = retry_after


class ServiceUnavailable(ServiceError):
    """The service is down, slow or broke the connection."""


class AnswerInvalid(ServiceError):
    """The answer is not what it should be; not one row of it may be used."""


class AnswerTooLarge(AnswerInvalid):
    """The answer is larger than the caps allow; ask for a smaller window."""


class JournalError(OctoSyncError):
    """The journal cannot be read or written."""


class WarehouseError(OctoSyncError):
    """The warehouse cannot be read or written."""


class WarehouseLocked(WarehouseError):
    """Another process holds the warehouse."""


class RowsRefused(WarehouseError):
    """A value of this landing fits no column; nothing of the landing was kept."""


class WriterFenced(WarehouseError):
    """A newer writer owns the warehouse; this landing was rolled back."""


class LeaseHeld(OctoSyncError):
    """Another run owns this project."""


class ReconcileError(OctoSyncError):
    """Two sides cannot be compared as asked; nothing of it was stored."""


class LedgerError(OctoSyncError):
    """The other side of a reconciliation cannot be read."""


class QueryError(OctoSyncError):
    """A user's SQL is wrong, or wants more than to read the copy."""


class MassDeletionHeld(OctoSyncError):
    """Too much would be deleted at once; a person must look and allow it."""


def install(extra: str) -> str:
    """What to do where the packages of an extra are missing; octo-sync itself is in no package index."""
    return f"pip install '.[{extra}]' in the checkout"
