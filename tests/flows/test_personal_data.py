"""Nobody's name, address or remark is anywhere but in the private file; nothing is readable for others."""

import logging
import sqlite3

import duckdb
import pytest
from tests.flows.harness import Wire, api_path, mode_of, reply

MARKS = {
    "fullName": "Zzyzxa Quuxowitz",
    "firstName": "Zzyzxa",
    "lastName": "Quuxowitz",
    "emailAddress": "zzyzxa@quuxowitz.example",
    "phoneNumber": "+44770099zzyzx",
    "postalCode": "ZZYZX1",
    "notes": "zzyzx eats no nuts",
}


@pytest.fixture
async def pulled(project, service, caplog):
    """A project pulled and published from a service with one traveller who is easy to find; its files and logs."""
    caplog.set_level(logging.DEBUG)
    booked = [b for b in service.state()["bookings"] if b["status"] == "CONFIRMED"][:3]
    for booking in booked:
        service.change(booking["uuid"], contact=MARKS, notes="zzyzx was here")
    copy = project(publish=True, availability=(0, 3))

    def edit(request, answer):
        if api_path(request) != "/bookings":
            return None
        rows = answer.json()
        for row in rows:
            if row["uuid"] == booked[0]["uuid"]:
                row["unitItems"][0]["contact"].update(MARKS)
            if row["uuid"] == booked[1]["uuid"]:
                # A record that is set aside: its reason must not repeat it.
                row["contact"]["country"] = {"zzyzx": 1}
                row["status"] = 5
        return reply(rows)

    await copy.sync(transport=Wire.by(edit))
    return copy


def texts(connection, sql):
    return [str(value) for row in connection.execute(sql).fetchall() for value in row if value is not None]


def every_text(db, catalog):
    """Every value of every table, as text; DuckDB compresses, so a search through the bytes alone would miss it."""
    tables = db.execute(
        "select table_schema, table_name from information_schema.tables where table_catalog = $1", [catalog]
    ).fetchall()
    assert len(tables) >= 2
    for schema, table in tables:
        for value in texts(db, f'select * from "{catalog}"."{schema}"."{table}"'):
            yield f"{schema}.{table}", value


async def test_a_traveller_is_found_in_the_private_file_and_nowhere_else(pulled, caplog):
    copy = pulled
    with duckdb.connect(":memory:") as db:
        for name in ("octo", "octo.read", "octo.private"):
            db.execute(f"attach '{copy.directory / name}.duckdb' as \"{name}\" (read_only)")
        db.execute("set timezone = 'UTC'")
        private = [where for where, value in every_text(db, "octo.private") if "zzyzx" in value.lower()]
        assert "private.booking_contacts" in private
        for name in ("octo", "octo.read"):
            assert [w for w, v in every_text(db, name) if "zzyzx" in v.lower() or "quux" in v.lower()] == []
    with sqlite3.connect(copy.directory / "octo.journal.sqlite") as journal:
        dump = "\n".join(journal.iterdump()).lower()
    journal.close()
    assert "subjects" in dump
    assert "zzyzx" not in dump
    for file in copy.directory.rglob("*"):
        if file.is_file() and not file.name.startswith("octo.private"):
            data = file.read_bytes().lower()
            assert b"zzyzx" not in data, file.name
            assert b"quuxowitz" not in data, file.name
    assert "zzyzx" not in caplog.text.lower()
    assert "sandbox-token" not in caplog.text


async def test_no_token_is_written_anywhere(pulled):
    for file in pulled.directory.rglob("*"):
        if file.is_file() and file != pulled.file:
            assert b"sandbox-token-all" not in file.read_bytes(), file.name


@pytest.mark.deep(2)
async def test_the_spool_is_empty_and_every_file_is_for_its_owner_alone(pulled):
    spools = [f for f in pulled.directory.rglob("*") if "spool" in str(f.relative_to(pulled.directory))]
    assert [f for f in spools if f.is_file()] == []
    assert {f.name: oct(mode_of(f)) for f in spools if mode_of(f) != 0o700} == {}
    ours = [f for f in pulled.directory.iterdir() if f.is_file() and f.name.startswith(("octo", ".octo"))]
    assert {f.name for f in ours} >= {"octo.duckdb", "octo.private.duckdb", "octo.read.duckdb", "octo.journal.sqlite"}
    assert {f.name: oct(mode_of(f)) for f in ours if mode_of(f) != 0o600} == {}


@pytest.mark.deep(2)
async def test_files_are_private_while_they_are_written_whatever_the_umask(project):
    """A reader need not wait for the end of a run to look."""
    import os

    copy, seen = project(availability=(0, 3)), {}

    def edit(_request, _answer):
        for file in copy.directory.rglob("*"):
            if file.is_file() and file != copy.file:
                seen[file.name] = mode_of(file)

    before = os.umask(0)
    try:
        await copy.sync(transport=Wire.by(edit), publishing=True)
    finally:
        os.umask(before)
    assert {name: oct(mode) for name, mode in seen.items() if mode & 0o077} == {}
    assert {"octo.duckdb", "octo.journal.sqlite"} <= set(seen)


@pytest.mark.deep(3)
async def test_a_copy_of_the_private_file_is_published_only_when_asked_for(pulled):
    assert not [f for f in pulled.directory.iterdir() if "read.private" in f.name]
    with pulled.file.open("a") as file:
        file.write("[publish]\ncontacts = true\n")
    await pulled.sync()
    assert [mode_of(f) for f in pulled.directory.iterdir() if "read.private" in f.name] == [0o600]


@pytest.mark.deep(1)
async def test_a_contact_that_is_emptied_at_the_service_leaves_the_copy(synced, service):
    copy = synced()
    uuid = next(b["uuid"] for b in service.state()["bookings"] if b["contact"]["email_address"] and not b["notes"])
    service.change(uuid, contact=dict.fromkeys(MARKS) | {"country": None})
    await copy.sync()
    assert copy.differences() == []
