"""`octo-sync deploy`: what is printed and written, and what is filled in."""

import re

import pytest
import yaml
from tests.deploy.conftest import HOSTILE, PIPELINE, interpolated

from octo_sync.cli import deploy as command
from octo_sync.errors import ConfigError
from octo_sync.flows.deploy import files as module
from octo_sync.flows.deploy.quoting import block, compose, crontab, kube, shell
from octo_sync.pipeline.shipped import shipped


def test_the_folder_is_the_registry():
    assert sorted(command.TARGETS) == module.targets()


def test_several_files_are_told_apart_by_headers_and_one_has_none(deploy):
    units, line = deploy("systemd"), deploy("cron")

    assert re.findall(r"^# ---- (.*) ----$", units.stdout, re.MULTILINE) == [
        "octo-sync-sync.service",
        "octo-sync-sync.timer",
        "octo-sync.service",
    ]
    assert "----" not in line.stdout
    assert units.stderr == line.stderr == ""


def test_what_is_printed_is_what_is_written(deploy):
    for target in command.TARGETS:
        printed = deploy(target).stdout
        for name, text in deploy.files(target)[0].items():
            assert name == module.LOCK or text.rstrip("\n") in printed, (target, name)


def test_the_long_lock_is_written_and_not_printed(deploy):
    done = deploy("docker")

    assert "--hash" not in done.stdout
    assert "requirements.lock" in done.stderr
    assert "--hash" in deploy.files("docker")[0]["requirements.lock"]


def test_nothing_is_overwritten_unless_told_and_then_nothing_of_it_is_written(deploy, tmp_path):
    (tmp_path / "etc").mkdir()
    mine = tmp_path / "etc/octo-sync.service"
    mine.write_text("# mine")

    refused = deploy("systemd", "--to", tmp_path / "etc")

    assert isinstance(refused.exception, ConfigError)
    assert "octo-sync.service already; --force" in str(refused.exception)
    assert [path.name for path in (tmp_path / "etc").iterdir()] == ["octo-sync.service"]
    assert mine.read_text() == "# mine"
    assert deploy("systemd", "--to", tmp_path / "etc", "--force").exit_code == 0
    assert "[Service]" in mine.read_text()


def test_a_mistake_in_the_pipeline_file_is_told_and_nothing_is_printed(deploy):
    deploy.pipeline(PIPELINE.replace("[schedule]", "[scheduler]"))

    done = deploy("systemd")

    assert done.stdout == ""
    assert any("scheduler" in mistake for mistake in done.exception.mistakes)


def test_of_several_pipelines_one_is_named(deploy):
    deploy.pipeline(name="second")

    assert "Which pipeline?" in str(deploy("cron").exception)
    assert " sync -p second -C " in deploy("cron", "-p", "second").stdout


def test_a_pipeline_that_lies_elsewhere_is_called_by_its_path(deploy, tmp_path):
    path = tmp_path / "somewhere else.toml"
    path.write_text(PIPELINE)

    assert f" sync -p '{path}' -C " in deploy("cron", "-p", path).stdout


def test_secrets_need_not_be_set_and_known_ones_are_no_matter_of_a_server(deploy):
    deploy.pipeline(
        'destination = "${WAREHOUSE_URL}"\njournal = "postgresql://${WHO}@db.example:${PORT}/octo"\n'
        '[connections.box]\nbase_url = "http://127.0.0.1:8808/octo/v1"\n'
        'token = { env = "BOX", default = "sandbox-token-all" }\n'
        '[dashboard]\ntoken = { env = "DASHBOARD" }\n'
    )

    service = deploy("systemd").stdout

    assert "NAME=value, mode 0600: PORT, WAREHOUSE_URL, WHO" in service
    assert "LoadCredential=dashboard-token:/etc/octo-sync/dashboard-token" in service
    assert "OCTO_SYNC_DASHBOARD__TOKEN__FILE=$CREDENTIALS_DIRECTORY/dashboard-token" in service
    assert "box-token" not in service


def test_addresses_of_hooks_in_managed_files_are_credentials_too(deploy):
    deploy.pipeline(
        PIPELINE + '[notify]\nto = { file = "$CREDENTIALS_DIRECTORY/hook" }\nreport = { file = "own/report" }\n'
        'ping = { file = "$CREDENTIALS_DIRECTORY/hook" }\nsmtp = { env = "LOST" }\n'
    )

    for unit in deploy.files("systemd")[0].values():
        if "[Service]" in unit:
            assert unit.count("LoadCredential=hook:/etc/octo-sync/hook\n") == 1
            assert "NAME=value, mode 0600: LOST, WAREHOUSE_PASSWORD\n" in unit
    compose = yaml.safe_load(deploy.files("docker")[0]["docker-compose.yml"])
    assert compose["services"]["octo-sync"]["secrets"].count("hook") == 1
    assert compose["secrets"]["hook"] == {"file": "./secrets/hook"}
    assert "secrets/hook: the secret of notify.to and notify.ping" in deploy("k8s").stdout


@pytest.mark.parametrize("path", ["/o;c", "/a{b}", "/a%20b", '/a"b', "/a$b"])
@pytest.mark.parametrize("target", ["nginx", "caddy"])
def test_a_path_that_proxies_read_in_their_own_way_is_refused(deploy, target, path):
    deploy.pipeline(PIPELINE.replace("test/octo", f"test{path}".replace('"', '\\"')))

    assert "webhooks.url: its path" in str(deploy(target).exception)


def test_a_receiver_without_a_port_of_its_own_is_refused(deploy):
    deploy.pipeline(PIPELINE.replace(":9797", ":0"))

    assert "webhooks.bind: port 0" in str(deploy("nginx").exception)


@pytest.mark.parametrize(
    ("bind", "reached"),
    [
        ("0.0.0.0:9797", "127.0.0.1:9797"),
        ("[::]:9797", "[::1]:9797"),
        ("[::1]:9797", "[::1]:9797"),
        ("10.1.2.3:80", "10.1.2.3:80"),
    ],
)
def test_a_proxy_calls_the_receiver_where_it_can_be_reached(deploy, bind, reached):
    deploy.pipeline(PIPELINE.replace("127.0.0.1:9797", bind))

    assert f"proxy_pass http://{reached};" in deploy("nginx").stdout
    assert f"reverse_proxy {reached} {{" in deploy("caddy").stdout


def test_without_a_public_address_the_proxies_say_that_theirs_is_an_example(deploy):
    deploy.pipeline(PIPELINE.replace('url = "https://hooks.acme.test/octo"', ""))

    for target in ("nginx", "caddy"):
        assert "webhooks.url of the pipeline is not set yet" in deploy(target).stdout
    deploy.pipeline()
    for target in ("nginx", "caddy"):
        assert "not set yet" not in deploy(target).stdout


@pytest.mark.parametrize("name", HOSTILE)
def test_words_stay_one_word_in_each_format(name):
    assert interpolated(yaml.safe_load(compose(name))) == name
    assert re.sub(r"\$\$(?=\()", "$", yaml.safe_load(kube(name))) == name
    assert not re.search(r"(?<!\$)\$\(", kube(name))


def test_a_percent_sign_is_no_line_break_in_a_crontab():
    assert crontab(shell("50% off")) == "'50\\% off'"


@pytest.mark.parametrize(
    "text",
    [
        "a = 1\n",
        "  indented = 1\nb = 2\n",
        "# c\n\n\n[t]\nx = '''\n  y\n'''\n",
        "a = 1\r\nb = 2\r\n",
        "\ta = 1\n",
        "x = '\u2028'\n",
        "",
    ],
)
def test_a_pipeline_file_survives_as_a_value_of_yaml(text):
    found = yaml.safe_load(f"data:\n  p.toml: {block(text, 2)}\nafter: 1\n")

    assert found["data"]["p.toml"].rstrip("\n") == text.replace("\r\n", "\n").rstrip("\n")
    assert found["after"] == 1


def test_every_file_that_is_printed_is_of_a_kind_that_is_packed():
    root = shipped("deploy")
    strange = [
        path.relative_to(root).as_posix()
        for path in root.rglob("*")
        if path.is_file() and path.suffix not in {".j2", ".sql", ".json", ".yml"} and path.name != module.LOCK
    ]

    assert strange == [], "add the kind to the include lists of wheel and sdist in pyproject.toml, or remove the file"
