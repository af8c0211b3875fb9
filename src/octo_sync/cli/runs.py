"""`octo-sync runs`: what ran, and how it went."""

from pathlib import Path

import click

from octo_sync.cli import console, options


@click.group(cls=options.DefaultGroup)
def command() -> None:
    """Show the history of runs."""


@command.command("list")
@options.reading_options
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="How many, the newest first.")
@options.as_form
def list_(directory: Path, pipeline: str | None, *, limit: int, form: str, json_: bool) -> int:
    """List the last runs, the newest first."""
    from octo_sync.flows.status.document import run_document  # noqa: PLC0415 - commands start fast

    runs = options.ask_journal(options.places(directory, pipeline), lambda journal: journal.runs.last(limit))
    if json_ or form == "json":
        console.document("runs", {"runs": [run_document(run) for run in runs]})
        return 0
    heads = ("run", "command", "status", "started", "seconds", "subjects", "rows", "requests", "error")
    rows = [
        (
            run.run_id,
            run.command,
            run.status,
            console.instant_text(run.started_at),
            round((run.ended_at - run.started_at).total_seconds(), 1) if run.ended_at else None,
            run.counts.get("subjects"),
            run.counts.get("rows_written"),
            run.counts.get("requests"),
            run.error or "",
        )
        for run in runs
    ]
    if form == "table":
        # The id begins with the instant of the start; `runs show` has the rest.
        errors = ["error"] if any(run.error for run in runs) else []
        least = ["requests", "subjects", "seconds", "started", "rows"]
        console.listed(heads, rows, fold="error", least=least if errors else ["error", *least])
    else:
        console.write_rows(heads, rows, form)
    if not runs:
        console.note("Nothing ran here yet: octo-sync sync")
    return 0


@command.command("show")
@click.argument("run")
@options.reading_options
@options.as_json
def show(run: str, directory: Path, pipeline: str | None, *, json_: bool) -> int:
    """Show one run; RUN is its id, the beginning of one, or `last`."""
    from octo_sync.flows.status.document import run_document  # noqa: PLC0415 - commands start fast

    most = 1 if run == "last" else 10_000
    newest = options.ask_journal(options.places(directory, pipeline), lambda journal: journal.runs.last(most))
    found = newest if run == "last" else [r for r in newest if r.run_id.startswith(run)]
    if not found:
        raise click.UsageError(f"No run is called {run!r}; octo-sync runs lists them.")
    if len(found) > 1 and found[0].run_id != run:
        raise click.UsageError(f"{len(found)} runs begin with {run!r}; say more of the id.")
    about = run_document(found[0])
    if json_:
        console.document("run", about)
        return 0
    for name in ("run_id", "command", "pipeline", "status"):
        console.label(name.replace("_id", ""), str(about[name]))
    console.label("started", console.instant_text(found[0].started_at))
    console.label("ended", console.instant_text(found[0].ended_at) if found[0].ended_at else "not yet")
    for name, value in [*about["options"].items(), *about["counts"].items()]:
        if value not in ("", [], None):
            console.label(name, console.clean(str(value)))
    if about["error"]:
        console.label("error", console.clean(about["error"]))
    return 0
