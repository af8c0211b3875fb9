"""`octo-sync db`: versions, migration, backup, restore and rebuild of a whole project, and every way to be killed at it."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from tests.cli.conftest import CLEAN

from octo_sync.app.machine import SystemClock
from octo_sync.app.project import open_journal, restore_files
from octo_sync.destinations.migrations import SCHEMA_VERSION
from octo_sync.errors import JournalError, WarehouseError
from octo_sync.flows.backup import place as placing
from octo_sync.flows.backup import save as backup
from octo_sync.journal import Journal
from octo_sync.pipeline import load

NO_NETWORK = {"SHOP_TOKEN": "no-token"}


def digests(project):
    return {t["table"]: (t["rows"], t["digest"]) for t in project.json("tables", "--digests")["tables"]}


def stored(project, sql, file="octo.duckdb"):
    """Ask a database file that nobody has open."""
    with duckdb.connect(project.directory / file, read_only=True) as db:
        return db.execute(sql).fetchall()


def journal(project, sql):
    with sqlite3.connect(f"file:{project.directory / 'octo.journal.sqlite'}?mode=ro", uri=True) as db:
        return db.execute(sql).fetchall()


def tree(directory):
    """Every file with its bytes, without locks and what opening a database leaves."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and not path.name.endswith((".lock", "-shm", "-wal")) and ".spool" not in str(path)
    }


def test_versions_and_a_migration_that_says_what_it_did(project):
    versions = project.json("db", "migrate", "--check")
    assert versions["schema"] == {"program": SCHEMA_VERSION, "file": SCHEMA_VERSION}
    assert versions["journal"]["program"] == versions["journal"]["file"] >= 1
    assert "nothing to do" in project.ok("db", "migrate")
    with duckdb.connect(project.directory / "octo.duckdb") as db:
        db.execute("update ops.schema_migrations set version = 0")
    behind = project("db", "migrate", "--check")
    assert behind.returncode == 3
    assert "warehouse schema" in behind.stdout
    assert "version 1  " in project.ok("db", "migrate")
    assert project.json("db", "migrate", "--check")["schema"]["file"] == SCHEMA_VERSION


def test_a_file_of_a_newer_program_is_refused_in_one_sentence(project):
    with duckdb.connect(project.directory / "octo.duckdb") as db:
        db.execute("insert into ops.schema_migrations values (999, now(), '99.0')")
    refused = project("db", "migrate")
    assert refused.returncode == 1
    assert "newer octo-sync (schema 999" in refused.stderr
    assert project("db", "migrate", "--check").returncode == 3


def test_a_backup_holds_one_moment_for_its_owner_alone_and_is_restored_as_it_was(project, tmp_path):
    before, target = digests(project), tmp_path / "backups" / "one"
    assert "3 files and a manifest" in project.ok("db", "backup", target)
    assert target.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in target.iterdir()} == {0o600}
    manifest = json.loads((target / "manifest.json").read_text())
    assert manifest["schema"] == SCHEMA_VERSION
    assert {name: about["bytes"] for name, about in manifest["files"].items()} == {
        role: (target / about["name"]).stat().st_size for role, about in manifest["files"].items()
    }
    again = project("db", "backup", target)
    assert again.returncode == 1
    assert "is there already" in again.stderr

    # The project is lost but for its pipeline.
    for path in project.directory.glob("octo.*"):
        path.unlink() if path.is_file() else shutil.rmtree(path)
    assert "everything is marked" in project.ok("db", "restore", target)
    project.ok("sync")
    assert digests(project) == before
    assert project("verify", "--live").returncode == 0


@pytest.mark.deep(4)
def test_a_restore_over_a_project_asks_and_keeps_what_was_there(project, tmp_path, service):
    target = tmp_path / "backup"
    project.ok("db", "backup", target)
    project.ok("sync")  # the project goes on: its numbers are higher now
    (newest,) = journal(project, "select value from counters where name = 'seq'")[0]
    (fence,) = journal(project, "select fence from leases where name = 'writer'")[0]
    before = tree(project.directory)
    refused = project("db", "restore", target)
    assert refused.returncode == 1
    assert "--force" in refused.stderr
    assert {k: v for k, v in tree(project.directory).items() if k in before} == before
    assert project.ok("db", "restore", target, "--force").count("kept") == 3
    kept = {p.name.split(".before-")[0] for p in project.directory.glob("*.before-restore-*")} or {
        p.name for p in project.directory.glob("*before-*")
    }
    assert len(kept) == 3
    assert journal(project, "select value > ? from counters where name = 'seq'".replace("?", str(newest))) == [(1,)]
    assert journal(project, f"select fence > {fence} from leases where name = 'writer'") == [(1,)]
    (dirty,) = journal(project, "select count(*) from subjects where wanted_seq > landed_seq")[0]
    (every,) = journal(project, "select count(*) from subjects")[0]
    assert dirty == every > 20
    project.ok("sync")
    assert project("verify", "--live").returncode == 0


@pytest.mark.parametrize("name", ["warehouse.duckdb", "journal.sqlite"])
def test_a_damaged_backup_is_refused_before_anything_is_touched(project, tmp_path, name):
    target = tmp_path / "backup"
    project.ok("db", "backup", target)
    data = bytearray((target / name).read_bytes())
    data[len(data) // 2] ^= 1
    (target / name).write_bytes(data)
    before = tree(project.directory)
    refused = project("db", "restore", target, "--force")
    assert refused.returncode == 1
    assert f"{name} is not what was backed up" in refused.stderr
    assert tree(project.directory) == before
    (target / name).unlink()
    assert "is missing" in project("db", "restore", target, "--force").stderr


@pytest.mark.parametrize(
    "damage",
    [
        lambda paper: paper["files"]["private"].pop("bytes"),
        lambda paper: paper["files"].update(private=None),
        lambda paper: paper["files"].pop("journal"),
        lambda paper: paper.update(format="1"),
        lambda paper: paper.update(schema=None),
        lambda paper: paper.update(created_at=20261120),
    ],
)
def test_a_damaged_manifest_is_refused_in_one_sentence(tmp_path, damage):
    files = {role: {"name": role, "bytes": 1, "sha256": "a"} for role in ("warehouse", "private", "journal")}
    paper = {"created_at": "2026-11-20T12:00:00+00:00", "run": "1", "pipeline": "shop", "program": "1"}
    paper |= {"format": 1, "schema": SCHEMA_VERSION, "files": files}
    damage(paper)
    (tmp_path / "manifest.json").write_text(json.dumps(paper))
    with pytest.raises(WarehouseError, match=r"manifest.json cannot be read; take another backup\.$"):
        backup.read_manifest(tmp_path)


def test_a_backup_of_another_pipeline_is_refused_and_with_force_it_is_said(project, tmp_path):
    project.ok("db", "backup", tmp_path / "backup")
    other = type(project)(tmp_path / "other")
    shutil.copytree(project.directory / "pipelines", other.directory / "pipelines")
    (other.directory / "pipelines" / "shop.toml").rename(other.directory / "pipelines" / "museum.toml")

    refused = other("db", "restore", tmp_path / "backup")

    assert refused.returncode == 1
    assert "is a backup of the pipeline 'shop', and this is 'museum'; with --force" in refused.stderr
    assert not list(other.directory.glob("octo.*duckdb"))
    forced = other("db", "restore", tmp_path / "backup", "--force")
    assert forced.returncode == 0
    assert "It was a backup of the pipeline 'shop'; this is 'museum'." in forced.stderr


def test_what_a_killed_backup_left_goes_with_the_next_and_nothing_else(project, tmp_path):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    folder, day_before = tmp_path / "backups", SystemClock().now().timestamp() - 86400

    def left(name, file, at=day_before):
        (folder / name).mkdir(parents=True)
        (folder / name / file).write_text("")
        os.utime(folder / name, (at, at))
        return folder / name

    killed_one = left(f".2026-11-20.backup-{gone.pid}", "warehouse.duckdb")
    stay = [
        left(f".2026-11-21.backup-{os.getpid()}", "warehouse.duckdb"),
        left(f".2026-11-22.backup-{gone.pid}", "warehouse.duckdb", at=day_before + 86000),
        left(f".photos.backup-{gone.pid}", "one.jpg"),
        left(".photos.backup-20261120101500", "warehouse.duckdb"),
    ]

    project.ok("db", "backup", folder / "2026-11-23")

    assert not killed_one.exists()
    assert all(path.exists() for path in stay)


OTHER = """
import sys
from pathlib import Path
from octo_sync.app.machine import SystemClock
from octo_sync.journal import Journal, Lease

path, clock = Path(sys.argv[1]), SystemClock()
with Journal.open(path, clock=clock) as journal:
    if sys.argv[2] == "writer":
        lease = journal.leases.acquire(path.with_name(path.name + ".lock"), owner="test")
    print("ready", flush=True)
    sys.stdin.read()
"""


@pytest.mark.deep(3)
def test_while_a_program_keeps_the_project_it_is_neither_backed_up_nor_restored(project, tmp_path):
    project.ok("db", "backup", tmp_path / "one")
    for role, commands in {"writer": ("backup", "restore"), "receiver": ("restore",)}.items():
        other = subprocess.Popen(
            [sys.executable, "-c", OTHER, str(project.directory / "octo.journal.sqlite"), role],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=CLEAN,
        )
        assert other.stdout.readline() == "ready\n"
        for command in commands:
            words = [tmp_path / "two"] if command == "backup" else [tmp_path / "one", "--force"]
            refused = project("db", command, *words)
            assert refused.returncode in (1, 6), (role, command, refused)
            assert "process" in refused.stderr
        other.communicate()
    assert not (tmp_path / "two").exists()
    project.ok("db", "restore", tmp_path / "one", "--force")


@pytest.mark.deep(2)
@pytest.mark.parametrize("moment", ["_copy", "_catch_up", "give_order"])
def test_a_restore_notices_who_opens_the_journal_while_it_copies(project, tmp_path, monkeypatch, moment):
    project.ok("db", "backup", tmp_path / "one")
    files = [project.directory / f"octo.{name}" for name in ("duckdb", "private.duckdb", "journal.sqlite")]
    before = [(file.stat().st_ino, file.read_bytes()) for file in files[:2]], files[2].stat().st_ino
    pipeline = load(
        project.directory / "pipelines" / "shop.toml", directory=project.directory, environ=NO_NETWORK, overrides={}
    )
    others = []

    def first(owner, name):
        real = getattr(owner, name)

        def opened(*args, **named):
            if not others:
                words = [sys.executable, "-c", OTHER, str(files[2]), "receiver"]
                others.append(
                    subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=CLEAN)
                )
                assert others[0].stdout.readline() == "ready\n"
            return real(*args, **named)

        monkeypatch.setattr(owner, name, opened)

    first(placing if moment == "give_order" else backup, moment)
    with pytest.raises(JournalError, match="open in another process"):
        restore_files(pipeline, tmp_path / "one", force=True)
    assert ([(file.stat().st_ino, file.read_bytes()) for file in files[:2]], files[2].stat().st_ino) == before
    assert not list(project.directory.glob(".*placing*")), "the order is taken back"
    assert not list(project.directory.glob(".*staged*"))
    others[0].communicate()
    restore_files(pipeline, tmp_path / "one", force=True)


def test_who_opens_a_journal_as_another_takes_its_place_has_the_new_one(project, monkeypatch):
    pipeline = load(
        project.directory / "pipelines" / "shop.toml", directory=project.directory, environ=NO_NETWORK, overrides={}
    )
    real, given = Journal.open, []

    def opened(*args, **named):
        journal = real(*args, **named)
        if not given:  # after it was seen that there is no order, and before the file is looked at again
            given.append(order(project))
            placing.place(given[0])
        return journal

    monkeypatch.setattr(Journal, "open", opened)
    with open_journal(pipeline, SystemClock()) as journal:
        assert {run.pipeline for run in journal.runs.last(10)} == {"restored"}


def order(project):
    """What a restore leaves that is killed after the point from which it counts: files beside, and the order to place them."""
    target = project.directory / "octo.journal.sqlite"
    with sqlite3.connect(target) as old, sqlite3.connect(placing.staged(target)) as new:
        old.backup(new)
        new.execute("update runs set pipeline = 'restored'")
    old.close()
    new.commit()
    new.close()
    placing.give_order(placing.order_path(target), [target], "before-1")
    return placing.order_path(target)


LOOKING = [
    ("runs",),
    ("quarantine",),
    ("status",),
    ("privacy", "list"),
    ("doctor", "--offline"),
    ("db", "migrate", "--check"),
]


@pytest.mark.deep(1, everyday=["runs", "status"])
@pytest.mark.parametrize("words", LOOKING, ids="-".join)
def test_a_restore_that_was_cut_off_is_finished_by_whatever_looks_at_the_journal(project, words):
    given = order(project)
    project(*words)
    assert not given.exists()
    assert journal(project, "select distinct pipeline from runs") == [("restored",)]


@pytest.mark.deep(2)
def test_a_journal_that_another_process_is_putting_in_place_is_not_looked_at(project):
    with subprocess.Popen(
        [sys.executable, "-c", OTHER, str(project.directory / "octo.journal.sqlite"), "writer"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=CLEAN,
    ) as other:  # fmt: skip
        assert other.stdout.readline() == "ready\n"
        given = order(project)
        refused = project("runs")
        assert refused.returncode in (1, 6)
        assert "process" in refused.stderr
        assert given.exists()
    project.ok("runs")
    assert not given.exists()


KILL = """
import os, sys
from pathlib import Path
count, at = 0, int(sys.argv[1])
def step():
    global count
    if count == at:
        os._exit(9)
    count += 1
def before(owner, name):
    real = getattr(owner, name)
    def stepped(*args, **named):
        step()
        done = real(*args, **named)
        step()
        return done
    setattr(owner, name, stepped)
for name in ("replace", "unlink", "write_text", "mkdir"):
    before(Path, name)
before(os, "fsync")
from octo_sync.cli import main
try:
    main(sys.argv[2:])
except SystemExit as stop:
    if stop.code:
        raise
print("steps", count)
"""


def killed(project, at, *words):
    """Run a command in a process that dies at its n-th change of names (-1: never); how many there were."""
    done = subprocess.run(
        [sys.executable, "-c", KILL, str(at), *map(str, words)],
        cwd=project.directory, env=CLEAN, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == (9 if at >= 0 else 0), done.stderr
    return int(done.stdout.rpartition("steps")[2]) if at < 0 else 0


def moments(steps, most=6):
    """Some of the steps, the last ones among them."""
    return sorted({*range(0, steps, max(1, steps // most)), *range(max(0, steps - 4), steps)})


@pytest.mark.deep(15)
def test_a_backup_killed_at_any_moment_is_whole_or_not_there(project, tmp_path):
    steps = killed(project, -1, "db", "backup", tmp_path / "probe")
    for at in moments(steps):
        target = tmp_path / f"backup-{at}"
        killed(project, at, "db", "backup", target)
        if not target.exists():
            project.ok("db", "backup", target)
        assert not list(tmp_path.glob(f".{target.name}.backup-*")), "what the killed one left is swept"
        fresh = type(project)(tmp_path / f"project-{at}")
        shutil.copytree(project.directory / "pipelines", fresh.directory / "pipelines")
        fresh.ok("db", "restore", target)
        shutil.rmtree(target)


@pytest.mark.deep(20)
def test_a_restore_killed_at_any_moment_leaves_the_old_project_or_the_new_one(project, tmp_path):
    backup = tmp_path / "backup"
    project.ok("db", "backup", backup)
    name = "select max(run_id) from ops.runs"
    with duckdb.connect(project.directory / "octo.duckdb") as db:
        db.execute("update ops.runs set pipeline = 'later'")
    with duckdb.connect(project.directory / "octo.private.duckdb") as db:
        db.execute("update raw.records set source = 'later'")
    with sqlite3.connect(project.directory / "octo.journal.sqlite") as db:
        db.execute("update runs set pipeline = 'later'")
    db.close()
    assert stored(project, name)

    def state(at):
        """Which of the two the three files are of."""
        return (
            stored(at, "select any_value(pipeline) from ops.runs")[0][0] == "later",
            stored(at, "select any_value(source) from raw.records", "octo.private.duckdb")[0][0] == "later",
            journal(at, "select max(pipeline) from runs where command = 'sync'")[0][0] == "later",
        )

    assert state(project) == (True, True, True)
    probe = type(project)(tmp_path / "probe")
    shutil.copytree(project.directory, probe.directory)
    steps = killed(probe, -1, "db", "restore", backup, "--force")
    assert state(probe) == (False, False, False)
    seen = set()
    for at in moments(steps, most=10):
        victim = type(project)(tmp_path / f"victim-{at}")
        shutil.copytree(project.directory, victim.directory)
        killed(victim, at, "db", "restore", backup, "--force")
        victim.ok("db", "migrate")  # whatever opens the project finishes it
        found = state(victim)
        seen.add(found)
        assert found in {(True, True, True), (False, False, False)}, at
        assert not list(victim.directory.glob(".*staged*")), at
        shutil.rmtree(victim.directory)
    assert len(seen) == 2, "kills before and after the point from which it counts"


def test_a_rebuild_asks_no_service_and_the_next_sync_reads_every_answer(project):
    before = digests(project)
    (payloads,) = stored(project, "select count(*) from raw.records", "octo.private.duckdb")[0]
    contacts = "select * exclude (row_hash) from private.booking_contacts order by all"
    people = stored(project, contacts, "octo.private.duckdb")
    history = stored(project, "select * from core.booking_history order by all")
    verified = "select resource, key, verified_at_utc::varchar, source from ops.coverage"
    covered = stored(project, verified)
    pipeline = next((project.directory / "pipelines").glob("*.toml"))
    address = pipeline.read_text()
    pipeline.write_text(address.replace(address.split('base_url = "')[1].split('"')[0], "http://127.0.0.1:9/octo/v1"))
    made = project.json("db", "rebuild")
    pipeline.write_text(address)
    assert made["rows"] > 1000
    assert made["unread"] == []
    assert len(made["kept"]) == 2
    assert not [*project.directory.glob("..*"), *project.directory.glob("*staged*")], "working storage goes with it"
    assert stored(project, "select count(*) from raw.records", "octo.private.duckdb") == [(payloads,)]
    assert stored(project, contacts, "octo.private.duckdb") == people
    assert stored(project, "select * from core.booking_history order by all") == history
    assert sorted(stored(project, verified)) == sorted(covered), "nothing was verified by it"
    assert stored(project, "select count(*) from ops.coverage where answer_hash is not null") == [(0,)]
    (dirty,) = journal(project, "select count(*) from subjects where wanted_seq = landed_seq")[0]
    assert dirty == 0
    project.ok("publish")
    after = digests(project)
    assert after == before
    assert after["core.bookings"][0] > 50
    proofs = "select count(*) from core.bookings where not is_deleted and {} is not null"
    assert stored(project, proofs.format("payload_digest")) == stored(project, proofs.format("row_hash")) == [(0,)]
    project.ok("sync")
    assert digests(project) == before
    (landed,) = stored(project, proofs.format("payload_digest"))[0]
    assert landed == after["core.bookings"][0], "each answer was read, and written whatever it said"
    assert stored(project, "select * from core.booking_history order by all") == history
    assert project("verify", "--live").returncode == 0


@pytest.mark.deep(3)
@pytest.mark.parametrize("lost", ["octo.duckdb", "octo.private.duckdb"])
def test_a_rebuild_makes_do_with_what_can_be_read(project, lost):
    before = digests(project)
    (project.directory / lost).write_bytes(b"this was a database once" * 4000)
    assert project.json("db", "rebuild")["unread"] == [lost]
    project.ok("sync")
    assert digests(project) == before


_HEADER, _BLOCK = 3 * 4096, 262144


def damage(project, table, file):
    """Turn bytes over in a block that holds rows of the table, as a dying disk does; the tables that cannot be read then."""
    path = project.directory / file
    (block,) = stored(project, f"select max(block_id) from pragma_storage_info('{table}') where block_id >= 0", file)[0]
    with path.open("r+b") as opened:
        for place in range(_HEADER + block * _BLOCK + 64, _HEADER + (block + 1) * _BLOCK, 4096):
            opened.seek(place)
            turned = bytes(byte ^ 0xFF for byte in opened.read(64))
            opened.seek(place)
            opened.write(turned)
    lost = set()
    for (name,) in stored(project, "select schema_name || '.' || table_name from duckdb_tables()", file):
        try:
            stored(project, f"select * from {name}", file)
        except duckdb.Error:
            lost.add(name)
    return lost


@pytest.mark.deep(5)
@pytest.mark.parametrize(
    ("file", "table"),
    [
        ("octo.duckdb", "core.bookings"),
        ("octo.duckdb", "core.availability_prices"),
        ("octo.duckdb", "core.booking_history"),
        ("octo.private.duckdb", "raw.records"),
    ],
)
def test_a_rebuild_of_a_file_with_a_damaged_block_carries_the_rest_over(project, file, table):
    """Such a file opens: it is the reading of a table that fails, and only of those that lie in the block."""
    before = digests(project)
    there = {n for (n,) in stored(project, "select schema_name || '.' || table_name from duckdb_tables()", file)}
    rows = {name: stored(project, f"select count(*) from {name}", file) for name in there - {"ops.writer"}}
    lost = damage(project, table, file)
    assert table in lost
    assert there - lost
    made = project.json("db", "rebuild")
    assert table in made["unread"]
    assert set(made["unread"]) <= lost
    for name in ("core.booking_history", "ops.runs", "private.booking_contacts"):
        if name in there - lost:
            assert stored(project, f"select count(*) from {name}", file) == rows[name]
    # Departures wait for the pull where their products have to come first.
    waiting = " and kind <> 'availability'" if {"core.products", "core.options"} & {*made["unread"]} else ""
    assert journal(project, f"select count(*) from subjects where wanted_seq = landed_seq{waiting}") == [(0,)]
    project.ok("sync")
    assert digests(project) == before
    assert project("verify", "--live").returncode == 0


@pytest.mark.deep(3)
def test_a_rebuild_asks_by_its_id_for_what_is_lost_and_no_list_shows(project):
    before = digests(project)
    (uuid,) = stored(project, "select min(booking_uuid) from core.bookings where not is_deleted")[0]
    with duckdb.connect(project.directory / "octo.private.duckdb") as db:
        db.execute(
            'update raw.records set payload = regexp_replace(payload, \'"localDateTimeStart":\\s*"[0-9-]{10}\', '
            "'\"localDateTimeStart\":\"2001-01-01', 'g') where key = $1",
            [uuid],
        )
    (project.directory / "octo.duckdb").unlink()
    assert project.json("db", "rebuild")["unread"] == ["octo.duckdb"]
    dirty = "select count(*) from subjects where kind = 'booking' and wanted_seq > landed_seq and key like '%{}%'"
    assert journal(project, dirty.format(uuid)) == [(1,)]
    project.ok("sync")
    assert journal(project, dirty.format(uuid)) == [(0,)]
    assert digests(project) == before


@pytest.mark.deep(3)
def test_a_rebuild_leaves_one_row_a_key(project):
    before = digests(project)
    with duckdb.connect(project.directory / "octo.duckdb") as db:
        for table in ("core.availability", "core.bookings", "core.booking_unit_items"):
            db.execute(f"insert into {table} select * from {table} limit 3")
    project.json("db", "rebuild")
    project.ok("publish")
    assert digests(project) == before


def test_what_killed_processes_left_is_swept_by_the_next_writer(project):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    mine = os.getpid()
    folder = project.directory
    left = [folder / f".octo.journal.sqlite.new-{dead.pid}-7", folder / f"octo-verify-{dead.pid}-abc" / "fresh.duckdb"]
    left += [folder / "..octo.duckdb.spool" / "tmp" / "x.tmp", folder / "..octo.private.duckdb.spool" / "x.ndjson"]
    left += [folder / ".octo.duckdb.anew", folder / ".octo.duckdb.staged", folder / ".octo.spool" / "x.ndjson"]
    left += [folder / f"octo-move-{dead.pid}-abc" / "octo.duckdb"]
    kept = [folder / f".octo.journal.sqlite.new-{mine}-7", folder / f"octo-verify-{mine}-abc" / "fresh.duckdb"]
    kept += [folder / f"octo-export-new-{dead.pid}-11.csv", folder / f"octo-old-move-{dead.pid}-b" / "mine.csv"]
    for path in (*left, *kept):
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_bytes(b"left over")
    project.ok("db", "migrate")
    assert [path.name for path in left if path.exists()] == []
    assert not Path(left[1]).parent.exists()
    assert not list(folder.glob("..*"))
    assert all(path.exists() for path in kept), "of a process that lives, or a user's own"
