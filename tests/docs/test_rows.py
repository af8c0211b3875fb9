"""What is new has its row on the page that lists its kind: marts, pages of the dashboard, the sandbox's switches, commands."""

import re
from pathlib import Path

import click
import httpx
from tests.cli.test_help import commands

from octo_sync.dashboard.app import all_pages
from octo_sync.flows import ask
from octo_sync.sandbox.config import DEFAULT_TOKENS, SandboxConfig
from octo_sync.sandbox.server import Sandbox

ROOT = Path(__file__).resolve().parents[2]


def _read(path):
    return (ROOT / path).read_text(encoding="utf-8")


def test_the_warehouse_page_has_every_mart_check_and_question():
    page = _read("docs/warehouse.md")
    rows = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    asked = re.findall(r"^\| (\d+) \| (.+) \| ([^|]*) \|$", page, re.MULTILINE)

    there = {f.stem for kind in ("marts", "checks") for f in (ROOT / "warehouse" / kind).glob("*.sql")}
    assert there ^ (rows - {"marts", "core", "ops"}) == set(), "docs/warehouse.md: a row for each mart and check"
    questions = ask.questions(Path("nowhere"))
    assert [(number, text) for number, text, _ in asked] == [(str(q.number), q.question) for q in questions], (
        "docs/warehouse.md: a row for each question, in their order"
    )
    for question, (*_, parameters) in zip(questions, asked, strict=True):
        assert re.findall(r"`(\w+)", parameters) == [parameter.name for parameter in question.parameters]


def test_the_pages_are_those_of_the_docs():
    rows = _read("docs/dashboard.md").partition("## The pages")[2].partition("| page |")[2].partition("\n\n")[0]
    titles = [page.title for page in all_pages()]
    assert titles == [row.split("|")[1].strip() for row in rows.splitlines()[2:]], (
        "docs/dashboard.md: a row for each page, in their order"
    )


def test_the_sandboxs_readme_names_every_switch_and_token():
    page = "src/octo_sync/sandbox/README.md"
    with Sandbox(SandboxConfig(bookings=1, days=1)) as running, httpx.Client(trust_env=False) as client:
        found = client.get(running.control_url).json()
    names = [one["fault"] for one in found["faults"]] + [one["quirk"] for one in found["quirks"]]
    names += [one["path"] for one in found["routes"]] + [one.secret for one in DEFAULT_TOKENS]
    assert [name for name in names if f"`{name}`" not in _read(page)] == [], f"{page}: a row for each"


def test_there_are_at_most_forty_commands():
    leaves = [" ".join(path) for path, command in commands() if not isinstance(command, click.Group)]

    assert len(leaves) <= 40, "a new command takes the place of one that few would miss, or is an option of another"
