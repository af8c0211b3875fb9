"""Overview: how things are, at a glance, seen from the day of the copy's last verification."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from statistics import median
from typing import Any

from octo_sync.dashboard import heat_map, pickup_curve, pictures
from octo_sync.dashboard.days import DAY, month_end, month_start, months
from octo_sync.dashboard.differences import decided
from octo_sync.dashboard.links import address, bookings_page, occupancy_page
from octo_sync.dashboard.source import Source
from octo_sync.dashboard.standing import Standing, known_from, standing
from octo_sync.dashboard.view import Column, Filters, Page, Section, Tile, Tiles, View, listed
from octo_sync.flows import wording

_RECENT = 30
"""Days whose bookings tell about cancellations and lead times, and days ahead in which sold-out ones are counted."""
_WEEKS, _MAP_DAYS = 8, 42
_NONE = {"was_sold": 0, "cancelled": 0, "with_lead": 0, "median_lead_days": None}
"""Of a time in which no booking was made."""


def build(source: Source, filters: Filters) -> View:
    """The page."""
    now = standing(source)
    today = now.today or date.min  # it is never built without
    begins = month_start(now.begins) if now.begins else today
    sold = max(month_start(today, -5), begins), month_end(today, 6)
    travel = month_start(today, -2), month_end(today, 3)
    pictures.ahead(source, sold=sold, travel=travel)
    tiles = _tiles(source, now, today, sold)
    per_day = pictures.bookings_by_channel(source, today - DAY * (_WEEKS * 7 - 1), today)
    fill = heat_map.by_day(source, today, today + DAY * (_MAP_DAYS - 1))
    charts, left_out = pictures.revenue(source, *sold, today)
    in_part = pictures.in_part(sold[0], known_from(source))
    sections = [
        Section("", [Tiles(tiles)]),
        Section("", [per_day, pickup_curve.drawn(source, *travel, today)]),
        Section("", [fill]),
        Section(
            "Revenue",
            charts or ["No sold booking travels from half a year ago to half a year ahead."],
            f"{left_out}{in_part}".strip(),
        ),
    ]
    if filters.with_tests:
        sections.append(_tests(source))
    return View(
        "Overview",
        f"As of {wording.day(today)}, the day of the last verification ({now.time_zone})."
        + pictures.in_each(source, None),
        sections,
        filters,
    )


class _Day:
    """Bookings made on a day, all channels together."""

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        names = ("bookings", "cancelled", "sold", "guests", "sold_without_guests", "still_open")
        self.bookings, self.cancelled, self.sold, self.guests, self.sold_without_guests, self.still_open = (
            sum(row[name] or 0 for row in rows) for name in names
        )
        # All of them are known, at each connection that is active; of a day that the copy knows nothing of none is.
        self.is_complete = bool(rows) and all(row["is_complete"] or not row["is_active"] for row in rows)


def _by_day(source: Source, first: date, last: date) -> dict[date, _Day]:
    """Each day from first to last."""
    rows = defaultdict[date, list[Mapping[str, Any]]](list)
    for row in source.rows("bookings_by_channel", first=first, last=last):
        rows[row["booking_date"]].append(row)
    return {day: _Day(rows[day]) for day in (first + DAY * n for n in range((last - first).days + 1))}


def _tiles(source: Source, now: Standing, today: date, sold_days: tuple[date, date]) -> list[Tile]:
    days = _by_day(source, today - DAY * (_WEEKS * 7 - 1), today)
    since, before_that = today - DAY * _RECENT, today - DAY * 2 * _RECENT
    made = source.rows("lead_time", before=before_that, first=since, last=today - DAY)
    now_made, before_made = ({row["is_recent"]: row for row in made}.get(which, _NONE) for which in (True, False))
    ahead = source.rows("overview_ahead", first=today, last=today + DAY * (_RECENT - 1))
    product_days, sold_out, closed_days, unknown_days = (
        sum(row[name] for row in ahead) for name in ("product_days", "sold_out", "closed", "unknown")
    )
    name, yesterday = wording.short_day(today - DAY), days[today - DAY]
    before = [days[today - DAY * (1 + 7 * weeks)] for weeks in range(1, 5)]
    known = [day.bookings for day in before if day.is_complete]
    usual = f"vs {median(known):g} on a usual {today - DAY:%A}" if known else "no complete weeks to compare with"
    held = f" · {yesterday.still_open:,} on hold or pending" if yesterday.still_open else ""
    doubt = "" if yesterday.is_complete else " · day incomplete"
    known_guests = [day.guests for day in before if day.is_complete and not day.sold_without_guests]
    guests = f"vs {median(known_guests):g} on a usual {today - DAY:%A}; " if known_guests else ""
    guests += f"in {wording.plural(yesterday.sold, 'booking')} of that day still sold"
    if yesterday.sold_without_guests:
        guests += f"; {yesterday.sold_without_guests:,} without a number of guests"
    recent = [days[today - DAY * n] for n in range(1, _RECENT + 1)]
    course = [day if day.is_complete else None for day in reversed(recent)]
    sold, cancelled = sum(day.bookings for day in recent), sum(day.cancelled for day in recent)
    lead, lead_before = now_made["median_lead_days"], before_made["median_lead_days"]
    known_since = known_from(source, made=True) or date.max
    compared = cancelled_before = ""
    if lead_before is not None and known_since <= before_that:
        compared = f"vs {lead_before:g} in the {_RECENT} days before; "
    if before_made["was_sold"] and known_since <= before_that:
        share = before_made["cancelled"] / before_made["was_sold"]
        cancelled_before = f" · {wording.share(share)} in the {_RECENT} days before"
    weeks = {row["weeks_ago"]: row["median_lead_days"] for row in made if row["is_recent"] is None}
    made_yesterday = bookings_page({}, "made", today - DAY, today - DAY)
    closed = f", {closed_days:,} closed" if closed_days else ""
    unknown = f", {unknown_days:,} of unknown capacity" if unknown_days else ""
    out = {row["travel_date"]: row["sold_out"] for row in ahead}
    up_to_then = f"A day, the {_RECENT} days up to then"
    return [
        Tile(
            f"Bookings made on {name}",
            wording.count(yesterday.bookings),
            f"{usual}{held}{doubt}",
            "mark" if doubt or now.is_stale else "",
            href=made_yesterday,
            name="bookings",
            course=[day.bookings if day else None for day in course],
            course_of=up_to_then,
        ),
        Tile(
            f"Guests booked on {name}",
            wording.count(
                yesterday.guests if yesterday.sold_without_guests < yesterday.sold or not yesterday.sold else None
            ),
            guests,
            href=made_yesterday,
            name="guests",
            course=[None if day is None or day.sold_without_guests else day.guests for day in course],
            course_of=up_to_then,
        ),
        Tile(
            "Cancelled",
            wording.share(cancelled / sold) if sold else "—",
            f"{wording.count(cancelled)} of {wording.count(sold)} bookings of the last {_RECENT} days were cancelled"
            f"{cancelled_before}",
            href=address("cancellations", first=since, last=today - DAY),
            name="cancelled",
            course=[day.cancelled if day else None for day in course],
            course_of=f"Of the bookings of a day, the {_RECENT} days up to then",
        ),
        Tile(
            "Median lead time",
            "—" if lead is None else f"{lead:g} {'day' if lead == 1 else 'days'}",
            f"{compared}from booking to travel, of {now_made['with_lead']:,} bookings made in the last {_RECENT} days and "
            "still sold",
            href=bookings_page({}, "made", since, today - DAY, only="still"),
            name="lead-time",
            course=[
                weeks.get(n) if today - DAY * 7 * (n + 1) >= known_since else None for n in reversed(range(_WEEKS))
            ],
            course_of=f"Days, in the median of a week, the {_WEEKS} weeks up to then",
        ),
        Tile(
            f"Product-days sold out, next {_RECENT} days",
            wording.count(sold_out),
            f"of {product_days:,} days on which a product has departures{closed}{unknown}",
            href=occupancy_page(today, today + DAY * (_RECENT - 1), None, "products"),
            name="sold-out",
            course=[out.get(today + DAY * n, 0) for n in range(_RECENT)] if ahead else (),
            course_of=f"A day, the {_RECENT} days from today on",
        ),
        _month(source, sold_days, today),
        _differences(source),
    ]


def _month(source: Source, sold: tuple[date, date], today: date) -> Tile:
    """What this month of travel brings in, in the currency of most bookings."""
    month = month_start(today)
    asked = {"first": sold[0], "last": sold[1], "product": None, "channel": None, "currency": None, "by": None}
    found = source.rows("revenue_months", **asked)
    rows = [row for row in found if row["travel_month"] == month]
    drawn, _ = pictures.largest_currencies(rows)
    largest = next(iter(drawn), None)
    of = drawn[largest] if largest else []
    bookings = sum(row["bookings"] for row in of)
    told = [f"in {wording.plural(bookings, 'sold booking')}"]
    known = known_from(source) or date.max
    course: list[Decimal | None] = []
    for each in months(sold[0], today):
        sums = [row for row in found if (row["travel_month"], row["currency"]) == (each, largest)]
        is_known = each >= known and not any(row["without_retail"] for row in sums)
        course.append(_retail(sums) if is_known else None)
    if of and None not in course[-2:] and len(course) > 1:
        before = wording.month(month_start(today, -1))
        told.insert(0, f"vs {wording.money_text(course[-2], largest)} in all of {before}")
    if without := sum(row["without_retail"] for row in of):
        told.append(f"{without:,} of them have no price")
    if others := sum(row["bookings"] for row in rows) - bookings:
        told.append(f"{others:,} more in other currencies")
    return Tile(
        f"Retail, travel in {wording.month(month)}",
        wording.money_text(_retail(of), largest) if of else "—",
        "; ".join(told),
        href=address("revenue", first=month, last=month_end(month)),
        name="month",
        course=[None if amount is None else int(amount) for amount in course] if of else (),
        course_of=f"{largest} a month of travel, up to this one",
    )


def _retail(rows: Sequence[Mapping[str, Any]]) -> Decimal:
    return sum((row["retail_amount"] or Decimal(0) for row in rows), Decimal(0))


def _differences(source: Source) -> Tile:
    runs = source.rows("reconcile_runs")
    names = {run["recon_name"] for run in runs}
    if not names:
        return Tile("Open differences", "—", "nothing compared yet", href="reconcile", name="differences")
    found = [row for row in decided(source, source.rows("differences"))[0] if row["state"] == "open"]
    return Tile(
        "Open differences",
        wording.count(len(found)),
        f"{sum(row['is_new'] for row in found):,} new since the run before, in {wording.plural(len(names), 'comparison')}",
        "mark" if found else "good",
        href="reconcile",
        name="differences",
        course=[run["open_differences"] for run in reversed(runs)] if len(names) == 1 else (),
        course_of="After each of the last runs",
    )


def _tests(source: Source) -> Section:
    return Section(
        "Test bookings",
        [
            listed(
                "Test bookings by channel, product and status",
                source.rows("test_bookings"),
                Column("Channel", "text", "channel_name"),
                Column("Product", "text", "product_name"),
                Column("Status", "text", "status"),
                Column("Bookings", "number", "bookings"),
                Column("Newest made", "instant", "newest_at_utc"),
                empty="There are no test bookings.",
            )
        ],
        "Not counted in any number above.",
        "tests",
    )


PAGE = Page("overview", "Overview", 10, build, frozenset({"tests"}))
