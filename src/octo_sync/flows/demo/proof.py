"""The demo's proof: the copy against the sandbox's own state, counted here in plain Python.

It shares nothing with the normaliser: the sandbox's state has a shape of its own, the copy is asked in SQL, and the two
columns of figures must be the same.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Any

from octo_sync.pipeline import Pipeline


@dataclass(slots=True)
class Figures:
    """What is counted on both sides."""

    rows: dict[str, int] = field(default_factory=dict)
    statuses: dict[str, int] = field(default_factory=dict)
    money: dict[str, Decimal] = field(default_factory=dict)
    """Retail of all bookings per currency, decimal."""
    places: dict[str, int] = field(default_factory=dict)
    """Capacity and vacancies of all departures."""


@dataclass(slots=True)
class Proof:
    """Both sides, and where they differ."""

    service: Figures
    copy: Figures

    @property
    def differences(self) -> list[str]:
        """A sentence per figure that is not the same."""
        found = []
        for name in ("rows", "statuses", "money", "places"):
            ours, theirs = getattr(self.copy, name), getattr(self.service, name)
            found += [
                f"{name} {key}: {ours.get(key, 0)} in the copy, {theirs.get(key, 0)} at the service"
                for key in sorted({*ours, *theirs})
                if ours.get(key, 0) != theirs.get(key, 0)
            ]
        return found


def of_state(state: Mapping[str, Any], pipeline: Pipeline) -> Figures:
    """Count the sandbox's own state; its `slots` are departures inside the availability horizon, as often as they are read.

    Every connection reads all products, in the same languages; of the bookings each reads its own.
    """
    products, slots, connections = state["products"], state["slots"], len(pipeline.connections)
    options = [o for p in products for o in p["options"]]
    units = [u for o in options for u in o["units"]]
    window = pipeline.horizons.bookings.window(date.fromisoformat(state["today"]))
    chosen = [b for b in state["bookings"] if window.start <= date.fromisoformat(b["local_date"]) <= window.end]
    languages = len(pipeline.connections[0].languages)
    money: dict[str, Decimal] = {}
    for b in chosen:
        if b["retail"] is not None:
            money[b["currency"]] = money.get(b["currency"], Decimal(0)) + Decimal(b["retail"]).scaleb(-b["precision"])
    return Figures(
        rows={
            "products": connections * len(products),
            "options": connections * len(options),
            "units": connections * len(units),
            "product_content": connections * languages * (len(products) + len(options)),
            "availability": len(slots),
            "availability_prices": sum(len(s["prices"]) + (s["price"] is not None) for s in slots),
            "bookings": len(chosen),
            "booking_unit_items": sum(len(b["unit_items"]) for b in chosen),
        },
        statuses=dict(Counter(b["status"] for b in chosen)),
        money=money,
        places={
            "capacity": sum(s["capacity"] or 0 for s in slots),
            "vacancies": sum(s["vacancies"] or 0 for s in slots),
        },
    )


def of_copy(query: Callable[[str], Sequence[tuple[Any, ...]]]) -> Figures:
    """Count the copy, by asking it in SQL."""
    tables = ("products", "options", "units", "product_content", "availability", "bookings", "booking_unit_items")
    rows = {t: int(query(f"select count(*) from core.{t} where not is_deleted")[0][0]) for t in tables}
    rows["availability_prices"] = int(query("select count(*) from core.availability_prices")[0][0])
    [(capacity, vacancies)] = query(
        "select coalesce(sum(capacity), 0)::bigint, coalesce(sum(vacancies), 0)::bigint "
        "from core.availability where not is_deleted"
    )
    return Figures(
        rows=rows,
        statuses=dict(query("select status, count(*) from core.bookings where not is_deleted group by 1")),
        money={
            currency: Decimal(str(total)).quantize(Decimal(1).scaleb(-precision))
            for currency, precision, total in query(
                "select currency, max(currency_precision), sum(retail_amount) from core.bookings "
                "where not is_deleted and currency is not null group by 1"
            )
        },
        places={"capacity": capacity, "vacancies": vacancies},
    )
