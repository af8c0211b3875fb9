"""A capability that is not served costs no data (R10); one sick subject does not stop the others (R11); all is bounded."""

import dataclasses
import datetime as dt
import json
import time
from collections import Counter

import httpx
import pytest
from tests.flows.harness import QUICK, QUICK_SYNC, TODAY, Wire, api_path, reply
from tests.flows.virtual import lived

from octo_sync.errors import ServiceUnavailable
from octo_sync.flows.sync.pull import Scope
from octo_sync.flows.sync.run import sync
from octo_sync.flows.sync.work import Worker
from octo_sync.model import Limits, Source, Subject, SubjectKind


@pytest.mark.deep(2)
async def test_a_capability_that_is_suddenly_ignored_keeps_the_old_values_and_is_reported(synced, service):
    copy = synced()
    priced = copy.warehouse()
    uuid = next(b["uuid"] for b in service.state()["bookings"] if b["status"] == "CONFIRMED" and not b["freesale"])
    service.change(uuid, reseller_reference="while prices were missing")
    slot = next(s for s in service.slots() if s["available"])
    service.control(
        "POST",
        "/admin/availability",
        {"product_id": slot["product_id"], "option_id": slot["option_id"], "from": slot["local_date"],
         "to": slot["local_date"], "action": "close"},
    )  # fmt: skip
    service.quirks(ignored_capability=["pricing"])
    await copy.sync()
    assert copy.differences() == [], "prices kept, everything else up to date"
    now = copy.warehouse()
    for table in ("core.unit_prices", "core.availability_prices", "core.booking_taxes"):
        assert sorted(map(str, now[table])) == sorted(map(str, priced[table]))
    missing = copy.query(
        "select distinct missing_capabilities from ops.coverage where resource <> 'supplier' and row_count > 0"
    )
    assert missing == [("pricing",)]
    drift = copy.query(
        "select resource from ops.schema_drift where kind = 'capability' and name = 'pricing' order by 1"
    )
    assert [resource for (resource,) in drift] == ["availability", "bookings", "products"]
    service.quirks(ignored_capability=[])
    await copy.sync()
    assert copy.query("select distinct missing_capabilities from ops.coverage") == [("",)]
    assert copy.differences() == []


@pytest.mark.deep(2)
@pytest.mark.parametrize("capability", ["content", "extras"])
async def test_so_it_is_for_texts_and_extras(synced, service, capability):
    copy = synced()
    product = service.state()["products"][0]["id"]
    service.control("PATCH", f"/admin/products/{product}", {"reference": "NEW"})
    service.quirks(ignored_capability=[capability])
    wanted = copy.oracle  # its texts come from the service, which must show them
    await copy.sync()
    held = copy.warehouse()
    service.quirks(ignored_capability=[])
    from tests import oracle

    assert oracle.compare(wanted(), held) == []
    assert copy.query("select count(*) from ops.schema_drift where kind = 'capability' and name = $1", capability) != [
        (0,)
    ]


@pytest.mark.deep(3)
async def test_without_an_echo_a_missing_capability_is_seen_by_its_fields(synced, service):
    copy = synced()
    service.quirks(ignored_capability=["pricing"], no_capability_echo=True)
    await copy.sync()
    assert copy.differences() == []
    assert ("pricing",) in copy.query("select distinct missing_capabilities from ops.coverage")


@pytest.mark.deep(2)
async def test_one_refused_option_is_set_aside_with_its_reason_and_the_rest_goes_on(project, service):
    copy = project(sync=QUICK_SYNC)
    slot = service.slots()[0]
    pair = slot["product_id"], slot["option_id"]
    service.quirks(option_bare_400=["/".join(pair)])
    result = await copy.sync()
    assert result.status == "partial"
    assert {q.resource for q in result.quarantined} == {"availability"}
    assert all(pair[0] in q.key and "400" in q.reason for q in result.quarantined)
    missing = [
        d for d in copy.differences() if "product_id={}, option_id={}".format(*pair) in d or "more differences" in d
    ]
    assert copy.differences() == missing
    rows = copy.query("select key, reason from ops.quarantine")
    assert len(rows) == len(result.quarantined) > 0
    service.quirks(option_bare_400=[])
    assert (await copy.sync(scope=Scope(full=True))).status == "ok", "a full pull tries again what was set aside"
    assert copy.differences() == []
    assert copy.query("select * from ops.quarantine") == []


@pytest.mark.deep(1)
async def test_a_refused_option_is_not_hammered(project, service):
    """Some services block whoever earns sixty refusals a minute."""
    copy = project(sync={"attempts": 5, "backoff": "0.01s", "backoff_cap": "0.02s"})
    slot = service.slots()[0]
    service.quirks(option_bare_400=["{product_id}/{option_id}".format(**slot)])
    await copy.sync()
    refused = [r for r in service.requests() if r["status"] == 400]
    assert 0 < len(refused) <= 25


async def test_a_subject_is_tried_as_often_as_configured_and_then_set_aside(synced, service):
    copy = synced(sync={"attempts": 3, "backoff": "0.01s", "backoff_cap": "0.02s"}, limits={"attempts": 1})
    service.faults({"fault": "malformed", "match": {"path": "/supplier"}})
    result = await copy.sync()
    asked = [r for r in service.requests() if r["path"].endswith("/supplier")]
    assert len(asked) == 3
    assert [(q.resource, q.count) for q in result.quarantined] == [("supplier", 3)]
    assert result.status == "partial"
    assert copy.differences() == []


async def test_a_redirect_is_the_whole_services_fault_and_costs_no_subject_its_tries(project):
    copy = project(sync={"attempts": 5, "backoff": "0.01s", "backoff_cap": "0.02s"})
    elsewhere = [httpx.Response(302, headers={"Location": "https://away.example.com/"}) for _ in range(3)]

    def edit(request, _answer):
        return elsewhere.pop() if api_path(request) == "/supplier" and elsewhere else None

    result = await copy.sync(transport=Wire.by(edit))
    assert (result.status, result.quarantined, elsewhere) == ("ok", (), [])


async def test_what_has_failed_thousands_of_times_is_tried_again_like_anything_else(project):
    """A subscription is never given up, so its tries go beyond what a float can be doubled."""
    subject = Subject("main", SubjectKind.SUBSCRIPTION)
    async with project().opened() as opened:
        ports, journal = opened.ports, opened.journal
        journal.subjects.mark([subject], Source.SCHEDULE)
        (claim,) = journal.subjects.claim(1, run_id=ports.run_id, kinds=[subject.kind], connections=["main"])
        Worker(ports)._failed(dataclasses.replace(claim, attempts=5_000), ServiceUnavailable("It is away."))
        now = ports.clock.now()
        assert dt.timedelta() < journal.subjects.next_due_at(now) - now <= dt.timedelta(seconds=0.25), (
            "1.25 times backoff_cap"
        )


@pytest.mark.deep(2)
async def test_bookings_that_are_asked_for_in_parts_do_not_split_departures(project):
    copy, asked = project(availability=(0, 41), bookings=(0, 41)), []

    def edit(request, answer):
        if api_path(request) == "/bookings":
            days = [dt.date.fromisoformat(request.url.params[f"localDate{end}"]) for end in ("Start", "End")]
            if (days[1] - days[0]).days > 10:
                return reply({"error": "BAD_REQUEST", "errorMessage": "ten days at most"}, 400)
        elif api_path(request) == "/availability":
            body = json.loads(request.content)
            asked.append((body["localDateStart"], body["localDateEnd"]))
        return None

    assert (await copy.sync(transport=Wire.by(edit))).status == "ok"
    assert ("2026-11-30", "2027-01-01") in asked, "a day more on both sides"
    assert copy.differences() == []


async def test_a_service_that_refuses_the_day_before_is_asked_without_it(project, service):
    copy, refused = project(availability=(0, 20), bookings=(0, 1)), []

    def edit(request, _):
        if api_path(request) == "/availability" and json.loads(request.content)["localDateStart"] < TODAY.isoformat():
            refused.append(request.url)
            return reply({"error": "BAD_REQUEST", "errorMessage": "localDateStart is in the past"}, 400)
        return None

    assert (await copy.sync(transport=Wire.by(edit))).status == "ok"
    assert copy.differences() == []
    assert 0 < len(refused) <= 2 * Limits().concurrency, "once is enough for all options"


class _Days:
    """A service that refuses more than `most` days of availability at once, or five around Christmas, and all when ill."""

    def __init__(self, service, most, *, christmas=False):
        self.most, self.is_ill, self.christmas, self.asked = most, False, christmas, Counter()
        service.edit = self

    def __call__(self, request, _):
        if api_path(request) != "/availability":
            return None
        body = json.loads(request.content)
        self.asked[body["productId"], body["optionId"]] += 1
        start, end = (dt.date.fromisoformat(body[f"localDate{edge}"]) for edge in ("Start", "End"))
        most = 5 if self.christmas and start <= dt.date(2026, 12, 25) <= end else self.most
        if self.is_ill or (end - start).days >= most:
            return reply({"error": "BAD_REQUEST", "errorMessage": "no"}, 400)
        return None


@pytest.mark.parametrize(("most", "christmas", "calls"), [(31, False, 28), (14, False, 43), (40, True, 23)])
def test_as_many_days_are_asked_for_at_once_as_a_service_permits(tmp_path, most, christmas, calls):
    async def life(service):
        days = _Days(service, most, christmas=christmas)
        project = service.project(tmp_path, bookings=(0, 1), availability=(8, 372))
        async with project.opened(transport=service.way) as opened:
            result = await sync(opened.ports, Scope(full=True), command="test", publishing=False)
        return result.status, days.asked

    status, asked = lived(life, bookings=0, days=2, products=2)
    assert status == "ok"
    assert len(asked) > 1
    assert max(asked.values()) <= calls, "of 13 months; six at once find out what is too much"


def test_an_option_that_was_refused_is_read_as_soon_as_the_service_answers(tmp_path):
    async def life(service):
        days = _Days(service, 31)
        days.is_ill = True
        project = service.project(
            tmp_path,
            availability=(0, 70),
            sync={"attempts": 2, "backoff": "2s", "backoff_cap": "2s"},
            limits={"attempts": 1},
        )
        december = Subject("main", SubjectKind.AVAILABILITY, ("42", "DEFAULT", "2026-12"))
        async with project.opened(transport=service.way) as opened:
            worker, journal = Worker(opened.ports), opened.journal
            journal.subjects.mark([december], Source.SCHEDULE)
            await worker.drain(patient=False)
            assert december in worker.failed
            days.is_ill = False
            await worker.drain()
            return worker.failed, [row.dirty for row in journal.subjects.rows()]

    assert lived(life, bookings=0, days=2, products=2) == ({}, [False])


@pytest.mark.deep(0.5)
async def test_a_service_that_shows_one_day_at_a_time_is_asked_for_one(project, service):
    copy = project(availability=(0, 3), bookings=(0, 1), limits={"max_4xx_per_minute": 1000})
    service.quirks(range_limit_days=0)
    try:
        assert (await copy.sync()).status == "ok"
        assert copy.differences() == []
    finally:
        service.control("DELETE", "/quirks")


@pytest.mark.deep(2)
async def test_a_service_that_is_down_for_the_whole_run_loses_nothing_and_costs_few_calls(synced, service):
    # As many at a time as a subject has tries: however slow the machine, the second failure is the service's.
    copy = synced(sync=QUICK_SYNC, limits={**QUICK, "attempts": 2, "concurrency": 2})
    service.traffic(20, seed="down")
    service.faults({"fault": "status_5xx"})
    result = await copy.sync()
    assert result.status == "failed"
    assert len(result.troubles) == 1
    assert len(service.requests()) < 60
    assert result.quarantined == (), "its subjects keep their tries for a better day"
    service.faults()
    result = await copy.sync(scope=Scope())
    assert result.resumed
    assert copy.differences() == []


@pytest.mark.deep(2)
async def test_one_service_that_is_down_does_not_stop_another(project, service):
    from tests.flows.harness import Asked

    copy = project(
        connections={
            "sick": Asked(token="a", limits=QUICK, base_url="http://127.0.0.1:9/octo/v1"),
            "well": Asked(token="b"),
        },
        sync=QUICK_SYNC,
    )
    result = await copy.sync()
    assert result.status == "partial"
    assert [t.connection for t in result.troubles] == ["sick"]
    assert copy.differences("well") == []


@pytest.mark.deep(2)
async def test_an_answer_that_is_too_large_is_asked_for_in_smaller_windows(project, service):
    largest = max(r["response_bytes"] for r in await _pulled(project, service) if r["path"].endswith("/bookings"))
    copy = project("capped", limits={"max_body": largest - 1})
    service.forget_requests()
    result = await copy.sync()
    assert (result.status, result.failed) == ("ok", {})
    assert copy.differences() == []


async def test_a_list_in_pages_is_asked_for_in_smaller_windows(project):
    def edit(request, answer):
        rows = answer.json()
        if request.url.path.endswith("/bookings") and len(rows) > 15:
            return httpx.Response(200, json=rows[:15], headers={"Link": '<https://example.test/?page=2>; rel="next"'})
        return None

    copy = project(bookings=(-10, 10))
    result = await copy.sync(transport=Wire.by(edit))
    assert (result.status, result.failed) == ("ok", {})
    assert copy.differences() == []


@pytest.mark.parametrize("size", [20, 25])
async def test_a_list_that_is_cut_at_the_size_of_a_page_is_asked_for_in_smaller_windows(project, size):
    def edit(request, answer):
        return reply(answer.json()[:size]) if api_path(request) == "/bookings" else None

    copy = project(bookings=(-60, 60))
    result = await copy.sync(transport=Wire.by(edit))
    assert (result.status, result.failed) == ("ok", {})
    assert copy.differences() == []


async def test_a_service_that_shows_the_first_two_weeks_of_any_window_is_asked_for_shorter_ones(project):
    def edit(request, answer):
        if api_path(request) != "/availability":
            return None
        last = dt.date.fromisoformat(json.loads(request.content)["localDateStart"]) + dt.timedelta(days=13)
        return reply([row for row in answer.json() if row["localDateTimeStart"][:10] <= str(last)])

    copy = project(availability=(0, 60), bookings=(0, 1))
    result = await copy.sync(transport=Wire.by(edit))
    assert (result.status, result.failed) == ("ok", {})
    assert copy.differences() == []


async def test_a_list_of_exactly_a_hundred_products_is_not_complete(project):
    """It has no days that could be asked for one by one."""

    def edit(request, answer):
        rows = answer.json()
        if api_path(request) == "/products":
            return reply([rows[0] | {"id": f"{rows[0]['id']}-{n}"} for n in range(100)])
        return None

    copy = project()
    await copy.sync(transport=Wire.by(edit), scope=Scope(frozenset({"products"})))
    assert copy.query("select is_complete from ops.coverage where resource = 'products'") == [(False,)]
    assert ("products", "count") in copy.query("select resource, kind from ops.schema_drift")


async def test_a_day_with_as_many_bookings_as_lists_are_cut_at_is_not_complete(project, service):
    """There is no shorter window to ask for."""
    one = min((row for row in service.state()["bookings"] if row["local_date"]), key=lambda row: row["uuid"])

    def edit(request, answer):
        if api_path(request) != "/bookings":
            return None
        rows = answer.json()
        group = [row for row in rows if row["uuid"] == one["uuid"]] * 20
        return reply([*(row | {"uuid": f"{n:08d}{row['uuid'][8:]}"} for n, row in enumerate(group)), *rows][:20])

    copy = project(bookings=(-60, 60))
    await copy.sync(transport=Wire.by(edit))
    incomplete = copy.query("select travel_month from ops.coverage where resource = 'bookings' and not is_complete")
    assert incomplete == [(one["local_date"][:7],)]
    assert copy.query("select kind from ops.schema_drift") == [("count",)]


async def test_a_service_that_does_not_look_at_the_days_leaves_its_months_incomplete(project, service):
    known = {one["uuid"] for one in sorted(service.state()["bookings"], key=lambda one: one["local_date"])[::10]}

    def edit(request, answer):
        if request.url.path.endswith("/bookings"):
            return reply(every)
        return None

    every = [
        row
        for row in service.get("/bookings?localDateStart=2020-01-01&localDateEnd=2040-01-01").json()
        if row["uuid"] in known
    ]
    copy = project(bookings=(-60, 60))
    await copy.sync(transport=Wire.by(edit))
    whole = copy.query(
        "select count(*) from ops.coverage where resource = 'bookings' and is_complete and row_count > 0"
    )
    assert whole == [(0,)]
    assert ("meaning", "unknown") in copy.query("select kind, name from ops.schema_drift")


async def test_a_byte_that_is_no_text_in_a_field_that_nobody_reads_stops_nothing(project):
    def edit(request, answer):
        if not request.url.path.endswith("/bookings"):
            return None
        body = answer.content.replace(b'"uuid"', b'"ours": "caf\xe9", "uuid"', 1)
        return httpx.Response(200, content=body, headers={"Content-Type": "application/json"})

    copy = project(sync={"raw": ["bookings"]})
    result = await copy.sync(transport=Wire.by(edit))
    assert (result.status, result.failed) == ("ok", {})
    assert copy.differences() == []
    ((kept,),) = copy.query(
        "select count(*) from personal.raw.records where payload like '%caf\N{REPLACEMENT CHARACTER}%'"
    )
    assert kept > 0


async def test_a_run_that_breaks_without_a_sentence_of_ours_has_failed(project, monkeypatch):
    def broken(*_, **_more):
        raise ZeroDivisionError

    monkeypatch.setattr("octo_sync.flows.sync.run.how_it_went", broken)
    copy = project()
    with pytest.raises(ZeroDivisionError):
        await copy.sync()
    async with copy.opened() as opened:
        (last,) = opened.journal.runs.last()
    assert (last.status, last.error) == ("failed", "It broke (ZeroDivisionError); please report this.")


async def _pulled(project, service):
    await project("measured").sync()
    return service.requests()


async def test_a_document_that_stays_too_large_is_set_aside_by_name(project):
    copy = project(limits={"max_body": 20_000}, sync=QUICK_SYNC, bookings=(-3, 3), availability=(0, 3))
    result = await copy.sync()
    assert result.status == "partial"
    assert ("products", "AnswerTooLarge") in {(q.resource, q.reason.split(":")[0]) for q in result.quarantined} or any(
        q.resource == "products" for q in result.quarantined
    )


async def test_a_hanging_request_ends_at_its_deadline(synced, service):
    copy = synced(sync={"attempts": 1}, limits={"deadline": "1s", "attempts": 1, "connect_timeout": "0.5s"})
    service.faults({"fault": "hang", "seconds": 60.0, "match": {"path": "/supplier"}})
    result = await copy.sync()
    assert result.status == "partial"
    assert any("1 s" in reason for reason in [*result.failed.values()])


@pytest.mark.deep(0.6)
async def test_the_calls_per_minute_stay_below_what_was_configured(project, service):
    copy = project(
        bookings=(-3, 3), availability=(0, 3), limits={"requests_per_minute": 1200.0}, capabilities=("pricing",)
    )
    started = time.monotonic()
    await copy.sync()
    spent = time.monotonic() - started
    # A tenth of a minute's requests may go at once, at most one per slot.
    assert len(service.requests()) <= 6 + spent * 20 + 1
    assert copy.differences() == []


async def test_a_made_up_empty_catalogue_at_the_start_is_success(project):
    """Nothing new is no error."""
    from tests.flows.harness import Wire, api_path

    copy = project()
    result = await copy.sync(
        transport=Wire.by(lambda request, _: reply([]) if api_path(request) in {"/products", "/bookings"} else None)
    )
    assert (result.status, result.quarantined) == ("ok", ())
