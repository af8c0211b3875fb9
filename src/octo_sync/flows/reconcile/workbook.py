"""A reconciliation as a workbook: a summary, control totals, and a sheet for each bucket that has items.

Nothing of the data becomes a formula or a link. Texts, ids among them, are text cells; what Excel's numbers (15 digits) and
dates (from 1900) cannot hold is a text too, never another value. Instants are in UTC, as the heads say.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from octo_sync.flows.export.files import writing
from octo_sync.flows.export.workbook import DIGITS, Sheet, opened
from octo_sync.flows.reconcile import words
from octo_sync.flows.wording import currency_name, exact
from octo_sync.reconciliation.model import Outcome

_FIRST = 1901
"""Excel counts the days of 1900 wrongly."""
_NAMES = {
    "first_seen": "first seen (UTC)",
    "place_there": "place there",
    "age_days": "age days",
    "travel_date": "travel date",
}
_READ: Mapping[str, Callable[[str], Any]] = {
    "amount": Decimal,
    "whole": int,
    "date": date.fromisoformat,
    "instant": datetime.fromisoformat,
}
_OF_BUCKET = tuple(name for name in words.COLUMNS if name != "bucket")


def write_xlsx(outcome: Outcome, path: Path) -> None:
    """One row a difference, and one for each item that has none. An older file of the name is overwritten.

    Raises:
        ConfigError: XlsxWriter is not installed, or the path cannot be written.
        ExportError: There are more rows, or a longer text, than a sheet can hold.
    """
    with writing(path, force=True) as fresh, opened(fresh) as book:
        _summary(book, outcome)
        _controls(book, outcome)
        for bucket in words.BUCKETS:
            items = [item for item in outcome.items if item.bucket is bucket]
            if items:
                heads = [_NAMES.get(name, name) for name in _OF_BUCKET]
                sheet = _Sheet(book, bucket.value, heads, keep=1)
                for item, difference in words.pairs(items):
                    sheet.row(_typed(outcome, words.cells(outcome, item, difference)))
                sheet.finish()


def _summary(book: Any, outcome: Outcome) -> None:  # noqa: ANN401 - the library's
    rules, open_ones = outcome.rules, words.open_pairs(outcome)
    sheet = _Sheet(book, "Summary", ("Reconciliation", rules.name))
    lines: list[tuple[Any, ...]] = [
        ("Compared at (UTC)", rules.now),
        ("From", rules.window.start),
        ("To", rules.window.end),
        ("Verdict", words.verdict(outcome)),
    ]
    for name, side in (("Here", outcome.here), ("There", outcome.there)):
        lines += [
            (f"{name}: {fact}{' (UTC)' * isinstance(known, datetime)}", known)
            for fact, known in words.facts(side).items()
        ]
    lines += [
        ("Differences", outcome.differences),
        ("New differences", outcome.new),
        ("Oldest difference (days)", max((words.age_days(d, rules) or 0 for _, d in open_ones), default=0)),
        ("No longer found", outcome.resolved),
        (),
        ("Bucket", "Count", "Of", "What it means"),
        *(
            (
                bucket.value,
                outcome.counts.get(bucket, 0),
                "differences" if bucket.has_differences else "bookings",
                meaning,
            )
            for bucket, (_, meaning) in words.BUCKETS.items()
        ),
    ]
    for line in lines:
        sheet.row(line, bold=line[:1] == ("Bucket",))
    sheet.finish(filters=False)


def _controls(book: Any, outcome: Outcome) -> None:  # noqa: ANN401 - the library's
    heads = ("currency", "field", "of", "rows here", "rows there", "here", "there", "difference")
    sheet = _Sheet(book, "Control totals", heads)
    for c in words.controls(outcome):
        name = (currency_name(c.currency), c.field)
        for sums in (c, *c.parts):
            amounts = [_Amount(amount, c.currency) for amount in (sums.amount_here, sums.amount_there, sums.difference)]
            sheet.row((*name, sums.bucket or "total", sums.rows_here, sums.rows_there, *amounts), bold=sums is c)
        sheet.row((*name, "unexplained", None, None, None, None, _Amount(c.unexplained, c.currency)))
    sheet.finish()


class _Amount:
    """An amount of one currency, which decides how many decimals are shown."""

    def __init__(self, value: Decimal, currency: str | None) -> None:
        self.value, self.text = value, exact(value, currency)

    @property
    def form(self) -> str:
        """How Excel shows it: all its decimals, never fewer than the currency has."""
        decimals = len(self.text.partition(".")[2])
        return "#,##0" + ("." + "0" * decimals if decimals else "")


def _typed(outcome: Outcome, found: dict[str, Any]) -> list[Any]:
    """The cells of one difference: what a compared value is, its field says."""
    currency = found["currency"]
    field = found["field"]
    kind = outcome.kinds.get(field, "text") if field else "amount"
    for name in ("here", "there"):
        found[name] = _value(kind, found[name], currency)
    if found["difference"] is not None:
        found["difference"] = _Amount(found["difference"], currency)
    return [found[name] for name in _OF_BUCKET]


def _value(kind: str, text: str | None, currency: str | None) -> Any:  # noqa: ANN401 - what a cell can be
    if text is None or kind not in _READ:
        return text
    try:
        return _Amount(Decimal(text), currency) if kind == "amount" else _READ[kind](text)
    except (ValueError, InvalidOperation):
        return text


class _Sheet(Sheet):
    """A sheet whose values say themselves what they are."""

    def row(self, values: Sequence[Any], *, bold: bool = False) -> None:
        """One row; None leaves its cell empty."""
        self.room(1)
        for column, value in enumerate(values):
            if value is not None and value != "":
                self._put(column, value, bold=bold)
        self.next += 1

    def _put(self, column: int, value: Any, *, bold: bool) -> None:  # noqa: ANN401 - what a cell can be
        where, text = (self.next, column), str(value)
        if isinstance(value, _Amount):
            text = value.text
            if len(text.replace(".", "").lstrip("-0")) <= DIGITS:
                self.sheet.write_number(*where, float(value.value), self.form(value.form, bold=bold))
            else:
                self.text(column, text, bold=bold)
        elif isinstance(value, bool):
            self.sheet.write_boolean(*where, value)
        elif isinstance(value, int) and abs(value) < 10**DIGITS:
            self.sheet.write_number(*where, value, self.form("0", bold=bold))
        elif isinstance(value, date) and value.year >= _FIRST:
            if isinstance(value, datetime):
                text = f"{value:%Y-%m-%d %H:%M:%S}"
                naive = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
                self.sheet.write_datetime(*where, naive, self.form("yyyy-mm-dd hh:mm:ss", bold=bold))
            else:
                self.sheet.write_datetime(*where, value, self.form("yyyy-mm-dd", bold=bold))
        else:
            self.text(column, text, bold=bold)
        self.widths[column] = max(self.widths.get(column, 0), len(text))
