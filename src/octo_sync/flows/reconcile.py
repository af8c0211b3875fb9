"""Reconcile: compare this copy with a ledger, CRM or other system, and keep what was found.

Both sides are read, `reconciliation/` compares them, the journal ages what differs. Nothing of it needs to own the warehouse:
here is the copy that readers have, and results are shown in `ops` and `marts.recon_open` with the next publish.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from octo_sync.destinations.reading import Reader
from octo_sync.errors import ConfigError, LedgerError
from octo_sync.journal import FoundDifference, Journal
from octo_sync.model import Subject, SubjectKind, Window
from octo_sync.pipeline import Pipeline, ReconcileTable

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped] # it ships no types

    from octo_sync.flows.reconcile_html import Drill
    from octo_sync.ledgers import Format, Ledger, Wanted
    from octo_sync.reconciliation import Difference, FieldRule, Item, Kind, Outcome, Rules, Side

__all__ = ["compare", "drill", "news", "store", "table_of", "write"]

_PARAMETER = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/|(?<![:\w]):(from|to)\b", re.DOTALL)
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_QUOTED = re.compile(rb'"([^"\\]{1,100})"')
"""Texts in a body: a notification holds the uuid of what it is about, at a place that depends on its envelope."""
_MOST = 20
"""Versions and deliveries of one booking that are worth showing."""
_OTHER_CONNECTION = (
    "select * from marts.fct_bookings where connection_id = $connection and was_sold "
    "and coalesce(travel_date, booking_date) between $from and $to"
)
_BOOKINGS = {
    column: (
        "select connection_id, booking_uuid, supplier_reference, reseller_reference, status, is_test, is_deleted, "  # noqa: S608 - one of three names
        f"local_date from core.bookings where {column} in (select unnest(cast($wanted as text[])))"
    )
    for column in ("booking_uuid", "supplier_reference", "reseller_reference")
}


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
    there: "pa.Table | None" = None,
) -> "Outcome":
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
    from octo_sync.reconciliation import Acceptance, breaches, kinds, reconcile  # noqa: PLC0415 - only a comparison needs it

    table = table_of(pipeline, name)
    days = window or table.window.window(now.astimezone(_zone(pipeline)).date())
    rules = _rules(name, table, days, now)
    rows = _select(reader, table.query, {"from": days.start, "to": days.end})
    types = kinds(rules, rows.schema)
    rules = _with_day(rules, types)
    ledger = _there(pipeline, table, rules, _wanted(rules, types, rows.schema), reader, environ, there)
    facts = _Facts(reader, journal, days)
    accepted = journal.acceptances(name) if journal is not None else ()
    outcome = reconcile(
        rules,
        rows,
        ledger.rows,
        sides=_sides(reader, facts, rows, ledger),
        place=ledger.place,
        facts=facts,
        acceptances=[Acceptance(a.key, a.note, a.accepted_by, a.accepted_at, a.until) for a in accepted],
    )
    return replace(outcome, breached=breaches(outcome))


def store(journal: Journal, outcome: "Outcome", *, run_id: str, started_at: datetime, now: datetime) -> "Outcome":
    """Age and keep what was found; the outcome with the ages, what is new, and the limits that it passes.

    Raises:
        JournalError: It cannot be written, or there are too many; nothing was stored.
    """
    from octo_sync.reconciliation import breaches  # noqa: PLC0415 - only a comparison needs it

    rules = outcome.rules
    known = {(d.key, d.bucket, d.field): d.first_seen_at for d in journal.open_differences(rules.name)}
    aged = replace(outcome, items=[_aged(item, known, now) for item in outcome.items])
    aged = replace(aged, breached=breaches(aged))
    journal.store_reconciliation(
        rules.name,
        run_id=run_id,
        started_at=started_at,
        window=rules.window,
        here_origin=outcome.here.origin,
        there_origin=outcome.there.origin,
        counts={str(bucket): count for bucket, count in outcome.counts.items()},
        totals=[
            {
                "side": total.side,
                "currency": total.currency,
                "rows": total.rows,
                "amounts": {name: str(amount) for name, amount in total.amounts.items()},
            }
            for total in outcome.totals
        ],
        verdict="over" if aged.breached else "ok",
        found=[_found(item, each) for item in outcome.items if _is_kept(item) for each in item.differences],
        now=now,
    )
    [run] = journal.reconciliation_runs(rules.name, 1)
    return replace(aged, resolved=run.resolved_differences)


def _aged(item: "Item", known: Mapping[tuple[str, str, str], datetime], now: datetime) -> "Item":
    """With since when each difference is known; one that nobody has to look at has no age."""
    if not _is_kept(item):
        return replace(item, differences=tuple(replace(d, is_new=False) for d in item.differences))
    since = [(d, known.get((item.key, str(item.found), d.field))) for d in item.differences]
    return replace(
        item, differences=tuple(replace(d, first_seen_at=seen or now, is_new=seen is None) for d, seen in since)
    )


def _found(item: "Item", difference: "Difference") -> FoundDifference:
    return FoundDifference(
        key=item.key,
        bucket=str(item.found),
        field=difference.field,
        rule=item.rule,
        connection=item.connection,
        booking_uuid=item.booking_uuid,
        here_value=difference.here_value,
        there_value=difference.there_value,
        delta_amount=difference.delta_amount,
        currency=difference.currency,
        reason=difference.reason,
        code=difference.code,
        day=item.day,
    )


def _is_kept(item: "Item") -> bool:
    """What somebody has to look at, or has looked at. What is too fresh to tell is told when it is not."""
    return item.bucket.is_difference or item.acceptance is not None


def write(outcome: "Outcome", path: Path, *, detail: "Callable[[Item], Drill] | None" = None) -> None:
    """Write an outcome as the file's name says: `.html`, `.xlsx` or `.csv`.

    Raises:
        ConfigError: It has another ending, or no file can be made there.
        ExportError: The disk is full, or a sheet cannot hold it.
    """
    match path.suffix.lower():
        case ".html":
            from octo_sync.flows.reconcile_html import write_html  # noqa: PLC0415 - only when asked for

            write_html(outcome, path, drill=detail)
        case ".xlsx":
            from octo_sync.flows.reconcile_xlsx import write_xlsx  # noqa: PLC0415 - only when asked for

            write_xlsx(outcome, path)
        case ".csv":
            from octo_sync.flows.reconcile_text import write_csv  # noqa: PLC0415 - only when asked for

            write_csv(outcome, path)
        case _:
            raise ConfigError(f"{path} ends in none of .html, .xlsx and .csv, so nobody knows what to write.")


def drill(reader: Reader, journal: Journal | None) -> "Callable[[Item], Drill]":
    """What the copy remembers of an item's booking: its versions and the notifications about it."""
    from octo_sync.flows.reconcile_html import Drill  # noqa: PLC0415 - only when asked for

    def detail(item: "Item") -> "Drill":
        if item.booking_uuid is None:
            return Drill(versions=(), deliveries=())
        rows = reader.query(
            "select valid_from_utc, valid_to_utc, status, local_date, retail_amount, net_amount, currency, pax_count, "
            "changed_fields, source from core.booking_history where booking_uuid = $uuid and connection_id = $connection "
            "order by version_no desc",
            {"uuid": item.booking_uuid, "connection": item.connection},
            limit=_MOST,
        )
        versions = [dict(zip(rows.columns, row, strict=True)) for row in rows.rows]
        return Drill(versions=versions, deliveries=told.get(item.booking_uuid.encode(), [])[-_MOST:])

    told: dict[bytes, list[Mapping[str, Any]]] = {}
    for each in journal.all_deliveries() if journal is not None else ():
        for text in set(_QUOTED.findall(each.body)):
            told.setdefault(text, []).append(
                {"received_at": each.received_at, "type": each.type, "state": each.reading}
            )
    return detail


def news(outcome: "Outcome") -> dict[str, Any] | None:
    """What a hook is told: the differences first seen in this run; None when there are none."""
    new = [
        {
            "key": item.key,
            "bucket": str(item.bucket),
            "field": difference.field,
            "here": difference.here_value,
            "there": difference.there_value,
            "currency": difference.currency,
            "reason": difference.reason,
        }
        for item in outcome.items
        if item.bucket.is_difference
        for difference in item.differences
        if difference.is_new
    ]
    if not new:
        return None
    return {
        "event": "reconcile.new_differences",
        "reconciliation": outcome.rules.name,
        "window": str(outcome.rules.window),
        "count": len(new),
        "differences": new[:100],
    }


# ── rules ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _rules(name: str, table: ReconcileTable, window: Window, now: datetime) -> "Rules":
    from octo_sync.reconciliation import FieldRule, KeyRule, Limit, Rules, Tolerance  # noqa: PLC0415

    absolute = dict(table.tolerance)
    default = absolute.pop("default", None)
    fields = tuple(FieldRule(here, there, table.map.get(here)) for here, there in table.fields.items())
    return Rules(
        name=name,
        keys=tuple(KeyRule(here, there) for here, there in table.key_columns()),
        fields=fields,
        window=window,
        now=now,
        currency="currency" if "currency" in table.fields else None,
        date=table.date,
        date_there=table.fields.get(table.date),
        changed_there=table.changed or None,
        tolerance=Tolerance(absolute, default or Decimal(0), Decimal(str(table.relative))),
        grace=timedelta(seconds=table.grace),
        strip=table.strip or None,
        limits=tuple(Limit(measure, above) for measure, above in table.limits()),
    )


def _with_day(rules: "Rules", types: "Mapping[str, Kind]") -> "Rules":
    """Where no column there is the day of travel, a start says it: its day on the wall there. Other days have no stand-in."""
    from octo_sync.reconciliation import wall  # noqa: PLC0415 - only a comparison needs it

    if rules.date_there is None and rules.date == "travel_date":
        start: FieldRule | None = next((f for f in rules.fields if types[f.here] == "instant"), None)
        if start is not None:
            return replace(rules, date_there=wall(start.there))
    return rules


def _zone(pipeline: Pipeline) -> ZoneInfo:
    """Whose today the window is seen from: the business time zone, where all connections have the same."""
    zones = {connection.business_time_zone for connection in pipeline.connections}
    return ZoneInfo(zones.pop() if len(zones) == 1 else "UTC")


# ── here ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _select(reader: Reader, sql: str, values: Mapping[str, Any]) -> "pa.Table":
    """Rows of a statement in which `:from` and `:to` are days."""
    used: dict[str, Any] = {}

    def parameter(found: re.Match[str]) -> str:
        if found[1] is None:
            return found[0]
        used[found[1]] = values[found[1]]
        return f"${found[1]}"

    text = _PARAMETER.sub(parameter, sql)
    return reader.batches(text, used).read_all()


@dataclass(slots=True)
class _Facts:
    """See `reconciliation.Facts`: answered by the copy that readers have, and by the journal."""

    reader: Reader
    journal: Journal | None
    window: Window
    _months: dict[str, bool] | None = field(default=None)

    def bookings(self, column: str, values: Collection[str]) -> Sequence[Mapping[str, Any]]:
        if not values:
            return ()
        rows = self.reader.query(_BOOKINGS[column], {"wanted": list(values)})
        return [dict(zip(rows.columns, row, strict=True)) for row in rows.rows]

    def versions(self, uuids: Collection[str]) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        found: dict[str, list[Mapping[str, Any]]] = {}
        if uuids:
            rows = self.reader.query(
                "select * from core.booking_history where booking_uuid in (select unnest(cast($wanted as text[]))) "
                "order by connection_id, booking_uuid, version_no",
                {"wanted": list(uuids)},
            )
            for row in rows.rows:
                version = dict(zip(rows.columns, row, strict=True))
                found.setdefault(str(version["booking_uuid"]), []).append(version)
        return found

    def owed(self, uuids: Collection[str]) -> Collection[str]:
        if self.journal is None or not uuids:
            return ()
        connections = {backlog.connection for backlog in self.journal.backlog() if backlog.dirty}
        wanted = [Subject(c, SubjectKind.BOOKING, (uuid,)) for c in connections for uuid in uuids]
        return {subject.parts[0] for subject in self.journal.dirty_among(wanted)}

    def is_covered(self, day: date) -> bool | None:
        return self.months.get(f"{day:%Y-%m}")

    @property
    def months(self) -> Mapping[str, bool]:
        """Per month of the window that was ever asked for: whether every connection's bookings were answered wholly."""
        if self._months is None:
            rows = self.reader.query(
                "select travel_month, min(case when is_complete then 1 else 0 end) from marts.coverage "
                "where resource = 'bookings' group by travel_month"
            )
            self._months = {month: bool(complete) for month, complete in rows.rows}
        return self._months

    def seen(self) -> datetime | None:
        """The oldest moment at which a month of the window was verified; None where none was."""
        rows = self.reader.query(
            "select min(verified_at_utc) from marts.coverage "
            "where resource = 'bookings' and travel_month between $first and $last",
            {"first": f"{self.window.start:%Y-%m}", "last": f"{self.window.end:%Y-%m}"},
        )
        return rows.rows[0][0] if rows.rows else None


def _sides(reader: Reader, facts: _Facts, here: "pa.Table", ledger: "Ledger") -> "tuple[Side, Side]":
    from octo_sync.reconciliation import Side  # noqa: PLC0415 - only a comparison needs it

    seen = facts.seen()
    covered = [facts.months.get(month) for month in facts.window.months()]
    complete = None if not facts.months else all(covered)
    ours = Side(origin=reader.name, rows=here.num_rows, as_of=seen, verified_from=seen, complete=complete)
    return ours, Side(origin=ledger.origin, rows=ledger.rows.num_rows, as_of=ledger.as_of)


# ── there ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _there(
    pipeline: Pipeline,
    table: ReconcileTable,
    rules: "Rules",
    wanted: "Sequence[Wanted]",
    reader: Reader,
    environ: Mapping[str, str],
    given: "pa.Table | None",
) -> "Ledger":
    from octo_sync import ledgers  # noqa: PLC0415 - only a comparison needs it

    form, source = _format(table), table.there
    days = {"from": rules.window.start, "to": rules.window.end}
    if given is not None:
        return ledgers.of_table(given, "the rows that were handed in", wanted, form)
    if source.connection:
        rows = reader.batches(_OTHER_CONNECTION, {"connection": source.connection, **days}).read_all()
        return ledgers.of_table(rows, f"connection {source.connection}", wanted, form)
    if source.dsn:
        return ledgers.read_sql(_filled(source.dsn, environ), source.sql, days, wanted, form)
    for pattern, read in (
        (source.csv, ledgers.read_csv),
        (source.xlsx, ledgers.read_xlsx),
        (source.parquet, ledgers.read_parquet),
    ):
        if pattern:
            return read(_files(pipeline.directory, pattern, rules.name), wanted, form)
    raise ConfigError(f"reconcile.{rules.name}.there: expected one of csv, xlsx, parquet, dsn, connection.")


def _wanted(rules: "Rules", types: "Mapping[str, Kind]", here: "pa.Schema") -> "list[Wanted]":
    from octo_sync.ledgers import Wanted  # noqa: PLC0415 - only a comparison needs it
    from octo_sync.reconciliation import kind_of  # noqa: PLC0415 - the same

    found = {each.there: Wanted(each.there, types[each.here]) for each in rules.fields}
    if rules.changed_there:
        found.setdefault(rules.changed_there, Wanted(rules.changed_there, "instant"))
    for key in rules.keys:
        for ours, name in zip(key.here, key.there, strict=True):
            # References are texts, whatever a spreadsheet takes them for; of columns taken together some are days or amounts.
            found.setdefault(name, Wanted(name, kind_of(rules, here, ours) if len(key.here) > 1 else "text"))
    return list(found.values())


def _format(table: ReconcileTable) -> "Format":
    from octo_sync.ledgers import Format  # noqa: PLC0415 - only a comparison needs it

    there = table.there
    return Format(
        delimiter=there.delimiter,
        encoding=there.encoding,
        decimal=there.decimal,
        dates=there.dates,
        sheet=there.sheet,
        header_row=there.header_row,
        time_zone=there.time_zone,
    )


def _files(directory: Path, pattern: str, name: str) -> list[Path]:
    path = Path(pattern).expanduser()
    base, below = (Path(path.anchor), path.relative_to(path.anchor)) if path.is_absolute() else (directory, path)
    found = sorted(each for each in base.glob(str(below)) if each.is_file())
    if not found:
        raise LedgerError(f"reconcile.{name}.there: no file is called {directory / pattern}.")
    return found


def _filled(dsn: str, environ: Mapping[str, str]) -> str:
    def value(found: re.Match[str]) -> str:
        if found[1] not in environ:
            raise ConfigError(f"The environment has no {found[1]}, which the address of a ledger's database names.")
        return environ[found[1]]

    return _VARIABLE.sub(value, dsn)
