"""SQL in files: statements with names, each described."""

import re
from pathlib import Path

__all__ = ["statements"]

_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)
_COMMENT = re.compile(r"^--.*\n", re.MULTILINE)


def statements(file: Path) -> dict[str, str]:
    """The statements of a file by the names that stand above them, in their order and without comments."""
    _, *parts = _NAME.split(file.read_text(encoding="utf-8"))
    return {name: _COMMENT.sub("", text).strip() for name, text in zip(parts[::2], parts[1::2], strict=True)}
