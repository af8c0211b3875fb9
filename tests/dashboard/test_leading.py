"""Every number leads to its rows: each column of numbers of each page has links, or a reason why it has none."""

import datetime as dt

import pytest

from octo_sync.dashboard.app import all_pages
from octo_sync.dashboard.view import Filters, Link, Money, Table, Tiles

ONE = "each row is one booking, departure, difference or run"
PART = "part of a number beside it, whose list says this of each row"
AVERAGE = "an average is of no list"
THEN = "a comparison with what was known at another time"
OURS = "how the copy was made, not what is in it"
DAY = dt.date(2026, 11, 21)
EXCEPT = {
    ("overview", "Bookings made per day and channel"): {"Not sold": "no list has what was never sold"},
    ("overview", "Test bookings by channel, product and status"): {"": "test bookings are in no list"},
    ("today", "Departures t"): {"": ONE},
    ("today", "Holds that lapse"): {"": ONE},
    ("today", "Bookings that changed"): {"": ONE},
    ("today", "Sold out departures"): {"": ONE},
    ("today", "Weak departures"): {"": ONE},
    ("bookings", "Bookings"): {"": ONE},
    ("occupancy", "Departures that are"): {"": ONE},
    ("occupancy", "All departures of the day"): {"": ONE},
    ("occupancy", "Occupancy by weekday"): {
        "": "the same weekday of several weeks; each day is in the table beside it"
    },
    ("pickup", "Days from booking to travel"): {
        "Median days": AVERAGE,
        **dict.fromkeys(
            ("same day", "1-2 days", "3-7 days", "8-30 days", "31-90 days", "over 90 days", "Not known"), PART
        ),
    },
    ("pickup", "Share of a month's guests"): {"Bookings without guests": PART},
    ("cancellations", "Cancelled bookings, by notice"): {"": PART},
    ("revenue", "Revenue per guest"): {"Per guest": AVERAGE, "Per seat offered": AVERAGE},
    ("revenue", "Who booked"): {"": "no list is of a person's bookings: pages name nobody"},
    ("channels", "Channels in"): {"Retail per guest": AVERAGE},
    ("finance", "Open-dated bookings"): {
        **dict.fromkeys(("Used in these months", "Used: retail", "Used: net", "Used on an unknown day"), PART),
        **dict.fromkeys(("Not used at the end", "Not used: retail", "Not used: net"), THEN),
    },
    ("finance", "Closed months"): dict.fromkeys(
        ("Net then", "Net adjustment", "Retail then", "Retail adjustment", "Adjustments"), THEN
    ),
    ("finance", "Adjustments of"): {"": ONE},
    ("finance", "Deferred revenue at the end of"): {"": PART},
    ("availability", "Days ahead, by product"): {"": "the table below has the same numbers with links"},
    ("availability", "Health of"): {"Days": PART},
    ("availability", "Departures that fill"): {"": ONE},
    ("reconcile", "Control totals"): {"": "of all rows of both sides, which no page has"},
    ("reconcile", "Open differences of ledger"): {"Difference": ONE},
    ("reconcile", "The last runs"): {"": ONE},
    ("sync", ""): {"": OURS},
    ("", "Guests on the books, by month of travel and days before"): {
        "Days before": "no number of anything",
        **dict.fromkeys(("Guests on the books then", "Of them cancelled since"), THEN),
    },
    ("", ""): {"Usual week": AVERAGE, "Retail a year earlier": THEN},
}
"""(A page, how a caption begins; '' any) → a column ('' all of them) → why nothing of it leads anywhere."""


@pytest.fixture(scope="module")
def full(variant):
    """The published copy with a comparison, a closed month, and everything else that has a table of its own."""
    at = "timestamptz '2026-11-20 12:00:00+00'"
    return variant(
        "leading",
        "insert into ops.recon_runs (recon_name, run_id, verdict, ended_at_utc, window_start, window_end, matched, "
        f"control_totals) values ('ledger', 'r1', 'ok', {at}, '2026-08-20', '2026-11-20', 5, '[]')",
        "insert into ops.recon_results (recon_name, recon_key, bucket, field, reason, day, currency, delta_amount, "
        "first_seen_at_utc, last_seen_at_utc) select 'ledger', 'k' || range, 'mismatched', 'retail_amount', '', "
        f"'2026-10-31', 'EUR', 1, {at} - range * interval '4 days', {at} from range(12)",
        "insert into ops.closed_periods values ('2026-10', '2026-11-05', true, '')",
        "update core.bookings set cancellation_refund = ['FULL', 'PARTIAL', 'NONE', null][1 + ascii(booking_uuid[2]) % 4]",
        "update core.bookings set retail_amount = null where booking_uuid < '4' and status = 'CANCELLED'",
        "update core.bookings set net_amount = null where booking_uuid > '6' and booking_uuid < 'a'",
    )


@pytest.mark.parametrize("page", [page for page in all_pages() if not page.takes_more], ids=lambda page: page.name)
def test_every_number_leads_to_its_rows(shown, full, page):
    source = shown(full).source
    asked = [Filters(with_tests=page.name == "overview")]
    asked += [Filters(first=DAY, last=DAY)] if page.name == "occupancy" else []
    for view in (page.build(source, each) for each in asked):
        for tile in (t for s in view.sections for item in s.items if isinstance(item, Tiles) for t in item.tiles):
            assert tile.href, tile.label
        silent = [
            (table.caption, column.title)
            for table in view.tables()
            for at, column in enumerate(table.columns)
            if column.kind in ("number", "money") and not _leads(table, at)
            and not _reason(page.name, table.caption, column.title)
        ]  # fmt: skip
        assert silent == []


def _leads(table: Table, at: int) -> bool:
    """Whether a number of the column leads anywhere; one that is 0 or unknown has no rows."""
    values = [row[at].amount if isinstance(row[at], Money) else row[at] for row in table.rows]
    return any(isinstance(value, Link) for value in values) or not any(values)


def _reason(page: str, caption: str, column: str) -> str:
    found = [why for (name, begins), why in EXCEPT.items() if name in ("", page) and caption.startswith(begins)]
    return next((why[title] for why in found for title in (column, "") if title in why), "")


async def test_what_no_page_can_show_breaks_none(shown, variant):
    """A day of travel at the end of the calendar, and more places than can be multiplied."""
    folder = variant(
        "edges",
        "update core.bookings set local_date = date '9999-12-31' where booking_uuid = (select min(booking_uuid) from "
        "core.bookings where status = 'CONFIRMED' and utc_created_at < '2026-10-01')",
        "update core.availability set capacity = 9000000000000000000, vacancies = 8999999999999999999 "
        "where local_date = '2026-11-25'",
        remake=True,
    )
    dashboard = shown(folder)
    for page in all_pages():
        answer = await dashboard.get(f"/{page.name if page.name != 'overview' else ''}")
        assert answer.status_code == 200, page.name
    assert "Dec 9999" in await dashboard.text("/finance?first=2026-11-01&last=2026-11-30")


async def test_an_age_that_is_none_is_refused(shown):
    answer = await shown().get("/reconcile?age=old")
    assert answer.status_code == 400
    assert "The field age is" in answer.text
