"""`octo-sync privacy`: forget a person, or hand out what is held about one."""

import asyncio
import functools
import json
from collections.abc import Callable
from pathlib import Path
from random import SystemRandom
from typing import Any, NamedTuple, TypeVar, cast

import click

from octo_sync.app.machine import run_until_done
from octo_sync.app.project import open_project, run_in_project
from octo_sync.cli import console, options
from octo_sync.errors import LeaseHeld
from octo_sync.flows.contacts import Privacy
from octo_sync.flows.export.files import writing
from octo_sync.flows.privacy.export import export as everything
from octo_sync.flows.privacy.search import look_for
from octo_sync.journal import Erasure, Journal
from octo_sync.pipeline import Pipeline

F = TypeVar("F", bound=Callable[..., Any])

_WITHIN = 60.0
_LOOK = 0.2
_OUT_OF_REACH = (
    "Out of reach: backups, snapshots and exports made before, extracts in BI tools, readers that keep the former copy open, "
    "and the service itself."
)


@click.group(cls=options.Group, epilog=options.example("privacy export --email guest@example.com --to guest.json"))
def command() -> None:
    """Erase a person, or export everything that is stored about one."""


class _Who(NamedTuple):
    """Whom it is about."""

    emails: tuple[str, ...]
    phones: tuple[str, ...]
    bookings: tuple[str, ...]

    def people(self, loaded: Pipeline, journal: Journal) -> list[str]:
        """The hashes of persons; what was given and is no address or number is a mistake."""
        try:
            return Privacy.open(loaded.pii, journal, SystemRandom()).people(self.emails, self.phones)
        except ValueError as error:
            raise click.UsageError(f"Nothing was done: {error}.") from None


def _who(function: F) -> F:
    """The options that say it: the command gets one `who`."""

    @functools.wraps(function)
    def with_who(*args: object, **given: Any) -> object:  # noqa: ANN401 - of click
        who = _Who(*(tuple(filter(None, map(str.strip, given.pop(name)))) for name in _Who._fields))
        if not any(who):
            raise click.UsageError("Say who: --email, --phone or --booking.")
        return function(*args, who=who, **given)

    made = cast("F", with_who)
    for name, text in (
        ("--booking", "A booking by its uuid, with everybody on it; repeatable."),
        ("--phone", "A person by telephone number, with country code; repeatable."),
        ("--email", "A person by e-mail address; repeatable."),
    ):
        made = click.option(name, f"{name[2:]}s", multiple=True, metavar=name[2:].upper(), help=text)(made)
    return made


@command.command("list", epilog=options.example("privacy list"))
@options.places_of
@options.as_json
def list_(project: options.Places) -> None:
    """List the erasures and their progress; nobody is named."""
    erasures = options.ask_journal(project, lambda journal: journal.erasures.rows())
    mode = project.pipeline.pii if project.pipeline else "keep"
    if console.wrote_json("privacy", {"pii": mode, "erasures": [_document(e) for e in erasures]}):
        return
    console.label("pii", mode)
    if erasures:
        heads = ("id", "requested", "done", "contacts", "what is left")
        rows = [
            (
                e.id,
                console.instant_text(e.requested_at),
                console.instant_text(e.done_at) if e.done_at else "not yet",
                len(e.contacts or ()),
                " ".join(e.left),
            )
            for e in erasures
        ]
        console.table(heads, rows)


@command.command("erase", epilog=options.example("privacy erase --email guest@example.com"))
@_who
@click.option("--yes", is_flag=True, help="Do not ask.")
@options.pipeline_of
@options.as_json
def erase(loaded: Pipeline, *, who: _Who, yes: bool) -> int:
    """Remove a person from every table, the journal and the copies, for good.

    While another process such as `serve` owns the project, that one does it. Exit code 5 = something is left; the next
    command that writes continues.
    """
    with options.kept_journal(loaded) as journal:
        people = who.people(loaded, journal)
        if not yes:
            options.confirm("Erase this for good? There is no way back.", "Erasing")
        asked = journal.erasures.request(people, who.bookings)
        done = _carried_out(loaded, journal, asked)
        if who.emails and (done.done_at or done.left):
            done = look_for(loaded, done, who.emails)
            journal.erasures.note(done)
    if not console.wrote_json("privacy-erase", {**_document(done), "out_of_reach": _OUT_OF_REACH}):
        _report(done)
    return 0 if done.done_at and not done.left else 5


@command.command("export", epilog=options.example("privacy export --email guest@example.com --to guest.json"))
@_who
@click.option(
    "--to",
    "target",
    required=True,
    type=options.FILE,
    help="The JSON file to write; it must not exist. Only its owner may read it.",
)
@options.pipeline_of
def export(target: Path, loaded: Pipeline, *, who: _Who) -> None:
    """Write everything that is stored about a person into a JSON file.

    It cannot run beside `serve` or another command that writes: stop that first.
    """
    if target.exists():
        raise click.UsageError(f"{target} exists; name another file, or remove it.")
    if not target.absolute().parent.is_dir():
        raise click.UsageError(
            f"{target.parent} is no folder; what is stored about a person goes where you say, or nowhere."
        )
    with options.kept_journal(loaded) as journal:
        people = who.people(loaded, journal)
        found = run_in_project(
            loaded, "privacy export", lambda ports: everything(ports, people, who.bookings), journal=journal
        )
    with writing(target, force=False) as fresh:
        fresh.write_text(f"{json.dumps(found, ensure_ascii=False, indent=1, default=_text)}\n", encoding="utf-8")
    count = len(found["private.booking_contacts"])
    console.note(
        f"{target}: {len(found['bookings'])} bookings, {count} contacts, {len(found['raw.records'])} payloads. It holds "
        "personal data; remove it when it was handed out."
    )


def _carried_out(loaded: Pipeline, journal: Journal, asked: Erasure) -> Erasure:
    """The erasure as far as it came: opening a project carries out what is due, and so does whoever owns it now."""

    async def run() -> Erasure:
        end, told = asyncio.get_running_loop().time() + _WITHIN, False
        while True:
            now = journal.erasures.find(asked.id) or asked
            if now.done_at or now.left or asyncio.get_running_loop().time() >= end:
                return now
            try:
                async with open_project(loaded, command="privacy erase", journal=journal):
                    continue
            except LeaseHeld as error:
                if not told:
                    console.note(f"{str(error).partition(';')[0]}; it is asked to erase. Waiting …")
                told = True
            await asyncio.sleep(_LOOK)

    return run_until_done(run())


def _text(value: Any) -> str:  # noqa: ANN401 - whatever a database holds
    return str(value.isoformat()) if hasattr(value, "isoformat") else str(value)


def _document(erasure: Erasure) -> dict[str, Any]:
    contacts = erasure.contacts or ()
    found = {
        "contacts": len(contacts),
        "bookings": len({contact[:2] for contact in contacts}),
        "erased": erasure.counts,
    }
    return console.fields(erasure, "id", "requested_at", "done_at", "left") | found


def _report(done: Erasure) -> None:
    word, colour = ("erased", "green") if done.done_at and not done.left else ("not everything is erased", "yellow")
    console.outcome(word, f"(erasure {done.id})", colour)
    for place, count in done.counts.items():
        console.label("", f"{place}: {count:,}")
    for sentence in done.left:
        click.echo(f"  {sentence}", err=True)
    if not done.done_at and not done.left:
        console.note(
            "The process that owns the project has not come to it yet. The request stays: it is carried out when that "
            "process ends its run, or by the next command that writes. See: octo-sync privacy list"
        )
    console.note(_OUT_OF_REACH)
