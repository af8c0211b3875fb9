"""The recorded answers of a third-party OCTO server pass the shape check whole."""

import json
from pathlib import Path

import pytest

from octo_sync.octo import checking

SAMPLES = Path(__file__).resolve().parents[3] / "shared" / "octo" / "samples"
HERE = pytest.mark.skipif(not SAMPLES.is_dir(), reason="the samples of a third-party server are not here")
CHECKS = {
    "availability_PPB_OH": checking.check_availability,
    "availability_PPU_ST": checking.check_availability,
    "products_pricing": checking.check_products,
    "products_pricing_content": checking.check_products,
    "supplier": checking.check_supplier,
}


@HERE
@pytest.mark.parametrize("name", CHECKS)
def test_every_record_of_a_third_party_answer_fits(name):
    body = (SAMPLES / f"{name}.json").read_bytes()
    sent = json.loads(body)
    checked = CHECKS[name](body)
    assert checked.bad == ()
    assert checked.ids == tuple(str(r["id"]) for r in (sent if isinstance(sent, list) else [sent]))
    if name != "supplier":
        assert "pricing" in checked.capabilities


def test_a_count_that_is_no_whole_number_is_set_aside_with_its_path_and_the_rest_goes_on():
    good = {"id": 7, "localDateTimeStart": "2026-11-20T09:00:00Z", "vacancies": 3}
    bad = {"id": "x", "localDateTimeStart": "2026-11-20T10:00:00Z", "vacancies": 7.5}
    checked = checking.check_availability(json.dumps([good, bad]).encode())
    assert checked.ids == ("7",)
    assert [(b.key, b.path) for b in checked.bad] == [("x", "[1].vacancies")]


@pytest.mark.parametrize("said", [["anything:at_all"], {"x": 1}, None])
@pytest.mark.parametrize(
    ("check", "record", "twice"),
    [
        (
            checking.check_availability,
            {"id": "a", "localDateTimeStart": "2026-11-20T09:00:00Z"},
            {"unitPricing": [{"unitId": "u", "currency": "EUR", "currencyPrecision": 2}] * 2},
        ),
        (checking.check_bookings, {"uuid": "b", "status": "CONFIRMED"}, {"unitItems": [{"uuid": "i"}] * 2}),
        (checking.check_products, {"id": "p", "options": []}, {"options": [{"id": "o"}] * 2}),
    ],
)
def test_what_the_check_notes_of_a_record_no_service_can_say(check, record, twice, said):
    """It is an unknown field as any other."""
    both = [record | {"oddities": said}, record | twice | {"id": "n", "uuid": "n", "oddities": said}]
    checked = check(json.dumps(both).encode())
    assert checked.bad == ()
    assert "oddities" in checked.unknown
    first, second = (each for line in checked.records for each in json.loads(line))
    assert "oddities" not in first
    assert second["oddities"] == [f"stands_twice:{next(iter(twice))}"]
