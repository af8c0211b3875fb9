"""The SQL page as somebody who asks questions uses it."""

import re
from pathlib import Path

import pytest
from tests.browser import copies
from tests.browser.test_pages import ask, audited


def test_a_query_is_typed_asked_and_taken_along(look, base, demo):
    window = look(base)
    window.open("sql")
    page = window.page
    page.fill("#q", "select channel_name, count(*) as n from fct_bookings group by 1 order by 1")
    page.press("#q", "Control+Enter")
    page.wait_for_selector("#answer td")

    rows = ask(demo, "select channel_name, count(*) from marts.fct_bookings group by 1 order by 1")
    assert len(rows) == 3
    assert page.locator("#answer tbody th, #answer td").all_inner_texts() == [
        str(value) for row in rows for value in row
    ]
    assert "q=select+channel_name" in page.url, "so it can be bookmarked"
    assert page.input_value("#q").startswith("select channel_name")
    with page.expect_download() as saved:
        page.get_by_role("link", name="csv").click()
    assert Path(saved.value.path()).read_text() == "".join(
        f"{channel},{count}\n" for channel, count in [("channel_name", "n"), *rows]
    )
    audited(window)


@pytest.mark.deep(2)
def test_a_wrong_query_is_told_why_and_kept(look, base):
    window = look(base)
    window.open("sql")
    window.page.fill("#q", "select nothing\nfrom fct_bookings")
    window.page.get_by_role("button", name="Run").click()

    assert "nothing" in window.page.inner_text("[role=alert]")
    assert window.page.input_value("#q") == "select nothing\nfrom fct_bookings"
    audited(window)


@pytest.mark.deep(2)
def test_a_question_fills_the_editor_and_its_fields(look, base):
    window = look(base, width=390)
    window.open("sql")
    page = window.page
    page.get_by_role("link", name="What is the revenue by currency").click()
    assert "question: What is the revenue by currency" in page.input_value("#q")
    first = page.get_by_label(re.compile("^first"))
    assert first.input_value() == "year"

    first.fill("2020-01-01")
    page.get_by_role("button", name="Run").click()

    assert page.get_by_label(re.compile("^first")).input_value() == "2020-01-01"
    assert page.locator("#answer tbody tr").count() > 1
    audited(window)


@pytest.mark.deep(2)
def test_only_a_thousand_rows_are_shown(look, base):
    window = look(base)
    window.open("sql?q=select+*+from+range(1001)")

    assert window.page.locator("#answer tbody tr").count() == 1000
    assert "Only the first 1,000 rows are shown" in window.page.inner_text("#answer")


@pytest.mark.deep(2)
def test_a_hostile_query_and_answer_are_texts(look, base):
    window = look(base)
    window.open("sql")
    said = copies.HOSTILE["end"] + copies.HOSTILE["script"]
    quoted = said.replace("'", "''")
    window.page.fill("#q", f"select '{quoted}' as \"{copies.HOSTILE['end']}\"")
    window.page.press("#q", "Control+Enter")
    window.page.wait_for_selector("#answer td")

    assert window.page.inner_text("#answer td") == said
    assert window.page.inner_text("#answer thead th") == copies.HOSTILE["end"]
    assert "taken" not in window.page.title()
    audited(window)


@pytest.mark.deep(2)
def test_the_tables_say_what_their_columns_mean(look, base):
    window = look(base)
    window.open("sql")
    table = window.page.locator("details", has=window.page.get_by_text("coverage", exact=True)).first
    table.locator("summary").click()
    assert "When the part verified longest ago was verified." in table.inner_text()
    table.get_by_role("link", name="Its first rows").click()
    assert window.page.locator("#answer tbody tr").count() == 100
