"""The keys of `[reconcile.NAME]`: what a comparison with another system compares, and how."""

import re
from collections.abc import Mapping
from dataclasses import field
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from octo_sync.model import Horizon
from octo_sync.pipeline import values
from octo_sync.pipeline.vocabulary import Count, Days, Says, Seconds, Sql, Switch, Text, Type, Zone, table

MEASURES = (
    "mismatched", "missing_here", "missing_there", "duplicate_here", "duplicate_there", "ambiguous",
    "too_fresh", "out_of_window", "accepted", "matched_within_tolerance", "differences", "new",
)  # fmt: skip
"""What `fail_on` may count, beside `abs_amount_` and a currency."""

_WINDOW = Horizon(-35, 0)
_COLUMN = r"[^=+\s](?:[^=+]*[^=+\s])?"
_KEY = re.compile(rf"\s*{_COLUMN}(?:\s*\+\s*{_COLUMN})*\s*(?:=\s*{_COLUMN}(?:\s*\+\s*{_COLUMN})*\s*)?")
_LIMIT = re.compile(r"\s*([a-z_]+)\s*>\s*(\d{1,15}(?:\.\d{1,8})?)\s*", re.ASCII)
_AMOUNT = re.compile(r"abs_amount_[a-z]{3}", re.ASCII)


def _key(value: object) -> str:
    text = values.plain_text(value)
    here, _, there = text.partition("=")
    if not _KEY.fullmatch(text) or (there and here.count("+") != there.count("+")):
        raise ValueError('expected a column here and one there, such as "booking_uuid=octo_uuid", or "a+b=c+d"')
    return text


def _limits(value: object) -> str:
    text = values.plain_text(value)
    for part in filter(None, map(str.strip, text.split(","))):
        match = _LIMIT.fullmatch(part)
        if match is None or (match[1] not in MEASURES and not _AMOUNT.fullmatch(match[1])):
            hint = values.suggest(part.partition(">")[0].strip(), MEASURES)
            raise ValueError(
                f'expected a list such as "mismatched>0, missing_here>5, abs_amount_eur>100"{hint or ""}; '
                f"what can be counted: {', '.join(MEASURES)}, abs_amount_ and a currency"
            )
    return text


def _pattern(value: object) -> str:
    text = values.plain_text(value)
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"expected a regular expression such as 'BK-?'; {error}") from None
    return text


def _meanings(value: object) -> tuple[str, ...]:
    listed = value if isinstance(value, list | tuple) else [value]
    if not listed or not all(isinstance(item, str) for item in listed):
        raise ValueError('expected the values here that it stands for, such as ["CONFIRMED", "REDEEMED"]')
    return tuple(str(item) for item in listed)


def _ending(*endings: str) -> BeforeValidator:
    def read(value: object) -> str:
        text = values.plain_text(value)
        if not text.lower().endswith(endings):
            raise ValueError(f"expected a file whose name ends in {', '.join(endings[:-1])} or {endings[-1]}")
        return text

    return BeforeValidator(read)


def _tolerance(value: object) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e12:  # noqa: PLR2004 - inf, nan
        raise ValueError("expected an amount of 0 or more, such as 0.01")
    return Decimal(str(value))


@table
class FormatTable:
    """How the other side writes, where that is not found out."""

    delimiter: Text = ""
    encoding: Text = ""
    decimal: Literal["", ".", ","] = ""
    dates: Literal["", "iso", "dmy", "mdy", "serial"] = ""
    time_zone: Zone = "UTC"
    sheet: Text = ""
    header_row: Annotated[Count, Field(ge=1, le=1000)] = 1
    skip_footer: Annotated[Count, Field(ge=0, le=1000)] = 0
    strip: Annotated[str, BeforeValidator(_pattern)] = ""
    where: Sql = ""


@table
class ThereTable:
    """The other side: one of `file`, `dsn` with `sql`, or `connection`."""

    file: Annotated[
        str,
        _ending(".csv", ".xlsx", ".parquet"),
        Type("text"),
        Says("Files that end in .csv, .xlsx or .parquet, relative to the project; `*` stands for anything."),
    ] = ""
    dsn: Annotated[
        Text,
        Says("A database: `postgresql://…`, or `sqlite:///file` relative to the project; `${NAME}` for the password."),
    ] = ""
    sql: Annotated[Sql, Says("The query there; may use `:from` and `:to`.")] = ""
    connection: Annotated[Text, Says("Another connection of the pipeline.")] = ""
    format: Annotated[
        FormatTable,
        Type("{ delimiter, encoding, decimal, dates, time_zone, sheet, header_row, skip_footer, strip, where }"),
        Says(
            "What is not detected: `encoding` such as cp1252; `decimal` . or ,; `dates` iso, dmy, mdy or serial; "
            "`time_zone` of times without an offset; `sheet` and `header_row` of a workbook; `skip_footer`, how many rows at "
            "the end are no bookings; `strip`, a regular expression for a prefix of keys; `where`, SQL over a file's columns."
        ),
    ] = FormatTable()

    @property
    def kinds(self) -> tuple[str, ...]:
        """Which of the kinds of source are given; it has to be one."""
        return tuple(name for name in ("file", "dsn", "connection") if getattr(self, name))


@table
class ReconcileTable:
    """One comparison with another system."""

    here: Annotated[
        Sql,
        Says(
            "The query here; `:from` and `:to` are the window's days, both included.",
            default="what was sold and travels in the window",
        ),
    ] = ""
    there: Annotated[ThereTable, Says("The other side.")]
    keys: Annotated[
        tuple[Annotated[str, BeforeValidator(_key)], ...],
        Field(min_length=1, max_length=9),
        Type('list of "here=there"'),
        Says("Columns that identify a booking, the surest first; `a+b=c+d` joins columns."),
    ]
    fields: Annotated[
        Mapping[str, Text], Type("table: column here = column there"), Says("Columns that are compared.")
    ] = field(default_factory=dict)
    map: Annotated[
        Mapping[str, Mapping[str, Annotated[tuple[str, ...], BeforeValidator(_meanings)]]],
        Type("table: column here = { value there = value or values here }"),
        Says("What values there mean here."),
    ] = field(default_factory=dict)
    tolerance: Annotated[
        Mapping[str, Annotated[Decimal, BeforeValidator(_tolerance)]],
        Type("table: currency = amount"),
        Says(
            "Greatest difference of amounts; `default` for other currencies, `relative` as a share; the larger "
            "one counts."
        ),
    ] = field(default_factory=dict)
    window: Annotated[Days, Says("Days compared, counted from today.")] = _WINDOW
    date: Annotated[Text, Says("The window's column: `travel_date`, `booking_date` or one of `here`.")] = "travel_date"
    grace: Annotated[
        Seconds,
        Says(
            "A change this short before the other side was made, or since, is `too_fresh`, unless that side is a day old."
        ),
    ] = 7200.0
    changed: Annotated[Text, Says("The column there with a row's last change.")] = ""
    fail_on: Annotated[
        str,
        BeforeValidator(_limits),
        Type("list of limits"),
        Says("Limits for exit code 3, such as `mismatched>0, abs_amount_eur>100`."),
    ] = "differences>0"
    write: Annotated[
        tuple[Annotated[str, _ending(".html", ".xlsx", ".csv")], ...],
        Type("list of files"),
        Says("Reports that every run writes: .html, .xlsx, .csv."),
    ] = ()
    after_sync: Annotated[Switch, Says("`serve` runs it after every complete, published pull of all bookings.")] = True
    notify: Annotated[
        Text, Says("Who is told of new differences: a command, an address or mailto:, as for `notify`.")
    ] = ""

    @property
    def query(self) -> str:
        """`here`, or what is compared without it: what was sold, but not by the connection that is the other side."""
        # A connection's name has neither quotes nor colons, and has to be one of the pipeline's.
        other = f" and connection_id <> '{self.there.connection}'" if self.there.connection else ""
        sold = f"select * from marts.fct_bookings where was_sold and {self.day} between :from and :to{other}"  # noqa: S608 - see above
        return self.here or sold

    @property
    def day(self) -> str:
        """Which day of a booking of `marts.fct_bookings` is in the window, in SQL; of open-dated ones when they were made."""
        return "booking_date" if self.date == "booking_date" else "coalesce(travel_date, booking_date)"

    def limits(self) -> list[tuple[str, Decimal]]:
        """`fail_on` as measures and what they may be at most."""
        parts = [part.partition(">") for part in self.fail_on.split(",") if part.strip()]
        return [(measure.strip(), Decimal(above.strip())) for measure, _, above in parts]

    def key_columns(self) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
        """`keys` as columns here and there."""
        sides = [text.partition("=") for text in self.keys]
        return [(_columns(here), _columns(there or here)) for here, _, there in sides]


def _columns(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split("+"))
