"""`[dashboard]`: what is set, and what is refused before anything listens."""

import pytest

from octo_sync.errors import ConfigError
from octo_sync.pipeline import load

MINIMAL = '[connections.acme]\nbase_url = "https://api.example.com/octo/v1"\ntoken = { env = "T" }\n'


@pytest.fixture
def read(tmp_path):
    def make(text, **environ):
        file = tmp_path / "p.toml"
        file.write_text(text + MINIMAL)
        return load(file, directory=tmp_path, environ={"T": "x", **environ}, overrides={})

    return make


def refused(read, text, **environ):
    with pytest.raises(ConfigError) as error:
        read(text, **environ)
    (mistake,) = error.value.mistakes
    return mistake


def test_by_itself_it_is_shown_on_this_machine_on_a_port_of_its_own_and_needs_no_token(read):
    pipeline = read("")
    assert pipeline.dashboard.address == ("127.0.0.1", 8788)
    assert pipeline.dashboard.address != pipeline.webhooks.address
    assert pipeline.dashboard_token is None
    assert pipeline.settings["dashboard.token"].value is None


@pytest.mark.parametrize(
    "bind", ["0.0.0.0:8788", "[::]:8788", "10.1.2.3:80", "octo.example.com:8788", "[2001:db8::1]:1"]
)
def test_beyond_this_machine_it_is_refused_without_a_token(read, bind):
    mistake = refused(read, f'[dashboard]\nbind = "{bind}"\n')
    assert mistake.startswith(f'dashboard.bind: found "{bind}", which others can reach; expected dashboard.token too')


@pytest.mark.parametrize("bind", ["127.0.0.1:0", "localhost:9000", "[::1]:8788", "127.9.9.9:1"])
def test_on_this_machine_none_is_needed(read, bind):
    assert read(f'[dashboard]\nbind = "{bind}"\n').dashboard.bind == bind


def test_the_token_comes_from_where_it_is_said_to_be_and_is_never_shown(read, tmp_path):
    text = '[dashboard]\nbind = "0.0.0.0:8788"\ntoken = { env = "D" }\n'
    pipeline = read(text, D="s3cret")
    assert pipeline.dashboard_token.reveal() == "s3cret"
    assert "s3cret" not in repr(pipeline)
    assert pipeline.settings["dashboard.token"].value == "set (env D)"
    (tmp_path / "held").write_text("of a file\n")
    held = read('[dashboard]\ntoken = { file = "held" }\n')
    assert held.dashboard_token.reveal() == "of a file"
    assert read("", OCTO_SYNC_DASHBOARD__TOKEN="s3cret").dashboard_token.reveal() == "s3cret"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('token = "s3cret"', "a token written into the file is read by all"),
        ('token = { env = "D" }', "dashboard.token: the environment variable D is not set"),
        ('token = { file = "none" }', "there is no file"),
        ('bind = "0.0.0.0:1"\ntoken = { env = "D", default = "known" }', "expected no default"),
        ("token = {}", 'expected either env = "NAME_OF_A_VARIABLE" or file = "path"'),
        ('bind = "8788"', "expected host and port"),
        ('colour = "blue"', "colour"),
    ],
)
def test_a_mistake_is_named_and_the_token_is_not(read, text, said):
    mistake = refused(read, f"[dashboard]\n{text}\n")
    assert mistake.startswith("dashboard.")
    assert said in mistake
    assert "s3cret" not in mistake


def test_a_proxys_header_is_the_name_of_one(read):
    assert read("").dashboard.user_header == ""
    assert read('[dashboard]\nuser_header = "X-Forwarded-User"\n').dashboard.user_header == "X-Forwarded-User"
    assert "expected the name of an HTTP header" in refused(read, '[dashboard]\nuser_header = "X Forwarded"\n')
    assert refused(read, '[dashboard]\nuser_header = "Authorization"\n')
