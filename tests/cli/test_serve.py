"""`serve` and what goes with it, as a person uses them: a sandbox and the program in processes of their own."""

import json
import signal

import pytest
from tests.faults.serving import Copy, Sandbox, until


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A sandbox, and a project that is served and has been pulled."""
    directory = tmp_path_factory.mktemp("serve")
    with Sandbox(directory / "sandbox", bookings=60, products=3, days=20) as sandbox:
        copy = Copy(directory / "project", sandbox)
        with copy.serve() as program:
            copy.ready(program)
            copy.equal()
            yield sandbox, copy, program


def test_a_served_project_pulls_itself_subscribes_and_applies_what_it_is_told(place):
    sandbox, copy, program = place
    kinds = ["note", "redeem", "product", "closeout"]
    made = sandbox.control("POST", "/traffic", {"changes": 5, "seed": 1, "kinds": kinds, "token": "all"})["changes"]
    copy.equal()
    assert len(made) == 5
    assert copy.journal("select distinct source from subjects where kind = 'booking'") != [("schedule",)]
    said = program.said()
    assert "Nothing was ever pulled here" in said
    assert "main: subscription ok: made" in said
    assert "receiver listens on http://127.0.0.1:" in said
    assert "[schedule] is empty" in said


def test_deliveries_can_be_followed_listed_and_marked_again(place):
    sandbox, copy, _ = place
    sandbox.control("POST", "/traffic", {"changes": 3, "seed": 2, "kinds": ["product"]})
    until(lambda: len(copy.journal("select 1 from deliveries where type = 'PRODUCT_UPDATE'")) >= 3, 10, "deliveries")
    code, said = copy.run("listen", "-n", "3", "--count", "3", "--json", "--bodies")
    assert code == 0
    lines = [json.loads(line) for line in said.splitlines()]
    assert {line["type"] for line in lines} == {"PRODUCT_UPDATE"}
    assert all("productId" in line["body"] for line in lines)
    code, said = copy.run("webhooks", "list", "--json")
    listed = json.loads(said)["deliveries"]
    assert code == 0
    assert [d["id"] for d in listed[-3:]] == [line["id"] for line in lines]
    assert all("body" not in d for d in listed)
    sandbox.forget_requests()
    code, said = copy.run("webhooks", "replay", "--since", "2020-01-01")
    assert code == 0, said
    assert f"{len(listed)} deliveries since 2020-01-01 00:00 UTC" in said
    until(lambda: any("/products/" in r["path"] for r in sandbox.requests()), 10, "what was marked again is fetched")


def test_trigger_makes_the_sandbox_tell(place):
    _, copy, _ = place
    before = len(copy.journal("select 1 from deliveries"))
    code, said = copy.run("trigger", "booking", "-n", "4", "-p")
    assert code == 0, said
    assert len(said.splitlines()) == 4
    until(lambda: len(copy.journal("select 1 from deliveries")) >= before + 4, 10, "four deliveries")


def test_status_shows_the_webhooks_while_it_runs(place):
    _, copy, program = place
    code, said = copy.run("status", "--json")
    (connection,) = json.loads(said)["connections"]
    assert code == 0
    assert connection["webhooks"]["last_day"] > 0
    assert connection["webhooks"]["silent"] is None
    assert json.loads(said)["running"]["pid"] == program.pid


def test_a_receiver_that_finds_its_address_taken_says_so(place):
    _, copy, _ = place
    with copy.serve("--only", "receiver") as second:
        assert second.wait() == 2
    assert f"127.0.0.1:{copy.port}" in copy.log.read_text().splitlines()[-1]


def test_sync_beside_it_names_the_owner(place):
    _, copy, program = place
    code, said = copy.run("sync")
    assert code == 6
    assert f"pid {program.pid}" in said


def test_sigterm_ends_it_within_its_time(tmp_path, place):
    sandbox, _, _ = place
    copy = Copy(tmp_path, sandbox)
    with copy.serve() as program:
        copy.ready(program)
        code, took = program.terminate()
    assert code == 128 + signal.SIGTERM
    assert took < 6
