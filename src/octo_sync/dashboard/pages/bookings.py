"""Bookings: a list of those sold, held, cancelled or open-dated, and the form that finds a single one."""

from collections.abc import Mapping
from datetime import date
from typing import Any

from octo_sync.dashboard import pictures
from octo_sync.dashboard.columns import BOOKING, STATUS, TRAVELS, known_text, leading
from octo_sync.dashboard.days import DAY, SPANS, year_earlier
from octo_sync.dashboard.filters import day_of
from octo_sync.dashboard.links import address, departure_page, status_text, venue_time
from octo_sync.dashboard.source import Source
from octo_sync.dashboard.standing import known_from, standing
from octo_sync.dashboard.view import Block, Column, Filters, Item, Page, Section, View, listed
from octo_sync.errors import QueryError
from octo_sync.flows import wording

_AHEAD, _HELD = 6, 1000
"""Days ahead without dates; holds are few, so all that have a day of travel."""
_MOST, _WHOLE = 500, 100_000
"""Bookings on the page at most, and in its file."""
_KINDS = {
    "sold": "sold, by day of travel",
    "held": "on hold or pending now, by day of travel",
    "made": "made, by day of booking",
    "lost": "made, and cancelled since",
    "cancelled": "cancelled, by day of cancellation",
    "books": "on the books at the end of a day, by day of travel",
    "deferred": "sold by the last day, to travel later",
    "open": "open-dated",
}
_PAST = ("made", "lost", "cancelled")
"""Without dates they are of the last seven days; the others of the next ones."""
_ONLY = {
    "full": "with a full refund",
    "partial": "with a partial refund",
    "none": "without a refund",
    "not_stated": "that were cancelled and say nothing of a refund",
    "no_net": "without a net price",
    "no_retail": "without a retail price",
    "full_no_retail": "with a full refund and no retail price",
    "none_no_net": "without a refund and a net price",
    "not_used": "that are not used yet",
    "still": "that are still sold",
    "no_tax": "that state no tax",
    "tax": "with a tax",
    "extra": "with an extra",
    "lead": "by days from booking to travel",
    "notice": "by days from cancellation to travel",
}
_NAMED = ("tax", "extra")
"""Of which there may be those of one name alone."""


def build(source: Source, filters: Filters) -> View:
    """The page; without dates what travels on the copy's today and the six days after, or what happened in the last seven.

    Raises:
        QueryError: There is no such kind, nothing that is `only`, or no such day.
    """
    kind = _one_of("kind", _KINDS, filters) or "sold"
    only = _one_of("only", _ONLY, filters)
    name = (filters.more.get("name") if only in (*_NAMED, *SPANS) else "") or None
    least, greatest = _span(only, filters) or (None, None)
    today = standing(source).today or date.min
    first = filters.first or min(filters.last or today, today) - (_AHEAD if kind in _PAST else 0) * DAY
    last = filters.last or first + (_HELD if kind == "held" else _AHEAD) * DAY
    chosen: dict[str, Any] = {"product": filters.product, "channel": filters.channel, "currency": filters.currency}
    by = day_of("by", filters.more.get("by", "")) or today - DAY
    since = day_of("since", filters.more.get("since", ""))
    asked: dict[str, Any] = {
        "first": first,
        "last": last,
        "kind": kind,
        "by": by,
        "since": since,
        "alone": only,
        "tax": name,
        "least": least,
        "greatest": greatest,
        "now": source.now().replace(second=0, microsecond=0),
        **chosen,
    }
    totals = source.rows("bookings_totals", **asked)
    rows = source.rows("bookings", **asked, most=_WHOLE if filters.whole else _MOST)
    number = sum(row["bookings"] for row in totals)
    if filters.whole and number > _WHOLE:
        raise QueryError(f"A file has {_WHOLE:,} bookings at most, and these are {number:,}; choose fewer days.")
    span = f"{wording.day(first)} to {wording.day(last)}"
    early = pictures.in_part(first, known_from(source, filters.channel))
    doubt = early + (pictures.beyond(source, last, filters.channel) if filters.last else "")
    made = pictures.in_part(first, known_from(source, filters.channel, made=True))
    lead = {
        "sold": f"Sold bookings that travel {span}.{doubt}",
        "held": f"Bookings on hold or pending now that travel {span}.{doubt}",
        "made": f"Bookings made {span} that were sold, also those cancelled since.{made}",
        "lost": f"Bookings made {span} that were sold and are cancelled since.{made}",
        "cancelled": f"Bookings that were sold, and cancelled {span}.{doubt}",
        "deferred": f"On the books at the end of {wording.day(last)}, to travel later. Each with its present day of travel and "
        f"price; those cancelled since are among them.{early}",
        "books": _on_the_books(by, since, span) + doubt,
        "open": "Sold bookings without a day of travel that this copy knows of, whenever they were made.",
    }
    kept = {"first": filters.first, "last": filters.last, **chosen}
    kinds = [(said, address("bookings", **{"kind": name, **kept}), name == kind) for name, said in _KINDS.items()]
    named = f"{' named' if only in _NAMED else ':'} {name}" if name else ""
    shown = listed(
        "Bookings",
        rows,
        BOOKING,
        STATUS,
        *leading(departure_page, TRAVELS),
        Column("Made", "date", "booking_date", none="unknown"),
        *_afterwards(kind),
        Column("Product", "text", "product_name"),
        Column("Option", "text", "option_name"),
        Column("Channel", "text", "channel_name"),
        Column("Guests", "number", "pax_count", none="unknown"),
        Column("Retail", "money", "retail_amount", none="unknown"),
        Column("Net", "money", "net_amount", none="unknown"),
        Column("Reseller's reference", "text", "reseller_reference"),
        empty="There is no such booking.",
        more=f"{_MOST:,} of {number:,} are shown; csv has all of them." if number > _MOST else "",
    )
    given = {"kind": kind, "only": only, "name": name, **_days(kind, by, since)}
    more = {field: value for field, value in given.items() if value}
    in_all = listed(
        "In all, by currency",
        totals,
        Column("Currency", "text", "currency", none="no currency"),
        *leading(
            # There a list of one currency is by that of the tax or extra.
            lambda row: (
                address("bookings", **{**more, **kept, "currency": row["currency"]})
                if row["currency"] and only not in _NAMED
                else ""
            ),
            Column("Bookings", "number", "bookings"),
            Column("Guests", "number", "guests", none="unknown"),
            Column("Retail", "money", "retail_amount", none="unknown"),
            Column("With retail price", "number", known_text("without_retail")),
            Column("Net", "money", "net_amount", none="unknown"),
            Column("With net price", "number", known_text("without_net")),
        ),
    )
    find = Block("find.html.j2", {"text": ""})
    items: list[Item] = [
        Block("choices.html.j2", {"label": "Bookings", "choices": kinds}),
        *(_moments(by, since, today, kept) if kind == "books" else []),
        *([in_all] if totals else []),
        shown,
    ]
    return View(
        "Bookings",
        lead[kind] + (f" Only those {_ONLY[only]}{named}." if only else "") + pictures.in_each(source, filters.channel),
        [Section("", [find]), Section("", items)],
        Filters(
            first=first,
            last=last,
            **chosen,
            more=more,
        ),
    )


def _moments(by: date, since: date | None, today: date, kept: Mapping[str, Any]) -> list[Item]:
    """Links to other days at whose end the bookings were on the books, and to what came in the days before."""
    last = today - DAY

    def then(by: date, since: date | None) -> str:
        return address("bookings", **{"kind": "books", **kept, **_days("books", by, since)})

    span = by - since if since else None
    days = (
        ("yesterday", last),
        *((f"{n} days earlier", last - n * DAY) for n in (7, 14, 30)),
        ("a year earlier", year_earlier(last)),
    )
    spans = (("all", None), *((f"{wording.plural(n, 'day')} before", n * DAY) for n in (1, 7, 30)))
    return [
        Block("choices.html.j2", {"label": label, "choices": choices})
        for label, choices in (
            ("At the end of", [(said, then(day, day - span if span else None), day == by) for said, day in days]),
            (
                "New in the",
                [(said, then(by, by - length if length else None), length == span) for said, length in spans],
            ),
        )
    ]


def _one_of(field: str, known: Mapping[str, str], filters: Filters) -> str | None:
    value = filters.more.get(field) or None
    if value not in (None, *known):
        raise QueryError(f"The field {field} is {str(value)[:40]!r}; expected {', '.join(known)}.")
    return value


def _span(only: str | None, filters: Filters) -> tuple[int, int] | None:
    """The least and the most days to travel; None where they are not known, or not asked for."""
    known = SPANS.get(only or "")
    if known is None:
        return None
    if (name := filters.more.get("name", "")) not in known:
        raise QueryError(f"The field name is {name[:40]!r}; expected {', '.join(known)}.")
    return known[name]


def _days(kind: str, by: date, since: date | None) -> dict[str, str]:
    return {name: str(day) for name, day in (("by", by), ("since", since)) if day} if kind == "books" else {}


def _on_the_books(by: date, since: date | None, span: str) -> str:
    if since is None:
        return f"On the books at the end of {wording.day(by)}, to travel {span}; each by its present day of travel and price."
    return (
        f"Booked or cancelled {wording.day(since + DAY)} to {wording.day(by)}, to travel {span}. The sums are less the guests "
        "and amounts of those cancelled."
    )


def _afterwards(kind: str) -> list[Column]:
    """What became of them, where the list has more than one answer."""
    if kind == "sold":
        return []
    if kind == "held":
        return [Column("Hold lapses", "text", venue_time("utc_expires_at"), none="unknown")]
    if kind == "open":
        return [Column("Used", "date", _used, none="not yet")]
    return [
        Column("Cancelled", "date", "cancelled_date"),
        Column("Notice, days", "number", "notice_days"),
        Column("Refund", "text", _refund),
    ]


def _used(row: Mapping[str, Any]) -> date | str | None:
    return row["redeemed_date"] or ("on an unknown day" if row["status"] == "REDEEMED" else None)


def _refund(row: Mapping[str, Any]) -> str | None:
    if row["status"] != "CANCELLED":
        return None
    return status_text(row["cancellation_refund"]) if row["cancellation_refund"] else "not stated"


PAGE = Page(
    name="bookings",
    title="Bookings",
    order=17,
    build=build,
    shown=frozenset({"dates", "product", "channel", "currency"}),
    fields=frozenset({"kind", "only", "name", "by", "since"}),
)
