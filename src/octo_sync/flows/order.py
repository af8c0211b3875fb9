"""One order: what a later request has shown is not taken back by an answer to an earlier one (R6).

A record may come by several ways: a booking by its own id and in a list of days, a product by itself and in the list, a
departure in two months when it moved. Whose request began last knows best. All of it is in memory, because no request
survives its process: what an answer that is still to come could take back is remembered until nobody waits for it any more.
"""

import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from octo_sync.destinations.base import Answered, Shown
from octo_sync.model import Subject

Family = tuple[str | None, ...]


def _family(a: Answered) -> Family:
    """Answers that may show the same record: of one noun of a connection, of departures those of one option."""
    return a.subject.connection, a.noun, *(a.subject.parts[:2] if a.noun == "availability" else ())


@dataclass(slots=True)
class Order:
    """Which answers are on their way, and what landed since the first of them began. Used from several threads."""

    _flying: Counter[tuple[str, int]] = field(default_factory=Counter)
    """Connection, number of the last request before it began → answers on their way."""
    _landed: dict[str, list[tuple[Family, Shown]]] = field(default_factory=lambda: defaultdict(list))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, connection: str, after: int) -> None:
        """An answer is on its way; its requests have higher numbers than `after`."""
        with self._lock:
            self._flying[connection, after] += 1

    def end(self, *begun: tuple[str, int]) -> None:
        """They have landed, or will not: what `begin` was told of each."""
        with self._lock:
            self._flying -= Counter(begun)
            for name in {name for name, _ in begun}:
                first = self._first(name)
                kept = [(f, s) for f, s in self._landed[name] if first is not None and s.number > first]
                self._landed[name] = kept

    def _first(self, connection: str) -> int | None:
        """The lowest number before an answer that is on its way."""
        return min((began for name, began in self._flying if name == connection), default=None)

    def apply(self, answers: Sequence[Answered]) -> list[Answered]:
        """The answers without what later ones of them, or of those that have landed, show.

        An answer of which something is left out is not what is landed, so that an equal one is to be read.
        """
        families: dict[Family, list[tuple[Shown, Subject | None]]] = defaultdict(list)
        for a in answers:
            families[_family(a)] += [(shown, a.subject) for shown in a.shown]
        with self._lock:
            for name in {a.subject.connection for a in answers}:
                for family, shown in self._landed[name]:
                    if family in families:
                        families[family].append((shown, None))
        left_out: dict[Subject, set[tuple[int, str]]] = defaultdict(set)
        for units in families.values():
            for subject, pairs in _overruled(units):
                left_out[subject] |= pairs
        return [_without(a, left_out[a.subject]) if a.subject in left_out else a for a in answers]

    def landed(self, answers: Iterable[Answered]) -> None:
        """These have landed: remember what answers that are on their way must not take back."""
        with self._lock:
            first = {name: self._first(name) for name in {name for name, _ in self._flying}}
            for a in answers:
                began = first.get(a.subject.connection)
                if began is not None:
                    self._landed[a.subject.connection] += [(_family(a), s) for s in a.shown if s.number > began]


def _overruled(units: list[tuple[Shown, Subject | None]]) -> Iterable[tuple[Subject, set[tuple[int, str]]]]:
    """Of answers of one family: records, by the requests that showed them, that a later one showed."""
    if len(units) < 2:  # noqa: PLR2004 - one alone has no other
        return
    later: set[str] = set()
    for shown, subject in sorted(units, key=lambda unit: unit[0].number, reverse=True):
        if subject is not None and (both := later.intersection(shown.ids)):
            yield subject, {(number, one) for number in shown.requests for one in both}
        later.update(shown.ids)


def _without(a: Answered, left_out: set[tuple[int, str]]) -> Answered:
    """The answer without these records; months must not claim more departures than are landed."""
    fewer = len(left_out) if a.noun == "availability" else 0
    seen = tuple(s for s in a.seen if (s.request_seq, s.uuid) not in left_out)
    return replace(a, left_out=frozenset(left_out), seen=seen, row_count=a.row_count - fewer)
