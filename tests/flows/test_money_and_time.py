"""Money is exact in every precision; days and hours are the venue's, through every change of the clocks."""

import datetime as dt
import re
from decimal import Decimal

import httpx
import pytest
from tests.flows.harness import Project, RunningClock, Service, Wire, api_path, reply, small


@pytest.mark.deep(3, everyday=["autumn"])
@pytest.mark.parametrize("today", [dt.date(2026, 9, 20), dt.date(2027, 3, 5)], ids=["autumn", "spring"])
async def test_the_copy_equals_the_source_through_every_change_of_the_clocks(tmp_path, today):
    """Chatham 27 Sep, Lord Howe 4 Oct (half an hour), Lisbon 25 Oct, New York 1 Nov; and back in spring."""
    with Service(small(today=today, days=50, bookings=150)) as service:
        noon = dt.datetime.combine(today, dt.time(12), dt.UTC)
        service.control("PUT", "/clock", {"now": noon.isoformat(), "freeze": True})
        copy = Project(tmp_path / "clocks", service, availability=(-3, 49), bookings=(-30, 49), languages=("en",))
        copy.clock = RunningClock(noon)
        copy.today = today
        assert (await copy.sync()).status == "ok"
        assert copy.differences() == []
        offsets = copy.query(
            "select time_zone, count(distinct local_start_at - (utc_start_at at time zone 'UTC')) from core.availability "
            "group by 1"
        )
        changing = {zone for zone, count in offsets if count == 2}
        assert changing >= {"Europe/Lisbon", "America/New_York", "Pacific/Chatham", "Australia/Lord_Howe"}


@pytest.mark.deep(2)
async def test_today_is_the_venues_when_the_horizon_is_laid(project, service):
    """At 13:00 UTC it is tomorrow already at Chatham, and still today in New York."""
    service.control("PUT", "/clock", {"advance": 3600})
    copy = project(availability=(0, 2), bookings=(-1, 1))
    copy.clock.advance(hours=1)
    await copy.sync()
    assert copy.differences() == []
    first = dict(copy.query("select time_zone, min(local_date)::varchar from core.availability group by 1"))
    assert (first["Pacific/Chatham"], first["America/New_York"]) == ("2026-11-21", "2026-11-20")


@pytest.mark.deep(4)
async def test_a_corrected_time_zone_reaches_departures_whose_answers_stay_the_same(project, service):
    """The service writes wall clocks without an offset: which instants they are, only the product says."""
    copy, corrected = project(), {}
    product = next(p["id"] for p in service.get("/products").json() if p["timeZone"] == "Europe/Lisbon")

    def edit(request, answer):
        path = api_path(request)
        if path == "/products":
            return reply([{**p, "timeZone": corrected.get(p["id"], p["timeZone"])} for p in answer.json()])
        if path == "/availability":
            return reply(
                [{**s, **{k: s[k][:19] for k in ("localDateTimeStart", "localDateTimeEnd")}} for s in answer.json()]
            )
        return None

    said = (
        "select distinct time_zone, (local_start_at - (utc_start_at at time zone 'UTC'))::varchar from core.availability "
        "where product_id = $1"
    )
    await copy.sync(transport=Wire.by(edit))
    assert copy.query(said, product) == [("Europe/Lisbon", "00:00:00")]
    corrected[product] = "Asia/Tokyo"
    await copy.sync(transport=Wire.by(edit))
    assert copy.query(said, product) == [("Asia/Tokyo", "09:00:00")]
    result = await copy.sync(transport=Wire.by(edit))
    assert result.totals.rows == 0, "an equal answer is an equal answer again"


AMOUNTS = [
    (0, 9_800, Decimal(9800)),
    (0, 10**14 - 1, Decimal(10**14 - 1)),
    (2, 1, Decimal("0.01")),
    (2, 33_333_333_333_333, Decimal("333333333333.33")),
    (2, -199, Decimal("-1.99")),
    (3, 85_501, Decimal("85.501")),
    (3, 10**15 + 1, Decimal("1000000000000.001")),
    (4, 12_345, Decimal("1.2345")),
]


async def test_minor_units_become_exact_amounts_in_every_precision(project, service):
    copy = project(availability=(0, 1), capabilities=("pricing",))
    uuids = [b["uuid"] for b in service.state()["bookings"] if b["local_date"].startswith("2026-12")]
    chosen = dict(zip(uuids, AMOUNTS, strict=False))

    def edit(request, answer):
        if api_path(request) != "/bookings":
            return None
        rows = answer.json()
        for row in rows:
            if row["uuid"] in chosen:
                precision, minor, _ = chosen[row["uuid"]]
                row["pricing"].update(
                    currencyPrecision=precision,
                    retail=minor,
                    includedTaxes=[{"name": "VAT", "original": 0, "retail": minor, "net": None}],
                )
                row["unitItems"][0]["pricing"] = {**row["pricing"], "net": minor}
        return reply(rows)

    result = await copy.sync(transport=Wire.by(edit))
    assert result.status == "ok"
    for uuid, (precision, minor, amount) in chosen.items():
        held = copy.query(
            "select b.retail_minor, b.retail_amount, b.tax_minor, b.tax_amount, t.retail_amount, t.net_minor "
            "from core.bookings b join core.booking_taxes t using (booking_uuid) where booking_uuid = $1",
            uuid,
        )
        assert held == [(minor, amount, minor, amount, amount, None)], (precision, minor)
        tickets = copy.query(
            "select max(net_amount), max(currency_precision) from core.booking_unit_items "
            "where booking_uuid = $1 and net_minor = $2",
            uuid,
            minor,
        )
        assert tickets == [(amount, precision)]


@pytest.mark.deep(2)
async def test_an_amount_that_no_column_can_hold_is_set_aside_not_rounded_and_not_fatal(project, service):
    """18 digits, four of them decimals, are what numeric(18,4) holds; a yen price of 2**62 is not among them."""
    copy = project(availability=(0, 1), capabilities=("pricing",))
    uuid = next(b["uuid"] for b in service.state()["bookings"] if b["local_date"].startswith("2026-12"))

    def edit(request, answer):
        if api_path(request) != "/bookings":
            return None
        rows = answer.json()
        for row in rows:
            if row["uuid"] == uuid:
                row["pricing"].update(currencyPrecision=0, retail=2**62)
        return reply(rows)

    result = await copy.sync(transport=Wire.by(edit))
    assert result.status == "partial"
    assert [q.key for q in result.quarantined] == [uuid]
    assert all(uuid in d for d in copy.differences())
    assert (await copy.sync()).status == "ok"
    assert copy.differences() == []


@pytest.mark.deep(1)
async def test_instants_are_read_in_every_form_that_services_write(project, service):
    forms = {
        "2026-12-05T09:30:00Z": ("2026-12-05 09:30:00", "2026-12-05 09:30:00"),
        "2026-12-05T09:30:00+00:00": ("2026-12-05 09:30:00", "2026-12-05 09:30:00"),
        "2026-12-05T09:30:00-05:00": ("2026-12-05 09:30:00", "2026-12-05 14:30:00"),
        "2026-12-05T09:30:00+12:45": ("2026-12-05 09:30:00", "2026-12-04 20:45:00"),
        "2026-12-05T09:30:00.123456Z": ("2026-12-05 09:30:00", "2026-12-05 09:30:00.123456"),
        "2026-12-05T23:59:59.999+01:00": ("2026-12-05 23:59:59", "2026-12-05 22:59:59.999"),
        "2026-12-05T09:30:00": ("2026-12-05 09:30:00", None),
    }
    uuids = [b["uuid"] for b in service.state()["bookings"] if b["local_start"] and b["local_date"][:7] == "2026-12"]
    chosen = dict(zip(uuids, forms, strict=False))
    copy = project(availability=(0, 1))

    def edit(request, answer):
        if api_path(request) != "/bookings":
            return None
        rows = answer.json()
        for row in rows:
            if row["uuid"] in chosen:
                row["availability"]["localDateTimeStart"] = chosen[row["uuid"]]
                row["utcConfirmedAt"] = chosen[row["uuid"]]
        return reply(rows)

    result = await copy.sync(transport=Wire.by(edit))
    assert result.quarantined == ()
    for uuid, form in chosen.items():
        ((local, start, confirmed),) = copy.query(
            "select local_start_at::varchar, (utc_start_at at time zone 'UTC')::varchar, "
            "(utc_confirmed_at at time zone 'UTC')::varchar from core.bookings where booking_uuid = $1",
            uuid,
        )
        assert local == forms[form][0], form
        if forms[form][1]:
            assert (start, confirmed) == (forms[form][1], forms[form][1]), form


async def test_a_currency_in_small_letters_is_the_same_currency(project):
    def edit(request, answer):
        if api_path(request) == "/bookings":
            body = re.sub(rb'("currency":\s*)"([A-Z]{3})"', lambda m: m[1] + b'"' + m[2].lower() + b'"', answer.content)
            return httpx.Response(200, content=body, headers={"Content-Type": "application/json"})
        return None

    copy = project(availability=(0, 1))
    await copy.sync(transport=Wire.by(edit))
    assert copy.differences() == []
