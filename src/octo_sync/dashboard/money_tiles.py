"""Tiles of amounts by month: what the months shown come to, beside as many months before, and a line of the last ones."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

from octo_sync.dashboard import pictures
from octo_sync.dashboard.days import month_end, month_start, months
from octo_sync.dashboard.links import bookings_page, columns_of
from octo_sync.dashboard.source import Source
from octo_sync.dashboard.standing import known_from, known_to
from octo_sync.dashboard.view import Tile
from octo_sync.flows import wording

_Rows = Sequence[Mapping[str, Any]]
_Amounts = Mapping[date, Decimal | None]
_COURSE = 12
"""Months of a tile's line."""


def largest_currency(rows: _Rows) -> str | None:
    """The one with the most bookings."""
    return next(iter(pictures.largest_currencies([row for row in rows if row["currency"]])[0]), None)


def by_month(
    rows: _Rows, month: str, amount: str, is_known: Callable[[Mapping[str, Any]], bool], across: Sequence[date]
) -> _Amounts:
    """An amount of these months, all rows of a month together; None where one of them is not known."""
    found: dict[date, Decimal | None] = dict.fromkeys(across, Decimal(0))
    for row in rows:
        if (before := found.get(row[month])) is not None:
            found[row[month]] = before + (row[amount] or 0) if is_known(row) else None
    return found


def finance(source: Source, first: date, last: date, today: date, only: Mapping[str, Any]) -> list[Tile]:
    """Net payable, refunds due and what is deferred, in the currency of most bookings; months to come have no tile."""
    begins = min(month_start(last, 1 - _COURSE), month_start(first, -len(months(first, last))))
    asked = {"first": begins, "last": last, **only}
    net = source.rows("finance_net", **asked)
    refunds = [{**row, "month": row["cancelled_month"]} for row in source.rows("finance_refunds", **asked)]
    deferred = [{**row, "month": month_start(row["month_end"])} for row in source.rows("finance_deferred", **asked)]
    shown = months(first, min(last, today))
    currency = largest_currency([row for row in net if row["travel_month"] in shown])
    if currency is None:
        return []
    known = known_from(source, only["channel"]) or date.max
    across = [month for month in months(begins, last) if month >= known]
    chosen = columns_of({**only, "currency": currency})
    end = month_end(min(last, today))
    sold = bookings_page(chosen, "sold", first, end)
    due = bookings_page(chosen, "cancelled", first, end, only="full")
    later = bookings_page(chosen, "deferred", month_start(end), end)
    by_then = f"Deferred at the end of {wording.month(shown[-1])}"

    def made(
        label: str, name: str, rows: _Rows, month: str, amount: str, missing: str, href: str, shown: list[date]
    ) -> Tile:
        """What the months shown come to, beside as many before."""
        rows = [row for row in rows if row["currency"] == currency]
        of = by_month(rows, month, amount, lambda row: row.get("is_complete", True) and not row[missing], across)
        before = months(month_start(shown[0], -len(shown)), month_start(shown[0], -1))
        then = [had for month in before if (had := of.get(month)) is not None]
        return Tile(
            label,
            _money(_total([row for row in rows if row[month] in shown], amount), currency),
            f"vs {wording.money_text(sum(then, Decimal(0)), currency)} in {_span(before)}"
            if len(then) == len(before)
            else "",
            href=href,
            name=name,
            course=course(of.get(month) for month in months(month_start(shown[-1], 1 - _COURSE), shown[-1])),
            course_of=f"{currency} a month, the {_COURSE} months up to then",
        )

    return [
        made("Net payable", "net", net, "travel_month", "net_amount", "without_net", sold, shown),
        made("Refunds due, full ones", "refunds", refunds, "month", "refund_amount", "without_amount", due, shown),
        made(by_then, "deferred", deferred, "month", "retail_amount", "without_retail", later, shown[-1:]),
    ]


def revenue(source: Source, first: date, last: date, today: date, only: Mapping[str, str | None]) -> list[Tile]:
    """What travels in these days, in the currency of most bookings; months known in both years beside a year earlier."""
    rows = source.rows("revenue_months", first=first, last=last, **only, by=None)
    currency, known = largest_currency(rows), known_from(source, only["channel"])
    if currency is None:
        return []
    across, until = months(first, last), known_to(source, only["channel"]) or date.max
    ago = pictures.known_a_year_ago(first, last, known, until)
    earlier = pictures.revenue_year_earlier(source, first, last, today, only) if ago else []
    begun = [month for month in across if month <= today and known and month >= known]
    href = bookings_page(columns_of({**only, "currency": currency}), "sold", first, last)
    same = ", by the same time" if last >= today else ""
    span = f", travel {_span(list(ago))}" if 0 < len(ago) < len(across) else ""

    def made(label: str, name: str, missing: str, told: Callable[[Any], str]) -> Tile:
        now, then = ([row for row in of if row["currency"] == currency] for of in (rows, earlier))
        both = [
            told(_total([row for row in of if row["travel_month"] in known], name))
            for of, known in ((now, ago), (then, ago.values()))
        ]
        amounts = by_month(now, "travel_month", name, lambda row: row[name] is not None and not row.get(missing), begun)
        return Tile(
            label,
            told(_total(now, name)),
            f"{f'{both[0]} ' if span else ''}vs {both[1]} a year earlier{same}{span}" if ago else "",
            href=href,
            name=name,
            course=course(amounts.values()),
            course_of="A month of travel, up to this one",
        )

    return [
        made("Retail", "retail_amount", "without_retail", lambda amount: _money(amount, currency)),
        made(f"Guests, {currency}", "guests", "", wording.count),
        made(f"Sold bookings, {currency}", "bookings", "", wording.count),
    ]


def course(amounts: Iterable[Decimal | None]) -> list[int | None]:
    """A tile's line."""
    return [None if amount is None else int(amount) for amount in amounts]


def _span(across: Sequence[date]) -> str:
    return " to ".join(wording.month(month) for month in dict.fromkeys((across[0], across[-1])))


def _total(rows: _Rows, name: str) -> Decimal | None:
    """Of the rows that say it; None where there are some and none does."""
    known = [row[name] for row in rows if row[name] is not None]
    return sum(known, Decimal(0)) if known or not rows else None


def _money(amount: Decimal | None, currency: str) -> str:
    return wording.UNKNOWN if amount is None else wording.money_text(amount, currency)
