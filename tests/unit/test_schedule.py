"""Schedules: which times an expression means, what was missed, and that nothing runs twice at once."""

import asyncio
import datetime as dt

import pytest

from octo_sync.errors import ConfigError, JournalError
from octo_sync.pipeline import schedule
from octo_sync.pipeline.schedule import Schedules, missed, next_time


def at(text):
    return dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC)


class Clock:
    def __init__(self, now):
        self.moment = at(now)

    def now(self):
        return self.moment


@pytest.mark.parametrize(
    ("expression", "zone", "after", "following"),
    [
        ("0 2 * * *", "UTC", "2026-11-20T01:59", "2026-11-20T02:00"),
        ("0 2 * * *", "UTC", "2026-11-20T02:00", "2026-11-21T02:00"),
        ("0 2 * * *", "Europe/Lisbon", "2026-07-01T00:00", "2026-07-01T01:00"),
        ("30 2 * * *", "Europe/Berlin", "2026-10-24T23:59", "2026-10-25T00:30"),
        ("*/15 * * * *", "UTC", "2026-11-20T01:59", "2026-11-20T02:00"),
    ],
)
def test_times_are_of_the_schedules_own_zone(expression, zone, after, following):
    assert next_time(expression, zone, at(after)) == at(following)


@pytest.mark.parametrize(
    ("expression", "zone", "after", "following"),
    [
        ("30 2 * * *", "Europe/Berlin", "2026-10-25T00:29", ["2026-10-25T00:30", "2026-10-26T01:30"]),
        ("30 2 * * *", "Europe/Berlin", "2026-10-25T00:30", ["2026-10-26T01:30"]),
        ("30 2 * * *", "Europe/Berlin", "2026-10-25T01:10", ["2026-10-26T01:30"]),
        ("30 1 * * *", "Europe/Lisbon", "2026-10-25T00:00", ["2026-10-25T00:30", "2026-10-26T01:30"]),
        ("15,45 2 * * *", "Europe/Berlin", "2026-10-25T00:15", ["2026-10-25T00:45", "2026-10-26T01:15"]),
        ("0 0 * * *", "America/Havana", "2026-11-01T03:00", ["2026-11-01T04:00", "2026-11-02T05:00"]),
        ("0 3 * * *", "Europe/Berlin", "2026-10-25T00:30", ["2026-10-25T02:00", "2026-10-26T02:00"]),
        # What runs all the time goes on.
        ("30 * * * *", "Europe/Berlin", "2026-10-25T00:00", ["2026-10-25T00:30", "2026-10-25T01:30"]),
        ("*/30 2 * * *", "Europe/Berlin", "2026-10-25T00:15", ["2026-10-25T00:30", "2026-10-25T01:00"]),
        # A time that a clock put forward leaves out still comes.
        ("30 2 * * *", "Europe/Berlin", "2027-03-27T02:00", ["2027-03-28T01:30", "2027-03-29T00:30"]),
    ],
)
def test_a_time_of_day_comes_once_though_the_clock_shows_it_twice(expression, zone, after, following):
    moment, found = at(after), []
    for _ in following:
        moment = next_time(expression, zone, moment)
        found.append(moment)
    assert found == [at(one) for one in following]


async def test_a_call_is_made_once_though_the_clock_shows_its_time_twice():
    waiting = ByHand()
    schedules = Schedules(
        "Europe/Berlin", Clock("2026-10-25T00:00"), last_run={}.get, ran=lambda *_: None, scheduler=waiting
    )
    schedules.cron("full", "30 2 * * *", asyncio.Event().wait)
    first = waiting.trigger.get_next_fire_time(None, at("2026-10-25T00:00"))
    assert first.astimezone(dt.UTC) == at("2026-10-25T00:30")
    second = waiting.trigger.get_next_fire_time(first, at("2026-10-25T00:30"))
    assert second.astimezone(dt.UTC) == at("2026-10-26T01:30")


SUN, MON, TUE, WED, THU, FRI, SAT = (f"2026-11-{day}" for day in range(22, 29))


@pytest.mark.parametrize(
    ("field", "days"),
    [
        ("0", {SUN}),
        ("7", {SUN}),
        ("1", {MON}),
        ("6", {SAT}),
        ("1-5", {MON, TUE, WED, THU, FRI}),
        ("0-4", {SUN, MON, TUE, WED, THU}),
        ("5-7", {FRI, SAT, SUN}),
        ("0,6", {SUN, SAT}),
        ("1-5/2", {MON, WED, FRI}),
        ("*/2", {SUN, TUE, THU, SAT}),
        ("4/2", {THU, SAT}),
        ("0-6", {SUN, MON, TUE, WED, THU, FRI, SAT}),
        ("*", {SUN, MON, TUE, WED, THU, FRI, SAT}),
        ("mon-fri", {MON, TUE, WED, THU, FRI}),
        ("fri-sun", {FRI, SAT, SUN}),
        ("sun-tue", {SUN, MON, TUE}),
        ("Sun,3", {SUN, WED}),
    ],
)
def test_days_of_the_week_are_counted_as_cron_counts_them(field, days):
    found, moment, expression = set(), at("2026-11-22T00:00"), f"0 3 * * {field}"
    while (moment := next_time(expression, "UTC", moment)) < at("2026-11-29T00:00"):
        found.add(moment.date().isoformat())
    assert found == days


@pytest.mark.parametrize("field", ["8", "5-1", "0-8", "*/7", "1/0", "mon-", "monday", "L", "sat-mon", "-1", "1-2-3"])
def test_days_of_the_week_that_cron_does_not_know_are_refused(field):
    with pytest.raises(ConfigError, match="is not a cron expression"):
        next_time(f"0 3 * * {field}", "UTC", at("2026-11-20T00:00"))


def test_what_is_not_a_cron_expression_is_refused():
    with pytest.raises(ConfigError, match='"99 2 \\* \\* \\*" is not a cron expression'):
        next_time("99 2 * * *", "UTC", at("2026-11-20T00:00"))


@pytest.mark.parametrize(
    ("last", "is_missed"),
    [
        ("2026-11-19T02:00", True),
        ("2026-11-10T02:00", True),
        ("2026-11-20T02:00", False),
        ("2026-11-20T11:00", False),
        (None, False),
    ],
)
def test_a_time_that_passed_is_missed_however_often(last, is_missed):
    assert missed("0 2 * * *", "UTC", last and at(last), at("2026-11-20T12:00")) is is_missed


def remembering(clock, known):
    return Schedules("UTC", clock, last_run=known.get, ran=known.__setitem__)


async def test_what_was_missed_is_called_once_at_the_start():
    known, called = {"full": at("2026-11-10T02:00"), "near": at("2026-11-20T11:59")}, []
    schedules = remembering(Clock("2026-11-20T12:00"), known)

    async def call(name):
        called.append(name)

    for name, expression in (("full", "0 2 * * *"), ("near", "0 * * * *"), ("new", "0 3 * * *")):
        schedules.cron(name, expression, lambda name=name: call(name))
    try:
        assert await schedules.start() == ["full", "near"]
        assert called == ["full", "near"]
        assert set(schedules.next_runs()) == {"full", "near", "new"}
        # From now on the new one can be missed too.
        assert known == dict.fromkeys(("full", "near", "new"), at("2026-11-20T12:00"))
    finally:
        schedules.stop()


async def test_what_was_missed_and_fails_stays_missed():
    known = {"full": at("2026-11-10T02:00")}
    schedules = remembering(Clock("2026-11-20T12:00"), known)

    async def full_disk():
        raise JournalError("no space left")

    schedules.cron("full", "0 2 * * *", full_disk)
    try:
        with pytest.raises(JournalError):
            await schedules.start()
    finally:
        schedules.stop()
    assert known == {"full": at("2026-11-10T02:00")}


async def test_what_stands_aside_was_missed_and_fails_keeps_nobody_waiting(monkeypatch):
    monkeypatch.setattr(schedule, "_AGAIN", 0.01)
    known, called, written = {"report": at("2026-11-16T07:00"), "full": at("2026-11-10T02:00")}, [], asyncio.Event()

    def ran(name, moment):
        known[name] = moment
        if name == "report":
            written.set()

    refuses, said = True, []
    schedules = Schedules("UTC", Clock("2026-11-24T12:00"), last_run=known.get, ran=ran, say=said.append)

    async def report():
        called.append("report")
        if refuses or called.count("report") < 3:
            raise JournalError("The mail server refuses.")

    async def full():
        called.append("full")

    schedules.cron("report", "0 7 * * mon", report, aside=True)
    schedules.cron("full", "0 2 * * *", full)
    try:
        assert await schedules.start() == ["report", "full"]
        assert called[0] == "full"
        assert known["report"] == at("2026-11-16T07:00"), "it stays missed until it is done"
        refuses = False
        await asyncio.wait_for(written.wait(), 60)
        assert known["report"] == at("2026-11-24T12:00")
        assert called.count("full") == 1
        assert said[0] == "schedule report: The mail server refuses. It is tried again."
    finally:
        schedules.stop()


@pytest.mark.parametrize("fails", ["the call", "writing it down"])
async def test_what_fails_at_its_time_is_tried_again_and_not_a_day_later(monkeypatch, fails):
    monkeypatch.setattr(schedule, "_AGAIN", 0.01)
    clock, known, tries, done = Clock("2026-11-20T01:59"), {}, [], asyncio.Event()

    def fail_once(what):
        if what == fails:
            tries.append(what)
            if len(tries) == 1:
                raise JournalError("no space left")

    async def pull():
        fail_once("the call")

    def ran(name, moment):
        if moment == at("2026-11-20T02:00"):
            fail_once("writing it down")
            done.set()
        known[name] = moment

    waiting = ByHand()
    schedules = Schedules("UTC", clock, last_run=known.get, ran=ran, scheduler=waiting)
    schedules.cron("full", "0 2 * * *", pull)
    await schedules.start()
    clock.moment = at("2026-11-20T02:00")
    await asyncio.wait_for(waiting.due(), 120)
    assert done.is_set()
    assert len(tries) == 2
    assert known == {"full": at("2026-11-20T02:00")}


class ByHand:
    """A scheduler whose only job is due when the test says so."""

    def add_listener(self, *_):
        pass

    def add_job(self, call, trigger, args, **_):
        self._job, self.trigger = (call, args), trigger

    def start(self):
        pass

    async def due(self):
        call, args = self._job
        await call(*args)


async def test_an_interval_does_not_overtake_itself_and_survives_a_failure():
    running = most = calls = 0
    enough = asyncio.Event()

    async def slow():
        nonlocal running, most, calls
        running, calls = running + 1, calls + 1
        most = max(most, running)
        await asyncio.sleep(0.25)
        running -= 1
        if calls == 1:
            raise OSError("once")
        enough.set()

    schedules = remembering(Clock("2026-11-20T12:00"), {})
    schedules.every("slow", 0.1, slow)
    await schedules.start()
    try:
        await asyncio.wait_for(enough.wait(), 120)
    finally:
        schedules.stop()
    assert most == 1
    assert calls >= 2


@pytest.mark.parametrize("stops", [True, False])
async def test_what_fails_or_is_stopped_is_a_sentence_and_no_trace(caplog, stops):
    said, begun = [], asyncio.Event()

    async def check():
        begun.set()
        if stops:
            await asyncio.sleep(60)
        raise JournalError("The journal was locked.")

    schedules = Schedules("UTC", Clock("2026-11-20T12:00"), last_run={}.get, ran=lambda *_: None, say=said.append)
    schedules.every("subscriptions", 0.01, check)
    await schedules.start()
    await asyncio.wait_for(begun.wait(), 60)
    schedules.stop()
    await asyncio.sleep(0.1)
    assert set(said) == (set() if stops else {"schedule subscriptions: The journal was locked. It is tried again."})
    assert [each for each in caplog.records if each.name.startswith("apscheduler") and each.exc_info] == []
