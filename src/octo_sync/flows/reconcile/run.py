"""Reconcile: compare this copy with a ledger, CRM or other system.

Both sides are read (`reading.py`), `reconciliation/` compares them, the journal ages what
differs (`history.py`). Nothing of it needs to own the warehouse:
here is the copy that readers have, and results are shown in `ops` and `marts.recon_open` with the next publish.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped] # it ships no types

from octo_sync.destinations.reading import Reader
from octo_sync.errors import ConfigError
from octo_sync.flows.reconcile.page import Remembered, write_html
from octo_sync.flows.reconcile.reading import Facts, read_there, select, sides, wanted
from octo_sync.flows.reconcile.text import write_csv
from octo_sync.flows.reconcile.workbook import write_xlsx
from octo_sync.journal import Journal
from octo_sync.model import Window, day_at
from octo_sync.pipeline import Pipeline, ReconcileTable
from octo_sync.reconciliation import model
from octo_sync.reconciliation.engine import reconcile
from octo_sync.reconciliation.limits import breaches
from octo_sync.reconciliation.model import FieldRule, Outcome, Rules
from octo_sync.reconciliation.sides import kinds, wall


def table_of(pipeline: Pipeline, name: str) -> ReconcileTable:
    """The reconciliation of that name.

    Raises:
        ConfigError: The pipeline has none.
    """
    if name not in pipeline.reconciliations:
        known = ", ".join(pipeline.reconciliations) or "none; docs/reconciliation.md shows one of eight lines"
        raise ConfigError(f"{pipeline.path} has no [reconcile.{name}]. It has: {known}.")
    return pipeline.reconciliations[name]


def compare(
    pipeline: Pipeline,
    name: str,
    *,
    reader: Reader,
    journal: Journal | None,
    now: datetime,
    environ: Mapping[str, str],
    window: Window | None = None,
    there: pa.Table | None = None,
) -> Outcome:
    """Read both sides and compare them; nothing is stored.

    Args:
        pipeline: Whose `[reconcile.NAME]` is meant.
        name: Which.
        reader: What was published.
        journal: Knows what was accepted and what is owed; None where there is none.
        now: The moment that the window and the grace are seen from.
        environ: For `${NAME}` in the address of a database.
        window: Other days than the pipeline file says.
        there: Rows that stand for the other side, e.g. a frame of a notebook.

    Raises:
        ConfigError: There is no such reconciliation, or files of it are not there.
        LedgerError, ReconcileError, QueryError: A side cannot be read, or the two not compared.
    """
    table = table_of(pipeline, name)
    days = window or table.window.window(day_at(_zone(pipeline), now))
    rules = _rules(name, table, days, now)
    rows = select(reader, table.query, {"from": days.start, "to": days.end})
    types = kinds(rules, rows.schema)
    rules = _with_day(rules, types)
    ledger = read_there(pipeline, table, rules, wanted(rules, types, rows.schema), reader, environ, there)
    facts = Facts(reader, journal, days, table.there.connection, table.date)
    accepted = journal.reconciliations.acceptances(name) if journal is not None else ()
    earlier = journal.reconciliations.open_differences(name) if journal is not None else ()
    outcome = reconcile(
        rules,
        rows,
        ledger.rows,
        sides=sides(reader, facts, rows, ledger),
        place=ledger.place,
        last=ledger.last,
        facts=facts,
        acceptances=[model.Acceptance(a.key, a.note, a.accepted_by, a.accepted_at, a.until) for a in accepted],
        earlier={model.Earlier(one.key, one.booking_uuid, one.day) for one in earlier},
    )
    return replace(outcome, breached=breaches(outcome))


def write(outcome: Outcome, path: Path, *, remembered: Remembered | None = None) -> None:
    """Write an outcome as the file's name says: `.html`, `.xlsx` or `.csv`.

    Raises:
        ConfigError: It has another ending, or no file can be made there.
        ExportError: The disk is full, or a sheet cannot hold it.
    """
    page = partial(write_html, remembered=remembered)
    writers: dict[str, Callable[[Outcome, Path], None]] = {".html": page, ".xlsx": write_xlsx, ".csv": write_csv}
    if (ending := path.suffix.lower()) not in writers:
        raise ConfigError(f"{path} must end in .html, .xlsx or .csv.")
    writers[ending](outcome, path)


# ── rules ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _rules(name: str, table: ReconcileTable, window: Window, now: datetime) -> Rules:
    absolute = dict(table.tolerance)
    default, relative = absolute.pop("default", None), absolute.pop("relative", Decimal(0))
    fields = tuple(FieldRule(here, there, table.map.get(here)) for here, there in table.fields.items())
    return Rules(
        name=name,
        keys=tuple(model.KeyRule(here, there) for here, there in table.key_columns()),
        fields=fields,
        window=window,
        now=now,
        currency="currency" if "currency" in table.fields else None,
        date=table.date,
        date_there=table.fields.get(table.date),
        changed_there=table.changed or None,
        tolerance=model.Tolerance(absolute, default or Decimal(0), relative),
        grace=timedelta(seconds=table.grace),
        strip=table.there.format.strip or None,
        limits=tuple(model.Limit(measure, above) for measure, above in table.limits()),
    )


def _with_day(rules: Rules, types: Mapping[str, model.Kind]) -> Rules:
    """Where no column there is the day of travel, a start says it: its day on the wall there. Other days have no stand-in."""
    if rules.date_there is None and rules.date == "travel_date":
        start: FieldRule | None = next((f for f in rules.fields if types[f.here] == "instant"), None)
        if start is not None:
            return replace(rules, date_there=wall(start.there))
    return rules


def _zone(pipeline: Pipeline) -> str:
    """Whose today the window is seen from: the business time zone, where all connections have the same."""
    zones = {connection.business_time_zone for connection in pipeline.connections}
    return zones.pop() if len(zones) == 1 else "UTC"
