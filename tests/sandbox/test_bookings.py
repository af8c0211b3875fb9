"""The booking flow beyond the brief: the specification's rules and our choices."""

# ruff: noqa: E501 - the cases read as tables, one per line

import uuid

import pytest

TRAM = "6b1f7b52-6d2e-4c0a-9d3a-0c8f1d7a4e11"
CITY_CARD = "8"


def refusal(answer):
    assert answer.status_code == 400, answer.text
    return answer.json()["error"]


def reserve_body(slot, **more):
    return {
        "productId": slot["product_id"],
        "optionId": slot["option_id"],
        "availabilityId": slot["availability_id"],
        "unitItems": [{"unitId": "adult"}],
        **more,
    }


def test_reserve_with_a_uuid_is_idempotent(box):
    own = str(uuid.UUID(int=77, version=4))
    slot = box.open_slot()
    first = box.reserve(slot, uuid=own)
    assert first["uuid"] == own
    assert box.reserve(slot, uuid=own) == first
    assert refusal(box.post("/bookings", reserve_body(slot, uuid=own), who="b")) == "INVALID_BOOKING_UUID"
    assert refusal(box.post("/bookings", reserve_body(slot, uuid="NOPE"))) == "BAD_REQUEST"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"productId": "nope"}, "INVALID_PRODUCT_ID"),
        ({"productId": None}, "INVALID_PRODUCT_ID"),
        ({"optionId": "nope"}, "INVALID_OPTION_ID"),
        ({"availabilityId": "2026-01-01T00:00:00Z"}, "INVALID_AVAILABILITY_ID"),
        ({"availabilityId": None}, "INVALID_AVAILABILITY_ID"),
        ({"unitItems": []}, "UNPROCESSABLE_ENTITY"),
        ({"unitItems": None}, "UNPROCESSABLE_ENTITY"),
        ({"unitItems": [{"unitId": "alien"}]}, "INVALID_UNIT_ID"),
        ({"unitItems": [{"unitId": "infant"}]}, "UNPROCESSABLE_ENTITY"),
        ({"unitItems": [{"unitId": "adult"}] * 10}, "UNPROCESSABLE_ENTITY"),
        ({"currency": "XXX"}, "BAD_REQUEST"),
        ({"expirationMinutes": 0}, "BAD_REQUEST"),
        ({"expirationMinutes": True}, "BAD_REQUEST"),
        ({"notes": 7}, "BAD_REQUEST"),
        ({"resellerReference": ["R"]}, "BAD_REQUEST"),
        ({"contact": "Ana"}, "BAD_REQUEST"),
        ({"contact": {"locales": "pt"}}, "BAD_REQUEST"),
        ({"contact": {"locales": [7]}}, "BAD_REQUEST"),
        ({"contact": {"emailAddress": "ana"}}, "BAD_REQUEST"),
        ({"contact": {"country": 351}}, "BAD_REQUEST"),
        ({"unitItems": [{"unitId": "adult", "contact": {"emailAddress": "ana at home"}}]}, "BAD_REQUEST"),
        ({"unitItems": [{"unitId": "adult", "resellerReference": 7}]}, "BAD_REQUEST"),
    ],
)
def test_reserve_refusals(box, change, code):
    assert refusal(box.post("/bookings", {**reserve_body(box.open_slot()), **change})) == code


@pytest.mark.parametrize(
    ("method", "suffix", "body"),
    [
        ("POST", "/confirm", {"contact": {}, "emailReceipt": "yes"}),
        ("POST", "/confirm", {"contact": {"emailAddress": 7}}),
        ("POST", "/confirm", {"contact": []}),
        ("PATCH", "", {"emailReceipt": 1}),
        ("PATCH", "", {"notes": {}}),
        ("POST", "/cancel", {"force": "yes"}),
        ("POST", "/cancel", {"reason": 7}),
        ("DELETE", "", {"force": 1}),
        ("POST", "/extend", {"expirationMinutes": "30"}),
        ("POST", "/extend", [30]),
    ],
)
def test_bodies_that_the_published_schema_forbids(box, method, suffix, body):
    booking = box.reserve()
    path = f"/bookings/{booking['uuid']}"
    assert refusal(box.call(method, path + suffix, json=body, who="a")) == "BAD_REQUEST"
    assert box.get(path, who="a").json() == booking


def test_what_is_null_may_as_well_be_left_out(box):
    nothing = dict.fromkeys(("uuid", "resellerReference", "notes", "contact", "currency", "expirationMinutes"))
    held = box.reserve(**nothing)
    box.confirm(held, unitItems=None, emailReceipt=None, resellerReference=None)
    cancelled = box.post(f"/bookings/{held['uuid']}/cancel", {"reason": None, "force": None}, who="a")
    assert cancelled.json()["status"] == "CANCELLED"


def test_sold_out_closed_and_past_cannot_be_reserved(box):
    slots = box.slots(product_id=TRAM, option_id="DEFAULT", **{"from": "2026-11-20", "to": "2027-02-01"})
    for status in ("SOLD_OUT", "CLOSED"):
        slot = next(one for one in slots if one["status"] == status)
        assert refusal(box.post("/bookings", reserve_body(slot))) == "UNPROCESSABLE_ENTITY"
    past = box.slots(product_id=TRAM, option_id="DEFAULT", **{"from": "2026-10-20", "to": "2026-11-01"})
    slot = next(one for one in past if one["available"])
    assert refusal(box.post("/bookings", reserve_body(slot))) == "UNPROCESSABLE_ENTITY"


def test_freesale_needs_no_availability(box):
    body = {"productId": CITY_CARD, "optionId": "DEFAULT", "unitItems": [{"unitId": "adult"}]}
    booking = box.post("/bookings", body).json()
    assert (booking["freesale"], booking["availabilityId"], booking["availability"]) == (True, None, None)
    listed = box.get("/bookings?localDate=2026-11-20").json()
    assert booking["uuid"] in {one["uuid"] for one in listed}


def test_pending_is_decided_by_itself(box):
    booking = box.confirm(box.reserve(box.open_slot("c3a0f7de-51b4-4f0e-8f43-7a1d2b9c6e05", "DEFAULT")))
    assert booking["status"] == "PENDING"
    box.control("PUT", "/clock", {"advance": 1_801})
    assert box.get(f"/bookings/{booking['uuid']}").json()["status"] in {"CONFIRMED", "REJECTED"}


def test_update_changes_and_moves(box):
    booking = box.confirm(box.reserve(units=("adult", "adult")))
    target = box.open_slot(skip=5)
    kept = booking["unitItems"][0]["uuid"]
    body = {
        "notes": "moved",
        "availabilityId": target["availability_id"],
        "unitItems": [{"uuid": kept, "unitId": "adult"}],
        "contact": {"country": "PT"},
        "resellerReference": "R-9",
    }
    changed = box.call("PATCH", f"/bookings/{booking['uuid']}", json=body, who="a").json()
    assert changed["availability"]["localDateTimeStart"] == target["local_start"]
    assert [item["uuid"] for item in changed["unitItems"]] == [kept]
    assert (changed["notes"], changed["resellerReference"], changed["contact"]["country"]) == ("moved", "R-9", "PT")
    assert changed["pricing"]["retail"] == target["prices"][0]["retail"]
    assert changed["status"] == "CONFIRMED"


def test_extend_a_hold(box):
    booking = box.reserve()
    answer = box.post(f"/bookings/{booking['uuid']}/extend", {"expirationMinutes": 60}, who="a")
    assert answer.json()["utcExpiresAt"] == "2026-11-20T13:00:00Z"
    box.confirm(booking)
    answer = box.post(f"/bookings/{booking['uuid']}/extend", {}, who="a")
    assert refusal(answer) == "UNPROCESSABLE_ENTITY"


@pytest.mark.parametrize(("method", "suffix"), [("POST", "/cancel"), ("DELETE", ""), ("POST", "/cancel/")])
def test_both_cancel_spellings(box, method, suffix):
    booking = box.reserve()
    answer = box.call(method, f"/bookings/{booking['uuid']}{suffix}", who="a")
    assert answer.json()["status"] == "CANCELLED"
    again = box.call(method, f"/bookings/{booking['uuid']}{suffix}", who="a")
    assert refusal(again) == "UNPROCESSABLE_ENTITY"


def test_refund_depends_on_the_cutoff(fresh):
    box = fresh
    slot = box.open_slot()
    early, late, started = (box.confirm(box.reserve(slot)) for _ in range(3))
    path = "/bookings/{}/cancel"
    more = {"who": "a"}
    assert box.post(path.format(early["uuid"]), {}, **more).json()["cancellation"]["refund"] == "FULL"
    box.control("PUT", "/clock", {"now": slot["utc_cutoff"], "advance": 1})
    assert box.post(path.format(late["uuid"]), {}, **more).json()["cancellation"]["refund"] == "NONE"
    box.control("PUT", "/clock", {"now": slot["utc_start"], "advance": 1})
    assert refusal(box.post(path.format(started["uuid"]), {}, **more)) == "UNPROCESSABLE_ENTITY"
    forced = box.post(path.format(started["uuid"]), {"force": True}, **more).json()
    assert forced["status"] == "CANCELLED"


def test_extras_are_bought_and_priced(box):
    body = reserve_body(box.open_slot(), unitItems=[{"unitId": "adult", "extraItems": [{"extraId": "extra_x_snack"}]}])
    with_extra = box.post("/bookings", {**body, "extraItems": [{"extraId": "x_photo"}]}, caps="pricing, extras").json()
    assert [one["extraId"] for one in with_extra["extraItems"]] == ["x_photo"]
    item = with_extra["unitItems"][0]
    assert [one["extraId"] for one in item["extraItems"]] == ["x_snack"]
    adult = item["unit"]["pricing"][0]["retail"]
    assert item["pricing"]["retail"] > adult
    assert (
        with_extra["pricing"]["retail"] == item["pricing"]["retail"] + with_extra["extraItems"][0]["pricing"]["retail"]
    )
    unknown = {**body, "extraItems": [{"extraId": "nope"}]}
    assert refusal(box.post("/bookings", unknown, caps="extras")) == "BAD_REQUEST"


def test_list_filters(box):
    box.reserve(resellerReference="FIND-ME")
    found = box.get("/bookings?resellerReference=FIND-ME", who="a").json()
    assert [one["resellerReference"] for one in found] == ["FIND-ME"]
    reference = found[0]["supplierReference"]
    found = box.get(f"/bookings?supplierReference={reference}", who="a").json()
    assert {one["supplierReference"] for one in found} == {reference}
    window = "/bookings?localDateStart=2026-11-01&localDateEnd=2026-12-31"
    everything = box.get(window).json()
    order = [(one["utcCreatedAt"], one["uuid"]) for one in everything]
    assert order == sorted(order)
    narrowed = box.get(f"{window}&productId={TRAM}&optionId=DEFAULT").json()
    assert narrowed == [one for one in everything if (one["productId"], one["optionId"]) == (TRAM, "DEFAULT")]
    assert all(one["availability"]["localDateTimeStart"][:10] >= "2026-11-01" for one in narrowed)


@pytest.mark.parametrize(
    "query",
    ["", "?productId=8", "?resellerReference=", "?localDateStart=2026-11-01", "?localDate=soon", "?localDateStart=2026-11-02&localDateEnd=2026-11-01"],
)  # fmt: skip
def test_list_refusals(box, query):
    assert refusal(box.get(f"/bookings{query}")) == "BAD_REQUEST"


def test_a_token_sees_its_own_bookings_only(box):
    booking = box.reserve(who="a")
    assert refusal(box.get(f"/bookings/{booking['uuid']}", who="b")) == "INVALID_BOOKING_UUID"
    assert box.get(f"/bookings/{booking['uuid']}", who="all").status_code == 200
    window = "/bookings?localDateStart=2026-11-01&localDateEnd=2027-03-31"
    assert booking["uuid"] not in {one["uuid"] for one in box.get(window, who="b").json()}
    assert booking["uuid"] in {one["uuid"] for one in box.get(window, who="a").json()}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"productId": "nope", "optionId": "x"}, "INVALID_PRODUCT_ID"),
        ({"productId": TRAM, "optionId": "x"}, "INVALID_OPTION_ID"),
        ({"productId": TRAM, "optionId": "DEFAULT"}, "BAD_REQUEST"),
        ({"productId": TRAM, "optionId": "DEFAULT", "localDateStart": "2026-12-01"}, "BAD_REQUEST"),
        ({"productId": TRAM, "optionId": "DEFAULT", "localDateStart": "2026-12-02", "localDateEnd": "2026-12-01"}, "BAD_REQUEST"),
        ({"productId": TRAM, "optionId": "DEFAULT", "localDateStart": "2026-01-01", "localDateEnd": "2027-12-01"}, "BAD_REQUEST"),
        ({"productId": TRAM, "optionId": "DEFAULT", "availabilityIds": ["x"]}, "INVALID_AVAILABILITY_ID"),
    ],
)  # fmt: skip
def test_availability_refusals(box, body, code):
    assert refusal(box.post("/availability", body)) == code
    if code != "INVALID_AVAILABILITY_ID":
        assert refusal(box.post("/availability/calendar", body)) == code


ONE, OTHER = "2026-12-01T09:30:00+00:00", "2026-12-01T11:30:00+00:00"
RANGE = {"localDateStart": "2026-12-01", "localDateEnd": "2026-12-02"}


@pytest.mark.parametrize(
    "asked",
    [
        {"availabilityIds": [ONE], **RANGE},
        {"availabilityIds": [ONE], "localDateStart": "2026-12-01"},
        {"availabilityIds": [ONE], "localDate": "2026-12-01"},
        {"localDate": "2026-12-01", **RANGE},
        {"localDate": "2026-12-01", "localDateEnd": "2026-12-02"},
        {"availabilityIds": []},
        {"availabilityIds": [ONE] * 101},
        {"availabilityIds": ONE},
        {"availabilityIds": [7]},
        {"localDate": "2026-12-01", "units": {}},
        {"localDate": "2026-12-01", "units": [{"id": "adult"}]},
        {"localDate": "2026-12-01", "units": [{"id": "adult", "quantity": True}]},
        {"localDate": "2026-12-01", "currency": 978},
    ],
)
def test_availability_bodies_that_the_published_schema_forbids(box, asked):
    assert refusal(box.post("/availability", {"productId": TRAM, "optionId": "DEFAULT", **asked})) == "BAD_REQUEST"


def test_an_availability_id_that_is_given_twice_is_answered_once(box):
    body = {"productId": TRAM, "optionId": "DEFAULT", "availabilityIds": [OTHER, ONE] * 50}
    assert [row["id"] for row in box.post("/availability", body).json()] == [OTHER, ONE]


def test_availability_by_date_range_and_ids_agree(box):
    body = {"productId": TRAM, "optionId": "DEFAULT"}
    ranged = box.post("/availability", {**body, "localDateStart": "2026-12-01", "localDateEnd": "2026-12-02"}).json()
    days = [box.post("/availability/", {**body, "localDate": f"2026-12-0{day}"}).json() for day in (1, 2)]
    assert ranged == days[0] + days[1]
    assert box.post("/availability", {**body, "availabilityIds": [row["id"] for row in ranged]}).json() == ranged
