"""Sharing: which connections one of several workers works on.

A worker takes a connection while it owes something, up to its part of those that do, and gives it back when nothing is due;
so nobody assigns anything to anybody, and whoever dies leaves connections that the others take. Who works alone gives
nothing back.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from octo_sync.errors import LeaseHeld, WriterFenced
from octo_sync.flows.ports import Ports
from octo_sync.flows.privacy.erase import is_due
from octo_sync.model import SubjectKind

log = logging.getLogger("octo_sync")


class Sharing:
    """The connections of one worker.

    Args:
        ports: What it works with; `share` says what it owns.
        kinds: What it works off.
        prepare: Called with connections that it takes, before anything is asked of their services.
    """

    def __init__(self, ports: Ports, kinds: Collection[SubjectKind], prepare: Callable[[set[str]], object]) -> None:
        self._ports, self._kinds, self._prepare = ports, kinds, prepare
        self._leaving: set[str] = set()
        self._told: dict[str, int] = {}
        self.is_waiting = False
        """Whether another worker has a connection that owes something, which may be free in a moment."""

    @property
    def keeps(self) -> bool:
        """Whether this worker does what belongs to the copy as a whole."""
        return self._ports.share is None or self._ports.share.keeps

    def may(self, connection: str) -> bool:
        """Whether to ask anything of a connection's service now."""
        share = self._ports.share
        return share is None or (connection in share.owned and connection not in self._leaving)

    @property
    def others(self) -> list[str]:
        """The connections that are not this worker's."""
        share = self._ports.share
        return [] if share is None else [name for name in self._ports.clients if name not in share.owned]

    def renew(self, busy: Collection[str], stopped: Collection[str]) -> bool:
        """Take what owes something, and leave what is more than our part as soon as nothing of it is on its way. Blocking.

        Whether there is one more to work on.

        Args:
            busy: Connections of which something is being fetched or landed.
            stopped: Those that were given up for now: others may have more luck.

        Raises:
            LeaseHeld: The connection to the journal has ended, or persons are to be forgotten first.
        """
        share = self._ports.share
        if share is None:
            return False
        if not share.keeps and is_due(self._ports):
            raise LeaseHeld("Somebody is being forgotten, and what was fetched before must not land after.")
        due = self._ports.clients.keys() & self._ports.journal.subjects.due(self._kinds)
        workers = share.workers()
        room = -(-len(due) // workers)
        working = sorted(share.owned.keys() & (due - set(stopped)), key=lambda name: (name not in busy, name))
        self._leaving = {*working[room:], *(share.owned.keys() & set(stopped))} if workers > 1 else set()
        self._give(self._leaving - set(busy))
        free, room = sorted(due - share.owned.keys() - set(stopped)), room - len(working)
        # Two that began at once must not be after the same ones.
        first = share.fence % len(free) if free else 0
        rest, taken = free[first:] + free[:first], set[str]()
        while rest and len(taken) < room:
            end = room - len(taken)
            taken |= self.take(rest[:end])
            rest = rest[end:]
        self.is_waiting = workers > 1 and any(name not in share.owned for name in free)
        return bool(taken)

    def hand_back(self, busy: Collection[str]) -> None:
        """Give back what owes nothing now, where there are others. Blocking."""
        share = self._ports.share
        if share is not None and share.workers() > 1:
            self._give(share.owned.keys() - {*self._ports.journal.subjects.due(self._kinds), *busy})

    def take(self, connections: Collection[str]) -> set[str]:
        """Own connections; those of them that are ours now. Together, for what is looked at grows with their number. Blocking.

        Raises:
            LeaseHeld: Somebody was forgotten since this worker began: it would not know whom.
        """
        ports, share = self._ports, self._ports.share
        if share is None:
            return set(connections)
        if taken := self._claimed([name for name in connections if name not in share.owned and share.take(name)]):
            if not share.keeps and ports.journal.erasures.rows() != ports.privacy.known:
                raise LeaseHeld("Somebody was forgotten since this worker began.")
            # What the former owner asked for was asked for before (R6).
            ports.numbers.renew()
            self._prepare(taken)
            for name in sorted(taken):
                log.info("action=take run=%s connection=%s", ports.run_id, name)
        return set(connections) & share.owned.keys()

    def _claimed(self, connections: Sequence[str]) -> set[str]:
        """Show their numbers to the warehouse; those that it took. The others are given back."""
        share = self._ports.share
        if share is None or not connections:
            return set()
        fences = {name: share.owned[name] for name in connections}
        try:
            self._ports.warehouse.claim_writer(fences, f"worker {share.fence}")
        except WriterFenced:
            # Who keeps the copy as a whole has begun in between; the next number is higher than its own.
            if len(connections) == 1:
                share.give(connections[0])
                return set()
            half = len(connections) // 2
            return self._claimed(connections[:half]) | self._claimed(connections[half:])
        return set(connections)

    def take_all(self) -> bool:
        """Own every connection, for what no other may land beside; False while another has one. Blocking."""
        return self.take(self._ports.clients) == self._ports.clients.keys()

    def tell(self, counts: Mapping[str, int]) -> None:
        """Have who keeps the copy as a whole know what was done here so far. Blocking."""
        told, self._told = self._told, dict(counts)
        self._ports.journal.numbers.count({name: count - told.get(name, 0) for name, count in counts.items()})

    def elsewhere(self) -> dict[str, int]:
        """What all other workers have done, ever. Blocking."""
        return {} if self._ports.share is None else self._ports.journal.numbers.counted()

    def _give(self, connections: Iterable[str]) -> None:
        for name in list(connections):
            if self._ports.share is not None:
                self._ports.share.give(name)
                log.info("action=give run=%s connection=%s", self._ports.run_id, name)
