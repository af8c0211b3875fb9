"""`octo-sync ask`: the ready-made questions."""

import contextlib
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import click

from octo_sync.app.reading import Copy
from octo_sync.cli import console, options
from octo_sync.destinations.reading import refuse_older
from octo_sync.errors import OctoSyncError
from octo_sync.flows import ask
from octo_sync.flows.ask import Question, Value
from octo_sync.flows.doctor.unpriced import concerns, sentence, unpriced
from octo_sync.flows.wording import plural, rounded


@click.command(epilog=options.example("ask 14"))
@click.argument("question", required=False)
@options.param("A value for one of the question's parameters, instead of its default; repeatable.")
@options.project
@options.limit(0)
@options.timeout()
@click.option("--show", is_flag=True, help="Print the question's SQL and parameters instead.")
@options.as_form
def command(
    question: str | None,
    given: Sequence[str],
    directory: Path,
    pipeline: str | None,
    *,
    limit: int,
    timeout: float,
    show: bool,
    form: str,
) -> None:
    """Answer one of the ready-made questions, or list them.

    QUESTION is a number or a name from the list. Dates may be written as 2026-11-20, today, tomorrow, today-7d, month-1 (the
    first day of last month), month-1d (its last), year (1 January) or year+1-1d (31 December); moments as 2026-11-20,
    2026-11-20T12:00:00Z, now or now-24h.
    """
    if question is None:
        _list(ask.questions(directory), form)
        return
    project = options.places(directory, pipeline)
    known = ask.questions(project.directory)
    found = ask.find(known, question)
    if found is None:
        hint = options.did_you_mean(question, [q.name for q in known])
        raise click.UsageError(f"There is no question {question!r}{hint or '.'} octo-sync ask lists them.")
    if show:
        click.echo(found.file.text.rstrip())
        return
    with options.open_copy(project) as copy:
        values = answers(copy, found, given)
        rows = copy.sql(found.sql, values, timeout=timeout or None).fetch(limit or None)
        said_too = remarks(copy, found)
    if form in ("table", "md"):
        console.note(found.question + (f"  ({_said(found, values)})" if values else ""))
        # Of the first rows alone nobody knows.
        if not rows.truncated and (said := ask.verdict(found, rows.columns, rows.rows)):
            console.say(console.clean(said))
    console.write_rows(
        rows.columns,
        _readable(rows.columns, rows.rows, form),
        form,
        types=list(rows.types),
        truncated=rows.truncated,
        least_last=True,
        name=found.name,
        question=found.question,
        parameters=values,
    )
    if not rows.rows and form in ("table", "md"):
        console.note(_why_none(found))
    if rows.truncated:
        console.note(f"Only the first {limit:,} rows are shown; --limit 0 shows all.")
    for remark in said_too:
        console.note(remark)


def remarks(copy: Copy, question: Question) -> list[str]:
    """What is in no row, and what one has to know about amounts; a copy without the tables for it says nothing."""
    found = []
    with contextlib.suppress(OctoSyncError):
        for what, which in question.not_shown:
            ((count,),) = copy.sql(f"select count(*) from marts.fct_bookings where {which}").rows()  # noqa: S608 - the question's own
            found += [f"Not shown: {plural(count, what)}."] if count else []
        if concerns(question):
            found += [sentence(*each) for each in unpriced(lambda sql: copy.sql(sql).rows()).items()]
    return found


def _list(known: Sequence[Question], form: str) -> None:
    rows = [(q.number, q.name, q.question, " ".join(f"{p.name}={p.default}" for p in q.parameters)) for q in known]
    heads = ("no", "name", "question", "parameters")
    hint = "Ask one: octo-sync ask NUMBER|NAME --param NAME=VALUE; --show prints its parameters and SQL."
    document = {"questions": [about(q) for q in known]}
    console.write_list(form, "questions", document, heads, rows, hint=hint, fold="question", least=["parameters"])


def about(question: Question) -> dict[str, Any]:
    """A question for machines; a parameter without a default must be given."""
    wanted = question.parameters
    parameters = [console.fields(p, "name", "type", "meaning") | {"default": p.default or None} for p in wanted]
    return console.fields(question, "number", "name", "question", "description") | {"parameters": parameters}


def answers(copy: Copy, question: Question, given: Sequence[str]) -> dict[str, Value]:
    """The question's parameters: `NAME=VALUE` as given, else its defaults at this moment."""
    refuse_older(copy.name, lambda sql: copy.sql(sql).rows())
    now = datetime.now(UTC)  # noqa: TID251 - the moment of asking; questions get it as a parameter
    return ask.values(question, _pairs(given), now=now, time_zone=_time_zone(copy))


def _pairs(given: Sequence[str]) -> dict[str, str]:
    pairs = {}
    for text in given:
        name, separator, value = text.partition("=")
        if not separator or not name.strip():
            raise click.UsageError(f"--param {text!r}: expected NAME=VALUE, e.g. --param first=today-7d.")
        pairs[name.strip()] = value.strip()
    return pairs


def _time_zone(copy: Copy) -> str:
    """Where "today" is: the business time zone, if all connections have the same one."""
    zones = copy.sql("select distinct business_time_zone from core.connections where is_active").rows()
    return str(zones[0][0] or "UTC") if len(zones) == 1 else "UTC"


def _said(question: Question, values: dict[str, Any]) -> str:
    """The parameters as they were understood; a day that stands for its month is said as the month."""
    monthly = {p.name for p in question.parameters if p.type == "date" and p.meaning.endswith(" month.")}

    def text(name: str, value: object) -> object:
        if name in monthly:
            return f"{value:%Y-%m}"
        return console.instant_text(value) if isinstance(value, datetime) else value

    return ", ".join(f"{name} {text(name, value)}" for name, value in values.items())


def _why_none(question: Question) -> str:
    """What it means that nothing came."""
    if not question.parameters:
        return f"No rows. {question.description}".rstrip()
    names = ", ".join(p.name for p in question.parameters)
    return f"No rows for these values; --param gives others ({names}). {question.description}".rstrip()


def _readable(columns: Sequence[str], rows: list[tuple[Any, ...]], form: str) -> list[tuple[Any, ...]]:
    """For people: shares with four decimals, amounts per guest with those of their currency, instants to the second, months.

    Months are `2026-11`, starts of whole days their day. Machines get all as it is.
    """
    if form not in ("table", "md"):
        return rows

    def short(column: str, value: object, row: Sequence[Any]) -> object:
        if isinstance(value, float) and "amount" in column:
            return rounded(Decimal(value), dict(zip(columns, row, strict=True)).get("currency"))
        if isinstance(value, float):
            return round(value, 4)
        if isinstance(value, date) and column.endswith("_month"):
            return f"{value:%Y-%m}"
        if not isinstance(value, datetime):
            return value
        is_day = column == "local_start_at" and dict(zip(columns, row, strict=True)).get("is_all_day")
        return value.date() if is_day else value.replace(microsecond=0)

    return [tuple(short(c, v, row) for c, v in zip(columns, row, strict=True)) for row in rows]
