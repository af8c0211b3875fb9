"""The same seed gives the same data, byte for byte, in this process and in another."""

import asyncio
import hashlib
import subprocess
import sys

import httpx
import pytest

from octo_sync.sandbox import state
from octo_sync.sandbox.app import SandboxApp
from octo_sync.sandbox.service import Service

SCRIPT = """
import asyncio, datetime, hashlib, httpx
from octo_sync.sandbox.app import SandboxApp
from octo_sync.sandbox.config import SandboxConfig
from octo_sync.sandbox.service import Service
config = SandboxConfig(seed=11, bookings=200, days=60, today=datetime.date(2026, 11, 20), frozen=True)
async def run():
    app = SandboxApp(Service(config))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://t") as client:
        made = await client.post("/_sandbox/traffic", json={"changes": 40, "seed": 3})
        state = await client.get("/_sandbox/state")
        print(hashlib.sha256(made.content + state.content).hexdigest())
    await app.aclose()
asyncio.run(run())
"""


async def fingerprint(config):
    app = SandboxApp(Service(config))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://t") as client:
        made = await client.post("/_sandbox/traffic", json={"changes": 40, "seed": 3})
        whole = await client.get("/_sandbox/state")
        assert len(made.json()["changes"]) == 40
    await app.aclose()
    return hashlib.sha256(made.content + whole.content).hexdigest()


def test_same_seed_same_bytes(config_of):
    config = config_of(seed=11, bookings=200, days=60)
    here = asyncio.run(fingerprint(config))
    assert here == asyncio.run(fingerprint(config))
    assert here != asyncio.run(fingerprint(config_of(seed=12, bookings=200, days=60)))
    there = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert there.stdout.strip() == here


def test_what_is_seeded_stays_as_it_is_until_its_day_is_over(fresh):
    """Who pulls and looks again the same day sees one state, though nobody is told of a hold that lapses."""
    before = fresh.state()["bookings"]
    held = [one["uuid"] for one in before if one["status"] == "ON_HOLD"]
    fresh.control("PUT", "/clock", {"now": "2026-11-20T23:59:59+00:00"})
    assert fresh.state()["bookings"] == before
    fresh.control("PUT", "/clock", {"now": "2026-11-25T00:00:00+00:00"})
    status = {one["uuid"]: one["status"] for one in fresh.state()["bookings"]}
    assert held
    assert {status[uuid] for uuid in held} == {"EXPIRED"}


def test_reset_returns_to_the_seeded_data(fresh):
    before = fresh.state()
    fresh.control("POST", "/traffic", {"changes": 30, "seed": 1})
    fresh.quirks(list_cap_100=True)
    fresh.faults({"fault": "status_5xx", "count": 1, "match": {"path": "/never"}})
    assert fresh.state()["bookings"] != before["bookings"]
    fresh.control("POST", "/reset")
    assert fresh.state() == before
    assert fresh.control("GET", "/quirks")["active"] == {}
    assert fresh.control("GET", "/faults")["faults"] == []


@pytest.mark.parametrize("slots", [3_000, 60_000])
def test_slots_sizes_the_catalogue(config_of, slots):
    service = Service(config_of(slots=slots, bookings=0, days=60))
    assert state.summary(service)["slots_from_today"] == pytest.approx(slots, rel=0.15)
