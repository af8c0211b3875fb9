"""The brief's section 6: which change is told to whom, and how."""

import pytest

ALL = ("BOOKING_UPDATE", "PRODUCT_UPDATE", "AVAILABILITY_UPDATE")
TRAM = "6b1f7b52-6d2e-4c0a-9d3a-0c8f1d7a4e11"


def idle(box):
    return box.control("GET", "/deliveries")["idle"]


def of(receiver, kind):
    return [body["data"] for body in receiver.bodies if body["notificationType"] == kind]


def test_brief_6_booking_update_on_each_step(box, receiver, until):
    box.subscribe(receiver.url)
    booking = box.reserve()
    until(lambda: len(receiver.calls) == 1)
    box.confirm(booking)
    until(lambda: len(receiver.calls) == 2)
    box.control("POST", f"/admin/bookings/{booking['uuid']}", {"notes": "x"})
    until(lambda: len(receiver.calls) == 3)
    box.post(f"/bookings/{booking['uuid']}/cancel", {}, who="a")
    until(lambda: len(receiver.calls) == 4)
    assert {data["uuid"] for data in of(receiver, "BOOKING_UPDATE")} == {booking["uuid"]}


def test_brief_6_booking_data_or_only_the_uuid(fresh, receiver, until):
    fresh.subscribe(receiver.url)
    bookings = {}
    for _ in range(12):
        booking = fresh.reserve()
        bookings[booking["uuid"]] = booking
    until(lambda: len(receiver.calls) == 12)
    shapes = {frozenset(data) for data in of(receiver, "BOOKING_UPDATE")}
    assert shapes == {frozenset({"uuid"}), frozenset({"uuid", "id", "utcCreatedAt"})}
    for data in of(receiver, "BOOKING_UPDATE"):
        booking = bookings[data["uuid"]]
        assert data.items() <= {key: booking[key] for key in ("uuid", "id", "utcCreatedAt")}.items()


def test_brief_6_product_update_on_create_update_delete(box, receiver, until):
    box.subscribe(receiver.url, "PRODUCT_UPDATE")
    box.control("POST", "/admin/products", {"copy_of": TRAM, "id": "prod_new"})
    box.control("PATCH", "/admin/products/prod_new", {"internal_name": "Renamed"})
    assert box.get("/products/prod_new").json()["internalName"] == "Renamed"
    box.control("DELETE", "/admin/products/prod_new")
    until(lambda: len(receiver.calls) == 3)
    assert of(receiver, "PRODUCT_UPDATE") == [{"productId": "prod_new"}] * 3
    assert box.get("/products/prod_new").json()["error"] == "INVALID_PRODUCT_ID"


def test_brief_6_availability_update_on_closeouts_not_on_sales(box, receiver, until):
    box.subscribe(receiver.url, "AVAILABILITY_UPDATE")
    box.reserve()
    change = {"product_id": TRAM, "from": "2026-12-24", "to": "2026-12-26"}
    box.control("POST", "/admin/availability", {**change, "action": "close"})
    box.control("POST", "/admin/availability", {**change, "action": "reset"})
    until(lambda: len(receiver.calls) == 2)
    expected = {"productId": TRAM, "localDateStart": "2026-12-24", "localDateEnd": "2026-12-26"}
    assert of(receiver, "AVAILABILITY_UPDATE") == [expected, expected]


def test_brief_6_only_subscriptions_that_include_the_type(box, receiver, until):
    box.subscribe(receiver.url, "PRODUCT_UPDATE")
    box.reserve()
    box.control("PATCH", f"/admin/products/{TRAM}", {"reference": "TRAM-000"})
    until(lambda: receiver.calls and idle(box))
    assert [body["notificationType"] for body in receiver.bodies] == ["PRODUCT_UPDATE"]


def test_brief_6_delivery_rule_1_post_json_with_the_envelope(box, receiver, until):
    made = box.subscribe(receiver.url + "/hook?x=1")
    box.reserve()
    call = until(lambda: receiver.calls)[0]
    assert (call["method"], call["path"]) == ("POST", "/hook?x=1")
    assert call["headers"]["content-type"] == "application/json"
    assert call["body"].keys() == {"subscriptionId", "notificationType", "data"}
    assert (call["body"]["subscriptionId"], call["body"]["notificationType"]) == (made["id"], "BOOKING_UPDATE")


def test_brief_6_delivery_rule_2_custom_headers(box, receiver, until):
    made = box.subscribe(receiver.url, headers={"X-Hook-Key": "fictitious", "X-Other": "2"})
    box.reserve()
    until(lambda: len(receiver.calls) == 1)
    path = f"/notifications/subscriptions/{made['id']}"
    more = {"who": "a", "caps": "notifications"}
    box.call("PATCH", path, json={"notificationTypes": ["BOOKING_UPDATE"]}, **more)
    box.reserve()
    until(lambda: len(receiver.calls) == 2)
    for call in receiver.calls:
        assert call["headers"]["x-hook-key"] == "fictitious"
        assert call["headers"]["x-other"] == "2"


def test_brief_6_delivery_rule_3_failed_deliveries_are_retried_with_backoff(box, receiver, until):
    box.subscribe(receiver.url)
    receiver.answers = [500, 404, 302]
    box.reserve()
    until(lambda: len(receiver.calls) == 4)
    assert [call["status"] for call in receiver.calls] == [500, 404, 302, 200]
    assert {call["path"] for call in receiver.calls} == {"/"}  # redirects are not followed
    assert len({str(body) for body in receiver.bodies}) == 1
    delivery = until(lambda: idle(box) and box.control("GET", "/deliveries")["deliveries"][-1])
    assert delivery["state"] == "delivered"
    assert [attempt["status"] for attempt in delivery["attempts"]] == [500, 404, 302, 200]


def test_brief_6_delivery_rule_3_gives_up_after_the_configured_attempts(box, receiver, until):
    box.subscribe(receiver.url)
    receiver.answers = [500] * 20
    box.reserve()
    until(lambda: len(receiver.calls) == 4 and idle(box))
    assert box.control("GET", "/deliveries")["deliveries"][-1]["state"] == "failed"


def test_brief_6_delivery_rule_3_a_dead_receiver_is_retried(box, until):
    box.subscribe("http://127.0.0.1:9/nobody")
    box.reserve()
    until(lambda: idle(box))
    delivery = box.control("GET", "/deliveries")["deliveries"][-1]
    assert [attempt["error"] for attempt in delivery["attempts"]] == ["ConnectError"] * 4


@pytest.mark.parametrize("status", [200, 201, 202, 204])
def test_brief_6_any_2xx_is_success(box, receiver, until, status):
    box.subscribe(receiver.url)
    receiver.answers = [status]
    box.reserve()
    until(lambda: receiver.calls and idle(box))
    assert box.control("GET", "/deliveries")["deliveries"][-1]["state"] == "delivered"


def test_brief_6_delivery_rule_4_only_the_creating_token(box, receiver, until):
    own = box.subscribe(receiver.url, *ALL, who="a")
    box.subscribe(receiver.url, *ALL, who="b")
    box.subscribe(receiver.url, *ALL, who="all")
    booking = box.reserve(who="a")
    box.control("POST", f"/admin/bookings/{booking['uuid']}", {"notes": "by the administrator"})
    until(lambda: len(receiver.calls) >= 2 and idle(box))
    assert {body["subscriptionId"] for body in receiver.bodies} == {own["id"]}


def test_brief_6_silent_changes_are_not_told(box, receiver, until):
    box.subscribe(receiver.url, *ALL)
    booking = box.reserve()
    until(lambda: len(receiver.calls) == 1)
    told = box.control("GET", "/deliveries")["events"]
    box.control("POST", f"/admin/bookings/{booking['uuid']}", {"notes": "lost", "silent": True})
    box.control("PATCH", f"/admin/products/{TRAM}", {"reference": "TRAM-000", "silent": True})
    assert box.control("GET", "/deliveries")["events"] == told
