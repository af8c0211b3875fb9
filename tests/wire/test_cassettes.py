"""What was really on the wire, replayed without a network."""

import json
import socket

import pytest
import yaml
from tests.wire.tape import CASSETTES, Instant, pipeline, tape, transport

from octo_sync.app.project import open_project
from octo_sync.flows.sync.pull import Scope
from octo_sync.flows.sync.run import sync


@pytest.fixture
def no_network(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("a replay must not open a connection")

    monkeypatch.setattr(socket.socket, "connect", refuse)


def recorded():
    return yaml.safe_load((CASSETTES / "full_pull.yaml").read_text(encoding="utf-8"))["interactions"]


def bodies(path):
    return [
        json.loads(i["response"]["body"]["string"])
        for i in recorded()
        if i["request"]["uri"].split("?")[0].endswith(path)
    ]


def departures():
    """What was asked for; the day before and the day after were asked for beside it."""
    for each in recorded():
        if each["request"]["uri"].endswith("/availability"):
            asked = json.loads(each["request"]["body"])
            for slot in json.loads(each["response"]["body"]["string"]):
                if asked["localDateStart"] < slot["localDateTimeStart"][:10] < asked["localDateEnd"]:
                    yield slot


async def test_a_recorded_pull_replays_without_a_network_into_the_rows_that_were_sent(tmp_path, no_network):
    with tape("full_pull.yaml") as cassette:
        async with open_project(pipeline(tmp_path), command="test", clock=Instant(), transport=transport) as project:
            result = await sync(project.ports, Scope(), command="test", publishing=False)
            query = project.warehouse.query
            bookings = query("select booking_uuid, retail_minor, status from core.bookings order by 1").rows
            slots = query("select count(*), sum(vacancies) from core.availability").rows[0]
            languages = query("select distinct language from core.product_content order by 1").rows
        assert cassette.all_played
    assert result.status == "ok"
    sent = {b["uuid"]: b for answer in bodies("/bookings") for b in answer}
    assert bookings == sorted((u, b["pricing"]["retail"], b["status"]) for u, b in sent.items())
    assert len(sent) > 5
    offered = list(departures())
    assert slots == (len(offered), sum(s["vacancies"] or 0 for s in offered))
    assert languages == [("en",), ("pt",)]


def test_no_cassette_holds_a_token_or_a_header_that_tells_who_recorded_it():
    files = list(CASSETTES.glob("*.yaml"))
    assert files
    for file in files:
        text = file.read_text(encoding="utf-8").lower()
        assert "authorization" not in text
        assert "sandbox-token" not in text
        assert "bearer" not in text
        assert "user-agent" not in text


def test_recorded_contacts_are_fictitious():
    for answer in bodies("/bookings"):
        for booking in answer:
            mail = booking["contact"]["emailAddress"]
            assert mail is None or mail.endswith(("@example.com", "@example.org", "@example.net"))
