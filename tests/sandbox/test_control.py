"""The control plane: discoverable, loopback only, and telling the truth."""

import datetime as dt
import subprocess
import sys
import threading

import httpx
import pytest

from octo_sync.sandbox.app import SandboxApp
from octo_sync.sandbox.server import Sandbox
from octo_sync.sandbox.service import Service

TRAM = "6b1f7b52-6d2e-4c0a-9d3a-0c8f1d7a4e11"


def test_discover_lists_everything_with_a_sentence(box):
    found = box.control("GET", "")
    for group in ("routes", "faults", "quirks"):
        assert found[group]
        assert all(one["summary"].endswith(".") for one in found[group])
    for route in found["routes"]:
        if "GET" in route["methods"] and "{" not in route["path"]:
            box.control("GET", route["path"].removeprefix("/_sandbox"))


async def test_control_answers_loopback_only(config_of):
    app = SandboxApp(Service(config_of(bookings=0)))
    for host, status in (("127.0.0.1", 200), ("10.1.2.3", 403)):
        transport = httpx.ASGITransport(app, client=(host, 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://t") as client:
            assert (await client.get("/_sandbox/state/summary")).status_code == status
    await app.aclose()


def test_clock(fresh):
    box = fresh
    assert box.control("GET", "/clock")["now"] == "2026-11-20T12:00:00Z"
    assert box.control("PUT", "/clock", {"advance": 90})["now"] == "2026-11-20T12:01:30Z"
    assert box.control("PUT", "/clock", {"now": "2026-12-01T00:00:00+01:00"})["now"] == "2026-11-30T23:00:00Z"
    running = box.control("PUT", "/clock", {"freeze": False})
    assert running["frozen"] is False
    assert box.control("GET", "/clock")["seconds"] > running["seconds"]
    assert abs(box.control("PUT", "/clock", {"offset": 0})["offset"]) < 1


@pytest.mark.parametrize("body", [{"now": "soon"}, {"now": "2026-12-01T00:00:00"}, {"advance": "x"}, [], "x"])
def test_wrong_clock_requests_are_refused(box, body):
    answer = box.client.put(f"{box.control_url}/clock", json=body)
    assert answer.status_code == 400
    assert answer.json()["error"]


def test_request_log_has_no_token_values(box):
    box.control("DELETE", "/requests")
    box.get("/products?x=1", who="a", caps="pricing")
    box.get("/products", who="wrong-secret")
    log = box.control("GET", "/requests")
    assert "sandbox-token" not in str(log)
    assert "wrong-secret" not in str(log)
    first, second = log["requests"]
    assert (first["method"], first["path"], first["query"]) == ("GET", "/products", "x=1")
    assert (first["token"], first["status"], first["capabilities"]) == ("a", 200, "pricing")
    assert (second["token"], second["status"]) == (None, 401)


def test_traffic_makes_and_tells_changes(fresh, receiver, until):
    for token in ("all", "a", "b"):
        fresh.subscribe(receiver.url, "BOOKING_UPDATE", "PRODUCT_UPDATE", "AVAILABILITY_UPDATE", who=token)
    before = {one["uuid"]: one for one in fresh.state()["bookings"]}
    made = fresh.control("POST", "/traffic", {"changes": 60, "seed": 5})["changes"]
    assert len(made) == 60
    after = {one["uuid"]: one for one in fresh.state()["bookings"]}
    changed = {uuid for uuid, one in after.items() if before.get(uuid) != one}
    assert changed == {one["uuid"] for one in made if "uuid" in one}
    until(lambda: fresh.control("GET", "/deliveries")["idle"] and len(receiver.calls) >= 60)
    told = {body["data"].get("uuid") for body in receiver.bodies if body["notificationType"] == "BOOKING_UPDATE"}
    assert told == changed
    only = fresh.control("POST", "/traffic", {"changes": 3, "kinds": ["note"]})["changes"]
    assert [one["kind"] for one in only] == ["note"] * 3
    its = fresh.control("POST", "/traffic", {"changes": 20, "kinds": ["note", "book"], "token": "a"})["changes"]
    assert {one["token"] for one in its} == {"a"}
    for row in fresh.slots(**{"from": "2026-11-20", "to": "2027-01-20"}):
        assert row["vacancies"] is None or row["vacancies"] >= 0


def test_background_traffic_starts_and_stops(fresh, until):
    fresh.control("POST", "/traffic", {"rate": 200, "kinds": ["note", "reserve"], "seed": 1})
    until(lambda: fresh.control("GET", "/traffic")["made"] > 5)
    stopped = fresh.control("DELETE", "/traffic")
    assert stopped["running"] is False
    assert fresh.control("GET", "/traffic")["made"] == stopped["made"]
    fresh.control("POST", "/traffic", {"rate": 200, "kinds": ["book"], "seed": 2, "token": "a"})
    before = {b["uuid"] for b in fresh.control("GET", "/state")["bookings"]}
    until(lambda: len(fresh.control("GET", "/state")["bookings"]) > len(before) + 9)
    fresh.control("DELETE", "/traffic")
    assert {b["token"] for b in fresh.control("GET", "/state")["bookings"] if b["uuid"] not in before} == {"a"}
    answer = fresh.client.post(f"{fresh.control_url}/traffic", json={"changes": 1, "kinds": ["nope"]})
    assert answer.status_code == 400


def test_administrator_changes_a_booking(box):
    booking = box.confirm(box.reserve(units=("adult", "adult")))
    path = f"/admin/bookings/{booking['uuid']}"
    gone = booking["unitItems"][0]["uuid"]
    body = {"notes": None, "contact": {"firstName": "Ana"}, "add_units": ["child"], "remove_unit_items": [gone]}
    changed = box.control("POST", path, body)
    assert [item["unit_id"] for item in changed["unit_items"]] == ["adult", "child"]
    assert changed["contact"]["first_name"] == "Ana"
    assert changed["retail"] == sum(item["price"]["retail"] for item in changed["unit_items"])
    target = box.open_slot(skip=9)
    moved = box.control("POST", path, {"move": {"availability_id": target["availability_id"]}})
    assert moved["local_date"] == target["local_date"]
    redeemed = box.control("POST", path, {"status": "REDEEMED"})
    assert redeemed["utc_redeemed_at"] == "2026-11-20T12:00:00Z"
    assert {item["status"] for item in redeemed["unit_items"]} == {"REDEEMED"}
    assert box.control("GET", f"/state/bookings/{booking['uuid']}") == redeemed
    cancelled = box.control("POST", path, {"status": "CANCELLED", "refund": "PARTIAL", "reason": "storm"})
    assert (cancelled["refund"], cancelled["cancel_reason"]) == ("PARTIAL", "storm")
    assert box.client.post(f"{box.control_url}{path}", json={"status": "NOPE"}).status_code == 400
    assert box.client.post(f"{box.control_url}/admin/bookings/nope", json={}).status_code == 400


def test_administrator_changes_prices(fresh):
    before = fresh.get(f"/products/{TRAM}").json()["options"][0]["units"][0]["pricingFrom"][0]["retail"]
    booking = fresh.reserve()
    fresh.control("PATCH", f"/admin/products/{TRAM}", {"price_percent": 200, "title": {"pt": "Novo"}})
    unit = fresh.get(f"/products/{TRAM}").json()["options"][0]["units"][0]
    assert unit["pricingFrom"][0]["retail"] == 2 * before
    day = booking["availability"]["localDateTimeStart"][:10]
    body = {"productId": TRAM, "optionId": "DEFAULT", "localDate": day}
    dearer = fresh.post("/availability", body).json()[0]["unitPricing"][0]["retail"]
    sold = fresh.get(f"/bookings/{booking['uuid']}").json()
    assert dearer == 2 * sold["pricing"]["retail"]
    fresh.control("DELETE", f"/admin/products/{TRAM}")
    assert fresh.get(f"/bookings/{booking['uuid']}").json()["product"]["id"] == TRAM
    assert fresh.post("/availability", body).json()["error"] == "INVALID_PRODUCT_ID"


def test_subscriptions_lost_and_doubled_behind_the_owners_back(box):
    made = box.subscribe("http://127.0.0.1:9/")
    twin = box.control("POST", f"/admin/subscriptions/{made['id']}")["id"]
    box.control("DELETE", f"/admin/subscriptions/{made['id']}")
    listed = box.get("/notifications/subscriptions", who="a", caps="notifications").json()
    assert listed == [{**made, "id": twin}]


async def test_in_process_without_lifespan(config_of):
    got = []

    async def hook(request):
        got.append(request)
        return httpx.Response(500 if len(got) == 1 else 200)

    slept = []

    async def sleep(seconds):
        slept.append(seconds)

    config = config_of(bookings=20, retry_base=1.0, retry_max=8.0)
    app = SandboxApp(Service(config, transport=httpx.MockTransport(hook), sleep=sleep))
    headers = {"Authorization": "Bearer sandbox-token-a", "Octo-Capabilities": "notifications"}
    transport = httpx.ASGITransport(app, client=("127.0.0.1", 1))
    async with httpx.AsyncClient(transport=transport, base_url="http://t", headers=headers) as client:
        body = {"url": "http://receiver.test/hook", "notificationTypes": ["PRODUCT_UPDATE"]}
        assert (await client.post("/octo/v1/notifications/subscriptions", json=body)).status_code == 201
        await client.patch(f"/_sandbox/admin/products/{TRAM}", json={"reference": "X"})
        await app.service.outbox.drain()
        assert [request.url.path for request in got] == ["/hook", "/hook"]
        assert slept == [1.0]
        await client.put("/_sandbox/faults", json={"reset": {}})
        with pytest.raises(ConnectionResetError):
            await client.get("/octo/v1/supplier")
    await app.aclose()


def test_command_line_says_when_it_listens_and_leaves_at_once():
    command = [sys.executable, "-m", "octo_sync.sandbox", "--bookings", "10", "--today", "2026-11-20", "--frozen"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        line = process.stdout.readline()
        assert line.startswith("listening http://127.0.0.1:")
        assert line.endswith("/octo/v1\n")
        url = line.split()[1].removesuffix("/octo/v1")
        assert httpx.get(f"{url}/_sandbox/state/summary", trust_env=False).json()["bookings"] == 10
        process.terminate()
        assert process.wait(5) == 0
        assert process.stderr.read() == ""


def test_leaves_at_once_while_a_request_hangs(config_of, until):
    with Sandbox(config_of(bookings=0, faults=[{"fault": "hang"}])) as running:
        headers = {"Authorization": "Bearer sandbox-token-a", "Octo-Capabilities": ""}
        failures = []

        def ask():
            try:
                httpx.get(f"{running.base_url}/supplier", headers=headers, timeout=30, trust_env=False)
            except httpx.HTTPError as error:
                failures.append(error)

        asking = threading.Thread(target=ask)
        asking.start()
        until(lambda: running.app.api.log)
        start = dt.datetime.now(dt.UTC)
    asking.join(5)
    assert failures
    assert dt.datetime.now(dt.UTC) - start < dt.timedelta(seconds=3)
