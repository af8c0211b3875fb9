"""The money on both sides, and the difference explained bucket by bucket, exactly."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from decimal import Decimal

import duckdb

from octo_sync.errors import ReconcileError
from octo_sync.reconciliation.model import Bucket, ExplainedMoney, Kind, Rules, SideTotal

__all__ = ["explained", "must_close", "totals"]


def _amounts(rules: Rules, types: Mapping[str, Kind]) -> dict[str, int]:
    return {field.here: i for i, field in enumerate(rules.fields) if types[field.here] == "amount"}


def totals(db: duckdb.DuckDBPyConnection, rules: Rules, types: Mapping[str, Kind]) -> list[SideTotal]:
    """Rows and sums per side and currency, from the rows as they were read."""
    amounts = _amounts(rules, types)
    sums = "".join(f", coalesce(sum(f{i}), 0)" for i in amounts.values())
    found = []
    for side, table in (("here", "h"), ("there", "t")):
        rows = db.execute(f"select cur, count(*){sums} from {table} group by cur order by cur nulls last").fetchall()
        found += [
            SideTotal("here" if side == "here" else "there", row[0], row[1], dict(zip(amounts, row[2:], strict=True)))
            for row in rows
        ]
    return found


def explained(db: duckdb.DuckDBPyConnection, rules: Rules, types: Mapping[str, Kind]) -> list[ExplainedMoney]:
    """What every bucket adds, per currency and amount field, in that order.

    `pair` and `member` say which item a row is in, `bucket (item, bucket)` where the items are that are no plain matches.
    """
    amounts = _amounts(rules, types)
    sums = "".join(f", coalesce(sum(s.f{i}), 0)" for i in amounts.values())
    none = (0, (Decimal(0),) * max(len(amounts), 1))
    found: dict[tuple[str | None, Bucket], dict[str, tuple[int, tuple[Decimal, ...]]]] = defaultdict(dict)
    for side in "ht":
        rows = db.execute(
            f"select s.cur, coalesce(bucket.bucket, 'matched'), count(*){sums} from {side} s join ("
            f"select {side} as rid, 2 * h as item from pair union all select rid, item from member where side = '{side}'"
            ") using (rid) left join bucket using (item) group by 1, 2"
        ).fetchall()
        for currency, bucket, count, *sides in rows:
            found[currency, Bucket(bucket)][side] = (count, tuple(map(Decimal, sides)) or none[1])
    order = list(Bucket)
    return [
        ExplainedMoney(bucket, currency, name, here[0], there[0], here[1][i], there[1][i])
        for currency in sorted({currency for currency, _ in found}, key=lambda each: (each is None, each or ""))
        for i, name in enumerate(amounts or [""])
        for bucket in order
        if (currency, bucket) in found
        for here, there in [(found[currency, bucket].get("h", none), found[currency, bucket].get("t", none))]
    ]


def must_close(rules: Rules, sides: Sequence[SideTotal], parts: Sequence[ExplainedMoney]) -> None:
    """The parts have to add up to both sides, to the last row and unit.

    Raises:
        ReconcileError: They do not: something was lost or counted twice on the way, so that nothing of it can be believed.
    """
    for side in ("here", "there"):
        counted: dict[tuple[str | None, str], tuple[int, Decimal]] = {}
        for part in parts:
            rows, amount = (
                (part.rows_here, part.amount_here) if side == "here" else (part.rows_there, part.amount_there)
            )
            before = counted.get((part.currency, part.field), (0, Decimal(0)))
            counted[part.currency, part.field] = (before[0] + rows, before[1] + amount)
        wanted = {
            (total.currency, name): (total.rows, Decimal(amount))
            for total in sides
            if total.side == side
            for name, amount in (total.amounts or {"": Decimal(0)}).items()
        }
        for key in wanted.keys() | counted.keys():
            have, want = counted.get(key, (0, Decimal(0))), wanted.get(key, (0, Decimal(0)))
            if have != want:
                raise ReconcileError(
                    f"reconcile.{rules.name}: the arithmetic does not close: {side}, {key[1] or 'rows'} in "
                    f"{key[0] or 'no currency'}: the buckets hold {have[0]:,} rows and {have[1]}, the side {want[0]:,} and "
                    f"{want[1]}. Nothing was stored; this is a bug of octo-sync."
                )
