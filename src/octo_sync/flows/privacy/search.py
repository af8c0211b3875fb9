"""Look for a person's texts in the bytes of every file of a project.

In a process of its own: the one that holds a DuckDB file must not open it by other means, because the lock would drop. What
a database has compressed shows in no such search, so this is the second proof; the first is that the rows are gone and the
file was written anew from those that are left.
"""

import json
import subprocess
import sys
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from octo_sync.errors import OctoSyncError

_WITHIN = 30.0
_SEARCH = """
import json, os, sys, time
asked = json.load(sys.stdin)
needles = [bytes.fromhex(n) for n in asked["needles"]]
longest = max(map(len, needles), default=1)
end, files, holding, closed, complete = time.monotonic() + asked["within"], 0, [], [], True
for folder, folders, names in os.walk(asked["directory"]):
    folders[:] = [f for f in folders if f not in (".git", ".venv", "node_modules", "__pycache__")]
    for name in names:
        path, rest = os.path.join(folder, name), b""
        if not os.path.isfile(path) or os.path.islink(path):
            continue
        if time.monotonic() > end:
            complete = False
            break
        try:
            with open(path, "rb") as file:
                head = file.read(16)
                if head[8:12] == b"DUCK" or head.startswith((b"PAR1", b"PK\\x03\\x04", b"\\x1f\\x8b")):
                    closed.append(os.path.relpath(path, asked["directory"]))
                file.seek(0)
                while needles and (piece := file.read(1 << 24)):
                    data = rest + piece.lower()
                    if any(n in data for n in needles):
                        holding.append(os.path.relpath(path, asked["directory"]))
                        break
                    rest = data[-longest:]
            files += 1
        except OSError:
            continue
json.dump({"files": files, "holding": sorted(holding), "closed": sorted(closed), "complete": complete}, sys.stdout)
"""


@dataclass(frozen=True, slots=True)
class Searched:
    """How many files were looked at, and which of them hold a text; not `complete` when time was too short for all.

    `closed` are files in which a text may stand unseen, because they are compressed: DuckDB, Parquet, XLSX and the like.
    """

    files: int
    holding: Sequence[str]
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


def search(directory: Path, needles: Collection[bytes]) -> Searched:
    """Read every file below the directory and tell which hold one of the needles, and into which one cannot see.

    Needles are as `forms_of` gives them; ASCII letters of files are compared as small ones.

    Without needles only the latter. Blocking, `_WITHIN` seconds at most.

    Raises:
        OctoSyncError: The search could not be run.
    """
    asked = {"directory": str(directory.resolve()), "needles": [n.hex() for n in needles], "within": _WITHIN}
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
