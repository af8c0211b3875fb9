"""Help is quick, whole, and says what docs/commands.md says."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
from tests.cli.conftest import CLEAN

from octo_sync import cli
from octo_sync.cli import COMMANDS, root

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


@pytest.mark.parametrize("words", [["sql", "select 1"], ["tables"], ["config"], ["check"], ["status"]])
def test_what_only_looks_imports_no_client_and_the_journal_only_to_look_into_it(looked, words):
    program = (
        f"import sys; from octo_sync.cli import main\ntry: main({words})\nfinally: print(*sys.modules, file=sys.stderr)"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], cwd=looked.directory, env=CLEAN, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0
    heavy = {"httpx", "pandas", "pyarrow", "uvicorn"} | (set() if words == ["status"] else {"sqlmodel"})
    assert {name.split(".")[0] for name in done.stderr.split()} & heavy == set()


def test_what_libraries_would_load_for_nothing_stays_away():
    words = [sys.executable, "-X", "importtime", "-m", "octo_sync", "sync", "--help"]

    done = subprocess.run(words, env=CLEAN, capture_output=True, text=True, check=True)

    loaded = {line.rpartition("|")[2].strip().split(".")[0] for line in done.stderr.splitlines()}
    assert "httpx" in loaded
    assert loaded & {"pandas", "pygments", "rich"} == set()


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


def test_help_shows_every_command_in_its_group_with_a_whole_sentence(empty):
    text = empty("--help", environment={"COLUMNS": "80"}).stdout

    assert "..." not in text.partition("Begin and run:")[2]
    for name in (name for name, command in ALL.items() if isinstance(command, click.Group)):
        assert (
            "..." not in empty(*name.split(), "--help", environment={"COLUMNS": "80"}).stdout.partition("Commands:")[2]
        ), name
    assert max(map(len, text.splitlines())) <= 80
    shown = re.findall(r"^(?:([A-Z].+):|  ([a-z]+)  +[A-Z].*)$", text.partition("this message")[2], re.MULTILINE)
    assert shown == [
        each for title, group in COMMANDS.items() for each in [(title, ""), *(("", name) for name in group)]
    ]


def test_the_table_of_commands_is_what_the_modules_say():
    folder = Path(cli.__file__).parent
    modules = {
        path.stem for path in folder.glob("*.py") if re.search(r"^def command\(", path.read_text(), re.MULTILINE)
    }

    assert {name for name in ALL if name and " " not in name} == modules
    for group in COMMANDS.values():
        for name, sentence in group.items():
            assert " ".join(ALL[name].help.partition("\n\n")[0].split()) == sentence


@pytest.mark.parametrize(
    ("words", "meant"), [("stauts", "status"), ("subscriptions enusre", "ensure"), ("privacy exprot", "export")]
)
def test_a_mistyped_command_says_what_may_be_meant(empty, words, meant):
    done = empty(*words.split())

    assert done.returncode == 2
    assert f'did you mean "{meant}"?' in done.stderr


def test_what_is_for_all_commands_may_stand_behind_each():
    for name, command in ALL.items():
        if not isinstance(command, click.Group):
            assert {"-q", "--debug", "--color"} <= {word for p in command.params for word in p.opts}, name


def test_a_pipeline_is_named_in_one_way(empty):
    done = empty("sync", "shop")

    assert done.returncode == 2
    assert "a pipeline is named with -p" in done.stderr
    takes_one = [name for name, command in ALL.items() if any(each.name == "pipeline" for each in command.params)]
    assert len(takes_one) > 30
    assert [name for name in takes_one if not any("-p" in each.opts for each in ALL[name].params)] == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-C", "shop", "status"], "octo-sync status -C DIR"),
        (["-p", "shop", "status"], "octo-sync status -p NAME"),
        (["--pipeline=shop", "status"], "octo-sync status --pipeline NAME"),
    ],
)
def test_an_option_of_a_command_that_stands_before_it_is_told_where_it_belongs(empty, words, said):
    done = empty(*words)
    assert done.returncode == 2
    option = said.split()[-2]
    assert done.stderr == f"octo-sync: error: No such option '{option}'. Put it behind the command: {said}\n"


@pytest.mark.parametrize("name", ALL)
def test_every_command_and_option_has_a_meaning(name):
    command = ALL[name]

    assert command.help, name
    for option in command.params:
        if isinstance(option, click.Option) and not option.hidden:
            assert option.help or (name, option.opts[0]) in OBVIOUS, f"{name} {option.opts[0]}"


@pytest.mark.parametrize("name", [name for name in ALL if name])
def test_every_help_ends_with_an_example_that_the_command_takes(name, tmp_path, monkeypatch):
    """It is parsed and not run."""
    shown = ALL[name].get_help(click.Context(ALL[name], terminal_width=80)).splitlines()[-1]
    example = re.fullmatch(r"  Example: octo-sync (.+)", shown)
    assert example, shown
    assert len(shown) <= 80
    words = shlex.split(example[1])
    assert words[: len(name.split())] == name.split()

    (tmp_path / "octo-backup").mkdir()  # what a backup would have made
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    context = root.make_context("octo-sync", words, obj={})
    while isinstance(context.command, click.Group):
        part, command, left = context.command.resolve_command(context, [*context._protected_args, *context.args])
        context = command.make_context(part, left, parent=context)
    assert context.args == []


def test_every_command_has_its_place_on_the_page():
    headings = re.findall(r"^##+ `octo-sync ([a-z]+)`$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)

    assert headings == [name for group in COMMANDS.values() for name in group]
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in ALL if name and f"octo-sync {name}" not in text] == []


def test_every_option_that_the_page_names_exists():
    text = PAGE.read_text(encoding="utf-8")
    parts = re.split(r"^###? `octo-sync ([a-z]+)`$", text, flags=re.MULTILINE)
    shared = {spelling for each in root.params for spelling in each.opts} | {"--help"}
    for name, section in zip(parts[1::2], parts[2::2], strict=True):
        own = [command for path, command in ALL.items() if path.split(" ")[0] == name]
        known = shared | {spelling for command in own for each in command.params for spelling in each.opts}
        for other, command in ALL.items():
            if other and f"octo-sync {other}" in section:
                known |= {spelling for each in command.params for spelling in each.opts}
        assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", section)) - known == set(), name
