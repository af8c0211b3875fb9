"""A DuckDB file for readers: copied in a subprocess, because its owner must not open it by other means, and swapped in."""

import glob
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from octo_sync.errors import WarehouseError

__all__ = ["copy_into_place"]

_COPY = """
import os, shutil, sys
source, target = sys.argv[1:]
with open(source, 'rb') as a, open(target, 'wb') as b:
    shutil.copyfileobj(a, b, 1 << 22)
    b.flush()
    os.fsync(b.fileno())
"""


def copy_into_place(source: Path, target: Path) -> int:
    """Copy beside the target, flush, then rename over it: readers have the old file or the new one, never half of one."""
    for left_over in target.parent.glob(f".{glob.escape(target.name)}.*"):
        left_over.unlink(missing_ok=True)  # of one that was killed; there is one writer, so nobody else's
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    os.close(handle)
    fresh = Path(name)
    try:
        done = subprocess.run(  # noqa: S603 - our own interpreter and a constant program
            [sys.executable, "-I", "-S", "-c", _COPY, str(source), str(fresh)], capture_output=True, check=False
        )
        size = fresh.stat().st_size
        if done.returncode or size != source.stat().st_size:
            reason = done.stderr.decode(errors="replace").strip().splitlines()
            raise WarehouseError(f"{target.name} could not be published: {reason[-1] if reason else 'copy was cut'}.")
        fresh.chmod(0o600)
        fresh.replace(target)
        directory = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
        return size
    finally:
        fresh.unlink(missing_ok=True)
