"""`octo-sync export --format delta`: any reader can read the tables, and those of one export belong together."""

import datetime as dt

import deltalake
import pyarrow as pa
import pytest

import octo_sync
from octo_sync.destinations.delta import together
from octo_sync.flows.export import files
from octo_sync.flows.export.files import ExportError

AT = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC)


def _read(where, version=None):
    return deltalake.DeltaTable(str(where), version=version).to_pyarrow_table()


def _told(rows):
    """A wall clock is a text in Delta."""
    return [tuple(v.isoformat() if isinstance(v, dt.datetime) and v.tzinfo is None else v for v in row) for row in rows]


@pytest.mark.deep(8)
def test_marts_are_delta_tables_that_every_reader_can_read_with_all_their_rows(looked, tmp_path):
    looked.ok("export", "marts", "--format", "delta", "--to", tmp_path / "lake")
    state = {row["table_name"]: row for row in _read(tmp_path / "lake/octo_sync_export").to_pylist()}
    with octo_sync.open(looked.directory / "octo.read.duckdb") as copy:
        marts = {table.name for table in copy.tables() if table.schema == "marts"}
        assert {name.removeprefix("marts.") for name in state} == marts
        assert {"marts.coverage", "marts.closed_periods"} <= state.keys(), "ops has tables of these names, too"
        for name in state:
            protocol = deltalake.DeltaTable(str(tmp_path / "lake" / name)).protocol()
            assert (protocol.min_reader_version, protocol.reader_features) == (1, None), name
            found = _read(tmp_path / "lake" / name, state[name]["version"])
            wanted = copy.table(name)
            assert found.num_rows == state[name]["rows"]
            assert found.column_names == list(wanted.fetch(0).columns)
            rows = sorted(_told(wanted.rows()), key=repr)
            assert sorted((tuple(row.values()) for row in found.to_pylist()), key=repr) == rows, name
        assert any("T" in str(row["local_start_at"]) for row in _read(tmp_path / "lake/fct_bookings").to_pylist())


def _table(**columns):
    """What is exported: rows that are read when it is their turn."""
    return pa.table(columns).to_reader


def test_an_export_that_breaks_changes_nothing_of_the_state_that_belongs_together(tmp_path):
    root = str(tmp_path / "lake")
    files.export_delta({"a": _table(n=[1]), "b": _table(n=[1])}, root, AT)

    def broken():
        raise ExportError("the copy broke")

    with pytest.raises(ExportError, match="the copy broke"):
        files.export_delta({"a": _table(n=[2, 3]), "b": broken}, root, AT)
    state = {row["table_name"]: row["version"] for row in _read(f"{root}/octo_sync_export").to_pylist()}
    assert [_read(f"{root}/{name}", state[name])["n"].to_pylist() for name in "ab"] == [[1], [1]]
    written = files.export_delta({"a": _table(n=[4]), "b": _table(n=pa.array([], pa.int64()))}, root, AT)
    assert [one.rows for one in written] == [1, 0]
    state = _read(f"{root}/octo_sync_export").to_pylist()
    assert [(row["table_name"], row["version"], row["rows"]) for row in state] == [("a", 2, 1), ("b", 1, 0)]
    assert {row["exported_at_utc"] for row in state} == {AT}


def test_a_column_that_is_new_or_of_another_type_is_exported(tmp_path):
    root = str(tmp_path / "lake")
    files.export_delta({"a": _table(n=[1])}, root, AT)
    files.export_delta({"a": _table(n=["x"], m=[2.5])}, root, AT)
    assert _read(f"{root}/a").to_pylist() == [{"n": "x", "m": 2.5}]


def test_files_of_former_versions_go_when_no_reader_is_at_them_any_more(tmp_path, monkeypatch):
    root = tmp_path / "lake"
    for n in (1, 2):
        files.export_delta({"a": _table(n=[n])}, str(root), AT)
    assert len(list(root.glob("a/*.parquet"))) == 2
    monkeypatch.setattr(together, "KEPT_HOURS", 0)
    files.export_delta({"a": _table(n=[3])}, str(root), AT + dt.timedelta(days=1))
    assert len(list(root.glob("a/*.parquet"))) == 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("marts.dim_product", "--format", "delta", "--to", ""), "Where to?"),
        (("dbt", "--format", "delta", "--to", "lake"), "dbt is no table"),
        (("dim_product", "--format", "delta", "--to", "nowhere://bucket/x"), "cannot be written as Delta tables"),
        (("dim_product", "--format", "delta", "--to", "/dev/null/x"), "cannot be written as Delta tables"),
    ],
)
def test_what_cannot_be_written_is_a_sentence(looked, arguments, sentence):
    ended = looked("export", *arguments)
    assert ended.returncode != 0
    assert sentence in ended.stderr
    assert "Traceback" not in ended.stderr
