"""`octo-sync subscriptions`: words, documents and exit codes, against a service over sockets."""

# ruff: noqa: S310 - our own sandbox

import json
import re
import urllib.request

import pytest
from tests.cli.conftest import PIPELINE
from tests.cli.test_terminal import ESCAPES, on_a_terminal

BASE = "https://hooks.example.com/octo"
DEAD = "http://127.0.0.1:9/octo/v1"


def add(program, text):
    path = program.directory / "pipelines/shop.toml"
    path.write_text(path.read_text() + text)


@pytest.fixture
def hooked(fresh, service):
    """A project that was never synced, with an address for its receiver and a token of its own."""
    path = fresh.directory / "pipelines/shop.toml"
    path.write_text(PIPELINE.format(url=service.base_url).replace("sandbox-token-all", "sandbox-token-b"))
    add(fresh, f'\n[webhooks]\nurl = "{BASE}"\n')
    yield fresh
    for each in there(service):
        service.control("DELETE", f"/admin/subscriptions/{each['id']}")


def there(service, method="GET", body=None):
    """Somebody else with the same token."""
    request = urllib.request.Request(
        service.base_url + "/notifications/subscriptions",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": "Bearer sandbox-token-b", "Octo-Capabilities": "notifications"},
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.loads(answer.read())


def secret_parts(service):
    return [each["url"].rpartition("/")[2] for each in there(service)]


def test_ensure_makes_one_and_says_so_and_a_second_time_it_is_as_it_should_be(hooked, service):
    first, second = hooked("subscriptions", "ensure"), hooked("subscriptions", "ensure")

    assert (first.returncode, second.returncode) == (0, 0)
    assert re.fullmatch(r"ok +shop  made\n", first.stdout)
    assert re.fullmatch(r"ok +shop  as it should be\n", second.stdout)
    (one,) = there(service)
    assert one["url"].startswith(f"{BASE}/hooks/")


def test_ensure_rotate_and_remove_as_documents(hooked, service):
    made = hooked.json("subscriptions", "ensure")
    (one,) = there(service)
    assert made["kind"] == "subscriptions-ensure"
    assert made["connections"] == [
        {
            "connection": "shop",
            "state": "ok",
            "text": "made",
            "subscription_id": one["id"],
            "changed": {"created": 1},
        }
    ]
    assert hooked.json("subscriptions", "rotate")["connections"][0]["changed"] == {"changed": 1}
    (moved,) = there(service)
    assert (moved["id"], moved["url"] == one["url"]) == (one["id"], False)
    removed = hooked.json("subscriptions", "remove", "--yes")["connections"][0]
    assert (removed["state"], removed["changed"]) == ("off", {"deleted": 1})
    assert there(service) == []
    assert hooked.json("subscriptions", "remove", "--yes")["connections"][0]["changed"] == {}
    assert "shop  off, removed on request" in hooked.ok("status")
    assert hooked.json("status")["connections"][0]["webhooks_removed_at"]
    hooked.ok("subscriptions", "ensure")
    assert "removed" not in hooked.ok("status")


@pytest.mark.deep(1)
def test_list_tells_ours_from_others_and_shows_no_whole_address(hooked, service):
    assert "subscriptions ensure" in hooked("subscriptions").stderr
    hooked.ok("subscriptions", "ensure")
    stranger = {"url": "https://user:pass@crm.example.com/in/key", "notificationTypes": ["BOOKING_UPDATE"]}
    stranger = there(service, "POST", stranger)["id"]

    listed = hooked.json("subscriptions", "list")
    table = hooked.ok("subscriptions")

    ours, other = listed["subscriptions"]
    assert (ours["whose"], ours["state"], ours["first_delivery_at"]) == ("ours", "current", None)
    assert ours["types"] == ["AVAILABILITY_UPDATE", "BOOKING_UPDATE", "PRODUCT_UPDATE"]
    assert re.fullmatch(rf"{BASE}/hooks/[\w-]{{6}}…", ours["url"])
    assert (other["subscription_id"], other["whose"], other["url"]) == (
        stranger,
        "somebody else's",
        "https://crm.example.com/…",
    )
    assert re.search(
        rf"^shop +{ours['subscription_id']} +ours +current +availability, booking, product ", table, re.MULTILINE
    )
    assert "key" not in table
    assert not [part for part in secret_parts(service) if part in table + json.dumps(listed)]


@pytest.mark.deep(5)
def test_on_a_terminal_it_is_green_and_nothing_is_cut(hooked, service):
    code, seen = on_a_terminal(hooked, "subscriptions", "ensure")
    _, listed = on_a_terminal(hooked, "subscriptions", width=90)

    assert code == 0
    assert "\x1b[32m" in seen
    assert max(map(len, ESCAPES.sub("", listed).splitlines())) <= 90
    assert there(service)[0]["id"] in listed


@pytest.mark.deep(2)
def test_removing_asks_first(hooked, service):
    hooked.ok("subscriptions", "ensure")

    unasked = hooked("subscriptions", "remove")
    code, seen = on_a_terminal(hooked, "subscriptions", "remove", typed=["n"])

    assert (unasked.returncode, "--yes" in unasked.stderr) == (2, True)
    assert (code, "shop" in seen) == (130, True)
    assert len(there(service)) == 1
    assert on_a_terminal(hooked, "subscriptions", "remove", typed=["y"])[0] == 0
    assert there(service) == []


def test_without_an_address_it_is_exit_2_and_says_which_key(fresh):
    for verb in ("ensure", "rotate"):
        done = fresh("subscriptions", verb)

        assert done.returncode == 2
        assert "webhooks.url" in done.stderr
        assert done.stderr.count("\n") == 1
    assert fresh("subscriptions", "remove", "--yes").returncode == 0
    assert fresh("subscriptions", "list").returncode == 0


def test_a_refused_token_is_exit_4(hooked):
    for words in (["ensure"], ["rotate"], ["remove", "--yes"], ["list"]):
        done = hooked("subscriptions", *words, environment={"SHOP_TOKEN": "revoked-xyzzy"})

        assert done.returncode == 4, words
        assert "SHOP_TOKEN" in done.stderr
        assert "revoked-xyzzy" not in done.stdout + done.stderr


@pytest.mark.deep(3)
def test_a_token_without_the_ability_is_exit_1_and_a_sentence(hooked):
    done = hooked("subscriptions", "ensure", environment={"SHOP_TOKEN": "sandbox-token-none"})

    assert done.returncode == 1
    assert done.stdout.startswith("unavailable  shop  ")
    assert "pulls go on alone" in done.stdout
    document = hooked("subscriptions", "ensure", "--json", environment={"SHOP_TOKEN": "sandbox-token-none"})
    assert (document.returncode, json.loads(document.stdout)["connections"][0]["state"]) == (1, "unavailable")


@pytest.mark.deep(4)
def test_some_connections_failing_is_exit_5_and_the_others_have_theirs(hooked, service):
    add(
        hooked,
        f'\n[connections.dead]\nbase_url = "{DEAD}"\ntoken = {{ env = "DEAD_TOKEN" }}\n'
        "limits = { attempts = 1, deadline = 2 }\n",
    )
    environment = {"DEAD_TOKEN": "x"}

    done = hooked("subscriptions", "ensure", environment=environment)
    listed = hooked("subscriptions", "list", "--json", environment=environment)
    alone = hooked("subscriptions", "ensure", "--connection", "dead", environment=environment)

    assert (done.returncode, listed.returncode, alone.returncode) == (5, 5, 1)
    assert "shop  made" in done.stdout
    assert re.search(r"^failed +dead  ", done.stderr, re.MULTILINE)
    assert [each["connection"] for each in json.loads(listed.stdout)["failed"]] == ["dead"]
    assert "shop" not in alone.stdout + alone.stderr
    assert len(there(service)) == 1
    assert hooked("subscriptions", "ensure", "-c", "shop", environment=environment).returncode == 0


def test_a_connection_that_does_not_exist_is_exit_2(hooked):
    done = hooked("subscriptions", "ensure", "-c", "shopp")

    assert done.returncode == 2
    assert "shop" in done.stderr


def test_it_works_beside_a_sync_that_owns_the_project(hooked, service):
    service.faults(
        {"fault": "latency", "seconds": 1.0, "match": {"path": "/(supplier|products|availability|bookings).*"}}
    )
    sync = hooked.start("sync")
    try:
        assert hooked("subscriptions", "ensure").returncode == 0
        assert sync.poll() is None, "it had ended, so this proved nothing"
    finally:
        sync.kill()
        sync.communicate()


def test_debug_shows_no_secret(hooked, service):
    done = hooked("--debug", "subscriptions", "ensure")

    assert "action=subscription_created" in done.stderr
    assert not [part for part in secret_parts(service) if part in done.stdout + done.stderr]
    assert "X-Octo-Sync-Secret" not in done.stdout + done.stderr
