"""Nothing is deleted without proof: absent, asked for by its own id, refused with a typed error, twice (R7)."""

import json

import httpx
import pytest
from tests.flows.harness import Wire, api_path, reply

from octo_sync.destinations.gate import Guard


def typed_not_found(uuid):
    return reply({"error": "INVALID_BOOKING_UUID", "errorMessage": "no such booking", "uuid": uuid}, 400)


def hide(uuid, answer_for_it):
    """On the wire a booking vanishes from every list, and its own document becomes `answer_for_it(uuid)`."""

    def edit(request, answer):
        if api_path(request) == "/bookings":
            return reply([b for b in answer.json() if b["uuid"] != uuid])
        if api_path(request) == f"/bookings/{uuid}":
            asked.append(uuid)
            return answer_for_it(uuid)
        return None

    asked = []
    return edit, asked


def a_booking(service, **wanted):
    return next(
        b
        for b in service.state()["bookings"]
        if not b["freesale"] and b["extra_items"] and all(b[k] == v for k, v in wanted.items())
    )


async def test_a_booking_leaves_only_after_two_typed_refusals_of_its_own_id(synced, service):
    copy, uuid = synced(), a_booking(service)["uuid"]
    edit, asked = hide(uuid, typed_not_found)
    result = await copy.sync(transport=Wire.by(edit))
    assert len(asked) == 2
    assert result.status == "ok"
    rows = copy.query("select is_deleted, deleted_at_utc is not null from core.bookings where booking_uuid = $1", uuid)
    assert rows == [(True, True)], "marked, not removed"
    assert [d for d in copy.differences() if uuid not in d] == []
    assert f"core.bookings (booking_uuid={uuid}): missing in the warehouse" in copy.differences()


@pytest.mark.deep(2)
async def test_what_hangs_on_a_deleted_booking_is_not_counted_as_live(synced, service):
    copy, uuid = synced(), a_booking(service)["uuid"]
    await copy.sync(transport=Wire.by(hide(uuid, typed_not_found)[0]))
    assert copy.query("select is_deleted from core.bookings where booking_uuid = $1", uuid) == [(True,)]
    live = {
        table: [row for row in rows if row.get("booking_uuid") == uuid]
        for table, rows in copy.warehouse().items()
        if table.startswith("core.booking")
    }
    assert {table: len(rows) for table, rows in live.items() if rows} == {}


@pytest.mark.deep(2)
async def test_a_booking_that_comes_back_after_its_deletion_is_live_and_whole_again(synced, service):
    copy, uuid = synced(), a_booking(service)["uuid"]
    await copy.sync(transport=Wire.by(hide(uuid, typed_not_found)[0]))
    assert copy.differences() != []
    await copy.sync()
    assert copy.differences() == []


@pytest.mark.deep(2)
async def test_a_booking_that_vanishes_from_a_quiet_month_is_missed_like_any_other(synced, service):
    """All of the month's few bookings were also made in it, so that this answer alone cannot say which days it means."""
    copy = synced()
    bookings = [b for b in service.state()["bookings"] if not b["freesale"]]
    months = {b["local_date"][:7] for b in bookings}
    quiet = next(
        m
        for m in sorted(months)
        if all(b["utc_created_at"][:7] == m for b in bookings if b["local_date"][:7] == m)
        and sum(b["local_date"][:7] == m for b in bookings) > 1
    )
    uuid = next(b["uuid"] for b in bookings if b["local_date"][:7] == quiet)
    edit, asked = hide(uuid, typed_not_found)
    await copy.sync(transport=Wire.by(edit))
    assert len(asked) == 2
    assert copy.query("select is_deleted from core.bookings where booking_uuid = $1", uuid) == [(True,)]


NO_PROOF = {
    "bad request": lambda _: reply({"error": "BAD_REQUEST", "errorMessage": "no"}, 400),
    "another uuid": lambda u: reply({"error": "INVALID_BOOKING_UUID", "errorMessage": "no", "uuid": "x" + u}, 400),
    "another code": lambda _: reply({"error": "INVALID_PRODUCT_ID", "errorMessage": "no", "productId": "x"}, 400),
    "plain 404": lambda _: httpx.Response(404, text="Not Found"),
    "plain 410": lambda _: httpx.Response(410, text="Gone"),
    "server error": lambda _: reply({"error": "INTERNAL_SERVER_ERROR", "errorMessage": "no"}, 500),
    "typed, but 500": lambda u: reply({"error": "INVALID_BOOKING_UUID", "errorMessage": "no", "uuid": u}, 500),
    "typed, but 200": lambda u: reply({"error": "INVALID_BOOKING_UUID", "errorMessage": "no", "uuid": u}, 200),
    "null": lambda _: reply(None),
    "empty": lambda _: httpx.Response(200, text=""),
}


@pytest.mark.deep(1)
async def test_no_other_answer_proves_that_a_booking_is_gone(synced, service):
    """Ten bookings vanish from every list, and each one's own document is answered wrongly in another way."""
    copy = synced(sync={"attempts": 2, "backoff": "0.01s"}, limits={"attempts": 1})
    uuids = [b["uuid"] for b in service.state()["bookings"] if not b["freesale"] and b["local_date"] > "2026-11-01"]
    chosen = dict(zip(uuids, NO_PROOF, strict=False))
    asked = []

    def edit(request, answer):
        path = api_path(request)
        if path == "/bookings":
            return reply([b for b in answer.json() if b["uuid"] not in chosen])
        if path.startswith("/bookings/"):
            uuid = path.rsplit("/", 1)[1]
            asked.append(uuid)
            return NO_PROOF[chosen[uuid]](uuid)
        return None

    result = await copy.sync(transport=Wire.by(edit))
    assert set(asked) == set(chosen)
    assert result.status == "partial"
    told = {json.loads(q.key)[0]: q.reason for q in result.quarantined if q.resource == "booking"}
    assert {chosen[uuid] for uuid in chosen if uuid not in told} == set()
    assert copy.query("select count(*) from core.bookings where is_deleted") == [(0,)]
    assert copy.differences() == []


@pytest.mark.deep(2)
@pytest.mark.parametrize("kind", ["booking", "product"])
async def test_an_answer_about_another_id_is_no_look_at_the_one_that_was_asked_for(synced, service, kind):
    """It vanished from every list, and its own address shows another one: it is missed still."""
    copy = synced(sync={"attempts": 2, "backoff": "0.01s"}, limits={"attempts": 1})
    every = f"/{kind}s"
    found = service.state()[f"{kind}s"]
    key = {"booking": "uuid", "product": "id"}[kind]
    asked, other = [
        b[key] for b in found if kind == "product" or (not b["freesale"] and b["local_date"] > "2026-12-01")
    ][:2]
    body = service.get(f"{every}/{other}", capabilities=["pricing", "content", "extras"]).json()

    def edit(request, answer):
        if api_path(request) == every:
            return reply([b for b in answer.json() if b[key] != asked])
        return reply(body) if api_path(request) == f"{every}/{asked}" else None

    result = await copy.sync(transport=Wire.by(edit))
    assert result.status == "partial"
    reasons = [q.reason for q in result.quarantined if (q.resource, json.loads(q.key)) == (kind, [asked])]
    assert len(reasons) == 1
    assert "another id" in reasons[0]
    assert copy.query("select subject_key, misses from ops.absences") == [(f'["{asked}"]', 0)]
    assert copy.differences() == []
    assert (await copy.sync()).status == "ok"
    assert copy.query("select * from ops.absences") == []


async def test_a_refused_token_deletes_nothing_and_asks_at_most_three_times_more(synced, service):
    copy = synced()
    service.faults({"fault": "unauthorized"})
    result = await copy.sync()
    assert result.status == "failed"
    assert result.troubles[0].refused
    assert len(service.requests()) <= 6 + 3
    service.faults()
    assert copy.differences() == []
    assert copy.query("select count(*) from core.bookings where is_deleted") == [(0,)]


@pytest.mark.deep(2)
async def test_one_refusal_and_one_answer_are_no_proof(synced, service):
    copy, uuid = synced(), a_booking(service)["uuid"]
    times = []

    def edit(request, answer):
        if api_path(request) == "/bookings" and len(times) < 1:
            return reply([b for b in answer.json() if b["uuid"] != uuid])
        if api_path(request) == f"/bookings/{uuid}":
            times.append(1)
            return typed_not_found(uuid) if len(times) == 1 else None
        return None

    result = await copy.sync(transport=Wire.by(edit))
    assert len(times) == 2
    assert result.status == "ok"
    assert copy.differences() == []
    assert copy.query("select * from ops.absences") == []


@pytest.mark.deep(0.6)
async def test_a_booking_moved_out_of_every_window_is_found_by_its_uuid(project, service):
    copy = project(bookings=(-30, 20), availability=(0, 1))
    await copy.sync()
    moved = next(
        b for b in service.state()["bookings"] if b["local_date"] == "2026-12-05" and b["status"] == "CONFIRMED"
    )
    target = next(
        s
        for s in service.slots(product_id=moved["product_id"], option_id=moved["option_id"], **{"from": "2026-12-20"})
        if s["available"] and (s["vacancies"] is None or s["vacancies"] > 10)
    )
    service.change(moved["uuid"], move={"availability_id": target["availability_id"]}, silent=True)
    service.forget_requests()
    result = await copy.sync()
    asked = [r for r in service.requests() if r["path"].endswith(f"/bookings/{moved['uuid']}")]
    assert len(asked) == 1
    assert result.status == "ok"
    held = copy.query(
        "select local_date::varchar, is_deleted from core.bookings where booking_uuid = $1", moved["uuid"]
    )
    assert held == [(target["local_date"], False)]


@pytest.mark.deep(1)
async def test_a_deleted_product_goes_with_everything_that_hangs_on_it(synced, service):
    copy = synced()
    copy.remember_products()
    gone = service.state()["products"][3]
    service.control("DELETE", f"/admin/products/{gone['id']}", silent="true")
    result = await copy.sync()
    assert result.status == "ok", (result.failed, result.quarantined)
    assert copy.query("select is_deleted from core.products where product_id = $1", gone["id"]) == [(True,)]
    assert copy.differences() == []


@pytest.mark.deep(4)
@pytest.mark.parametrize("what", ["product", "option"])
async def test_what_is_withdrawn_and_comes_back_has_its_departures_again(synced, service, what):
    """The service answers with the same bytes as before: departures that went with their product are not in the copy."""
    copy = synced(publish=True)
    product = next(p for p in service.state()["products"] if len(p["options"]) > 1)
    option = product["options"][0]["id"]

    def kept(document):
        return {**document, "options": [o for o in document["options"] if o["id"] != option]}

    def edit(request, answer):
        path = api_path(request)
        is_its_own = path == f"/products/{product['id']}"
        if what == "option":
            if path == "/products":
                return reply([kept(p) if p["id"] == product["id"] else p for p in answer.json()])
            return reply(kept(answer.json())) if is_its_own else None
        if path == "/products":
            return reply([p for p in answer.json() if p["id"] != product["id"]])
        if is_its_own or (path == "/availability" and json.loads(request.content)["productId"] == product["id"]):
            refusal = {"error": "INVALID_PRODUCT_ID", "errorMessage": "no such product", "productId": product["id"]}
            return reply(refusal, 400)
        return None

    await copy.sync(transport=Wire.by(edit), allow_deletions=True)
    if what == "product":
        assert copy.query("select is_deleted from core.products where product_id = $1", product["id"]) == [(True,)]
    assert copy.query("select count(*) > 0 from core.availability where product_id = $1 and option_id = $2 and is_deleted",
        product["id"], option) == [(True,)]  # fmt: skip
    result = await copy.sync()
    assert copy.differences() == []
    assert (result.status, result.published.failed) == ("ok", ())


@pytest.mark.deep(2)
@pytest.mark.parametrize("fault", [{"fault": "empty_list"}, {"fault": "cut_list", "drop": 0.9}])
async def test_a_list_of_departures_that_lost_most_of_its_rows_deletes_nothing_and_is_reported(synced, service, fault):
    copy = synced()
    service.faults({**fault, "match": {"path": "/availability$"}})
    result = await copy.sync()
    assert result.status == "partial"
    assert len(result.held) >= 1
    assert all("--allow-deletions" in reason for reason in result.held)
    assert list(copy.query("select resource from ops.quarantine")) != []
    assert copy.differences() == []
    service.faults()
    result = await copy.sync()
    assert (result.status, result.held) == ("ok", ())
    assert copy.differences() == []


@pytest.mark.deep(2)
async def test_bookings_that_lists_hide_are_asked_for_by_their_own_ids(synced, service):
    """However many they are: the guard is for deleting. That they were hidden is written down."""
    copy = synced()
    uuid = a_booking(service, status="CONFIRMED")["uuid"]
    service.change(uuid, status="CANCELLED", silent=True)
    service.faults({"fault": "empty_list", "match": {"path": "/bookings$"}})
    result = await copy.sync()
    assert (result.status, result.held) == ("ok", ())
    assert copy.differences() == []
    assert copy.query("select status from core.bookings where booking_uuid = $1", uuid) == [("CANCELLED",)]
    hidden = copy.query("select name, seen_count from ops.schema_drift where kind = 'hidden'")
    asked = {r["path"] for r in service.requests() if "/bookings/" in r["path"]}
    assert hidden == [("not listed, but found by its own id", len(asked))]


async def test_hidden_bookings_are_asked_for_within_the_budget_of_calls_those_that_may_change_first(synced, service):
    copy = synced(sync={"verify_budget": 40})
    uuid = a_booking(service, status="CONFIRMED")["uuid"]
    service.change(uuid, status="CANCELLED", silent=True)
    service.faults({"fault": "empty_list", "match": {"path": "/bookings$"}})
    final = ("CANCELLED", "EXPIRED", "REJECTED", "REDEEMED")
    still_open = [b["uuid"] for b in service.state()["bookings"] if b["status"] not in final]
    result = await copy.sync()
    asked = {r["path"].rsplit("/", 1)[-1] for r in service.requests() if "/bookings/" in r["path"]}
    # What lands first may be too little to be held: on a slow machine that is asked for besides.
    assert 40 <= len(asked) <= 40 + Guard().rows
    assert len(asked - {*still_open, uuid}) <= Guard().rows
    assert result.status == "partial"
    assert "--allow-deletions" in result.held[0]


@pytest.mark.deep(2)
async def test_cancelled_bookings_that_lists_leave_out_are_asked_for_once(synced, service):
    copy = synced()
    service.quirks(cancelled_not_listed=True)
    cancelled = {b["uuid"] for b in service.state()["bookings"] if b["status"] == "CANCELLED" and not b["freesale"]}
    rounds = []
    for _ in range(2):
        service.forget_requests()
        assert (await copy.sync()).status == "ok"
        rounds.append([r["path"].rsplit("/", 1)[-1] for r in service.requests() if "/bookings/" in r["path"]])
    assert len(rounds[0]) == len(set(rounds[0])) > 0
    assert set(rounds[0]) <= cancelled
    assert rounds[1] == []
    assert copy.differences() == []


@pytest.mark.deep(0.5)
async def test_an_empty_product_list_makes_every_product_be_asked_for_by_its_own_id(synced, service):
    """Eight products are too few to be held, so each is looked up; all of them are alive."""
    copy = synced()
    products = {p["id"] for p in service.state()["products"]}
    service.faults({"fault": "empty_list", "match": {"path": "/products$"}})
    await copy.sync()
    service.faults()
    asked = [r["path"].rsplit("/", 1)[1] for r in service.requests() if "/products/" in r["path"]]
    assert set(asked) == products
    assert len(asked) == len(products)
    assert copy.differences() == []


async def test_products_that_all_have_other_ids_over_night_are_told_and_kept(synced, service):
    """Eight are few, and yet this is no withdrawal: nothing is left of what was there."""
    copy = synced(limits={"max_4xx_per_minute": 1000})  # each window of the old ids is refused
    before = {p["id"] for p in service.state()["products"]}
    service.quirks(product_id_suffix="-2")
    for _ in range(2):
        result = await copy.sync()
        assert result.status == "partial"
        assert ["other ids" in reason for reason in result.held] == [True]
        live = {product for (product,) in copy.query("select product_id from core.products where not is_deleted")}
        assert live == before | {f"{product}-2" for product in before}
    result = await copy.sync(allow_deletions=True)
    assert (result.status, result.held) == ("ok", ())
    assert copy.query("select count(*) from core.products where not is_deleted") == [(len(before),)]


async def test_bookings_that_all_have_their_uuids_in_another_case_are_told_and_kept_until_a_person_allows(
    synced, service
):
    """Ids are opaque: each is a booking of its own until the service, asked for the former one, shows the other."""
    copy, listed = synced(), service.state()["bookings"]
    service.quirks(uuid_uppercase=True)
    for _ in range(2):
        result = await copy.sync()
        assert (result.status, len(result.held)) == ("partial", 1)
        assert "--allow-deletions" in result.held[0]
        assert copy.query("select count(*) from core.bookings where not is_deleted") == [(2 * len(listed),)]
    result = await copy.sync(allow_deletions=True)
    assert (result.status, result.held) == ("ok", ())
    found = copy.query("select booking_uuid from core.bookings where not is_deleted")
    assert {uuid for (uuid,) in found} == {b["uuid"].upper() for b in listed}


async def test_one_booking_that_has_its_uuid_in_another_case_is_one_after_the_next_pull(synced, service):
    copy, chosen = synced(), a_booking(service, status="CONFIRMED")["uuid"]

    def edit(request, answer):
        if api_path(request).startswith("/bookings"):
            return reply(json.loads(answer.text.replace(chosen, chosen.upper())))
        return None

    result = await copy.sync(transport=Wire.by(edit))
    assert (result.status, result.held) == ("ok", ())
    found = copy.query("select booking_uuid from core.bookings where not is_deleted")
    assert [uuid for (uuid,) in found if uuid.lower() == chosen] == [chosen.upper()]


async def test_held_deletions_happen_when_a_person_allows_them_and_only_with_proof(synced, service):
    copy = synced()
    service.faults({"fault": "empty_list", "match": {"path": "/availability$"}})
    assert (await copy.sync()).held
    result = await copy.sync(allow_deletions=True)
    assert (result.status, result.held) == ("ok", ())
    assert copy.query("select count(*) from core.availability where not is_deleted") == [(0,)]
    service.faults()
    result = await copy.sync()
    assert result.status == "ok"
    assert copy.differences() == [], "what comes back is live again"


@pytest.mark.deep(2)
async def test_even_when_deletions_are_allowed_a_booking_is_asked_for_first(synced, service):
    copy = synced()
    service.faults({"fault": "empty_list", "match": {"path": "/bookings$"}})
    result = await copy.sync(allow_deletions=True)
    assert result.status == "ok"
    assert copy.differences() == []


@pytest.mark.deep(2)
async def test_a_closed_season_within_the_bounds_is_deleted_after_two_complete_answers(synced, service):
    """Departures have no id of their own to ask for: two complete answers of their window are the proof."""
    copy = synced()
    one = service.slots()[0]
    missing = {"slots": 0}

    def edit(request, answer):
        if api_path(request) == "/availability":
            body = json.loads(request.content)
            if (body["productId"], body["optionId"]) == (one["product_id"], one["option_id"]):
                kept = [slot for slot in answer.json() if slot["id"] != one["availability_id"]]
                missing["slots"] += len(answer.json()) - len(kept)
                return reply(kept)
        return None

    await copy.sync(transport=Wire.by(edit))
    assert missing["slots"] == 2
    assert copy.differences() != []
    assert all(one["availability_id"] in difference for difference in copy.differences()), copy.differences()


@pytest.mark.deep(0.6)
async def test_an_answer_with_a_bad_record_proves_no_absence(synced, service):
    """An incomplete answer speaks for nobody: the booking it could not read may be the one that is missed."""
    copy = synced()
    uuids = [b["uuid"] for b in service.state()["bookings"] if b["local_date"].startswith("2026-12")][:2]

    def edit(request, answer):
        if api_path(request) == "/bookings" and request.url.params["localDateStart"].startswith("2026-12"):
            kept = [b for b in answer.json() if b["uuid"] != uuids[0]]
            for b in kept:
                if b["uuid"] == uuids[1]:
                    b["unitItems"] = "many"
            return reply(kept)
        return None

    result = await copy.sync(transport=Wire.by(edit))
    assert result.status == "partial"
    assert copy.query("select * from ops.absences") == []
    assert copy.differences() == []
