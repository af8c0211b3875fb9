"""Vacancies follow bookings, down and up, and never below zero."""

import pytest

TRAM = "6b1f7b52-6d2e-4c0a-9d3a-0c8f1d7a4e11"


def vacancies(box, slot):
    body = {
        "productId": slot["product_id"],
        "optionId": slot["option_id"],
        "availabilityIds": [slot["availability_id"]],
    }
    return box.post("/availability", body).json()[0]["vacancies"]


def test_seeded_bookings_fit(box):
    taken = {}
    for one in box.state()["bookings"]:
        if one["status"] in {"ON_HOLD", "CONFIRMED", "PENDING", "REDEEMED"} and not one["test"] and not one["freesale"]:
            key = (one["product_id"], one["option_id"], one["availability_id"])
            taken.setdefault(key, []).append(one)
    pax = {
        (product["id"], option["id"], unit["id"]): unit["pax_count"]
        for product in box.state()["products"]
        for option in product["options"]
        for unit in option["units"]
    }
    slots = box.slots(**{"from": "2026-08-01", "to": "2027-04-01"})
    assert any(slot["taken"] for slot in slots)
    for slot in slots:
        key = (slot["product_id"], slot["option_id"], slot["availability_id"])
        places = sum(pax[(*key[:2], item["unit_id"])] for one in taken.get(key, ()) for item in one["unit_items"])
        assert slot["taken"] == places
        assert slot["capacity"] is None or 0 <= slot["vacancies"] <= slot["capacity"] - places


def test_each_step_of_a_booking_moves_vacancies(box):
    slot = box.open_slot(at_least=8)
    free = vacancies(box, slot)
    first = box.reserve(slot, units=("adult", "adult", "child"))
    assert vacancies(box, slot) == free - 3
    box.confirm(first)
    assert vacancies(box, slot) == free - 3
    second = box.reserve(slot, expirationMinutes=1)
    assert vacancies(box, slot) == free - 4
    box.control("PUT", "/clock", {"advance": 61})
    assert vacancies(box, slot) == free - 3
    assert box.get(f"/bookings/{second['uuid']}").json()["status"] == "EXPIRED"
    box.post(f"/bookings/{first['uuid']}/cancel", {}, who="a")
    assert vacancies(box, slot) == free


def test_a_family_takes_four_places(box):
    slot = box.open_slot("42", "DEFAULT")
    product = box.get("/products/42").json()
    units = {unit["type"]: unit["id"] for unit in product["options"][0]["units"]}
    free = vacancies(box, slot)
    box.reserve(slot, units=(units["FAMILY"],))
    assert vacancies(box, slot) == free - 4


def test_rejection_gives_places_back(box):
    slot = box.open_slot("c3a0f7de-51b4-4f0e-8f43-7a1d2b9c6e05", "DEFAULT", at_least=3)
    free = vacancies(box, slot)
    booking = box.confirm(box.reserve(slot))
    assert booking["status"] == "PENDING"
    assert vacancies(box, slot) == free - 1
    box.control("POST", f"/admin/bookings/{booking['uuid']}", {"status": "REJECTED"})
    assert vacancies(box, slot) == free


def test_nobody_buys_more_than_there_is(fresh):
    slot = fresh.open_slot(at_least=4)
    left = vacancies(fresh, slot)
    while left:
        party = min(left, 5)
        fresh.reserve(slot, units=("adult",) * party)
        left -= party
    assert vacancies(fresh, slot) == 0
    body = {
        "productId": slot["product_id"],
        "optionId": slot["option_id"],
        "availabilityId": slot["availability_id"],
        "unitItems": [{"unitId": "adult"}],
    }
    assert fresh.post("/bookings", body).json()["error"] == "UNPROCESSABLE_ENTITY"


def test_test_bookings_take_no_place(box):
    slot = box.open_slot()
    free = vacancies(box, slot)
    body = {
        "productId": slot["product_id"],
        "optionId": slot["option_id"],
        "availabilityId": slot["availability_id"],
        "unitItems": [{"unitId": "adult"}],
    }
    booking = box.post("/bookings", body, headers={"Octo-Env": "test"}).json()
    assert booking["testMode"] is True
    assert vacancies(box, slot) == free


def test_a_party_sees_availability_relative_to_itself(box):
    slot = box.open_slot(at_least=2)
    body = {
        "productId": slot["product_id"],
        "optionId": slot["option_id"],
        "availabilityIds": [slot["availability_id"]],
    }
    many = {**body, "units": [{"id": "adult", "quantity": slot["vacancies"] + 1}]}
    row = box.post("/availability", many).json()[0]
    assert (row["status"], row["available"], row["vacancies"]) == ("SOLD_OUT", False, 0)
    two = {**body, "units": [{"id": "adult", "quantity": 2}]}
    row = box.post("/availability", two).json()[0]
    assert row["pricing"]["retail"] == 2 * slot["prices"][0]["retail"]
    unknown = {**body, "units": [{"id": "alien", "quantity": 2}]}
    assert box.post("/availability", unknown).json()["error"] == "INVALID_UNIT_ID"


@pytest.mark.parametrize(("action", "status"), [("close", "CLOSED"), ("capacity", "SOLD_OUT")])
def test_administrators_change_slots(box, action, status):
    change = {"product_id": TRAM, "option_id": "DEFAULT", "from": "2026-12-15", "to": "2026-12-16"}
    assert box.control("POST", "/admin/availability", {**change, "action": action, "capacity": 0})["slots"] == 8
    body = {"productId": TRAM, "optionId": "DEFAULT", "localDateStart": "2026-12-15", "localDateEnd": "2026-12-16"}
    assert {row["status"] for row in box.post("/availability", body).json()} == {status}
    assert {row["status"] for row in box.post("/availability/calendar", body).json()} == {status}
    box.control("POST", "/admin/availability", {**change, "action": "reset"})
