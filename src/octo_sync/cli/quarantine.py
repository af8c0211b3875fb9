"""`octo-sync quarantine`: what was left alone, and what to do with it."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from octo_sync.cli import console, options

if TYPE_CHECKING:
    from octo_sync.journal import Journal, QuarantineEntry


@click.group(cls=options.DefaultGroup)
def command() -> None:
    """Show what keeps failing or does not fit; retry or drop it."""


@command.command("list")
@options.reading_options
@options.as_form
def list_(directory: Path, pipeline: str | None, *, form: str, json_: bool) -> int:
    """List what is in quarantine, with the reason."""
    entries = options.ask_journal(options.places(directory, pipeline), lambda journal: journal.quarantine.entries())
    if json_ or form == "json":
        console.document("quarantine", {"entries": [_document(e) for e in entries]})
        return 0
    heads = ("id", "connection", "what", "key", "path", "reason", "count", "since")
    rows = [
        (e.id, e.connection, e.resource, e.key, e.path, e.reason, e.count, console.instant_text(e.first_at))
        for e in entries
    ]
    hint = "Try again: octo-sync quarantine retry ID… (or --all), then octo-sync sync"
    console.write_list(heads, rows, form, hint if rows else "Empty.")
    return 0


@command.command("retry")
@click.argument("ids", nargs=-1)
@click.option("--all", "all_", is_flag=True, help="Everything in quarantine.")
@options.reading_options
@options.as_json
def retry(ids: tuple[str, ...], directory: Path, pipeline: str | None, *, all_: bool, json_: bool) -> int:
    """Forgive the failures, so that the next sync asks again; IDS as `list` shows them."""
    with _journal(ids, directory, pipeline, all_=all_) as journal:
        entries = journal.quarantine.retry("all" if all_ else ids)
    _done("retry", entries, json_=json_)
    console.note("Run it now: octo-sync sync" if entries else "Nothing was in quarantine.")
    return 0


@command.command("drop")
@click.argument("ids", nargs=-1)
@click.option("--all", "all_", is_flag=True, help="Everything in quarantine.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@options.reading_options
@options.as_json
def drop(ids: tuple[str, ...], directory: Path, pipeline: str | None, *, all_: bool, yes: bool, json_: bool) -> int:
    """Take entries off the list without trying again; IDS as `list` shows them."""
    from octo_sync.app.project import stdin_is_terminal  # noqa: PLC0415 - commands start fast

    with _journal(ids, directory, pipeline, all_=all_) as journal:
        if not yes and journal.quarantine.entries():
            if not stdin_is_terminal():
                raise click.UsageError("Dropping needs a yes: give --yes where nobody can be asked.")
            what = "everything in quarantine" if all_ else ", ".join(ids)
            click.confirm(f"Drop {what}? It counts as never verified until it is marked again.", abort=True, err=True)
        entries = journal.quarantine.drop("all" if all_ else ids)
    _done("drop", entries, json_=json_)
    if not entries:
        console.note("Nothing was in quarantine.")
    return 0


def _journal(ids: tuple[str, ...], directory: Path, pipeline: str | None, *, all_: bool) -> "Journal":
    if bool(ids) == all_:
        raise click.UsageError("Name the IDS, or give --all; octo-sync quarantine lists them.")
    project = options.places(directory, pipeline)
    journal = options.open_journal(project)
    if journal is None:
        raise click.UsageError(f"Nothing ran here yet: there is no journal at {project.journal}.")
    return journal


def _done(what: str, entries: "list[QuarantineEntry]", *, json_: bool) -> None:
    if json_:
        console.document(f"quarantine-{what}", {"entries": [_document(e) for e in entries]})
        return
    word = {"retry": "marked", "drop": "dropped"}[what]
    for entry in entries:
        click.echo(f"{word}  {entry.id}  {entry.connection}:{entry.resource} {console.clean(entry.key)}")


def _document(entry: "QuarantineEntry") -> dict[str, Any]:
    return {
        "id": entry.id,
        "what": entry.what,
        "connection": entry.connection,
        "resource": entry.resource,
        "key": entry.key,
        "path": entry.path,
        "reason": entry.reason,
        "count": entry.count,
        "first_at": entry.first_at,
        "last_at": entry.last_at,
        "run_id": entry.run_id,
    }
