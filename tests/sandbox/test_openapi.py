"""Answers against the OCTO OpenAPI document; fields of capabilities that are off are forbidden there."""

import pytest

CAPS = [(), ("pricing",), ("content",), ("pricing", "content")]


@pytest.fixture(scope="module", autouse=True)
def _as_seeded(_running, _http):
    """Other modules leave bookings behind that only their switches explain."""
    _http.post(_running.control_url + "/reset").raise_for_status()


@pytest.fixture(params=CAPS, ids=lambda caps: "+".join(caps) or "none")
def caps(request):
    return request.param


def test_supplier(box, validator, caps):
    validator("Supplier", box.get("/supplier", caps=",".join(caps)).json(), *caps)


def test_products(box, validator, caps):
    products = box.get("/products", caps=",".join(caps)).json()
    assert len(products) == 8
    for product in products:
        validator("Product", product, *caps)
        assert product["options"][0]["default"] is True
        assert [option["default"] for option in product["options"]].count(True) == 1
        assert product["options"][0]["units"][0]["type"] == "ADULT"
        opening = product["availabilityType"] == "OPENING_HOURS"
        assert all((option["availabilityLocalStartTimes"] == []) == opening for option in product["options"])


def test_availability_and_calendar(box, validator, caps):
    for product in box.get("/products").json():
        for option in product["options"]:
            body = {"productId": product["id"], "optionId": option["id"]}
            window = {**body, "localDateStart": "2026-11-18", "localDateEnd": "2026-11-22"}
            rows = box.post("/availability", window, caps=",".join(caps)).json()
            assert rows
            for row in rows:
                validator("Availability", row, *caps)
                assert row["allDay"] == (product["availabilityType"] == "OPENING_HOURS")
                assert bool(row["openingHours"]) == row["allDay"]
            days = box.post("/availability/calendar", window, caps=",".join(caps)).json()
            assert len(days) == 5
            for day in days:
                validator("AvailabilityCalendar", day, *caps)


def test_bookings(box, validator, caps):
    path = "/bookings?localDateStart=2026-11-10&localDateEnd=2026-12-05"
    bookings = box.get(path, caps=",".join(caps)).json()
    assert {one["status"] for one in bookings} >= {"CONFIRMED", "REDEEMED", "CANCELLED", "EXPIRED"}
    step = max(1, len(bookings) // 15)
    for booking in [*bookings[::step], *{one["status"]: one for one in bookings}.values()]:
        validator("Booking", booking, *caps)
    for booking in bookings:
        assert (booking["voucher"] is not None) == ("VOUCHER" in booking["deliveryMethods"])
        for item in booking["unitItems"]:
            assert (item["ticket"] is not None) == ("TICKET" in booking["deliveryMethods"])
        assert booking["deliveryMethods"] == booking["product"]["deliveryMethods"]
        assert (booking["status"] == "CANCELLED") == (booking["cancellation"] is not None)
        if booking["status"] == "CONFIRMED":
            assert booking["utcConfirmedAt"] is not None
            assert booking["utcExpiresAt"] is None


def test_flow_answers(box, validator):
    booking = box.reserve(box.open_slot())
    validator("Booking", booking, "pricing")
    validator("Booking", box.confirm(booking), "pricing")
    cancelled = box.call("DELETE", f"/bookings/{booking['uuid']}", who="a").json()
    validator("Booking", cancelled, "pricing")


def test_errors(box, validator):
    validator("ErrorInvalidProductID", box.get("/products/nope").json())
    validator("ErrorInvalidBookingUUID", box.get("/bookings/nope").json())
    validator("BaseError", box.get("/bookings").json())


def test_next_30_days_hold_every_status(box):
    found = {slot["status"] for slot in box.slots(**{"from": "2026-11-20", "to": "2026-12-20"})}
    assert found == {"AVAILABLE", "LIMITED", "SOLD_OUT", "FREESALE", "CLOSED"}


def test_all_booking_states_and_peculiarities_occur(box):
    bookings = box.state()["bookings"]
    assert {one["status"] for one in bookings} == {
        "ON_HOLD", "CONFIRMED", "EXPIRED", "CANCELLED", "REDEEMED", "PENDING", "REJECTED",
    }  # fmt: skip
    assert {one["refund"] for one in bookings} == {None, "FULL", "PARTIAL", "NONE"}
    assert {one["token"] for one in bookings} == {"all", "a", "b"}
    assert {one["test"] for one in bookings} == {True, False}
    assert any(one["freesale"] for one in bookings)
    assert any(one["extra_items"] for one in bookings)
    assert any(item["extra_items"] for one in bookings for item in one["unit_items"])
    assert any(item["contact"]["full_name"] for one in bookings for item in one["unit_items"])
    for one in bookings:
        email = one["contact"]["email_address"]
        assert email is None or email.endswith("@example.com")
