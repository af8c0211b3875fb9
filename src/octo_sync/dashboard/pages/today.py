"""Today: what a shift leader wants to know of today, tomorrow and the next days; without names of guests.

Days are those of the clock at each venue, not of the last verification: who leads a shift asks for the day that it is.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any

from octo_sync.dashboard import changes_text, own_holds, usual_days
from octo_sync.dashboard.columns import REFERENCE
from octo_sync.dashboard.links import address, departure_page, ended_text, free_text, full_text, has_left, start_text
from octo_sync.dashboard.source import Source
from octo_sync.dashboard.sums import known_sum
from octo_sync.dashboard.view import Block, Column, Filters, Item, Page, Section, Tile, Tiles, View, listed
from octo_sync.errors import QueryError
from octo_sync.flows import wording

_Rows = Sequence[Mapping[str, Any]]
_DAYS = ("Today", "Tomorrow")
_SINCE = {
    "1h": ("hour", timedelta(hours=1)),
    "24h": ("24 hours", timedelta(hours=24)),
    "7d": ("7 days", timedelta(days=7)),
}
_DEFAULT = "24h"
_HOLDS = timedelta(hours=24)
_SHOWN, _SHOWN_A_DAY = 200, 1_000
"""Rows of a list below the days, and of a day."""
_WHAT = ("new", "changed", "cancelled", "released", "gone")
"""Kinds of changes; those read for the first time are none."""


def build(source: Source, filters: Filters) -> View:
    """The page."""
    since = filters.more.get("since") or _DEFAULT
    if since not in _SINCE:
        raise QueryError(f"since is {since[:40]!r}; expected one of {', '.join(_SINCE)}.")
    now, product = source.now().replace(second=0, microsecond=0), filters.product
    departures = source.rows("today", now=now, product=product)
    known = source.rows("today_days", now=now, product=product)
    own = own_holds.uuids(source)
    holds = own_holds.without(own, source.rows("today_holds", now=now, until=now + _HOLDS, product=product))
    seen = source.rows("today_changes", now=now, since=now - _SINCE[since][1], product=product)
    changes = own_holds.without(own, seen)
    canaries = _told(seen) - _told(changes)
    ahead = source.rows("today_ahead", now=now, product=product)
    dates = {"first": now.date(), "last": now.date(), "by": now.date(), "since": None}
    anything = dict.fromkeys(("channel", "currency", "tax", "least", "greatest"))
    alone = {**anything, "product": product, "alone": "not_used"}
    undated = sum(row["bookings"] for row in source.rows("bookings_totals", kind="open", now=now, **dates, **alone))
    choices = [(said, _at("changes", key, product), key == since) for key, (said, _) in _SINCE.items()]
    tiles = _tiles(
        departures, usual_days.travelled(source, now.date(), product), holds, changes, ahead, undated, since, product
    )
    return View(
        "Today",
        "Departures, guests and what needs attention, by each venue's own day and clock. No names of guests are shown.",
        [
            Section("", [Tiles(tiles)], paper="none"),
            *(_day(n, departures, known, now) for n in range(len(_DAYS))),
            _holds(holds, now),
            _changes(changes, canaries, since, choices),
            _ahead(ahead),
        ],
        filters,
    )


def _told(changes: _Rows) -> int:
    """How many of them are changes."""
    return sum(row["kind"] in _WHAT for row in changes)


def _tiles(
    departures: _Rows,
    travelled: Mapping[date, int | None],
    holds: _Rows,
    changes: _Rows,
    ahead: _Rows,
    undated: int,
    since: str,
    product: str | None,
) -> list[Tile]:
    kinds, states = Counter(row["kind"] for row in changes), Counter(row["state"] for row in ahead)
    soon = sum(row["is_soon"] for row in holds)
    ended = sum(bool(ended_text(row)) for row in ahead)
    told = [f"{kinds[kind]:,} {kind}" for kind in ("new", "changed", "cancelled", "released")]
    days = []
    for n, name in enumerate(_DAYS):
        rows = [row for row in departures if row["days_ahead"] == n]
        with_guests = sum(1 for row in rows if row["bookings"])
        dates = {row["travel_date"] for row in rows}
        said, course = usual_days.beside(min(dates), travelled) if len(dates) == 1 else ("", [])
        days.append(
            Tile(
                f"Our guests {name.lower()}",
                wording.count(known_sum(rows, "sold")),
                f"{said}on {with_guests:,} of {wording.plural(len(rows), 'departure')}",
                href=_at(name.lower(), since, product),
                name=f"guests-{name.lower()}",
                course=course,
                course_of=f"A day of travel, {usual_days.COURSE} days and this one",
            )
        )
    return [
        *days,
        Tile(
            "Holds",
            wording.count(len(holds)),
            f"{soon:,} lapse in the next 24 hours, {len(holds) - soon:,} travel by tomorrow",
            "mark" if soon else "",
            href=_at("holds", since, product),
            name="holds",
        ),
        Tile(
            f"Bookings changed, last {_SINCE[since][0]}",
            wording.count(_told(changes)),
            ", ".join(told),
            href=_at("changes", since, product),
            name="changes",
        ),
        Tile(
            "Sold-out departures, the rest of today and 7 days more",
            wording.count(states["sold out"]),
            f"{states['weak']:,} others are less than 20 % full{f', {ended:,} of them no longer on sale' if ended else ''}",
            href=_at("ahead", since, product),
            name="sold-out-ahead",
        ),
        Tile(
            "Open-dated bookings",
            wording.count(undated),
            "not used yet; they may come any day",
            href=address("bookings", kind="open", only="not_used", product=product),
            name="open-dated",
        ),
    ]


def _at(place: str, since: str, product: str | None) -> str:
    """The address of a part of this page; what is the default is left out, so that it need not be made anew."""
    return address("today", place, since="" if since == _DEFAULT else since, product=product)


def _day(ahead: int, rows: _Rows, known: _Rows, now: datetime) -> Section:
    rows, known = ([row for row in of if row["days_ahead"] == ahead] for of in (rows, known))
    name = _DAYS[ahead]
    dates = sorted({row["travel_date"] for row in (*known, *rows)})
    shown_day = wording.short_day if len(dates) > 1 else None
    has_zones = len({row["time_zone"] for row in rows}) > 1
    title = f"{name}, {' or '.join(wording.short_day(each) for each in dates)}" if dates else name
    doubt = _doubt(name, known)

    def start(row: Mapping[str, Any]) -> str:
        zone = f" {_place(row)}" if has_zones else ""
        span = start_text(row, shown_day)
        return span + zone + (", departed" if has_left(row, now) else "")

    def free(row: Mapping[str, Any]) -> str:
        return "departed" if has_left(row, now) else _free(row)

    table = listed(
        f"Departures {name.lower()}",
        rows,
        Column("Start", "text", start),
        Column("Departure", "text", changes_text.named, href=departure_page),
        Column("Our guests", "number", "sold", none="unknown", href=_there("sold")),
        Column("By kind", "text", _by_kind),
        Column("Extras", "text", "extras", none=""),
        Column("Free", "number", free),
        Column("Taken", "number", "taken", none="unknown"),
        Column("On hold", "number", "on_hold", none="unknown", href=_there("on_hold")),
        Column("Our bookings", "number", "bookings", href=_there("bookings")),
        Column("References", "text", lambda row: _and_held(row["booking_references"], row["held_references"])),
        empty=f"No departure and no booking is known for {name.lower()}.",
        most=_SHOWN_A_DAY,
    )
    return Section(
        title,
        [*([Block("band.html.j2", {"text": doubt})] if doubt else []), table],
        "Our guests and those on hold are of the bookings in this copy; pending bookings count as on hold. Taken and free "
        "are what the service says: they count all sellers' sales.",
        name.lower(),
        "sheet",
    )


def _place(row: Mapping[str, Any]) -> str:
    """The place whose clock it is, from the time zone's name: `New York`."""
    return str(row["time_zone"] or "UTC").rpartition("/")[2].replace("_", " ")


def _there(number: str) -> Callable[[Mapping[str, Any]], str]:
    """The page of the departure, where there is anybody."""
    return lambda row: departure_page(row) if row[number] else ""


def _by_kind(row: Mapping[str, Any]) -> str:
    """Tickets, and those on hold apart; '' where there is nobody, and print leaves the row out."""
    if not (row["guests"] or row["held_guests"]) and (row["bookings"] or row["on_hold"] != 0):
        return wording.UNKNOWN
    return _and_held(row["guests"], row["held_guests"])


def _and_held(sold: str | None, held: str | None) -> str:
    return "; ".join(filter(None, (sold, held and f"on hold: {held}")))


def _doubt(name: str, known: _Rows) -> str:
    """What is not known of the day, as a sentence; '' when all of it is."""
    said = []
    for what in ("bookings", "departures"):
        missing = [row["product_name"] for row in known if not row[f"{what}_complete"]]
        if missing and len(missing) == len(known):
            said.append(f"the {what} of all products")
        elif missing:
            said.append(f"the {what} of {', '.join(missing[:3])}{_others(len(missing) - 3)}")
    return f"{name} is incomplete: {' and '.join(said)} are not all known, so there may be more." if said else ""


def _others(number: int) -> str:
    return f" and {wording.plural(number, 'other')}" if number > 0 else ""


def _free(row: Mapping[str, Any]) -> str:
    if not row["is_known"]:
        return "departure not known"
    return ended_text(row) or free_text(row["status"], row["vacancies"], row["capacity"])


def _holds(rows: _Rows, now: datetime) -> Section:
    def lapses_in(row: Mapping[str, Any]) -> str | None:
        return row["utc_expires_at"] and wording.age(row["utc_expires_at"] - now)

    table = listed(
        "Holds that lapse in the next 24 hours, or travel today or tomorrow",
        rows,
        REFERENCE,
        Column("Lapses in", "text", lapses_in, none="unknown"),
        Column("At the venue", "text", _lapses),
        Column(
            "Departure",
            "text",
            lambda row: f"{start_text(row)} {changes_text.named(row)}",
            href=departure_page,
        ),
        Column("Guests", "number", "pax_count", none="unknown"),
        Column("Channel", "text", "channel_name"),
        empty="No hold lapses in the next 24 hours, and none travels today or tomorrow.",
        most=_SHOWN,
    )
    return Section("Holds", [table], id="holds", paper="none")


def _lapses(row: Mapping[str, Any]) -> str | None:
    late = ", after its departure" if row["is_late"] else ""
    at = row["lapses_at"]
    return at and f"{wording.short_day(at)}, {at:%H:%M}{late}"


def _changes(rows: _Rows, canaries: int, since: str, choices: Sequence[tuple[str, str, bool]]) -> Section:
    told, read = [row for row in rows if row["kind"] in _WHAT], sum(row["kind"] == "read" for row in rows)
    words = _SINCE[since][0]
    note = (
        "New: made in this time, whatever came later. Released: never sold, or expired or rejected; they come last. "
        "What travels today or tomorrow comes first, then the latest change, as this copy learnt of it."
    )
    if read:
        note += f" {wording.plural(read, 'older booking')} read for the first time since then are left out."
    if canaries:
        note += f" {wording.plural(canaries, 'hold')} of the canary: left out."
    table = listed(
        f"Bookings that changed in the last {words}",
        told,
        REFERENCE,
        Column("What", "text", changes_text.what),
        Column("Before → now", "text", changes_text.before_and_now),
        Column("Travels", "date", "travel_date", none="open", href=departure_page),
        Column("Product", "text", changes_text.named),
        Column("Guests", "number", "pax_count", none="unknown"),
        Column("Channel", "text", "channel_name"),
        Column("Seen", "instant", "event_at_utc"),
        empty=f"No booking changed in the last {words}.",
        most=_SHOWN,
    )
    items: list[Item] = [Block("choices.html.j2", {"label": "Since the last", "choices": choices}), table]
    return Section("What changed", items, note, "changes", "none")


def _ahead(rows: _Rows) -> Section:
    tables = [
        listed(
            f"{state.capitalize()} departures of today and the next seven days",
            [row for row in rows if row["state"] == state],
            Column("Start", "text", start_text),
            Column("Departure", "text", changes_text.named, href=departure_page),
            Column("Our guests", "number", "our_guests", none="unknown"),
            Column("Taken", "number", "taken", none="unknown"),
            Column("Capacity", "number", "capacity", none="unknown"),
            Column("Full", "number", full_text, none="unknown"),
            *([Column("Sale", "text", ended_text, none="")] if state == "weak" else []),
            empty=f"No departure of the rest of today and the next seven days is known to be {said}.",
            most=_SHOWN,
        )
        for state, said in (("sold out", "sold out"), ("weak", "less than 20 % full"))
    ]
    note = (
        "Without those of today that have left. Weak: not closed and less than 20 % full, all sellers' sales counted; "
        "page Occupancy has other limits."
    )
    return Section("Sold out and weak", tables, note, "ahead", "none")


PAGE = Page("today", "Today", 15, build, frozenset({"product"}), fields=frozenset({"since"}))
