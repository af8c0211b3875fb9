"""The Overview as one file: nothing is fetched, its own policy would stop what tried, and it says what the page says."""

import base64
import datetime as dt
import hashlib
import html
import os
import re
import shutil
import struct
import subprocess
import sys
from types import SimpleNamespace

import duckdb
import pytest
from tests.absent import absent
from tests.dashboard.conftest import READ
from tests.dashboard.test_pages import HOSTILE, charts, tiles
from tests.flows.harness import NOON
from tests.mailing import serving

from octo_sync.app import hooks, serve
from octo_sync.app.notify import send_report
from octo_sync.dashboard import Source, report_html
from octo_sync.errors import OctoSyncError
from octo_sync.pipeline import load


def made(folder, now=lambda: NOON + dt.timedelta(hours=1)):
    source = Source(folder / READ, folder, now=now)
    try:
        return report_html(source).decode()
    finally:
        source.close()


def test_everything_is_in_the_file_and_the_policy_permits_it_by_its_hash(published):
    report = made(published)
    (policy,) = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]+)">', report)
    policy = html.unescape(policy)
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for tag in ("style", "script"):
        found = re.findall(rf"<{tag}>(.*?)</{tag}>", report, re.DOTALL)
        assert len(found) == {"style": 1, "script": 2}[tag]
        for text in found:
            digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
            assert f"'sha256-{digest}'" in policy
    around = re.sub(r"<(style|script)[^>]*>.*?</\1>", "", report, flags=re.DOTALL)
    assert re.findall(r'(?:src|href|action)="(?!#)([^"]*)"', around) == ["data:,"]
    assert " style=" not in around


@pytest.mark.deep(2)
async def test_it_says_what_the_page_says(published, shown):
    report, page = made(published), await shown().text("/")
    assert tiles(report) == tiles(page)
    # A file that is alone leads nowhere.
    assert charts(report) == {name: {**drawn, "leads": {}} for name, drawn in charts(page).items()}


@pytest.mark.deep(1)
def test_what_is_hostile_stays_text(published, tmp_path):
    shutil.copy(published / READ, tmp_path / READ)
    with duckdb.connect(tmp_path / READ) as copy:
        copy.execute("update core.connections set channel = $1", [HOSTILE])
    report = made(tmp_path)
    assert "<script>alert" not in report
    assert any(HOSTILE in s["name"] for s in charts(report)["bookings-by-channel"]["option"]["series"])


@pytest.fixture
def project(published, tmp_path):
    shutil.copytree(published, tmp_path / "project")
    return tmp_path / "project"


def run(folder, *arguments, **environ):
    return subprocess.run(
        [sys.executable, "-m", "octo_sync", "report", *arguments],
        cwd=folder, capture_output=True, text=True, check=False, timeout=120, env={**os.environ, **environ},
    )  # fmt: skip


def test_the_command_writes_it_and_says_so(project):
    done = run(project, "-p", "pipeline.toml")
    assert (done.returncode, done.stdout) == (0, "")
    assert re.fullmatch(r"report\.html · \d+\.\d kB\n", done.stderr)
    assert tiles((project / "report.html").read_text())["bookings"]
    assert (project / "report.html").stat().st_mode & 0o077 == 0


@pytest.mark.deep(1)
def test_without_a_copy_there_is_no_report_and_an_older_one_stays(project):
    (project / "report.html").write_text("older")
    (project / READ).unlink()
    done = run(project, "-p", "pipeline.toml")
    assert done.returncode == 1
    assert "does not exist yet; run `octo-sync sync`" in done.stderr
    assert (project / "report.html").read_text() == "older"


def test_a_picture_without_a_browser_is_a_sentence(project, tmp_path):
    done = run(project, "-p", "pipeline.toml", "--png", PATH=str(tmp_path))
    assert done.returncode == 2
    assert "--png needs a browser" in done.stderr
    assert not (project / "report.html").exists()


@pytest.mark.deep(6)
def test_the_picture_is_as_high_as_the_page(project):
    if not any(map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))):
        absent("no browser on PATH: the picture of a report was not tested")
    done = run(project, "-p", "pipeline.toml", "--to", "out/day.html", "--png")
    assert done.returncode == 0, done.stderr
    head = (project / "out/day.png").read_bytes()[:24]
    width, height = struct.unpack(">II", head[16:24])
    assert head.startswith(b"\x89PNG")
    assert width == 1440
    assert 1200 < height < 4000


@pytest.fixture
def inbox():
    with serving() as inbox:
        inbox.url = f"smtp://127.0.0.1:{inbox.port}?from=octo@example.com"
        yield inbox


def attached(inbox):
    ((envelope, mail),) = inbox.mails
    (file,) = mail.iter_attachments()
    return envelope.rcpt_tos, file.get_filename(), file.get_payload(decode=True)


def test_the_command_sends_it_by_mail(project, inbox):
    done = run(
        project, "-p", "pipeline.toml", "--mail", "me@example.com,you@example.com", OCTO_SYNC_NOTIFY__SMTP=inbox.url
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.endswith("sent to me@example.com,you@example.com\n")
    to, name, content = attached(inbox)
    assert to == ["me@example.com", "you@example.com"]
    assert re.fullmatch(r"octo-sync-.+-\d{4}-\d\d-\d\d\.html", name)
    assert content == (project / "report.html").read_bytes()


def test_what_some_do_not_get_is_said_and_serve_does_not_send_it_again(project, inbox):
    to = "me@example.com,nobody@example.com"
    done = run(project, "-p", "pipeline.toml", "--mail", to, OCTO_SYNC_NOTIFY__SMTP=inbox.url)
    assert (done.returncode, "refused 1 of 2 addresses" in done.stderr, "sent to" in done.stderr) == (5, True, False)
    environ = {"OCTO_SYNC_NOTIFY__SMTP": inbox.url, "OCTO_SYNC_NOTIFY__REPORT": f"mailto:{to}"}
    pipeline = load(project / "pipeline.toml", directory=project, environ={**os.environ, **environ}, overrides={})
    serve._report(pipeline, SimpleNamespace(now=lambda: NOON))
    assert len(inbox.mails) == 2, "it raised nothing, so nothing is tried again"


@pytest.mark.parametrize(
    ("to", "notify", "words"),
    [
        ("me@example.com", "", "notify.smtp names no mail server"),
        ("me@example.com", 'smtp = { env = "NOT_SET" }', "the environment variable NOT_SET is not set"),
        ("me", 'smtp = "smtp://127.0.0.1:1?from=me@example.com"', "expected mail addresses"),
    ],
)
def test_what_keeps_it_from_being_sent_is_a_sentence(project, to, notify, words):
    with (project / "pipeline.toml").open("a") as file:
        file.write(f"\n[notify]\n{notify}\n")
    done = run(project, "-p", "pipeline.toml", "--mail", to)
    assert done.returncode == 2
    assert words in done.stderr
    assert not (project / "report.html").exists(), "it is said before anything is made"


def test_what_nobody_knows_is_said_and_not_sent_again(project, inbox, monkeypatch):
    inbox.seconds = 60
    monkeypatch.setattr(hooks.mail, "__kwdefaults__", {"within": 2.0})
    environ = {"OCTO_SYNC_NOTIFY__SMTP": inbox.url}
    pipeline = load(project / "pipeline.toml", directory=project, environ={**os.environ, **environ}, overrides={})
    said = send_report(pipeline, b"<p>", "me@example.com", NOON.date())
    assert said == "Nobody knows whether the report was sent: it took longer than 2 s."


def test_serve_sends_it_on_mondays_and_says_what_keeps_it_from_doing_so(project, inbox):
    environ = {"OCTO_SYNC_NOTIFY__SMTP": inbox.url, "OCTO_SYNC_NOTIFY__REPORT": "mailto:team@example.com"}
    pipeline = load(project / "pipeline.toml", directory=project, environ={**os.environ, **environ}, overrides={})
    clock = SimpleNamespace(now=lambda: NOON)

    serve._report(pipeline, clock)

    to, name, content = attached(inbox)
    assert (to, name) == (["team@example.com"], f"octo-sync-{pipeline.name}-{NOON:%Y-%m-%d}.html")
    assert tiles(content.decode())["bookings"]
    inbox.answer = "452 full"
    with pytest.raises(OctoSyncError, match=r"The report was not sent: 127\.0\.0\.1 answered 452"):
        serve._report(pipeline, clock)
