"""The gate for deletions: rows that the service no longer shows, by whichever road that was noticed (R7).

Ask, ask again, and only then mark them deleted. A row leaves only when two different requests that started one after the
other both proved it gone: for a product or a booking two typed "not found" for its own id while the list that speaks for it
does not show it either, for a departure or an option two complete answers of its own window or document without it.

When more would be lost within a day than is plausible, by all roads together, nothing is marked and a person is asked. That
holds deletions only: who is missed is still asked for, as far as the budget of calls goes.
"""

import logging
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from octo_sync.destinations.base import Absence
from octo_sync.destinations.gate import Guard, is_too_much
from octo_sync.errors import MassDeletionHeld
from octo_sync.flows.ports import Ports
from octo_sync.flows.sync.drift import let_through, tell_missing
from octo_sync.flows.sync.due import known_bookings
from octo_sync.flows.sync.losses import note_rows_lost, rows_lost
from octo_sync.journal import QuarantineEntry
from octo_sync.model import Source, Subject, SubjectKind

log = logging.getLogger("octo_sync")

_PROOFS = 2
HELD = "deletions-held"
ALLOW = "allow deletions"
"""What a person does who says yes to what is held."""
_PRODUCTS = "core.products"
_LISTS = (SubjectKind.BOOKINGS, SubjectKind.PRODUCTS)
_ASKED = "asked_while_held"


@dataclass(slots=True)
class Plan:
    """What to do about what is missed."""

    ask: list[Subject] = field(default_factory=list)
    ask_again: list[Subject] = field(default_factory=list)
    """Missed once: the second look comes a while later, because a service may lag behind itself."""
    bury: list[Absence] = field(default_factory=list)
    held: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    """(connection, table) → rows missed and deleted lately, rows that lived."""


@dataclass(frozen=True, slots=True)
class Settled:
    """What a step brought: whether there is work again, and how many rows were marked deleted."""

    marked: bool = False
    buried: int = 0


def decide(
    absences: Sequence[Absence],
    live: Mapping[tuple[str, str], int],
    *,
    guard: Guard,
    allow: bool,
    lost: Mapping[tuple[str, str], int] | None = None,
    replaced: Collection[str] = (),
    allowed: Mapping[tuple[str, str], str] | None = None,
) -> Plan:
    """Decide, purely. `guard` bounds what one table of one connection may lose without a person's word.

    `allowed` are the sentences that a person was shown and said yes to: what is no longer as they say is held as before.
    `lost` is how many rows of each table were deleted lately, `replaced` the connections of which no product is left that
    was there before: however few they are, that is no withdrawal.
    """
    plan, lost, allowed = Plan(), lost or {}, allowed or {}
    groups: dict[tuple[str, str], list[Absence]] = defaultdict(list)
    for absence in absences:
        groups[absence.connection, absence.table].append(absence)
    for key, group in sorted(groups.items()):
        gone = len(group) + lost.get(key, 0)
        lived = live.get(key, 0) + lost.get(key, 0)
        is_replaced = key[1] == _PRODUCTS and key[0] in replaced
        is_held = is_replaced or is_too_much(gone, lived, guard)
        if is_held and not allow and allowed.get(key) != why_held(key[1], gone, lived, guard):
            plan.held[key] = gone, lived
        else:
            plan.bury += [a for a in group if a.misses >= _PROOFS and a.ask.kind not in _LISTS]
        plan.ask += [a.ask for a in group if a.misses == 0]
        # Its own id was not found, and the list that speaks for it has not been asked since.
        plan.ask_again += [a.ask for a in group if 0 < a.misses < _PROOFS or a.ask.kind in _LISTS]
    plan.ask = sorted(set(plan.ask))
    plan.ask_again = sorted(set(plan.ask_again) - set(plan.ask))
    return plan


def settle(
    ports: Ports,
    *,
    stopped: Sequence[str] = (),
    others: Collection[str] = (),
    waited: MutableMapping[Subject, float] | None = None,
) -> Settled:
    """Take one step. Blocking.

    Of `others`, connections that another worker owns, nothing is touched.

    What is held goes to quarantine as `deletions-held` and stays missed, so that `--allow-deletions` can go on from there.

    `waited` is the caller's, for who takes steps without an end: how long each second proof was waited for last. A look that
    proves nothing, because its answer is never whole, is then repeated ever more seldom.
    """
    keeps = ports.share is None or ports.share.keeps
    if keeps:
        let_through(ports)
    quarantined = ports.journal.quarantine.entries()
    if keeps:
        tell_missing(ports, quarantined)
    left_alone = {*stopped, *others}
    absences = [
        a for a in ports.warehouse.absences() if a.connection not in left_alone and a.connection in ports.clients
    ]
    acts = [act for act in ports.journal.acts.waiting(ALLOW) if act.about not in others]
    quarantined = [q for q in quarantined if q.connection not in others]
    if not absences and not acts and not any(q.resource == HELD for q in quarantined):
        return Settled()
    allowed = {(act.about, act.key): act.text for act in acts}
    plan = decide(
        absences,
        ports.warehouse.live_rows() if absences else {},
        guard=_guard(ports),
        allow=ports.allow_deletions,
        lost=rows_lost(ports),
        replaced=_replaced(ports, absences),
        allowed=allowed,
    )
    _hold(ports, plan, [q for q in quarantined if q.resource == HELD])
    buried = 0
    if plan.bury:
        # Before it is done: a kill in between makes the gate stricter, never laxer.
        tables = [(a.connection, a.table) for a in plan.bury]
        # What a person has allowed says nothing about what may go next.
        note_rows_lost(ports, Counter(each for each in tables if each not in allowed))
        with ports.privacy.lock:  # not between the reading of an answer and its landing
            buried = ports.warehouse.bury(
                plan.bury, now=ports.clock.now(), fence=ports.fence_of({a.connection for a in plan.bury})
            )
            ports.privacy.number += 1
        gone = [a for a in plan.bury if a.ask.kind in (SubjectKind.BOOKING, SubjectKind.PRODUCT)]
        _forget(ports, gone)
        log.info("action=bury run=%s proven=%d rows=%d", ports.run_id, len(plan.bury), buried)
    for act in acts:
        count = sum((a.connection, a.table) == (act.about, act.key) for a in plan.bury)
        is_other = (act.about, act.key) in plan.held
        changed = "Nothing was deleted: it is not as it was when this was allowed."
        done = f"{count:,} rows were marked deleted; what is not proven gone yet is asked for again."
        ports.journal.acts.end([act], changed if is_other else done)
    # What is owed already is not asked twice, and what is quarantined is left alone.
    owed = ports.journal.subjects.dirty_among([*plan.ask, *plan.ask_again])
    now = _within_budget(ports, [s for s in plan.ask if s not in owed], plan.held)
    later = [s for s in plan.ask_again if s not in owed]
    ports.mark(now, Source.REPAIR)
    settings, waited = ports.pipeline.sync, {} if waited is None else waited
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
        ports.mark(subjects, Source.REPAIR, delay=delay)
    return Settled(marked=bool(now or later), buried=buried)


def _within_budget(ports: Ports, subjects: Sequence[Subject], held: Collection[tuple[str, str]]) -> list[Subject]:
    """Bookings of which too many are missed are asked for within `verify_budget`, those that may still change first."""
    many = {connection for connection, table in held if table == "core.bookings"}
    some = [s for s in subjects if s.connection not in many or s.kind is not SubjectKind.BOOKING]
    if not many:
        return some
    hour = ports.clock.now().strftime("%Y-%m-%dT%H")
    is_open = {b.subject for b in known_bookings(ports.warehouse)}
    for connection in sorted(many):
        before = (ports.journal.settings.get(_ASKED, connection=connection) or "").partition(" ")
        asked = int(before[2]) if before[0] == hour else 0
        own = [s for s in subjects if s.connection == connection and s.kind is SubjectKind.BOOKING]
        own = sorted(own, key=lambda s: (s not in is_open, s))[: max(0, ports.verify_budget(connection) - asked)]
        if own:
            ports.journal.settings.set(_ASKED, f"{hour} {asked + len(own)}", connection=connection)
        some += own
    return some


def _replaced(ports: Ports, absences: Sequence[Absence]) -> list[str]:
    """The connections whose products are all missed but those that came with the list that misses them."""
    if not any(a.table == _PRODUCTS for a in absences):
        return []
    missed = defaultdict[str, dict[str, datetime]](dict)
    for name, key, at in ports.warehouse.query(
        "select connection_id, key, first_missed_at_utc from ops.absences where table_name = 'core.products'"
    ).rows:
        missed[name][key] = at
    first = {name: min(products.values()) for name, products in missed.items()}
    left = {
        name
        for name, product, at in ports.warehouse.query(
            "select connection_id, product_id, first_seen_at_utc from core.products where not is_deleted"
        ).rows
        if name in missed
        and at < first[name]
        and Subject(name, SubjectKind.PRODUCT, (product,)).key not in missed[name]
    }
    names = sorted({a.connection for a in absences if a.table == _PRODUCTS} - left)
    return [name for name in names if len(missed[name]) > 1]


def _guard(ports: Ports) -> Guard:
    return Guard(ports.pipeline.sync.deletion_rows, ports.pipeline.sync.deletion_share)


def _hold(ports: Ports, plan: Plan, noted: Sequence[QuarantineEntry]) -> None:
    """Say in quarantine what is held and why; `noted` is what it says already, and nothing is written again."""
    guard = _guard(ports)
    said = {(q.connection, q.key): q.reason for q in noted}
    ports.journal.quarantine.clear(
        q for q in noted if q.connection in ports.clients and (q.connection, q.key) not in plan.held
    )
    for (connection, table), (missed, lived) in plan.held.items():
        why = why_held(table, missed, lived, guard)
        if said.get((connection, table)) != why:
            ports.journal.quarantine.add_record(connection, HELD, table, "", why, ports.run_id)


def why_held(table: str, missed: int, lived: int, guard: Guard) -> str:
    """Why so many deletions of a table are held, and what to do; another sentence for another number."""
    if table == _PRODUCTS and not is_too_much(missed, lived, guard):
        error = MassDeletionHeld(
            f"All {missed} products that were there before are missing from the product list: the service may have given "
            f"them other ids. Nothing was marked deleted. If they are gone, run `octo-sync sync --allow-deletions`"
        )
    else:
        error = MassDeletionHeld(
            f"{missed} of {lived} rows of {table} are missing from complete answers or were deleted within a day; more "
            f"than max({guard.rows}, {guard.share:.0%}). No more were marked deleted. If it is "
            f"right, run `octo-sync sync --allow-deletions`"
        )
    return str(error)


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
        for row in ports.journal.subjects.rows(connection, SubjectKind.AVAILABILITY)
        if (connection, row.subject.parts[0]) in products or (connection, *row.subject.parts[:2]) in options
    ]
    ports.journal.subjects.forget(stale)
