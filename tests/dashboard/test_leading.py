"""Every number leads to its rows: each column of numbers of each page has links, or a reason why it has none."""

import datetime as dt
import json
from collections import defaultdict
from decimal import Decimal
from urllib.parse import parse_qsl

import pytest
from tests.dashboard.test_pages import OURS as CHARTED

from octo_sync.dashboard.app import all_pages
from octo_sync.dashboard.view import Chart, Filters, Link, Money, Table, Tiles

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
    },
    ("pickup", "Share of a month's guests"): {"Bookings without guests": PART},
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
    ("availability", "Departures that fill"): {"": ONE},
    ("reconcile", "Control totals"): {
        **dict.fromkeys(
            ("Rows here", "Here", "Rows there", "There"), "of all rows of both sides, and the ledger's are not here"
        ),
        "Difference": "the table below has the same in parts, with links",
    },
    ("reconcile", "The last runs"): {"": ONE},
    ("sync", ""): {"": OURS},
    ("", "Guests on the books, by month of travel and days before"): {
        "Days before": "no number of anything",
        **dict.fromkeys(("Guests on the books then", "Of them cancelled since"), THEN),
    },
    ("", ""): {"Usual week": AVERAGE, "Retail a year earlier": THEN},
}
"""(A page, how a caption begins; '' any) → a column ('' all of them) → why nothing of it leads anywhere."""

NO_LIST = {
    "pick-up": "each day before travel is another day of each booking's",
    "fill-by-hour": "the same hour of several days",
    "fill-map": "a cell's link is that of the table's cell",
}
"""A chart → why its values have no addresses."""
TOTALS = [
    {"side": side, "currency": currency, "rows": 20, "amounts": amounts}
    for side, currency, amounts in (
        ("here", "EUR", {"retail_amount": "100.00", "net_amount": "80.00"}),
        ("there", "EUR", {"retail_amount": "124.50", "net_amount": "83.00"}),
        ("there", "JPY", {"retail_amount": "900"}),
    )
]
"""Of retail in euros 12 amounts differ by 1, what is missing here has 7 and 5, and half a euro was within the tolerance."""


@pytest.fixture(scope="module")
def full(variant):
    """The published copy with a comparison, a closed month, and everything else that has a table of its own."""
    at = "timestamptz '2026-11-20 12:00:00+00'"
    return variant(
        "leading",
        "insert into ops.recon_runs (recon_name, run_id, verdict, ended_at_utc, window_start, window_end, matched, "
        f"control_totals) values ('ledger', 'r1', 'ok', {at}, '2026-08-20', '2026-11-20', 5, '{json.dumps(TOTALS)}')",
        "insert into ops.recon_results (recon_name, recon_key, bucket, field, reason, day, currency, delta_amount, "
        "first_seen_at_utc, last_seen_at_utc) select 'ledger', 'k' || range, 'mismatched', 'retail_amount', '', "
        f"'2026-10-31', 'EUR', 1, {at} - range * interval '4 days', {at} from range(12)",
        "insert into ops.recon_results (recon_name, recon_key, bucket, field, reason, day, currency, delta_amount, "
        "first_seen_at_utc, last_seen_at_utc, accepted_note) values "
        f"('ledger', 'a1', 'missing_here', '', '', '2026-10-31', 'EUR', 7, {at}, {at}, 'known'), "
        f"('ledger', 'a2', 'missing_here', '', '', '2026-10-31', 'EUR', 5, {at}, {at}, null), "
        f"('ledger', 'n1', 'mismatched', 'net_amount', '', '2026-10-31', 'EUR', 3, {at}, {at}, null), "
        f"('ledger', 'j1', 'missing_here', '', '', '2026-10-31', 'JPY', 900, {at}, {at}, null), "
        f"('ledger', 'old', 'missing_here', '', '', '2020-10-31', 'EUR', 11, {at}, {at} - interval '9 days', null)",
        "insert into ops.closed_periods values ('2026-10', '2026-11-05', true, '', null)",
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
        assert silent == [], f"give each of these columns an href, or a reason in EXCEPT: {silent}"


def _leads(table: Table, at: int) -> bool:
    """Whether a number of the column leads anywhere; one that is 0 or unknown has no rows."""
    values = [row[at].amount if isinstance(row[at], Money) else row[at] for row in table.rows]
    return any(isinstance(value, Link) for value in values) or not any(values)


def _reason(page: str, caption: str, column: str) -> str:
    found = [why for (name, begins), why in EXCEPT.items() if name in ("", page) and caption.startswith(begins)]
    return next((why[title] for why in found for title in (column, "") if title in why), "")


@pytest.mark.parametrize("page", [address.strip("/") or "overview" for address in CHARTED])
def test_the_values_of_a_chart_lead_where_its_table_does(shown, full, page):
    (build,) = (each.build for each in all_pages() if each.name == page)
    view = build(shown(full).source, Filters())
    drawn = [item for section in view.sections for item in section.items if isinstance(item, Chart)]
    assert drawn
    for chart in drawn:
        if chart.id in NO_LIST:
            assert not chart.leads
            continue
        values = {series["name"]: series["data"] for series in chart.option["series"]}
        there = {value.href for row in chart.table.rows for value in row if isinstance(value, Link)}
        assert {len(values[name]) for name in chart.leads} == {len(of) for of in chart.leads.values()}
        led = [address for of in chart.leads.values() for address in of if address]
        assert led, chart.id
        assert set(led) <= there
        assert (
            len(led)
            == sum(
                bool(value["value"] if isinstance(value, dict) else value)
                for name in chart.leads
                for value in values[name]
            )
            or chart.id == "health"
        ), "each value that is not 0"


def test_the_differences_that_a_control_total_leads_to_add_up_to_it(shown, full):
    source = shown(full).source
    (page,) = (page for page in all_pages() if page.name == "reconcile")
    tables = {table.caption: table for table in page.build(source, Filters()).tables()}
    differ = {
        (getattr(row[0], "value", row[0]), row[1]): row[-1].amount for row in tables["Control totals of ledger"].rows
    }
    found = defaultdict(Decimal)
    for currency, amount, bucket, number, part in tables[
        "What the differences of these totals are made of, ledger"
    ].rows:
        found[currency, amount] += getattr(part, "value", part).amount
        if not isinstance(part, Link):
            assert (currency, amount, part.amount) == ("EUR", "retail price", Decimal("0.5"))
            continue
        assert number.href == part.href
        asked, _, place = part.href.removeprefix("reconcile?").partition("#")
        led = page.build(source, Filters(more=dict(parse_qsl(asked))))
        (section,) = (section for section in led.sections if section.id == place)
        (rows,) = (item.rows for item in section.items if isinstance(item, Table))
        assert sum(row[1].value.amount for row in rows) == part.value.amount, (currency, amount, bucket)
        assert len(rows) == number.value
    assert found == {key: amount for key, amount in differ.items() if amount}
    assert differ["EUR", "retail price"] == Decimal("24.50")


def test_pairs_in_two_currencies_are_a_part_of_the_totals_of_both(shown, variant):
    """Their amounts were compared with nothing: the totals have them, the differences do not."""
    totals = [
        {"side": side, "currency": currency, "rows": 2, "amounts": {"retail_amount": amount}}
        for side, currency, amount in (("here", "EUR", "641.28"), ("there", "USD", "694.95"), ("there", "JPY", "9"))
    ]
    at = "timestamptz '2026-11-20 12:00:00+00'"
    folder = variant(
        "two-currencies",
        "insert into ops.recon_runs (recon_name, run_id, verdict, ended_at_utc, window_start, window_end, matched, "
        f"control_totals) values ('ledger', 'r1', 'ok', {at}, '2026-08-20', '2026-11-20', 5, '{json.dumps(totals)}')",
        "insert into ops.recon_results (recon_name, recon_key, bucket, field, reason, here_value, there_value, currency, "
        f"first_seen_at_utc, last_seen_at_utc, accepted_note) select 'ledger', 'k' || range, 'mismatched', 'currency', '', "
        f"'EUR', 'usd', 'EUR', {at}, {at}, case range when 2 then 'known' end from range(3)",
    )
    source = shown(folder).source
    (page,) = (page for page in all_pages() if page.name == "reconcile")
    (parts,) = (each for each in page.build(source, Filters()).tables() if each.caption.startswith("What the diff"))
    said, rest = "EUR here, USD there", "in no list: within the tolerance, too recent, or outside the compared days"
    for currency, amount in (("EUR", "-641.28"), ("USD", "694.95")):
        *pairs, (*_, words, _, left) = (row for row in parts.rows if row[0] == currency)
        assert (words, left.amount) == (f"the pairs in two currencies, and {rest}", Decimal(amount))
        for (*_, words, number, none), state, count in zip(pairs, ("", ", accepted"), (2, 1), strict=True):
            assert (words, number.value, none) == (f"mismatched, {said}{state}", count, None)
            asked, _, place = number.href.removeprefix("reconcile?").partition("#")
            led = page.build(source, Filters(more=dict(parse_qsl(asked))))
            (section,) = (section for section in led.sections if section.id == place)
            (rows,) = (item.rows for item in section.items if isinstance(item, Table))
            assert len(rows) == count
    assert [row[2] for row in parts.rows if row[0] == "JPY"] == [rest]


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
