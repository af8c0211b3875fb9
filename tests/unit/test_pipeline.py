"""The pipeline file: every value from the right place, every mistake named, no secret told."""

import math
import sys
import tomllib
from collections import Counter
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from octo_sync.errors import ConfigError
from octo_sync.model import Connection, Horizon, Limits
from octo_sync.pipeline import STOP_WITHIN, Pipeline, find, load, names, values
from octo_sync.pipeline.keys import KEYS
from octo_sync.pipeline.layers import Layers, dotenv
from octo_sync.pipeline.load import parse
from octo_sync.pipeline.settings import SyncSettings
from octo_sync.pipeline.shipped import local_or_shipped, shipped

MINIMAL = """
[connections.acme]
base_url = "https://api.example.com/octo/v1"
token = { env = "ACME_TOKEN" }
"""
TELLTALE = "tok-5f3a9c"


@pytest.fixture
def project(tmp_path):
    (tmp_path / "pipelines").mkdir()
    return tmp_path


@pytest.fixture
def read(project):
    def _read(text=MINIMAL, *, environ=None, overrides=None, name="acme"):
        path = project / "pipelines" / f"{name}.toml"
        path.write_text(text, encoding="utf-8")
        return load(
            path, directory=project, environ={"ACME_TOKEN": TELLTALE, **(environ or {})}, overrides=overrides or {}
        )

    return _read


@pytest.fixture
def mistakes(read):
    def _mistakes(text=MINIMAL, **arguments):
        with pytest.raises(ConfigError) as caught:
            read(text, **arguments)
        assert TELLTALE not in f"{caught.value!r} {caught.value} {caught.value.mistakes}"
        assert caught.value.__cause__ is None
        return caught.value.mistakes

    return _mistakes


def connection(lines, url="https://api.example.com/octo/v1", where='{ env = "ACME_TOKEN" }'):
    return f'[connections.acme]\nbase_url = "{url}"\ntoken = {where}\n{lines}\n'


# What a file becomes


def test_an_address_and_a_token_are_enough(read, project):
    pipeline = read()

    assert pipeline.name == "acme"
    assert pipeline.destination == project / "octo.duckdb"
    assert pipeline.private_path == project / "octo.private.duckdb"
    assert pipeline.journal_path == project / "octo.journal.sqlite"
    assert pipeline.publish.path == project / "octo.read.duckdb"
    assert pipeline.horizons.bookings == Horizon(-90, 365)
    assert pipeline.sync == SyncSettings()
    (only,) = pipeline.connections
    bare = Connection(name="acme", base_url=only.base_url, token=only.token, channel="acme")
    assert only == bare
    assert only.token.reveal() == TELLTALE
    assert pipeline.warnings == ()


def test_a_journal_is_a_file_of_the_project_or_a_server(read, project):
    assert read('journal = "state/j.sqlite"\n' + MINIMAL).journal == project / "state/j.sqlite"
    pipeline = read('journal = "postgresql://octo@db.example/octo"\n' + MINIMAL)
    assert pipeline.journal == "postgresql://octo@db.example/octo"
    assert pipeline.journal_path == project / "octo.journal.sqlite"  # the lock's name


def test_every_key_arrives_in_seconds_and_bytes(read, project):
    pipeline = read(
        """
name = "nightly"
destination = "data/tours.duckdb"
journal = "data/j.sqlite"
[horizon]
bookings = "-7d..+30d"
availability = "0d..+14d"
[connections.acme]
base_url = "https://api.example.com:8443/octo/v1/"
token = { env = "ACME_TOKEN" }
capabilities = ["octo/pricing", "content", "pricing", "vendor/special"]
capability_spelling = "short"
capability_overrides = { products = [], calendar = false, bookings = ["octo/pricing"] }
languages = ["en", "pt-BR"]
headers = { Octo-Env = "live" }
role = "supplier"
channel = "Own sales"
business_time_zone = "Europe/Lisbon"
booking_date_means = "creation"
products = { include = ["p1", "p2"], exclude = ["p2"] }
[connections.acme.limits]
concurrency = 3
requests_per_minute = 65
deadline = "2m"
attempts = 2
backoff = "100ms"
[sync]
confirm_after = [0.1, "200ms"]
raw = []
[publish]
enabled = false
contacts = true
path = "out/read.duckdb"
[schedule]
time_zone = "Europe/Lisbon"
full = "0 3 * * *"
"""
    )

    (only,) = pipeline.connections
    assert pipeline.name == "nightly"
    assert pipeline.destination == project / "data/tours.duckdb"
    assert pipeline.horizons.availability == Horizon(0, 14)
    assert only.base_url == "https://api.example.com:8443/octo/v1"
    assert only.token.reveal() == TELLTALE
    assert only.capabilities == ("pricing", "content", "vendor/special")
    assert only.capability_overrides == {"products": (), "calendar": None, "bookings": ("pricing",)}
    assert only.limits == Limits(
        concurrency=3,
        requests_per_minute=65.0,
        deadline=120.0,
        attempts=2,
        backoff=0.1,
    )
    assert pipeline.sync.confirm_after == (0.1, 0.2)
    assert pipeline.sync.raw == ()
    assert pipeline.publish.path == project / "out/read.duckdb"
    assert pipeline.schedule.full == "0 3 * * *"
    keeps = pipeline.products["acme"].keeps
    assert (keeps("p1"), keeps("p2"), keeps("p3")) == (True, False, False)


def test_a_postgresql_address_is_a_destination_without_files_of_its_own(read):
    pipeline = read('destination = "postgresql://octo@db.example/octo"\n' + MINIMAL)

    assert pipeline.destination == "postgresql://octo@db.example/octo"
    assert pipeline.private_path is None


@pytest.mark.parametrize(
    ("address", "lake"),
    [("delta+s3://bucket/acme", "s3://bucket/acme"), ("delta+file:///srv/lake/acme", "file:///srv/lake/acme")],
)
def test_a_place_for_delta_tables_is_a_destination_with_a_working_copy_beside_the_project(read, project, address, lake):
    pipeline = read(f'destination = "{address}"\n' + MINIMAL)

    assert pipeline.lake == lake
    assert pipeline.destination == project / ".acme.lake/octo.duckdb"
    assert pipeline.private_path == project / ".acme.lake/octo.private.duckdb"
    assert pipeline.publish.path == project / "octo.read.duckdb"
    assert read(MINIMAL).lake is None


@pytest.mark.parametrize(
    ("written", "delta"),
    [("s3://bucket/octo/", "s3://bucket/octo"), ("../lake", "{project}/../lake"), ("/srv/a", "/srv/a")],
)
def test_what_is_published_goes_into_delta_tables_too_at_an_address_or_a_folder(read, project, written, delta):
    assert read(f'publish.delta = "{written}"\n' + MINIMAL).publish.delta == delta.format(project=project)
    assert read(MINIMAL).publish.delta == ""


def test_a_pipeline_never_shows_its_tokens(read):
    pipeline = read()

    assert TELLTALE not in f"{pipeline!r} {pipeline} {pipeline.settings}"
    assert pipeline.settings["connections.acme.token"].value == "set (env ACME_TOKEN)"


# Precedence and origins


def test_flag_over_environment_over_dotenv_over_file_over_default(read, project):
    key, variable = "connections.acme.limits.concurrency", "OCTO_SYNC_CONNECTIONS__ACME__LIMITS__CONCURRENCY"

    def seen(text=MINIMAL, **arguments):
        pipeline = read(text, **arguments)
        return pipeline.connections[0].limits.concurrency, pipeline.settings[key].origin

    written = MINIMAL + "limits = { concurrency = 2 }\n"
    assert seen() == (6, "default")
    assert seen(written) == (2, "pipeline file")
    (project / ".env").write_text(f"{variable}=3\n")
    assert seen(written) == (3, f".env {variable}")
    (project / "pipelines/.env").write_text(f"export {variable}='4'  # beside the file\n")
    assert seen(written) == (4, f".env {variable}")
    assert seen(written, environ={variable: "5"}) == (5, f"env {variable}")
    assert seen(written, environ={variable: "5"}, overrides={key: 7}) == (7, "flag")
    assert seen(written, environ={variable: "5"}, overrides={key: "8"}) == (8, "flag")
    assert seen(written, environ={variable: "5"}, overrides={key: None}) == (5, f"env {variable}")


@pytest.mark.parametrize(
    ("variable", "text", "key", "value"),
    [
        ("OCTO_SYNC_NAME", "2024", "name", "2024"),
        ("OCTO_SYNC_HORIZON__BOOKINGS", "-1d..+1d", "horizon.bookings", "-1d..+1d"),
        ("OCTO_SYNC_SYNC__CONFIRM_AFTER", "0.1,2s", "sync.confirm_after", (0.1, 2.0)),
        ("OCTO_SYNC_SYNC__CONFIRM_AFTER", '[0.1, "2s"]', "sync.confirm_after", (0.1, 2.0)),
        ("OCTO_SYNC_SYNC__RAW", "", "sync.raw", ()),
        ("OCTO_SYNC_CONNECTIONS__ACME__PRODUCTS__INCLUDE", "a,b", "connections.acme.products", {"include": ("a", "b")}),
        ("OCTO_SYNC_PUBLISH__ENABLED", "false", "publish.enabled", False),
        ("OCTO_SYNC_CONNECTIONS__ACME__LANGUAGES", "pt, en", "connections.acme.languages", ("pt", "en")),
        ("OCTO_SYNC_CONNECTIONS__ACME__HEADERS__OCTO_ENV", "test", "connections.acme.headers", {"Octo-Env": "test"}),
        (
            "OCTO_SYNC_CONNECTIONS__ACME__CAPABILITY_OVERRIDES__PRODUCTS",
            "false",
            "connections.acme.capability_overrides",
            {"products": None},
        ),
    ],
)
def test_a_variable_becomes_what_its_key_is(read, variable, text, key, value):
    pipeline = read(MINIMAL + 'headers = { Octo-Env = "live" }\n', environ={variable: text})

    assert pipeline.settings[key].value == value


def test_names_are_compared_without_case_and_dashes(read):
    text = MINIMAL.replace("connections.acme", "connections.acme-eu")

    pipeline = read(text, environ={"OCTO_SYNC_CONNECTIONS__ACME_EU__ROLE": "supplier"})

    assert pipeline.connections[0].role == "supplier"


def test_a_variable_for_another_pipelines_connection_is_reported_and_ignored(read):
    pipeline = read(environ={"OCTO_SYNC_CONNECTIONS__OTHER__ROLE": "supplier"})

    assert pipeline.warnings == (
        "env OCTO_SYNC_CONNECTIONS__OTHER__ROLE: this pipeline has no connection other; ignored",
    )


def test_other_programs_variables_are_left_alone(read):
    assert read(environ={"OCTO_SYNC_DEBUG": "1", "OCTO_SYNCHRO__X": "1", "PATH": "/bin"}).warnings == ()


def test_every_key_has_a_setting_with_an_origin(read):
    pipeline = read()
    every = [key for key in KEYS.values() if not key.table and "token" not in key.path]
    leaves = {key.dotted.replace("NAME", "acme") for key in every if key.path[0] != "reconcile"}

    assert set(pipeline.settings) == leaves | {"connections.acme.token", "dashboard.token"}
    assert pipeline.settings["connections.acme.base_url"].origin == "pipeline file"
    assert pipeline.settings["connections.acme.token"].origin == "pipeline file"


# Webhooks


def test_without_an_address_there_are_no_webhooks_and_every_limit_has_a_default(read):
    pipeline = read()

    assert pipeline.webhooks.url == ""
    assert pipeline.webhooks.address == ("127.0.0.1", 8787)
    assert (pipeline.webhooks.body_limit, pipeline.webhooks.header_limit) == (65536, 16384)
    assert (pipeline.webhooks.keep, pipeline.webhooks.rest, pipeline.webhooks.silence_after) == (30 * 86400, 5, 0)
    assert pipeline.webhooks.check_every == 25, "a lost subscription is made anew within half a minute"
    assert (pipeline.sync.verify_bookings_within, pipeline.sync.verify_budget) == (86400, 600)
    assert pipeline.canaries == {}
    assert (pipeline.publish.every, STOP_WITHIN) == (60, 5)
    assert pipeline.horizons.near == Horizon(0, 30)


def test_a_canary_is_a_product_and_needs_webhooks_that_can_tell(read, mistakes):
    text = connection('canary = { product = "17" }')
    (mistake,) = mistakes(text)
    assert mistake.startswith("connections.acme.canary: expected webhooks.url too")
    hooks = '[webhooks]\nurl = "https://hooks.example.com"\n'
    canary = read(f"{text}{hooks}").canaries["acme"]
    assert (canary.product, canary.every) == ("17", 3600.0)
    assert mistakes(connection('canary = { every = "1h" }') + hooks) == (
        "connections.acme.canary: expected product too, the id of one made for tests",
    )


def test_every_time_of_a_server_goes_down_to_a_tenth_of_a_second(read):
    pipeline = read(
        """
[webhooks]
url = "https://hooks.example.com/octo/"
bind = "[::1]:0"
keep = 0.1
[publish]
every = 0.1
[horizon]
near = "-1d..+3d"
[schedule]
near = "*/5 * * * *"
"""
        + MINIMAL,
        environ={"OCTO_SYNC_SYNC__VERIFY_BOOKINGS_WITHIN": "0.1"},
    )

    hooks = pipeline.webhooks
    assert hooks.url == "https://hooks.example.com/octo"
    assert hooks.address == ("::1", 0)
    assert (hooks.keep, pipeline.publish.every, pipeline.sync.verify_bookings_within) == (0.1, 0.1, 0.1)
    assert (pipeline.horizons.near, pipeline.schedule.near) == (Horizon(-1, 3), "*/5 * * * *")


@pytest.mark.parametrize(
    ("url", "hosts"),
    [
        ("http://127.0.0.1:8787", "[]"),
        ("http://localhost/x", "[]"),
        ("https://10.0.0.1/hooks", '["10.0.0.1"]'),
        ("http://octo-sync:8787", '["octo-sync"]'),
    ],
)
def test_the_receiver_may_be_reached_over_http_here_and_where_it_is_named(read, url, hosts):
    assert read(f'[webhooks]\nurl = "{url}"\nallow_hosts = {hosts}\n' + MINIMAL).webhooks.url == url


# Tokens


def test_a_token_in_a_variable_of_its_key(read):
    pipeline = read(environ={"OCTO_SYNC_CONNECTIONS__ACME__TOKEN": "other"})

    assert pipeline.connections[0].token.reveal() == "other"
    assert pipeline.settings["connections.acme.token"].value == "set (env OCTO_SYNC_CONNECTIONS__ACME__TOKEN)"


def test_a_token_in_dotenv(read, project):
    (project / ".env").write_text("# secrets\nOTHER='from dotenv'\nACME2_TOKEN=\"abc\"\n")

    pipeline = read(connection("", where='{ env = "ACME2_TOKEN" }'))

    assert pipeline.connections[0].token.reveal() == "abc"
    assert repr(pipeline.connections[0].token) == "set (.env ACME2_TOKEN)"


@pytest.mark.parametrize(
    ("text", "variables", "wanted"),
    [
        ("postgresql://u:${PW}@h/d", {"PW": TELLTALE}, f"postgresql://u:{TELLTALE}@h/d"),
        ("postgresql://u:${PW}@h/d", {"PW": f"{TELLTALE}@/?#%:"}, f"postgresql://u:{TELLTALE}%40%2F%3F%23%25%3A@h/d"),
        ("postgresql://${WHO}:${PW}@h/d", {"PW": TELLTALE, "WHO": "a b"}, f"postgresql://a%20b:{TELLTALE}@h/d"),
        ("postgresql://h/d?password=${PW}&x=1", {"PW": f"{TELLTALE}&"}, f"postgresql://h/d?password={TELLTALE}%26&x=1"),
        ("postgresql://u@${HOST}/d", {"HOST": "one:5433,two:5434"}, "postgresql://u@one:5433,two:5434/d"),
        ("${URL}", {"URL": f"postgres://u:{TELLTALE}@h/d"}, f"postgres://u:{TELLTALE}@h/d"),
        (
            "${URL}?sslmode=require",
            {"URL": f"postgres://u:{TELLTALE}@h/d"},
            f"postgres://u:{TELLTALE}@h/d?sslmode=require",
        ),
    ],
)
def test_a_password_in_an_address_comes_from_the_environment_and_is_not_told(read, project, text, variables, wanted):
    (project / ".env").write_text("PW=from-the-file-that-counts-less\n")
    pipeline = read(f'destination = "{text}"\njournal = "{text}"\n{MINIMAL}', environ=variables)
    assert pipeline.destination == pipeline.journal == wanted
    assert pipeline.settings["destination"].value == pipeline.settings["journal"].value == text
    assert TELLTALE not in f"{pipeline!r} {pipeline} {pipeline.settings}"
    assert pipeline.publish.path == project / "octo.read.duckdb"


def test_a_password_in_an_address_may_stand_in_a_file_beside_the_pipeline(read, project):
    (project / ".env").write_text(f"PW={TELLTALE}\n")
    assert read('destination = "postgresql://u:${PW}@h/d"\n' + MINIMAL).destination == f"postgresql://u:{TELLTALE}@h/d"


def test_a_token_in_a_file_without_its_line_end(read, project):
    (project / "acme.token").write_text(f"{TELLTALE}\n")

    pipeline = read(connection("", where='{ file = "acme.token" }'))

    assert pipeline.connections[0].token.reveal() == TELLTALE
    assert repr(pipeline.connections[0].token) == "set (file acme.token)"


def test_a_token_from_the_service_manager(read, tmp_path):
    (tmp_path / "managed").mkdir()
    (tmp_path / "managed/acme").write_text(TELLTALE)

    pipeline = read(
        connection("", where='{ file = "$CREDENTIALS_DIRECTORY/acme" }'),
        environ={"CREDENTIALS_DIRECTORY": str(tmp_path / "managed")},
    )

    assert pipeline.connections[0].token.reveal() == TELLTALE


@pytest.mark.parametrize(
    ("token", "environ", "expected"),
    [
        (f'"{TELLTALE}"', {}, 'expected { env = "NAME_OF_A_VARIABLE" } or { file = "path" }'),
        (f'["{TELLTALE}"]', {}, 'expected { env = "NAME_OF_A_VARIABLE" }'),
        ("{}", {}, "expected either env"),
        ('{ env = "A", file = "b" }', {}, "expected either env"),
        (f'{{ env = "{TELLTALE}" }}', {}, "expected the NAME of an environment variable, in capitals"),
        (
            f'{{ env = "{TELLTALE.replace("-", "_")}" }}',
            {},
            "expected the NAME of an environment variable, in capitals",
        ),
        ('{ env = "NOT_THERE" }', {}, "the environment variable NOT_THERE is not set"),
        ('{ env = "EMPTY" }', {"EMPTY": ""}, "the environment variable EMPTY is not set"),
        ('{ env = "BAD" }', {"BAD": f"{TELLTALE}\r\nX-Evil: 1"}, "the environment variable BAD holds no token"),
        ('{ env = "BAD" }', {"BAD": f"{TELLTALE}é"}, "the environment variable BAD holds no token"),
        ('{ file = "missing" }', {}, "there is no file 'missing'"),
        ('{ file = "pipelines" }', {}, "there is no file 'pipelines'"),
        ('{ file = "$CREDENTIALS_DIRECTORY/acme" }', {}, "CREDENTIALS_DIRECTORY is not set"),
        (f'{{ env = "ACME_TOKEN", default = "{TELLTALE}" }}', {}, "expected no default"),
        (
            f'{{ env = "ACME_TOKEN", template = "{TELLTALE}" }}',
            {},
            "let the variable or the file hold all that is sent",
        ),
        (f'{{ env = "ACME_TOKEN", {TELLTALE} = "x" }}', {}, "no such key"),
        (f'{{ value = "{TELLTALE}" }}', {}, "no such key"),
    ],
)
def test_a_token_that_cannot_be_had_is_told_without_telling_it(mistakes, token, environ, expected):
    told = mistakes(connection("", where=token), environ=environ)

    assert any(line.startswith("connections.acme.token") and expected in line for line in told), told


def test_a_token_is_never_a_flag(mistakes):
    told = mistakes(overrides={"connections.acme.token.env": "X", "connections.acme.token": TELLTALE})

    assert [line.partition(":")[2] for line in told] == [
        " expected no flag, because flags show in the list of processes"
    ] * 2


def test_a_known_token_is_for_this_machine_only(read, mistakes):
    known = '{ env = "NOT_THERE", default = "known" }'

    assert read(connection("", "http://127.0.0.1:8808", known)).connections[0].token.reveal() == "known"
    assert "expected no default" in mistakes(connection("", "https://127.0.0.1.example.com", known))[0]


# Where a token may go


@pytest.mark.parametrize(
    ("url", "lines"),
    [
        ("https://api.example.com", ""),
        ("https://8.8.8.8/octo", ""),
        ("https://[2606:4700::1111]/octo", ""),
        ("http://localhost:8808", ""),
        ("http://sandbox.localhost", ""),
        ("http://127.0.0.1:1", ""),
        ("http://127.1", ""),
        ("http://[::1]:8808", ""),
        ("http://api.example.com", 'allow_hosts = ["api.example.com"]'),
        ("http://octo.internal", 'allow_hosts = ["octo.internal"]'),
        ("http://10.0.0.7:80", 'allow_hosts = ["10.0.0.7"]'),
        ("https://[fd00::7]", 'allow_hosts = ["[fd00::7]"]'),
    ],
)
def test_a_safe_or_named_address_is_taken(read, url, lines):
    assert read(connection(lines, url)).connections[0].base_url == url


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://api.example.com", "expected https"),
        ("https://10.0.0.7", "expected a public address"),
        ("https://192.168.1.1", "expected a public address"),
        ("https://169.254.169.254/latest", "expected a public address"),
        ("https://100.64.0.1", "expected a public address"),
        ("https://0.0.0.0", "expected a public address"),
        ("https://224.0.0.1", "expected a public address"),
        ("https://0x0a000001", "expected a public address"),
        ("https://167772161", "expected a public address"),
        ("https://10.1", "expected a public address"),
        ("https://012.0.0.1", "expected a public address"),
        ("https://[::ffff:10.0.0.1]", "expected a public address"),
        ("https://[fe80::1]", "expected a public address"),
        ("https://[fd00::1]", "expected a public address"),
        ("https://[2002:0a00:0001::]", "expected a public address"),
        ("ftp://api.example.com", "expected an address such as"),
        ("api.example.com", "expected an address such as"),
        ("https://", "expected an address such as"),
        ("https://a b.example", "expected an address such as"),
        ("https://api.example.com\\\\@evil.example", "expected an address such as"),
        ("https://api.example.com:99999", "expected an address such as"),
        ("https://[::1", "expected an address such as"),
        ("https://münchen.example", "xn--"),
        ("https://api.example.com?x=1", 'without "?" or "#"'),
        ("https://api.example.com#x", 'without "?" or "#"'),
        (f"https://user:{TELLTALE}@api.example.com", "without a user or a password"),
        (f"https://{TELLTALE}@api.example.com", "without a user or a password"),
    ],
)
def test_an_address_a_token_must_not_go_to_is_refused(mistakes, url, expected):
    (told,) = mistakes(connection("", url))

    assert told.startswith("connections.acme.base_url: ")
    assert expected in told


def test_a_private_address_has_to_be_named_itself(mistakes):
    (told,) = mistakes(connection('allow_hosts = ["192.168.1.2"]', "http://192.168.1.1"))

    assert 'allow_hosts = ["192.168.1.1"]' in told


# Mistakes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "connections: missing; expected one table per token: `[connections.NAME]`"),
        ("connections = {}", "connections: found a table; expected at least one"),
        ("connections = 3", "connections: found 3; expected a table"),
        ("[connections]\nacme = 3", "connections.acme: found 3; expected a table of keys"),
        ("[connections.acme]", "connections.acme.base_url: missing; expected the service's base address; https unless"),
        ('destinaton = "x"\n' + MINIMAL, 'destinaton: no such key, did you mean "destination"?'),
        (
            "zzz = 1\n" + MINIMAL,
            "zzz: no such key; expected one of connections, dashboard, destination, horizon, ",
        ),
        ("name = 3\n" + MINIMAL, "name: found 3; expected a name of a-z"),
        ('name = "A b"\n' + MINIMAL, 'name: found "A b"; expected a name of a-z'),
        ('destination = ""\n' + MINIMAL, 'destination: found ""; expected a text that is not empty'),
        ('destination = "a\\u0000.duckdb"\n' + MINIMAL, 'destination: found "a\\u0000.duckdb"; expected at most 1000'),
        ('destination = ":memory:"\n' + MINIMAL, 'destination: found ":memory:"; expected a file such as'),
        ('destination = "core.duckdb"\n' + MINIMAL, 'destination: found "core.duckdb"; expected another name'),
        ('destination = "mysql://x"\n' + MINIMAL, "destination: expected a path such as"),
        ('journal = ":memory:"\n' + MINIMAL, 'journal: found ":memory:"; expected a file such as'),
        ('journal = "mysql://x"\n' + MINIMAL, "journal: expected a path such as"),
        (
            f'journal = "postgresql://u:{TELLTALE}@h/d"\n' + MINIMAL,
            "journal: expected an address without a password",
        ),
        (
            f'destination = "postgresql://u:{TELLTALE}@h/d"\n' + MINIMAL,
            "destination: expected an address without a password",
        ),
        (
            f'destination = "postgresql://h/d?password={TELLTALE}"\n' + MINIMAL,
            "destination: expected an address without a",
        ),
        (
            f'destination = "postgresql://u:{TELLTALE}${{ACME_TOKEN}}@h/d"\n' + MINIMAL,
            "destination: expected an address without a password",
        ),
        (
            'destination = "postgresql://u:${NOT_SET}@h/d"\n' + MINIMAL,
            "destination: the environment variable NOT_SET is",
        ),
        ('journal = "postgresql://u:${not}@h/d"\n' + MINIMAL, "journal: expected the NAME of an environment variable"),
        ('journal = "postgresql://u:${ACME_TOKEN@h/d"\n' + MINIMAL, "journal: expected a } after each"),
        (
            'destination = "${ACME_TOKEN}"\n' + MINIMAL,
            'destination: expected a path such as "octo.duckdb", or a postgres',
        ),
        ('destination = "delta+s3://bucket"\n' + MINIMAL, "destination: expected a folder of its own for Delta tables"),
        ('destination = "delta+file://lake/octo"\n' + MINIMAL, "destination: expected a folder of its own for Delta"),
        (
            'destination = "delta+s3://u:secret@bucket/x"\n' + MINIMAL,
            "destination: expected an address without a password",
        ),
        ('journal = "delta+s3://bucket/octo"\n' + MINIMAL, "journal: expected a path such as"),
        (
            '[publish]\ndelta = "s3://bucket"\n' + MINIMAL,
            "publish.delta: expected a folder of its own for Delta tables",
        ),
        ('[publish]\ndelta = "s3://u:x@bucket/octo"\n' + MINIMAL, "publish.delta: expected a folder of its own"),
        (
            'destination = "delta+s3://bucket/x"\npublish.delta = "lake"\n' + MINIMAL,
            "publish.delta: the destination is in Delta tables already",
        ),
        ('destination = "${ACME_TOKEN}.duckdb"\n' + MINIMAL, "destination: expected a path such as"),
        ('journal = "octo.duckdb"\n' + MINIMAL, "is destination too; expected a file of its own"),
        ('[publish]\npath = "./x/../octo.duckdb"\n' + MINIMAL, "is destination too; expected a file of its own"),
        ('[publish]\npath = "octo.private.duckdb"\n' + MINIMAL, "is the private file beside destination too"),
        ('horizon = "1d"\n' + MINIMAL, 'horizon: found "1d"; expected a table of keys'),
        ('[horizon]\nbookings = "5d..1d"\n' + MINIMAL, 'expected the first day not after the last, such as "+1d..+5d"'),
        ('[horizon]\nbookings = "90 days"\n' + MINIMAL, 'horizon.bookings: found "90 days"; expected days before and'),
        ('[horizon]\nbookings = "-9999d..0d"\n' + MINIMAL, "expected days within 3660"),
        (connection('limits = { deadline = "5 sec" }'), 'limits.deadline: found "5 sec"; expected a duration'),
        (connection("limits = { deadline = 0.01 }"), "limits.deadline: found 0.01; expected at least 0.1"),
        (connection("limits = { deadline = -1 }"), "limits.deadline: found -1; expected a duration"),
        (connection("limits = { deadline = nan }"), "limits.deadline: found no usable number; expected a duration"),
        (connection("limits = { deadline = true }"), "limits.deadline: found true; expected a duration"),
        (connection("limits = { concurrency = 0 }"), "limits.concurrency: found 0; expected at least 1"),
        (connection("limits = { concurrency = 2.0 }"), "limits.concurrency: found 2.0; expected a whole number"),
        (connection("limits = { requests_per_minute = 0 }"), "requests_per_minute: found 0; expected more than 0"),
        ("[sync]\nbackoff = 5\nbackoff_cap = 1\n" + MINIMAL, "sync.backoff_cap: found 1 s; expected at least"),
        (connection('business_time_zone = "Europe/Lisboa"'), 'did you mean "Europe/Lisbon"?'),
        (connection('business_time_zone = "../../etc/passwd"'), "expected an IANA time zone"),
        (connection('business_time_zone = "Europe"'), "expected an IANA time zone"),
        (connection('capabilities = "pricing"'), 'capabilities: found "pricing"; expected a list in [ ]'),
        (connection('capabilities = ["a, b"]'), 'capabilities[0]: found "a, b"; expected one capability'),
        (connection('capabilities = ["pricing\\r\\nX: 1"]'), "capabilities[0]: found"),
        (connection('capability_spelling = "shrt"'), 'expected one of prefixed, short, did you mean "short"?'),
        (connection("capability_overrides = { product_list = [] }"), "capability_overrides.product_list: found"),
        (connection("capability_overrides = { products = true }"), "expected a list of capabilities, or false"),
        (connection('languages = ["english language"]'), "languages[0]: found"),
        (connection("languages = []"), "languages: found a list; expected at least one"),
        (
            connection(f'headers = {{ Authorization = "Bearer {TELLTALE}" }}'),
            "headers.Authorization: expected a header",
        ),
        (connection(f'headers = {{ X = "{TELLTALE}\\n" }}'), "headers.X: expected printable ASCII"),
        (connection('role = "owner"'), 'role: found "owner"; expected one of reseller, supplier'),
        (connection("products = { includes = [] }"), 'products.includes: no such key, did you mean "include"?'),
        ("[sync]\nconfirm_after = 5\n" + MINIMAL, "sync.confirm_after: found 5; expected a list in [ ]"),
        (
            "[sync]\nconfirm_after = [1,1,1,1,1,1,1,1,1,1,1]\n" + MINIMAL,
            "sync.confirm_after: found a list; expected at",
        ),
        ('[sync]\nraw = ["booking"]\n' + MINIMAL, 'sync.raw[0]: found "booking"; expected one of supplier'),
        ("[sync]\ndeletion_share = 20\n" + MINIMAL, "sync.deletion_share: found 20; expected at most 1"),
        ('[webhooks]\nurl = "http://hooks.example.com"\n' + MINIMAL, "because a secret travels with every delivery"),
        ('[webhooks]\nurl = "https://10.0.0.1/hooks"\n' + MINIMAL, "expected a public address"),
        ('[webhooks]\nurl = "hooks"\n' + MINIMAL, 'expected an address such as "https://hooks.example.com/octo"'),
        ('[webhooks]\nbind = "8787"\n' + MINIMAL, 'webhooks.bind: found "8787"; expected host and port, such as'),
        ('[webhooks]\nbind = "localhost:65536"\n' + MINIMAL, "expected host and port"),
        ('[webhooks]\nbind = "::1:8787"\n' + MINIMAL, "expected host and port"),
        ('[webhooks]\nbind = "[x]:1"\n' + MINIMAL, "expected host and port"),
        ("[webhooks]\nbind = 8787\n" + MINIMAL, "expected host and port"),
        ("[webhooks]\nrest = 1\n" + MINIMAL, "webhooks.rest is no longer a key"),
        ('care = { every = "1h" }\n' + MINIMAL, "care.every is no longer a key"),
        ("[serve]\npublish_every = 5\n" + MINIMAL, "serve.publish_every is publish.every now"),
        (
            connection("allow_http = true"),
            "connections.acme.allow_http is no longer a key; name the host in allow_hosts",
        ),
        ('[schedule]\nfull = "daily"\n' + MINIMAL, 'schedule.full: found "daily"; expected a cron expression'),
        ('[schedule]\nnear = "61 * * * *"\n' + MINIMAL, 'schedule.near: "61 * * * *" is not a cron expression'),
        ('[schedule]\nfull = "0 3 31 2 *"\n' + MINIMAL, 'schedule.full: found "0 3 31 2 *"; such a time never comes'),
        ("name = 2026-01-01\n" + MINIMAL, "name: found a date or a time; expected a name"),
    ],
)
def test_a_mistake_is_named_with_its_key_what_was_found_and_what_was_expected(mistakes, text, expected):
    told = mistakes(text)

    assert any(expected in line for line in told), told


def test_every_mistake_is_told_at_once(mistakes):
    told = mistakes(
        'nme = "x"\n'
        + connection('role = "x"\nlimits = { attempts = "4" }', "http://10.0.0.7", '{ env = "NONE" }')
        + "[sync]\nbackoff = -1\n[publish]\nenabled = 0\n"
    )

    assert [line.partition(":")[0] for line in told] == [
        "connections.acme.role",
        "connections.acme.limits.attempts",
        "sync.backoff",
        "publish.enabled",
        "nme",
        "connections.acme.base_url",
        "connections.acme.token",
    ]


def test_a_mistake_in_a_variable_or_a_flag_names_it(mistakes):
    told = mistakes(
        environ={"OCTO_SYNC_SYNC__ATTEMPTS": "many", "OCTO_SYNC_SYNC__ATEMPTS": "5", "OCTO_SYNC_SYNC": "x"},
        overrides={"sync.backof": 1, "publish": "x"},
    )

    assert told == (
        "env OCTO_SYNC_SYNC: sync is a table; expected its keys one by one",
        "env OCTO_SYNC_SYNC__ATEMPTS: no such key; expected OCTO_SYNC_ and a key in capitals, with __ for each dot",
        'flag sync.backof: no such key, did you mean "backoff"?',
        "flag: publish is a table; expected its keys one by one",
        'sync.attempts: found "many" in env OCTO_SYNC_SYNC__ATTEMPTS; expected a whole number',
    )


def test_names_that_a_variable_cannot_tell_apart_are_refused(mistakes):
    told = mistakes(MINIMAL + MINIMAL.replace("acme]", '"a-b"]') + MINIMAL.replace("acme]", '"a_b"]'))

    assert told == ('connections.a_b: too like "a-b"; expected names that differ in more than "-", "_" and case',)


def test_an_unknown_capability_is_only_a_warning(read):
    pipeline = read(MINIMAL + 'capabilities = ["pricin", "zzz", "vendor/x", "octo/pickups"]\n')

    assert pipeline.connections[0].capabilities == ("pricin", "zzz", "vendor/x", "pickups")
    assert pipeline.warnings == (
        'connections.acme.capabilities: "pricin" is no capability known here, did you mean "pricing"?',
        'connections.acme.capabilities: "zzz" is no capability known here; it is sent as it stands',
    )


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"name = \n", "(at line 1, column 8)"),
        (b'\n\n[connections.a]\nx = "unclosed\n', "(at line 4, column"),
        (b"[connections.a]\n[connections.a]\n", "(at line 2, column"),
        (b"a = 1\na = 2\n", "(at line 2, column"),
        (b'a = "x"\nb = "\xff"\n', "not UTF-8 (at line 2)"),
    ],
)
def test_what_is_not_toml_is_told_with_its_line(project, body, expected):
    path = project / "broken.toml"
    path.write_bytes(body)

    with pytest.raises(ConfigError) as caught:
        load(path, directory=project, environ={}, overrides={})

    (told,) = caught.value.mistakes
    assert told.startswith(f"{path}: ")
    assert expected in told


def test_a_byte_order_mark_is_no_mistake(read):
    assert read("\ufeff" + MINIMAL).name == "acme"


@pytest.mark.parametrize(
    "text", ["a = " + "[" * 50_000, "a" + ".a" * 5_000 + " = 1", "a = 1" + "0" * 5_000, "# " * 1_000_000]
)
def test_a_file_made_to_hurt_is_refused_with_a_sentence(read, text):
    with pytest.raises(ConfigError):
        read(text)


@pytest.mark.parametrize("what", ["missing.toml", "."])
def test_a_file_that_cannot_be_read_is_told(project, what):
    with pytest.raises(ConfigError, match=r"There is no pipeline file|cannot be read"):
        load(project / what, directory=project, environ={}, overrides={})


def test_a_broken_dotenv_names_its_line_without_telling_it(read, project):
    (project / ".env").write_text(f"A=1\n{TELLTALE}\n")

    with pytest.raises(ConfigError, match=r"\.env has a mistake in line 2; expected NAME=value") as caught:
        read()

    assert TELLTALE not in str(caught.value)


def test_dotenv_reads_what_shells_write(tmp_path):
    (tmp_path / ".env").write_text(
        "# a comment\n\nA=1\nexport B = two words \nC='# kept'\nD=\"x\" # gone\nE=x#y\nF=x #y\nG=\nH='it''s'\n"
    )

    assert dotenv(tmp_path / ".env") == {
        "A": "1", "B": "two words", "C": "# kept", "D": "x", "E": "x#y", "F": "x", "G": "", "H": "it''s",
    }  # fmt: skip


# Finding a file


def test_a_pipeline_in_the_working_directory_wins_over_the_shipped_one(project):
    assert find("sandbox", project) == shipped("pipelines") / "sandbox.toml"
    own = project / "pipelines/sandbox.toml"
    own.write_text(MINIMAL)

    assert find("sandbox", project) == own
    assert {"sandbox", "example"} <= set(names(project))


def test_a_path_is_taken_from_the_project_directory(project):
    assert find("other/acme.toml", project) == project / "other/acme.toml"


def test_the_only_pipeline_needs_no_name(project):
    with pytest.raises(ConfigError, match="octo-sync init"):
        find(None, project)
    demo = project / "octo-demo"
    (demo / "pipelines").mkdir(parents=True)
    (demo / "pipelines/demo.toml").write_text("")
    with pytest.raises(ConfigError, match=rf"init writes one; there is a project in {demo}: -C {demo}\.$"):
        find(None, project)
    (project / "pipelines/a.toml").touch()
    assert find(None, project) == project / "pipelines/a.toml"
    (project / "pipelines/b.toml").touch()
    with pytest.raises(ConfigError, match="Which pipeline\\? Name one with -p: a, b"):
        find(None, project)


def test_an_unknown_name_is_told_with_those_that_are_known(project):
    with pytest.raises(ConfigError, match='"sandbx", did you mean "sandbox"\\? Known: example, sandbox'):
        find("sandbx", project)


def test_a_local_file_replaces_one_shipped_file_and_leaves_the_others(tmp_path):
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines/example.toml").touch()

    files = local_or_shipped("pipelines", tmp_path, "*.toml")

    assert files["example.toml"] == tmp_path / "pipelines/example.toml"
    assert files["sandbox.toml"] == shipped("pipelines") / "sandbox.toml"


def test_the_sandbox_pipeline_works_without_anything_set(tmp_path):
    pipeline = load(find("sandbox", tmp_path), directory=tmp_path, environ={}, overrides={})

    (only,) = pipeline.connections
    assert only.base_url == "http://127.0.0.1:8808/octo/v1"
    assert only.token.reveal() == "sandbox-token-all"
    assert repr(only.token) == "set (default of OCTO_SANDBOX_TOKEN)"


# Anything at all

scalars = st.one_of(
    st.booleans(),
    st.integers(),
    st.integers(min_value=10**400, max_value=10**401),
    st.floats(),
    st.text(max_size=30),
    st.sampled_from(
        ["5s", "64MB", "-1d..+1d", "http://[", "https://10.0.0.1", "Europe/Lisbon", "A_B", "pricing", "{token}"]
    ),
    st.just(date(2026, 1, 1)),
    st.just(datetime(2026, 1, 1, tzinfo=UTC)),
    st.just(time(1, 2)),
)
words = st.one_of(
    st.sampled_from(sorted({part for path in KEYS for part in path} | {"acme", "a-b", "a_b", "X"})),
    st.text(max_size=10),
)
tables = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(words, inner, max_size=4)),
    max_leaves=20,
)


@st.composite
def documents(draw):
    """A valid document with anything put in anywhere, or anything at all."""
    document = tomllib.loads(MINIMAL) if draw(st.booleans()) else {}
    for _ in range(draw(st.integers(0, 4))):
        path = list(draw(st.sampled_from(sorted(KEYS))))
        path = ["acme" if part == "*" else part for part in path]
        table = document
        for part in path[:-1]:
            table = table.setdefault(part, {}) if isinstance(table, dict) else {}
        if isinstance(table, dict):
            table[path[-1]] = draw(tables)
    return document | draw(st.dictionaries(words, tables, max_size=2))


variables = st.dictionaries(
    st.one_of(
        st.sampled_from(
            [
                "OCTO_SYNC_" + "__".join("ACME" if part == "*" else part.upper() for part in path)
                for path in sorted(KEYS)
            ]
        ),
        st.text(max_size=10).map(lambda text: f"OCTO_SYNC_{text}"),
        st.just("ACME_TOKEN"),
    ),
    st.one_of(st.text(max_size=10), st.sampled_from(["true", "3", "[", "[1]", "{a=1}", '"x"\nb=1', "1e999"])),
    max_size=3,
)
flags = st.dictionaries(
    st.one_of(st.sampled_from([key.dotted.replace("NAME", "acme") for key in KEYS.values()]), st.text(max_size=10)),
    tables,
    max_size=2,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(document=documents(), environ=variables, dotenvs=variables, overrides=flags)
@example(document={"connections": {"a": {"limits": 3}}}, environ={}, dotenvs={}, overrides={})
def test_no_document_raises_anything_but_a_config_error_with_printable_mistakes(document, environ, dotenvs, overrides):
    try:
        pipeline = parse(
            document,
            path=Path("x.toml"),
            directory=Path("/nowhere"),
            layers=Layers(environ=environ, dotenv=dotenvs, flags=overrides),
        )
    except ConfigError as error:
        assert all(line.isprintable() for line in error.mistakes), error.mistakes  # noqa: PT017 - both ends are fine
    else:
        assert isinstance(pipeline, Pipeline)
        assert all(math.isfinite(pause) for pause in pipeline.sync.confirm_after)


@given(st.one_of(scalars, st.lists(scalars), st.none()))
def test_no_value_raises_anything_but_a_sentence(value):
    for function in (
        values.duration,
        values.horizon,
        values.service_url,
        values.time_zone,
        values.cron,
        values.host_and_port,
    ):
        try:
            function(value)
        except ValueError as error:
            assert "expected" in str(error)  # noqa: PT017 - both ends are fine


@given(st.integers(0, 9_999), st.sampled_from([("ms", 0.001), ("s", 1), ("m", 60)]))
def test_a_duration_is_the_same_written_either_way(number, unit):
    name, factor = unit

    assert values.duration(f"{number}{name}") == pytest.approx(values.duration(number * factor))


def test_a_mistake_in_one_table_does_not_hide_one_about_files(mistakes):
    found = mistakes('destination = "core.duckdb"\n' + MINIMAL.replace("https://", "ftp://"))
    assert any(m.startswith("destination") for m in found)
    assert any(m.startswith("connections.acme.base_url") for m in found)


LEDGER = (
    MINIMAL
    + """
[reconcile.ledger]
there = { file = "ledger-*.csv", format = { time_zone = "Europe/Lisbon" } }
keys = ["booking_uuid=octo_uuid", "supplier_reference + travel_date = no + day", "reseller_reference"]
fields = { status = "state", retail_amount = "gross" }
map.status = { OK = ["CONFIRMED", "REDEEMED"], XX = "CANCELLED" }
tolerance = { EUR = 0.01, JPY = 0, default = 0.001 }
fail_on = "mismatched>0, abs_amount_eur > 100.50"
"""
)


def test_a_reconciliation_is_read_with_its_defaults(read):
    pipeline = read(LEDGER)
    ledger = pipeline.reconciliations["ledger"]

    assert ledger.key_columns() == [
        (("booking_uuid",), ("octo_uuid",)),
        (("supplier_reference", "travel_date"), ("no", "day")),
        (("reseller_reference",), ("reseller_reference",)),
    ]
    assert ledger.map == {"status": {"OK": ("CONFIRMED", "REDEEMED"), "XX": ("CANCELLED",)}}
    assert ledger.tolerance == {"EUR": Decimal("0.01"), "JPY": Decimal(0), "default": Decimal("0.001")}
    assert ledger.limits() == [("mismatched", Decimal(0)), ("abs_amount_eur", Decimal("100.50"))]
    assert (str(ledger.window), ledger.grace, ledger.there.kinds) == ("-35d..+0d", 7200.0, ("file",))
    assert pipeline.settings["reconcile.ledger.fail_on"].origin == "pipeline file"
    assert pipeline.settings["reconcile.ledger.there.connection"].origin == "default"
    assert "was_sold and coalesce(travel_date, booking_date) between :from and :to" in ledger.query
    by_booking = read(LEDGER + 'date = "booking_date"').reconciliations["ledger"]
    assert "was_sold and booking_date between :from and :to" in by_booking.query
    assert read().reconciliations == {}


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ('file = "ledger-*.csv"', 'file = "a.csv", connection = "acme"', "file and connection given; expected one of"),
        ('file = "ledger-*.csv"', 'csv = "a.csv", connection = "acme"', "reconcile.ledger.there.csv is there.file now"),
        ('file = "ledger-*.csv"', 'file = "a.ods"', "expected a file whose name ends in .csv, .xlsx or .parquet"),
        ('time_zone = "Europe/Lisbon"', 'sheets = "x"', 'format.sheets: no such key, did you mean "sheet"?'),
        ("EUR = 0.01", "EUR = 0.01, relative = 2", "expected a share of 0 to 1"),
        ('file = "ledger-*.csv", ', "", "nothing given; expected one of"),
        ('file = "ledger-*.csv"', 'dsn = "sqlite:///x.db"', "expected dsn and sql together"),
        (
            'file = "ledger-*.csv", format = {',
            'dsn = "sqlite:///x.db", sql = "select 1", format = { where = "a", ',
            "where and skip_footer are for files",
        ),
        ('file = "ledger-*.csv"', 'connection = "acne"', 'there is no connection "acne", did you mean "acme"?'),
        ('file = "ledger-*.csv"', 'flie = "a.csv", connection = "acme"', 'no such key, did you mean "file"?'),
        ("map.status", "map.state", "expected a column that `fields` compares"),
        ("EUR = 0.01", "eur = 0.01", 'expected a currency such as "EUR", default or relative'),
        ("EUR = 0.01", "EUR = -1", "expected an amount of 0 or more"),
        ("mismatched>0", "mismatch>0", 'did you mean "mismatched"?'),
        ("mismatched>0", "mismatched", "expected a list such as"),
        ('"booking_uuid=octo_uuid"', '"a+b=c"', "expected a column here and one there"),
        ('"booking_uuid=octo_uuid"', '"=octo_uuid"', "expected a column here and one there"),
        ('time_zone = "Europe/Lisbon"', 'strip = "("', "expected a regular expression"),
    ],
)
def test_a_mistake_in_a_reconciliation_is_named_with_its_key(mistakes, before, after, words):
    assert before in LEDGER
    found = mistakes(LEDGER.replace(before, after, 1))

    assert len(found) == 1, found
    assert found[0].startswith("reconcile.ledger")
    assert words in found[0]


def test_twice_as_many_connections_are_twice_the_work(read):
    def steps(count):
        one = '[connections.c{0}]\nbase_url = "https://api.example.com/octo/v1"\ntoken = {{ env = "ACME_TOKEN" }}\n'
        text, done = "".join(one.format(number) for number in range(count)), Counter()
        sys.setprofile(lambda _frame, event, _argument: done.update([event]))
        try:
            read(text)
        finally:
            sys.setprofile(None)
        return done.total()

    steps(1)
    assert steps(160) < 2.3 * steps(80)
