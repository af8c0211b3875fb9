"""A sheet is read by its stored values; a cell that has none is never taken for an empty one."""
# ruff: noqa: DTZ001 - clocks as they are written have no zone

import builtins
import zipfile
from datetime import UTC, date, datetime, time
from decimal import Decimal

import openpyxl
import pytest

from octo_sync.errors import ConfigError, LedgerError
from octo_sync.reconciliation.ledgers import Format, Wanted, base, read_xlsx

ID, GROSS, START, DAY = (
    Wanted("id", "text"),
    Wanted("gross", "amount"),
    Wanted("start", "instant"),
    Wanted("day", "date"),
)


@pytest.fixture
def book(tmp_path):
    """Writes a workbook: `book([["id"], ["7"]], Other=[…])`; a callable cell sets itself."""

    def write(*rows, **sheets):
        made = openpyxl.Workbook()
        made.remove(made.active)
        for title, lines in ({"Sales": rows} | sheets).items():
            sheet = made.create_sheet(title)
            for number, line in enumerate(lines, 1):
                for at, value in enumerate(line, 1):
                    cell = sheet.cell(number, at, value)
                    if isinstance(value, str) and value.startswith("#"):
                        cell.data_type = "e"
        made.save(tmp_path / "ledger.xlsx")
        return tmp_path / "ledger.xlsx"

    return write


def read(path, *wanted, **form):
    return read_xlsx([path], wanted or [ID], Format(**form))


def refused(path, *wanted, **form):
    with pytest.raises(LedgerError) as caught:
        read(path, *wanted, **form)
    return str(caught.value)


def test_cells_become_columns_of_the_wanted_types(book):
    path = book(
        ["Id ", "gross", "start", "day", "pax", "sent"],
        ["007", 12.1, datetime(2026, 11, 5, 14, 30), date(2026, 11, 5), 2, True],
        [4711, "1.234,50", "2026-11-05T14:30:00Z", datetime(2026, 11, 6), "3", "no"],
        [12345678901234, -0.07, None, None, None, 1],
    )

    ledger = read(
        path, ID, GROSS, START, DAY, Wanted("pax", "whole"), Wanted("sent", "flag"), time_zone="Europe/Berlin"
    )

    assert ledger.rows.to_pydict() == {
        "id": ["007", "4711", "12345678901234"],
        "gross": [Decimal("12.1"), Decimal("1234.5"), Decimal("-0.07")],
        "start": [datetime(2026, 11, 5, 13, 30, tzinfo=UTC), datetime(2026, 11, 5, 14, 30, tzinfo=UTC), None],
        "start.wall": [datetime(2026, 11, 5, 14, 30), datetime(2026, 11, 5, 14, 30), None],
        "day": [date(2026, 11, 5), date(2026, 11, 6), None],
        "pax": [2, 3, None],
        "sent": [True, False, True],
    }
    assert (ledger.origin, ledger.place(2)) == ("ledger.xlsx", "ledger.xlsx, sheet Sales, row 4")
    assert ledger.as_of == datetime.fromtimestamp(path.stat().st_mtime, UTC)


def test_a_number_is_its_shortest_decimal_and_the_noise_of_sums_is_none(book):
    numbers = [0.1 + 0.2, 1234.5600000000002, 99.99, 1e-8, 123456789.12, 5]

    ledger = read(book(["gross"], *[[number] for number in numbers]), GROSS)

    expected = ["0.3", "1234.56", "99.99", "0.00000001", "123456789.12", "5"]
    assert ledger.rows.column("gross").to_pylist() == [Decimal(number) for number in expected]
    assert 'row 3, column "gross": "0.333333333333333" has more than 8 decimals' in refused(
        book(["gross"], [1], [1 / 3]), GROSS
    )


def test_the_first_sheet_is_read_unless_one_is_named(book):
    path = book(["id"], ["1"], May=[["id"], ["2"]])

    assert read(path).rows.column("id").to_pylist() == ["1"]
    assert read(path, sheet="May").rows.column("id").to_pylist() == ["2"]
    assert refused(path, sheet="June") == 'ledger.xlsx: there is no sheet "June". The sheets there are "Sales", "May".'


def test_rows_are_numbered_as_in_the_sheet_and_blank_ones_are_none(book):
    path = book(
        [], ["Report"], [None, "id", "gross"], [None, "1", 5], [], [None, " ", ""], [None, "2", 6], [], [None, ""]
    )

    ledger = read(path, ID, GROSS, header_row=3)

    assert ledger.rows.column("id").to_pylist() == ["1", "2"]
    assert [ledger.place(row) for row in (0, 1)] == [
        "ledger.xlsx, sheet Sales, row 4",
        "ledger.xlsx, sheet Sales, row 7",
    ]
    assert ledger.notes == ("ledger.xlsx, sheet Sales: 2 rows with nothing in the wanted columns were left out.",)


def test_more_rows_than_are_collected_at_once_keep_their_order(book, monkeypatch):
    monkeypatch.setattr("octo_sync.reconciliation.ledgers.workbooks.ROWS", 2)

    ledger = read(book(["id", "gross"], ["a", 1], [2, "2"], [3.5, None], ["d", 4.5], [None, 5]), ID, GROSS)

    assert ledger.rows.to_pydict() == {
        "id": ["a", "2", "3.5", "d", None],
        "gross": [1, 2, None, Decimal("4.5"), 5],
    }


def test_only_a_header_is_a_ledger_without_rows_and_an_empty_sheet_is_refused(book):
    assert read(book(["id", "gross"]), ID, GROSS).rows.num_rows == 0
    assert "sheet Sales, row 1: there is no header" in refused(book())
    assert 'sheet Sales, row 1: there is no column "id". The columns there are "x"' in refused(book(["x"], ["1"]))
    assert 'column "Id" is there 2 times' in refused(book(["id", "ID "], ["1", "2"]), Wanted("Id", "text"))


@pytest.mark.parametrize("error", ["#REF!", "#DIV/0!", "#N/A"])
def test_a_cell_that_shows_an_error_is_refused_and_one_of_another_column_is_not(book, error):
    path = book(["id", "x", "gross"], ["1", 5, 6], ["2", error, error])

    assert (
        refused(path, ID, GROSS)
        == f'ledger.xlsx, sheet Sales, row 3, column "gross": the cell shows {error}; correct it in the sheet.'
    )
    assert read(path, ID).rows.num_rows == 2


@pytest.mark.parametrize("before", range(4))
def test_an_error_is_found_wherever_the_columns_begin(book, before):
    lines = ["id", "x", "gross"], ["1", 5, 6], ["2", "#N/A", "#REF!"]
    path = book([], *[[None] * before + line for line in lines])

    said = 'ledger.xlsx, sheet Sales, row 4, column "gross": the cell shows #REF!; correct it in the sheet.'
    assert refused(path, ID, GROSS, header_row=2) == said
    assert read(path, ID, header_row=2).rows.column("id").to_pylist() == ["1", "2"]


def test_a_formula_without_a_stored_value_is_refused_and_one_with_it_is_its_value(book, tmp_path):
    path = book(["id", "gross"], ["1", "=2*3"])

    assert 'row 2, column "gross": the formula has no stored value; open the workbook' in refused(path, ID, GROSS)

    edited(path, b"<v />", b"<v>6</v>", b"<v></v>", b"<v>6</v>")
    assert read(path, ID, GROSS).rows.column("gross").to_pylist() == [6]


def edited(path, *pairs):
    """Replace bytes of the first sheet's XML."""
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    before = files[sheet]
    for old, new in zip(pairs[::2], pairs[1::2], strict=True):
        files[sheet] = files[sheet].replace(old, new)
    assert files[sheet] != before
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)


def test_an_error_is_found_wherever_the_sheet_is_cut_and_however_it_is_written(book, monkeypatch):
    path = book(["id", "gross"], *[[str(number), number] for number in range(50)], ["x", "#REF!"])
    for size in (1, 7, *range(100, 300, 7)):
        monkeypatch.setattr("octo_sync.reconciliation.ledgers.workbooks._CHUNK", size)
        assert 'row 52, column "gross": the cell shows #REF!' in refused(path, ID, GROSS)
    edited(path, b'r="B52" t="e"', b"t='e'", b'r="B52" ', b"")
    assert "in a cell somewhere the cell shows #REF!" in refused(path, ID, GROSS)


def test_dates_beside_texts_that_could_be_wrong_dates_are_refused_with_both_rows(book):
    path = book(["day"], [datetime(2026, 5, 11)], ["11/25/2026"])

    said = refused(path, DAY)

    assert said.startswith(
        'ledger.xlsx, sheet Sales, row 2 and ledger.xlsx, sheet Sales, row 3, column "day": the first is a date'
    )
    assert read(path, DAY, dates="mdy").rows.column("day").to_pylist() == [date(2026, 5, 11), date(2026, 11, 25)]
    mixed = book(["day"], [datetime(2026, 5, 11)], ["2026-11-25"])
    assert read(mixed, DAY).rows.column("day").to_pylist() == [date(2026, 5, 11), date(2026, 11, 25)]


def test_numbers_in_a_column_of_days_need_a_word(book):
    path = book(["day", "start"], [46331, 46331.5])

    assert 'row 2, column "day": "46331" looks like a day as spreadsheets count them; set dates = "serial"' in refused(
        path, DAY
    )
    ledger = read(path, DAY, START, dates="serial")
    assert ledger.rows.column("day").to_pylist() == [date(2026, 11, 5)]
    assert ledger.rows.column("start").to_pylist() == [datetime(2026, 11, 5, 12, tzinfo=UTC)]
    assert 'the number "7" is no day' in refused(book(["day"], [7]), DAY)


@pytest.mark.parametrize(
    ("kind", "cell", "why"),
    [
        ("amount", datetime(2026, 11, 5), "is no amount"),
        ("amount", True, "is no amount"),
        ("amount", "EUR 5", "put the currency into a column of its own"),
        ("amount", "\u00a0#REF!", "is an error of the spreadsheet"),
        ("whole", 1.5, "is no whole number"),
        ("whole", datetime(2026, 11, 5), "is no whole number"),
        ("date", time(14, 30), "is no day"),
        ("date", True, "is no day"),
        ("flag", 2, "is none of true"),
        ("flag", datetime(2026, 11, 5), "is no yes or no"),
    ],
)
def test_a_cell_of_another_type_is_refused_with_its_row(book, kind, cell, why):
    said = refused(book(["v"], [None], [cell]), Wanted("v", kind))

    assert said.startswith('ledger.xlsx, sheet Sales, row 3, column "v": ')
    assert why in said


@pytest.mark.parametrize("content", [b"", b"id,gross\n1,2\n", b"PK\x03\x04", b"\xd0\xcf\x11\xe0 with a password"])
def test_what_is_no_workbook_is_refused(tmp_path, content):
    (tmp_path / "ledger.xlsx").write_bytes(content)

    assert "ledger.xlsx cannot be read as an XLSX workbook" in refused(tmp_path / "ledger.xlsx")


def test_a_workbook_that_unpacks_to_more_than_is_read_is_refused(book, monkeypatch):
    path = book(["id"], *[["x"]] * 2000)
    monkeypatch.setattr(base, "LARGEST", path.stat().st_size)

    assert "unpacked it is" in refused(path)


def test_without_the_library_the_sentence_says_what_to_install(book, monkeypatch):
    path, real = book(["id"]), builtins.__import__

    def without(name, *rest):
        if name == "python_calamine":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ConfigError, match=r"pip install '\.\[xlsx\]' in the checkout"):
        read(path)
