"""`octo-sync serve`: receive, work, pull by schedule and publish, for as long as it runs."""

import threading
import webbrowser
from collections.abc import Callable
from pathlib import Path

import click

from octo_sync.app.machine import run_until_done
from octo_sync.app.serve import PROGRAM_PARTS, Events, serve
from octo_sync.cli import console, options
from octo_sync.errors import ConfigError
from octo_sync.pipeline import STOP_WITHIN, Pipeline


@click.command(epilog=options.example("serve --open"))
@options.project
@click.option(
    "--only",
    type=click.Choice(sorted(PROGRAM_PARTS)),
    multiple=True,
    help="Run only this part; may be given twice. Several processes may share one project.",
)
@click.option("--bind", metavar="HOST:PORT", help="Where the receiver listens.  [default: webhooks.bind]")
@click.option("--dashboard", metavar="HOST:PORT", help="Where the dashboard listens.  [default: dashboard.bind]")
@click.option("--open", "open_", is_flag=True, help="Open the dashboard in a browser.")
@options.log_format
def command(
    pipeline: str | None,
    directory: Path,
    *,
    only: tuple[str, ...],
    bind: str | None,
    dashboard: str | None,
    open_: bool,
    log_format_: str | None,
) -> None:
    """Keep the copy fresh until stopped: webhooks, schedules and publishing in one process.

    After Ctrl-C or SIGTERM it takes no new deliveries, finishes what it is writing, and ends within 5 seconds.
    """
    parts = frozenset(only) or PROGRAM_PARTS
    if open_ and "dashboard" not in parts:
        raise click.UsageError("--open shows the dashboard, and --only leaves it out.")
    if bind and "receiver" not in parts:
        raise click.UsageError("--bind is where the receiver listens, and --only leaves it out; add --only receiver.")
    flags = {"webhooks.bind": bind, "dashboard.bind": dashboard, "log_format": log_format_}
    loaded = _for_the_dashboard(pipeline, directory, flags) if parts == {"dashboard"} else None
    loaded = loaded or options.load_pipeline(directory, pipeline, **flags)
    options.begin_logging(loaded)
    console.warn(loaded.warnings)

    _plan(loaded, parts)
    say = _sayer(click.get_current_context())
    hooks = f" for {loaded.webhooks.url}" if loaded.webhooks.url else ""
    events = Events(
        say=say,
        listening=lambda url: say(f"receiver listens on {url}{hooks}"),
        showing=lambda url: _showing(url, say, open_=open_),
        keeping=lambda keeper: say(f"worker keeps {keeper.ports.pipeline.name} (run {keeper.ports.run_id})"),
    )
    run_until_done(serve(loaded, parts=parts, events=events), stop_within=STOP_WITHIN)


def _for_the_dashboard(name: str | None, directory: Path, flags: dict[str, str | None]) -> Pipeline:
    """The pipeline without the services' tokens, which pages do not need; the dashboard's own it must have."""
    loaded, missing = options.without_tokens(directory, name, **flags)
    if own := tuple(mistake for mistake in missing if mistake.startswith("dashboard.")):
        raise ConfigError(f"The dashboard's token cannot be had ({loaded.path}).", mistakes=own)
    return loaded


def _showing(url: str, say: Callable[[str], None], *, open_: bool) -> None:
    say(f"dashboard on {url}")
    if open_:
        # A browser that is started may take as long as it likes.
        threading.Thread(target=_open, args=(url, say), daemon=True).start()


def _open(url: str, say: Callable[[str], None]) -> None:
    if not webbrowser.open(url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")):
        say(f"no browser was found here; open {url}")


def _sayer(context: click.Context) -> Callable[[str], None]:
    """What says a sentence with the time, as the command was told to; from any thread, which knows of no command by itself."""

    def say(sentence: str) -> None:
        with context.scope(cleanup=False):
            console.note(sentence if console.logs() else f"{console.clock_time()}  {sentence}")

    return say


def _plan(loaded: Pipeline, parts: frozenset[str]) -> None:
    """Say at the start what will not happen, before somebody waits for it."""
    if not loaded.webhooks.url and parts != {"dashboard"}:
        console.note("webhooks.url is not set: no subscriptions are made, pulls do the work.")
    schedule = loaded.schedule
    if "worker" in parts and not any((schedule.full, schedule.near, schedule.bookings, schedule.availability)):
        console.note("[schedule] is empty: nothing is pulled by itself, so what no webhook reports stays unseen.")
