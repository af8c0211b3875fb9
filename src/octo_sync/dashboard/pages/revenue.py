"""Revenue: what was sold, by month of travel; currencies are never added up."""

from datetime import date
from itertools import groupby
from typing import Any

from octo_sync.dashboard import money_tiles, pictures
from octo_sync.dashboard.columns import SOLD, leading
from octo_sync.dashboard.days import month_end
from octo_sync.dashboard.links import bookings_page, columns_of, month_page, occupancy_page
from octo_sync.dashboard.source import Source
from octo_sync.dashboard.standing import known_from, standing
from octo_sync.dashboard.sums import per
from octo_sync.dashboard.view import Column, Filters, Page, Section, Table, Tiles, View, listed
from octo_sync.flows import wording

_BACK, _AHEAD = 5, 6
_ROWS = 200


def build(source: Source, filters: Filters) -> View:
    """The page; without dates from half a year before the copy's today to half a year after."""
    now = standing(source)
    today, first = now.today or date.min, now.since(filters, _BACK)
    last = filters.last or month_end(max(first, today), _AHEAD)
    chosen: dict[str, Any] = {"product": filters.product, "channel": filters.channel, "currency": filters.currency}
    known = known_from(source, filters.channel)
    tiles = money_tiles.revenue(source, first, last, today, chosen)
    charts, left_out = pictures.revenue(source, first, last, today, chosen, known)
    return View(
        "Revenue",
        f"Sold bookings that travel {wording.day(first)} to {wording.day(last)}, as they are now."
        + pictures.in_part(first, known)
        + pictures.beyond(source, last, filters.channel)
        + pictures.in_each(source, filters.channel),
        [
            *([Section("", [Tiles(tiles)])] if tiles else []),
            Section("", charts or ["No sold booking travels in this time."], left_out),
            Section(
                "Products and channels",
                _tables(source.rows("revenue_products", first=first, last=last, **chosen), first, last),
            ),
            *_extras(source.rows("extras", first=first, last=last, **chosen), filters.channel, first, last),
            Section(
                "Per guest and per seat offered",
                [_per_seat(source, first, last, filters)],
                "Of whole months that have begun; a booking that several connections see counts once. Guests are of "
                "the whole month; seats are of the days from which they are known: our retail price on them, by all places of "
                "open departures with a known capacity, whoever sold them. Departures are known from the first pull on.",
            ),
            *_returning(source, first, last, filters),
        ],
        Filters(first=first, last=last, **chosen),
    )


def _per_seat(source: Source, first: date, last: date, filters: Filters) -> Table | str:
    """What a guest and a place that was offered bring in; of one channel alone nobody knows which places were offered."""
    if filters.channel:
        return "Counted for all channels together: choose all channels to see it."
    begun = min(last, standing(source).today or last)
    if begun < first:
        return "These months have not begun."
    rows = source.rows("revenue_per_seat", first=first, last=begun, product=filters.product, currency=filters.currency)

    return listed(
        "Revenue per guest and per seat offered, by month of travel and product; all channels together",
        rows,
        Column("Travel month", "month", "travel_month"),
        Column("Product", "text", "product_name"),
        Column("Per guest", "money", per("guest_amount", "guests"), none="unknown"),
        Column("Guests", "number", "guests", none="unknown", href=month_page("guests", "sold", "travel_month")),
        Column("Per seat offered", "money", per("seat_amount", "seats_offered"), none="unknown"),
        Column("Seats offered", "number", "seats_offered", none="unknown", href=_offered),
        Column("Seats known from", "date", "first_day_offered"),
        Column("to", "date", "last_day_offered"),
        Column("All bookings known", "yes", "is_complete"),
        empty="No sold booking travels in this time.",
        most=_ROWS,
    )


def _offered(row: dict[str, Any]) -> str:
    first, last = row["first_day_offered"], row["last_day_offered"]
    return occupancy_page(first, last, row["product_key"], "fill-by-day") if first and last else ""


def _returning(source: Source, first: date, last: date, filters: Filters) -> list[Section]:
    """Who came back, of all channels and currencies; nothing where nobody is known who booked."""
    if filters.channel or filters.currency:
        return []
    rows = source.rows("returning", first=first, last=last, product=filters.product)
    table = listed(
        "Who booked, and who of them had travelled before",
        rows,
        Column("Travel month", "month", "travel_month"),
        Column("Product", "text", "product_name"),
        Column("Booked", "number", "contacts"),
        Column("Travelled before", "number", "returning_contacts"),
        Column("Share", "share", "returning_share"),
        Column("Bookings without contact", "number", "bookings_without_contact"),
        Column("All bookings known", "yes", "is_complete"),
        most=_ROWS,
    )
    note = (
        "Of whole months. Different contacts by e-mail address or telephone number, and those who travelled with the same "
        "supplier on an earlier day, as far back as the copy goes. An agency that books for others is one who comes back."
    )
    return [Section("Returning guests", [table], note)] if rows else []


def _tables(rows: list[dict[str, Any]], first: date, last: date) -> list[Table]:
    """One for each currency."""
    found = []
    for currency, group in groupby(rows, key=lambda row: row["currency"]):
        lines = list(group)
        found.append(
            listed(
                f"Sold bookings in {wording.plain(currency) if currency else 'no currency'}, the largest first",
                lines,
                Column("Product", "text", "product_name"),
                Column("Channel", "text", "channel_name"),
                *leading(
                    lambda row: bookings_page(row, "sold", first, last),
                    *SOLD,
                    Column("Seller's margin", "money", "margin_amount", none="unknown"),
                ),
                most=_ROWS,
            )
        )
    return found


def _extras(rows: list[dict[str, Any]], channel: str | None, first: date, last: date) -> list[Section]:
    """What was bought beside tickets; nothing where no extra was, as of a service that has none."""
    only = columns_of({"channel": channel})
    table = listed(
        "Extras of sold bookings, the most first",
        rows,
        Column("Extra", "text", "extra_name"),
        Column("Product", "text", "product_name"),
        *leading(
            lambda row: (
                bookings_page({**row, **only}, "sold", first, last, only="extra", name=row["extra_id"])
                if row["extra_id"]
                else ""
            ),
            Column("Sold", "number", "quantity", none="unknown"),
            Column("Retail", "money", "retail_amount", none="unknown"),
            Column("Net", "money", "net_amount", none="unknown"),
            Column("Bookings", "number", "bookings"),
        ),
        most=_ROWS,
    )
    return [Section("Extras", [table])] if rows else []


PAGE = Page("revenue", "Revenue", 50, build, frozenset({"dates", "product", "channel", "currency"}))
