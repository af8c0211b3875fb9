"""The page Bookings: who is in the list, what the list comes to, and that a single booking is found from it."""

import datetime as dt
import html
import re
from decimal import Decimal
from urllib.parse import parse_qsl, urlencode

import pytest
from tests.dashboard.test_pages import A_YEAR_LATER, ask, table, tiles
from tests.dashboard.test_today import links

from octo_sync.dashboard.links import bookings_page
from octo_sync.flows import wording

DAY = dt.date(2026, 11, 1)
CHOSEN = {
    "sold": "is_sold and travel_date between '2026-11-01' and '2026-11-30'",
    "made": "was_sold and booking_date between '2026-11-01' and '2026-11-30'",
    "lost": "was_sold and is_cancelled and booking_date between '2026-11-01' and '2026-11-30'",
    "deferred": "was_sold and booking_date <= '2026-11-30' and travel_date > '2026-11-30' "
    "and coalesce(cancelled_date, '9999-01-01') > '2026-11-30'",
    "books": "was_sold and travel_date between '2026-11-01' and '2026-11-30' and booking_date <= '2026-11-19' "
    "and (not is_cancelled or cancelled_date > '2026-11-19')",
    "cancelled": "was_sold and is_cancelled and cancelled_date between '2026-11-01' and '2026-11-30'",
    "open": "is_sold and travel_date is null",
}
NAME = "coalesce(supplier_reference, reseller_reference, booking_uuid)"


@pytest.mark.parametrize("kind", CHOSEN)
async def test_a_list_has_exactly_its_bookings_and_its_sums(shown, published, kind):
    where = CHOSEN[kind]
    page = await shown().text(f"/bookings?kind={kind}&first=2026-11-01&last=2026-11-30")
    listed = table(page, "Bookings")
    found = ask(published, f"select {NAME} from marts.fct_bookings where {where}")
    assert sorted(row[0] for row in listed) == sorted(name for (name,) in found)
    assert listed
    sums = ask(
        published,
        "select currency, count(*), sum(retail_amount), count(net_amount) from marts.fct_bookings "
        f"where {where} group by 1 order by 1",
    )
    assert [(row[0], row[1], row[3], row[6]) for row in table(page, "In all, by currency")] == [
        (currency, f"{n:,}", wording.money_text(retail, currency), f"{net:,} of {n:,}")
        for currency, n, retail, net in sums
    ]
    (first, *_) = links(page, "booking.find=")
    assert listed[0][0] in await shown().text(f"/{first}")


async def test_the_numbers_of_overview_and_cancellations_lead_to_their_bookings(shown):
    dashboard = shown()
    (address,) = set(links(page := await dashboard.text("/"), r"bookings\?kind=made"))
    assert len(table(await dashboard.text(f"/{address}"), "Bookings")) == int(tiles(page)["bookings"][0]) > 0
    page = await dashboard.text("/cancellations?first=2026-10-10&last=2026-11-15")
    behind = [int(tiles(page)["cancelled"][1].split()[0])]
    for row in table(page, "Retail price of cancelled bookings, by currency"):
        behind += [int(row[1]), int(row[3]), int(row[6])]
    for row in table(page, "Share cancelled, by month of booking and channel"):
        behind += [int(row[2]), int(row[3])]
    for row in table(page, "Share cancelled, by product"):
        # No list is of the bookings of no product alone.
        behind += [int(row[2]), int(row[3])] if row[0] != "—" else []
    addresses = links(page, "bookings.kind=(?:made|lost|cancelled)")
    assert len(addresses) == len(behind) > 5
    for address, count in zip(addresses, behind, strict=True):
        found = await dashboard.text(f"/{address}")
        assert len(table(found, "Bookings")) == count if count else "There is no such booking." in found


@pytest.mark.deep(6)
async def test_the_numbers_of_pace_lead_to_their_bookings_and_these_come_to_the_same(shown, variant):
    folder = variant("pace", *A_YEAR_LATER)
    dashboard = shown(folder)
    ((product, channel),) = ask(folder, "select product_key, connection_id from marts.fct_bookings limit 1")
    seen = {"number": 0, "money": 0, "left": 0, "year": 0}
    for asked in ("", f"&{urlencode({'product': product, 'channel': channel})}"):
        page = await dashboard.text(f"/pickup?first=2026-11-01&last=2027-12-31{asked}")
        found = re.findall(r'<a href="\./(bookings\?kind=books[^"]*)">(.*?)</a>', page)
        for address, said in {(html.unescape(a), html.unescape(re.sub("<[^>]+>", "", t))) for a, t in found}:
            fields = dict(parse_qsl(address.partition("?")[2]))
            behind = await dashboard.text(f"/{address}")
            sums = table(behind, "In all, by currency") if "There is no such booking." not in behind else []
            is_money = "currency" in fields
            amount = sum(decimal(row[3 if is_money else 2]) for row in sums)
            assert amount == decimal(said), address
            seen["money" if is_money else "number"] += 1
            seen["left"] += (
                "since" in fields and any(row[1] == "cancelled" for row in table(behind, "Bookings")) if sums else 0
            )
            seen["year"] += fields["by"] < "2026" and bool(sums)
    assert all(count > 3 for count in seen.values()), seen


def decimal(text):
    return Decimal(re.sub(r"[^\d.-]", "", text.replace("\N{MINUS SIGN}", "-")) or 0)


async def test_filters_narrow_the_list_and_stay_with_the_kind(shown, published):
    connection, channel = ask(
        published, "select connection_id, channel_name from marts.dim_channel order by 1 limit 1"
    )[0]
    page = await shown().text(f"/bookings?kind=cancelled&channel={connection}&first=2026-09-01&last=2026-11-30")
    assert {row[7] for row in table(page, "Bookings")} == {channel}
    assert '<input type="hidden" name="kind" value="cancelled">' in page
    kept = f"kind=open&first=2026-09-01&last=2026-11-30&channel={connection}"
    assert f"bookings?{kept}" in links(page, "bookings")


@pytest.mark.parametrize("field", ["product", "currency"])
async def test_a_product_or_a_currency_is_the_only_one_and_each_time_keeps_it_and_the_kind(shown, published, field):
    column = {"product": "product_key", "currency": "currency"}[field]
    where = CHOSEN["cancelled"]
    ((value, others),) = ask(
        published, f"select min({column}), count(distinct {column}) from marts.fct_bookings where {where}"
    )
    chosen = urlencode({field: value, "kind": "cancelled"})
    page = await shown().text(f"/bookings?first=2026-11-01&last=2026-11-30&{chosen}")
    found = ask(published, f"select {NAME} from marts.fct_bookings where {where} and {column} = $1", value)
    assert sorted(row[0] for row in table(page, "Bookings")) == sorted(name for (name,) in found)
    assert others > 1
    times = [address for address in links(page, "bookings") if address.startswith("bookings?first=")]
    assert len(times) == 7
    assert all(address.endswith(chosen) for address in times)


async def test_more_bookings_than_are_shown_are_counted(shown, monkeypatch):
    dashboard = shown()
    rows = dashboard.source.rows
    many = {"bookings_totals": lambda found: [found[0] | {"bookings": 1_600}, *found[1:]]}
    monkeypatch.setattr(dashboard.source, "rows", lambda name, **of: many.get(name, lambda r: r)(rows(name, **of)))
    page = await dashboard.text("/bookings?first=2026-11-01&last=2026-11-30")
    others = sum(int(row[1].replace(",", "")) for row in table(page, "In all, by currency"))
    assert f"500 of {others:,} are shown" in page


async def test_what_is_no_kind_is_refused_and_no_day_is_a_week_from_today(shown):
    answer = await shown().get("/bookings?kind=holds")
    assert answer.status_code == 400
    assert "expected sold, made, lost, cancelled, books, deferred, open" in answer.text.replace("&#39;", "'")
    page = await shown().text("/bookings")
    assert {row[2] for row in table(page, "Bookings")} <= {f"2026-11-{day}" for day in range(20, 27)}
    assert table(page, "Bookings")


@pytest.mark.parametrize("name", ["connection_id", "currency", "product_key"])
def test_a_row_without_a_channel_a_currency_or_a_product_leads_nowhere(name):
    row = {"connection_id": "main", "currency": "EUR", "product_key": "main|1"}
    assert bookings_page(row, "made", DAY, DAY)
    assert not bookings_page(row | {name: None}, "made", DAY, DAY)
