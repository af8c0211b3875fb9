"""Every typed method against the sandbox, over sockets: it shares no code with the client."""

import json
import re
import subprocess
import sys
import urllib.request
from datetime import date, timedelta

import pytest
from tests.octo.support import client

from octo_sync.errors import AuthenticationRefused, NotFound, RequestRefused
from octo_sync.model import Secret
from octo_sync.octo import endpoints, records
from octo_sync.octo.quirks import ignored_capabilities, languages_offered

TODAY = date(2026, 11, 20)
LIMITS = {"deadline": 10.0}


@pytest.fixture(scope="module")
def sandbox():
    command = [sys.executable, "-m", "octo_sync.sandbox", "--port", "0", "--today", TODAY.isoformat()]
    command += ["--seed", "7", "--products", "4", "--bookings", "60", "--days", "60"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout
        try:
            said = next((line for line in process.stdout if "listening" in line), "")
            found = re.search(r"http://\S+", said)
            assert found, "the sandbox did not start"
            yield found.group().removesuffix("/octo/v1")
        finally:
            process.terminate()


def octo_client(origin, who="all", **given):
    return client(origin, token=Secret(f"sandbox-token-{who}", "the sandbox"), limits=LIMITS, **given)


def control(origin, method, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(  # noqa: S310 - our own sandbox
        f"{origin}/_sandbox{path}", data=data, method=method, headers={"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 - the same
        return json.loads(answer.read() or b"null")


async def departure(octo):
    """Some product, option and departure that can be booked now, and a unit of it."""
    for product in (await octo.ask(endpoints.products())).record:
        for option in product.options:
            found = await octo.ask(
                endpoints.availability(product.id, option.id, TODAY + timedelta(days=20), TODAY + timedelta(days=40))
            )
            for slot in found.record:
                if slot.available and product.availability_type == "START_TIME" and slot.status == "AVAILABLE":
                    return product, option, slot
    raise AssertionError("the sandbox has nothing to sell")


def items(option, count=2):
    unit = next(unit for unit in option.units if unit.type == "ADULT")
    return [{"unitId": unit.id} for _ in range(max(count, option.restrictions.min_units or 0))]


async def test_supplier_products_calendar_and_capabilities_are_read(sandbox):
    async with octo_client(sandbox, languages=("pt",)) as octo:
        supplier = await octo.ask(endpoints.supplier())
        assert supplier.record.name
        products = await octo.ask(endpoints.products())
        assert len(products.record) == 4
        assert ignored_capabilities(octo.connection.capabilities, products.answer) == frozenset()
        assert "en" in languages_offered(products.answer.headers)
        assert products.answer.headers["content-language"] == "pt"
        first = products.record[0]
        assert (await octo.ask(endpoints.product(first.id))).record == first
        days = await octo.ask(endpoints.calendar(first.id, first.options[0].id, TODAY, TODAY + timedelta(days=9)))
        assert {day.local_date for day in days.record} <= {str(TODAY + timedelta(days=n)) for n in range(10)}
        assert {"octo/pricing", "pricing"} & {each.id for each in (await octo.ask(endpoints.capabilities())).record}


async def test_a_booking_goes_all_its_ways(sandbox):
    async with octo_client(sandbox) as octo:
        product, option, slot = await departure(octo)
        held = (
            await octo.ask(
                endpoints.reserve(
                    product.id,
                    option.id,
                    slot.id,
                    unit_items=items(option),
                    uuid="11111111-2222-4333-8444-555555555555",
                    reseller_reference="R 1/2&3",
                    expiration_minutes=20,
                )
            )
        ).record
        assert (held.uuid, held.status) == ("11111111-2222-4333-8444-555555555555", "ON_HOLD")
        longer = (await octo.ask(endpoints.extend(held.uuid, expiration_minutes=45))).record
        assert longer.utc_expires_at > held.utc_expires_at
        sold = (
            await octo.ask(endpoints.confirm(held.uuid, contact={"fullName": "Ann Example", "locales": ["en"]}))
        ).record
        assert sold.status == "CONFIRMED"
        assert sold.contact.full_name == "Ann Example"
        changed = (await octo.ask(endpoints.update(held.uuid, notes="window seat"))).record
        assert changed.notes == "window seat"
        assert (await octo.ask(endpoints.booking(held.uuid))).record == changed
        day = slot.local_date_time_start.date()
        for found in (
            await octo.ask(endpoints.bookings(reseller_reference="R 1/2&3")),
            await octo.ask(endpoints.bookings(supplier_reference=held.supplier_reference)),
            await octo.ask(endpoints.bookings(start=day, end=day)),
            await octo.ask(endpoints.bookings(local_date=day)),
        ):
            assert held.uuid in {each.uuid for each in found.record}
        gone = (await octo.ask(endpoints.cancel(held.uuid, reason="rain"))).record
        assert (gone.status, gone.cancellation.reason) == ("CANCELLED", "rain")


async def test_an_older_service_cancels_with_delete(sandbox):
    async with octo_client(sandbox) as octo:
        product, option, slot = await departure(octo)
        held = (await octo.ask(endpoints.reserve(product.id, option.id, slot.id, unit_items=items(option)))).record
        gone = (await octo.ask(endpoints.cancel(held.uuid, by_delete=True))).record
        assert gone.cancellation is not None


async def test_subscriptions_are_created_listed_changed_and_deleted(sandbox):
    async with octo_client(sandbox, who="a") as octo:
        before = (await octo.list_subscriptions()).record
        made = (
            await octo.create_subscription("https://hooks.example/a", ["BOOKING_UPDATE"], {"X-Secret": "s3cret"})
        ).record
        assert made.notification_types == ("BOOKING_UPDATE",)
        assert (await octo.get_subscription(made.id)).record.url == "https://hooks.example/a"
        await octo.update_subscription(made.id, "https://hooks.example/b", ["BOOKING_UPDATE", "PRODUCT_UPDATE"])
        changed = next(each for each in (await octo.list_subscriptions()).record.subscriptions if each.id == made.id)
        assert (changed.url, changed.notification_types) == (
            "https://hooks.example/b",
            ("BOOKING_UPDATE", "PRODUCT_UPDATE"),
        )
        await octo.delete_subscription(made.id)
        assert {each.id for each in (await octo.list_subscriptions()).record.subscriptions} == {
            each.id for each in before.subscriptions
        }
        with pytest.raises(RequestRefused):
            await octo.get_subscription(made.id)


async def test_unknown_ids_are_typed_not_found(sandbox):
    async with octo_client(sandbox) as octo:
        for call in (
            endpoints.product("no such"),
            endpoints.availability("no such", "DEFAULT", TODAY, TODAY),
            endpoints.booking("00000000-0000-4000-8000-000000000000"),
        ):
            with pytest.raises(NotFound):
                await octo.send(call)


async def test_a_wrong_token_is_refused(sandbox):
    async with octo_client(sandbox, who="nobody") as octo:
        with pytest.raises(AuthenticationRefused):
            await octo.ask(endpoints.products())


async def test_a_token_without_the_ability_is_refused_for_subscriptions_only(sandbox):
    async with octo_client(sandbox, who="none") as octo:
        with pytest.raises(AuthenticationRefused):
            await octo.list_subscriptions()
        assert (await octo.ask(endpoints.products())).record


@pytest.mark.parametrize("spelling", ["short", "prefixed"])
async def test_both_spellings_of_capabilities_work(sandbox, spelling):
    async with octo_client(sandbox, capability_spelling=spelling) as octo:
        products = await octo.ask(endpoints.products())
        assert isinstance(products.record[0].options[0].units[0], records.Unit)
        assert ignored_capabilities(("pricing", "content", "extras"), products.answer) == frozenset()


async def test_faults_of_the_sandbox_are_survived(sandbox):
    try:
        for fault in ({"fault": "status_5xx", "count": 2}, {"fault": "truncated", "count": 1}):
            control(sandbox, "PUT", "/faults", [fault])
            async with octo_client(sandbox) as octo:
                assert (await octo.ask(endpoints.products())).record
                assert octo.stats.retries >= 1
    finally:
        control(sandbox, "DELETE", "/faults")
