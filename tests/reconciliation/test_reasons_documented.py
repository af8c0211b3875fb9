"""Every reason has its place in the table of docs/reconciliation.md, and every code there is one."""

import ast
import re
from pathlib import Path

from octo_sync.reconciliation import alone, items, reasons

DOCS = Path(__file__).parents[2] / "docs" / "reconciliation.md"


def codes_of(module):
    """First parts of `"code", "A sentence."`, wherever that stands in a module."""
    for node in ast.walk(ast.parse(Path(module.__file__).read_text(encoding="utf-8"))):
        match node:
            case ast.Tuple(elts=[ast.Constant(value=str(code)), ast.JoinedStr() | ast.Constant(value=str())]):
                if re.fullmatch(r"[a-z_]+", code) and " " in ast.unparse(node.elts[1]):
                    yield code


def test_the_codes_of_the_docs_are_those_of_the_program():
    section = DOCS.read_text(encoding="utf-8").split("\n## Why\n")[1].split("\n## ")[0]
    rows = [line.split("|")[2] for line in section.splitlines() if line.startswith("| ")][1:]
    said = {code for row in rows for code in re.findall(r"`([a-z_]+)`", row)} - {"map", "here"}
    known = {rule.__name__ for rule in reasons._FIELD_RULES}
    known |= {code for module in (reasons, alone, items) for code in codes_of(module)}
    assert said == known
