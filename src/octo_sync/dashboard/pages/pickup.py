"""Pick-up: how early the months fill up, and how that compares with last year.

Longer than most modules, because its tiles and tables share which months are known in both years, and where numbers lead.
"""

from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from operator import itemgetter
from typing import Any

from octo_sync.dashboard import charts, pickup_curve, pictures
from octo_sync.dashboard.days import DAY, month_days, month_end, month_start, months, year_earlier
from octo_sync.dashboard.links import address, bookings_page, columns_of, month_page
from octo_sync.dashboard.source import Source
from octo_sync.dashboard.standing import known_from, standing
from octo_sync.dashboard.sums import known_sum
from octo_sync.dashboard.view import Chart, Column, Filters, Kind, Page, Section, Table, Tile, Tiles, View, listed
from octo_sync.errors import QueryError
from octo_sync.flows import wording

_BACK, _AHEAD, _MOST = 3, 4, 15
"""Months of travel before and after the current one, and at most."""
_OUT = (60, 30, 14, 7)
_ROWS = 200
_COURSE = 30
"""Days of the small lines in tiles."""
_EARLY = {
    "same_day": "same day",
    "days_1_2": "1-2 days",
    "days_3_7": "3-7 days",
    "days_8_30": "8-30 days",
    "days_31_90": "31-90 days",
    "over_90": "over 90 days",
    "not_known": "unknown",
}
"""A column of `lead_times` → what it counts, as `days.SPANS` names it."""
_Behind = Callable[..., Callable[[Any], str]]


def build(source: Source, filters: Filters) -> View:
    """The page; the months of `first` and `last` and those between; where one is given, as many as there are otherwise."""
    today = standing(source).today or date.min
    first = month_start(filters.first) if filters.first else month_start(filters.last or today, -_BACK)
    last = filters.last or month_end(max(first, today), _AHEAD)
    if len(months(first, last)) > _MOST:
        raise QueryError(f"{first:%Y-%m} to {last:%Y-%m} are more than {_MOST} months; choose fewer.")
    only: dict[str, Any] = {"product": filters.product, "channel": filters.channel}
    asked: dict[str, Any] = {"first": first, "last": last, **only}
    guests = source.rows("pace", **asked, by="month")
    chosen = columns_of(only)
    undated = source.rows("revenue_undated", **only, currency=None)
    unknown = pictures.in_part(first, known_from(source, filters.channel))
    unknown += pictures.beyond(source, month_end(last), filters.channel)
    return View(
        "Pick-up",
        f"Months of travel {wording.month(first)} to {wording.month(last)}: guests on the books by "
        "days before travel." + unknown + pictures.in_each(source, filters.channel),
        [
            Section("", [Tiles(_tiles(source, guests, only, month_start(today), address("pickup", "pace", **asked)))]),
            Section("", [pickup_curve.drawn(source, first, last, today, **only, year_ago=True)]),
            Section(
                "Pace",
                [
                    *_months(guests, source.rows("pace_amounts", **asked, by="month"), only, is_known=not unknown),
                    *_products(source, asked, today),
                    _parts(source, guests, asked, today),
                ],
                " ".join(filter(None, (_by_the_end(guests), pictures.undated(undated)))),
                "pace",
            ),
            Section(
                "Lead time",
                [
                    _lead_times(
                        source.rows("lead_times", **asked),
                        pictures.channel_colors(source),
                        lambda row, **only: bookings_page({**chosen, **row}, "sold", first, month_end(last), **only),
                    )
                ],
                "Sold bookings that travel in these months, by days from booking to travel, both at the venue. A month that is "
                "not over has only its early bookings.",
                "lead-time",
            ),
            Section("Past months", [_shares(source.rows("pickup", **asked), chosen)]),
        ],
        Filters(first=first, last=last, **only),
    )


def _tiles(
    source: Source, months: list[dict[str, Any]], only: Mapping[str, Any], this_month: date, pace: str
) -> list[Tile]:
    """Of the months shown that are still to come, all together; where there is none, of this one: most of it has travelled.

    Of months that are known completely, where there is one: the others may have more.
    """
    rows = [row for row in months if row["travel_month"] > this_month]
    complete = [row for row in rows if row["is_complete"]]
    alone = ", complete months alone" if 0 < len(complete) < len(rows) else ""
    rows = complete or rows or [row for row in months if row["travel_month"] == this_month]
    if not rows:
        return []
    both = [row for row in rows if row["is_complete"] and row["is_last_year_complete"]]
    on_books, new, usual = (known_sum(rows, name) for name in ("guests", "last_week", "usual_week"))
    known = [row for row in rows if row["is_complete"]]
    course, had = _days(source, known, only), known_sum(known, "guests")
    week_ago = "" if on_books is None or new is None else f"vs {on_books - new:,} a week before; "
    week_said = wording.UNKNOWN if usual is None else f"{usual:,.1f}".removesuffix(".0")
    week, week_then = (wording.count(known_sum(both, name)) for name in ("last_week", "last_year_week"))
    against = f"; {week} against {week_then} in the same week last year, travel {_span(both)}" if both else ""
    tiles = [
        Tile(
            "Guests on the books",
            wording.count(on_books),
            f"{week_ago}travel {_span(rows)}{alone}",
            href=pace,
            name="guests",
            course=[had - sum(course[n + 1 :]) for n in range(len(course))] if had is not None else (),
            course_of=f"At the end of a day, {_COURSE} days, travel {_span(known)}" if course else "",
        ),
        Tile(
            "New in 7 days",
            wording.count(new),
            f"vs {week_said} in a usual week{against}",
            href=pace,
            name="new",
            course=course,
            course_of=f"New in a day, {_COURSE} days, travel {_span(known)}" if course else "",
        ),
    ]
    now, then = known_sum(both, "guests"), known_sum(both, "last_year")
    if both and now is not None and then:
        said = f"{now:,} guests against {then:,}, travel {_span(both)}"
        tiles.append(
            Tile("Against the same time last year", wording.share(now / then), said, href=pace, name="last-year")
        )
    return tiles


def _days(source: Source, rows: list[dict[str, Any]], only: Mapping[str, Any]) -> list[int]:
    """New guests of each of the last days, of all these months; none where suppliers differ in which day was the last."""
    ends = {row[name] for row in rows for name in ("first_as_of_date", "as_of_date")}
    if len(ends) != 1:
        return []
    (by,) = ends
    since = by - (_COURSE - 1) * DAY
    first, last = (rows[n]["travel_month"] for n in (0, -1))
    found = {
        row["day"]: row["guests"]
        for row in source.rows("pace_days", first=first, last=last, since=since, by=by, **only)
    }
    return [found.get(since + n * DAY) or 0 for n in range(_COURSE)]


def _span(rows: list[dict[str, Any]]) -> str:
    first, last = (wording.month(rows[n]["travel_month"]) for n in (0, -1))
    return first if first == last else f"{first} to {last}"


def _by_the_end(rows: list[dict[str, Any]]) -> str:
    """What the numbers of pace mean."""
    if not rows:
        return ""
    last, unknown = max(row["as_of_date"] for row in rows), ""
    if missing := [row["travel_month"] for row in rows if not row["is_last_year_complete"]]:
        # Today moves on: as far as it takes to the end of these months, and a month more.
        reach = (month_end(max(last, *missing)) - year_earlier(min(missing))).days + 31
        unknown = f" To see where it is unknown, fetch older bookings: horizon.bookings has to begin {reach} days before today."
    return (
        f"Counted at the end of {wording.day(last)}, the last whole day. New: booked less cancelled. Usual week: the "
        "average of the four weeks before the last 7 days. Last year: the same month, at the same time of last year and in "
        "the end; same week: the same 7 days a year earlier." + unknown
    )


def _change(now: str) -> Callable[[dict[str, Any]], float | str | None]:
    """Against the same time last year, where all of both months is known."""

    def change(row: dict[str, Any]) -> float | str | None:
        if not (row["is_complete"] and row["is_last_year_complete"]) or row[now] is None or row["last_year"] is None:
            return None
        return float(row[now] / row["last_year"] - 1) if row["last_year"] else "none last year"

    return change


def _then(name: str) -> Callable[[dict[str, Any]], Any]:
    """What last year had, where all of that is known."""
    return lambda row: row[name] if row["is_last_year_complete"] else None


def _usual(row: dict[str, Any]) -> Any:  # noqa: ANN401 - a number, or an amount
    """A quarter of four weeks: of money no more decimals than it has."""
    usual = row["usual_week"]
    return wording.rounded(usual, row["currency"]) if isinstance(usual, Decimal) else usual


def _behind(only: Mapping[str, Any], *of_one: str, days: tuple[date, date] | None = None) -> _Behind:
    """Where a number of pace leads to: `behind(7)` is what changed in the last 7 days, `behind(year_ago=True)` last year's.

    `only` has the product and channel chosen, `of_one` names those of which a row is alone, `days` are those of travel;
    None = of the row's month.
    """
    chosen = columns_of(only)

    def behind(last_days: int = 0, *, year_ago: bool = False, final: bool = False) -> Callable[[Any], str]:
        def of(row: Mapping[str, Any]) -> str:
            by = row["as_of_date"]
            # Of suppliers whose last whole days differ no list has the same bookings.
            if row["first_as_of_date"] != by or (year_ago and not row["is_last_year_complete"]):
                return ""
            first, last = days or month_days(row["travel_month"])
            if year_ago:
                first, last = year_earlier(first), month_end(year_earlier(month_start(last)))
                by = by if final else year_earlier(by)
            since = {"since": by - last_days * DAY} if last_days else {}
            alone = {name: row[name] for name in ("currency", *of_one) if name in row}
            return bookings_page({**alone, **chosen}, "books", first, last, by=by, **since)

        return of

    return behind


def _on_books(
    caption: str, rows: list[dict[str, Any]], kind: Kind, behind: _Behind, *heads: Column, most: int | None = None
) -> Table:
    """What is on the books, what came of late, and last year's; amounts have their currency said once, so that they fit."""
    now = "guests" if kind == "number" else "amount"
    year_ago, final = behind(year_ago=True), behind(year_ago=True, final=True)
    week_ago, days_ago = behind(7, year_ago=True), behind(30, year_ago=True)
    return listed(
        caption,
        rows,
        *heads,
        *([Column("Currency", "text", "currency", none="none")] if kind == "amount" else []),
        Column("Guests" if kind == "number" else "Retail", kind, now, none="unknown", href=behind()),
        Column("Same time last year", kind, _then("last_year"), none="unknown", href=year_ago),
        Column("Change", "share", _change(now), none="unknown"),
        Column("New in a day", kind, "last_day", none="unknown", href=behind(1)),
        Column("New in 7 days", kind, "last_week", none="unknown", href=behind(7)),
        Column("Usual week", kind, _usual, none="unknown"),
        Column("Same week last year", kind, _then("last_year_week"), none="unknown", href=week_ago),
        Column("New in 30 days", kind, "last_30_days", none="unknown", href=behind(30)),
        Column("Same 30 days last year", kind, _then("last_year_30_days"), none="unknown", href=days_ago),
        Column("Final last year", kind, _then("last_year_final"), none="unknown", href=final),
        Column("Complete", "yes", "is_complete"),
        empty="No sold booking travels in these months.",
        most=most,
    )


def _months(
    guests: list[dict[str, Any]], amounts: list[dict[str, Any]], only: Mapping[str, Any], *, is_known: bool
) -> list[Table]:
    """`is_known` says whether every month that was chosen was asked for: one without a booking has no row."""
    guests = [*guests, _in_all(guests, is_known=is_known)] if len(guests) > 1 else guests
    month = Column("Travel month", "month", "travel_month", none="all of them")
    return [
        _on_books("Guests on the books, by month of travel", guests, "number", _behind(only), month),
        _on_books(
            "Retail amounts on the books, by month of travel and currency", amounts, "amount", _behind(only), month
        ),
    ]


def _in_all(rows: list[dict[str, Any]], *, is_known: bool) -> dict[str, Any]:
    """All months together; what one of them does not know is not known. It leads nowhere: no list has all of it."""
    flags = {name: all(row[name] for row in rows) for name in ("is_complete", "is_last_year_complete")}
    flags["is_complete"] &= is_known
    days = {"travel_month": None, "first_as_of_date": None, "as_of_date": rows[0]["as_of_date"]}
    return {name: known_sum(rows, name) for name in rows[0] if name not in days and name not in flags} | days | flags


def _products(source: Source, asked: dict[str, Any], today: date) -> list[Table]:
    """Of months that are over only where no other is shown: they can no longer change."""
    first = month_start(today) if asked["first"] < today <= asked["last"] else asked["first"]
    figures: tuple[tuple[str, str, Kind], ...] = (
        ("Guests", "pace", "number"),
        ("Retail amounts", "pace_amounts", "amount"),
    )
    return [
        _on_books(
            f"{said} on the books by month of travel and product",
            source.rows(select, **{**asked, "first": first}, by="product"),
            kind,
            _behind(asked, "product_key"),
            Column("Travel month", "month", "travel_month"),
            Column("Product", "text", "product_name"),
            most=_ROWS,
        )
        for said, select, kind in figures
    ]


def _parts(source: Source, months: list[dict[str, Any]], asked: dict[str, Any], today: date) -> Table:
    """Of those from the first to the last that is known in both years: one that is not would take all with it.

    Where some of these are not over, of them alone: the others can no longer change.
    """
    known = [row["travel_month"] for row in months if row["is_complete"] and row["is_last_year_complete"]]
    known = [month for month in known if month >= month_start(today)] or known
    first, last = (known[0], month_end(known[-1])) if known else (asked["first"], asked["last"])
    return _on_books(
        f"Guests on the books by product and channel, {wording.month(first)} to {wording.month(last)}",
        source.rows("pace", **{**asked, "first": first, "last": last}, by="channel"),
        "number",
        _behind({}, "product_key", "connection_id", days=(month_start(first), month_end(last))),
        Column("Product", "text", "product_name"),
        Column("Channel", "text", "channel_name"),
        most=_ROWS,
    )


def _lead_times(rows: list[dict[str, Any]], colors: dict[str, str], behind: Callable[..., str]) -> Chart:
    def early(name: str, words: str) -> Callable[[dict[str, Any]], str]:
        return lambda row: behind(row, only="lead", name=words) if row[name] else ""

    largest = {wording.plain(row["channel_name"]): row for row in rows[: pictures.CHANNELS]}
    drawn = {name: largest[name] for name in pictures.in_order(largest, colors)}
    known = list(_EARLY.items())[:-1]
    return Chart(
        id="lead-times",
        title="Days from booking to travel",
        option=charts.bars(
            [words for _, words in known],
            {channel: [row[name] for name, _ in known] for channel, row in drawn.items()},
            colors=colors,
        ),
        table=listed(
            "Days from booking to travel, by channel",
            rows,
            Column("Channel", "text", "channel_name"),
            Column("Bookings", "number", "bookings", href=behind),
            Column("Median days", "number", "median_lead_days", none="unknown"),
            *(Column(words.capitalize(), "number", name, href=early(name, words)) for name, words in _EARLY.items()),
            empty="No sold booking travels in these months.",
        ),
        download="fct_bookings",
        height=240,
        leads={channel: [early(name, words)(row) for name, words in known] for channel, row in drawn.items()},
    )


def _shares(rows: list[dict[str, Any]], chosen: dict[str, str]) -> Table:
    found = {(row["travel_month"], row["days_out"]): row for row in rows}

    def share(out: int) -> Callable[[dict[str, Any]], float | None]:
        return lambda final: pickup_curve.share_of(
            found[final["travel_month"], out]["guests_on_books"], final["final_guests"]
        )

    return listed(
        "Share of a month's guests that was on the books",
        sorted(
            ({**row, **chosen} for row in rows if row["is_final"] and not row["days_out"]),
            key=itemgetter("travel_month"),
        ),
        Column("Travel month", "month", "travel_month"),
        Column(
            "Final guests",
            "number",
            "final_guests",
            none="unknown",
            href=month_page("final_guests", "sold", "travel_month"),
        ),
        *(Column(f"{out} days before", "share", share(out)) for out in _OUT),
        Column("Bookings without guests", "number", "bookings_without_guests"),
        Column("Complete", "yes", "is_complete"),
        empty="No month shown is over with complete data.",
    )


PAGE = Page("pickup", "Pick-up", 30, build, frozenset({"dates", "product", "channel"}), by_month=True)
