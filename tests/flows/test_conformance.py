"""What a service really does is found out by a dozen calls, and each difference is told with what follows from it."""

import datetime as dt
from random import Random

import pytest
from tests.flows.harness import NOON, TODAY, TOKENS, Service, small

from octo_sync.errors import NotFound, RequestRefused, ServiceUnavailable
from octo_sync.flows.doctor import service as doctor_service
from octo_sync.flows.doctor.conformance import checks, score
from octo_sync.flows.doctor.probe import KnownBooking, probe
from octo_sync.flows.doctor.seen import Kept, Seen
from octo_sync.model import Connection, Horizon, Secret, Window
from octo_sync.octo import endpoints
from octo_sync.octo.answer import Answer
from octo_sync.octo.client import OctoClient

AHEAD = Horizon(0, 365)
KEPT = Kept(bookings=Horizon(-90, 365), availability=Horizon(0, 39))


class Noon:
    def now(self):
        return NOON


@pytest.fixture(scope="module")
def _running():
    with Service(small(bookings=1500)) as service:
        yield service


@pytest.fixture
def service(_running):
    yield _running
    _running.control("DELETE", "/quirks")
    _running.control("DELETE", "/faults")


def a_connection(service, token="all", **more):
    return Connection(name="shop", base_url=service.base_url, token=Secret(TOKENS.get(token, token)), **more)


def a_cancelled_one(service):
    """A booking that a copy of this service would know as cancelled."""
    found = [b for b in service.control("GET", "/state")["bookings"] if b["status"] == "CANCELLED"]
    one = found[0]
    created = dt.datetime.fromisoformat(one["utcCreatedAt"]) if "utcCreatedAt" in one else NOON
    day = dt.date.fromisoformat(str(one["localDate"])[:10]) if "localDate" in one else TODAY
    return KnownBooking(one["uuid"], day, created.date())


async def examined(service, *, cancelled=None, quick=False, kept=KEPT, **more):
    connection = doctor_service.with_little_patience(a_connection(service, **more))
    async with OctoClient(connection, clock=Noon(), random=Random(1)) as client:
        return await doctor_service.service(client, clock=Noon(), kept=kept, quick=quick, cancelled=cancelled)


def results(examined):
    return {check.name: check.result for check in examined.checks}


A_BOOKING = (
    '{"uuid": "b", "id": "b", "status": "CONFIRMED", "utcCreatedAt": "2026-06-01T00:00:00Z", "productId": "p", '
    '"optionId": "o", "availability": {"id": "a", "localDateTimeStart": "2026-11-05T10:00:00+00:00", '
    '"localDateTimeEnd": "2026-11-05T11:00:00+00:00", "allDay": false, "openingHours": []}, "unitItems": []}'
)
QUIRKS = {
    "no_capability_echo": (True, {"echo"}),
    "ignored_capability": (["extras"], {"capability extras"}),
    "ignored_capability/pricing": (["pricing"], {"capability pricing"}),
    "cancelled_not_listed": (True, {"cancelled bookings"}),
    "booking_date_is_creation": (True, {"look back"}),
    "lapsed_holds_unreadable": (True, {"lapsed holds"}),
    "no_authentication": (True, {"authentication"}),
    "horizon_days": (30, {"days ahead"}),
    "horizon_days/near": (5, {"days ahead"}),
    "fields_set": ({f"booking.pricing.{a}": 0 for a in ("original", "retail", "net")}, {"prices of bookings"}),
    "absent_capability": (["extras", "notifications"], {"capability extras", "subscriptions"}),
    "closed_days_omitted": (True, {"closed days"}),
    "list_cap_100": (True, {"length of lists"}),
    "vacancies_omitted": (True, {"seats"}),
    "error_style": ("plain404", {"unknown booking", "unknown product"}),
}


async def test_a_faithful_service_does_all_that_the_copy_wishes_and_is_asked_sixteen_times_at_most(service):
    service.control("DELETE", "/requests")

    found = await examined(service, cancelled=a_cancelled_one(service))

    assert results(found) == dict.fromkeys(results(found), "passed")
    assert len(found.checks) == score(found.checks)[0] == 17
    asked = len(service.control("GET", "/requests")["requests"])
    assert found.calls == asked <= 16


@pytest.mark.parametrize("cap", [True, False])
async def test_the_quick_look_asks_again_before_it_says_that_lists_are_cut(service, cap):
    service.quirks(list_cap_100=cap)

    found = await examined(service, quick=True)

    levels = {finding.name: finding.level for finding in found.findings}
    assert levels.get("length of lists") == ("warn" if cap else None)
    assert found.calls == (7 if cap else 5)


@pytest.mark.deep(2)
@pytest.mark.parametrize("name", QUIRKS)
async def test_each_quirk_changes_its_own_finding_and_no_other(service, name):
    value, expected = QUIRKS[name]
    known = a_cancelled_one(service)
    service.quirks(**{name.split("/")[0]: value})

    found = await examined(service, cancelled=known)

    assert {check.name for check in found.checks if check.result == "differs"} == expected
    assert {check.name for check in found.checks if check.result == "unknown"} == set()
    assert found.calls <= 16
    for check in found.checks:
        assert bool(check.consequence) == (check.result == "differs"), "what differs is explained, and only that"
        assert not check.consequence or check.consequence.endswith(".")


async def test_the_quick_look_costs_five_calls_and_holds_nothing_against_anything(service):
    found = await examined(service, quick=True)

    assert (found.checks, found.calls) == ([], 5)


async def test_a_token_without_the_ability_is_told_and_the_other_questions_are_asked_all_the_same(service):
    found = await examined(service, token="sandbox-token-none")

    assert results(found)["subscriptions"] == "differs"
    assert results(found)["unknown booking"] == "passed"


@pytest.mark.parametrize("fault", ["status_5xx", "html_200", "malformed", "empty_list"])
async def test_a_sick_service_is_asked_no_more_than_a_healthy_one_and_nothing_is_made_up(service, fault):
    service.control("PUT", "/faults", [{"fault": fault, "match": {"path": "/(bookings|availability).*"}}])

    found = await examined(service)

    assert found.calls <= 16
    told = results(found)
    assert told.get("cancelled bookings", "unknown") == told.get("dates of lists", "unknown") == "unknown"
    assert told.get("closed days", "unknown") == told.get("seats", "unknown") == "unknown"


@pytest.mark.parametrize("calls", range(9))
async def test_no_more_is_asked_than_was_allowed_and_the_last_two_questions_come_first(calls):
    """A service that answers nothing useful, so that every question would be asked."""
    asked = []

    async def ask(call):
        asked.append(call.operation)
        return answer("{}" if call.operation in ("booking", "product") else "[]", call)

    window = Window(TODAY, TODAY + dt.timedelta(days=13))
    hundred = answer(f"[{', '.join(['{}'] * 100)}]")
    products = answer('[{"id": "1", "options": [{"id": "a"}]}, {"id": "2", "options": [{"id": "b"}]}]')
    seen = Seen(products=products, bookings=[(hundred, window)])

    await probe(ask, seen, today=TODAY, calls=calls, cancelled=KnownBooking("u", TODAY, TODAY), availability=AHEAD)

    assert len(asked) == min(calls, 8)
    assert asked[-2:] == ["booking", "product"][: len(asked)]


@pytest.mark.parametrize("second", ["fails", "<html>", "{}"])
async def test_half_an_answer_does_not_say_that_lists_are_whole(second):
    """The first half is answered, the second is not."""
    window = Window(TODAY, TODAY + dt.timedelta(days=13))
    hundred = answer(f"[{', '.join(['{}'] * 100)}]")

    async def ask(call):
        params = dict(call.params)
        if params.get("localDateEnd") == window.end.isoformat() and params["localDateStart"] > str(TODAY):
            return ServiceUnavailable("x", status=503) if second == "fails" else answer(second, call)
        return answer("[]", call)

    seen = Seen(bookings=[(hundred, window)])
    await probe(ask, seen, today=TODAY, calls=8, cancelled=None, availability=AHEAD)

    assert told(seen, "length of lists").result == "unknown"


async def test_a_cancelled_booking_is_looked_for_around_its_day_of_booking_because_that_is_counted_in_utc():
    window, asked = Window(dt.date(2026, 6, 1), dt.date(2026, 6, 10)), []
    seen = Seen(bookings=[(answer(f"[{A_BOOKING}]", endpoints.bookings(start=window.start, end=window.end)), window)])

    async def ask(call):
        asked.append(tuple(dict(call.params).values()))
        return answer("[]", call)

    created = dt.date(2026, 6, 5)
    await probe(
        ask, seen, today=TODAY, calls=8, cancelled=KnownBooking("u", dt.date(2026, 11, 5), created), availability=AHEAD
    )

    assert ("2026-06-04", "2026-06-06") in asked


# -- pure: what answers mean -----------------------------------------------------------------------------------------


def answer(text, call=None, **headers):
    return Answer(text.encode(), 200, headers, 0, b"", call or endpoints.products())


def told(seen, name, **more):
    connection = Connection(name="shop", base_url="https://x.example", token=Secret("t"), **more)
    return next((check for check in checks(seen, connection, KEPT) if check.name == name), None)


def test_a_zone_that_this_machine_does_not_know_is_named():
    seen = Seen(products=answer('[{"timeZone": "Mars/Olympus"}, {"timeZone": "Europe/Lisbon"}]'))

    check = told(seen, "time zones")

    assert check.result == "differs"
    assert "Mars/Olympus" in check.text
    assert "Lisbon" not in check.text
    assert "tzdata" in check.fix


def test_products_without_a_zone_are_counted():
    assert "1 of 2" in told(Seen(products=answer('[{"id": "1"}, {"timeZone": "Europe/Lisbon"}]')), "time zones").text


@pytest.mark.parametrize(
    ("error", "result"),
    [
        (NotFound("x", status=400, code="INVALID_BOOKING_UUID"), "passed"),
        (RequestRefused("x", status=404), "differs"),
        (ServiceUnavailable("x", status=503), "unknown"),
        (None, "differs"),
    ],
)
def test_only_the_typed_code_says_that_nobody_has_it(error, result):
    assert told(Seen(unknown={"booking": error}), "unknown booking").result == result


def test_days_absent_at_the_ends_are_not_on_sale_and_only_a_gap_is_a_day_left_out():
    window = Window(dt.date(2026, 12, 1), dt.date(2026, 12, 31))

    def days(*numbers):
        rows = ", ".join(
            f'{{"localDateTimeStart": "2026-12-{n:02d}T10:00:00+00:00", "status": "AVAILABLE"}}' for n in numbers
        )
        return Seen(availability=[(answer(f"[{rows}]"), window)])

    assert told(days(5, 6, 7), "closed days").result == "unknown"
    assert "2 between 2026-12-05 and 2026-12-08" in told(days(5, 8), "closed days").text
    assert told(days(), "closed days").text == "no availability was seen"


def test_a_meaning_in_the_file_that_the_service_does_not_share_is_told():
    window = Window(dt.date(2026, 11, 1), dt.date(2026, 11, 10))
    call = endpoints.bookings(start=window.start, end=window.end)
    seen = Seen(bookings=[(answer(f"[{A_BOOKING}]", call), window)])

    assert told(seen, "dates of lists").result == "passed"
    check = told(seen, "dates of lists", booking_date_means="creation")
    assert check.result == "differs"
    assert 'booking_date_means = "travel"' in check.fix


def test_exactly_a_hundred_that_stay_a_hundred_in_halves_are_no_cut():
    window = Window(dt.date(2026, 11, 1), dt.date(2026, 11, 10))
    rows = [f'{{"uuid": "{n}"}}' for n in range(100)]
    whole, first, second = (answer(f"[{', '.join(part)}]") for part in (rows, rows[:40], rows[40:]))

    assert told(Seen(bookings=[(whole, window)], halves=[first, second]), "length of lists").result == "passed"
    # Of products, and of bookings that were not asked for again, nobody knows.
    for seen, of in ((Seen(bookings=[(whole, window)]), "bookings"), (Seen(products=whole), "products")):
        check = told(seen, "length of lists")
        assert (check.result, check.fix.name) == ("unknown", "page size")
        assert of in check.text
