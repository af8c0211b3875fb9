"""Who is forgotten leaves every table and every byte, and no later pull brings them back; others keep what they have."""

import asyncio
import contextlib
import dataclasses
import json
import shutil
import sqlite3
import unicodedata
from collections import Counter
from itertools import pairwise
from random import Random
from types import SimpleNamespace

import duckdb
import pytest
from tests.flows.harness import NOON, Wire, api_path, reply, until

from octo_sync.app.places import files
from octo_sync.app.project import open_journal
from octo_sync.destinations.erasing import ContactRow, Scrubber
from octo_sync.errors import WarehouseError
from octo_sync.flows.backup.save import back_up, read_manifest, restore
from octo_sync.flows.contacts import Privacy
from octo_sync.flows.naming import addresses_in, marks_of, name_of, normal_phone, normal_text, repeats, texts_of
from octo_sync.flows.privacy import erase as erasing
from octo_sync.flows.privacy.erase import erase, is_due
from octo_sync.flows.privacy.export import export
from octo_sync.flows.sync import land as landing
from octo_sync.flows.sync.keep import Keeper
from octo_sync.flows.sync.pull import Scope
from octo_sync.flows.sync.run import sync
from octo_sync.flows.webhooks.receive import Inbox, Routing
from octo_sync.journal import Erasure, Received
from octo_sync.model import Source, Subject, SubjectKind
from octo_sync.octo.records import Contact

MARKS = {
    "fullName": "Zoë Quuxowitz-Þorn",
    "firstName": "Zoë",
    "lastName": "Quuxowitz-Þorn",
    "emailAddress": "Zoe.Quux@Example.org",
    "phoneNumber": "+44 7700 900 123",
    "postalCode": "QX1 9ZZ",
}
NOTES = "Quuxowitz eats no nuts"
NEEDLES = [*(MARKS[n] for n in ("fullName", "emailAddress", "phoneNumber")), "Quuxowitz", NOTES]
OTHER = {
    "fullName": "Ada Keeps-Hers",
    "firstName": "Ada",
    "lastName": "Keeps-Hers",
    "emailAddress": "ada@example.org",
    "phoneNumber": "+351 912 345 678",
}
BOB = {"fullName": "Bob Elsewhere", "emailAddress": "bob@example.org"}


def forms(text):
    """A text as a file may hold it."""
    escaped = json.dumps(text)[1:-1]
    return {
        text.encode(),
        escaped.encode(),
        escaped.upper().replace("\\U", "\\u").encode(),
        text.encode("utf-16-le"),
        text.encode("utf-16-be"),
    }


def holding(directory, needles=tuple(NEEDLES)):
    """Every file below the directory that holds a needle in any form."""
    wanted = {form for needle in needles for form in forms(needle)}
    return sorted(
        str(file.relative_to(directory))
        for file in directory.rglob("*")
        if file.is_file() and any(form in file.read_bytes() for form in wanted)
    )


def rows_holding(directory, needles=tuple(NEEDLES)):
    """Every table, in DuckDB and in SQLite, with a value that holds a needle: what compression hides from `holding`."""
    found = set()
    with duckdb.connect(":memory:") as db:
        db.execute("set timezone = 'UTC'")
        for file in directory.glob("*.duckdb"):
            db.execute(f"attach '{file}' as \"{file.name}\" (read_only)")
            for schema, table in db.execute(
                "select table_schema, table_name from information_schema.tables where table_catalog = $1", [file.name]
            ).fetchall():
                for row in db.execute(f'select * from "{file.name}"."{schema}"."{table}"').fetchall():
                    if said(row, needles):
                        found.add(f"{file.name}: {schema}.{table}")
    journal = sqlite3.connect(directory / "octo.journal.sqlite")
    for (table,) in journal.execute("select name from sqlite_schema where type = 'table'").fetchall():
        if any(said(row, needles) for row in journal.execute(f'select * from "{table}"')):
            found.add(f"journal: {table}")
    journal.close()
    return found


def said(row, needles):
    """Whether a value of a row holds a needle, plain or escaped for JSON."""
    texts = [value.decode(errors="replace") if isinstance(value, bytes) else str(value) for value in row]
    return any(form in text for needle in needles for form in (needle, json.dumps(needle)[1:-1]) for text in texts)


@pytest.fixture
def guest(service):
    """Three bookings: one of hers, one on which she is a traveller of somebody else's, one that only others are on."""
    booked = [b["uuid"] for b in service.state()["bookings"] if b["status"] == "CONFIRMED"][:3]
    hers, shared, others = booked
    service.change(hers, contact=MARKS, notes=NOTES, reseller_reference="for Zoë Quuxowitz-Þorn")
    service.change(shared, contact=OTHER, notes=f"with {MARKS['fullName']}")
    service.change(others, contact=OTHER, notes="Ada wants a window seat")
    return hers, shared, others


def wire(guest, tickets=None, **more):
    """The service, with her also on a ticket of the second booking; `tickets`: booking → contact of its first ticket."""

    def edit(request, answer):
        if not api_path(request).startswith("/bookings"):
            return None
        rows = answer.json()
        for row in rows if isinstance(rows, list) else [rows]:
            if row["uuid"] == guest[1]:
                row["unitItems"][0]["contact"].update(MARKS)
            if row["uuid"] in (tickets or {}):
                row["unitItems"][0]["contact"] = tickets[row["uuid"]]
            row.update(more.get(row["uuid"], {}))
        return reply(rows)

    return Wire.by(edit)


def delivery(copy, body):
    return Received(connection="main", endpoint="e", received_at=copy.clock.now(), body=body, type="BOOKING_UPDATE")


PULLED = []
"""The directory of the first project that was pulled as it is by default; a copy of it is there sooner than another pull."""


async def pulled(project, guest, transport=None, **asked):
    """Her data in every place that can hold it: tables, payloads, read copy, copy of the contacts, deliveries."""
    copy = project(publish=True, availability=(0, 3), **asked)
    usual = transport is None and not asked and copy.destination is None
    if usual and PULLED:
        shutil.rmtree(copy.directory)
        shutil.copytree(PULLED[0], copy.directory)
        copy.runs += 100  # its runs have names of their own
        return copy
    with copy.file.open("a") as file:
        file.write("[publish]\ncontacts = true\n")
    async with copy.opened(transport=transport or wire(guest)) as opened:
        await sync(opened.ports, Scope(full=True), command="test")
        opened.journal.inbox.accept(
            [
                delivery(copy, json.dumps({"data": {"uuid": guest[0], "contact": MARKS}}).encode()),
                delivery(copy, json.dumps({"data": {"uuid": guest[2]}}).encode()),
            ]
        )
    if usual:
        PULLED.append(shutil.copytree(copy.directory, copy.directory.with_name("as pulled")))
    return copy


def request(journal, privacy, *, emails, phones, bookings):
    """Ask for persons and bookings to be forgotten."""
    return journal.erasures.request(privacy.people(emails, phones), bookings)


async def forget(copy, **who):
    """As the command does it, in one process."""
    asked = {"emails": [], "phones": [], "bookings": []} | who
    async with copy.opened() as opened:
        made = request(opened.journal, opened.ports.privacy, **asked)
        (done,) = erase(opened.ports)
        assert done.id == made.id
    return done


def others(copy, guest):
    """What is kept of other people, payloads and rows."""
    uuids = f"booking_uuid not in ('{guest[0]}', '{guest[1]}')"
    return (
        copy.query(f"select * from personal.private.booking_contacts where {uuids} order by all"),
        copy.query(f"select * from personal.raw.records where key not in ('{guest[0]}', '{guest[1]}') order by all"),
        copy.query(f"select * from core.bookings where {uuids} order by all"),
    )


@pytest.mark.deep(5)
async def test_a_file_that_hides_what_it_holds_is_named_and_not_counted_as_clean(project, service, guest):
    copy = await pulled(project, guest)
    backup = copy.directory / "backup"
    backup.mkdir()
    for aside in (copy.directory / "octo.private.before-1.duckdb", backup / "private.duckdb"):
        shutil.copyfile(copy.directory / "octo.private.duckdb", aside)
    (copy.directory / "guests.parquet").write_bytes(b"PAR1 and whatever is packed in it")

    done = await forget(copy, emails=["zoe.quux@example.org"])

    assert done.done_at is not None
    named = {sentence.split(" ")[0] for sentence in done.left}
    assert named == {"octo.private.before-1.duckdb", "backup/private.duckdb", "guests.parquet"}


@pytest.mark.deep(6)
async def test_files_are_searched_in_any_spelling_and_for_an_address_that_is_the_end_of_another_ones(
    project, service, guest
):
    bob = {**BOB, "emailAddress": "joe" + MARKS["emailAddress"]}
    service.change(guest[2], contact=bob, notes=f"a friend of {MARKS['fullName']}, he says")
    copy = await pulled(project, guest, wire(guest))
    name, email = MARKS["fullName"], MARKS["emailAddress"]
    spelled = {
        "small": f"1;{email.lower()};2".encode(),
        "wide": f"<{email.upper()}>".encode("utf-16-le"),
        "code page": name.encode("cp1252"),
        "apart": unicodedata.normalize("NFD", name).encode(),
        "his": f"joe{email}".encode(),
        "his, wide": f"1,joe{email},2".encode("utf-16-le"),
        "his, wide too": f"1,joe{email},2".encode("utf-16-be"),
    }
    for file, data in spelled.items():
        (copy.directory / file).write_bytes(data)

    done = await forget(copy, emails=[email])

    assert set(done.holding) == {"small", "wide", "code page", "apart"}
    assert len(done.left) == 4, "the private file holds his address and his note, and that is right"


async def test_an_erased_person_is_in_no_byte_of_the_project_and_a_full_pull_does_not_bring_her_back(
    project, service, guest
):
    copy = await pulled(project, guest)
    before = set(holding(copy.directory))
    assert {"octo.private.duckdb", "octo.read.private.duckdb", "octo.duckdb", "octo.read.duckdb"} <= before
    assert {name for name in before if name.startswith("octo.journal.sqlite")}
    assert {
        "octo.private.duckdb: private.booking_contacts",
        "octo.private.duckdb: raw.records",
        "journal: deliveries",
    } <= (rows_holding(copy.directory))
    kept, digests = others(copy, guest), {d.table: d for d in await copy.digests()}

    done = await forget(copy, emails=[" zoe.quux@EXAMPLE.org"])

    assert done.done_at is not None
    assert done.left == ()
    assert done.counts["private.booking_contacts"] == 2
    assert done.counts["core.bookings"] == 2
    assert done.counts["journal: deliveries"] == 1
    assert done.counts["raw.records"] >= 2
    assert holding(copy.directory) == []
    assert rows_holding(copy.directory) == set()
    assert others(copy, guest) == kept
    after = {d.table: d for d in await copy.digests()}
    # Her name in a reference went; nothing else in core is compared.
    assert {name for name in digests if digests[name] != after[name]} == {"core.bookings"}
    (lead,) = copy.query(
        "select email_address, notes from personal.private.booking_contacts "
        "where booking_uuid = $1 and unit_item_uuid = ''",
        guest[1],
    )
    assert lead == (OTHER["emailAddress"], None), "the booking is Ada's, the note was about both"

    await copy.sync(transport=wire(guest), publishing=True)

    assert holding(copy.directory) == []
    assert rows_holding(copy.directory) == set()
    assert others(copy, guest)[:2] == kept[:2]
    assert copy.query("select contact_key from core.bookings where booking_uuid = $1", guest[0]) == [(None,)]

    changed = {guest[0]: {"notes": "Quuxowitz changed her mind"}, guest[1]: {"notes": NOTES}}
    await copy.sync(transport=wire(guest, **changed), publishing=True)

    assert rows_holding(copy.directory) == set(), "a change at the service brings her back"
    assert holding(copy.directory) == []


@pytest.mark.deep(5)
async def test_an_erased_booking_whose_service_spells_its_uuid_otherwise_stays_erased(project, service, guest):
    copy = await pulled(project, guest)
    await forget(copy, bookings=[guest[0]])
    await copy.sync(transport=wire(guest, **{guest[0]: {"uuid": guest[0].upper()}}), publishing=True)
    rows = "select email_address from personal.private.booking_contacts where lower(booking_uuid) = $1"
    assert {email for (email,) in copy.query(rows, guest[0])} <= {None}
    assert not [row for row in copy.query("select payload from personal.raw.records") if guest[0].upper() in str(row)]


@pytest.mark.deep(8)
async def test_a_later_booking_of_an_erased_person_is_kept_without_her(project, service, guest):
    copy = await pulled(project, guest)
    await forget(copy, emails=[MARKS["emailAddress"]])
    service.change(guest[2], contact=MARKS, notes=NOTES)

    await copy.sync(transport=wire(guest), publishing=True)

    assert rows_holding(copy.directory) == set()
    assert holding(copy.directory) == []
    found = copy.query("select status, contact_key from core.bookings where booking_uuid = $1", guest[2])
    assert found == [("CONFIRMED", None)]


@pytest.mark.deep(2)
async def test_a_booking_is_erased_by_its_uuid_with_everybody_on_it(project, guest):
    copy = await pulled(project, guest)

    await forget(copy, bookings=[guest[1]])

    found = copy.query(
        "select count(*) from personal.private.booking_contacts where booking_uuid = $1 and not is_deleted", guest[1]
    )
    assert found == [(0,)]
    await copy.sync(transport=wire(guest), publishing=True)
    found = copy.query(
        "select count(*), count(full_name) from personal.private.booking_contacts where booking_uuid = $1", guest[1]
    )
    assert found[0][0] > 0, "the marks of what was erased stay"
    assert found[0][1] == 0
    assert copy.query("select count(*) from personal.raw.records where key = $1", guest[1]) == [(0,)]
    # Her other booking was not named.
    assert copy.query(
        "select count(*) from personal.private.booking_contacts where email_address = $1", MARKS["emailAddress"]
    ) == [(1,)]


@pytest.mark.deep(7)
async def test_a_payload_of_the_time_when_the_booking_was_hers_goes_too(project, service, guest):
    copy = await pulled(project, guest)
    service.change(guest[0], contact=OTHER, notes=None, reseller_reference=None)
    await copy.sync(transport=wire(guest), publishing=True)
    assert copy.query(
        "select count(*) from personal.private.booking_contacts where booking_uuid = $1 and full_name = $2",
        guest[0],
        MARKS["fullName"],
    ) == [(0,)]
    assert copy.query("select count(*) from personal.raw.records where key = $1", guest[0]) == [(2,)]

    await forget(copy, phones=["0044 (7700) 900123"])

    assert copy.query("select payload like '%Ada%' from personal.raw.records where key = $1", guest[0]) == [(True,)]
    assert rows_holding(copy.directory) == set()
    assert holding(copy.directory) == []


@pytest.mark.deep(5)
@pytest.mark.parametrize("step", ["note", "blank", "compact", "replace_contacts", "shed", "publish_everywhere"])
async def test_an_erasure_that_was_cut_off_anywhere_is_finished_by_the_next_command_that_writes(
    project, guest, monkeypatch, step
):
    copy = await pulled(project, guest)

    class Killed(BaseException):
        pass

    def kill(*_args, **_kwargs):
        raise Killed

    async with copy.opened() as opened:
        request(opened.journal, opened.ports.privacy, emails=[MARKS["emailAddress"]], phones=[], bookings=[])
        journal = opened.ports.journal
        target = {
            "note": journal.erasures,
            "blank": journal.inbox,
            "compact": journal,
            "replace_contacts": Scrubber,
            "shed": opened.ports.warehouse,
            "publish_everywhere": erasing,
        }[step]
        with monkeypatch.context() as patch:
            patch.setattr(target, step, kill)
            with pytest.raises(Killed):
                erase(opened.ports)
        assert is_due(opened.ports)

    async with copy.opened() as opened:
        assert not is_due(opened.ports)

    assert rows_holding(copy.directory) == set()
    assert holding(copy.directory) == []


@pytest.mark.deep(6)
async def test_after_an_erasure_was_cut_off_files_are_looked_at_though_nobody_knows_the_texts_any_more(
    project, guest, monkeypatch
):
    copy = await pulled(project, guest)
    shutil.copyfile(copy.directory / "octo.private.duckdb", copy.directory / "aside.duckdb")

    class Killed(BaseException):
        pass

    def kill(*_args, **_kwargs):
        raise Killed

    async with copy.opened() as opened:
        request(opened.journal, opened.ports.privacy, emails=[MARKS["emailAddress"]], phones=[], bookings=[])
        with monkeypatch.context() as patch:
            patch.setattr(opened.ports.warehouse, "shed", kill)
            with pytest.raises(Killed):
                erase(opened.ports)

    async with copy.opened() as opened:
        (done,) = opened.journal.erasures.rows()

    assert done.done_at is not None
    unsearched = [sentence for sentence in done.left if "cut off" in sentence]
    assert len(unsearched) == 1, "what a plain file holds could not be looked for, which is not the same as nothing"
    assert [s.split(" ")[0] for s in done.left if s not in unsearched] == ["aside.duckdb"]


@pytest.mark.deep(6)
async def test_a_reason_of_a_cancellation_leaves_the_bytes_too_though_no_text_of_hers_is_in_it(project, guest):
    reason = "the daughter of our guest, Xyzzyvort-Plugh, fell ill"
    cancelled = {"refund": "NONE", "reason": reason, "utcCancelledAt": "2026-11-19T10:00:00Z"}
    more = {guest[0]: {"status": "CANCELLED", "cancellation": cancelled, "resellerReference": "R-1"}}
    copy = await pulled(project, guest, wire(guest, **more))
    assert "octo.duckdb" in holding(copy.directory, (reason,))

    await forget(copy, emails=[MARKS["emailAddress"]])

    assert holding(copy.directory, (reason,)) == []
    await copy.sync(transport=wire(guest, **more), publishing=True)
    assert holding(copy.directory, (reason,)) == []
    assert rows_holding(copy.directory, (reason,)) == set()


@pytest.mark.deep(6)
async def test_what_a_service_said_of_somebody_in_a_refusal_leaves_quarantine_and_runs_and_the_copies_too(
    project, service, guest
):
    # No text of core repeats him, which would have the file written anew in any case.
    service.change(guest[2], contact=BOB, notes="")
    copy = await pulled(project, guest, sync={"attempts": 1})
    said, text = f"The contact {BOB['emailAddress']} is not valid.", (BOB["emailAddress"],)
    error = {"error": "UNPROCESSABLE_ENTITY", "errorMessage": said}

    def refuse(request, answer):
        return reply(error, 400) if api_path(request) == f"/bookings/{guest[2]}" else None

    async with copy.opened(transport=Wire.by(refuse)) as opened:
        # A run that is older than those that the journal still tells of.
        opened.warehouse.write_log("ops.runs", [{"run_id": "old", "command": "sync", "pipeline": "p", "error": said}])
        opened.journal.subjects.mark([Subject("main", SubjectKind.BOOKING, (guest[2],))], Source.NOTIFICATION)
        await sync(opened.ports, Scope(full=True), command="test")
    tables = {f"{file}: ops.{name}" for file in ("octo.duckdb", "octo.read.duckdb") for name in ("quarantine", "runs")}
    assert tables <= rows_holding(copy.directory, text)

    done = await forget(copy, emails=[BOB["emailAddress"]])

    assert (done.left, done.counts["journal: messages"] > 0) == ((), True)
    assert rows_holding(copy.directory, text) == set()
    assert holding(copy.directory, text) == []
    with duckdb.connect(copy.directory / "octo.read.duckdb", read_only=True) as db:
        texts = db.execute("select reason from ops.quarantine union all select error from ops.runs where error > ''")
        assert texts.fetchall() == [("(erased)",)] * 2


NOBODY = {"fullName": "Anonymised Customer", "firstName": "Anonymised", "lastName": "Customer"}
NOBODY |= dict.fromkeys(("emailAddress", "phoneNumber", "postalCode"))


@pytest.mark.deep(7)
@pytest.mark.parametrize("anonymous", ["before", "after"])
async def test_a_reference_that_repeats_her_does_not_come_back_when_the_service_has_made_her_anonymous(
    project, service, guest, anonymous
):
    hers, shared, others_ = guest
    copy = project(publish=True, availability=(0, 3))
    of_item = {"supplierReference": "QUUXOWITZ-\u00deORN, Zoe/2"}

    def edit(request, answer):
        if not api_path(request).startswith("/bookings"):
            return None
        rows = answer.json()
        for row in rows if isinstance(rows, list) else [rows]:
            if row["uuid"] == hers:
                row["unitItems"][0].update(of_item)
        return reply(rows)

    transport = Wire.by(edit)
    service.change(hers, supplier_reference="Customer 4711", reseller_reference=f"web-{MARKS['emailAddress']}")
    service.change(shared, supplier_reference="GYG-1", reseller_reference="zoe.quux%40example.org")
    service.change(others_, supplier_reference="Customer 4712", reseller_reference="joezoe.quux@example.org")
    await copy.sync(transport=transport, publishing=True)
    assert "octo.duckdb: core.booking_unit_items" in rows_holding(copy.directory, of_item.values())

    if anonymous == "before":
        service.change(hers, contact=NOBODY, notes=None)
        await copy.sync(transport=transport, publishing=True)
    await forget(copy, emails=[MARKS["emailAddress"]])
    references = (
        "select supplier_reference, reseller_reference from core.bookings where booking_uuid in ($1, $2, $3) "
        "order by all"
    )
    left = [("Customer 4711", None), ("Customer 4712", "joezoe.quux@example.org"), ("GYG-1", None)]
    assert copy.query(references, *guest) == left
    of_ada = "select notes from personal.private.booking_contacts where booking_uuid = $1 and unit_item_uuid = ''"
    note = copy.query(of_ada, shared)

    for travellers in (2, 3):
        service.change(hers, contact=NOBODY, notes=f"{travellers} people")
        service.change(shared, supplier_reference="GYG-2")
        of_item["resellerReference"] = f"R-{travellers}"  # a row that is the same is not written
        await copy.sync(transport=transport, publishing=True)

        left[2] = ("GYG-2", None)
        assert copy.query(references, *guest) == left
        assert copy.query("select 1 from core.booking_unit_items where reseller_reference = $1", f"R-{travellers}")
        assert rows_holding(copy.directory, (of_item["supplierReference"], "oe.Quux@Ex")) == set()
        assert copy.query("select count(*) from personal.raw.records where payload like '%zoe.quux\\%40%'") == [(0,)]
        assert copy.query(of_ada, shared) == note != [(None,)], "a reference costs Ada no note"


def test_a_reference_repeats_a_person_in_any_order_without_accents_and_by_the_digits_of_a_number():
    marks = marks_of(
        Contact(
            full_name="Zo\u00eb Quarkington", first_name="Zo\u00eb", last_name="Quarkington",
            email_address="Zoe.Quark@Example.com", phone_number="+44 (0)7700 900555",
        )
    )  # fmt: skip
    for reference in (
        "QUARKINGTON, Zo\u00eb x2", "Zoe Quarkington", "Zoe\u0308 Quarkington", "quarkington2", "Q-17/QUARKINGTON",
        "tel 00447700900555", "+44 (0) 7700-900 555 2 people", "07700 900555", "web-zoe.quark@example.com",
        "zoe.quark%40example.com",
    ):  # fmt: skip
        assert repeats(reference, marks), reference
    for reference in ("GYG-4711", "Quarking 12", "Zoe x2", "zoe.quark@example", "7700900", "Quarkingtonshire"):
        assert not repeats(reference, marks), reference
    short = marks_of(Contact(full_name="Bo Li", email_address="bo@x.org"))
    assert [repeats(text, short) for text in ("LI, Bo", "bo.li 2", "Li 17")] == [True, True, False]
    assert not repeats("Customer 4711", marks_of(Contact(full_name="Anonymised Customer")))
    assert not repeats("GYG ----- 1", marks_of(Contact(full_name="'' ''", phone_number="-----", last_name="-")))
    assert repeats("OBRIEN", marks_of(Contact(full_name="Ann O'Brien", phone_number="1234567")))
    hashed = Privacy("hash", b"secret").reduced(Contact(first_name="Ann", last_name="Brien", phone_number="1234567"))
    assert marks_of(ContactRow(connection_id="c", booking_uuid="b", unit_item_uuid="", **hashed)) == set()


@pytest.mark.deep(6)
async def test_remarks_and_webhook_bodies_that_spell_her_otherwise_go_too(project, guest):
    copy = await pulled(project, guest)
    remarks = ["zoe.quux@EXAMPLE.org paid", "ask email=ZOE.QUUX%40example.org", "ZOE\u0308 QUUXOWITZ-\u00deORN called"]
    async with copy.opened() as opened:
        for text in (*remarks, "Ada called"):
            opened.journal.acts.note("comment", who="Eve", about="ledger", key="b-1", text=text, outcome="Noted.")
        bodies = [json.dumps({"by": email}).encode() for email in ("ZOE.QUUX@EXAMPLE.ORG", OTHER["emailAddress"])]
        opened.journal.inbox.accept([delivery(copy, body) for body in bodies])

    await forget(copy, emails=["zoe.quux@example.org"])

    async with copy.opened() as opened:
        said = [act.text for act in opened.journal.acts.last(4)]
        kept = {one.body for one in opened.journal.inbox.all_deliveries()}
    assert sorted(said) == ["(erased)"] * 3 + ["Ada called"]
    assert (bodies[0] in kept, bodies[1] in kept) == (False, True)


@pytest.mark.deep(6)
async def test_a_guest_without_a_full_name_is_known_by_first_and_last_name(project, guest):
    parts = {name: MARKS[name] for name in ("firstName", "lastName")}
    lead = {**MARKS, "fullName": None}
    transport = wire(guest, {guest[0]: parts, guest[1]: lead}, **{guest[0]: {"contact": lead}})
    copy = await pulled(project, guest, transport)
    named = "select count(*) from personal.private.booking_contacts where booking_uuid = $1 and last_name is not null"
    assert copy.query(f"{named} and full_name is null", guest[0]) == [(2,)]
    (copy.directory / "march.csv").write_text(f"name\n{MARKS['fullName']}\n")

    done = await forget(copy, emails=[MARKS["emailAddress"]])

    assert copy.query(f"{named} and last_name = $2", guest[0], MARKS["lastName"]) == [(0,)]
    assert [s.split(" ")[0] for s in done.left] == ["march.csv"]
    assert holding(copy.directory) == ["march.csv"]
    # Another booking of hers: the ticket has no address, only the name of the one who booked.
    again = wire(guest, {guest[1]: lead, guest[2]: parts}, **{guest[2]: {"contact": lead, "notes": None}})
    await copy.sync(transport=again, publishing=True)
    assert rows_holding(copy.directory) == set()
    assert holding(copy.directory) == ["march.csv"]


@pytest.mark.deep(6)
@pytest.mark.parametrize("place", ["ticket", "lead behind the booking's own note"])
async def test_notes_of_other_peoples_contacts_go_where_they_mention_her_or_are_on_her_booking(
    project, service, guest, place
):
    """The second place is in payloads alone: in the row the booking's note stands before that of its contact."""
    hers, shared, others_ = guest
    mention = {**OTHER, "notes": f"{MARKS['emailAddress']} told us"}
    tickets = {hers: {**OTHER, "notes": NOTES}}
    more = {shared: {"contact": {**OTHER, "notes": NOTES}, "notes": "window"}, others_: {"notes": "window"}}
    if place == "ticket":
        tickets[others_] = mention
    else:
        more[others_]["contact"] = mention
    copy = await pulled(project, guest, wire(guest, tickets, **more))
    assert rows_holding(copy.directory, (NOTES, MARKS["emailAddress"]))

    await forget(copy, emails=[MARKS["emailAddress"]])

    assert rows_holding(copy.directory) == set()
    assert holding(copy.directory) == []
    ada = "select count(*) from personal.private.booking_contacts where booking_uuid = $1 and email_address = $2"
    assert copy.query(ada, hers, OTHER["emailAddress"]) == [(1,)], "her contact stays"

    # Every booking is read anew, and the notes behind the booking's own come to the front.
    more = {uuid: {"notes": None, "resellerReference": "R-2", **more.get(uuid, {})} for uuid in guest}
    more[shared]["notes"] = more[others_]["notes"] = None
    await copy.sync(transport=wire(guest, tickets, **more), publishing=True)

    assert copy.query(
        "select distinct reseller_reference from core.bookings where booking_uuid in ($1, $2, $3)", *guest
    ) == [("R-2",)]
    assert rows_holding(copy.directory) == set()
    assert holding(copy.directory) == []
    assert copy.query(ada, others_, OTHER["emailAddress"])[0][0] >= 1


@pytest.mark.deep(3)
async def test_an_export_holds_no_contact_of_anybody_else(project, service, guest):
    """Not of the same booking, nor of a time when the booking was another's, nor from a webhook's body."""
    copy = await pulled(project, guest, wire(guest, {guest[0]: BOB}))
    service.change(guest[0], contact=OTHER, notes=None, reseller_reference=None)
    await copy.sync(transport=wire(guest, {guest[0]: BOB}), publishing=True)

    async with copy.opened() as opened:
        privacy = opened.ports.privacy

        def exported(email, *bookings):
            return export(opened.ports, privacy.people([email] if email else [], []), bookings)

        hers, adas = exported(MARKS["emailAddress"]), exported(OTHER["emailAddress"])
        shared, first = exported(None, guest[1]), exported(None, guest[0])

    def payloads(found, uuid):
        return [r["payload"] for r in found["raw.records"] if r["payload"]["uuid"] == uuid]

    def said(found):
        """All of it, e-mail addresses in every form, but no note."""
        text = json.dumps(found, default=str, ensure_ascii=False)
        return {who["fullName"] for who in (MARKS, OTHER, BOB) if who["emailAddress"] in text}

    assert said(hers) == {MARKS["fullName"]}
    assert said(adas) == {OTHER["fullName"]}
    assert said(shared) == {MARKS["fullName"], OTHER["fullName"]}, "a booking that was asked for goes whole"
    assert said(first) == {who["fullName"] for who in (MARKS, OTHER, BOB)}, "with whoever had it before"
    assert [p["contact"]["fullName"] for p in payloads(hers, guest[0])] == [MARKS["fullName"]]
    assert [p["contact"]["fullName"] for p in payloads(adas, guest[0])] == [OTHER["fullName"]]
    assert payloads(hers, guest[1])[0]["contact"] is None
    assert payloads(hers, guest[1])[0]["unitItems"][0]["contact"]["fullName"] == MARKS["fullName"]
    bodies = [d["body"] for d in adas["journal"]["deliveries"] if guest[0] in d["body"]]
    assert [json.loads(body)["data"] for body in bodies] == [{"uuid": guest[0], "contact": None}]


async def test_an_answer_that_was_read_before_an_erasure_is_not_landed_after_it(project, guest):
    """The erasure comes between the check of an answer and its landing, as it can while `serve` runs."""
    copy = project(availability=(0, 3))
    async with copy.opened(transport=wire(guest)) as opened:
        real, late = landing._without_erased, []

        def erase_first(ports, batch):
            if any(f.answered.noun == "bookings" for f in batch) and not late:
                late.append(True)
                request(ports.journal, ports.privacy, emails=[MARKS["emailAddress"]], phones=[], bookings=[])
                erase(ports)
                assert len(real(ports, batch)) < len(batch)
            return real(ports, batch)

        landing._without_erased = erase_first
        try:
            result = await sync(opened.ports, Scope(full=True), command="test", publishing=False)
        finally:
            landing._without_erased = real
    assert late
    assert result.status == "ok"
    assert rows_holding(copy.directory) == set()
    found = copy.query("select count(*) from core.bookings where booking_uuid in ($1, $2)", *guest[:2])
    assert found == [(2,)], "the bookings themselves landed, with a second answer"


@pytest.mark.deep(6)
async def test_a_delivery_that_brings_a_whole_booking_does_not_bring_her_back(project, guest):
    copy = await pulled(project, guest)
    await forget(copy, emails=[MARKS["emailAddress"]])
    whole = {"uuid": guest[0], "contact": MARKS, "notes": NOTES, "unitItems": [{"uuid": "i", "contact": MARKS}]}
    old = {"webhook": {"id": "w", "event": "booking_update"}, "booking": whole}

    async with copy.opened(transport=wire(guest)) as opened:
        inbox = Inbox(opened.journal, Routing(copy.pipeline, copy.clock))
        received = await inbox.receive("main", "e", json.dumps(old).encode())
        await inbox.close()
        assert holding(copy.directory) == []
        await sync(opened.ports, Scope(full=True), command="test")

    assert received.subjects == (Subject("main", SubjectKind.BOOKING, (guest[0],)),)
    assert rows_holding(copy.directory) == set()
    assert holding(copy.directory) == []


@pytest.mark.deep(6)
async def test_a_read_copy_that_cannot_be_replaced_leaves_the_erasure_open_and_says_so(project, guest):
    copy = await pulled(project, guest)
    checks = copy.directory / "warehouse" / "checks"
    checks.mkdir(parents=True)
    check = checks / "never.sql"
    check.write_text("-- name: never\n-- description: Fails.\nselect 1")
    mine = copy.directory / "march.csv"
    mine.write_text(f"name\n{MARKS['fullName']}\n")

    done = await forget(copy, emails=[MARKS["emailAddress"]])

    assert done.done_at is None
    assert any("never" in sentence for sentence in done.left)
    assert not (copy.directory / "octo.read.private.duckdb").exists(), "names are not left to a check"
    check.unlink()
    async with copy.opened() as opened:
        assert not is_due(opened.ports)
        (done,) = opened.journal.erasures.rows()
    assert [s.split(" ")[0] for s in done.left] == ["march.csv"], "the first attempt knew what to look for"
    assert holding(copy.directory) == ["march.csv"]


@pytest.mark.deep(6)
async def test_a_file_of_somebody_else_that_still_holds_her_is_named_and_left_alone(project, guest):
    copy = await pulled(project, guest)
    export = copy.directory / "march.csv"
    export.write_text(f"name\n{MARKS['fullName']}\n")

    done = await forget(copy, emails=[MARKS["emailAddress"]])

    assert [s for s in done.left if "march.csv" in s]
    assert export.exists()
    assert done.done_at is not None


@pytest.mark.deep(3)
async def test_nothing_is_erased_for_somebody_unknown_and_what_is_no_address_is_refused(project, guest):
    copy = await pulled(project, guest)
    kept = others(copy, ("", ""))

    done = await forget(copy, emails=["nobody@example.org"])

    assert [place for place, count in done.counts.items() if count] == ["files searched"]
    assert done.left == ()
    assert done.done_at is not None
    assert others(copy, ("", "")) == kept
    async with copy.opened() as opened:
        for wrong in ({"emails": ["no address"]}, {"phones": ["12"]}):
            with pytest.raises(ValueError, match="is none"):
                request(opened.journal, opened.ports.privacy, **({"emails": [], "phones": [], "bookings": []} | wrong))


@pytest.mark.deep(5)
async def test_neither_the_request_nor_the_tombstone_says_who_it_is(project, guest):
    copy = await pulled(project, guest)

    await forget(copy, emails=[MARKS["emailAddress"]])

    async with copy.opened() as opened:
        text = json.dumps([dataclasses.asdict(e) for e in opened.journal.erasures.rows()], default=str).lower()
    assert "quux" not in text
    assert "example.org" not in text


@pytest.mark.deep(8)
async def test_a_keeper_erases_what_another_process_asks_for_publishes_and_works_on(project, service, guest):
    copy = await pulled(project, guest)
    async with copy.opened(transport=wire(guest)) as opened:
        wake = asyncio.Event()
        keeper = Keeper(opened.ports, wake, lambda: "pull-1")
        task = asyncio.create_task(keeper.run())
        try:
            with open_journal(copy.pipeline, copy.clock) as outside:
                people = Privacy.open("keep", outside, Random(1)).people([MARKS["emailAddress"]], [])
                asked = outside.erasures.request(people, [])
                wake.set()
                async with asyncio.timeout(120):
                    while (done := outside.erasures.find(asked.id)).done_at is None:  # noqa: ASYNC110 - as another process
                        await asyncio.sleep(0.05)
            assert holding(copy.directory) == []
            service.change(guest[0], contact=MARKS, notes=NOTES)
            opened.journal.subjects.mark([Subject("main", SubjectKind.BOOKING, (guest[0],))], Source.NOTIFICATION)
            keeper.idle.clear()
            wake.set()
            async with asyncio.timeout(120):
                await keeper.idle.wait()
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
    assert done.counts["private.booking_contacts"] == 2
    assert rows_holding(copy.directory) == set()
    assert holding(copy.directory) == []


@pytest.mark.deep(8)
async def test_an_erasure_that_a_check_keeps_open_is_not_carried_out_again_and_again(
    project, service, guest, monkeypatch
):
    monkeypatch.setattr(erasing, "_AGAIN", 0.05)
    monkeypatch.setattr(erasing, "_AGAIN_AT_MOST", 0.05)
    copy = await pulled(project, guest)
    checks = copy.directory / "warehouse" / "checks"
    checks.mkdir(parents=True)
    check = checks / "never.sql"
    check.write_text("-- name: never\n-- description: Fails.\nselect 1")
    did = Counter()

    def counting(target, name):
        real = getattr(target, name)
        monkeypatch.setattr(target, name, lambda *a, **k: did.update([name]) or real(*a, **k))

    counting(erasing, "find")
    counting(erasing, "publish_everywhere")
    async with copy.opened(transport=wire(guest)) as opened:
        counting(opened.ports.warehouse, "shed")
        counting(opened.journal, "compact")
        keeper = Keeper(opened.ports, asyncio.Event(), lambda: "pull-1")
        task = asyncio.create_task(keeper.run())
        try:
            asked = request(
                opened.journal, opened.ports.privacy, emails=[MARKS["emailAddress"]], phones=[], bookings=[]
            )
            keeper.wake.set()
            async with asyncio.timeout(60):
                while did["publish_everywhere"] < 4:
                    keeper.wake.set()
                    await asyncio.sleep(0.02)
                service.change(guest[2], supplier_reference="LANDED")
                opened.journal.subjects.mark([Subject("main", SubjectKind.BOOKING, (guest[2],))], Source.NOTIFICATION)
                keeper.wake.set()
                landed = "select 1 from core.bookings where supplier_reference = 'LANDED'"
                await until(lambda: opened.warehouse.query(landed).rows)
                assert (did["find"], did["shed"], did["compact"]) == (1, 1, 1)
                counts = opened.journal.erasures.find(asked.id).counts
                check.unlink()
                while (done := opened.journal.erasures.find(asked.id)).done_at is None:
                    keeper.wake.set()
                    await asyncio.sleep(0.02)
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
    assert (done.left, done.counts["private.booking_contacts"], did["find"]) == ((), 2, 1)
    assert done.counts.keys() == counts.keys()
    assert rows_holding(copy.directory) == set()
    assert holding(copy.directory) == []


async def test_attempts_at_an_erasure_are_a_pause_apart_that_grows_however_long_each_takes(monkeypatch):
    now, began = 1000.0, []

    def lasts(_ports):
        nonlocal now
        began.append(now)
        now += 300
        raise WarehouseError("The disk is full.")

    async def nothing():
        pass

    asked = ["1"]
    ports = SimpleNamespace(journal=SimpleNamespace(erasures=SimpleNamespace(open_ids=lambda: asked)), run_id="r")
    loop = asyncio.get_running_loop()
    real = loop.time
    monkeypatch.setattr(erasing, "erase", lasts)
    eraser = erasing.Eraser(ports)
    monkeypatch.setattr(loop, "time", lambda: now)
    try:
        while len(began) < 7:
            await eraser.when_due(nothing)
            now += 1
        asked = ["1", "2"]
        before = now
        await eraser.when_due(nothing)
    finally:
        monkeypatch.setattr(loop, "time", real)
    assert [after - first - 300 for first, after in pairwise(began[:7])] == [60, 120, 240, 480, 900, 900]
    assert began[7] == before, "another one is carried out at once"


@pytest.mark.deep(9)
@pytest.mark.parametrize("lost", [False, True], ids=["same secret", "the journal was lost meanwhile"])
async def test_who_was_erased_after_a_backup_is_not_in_it_when_it_is_restored_and_its_keyed_hashes_stay_true(
    project, service, guest, lost
):
    copy = await pulled(project, guest)
    target = copy.directory.parent / "backup"
    back_up(files(copy.pipeline), target, now=copy.clock.now(), run="run", name="test")
    with open_journal(copy.pipeline, copy.clock) as before:
        secret = before.erasures.erased().secret
    if lost:
        for file in copy.directory.glob("octo.journal.sqlite*"):
            file.unlink()
    await forget(copy, emails=[MARKS["emailAddress"]])
    with open_journal(copy.pipeline, copy.clock) as former:
        assert (former.erasures.erased().secret != secret) is lost

    restore(files(copy.pipeline), target, read_manifest(target), copy.pipeline, copy.clock, force=True)

    assert "octo.private.duckdb: private.booking_contacts" in rows_holding(copy.directory)
    async with copy.opened() as opened:
        privacy = opened.ports.privacy
        assert opened.journal.erasures.erased().secret == secret
        (done,) = opened.journal.erasures.rows()
        assert done.done_at is not None
        assert secret not in repr(opened.journal.erasures.erased()) + repr(done)
    assert rows_holding(copy.directory) == set()
    key = [(privacy.email_key(OTHER["emailAddress"]),)]
    of_ada = "select contact_key from core.bookings where booking_uuid = $1"
    assert copy.query(of_ada, guest[1]) == copy.query(of_ada, guest[2]) == key

    # What comes later is hashed as what was restored, and is screened for whom the replaced project had erased.
    service.change(guest[1], reseller_reference="read anew")
    service.change(guest[2], contact=MARKS, notes=NOTES)
    await copy.sync(transport=wire(guest), publishing=True)

    assert copy.query(
        "select reseller_reference, contact_key from core.bookings where booking_uuid = $1", guest[1]
    ) == [("read anew", *key[0])]
    assert rows_holding(copy.directory) == set()
    assert copy.query(of_ada, guest[2]) == [(None,)]


def test_who_was_erased_under_another_projects_key_is_known_by_that_key_alone():
    contact = Contact(email_address="zoe@example.org")
    other = Privacy("keep", b"other")
    privacy = Privacy("keep", b"own")
    asked = Erasure(id="1", people=tuple(other.keys(contact)), requested_at=NOON)
    privacy.take(asked)
    assert not privacy.is_erased(contact), "a hash means nothing under another key"
    privacy.take(dataclasses.replace(asked, key=b"other".hex()))
    assert privacy.is_erased(contact)
    assert privacy.mentions("ask zoe@example.org, she knows")
    assert not privacy.is_erased(Contact(email_address="ada@example.org"))


def test_a_removed_reference_is_known_on_its_own_booking_under_the_key_of_its_erasure():
    key, booking = b"other".hex(), ("c", "U-1")
    privacy = Privacy("keep", b"own")
    hashed = privacy.reference_key(booking, "Quux x2", key=key)
    privacy.take(Erasure(id="1", requested_at=NOON, key=key, references=((*booking, hashed),)))
    assert hashed != privacy.reference_key(booking, "Quux x2")
    assert privacy.repeats(("c", "u-1"), " QUUX x2")
    assert not privacy.repeats(("c", "u-2"), "Quux x2"), "another guest's may be called the same"
    assert not privacy.repeats(booking, "Quux x3")


# -- the rule `pii` ---------------------------------------------------------------------------------------------------


def set_mode(copy, mode):
    text = copy.file.read_text()
    copy.file.write_text(
        f'pii = "{mode}"\n' + "\n".join(x for x in text.splitlines() if not x.startswith("pii =")) + "\n"
    )


@pytest.mark.deep(5)
async def test_hash_keeps_keyed_hashes_alone_and_drop_keeps_nothing(project, service, guest):
    service.change(guest[0], reseller_reference="R-1")  # references stay as they are, whatever a reseller writes there
    copy = project(publish=True, availability=(0, 3))
    set_mode(copy, "hash")
    await copy.sync(transport=wire(guest))

    assert rows_holding(copy.directory) == set()
    assert holding(copy.directory) == []
    rows = copy.query(
        "select full_name, email_address, phone_number, country, notes, locales from personal.private.booking_contacts"
    )
    assert rows
    assert all(value is None or len(value) == 32 for row in rows for value in row)
    assert {row[4:] for row in rows} == {(None, None)}
    assert copy.query("select count(*) from personal.raw.records where resource = 'booking'") == [(0,)]
    # The same person has the same hash, in core as in the private file.
    joined = copy.query(
        "select count(distinct b.contact_key), count(distinct c.email_address) from core.bookings b join "
        "personal.private.booking_contacts c using (connection_id, booking_uuid) "
        "where b.booking_uuid in ($1, $2) and c.unit_item_uuid = '' and b.contact_key = c.email_address",
        *guest[1:],
    )
    assert joined == [(1, 1)]

    set_mode(copy, "drop")
    await copy.sync(transport=wire(guest))

    assert copy.query("select count(*) from personal.private.booking_contacts where not is_deleted") == [(0,)]
    assert copy.query("select count(contact_key) from core.bookings") == [(0,)]


@pytest.mark.deep(5)
@pytest.mark.parametrize("mode", ["hash", "drop"])
async def test_a_stricter_rule_is_applied_to_what_is_already_there(project, service, guest, mode):
    copy = await pulled(project, guest)
    digests = await copy.digests()
    set_mode(copy, mode)

    # Not even a pull is needed: whatever command writes next applies it, and the service is not asked.
    service.forget_requests()
    async with copy.opened():
        pass

    private = [w for w in rows_holding(copy.directory) if "private" in w]
    assert private == []
    assert "octo.private.duckdb" not in holding(copy.directory)
    kept = copy.query("select count(*) from personal.private.booking_contacts where full_name is not null")[0][0]
    assert bool(kept) is (mode == "hash")
    assert copy.query("select count(*) from personal.raw.records where resource = 'booking'") == [(0,)]
    assert copy.query("select count(*) > 0 from personal.raw.records") == [(True,)], "products stay"
    assert await copy.digests() == digests
    await copy.sync(transport=wire(guest), publishing=True)
    assert [w for w in rows_holding(copy.directory) if "private" in w] == []
    assert await copy.digests() == digests


@pytest.mark.deep(6)
async def test_a_looser_rule_brings_contacts_back_with_the_next_pull_though_no_byte_changed(project, guest):
    copy = project(availability=(0, 3))
    set_mode(copy, "drop")
    await copy.sync(transport=wire(guest))
    set_mode(copy, "keep")

    await copy.sync(transport=wire(guest))

    found = copy.query(
        "select full_name from personal.private.booking_contacts where booking_uuid = $1 and unit_item_uuid = ''",
        guest[0],
    )
    assert found == [(MARKS["fullName"],)]
    assert copy.query("select count(contact_key) > 0 from core.bookings") == [(True,)]
    assert copy.query("select count(*) > 0 from personal.raw.records where resource = 'booking'") == [(True,)]


@pytest.mark.deep(6)
async def test_a_person_is_erased_from_hashes_too(project, guest):
    copy = project(availability=(0, 3))
    set_mode(copy, "hash")
    await copy.sync(transport=wire(guest))
    (key,) = copy.query("select contact_key from core.bookings where booking_uuid = $1", guest[0])[0]
    assert key

    done = await forget(copy, emails=[MARKS["emailAddress"]])

    assert done.counts["private.booking_contacts"] == 2
    await copy.sync(transport=wire(guest))
    assert rows_holding(copy.directory, (key,)) == {"journal: settings"}, "the journal's tombstone alone"


# -- keys -------------------------------------------------------------------------------------------------------------


def test_the_same_address_and_number_are_the_same_person_however_they_are_spelled():
    privacy = Privacy("keep", b"secret")
    assert len({privacy.email_key(e) for e in ("A.B@X.org", " a.b@x.ORG ", "\uff41.b@x.org")}) == 1
    assert len({privacy.phone_key(p) for p in ("+44 7700 900123", "0044-7700-900123", "(44) 7700.900123")}) == 1
    assert privacy.email_key("a.b@x.org") != privacy.email_key("ab@x.org")
    assert privacy.email_key("  ") is None
    assert privacy.phone_key("n/a 12") is None
    assert normal_text("Straße@X.org") == normal_text("STRASSE@x.org")
    assert normal_phone("0") == ""


def test_a_number_with_its_national_zero_in_brackets_is_the_same_number_and_known_by_what_was_kept_of_it_before():
    privacy, spelled = Privacy("keep", b"secret"), Contact(phone_number="+44 (0)7700 900123")
    for asked in (privacy.phone_key("+44 7700 900123"), privacy.hash("phone", "4407700900123")):
        assert privacy.is_one_of(spelled, [asked])
    assert privacy.is_one_of(Contact(phone_number="00447700900123"), privacy.people([], ["+44 ( 0 ) 7700 900123"]))


@pytest.mark.parametrize(
    "note",
    [
        "paid by email=zoe.q@example.com", "ask **zoe.q@example.com** please", "zoe.q@example.com/+44 7700 900555",
        "{zoe.q@example.com}", "mailto:zoe.q%40example.com", "zoe.q%40example.com", "ZOE.Q\uff20EXAMPLE.COM",
        "web-Zoe.Q@Example.com", "web_zoe.q@example.com_2", "a|zoe.q@example.com|b", "cc@zoe.q@example.com",
        "...zoe.q@example.com...", "zoe.q@example.com.Thanks", "u%3Dzoe.q%40example.com%26x", "'zoe.q@example.com'",
        "=" * 99 + "zoe.q@example.com",
    ],
)  # fmt: skip
def test_an_address_is_found_in_a_note_whatever_it_is_glued_to(note):
    privacy = Privacy("keep", b"secret")
    privacy.take(Erasure(id="1", people=tuple(privacy.people(["Zoe.Q@example.com"], [])), requested_at=NOON))
    assert privacy.mentions(note)
    assert not privacy.mentions(note.replace("zoe", "chloe").replace("Zoe", "Chloe").replace("ZOE", "CHLOE"))
    assert not privacy.mentions("mr.zoe.q@example.com, zoe.q at example.com, zoe.q@example.co")


def test_a_note_made_of_signs_costs_few_looks():
    assert len(list(addresses_in("-".join("a" * 5000) + "@" + "-".join("b" * 5000)))) <= 64


def test_a_name_is_the_full_name_else_first_and_last_under_every_rule():
    privacy = Privacy("hash", b"secret")
    full = Contact(full_name=" Ada  Keeps-Hers", email_address="ada@example.org")
    parts = Contact(first_name="Ada ", last_name=" Keeps-Hers")
    assert name_of(parts) == "Ada Keeps-Hers"
    assert name_of(Contact(full_name="A. K.", first_name="Ada", last_name="Keeps-Hers")) == "A. K."
    assert [name_of(Contact(last_name="Hers")), name_of(Contact(first_name=None))] == ["Hers", ""]
    assert texts_of(parts) == ["Ada Keeps-Hers"]
    full.full_name = "Ada Keeps-Hers"
    rows = [
        ContactRow(connection_id="c", booking_uuid="b", unit_item_uuid="", **privacy.reduced(c)) for c in (full, parts)
    ]
    assert {privacy.name_key(c) for c in (full, parts, *rows)} == {rows[0].full_name}
    assert name_of(ContactRow(connection_id="c", booking_uuid="b", unit_item_uuid="", first_name="0" * 32)) == ""


def test_another_projects_secret_gives_other_hashes():
    one, other = (Privacy("keep", key).email_key("a@x.org") for key in (b"one", b"other"))
    assert one != other


def test_a_hash_of_a_hash_is_itself_so_that_rows_of_either_rule_are_found():
    privacy = Privacy("hash", b"secret")
    key = privacy.email_key("a@x.org")
    assert privacy.email_key(key) == key
    assert privacy.hashed("email_address", key) == key
    number = privacy.phone_key("+4477009001")
    assert privacy.phone_key(number) == number


@pytest.mark.deep(8)
async def test_a_lost_journal_does_not_bring_back_what_was_erased(project, service, guest):
    """The warehouse knows erased contacts by its own rows, also when the service changes their booking."""
    copy = await pulled(project, guest)
    await forget(copy, emails=[MARKS["emailAddress"]])
    service.change(guest[0], notes="Quuxowitz again")
    for file in copy.directory.glob("octo.journal.sqlite*"):
        file.unlink()

    await copy.sync(transport=wire(guest), publishing=True)

    assert [w for w in rows_holding(copy.directory) if "private" in w] == []


@pytest.mark.deep(6)
async def test_a_failing_disk_leaves_the_request_open(project, guest, monkeypatch):
    copy = await pulled(project, guest)

    def full(*_args, **_kwargs):
        raise WarehouseError("no room")

    async with copy.opened() as opened:
        request(opened.journal, opened.ports.privacy, emails=[MARKS["emailAddress"]], phones=[], bookings=[])
        with monkeypatch.context() as patch:
            patch.setattr(opened.ports.warehouse, "shed", full)
            with pytest.raises(WarehouseError):
                erase(opened.ports)
        assert is_due(opened.ports)
        erase(opened.ports)
        assert not is_due(opened.ports)
    assert holding(copy.directory) == []
