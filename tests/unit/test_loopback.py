"""What speaks to a sandbox on this machine goes there directly, whatever proxies the environment names."""

import http.server

import pytest
from tests.listening import listening

from octo_sync.cli import acts, sandbox


@pytest.fixture
def control(monkeypatch):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"changes": [{"kind": "note"}]}')

    for name in ("http_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with listening(Handler) as server:
        yield server.url


def test_trigger_and_the_demo_use_no_proxy(control):
    assert sandbox._control(f"{control}/octo/v1", "traffic", {"changes": 1})["changes"] == [{"kind": "note"}]
    assert acts.ask(f"{control}/_sandbox/traffic", {"changes": 1})["changes"]
