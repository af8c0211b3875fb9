"""The Python API: a published copy in a notebook."""

import shutil
import subprocess
import sys
import threading
from datetime import UTC
from decimal import Decimal

import pytest

import octo_sync


@pytest.fixture
def copy(looked):
    with octo_sync.open(looked.directory / "octo.read.duckdb") as opened:
        yield opened


def test_a_table_is_a_data_frame_an_arrow_table_and_rows(copy):
    frame, table, rows = (getattr(copy.table("fct_bookings"), form)() for form in ("df", "arrow", "rows"))

    assert len(frame) == table.num_rows == len(rows) > 0
    assert list(frame.columns) == table.column_names
    assert copy.table("core.bookings").df().shape == copy.table("bookings").df().shape


def test_sql_takes_parameters_by_number_and_by_name(copy):
    assert copy.sql("select $1 + 1", [41]).rows() == [(42,)]
    assert copy.sql("select $n || '!'", {"n": "x'y"}).rows() == [("x'y!",)]
    assert copy.sql("select $n::int as n", {"n": 1}).df()["n"].tolist() == [1]
    assert copy.sql("select $1::int as n", [1]).arrow().to_pylist() == [{"n": 1}]


def test_amounts_are_exact_and_instants_are_in_utc(copy):
    amount, at = copy.sql("select retail_amount, utc_created_at from bookings where retail_amount > 0 limit 1").rows()[
        0
    ]

    assert isinstance(amount, Decimal)
    assert at.utcoffset() == at.astimezone(UTC).utcoffset()


def test_every_table_says_what_it_and_its_columns_mean(copy):
    tables = {t.full_name: t for t in copy.tables()}

    assert tables["core.bookings"].kind == "table"
    assert tables["marts.fct_bookings"].kind in {"table", "view"}
    for table in tables.values():
        assert table.description, table.full_name
    assert all(column.description for column in tables["core.bookings"].columns)
    assert not {"core.booking_contacts", "raw.records"} & set(tables), "no person's data is in the copy"


@pytest.mark.parametrize(
    "query", ["select nope", "delete from bookings", "select 1; select 2", "from read_csv('/etc/passwd')"]
)
@pytest.mark.parametrize("form", ["rows", "df", "arrow"])
def test_what_is_wrong_or_more_than_reading_is_refused_by_every_road(copy, query, form):
    with pytest.raises(octo_sync.QueryError):
        getattr(copy.sql(query), form)()


def test_a_table_that_is_none_and_a_file_that_is_none_are_said(copy, tmp_path):
    with pytest.raises(octo_sync.QueryError, match="no table"):
        copy.table("bookings; drop table x")
    with pytest.raises(octo_sync.WarehouseError, match="does not exist"):
        octo_sync.open(tmp_path / "none.duckdb")
    (tmp_path / "text.duckdb").write_text("this is no database, only some text that is long enough to be looked at")
    with pytest.raises(octo_sync.WarehouseError):
        octo_sync.open(tmp_path / "text.duckdb")


def test_a_closed_copy_says_so(copy):
    copy.close()
    copy.close()

    with pytest.raises(octo_sync.WarehouseError, match="closed"):
        copy.sql("select 1").rows()


def test_a_reader_keeps_its_copy_while_a_new_one_is_swapped_in(copy, tmp_path):
    path = tmp_path / "moved.duckdb"
    shutil.copy(copy.path, path)
    with octo_sync.open(path) as opened:
        before = opened.sql("select count(*) from bookings").rows()
        fresh = tmp_path / "fresh.duckdb"
        shutil.copy(copy.path, fresh)
        fresh.replace(path)

        assert opened.sql("select count(*) from bookings").rows() == before


def test_threads_take_turns(copy):
    results = []

    def ask(number):
        results.append((number, copy.sql("select $1 from range(1000)", [number]).rows()[-1][0]))

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(results) == [(n, n) for n in range(8)]


def test_the_names_are_there_and_no_others():
    assert set(octo_sync.__all__) <= set(dir(octo_sync))
    with pytest.raises(AttributeError):
        _ = octo_sync.nope


def test_a_type_checker_knows_what_open_gives(tmp_path):
    (tmp_path / "notebook.py").write_text(
        "import octo_sync\n\nwith octo_sync.open('x') as copy:\n"
        "    reveal_type(copy)\n    reveal_type(copy.sql('select 1').rows())\n"
    )

    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--no-incremental", "notebook.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    if "No module named mypy" in done.stderr:
        pytest.skip("mypy is not installed")
    assert 'Revealed type is "octo_sync.api.Copy"' in done.stdout
    assert 'Revealed type is "list[tuple[Any, ...]]"' in done.stdout.replace("builtins.", "").replace("typing.", "")
