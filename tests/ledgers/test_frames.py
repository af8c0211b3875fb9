"""Parquet files and tables in memory keep what their types say."""
# ruff: noqa: DTZ001 - clocks as they are written have no zone

import uuid
from datetime import UTC, date, datetime
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from octo_sync.errors import LedgerError
from octo_sync.reconciliation.ledgers import Format, Wanted, of_table, read_parquet


def one(kind, array, **form):
    """A column as `kind`."""
    return (
        of_table(pa.table({"v": array}), "the frame", [Wanted("v", kind)], Format(**form)).rows.column("v").to_pylist()
    )


def refused(kind, array, **form):
    with pytest.raises(LedgerError) as caught:
        one(kind, array, **form)
    return str(caught.value)


NOON = datetime(2026, 11, 5, 12, 0)


@pytest.mark.parametrize(
    ("kind", "array", "expected"),
    [
        ("text", pa.array([" 007 ", "", None]), ["007", None, None]),
        ("text", pa.array(["a", "b"], pa.large_string()), ["a", "b"]),
        ("text", pa.array(["a", "b", "a"]).dictionary_encode(), ["a", "b", "a"]),
        ("text", pa.array([12, None]), ["12", None]),
        ("text", pa.array([12.0, 1.5, 1e22, None]), ["12", "1.5", "10000000000000000000000", None]),
        ("text", pa.array([True, False]), ["true", "false"]),
        ("text", pa.array([Decimal("12.50")]), ["12.50"]),
        ("text", pa.array([date(2026, 11, 5)]), ["2026-11-05"]),
        ("text", pa.array([uuid.UUID(int=7).bytes, None], pa.binary(16)), [str(uuid.UUID(int=7)), None]),
        ("text", pa.array([uuid.UUID(int=7).bytes], pa.uuid()), [str(uuid.UUID(int=7))]),
        ("text", pa.nulls(2), [None, None]),
        ("amount", pa.array([12.1, -3.0, None]), [Decimal("12.1"), Decimal(-3), None]),
        ("amount", pa.array([12.1], pa.float32()), [Decimal("12.1")]),
        ("amount", pa.array([7, 8], pa.int16()), [7, 8]),
        ("amount", pa.array([Decimal("12.5")], pa.decimal256(50, 4)), [Decimal("12.5")]),
        ("amount", pa.array(["1.234,50"]), [Decimal("1234.5")]),
        ("whole", pa.array([2.0, None]), [2, None]),
        ("whole", pa.array([Decimal("2.00")]), [2]),
        ("flag", pa.array([1, 0, None]), [True, False, None]),
        ("flag", pa.array([1.0]), [True]),
        ("date", pa.array([NOON]), [date(2026, 11, 5)]),
        ("date", pa.array([date(2026, 11, 5)], pa.date64()), [date(2026, 11, 5)]),
        ("instant", pa.array([NOON], pa.timestamp("ns", "America/New_York")), [NOON.replace(tzinfo=UTC)]),
        ("instant", pa.array([date(2026, 11, 5)]), [datetime(2026, 11, 5, tzinfo=UTC)]),
    ],
)
def test_a_column_of_any_type_becomes_the_wanted_kind(kind, array, expected):
    assert one(kind, array) == expected


@pytest.mark.parametrize(
    ("kind", "array", "why"),
    [
        ("text", pa.array([None, [1]]), "of type list<item: int64>, which is no text"),
        ("text", pa.array([None, b"x"]), "which is no text"),
        ("amount", pa.array([1.0, float("nan")]), "not finite"),
        ("amount", pa.array([1.0, float("inf")]), "not finite"),
        ("amount", pa.array([1.0, 1e35]), "more than 30 digits"),
        ("amount", pa.array([Decimal("0.5"), Decimal("0.123456789")]), "more than 8 decimals"),
        ("amount", pa.array([None, b"x"]), "which is no amount"),
        ("whole", pa.array([1.0, 1.5]), "is no whole number"),
        ("date", pa.array([None, 46331]), "looks like a day as spreadsheets count them"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_row(kind, array, why):
    said = refused(kind, array)

    assert said.startswith('row 2 of the frame, column "v": ')
    assert why in said


def test_the_clock_of_an_instant_with_a_zone_is_the_one_of_its_zone():
    table = pa.table({"start": pa.array([NOON], pa.timestamp("us", "Europe/Lisbon")), "plain": pa.array([NOON])})
    wanted = [Wanted("start", "instant"), Wanted("plain", "instant"), Wanted("START", "date")]

    rows = of_table(table, "x", wanted, Format(time_zone="Asia/Tokyo")).rows.to_pylist()

    assert rows == [
        {
            "start": datetime(2026, 11, 5, 12, tzinfo=UTC),
            "start.wall": datetime(2026, 11, 5, 12),
            "plain": datetime(2026, 11, 5, 3, tzinfo=UTC),
            "plain.wall": datetime(2026, 11, 5, 12),
            "START": date(2026, 11, 5),
        }
    ]


def test_a_frame_of_pandas_is_read():
    frame = pd.DataFrame({"id": ["1", None], "gross": [12.1, None], "pax": [2, None]})
    wanted = [Wanted("id", "text"), Wanted("gross", "amount"), Wanted("pax", "whole")]

    ledger = of_table(pa.Table.from_pandas(frame), "the frame", wanted, Format())

    assert ledger.rows.to_pylist() == [
        {"id": "1", "gross": Decimal("12.1"), "pax": 2},
        {"id": None, "gross": None, "pax": None},
    ]
    assert (ledger.origin, ledger.as_of, ledger.place(1)) == ("the frame", None, "row 2 of the frame")


def test_a_table_without_rows_or_without_the_column():
    wanted = [Wanted("v", "instant"), Wanted("g", "amount")]
    table = pa.table({"v": pa.array([], pa.string()), "g": pa.chunked_array([], pa.float64())})

    assert of_table(table, "x", wanted, Format()).rows.column_names == ["v", "v.wall", "g"]
    with pytest.raises(LedgerError, match='x: there is no column "w"'):
        of_table(table, "x", [Wanted("w", "text")], Format())


def test_of_parquet_files_only_the_wanted_columns_are_read_and_types_may_differ(tmp_path):
    pq.write_table(pa.table({"id": [1, 2], "x": [[1], [2]], "gross": [1.5, None]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"gross": ["2,25"], "id": ["003"]}), tmp_path / "b.parquet")

    ledger = read_parquet(
        [tmp_path / "a.parquet", tmp_path / "b.parquet"], [Wanted("ID", "text"), Wanted("gross", "amount")], Format()
    )

    assert ledger.rows.to_pydict() == {"ID": ["1", "2", "003"], "gross": [Decimal("1.5"), None, Decimal("2.25")]}
    assert (ledger.place(1), ledger.place(2)) == ("a.parquet, row 2", "b.parquet, row 1")
    assert ledger.as_of is not None


def test_what_is_no_parquet_is_refused(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"id\n1\n2\n3\n4\n5\n")

    with pytest.raises(LedgerError, match=r"a\.parquet cannot be read as Parquet: "):
        read_parquet([tmp_path / "a.parquet"], [Wanted("id", "text")], Format())
