"""A booking whose record is landed already is not read again, and nothing is ever hidden by that."""

import dataclasses
import json

import pytest
from tests.flows.harness import Wire, api_path, reply
from tests.flows.test_deletions import hide, typed_not_found
from tests.flows.test_order import MONTH, WINDOW, booked, is_window

from octo_sync.errors import AnswerInvalid, RowsRefused
from octo_sync.flows.sync.fetch import Fetcher
from octo_sync.flows.sync.land import Lander, land, read
from octo_sync.flows.sync.pull import Scope
from octo_sync.flows.sync.run import sync
from octo_sync.flows.sync.settle import settle
from octo_sync.flows.sync.work import Worker
from octo_sync.model import Source, Subject, SubjectKind
from octo_sync.octo import checking


class Watched:
    """A warehouse that remembers what was landed."""

    def __init__(self, real):
        self._real = real
        self.answered = []
        self.reports = []

    def land(self, landing):
        self.answered += landing.answered
        self.reports.append(self._real.land(landing))
        return self.reports[-1]

    def __getattr__(self, name):
        return getattr(self._real, name)

    def read(self):
        """Booking records that were read, by subject; and those that were seen and not read."""
        lines = {
            a.subject: [json.loads(line)["records"] for line in a.lines] for a in self.answered if a.noun == "bookings"
        }
        read = {subject: sum(map(len, found)) for subject, found in lines.items()}
        return read, {a.subject: len(a.seen) for a in self.answered if a.noun == "bookings"}


async def watched(copy, *, scope=None, **more):
    """One run of `sync`, and the warehouse that watched it."""
    async with copy.opened(**more) as opened:
        opened.ports.warehouse = Watched(opened.ports.warehouse)
        result = await sync(opened.ports, scope or Scope(full=True), command="test", publishing=False)
        return opened.ports.warehouse, result


async def test_only_the_records_that_changed_are_read(synced, service):
    copy, uuid = synced(), booked(service)
    service.change(uuid, notes="changed", silent=True)
    warehouse, _ = await watched(copy)
    read, seen = warehouse.read()
    assert {subject: n for subject, n in read.items() if n} == {WINDOW: 1}
    assert seen[WINDOW] > 10
    assert [report.differing for report in warehouse.reports if report.differing] == []
    in_month = [b for b in service.state()["bookings"] if (b["local_date"] or "").startswith(MONTH)]
    rows = copy.query("select row_count from ops.coverage where resource = 'bookings' and key = $1", WINDOW.key)
    assert rows == [(len(in_month),)]
    assert copy.differences() == []


def test_no_byte_of_a_record_can_change_unseen(service):
    """Wherever a byte is another one, the record is read: each byte of one record, tried one by one."""
    body = service.get("/bookings?localDateStart=2026-12-01&localDateEnd=2026-12-31", capabilities=["pricing"]).content
    rows = json.loads(body)[:2]
    body = json.dumps(rows).encode()
    first = len(json.dumps(rows[0]).encode())
    whole = checking.check_bookings(body, salt=5)
    known = {digest: (uuid, None, None) for uuid, digest in zip(whole.ids, whole.digests, strict=True)}
    assert len(checking.check_bookings(body, known=known, salt=5).seen) == 2
    assert checking.check_bookings(body, known=known, salt=6).seen == ()
    inside = [n for n in range(2, first, 7) if body[n : n + 1].isalnum()]
    assert len(inside) > 300
    for place in inside:
        other = b"8" if body[place : place + 1] != b"8" else b"9"
        try:
            changed = checking.check_bookings(body[:place] + other + body[place + 1 :], known=known, salt=5)
        except AnswerInvalid:
            continue  # no JSON any more
        assert [uuid for uuid, _ in changed.seen] == [rows[1]["uuid"]], place
        assert len(changed.ids) + len(changed.bad) == 1


def test_a_record_that_comes_twice_is_read(service):
    body = service.get("/bookings?localDateStart=2026-12-01&localDateEnd=2026-12-31", capabilities=["pricing"]).content
    rows = json.loads(body)[:3]
    whole = checking.check_bookings(json.dumps(rows).encode())
    known = {digest: (uuid, None, None) for uuid, digest in zip(whole.ids, whole.digests, strict=True)}
    for extra in (rows[0], {**rows[0], "status": "CANCELLED"}):
        for order in ([*rows, extra], [extra, *rows]):
            sent = json.dumps(order).encode()
            assert checking.check_bookings(sent, known=known) == checking.check_bookings(sent)


@pytest.mark.deep(4)
@pytest.mark.parametrize(
    "change",
    [
        {"notes": "only in the private file"},
        {"contact": {"fullName": "Somebody Else"}},
        {"reseller_reference": "ANOTHER"},
        {"status": "CANCELLED"},
    ],
)
async def test_whatever_changes_and_changes_back_is_landed_both_times(synced, service, change):
    copy, uuid = synced(), booked(service)
    before = service.booking(uuid)
    for other in range(2):
        service.change(uuid, silent=True, **change)
        await copy.sync()
        assert copy.differences() == []
        service.reset()
        assert service.booking(uuid) == before
        if other:
            # Together with something else, so that the window as a whole is new.
            service.change(_others(service, uuid)[0], notes="else", silent=True)
        warehouse, _ = await watched(copy)
        assert warehouse.read()[0][WINDOW] == 1 + other
        assert copy.differences() == []
        service.reset()


async def test_a_bookings_older_answer_that_lands_before_the_window_is_undone(synced, service):
    """Own request (older state) → window request → own answer lands → the window lands."""
    copy, uuid = synced(), booked(service)
    one = Subject("main", SubjectKind.BOOKING, (uuid,))
    async with copy.opened() as opened:
        ports = opened.ports
        service.change(uuid, reseller_reference="OLDER", silent=True)
        older = await _fetched(ports, one)
        service.reset()
        service.change(next(b for b in _others(service, uuid)), notes="so that the window is new", silent=True)
        window = await _fetched(ports, WINDOW)
        land(ports, [older])
        land(ports, read(ports, [window])[0])
    assert copy.differences() == []


async def test_a_booking_buried_between_a_windows_request_and_its_landing_is_live_again(synced, service):
    copy, uuid = synced(), booked(service)
    async with copy.opened() as opened:
        ports = opened.ports
        service.change(next(b for b in _others(service, uuid)), notes="so that the window is new", silent=True)
        window = await _fetched(ports, WINDOW)
        ports.warehouse.run_script([f"update core.bookings set is_deleted = true where booking_uuid = '{uuid}'"])
        land(ports, read(ports, [window])[0])
    assert copy.query("select is_deleted from core.bookings where booking_uuid = $1", uuid) == [(False,)]


async def test_nothing_lands_between_the_reading_of_a_window_and_its_landing(synced, service):
    """Own request (another state) → window request (as landed) → the window is read → both land, and the later one counts."""
    copy, uuid = synced(), booked(service)
    one = Subject("main", SubjectKind.BOOKING, (uuid,))
    async with copy.opened() as opened:
        ports = opened.ports
        warehouse = ports.warehouse = Watched(ports.warehouse)
        service.change(uuid, reseller_reference="OLDER", silent=True)
        older = await _fetched(ports, one)
        service.reset()
        service.change(next(b for b in _others(service, uuid)), notes="so that the window is new", silent=True)
        lander = Lander(ports, pytest.fail)
        lander.add(window := await _fetched(ports, WINDOW))
        assert lander.worthwhile
        await _started(lander)
        assert warehouse.reports == []
        assert lander.connections == {"main"}
        assert not lander.full
        assert window.size > sum(f.size for f in read(ports, [window])[0]), "what has not changed is held no longer"
        lander.add(older)
        await _started(lander)
        assert len(warehouse.reports) == 1
        assert lander.connections == set()
    assert copy.differences() == []


async def test_a_window_that_was_read_before_rows_were_buried_is_asked_for_again(synced, service):
    """What it was compared with is there no more."""
    copy, uuid = synced(), booked(service)
    async with copy.opened(transport=Wire.by(hide(uuid, typed_not_found)[0])) as opened:
        ports = opened.ports
        one = Subject("main", SubjectKind.BOOKING, (uuid,))
        for subject in (WINDOW, one, one):
            land(ports, read(ports, [await _fetched(ports, subject)])[0])
        service.change(next(b for b in _others(service, uuid)), notes="so that the window is new", silent=True)
        late, _ = read(ports, [await _fetched(ports, WINDOW)])
        assert settle(ports).buried
        assert land(ports, late)[1] == []
        assert ports.journal.subjects.dirty_among([WINDOW]) == {WINDOW}


async def test_of_windows_that_were_read_together_one_lands_first_where_the_warehouse_refuses_something(
    synced, service
):
    """The others were compared with what is there no more, and are asked for again."""

    class Refusing(Watched):
        def land(self, landing):
            if sum(bool(a.seen) for a in landing.answered) > 1:
                refused.append(landing)
                raise RowsRefused("A number is too large.")
            return super().land(landing)

    refused, copy = [], synced()
    for uuid in service.state()["bookings"][:40]:
        service.change(uuid["uuid"], notes="so that each window is new", silent=True)
    async with copy.opened() as opened:
        opened.ports.warehouse = Refusing(opened.ports.warehouse)
        result = await sync(opened.ports, Scope(full=True), command="test", publishing=False)
    assert refused
    assert (result.status, result.failed) == ("ok", {})
    assert copy.differences() == []


async def _started(lander):
    lander.start()
    await lander.landing
    lander.check()


async def _fetched(ports, subject):
    """Its answer, as the worker has it before it lands."""
    ports.journal.subjects.mark([subject], Source.NOTIFICATION)
    (claim,) = ports.journal.subjects.claim(1, run_id=ports.run_id)
    return await Fetcher(ports).fetch(claim, ports.warehouse.covered([subject]).get(subject))


def _others(service, uuid):
    return [
        b["uuid"]
        for b in service.state()["bookings"]
        if (b["local_date"] or "").startswith(MONTH) and b["uuid"] != uuid and b["status"] == "CONFIRMED"
    ]


@pytest.mark.deep(2)
async def test_a_booking_that_lands_newer_than_the_window_and_goes_back_is_not_lost(synced, service):
    """Window request → own request, changed → own answer lands → window lands → the service goes back, silently."""
    copy, uuid = synced(sync={"batch_bodies": 1}), booked(service)
    one = Subject("main", SubjectKind.BOOKING, (uuid,))
    other = _others(service, uuid)[0]

    async def edit(request, _answer):
        if is_window(request):
            service.change(uuid, reseller_reference="NEWER", silent=True)
            ports.journal.subjects.mark([one], Source.NOTIFICATION)
            await Worker(dataclasses.replace(ports, warehouse=real), kinds={SubjectKind.BOOKING}).drain()

    service.change(other, notes="so that the window is new", silent=True)
    async with copy.opened(transport=Wire.by(edit)) as opened:
        ports, real = opened.ports, opened.ports.warehouse
        ports.warehouse = Watched(real)
        ports.journal.subjects.mark([WINDOW], Source.SCHEDULE)
        await Worker(ports).drain()
    assert copy.query("select reseller_reference from core.bookings where booking_uuid = $1", uuid) == [("NEWER",)]
    assert copy.differences() == []
    service.reset()
    service.change(other, notes="so that the window is new", silent=True)
    await copy.sync()
    assert copy.differences() == []


@pytest.mark.deep(2)
async def test_a_booking_that_was_deleted_and_comes_back_as_it_was_is_live_with_all_that_hangs_on_it(synced, service):
    copy, uuid = synced(), booked(service)
    await copy.sync(transport=Wire.by(hide(uuid, typed_not_found)[0]))
    assert copy.query("select is_deleted from core.bookings where booking_uuid = $1", uuid) == [(True,)]
    service.change(_others(service, uuid)[0], notes="else", silent=True)
    warehouse, _ = await watched(copy)
    assert warehouse.read()[0][WINDOW] == 2
    assert copy.differences() == []


@pytest.mark.deep(2)
async def test_a_record_set_aside_leaves_quarantine_when_it_is_again_what_is_landed(synced, service):
    copy, uuid = synced(), booked(service)

    def edit(request, answer):
        if not is_window(request):
            return None
        rows = answer.json()
        for row in rows:
            if row["uuid"] == uuid:
                row["status"] = 5
        return reply(rows)

    await copy.sync(transport=Wire.by(edit))
    async with copy.opened() as opened:
        assert [entry.key for entry in opened.ports.journal.quarantine.entries()] == [uuid]
    warehouse, result = await watched(copy)
    read, seen = warehouse.read()
    assert (read[WINDOW], seen[WINDOW] > 10) == (0, True)
    async with copy.opened() as opened:
        assert opened.ports.journal.quarantine.entries() == []
    assert result.status == "ok"
    assert copy.differences() == []


async def test_a_record_set_aside_by_its_own_road_leaves_quarantine_when_its_window_shows_it_as_landed(synced, service):
    copy, uuid = synced(), booked(service)

    def edit(request, answer):
        return reply({**answer.json(), "status": 5}) if api_path(request) == f"/bookings/{uuid}" else None

    async with copy.opened(transport=Wire.by(edit)) as opened:
        opened.ports.journal.subjects.mark([Subject("main", SubjectKind.BOOKING, (uuid,))], Source.NOTIFICATION)
        await Worker(opened.ports).drain()
        assert [entry.key for entry in opened.ports.journal.quarantine.entries()] == [uuid]
    service.change(_others(service, uuid)[0], notes="else", silent=True)
    async with copy.opened() as opened:
        opened.ports.warehouse = Watched(opened.ports.warehouse)
        opened.ports.journal.subjects.mark([WINDOW], Source.SCHEDULE)
        await Worker(opened.ports, kinds={SubjectKind.BOOKINGS}).drain()
        assert opened.ports.warehouse.read()[0][WINDOW] == 1
        assert opened.ports.journal.quarantine.entries() == []


@pytest.mark.deep(2)
async def test_a_capability_asked_for_later_is_landed_though_the_bytes_are_the_same(synced, project, service):
    """A service that always shows prices: what is asked for decides what is kept, not only what is sent."""

    def edit(request, _answer):
        if api_path(request).startswith("/bookings"):
            url = f"{api_path(request)}?{request.url.query.decode()}"
            return reply(service.get(url, capabilities=["pricing", "extras"]).json())
        return None

    copy = project(capabilities=(), availability=(0, 2))
    await copy.sync(transport=Wire.by(edit))
    assert copy.query("select distinct currency is null from core.bookings") == [(True,)]
    copy.connections["main"].capabilities = ("pricing", "extras")
    copy.write()
    await copy.sync(transport=Wire.by(edit))
    assert copy.differences() == []


@pytest.mark.deep(4)
async def test_a_capability_ignored_for_a_while_hides_nothing(synced, service):
    copy, uuid = synced(), booked(service)
    service.quirks(ignored_capability=["pricing"], no_capability_echo=True)
    for text in ("WHILE IGNORED", "STILL"):
        service.change(uuid, reseller_reference=text, silent=True)
        await copy.sync()
        missing = "select missing_capabilities from ops.coverage where resource = 'bookings' and key = $1"
        assert copy.query(missing, WINDOW.key) == [("pricing",)]
    # Nothing is new in this answer, one booking is missing: there is no record to tell by, if not all are read.
    await copy.sync(transport=Wire.by(hide(_others(service, uuid)[0], typed_not_found)[0]))
    assert copy.query(missing, WINDOW.key) == [("pricing",)]
    service.quirks(ignored_capability=[], no_capability_echo=False)
    assert copy.query("select count(*) from core.bookings where currency is null") == [(0,)]
    await copy.sync()
    assert copy.differences() == []
    service.change(uuid, reseller_reference="AFTER", silent=True)
    warehouse, _ = await watched(copy)
    assert warehouse.read()[0][WINDOW] == 1, "what came back with the capability is known again"
    assert copy.differences() == []


@pytest.mark.deep(2)
async def test_a_changed_record_without_prices_is_read_with_the_others_that_have_them(synced, service):
    """Alone it would look as if the capability was ignored, and its old price would stay."""
    copy, uuid = synced(), booked(service)

    def edit(request, answer):
        if api_path(request) not in ("/bookings", f"/bookings/{uuid}"):
            return None
        rows = answer.json()
        for row in rows if isinstance(rows, list) else [rows]:
            if row["uuid"] == uuid:
                for part in (row, *row["unitItems"]):
                    part.pop("pricing", None)
        return reply(rows)

    await copy.sync(transport=Wire.by(edit))
    assert copy.query("select currency from core.bookings where booking_uuid = $1", uuid) == [(None,)]
    assert copy.query("select distinct missing_capabilities from ops.coverage where resource = 'bookings'") == [("",)]
    await copy.sync()
    assert copy.differences() == []


@pytest.mark.deep(2)
async def test_payloads_that_are_to_be_kept_from_now_on_are_kept_though_nothing_changed(project, service):
    copy = project(sync={"raw": ["products"]}, availability=(0, 2))
    await copy.sync()
    kept = "select count(distinct key) from personal.raw.records where resource = 'booking'"
    assert copy.query(kept) == [(0,)]
    copy.settings["raw"] = ["products", "bookings"]
    copy.write()
    await copy.sync()
    assert copy.query(kept) == copy.query("select count(*) from core.bookings where not is_deleted")


@pytest.mark.deep(2)
async def test_another_language_is_read_once_and_known_from_then_on(synced, service):
    """Texts of the product that stand in a booking are left alone, but its bytes are others: no row is written for them."""
    copy, uuid = synced(), booked(service)
    written = copy.query("select max(last_seen_at_utc) from core.bookings")
    copy.connections["main"].languages = ("pt", "en")
    copy.write()
    await copy.sync()
    assert copy.query("select max(last_seen_at_utc) from core.bookings") == written
    service.change(uuid, notes="else", silent=True)
    warehouse, _ = await watched(copy)
    assert sum(warehouse.read()[0].values()) == 1
    assert copy.differences() == []


@pytest.mark.deep(1)
async def test_a_digest_that_was_taken_away_has_its_record_read_and_comes_back(synced, service):
    """Who is forgotten loses the digest: null means to look at it anew."""
    copy, uuid = synced(), booked(service)
    async with copy.opened() as opened:
        opened.warehouse.run_script(
            [
                f"update core.bookings set payload_digest = null where booking_uuid = '{uuid}'",
                "update ops.coverage set answer_hash = null where resource = 'bookings'",
            ]
        )
    written = copy.query("select max(last_seen_at_utc) from core.bookings")
    warehouse, _ = await watched(copy)
    assert {subject: n for subject, n in warehouse.read()[0].items() if n} == {WINDOW: 1}
    assert copy.query("select max(last_seen_at_utc) from core.bookings") == written, "no row is written for it"
    assert copy.query("select count(*) from core.bookings where payload_digest is null") == [(0,)]
