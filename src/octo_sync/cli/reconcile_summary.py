"""What `octo-sync reconcile` says on a terminal: both sides, the buckets, the proof, what matters most, the verdict."""

import re
from collections.abc import Sequence
from pathlib import Path

import click

from octo_sync.cli import console
from octo_sync.flows.reconcile import words
from octo_sync.flows.reconcile.both_rows import reference, side_by_side
from octo_sync.flows.wording import Number, currency_name, days_old, instant, money, money_text, plural
from octo_sync.reconciliation.model import Difference, Item, Outcome, Side

_MOST = 10
_UUID = re.compile(r"([0-9a-f]{8})(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def print_summary(outcome: Outcome, *, written: Sequence[Path] = ()) -> None:
    """The summary on stdout; `written` are the files that hold all of it."""
    window = outcome.rules.window
    console.label("Here", _side(outcome.here))
    console.label("There", _side(outcome.there))
    for note in outcome.there.notes:
        console.label("", console.clean(note))
    console.label("Compared", f"{console.clean(outcome.rules.name)}, travel dates {window.start} to {window.end}")
    totals = words.controls(outcome)
    click.echo()
    _buckets(outcome)
    click.echo()
    _proof(totals)
    click.echo()
    _differences(outcome)
    click.echo()
    colour = "red" if outcome.breached else "green"
    console.label("Verdict", console.styled(console.clean(words.verdict(outcome)), fg=colour, bold=True))
    if written:
        console.label("Written", ", ".join(map(str, written)))


def _side(side: Side) -> str:
    parts = [console.clean(side.origin), plural(side.rows, "row")]
    if side.verified_from:
        parts.append(f"verified at the service since {instant(side.verified_from, seconds=True)}")
    elif side.as_of:
        parts.append(f"as of {instant(side.as_of, seconds=True)}")
    else:
        parts.append("of unknown age")
    if side.complete is not None:
        parts.append("all of the window" if side.complete else console.styled("not all of the window", fg="yellow"))
    return ", ".join(parts)


def _buckets(outcome: Outcome) -> None:
    """Differences or bookings of each bucket, and what it adds to the difference of the first amount, by currency."""
    field = words.main_amount(outcome)
    rows = []
    for bucket, (name, _) in words.BUCKETS.items():
        if not outcome.counts.get(bucket):
            continue
        parts = sorted(
            (e for e in outcome.explained if e.bucket is bucket and e.field == field and e.difference),
            key=lambda e: (e.currency is None, e.currency or ""),
        )
        amounts = [f"{money(e.difference, e.currency, sign=True)} {currency_name(e.currency)}" for e in parts]
        count = Number(f"{outcome.counts[bucket]:,}")
        rows.append((name, *((count, None) if bucket.has_differences else (None, count)), " · ".join(amounts)))
    heads = ["bucket", "differences", "bookings", f"{field}, there − here" if field else ""]  # noqa: RUF001 - a minus
    console.table(heads, rows, fold=heads[3])


def _proof(totals: Sequence[words.Control]) -> None:
    rows = [(currency_name(c.currency), c.field or "rows", *map(Number, (*_sums(c), _unexplained(c)))) for c in totals]
    console.table(["total", "of", "here", "there", "difference", "unexplained"], rows)
    if words.proven(totals):
        console.say("The buckets explain every difference to exactly 0.")
    else:
        wrong = "The buckets do not explain all of the difference: the comparison itself is wrong. Please report it."
        console.say(console.styled(wrong, fg="red", bold=True))


def _sums(control: words.Control) -> tuple[str, str, str]:
    """Both sides and their difference: of an amount, or of rows where none is compared."""
    c = control
    if not c.field:
        return f"{c.rows_here:,}", f"{c.rows_there:,}", f"{c.rows_there - c.rows_here:+,}"
    here, there = (money(amount, c.currency) for amount in (c.amount_here, c.amount_there))
    return here, there, money(c.difference, c.currency, sign=True)


def _unexplained(control: words.Control) -> str:
    if control.unexplained or not control.unexplained_rows:
        return money(control.unexplained, control.currency, sign=True) if control.unexplained else "0"
    return f"{control.unexplained_rows:,} rows"


def _differences(outcome: Outcome) -> None:
    """One line each; where that is too wide for the terminal, the reason goes below."""
    found = words.open_pairs(outcome)
    if not outcome.differences:
        gone = f" {outcome.resolved:,} from before {'is' if outcome.resolved == 1 else 'are'} no longer found."
        console.say(words.no_difference(outcome) + (gone if outcome.resolved else ""))
        return
    gone = f", {outcome.resolved:,} no longer found" if outcome.resolved else ""
    shown = words.by_importance(found)[:_MOST]
    of_all = f"the {_MOST} that matter most of {len(found):,}" if len(found) > _MOST else f"{len(found):,}"
    console.label("Differences", f"{of_all}; {outcome.new:,} new{gone}")
    rows = [(_named(outcome, item), _what(outcome, item, d), _age(outcome, d), d.reason) for item, d in shown]
    heads, width = ("key", "here → there", "age", "reason"), console.terminal_width()
    text = console.rows_text(heads, rows)
    if width is None or _wide(text) <= width:
        click.echo(text)
        return
    text = console.rows_text(heads[:3], [row[:3] for row in rows])
    if _wide(text) > width:
        text = console.rows_text(heads[:3], [(_short(key), *more) for key, *more, _ in rows], width=width)
    head, rule, *lines = text.split("\n")
    click.echo(f"{head}\n{rule}")
    for line, (*_, reason) in zip(lines, rows, strict=True):
        click.echo(line)
        console.say(console.styled(console.clean(reason), dim=True), head="  ")


def _wide(table: str) -> int:
    """The columns of a table: its rule says."""
    return len(table.split("\n")[1])


def _named(outcome: Outcome, item: Item) -> str:
    """The key, and before it the booking's reference where that is not in it."""
    known = reference(side_by_side(outcome.rules, item))
    return f"{known} {item.key}" if known and known not in re.split("[=+ ]", item.key) else item.key


def _short(key: str) -> str:
    """With the beginning of a booking's uuid, which is enough to know it by."""
    return _UUID.sub(r"\1…", key)


def _what(outcome: Outcome, item: Item, difference: Difference) -> str:
    currency, delta = difference.currency or item.currency, difference.delta_amount
    amount = money_text(delta, currency, sign=True)
    if not difference.field:
        return f"{words.BUCKETS[item.bucket][0]} {amount}".strip()
    here, there = (
        words.value_text(outcome, difference.field, value, currency)
        for value in (difference.here_value, difference.there_value)
    )
    return f"{difference.field} {here} → {there}{f' {currency}' if delta is not None and currency else ''}"


def _age(outcome: Outcome, difference: Difference) -> str:
    days = words.age_days(difference, outcome.rules)
    return "new" if difference.is_new or days is None else days_old(days)
