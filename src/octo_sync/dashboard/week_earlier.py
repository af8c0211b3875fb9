"""Days of travel beside what the same departures were a week earlier, where this copy knew them then."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from octo_sync.dashboard.source import Source
from octo_sync.flows import wording

_WHEN = "7 days earlier"
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ProductDays:
    """Products and days of travel as they are `now`, and as all of their departures were known `then`, where they were."""

    now: Mapping[tuple[str, date], Row]
    then: Mapping[tuple[str, date], Row]

    def beside(self, told: Callable[[Iterable[Row]], str]) -> str:
        """`vs 12 7 days earlier; `, before what else a tile says; '' where one of the days was not known then."""
        return f"vs {told(self.then.values())} {_WHEN}; " if self.now and self.then.keys() == self.now.keys() else ""

    def beside_known(self, number: Callable[[Row], bool]) -> str:
        """The same of those product-days alone that were known then, which are named where they are not all."""
        then, now = (sum(map(number, map(of.__getitem__, self.then))) for of in (self.then, self.now))
        if len(self.then) == len(self.now):
            return self.beside(lambda _: wording.count(then))
        return f"{now:,} vs {then:,} {_WHEN} on {len(self.then):,} of them known then; " if self.then else ""

    def course(self, told: Callable[[Sequence[Row]], float | None]) -> list[float | None]:
        """A number for each day of travel that has a departure, all products of it together."""
        days: dict[date, list[Row]] = defaultdict(list)
        for (_, day), row in self.now.items():
            days[day].append(row)
        return [told(days[day]) for day in sorted(days)]


def product_days(source: Source, first: date, last: date, product: str | None, below: int = 20) -> ProductDays:
    """Those of a time of travel; a departure that is less than so many percent full is weak."""
    rows = source.rows("occupancy_earlier", first=first, last=last, product=product, below=below)
    now, then = (
        {(row["product_key"], row["travel_date"]): row for row in rows if row["is_now"] is is_now}
        for is_now in (True, False)
    )
    return ProductDays(now, {key: row for key, row in then.items() if row["departures"] == now[key]["departures"]})


def total(name: str) -> Callable[[Iterable[Row]], int]:
    """What adds up a number of product-days."""
    return lambda rows: sum(row[name] or 0 for row in rows)


def occupancy(rows: Iterable[Row]) -> float | None:
    """Places taken, of those of open departures with a known capacity."""
    rows = list(rows)
    capacity = total("capacity")(rows)
    return total("taken")(rows) / capacity if capacity else None
