"""One record that does not fit is set aside with its path; the rest lands, and it comes back when it is mended."""

import json
import re

import httpx
import pytest
from tests import oracle
from tests.flows.harness import Wire, api_path, reply


def victim(service):
    return next(b for b in service.state()["bookings"] if b["local_date"].startswith("2026-12"))["uuid"]


def spoil(uuid, change):
    def edit(request, answer):
        if api_path(request) == "/bookings":
            rows = answer.json()
            for row in rows:
                if row["uuid"] == uuid:
                    change(row)
            return reply(rows)
        return None

    return edit


SPOILT = {
    "a text for a list": (lambda b: b.update(unitItems="many"), "unitItems"),
    "half a cent": (lambda b: b["pricing"].update(retail=7.5), "pricing.retail"),
    "a price as text": (lambda b: b["pricing"].update(retail="10"), "pricing.retail"),
    "five decimals": (lambda b: b["pricing"].update(currencyPrecision=5), "pricing.currencyPrecision"),
    "a price beyond 64 bits": (lambda b: b["pricing"].update(retail=2**70), "pricing.retail"),
    "no status": (lambda b: b.pop("status"), ""),
    "a date that does not exist": (lambda b: b.update(utcCreatedAt="2026-02-30T00:00:00Z"), "utcCreatedAt"),
    "a wrong type in a contact": (lambda b: b["contact"].update(emailAddress=5), "contact.emailAddress"),
    "a wrong type in a ticket": (lambda b: b["unitItems"][0].update(status=5), "unitItems[0].status"),
    "NUL": (lambda b: b.update(notes="a\u0000b"), ""),
    "a flag as a number": (lambda b: b.update(testMode=1), "testMode"),
}


async def test_records_that_do_not_fit_are_set_aside_with_their_paths_and_the_rest_lands(project, service):
    """Eleven bookings, each wrong in its own way, in one pull; then the service mends them."""
    uuids = [b["uuid"] for b in service.state()["bookings"] if b["local_date"].startswith("2026-12")]
    chosen = dict(zip(uuids, SPOILT, strict=False))

    def edit(request, answer):
        if api_path(request) == "/bookings":
            rows = answer.json()
            for row in rows:
                if row["uuid"] in chosen:
                    SPOILT[chosen[row["uuid"]]][0](row)
            return reply(rows)
        return None

    copy = project(availability=(0, 1))
    result = await copy.sync(transport=Wire.by(edit))
    assert result.status == "partial"
    assert {(q.resource, q.key) for q in result.quarantined} == {("bookings", uuid) for uuid in chosen}
    for q in result.quarantined:
        assert q.reason
        assert SPOILT[chosen[q.key]][1] in re.sub(r"^\[\d+\]", "", q.path), chosen[q.key]
    wrong = oracle.compare(copy.oracle(), copy.warehouse(), at_most=1000)
    assert all(any(uuid in difference for uuid in chosen) for difference in wrong), wrong
    assert {d for d in wrong if d.startswith("core.bookings ")} == {
        f"core.bookings (booking_uuid={uuid}): missing in the warehouse" for uuid in chosen
    }
    rows = copy.query("select resource, key, path from ops.quarantine order by key")
    assert rows == sorted((q.resource, q.key, q.path) for q in result.quarantined)

    result = await copy.sync()
    assert (result.status, result.quarantined) == ("ok", ())
    assert copy.differences() == []
    assert copy.query("select * from ops.quarantine") == []


@pytest.mark.deep(2)
async def test_a_record_without_a_readable_id_leaves_quarantine_when_it_is_mended(synced, service):
    copy, uuid = synced(), victim(service)
    result = await copy.sync(transport=Wire.by(spoil(uuid, lambda b: b.update(uuid=None))))
    assert [q.key[0] for q in result.quarantined] == ["#"]
    result = await copy.sync()
    assert (result.status, result.quarantined) == ("ok", ())
    assert copy.differences() == []


@pytest.mark.deep(2)
async def test_a_record_set_aside_keeps_its_last_good_row(synced, service):
    copy, uuid = synced(), victim(service)
    service.change(uuid, reseller_reference="NEW")
    result = await copy.sync(transport=Wire.by(spoil(uuid, lambda b: b.update(unitItems="many"))))
    assert result.status == "partial"
    assert {d.split(" ")[0] for d in copy.differences()} == {"core.bookings"}
    assert copy.query("select is_deleted from core.bookings where booking_uuid = $1", uuid) == [(False,)]
    assert (await copy.sync()).status == "ok"
    assert copy.differences() == []


@pytest.mark.deep(2)
@pytest.mark.parametrize("noun", ["products", "availability"])
async def test_so_it_is_for_products_and_departures(project, service, noun):
    copy = project(bookings=(-1, 1))
    chosen = service.state()["products"][1]["id"] if noun == "products" else service.slots()[0]["availability_id"]

    def edit(request, answer):
        if api_path(request) == f"/{noun}":
            rows = answer.json()
            for row in rows:
                if row["id"] == chosen:
                    row["options" if noun == "products" else "vacancies"] = "x"
            return reply(rows)
        return None

    result = await copy.sync(transport=Wire.by(edit))
    assert result.status == "partial"
    assert {(q.resource, q.key) for q in result.quarantined} == {(noun, chosen)}
    assert copy.differences() != []
    assert all(chosen in d or "more differences" in d for d in copy.differences())
    assert (await copy.sync()).status == "ok"
    assert copy.differences() == []


@pytest.mark.deep(2)
async def test_the_reason_of_a_quarantine_holds_no_value(project, service):
    uuid = victim(service)
    copy = project(availability=(0, 1))

    def change(booking):
        booking["contact"]["emailAddress"] = {"secret": "zz-quarantined-zz"}
        booking["pricing"]["retail"] = "zz-quarantined-zz"

    await copy.sync(transport=Wire.by(spoil(uuid, change)))
    for file in copy.directory.rglob("*"):
        if file.is_file():
            assert b"zz-quarantined-zz" not in file.read_bytes()


@pytest.mark.deep(2)
async def test_an_id_that_comes_twice_in_one_answer_lands_once_and_is_said(project, service):
    uuid = victim(service)
    copy = project(availability=(0, 1))

    def edit(request, answer):
        if api_path(request) == "/bookings":
            rows = answer.json()
            return reply([*rows, *(r for r in rows if r["uuid"] == uuid)])
        return None

    result = await copy.sync(transport=Wire.by(edit))
    assert result.status == "partial"
    assert [(q.key, "more than once" in q.reason) for q in result.quarantined] == [(uuid, True)]
    assert copy.differences() == []


@pytest.mark.deep(1, everyday=["bookings"])
@pytest.mark.parametrize("noun", ["products", "availability", "bookings"])
async def test_new_fields_are_ignored_and_counted_as_drift(project, service, noun):
    copy = project()

    def edit(request, answer):
        if api_path(request) == f"/{noun}":
            return reply([{**row, "surprise": {"deep": [1, None]}} for row in answer.json()])
        return None

    result = await copy.sync(transport=Wire.by(edit))
    assert result.status == "ok"
    assert copy.differences() == []
    found = copy.query("select resource, kind, name from ops.schema_drift where name like '%surprise%'")
    assert [(kind, name) for _, kind, name in found] == [("field", "surprise")]


async def test_unknown_values_of_an_enumeration_land_as_text_and_are_counted(project, service):
    copy = project(availability=(0, 3))
    service.quirks(unknown_enums=True)
    await copy.sync()
    statuses = {status for (status,) in copy.query("select distinct status from core.bookings")}
    assert "NOSHOW" in statuses
    found = copy.query("select kind, name from ops.schema_drift where kind = 'value'")
    assert any("NOSHOW" in name for _, name in found)
    assert any("VIP" in name for _, name in found)


NO_LIST = {
    "rubbish after the list": b"[]x",
    "an error object with 200": b'{"error": "X", "errorMessage": "y"}',
    "an object for a list": b"{}",
    "null": b"null",
    "numbers for records": b"[1, 2]",
    "UTF-16": b"\xff\xfe[]",
    "very deep": b"[" * 5000 + b"]" * 5000,
}


@pytest.mark.deep(2)
async def test_a_body_that_is_no_list_of_records_changes_nothing(synced):
    """Every window gets another one; one after the other, so that each has its turn."""
    copy = synced(sync={"attempts": 2}, limits={"attempts": 1})
    given = {}

    def edit(request, _answer):
        if api_path(request) == "/bookings":
            start = request.url.params["localDateStart"]
            given.setdefault(start, len(given))
            return httpx.Response(200, content=list(NO_LIST.values())[given[start] % len(NO_LIST)])
        return None

    result = await copy.sync(transport=Wire.by(edit))
    assert len(given) >= 6
    assert result.status == "partial"
    assert len([q for q in result.quarantined if q.resource == "bookings"]) >= 6
    assert copy.differences() == []


async def test_ids_that_look_like_sql_or_markup_are_stored_exactly(project, service):
    odd = "x'); drop table core.bookings; -- \"`<b>/../%00é🎉"
    uuid = victim(service)
    copy = project(availability=(0, 1))

    def change(booking):
        booking.update(id=odd, resellerReference=odd, productId=odd, optionId=odd)
        booking["unitItems"][0]["unitId"] = odd
        booking["contact"]["fullName"] = odd

    await copy.sync(transport=Wire.by(spoil(uuid, change)))
    held = copy.query(
        "select booking_id, reseller_reference, product_id, option_id from core.bookings where booking_uuid = $1", uuid
    )
    assert held == [(odd,) * 4]


@pytest.mark.deep(1)
async def test_a_product_whose_id_is_odd_is_asked_for_by_its_own_name(project, service):
    """Ids go into paths, journal keys and SQL; none of them may be torn."""
    odd = 'a/b?c#d "e" \\f é'
    copy = project(bookings=(-1, 1), availability=(0, 5))
    told = []

    def edit(request, answer):
        if api_path(request) == "/products":
            rows = answer.json()
            rows[0]["id"] = odd
            return reply(rows[:1])
        if api_path(request) == "/availability":
            told.append(json.loads(request.content)["productId"])
            return reply([])
        return None

    result = await copy.sync(transport=Wire.by(edit))
    assert result.status == "ok"
    assert set(told) == {odd}
    assert copy.query("select product_id from core.products") == [(odd,)]


async def test_a_record_that_moves_to_another_answer_and_fits_there_as_little_stays_told(project, service):
    copy, uuid, moved, held = project(availability=(0, 1)), victim(service), [], {}

    spoilt = spoil(uuid, lambda row: (row.update(unitItems="many"), held.update(row)))

    def edit(request, answer):
        found = spoilt(request, answer)
        if found is None or not moved:
            return found
        rows = [row for row in found.json() if row["uuid"] != uuid]
        if request.url.params["localDateStart"].startswith("2026-11"):
            start = {"localDateTimeStart": "2026-11-25T09:00:00Z", "localDateTimeEnd": "2026-11-25T10:00:00Z"}
            rows.append({**held, "availability": {**held["availability"], **start}})
        return reply(rows)

    await copy.sync(transport=Wire.by(edit))
    moved.append(uuid)
    result = await copy.sync(transport=Wire.by(edit))
    assert result.status == "partial"
    assert [(q.key, q.path.endswith(".unitItems")) for q in result.quarantined] == [(uuid, True)]


async def test_a_departure_of_another_option_with_the_same_id_clears_nothing(project, service):
    copy = project(availability=(0, 20))
    (*_, pair), spoilt = sorted({(slot["product_id"], slot["option_id"]) for slot in service.slots()}), set()

    def edit(request, answer):
        if api_path(request) != "/availability":
            return None
        asked, rows = json.loads(request.content), answer.json()
        rows = list({row["localDateTimeStart"][:10]: row for row in rows}.values())
        for row in rows:
            row["id"] = row["localDateTimeStart"][:10]
            if (asked["productId"], asked["optionId"]) == pair:
                row["localDateTimeStart"] = "what?"
                spoilt.add(row["id"])
        return reply(rows)

    result = await copy.sync(transport=Wire.by(edit))
    assert result.status == "partial"
    assert {q.key for q in result.quarantined} == spoilt != set()
