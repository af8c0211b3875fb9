"""A query's rows at any database: read only, in pieces, and never a word about the password."""
# ruff: noqa: DTZ001 - clocks as they are written have no zone

import builtins
import sqlite3
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import psycopg
import pytest

from octo_sync.errors import ConfigError, LedgerError
from octo_sync.reconciliation.ledgers import Format, Wanted, read_sql

ID, GROSS, START, DAY = (
    Wanted("id", "text"),
    Wanted("gross", "amount"),
    Wanted("start", "instant"),
    Wanted("day", "date"),
)


@pytest.fixture
def sqlite(tmp_path):
    """The address of a database, with the statements run."""

    def make(*statements):
        with sqlite3.connect(tmp_path / "ledger.db") as database:
            for statement in statements:
                database.execute(statement)
        database.close()
        return f"sqlite:///{tmp_path}/ledger.db"

    return make


def read(dsn, query, *wanted, parameters=None, **form):
    return read_sql(dsn, query, parameters or {}, wanted or [ID], Format(**form), directory=Path())


def refused(*asked, **more):
    with pytest.raises(LedgerError) as caught:
        read(*asked, **more)
    return str(caught.value)


# ── SQLite ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_column_that_is_all_null_is_read_as_such(sqlite):
    ledger = read(sqlite("create table b (id, gross)", "insert into b values (7, null)"), "select * from b", ID, GROSS)

    assert ledger.rows.to_pydict() == {"id": ["7"], "gross": [None]}


def test_values_of_any_type_in_one_column_are_read(sqlite, tmp_path):
    dsn = sqlite(
        "create table bookings (Id, gross, start, day)",
        "insert into bookings values ('007', 12.1, '2026-11-05T14:30:00Z', '2026-11-05'), "
        "(4711, 12, '2026-11-06 10:00', null), (8.0, '1.234,50', '2026-11-07', '2026-11-07'), "
        "(9007199254740993, null, null, null)",
    )

    ledger = read(dsn, "select * from bookings", ID, GROSS, START, DAY, time_zone="Europe/Berlin")

    assert ledger.rows.to_pydict() == {
        "id": ["007", "4711", "8", "9007199254740993"],
        "gross": [Decimal("12.1"), Decimal(12), Decimal("1234.5"), None],
        "start": [
            datetime(2026, 11, 5, 14, 30, tzinfo=UTC),
            datetime(2026, 11, 6, 9, tzinfo=UTC),
            datetime(2026, 11, 6, 23, tzinfo=UTC),
            None,
        ],
        "start.wall": [datetime(2026, 11, 5, 14, 30), datetime(2026, 11, 6, 10), datetime(2026, 11, 7), None],
        "day": [date(2026, 11, 5), None, date(2026, 11, 7), None],
    }
    assert (ledger.origin, ledger.as_of) == (f"select at sqlite:///{tmp_path}/ledger.db", None)
    assert ledger.place(2) == "row 3 of the select"


def test_parameters_are_bound_and_clocks_in_the_query_are_none(sqlite):
    dsn = sqlite(
        "create table t (id, day)", "insert into t values (1, '2026-11-04'), (2, '2026-11-05'), (3, '2026-11-06')"
    )
    query = "select id, '10:00' as clock from t where day between :from and :to"

    found = read(dsn, query, parameters={"from": "2026-11-05", "to": "2026-11-05", "more": 1})

    assert found.rows.column("id").to_pylist() == ["2"]
    assert "A value is required for bind parameter" in refused(dsn, query, parameters={"from": "x"})


def test_many_rows_come_in_pieces_and_a_wrong_one_is_named(sqlite, monkeypatch):
    monkeypatch.setattr("octo_sync.reconciliation.ledgers.databases.ROWS", 7)
    dsn = sqlite("create table t (id, gross)")
    with sqlite3.connect(dsn.removeprefix("sqlite:///")) as database:
        database.executemany("insert into t values (?, ?)", [(n, n if n != 42 else "EUR 5") for n in range(100)])
    database.close()

    assert read(dsn, "select * from t order by id").rows.column("id").to_pylist() == [str(n) for n in range(100)]
    assert 'row 43 of the select, column "gross": "xxx 5" is more than an amount' in refused(
        dsn, "select * from t order by id", ID, GROSS
    )


@pytest.mark.parametrize("statement", ["delete from t", "insert into t values (2) returning id", "create table u (id)"])
def test_nothing_is_written(sqlite, statement):
    dsn = sqlite("create table t (id)", "insert into t values (1)")

    assert "readonly" in refused(dsn, statement)
    assert read(dsn, "select id from t").rows.num_rows == 1


def test_what_cannot_be_read_is_refused_in_a_sentence(sqlite, tmp_path):
    dsn = sqlite("create table t (id)", "insert into t values (x'00')")

    assert "no such column: gros" in refused(dsn, "select gros from t")
    assert 'there is no column "gross". The columns there are "id"' in refused(dsn, "select id from t", GROSS)
    assert 'column "id" is there 2 times' in refused(dsn, "select id, id from t")
    assert 'row 1 of the select, column "id": the value is of type binary' in refused(dsn, "select id from t")
    assert "what a SELECT finds" in refused(dsn, "savepoint here")
    assert "unable to open database file" in refused(f"sqlite:///{tmp_path}/gone.db", "select 1")
    assert not (tmp_path / "gone.db").exists()
    assert "write it as postgresql://user@host/database" in refused("ledger.db", "select 1")
    assert read(dsn, "select id from t where 1 = 0").rows.num_rows == 0


@pytest.mark.parametrize(("dsn", "what"), [("nosuch://h/db", "nosuch"), ("mysql://u:secret@h/db", "mysql")])
def test_a_database_without_a_driver_is_a_sentence(dsn, what):
    with pytest.raises(ConfigError, match=f"No driver for {what} is installed") as caught:
        read(dsn, "select 1")
    assert "secret" not in str(caught.value)


def test_without_psycopg_the_sentence_says_what_to_install(monkeypatch):
    real = builtins.__import__

    def without(name, *rest):
        if name == "psycopg":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(
        ConfigError, match=r"No driver for postgresql is installed: pip install '\.\[postgres\]' in the checkout"
    ):
        read("postgresql://u@h/db", "select 1")


# ── PostgreSQL ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def postgres(postgres_database):
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute(f"alter database {connection.info.dbname} set timezone = 'Asia/Tokyo'")
        connection.execute("create sequence numbers")
        connection.execute(
            "create table bookings (id uuid, no text, gross numeric(12, 2), start timestamptz, plain timestamp, day date, "
            "paid boolean, pax int, note jsonb)"
        )
        connection.execute(
            "insert into bookings values ('00000000-0000-0000-0000-000000000007', '007', 12.10, '2026-11-05 14:30+02', "
            "'2026-11-05 14:30', '2026-11-05', true, 2, '{}'), (null, 'x', null, null, null, '2026-11-09', null, null, null)"
        )
    return postgres_database


def test_postgres_values_keep_their_types(postgres):
    wanted = [
        ID, Wanted("no", "text"), GROSS, START, Wanted("plain", "instant"), DAY, Wanted("paid", "flag"), Wanted("pax", "whole")
    ]  # fmt: skip
    ledger = read(
        postgres,
        "select * from bookings where day between :from and :to and no::text <> 'a:b'",
        *wanted,
        parameters={"from": date(2026, 11, 5), "to": date(2026, 11, 8)},
        time_zone="Europe/Berlin",
    )

    assert ledger.rows.to_pylist() == [
        {
            "id": "00000000-0000-0000-0000-000000000007",
            "no": "007",
            "gross": Decimal("12.1"),
            "start": datetime(2026, 11, 5, 12, 30, tzinfo=UTC),
            "start.wall": datetime(2026, 11, 5, 12, 30),
            "plain": datetime(2026, 11, 5, 13, 30, tzinfo=UTC),
            "plain.wall": datetime(2026, 11, 5, 14, 30),
            "day": date(2026, 11, 5),
            "paid": True,
            "pax": 2,
        }
    ]
    shown = read(postgres, "select start::text as id from bookings where no = '007'").rows.column("id").to_pylist()
    assert shown == ["2026-11-05 12:30:00+00"], "clocks that the query writes are UTC, whatever the server's zone"
    server = postgres.split("@")[1]
    assert ledger.origin == f"select at postgresql://{server}"


@pytest.mark.parametrize(
    "statement",
    [
        "delete from bookings",
        "with gone as (delete from bookings returning *) select * from gone",
        "select nextval('numbers') as id",
        "select 1 as id; delete from bookings",
        "select 1 as id; commit; delete from bookings",
        "select set_config('default_transaction_read_only', 'off', false) as id; commit; delete from bookings",
    ],
)
def test_postgres_writes_nothing_whatever_the_query_says(postgres, statement):
    assert refused(postgres, statement).startswith("select at postgresql://")
    with psycopg.connect(postgres) as connection:
        assert connection.execute("select count(*) from bookings").fetchone() == (2,)
        assert connection.execute("select is_called from numbers").fetchone() == (False,)


def test_postgres_refusals_are_sentences(postgres):
    assert 'column "gros" does not exist' in refused(postgres, "select gros from bookings")
    assert "of type binary, which is no text" in refused(postgres, "select note as id from bookings")
    assert '"nan" is no amount' in refused(postgres, "select 'NaN'::numeric as gross", GROSS)
    assert '"0.123456789" has more than 8 decimals' in refused(postgres, "select 0.123456789 as gross", GROSS)
    assert "row 1 of the select" in refused(postgres, "select 1e40::numeric as gross", GROSS)
    assert "select at postgresql://" in refused(postgres, "select 'infinity'::date as day", DAY)


def test_rows_come_in_pieces_and_not_all_at_once(postgres, monkeypatch):
    monkeypatch.setattr("octo_sync.reconciliation.ledgers.databases.ROWS", 100)
    fetched = []
    real = psycopg.ServerCursor.fetchmany

    def fetchmany(self, size=0):
        rows = real(self, size)
        fetched.append(len(rows))
        return rows

    monkeypatch.setattr(psycopg.ServerCursor, "fetchmany", fetchmany)
    ledger = read(postgres, "select n as id from generate_series(1, 1000) n")

    assert ledger.rows.num_rows == 1000
    assert max(fetched) <= 100


def test_no_error_shows_the_password(postgres_server):
    name = "reader_of_ledgers"
    secret = postgres_server.make_role(name)
    try:
        wrong = postgres_server.dsn(user=name, password="s3cret/wörd").replace("s3cret/wörd", "s3cret%2Fw%C3%B6rd")
        assert "password authentication failed" in (said := refused(wrong, "select 1"))
        assert "s3cret" not in said
        good = postgres_server.dsn(user=name, password=secret)
        said = refused(good, f"select '{secret}'::int as id")
        assert secret not in said
        assert "***" in said
        assert secret not in read(good, "select 1 as id").origin
    finally:
        postgres_server.execute(f"drop role {name}")
    assert "s3cret" not in refused("postgresql://u:s3cret@127.0.0.1:1/db?sslpassword=s3cret", "select 1")
