"""Fetch one dirty subject and check its answer: claim in, `Answered` out. Nothing is written here.

What was learned about a service is remembered for the rest of the run (`windows`). The first request's number orders the
answer (R6). Longer than most modules, so that each kind's way from request to checked answer can be read in one place.
"""

import hashlib
import json
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from typing import Any, NamedTuple

import msgspec

from octo_sync.destinations.base import Answered, Covered, Drift, KnownBookings, Payload, Seen, Shown
from octo_sync.errors import AnswerInvalid, NotFound
from octo_sync.flows.ports import Ports, booking_dates_mean
from octo_sync.flows.sync.windows import Pieces, Windows, with_margins
from octo_sync.model import Claim, Source, Subject, SubjectKind, Window
from octo_sync.octo import checking, endpoints, quirks
from octo_sync.octo.answer import Answer
from octo_sync.octo.endpoints import Call
from octo_sync.octo.reading import BadRecord, Raw, raws
from octo_sync.tables import form

_FORM = "4"
"""Version of what the check makes of a record. It is part of every answer's hash, and so is the tables' form: after a change of
either every answer lands again."""

Records = Mapping[int, Sequence[Raw]]
"""Those of lists that were counted, by the number of the request."""

_RELEVANT = {
    "availability": ("pricing",),
    "bookings": ("pricing", "extras"),
    "products": ("pricing", "content", "extras"),
    "supplier": (),
}
_SHOWN_ALWAYS = ("pricing", "content")
"""Capabilities whose fields every record has; one without them was ignored, whatever an echo says."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """A claim with its checked answer, ready to land."""

    claim: Claim
    answered: Answered
    bad: tuple[BadRecord, ...] = ()
    """Records of the answer that did not fit."""
    good: tuple[str, ...] = ()
    """Those that did, and may leave quarantine."""
    screened: int = 0
    """`Privacy.number` before its bookings were screened: after an erasure the answer is asked for anew."""
    began: int = 0
    """The number of the last request before it was asked for; see `Order`."""
    unread: int = 0
    """Bytes that are still to be read."""
    read: "Callable[[], Fetched] | None" = None
    """Reads what came, where that needs what is landed: to be called by who lands it, nothing else landing meanwhile."""

    @property
    def size(self) -> int:
        """Bytes it holds in memory until it is landed."""
        return self.answered.size + self.unread

    @property
    def is_urgent(self) -> bool:
        """Whether others wait for it, or somebody asked for it."""
        return self.claim.subject.kind is SubjectKind.PRODUCTS or self.claim.source is not Source.SCHEDULE


class _Read(NamedTuple):
    """An answer and what the check makes of it; of a product's texts, in which language."""

    part: Window | None
    answer: Answer
    checked: checking.Checked
    language: str | None = None


class Fetcher:
    """Fetches subjects through the run's clients."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._windows = Windows(self._send, ports.most_days)
        self._ways = cache(self._ways_of)
        self.forget_refused = self._windows.forget_refused

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

    async def _send(self, subject: Subject, call: Call[Any]) -> Answer:
        # A budget that others use up is no failure of this subject.
        return await self._ports.clients[subject.connection].send(call, on_start=self._ports.numbers.next, patient=True)

    def _ways_of(self, connection: str, noun: str) -> str:
        """All that decides what an answer's bytes become: where it changes, equal bytes are landed again."""
        settings = self._ports.connection(connection)
        asked = sorted(c for c in settings.capabilities if c in _RELEVANT[noun])
        spoken = settings.languages if noun == "products" else ()
        personal = [self._ports.privacy.mode] if noun == "bookings" else []
        return json.dumps([_FORM, form(noun), asked, spoken, noun in self._ports.pipeline.sync.raw, *personal])

    # -- single documents ---------------------------------------------------------------------------------------

    async def _supplier(self, claim: Claim, known: Covered | None) -> Fetched:
        answer = await self._send(claim.subject, endpoints.supplier())
        pieces = Pieces([(None, answer)])
        if same := self._unchanged(claim, known, pieces, "supplier", None):
            return same
        checked = checking.check_supplier(answer.body)
        payloads = (Payload("supplier", one, memoryview(answer.body), answer.digest.hex()) for one in checked.ids[:1])
        return self._fetched(claim, pieces, "supplier", [_Read(None, answer, checked)], payloads=payloads)

    async def _products(self, claim: Claim, known: Covered | None) -> Fetched:
        """The list or one product, once per language; the first language gives names, the others texts only."""
        subject = claim.subject
        languages = self._ports.connection(subject.connection).languages
        one = subject.kind is SubjectKind.PRODUCT
        pieces = Pieces()
        wants_content = "content" in self._ports.connection(subject.connection).capabilities
        for language in languages if wants_content else languages[:1]:
            call = (
                endpoints.product(subject.parts[0], language=language) if one else endpoints.products(language=language)
            )
            try:
                pieces.calls.append((None, await self._send(subject, call)))
            except NotFound:
                if one and not pieces.calls:
                    return self._not_there(claim, "products")
                raise
        pieces.capped = any(
            quirks.is_continued(answer.headers) or (not one and quirks.looks_capped(len(_uuids(answer.body))))
            for _, answer in pieces.calls
        )
        if same := self._unchanged(claim, known, pieces, "products", None):
            return same
        reads, checks = list[_Read](), []
        for (_, answer), asked in zip(pieces.calls, languages, strict=False):
            told = (answer.headers.get("content-language") or asked).split(",")[0].strip()
            if any(told == read.language for read in reads):
                continue  # the service has no text in that language and fell back to one we have
            checked = checking.check_products(answer.body, single=one)
            if one:
                _require_own(subject, checked)
            checks.append(checked)
            reads.append(_Read(None, answer, checked, told))
        payloads = (
            Payload("product", f"{key}@{read.language}", body, checking.digest_of(body).hex())
            for read, checked in zip(reads, checks, strict=True)
            for key, body in zip(checked.ids, checked.payloads, strict=True)
        )
        return self._fetched(claim, pieces, "products", reads, payloads=payloads)

    # -- windows ------------------------------------------------------------------------------------------------

    async def _availability(self, claim: Claim, known: Covered | None) -> Fetched:
        product, option, month = claim.subject.parts
        connection = claim.subject.connection
        horizon = self._ports.availability_window(connection, product)
        window = self._ports.ask_for(month, horizon)
        if window is None:
            return self._without_rows(claim, unchanged=True)
        pieces = await self._windows.ask(
            claim.subject,
            window,
            lambda w: with_margins(w, is_first=w.start == horizon.start),
            lambda w: endpoints.availability(product, option, w.start, w.end),
            count=lambda _: 0,  # a month of departures may well be a hundred
            shown=lambda _: (),
            dated=lambda answer: _days(answer.body),
        )
        # Once: were it corrected meanwhile, rows and hash must be of the same one.
        pieces.time_zone = self._ports.time_zones.get((connection, product))
        if same := self._unchanged(claim, known, pieces, "availability", window):
            return same
        reads = [_Read(part, a, checking.check_availability(a.body, days=part)) for part, a in pieces.calls]
        payloads = (
            Payload("availability", f"{product} {option} {part}", memoryview(answer.body), answer.digest.hex())
            for part, answer in pieces.calls
        )
        return self._fetched(claim, pieces, "availability", reads, window, payloads=payloads)

    async def _bookings(self, claim: Claim, known: Covered | None) -> Fetched:
        subject = claim.subject
        window = None
        records: dict[int, Sequence[Raw]] = {}

        def count(own: Pieces) -> int:
            if known and self._is_landed(claim, known, own, "bookings"):
                return known.row_count
            ((_, answer),) = own.calls
            with suppress(AnswerInvalid):  # whoever reads it says so
                records[answer.request_seq] = raws(answer.body)
            return len(records.get(answer.request_seq, ()))

        if subject.kind is SubjectKind.BOOKING:
            try:
                answer = await self._send(subject, endpoints.booking(subject.parts[0]))
            except NotFound:
                return self._not_there(claim, "bookings")
            pieces = Pieces([(None, answer)])
        else:
            window = self._ports.bookings_of(subject.connection, subject.parts[0])
            if window is None:
                return self._without_rows(claim, unchanged=True)
            pieces = await self._windows.ask(
                subject,
                window,
                lambda w: [w],
                lambda w: endpoints.bookings(start=w.start, end=w.end),
                count=count,
                shown=lambda answer: _uuids(answer.body),
                dated=lambda _: {},
            )
        if same := self._unchanged(claim, known, pieces, "bookings", window):
            return same
        if window is None or known is None:
            return self._read_bookings(claim, pieces, window, records, {})
        days = window

        def read() -> Fetched:
            landed = self._ports.warehouse.known_bookings(subject.connection, days)
            return self._read_bookings(claim, pieces, days, records, landed)

        later = self._without_rows(claim, pieces.request_seq, noun="bookings", window=window)
        return replace(later, read=read, unread=sum(len(answer.body) for _, answer in pieces.calls))

    def _read_bookings(
        self, claim: Claim, pieces: Pieces, window: Window | None, records: Records, rows: KnownBookings
    ) -> Fetched:
        """The checked answer; records that are in `rows` are not read again."""
        subject = claim.subject
        screened = self._ports.privacy.number
        checks = self._check_bookings(subject, pieces, records, rows)
        reads = [_Read(*piece, checked) for piece, checked in zip(pieces.calls, checks, strict=True)]
        seen = [Seen(uuid, r.answer.request_seq) for r, c in zip(reads, checks, strict=True) for uuid, _ in c.seen]
        meaning = self._meaning(subject.connection, [d for checked in checks for d in checked.dates], window)
        fetched = self._fetched(
            claim, pieces, "bookings", reads, window, payloads=_payloads(checks), meaning=meaning, seen=seen
        )
        if subject.kind is SubjectKind.BOOKING and checks[0].ids and checks[0].ids != subject.parts:
            # Without a hash: an equal answer would be taken for one that shows the booking as it was asked for.
            fetched = replace(fetched, answered=replace(fetched.answered, respelled=True, answer_hash=""))
        return replace(fetched, screened=screened)

    def _check_bookings(
        self, subject: Subject, pieces: Pieces, records: Records, known: KnownBookings
    ) -> list[checking.Checked]:
        """Check the answers, without reading the records that are landed already."""
        ways = hashlib.blake2b(self._ways(subject.connection, "bookings").encode(), digest_size=8).digest()
        salt = int.from_bytes(ways, "little", signed=True)
        screen = self._ports.privacy.screen(subject.connection)

        def check(answer: Answer, **more: Any) -> checking.Checked:  # noqa: ANN401 - of `check_bookings`
            listed = records.get(answer.request_seq, ())
            return checking.check_bookings(answer.body, raws=listed, salt=salt, screen=screen, **more)

        if subject.kind is SubjectKind.BOOKING:
            own = [check(answer, single=True) for _, answer in pieces.calls]
            for checked in own:
                _require_own(subject, checked)
            return own
        checks = [check(answer, known=known) for _, answer in pieces.calls]
        if any(
            checked.seen and self._ignored(subject.connection, answer, "bookings", checked)
            for (_, answer), checked in zip(pieces.calls, checks, strict=True)
        ):
            # Whether a capability was ignored shows in the records as a whole, so all of them are read.
            checks = [check(answer) for _, answer in pieces.calls]
        return checks

    def _meaning(self, connection: str, dates: Sequence[tuple[date | None, date | None]], window: Window | None) -> str:
        """What `localDate` means at this service (Q9): configured, or read off the answer, or as last read."""
        known = booking_dates_mean(self._ports.connection(connection), self._ports.journal)
        if self._ports.connection(connection).booking_date_means != "auto":
            return known
        seen = quirks.booking_dates_mean(dates, window) if window else "either"
        if seen in ("travel", "creation") and known != seen:
            self._ports.journal.settings.set("booking_date_means", seen, connection=connection)
        # What was assumed only must not stand against what another answer shows meanwhile.
        return ("creation" if known == "creation" else "either") if seen == "either" else seen

    def _unchanged(
        self, claim: Claim, known: Covered | None, pieces: Pieces, noun: str, window: Window | None
    ) -> Fetched | None:
        """The claim with an answer equal to the last landed one, or None: then the bytes must be read."""
        if known is None or known.window != window or not self._is_landed(claim, known, pieces, noun):
            return None
        return self._without_rows(
            claim, pieces.request_seq, answer_hash=known.answer_hash, noun=noun, window=window, unchanged=True
        )

    def _is_landed(self, claim: Claim, known: Covered, pieces: Pieces, noun: str) -> bool:
        """Whether the answer is, byte for byte, the one that landed last."""
        ways = self._ways(claim.subject.connection, noun)
        return known.answer_hash is not None and known.answer_hash == pieces.hash(ways)

    def _without_rows(self, claim: Claim, request_seq: int | None = None, **known: Any) -> Fetched:  # noqa: ANN401 - of `Answered`
        """The claim where nothing is to be read: not there, unchanged, or out of the horizon since it was marked."""
        answered = Answered(
            subject=claim.subject,
            request_seq=self._ports.numbers.next() if request_seq is None else request_seq,
            fetched_at=self._ports.clock.now(),
            source=claim.source,
            **{"answer_hash": "", **known},
        )
        return Fetched(claim, answered)

    def _not_there(self, claim: Claim, noun: str) -> Fetched:
        """The claim whose own id the service does not know."""
        number = self._ports.numbers.next()
        return self._without_rows(
            claim, number, noun=noun, not_found=True, shown=(Shown((number,), claim.subject.parts),)
        )

    # -- putting together ---------------------------------------------------------------------------------------

    def _lines(
        self, claim: Claim, noun: str, read: _Read, ignored: Collection[str], time_zone: str | None, *, first: bool
    ) -> list[bytes]:
        """Spool lines: what is known about the answer, and its checked records."""
        subject, window, checked = claim.subject, read.part, read.checked
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
            "request_seq": read.answer.request_seq,
            "verified_at_utc": self._ports.clock.now(),
            "source": str(claim.source),
            "language": read.language,
            "is_primary": first,
            **{f"has_{c}": c in asked and c not in ignored for c in ("pricing", "content", "extras")},
        }
        opening = msgspec.json.encode(head)[:-1]
        # Without a capability a row keeps old values (R10), so its record's digest would not say what it holds.
        digests = () if ignored else checked.digests
        contacts = [s.contact_key for s in checked.screened]
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
        pieces: Pieces,
        noun: str,
        reads: Sequence[_Read],
        window: Window | None = None,
        *,
        payloads: Iterable[Payload],
        meaning: str = "travel",
        seen: Sequence[Seen] = (),
    ) -> Fetched:
        subject = claim.subject
        checks = [read.checked for read in reads]
        bad = tuple(b for checked in checks for b in checked.bad)
        lines: list[bytes] = []
        missing: set[str] = set()
        for number, read in enumerate(reads):
            ignored = self._ignored(subject.connection, read.answer, noun, read.checked)
            missing |= ignored
            # Products in further languages bring texts alone.
            first = noun != "products" or number == 0
            lines += self._lines(claim, noun, read, ignored, pieces.time_zone, first=first)
        drift = [Drift(subject.connection, noun, "capability", name) for name in sorted(missing)]
        if pieces.capped:
            cut = "a list that may have been cut, and cannot be asked for in smaller parts"
            drift.append(Drift(subject.connection, noun, "count", cut))
        if meaning in {"creation", "unknown"}:
            drift.append(Drift(subject.connection, noun, "meaning", meaning))
        unknown = {name for checked in checks for name in checked.unknown}
        drift += [Drift(subject.connection, noun, "field", name) for name in sorted(unknown)]
        counts = [len(checked.ids) for checked in checks]
        answered = Answered(
            subject=subject,
            request_seq=pieces.request_seq,
            fetched_at=self._ports.clock.now(),
            source=claim.source,
            answer_hash=pieces.hash(self._ways(subject.connection, noun)),
            noun=noun,
            lines=tuple(lines),
            window=window,
            row_count=len(seen) + ((counts[0] if noun == "products" else 0) or sum(counts)),
            # Whose days are not those that were asked for may show some bookings and not others.
            complete=not bad and not pieces.capped and meaning != "unknown",
            missing_capabilities=tuple(sorted(missing)),
            date_meaning=meaning,
            payloads=tuple(payloads) if noun in self._ports.pipeline.sync.raw else (),
            drift=tuple(drift),
            seen=tuple(seen),
            shown=_shown(noun, pieces, reads),
        )
        good = (*(key for checked in checks for key in checked.ids), *(booking.uuid for booking in seen))
        return Fetched(claim, answered, bad, good)


def _payloads(checks: Sequence[checking.Checked]) -> Iterator[Payload]:
    """The bookings as received. One that moved between the requests for two parts is in both: the later one has it as it is."""
    found = {}
    for checked in checks:
        # A few records of many must not keep the whole answer in memory.
        views = [memoryview(bytes(view)) for view in checked.payloads] if checked.seen else checked.payloads
        for key, body, hashed, screened in zip(checked.ids, views, checked.hashes, checked.screened, strict=True):
            if screened.keeps_payload:
                found[key] = Payload("booking", key, body, hashed.hex())
    yield from found.values()


def _shown(noun: str, pieces: Pieces, reads: Sequence[_Read]) -> tuple[Shown, ...]:
    """The records by the requests that showed them; the texts of a product in several languages are one answer."""
    if noun == "products":
        requests = tuple(answer.request_seq for _, answer in pieces.calls)
        return (Shown(requests, tuple({i for read in reads for i in read.checked.ids})),)
    found = []
    for read in reads:
        checked = read.checked
        seen = [uuid for uuid, _ in checked.seen]
        found.append(Shown((read.answer.request_seq,), (*checked.ids, *seen)))
    return tuple(found)


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


class _Named(msgspec.Struct):
    uuid: Any = None


_named = msgspec.json.Decoder(list[_Named])


def _uuids(body: bytes) -> list[str]:
    """The uuids of the records of a list, whatever they are, as texts; none where it cannot be read."""
    try:
        return [str(record.uuid) for record in _named.decode(body)]
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return []


class _Departure(msgspec.Struct, rename="camel"):
    id: str | int
    local_date_time_start: str


_departures = msgspec.json.Decoder(list[_Departure])


def _days(body: bytes) -> dict[str, date]:
    """The ids and days of departures; none where they cannot be read."""
    try:
        return {str(d.id): date.fromisoformat(d.local_date_time_start[:10]) for d in _departures.decode(body)}
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return {}
