"""A backup: warehouse, private file and journal of one moment in one directory, with a manifest that proves them whole.

Nothing in it is younger than the warehouse but marks, and a mark too many costs a question. A restored project is behind the
service: everything is marked, and its numbers go on above all that were ever given out, so that no answer and no writer of
the time in between passes for a newer one.
"""

import hashlib
import json
import logging
import os
import re
import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import msgspec

from octo_sync import __version__
from octo_sync.destinations.migrations import SCHEMA_VERSION
from octo_sync.disk import fsync, rename
from octo_sync.errors import JournalError, WarehouseError
from octo_sync.flows.backup import place as placing
from octo_sync.flows.horizon import booking_months, documents
from octo_sync.journal import Closing, Erased, Journal, copy_journal, is_in_use
from octo_sync.model import Clock, Source, SubjectKind, day_at
from octo_sync.pipeline import Pipeline

log = logging.getLogger("octo_sync")

MANIFEST = "manifest.json"
_FORMAT = 1
_CHUNK = 1 << 20
_IN_THE_MAKING = 3600.0
"""Seconds after which a backup that gets no further file is not being made any more, if its process is not there."""
_ROLES = {"warehouse": "warehouse.duckdb", "private": "private.duckdb", "journal": "journal.sqlite"}


class Files(NamedTuple):
    """Where a project's three files are; a manifest calls them so, too."""

    warehouse: Path
    private: Path
    journal: Path


@dataclass(frozen=True, slots=True)
class BackedUp:
    """One file of a backup."""

    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a backup says about itself; `files` by role."""

    format: int
    created_at: str
    run: str
    pipeline: str
    program: str
    schema: int
    files: Mapping[str, BackedUp]

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.bytes for file in self.files.values())


def back_up(files: Files, target: Path, *, now: datetime, run: str, name: str) -> Manifest:
    """Copy the project into the directory `target`, which appears when it is whole. Blocking.

    The caller holds the lease and has closed the warehouse: a DuckDB file that is open must not be read by other means.

    Raises:
        WarehouseError: `target` is there already, there is no room, or a file is not as it should be.
    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise WarehouseError(f"{target} is there already; a backup is written into a new directory.")
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # What a killed backup to the same place left: the lease is held, so it is nobody's.
    for left_over in target.parent.glob(f".{target.name}.backup-*"):
        shutil.rmtree(left_over, ignore_errors=True)
    _sweep_killed(target.parent, now)
    needed = sum(path.stat().st_size for path in files)
    _room_for(target.parent, needed)
    draft = target.with_name(f".{target.name}.backup-{os.getpid()}")
    draft.mkdir(mode=0o700)
    try:
        kept: dict[str, BackedUp] = {}
        for role, path in files._asdict().items():
            copy = draft / _ROLES[role]
            if path.with_name(f"{path.name}.wal").exists():
                raise WarehouseError(f"{path.name} was not closed: there is a log beside it. Nothing was backed up.")
            (copy_journal if role == "journal" else _copy)(path, copy)
            fsync(copy)
            kept[role] = BackedUp(copy.name, copy.stat().st_size, _digest(copy))
        manifest = Manifest(
            format=_FORMAT, created_at=now.isoformat(), run=run, pipeline=name, program=__version__,
            schema=SCHEMA_VERSION, files=kept,
        )  # fmt: skip
        paper = draft / MANIFEST
        paper.write_text(json.dumps(asdict(manifest), indent=2) + "\n", encoding="utf-8")
        paper.chmod(0o600)
        fsync(paper)
        fsync(draft)
        rename(draft, target)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    log.info("action=backup run=%s bytes=%d", run, manifest.size)
    return manifest


def _sweep_killed(folder: Path, now: datetime) -> None:
    """Remove what killed backups left half made in this folder, under whatever name: it holds personal data."""
    for path in folder.glob(".*.backup-*"):
        process = re.fullmatch(r".+-(\d{1,7})", path.name)
        if process is None or not path.is_dir() or placing.is_alive(int(process[1])):
            continue
        # Another container's processes are not seen from here, so nothing goes that may be in the making; and folders of
        # that name may be somebody else's.
        is_old = now.timestamp() - path.stat().st_mtime > _IN_THE_MAKING
        if is_old and all(each.name.startswith((*_ROLES.values(), MANIFEST)) for each in path.iterdir()):
            shutil.rmtree(path, ignore_errors=True)


def _room_for(directory: Path, needed: int) -> None:
    free = shutil.disk_usage(directory).free
    if free < needed:
        raise WarehouseError(f"{directory} has {free >> 20} MB free and {(needed >> 20) + 1} MB are needed; free some.")


def _copy(source: Path, target: Path) -> None:
    """Copy a file nobody has open, for its owner's eyes only."""
    with source.open("rb") as a, os.fdopen(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as b:
        shutil.copyfileobj(a, b, _CHUNK)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_manifest(source: Path) -> Manifest:
    """The manifest of a backup, after its files were compared with it, byte for byte.

    Raises:
        WarehouseError: It is no backup, not whole, or of a newer program.
    """
    try:
        manifest = msgspec.json.decode((source / MANIFEST).read_bytes(), type=Manifest)
        told = {role: manifest.files[role] for role in _ROLES}
    except FileNotFoundError:
        raise WarehouseError(f"{source} is no backup: it has no {MANIFEST}.") from None
    except (msgspec.DecodeError, KeyError):
        raise WarehouseError(f"{source / MANIFEST} cannot be read; take another backup.") from None
    if manifest.format > _FORMAT or manifest.schema > SCHEMA_VERSION:
        raise WarehouseError(
            f"{source} was made by a newer octo-sync ({manifest.program}, schema {manifest.schema}; this one knows "
            f"{SCHEMA_VERSION}); upgrade octo-sync."
        )
    for role, about in told.items():
        path = source / _ROLES[role]
        if not path.is_file():
            raise WarehouseError(f"{source} is not whole: {path.name} is missing. Take another backup.")
        if path.stat().st_size != about.bytes or _digest(path) != about.sha256:
            raise WarehouseError(f"{source} is damaged: {path.name} is not what was backed up. Take another backup.")
    return manifest


@dataclass(frozen=True, slots=True)
class Restored:
    """What a restore did. Months are of closings of the journal that was replaced: taken over, or other than the backup's."""

    kept: list[Path]
    """What was there before, under its new names."""
    closed: list[str]
    closed_otherwise: list[str]


def restore(
    files: Files, source: Path, manifest: Manifest, pipeline: Pipeline, clock: Clock, *, force: bool
) -> Restored:
    """Put a backup in place; what was there before is kept. Blocking; the caller holds the project's lock.

    Raises:
        WarehouseError: There is a project already, or it is a backup of another pipeline, and `force` is false, or a file
            cannot be copied; nothing was changed.
        JournalError: Another process has the journal open, or opened it meanwhile; nothing was changed.
    """
    if manifest.pipeline != pipeline.name and not force:
        raise WarehouseError(
            f"{source} is a backup of the pipeline {manifest.pipeline!r}, and this is {pipeline.name!r}; with --force it is "
            f"restored all the same."
        )
    there = [path.name for path in files if path.exists()]
    if there and not force:
        raise WarehouseError(
            f"There is a project already ({', '.join(there)}); with --force it is replaced, and kept beside under "
            f"another name."
        )
    _refuse_while_open(files.journal)
    order = placing.order_path(files.journal)
    targets = list(files)
    placing.sweep(order, targets)
    for role, path in files._asdict().items():
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        _room_for(path.parent, manifest.files[role].bytes)
        _copy(source / _ROLES[role], placing.staged(path))
        if _digest(placing.staged(path)) != manifest.files[role].sha256:
            raise WarehouseError(f"{source} changed while it was read; nothing was restored.")
    months = _catch_up(placing.staged(files.journal), files.journal, pipeline, clock)
    try:
        _refuse_while_open(files.journal)
        placing.give_order(order, targets, f"before-{clock.now():%Y%m%dT%H%M%S}")
        # Again: who opened it before the order was there goes on with what is about to be put aside. Nobody does after.
        _refuse_while_open(files.journal)
    except JournalError:
        placing.withdraw(order, targets)
        raise
    return Restored(placing.place(order), *months)


def _refuse_while_open(journal: Path) -> None:
    if journal.exists() and is_in_use(journal):
        raise JournalError(f"{journal.name} is open in another process, perhaps a receiver; end it first.")


def _catch_up(restored: Path, former: Path, pipeline: Pipeline, clock: Clock) -> tuple[list[str], list[str]]:
    """Let the restored journal go on above all numbers ever given out, and mark everything in it.

    Closings of the former one are taken over; the months of those, and of those that the restored one has otherwise.
    """
    now = clock.now()
    seq, fence = int(now.timestamp() * 1_000_000), int(now.timestamp())
    erased: Erased | None = None
    closings: Sequence[Closing] = ()
    if former.exists():
        try:
            with Journal.open(former, clock=clock) as old:
                lease = old.leases.last()
                seq, fence = max(seq, old.numbers.last()), max(fence, lease.fence + 1 if lease else 0)
                erased = old.erasures.erased()
                closings = old.closings.all()
        except JournalError as error:
            log.warning("action=restore former_journal=%s", type(error).__name__)
    with Journal.open(restored, clock=clock) as journal:
        journal.numbers.at_least(seq=seq, fence=fence)
        if erased:
            # The backup is from before: who was forgotten since is forgotten again when the project is opened. Its own
            # key for hashes stays, because the hashes in its warehouse were made with it.
            journal.erasures.erase_again(erased)
        taken = [each.period for each in closings if journal.closings.add(each)]
        # The backup's stays: it was made before, its warehouse shows it, and a restore heals one that was altered since.
        there = journal.closings.all()
        otherwise = [each.period for each in closings if each not in there]
        mark_everything(journal, pipeline, clock)
    return taken, otherwise


def mark_everything(journal: Journal, pipeline: Pipeline, clock: Clock, *, but: Collection[SubjectKind] = ()) -> int:
    """Say "look again" at all that is known, at each connection's documents, and at the horizon's bookings; how many.

    `but` are kinds of which nothing is marked.
    """
    known = (row.subject for c in pipeline.connections for row in journal.subjects.rows(c.name))
    wanted = {subject for subject in known if subject.kind not in but}
    for connection in pipeline.connections:
        today = day_at(connection.business_time_zone, clock.now())
        wanted |= {*documents(connection.name)}
        wanted |= {*booking_months(connection.name, pipeline.horizons.bookings.window(today))}
    journal.subjects.mark(sorted(wanted), Source.REPAIR)
    # A pull that was under way is not taken up: what it had landed may be what was lost.
    journal.settings.set("pull", None)
    return len(wanted)
