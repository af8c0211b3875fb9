"""Every reason has its place in the table of docs/reconciliation.md, and every code there is one."""

import ast
import re
from decimal import Decimal
from pathlib import Path

import pytest

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
    known = {code for module in (reasons, alone, items) for code in codes_of(module)}
    assert said == known


@pytest.mark.parametrize(
    ("here", "there", "currency", "precision", "sentence"),
    [
        ("100.00000000", "131.00000000", "EUR", 2, "The ledger has 31.00 EUR more."),
        ("2000.00000000", "499.50000000", "EUR", 2, "The ledger has 1,500.50 EUR less."),
        ("5000", "9000", "JPY", 0, "The ledger has 4,000 JPY more."),
        ("1.5", "2.75", "BHD", 3, "The ledger has 1.250 BHD more."),
        ("1", "2.00125", "EUR", 2, "The ledger has 1.00125 EUR more."),
        ("100", "131", None, None, "The ledger has 31 more."),
    ],
)
def test_an_amount_in_a_reason_has_its_currency_and_decimals(here, there, currency, precision, sentence):
    pair = reasons.PairCase(here={"currency_precision": precision}, there={})
    case = reasons.FieldCase(
        pair=pair, field="retail_amount", kind="amount", h=Decimal(here), t=Decimal(there), currency=currency
    )
    assert reasons.because(case) == ("other_amount", sentence)
