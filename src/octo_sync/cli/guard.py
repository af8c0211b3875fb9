"""What a person's query may cost this machine, where the engine's own limits do not reach.

Interrupting waits for the function at hand, and one call of some functions takes minutes and gigabytes that DuckDB does not
count (`repeat`, `lpad`, `levenshtein`).
"""

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import click

_MEMORY = 4 * 1024**3
"""Bytes that the block may take: twice what DuckDB itself may take for a query."""
_GRACE = 3.0
"""Seconds after the time is up in which the query may end by itself."""


@contextlib.contextmanager
def bounded(timeout: float | None) -> Iterator[None]:
    """While the block runs, memory is bounded (where the system can), and the process ends soon after `timeout` seconds.

    Only for what writes nothing: the end is abrupt.
    """

    def end() -> None:
        click.echo(f"octo-sync: error: The query did not stop after {timeout:g} s and was ended.", err=True)
        os._exit(1)

    with contextlib.ExitStack() as stack:
        if timeout:
            timer = threading.Timer(timeout + _GRACE, end)
            timer.daemon = True
            timer.start()
            stack.callback(timer.cancel)
        stack.enter_context(_little_memory())
        yield


@contextlib.contextmanager
def _little_memory() -> Iterator[None]:
    try:
        import resource  # noqa: PLC0415 - not on Windows
    except ImportError:
        yield
        return
    before, most = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = _held() + _MEMORY
    if before != resource.RLIM_INFINITY:
        wanted = min(before, wanted)
    resource.setrlimit(resource.RLIMIT_DATA, (wanted, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (before, most))


def _held() -> int:
    """Bytes that the process has already: what an earlier query took may not have been given back. 0 where nobody says."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[5])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
