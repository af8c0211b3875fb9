"""Each quirk shows its effect; the list comes from the discover route, so a quirk without a test fails."""

from email.utils import parsedate_to_datetime

import httpx
import pytest

from octo_sync.sandbox.quirks import CATALOGUE

TRAM = "6b1f7b52-6d2e-4c0a-9d3a-0c8f1d7a4e11"
SUBSCRIPTIONS = "/notifications/subscriptions"
WINDOW = "/bookings?localDateStart=2026-11-01&localDateEnd=2026-12-31"
WEEK = {"productId": TRAM, "optionId": "DEFAULT", "localDateStart": "2026-11-10", "localDateEnd": "2026-12-31"}


def rate_limit_per_minute(box):
    box.control("PUT", "/clock", {"advance": 120})
    box.quirks(rate_limit_per_minute=2)
    answers = [box.get("/supplier") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert [answer.headers["octo-ratelimit-remaining"] for answer in answers] == ["1", "0", "0"]
    assert answers[0].headers["octo-ratelimit-limit"] == "2"
    assert int(answers[2].headers["octo-ratelimit-retryafter"]) == 60
    assert box.get("/bookings?localDate=2026-11-20").status_code == 200
    box.control("PUT", "/clock", {"advance": 61})
    assert box.get("/supplier").status_code == 200


def rate_limit_style(box):
    for style in ("seconds", "date", "ratelimit", "x-ratelimit"):
        box.control("PUT", "/clock", {"advance": 120})
        box.quirks(rate_limit_per_minute=2, rate_limit_style=style)
        now = box.control("GET", "/clock")["seconds"]
        first = box.get("/bookings?localDate=2026-11-20")
        box.control("PUT", "/clock", {"advance": 20})
        box.get("/supplier")
        refused = box.get("/bookings?localDate=2026-11-20")
        assert (first.status_code, refused.status_code) == (200, 429)
        told = refused.headers["retry-after"]
        if style == "date":
            assert parsedate_to_datetime(told).timestamp() == now + 60
        else:
            assert told == "40"
        if "limit" in style:
            limit, left, reset = (refused.headers[f"{style}-{name}"] for name in ("limit", "remaining", "reset"))
            assert (limit, left) == ("2", "0")
            assert int(reset) == (now + 60 if style == "x-ratelimit" else 40)
            assert first.headers[f"{style}-remaining"] == "1"
        assert not any(name.startswith("octo-ratelimit") for name in refused.headers)
        box.control("PUT", "/clock", {"advance": 41})
        assert box.get("/supplier").status_code == 200


def block_after_4xx(box):
    box.control("PUT", "/clock", {"advance": 120})
    box.quirks(block_after_4xx=3)
    codes = [box.get("/products/nope").status_code for _ in range(4)]
    assert codes == [400, 400, 400, 429]
    assert box.get("/supplier").status_code == 429
    box.control("PUT", "/clock", {"advance": 122})
    assert box.get("/supplier").status_code == 200


def list_cap_100(box):
    whole = box.get(WINDOW).json()
    box.quirks(list_cap_100=True)
    assert box.get(WINDOW).json() == whole[:100]


def capability_header_hangs_on_products(box):
    box.quirks(capability_header_hangs_on_products=True)
    assert box.get("/products", caps="").status_code == 200
    with pytest.raises(httpx.ReadTimeout):
        box.get("/products", caps="pricing", timeout=0.1)


def capability_spelling(box):
    for spelling, works in (("prefixed", "octo/pricing"), ("short", "pricing")):
        box.quirks(capability_spelling=spelling)
        for header in ("pricing", "octo/pricing"):
            answer = box.get("/products", caps=header)
            assert ("pricingPer" in answer.json()[0]) == (header == works)
            assert answer.headers["octo-capabilities"] == (header if header == works else "")


def no_capability_echo(box):
    box.quirks(no_capability_echo=True)
    assert "octo-capabilities" not in box.get("/products").headers


def always_on(box):
    box.quirks(always_on=["pricing"])
    assert "pricingPer" in box.get("/products", caps="").json()[0]


def supplier_path_prefix(box):
    box.quirks(supplier_path_prefix=True)
    assert box.get("/products").status_code == 404
    assert len(box.get("/suppliers/sup_octo_sandbox/products").json()) == 8
    assert box.get("/suppliers/sup_octo_sandbox").json()["id"] == "sup_octo_sandbox"


def booking_date_is_creation(box):
    box.quirks(booking_date_is_creation=True)
    rows = box.get("/bookings?localDateStart=2026-11-01&localDateEnd=2026-11-10").json()
    assert rows
    assert {row["utcCreatedAt"][:7] for row in rows} == {"2026-11"}
    assert all("2026-11-01" <= row["utcCreatedAt"][:10] <= "2026-11-10" for row in rows)
    assert any(row["availability"]["localDateTimeStart"] > "2026-11-11" for row in rows if row["availability"])


def cancelled_not_listed(box):
    whole = box.get(WINDOW).json()
    cancelled = [row for row in whole if row["status"] == "CANCELLED"]
    assert cancelled
    box.quirks(cancelled_not_listed=True)
    assert box.get(WINDOW).json() == [row for row in whole if row["status"] != "CANCELLED"]
    assert box.get(f"/bookings/{cancelled[0]['uuid']}").json()["status"] == "CANCELLED"


def lapsed_holds_unreadable(box):
    rows = box.get(WINDOW).json()
    one = {row["status"]: row["uuid"] for row in rows}
    box.quirks(lapsed_holds_unreadable=True)
    assert box.get(WINDOW).json() == rows
    answer = box.get(f"/bookings/{one['EXPIRED']}")
    assert (answer.status_code, answer.json()["error"]) == (400, "INVALID_BOOKING_UUID")
    assert box.get(f"/bookings/{one['CONFIRMED']}").status_code == 200


def unit_items_keep_on_hold(box):
    box.quirks(unit_items_keep_on_hold=True)
    rows = box.get(WINDOW).json()
    assert {item["status"] for row in rows for item in row["unitItems"]} == {"ON_HOLD"}
    assert "CONFIRMED" in {row["status"] for row in rows}


def dehydrated_bookings(box):
    box.quirks(dehydrated_bookings=True)
    for row in box.get(WINDOW).json():
        assert not {"product", "option"} & row.keys()
        assert not any("unit" in item for item in row["unitItems"])
        assert row["productId"]


def closed_days_omitted(box):
    whole = box.post("/availability", WEEK).json()
    days = box.post("/availability/calendar", WEEK).json()
    box.quirks(closed_days_omitted=True)
    assert box.post("/availability", WEEK).json() == [row for row in whole if row["status"] != "CLOSED"]
    assert box.post("/availability/calendar", WEEK).json() == [row for row in days if row["status"] != "CLOSED"]
    assert any(row["status"] == "CLOSED" for row in whole)


def past_dates_empty(box):
    box.quirks(past_dates_empty=True)
    assert box.post("/availability", WEEK).json()[0]["localDateTimeStart"][:10] == "2026-11-20"
    past = {**WEEK, "localDateEnd": "2026-11-15"}
    assert box.post("/availability", past).json() == []
    assert box.post("/availability/calendar", past).json() == []


def range_limit_days(box):
    longest = {"localDateStart": "2027-01-01", "localDateEnd": "2028-01-01"}
    assert box.post("/availability", {**WEEK, **longest}).status_code == 200
    assert box.post("/availability", {**WEEK, **longest, "localDateEnd": "2028-01-02"}).json()["error"] == "BAD_REQUEST"
    box.quirks(range_limit_days=10)
    assert box.post("/availability", WEEK).json()["error"] == "BAD_REQUEST"
    assert box.post("/availability", {**WEEK, "localDateEnd": "2026-11-20"}).status_code == 200


def _update(box, request, **quirk):
    receiver, until = request.getfixturevalue("receiver"), request.getfixturevalue("until")
    box.quirks(**quirk)
    box.subscribe(receiver.url, "AVAILABILITY_UPDATE")
    change = {"product_id": TRAM, "option_id": "DEFAULT", "from": "2026-12-15", "to": "2026-12-15"}
    box.control("POST", "/admin/availability", {**change, "action": "reset"})
    until(lambda: receiver.calls)
    return receiver.bodies[0]["data"]


def horizon_days(box):
    box.quirks(horizon_days=3)
    assert box.post("/availability", WEEK).json()[-1]["localDateTimeStart"][:10] == "2026-11-23"
    assert box.post("/availability/calendar", WEEK).json()[-1]["localDate"] == "2026-11-23"
    beyond = {"productId": TRAM, "optionId": "DEFAULT", "availabilityIds": ["2026-11-24T09:30:00+00:00"]}
    assert box.post("/availability", beyond).json()["error"] == "INVALID_AVAILABILITY_ID"


def availability_days_zone(box):
    sushi = {"productId": "prod_sushi", "optionId": "opt_lunch", "localDate": "2026-12-01"}
    seals = {"productId": "c3a0f7de-51b4-4f0e-8f43-7a1d2b9c6e05", "optionId": "DEFAULT", "localDate": "2026-12-01"}
    starts = [row["localDateTimeStart"] for row in box.post("/availability", sushi).json()]
    box.quirks(availability_days_zone="UTC")
    # 11:00 in Tokyo is 2:00 UTC of the same day; 13:45 at Waitangi is 0:00 UTC, and 7:15 the evening before.
    assert [row["localDateTimeStart"] for row in box.post("/availability", sushi).json()] == starts
    starts = [row["localDateTimeStart"][:16] for row in box.post("/availability", seals).json()]
    assert starts == ["2026-12-01T13:45", "2026-12-02T07:15"]


def update_with_availability_ids(box, request):
    data = _update(box, request, update_with_availability_ids=True)
    assert data.keys() == {"productId", "optionId", "availabilityIds"}
    rows = box.post("/availability", {"productId": TRAM, "optionId": "DEFAULT", "localDate": "2026-12-15"}).json()
    assert data["availabilityIds"] == [row["id"] for row in rows]


def update_without_dates(box, request):
    assert _update(box, request, update_without_dates=True) == {"productId": TRAM}


def availability_id_style(box):
    styles = {
        None: "2026-12-15T09:30:00+00:00",
        "iso": "2026-12-15T09:30:00+00:00",
        "pipe": "2026-12-15T09:30:00+00:00|2026-12-15T12:00:00+00:00",
        "compact": "20261215093000_150_",
        "date": "2026-12-15T09:30:00+00:00",
    }
    body = {"productId": TRAM, "optionId": "DEFAULT", "localDate": "2026-12-15"}
    for style, expected in styles.items():
        box.quirks(availability_id_style=style)
        ident = box.post("/availability", body).json()[0]["id"]
        assert ident.startswith(expected)
        again = box.post("/availability", {"productId": TRAM, "optionId": "DEFAULT", "availabilityIds": [ident]})
        assert again.json()[0]["id"] == ident


def no_calendar(box):
    box.quirks(no_calendar=True)
    assert box.post("/availability/calendar", WEEK).status_code == 404


def no_capabilities_endpoint(box):
    assert box.get("/capabilities", caps=None).status_code == 200
    box.quirks(no_capabilities_endpoint=True)
    assert box.get("/capabilities").status_code == 404


def no_patch(box):
    booking = box.reserve()
    box.quirks(no_patch=True)
    assert box.call("PATCH", f"/bookings/{booking['uuid']}", json={"notes": "x"}).status_code == 404


def no_extend(box):
    booking = box.reserve()
    box.quirks(no_extend=True)
    assert box.post(f"/bookings/{booking['uuid']}/extend", {}).status_code == 404


def opening_hours_as_object(box):
    box.quirks(opening_hours_as_object=True)
    body = {"productId": "42", "optionId": "DEFAULT", "localDate": "2026-12-01"}
    assert box.post("/availability", body).json()[0]["openingHours"] == {"from": "10:00", "to": "13:00"}


def ids_as_numbers(box):
    box.quirks(ids_as_numbers=True)
    ids = [product["id"] for product in box.get("/products").json()]
    assert 42 in ids
    assert TRAM in ids
    rows = box.get(f"{WINDOW}&productId=42").json()
    assert {row["productId"] for row in rows} == {42}
    body = {"productId": 42, "optionId": "DEFAULT", "localDate": "2026-12-01"}
    assert box.post("/availability", body).status_code == 200


def vacancies_omitted(box):
    box.quirks(vacancies_omitted=True)
    for row in box.post("/availability", WEEK).json():
        assert not {"vacancies", "capacity"} & row.keys()


def capacity_zero_when_sold_out(box):
    box.quirks(capacity_zero_when_sold_out=True)
    rows = [row for row in box.post("/availability", WEEK).json() if row["status"] == "SOLD_OUT"]
    assert rows
    assert {row["capacity"] for row in rows} == {0}


def error_style(box):
    box.quirks(error_style="ventrata")
    answer = box.get("/supplier", who="wrong")
    assert (answer.status_code, answer.json()["error"]) == (403, "FORBIDDEN")
    box.quirks(error_style="plain404")
    for path in ("/nowhere", "/products/nope"):
        answer = box.get(path)
        assert (answer.status_code, answer.text) == (404, "Not Found")
    box.quirks(error_style="422")
    assert box.post("/bookings", {**WEEK, "availabilityId": box.open_slot()["availability_id"]}).status_code == 422


def create_path_typo_only(box):
    box.quirks(create_path_typo_only=True)
    body = {"url": "http://127.0.0.1:9/", "notificationTypes": ["BOOKING_UPDATE"]}
    assert box.post(SUBSCRIPTIONS, body, caps="notifications").status_code == 404
    assert box.post("/notifications/subcriptions", body, caps="notifications").status_code == 201


def subscription_200(box):
    box.quirks(subscription_200=True)
    body = {"url": "http://127.0.0.1:9/", "notificationTypes": ["BOOKING_UPDATE"]}
    made = box.post(SUBSCRIPTIONS, body, caps="notifications")
    assert made.status_code == 200
    assert box.call("DELETE", f"{SUBSCRIPTIONS}/{made.json()['id']}", caps="notifications").status_code == 200


def subscription_id_key(box):
    box.quirks(subscription_id_key="subscriptionId")
    assert box.subscribe("http://127.0.0.1:9/").keys() == {"subscriptionId", "url", "notificationTypes"}


def subscription_headers_shown(box):
    box.quirks(subscription_headers_shown=True)
    assert box.subscribe("http://127.0.0.1:9/", headers={"X-Key": "k"})["headers"] == {"X-Key": "k"}


def subscriptions_paged(box):
    made = [box.subscribe(f"http://127.0.0.1:9/{number}") for number in range(3)]
    box.quirks(subscriptions_paged=2)
    more = {"who": "a", "caps": "notifications"}
    first = box.get(SUBSCRIPTIONS, **more)
    assert first.json() == made[:2]
    assert first.headers["link"] == f'<{box.base_url}{SUBSCRIPTIONS}?page=2>; rel="next"'
    second = box.get(f"{SUBSCRIPTIONS}?page=2", **more)
    assert second.json() == made[2:]
    assert "link" not in second.headers


def unknown_enums(box):
    box.quirks(unknown_enums=True)
    products = box.get("/products").json()
    assert all("HTML_URL" in product["deliveryFormats"] for product in products)
    types = {unit["type"] for product in products for option in product["options"] for unit in option["units"]}
    assert "VIP" in types
    rows = box.get("/bookings?localDateStart=2026-08-22&localDateEnd=2026-11-19").json()
    assert "NOSHOW" in {row["status"] for row in rows}


def ventrata_content(box):
    box.quirks(ventrata_content=True)
    product = box.get(f"/products/{TRAM}", caps="content").json()
    assert product["highlights"] == ["Small groups"]
    assert product["subtitle"]
    assert "features" not in product


def available_languages_header(box):
    box.quirks(available_languages_header="Available-Languages")
    headers = box.get("/products", caps="content").headers
    assert headers["available-languages"] == "en, pt, ja"
    assert "octo-available-languages" not in headers


def test_bookings_in_feed(box, request):
    receiver, until = request.getfixturevalue("receiver"), request.getfixturevalue("until")
    whole = box.get(WINDOW).json()
    assert any(row["testMode"] for row in whole)
    box.quirks(test_bookings_in_feed=False)
    assert box.get(WINDOW).json() == [row for row in whole if not row["testMode"]]
    only = box.get(WINDOW, headers={"Octo-Env": "test"}).json()
    assert only == [row for row in whole if row["testMode"]]
    box.subscribe(receiver.url)
    slot = box.open_slot()
    body = {
        "productId": slot["product_id"],
        "optionId": slot["option_id"],
        "availabilityId": slot["availability_id"],
        "unitItems": [{"unitId": "adult"}],
    }
    box.post("/bookings", body, who="a", headers={"Octo-Env": "test"})
    live = box.reserve(slot)
    until(lambda: receiver.calls)
    assert [one["data"]["uuid"] for one in receiver.bodies] == [live["uuid"]]


test_bookings_in_feed.__test__ = False


def trailing_slash_redirect(box):
    assert box.get("/supplier/").status_code == 200
    box.quirks(trailing_slash_redirect=True)
    answer = box.get("/supplier/")
    assert (answer.status_code, answer.headers["location"]) == (301, "/octo/v1/supplier")


def option_bare_400(box):
    box.quirks(option_bare_400=[f"{TRAM}/DEFAULT"])
    answer = box.post("/availability", WEEK)
    assert (answer.status_code, answer.content) == (400, b"")
    assert box.post("/availability", {**WEEK, "optionId": "opt_private"}).status_code == 200


def ignored_capability(box):
    box.quirks(ignored_capability=["pricing"])
    answer = box.get("/products", caps="pricing, content")
    assert answer.headers["octo-capabilities"] == "content"
    assert "pricingPer" not in answer.json()[0]


def absent_capability(box):
    box.quirks(absent_capability=["octo/extras", "notifications"])
    assert [one["id"] for one in box.get("/capabilities", caps=None).json()] == ["octo/pricing", "octo/content"]
    answer = box.get("/products", caps="extras, pricing")
    assert answer.headers["octo-capabilities"] == "pricing"
    assert "extras" not in answer.json()[0]["options"][0]
    assert box.get(SUBSCRIPTIONS, caps="notifications").status_code == 404


def no_authentication(box):
    own = box.get(WINDOW, who="a").json()
    box.quirks(no_authentication=True)
    assert box.get(WINDOW, who="a").json() == own
    everything = box.get(WINDOW).json()
    assert box.get(WINDOW, who=None).json() == everything
    assert box.get(WINDOW, who=None, headers={"Authorization": "Bearer nonsense"}).json() == everything


def product_id_suffix(box, request):
    receiver, until = request.getfixturevalue("receiver"), request.getfixturevalue("until")
    before = [product["id"] for product in box.get("/products").json()]
    box.quirks(product_id_suffix="-x")
    assert [product["id"] for product in box.get("/products").json()] == [f"{one}-x" for one in before]
    gone = box.get(f"/products/{TRAM}")
    assert (gone.json()["error"], gone.json()["productId"]) == ("INVALID_PRODUCT_ID", TRAM)
    assert box.get(f"/products/{TRAM}-x").json()["id"] == f"{TRAM}-x"
    assert box.post("/availability", WEEK).status_code == 400
    assert box.post("/availability", {**WEEK, "productId": f"{TRAM}-x"}).json()
    rows = box.get(f"{WINDOW}&productId={TRAM}-x").json()
    assert {(row["productId"], row["product"]["id"]) for row in rows} == {(f"{TRAM}-x", f"{TRAM}-x")}
    assert box.get(f"{WINDOW}&productId={TRAM}").json() == []
    held = next(row for row in rows if row["status"] == "ON_HOLD")
    changed = box.call("PATCH", f"/bookings/{held['uuid']}", json={"optionId": held["optionId"], "notes": "same"})
    assert changed.json()["productId"] == f"{TRAM}-x"
    box.subscribe(receiver.url, "PRODUCT_UPDATE")
    box.control("PATCH", f"/admin/products/{TRAM}", {"locale": "en"})
    until(lambda: receiver.calls)
    assert receiver.bodies[0]["data"]["productId"] == f"{TRAM}-x"


def cancelled_hold_is_expired(box):
    box.quirks(cancelled_hold_is_expired=True)
    held, sold = box.reserve(), box.confirm(box.reserve())
    more = {"who": "a"}
    answer = box.post(f"/bookings/{held['uuid']}/cancel", {}, **more).json()
    assert (answer["status"], answer["cancellation"]["refund"]) == ("EXPIRED", "FULL")
    assert box.post(f"/bookings/{sold['uuid']}/cancel", {}, **more).json()["status"] == "CANCELLED"


def uuid_uppercase(box):
    before = [row["uuid"] for row in box.get(WINDOW).json()]
    box.quirks(uuid_uppercase=True)
    assert [row["uuid"] for row in box.get(WINDOW).json()] == [uuid.upper() for uuid in before]
    uuid = box.reserve()["uuid"]
    assert uuid.isupper()
    assert box.get(f"/bookings/{uuid}").json()["uuid"] == uuid


def early_bookings_without_id(box):
    box.quirks(early_bookings_without_id=True)
    for row in box.get(WINDOW).json():
        assert not {"id", "utcCreatedAt", "utcUpdatedAt", "product", "option"} & row.keys()
        assert row["uuid"]


def patch_drops_headers(box, request):
    receiver, until = request.getfixturevalue("receiver"), request.getfixturevalue("until")
    made = box.subscribe(receiver.url, headers={"X-Key": "k"})
    box.quirks(patch_drops_headers=True)
    path = f"{SUBSCRIPTIONS}/{made['id']}"
    box.call("PATCH", path, json={"url": receiver.url}, who="a", caps="notifications")
    box.reserve()
    until(lambda: receiver.calls)
    assert "x-key" not in receiver.calls[0]["headers"]


def hold_expiry_notifies(box, request):
    receiver, until = request.getfixturevalue("receiver"), request.getfixturevalue("until")
    quiet, loud = box.reserve(expirationMinutes=1), box.reserve(expirationMinutes=3)
    box.subscribe(receiver.url)
    box.control("PUT", "/clock", {"advance": 61})
    box.quirks(hold_expiry_notifies=True)
    box.control("PUT", "/clock", {"advance": 121})
    until(lambda: receiver.calls)
    assert [one["data"]["uuid"] for one in receiver.bodies] == [loud["uuid"]]
    assert quiet["uuid"] != loud["uuid"]


def client_update_notifies(box, request):
    receiver, until = request.getfixturevalue("receiver"), request.getfixturevalue("until")
    booking = box.reserve()
    box.subscribe(receiver.url)
    told = box.control("GET", "/deliveries")["events"]
    box.call("PATCH", f"/bookings/{booking['uuid']}", json={"notes": "quiet"})
    assert box.control("GET", "/deliveries")["events"] == told
    box.quirks(client_update_notifies=True)
    box.call("PATCH", f"/bookings/{booking['uuid']}", json={"notes": "loud"})
    until(lambda: receiver.calls)
    assert len(receiver.calls) == 1


def delivery_extra_fields(box, request):
    receiver, until = request.getfixturevalue("receiver"), request.getfixturevalue("until")
    box.quirks(delivery_extra_fields=True)
    box.subscribe(receiver.url)
    box.reserve()
    until(lambda: receiver.calls)
    assert receiver.bodies[0].keys() == {"id", "subscriptionId", "notificationType", "utcCreatedAt", "data"}


def fields_dropped(box):
    box.quirks(fields_dropped=["booking.utcUpdatedAt", "unit[CHILD].type", f"product[{TRAM}].options.units.reference"])
    rows = box.get(WINDOW).json()
    assert not any("utcUpdatedAt" in row for row in rows)
    assert "utcCreatedAt" in rows[0]
    for product in [*box.get("/products").json(), *(row["product"] for row in rows[:20])]:
        for unit in product["options"][0]["units"]:
            assert ("reference" in unit) == (product["id"] != TRAM)


def fields_moved(box):
    whole = box.get(WINDOW).json()
    box.quirks(fields_moved={"product.internalName": "name", "booking.contact": "people.lead"})
    rows = box.get(WINDOW).json()
    assert [row["people"] for row in rows] == [{"lead": row["contact"]} for row in whole]
    assert "contact" not in rows[0]
    assert rows[0]["product"]["name"] == whole[0]["product"]["internalName"]
    assert "internalName" not in rows[0]["product"]
    assert rows[0]["option"]["internalName"]


def fields_set(box):
    forever = "9999-12-31T23:59:59Z"
    box.quirks(
        fields_set={
            "booking[ON_HOLD].utcExpiresAt": forever,
            "availability[10%].vacancies": 10_000,
            "unit.restrictions.minWeight": {"kg": 1},
            "availability.unitPricing": None,
        }
    )
    for row in box.get(WINDOW).json():
        assert (row["utcExpiresAt"] == forever) == (row["status"] == "ON_HOLD")
        assert row["unitItems"][0]["unit"]["restrictions"]["minWeight"] == {"kg": 1}
    slots = box.post("/availability", WEEK).json()
    more = [slot["id"] for slot in slots if slot["vacancies"] == 10_000]
    assert 0 < len(more) < len(slots) / 3
    assert {slot["unitPricing"] for slot in slots} == {None}
    # The same ones, in whichever answer they stand.
    again = box.post("/availability", {**WEEK, "localDateStart": "2026-12-01"}).json()
    assert [slot["id"] for slot in again if slot["vacancies"] == 10_000] == [one for one in more if one >= "2026-12"]


def entries_doubled(box):
    whole = box.get(WINDOW).json()
    box.quirks(entries_doubled=["booking.unitItems", "booking.pricing.includedTaxes", "product.options"])
    rows = box.get(WINDOW).json()
    assert [row["unitItems"] for row in rows] == [[row["unitItems"][0], *row["unitItems"]] for row in whole]
    taxed = next(n for n, row in enumerate(whole) if row["pricing"]["includedTaxes"])
    taxes = whole[taxed]["pricing"]["includedTaxes"]
    assert rows[taxed]["pricing"]["includedTaxes"] == [taxes[0], *taxes]
    options = box.get(f"/products/{TRAM}").json()["options"]
    assert options[0] == options[1]


NEEDS_REQUEST = {
    "update_with_availability_ids", "update_without_dates", "test_bookings_in_feed", "patch_drops_headers",
    "hold_expiry_notifies", "client_update_notifies", "delivery_extra_fields", "product_id_suffix",
}  # fmt: skip


def test_every_quirk_is_discoverable_and_tested(box):
    listed = [one["quirk"] for one in box.control("GET", "")["quirks"]]
    assert listed == [quirk.name for quirk in CATALOGUE]
    assert [name for name in listed if not callable(globals().get(name))] == []


@pytest.mark.parametrize("name", [quirk.name for quirk in CATALOGUE])
def test_quirk(box, request, name):
    case = globals()[name]
    if name in NEEDS_REQUEST:
        case(box, request)
    else:
        case(box)
    assert name in box.control("GET", "/quirks")["active"] or name == "availability_id_style"


@pytest.mark.parametrize(
    "values",
    [
        {"nope": True},
        {"error_style": "loud"},
        {"list_cap_100": 3},
        {"always_on": "x"},
        {"fields_set": ["booking.id"]},
        {"fields_dropped": ["bookings.id"]},
        {"entries_doubled": ["booking"]},
        7,
    ],
)
def test_wrong_quirks_are_refused(box, values):
    assert box.client.put(f"{box.control_url}/quirks", json=values).status_code == 400
    assert box.control("GET", "/quirks")["active"] == {}
