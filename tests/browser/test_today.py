"""The way from the day sheet to a booking and back, in a browser: narrow and wide, light and dark, hostile, and on paper."""

import re
from urllib.parse import urlencode

import pytest
from tests.browser import copies
from tests.browser.conftest import THEMES, WIDTHS
from tests.browser.test_pages import AUDIT, ask, audited

LANDSCAPE = 1047
"""Pixels: A4 on its side without its margins."""


def looked_at(window, pictured, name):
    for theme in THEMES:
        window.page.emulate_media(color_scheme=theme)
        audited(window)
        pictured(window, f"{name}-{theme}")


def follow(window, selector):
    """Clicks the first link of that kind in the page's content."""
    window.page.locator(f"main {selector}").first.click()
    window.page.wait_for_load_state()


@pytest.mark.deep(3)
@pytest.mark.parametrize("width", WIDTHS)
def test_four_clicks_lead_from_a_tile_to_a_booking_and_back(look, demo, serving, pictured, width):
    # Not every day has a guest: it is the day of the next departure that has one.
    ((at,),) = ask(
        demo, "select min(d.utc_start_at) from marts.fct_bookings b join marts.fct_departures d using (departure_key) "
        "where b.is_sold and d.is_followed and d.utc_start_at > now()"
    )  # fmt: skip
    window = look(serving(demo, at), width=WIDTHS[width])
    page = window.page
    window.open("today")
    looked_at(window, pictured, f"way-1-today-{width}")
    booked = page.locator("td:nth-child(9)", has_text=re.compile("^[1-9]"))
    with_guests = page.locator("#today tbody tr").filter(has=booked).first
    name = with_guests.locator("a").first.inner_text()

    page.locator("[data-tile=guests-today] a").click()
    assert page.url.endswith("/today#today")
    with_guests.locator("a").first.click()
    page.wait_for_load_state()
    assert page.inner_text("h1").startswith(name.partition(" · ")[0])
    looked_at(window, pictured, f"way-2-departure-{width}")
    reference = page.locator("main tbody th a").first.inner_text()
    follow(window, "tbody th a")
    assert reference in page.inner_text("h1")
    looked_at(window, pictured, f"way-3-booking-{width}")
    page.get_by_role("navigation").get_by_role("link", name="Today").click()
    assert page.inner_text("h1") == "Today"
    assert window.said() == []


@pytest.mark.deep(2, everyday=["month-bookings"])
@pytest.mark.parametrize(
    ("tile", "through"),
    [
        *((tile, "bookings?") for tile in ("bookings", "guests", "cancelled", "month")),
        ("lead-time", ""),
        ("differences", "difference?"),
    ],
    ids=lambda value: value.strip("?"),
)
def test_each_tile_of_bookings_leads_to_one_and_back_by_four_clicks_at_most(look, base, tile, through):
    window = look(base)
    window.open()
    follow(window, f"[data-tile={tile}] a")
    for part in filter(None, (through, "booking?")):
        follow(window, f"tbody a[href*='/{part}']:visible, .facts a[href*='/{part}']")
    assert window.page.inner_text("h1").startswith("Booking ")
    window.page.get_by_role("navigation").get_by_role("link", name="Overview").click()
    assert window.page.locator(f"[data-tile={tile}]").is_visible()
    assert window.said() == []


@pytest.mark.deep(3)
def test_an_open_difference_leads_to_its_booking(look, base):
    window = look(base, width=390)
    window.open("reconcile")
    follow(window, "tbody a[href*='difference?']")
    audited(window)
    follow(window, "a[href*='booking?']")
    assert window.page.inner_text("h1").startswith("Booking ")
    assert "open" in window.page.inner_text("#differences tbody")
    audited(window)


@pytest.mark.deep(4)
def test_hostile_texts_on_the_way_are_texts_and_nothing_else(look, demo, serving, tmp_path, pictured):
    folder = copies.hostile(demo, tmp_path / "hostile")
    ((key, departure, day),) = ask(
        folder, "select b.booking_key, b.departure_key, b.travel_date from marts.fct_bookings b "
        "join core.booking_extra_items x using (connection_id, booking_uuid) where b.departure_key is not null "
        "and exists (select 1 from core.booking_taxes t where t.booking_uuid = b.booking_uuid) order by 1 limit 1"
    )  # fmt: skip
    window = look(serving(folder), width=390)
    for name, path in (
        ("today", "today?since=7d"),
        ("departure", f"departure?{urlencode({'key': departure, 'day': day})}"),
        ("booking", f"booking?{urlencode({'find': key})}"),
    ):
        assert window.open(path).status == 200
        audited(window)
        page = window.page
        assert page.title() != "taken"
        assert copies.HOSTILE["script"] in page.text_content("main")
        found = "[...document.images].length + document.querySelectorAll('main script, iframe, main h1 + h1').length"
        assert page.evaluate(found) == 0
        assert "10587703" not in page.locator("main").inner_text()
        pictured(window, f"{name}-hostile-way")


@pytest.mark.deep(2)
def test_the_day_sheet_on_paper_is_a_table_a_day_and_nothing_else(look, base, tmp_path):
    window = look(base, theme="dark")
    window.open("today")
    window.page.emulate_media(media="print")
    tables = [each for each in window.page.locator("main table").all() if each.is_visible()]

    assert len(tables) == 2
    assert not window.page.locator("nav").is_visible()
    assert not window.page.locator(".tiles").is_visible()
    # Chromium repeats a table's head on each sheet, and leaves out buttons in it.
    shown = "[...document.querySelectorAll('thead button')].map(each => getComputedStyle(each).display)"
    assert set(window.page.evaluate(shown)) == {"contents"}
    window.page.set_viewport_size({"width": LANDSCAPE, "height": 700})
    assert [each for each in window.page.evaluate(AUDIT)["wrong"] if each.startswith("broken")] == []
    window.page.pdf(path=tmp_path / "today.pdf", prefer_css_page_size=True)
    boxes = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", (tmp_path / "today.pdf").read_bytes())
    assert boxes
    assert all(float(width) > float(height) for width, height in boxes), "its pages lie on their side"
