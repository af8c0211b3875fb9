"""What speaks to a sandbox on this machine goes there directly, whatever proxies the environment names."""

import http.server
import threading

import pytest

from octo_sync.cli import acts, trigger


@pytest.fixture
def control(monkeypatch):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"changes": [{"kind": "note"}]}')

        def log_message(self, *_):
            pass

    for name in ("http_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_trigger_and_the_demo_use_no_proxy(control):
    assert trigger._change(f"{control}/octo/v1", ["note"], 1, "token") == [{"kind": "note"}]
    assert acts.ask(f"{control}/_sandbox/traffic", {"changes": 1})["changes"]
