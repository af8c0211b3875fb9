"""A CSV file becomes typed columns, or a sentence that names file, line and column."""
# ruff: noqa: DTZ001 - clocks as they are written have no zone

import io
import os
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from octo_sync.errors import LedgerError
from octo_sync.reconciliation.ledgers import Format, Wanted, base, encoding, read_csv

TEXT, GROSS, START, DAY = (
    Wanted("id", "text"),
    Wanted("gross", "amount"),
    Wanted("start", "instant"),
    Wanted("day", "date"),
)


@pytest.fixture
def ledger(tmp_path):
    """Reads files made of texts or bytes: `ledger("id\\n7\\n", wanted=[…], encoding="…")`."""

    def read(*contents, wanted=(TEXT,), **form):
        paths = []
        for number, content in enumerate(contents, 1):
            path = tmp_path / ("ledger.csv" if len(contents) == 1 else f"ledger-{number}.csv")
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
            paths.append(path)
        return read_csv(paths, wanted, Format(**form))

    return read


@pytest.fixture
def refused(ledger):
    """The sentence with which a file is refused."""

    def read(*contents, **asked):
        with pytest.raises(LedgerError) as caught:
            ledger(*contents, **asked)
        return str(caught.value)

    return read


def column(ledger, name="id"):
    return ledger.rows.column(name).to_pylist()


def places(ledger):
    return [ledger.place(row) for row in range(ledger.rows.num_rows)]


# ── what is there ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_file_becomes_columns_of_the_wanted_types(ledger):
    read = ledger(
        "day,gross,id,start,pax,sent\n2026-11-05,12.5,0042,2026-11-05T14:30:00+02:00,2,yes\n,,x,,,\n",
        wanted=[TEXT, GROSS, START, DAY, Wanted("pax", "whole"), Wanted("sent", "flag")],
    )

    assert read.rows.schema == pa.schema(
        {
            "id": pa.string(),
            "gross": pa.decimal128(38, 8),
            "start": pa.timestamp("us", "UTC"),
            "start.wall": pa.timestamp("us"),
            "day": pa.date32(),
            "pax": pa.int64(),
            "sent": pa.bool_(),
        }
    )
    assert read.rows.to_pylist() == [
        {
            "id": "0042",
            "gross": Decimal("12.5"),
            "start": datetime(2026, 11, 5, 12, 30, tzinfo=UTC),
            "start.wall": datetime(2026, 11, 5, 14, 30),
            "day": date(2026, 11, 5),
            "pax": 2,
            "sent": True,
        },
        {"id": "x", "gross": None, "start": None, "start.wall": None, "day": None, "pax": None, "sent": None},
    ]


def test_texts_are_trimmed_blank_ones_are_null_and_leading_zeros_stay(ledger):
    read = ledger("id,gross\n  007 \t,1\n\u00a0 ,2\n")

    assert column(read) == ["007"]
    assert column(ledger("id,gross\n007,1\n \u00a0,2\n", wanted=[TEXT, GROSS])) == ["007", None]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_the_one_by_which_all_wanted_columns_are_found(ledger, delimiter):
    lines = [["id", "a,b;c|d", "gross"], ["7", "x", "5"]]
    text = "\n".join(delimiter.join(f'"{cell}"' for cell in line) for line in lines)

    read = ledger(text, wanted=[TEXT, GROSS])

    assert (column(read), column(read, "gross")) == (["7"], [Decimal(5)])


def test_another_delimiter_can_be_set_and_the_line_that_excel_writes_about_it_is_understood(ledger):
    assert column(ledger("id~gross\n7~5\n", delimiter="~", wanted=[TEXT, GROSS])) == ["7"]
    read = ledger("sep=;\nid;gross\n7;5\n", wanted=[TEXT, GROSS])
    assert (column(read), places(read)) == (["7"], ["ledger.csv, line 3"])


def test_a_name_matches_exactly_first_then_trimmed_and_whatever_the_case(ledger):
    assert column(ledger("ID,id\nwrong,right\n")) == ["right"]
    assert column(ledger(' "Id" ,x\n7,8\n'.lstrip())) == ["7"]
    assert column(ledger("\ufeffid,x\n7,8\n")) == ["7"]


def test_a_place_is_the_line_where_the_record_begins(ledger):
    read = ledger('id,note\r\n1,"two\r\nlines"\r\n\r\n2,\r\n3,x\r\n')

    assert (column(read), places(read)) == (
        ["1", "2", "3"],
        ["ledger.csv, line 2", "ledger.csv, line 5", "ledger.csv, line 6"],
    )


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_every_line_end_and_empty_lines_at_the_end_are_read(ledger, end):
    read = ledger(end.join(["id,gross", "1,2", "3,4", "", "", ""]))

    assert (column(read), places(read)) == (["1", "3"], ["ledger.csv, line 2", "ledger.csv, line 3"])


def test_lines_are_counted_rightly_where_a_line_end_falls_between_two_pieces_of_the_file(ledger, monkeypatch):
    monkeypatch.setattr("octo_sync.reconciliation.ledgers.encoding._CHUNK", 1)

    read = ledger('id,note\r\n1,"a\r\n\r\nb"\r\n2,é\r\n\r\n')

    assert (column(read), places(read)) == (["1", "2"], ["ledger.csv, line 2", "ledger.csv, line 5"])
    text = encoding.Text(io.BytesIO("a\r\n\r\né\rb\n\r\n".encode()), "utf-8", "end")
    assert text.read() == "a\r\n\r\né\rb\n\r\n\nend\n".encode()
    assert text.lines == 4


def test_a_delimiter_at_the_end_of_each_row_is_nothing(ledger, refused):
    assert column(ledger("id;gross;\n7;5;\n", wanted=[TEXT, GROSS])) == ["7"]
    assert column(ledger("id;gross;\n7;5\n8;6\n", wanted=[TEXT, GROSS])) == ["7", "8"]
    assert column(ledger("id;gross\n7;5;\n8;6;\n", wanted=[TEXT, GROSS])) == ["7", "8"]
    assert "ledger.csv, line 3: the row has 3 cells and the header 2" in refused("id;gross\n7;5;\n8;6;x\n")


def test_rows_with_nothing_in_the_wanted_columns_are_left_out_and_a_note_says_so(ledger):
    read = ledger("id;note\n1;a\n;\n ;total\n2;b\n;;\n".replace(";;\n", ";\n"))

    assert (column(read), places(read)) == (["1", "2"], ["ledger.csv, line 2", "ledger.csv, line 5"])
    assert read.notes == ("ledger.csv: 2 rows with nothing in the wanted columns were left out.",)
    assert ledger("id;note\n1;a\n;\n;\n").notes == ()


def test_only_a_header_is_a_ledger_without_rows_and_an_empty_file_is_refused(ledger, refused):
    read = ledger("id,gross,start\n", wanted=[TEXT, GROSS, START])

    assert (read.rows.num_rows, read.rows.column_names) == (0, ["id", "gross", "start", "start.wall"])
    assert ledger("id,gross").rows.num_rows == 0
    with pytest.raises(IndexError):
        read.place(0)
    assert refused("") == "ledger.csv is empty: there is not even a header."
    assert "ledger.csv, line 1: there is no header; it is empty there." in refused("\n\n")


def test_names_may_stand_further_down(ledger, refused):
    text = 'Report, of November\n"1\n2"\nid,gross\n7,5\n'

    read = ledger(text, header_row=4)

    assert (column(read), places(read)) == (["7"], ["ledger.csv, line 5"])
    assert "set header_row" in refused(text)
    assert "ledger.csv, line 9: there is no header; it is empty there." in refused(text, header_row=9)


def test_several_files_are_one_ledger_that_knows_where_each_row_was(ledger, tmp_path):
    read = ledger("id,gross\n1,5\n", 'gross;id\n6;"2"\n7;3\n', wanted=[TEXT, GROSS])

    assert column(read) == ["1", "2", "3"]
    assert places(read) == ["ledger-1.csv, line 2", "ledger-2.csv, line 2", "ledger-2.csv, line 3"]
    assert read.origin == f"2 files {tmp_path.name}/ledger-*.csv"


def test_files_of_one_name_are_told_apart_by_their_folders(tmp_path):
    paths = [tmp_path / folder / "ledger.csv" for folder in ("may", "june")]
    for path in paths:
        path.parent.mkdir()
        path.write_text("id\n7\n")

    read = read_csv(paths, [TEXT], Format())

    assert (places(read), read.origin) == (["may/ledger.csv, line 2", "june/ledger.csv, line 2"], "2 files ledger.csv*")


def test_the_age_is_that_of_the_newest_file(tmp_path):
    paths = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for path, at in zip(paths, (1_790_000_000, 1_780_000_000), strict=True):
        path.write_text("id\n7\n")
        os.utime(path, (at, at))

    read = read_csv(paths, [TEXT], Format())

    assert (read.as_of, read.origin) == (
        datetime.fromtimestamp(1_790_000_000, UTC),
        "2 files " + tmp_path.name + "/*.csv",
    )
    assert read_csv(paths[:1], [TEXT], Format()).origin == "a.csv"


# ── what is refused ───────────────────────────────────────────────────────────────────────────────────────────────


def test_a_missing_column_is_refused_with_those_that_are_there(refused):
    assert refused("booking_no;state\n7;x\n", wanted=[Wanted("booking_nr", "text"), Wanted("gross", "amount")]) == (
        'ledger.csv, line 1: there is no column "booking_nr" (did you mean "booking_no"?), "gross". The columns there are '
        '"booking_no", "state". If the names stand further down, set header_row.'
    )


def test_a_wanted_column_that_is_there_twice_is_refused_and_an_unwanted_one_is_not(ledger, refused):
    assert 'ledger.csv, line 1: column "id" is there 2 times (1, 3)' in refused("id,x,id\n1,2,3\n")
    assert 'column "id" is there 2 times' in refused("ID,x,Id\n1,2,3\n")
    assert column(ledger("id,x,x\n1,2,3\n")) == ["1"]


def test_a_column_wanted_as_two_kinds_is_refused(refused):
    assert "wanted as text and as amount" in refused("id\n1\n", wanted=[TEXT, Wanted("id", "amount")])


@pytest.mark.parametrize(("row", "cells"), [("4", 1), ("4,5,6", 3), ("4,5,6,7", 4)])
def test_a_row_of_another_width_is_refused_with_its_line(refused, row, cells):
    said = refused(f'id,gross\n1,"a\nb"\n\n{row}\n')

    assert said.startswith(f"ledger.csv, line 5: the row has {cells} cell{'s' * (cells > 1)} and the header 2.")


@pytest.mark.parametrize("text", ['id,note\n1,x\n2,"y', 'id,note\n1,x\n2,"y\n', 'id,note\n1,x\n2,"y\n3,z\n4,z\n'])
def test_a_quote_that_is_never_closed_is_refused_with_the_line_where_it_opens(refused, text):
    assert "ledger.csv, line 3: a quote that opens in this record is never closed" in refused(text)
    assert "ledger.csv, line 2: a quote that opens" in refused(text.replace("1,x\n", ""))
    assert "ledger.csv, line 3: a quote that opens" in refused('id\n1\n"')


def test_a_file_too_large_is_refused(refused, monkeypatch):
    monkeypatch.setattr(base, "LARGEST", 20)

    assert "2 files" in (said := refused("id\n1234567\n", "id\n1234567890\n"))
    assert "export a shorter period" in said


def test_a_file_that_is_not_there_and_a_folder_are_refused(tmp_path):
    with pytest.raises(LedgerError, match=r"gone\.csv cannot be read: No such file"):
        read_csv([tmp_path / "gone.csv"], [TEXT], Format())
    with pytest.raises(LedgerError, match="cannot be read: Is a directory"):
        read_csv([tmp_path], [TEXT], Format())


def test_a_message_shows_the_shape_of_a_value_and_no_name(refused):
    said = refused("id,gross\n1,Ann Smith +44 12\n", wanted=[TEXT, GROSS])

    assert said.startswith('ledger.csv, line 2, column "gross": "xxx xxxxx +44 12" is more than an amount.')


def test_a_word_is_no_amount_and_hides_no_currency(refused):
    said = refused("id,gross\n1,free\n", wanted=[TEXT, GROSS])

    assert said == 'ledger.csv, line 2, column "gross": "xxxx" is no amount, such as 1234.56, 1,234.56 or 1.234,56.'


def test_an_unknown_time_zone_is_refused(refused):
    assert 'no time zone "Lisboa"; set time_zone' in refused("id\n1\n", time_zone="Lisboa")
    assert "no time zone" in refused("id\n1\n", time_zone="../etc")


# ── encodings ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("code", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le-bom", "utf-16-be-bom"])
def test_utf_8_and_utf_16_with_a_mark_are_read_as_they_are(ledger, code):
    text = 'id;Größe\n7é;"x\ny"\n8;ü\n'
    marked = code.endswith("-bom")
    content = ("\ufeff" * marked + text).encode(code.removesuffix("-bom"))

    read = ledger(content, wanted=[TEXT, Wanted("größe", "text")])

    assert (column(read), column(read, "größe")) == (["7é", "8"], ["x\ny", "ü"])
    assert (places(read), read.notes) == (["ledger.csv, line 2", "ledger.csv, line 4"], ())


def test_a_file_without_any_utf_8_is_read_as_cp1252_and_a_note_says_so(ledger):
    read = ledger("id;name\n7;Café €\n".encode("cp1252"), wanted=[TEXT, Wanted("name", "text")])

    assert column(read, "name") == ["Café €"]
    assert read.notes == ("ledger.csv was read as cp1252, because it is not UTF-8.",)


def test_a_file_that_mixes_encodings_is_refused_with_line_and_column(refused, monkeypatch):
    content = "id;name;x\n7;Café;\n".encode() + "8;Café;\n".encode("cp1252")

    assert refused(content) == (
        'ledger.csv, line 3, column "name", character 6: the bytes there are not of its encoding; it mixes encodings; write it '
        "anew in one, or set encoding."
    )
    assert 'line 3, column "name"' in refused(b"\xef\xbb\xbf" + content)
    monkeypatch.setattr("octo_sync.reconciliation.ledgers.encoding._CHUNK", 1)
    assert "it mixes encodings" in refused(content)


def test_what_is_neither_needs_the_encoding_to_be_set(ledger, refused):
    content = "id;name\n7;ł\u0141\n".encode("cp1250").replace("\u0141".encode("cp1250"), b"\x8d")

    assert 'ledger.csv, line 2, column "name", character 3' in refused(content)
    assert "set encoding" in refused(content)
    assert column(ledger(content, encoding="cp1250", wanted=[Wanted("name", "text")]), "name") == ["łŤ"]


def test_an_encoding_that_was_set_must_exist_and_fit(refused):
    assert 'there is no encoding "latin-99"' in refused("id\n7\n", encoding="latin-99")
    assert "there is no encoding" in refused("id\n7\n", encoding="hex")
    assert "line 2" in refused("id\n7é\n".encode("cp1252"), encoding="ascii")
    assert "not of its encoding" in refused("id\n7\n".encode("utf-16-le") + b"x", encoding="utf-16-le")


def test_utf_16_without_a_mark_needs_the_encoding_to_be_set(ledger, refused):
    content = "id;x\n7;8\n".encode("utf-16-le")

    assert "no column" in refused(content)
    assert "there are zero bytes in it" in refused(b"id;x\n7\x00;8\n")
    assert column(ledger(content, encoding="utf-16-le")) == ["7"]
