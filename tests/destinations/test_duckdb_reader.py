"""A reader of the published file in a process that does more than read: what ends a query, and whose query it ends."""

import contextlib
import threading
import time

import duckdb
import pytest

from octo_sync.destinations.duckdb.reader import DuckDBReader
from octo_sync.errors import WarehouseError

FOR_A_SECOND = "select sum(range) from range(300000000)"
FOR_EVER = "select sum(range) from range(100000000000)"


@pytest.fixture
def reader(tmp_path):
    """A reader of a file in which nothing is."""
    path = tmp_path / "octo.read.duckdb"
    with duckdb.connect(path) as copy:
        for schema in ("marts", "core", "ops"):
            copy.execute(f"create schema {schema}")
    opened = DuckDBReader(path)
    yield opened
    opened.close()


@pytest.mark.parametrize("ask", [DuckDBReader.query, lambda *asked: DuckDBReader.batches(*asked).read_all()])
def test_a_query_that_something_else_interrupts_is_a_sentence_in_a_thread(reader, ask):
    """Only Ctrl+C is one, and it comes to the main thread; a server's thread must go on."""
    raised, connections = [], [reader._db, *reader._spare]

    def asking():
        try:
            ask(reader, FOR_EVER)
        except BaseException as error:  # noqa: BLE001 - which it is, is the question
            raised.append(error)

    thread = threading.Thread(target=asking)
    thread.start()
    until = time.monotonic() + 20
    while thread.is_alive() and time.monotonic() < until:
        for each in connections:
            each.interrupt()
        thread.join(0.05)
    assert [(type(error), str(error)) for error in raised] == [
        (WarehouseError, "The query was interrupted before its end; ask again.")
    ]
    assert reader.query("select 7").rows == [(7,)]


def test_a_time_limit_that_strikes_late_does_not_end_the_next_query(reader):
    before = threading.active_count()
    assert reader.query("select 7", timeout=60).rows == [(7,)]
    assert threading.active_count() == before, "nobody is left who could strike"
    for _ in range(20):  # some of these strikes come as the query ends
        with contextlib.suppress(WarehouseError):
            reader.query("select 7", timeout=0.0001)

    assert reader.query(FOR_A_SECOND).rows
