"""Tables that are read together: a writer that was replaced, at whatever moment, takes nothing back."""

import datetime as dt
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

from octo_sync.destinations.delta.tables import translated
from octo_sync.destinations.delta.together import Together, published
from octo_sync.errors import WarehouseError, WriterFenced

AT = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC)
NEWER, OLDER = 2, 1


def write(into, value, number=0):
    """Two tables that have the same value."""
    tables = {name: pa.table({"n": [value]}).to_reader for name in ("core/a", "core/b")}
    with translated("lake"):
        into.write(tables, AT + dt.timedelta(seconds=number), marks=dict.fromkeys(tables, value))


def seen(root):
    """What readers see of each table."""
    state = deltalake.DeltaTable(f"{root}/octo_sync_published").to_pyarrow_table().to_pylist()
    return {
        row["table_name"]: deltalake.DeltaTable(f"{root}/{row['table_name']}", version=row["version"])
        .to_pyarrow_table()["n"]
        .to_pylist()
        for row in state
    }


@pytest.fixture
def root(tmp_path):
    made = str(tmp_path / "lake")
    write(published(made, OLDER), 1)
    return made


def test_a_writer_that_was_replaced_before_it_looked_is_told_who_took_over(root):
    write(published(root, NEWER), 2, 1)
    with pytest.raises(WriterFenced, match=r"token 2.*token 1"):
        published(root, OLDER)
    write(published(root, NEWER), 3, 2)
    assert seen(root) == {"core/a": [3], "core/b": [3]}


def test_a_writer_that_was_replaced_after_it_looked_writes_rows_that_never_count(root):
    late = published(root, OLDER)
    write(published(root, NEWER), 2, 1)
    with pytest.raises(WarehouseError, match="concurrent"):
        write(late, 9, 2)
    assert seen(root) == {"core/a": [2], "core/b": [2]}
    write(published(root, NEWER), 2, 3)
    assert seen(root) == {"core/a": [2], "core/b": [2]}
    with translated(root):
        published(root).vacuum()
    assert seen(root) == {"core/a": [2], "core/b": [2]}, "rows that count stay, also where newer ones do not"


def test_who_looked_when_nothing_was_there_does_not_overwrite_what_came_since(tmp_path):
    root = str(tmp_path / "lake")
    late = published(root, OLDER)
    write(published(root, NEWER), 2)
    with pytest.raises(WarehouseError, match="cannot be written"):
        write(late, 9, 1)
    assert seen(root) == {"core/a": [2], "core/b": [2]}


def test_a_version_that_an_older_writer_wrote_in_between_is_not_taken_for_ones_own(root, monkeypatch):
    """It goes on at the moment at which the newer one has written a table, and not yet the table of versions."""
    real, late = deltalake.write_deltalake, Together(root, "octo_sync_published", fence=OLDER)

    def then_the_other(where, *arguments, **named):
        real(where, *arguments, **named)
        if isinstance(where, deltalake.DeltaTable) and Path(where.table_uri).name == "b":
            monkeypatch.undo()
            tables = {"core/b": pa.table({"n": [9]}).to_reader}
            with translated(root), pytest.raises(RuntimeError):
                late.write(tables | {"core/a": stops}, AT, marks={})

    def stops():
        raise RuntimeError

    monkeypatch.setattr(deltalake, "write_deltalake", then_the_other)
    write(published(root, NEWER), 2, 1)
    assert deltalake.DeltaTable(f"{root}/core/b").to_pyarrow_table()["n"].to_pylist() == [9]
    assert seen(root) == {"core/a": [2], "core/b": [2]}


def test_equal_rows_are_not_written_again_and_keep_their_count(root):
    write(published(root, NEWER), 1, 1)
    state = deltalake.DeltaTable(f"{root}/octo_sync_published").to_pyarrow_table().to_pylist()
    assert [(row["table_name"], row["version"], row["rows"]) for row in state] == [("core/a", 0, 1), ("core/b", 0, 1)]


def test_of_a_table_that_is_published_no_more_no_row_is_left(root):
    left = {name: pa.table({"n": [2]}).to_reader for name in ("core/a",)}
    with translated(root):
        published(root, NEWER).write(left, AT + dt.timedelta(seconds=1), marks={"core/a": 2})
    assert seen(root) == {"core/a": [2]}
    assert deltalake.DeltaTable(f"{root}/core/b").to_pyarrow_table().num_rows == 0
    assert list(Path(root, "core", "b").glob("*.parquet")) == []
