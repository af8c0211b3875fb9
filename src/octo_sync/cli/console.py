"""What a person and a machine read: data on stdout, everything else on stderr, no escape bytes in a pipe."""

import csv
import io
import json
import logging
import math
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import zip_longest
from pathlib import Path
from typing import Any

import click

from octo_sync.cli.layout import fit, folded, on_stderr, span
from octo_sync.flows.wording import Number, age, decimals, instant, unique

log = logging.getLogger("octo_sync")

SCHEMA_VERSION = 1
"""Of every JSON document; grows when a field changes its meaning."""
_NARROWEST = 12
_FOLDED = 40
"""Columns that a folded text should have; others go for it."""
_GAP = 2
_TURNED = 3
"""Rows that are read one line a value although their first columns would do."""


def clean(text: str) -> str:
    """Data may hold escape bytes; a terminal must not obey them."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def color() -> bool:
    """Whether stdout may have colours."""
    wanted = click.get_current_context().find_root().color
    return sys.stdout.isatty() if wanted is None else wanted


def styled(text: str, **style: Any) -> str:  # noqa: ANN401 - click's keywords
    """Text with colours where they may be."""
    return click.style(text, **style) if color() else text


def _state() -> Mapping[str, Any]:
    """What was said for the whole of the command."""
    return click.get_current_context().find_root().obj or {}


def quiet() -> bool:
    """Whether only errors and data are wanted."""
    return bool(_state().get("quiet"))


def logs() -> bool:
    """Whether log lines are written on stderr, so that remarks have to be some."""
    return bool(_state().get("log_format"))


def trouble(text: str) -> None:
    """What went wrong, on stderr, also when only errors and data are wanted."""
    if logs():
        log.warning("action=trouble message=%s", text.strip())
    else:
        on_stderr(text)


def note(text: str) -> None:
    """A remark for a person, on stderr."""
    if logs():
        log.info("action=note message=%s", text)
    elif not quiet():
        on_stderr(text)


def warn(warnings: Iterable[str]) -> None:
    """What is odd in a pipeline file, each as a remark."""
    for warning in warnings:
        note(f"warning: {warning}")


def say(text: str, *, head: str = "") -> None:
    """A sentence on stdout after `head`; a terminal gets it folded at words, every line below the first."""
    width, indent = terminal_width(), span(click.unstyle(head))
    lines = folded(text, width - indent if width and width - indent >= _NARROWEST else None)
    click.echo(head + ("\n" + " " * indent).join(lines))


def label(word: str, text: str) -> None:
    """One line of a summary on stdout: a bold word, then what it is about."""
    say(text, head=f"{styled(f'{word:<12}', bold=True)}{'' if len(word) < 12 else ' '}")  # noqa: PLR2004 - the same


def summary(template: Path, **values: object) -> None:
    """Labels as a template has them, a line each: a word, a bar, and what it is about."""
    from octo_sync.flows.templates import filled  # noqa: PLC0415 - most commands have none

    own = {"styled": styled, "clean": clean, "count": lambda number: f"{number:,}", "size": bytes_text}
    for line in filled(template, own, **values).rstrip("\n").split("\n"):
        word, _, said = line.partition(" | ")
        label(word, said)


def outcome(word: str, text: str, colour: str = "green") -> None:
    """How it went, in a coloured word, and what came of it."""
    say(text, head=f"{styled(word, fg=colour, bold=True)}  ")


def steps(wanted: Sequence[tuple[str, str]]) -> None:
    """What to do next: commands and what each is for. On a narrow terminal they are folded so that a shell can read them."""
    click.echo("\nNext")
    width, widest = terminal_width(), max(len(command) for command, _ in wanted)
    is_narrow = width is not None and max(widest + len(why) for _, why in wanted) + len("     # ") > width
    for command, why in wanted:
        said = styled(f"# {why}", dim=True)
        if is_narrow:
            click.echo(f"  {said}\n  " + " \\\n    ".join(folded(command, width and width - len("     \\"))))
        else:
            click.echo(f"  {command:<{widest}}   {said}")


def terminal_width() -> int | None:
    """Columns of the terminal that stdout is, or None when nobody looks."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _plain(value: object) -> object:  # noqa: PLR0911 - one line for each kind of value
    """What JSON can say of a value: amounts and instants are texts, an endless number is null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, date):  # an instant is one too
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Mapping):
        return {str(_plain(k)): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(v) for v in value]
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def dicts(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> list[dict[str, object]]:
    """Rows as objects, for a document."""
    return [dict(zip(columns, row, strict=True)) for row in rows]


def fields(of: object, *names: str) -> dict[str, Any]:
    """These attributes, for a document."""
    return {name: getattr(of, name) for name in names}


def plain_json(content: object) -> str:
    """The content as JSON on one line."""
    return json.dumps(_plain(content), ensure_ascii=False)


def wants_json() -> bool:
    """Whether one JSON document takes the place of everything for people."""
    return bool(_state().get("json"))


def wrote_json(kind: str, content: Mapping[str, Any]) -> bool:
    """Write one JSON document on stdout if it is wanted; whether that was so."""
    if wants_json():
        click.echo(json.dumps(_plain({"schema_version": SCHEMA_VERSION, "kind": kind, **content}), indent=2))
    return wants_json()


def _cell(value: object) -> str:
    """A value as text; what is more than one number or text is JSON: `true`, `[1, 2]`, `{"a": 1}`."""
    if value is None:
        return ""
    if isinstance(value, float):
        return str(value)
    plain = _plain(value)
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)


def table(
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    fold: str = "",
    least: Sequence[str] = (),
    whole: str = "",
) -> None:
    """An aligned table on stdout. A pipe gets all of it; on a terminal the column `fold` is folded at words, never cut.

    So that it has room, columns of `least` go, in this order, until it fits; with `whole`, the option that has all of them,
    those that went are named.
    """
    width = terminal_width()
    if width is None:
        click.echo(rows_text(columns, rows))
        return
    keep = list(range(len(columns)))
    folding = columns.index(fold) if fold else None
    for name in ("", *least):
        keep = [i for i in keep if columns[i] != name]
        wide = {i: max([span(columns[i]), *(span(clean(_cell(row[i]))) for row in rows)]) for i in keep}
        needed = sum(min(wide[i], _FOLDED) if i == folding else wide[i] for i in keep) + _GAP * (len(keep) - 1)
        if needed <= width:
            break
    shown = [[row[i] for i in keep] for row in rows]
    place = keep.index(folding) if folding in keep else None
    click.echo(rows_text([columns[i] for i in keep], shown, width=width, fold=place))
    left = [clean(name) for i, name in enumerate(columns) if i not in keep]
    if left and whole:
        note(f"Columns that do not fit: {', '.join(left)}. {whole} has all.")


def rows_text(
    columns: Sequence[str], rows: Iterable[Sequence[object]], *, width: int | None = None, fold: int | None = None
) -> str:
    """An aligned table: numbers to the right, one line a row.

    With `width` it is made to fit: the texts of column `fold` go on in the next line, then the longest are cut.
    """
    rows = list(rows)
    heads = [clean(c) for c in columns]
    cells = [[clean(_cell(v)) for v in row] for row in rows]
    widths = [max([span(c), *(span(r[i]) for r in cells)], default=0) for i, c in enumerate(heads)]
    if width is not None and fold is not None:
        others = sum(widths) - widths[fold] + _GAP * (len(widths) - 1)
        widths[fold] = max(min(widths[fold], width - others), min(widths[fold], _NARROWEST))
    while width is not None and sum(widths) + _GAP * (len(widths) - 1) > width and max(widths) > _NARROWEST:
        widths[widths.index(max(widths))] -= 1
    right = [
        bool(rows) and all(isinstance(r[i], int | float | Decimal | Number) or r[i] is None for r in rows)
        for i in range(len(heads))
    ]

    def line(parts: Sequence[str]) -> str:
        padded = []
        for part, wide, to_right in zip(parts, widths, right, strict=True):
            text = fit(part, wide)
            space = " " * (wide - span(text))
            padded.append(space + text if to_right else text + space)
        return (" " * _GAP).join(padded).rstrip()

    lines = [styled(line(heads), bold=True), (" " * _GAP).join("-" * w for w in widths)]
    for row in cells:
        parts = [folded(part, widths[i]) if i == fold else [part] for i, part in enumerate(row)]
        lines += map(line, zip_longest(*parts, fillvalue=""))
    return "\n".join(lines)


def _records_text(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """One line a value, for tables wider than the terminal."""
    heads = [clean(c) for c in columns]
    wide = max(map(span, heads), default=0)
    lines = []
    for number, row in enumerate(rows, start=1):
        lines.append(styled(f"-- row {number} ".ljust(max(wide, 24), "-"), dim=True))
        lines += [
            f"{styled(head, bold=True)}{' ' * (wide - span(head))}  {clean(_cell(value))}".rstrip()
            for head, value in zip(heads, row, strict=True)
        ]
    return "\n".join(lines)


def write_rows(
    columns: Sequence[str], rows: Sequence[Sequence[object]], form: str, *, least_last: bool = False, **more: object
) -> None:
    """Rows on stdout as table, json, jsonl, csv or md; `more` goes into the JSON document.

    On a terminal a table that is too wide becomes one line a value; with `least_last` the last columns of a longer one go, and
    are named. People read decimals in their way (table, md); for machines they stay as they are.
    """
    if form in ("table", "md"):
        rows = decimals(columns, rows)
    if form == "table":
        text, width = rows_text(columns, rows), terminal_width()
        if width is not None and len(text.splitlines()[1]) > width:
            if least_last and len(rows) > _TURNED:
                table(columns, rows, least=columns[:0:-1], whole="--format csv")
                return
            text = _records_text(columns, rows) if rows else "\n".join(folded(", ".join(map(clean, columns)), width))
        click.echo(text)
    elif form == "md":
        for cells in (columns, ["---"] * len(columns), *rows):
            click.echo("| " + " | ".join(clean(_cell(v)).replace("|", "\\|") for v in cells) + " |")
    elif form == "csv":
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([_cell(v) for v in row] for row in rows)
        exact = out.getvalue()
        # A file gets every byte, a terminal none that it would obey.
        click.echo("\n".join(map(clean, exact.split("\n"))) if sys.stdout.isatty() else exact, nl=False)
    else:
        names = unique(columns)
        objects = [dict(zip(names, map(_plain, row), strict=True)) for row in rows]
        if not wrote_json("rows", {"columns": names, "rows": objects, **more}):
            for item in objects:
                click.echo(json.dumps(item))


def write_list(
    form: str,
    kind: str,
    content: Mapping[str, Any],
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    hint: str = "",
    fold: str = "",
    least: Sequence[str] = (),
) -> None:
    """A list: in JSON the document with its content, else its rows; a person gets a `table`, and a hint below."""
    if wrote_json(kind, content):
        return
    if form != "table":
        write_rows(columns, rows, form)
        return
    if rows:
        table(columns, rows, fold=fold, least=least, whole="--format csv")
    if hint:
        note(hint)


def clock_time() -> str:
    """The time of day here, for lines that come while something runs."""
    return datetime.now().astimezone().strftime("%H:%M:%S")  # noqa: TID251 - for a person who watches


def instant_text(at: datetime | None) -> str:
    """An instant for people, to the second; `never` without one."""
    return "never" if at is None else instant(at, seconds=True)


def age_text(seconds: float | None) -> str:
    """An age for people; `never` without one."""
    return "never" if seconds is None else age(timedelta(seconds=seconds))


def bytes_text(size: int) -> str:
    """A size for people: `12.3 MB`."""
    amount = float(size)
    for unit in ("B", "kB", "MB"):
        if amount < 1000:  # noqa: PLR2004 - decimal units
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"
