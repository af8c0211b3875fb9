"""What the API shows equals the sandbox's own truth, which is made without the API's serialisers."""

import datetime as dt

import pytest

WINDOW = {"from": "2026-08-22", "to": "2027-03-20"}
AUTUMN = {"from": "2026-10-01", "to": "2026-11-03"}


def money(price):
    return {key: price[key] for key in ("original", "retail", "net")}


def chunks(first, last, days=100):
    first, last = dt.date.fromisoformat(first), dt.date.fromisoformat(last)
    while first <= last:
        end = min(last, first + dt.timedelta(days=days))
        yield first.isoformat(), end.isoformat()
        first = end + dt.timedelta(days=1)


@pytest.mark.deep(0.3, everyday=2)
@pytest.mark.parametrize("style", [None, "iso", "date", "pipe", "compact"])
def test_availability_equals_the_state_across_daylight_saving(box, style):
    box.quirks(availability_id_style=style)
    seen = 0
    window = WINDOW if style is None else AUTUMN
    for product in box.state()["products"]:
        for option in product["options"]:
            truth = box.slots(product_id=product["id"], option_id=option["id"], **window)
            body = {"productId": product["id"], "optionId": option["id"]}
            rows = []
            for first, last in chunks(window["from"], window["to"]):
                rows += box.post("/availability", {**body, "localDateStart": first, "localDateEnd": last}).json()
            assert len(rows) == len(truth)
            for row, slot in zip(rows, truth, strict=True):
                seen += 1
                assert row["id"] == slot["availability_id"]
                assert row["localDateTimeStart"] == slot["local_start"]
                assert row["localDateTimeEnd"] == slot["local_end"]
                assert row["utcCutoffAt"] == slot["utc_cutoff"]
                assert (row["status"], row["available"]) == (slot["status"], slot["available"])
                assert (row["vacancies"], row["capacity"]) == (slot["vacancies"], slot["capacity"])
                assert row["maxUnits"] == slot["max_units"]
                assert [[hours["from"], hours["to"]] for hours in row["openingHours"]] == slot["opening_hours"]
                if slot["price"] is not None:
                    assert money(row["pricing"]) == money(slot["price"])
                    assert row["pricing"]["includedTaxes"] == slot["price"]["taxes"]
                else:
                    shown = [(one["unitId"], money(one), one["includedTaxes"]) for one in row["unitPricing"]]
                    assert shown == [(one["unit_id"], money(one), one["taxes"]) for one in slot["prices"]]
            assert len({row["id"] for row in rows}) == len(rows)
    assert seen > (5_000 if style is None else 500)


@pytest.mark.deep(0.7)
def test_offsets_change_with_daylight_saving(box):
    offsets = {
        product["time_zone"]: {slot["local_start"][-6:] for slot in box.slots(product_id=product["id"], **WINDOW)}
        for product in box.state()["products"]
    }
    assert offsets["Europe/London"] == {"+01:00", "+00:00"}
    assert offsets["Australia/Lord_Howe"] == {"+10:30", "+11:00"}
    assert offsets["Pacific/Chatham"] == {"+12:45", "+13:45"}
    assert offsets["Asia/Tokyo"] == {"+09:00"}


def test_bookings_equal_the_state(box):
    truth = {one["uuid"]: one for one in box.state()["bookings"]}
    shown = []
    for first, last in chunks("2026-08-01", "2027-03-31"):
        shown += box.get(f"/bookings?localDateStart={first}&localDateEnd={last}", caps="pricing, extras").json()
    assert sorted(one["uuid"] for one in shown) == sorted(truth)
    assert len(shown) == len(truth)
    for row in shown:
        own = truth[row["uuid"]]
        assert row["id"] == own["id"]
        assert row["status"] == own["status"]
        assert row["testMode"] == own["test"]
        assert (row["productId"], row["optionId"]) == (own["product_id"], own["option_id"])
        assert row["availabilityId"] == own["availability_id"]
        assert row["freesale"] == own["freesale"]
        if row["availability"] is not None:
            assert row["availability"]["localDateTimeStart"] == own["local_start"]
            assert row["availability"]["localDateTimeStart"][:10] == own["local_date"]
        for key, name in (
            ("utcCreatedAt", "utc_created_at"), ("utcUpdatedAt", "utc_updated_at"), ("utcExpiresAt", "utc_expires_at"),
            ("utcConfirmedAt", "utc_confirmed_at"), ("utcRedeemedAt", "utc_redeemed_at"),
            ("resellerReference", "reseller_reference"), ("supplierReference", "supplier_reference"), ("notes", "notes"),
        ):  # fmt: skip
            assert row[key] == own[name]
        assert money(row["pricing"]) == money(own)
        assert row["pricing"]["includedTaxes"] == own["taxes"]
        assert row["contact"]["emailAddress"] == own["contact"]["email_address"]
        assert len(row["unitItems"]) == len(own["unit_items"])
        for item, own_item in zip(row["unitItems"], own["unit_items"], strict=True):
            assert (item["uuid"], item["unitId"]) == (own_item["uuid"], own_item["unit_id"])
            assert item["status"] == own_item["status"]
            assert ("pricing" in item) == (own_item["total"] is not None)
            if own_item["total"] is not None:
                assert money(item["pricing"]) == own_item["total"]
            extras = [(one["extraId"], one["pricing"]["retail"]) for one in item["extraItems"]]
            assert extras == [(one["extra_id"], one["retail"]) for one in own_item["extra_items"]]


def test_products_equal_the_state(box):
    truth = {one["id"]: one for one in box.state()["products"]}
    for language in ("en", "pt", "ja"):
        for row in box.get("/products", caps="pricing, content, extras", headers={"Accept-Language": language}).json():
            own = truth[row["id"]]
            assert row["title"] == own["title"][language]
            assert row["shortDescription"] == own["short_description"][language]
            assert (row["defaultCurrency"], row["pricingPer"]) == (own["default_currency"], own["pricing_per"])
            assert (row["timeZone"], row["reference"]) == (own["time_zone"], own["reference"])
            for option, own_option in zip(row["options"], own["options"], strict=True):
                assert option["id"] == own_option["id"]
                assert option["availabilityLocalStartTimes"] == own_option["start_times"]
                for unit, own_unit in zip(option["units"], own_option["units"], strict=True):
                    assert (unit["id"], unit["type"]) == (own_unit["id"], own_unit["type"])
                    if own_unit["price_from"] is not None:
                        assert money(unit["pricingFrom"][0]) == money(own_unit["price_from"])
                    assert [one["id"] for one in unit["extras"]] == [one["id"] for one in own_unit["extras"]]


def test_a_booking_is_six_kilobytes(box):
    body = box.get("/bookings?localDateStart=2026-11-01&localDateEnd=2026-12-31").content
    count = body.count(b'"cancellable"')
    assert 4_000 < len(body) / count < 12_000


def test_state_is_restricted_by_token(box):
    own = box.state(seen_by="a")["bookings"]
    assert {one["token"] for one in own} == {"a"}
    assert own == box.state(seen_by="sandbox-token-a")["bookings"]
    assert len(box.state(seen_by="all")["bookings"]) == len(box.state()["bookings"])
    summary = box.control("GET", "/state/summary", params={"token": "a"})
    assert summary["bookings"] == len(own)
    assert sum(summary["statuses"].values()) == len(own)
    for currency, row in summary["currencies"].items():
        assert row["retail"] == sum(one["retail"] for one in own if one["currency"] == currency)
