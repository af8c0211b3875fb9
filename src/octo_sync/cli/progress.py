"""Progress bars on a terminal, one line per resource elsewhere."""

import contextlib
import os
import sys
from collections.abc import Iterator
from datetime import timedelta

import click

from octo_sync.cli.console import instant_text, logs, quiet
from octo_sync.flows.ports import Progress

_ORDER = ("supplier", "products", "product", "availability", "bookings", "booking")


@contextlib.contextmanager
def shown(progress: Progress, *, lines: bool = True) -> Iterator[None]:
    """Show how far a run is, on stderr, while the block runs; without a terminal one line a resource, if `lines`."""
    if quiet() or logs():
        yield
    elif sys.stderr.isatty() and not os.environ.get("CI"):  # noqa: TID251 - a terminal's convention
        with _bars(progress):
            yield
    else:
        if lines:
            _say_once(progress)
        yield
        for kind in _ORDER if lines else ():
            if progress.total.get(kind):
                click.echo(f"{kind:<12} {progress.done.get(kind, 0)}/{progress.total[kind]}", err=True)


def _expected(progress: Progress) -> str:
    """When it will be over and why then, where a service's pace decides that; else what is done meanwhile."""
    return (
        f"{progress.pace}: expected to end at {instant_text(progress.ends_at)}" if progress.ends_at else progress.pace
    )


def _say_once(progress: Progress) -> None:
    """Say it in a line for each pace that is found out."""
    said = set[str]()

    def changed(_: object) -> None:
        if progress.ends_at and progress.pace not in said:
            said.add(progress.pace)
            click.echo(_expected(progress), err=True)

    progress.changed = changed


@contextlib.contextmanager
def _bars(progress: Progress) -> Iterator[None]:
    from rich import progress as rich  # noqa: PLC0415 - only where somebody watches
    from rich.console import Console, RenderableType  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    class Pace(rich.ProgressColumn):
        def render(self, task: rich.Task) -> Text:
            # Of all its time: many are done at once, which makes the last second's pace a chance.
            if not task.completed or not task.elapsed or task.finished:
                return Text("")
            pace = task.completed / task.elapsed
            return Text(f"{pace:,.1f}/s  {timedelta(seconds=int((task.remaining or 0) / pace))} left")

    columns = (
        rich.TextColumn("{task.description:<12}"),
        rich.BarColumn(20),
        rich.MofNCompleteColumn(),
        rich.TimeElapsedColumn(),
        Pace(),
    )
    never = click.get_current_context().color is False
    console = Console(stderr=True, no_color=True if never else None, highlight=False)

    class Bars(rich.Progress):
        def get_renderables(self) -> Iterator[RenderableType]:
            yield from super().get_renderables()
            if progress.rows:
                yield Text(f"{progress.rows:,} records")
            if text := _expected(progress):
                yield Text(text)

    with Bars(*columns, console=console, transient=True) as bars:
        tasks: dict[str, rich.TaskID] = {}

        def changed(_: object) -> None:
            for kind in _ORDER:
                total = progress.total.get(kind, 0)
                if total and kind not in tasks:
                    tasks[kind] = bars.add_task(kind, total=total)
                if kind in tasks:
                    bars.update(tasks[kind], total=total, completed=progress.done.get(kind, 0))

        progress.changed = changed
        yield
