"""The warehouse in Delta Lake keeps the contract, and a few promises of its own."""

import contextlib
import dataclasses
import json
import os
import random
import shutil
from collections import Counter
from pathlib import Path

import deltalake
import duckdb
import pyarrow.parquet as pq
import pytest
from tests.destinations import contract, corners, histories
from tests.destinations.contract import (
    NOW,
    answered,
    booking,
    december,
    departures,
    in_month,
    landing,
    one,
    product,
    slot,
)

from octo_sync.destinations.delta import lake
from octo_sync.destinations.delta.partitions import partition_of
from octo_sync.destinations.delta.warehouse import DeltaWarehouse
from octo_sync.destinations.erasing import ContactRow
from octo_sync.destinations.landing.steps import LandingWork
from octo_sync.destinations.migrations import SCHEMA_VERSION
from octo_sync.errors import WarehouseError, WriterFenced
from octo_sync.flows.publish import publish
from octo_sync.model import Window
from octo_sync.tables import all_tables, nouns

NAME = "Xerxes Quillfeather-Ibarra"


def opened(directory, host="here", tables=None):
    """The warehouse in a directory, made when it is not there, with the working copy of a host."""
    copy = directory / host / "octo.duckdb"
    return DeltaWarehouse(
        str(directory / "lake"),
        copy,
        copy.with_name("octo.private.duckdb"),
        tables=tables or all_tables(),
        nouns=nouns(),
        now=NOW,
    )


def rows_of(warehouse):
    """Every row of every table that is in the lake."""
    return {
        t.full_name: sorted(
            map(repr, warehouse.query(f"select * from {'personal.' if t.private else ''}{t.full_name}").rows)
        )
        for t in warehouse._lake.tables.values()
    }


@pytest.fixture
def open_warehouse(tmp_path, blank):
    """Open a warehouse by name; the same name is the same warehouse. In the end the lake has all that the copy has."""
    made = set()

    def make(name="octo", host="here"):
        if not (tmp_path / name).exists():
            shutil.copytree(blank, tmp_path / name)
        made.add((tmp_path / name, host))
        return opened(tmp_path / name, host)

    yield make
    for directory, host in made:
        with contextlib.closing(opened(directory, host)) as kept:
            there = rows_of(kept)
        with contextlib.closing(opened(directory, "another")) as another:
            assert rows_of(another) == there


@pytest.fixture
def private():
    """Ask for private tables, which the working copy keeps in a catalog of their own."""
    return lambda warehouse, sql: warehouse.query(sql.format("personal.")).rows


@pytest.mark.deep(2)
class TestDelta(contract.Contract, histories.Histories, corners.Corners):
    """The suite itself."""


class TestEveryDay:
    """A few of it."""

    warehouse = contract.Contract.warehouse
    test_landing = contract.Contract.test_a_landing_lands_every_table_and_its_watermark
    test_ticket = contract.Contract.test_a_ticket_that_left_its_booking_is_marked_deleted


@pytest.fixture
def warehouse(open_warehouse):
    made = open_warehouse()
    made.claim_writer(1, "test")
    yield made
    made.close()


def first():
    """A product, and bookings and departures of two months."""
    january = answered("bookings", [booking(9, month=1)], 12, parts=("2026-01",), window=Window.month("2026-01"))
    return landing(
        december([booking(1, name=NAME), booking(2)], 10),
        january,
        departures([slot(5)], 11),
        in_month(1, [slot(5, month=1)], 13),
        answered("products", [product()], 14),
    )


def second(fence=1):
    """One of these bookings is changed, and one comes."""
    return landing(december([booking(1, retail=7000), booking(2), booking(3)], 20), minutes=1, fence=fence)


def files(warehouse):
    """Of each table the files that its newest version has."""
    root = Path(warehouse._lake.root)
    found = [p.parent for folder in (root, Path(f"{root}.private")) for p in folder.glob("*/*/_delta_log")]
    return {f"{p.parent.name}.{p.name}": set(deltalake.DeltaTable(p).file_uris()) for p in found}


# -- what is written ------------------------------------------------------------------------------------------------------


def test_only_partitions_of_which_a_row_changed_are_written(warehouse):
    warehouse.land(first())
    before = files(warehouse)
    warehouse.land(landing(one(booking(1, retail=7000, name=NAME), 20), minutes=1))
    after = files(warehouse)
    assert {name for name in after if after[name] != before[name]} == {
        "core.bookings", "core.booking_history", "core.booking_unit_items", "core.booking_extra_items",
        "core.booking_taxes", "ops.coverage",
    }  # fmt: skip
    for name in ("core.bookings", "core.booking_history"):
        kept, fresh = before[name] & after[name], after[name] - before[name]
        assert ["partition_month=2026-01" in file for file in kept] == [True], name
        assert ["partition_month=2026-12" in file for file in fresh] == [True], name


def of(connection, seq):
    """Bookings of a connection of this name."""
    answer = december([booking(seq)], seq)
    lines = tuple(
        line.replace(b'"connection_id": "main"', f'"connection_id": "{connection}"'.encode()) for line in answer.lines
    )
    assert lines != answer.lines
    return landing(
        dataclasses.replace(answer, subject=dataclasses.replace(answer.subject, connection=connection), lines=lines)
    )


def test_a_landing_looks_at_its_connections_alone_and_leaves_those_that_share_their_files(warehouse, monkeypatch):
    other = next(name for n in range(999) if partition_of((name := f"shop{n}", None)) == partition_of(("main", None)))
    warehouse.land(first())
    asked, real = [], warehouse._run
    monkeypatch.setattr(warehouse, "_run", lambda sql, *more: asked.append(sql) or real(sql, *more))
    warehouse.land(of(other, 20))
    looks = [sql for sql in asked if "hash(hash(" in sql and " core.bookings " in sql.replace("warehouse.", "")]
    assert looks
    assert all(f"'{other}'" in sql and "'main'" not in sql for sql in looks)
    there = deltalake.DeltaTable(f"{warehouse._lake.root}/core/bookings").to_pyarrow_table().to_pylist()
    assert Counter(row["connection_id"] for row in there) == {"main": 3, other: 1}


def test_every_reader_can_read_every_table_and_finds_what_has_landed(warehouse):
    warehouse.land(first())
    root, there = warehouse._lake.root, rows_of(warehouse)
    landed = deltalake.DeltaTable(f"{root}/octo_sync_landed").to_pyarrow_table().to_pylist()
    assert {row["table_name"] for row in landed} == set(there)
    for row in landed:
        table = warehouse._lake.tables[row["table_name"]]
        path = f"{root}{'.private' if table.private else ''}/{table.schema}/{table.name}"
        found = deltalake.DeltaTable(path, version=row["version"])
        assert (found.protocol().min_reader_version, found.protocol().reader_features) == (1, None), path
        meant = {f.name: f.metadata.get("comment") for f in found.schema().fields}
        assert {c.name: c.description for c in table.all_columns}.items() <= meant.items()
        with duckdb.connect() as db:
            db.register("rows", found.to_pyarrow_dataset())
            db.execute("set timezone = 'UTC'")
            told = ", ".join(f"{c.name}::{c.type}" for c in table.all_columns)
            assert sorted(map(repr, db.sql(f"select {told} from rows").fetchall())) == there[table.full_name]


def test_what_a_command_changes_is_in_the_lake(warehouse):
    """Also of tables that a landing of these nouns leaves alone."""
    warehouse.land(first())
    warehouse.run_script(["delete from core.availability where local_date >= date '2026-12-01'"])
    assert deltalake.DeltaTable(f"{warehouse._lake.root}/core/availability").to_pyarrow_table().num_rows == 1


@pytest.mark.deep(2)
def test_an_equal_answer_writes_nothing_but_when_it_was_verified(warehouse):
    warehouse.land(first())
    before = files(warehouse)
    answer = dataclasses.replace(december([booking(1, name=NAME), booking(2)], 10), request_seq=30)
    warehouse.land(landing(dataclasses.replace(answer, unchanged=True, lines=(), noun="bookings"), minutes=1))
    after = files(warehouse)
    assert {name for name in after if after[name] != before[name]} == {"ops.coverage"}


# -- who is killed, and who writes twice -------------------------------------------------------------------------------------


class Killed(BaseException):
    """The process is gone."""


@pytest.mark.parametrize("host", ["here", "there"])
@pytest.mark.parametrize("is_written", [False, True])
@pytest.mark.deep(25, everyday=1)
def test_a_kill_at_any_write_leaves_the_landing_whole_or_not_at_all(
    open_warehouse, monkeypatch, tier, host, is_written
):
    """Of tables that cannot be written in one transaction none is ahead of another, and the same landing comes out the same."""
    real = lake.Lake._put
    with contextlib.closing(open_warehouse("whole")) as whole:
        whole.claim_writer(1, "test")
        whole.land(first())
        before = rows_of(whole)
        whole.land(second())
        after = rows_of(whole)
    outcomes = []
    for last in range(tier.choose(3, 1, 0), 20, tier.choose(9, 2, 1)):
        left = [last]

        def put(*arguments, left=left, **named):
            left[0] -= 1
            if left[0] < 0 and not is_written:
                raise Killed
            done = real(*arguments, **named)
            if left[0] < 0:
                raise Killed
            return done

        name = f"cut-{last}"
        torn = open_warehouse(name)
        torn.claim_writer(1, "test")
        torn.land(first())
        with monkeypatch.context() as patched, contextlib.suppress(Killed):
            patched.setattr(lake.Lake, "_put", put)
            torn.land(second())
        torn.close()
        with contextlib.closing(open_warehouse(name, host)) as found:
            there = rows_of(found)
            assert there in (before, after), last
            newest = {n: deltalake.DeltaTable(p).version() for n, p in found._lake._paths.items() if n != lake.STATE}
            assert newest == found._lake.versions, "nor does one who reads the newest version see a part of it"
            found.claim_writer(2, "next")
            found.land(second(fence=2))
            assert rows_of(found) == after, last
        outcomes.append(there == after)
        if left[0] >= 0:
            break
    assert left[0] >= 0, "the last one was not killed at all"
    assert outcomes == sorted(outcomes)
    assert not outcomes[0]


def lost(does):
    """What is asked of an object store is done, and the answer does not come."""

    def asked(*arguments, **named):
        does(*arguments, **named)
        raise OSError("the connection broke")

    return asked


def test_a_landing_and_a_publish_whose_answers_are_lost_are_there_once(warehouse, tmp_path, monkeypatch):
    warehouse.land(first())
    before = dict(warehouse._lake.versions)
    monkeypatch.setattr(deltalake, "write_deltalake", lost(deltalake.write_deltalake))
    warehouse.land(second())
    assert {after - before[name] for name, after in warehouse._lake.versions.items()} == {0, 1}
    assert warehouse.query("select count(*) from core.bookings").rows == [(4,)]
    shown(warehouse, tmp_path)
    assert len(published(warehouse._lake.root)["marts/sold"]) == 4


def test_a_lake_is_made_though_the_answers_are_lost(tmp_path, monkeypatch):
    monkeypatch.setattr(deltalake, "write_deltalake", lost(deltalake.write_deltalake))
    with contextlib.closing(opened(tmp_path)) as made:
        assert set(made._lake.versions.values()) == {0}
    monkeypatch.undo()
    opened(tmp_path, "there").close()


def test_rows_are_on_the_disk_before_they_count_and_all_of_it_before_the_landing_ends(warehouse, monkeypatch):
    """Else a power cut takes what the journal has as landed."""
    root = warehouse._lake.root
    before, flushed, real = files(warehouse), [], os.fsync

    def noted(number):
        flushed.append(str(Path(f"/proc/self/fd/{number}").readlink()))
        real(number)

    monkeypatch.setattr(os, "fsync", noted)
    warehouse.land(first())
    fresh = [f for name, found in files(warehouse).items() for f in found - before[name]]
    logs = [
        f"{warehouse._lake._paths[name]}/_delta_log/{version:020}.json"
        for name, version in landed_in(root).items()
        if version
    ]
    (state,) = [n for n, path in enumerate(flushed) if path.startswith(f"{root}/octo_sync_landed/_delta_log/0")]
    assert {*fresh, *logs} <= set(flushed[:state])
    assert {str(Path(file).parent) for file in fresh} <= set(flushed[:state])


def landed_in(root):
    """The versions of the tables that count."""
    rows = deltalake.DeltaTable(f"{root}/octo_sync_landed").to_pyarrow_table().to_pylist()
    return {row["table_name"]: row["version"] for row in rows}


@pytest.mark.deep(8)
def test_an_object_store_that_fails_costs_repeats_and_no_row(open_warehouse, monkeypatch):
    real, dice = deltalake.write_deltalake, random.Random(5)
    with contextlib.closing(open_warehouse("calm")) as calm:
        calm.claim_writer(1, "test")
        calm.land(first())
        calm.land(second())
        wanted = contract.say(calm)
    failures = []

    def failing(*arguments, **named):
        if dice.random() < 0.2:
            failures.append("before")
            raise OSError("503")
        real(*arguments, **named)
        if dice.random() < 0.2:
            failures.append("after")
            raise OSError("503")

    with contextlib.closing(open_warehouse()) as shaken:
        shaken.claim_writer(1, "test")
        monkeypatch.setattr(deltalake, "write_deltalake", failing)
        for work in (first(), second()):
            for _ in range(30):
                try:
                    shaken.land(work)
                    break
                except WarehouseError:
                    continue
        monkeypatch.undo()
        assert {"before", "after"} <= set(failures)
        assert contract.say(shaken) == wanted


def test_contacts_that_are_ahead_of_their_booking_are_so_in_the_lake_only_with_a_word_to_look_anew(
    open_warehouse, monkeypatch
):
    """The private file is written first. The landing then failed, and something else was written."""
    with contextlib.closing(open_warehouse()) as here:
        here.claim_writer(1, "here")
        here.land(first())

        def fails(_):
            raise WarehouseError("no space")

        monkeypatch.setattr(LandingWork, "land", fails)
        with pytest.raises(WarehouseError, match="no space"):
            here.land(landing(december([booking(1, name="Other"), booking(2)], 20), minutes=1))
        monkeypatch.undo()
        here.write_log("core.connections", [{"connection_id": "main", "is_active": True}])
    with contextlib.closing(open_warehouse(host="there")) as there:
        assert ("Other",) in there.query("select full_name from personal.private.booking_contacts").rows
        hashes = "select distinct answer_hash from ops.coverage where resource = 'bookings'"
        assert there.query(hashes).rows == [(None,)]


def test_a_copy_that_another_machine_went_on_from_is_made_anew(open_warehouse):
    with contextlib.closing(open_warehouse()) as here:
        here.claim_writer(1, "here")
        here.land(first())
    with contextlib.closing(open_warehouse(host="there")) as there:
        assert there.highest_numbers() == (14, 1)
        there.claim_writer(2, "there")
        there.land(second(fence=2))
        wanted = rows_of(there)
    with contextlib.closing(open_warehouse()) as here:
        assert rows_of(here) == wanted
        assert here.highest_numbers() == (20, 2)


def test_an_older_writer_is_refused_and_writes_nothing(open_warehouse):
    older = open_warehouse()
    older.claim_writer(1, "older")
    older.land(first())
    newer = open_warehouse(host="there")
    newer.claim_writer(2, "newer")
    before = files(newer)
    with pytest.raises(WriterFenced, match="token 2"):
        older.land(second())
    with pytest.raises(WriterFenced):
        older.claim_writer(1, "older")
    assert files(newer) == before
    older.close()
    newer.land(second(fence=2))
    newer.close()


@pytest.mark.deep(4)
def test_what_an_older_writer_wrote_when_the_newer_one_took_over_is_undone(open_warehouse, monkeypatch):
    """It had looked, and then stood still for a while."""
    older = open_warehouse()
    older.claim_writer(1, "older")
    older.land(first())
    newer = open_warehouse(host="there")
    committed = older._lake.commit

    def late(fence):
        newer.claim_writer(2, "newer")
        committed(fence)

    monkeypatch.setattr(older._lake, "commit", late)
    with pytest.raises(WriterFenced, match="token 2"):
        older.land(landing(december([booking(n) for n in range(1, 9)], 20), minutes=1))
    older.close()
    newest = f"{newer._lake.root}/core/bookings"
    assert deltalake.DeltaTable(newest).to_pyarrow_table().num_rows == 9
    newer.land(second(fence=2))
    assert contract.live(newer, "core.bookings", "booking_uuid") == ["uuid-1", "uuid-2", "uuid-3", "uuid-9"]
    assert deltalake.DeltaTable(newest).to_pyarrow_table().num_rows == 4
    newer.close()


# -- schemas -------------------------------------------------------------------------------------------------------------------


@pytest.mark.deep(4)
def test_a_lake_of_an_older_schema_gains_what_it_lacks_and_keeps_its_rows(tmp_path, monkeypatch):
    former = [
        dataclasses.replace(t, columns=t.columns[:-1]) if t.full_name == "ops.recon_results" else t
        for t in all_tables()
        if t.full_name != "ops.closed_periods"
    ]
    with monkeypatch.context() as patched:
        patched.setattr(lake, "SCHEMA_VERSION", 1)
        with contextlib.closing(opened(tmp_path, tables=former)) as older:
            older.claim_writer(1, "older")
            older.land(first())
            before = rows_of(older)
    with contextlib.closing(opened(tmp_path)) as newer:
        assert [step.version for step in newer.migrated] == list(range(2, SCHEMA_VERSION + 1))
        after = rows_of(newer)
        assert {name: after[name] for name in before} == before
    with contextlib.closing(opened(tmp_path, "there")) as there:
        assert there.migrated == ()
        assert rows_of(there) == after
        fields = {f.name for f in deltalake.DeltaTable(f"{there._lake.root}/ops/recon_results").schema().fields}
        [gained] = [t.columns[-1].name for t in all_tables() if t.full_name == "ops.recon_results"]
        assert gained in fields
        assert deltalake.DeltaTable(f"{there._lake.root}/core/bookings").metadata().partition_columns


def test_a_lake_whose_making_was_cut_off_is_made_as_it_should_be(tmp_path, monkeypatch):
    (wanted,) = (t for t in all_tables() if t.full_name == "ops.recon_results")

    def killed(*_):
        raise Killed

    former = [dataclasses.replace(t, columns=t.columns[:-1]) if t == wanted else t for t in all_tables()]
    with monkeypatch.context() as patched:
        patched.setattr(lake.Lake, "commit", killed)
        with pytest.raises(Killed):
            opened(tmp_path, tables=former)
    with contextlib.closing(opened(tmp_path)) as made:
        fields = deltalake.DeltaTable(f"{made._lake.root}/ops/recon_results").schema().fields
        meant = {field.name: field.metadata.get("comment") for field in fields}
        assert {c.name: c.description for c in wanted.columns}.items() <= meant.items()


def test_a_lake_of_a_newer_schema_is_left_alone(tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(lake, "SCHEMA_VERSION", 99)
        opened(tmp_path).close()
    with pytest.raises(WarehouseError, match="newer octo-sync"):
        opened(tmp_path)


# -- personal data ----------------------------------------------------------------------------------------------------------


def holding(directory, text):
    """The files below a directory that hold a text: in their bytes, or as a value of a column."""
    found = set()
    for file in (p for p in directory.rglob("*") if p.is_file()):
        inside = json.dumps(pq.read_table(file).to_pylist(), default=str) if file.suffix == ".parquet" else ""
        if text.encode() in file.read_bytes() or text in inside:
            found.add(file.relative_to(directory).parts[0])
    return found


def test_a_name_is_in_the_location_of_its_own_and_nowhere_once_it_is_erased(open_warehouse, tmp_path):
    warehouse = open_warehouse()
    warehouse.claim_writer(1, "test")
    warehouse.land(first())
    assert "lake.private" in holding(tmp_path / "octo", NAME)
    assert holding(tmp_path / "octo", NAME) <= {"lake.private", "here"}
    with warehouse.scrubbing(1) as scrubber:
        (theirs,) = (row for row in scrubber.contacts() if row.full_name == NAME)
        gone = ContactRow(
            **dict(zip(("connection_id", "booking_uuid", "unit_item_uuid"), theirs.key, strict=True)), erased_at_utc=NOW
        )
        scrubber.replace_contacts([gone], NOW)
    warehouse.shed(core=True)
    warehouse.close()
    assert holding(tmp_path / "octo", NAME) == set()


@pytest.mark.deep(7)
def test_what_a_shop_wrote_about_a_booking_goes_from_core_and_from_former_marts(open_warehouse, tmp_path):
    record = booking(1) | {"supplierReference": NAME}
    warehouse = open_warehouse()
    warehouse.claim_writer(1, "test")
    warehouse.land(landing(december([record], 10)))
    warehouse.land(landing(departures([slot(5)], 11), answered("products", [product()], 12)))
    warehouse.write_log("core.connections", [{"connection_id": "main", "channel": "main", "is_active": True}])
    shown(warehouse, tmp_path, publish)
    assert {"lake", "read"} <= holding(tmp_path / "octo", NAME)
    with warehouse.scrubbing(1) as scrubber:
        (texts,) = scrubber.bookings([("main", "uuid-1")])
        scrubber.scrub_bookings([dataclasses.replace(texts, supplier_reference=None)], [])
    warehouse.shed(core=True)
    shown(warehouse, tmp_path, publish)
    warehouse.shed_published()
    warehouse.close()
    assert holding(tmp_path / "octo", NAME) == set()


# -- publishing --------------------------------------------------------------------------------------------------------------


def shown(warehouse, directory, make=None):
    """Publish a mart that counts bookings, or what `make` makes; where readers find it."""
    target = directory / "octo" / "read" / "octo.read.duckdb"
    if make is not None:
        done = make(warehouse, directory, target)
        assert done.size, done.failed
        return target
    with warehouse.drafting(target) as draft:
        draft.run_script(
            [
                "drop schema if exists marts cascade",
                "create schema marts",
                "create view marts.booked as select count(*) as n, timestamp '2026-01-02 09:30' as here from core.bookings",
                "create view marts.sold as select booking_uuid from core.bookings",
            ]
        )
        draft.publish()
    return target


def published(root):
    """What readers see: the rows of each table at the version that belongs to the others."""
    state = deltalake.DeltaTable(f"{root}/octo_sync_published").to_pyarrow_table().to_pylist()
    found = {
        row["table_name"]: deltalake.DeltaTable(f"{root}/{row['table_name']}", version=row["version"]) for row in state
    }
    assert all(table.protocol().min_reader_version == 1 for table in found.values())
    return {name: sorted(map(repr, table.to_pyarrow_table().to_pylist())) for name, table in found.items()}


def test_readers_see_marts_and_tables_of_one_publish(warehouse, tmp_path):
    root = warehouse._lake.root
    warehouse.land(first())
    shown(warehouse, tmp_path)
    seen = published(root)
    assert len(seen["core/bookings"]) == len(seen["marts/sold"]) == 3
    assert seen["marts/booked"] == ["{'n': 3, 'here': '2026-01-02T09:30:00'}"]
    assert not any(name.startswith(("private/", "raw/")) for name in seen)
    warehouse.land(second())
    assert published(root) == seen, "what landed since is shown by the next publish"
    shown(warehouse, tmp_path)
    assert len(published(root)["core/bookings"]) == len(published(root)["marts/sold"]) == 4
    shown(warehouse, tmp_path)
    assert len(published(root)["marts/sold"]) == 4
    version = {name: deltalake.DeltaTable(f"{root}/{name}").version() for name in ("marts/sold", "octo_sync_published")}
    assert version == {"marts/sold": 1, "octo_sync_published": 2}, "equal rows are not written again"


def test_a_publish_that_breaks_in_the_lake_shows_nothing_of_itself(warehouse, tmp_path, monkeypatch):
    root = warehouse._lake.root
    warehouse.land(first())
    shown(warehouse, tmp_path)
    seen, real = published(root), deltalake.write_deltalake
    warehouse.land(second())

    def broken(where, *arguments, **named):
        if getattr(where, "table_uri", where).rstrip("/").endswith("marts/sold"):
            raise OSError("no space")
        real(where, *arguments, **named)

    monkeypatch.setattr(deltalake, "write_deltalake", broken)
    with pytest.raises(WarehouseError, match="no space"):
        shown(warehouse, tmp_path)
    assert published(root) == seen
    monkeypatch.undo()
    shown(warehouse, tmp_path)
    assert published(root)["marts/booked"] == ["{'n': 4, 'here': '2026-01-02T09:30:00'}"]


def test_a_draft_that_is_not_published_is_not_in_the_lake(warehouse, tmp_path):
    with warehouse.drafting(tmp_path / "octo.read.duckdb") as draft:
        draft.run_script(["create schema if not exists marts", "create view marts.seen as select 1 as x"])
        draft.withdraw()
    assert not deltalake.DeltaTable.is_deltatable(f"{warehouse._lake.root}/octo_sync_published")


def test_a_store_that_does_not_answer_is_one_clear_line(monkeypatch):
    at = {"ENDPOINT_URL": "http://127.0.0.1:1", "ACCESS_KEY_ID": "a", "SECRET_ACCESS_KEY": "b", "ALLOW_HTTP": "true"}
    for name, value in at.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    with pytest.raises(WarehouseError) as error:
        lake.Lake("s3://bucket/octo", []).look()
    said = "s3://bucket/octo cannot be written as Delta tables: Generic S3 error: Connection refused (os error 111)"
    assert str(error.value) == said
