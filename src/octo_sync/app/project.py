"""The composition root: a pipeline and the machine become ports."""

import asyncio
import contextlib
import getpass
import logging
import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random, SystemRandom
from typing import TYPE_CHECKING, Any, TypeVar

from octo_sync.app.logs import hide
from octo_sync.app.machine import SystemClock, alive, new_run_id, run_until_done
from octo_sync.app.places import DeltaTables, duckdb_warehouse, files, is_shared, open_warehouse, published
from octo_sync.destinations.duckdb.publish import sweep_copies
from octo_sync.destinations.warehouse import Destination
from octo_sync.errors import LeaseHeld
from octo_sync.flows.acts import Acts
from octo_sync.flows.backup import place as placing
from octo_sync.flows.backup.rebuild import Rebuilt, rebuild
from octo_sync.flows.backup.save import Manifest, Restored, mark_everything, read_manifest, restore
from octo_sync.flows.contacts import Privacy
from octo_sync.flows.ports import Numbers, Ports, Progress
from octo_sync.flows.privacy.erase import erase, is_due
from octo_sync.flows.status.report import Status, status
from octo_sync.flows.sync.mirror import mirror_and_publish
from octo_sync.flows.sync.paces import restore_paces
from octo_sync.flows.sync.sharing import Sharing
from octo_sync.flows.sync.work import to_its_end
from octo_sync.flows.webhooks import canary
from octo_sync.journal import Delivery, Journal, Lease, Share, join, locked
from octo_sync.model import Clock, Connection, Window
from octo_sync.octo.client import OctoClient
from octo_sync.pipeline import Pipeline

if TYPE_CHECKING:
    from octo_sync.dashboard.source import Source

T = TypeVar("T")

log = logging.getLogger("octo_sync")

SHARING = "serve"
"""The command that works beside others of its kind where both databases are on a server."""
_SHOWN = 50
"""Deliveries about a booking that its page shows."""


def open_journal(pipeline: Pipeline, clock: Clock) -> Journal:
    """The journal of a pipeline, made when it is not there.

    Raises:
        LeaseHeld: A restore is under way in another process.
    """
    while True:
        placing.finish_placing(pipeline.journal_path)
        before = _inode(pipeline.journal_path)
        journal = Journal.open(pipeline.journal, clock=clock)
        # A restore gives its order, then looks for who has the journal open: one of the two sees the other.
        is_same = before in {None, _inode(pipeline.journal_path)} or journal.recovered_from is not None
        if is_same and not placing.order_path(pipeline.journal_path).exists():
            return journal
        journal.close()


def journal_if_any(pipeline: Pipeline, clock: Clock) -> contextlib.AbstractContextManager[Journal | None]:
    """The journal, or None where nothing ran yet: looking makes no files."""
    return open_journal(pipeline, clock) if Journal.exists(pipeline.journal) else contextlib.nullcontext()


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return None


def sweep(pipeline: Pipeline) -> None:
    """Remove what killed processes left half made. Only the owner of the lease may call it."""
    placing.sweep_killed(pipeline.directory, pipeline.journal_path)
    if isinstance(pipeline.destination, Path):
        if pipeline.lake is None:
            placing.sweep(placing.order_path(pipeline.journal_path), files(pipeline, journal=False))
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
    warehouse: Destination
    journal: Journal


def _lease(pipeline: Pipeline, journal: Journal, command: str) -> Lease:
    if command == SHARING and is_shared(pipeline):
        return join(journal, owner=owner(command))
    return journal.leases.acquire(placing.lock_beside(pipeline.journal_path), owner=owner(command))


def make_ports(
    pipeline: Pipeline,
    journal: Journal,
    warehouse: Destination,
    clients: Mapping[str, OctoClient],
    privacy: Privacy,
    *,
    clock: Clock,
    random: Random,
    fence: int,
    share: Share | None = None,
) -> Ports:
    """What a flow is given, as a run of its own."""
    return Ports(
        pipeline=pipeline, clock=clock, random=random, journal=journal, warehouse=warehouse, privacy=privacy,
        clients=clients, run_id=new_run_id(clock, random), fence=fence, numbers=Numbers(journal), share=share,
        beside=DeltaTables(pipeline, clock, fence) if pipeline.publish.delta else None,
    )  # fmt: skip


@contextlib.contextmanager
def open_files(pipeline: Pipeline, *, command: str) -> Iterator[Project]:
    """Journal and warehouse, owned by this process: for what asks no service anything, so that no token is needed."""
    clock, random = SystemClock(), SystemRandom()
    os.umask(0o077)
    with journal_and_warehouse(pipeline, clock, command, None) as (journal, lease, warehouse):
        privacy = _privacy(pipeline, journal, random, warehouse)
        ports = make_ports(pipeline, journal, warehouse, {}, privacy, clock=clock, random=random, fence=lease.fence)
        erase(ports)
        yield Project(ports, warehouse, journal)


def _privacy(pipeline: Pipeline, journal: Journal, random: Random, warehouse: Destination) -> Privacy:
    """What may be kept of a person. The warehouse knows erased contacts too, should the journal have been lost."""
    return Privacy.open(pipeline.pii, journal, random, warehouse.erased())


@contextlib.contextmanager
def journal_and_warehouse(
    pipeline: Pipeline, clock: Clock, command: str, opened: Journal | None, *, patient: bool = True
) -> Iterator[tuple[Journal, Lease, Destination]]:
    """Both, owned by this process until the block is left; made where they are not there."""
    with contextlib.ExitStack() as stack:
        journal = opened or stack.enter_context(open_journal(pipeline, clock))
        lease = stack.enter_context(_lease(pipeline, journal, command))
        if journal.recovered_from is not None:
            log.warning("action=journal_rebuilt damaged=%s", journal.recovered_from.name)
        share = lease if isinstance(lease, Share) else None
        if share is None or share.keeps:
            sweep(pipeline)
        warehouse = open_warehouse(pipeline, clock, patient=patient, beside=share is not None)
        stack.callback(warehouse.close)
        if share is not None and not share.keeps:
            yield journal, lease, warehouse
            return
        seq, fence = warehouse.highest_numbers()
        if seq > journal.numbers.last():
            # It was restored from an older state by hand, or lost commits: what it takes for landed may have changed since.
            # Marked before it is lifted, so that a kill in between leaves it to be noticed again.
            log.warning("action=journal_older marked=%d", mark_everything(journal, pipeline, clock))
        # A journal that was lost and made anew must not give out numbers the warehouse has seen.
        journal.numbers.at_least(seq=seq)
        if fence > lease.fence:
            journal.numbers.at_least(fence=fence)
            lease.release()
            lease = stack.enter_context(_lease(pipeline, journal, command))
            if isinstance(lease, Share) and not lease.keeps:
                raise LeaseHeld("Another worker has begun to keep the copy in between.")
        warehouse.claim_writer(lease.fence if share is None else {"": lease.fence}, owner(command))
        yield journal, lease, warehouse


def _erase_alone(ports: Ports) -> None:
    """Carry out what is due, which nothing may land beside.

    Raises:
        LeaseHeld: Another worker still has a connection.
    """
    share = ports.share
    if share is None or not share.keeps or not Sharing(ports, (), lambda _: None).take_all():
        raise LeaseHeld("Somebody is to be forgotten, and another worker has not stopped yet.")
    erase(ports)
    for name in list(share.owned):
        share.give(name)


def rebuild_files(pipeline: Pipeline) -> tuple[Rebuilt, list[Path]]:
    """Make the warehouse's files anew from what can be read of them, and mark everything; what it is, and the former files."""
    here, clock = files(pipeline, journal=False), SystemClock()
    os.umask(0o077)
    order, targets = placing.order_path(here.journal), [here.warehouse, here.private]
    with open_journal(pipeline, clock) as journal, _lease(pipeline, journal, "db rebuild"):
        sweep(pipeline)
        with contextlib.closing(
            duckdb_warehouse(placing.staged(here.warehouse), placing.staged(here.private), clock)
        ) as fresh:
            made = rebuild(fresh, (here.warehouse, here.private), journal, pipeline, clock)
        placing.give_order(order, targets, f"before-{clock.now():%Y%m%dT%H%M%S}")
        kept = placing.place(order)
        placing.sweep(order, targets)  # the working storage of where they were made
        return made, kept


def restore_files(pipeline: Pipeline, source: Path, *, force: bool) -> tuple[Manifest, Restored]:
    """Put a backup in place; what it was, and what was done."""
    clock = SystemClock()
    os.umask(0o077)
    here, order = files(pipeline), placing.order_path(pipeline.journal_path)
    manifest = read_manifest(source)
    with locked(placing.lock_beside(pipeline.journal_path)):
        placing.place(order)
        return manifest, restore(here, source, manifest, pipeline, clock, force=force)


async def open_clients(
    stack: contextlib.AsyncExitStack,
    pipeline: Pipeline,
    clock: Clock,
    random: Random,
    transport: Callable[[Connection], Any] = lambda _: None,
) -> dict[str, OctoClient]:
    """A client per connection, open until the stack is closed."""
    return {
        c.name: await stack.enter_async_context(
            OctoClient(c, clock=clock, random=random, transport=transport(c), on_token=hide)
        )
        for c in pipeline.connections
    }


@contextlib.asynccontextmanager
async def _entered_in_thread(opening: contextlib.AbstractContextManager[T]) -> AsyncIterator[T]:
    """Enter and leave in another thread: either may take a while, and the receiver must not wait."""
    entering = asyncio.ensure_future(asyncio.to_thread(opening.__enter__))
    try:
        opened = await asyncio.shield(entering)
    except asyncio.CancelledError:
        # No thread can be stopped: what it opens after all is closed again.
        await asyncio.wait([entering])
        if entering.exception() is None:
            opening.__exit__(None, None, None)
        raise
    try:
        yield opened
    except BaseException as error:
        await to_its_end(asyncio.to_thread(opening.__exit__, type(error), error, error.__traceback__))
        raise
    else:
        await to_its_end(asyncio.to_thread(opening.__exit__, None, None, None))


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
    opening = journal_and_warehouse(pipeline, clock, command, journal, patient=patient)
    async with _entered_in_thread(opening) as (owed, lease, warehouse):
        share = lease if isinstance(lease, Share) else None
        privacy = await asyncio.to_thread(_privacy, pipeline, owed, random, warehouse)
        async with contextlib.AsyncExitStack() as stack:
            clients = await open_clients(stack, pipeline, clock, random, transport)
            await asyncio.to_thread(restore_paces, owed, clients.values(), clock)
            ports = make_ports(
                pipeline, owed, warehouse, clients, privacy, clock=clock, random=random, fence=lease.fence, share=share
            )
            ports.travel, ports.allow_deletions = travel, allow_deletions
            ports.progress = progress or ports.progress
            if await asyncio.to_thread(is_due, ports):
                # Before anything else is written or published.
                await asyncio.to_thread(erase if share is None else _erase_alone, ports)
            yield Project(ports, warehouse, owed)


def run_in_project(
    pipeline: Pipeline, command: str, work: Callable[[Ports], T], *, journal: Journal | None = None
) -> T:
    """What `work`, which blocks, makes of the project, opened as `open_project` does. Blocking."""

    async def run() -> T:
        async with open_project(pipeline, command=command, journal=journal) as project:
            return await asyncio.to_thread(work, project.ports)

    return run_until_done(run())


def show(pipeline: Pipeline, *, command: str = "reconcile") -> bool:
    """Have readers see what was kept, with a publish; False when another process owns the project, which does it itself."""
    if pipeline.publish.enabled:
        with contextlib.suppress(LeaseHeld):
            run_in_project(pipeline, command, mirror_and_publish)
            return True
    return False


@contextlib.asynccontextmanager
async def open_connections(pipeline: Pipeline) -> AsyncIterator[tuple[Journal, dict[str, OctoClient]]]:
    """Journal and clients alone: for what leaves the warehouse alone, also while another run owns the project."""
    clock = SystemClock()
    os.umask(0o077)
    with open_journal(pipeline, clock) as journal:
        async with contextlib.AsyncExitStack() as stack:
            clients = await open_clients(stack, pipeline, clock, SystemRandom())
            restore_paces(journal, clients.values(), clock)
            yield journal, clients


def dashboard_source(pipeline: Pipeline, clock: Clock) -> "Source":
    """Where the dashboard gets its rows: what is published, and how the project is from the journal."""
    from octo_sync.dashboard.source import Source  # noqa: PLC0415 - the same
    from octo_sync.pipeline.schedule import next_time  # noqa: PLC0415 - only where pages are made

    def how_it_is() -> Status:
        with journal_if_any(pipeline, clock) as journal:
            return status(pipeline, journal, None, clock=clock, alive=alive, next_time=next_time)

    def deliveries(connection: str, booking: str) -> list[Delivery]:
        with journal_if_any(pipeline, clock) as journal:
            return journal.inbox.about(connection, booking, _SHOWN) if journal else []

    def canaries() -> frozenset[str]:
        with journal_if_any(pipeline, clock) as journal:
            return canary.holds(journal, [each.name for each in pipeline.connections]) if journal else frozenset()

    may_act = bool(pipeline.dashboard_token or pipeline.dashboard.user_header)
    return Source(
        published(pipeline),
        pipeline.directory,
        now=clock.now,
        status=how_it_is,
        stale_after=pipeline.notify.stale_after,
        deliveries=deliveries,
        canaries=canaries,
        acts=Acts(partial(open_journal, pipeline, clock), clock, pipeline.reconciliations) if may_act else None,
    )
