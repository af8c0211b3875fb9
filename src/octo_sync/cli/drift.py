"""`octo-sync drift`: fields that a service sends no more, and whose values are kept."""

import click

from octo_sync.cli import console, options
from octo_sync.flows.sync.drift import KEPT, accept


@click.command(epilog=options.example("drift"))
@click.option("--accept", "path", metavar="PATH", help="Drop the values of this field, such as bookings.utcUpdatedAt.")
@click.option("-c", "--connection", metavar="NAME", help="With --accept: only of this connection.")
@options.places_of
@options.as_form
def command(path: str | None, connection: str | None, project: options.Places, *, form: str) -> None:
    """List fields that a service no longer sends; accept that they are gone.

    The copy keeps their last values until they are accepted.
    """
    if path is not None:
        with options.kept_journal(project) as journal:
            found = accept(journal, path, connection)
        if not found:
            raise click.UsageError(f"{path} is not missing; octo-sync drift lists what is.")
        accepted = [{"connection": entry.connection, "path": entry.key} for entry in found]
        if not console.wrote_json("drift-accept", {"accepted": accepted}):
            for entry in found:
                click.echo(f"accepted  {entry.connection}:{console.clean(entry.key)}")
        console.note("The values go with the next sync: octo-sync sync")
        return
    entries = options.ask_journal(project, lambda journal: journal.quarantine.entries())
    rows = [(e.connection, e.key, console.instant_text(e.first_at)) for e in entries if e.resource == KEPT]
    heads = ("connection", "path", "since")
    hint = "Drop their values: octo-sync drift --accept PATH, then octo-sync sync" if rows else "Nothing is missing."
    console.write_list(form, "drift", {"fields": console.dicts(heads, rows)}, heads, rows, hint=hint)
