"""Undocumented is a failing test: tables and columns, errors, exit codes, variables, and the tests that promises name."""

import inspect
import re
from pathlib import Path

import pytest
from scripts import tables

from octo_sync import cli, errors

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
SOURCES = sorted((ROOT / "src/octo_sync").rglob("*.py"))


def _rows(page, heading=None):
    """Cells of the tables of a page, or of one section, without their heads."""
    text = (DOCS / page).read_text(encoding="utf-8")
    if heading:
        text = text.split(f"\n{heading}\n")[1].split("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def test_the_pages_of_tables_are_current():
    for page, text in tables.render().items():
        assert page.read_text(encoding="utf-8") == text, f"{page} is not current; run: scripts/write.sh"


ROW = re.compile(r"^\| `(\w+)` \| [^|]+ \| (.*) \|$", re.MULTILINE)


def test_every_table_and_column_has_a_meaning():
    page, overview = (path.read_text(encoding="utf-8") for path in (tables.COLUMNS, tables.PAGE))
    rows = ROW.findall(page)
    common = "".join(re.findall(r"^Common columns: .+$", page, re.MULTILINE))
    headings = re.findall(r"^### `\w+\.(\w+)`", page, re.MULTILINE)

    assert len(rows) > 350
    assert [name for name, meaning in rows if not meaning.strip()] == []
    assert set(re.findall(r"`(\w+)`", common)) == {name for name, _ in ROW.findall(page.split("\n## ")[1])}
    assert len(re.findall(r"^### `(?:marts|core|ops)\.\w+`\n\n\S", page, re.MULTILINE)) == len(headings) > 40
    listed = re.findall(r"^\| `(\w+)` \| \S", overview.partition("## Schema")[2], re.MULTILINE)
    assert sorted(listed) == sorted(re.findall(r"^### `(?:marts|core)\.(\w+)`", page, re.MULTILINE))


def _classes():
    return [getattr(errors, name) for name in errors.__all__]


def test_every_error_is_on_the_page_once_and_nothing_else_is():
    named = [re.fullmatch(r"`(\w+)`", row[0])[1] for row in _rows("errors.md")[1:]]

    assert sorted(named) == sorted(errors.__all__)
    assert set(errors.__all__) == {
        name for name, value in vars(errors).items() if inspect.isclass(value) and issubclass(value, Exception)
    }


@pytest.mark.parametrize("error", _classes(), ids=lambda error: error.__name__)
def test_the_page_says_what_an_error_means_its_exit_code_and_what_to_do(error):
    (row,) = [row for row in _rows("errors.md") if row[0] == f"`{error.__name__}`"]
    _, means, code, advice = row

    assert means == inspect.getdoc(error).partition("\n")[0]
    assert code == str(cli.exit_code(error("It is so.")))
    assert len(advice) > 20


def _said_codes(text):
    """The codes of `0 fine · 3 no · 130/143 signals` and of `3 = no, 4 = refused`."""
    return {int(code) for code in re.findall(r"(?:^|[·,] |/)(\d+)\b", text.strip())}


def test_the_table_of_exit_codes_is_that_of_the_program():
    table = {
        int(code): row[1]
        for row in _rows("commands.md", "## What all of them share")
        for code in re.findall(r"^\d+|(?<=, )\d+", row[0])
    }
    epilog = cli.root.epilog.removeprefix("Exit codes: ").rstrip(".")

    assert set(table) == _said_codes(epilog) == {0, 1, 2, 3, 4, 5, 6, 130, 143}
    assert all(table.values())
    assert {cli.exit_code(error("It is so.")) for error in _classes()} <= set(table)


def test_no_command_says_an_exit_code_that_the_table_lacks():
    page = (DOCS / "commands.md").read_text(encoding="utf-8")
    said = {code for line in re.findall(r"^Exit codes?:? (.*)$", page, re.MULTILINE) for code in _said_codes(line)}

    assert {0, 1, 2, 3, 5, 6, 130} <= said <= {0, 1, 2, 3, 4, 5, 6, 130, 143}


READ = re.compile(
    r"""environ(?:\.get\(|\[)["']([A-Z_]+)["']|\.variable\(["']([A-Z_]+)["']\)|getenv\(["']([A-Z_]+)["']"""
)


def test_every_variable_that_is_read_is_on_the_page_and_every_one_there_is_read():
    read = {
        name for path in SOURCES for match in READ.findall(path.read_text(encoding="utf-8")) for name in match if name
    }
    said = {name for row in _rows("environment.md") for name in re.findall(r"`([A-Z_]+)`", row[0])}

    assert {"NO_COLOR", "CREDENTIALS_DIRECTORY"} <= read
    assert said - {"OCTO_SYNC_CONNECTIONS__NAME__TOKEN"} == read


def test_the_tests_that_promises_name_exist():
    page = (DOCS / "internals/guarantees.md").read_text(encoding="utf-8")
    named = re.findall(r"`(tests/[\w/]+\.py)`", page)

    assert len(named) > 20
    assert [name for name in named if not (ROOT / name).exists()] == []
    for row in _rows("internals/guarantees.md")[1:]:
        assert "`tests/" in row[2], f"nothing proves: {row[0]}"


def test_the_readme_has_every_mart_and_draws_only_relations_that_the_warehouse_page_has():
    readme = (ROOT / "README.md").read_text(encoding="utf-8").split("\n## The tables\n")[1].split("\n## ")[0]
    page = (DOCS / "warehouse.md").read_text(encoding="utf-8")
    tables_page = tables.PAGE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", readme, re.MULTILINE)
    drawn = re.search(r"```mermaid\nerDiagram\n(.*?)```", readme, re.DOTALL)[1].splitlines()

    marts = {path.stem for path in (ROOT / "warehouse/marts").glob("*.sql")}
    assert {name for name, _ in rows} ^ marts == set(), (
        "README.md, The tables: a row for each mart, as in docs/tables.md"
    )
    assert [f"| `{name}` | {one} |" for name, one in rows if f"\n| `{name}` | {one} |" not in tables_page] == []
    assert len(drawn) >= 8
    assert [line for line in drawn if line not in page.splitlines()] == []


def test_what_runs_more_faults_is_said_where_they_are_promised():
    options = set(re.findall(r'addoption\("(--[\w-]+)"', (ROOT / "tests" / "faults" / "conftest.py").read_text()))

    assert options
    assert options == set(
        re.findall(
            r"^uv run pytest tests/faults/.* (--[\w-]+)", (DOCS / "internals/guarantees.md").read_text(), re.MULTILINE
        )
    )
