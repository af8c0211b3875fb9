"""The pages Channels, Revenue and Occupancy: shares, margins, revenue per guest and seat, hours of the week."""

import datetime as dt

import pytest
from tests.dashboard.test_pages import ask, charts, heat_map, led_to, plain, table, tiles
from tests.dashboard.test_today import links

from octo_sync.flows import wording

PER_SEAT = "Revenue per guest and per seat offered, by month of travel and product; all channels together"
TWO = (
    "insert into core.connections select * replace ('web' as connection_id, 'Web shop' as channel) from core.connections",
    "update core.bookings set connection_id = 'web' where booking_uuid < '6'",
)


async def test_a_new_channel_changes_the_colour_of_no_other(shown, published, variant):
    """One whose name and connection come first in the alphabet."""
    folder = variant(
        "added",
        *(statement.replace("'web'", "'a-web'").replace("Web shop", "A shop") for statement in TWO),
        "insert into core.products select * replace ('a-web' as connection_id, first_seen_at_utc + interval '1 day' as "
        "first_seen_at_utc) from core.products",
    )
    ((name,),) = ask(published, "select channel_name from marts.dim_channel")

    async def colors(of):
        """All of each channel, on three pages."""
        found = {}
        for path in ("", "channels?first=2026-10-01&last=2026-12-31", "cancellations"):
            for chart in charts(await shown(of).text(f"/{path}")).values():
                for series in chart["option"]["series"]:
                    found.setdefault(series.get("name"), set()).add(series.get("color"))
        return found[name], found.get("A shop", set())

    (before, none), (after, new) = await colors(published), await colors(folder)
    assert none == set()
    assert after == before
    assert len(before) == len(new) == 1
    assert new != before


async def test_channels_stand_in_one_order_whichever_sells_most_in_a_picture(shown, variant):
    folder = variant(
        "orders",
        TWO[0],
        "update core.bookings set connection_id = 'web' where booking_uuid < case currency when 'USD' then 'c' else '4' end",
    )
    names = {name for (name,) in ask(folder, "select channel_name from marts.dim_channel")}
    sums = (
        "select currency, channel_name, sum(retail_amount) as retail from marts.fct_bookings where is_sold group by all"
    )
    largest = dict(ask(folder, f"select currency, arg_max(channel_name, retail) from ({sums}) group by currency"))
    assert {largest["USD"], largest["EUR"]} == names
    found = {}
    for path in ("", "channels?first=2026-10-01&last=2026-12-31", "revenue", "cancellations", "pickup"):
        for id_, chart in charts(await shown(folder).text(f"/{path}")).items():
            order = tuple(each["name"] for each in chart["option"]["series"] if each["name"] in names)
            found |= {id_: order} if order else {}
    assert {"mix-usd", "mix-eur", "revenue-usd", "rate-by-month", "lead-times", "bookings-by-channel"} <= found.keys()
    assert len({order for order in found.values() if len(order) > 1}) == 1, found


@pytest.mark.deep(2, everyday=1)
async def test_shares_of_a_month_add_up_and_the_margin_is_of_known_net_prices(shown, variant):
    folder = variant("mix", *TWO)
    found = ask(
        folder,
        "select channel_name, sum(margin_amount) / sum(retail_amount) filter (where margin_amount is not null) "
        "from marts.fct_bookings where is_sold and currency = 'USD' and travel_month = '2026-12-01' group by 1 order by 1",
    )
    page = await shown(folder).text("/channels?first=2026-12-05&last=2026-12-06&currency=USD")
    option = charts(page)["mix-usd"]["option"]
    drawn = option["series"]
    assert (option["percent"], option["yAxis"]["max"]) == (True, 1)
    assert {series["name"] for series in drawn} == {name for name, _ in found}
    assert len(found) == 2
    assert sum(series["data"][0]["value"] for series in drawn) == pytest.approx(1), "a month to come is paler"
    rows = table(page, "Channels in USD, by month of travel")
    december = sorted((row[1], row[7]) for row in rows if row[0] == "Dec 2026")
    assert december == [(name, wording.share(rate)) for name, rate in found]
    guests = (
        "select channel_name, cast(sum(pax_count) as text) from marts.fct_bookings where is_sold and currency = 'USD' "
    )
    guests = ask(folder, f"{guests} and travel_month = '2026-12-01' group by 1 order by 1")
    assert sorted((row[1], row[9]) for row in rows if row[0] == "Dec 2026") == guests
    assert "Final share a year earlier" not in page, "last year is not known"
    later = (
        "insert into core.bookings select * replace ('later-' || booking_uuid as booking_uuid, date '2027-12-15' as local_date)"
        " from core.bookings where local_date between '2026-12-01' and '2026-12-31'"
    )
    page = await shown(variant("mix-later", *TWO, later)).text(
        "/channels?first=2027-12-05&last=2027-12-06&currency=USD"
    )
    rows = {row[1]: row for row in table(page, "Channels in USD, by month of travel")}
    assert {name: row[3] for name, row in rows.items()} == {name: row[2] for name, row in rows.items()}
    assert len(rows) == len({row[3] for row in rows.values()}) == 2


async def test_revenue_per_guest_and_seat_has_the_decimals_of_its_currency(shown, published):
    page = await shown().text("/revenue?first=2026-11-01&last=2026-12-31")
    found = ask(
        published,
        "select product_name, currency, guest_amount, guests, seat_amount, seats_offered from marts.agg_revenue_monthly "
        "where travel_month = '2026-11-01' order by currency, retail_amount desc",
    )
    digits = {"JPY": 0, "BHD": 3, "KWD": 3}

    def told(amount, number, currency):
        return (
            f"{amount / number:,.{digits.get(currency, 2)}f} {currency}" if amount is not None and number else "unknown"
        )

    rows = [[*row[:3], row[4]] for row in table(page, PER_SEAT)]
    assert rows == [
        ["Nov 2026", name, told(guest, guests, c), told(seat, seats, c)]
        for name, c, guest, guests, seat, seats in found
    ]
    assert any(row[3] == "unknown" for row in rows)
    assert any(row[3] != "unknown" for row in rows)


@pytest.fixture(scope="module")
def seen_twice(variant):
    """A copy in which a second connection sees seven of the bookings, too."""
    seven = "from core.bookings where not is_test and not is_deleted order by booking_uuid limit 7"
    return variant(
        "seen-twice",
        TWO[0],
        f"insert into core.bookings select * replace ('web' as connection_id) {seven}",
    )


@pytest.mark.deep(1, everyday=2)
@pytest.mark.parametrize(
    "path", ["finance", "revenue", "pickup", "cancellations", "bookings", "channels", pytest.param("", id="overview")]
)
async def test_a_page_that_counts_bookings_for_each_connection_says_how_many_several_see(shown, seen_twice, path):
    said = "7 bookings are seen through several connections and counted once for each"
    assert said in plain(await shown(seen_twice).text(f"/{path}"))


async def test_nothing_is_said_of_several_connections_where_one_is_chosen_or_is_all_there_is(shown, seen_twice):
    for page in (await shown(seen_twice).text("/finance?channel=web"), await shown().text("/finance")):
        assert "several connections and" not in page


async def test_of_one_channel_there_is_no_revenue_per_seat(shown):
    page = await shown().text("/revenue?channel=main")
    assert PER_SEAT not in page
    assert "Counted for all channels together" in plain(page)


async def test_the_map_of_the_week_has_each_weekday_and_hour(shown, published):
    page = await shown().text("/occupancy?first=2026-11-23&last=2026-12-06")
    heads, rows = heat_map(page, "fill-by-hour")
    hours = ask(
        published,
        "select distinct extract(hour from d.local_start_at) from marts.fct_departures d join marts.dim_product p "
        "using (product_key) where d.travel_date between '2026-11-23' and '2026-12-06' "
        "and p.availability_type = 'START_TIME' order by 1",
    )
    assert list(rows) == ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
    assert heads == ["Weekday", "all day", *(f"{hour:02d}" for (hour,) in hours)]


def asked_to(day):
    """Also the month of `day` was asked for, up to it."""
    return (
        f"insert into ops.coverage select * replace ('[\"{day:%Y-%m}\"]' as key, '{day:%Y-%m}' as travel_month, "
        f"date '{day:%Y-%m-01}' as window_start, date '{day}' as window_end) from ops.coverage where resource = 'bookings' "
        "order by window_end desc limit 1"
    )


async def test_a_month_stands_beside_the_one_a_year_earlier_where_that_is_known(shown, variant):
    folder = variant(
        "later",
        *TWO,
        "insert into core.bookings select * replace ('later-' || booking_uuid as booking_uuid, date '2027-12-15' as local_date)"
        " from core.bookings where local_date between '2026-12-01' and '2026-12-31' and currency = 'USD' "
        "and booking_uuid >= '6'",
        "update core.bookings set utc_created_at = '2025-11-01 12:00:00Z', utc_confirmed_at = '2025-11-19 12:00:00Z' "
        "where local_date between '2026-12-01' and '2026-12-31' and right(booking_uuid, 1) < '9'",
        asked_to(dt.date(2027, 12, 31)),
    )
    of = "marts.fct_bookings where currency = 'USD' and travel_month = '2026-12-01' and"
    found = ask(
        folder,
        f"select channel_name, sum(retail_amount) from {of} sold_date = '2025-11-19' "
        "and (not is_cancelled or cancelled_date is not null) group by 1 order by 1",
    )
    assert len(found) == 2
    assert found != ask(folder, f"select channel_name, sum(retail_amount) from {of} is_sold group by 1 order by 1")
    page = await shown(folder).text("/revenue?first=2027-12-01&last=2027-12-31&currency=USD")
    *_, before = charts(page)["revenue-usd"]["option"]["series"]
    assert (before["name"], before["type"], before["data"]) == (
        "a year earlier",
        "line",
        [float(sum(a for _, a in found))],
    )
    ((now,),) = ask(
        folder, "select sum(retail_amount) from marts.fct_bookings where is_sold and travel_month = '2027-12-01'"
    )
    assert tiles(page)["retail_amount"] == (
        wording.money_text(now, "USD"),
        f"vs {wording.money_text(sum(a for _, a in found), 'USD')} a year earlier, by the same time",
    )
    rows = table(page, "Sold bookings in USD, by month of travel and channel")
    assert [(row[1], row[7]) for row in rows] == [(name, wording.money_text(amount, "USD")) for name, amount in found]
    nothing, sold = sorted(rows, key=lambda row: int(row[2]))
    assert nothing[2] == "0" < sold[2], "one has sold only a year earlier"
    (address,) = {each for each in links(page, r"bookings\?") if "channel" in each and "product" not in each}
    assert len(table(await shown(folder).text(f"/{address}"), "Bookings")) == int(sold[2])
    for days in ("first=2027-03-01&last=2027-12-31", "first=2026-12-01&last=2026-12-31"):
        page = await shown(folder).text(f"/revenue?{days}&currency=USD")
        drawn = charts(page)["revenue-usd"]["option"]["series"]
        lines = [(series["data"][0], series["data"][-1]) for series in drawn if series["type"] == "line"]
        assert lines == ([(None, before["data"][0])] if "2027" in days else []), days


async def test_a_month_that_was_not_asked_for_to_its_end_is_compared_with_none(shown, variant):
    later = "insert into core.bookings select * replace ('{0}-' || booking_uuid as booking_uuid, date '{1}' as local_date) from"
    december = "core.bookings where local_date between '2026-12-01' and '2026-12-31' and currency = 'USD'"
    folder = variant(
        "in-part",
        f"{later.format('then', '2027-01-05')} {december}",
        f"{later.format('too', '2027-02-05')} {december}",
        *(
            f"update core.bookings set {at} = '2025-11-01' where local_date >= '2026-12-01'"
            for at in ("utc_created_at", "utc_confirmed_at")
        ),
        f"{later.format('now', '2027-12-15')} {december} and booking_uuid >= '6'",
        f"{later.format('part', '2028-01-05')} {december} and booking_uuid >= '6'",
        asked_to(dt.date(2027, 12, 31)),
        asked_to(dt.date(2028, 1, 29)),
    )
    page = await shown(folder).text("/revenue?first=2027-12-01&last=2028-02-29&currency=USD")
    assert "Travel after Sat 29 Jan 2028 is not known" in plain(page)
    alone = tiles(await shown(folder).text("/revenue?first=2027-12-01&last=2027-12-31&currency=USD"))
    for name, (number, against) in alone.items():
        assert tiles(page)[name][1] == f"{number} {against}, travel Dec 2027"
    bars, line = ([series["data"] for series in charts(page)["revenue-usd"]["option"]["series"]][n] for n in (0, -1))
    assert [bars[2], *line[1:]] == [None, None, None]
    assert None not in (*bars[:2], line[0])
    rows = [row for row in table(page, "Sold bookings in USD, by month of travel and channel") if row[0] == "Feb 2028"]
    assert [row[2:7] for row in rows] == [["unknown"] * 5]
    assert rows[0][7].endswith("USD")


async def test_the_tiles_of_the_overview_lead_to_pages_of_the_same_days(shown, variant):
    sold_out = (
        "update core.availability set status = 'SOLD_OUT', vacancies = 0 where local_date between '2026-11-22' and "
    )
    dashboard = shown(
        variant("sold-out", f"{sold_out} '2026-11-23'", f"{sold_out} '2027-03-01' and product_id < 'c'", remake=True)
    )
    page = await dashboard.text("/")
    found = tiles(page)
    (cancelled,) = links(page, "cancellations?")
    assert tiles(await dashboard.text(f"/{cancelled}"))["cancelled"][0] == found["cancelled"][0] != "—"
    (ahead, *_) = links(page, "occupancy?")
    products = table(await dashboard.text(f"/{ahead}"), "Occupancy by product")
    assert found["sold-out"][0] == str(sum(int(row[6]) for row in products)) != "0"
    assert f"of {sum(int(row[4]) for row in products)} days" in found["sold-out"][1]


async def test_sold_out_and_nearly_full_departures_lead_to_their_pages(shown, published):
    dashboard = shown()
    page = await dashboard.text("/occupancy?first=2026-11-20&last=2026-12-31")
    found = ask(
        published,
        "select product_name, is_sold_out, taken, capacity - taken from marts.fct_departures where is_followed and travel_date "
        "between '2026-11-20' and '2026-12-31' and (is_sold_out or (not is_closed and fill_rate >= 0.9)) order by all",
    )
    rows = table(page, "Departures that are sold out or at least 90 % full")
    assert sorted((row[1], row[3] == "yes", row[6], row[4]) for row in rows) == sorted(
        (name, is_out, *("unknown" if number is None else str(number) for number in numbers))
        for name, is_out, *numbers in found
    )
    closed = ask(
        published,
        "select count(*) from marts.fct_departures where is_followed and is_closed "
        "and travel_date between '2026-11-20' and '2026-12-31'",
    )
    assert [(len(table(page, "Departures that are closed")),)] == closed != [(0,)]
    assert {is_out for _, is_out, *_ in found} == {True, False}
    (address, *_) = links(page, "departure?")
    assert rows[0][1] in plain(await dashboard.text(f"/{address}"))


async def test_what_has_left_is_weak_no_more_and_what_is_sold_no_more_says_so(shown, variant):
    folder = variant(
        "empty-boats",
        "update core.availability set status = 'AVAILABLE', vacancies = capacity where local_date = '2026-11-20'",
        remake=True,
    )
    now = "timestamptz '2026-11-20 12:00:00+00'"
    (weak, left, ended), *_ = ask(
        folder,
        "select count(*), count(*) filter (gone), count(*) filter (a.utc_cutoff_at <= "
        f"{now} and not gone) from (select *, utc_start_at <= {now} and not is_all_day "
        f"and cast({now} at time zone time_zone as date) = travel_date as gone from marts.fct_departures) d "
        "join core.availability a using (connection_id, product_id, option_id, availability_id) "
        "where d.is_followed and d.travel_date = '2026-11-20' and d.fill_rate < 0.2 and not d.is_closed",
    )
    page = await shown(folder).text("/occupancy?first=2026-11-20&last=2026-11-20")
    rows = table(page, "Departures that are not closed and less than 20 % full")
    assert len(rows) == weak - left
    assert sum(row[-1].startswith("sale ended ") for row in rows) == ended
    assert min(left, ended) > 0
    assert tiles(page)["weak"][0] == str(len(rows))


@pytest.mark.parametrize("page", ["revenue", "channels", "bookings", "pickup", "finance"])
async def test_days_of_travel_that_nobody_asked_for_are_not_taken_for_days_without_bookings(shown, published, page):
    ((until,),) = ask(published, "select min(bookings_to) from marts.dim_channel")
    said = f"Travel after {wording.day(until)} is not known: it was not asked for."
    dashboard = shown()
    assert said in await dashboard.text(
        f"/{page}?first={until + dt.timedelta(days=3)}&last={until + dt.timedelta(days=40)}"
    )
    assert said not in await dashboard.text(f"/{page}?first=2026-10-01&last=2026-10-31")


async def test_days_of_departures_that_nobody_asked_for_are_not_taken_for_days_without_any(shown, published):
    first, last = ask(
        published, "select min(window_start), max(window_end) from ops.coverage where resource = 'availability'"
    )[0]
    before, after = (
        f"Departures {side} {wording.day(day)} are not known: they were not asked for."
        for side, day in (("before", first), ("after", last))
    )
    dashboard = shown()
    page = await dashboard.text(f"/occupancy?first={first - dt.timedelta(days=1)}&last={first + dt.timedelta(days=3)}")
    assert before in page
    assert after not in page
    page = await dashboard.text(f"/occupancy?first={last}&last={last + dt.timedelta(days=1)}")
    assert before not in page
    assert after in page


async def test_pickup_of_months_of_which_some_were_not_asked_for_is_not_complete(shown, published, variant):
    """Also where each that has a row is: one without a booking has none."""
    ((since,),) = ask(published, "select max(bookings_from) from marts.dim_channel")
    whole = (since.replace(day=1) + dt.timedelta(days=31)).replace(day=1)
    folder = variant("first-months", f"delete from core.bookings where local_date < '{whole}'")
    page = await shown(folder).text(
        f"/pickup?first={since - dt.timedelta(days=90)}&last={whole + dt.timedelta(days=40)}"
    )
    assert f"Data before {wording.day(since)} is incomplete." in page
    *months, together = table(page, "Guests on the books, by month of travel")
    assert {row[-1] for row in months} == {"yes"}
    assert (together[0], together[-1]) == ("all of them", "no")


async def test_extras_lead_to_the_bookings_that_have_them(shown, variant):
    dashboard, caption, address = (
        shown(),
        "Extras of sold bookings, the most first",
        "/revenue?first=2026-09-25&last=2026-12-12",
    )
    assert await led_to(dashboard, await dashboard.text(address), caption, 5) > 1
    assert caption not in await shown(variant("no-extras", "delete from core.booking_extra_items")).text(address)
