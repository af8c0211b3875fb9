"""`octo-sync close`: the figures of a month of travel stay as they were, and what changes later is told."""

from collections.abc import Sequence
from contextlib import closing
from typing import Any

import click

from octo_sync.app.machine import SystemClock
from octo_sync.app.reading import reader
from octo_sync.app.reconcile import show
from octo_sync.cli import console, options
from octo_sync.flows.periods import CAUSES, TOTALS, close
from octo_sync.flows.wording import currency_name, instant, money, plural
from octo_sync.journal import Closing

_MOST = 20


@click.command(epilog=options.example("close 2026-10"))
@click.argument("period", required=False, metavar="[MONTH]")
@click.option("--incomplete", is_flag=True, help="Also where not all bookings of the month are known.")
@options.places_of
@options.as_json
def command(period: str | None, project: options.Places, *, incomplete: bool, json_: bool) -> int:
    """Close a month of travel: its figures stay, later changes are adjustments.

    MONTH is such as 2026-10. Its sold bookings, taxes, refunds due and deferred revenue are kept as they are in the read
    copy; a closing is never overwritten.
    Without MONTH: what was closed, and what changed since. Exit code 3 = a closing was altered.
    """
    if period is not None:
        _close(project, period, incomplete=incomplete)
    closings = options.ask_journal(project, lambda journal: list(journal.closings.all()))
    wanted = [each for each in closings if period in (None, each.period)]
    figures, adjustments, totals = _told(project, wanted) if wanted else ([], [], [])
    shown = {row["period"]: row["digest"] for row in figures}
    altered = [
        each.period for each in wanted
        if each.computed_digest() != each.digest or shown.get(each.period, each.digest) != each.digest
    ]  # fmt: skip
    if json_:
        periods = [_document(each, figures, adjustments, totals) for each in wanted]
        console.document("close", {"altered": altered, "periods": periods})
        return 3 if altered else 0
    for each in wanted:
        _print(each, figures, adjustments, totals)
    if not closings:
        console.note("No month is closed; octo-sync close 2026-10 closes one.")
    if altered:
        console.trouble(f"octo-sync: what was closed was altered: {', '.join(altered)}.")
    return 3 if altered else 0


def _close(project: options.Places, period: str, *, incomplete: bool) -> None:
    loaded, now = options.with_pipeline(project), SystemClock().now()
    with closing(reader(project.published, is_whole=True)) as copy, options.kept_journal(project) as journal:
        made = close(copy, journal, period, now, incomplete=incomplete)
    if made is None:
        console.note(f"{period} was closed before and stays as it is.")
    if not show(loaded, command="close") and loaded.publish.enabled:
        console.note("Kept; marts.closed_periods shows it when the process that owns the project publishes next.")


def _told(project: options.Places, closings: Sequence[Closing]) -> list[list[dict[str, Any]]]:
    """What the marts say of these, as the last publish made them."""
    periods = {each.period for each in closings}
    wanted = (
        "select * from marts.closed_periods order by period, channel_name, connection_id, currency",
        "select * from marts.period_adjustments order by period, changed_at_utc desc nulls last, booking_key",
        "select * from marts.month_totals order by period, kind desc, tax_name nulls first, channel_name, currency",
    )
    with options.open_copy(project) as copy:
        found = [copy.sql(query).fetch().records() for query in wanted]
    named = [[{**row, "period": f"{row['period']:%Y-%m}"} for row in rows] for rows in found]
    return [[row for row in rows if row["period"] in periods] for rows in named]


def _print(
    kept: Closing,
    figures: Sequence[dict[str, Any]],
    adjustments: Sequence[dict[str, Any]],
    totals: Sequence[dict[str, Any]],
) -> None:
    of = [row for row in figures if row["period"] == kept.period]
    changed = [row for row in adjustments if row["period"] == kept.period]
    known = "" if kept.is_complete else ", with not all bookings known"
    console.label(kept.period, f"closed {instant(kept.closed_at)}{known} · SHA-256 {kept.digest[:16]}…")
    if not of:
        console.say("The next publish shows its figures.", head="  ")
        return
    heads = ["channel", "bookings", "net", "adjustments", "net adjustment", "net now", "retail now"]
    rows = [
        [
            row["channel_name"],
            f"{row['bookings']:,}",
            _amount(row, "net_amount"),
            f"{row['adjustments']:,}",
            _amount(row, "net_adjustment", sign=True),
            _amount(row, "net_now"),
            _amount(row, "retail_now"),
        ]
        for row in of
        if row["connection_id"]
    ]
    console.table(heads, rows or [["no bookings", *[""] * (len(heads) - 1)]])
    _print_totals(kept, [row for row in totals if row["period"] == kept.period])
    for row in changed[:_MOST]:
        what = row["supplier_reference"] or row["reseller_reference"] or row["booking_uuid"]
        net = _amount(row, "net_adjustment", sign=True) or _amount(row, "retail_adjustment", sign=True)
        console.say(f"{console.clean(what)} {CAUSES[row['cause']]}{f', {net}' if net else ''}", head="  ")
    if len(changed) > _MOST:
        console.say(f"{plural(len(changed) - _MOST, 'more adjustment')} in marts.period_adjustments.", head="  ")
    click.echo()


def _print_totals(kept: Closing, totals: Sequence[dict[str, Any]]) -> None:
    if kept.totals is None:
        console.say("Closed by an older octo-sync, which kept no taxes, refunds and deferred revenue.", head="  ")
    elif totals:
        heads = ["", "channel", "retail then", "retail adjustment", "net then", "net adjustment"]
        names = (("retail_amount", False), ("retail_adjustment", True), ("net_amount", False), ("net_adjustment", True))
        rows = [
            [
                TOTALS[row["kind"]] if row["tax_name"] is None else f"tax: {row['tax_name']}",
                row["channel_name"],
                *(_amount(row, name, sign=sign) for name, sign in names),
            ]
            for row in totals
        ]
        console.table(heads, rows)


def _amount(row: dict[str, Any], name: str, *, sign: bool = False) -> str:
    value = row[name]
    return "" if value is None else f"{money(value, row['currency'], sign=sign)} {currency_name(row['currency'])}"


def _document(
    kept: Closing,
    figures: Sequence[dict[str, Any]],
    adjustments: Sequence[dict[str, Any]],
    totals: Sequence[dict[str, Any]],
) -> dict[str, Any]:
    return {
        **console.fields(kept, "period", "closed_at", "is_complete", "digest"),
        "figures": [row for row in figures if row["period"] == kept.period and row["connection_id"]],
        "adjustments": [row for row in adjustments if row["period"] == kept.period],
        "totals": None if kept.totals is None else [row for row in totals if row["period"] == kept.period],
    }
