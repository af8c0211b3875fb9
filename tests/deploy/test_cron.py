"""`deploy cron`: lines that cron runs, with mail only when something is wrong."""

import re
import subprocess
from pathlib import Path

import pytest
from tests.deploy.conftest import HOSTILE, Deploy

from octo_sync.flows.deploy import files as module
from octo_sync.pipeline import load

FAKE = """\
#!/bin/sh
printf '%s\\n' "$@" > "$0.asked"
echo one line
echo stale >&2
exit $(cat "$0.code")
"""


@pytest.fixture
def lines(tmp_path):
    """Makes a project and a program below a folder of that name: (the commands of the crontab, the program)."""

    def make(name):
        deploy = Deploy(tmp_path / name / "project")
        path = deploy.pipeline('[connections.acme]\nbase_url = "https://api.example.com/o"\ntoken = { env = "T" }\n')
        program = tmp_path / name / "octo-sync"
        program.write_text(FAKE)
        program.chmod(0o755)
        loaded = load(path, directory=deploy.directory, environ={"T": "x"}, overrides={})
        host = module.Host(program=program, python=Path("/usr"), user="")
        (text,) = module.files("cron", module.values(loaded, {"connections": {}}, host, deploy.directory)).values()
        commands = re.findall(r"^(?:[\d,*a-z]+ ){5}(.*)$", text, re.MULTILINE)
        assert len(commands) == 2, text
        return commands, program

    return make


def as_cron(command, program, code):
    """What cron would mail: an unescaped % ends the command, an escaped one is a %."""
    Path(f"{program}.code").write_text(str(code))
    assert not re.search(r"(?<!\\)%", command)
    words = ["/bin/sh", "-c", command.replace("\\%", "%")]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env={"PATH": "/usr/bin:/bin"})
    return done.stdout + done.stderr


@pytest.mark.parametrize("name", HOSTILE)
def test_the_command_reaches_the_program_whole_whatever_its_place_is_called(lines, name):
    (sync, status), program = lines(name)
    project = str(program.parent / "project")

    assert as_cron(sync, program, 0) == ""
    assert Path(f"{program}.asked").read_text().splitlines() == ["sync", "-p", "acme", "-C", project]
    as_cron(status, program, 0)
    asked = ["status", "-p", "acme", "-C", project, "--fail-if-stale", "26h"]
    assert Path(f"{program}.asked").read_text().splitlines() == asked
    assert (Path(project) / "octo-sync.log").read_text() == "one line\nstale\n"


def test_mail_comes_when_a_sync_failed_and_not_when_another_one_was_running(lines):
    (sync, _), program = lines("x")

    assert [as_cron(sync, program, code) for code in (0, 6)] == ["", ""]
    for code in (1, 4, 5, 143):
        assert as_cron(sync, program, code) == f"octo-sync sync ended with exit code {code}; see octo-sync.log\n"


def test_mail_about_a_stale_copy_is_what_the_program_says_on_stderr(lines):
    (_, status), program = lines("x")

    assert as_cron(status, program, 3) == "stale\n"


def test_the_lines_say_whose_clock_is_meant_and_set_what_cron_needs(deploy):
    text = deploy("cron").stdout

    assert "Times are this machine's; the pipeline's schedule means Europe/Lisbon." in text
    assert re.search(r"^30 2 \* \* mon \S+", text, re.MULTILINE)
    for name in ("SHELL", "PATH", "MAILTO"):
        assert re.search(rf"^{name}=\S+$", text, re.MULTILINE)
