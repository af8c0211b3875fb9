"""`octo-sync runs`: what ran, and how it went."""

import click

from octo_sync.cli import console, options
from octo_sync.flows.status.document import run_document


@click.command(epilog=options.example("runs last"))
@click.argument("run", required=False)
@options.places_of
@options.limit(20, "How many, the newest first.", 1)
@options.as_form
def command(run: str | None, project: options.Places, *, limit: int, form: str) -> None:
    """List the last runs, or show one.

    RUN is an id, the beginning of one, or last.
    """
    if run is None:
        _list(project, limit, form)
    else:
        _show(project, run)


def _list(project: options.Places, limit: int, form: str) -> None:
    runs = options.ask_journal(project, lambda journal: journal.runs.last(limit))
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
    # The id begins with the instant of the start; `runs RUN` has the rest.
    least = ["requests", "subjects", "seconds", "started", "rows"]
    least = least if any(run.error for run in runs) else ["error", *least]
    document = {"runs": [run_document(run) for run in runs]}
    hint = "" if runs else "Nothing ran here yet: octo-sync sync"
    console.write_list(form, "runs", document, heads, rows, hint=hint, fold="error", least=least)


def _show(project: options.Places, run: str) -> None:
    most = 1 if run == "last" else 10_000
    newest = options.ask_journal(project, lambda journal: journal.runs.last(most))
    found = newest if run == "last" else [r for r in newest if r.run_id.startswith(run)]
    if not found:
        raise click.UsageError(f"No run is called {run!r}; octo-sync runs lists them.")
    if len(found) > 1 and found[0].run_id != run:
        raise click.UsageError(f"{len(found)} runs begin with {run!r}; say more of the id.")
    about = run_document(found[0])
    if console.wrote_json("run", about):
        return
    for name in ("run_id", "command", "pipeline", "status"):
        console.label(name.replace("_id", ""), str(about[name]))
    console.label("started", console.instant_text(found[0].started_at))
    console.label("ended", console.instant_text(found[0].ended_at) if found[0].ended_at else "not yet")
    for name, value in [*about["options"].items(), *about["counts"].items()]:
        if value not in ("", [], None):
            console.label(name, console.clean(str(value)))
    if about["error"]:
        console.label("error", console.clean(about["error"]))
