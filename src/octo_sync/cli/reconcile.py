"""`octo-sync reconcile`: compare the copy with a ledger, CRM or other system."""

import getpass
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import click

from octo_sync.app.machine import SystemClock
from octo_sync.app.project import show
from octo_sync.app.reconcile import make
from octo_sync.cli import console, options
from octo_sync.cli.reconcile_summary import print_summary
from octo_sync.errors import ConfigError
from octo_sync.flows.reconcile.text import as_document
from octo_sync.flows.wording import plural
from octo_sync.model import Window
from octo_sync.pipeline import Pipeline, ThereTable


@click.group(cls=options.Group, epilog=options.example("reconcile ledger --html ledger.html"))
def command() -> None:
    """Compare the copy with a ledger, CRM or other system; explain every difference.

    octo-sync reconcile NAME runs [reconcile.NAME] of the pipeline, without a name all of them; octo-sync reconcile run
    --help lists the options.
    """


command.default, command.default_takes_a_name = "run", True


@command.command("run", epilog=options.example("reconcile run ledger --dry-run"))
@click.argument("name", required=False)
@options.pipeline_of
@click.option("--travel", metavar="FROM..TO", help="These travel dates instead of the configured window.")
@click.option("--html", type=options.FILE, help="Write a page with both rows of each difference.")
@click.option("--xlsx", type=options.FILE, help="Write a workbook, a sheet for each bucket.")
@click.option("--csv", type=options.FILE, help="Write a row for each difference.")
@click.option("--dry-run", is_flag=True, help="Only compare; store nothing and notify nobody.")
@options.as_json
def run(
    name: str | None,
    loaded: Pipeline,
    *,
    travel: str | None,
    html: Path | None,
    xlsx: Path | None,
    csv: Path | None,
    dry_run: bool,
) -> int:
    """Compare, and store the differences. The word run may be omitted.

    Exit code 0 = within the limits of fail_on, 3 = over, 1 = it could not be compared, and nothing was stored.
    """
    window = options.travel_window(travel)
    names = [name] if name else list(loaded.reconciliations)
    if not names:
        raise ConfigError(f"{loaded.path} has no [reconcile.NAME]; docs/reconciliation.md shows one of eight lines.")
    files = [_ending(path, suffix) for path, suffix in ((html, ".html"), (xlsx, ".xlsx"), (csv, ".csv")) if path]
    if files and len(names) > 1:
        raise click.UsageError(
            "A file holds one reconciliation: name it, e.g. octo-sync reconcile ledger --html ledger.html."
        )
    code = _run_all(loaded, names, window, files, dry_run=dry_run)
    if not dry_run and not show(loaded) and not console.wants_json() and loaded.publish.enabled:
        console.note("Kept; marts.recon_open shows it when the process that owns the project publishes next.")
    return code


def _run_all(loaded: Pipeline, names: Sequence[str], window: Window | None, files: list[Path], *, dry_run: bool) -> int:
    code, documents = 0, []
    for each in names:
        made = make(loaded, each, keep=not dry_run, window=window, files=files)
        if console.wants_json():
            documents.append(as_document(made.outcome))
        else:
            print_summary(made.outcome, written=made.files)
        if made.hook_failed:
            console.note(f"The hook of {each} failed: {made.hook_failed}.")
        code = 3 if made.outcome.breached else code
    console.wrote_json("reconcile", {"reconciliations": documents})
    return code


@command.command("list", epilog=options.example("reconcile list"))
@options.pipeline_of
@options.as_json
def list_(loaded: Pipeline) -> None:
    """List the reconciliations of the pipeline and how their last run ended."""
    names = loaded.reconciliations
    last = options.ask_journal(loaded, lambda journal: [r for n in names for r in journal.reconciliations.runs(n, 1)])
    ended = {run.name: (run.ended_at, run.verdict, run.open_differences, run.new_differences) for run in last}
    rows = [
        (each, _source(table.there), str(table.window), *ended.get(each, (None, "never", None, None)))
        for each, table in names.items()
    ]
    heads = ("name", "there", "window", "last_run", "verdict", "open", "new")
    if console.wrote_json("reconciliations", {"reconciliations": console.dicts(heads, rows)}):
        return
    if rows:
        console.write_rows(heads, rows, "table")
    else:
        console.note("This pipeline has no [reconcile.NAME]; docs/reconciliation.md shows one of eight lines.")


@command.command("accept", epilog=options.example("reconcile accept supplier_reference=1042 --note refunded"))
@click.argument("key")
@click.option("--note", help="Why; required unless --undo.")
@click.option(
    "--until", type=click.DateTime(["%Y-%m-%d"]), metavar="DAY", help="The last day it holds.  [default: no end]"
)
@click.option("--undo", is_flag=True, help="Withdraw the acceptance.")
@click.option("--name", metavar="NAME", help="Which reconciliation, when the pipeline has several.")
@click.option("--by", metavar="WHO", help="Who accepts.  [default: this user]")
@options.pipeline_of
def accept(
    key: str,
    note: str | None,
    until: datetime | None,
    name: str | None,
    by: str | None,
    loaded: Pipeline,
    *,
    undo: bool,
) -> None:
    """Accept the differences of KEY, such as booking_uuid=0d3a…, or withdraw that."""
    if not undo and not note:
        raise click.UsageError("Say why with --note.")
    which = _one(loaded, name)
    day = until.date() if until else None
    with options.kept_journal(loaded) as journal:
        if undo:
            journal.reconciliations.unaccept(which, key)
            click.echo(f"no longer accepted  {key} of {which}")
            return
        covered = journal.reconciliations.accept(
            which, key, note=note or "", by=by or _user(), until=day, now=SystemClock().now()
        )
    found = plural(covered, "open difference")
    click.echo(f"accepted  {key} of {which}: {found}, {f'until {day}' if day else 'for good'}")


def _source(there: ThereTable) -> str:
    """What the other side is. An address is not repeated: it may hold a password."""
    [kind] = there.kinds
    return "database" if kind == "dsn" else f"{kind} {getattr(there, kind)}"


def _one(loaded: Pipeline, name: str | None) -> str:
    known = list(loaded.reconciliations)
    if name is None and len(known) != 1:
        raise click.UsageError(
            f"Which reconciliation? --name {' or --name '.join(known) or 'NAME; the pipeline has none'}."
        )
    which = name or known[0]
    if which not in known:
        raise click.UsageError(f"There is no reconciliation {which!r}{options.did_you_mean(which, known) or '.'}")
    return which


def _ending(path: Path, suffix: str) -> Path:
    """What is asked for with `--html` is a page whatever the file is called."""
    if path.suffix.lower() != suffix:
        raise click.UsageError(f"--{suffix[1:]} {path}: expected a file that ends in {suffix}.")
    return path


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "unknown"
