"""Look for a person's texts in the bytes of every file of a project.

In a process of its own: the one that holds a DuckDB file must not open it by other means, because the lock would drop. What
a database has compressed shows in no such search, so this is the second proof; the first is that the rows are gone and the
file was written anew from those that are left.
"""

import dataclasses
import json
import subprocess
import sys
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from octo_sync.errors import OctoSyncError
from octo_sync.journal import Erasure
from octo_sync.pipeline import Pipeline

_WITHIN = 30.0
_SEARCH = r"""
import json, os, re, sys, time
asked = json.load(sys.stdin)
needles, apart = ([bytes.fromhex(n) for n in asked[kind]] for kind in ("needles", "apart"))
alone = [(n, re.compile(rb"(?<![\w.+-])(?<![\w.+-]\0)" + re.escape(n) + rb"(?!\0?[\w-])")) for n in apart]
longest = max(map(len, [*needles, *apart]), default=1)
end, files, holding, beside, closed, complete = time.monotonic() + asked["within"], 0, [], [], [], True
for folder, folders, names in os.walk(asked["directory"]):
    folders[:] = [f for f in folders if f not in (".git", ".venv", "node_modules", "__pycache__")]
    for name in names:
        path, rest, is_beside = os.path.join(folder, name), b"", False
        shown = os.path.relpath(path, asked["directory"])
        if not os.path.isfile(path) or os.path.islink(path):
            continue
        if time.monotonic() > end:
            complete = False
            break
        try:
            with open(path, "rb") as file:
                head = file.read(16)
                if head[8:12] == b"DUCK" or head.startswith((b"PAR1", b"PK\x03\x04", b"\x1f\x8b")):
                    closed.append(shown)
                file.seek(0)
                while (needles or apart) and (piece := file.read(1 << 24)):
                    data = rest + piece.lower()
                    if any(n in data for n in needles):
                        holding.append(shown)
                        break
                    is_beside = is_beside or any(n in data and pattern.search(data) for n, pattern in alone)
                    rest = data[-longest:]
                else:
                    beside += [shown] if is_beside else []
            files += 1
        except OSError:
            continue
found = {"holding": sorted(holding), "beside": sorted(beside), "closed": sorted(closed)}
json.dump(found | {"files": files, "complete": complete}, sys.stdout)
"""


@dataclass(frozen=True, slots=True)
class Searched:
    """How many files were looked at, and which of them hold a text; not `complete` when time was too short for all.

    `beside` are others, which hold one that had to stand apart. `closed` are files in which a text may stand unseen,
    because they are compressed: DuckDB, Parquet, XLSX and the like.
    """

    files: int
    holding: Sequence[str]
    beside: Sequence[str]
    closed: Sequence[str]
    complete: bool


def forms_of(text: str) -> list[bytes]:
    """A text as files may hold it, its ASCII letters small: UTF-8, escaped for JSON, cp1252, UTF-16 of both kinds.

    UTF-8 with accents as signs of their own, too. What cp1252 has not is as HTML writes it.
    """
    escaped, apart = json.dumps(text)[1:-1].encode(), unicodedata.normalize("NFD", text).encode()
    plain = [text.encode(), escaped, apart, text.encode("cp1252", "xmlcharrefreplace")]
    wide = [text.encode("utf-16-le"), text.encode("utf-16-be")]
    return list(dict.fromkeys(form.lower() for form in (*plain, *wide)))


def search(directory: Path, needles: Collection[bytes], apart: Collection[bytes] = ()) -> Searched:
    """Read every file below the directory and tell which hold one of the needles, and into which one cannot see.

    Needles are as `forms_of` gives them; ASCII letters of files are compared as small ones. Those in `apart` count where
    no longer word or address holds them. Without any only the latter. Blocking, `_WITHIN` seconds at most.

    Raises:
        OctoSyncError: The search could not be run.
    """
    wanted = {"needles": [n.hex() for n in needles], "apart": [n.hex() for n in apart]}
    asked = {"directory": str(directory.resolve()), "within": _WITHIN, **wanted}
    done = subprocess.run(  # noqa: S603 - our own interpreter and a constant program
        [sys.executable, "-I", "-S", "-c", _SEARCH],
        input=json.dumps(asked),
        capture_output=True,
        check=False,
        text=True,
    )
    if done.returncode:
        raise OctoSyncError(f"{directory} could not be searched for what is left: {done.stderr.strip()[-200:]}")
    return Searched(**json.loads(done.stdout))


def is_own(pipeline: Pipeline, path: Path) -> bool:
    """Whether it is of the project's own databases: their rows are gone, and their files made anew or copies of what was."""
    own = (pipeline.destination, pipeline.private_path, pipeline.publish.path, pipeline.publish.contacts_path)
    lakes = [(pipeline.lake or ""), f"{pipeline.lake}.private", pipeline.publish.delta]
    folders = {Path(bare) for lake in lakes if (bare := lake.removeprefix("file://")).startswith("/")}
    is_journal = path.name.startswith(pipeline.journal_path.name)
    return path in own or is_journal or not folders.isdisjoint(path.absolute().parents)


def still_holding(paths: Iterable[str]) -> list[str]:
    """What is said of files that hold a person."""
    return [f"{path} still holds it and is not octo-sync's to change." for path in sorted(paths)]


def look_for(pipeline: Pipeline, erasure: Erasure, emails: Collection[str]) -> Erasure:
    """The erasure, which is done, with whatever other files hold one of the addresses as it was typed.

    Whoever carried it out knew the hashes of these alone, and the texts of the contacts that it found.
    """
    typed = [form for email in emails for form in forms_of(email)]
    known = set(erasure.holding)
    more = {p for p in search(pipeline.directory, (), typed).beside if not is_own(pipeline, pipeline.directory / p)}
    holding = tuple(sorted(known | more))
    return dataclasses.replace(erasure, holding=holding, left=(*erasure.left, *still_holding(more - known)))
