"""The brief, sentence by sentence, over real sockets. The number in a name is the brief's section."""

# ruff: noqa: E501 - the cases read as tables, one per line

import datetime as dt
import uuid

import pytest

from octo_sync.sandbox.config import BASE_PATH

TRAM = "6b1f7b52-6d2e-4c0a-9d3a-0c8f1d7a4e11"
SUBSCRIPTIONS = "/notifications/subscriptions"
TYPES = ["BOOKING_UPDATE", "PRODUCT_UPDATE", "AVAILABILITY_UPDATE"]


def error_of(answer, status, code):
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    body = answer.json()
    assert body["error"] == code
    assert isinstance(body["errorMessage"], str)
    assert body["errorMessage"]
    return body


# 1. What the service does


def test_brief_1_four_steps_in_order(box):
    product = box.get("/products").json()[0]
    option = product["options"][0]
    window = {"localDateStart": "2026-12-01", "localDateEnd": "2026-12-31"}
    slots = box.post("/availability", {"productId": product["id"], "optionId": option["id"], **window}).json()
    slot = next(one for one in slots if one["available"] and one["vacancies"] > 2)
    held = box.post(
        "/bookings",
        {
            "productId": product["id"],
            "optionId": option["id"],
            "availabilityId": slot["id"],
            "unitItems": [{"unitId": option["units"][0]["id"]}],
        },
    ).json()
    assert held["status"] == "ON_HOLD"
    sold = box.post(f"/bookings/{held['uuid']}/confirm", {"contact": {"firstName": "Ana"}}).json()
    assert sold["status"] == "CONFIRMED"
    assert sold["contact"]["firstName"] == "Ana"


def test_brief_1_a_reservation_expires_if_not_confirmed(box):
    held = box.reserve(expirationMinutes=5)
    assert held["utcExpiresAt"] == "2026-11-20T12:05:00Z"
    box.control("PUT", "/clock", {"advance": 301})
    assert box.get(f"/bookings/{held['uuid']}").json()["status"] == "EXPIRED"
    error_of(box.post(f"/bookings/{held['uuid']}/confirm", {"contact": {}}), 400, "INVALID_BOOKING_UUID")


@pytest.mark.parametrize("path", ["/supplier", "/products", "/bookings?localDate=2026-11-20", "/capabilities"])
def test_brief_1_operation_groups_exist(box, path):
    assert box.get(path).status_code == 200


def test_brief_1_header_octo_capabilities_is_required(box):
    error_of(box.get("/products", caps=None), 400, "BAD_REQUEST")
    assert box.get("/products", caps="").status_code == 200


@pytest.mark.parametrize(
    ("spelling", "echo"),
    [("pricing", "pricing"), ("octo/pricing", "octo/pricing"), ("octo/content ,  pricing", "octo/content, pricing")],
)
def test_brief_1_capabilities_short_and_prefixed(box, spelling, echo):
    answer = box.get("/products", caps=spelling)
    assert "pricingPer" in answer.json()[0] or "title" in answer.json()[0]
    assert answer.headers["octo-capabilities"] == echo


def test_brief_1_unknown_capabilities_are_not_activated(box):
    answer = box.get("/products", caps="octo/pricing, octo/teleport")
    assert answer.headers["octo-capabilities"] == "octo/pricing"


def test_brief_1_pricing_in_minor_units(box):
    products = {one["id"]: one for one in box.get("/products", caps="pricing").json()}
    found = {}
    for product in products.values():
        option = product["options"][0]
        price = (option if product["pricingPer"] == "BOOKING" else option["units"][0])["pricingFrom"][0]
        assert all(isinstance(price[key], int) for key in ("original", "retail", "currencyPrecision"))
        found[price["currency"]] = price["currencyPrecision"]
    assert found == {"EUR": 2, "GBP": 2, "USD": 2, "JPY": 0, "BHD": 3, "KWD": 3}


def test_brief_1_without_pricing_nothing_is_priced(box):
    window = {"productId": TRAM, "optionId": "DEFAULT", "localDate": "2026-12-01"}
    texts = [
        box.get("/products", caps="content, extras").text,
        box.post("/availability", window, caps="content").text,
        box.get("/bookings?localDateStart=2026-11-20&localDateEnd=2026-11-30", caps="extras").text,
    ]
    for text in texts:
        assert "ricing" not in text
        assert "urrency" not in text


def test_brief_1_content_is_localized(box):
    titles = {
        language: box.get(f"/products/{TRAM}", caps="content", headers={"Accept-Language": language}).json()["title"]
        for language in ("en", "pt", "ja")
    }
    assert len(set(titles.values())) == 3
    assert "title" not in box.get(f"/products/{TRAM}", caps="pricing").json()


def test_brief_1_extras_for_units(box):
    product = box.get(f"/products/{TRAM}", caps="extras, pricing").json()
    unit = product["options"][0]["units"][0]
    assert unit["extras"][0]["restrictions"].keys() == {"default", "required", "minQuantity", "maxQuantity"}
    assert unit["extras"][0]["pricingFrom"][0]["currency"] == "EUR"
    texts = box.get(f"/products/{TRAM}", caps="extras, content").json()["options"][0]["units"][0]["extras"][0]
    assert texts.keys() >= {"title", "shortDescription", "description"}
    assert "extras" not in box.get(f"/products/{TRAM}", caps="pricing").json()["options"][0]["units"][0]


def test_brief_1_notifications_must_be_enabled(box):
    error_of(box.get(SUBSCRIPTIONS, caps="pricing"), 400, "BAD_REQUEST")
    assert box.get(SUBSCRIPTIONS, caps="octo/notifications").status_code == 200


def test_brief_1_rule_1_several_capabilities_in_one_list(box):
    answer = box.get("/products", caps="pricing,content,extras")
    assert answer.headers["octo-capabilities"] == "pricing, content, extras"
    assert {"pricingPer", "title"} <= answer.json()[0].keys()


@pytest.mark.parametrize(
    ("accept", "used"),
    [("pt", "pt"), ("pt-BR, en;q=0.5", "pt"), ("fr, ja;q=0.2, en;q=0.1", "ja"), ("xx", "en"), ("", "en"), ("en;q=0, pt", "pt"), ("*", "en")],
)  # fmt: skip
def test_brief_1_rule_2_accept_language_selects_the_content(box, accept, used):
    answer = box.get("/products", caps="content", headers={"Accept-Language": accept})
    assert answer.headers["content-language"] == used


def test_brief_1_rule_3_language_headers(box):
    answer = box.get("/products", caps="content")
    assert answer.headers["content-language"] == "en"
    assert answer.headers["octo-available-languages"] == "en, pt, ja"
    without = box.get("/products", caps="pricing")
    assert "content-language" not in without.headers
    assert "octo-available-languages" not in without.headers


# 2. Resources


def test_brief_2_subscription_fields(box):
    made = box.subscribe("http://127.0.0.1:9/hook", *TYPES, headers={"X-Key": "fictitious"})
    assert made.keys() == {"id", "url", "notificationTypes"}
    assert str(uuid.UUID(made["id"])) == made["id"]
    assert made["notificationTypes"] == TYPES


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"notificationTypes": ["BOOKING_UPDATE"]}, "url"),
        ({"url": "http://a.example.com"}, "notificationTypes"),
        ({"url": "not a url", "notificationTypes": ["BOOKING_UPDATE"]}, "url"),
        ({"url": 7, "notificationTypes": ["BOOKING_UPDATE"]}, "url"),
        ({"url": "http://a.example.com", "notificationTypes": []}, "notificationTypes"),
        ({"url": "http://a.example.com", "notificationTypes": ["ORDER_UPDATE"]}, "notificationTypes"),
        ({"url": "http://a.example.com", "notificationTypes": "BOOKING_UPDATE"}, "notificationTypes"),
        ({"url": "http://a.example.com", "notificationTypes": ["BOOKING_UPDATE"], "headers": []}, "headers"),
        ({"url": "http://a.example.com", "notificationTypes": ["BOOKING_UPDATE"], "headers": {"a": 1}}, "headers"),
        ({"url": "http://a.example.com", "notificationTypes": ["BOOKING_UPDATE"], "headers": {"a": "b\r\nc"}}, "headers"),
    ],
)  # fmt: skip
def test_brief_2_bad_subscriptions_name_the_field(box, body, field):
    answer = box.post(SUBSCRIPTIONS, body, caps="notifications")
    assert field in error_of(answer, 400, "BAD_REQUEST")["errorMessage"]


def test_brief_2_body_must_be_json(box):
    answer = box.call("POST", SUBSCRIPTIONS, caps="notifications", content=b"{not json")
    error_of(answer, 400, "BAD_REQUEST")


def test_brief_2_headers_are_never_shown(box):
    made = box.subscribe("http://127.0.0.1:9/hook", headers={"X-Key": "fictitious"})
    path = f"{SUBSCRIPTIONS}/{made['id']}"
    more = {"who": "a", "caps": "notifications"}
    patched = box.call("PATCH", path, json={"headers": {"X-Key": "fictitious-2"}}, **more)
    for answer in (box.get(SUBSCRIPTIONS, **more), box.get(path, **more), patched):
        assert answer.status_code == 200
        assert "fictitious" not in answer.text
        assert "headers" not in answer.text


def test_brief_2_other_resources(box):
    booking = box.reserve()
    assert booking["uuid"]
    assert booking["id"]
    assert box.get("/supplier").json()["endpoint"] == box.base_url


# 3. States


def test_brief_3_states_on_hold_confirmed_cancelled(box):
    booking = box.reserve()
    assert booking["status"] == "ON_HOLD"
    booking = box.confirm(booking)
    assert (booking["status"], booking["utcExpiresAt"]) == ("CONFIRMED", None)
    assert booking["utcConfirmedAt"] is not None
    cancelled = box.post(f"/bookings/{booking['uuid']}/cancel", {"reason": "rain"}, who="a").json()
    assert cancelled["status"] == "CANCELLED"
    assert cancelled["cancellation"]["reason"] == "rain"


def test_brief_3_a_booking_can_be_updated_by_an_administrator(box):
    booking = box.confirm(box.reserve())
    box.control("POST", f"/admin/bookings/{booking['uuid']}", {"notes": "seat by the window"})
    assert box.get(f"/bookings/{booking['uuid']}").json()["notes"] == "seat by the window"


def test_brief_3_a_subscription_exists_from_creation_until_deletion(box):
    made = box.subscribe("http://127.0.0.1:9/hook")
    more = {"who": "a", "caps": "notifications"}
    path = f"{SUBSCRIPTIONS}/{made['id']}"
    assert box.get(path, **more).json() == made
    assert box.call("DELETE", path, **more).status_code == 204
    error_of(box.get(path, **more), 404, "NOT_FOUND")


# 4. Endpoints


@pytest.mark.parametrize("path", [SUBSCRIPTIONS, f"{SUBSCRIPTIONS}/", "/notifications/subcriptions"])
def test_brief_4_create_answers_201(box, path):
    body = {"url": "https://hook.example.com/x", "notificationTypes": ["PRODUCT_UPDATE"]}
    answer = box.post(path, body, caps="octo/notifications")
    assert answer.status_code == 201
    assert answer.json() == {"id": answer.json()["id"], **body}


def test_brief_4_list_answers_200_with_an_array(box):
    made = [box.subscribe(f"http://127.0.0.1:9/{number}") for number in range(2)]
    answer = box.get(SUBSCRIPTIONS, who="a", caps="notifications")
    assert (answer.status_code, answer.json()) == (200, made)
    assert box.get(SUBSCRIPTIONS, who="b", caps="notifications").json() == []


def test_brief_4_update_answers_200_with_the_subscription(box):
    made = box.subscribe("http://127.0.0.1:9/hook")
    path = f"{SUBSCRIPTIONS}/{made['id']}"
    body = {"url": "http://127.0.0.1:9/other", "notificationTypes": ["PRODUCT_UPDATE"]}
    answer = box.call("PATCH", path, json=body, who="a", caps="notifications")
    assert (answer.status_code, answer.json()) == (200, {"id": made["id"], **body})


def test_brief_4_delete_answers_204_without_a_body(box):
    made = box.subscribe("http://127.0.0.1:9/hook")
    path = f"{SUBSCRIPTIONS}/{made['id']}"
    answer = box.call("DELETE", path, who="a", caps="notifications")
    assert (answer.status_code, answer.content) == (204, b"")


@pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE"])
def test_brief_4_unknown_subscription_is_not_found(box, method):
    path = f"{SUBSCRIPTIONS}/00000000-0000-4000-8000-000000000000"
    error_of(box.call(method, path, json={}, caps="notifications"), 404, "NOT_FOUND")


def test_brief_4_another_tokens_subscription_is_not_found(box):
    made = box.subscribe("http://127.0.0.1:9/hook")
    answer = box.get(f"{SUBSCRIPTIONS}/{made['id']}", who="b", caps="notifications")
    error_of(answer, 404, "NOT_FOUND")


# 5. Authentication


@pytest.mark.parametrize("path", ["/supplier", "/products", "/capabilities", SUBSCRIPTIONS, "/nowhere"])
@pytest.mark.parametrize("who", [None, "wrong"])
def test_brief_5_every_request_needs_a_token(box, path, who):
    error_of(box.get(path, who=who, caps="notifications"), 401, "Unauthorized")


@pytest.mark.parametrize(
    ("who", "reads", "writes"),
    [("a", 200, 201), ("readonly", 200, 403), ("none", 403, 403)],
)
def test_brief_5_abilities(box, who, reads, writes):
    assert box.get(SUBSCRIPTIONS, who=who, caps="notifications").status_code == reads
    body = {"url": "http://127.0.0.1:9/", "notificationTypes": ["BOOKING_UPDATE"]}
    answer = box.post(SUBSCRIPTIONS, body, who=who, caps="notifications")
    assert answer.status_code == writes
    if writes == 403:
        assert "octo:write.notifications" in error_of(answer, 403, "FORBIDDEN")["errorMessage"]


# 7. Errors


def test_brief_7_invalid_product_id(box):
    assert error_of(box.get("/products/nope"), 400, "INVALID_PRODUCT_ID")["productId"] == "nope"


@pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE"])
def test_brief_7_invalid_booking_uuid(box, method):
    assert error_of(box.call(method, "/bookings/nope", json={}), 400, "INVALID_BOOKING_UUID")["uuid"] == "nope"


def test_brief_7_unprocessable_entity(box):
    booking = box.confirm(box.reserve())
    error_of(box.post(f"/bookings/{booking['uuid']}/confirm", {"contact": {}}), 400, "UNPROCESSABLE_ENTITY")


def test_brief_7_unauthorized(box):
    error_of(box.get("/supplier", who="wrong"), 401, "Unauthorized")


def test_brief_7_unknown_path_is_an_octo_error(box):
    error_of(box.get("/nowhere"), 404, "NOT_FOUND")


# 9. Versioning


def test_brief_9_the_version_is_part_of_the_path(box):
    assert box.base_url.endswith(BASE_PATH) == box.base_url.endswith("/octo/v1")
    assert dt.date.fromisoformat(box.state()["today"]) == dt.date(2026, 11, 20)
