"""Erase: what was asked to be forgotten leaves every table, the journal and the copies, and their bytes leave the files.

A request is in the journal, as hashes, before anything is deleted (`Journal.erasures.request`). The owner of the warehouse
carries it out: at the start of each command that writes, and `serve` within seconds. Each step may be done twice, and what
tells where to look goes last, so that a kill at any moment is made up for by whoever comes next.

A change of `pii` takes the same road: what is there is reduced to what the new rule keeps.
"""

import asyncio
import dataclasses
import logging
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any

from octo_sync.destinations.erasing import BookingKey, BookingScrub, ContactRow, ItemScrub, Scrubber
from octo_sync.errors import OctoSyncError, WriterFenced
from octo_sync.flows.contacts import REFERENCES, Privacy
from octo_sync.flows.naming import normal_text
from octo_sync.flows.ports import Ports
from octo_sync.flows.privacy.find import Found, find
from octo_sync.flows.privacy.rule import applied_rule, note_rule, rule
from octo_sync.flows.privacy.search import forms_of, is_own, search, still_holding
from octo_sync.flows.publish import publish_everywhere
from octo_sync.flows.reconcile.tables import mirror_reconciliations
from octo_sync.journal import GONE, Erasure
from octo_sync.pipeline import Pipeline

log = logging.getLogger("octo_sync")

_STRING = re.compile(rb'"([^"]*)"')
_MOST_TEXTS = 64
"""Texts that are looked for one by one; of an agency's thousand guests the others are looked for as whole values."""
_MOST_SEARCHED = 12
"""Texts that are looked for in every file at the end; each costs a look or two at all payloads for others who have it too."""
_AGAIN, _AGAIN_AT_MOST = 60.0, 900.0
"""Seconds to the next attempt at what could not be finished, doubled each time up to the second."""
_JOURNAL_IS_READ = "Another process reads the journal, so that its write-ahead log could not be emptied."
_SEARCHED = "files searched"
_ANY_MART = "select 1 from pg_class where relnamespace = to_regnamespace('marts') limit 1"
_LOGS = (("ops.quarantine", "reason"), ("ops.runs", "error"))
"""What repeats the journal's messages in the warehouse, for SQL; a message may quote what a service said."""


def is_due(ports: Ports) -> bool:
    """Whether anything was asked for and is not done, or the pipeline's `pii` has changed."""
    return not rule(ports.pipeline, ports.journal).is_settled


def erase(ports: Ports) -> list[Erasure]:
    """Carry out all that is due, and the pipeline's `pii` where it has changed; how it went. Blocking.

    Raises:
        WriterFenced: A newer writer took over; it will carry on.
        WarehouseError, JournalError: A file failed. What was asked for stays asked for.
    """
    mode, former = ports.pipeline.pii, applied_rule(ports.journal)
    asked = [erasure for erasure in ports.journal.erasures.rows() if erasure.done_at is None]
    if former == mode and not asked:
        return []
    with ports.privacy.lock:
        if former != mode:
            _reduce(ports)
        carried = [_taken_up(ports, one) if one.carried else _carry_out(ports, one) for one in asked]
    kept_back = _replace_copies(ports, rewrites_core=any(one.erasure.rewrites_core for one in carried))
    if former != mode and kept_back is None:
        note_rule(ports.journal, mode)
        log.warning("action=pii run=%s before=%s now=%s", ports.run_id, former, mode)
    return [_finish(ports, one, kept_back) for one in carried]


class Eraser:
    """Carries out what is asked for while a process keeps the copy."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._tried: list[str] = []
        self._next_at, self._pause = -inf, _AGAIN

    async def when_due(self, alone: Callable[[], Awaitable[None]]) -> None:
        """Carry out what is due; what could not be finished is tried again after a minute, then more and more seldom.

        Args:
            alone: Awaited first: no copy made before may come to readers after.

        Raises:
            WriterFenced: A newer writer took over.
        """
        asked, time = await asyncio.to_thread(self._ports.journal.erasures.open_ids), asyncio.get_running_loop().time
        if not asked or (asked == self._tried and time() < self._next_at):
            return
        self._pause = _AGAIN if asked != self._tried else min(2 * self._pause, _AGAIN_AT_MOST)
        self._tried = asked
        await alone()
        try:
            await asyncio.to_thread(erase, self._ports)
        except WriterFenced:
            raise
        except OctoSyncError as error:
            log.warning("action=erase_failed run=%s error=%s", self._ports.run_id, error)
        # From its end: an attempt that takes long must leave as much time for everything else.
        self._next_at = time() + self._pause


# -- a change of the rule ---------------------------------------------------------------------------------------------


def _reduce(ports: Ports) -> None:
    """Bring what is there down to what the pipeline's rule keeps; what it would keep more comes with the next answers."""
    mode, privacy = ports.pipeline.pii, ports.privacy
    if mode == "keep":
        return
    if mode == "drop":
        with ports.warehouse.scrubbing(ports.fence_of()) as scrubber:
            scrubber.forget_keys()
    with ports.warehouse.scrubbing(ports.fence_of()) as scrubber:
        if mode == "drop":
            scrubber.drop_contacts()
        else:
            kept = [row for row in scrubber.contacts() if row.erased_at_utc is None]
            rows = [dataclasses.replace(row, **privacy.reduced(row)) for row in kept]
            scrubber.replace_contacts(rows, ports.clock.now())
        scrubber.drop_payloads(None)
    ports.warehouse.shed(core=False)


# -- one erasure ------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Carried:
    """An erasure that was carried out as far as the project's own databases go."""

    erasure: Erasure
    texts: list[str]
    """What told who it was; only in memory, so that an attempt after one that was cut off may have none."""
    is_repeated: bool
    """Whether an earlier attempt had come so far that it may have deleted what told who it was."""
    counts: dict[str, int] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)


def _carry_out(ports: Ports, asked: Erasure) -> _Carried:
    warehouse, journal = ports.warehouse, ports.journal
    is_repeated = asked.contacts is not None
    ports.privacy.take(asked)
    with warehouse.scrubbing(ports.fence_of()) as scrubber:
        found = find(scrubber, ports.privacy, asked)
        bookings, items, removed, repeated = _blanked(scrubber, ports.privacy, found)
    theirs = {uuid for _, uuid in found.bookings}
    texts = [normal_text(text) for text in found.texts]

    def in_text(text: str) -> bool:
        said = normal_text(text)
        return any(one in said for one in texts) or ports.privacy.mentions(text)

    repeated = (
        repeated
        or journal.reconciliations.repeats(theirs, in_text)
        or journal.erasures.repeats_in_texts(in_text)
        or any(_naming(ports, table, column, in_text) for table, column in _LOGS)
    )
    contacts = tuple(sorted(found.contacts))
    keyed = {(*b, ports.privacy.reference_key(b, text, key=asked.key)) for b, text in removed} | set(asked.references)
    rewrites = asked.rewrites_core or repeated
    asked = dataclasses.replace(asked, contacts=contacts, references=tuple(sorted(keyed)), rewrites_core=rewrites)
    # Durable first: whose rows are deleted below can be found by nobody again.
    journal.erasures.note(asked)
    ports.privacy.take(asked)
    done = _Carried(asked, [*found.texts, *found.notes], is_repeated)
    with warehouse.scrubbing(ports.fence_of()) as scrubber:
        done.counts["core.bookings"] = scrubber.scrub_bookings(bookings, items)
    done.counts["journal: deliveries"] = journal.inbox.blank(_in_body(found))
    done.counts["journal: messages"] = journal.erasures.blank_texts(in_text)
    done.counts["journal: differences"] = journal.reconciliations.blank(theirs, in_text)
    mirror_reconciliations(ports)
    for table, column in _LOGS:
        # By their own rows, not by the journal's: it forgets quarantine and runs sooner, and only its last runs are copied.
        warehouse.write_log(table, _naming(ports, table, column, in_text))
    if not journal.compact():
        done.left.append(_JOURNAL_IS_READ)
    now = ports.clock.now()
    with warehouse.scrubbing(ports.fence_of()) as scrubber:
        marks = [
            ContactRow(connection_id=c, booking_uuid=b, unit_item_uuid=i, erased_at_utc=now)
            for c, b, i in sorted(found.contacts)
        ]
        scrubber.replace_contacts([*marks, *found.without_notes], now)
        done.counts["private.booking_contacts"] = found.live
        done.counts["raw.records"] = scrubber.drop_payloads(found.bookings, found.payloads)
    warehouse.shed(core=asked.rewrites_core)
    # What is left may fail for days; nothing that lands from now on holds them, so that none of this is done again.
    done.erasure = dataclasses.replace(asked, carried=True, counts=done.counts)
    journal.erasures.note(done.erasure)
    log.info("action=erase run=%s erasure=%s bookings=%d", ports.run_id, asked.id, len(found.bookings))
    return done


def _taken_up(ports: Ports, asked: Erasure) -> _Carried:
    """One whose rows are gone already, with what is left of it but for the copies."""
    done = _Carried(asked, [], is_repeated=True, counts=dict(asked.counts))
    is_unknown = _SEARCHED not in asked.counts  # cut off before it was written down
    if (is_unknown or _JOURNAL_IS_READ in asked.left) and not ports.journal.compact():
        done.left.append(_JOURNAL_IS_READ)
    return done


def _naming(ports: Ports, table: str, column: str, is_theirs: Callable[[str], bool]) -> list[dict[str, Any]]:
    """The rows of a log whose text names a person, as they are to be."""
    found = ports.warehouse.query(f"select * from {table} where {column} is not null")  # noqa: S608 - `_LOGS`
    return [row | {column: GONE} for row in found.records() if is_theirs(row[column])]


def _in_body(found: Found) -> Callable[[bytes], bool]:
    """Whether a delivery's body names one of the bookings, or a person."""
    strings = {uuid.lower().encode() for _, uuid in found.bookings}
    strings |= {form for text in found.texts for form in forms_of(text)}
    some = sorted(strings)[:_MOST_TEXTS]

    def look(body: bytes) -> bool:
        body = body.lower()
        return any(one in body for one in some) or not strings.isdisjoint(_STRING.findall(body))

    return look


def _blanked(
    scrubber: Scrubber, privacy: Privacy, found: Found
) -> tuple[list[BookingScrub], list[ItemScrub], list[tuple[BookingKey, str]], bool]:
    """The rows of `core` as they are to be, the references that go, and whether any text does, so that its bytes must go too.

    A cancellation's reason on their bookings always goes, because it may say anything of them in any words, so that whether
    it does is not asked.
    """
    own, told, removed = found.own, set(found.bookings), list[tuple[BookingKey, str]]()

    def without(row: BookingScrub | ItemScrub) -> dict[str, Any]:
        """The references of a row that go."""
        booking = row.connection_id, row.booking_uuid
        marks = found.marks if booking in own else ()
        gone = [name for name in REFERENCES if privacy.repeats(booking, getattr(row, name), marks)]
        removed.extend((booking, getattr(row, name)) for name in gone)
        return dict.fromkeys(gone)

    keys = sorted(own | told | found.referring)
    bookings, repeated = [], False
    items = [dataclasses.replace(item, **gone) for item in scrubber.items(keys) if (gone := without(item))]
    of_items = {booking for booking, _ in removed}
    for row in scrubber.bookings(keys):
        booking, reason = (row.connection_id, row.booking_uuid), row.cancellation_reason
        kept = None if booking in told or privacy.mentions(reason) else reason
        new = dataclasses.replace(row, cancellation_reason=kept, **without(row))
        repeated = repeated or new != row
        if booking in told or new != row or booking in of_items:
            bookings.append(dataclasses.replace(new, loses_key=(*booking, "") in found.contacts))
    return bookings, items, removed, repeated or bool(items)


# -- the copies -------------------------------------------------------------------------------------------------------


def _replace_copies(ports: Ports, *, rewrites_core: bool) -> str | None:
    """Publish without them, where anything is published, and have their bytes go from there too; why not, or None."""
    settings, destination = ports.pipeline.publish, ports.pipeline.destination
    # Gone at once: a check that fails below must not keep it.
    settings.contacts_path.unlink(missing_ok=True)
    if isinstance(destination, Path):
        name, is_published = settings.path.name, settings.path.exists()
    else:
        name, is_published = "What readers have", bool(ports.warehouse.query(_ANY_MART).rows)
    if not is_published:
        return None
    published = publish_everywhere(ports)
    if published.size is None:
        names = ", ".join(failed.check.name for failed in published.failed)
        return (
            f"{name} was not replaced, because checks failed ({names}); it holds no name, but keyed hashes "
            "of the erased. Mend what octo-sync check --next shows."
        )
    if rewrites_core:
        ports.warehouse.shed_published()
        if ports.beside is not None:
            ports.beside.shed()
    return None


def _known_to_hold(pipeline: Pipeline, carried: _Carried) -> list[str]:
    """Files of others that an earlier attempt saw it in, where this one knows no text to look for any more."""
    known = () if carried.texts else carried.erasure.holding
    paths = [pipeline.directory / path for path in known]
    there = [path for path in paths if path.exists() and not is_own(pipeline, path)]
    return [str(path.relative_to(pipeline.directory)) for path in there]


def _finish(ports: Ports, carried: _Carried, kept_back: str | None) -> Erasure:
    """Look for what is left in any file of the project, and write down how it went.

    Files are looked at in any case: into a backup nobody can see, whether anything was found to be erased or not.
    """
    left = [*carried.left, *([kept_back] if kept_back else [])]
    is_done = not left
    directory = ports.pipeline.directory
    alone, within = list[str](), list[str]()
    with ports.warehouse.scrubbing(ports.fence_of()) as scrubber:
        for text in sorted(carried.texts, key=lambda text: "@" not in text)[:_MOST_SEARCHED]:
            if not scrubber.repeats(text):
                alone.append(text)
            elif not scrubber.repeats(text, whole=True):
                # Our own files hold it inside of somebody else's. What others have as theirs, such as a common name, is
                # rightly anywhere.
                within.append(text)
    searched = search(directory, *([form for text in texts for form in forms_of(text)] for texts in (alone, within)))
    beside = [path for path in searched.beside if not is_own(ports.pipeline, directory / path)]
    holding = {*searched.holding, *beside, *_known_to_hold(ports.pipeline, carried)}
    left += still_holding(holding)
    left += [
        f"{path} may still hold it: into a compressed file no search can see. Delete it when it is not needed."
        for path in searched.closed
        if path not in holding and not is_own(ports.pipeline, directory / path)
    ]
    if carried.is_repeated and not carried.texts and _SEARCHED not in carried.erasure.counts:
        left.append(
            "An earlier attempt was cut off after the rows were gone, and what told who it was with them: other files "
            "could not be searched for it. Look through exports and notes of your own."
        )
    if not searched.complete:
        left.append(f"Only {searched.files} files of {directory} were searched; there are too many.")
    erasure = dataclasses.replace(
        carried.erasure,
        counts=carried.counts | {_SEARCHED: searched.files},
        left=tuple(left),
        holding=tuple(sorted(holding)),
        done_at=ports.clock.now() if is_done else None,
    )
    ports.journal.erasures.note(erasure)
    return erasure
