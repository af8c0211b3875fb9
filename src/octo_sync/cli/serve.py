"""`octo-sync serve`: receive, work, pull by schedule and publish, for as long as it runs."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from octo_sync.cli import console, options

if TYPE_CHECKING:
    from octo_sync.flows.keep import Keeper
    from octo_sync.pipeline import Pipeline


@click.command()
@options.pipeline_options
@click.option(
    "--only",
    type=click.Choice(["receiver", "worker"]),
    help="Only take deliveries, or only work; several processes may share one project.",
)
@click.option("--bind", metavar="HOST:PORT", help="Where the receiver listens.  [default: webhooks.bind]")
def command(pipeline: str | None, directory: Path, *, only: str | None, bind: str | None) -> int:
    """Keep the copy fresh until stopped: webhooks, schedules, timers and publishing in one process.

    Ctrl-C or SIGTERM takes no new deliveries, finishes the landing in hand and ends within serve.stop_within.
    """
    loaded = options.load_pipeline(directory, pipeline, **{"webhooks.bind": bind})
    for warning in loaded.warnings:
        console.note(f"warning: {warning}")
    from octo_sync.app import run_until_done  # noqa: PLC0415 - commands start fast
    from octo_sync.serving import PROGRAM_PARTS, Events, serve  # noqa: PLC0415

    _plan(loaded, receives=only != "worker", works=only != "receiver")
    events = Events(say=_say, listening=lambda url: _listening(url, loaded), keeping=_keeping)
    parts = frozenset({only}) if only else PROGRAM_PARTS
    run_until_done(serve(loaded, parts=parts, events=events), stop_within=loaded.serve.stop_within)
    return 0


def _say(sentence: str) -> None:
    console.note(f"{console.clock_time()}  {sentence}")


def _listening(url: str, loaded: "Pipeline") -> None:
    _say(f"receiver listens on {url}" + (f" for {loaded.webhooks.url}" if loaded.webhooks.url else ""))


def _keeping(keeper: "Keeper") -> None:
    _say(f"worker keeps {keeper.ports.pipeline.name} (run {keeper.ports.run_id})")


def _plan(loaded: "Pipeline", *, receives: bool, works: bool) -> None:
    """Say at the start what will not happen, before somebody waits for it."""
    if receives and not loaded.webhooks.url:
        console.note("webhooks.url is not set: no subscriptions are made, pulls do the work.")
    schedule = loaded.schedule
    if works and not any((schedule.full, schedule.near, schedule.bookings, schedule.availability)):
        console.note("[schedule] is empty: nothing is pulled by itself, so what no webhook tells stays unseen.")
