"""No name, address, number or remark of any guest is in what is published, in no table, mart or answer, on either engine."""

import asyncio
import re

import duckdb
import psycopg
import pytest
from tests.flows.harness import Project

from octo_sync.flows import ask


@pytest.fixture(scope="module")
def people(world):
    """Everything the service knows about anybody."""
    told = set()
    for channel in world.now.channels:
        for booking in channel.state["bookings"]:
            told.add(booking["notes"])
            for contact in (booking["contact"], *(item["contact"] for item in booking["unit_items"])):
                told |= {contact[name] for name in ("full_name", "email_address", "phone_number", "notes")}
        # The company's own number is public, and the sandbox gives it to a guest as well.
        told.discard(channel.state["supplier"]["telephone"])
    told.discard(None)
    assert len(told) > 500
    return told


def values(path):
    """Every value of every table and mart of a file, by where it is."""
    with duckdb.connect(path, read_only=True) as db:
        db.execute("set timezone = 'UTC'")
        tables = db.execute("select table_schema, table_name from information_schema.tables").fetchall()
        for schema, table in tables:
            for row in db.execute(f'select * from "{schema}"."{table}"').fetchall():
                for value in row:
                    if isinstance(value, str):
                        yield f"{schema}.{table}", value


@pytest.fixture(scope="module")
def on_server(world, postgres_server, tmp_path_factory):
    """Every value of every table and mart of a PostgreSQL database that was pulled into, by where it is."""
    name = postgres_server.make()
    project = Project(
        tmp_path_factory.mktemp("on_server") / "project",
        world.project.service,
        publish=True,
        connections=world.project.connections,
        destination=postgres_server.dsn(name),
    )
    project.clock = world.project.clock
    assert asyncio.run(project.sync()).status == "ok"
    with psycopg.connect(postgres_server.dsn(name)) as db:
        system = "('information_schema', 'pg_catalog')"
        tables = db.execute(
            f"select table_schema, table_name from information_schema.tables where table_schema not in {system}"
        ).fetchall()
        yield {
            (f"{schema}.{table}", value)
            for schema, table in tables
            for row in db.execute(f'select * from "{schema}"."{table}"').fetchall()
            for value in row
            if isinstance(value, str)
        }
    postgres_server.drop(name)


def found(people, texts):
    """Where something about somebody stands, alone or inside a longer text."""
    blobs = {}
    for where, text in texts:
        blobs.setdefault(where, []).append(text)
    return {where for where, held in blobs.items() if (blob := "\n".join(held)) and any(p in blob for p in people)}


def test_the_private_file_holds_them_so_that_the_search_can_find_them(world, people):
    directory = world.project.directory
    there = set(values(directory / "octo.private.duckdb"))

    assert found(people, {v for v in there if v[0] == "private.booking_contacts"}) == {"private.booking_contacts"}


def test_no_table_and_no_mart_of_the_read_copy_names_anybody(world, people):
    texts = set(values(world.project.directory / "octo.read.duckdb"))

    assert {"marts.fct_bookings", "marts.fct_guests", "core.bookings"} <= {where for where, _ in texts}
    assert found(people, texts) == set()


@pytest.mark.deep(3)
def test_no_table_and_no_mart_on_a_server_names_anybody_but_the_private_ones(on_server, people):
    assert {"marts.fct_bookings", "marts.fct_guests", "marts.dim_product", "core.bookings", "ops.runs"} <= {
        where for where, _ in on_server
    }
    assert found(people, on_server) == {"private.booking_contacts", "raw.records"}


def bytes_about(people, path):
    """Names and remarks, e-mail addresses and telephone numbers of guests among a file's bytes."""
    data = path.read_bytes()
    texts = {p for p in people if "@" not in p and not p.startswith("+")}
    numbers = {p.encode() for p in people if p.startswith("+")}
    return (
        {p for p in texts if p.encode() in data or p.encode("utf-16-le") in data}
        | set(re.findall(rb"guest\d{5}", data))
        | numbers & set(re.findall(rb"\+447700900\d{3}", data))
    )


@pytest.mark.deep(3)
def test_no_byte_of_the_read_copy_names_anybody(world, people):
    """Compression hides most of what a private file holds from such a search, not all of it; the values are searched above."""
    directory = world.project.directory

    assert len(bytes_about(people, directory / "octo.private.duckdb")) > 3, "this search finds what is there"
    assert bytes_about(people, directory / "octo.read.duckdb") == set()


def test_no_answer_to_a_question_names_anybody(engine, world, people):
    texts = set()
    for question in ask.questions(world.project.directory):
        given = dict.fromkeys(question.required, "RS-000001")
        asked = ask.values(question, given, now=world.project.clock.now(), time_zone="UTC")
        rows = engine.query(question.sql, asked).rows
        texts |= {(question.name, value) for row in rows for value in row if isinstance(value, str)}

    assert len({where for where, _ in texts}) > 10
    assert found(people, texts) == set()
