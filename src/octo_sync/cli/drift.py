"""`octo-sync drift`: fields that a service sends no more, and whose values are kept."""

from pathlib import Path

import click

from octo_sync.cli import console, options


@click.group(cls=options.DefaultGroup)
def command() -> None:
    """Show fields that a service sends no more; let their values go."""


@command.command("list")
@options.reading_options
@options.as_form
def list_(directory: Path, pipeline: str | None, *, form: str, json_: bool) -> int:
    """List the fields that are missing from answers; the copy keeps their former values."""
    from octo_sync.flows.sync.drift import KEPT  # noqa: PLC0415 - commands start fast

    entries = options.ask_journal(options.places(directory, pipeline), lambda journal: journal.quarantine.entries())
    rows = [(e.connection, e.key, console.instant_text(e.first_at)) for e in entries if e.resource == KEPT]
    heads = ("connection", "path", "since")
    if json_ or form == "json":
        console.document("drift", {"fields": [dict(zip(heads, row, strict=True)) for row in rows]})
    else:
        hint = "Let the values go: octo-sync drift accept PATH, then octo-sync sync"
        console.write_list(heads, rows, form, hint if rows else "Nothing is missing.")
    return 0


@command.command("accept")
@click.argument("path")
@click.option("--connection", metavar="NAME", help="Only of this connection.")
@options.reading_options
@options.as_json
def accept(path: str, directory: Path, pipeline: str | None, *, connection: str | None, json_: bool) -> int:
    """Let the values of a field go that the service sends no more; PATH as `list` shows it, such as bookings.utcUpdatedAt."""
    from octo_sync.flows.sync.drift import accept as let_go  # noqa: PLC0415 - commands start fast

    project = options.places(directory, pipeline)
    journal = options.open_journal(project)
    if journal is None:
        raise click.UsageError(f"Nothing ran here yet: there is no journal at {project.journal}.")
    with journal:
        found = let_go(journal, path, connection)
    if json_:
        console.document("drift-accept", {"accepted": [{"connection": e.connection, "path": e.key} for e in found]})
    for entry in () if json_ else found:
        click.echo(f"accepted  {entry.connection}:{console.clean(entry.key)}")
    if not found:
        raise click.UsageError(f"{path} is not missing; octo-sync drift lists what is.")
    console.note("The values go with the next sync: octo-sync sync")
    return 0
