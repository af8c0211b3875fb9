"""Nothing older ever overwrites anything newer, and nothing that changed during a fetch is taken for fetched (R2, R6)."""

import json

import pytest
from tests.flows.harness import NOON, Wire, api_path, keeping, reply, until

from octo_sync.destinations.base import Answered, Shown
from octo_sync.flows.order import Order
from octo_sync.flows.sync.work import Worker
from octo_sync.model import Source, Subject, SubjectKind

MONTH = "2026-12"
WINDOW = Subject("main", SubjectKind.BOOKINGS, (MONTH,))


def booked(service, month=MONTH):
    """A booking that travels in the month and can be changed."""
    return next(
        b for b in service.state()["bookings"] if b["local_date"].startswith(month) and b["status"] == "CONFIRMED"
    )["uuid"]


def is_window(request):
    return api_path(request) == "/bookings" and dict(request.url.params)["localDateStart"].startswith(MONTH)


def clean(ports, subject):
    return any(row.subject == subject and not row.dirty for row in ports.journal.subjects.rows())


async def test_what_is_marked_during_its_fetch_stays_dirty_and_is_fetched_again(synced, service):
    copy, uuid, seen = synced(), booked(service), []

    def edit(request, _answer):
        if is_window(request):
            seen.append(request)
            if len(seen) == 1:
                # The answer has left the service; now the booking changes, and somebody says so.
                service.change(uuid, notes="changed while it was fetched", silent=True)
                ports.journal.subjects.mark([WINDOW], Source.NOTIFICATION)

    async with copy.opened(transport=Wire.by(edit)) as opened:
        ports = opened.ports
        ports.journal.subjects.mark([WINDOW], Source.SCHEDULE)
        await Worker(ports).drain()
        assert clean(ports, WINDOW)
    assert len(seen) == 2
    assert copy.differences() == []


async def test_a_windows_older_answer_held_back_never_overwrites_a_bookings_newer_one(synced, service):
    copy, uuid = synced(sync={"batch_bodies": 1}), booked(service)
    one = Subject("main", SubjectKind.BOOKING, (uuid,))

    async def edit(request, _answer):
        if is_window(request):
            service.change(uuid, reseller_reference="NEWER", silent=True)
            ports.journal.subjects.mark([one], Source.NOTIFICATION)
            other = Worker(ports, kinds={SubjectKind.BOOKING})
            await other.drain()
            assert clean(ports, one)

    service.change(uuid, reseller_reference="OLDER", silent=True)
    async with copy.opened(transport=Wire.by(edit)) as opened:
        ports = opened.ports
        ports.journal.subjects.mark([WINDOW], Source.SCHEDULE)
        await Worker(ports, kinds={SubjectKind.BOOKINGS}).drain()
        assert clean(ports, WINDOW)
    assert copy.query("select reseller_reference from core.bookings where booking_uuid = $1", uuid) == [("NEWER",)]
    assert copy.differences() == []


async def test_a_bookings_older_answer_held_back_never_overwrites_a_windows_newer_one(synced, service):
    copy, uuid = synced(sync={"batch_bodies": 1}), booked(service)
    one = Subject("main", SubjectKind.BOOKING, (uuid,))

    async def edit(request, _answer):
        if api_path(request) == f"/bookings/{uuid}":
            service.change(uuid, reseller_reference="NEWER", contact={"fullName": "Newer Name"}, silent=True)
            ports.journal.subjects.mark([WINDOW], Source.SCHEDULE)
            await Worker(ports, kinds={SubjectKind.BOOKINGS}).drain()
            assert clean(ports, WINDOW)

    service.change(uuid, reseller_reference="OLDER", contact={"fullName": "Older Name"}, silent=True)
    async with copy.opened(transport=Wire.by(edit)) as opened:
        ports = opened.ports
        ports.journal.subjects.mark([one], Source.NOTIFICATION)
        await Worker(ports, kinds={SubjectKind.BOOKING}).drain()
        assert clean(ports, one)
    assert copy.query("select reseller_reference from core.bookings where booking_uuid = $1", uuid) == [("NEWER",)]
    assert copy.differences() == []


@pytest.mark.deep(1, everyday=["list"])
@pytest.mark.parametrize("older", ["list", "document"])
async def test_of_a_product_list_and_a_product_the_later_request_wins(synced, service, older):
    copy = synced()
    product = service.state()["products"][0]["id"]
    one, every = Subject("main", SubjectKind.PRODUCT, (product,)), Subject("main", SubjectKind.PRODUCTS)
    slow, fast = (every, one) if older == "list" else (one, every)

    async def edit(request, _answer):
        if api_path(request) == ("/products" if older == "list" else f"/products/{product}"):
            service.control("PATCH", f"/admin/products/{product}", {"internal_name": "newer", "silent": True})
            ports.journal.subjects.mark([fast], Source.NOTIFICATION)
            await Worker(ports, kinds={fast.kind}).drain()

    service.control("PATCH", f"/admin/products/{product}", {"internal_name": "older", "silent": True})
    async with copy.opened(transport=Wire.by(edit)) as opened:
        ports = opened.ports
        ports.journal.subjects.mark([slow], Source.SCHEDULE)
        await Worker(ports, kinds={slow.kind}).drain()
    assert copy.query("select internal_name from core.products where product_id = $1", product) == [("newer",)]
    assert copy.differences() == []


async def test_the_order_is_the_requests_start_not_the_answers_arrival(synced, service):
    """A retry of the older request that goes out after the newer one may win; the older attempt's bytes may not."""
    copy, uuid = synced(sync={"batch_bodies": 1}), booked(service)
    one = Subject("main", SubjectKind.BOOKING, (uuid,))
    landed = []

    async def edit(request, _answer):
        if is_window(request):
            await until(lambda: landed)
        if api_path(request) == f"/bookings/{uuid}":
            landed.append(json.loads(_answer.content)["resellerReference"])

    async with copy.opened(transport=Wire.by(edit)) as opened:
        ports = opened.ports
        ports.journal.subjects.mark([WINDOW], Source.SCHEDULE)
        worker = Worker(ports)
        window = asyncio_task(worker.drain())
        await until(lambda: worker._tasks)  # the window's request is on its way
        service.change(uuid, reseller_reference="NEWEST", silent=True)
        ports.journal.subjects.mark([one], Source.NOTIFICATION)
        await Worker(ports, kinds={SubjectKind.BOOKING}).drain()
        await window
    assert landed == ["NEWEST"]
    assert copy.differences() == []


def asyncio_task(coroutine):
    import asyncio

    return asyncio.ensure_future(coroutine)


@pytest.mark.deep(1)
async def test_a_booking_that_goes_back_to_what_it_was_is_not_taken_for_unchanged(synced, service):
    """The window's bytes equal the last landed ones, but in between the booking landed differently by its own road."""
    copy, uuid = synced(), booked(service)
    before = service.booking(uuid)
    service.change(uuid, reseller_reference="IN BETWEEN", silent=True)
    async with copy.opened() as opened:
        opened.ports.journal.subjects.mark([Subject("main", SubjectKind.BOOKING, (uuid,))], Source.NOTIFICATION)
        await Worker(opened.ports).drain()
    assert copy.differences() == []
    service.reset()
    assert service.booking(uuid) == before
    assert (await copy.sync()).status == "ok"
    assert copy.differences() == []


def test_what_landed_is_remembered_only_while_an_older_answer_is_on_its_way():
    def answer(kind, part, number, *ids):
        subject = Subject("main", kind, (part,))
        shown = (Shown((number,), ids),)
        return Answered(subject=subject, request_seq=number, fetched_at=NOON, source=Source.SCHEDULE,
                        answer_hash="x", noun="bookings", row_count=len(ids), shown=shown)  # fmt: skip

    order = Order()
    order.begin("main", 10)
    order.begin("main", 20)
    order.landed([answer(SubjectKind.BOOKING, "a", 21, "a")])
    (window,) = order.apply([answer(SubjectKind.BOOKINGS, MONTH, 11, "a", "b")])
    assert window.left_out == {(11, "a")}
    (later,) = order.apply([answer(SubjectKind.BOOKINGS, MONTH, 22, "a", "b")])
    assert later.left_out == frozenset()
    order.end(("main", 10))
    (window,) = order.apply([answer(SubjectKind.BOOKINGS, MONTH, 11, "a", "b")])
    assert window.left_out == {(11, "a")}, "who began after 20 may still bring something older than 21"
    order.end(("main", 20))
    (window,) = order.apply([answer(SubjectKind.BOOKINGS, MONTH, 11, "a", "b")])
    assert window.left_out == frozenset()


async def test_an_answer_that_cannot_be_read_where_it_lands_is_asked_for_again_and_stops_no_other(synced, service):
    copy, uuid, broken = synced(), booked(service), []

    def edit(request, answer):
        if is_window(request) and not broken:
            broken.append(request)
            return reply({"error": "a list was wanted"})
        return None

    service.change(uuid, reseller_reference="NEW", silent=True)
    async with copy.opened(transport=Wire.by(edit)) as opened:
        ports = opened.ports
        ports.journal.subjects.mark([WINDOW, Subject("main", SubjectKind.SUPPLIER)], Source.SCHEDULE)
        worker = Worker(ports)
        await worker.drain()
        assert worker.failed == {}
        assert clean(ports, WINDOW)
    assert broken
    assert copy.differences() == []


@pytest.mark.deep(2, everyday=["pull"])
@pytest.mark.parametrize("road", ["pull", "keep"])
async def test_departures_that_came_before_their_product_are_read_again_with_its_time_zone(project, service, road):
    copy = project()
    product = next(p for p in service.state()["products"] if p["time_zone"] != "UTC")
    months = [
        Subject("main", SubjectKind.AVAILABILITY, (product["id"], o["id"], "2026-11")) for o in product["options"]
    ]
    async with copy.opened() as opened:
        opened.ports.journal.subjects.mark(months, Source.NOTIFICATION)
    if road == "pull":
        await copy.sync()
    else:
        async with keeping(copy) as keeper:
            await until(lambda: all(clean(keeper.ports, month) for month in months))
            keeper.pull("full")
            keeper.wake.set()
            await until(lambda: copy_is_idle(keeper))
    zones = "select distinct time_zone from core.availability where product_id = $1 and local_date < '2026-12-01'"
    assert copy.query(zones, product["id"]) == [(product["time_zone"],)]


def copy_is_idle(keeper):
    return keeper.idle.is_set() and not keeper.owes
