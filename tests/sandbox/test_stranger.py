"""The sandbox is a stranger: it imports nothing else of octo_sync, and httpx in one place only."""

import ast
import sys
from pathlib import Path

import octo_sync.sandbox
from octo_sync.sandbox.config import DEFAULT_TOKENS

FOLDER = Path(octo_sync.sandbox.__file__).parent
ALLOWED = {"octo_sync.sandbox", "starlette", "uvicorn", "msgspec"}


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module


def test_imports():
    for path in FOLDER.glob("*.py"):
        for name in imports(path):
            root = name.split(".")[0]
            fine = root in sys.stdlib_module_names or root in ALLOWED or name.startswith("octo_sync.sandbox")
            assert fine or (root == "httpx" and path.name == "deliveries.py"), f"{path.name} imports {name}"


def test_the_readme_names_every_switch_and_token(box):
    text = (FOLDER / "README.md").read_text()
    found = box.control("GET", "")
    names = [one["fault"] for one in found["faults"]] + [one["quirk"] for one in found["quirks"]]
    names += [one["path"] for one in found["routes"]] + [one.secret for one in DEFAULT_TOKENS]
    assert [name for name in names if f"`{name}`" not in text] == []
