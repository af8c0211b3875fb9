"""The page Finance: whole months, each currency with its decimals, and which rows are not complete."""

import datetime as dt
from decimal import Decimal

import pytest
from tests.dashboard.test_pages import ask, leads, led_to, table, tiles
from tests.dashboard.test_today import links

from octo_sync.flows import wording

NET = "Net payable to the supplier, by month of travel and channel"
DEFERRED = "Sold by the month's end for travel after it, by channel"


ALL = "Net payable in all"


REFUNDS = "Cancelled bookings and their refunds, by month of cancellation and channel"
MONTHS = "first=2026-08-01&last=2026-11-30"


def whole(known):
    """`51 of 51`, or none without it: each booking has its amount."""
    part, _, of = known.partition(" of ")
    return part == (of or "0")


async def test_the_page_opens_with_the_last_month_that_is_over(shown):
    page = await shown().text("/finance")
    assert "Whole months, Oct 2026 to Oct 2026" in page
    assert {(row[0], row[-2]) for row in table(page, NET)} == {("Oct 2026", "yes")}
    assert "Oct 2026 to Nov 2026" in await shown().text("/finance?first=2026-10-09")
    page = await shown().text("/finance?first=2026-10-01&last=2026-11-30")
    assert {(row[0], row[-2]) for row in table(page, NET)} == {("Oct 2026", "yes"), ("Nov 2026", "no")}
    assert {row[-2] for row in table(page, ALL)} == {"no"}, "one month is not over"


async def test_months_that_have_not_begun_are_said_to_have_not(shown):
    assert "These months have not begun." in await shown().text("/finance?first=2027-01-01&last=2027-01-31")


async def test_net_payable_is_of_whole_months_per_currency_with_its_decimals(shown, published):
    page = await shown().text("/finance?first=2026-10-20&last=2026-11-03")
    found = ask(
        published,
        "select travel_month, channel_name, currency, sum(net_amount), count(*) from marts.fct_bookings "
        "where is_sold and travel_month in ('2026-10-01', '2026-11-01') group by 1, 2, 3 order by 1 desc, 2, 3",
    )
    assert [(row[0], row[1], row[2], row[6]) for row in table(page, NET)] == [
        (wording.month(month), channel, wording.money_text(amount, currency), f"{count:,}")
        for month, channel, currency, amount, count in found
    ]
    assert {"JPY", "EUR"} < {currency for _, _, currency, *_ in found}
    assert all("." not in row[2] for row in table(page, NET) if row[2].endswith("JPY"))


async def test_taxes_in_all_are_those_of_all_months_and_channels(shown, published):
    page = await shown().text("/finance?first=2026-10-20&last=2026-11-03")
    found = ask(
        published,
        "select tax_name, sum(t.retail_amount), sum(t.net_amount), sum(b.retail_amount), t.currency from marts.fct_taxes t "
        "join marts.fct_bookings b using (booking_key) where t.is_sold and t.travel_month in ('2026-10-01', '2026-11-01') "
        "group by 1, 5 order by 1, 5",
    )

    assert [row[:4] for row in table(page, "Taxes in all, by name") if row[0] != "none stated"] == [
        [name, *(told(amount, currency) for amount in amounts)] for name, *amounts, currency in found
    ]
    assert len(found) > 1


async def test_a_booking_that_states_no_tax_is_in_a_row_of_its_own(shown, variant):
    folder = variant("no-tax", "delete from core.booking_taxes where booking_uuid < '8'")
    found = ask(
        folder,
        "select currency, sum(retail_amount), count(*) from marts.fct_bookings b anti join core.booking_taxes t "
        "using (connection_id, booking_uuid) where is_sold and travel_month = '2026-10-01' group by 1 order by 1",
    )
    page = await shown(folder).text("/finance")
    assert [row[:5] for row in table(page, "Taxes in all, by name") if row[0] == "none stated"] == [
        ["none stated", "—", "—", told(amount, currency), f"{count:,}"] for currency, amount, count in found
    ]
    assert found


@pytest.mark.deep(0.5)
async def test_a_currency_that_is_chosen_is_the_only_one(shown):
    page = await shown().text(f"/finance?currency=EUR&{MONTHS}")
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
    assert {(row[0], row[-1]) for row in table(page, NET) if whole(row[7])} == {("Oct 2026", "yes"), ("Nov 2026", "no")}
    assert {(row[0], row[8]) for row in table(page, DEFERRED) if whole(row[6])} == {
        ("2026-10-31", "no"),
        ("2026-11-30", "yes"),
    }


async def test_closed_months_show_what_they_had_what_changed_and_where_it_leads(shown, variant):
    digest = "5e0f" * 16
    folder = variant(
        "closed",
        f"insert into ops.closed_periods values ('2026-10', timestamptz '2026-11-05 08:00:00+00', true, '{digest}', null)",
        "insert into ops.closed_bookings select '2026-10', connection_id, booking_uuid, currency, retail_amount, net_amount, "
        "pax_count from marts.fct_bookings where is_sold and travel_month = '2026-10-01'",
        "update core.bookings set retail_amount = retail_amount + 7 where (connection_id, booking_uuid) = "
        "(select (connection_id, booking_uuid) from ops.closed_bookings where retail_amount is not null order by all limit 1)",
    )
    page = await shown(folder).text("/finance")
    months = table(page, "Closed months of travel: figures then, adjustments, figures now")
    ((count,),) = ask(folder, "select count(*) from marts.closed_periods")
    assert len(months) == count > 1
    assert sum(int(row[11]) for row in months) == 1
    assert {row[12] for row in months} == {digest}
    assert f'<td class="digest"><bdi title="{digest}">' in page
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
    assert {row[-1] for row in rows if not whole(row[7])} == {"no"}
    assert {row[-1] for row in rows if whole(row[7]) and row[5] != "unknown"} == {"yes"}
    assert {row[-1] for row in rows if row[5] == "unknown"} == {"no"}, "nobody knows what was paid"
    found = ask(
        folder,
        "select currency, sum(net_amount), sum(retail_amount) filter (net_amount is not null), "
        "sum(retail_amount - net_amount), sum(retail_amount), count(*), count(*) - count(net_amount) "
        "from marts.fct_bookings where is_sold and travel_month between '2026-09-01' and '2026-11-01' group by 1 order by 1",
    )
    assert [row[:7] for row in sums] == [
        [c, *(told(amount, c) for amount in amounts), f"{n:,}", f"{without:,}"] for c, *amounts, n, without in found
    ]
    assert {row[-1] for row in sums} == {"yes", "no"}


def told(amount, currency):
    return "unknown" if amount is None else wording.money_text(amount, currency)


async def test_a_refund_of_nothing_is_0_in_its_currency_and_one_without_a_price_is_unknown(shown, variant):
    folder = variant("none", "update core.bookings set cancellation_refund = 'NONE'")
    page = await shown(folder).text(f"/finance?{MONTHS}")
    assert table(page, REFUNDS)
    assert {row[2].split()[0].strip("0.") for row in table(page, REFUNDS)} == {""}
    kept = ask(
        folder,
        "select currency, sum(retail_amount), sum(net_amount), count(*) from marts.fct_bookings where was_sold and "
        "is_cancelled and cancelled_date between '2026-08-01' and '2026-11-30' group by 1 order by 1",
    )
    assert [(row[0], row[7:10], row[12]) for row in table(page, "Cancelled bookings in all")] == [
        (c, [f"{n:,}", told(retail, c), told(net, c)], f"{n:,}") for c, retail, net, n in kept
    ]
    folder = variant("no-price", "update core.bookings set cancellation_refund = 'FULL', retail_amount = null")
    assert {row[2] for row in table(await shown(folder).text(f"/finance?{MONTHS}"), REFUNDS)} == {"unknown"}


async def test_what_is_kept_in_all_is_unknown_where_the_only_kept_booking_has_no_price(shown, variant):
    """All other months and channels of the currency keep nothing, which is 0 and not the sum."""
    of = "where was_sold and is_cancelled and currency = 'EUR' and cancelled_date between '2026-08-01' and '2026-11-30'"
    folder = variant(
        "kept-one",
        "update core.bookings set cancellation_refund = 'FULL'",
        "update core.bookings set cancellation_refund = 'NONE', net_amount = null where booking_uuid = "
        f"(select min(booking_uuid) from marts.fct_bookings {of})",
    )
    page = await shown(folder).text(f"/finance?currency=EUR&{MONTHS}")
    assert "0.00 EUR" in {row[9] for row in table(page, REFUNDS)}
    assert [row[9] for row in table(page, "Cancelled bookings in all")] == ["unknown"]


async def test_the_tiles_stand_beside_the_month_before_where_that_is_known(shown, published, variant):
    page = await shown().text("/finance?currency=EUR")
    of = "from marts.fct_bookings where currency = 'EUR' and"
    net, refunds = (
        dict(ask(published, f"select {month}, sum({amount}) {of} {which} group by 1"))
        for month, amount, which in (
            ("travel_month", "net_amount", "is_sold"),
            ("date_trunc('month', cancelled_date)::date", "retail_amount", "was_sold and cancellation_refund = 'FULL'"),
        )
    )
    deferred = dict(
        ask(
            published, "select date_trunc('month', month_end)::date, sum(retail_amount) from marts.agg_deferred_revenue "
            "where currency = 'EUR' group by 1",
        )
    )  # fmt: skip
    found, october, september = tiles(page), dt.date(2026, 10, 1), dt.date(2026, 9, 1)
    for name, amounts in (("net", net), ("refunds", refunds), ("deferred", deferred)):
        now, before = (told(amounts.get(month) or Decimal(0), "EUR") for month in (october, september))
        assert found[name] == (now, f"vs {before} in Sep 2026"), name
    assert net[october] != net[september]
    page = await shown().text("/finance?currency=EUR&first=2026-09-01&last=2026-09-30")
    assert tiles(page)["net"][1] == "", "not all of August is known"
    page = await shown(variant("no-net", "update core.bookings set net_amount = null")).text("/finance?currency=EUR")
    assert tiles(page)["net"] == ("unknown", ""), "no price is not a price of 0"


async def test_deferred_revenue_in_all_is_that_of_all_channels_at_each_months_end(shown, published):
    page = await shown().text(f"/finance?{MONTHS}")
    found = ask(
        published,
        "select cast(month_end as text), currency, sum(retail_amount), sum(net_amount), sum(bookings) "
        "from marts.agg_deferred_revenue where month_end between '2026-08-31' and '2026-11-30' group by 1, 2 "
        "order by 1 desc, 2",
    )
    assert [row[:5] for row in table(page, "Deferred revenue in all")] == [
        [end, c, told(retail, c), told(net, c), f"{n:,}"] for end, c, retail, net, n in found
    ]
    assert len({end for end, *_ in found}) > 1
    by_month = table(page, "Deferred revenue at the end of Nov 2026, by month of travel")
    last = [row for row in found if row[0] == "2026-11-30"]
    assert {c: sum(int(row[4].replace(",", "")) for row in by_month if row[1] == c) for _, c, *_ in last} == {
        c: n for _, c, *_, n in last
    }


async def test_open_dated_bookings_are_a_table_that_leads_to_them(shown, variant):
    used = "update core.bookings set local_date = null, utc_redeemed_at = "
    folder = variant(
        "undated",
        f"{used} timestamptz '2026-10-31 12:00:00+00', status = 'REDEEMED' where currency = 'EUR' and status = 'CONFIRMED' "
        "and booking_uuid < '4'",
        f"{used} null where currency = 'EUR' and status = 'CONFIRMED' and booking_uuid > 'a'",
    )
    of = "from marts.fct_bookings where is_sold and travel_date is null and currency = 'EUR'"
    sums = "select count(*), sum(retail_amount), sum(net_amount)"
    then = "not is_redeemed and sold_date < '2026-11-01'"
    (used,), (unused,), (by_then,) = (
        ask(folder, f"{sums} {of} and {which}") for which in ("is_redeemed", "not is_redeemed", then)
    )
    dashboard = shown(folder)
    caption = "Open-dated bookings: used in these months, and not used {}, in all"
    (row,) = table(await dashboard.text("/finance?currency=EUR"), caption.format("by 2026-10-31"))
    assert int(row[5]) == by_then[0] < unused[0]
    page = await dashboard.text("/finance?currency=EUR&first=2026-10-01&last=2026-11-30")
    (row,) = table(page, caption.format("yet"))
    assert table(page, caption.format("yet").replace("in all", "by channel"))[0][1:] == row[1:]
    for cells, (number, retail, net) in ((row[2:5], used), (row[5:8], unused)):
        assert cells == [f"{number:,}", wording.money_text(retail, "EUR"), wording.money_text(net, "EUR")]
    assert int(row[1]) == used[0] + unused[0] > used[0] > 0
    for name in (caption, caption.replace("in all", "by channel")):
        assert await led_to(dashboard, page, name.format("yet"), 1, 5, 9) > 1
    (row,) = table(
        await dashboard.text("/finance?currency=EUR&first=2026-09-01&last=2026-09-30"), caption.format("by 2026-09-30")
    )
    assert row[2] == "0", "used in another month"


@pytest.mark.parametrize("kept", [True, False])
async def test_a_closed_month_has_its_totals_of_then_and_of_now_or_says_that_none_were_kept(shown, variant, kept):
    folder = variant(
        f"kept-{kept}",
        f"insert into ops.closed_periods values ('2026-10', '2026-11-05', true, '', {'true' if kept else 'null'})",
        "insert into ops.closed_totals select '2026-10', kind, coalesce(tax_name, ''), connection_id, currency, bookings_now, "
        f"retail_now - 5, net_now from marts.month_totals where period = '2026-10-01' and {str(kept).lower()}",
    )
    dashboard = shown(folder)
    page = await dashboard.text("/finance?currency=EUR")
    caption = "Closed months: taxes by name, refunds due and deferred revenue, then and now"
    found = ask(
        folder, "select kind, tax_name, retail_now, bookings_now from marts.month_totals where period = '2026-10-01' "
        "and currency = 'EUR' order by kind desc, tax_name nulls first",
    )  # fmt: skip
    rows = table(page, caption)
    assert [row[3:7] for row in rows] == [
        ["yes", told(retail - 5, "EUR"), told(Decimal(5), "EUR"), told(retail, "EUR")]
        if kept
        else ["no", "unknown", "unknown", told(retail, "EUR")]
        for _, _, retail, _ in found
    ]
    assert {kind for kind, *_ in found} == {"tax", "refund", "deferred"}
    for addresses, (_, _, _, count) in zip(leads(page, caption), found, strict=True):
        behind = await dashboard.text(f"/{addresses[6]}")
        assert sum(int(row[1].replace(",", "")) for row in table(behind, "In all, by currency")) == count


CLOSE = "May I close? Months that are over and not closed"
COMPARED = (
    "insert into ops.recon_runs (recon_name, run_id, verdict, ended_at_utc, window_start, window_end, control_totals) "
    "values ('ledger', 'r1', 'ok', timestamptz '2026-11-20 12:00:00+00', '2026-09-20', '2026-11-20', '[]')"
)


@pytest.mark.parametrize(
    ("day", "accepted", "october"),
    [
        ("2026-10-31", "null", ["Oct 2026", "no", "yes", "1"]),
        ("2026-10-31", "'paid in cash'", ["Oct 2026", "yes", "yes", "0"]),
        ("2026-11-01", "null", ["Oct 2026", "yes", "yes", "0"]),
    ],
)
async def test_a_month_may_be_closed_that_is_known_and_has_no_open_difference(shown, variant, day, accepted, october):
    at = "timestamptz '2026-11-20 12:00:00+00'"
    folder = variant(
        "may-close",
        COMPARED,
        "insert into ops.recon_results (recon_name, recon_key, bucket, field, reason, day, first_seen_at_utc, "
        f"last_seen_at_utc, accepted_note) values ('ledger', 'k', 'missing_here', '', '', '{day}', {at}, {at}, {accepted})",
    )
    dashboard = shown(folder)
    page = await dashboard.text("/finance?first=2026-11-01&last=2026-11-30")
    rows = table(page, CLOSE)
    assert [*rows[0][:4], rows[0][4][:10]] == [*october, "2026-11-20"]
    assert [row[:2] + row[3:5] for row in rows[1:3]] == [
        [m, "no", "not compared", "—"] for m in ("Sep 2026", "Aug 2026")
    ]
    assert (len(rows), rows[-1][0]) == (10, "Jan 2026"), "of the last twelve months those of the calendar"
    without = ask(
        folder,
        "select count(*) filter (is_sold and travel_month = '2026-10-01' and status = 'CONFIRMED' and not is_redeemed), "
        "count(*) filter (is_sold and travel_month = '2026-10-01' and net_amount is null), "
        "count(*) filter (was_sold and is_cancelled and cancelled_date between '2026-10-01' and '2026-10-31' and "
        "coalesce(cancellation_refund, '') not in ('FULL', 'PARTIAL', 'NONE')) from marts.fct_bookings",
    )
    assert rows[0][5:] == [str(number) for number in without[0]]
    assert await led_to(dashboard, page, CLOSE, 5, 6, 7) > 0
    (address,) = links(page, r"reconcile\?first")
    found = await dashboard.text(f"/{address}")
    assert ("Nothing is open." in found or "None in these days" in found) is (october[3] == "0")
    assert CLOSE not in await dashboard.text(f"/finance?{MONTHS}&currency=EUR"), "a month is closed for all currencies"


async def test_where_nothing_is_compared_a_month_that_is_known_is_ready(shown, variant):
    row = table(await shown().text("/finance"), CLOSE)[0]
    assert row[:4] == ["Oct 2026", "yes", "yes", "not compared"]
    folder = variant(
        "closed-october", "insert into ops.closed_periods values ('2026-10', '2026-11-05', true, '', null)"
    )
    assert table(await shown(folder).text("/finance"), CLOSE)[0][0] == "Sep 2026"


async def test_a_closed_month_tells_its_open_differences(shown, variant):
    at = "timestamptz '2026-11-20 12:00:00+00'"
    folder = variant(
        "closed-compared",
        COMPARED,
        "insert into ops.closed_periods values ('2026-10', '2026-11-05', true, '', null), "
        "('2026-08', '2026-09-05', true, '', null)",
        "insert into ops.recon_results (recon_name, recon_key, bucket, field, reason, day, first_seen_at_utc, "
        f"last_seen_at_utc) values ('ledger', 'k', 'missing_here', '', '', '2026-10-31', {at}, {at})",
    )
    dashboard, name = shown(folder), "Open differences of closed months"
    assert table(await dashboard.text("/finance"), name) == [["Oct 2026", "1"], ["Aug 2026", "not compared"]]
    assert name not in await dashboard.text("/finance?currency=EUR"), "they are of no currency and no channel"


async def test_a_row_of_revenue_leads_to_the_bookings_behind_it(shown):
    dashboard = shown()
    page = await dashboard.text("/revenue?first=2026-09-25&last=2026-12-12")
    caption = "Sold bookings in EUR, the largest first"
    rows = table(page, caption)
    assert len(rows) > 1
    for addresses, row in zip(leads(page, caption), rows, strict=True):
        behind = table(await dashboard.text(f"/{addresses[2]}"), "Bookings")
        assert [[each[4], each[6]] for each in behind] == [row[:2]] * int(row[2])
        assert set(addresses[2:]) == {addresses[2]}, "guests and amounts lead to the same"


@pytest.mark.deep(3, everyday=3)
@pytest.mark.parametrize(
    ("caption", "columns"),
    [
        (ALL, (5, 6)),
        (NET, (6, 7)),
        ("Taxes in all, by name", (4,)),
        ("Taxes in the prices of sold bookings, by month of travel, name and channel", (6,)),
        ("Cancelled bookings in all", (3, 4, 5, 7, 10, 11, 12)),
        (REFUNDS, (4, 5, 6, 8, 11, 12, 13)),
        ("Deferred revenue in all", (4,)),
        (DEFERRED, (4,)),
        ("Deferred revenue at the end of Nov 2026, by month of travel", (4,)),
    ],
)
async def test_a_row_leads_to_the_bookings_behind_it(shown, told_apart, caption, columns):
    dashboard = shown(told_apart)
    page = await dashboard.text(f"/finance?{MONTHS}")
    assert await led_to(dashboard, page, caption, *columns) > 2 * len(columns)
    there = leads(page, caption)
    amounts = [row[at] for row in there for at in range(1, len(row)) if at not in columns and row[at]]
    assert set(amounts) <= {row[at] for row in there for at in columns}, "they lead to the bookings that they are of"
    assert amounts


@pytest.fixture(scope="module")
def told_apart(variant):
    """A copy whose bookings differ in price, tax and refund."""
    return variant(
        "each-refund",
        "update core.bookings set net_amount = null where booking_uuid < '4'",
        "update core.bookings set retail_amount = null where booking_uuid > 'e'",
        "delete from core.booking_taxes where booking_uuid < '8'",
        "update core.booking_taxes set currency = 'CHF' where booking_uuid > 'c' and booking_uuid < 'e'",
        "update core.bookings set cancellation_refund = ['FULL', 'FULL', 'FULL', 'FULL', 'PARTIAL', 'PARTIAL', 'PARTIAL', "
        "'NONE', 'NONE', 'VOUCHER'][1 + ascii(substr(booking_uuid, 2, 1)) % 10]",
    )


async def test_cancellations_have_the_money_of_each_product_and_what_is_due_or_kept(shown, variant):
    folder = variant(
        "refunds",
        "update core.bookings set cancellation_refund = ['FULL', 'PARTIAL', 'NONE'][1 + ascii(substr(booking_uuid, 3, 1)) % 3]",
    )
    page = await shown(folder).text("/cancellations?first=2026-10-01&last=2026-11-15")
    days = "between '2026-10-01' and '2026-11-15'"
    sums = ", ".join(
        f"sum(retail_amount) filter (cancelled_date {days} and cancellation_refund = '{refund}')"
        for refund in ("FULL", "PARTIAL", "NONE")
    )
    money = ask(folder, f"select currency, {sums} from marts.fct_bookings where was_sold and is_cancelled group by 1")
    shown_money = {row[0]: row[3:6] for row in table(page, "Retail price of cancelled bookings, by currency")}
    assert shown_money["EUR"] == next([told(each or Decimal(0), c) for each in of] for c, *of in money if c == "EUR")
    products = ask(
        folder,
        "select product_name, currency, sum(retail_amount) filter (is_cancelled), count(*) filter (is_cancelled) "
        f"from marts.fct_bookings where was_sold and booking_date {days} group by 1, 2 order by 4 desc, 1, 2",
    )
    rows = table(page, "Share cancelled, by product and currency")
    assert sorted((row[0], row[2], row[3]) for row in rows) == sorted(
        (name, told(amount if count else Decimal(0), currency), f"{count:,}")
        for name, currency, amount, count in products
    )
