"""Asking for days: in one request, or in smaller windows where a service wants that; what was learned of it is remembered.

A window that a service refuses, cuts, shortens, answers in pages or with too much is split. Whether a list was cut or
shortened is asked of the service itself: its halves show what the whole one lacks.
"""

import contextlib
import hashlib
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import partial
from itertools import pairwise
from math import ceil, inf
from typing import Any

from octo_sync.errors import AnswerTooLarge, RequestRefused
from octo_sync.model import Subject, SubjectKind, Window
from octo_sync.octo import quirks
from octo_sync.octo.answer import Answer
from octo_sync.octo.endpoints import Call


@dataclass(slots=True)
class Pieces:
    """The answers a subject was put together from."""

    calls: list[tuple[Window | None, Answer]] = field(default_factory=list)
    capped: bool = False
    doubtful: set[int] = field(default_factory=set)
    """Numbers of records at which a list may have been cut, because all of them are on one day."""
    time_zone: str | None = None
    """Of the product, for departures: it says which instants they are."""

    @property
    def request_seq(self) -> int:
        """The number of the request that started first: what the whole answer is as old as (R6)."""
        return min(answer.request_seq for _, answer in self.calls)

    def hash(self, ways: str) -> str:
        """Hash of the bytes of all answers and what they were asked for; `ways` is what else decides what they become."""
        digest = hashlib.blake2b((ways + (self.time_zone or "")).encode(), digest_size=16)
        for part, answer in self.calls:
            digest.update(str(part).encode() + answer.digest)
        return digest.hexdigest()


class Windows:
    """Asks for windows with `send`, for the rest of a run, of at most so many days at once."""

    def __init__(self, send: "Callable[[Subject, Call[Any]], Awaitable[Answer]]", most_days: float = inf) -> None:
        self._send = send
        self._most_days: defaultdict[tuple[str, SubjectKind], float] = defaultdict(lambda: most_days)
        """One less than the fewest days that a service refused to be asked for at once, and no fewer than it answered for."""
        self._longest: dict[tuple[str, SubjectKind], int] = {}
        """The most days that a service answered for at once."""
        self._most_shown: dict[tuple[str, SubjectKind], int] = {}
        """The most records that a list had: whoever cuts lists cuts them there."""
        self._cut: defaultdict[tuple[str, SubjectKind], set[int]] = defaultdict(set)
        """At how many records lists were seen to be cut."""
        self._days_shown: dict[tuple[str, SubjectKind], int] = {}
        """The most days of a window of which the last one was seen to be shown."""
        self._refused: set[tuple[str, str | None, str | None]] = set()
        self._permitted: dict[tuple[str, Window], int] = {}

    def forget_refused(self) -> None:
        """Try again whether options are refused however few days are asked for."""
        self._refused.clear()

    async def ask(
        self,
        subject: Subject,
        window: Window,
        ways: Callable[[Window], Sequence[Window]],
        call: Callable[[Window], Call[Any]],
        *,
        count: Callable[[Pieces], int],
        shown: Callable[[Answer], Collection[str]],
        dated: Callable[[Answer], Mapping[str, date]],
    ) -> Pieces:
        """Ask for a window, in smaller ones where the service wants that.

        Args:
            subject: What it is of.
            window: The days.
            ways: The days to ask for, best first.
            call: The request for these days.
            count: How many records an answer has; none where nobody is known to cut lists.
            shown: Their ids.
            dated: Their ids and days; none where nobody is known to shorten windows.
        """
        pieces, learned = Pieces(), (subject.connection, subject.kind)
        option = (subject.connection, subject.product_id, subject.option_id)
        may_split, margins = option not in self._refused, ways(window)[0].days - window.days
        queue = _pieces_of(window, self._most_days[learned] - margins)
        too_long: int | None = None
        while queue:
            part = queue.pop(0)
            asked = ways(part)
            try:
                answer = await self._first_permitted(subject, part, [call(days) for days in asked])
            except (RequestRefused, AnswerTooLarge) as error:
                smaller = quirks.shrink(part) if may_split else ()
                if not smaller:
                    if isinstance(error, RequestRefused) and subject.option_id:
                        # Not the size of the window, then: this option is refused, and not hammered again (Q38).
                        self._refused.add(option)
                    raise
                if isinstance(error, RequestRefused):
                    too_long = asked[-1].days
                queue[:0] = smaller
                continue
            self._refused.discard(option)
            days = asked[self._permitted[subject.connection, part]].days
            longest = self._longest[learned] = max(days, self._longest.get(learned, 0))
            if too_long and too_long > longest:  # otherwise it was not for the number of days
                most = self._most_days[learned] = min(self._most_days[learned], too_long - 1)
                queue = _pieces_of(Window(queue[0].start, queue[-1].end), most - margins) if queue else []
                too_long = None
            continues = quirks.is_continued(answer.headers)
            if continues and (smaller := quirks.shrink(part)):
                queue[:0] = smaller
                continue
            again = partial(self.ask, subject, ways=ways, call=call, count=count, shown=shown)
            own = Pieces([(part, answer)])
            found = await self._uncut(learned, own, count(own), shown, partial(again, dated=dated))
            found = await self._unshortened(learned, part, answer, dated, again) or found
            pieces.calls += found.calls
            pieces.capped |= found.capped or continues
            pieces.doubtful |= found.doubtful
        return pieces

    async def _uncut(
        self,
        learned: tuple[str, SubjectKind],
        own: Pieces,
        number: int,
        shown: Callable[[Answer], Collection[str]],
        again: Callable[[Window], Awaitable[Pieces]],
    ) -> Pieces:
        """The answer with this number of records, or where its halves show more, these: then it was cut."""
        ((part, answer),), cut = own.calls, self._cut[learned]
        most = self._most_shown[learned] = max(number, self._most_shown.get(learned, 0))
        if number < most or not quirks.may_be_cut(number):
            return own
        assert part is not None  # noqa: S101 - it was asked for
        try:
            halves = [await again(half) for half in quirks.shrink(part)]
        except (RequestRefused, AnswerTooLarge):  # nobody asked for halves but we
            return own
        calls = [piece for half in halves for piece in half.calls]
        is_doubtful = not halves or any(number in half.doubtful for half in halves)
        if not {key for _, half in calls for key in shown(half)} <= {*shown(answer)}:
            cut.add(number)
            own = Pieces(calls, capped=any(half.capped for half in halves))
        if is_doubtful:
            own.doubtful.add(number)
            own.capped |= number in cut or quirks.looks_capped(number)
        return own

    async def _unshortened(
        self,
        learned: tuple[str, SubjectKind],
        part: Window,
        answer: Answer,
        dated: Callable[[Answer], Mapping[str, date]],
        again: Callable[..., Awaitable[Pieces]],
    ) -> Pieces | None:
        """The halves of a window, where the later one shows what the whole lacks: the service gave its first days alone."""
        if part.days <= max(1, self._days_shown.get(learned, 0)) or not (found := dated(answer)):
            return None
        if (last := max(found.values())) >= part.end:
            self._days_shown[learned] = part.days
            return None
        first, second = part.halves()
        # Of a service that showed more days than the later half has, that half is whole.
        try:
            later = await again(second, dated=dated if last < second.start else lambda _: {})
        except (RequestRefused, AnswerTooLarge):
            return None
        missing = {key for _, own in later.calls for key, day in dated(own).items() if day in second} - found.keys()
        if not missing:
            return None
        if len(missing) > 1:  # a single one may have come meanwhile
            self._most_days[learned] = min(self._most_days[learned], first.days)
        earlier = await again(first, dated=dated)
        return Pieces([*earlier.calls, *later.calls], earlier.capped or later.capped, earlier.doubtful | later.doubtful)

    async def _first_permitted(self, subject: Subject, part: Window, ways: Sequence[Call[Any]]) -> Answer:
        """The answer to the first way that is not refused; the same days are asked for that way from then on."""
        first = self._permitted.get((subject.connection, part), 0)
        for number, call in list(enumerate(ways))[first:-1]:
            with contextlib.suppress(RequestRefused):
                answer = await self._send(subject, call)
                self._permitted[subject.connection, part] = number
                return answer
        answer = await self._send(subject, ways[-1])
        self._permitted[subject.connection, part] = len(ways) - 1
        return answer


def with_margins(window: Window, *, is_first: bool) -> list[Window]:
    """The ways to ask for days at the venue, best first.

    A service may count days in another time zone, so a day more on each side is asked for. It may refuse the one before the
    first, because that is in the past, and more than one day.
    """
    return [window.wider(1, 1), *([window.wider(0, 1)] if is_first else []), *([window] if window.days == 1 else [])]


def _pieces_of(window: Window, most_days: float) -> list[Window]:
    """The window in as few pieces as possible of at most `most_days`, and one at least, each as long as the others."""
    count = max(1, ceil(window.days / max(1, most_days)))
    ends = [window.days * number // count for number in range(count + 1)]
    return [
        Window(window.start + timedelta(days=first), window.start + timedelta(days=end - 1))
        for first, end in pairwise(ends)
    ]
