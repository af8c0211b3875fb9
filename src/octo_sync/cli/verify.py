"""`octo-sync verify`: does the copy say what the service says?"""

from pathlib import Path
from typing import Any

import click

from octo_sync.app.verify import verify_against_service, verify_claims
from octo_sync.cli import console, options
from octo_sync.cli.progress import shown
from octo_sync.flows.ports import Progress
from octo_sync.flows.verify import Claims, LiveResult
from octo_sync.pipeline import Pipeline


@click.command(epilog=options.example("verify --live"))
@options.project
@click.option("--live", is_flag=True, help="Fetch everything again and compare with the read copy.")
@click.option(
    "--sample", type=click.IntRange(1), metavar="N", help="With --live: only N random parts of it, mostly months."
)
@click.option("--travel", metavar="FROM..TO", help="With --live: only these travel dates.")
@options.limit(20, "Differences or problems to print at most.")
@options.as_json
def command(
    pipeline: str | None,
    directory: Path,
    *,
    live: bool,
    sample: int | None,
    travel: str | None,
    limit: int,
) -> int:
    """Check the copy, or with --live compare it with the service row by row.

    Without --live: everything the pipeline keeps was verified, nothing is pending or missing, and the checks pass.
    Exit code 0 = equal, 3 = different, 5 = something could not be asked or compared.
    """
    window = options.travel_window(travel)
    if live or sample or window:
        loaded, progress = options.load_pipeline(directory, pipeline), Progress()
        with shown(progress):
            found = verify_against_service(loaded, sample=sample, travel=window, progress=progress)
        return _live(found, loaded, limit=limit)

    loaded, _ = options.without_tokens(directory, pipeline)
    return _claims(verify_claims(loaded), limit=limit)


def _live(found: LiveResult, loaded: Pipeline, *, limit: int) -> int:
    comparison = found.comparison
    refused = any(t.refused for t in found.troubles)
    code = 4 if refused else 3 if not comparison.equal else 0 if found.complete else 5
    if console.wrote_json("verify", _document(found, limit)):
        return code
    rows = sum(there for _, there in comparison.rows.values())
    if comparison.equal and found.complete:
        totals = " · ".join(f"{c} {a:,} in {n:,} bookings" for c, n, a in comparison.totals)
        asked = f"{found.subjects:,} subjects asked again ({found.requests:,} requests)"
        console.outcome("equal", f"{len(comparison.rows)} tables, {rows:,} rows, {asked}")
        console.say(totals, head=" " * 7)
        console.say("Contacts and notes are not compared.", head=" " * 7)
        return code
    if comparison.equal:
        text = (
            f"what could be compared is equal: {rows:,} rows; what could not is named"
            if rows
            else "nothing could be compared"
        )
        console.outcome("incomplete", text, "red")
    else:
        number, name = sum(comparison.differing.values()), options.published_name(loaded)
        console.outcome("different", f"{number:,} rows of {name} differ from the service", "red")
        table = [(t, a, b, comparison.differing[t]) for t, (a, b) in comparison.rows.items() if comparison.differing[t]]
        console.write_rows(("table", "rows here", "rows at the service", "differing"), table, "table")
        shown = [(d.table, d.key, d.kind, ", ".join(d.columns)) for d in comparison.differences[:limit]]
        if shown:
            click.echo()
            console.write_rows(("table", "key", "what", "columns"), shown, "table")
    for trouble in found.troubles:
        click.echo(f"{trouble.connection}: {trouble.error}", err=True)
    for subject, why in list(found.failed.items())[:limit]:
        click.echo(f"{subject}: {why}", err=True)
    if len(found.failed) > limit:
        click.echo(f"and {len(found.failed) - limit:,} more; --limit shows them", err=True)
    return code


def _document(found: LiveResult, limit: int) -> dict[str, Any]:
    comparison = found.comparison
    tables = {
        t: {"here": a, "service": b, "differing": comparison.differing[t]} for t, (a, b) in comparison.rows.items()
    }
    about = {
        "equal": comparison.equal,
        "tables": tables,
        "totals": console.dicts(("currency", "bookings", "retail_amount"), comparison.totals),
        "differences": [console.fields(d, "table", "key", "kind", "columns") for d in comparison.differences[:limit]],
        "troubles": [str(t.error) for t in found.troubles],
    }
    return about | console.fields(found, "complete", "subjects", "requests", "failed")


def _claims(found: Claims, *, limit: int) -> int:
    code = 3 if found.problems else 0
    about = {"ok": not found.problems, "oldest_seconds": found.oldest, "read_copy": found.of_readers}
    if console.wrote_json("verify", about | console.fields(found, "subjects", "problems", "notes")):
        return code
    if found.problems:
        console.outcome("incomplete", f"{len(found.problems):,} problems in {found.subjects:,} subjects", "red")
        for problem in found.problems[:limit]:
            click.echo(f"  {problem}")
    else:
        age = "" if found.oldest is None else f", the oldest verified {found.oldest / 60:.0f} min ago"
        console.outcome("complete", f"{found.subjects:,} subjects of the horizon are covered{age}; every check passes")
    if found.of_readers:
        console.say("Checked what is published, because another process works on the project.")
    for note in found.notes:
        console.say(note)
    console.say("Checked the copy only. To compare with the service: octo-sync verify --live")
    return code
