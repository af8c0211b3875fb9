"""Publishing on PostgreSQL: readers see what passed the checks, whole, until the next publish, and nobody waits for it."""

import contextlib

import psycopg
import pytest
from tests.destinations.contract import NOW, answered, booking, december, departures, landing, product, slot
from tests.destinations.histories import at, payload, run
from tests.destinations.test_postgres import blank, open_warehouse  # noqa: F401 - fixtures

import octo_sync
from octo_sync.app import reading as api
from octo_sync.destinations.base import Drift
from octo_sync.destinations.erasing import BookingScrub
from octo_sync.destinations.postgres.landed import in_landing
from octo_sync.errors import WarehouseError
from octo_sync.flows.publish import make_marts, publish, run_checks, sql_files
from octo_sync.tables import all_tables

DRIFT = (Drift("main", "bookings", "field", "surprise"),)
CONNECTION = {
    "connection_id": "main", "role": "reseller", "channel": "main", "base_url": "https://api.example.com/octo/v1",
    "supplier_id": None, "business_time_zone": "Europe/Lisbon", "capabilities": "octo/pricing", "is_active": True,
}  # fmt: skip
FIRST = (
    december([booking(n) for n in range(1, 6)], 10),
    departures([slot(5), slot(6)], 11),
    answered("products", [product()], 12),
)
SECOND = (
    december([booking(n, retail=700) for n in range(1, 7)], 20, drift=DRIFT),
    departures([slot(6, vacancies=1), slot(7)], 21),
)
PUBLISHED = [t for t in all_tables() if not t.private]


@pytest.fixture
def warehouse(open_warehouse, tmp_path):  # noqa: F811
    """A warehouse whose first landing was published."""
    made = open_warehouse()
    made.claim_writer(1, "test")
    made.land(landing(*FIRST))
    made.write_log("core.connections", [CONNECTION])
    assert shown(made, tmp_path)
    yield made
    made.close()


def shown(warehouse, directory):
    """Publish; whether the checks passed."""
    return publish(warehouse, directory, directory / "unused").size is not None


@pytest.fixture
def other(warehouse, open_warehouse, postgres_server):  # noqa: F811
    """Sessions of somebody else: a superuser, each statement by itself unless a transaction is asked for."""
    with contextlib.ExitStack() as sessions:

        def connect(**settings):
            dsn = postgres_server.dsn(open_warehouse.databases["octo"], **settings)
            return sessions.enter_context(psycopg.connect(dsn, autocommit=True))

        yield connect


@pytest.fixture
def bi(other, postgres_server):
    """The role for readers, with the rights that docs/postgresql.md gives it; its session. `bi_column` has none yet."""
    owner = other()
    for role in ("bi_test", "bi_column"):
        owner.execute(f"create role {role} login")
    owner.execute("grant usage on schema marts to bi_test")
    owner.execute("grant select on all tables in schema marts to bi_test")
    owner.execute("alter default privileges in schema marts grant select on tables to bi_test")
    yield other(user="bi_test")
    for role in ("bi_test", "bi_column"):
        owner.execute(f"drop owned by {role}")
        owner.execute(f"drop role {role}")


def relations(session):
    """Every mart and every published table."""
    return [
        name
        for (name,) in session.execute(
            "select n.nspname || '.' || c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace "
            "where n.nspname in ('core', 'marts', 'ops') and c.relkind in ('r', 'v') order by 1"
        ).fetchall()
    ]


def seen(session):
    """All rows of all of them."""
    return {name: sorted(map(str, session.execute(f"table {name}").fetchall())) for name in relations(session)}


def differing(session):
    """The tables that do not show readers what has landed."""
    pairs = ((t.full_name, f"landing.{t.name}", ", ".join(c.name for c in t.all_columns)) for t in PUBLISHED)
    return [
        name
        for name, place, columns in pairs
        if sorted(map(str, session.execute(f"select {columns} from {name}").fetchall()))
        != sorted(map(str, session.execute(f"select {columns} from {place}").fetchall()))
    ]


def test_every_table_and_mart_is_as_published_until_a_publish_is_done(warehouse, other, tmp_path):
    """Between a landing and the publish, in the middle of the publish, and behind a check that fails."""
    reader = other()
    before = seen(reader)
    assert len(before) == len(PUBLISHED) + len(sql_files(tmp_path, "marts"))

    warehouse.land(landing(*SECOND, minutes=1))
    warehouse.write_log("ops.runs", [run("late", 0, 1)])
    assert seen(reader) == before

    checks = tmp_path / "warehouse" / "checks"
    checks.mkdir(parents=True)
    (checks / "never.sql").write_text("-- name: never\nselect 1 as wrong")
    assert not shown(warehouse, tmp_path)
    assert seen(reader) == before
    (checks / "never.sql").unlink()

    with warehouse.drafting() as draft:
        make_marts(draft, tmp_path)
        assert not any(checked.rows.rows for checked in run_checks(draft, tmp_path))
        draft.publish()
        assert seen(reader) == before
    after = seen(reader)
    changed = {name for name in before if before[name] != after[name]}
    assert {"core.bookings", "core.availability", "marts.fct_bookings", "marts.fct_departures", "ops.runs"} <= changed
    assert differing(reader) == []


@pytest.mark.deep(4)
def test_what_no_publish_takes_is_noted_once_and_none_of_it_is_lost(warehouse, other, tmp_path):
    """Also when it is thinned out while a publish is made, which has noted rows in its hands."""
    owner, nothing = other(), {"raw_before": None, "runs_before": None, "history_before": None}

    def landed(number):
        warehouse.land(landing(december([booking(1, retail=number)], number), departures([slot(7)], number + 1)))

    landed(100)
    landed(102)
    with warehouse.drafting() as draft:
        landed(104)
        warehouse.prune(**nothing)
        draft.publish()
    assert differing(owner) != []
    landed(106)
    landed(108)
    (before,) = owner.execute("select count(*) from landing.changed").fetchone()
    warehouse.prune(**nothing)
    ((after, kept),) = owner.execute("select count(*), count(distinct (name, key)) from landing.changed").fetchall()
    assert before > after == kept
    assert shown(warehouse, tmp_path)
    assert differing(owner) == []


@pytest.mark.deep(3)
def test_a_publish_brings_over_what_any_road_has_changed(warehouse, other, tmp_path):
    """Landings, moved departures, proven deletions, logs, pruning, erasing, and whoever changes a row by hand."""
    owner = other()

    def scrub():
        texts = dict.fromkeys(("supplier_reference", "reseller_reference", "cancellation_reason"))
        with warehouse.scrubbing(1) as scrubber:
            scrubber.scrub_bookings([BookingScrub("main", "uuid-2", loses_key=True, **texts)], [])

    def bury():
        warehouse.land(landing(december([booking(n) for n in range(2, 6)], 40)))
        assert warehouse.bury(warehouse.absences(), now=NOW, fence=1)

    roads = {
        "a landing": lambda: warehouse.land(landing(*SECOND, minutes=1)),
        "a departure on another day": lambda: warehouse.land(
            landing(departures([slot(6), slot(7) | {"localDateTimeStart": "2026-12-08T09:00:00+00:00"}], 30), minutes=2)
        ),
        "products": lambda: warehouse.land(landing(answered("products", [product(name="Ferry")], 31))),
        "a deletion": bury,
        "a log": lambda: warehouse.write_log("ops.runs", [run("old", 0, 1), run("late", 3, 4)]),
        "a payload": lambda: warehouse.land(landing(departures([slot(6, vacancies=3)], 50), payload("one", 1))),
        "pruning": lambda: warehouse.prune(raw_before=None, runs_before=at(2), history_before=at(60)),
        "erasing": scrub,
        "a row that loses its day": lambda: owner.execute(
            "update landing.availability set local_date = null where local_date = '2026-12-05'"
        ),
        "a row without a day that goes": lambda: owner.execute(
            "delete from landing.availability where local_date is null"
        ),
    }
    for road, take in roads.items():
        take()
        noted = owner.execute("select count(*) from landing.changed").fetchone()
        assert noted != (0,), road
        with warehouse.drafting() as draft:
            draft.publish()
        assert differing(owner) == [], road
        assert owner.execute("select count(*) from landing.changed").fetchone() == (0,), road


def test_nobody_waits_for_anybody(warehouse, other, tmp_path):
    """A reader's transaction that spans publishes, a landing during a publish, and readers during both."""
    long, new = other(), other()
    long.execute("begin isolation level repeatable read")
    before = seen(long)  # from now on it holds a lock on everything that is published
    for session in (long, new):
        session.execute("set lock_timeout = '50ms'")

    warehouse.land(landing(*SECOND, minutes=1))
    with warehouse.drafting() as draft:
        draft.run_script(["set local lock_timeout = '50ms'"])
        make_marts(draft, tmp_path)
        assert not any(checked.rows.rows for checked in run_checks(draft, tmp_path))
        warehouse.land(landing(departures([slot(6, vacancies=5)], 31), minutes=2))
        assert seen(new) == before
        draft.publish()
    assert seen(new) != before
    assert seen(long) == before
    assert differing(new) != [], "what landed meanwhile was not checked"

    assert shown(warehouse, tmp_path)
    assert differing(new) == []
    assert seen(long) == before
    long.execute("commit")
    assert seen(long) == seen(new)


def test_grants_and_views_of_others_stay_and_the_views_show_what_is_new(warehouse, other, bi, tmp_path):
    owner = other()
    owner.execute("create schema theirs")
    owner.execute("create view theirs.sold as select sum(retail_amount) from marts.fct_bookings where is_sold")
    owner.execute("create view theirs.days as select sum(departures) from marts.agg_occupancy_daily")
    owner.execute("grant usage on schema theirs to bi_test")
    owner.execute("grant select on all tables in schema theirs to bi_test")
    owner.execute("grant usage on schema marts to bi_column")
    owner.execute("grant select (booking_key) on marts.fct_bookings to bi_column")
    ask = lambda: [bi.execute(f"table theirs.{name}").fetchone()[0] for name in ("sold", "days")]  # noqa: E731
    before = ask()

    warehouse.land(landing(*SECOND, minutes=1))
    assert ask() == before
    assert shown(warehouse, tmp_path)
    sold, days = ask()
    assert sold == 42 != before[0]
    assert days == 3 != before[1]
    assert other(user="bi_column").execute("select count(booking_key) from marts.fct_bookings").fetchone() == (6,)


@pytest.mark.deep(2)
def test_a_mart_that_is_defined_anew_is_made_anew_with_its_grants_and_a_view_of_others_goes_on(
    warehouse, other, bi, tmp_path
):
    owner, custom = other(), tmp_path / "warehouse" / "custom"
    owner.execute("create schema theirs")
    owner.execute("create view theirs.sold as select sum(retail_amount) from marts.fct_bookings where is_sold")
    oid = owner.execute("select 'marts.fct_bookings'::regclass::oid").fetchone()
    custom.mkdir(parents=True)
    (custom / "mine.sql").write_text(
        "-- name: mine\n-- grain: x\n-- materialize: table\nselect count(*) as n from core.bookings"
    )

    assert shown(warehouse, tmp_path)
    assert owner.execute("select 'marts.fct_bookings'::regclass::oid").fetchone() != oid
    assert bi.execute("table marts.mine").fetchone() == (5,)
    warehouse.land(landing(*SECOND, minutes=1))
    assert shown(warehouse, tmp_path)
    assert bi.execute("table marts.mine").fetchone() == (6,), "a table is filled anew"
    assert owner.execute("table theirs.sold").fetchone() == (42,), "the former definition, the present rows"
    (custom / "mine.sql").unlink()
    assert shown(warehouse, tmp_path)
    with pytest.raises(psycopg.errors.UndefinedTable):
        bi.execute("table marts.mine")


@pytest.mark.deep(1)
def test_a_mart_that_somebody_dropped_comes_back(warehouse, other, tmp_path):
    other().execute("drop view marts.recon_open")
    assert shown(warehouse, tmp_path)
    assert "marts.recon_open" in relations(other())


def test_readers_are_granted_neither_what_has_landed_nor_a_person(bi, warehouse, open_warehouse, postgres_server):  # noqa: F811
    for closed in ("landing.bookings", "landing.changed", "core.bookings", "private.booking_contacts", "raw.records"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            bi.execute(f"table {closed}")
    assert bi.execute("select count(*) from marts.fct_bookings").fetchone() == (5,)
    address = postgres_server.dsn(open_warehouse.databases["octo"], user="bi_test")
    with octo_sync.open(address) as copy:
        assert copy.sql("select count(*) from fct_bookings").rows() == [(5,)]


def test_all_that_a_command_reads_is_of_one_publish(warehouse, open_warehouse, postgres_server, tmp_path):  # noqa: F811
    """As with a file, though other publishes come between its queries; in a notebook each query is of the last one."""
    address, ask = postgres_server.dsn(open_warehouse.databases["octo"]), "select count(*) from fct_bookings"
    with contextlib.closing(api.reader(address, is_whole=True)) as whole, octo_sync.open(address) as copy:
        warehouse.land(landing(*SECOND, minutes=1))
        assert shown(warehouse, tmp_path)
        assert whole.query(ask).rows == [(5,)]
        assert whole.batches(ask).read_all().to_pylist() == [{"count": 5}]
        assert copy.sql(ask).rows() == [(6,)]


def test_what_was_never_published_says_so(open_warehouse, postgres_server):  # noqa: F811
    made = open_warehouse("never")
    made.claim_writer(1, "test")
    made.land(landing(*FIRST))
    with pytest.raises(WarehouseError, match="Nothing was published"):
        octo_sync.open(postgres_server.dsn(open_warehouse.databases["never"]))
    made.close()


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("select * from core.bookings b join ops.coverage", "select * from landing.bookings b join landing.coverage"),
        ("update core.bookings set x = 1", "update landing.bookings set x = 1"),
        ("(core.bookings)", "(landing.bookings)"),
        (
            "select 'core.bookings', count(*) from core.bookings",
            "select 'core.bookings', count(*) from landing.bookings",
        ),
        ("table private.landed", "table private.landed"),
        ("select core.x from hardcore.x", "select landing.x from hardcore.x"),
        ("table marts.core", "table marts.core"),
    ],
)
def test_the_writers_words_mean_the_tables_that_are_landed_into(said, meant):
    assert in_landing(said) == meant
