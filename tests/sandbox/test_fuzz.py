"""Whatever a client sends, it gets an answer below 500, and the books stay in order."""

import asyncio

import httpx
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from octo_sync.sandbox.app import SandboxApp
from octo_sync.sandbox.service import Service

TRAM = "6b1f7b52-6d2e-4c0a-9d3a-0c8f1d7a4e11"
FIELDS = {
    "productId": st.sampled_from([TRAM, "8", "42"]),
    "optionId": st.just("DEFAULT"),
    "availabilityId": st.sampled_from(["2026-12-01T09:30:00+00:00", "2026-12-01", "2026-13-01", ""]),
    "availabilityIds": st.just(["2026-12-01T09:30:00+00:00"]),
    "localDate": st.just("2026-12-01"),
    "localDateStart": st.just("2026-12-01"),
    "localDateEnd": st.sampled_from(["2026-12-03", "2026-11-01"]),
    "units": st.just([{"id": "adult", "quantity": 2}]),
    "unitItems": st.lists(st.fixed_dictionaries({"unitId": st.sampled_from(["adult", "infant", 7])}), max_size=3),
    "contact": st.just({"firstName": "Ana", "locales": ["pt"]}),
    "uuid": st.just("00000000-0000-4000-8000-000000000001"),
    "expirationMinutes": st.integers(-1, 90),
    "url": st.sampled_from(["http://127.0.0.1:9/", "http://[", "ftp://x", "http://a:99999/"]),
    "notificationTypes": st.just(["BOOKING_UPDATE"]),
    "headers": st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2),
    "currency": st.just("EUR"),
    "extraItems": st.just([{"extraId": "x_photo"}]),
    "notes": st.text(max_size=4),
    "force": st.booleans(),
}
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(sorted(FIELDS)), inner, max_size=2),
    max_leaves=4,
)
BODIES = st.fixed_dictionaries({}, optional={key: st.one_of(kind, kind, ANYTHING) for key, kind in FIELDS.items()})
PATHS = [
    ("POST", "/availability"),
    ("POST", "/availability/calendar"),
    ("POST", "/bookings"),
    ("PATCH", "/bookings/{uuid}"),
    ("POST", "/bookings/{uuid}/confirm"),
    ("POST", "/bookings/{uuid}/extend"),
    ("DELETE", "/bookings/{uuid}"),
    ("POST", "/notifications/subscriptions"),
    ("PATCH", "/notifications/subscriptions/{subscription}"),
]
CALLS = st.lists(st.tuples(st.sampled_from(PATHS), BODIES | ANYTHING), min_size=1, max_size=12)


async def play(config, calls):
    headers = {"Authorization": "Bearer sandbox-token-all", "Octo-Capabilities": "pricing,extras,content,notifications"}
    app = SandboxApp(Service(config))
    transport = httpx.ASGITransport(app, client=("127.0.0.1", 1))
    async with httpx.AsyncClient(transport=transport, base_url="http://t/octo/v1", headers=headers) as client:
        made = await client.post(
            "/notifications/subscriptions",
            json={"url": "http://127.0.0.1:9/", "notificationTypes": ["PRODUCT_UPDATE"]},
        )
        names = {"uuid": next(iter(app.service.store.bookings)), "subscription": made.json()["id"]}
        for (method, path), body in calls:
            answer = await client.request(method, path.format(**names), json=body)
            assert answer.status_code < 500, (method, path, body, answer.text)
            if answer.status_code == 200 and path == "/bookings":
                names["uuid"] = answer.json()["uuid"]
        fresh = {}
        for booking in app.service.store.bookings.values():
            if booking.takes_capacity:
                key = (booking.product_id, booking.option_id, booking.slot)
                fresh[key] = fresh.get(key, 0) + app.service.store.places(booking)
        kept = {
            (*pair, slot): taken
            for pair, ledger in app.service.store.ledgers.items()
            for slot, taken in ledger.taken.items()
            if taken
        }
        assert kept == fresh
    await app.aclose()


@settings(deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, database=None)
@given(calls=CALLS)
def test_no_request_breaks_the_service(config_of, calls):
    asyncio.run(play(config_of(bookings=3, products=5, days=30), calls))
