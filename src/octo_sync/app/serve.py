"""The composition root of the program that runs for good: receiver, worker and schedules, in one process and one loop.

Like `app`, it puts things together and decides nothing. The receiver needs the journal alone, so it takes deliveries while
the warehouse is locked, damaged or somebody else's; the worker takes what is marked as soon as it may.
"""

import asyncio
import contextlib
import logging
import os
from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import partial
from random import Random, SystemRandom

from octo_sync.app import listening
from octo_sync.app.machine import SystemClock, new_run_id
from octo_sync.app.notify import Notifier, send_report
from octo_sync.app.program import Events, Means, Program
from octo_sync.app.project import dashboard_source, open_journal
from octo_sync.dashboard import report_html
from octo_sync.errors import ConfigError, JournalError, LeaseHeld, OctoSyncError, WriterFenced
from octo_sync.flows.ports import Ports
from octo_sync.flows.sync.keep import PARTS, Keeper
from octo_sync.flows.webhooks.canary import fly, forget
from octo_sync.flows.webhooks.noticing import Looks, watch_tokens
from octo_sync.flows.webhooks.subscribe import check, close_gap
from octo_sync.flows.wording import plural
from octo_sync.journal import EndStatus, Journal, Share
from octo_sync.model import Claim, Clock, Secret, SubjectKind, day_at
from octo_sync.pipeline import Pipeline
from octo_sync.pipeline.hooks import hook
from octo_sync.pipeline.schedule import Schedules

__all__ = ["PROGRAM_PARTS", "Events", "Means", "serve"]

log = logging.getLogger("octo_sync")

PROGRAM_PARTS = frozenset({"receiver", "worker", "dashboard"})
_TOLD_WITHIN = 0.5
"""Seconds that a stop waits for notices that are being told."""
_MONDAYS = "0 7 * * 1"
"""When `notify.report` is sent."""
_AGAIN, _AGAIN_CAP = 1.0, 30.0
"""Seconds until a project that could not be opened is tried again: at first, and at most."""


async def serve(
    pipeline: Pipeline,
    *,
    parts: frozenset[str] = PROGRAM_PARTS,
    events: Events | None = None,
    clock: Clock | None = None,
    random: Random | None = None,
    means: Means | None = None,
) -> None:
    """Run until cancelled: then nobody new is let in, the landing in hand is finished, and everything is closed.

    Raises:
        ConfigError: The receiver's address cannot be had, or a schedule is not one.
    """
    program = Program(pipeline, clock or SystemClock(), random or SystemRandom(), events or Events(), means or Means())
    os.umask(0o077)
    if parts == {"dashboard"}:
        # It writes nothing, so it needs no journal, and works where there is none.
        async with listening.dashboard(program):
            await _wait_for_ever()
    async with contextlib.AsyncExitStack() as stack:
        # One for both: two connections would wait for each other's locks.
        journal = stack.enter_context(open_journal(pipeline, program.clock))
        receiving = await stack.enter_async_context(contextlib.AsyncExitStack())
        if "receiver" in parts:
            await receiving.enter_async_context(listening.receiver(program, journal))
        if "dashboard" in parts:
            try:
                await stack.enter_async_context(listening.dashboard(program))
            except Exception as error:
                # Nobody's bookings wait for pages.
                log.debug("action=dashboard_failed", exc_info=error)
                program.events.say(f"{_why(error, 'It broke ({}).')} There is no dashboard; everything else runs.")
        own = stack.enter_context(contextlib.closing(Journal(pipeline.journal, clock=program.clock)))
        notifier = Notifier(pipeline, own, program.clock)
        stack.callback(notifier.finish, _TOLD_WITHIN)
        if "worker" in parts and notifier.looks:
            stack.push_async_callback(_cancelled, asyncio.create_task(_notice(notifier, pipeline.notify.check_every)))
        work = _work(program, journal, notifier) if "worker" in parts else _wait_for_ever()
        worker = asyncio.create_task(work)
        stack.push_async_callback(_stopped, worker, receiving)
        await asyncio.wait([worker])
        worker.result()


def _why(error: Exception, broken: str) -> str:
    """An error of ours says it itself; of others only the name is shown."""
    return str(error) if isinstance(error, OctoSyncError) else broken.format(type(error).__name__)


async def _wait_for_ever() -> None:
    await asyncio.get_running_loop().create_future()


async def _stopped(worker: "asyncio.Task[None]", receiving: contextlib.AsyncExitStack) -> None:
    """Take no new deliveries while the last landing is finished; a sender that stalls takes none of its time."""
    await asyncio.gather(receiving.aclose(), _cancelled(worker))


async def _cancelled(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.wait([task])


async def _work(program: Program, journal: Journal, notifier: Notifier) -> None:
    """Own the project and keep its copy; whenever that cannot be, say so once and try again."""
    events, said, pause = program.events, "", _AGAIN
    while True:
        try:
            opening = program.means.opening(
                program.pipeline,
                command="serve",
                clock=program.clock,
                random=program.random,
                journal=journal,
                patient=False,
            )
            async with opening as project:
                said, pause = "", _AGAIN
                project.ports.time_zones = program.time_zones
                program.requests.follow({name: client.stats for name, client in project.ports.clients.items()})
                await _keep(program, project.ports, notifier)
        except ConfigError:
            raise
        except OctoSyncError as error:
            if (task := asyncio.current_task()) is not None and task.cancelling():
                # What breaks while it is being stopped must not begin it anew.
                log.warning("action=stop error=%s", error)
                raise asyncio.CancelledError from error
            if isinstance(error, LeaseHeld | WriterFenced):
                if said != "writer":
                    events.say(f"{await asyncio.to_thread(_writer, journal)}; this one takes over as soon as it ends.")
                said, pause = "writer", _AGAIN
            else:
                if said != str(error):
                    run = f" (run {error.run_id})" if error.run_id else ""
                    is_journal = isinstance(error, JournalError)
                    meanwhile = (
                        "answered 503 meanwhile, and senders send them again" if is_journal else "kept meanwhile"
                    )
                    events.say(f"{error}{run} Trying again until it works; deliveries are {meanwhile}.")
                said, pause = str(error), min(pause * 2, _AGAIN_CAP)
        await asyncio.sleep(pause)


def _writer(journal: Journal) -> str:
    """Who works on the project in our place. Blocking."""
    row = None
    with contextlib.suppress(JournalError):
        row = journal.leases.last()
    name = f" ({row.owner}, pid {row.pid} on {row.host})" if row and row.released_at is None else ""
    return f"Another octo-sync process{name} works on this project"


async def _help(keeper: Keeper, share: Share) -> None:
    """Work beside the one that keeps the copy as a whole, until nobody does, so that this worker may."""
    helping = asyncio.create_task(keeper.run())
    try:
        while not helping.done() and not await asyncio.to_thread(share.may_keep):
            await asyncio.wait([helping], timeout=_AGAIN)  # nobody tells us
        if helping.done():
            helping.result()
    finally:
        await _cancelled(helping)


async def _keep(program: Program, ports: Ports, notifier: Notifier) -> None:
    """Keep the copy; or, while another worker does, help it until it has ended."""
    journal, pipeline, events, wake = ports.journal, ports.pipeline, program.events, program.wake
    keeper = Keeper(
        ports,
        wake,
        partial(new_run_id, program.clock, program.random),
        {SubjectKind.SUBSCRIPTION: _subscription(program, ports, notifier)},
        events.say,
        partial(_reconcile, program, ports),
        notifier.all_is_well,
    )
    keeps = ports.share is None or ports.share.keeps
    schedules = await asyncio.to_thread(_schedules, program, keeper) if keeps else None
    await asyncio.to_thread(journal.runs.start, "serve", pipeline.name, run_id=ports.run_id, fence=ports.fence)
    watching = [
        asyncio.create_task(_watch(journal, wake, program.means.watch_every)),
        asyncio.create_task(
            watch_tokens(ports.clients, program.means.tokens_every, partial(_use_token, keeper), events.say)
        ),
    ]
    status: EndStatus = "ok"
    why = None
    try:
        if ports.share is not None and schedules is None:
            events.say(f"{await asyncio.to_thread(_writer, journal)}; this one works beside it (run {ports.run_id}).")
            await _help(keeper, ports.share)
            return
        backlog = await asyncio.to_thread(journal.subjects.backlog)
        if owed := sum(
            b.dirty for b in backlog if b.kind != SubjectKind.SUBSCRIPTION and b.connection in ports.clients
        ):
            events.say(f"{plural(owed, 'subject')} pending from before.")
        if former := {row.connection for row in await asyncio.to_thread(journal.endpoints.rows)} - ports.clients.keys():
            events.say(
                f"{', '.join(sorted(former))}: webhooks still come in though this is no connection of the pipeline, and "
                "nothing of it is fetched. Put it back, run octo-sync subscriptions remove, and take it out again."
            )
        await asyncio.to_thread(keeper.check_subscriptions)
        late = await schedules.start() if schedules else ()
        if "full" not in late and await asyncio.to_thread(keeper.never_pulled):
            events.say("Nothing was ever pulled here: everything in the horizon is asked for.")
            await asyncio.to_thread(keeper.pull, "full")
        wake.set()
        events.keeping(keeper)
        await keeper.run()
    except Exception as error:
        status, why = "failed", _why(error, "{}")
        if isinstance(error, OctoSyncError):
            error.run_id = ports.run_id
        raise
    finally:
        if schedules:
            schedules.stop()
        for task in watching:
            task.cancel()
        with contextlib.suppress(OctoSyncError):
            # On a stop, or on an error that ends this attempt; what is owed is marked either way.
            await asyncio.to_thread(keeper.stop_pulls)
            await asyncio.to_thread(journal.runs.end, ports.run_id, status, keeper.counts(), error=why)


def _reconcile(program: Program, ports: Ports) -> None:
    """Compare what was just published with the systems that the pipeline names, and say how it went. Blocking."""
    wanted = [name for name, table in ports.pipeline.reconciliations.items() if table.after_sync]
    if not wanted:
        return
    from octo_sync.app.reconcile import make  # noqa: PLC0415 - only where something is compared

    for name in wanted:
        try:
            made = make(ports.pipeline, name, clock=program.clock, journal=ports.journal)
        except Exception as error:
            # The copy is kept whatever one comparison runs into.
            why = _why(error, "it broke ({}); please report this.")
            log.warning("action=reconcile_failed run=%s name=%s error=%s", ports.run_id, name, why)
            log.debug("action=reconcile_failed run=%s name=%s", ports.run_id, name, exc_info=error)
            program.events.say(f"reconcile {name} failed: {why}")
            continue
        outcome = made.outcome
        over = f"; over the limits: {'; '.join(outcome.breached)}" if outcome.breached else ""
        program.events.say(f"reconcile {name}: {plural(outcome.differences, 'difference')}, {outcome.new:,} new{over}")


async def _notice(notifier: Notifier, every: float) -> None:
    """Look now and then whether anything is to be told."""
    while True:
        try:
            await asyncio.to_thread(notifier.look)
        except Exception as error:  # noqa: BLE001 - one look that breaks must not end all others
            log.warning("action=notice_failed error=%s", _why(error, "{}"))
        await asyncio.sleep(every)


def _subscription(program: Program, ports: Ports, notifier: Notifier) -> Callable[[Claim], Awaitable[None]]:
    """Makes a connection's subscription as it should be, and says so when that is news."""
    events, said = program.events, dict[str, str]()

    async def subscription(claim: Claim) -> None:
        name = claim.subject.connection
        ensured = await check(ports, name, tokens=program.means.tokens)
        sentence = f"{name}: subscription {ensured.state}: {ensured.text}"
        # Without an address none has any, which was said at the start.
        is_news = program.pipeline.webhooks.url or ensured.state != "off"
        if is_news and said.get(name) != sentence:
            events.say(sentence)
        said[name] = sentence
        program.subscriptions[name] = ensured.state
        if ensured.endpoint is None:
            return
        gap = await asyncio.to_thread(close_gap, ports, name, ensured.endpoint.endpoint)
        if gap == "refused":
            events.say(
                f"{name}: a delivery came with a wrong secret or none, so the subscription has a new address and secret; "
                "a full pull has started."
            )
        if gap == "lost":
            text = (
                f"{name}: the subscription for webhooks was missing or changed at the service and has been restored; "
                "a full pull has started."
            )
            events.say(text)
            notifier.tell("subscription_lost", name, text, mended=True)

    return subscription


def _schedules(program: Program, keeper: Keeper) -> Schedules:
    """What is called at its times. Blocking."""
    journal, pipeline, wake = keeper.ports.journal, program.pipeline, program.wake

    def last_run(name: str) -> datetime | None:
        value = journal.settings.get(f"schedule {name}")
        return datetime.fromisoformat(value) if value else None

    def ran(name: str, at: datetime) -> None:
        journal.settings.set(f"schedule {name}", at.isoformat())

    async def pull(part: str) -> None:
        count = await asyncio.to_thread(keeper.pull, part)
        program.events.say(f"scheduled pull ({part}): {count:,} subjects marked")
        wake.set()

    looks = Looks(pipeline.webhooks.check_every, program.subscriptions, program.events.say)

    async def check_subscriptions() -> None:
        await asyncio.to_thread(keeper.check_subscriptions, looks.due(keeper.ports.clients))
        wake.set()

    schedules = program.means.schedules(
        pipeline.schedule.time_zone, keeper.ports.clock, last_run=last_run, ran=ran, say=program.events.say
    )
    for part in PARTS:
        if expression := getattr(pipeline.schedule, part):
            schedules.cron(part, expression, partial(pull, part))
    if pipeline.told.get("report"):
        report = partial(asyncio.to_thread, _report, pipeline, keeper.ports.clock)
        schedules.cron("report", _MONDAYS, report, aside=True)
    schedules.every("subscriptions", pipeline.webhooks.check_every, check_subscriptions)
    for name in keeper.ports.clients:
        if canary := pipeline.canaries.get(name):
            schedules.every(f"canary {name}", canary.every, partial(fly, keeper.ports, name, canary.product))
        else:
            forget(journal, name)
    return schedules


def _report(pipeline: Pipeline, clock: Clock) -> None:
    """Send the Overview as it is now. Raises what keeps everybody from getting it, so that it is tried again."""
    with contextlib.closing(dashboard_source(pipeline, clock)) as source:
        page = report_html(source)
    to, today = hook(pipeline.told["report"].reveal()).where, day_at(pipeline.schedule.time_zone, clock.now())
    send_report(pipeline, page, to, today)


async def _use_token(keeper: Keeper, connection: str, token: Secret) -> None:
    keeper.ports.clients[connection].use(token)
    await keeper.look_again(connection)


async def _watch(journal: Journal, wake: asyncio.Event, every: float) -> None:
    """Wake the keeper when another process has marked something: a receiver of its own, a person's command."""
    last = None
    while True:
        with contextlib.suppress(JournalError):
            number = await asyncio.to_thread(journal.numbers.last)
            if number != last:
                wake.set()
            last = number
        await asyncio.sleep(every)
