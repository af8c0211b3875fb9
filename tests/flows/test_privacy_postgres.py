"""The same promises on PostgreSQL: who is forgotten leaves every table and every byte of the server, and `pii` is obeyed.

The server keeps its log of changes for a while; `docs/privacy.md` says how it is emptied, and the searches here do that first.
"""

import json

import psycopg
import pytest
from tests.flows.harness import Project
from tests.flows.test_privacy import MARKS, NEEDLES, OTHER, forget, forms, guest, pulled, said, set_mode, wire
from tests.postgres import Server

__all__ = ["guest"]

CONTACTS = "private.booking_contacts"


@pytest.fixture(scope="module")
def server():
    """A server of these tests alone, because all its bytes are searched. It keeps no log that a checkpoint has made useless."""
    server = Server()
    server.stop()
    server.start(wal_recycle="off")
    yield server
    server.remove()


@pytest.fixture
def journal():
    """Where the journal is: in a file, or on the server."""
    return "file"


@pytest.fixture
def copy(journal, server, service, tmp_path):
    """A project whose warehouse is on the server."""
    database = server.make()

    def make(**asked):
        project = Project(tmp_path / "project", service, destination=server.dsn(database), **asked)
        if journal == "server":
            project.file.write_text(f'journal = "{server.dsn(database)}"\n{project.file.read_text()}')
        return project

    make.database = database
    yield make
    server.drop(database)


async def filled(copy, server, guest):
    """Pulled with her in it, in bytes that a search can read: the server compresses long texts unless it is told not to."""
    made = copy(publish=True, availability=(0, 3))
    async with made.opened():
        pass
    server.execute("alter table raw.records alter payload set storage external", database=copy.database)
    await pulled(lambda **_: made, guest)
    server.execute("analyze", database=copy.database)
    return made


def tables_holding(server, database, needles=tuple(NEEDLES)):
    """Every table and view of the database with a value that holds a needle, also what the server noted of the values."""
    with psycopg.connect(server.dsn(database)) as db:
        names = db.execute(
            "select table_schema || '.' || table_name from information_schema.tables "
            "where table_schema not in ('information_schema', 'pg_catalog') or table_name = 'pg_statistic'"
        ).fetchall()
        return {name for (name,) in names if any(said(row, needles) for row in db.execute(f"table {name}").fetchall())}


def bytes_holding(server, directory, needles=tuple(NEEDLES)):
    """Every file of the server and of the project that holds a needle in any form, after the log's end was reached."""
    for statement in ("checkpoint", "select pg_switch_wal()", "checkpoint"):
        server.execute(statement)
    # Who holds a needle holds those inside it; and nobody wrote to the databases that every server has.
    shortest = [n for n in needles if not any(other != n and other in n for other in needles)]
    wanted = {form for needle in shortest for form in forms(needle)}
    blank = {f"base/{oid}" for (oid,) in server.execute("select oid::text from pg_database where oid < 16384")}
    found = set()
    for folder in (server.folder, directory):
        for file in (f for f in folder.rglob("*") if f.is_file() and not str(f.parent).endswith(tuple(blank))):
            data = file.read_bytes()
            if any(form in data for form in wanted):
                found.add(str(file.relative_to(folder)))
    return found


def files_of(server, database, *tables):
    """The files in which the server keeps these tables, long texts too, by their names below its folder."""
    toast = "select unnest(array[oid, reltoastrelid]) from pg_class where oid = any(%s::regclass[])"
    found = server.execute(
        f"select pg_relation_filepath(oid) from pg_class where oid in ({toast})", [*tables], database=database
    )
    return {f"data/{path}" for (path,) in found}


@pytest.mark.deep(10)
@pytest.mark.parametrize("journal", ["file", "server"])
async def test_an_erased_person_is_in_no_byte_of_the_server_and_a_full_pull_does_not_bring_her_back(
    copy, server, guest
):
    project = await filled(copy, server, guest)
    database = copy.database
    assert {CONTACTS, "raw.records", "core.bookings"} <= tables_holding(server, database)
    held = bytes_holding(server, project.directory)
    for table in (CONTACTS, "raw.records", "core.bookings"):
        assert held & files_of(server, database, table), table
    ada = f"select * from {CONTACTS} where email_address = $1 order by connection_id, booking_uuid, unit_item_uuid"
    kept = [row for row in project.query(ada, OTHER["emailAddress"]) if guest[2] in row]
    assert kept

    done = await forget(project, emails=[" zoe.quux@EXAMPLE.org"])

    assert (done.done_at is not None, done.left) == (True, ())
    assert done.counts[CONTACTS] == 2
    assert done.counts["core.bookings"] == 2
    assert done.counts["journal: deliveries"] == 1
    assert done.counts["raw.records"] >= 2
    assert tables_holding(server, database) == set()
    assert bytes_holding(server, project.directory) == set()
    assert [row for row in project.query(ada, OTHER["emailAddress"]) if guest[2] in row] == kept

    changed = {guest[0]: {"notes": "Quuxowitz changed her mind"}}
    await project.sync(transport=wire(guest, **changed), publishing=True)
    assert tables_holding(server, database) == set()
    assert bytes_holding(server, project.directory) == set()
    assert project.query("select status, contact_key from core.bookings where booking_uuid = $1", guest[0]) == [
        ("CONFIRMED", None)
    ]


@pytest.mark.deep(8)
async def test_a_stricter_rule_is_applied_to_what_is_there_and_to_its_bytes(copy, server, service, guest):
    """`keep`, then `hash`, then `drop`; a reference is no contact and stays, so hers are taken away first."""
    service.change(guest[0], reseller_reference="R-1")
    project = await filled(copy, server, guest)
    database, digests = copy.database, await project.digests()
    theirs = (*NEEDLES, OTHER["fullName"], OTHER["emailAddress"])
    contacts = f"select full_name, email_address, phone_number from {CONTACTS} where not is_deleted"
    async with project.opened() as opened:  # a webhook's body is kept for as long as deliveries are, whatever the rule
        opened.journal.inbox.blank(lambda _body: True)
        opened.journal.compact()
    assert tables_holding(server, database, theirs) >= {CONTACTS, "raw.records"}

    service.forget_requests()
    for mode, are_kept in (("hash", True), ("drop", False)):
        set_mode(project, mode)
        async with project.opened():  # whatever command writes next applies it, and the service is not asked
            pass
        assert service.requests() == []
        values = [value for row in project.query(contacts) for value in row if value]
        assert bool(values) is are_kept
        assert [value for value in values if len(value) != 32] == []
        assert project.query("select count(*) from raw.records where resource = 'booking'") == [(0,)]
        assert tables_holding(server, database, theirs) == set()
        assert bytes_holding(server, project.directory, theirs) == set()
        assert (project.query("select count(contact_key) from core.bookings")[0][0] > 0) is are_kept
        await project.sync(transport=wire(guest), publishing=True)
        assert tables_holding(server, database, theirs) == set()
        assert [d for d in await project.digests() if d not in digests] == []
        service.forget_requests()


@pytest.mark.deep(2)
def test_the_search_finds_what_is_there(server, tmp_path):
    """Each form of a text, in a row that was deleted and not yet written over."""
    database = server.make()
    server.execute("create table t (v text)", database=database)
    for text in (MARKS["fullName"], json.dumps(MARKS["fullName"])):
        server.execute("insert into t values (%s)", text, database=database)
        assert tables_holding(server, database) == {"public.t"}
        server.execute("delete from t", database=database)
        assert tables_holding(server, database) == set()
        assert files_of(server, database, "t") & bytes_holding(server, tmp_path)
        server.execute("vacuum full t", database=database)
        assert bytes_holding(server, tmp_path) == set()
    server.drop(database)
