"""Each fault shows its effect; the list comes from the discover route, so a fault without a test fails."""

import gzip
import json
import math
import socket
import time
from urllib.parse import urlsplit

import httpx
import pytest

from octo_sync.sandbox.faults import CATALOGUE

TRAM = "6b1f7b52-6d2e-4c0a-9d3a-0c8f1d7a4e11"


def on(box, fault, **more):
    box.faults({"fault": fault, **more})


def fired(box, name):
    return box.control("GET", "/faults")["fired"].get(name, 0)


def status_429(box):
    for value in ("7", "Fri, 20 Nov 2026 12:00:30 GMT", "soon", None):
        on(box, "status_429", retry_after=value)
        answer = box.get("/supplier")
        assert (answer.status_code, answer.headers.get("retry-after")) == (429, value)
    on(box, "status_429", header="OCTO-RateLimit-RetryAfter", retry_after="3")
    assert box.get("/supplier").headers["octo-ratelimit-retryafter"] == "3"


def status_5xx(box):
    on(box, "status_5xx", code=504, count=2, match={"path": "/products", "method": "GET"})
    codes = [box.get(path).status_code for path in ("/supplier", "/products", "/products/8", "/products")]
    assert codes == [200, 504, 504, 200]


def html_502(box):
    on(box, "html_502")
    answer = box.get("/supplier")
    assert (answer.status_code, answer.headers["content-type"]) == (502, "text/html")


def unauthorized(box):
    box.faults({"fault": "unauthorized", "token": "a"})
    assert box.get("/supplier", who="b").status_code == 200
    assert box.get("/supplier", who="a").json()["error"] == "Unauthorized"


def redirect(box):
    on(box, "redirect", location="http://127.0.0.1:9/x")
    answer = box.get("/supplier")
    assert (answer.status_code, answer.headers["location"]) == (302, "http://127.0.0.1:9/x")


def hang(box):
    on(box, "hang")
    with pytest.raises(httpx.ReadTimeout):
        box.get("/supplier", timeout=0.1)
    on(box, "hang", seconds=0.02)
    with pytest.raises(httpx.RemoteProtocolError):
        box.get("/supplier")


def latency(box):
    on(box, "latency", seconds=0.15)
    start = time.monotonic()
    assert box.get("/supplier").status_code == 200
    assert time.monotonic() - start >= 0.15


def option_400(box):
    on(box, "option_400", product_id=TRAM, option_id="opt_private")
    body = {"productId": TRAM, "localDate": "2026-12-01"}
    assert box.post("/availability", {**body, "optionId": "opt_private"}).status_code == 400
    assert box.post("/availability", {**body, "optionId": "DEFAULT"}).status_code == 200


def read_lag(box):
    booking = box.reserve()
    box.control("PUT", "/clock", {"advance": 10})
    box.confirm(booking)
    path = f"/bookings/{booking['uuid']}"
    window = f"/bookings?localDate={booking['availability']['localDateTimeStart'][:10]}"
    on(box, "read_lag", seconds=5)
    assert box.get(path).json()["status"] == "ON_HOLD"
    listed = {one["uuid"]: one["status"] for one in box.get(window).json()}
    assert listed[booking["uuid"]] == "ON_HOLD"
    on(box, "read_lag", seconds=60)
    assert box.get(path).json()["error"] == "INVALID_BOOKING_UUID"
    assert booking["uuid"] not in {one["uuid"] for one in box.get(window).json()}
    box.control("PUT", "/clock", {"advance": 61})
    assert box.get(path).json()["status"] == "CONFIRMED"


def empty_200(box):
    on(box, "empty_200")
    answer = box.get("/supplier")
    assert (answer.status_code, answer.content) == (200, b"")


def html_200(box):
    on(box, "html_200")
    answer = box.get("/supplier")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html")


def _broken(box, name):
    on(box, name)
    answer = box.get("/products")
    assert answer.status_code == 200
    with pytest.raises(ValueError, match=r"Expecting|Unterminated|Extra data|delimiter"):
        json.loads(answer.content)


def malformed(box):
    _broken(box, "malformed")


def chopped(box):
    _broken(box, "chopped")


def bom(box):
    on(box, "bom")
    content = box.get("/supplier").content
    assert content.startswith(b"\xef\xbb\xbf{")


def utf16(box):
    on(box, "utf16")
    assert json.loads(box.get("/supplier").content.decode("utf-16"))["id"]


def nan(box):
    on(box, "nan")
    row = json.loads(box.get("/products").content)[0]["options"][0]
    assert math.isnan(row["cancellationCutoffAmount"])


def duplicate_keys(box):
    on(box, "duplicate_keys")
    assert box.get("/supplier").text.startswith('{"id":null,"id":"sup_')


def deep(box):
    on(box, "deep", levels=5_000)
    assert box.get("/supplier").content == b"[" * 5_000 + b"]" * 5_000


def nul(box):
    on(box, "nul")
    assert box.get("/supplier").json()["id"].startswith("\0")
    on(box, "nul", raw=True)
    assert b"\0" in box.get("/supplier").content


def gzip_bomb(box):
    on(box, "gzip_bomb", bytes=20_000_000)
    request = box.client.build_request(
        "GET",
        f"{box.base_url}/supplier",
        headers={"Authorization": "Bearer sandbox-token-all", "Octo-Capabilities": ""},
    )
    answer = box.client.send(request, stream=True)
    raw = b"".join(answer.iter_raw())
    answer.close()
    assert answer.headers["content-encoding"] == "gzip"
    assert len(raw) < 100_000
    assert len(gzip.decompress(raw)) > 19_000_000


def big_body(box):
    on(box, "big_body", bytes=3_000_000)
    answer = box.get("/supplier")
    assert len(answer.content) == 3_000_000
    assert answer.json()["id"]


def empty_list(box):
    on(box, "empty_list")
    assert box.get("/products").json() == []
    assert box.get("/supplier").json()["id"]


def cut_list(box):
    on(box, "cut_list", drop=0.5)
    rows = box.get("/bookings?localDateStart=2026-11-01&localDateEnd=2026-12-31").json()
    box.control("DELETE", "/faults")
    whole = box.get("/bookings?localDateStart=2026-11-01&localDateEnd=2026-12-31").json()
    assert 0.2 * len(whole) < len(rows) < 0.8 * len(whole)
    assert [row for row in whole if row in rows] == rows


def truncated(box):
    on(box, "truncated")
    with pytest.raises(httpx.RemoteProtocolError):
        box.get("/supplier")


def reset(box):
    on(box, "reset")
    with pytest.raises((httpx.RemoteProtocolError, httpx.ReadError)):
        box.get("/products")


def drip(box):
    on(box, "drip", interval=0.002, bytes=50)
    start = time.monotonic()
    assert box.get("/supplier").json()["id"]
    assert time.monotonic() - start > 0.008


def create_timeout(box):
    on(box, "create_timeout")
    body = {"url": "http://127.0.0.1:9/lost", "notificationTypes": ["BOOKING_UPDATE"]}
    with pytest.raises(httpx.ReadTimeout):
        box.post("/notifications/subscriptions", body, caps="notifications", timeout=0.1)
    assert [one["url"] for one in box.get("/notifications/subscriptions", caps="notifications").json()] == [body["url"]]


def delivery_lost(box, receiver, until):
    box.subscribe(receiver.url)
    on(box, "delivery_lost", count=1)
    lost, kept = box.reserve(), box.reserve()
    until(lambda: receiver.calls)
    assert [body["data"]["uuid"] for body in receiver.bodies] == [kept["uuid"]]
    assert box.control("GET", "/deliveries")["deliveries"][-2]["state"] == "lost"
    assert lost["uuid"] != kept["uuid"]


def delivery_doubled(box, receiver, until):
    box.subscribe(receiver.url)
    on(box, "delivery_doubled")
    box.reserve()
    until(lambda: len(receiver.calls) == 2)
    assert receiver.bodies[0] == receiver.bodies[1]


def delivery_late(box, receiver, until):
    box.subscribe(receiver.url)
    on(box, "delivery_late", seconds=0.2)
    start = time.monotonic()
    box.reserve()
    until(lambda: receiver.calls)
    assert receiver.calls[0]["at"] - start >= 0.2


def delivery_reordered(box, receiver, until):
    box.subscribe(receiver.url)
    on(box, "delivery_reordered", count=1, seconds=5)
    first, second = box.reserve(), box.reserve()
    until(lambda: len(receiver.calls) == 2)
    assert [body["data"]["uuid"] for body in receiver.bodies] == [second["uuid"], first["uuid"]]


def test_every_fault_is_discoverable_and_tested(box):
    listed = [one["fault"] for one in box.control("GET", "")["faults"]]
    assert listed == [kind.name for kind in CATALOGUE]
    assert [name for name in listed if not callable(globals().get(name))] == []


@pytest.mark.parametrize("name", [kind.name for kind in CATALOGUE])
def test_fault(box, request, name):
    case = globals()[name]
    before = fired(box, name)
    if name.startswith("delivery_"):
        case(box, request.getfixturevalue("receiver"), request.getfixturevalue("until"))
    else:
        case(box)
    assert fired(box, name) > before
    box.control("DELETE", "/faults")
    assert box.get("/supplier").json()["name"] == "Sandbox Tours"


def test_share_is_seeded(box):
    on(box, "status_5xx", share=0.5)
    codes = [box.get("/supplier").status_code for _ in range(40)]
    assert 5 < codes.count(503) < 35


def test_reset_cuts_the_connection_mid_body(box):
    on(box, "reset")
    parts = urlsplit(box.base_url)
    with socket.create_connection((parts.hostname, parts.port), timeout=5) as sock:
        sock.sendall(
            b"GET /octo/v1/products HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer sandbox-token-all\r\n"
            b"Octo-Capabilities: \r\n\r\n"
        )
        got = b""
        try:
            while chunk := sock.recv(65_536):
                got += chunk
        except ConnectionResetError:
            pass
    head, _, body = got.partition(b"\r\n\r\n")
    length = int(next(line for line in head.split(b"\r\n") if line.startswith(b"content-length")).split(b":")[1])
    assert len(body) < length


@pytest.mark.parametrize(
    "spec",
    [
        [{"fault": "nope"}],
        [{"fault": "latency", "second": 1}],
        [{"fault": "latency", "share": 2}],
        [{"fault": "latency", "count": 0}],
        [{"fault": "latency", "match": {"path": "("}}],
        "latency",
    ],
)
def test_wrong_faults_are_refused(box, spec):
    answer = box.client.put(f"{box.control_url}/faults", json=spec)
    assert answer.status_code == 400
    assert box.control("GET", "/faults")["faults"] == []


def test_faults_as_a_dict_and_added(box):
    box.control("PUT", "/faults", {"latency": {"seconds": 0.0, "share": 0.5}, "bom": {}})
    shown = box.control("POST", "/faults", [{"fault": "nul", "count": 3}])["faults"]
    assert [one["fault"] for one in shown] == ["latency", "bom", "nul"]
    assert shown[2]["count"] == 3
    left = box.control("DELETE", "/faults?fault=bom")["faults"]
    assert [one["fault"] for one in left] == ["latency", "nul"]
