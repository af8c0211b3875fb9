"""The page Bookings: who is in the list, what the list comes to, and that a single booking is found from it."""

import datetime as dt
import html
import re
from decimal import Decimal
from urllib.parse import parse_qsl, urlencode

import pytest
from tests.dashboard.test_pages import A_YEAR_LATER, ask, leads, led_to, plain, table, tiles
from tests.dashboard.test_today import NOW, links

from octo_sync.dashboard.links import bookings_page, venue_time
from octo_sync.flows import wording

DAY = dt.date(2026, 11, 1)
CHOSEN = {
    "sold": "is_sold and travel_date between '2026-11-01' and '2026-11-30'",
    "held": "status in ('ON_HOLD', 'PENDING') and travel_date between '2026-11-01' and '2026-11-30' "
    "and coalesce(utc_expires_at > timestamptz '2026-11-20 13:00:00+00', true)",
    "made": "was_sold and booking_date between '2026-11-01' and '2026-11-30'",
    "lost": "was_sold and is_cancelled and booking_date between '2026-11-01' and '2026-11-30'",
    "deferred": "sold_date <= '2026-11-30' and travel_date > '2026-11-30' "
    "and coalesce(cancelled_date, '9999-01-01') > '2026-11-30'",
    "books": "was_sold and travel_date between '2026-11-01' and '2026-11-30' and sold_date <= '2026-11-19' "
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


async def test_travel_has_its_start_and_leads_to_the_departure_where_there_is_one(shown, published):
    dashboard = shown()
    page = await dashboard.text("/bookings?first=2026-11-01&last=2026-11-30")
    found = ask(
        published, f"select {NAME}, travel_date, local_start_at, departure_key, option_name from marts.fct_bookings "
        f"where {CHOSEN['sold']}"
    )  # fmt: skip
    listed = {row[0]: row for row in table(page, "Bookings")}
    for name, day, at, _, option in found:
        starts = f" {at:%H:%M}" if at and at.time() != dt.time() else ""
        assert (listed[name][2], listed[name][5]) == (f"{day}{starts}", option)
    assert {":" in row[2] for row in listed.values()} == {False, True}
    addresses = links(page, r"departure\?")
    assert len(addresses) == sum(key is not None for *_, key, _ in found) > 0
    assert "no such departure" not in await dashboard.text(f"/{addresses[0]}")


async def test_the_latest_cancellation_comes_first(shown, published):
    page = await shown().text("/bookings?kind=cancelled&first=2026-08-01&last=2026-11-30")
    where = CHOSEN["cancelled"].replace("2026-11-01", "2026-08-01")
    at = dict(ask(published, f"select {NAME}, utc_cancelled_at from marts.fct_bookings where {where}"))
    listed = [at[row[0]] for row in table(page, "Bookings")]
    assert listed == sorted(at.values(), reverse=True)
    assert len(set(listed)) > 10


async def test_the_numbers_of_overview_and_cancellations_lead_to_their_bookings(shown):
    dashboard = shown()
    page = await dashboard.text("/")
    (address, *_) = links(page, r"bookings\?kind=made")
    assert len(table(await dashboard.text(f"/{address}"), "Bookings")) == int(tiles(page)["bookings"][0]) > 0
    assert await led_to(dashboard, page, "Bookings made per day and channel", 2, 3) > 10
    page = await dashboard.text("/cancellations?first=2026-10-10&last=2026-11-15")
    (address, *_) = links(page, "bookings.kind=lost")
    lost = await dashboard.text(f"/{address}")
    assert str(len(table(lost, "Bookings"))) == tiles(page)["cancelled"][1].split()[0]
    for caption, *columns in (
        ("Retail price of cancelled bookings, by currency", 6, 7, 8),
        ("Share cancelled, by month of booking and channel", 2, 3),
    ):
        assert await led_to(dashboard, page, caption, *columns) > 3
    assert await led_to(dashboard, page, "Cancelled bookings, by notice before travel", 1) > 1
    caption = "Share cancelled, by product and currency"
    for row, addresses in zip(table(page, caption), leads(page, caption), strict=True):
        # No list is of the bookings of no product alone.
        assert all(addresses[3:5]) == (row[0] != "—")
    page = await dashboard.text("/pickup?first=2026-11-01&last=2026-12-31")
    assert await led_to(dashboard, page, "Days from booking to travel, by channel", 1, *range(3, 10)) > 3
    page = await dashboard.text("/channels?first=2026-11-01&last=2026-12-31")
    assert await led_to(dashboard, page, "Channels in EUR, by month of travel", 8) > 1


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
    assert {row[9] for row in table(page, "Bookings")} == {channel}
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
    assert len(times) == 11
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
    assert "expected sold, held, made, lost, cancelled, books, deferred, open" in answer.text.replace("&#39;", "'")
    page = await shown().text("/bookings")
    assert {row[2][:10] for row in table(page, "Bookings")} <= {f"2026-11-{day}" for day in range(20, 27)}
    assert table(page, "Bookings")


ONLY = {
    "full": "cancellation_refund = 'FULL'",
    "partial": "cancellation_refund = 'PARTIAL'",
    "none": "cancellation_refund = 'NONE'",
    "not_stated": "(cancellation_refund is null or cancellation_refund not in ('FULL', 'PARTIAL', 'NONE'))",
    "no_net": "net_amount is null",
    "no_retail": "retail_amount is null",
}


@pytest.fixture(scope="module")
def told_apart(variant):
    """A copy whose bookings differ in what is said of their refund, and in which price they have."""
    return variant(
        "only",
        "update core.bookings set cancellation_refund = case substr(booking_uuid, 1, 1) when '0' then 'PARTIAL' when '1' then "
        "'NONE' when '2' then 'LATER' when '3' then 'PARTIAL' when '4' then 'NONE' when '5' then null else 'FULL' end",
        "update core.bookings set net_amount = null where booking_uuid < '4'",
        "update core.bookings set retail_amount = null where booking_uuid > 'c'",
        "update core.bookings set utc_redeemed_at = null where booking_uuid > '8'",
    )


@pytest.mark.parametrize("only", ONLY)
async def test_only_narrows_the_list_and_its_sums_and_is_said(shown, told_apart, only):
    kind = "sold" if only.startswith("no_") else "cancelled"
    chosen = CHOSEN[kind].replace("2026-11-01", "2026-08-01")
    found = ask(told_apart, f"select {NAME} from marts.fct_bookings where {chosen} and {ONLY[only]}")
    every = ask(told_apart, f"select {NAME} from marts.fct_bookings where {chosen}")
    first, last = dt.date(2026, 8, 1), dt.date(2026, 11, 30)
    page = await shown(told_apart).text(f"/{bookings_page({}, kind, first, last, only=only)}")
    listed = table(page, "Bookings")
    assert sorted(row[0] for row in listed) == sorted(name for (name,) in found)
    assert 0 < len(listed) < len(every)
    assert sum(int(row[1]) for row in table(page, "In all, by currency")) == len(found)
    assert "Only those" in page
    assert f'<input type="hidden" name="only" value="{only}">' in page


async def test_what_is_no_part_is_refused(shown):
    answer = await shown().get("/bookings?only=half")
    assert answer.status_code == 400
    assert "The field only is" in answer.text
    answer = await shown().get("/bookings?only=lead&name=soon")
    assert answer.status_code == 400
    assert "The field name is" in answer.text


@pytest.mark.parametrize("kind", ["made", "lost", "cancelled"])
async def test_what_happened_is_of_the_last_seven_days_where_none_are_named(shown, published, kind):
    where = CHOSEN[kind].replace("2026-11-01", "2026-11-14").replace("2026-11-30", "2026-11-20")
    found = ask(published, f"select {NAME} from marts.fct_bookings where {where}")
    page = await shown().text(f"/bookings?kind={kind}")
    assert sorted(row[0] for row in table(page, "Bookings")) == sorted(name for (name,) in found) != []
    assert 'name="first" value="2026-11-14"' in page
    assert 'name="last" value="2026-11-20"' in page
    assert 'name="first" value="2026-10-26"' in await shown().text(f"/bookings?kind={kind}&last=2026-11-01")


async def test_notice_is_of_cancelled_bookings_and_so_is_what_is_said_of_a_refund(shown, told_apart):
    page = await shown(told_apart).text("/bookings?kind=made&first=2026-11-01&last=2026-11-30")
    listed = {row[0]: row for row in table(page, "Bookings")}
    zone = "coalesce(b.time_zone, p.time_zone)"
    found = ask(
        told_apart, f"select coalesce(b.supplier_reference, b.reseller_reference, b.booking_uuid), b.status, "
        f"b.local_date - cast(b.utc_cancelled_at at time zone {zone} as date), b.cancellation_refund "
        "from core.bookings b join core.products p using (product_id)",
    )  # fmt: skip
    seen = set()
    for name, status, notice, refund in found:
        if name in listed:
            said = (refund.lower() if refund else "not stated") if status == "CANCELLED" else "—"
            assert listed[name][5:7] == ["—" if notice is None else str(notice), said]
            seen.add(said)
    assert seen >= {"—", "not stated", "full"}


async def test_open_dated_bookings_say_when_they_were_used_and_today_counts_the_others(shown, told_apart):
    page = await shown(told_apart).text("/bookings?kind=open")
    listed = {row[0]: row[4] for row in table(page, "Bookings")}
    found = ask(
        told_apart, f"select {NAME}, status, cast(utc_redeemed_at at time zone time_zone as date) from marts.fct_bookings "
        "where is_sold and travel_date is null"
    )  # fmt: skip
    unused = {name for name, status, day in found if status == "CONFIRMED" and day is None}
    for name, status, day in found:
        assert listed[name] == (str(day) if day else "on an unknown day" if status == "REDEEMED" else "not yet")
    assert len({"not" in listed[name] for name in listed}) == 2
    today = await shown(told_apart).text("/today")
    assert tiles(today)["open-dated"][0] == str(len(unused))
    (address,) = links(today, r"bookings\?kind=open")
    assert {row[0] for row in table(await shown(told_apart).text(f"/{address}"), "Bookings")} == unused != set()


@pytest.mark.parametrize("name", ["connection_id", "currency", "product_key"])
def test_a_row_without_a_channel_a_currency_or_a_product_leads_nowhere(name):
    row = {"connection_id": "main", "currency": "EUR", "product_key": "main|1"}
    assert bookings_page(row, "made", DAY, DAY)
    assert not bookings_page(row | {name: None}, "made", DAY, DAY)


def test_a_moment_is_by_the_venues_clock_or_else_in_utc_and_midnight_is_a_time():
    at = dt.datetime(2026, 11, 19, 23, tzinfo=dt.UTC)
    told = [venue_time("at")({"at": at, "time_zone": zone}) for zone in ("Europe/Berlin", None, "No/Where")]
    assert told == ["2026-11-20 00:00", "2026-11-19 23:00 UTC", "2026-11-19 23:00 UTC"]


async def test_the_day_at_whose_end_they_were_on_the_books_is_one_click_and_so_is_what_came_before(shown):
    dashboard = shown()
    page = await dashboard.text("/bookings?kind=books&first=2026-12-01&last=2026-12-31")
    offered = {
        html.unescape(a) for a in re.findall(r'"\./(bookings\?kind=books[^"]*)"', page.partition("At the end of")[2])
    }
    week = "bookings?kind=books&first=2026-12-01&last=2026-12-31&by=2026-11-19&since=2026-11-12"
    assert {week, week.replace("19&since=2026-11-12", "12")} <= offered
    page = await dashboard.text(f"/{week}")
    assert "Booked or cancelled Fri 13 Nov 2026 to Thu 19 Nov 2026" in plain(page)
    earlier = week.replace("19&since=2026-11-12", "12&since=2026-11-05")
    assert earlier in html.unescape(page), "the same span a week earlier"
    assert page.count('aria-current="true">yesterday') == page.count('aria-current="true">7 days before') == 1


async def test_all_that_are_on_hold_are_listed_whenever_they_travel(shown, published):
    ((count, latest),) = ask(
        published,
        "select count(*), max(travel_date) from marts.fct_bookings where travel_date >= '2026-11-20' and (status = 'PENDING' "
        f"or (status = 'ON_HOLD' and coalesce(utc_expires_at > timestamptz '{NOW.isoformat()}', true)))",
    )
    assert count
    assert latest > NOW.date() + dt.timedelta(days=7)
    assert len(table(await shown().text("/bookings?kind=held"), "Bookings")) == count
