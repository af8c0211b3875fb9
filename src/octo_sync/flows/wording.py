"""How counts, money, days, instants and ages are written for people, once for pages, reports and the terminal.

Unknown is never 0. An amount is exact: it has the decimals of its currency, and more where the value has more.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

UNKNOWN = "unknown"
NOTHING = "–"  # noqa: RUF001 - stands for nothing
_PLACES = -4
"""Exponent of the amounts in the tables, whatever a query calls them."""
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_AGES = (("days", timedelta(days=1)), ("h", timedelta(hours=1)), ("min", timedelta(minutes=1)))
# ISO 4217: the active currencies whose minor unit is not two digits.
_DECIMALS = {
    currency: digits
    for digits, currencies in {
        0: ("BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG", "RWF", "UGX", "UYI", "VND", "VUV", "XAF", "XOF",
            "XPF"),
        3: ("BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"),
        4: ("CLF", "UYW"),
    }.items()
    for currency in currencies
}  # fmt: skip


def count(number: int | None) -> str:
    """`1,234`, or `unknown`."""
    return UNKNOWN if number is None else f"{number:,}"


def plural(number: int, noun: str) -> str:
    """`1 row`, `2,140 rows`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def share(value: float | None) -> str:
    """A share of 1 in percent: `83 %`, `0.4 %`; never rounded to a 0 or a 100 that it is not."""
    if value is None:
        return UNKNOWN
    percent = value * 100
    whole = round(percent)
    if (whole == 0 and percent > 0) or (whole == 100 and percent < 100):  # noqa: PLR2004 - percent
        return f"{percent:.1f} %" if 0.1 <= percent <= 99.9 else "<0.1 %" if whole == 0 else ">99.9 %"  # noqa: PLR2004
    return f"{whole} %"


def exact(amount: Decimal, currency: str | None) -> str:
    """All digits, with at least the decimals of the currency: `1204.50`, `1200` for JPY, `0.0005`."""
    # abs() would round to what Python's decimal context keeps.
    whole, _, fraction = f"{amount.copy_abs():f}".partition(".")
    fraction = fraction.rstrip("0").ljust(_DECIMALS.get(currency or "", 2), "0")
    return f"{'-' if amount < 0 else ''}{whole}{'.' + fraction if fraction else ''}"


def rounded(amount: Decimal, currency: str | None) -> Decimal:
    """To the currency's decimals: for what was divided, never for what was charged."""
    return round(amount, _DECIMALS.get(currency or "", 2))


def money(amount: Decimal, currency: str | None, *, sign: bool = False) -> str:
    """The same for people, with thousands set apart: `1,204.50`; with `sign` `+12.00`."""
    whole, dot, fraction = exact(amount.copy_abs(), currency).partition(".")
    before = "-" if amount < 0 else "+" if sign and amount > 0 else ""
    return f"{before}{int(whole):,}{dot}{fraction}"


def money_text(amount: Decimal | None, currency: str | None, *, sign: bool = False) -> str:
    """With its currency, where it has one: `1,204.50 EUR`; '' for no amount."""
    return "" if amount is None else f"{money(amount, currency, sign=sign)} {currency or ''}".rstrip()


class Number(str):
    """A number as people read it; in a table it stands to the right as numbers do."""

    __slots__ = ()


def decimals(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> list[list[object]]:
    """Rows of a query with their decimals as people read them; all else as it is.

    Beside a column `currency` amounts have its decimals, more where they have more. Elsewhere a column has those that the most
    exact of its values needs; where its type has none, it counts, and stays as it is.
    """
    place = list(columns).index("currency") if "currency" in columns else None
    named = ["amount" in column and not column.endswith("_minor") for column in columns]
    needed = [_needed(column) for column in zip(*rows, strict=True)]

    def shown(row: Sequence[object], at: int) -> object:
        value, currency, digits = row[at], None if place is None else row[place], needed[at]
        if not isinstance(value, Decimal) or not value.is_finite():
            return value
        if place is None:
            return value if digits is None else Number(f"{value:,.{digits}f}")
        is_amount = named[at] or value.as_tuple().exponent == _PLACES
        return Number(money(value, currency)) if is_amount and currency and isinstance(currency, str) else value

    return [[shown(row, at) for at in range(len(row))] for row in rows]


def _needed(column: Sequence[object]) -> int | None:
    """Decimals of the most exact value of a column; None where no value has any, nor zeros in their place."""
    fractions = [f"{v:f}".partition(".")[2] for v in column if isinstance(v, Decimal) and v.is_finite()]
    return max(len(each.rstrip("0")) for each in fractions) if any(fractions) else None


def currency_name(currency: str | None) -> str:
    """The currency's code; rows without one are named so."""
    return currency or "no currency"


def day(at: date) -> str:
    """`Fri 20 Nov 2026`."""
    return f"{short_day(at)} {at.year}"


def short_day(at: date) -> str:
    """`Fri 20 Nov`."""
    return f"{_DAYS[at.weekday()]} {at.day} {_MONTHS[at.month - 1]}"


def month(at: date) -> str:
    """`Nov 2026`."""
    return f"{_MONTHS[at.month - 1]} {at.year:04}"


def instant(at: datetime, *, seconds: bool = False, timed: bool = False) -> str:
    """`2026-11-20 19:59 UTC`; with `seconds` to the second, where it has any.

    A wall clock time has no zone; at midnight it is the whole day, `2026-11-20`, unless it is known to be `timed`.
    """
    if not timed and at.tzinfo is None and at.time() == at.min.time():
        return str(at.date())
    moment = at.astimezone(UTC) if at.tzinfo else at
    text = f"{moment:%Y-%m-%d %H:%M:%S}".removesuffix(":00") if seconds else f"{moment:%Y-%m-%d %H:%M}"
    return f"{text} UTC" if at.tzinfo else text


def are_timed(values: Iterable[object]) -> bool:
    """Whether wall clock times that belong together, as those of a column, are more than days: one is not at midnight."""
    return any(isinstance(at, datetime) and at.tzinfo is None and at.time() != at.min.time() for at in values)


def age(passed: timedelta) -> str:
    """`40 s`, `3 min`, `26 h`, `12 days`; what lies ahead is `0 s`."""
    for unit, size in _AGES:
        if passed >= size * 2:
            return f"{passed // size} {unit}"
    return f"{max(0, int(passed.total_seconds()))} s"


def days_old(days: int) -> str:
    """`today`, `1 day`, `40 days`."""
    return "today" if days <= 0 else plural(days, "day")


def plain(value: object) -> str:
    """A text without what a page cannot hold: control characters and half characters."""
    text = str(value)
    return text if text.isprintable() else "".join("\N{REPLACEMENT CHARACTER}" if _is_control(c) else c for c in text)


def _is_control(character: str) -> bool:
    if character.isascii():
        return not character.isprintable() and character not in "\n\t"
    return "\ud800" <= character <= "\udfff"


def unique(names: Sequence[str]) -> list[str]:
    """A second `a` is `a_2`."""
    found: list[str] = []
    for name in names:
        unique, number = name, 1
        while unique in found:
            number += 1
            unique = f"{name}_{number}"
        found.append(unique)
    return found
