"""Progress bars on a terminal, one line per resource elsewhere."""

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from octo_sync.cli.console import logs, quiet

if TYPE_CHECKING:
    from octo_sync.flows.ports import Progress

__all__ = ["shown"]

_ORDER = ("supplier", "products", "product", "availability", "bookings", "booking")


@contextlib.contextmanager
def shown(progress: "Progress", *, lines: bool = True) -> Iterator[None]:
    """Show how far a run is, on stderr, while the block runs; without a terminal one line a resource, if `lines`."""
    if quiet() or logs():
        yield
    elif sys.stderr.isatty() and not os.environ.get("CI"):  # noqa: TID251 - a terminal's convention
        with _bars(progress):
            yield
    else:
        yield
        for kind in _ORDER if lines else ():
            if progress.total.get(kind):
                click.echo(f"{kind:<12} {progress.done.get(kind, 0)}/{progress.total[kind]}", err=True)


@contextlib.contextmanager
def _bars(progress: "Progress") -> Iterator[None]:
    from rich.console import Console  # noqa: PLC0415 - only where somebody watches
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TaskID,
        TextColumn,
        TimeElapsedColumn,
    )

    columns = (TextColumn("{task.description:<12}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    never = click.get_current_context().color is False
    console = Console(stderr=True, no_color=True if never else None, highlight=False)
    with Progress(*columns, console=console, transient=True) as bars:
        tasks: dict[str, TaskID] = {}

        def changed(now: "object") -> None:
            del now
            for kind in _ORDER:
                total = progress.total.get(kind, 0)
                if total and kind not in tasks:
                    tasks[kind] = bars.add_task(kind, total=total)
                if kind in tasks:
                    bars.update(tasks[kind], total=total, completed=progress.done.get(kind, 0))

        progress.changed = changed
        yield
