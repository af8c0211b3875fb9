"""A sandbox over real sockets, shared by the session; every test leaves it faithful."""

import datetime as dt
import http.server
import json
import threading
import time
from pathlib import Path

import httpx
import jsonschema
import pytest
import yaml

from octo_sync.sandbox.config import SandboxConfig
from octo_sync.sandbox.server import Sandbox

TODAY = dt.date(2026, 11, 20)
NOON = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC)
OPENAPI = Path(__file__).parents[3] / "shared" / "octo" / "openapi.yaml"


def small_config(**changes):
    values = {
        "today": TODAY,
        "frozen": True,
        "bookings": 600,
        "days": 120,
        "retry_base": 0.02,
        "retry_max": 0.08,
        "retry_attempts": 4,
        "delivery_timeout": 1.0,
        "uuid_only_share": 0.3,
    }
    return SandboxConfig(**{**values, **changes})


@pytest.fixture(scope="session")
def config_of():
    return small_config


@pytest.fixture(scope="session")
def _running():
    with Sandbox(small_config()) as running:
        yield running


@pytest.fixture(scope="session")
def _http(_running):
    with httpx.Client(timeout=10, trust_env=False) as client:
        yield client


class Box:
    """The running sandbox, spoken to the way a client and a tester do."""

    def __init__(self, running, client):
        self.running = running
        self.client = client
        self.base_url = running.base_url
        self.control_url = running.control_url

    def call(self, method, path, *, who="all", caps="octo/pricing", headers=None, **more):
        sent = dict(headers or {})
        if who is not None:
            sent["Authorization"] = f"Bearer sandbox-token-{who}"
        if caps is not None:
            sent["Octo-Capabilities"] = caps
        return self.client.request(method, self.base_url + path, headers=sent, **more)

    def get(self, path, **more):
        return self.call("GET", path, **more)

    def post(self, path, body=None, **more):
        return self.call("POST", path, json=body, **more)

    def control(self, method, path, body=None, **more):
        answer = self.client.request(method, self.control_url + path, json=body, **more)
        assert answer.status_code < 300, answer.text
        return answer.json() if answer.content else None

    def quirks(self, **values):
        return self.control("PUT", "/quirks", values)

    def faults(self, *specs):
        return self.control("PUT", "/faults", list(specs))

    def state(self, seen_by=None):
        return self.control("GET", "/state", params={"token": seen_by} if seen_by else {})

    def slots(self, **query):
        return self.control("GET", "/state/availability", params=query)["slots"]

    def open_slot(self, product="6b1f7b52-6d2e-4c0a-9d3a-0c8f1d7a4e11", option="DEFAULT", at_least=6, skip=0):
        found = [
            slot
            for slot in self.slots(product_id=product, option_id=option, **{"from": "2026-11-27", "to": "2027-01-30"})
            if slot["available"] and (slot["vacancies"] is None or slot["vacancies"] >= at_least)
        ]
        return found[skip]

    def reserve(self, slot=None, units=("adult",), who="a", **more):
        slot = slot or self.open_slot()
        body = {
            "productId": slot["product_id"],
            "optionId": slot["option_id"],
            "availabilityId": slot["availability_id"],
            "unitItems": [{"unitId": unit} for unit in units],
            **more,
        }
        answer = self.post("/bookings", body, who=who)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def confirm(self, booking, who="a", **body):
        answer = self.post(f"/bookings/{booking['uuid']}/confirm", {"contact": {}, **body}, who=who)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def subscribe(self, url, *types, who="a", **more):
        body = {"url": url, "notificationTypes": list(types or ("BOOKING_UPDATE",)), **more}
        answer = self.post("/notifications/subscriptions", body, who=who, caps="notifications")
        assert answer.status_code in {200, 201}, answer.text
        return answer.json()


@pytest.fixture
def box(_running, _http):
    box = Box(_running, _http)
    yield box
    service = _running.service  # nobody is asking now, so its state may be touched from here
    service.faults.clear()
    service.quirks.reset()
    service.store.subscriptions.clear()
    service.clock.freeze()
    service.clock.set(NOON)


@pytest.fixture
def fresh(config_of):
    """A sandbox of its own, for tests that change a lot."""
    with Sandbox(config_of(bookings=150)) as running, httpx.Client(timeout=10, trust_env=False) as client:
        yield Box(running, client)


def wait_for(condition, seconds=60.0):
    deadline = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < deadline, "the condition did not come true"
        time.sleep(0.005)


@pytest.fixture(scope="session")
def until():
    return wait_for


class Receiver:
    """A little webhook receiver; `answers` are statuses to give before 200."""

    def __init__(self):
        self.calls = []
        self.answers = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                status = outer.answers.pop(0) if outer.answers else 200
                self.send_response(status)
                if status in {301, 302, 307}:
                    self.send_header("Location", outer.url + "/moved")
                self.send_header("Content-Length", "0")
                self.end_headers()
                outer.calls.append(
                    {
                        "method": self.command,
                        "path": self.path,
                        "headers": {name.lower(): value for name, value in self.headers.items()},
                        "body": json.loads(body),
                        "status": status,
                        "at": time.monotonic(),
                    }
                )

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    @property
    def bodies(self):
        return [call["body"] for call in self.calls]


@pytest.fixture
def receiver():
    receiver = Receiver()
    yield receiver
    receiver.close()


@pytest.fixture(scope="session")
def openapi():
    """The OCTO OpenAPI document as JSON Schema; fields of capabilities that are off are forbidden."""
    if not OPENAPI.exists():
        pytest.skip(f"the OCTO OpenAPI document is not at {OPENAPI}")
    return yaml.load(OPENAPI.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506


def as_json_schema(node, active, name=""):
    """OpenAPI 3.0 to JSON Schema: nullable becomes a union; a field of an inactive capability is refused."""
    if isinstance(node, list):
        return [as_json_schema(entry, active) for entry in node]
    if not isinstance(node, dict):
        return node
    out = {key: as_json_schema(value, active) for key, value in node.items() if key != "nullable"}
    for key, field in (node.get("properties") or {}).items():
        capability = field.get("x-capability-data", {}).get("capability", "").removeprefix("octo/")
        if capability and capability not in active:
            out["properties"][key] = False
        if key == "availabilityLocalStartTimes":
            # The document wants one entry; conformance checkers expect none for OPENING_HOURS.
            out["properties"][key].pop("minItems", None)
    if node.get("nullable") is True:
        return {"anyOf": [{"type": "null"}, out]}
    return out


@pytest.fixture(scope="session")
def validator(openapi):
    made = {}

    def validate(schema, value, *active):
        if (schema, active) not in made:
            components = as_json_schema({"schemas": openapi["components"]["schemas"]}, set(active))
            document = {"components": components, "$ref": f"#/components/schemas/{schema}"}
            made[schema, active] = jsonschema.Draft202012Validator(document)
        made[schema, active].validate(value)

    return validate
