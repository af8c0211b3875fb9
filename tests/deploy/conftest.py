"""Files of `octo-sync deploy`, made for a pipeline, and the tools that judge them."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.absent import absent

from octo_sync.cli import root

PIPELINE = """\
destination = "postgresql://octo:${WAREHOUSE_PASSWORD}@db.example/analytics"

[connections.acme]
base_url = "https://api.example.com/octo/v1"
token = { env = "ACME_TOKEN" }

[connections.other-eu]
base_url = "https://api.example.com/octo/v1"
token = { file = "$CREDENTIALS_DIRECTORY/other" }

[webhooks]
url = "https://hooks.acme.test/octo"
bind = "127.0.0.1:9797"

[schedule]
full = "30 2 * * 1"
time_zone = "Europe/Lisbon"
"""


def tool(name):
    """The path of a program that is no part of this project; without it the test is `absent`."""
    found = shutil.which(name) or shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    if found is None:
        absent(f"{name} is not installed here")
    return found


def run(*words, **more):
    return subprocess.run([*map(str, words)], capture_output=True, text=True, timeout=60, check=False, **more)


def judged(*words, **more):
    """What a tool says; it has to be content."""
    done = run(*words, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def interpolated(text):
    """A text of a compose file as compose reads it: `$$` is a dollar, and one alone would begin a variable."""
    assert "$" not in text.replace("$$", ""), text
    return text.replace("$$", "$")


class Deploy:
    """Runs `octo-sync deploy` in a project."""

    def __init__(self, directory):
        self.directory = Path(directory)

    def pipeline(self, text=PIPELINE, name="acme"):
        path = self.directory / "pipelines" / f"{name}.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def __call__(self, *words):
        return CliRunner().invoke(root, ["deploy", *map(str, words), "-C", str(self.directory)], obj={})

    def files(self, target, *words):
        """Name → text, as written with --to."""
        folder = self.directory / "written" / target
        done = self(target, *words, "--to", folder, "--force")
        assert done.exit_code == 0, (done.output, done.exception)
        return {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}, folder


@pytest.fixture
def deploy(tmp_path):
    made = Deploy(tmp_path / "project")
    made.pipeline()
    return made


HOSTILE = [
    "a b",
    "50%h",
    'say "hi"',
    "it's",
    "$HOME",
    "back\\slash",
    "a;b #c",
    "ünï",
    "$(reboot)",
    "`id`",
    "{{ x }}",
    "-C",
]
"""Names of folders that mean something to one format or another."""
