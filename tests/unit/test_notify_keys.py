"""`[notify]` and `log_format`: addresses are secrets, every mistake is named with its key and without its value."""

import pytest

from octo_sync.errors import ConfigError
from octo_sync.pipeline import hooks, load

MINIMAL = '[connections.acme]\nbase_url = "https://octo.example.com"\ntoken = { env = "T" }\n'


@pytest.fixture
def read(tmp_path):
    def read(text="", environ=None):
        path = tmp_path / "p.toml"
        path.write_text(text + MINIMAL if text.startswith("log") else MINIMAL + text)
        return load(path, directory=tmp_path, environ={"T": "x", **(environ or {})}, overrides={})

    return read


def test_nobody_is_told_by_default(read):
    pipeline = read()
    assert (dict(pipeline.told), pipeline.log_format) == ({}, "sentences")
    assert (pipeline.notify.stale_after, pipeline.notify.check_every) == (26 * 3600, 30)


def test_a_target_is_a_command_an_address_a_variable_or_a_file(read, tmp_path):
    (tmp_path / "ping").write_text("https://ping.example.com/abc\n")
    for text, told in (
        ('"mail -s stale me@example.com"', "mail -s stale me@example.com"),
        ('"https://hooks.example.com/q?a=b"', "https://hooks.example.com/q?a=b"),
        ('{ env = "HOOK" }', "slack+https://hooks.example.com/services/x"),
        ('{ file = "ping" }', "https://ping.example.com/abc"),
    ):
        pipeline = read(f"[notify]\nto = {text}\n", {"HOOK": "slack+https://hooks.example.com/services/x"})
        assert pipeline.told["to"].reveal() == told


def test_a_variable_of_the_key_itself_holds_the_target(read):
    pipeline = read(environ={"OCTO_SYNC_NOTIFY__PING": "https://ping.example.com/abc"})
    assert pipeline.told["ping"].reveal() == "https://ping.example.com/abc"
    assert pipeline.settings["notify.ping"].origin == "env OCTO_SYNC_NOTIFY__PING"


def test_what_is_told_never_shows_itself(read):
    pipeline = read('[notify]\nping = "https://ping.example.com/very-secret"\n')
    assert "very-secret" not in repr(pipeline)
    assert pipeline.settings["notify.ping"].value == "set (pipeline file)"
    assert pipeline.settings["notify.to"].value is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('ping = "curl https://x"', "notify.ping: expected an address such as"),
        ('ping = "http://ping.example.com/s3cret"', "notify.ping: expected https"),
        ('ping = "https://10.0.0.7/s3cret"', "notify.ping: expected a public address"),
        ('to = "https:///s3cret"', "notify.to: expected an address with a host"),
        ('to = "https://x.example/a s3cret"', "notify.to: expected an address with a host"),
        ('to = ""', "notify.to: expected a text that is not empty"),
        ("to = 5", "notify.to: expected a command, an https address"),
        ('to = { env = "A", file = "s3cret" }', "notify.to: expected a command, an https address"),
        ('to = { env = "s3cret" }', "notify.to: expected the NAME of an environment variable"),
        ('ping = { env = "UNSET" }', "notify.ping: the environment variable UNSET is not set"),
        ('ping = { file = "absent" }', "notify.ping: there is no file"),
        ("check_every = 1", "notify.check_every is no longer a key"),
        ("nope = 1", "notify.nope: no such key"),
        ('on_stale = "cmd"', "notify.on_stale is notify.to now"),
        ('to = "slack+http://hooks.example.com/s3cret"', "notify.to: expected https"),
        ('to = "teams+https://10.0.0.7/s3cret"', "notify.to: expected a public address"),
        ('to = "mailto:me@example.com"', "notify.to: expected notify.smtp too"),
        ('to = "mailto:s3cret"\nsmtp = "smtps://me%40example.com@h.example"', "notify.to: expected mail addresses"),
        ('ping = "slack+https://hooks.example.com/s3cret"', "notify.ping: expected an address such as"),
        ('to = "hooks.slack.com/services/s3cret"', "notify.to: expected mailto:ADDRESS, slack+https://…, "),
        ('to = "mattermost+https://x.example/s3cret"', "notify.to: expected mailto:ADDRESS, slack+https://…, "),
        ('to = "slack+ftp://x.example/s3cret"', "notify.to: expected mailto:ADDRESS, slack+https://…, "),
        ('to = "SLACK+HTTP://x.example/s3cret"', "notify.to: expected https"),
        ('to = "sh -c \'s3cret"', "notify.to: expected a command; a quote"),
        ('smtp = "smtps://me%40example.com:s3cret@h.example"', "notify.smtp: expected { env } or { file }"),
        ('smtp = "smtps://h s3cret.example?from=me@example.com"', "notify.smtp: expected smtps://"),
        ('ping = "mailto:me@example.com"', "notify.ping: expected an address such as"),
        ('report = "https://hooks.example.com/s3cret"', "notify.report: expected mail addresses"),
        ('smtp = "https://me:s3cret@smtp.example.com"', "notify.smtp: expected smtps://"),
        ('smtp = "smtps://user:s3cret@smtp.example.com"', "notify.smtp: expected smtps://"),
        ('smtp = "smtps://me%40example.com:s3cret@smtp.example.com:port"', "notify.smtp: expected smtps://"),
        ('smtp = "smtps://?from=me@example.com"', "notify.smtp: expected smtps://"),
    ],
)
def test_a_mistake_is_named_without_what_may_be_secret(read, text, words):
    with pytest.raises(ConfigError) as error:
        read(f"[notify]\n{text}\n")
    assert any(words in mistake for mistake in error.value.mistakes), error.value.mistakes
    assert "s3cret" not in str(error.value.mistakes)


def test_this_machine_and_hosts_that_are_named_may_be_told_over_http(read):
    pipeline = read('[notify]\nping = "http://127.0.0.1:9/x"\nto = "http://10.0.0.7/x"\nallow_hosts = ["10.0.0.7"]\n')
    assert set(pipeline.told) == {"ping", "to"}


def test_log_format_is_one_of_three(read):
    assert read('log_format = "json"\n').log_format == "json"
    assert read(environ={"OCTO_SYNC_LOG_FORMAT": "text"}).log_format == "text"
    with pytest.raises(ConfigError) as error:
        read('log_format = "xml"\n')
    assert 'log_format: found "xml"; expected one of sentences, text, json' in error.value.mistakes[0]


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("http://hooks.example.com/s3cret", "reconcile.ledger.notify: expected https"),
        ("https://10.0.0.7/s3cret", "reconcile.ledger.notify: expected a public address"),
        ("https:///s3cret", "reconcile.ledger.notify: expected an address with a host"),
        ("http://127.0.0.1:9/x", None),
        ("http://10.0.0.8/x", None),
        ("mail -s differences me@example.com", None),
        ("mailto:me@example.com", "reconcile.ledger.notify: expected notify.smtp too"),
    ],
)
def test_the_hook_of_a_comparison_is_looked_at_as_those_of_notices(read, target, words):
    text = (
        '[notify]\nallow_hosts = ["10.0.0.8"]\n[reconcile.ledger]\nkeys = ["uuid"]\n'
        f'there = {{ file = "ledger.csv" }}\nnotify = "{target}"\n'
    )
    if words is None:
        assert read(text).reconciliations["ledger"].notify == target
        return
    with pytest.raises(ConfigError) as error:
        read(text)
    assert error.value.mistakes[0].startswith(words)
    assert "s3cret" not in str(error.value.mistakes)


@pytest.mark.parametrize(
    ("text", "form", "where"),
    [
        ("Mailto:me@example.com", "mail", "me@example.com"),
        ("Slack+HTTPS://x.example/A", "slack", "https://x.example/A"),
        ("teams+https://x.example/A", "teams", "https://x.example/A"),
        ("HTTPS://hooks.slack.com/A", "slack", "https://hooks.slack.com/A"),
        ("http://x.example/A", "json", "http://x.example/A"),
        ("scripts/tell.sh --to https://x.example", "command", "scripts/tell.sh --to https://x.example"),
    ],
)
def test_a_scheme_is_one_in_any_case(text, form, where):
    assert hooks.hook(text) == (form, where)
    assert form == "json" or hooks.wrong(text, [], has_server=True) is None


@pytest.mark.parametrize(
    "address",
    [
        "foo(bar)@x.zz", "a@b:c", "me@example.com?subject=x", "=?utf-8?q?x?=@b.com", "g:a@b.com", "a@b..com", "ä@b.com",
        "a.@b.com", "a@-b.com", "@b.com", "a@",
    ],
)  # fmt: skip
def test_what_a_server_would_read_as_another_address_is_none(address):
    with pytest.raises(ValueError, match="expected mail addresses"):
        hooks.mail_addresses(f"me@example.com,{address}")


def test_addresses_that_are_unusual_are_some():
    assert hooks.mail_addresses("octo+a.b_c@mail-1.example.co.uk, root@localhost") == [
        "octo+a.b_c@mail-1.example.co.uk", "root@localhost",
    ]  # fmt: skip


def test_a_mail_servers_password_comes_from_a_variable_or_a_file(read):
    server = "smtps://me%40example.com:s3cret@h.example"
    assert read(environ={"OCTO_SYNC_NOTIFY__SMTP": server}).told["smtp"].reveal() == server
    assert read('[notify]\nsmtp = { env = "M" }\n', {"M": server}).told["smtp"].reveal() == server
