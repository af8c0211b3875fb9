"""Amounts, days, clocks, whole numbers and flags, however they are written; what could mean two things is refused."""
# ruff: noqa: DTZ001 - clocks as they are written have no zone

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from octo_sync.errors import LedgerError
from octo_sync.reconciliation.ledgers import Format, Wanted, read_csv


@pytest.fixture
def read(tmp_path):
    """The values of one column of a file that has it: `read("amount", ["1", "2"], decimal=",")`."""

    def ask(kind, values, **form):
        path = tmp_path / "ledger.csv"
        path.write_text("".join(f'"{value}"\t.\n' for value in ["v", *values]))
        table = read_csv([path], [Wanted("v", kind)], Format(delimiter="\t", **form)).rows
        return table.column("v").to_pylist() if kind != "instant" else table.to_pylist()

    return ask


@pytest.fixture
def refused(read):
    def ask(kind, values, **form):
        with pytest.raises(LedgerError) as caught:
            read(kind, values, **form)
        return str(caught.value)

    return ask


# ── amounts ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("written", "amount"),
    [
        ("1234.56", "1234.56"),
        ("1,234.56", "1234.56"),
        ("12,345,678.9", "12345678.9"),
        ("1.234,56", "1234.56"),
        ("1 234,56", "1234.56"),
        ("1\u00a0234,56", "1234.56"),
        ("1\u202f234.56", "1234.56"),
        ("1'234.56", "1234.56"),
        ("1\u2019234.56", "1234.56"),
        ("-12.5", "-12.5"),
        ("12.5-", "-12.5"),
        ("\u221212,50", "-12.5"),
        ("- 12,50", "-12.5"),
        ("+12.50", "12.5"),
        ("(12.00)", "-12"),
        ("(1.234,00)", "-1234"),
        (".5", "0.5"),
        ("-,5", "-0.5"),
        ("0.123", "0.123"),
        ("1234.567", "1234.567"),
        ("12,3456", "12.3456"),
        ("0012", "12"),
        ("1 234 567", "1234567"),
        ("0.12345678", "0.12345678"),
        ("0.1234567800", "0.12345678"),
        ("123456789012345678901234567890.12", "123456789012345678901234567890.12"),
    ],
)
def test_an_amount_is_read_exactly_however_it_is_written(read, written, amount):
    assert read("amount", [written]) == [Decimal(amount)]


def test_one_value_decides_for_the_column(read):
    assert read("amount", ["1,234", "1,5", "7"]) == [Decimal("1.234"), Decimal("1.5"), Decimal(7)]
    assert read("amount", ["1,234", "1,234.0"]) == [Decimal(1234), Decimal(1234)]
    assert read("amount", ["1.234", "0.5"]) == [Decimal("1.234"), Decimal("0.5")]
    assert read("amount", ["1.234", "1.234.567"]) == [Decimal(1234), Decimal(1234567)]
    assert read("amount", ["7", "-8", "1 000"]) == [7, -8, 1000]


@pytest.mark.parametrize(("decimal", "amount"), [(".", "1234"), (",", "1.234")])
def test_an_amount_that_could_be_two_is_refused_until_it_is_said_which(read, refused, decimal, amount):
    said = refused("amount", ["7", "1,234", "-5,678"])

    assert said.startswith('ledger.csv, line 3, column "v": "1,234" is thousands or decimals')
    assert 'set decimal = "." or decimal = ","' in said
    assert read("amount", ["7", "1,234"], decimal=decimal) == [Decimal(7), Decimal(amount)]


def test_a_column_written_in_two_ways_is_refused_with_both_lines(refused):
    said = refused("amount", ["1", "1,234.56", "", "2", "1.234,56"])

    assert said.startswith(
        'ledger.csv, line 3 and ledger.csv, line 6, column "v": "1,234.56" has a decimal point and "1.234,56" a'
    )


def test_what_was_set_is_held_to(refused):
    assert '"1,5" is not written as decimal = "." says' in refused("amount", ["1,5"], decimal=".")
    assert 'line 3, column "v": "1.50" is not written' in refused("amount", ["1,5", "1.50"], decimal=",")


@pytest.mark.parametrize("written", ["EUR 12.00", "12.00 €", "€12", "12 USD", "$-5"])
def test_two_currencies_in_a_column_are_refused_with_what_to_do(refused, written):
    said = refused("amount", ["1.00", written])

    assert said.startswith('ledger.csv, line 3, column "v": ')
    assert "put the currency into a column of its own" in said


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("NaN", '"nan" is no amount; leave the cell empty'),
        ("-inf", "is no amount; leave the cell empty"),
        ("null", "is no amount; leave the cell empty"),
        ("#REF!", '"#REF!" is an error of the spreadsheet'),
        ("#DIV/0!", "is an error of the spreadsheet"),
        ("#N/A", "is an error of the spreadsheet"),
        ("=A1*2", '"=x1*2" is the text of a formula'),
        ("1.2E+05", "is a rounded number; export all digits"),
        ("-", '"-" is no amount, such as'),
        ("1,23,456", "is no amount, such as"),
        ("1.2.3", "is no amount, such as"),
        ("1 23", "is no amount, such as"),
        ("--5", "is no amount, such as"),
        ("(-5)", "is no amount, such as"),
        ("5.", "is no amount, such as"),
        ("12.34.5678", "is no amount, such as"),
        ("0.123456789", "has more than 8 decimals"),
        ("1234567890123456789012345678901", "more than 30 digits"),
    ],
)
def test_what_is_no_amount_is_refused_with_file_line_and_column(refused, written, why):
    said = refused("amount", ["1", "", "2", written, written])

    assert said.startswith('ledger.csv, line 5, column "v": ')
    assert why in said


# ── days ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "written", ["2026-11-25", "2026/11/25", "25.11.2026", "25/11/2026", "25-11-2026", "11/25/2026", "2026-11-25 14:30"]
)
def test_a_day_is_read_however_it_is_written(read, written):
    assert read("date", [written, ""]) == [date(2026, 11, 25)]


def test_one_day_decides_for_the_column(read):
    assert read("date", ["05/11/2026", "25/11/2026"]) == [date(2026, 11, 5), date(2026, 11, 25)]
    assert read("date", ["05/11/2026", "11/25/2026", "1/2/2026"]) == [
        date(2026, 5, 11),
        date(2026, 11, 25),
        date(2026, 1, 2),
    ]
    assert read("date", ["05.11.2026", "5.6.2026"]) == [date(2026, 11, 5), date(2026, 6, 5)], "points mean day first"


@pytest.mark.parametrize(("dates", "day"), [("dmy", date(2026, 11, 5)), ("mdy", date(2026, 5, 11))])
def test_a_day_that_could_be_two_is_refused_until_it_is_said_which(read, refused, dates, day):
    said = refused("date", ["05/11/2026"])

    assert said.startswith(
        'ledger.csv, line 2, column "v": nothing in the column says whether "05/11/2026" has the day or the'
    )
    assert 'set dates = "dmy" or dates = "mdy"' in said
    assert read("date", ["05/11/2026", "2026-01-02"], dates=dates) == [day, date(2026, 1, 2)]


def test_days_written_in_two_orders_or_two_ways_are_refused_with_both_lines(refused):
    said = refused("date", ["25/11/2026", "1/1/2026", "11/25/2026"])
    assert said.startswith('ledger.csv, line 2 and ledger.csv, line 4, column "v": "25/11/2026" has the day first')

    said = refused("date", ["25/11/2026", "2026-11-25"])
    assert said.startswith('ledger.csv, line 3 and ledger.csv, line 2, column "v": ')
    assert "are written in two ways" in said


@pytest.mark.parametrize(
    "written", ["31.02.2026", "2026-02-29", "2026-13-01", "00.01.2026", "13/13/2026", "0000-01-01"]
)
def test_a_day_that_does_not_exist_is_refused_with_its_line(refused, written):
    assert refused("date", ["", written]) == f'ledger.csv, line 3, column "v": "{written}" is no day of the calendar.'


def test_a_year_of_two_digits_is_refused(refused):
    assert 'line 3, column "v": "25.11.26" has a year of two digits' in refused("date", ["25.11.2026", "25.11.26"])


def test_what_was_set_about_days_is_held_to(refused):
    assert 'is not written as dates = "iso" says' in refused("date", ["25.11.2026"], dates="iso")
    assert "is no day of the calendar" in refused("date", ["25/11/2026"], dates="mdy")
    assert "is no day, such as" in refused("date", ["tomorrow"])
    assert "is no day, such as" in refused("date", ["14:30"])
    assert "is no day, such as" in refused("date", ["Tuesday"])


def test_numbers_that_count_days_are_read_only_when_it_is_said_so(read, refused):
    assert 'line 3, column "v": "46331" looks like a day as spreadsheets count them; set dates = "serial"' in refused(
        "date", ["2026-11-05", "46331"]
    )
    assert read("date", ["46331", "46331.75", "2026-01-02", ""], dates="serial") == [
        date(2026, 11, 5),
        date(2026, 11, 5),
        date(2026, 1, 2),
    ]
    assert read("instant", ["46331.604166666664"], dates="serial")[0]["v.wall"] == datetime(2026, 11, 5, 14, 30)
    assert "is no day" in refused("date", ["12"], dates="serial")
    assert 'not written as dates = "serial" says' in refused("date", ["46331", "1.1.2026"], dates="serial")


# ── clocks ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("written", "wall", "utc"),
    [
        ("2026-11-05 14:30", (14, 30), (13, 30)),
        ("2026-11-05T14:30:00", (14, 30), (13, 30)),
        ("05.11.2026, 9:05:07", (9, 5, 7), (8, 5, 7)),
        ("2026-11-05T14:30:00Z", (14, 30), (14, 30)),
        ("2026-11-05 14:30:00 UTC", (14, 30), (14, 30)),
        ("2026-11-05T14:30+05:45", (14, 30), (8, 45)),
        ("2026-11-05T14:30:00-0330", (14, 30), (18, 0)),
        ("2026-11-05 14:30:00+01", (14, 30), (13, 30)),
        ("2026-11-05 14:30:00.5", (14, 30, 0, 500_000), (13, 30, 0, 500_000)),
        ("2026-11-05 14:30:00,123456789", (14, 30, 0, 123_456), (13, 30, 0, 123_456)),
    ],
)
def test_a_clock_is_an_instant_by_its_offset_or_else_by_the_time_zone(read, written, wall, utc):
    (row,) = read("instant", [written], time_zone="Europe/Berlin")

    assert row == {"v": datetime(2026, 11, 5, *utc, tzinfo=UTC), "v.wall": datetime(2026, 11, 5, *wall)}


def test_a_day_alone_begins_at_midnight_of_the_time_zone(read):
    rows = read("instant", ["2026-11-05", "2026-11-05 10:00"], time_zone="Europe/Berlin")

    assert [row["v"] for row in rows] == [datetime(2026, 11, 4, 23, tzinfo=UTC), datetime(2026, 11, 5, 9, tzinfo=UTC)]
    assert [row["v.wall"] for row in rows] == [datetime(2026, 11, 5), datetime(2026, 11, 5, 10)]


def test_clocks_that_come_twice_or_never_mean_what_python_says(read):
    written = ["2026-03-29 01:59", "2026-03-29 02:30", "2026-03-29 03:00", "2026-10-25 02:30", "2026-10-25 03:00"]

    rows = read("instant", written, time_zone="Europe/Berlin")

    assert [row["v"].strftime("%m-%d %H:%M") for row in rows] == [
        "03-29 00:59", "03-29 01:30", "03-29 01:00", "10-25 00:30", "10-25 02:00"
    ]  # fmt: skip


def test_an_instant_in_a_column_of_days_is_the_day_at_the_time_zone(read):
    written = ["2026-11-05T23:30:00Z", "2026-11-05T23:30:00", "2026-11-05", "2026-11-05T23:30:00+03:00"]

    assert read("date", written, time_zone="Europe/Berlin") == [date(2026, 11, day) for day in (6, 5, 5, 5)]
    assert read("date", written[:1], time_zone="America/New_York") == [date(2026, 11, 5)]


@pytest.mark.parametrize("clock", ["24:00", "14:60", "14:30:61", "9", "2 PM", "14:30+19:00", "14:30 CET", "14.30"])
def test_a_clock_that_does_not_exist_is_refused(refused, clock):
    said = refused("instant", ["2026-11-05 14:30", f"2026-11-05 {clock}"])

    assert said.startswith('ledger.csv, line 3, column "v": ')
    assert "is no time of the day" in said


def test_the_ends_of_the_calendar_are_read_and_what_is_behind_them_refused(read, refused):
    assert read("date", ["9999-12-31", "0001-01-01"]) == [date.max, date.min]
    assert read("instant", ["9999-12-31 00:00"], time_zone="Europe/Berlin")[0]["v.wall"] == datetime(9999, 12, 31)
    assert "line 2" in (said := refused("instant", ["9999-12-31 23:00"], time_zone="America/New_York"))
    assert "outside of the years 1 to 9999" in said
    assert "outside of the years" in refused("date", ["0001-01-01T00:00:00+05:00"])


# ── whole numbers, flags ──────────────────────────────────────────────────────────────────────────────────────────


def test_whole_numbers_are_whole(read, refused):
    assert read("whole", ["1", "-2", "+3", "4.0", "5,00", ""]) == [1, -2, 3, 4, 5]
    for written in ("1.5", "1,000", "1.000", "two", "12345678901234567890"):
        assert 'line 3, column "v"' in (said := refused("whole", ["1", written]))
        assert "is no whole number" in said


def test_flags_are_words_for_yes_and_no(read, refused):
    assert read("flag", ["true", "FALSE", "Yes", "no", "1", "0", "Y", "n"]) == [True, False] * 4
    assert '"xx" is none of true, yes, y, 1, false, no, n, 0' in refused("flag", ["yes", "ja"])
