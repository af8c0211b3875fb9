"""The dashboard as an ASGI application: which address is which page, and what happens when something cannot be shown.

Pages are made in two threads of their own, so that neither the receiver nor another page waits for a slow one, and what a
person asks in SQL is answered in others. What was made is kept until another copy is published, for a minute at most,
because ages stand on it.
"""

import asyncio
import contextlib
import dataclasses
import functools
import gzip
import importlib
import logging
import pkgutil
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import TypeVar
from urllib.parse import parse_qsl, urlencode

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from octo_sync.dashboard import pages as pages_package
from octo_sync.dashboard.days import month_end, presets
from octo_sync.dashboard.downloads import FORMATS, Downloads
from octo_sync.dashboard.filters import filters_of
from octo_sync.dashboard.guard import ACT, WHO, Guard, names_of
from octo_sync.dashboard.render import STATIC, Choices, Frame, csv_of, page_html
from octo_sync.dashboard.source import Source
from octo_sync.dashboard.standing import standing
from octo_sync.dashboard.view import Filters, Page, Section, View
from octo_sync.errors import JournalError, OctoSyncError, QueryError
from octo_sync.flows import wording
from octo_sync.model import Secret

log = logging.getLogger("octo_sync")

T = TypeVar("T")

_THREADS = 2
_ASKING_THREADS = 2
"""One for the query that runs, one to say so to whoever asks meanwhile."""
_SECONDS = 30.0
"""The longest that a page may take, waiting included; more than one query may, so that the page can say what became of it."""
_WAITING = 32
"""Pages that may wait for a thread."""
_KEEP = 64
"""Pages that are kept."""
_MINUTE = timedelta(minutes=1)
_LONGEST_FORM = 20_000
_BACK = re.compile(r"([a-z]*)(\?[!-~]*)?(#[a-z0-9-]*)?")
"""The page that a form was on, and its fields."""
_YEAR = "public, max-age=31536000, immutable"


@functools.cache
def all_pages() -> tuple[Page, ...]:
    """Every module of `pages/`, in their order: a new page is one new file."""
    names = [m.name for m in pkgutil.iter_modules(pages_package.__path__) if not m.name.startswith("_")]
    found: list[Page] = [importlib.import_module(f"{pages_package.__name__}.{name}").PAGE for name in names]
    return tuple(sorted(found, key=lambda page: (page.order, page.name)))


class _Busy(OctoSyncError):  # noqa: N818 - what is the matter
    """Too many pages are asked for at once."""


class Dashboard:
    """The dashboard as an ASGI application; usable without a server.

    Args:
        source: The copy.
        host: Where it listens: a name or an address, which browsers may call it by.
        allow_hosts: Other names it goes by.
        token: What a caller has to know.
        user_header: In which a proxy says who asks.
    """

    def __init__(
        self,
        source: Source,
        *,
        host: str,
        allow_hosts: Collection[str] = (),
        token: Secret | None = None,
        user_header: str = "",
    ) -> None:
        self._source = source
        self._threads = ThreadPoolExecutor(_THREADS, "dashboard")
        self._asking = ThreadPoolExecutor(_ASKING_THREADS, "dashboard-sql")
        self._waiting = 0
        self._kept: OrderedDict[object, bytes] = OrderedDict()
        self._acted_at: datetime | None = None
        self._lock = threading.Lock()
        routes = [Route(f"/{page.path}", functools.partial(self._page, page)) for page in all_pages()]
        routes.append(Route("/static/{name}", self._static))
        routes += [
            Route(f"/data/page/{page.name}.csv", functools.partial(self._table, page))
            for page in all_pages()
            if not page.takes_more
        ]
        routes.append(Route("/data/{file}", Downloads(source).answer))
        routes.append(Route(ACT, self._act, methods=["POST"]))
        inner = Starlette(
            routes=routes,
            exception_handlers={HTTPException: self._failed, OctoSyncError: self._failed, Exception: self._failed},
        )
        inner.router.redirect_slashes = False
        guarded = ["/data/", *(f"/{page.path}" for page in all_pages() if page.guarded)]
        names = names_of(host, allow_hosts)
        self._guard = Guard(inner, names=names, token=token, guarded=guarded, user_header=user_header)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        await self._guard(scope, receive, send)

    def forget(self) -> None:
        """Make every page anew."""
        with self._lock:
            self._kept.clear()

    def close(self) -> None:
        """Let go of the copy; pages in the making are not waited for."""
        for threads in (self._threads, self._asking):
            threads.shutdown(wait=False, cancel_futures=True)
        self._source.close()

    async def _page(self, page: Page, request: Request) -> Response:
        filters = filters_of(page, request.query_params)
        threads = self._asking if page.takes_more and filters.more else self._threads
        return HTMLResponse(await self._threaded(threads, lambda: self._made(page, filters)))

    async def _table(self, page: Page, request: Request) -> Response:
        """A table of the page as a file."""
        fields = dict(request.query_params)
        caption = fields.pop("table", "")
        filters = filters_of(page, fields)

        def made() -> tuple[str, bytes] | None:
            with self._source.one_copy():
                _known(_choices(self._source, page), page, filters)
                view = page.build(self._source, dataclasses.replace(filters, whole=True))
                name = "_".join(str(each) for each in (page.name, view.filters.first, view.filters.last) if each)
                return next(((name, csv_of(table)) for table in view.tables() if table.caption == caption), None)

        found = await self._threaded(self._threads, made)
        if found is None:
            raise HTTPException(HTTPStatus.NOT_FOUND, f"The page {page.title} has no such table now; look at it again.")
        headers = {"content-disposition": f'attachment; filename="{found[0]}.csv"'}
        return Response(found[1], media_type=FORMATS["csv"], headers=headers)

    async def _threaded(self, threads: ThreadPoolExecutor, what: Callable[[], T]) -> T:
        """The same in one of the threads, within its time."""
        if self._waiting >= _WAITING:
            raise _Busy("Too many pages are asked for at once; try again in a moment.")
        self._waiting += 1
        try:
            return await asyncio.wait_for(asyncio.get_running_loop().run_in_executor(threads, what), timeout=_SECONDS)
        except TimeoutError:
            raise _Busy(f"The page was not ready after {_SECONDS:g} s; ask for less, or try again.") from None
        finally:
            self._waiting -= 1

    def _made(self, page: Page, filters: Filters) -> bytes:
        """The page, all of it of one copy; of what is the matter where there is none. In a thread."""
        source, now = self._source, self._source.now()
        # What was done, and what becomes of it, is seen at once.
        is_keeping = not page.takes_more and (self._acted_at is None or now - self._acted_at > _MINUTE)
        with source.one_copy() if source.trouble is None else contextlib.nullcontext():
            key = (page.name, repr(filters), source.revision, f"{now:%Y-%m-%d %H:%M}")
            with self._lock:
                kept = self._kept.get(key)
            made = kept if kept and is_keeping else _html(source, page, filters)
        if is_keeping:
            with self._lock:
                self._kept[key] = made
                while len(self._kept) > _KEEP:
                    self._kept.popitem(last=False)
        return made

    async def _act(self, request: Request) -> Response:
        """Do what a form asks for, then show the page that it was on."""
        fields = await _form(request)
        back, acts = fields.pop("back", ""), self._source.acts
        path = _BACK.fullmatch(back)
        if acts is None or path is None or path[1] not in {page.path for page in all_pages()}:
            raise HTTPException(HTTPStatus.NOT_FOUND)
        act, who = fields.pop("act", ""), request.scope[WHO]
        try:
            await self._threaded(self._threads, lambda: acts.do(act, who, fields))
        except JournalError as error:
            return self._told(request, HTTPStatus.CONFLICT, str(error))
        log.info("action=act act=%s", act)
        self._acted_at = self._source.now()
        return RedirectResponse(f"./{back}", HTTPStatus.SEE_OTHER)

    async def _static(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in STATIC:
            raise HTTPException(HTTPStatus.NOT_FOUND)
        packed = "gzip" in request.headers.get("accept-encoding", "")
        body = await asyncio.to_thread(_static_body, name, packed=packed)
        encoding = {"content-encoding": "gzip"} if packed else {}
        headers = {"cache-control": _YEAR, "vary": "accept-encoding", **encoding}
        return Response(body, media_type=STATIC[name], headers=headers)

    async def _failed(self, request: Request, error: Exception) -> Response:
        status, sentence = HTTPStatus.INTERNAL_SERVER_ERROR, "Something went wrong here; octo-sync's log says what."
        if isinstance(error, HTTPException):
            status, sentence = HTTPStatus(error.status_code), error.detail
            if sentence == status.phrase:
                sentence = "There is no such page. The ones there are stand above."
        elif isinstance(error, OctoSyncError):
            status = HTTPStatus.BAD_REQUEST if isinstance(error, QueryError) else HTTPStatus.SERVICE_UNAVAILABLE
            sentence = str(error)
        return self._told(request, status, sentence)

    def _told(self, request: Request, status: HTTPStatus, sentence: str) -> Response:
        """An error as a page like the others."""
        up = "../" * max(0, request.url.path.count("/") - 1)
        frame = Frame(self._source.name, wording.instant(self._source.now()), all_pages(), root=up or "./")
        return HTMLResponse(page_html(nothing_yet(status.phrase, sentence), frame), status)


async def _form(request: Request) -> dict[str, str]:
    """The fields of a form.

    Raises:
        HTTPException: It is no form of a page, or too long.
    """
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _LONGEST_FORM:
            raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "That is more than a form of these pages holds.")
    try:
        return dict(parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=10))
    except ValueError:
        raise HTTPException(HTTPStatus.BAD_REQUEST, "That is no form of these pages.") from None


def nothing_yet(title: str, sentence: str = "There is nothing on this page yet.") -> View:
    """What a page shows when there is nothing to show."""
    return View(title, "", [Section("", [sentence])])


def _html(source: Source, page: Page, filters: Filters) -> bytes:
    """A page, whatever state the copy is in. Blocking."""
    now, told = wording.instant(source.now()), all_pages()
    if (trouble := source.trouble) is not None:
        return page_html(nothing_yet(page.title, trouble), Frame(source.name, now, told, page))
    found = standing(source)
    given = _given(page, filters)
    days = ((name, getattr(filters, name) or filters.more.get(name)) for name in ("first", "last"))
    dates = "" if page.takes_more else urlencode([(name, day) for name, day in days if day])
    frame = Frame(
        source.name,
        now,
        told,
        page,
        found,
        _choices(source, page),
        None if page.takes_more else given,
        dates,
        _presets(page, given, found.today),
    )
    if found.is_empty and not page.works_empty:
        return page_html(nothing_yet(page.title), frame)
    _known(frame.choices, page, filters)
    return page_html(page.build(source, filters), frame)


def _choices(source: Source, page: Page) -> Choices:
    """What the page's filters can be set to."""
    found = {}
    if "product" in page.shown:
        names = ((row["product_key"], row["product_name"], row["is_retired"]) for row in source.rows("products"))
        found["product"] = [(key, f"{name}{' (retired)' if is_retired else ''}") for key, name, is_retired in names]
    if "channel" in page.shown:
        found["channel"] = [(row["connection_id"], row["channel_name"]) for row in source.rows("channels")]
    if "currency" in page.shown:
        found["currency"] = [(row["currency"], row["currency"]) for row in source.rows("currencies")]
    return found


def _given(page: Page, filters: Filters) -> list[tuple[str, str]]:
    """What the address asks for, as its fields."""
    names = ("first", "last", "product", "channel", "currency")
    given = [(name, str(value)) for name in names if (value := getattr(filters, name))]
    given += [("tests", "1")] if filters.with_tests else []
    return given + [(name, value) for name, value in filters.more.items() if name in page.fields]


def _presets(page: Page, given: list[tuple[str, str]], today: date | None) -> list[tuple[str, str, date, date]]:
    """Times of one click, which keep what else was chosen."""
    if "dates" not in page.shown or today is None:
        return []
    kept = [(name, value) for name, value in given if name not in ("first", "last")]
    return [
        (name, urlencode([("first", first), ("last", last), *kept]), first, last)
        for name, first, last in presets(today)
        if not (page.by_month and (first.day, last) != (1, month_end(last))) and not (page.is_past and first >= today)
    ]


def _known(choices: Choices, page: Page, filters: Filters) -> None:
    """Refuse what this copy does not have, which a page would show as nothing at all."""
    for name, known in choices.items():
        value: str | None = getattr(filters, name)
        if value is not None and value not in {each for each, _ in known}:
            raise QueryError(f"This copy has no {name} {value[:100]!r}; choose one on the page {page.title}.")


@functools.lru_cache(maxsize=16)
def _static_body(name: str, *, packed: bool) -> bytes:
    body = (Path(__file__).parent / "static" / name).read_bytes()
    return gzip.compress(body, 6, mtime=0) if packed else body
