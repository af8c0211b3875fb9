"""The sandbox is a stranger: it imports nothing else of octo_sync, and httpx in one place only."""

import ast
import sys
from pathlib import Path

import octo_sync.sandbox

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
