"""Hostile, huge, empty, tiny, stale, damaged and missing copies: the pages stay whole, say what is so, and run nothing."""

import re
from collections import Counter

import pytest
from tests.browser import copies
from tests.browser.conftest import WIDTHS
from tests.browser.test_pages import DRAWN, PAGES, ask, audited
from tests.dashboard import test_hostile


@pytest.fixture(scope="module")
def folder(demo, tmp_path_factory):
    """Makes a variant of the demo: `folder("hostile")`."""
    return lambda name: getattr(copies, name)(demo, tmp_path_factory.mktemp("copies") / name)


@pytest.fixture(scope="module")
def hostile(folder, serving):
    made = folder("hostile")
    return made, serving(made)


@pytest.mark.deep(2)
@pytest.mark.parametrize("name", PAGES)
def test_hostile_titles_are_texts_and_nothing_else(look, hostile, pictured, name):
    window = look(hostile[1], width=390)
    assert window.open(PAGES[name]).status == 200

    audited(window)

    page = window.page
    assert "taken" not in page.title()
    assert page.locator("h1").all_inner_texts() == [page.title().removesuffix(" · octo-sync")]
    assert page.evaluate("[...document.images].length + document.querySelectorAll('main script, iframe').length") == 0
    assert "10587703" not in page.locator("main").inner_text()
    pictured(window, f"{name}-hostile")
    page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    audited(window)


@pytest.mark.deep(2)
def test_hostile_titles_are_shown_as_they_are(look, hostile):
    window = look(hostile[1])
    window.open("occupancy")
    text = window.page.text_content("main")

    for name in ("script", "end", "quotes", "address", "long"):
        assert copies.HOSTILE[name] in text, name
    turned = window.page.locator("bdi", has_text=copies.HOSTILE["turned"]).first
    assert turned.evaluate("e => getComputedStyle(e).unicodeBidi") == "isolate"


@pytest.mark.deep(2)
def test_a_hostile_title_is_inert_under_the_pointer(look, hostile):
    window = look(hostile[1])
    window.open("occupancy")
    box = window.page.locator(".chart svg").first.bounding_box()
    for row in range(8):
        window.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 30 + row * box["height"] / 12)

    assert "taken" not in window.page.title()
    assert window.said() == []


TRAPS = """window.ran = [];
for (let n = 0; n < 300; n++) {
  Object.defineProperty(window, `mk${String(n).padStart(3, "0")}x`, { get: () => window.ran.push(n) });
}"""
"""What notes that a text was run: each of the 300 has its own name where it has code."""


@pytest.mark.deep(30)
def test_of_300_hostile_texts_in_every_field_a_browser_runs_none(look, demo, serving, tmp_path):
    folder = copies.changed(
        demo, tmp_path / "said", *((statement,) for statement in test_hostile.planted(demo, test_hostile.SAID, 0))
    )
    window, shown, counts = look(serving(folder)), set(), Counter()
    page, paths = window.page, [*PAGES.values()]
    page.add_init_script(TRAPS)
    for path in paths:
        assert window.open(path).status == 200, path
        page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
        for chart in page.locator(".chart").all():
            chart.hover()
        assert page.evaluate("window.ran") == [], path
        assert window.said() == [], path
        shown |= set(test_hostile.MARKER.findall(page.content()))
        for link in page.evaluate("[...document.querySelectorAll('main a')].map(each => each.getAttribute('href'))"):
            kind = re.match(r"\./(booking|departure|difference)\?", link)
            if kind and link[2:] not in paths and counts[kind[1]] < 4:
                counts[kind[1]] += 1
                paths.append(link[2:])
    assert set(counts.values()) == {4}
    assert len(shown) == 300
    assert page.evaluate("mk007x; window.ran") == [7], "the traps are set"


@pytest.mark.deep(4)
def test_of_five_hundred_products_forty_are_drawn(look, folder, serving, pictured):
    made = folder("huge")
    ((products,),) = ask(made, "select count(distinct product_id) from core.products")
    assert products >= 500
    window = look(serving(made))
    window.open("sync")

    audited(window)
    ((channels,),) = ask(made, "select count(*) from marts.dim_channel")
    assert window.page.locator("table.coverage tbody tr").count() == 40 + channels
    assert f"40 of {products} products" in window.page.inner_text("#coverage-1")
    window.page.get_by_text("The other products").click()
    assert window.page.locator("details[open] tbody tr").count() == products - 40
    pictured(window, "sync-huge")

    window.open("occupancy")
    audited(window)
    assert f"The 40 products with the most departures, of {products}" in window.page.inner_text("main")
    pictured(window, "occupancy-huge")


@pytest.mark.deep(2)
def test_months_scroll_in_their_box_and_the_names_stay(look, base):
    window = look(base, width=390)
    window.open("sync")
    box = window.page.locator(".scroll:has(table.coverage)")
    name, month = box.locator("tbody th").first, box.locator("tbody td").last
    before = name.bounding_box()["x"], month.bounding_box()["x"]

    box.evaluate("b => b.scrollTo(10000, 0)")

    assert abs(name.bounding_box()["x"] - before[0]) <= 2, "but for the space between cells"
    assert 0 < month.bounding_box()["x"] < 390 < before[1]
    assert window.page.evaluate("document.scrollingElement.scrollLeft") == 0


@pytest.mark.deep(3)
@pytest.mark.parametrize("width", WIDTHS)
def test_long_names_are_readable_to_their_end(look, demo, serving, tmp_path, width):
    more = "' with lunch and a guided tour of the old town by boat'"
    title, channel = (f"{name} = {name} || {more}" for name in ("title", "channel"))
    folder = copies.changed(
        demo,
        tmp_path / "long",
        (f"update core.products set {title}, internal_name = title || {more}",),
        (f"update core.connections set {channel}",),
    )
    window = look(serving(folder), width=WIDTHS[width])
    for path in ("", "sync", "channels", "availability"):
        window.open(path)
        audited(window)
    assert "old town by boat" in window.page.locator("#health svg").text_content()


@pytest.mark.deep(2, everyday=["empty"])
@pytest.mark.parametrize("state", ["empty", "none"])
def test_where_nothing_is_every_page_says_what_to_do(look, folder, serving, pictured, state):
    window = look(serving(folder(state)), width=390)
    for name, path in PAGES.items():
        assert window.open(path).status == 200, name
        audited(window)
        assert re.search(r"octo-sync (sync|publish|reconcile)", window.page.inner_text("main")), name
        pictured(window, f"{name}-{state}")


SAID = {
    "tiny": "Last verified",
    "stale": "This copy is stale: its oldest part was verified 12 days ago",
    "damaged": "is damaged or cut off",
}


@pytest.mark.deep(5)
@pytest.mark.parametrize("state", SAID)
def test_a_copy_that_is_tiny_stale_or_damaged_is_whole_on_every_page(look, folder, serving, pictured, state):
    window = look(serving(folder(state)), width=390)
    for name, path in PAGES.items():
        assert window.open(path).status == 200, name
        audited(window)
        assert SAID[state] in window.page.inner_text("body"), name
        drawn = window.page.locator(".chart svg").count()
        assert bool(drawn) == (name in DRAWN and state != "damaged"), name
        pictured(window, f"{name}-{state}")
