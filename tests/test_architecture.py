"""Imports run one way, and each library has one home.

    cli → app → dashboard, receiver → flows → octo, journal, destinations, tables, reconciliation, pipeline
    → model, errors, statements, disk

Those in the middle do not import each other, but for destinations, which read what a table is from `tables`, and `tables`,
which read what a record is from `octo`. `sandbox` is a
stranger to all of them.
"""

import ast
import functools
import graphlib
import io
import re
import sys
import tokenize
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

LONG = 300
"""Lines of code above which a module has to give a reason in its first lines."""
SOURCE = Path(__file__).resolve().parent.parent / "src"

NOUNS = frozenset({"model", "errors", "statements", "disk"})
SIBLINGS = frozenset({"octo", "journal", "destinations", "tables", "reconciliation", "pipeline"})
FLOWS = SIBLINGS | NOUNS | {"flows"}
SURFACES = frozenset({"dashboard", "receiver"})

# What each part of the package may import of the others; "" is `octo_sync/__init__.py`.
MAY_IMPORT: Mapping[str, frozenset[str]] = {
    "": frozenset({"app"}) | NOUNS,
    "__main__": frozenset({"cli"}),
    "cli": frozenset({"", "app", "sandbox"}) | SURFACES | FLOWS,
    "app": frozenset({"", "sandbox"}) | SURFACES | FLOWS,
    "dashboard": FLOWS,
    "receiver": FLOWS,
    "flows": FLOWS,
    "octo": NOUNS,
    "journal": NOUNS,
    "destinations": NOUNS | {"tables"},
    "tables": NOUNS | {"octo"},
    "reconciliation": NOUNS,
    "pipeline": NOUNS,
    "model": frozenset({"errors"}),
    "errors": frozenset(),
    "statements": frozenset(),
    "disk": frozenset(),
    "sandbox": frozenset(),
}
# The one name of the root that anyone may ask for.
VERSION = "octo_sync.__version__"
# Known to type checkers alone.
TYPING_ONLY = frozenset({"_typeshed"})
# The demo is the one flow whose subject is the sandbox.
EXCEPTIONS = frozenset({("flows/demo/proof.py", "sandbox")})


@dataclass(frozen=True)
class Home:
    """Where a library may be imported (folders end with /), and whether only inside a function, for a quick start."""

    places: tuple[str, ...]
    late: bool = False


# docs/internals/dependencies.md says the same; a test compares the two.
HOMES: Mapping[str, Home] = {
    "aiohttp": Home(("octo/transport.py",)),
    "apscheduler": Home(("pipeline/schedule.py",)),
    "click": Home(("cli/",)),
    "duckdb": Home(("destinations/", "tables/", "reconciliation/")),
    "filelock": Home(("app/project.py", "flows/", "journal/")),
    "httpx": Home(("octo/client.py", "octo/transport.py", "app/hooks.py", "sandbox/deliveries.py")),
    "jinja2": Home(("dashboard/", "flows/templates.py")),
    "mcp": Home(("cli/mcp.py",), late=True),
    "msgspec": Home(
        (
            "octo/",
            "tables/",
            "destinations/",
            "flows/backup/save.py",
            "flows/sync/fetch.py",
            "flows/export/files.py",
            "journal/",
            "sandbox/",
        )
    ),
    "numpy": Home(("destinations/",), late=True),
    "pandas": Home(("app/reading.py", "app/reconcile.py"), late=True),
    "prometheus_client": Home(("receiver/",)),
    "psycopg": Home(("destinations/", "journal/postgres.py")),
    "pyarrow": Home(
        (
            "tables/",
            "destinations/",
            "reconciliation/",
            "app/reading.py",
            "flows/export/files.py",
            "flows/export/workbook.py",
            "flows/reconcile/run.py",
            "flows/reconcile/reading.py",
            "app/reconcile.py",
        )
    ),
    "pydantic": Home(("pipeline/",)),
    "python_calamine": Home(("reconciliation/ledgers/workbooks.py",), late=True),
    "rich": Home(("cli/",), late=True),
    "sqlalchemy": Home(("journal/", "reconciliation/ledgers/databases.py")),
    "sqlmodel": Home(("journal/",)),
    "stamina": Home(("octo/",)),
    "starlette": Home(("receiver/", "dashboard/", "sandbox/")),
    "uvicorn": Home(("receiver/", "sandbox/")),
    "deltalake": Home(("destinations/delta/",), late=True),
    "xlsxwriter": Home(("flows/export/workbook.py",), late=True),
    "yarl": Home(("octo/transport.py",)),
}


@dataclass(frozen=True)
class Import:
    """One imported module, where, and whether the import runs when the module is loaded."""

    module: str
    line: int
    at_load: bool


@functools.cache
def _imports(code: str, package: str, modules: frozenset[str]) -> tuple[Import, ...]:
    """Every import, also a relative one, one inside a function, and a literal `import_module`."""

    found: list[Import] = []

    def walk(node: ast.AST, *, at_load: bool) -> None:
        for child in ast.iter_child_nodes(node):
            match child:
                case ast.Import():
                    found.extend(Import(alias.name, child.lineno, at_load) for alias in child.names)
                case ast.ImportFrom():
                    parts = package.split(".")
                    base = ".".join(parts[: len(parts) - child.level + 1]) if child.level else ""
                    module = ".".join(part for part in (base, child.module or "") if part)
                    for alias in child.names:
                        inner = f"{module}.{alias.name}"
                        known = inner in modules or inner == VERSION
                        found.append(Import(inner if known else module, child.lineno, at_load))
                case ast.Call(
                    func=ast.Name(id=name) | ast.Attribute(attr=name), args=[ast.Constant(value=str(text)), *_]
                ) if name in {"import_module", "__import__"}:
                    found.append(Import(text, child.lineno, at_load))
            later = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            typing_only = isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING")
            walk(child, at_load=at_load and not later and not typing_only)

    walk(ast.parse(code), at_load=True)
    return tuple(found)


def broken_rules(sources: Mapping[str, str]) -> list[str]:
    """Every broken rule: `file:line imports X: the rule. What to do.` `sources` is path below octo_sync/ → code."""
    modules = frozenset(
        "octo_sync." + path.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for path in sources
    )
    found = []
    for path, code in sources.items():
        part = path.split("/", maxsplit=1)[0].removesuffix(".py")
        part = "" if part == "__init__" else part
        package = ".".join(["octo_sync", *path.split("/")[:-1]])
        if part not in MAY_IMPORT:
            found.append(
                f"src/octo_sync/{path}:1 is a new part: nothing says what it may import. Add {part} to MAY_IMPORT in "
                "tests/test_architecture.py, where it belongs in the order."
            )
            continue
        for each in _imports(code, package, modules):
            top, _, rest = each.module.partition(".")
            if each.module == VERSION and part != "sandbox":
                continue
            message = _inside(path, part, rest.split(".")[0]) if top == "octo_sync" else _outside(path, top, each)
            if message:
                found.append(f"src/octo_sync/{path}:{each.line} imports {each.module}: {message}")
    return list(dict.fromkeys(found))


def _outside(path: str, top: str, each: Import) -> str | None:
    if top in sys.stdlib_module_names or top in TYPING_ONLY:
        return None
    home = HOMES.get(top)
    if home is None:
        return f"{top} has no home. Do without it, or give it one in HOMES and docs/internals/dependencies.md."
    if not any(path.startswith(place) if place.endswith("/") else path == place for place in home.places):
        places = ", ".join(home.places)
        return f"{top} is imported only in {places}. Call what is there, or pass it in as an argument (R14)."
    if home.late and each.at_load:
        return (
            f"{top} is imported only inside the function that needs it, so that the program starts quickly. Move the "
            "import into the function, or below `if TYPE_CHECKING:`."
        )
    return None


def _inside(path: str, part: str, other: str) -> str | None:
    if other == part or other in MAY_IMPORT[part] or (path, other) in EXCEPTIONS:
        return None
    if part == "sandbox":
        return (
            "the sandbox imports nothing else of octo_sync. It shares no model, constant or parser with the connector, "
            "or a misread interface would pass every test. Write it again from the interface."
        )
    if other == "sandbox":
        return "only cli, app and flows/demo/proof.py start the sandbox. Speak HTTP to it."
    if part in SIBLINGS and other in SIBLINGS:
        return f"{part} and {other} are siblings and do not import each other. Let a flow hand over what is needed."
    allowed = ", ".join(sorted(MAY_IMPORT[part])) or "nothing of octo_sync"
    return f"imports run one way, and {part or '__init__'} may import {allowed}. Move the code down, or pass it in."


def _sources() -> dict[str, str]:
    root = SOURCE / "octo_sync"
    return {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in sorted(root.rglob("*.py"))}


def test_imports_run_one_way_and_each_library_has_one_home():
    sources = _sources()
    broken = broken_rules(sources)

    assert broken == [], "\n" + "\n".join(broken)
    assert {"model.py", "errors.py", "pipeline/__init__.py"} <= set(sources), "the test looked in the wrong place"


def rooms(sources: Mapping[str, str]) -> dict[str, set[str]]:
    """Each part of the package, `flows/` and `destinations/` one level deeper → the others it imports."""
    modules = {
        "octo_sync." + path.removesuffix(".py").removesuffix("/__init__").replace("/", "."): path for path in sources
    }

    def room(path: str) -> str:
        parts = path.split("/")
        return "/".join(parts[: 2 if parts[0] in {"flows", "destinations"} else 1])

    known = frozenset(modules)
    found: dict[str, set[str]] = {}
    for path, code in sources.items():
        package = ".".join(["octo_sync", *path.split("/")[:-1]])
        for each in _imports(code, package, known):
            other = modules.get(each.module)
            if other not in {None, "__init__.py", path} and room(other) != room(path):
                found.setdefault(room(path), set()).add(room(other))
    return found


def test_no_two_rooms_import_each_other_by_any_detour():
    sources = _sources()
    order = list(graphlib.TopologicalSorter(rooms(sources)).static_order())

    assert order.index("destinations/landing") < order.index("flows/sync") < order.index("cli")
    planted = sources | {"destinations/base.py": "from octo_sync.destinations.landing.steps import Landing"}
    with pytest.raises(graphlib.CycleError):
        list(graphlib.TopologicalSorter(rooms(planted)).static_order())


PLANTED = [
    ("octo/client.py", "from octo_sync.journal import Journal", "siblings"),
    ("octo/client.py", "from octo_sync import journal", "siblings"),
    ("octo/client.py", "from .. import journal", "siblings"),
    ("octo/client.py", "def f():\n    import octo_sync.journal.store", "siblings"),
    ("octo/client.py", "import importlib\nimportlib.import_module('octo_sync.journal')", "siblings"),
    (
        "octo/client.py",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from octo_sync.journal import x",
        "siblings",
    ),
    ("octo/client.py", "from octo_sync.flows.sync.work import Worker", "one way"),
    ("octo/client.py", "from octo_sync.pipeline import Pipeline", "siblings"),
    ("flows/sync/work.py", "from octo_sync.app import main", "one way"),
    ("flows/sync/work.py", "from octo_sync.cli import main", "one way"),
    ("flows/sync/work.py", "from octo_sync.sandbox import Service", "flows/demo/proof.py"),
    ("tables/bookings.py", "import octo_sync.sandbox.money", "flows/demo/proof.py"),
    ("model.py", "from octo_sync.pipeline import load", "one way"),
    ("errors.py", "from octo_sync.model import Secret", "one way"),
    ("errors.py", "import octo_sync", "one way"),
    ("pipeline/load.py", "from octo_sync.octo import quirks", "siblings"),
    ("sandbox/store.py", "from octo_sync.model import Window", "sandbox imports nothing"),
    ("sandbox/store.py", "from octo_sync.octo.endpoints import x", "sandbox imports nothing"),
    ("sandbox/store.py", "from octo_sync import __version__", "sandbox imports nothing"),
    ("octo/endpoints.py", "import httpx", "only in octo/client.py"),
    ("sandbox/service.py", "from httpx import AsyncClient", "only in octo/client.py"),
    ("flows/sync/work.py", "from sqlmodel import Session", "only in journal/"),
    ("flows/sync/work.py", "import sqlalchemy.exc", "only in journal/"),
    ("journal/store.py", "import duckdb", "only in destinations/"),
    ("app/project.py", "import apscheduler.schedulers", "only in pipeline/schedule.py"),
    ("flows/sync/work.py", "import pandas as pd", "only in app/reading.py"),
    ("app/reconcile.py", "import pandas as pd", "inside the function"),
    ("app/reading.py", "class A:\n    import pandas", "inside the function"),
    ("flows/sync/work.py", "import rich", "only in cli/"),
    ("cli/sync.py", "from rich.table import Table", "inside the function"),
    ("app/project.py", "import click", "only in cli/"),
    ("model.py", "from pydantic import BaseModel", "only in pipeline/"),
    ("flows/sync/work.py", "import requests", "has no home"),
    ("helpers.py", "", "new part"),
    ("utils/__init__.py", "", "new part"),
]


@pytest.mark.parametrize(("path", "code", "rule"), PLANTED)
def test_a_planted_violation_is_found_and_named_with_file_line_rule_and_advice(path, code, rule):
    around = {"__init__.py": "", "journal/__init__.py": "", "octo/__init__.py": "", "sandbox/__init__.py": ""}
    (message,) = broken_rules(around | {path: code})

    assert rule in message
    assert re.match(rf"src/octo_sync/{re.escape(path)}:\d+ (imports|is) .*\. .*\.$", message)


def test_the_line_named_is_the_line_of_the_import():
    (message,) = broken_rules({"octo/client.py": "import json\n\n\ndef f():\n    import octo_sync.journal\n"})

    assert message.startswith("src/octo_sync/octo/client.py:5 imports octo_sync.journal: ")


ALLOWED = [
    ("destinations/duckdb/warehouse.py", "import duckdb\nfrom octo_sync import __version__"),
    ("cli/sync.py", "from octo_sync.app import project\nfrom octo_sync.errors import ConfigError"),
    ("cli/sync.py", "def show():\n    from rich.table import Table"),
    ("cli/sandbox.py", "from octo_sync.sandbox import serve"),
    ("flows/demo/proof.py", "from octo_sync.sandbox import Service"),
    ("app/reconcile.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pandas as pd"),
    ("app/reconcile.py", "def frame():\n    import pandas as pd"),
    ("flows/sync/work.py", "from octo_sync import journal\nfrom octo_sync.pipeline import SyncSettings"),
    (
        "octo/client.py",
        "import httpx\nfrom octo_sync.model import Connection\nfrom octo_sync.octo.answer import Answer",
    ),
    ("sandbox/deliveries.py", "import httpx\nfrom octo_sync.sandbox.store import Store"),
]


@pytest.mark.parametrize(("path", "code"), ALLOWED)
def test_what_the_rules_allow_is_not_reported(path, code):
    assert broken_rules({"__init__.py": "", "journal/__init__.py": "", path: code}) == []


def lines_of_code(text: str) -> int:
    """Lines with code: no blank ones, no comments, no docstrings."""
    texts = {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    empty = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    code = {line for t in tokens if t.type not in empty for line in range(t.start[0], t.end[0] + 1)}
    return len(code - texts)


def test_a_module_longer_than_others_says_why():
    many = {path: text for path, text in _sources().items() if text.count("\n") > LONG}
    long = {path: text for path, text in many.items() if lines_of_code(text) > LONG}

    assert [
        path for path, text in long.items() if "Longer than " not in (ast.get_docstring(ast.parse(text)) or "")
    ] == []
    assert len(long) < 10, "a reason is for few"
