"""The other side of a comparison: which file, database, connection or frame the pipeline names, read as what it is."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped] # it ships no types

from octo_sync.destinations.reading import Reader
from octo_sync.errors import ConfigError, LedgerError
from octo_sync.pipeline import Pipeline, ReconcileTable
from octo_sync.reconciliation import ledgers
from octo_sync.reconciliation.ledgers import Ledger, Wanted
from octo_sync.reconciliation.model import Kind, Rules
from octo_sync.reconciliation.sides import kind_of

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_OTHER_CONNECTION = (
    "select * from marts.fct_bookings where connection_id = $connection and was_sold and {day} between $from and $to"
)


def read_there(
    pipeline: Pipeline,
    table: ReconcileTable,
    rules: Rules,
    wanted: Sequence[Wanted],
    reader: Reader,
    environ: Mapping[str, str],
    given: pa.Table | None,
) -> Ledger:
    """Its rows, from `given` or from where the table says; `wanted` are the columns that count.

    Raises:
        ConfigError: The environment lacks what an address needs.
        LedgerError: It cannot be read, or a file or database has no row. (Another connection, or a frame, may have none.)
    """
    source = table.there
    form = ledgers.Format(**{each.name: getattr(source.format, each.name) for each in fields(ledgers.Format)})
    days = {"from": rules.window.start, "to": rules.window.end}
    if given is not None:
        return ledgers.of_table(given, "the rows that were handed in", wanted, form)
    if source.connection:
        sold = _OTHER_CONNECTION.format(day=table.day)
        rows = reader.batches(sold, {"connection": source.connection, **days}).read_all()
        return ledgers.of_table(rows, f"connection {source.connection}", wanted, form)
    if source.dsn:
        ledger = ledgers.read_sql(_filled(source.dsn, environ), source.sql, days, wanted, form)
        return _with_rows(ledger, f"the query found no row for {rules.window}", "Look at sql, or ask for other days")
    by_ending = {".csv": ledgers.read_csv, ".xlsx": ledgers.read_xlsx, ".parquet": ledgers.read_parquet}
    read = by_ending[Path(source.file).suffix.lower()]
    ledger = read(_files(pipeline.directory, source.file, rules.name), wanted, form)
    return _with_rows(ledger, "there is no row below the header", "Export it again, or set header_row")


def wanted(rules: Rules, types: Mapping[str, Kind], here: pa.Schema) -> list[Wanted]:
    """The columns there that are compared or matched by, and what each is."""
    found = {each.there: Wanted(each.there, types[each.here]) for each in rules.fields}
    if rules.changed_there:
        found.setdefault(rules.changed_there, Wanted(rules.changed_there, "instant"))
    for key in rules.keys:
        for ours, name in zip(key.here, key.there, strict=True):
            # References are texts, whatever a spreadsheet takes them for; of columns taken together some are days or amounts.
            found.setdefault(name, Wanted(name, kind_of(rules, here, ours) if len(key.here) > 1 else "text"))
    return list(found.values())


def _with_rows(ledger: Ledger, what: str, advice: str) -> Ledger:
    """A ledger that is empty is an export that failed: compared, it would make all of this copy a difference."""
    if not ledger.rows.num_rows:
        raise LedgerError(f"{ledger.origin}: {what}, so nothing was compared. {advice}.")
    return ledger


def _files(directory: Path, pattern: str, name: str) -> list[Path]:
    path = Path(pattern).expanduser()
    base, below = (Path(path.anchor), path.relative_to(path.anchor)) if path.is_absolute() else (directory, path)
    found = sorted(each for each in base.glob(str(below)) if each.is_file())
    if not found:
        raise LedgerError(
            f"reconcile.{name}.there: no file is called {base.resolve() / below}. Put the export there, or correct "
            "there.file in the pipeline file."
        )
    return found


def _filled(dsn: str, environ: Mapping[str, str]) -> str:
    def value(found: re.Match[str]) -> str:
        if found[1] not in environ:
            raise ConfigError(f"The environment has no {found[1]}, which the address of a ledger's database names.")
        return environ[found[1]]

    return _VARIABLE.sub(value, dsn)
