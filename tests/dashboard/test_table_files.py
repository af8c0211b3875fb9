"""Each table of a page is a file too: all its rows, values whole, and what a spreadsheet would run as a formula is text."""

import csv
import io
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from tests.dashboard.test_pages import ask, table, tiles
from tests.dashboard.test_today import links

MONTHS = "first=2026-10-01&last=2026-12-31"
NET = "Net payable to the supplier, by month of travel and channel"


async def _file(dashboard, address):
    answer = await dashboard.get(f"/{address}")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/csv")
    return list(csv.reader(io.StringIO(answer.text, newline="")))


@pytest.mark.parametrize(
    "path", ["finance", "revenue", "pickup", "bookings", "channels", "today", "availability", "occupancy"]
)
async def test_every_table_that_is_shown_is_a_file_with_its_rows(shown, path):
    dashboard = shown()
    page = await dashboard.text(f"/{path}")
    files = links(page, "data/page/")
    assert len(files) == page.count("<caption") > 0
    for address in files:
        (caption,) = parse_qs(urlsplit(address).query)["table"]
        heads, *rows = await _file(dashboard, address)
        on_page = table(page, caption)
        assert len(rows) >= len(on_page)
        assert len(heads) - len(on_page[0]) in (0, 1)
        assert {len(row) for row in rows} == {len(heads)}


async def test_a_table_that_is_shown_when_asked_for_is_a_file_too(shown):
    dashboard = shown()
    page = await dashboard.text("/sync")
    (address,) = (found for found in links(page, "data/page/sync") if "Each+cell+of+the+map" in found)
    _, *rows = await _file(dashboard, address)
    assert rows == table(page, "Each cell of the map") != []


async def test_amounts_are_whole_and_their_currency_stands_beside_them(shown, published):
    dashboard = shown()
    page = await dashboard.text(f"/finance?{MONTHS}&currency=JPY")
    (address,) = (found for found in links(page, "data/page/finance") if "Net+payable+to" in found)
    heads, *rows = await _file(dashboard, address)
    found = ask(
        published,
        "select travel_month::text, channel_name, sum(net_amount)::text, currency from marts.fct_bookings where is_sold "
        "and currency = 'JPY' and travel_month between '2026-10-01' and '2026-12-01' group by all order by all",
    )
    picked = [heads.index(name) for name in ("Travel month", "Channel", "Net payable", "Currency")]
    assert sorted([row[n] for n in picked] for row in rows) == [[value or "" for value in row] for row in found]
    assert rows


async def test_a_file_has_the_rows_that_the_page_leaves_out(shown, published, monkeypatch):
    monkeypatch.setattr("octo_sync.dashboard.pages.bookings._MOST", 7)
    monkeypatch.setattr("octo_sync.dashboard.pages.finance._ROWS", 2)
    monkeypatch.setattr("octo_sync.dashboard.pages.occupancy._ROWS", 3)
    dashboard = shown()
    page = await dashboard.text("/bookings?first=2026-01-01&last=2027-06-30")
    ((count,),) = ask(published, "select count(*) from marts.fct_bookings where is_sold and travel_date is not null")
    assert len(table(page, "Bookings")) == 7
    assert f"7 of {count:,} are shown; csv has all of them." in page
    (address,) = (found for found in links(page, "data/page/bookings") if "table=Bookings" in found)
    assert len(await _file(dashboard, address)) == count + 1
    page = await dashboard.text(f"/finance?{MONTHS}")
    (address,) = (found for found in links(page, "data/page/finance") if "Net+payable+to" in found)
    _, *rows = await _file(dashboard, address)
    assert len(table(page, NET)) == 2 < len(rows)
    assert f"2 of {len(rows)} are shown; csv has all of them." in page
    page = await dashboard.text("/occupancy?first=2026-11-21&last=2026-12-10")
    of = "from marts.fct_departures where is_followed and travel_date between '2026-11-21' and '2026-12-10'"
    for which, where in (
        ("not closed and less than 20 % full", "fill_rate < 0.2 and not is_closed"),
        ("sold out or at least 90 % full", "(is_sold_out or (fill_rate >= 0.9 and not is_closed))"),
    ):
        ((count,),) = ask(published, f"select count(*) {of} and {where}")
        assert f"3 of {count:,} are shown; csv has all of them." in page
        (address,) = (found for found in links(page, "data/page/occupancy") if urlencode({"": which})[1:] in found)
        _, *rows = await _file(dashboard, address)
        assert len(table(page, f"Departures that are {which}")) == 3 < len(rows) == count


@pytest.mark.parametrize("below", [10, 20, 50])
async def test_weak_is_what_the_reader_says(shown, published, below):
    page = await shown().text(f"/occupancy?first=2026-11-21&last=2026-12-10&below={below}")
    ((count,),) = ask(
        published,
        "select count(*) from marts.fct_departures where is_followed and travel_date between '2026-11-21' and '2026-12-10' "
        f"and 1.0 * taken / nullif(capacity, 0) < {below} / 100.0 and not is_closed and not is_sold_out",
    )
    assert tiles(page)["weak"] == (f"{count:,}", f"not closed and less than {below} % full")
    assert len(table(page, f"Departures that are not closed and less than {below} % full")) == min(count, 200) > 0


async def test_a_limit_that_is_not_offered_is_refused(shown):
    answer = await shown().get("/occupancy?below=15")
    assert answer.status_code == 400
    assert "The field below is &#39;15&#39;; expected 10, 20, 30, 40, 50." in answer.text


async def test_more_than_a_file_takes_is_refused(shown, monkeypatch):
    monkeypatch.setattr("octo_sync.dashboard.pages.bookings._WHOLE", 3)
    answer = await shown().get("/data/page/bookings.csv?first=2026-11-01&last=2026-11-30&table=Bookings")
    assert answer.status_code == 400
    assert "A file has 3 bookings at most" in answer.text


async def test_a_formula_is_text_in_the_file(shown, variant):
    folder = variant("formula", "update core.connections set channel = '=1+1'", remake=True)
    dashboard = shown(folder)
    (address, *_) = (found for found in links(await dashboard.text("/finance"), "data/page/") if "payable+to" in found)
    heads, *rows = await _file(dashboard, address)
    assert {row[heads.index("Channel")] for row in rows} == {"'=1+1"}


@pytest.mark.parametrize(
    ("address", "code"),
    [
        ("finance.csv?table=Nothing", 404),
        ("finance.csv", 404),
        ("nothing.csv?table=Bookings", 404),
        (f"finance.csv?table={NET}&colour=red", 400),
        (f"finance.csv?table={NET}&channel=nobody", 400),
    ],
)
async def test_what_is_no_table_of_a_page_is_no_file(shown, address, code):
    assert (await shown().get(f"/data/page/{address}")).status_code == code


async def test_another_site_gets_no_file(shown):
    answer = await shown().get(f"/data/page/finance.csv?table={NET}", **{"sec-fetch-site": "cross-site"})
    assert answer.status_code == 403


async def test_without_a_copy_the_file_is_a_sentence(shown, tmp_path):
    answer = await shown(tmp_path).get(f"/data/page/finance.csv?table={NET}")
    assert answer.status_code == 503
