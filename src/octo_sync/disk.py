"""What is on the disk for good."""

import os
from pathlib import Path

__all__ = ["fsync", "rename"]


def fsync(path: Path) -> None:
    """Make a file's bytes, or a folder's names, durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def rename(fresh: Path, path: Path) -> None:
    """Give a file or folder another one's place, for good: the folder around it is on the disk, too."""
    fresh.replace(path)
    fsync(path.parent)
