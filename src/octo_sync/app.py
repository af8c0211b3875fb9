"""The composition root: a pipeline and the environment become ports. The only module that reads clock and environment."""

import asyncio
import contextlib
import getpass
import logging
import os
import secrets
import signal
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from random import Random, SystemRandom
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

from octo_sync.destinations.duckdb import DuckDBWarehouse, open_read_only
from octo_sync.errors import ConfigError
from octo_sync.flows.mark import booking_windows, documents
from octo_sync.flows.ports import Numbers, Ports, Progress
from octo_sync.flows.publish import run_checks
from octo_sync.flows.pull import Scope
from octo_sync.flows.verify import Claims, LiveResult, claims, verify_live
from octo_sync.journal import Journal, Lease
from octo_sync.model import Clock, Connection, Window
from octo_sync.octo.client import OctoClient
from octo_sync.pipeline import Pipeline
from octo_sync.tables import all_tables, nouns

__all__ = [
    "Project",
    "SystemClock",
    "environ",
    "lock_path",
    "new_run_id",
    "new_token",
    "open_connections",
    "open_journal",
    "open_project",
    "private_path",
]

T = TypeVar("T")

log = logging.getLogger("octo_sync")


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """The current instant, UTC."""
        return datetime.now(UTC)  # noqa: TID251 - the adapter R14 allows


def environ() -> Mapping[str, str]:
    """The process's environment."""
    return os.environ  # noqa: TID251 - the adapter R14 allows


def new_run_id(clock: Clock, random: Random) -> str:
    """An id that sorts by time and is easy to say: `20261120T195900-k3x9`."""
    letters = "".join(random.choice("abcdefghjkmnpqrstuvwxyz23456789") for _ in range(4))
    return f"{clock.now():%Y%m%dT%H%M%S}-{letters}"


def new_token(size: int) -> str:
    """A url-safe text from so many random bytes, for addresses and secrets that nobody can guess."""
    return secrets.token_urlsafe(size)


def private_path(pipeline: Pipeline) -> Path:
    """The file for contacts and payloads, beside the warehouse."""
    path = _warehouse_path(pipeline)
    return path.with_name(f"{path.stem}.private{path.suffix}")


def lock_path(pipeline: Pipeline) -> Path:
    """The file whose lock says who is the one writer."""
    return pipeline.journal_path.with_name(f"{pipeline.journal_path.name}.lock")


def _warehouse_path(pipeline: Pipeline) -> Path:
    if isinstance(pipeline.destination, str):
        raise ConfigError(
            'destination: PostgreSQL is not built yet; use a DuckDB file, e.g. destination = "octo.duckdb".'
        )
    return pipeline.destination


def open_journal(pipeline: Pipeline, clock: Clock) -> Journal:
    """The journal of a pipeline, made when it is not there."""
    pipeline.journal_path.parent.mkdir(parents=True, exist_ok=True)
    return Journal.open(pipeline.journal_path, clock=clock)


def open_warehouse(pipeline: Pipeline, clock: Clock) -> DuckDBWarehouse:
    """The warehouse of a pipeline, made when it is not there; this process then owns it."""
    return DuckDBWarehouse(
        _warehouse_path(pipeline), private_path(pipeline), tables=all_tables(), nouns=nouns(), now=clock.now()
    )


def owner(command: str) -> str:
    """Who holds the lease, for the sentence that another run prints."""
    with contextlib.suppress(OSError, KeyError):
        return f"{command}, user {getpass.getuser()}"
    return command


@dataclass(slots=True)
class Project:
    """An opened project: what a command that writes works with."""

    ports: Ports
    lease: Lease
    warehouse: DuckDBWarehouse
    journal: Journal


@contextlib.contextmanager
def _journal_and_warehouse(
    pipeline: Pipeline, clock: Clock, command: str, opened: Journal | None
) -> Iterator[tuple[Journal, Lease, DuckDBWarehouse]]:
    with contextlib.ExitStack() as stack:
        journal = opened or stack.enter_context(open_journal(pipeline, clock))
        lease = stack.enter_context(Lease.acquire(journal, lock_path(pipeline), owner=owner(command), clock=clock))
        if journal.recovered_from is not None:
            log.warning("action=journal_rebuilt damaged=%s", journal.recovered_from.name)
        warehouse = open_warehouse(pipeline, clock)
        stack.callback(warehouse.close)
        seq, fence = warehouse.highest_numbers()
        # A journal that was lost and made anew must not give out numbers the warehouse has seen.
        journal.at_least(seq=seq)
        if fence > lease.fence:
            journal.at_least(fence=fence)
            lease.release()
            lease = stack.enter_context(Lease.acquire(journal, lock_path(pipeline), owner=owner(command), clock=clock))
        warehouse.claim_writer(lease.fence, owner(command))
        yield journal, lease, warehouse


async def _clients(
    stack: contextlib.AsyncExitStack,
    pipeline: Pipeline,
    clock: Clock,
    random: Random,
    transport: Callable[[Connection], Any] = lambda _: None,
) -> dict[str, OctoClient]:
    # The library's own log line holds whole addresses, and a query may name a person's reference.
    logging.getLogger("httpx").setLevel(logging.WARNING)
    return {
        c.name: await stack.enter_async_context(OctoClient(c, clock=clock, random=random, transport=transport(c)))
        for c in pipeline.connections
    }


@contextlib.asynccontextmanager
async def open_project(
    pipeline: Pipeline,
    *,
    command: str,
    clock: Clock | None = None,
    random: Random | None = None,
    transport: Callable[[Connection], Any] = lambda _: None,
    travel: Window | None = None,
    allow_deletions: bool = False,
    progress: Progress | None = None,
    journal: Journal | None = None,
) -> AsyncIterator[Project]:
    """Everything a writing command needs, owned by this process until the block ends.

    A `journal` that is open already is used and left open: two would wait for each other's locks.

    Raises:
        LeaseHeld: Another run owns the project; the sentence names it.
        JournalError, WarehouseError: A file cannot be opened.
    """
    clock = clock or SystemClock()
    random = random or SystemRandom()
    # Databases, their logs and working storage are for their owner alone; DuckDB makes log files at any commit.
    os.umask(0o077)
    with _journal_and_warehouse(pipeline, clock, command, journal) as (owed, lease, warehouse):
        async with contextlib.AsyncExitStack() as stack:
            clients = await _clients(stack, pipeline, clock, random, transport)
            ports = Ports(
                pipeline=pipeline,
                clock=clock,
                random=random,
                journal=owed,
                warehouse=warehouse,
                clients=clients,
                run_id=new_run_id(clock, random),
                fence=lease.fence,
                numbers=Numbers(owed),
                travel=travel,
                allow_deletions=allow_deletions,
                progress=progress or Progress(),
            )
            yield Project(ports, lease, warehouse, owed)


@contextlib.asynccontextmanager
async def open_connections(pipeline: Pipeline) -> AsyncIterator[tuple[Journal, dict[str, OctoClient]]]:
    """Journal and clients alone: for what leaves the warehouse alone, also while another run owns the project."""
    clock = SystemClock()
    os.umask(0o077)
    with open_journal(pipeline, clock) as journal:
        async with contextlib.AsyncExitStack() as stack:
            yield journal, await _clients(stack, pipeline, clock, SystemRandom())


def run_until_done(work: Coroutine[Any, Any, T], *, stop_within: float | None = None) -> T:
    """Run to the end; Ctrl-C and SIGTERM cancel it, so that the landing in hand is finished or rolled back.

    With `stop_within` the process ends after so many seconds at the latest: what is not committed by then is not kept, as
    with a kill, and is still marked.

    Raises:
        KeyboardInterrupt: After Ctrl-C, when everything is closed. SIGTERM ends in what its handler raises.
    """

    async def main() -> T:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        told: list[int] = []

        def stop(number: int) -> None:
            told.append(number)
            if stop_within is not None and len(told) == 1:
                last_call = threading.Timer(stop_within, os._exit, (128 + number,))
                last_call.daemon = True
                last_call.start()
            if task is not None:
                task.cancel()

        before = signal.getsignal(signal.SIGTERM)
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(signal.SIGTERM, stop, signal.SIGTERM)
            loop.add_signal_handler(signal.SIGINT, stop, signal.SIGINT)
        try:
            return await work
        except asyncio.CancelledError:
            if signal.SIGTERM in told and callable(before):
                before(signal.SIGTERM, None)
            raise KeyboardInterrupt from None

    return asyncio.run(main())


def plan_without_asking(pipeline: Pipeline, scope: Scope) -> list[tuple[str, str, int]]:
    """What `sync` would mark, per connection and kind, from what is known now; nothing is written or asked."""
    clock = SystemClock()
    known: list[tuple[str, str]] = []
    if pipeline.publish.path.exists():
        with open_read_only(pipeline.publish.path) as copy:
            known = copy.execute(
                "select o.connection_id, o.product_id from core.options o join core.products p "
                "using (connection_id, product_id) where not o.is_deleted and not p.is_deleted"
            ).fetchall()
    rows: list[tuple[str, str, int]] = []
    for connection in pipeline.connections:
        rows += [(connection.name, str(s.kind), 1) for s in documents(connection.name)]
        zone = connection.business_time_zone
        windows = scope.travel or pipeline.horizons.bookings.window(clock.now().astimezone(ZoneInfo(zone)).date())
        if scope.wants("bookings"):
            rows.append((connection.name, "bookings", len(booking_windows(connection.name, [windows]))))
        if scope.wants("availability"):
            days = scope.travel or pipeline.horizons.availability.window(clock.now().date())
            keeps = pipeline.products.get(connection.name)
            options = [p for c, p in known if c == connection.name and (not keeps or keeps.keeps(p))]
            rows.append((connection.name, "availability", len(options) * len(list(days.months()))))
    return rows


def stdin_is_terminal() -> bool:
    """Whether a person can be asked."""
    return sys.stdin is not None and sys.stdin.isatty()


def today_at(time_zone: str) -> date:
    """Today at a place, by the machine's clock."""
    return SystemClock().now().astimezone(ZoneInfo(time_zone)).date()


def verify_claims(pipeline: Pipeline) -> Claims:
    """Check the copy's own claims; asks no service."""

    async def run() -> Claims:
        async with open_project(pipeline, command="verify") as project:
            _, failed = await asyncio.to_thread(run_checks, project.warehouse, pipeline.directory)
            return await asyncio.to_thread(claims, project.ports, [(f.check.name, len(f.rows.rows)) for f in failed])

    return run_until_done(run())


def verify_against_service(
    pipeline: Pipeline, *, sample: int | None, travel: Window | None, progress: Progress
) -> LiveResult:
    """Fetch again into a scratch warehouse and compare with the read copy; needs no lease, touches nothing of the project."""
    if not pipeline.publish.path.exists():
        raise ConfigError(f"{pipeline.publish.path} does not exist yet; run `octo-sync sync` first.")
    clock, random = SystemClock(), SystemRandom()

    async def run() -> LiveResult:
        with tempfile.TemporaryDirectory(prefix="octo-verify-", dir=pipeline.directory) as folder:
            scratch_path = Path(folder) / "fresh.duckdb"
            async with contextlib.AsyncExitStack() as stack:
                journal = stack.enter_context(Journal.open(Path(folder) / "journal.sqlite", clock=clock))
                scratch = DuckDBWarehouse(
                    scratch_path, Path(folder) / "private.duckdb", tables=all_tables(), nouns=nouns(), now=clock.now()
                )
                stack.callback(scratch.close)
                clients = await _clients(stack, pipeline, clock, random)
                ports = Ports(
                    pipeline=pipeline,
                    clock=clock,
                    random=random,
                    journal=journal,
                    warehouse=scratch,
                    clients=clients,
                    run_id=new_run_id(clock, random),
                    fence=1,
                    numbers=Numbers(journal),
                    travel=travel,
                    progress=progress,
                )
                return await verify_live(
                    ports,
                    here=pipeline.publish.path,
                    scratch=scratch,
                    scratch_path=scratch_path,
                    journal=journal,
                    tables=all_tables(),
                    sample=sample,
                    travel_scope=Scope(travel=travel),
                    close=scratch.close,
                )

    return run_until_done(run())
