"""A reconciliation as a workbook, read by other code than what wrote it."""

import dataclasses
import datetime as dt
import stat
from decimal import Decimal

import openpyxl
import pytest
from tests.flows.reconcile_outcome import difference, here_row, item, outcome, there_row

from octo_sync.flows.export.files import ExportError
from octo_sync.flows.reconcile.workbook import write_xlsx
from octo_sync.reconciliation.model import Bucket


def book_of(path, found=None):
    write_xlsx(found or outcome(), path)
    return openpyxl.load_workbook(path)


def table(sheet):
    """key → {head: cell}, and the heads."""
    heads = [cell.value for cell in sheet[1]]
    return {row[0].value: dict(zip(heads, row, strict=True)) for row in sheet.iter_rows(min_row=2)}


def test_there_is_a_sheet_for_each_bucket_that_has_items(tmp_path):
    some = [i for i in outcome().items if i.bucket in (Bucket.MISMATCHED, Bucket.ACCEPTED)]

    assert set(book_of(tmp_path / "all.xlsx").sheetnames) == {"Summary", "Control totals", *(b.value for b in Bucket)}
    assert book_of(tmp_path / "some.xlsx", outcome(some)).sheetnames == [
        "Summary", "Control totals", "mismatched", "accepted",
    ]  # fmt: skip


def test_heads_are_bold_and_stay_and_there_are_filters(tmp_path):
    sheet = book_of(tmp_path / "l.xlsx")["mismatched"]

    assert [cell.value for cell in sheet[1]] == [
        "key", "field", "here", "there", "difference", "currency", "reason", "code", "first seen (UTC)", "age days", "new",
        "rule", "normalised", "place there", "booking_uuid", "connection", "travel date", "remark", "acceptance",
    ]  # fmt: skip
    assert {cell.font.bold for cell in sheet[1]} == {True}
    assert sheet.freeze_panes == "B2"
    assert sheet.auto_filter.ref == "A1:S7"
    assert sheet.column_dimensions["A"].width > 30
    assert sheet.column_dimensions["G"].width <= 64


def test_amounts_are_numbers_with_their_currencys_decimals_and_dates_are_dates(tmp_path):
    book = book_of(tmp_path / "l.xlsx")
    rows = table(book["mismatched"])
    lines = {row[1].value: row for row in book["mismatched"].iter_rows(min_row=2) if row[5].value == "EUR"}

    shown = {
        key: (rows[key]["here"].value, rows[key]["there"].value, rows[key]["difference"].number_format)
        for key in ("JP-1", "BH-1")
    }
    assert shown == {"JP-1": (12000, 13200, "#,##0"), "BH-1": (1.5, 1.625, "#,##0.000")}
    assert [(c.value, c.number_format) for c in lines["retail_amount"][2:5]] == [
        (120, "#,##0.00"), (96, "#,##0.00"), (-24, "#,##0.00"),
    ]  # fmt: skip
    assert lines["travel_date"][2].value == dt.datetime(2026, 11, 20)  # noqa: DTZ001 - a day
    assert lines["utc_start_at"][3].value == dt.datetime(2026, 11, 20, 10)  # noqa: DTZ001 - in UTC
    assert lines["pax_count"][3].value == 3
    bh = rows["BH-1"]
    assert bh["first seen (UTC)"].value == dt.datetime(2026, 10, 13, 3, 10)  # noqa: DTZ001 - in UTC
    assert (bh["age days"].value, bh["new"].value, bh["normalised"].value) == (40, False, False)
    assert bh["travel date"].value == dt.datetime(2026, 11, 20)  # noqa: DTZ001 - a day
    assert (bh["booking_uuid"].data_type, bh["booking_uuid"].number_format) == ("s", "@")
    whole = table(book["missing_here"])["SUP-7"]
    assert (whole["field"].value, whole["difference"].value, whole["new"].value) == (None, 80, True)
    accepted = table(book["accepted"])["k-accepted"]
    assert accepted["acceptance"].value.startswith("Rounded by the bank (accepted by Ines")
    assert table(book["matched"])["SUP-18"]["remark"].value == "Two lines make up the amount."


def test_more_decimals_than_the_currency_has_are_shown_and_more_digits_than_excel_keeps_are_a_text(tmp_path):
    found = [
        item("fine", Bucket.MISMATCHED, [difference("retail_amount", "1.00", "1.0005", "0.00050000")]),
        item("huge", Bucket.MISMATCHED, [difference("retail_amount", "0", "12345678901234.56", "12345678901234.56")]),
        item("000123", Bucket.MISMATCHED, [difference("retail_amount", "soon", "1", None)]),
    ]
    rows = table(book_of(tmp_path / "l.xlsx", outcome(found))["mismatched"])

    assert (rows["fine"]["difference"].value, rows["fine"]["difference"].number_format) == (0.0005, "#,##0.0000")
    assert (rows["huge"]["difference"].value, rows["huge"]["difference"].data_type) == ("12345678901234.56", "s")
    assert (rows["000123"]["here"].value, rows["000123"]["there"].value) == ("soon", 1)


DANGEROUS = ["=1+1", "+1", "-1+cmd", "@SUM(A1)", '=HYPERLINK("http://x")', "http://example.com", "{=1}", "0012"]


def test_nothing_of_the_data_becomes_a_formula_a_link_or_a_number(tmp_path):
    found = [
        item(t, Bucket.MISMATCHED, [difference("status", t, t, reason=t)], [here_row(1)], [there_row(1)], remark=t, places=(t,))
        for t in DANGEROUS
    ]  # fmt: skip
    rows = table(book_of(tmp_path / "l.xlsx", outcome(found))["mismatched"])

    assert list(rows) == DANGEROUS
    for text, cells in rows.items():
        for name in ("key", "here", "there", "reason", "remark", "place there"):
            assert (cells[name].value, cells[name].data_type, cells[name].hyperlink) == (text, "s", None), name


def test_the_control_totals_add_up_to_the_last_digit(tmp_path):
    sheet = book_of(tmp_path / "l.xlsx")["Control totals"]
    heads = [cell.value for cell in sheet[1]]
    rows = [dict(zip(heads, row, strict=True)) for row in sheet.iter_rows(min_row=2, values_only=True)]

    for currency, total in (("EUR", "-23.97"), ("JPY", "1200"), ("BHD", "0.125"), ("no currency", "0")):
        mine = [row for row in rows if (row["currency"], row["field"]) == (currency, "retail_amount")]
        assert [row["of"] for row in mine][:: len(mine) - 1] == ["total", "unexplained"]
        buckets = sum(Decimal(str(row["difference"])) for row in mine[1:-1])
        assert buckets == Decimal(str(mine[0]["difference"])) == Decimal(total)
        assert mine[-1]["difference"] == 0
    assert sheet.auto_filter.ref.startswith("A1:H")
    assert sheet["A2"].font.bold


def test_the_summary_says_what_was_compared_and_the_verdict(tmp_path):
    sheet = book_of(tmp_path / "l.xlsx")["Summary"]
    said = {row[0]: row[1] for row in sheet.iter_rows(values_only=True) if row[0]}
    units = {row[0]: row[2] for row in sheet.iter_rows(values_only=True) if row[0]}

    assert sheet["A1"].font.bold
    assert said["Reconciliation"] == "ledger"
    assert said["Verdict"] == "over the limits: mismatched>0 (3)"
    assert (said["Here: source"], said["There: rows"]) == ("octo.read.duckdb", 1198)
    assert said["There: all of the window covered"] == "not known"
    assert said["From"] == dt.datetime(2026, 10, 18)  # noqa: DTZ001 - a day
    assert (said["Differences"], said["New differences"], said["No longer found"]) == (11, 2, 4)
    assert said["Oldest difference (days)"] == 40
    assert (said["mismatched"], units["mismatched"]) == (6, "differences")
    assert (said["matched"], units["matched"]) == (1181, "bookings")


def test_a_text_that_no_cell_holds_is_refused_and_leaves_what_was_there(tmp_path):
    target = tmp_path / "l.xlsx"
    long = item("k", Bucket.MISMATCHED, [difference("status", "x" * 40_000, "y")])
    write_xlsx(outcome(), target)
    before = target.read_bytes()

    with pytest.raises(ExportError, match="row 2 of mismatched has 40,000 characters"):
        write_xlsx(outcome([long]), target)

    assert target.read_bytes() == before
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert [p.name for p in tmp_path.iterdir()] == ["l.xlsx"]


def test_more_rows_than_a_sheet_holds_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("octo_sync.flows.export.workbook.ROWS", 3)
    one = next(iter(outcome().items))
    twice = [dataclasses.replace(one, differences=one.differences[:2])]

    with pytest.raises(ExportError, match="A sheet holds 3 rows"):
        write_xlsx(outcome(twice), tmp_path / "l.xlsx")

    assert list(tmp_path.iterdir()) == []
