"""Whoever asks on PostgreSQL reaches what was published, and nothing else, even as the role that owns everything."""

import threading

import pytest
from tests.destinations.contract import NOW
from tests.postgres import Server

from octo_sync.destinations.postgres.reader import PostgresReader
from octo_sync.destinations.postgres.warehouse import PostgresWarehouse
from octo_sync.errors import QueryError, WarehouseError
from octo_sync.tables import all_tables, nouns

CLOSED = "holds what only octo-sync may read"
ACTING = "reads files, runs other SQL or acts"
CATALOG = "shows more than what was published"


@pytest.fixture(scope="module")
def reader(postgres_server, tmp_path_factory):
    """A superuser's reader of an empty warehouse with views of the user's own."""
    name = postgres_server.make()
    dsn, spool = postgres_server.dsn(name), tmp_path_factory.mktemp("spool")
    PostgresWarehouse(dsn, spool=spool, tables=all_tables(), nouns=nouns(), now=NOW).close()
    for view in (
        "marts.seen as select 1 as x",
        "public.people as select * from private.booking_contacts",
        "public.landed as select * from landing.bookings",
        "public.more_people as select count(*) as n from public.people",
        "public.file as select pg_read_file('PG_VERSION') as text",
        "public.pg_roles_of_mine as select rolpassword from pg_authid",
        "public.sampled as select tablename, most_common_vals::text as found from pg_stats",
    ):
        postgres_server.execute(f"create view {view}", database=name)
    opened = PostgresReader(dsn, tables=all_tables())
    yield opened
    opened.close()
    postgres_server.drop(name)


REFUSED = [
    ("select * from private.booking_contacts", (), CLOSED),
    ("table private.booking_contacts", (), CLOSED),
    ('(select 1 from private . "booking_contacts")', (), CLOSED),
    ("select count(*) from people", (), CLOSED),
    ("select count(*) from landed", (), CLOSED),
    ("select count(*) from landing.bookings", (), CLOSED),
    ("select * from more_people", (), CLOSED),
    ("select (select count(*) from private.booking_contacts)", (), CLOSED),
    ("select 1 where exists (select from private.booking_contacts)", (), CLOSED),
    ("with c as materialized (select * from private.booking_contacts) select count(*) from c", (), CLOSED),
    ("select * from core.bookings b, lateral (select * from private.booking_contacts limit 1) c", (), CLOSED),
    ("select 1 union all select count(*) from private.booking_contacts", (), CLOSED),
    ("select * from private.booking_contacts where booking_uuid = $1", ("x",), CLOSED),
    ("select * from private.booking_contacts where booking_uuid = $key", {"key": "x"}, CLOSED),
    ("explain select * from private.booking_contacts", (), CLOSED),
    ("explain (costs off) select * from private.booking_contacts", (), CLOSED),
    ("explain (select * from private.booking_contacts)", (), CLOSED),
    ("explain analyze select 1", (), "EXPLAIN ANALYZE"),
    ("explain verbose analyse select 1", (), "EXPLAIN ANALYZE|is not a reading"),
    ("explain (verbose, analyze) select 1", (), "EXPLAIN ANALYZE"),
    ("/* x */ explain /* y */ analyze select 1", (), "EXPLAIN ANALYZE"),
    ("select pg_read_file('PG_VERSION')", (), ACTING),
    ("select PG_CATALOG.Pg_Read_File('PG_VERSION')", (), ACTING),
    ("select \"pg_read_file\"('PG_VERSION')", (), ACTING),
    ("select ('PG_VERSION'::text).pg_read_file", (), ACTING),
    ("select U&\"pg\\005fread_file\"('PG_VERSION')", (), "U&"),
    ("select pg_read_file($1)", ("PG_VERSION",), ACTING),
    ("select * from file", (), ACTING),
    ("select * from pg_ls_dir('.')", (), ACTING),
    ("select query_to_xml('select * from private.booking_contacts', true, true, '')", (), ACTING),
    ("select table_to_xml('private.booking_contacts', true, true, '')", (), ACTING),
    ("select * from ts_stat('select to_tsvector(''a'')')", (), ACTING),
    ("select set_config('search_path', 'private', false)", (), ACTING),
    ("select pg_sleep(0)", (), ACTING),
    ("select * from pg_stats", (), CATALOG),
    ("select * from sampled", (), CATALOG),
    ("select * from pg_authid", (), CATALOG),
    ("table pg_shadow", (), CATALOG),
    ("select rolpassword from pg_roles_of_mine", (), CATALOG),
    ("explain select * from pg_authid", (), CATALOG),
    ("select * from pg_stat_get_activity(null)", (), CATALOG),
    # Ways to call a function, with and without a parenthesis after its name.
    ("select pg_read_file /* x */ -- y\n ('PG_VERSION')", (), ACTING),
    ("select f.pg_read_file from lower('PG_VERSION') f", (), ACTING),
    ("select v.* from lower('PG_VERSION') f, lateral (values (f . pg_read_file), ('')) v", (), ACTING),
    ("select * from (values (pg_read_file('PG_VERSION')), ('')) v", (), ACTING),
    ("select lo_get(1)", (), ACTING),
    ("select lo_import('PG_VERSION')", (), ACTING),
    ("select 1 as lo_total, lo_unlink(1)", (), ACTING),
    ("select * from pg_stat_activity", (), CATALOG),
    # Ways to make a name look as if it stood in a text or a comment.
    ("select /* /* */ ' */ pg_read_file('PG_VERSION') --'", (), ACTING),
    ("select 1 --\r, pg_read_file('PG_VERSION')", (), ACTING),
    ("select E'\\'', pg_read_file('PG_VERSION') --'", (), "backslash"),
    ("select $a$'$a$, pg_read_file('PG_VERSION') --'", (), ACTING),
    ("select 1 as a$b$, pg_read_file('PG_VERSION') as c$b$", (), ACTING),
    ("select 1; select * from private.booking_contacts", (), "multiple commands"),
    ("from fct_bookings", (), r"on PostgreSQL write select \* from"),
]


@pytest.mark.deep(0.1, everyday=10)
@pytest.mark.parametrize(("sql", "parameters", "sentence"), REFUSED, ids=[case[0][:60] for case in REFUSED])
def test_what_is_not_published_is_refused_in_rows_and_in_batches(reader, sql, parameters, sentence):
    with pytest.raises(QueryError, match=sentence):
        reader.query(sql, parameters)
    with pytest.raises(QueryError, match=sentence):
        reader.batches(sql, parameters)


def test_long_values_are_not_read_from_behind(reader):
    (name,) = reader.query(
        "select t.relname::text from pg_class c join pg_class t on t.oid = c.reltoastrelid where c.relname = $1",
        ["booking_contacts"],
    ).rows[0]
    with pytest.raises(QueryError, match=CLOSED):
        reader.query(f"select * from pg_toast.{name}")


ANSWERED = [
    ("select count(*) from core.bookings", (), 0),
    ("(select count(*) from bookings)", (), 0),
    ("with b as (select * from core.bookings) select count(*) from b", (), 0),
    ("values (7)", (), 7),
    ("select $1::int + $2::int", (3, 4), 7),
    ("select $a::text", {"a": "pg_read_file private.x"}, "pg_read_file private.x"),
    ("select 'pg_sleep' -- pg_sleep", (), "pg_sleep"),
    ("select $$pg_sleep$$ /* pg_sleep /* deeper */ */", (), "pg_sleep"),
    ("select 'it''s'", (), "it's"),
    ("select count(*) from information_schema.columns where table_name = 'nothing'", (), 0),
    ("select relname::text from pg_catalog.pg_class where oid = 'private.booking_contacts'::regclass", (),
     "booking_contacts"),
    # A name is no call: aliases, columns, texts.
    ("with t as (select 5 as lo_total) select t.lo_total from t order by lo_total", (), 5),
    ("select 5 as lo_get", (), 5),
    ("select x from (select 5 as x) as pg_sleep_cycles", (), 5),
    ('with "pg_authid" as (select 5 as n) select n from pg_authid', (), 5),
    ("show timezone", (), "UTC"),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "parameters", "answer"), ANSWERED, ids=[case[0][:60] for case in ANSWERED])
def test_ordinary_questions_are_answered(reader, sql, parameters, answer):
    assert reader.query(sql, parameters).rows[0][0] == answer
    if sql != "show timezone":
        assert reader.batches(sql, parameters).read_all().column(0)[0].as_py() == answer


def test_a_plan_is_shown_without_running_it(reader):
    assert reader.query("explain select * from core.bookings").rows
    assert reader.query("explain (costs off) select * from core.bookings").rows
    assert len(reader.tables()) > 10


# -- the first rows of an answer ----------------------------------------------------------------------------------------------


def test_no_more_of_an_answer_is_made_than_what_is_taken(reader):
    """Else a page that shows ten rows would hold all of them first."""
    found = reader.query("select 1 / (5000 - i) as n from generate_series(1, $most) i", {"most": 10_000}, limit=10)
    assert found.columns == ("n",)
    assert found.types == ("INTEGER",)
    assert len(found.rows) == 10
    assert found.truncated
    assert reader.query("select 7", limit=10).rows == [(7,)]


@pytest.mark.parametrize(
    "sql",
    ["explain select 1", "show timezone", "/* x */ EXPLAIN select 1", "table core.bookings", "values (1)", "select"],
)
def test_every_statement_that_reads_can_be_cut(reader, sql):
    assert reader.query(sql, limit=10) == reader.query(sql)


@pytest.mark.parametrize(
    ("sql", "sentence"),
    [
        ("select 1; select 2", "multiple commands"),
        ("select nothing from core.bookings", "nothing"),
        ("select 1 / (3 - i) from generate_series(1, 9) i", "division by zero"),
        ("select * from private.booking_contacts", CLOSED),
        ("with w as (insert into core.products default values returning 1) select * from w", "does more than read"),
        ("select * from core.products for update", "does more than read"),
    ],
)
def test_what_is_wrong_is_told_alike_whether_it_is_cut_or_not(reader, sql, sentence):
    for limit in (None, 10):
        with pytest.raises(QueryError, match=sentence):
            reader.query(sql, limit=limit)
        assert reader.query("select 7", limit=limit).rows == [(7,)]


def test_a_query_that_is_cut_has_its_time_too(reader):
    for sql in ("select count(*) from generate_series(1, 900000000)", "select * from generate_series(1, 900000000)"):
        with pytest.raises(WarehouseError, match=r"stopped after 0\.3 s"):
            reader.query(sql, limit=10, timeout=0.3)
    assert reader.query("select 7", limit=10).rows == [(7,)]


# -- a reader that lives long ------------------------------------------------------------------------------------------------


@pytest.fixture
def lasting(postgres_server, reader):
    """A reader of its own, and its database."""
    (name,) = reader.query("select current_database()").rows[0]
    opened = PostgresReader(postgres_server.dsn(name), tables=all_tables())
    yield opened, name
    opened.close()


def test_what_is_read_as_one_says_in_a_sentence_when_the_server_has_let_go_of_it(lasting, postgres_server):
    """Each time that it is asked: another publish may have come since."""
    _, name = lasting
    whole = PostgresReader(postgres_server.dsn(name), is_whole=True)
    assert whole.query("select 1").rows == [(1,)]
    assert postgres_server.disconnect(name)
    for ask in (whole.query, whole.query, whole.batches):
        with pytest.raises(WarehouseError, match="run the command again"):
            ask("select 1")
    whole.close()


def test_a_session_that_ended_meanwhile_is_made_anew_by_whatever_is_asked_next(lasting, postgres_server):
    opened, name = lasting
    for ask in (lambda: opened.query("select 7").rows, opened.digest, opened.tables):
        before = ask()
        assert postgres_server.disconnect(name)
        assert ask() == before


def test_a_query_that_loses_its_session_is_told_and_not_run_again(lasting, postgres_server):
    opened, name = lasting
    threading.Timer(0.3, postgres_server.disconnect, [name]).start()
    with pytest.raises(WarehouseError, match="ended the session"):
        opened.query("select count(*) from generate_series(1, 900000000)")
    assert opened.query("select 7").rows == [(7,)]


def test_a_closed_reader_stays_closed(lasting):
    opened, _ = lasting
    opened.close()
    with pytest.raises(WarehouseError, match="was closed"):
        opened.query("select 1")
    with pytest.raises(WarehouseError, match="was closed"):
        opened.batches("select 1")


@pytest.mark.deep(1)
def test_a_reader_outlives_a_restart_and_says_when_the_server_is_away(tmp_path):
    server = Server()
    try:
        dsn = server.dsn(server.make("octo"))
        PostgresWarehouse(dsn, spool=tmp_path, tables=all_tables(), nouns=nouns(), now=NOW).close()
        server.execute("create view marts.seen as select 1 as x", database="octo")
        opened = PostgresReader(dsn)
        server.stop()
        for _ in range(2):
            with pytest.raises(WarehouseError, match=r"octo at 127\.0\.0\.1 cannot be reached"):
                opened.query("select 7")
        server.start()
        assert opened.query("select 7").rows == [(7,)]
        assert opened.batches("select 7 as n").read_all().to_pydict() == {"n": [7]}
        opened.close()
    finally:
        server.remove()
