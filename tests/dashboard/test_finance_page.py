"""The page Finance: whole months, each currency with its decimals, and which rows are not complete."""

import pytest
from tests.dashboard.test_pages import ask, table
from tests.dashboard.test_today import links

from octo_sync.flows import wording

NET = "Net payable to the supplier, by month of travel and channel"
DEFERRED = "Sold by the month's end for travel after it, by channel"


async def test_net_payable_is_of_whole_months_per_currency_with_its_decimals(shown, published):
    page = await shown().text("/finance?first=2026-10-20&last=2026-11-03")
    found = ask(
        published,
        "select travel_month, channel_name, currency, sum(net_amount), count(*) from marts.fct_bookings "
        "where is_sold and travel_month in ('2026-10', '2026-11') group by 1, 2, 3 order by 1 desc, 2, 3",
    )
    assert [(row[0], row[1], row[2], row[5]) for row in table(page, NET)] == [
        (wording.month(month), channel, wording.money_text(amount, currency), f"{count:,}")
        for month, channel, currency, amount, count in found
    ]
    assert {"JPY", "EUR"} < {currency for _, _, currency, *_ in found}
    assert all("." not in row[2] for row in table(page, NET) if row[2].endswith("JPY"))


@pytest.mark.deep(0.5)
async def test_a_currency_that_is_chosen_is_the_only_one(shown):
    page = await shown().text("/finance?currency=EUR")
    assert {row[2][-3:] for row in table(page, NET)} == {"EUR"}
    assert {row[2][-3:] for row in table(page, DEFERRED)} == {"EUR"}


@pytest.mark.deep(2)
async def test_a_month_that_was_not_read_to_its_end_is_not_complete(shown, variant):
    """Nor is what was deferred at the ends of the months before it."""
    folder = variant(
        "finance",
        "update ops.coverage set is_complete = false where resource = 'bookings' and travel_month = '2026-11'",
    )
    page = await shown(folder).text("/finance?first=2026-10-01&last=2026-11-30")
    assert {(row[0], row[8]) for row in table(page, NET)} == {("Oct 2026", "yes"), ("Nov 2026", "no")}
    assert {(row[0], row[8]) for row in table(page, DEFERRED)} == {("2026-10-31", "no"), ("2026-11-30", "yes")}


async def test_closed_months_show_what_they_had_what_changed_and_where_it_leads(shown, variant):
    folder = variant(
        "closed",
        "insert into ops.closed_periods values ('2026-10', timestamptz '2026-11-05 08:00:00+00', true, 'abc')",
        "insert into ops.closed_bookings select '2026-10', connection_id, booking_uuid, currency, retail_amount, net_amount, "
        "pax_count from marts.fct_bookings where is_sold and travel_month = '2026-10'",
        "update core.bookings set retail_amount = retail_amount + 7 where (connection_id, booking_uuid) = "
        "(select (connection_id, booking_uuid) from ops.closed_bookings where retail_amount is not null order by all limit 1)",
    )
    page = await shown(folder).text("/finance")
    months = table(page, "Closed months of travel: figures then, adjustments, figures now")
    ((count,),) = ask(folder, "select count(*) from marts.closed_periods")
    assert len(months) == count > 1
    assert sum(int(row[7]) for row in months) == 1
    ((booking, cause, *_),) = [row[1:] for row in table(page, "Adjustments of closed months, the latest first")]
    assert cause == "price changed"
    assert len(links(page, r"booking\?")) == 1
    assert booking in await shown(folder).text(f"/{links(page, 'booking')[0]}")
    assert "No month is closed." in await shown().text("/finance")
