"""The address for webhooks is looked at as a service would see it: a name, a certificate, our receiver behind it."""

import datetime as dt
import http.server
import shutil
import socket
import ssl
import subprocess
import threading

import pytest
from tests.absent import absent
from tests.listening import listening
from tests.receiver.process import ENDPOINT

from octo_sync.flows.doctor import address as doctor_webhook
from octo_sync.flows.doctor.address import Reached, certificate_of, reach, webhook_findings
from octo_sync.flows.doctor.service import certificate_finding

URL = "https://hooks.example.com/octo"
NOW = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC)


def finding(reached, *, serves=True):
    (found,) = webhook_findings(URL, reached, serves=serves)
    return found


@pytest.mark.parametrize(
    ("reached", "level", "words"),
    [
        (Reached(401), "ok", "reaches the receiver"),
        (Reached(401, {"www-authenticate": "Basic"}), "fail", "asks for a password"),
        (Reached(401, {}, b"<html>"), "fail", "asks for a password"),
        (Reached(200, {}, b"ok"), "fail", "not our receiver"),
        (Reached(204), "fail", "not our receiver"),
        (Reached(301), "fail", "redirect"),
        (Reached(404), "fail", "not passed"),
        (Reached(502), "fail", "behind it is not"),
        (Reached(418), "fail", "418"),
        (Reached(problem="Connection refused"), "fail", "cannot be reached from here: Connection refused"),
    ],
)
def test_what_answered_is_said_with_what_follows_and_what_to_do(reached, level, words):
    found = finding(reached)
    assert (found.level, words in found.text) == (level, True), found.text
    assert "hooks.example.com" in found.text
    assert bool(found.fix) == bool(found.consequence) == (level == "fail")


def test_where_serve_does_not_run_it_is_to_be_started():
    assert finding(Reached(502), serves=False).fix == "octo-sync serve"
    assert "octo-sync serve" in finding(Reached(problem="Connection refused"), serves=False).fix
    assert "proxy" in finding(Reached(502)).fix


async def test_our_own_receiver_is_known_and_stores_nothing(receiver):
    import asyncio

    running = await receiver()
    reached = await asyncio.to_thread(reach, f"{running.server.url}/octo", "x" * 32, ssl.create_default_context())
    assert finding(reached).level == "ok"
    assert running.journal.inbox.deliveries() == []
    # A real address with a wrong secret would be noted as attacked, so doctor never asks for one.
    assert ENDPOINT != "x" * 32


@pytest.fixture
def listener():
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.server.told.append((self.path, self.headers["X-Octo-Sync-Secret"]))
            self.send_response(200)
            self.end_headers()

    with listening(Handler) as server:
        yield server


def test_somebody_elses_answer_is_told_from_ours(listener):
    reached = reach(f"http://127.0.0.1:{listener.server_port}/octo", "e" * 32, ssl.create_default_context())
    assert (reached.status, reached.certificate_ends) == (200, None)
    assert finding(reached).level == "fail"
    assert listener.told == [(f"/octo/hooks/{'e' * 32}", "octo-sync doctor")]


def test_nobody_there_and_no_such_name_are_said():
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    context = ssl.create_default_context()
    assert "refused" in reach(f"http://127.0.0.1:{port}", "e" * 32, context).problem.lower()
    assert reach("http://no-such-host.invalid", "e" * 32, context).problem


def test_somebody_who_never_answers_is_given_up(monkeypatch):
    monkeypatch.setattr(doctor_webhook, "_WITHIN", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        assert "nobody answered within 0.2 s" in reach(url, "e" * 32, ssl.create_default_context()).problem


# -- certificates ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("days", "level"), [(90, "ok"), (15, "ok"), (13, "warn"), (0, "warn")])
def test_a_certificate_that_ends_soon_is_a_warning(days, level):
    found = certificate_finding("acme", NOW + dt.timedelta(days=days, hours=1), NOW)
    assert found.level == level
    assert f"{days} days" in found.text


def test_no_good_certificate_is_a_failure_that_says_why():
    found = certificate_finding("acme", "the certificate is not good: certificate has expired", NOW)
    assert (found.level, "expired" in found.text) == ("fail", True)


@pytest.fixture(scope="module")
def secured(tmp_path_factory):
    """A server with a certificate of an authority of our own: its port, and whom to trust."""
    if shutil.which("openssl") is None:
        absent("openssl is not here, so that no certificate can be made")
    folder = tmp_path_factory.mktemp("tls")

    def openssl(*words):
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)

    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    openssl("req", "-x509", *curve, "-days", "2", "-subj", "/CN=test authority", "-keyout", "ca.key", "-out", "ca.pem")
    openssl("req", *curve, "-subj", "/CN=localhost", "-keyout", "key.pem", "-out", "request.pem")
    (folder / "names").write_text("subjectAltName=DNS:localhost")
    openssl(
        "x509", "-req", "-in", "request.pem", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "30",
        "-extfile", "names", "-out", "cert.pem",
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    listening = socket.create_server(("127.0.0.1", 0))

    def answer():
        while True:
            try:
                plain, _ = listening.accept()
            except OSError:
                return
            try:
                with context.wrap_socket(plain, server_side=True) as spoken:
                    # Head and body come in two parts; an answer to the first, then closed, would break the second.
                    said = b""
                    while not said.endswith(b"\r\n\r\n{}") and (part := spoken.recv(65536)):
                        said += part
                    spoken.sendall(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")
            except OSError:
                pass

    thread = threading.Thread(target=answer)
    thread.start()
    yield listening.getsockname()[1], ssl.create_default_context(cafile=folder / "ca.pem")
    listening.shutdown(socket.SHUT_RDWR)
    listening.close()
    thread.join()


def test_the_end_of_a_real_certificate_is_read(secured):
    port, trusted = secured
    ends = certificate_of("localhost", port, trusted)
    left = ends - dt.datetime.now(dt.UTC)
    assert dt.timedelta(days=29) < left <= dt.timedelta(days=30)
    reached = reach(f"https://localhost:{port}/octo", "e" * 32, trusted)
    assert (reached.status, reached.certificate_ends) == (401, ends)


def test_an_authority_that_nobody_knows_and_another_name_are_said(secured):
    port, trusted = secured
    assert "the certificate is not good: " in certificate_of("localhost", port, ssl.create_default_context())
    assert "not good" in certificate_of("127.0.0.1", port, trusted)


def test_who_speaks_no_tls_is_said(listener):
    assert "TLS" in certificate_of("127.0.0.1", listener.server_port, ssl.create_default_context())
