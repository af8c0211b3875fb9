"""Who is forgotten leaves every table and every byte, and no later pull brings them back; others keep what they have."""

import asyncio
import contextlib
import dataclasses
import json
import shutil
import sqlite3
from random import Random

import duckdb
import pytest
from tests.flows.harness import Project, Wire, api_path, reply

from octo_sync.app import open_journal
from octo_sync.destinations.erasing import Scrubber
from octo_sync.errors import WarehouseError
from octo_sync.flows import erase as erasing
from octo_sync.flows import land as landing
from octo_sync.flows.erase import erase, is_due, request
from octo_sync.flows.keep import Keeper
from octo_sync.flows.privacy import Privacy, normal_email, normal_phone
from octo_sync.flows.pull import Scope
from octo_sync.flows.sync import sync
from octo_sync.journal import Received
from octo_sync.model import Source, Subject, SubjectKind

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


def wire(guest, **more):
    """The service, with her also on a ticket of the second booking."""

    def edit(request, answer):
        if not api_path(request).startswith("/bookings"):
            return None
        rows = answer.json()
        for row in rows if isinstance(rows, list) else [rows]:
            if row["uuid"] == guest[1]:
                row["unitItems"][0]["contact"].update(MARKS)
            row.update(more.get(row["uuid"], {}))
        return reply(rows)

    return Wire.by(edit)


def delivery(copy, body):
    return Received(connection="main", endpoint="e", received_at=copy.clock.now(), body=body, type="BOOKING_UPDATE")


async def pulled(project, guest, **asked):
    """Her data in every place that can hold it: tables, payloads, read copy, copy of the contacts, deliveries."""
    copy = project(publish=True, availability=(0, 3), **asked)
    with copy.file.open("a") as file:
        file.write("[publish]\ncontacts = true\n")
    async with copy.opened(transport=wire(guest)) as opened:
        await sync(opened.ports, Scope(full=True), command="test")
        opened.journal.receive(
            [
                delivery(copy, json.dumps({"data": {"uuid": guest[0], "contact": MARKS}}).encode()),
                delivery(copy, json.dumps({"data": {"uuid": guest[2]}}).encode()),
            ]
        )
    return copy


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


async def test_a_later_booking_of_an_erased_person_is_kept_without_her(project, service, guest):
    copy = await pulled(project, guest)
    await forget(copy, emails=[MARKS["emailAddress"]])
    service.change(guest[2], contact=MARKS, notes=NOTES)

    await copy.sync(transport=wire(guest), publishing=True)

    assert rows_holding(copy.directory) == set()
    assert holding(copy.directory) == []
    found = copy.query("select status, contact_key from core.bookings where booking_uuid = $1", guest[2])
    assert found == [("CONFIRMED", None)]


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


@pytest.mark.parametrize("step", ["note_erasure", "blank_deliveries", "compact", "replace_contacts", "shed", "publish"])
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
        target = {"replace_contacts": Scrubber, "publish": erasing}.get(step)
        if target is None:
            target = opened.ports.journal if hasattr(opened.ports.journal, step) else opened.ports.warehouse
        with monkeypatch.context() as patch:
            patch.setattr(target, step, kill)
            with pytest.raises(Killed):
                erase(opened.ports)
        assert is_due(opened.ports)

    async with copy.opened() as opened:
        assert not is_due(opened.ports)

    assert rows_holding(copy.directory) == set()
    assert holding(copy.directory) == []


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


async def test_a_read_copy_that_cannot_be_replaced_leaves_the_erasure_open_and_says_so(project, guest):
    copy = await pulled(project, guest)
    checks = copy.directory / "warehouse" / "checks"
    checks.mkdir(parents=True)
    check = checks / "never.sql"
    check.write_text("-- name: never\n-- description: Fails.\nselect 1")

    done = await forget(copy, emails=[MARKS["emailAddress"]])

    assert done.done_at is None
    assert any("never" in sentence for sentence in done.left)
    assert not (copy.directory / "octo.read.private.duckdb").exists(), "names are not left to a check"
    check.unlink()
    async with copy.opened() as opened:
        assert not is_due(opened.ports)
    assert holding(copy.directory) == []


async def test_a_file_of_somebody_else_that_still_holds_her_is_named_and_left_alone(project, guest):
    copy = await pulled(project, guest)
    export = copy.directory / "march.csv"
    export.write_text(f"name\n{MARKS['fullName']}\n")

    done = await forget(copy, emails=[MARKS["emailAddress"]])

    assert [s for s in done.left if "march.csv" in s]
    assert export.exists()
    assert done.done_at is not None


async def test_nothing_is_erased_for_somebody_unknown_and_what_is_no_address_is_refused(project, guest):
    copy = await pulled(project, guest)
    kept = others(copy, ("", ""))

    done = await forget(copy, emails=["nobody@example.org"])

    assert {k: v for k, v in done.counts.items() if v} == {}
    assert done.done_at is not None
    assert others(copy, ("", "")) == kept
    async with copy.opened() as opened:
        for wrong in ({"emails": ["no address"]}, {"phones": ["12"]}):
            with pytest.raises(ValueError, match="is none"):
                request(opened.journal, opened.ports.privacy, **({"emails": [], "phones": [], "bookings": []} | wrong))


async def test_neither_the_request_nor_the_tombstone_says_who_it_is(project, guest):
    copy = await pulled(project, guest)

    await forget(copy, emails=[MARKS["emailAddress"]])

    async with copy.opened() as opened:
        text = json.dumps([dataclasses.asdict(e) for e in opened.journal.erasures()], default=str).lower()
    assert "quux" not in text
    assert "example.org" not in text


async def test_a_keeper_erases_what_another_process_asks_for_publishes_and_works_on(project, service, guest):
    copy = await pulled(project, guest)
    async with copy.opened(transport=wire(guest)) as opened:
        wake = asyncio.Event()
        keeper = Keeper(opened.ports, wake, lambda: "pull-1")
        task = asyncio.create_task(keeper.run())
        try:
            with open_journal(copy.pipeline, copy.clock) as outside:
                people = Privacy.open("keep", outside, Random(1)).people([MARKS["emailAddress"]], [])
                asked = outside.request_erasure(people, [])
                wake.set()
                async with asyncio.timeout(30):
                    while (done := outside.erasure(asked.id)).done_at is None:  # noqa: ASYNC110 - as another process
                        await asyncio.sleep(0.05)
            assert holding(copy.directory) == []
            service.change(guest[0], contact=MARKS, notes=NOTES)
            opened.journal.mark([Subject("main", SubjectKind.BOOKING, (guest[0],))], Source.NOTIFICATION)
            keeper.idle.clear()
            wake.set()
            async with asyncio.timeout(30):
                await keeper.idle.wait()
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
    assert done.counts["private.booking_contacts"] == 2
    assert rows_holding(copy.directory) == set()
    assert holding(copy.directory) == []


async def test_a_backup_that_is_restored_forgets_again_who_was_forgotten_since(project, guest):
    copy = await pulled(project, guest)
    with open_journal(copy.pipeline, copy.clock) as before:
        secret = before.erased().secret
    await forget(copy, emails=[MARKS["emailAddress"]])
    with open_journal(copy.pipeline, copy.clock) as former:
        erased = former.erased()
    assert erased.secret == secret
    other = Project(copy.directory / "restored", copy.service, publish=True, availability=(0, 3))
    async with other.opened(transport=wire(guest)) as opened:
        await sync(opened.ports, Scope(full=True), command="test", publishing=False)
        opened.journal.erase_again(erased)
    assert rows_holding(other.directory)

    async with other.opened():
        pass

    assert rows_holding(other.directory) == set()
    assert "quux" not in repr(erased).lower()
    assert secret not in repr(erased)


# -- the rule `pii` ---------------------------------------------------------------------------------------------------


def set_mode(copy, mode):
    text = copy.file.read_text()
    copy.file.write_text(
        f'pii = "{mode}"\n' + "\n".join(x for x in text.splitlines() if not x.startswith("pii =")) + "\n"
    )


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
    assert normal_email("Straße@X.org") == normal_email("STRASSE@x.org")
    assert normal_phone("0") == ""


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


async def test_a_lost_journal_does_not_bring_back_what_was_erased(project, service, guest):
    """The warehouse knows erased contacts by its own rows, also when the service changes their booking."""
    copy = await pulled(project, guest)
    await forget(copy, emails=[MARKS["emailAddress"]])
    service.change(guest[0], notes="Quuxowitz again")
    for file in copy.directory.glob("octo.journal.sqlite*"):
        file.unlink()

    await copy.sync(transport=wire(guest), publishing=True)

    assert [w for w in rows_holding(copy.directory) if "private" in w] == []


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
