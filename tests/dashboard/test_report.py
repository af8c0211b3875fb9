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

import duckdb
import pytest
from tests.absent import absent
from tests.dashboard.conftest import READ
from tests.dashboard.test_pages import HOSTILE, charts, tiles
from tests.flows.harness import NOON

from octo_sync.dashboard import Source, report_html


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
    assert charts(report) == charts(page)


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
    assert done.stderr.startswith("report.html · 1.")
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
