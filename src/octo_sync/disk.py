"""What is on the disk for good."""

import os
from pathlib import Path

__all__ = ["fsync"]


def fsync(path: Path) -> None:
    """Make a file's bytes, or a folder's names, durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
