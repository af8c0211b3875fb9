"""What people do on pages, clicked by somebody who knows the password; and a closed month, looked at."""

import re
import shutil

import duckdb
import pytest
from tests.browser import copies
from tests.browser.conftest import THEMES, WIDTHS, served
from tests.browser.test_pages import ask, audited, number

from octo_sync.app.machine import SystemClock
from octo_sync.flows.acts import HELD
from octo_sync.journal import Journal
from octo_sync.model import Subject, SubjectKind

ANA = {"username": "Ana", "password": "s3cret"}
LOST = "11 of 20 rows <are> missing."


@pytest.fixture
def project(demo, tmp_path):
    """A demo of the test's own."""
    return shutil.copytree(demo, tmp_path / "project")


@pytest.fixture
def acting(project):
    """The journal and the address of a demo with a password, a record in quarantine, held deletions, and somebody at work."""
    with (project / "pipelines/demo.toml").open("a", encoding="utf-8") as pipeline:
        pipeline.write('\n[dashboard]\ntoken = { env = "PASSWORD_OF_PAGES" }\n')
    place = project / "octo.journal.sqlite"
    with Journal.open(place, clock=SystemClock()) as journal:
        ((connection, uuid),) = ask(project, "select connection_id, booking_uuid from core.bookings order by 2 limit 1")
        subject = Subject(connection, SubjectKind.BOOKING, (uuid,))
        journal.quarantine.add_record(connection, "bookings", uuid, "$", "no text", "r", subject=subject)
        journal.quarantine.add_record(connection, HELD, "core.bookings", "", LOST, "r")
        lock = place.with_name(f"{place.name}.lock")
        with journal.leases.acquire(lock, owner="octo-sync serve"), served(project, PASSWORD_OF_PAGES="s3cret") as base:
            yield journal, base, connection


def log(window, caption):
    """The rows of a log on the page, without their times."""
    table = window.page.get_by_role("region", name=caption, exact=True)
    return [row.locator("td").all_inner_texts() for row in table.locator("tbody tr").all()]


@pytest.mark.deep(4)
def test_what_is_clicked_on_the_page_sync_is_done_and_kept_with_who_did_it(look, acting, pictured):
    journal, base, connection = acting
    other = look(base, http_credentials={**ANA, "password": "a guess"})
    assert other.page.goto(f"{base}/sync").status == 401, "nobody looks without the password"
    window = look(base, http_credentials=ANA)
    window.open("sync")
    audited(window)
    for button in ("Sync now", "Fetch everything in quarantine again", "Mark these rows of core.bookings deleted"):
        window.page.get_by_role("button", name=button).click()
        window.page.wait_for_url("**/sync#acts")
    pictured(window, "sync-acts")
    audited(window)
    assert log(window, "What people did on pages") == [
        ["Ana", "allow deletions", f"{connection} · core.bookings", LOST, "waits for the worker"],
        ["Ana", "retry quarantine", "", "", "1 record to fetch again."],
        ["Ana", "sync now", "", "", "waits for the worker"],
    ]
    assert [(act.who, act.act) for act in journal.acts.last(9)] == [
        ("Ana", act) for act in ("allow deletions", "retry quarantine", "sync now")
    ]


@pytest.mark.deep(5)
def test_a_difference_is_accepted_assigned_commented_and_withdrawn_by_clicks(look, acting, pictured):
    journal, base, _ = acting
    window = look(base, width=390, http_credentials=ANA)
    page = window.page

    def differences():
        window.open()
        return number(page.inner_text("[data-tile=differences] b"))

    before = differences()
    page.locator("[data-tile=differences] a").click()
    page.locator("tbody a[href*='difference?']").first.click()
    address = page.url
    said = {"Accept": "Paid in cash.", "Assign": "Ben", "Comment": "<b>Asked</b> them."}
    for button, label in (("Accept", "Why"), ("Assign", "Assign to"), ("Comment", "Comment")):
        page.get_by_label(label, exact=True).fill(said[button])
        page.get_by_role("button", name=button, exact=True).click()
        page.wait_for_url("**#decide")
    audited(window)
    pictured(window, "difference-decided")
    facts = page.inner_text(".facts")
    assert re.search(r"State\s+accepted\s+Assigned to\s+Ben\s+Accepted\s+by Ana: Paid in cash\.", facts), facts
    assert differences() == before - 1
    page.goto(address)
    page.get_by_role("button", name="Withdraw the acceptance").click()
    page.wait_for_url("**#decide")
    done = [["Ana", act, text] for act, text in zip(("accept", "assign", "comment"), said.values(), strict=True)]
    assert log(window, "What people did") == [["Ana", "withdraw", ""], *reversed(done)]
    assert differences() == before
    assert journal.reconciliations.acceptances("ledger") == []
    assert {act.who for act in journal.acts.last(9)} == {"Ana"}


@pytest.mark.deep(8)
def test_a_closed_month_keeps_its_figures_and_tells_what_changed_and_of_which_booking(look, project, serving, pictured):
    ((month, uuid, retail, currency),) = ask(
        project, "select b.travel_month, b.booking_uuid, b.retail_amount, b.currency from marts.fct_bookings b "
        "join marts.booking_months m using (connection_id, travel_month) where b.status = 'CONFIRMED' and m.is_complete "
        "and b.retail_amount > 0 and b.travel_month < (select date_trunc('month', max(as_of_date)) from marts.dim_channel) "
        "order by b.travel_month desc, b.booking_uuid limit 1"
    )  # fmt: skip
    copies.run("close", f"{month:%Y-%m}", "-C", project)
    with duckdb.connect(project / "octo.duckdb") as warehouse:
        for rows in (
            "core.bookings set status = 'CANCELLED' where",
            "core.booking_history set status = 'CANCELLED' where is_current and",
        ):
            warehouse.execute(f"update {rows} booking_uuid = $1", [uuid])
    copies.run("publish", "-C", project)
    window = look(serving(project))
    window.open("finance")
    for width in WIDTHS:
        window.page.set_viewport_size({"width": WIDTHS[width], "height": 900})
        for theme in THEMES:
            window.page.emulate_media(color_scheme=theme)
            audited(window)
            pictured(window, f"finance-closed-{width}-{theme}")
    digest = window.page.locator(".digest bdi").first
    assert digest.evaluate("cut => cut.scrollWidth > 2 * cut.clientWidth")
    assert len(digest.get_attribute("title")) == 64
    table = window.page.get_by_role("region", name=re.compile("^Adjustments of closed months")).get_by_role("table")
    assert [title.strip() for title in table.locator("thead th").all_inner_texts()][2:5] == ["Cause", "Net", "Retail"]
    (row,) = table.locator("tbody tr").all()
    assert row.locator("td").nth(1).inner_text() == "cancelled"
    assert row.locator("td").nth(3).inner_text() == f"-{retail:,.2f} {currency}"
    row.get_by_role("link").first.click()
    assert "cancelled" in window.page.inner_text(".facts")
    assert uuid in window.page.inner_text(".facts")
