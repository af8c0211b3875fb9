"""What is said of values that cannot be read."""

import re
from dataclasses import dataclass
from typing import Any

_LONGEST = 30


@dataclass
class Unreadable(Exception):  # noqa: N818 - inside of this package alone, where it becomes a LedgerError with its place
    """Values of a column that are not what it should hold; `sentence` goes on after their places."""

    values: tuple[Any, ...]
    sentence: str


def shown(value: str) -> str:
    """A value for a sentence: its shape, with every letter an x, so that no name or address gets into a message or a log."""
    masked = re.sub(r"[^\W\d_]", "x", value[:_LONGEST])
    return f'"{masked}{"…" if len(value) > _LONGEST else ""}"'
