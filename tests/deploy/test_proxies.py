"""What `deploy nginx` and `deploy caddy` print, in front of a real receiver, served by the real servers."""

import asyncio
import contextlib
import os
import re
import socket
import ssl
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.deploy.conftest import Deploy, judged, run, tool
from tests.receiver import process
from tests.receiver.conftest import Client, booking_body, post

from octo_sync.journal import Journal

HOST = "hooks.acme.test"
PIPELINE = """\
[connections.acme]
base_url = "https://api.example.com/octo/v1"
token = {{ env = "ACME_TOKEN" }}

[webhooks]
url = "https://{host}:{port}/x/octo"
bind = "127.0.0.1:{receiver}"
"""
ADDRESS = f"/x/octo/hooks/{process.ENDPOINT}"
LIMIT = 64 * 1024


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@dataclass
class Proxy:
    directory: Path
    port: int
    receiver: subprocess.Popen
    receiver_port: int
    buffers: bool
    """Whether it passes a request on only when it is whole."""

    async def client(self):
        context = ssl.create_default_context(cafile=self.directory / "cert.pem")
        return Client(*await asyncio.open_connection("127.0.0.1", self.port, ssl=context, server_hostname=HOST))

    async def ask(self, raw, within=5.0):
        client = await self.client()
        try:
            return await client.ask(raw, within)
        finally:
            await client.close()

    async def get(self, path, host=HOST):
        return await self.ask(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())

    def held(self):
        """Connections that are open at the receiver."""
        port = f"0100007F:{self.receiver_port:04X}"
        lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        return sum(line[1] == port and line[3] == "01" for line in lines)

    async def idle(self):
        """Until no connection is."""
        async with asyncio.timeout(60):
            while True:
                if not self.held():
                    return
                await asyncio.sleep(0.02)

    def stored(self):
        with Journal.open(self.directory / "receiver/journal.sqlite", clock=process.Clock()) as journal:
            return [each.body for each in journal.inbox.deliveries(100)]

    def logged(self):
        """Everything that the server wrote anywhere, but for its own configuration."""
        return {
            path.name: path.read_text(encoding="latin-1")
            for path in (self.directory / "logs").rglob("*")
            if path.is_file()
        }


def certificate(directory):
    judged(
        tool("openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
        "-subj", f"/CN={HOST}", "-addext", f"subjectAltName=DNS:{HOST}", "-keyout", directory / "key.pem",
        "-out", directory / "cert.pem",
    )  # fmt: skip


def nginx(directory, text, port):
    """The command line of nginx with what was printed as a part of its http block."""
    text = text.replace(f"listen [::]:{port} ssl;", "").replace(f"listen {port} ssl;", f"listen 127.0.0.1:{port} ssl;")
    text = text.replace(f"/etc/letsencrypt/live/{HOST}/fullchain.pem", f"{directory}/cert.pem")
    text = text.replace(f"/etc/letsencrypt/live/{HOST}/privkey.pem", f"{directory}/key.pem")
    text = text.replace("/var/log/nginx/", f"{directory}/logs/")
    assert text.count(str(directory)) == 4
    (directory / "octo-sync.conf").write_text(text)
    (directory / "nginx.conf").write_text(
        ("user root;\n" if os.geteuid() == 0 else "")
        + f"daemon off;\npid {directory}/nginx.pid;\nerror_log {directory}/logs/main-error.log info;\nevents {{}}\nhttp {{\n"
        + f"access_log {directory}/logs/main-access.log;\n"
        + "".join(
            f"{part}_temp_path {directory}/{part};\n" for part in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        + f"include {directory}/octo-sync.conf;\n}}\n"
    )
    words = [tool("nginx"), "-e", f"{directory}/logs/start.log", "-c", f"{directory}/nginx.conf", "-p", str(directory)]
    judged(*words, "-t")
    return words


def caddy(directory, text, port):
    """The command line of Caddy with what was printed as its Caddyfile, and the line that its version wants."""
    newer = re.match(r"v?2\.([0-6])\.", run(tool("caddy"), "version").stdout) is None
    return caddy_as_printed(
        directory, re.sub("# (request_buffers)" if newer else "# (buffer_requests)", r"\1", text), port
    )


def caddy_as_printed(directory, text, port):
    """The same without that line; on this machine's address, with a certificate of our own."""
    text = text.replace("\n{\n", "\n{\n\tadmin off\n\tauto_https disable_redirects\n", 1)
    own = f"tls {directory}/cert.pem {directory}/key.pem\n\tbind 127.0.0.1"
    text = text.replace("# tls /etc/ssl/octo-sync.pem /etc/ssl/octo-sync.key", own)
    assert own in text
    (directory / "Caddyfile").write_text(text)
    words = [tool("caddy"), "run", "--config", f"{directory}/Caddyfile", "--adapter", "caddyfile"]
    judged(tool("caddy"), "validate", *words[2:], env=_at_home(directory))
    return words


def _at_home(directory):
    return {**os.environ, "HOME": str(directory), "XDG_DATA_HOME": str(directory), "XDG_CONFIG_HOME": str(directory)}


@pytest.fixture(scope="module", params=[nginx, caddy, caddy_as_printed])
def started(request, tmp_path_factory):
    """The server and the receiver behind it, once for all tests."""
    directory = tmp_path_factory.mktemp("proxy")
    name = request.param.__name__.partition("_")[0]
    tool(name)
    certificate(directory)
    with contextlib.ExitStack() as stack:
        receiver, receiver_port = _receiver(directory / "receiver")
        stack.callback(_ended, receiver)
        proxy = Proxy(directory, free_port(), receiver, receiver_port, buffers=request.param is not caddy_as_printed)
        deploy = Deploy(directory / "project")
        deploy.pipeline(PIPELINE.format(host=HOST, port=proxy.port, receiver=receiver_port))
        (text,) = deploy.files(name)[0].values()
        (directory / "logs").mkdir()
        words = request.param(directory, text, proxy.port)
        with (directory / "logs/output").open("wb") as output:
            server = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=_at_home(directory)
            )
        stack.callback(_ended, server)
        yield proxy


def _receiver(directory):
    directory.mkdir()
    running = subprocess.Popen(
        [sys.executable, process.__file__, str(directory)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    return running, int(running.stdout.readline().rpartition(":")[2])


def _ended(running):
    running.terminate()
    running.wait(20)
    if running.stdout:
        running.stdout.close()


@pytest.fixture
async def proxy(started):
    async with asyncio.timeout(120):
        while True:
            with contextlib.suppress(OSError):
                await (await started.client()).close()
                return started
            await asyncio.sleep(0.02)


async def test_a_delivery_is_stored_and_acknowledged(proxy):
    answer = await proxy.ask(post(booking_body("through"), path=ADDRESS).replace(b"Host: x", b"Host: " + HOST.encode()))

    assert (answer.status, answer.body) == (200, b"")
    assert booking_body("through") in proxy.stored()


def _delivery(body, *headers, **more):
    return post(body, *headers, path=ADDRESS, **more).replace(b"Host: x", b"Host: " + HOST.encode())


async def test_a_body_may_come_in_chunks(proxy):
    chunked = _delivery(b"").replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")

    body = b"".join(b"1\r\n" + bytes([byte]) + b"\r\n" for byte in booking_body("c"))
    answer = await proxy.ask(chunked + body + b"0\r\n\r\n")

    assert answer.status == 200
    assert booking_body("c") in proxy.stored()


async def test_the_receiver_itself_refuses_a_wrong_secret(proxy):
    assert (await proxy.ask(_delivery(booking_body("stranger"), secret=b"guessed"))).status == 401


@pytest.mark.deep(2, everyday=["nginx"])
async def test_a_body_may_have_what_the_receiver_takes_and_no_more(proxy):
    assert (await proxy.ask(_delivery(b" " * LIMIT))).status == 200
    assert (await proxy.ask(_delivery(b" " * (LIMIT + 1)))).status == 413
    # Caddy waits for what was announced, up to its time limit, before it says so.
    assert (await proxy.ask(_delivery(b"", length=LIMIT + 1), within=60.0)).status == 413


async def test_a_head_may_have_16_kib_and_not_much_more(proxy):
    assert (await proxy.ask(_delivery(booking_body("long"), b"X-Long: " + b"a" * 7000))).status == 200
    assert (await proxy.ask(_delivery(b"", *(b"X-Long-%d: " % n + b"a" * 7000 for n in range(4))))).status in {400, 431}


@pytest.mark.deep(6)
async def test_a_slow_head_is_ended(proxy):
    client = await proxy.client()
    await client.say(b"POST " + ADDRESS.encode() + b" HTTP/1.1\r\nHost: " + HOST.encode())

    assert await client.ended(within=15)
    await client.close()


@pytest.mark.deep(11)
async def test_a_slow_body_is_ended_and_meanwhile_holds_nothing_at_the_receiver(proxy):
    client = await proxy.client()
    await proxy.ask(_delivery(b"{}", secret=b"guessed"))  # ends the connection that was kept open for the next request
    await proxy.idle()
    await client.say(_delivery(b'{"half":', length=5000))
    loop = asyncio.get_running_loop()
    until = loop.time() + 0.5
    while loop.time() < until:
        assert proxy.held() == 0 or not proxy.buffers
        await asyncio.sleep(0.05)

    assert await client.ended(within=30)
    await client.close()


@pytest.mark.deep(0.1, everyday=6)
@pytest.mark.parametrize(
    "path",
    [
        "/", "/metrics", "/livez", "/readyz", "/hooks/x", f"/hooks/{process.ENDPOINT}", "/x/octo", "/x/octo/metrics",
        "/x/octo/hooks", "/x/octo/hooks/../metrics", "/x/octo/hooks/../../../metrics", "/x/octo/hooks/%2e%2e/metrics",
        "/x/octo/hooksx", "/status", "/data/fct_bookings.csv",
    ],
)  # fmt: skip
async def test_everything_else_is_404(proxy, path):
    answer = await proxy.get(path)

    assert answer.status in {404, 308, 301}
    assert b"octo_sync_" not in answer.body


@pytest.mark.parametrize("path", ["/", "/hooks/", "/x/", "/x/octo/", "/x/hooks/"])
async def test_a_delivery_to_another_path_does_not_get_through(proxy, path):
    raw = _delivery(booking_body(f"by {path}")).replace(ADDRESS.encode(), f"{path}{process.ENDPOINT}".encode())

    assert (await proxy.ask(raw)).status == 404
    assert booking_body(f"by {path}") not in proxy.stored()


async def test_the_pages_of_the_receiver_cannot_be_had_through_the_path_of_deliveries(proxy):
    for path in ("/x/octo/hooks/livez", "/x/octo/hooks//livez", "/x/octo/hooks/a/../livez"):
        answer = await proxy.get(path)
        assert (answer.status, answer.body) != (200, b"ok\n"), path
        assert answer.status >= 400, path


@pytest.mark.deep(0.3, everyday=1)
async def test_no_log_tells_a_delivery_s_address_or_secret_not_even_when_the_receiver_is_away(proxy):
    """Last: it takes the receiver away."""
    for raw in (_delivery(b" " * (LIMIT + 1)), _delivery(b"{}", secret=b"guessed"), _delivery(booking_body("logged"))):
        await proxy.ask(raw)
    _ended(proxy.receiver)

    answer = await proxy.ask(_delivery(booking_body("lost")))

    assert answer.status == 502
    logs = proxy.logged()
    assert logs
    for name, text in logs.items():
        assert process.ENDPOINT not in text, name
        assert "right horse" not in text, name
        assert "guessed" not in text, name
    assert " 502 " in "".join(logs.values()) or '"status":502' in "".join(logs.values()), (
        "whoever looks sees the failure"
    )
