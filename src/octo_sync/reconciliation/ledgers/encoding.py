"""Which encoding a text file has, and its text."""

import codecs
import re
from dataclasses import dataclass

from octo_sync.errors import LedgerError

_BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_MIXED = "it mixes encodings; write it anew in one, or set encoding"
_ZERO = 'there are zero bytes, as in UTF-16 without a mark at its start; set encoding, for example to "utf-16-le"'
_MULTIBYTE = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")


@dataclass
class BadBytes(Exception):  # noqa: N818 - inside of this package alone, where it becomes a LedgerError
    """Bytes that the encoding does not have: in which line (from 1), behind which text of it, and what to do."""

    line: int
    before: str
    advice: str


def decoded(raw: bytes, label: str, asked: str) -> tuple[str, str]:
    """The text of a file, and a note about its encoding ("" where there is nothing to say).

    A byte order mark decides, then `asked`, then UTF-8 if all of it is. A file without a single sequence of UTF-8 is read as
    cp1252, which is what Windows programs of Western countries write.

    Raises:
        LedgerError: There is nothing in it, or no encoding of that name.
        BadBytes: It mixes encodings, or `encoding` has to be set.
    """
    if not raw:
        raise LedgerError(f"{label} is empty: there is not even a header.")
    code = next((name for mark, name in _BOMS if raw.startswith(mark)), asked)
    try:
        return _text(raw, code or "utf-8", _MIXED), ""
    except LookupError:  # also for those that turn bytes into bytes
        raise LedgerError(
            f'{label}: there is no encoding "{code[:30]}"; set encoding to a name such as "cp1252".'
        ) from None
    except BadBytes as bad:
        if code or _MULTIBYTE.search(raw) or bad.advice == _ZERO:
            raise
        try:
            return raw.decode("cp1252"), f"{label} was read as cp1252, because it is not UTF-8."
        except UnicodeDecodeError:
            raise BadBytes(bad.line, bad.before, 'set encoding, for example to "cp1250" or "shift_jis"') from None


def _text(raw: bytes, code: str, advice: str) -> str:
    try:
        text = raw.decode(code)
    except UnicodeDecodeError as error:
        before = error.object[: error.start].decode(code, errors="replace")
    else:
        before, zero, _ = text.partition("\0")
        if not zero:
            return text
        advice = _ZERO
    *above, start = re.split("\r\n|\r|\n", before)
    raise BadBytes(len(above) + 1, start, advice)
