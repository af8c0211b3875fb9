"""What the flow tests stand on: a real service, a project directory, a sync, and both sides of the comparison."""

import asyncio
import contextlib
import dataclasses
import datetime as dt
import itertools
import json
import time
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import httpx
from tests import oracle

from octo_sync.app.project import open_project
from octo_sync.destinations.duckdb.warehouse import DuckDBWarehouse
from octo_sync.flows.ports import Numbers, adopt_meanings
from octo_sync.flows.sync.keep import Keeper
from octo_sync.flows.sync.pull import Scope
from octo_sync.flows.sync.run import sync
from octo_sync.flows.verify import verify_live
from octo_sync.journal import Journal
from octo_sync.model import Subject, SubjectKind
from octo_sync.pipeline import CareSettings, load, values
from octo_sync.pipeline.keys import KEYS
from octo_sync.sandbox.config import SandboxConfig
from octo_sync.sandbox.server import Sandbox
from octo_sync.tables import all_tables, nouns

TODAY = dt.date(2026, 11, 20)
NOON = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC)
TOKENS = {name: f"sandbox-token-{name}" for name in ("all", "a", "b")}

QUICK = {
    "deadline": "20s",
    "attempts": 3,
    "backoff": "0.02s",
    "backoff_cap": "0.1s",
    "retry_after_cap": "0.2s",
    "connect_timeout": "10s",
}
"""Limits for services that are sick on purpose."""

QUICK_SYNC = {"attempts": 2, "backoff": "0.02s", "backoff_cap": "0.1s"}


def is_key(table, name):
    """Whether it stands in a pipeline file; what fits everybody does not, and is changed where it was read."""
    return any(path[-2:] == (table, name) for path in KEYS)


def changed(table, wanted):
    """What a pipeline file said, with other values for what has no key."""
    fixed = {name: value for name, value in wanted.items() if not is_key("limits", name) and not is_key("sync", name)}
    return dataclasses.replace(
        table, **{name: values.duration(v) if isinstance(v, str) else v for name, v in fixed.items()}
    )


def small(**changes):
    """A service small enough to be pulled in a second, standing still at noon."""
    values = {"today": TODAY, "frozen": True, "bookings": 180, "days": 40, "products": 8, "pending_minutes": None}
    return SandboxConfig(**{**values, **changes})


class Clock:
    """One that is put forward by hand."""

    def __init__(self):
        self.moment = NOON

    def now(self):
        return self.moment


class RunningClock:
    """A clock that says noon when it starts and then runs; it can be put forward."""

    def __init__(self, start=NOON):
        self._start = start
        self._since = time.monotonic()

    def now(self):
        return self._start + dt.timedelta(seconds=time.monotonic() - self._since)

    def advance(self, **delta):
        self._start += dt.timedelta(**delta)


class Service:
    """The built-in OCTO service in a thread, spoken to over its control plane."""

    def __init__(self, config=None, *, port=0):
        self._box = Sandbox(config or small(), port=port)
        self._http = httpx.Client(timeout=20, trust_env=False)

    def __enter__(self):
        self._box.__enter__()
        self.base_url, self.control_url = self._box.base_url, self._box.control_url
        return self

    def __exit__(self, *about):
        with contextlib.suppress(httpx.HTTPError):
            self.control("DELETE", "/faults")
        self._http.close()
        self._box.__exit__(*about)

    def control(self, method, path, body=None, **query):
        answer = self._http.request(method, self.control_url + path, json=body, params=query)
        assert answer.status_code < 300, answer.text
        return answer.json() if answer.content else None

    def reset(self):
        """Back to the seeded data, faithful, with an empty request log."""
        self.control("PUT", "/clock", {"now": NOON.isoformat(), "freeze": True})  # first: seeded holds lapse by it
        self.control("POST", "/reset")
        self.control("DELETE", "/requests")

    def faults(self, *specs):
        self.control("PUT", "/faults", list(specs))

    def quirks(self, **values):
        self.control("PUT", "/quirks", values)

    def state(self, token="all"):
        return self.control("GET", "/state", token=token)

    def slots(self, **query):
        return self.control("GET", "/state/availability", **query)["slots"]

    def booking(self, uuid):
        return self.control("GET", f"/state/bookings/{uuid}")

    def change(self, uuid, **fields):
        return self.control("POST", f"/admin/bookings/{uuid}", fields)

    def traffic(self, changes, seed="traffic", kinds=None):
        body = {"changes": changes, "seed": seed} | ({"kinds": kinds} if kinds else {})
        return self.control("POST", "/traffic", body)["changes"]

    def requests(self):
        """The API requests so far, none of the control plane's."""
        return self.control("GET", "/requests")["requests"]

    def forget_requests(self):
        self.control("DELETE", "/requests")

    def get(self, path, *, token="all", capabilities=(), language="en"):
        """Ask the API itself, without octo_sync."""
        return self._http.get(
            self.base_url + path,
            headers={
                "Authorization": f"Bearer {TOKENS[token]}",
                "Octo-Capabilities": ", ".join(f"octo/{name}" for name in capabilities),
                "Accept-Language": language,
            },
        )

    def texts(self, languages, token="all"):
        """Product answers by the language the service answered in, in the order asked for."""
        found = {}
        for language in languages:
            answer = self.get("/products", token=token, capabilities=["content"], language=language)
            found.setdefault(answer.headers["content-language"], {p["id"]: p for p in answer.json()})
        return found


@dataclasses.dataclass
class Asked:
    """One connection as the pipeline file has it."""

    token: str = "all"
    base_url: str | None = None
    capabilities: tuple[str, ...] = ("pricing", "content", "extras")
    languages: tuple[str, ...] = ("en",)
    bookings: tuple[int, int] = (-90, 45)
    availability: tuple[int, int] = (0, 20)
    business_time_zone: str = "UTC"
    limits: dict[str, Any] = dataclasses.field(default_factory=dict)
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)


def _toml(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k} = {_toml(v)}" for k, v in value.items()) + "}"
    return json.dumps(list(value) if isinstance(value, tuple) else value)


class Project:
    """A project directory with a pipeline of one connection or several."""

    def __init__(
        self,
        directory: Path,
        service: Service,
        *,
        sync=None,
        publish=False,
        connections=None,
        destination=None,
        **asked,
    ):
        self.directory, self.service, self.destination = directory, service, destination
        self.connections = connections or {"main": Asked(**asked)}
        self.settings = {"confirm_after": ("0.05s",), "backoff": "0.05s", "backoff_cap": "0.2s", **(sync or {})}
        self.webhooks, self.care = {}, CareSettings()
        self.publishing = publish
        self.clock = RunningClock()
        self.today = TODAY
        self.former_products = []
        self.runs = 0 if not (directory / "octo.duckdb").exists() else 100
        self.write()

    def write(self):
        """Write the pipeline file as it is described now."""
        first = next(iter(self.connections.values()))
        lines = ['name = "test"', *([f'destination = "{self.destination}"'] if self.destination else []), "[horizon]"]
        for name in ("bookings", "availability"):
            low, high = getattr(first, name)
            lines.append(f'{name} = "{low:+d}d..{high:+d}d"')
        lines += ["[sync]", *(f"{k} = {_toml(v)}" for k, v in self.settings.items() if is_key("sync", k))]
        for name, one in self.connections.items():
            lines += [
                f"[connections.{name}]",
                f'base_url = "{one.base_url or self.service.base_url}"',
                f'token = {{ env = "OCTO_TEST_TOKEN_UNSET", default = "{TOKENS.get(one.token, one.token)}" }}',
                f"capabilities = {_toml(one.capabilities)}",
                f"languages = {_toml(one.languages)}",
                f'business_time_zone = "{one.business_time_zone}"',
                *(f"{key} = {_toml(value)}" for key, value in one.settings.items()),
            ]
            if one.limits:
                lines += [
                    f"[connections.{name}.limits]",
                    *(f"{k} = {_toml(v)}" for k, v in one.limits.items() if is_key("limits", k)),
                ]
        self.directory.mkdir(parents=True, exist_ok=True)
        self.file.write_text("\n".join(lines) + "\n")

    def set_limits(self, **limits):
        """Change how patient every connection is, for the runs to come."""
        for one in self.connections.values():
            one.limits = limits
        self.write()

    @property
    def file(self):
        return self.directory / "pipeline.toml"

    @property
    def pipeline(self):
        loaded = load(self.file, directory=self.directory, environ={}, overrides={})
        return dataclasses.replace(
            loaded,
            sync=changed(loaded.sync, self.settings),
            webhooks=changed(loaded.webhooks, self.webhooks),
            care=self.care,
            connections=tuple(
                dataclasses.replace(each, limits=changed(each.limits, self.connections[each.name].limits))
                if each.name in self.connections
                else each
                for each in loaded.connections
            ),
        )

    @contextlib.asynccontextmanager
    async def opened(self, *, seed=None, **more):
        """The project with everything open, as a command that writes has it."""
        self.runs += 1
        if seed is None:
            # A copy of a project within the same second must not give its runs the ids that are taken.
            seed = f"{self.directory.name}/{self.runs}"
        async with open_project(
            self.pipeline, command="test", clock=self.clock, random=Random(seed), **more
        ) as project:
            yield project

    async def sync(self, *, scope=None, publishing=None, seed=None, **more):
        """One run, from lease to read copy."""
        async with self.opened(seed=seed, **more) as project:
            return await sync(
                project.ports,
                scope or Scope(full=True),
                command="test",
                publishing=self.publishing if publishing is None else publishing,
            )

    async def digests(self):
        """Count and hash of every core table."""
        async with self.opened() as project:
            return project.warehouse.digest()

    # -- both sides -------------------------------------------------------------------------------------------------

    def remember_products(self):
        """Keep today's products for bookings of those that will be deleted."""
        self.former_products = self.service.state()["products"]

    def oracle(self, name="main"):
        one = self.connections[name]
        state = self.service.state(one.token)
        pulled = oracle.Pulled(
            capabilities=frozenset(one.capabilities),
            bookings=one.bookings,
            availability=one.availability,
            business_time_zone=one.business_time_zone,
            texts=self.service.texts(one.languages, one.token) if "content" in one.capabilities else {},
            former_products=self.former_products,
        )
        first = self.today + dt.timedelta(days=one.availability[0] - 2)
        last = self.today + dt.timedelta(days=one.availability[1] + 2)
        slots = self.service.slots(**{"from": first.isoformat(), "to": last.isoformat()})
        return oracle.expected(state, slots, pulled)

    def warehouse(self, name="main"):
        if self.destination:
            with _server(self.destination) as db:
                return _read_tables(db, [(db.info.dbname, schema) for schema in ("core", "private")], name)
        return read_tables(self.directory, name)

    def differences(self, name="main"):
        """What the copy says and the source does not, and the other way round."""
        return oracle.compare(self.oracle(name), self.warehouse(name))

    def query(self, sql, *parameters):
        """Ask the warehouse, while nobody writes; or for marts the copy that readers have."""
        file = "octo.read.duckdb" if "marts." in sql else "octo.duckdb"
        with _server(self.destination) if self.destination else _reading(self.directory, file) as db:
            return db.execute(sql, list(parameters)).fetchall()


@contextlib.contextmanager
def _reading(directory, file="octo.duckdb"):
    db = duckdb.connect(":memory:", config={"threads": 1})
    try:
        db.execute(f"attach '{directory / file}' as octo (read_only)")
        private = directory / "octo.private.duckdb"
        if private.exists():
            db.execute(f"attach '{private}' as personal (read_only)")
        db.execute("set timezone = 'UTC'")
        db.execute("use octo")
        yield db
    finally:
        db.close()


@contextlib.contextmanager
def _server(dsn):
    """A PostgreSQL database, asked as DuckDB is."""
    import psycopg

    with psycopg.connect(dsn, cursor_factory=psycopg.RawCursor) as db:
        db.execute("set timezone = 'UTC'")
        yield db


def read_tables(directory, connection="main"):
    """Live rows of a connection in every table the oracle is asked about, bookkeeping left out."""
    with _reading(directory) as db:
        return _read_tables(db, (("octo", "core"), ("personal", "private")), connection)


def _read_tables(db, places, connection):
    """Asked once for all columns: of each table alone that takes longer than its rows."""
    asked = (
        "select table_name, column_name, data_type from information_schema.columns "
        "where table_catalog = $1 and table_schema = $2 order by table_name, ordinal_position"
    )
    found = {}
    for catalog, schema in places:
        for name, columns in itertools.groupby(db.execute(asked, [catalog, schema]).fetchall(), lambda row: row[0]):
            table = f"{schema}.{name}"
            if table not in oracle.LOG_TABLES | oracle.HISTORY_TABLES:
                found[table] = rows_of(db, f"{catalog}.{table}", [column[1:] for column in columns], connection)
    return found


def rows_of(db, table, columns, connection):
    """Its live rows, without bookkeeping."""
    kinds = {column: kind.upper() for column, kind in columns}
    live = "not is_deleted" if "is_deleted" in kinds else "is_current" if "is_current" in kinds else "true"
    instants = {column for column, kind in kinds.items() if kind == "TIMESTAMP WITH TIME ZONE"}
    kept = [column for column in kinds if column not in oracle.BOOKKEEPING]
    picked = ", ".join(f"{column} at time zone 'UTC' as {column}" if column in instants else column for column in kept)
    rows = db.execute(f"select {picked} from {table} where connection_id = $1 and {live}", [connection]).fetchall()
    return [
        {
            column: value.replace(tzinfo=dt.UTC) if column in instants and value is not None else value
            for column, value in zip(kept, row, strict=True)
        }
        for row in rows
    ]


def mode_of(path):
    return path.stat().st_mode & 0o777


class _Bytes(httpx.AsyncByteStream):
    def __init__(self, content):
        self._content = content

    async def __aiter__(self):
        yield self._content


class Wire(httpx.AsyncBaseTransport):
    """The real wire with a hand on it: `edit(request, response)` sees every exchange and may replace the answer.

    It may be a coroutine function, so that answers can be held back. Returning None keeps the answer.
    """

    def __init__(self, edit):
        self._real = httpx.AsyncHTTPTransport()
        self._edit = edit
        self.log = []
        self.in_flight = self.most_in_flight = 0

    async def handle_async_request(self, request):
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        self.log.append((request.method, request.url.path.removeprefix("/octo/v1"), dict(request.url.params)))
        try:
            answer = await self._real.handle_async_request(request)
            body = await answer.aread()
            await answer.aclose()
            headers = [(k, v) for k, v in answer.headers.items() if k not in {"content-length", "content-encoding"}]
            whole = httpx.Response(answer.status_code, headers=headers, content=body, request=request)
            changed = self._edit(request, whole)
            if asyncio.iscoroutine(changed):
                changed = await changed
            given = whole if changed is None else changed
            # A response made of bytes counts as read already, and the client wants to read it itself.
            return httpx.Response(given.status_code, headers=given.headers, stream=_Bytes(given.content))
        finally:
            self.in_flight -= 1

    async def aclose(self):
        await self._real.aclose()

    @classmethod
    def by(cls, edit):
        """For `open_project(transport=…)`."""
        return lambda _connection: cls(edit)


def reply(body, status=200):
    """An answer made up on the wire."""
    return httpx.Response(status, json=body)


def api_path(request):
    """The path below the API's base, e.g. `/bookings`."""
    return request.url.path.removeprefix("/octo/v1")


async def until(condition, seconds=60.0):
    """Wait for something that another task brings about."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - whatever the condition is, it knows no event
            await asyncio.sleep(0.005)


# -- a keeper at work, and a copy compared with its service ---------------------------------------------------------------


@contextlib.asynccontextmanager
async def keeping(project, *, transport=lambda _: None, **more):
    """A keeper at work, as `serve` has it; `settled` waits until nothing is due. `more` is the keeper's."""
    async with project.opened(transport=transport) as opened:
        names = (f"pull-{number}" for number in range(1000))
        opened.journal.runs.start("serve", "test", run_id=opened.ports.run_id, fence=opened.ports.fence)
        keeper = Keeper(opened.ports, asyncio.Event(), lambda: next(names), **more)
        task = asyncio.create_task(keeper.run())
        try:
            yield keeper
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


async def settled(keeper, within=120.0):
    """Wake it and wait until nothing is due."""
    keeper.idle.clear()
    keeper.wake.set()
    async with asyncio.timeout(within):
        await keeper.idle.wait()


def booking(uuid):
    return Subject("main", SubjectKind.BOOKING, (uuid,))


async def verify(project, *, sample=None, travel=None, only=(), folder="fresh", **more):
    """Compare with a fresh pull, as the command does."""
    folder = project.directory / folder
    folder.mkdir()
    async with project.opened(travel=travel, **more) as opened:
        scratch = DuckDBWarehouse(
            folder / "fresh.duckdb",
            folder / "private.duckdb",
            tables=all_tables(),
            nouns=nouns(),
            now=project.clock.now(),
        )
        with (
            contextlib.closing(scratch),
            contextlib.closing(Journal.open(folder / "journal.sqlite", clock=project.clock)) as journal,
        ):
            return await verify_live(
                beside(opened.ports, journal, scratch),
                here=project.directory / "octo.read.duckdb",
                scratch=folder / "fresh.duckdb",
                scope=Scope(only=frozenset(only), travel=travel),
                sample=sample,
            )


def beside(ports, journal, warehouse):
    """The same clients, with a journal and a warehouse of their own."""
    adopt_meanings(ports.clients, ports.journal, journal)
    return dataclasses.replace(ports, journal=journal, warehouse=warehouse, numbers=Numbers(journal), fence=1)
