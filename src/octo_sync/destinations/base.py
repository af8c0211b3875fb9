"""What a warehouse takes and gives: answers to land, findings, rows, and drafts of what is to be published."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Protocol

from octo_sync.destinations.gate import Guard, Lost
from octo_sync.model import Source, Subject, Window


@dataclass(frozen=True, slots=True)
class Payload:
    """A record as received, for `raw.records`. `body` is a view into the answer, not a copy of it."""

    resource: str
    key: str
    body: memoryview
    digest: str


@dataclass(frozen=True, slots=True)
class Seen:
    """A booking in an answer whose record equals the one its row was landed from, so that it was not read again."""

    uuid: str
    request_seq: int


@dataclass(frozen=True, slots=True)
class Shown:
    """The ids of records that came together: in answer to one request, or to one for each language.

    A record that was asked for by its own id and is not there counts as shown: it is what the answer is about.
    """

    requests: tuple[int, ...]
    ids: tuple[str, ...]

    @property
    def number(self) -> int:
        """The number of the request that started first: what it is as old as (R6)."""
        return min(self.requests)


KnownBookings = Mapping[int, tuple[str, date | None, date | None]]
"""Digest of a live row's record → uuid, travel date, date of creation."""


@dataclass(frozen=True, slots=True)
class Drift:
    """Something a service sent that no table expects."""

    connection: str
    resource: str
    kind: str
    name: str
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """A subject whose answer is ready to land.

    `noun` and `lines` are the checked records for the spool, one JSON object a line. `unchanged` means that the answer's
    bytes equal the last landed ones: only coverage is renewed. `not_found` means a typed "this id does not exist",
    `respelled` that the booking asked for was shown with its uuid in another case: one that has it as it was asked for is gone.
    `complete` is False when a record was set aside or the list was cut: then nothing is concluded from absence (R7).
    `seen` are records that were there but are not in `lines`; they count as present, and in `row_count`. `shown` are the
    records of all requests, `left_out` those that a later request has shown, by the number of this one: they are not landed.
    `date_meaning` is what the days of a list of bookings are: `travel` or `creation`, as it shows or the pipeline says,
    `either` where it fits both and nothing else is known (then they are what they were, else of travel), `unknown` where it
    fits neither.
    """

    subject: Subject
    request_seq: int
    fetched_at: datetime
    source: Source
    answer_hash: str
    noun: str = ""
    lines: tuple[bytes, ...] = ()
    window: Window | None = None
    row_count: int = 0
    complete: bool = True
    unchanged: bool = False
    not_found: bool = False
    respelled: bool = False
    missing_capabilities: tuple[str, ...] = ()
    date_meaning: str = "travel"
    payloads: tuple[Payload, ...] = ()
    drift: tuple[Drift, ...] = ()
    seen: tuple[Seen, ...] = ()
    shown: tuple[Shown, ...] = ()
    left_out: frozenset[tuple[int, str]] = frozenset()

    @property
    def unasked(self) -> bool:
        """Whether nothing had to be asked: a month that has left the horizon since it was marked."""
        return self.unchanged and not self.answer_hash

    @property
    def size(self) -> int:
        """Bytes it holds in memory until it is landed."""
        return sum(map(len, self.lines)) + sum(len(p.body) for p in self.payloads)


Fence = int | Mapping[str, int]
"""What a writer shows (R9): the token of who owns the whole project alone, or one for each connection that it writes of, and
under the empty name that of who keeps the copy as a whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Landing:
    """What one transaction lands. `fence` is the writer's: a newer one in the warehouse refuses it (R9).

    `guard` bounds what its answers may take away without a person's word; `lost_lately` tells what landings of the last hours
    took, and is asked only where something is lost.
    """

    run_id: str
    fence: Fence
    now: datetime
    answered: Sequence[Answered]
    guard: Guard = field(default_factory=Guard)
    lost_lately: Callable[[], Lost] = dict


@dataclass(slots=True)
class LandingReport:
    """What a landing did: rows written per table, and the subjects whose answers came too late to count (R6).

    `differing` are subjects that were taken for equal to what is landed and turned out not to be: to be fetched anew. `lost`
    are the fields that rows lost because few did.
    """

    written: Counter[str] = field(default_factory=Counter)
    stale: list[Subject] = field(default_factory=list)
    differing: list[Subject] = field(default_factory=list)
    absent: int = 0
    lost: dict[tuple[str, str, str], tuple[int, int]] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Rows inserted, changed or marked deleted in all tables."""
        return sum(self.written.values())


@dataclass(frozen=True, slots=True)
class Covered:
    """What is known of a subject's last landing."""

    request_seq: int
    answer_hash: str | None
    window: Window | None
    row_count: int


@dataclass(frozen=True, slots=True)
class Absence:
    """A live row that complete answers no longer had. `ask` is the subject that can tell."""

    connection: str
    table: str
    key: str
    ask: Subject
    misses: int


@dataclass(frozen=True, slots=True)
class Rows:
    """An answer to a query. `truncated` when the row limit cut it."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    types: tuple[str, ...] = ()
    truncated: bool = False

    def records(self) -> list[dict[str, Any]]:
        """The rows, each by the names of its columns."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


@dataclass(frozen=True, slots=True)
class TableDigest:
    """Row count and order-independent hash of one table's live rows in canonical form."""

    table: str
    rows: int
    digest: str


@dataclass(frozen=True, slots=True)
class FileSize:
    """How large a file of the warehouse is: bytes, values in its live rows, and the bytes that those need, at most."""

    bytes: int
    values: int
    needed: int


class Scripted(Protocol):
    """What marts are made in and checked with."""

    def run_script(self, statements: Iterable[str]) -> None:
        """Run statements in one transaction."""

    def query(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] = (), *, limit: int | None = None) -> Rows:
        """Run one reading statement."""


class Draft(Scripted, Protocol):
    """What is to be published: marts in the making, and what they say before anybody else sees them."""

    at_once: int = 1
    """Threads that may ask it at the same time."""

    def kept_marts(self, marts: Mapping[str, str], definition: str) -> Collection[str]:
        """Which of these marts, name → `table` or `view`, are there as they are defined now: of tables, only the rows are old.

        Where it is none, there is room for all. `definition` is a digest of all that makes them.
        """

    def passed(self, tables: Mapping[str, Collection[str]], definition: str) -> bool:
        """Whether checks of this definition passed on rows that were equal to these in all the columns of all the tables.

        False as well where that is not known: to compare a million rows takes a server as long as to check them.
        """
        del tables, definition
        return False

    def publish(self) -> int:
        """Show it to readers, at the latest at the end of the draft; its size in bytes.

        Raises:
            WarehouseError: The copy could not be put in place; the former one stays.
        """

    def withdraw(self) -> None:
        """Show none of it to anybody."""
