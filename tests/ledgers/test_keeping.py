"""Totals rows and fees in a ledger: what `skip_footer` and `where` leave out, in each kind of file, and what they say of it."""

from datetime import date
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xlsxwriter

from octo_sync.errors import LedgerError
from octo_sync.reconciliation.ledgers import Format, Wanted, read_csv, read_parquet, read_xlsx

WANTED = (Wanted("no", "text"), Wanted("gross", "amount"), Wanted("day", "date"))
ROWS = [
    ("no", "kind", "gross", "day"),
    ("B1", "SALE", "10.50", "2026-11-20"),
    (None, None, None, None),
    ("B2", "FEE", "1.00", "2026-11-21"),
    ("B3", "SALE", "20.00", "2026-11-22"),
    (None, "Total", "31.50", "3 days"),
    (None, "Printed by the cashier", None, None),
    (None, None, None, None),
]


@pytest.fixture(params=["csv", "xlsx", "parquet"])
def ledger(request, tmp_path):
    """Reads the rows as a file of each kind, with settings."""
    path = tmp_path / f"ledger.{request.param}"
    if request.param == "csv":
        path.write_text("\n".join(",".join(cell or "" for cell in row) for row in ROWS))
        read = read_csv
    elif request.param == "xlsx":
        with xlsxwriter.Workbook(path) as book:
            sheet = book.add_worksheet("Sales")
            for number, row in enumerate(ROWS):
                sheet.write_row(number, 0, row)
        read = read_xlsx
    else:
        # A table has no rows below its last one.
        columns = [list(column) for column in zip(*ROWS[1:-1], strict=True)]
        pq.write_table(pa.table(dict(zip(ROWS[0], columns, strict=True))), path)
        read = read_parquet
    return lambda wanted=WANTED, **form: read([path], wanted, Format(**form))


def numbers(read):
    return read.rows.column("no").to_pylist()


def test_the_last_rows_are_none_of_the_ledgers(ledger):
    found = ledger(skip_footer=2)
    assert [no for no in numbers(found) if no] == ["B1", "B2", "B3"]
    assert found.rows.column("gross").to_pylist()[0] == Decimal("10.5")
    assert any("the last 2 rows, from " in note and "skip_footer" in note for note in found.notes)
    last = found.rows.num_rows - 1
    assert found.place(last).endswith({"parquet": "row 4"}.get(found.origin.partition(".")[2], " 5"))


def test_without_a_word_a_totals_row_that_fits_no_column_is_refused_with_its_place(ledger):
    with pytest.raises(LedgerError, match=r'(line 6|row 6|row 5), column "day"'):
        ledger()


def test_only_rows_for_which_the_condition_is_true_are_the_ledgers(ledger):
    found = ledger(where="kind <> 'FEE' and kind not like 'Total%' -- and no more")
    assert numbers(found) == ["B1", "B3"]
    assert found.rows.column("day").to_pylist() == [date(2026, 11, 20), date(2026, 11, 22)]
    assert found.rows.column_names == ["no", "gross", "day"]
    assert any("for which where is not true were left out" in note for note in found.notes)
    assert [found.place(n).rpartition(" ")[2] for n in range(2)] == (
        ["1", "4"] if found.origin.endswith("parquet") else ["2", "5"]
    )


def test_of_the_last_row_all_cells_are_known(ledger):
    for left_out, cells in ((3, ["B2", "FEE", "1.00", "2026-11-21"]), (2, ["B3", "SALE", "20.00", "2026-11-22"])):
        found = ledger(wanted=WANTED[:1], skip_footer=left_out)
        last = found.rows.num_rows - 1
        assert list(found.last(last)) == cells
        assert list(found.last(last - 1)) == []
    found = ledger(wanted=WANTED[:1], where="kind = 'SALE'")
    assert list(found.last(1)) == ["B3", "SALE", "20.00", "2026-11-22"]


def test_the_condition_may_be_about_a_compared_column_which_is_a_text_there(ledger):
    found = ledger(where="NO like 'B%' and no is not null and try_cast(gross as decimal(9, 2)) >= 10.5")
    assert numbers(found) == ["B1", "B3"]


def test_a_row_with_nothing_but_the_conditions_column_is_as_blank_as_without_it(ledger):
    assert numbers(ledger(wanted=WANTED[2:] + WANTED[:1], skip_footer=2, where="true")) == ["B1", "B2", "B3"]
    assert ledger(wanted=(Wanted("day", "date"),), where="kind like 'Printed%'").rows.num_rows == 0


def test_a_footer_longer_than_the_file_leaves_nothing(ledger):
    assert ledger(skip_footer=900).rows.num_rows == 0


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("kind =", "where is no condition in SQL"),
        ("1 = 1) union select 2 from (select 3", "where is no condition in SQL"),
        ("kind_of = 'SALE'", 'no column "kind_of" (did you mean "kind"?)'),
        ("kind = no_such(gross)", "where cannot be used"),
        ("cast(kind as integer) = 1", "where fails (ConversionException)"),
        ("exists (from read_text('/etc/hostname'))", "where fails (PermissionException)"),
    ],
)
def test_what_is_no_condition_is_a_sentence_without_values(ledger, where, said):
    with pytest.raises(LedgerError) as caught:
        ledger(where=where)
    assert said in str(caught.value)
    assert "SALE" not in str(caught.value).replace(where, "")


def test_the_footer_of_each_file_is_left_out(tmp_path):
    paths = [tmp_path / f"{month}.csv" for month in ("10", "11")]
    for path in paths:
        path.write_text(f"no,gross\nB{path.stem},1\n;Total,1\n".replace(";", ""))
    assert numbers(read_csv(paths, WANTED[:2], Format(skip_footer=1))) == ["B10", "B11"]


def test_a_formula_in_a_totals_row_that_is_left_out_is_not_looked_at(tmp_path):
    path = tmp_path / "ledger.xlsx"
    with xlsxwriter.Workbook(path) as book:
        sheet = book.add_worksheet()
        sheet.write_row(0, 0, ["no", "gross"])
        sheet.write_row(1, 0, ["B1", 2])
        sheet.write_formula(2, 1, "=SUM(B2:B2)", None, "")
        sheet.write(3, 2, "Printed by the cashier")
    with pytest.raises(LedgerError, match="no stored value"):
        read_xlsx([path], WANTED[:2], Format())
    assert numbers(read_xlsx([path], WANTED[:2], Format(skip_footer=2))) == ["B1"]
