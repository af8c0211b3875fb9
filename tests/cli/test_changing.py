"""What writes: pipeline files, marks, the copy, the built-in service."""

# ruff: noqa: S104, S310 - our own sandbox

import json
import re
import shutil
import signal
import subprocess
import tomllib
import urllib.request
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest
from tests.cli.conftest import finish

from octo_sync import __version__
from octo_sync.cli import demo, sandbox
from octo_sync.destinations.duckdb import files as duckdb_files
from octo_sync.flows.doctor import service as doctor_service
from octo_sync.flows.doctor.seen import Kept
from octo_sync.model import Connection, Horizon, Secret
from octo_sync.octo.client import OctoClient

# -- init -------------------------------------------------------------------------------------------------------------


def test_init_writes_a_valid_commented_file_tests_the_service_and_says_what_is_next(empty, service):
    given = {"ACME_TOKEN": "sandbox-token-a"}

    done = empty("init", "--url", service.base_url, "--token-env", "ACME_TOKEN", "--name", "acme", environment=given)

    text = (empty.directory / "pipelines/acme.toml").read_text()
    assert done.returncode == 0, done.stderr
    assert "sandbox-token-a" not in text + done.stdout + done.stderr
    assert tomllib.loads(text)["connections"]["acme"]["base_url"] == service.base_url
    assert "token accepted" in done.stdout
    for step in ("octo-sync doctor", "octo-sync sync", "octo-sync tables", "octo-sync serve"):
        assert step in done.stdout
    assert empty("sync", environment=given).returncode == 0


def test_where_there_are_several_pipelines_the_next_steps_name_theirs(empty):
    for name in ("other", "acme"):
        words = ["--url", "http://127.0.0.1:1/octo/v1", "--token-env", "ACME_TOKEN", "--name", name, "--no-test"]
        said = empty.ok("init", *words)

    steps = re.findall(r"^  octo-sync (.+?)   # ", said, re.MULTILINE)
    assert len(steps) > 4
    assert [step for step in steps if " -p acme" not in step] == []
    assert empty("config", "show", "-p", "acme").returncode == 0


def test_every_line_that_init_leaves_as_a_comment_is_valid_without_its_mark(empty):
    empty("init", "--url", "http://127.0.0.1:1/octo/v1", "--token-env", "ACME_TOKEN", "--name", "acme", "--no-test")
    path = empty.directory / "pipelines/acme.toml"
    text = path.read_text()
    remarks = {line.rindex("# ") for line in text.splitlines() if re.match(r"# (channel|languages|full|bind) = ", line)}
    assert remarks == {40}

    path.write_text(re.sub(r"^# (?=\[\w+\]|\w+ = )", "", text, flags=re.MULTILINE))
    settings = empty.json("config", "show")["settings"]

    assert settings["webhooks.url"]["value"] == "https://hooks.example.com/octo"
    assert settings["schedule.full"]["value"] == "0 3 * * *"
    assert settings["schedule.near"]["value"] == "0 * * * *"
    assert settings["connections.acme.channel"]["value"] == "acme"


def test_what_the_page_about_webhooks_tells_to_write_is_valid(empty):
    empty("init", "--url", "http://127.0.0.1:1/octo/v1", "--token-env", "ACME_TOKEN", "--name", "acme", "--no-test")
    page = (Path(__file__).parents[2] / "docs/webhooks.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    path = empty.directory / "pipelines/acme.toml"
    path.write_text(path.read_text() + block)

    done = empty("config", "validate", environment={"ACME_TOKEN": "x"})

    assert (done.returncode, done.stderr) == (0, "")


def test_init_overwrites_only_when_told(empty):
    words = ["init", "--url", "https://api.example.com/octo/v1", "--token-env", "ACME_TOKEN", "--no-test"]
    assert empty(*words).returncode == 0
    path = empty.directory / "pipelines/example.toml"
    path.write_text("# mine")

    refused = empty(*words)

    assert refused.returncode == 2
    assert "--yes" in refused.stderr
    assert path.read_text() == "# mine"
    assert empty(*words, "--yes").returncode == 0
    assert "[connections.example]" in path.read_text()


def test_init_refuses_a_token_in_the_place_of_its_name_without_repeating_it(empty):
    done = empty("init", "--url", "https://api.example.com/octo/v1", "--token-env", "sk-live-12345")

    assert done.returncode == 2
    assert "sk-live" not in done.stdout + done.stderr
    assert not list((empty.directory).rglob("*.toml"))


def test_init_works_with_flags_alone(empty, service):
    (empty.directory / "acme.token").write_text("sandbox-token-a")
    words = [
        "--url",
        service.base_url,
        "--token-file",
        "acme.token",
        "--name",
        "acme",
        "--nightly",
        "3:05 Europe/Lisbon",
    ]

    done = empty("init", *words)

    document = tomllib.loads((empty.directory / "pipelines/acme.toml").read_text())
    assert done.returncode == 0, done.stderr
    assert "token accepted" in done.stdout
    assert "octo-sync deploy systemd" in done.stdout
    assert document["connections"]["acme"]["token"] == {"file": "acme.token"}
    assert document["schedule"] == {"time_zone": "Europe/Lisbon", "full": "5 3 * * *"}


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--token-file", "sk-live/12345"], "expected the path of a file"),
        (["--token-env", "A_TOKEN", "--token-file", "./t"], "not both"),
        (["--token-env", "A_TOKEN", "--nightly", "3 am"], "--nightly: expected a time of the day"),
        (["--token-env", "A_TOKEN", "--nightly", "03:00 Lisbon"], "--nightly: expected an IANA time zone"),
        (["--token-env", "A_TOKEN", "--destination", "postgres"], "--destination: expected its address"),
        (["--token-env", "A_TOKEN", "--destination", "mysql://db.example/x"], "--destination: expected its address"),
    ],
)
def test_init_refuses_wrong_flags_and_writes_nothing(empty, words, why):
    done = empty("init", "--url", "https://api.example.com/octo/v1", "-C", "new/place", *words)

    assert done.returncode == 2
    assert why in done.stderr
    assert "sk-live" not in done.stdout + done.stderr
    assert list(empty.directory.iterdir()) == []


def test_init_says_how_a_token_s_file_comes_to_be(empty):
    done = empty(
        "init", "--url", "https://api.example.com/o", "--token-file", "./my token", "-C", "a b", "--name", "acme"
    )

    assert done.returncode == 2
    assert "install -m 0600 /dev/stdin 'a b/my token'" in done.stdout
    assert "octo-sync doctor -C 'a b'" in done.stdout


def test_init_names_mistakes_and_writes_nothing(empty):
    done = empty("init", "--url", "ftp://x", "--token-env", "X_TOKEN", "--name", "x")

    assert done.returncode == 2
    assert "connections.x.base_url" in done.stderr
    assert "X_TOKEN" not in done.stderr, "the token may come later"
    assert not list(empty.directory.rglob("*.toml"))


def test_init_keeps_the_file_when_the_service_refuses_or_the_token_is_not_set(empty, service):
    words = ["init", "--url", service.base_url, "--token-env", "ACME_TOKEN", "--name", "acme", "--yes"]

    refused, missing = empty(*words, environment={"ACME_TOKEN": "wrong"}), empty(*words)

    assert refused.returncode == 4
    assert missing.returncode == 2
    assert "ACME_TOKEN" in missing.stderr
    assert (empty.directory / "pipelines/acme.toml").exists()


def test_publish_and_a_live_verification_need_something_that_landed(fresh):
    done = fresh("verify", "--live")
    assert done.returncode == 1
    assert "run `octo-sync sync` first" in done.stderr

    fresh("verify")  # it makes the databases
    assert (fresh.directory / "octo.duckdb").exists()
    done = fresh("publish")
    assert done.returncode == 1
    assert "Nothing has landed yet; run `octo-sync sync` first" in done.stderr
    assert not (fresh.directory / "octo.read.duckdb").exists()


# -- doctor -----------------------------------------------------------------------------------------------------------


def findings(program, *words, **more):
    done = program("doctor", "--json", *words, **more)
    return done.returncode, {(f["area"], f["name"]): f for f in json.loads(done.stdout)["findings"]}


@pytest.mark.parametrize(("words", "calls"), [((), doctor_service.MOST_CALLS), (("--quick",), 5)])
def test_doctor_asks_a_service_a_few_times_and_finds_nothing_wrong(looked, service, words, calls):
    service.control("DELETE", "/requests")

    code, found = findings(looked, *words)

    assert code == 0
    assert {f["level"] for f in found.values()} <= {"ok", "unknown"}
    assert 5 <= len(service.control("GET", "/requests")["requests"]) <= calls
    assert (("shop", "conformance") in found) == (not words)
    assert {
        ("machine", "python"), ("machine", "duckdb"), ("machine", "time zones"), ("files", "directory"), ("files", "modes"),
        ("files", "lock"), ("files", "disk"), ("shop", "name"), ("shop", "answer"), ("shop", "clock"),
    } <= found.keys()  # fmt: skip
    assert found["files", "storage"]["text"].endswith(tuple(f"{duckdb_files.STORAGE}{more}" for more in ("", "+")))


def test_doctor_offline_asks_nobody(looked, service):
    service.control("DELETE", "/requests")

    assert findings(looked, "--offline")[0] == 0
    assert service.control("GET", "/requests")["requests"] == []


def test_doctor_exits_4_for_a_refused_token_after_one_call(looked, service):
    service.control("DELETE", "/requests")

    code, found = findings(looked, environment={"SHOP_TOKEN": "wrong"})

    assert code == 4
    assert found["shop", "answer"]["level"] == "fail"
    assert "SHOP_TOKEN" in found["shop", "answer"]["fix"]
    assert len(service.control("GET", "/requests")["requests"]) == 1


def test_doctor_exits_1_when_the_service_is_down_or_the_file_is_wrong(fresh, empty):
    path = fresh.directory / "pipelines/shop.toml"
    path.write_text(re.sub(r'base_url = ".*"', 'base_url = "http://127.0.0.1:9/octo/v1"', path.read_text()))
    assert findings(fresh)[0] == 1

    path.write_text("[connections.shop]\nnope = 1\n")
    code, found = findings(fresh)
    assert code == 1
    assert found["pipeline", "mistake"]["level"] == "fail"

    (fresh.directory / "pipelines/other.toml").write_text("")
    code, found = findings(fresh)
    assert code == 1
    assert found["pipeline", "file"]["fix"] == "-p NAME"

    for each in path.parent.iterdir():
        each.unlink()
    code, found = findings(fresh)
    assert code == 1
    assert found["pipeline", "file"]["fix"] == "octo-sync init"


def test_doctor_sees_loose_modes_ignored_capabilities_and_tokens_that_may_not_subscribe(project, service):
    (project.directory / "octo.duckdb").chmod(0o644)
    service.control("PUT", "/quirks", {"capability_spelling": "short"})
    try:
        code, found = findings(project, environment={"SHOP_TOKEN": "sandbox-token-none"})
    finally:
        service.control("DELETE", "/quirks")

    assert code == 0
    assert "chmod 600" in found["files", "modes"]["fix"]
    assert {found["shop", f"capability {name}"]["level"] for name in ("pricing", "content", "extras")} == {"warn"}
    assert 'capability_spelling = "short"' in found["shop", "capability pricing"]["fix"]
    assert found["shop", "subscriptions"]["level"] == "warn"


@pytest.mark.parametrize(("seconds", "level"), [(0, "ok"), (4, "ok"), (60, "warn"), (-60, "warn")])
async def test_doctor_sees_a_clock_that_is_wrong(service, seconds, level):
    class Shifted:
        def now(self):
            return datetime.now(UTC) + timedelta(seconds=seconds)

    connection = Connection(name="shop", base_url=service.base_url, token=Secret("sandbox-token-all"))
    async with OctoClient(connection, clock=Shifted(), random=Random(1)) as client:
        found = {
            f.name: f
            for f in (
                await doctor_service.service(
                    client, clock=Shifted(), kept=Kept(Horizon(-60, 60), Horizon(0, 45)), quick=True
                )
            ).findings
        }

    assert found["clock"].level == level
    if level == "warn":
        assert ("ahead" if seconds > 0 else "behind") in found["clock"].text


# -- quarantine, publish ----------------------------------------------------------------------------------------------


@pytest.fixture
def quarantined(fresh, service):
    service.refuse_a_product()
    assert fresh("sync").returncode == 5
    service.faults()
    return fresh


def test_quarantine_lists_retries_and_drops(quarantined):
    entries = quarantined.json("quarantine")["entries"]
    assert entries
    first, *rest = [e["id"] for e in entries]
    assert quarantined("quarantine", "--retry").returncode == 2
    assert quarantined("quarantine", "--retry", "subject-999999").returncode == 1

    assert first in quarantined.ok("quarantine", "--retry", first)
    done = quarantined("quarantine", "--drop", "--all", stdin="y\n")
    assert done.returncode == 2, "nobody can be asked here"
    assert "--yes" in done.stderr

    assert {e["id"] for e in quarantined.json("quarantine")["entries"]} == set(rest)
    dropped = quarantined.json("quarantine", "--drop", "--all", "--yes")["entries"]
    assert {e["id"] for e in dropped} == set(rest)
    assert quarantined.json("quarantine")["entries"] == []
    assert quarantined("sync").returncode == 0


@pytest.mark.deep(2)
def test_status_counts_the_quarantined(quarantined):
    (shop,) = quarantined.json("status")["connections"]

    assert shop["quarantined"] == len(quarantined.json("quarantine")["entries"])


def test_publish_swaps_in_a_copy_and_needs_something_to_publish(project, empty):
    copy = project.directory / "octo.read.duckdb"
    copy.unlink()
    assert project("sql", "select 1").returncode == 1

    assert project.json("publish")["published"]
    assert copy.stat().st_mode & 0o077 == 0
    shutil.copytree(project.directory / "pipelines", empty.directory / "elsewhere/pipelines")
    done = empty("publish", "-C", "elsewhere")
    assert done.returncode == 1
    assert "octo-sync sync" in done.stderr


# -- the built-in service ---------------------------------------------------------------------------------------------


@pytest.mark.deep(2, everyday=["2-130"])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_sandbox_serves_until_a_signal_says_what_to_call(empty, number, code):
    words = [
        "sandbox",
        "serve",
        "--port",
        "0",
        "--products",
        "2",
        "--bookings",
        "5",
        "--days",
        "10",
        "--today",
        "2026-11-20",
    ]
    process = empty.start(*words)
    lines = [process.stdout.readline() for _ in range(4)]
    url = lines[0].split()[-1]

    request = urllib.request.Request(
        f"{url}/products", headers={"Authorization": "Bearer sandbox-token-all", "Octo-Capabilities": ""}
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        assert len(json.load(answer)) == 2
    assert "sandbox-token-all" in lines[1]
    assert "octo-sync sync" in lines[3]
    ended, _, err = finish(process, number)

    assert ended == code
    assert "Traceback" not in err


def test_the_demos_service_alone_is_the_one_that_the_demo_has_pulled(capsys):
    sizes = {p.name: p.default for p in demo.command.params if p.name in ("seed", "bookings", "products", "days")}
    serve = sandbox.command.commands["serve"]
    with serve.make_context("serve", ["--demo"]) as context:
        config = sandbox._config({k: v for k, v in context.params.items() if k not in ("host", "port", "public")})
        sandbox._announce("http://127.0.0.1:8808/octo/v1", config)

    assert len(sizes) == 4
    assert {name: getattr(config, name) for name in sizes} == sizes
    assert "octo-sync sync -C octo-demo\n" in capsys.readouterr().out, "its tokens are known there"


def test_the_sandbox_refuses_addresses_others_can_reach_and_ports_in_use(empty, service):
    done = empty("sandbox", "serve", "--host", "0.0.0.0")
    assert done.returncode == 2
    assert "--public" in done.stderr

    port = re.search(r":(\d+)/", service.base_url)[1]
    done = empty("sandbox", "--port", port)
    assert done.returncode == 1
    assert f"port {port}" in done.stderr


# -- completion, definitions, the environment -------------------------------------------------------------------------


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_accepted_by_their_shell(empty, shell):
    script = empty(environment={"_OCTO_SYNC_COMPLETE": f"{shell}_source"}).stdout

    assert "_OCTO_SYNC_COMPLETE" in script
    if path := shutil.which(shell):
        subprocess.run([path, "-n"], input=script, text=True, check=True, timeout=10)


def test_completion_knows_the_commands(empty):
    asked = {"_OCTO_SYNC_COMPLETE": "bash_complete", "COMP_WORDS": "octo-sync st", "COMP_CWORD": "1"}

    assert empty(environment=asked).stdout.split() == ["plain,status"]


def test_definitions_are_printed_of_all_tables_or_one(empty):
    one = empty.ok("tables", "bookings", "--ddl")

    assert one.count("create table if not exists") == 1
    assert "create table if not exists core.bookings" in one
    assert one in empty.ok("tables", "--ddl")
    assert empty("tables", "core.nope", "--ddl").returncode == 2


def test_config_says_where_each_value_comes_from(fresh):
    given = {"OCTO_SYNC_CONNECTIONS__SHOP__LIMITS__CONCURRENCY": "3"}

    settings = fresh.json("config", "show", environment=given)["settings"]

    assert settings["connections.shop.limits.concurrency"] == {
        "value": 3,
        "origin": "env OCTO_SYNC_CONNECTIONS__SHOP__LIMITS__CONCURRENCY",
    }
    assert settings["connections.shop.base_url"]["origin"] == "pipeline file"
    assert settings["sync.attempts"] == {"value": 2, "origin": "pipeline file"}
    assert settings["sync.raw"]["origin"] == "default"


def test_version_names_what_it_stands_on(empty):
    lines = [line.split() for line in empty.ok("--version").splitlines()]

    assert lines[0] == ["octo-sync", __version__]
    assert [name for name, _ in lines[1:]] == ["python", "duckdb", "sqlite"]
    assert all(re.match(r"\d+\.\d+", number) for _, number in lines)


def test_the_installed_program_and_the_module_are_one(empty):
    assert empty("--version", real=True).stdout == empty("--version").stdout


def test_fields_that_a_service_sends_no_more_are_listed_until_they_are_let_go(project, service):
    service.control("PUT", "/quirks", {"fields_dropped": ["booking.utcUpdatedAt"]})
    known = "select count(utc_updated_at) as n from core.bookings"
    try:
        assert project("sync").returncode == 5
        assert project.json("sql", known)["rows"][0]["n"] > 50, "kept"
        (field,) = project.json("drift")["fields"]
        assert (field["connection"], field["path"]) == ("shop", "bookings.utcUpdatedAt")
        assert "sends no `utcUpdatedAt` of bookings any more" in project.ok("status")
        refused = project("drift", "--accept", "bookings.title")
        assert (refused.returncode, "is not missing" in refused.stderr) == (2, True)
        assert "accepted  shop:bookings.utcUpdatedAt" in project.ok("drift", "--accept", "bookings.utcUpdatedAt")
        assert "Nothing is missing." in project("drift").stderr
        project.ok("sync")
        assert project.json("sql", known)["rows"] == [{"n": 0}]
    finally:
        service.control("DELETE", "/quirks")
