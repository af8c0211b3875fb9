"""`octo-sync close`: the figures of a month of travel stay as they were, and what changes later is told."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

import click

from octo_sync.app.machine import SystemClock
from octo_sync.app.project import show
from octo_sync.app.reading import reader
from octo_sync.cli import console, options
from octo_sync.destinations.reading import refuse_older
from octo_sync.flows.periods import CAUSES, TOTALS, close, mirrored, still_open, take_back
from octo_sync.flows.wording import UNKNOWN, currency_name, instant, money, plural
from octo_sync.journal import Closing

_MOST = 20
Row = dict[str, Any]
_MARTS = {
    "figures": "closed_periods order by channel_name, connection_id, currency",
    "adjustments": "period_adjustments order by changed_at_utc desc nulls last, booking_key",
    "totals": "month_totals order by kind desc, tax_name nulls first, channel_name, currency",
}


@click.command(epilog=options.example("close 2026-10"))
@click.argument("period", required=False, metavar="[MONTH]")
@click.option(
    "--incomplete", is_flag=True, help="Also where not all bookings of the month are known, or some are pending."
)
@options.places_of
@options.as_json
def command(period: str | None, project: options.Places, *, incomplete: bool) -> int:
    """Close a month of travel: its figures stay, later changes are adjustments.

    MONTH is such as 2026-10. Its sold bookings, taxes, refunds due and deferred revenue are kept as they are in the read
    copy; a closing is never overwritten.
    Without MONTH: what was closed, and what changed since. Exit code 3 = a closing was altered.
    """
    if period is not None:
        _close(project, period, incomplete=incomplete)
    closings = options.ask_journal(project, lambda journal: list(journal.closings.all()))
    wanted = [each for each in closings if period in (None, each.period)]
    told, copied = _told(project)
    shown = [(each, *_of(each.period, told)) for each in wanted]
    altered = [each.period for each in wanted if each.is_altered or not _agree(each, copied.get(each.period))]
    # Of a journal that was lost: what still fits its digest is taken back by the next publish.
    lost = sorted(copied.keys() - {each.period for each in closings})
    altered += [each for each in lost if copied[each].is_altered]
    if console.wrote_json("close", {"altered": altered, "lost": lost, "periods": [_document(*each) for each in shown]}):
        return 3 if altered else 0
    for number, each in enumerate(shown):
        if number:
            click.echo()
        _print(*each)
    if lost:
        console.note(
            f"Closed, but no longer in the journal: {', '.join(lost)}. octo-sync sync takes back what is unaltered."
        )
    elif not closings:
        console.note("No month is closed; octo-sync close 2026-10 closes one.")
    if altered:
        console.trouble(f"octo-sync: what was closed was altered: {', '.join(altered)}.")
    return 3 if altered else 0


def _close(project: options.Places, period: str, *, incomplete: bool) -> None:
    loaded, now = options.with_pipeline(project), SystemClock().now()
    with closing(reader(project.published, is_whole=True)) as copy, options.kept_journal(project) as journal:
        refuse_older(copy.name, lambda sql: copy.query(sql).rows)
        take_back(copy.query, journal)
        made = close(copy, journal, period, now, incomplete=incomplete)
        against = still_open(copy, period) if made is not None else ""
    if made is None:
        console.note(f"{period} was closed before and stays as it is.")
    elif against:
        console.note(f"{against} It is closed all the same.")
    if not show(loaded, command="close") and loaded.publish.enabled:
        console.note("Kept; marts.closed_periods shows it when the process that owns the project publishes next.")


def _told(project: options.Places) -> tuple[dict[str, list[Row]], dict[str, Closing]]:
    """What the marts say of closed months, as the last publish made them, and the closings that they say it of."""
    with options.open_copy(project) as copy:
        refuse_older(copy.name, lambda sql: copy.sql(sql).rows())
        found = {name: copy.sql(f"select * from marts.{mart}").fetch().records() for name, mart in _MARTS.items()}  # noqa: S608 - our names
        copied = {each.period: each for each in mirrored(lambda sql: copy.sql(sql).fetch())}
    told = {name: [{**row, "period": f"{row['period']:%Y-%m}"} for row in rows] for name, rows in found.items()}
    return told, copied


def _agree(kept: Closing, copied: Closing | None) -> bool:
    """Whether readers have the figures that were kept, or none yet."""
    marks = kept.digest, kept.closed_at, kept.computed_digest()
    return copied is None or (copied.digest, copied.closed_at, copied.computed_digest()) == marks


def _of(period: str, told: Mapping[str, Sequence[Row]]) -> tuple[list[Row], list[Row], list[Row]]:
    figures, changed, totals = ([row for row in rows if row["period"] == period] for rows in told.values())
    return figures, changed, totals


def _print(kept: Closing, figures: Sequence[Row], changed: Sequence[Row], totals: Sequence[Row]) -> None:
    known = "" if kept.is_complete else ", with not all bookings known"
    console.label(kept.period, f"closed {instant(kept.closed_at)}{known} · SHA-256 {kept.digest[:16]}…")
    if not figures:
        console.say("The next publish shows its figures.", head="  ")
        return
    heads = ["channel", "bookings", "net", "adjustments", "net adjustment", "net now", "retail now"]
    rows = [
        [
            row["channel_name"],
            f"{row['bookings']:,}",
            _known(row, "net_amount", "bookings"),
            f"{row['adjustments']:,}",
            _known(row, "net_adjustment", "adjustments", sign=True),
            _known(row, "net_now", "bookings_now"),
            _known(row, "retail_now", "bookings_now"),
        ]
        for row in figures
        if row["connection_id"]
    ]
    least = ("net adjustment", "bookings", "net")
    some = rows or [["no bookings", *[""] * (len(heads) - 1)]]
    console.table(heads, some, fold="channel", least=least, whole="--json")
    _print_totals(kept, totals)
    for row in changed[:_MOST]:
        what = row["supplier_reference"] or row["reseller_reference"] or row["booking_uuid"]
        net = _amount(row, "net_adjustment", sign=True) or _amount(row, "retail_adjustment", sign=True)
        console.say(f"{console.clean(what)} {CAUSES[row['cause']]}{f', {net}' if net else ''}", head="  ")
    if len(changed) > _MOST:
        console.say(f"{plural(len(changed) - _MOST, 'more adjustment')} in marts.period_adjustments.", head="  ")


def _print_totals(kept: Closing, totals: Sequence[Row]) -> None:
    if kept.totals is None:
        console.say("Closed by an older octo-sync, which kept no taxes, refunds and deferred revenue.", head="  ")
    elif totals:
        heads = ["total", "channel", "retail then", "retail adjustment", "net then", "net adjustment"]
        names = (("retail_amount", False), ("retail_adjustment", True), ("net_amount", False), ("net_adjustment", True))
        rows = [
            [
                TOTALS[row["kind"]] if row["tax_name"] is None else f"tax: {row['tax_name']}",
                row["channel_name"],
                *(_amount(row, name, sign=sign) or UNKNOWN for name, sign in names),
            ]
            for row in totals
        ]
        click.echo()
        console.table(heads, rows, fold="channel", least=("net then", "net adjustment"), whole="--json")


def _known(row: Row, name: str, of: str, *, sign: bool = False) -> str:
    return _amount(row, name, sign=sign) or (UNKNOWN if row[of] else "")


def _amount(row: Row, name: str, *, sign: bool = False) -> str:
    value = row[name]
    return "" if value is None else f"{money(value, row['currency'], sign=sign)} {currency_name(row['currency'])}"


def _document(kept: Closing, figures: Sequence[Row], changed: Sequence[Row], totals: Sequence[Row]) -> Row:
    return {
        **console.fields(kept, "period", "closed_at", "is_complete", "digest"),
        "figures": [row for row in figures if row["connection_id"]],
        "adjustments": changed,
        "totals": None if kept.totals is None else totals,
    }
