"""What is wrong, before it goes wrong: the machine and the files. A finding says what to do where something helps (`advice`).

`service` looks at each service, `address` at the address for webhooks.
"""

import stat
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from octo_sync.flows.doctor.advice import NONE, Fix, advise
from octo_sync.flows.doctor.unpriced import sentence
from octo_sync.journal import LeaseRow
from octo_sync.model import zone_of

Level = Literal["ok", "unknown", "warn", "fail"]

_ROOM = 1_000_000_000
_NO_ROOM = 100_000_000


@dataclass(frozen=True, slots=True)
class Finding:
    """One line: what was looked at, how it is, what follows from it for the copy, and what to do about it."""

    area: str
    name: str
    level: Level
    text: str
    fix: Fix = NONE
    refused: bool = False
    """Whether the service refused the token."""
    consequence: str = ""


# -- the machine ------------------------------------------------------------------------------------------------------


def machine(versions: Mapping[str, str]) -> list[Finding]:
    """Python, libraries, time-zone data. `versions` by library."""
    found = {name: Finding("machine", name, "ok", version) for name, version in versions.items()}
    if not versions["duckdb"].startswith("2."):
        text = f"{versions['duckdb']}; version 2 is needed"
        found["duckdb"] = Finding("machine", "duckdb", "fail", text, advise("duckdb"))
    zones = Finding("machine", "time zones", "ok", "time-zone data is there")
    if not zone_of("Europe/Lisbon"):
        zones = Finding("machine", "time zones", "fail", "no time-zone data", advise("zones missing"))
    return [*found.values(), zones]


# -- the copy ----------------------------------------------------------------------------------------------------------


def copy(
    held: Iterable[str], kept: Iterable[str], contradicted: Mapping[str, int], free: Mapping[str, int]
) -> list[Finding]:
    """What is kept back, and what contradicts itself.

    Args:
        held: Why deletions are held.
        kept: Which fields are missing.
        contradicted: Per connection the live bookings whose own id was not found.
        free: Per connection the bookings of no price, though something of them has one.
    """
    finding = partial(Finding, "copy")
    return [
        *(finding("deletions", "warn", text, advise("held")) for text in held),
        *(finding("fields", "warn", text, advise("kept")) for text in kept),
        *(finding("prices", "warn", sentence(name, count), advise("prices")) for name, count in free.items()),
        *(
            finding(
                "bookings",
                "unknown",
                f"{count} bookings of {name} are listed, but not found by their own id, as lapsed holds are at some services",
                consequence="they stay as the list shows them, and are not asked for one by one",
            )
            for name, count in contradicted.items()
        ),
    ]


# -- the files --------------------------------------------------------------------------------------------------------


def files(
    directory: Path,
    *,
    places: Mapping[str, Path],
    private: Iterable[Path],
    secret: Iterable[Path],
    lease: LeaseRow | None,
    alive: Callable[[int, str], bool],
    writable: Callable[[Path], bool],
    free: Callable[[Path], int],
    warehouse: Path | None,
    storage: str | None,
) -> list[Finding]:
    """The project's directory and files.

    Args:
        directory: The project.
        places: Files that are written, by key of the pipeline file.
        private: Files that nobody else may read: databases and journal.
        secret: Files that may hold a token.
        lease: Who works here, or worked last.
        alive: Whether a process (id, host) still runs.
        writable: Whether this user may write there.
        free: Bytes that are free there.
        warehouse: The DuckDB file.
        storage: Storage version of the read copy; None when there is none.
    """
    found = [_directory(directory, writable), *_elsewhere(directory, places, writable), *_modes([*private, *secret])]
    if lease and lease.released_at is None and alive(lease.pid, lease.host):
        held = f"{lease.owner} (pid {lease.pid} on {lease.host}) works here since {lease.acquired_at:%H:%M:%S} UTC"
    else:
        held = "free"
    found.append(Finding("files", "lock", "ok", held))
    if storage:
        found.append(Finding("files", "storage", "ok", f"read copy in DuckDB storage version {storage}"))
    found.append(_room(directory, free, warehouse))
    return found


def _directory(directory: Path, writable: Callable[[Path], bool]) -> Finding:
    here, finding = _there(directory), partial(Finding, "files", "directory")
    if not here.is_dir():
        return finding("fail", f"{directory} does not exist", advise("no directory", path=directory))
    if not writable(here):
        return finding("fail", f"{here} cannot be written", advise("not writable", path=here))
    mode = stat.S_IMODE(here.stat().st_mode)
    if mode & 0o022 and not mode & stat.S_ISVTX:
        text = f"{here} may be written by other users (mode {mode:04o})"
        return finding("warn", text, advise("open directory", path=here))
    return finding("ok", f"{here} is writable")


def _elsewhere(directory: Path, places: Mapping[str, Path], writable: Callable[[Path], bool]) -> Iterable[Finding]:
    """The files in folders other than the project's that cannot be written."""
    for key, path in places.items():
        # Folders that are missing are made.
        above = next(folder for folder in path.absolute().parents if folder.exists())
        if path.absolute().parent != directory.absolute() and not (above.is_dir() and writable(above)):
            yield Finding("files", key, "fail", f"{path} cannot be written", advise("elsewhere", key=key))


def _there(directory: Path) -> Path:
    """The project's directory, or the one that it would be made in."""
    return (directory if directory.exists() else directory.absolute().parent).absolute()


def _modes(paths: Iterable[Path]) -> list[Finding]:
    there = [p for p in paths if p.is_file()]
    loose = [p for p in there if stat.S_IMODE(p.stat().st_mode) & 0o077]
    if loose:
        names = " ".join(str(p) for p in loose)
        return [Finding("files", "modes", "warn", f"other users may read {names}", advise("open files", paths=names))]
    return [Finding("files", "modes", "ok", f"{len(there)} files, for this user only" if there else "no files yet")]


def _room(directory: Path, free_at: Callable[[Path], int], warehouse: Path | None) -> Finding:
    free = free_at(_there(directory))
    # A publish writes a whole copy beside the old one.
    size = warehouse.stat().st_size if warehouse is not None and warehouse.exists() else 0
    text = f"{free / 1e9:.1f} GB free"
    if free < max(_NO_ROOM, size):
        return Finding("files", "disk", "fail", f"{text}; the next publish needs {size / 1e9:.1f} GB", advise("room"))
    if free < max(_ROOM, 3 * size):
        return Finding("files", "disk", "warn", text, advise("room"))
    return Finding("files", "disk", "ok", text)
