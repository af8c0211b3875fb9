"""`serve` and what goes with it, as a person uses them: a sandbox and the program in processes of their own."""

import contextlib
import json
import re
import signal
import socket
import threading
from collections import Counter

import pytest
from tests.cli import conftest
from tests.faults.serving import Copy, Program, Sandbox, asked, free_port, until


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
    code, said = copy.run("webhooks", "list", "-n", "3", "--json", "--bodies")
    assert code == 0
    lines = json.loads(said)["deliveries"]
    assert {line["type"] for line in lines} == {"PRODUCT_UPDATE"}
    assert all("productId" in line["body"] for line in lines)
    code, said = copy.run("webhooks", "list", "--json")
    listed = json.loads(said)["deliveries"]
    assert code == 0
    assert [d["id"] for d in listed[-3:]] == [line["id"] for line in lines]
    assert all("body" not in d for d in listed)
    product = json.loads(lines[0]["body"])["data"]["productId"]
    assert lines[0]["product"] == listed[-3]["product"] == product
    assert re.search(rf"product +{product} +\d+", copy.run("webhooks", "list")[1])
    assert f'"productId":"{product}"' in copy.run("webhooks", "list", "--bodies")[1]
    sandbox.forget_requests()
    code, said = copy.run("webhooks", "replay", "--since", "2020-01-01")
    assert code == 0, said
    assert f"{len(listed)} deliveries since 2020-01-01 00:00 UTC" in said
    until(lambda: any("/products/" in r["path"] for r in sandbox.requests()), 10, "what was marked again is fetched")


@pytest.mark.deep(3, everyday=["10m-0"])
@pytest.mark.parametrize(("since", "code"), [("10m", 0), ("26h", 0), ("2999-01-01", 2), ("soon", 2), ("-5m", 2)])
def test_a_replay_begins_at_a_time_or_so_long_ago_and_never_in_the_future(place, since, code):
    _, copy, _ = place
    exited, said = copy.run("webhooks", "replay", f"--since={since}")
    assert exited == code, said
    if code:
        assert f"octo-sync: error: --since: {since}" in said.replace('"', "")


def test_trigger_makes_the_sandbox_tell(place):
    _, copy, _ = place
    before = len(copy.journal("select 1 from deliveries"))
    code, said = copy.run("sandbox", "trigger", "booking", "-n", "4")
    assert code == 0, said
    assert len(said.splitlines()) == 4
    until(lambda: len(copy.journal("select 1 from deliveries")) >= before + 4, 10, "four deliveries")


def test_trigger_needs_no_token_because_it_calls_the_sandbox_alone(place):
    sandbox, copy, _ = place
    text = (copy.directory / "pipeline.toml").read_text().partition("[connections.main.limits]")[0]
    shop = '[connections.{}]\nbase_url = "{}"\ntoken = {{ env = "NOBODY_SET_THIS" }}\n'
    text = text.partition("[connections")[0] + shop.format("acme", "https://api.example.com")
    (copy.directory / "without.toml").write_text(text + shop.format("box", sandbox.base_url))
    done = conftest.Program(copy.directory)("sandbox", "trigger", "product", "-n", "2", "-p", "without.toml")
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 2


@pytest.mark.deep(5)
def test_listening_shows_what_comes_and_nothing_from_before(tmp_path, place):
    _, copy, _ = place
    until(
        lambda: copy.run("sandbox", "trigger", "booking")[0] == 0 and copy.journal("select 1 from deliveries"),
        20,
        "one",
    )
    (newest,) = copy.journal("select max(id) from deliveries")[0]
    words = ["webhooks", "--follow", "-p", "pipeline.toml", "-n", "0", "--json"]
    log = tmp_path / "follow.log"
    with Program(*words, cwd=copy.directory, log=log) as following:

        def told():
            # Whether it looks already is nobody's business but its own: one of these comes after it began.
            assert copy.run("sandbox", "trigger", "booking")[0] == 0
            return "\n" in log.read_text()

        until(told, 60, following.said)
    shown = json.loads(log.read_text().splitlines()[0])
    assert shown["id"] > newest
    assert [(shown["type"], shown["booking"])] == [
        (kind, json.loads(body)["data"]["uuid"])
        for kind, body in copy.journal("select type, body from deliveries where id = ?", shown["id"])
    ]


@pytest.mark.deep(2)
def test_status_shows_the_webhooks_while_it_runs(place):
    sandbox, copy, program = place
    sandbox.control("POST", "/traffic", {"changes": 1, "seed": 3, "kinds": ["product"]})
    until(lambda: copy.journal("select 1 from deliveries"), 20, "a delivery")
    code, said = copy.run("status", "--json")
    (connection,) = json.loads(said)["connections"]
    assert code == 0
    assert connection["webhooks"]["last_day"] > 0
    assert connection["webhooks"]["silent"] is None
    assert json.loads(said)["running"]["pid"] == program.pid


@pytest.mark.deep(2)
def test_a_receiver_that_finds_its_address_taken_says_so(place):
    _, copy, _ = place
    with copy.serve("--only", "receiver") as second:
        assert second.wait() == 2
    # Both programs write there.
    (said,) = [line for line in copy.log.read_text().splitlines() if "webhooks.bind: cannot listen" in line]
    assert f"127.0.0.1:{copy.port}" in said
    assert "another `octo-sync serve`" in said
    assert "--bind" in said


@pytest.mark.deep(3)
@pytest.mark.parametrize(("limit", "taken"), [("-Sn", "all"), ("-n", "350")])
def test_connections_of_strangers_leave_the_program_its_files(place, limit, taken):
    _, copy, _ = place
    port, log = free_port(), copy.directory / f"strangers{limit}.log"
    narrow = ("sh", "-c", f'ulimit {limit} 700; exec "$@"', "sh")
    words = ("serve", "-p", "pipeline.toml", "--only", "receiver", "--bind", f"127.0.0.1:{port}")
    with Program(*words, cwd=copy.directory, log=log, wrapper=narrow) as program:
        copy.ready(program, port=port)
        with contextlib.ExitStack() as strangers:
            for _ in range(750):
                strangers.enter_context(socket.create_connection(("127.0.0.1", port)))
            assert copy.is_ready(port) or taken != "all"
        until(lambda: copy.is_ready(port), 10, program.said)
    assert "Too many open files" not in program.said()
    assert ("receiver takes 350 connections" in program.said()) == (taken == "350")


def test_a_second_one_says_who_works_and_that_it_takes_over(place):
    _, copy, program = place
    with copy.serve("--only", "worker") as second:
        until(lambda: "takes over" in second.said(), 20, second.said)
        assert f"pid {program.pid}" in second.said()
        assert "wait until" not in second.said()


def test_sync_beside_it_names_the_owner(place):
    _, copy, program = place
    code, said = copy.run("sync")
    assert code == 6
    assert f"pid {program.pid}" in said


def test_sigterm_ends_it(tmp_path, place):
    sandbox, _, _ = place
    copy = Copy(tmp_path, sandbox)
    with copy.serve() as program:
        copy.ready(program)
        code, _ = program.terminate()
    assert code == 128 + signal.SIGTERM
    assert "terminated; every delivery that was acknowledged is kept" in program.said()


@pytest.mark.deep(10)
def test_what_changed_while_a_subscription_was_gone_is_asked_for(tmp_path, place):
    sandbox, _, _ = place
    copy = Copy(tmp_path / "project", sandbox)
    with copy.serve() as program:
        copy.ready(program)
        copy.first_landing()
        subscriptions = sandbox.octo("/notifications/subscriptions")
        (gone,) = [one["id"] for one in subscriptions if f":{copy.port}/" in one["url"]]
        uuid = next(b["uuid"] for b in sandbox.state()["bookings"] if b["token"] == "all")
        sandbox.control("DELETE", f"/admin/subscriptions/{gone}")
        sandbox.control("POST", f"/admin/bookings/{uuid}", {"supplier_reference": "NOBODY-WAS-TOLD"})
        restored = "was missing or changed at the service and has been restored; a full pull has started."
        until(lambda: restored in program.said(), 30, program.said)
        copy.equal()
    assert not any(uuid in body.decode() for (body,) in copy.journal("select body from deliveries"))


def test_a_canary_measures_how_soon_webhooks_tell(tmp_path, place):
    sandbox, _, _ = place
    product = sandbox.state()["products"][0]["id"]
    copy = Copy(tmp_path / "project", sandbox)
    file = copy.directory / "pipeline.toml"
    canary = f'canary = {{ product = "{product}", every = "0.5s" }}\n[connections.main.limits]'
    file.write_text(file.read_text().replace("[connections.main.limits]", canary))

    def noted():
        found = json.loads(copy.run("status", "--json")[1])["connections"][0]["webhooks"]
        return (found or {}).get("canary") or {}

    with copy.serve() as program:
        copy.ready(program)
        lags = []
        # Most of the time the next hold is waited for.
        until(lambda: (lag := noted().get("lag")) is not None and not lags.append(lag), 60, program.said)
        assert 0 <= lags[0] < 60
        until(lambda: re.search(r"canary .* ago: told after \d+\.\d s", copy.run("status")[1]), 60, program.said)
    holds = [one for one in sandbox.state()["bookings"] if one["notes"] and "canary" in one["notes"]]
    left = Counter(one["status"] for one in holds)
    assert left["CANCELLED"] > 0
    assert left.keys() <= {"CANCELLED", "EXPIRED", "ON_HOLD"}
    assert left["ON_HOLD"] <= 1, "each was released but the one in hand when it was stopped"


def test_a_ledger_is_compared_after_a_pull_and_serving_goes_on(tmp_path, place):
    sandbox, _, _ = place
    copy = Copy(tmp_path / "project", sandbox)
    file = copy.directory / "pipeline.toml"
    ledger = '[reconcile.ledger]\nthere = { file = "ledger.csv" }\nkeys = ["booking_uuid=id"]\nfields = { status = "state" }\n'
    file.write_text(f"{file.read_text()}\n{ledger}")
    (copy.directory / "ledger.csv").write_text("id,state\n00000000-0000-4000-8000-000000000001,CONFIRMED\n")
    with copy.serve() as program:
        copy.ready(program)
        until(lambda: re.search(r"reconcile ledger: \d+ differences, \d+ new", program.said()), 60, program.said)
        code, _ = program.terminate()
    assert code == 128 + signal.SIGTERM, "it served on"


@pytest.mark.deep(4)
def test_a_service_that_does_not_answer_is_said_once_and_nothing_is_published(tmp_path, place):
    sandbox, _, _ = place
    copy = Copy(tmp_path / "project", sandbox, limits="attempts = 1")
    tries = []
    with socket.create_server(("127.0.0.1", 0)) as dead:

        def hang_up():
            with contextlib.suppress(OSError):
                while True:
                    dead.accept()[0].close()
                    tries.append(copy.log.read_text().count("tried again"))

        threading.Thread(target=hang_up, daemon=True).start()
        address = f"http://127.0.0.1:{dead.getsockname()[1]}/octo/v1"
        with copy.serve(env={"OCTO_SYNC_CONNECTIONS__MAIN__BASE_URL": address}) as program:
            copy.ready(program)
            until(lambda: "pull (full) failed" in program.said(), 60, program.said)
            # It is asked again and again, and that is no news.
            until(lambda: tries.count(1) > 6, 60, lambda: f"{tries} {program.said()}")
            assert program.said().count("tried again") == 1, program.said()
            dead.shutdown(socket.SHUT_RDWR)
    assert not (copy.directory / "octo.read.duckdb").exists()


def test_nothing_owed_is_a_zero_for_whoever_scrapes(place):
    _, copy, _ = place
    copy.until_clean()
    _, page = asked("GET", copy.host, "/metrics")
    assert b'octo_sync_backlog_subjects{connection="main",kind="booking"} 0.0' in page
