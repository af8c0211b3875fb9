"""Occupancy: how full the days of travel are."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from functools import partial
from typing import Any

from octo_sync.dashboard import charts, heat_map
from octo_sync.dashboard.columns import STATUS, leading
from octo_sync.dashboard.days import DAY
from octo_sync.dashboard.links import address, departure_page, ended_text, full_text, occupancy_page, start_text
from octo_sync.dashboard.source import Source
from octo_sync.dashboard.standing import standing
from octo_sync.dashboard.view import Block, Chart, Column, Filters, Page, Section, Table, Tile, Tiles, View, listed
from octo_sync.dashboard.week_earlier import ProductDays, occupancy, product_days, total
from octo_sync.errors import QueryError
from octo_sync.flows import wording

_Rows = list[dict[str, Any]]
_DAYS, MOST_DAYS = 42, 190
_ROWS, _WHOLE = 200, 100_000
"""Departures of a list on the page at most, and in its file."""
_PLACES = (
    Column("Occupancy", "share", "fill_rate", none="unknown"),
    Column("Taken", "number", "taken", none="unknown"),
    Column("Capacity", "number", "capacity", none="unknown"),
)
_BELOW = {"10": "10 %", "20": "20 %", "30": "30 %", "40": "40 %", "50": "50 %"}
_DEFAULT = "20"


def build(source: Source, filters: Filters) -> View:
    """The page; without dates the six weeks from the copy's today on."""
    today = standing(source).today or date.min
    first = filters.first or (filters.last - DAY * (_DAYS - 1) if filters.last else today)
    last = filters.last or first + DAY * (_DAYS - 1)
    if (last - first).days >= MOST_DAYS:
        raise QueryError(f"{first} to {last} are more than {MOST_DAYS} days, too many for a map; choose fewer.")
    if (below := filters.more.get("below") or _DEFAULT) not in _BELOW:
        raise QueryError(f"The field below is {below[:40]!r}; expected {', '.join(_BELOW)}.")
    asked = {"first": first, "last": last, "product": filters.product}
    days, products = source.rows("occupancy_days", **asked), source.rows("occupancy_products", **asked)
    departures = source.rows("occupancy_departures", **asked, below=int(below), most=_WHOLE if filters.whole else _ROWS)
    earlier = product_days(source, first, last, filters.product, int(below))
    numbers = departures[0] if departures else {"sold_out": 0, "nearly": 0, "weak": 0, "closed": 0, "departures": 0}
    of = {list_: [row for row in departures if row["list"] == list_] for list_ in ("full", "weak", "closed")}
    limits = [(said, _here(asked, limit, "weak"), limit == below) for limit, said in _BELOW.items()]
    is_weak = f"not closed and less than {_BELOW[below]} full"
    return View(
        "Occupancy",
        f"Travel dates {wording.day(first)} to {wording.day(last)}. Counts all sellers' bookings, not only ours."
        + _unknown(source, first, last),
        [
            Section("", [Tiles(_tiles(asked, products, numbers, below, earlier, today))]),
            Section("", [heat_map.by_day(source, first, last, filters.product)]),
            Section("", [_days(days, filters.product), _hours(source.rows("occupancy_hours", **asked))]),
            *([_of_the_day(departures)] if first == last else []),
            Section("Products", [_products(products, first, last)], id="products"),
            Section(
                "Sold out or nearly",
                [_departures("sold out or at least 90 % full", of["full"], numbers["sold_out"] + numbers["nearly"])],
                id="full",
            ),
            Section(
                "Weak",
                [
                    Block("choices.html.j2", {"label": "Less full than", "choices": limits}),
                    _departures(is_weak, of["weak"], numbers["weak"]),
                ],
                id="weak",
            ),
            Section("Closed", [_departures("closed", of["closed"], numbers["closed"])], id="closed"),
        ],
        Filters(first=first, last=last, product=filters.product, more={"below": below}),
    )


def _unknown(source: Source, first: date, last: date) -> str:
    """The sentences for days that were asked for through no connection; '' where all were."""
    asked = source.rows("occupancy_asked")[0]
    sides = (("before", asked["first_day"], first), ("after", asked["last_day"], last))
    return "".join(
        f" Departures {side} {wording.day(day)} are not known: they were not asked for."
        for side, day, end in sides
        if day and (end < day if side == "before" else end > day)
    )


def _here(asked: dict[str, Any], below: str, place: str) -> str:
    """The address of this page; what is the default is left out, so that it need not be made anew."""
    return address("occupancy", place, **asked, below="" if below == _DEFAULT else below)


def _tiles(
    asked: dict[str, Any], products: _Rows, numbers: dict[str, Any], below: str, earlier: ProductDays, today: date
) -> list[Tile]:
    """Days that are over have no time beside them: they are as they were a week earlier."""

    def beside(told: Callable[[Iterable[Mapping[str, Any]]], str]) -> str:
        return earlier.beside(told) if asked["last"] >= today else ""

    def counted(name: str) -> str:
        return beside(lambda rows: wording.count(total(name)(rows)))

    def percent(rows: Sequence[Mapping[str, Any]]) -> int | None:
        rate = occupancy(rows)
        return None if rate is None else round(100 * rate)

    taken, capacity = (sum(row[name] or 0 for row in products) for name in ("taken", "capacity"))
    departures, nearly = sum(row["departures"] for row in products), numbers["nearly"]
    doubt = "" if all(row["is_covered"] for row in products) else " · not all departures are known"
    here = partial(_here, asked, below)
    return [
        Tile(
            "Occupancy",
            wording.share(taken / capacity) if capacity else "unknown",
            f"{beside(lambda rows: wording.share(occupancy(rows)))}{taken:,} of {capacity:,} places taken, of open "
            f"departures with a known capacity{doubt}",
            "mark" if doubt else "",
            href=here("products"),
            name="occupancy",
            course=earlier.course(percent),
            course_of="Percent, a day of travel",
        ),
        Tile(
            "Sold-out departures",
            wording.count(numbers["sold_out"]),
            f"{counted('sold_out')}of {departures:,}; {nearly:,} {'other is' if nearly == 1 else 'others are'} "
            "at least 90 % full",
            href=here("full"),
            name="sold-out",
            course=earlier.course(total("sold_out")),
            course_of="A day of travel",
        ),
        Tile(
            "Weak departures",
            wording.count(numbers["weak"]),
            f"{counted('weak')}not closed and less than {_BELOW[below]} full",
            href=here("weak"),
            name="weak",
            course=earlier.course(total("weak")),
            course_of="A day of travel",
        ),
    ]


def _days(rows: _Rows, product: str | None) -> Chart:
    def there(number: str, place: str) -> Callable[[dict[str, Any]], str]:
        return lambda row: occupancy_page(row["travel_date"], row["travel_date"], product, place) if row[number] else ""

    behind = there("departures", "departures")
    return Chart(
        id="fill-by-day",
        title="Overall occupancy by day",
        option=charts.lines(
            [wording.short_day(row["travel_date"]) for row in rows],
            {"Occupancy": [row["fill_rate"] for row in rows]},
            percent=True,
        ),
        table=listed(
            "Overall occupancy by day",
            rows,
            Column("Day", "date", "travel_date"),
            *leading(behind, *_PLACES, Column("Departures", "number", "departures")),
            Column("Sold out", "number", "sold_out_departures", href=there("sold_out_departures", "full")),
            Column("Closed", "number", "closed_departures", href=there("closed_departures", "closed")),
            Column("Our guests", "number", "our_guests", none="unknown", href=there("our_guests", "departures")),
            empty="No departure is known in this time.",
        ),
        download="agg_occupancy_daily",
        height=240,
        leads={"Occupancy": [behind(row) for row in rows]},
        note="Places taken, of those of open departures with a known capacity. Gaps are days without such a departure.",
    )


def _hours(rows: _Rows) -> Chart:
    """How full the week is: a row for each weekday, a column for each hour of a start."""
    at = sorted({row["start_hour"] for row in rows}, key=lambda hour: -1 if hour is None else hour)
    weekdays = sorted({(row["weekday"], row["weekday_name"]) for row in rows})
    names = [name for _, name in weekdays]
    lines: dict[str, list[Any]] = {name: [name, *[""] * len(at)] for name in names}
    for row in rows:
        name, hour = row["weekday_name"], row["start_hour"]
        lines[name][at.index(hour) + 1] = heat_map.shade(row, f"{name} · {_hour(hour)}")
    title, empty = "Occupancy by weekday and hour of departure", "No departure is known in this time."
    heads = [Column("all day" if hour is None else f"{hour:02d}", "share") for hour in at]
    return Chart(
        id="fill-by-hour",
        title=title,
        option={},
        cells=Table(f"{title}: map", [Column("Weekday"), *heads], list(lines.values()), empty=empty, is_map=True),
        legend=heat_map.LEGEND,
        download="fct_departures",
        note="Hours at the venue. Counts all sellers' bookings. Excludes closed departures and those of unknown capacity.",
        table=listed(
            title,
            rows,
            Column("Weekday", "text", "weekday_name"),
            Column("Hour", "text", lambda row: _hour(row["start_hour"])),
            *_PLACES,
            Column("Departures", "number", "departures"),
            Column("Sold out", "number", "sold_out_departures"),
            Column("Closed", "number", "closed_departures"),
            empty=empty,
        ),
    )


def _hour(hour: int | None) -> str:
    return "all day" if hour is None else f"{hour:02d}:00"


def _products(rows: _Rows, first: date, last: date) -> Table:
    days = "departures" if first == last else "fill-by-day"

    def there(number: str, place: str) -> Callable[[dict[str, Any]], str]:
        return lambda row: occupancy_page(first, last, row["product_key"], place) if row[number] else ""

    return listed(
        "Occupancy by product",
        rows,
        Column("Product", "text", "product_name"),
        *leading(
            there("departures", days),
            *_PLACES,
            Column("Days", "number", "days"),
            Column("Departures", "number", "departures"),
        ),
        Column("Sold-out days", "number", "sold_out_days", href=there("sold_out_days", "full")),
        Column("Closed days", "number", "closed_days", href=there("closed_days", days)),
        Column("Weak days", "number", "weak_days", href=there("weak_days", days)),
        Column("Our guests", "number", "our_guests", none="unknown", href=there("our_guests", days)),
        Column("Complete", "yes", "is_covered"),
        empty="No departure is known in this time.",
    )


def _free(row: dict[str, Any]) -> int | None:
    return None if row["taken"] is None or row["capacity"] is None else row["capacity"] - row["taken"]


def _of_the_day(rows: _Rows) -> Section:
    """All of them; of more days there are too many."""
    by_start = sorted(rows, key=lambda row: (row["local_start_at"] is None, row["local_start_at"], row["place"]))
    return Section("Departures", [_departures("", by_start, rows[0]["departures"] if rows else 0)], id="departures")


def _departures(which: str, rows: _Rows, number: int) -> Table:
    return listed(
        f"Departures that are {which}" if which else "All departures of the day",
        rows,
        Column("Start", "text", start_text, href=departure_page),
        Column("Product", "text", "product_name"),
        Column("Option", "text", "option_name"),
        *([] if which else [STATUS]),
        *([Column("Sold out", "yes", lambda row: row["state"] == "sold out")] if "sold out" in which else []),
        Column("Free", "number", _free, none="unknown"),
        Column("Full", "number", full_text, none="unknown"),
        Column("Taken", "number", "taken", none="unknown"),
        Column("Capacity", "number", "capacity", none="unknown"),
        Column("Our guests", "number", "our_guests", none="unknown"),
        *([] if which == "closed" else [Column("Sale", "text", ended_text, none="")]),
        empty=f"No departure of this time is known{f' to be {which}' if which else ''}.",
        more=f"{len(rows):,} of {number:,} are shown; csv has {'all of them' if number <= _WHOLE else f'{_WHOLE:,}'}."
        if number > len(rows)
        else "",
    )


PAGE = Page("occupancy", "Occupancy", 20, build, frozenset({"dates", "product"}), fields=frozenset({"below"}))
