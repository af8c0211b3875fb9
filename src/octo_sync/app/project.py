"""The composition root: a pipeline and the environment become ports. The only module that reads clock and environment."""

import asyncio
import contextlib
import getpass
import logging
import os
import secrets
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from random import Random, SystemRandom
from typing import TYPE_CHECKING, Any, TypeVar, cast

from octo_sync.app import reading as api
from octo_sync.app.logs import hide
from octo_sync.destinations.base import Destination
from octo_sync.destinations.duckdb.publish import sweep_copies
from octo_sync.destinations.duckdb.warehouse import DuckDBWarehouse
from octo_sync.errors import ConfigError, LeaseHeld, WarehouseError
from octo_sync.flows.backup import place as placing
from octo_sync.flows.backup.rebuild import Rebuilt, rebuild
from octo_sync.flows.backup.save import Files, Manifest, mark_everything, read_manifest, restore
from octo_sync.flows.contacts import Privacy
from octo_sync.flows.horizon import booking_months, documents
from octo_sync.flows.ports import Numbers, Ports, Progress, adopt_meanings, booking_dates_mean, booking_days
from octo_sync.flows.privacy.erase import erase, is_due
from octo_sync.flows.publish import Checked, check_draft, run_checks
from octo_sync.flows.status.report import Status, status
from octo_sync.flows.sync.mirror import mirror
from octo_sync.flows.sync.paces import restore_paces
from octo_sync.flows.sync.pull import Scope
from octo_sync.flows.verify import Claims, LiveResult, claims, verify_live
from octo_sync.journal import Journal, Lease, locked
from octo_sync.model import Clock, Connection, Window, day_at
from octo_sync.octo.client import OctoClient
from octo_sync.pipeline import Pipeline
from octo_sync.tables import all_tables, nouns

if TYPE_CHECKING:
    from octo_sync.dashboard.source import Source

__all__ = [
    "Project",
    "SystemClock",
    "alive",
    "dashboard_source",
    "environ",
    "finish_placing",
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


def alive(pid: int, host: str) -> bool:
    """Whether a process still runs; one on another machine counts as running."""
    if host != socket.gethostname():
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def private_path(pipeline: Pipeline) -> Path:
    """The file for contacts and payloads, beside the warehouse."""
    path = _warehouse_path(pipeline)
    return path.with_name(f"{path.stem}.private{path.suffix}")


def lock_path(pipeline: Pipeline) -> Path:
    """The file whose lock says who is the one writer."""
    return _lock_beside(pipeline.journal_path)


def _lock_beside(journal: Path) -> Path:
    return journal.with_name(f"{journal.name}.lock")


def _warehouse_path(pipeline: Pipeline) -> Path:
    if isinstance(pipeline.destination, str):
        raise ConfigError("The warehouse is in PostgreSQL: it has no file of ours.")
    return pipeline.destination


def open_journal(pipeline: Pipeline, clock: Clock) -> Journal:
    """The journal of a pipeline, made when it is not there.

    Raises:
        LeaseHeld: A restore is under way in another process.
    """
    while True:
        finish_placing(pipeline.journal_path)
        before = _inode(pipeline.journal_path)
        journal = Journal.open(pipeline.journal, clock=clock)
        # A restore gives its order, then looks for who has the journal open: one of the two sees the other.
        is_same = before in {None, _inode(pipeline.journal_path)} or journal.recovered_from is not None
        if is_same and not placing.order_path(pipeline.journal_path).exists():
            return journal
        journal.close()


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return None


def finish_placing(journal: Path) -> None:
    """Finish a restore or rebuild that was killed after the point from which it counts. First of all, whatever is opened.

    Raises:
        LeaseHeld: It is under way in another process.
    """
    order = placing.order_path(journal)
    if order.exists():
        with locked(_lock_beside(journal)):
            placing.place(order)


def open_warehouse(pipeline: Pipeline, clock: Clock, *, patient: bool = True) -> Destination:
    """The warehouse of a pipeline, made when it is not there; this process then owns it.

    A server that is away is waited for only by who is `patient`.
    """
    if isinstance(pipeline.destination, str):
        from octo_sync.destinations.postgres.warehouse import PostgresWarehouse  # noqa: PLC0415 - its driver is an extra

        spool = pipeline.journal_path.with_name(f".{pipeline.name}.spool")
        return PostgresWarehouse(
            pipeline.destination,
            spool=spool,
            tables=all_tables(),
            nouns=nouns(),
            now=clock.now(),
            opening_waits=None if patient else (),
        )
    return DuckDBWarehouse(
        _warehouse_path(pipeline), private_path(pipeline), tables=all_tables(), nouns=nouns(), now=clock.now()
    )


def files(pipeline: Pipeline, *, journal: bool = True) -> Files:
    """Where the project's files are, for what copies or replaces them whole.

    Raises:
        ConfigError: The warehouse, or the `journal` that is wanted too, is no file of ours.
    """
    if not isinstance(pipeline.destination, Path):
        raise ConfigError("The warehouse is in PostgreSQL: use its own tools, such as pg_dump and pg_restore.")
    if journal and isinstance(pipeline.journal, str):
        raise ConfigError(
            "The journal is in PostgreSQL: back it up with its own tools, such as pg_dump and pg_restore."
        )
    return Files(pipeline.destination, private_path(pipeline), pipeline.journal_path)


def sweep(pipeline: Pipeline) -> None:
    """Remove what killed processes left half made. Only the owner of the lease may call it."""
    placing.sweep_killed(pipeline.directory, pipeline.journal_path)
    if isinstance(pipeline.destination, Path):
        placing.sweep(placing.order_path(pipeline.journal_path), files(pipeline, journal=False).by_role.values())
        # One with personal data must not lie there until the next is made: perhaps none is made any more.
        for copy in (pipeline.publish.path, pipeline.publish.contacts_path):
            sweep_copies(copy)


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
    warehouse: Destination
    journal: Journal


@contextlib.contextmanager
def _journal_and_warehouse(
    pipeline: Pipeline, clock: Clock, command: str, opened: Journal | None, *, patient: bool = True
) -> Iterator[tuple[Journal, Lease, Destination]]:
    with contextlib.ExitStack() as stack:
        journal = opened or stack.enter_context(open_journal(pipeline, clock))
        lease = stack.enter_context(Lease.acquire(journal, lock_path(pipeline), owner=owner(command), clock=clock))
        if journal.recovered_from is not None:
            log.warning("action=journal_rebuilt damaged=%s", journal.recovered_from.name)
        sweep(pipeline)
        warehouse = open_warehouse(pipeline, clock, patient=patient)
        stack.callback(warehouse.close)
        seq, fence = warehouse.highest_numbers()
        if seq > journal.last_number():
            # It was restored from an older state by hand, or lost commits: what it takes for landed may have changed since.
            # Marked before it is lifted, so that a kill in between leaves it to be noticed again.
            log.warning("action=journal_older marked=%d", mark_everything(journal, pipeline, clock))
        # A journal that was lost and made anew must not give out numbers the warehouse has seen.
        journal.at_least(seq=seq)
        if fence > lease.fence:
            journal.at_least(fence=fence)
            lease.release()
            lease = stack.enter_context(Lease.acquire(journal, lock_path(pipeline), owner=owner(command), clock=clock))
        warehouse.claim_writer(lease.fence, owner(command))
        yield journal, lease, warehouse


@contextlib.contextmanager
def open_files(pipeline: Pipeline, *, command: str) -> Iterator[Project]:
    """Journal and warehouse, owned by this process: for what asks no service anything, so that no token is needed."""
    clock, random = SystemClock(), SystemRandom()
    os.umask(0o077)
    with _journal_and_warehouse(pipeline, clock, command, None) as (journal, lease, warehouse):
        ports = Ports(
            pipeline=pipeline, clock=clock, random=random, journal=journal, warehouse=warehouse, clients={},
            run_id=new_run_id(clock, random), fence=lease.fence, numbers=Numbers(journal),
            privacy=_privacy(pipeline, journal, random, warehouse, lease.fence),
        )  # fmt: skip
        erase(ports)
        yield Project(ports, lease, warehouse, journal)


def rebuild_files(pipeline: Pipeline) -> tuple[Rebuilt, list[Path]]:
    """Make the warehouse's files anew from what can be read of them, and mark everything; what it is, and the former files."""
    here, clock = files(pipeline, journal=False), SystemClock()
    os.umask(0o077)
    order, targets = placing.order_path(here.journal), [here.warehouse, here.private]
    with contextlib.ExitStack() as stack:
        journal = stack.enter_context(open_journal(pipeline, clock))
        stack.enter_context(Lease.acquire(journal, lock_path(pipeline), owner=owner("db rebuild"), clock=clock))
        sweep(pipeline)
        with contextlib.closing(
            DuckDBWarehouse(*map(placing.staged, targets), tables=all_tables(), nouns=nouns(), now=clock.now())
        ) as fresh:
            made = rebuild(fresh, (here.warehouse, here.private), journal, pipeline, clock)
        placing.give_order(order, targets, f"before-{clock.now():%Y%m%dT%H%M%S}")
        kept = placing.place(order)
        placing.sweep(order, targets)  # the working storage of where they were made
        return made, kept


def restore_files(pipeline: Pipeline, source: Path, *, force: bool) -> tuple[Manifest, list[Path]]:
    """Put a backup in place; what it was, and the files that were there before."""
    clock = SystemClock()
    os.umask(0o077)
    here, order = files(pipeline), placing.order_path(pipeline.journal_path)
    manifest = read_manifest(source)
    with locked(lock_path(pipeline)):
        placing.place(order)
        return manifest, restore(here, source, manifest, pipeline, clock, force=force)


async def _clients(
    stack: contextlib.AsyncExitStack,
    pipeline: Pipeline,
    clock: Clock,
    random: Random,
    transport: Callable[[Connection], Any] = lambda _: None,
) -> dict[str, OctoClient]:
    return {
        c.name: await stack.enter_async_context(
            OctoClient(c, clock=clock, random=random, transport=transport(c), on_token=hide)
        )
        for c in pipeline.connections
    }


@contextlib.asynccontextmanager
async def _entered_in_thread(opening: contextlib.AbstractContextManager[T]) -> AsyncIterator[T]:
    """Enter in another thread, because opening a warehouse may take a while and the receiver must not wait; leave in this."""
    entering = asyncio.ensure_future(asyncio.to_thread(opening.__enter__))
    try:
        opened = await asyncio.shield(entering)
    except asyncio.CancelledError:
        # No thread can be stopped: what it opens after all is closed again.
        await asyncio.wait([entering])
        if entering.exception() is None:
            opening.__exit__(None, None, None)
        raise
    with contextlib.ExitStack() as stack:
        stack.push(opening)
        yield opened


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
    patient: bool = True,
) -> AsyncIterator[Project]:
    """Everything a writing command needs, owned by this process until the block ends.

    A `journal` that is open already is used and left open: two would wait for each other's locks. A warehouse on a server
    that is away is waited for, unless the caller is not `patient` because it tries again itself.

    Raises:
        LeaseHeld: Another run owns the project; the sentence names it.
        JournalError, WarehouseError: A file cannot be opened.
    """
    clock = clock or SystemClock()
    random = random or SystemRandom()
    # Databases, their logs and working storage are for their owner alone; DuckDB makes log files at any commit.
    os.umask(0o077)
    opening = _journal_and_warehouse(pipeline, clock, command, journal, patient=patient)
    async with _entered_in_thread(opening) as (owed, lease, warehouse):
        privacy = await asyncio.to_thread(_privacy, pipeline, owed, random, warehouse, lease.fence)
        async with contextlib.AsyncExitStack() as stack:
            clients = await _clients(stack, pipeline, clock, random, transport)
            await asyncio.to_thread(restore_paces, owed, clients.values(), clock)
            ports = Ports(
                pipeline=pipeline,
                clock=clock,
                random=random,
                journal=owed,
                warehouse=warehouse,
                privacy=privacy,
                clients=clients,
                run_id=new_run_id(clock, random),
                fence=lease.fence,
                numbers=Numbers(owed),
                travel=travel,
                allow_deletions=allow_deletions,
                progress=progress or Progress(),
            )
            if is_due(ports):
                # Before anything else is written or published.
                await asyncio.to_thread(erase, ports)
            yield Project(ports, lease, warehouse, owed)


def _privacy(pipeline: Pipeline, journal: Journal, random: Random, warehouse: Destination, fence: int) -> Privacy:
    """What may be kept of a person. The warehouse knows erased contacts too, should the journal have been lost."""
    with warehouse.scrubbing(fence) as scrubber:
        erased = scrubber.erased()
    return Privacy.open(pipeline.pii, journal, random, erased)


@contextlib.asynccontextmanager
async def open_connections(pipeline: Pipeline) -> AsyncIterator[tuple[Journal, dict[str, OctoClient]]]:
    """Journal and clients alone: for what leaves the warehouse alone, also while another run owns the project."""
    clock = SystemClock()
    os.umask(0o077)
    with open_journal(pipeline, clock) as journal:
        async with contextlib.AsyncExitStack() as stack:
            clients = await _clients(stack, pipeline, clock, SystemRandom())
            restore_paces(journal, clients.values(), clock)
            yield journal, clients


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
    with open_journal(pipeline, clock) if Journal.exists(pipeline.journal) else contextlib.nullcontext() as journal:
        means = {c.name: booking_dates_mean(c, journal) for c in pipeline.connections}
    where = published(pipeline)
    if isinstance(where, str) or where.exists():
        # A database that holds nothing yet is no reason not to plan.
        unless = contextlib.suppress(WarehouseError) if isinstance(where, str) else contextlib.nullcontext()
        with unless, api.open(where) as copy:
            found = copy.sql(
                "select o.connection_id, o.product_id from core.options o join core.products p "
                "using (connection_id, product_id) where not o.is_deleted and not p.is_deleted"
            )
            known = [(connection, product) for connection, product in found.rows()]
    rows: list[tuple[str, str, int]] = []
    for connection in pipeline.connections:
        rows += [(connection.name, str(s.kind), 1) for s in documents(connection.name)]
        today = day_at(connection.business_time_zone, clock.now())
        window = booking_days(pipeline.horizons.bookings, today, means[connection.name], scope.travel)
        if scope.wants("bookings"):
            rows.append((connection.name, "bookings", len(booking_months(connection.name, window))))
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
    return day_at(time_zone, SystemClock().now())


def verify_claims(pipeline: Pipeline) -> Claims:
    """Check the copy's own claims; asks no service. Beside another process it is the copy that readers have."""

    async def run() -> Claims:
        with contextlib.suppress(LeaseHeld):
            async with open_project(pipeline, command="verify") as project:
                # Of marts made for it: those that readers have are as old as the last publish.
                found = await asyncio.to_thread(check_draft, project.warehouse, pipeline.directory)
                return await asyncio.to_thread(claims, project.ports, _failed(found))
        async with open_connections(pipeline) as (journal, clients):
            with contextlib.closing(api.reader(published(pipeline), is_whole=True)) as reader:
                copy = cast("Destination", reader)  # it is asked, and that is all
                found = await asyncio.to_thread(run_checks, copy, pipeline.directory)
                ports = Ports(
                    pipeline=pipeline, clock=SystemClock(), random=SystemRandom(), journal=journal,
                    warehouse=copy, clients=clients, run_id="", fence=0, numbers=Numbers(journal), privacy=Privacy("drop", b""),
                )  # fmt: skip
                return replace(await asyncio.to_thread(claims, ports, _failed(found)), of_readers=True)

    return run_until_done(run())


def _failed(found: Sequence[Checked]) -> list[tuple[str, int]]:
    return [(checked.check.name, len(checked.rows.rows)) for checked in found if checked.rows.rows]


def check_next(pipeline: Pipeline, *, limit: int) -> list[Checked]:
    """What the checks say of that which the next publish would show; publishes nothing.

    Raises:
        LeaseHeld: Another process works on the project.
        WarehouseError: A mart or a check does not run.
    """

    async def run() -> list[Checked]:
        async with open_project(pipeline, command="check") as project:
            await asyncio.to_thread(mirror, project.ports)
            return await asyncio.to_thread(check_draft, project.warehouse, pipeline.directory, limit=limit)

    return run_until_done(run())


def published(pipeline: Pipeline) -> Path | str:
    """What is there to be read: the read copy, or the address of a PostgreSQL warehouse."""
    return pipeline.destination if isinstance(pipeline.destination, str) else pipeline.publish.path


def dashboard_source(pipeline: Pipeline, clock: Clock) -> "Source":
    """Where the dashboard gets its rows: what is published, and how the project is from the journal."""
    from octo_sync.dashboard.source import Source  # noqa: PLC0415 - the same
    from octo_sync.pipeline.schedule import next_time  # noqa: PLC0415 - only where pages are made

    def how_it_is() -> Status:
        known = Journal.exists(pipeline.journal)
        with open_journal(pipeline, clock) if known else contextlib.nullcontext() as journal:
            return status(pipeline, journal, None, clock=clock, alive=alive, next_time=next_time)

    return Source(
        published(pipeline),
        pipeline.directory,
        now=clock.now,
        status=how_it_is,
        stale_after=pipeline.notify.stale_after,
    )


def _rows_here(pipeline: Pipeline, scratch: Path) -> Path:
    """A DuckDB file with the rows to compare: the read copy, or one made of those on the server."""
    if not isinstance(pipeline.destination, str):
        return pipeline.publish.path
    from octo_sync.destinations.postgres.snapshot import snapshot  # noqa: PLC0415 - its driver is an extra

    snapshot(pipeline.destination, scratch, all_tables())
    return scratch


def verify_against_service(
    pipeline: Pipeline, *, sample: int | None, travel: Window | None, progress: Progress
) -> LiveResult:
    """Fetch again into a scratch warehouse and compare with the read copy; needs no lease, touches nothing of the project."""
    if isinstance(pipeline.destination, Path) and not pipeline.publish.path.exists():
        raise ConfigError(f"{pipeline.publish.path} does not exist yet; run `octo-sync sync` first.")
    clock, random = SystemClock(), SystemRandom()

    async def run() -> LiveResult:
        with tempfile.TemporaryDirectory(prefix=f"octo-verify-{os.getpid()}-", dir=pipeline.directory) as folder:
            scratch_path = Path(folder) / "fresh.duckdb"
            async with contextlib.AsyncExitStack() as stack:
                journal = stack.enter_context(Journal.open(Path(folder) / "journal.sqlite", clock=clock))
                scratch = DuckDBWarehouse(
                    scratch_path, Path(folder) / "private.duckdb", tables=all_tables(), nouns=nouns(), now=clock.now()
                )
                stack.callback(scratch.close)
                privacy = Privacy("drop", b"")
                clients = await _clients(stack, pipeline, clock, random)
                if Journal.exists(pipeline.journal):
                    # What was erased is left out of this side too.
                    with open_journal(pipeline, clock) as owned:
                        privacy = Privacy.open("drop", owned, random)
                        restore_paces(owned, clients.values(), clock)
                        adopt_meanings(clients, owned, journal)
                ports = Ports(
                    pipeline=pipeline,
                    clock=clock,
                    random=random,
                    journal=journal,
                    warehouse=scratch,
                    # Contacts are not compared, so none are fetched into the scratch file.
                    privacy=privacy,
                    clients=clients,
                    run_id=new_run_id(clock, random),
                    fence=1,
                    numbers=Numbers(journal),
                    travel=travel,
                    progress=progress,
                )
                return await verify_live(
                    ports,
                    here=_rows_here(pipeline, Path(folder) / "here.duckdb"),
                    scratch=scratch,
                    scratch_path=scratch_path,
                    journal=journal,
                    tables=all_tables(),
                    sample=sample,
                    travel_scope=Scope(travel=travel),
                    close=scratch.close,
                )

    return run_until_done(run())
