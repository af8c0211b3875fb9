"""The composition root of comparisons: the copy that readers have, the journal, files and hooks put together.

Like `app`, it decides nothing. A comparison reads what was published and keeps its result in the journal, so it runs beside
whatever owns the warehouse; who owns it shows the result to readers with its next publish.
"""

import contextlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import SystemRandom
from typing import TYPE_CHECKING, Any

import pyarrow as pa  # type: ignore[import-untyped] # it ships no types

from octo_sync import pipeline as settings
from octo_sync.app import reading as api
from octo_sync.app.hooks import tell
from octo_sync.app.machine import SystemClock, environ, new_run_id
from octo_sync.app.notify import smtp_of
from octo_sync.app.places import published
from octo_sync.app.project import open_journal
from octo_sync.destinations.reading import refuse_older
from octo_sync.errors import OctoSyncError
from octo_sync.flows.reconcile.history import news, store
from octo_sync.flows.reconcile.reading import remembered
from octo_sync.flows.reconcile.run import compare, table_of, write
from octo_sync.flows.reconcile.words import COLUMNS, cells, pairs
from octo_sync.journal import Journal
from octo_sync.model import Clock, Window
from octo_sync.pipeline import Pipeline
from octo_sync.reconciliation.model import Outcome

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped] # it ships no types


_TOTALS = ("side", "currency", "rows", "field", "amount")
_EXPLAINED = ("bucket", "currency", "field", "rows_here", "rows_there", "amount_here", "amount_there", "difference")


@dataclass(frozen=True, slots=True)
class Reconciled:
    """A comparison that was made. The frames are built when they are asked for."""

    outcome: Outcome
    files: tuple[Path, ...] = ()
    """Those that were written."""
    hook_failed: str | None = None
    """What went wrong with its hook."""

    @property
    def counts(self) -> dict[str, int]:
        """Differences of each bucket; bookings of `matched`, `matched_within_tolerance` and `out_of_window`."""
        return {str(bucket): count for bucket, count in self.outcome.counts.items()}

    @property
    def passed(self) -> bool:
        """Whether no limit of `fail_on` was passed."""
        return not self.outcome.breached

    def differences(self) -> "pd.DataFrame":
        """One row per difference: what a person has to look at, and what was accepted or is too fresh; amounts are Decimals.

        The columns are those of the CSV.
        """
        found = pairs(item for item in self.outcome.items if item.differences)
        return _frame(COLUMNS, [cells(self.outcome, *each) for each in found])

    def totals(self) -> "pd.DataFrame":
        """Rows and money on both sides, per currency and amount."""
        return _frame(
            _TOTALS,
            [
                (total.side, total.currency, total.rows, name or None, amount)
                for total in self.outcome.totals
                for name, amount in total.amounts.items() or [("", None)]
            ],
        )

    def explained(self) -> "pd.DataFrame":
        """What each bucket adds to the difference; per currency and amount its sum is the difference of the totals."""
        told = [
            asdict(e) | {"bucket": str(e.bucket), "field": e.field or None, "difference": e.difference}
            for e in self.outcome.explained
        ]
        return _frame(_EXPLAINED, told)

    def __repr__(self) -> str:
        outcome = self.outcome
        return f"Reconciled({outcome.rules.name!r}, {outcome.rules.window}, {outcome.differences} differences)"


def make(
    pipeline: Pipeline,
    name: str,
    *,
    keep: bool = True,
    clock: Clock | None = None,
    window: Window | None = None,
    files: Sequence[Path] = (),
    there: pa.Table | None = None,
    journal: Journal | None = None,
) -> Reconciled:
    """Compare and write files; to `keep` is to age and store what was found, and to tell the hook of what is new.

    What was accepted before counts in any case. A `journal` that is open is left open.

    Raises:
        ConfigError, LedgerError, ReconcileError, QueryError: It could not be compared; nothing was kept.
        JournalError: It could not be kept.
    """
    clock = clock or SystemClock()
    table, started_at = table_of(pipeline, name), clock.now()
    with contextlib.ExitStack() as stack:
        reader = stack.enter_context(contextlib.closing(api.reader(published(pipeline), is_whole=True)))
        if journal is None and (keep or Journal.exists(pipeline.journal)):
            journal = stack.enter_context(open_journal(pipeline, clock))
        refuse_older(reader.name, lambda sql: reader.query(sql).rows)
        outcome = compare(
            pipeline,
            name,
            reader=reader,
            journal=journal,
            now=started_at,
            environ=environ(),
            window=window,
            there=there,
        )
        if journal is not None and keep:
            run_id = new_run_id(clock, SystemRandom())
            outcome = store(journal, outcome, run_id=run_id, started_at=started_at, now=clock.now())
        wanted = [*files, *(pipeline.directory / each for each in table.write if keep)]
        uuids = {item.booking_uuid for item in outcome.items if item.booking_uuid}
        known = remembered(reader, journal, uuids) if any(path.suffix.lower() == ".html" for path in wanted) else None
        for path in wanted:
            write(outcome, path, remembered=known)
    problem = None
    if keep and table.notify and (document := news(outcome)) is not None:
        problem = tell(table.notify, document, smtp=smtp_of(pipeline))
    return Reconciled(outcome, tuple(wanted), problem)


def reconcile(
    name: str | None = None,
    *,
    directory: str | Path = ".",
    pipeline: str | None = None,
    there: "pd.DataFrame | pa.Table | None" = None,
    keep: bool = False,
) -> Reconciled:
    """Compare the published copy with another system's rows, as `[reconcile.NAME]` of a pipeline says.

    Args:
        name: Which reconciliation; None when the pipeline has one.
        directory: The project.
        pipeline: Which pipeline, when there are several: a name or a path.
        there: Rows that stand for the other side, with its column names: a pandas frame or an Arrow table.
        keep: Also age and keep what was found, as the command does; not with `there`.

    Raises:
        OctoSyncError: It could not be compared; the sentence says where and what to do.
    """
    project = Path(directory)
    loaded = settings.load(settings.find(pipeline, project), directory=project, environ=environ(), overrides={})
    if name is None:
        if len(loaded.reconciliations) != 1:
            raise OctoSyncError(
                f"Which reconciliation? {loaded.path} has {', '.join(loaded.reconciliations) or 'none'}."
            )
        [name] = loaded.reconciliations
    if keep and there is not None:
        raise OctoSyncError("What is handed in is compared and not kept: leave out `keep` or `there`.")
    return make(loaded, name, keep=keep, there=None if there is None else _arrow(there))


def _arrow(rows: "pd.DataFrame | pa.Table") -> pa.Table:
    return rows if isinstance(rows, pa.Table) else pa.Table.from_pandas(rows, preserve_index=False)


def _frame(columns: tuple[str, ...], rows: list[Any]) -> "pd.DataFrame":
    import pandas as pd  # noqa: PLC0415 - most who reconcile need no pandas

    return pd.DataFrame(rows, columns=list(columns))
