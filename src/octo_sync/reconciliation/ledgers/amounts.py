"""Amounts as people and programs write them, to exact decimals: each as digits with a point.

Both ways of writing are tried on every distinct value: with a decimal point (`1,234.56`, `1 234.56`, `1'234.56`) and with a
decimal comma (`1.234,56`, `1 234,56`). A value that only one of them can read decides for the whole column; `1,234` alone
decides nothing, and guessing would be wrong by a factor of a thousand.
"""

import re
import unicodedata
from collections.abc import Sequence
from decimal import Decimal
from typing import Literal

import pyarrow as pa  # type: ignore[import-untyped] # it ships no types

from octo_sync.reconciliation.ledgers.unreadable import Unreadable, shown

AMOUNT = pa.decimal128(38, 8)
_DIGITS, _DECIMALS = 30, 8
_KIN = str.maketrans(dict.fromkeys("\u00a0\u2007\u2009\u202f", " ") | {"\u2212": "-", "\u2019": "'", "\u02bc": "'"})
"""Kin of ASCII's space, minus and apostrophe."""
_SIGNED = re.compile(r"\(\s?(.*?)\s?\)|[-+]\s?(.*)|(.*?)\s?-")
_ERRORS = re.compile("#(?:REF|N/A|VALUE|DIV/0|NAME|NUM|NULL|SPILL|CALC|FIELD|GETTING_DATA)", re.IGNORECASE)
_ROUNDED = re.compile(r"[-+]?\d+(?:[.,]\d+)?[eE][-+]?\d+", re.ASCII)


def _written(point: str, comma: str) -> re.Pattern[str]:
    """Amounts with `point` before the decimals and `comma`, a space or ' between thousands."""
    groups = "|".join(rf"[1-9]\d{{0,2}}(?:{mark}\d{{3}})+" for mark in (comma, " ", "'"))
    return re.compile(rf"(?:\d+|{groups})(?:{point}\d+)?|{point}\d+", re.ASCII)


_POINT, _COMMA = _written(r"\.", ","), _written(",", r"\.")


def mark(texts: Sequence[str], decimal: Literal["", ".", ","]) -> str:
    """What stands before the decimals of trimmed texts, none blank: as `decimal` says; "" finds out over all of them.

    Raises:
        Unreadable: One is no amount, two contradict each other, or nothing says what a comma or point means.
    """
    bodies = {text: _body(text) for text in texts}
    point = next((text for text, body in bodies.items() if not _COMMA.fullmatch(body)), None)
    comma = next((text for text, body in bodies.items() if not _POINT.fullmatch(body)), None)
    wrong = comma if decimal == "." else point
    if decimal:
        if wrong is not None:
            raise Unreadable((wrong,), f'{shown(wrong)} is not written as decimal = "{decimal}" says.')
        return decimal
    if point is not None and comma is not None:
        raise Unreadable(
            (point, comma),
            f"{shown(point)} has a decimal point and {shown(comma)} a decimal comma; one column is written one way. Correct it "
            "where it comes from.",
        )
    unclear = next((text for text, body in bodies.items() if re.search("[.,]", body)), None)
    if point is None and comma is None and unclear is not None:
        raise Unreadable(
            (unclear,),
            f"{shown(unclear)} is thousands or decimals, and no other value of the column tells which; "
            'set decimal = "." or decimal = ",".',
        )
    return "," if comma is not None else "."


def of_text(text: str, mark: str) -> str:
    """The amount of one of the texts that `mark` was found for; `ValueError` where it has no room."""
    plain = text.translate(_KIN)
    digits = re.sub(f"[^0-9{mark}]", "", _body(text)).replace(",", ".")
    return _exact(f"-{digits}" if plain[0] in "-(" or plain[-1] == "-" else digits)


def _body(text: str) -> str:
    """The amount without its sign."""
    plain = text.translate(_KIN)
    signed = _SIGNED.fullmatch(plain)
    body = next(part for part in signed.groups() if part is not None) if signed else plain
    if not _POINT.fullmatch(body) and not _COMMA.fullmatch(body):
        raise Unreadable((text,), _why(text))
    return body


def _why(text: str) -> str:
    """What is wrong with a text that is no amount, in words."""
    if text.startswith(("=", "+=", "@")):
        return f"{shown(text)} is the text of a formula; export values instead of formulas."
    if _ERRORS.match(text):
        return f'"{text.upper()[:12]}" is an error of the spreadsheet it comes from; correct it there.'
    if text.strip("+-").casefold() in {"nan", "inf", "infinity", "null", "none", "n/a", "na"}:
        return f'"{text.casefold()}" is no amount; leave the cell empty where there is none.'
    if _ROUNDED.fullmatch(text):
        return f"{shown(text)} is a rounded number; export all digits."
    if any(char.isalpha() or unicodedata.category(char) == "Sc" for char in text):
        return (
            f"{shown(text)} is more than an amount. Two currencies may hide in a column like this: put the currency into a "
            "column of its own."
        )
    return f"{shown(text)} is no amount, such as 1234.56, 1,234.56 or 1.234,56."


def of_number(number: float | Decimal) -> str:
    """The amount of a number; of a binary one the shortest decimal that is the same (12.1 is 12.1).

    What a sheet has added up carries binary noise (1234.5600000000002); where the shortest has more than 8 decimals, the 15
    digits that a spreadsheet shows (they are all that it keeps) are taken instead. `ValueError` for what is not finite or
    has no room.
    """
    exact = Decimal(repr(number)) if isinstance(number, float) else Decimal(number)
    if not exact.is_finite():
        raise ValueError("the number is not finite (NaN or infinite); leave the cell empty where there is none.")
    if isinstance(number, float) and len(f"{exact:f}".partition(".")[2]) > _DECIMALS:
        exact = Decimal(f"{number:.15g}")
    return _exact(f"{exact:f}")


def _exact(number: str) -> str:
    """An amount in digits, if there is room for it; else a `ValueError`."""
    whole, _, decimals = number.lstrip("-").partition(".")
    if len(whole.lstrip("0")) > _DIGITS or len(decimals.rstrip("0")) > _DECIMALS:
        raise ValueError(
            "{} has more than 8 decimals or more than 30 digits before them; round it where it comes from."
        )
    return number
