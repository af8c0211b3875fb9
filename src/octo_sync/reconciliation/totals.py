"""The money on both sides, and the difference explained bucket by bucket, exactly."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Literal

import duckdb

from octo_sync.errors import ReconcileError
from octo_sync.reconciliation.model import Bucket, ExplainedMoney, Kind, Rules, SideTotal


def _amounts(rules: Rules, types: Mapping[str, Kind]) -> dict[str, int]:
    return {field.here: i for i, field in enumerate(rules.fields) if types[field.here] == "amount"}


def totals(db: duckdb.DuckDBPyConnection, rules: Rules, types: Mapping[str, Kind]) -> list[SideTotal]:
    """Rows and sums per side and currency, from the rows as they were read."""
    amounts = _amounts(rules, types)
    sums = "".join(f", coalesce(sum(f{i}), 0)" for i in amounts.values())
    sides: tuple[tuple[Literal["here", "there"], str], ...] = (("here", "h"), ("there", "t"))
    return [
        SideTotal(side, currency, rows, dict(zip(amounts, found, strict=True)))
        for side, table in sides
        for currency, rows, *found in db.execute(
            f"select cur, count(*){sums} from {table} group by cur order by cur nulls last"
        ).fetchall()
    ]


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
    return [
        ExplainedMoney(bucket, currency, name, here[0], there[0], here[1][i], there[1][i])
        for currency in sorted({currency for currency, _ in found}, key=lambda each: (each is None, each or ""))
        for i, name in enumerate(amounts or [""])
        for bucket in Bucket
        if (currency, bucket) in found
        for here, there in [(found[currency, bucket].get("h", none), found[currency, bucket].get("t", none))]
    ]


def must_close(rules: Rules, sides: Sequence[SideTotal], parts: Sequence[ExplainedMoney]) -> None:
    """The parts have to add up to both sides, to the last row and unit.

    Raises:
        ReconcileError: They do not: something was lost or counted twice on the way, so that nothing of it can be believed.
    """
    nothing = (0, Decimal(0))
    have: dict[tuple[str, str | None, str], tuple[int, Decimal]] = {}
    for p in parts:
        for side, rows, amount in (("here", p.rows_here, p.amount_here), ("there", p.rows_there, p.amount_there)):
            before = have.get((side, p.currency, p.field), nothing)
            have[side, p.currency, p.field] = (before[0] + rows, before[1] + amount)
    want: dict[tuple[str, str | None, str], tuple[int, Decimal]] = {
        (total.side, total.currency, name): (total.rows, amount)
        for total in sides
        for name, amount in (total.amounts or {"": Decimal(0)}).items()
    }
    for key in [*want, *have]:
        (held, money), (rows, whole) = have.get(key, nothing), want.get(key, nothing)
        if (held, money) != (rows, whole):
            side, currency, name = key
            raise ReconcileError(
                f"reconcile.{rules.name}: the arithmetic does not close: {side}, {name or 'rows'} in "
                f"{currency or 'no currency'}: the buckets hold {held:,} rows and {money}, the side {rows:,} and "
                f"{whole}. Nothing was stored; this is a bug of octo-sync."
            )
