"""Lists that a service cuts, and windows that it shortens, without a word are noticed; whole ones cost hardly a request."""

import datetime as dt
import json
import random

import pytest

from octo_sync.errors import RequestRefused
from octo_sync.flows.sync.fetch import _uuids
from octo_sync.flows.sync.windows import Windows, with_margins
from octo_sync.model import Subject, SubjectKind, Window
from octo_sync.octo.answer import Answer
from octo_sync.octo.endpoints import availability, bookings

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
            subject,
            month,
            lambda w: [w],
            lambda w: bookings(start=w.start, end=w.end),
            count=count,
            shown=Answer.json,
            dated=lambda _: {},
        )
        found.append(([id_ for _, answer in pieces.calls for id_ in answer.json()], not pieces.capped))
    return found, asked


def count(own):
    ((_, answer),) = own.calls
    return len(answer.json())


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


async def departures(on_days, most, asked):
    """Per month the days of departures that the copy would have, of a service that gives the first `most` days alone."""

    async def send(subject, call):
        start, end = (dt.date.fromisoformat(call.json[name]) for name in ("localDateStart", "localDateEnd"))
        asked.append(Window(start, end))
        days = [start + dt.timedelta(days=n) for n in range(min(most, (end - start).days + 1))]
        return Answer(json.dumps([str(day) for day in days if day in on_days]).encode(), 200, {}, len(asked), b"", call)

    windows, found = Windows(send), []
    for month in MONTHS:
        subject = Subject("main", SubjectKind.AVAILABILITY, ("p", "o", str(month.start)[:7]))
        pieces = await windows.ask(
            subject,
            month,
            lambda w: with_margins(w, is_first=False),
            lambda w: availability("p", "o", w.start, w.end),
            count=lambda _: 0,
            shown=lambda _: (),
            dated=lambda answer: {day: dt.date.fromisoformat(day) for day in answer.json()},
        )
        found.append(
            {day for part, answer in pieces.calls for day in answer.json() if dt.date.fromisoformat(day) in part}
        )
    return found


@pytest.mark.parametrize(
    ("most", "share"),
    # Of few departures in a few days, none may be left to tell.
    [
        (most, share)
        for share, least in ((1, 3), (0.5, 7), (0.2, 14))
        for most in (3, 7, 14, 20, 28, 30, 31, 365)
        if most >= least
    ],
)
async def test_windows_that_a_service_shortens_are_asked_for_in_shorter_ones(most, share):
    rng = random.Random(most)
    for _ in range(20):
        # Some on the first of each month: where a window seems to be empty nobody asks further.
        on_days = {
            day
            for month in MONTHS
            for n in range(month.days)
            if (day := month.start + dt.timedelta(days=n)).day == 1 or rng.random() < share
        }
        for month, days_found in zip(MONTHS, await departures(on_days, most, []), strict=True):
            assert days_found == {str(day) for day in on_days if day in month}


@pytest.mark.parametrize("day", [2, 28])
async def test_a_service_that_refuses_halves_is_asked_for_whole_windows_and_believed(day):
    asked = []
    tell = service({month.start.replace(day=day): 10 for month in MONTHS}, None, asked)

    async def send(subject, call):
        answer = await tell(subject, call)
        if asked[-1] not in MONTHS:
            raise RequestRefused("Whole months only.", status=400)
        return answer

    windows = Windows(send)
    for month in MONTHS:
        for dated in (lambda _: {}, lambda answer: {id_: dt.date.fromisoformat(id_[:10]) for id_ in answer.json()}):
            subject = Subject("main", SubjectKind.BOOKINGS, (str(month.start)[:7],))
            call = lambda w: bookings(start=w.start, end=w.end)  # noqa: E731
            pieces = await windows.ask(subject, month, lambda w: [w], call, count=count, shown=Answer.json, dated=dated)
            assert [days for days, _ in pieces.calls] == [month]


def test_a_uuid_may_be_anything():
    assert _uuids(b'[{"uuid": ["a"]}, {"uuid": {"b": 1}}, {}, {"uuid": "c"}]') == ["['a']", "{'b': 1}", "None", "c"]


async def test_a_service_that_shows_all_days_is_asked_once_for_each_month():
    every = {month.start + dt.timedelta(days=n) for month in MONTHS for n in range(month.days)}
    asked = []
    await departures(every, 365, asked)
    assert asked == [month.wider(1, 1) for month in MONTHS]


async def test_until_the_last_day_was_seen_a_window_that_ends_early_costs_one_more_request():
    asked = []
    await departures({dt.date(2026, month, day) for month in range(1, 13) for day in range(2, 29)}, 365, asked)
    assert len(asked) == 12 + 11, "February ends on its 28th"


@pytest.mark.parametrize(("known", "is_halved"), [(20, True), (19, False)])
async def test_a_list_is_halved_where_its_number_is_round_and_its_ids_are_read_for_that_alone(known, is_halved):
    on_days, read = days([(1, 5, 12), (1, 20, 12)]), []

    def shown(answer):
        read.append(answer)
        return answer.json()

    windows = Windows(service(on_days, 20, []))
    pieces = await windows.ask(
        Subject("main", SubjectKind.BOOKINGS, ("2026-01",)),
        MONTHS[0],
        lambda w: [w],
        lambda w: bookings(start=w.start, end=w.end),
        count=lambda _: known,
        shown=shown,
        dated=lambda _: {},
    )
    assert sum(len(answer.json()) for _, answer in pieces.calls) == (24 if is_halved else 20)
    assert bool(read) is is_halved
