"""A hook is told once, within bounds, and its failure changes nothing."""

import asyncio
import contextlib
import http.server
import json
import socket
import sys
import threading
import time
from functools import partial

import pytest
from tests.listening import listening

from octo_sync.app import hooks
from octo_sync.pipeline.hooks import hook

NEWS = {"event": "reconcile.new_differences", "count": 2}


@pytest.fixture
def listener():
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            length = int(self.headers["Content-Length"])
            self.server.told.append((self.path, self.headers["Content-Type"], json.loads(self.rfile.read(length))))
            self.send_response(self.server.answer)
            self.send_header("Location", "http://127.0.0.1:1/elsewhere")
            self.end_headers()

        def do_GET(self):
            self.server.told.append((self.path, "GET", None))
            self.send_response(self.server.answer)
            self.send_header("Location", "http://127.0.0.1:1/elsewhere")
            self.end_headers()

    with listening(Handler) as server:
        server.answer, server.url = 204, f"{server.url}/hooks/secret-path"
        yield server


def test_an_address_gets_the_document_by_post(listener):
    assert hooks.tell(listener.url, NEWS) is None
    assert listener.told == [("/hooks/secret-path", "application/json", NEWS)]


NOTICE = {
    "event": "stale",
    "pipeline": "acme",
    "connection": "viator",
    "text": "<b>Late</b> & [x](http://evil.example)",
}


def test_slack_gets_a_message_in_which_nothing_is_markup(listener):
    assert hooks.tell(f"slack+{listener.url}", NOTICE) is None

    ((_, _, said),) = listener.told
    assert said["text"] == "octo-sync · acme · viator\n&lt;b&gt;Late&lt;/b&gt; &amp; [x](http://evil.example)"
    assert said["mrkdwn"] is False


def test_teams_gets_a_card_whose_texts_are_no_markup(listener):
    assert hooks.tell(f"teams+{listener.url}", NOTICE) is None

    ((_, _, said),) = listener.told
    (card,) = said["attachments"]
    assert (said["type"], card["contentType"]) == ("message", "application/vnd.microsoft.card.adaptive")
    runs = [run for block in card["content"]["body"] for run in block["inlines"]]
    assert {block["type"] for block in card["content"]["body"]} == {"RichTextBlock"}, "a TextBlock reads Markdown"
    assert [run["text"] for run in runs] == ["octo-sync · acme · viator", NOTICE["text"]]


def test_an_address_of_slack_is_known_by_its_host():
    assert hook("https://hooks.slack.com/services/T/B/x") == ("slack", "https://hooks.slack.com/services/T/B/x")
    assert hook("https://hooks.slack.com.evil.example/x").form == "json"


@pytest.mark.parametrize("answer", [302, 404, 500])
def test_an_address_that_does_not_take_it_is_said_without_its_path(listener, answer):
    listener.answer = answer

    problem = hooks.tell(listener.url, NEWS)

    assert problem == f"127.0.0.1 answered {answer}"
    assert len(listener.told) == 1, "a hook is told once and not sent elsewhere"


def test_an_address_where_nobody_is_is_said_without_its_path(listener):
    listener.server_close()

    problem = hooks.tell(listener.url, NEWS)

    assert problem.startswith("it did not answer: ")


def test_a_command_gets_the_document_on_its_standard_input(tmp_path):
    target = tmp_path / "told with spaces.json"

    assert (
        hooks.tell(
            f"{sys.executable} -c 'import sys; open(sys.argv[1], \"w\").write(sys.stdin.read())' '{target}'", NEWS
        )
        is None
    )
    assert json.loads(target.read_text()) == NEWS


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (f"{sys.executable} -c 'raise SystemExit(7)'", "ended with 7"),
        (f"{sys.executable} -c 'import sys; sys.exit(\"no room\")'", "ended with 1: no room"),
        ("no-such-command-anywhere", "No such file"),
        ("'unfinished", "ValueError"),
        ("   ", "there is no command in it"),
    ],
)
def test_a_command_that_fails_is_said(command, words):
    assert words in hooks.tell(command, NEWS)


def test_a_command_that_hangs_is_ended():
    command = f"{sys.executable} -c 'input(); import time; time.sleep(60)'"

    assert "took longer than 0.2 s" in hooks.tell(command, NEWS, within=0.2)


@pytest.fixture(params=["head", "body"])
def dripping(request):
    """The address of a server that sends a byte of its answer's head, or body, every 20 ms and never comes to the end."""
    begins = b"HTTP/1.1 200 OK\r\nX: " + (b"\r\nContent-Length: 100000\r\n\r\n" if request.param == "body" else b"")
    over = threading.Event()

    def drip(listening):
        taken, _ = listening.accept()
        with taken, contextlib.suppress(OSError):
            taken.recv(65536)
            taken.sendall(begins)
            while not over.wait(0.02):
                taken.sendall(b"x")

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=drip, args=(listening,))
        thread.start()
        yield request.param, f"http://127.0.0.1:{listening.getsockname()[1]}/secret-path"
        over.set()
        thread.join()


@pytest.mark.deep(0.1, everyday=1)
@pytest.mark.parametrize("call", [partial(hooks.tell, document=NEWS), hooks.ping])
def test_an_address_that_drips_its_answer_has_so_many_seconds_in_all(dripping, call):
    part, address = dripping
    began = time.monotonic()

    problem = call(address, within=0.5)

    assert time.monotonic() - began < 30
    assert problem == ("it took longer than 0.5 s" if part == "head" else None), "of the body nothing is waited for"


@pytest.mark.parametrize("address", ["https://x.example:port/s3cret", "https://x.example/\x00s3cret"])
def test_an_address_that_is_none_is_a_log_line(address, caplog):
    assert hooks.tell(address, NEWS) == "it did not answer: InvalidURL"
    assert hooks.ping(address) == "it did not answer: InvalidURL"
    assert "s3cret" not in caplog.text


@pytest.mark.parametrize("proxy", ["http://127.0.0.1:1", "socks5://127.0.0.1:1"])
def test_no_proxy_of_the_environment_learns_an_address(listener, monkeypatch, proxy):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, proxy)

    assert hooks.tell(listener.url, NEWS) is None
    assert hooks.ping(listener.url) is None


def test_a_notebook_whose_loop_runs_may_tell(listener):
    async def cell():
        return hooks.tell(listener.url, NEWS)

    assert asyncio.run(cell()) is None


def test_a_dead_mans_switch_is_called(listener):
    assert hooks.ping(listener.url) is None
    assert listener.told == [("/hooks/secret-path", "GET", None)]


@pytest.mark.parametrize("answer", [302, 404, 500])
def test_a_dead_mans_switch_that_does_not_take_the_call_is_logged_without_its_path(listener, caplog, answer):
    listener.answer = answer

    assert hooks.ping(listener.url) == f"127.0.0.1 answered {answer}"
    assert len(listener.told) == 1
    assert "action=ping_failed" in caplog.text
    assert "secret" not in caplog.text


def test_a_dead_mans_switch_that_is_not_there_is_logged_without_its_address(listener, caplog):
    listener.server_close()

    for address in (listener.url, "https://secret.invalid/x", "http://[secret"):
        assert hooks.ping(address).startswith("it did not answer")
    assert "secret" not in caplog.text
