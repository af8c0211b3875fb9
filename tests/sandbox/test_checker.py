"""A stranger's conformance run against the sandbox as it is shipped: nothing here is the connector's, not even the client."""

import contextlib
import datetime as dt
import http.client
import json
from urllib.parse import urlsplit

import pytest

from octo_sync.sandbox.config import SandboxConfig
from octo_sync.sandbox.server import Sandbox
from octo_sync.sandbox.service import Service

NOW = dt.datetime(2026, 11, 23, 12, tzinfo=dt.UTC)
MOST_TICKETS = 8
BOOKING = {
    "id", "uuid", "testMode", "resellerReference", "supplierReference", "status", "utcCreatedAt", "utcUpdatedAt",
    "utcExpiresAt", "utcRedeemedAt", "utcConfirmedAt", "productId", "optionId", "cancellable", "cancellation", "freesale",
    "availabilityId", "availability", "contact", "notes", "deliveryMethods", "voucher", "unitItems", "pricing",
}  # fmt: skip
TICKET = {"uuid", "resellerReference", "supplierReference", "unitId", "status", "utcRedeemedAt", "contact", "ticket"}


class Checker:
    """Books as a reseller does who knows the specification and nothing else."""

    def __init__(self, base_url):
        self.address = urlsplit(base_url)

    def call(self, method, path, body=None):
        connection = http.client.HTTPConnection(self.address.netloc, timeout=10)
        sent = {
            "Authorization": "Bearer sandbox-token-a",
            "Octo-Capabilities": "octo/pricing, octo/content, octo/extras",
            "Content-Type": "application/json",
        }
        with contextlib.closing(connection):
            connection.request(method, self.address.path + path, None if body is None else json.dumps(body), sent)
            answer = connection.getresponse()
            return answer.status, json.load(answer)

    def get(self, path):
        status, body = self.call("GET", path)
        assert status == 200, body
        return body

    def post(self, path, body, method="POST"):
        status, answer = self.call(method, path, body)
        assert status == 200, answer
        return answer

    def refused(self, code, *call):
        status, body = self.call(*call)
        assert (status, body["error"]) == (400, code)

    def first_open(self, product):
        """The first slots that can be booked, of the product's first option, from today on."""
        asked = {"productId": product["id"], "optionId": product["options"][0]["id"]}
        span = {"localDateStart": f"{NOW:%Y-%m-%d}", "localDateEnd": f"{NOW + dt.timedelta(days=30):%Y-%m-%d}"}
        slots = self.post("/availability", {**asked, **span})
        assert any(slot["status"] == "SOLD_OUT" for slot in slots) or not slots[0]["capacity"]
        ahead = [one for one in slots if one["available"] and dt.datetime.fromisoformat(one["utcCutoffAt"]) > NOW]
        assert self.post("/availability", {**asked, "availabilityIds": [ahead[0]["id"]]}) == ahead[:1]
        return [{**asked, "availabilityId": slot["id"]} for slot in ahead[:2]]

    def reserve(self, aim, option, **more):
        adult = next(unit["id"] for unit in option["units"] if unit["type"] == "ADULT")
        count = min(MOST_TICKETS, option["restrictions"]["maxUnits"] or MOST_TICKETS)
        held = self.post("/bookings", {**aim, "unitItems": [{"unitId": adult}] * count, **more})
        assert held.keys() >= BOOKING
        assert (held["status"], len(held["unitItems"])) == ("ON_HOLD", count)
        assert all(item.keys() >= TICKET for item in held["unitItems"])
        assert self.get(f"/bookings/{held['uuid']}") == held
        return held


@pytest.fixture(scope="module")
def checker():
    with Sandbox(SandboxConfig(today=NOW.date(), frozen=True)) as running:
        yield Checker(running.base_url)


def test_every_kind_of_booking_fits_into_the_first_open_slot(checker):
    products = checker.get("/products")
    first = next(one for one in products if one["availabilityType"] == "START_TIME")
    option = first["options"][0]
    aim, later = checker.first_open(first)

    def book(**more):
        return f"/bookings/{checker.reserve(aim, option, **more)['uuid']}"

    def confirm(path, **more):
        sold = checker.post(f"{path}/confirm", {"contact": {"fullName": "Ana Lima"}, **more})
        assert (sold["status"], sold["utcExpiresAt"], sold["cancellation"]) == ("CONFIRMED", None, None)
        assert sold["utcConfirmedAt"]
        return path

    assert checker.post(f"{book()}/extend", {"expirationMinutes": 60})["status"] == "ON_HOLD"
    confirm(book(resellerReference="CHECK-1"))
    assert [one["resellerReference"] for one in checker.get("/bookings?resellerReference=CHECK-1")] == ["CHECK-1"]
    path = book()
    items = checker.get(path)["unitItems"]
    fewer = [{"uuid": one["uuid"], "unitId": one["unitId"]} for one in items[:2]]
    confirm(path, unitItems=fewer)
    assert [one["uuid"] for one in checker.get(path)["unitItems"]] == [one["uuid"] for one in fewer]
    assert checker.post(confirm(book()), {"notes": "By the window"}, "PATCH")["notes"] == "By the window"
    moved = checker.post(confirm(book()), {"availabilityId": later["availabilityId"]}, "PATCH")
    assert moved["availabilityId"] == later["availabilityId"]
    for path in (book(), confirm(book())):
        cancelled = checker.post(f"{path}/cancel", {"reason": "Rain"})
        assert (cancelled["status"], cancelled["cancellation"]["reason"]) == ("CANCELLED", "Rain")
        checker.refused("UNPROCESSABLE_ENTITY", "POST", f"{path}/cancel", {})
    for _ in range(6):
        confirm(book())


def test_a_product_of_opening_hours_can_be_booked(checker):
    product = next(one for one in checker.get("/products") if one["availabilityType"] == "OPENING_HOURS")
    aim = checker.first_open(product)[0]
    assert checker.reserve(aim, product["options"][0])["availability"]["allDay"] is True


def test_what_cannot_be_booked_is_refused(checker):
    first = next(one for one in checker.get("/products") if one["availabilityType"] == "START_TIME")
    aim, _ = checker.first_open(first)
    ticket = [{"unitId": first["options"][0]["units"][0]["id"]}]
    checker.refused("INVALID_PRODUCT_ID", "GET", "/products/nothing")
    checker.refused("BAD_REQUEST", "GET", "/bookings")
    checker.refused("INVALID_BOOKING_UUID", "GET", "/bookings/nothing")
    checker.refused("UNPROCESSABLE_ENTITY", "POST", "/bookings", {**aim, "unitItems": []})
    for key, code in (("productId", "PRODUCT"), ("optionId", "OPTION"), ("availabilityId", "AVAILABILITY")):
        checker.refused(f"INVALID_{code}_ID", "POST", "/bookings", {**aim, key: "nothing", "unitItems": ticket})
    checker.refused("INVALID_UNIT_ID", "POST", "/bookings", {**aim, "unitItems": [{"unitId": "nothing"}]})


@pytest.mark.deep(2)
def test_every_open_slot_of_that_product_has_the_room():
    """Whatever the day and the seed."""
    for seed in range(3):
        service = Service(SandboxConfig(seed=seed, today=NOW.date(), bookings=2_000))
        product = next(one for one in service.store.products.values() if one.availability_type == "START_TIME")
        option, today = product.options[0], service.today.toordinal()
        slots = [service.store.facts(product, option, n) for n in service.store.slot_numbers(option, today, today + 30)]
        assert {slot.status for slot in slots} >= {"AVAILABLE", "LIMITED", "SOLD_OUT"}
        assert min(slot.vacancies for slot in slots if slot.available) >= 10 * option.max_units
