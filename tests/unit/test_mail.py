"""Mails go to a real server, by the encryption that is asked for, and what goes wrong names nothing secret."""

import datetime as dt
import re
import socket
import ssl
import subprocess
import threading
import time
from shutil import which

import pytest
from tests.absent import absent
from tests.mailing import serving

from octo_sync.app import hooks

NOTICE = {"event": "stale", "pipeline": "acme", "connection": "viator", "text": "acme is stale:\nsince 26 h."}


@pytest.fixture
def trusted(tmp_path, monkeypatch):
    """What a server shows, signed by somebody whom this process trusts."""
    if which("openssl") is None:
        absent("needs openssl to make a certificate")
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=mail"
    more = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key.pem", "-out", "cert.pem"]
    subprocess.run([*command.split(), *more], cwd=tmp_path, check=True, capture_output=True)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    return context


def test_a_notice_is_a_mail_to_each_address():
    with serving() as inbox:
        server = f"smtp://127.0.0.1:{inbox.port}?from=octo@example.com"
        assert hooks.tell("mailto:me@example.com, you@example.com", NOTICE, smtp=server) is None

    ((envelope, mail),) = inbox.mails
    assert (envelope.mail_from, envelope.rcpt_tos) == ("octo@example.com", ["me@example.com", "you@example.com"])
    assert abs(mail["Date"].datetime - dt.datetime.now(dt.UTC)) < dt.timedelta(minutes=5)
    assert re.fullmatch(r"<\S+@example\.com>", mail["Message-ID"])
    assert mail["Subject"] == "octo-sync · acme · viator"
    assert mail.get_content().splitlines() == ["acme is stale:", "since 26 h."]


def test_a_line_break_in_a_name_makes_no_header():
    with serving() as inbox:
        notice = {**NOTICE, "connection": "x\r\nBcc: thief@example.com"}
        server = f"smtp://127.0.0.1:{inbox.port}?from=octo@example.com"
        assert hooks.tell("mailto:me@example.com", notice, smtp=server) is None

    ((envelope, mail),) = inbox.mails
    assert envelope.rcpt_tos == ["me@example.com"]
    assert mail["Bcc"] is None


@pytest.mark.parametrize("scheme", ["smtp", "smtps"])
def test_the_password_is_told_over_an_encrypted_connection(trusted, scheme):
    with serving(**({"tls": trusted} if scheme == "smtps" else {"starttls": trusted})) as inbox:
        server = f"{scheme}://octo%40example.com:p%40ss%2Fword@127.0.0.1:{inbox.port}"
        files = [("r.html", "<p>é".encode())]
        assert hooks.mail(server, ["me@example.com"], "Report", "See the file.", files) == (True, None)

    ((envelope, mail),) = inbox.mails
    assert inbox.logins == [(b"octo@example.com", b"p@ss/word")]
    assert envelope.mail_from == "octo@example.com"
    (attached,) = mail.iter_attachments()
    assert (attached.get_filename(), attached.get_content_type()) == ("r.html", "text/html")
    assert attached.get_payload(decode=True) == "<p>é".encode()


def test_a_password_is_not_told_in_the_clear():
    with serving() as inbox:
        server = f"smtp://octo%40example.com:s3cret@127.0.0.1:{inbox.port}"
        problem = hooks.tell("mailto:me@example.com", NOTICE, smtp=server)

    assert problem == "127.0.0.1 offers no encryption, so it was not told the password"
    assert (inbox.logins, inbox.mails) == ([], [])


@pytest.mark.parametrize("scheme", ["smtp", "smtps"])
def test_a_server_whose_certificate_nobody_vouches_for_gets_nothing(trusted, monkeypatch, scheme):
    monkeypatch.delenv("SSL_CERT_FILE")
    with serving(**({"tls": trusted} if scheme == "smtps" else {"starttls": trusted})) as inbox:
        server = f"{scheme}://octo%40example.com:s3cret@127.0.0.1:{inbox.port}"
        problem = hooks.tell("mailto:me@example.com", NOTICE, smtp=server)

    assert problem == "it did not answer: SSLCertVerificationError"
    assert (inbox.logins, inbox.mails) == ([], [])


def test_what_a_server_refuses_is_said_without_anything_secret(trusted, caplog):
    with serving(starttls=trusted) as inbox:
        wrong = f"smtp://octo%40example.com:s3cret@127.0.0.1:{inbox.port}"
        right = wrong.replace("s3cret", "p%40ss%2Fword")
        refused = [
            hooks.tell("mailto:me@example.com", NOTICE, smtp=wrong),
            hooks.tell("mailto:nobody@example.com", NOTICE, smtp=right),
        ]
        inbox.answer = "554 s3cret"
        refused.append(hooks.tell("mailto:me@example.com", NOTICE, smtp=right))

    assert refused == ["127.0.0.1 answered 535", "127.0.0.1 refused all addresses", "127.0.0.1 answered 554"]
    assert "s3cret" not in caplog.text


def test_an_address_that_is_refused_is_said_and_the_others_get_it():
    with serving() as inbox:
        server = f"smtp://127.0.0.1:{inbox.port}?from=octo@example.com"
        found = hooks.mail(server, ["me@example.com", "nobody@example.com"], "Report", "See the file.", ())

    assert found == (True, "127.0.0.1 refused 1 of 2 addresses")
    assert [envelope.rcpt_tos for envelope, _ in inbox.mails] == [["me@example.com"]]


def test_what_a_server_took_and_did_not_answer_may_have_been_sent():
    with serving() as inbox:
        inbox.seconds = 60
        server = f"smtp://127.0.0.1:{inbox.port}?from=octo+me@example.com"
        found = hooks.mail(server, ["me@example.com"], "Report", "See the file.", (), within=2)

    assert found == (None, "it took longer than 2 s")
    assert [envelope.mail_from for envelope, _ in inbox.mails] == ["octo+me@example.com"]


def test_what_takes_too_long_before_the_mail_is_handed_over_is_never_sent():
    with serving() as inbox:
        inbox.greets_after = 4
        server = f"smtp://127.0.0.1:{inbox.port}?from=octo@example.com"
        found = hooks.mail(server, ["me@example.com"], "Report", "See the file.", (), within=1)
        for thread in [each for each in threading.enumerate() if each.name == "octo-sync hook"]:
            thread.join(60)

    assert found == (False, "it took longer than 1 s")
    assert inbox.mails == []


def test_a_server_that_does_not_say_goodbye_has_the_mail_all_the_same():
    with serving() as inbox:
        inbox.goodbye = "421 too busy"
        server = f"smtp://127.0.0.1:{inbox.port}?from=octo@example.com"
        assert hooks.mail(server, ["me@example.com"], "Report", "See the file.", ()) == (True, None)


def test_a_server_that_says_nothing_has_so_many_seconds():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        server = f"smtp://127.0.0.1:{silent.getsockname()[1]}?from=octo@example.com"
        began = time.monotonic()
        assert hooks.tell("mailto:me@example.com", NOTICE, smtp=server, within=0.3) == "it took longer than 0.3 s"
        assert time.monotonic() - began < 30
