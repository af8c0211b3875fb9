"""Live bookings of no price, though their tickets have one; or all bookings of a connection, though their products have one."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from octo_sync.flows.ask import Question

_UNPRICED = Path(__file__).with_name("unpriced.sql").read_text(encoding="utf-8")


def unpriced(rows_of: Callable[[str], Iterable[tuple[Any, ...]]]) -> dict[str, int]:
    """Per connection how many; `rows_of` asks the copy. Blocking."""
    return {str(name): int(count) for name, count in rows_of(_UNPRICED)}


def concerns(question: Question) -> bool:
    """Whether a question's answer has amounts of bookings in it."""
    return "booking" in question.sql and any(
        word in question.sql for word in ("retail_amount", "net_amount", "original_amount", "revenue")
    )


def sentence(name: str, count: int) -> str:
    """What it means for the amounts that are shown."""
    return (
        f"{count:,} bookings of {name} have a price of 0, though their tickets or products have one: amounts lack them."
    )
