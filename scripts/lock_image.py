"""Leave, of a lock on standard input, the hashes of wheels that the image can install: Linux with glibc, x86-64 and ARM64.

    python lock_image.py uv.lock < requirements.lock

The image takes wheels alone, and others' hashes are nine tenths of the lock, which ships with the program.
"""

import re
import sys
import tomllib
from itertools import pairwise
from pathlib import Path

_FITS = re.compile(r"-(?:none-any|manylinux\w*(?:\.manylinux\w*)*_(?:x86_64|aarch64))\.whl$")


def fitting(lock: str, resolved: str) -> str:
    """The lock without the other hashes. `resolved` is `uv.lock`, which says of which file each is."""
    packages = tomllib.loads(resolved)["package"]
    wheels = {each["hash"] for package in packages for each in package.get("wheels", ()) if _FITS.search(each["url"])}
    told = [line.removesuffix(" \\") for line in lock.splitlines()]
    kept = [line for line in told if "--hash=" not in line or line.partition("--hash=")[2] in wheels]
    lines = [line + " \\" * ("--hash=" in after) for line, after in pairwise([*kept, ""])]
    if bare := [line for line in lines if re.match("[a-z0-9]", line) and not line.endswith("\\")]:
        raise SystemExit(f"lock: no wheel for the image: {', '.join(bare)}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(fitting(sys.stdin.read(), Path(sys.argv[1]).read_text(encoding="utf-8")))
