"""What a test needs and does not find: it is skipped and says so; where CI is set it fails, since nobody reads skips there."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import NoReturn

import pytest


def absent(reason: str) -> NoReturn:
    """End the test that needs it; for what the machines of CI have."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def environment(folder: Path, *requirements: str) -> Path:
    """The programs of an environment of its own that has these; absent where no package index can be reached."""
    uv = shutil.which("uv")
    if uv is None:
        absent(f"uv is not installed, so {requirements[0]} cannot be had")
    for words in (["venv", "--quiet", folder], ["pip", "install", "--quiet", "--python", folder, *requirements]):
        done = subprocess.run([uv, *words], capture_output=True, text=True, check=False, timeout=1200)
        if done.returncode:
            absent(f"{requirements[0]} cannot be installed: {done.stderr.strip().splitlines()[-1][:200]}")
    return folder / "bin"
