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


def test_a_program_that_has_read_ends_without_a_word(looked):
    program = f"import octo_sync; c = octo_sync.open({str(looked.directory / 'octo.read.duckdb')!r}); c.sql('select 1').rows()"

    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert (ended.stdout, ended.stderr) == ("", "")


def test_a_program_ends_though_a_result_was_left_unread_when_a_signal_came(looked):
    program = (
        "import os, signal, sys, octo_sync\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))\n"
        f"copy = octo_sync.open({str(looked.directory / 'octo.read.duckdb')!r})\n"
        "rest = copy.sql('select * from range(1000000)').batches(1000)\n"
        "rest.read_next_batch()\n"
        "os.kill(os.getpid(), signal.SIGTERM)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, check=False, timeout=30).returncode == 7


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


def test_a_data_frame_has_types_to_work_with(copy):
    query = (
        "select * from (values (1::bigint, true, timestamptz '2026-01-02 03:04:05.5Z', date '2026-01-02', "
        "12.50::decimal(18,4), 'x'), (null, null, null, null, null, null)) "
        "t(number, yes, moment, day, amount, text)"
    )
    frame, exact = copy.sql(query).df(), copy.sql(query).df(exact=True)

    assert {name: str(kind) for name, kind in frame.dtypes.items() if name != "text"} == {
        "number": "Int64",
        "yes": "boolean",
        "moment": "datetime64[us, UTC]",
        "day": "datetime64[ms]",
        "amount": "float64",
    }
    assert frame["number"].isna().tolist() == [False, True]
    assert frame["moment"][0].isoformat() == "2026-01-02T03:04:05.500000+00:00"
    assert frame["amount"].sum() == 12.5
    assert exact["amount"].sum() == Decimal("12.5000")
    assert copy.sql("select sum(range) as total from range(4)").df()["total"].tolist() == [6]


def test_big_answers_come_in_batches_while_other_queries_run(copy):
    reader = copy.sql("select range as n from range(1000000)").batches(100_000)
    total = 0
    for batch in reader:
        assert batch.num_rows <= 100_000
        total += batch.num_rows
        assert copy.sql("select 1").rows() == [(1,)]

    assert total == 1_000_000


def test_a_stream_gives_its_connection_back_however_it_ends(copy):
    endless = copy.sql("from range(100000000)")
    for _ in range(10):
        assert copy.sql("select 1 as a").batches().read_all().num_rows == 1
        with pytest.raises(octo_sync.QueryError):
            copy.sql("select nope").batches()
        with pytest.raises(octo_sync.QueryError, match="late"):
            copy.sql("select if(range = 900000, error('late'), 1) from range(1000000)").arrow()
        unread = endless.batches()
        unread.read_next_batch()
        del unread
    held = [endless.batches() for _ in range(4)]
    with pytest.raises(octo_sync.QueryError, match="streamed"):
        endless.batches()
    assert all(each.read_next_batch().num_rows for each in held)


def test_a_stream_that_takes_too_long_is_stopped(copy):
    with pytest.raises(octo_sync.WarehouseError, match=r"stopped after 0\.3 s"):
        for _ in copy.sql("from range(100000000000)", timeout=0.3).batches():
            pass
    with pytest.raises(octo_sync.WarehouseError, match=r"stopped after 0\.3 s"):
        copy.sql("select count(*) from range(1000000000) a, range(1000) b", timeout=0.3).arrow()


def test_a_whole_number_that_is_too_wide_is_said(copy):
    with pytest.raises(octo_sync.QueryError, match="64 bits"):
        copy.sql("select 170141183460469231731687303715884105727::hugeint as n").arrow()


def test_an_address_is_refused_without_showing_its_password(tmp_path):
    with pytest.raises(octo_sync.OctoSyncError) as refused:
        octo_sync.open("nosuch://user:hush-hush@host/db")

    assert "hush" not in str(refused.value)


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


def test_a_reader_keeps_its_copy_while_a_new_one_is_swapped_in(copy, looked, tmp_path):
    path = tmp_path / "moved.duckdb"
    shutil.copy(looked.directory / copy.name, path)
    with octo_sync.open(path) as opened:
        before = opened.sql("select count(*) from bookings").rows()
        fresh = tmp_path / "fresh.duckdb"
        shutil.copy(looked.directory / copy.name, fresh)
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


@pytest.mark.deep(9)
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
    assert 'Revealed type is "octo_sync.app.reading.Copy"' in done.stdout
    assert 'Revealed type is "list[tuple[Any, ...]]"' in done.stdout.replace("builtins.", "").replace("typing.", "")


def test_what_is_no_copy_is_refused_with_what_to_open_instead(looked, tmp_path):
    whole = (looked.directory / "octo.read.duckdb").read_bytes()
    (tmp_path / "cut.duckdb").write_bytes(whole[:50_000])
    (tmp_path / "text.duckdb").write_text("hello, I am no database at all")
    (tmp_path / "none.duckdb").touch()
    (tmp_path / "empty").mkdir()
    for where, said in (
        (looked.directory, r"is a folder; open .*octo\.read\.duckdb\.$"),
        (tmp_path / "empty", r"empty is a folder; open the read copy, octo\.read\.duckdb in a project's folder\.$"),
        (looked.directory / "pipelines/shop.toml", r"shop\.toml is a pipeline file; open the read copy"),
        (looked.directory / "octo.journal.sqlite", "is no DuckDB file; open the read copy"),
        (tmp_path / "text.duckdb", "is no DuckDB file; open the read copy"),
        (tmp_path / "none.duckdb", "is no DuckDB file; open the read copy"),
        (tmp_path / "cut.duckdb", "is damaged or cut off .*; octo-sync publish makes it anew"),
        (looked.directory / "octo.private.duckdb", "Nothing is published in .*; open the read copy"),
        (tmp_path / "away.duckdb", "does not exist yet; run `octo-sync sync`"),
        ("mysql://somebody:secret@db/x", "no postgresql:// one"),
    ):
        with pytest.raises(octo_sync.WarehouseError, match=said) as refused:
            octo_sync.open(where)
        assert "\n" not in str(refused.value)
        assert "secret" not in str(refused.value)


def test_sizes_that_make_no_sense_are_refused(copy):
    with pytest.raises(ValueError, match="1 or more"):
        copy.sql("select 1").batches(0)
    with pytest.raises(ValueError, match="0 or more"):
        copy.sql("select 1").fetch(-1)
