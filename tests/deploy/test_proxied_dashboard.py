"""The dashboard's part of what `deploy nginx` and `deploy caddy` print, a comment there, served by the real servers."""

import asyncio
import base64
import contextlib
import os
import re
import ssl
import subprocess
import sys

import pytest
from tests.deploy.conftest import Deploy, judged, run, tool
from tests.deploy.test_proxies import certificate, free_port
from tests.receiver.conftest import Client

NAME = "dashboard.example.com"
PASSWORD = "octo-password"
PIPELINE = """\
[connections.acme]
base_url = "https://api.example.com/octo/v1"
token = {{ env = "ACME_TOKEN" }}

[dashboard]
bind = "127.0.0.1:{dashboard}"
allow_hosts = ["{name}"]
"""


def nginx(directory, block, port):
    (directory / "nginx.conf").write_text(
        ("user root;\n" if os.geteuid() == 0 else "")
        + f"daemon off;\npid {directory}/nginx.pid;\nerror_log {directory}/error.log;\nevents {{}}\nhttp {{\naccess_log off;\n"
        + "".join(
            f"{part}_temp_path {directory}/{part};\n" for part in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        + block.replace("listen 443 ssl;", f"listen 127.0.0.1:{port} ssl;")
        .replace(f"/etc/letsencrypt/live/{NAME}/fullchain.pem", f"{directory}/cert.pem")
        .replace(f"/etc/letsencrypt/live/{NAME}/privkey.pem", f"{directory}/key.pem")
        .replace("/etc/nginx/octo-sync.htpasswd", f"{directory}/htpasswd")
        + "}\n"
    )
    (directory / "htpasswd").write_text("any:" + judged(tool("openssl"), "passwd", "-apr1", PASSWORD))
    words = [tool("nginx"), "-e", f"{directory}/start.log", "-c", f"{directory}/nginx.conf", "-p", str(directory)]
    judged(*words, "-t")
    return words


def caddy(directory, block, port):
    if "NAME HASH" in block:
        hashed = run(tool("caddy"), "hash-password", "--plaintext", PASSWORD).stdout.strip()
        block = block.replace("NAME HASH", f"any {hashed}")
    own = f"{NAME}:{port} {{\n\ttls {directory}/cert.pem {directory}/key.pem\n\tbind 127.0.0.1\n"
    (directory / "Caddyfile").write_text(
        "{\n\tadmin off\n\tauto_https disable_redirects\n}\n" + block.replace(f"{NAME} {{\n", own)
    )
    return [tool("caddy"), "run", "--config", f"{directory}/Caddyfile", "--adapter", "caddyfile"]


def _uncommented(text):
    """What stands in the comment about the dashboard, as somebody makes it of it."""
    lines = text[text.index("# The dashboard listens on") :].splitlines()
    block = lines[lines.index("#") + 1 :]
    assert all(line.startswith("# ") for line in block)
    return "".join(f"{line.removeprefix('# ')}\n" for line in block)


@contextlib.contextmanager
def running(words, directory, **environ):
    home = {"HOME": str(directory), "XDG_DATA_HOME": str(directory), "XDG_CONFIG_HOME": str(directory)}
    with (directory / "output").open("ab") as output:
        program = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env={**os.environ, **home, **environ}
        )
    try:
        yield
    finally:
        program.terminate()
        program.wait(20)


async def ask(port, credentials=None):
    """The status that a browser gets for the first page."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    client = Client(*await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=NAME))
    basic = base64.b64encode(f"any:{credentials}".encode()).decode()
    head = f"Authorization: Basic {basic}\r\n" if credentials else ""
    try:
        said = f"GET / HTTP/1.1\r\nHost: {NAME}\r\n{head}Connection: close\r\n\r\n"
        return (await client.ask(said.encode(), 10.0)).status
    finally:
        await client.close()


@pytest.mark.deep(2, everyday=["True-caddy"])
@pytest.mark.parametrize("server", [nginx, caddy])
@pytest.mark.parametrize("has_token", [True, False])
async def test_a_browser_is_asked_for_one_password_and_then_gets_the_pages(tmp_path, server, has_token):
    tool(server.__name__)
    certificate(tmp_path)
    port, dashboard = free_port(), free_port()
    deploy = Deploy(tmp_path / "project")
    token = 'token = { env = "DASHBOARD_TOKEN" }\n' if has_token else ""
    deploy.pipeline(PIPELINE.format(dashboard=dashboard, name=NAME) + token)
    (text,) = deploy.files(server.__name__)[0].values()
    block = _uncommented(text)
    assert bool(re.search("auth", block, re.IGNORECASE)) is not has_token
    program = [sys.executable, "-m", "octo_sync", "serve", "--only", "dashboard", "-C", str(deploy.directory)]
    with (
        running(program, tmp_path, DASHBOARD_TOKEN=PASSWORD),
        running(server(tmp_path, block, port), tmp_path),
    ):
        async with asyncio.timeout(120):
            while True:
                with contextlib.suppress(OSError):
                    if await ask(port, PASSWORD) != 502:
                        break
                await asyncio.sleep(0.1)
        assert await ask(port) == 401
        assert await ask(port, "guessed") == 401
        assert await ask(port, PASSWORD) == 200
