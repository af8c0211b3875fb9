"""Which encoding a text file has, and its lines."""

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from octo_sync.errors import LedgerError

_BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_ZERO = 'there are zero bytes, as in UTF-16 without a mark at its start; set encoding, for example to "utf-16-le"'
_MULTIBYTE = re.compile("[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
"""Characters of UTF-8 of more than one byte, each byte as a character."""


@dataclass
class BadBytes(Exception):  # noqa: N818 - inside of this package alone, where it becomes a LedgerError
    """Bytes that the encoding does not have: in which line (from 1), behind which text of it, and what to do."""

    line: int
    before: str
    advice: str


def settle(path: Path, label: str, asked: str) -> tuple[str, str]:
    """The encoding of a file as Python calls it, and a note about it ("" where there is nothing to say).

    A byte order mark decides, then `asked`, then UTF-8 if all of it is. A file without a single sequence of UTF-8 is read as
    cp1252, which is what Windows programs of Western countries write.

    Raises:
        LedgerError: There is nothing in it, or no encoding of that name.
        BadBytes: It mixes encodings, or `encoding` has to be set.
    """
    with path.open("rb") as file:
        start = file.read(4)
    if not start:
        raise LedgerError(f"{label} is empty: there is not even a header.")
    for mark, name in _BOMS:
        if start.startswith(mark):
            return name, ""
    if asked:
        return _known(asked, label), ""
    if _decodes(path, "utf-8"):
        return "utf-8", ""
    if any(_MULTIBYTE.search(line) for line in lines(path, "latin-1")):
        raise bad_bytes(path, "utf-8")
    if not _decodes(path, "cp1252"):
        raise bad_bytes(path, "utf-8", 'set encoding, for example to "cp1250" or "shift_jis"')
    return "cp1252", f"{label} was read as cp1252, because it is not UTF-8."


def _known(name: str, label: str) -> str:
    try:
        "x".encode(name)
    except LookupError:  # also for those that turn bytes into bytes
        raise LedgerError(
            f'{label}: there is no encoding "{name[:30]}"; set encoding to a name such as "cp1252".'
        ) from None
    return name


def _decodes(path: Path, encoding: str) -> bool:
    try:
        for _ in lines(path, encoding):
            pass
    except UnicodeDecodeError:
        return False
    return True


def bad_bytes(
    path: Path, encoding: str, advice: str = "it mixes encodings; write it anew in one, or set encoding"
) -> BadBytes:
    """Where the first bytes are that `encoding` does not have."""
    number, line = 1, ""
    try:
        for number, line in enumerate(lines(path, encoding, errors="surrogateescape"), 1):
            if bad := re.search("[\udc80-\udcff]", line):
                return BadBytes(number, line[: bad.start()], advice)
    except UnicodeError:  # those whose bytes come in pairs
        number, line = number + 1, ""
    return BadBytes(number, line, advice)


def lines(path: Path, encoding: str, *, errors: str = "strict") -> Iterator[str]:
    """Lines with their ends, as `csv` wants them. A line of more than a million characters comes in pieces.

    Raises:
        BadBytes: There is a zero character.
    """
    with path.open("r", encoding=encoding, errors=errors, newline="") as file:
        for number, line in enumerate(iter(lambda: file.readline(1 << 20), ""), 1):
            if "\0" in line:
                raise BadBytes(number, line.partition("\0")[0], _ZERO)
            yield line
