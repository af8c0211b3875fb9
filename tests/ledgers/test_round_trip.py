"""What is written as CSV in any of the ways that people and programs have is read back as it was."""
# ruff: noqa: DTZ001 - clocks as they are written have no zone

import csv
import io
import tempfile
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from octo_sync.reconciliation.ledgers import Format, Wanted, read_csv

WANTED = [
    Wanted("id", "text"),
    Wanted("gross", "amount"),
    Wanted("day", "date"),
    Wanted("start", "instant"),
    Wanted("pax", "whole"),
    Wanted("paid", "flag"),
]
texts = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"], include_characters="\n\t") | st.sampled_from(",;|\"'\n"),
    max_size=12,
)
amounts = (
    st.decimals(-(10**12), 10**12, places=2)
    | st.decimals(-(10**6), 10**6, places=8)
    | st.integers(-9999, 9999).map(Decimal)
)
days = st.dates(date(1900, 1, 1), date(2999, 12, 31))
clocks = st.datetimes(datetime(1970, 1, 1), datetime(2100, 1, 1))
rows = st.tuples(
    texts,
    st.none() | amounts,
    st.none() | days,
    st.none() | clocks,
    st.none() | st.integers(-(10**9), 10**9),
    st.none() | st.booleans(),
)


def grouped(amount, point, group, negative):
    """An amount as text."""
    whole, _, behind = f"{abs(amount):,f}".partition(".")
    text = whole.replace(",", group) + (point + behind if behind else "")
    return negative.format(text) if amount < 0 else text


@settings(deadline=None)
@given(
    table=st.lists(rows, max_size=8),
    delimiter=st.sampled_from(",;\t|"),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    end=st.sampled_from(["\n", "\r\n"]),
    last=st.sampled_from(["", "\n", "\r\n\r\n"]),
    point=st.sampled_from(".,"),
    group=st.sampled_from(["", "'", " ", "\u00a0", "mark"]),
    negative=st.sampled_from(["-{}", "{}-", "({})", "\u2212{}"]),
    day=st.sampled_from([("iso", "%Y-%m-%d"), ("dmy", "%d.%m.%Y"), ("dmy", "%d/%m/%Y"), ("mdy", "%m/%d/%Y")]),
    words=st.sampled_from([("true", "false"), ("YES", "no"), ("1", "0")]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
    said=st.booleans(),
)
def test_a_table_written_in_any_way_is_read_back(
    table, delimiter, quoting, end, last, point, group, negative, day, words, encoding, said
):
    group = ("," if point == "." else ".") if group == "mark" else group
    order, pattern = day
    shown = [
        [
            text,
            "" if amount is None else grouped(amount, point, group, negative),
            "" if on is None else on.strftime(pattern).zfill(10),
            "" if at is None else at.strftime(f"{pattern} %H:%M:%S.%f"),
            "" if pax is None else str(pax),
            "" if paid is None else words[not paid],
        ]
        for text, amount, on, at, pax, paid in table
    ]
    if not said:  # values that decide
        table = [*table, ("end", Decimal("1234567.25"), date(2026, 11, 25), datetime(2026, 11, 25), 1, True)]
        clock = table[-1][3].strftime(f"{pattern} %H:%M")
        shown.append(
            [
                "end",
                grouped(Decimal("1234567.25"), point, group, negative),
                table[-1][2].strftime(pattern),
                clock,
                "1",
                words[0],
            ]
        )
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=delimiter, quoting=quoting, lineterminator=end)
    writer.writerows([[column.name for column in WANTED], *shown])
    form = Format(decimal=point, dates=order) if said else Format()

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.csv"
        path.write_bytes((out.getvalue() + last).encode(encoding))
        ledger = read_csv([path], WANTED, form)
    found = [
        tuple(row[name] for name in ("id", "gross", "day", "start.wall", "pax", "paid"))
        for row in ledger.rows.to_pylist()
    ]

    kept = [row for row in table if row[0].strip() or row[1:] != (None,) * 5]
    assert found == [(row[0].strip() or None, *row[1:]) for row in kept]
    places = [ledger.place(row) for row in range(len(found))]
    assert places == [f"ledger.csv, line {line}" for line in lines(table, shown, kept)]


def lines(table, shown, kept):
    """Where each row begins that is kept."""
    line, begins = 2, []
    for row, cells in zip(table, shown, strict=True):
        if any(row is each for each in kept):
            begins.append(line)
        line += 1 + cells[0].count("\n")
    return begins
