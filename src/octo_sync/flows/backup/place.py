"""Put several files in place as if they were one: after a kill at any moment either all of them are new, or none.

Each new file is made beside its place, under a name of its own. Then one small file, the order, is put beside the journal:
from that moment on they count as in place, and whoever opens the project next finishes what is left to rename. What was
there before is kept beside.
"""

import glob
import json
import os
import re
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from octo_sync.disk import fsync, rename
from octo_sync.journal import locked

COMPANIONS = (".wal", "-wal", "-shm", "-journal")
"""What DuckDB and SQLite keep beside a file: it belongs to the file that was there, and would be applied to the new one."""


def staged(target: Path) -> Path:
    """Where the file is made that shall take this place."""
    return target.with_name(f".{target.name}.staged")


def lock_beside(journal: Path) -> Path:
    """The file whose lock says who is the one writer."""
    return journal.with_name(f"{journal.name}.lock")


def order_path(journal: Path) -> Path:
    """Where the order of a project is."""
    return journal.with_name(f".{journal.name}.placing")


def give_order(order: Path, targets: Sequence[Path], tag: str) -> None:
    """Every staged file is whole: from here on they count as in place. `tag` names what was there before."""
    for target in targets:
        fsync(staged(target))
        fsync(target.parent)
    draft = order.with_name(f"{order.name}.draft")
    draft.write_text(json.dumps({"tag": tag, "targets": [str(t.resolve()) for t in targets]}), encoding="utf-8")
    draft.chmod(0o600)
    fsync(draft)
    rename(draft, order)


def withdraw(order: Path, targets: Iterable[Path]) -> None:
    """Take an order back of which nothing was carried out, and remove what was staged."""
    order.unlink(missing_ok=True)
    fsync(order.parent)
    sweep(order, targets)


def place(order: Path) -> list[Path]:
    """Carry out the order, or what is left of it; the files that were there before, under their new names.

    Nobody may have any of the files open.
    """
    if not order.exists():
        return []
    given = json.loads(order.read_text(encoding="utf-8"))
    kept = []
    for target in map(Path, given["targets"]):
        new = staged(target)
        if new.exists():
            # Companions first: without them the old file would be taken for one that lost nothing.
            for name in (*(f"{target.name}{suffix}" for suffix in COMPANIONS), target.name):
                old = target.with_name(name)
                if old.exists():
                    aside = _aside(target, old.name.removeprefix(target.name), given["tag"])
                    old.replace(aside)
            rename(new, target)
        aside = _aside(target, "", given["tag"])
        if aside.exists():
            kept.append(aside)
    order.unlink()
    fsync(order.parent)
    return kept


def _aside(target: Path, suffix: str, tag: str) -> Path:
    return target.with_name(f"{target.stem}.{tag}{target.suffix}{suffix}")


def sweep(order: Path, targets: Iterable[Path]) -> None:
    """Remove staged files for which no order was given, and their working storage. Only who owns the project may call it."""
    if order.exists():
        return
    order.with_name(f"{order.name}.draft").unlink(missing_ok=True)
    for target in targets:
        new = staged(target)
        for suffix in ("", *COMPANIONS):
            new.with_name(f"{new.name}{suffix}").unlink(missing_ok=True)
        # What DuckDB spills while the file is made, and checked records on their way into it.
        shutil.rmtree(new.with_name(f".{new.stem}.spool"), ignore_errors=True)


def sweep_killed(directory: Path, journal: Path) -> None:
    """Remove what killed processes left half made: drafts of a journal, scratch folders of a verification or a move."""
    draft = f".{journal.name}.new-"
    for start, folder in ((draft, journal.parent), ("octo-verify-", directory), ("octo-move-", directory)):
        for path in folder.glob(f"{glob.escape(start)}*"):
            found = re.match(r"(\d+)-", path.name.removeprefix(start))
            if found and not is_alive(int(found[1])):
                if path.is_dir():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink(missing_ok=True)


def is_alive(pid: int) -> bool:
    """Whether a process of this machine still runs."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass  # somebody else's
    return True


def finish_placing(journal: Path) -> None:
    """Finish a restore or rebuild that was killed after the point from which it counts. First of all, whatever is opened.

    Raises:
        LeaseHeld: It is under way in another process.
    """
    order = order_path(journal)
    if order.exists():
        with locked(lock_beside(journal)):
            place(order)
