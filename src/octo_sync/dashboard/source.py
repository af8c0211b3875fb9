"""Where pages get their rows: the published copy, opened anew whenever another one was published.

On DuckDB the copy is a file that is replaced as a whole; on PostgreSQL a publish is one transaction. Either has a
`revision`, a text that changes when there is something new to see. It is looked at once a second at most.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from octo_sync.destinations.base import Rows
from octo_sync.destinations.duckdb.reader import DuckDBReader
from octo_sync.destinations.reading import Parameters, Reader, TableInfo, refuse_older
from octo_sync.errors import OctoSyncError, QueryError, WarehouseError
from octo_sync.flows import ask
from octo_sync.flows.acts import Acts
from octo_sync.flows.status.report import Status
from octo_sync.journal import Delivery

PAGE_SECONDS = 25.0
"""The longest time for one query of a page; less than the page itself may take, so that it can say what became of it."""
_PATIENCE = 1.0
"""How long a person's query waits for another person's: short ones take turns, of a long one they are told at once."""
_PEOPLE_MEMORY = "512MB"
"""The most memory for what a person asks in SQL: a slip must not take it from the receiver and the worker."""
_LOOK_EVERY = timedelta(seconds=1)
_RETRY_AFTER = timedelta(seconds=2)
"""Until a copy that could not be opened is tried again, though it looks the same."""
_KEEP = 200
"""Answers that are remembered at most: filters make ever new ones."""
_NOTHING = ""
_ON_A_SERVER = "server"
_REVISION = "select obj_description(to_regnamespace('marts'), 'pg_namespace')"
"""The comment that each publish makes anew."""

_Rows = list[dict[str, Any]]
_Kept = dict[tuple[Any, ...], "Future[_Rows]"]


class _AllBusy(WarehouseError):  # noqa: N818 - what is the matter
    """No connection became free in time."""


@dataclass(slots=True)
class _Opened:
    """Connections to one copy: two for pages, and one for what a person asks in SQL, which no page waits for."""

    revision: str
    pages: Reader
    second: Reader
    people: Reader
    users: int = 0
    retired: bool = False
    free: "SimpleQueue[Reader]" = field(default_factory=SimpleQueue)
    """Those of the pages that nobody uses now."""

    def __post_init__(self) -> None:
        self.free.put(self.pages)
        self.free.put(self.second)

    def query(self, sql: str, parameters: Parameters) -> Rows:
        """Rows for a page, by whichever connection is free."""
        with self.reader() as reader:
            return reader.query(sql, parameters, timeout=PAGE_SECONDS)

    @contextmanager
    def reader(self, wait: float | None = None) -> Iterator[Reader]:
        """Whichever connection of the pages is free within `wait` seconds; the default is a query's time."""
        try:
            reader = self.free.get(timeout=PAGE_SECONDS if wait is None else wait)
        except Empty:
            raise _AllBusy("All connections to the copy are busy; try again in a moment.") from None
        try:
            yield reader
        finally:
            self.free.put(reader)

    def close(self) -> None:
        for reader in (self.pages, self.second, self.people):
            reader.close()


class Source:
    """The published copy, for threads.

    Args:
        place: The read copy, or a `postgresql://` address.
        directory: The project; a file of its `warehouse/dashboard/` wins over the shipped one.
        now: The clock.
        status: How the project is, from the journal; None where there is none. Blocking.
        acts: What people may do on pages; None where they may do nothing.
        deliveries: Which deliveries named a booking, by connection and uuid; None without a journal. Blocking.
        canaries: The uuids of what canaries held of late; None without a journal. Blocking.
    """

    def __init__(
        self,
        place: Path | str,
        directory: Path,
        *,
        now: Callable[[], datetime],
        status: Callable[[], Status] | None = None,
        stale_after: float = 26 * 3600.0,
        acts: Acts | None = None,
        deliveries: Callable[[str, str], list[Delivery]] | None = None,
        canaries: Callable[[], frozenset[str]] | None = None,
    ) -> None:
        self.place, self.directory, self.now, self.status = place, directory, now, status
        self.stale_after, self.acts, self.deliveries, self.canaries = stale_after, acts, deliveries, canaries
        self._queries = {q.file.path.stem: q for q in ask.questions(directory, "dashboard")}
        self._lock = threading.Lock()
        self._opening = threading.Lock()
        self._asking = threading.Lock()
        self._held = threading.local()
        self._opened: _Opened | None = None
        self._failed: tuple[str, datetime, str] | None = None
        self._looked: tuple[datetime, str] | None = None
        self._closed = False
        self._kept: tuple[str, _Kept] = (_NOTHING, {})
        self._beside = ThreadPoolExecutor(1, "dashboard-ahead")

    @property
    def name(self) -> str:
        """What pages call the copy: a file's name, or a database and its host, never a password."""
        if isinstance(self.place, Path):
            return self.place.name
        from octo_sync.destinations.postgres.session import place  # noqa: PLC0415 - its driver is an extra

        return place(self.place)

    @property
    def revision(self) -> str:
        """Changes when another copy was published; '' while there is none."""
        try:
            with self.using() as opened:
                return opened.revision
        except OctoSyncError:
            return _NOTHING

    @property
    def trouble(self) -> str | None:
        """Why nothing can be read, as a sentence; None when all is well."""
        try:
            with self.using():
                return None
        except OctoSyncError as error:
            return str(error)

    def rows(self, name: str, **parameters: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - what the select wants
        """Rows of `warehouse/dashboard/NAME.sql`, one dict each; remembered until another copy is there.

        Raises:
            WarehouseError: The copy cannot be read.
            QueryError: The select does not run, or wants other parameters.
        """
        query = self._queries.get(name)
        if query is None:
            raise QueryError(f"There is no warehouse/dashboard/{name}.sql.")
        wanted = {p.name for p in query.parameters}
        if wanted != set(parameters):
            raise QueryError(f"{query.file.where} wants {', '.join(sorted(wanted)) or 'no parameters'}.")
        with self.using() as opened:
            key = (name, *sorted(parameters.items()))
            with self._lock:
                if self._kept[0] != opened.revision or len(self._kept[1]) >= _KEEP:
                    self._kept = opened.revision, {}
                kept = self._kept[1]
                is_new = key not in kept
                answer = kept.setdefault(key, Future())
            if is_new:
                # Answered for whoever waits for it; a failure is not remembered.
                try:
                    found = opened.query(query.sql, parameters)
                    answer.set_result([dict(zip(found.columns, row, strict=True)) for row in found.rows])
                except BaseException as error:
                    kept.pop(key, None)
                    answer.set_exception(error)
                    raise
            return answer.result(timeout=2 * PAGE_SECONDS)

    def ahead(self, *asked: tuple[str, Mapping[str, Any]]) -> None:
        """Begin with selects that a page will want, beside the one that it asks for now: most machines have two cores."""
        for name, parameters in asked:
            self._beside.submit(self.rows, name, **parameters)

    def sql(
        self, query: str, parameters: Parameters = (), *, limit: int | None = None, timeout: float | None = None
    ) -> Rows:
        """Rows of one reading statement that a person wrote; see `Reader.query`. One at a time.

        Raises:
            QueryError: It is wrong, or does more than read.
            WarehouseError: It cannot be read, the time was up, or another one is running.
        """
        if not self._asking.acquire(timeout=_PATIENCE):
            raise WarehouseError("Another query is running, and only one runs at a time; try again in a moment.")
        try:
            with self.using() as opened:
                return opened.people.query(query, parameters, limit=limit, timeout=timeout)
        finally:
            self._asking.release()

    def tables(self) -> list[TableInfo]:
        """Every table and view of the copy, with their meaning."""
        with self.using() as opened, opened.reader() as reader:
            return reader.tables()

    @contextmanager
    def using(self) -> "Iterator[_Opened]":
        """The copy of now, which stays open for the block though another one is published meanwhile.

        Raises:
            WarehouseError: There is none, or it cannot be read.
        """
        held: _Opened | None = getattr(self._held, "opened", None)
        if held is not None:
            yield held
            return
        opened = self._current()
        try:
            yield opened
        finally:
            with self._lock:
                opened.users -= 1
                done = opened.retired and not opened.users
            if done:
                opened.close()

    @contextmanager
    def one_copy(self) -> Iterator[None]:
        """All that this thread reads in the block is of one copy, though another one is published meanwhile.

        On PostgreSQL each query is of what was published last when it is asked.

        Raises:
            WarehouseError: There is none, or it cannot be read.
        """
        with self.using() as opened:
            self._held.opened = opened
            try:
                yield
            finally:
                self._held.opened = None

    def forget(self) -> None:
        """Ask for every row anew."""
        with self._lock:
            self._kept = _NOTHING, {}

    def close(self) -> None:
        """Let go of it. Twice is fine."""
        with self._lock:
            self._closed = True
        self._beside.shutdown(wait=False, cancel_futures=True)
        self._retire(None)

    # -- opening ----------------------------------------------------------------------------------------------------

    def _current(self) -> _Opened:
        """The copy of now, counted as used."""
        for _ in range(3):
            seen = self._seen()
            with self._lock:
                if self._closed:
                    raise WarehouseError("The dashboard has been stopped.")
                opened = self._opened
                if opened is not None and seen and isinstance(self.place, str):
                    # The same sessions see what is new; only what was remembered is old.
                    opened.revision = seen
                if opened is not None and opened.revision == seen:
                    opened.users += 1
                    return opened
            self._open()
        raise WarehouseError(f"{self.name} is replaced faster than it can be opened; try again.")

    def _open(self) -> None:
        """Open what is there now. One thread does it; those who come meanwhile find it done."""
        with self._opening:
            now = self.now()
            # Looked at anew: what a thread saw before it waited here may have been replaced since.
            seen = self._look(self._opened)
            with self._lock:
                self._looked = now, seen
                if self._opened is not None and self._opened.revision == seen:
                    return
            if self._failed and self._failed[0] == seen and abs(now - self._failed[1]) < _RETRY_AFTER:
                raise WarehouseError(self._failed[2])
            try:
                fresh = self._connected(seen)
            except OctoSyncError as error:
                self._failed = seen, now, str(error)
                self._retire(None)
                raise
            self._failed = None
            self._retire(fresh)

    def _connected(self, seen: str) -> _Opened:
        with ExitStack() as stack:
            pages, second, people = (
                stack.enter_context(closing(_reader(self.place, memory))) for memory in (None, None, _PEOPLE_MEMORY)
            )
            refuse_older(self.name, lambda sql: pages.query(sql).rows)
            stack.pop_all()
        return _Opened(seen, pages, second, people)

    def _retire(self, fresh: _Opened | None) -> None:
        """Put a copy in the place of the former one, which is closed when nobody reads it any more."""
        with self._lock:
            former, self._opened = self._opened, fresh
            done = former is not None and not former.users
            if former is not None:
                former.retired = True
        if former is not None and done:
            former.close()

    def _seen(self) -> str:
        """The revision that is there now, looked at once a second at most."""
        now = self.now()
        with self._lock:
            if self._looked is not None and abs(now - self._looked[0]) < _LOOK_EVERY:
                return self._looked[1]
            opened = self._opened
        seen = self._look(opened)
        with self._lock:
            self._looked = now, seen
        return seen

    def _look(self, opened: _Opened | None) -> str:
        if isinstance(self.place, Path):
            try:
                found = self.place.stat()
            except OSError:
                return _NOTHING
            return f"{found.st_ino}-{found.st_size}-{found.st_mtime_ns}"
        if opened is None:
            return _ON_A_SERVER
        try:
            with opened.reader(wait=0.0) as reader:
                return str(reader.query(_REVISION, timeout=PAGE_SECONDS).rows[0][0] or _ON_A_SERVER)
        except _AllBusy:
            # What is new can be seen a second later; who asks for what is remembered need not wait.
            return opened.revision
        except OctoSyncError:
            # The server is away, or the role may not look: the next query says what is wrong.
            return _ON_A_SERVER


def _reader(place: Path | str, memory: str | None) -> Reader:
    """A reader; `memory` is the most that its queries may take where they run in this process."""
    if isinstance(place, Path):
        return DuckDBReader(place, memory=memory) if memory else DuckDBReader(place)
    from octo_sync.destinations.postgres.reader import PostgresReader  # noqa: PLC0415 - its driver is an extra

    return PostgresReader(place)
