"""Every page, narrow and wide, light and dark: nothing is wrong with it, and its numbers are those of the copy."""

import re
from pathlib import Path

import duckdb
import pytest
from axe_playwright_python.sync_playwright import Axe
from tests.browser import copies
from tests.browser.conftest import THEMES, WIDTHS
from tests.dashboard.test_pages import OURS

from octo_sync.dashboard.app import all_pages

AUDIT = (Path(__file__).parent / "audit.js").read_text(encoding="utf-8")
PAGES = {page.name: page.path for page in all_pages()}
DRAWN = {address.strip("/") or "overview" for address in OURS}
"""Those that have pictures."""


def audited(window, *, axe_sees_contrast=False):
    """How the page that is shown is; nothing may be wrong with it. Contrast takes axe most of its time: asked apart."""
    found = window.page.evaluate(AUDIT)
    assert found["wrong"] == []
    rules = {"duplicate-id": {"enabled": True}, "color-contrast": {"enabled": axe_sees_contrast}}
    axe = Axe().run(window.page, options={"rules": rules, "resultTypes": ["violations", "incomplete"]}).response
    in_doubt = [each for each in axe["incomplete"] if each["id"] != "color-contrast"]
    assert [(each["id"], each["nodes"][0]["html"]) for each in axe["violations"] + in_doubt] == []
    assert axe["passes"]
    assert window.said() == []
    return found


def ask(folder, sql, *parameters):
    with duckdb.connect(folder / copies.READ, read_only=True) as copy:
        copy.execute("set timezone = 'UTC'")
        return copy.execute(sql, list(parameters)).fetchall()


def number(text):
    return int(re.sub(r"[^\d]", "", text))


@pytest.mark.deep(5, everyday=["overview-narrow", "channels-wide", "reconcile-narrow"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_wrong_with_a_page(look, base, pictures, name, width):
    window = look(base, width=WIDTHS[width])
    answer = window.open(PAGES[name])
    assert answer.status == 200
    for theme in THEMES:
        window.page.emulate_media(color_scheme=theme)
        found = audited(window, axe_sees_contrast=True)
        assert found["texts"] > 20
        assert all(chart["nodes"] > 20 and chart["rows"] for chart in found["charts"]), found["charts"]
        assert bool(found["charts"]) == (name in DRAWN), (
            f"{name}: pages with charts are in OURS of tests/dashboard/test_pages.py, and no others"
        )
        window.page.screenshot(path=pictures / f"{name}-{width}-{theme}.png", full_page=True)


README_PICTURE = 1280, 920


def size_of(picture):
    """Width and height, from a PNG's header."""
    head = picture.read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    return int.from_bytes(head[16:20]), int.from_bytes(head[20:24])


@pytest.mark.deep(2)
def test_the_readme_picture(look, base, pictures):
    width, height = README_PICTURE
    window = look(base, width=width, height=height, device_scale_factor=1)
    window.open()
    picture = pictures / "dashboard.png"

    window.page.screenshot(path=picture)

    charts = audited(window)["charts"]
    assert len(charts) >= 4
    assert all(chart["nodes"] > 20 for chart in charts), charts
    shown = window.page.locator(".chart svg").evaluate_all(
        "(all, height) => all.filter(e => e.getBoundingClientRect().top < height).length", height
    )
    assert shown >= 2, "pictures are in the part that is shown"
    assert size_of(picture) == README_PICTURE


def test_tiles_say_what_sql_says(look, base, demo):
    window = look(base)
    window.open()
    ((today,),) = ask(demo, "select max(as_of_date) from marts.dim_channel")
    ((bookings,),) = ask(
        demo, "select count(*) from core.bookings b join marts.fct_bookings f using (booking_uuid) "
        "where f.was_sold and not b.is_test and f.booking_date = $1 - 1", today,
    )  # fmt: skip
    ((differences,),) = ask(
        demo, "select count(*) from ops.recon_results where resolved_at_utc is null and accepted_note is null"
    )
    ((sold_out,),) = ask(
        demo, "select count(*) from (select product_id, cast(local_start_at as date) as day, "
        "bool_and(status in ('SOLD_OUT', 'CLOSED')) and bool_or(status = 'SOLD_OUT') as gone from core.availability "
        "where not is_deleted group by 1, 2) where gone and day between $1 and $1 + 29", today,
    )  # fmt: skip

    shown = {
        name: number(window.page.inner_text(f"[data-tile={name}] b"))
        for name in ("bookings", "differences", "sold-out")
    }

    assert shown == {"bookings": bookings, "differences": differences, "sold-out": sold_out}
    assert differences == 9


@pytest.mark.deep(2)
def test_the_heat_map_has_a_cell_for_every_product_and_day(look, base, demo):
    window = look(base)
    window.open("occupancy")
    ((cells, products),) = ask(
        demo, "select count(*), count(distinct product_key) from marts.agg_occupancy_daily o "
        "where travel_date between (select max(as_of_date) from marts.dim_channel) and "
        "(select max(as_of_date) + 41 from marts.dim_channel)",
    )  # fmt: skip

    figure = window.page.locator("figure").first
    colours = figure.locator("tbody td:not(:empty)").evaluate_all(
        "all => all.map(each => getComputedStyle(each).backgroundColor)"
    )

    assert products == 8
    assert len(colours) == cells
    assert "rgba(0, 0, 0, 0)" not in colours, "each cell has a colour"
    assert len(set(colours)) > 3
    cell = figure.locator("tbody a").last
    address = cell.get_attribute("href")
    cell.click()
    window.page.wait_for_url("**/occupancy?first=*#departures")
    assert window.page.url.endswith(address.removeprefix("./")), "a cell leads to its departures"
    assert window.page.locator("#departures tbody tr").count() > 0


def test_a_click_on_a_bar_opens_the_bookings_that_it_counts(look, base):
    window = look(base)
    window.open()
    place = window.page.locator("#bookings-by-channel")
    place.scroll_into_view_if_needed()
    name, value, x, y = place.evaluate(
        """place => {
        const chart = echarts.getInstanceByDom(place), [series] = chart.getOption().series;
        const at = series.data.findIndex(value => value === Math.max(...series.data));
        const box = place.getBoundingClientRect(), [x, y] = chart.convertToPixel({seriesIndex: 0}, [at, series.data[at] / 2]);
        return [series.name, series.data[at], box.left + x, box.top + y]; }"""
    )
    cursor = "place => getComputedStyle(place.firstChild).cursor"
    window.page.mouse.move(x, y)
    assert place.evaluate(cursor) == "pointer"
    window.page.mouse.move(x, 5)
    window.page.mouse.click(x, y)
    window.page.wait_for_url("**/bookings?kind=made&*")

    rows = window.page.get_by_role("region", name="Bookings", exact=True).locator("tbody tr")
    assert rows.count() == value > 0
    heads = window.page.get_by_role("region", name="Bookings", exact=True).locator("thead th").all_inner_texts()
    assert set(rows.locator(f":nth-child({heads.index('Channel') + 1})").all_inner_texts()) == {name}
    assert window.said() == []


MAPPED = """
select coalesce(product_id, connection_id) as place, travel_month, sum(parts) as parts, bool_and(is_complete) as is_complete,
  min(verified_at_utc) as verified_at_utc
from marts.coverage, (select max(last_verified_at_utc) at time zone 'UTC' - interval '4 months' as first from marts.dim_channel)
where travel_month > first group by all
"""
"""The cells of the coverage map, when all connections sell for one supplier."""


@pytest.mark.deep(2)
def test_the_coverage_map_has_a_cell_for_every_product_and_month(look, base, demo):
    window = look(base)
    window.open("sync")
    ((cells, rows, months),) = ask(
        demo, f"select count(*), count(distinct place), count(distinct travel_month) from ({MAPPED})"
    )
    table = window.page.locator("table.coverage")

    assert table.locator("td:not(.c-none)").count() == cells
    assert table.locator("tbody tr").count() == rows
    assert table.locator("thead th").count() == months + 1
    title = table.locator("td.c-hour").first.get_attribute("title")
    assert re.search(r"verified 20\d\d-.* by (schedule|notification|confirm|user); asked for 20.*; complete\.$", title)


@pytest.mark.deep(1)
def test_the_coverage_map_tells_old_incomplete_and_unanswered_apart(look, demo, serving, tmp_path, pictured):
    first, second, third = (
        row[0] for row in ask(demo, "select distinct product_id from core.products order by 1 limit 3")
    )
    lost = (
        "insert into ops.unanswered select connection_id, resource, key, product_id, option_id, travel_month "
        "from ops.coverage where product_id = $1"
    )
    folder = copies.changed(
        demo,
        tmp_path / "aged",
        (
            "update ops.coverage set verified_at_utc = verified_at_utc - interval '5 days' where product_id = $1",
            [first],
        ),
        ("update ops.coverage set is_complete = false where product_id = $1", [second]),
        (lost, [third]),
        ("delete from ops.coverage where product_id = $1", [third]),
    )
    window = look(serving(folder))
    window.open("sync")
    levels = dict(
        ask(
            folder,
            "select case when parts = 0 then 'never' when verified_at_utc <= n - interval '3 days' then 'week' else 'hour' "
            f"end, count(*) from ({MAPPED}), (select max(last_verified_at_utc) as n from marts.dim_channel) group by 1",
        )
    )
    ((part,),) = ask(folder, f"select count(*) from ({MAPPED}) where not is_complete and parts > 0")
    table = window.page.locator("table.coverage")

    assert {level: table.locator(f"td.c-{level}").count() for level in levels} == levels
    assert set(levels) == {"never", "week", "hour"}
    assert table.get_by_text("! ", exact=False).count() == part
    assert table.locator("td", has_text="5 d").count() == levels["week"]
    assert table.locator("td", has_text="never").count() == levels["never"]
    worth = window.page.inner_text(".worth")
    ((part, never),) = ask(
        folder,
        f"select count(*) filter (not is_complete and parts > 0), count(*) filter (parts = 0) from ({MAPPED}) "
        "where travel_month >= (select date_trunc('month', max(as_of_date)) from marts.dim_channel)",
    )
    assert f"{part} incomplete, {never} never answered" in worth, "months that are over do not count"
    names = table.locator("tbody th").all_inner_texts()
    products = dict(ask(folder, "select product_id, product_name from marts.dim_product"))
    ((channels,),) = ask(folder, "select count(*) from marts.dim_channel")
    assert names[channels : channels + 3] == [products[third], products[second], products[first]], (
        "the worst come first"
    )
    for theme in THEMES:
        window.page.emulate_media(color_scheme=theme)
        audited(window)
        pictured(window, f"sync-aged-{theme}")


@pytest.mark.deep(2)
def test_a_keyboard_reaches_everything(look, base):
    page = look(base).page
    page.goto(f"{base}/")
    page.keyboard.press("Tab")
    skip = page.locator(":focus")
    assert skip.inner_text() == "Skip to the content"
    assert skip.bounding_box()["y"] >= 0, "it can be seen when it has the focus"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "content"

    page.reload()
    reached = []
    for _ in range(80):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.outerHTML.slice(0, 60)"))
        if page.evaluate("document.activeElement.tagName") == "SUMMARY":
            break
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none", reached[-1]
    named = {page.name: page.path for page in all_pages() if not page.under}
    assert [title for title in named if any(f'href="./{named[title]}"' in each for each in reached)] == list(named)
    details = page.locator("details").first
    assert details.get_attribute("open") is None
    page.keyboard.press("Enter")
    assert details.get_attribute("open") is not None


@pytest.mark.deep(2)
def test_a_click_on_the_head_of_numbers_sorts_them_and_the_third_puts_them_back(look, base):
    window = look(base)
    window.open("occupancy")
    table = window.page.get_by_role("region", name="Occupancy by product", exact=True).get_by_role("table")
    titles = table.locator("thead th").all_inner_texts()
    column = table.locator(f"tbody tr > :nth-child({titles.index('Occupancy') + 1})")

    def shown():
        return [float(text.rstrip(" %")) for text in column.all_inner_texts() if text != "unknown"]

    before = shown()
    assert before not in (sorted(before), sorted(before, reverse=True))
    for wanted, said in ((sorted(before, reverse=True), "descending"), (sorted(before), "ascending"), (before, None)):
        table.get_by_role("button", name="Occupancy").click()
        assert shown() == wanted
        assert table.locator("thead th", has_text="Occupancy").get_attribute("aria-sort") == said
    assert window.said() == []


@pytest.mark.deep(2)
def test_amounts_on_the_books_fit_the_screen_and_differences_are_a_part_of_the_page(look, base):
    window = look(base, height=200)
    window.open("pickup")
    boxes = window.page.get_by_role("region", name="amounts on the books").all()
    assert [box.evaluate("box => box.scrollWidth - box.clientWidth") for box in boxes] == [0, 0]
    window.open("reconcile")
    beyond = "box => [box.scrollWidth - box.clientWidth, box.scrollHeight - box.clientHeight]"
    assert window.page.get_by_role("region", name="Open differences of ledger", exact=True).evaluate(beyond) == [0, 0]


@pytest.mark.deep(2)
def test_the_theme_is_remembered(look, base):
    window = look(base)
    page = window.page
    window.open()
    color = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(color)
    page.get_by_role("button", name="Use the dark theme").click()
    dark = page.evaluate(color)
    assert dark != light

    window.open("sync")

    assert page.evaluate(color) == dark
    page.get_by_role("button", name="Use the light theme").click()
    page.reload()
    assert page.evaluate(color) == light
    assert window.said() == []


@pytest.mark.deep(2)
def test_paper_is_white_and_has_no_buttons(look, base):
    window = look(base, theme="dark")
    window.open()
    window.page.emulate_media(media="print")

    assert window.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not window.page.locator("nav").is_visible()
    links = window.page.locator(".links")
    assert links.count() > 0
    assert not any(each.is_visible() for each in links.all())
    assert window.page.locator("[data-tile=bookings]").is_visible()


PAPER = 718 - 32
"""Pixels: A4 without its margins, and a figure's own."""


@pytest.mark.deep(1)
def test_a_map_fits_on_paper(look, base):
    window = look(base)
    window.open()
    window.page.emulate_media(media="print")
    window.page.set_viewport_size({"width": 718, "height": 1000})
    assert window.page.evaluate("document.querySelector('table.map').scrollWidth") <= PAPER


@pytest.mark.deep(2)
def test_charts_fit_on_paper_and_the_screen_is_as_before(look, base, pictures):
    window = look(base, theme="dark")
    window.open()
    drawn = "[...document.querySelectorAll('.chart')].map(c => c.querySelector('svg').clientWidth)"
    before = window.page.evaluate(drawn)
    window.page.evaluate(f"addEventListener('beforeprint', () => {{ window.printed = {drawn} }})")

    window.page.pdf(path=pictures / "overview.pdf", format="A4", print_background=True)

    printed = window.page.evaluate("window.printed")
    assert len(printed) == len(before) > 3
    assert max(printed) <= PAPER
    assert max(before) > 600
    assert window.page.evaluate(drawn) == before
    assert window.page.evaluate("document.documentElement.dataset.theme") is None


@pytest.mark.deep(1, everyday=["revenue"])
@pytest.mark.parametrize("name", PAGES)
def test_without_a_script_the_numbers_are_there(look, base, name):
    window = look(base, java_script_enabled=False)
    assert window.page.goto(f"{base}/{PAGES[name]}").status == 200

    assert window.page.locator("#theme").is_visible() is False
    for figure in window.page.locator("figure").all():
        assert figure.locator("td").first.is_visible()
    cells = window.page.locator("td:visible, .tile b:visible, li a:visible")
    assert cells.count() > 5
    assert window.said() == []


def test_the_readme_names_a_picture_that_exists():
    root = Path(__file__).parents[2]
    named = re.findall(r"!\[[^\]]+\]\(([^):]+\.png)\)", (root / "README.md").read_text(encoding="utf-8"))

    assert named, "the README shows the dashboard"
    assert [each for each in named if not (root / each).is_file()] == []
    assert size_of(root / "docs/img/dashboard.png") == README_PICTURE
