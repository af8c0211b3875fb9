"""`deploy systemd`: units that systemd itself takes, also of places with odd names."""

import re
import stat
import tomllib
from pathlib import Path

import pytest
from tests.deploy.conftest import HOSTILE, Deploy, judged, tool

from octo_sync.flows.deploy import files as module
from octo_sync.pipeline import load


def unit(text):
    """Section → key → values, of a unit without continued lines."""
    found, section = {}, ""
    for line in text.splitlines():
        if match := re.fullmatch(r"\[(\w+)\]", line):
            section = match[1]
        elif line and not line.startswith("#"):
            key, _, value = line.partition("=")
            found.setdefault(section, {}).setdefault(key, []).append(value)
    return found


def verify(folder):
    """What `systemd-analyze verify` says of our units; it tells of the machine's other ones too."""
    said = judged(tool("systemd-analyze"), "verify", *sorted(folder.glob("octo-sync*")))
    return [line for line in said.splitlines() if "octo-sync" in line]


def test_the_units_pass_systemd_s_own_verification(deploy):
    files, folder = deploy.files("systemd")

    assert set(files) == {"octo-sync.service", "octo-sync-sync.service", "octo-sync-sync.timer"}
    assert verify(folder) == []


def test_verification_would_have_found_a_mistake(deploy):
    _, folder = deploy.files("systemd")
    path = folder / "octo-sync.service"
    path.write_text(path.read_text().replace("Restart=on-failure", "Restart=on-monday"))

    assert verify(folder)


def test_the_service_is_well_locked_in(deploy):
    _, folder = deploy.files("systemd")
    for name in ("octo-sync.service", "octo-sync-sync.service"):
        judged(tool("systemd-analyze"), "security", "--offline=true", "--threshold=20", folder / name)


def test_values_are_those_of_the_pipeline(deploy):
    files, _ = deploy.files("systemd")
    service = unit(files["octo-sync.service"])["Service"]

    assert service["TimeoutStopSec"] == ["10s"]
    assert service["SuccessExitStatus"] == ["143"]
    assert service["ExecStart"][0].endswith(f"octo-sync serve -p acme -C {deploy.directory}")
    assert service["WorkingDirectory"] == service["ReadWritePaths"] == [str(deploy.directory)]
    assert service["LoadCredential"] == ["acme-token:/etc/octo-sync/acme-token", "other:/etc/octo-sync/other"]
    assert service["Environment"] == ['"OCTO_SYNC_CONNECTIONS__ACME__TOKEN__FILE=$CREDENTIALS_DIRECTORY/acme-token"']
    assert service["EnvironmentFile"] == ["/etc/octo-sync/environment"]
    assert "NAME=value, mode 0600: WAREHOUSE_PASSWORD" in files["octo-sync.service"]
    assert unit(files["octo-sync-sync.service"])["Service"]["SuccessExitStatus"] == ["6 143"]
    assert unit(files["octo-sync-sync.timer"])["Timer"]["OnCalendar"] == ["Mon *-*-* 02:30:00 Europe/Lisbon"]


def test_the_credential_is_the_token_that_the_program_reads(deploy, tmp_path):
    """What the unit sets makes the pipeline file read the credential, whatever it says itself."""
    from octo_sync.pipeline import load

    service = unit(deploy.files("systemd")[0]["octo-sync.service"])["Service"]
    environ = dict(each.strip('"').split("=", 1) for each in service["Environment"])
    for credential in service["LoadCredential"]:
        (tmp_path / credential.partition(":")[0]).write_text(f"secret of {credential.partition(':')[0]}\n")
    environ |= {"CREDENTIALS_DIRECTORY": str(tmp_path), "WAREHOUSE_PASSWORD": "x"}

    loaded = load(deploy.pipeline(), directory=deploy.directory, environ=environ, overrides={})

    assert [each.token.reveal() for each in loaded.connections] == ["secret of acme-token", "secret of other"]


def test_without_a_pipeline_the_project_is_the_service_manager_s(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    folder = tmp_path / "written"
    from click.testing import CliRunner

    from octo_sync.cli import root

    monkeypatch.chdir(tmp_path / "empty")
    done = CliRunner().invoke(root, ["deploy", "systemd", "--to", str(folder)], obj={})
    service = unit((folder / "octo-sync.service").read_text())["Service"]

    assert done.exit_code == 0, done.output
    assert "the values are examples" in done.stderr
    assert (service["User"], service["StateDirectory"]) == (["octo-sync"], ["octo-sync"])
    assert service["WorkingDirectory"] == ["/var/lib/octo-sync"]
    assert "ReadWritePaths" not in service
    assert service["ExecStart"][0].endswith("octo-sync serve -C /var/lib/octo-sync")
    assert verify(folder) == []


@pytest.mark.deep(0.1, everyday=3)
@pytest.mark.parametrize("name", HOSTILE)
def test_a_project_may_be_called_anything(tmp_path, name):
    deploy = Deploy(tmp_path / name)
    deploy.pipeline(name="a-b_c")

    files, folder = deploy.files("systemd")

    assert verify(folder) == []
    service = unit(files["octo-sync.service"])["Service"]
    assert service["WorkingDirectory"] == [str(deploy.directory).replace("%", "%%")]
    assert words(service["ExecStart"][0])[1:] == ["serve", "-p", "a-b_c", "-C", str(deploy.directory)]
    assert words(service["ReadWritePaths"][0], variables=False) == [str(deploy.directory)]


def test_what_is_written_elsewhere_may_be_written(deploy):
    deploy.pipeline(
        'destination = "/data/a b/octo.duckdb"\njournal = "/data/j/octo.sqlite"\n'
        '[connections.acme]\nbase_url = "https://api.example.com/o"\ntoken = { env = "T" }\n'
        '[reconcile.ledger]\nkeys = ["booking_uuid=id"]\nwrite = ["/reports/ledger.html"]\nthere = { file = "ledger.csv" }\n'
    )

    files, folder = deploy.files("systemd")

    assert verify(folder) == []
    paths = unit(files["octo-sync.service"])["Service"]["ReadWritePaths"]
    assert paths == [str(deploy.directory), '"/data/a b"', "/data/j", "/reports"]
    for target in ("k8s", "docker"):
        text = "".join(deploy.files(target)[0].values())
        assert re.search(r'OCTO_SYNC_JOURNAL\W+(value: )?"octo.sqlite"', text)
    assert re.search(r'OCTO_SYNC_DESTINATION\n +value: "octo.duckdb"', deploy("k8s").stdout)


@pytest.mark.parametrize(
    ("more", "named", "protects"),
    [
        ("", "project/pipelines/acme.toml", "yes"),
        ("", "home/me/acme.toml", "read-only"),
        ('destination = "{home}/octo.duckdb"', "project/pipelines/acme.toml", "read-only"),
        ('publish = {{ path = "{home}/octo.read.duckdb" }}', "project/pipelines/acme.toml", "read-only"),
        ('there.file = "{home}/ledger-*.csv"', "project/pipelines/acme.toml", "read-only"),
        ('there.file = "own/*.csv"\nwrite = ["{home}/ledger.html"]', "project/pipelines/acme.toml", "read-only"),
        ('there.file = "own/*.csv"\nwrite = ["ledger.html"]', "project/pipelines/acme.toml", "yes"),
    ],
)
def test_home_directories_are_hidden_unless_the_pipeline_names_a_file_in_one(
    tmp_path, monkeypatch, more, named, protects
):
    monkeypatch.setattr(module, "_HOMES", (str(tmp_path / "home"),))
    more = more.format(home=tmp_path / "home")
    text = '[connections.acme]\nbase_url = "https://octo.example.com"\ntoken = { env = "T" }\n'
    text = f'{text}[reconcile.ledger]\nkeys = ["uuid"]\n{more}\n' if more.startswith("there") else f"{more}\n{text}"
    path, host = tmp_path / named, module.Host(program=Path("/opt/p"), python=Path("/usr"), user="")
    path.parent.mkdir(parents=True)
    path.write_text(text)
    loaded = load(path, directory=tmp_path / "project", environ={"T": "x"}, overrides={})

    files = module.files("systemd", module.values(loaded, tomllib.loads(text), host, tmp_path / "project"))

    for unit in files.values():
        assert ("[Service]" in unit) == (f"ProtectHome={protects}\n" in unit)


def words(text, *, variables=True):
    """The words of a unit's value as systemd reads them: quotes, escapes, `%%`, and `$$` in command lines."""
    found = []
    for quoted, plain in re.findall(r'"((?:[^"\\]|\\.)*)"|(\S+)', text):
        word = re.sub(r"\\(.)", r"\1", quoted) if quoted else plain
        word = re.sub(r"%(.)", lambda m: {"%": "%"}[m[1]], word)
        found.append(re.sub(r"\$(.)", lambda m: {"$": "$"}[m[1]], word) if variables else word)
    return found


def test_a_line_break_in_a_path_is_refused(tmp_path):
    deploy = Deploy(tmp_path / "two\nlines")
    deploy.pipeline()

    done = deploy("systemd")

    assert "cannot be written into such a file" in str(done.exception)


def test_written_files_can_be_read_by_others_and_hold_no_secret(deploy, monkeypatch):
    monkeypatch.setenv("ACME_TOKEN", "sk-live-1")
    monkeypatch.setenv("WAREHOUSE_PASSWORD", "hunter2")

    for target in module.targets():
        files, folder = deploy.files(target)
        for name, text in files.items():
            assert stat.S_IMODE((folder / name).stat().st_mode) == 0o644
            assert "sk-live-1" not in text
            assert "hunter2" not in text
