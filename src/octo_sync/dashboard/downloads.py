"""`/data/TABLE.csv|json|jsonl|parquet`: any table of the copy, and `/data/sql.csv?q=…`: the answer to a query.

The rows are sent as they are read, so memory does not grow with their number. What goes wrong before the first of them is
a sentence with its code; afterwards the connection is closed without an end, so that nobody takes a part for the whole.
"""

import contextlib
import threading
from collections.abc import AsyncIterator, Generator
from dataclasses import dataclass
from difflib import get_close_matches
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from octo_sync.dashboard import query
from octo_sync.dashboard.source import Source
from octo_sync.destinations.reading import SCHEMAS, Parameters, Reader, TableInfo
from octo_sync.errors import OctoSyncError, QueryError
from octo_sync.flows.export.files import pieces

FORMATS = {
    "csv": "text/csv; charset=utf-8; header=present",
    "json": "application/json",
    "jsonl": "application/x-ndjson",
    "parquet": "application/vnd.apache.parquet",
}
"""Format → its media type."""
SQL = "sql"
"""Not a table: the answer to the query in the address."""
SECONDS = 600.0
"""The longest that one download may take."""
AT_ONCE = 3
"""Downloads at the same time; a reader streams four results, and one is left to whoever asks by other means."""
_ROWS = 10_000
"""Rows of one piece: some megabytes."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    """One download: what is run, and what the file is called."""

    sql: str
    parameters: Parameters
    name: str
    form: str


class Downloads:
    """`Route("/data/{file}", Downloads(source).answer)`; `source` is the copy."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._free = threading.BoundedSemaphore(AT_ONCE)

    async def answer(self, request: Request) -> Response:
        """The file, or a sentence with its code: 400 a wrong query, 404 no such table, 503 no copy or too many at once."""
        try:
            wanted = await run_in_threadpool(self._wanted, request.path_params["file"], dict(request.query_params))
            headers = {"content-disposition": f"attachment; {_called(f'{wanted.name}.{wanted.form}')}"}
            if request.method == "HEAD":
                return Response(media_type=FORMATS[wanted.form], headers=headers)
            made = _Pieces(self._made(wanted))
            try:
                first = await run_in_threadpool(made.next)
            except BaseException:
                made.end()
                raise
        except HTTPException as refused:
            return PlainTextResponse(f"{refused.detail}\n", refused.status_code, refused.headers)
        except QueryError as error:
            return PlainTextResponse(f"{error}\n", 400)
        except OctoSyncError as error:
            return PlainTextResponse(f"{error}\n", 503)
        return _File(first, made, FORMATS[wanted.form], headers)

    def _wanted(self, file: str, fields: dict[str, str]) -> _Wanted:
        name, _, form = file.rpartition(".")
        if form not in FORMATS or not name:
            raise HTTPException(
                404, f"{file[:100]!r} is no file of the copy; ask for TABLE.{', TABLE.'.join(FORMATS)}."
            )
        if name == SQL:
            asked = query.asked(self._source, fields)
            if not asked.text:
                raise HTTPException(400, f"There is no query: /data/{SQL}.{form}?q=select…")
            return _Wanted(asked.text, asked.values(self._source), asked.name or "query", form)
        table = _table(self._source.tables(), name)
        return _Wanted(f"select * from {table.quoted}", (), table.name, form)  # noqa: S608 - a name that is there, quoted

    def _made(self, wanted: _Wanted) -> Generator[bytes, None, None]:
        """The file's pieces; the copy stays open, and a place taken, until the last or until it is closed."""
        if not self._free.acquire(blocking=False):
            said = f"{AT_ONCE} files are being downloaded; try again when one of them is done."
            raise HTTPException(503, said, {"retry-after": "5"})
        with contextlib.ExitStack() as stack:
            stack.callback(self._free.release)
            opened = stack.enter_context(self._source.using())
            reader: Reader = opened.pages
            batches = reader.batches(wanted.sql, wanted.parameters, size=_ROWS, timeout=SECONDS)
            stack.callback(batches.close)
            yield from pieces(batches, wanted.form)


class _Pieces:
    """A file's pieces, made and ended in threads: on PostgreSQL either waits for the server."""

    def __init__(self, made: Generator[bytes, None, None]) -> None:
        self._made, self._lock = made, threading.Lock()

    def next(self) -> bytes | None:
        """The next piece; None after the last. Blocking."""
        with self._lock:
            return next(self._made, None)

    def end(self) -> None:
        """End the reading, as soon as a piece in the making is made; not waited for, so it may be said when cancelled."""
        threading.Thread(target=self._close, name="dashboard-end", daemon=True).start()

    def _close(self) -> None:
        with self._lock:
            self._made.close()


class _File(StreamingResponse):
    """All pieces; whoever goes away in the middle, or before the first, ends the reading."""

    def __init__(self, first: bytes | None, made: _Pieces, media_type: str, headers: dict[str, str]) -> None:
        super().__init__(_rest(first, made), media_type=media_type, headers=headers)
        self._pieces = made

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._pieces.end()


async def _rest(first: bytes | None, made: _Pieces) -> AsyncIterator[bytes]:
    piece = first
    while piece is not None:
        if piece:
            yield piece
        piece = await run_in_threadpool(made.next)


def _called(name: str) -> str:
    """A file's name as a header takes it (RFC 6266): a question is a file of the user's own, called anything."""
    quoted = quote(name, errors="replace")
    return f'filename="{name}"' if quoted == name else f"filename*=UTF-8''{quoted}"


def _table(tables: list[TableInfo], name: str) -> TableInfo:
    """The table of that name, with or without its schema."""
    known = {table.full_name: table for table in tables}
    for full in (name, *(f"{schema}.{name}" for schema in SCHEMAS)):
        if found := known.get(full.lower()):
            return found
    names = [*known, *(table.name for table in tables)]
    near = get_close_matches(name.lower(), names, 1)
    hint = f"did you mean {near[0]}?" if near else "the SQL page lists what there is."
    raise HTTPException(404, f"The copy has no table {name[:100]!r}; {hint}")
