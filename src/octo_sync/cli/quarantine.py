"""`octo-sync quarantine`: what was left alone, and what to do with it."""

from typing import TYPE_CHECKING, Any

import click

from octo_sync.cli import console, options

if TYPE_CHECKING:
    from octo_sync.journal import QuarantineEntry

_FIELDS = ["id", "what", "connection", "resource", "key", "path", "reason", "count", "first_at", "last_at", "run_id"]


@click.command(epilog=options.example("quarantine --retry --all"))
@click.argument("ids", nargs=-1)
@click.option("--retry", is_flag=True, help="Reset the failures of IDS, so that the next sync fetches them again.")
@click.option("--drop", is_flag=True, help="Take IDS off the list without trying again.")
@click.option("--all", "all_", is_flag=True, help="With --retry or --drop: everything in quarantine.")
@click.option("--yes", is_flag=True, help="With --drop: do not ask.")
@options.places_of
@options.as_form
def command(
    ids: tuple[str, ...], project: options.Places, *, retry: bool, drop: bool, all_: bool, yes: bool, form: str
) -> None:
    """List what keeps failing or does not fit; retry or drop it."""
    if retry == drop:
        if retry or ids or all_:
            raise click.UsageError("Give --retry or --drop; without, everything in quarantine is listed.")
        _list(project, form)
        return
    if bool(ids) == all_:
        raise click.UsageError("Name the IDS, or give --all; octo-sync quarantine lists them.")
    with options.kept_journal(project) as journal:
        if drop and not yes and journal.quarantine.entries():
            what = "everything in quarantine" if all_ else ", ".join(ids)
            options.confirm(f"Drop {what}? It counts as never verified until it is marked again.", "Dropping")
        change = journal.quarantine.drop if drop else journal.quarantine.retry
        entries = change("all" if all_ else ids)
    _report(entries, drop=drop)


def _report(entries: "list[QuarantineEntry]", *, drop: bool) -> None:
    if not console.wrote_json(f"quarantine-{'drop' if drop else 'retry'}", _document(entries)):
        for entry in entries:
            word = "dropped" if drop else "marked"
            click.echo(f"{word}  {entry.id}  {entry.connection}:{entry.resource} {console.clean(entry.key)}")
    if not entries:
        console.note("Nothing was in quarantine.")
    elif not drop:
        console.note("Run it now: octo-sync sync")


def _list(project: options.Places, form: str) -> None:
    entries = options.ask_journal(project, lambda journal: journal.quarantine.entries())
    heads = ("id", "connection", "what", "key", "path", "reason", "count", "since")
    rows = [
        (e.id, e.connection, e.resource, e.key, e.path, e.reason, e.count, console.instant_text(e.first_at))
        for e in entries
    ]
    hint = "Try again: octo-sync quarantine --retry ID… (or --all), then octo-sync sync"
    console.write_list(form, "quarantine", _document(entries), heads, rows, hint=hint if rows else "Empty.")


def _document(entries: "list[QuarantineEntry]") -> dict[str, Any]:
    return {"entries": [console.fields(entry, *_FIELDS) for entry in entries]}
