"""The page Finance: whole months, each currency with its decimals, and which rows are not complete."""

import pytest
from tests.dashboard.test_pages import ask, table
from tests.dashboard.test_today import links

from octo_sync.flows import wording

NET = "Net payable to the supplier, by month of travel and channel"
DEFERRED = "Sold by the month's end for travel after it, by channel"


ALL = "Net payable in all"


def whole(known):
    """`51 of 51`: each booking has its amount."""
    part, _, of = known.partition(" of ")
    return part == of


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


async def test_taxes_in_all_are_those_of_all_months_and_channels(shown, published):
    page = await shown().text("/finance?first=2026-10-20&last=2026-11-03")
    found = ask(
        published,
        "select tax_name, sum(retail_amount), sum(net_amount), currency from marts.fct_taxes "
        "where is_sold and travel_month in ('2026-10', '2026-11') group by 1, 4 order by 1, 4",
    )

    def told(amount, currency):
        return "unknown" if amount is None else wording.money_text(amount, currency)

    assert [row[:3] for row in table(page, "Taxes in all, by name")] == [
        [name, told(retail, currency), told(net, currency)] for name, retail, net, currency in found
    ]
    assert len(found) > 1


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
    assert {(row[0], row[8]) for row in table(page, NET) if whole(row[6])} == {("Oct 2026", "yes"), ("Nov 2026", "no")}
    assert {(row[0], row[8]) for row in table(page, DEFERRED) if whole(row[6])} == {
        ("2026-10-31", "no"),
        ("2026-11-30", "yes"),
    }


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
    assert sum(int(row[10]) for row in months) == 1
    ((booking, cause, *_),) = [row[1:] for row in table(page, "Adjustments of closed months, the latest first")]
    assert cause == "price changed"
    assert len(links(page, r"booking\?")) == 1
    assert booking in await shown(folder).text(f"/{links(page, 'booking.find')[0]}")
    assert "No month is closed." in await shown().text("/finance")


async def test_an_amount_is_complete_only_where_each_booking_has_both_prices(shown, variant):
    """Half of the bookings in euros lose the net price, all in yen the retail price: rows and sums say so."""
    folder = variant(
        "no-net",
        "update core.bookings set net_amount = null where booking_uuid < '8' and currency = 'EUR'",
        "update core.bookings set retail_amount = null where currency = 'JPY'",
    )
    page = await shown(folder).text("/finance?first=2026-09-01&last=2026-11-30")
    rows, sums = table(page, NET), table(page, ALL)
    assert {row[8] for row in rows if not whole(row[6])} == {"no"}
    assert {row[8] for row in rows if whole(row[6]) and row[3] != "unknown"} == {"yes"}
    assert {row[8] for row in rows if row[3] == "unknown"} == {"no"}, "nobody knows what was paid"
    found = ask(
        folder,
        "select currency, sum(net_amount), sum(retail_amount), count(*), count(net_amount) from marts.fct_bookings "
        "where is_sold and travel_month between '2026-09' and '2026-11' group by 1 order by 1",
    )
    assert [(row[0], row[1], row[2], row[4], row[5]) for row in sums] == [
        (
            c,
            wording.money_text(net, c) if net is not None else "unknown",
            wording.money_text(retail, c) if retail is not None else "unknown",
            f"{n:,}",
            f"{k:,} of {n:,}",
        )
        for c, net, retail, n, k in found
    ]
    assert {row[6] for row in sums} == {"yes", "no"}


async def test_a_refund_of_nothing_is_0_in_its_currency_and_one_without_a_price_is_unknown(shown, variant):
    refunds = "Cancelled bookings and their refunds, by month of cancellation and channel"
    page = await shown(variant("none", "update core.bookings set cancellation_refund = 'NONE'")).text("/finance")
    assert table(page, refunds)
    assert {row[2].split()[0].strip("0.") for row in table(page, refunds)} == {""}
    folder = variant("no-price", "update core.bookings set cancellation_refund = 'FULL', retail_amount = null")
    assert {row[2] for row in table(await shown(folder).text("/finance"), refunds)} == {"unknown"}


async def test_a_row_of_revenue_leads_to_the_bookings_behind_it(shown):
    dashboard = shown()
    page = await dashboard.text("/revenue?first=2026-09-25&last=2026-12-12")
    rows = table(page, "Sold bookings in EUR, the largest first")
    addresses = [address for address in links(page, "bookings.kind=sold.*product=") if "currency=EUR" in address]
    assert len(addresses) == len(rows) > 1
    for address, row in zip(addresses, rows, strict=True):
        behind = table(await dashboard.text(f"/{address}"), "Bookings")
        assert [each[4:6] for each in behind] == [row[:2]] * int(row[2])


@pytest.mark.parametrize(
    ("caption", "kind", "column"),
    [
        (NET, "sold", 5),
        ("Cancelled bookings and their refunds, by month of cancellation and channel", "cancelled", 9),
        ("Sold by the month's end for travel after it, by channel", "deferred", 4),
    ],
)
async def test_a_row_leads_to_the_bookings_behind_it(shown, caption, kind, column):
    dashboard = shown()
    page = await dashboard.text("/finance")
    counts = [row[column] for row in table(page, caption) if row[0] != "unknown"]
    addresses = links(page, rf"bookings\?kind={kind}")
    assert len(addresses) == len(counts) > 2
    for address, count in zip(addresses, counts, strict=True):
        assert len(table(await dashboard.text(f"/{address}"), "Bookings")) == int(count)
