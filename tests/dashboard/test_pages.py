"""Every page, whatever the copy is like: whole, empty, gone, on a server, with 500 products, with hostile titles."""

import asyncio
import csv
import datetime as dt
import html
import io
import json
import re
from itertools import pairwise
from statistics import median
from urllib.parse import quote, urlencode
from zoneinfo import ZoneInfo

import duckdb
import httpx
import pytest
from pyarrow import parquet
from tests.dashboard.conftest import READ
from tests.flows.harness import NOON, Project

from octo_sync.dashboard import Dashboard, Source
from octo_sync.dashboard.app import all_pages
from octo_sync.dashboard.charts import SERIES, bars, lines
from octo_sync.dashboard.downloads import FORMATS
from octo_sync.dashboard.pages import pickup
from octo_sync.dashboard.render import _course
from octo_sync.flows import wording

PAGES = [f"/{page.path}" for page in all_pages()]
OURS = ["/", "/occupancy", "/pickup", "/cancellations", "/revenue", "/channels", "/availability"]
HOSTILE = "</script><script>alert(1)</script> {b|x} \u2028 '\"& \u202egnp"


def ask(folder, sql, *parameters):
    with duckdb.connect(folder / READ, read_only=True) as copy:
        copy.execute("set timezone = 'UTC'")
        return copy.execute(sql, parameters or None).fetchall()


def plain(page):
    """What a reader sees of a page, without its marks and scripts."""
    return html.unescape(re.sub(r"<[^>]+>", " ", re.sub(r"<(script|style).*?</\1>", " ", page, flags=re.DOTALL)))


def tiles(page):
    """name → (value, note), as a reader sees them."""
    found = {}
    for name, inner in re.findall(r'<li class="tile[^"]*" data-tile="([^"]+)">(.*?)</li>', page, re.DOTALL):
        texts = [html.unescape(re.sub("<[^>]+>", "", part)) for part in re.findall(r"<bdi>(.*?)</bdi>", inner)]
        found[name] = (texts[0], texts[1] if len(texts) > 1 else "")
    return found


def table(page, caption):
    """The rows of the table of that caption, each a list of texts, as a reader sees them."""
    return [[html.unescape(re.sub("<[^>]+>", "", each)) for each in row] for row in _cells(page, caption)]


def leads(page, caption):
    """The same, each a list of the addresses that its cells lead to; '' where a cell leads nowhere."""
    found = [[re.search(r'<a href="\./([^"]*)"', each) for each in row] for row in _cells(page, caption)]
    return [[html.unescape(each[1]) if each else "" for each in row] for row in found]


def _cells(page, caption):
    every = re.findall(r"<caption[^>]*>(.*?)</caption>(.*?)</table>", page, re.DOTALL)
    (inner,) = [inner for name, inner in every if html.unescape(name) == caption]
    return [
        re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)
        for row in re.findall(r"<tr>(.*?)</tr>", inner.partition("<tbody>")[2], re.DOTALL)
    ]


async def led_to(dashboard, page, caption, *columns):
    """How many numbers of these columns lead to as many bookings; each does that is not 0 and of a known whole."""
    seen = 0
    for row, addresses in zip(table(page, caption), leads(page, caption), strict=True):
        for at in columns:
            number = int(row[at].replace(",", ""))
            if row[0] == "unknown" or not (number or addresses[at]):
                continue
            listed = await dashboard.text(f"/{addresses[at]}")
            sums = table(listed, "In all, by currency") if number else []
            assert addresses[at].startswith("bookings?"), (caption, row, at)
            assert sum(int(each[1].replace(",", "")) for each in sums) == number, (caption, addresses[at])
            assert number or "There is no such booking." in listed
            seen += number > 0
    return seen


def charts(page):
    (text,) = re.findall(r'<script type="application/json" id="charts">(.*?)</script>', page, re.DOTALL)
    return {chart["id"]: chart for chart in json.loads(text)}


def heat_map(page, name):
    """A map's heads, and its lines: a name, and what each cell has, its colour and its sign; None where it is empty."""
    figure = page[page.index(f'aria-labelledby="{name}-title"') :]
    heads, lines = re.search(r"<thead>(.*?)</thead>\s*<tbody>(.*?)</tbody>", figure, re.DOTALL).groups()
    found = {}
    for line in re.findall(r"<tr>(.*?)</tr>", lines, re.DOTALL):
        (title,) = re.findall(r'<th scope="row">(.*?)</th>', line, re.DOTALL)
        cells = re.findall(
            r'<td(?: class="c-([\w-]+)" title="[^"]*")?>(?:<a [^>]*>)?(.*?)(?:</a>)?</td>', line, re.DOTALL
        )
        found[html.unescape(re.sub("<.*?>", "", title)).strip()] = [cell if cell[0] else None for cell in cells]
    return re.findall(r"<th[^>]*>(.*?)</th>", heads), found


@pytest.mark.parametrize("path", PAGES)
async def test_each_page_of_a_whole_copy(shown, path):
    page = await shown().text(path)
    assert page.count('aria-current="page"') == 1
    assert "Last verified" in page
    assert "is stale" not in page
    assert " style=" not in page, "the policy permits no inline style"
    assert re.findall(r"\son\w+=", page) == [], "nor an inline script"
    assert all("src=" in found or "application/json" in found for found in re.findall(r"<script[^>]*>", page))


@pytest.mark.deep(0.5, everyday=["/revenue"])
@pytest.mark.parametrize("path", PAGES)
async def test_behind_each_chart_is_its_mart_as_csv_json_and_parquet(shown, published, path):
    dashboard, asked = shown(), {}
    figures = re.findall(r"<figure .*?</figure>", await dashboard.text(path), re.DOTALL)
    assert bool(figures) == (path in OURS), f"{path}: pages with charts are in OURS, and no others"
    for figure in figures:
        links = re.findall(r'<a href="\./(data/(\w+)\.(\w+))" download>', figure)
        assert [form for _, _, form in links] == ["csv", "json", "parquet"], figure[:200]
        asked |= {link: (mart, form) for link, mart, form in links}
    for link, (mart, form) in asked.items():
        answer = await dashboard.get(f"/{link}")
        assert (answer.status_code, answer.headers["content-type"]) == (200, FORMATS[form]), link
        assert ROWS[form](answer.content) == ask(published, f"select count(*) from marts.{mart}")[0][0] > 0, link


ROWS = {
    "csv": lambda content: len(list(csv.reader(io.StringIO(content.decode(), newline="")))) - 1,
    "json": lambda content: len(json.loads(content)),
    "parquet": lambda content: parquet.read_table(io.BytesIO(content)).num_rows,
}


@pytest.mark.deep(0.2, everyday=3)
@pytest.mark.parametrize("path", PAGES)
async def test_each_page_where_nothing_was_pulled(shown, variant, path):
    tables = "select schema_name || '.' || table_name from duckdb_tables() where schema_name in ('core', 'ops')"
    folder = variant("empty")
    with duckdb.connect(folder / READ) as copy:
        for (table,) in copy.execute(tables).fetchall():
            copy.execute(f"delete from {table}")
        for mart in ("agg_occupancy_daily", "dim_date"):
            copy.execute(f"delete from marts.{mart}")
    page = await shown(folder).text(path)
    assert "Nothing was pulled yet" in page


@pytest.fixture(scope="session")
def tiny(variant):
    """One product with one departure and one booking."""
    product = "prod_sushi"
    return variant(
        "tiny",
        f"delete from core.products where product_id <> '{product}'",
        f"delete from core.options where product_id <> '{product}'",
        f"delete from core.availability where product_id <> '{product}' or availability_id <> (select min(availability_id) "
        f"from core.availability where product_id = '{product}' and local_date > '2026-11-20' and status = 'AVAILABLE')",
        "delete from core.bookings where booking_uuid <> (select min(booking_uuid) from core.bookings "
        f"where product_id = '{product}' and status = 'CONFIRMED' and not is_test and not is_deleted)",
        f"delete from ops.coverage where resource = 'availability' and product_id <> '{product}'",
        remake=True,
    )


@pytest.mark.deep(0.2, everyday=2)
@pytest.mark.parametrize("path", PAGES)
async def test_each_page_of_one_product_one_departure_and_one_booking(shown, tiny, path):
    assert ask(tiny, "select count(*) from core.availability union all select count(*) from core.bookings") == [
        (1,),
        (1,),
    ]
    page = await shown(tiny).text(path)
    assert not re.search(r"\b(nan|inf|None)\b", plain(page))
    assert "Nothing was pulled yet" not in page
    drawn = charts(page) if path in OURS else {}
    assert bool(drawn) == (path in OURS), f"{path}: pages with charts are in OURS, and no others"
    for chart in drawn.values():
        assert not re.search(r"\b(NaN|Infinity)\b", json.dumps(chart)), chart["id"]


@pytest.mark.deep(0.2, everyday=["/", "/revenue", "/availability"])
@pytest.mark.parametrize("path", PAGES)
async def test_each_page_of_a_copy_that_is_old_says_so(shown, path):
    dashboard = shown(now=lambda: NOON + dt.timedelta(days=12, hours=1))
    assert "This copy is stale: its oldest part was verified 12 days ago" in await dashboard.text(path)


@pytest.mark.parametrize("path", PAGES)
async def test_each_page_of_a_damaged_copy_says_so_and_shows_nothing_of_it(shown, published, tmp_path, path):
    (tmp_path / READ).write_bytes((published / READ).read_bytes()[:8192])
    page = await shown(tmp_path).text(path)
    assert "is damaged or cut off" in page
    assert tiles(page) == {}
    assert "<figure" not in page


@pytest.mark.parametrize("path", PAGES)
async def test_each_page_where_nothing_was_published(shown, tmp_path, path):
    page = await shown(tmp_path).text(path)
    assert "octo.read.duckdb does not exist yet; run `octo-sync sync`" in page


@pytest.fixture(scope="session")
def huge(variant):
    """500 products, each with departures."""
    with_id = "t.product_id || '-' || n as product_id"
    times = "(select unnest(range(1, 64)) as n)"
    return variant(
        "huge",
        f"insert into core.products select t.* replace ({with_id}, t.title || ' ' || n as title) from core.products t, {times}",
        f"insert into core.options select t.* replace ({with_id}) from core.options t, {times}",
        "insert into marts.agg_occupancy_daily select t.* replace "
        f"(t.product_key || '-' || n as product_key, {with_id}, t.product_name || ' ' || n as product_name) "
        f"from marts.agg_occupancy_daily t, {times}",
    )


@pytest.mark.deep(0.2, everyday=["/", "/revenue", "/availability"])
@pytest.mark.parametrize("path", PAGES)
async def test_each_page_with_500_products(shown, huge, path):
    page = await shown(huge).text(path)
    assert len(page) < 2_000_000


async def test_of_500_products_40_are_drawn_and_the_page_says_so(shown, huge):
    assert ask(huge, "select count(*) from marts.dim_product") == [(512,)]
    page = await shown(huge).text("/occupancy")
    assert len(heat_map(page, "fill-map")[1]) == 40
    (found,) = ask(
        huge, "select count(distinct product_key) from marts.agg_occupancy_daily where travel_date between "
        "date '2026-11-20' and date '2026-11-20' + 41",
    )  # fmt: skip
    assert f"The 40 products with the most departures, of {found[0]}" in page
    assert page.count("<option") == 513


@pytest.mark.deep(0.2, everyday=3)
@pytest.mark.parametrize("path", PAGES)
async def test_each_page_of_hostile_titles_says_them_and_runs_nothing(shown, variant, path):
    said = HOSTILE.replace("'", "''")
    folder = variant(
        "hostile",
        f"update core.products set title = '{said}', internal_name = '{said}'",
        f"update core.connections set channel = '{said}'",
        f"update marts.agg_occupancy_daily set product_name = '{said}'",
    )
    page = await shown(folder).text(path)
    assert "<script>alert" not in page
    assert "alert(1)</script>" not in page
    if path == "/availability":
        (shown_as, *_) = charts(page).values()
        assert any(HOSTILE in str(name) for name in shown_as["option"]["yAxis"]["data"])
    if path in ("/occupancy", "/availability"):
        assert "&lt;script&gt;alert(1)" in page


@pytest.fixture(scope="session")
def on_a_server(_synced, _service, postgres_server, tmp_path_factory):
    folder = tmp_path_factory.mktemp("on-a-server") / "project"
    folder.mkdir()
    _service.reset()
    name = postgres_server.make()
    project = Project(folder, _service, publish=True, destination=postgres_server.dsn(name))
    asyncio.run(project.sync())
    yield postgres_server.dsn(name)
    postgres_server.drop(name)


def _numbers(page):
    """What a page says, without when it was made and what the copy is called."""
    body = page[page.index("<main") : page.index("<footer")]
    body = re.sub(r'<dl class="standing">.*?</dl>', "", body, flags=re.DOTALL)
    return html.unescape(re.sub(r"<[^>]+>", " ", body)).split()


@pytest.mark.deep(0.3, everyday=["/", "/revenue", "/availability"])
@pytest.mark.parametrize("path", PAGES)
async def test_each_page_of_a_copy_on_a_server(on_a_server, tmp_path, path):
    source = Source(on_a_server, tmp_path, now=lambda: NOON + dt.timedelta(hours=1))
    app = Dashboard(source, host="127.0.0.1")
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        answer = await client.get(path)
    app.close()
    assert answer.status_code == 200, answer.text[-600:]
    assert "Last verified" in answer.text
    assert "postgres@" not in answer.text


@pytest.mark.deep(0.2, everyday=2)
@pytest.mark.parametrize("path", OURS)
async def test_a_server_and_a_file_say_the_same(on_a_server, shown, tmp_path, path):
    source = Source(on_a_server, tmp_path, now=lambda: NOON + dt.timedelta(hours=1))
    app = Dashboard(source, host="127.0.0.1")
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        there = (await client.get(path)).text
    app.close()
    here = await shown().text(path)
    assert _numbers(there) == _numbers(here)
    assert charts(there) == charts(here)


# -- numbers ------------------------------------------------------------------------------------------------------------

TODAY = dt.date(2026, 11, 20)


async def test_the_tiles_say_what_plain_sql_on_the_core_tables_says(shown, published):
    page = await shown().text("/")
    found = tiles(page)
    made = "cast(utc_created_at at time zone 'UTC' as date)"
    at_venue = "cast(utc_created_at at time zone time_zone as date)"
    sold = "status in ('CONFIRMED', 'REDEEMED', 'NOSHOW')"
    ever = f"({sold} or (status = 'CANCELLED' and utc_confirmed_at is not null))"
    live = "not is_deleted and not is_test"
    ((bookings, guests),) = ask(
        published,
        f"select count(*) filter (where {ever}), sum(pax_count) filter (where {sold}) from core.bookings "
        f"where {live} and {made} = $1",
        TODAY - dt.timedelta(days=1),
    )
    before = ask(
        published,
        f"select count(*) filter (where {ever}) from core.bookings where {live} and {made} in ($1, $2, $3, $4) "
        f"group by {made}",
        *(TODAY - dt.timedelta(days=1 + 7 * n) for n in range(1, 5)),
    )
    ((was, gone, lead, leads),) = ask(
        published,
        f"select count(*) filter (where {ever}), count(*) filter (where {ever} and status = 'CANCELLED'), "
        f"median(local_date - {at_venue}) filter (where {sold}), count(local_date) filter (where {sold}) "
        f"from core.bookings where {live} and {made} between $1 and $2",
        TODAY - dt.timedelta(days=30),
        TODAY - dt.timedelta(days=1),
    )
    per_travel_day = ask(
        published,
        "select count(*), count(*) filter (where gone), local_date from (select product_id, local_date, "
        "bool_and(status in ('SOLD_OUT', 'CLOSED')) and bool_or(status = 'SOLD_OUT') as gone from core.availability "
        "where not is_deleted and local_date between $1 and $2 group by 1, 2) group by local_date",
        TODAY,
        TODAY + dt.timedelta(days=29),
    )
    days, out = (sum(row[number] for row in per_travel_day) for number in (0, 1))
    known = sorted([count for (count,) in before] + [0] * (4 - len(before)))

    assert bookings > 0
    assert was > gone > 0
    assert found["bookings"][0] == str(bookings)
    assert f"vs {(known[1] + known[2]) / 2:g} on a usual" in found["bookings"][1]
    assert found["guests"][0] == str(guests)
    per_day = ask(
        published,
        f"select count(b.booking_uuid) filter (where {ever}) from (select unnest(range(1, 31)) as ago) d "
        f"left join (select * from core.bookings where {live}) b on {made} = cast($1 as date) - d.ago::int group by d.ago",
        TODAY,
    )
    least, most = min(per_day)[0], max(per_day)[0]
    assert f"<title>A day, the 30 days up to then: {least} to {most}</title>" in page
    ((was_before, gone_before),) = ask(
        published,
        f"select count(*) filter (where {ever}), count(*) filter (where {ever} and status = 'CANCELLED') from core.bookings "
        f"where {live} and {made} between $1 and $2",
        TODAY - dt.timedelta(days=60),
        TODAY - dt.timedelta(days=31),
    )
    before_that = f"{wording.share(gone_before / was_before)} in the 30 days before"
    assert found["cancelled"] == (
        f"{gone / was * 100:.0f} %",
        f"{gone} of {was} bookings of the last 30 days were cancelled · {before_that}",
    )
    assert found["lead-time"][0] == f"{lead:g} days"
    assert f"of {leads} bookings made in the last 30 days and still sold" in found["lead-time"][1]
    assert found["sold-out"][0] == str(out)
    outs = [row[1] for row in per_travel_day]
    assert f"<title>A day, the 30 days from today on: {min(outs)} to {max(outs)}</title>" in page
    assert f"of {days} days on which a product has" in found["sold-out"][1]
    assert found["differences"] == ("—", "nothing compared yet")


async def test_the_cancelled_tile_says_what_plain_sql_on_the_core_tables_says(shown, published):
    ever = "status in ('CONFIRMED', 'REDEEMED', 'NOSHOW') or (status = 'CANCELLED' and utc_confirmed_at is not null)"
    ((sold, gone),) = ask(
        published,
        f"select count(*), count(*) filter (where status = 'CANCELLED') from core.bookings where not is_deleted "
        f"and not is_test and ({ever}) and cast(utc_created_at at time zone 'UTC' as date) between $1 and $2",
        dt.date(2026, 10, 1),
        TODAY,
    )

    assert sold > gone > 0
    found = tiles(await shown().text("/cancellations?first=2026-10-01&last=2026-11-20"))
    assert found["cancelled"] == (
        f"{gone / sold * 100:.0f} %",
        f"{gone:,} of {sold:,} sold bookings made in these days",
    )


async def test_what_was_cancelled_stands_beside_as_many_days_before_where_these_are_known(shown, service):
    """Bookings are known from 22 August on, which is in no month of the line either."""
    gone = [
        dt.datetime.fromisoformat(each["utc_cancelled_at"]).date()
        for each in service.state()["bookings"]
        if each["status"] == "CANCELLED" and each["utc_confirmed_at"] and not each["test"]
    ]

    def cancelled(first, last):
        return sum(first <= day < last for day in gone)

    page = await shown().text("/cancellations?first=2026-11-01&last=2026-11-20")
    november, today = dt.date(2026, 11, 1), TODAY + dt.timedelta(days=1)
    now, then = cancelled(november, TODAY), cancelled(dt.date(2026, 10, 13), november)
    assert min(now, then) > 0 != now - then
    assert tiles(page)["cancelled-in"] == (
        str(cancelled(november, today)),
        f"{now} to Thu 19 Nov vs {then} in the 19 days before",
    )
    starts = [dt.date(2026, month, 1) for month in (9, 10, 11, 12)]
    course = _course([None] * 9 + [cancelled(*month) for month in pairwise(starts)])
    assert f'd="{course}"' in page.partition('data-tile="cancelled-in"')[2].partition("</li>")[0]

    longer = tiles(await shown().text("/cancellations?first=2026-10-05&last=2026-11-19"))
    assert longer["cancelled-in"] == (str(cancelled(dt.date(2026, 10, 5), TODAY)), ""), "21 August is not known"


async def test_the_shares_of_one_month_are_bars_side_by_side(shown, published):
    found = ask(
        published,
        "select channel_name, count(*) filter (is_cancelled) / count(*) from marts.fct_bookings where was_sold "
        "and booking_date between '2026-10-01' and '2026-10-31' group by 1 order by 1",
    )
    drawn = charts(await shown().text("/cancellations?first=2026-10-01&last=2026-10-31"))["rate-by-month"]["option"]
    ((kind, values),) = [(series["type"], series["data"]) for series in drawn["series"]]
    assert (kind, sorted(zip(drawn["xAxis"]["data"], values, strict=True))) == (
        "bar",
        [(name, pytest.approx(share)) for name, share in found],
    )


DAYS_AHEAD = """
with departures as (
  select p.product_id, p.title, a.local_date as day, a.status, a.capacity,
    case when a.status <> 'CLOSED' and a.capacity > 0 and a.vacancies <= a.capacity then a.capacity - a.vacancies end as taken
  from core.products p
  left join core.availability a on a.product_id = p.product_id and not a.is_deleted
    and a.local_date >= cast(timestamptz '2026-11-20 12:00:00+00' at time zone p.time_zone as date)
  where not p.is_deleted
), days as (
  select product_id, title, day, bool_and(status = 'CLOSED') as closed,
    bool_and(status in ('SOLD_OUT', 'CLOSED')) and bool_or(status = 'SOLD_OUT') as gone,
    sum(taken) / sum(capacity) filter (where taken is not null) as fill
  from departures group by all
)
select title, count(day), count(*) filter (where gone), count(*) filter (where closed),
  count(*) filter (where fill < 0.2 and not gone), min(day) filter (where gone), max(day)
from days group by product_id, title
"""


async def test_the_availability_tiles_and_next_sold_out_days_are_those_of_plain_sql(shown, variant):
    folder = variant(
        "health",
        "update core.availability set status = 'SOLD_OUT', vacancies = 0 where local_date in ('2026-11-27', '2026-12-01') "
        "and product_id = 'prod_sushi'",
        "update core.availability set status = 'CLOSED' where local_date = '2026-11-27' and product_id = 'prod_sushi' "
        "and availability_id = (select min(availability_id) from core.availability where local_date = '2026-11-27' "
        "and product_id = 'prod_sushi')",
        "update core.availability set status = 'SOLD_OUT' where local_date = '2026-11-23' and product_id = '42'",
        "delete from core.availability where product_id = 'prod_dhow' and local_date > '2026-12-01'",
        "delete from core.availability where product_id = '8'",
        "insert into core.availability select * replace (availability_id || '-later' as availability_id, "
        "local_date + 40 as local_date, local_start_at + interval '40 days' as local_start_at) from core.availability "
        "where product_id = '42' and local_date = '2026-11-24'",
        "update core.availability set first_seen_at_utc = '2026-11-17 08:00+00' where local_date = '2026-11-27'",
        remake=True,
    )
    rows = ask(folder, DAYS_AHEAD)
    days, gone, closed, weak = (sum(row[n] for row in rows) for n in range(1, 5))
    soon = sum(last is None or last < TODAY + dt.timedelta(days=30) for *_, last in rows)
    page = await shown(folder).text("/availability")
    found = tiles(page)

    assert min(gone, closed, weak) > 0
    assert 0 < soon < len(rows)
    of = f"of {days:,} days on which a product has departures"
    assert found["sold-out-days"] == (f"{gone:,}", of)
    assert found["closed-days"] == (f"{closed:,}", of)
    assert found["weak-days"] == (f"{weak:,}", f"less than 20 % full, {of}")
    assert found["ending-soon"][0] == str(soon)
    said = "could be compared. No option has five past departures to compare with yet."
    assert f"{said} Departures are known from Tue 17 Nov 2026 on." in plain(page)
    health = {line[0]: line[1:7] for line in table(page, "Health of each product's availability")}
    assert health == {
        title: [*(f"{number:,}" for number in numbers), *(str(day) if day else "none" for day in (sold_out, last))]
        for title, *numbers, sold_out, last in rows
    }
    assert {line[4] for line in health.values()} > {"none"}
    (address, *_) = [html.unescape(each) for each in re.findall(r'"\./(occupancy\?[^"#]*)#products"', page)]
    behind = table(await shown(folder).text(f"/{address}"), "Occupancy by product")
    assert [sum(int(line[n].replace(",", "")) for line in behind) for n in (6, 7, 8)] == [gone, closed, weak]


def _lived(ids, *life):
    """Statements that give a departure these versions: since when, and what it was; the last one is what it is."""
    names = "connection_id, product_id, option_id, availability_id"
    of = f"from core.availability where (product_id, option_id, availability_id) = {ids}"
    for number, (at, status) in enumerate(life, 1):
        yield (
            f"insert into core.availability_history ({names}, version_no, valid_from_utc, is_current, status) "
            f"select {names}, {number}, timestamptz '{at.isoformat()}', {number == len(life)}, '{status}' {of}"
        )
    yield f"update core.availability set status = '{life[-1][1]}' {of.replace('from core.availability ', '')}"


async def test_departures_that_sold_out_stand_by_product_where_since_when_is_known(shown, variant, published):
    """Of the last 90 days and ahead; one that was sold out when it was first seen is in a sentence alone."""
    options = ask(
        published,
        "select p.product_id, p.title, p.time_zone, min({'ids': (a.product_id, a.option_id, a.availability_id)}).ids "
        "from core.availability a join core.products p using (connection_id, product_id) "
        "where p.availability_type = 'START_TIME' and a.local_date = '2026-12-02' group by all order by 1 limit 3",
    )
    statements, told = [], {}

    def departs(option, away, *life):
        """A departure of the option so many days from 2 December, with its life by days before the copy's now."""
        _, title, zone, ids = option
        made = (*ids[:2], f"{ids[2]}{away:+}")
        days = f"interval '{away} days'"
        statements.append(
            f"insert into core.availability select * replace ('{made[2]}' as availability_id, local_date + {away} as "
            f"local_date, local_start_at + {days} as local_start_at, utc_start_at + {days} as utc_start_at) "
            f"from core.availability where (product_id, option_id, availability_id) = {ids}"
        )
        at = [(NOON - dt.timedelta(days=ago), status) for ago, status in life]
        statements.extend(_lived(made, *at))
        day = dt.date(2026, 12, 2) + dt.timedelta(days=away)
        since = next(when for when, status in at if status == "SOLD_OUT").astimezone(ZoneInfo(zone)).date()
        told.setdefault(title, []).append((day, (day - since).days, at[-1][1] != "SOLD_OUT"))

    one, long, never = options
    departs(one, -60, (150, "AVAILABLE"), (55, "SOLD_OUT"))
    departs(one, 100, (150, "AVAILABLE"), (10, "SOLD_OUT"))
    departs(one, 101, (150, "AVAILABLE"), (20, "SOLD_OUT"))
    departs(one, 102, (150, "AVAILABLE"), (30, "SOLD_OUT"), (2, "LIMITED"))
    departs(long, -102, (190, "AVAILABLE"), (120, "SOLD_OUT"))
    departs(long, 120, (150, "AVAILABLE"), (2, "SOLD_OUT"))
    left_out = [(long, -103, (190, "AVAILABLE"), (120, "SOLD_OUT")), (never, 100, (150, "SOLD_OUT"))]
    known = {title: list(rows) for title, rows in told.items()}
    for each in left_out:
        departs(*each)
    folder = variant("sellouts", *statements, remake=True)
    ((already,),) = ask(
        folder,
        "select count(*) from marts.fct_sellouts where not was_on_sale and not is_gone and travel_date >= '2026-08-22'",
    )
    dashboard = shown(folder)
    page = await dashboard.text("/availability")

    assert already > 1
    assert f"{already} others were sold out when first seen: since when is unknown." in plain(page)
    assert table(page, "Departures that sold out, by product") == [
        [
            title,
            str(len(rows)),
            f"{median(days for _, days, _ in rows):g}",
            str(sum(again for *_, again in rows)),
        ]
        for title, rows in known.items()
    ]
    section = page.partition('id="sold-out"')[2].partition("</section>")[0]
    (address,) = re.findall(r'"\./(occupancy\?[^"]*)"', section)
    assert "first=2026-10-03&amp;last=2027-03-14&amp;product=" in address
    assert address.endswith("#full")
    behind = await dashboard.text(f"/{html.unescape(address).partition('#')[0]}")
    full = table(behind, "Departures that are sold out or at least 90 % full")
    for day, _, again in known[one[1]]:
        assert again or any(row[0].startswith(f"{day:%a} {day.day} {day:%b}") and row[3] == "yes" for row in full)


async def test_an_old_copy_speaks_of_its_own_yesterday_and_says_that_it_is_old(shown):
    fresh = tiles(await shown().text("/"))
    page = await shown(now=lambda: NOON + dt.timedelta(days=12, hours=1)).text("/")
    assert tiles(page) == fresh, "a stale copy is not a business without bookings"
    assert "This copy is stale: its oldest part was verified 12 days ago" in page
    assert "As of Fri 20 Nov 2026, the day of the last verification" in page


async def test_a_copy_with_an_unanswered_month_is_called_incomplete_and_its_days_in_doubt(shown, variant):
    folder = variant(
        "unanswered",
        "insert into ops.unanswered select connection_id, resource, key, product_id, option_id, travel_month "
        "from ops.coverage where resource = 'bookings' and travel_month = '2026-11'",
        "update ops.coverage set is_complete = false where resource = 'bookings' and travel_month = '2026-11'",
    )
    page = await shown(folder).text("/")
    assert "This copy is incomplete: " in page
    assert "day incomplete" in tiles(page)["bookings"][1]


@pytest.mark.deep(1)
async def test_the_cells_of_the_map_are_the_product_days_of_the_mart(shown, variant):
    folder = variant(
        "sold-out",
        "update marts.agg_occupancy_daily set sold_out_departures = departures - closed_departures "
        "where travel_date = date '2026-11-22' and closed_departures < departures",
    )
    rows = ask(
        folder,
        "select product_name, travel_date, fill_rate, departures, closed_departures, sold_out_departures "
        "from marts.agg_occupancy_daily where travel_date between $1 and $2",
        TODAY,
        TODAY + dt.timedelta(days=41),
    )
    _, lines = heat_map(await shown(folder).text("/"), "fill-map")
    drawn = {(name, at): cell for name, cells in lines.items() for at, cell in enumerate(cells) if cell}
    wanted = {}
    for name, day, fill, departures, closed, sold_out in rows:
        if closed == departures:
            cell = "closed", "\N{MULTIPLICATION SIGN}"
        elif sold_out and sold_out + closed == departures:
            cell = "sold-out", "●"
        elif fill is None:
            cell = "unknown", "?"
        else:
            level = next(n for n in range(1, 6) if fill < n / 5 or n == 5)
            cell = (
                f"fill-{level}",
                f"{fill * 100:.0f}" if fill in (0, 1) or 0.005 < fill < 0.995 else f"{fill * 100:.1f}",
            )
        wanted[name, (day - TODAY).days] = cell
    assert len(wanted) > 100
    assert {cell[0] for cell in wanted.values()} > {"closed", "unknown", "sold-out"}
    assert drawn == wanted


ON_SALE = (
    "(connection_id, product_id, option_id, availability_id) not in (select (connection_id, product_id, option_id, "
    "availability_id) from core.availability where utc_cutoff_at <= timestamptz '2026-11-20 12:00:00+00')"
)
"""Of departures of days to come: somebody may still buy them when the copy was verified."""


async def test_the_tiles_of_occupancy_are_of_the_days_chosen_and_lead_to_their_departures(shown, published):
    page = await shown().text("/occupancy?first=2026-11-21&last=2026-12-10")
    of = "from marts.fct_departures where is_followed and travel_date between '2026-11-21' and '2026-12-10'"
    ((taken, places, departures, sold_out, nearly, weak),) = ask(
        published,
        "select sum(taken) filter (where not is_closed), sum(capacity) filter (where not is_closed and taken is not null), "
        "count(*), count(*) filter (where is_sold_out), count(*) filter (where fill_rate >= 0.9 and not is_sold_out "
        f"and not is_closed), count(*) filter (where fill_rate < 0.2 and not is_closed) {of}",
    )
    found = tiles(page)
    assert found["occupancy"][0] == wording.share(taken / places)
    assert found["occupancy"][1].startswith(f"{taken:,} of {places:,} places taken")
    assert found["sold-out"] == (f"{sold_out:,}", f"of {departures:,}; {nearly:,} others are at least 90 % full")
    assert found["weak"][0] == f"{weak:,}"
    assert min(sold_out, weak) > 0
    weak_ones = table(page, "Departures that are not closed and less than 20 % full")
    assert len(weak_ones) == weak
    ((ended,),) = ask(published, f"select count(*) {of} and fill_rate < 0.2 and not is_closed and not ({ON_SALE})")
    assert sum(row[-1].startswith("sale ended ") for row in weak_ones) == ended > 0
    assert len(table(page, "Departures that are sold out or at least 90 % full")) == sold_out + nearly
    assert './occupancy?first=2026-11-21&amp;last=2026-12-10#weak"' in page


async def test_unknown_capacity_is_called_unknown(shown):
    page = await shown().text("/occupancy")
    assert re.search(r'<th scope="row"><bdi>City day pass</bdi></th><td class="number">unknown</td>', page)
    assert not re.search(r"City day pass</bdi>[^\n]*>0 %<", page)


@pytest.mark.deep(2)
async def test_people_of_whom_nobody_says_how_many_are_called_unknown(shown, variant):
    folder = variant("uncounted", "update core.bookings set pax_count = null", "delete from core.booking_unit_items")
    dashboard = shown(folder)
    assert tiles(await dashboard.text("/"))["guests"][0] == "unknown"
    page = await dashboard.text("/pickup")
    assert re.search(
        r'<th scope="row"><bdi><span class="at">Oct 2026</span></bdi></th><td class="number">unknown</td>', page
    )
    assert "bookings without a number of guests" in page


@pytest.mark.deep(0.6)
async def test_a_currency_has_a_chart_of_its_own_and_no_total_is_of_two(shown, published):
    totals = dict(
        ask(
            published,
            "select currency, sum(retail_amount) from marts.fct_bookings where is_sold and travel_date "
            "between date '2026-06-01' and date '2027-05-31' group by 1",
        )
    )
    page = await shown().text("/revenue?first=2026-06-01&last=2027-05-31")
    drawn = charts(page)
    assert 4 <= len(totals) == len(drawn)
    for chart in drawn.values():
        (currency,) = [c for c in totals if chart["id"] == f"revenue-{c.lower()}"]
        amount = sum(
            (value["value"] if isinstance(value, dict) else value) or 0
            for series in chart["option"]["series"]
            for value in series["data"]
        )
        assert round(amount, 3) == float(totals[currency])
        assert wording.money_text(totals[currency], currency) in page


@pytest.mark.parametrize(
    ("months", "days"),
    [
        ([(2026, 11)], 394 + 31),  # from 1 November 2025 to 30 November 2026
        ([(2026, 9), (2026, 10)], 455 + 31),  # over: from 1 September 2025 to the end of this month
        ([(2026, 12), (2027, 2)], 454 + 31),  # from 1 December 2025 to 28 February 2027
    ],
)
def test_what_pace_lacks_is_in_the_horizon_for_as_long_as_its_months_are_shown(months, days):
    rows = [
        {"as_of_date": dt.date(2026, 11, 20), "travel_month": dt.date(*month, 1), "is_last_year_complete": False}
        for month in months
    ]
    assert f"has to begin {days} days before today." in pickup._by_the_end(rows)
    assert "horizon" not in pickup._by_the_end([{**row, "is_last_year_complete": True} for row in rows])


@pytest.mark.deep(0.6)
async def test_the_pick_up_curve_stops_where_the_month_is_still_to_come(shown):
    page = await shown().text("/pickup")
    assert "fetch older bookings" in page, "nothing is known of last year"
    option = charts(page)["pick-up"]["option"]
    series = {s["name"]: dict(zip(option["xAxis"]["data"], s["data"], strict=True)) for s in option["series"]}
    november = series["Nov 2026"]
    assert november["14 d"] is not None, "the last day is ten days away"
    assert november["7 d"] is None
    assert all(value is not None for value in series["Oct 2026"].values())
    styles = {s["name"]: s["lineStyle"]["type"] for s in option["series"]}
    assert (styles["Oct 2026"], styles["Nov 2026"]) == ("solid", "dashed")


@pytest.mark.deep(0.6)
async def test_a_month_has_one_colour_on_all_pages(shown):
    pages = [
        charts(await shown().text(address))["pick-up"]["option"]["series"]
        for address in ("/", "/pickup?first=2026-11-01&last=2026-12-31")
    ]
    first, second = ({line["name"]: line["color"] for line in lines} for lines in pages)
    both = first.keys() & second.keys()
    assert list(first) != list(second)
    assert len({first[month] for month in both}) == len(both) > 1
    assert {month: first[month] for month in both} == {month: second[month] for month in both}


@pytest.mark.deep(1)
async def test_the_pick_up_curve_has_who_was_on_the_books_then_and_beside_a_month_the_one_a_year_earlier(
    shown, variant
):
    """September of this year and, moved a year ahead, half of it: as if that one was still to travel."""
    folder = variant(
        "year-ago",
        "update core.bookings set local_date = local_date + 365 where booking_uuid < '8' and local_date < '2026-10-01'",
        "update core.bookings set status = 'CANCELLED', utc_cancelled_at = cast(local_date - 2 as timestamptz) "
        "where booking_uuid > 'd' and local_date between '2026-09-01' and '2026-09-30' and utc_cancelled_at is null",
    )
    chart = charts(await shown(folder).text("/pickup?first=2027-08-01&last=2027-10-31"))["pick-up"]["option"]
    series = {s["name"]: dict(zip(chart["xAxis"]["data"], s["data"], strict=True)) for s in chart["series"]}
    looks = {s["name"]: (s["lineStyle"]["type"], s["color"]) for s in chart["series"]}
    assert looks["Sep 2026"] == ("dotted", looks["Sep 2027"][1])
    assert looks["Sep 2027"][0] == "dashed"
    left = 0
    for out in (0, 3, 30, 60):
        ((then, stayed),) = ask(
            folder,
            "select sum(pax_count) filter (where not is_cancelled or notice_days < $1), sum(pax_count) filter (where not "
            "is_cancelled) from marts.fct_bookings where was_sold and travel_month = '2026-09-01' and lead_days >= $1",
            out,
        )
        assert series["Sep 2026"][f"{out} d"] == (then or 0), out
        left += (then or 0) - (stayed or 0)
    assert left > 0
    whole = charts(await shown(folder).text("/pickup?first=2026-09-01&last=2027-10-31"))["pick-up"]["option"]["series"]
    assert [s["lineStyle"]["type"] for s in whole if s["name"] == "Sep 2026"] == ["solid"], "it is there already"


@pytest.mark.deep(2)
async def test_what_is_known_in_part_is_said_of_the_channels_that_are_chosen(shown, variant):
    """Not of the one that is known farthest back."""
    folder = variant(
        "late",
        "insert into core.connections select * replace ('late' as connection_id, 'Late' as channel) from core.connections",
        "insert into ops.coverage select * replace ('late' as connection_id, greatest(window_start, date '2026-11-10') as "
        "window_start) from ops.coverage where resource = 'bookings' and travel_month >= '2026-11'",
    )
    ((early,),) = ask(folder, "select bookings_from from marts.dim_channel where connection_id = 'main'")
    dashboard = shown(folder)
    for path in ("/", "/revenue", "/cancellations"):
        assert "Data before Tue 10 Nov 2026 is incomplete" in await dashboard.text(path), path
    for path in ("/revenue", "/cancellations"):
        page = await dashboard.text(f"{path}?channel=main")
        assert f"Data before {wording.day(early)} is incomplete" in page


@pytest.mark.deep(0.4, everyday=1)
@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("last=2026-03-31", "Dec 2025 to Mar 2026"),
        ("first=2027-06-10", "Jun 2027 to Oct 2027"),
        ("", "Aug 2026 to Mar 2027"),
    ],
)
async def test_pick_up_with_one_day_given_counts_from_it(shown, asked, said):
    assert f"Months of travel {said}" in await shown().text(f"/pickup?{asked}")


@pytest.mark.deep(1)
async def test_two_connections_of_one_channel_are_one_line_of_both(shown, variant):
    folder = variant(
        "same-name",
        "insert into core.connections select * replace ('twin' as connection_id) from core.connections",
        "update core.connections set channel = 'Web'",
        "insert into core.bookings select * replace ('twin' as connection_id) from core.bookings "
        "where status <> 'CANCELLED' and utc_created_at < timestamptz '2026-11-01 00:00:00+00'",
    )
    wanted = ask(
        folder,
        "select count(*) filter (where is_cancelled) / count(*) from marts.fct_bookings where was_sold "
        "group by booking_month order by 1".replace("booking_month", "substr(cast(booking_date as text), 1, 7)"),
    )
    drawn = charts(await shown(folder).text("/cancellations"))["rate-by-month"]["option"]["series"]
    assert [series["name"] for series in drawn] == ["Web"]
    values = sorted(value for value in drawn[0]["data"] if value is not None)
    assert values == pytest.approx([share for (share,) in wanted])


@pytest.mark.deep(1)
async def test_sold_bookings_without_a_day_of_travel_are_told_apart_per_currency(shown, variant):
    folder = variant(
        "undated",
        "update core.bookings set local_date = null where currency = 'EUR' and status in ('CONFIRMED', 'REDEEMED') "
        "and local_date > date '2026-11-01'",
    )
    found = ask(
        folder,
        "select currency, count(*), sum(retail_amount), count(*) filter (where status = 'REDEEMED') from marts.fct_bookings "
        "where is_sold and travel_date is null group by 1",
    )
    dashboard = shown(folder)
    for path in ("/", "/revenue", "/revenue?currency=EUR"):
        page = html.unescape(await dashboard.text(path))
        for currency, count, amount, used in found:
            money = wording.money_text(amount, currency)
            told = f"{count} sold in {currency}" if amount is None else f"{count} sold for {money}"
            told += f", {used} of them used" if used else ""
            assert (told in page) is (currency == "EUR" or "=" not in path), (path, told)
    assert {bool(used) for currency, *_, used in found if currency == "EUR"} == {True}


async def test_test_bookings_are_listed_where_asked_for_and_counted_nowhere(shown, published):
    ((tests,),) = ask(published, "select count(*) from core.bookings where is_test and not is_deleted")
    assert tests > 0
    dashboard = shown()
    plain, listed = await dashboard.text("/"), await dashboard.text("/?tests=1")
    assert f"{tests} test bookings are left out" in plain
    assert 'id="tests"' not in plain
    section = listed[listed.index('id="tests"') :]
    assert sum(int(n) for n in re.findall(r'<td class="number">(\d+)</td>', section)) == tests
    assert tiles(plain) == tiles(listed)


# -- filters ------------------------------------------------------------------------------------------------------------


async def test_a_filter_shows_only_what_it_says(shown, published):
    (key, name), *_ = ask(published, "select product_key, product_name from marts.dim_product order by 2 desc")
    page = await shown().text(f"/occupancy?product={key}&first=2026-11-25&last=2026-11-30")
    heads, lines = heat_map(page, "fill-map")
    assert list(lines) == [name]
    assert heads == [
        "Product",
        "Wed 25 Nov",
        "Thu 26 Nov",
        "Fri 27 Nov",
        "Sat 28 Nov",
        "Sun 29 Nov",
        "Mon 30 Nov",
    ]
    assert f'<option value="{key}" selected>' in page
    assert 'name="first" value="2026-11-25"' in page


NONSENSE = {
    "/occupancy?first=tomorrow": "expected a day such as 2026-11-20",
    "/occupancy?first=2026-12-01&last=2026-11-01": "is after the last one",
    "/occupancy?first=2026-01-01&last=2026-12-01": "too many for a map",
    "/occupancy?first=0001-01-01": "expected a day between 1990 and 2200",
    "/revenue?first=2020-01-01&last=2026-01-01": "choose fewer",
    "/pickup?first=2024-01-01&last=2026-01-01": "more than 15 months",
    "/occupancy?product=nothing": "has no product",
    "/revenue?currency=EUR%00": "no text",
    "/revenue?currency=XXX": "has no currency",
    "/cancellations?channel=<script>": "has no channel",
    "/occupancy?channel=main": "has no filter",
    "/?colour=blue": "has no filter",
    "/?tests=yes": "is 1 or nothing",
    f"/revenue?product={'x' * 400}": "at most 300 characters",
}


@pytest.mark.deep(0.1, everyday=4)
@pytest.mark.parametrize("path", NONSENSE)
async def test_nonsense_is_refused_with_a_sentence(shown, path):
    answer = await shown().get(path)
    assert answer.status_code == 400
    assert NONSENSE[path] in html.unescape(answer.text)
    assert "<script>" not in answer.text.replace('<script src="', "")


async def test_a_page_that_is_none_names_those_that_are(shown):
    answer = await shown().get("/no/such/page")
    assert answer.status_code == 404
    assert 'href="../../occupancy"' in answer.text


@pytest.mark.deep(2)
async def test_the_same_page_is_made_once_a_minute_and_copy(shown, monkeypatch):
    at = NOON + dt.timedelta(hours=1)
    dashboard = shown(now=lambda: at)
    first = await dashboard.text("/")
    dashboard.source.forget()
    asked = []
    real = dashboard.source.rows
    monkeypatch.setattr(dashboard.source, "rows", lambda name, **more: asked.append(name) or real(name, **more))
    assert await dashboard.text("/") == first
    assert asked == []
    at += dt.timedelta(minutes=1)
    assert "Oldest part" in await dashboard.text("/")
    assert "standing" in asked


def test_a_channel_keeps_its_colour_whatever_its_rank_and_the_others_are_grey():
    colors = {"Beach desk": SERIES[0], "Viator": SERIES[1]}
    one = bars(["Mon"], {"Viator": [9], "Beach desk": [1], "3 others": [1]}, colors=colors)
    other = lines(["Mon"], {"Beach desk": [9], "Viator": [1]}, colors=colors)
    assert [each["color"] for each in one["series"]] == [SERIES[1], SERIES[0], SERIES[-1]]
    assert [each["color"] for each in other["series"]] == [SERIES[0], SERIES[1]]


A_YEAR_LATER = (
    *(f"update core.bookings set {at} = {at} - interval '1 year'" for at in ("utc_created_at", "utc_confirmed_at")),
    "update core.bookings set local_date = local_date + 365 where booking_uuid < '8'",
    (
        "insert into ops.coverage select * replace (replace(key, '2026-12', '2027-12') as key, '2027-12' as travel_month, "
        "date '2027-12-01' as window_start, date '2027-12-31' as window_end) "
        "from ops.coverage where resource = 'bookings' and travel_month = '2026-12'"
    ),
)
"""Everything was booked a year ago, and half of it travels a year later; next December was asked for, November not."""


@pytest.mark.deep(1)
async def test_overview_says_what_the_month_brings_in_its_largest_currency(shown, variant):
    folder = variant("no-price", "update core.bookings set retail_amount = null where booking_uuid < '4'")
    found = ask(
        folder,
        "select currency, count(*), sum(retail_amount), count(*) - count(retail_amount) from marts.fct_bookings "
        "where is_sold and travel_month = '2026-11-01' group by 1 order by 2 desc, 1",
    )
    (currency, bookings, retail, without), *others = found
    page = await shown(folder).text("/")
    more = sum(row[1] for row in others)
    assert without > 0
    assert tiles(page)["month"] == (
        wording.money_text(retail, currency),
        f"in {bookings} sold bookings; {without} of them have no price; {more} more in other currencies",
    )
    assert './revenue?first=2026-11-01&amp;last=2026-11-30"' in page


async def test_overview_sets_this_month_beside_the_one_before_and_the_lead_time_beside_that_of_30_days_earlier(
    shown, published, variant
):
    """A month with a booking without a price, or that began before bookings are known, is no number."""
    page = await shown().text("/")
    currency = tiles(page)["month"][0].split()[-1]
    sold = ask(
        published,
        "select sum(coalesce(retail_amount, -1000000)) from core.bookings where status in ('CONFIRMED', 'REDEEMED', 'NOSHOW') "
        "and not is_deleted and not is_test and currency = $1 and local_date between '2026-09-01' and '2026-11-30' "
        "group by month(local_date) order by month(local_date)",
        currency,
    )
    _, (october,), (november,) = sold
    assert min(sold) > (0,)
    assert tiles(page)["month"][0] == wording.money_text(november, currency)
    assert f"vs {wording.money_text(october, currency)} in all of Oct 2026; in " in tiles(page)["month"][1]
    least, most = (int(extreme) for (extreme,) in (min(sold), max(sold)))
    assert f"<title>{currency} a month of travel, up to this one: {least:,} to {most:,}</title>" in page
    ((lead,),) = ask(
        published,
        "select median(local_date - cast(utc_created_at at time zone time_zone as date)) from core.bookings "
        "where status in ('CONFIRMED', 'REDEEMED', 'NOSHOW') and not is_deleted and not is_test "
        "and cast(utc_created_at at time zone 'UTC' as date) between date '2026-11-20' - 60 and date '2026-11-20' - 31",
    )
    assert tiles(page)["lead-time"][1].startswith(f"vs {lead:g} in the 30 days before; ")
    october_alone = "retail_amount = null where currency = '{}' and local_date between '2026-10-01' and '2026-10-31'"
    page = await shown(variant("one-month", f"update core.bookings set {october_alone.format(currency)}")).text("/")
    assert tiles(page)["month"][1].startswith("in ")
    page = await shown(
        variant("lately", "update ops.coverage set window_start = '2026-11-01' where resource = 'bookings'")
    ).text("/")
    assert "vs " not in tiles(page)["month"][1] + tiles(page)["lead-time"][1]


@pytest.mark.parametrize(("names", "said"), [("'ledger'", True), ("'ledger' || n % 2", False)])
async def test_the_tile_of_differences_has_the_course_of_one_comparison(shown, variant, names, said):
    run = f"{names}, 'r' || n, 'ok', date '2026-11-01' + n::int, date '2026-11-01', date '2026-11-30', 40 - n * n"
    into = "recon_name, run_id, verdict, ended_at_utc, window_start, window_end, open_differences"
    folder = variant("compared", f"insert into ops.recon_runs ({into}) select {run} from range(6) r(n)")
    page = await shown(folder).text("/")
    (drawn,) = re.findall(r'data-tile="differences">(.*?)</li>', page, re.DOTALL)
    assert ("<title>After each of the last runs: 15 to 40</title>" in drawn) is said
    assert (f'd="{_course([40, 39, 36, 31, 24, 15])}"' in drawn) is said


@pytest.mark.deep(1)
async def test_pick_up_says_in_all_what_is_on_the_books_and_of_last_year_only_of_months_known_in_both(shown, variant):
    folder = variant("pace", *A_YEAR_LATER)
    page = await shown(folder).text("/pickup?first=2026-10-01&last=2027-12-31")
    on = "sum(pax_count) filter (where sold_date <= date '{}' and (not is_cancelled or cancelled_date > date '{}'))"
    of = "from marts.fct_bookings where was_sold and (not is_cancelled or cancelled_date is not null) and travel_month"
    complete = "and travel_month in (select travel_month from marts.booking_months where is_complete)"
    guests = [
        ask(folder, f"select {on.format(day, day)} {of} between '{first}-01' and '2027-12-01' {which}")[0][0]
        for day, first, which in (
            ("2026-11-19", "2026-12", complete), ("2026-11-12", "2026-12", complete), ("2026-11-19", "2026-10", ""),
            ("2026-10-15", "2026-12", complete),
        )
    ]  # fmt: skip
    now, before, then, before_then = (
        ask(folder, f"select {on.format(day, day)} {of} = '{month}-01'")[0][0]
        for day, month in (
            ("2026-11-19", "2027-12"), ("2026-11-12", "2027-12"), ("2025-11-19", "2026-12"), ("2025-11-12", "2026-12"),
        )
    )  # fmt: skip
    week = f"{now - before:,} against {then - (before_then or 0):,} in the same week last year, travel Dec 2027"
    assert tiles(page) == {
        "guests": (
            f"{guests[0]:,}",
            f"vs {guests[1]:,} a week before; travel Dec 2026 to Dec 2027, complete months alone",
        ),
        "new": (
            f"{guests[0] - guests[1]:,}",
            f"vs {(guests[1] - guests[3]) / 4:,.1f}".removesuffix(".0") + f" in a usual week; {week}",
        ),
        "last-year": (wording.share(now / then), f"{now:,} guests against {then:,}, travel Dec 2027"),
    }
    assert guests[0] != guests[1]
    assert table(page, "Guests on the books, by month of travel")[-1][:2] == ["all of them", f"{guests[2]:,}"]


async def test_the_lines_of_pick_up_are_the_guests_at_the_end_of_each_day_and_those_new_on_it(shown, published):
    ends = [TODAY - dt.timedelta(days=n) for n in range(31, 0, -1)]
    on_books = [
        ask(
            published,
            "select coalesce(sum(pax_count), 0) from core.bookings where not is_deleted and not is_test "
            "and local_date between '2026-12-01' and '2026-12-31' "
            "and cast(greatest(utc_created_at, utc_confirmed_at) at time zone 'UTC' as date) <= $1 "
            "and (status in ('CONFIRMED', 'REDEEMED', 'NOSHOW') or (status = 'CANCELLED' and utc_confirmed_at is not null and "
            "cast(utc_cancelled_at at time zone 'UTC' as date) > $1))",
            day,
        )[0][0]
        for day in ends
    ]
    page = await shown().text("/pickup?first=2026-11-01&last=2026-12-31")
    drawn = {name: re.findall(r' d="([^"]+)"', tile)
             for name, tile in re.findall(r'data-tile="([^"]+)">(.*?)</li>', page, re.DOTALL)}  # fmt: skip
    assert drawn["guests"] == [_course(on_books[1:])]
    assert drawn["new"] == [_course([after - before for before, after in pairwise(on_books)])]
    assert on_books[-1] > on_books[0]


@pytest.mark.deep(2)
async def test_pace_compares_with_the_same_time_last_year_where_both_months_are_known(shown, variant):
    folder = variant("pace", *A_YEAR_LATER)
    guests = (
        "sum(pax_count) filter (where is_sold), sum(pax_count) filter (where is_sold or cancelled_date is not null)"
    )
    months = {
        m: rest
        for m, *rest in ask(folder, f"select travel_month, {guests} from marts.fct_bookings where was_sold group by 1")
    }
    (now, _), (final, then) = (months[dt.date(year, 12, 1)] for year in (2027, 2026))
    assert 0 < now < then
    page = await shown(folder).text("/pickup?first=2026-11-01&last=2027-12-31")
    assert "Counted at the end of Thu 19 Nov 2026, the last whole day." in page

    def cells(caption, month):
        table = page.partition(caption)[2].partition("</table>")[0]
        return [
            [re.sub(r"</?a[^>]*>", "", cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row)]
            for row in re.findall(rf'<th scope="row"><bdi><span class="at">{month}</span></bdi></th>(.*?)</tr>', table)
        ]

    curve = cells("Guests on the books, by month of travel and days before it<", "Dec 2026")
    assert {(row[3], row[4], row[5]) for row in curve} == {("not over", "—", "<bdi>no</bdi>")}
    ((dec_2027,), (nov,), (dec_2026,)) = (
        cells("Guests on the books, by month of travel<", m) for m in ("Dec 2027", "Nov 2027", "Dec 2026")
    )
    assert dec_2027[0] == f"{now:,}"
    assert dec_2027[1:3] == [f"{then:,}", f"-{round((1 - now / then) * 100)} %"]
    assert dec_2027[9:11] == [f"{final:,}", "<bdi>yes</bdi>"]
    assert nov[1] != "unknown"
    assert nov[2] == "unknown", "not all of next November was asked for"
    assert [dec_2026[n] for n in (1, 2, 6, 9)] == ["unknown"] * 4, "nobody asked for December 2025"

    retail = dict(ask(folder, "select currency, sum(retail_amount) from marts.fct_bookings "
        "where is_sold and travel_month = '2027-12-01' group by 1"))  # fmt: skip
    amounts = cells("Retail amounts on the books, by month of travel and currency<", "Dec 2027")
    assert len(amounts) == len(retail) > 1
    assert {tuple(row[:2]) for row in amounts} == {(f"<bdi>{c}</bdi>", wording.money(v, c)) for c, v in retail.items()}
    assert all(re.fullmatch(r"-?\d+ %", row[3]) for row in amounts), amounts


async def test_a_time_is_one_click_keeps_what_was_chosen_and_goes_along_to_other_pages(shown, published):
    dashboard = shown()
    key = ask(published, "select min(product_key) from marts.dim_product")[0][0]
    page = await dashboard.text(f"/revenue?product={quote(key)}")
    offered = {
        name: html.unescape(address)
        for address, name in re.findall(r'<a href="\./(revenue\?[^"]*)"[^>]*>([a-z0-9 ]+)</a>', page)
    }
    assert list(offered) == [
        "today", "tomorrow", "last 7 days", "next 7 days", "last 30 days", "next 30 days",
        "last month", "this month", "next month", "next 3 months", "this year",
    ]  # fmt: skip
    months = await dashboard.text("/finance")
    assert re.findall(r'<a href="\./finance\?[^"]*"[^>]*>([a-z0-9 ]+)</a>', months.partition('class="choices"')[2]) == [
        "last month", "this month", "next month", "next 3 months", "this year",
    ], "days are no choice of a page of months"  # fmt: skip
    past = (await dashboard.text("/cancellations")).partition('class="choices"')[2]
    assert re.findall(r'<a href="\./cancellations\?[^"]*"[^>]*>([a-z0-9 ]+)</a>', past) == [
        "last 7 days", "last 30 days", "last month", "this month", "this year",
    ], "no booking was made on a day to come"  # fmt: skip
    assert offered["last month"] == f"revenue?first=2026-10-01&last=2026-10-31&{urlencode({'product': key})}"
    assert offered["next 7 days"].startswith("revenue?first=2026-11-20&last=2026-11-26")
    chosen = await dashboard.text(f"/{offered['last month']}")
    assert 'aria-current="true">last month<' in chosen
    assert 'name="first" value="2026-10-01"' in chosen
    links = {
        name: html.unescape(address)
        for address, name in re.findall(r'<li><a href="\./([^"]*)"[^>]*>([^<]+)</a>', chosen)
    }
    handed_on = {name for name, address in links.items() if address.endswith("?first=2026-10-01&last=2026-10-31")}
    assert handed_on == {page.title for page in all_pages() if not page.under} - {"SQL"}
    today = await dashboard.text(f"/{links['Today']}")
    assert html.escape(links["Finance"]) in today, "a page without dates hands them on"
    assert (await dashboard.get("/today?first=soon")).status_code == 400
    assert (await dashboard.get(f"/{links['Finance']}")).status_code == 200
    assert "first=" not in (await dashboard.text("/today")).partition("<main")[0], "no days were asked for"


def test_a_course_is_a_line_from_0_with_gaps_where_nothing_is_known():
    assert _course([0, 11, 22]) == "M0.0 23.0h.1 L50.0 12.0 L100.0 1.0"
    assert _course([4, None, 2]) == "M0.0 1.0h.1 M100.0 12.0h.1"
    assert _course([0, 0]) == "M0.0 23.0h.1 L100.0 23.0"
    assert _course([-11, 11]) == "M0.0 23.0h.1 L100.0 1.0", "less than 0 is below it"
