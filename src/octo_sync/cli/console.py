"""What a person and a machine read: data on stdout, everything else on stderr, no escape bytes in a pipe."""

import csv
import io
import json
import os
import sys
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import click

__all__ = ["SCHEMA_VERSION", "bytes_text", "color", "document", "note", "rows_text", "styled", "write_rows"]

SCHEMA_VERSION = 1
"""Of every JSON document; grows when a field changes its meaning."""


def color() -> bool:
    """Whether stdout may have colours."""
    wish = (click.get_current_context().find_root().obj or {}).get("color", "auto")
    if wish != "auto":
        return bool(wish == "always")
    if os.environ.get("NO_COLOR"):  # noqa: TID251 - a terminal's convention, not configuration
        return False
    return sys.stdout.isatty() or bool(os.environ.get("FORCE_COLOR"))  # noqa: TID251 - the same


def styled(text: str, **style: Any) -> str:  # noqa: ANN401 - click's keywords
    """Text with colours where they may be."""
    return click.style(text, **style) if color() else text


def quiet() -> bool:
    """Whether only errors and data are wanted."""
    return bool((click.get_current_context().find_root().obj or {}).get("quiet"))


def note(text: str) -> None:
    """A remark for a person, on stderr."""
    if not quiet():
        click.echo(text, err=True)


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, bytes):
        return value.hex()
    return str(value)


def document(kind: str, content: dict[str, Any]) -> None:
    """One JSON document on stdout."""
    click.echo(json.dumps({"schema_version": SCHEMA_VERSION, "kind": kind, **content}, default=_plain, indent=2))


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float | str):
        return str(value)
    return str(_plain(value))


def _clean(text: str) -> str:
    """Data may hold escape bytes; a terminal must not obey them."""
    return "".join(c if c.isprintable() or c == " " else "\N{REPLACEMENT CHARACTER}" for c in text)


def rows_text(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """An aligned table: numbers to the right, one line a row."""
    rows = list(rows)
    cells = [[_clean(_cell(v)) for v in row] for row in rows]
    widths = [max([len(c), *(len(r[i]) for r in cells)], default=0) for i, c in enumerate(columns)]
    right = [all(isinstance(r[i], int | float | Decimal) or r[i] is None for r in rows) for i in range(len(columns))]

    def line(parts: Sequence[str]) -> str:
        return "  ".join(
            p.rjust(w) if r else p.ljust(w) for p, w, r in zip(parts, widths, right, strict=True)
        ).rstrip()

    head = line(columns)
    rule = "  ".join("-" * w for w in widths)
    return "\n".join([head, rule, *(line(r) for r in cells)])


def write_rows(columns: Sequence[str], rows: Sequence[Sequence[object]], form: str) -> None:
    """Rows on stdout as table, json, jsonl, csv or md."""
    if form == "table":
        click.echo(rows_text(columns, rows))
    elif form == "md":
        click.echo("| " + " | ".join(columns) + " |")
        click.echo("|" + "---|" * len(columns))
        for row in rows:
            click.echo("| " + " | ".join(_clean(_cell(v)).replace("|", "\\|") for v in row) + " |")
    elif form == "csv":
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([_cell(v) for v in row] for row in rows)
        click.echo(out.getvalue(), nl=False)
    else:
        objects = [dict(zip(columns, row, strict=True)) for row in rows]
        if form == "jsonl":
            for item in objects:
                click.echo(json.dumps(item, default=_plain))
        else:
            document("rows", {"columns": list(columns), "rows": objects})


def bytes_text(size: int) -> str:
    """A size for people: `12.3 MB`."""
    for unit in ("B", "kB", "MB"):
        if size < 1000:  # noqa: PLR2004 - decimal units
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size = size / 1000  # type: ignore[assignment]
    return f"{size:.1f} GB"
