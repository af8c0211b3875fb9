"""The pages Channels, Revenue and Occupancy: shares, margins, revenue per guest and seat, hours of the week."""

import pytest
from tests.dashboard.test_pages import ask, charts, plain, table

from octo_sync.flows import wording

PER_SEAT = "Revenue per guest and per seat offered, by month of travel and product; all channels together"
TWO = (
    "insert into core.connections select * replace ('web' as connection_id, 'Web shop' as channel) from core.connections",
    "update core.bookings set connection_id = 'web' where booking_uuid < '6'",
)


@pytest.mark.deep(2, everyday=1)
async def test_shares_of_a_month_add_up_and_the_margin_is_of_known_net_prices(shown, variant):
    folder = variant("mix", *TWO)
    found = ask(
        folder,
        "select channel_name, sum(margin_amount) / sum(retail_amount) filter (where margin_amount is not null) "
        "from marts.fct_bookings where is_sold and currency = 'USD' and travel_month = '2026-12' group by 1 order by 1",
    )
    page = await shown(folder).text("/channels?first=2026-12-05&last=2026-12-06&currency=USD")
    option = charts(page)["mix-usd"]["option"]
    drawn = option["series"]
    assert (option["percent"], option["yAxis"]["max"]) == (True, 1)
    assert {series["name"] for series in drawn} == {name for name, _ in found}
    assert len(found) == 2
    assert [sum(values) for values in zip(*(s["data"] for s in drawn), strict=True)] == pytest.approx([1])
    rows = table(page, "Channels in USD, by month of travel")
    december = sorted((row[1], row[6]) for row in rows if row[0] == "Dec 2026")
    assert december == [(name, wording.share(rate)) for name, rate in found]


async def test_revenue_per_guest_and_seat_has_the_decimals_of_its_currency(shown, published):
    page = await shown().text("/revenue?first=2026-12-01&last=2026-12-31")
    found = ask(
        published,
        "select product_name, currency, guest_amount / pax, seat_amount / seats_offered from marts.agg_revenue_monthly "
        "where travel_month = '2026-12' order by currency, retail_amount desc",
    )
    digits = {"JPY": 0, "BHD": 3, "KWD": 3}

    def told(amount, currency):
        return "unknown" if amount is None else f"{amount:,.{digits.get(currency, 2)}f} {currency}"

    rows = [row[:4] for row in table(page, PER_SEAT)]
    assert rows == [["Dec 2026", name, told(guest, c), told(seat, c)] for name, c, guest, seat in found]
    assert any(row[3] == "unknown" for row in rows)
    assert any(row[3] != "unknown" for row in rows)


async def test_of_one_channel_there_is_no_revenue_per_seat(shown):
    page = await shown().text("/revenue?channel=main")
    assert PER_SEAT not in page
    assert "Counted for all channels together" in plain(page)


async def test_the_map_of_the_week_has_each_weekday_and_hour(shown, published):
    page = await shown().text("/occupancy?first=2026-11-23&last=2026-12-06")
    option = charts(page)["fill-by-hour"]["option"]
    hours = ask(
        published,
        "select distinct extract(hour from d.local_start_at) from marts.fct_departures d join marts.dim_product p "
        "using (product_key) where d.travel_date between '2026-11-23' and '2026-12-06' "
        "and p.availability_type = 'START_TIME' order by 1",
    )
    assert option["yAxis"]["data"] == ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
    assert option["xAxis"]["data"] == ["all day", *(f"{hour:02d}" for (hour,) in hours)]
