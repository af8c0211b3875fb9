"""Amounts as people and programs write them, to exact decimals.

Both ways of writing are tried on every distinct value: with a decimal point (`1,234.56`, `1 234.56`, `1'234.56`) and with a
decimal comma (`1.234,56`, `1 234,56`). A value that only one of them can read decides for the whole column; `1,234` alone
decides nothing, and guessing would be wrong by a factor of a thousand.
"""

from collections.abc import Callable
from decimal import Decimal
from typing import Literal

import pyarrow as pa  # type: ignore[import-untyped] # it ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]

from octo_sync.reconciliation.ledgers.distinct import Unreadable, converted, first, refuse, shown

AMOUNT = pa.decimal128(38, 8)
_SPACES = "[\u00a0\u2007\u2009\u202f]"
_SIGNED = r"^(?:\(\s?(.*?)\s?\)|[-+]\s?(.*)|(.*?)\s?-)$"
_TOO_LONG = "{} has more than 8 decimals or more than 30 digits before them; round it where it comes from."
_ERRORS = "^#(?:REF|N/A|VALUE|DIV/0|NAME|NUM|NULL|SPILL|CALC|FIELD|GETTING_DATA)"


def _written(point: str, comma: str) -> str:
    """A regular expression of amounts with `point` before the decimals and `comma`, a space or ' between thousands."""
    groups = "|".join(rf"[1-9]\d{{0,2}}(?:{mark}\d{{3}})+" for mark in (comma, " ", "'"))
    return rf"^(?:(?:\d+|{groups})(?:{point}\d+)?|{point}\d+)$"


_POINT, _COMMA = _written(r"\.", ","), _written(",", r"\.")


def of_texts(texts: pa.Array, decimal: Literal["", ".", ","]) -> pa.Array:
    """Amounts of trimmed texts, none blank. `decimal` is how they are written; "" finds out over all of them.

    Raises:
        Unreadable: One is no amount, two contradict each other, or nothing says what a comma or point means.
    """
    plain = _plain(texts)
    signed = pc.match_substring_regex(plain, "^[-+(]|-$")
    body = _changed(plain, signed, lambda some: pc.replace_substring_regex(some, _SIGNED, r"\1\2\3"))
    by_point, by_comma = pc.match_substring_regex(body, _POINT), pc.match_substring_regex(body, _COMMA)
    bad = first(pc.invert(pc.or_(by_point, by_comma)))
    if bad is not None:
        raise Unreadable((bad,), _why(texts[bad].as_py()))
    mark = decimal or _find_out(texts, body, by_point, by_comma)
    refuse(
        pc.invert(by_comma if mark == "," else by_point), texts, f'{{}} is not written as decimal = "{decimal}" says.'
    )
    grouped = pc.match_substring_regex(body, "[. ']" if mark == "," else "[, ']")
    digits = _changed(body, grouped, lambda some: pc.replace_substring_regex(some, f"[^0-9{mark}]", ""))
    digits = pc.replace_substring(digits, ",", ".") if mark == "," else digits
    amounts = converted(digits, AMOUNT, _TOO_LONG, written=texts)
    return _changed(amounts, pc.match_substring_regex(plain, "^[-(]|-$"), pc.negate)


def _plain(texts: pa.Array) -> pa.Array:
    """With the space, the minus and the apostrophe of ASCII instead of their kin."""
    if pc.all(pc.string_is_ascii(texts)).as_py():
        return texts
    texts = pc.replace_substring(pc.replace_substring_regex(texts, _SPACES, " "), "\u2212", "-")
    return pc.replace_substring_regex(texts, "[\u2019\u02bc]", "'")


def _changed(values: pa.Array, where: pa.Array, change: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """`change` costs a lot and concerns few."""
    if not pc.any(where).as_py():
        return values
    return pc.replace_with_mask(values, where, change(values.filter(where)))


def _find_out(texts: pa.Array, body: pa.Array, by_point: pa.Array, by_comma: pa.Array) -> str:
    point, comma = first(pc.invert(by_comma)), first(pc.invert(by_point))
    if point is not None and comma is not None:
        raise Unreadable(
            (point, comma),
            f"{shown(texts[point].as_py())} has a decimal point and {shown(texts[comma].as_py())} a decimal comma; one column "
            "is written one way. Correct it where it comes from.",
        )
    if point is None and comma is None:
        refuse(
            pc.match_substring_regex(body, "[.,]"),
            texts,
            "{} is thousands or decimals, and no other value of the column tells which; "
            'set decimal = "." or decimal = ",".',
        )
    return "," if comma is not None else "."


def _why(text: str) -> str:
    """What is wrong with a text that is no amount, in words."""
    one = pa.array([text])
    if text.startswith(("=", "+=", "@")):
        return f"{shown(text)} is the text of a formula; export values instead of formulas."
    if pc.match_substring_regex(one, _ERRORS, ignore_case=True)[0].as_py():
        return f'"{text.upper()[:12]}" is an error of the spreadsheet it comes from; correct it there.'
    if text.strip("+-").casefold() in {"nan", "inf", "infinity", "null", "none", "n/a", "na"}:
        return f'"{text.casefold()}" is no amount; leave the cell empty where there is none.'
    if pc.match_substring_regex(one, r"^[-+]?\d+(?:[.,]\d+)?[eE][-+]?\d+$")[0].as_py():
        return f"{shown(text)} is a rounded number; export all digits."
    if pc.match_substring_regex(one, r"\d.*[\p{L}\p{Sc}]|[\p{L}\p{Sc}].*\d")[0].as_py():
        return (
            f"{shown(text)} is more than an amount. Two currencies may hide in a column like this: put the currency into a "
            "column of its own."
        )
    return f"{shown(text)} is no amount, such as 1234.56, 1,234.56 or 1.234,56."


def of_floats(floats: pa.Array) -> pa.Array:
    """Amounts of binary numbers: the shortest decimal that is the same number (12.1 is 12.1).

    What a sheet has added up carries binary noise (1234.5600000000002); where the shortest has more than 8 decimals, the 15
    digits that a spreadsheet shows are taken instead.

    Raises:
        Unreadable: One is not finite, or has more decimals than that.
    """
    refuse(
        pc.invert(pc.is_finite(floats)),
        floats,
        "the number is not finite (NaN or infinite); leave the cell empty where there is none.",
    )
    texts = pc.cast(floats, pa.string())
    noisy = pc.match_substring_regex(texts, r"\.\d{9}|e-")
    if pc.any(noisy).as_py():
        rounded = [f"{Decimal(f'{number:.15g}'):f}" for number in floats.filter(noisy).to_pylist()]
        texts = pc.replace_with_mask(texts, noisy, pa.array(rounded, pa.string()))
    return converted(texts, AMOUNT, _TOO_LONG)


def of_decimals(numbers: pa.Array) -> pa.Array:
    """Amounts of exact numbers, decimal or whole; `Unreadable` for one that does not fit."""
    return converted(numbers, AMOUNT, _TOO_LONG)
