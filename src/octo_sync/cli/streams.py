"""The three standard streams of the process, whatever it was started with.

A stream that is closed is /dev/null. What a command prints arrives whole, or an error says so, also under PYTHONUNBUFFERED,
where Python drops what a full disk does not take. A reader of stdout that leaves ends the command; a remark that nobody can
read on stderr changes nothing.
"""

import contextlib
import io
import os
import sys
from typing import Any, TextIO


class ReaderLeft(BaseException):
    """The reader of stdout went away (`| head`). No `Exception`: nothing on the way may take it for a failure of its own."""


class _Out(io.FileIO):
    def write(self, data: Any, /) -> int:  # noqa: ANN401 - any bytes
        try:
            return super().write(data)
        except BrokenPipeError:
            raise ReaderLeft from None


class _Err(io.FileIO):
    def write(self, data: Any, /) -> int:  # noqa: ANN401 - any bytes
        with contextlib.suppress(OSError):
            return super().write(data)
        return memoryview(data).nbytes


def settle() -> None:
    """Put the streams into `sys`."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # It takes the lowest number that is free, and what this process starts has it too.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # noqa: FBT003 - it takes no name
    sys.stdin = sys.stdin or open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - as long as the process
    sys.stdout = _text(_Out(1, "wb", closefd=False), sys.stdout)
    sys.stderr = _text(_Err(2, "wb", closefd=False), sys.stderr, is_prompt=True)


def _text(raw: io.FileIO, before: TextIO | None, *, is_prompt: bool = False) -> TextIO:
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=before.encoding if before else "utf-8",
        errors=before.errors if before else "backslashreplace",
        line_buffering=is_prompt or raw.isatty(),
    )
