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

from octo_sync.reconciliation.ledgers.distinct import Unreadable, each, shown

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


def of_texts(texts: Sequence[str], decimal: Literal["", ".", ","]) -> list[str]:
    """Amounts of trimmed texts, none blank. `decimal` is how they are written; "" finds out over all of them.

    Raises:
        Unreadable: One is no amount, two contradict each other, or nothing says what a comma or point means.
    """
    bodies = dict(zip(texts, each(texts, _body), strict=True))
    mark = decimal or _find_out(texts, list(bodies.values()))
    written = _COMMA if mark == "," else _POINT

    def amount(text: str) -> str:
        body, plain = bodies[text], text.translate(_KIN)
        if not written.fullmatch(body):
            raise ValueError(f'{{}} is not written as decimal = "{decimal}" says.')
        digits = re.sub(f"[^0-9{mark}]", "", body).replace(",", ".")
        return exact(f"-{digits}" if plain[0] in "-(" or plain[-1] == "-" else digits)

    return each(texts, amount)


def _body(text: str) -> str:
    """The amount without its sign."""
    plain = text.translate(_KIN)
    signed = _SIGNED.fullmatch(plain)
    body = next(part for part in signed.groups() if part is not None) if signed else plain
    if not _POINT.fullmatch(body) and not _COMMA.fullmatch(body):
        raise ValueError(_why(text))
    return body


def _find_out(texts: Sequence[str], bodies: Sequence[str]) -> str:
    point = next((at for at, body in enumerate(bodies) if not _COMMA.fullmatch(body)), None)
    comma = next((at for at, body in enumerate(bodies) if not _POINT.fullmatch(body)), None)
    if point is not None and comma is not None:
        raise Unreadable(
            (point, comma),
            f"{shown(texts[point])} has a decimal point and {shown(texts[comma])} a decimal comma; one column is written one "
            "way. Correct it where it comes from.",
        )
    open_one = next((at for at, body in enumerate(bodies) if re.search("[.,]", body)), None)
    if point is None and comma is None and open_one is not None:
        raise Unreadable(
            (open_one,),
            f"{shown(texts[open_one])} is thousands or decimals, and no other value of the column tells which; "
            'set decimal = "." or decimal = ",".',
        )
    return "," if comma is not None else "."


def _why(text: str) -> str:
    """What is wrong with a text that is no amount, in words."""
    if text.startswith(("=", "+=", "@")):
        return "{} is the text of a formula; export values instead of formulas."
    if _ERRORS.match(text):
        return f'"{text.upper()[:12]}" is an error of the spreadsheet it comes from; correct it there.'
    if text.strip("+-").casefold() in {"nan", "inf", "infinity", "null", "none", "n/a", "na"}:
        return f'"{text.casefold()}" is no amount; leave the cell empty where there is none.'
    if _ROUNDED.fullmatch(text):
        return "{} is a rounded number; export all digits."
    if any(char.isalpha() or unicodedata.category(char) == "Sc" for char in text):
        return (
            "{} is more than an amount. Two currencies may hide in a column like this: put the currency into a column of its "
            "own."
        )
    return "{} is no amount, such as 1234.56, 1,234.56 or 1.234,56."


def of_float(text: str) -> str:
    """The amount of a binary number, which comes as the shortest decimal that is the same number (12.1 is 12.1).

    What a sheet has added up carries binary noise (1234.5600000000002); where the shortest has more than 8 decimals, the 15
    digits that a spreadsheet shows (they are all that it keeps) are taken instead. `ValueError` for what is not finite.
    """
    number = Decimal(text)
    if not number.is_finite():
        raise ValueError("the number is not finite (NaN or infinite); leave the cell empty where there is none.")
    is_noisy = len(f"{number:f}".partition(".")[2]) > _DECIMALS
    return exact(f"{Decimal(f'{float(text):.15g}') if is_noisy else number:f}")


def exact(number: str) -> str:
    """An amount in digits, if there is room for it; else a `ValueError`."""
    whole, _, decimals = number.lstrip("-").partition(".")
    if len(whole.lstrip("0")) > _DIGITS or len(decimals.rstrip("0")) > _DECIMALS:
        raise ValueError(
            "{} has more than 8 decimals or more than 30 digits before them; round it where it comes from."
        )
    return number
