"""What came of a comparison as pandas frames, for those who go on in a notebook."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from octo_sync.flows.reconcile.words import COLUMNS, cells, pairs
from octo_sync.reconciliation.model import Outcome

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped] # it ships no types

_TOTALS = ("side", "currency", "rows", "field", "amount")
_EXPLAINED = ("bucket", "currency", "field", "rows_here", "rows_there", "amount_here", "amount_there", "difference")


@dataclass(frozen=True, slots=True)
class Reconciled:
    """A comparison that was made. The frames are built when they are asked for."""

    outcome: Outcome

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


def _frame(columns: tuple[str, ...], rows: list[Any]) -> "pd.DataFrame":
    import pandas as pd  # noqa: PLC0415 - most who reconcile need no pandas

    return pd.DataFrame(rows, columns=list(columns))
