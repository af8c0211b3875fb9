"""Settle absences: rows that the service no longer shows. Ask, ask again, and only then mark them deleted (R7).

A row leaves only when two different requests that started one after the other both proved it gone: for a product or a
booking two typed "not found" for its own id, for a departure or an option two complete answers of its own window or
document without it. When a pull would lose more than is plausible, nothing is marked and a person is asked.
"""

import logging
from collections import defaultdict
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field

from octo_sync.destinations.base import Absence
from octo_sync.errors import MassDeletionHeld
from octo_sync.flows.mark import mark
from octo_sync.flows.ports import Ports
from octo_sync.model import Source, Subject, SubjectKind

__all__ = ["HELD", "Plan", "Settled", "decide", "settle"]

log = logging.getLogger("octo_sync")

_PROOFS = 2
HELD = "deletions-held"


@dataclass(slots=True)
class Plan:
    """What to do about what is missed."""

    ask: list[Subject] = field(default_factory=list)
    ask_again: list[Subject] = field(default_factory=list)
    """Missed once: the second look comes a while later, because a service may lag behind itself."""
    bury: list[Absence] = field(default_factory=list)
    held: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    """(connection, table) → rows missed, rows that live."""


@dataclass(frozen=True, slots=True)
class Settled:
    """What a step brought: whether there is work again, and how many rows were marked deleted."""

    marked: bool = False
    buried: int = 0


def decide(
    absences: Sequence[Absence],
    live: Mapping[tuple[str, str], int],
    *,
    rows: int,
    share: float,
    allow: bool,
) -> Plan:
    """Decide, purely. `rows` and `share` bound what one table of one connection may lose without a person's word."""
    plan = Plan()
    groups: dict[tuple[str, str], list[Absence]] = defaultdict(list)
    for absence in absences:
        groups[absence.connection, absence.table].append(absence)
    for key, group in sorted(groups.items()):
        if not allow and len(group) > max(rows, share * live.get(key, 0)):
            plan.held[key] = (len(group), live.get(key, 0))
            continue
        plan.bury += [a for a in group if a.misses >= _PROOFS]
        plan.ask += [a.ask for a in group if a.misses == 0]
        plan.ask_again += [a.ask for a in group if 0 < a.misses < _PROOFS]
    plan.ask = sorted(set(plan.ask))
    plan.ask_again = sorted(set(plan.ask_again) - set(plan.ask))
    return plan


def settle(
    ports: Ports, *, stopped: Sequence[str] = (), waited: MutableMapping[Subject, float] | None = None
) -> Settled:
    """Take one step. Blocking.

    What is held goes to quarantine as `deletions-held` and stays missed, so that `--allow-deletions` can go on from there.

    `waited` is the caller's, for who takes steps without an end: how long each second proof was waited for last. A look that
    proves nothing, because its answer is never whole, is then repeated ever more seldom.
    """
    settings = ports.pipeline.sync
    quarantined = ports.journal.quarantined()
    absences = [a for a in ports.warehouse.absences() if a.connection not in stopped and a.connection in ports.clients]
    if not absences and not any(q.resource == HELD for q in quarantined):
        return Settled()
    plan = decide(
        absences,
        ports.warehouse.live_rows() if absences else {},
        rows=settings.deletion_rows,
        share=settings.deletion_share,
        allow=ports.allow_deletions,
    )
    _hold(ports, plan, {(q.connection, q.key): q.reason for q in quarantined if q.resource == HELD})
    buried = 0
    if plan.bury:
        buried = ports.warehouse.bury(plan.bury, now=ports.clock.now(), fence=ports.fence)
        gone = [a for a in plan.bury if a.ask.kind in (SubjectKind.BOOKING, SubjectKind.PRODUCT)]
        _forget(ports, gone)
        log.info("action=bury run=%s proven=%d rows=%d", ports.run_id, len(plan.bury), buried)
    # What is owed already is not asked twice, and what is quarantined is left alone.
    owed = ports.journal.dirty_among([*plan.ask, *plan.ask_again])
    now = [s for s in plan.ask if s not in owed]
    later = [s for s in plan.ask_again if s not in owed]
    mark(ports, now, Source.REPAIR)
    waited = {} if waited is None else waited
    for subject in waited.keys() - set(plan.ask_again):
        del waited[subject]
    first = next(iter(settings.confirm_after), 0.0)
    groups: dict[float, list[Subject]] = defaultdict(list)
    for subject in later:
        before = waited.get(subject)
        longer = first if before is None else min(max(2 * before, settings.backoff), settings.backoff_cap)
        waited[subject] = max(first, longer)
        groups[waited[subject]].append(subject)
    for delay, subjects in groups.items():
        mark(ports, subjects, Source.REPAIR, delay=delay)
    return Settled(marked=bool(now or later), buried=buried)


def _hold(ports: Ports, plan: Plan, noted: Mapping[tuple[str, str], str]) -> None:
    """Say in quarantine what is held and why; `noted` is what it says already, and nothing is written again."""
    settings = ports.pipeline.sync
    for connection in ports.clients:
        over = [table for name, table in noted if name == connection and (name, table) not in plan.held]
        if over:
            ports.journal.clear_records(connection, HELD, over)
    for (connection, table), (missed, live) in plan.held.items():
        error = MassDeletionHeld(
            f"{missed} of {live} live rows of {table} are missing from complete answers; more than max("
            f"{settings.deletion_rows}, {settings.deletion_share:.0%}). Nothing was marked deleted. If it is right, run "
            f"`octo-sync sync --allow-deletions`"
        )
        if noted.get((connection, table)) != str(error):
            ports.journal.quarantine_record(connection, HELD, table, "", str(error), "", ports.run_id)


def _forget(ports: Ports, gone: Sequence[Absence]) -> None:
    """Availability of what is proven gone is not asked for any more."""
    products = {(a.connection, a.ask.parts[0]) for a in gone if a.table == "core.products"}
    options = {
        (a.connection, *Subject.from_key(a.connection, "availability", a.key).parts)
        for a in gone
        if a.table == "core.options"
    }
    stale = [
        row.subject
        for connection in {a.connection for a in gone}
        for row in ports.journal.subjects(connection, SubjectKind.AVAILABILITY)
        if (connection, row.subject.parts[0]) in products or (connection, *row.subject.parts[:2]) in options
    ]
    if stale:
        ports.journal.forget(stale)
