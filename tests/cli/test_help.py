"""Help is quick, whole, and says what docs/commands.md says."""

import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from tests.cli.conftest import CLEAN

from octo_sync.cli import root

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/commands.md"
HEAVY = {
    "asyncio",
    "duckdb",
    "email",
    "http",
    "httpx",
    "msgspec",
    "numpy",
    "pandas",
    "pyarrow",
    "pydantic",
    "rich",
    "sqlalchemy",
    "sqlmodel",
    "ssl",
}

OBVIOUS = {("demo", "--bookings"), ("demo", "--products")}


def commands(command=root, path=()):
    """(path, command) of every command and sub-command."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from commands(command.get_command(context, name), (*path, name))


ALL = {" ".join(path): command for path, command in commands()}


def test_help_imports_nothing_heavy(empty):
    program = "import sys; from octo_sync.cli import main\ntry: main(['--help'])\nfinally: print(*sys.modules, file=sys.stderr)"

    done = subprocess.run([sys.executable, "-c", program], env=CLEAN, capture_output=True, text=True, check=False)
    loaded = {name.split(".")[0] for name in done.stderr.split()}

    assert done.returncode == 0
    assert loaded & HEAVY == set()


@pytest.mark.parametrize("words", [["sql", "select 1"], ["tables"], ["config"], ["check"]])
def test_what_only_looks_imports_neither_journal_nor_client(looked, words):
    program = (
        f"import sys; from octo_sync.cli import main\ntry: main({words})\nfinally: print(*sys.modules, file=sys.stderr)"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], cwd=looked.directory, env=CLEAN, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0
    assert {name.split(".")[0] for name in done.stderr.split()} & {
        "sqlmodel",
        "httpx",
        "pandas",
        "pyarrow",
        "uvicorn",
    } == set()


@pytest.mark.deep(1)
def test_help_takes_little_more_than_what_it_cannot_do_without(empty):
    """Processor time beside that of Python with click alone, measured in turns: machines differ, and so do moments."""

    def spent(start):
        before = os.times()
        start()
        after = os.times()
        return after.children_user + after.children_system - before.children_user - before.children_system

    floor = [sys.executable, "-c", "import click, pathlib, shutil, importlib.metadata"]
    rounds = [
        (spent(lambda: empty("--help", real=True)), spent(lambda: subprocess.run(floor, check=True, env=CLEAN)))
        for _ in range(7)
    ]

    assert min(help_ for help_, _ in rounds) < 2 * min(alone for _, alone in rounds)


def test_the_package_alone_imports_nothing_heavy():
    program = "import sys, octo_sync; print(*sys.modules)"

    done = subprocess.run([sys.executable, "-c", program], env=CLEAN, capture_output=True, text=True, check=True)

    assert {name.split(".")[0] for name in done.stdout.split()} & (HEAVY | {"click"}) == set()


def test_help_shows_every_command_with_a_whole_sentence(empty):
    text = empty("--help", environment={"COLUMNS": "80"}).stdout

    assert "..." not in text.partition("Commands:")[2]
    assert max(map(len, text.splitlines())) <= 80
    for name in root.list_commands(click.Context(root)):
        assert re.search(rf"^  {name} +[A-Z]", text, re.MULTILINE), name
    listed = re.findall(r"^  ([a-z]+)  +[A-Z]", text.partition("Commands:")[2], re.MULTILINE)
    assert listed == root.list_commands(click.Context(root))
    assert listed.index("sync") < listed.index("status") < listed.index("runs") < listed.index("version")


@pytest.mark.parametrize("name", ALL)
def test_every_command_and_option_has_a_meaning(name):
    command = ALL[name]

    assert command.help, name
    for option in command.params:
        if isinstance(option, click.Option) and not option.hidden:
            assert option.help or (name, option.opts[0]) in OBVIOUS, f"{name} {option.opts[0]}"


@pytest.mark.parametrize("name", [name for name in ALL if name])
def test_every_command_and_option_is_on_the_page(name):
    text = PAGE.read_text(encoding="utf-8")
    heading = re.search(rf"^##+ `octo-sync {re.escape(name)}`$", text, re.MULTILINE)

    assert heading, f"docs/commands.md has no section for octo-sync {name}"
    rest = text[heading.end() :]
    section = rest[: following.start()] if (following := re.search(r"^##+ ", rest, re.MULTILINE)) else rest
    for option in ALL[name].params:
        if isinstance(option, click.Option) and not option.hidden:
            for spelling in option.opts:
                assert f"`{spelling}" in section, f"octo-sync {name} {spelling} is not in docs/commands.md"


def test_the_page_has_no_command_that_is_none():
    headings = re.findall(r"^##+ `octo-sync ([a-z -]+)`$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)

    assert set(headings) == set(ALL) - {""}
    assert len(headings) == len(set(headings))
