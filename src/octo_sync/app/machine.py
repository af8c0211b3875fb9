"""The machine: its clock, environment, processes and signals. The only module of `app` that reads them (R14)."""

import asyncio
import contextlib
import os
import secrets
import signal
import socket
import sys
import threading
from collections.abc import Coroutine, Mapping
from datetime import UTC, date, datetime
from random import Random
from typing import Any, TypeVar

from octo_sync.flows.backup.place import is_alive
from octo_sync.model import Clock, day_at

T = TypeVar("T")


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """The current instant, UTC."""
        return datetime.now(UTC)  # noqa: TID251 - the adapter R14 allows


def environ() -> Mapping[str, str]:
    """The process's environment."""
    return os.environ  # noqa: TID251 - the adapter R14 allows


def new_run_id(clock: Clock, random: Random) -> str:
    """An id that sorts by time and is easy to say: `20261120T195900-k3x9`."""
    letters = "".join(random.choice("abcdefghjkmnpqrstuvwxyz23456789") for _ in range(4))
    return f"{clock.now():%Y%m%dT%H%M%S}-{letters}"


def new_token(size: int) -> str:
    """A url-safe text from so many random bytes, for addresses and secrets that nobody can guess."""
    return secrets.token_urlsafe(size)


def alive(pid: int, host: str) -> bool:
    """Whether a process still runs; one on another machine counts as running."""
    return host != socket.gethostname() or is_alive(pid)


def run_until_done(work: Coroutine[Any, Any, T], *, stop_within: float | None = None) -> T:
    """Run to the end; Ctrl-C and SIGTERM cancel it, so that the landing in hand is finished or rolled back.

    With `stop_within` the process ends after so many seconds at the latest: what is not committed by then is not kept, as
    with a kill, and is still marked.

    Raises:
        KeyboardInterrupt: After Ctrl-C, when everything is closed. SIGTERM ends in what its handler raises.
    """

    async def main() -> T:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        told: list[int] = []

        def stop(number: int) -> None:
            told.append(number)
            if stop_within is not None and len(told) == 1:
                last_call = threading.Timer(stop_within, os._exit, (128 + number,))
                last_call.daemon = True
                last_call.start()
            if task is not None:
                task.cancel()

        before = signal.getsignal(signal.SIGTERM)
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(signal.SIGTERM, stop, signal.SIGTERM)
            loop.add_signal_handler(signal.SIGINT, stop, signal.SIGINT)
        try:
            return await work
        except asyncio.CancelledError:
            if signal.SIGTERM in told and callable(before):
                before(signal.SIGTERM, None)
            raise KeyboardInterrupt from None

    return asyncio.run(main())


def may_open(files: int) -> int:
    """How many files and connections this process may have open: so many, where the machine lets it, or more."""
    try:
        import resource  # noqa: PLC0415 - not on Windows
    except ImportError:
        return files
    limit, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = files if most == resource.RLIM_INFINITY else min(files, most)
    if limit != resource.RLIM_INFINITY and limit < wanted:
        with contextlib.suppress(OSError, ValueError):  # some machines have a lower limit that they do not tell
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
            return wanted
    return files if limit == resource.RLIM_INFINITY else limit


def stdin_is_terminal() -> bool:
    """Whether a person can be asked."""
    return sys.stdin is not None and sys.stdin.isatty()


def today_at(time_zone: str) -> date:
    """Today at a place, by the machine's clock."""
    return day_at(time_zone, SystemClock().now())
