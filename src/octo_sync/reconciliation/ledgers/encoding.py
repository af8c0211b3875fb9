"""Which encoding a text file has, and its bytes as UTF-8."""

import codecs
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from octo_sync.errors import LedgerError

_BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_CHUNK = 1 << 22
_MULTIBYTE = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")


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
    if _has_multibyte(path):
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


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from iter(lambda: file.read(_CHUNK), b"")


def _decodes(path: Path, encoding: str) -> bool:
    try:
        for _ in codecs.iterdecode(_chunks(path), encoding):
            pass
    except UnicodeDecodeError:
        return False
    return True


def _has_multibyte(path: Path) -> bool:
    rest = b""
    for chunk in _chunks(path):
        if _MULTIBYTE.search(rest + chunk):
            return True
        rest = chunk[-3:]
    return False


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
    """Lines with their ends, as `csv` wants them. A line of more than a million characters comes in pieces."""
    with path.open("r", encoding=encoding, errors=errors, newline="") as file:
        yield from iter(lambda: file.readline(1 << 20), "")


class Text(io.RawIOBase):
    """A file of any encoding as bytes of UTF-8, with `ending` behind it, which starts a line of its own.

    `lines` counts lines up to the last that is not empty, `ending` left out; `zero` says whether there are zero characters.
    """

    def __init__(self, file: BinaryIO, encoding: str, ending: str) -> None:
        super().__init__()
        self._file, self._decoder = file, codecs.getincrementaldecoder(encoding)()
        self._ending: str | None = "\n" + ending + "\n"
        self._buffer = bytearray()
        self._ends, self._pending, self._return = 0, 0, False
        self.zero = False

    @property
    def lines(self) -> int:
        """How many there are, read so far."""
        return self._ends + 1

    def readable(self) -> bool:
        """It is."""
        return True

    def read(self, size: int = -1) -> bytes:
        """`size` bytes, fewer only at the end: Arrow takes what one call answers for a block, and a header must not be cut."""
        while self._ending is not None and (size < 0 or len(self._buffer) < size):
            self._buffer += self._more()
        taken = bytes(self._buffer if size < 0 else self._buffer[:size])
        del self._buffer[: len(taken)]
        return taken

    def _more(self) -> bytes:
        raw = self._file.read(_CHUNK)
        text = self._decoder.decode(raw, final=not raw)
        self._count(text)
        if not raw:
            text, self._ending = text + (self._ending or ""), None
        return text.encode()

    def _count(self, text: str) -> None:
        content = text.rstrip("\r\n")
        if self._return and text.startswith("\n"):
            self._pending -= 1  # the second half of one end
        if content:
            self._ends += self._pending + _ends(content)
            self._pending = 0
        self._pending += _ends(text[len(content) :])
        self._return = text.endswith("\r") if text else self._return
        self.zero = self.zero or "\0" in text


def _ends(text: str) -> int:
    return text.count("\n") + (text.count("\r") - text.count("\r\n") if "\r" in text else 0)
