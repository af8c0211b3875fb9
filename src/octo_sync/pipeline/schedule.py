"""When: cron expressions and intervals call things. The only module that imports apscheduler.

A time that passed while nobody was running is caught up once, however often it passed; nothing runs twice at the same time;
what fails is tried again until it worked, because its next time may be a day away.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from apscheduler.events import EVENT_JOB_ERROR, JobExecutionEvent
from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.interval import IntervalTrigger

from octo_sync.errors import ConfigError, OctoSyncError
from octo_sync.model import Clock
from octo_sync.pipeline.weekdays import WEEKDAYS, weekdays

if TYPE_CHECKING:
    from apscheduler.schedulers.base import BaseScheduler

log = logging.getLogger("octo_sync")

Call = Callable[[], Awaitable[object]]

_AGAIN = 30.0
"""Seconds until a call of a cron expression that failed is made again."""


class _Times(CronTrigger):  # type: ignore[misc] # APScheduler 3 has no types
    """A cron expression's times. One that names its hour and minute comes once a day, also where clocks are put back.

    As crontab(5) has it: `30 2 * * *` passes over the second 02:30 of that night, `*/30 * * * *` runs through.
    """

    def get_next_fire_time(self, previous_fire_time: datetime | None, now: datetime) -> datetime | None:
        """The next instant, on the schedule's own clock."""
        found: datetime | None = super().get_next_fire_time(previous_fire_time, now)
        names = {field.name: str(field) for field in self.fields}
        while found and _is_second(found) and "*" not in names["hour"] + names["minute"]:
            found = super().get_next_fire_time(None, found.astimezone(UTC) + timedelta(microseconds=1))
        return found


def _is_second(moment: datetime) -> bool:
    """Whether a clock that was put back shows this time for the second time."""
    first, now = moment.replace(fold=0).utcoffset(), moment.utcoffset()
    return first is not None and now is not None and first > now


def _trigger(expression: str, time_zone: str) -> CronTrigger:
    try:
        *others, last = expression.split()
        return _Times.from_crontab(" ".join([*others, _named(last)]), timezone=time_zone)
    except ValueError as error:
        raise ConfigError(f'schedule: "{expression}" is not a cron expression: {error}.') from None


def _named(field: str) -> str:
    """The days of the week by name, because in APScheduler 0 is Monday."""
    days = weekdays(field)
    if days is None:
        raise ValueError("a day of the week is 0 to 7 or sun to sat, with *, -, a comma and / as in crontab(5)")
    return ",".join(WEEKDAYS[day] for day in days) if len(days) < len(WEEKDAYS) else "*"


def next_time(expression: str, time_zone: str, after: datetime) -> datetime | None:
    """The first instant (UTC) after `after` that a five-field cron expression means, or None when there is none.

    Raises:
        ConfigError: It is not a cron expression.
    """
    found: datetime | None = _trigger(expression, time_zone).get_next_fire_time(None, after + timedelta(microseconds=1))
    # In UTC, because Python holds an hour that a clock shows twice to be equal to no instant at all.
    return found.astimezone(UTC) if found else None


def missed(expression: str, time_zone: str, last: datetime | None, now: datetime) -> bool:
    """Whether a time passed since it ran last. What never ran has missed nothing."""
    if last is None:
        return False
    due = next_time(expression, time_zone, last)
    return due is not None and due <= now


class Schedules:
    """Calls made at times of day and at intervals, on the running event loop.

    Args:
        time_zone: Whose clock cron expressions mean.
        clock: For what was missed.
        last_run, ran: Read and write when something ran last, durably, by name. Blocking.
        say: Told in a sentence what failed.
        scheduler: Waits for the times; APScheduler's own by default.
    """

    def __init__(
        self,
        time_zone: str,
        clock: Clock,
        *,
        last_run: Callable[[str], datetime | None],
        ran: Callable[[str, datetime], None],
        say: Callable[[str], object] = lambda _: None,
        scheduler: "BaseScheduler | None" = None,
    ) -> None:
        from apscheduler.schedulers.asyncio import AsyncIOScheduler  # noqa: PLC0415 - others only ask for the next time

        self._time_zone, self._clock = time_zone, clock
        self._last_run, self._ran, self._say = last_run, ran, say
        self._crons: dict[str, str] = {}
        self._calls: dict[str, Call] = {}
        self._aside: set[str] = set()
        self._scheduler = scheduler or AsyncIOScheduler(
            timezone="UTC", job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None}
        )
        self._scheduler.add_listener(_note_failure, EVENT_JOB_ERROR)

    def cron(self, name: str, expression: str, call: Call, *, aside: bool = False) -> None:
        """Call at the times of a five-field cron expression. `aside`: nothing waits for it, not even when it was missed.

        Raises:
            ConfigError: It is not a cron expression.
        """
        trigger = _trigger(expression, self._time_zone)
        self._crons[name], self._calls[name] = expression, call
        if aside:
            self._aside.add(name)
        self._scheduler.add_job(self._called, trigger, args=[name], id=name)

    def every(self, name: str, seconds: float, call: Call) -> None:
        """Call every so many seconds, the first time after that long."""
        self._calls[name] = call
        self._scheduler.add_job(self._called, IntervalTrigger(seconds=seconds), args=[name], id=name)

    async def start(self) -> list[str]:
        """Begin; what was missed meanwhile is called at once. The names of what was missed.

        Raises:
            OctoSyncError: What was missed could not be called; it stays missed.
        """
        self._scheduler.start()
        now = self._clock.now()
        late = await asyncio.to_thread(self._missed, now)
        for name in late:
            log.info("action=schedule_missed name=%s", name)
            if name in self._aside:
                self._scheduler.modify_job(name, next_run_time=now)
            else:
                await self._run(name)
        return late

    def _missed(self, now: datetime) -> list[str]:
        """What was missed; of what never ran, a time that passes is missed from now on. Blocking."""
        last = {name: self._last_run(name) for name in self._crons}
        for name, moment in last.items():
            if moment is None:
                self._ran(name, now)
        return [n for n, e in self._crons.items() if missed(e, self._time_zone, last[n], now)]

    def next_runs(self) -> dict[str, datetime]:
        """When each of them is called next."""
        return {job.id: job.next_run_time for job in self._scheduler.get_jobs() if job.next_run_time is not None}

    def stop(self) -> None:
        """Call nothing any more; what waits to be tried again is not."""
        if self._scheduler.running:
            self._scheduler.shutdown(wait=False)

    async def _called(self, name: str) -> None:
        """It is due. A call of a cron expression is made until it works; that of an interval comes again soon anyway."""
        try:
            while not await self._works(name):
                if name not in self._crons:
                    return
                await asyncio.sleep(_AGAIN)
        except asyncio.CancelledError:
            if self._scheduler.running:  # else it was stopped, which APScheduler would show as a failure
                raise

    async def _works(self, name: str) -> bool:
        try:
            await self._run(name)
        except OctoSyncError as error:
            log.warning("action=schedule_failed name=%s error=%s", name, type(error).__name__)
            self._say(f"schedule {name}: {error} It is tried again.")
            return False
        return True

    async def _run(self, name: str) -> None:
        """Written down afterwards: who is killed or fails before that has missed it."""
        now = self._clock.now()
        await self._calls[name]()
        if name in self._crons:
            await asyncio.to_thread(self._ran, name, now)


def _note_failure(event: JobExecutionEvent) -> None:
    log.warning("action=schedule_failed name=%s error=%s", event.job_id, type(event.exception).__name__)
