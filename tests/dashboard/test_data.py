"""Every table of the copy can be had as a file, and the answer to every query."""

import asyncio
import csv
import gc
import io
import json
import shutil
import threading
from urllib.parse import quote

import duckdb
import pytest
from pyarrow import parquet
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from tests.dashboard.conftest import READ

from octo_sync.dashboard import downloads as data
from octo_sync.destinations.duckdb.reader import DuckDBReader


def _tables(folder):
    with duckdb.connect(folder / READ, read_only=True) as copy:
        found = copy.execute(
            "select schema_name || '.' || name from (select schema_name, table_name as name from duckdb_tables() "
            "union all select schema_name, view_name from duckdb_views() where not internal) "
            "where schema_name in ('marts', 'core', 'ops')"
        ).fetchall()
    return sorted(name for (name,) in found)


def _count(folder, table):
    with duckdb.connect(folder / READ, read_only=True) as copy:
        return copy.execute(f"select count(*) from {table}").fetchone()[0]


@pytest.mark.deep(4)
async def test_every_table_is_a_file_with_all_its_rows(shown, published):
    dashboard = shown()
    tables = _tables(published)
    assert {"marts.fct_bookings", "core.bookings", "ops.coverage"} <= set(tables)
    for table in tables:
        answer = await dashboard.get(f"/data/{table}.csv")
        assert answer.status_code == 200, table
        found = list(csv.reader(io.StringIO(answer.text, newline="")))
        assert len(found) == _count(published, table) + 1, table


@pytest.mark.deep(1, everyday=["ops.quarantine"])
@pytest.mark.parametrize("table", ["marts.fct_bookings", "core.suppliers", "ops.quarantine"])
async def test_a_table_is_a_file_in_every_format(shown, published, table):
    rows, dashboard = _count(published, table), shown()
    answers = {form: await dashboard.get(f"/data/{table}.{form}") for form in data.FORMATS}

    assert {form: a.headers["content-type"] for form, a in answers.items()} == data.FORMATS
    assert len(list(csv.reader(io.StringIO(answers["csv"].text, newline="")))) == rows + 1
    assert len(json.loads(answers["json"].text)) == rows
    assert len(answers["jsonl"].text.splitlines()) == rows
    assert parquet.read_table(io.BytesIO(answers["parquet"].content)).num_rows == rows


async def test_a_table_needs_no_schema_and_marts_come_first(shown, published):
    answer = await shown().get("/data/coverage.csv")

    assert answer.headers["content-disposition"] == 'attachment; filename="coverage.csv"'
    assert answer.headers["cache-control"] == "no-store"
    assert answer.text.splitlines()[0].startswith("connection_id,resource,product_id,travel_month,verified_at_utc")
    assert answer.text.count("\n") == _count(published, "marts.coverage") + 1


@pytest.mark.parametrize(
    ("file", "sentence"),
    [
        ("fct_booking.csv", "did you mean fct_bookings?"),
        ("core.bookingz.json", "did you mean core.bookings?"),
        ("nothing_like_it_at_all.csv", "the SQL page lists what there is."),
        ("private.booking_contacts.csv", "The copy has no table 'private.booking_contacts'"),
        ("fct_bookings.xlsx", "ask for TABLE.csv, TABLE.json"),
        ("fct_bookings", "ask for TABLE.csv, TABLE.json"),
        ('x";drop table core.bookings;--.csv', "The copy has no table"),
    ],
)
async def test_what_is_not_there_is_told_with_what_is_meant(shown, file, sentence):
    answer = await shown().get(f"/data/{quote(file)}")

    assert answer.status_code == 404
    assert sentence in answer.text


async def test_a_text_that_a_spreadsheet_would_run_is_made_harmless(shown, published, tmp_path):
    folder = tmp_path / "formulas"
    shutil.copytree(published, folder)
    with duckdb.connect(folder / READ) as copy:
        copy.execute("update core.products set title = '=HYPERLINK(\"http://evil.example\")'")

    rows = list(csv.DictReader(io.StringIO((await shown(folder).get("/data/core.products.csv")).text, newline="")))

    assert {row["title"] for row in rows} == {'\'=HYPERLINK("http://evil.example")'}


async def test_a_query_is_a_file_of_all_its_rows_with_its_parameters(shown):
    dashboard = shown()
    text = quote("-- parameter: n: integer: 3: How many.\nselect range as n from range($n)")

    assert (await dashboard.get(f"/data/sql.csv?q={text}")).text == "n\r\n0\r\n1\r\n2\r\n"
    assert (await dashboard.get(f"/data/sql.json?q={text}&p.n=1")).json() == [{"n": 0}]
    many = await dashboard.get("/data/sql.csv?q=" + quote("select range from range(25000)"))
    assert many.text.count("\n") == 25_001
    asked = await dashboard.get("/data/sql.csv?ask=revenue")
    assert asked.headers["content-disposition"] == 'attachment; filename="revenue.csv"'


@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("zürich_☂", "filename*=UTF-8''z%C3%BCrich_%E2%98%82.csv"),
        ('a"b', "filename*=UTF-8''a%22b.csv"),
        ("two words", "filename*=UTF-8''two%20words.csv"),
    ],
)
async def test_a_question_of_any_name_is_a_file(shown, published, tmp_path, name, header):
    shutil.copytree(published, tmp_path / "own")
    questions = tmp_path / "own/warehouse/questions"
    questions.mkdir(parents=True, exist_ok=True)
    (questions / f"{name}.sql").write_text("-- question: How much?\nselect 7 as n")

    answer = await shown(tmp_path / "own").get(f"/data/sql.csv?ask={quote(name)}")

    assert (answer.status_code, answer.text) == (200, "n\r\n7\r\n")
    assert answer.headers["content-disposition"] == f"attachment; {header}"


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("select nothing from fct_bookings", "nothing"),
        ("delete from core.bookings", "DELETE is not a reading statement"),
        ("select * from read_csv('/etc/passwd')", "reach no file"),
        ("select 1; select 2", "Expected one statement"),
        ("-- parameter: n: integer: : How many.\nselect $n", "The query needs a value for n: How many."),
        ("select cast('x' as integer)", "Could not convert"),
        ("", "There is no query"),
    ],
)
async def test_a_wrong_query_is_refused_with_a_sentence(shown, query, sentence):
    answer = await shown().get(f"/data/sql.csv?q={quote(query)}")

    assert answer.status_code == 400
    assert sentence in answer.text


async def test_without_a_copy_there_is_nothing_to_download(shown, tmp_path):
    answer = await shown(tmp_path).get("/data/fct_bookings.csv")

    assert answer.status_code == 503
    assert "does not exist yet" in answer.text


async def test_no_other_site_can_make_a_browser_download(shown):
    answer = await shown().get("/data/fct_bookings.csv", **{"sec-fetch-site": "cross-site"})

    assert answer.status_code == 403


def _downloads(dashboard):
    return data.Downloads(dashboard.source)


def _wanted(query):
    return data._Wanted(query, (), "query", "csv")


def test_rows_are_sent_as_they_are_read(shown):
    made = _downloads(shown())._made(_wanted("select range from range(1000000)"))

    first = next(made)
    made.close()

    assert 5_000 <= first.count(b"\n") <= 20_000


def test_who_goes_away_in_the_middle_leaves_the_place_to_others(shown):
    downloads = _downloads(shown())
    begun = [downloads._made(_wanted("select range from range(1000000)")) for _ in range(data.AT_ONCE)]
    for each in begun:
        next(each)
    with pytest.raises(HTTPException, match="are being downloaded; try again"):
        next(downloads._made(_wanted("select 1")))

    begun[0].close()

    assert b"".join(downloads._made(_wanted("select 1 as n"))) == b"n\r\n1\r\n"
    for each in begun:
        each.close()


def test_a_download_takes_its_time_and_no_more(shown, monkeypatch):
    monkeypatch.setattr(data, "SECONDS", 0.2)
    made = _downloads(shown())._made(_wanted("select sum(range) from range(20000000000)"))

    with pytest.raises(data.OctoSyncError, match="stopped after"):
        list(made)


async def test_a_download_goes_on_when_another_copy_is_published(shown, published, tmp_path):
    folder = tmp_path / "swapped"
    shutil.copytree(published, folder)
    dashboard = shown(folder)
    made = _downloads(dashboard)._made(_wanted("select range from range(100000)"))
    begun = next(made)
    shutil.copy(published / READ, folder / "fresh")
    (folder / "fresh").replace(folder / READ)
    dashboard.source._looked = None
    assert (await dashboard.get("/data/coverage.csv")).status_code == 200

    assert (begun + b"".join(made)).count(b"\n") == 100_001


def test_a_file_that_breaks_off_has_no_end(shown, monkeypatch):
    """What is wrong after the first rows must not look like a whole file."""
    entered = threading.Event()

    def batches(self, sql, parameters=(), **more):
        entered.set()
        return _Broken()

    monkeypatch.setattr(DuckDBReader, "batches", batches)
    made = _downloads(shown())._made(_wanted("select 1"))
    next(made)

    with pytest.raises(data.OctoSyncError, match="broke off"):
        list(made)
    assert entered.is_set()


class _Endless:
    """Rows without an end: where it was closed, and a piece that takes its time when `slow` is set."""

    def __init__(self):
        import pyarrow as pa

        self._batch = pa.record_batch({"n": list(range(5))})
        self.schema = self._batch.schema
        self.begun, self.goes_on, self.closed = threading.Event(), threading.Event(), threading.Event()
        self.slow, self.closed_in = False, None

    def __iter__(self):
        while True:
            if self.slow:
                self.begun.set()
                self.goes_on.wait(20)
            yield self._batch

    def close(self):
        self.closed_in = threading.get_ident()
        self.closed.set()


@pytest.mark.deep(0.4, everyday=1)
@pytest.mark.parametrize("when", ["before the first piece", "between two pieces", "while a piece is made"])
async def test_who_goes_away_does_not_make_the_server_wait_for_the_end_of_the_reading(shown, monkeypatch, when):
    """On PostgreSQL it is a round trip, or the network's own time limit."""
    rows = _Endless()
    monkeypatch.setattr(DuckDBReader, "batches", lambda *_, **__: rows)
    downloads, sent = _downloads(shown()), []
    scope = {"type": "http", "method": "GET", "query_string": b"", "headers": []}
    answer = await downloads.answer(Request({**scope, "path_params": {"file": "coverage.csv"}}))

    async def send(message):
        sent.append(message)
        if when == "before the first piece" or (when == "between two pieces" and len(sent) == 4):
            raise OSError
        rows.slow = when == "while a piece is made"

    sending = asyncio.create_task(answer({**scope, "asgi": {"spec_version": "2.4"}}, None, send))
    if when == "while a piece is made":
        assert await asyncio.to_thread(rows.begun.wait, 20)
        sending.cancel()
        await asyncio.sleep(0.1)
        rows.goes_on.set()
    with pytest.raises((ClientDisconnect, asyncio.CancelledError)):
        await sending
    del answer, sending
    gc.collect()

    assert await asyncio.to_thread(rows.closed.wait, 20)
    assert rows.closed_in != threading.get_ident()
    for _ in range(data.AT_ONCE):
        assert await asyncio.to_thread(downloads._free.acquire, timeout=10), "its place is free for others"


class _Broken:
    """Rows that come to an early end."""

    def __init__(self):
        import pyarrow as pa

        self._batch = pa.record_batch({"n": list(range(5))})
        self.schema = self._batch.schema

    def __iter__(self):
        yield self._batch
        raise data.QueryError("It broke off.")

    def close(self):
        pass
