"""`octo-sync sync`: make everything due clean, then publish the read copy."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from octo_sync.app.machine import SystemClock, run_until_done
from octo_sync.app.notify import Notifier
from octo_sync.app.project import open_journal, open_project
from octo_sync.app.verify import plan_without_asking
from octo_sync.cli import console, options
from octo_sync.cli.progress import shown
from octo_sync.errors import OctoSyncError
from octo_sync.flows.ports import Progress
from octo_sync.flows.sync.pull import Scope
from octo_sync.flows.sync.run import SyncResult, sync
from octo_sync.pipeline import Pipeline

_MOST = 10
_TOLD_WITHIN = 60.0
"""Seconds that notices may take at the end of a run."""


@click.command(epilog=options.example("sync --dry-run"))
@options.project
@click.option("--full", is_flag=True, help="Start over instead of resuming an interrupted run.")
@click.option("--travel", metavar="FROM..TO", help="Only these travel dates; also outside the horizon.")
@click.option(
    "--only", multiple=True, type=click.Choice(["products", "availability", "bookings"]), help="Only these; repeatable."
)
@click.option(
    "--allow-deletions",
    is_flag=True,
    help="Mark proven deletions even where there are so many that they would be held back.",
)
@click.option("--no-publish", is_flag=True, help="Do not update the read copy.")
@click.option("--dry-run", is_flag=True, help="Show what would be fetched; make no calls and write nothing.")
@options.log_format
@options.as_json
def command(
    pipeline: str | None,
    directory: Path,
    *,
    full: bool,
    travel: str | None,
    only: tuple[str, ...],
    allow_deletions: bool,
    no_publish: bool,
    dry_run: bool,
    log_format_: str | None,
) -> int:
    """Fetch everything that the pipeline keeps, then publish it for reading.

    What it keeps is the horizon of travel dates in the pipeline file. An interrupted run is resumed. Made for a nightly
    job: run it as often as you like.
    """
    window = options.travel_window(travel)
    if dry_run:
        loaded, _ = options.without_tokens(directory, pipeline, log_format=log_format_)
    else:
        loaded = options.load_pipeline(directory, pipeline, log_format=log_format_)
    options.begin_logging(loaded)
    console.warn(loaded.warnings)
    scope = Scope(only=frozenset(only), travel=window, full=full)
    if dry_run:
        return _dry_run(loaded, scope)
    result = _run(loaded, scope, allow_deletions=allow_deletions, publishing=not no_publish)
    if not console.wrote_json("sync", as_document(result)):
        report(result, loaded)
    return code(result)


def _run(loaded: Pipeline, scope: Scope, *, allow_deletions: bool, publishing: bool) -> SyncResult:
    progress = Progress()

    async def run() -> SyncResult:
        async with open_project(
            loaded, command="sync", travel=scope.travel, allow_deletions=allow_deletions, progress=progress
        ) as project:
            return await sync(project.ports, scope, command="sync", publishing=publishing)

    with shown(progress):
        result = run_until_done(run())
    _notify(loaded, result, scope, publishing=publishing)
    return result


def _notify(loaded: Pipeline, result: SyncResult, scope: Scope, *, publishing: bool) -> None:
    """Tell who wants to know, and call the dead-man's switch after a full pull whose result readers have."""
    if not loaded.told:
        return

    clock = SystemClock()
    with open_journal(loaded, clock) as journal:
        notifier = Notifier(loaded, journal, clock)
        # The run is over and its result stands, whatever becomes of notices.
        with suppress(OctoSyncError):
            notifier.look()
        has_readers = publishing and loaded.publish.enabled
        is_shown = result.published is not None and not result.published.failed
        is_full = not scope.only and scope.travel is None and not result.troubles
        if is_full and result.status in ("ok", "partial") and (is_shown or not has_readers):
            notifier.all_is_well()
        notifier.finish(_TOLD_WITHIN)


def _dry_run(loaded: Pipeline, scope: Scope) -> int:
    rows = plan_without_asking(loaded, scope)
    if not console.wrote_json("plan", {"subjects": console.dicts(("connection", "kind", "count"), rows)}):
        console.write_rows(("connection", "kind", "subjects"), rows, "table")
        console.note(
            "Nothing was asked and nothing was written. Availability is planned from the products known so far."
        )
    return 0


def code(result: SyncResult) -> int:
    """The exit code that a run's result means."""
    if any(t.refused for t in result.troubles):
        return 4
    if result.status == "failed":
        return 1
    if result.published and result.published.failed:
        return 3
    return 0 if result.status == "ok" else 5


def as_document(result: SyncResult) -> dict[str, Any]:
    """The result for machines."""
    return {
        **console.fields(result, "run_id", "status", "started_at", "ended_at", "resumed"),
        **console.fields(result.totals, "subjects", "unchanged", "by_table"),
        "rows_written": result.totals.rows,
        **console.fields(result, "requests", "retries", "failed", "held", "notes"),
        "troubles": [
            {"connection": t.connection, "error": str(t.error), "refused": t.refused} for t in result.troubles
        ],
        "quarantined": len(result.quarantined),
        "published": result.published is not None and result.published.size is not None,
        "failed_checks": [f.check.name for f in result.published.failed] if result.published else [],
    }


def report(result: SyncResult, loaded: Pipeline) -> None:
    """The result for people."""
    totals = result.totals
    console.outcome(
        result.status,
        f"{totals.subjects:,} subjects verified · {totals.unchanged:,} unchanged · {totals.rows:,} rows written · "
        f"{result.requests:,} requests · {result.seconds:.1f} s  "
        f"(run {result.run_id}{', taken up' if result.resumed else ''})",
        {"ok": "green", "partial": "yellow"}.get(result.status, "red"),
    )
    for note in result.notes:
        console.note(note)
    for trouble in result.troubles:
        console.trouble(f"  {trouble.connection}: {trouble.error}")
    troubled = {trouble.connection for trouble in result.troubles}
    others = [f"{subject}: {why}" for subject, why in result.failed.items() if subject.split(":")[0] not in troubled]
    _first(others, "")
    _first(
        [f"quarantine  {q.connection}:{q.resource} {q.key} {q.path or ''}: {q.reason}" for q in result.quarantined],
        ": octo-sync quarantine",
    )
    if result.published is None:
        return
    if result.published.failed:
        for failed in result.published.failed:
            console.trouble(f"  check {failed.check.name} returned {len(failed.rows.rows)} rows; nothing was published")
        console.trouble("  See the rows: octo-sync check --next")
        return
    click.echo(
        f"    published {options.published_name(loaded)} ({console.bytes_text(result.published.size or 0)}) · "
        f"{result.published.marts} marts · {result.published.checks} checks passed"
    )


def _first(sentences: Sequence[str], where: str) -> None:
    """Those at the beginning, and how many more there are."""
    for sentence in sentences[:_MOST]:
        console.trouble(f"  {sentence}")
    if len(sentences) > _MOST:
        console.trouble(f"  … and {len(sentences) - _MOST} more{where}")
