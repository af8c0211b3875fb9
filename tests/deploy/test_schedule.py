"""A schedule means the same times in the pipeline, in systemd and in cron."""

import re
from datetime import UTC, datetime

import pytest
from tests.deploy.conftest import judged, tool

from octo_sync.errors import ConfigError
from octo_sync.flows.deploy.cron import calendar, crontab
from octo_sync.pipeline.schedule import next_time

CRON = ["0 3 * * *", "*/20 * * * *", "5/25 3 * * *", "15 2-4,22 * * *", "0 3 * * 0", "0 3 * * mon-fri", "0 3 1,15 * *",
        "59 23 31 dec *", "0 0 29 2 *", "7 */5 */10 1-6/2 *", "0 4 * * 6", "0 3 1-7 * sat",
        "0 3 * * 0-2,7", "0 3 * * fri-sun", "0 3 * * */2", "0 3 * * 1-5/2"]  # fmt: skip
ZONES = ["UTC", "Europe/Lisbon", "Pacific/Auckland"]
START = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.mark.deep(0.1, everyday=12)
@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("expression", CRON)
def test_a_timer_elapses_when_the_pipeline_s_schedule_does(expression, zone):
    said = judged(
        tool("systemd-analyze"), "calendar", calendar(expression, zone), "--iterations=6",
        f"--base-time={START:%Y-%m-%d %H:%M:%S} UTC", env={"TZ": "UTC", "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    elapsed = [
        datetime.strptime(each, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
        for each in re.findall(r"(?:Next elapse|Iter\. #\d+): \w{3} (\S+ \S+) UTC", said)
    ]

    expected, at = [], START
    while len(expected) < len(elapsed):
        at = next_time(expression, zone, at)
        expected.append(at)
    assert len(elapsed) == 6, said
    assert elapsed == expected


@pytest.mark.parametrize("expression", [each for each in CRON if each != "0 3 1-7 * sat"])
def test_cron_gets_the_same_days_and_hours_in_its_own_words(expression):
    assert next_weekdays(crontab(expression), 6) == [
        at.strftime("%F %R") for at in times(lambda at: next_time(expression, "UTC", at), 6)
    ]


def times(following, count):
    found, at = [], START
    for _ in range(count):
        at = following(at)
        found.append(at)
    return found


def next_weekdays(line, count):
    """The times of a crontab line, read as crontab(5) says, minute by minute."""
    names = dict(zip(("sun", "mon", "tue", "wed", "thu", "fri", "sat"), range(7), strict=True))
    fields = [
        None if field == "*" else {names[part] if part in names else int(part) for part in field.split(",")}
        for field in line.split()
    ]
    found = []
    minutes, hours, days, months, weekdays = fields
    day = START.date().toordinal()
    while len(found) < count:
        date = datetime.fromordinal(day)
        if (
            (months is None or date.month in months)
            and (days is None or date.day in days)
            and (weekdays is None or date.isoweekday() % 7 in weekdays)
        ):
            for hour in range(24):
                for minute in range(60):
                    at = date.replace(hour=hour, minute=minute, tzinfo=UTC)
                    if at > START and (hours is None or hour in hours) and (minutes is None or minute in minutes):
                        found.append(at.strftime("%F %R"))
        day += 1
    return found[:count]


def test_cron_refuses_what_it_would_take_for_something_else():
    with pytest.raises(ConfigError, match="a day of the month or of the week, not both"):
        crontab("0 3 1-7 * sat")


@pytest.mark.parametrize("expression", ["0 3 last * *", "0 3 * * L", "0 3 ? * *", "0 3 1st#2 * *"])
@pytest.mark.parametrize("write", [crontab, lambda text: calendar(text, "UTC")])
def test_what_only_the_pipeline_s_scheduler_knows_is_refused(expression, write):
    with pytest.raises(ConfigError, match="know only numbers, names"):
        write(expression)
