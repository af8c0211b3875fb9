"""Live bookings of no price, though their tickets have one; or all bookings of a connection, though their products have one."""

from collections.abc import Callable, Iterable
from typing import Any

from octo_sync.flows.ask import Question

_LARGEST = "greatest(original_minor, retail_minor, net_minor)"
_UNPRICED = f"""
with
    priced as (
        select connection_id, booking_uuid, product_id, option_id, {_LARGEST} as amount from core.bookings
        where not is_deleted and {_LARGEST} is not null and status not in ('CANCELLED', 'EXPIRED')
    ),
    sold as (
        select connection_id, booking_uuid from core.booking_unit_items
        where not is_deleted and greatest(retail_minor, net_minor) > 0
    ),
    offered as (select connection_id, product_id, option_id from core.unit_prices where {_LARGEST} > 0)
select p.connection_id, count(*) from priced p
where p.amount = 0 and (
    exists (select 1 from sold s where s.connection_id = p.connection_id and s.booking_uuid = p.booking_uuid)
    or exists (
        select 1 from offered o
        where o.connection_id = p.connection_id and o.product_id = p.product_id and o.option_id = p.option_id
    ) and not exists (select 1 from priced paid where paid.connection_id = p.connection_id and paid.amount > 0)
)
group by 1 order by 1
"""  # noqa: S608 - nothing of it comes from outside


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
