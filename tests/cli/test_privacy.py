"""`octo-sync privacy` as a person uses it: what it asks, says and leaves; also beside a running `serve`."""

import json
import shutil
import stat

import duckdb
import pytest
from tests.faults.serving import Copy, Sandbox


def private(directory, sql, *parameters):
    with duckdb.connect(str(directory / "octo.private.duckdb"), read_only=True) as db:
        return db.execute(sql, list(parameters)).fetchall()


def somebody(directory):
    """An e-mail address, a telephone number, a name and a booking of somebody in the copy."""
    return private(
        directory,
        "select email_address, phone_number, full_name, booking_uuid from private.booking_contacts "
        "where email_address is not null and phone_number is not null and unit_item_uuid = '' order by booking_uuid",
    )[0]


def holding(directory, *texts):
    forms = {form for text in texts for form in (text.encode(), json.dumps(text)[1:-1].encode())}
    return [f.name for f in directory.rglob("*") if f.is_file() and any(form in f.read_bytes() for form in forms)]


def test_somebody_is_exported_then_erased_and_the_report_says_what_went_and_what_is_out_of_reach(project):
    email, _, name, uuid = somebody(project.directory)

    project.ok("privacy", "export", "--email", email.upper(), "--to", "her.json")

    file = project.directory / "her.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    found = json.loads(file.read_text())
    assert uuid in [b["booking_uuid"] for b in found["bookings"]]
    assert {c["email_address"].lower() for c in found["private.booking_contacts"] if c["email_address"]} == {
        email.lower()
    }
    assert [r["booking_uuid"] for r in found["core.bookings"]]
    assert [r for r in found["core.booking_unit_items"] if r["booking_uuid"] == uuid]
    payloads = [r["payload"] for r in found["raw.records"] if r["payload"]["uuid"] == uuid]
    assert payloads[0]["contact"]["fullName"] == name
    others = private(
        project.directory,
        "select full_name from private.booking_contacts where booking_uuid = $1 and full_name <> $2",
        uuid,
        name,
    )
    assert [n for (n,) in others if n in file.read_text()] == [], "who else is on the booking is not hers to have"
    file.unlink()
    # The database compresses, so a search through its bytes would prove nothing here: its rows do.
    theirs = "select (select count(*) from private.booking_contacts where email_address = $1) + (select count(*) "
    theirs += "from raw.records where payload like '%' || $1 || '%')"
    assert private(project.directory, theirs, email)[0][0] >= 2

    done = project.json("privacy", "erase", "--email", email, "--yes")

    assert done["done_at"]
    assert done["left"] == []
    assert done["erased"]["private.booking_contacts"] >= 1
    assert done["erased"]["raw.records"] >= 1
    assert "backups" in done["out_of_reach"]
    assert holding(project.directory, email) == []
    assert private(project.directory, theirs, email) == [(0,)]
    listed = project.json("privacy", "list")
    assert listed["pii"] == "keep"
    assert [e["id"] for e in listed["erasures"]] == [done["id"]]
    project.ok("sync", "--full")
    assert holding(project.directory, email) == []
    assert private(project.directory, theirs, email) == [(0,)]


@pytest.mark.deep(4)
def test_a_file_that_may_hold_somebody_unseen_is_named_and_the_exit_code_is_5_until_it_is_gone(project):
    email, *_ = somebody(project.directory)
    aside = project.directory / "old" / "copy.duckdb"
    aside.parent.mkdir()
    shutil.copyfile(project.directory / "octo.private.duckdb", aside)

    first = project("privacy", "erase", "--email", email, "--yes")
    again = project("privacy", "erase", "--email", email, "--yes", "--json")

    assert (first.returncode, again.returncode) == (5, 5), "who is gone from the tables is not gone from that file"
    assert "not everything is erased" in first.stdout
    assert "old/copy.duckdb" in first.stderr
    (left,) = json.loads(again.stdout)["left"]
    assert left.startswith("old/copy.duckdb")
    assert aside.exists(), "it is not octo-sync's to delete"
    aside.unlink()
    assert project.json("privacy", "erase", "--email", email, "--yes")["left"] == []


def test_a_file_that_holds_an_address_that_is_in_no_table_is_named_and_the_address_written_down_nowhere(project):
    (project.directory / "letters.txt").write_text("To: Walk.In@Example.org")
    (project.directory / "others.txt").write_text("To: somewalk.in@example.org")

    done = project("privacy", "erase", "--email", "walk.in@example.org", "--yes", "--json")

    assert done.returncode == 5
    (left,) = json.loads(done.stdout)["left"]
    assert left.startswith("letters.txt still holds it")
    assert project.json("privacy", "list")["erasures"][-1]["left"] == [left]
    assert holding(project.directory, "walk.in@example.org") == ["others.txt"]


def test_nothing_is_erased_without_a_yes_and_nobody_in_particular_is_refused(project):
    email, *_ = somebody(project.directory)

    asked = project("privacy", "erase", "--email", email)
    nobody = project("privacy", "erase", "--yes")
    wrong = project("privacy", "erase", "--email", "not an address", "--yes")
    never = project("privacy", "export", "--email", "not an address", "--to", "x.json")

    assert asked.returncode == nobody.returncode == wrong.returncode == never.returncode == 2
    assert "--yes" in asked.stderr
    assert "--email, --phone or --booking" in nobody.stderr
    assert "not an address" not in wrong.stderr + never.stderr, "what was typed may be a person's"
    assert somebody(project.directory)[0] == email
    assert not (project.directory / "x.json").exists()


def test_an_export_never_replaces_a_file(project):
    (project.directory / "there.json").write_text("mine")

    done = project("privacy", "export", "--email", "a@example.org", "--to", "there.json")

    assert done.returncode == 2
    assert (project.directory / "there.json").read_text() == "mine"


def test_before_the_first_run_it_says_so_and_makes_nothing(fresh):
    done = fresh("privacy", "erase", "--email", "a@example.org", "--yes")

    assert done.returncode == 2
    assert "Nothing ran here yet" in done.stderr
    assert list(fresh.directory.glob("octo.*")) == []


@pytest.mark.deep(3)
def test_status_and_doctor_say_which_rule_is_in_force(project):
    file = next((project.directory / "pipelines").glob("*.toml"))
    file.write_text('pii = "hash"\n' + file.read_text())

    assert project.json("status")["pii"] == {"rule": "hash", "applied": "keep", "open_erasures": 0, "place": "file"}
    assert "hash" in project.ok("status")
    assert "pii" in project("doctor").stdout

    project.ok("sync")

    assert project.json("status")["pii"] == {"rule": "hash", "applied": "hash", "open_erasures": 0, "place": "file"}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A project that is served."""
    directory = tmp_path_factory.mktemp("privacy")
    with Sandbox(directory / "sandbox", bookings=60, products=3, days=20) as sandbox:
        copy = Copy(directory / "project", sandbox)
        with copy.serve() as program:
            copy.ready(program)
            copy.equal()
            yield sandbox, copy, program


@pytest.mark.deep(14)
def test_a_running_serve_erases_and_keeps_its_lease(served):
    sandbox, copy, _ = served
    with duckdb.connect(str(copy.directory / "octo.read.duckdb"), read_only=True) as db:
        known = {
            u for (u,) in db.execute("select booking_uuid from core.bookings where contact_key is not null").fetchall()
        }
    state = sandbox.control("GET", "/state")["bookings"]
    email = next(b["contact"]["email_address"] for b in state if b["uuid"] in known and b["contact"]["email_address"])

    code, said = copy.run("privacy", "erase", "--email", email, "--yes", "--json")

    assert code == 0, said
    done, _ = json.JSONDecoder().raw_decode(said[said.index("{") :])
    assert done["erased"]["private.booking_contacts"] >= 1
    assert holding(copy.directory, email) == []
    # It works on, and what it is told now does not bring them back.
    made = sandbox.control("POST", "/traffic", {"changes": 5, "seed": 9, "kinds": ["note"], "token": "all"})["changes"]
    assert len(made) == 5
    assert holding(copy.directory, email) == []
    code, said = copy.run("privacy", "export", "--email", email, "--to", "x.json")
    assert code == 6, "the private file is the running program's"
