"""Fetch one dirty subject and check its answer: claim in, `Answered` out. Nothing is written here.

A window that a service refuses, cuts at 100 rows or answers with too much is split, and what was learned about the
service is remembered for the rest of the run. The first request's number orders the answer (R6).
"""

import asyncio
import contextlib
import hashlib
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from itertools import pairwise
from math import ceil, inf
from typing import Any

import msgspec

from octo_sync.destinations.base import Answered, Covered, Drift, KnownBookings, Payload, Seen
from octo_sync.errors import AnswerInvalid, AnswerTooLarge, NotFound, RequestRefused
from octo_sync.flows.ports import Ports, booking_dates_mean
from octo_sync.model import Claim, Subject, SubjectKind, Window
from octo_sync.octo import checking, endpoints, quirks
from octo_sync.octo.answer import Answer
from octo_sync.octo.endpoints import Call

__all__ = ["BadRecords", "Fetched", "Fetcher"]

_FORM = "2"
"""Version of the normalised form; part of every answer's hash, so that a new form lands every answer again."""

_RELEVANT = {
    "availability": ("pricing",),
    "bookings": ("pricing", "extras"),
    "products": ("pricing", "content", "extras"),
    "supplier": (),
}
_SHOWN_ALWAYS = ("pricing", "content")
"""Capabilities whose fields every record has; one without them was ignored, whatever an echo says."""


@dataclass(frozen=True, slots=True)
class BadRecords:
    """Records of one answer that did not fit, and those that did and may leave quarantine."""

    resource: str
    bad: tuple[checking.BadRecord, ...]
    good: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Fetched:
    """A claim with its checked answer, ready to land."""

    claim: Claim
    answered: Answered
    records: BadRecords
    screened: int = 0
    """`Privacy.number` before its bookings were screened: after an erasure the answer is asked for anew."""


@dataclass(slots=True)
class _Pieces:
    """The answers a subject was put together from."""

    calls: list[tuple[Window | None, Answer]] = field(default_factory=list)
    capped: bool = False
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


class Fetcher:
    """Fetches subjects through the run's clients."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._most_days: dict[tuple[str, SubjectKind], float] = {}
        """One less than the fewest days that a service refused to be asked for at once, and no fewer than it answered for."""
        self._longest: dict[tuple[str, SubjectKind], int] = {}
        """The most days that a service answered for at once."""
        self._refused: set[tuple[str, str | None, str | None]] = set()
        self._permitted: dict[tuple[str, Window], int] = {}

    def forget_refused(self) -> None:
        """Try again whether options are refused however few days are asked for."""
        self._refused.clear()

    async def fetch(self, claim: Claim, known: Covered | None) -> Fetched:
        """Ask the service for the subject.

        Raises:
            ServiceError: As `octo.client` says; `NotFound` only where it does not concern the subject's own id.
        """
        handler: Callable[[Claim, Covered | None], Awaitable[Fetched]] = {
            SubjectKind.SUPPLIER: self._supplier,
            SubjectKind.PRODUCTS: self._products,
            SubjectKind.PRODUCT: self._products,
            SubjectKind.AVAILABILITY: self._availability,
            SubjectKind.BOOKINGS: self._bookings,
            SubjectKind.BOOKING: self._bookings,
        }[claim.subject.kind]
        return await handler(claim, known)

    async def _send(self, subject: Subject, call: Call) -> Answer:
        # A budget that others use up is no failure of this subject.
        return await self._ports.clients[subject.connection].send(call, on_start=self._ports.numbers.next, patient=True)

    def _ways(self, connection: str, noun: str) -> str:
        """All that decides what an answer's bytes become: where it changes, equal bytes are landed again."""
        settings = self._ports.connection(connection)
        asked = sorted(c for c in settings.capabilities if c in _RELEVANT[noun])
        spoken = settings.languages if noun == "products" else ()
        personal = [self._ports.privacy.mode] if noun == "bookings" else []
        return json.dumps([_FORM, asked, spoken, noun in self._ports.pipeline.sync.raw, *personal])

    # -- single documents ---------------------------------------------------------------------------------------

    async def _supplier(self, claim: Claim, known: Covered | None) -> Fetched:
        answer = await self._send(claim.subject, endpoints.supplier())
        pieces = _Pieces([(None, answer)])
        if same := self._unchanged(claim, known, pieces, "supplier", None):
            return same
        checked = checking.check_supplier(answer.body)
        lines = self._lines(claim, answer, "supplier", checked, None)
        payloads = (
            [Payload("supplier", checked.ids[0], memoryview(answer.body), answer.digest.hex())] if checked.ids else []
        )
        if "supplier" not in self._ports.pipeline.sync.raw:
            payloads = []
        return self._fetched(claim, pieces, "supplier", [checked], lines, None, payloads)

    async def _products(self, claim: Claim, known: Covered | None) -> Fetched:
        """The list or one product, once per language; the first language gives names, the others texts only."""
        subject = claim.subject
        languages = self._ports.connection(subject.connection).languages
        one = subject.kind is SubjectKind.PRODUCT
        pieces = _Pieces()
        wants_content = "content" in self._ports.connection(subject.connection).capabilities
        for language in languages if wants_content else languages[:1]:
            call = (
                endpoints.product(subject.parts[0], language=language) if one else endpoints.products(language=language)
            )
            try:
                pieces.calls.append((None, await self._send(subject, call)))
            except NotFound:
                if one and not pieces.calls:
                    return self._gone(claim)
                raise
        if same := self._unchanged(claim, known, pieces, "products", None):
            return same
        checks, lines, payloads = [], [], []
        served: set[str] = set()
        for (_, answer), asked in zip(pieces.calls, languages, strict=False):
            told = (answer.headers.get("content-language") or asked).split(",")[0].strip()
            if told in served:
                continue  # the service has no text in that language and fell back to one we have
            served.add(told)
            checked = checking.check_product(answer.body) if one else checking.check_products(answer.body)
            if one:
                _require_own(subject, checked)
            checks.append(checked)
            lines += self._lines(claim, answer, "products", checked, None, language=told, first=len(served) == 1)
            if "products" not in self._ports.pipeline.sync.raw:
                continue
            payloads += [
                Payload("product", f"{key}@{told}", body, _digest(body))
                for key, body in zip(checked.ids, checked.payloads, strict=True)
            ]
        return self._fetched(claim, pieces, "products", checks, lines, None, payloads)

    def _gone(self, claim: Claim) -> Fetched:
        answered = Answered(
            subject=claim.subject,
            request_seq=self._ports.numbers.next(),
            fetched_at=self._ports.clock.now(),
            source=claim.source,
            answer_hash="",
            not_found=True,
        )
        return Fetched(claim, answered, BadRecords(str(claim.subject.kind), (), ()))

    # -- windows ------------------------------------------------------------------------------------------------

    async def _availability(self, claim: Claim, known: Covered | None) -> Fetched:
        product, option, month = claim.subject.parts
        connection = claim.subject.connection
        horizon = self._ports.availability_window(connection, product)
        window = self._ports.ask_for(month, horizon)
        if window is None:
            return self._nothing_to_ask(claim, "availability")
        pieces = await self._in_windows(
            claim.subject,
            window,
            lambda w: _with_margins(w, is_first=w.start == horizon.start),
            lambda w: endpoints.availability(product, option, w.start, w.end),
            capped=lambda _: False,  # a month of departures may well be a hundred
        )
        # Once: were it corrected meanwhile, rows and hash must be of the same one.
        pieces.time_zone = self._ports.time_zones.get((connection, product))
        if same := self._unchanged(claim, known, pieces, "availability", window):
            return same
        checks, lines = [], []
        for part, answer in pieces.calls:
            checked = checking.check_availability(answer.body, days=part)
            checks.append(checked)
            lines += self._lines(claim, answer, "availability", checked, part, time_zone=pieces.time_zone)
        payloads = []
        if "availability" in self._ports.pipeline.sync.raw:
            payloads = [
                Payload("availability", f"{product} {option} {part}", memoryview(answer.body), answer.digest.hex())
                for part, answer in pieces.calls
            ]
        return self._fetched(claim, pieces, "availability", checks, lines, window, payloads)

    async def _bookings(self, claim: Claim, known: Covered | None) -> Fetched:
        subject = claim.subject
        window = None
        if subject.kind is SubjectKind.BOOKING:
            try:
                answer = await self._send(subject, endpoints.booking(subject.parts[0]))
            except NotFound:
                return self._gone(claim)
            pieces = _Pieces([(None, answer)])
        else:
            window = self._ports.bookings_of(subject.connection, subject.parts[0])
            if window is None:
                return self._nothing_to_ask(claim, "bookings")
            pieces = await self._in_windows(
                subject,
                window,
                lambda w: [w],
                lambda w: endpoints.bookings(start=w.start, end=w.end),
                capped=lambda answer: quirks.looks_capped(_count(answer.body)),
            )
        if same := self._unchanged(claim, known, pieces, "bookings", window):
            return same
        rows: KnownBookings = {}
        if window and known:
            rows = await asyncio.to_thread(self._ports.warehouse.known_bookings, subject.connection, window)
        screened = self._ports.privacy.number
        checks = self._check_bookings(subject, pieces, rows)
        lines: list[bytes] = []
        payloads: list[Payload] = []
        dates: list[tuple[date | None, date | None]] = []
        seen: list[Seen] = []
        for (part, answer), checked in zip(pieces.calls, checks, strict=True):
            lines += self._lines(claim, answer, "bookings", checked, part)
            dates += zip(checked.travel_dates, checked.created_dates, strict=True)
            seen += [Seen(uuid, digest, answer.request_seq) for uuid, digest in checked.seen]
            if "bookings" in self._ports.pipeline.sync.raw:
                # A few records of many must not keep the whole answer in memory.
                views = [memoryview(bytes(view)) for view in checked.payloads] if checked.seen else checked.payloads
                payloads += [
                    Payload("booking", key, body, hashed.hex())
                    for key, body, hashed, is_screened in zip(
                        checked.ids, views, checked.hashes, checked.screened, strict=True
                    )
                    if is_screened.keeps_payload
                ]
        # A booking that moved between the requests for two parts is in both: the later one has it as it is.
        payloads = list({payload.key: payload for payload in payloads}.values())
        meaning = self._meaning(subject.connection, dates, window)
        fetched = self._fetched(claim, pieces, "bookings", checks, lines, window, payloads, meaning=meaning, seen=seen)
        return replace(fetched, screened=screened)

    def _check_bookings(
        self, subject: Subject, pieces: _Pieces, known: KnownBookings
    ) -> list[checking.CheckedBookings]:
        """Check the answers, without reading the records that are landed already."""
        ways = hashlib.blake2b(self._ways(subject.connection, "bookings").encode(), digest_size=8).digest()
        salt = int.from_bytes(ways, "little", signed=True)
        screen = self._ports.privacy.screen(subject.connection)
        if subject.kind is SubjectKind.BOOKING:
            own = [checking.check_booking(answer.body, salt=salt, screen=screen) for _, answer in pieces.calls]
            for checked in own:
                _require_own(subject, checked)
            return own
        checks = [
            checking.check_bookings(answer.body, known=known, salt=salt, screen=screen) for _, answer in pieces.calls
        ]
        if any(
            checked.seen and self._ignored(subject.connection, answer, "bookings", checked)
            for (_, answer), checked in zip(pieces.calls, checks, strict=True)
        ):
            # Whether a capability was ignored shows in the records as a whole, so all of them are read.
            checks = [checking.check_bookings(answer.body, salt=salt, screen=screen) for _, answer in pieces.calls]
        return checks

    def _meaning(self, connection: str, dates: Sequence[tuple[date | None, date | None]], window: Window | None) -> str:
        """What `localDate` means at this service (Q9): configured, or read off the answer, or as last read."""
        known = booking_dates_mean(self._ports.connection(connection), self._ports.journal)
        if self._ports.connection(connection).booking_date_means != "auto":
            return known
        seen = quirks.booking_dates_mean(dates, window) if window else "either"
        if seen in ("travel", "creation") and known != seen:
            self._ports.journal.set_setting("booking_date_means", seen, connection=connection)
        # What was assumed only must not stand against what another answer shows meanwhile.
        return ("creation" if known == "creation" else "either") if seen == "either" else seen

    async def _in_windows(
        self,
        subject: Subject,
        window: Window,
        ways: Callable[[Window], Sequence[Window]],
        call: Callable[[Window], Call],
        *,
        capped: Callable[[Answer], bool],
    ) -> _Pieces:
        """Ask for a window, in smaller ones where the service wants that; `ways` are the days to ask for, best first."""
        pieces, learned = _Pieces(), (subject.connection, subject.kind)
        option = (subject.connection, subject.product_id, subject.option_id)
        may_split, margins = option not in self._refused, ways(window)[0].days - window.days
        queue = _pieces_of(window, self._most_days.get(learned, inf) - margins)
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
                most = self._most_days[learned] = min(self._most_days.get(learned, inf), too_long - 1)
                queue = _pieces_of(Window(queue[0].start, queue[-1].end), most - margins) if queue else []
                too_long = None
            if capped(answer):
                smaller = quirks.shrink(part)
                if smaller:
                    queue[:0] = smaller
                    continue
                pieces.capped = True
            pieces.calls.append((part, answer))
        return pieces

    async def _first_permitted(self, subject: Subject, part: Window, ways: Sequence[Call]) -> Answer:
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

    def _unchanged(
        self, claim: Claim, known: Covered | None, pieces: _Pieces, noun: str, window: Window | None
    ) -> Fetched | None:
        """The claim with an answer equal to the last landed one, or None: then the bytes must be read."""
        if known is None or known.answer_hash is None or known.window != window:
            return None
        answer_hash = pieces.hash(self._ways(claim.subject.connection, noun))
        if known.answer_hash != answer_hash:
            return None
        answered = Answered(
            subject=claim.subject,
            request_seq=pieces.request_seq,
            fetched_at=self._ports.clock.now(),
            source=claim.source,
            answer_hash=answer_hash,
            noun=noun,
            window=window,
            unchanged=True,
        )
        return Fetched(claim, answered, BadRecords(noun, (), ()))

    def _nothing_to_ask(self, claim: Claim, noun: str) -> Fetched:
        """The month has moved out of the horizon since it was marked: it is clean without a question."""
        answered = Answered(
            subject=claim.subject,
            request_seq=self._ports.numbers.next(),
            fetched_at=self._ports.clock.now(),
            source=claim.source,
            answer_hash="",
            unchanged=True,
        )
        return Fetched(claim, answered, BadRecords(noun, (), ()))

    # -- putting together ---------------------------------------------------------------------------------------

    def _lines(
        self,
        claim: Claim,
        answer: Answer,
        noun: str,
        checked: checking.Checked,
        window: Window | None,
        *,
        time_zone: str | None = None,
        language: str | None = None,
        first: bool = True,
    ) -> list[bytes]:
        """Spool lines: what is known about the answer, and its checked records."""
        subject = claim.subject
        ignored = self._ignored(subject.connection, answer, noun, checked)
        asked = self._ports.connection(subject.connection).capabilities
        head: dict[str, Any] = {
            "connection_id": subject.connection,
            "product_id": subject.parts[0] if noun == "availability" else None,
            "option_id": subject.parts[1] if noun == "availability" else None,
            "time_zone": time_zone,
            "window_start": window.start if window else None,
            "window_end": window.end if window else None,
            "resource": str(subject.kind),
            "subject_key": subject.key,
            "request_seq": answer.request_seq,
            "verified_at_utc": self._ports.clock.now(),
            "source": str(claim.source),
            "language": language,
            "is_primary": first,
            **{f"has_{c}": c in asked and c not in ignored for c in ("pricing", "content", "extras")},
        }
        opening = msgspec.json.encode(head)[:-1]
        # Without a capability a row keeps old values (R10), so its record's digest would not say what it holds.
        digests = checked.digests if isinstance(checked, checking.CheckedBookings) and not ignored else ()
        contacts = [s.contact_key for s in checked.screened] if isinstance(checked, checking.CheckedBookings) else ()
        lines = []
        for i, records in enumerate(checked.records):
            beside = b""
            for name, values in (("payload_digest", digests), ("contact_key", contacts)):
                if some := values[i * checking.LINE : (i + 1) * checking.LINE]:
                    beside += b',"%b":%b' % (name.encode(), msgspec.json.encode(some))
            lines.append(b'%b%b,"records":%b}' % (opening, beside, records))
        return lines

    def _ignored(self, connection: str, answer: Answer, noun: str, checked: checking.Checked) -> set[str]:
        asked = [c for c in self._ports.connection(connection).capabilities if c in _RELEVANT[noun]]
        ignored = set(quirks.ignored_capabilities(asked, answer)) if asked else set()
        if checked.ids:
            ignored |= {c for c in asked if c in _SHOWN_ALWAYS and c not in checked.capabilities}
        return ignored

    def _fetched(
        self,
        claim: Claim,
        pieces: _Pieces,
        noun: str,
        checks: Sequence[checking.Checked],
        lines: Sequence[bytes],
        window: Window | None,
        payloads: Sequence[Payload],
        *,
        meaning: str = "travel",
        seen: Sequence[Seen] = (),
    ) -> Fetched:
        subject = claim.subject
        bad = tuple(b for checked in checks for b in checked.bad)
        missing: set[str] = set()
        drift: list[Drift] = []
        for (_, answer), checked in zip(pieces.calls, checks, strict=False):
            missing |= self._ignored(subject.connection, answer, noun, checked)
        if missing:
            drift += [Drift(subject.connection, noun, "capability", name) for name in sorted(missing)]
        if pieces.capped:
            drift.append(Drift(subject.connection, noun, "count", "a list of exactly 100 records that cannot be split"))
        if meaning == "creation":
            drift.append(Drift(subject.connection, noun, "meaning", "creation"))
        unknown = {name for checked in checks for name in checked.unknown}
        drift += [Drift(subject.connection, noun, "field", name) for name in sorted(unknown)]
        answered = Answered(
            subject=subject,
            request_seq=pieces.request_seq,
            fetched_at=self._ports.clock.now(),
            source=claim.source,
            answer_hash=pieces.hash(self._ways(subject.connection, noun)),
            noun=noun,
            lines=tuple(lines),
            window=window,
            row_count=len(seen)
            + (
                sum(len(checked.ids) for checked in checks[:1] if noun == "products")
                or sum(len(checked.ids) for checked in checks)
            ),
            complete=not bad and not pieces.capped,
            missing_capabilities=tuple(sorted(missing)),
            date_meaning=meaning,
            payloads=tuple(payloads),
            drift=tuple(drift),
            seen=tuple(seen),
        )
        good = (*(key for checked in checks for key in checked.ids), *(booking.uuid for booking in seen))
        return Fetched(claim, answered, BadRecords(noun, bad, good))


def _with_margins(window: Window, *, is_first: bool) -> list[Window]:
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


def _require_own(subject: Subject, checked: checking.Checked) -> None:
    """An answer about another id says nothing about the one that was asked for; landed, it would count as a look at it.

    Raises:
        AnswerInvalid: The answer names another id.
    """
    asked = subject.parts[0].casefold()
    # A record that could not be read is quarantined by its id; where even that is unreadable, by its place.
    named = {*checked.ids, *(bad.key for bad in checked.bad)} - {"#0"}
    if any(name.casefold() != asked for name in named):
        raise AnswerInvalid(
            f'The {subject.kind} {subject.parts[0]} at "{subject.connection}" was answered with another id; nothing of it '
            f"was used. Tell whoever runs the service."
        )


def _digest(body: memoryview) -> str:
    return hashlib.blake2b(body, digest_size=16).hexdigest()


_raws = msgspec.json.Decoder(list[msgspec.Raw])


def _count(body: bytes) -> int:
    """Records in a list of bookings, exact where it matters: at the number services cut at.

    The key stands once in each record, and cannot stand in a text, where its quotes would be escaped.
    """
    if body.count(b'"unitItems"') != quirks.CAP:
        return 0
    try:
        return len(_raws.decode(body))
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return 0
