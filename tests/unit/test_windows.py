"""Lists that a service cuts without a word are noticed by what their halves show; whole ones cost hardly a request."""

import datetime as dt
import json
import random

import pytest

from octo_sync.flows.sync.windows import Windows
from octo_sync.model import Subject, SubjectKind, Window
from octo_sync.octo.answer import Answer
from octo_sync.octo.endpoints import bookings

MONTHS = [Window.month(f"2026-{month:02d}") for month in range(1, 13)]


def service(on_days, cut, asked):
    """A service with so many bookings on each day, which shows the first `cut` of a list."""

    async def send(subject, call):
        start, end = (dt.date.fromisoformat(dict(call.params)[name]) for name in ("localDateStart", "localDateEnd"))
        asked.append(Window(start, end))
        shown = [f"{day}/{n}" for day in sorted(on_days) if start <= day <= end for n in range(on_days[day])]
        return Answer(json.dumps(shown[:cut]).encode(), 200, {}, len(asked), b"", call)

    return send


async def pulled(on_days, cut):
    """Per month the ids that the copy would have, and whether it is called complete; and what was asked for."""
    asked, found = [], []
    windows = Windows(service(on_days, cut, asked))
    for month in MONTHS:
        subject = Subject("main", SubjectKind.BOOKINGS, (str(month.start)[:7],))
        pieces = await windows.ask(
            subject, month, lambda w: [w], lambda w: bookings(start=w.start, end=w.end), shown=Answer.json
        )
        found.append(([id_ for _, answer in pieces.calls for id_ in answer.json()], not pieces.capped))
    return found, asked


def days(counts):
    return {dt.date(2026, month, day): many for month, day, many in counts}


@pytest.mark.parametrize("cut", [10, 20, 25, 50, 100, 250])
async def test_what_is_called_complete_is_whole_wherever_a_list_is_cut(cut):
    rng = random.Random(cut)
    for _ in range(8):
        on_days = {
            month.start + dt.timedelta(days=n): rng.randrange(cut if rng.random() < 0.1 else 1 + cut // 8)
            for month in MONTHS
            for n in range(month.days)
        }
        found, _ = await pulled(on_days, cut)
        for month, (ids, is_complete) in zip(MONTHS, found, strict=True):
            there = {f"{day}/{n}" for day in on_days if month.start <= day <= month.end for n in range(on_days[day])}
            assert is_complete
            assert set(ids) == there


async def test_a_day_that_has_as_many_as_lists_are_cut_at_leaves_its_month_incomplete():
    found, _ = await pulled(days([(1, 5, 4), (1, 20, 21), (2, 1, 3)]), 20)
    assert [is_complete for _, is_complete in found] == [False, *[True] * 11]


async def test_whole_lists_are_asked_for_in_halves_where_they_are_the_longest_so_far_and_have_a_round_number():
    asked = (
        await pulled(days([(1, 5, 7), (2, 5, 6), (2, 20, 4), (3, 5, 10), (3, 20, 1), (4, 3, 10), (5, 9, 21)]), None)
    )[1]
    assert [window for window in asked if window not in MONTHS] == [*MONTHS[1].halves()]
