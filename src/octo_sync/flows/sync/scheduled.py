"""The pulls of schedules: each is a run of its own, from its marks to the landing of the last of them."""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from octo_sync.flows import horizon
from octo_sync.flows.ports import Ports
from octo_sync.flows.sync.run import how_it_went
from octo_sync.flows.sync.work import Worker
from octo_sync.model import Source, SubjectKind

log = logging.getLogger("octo_sync")

PARTS = ("full", "near", "availability", "bookings")
"""What a schedule may ask for."""
_ALL_BOOKINGS = ("full", "bookings")
"""After which of them all bookings that the pipeline keeps were asked for."""


@dataclass(slots=True)
class _Pull:
    """A pull of a schedule that is under way, for the list of runs."""

    run_id: str
    part: str
    number: int
    """Of its marks."""
    before: Mapping[str, int]
    """What was counted when it began."""


@dataclass(frozen=True, slots=True)
class Ended:
    """What there is to tell of pulls that are over."""

    well: bool = False
    """A full pull has ended, and every service answered to its end."""
    all_bookings: bool = False
    """All bookings were pulled, and no month of them is owed."""

    def __or__(self, other: "Ended") -> "Ended":
        return Ended(self.well or other.well, self.all_bookings or other.all_bookings)


class Pulls:
    """Those that are under way for one keeper; `ended` counts the others."""

    def __init__(self, ports: Ports, worker: Worker, new_run_id: Callable[[], str]) -> None:
        self.ports, self._worker, self._new_run_id = ports, worker, new_run_id
        self._open: list[_Pull] = []
        self.ended = 0

    def counts(self) -> dict[str, int]:
        """What was done so far, as runs say it."""
        requests = sum(client.stats.requests for client in self.ports.clients.values())
        return self._worker.lander.totals.counts | {"requests": requests}

    def _so_far(self) -> dict[str, int]:
        """The same with what other workers did."""
        elsewhere = self._worker.sharing.elsewhere()
        return {name: count + elsewhere.get(name, 0) for name, count in self.counts().items()}

    def _counts_of(self, pull: _Pull) -> dict[str, int]:
        return {name: count - pull.before[name] for name, count in self._so_far().items()}

    def begin(self, part: str, connections: Collection[str] | None = None) -> int:
        """Mark what a schedule asks for, of all connections or of some, as a run of its own; how many subjects. Blocking.

        Raises:
            ValueError: No such part; see `PARTS`.
        """
        if part not in PARTS:
            raise ValueError(f"{part} is none of {', '.join(PARTS)}")
        ports = self.ports
        chosen = ports.clients.keys() if connections is None else connections
        parts = {"full": horizon.EVERYTHING, "near": {"bookings", "availability"}}.get(part, {part})
        subjects = horizon.subjects(ports, chosen, parts, near=part == "near")
        if part == "full":
            # What failed on another day gets its tries again: the trouble may have been the day.
            ports.journal.quarantine.retry("all")
        run_id = self._new_run_id()
        ports.journal.runs.start(
            "pull", ports.pipeline.name, run_id=run_id, fence=ports.fence, options={"part": part, "by": ports.run_id}
        )
        before = self._so_far()
        number = ports.journal.subjects.mark(subjects, Source.SCHEDULE)
        self._open.append(_Pull(run_id, part, number, before))
        log.info("action=pull run=%s part=%s subjects=%d", run_id, part, len(subjects))
        return len(subjects)

    def _stopped(self) -> tuple[set[str], list[str]]:
        """Connections that are left alone, and the others."""
        stopped = {t.connection for t in self._worker.troubles}
        return stopped, [name for name in self.ports.clients if name not in stopped]

    def over(self) -> list[_Pull]:
        """The pulls of schedules of which nothing is left. Blocking."""
        _, working = self._stopped()
        return [p for p in self._open if not self.ports.journal.subjects.unlanded_since(p.number, working)]

    def end(self, over: Sequence[_Pull]) -> tuple[list[str], Ended]:
        """These pulls are over, well or with something owed; what to say. Blocking."""
        ended = Ended()
        stopped, working = self._stopped()
        self.ended += len(over)
        backlog = self.ports.journal.subjects.backlog()
        is_held = bool(self.ports.journal.quarantine.entries())
        months_owed = any(b.quarantined for b in backlog if b.kind is SubjectKind.BOOKINGS and b.connection in working)
        sentences = []
        for pull in over:
            self._open.remove(pull)
            counts = self._counts_of(pull)
            error = "; ".join(str(t.error) for t in self._worker.troubles)[:1000] or None
            word = how_it_went(
                counts["subjects"],
                is_owed=bool(stopped),
                is_held=is_held,
                is_every_service_gone=self.ports.clients.keys() <= self._worker.failed_services,
            )
            all_bookings = pull.part in _ALL_BOOKINGS and not stopped and not months_owed
            well = pull.part == "full" and not stopped and not self._worker.without_products
            ended |= Ended(well=well, all_bookings=all_bookings)
            self.ports.journal.runs.end(pull.run_id, word, {**counts, "part": pull.part}, error)
            sentences.append(
                f"pull ({pull.part}) {word}: {counts['subjects']:,} subjects, {counts['rows_written']:,} rows written"
            )
        return sentences, ended

    def stop(self) -> None:
        """The pulls that are under way end here, with what they did; what they asked for stays marked. Blocking."""
        for pull in self._open:
            self.ports.journal.runs.end(pull.run_id, "interrupted", self._counts_of(pull), "stopped with serve")
        self._open.clear()
