"""Two small sides of a few columns, compared."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa

from octo_sync.model import Window
from octo_sync.reconciliation.engine import reconcile
from octo_sync.reconciliation.model import FieldRule, KeyRule, Outcome, Rules, Side

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
WINDOW = Window(date(2026, 11, 1), date(2026, 11, 30))
TYPES = {
    "amount": pa.decimal128(38, 8), "net": pa.decimal128(38, 8), "retail_amount": pa.decimal128(38, 8),
    "net_amount": pa.decimal128(38, 8), "day": pa.date32(), "guests": pa.int64(),
    "travel_date": pa.date32(), "booking_date": pa.date32(),
    "start": pa.timestamp("us", "UTC"), "start.wall": pa.timestamp("us"), "local": pa.timestamp("us"),
    "utc_start_at": pa.timestamp("us", "UTC"), "local_start_at": pa.timestamp("us"), "changed": pa.timestamp("us", "UTC"),
    "utc_updated_at": pa.timestamp("us", "UTC"), "number": pa.int64(), "is_test": pa.bool_(), "flag": pa.bool_(),
}  # fmt: skip


@dataclass
class Facts:
    known: Sequence[Mapping[str, object]] = ()
    dirty: Collection[str] = ()
    asked: list[date] = field(default_factory=list)

    def bookings(self, column, values):
        return [row for row in self.known if row[column] in values]

    def versions(self, _uuids):
        return {}

    def owed(self, uuids):
        return [uuid for uuid in uuids if uuid in self.dirty]

    def is_covered(self, day):
        self.asked.append(day)
        return True


def table(
    columns: Sequence[str], rows: Sequence[Mapping[str, object]], types: Mapping[str, pa.DataType] = TYPES
) -> pa.Table:
    schema = pa.schema([(name, types.get(name, pa.string())) for name in columns])
    return pa.Table.from_pylist([{name: row.get(name) for name in columns} for row in rows], schema)


def money(text: str | None) -> Decimal | None:
    return None if text is None else Decimal(text)


def key(text: str) -> KeyRule:
    """`a`, `a=b`, `a+b`, `a+b=c+d`: columns here and there."""
    here, _, there = text.partition("=")
    return KeyRule(tuple(here.split("+")), tuple((there or here).split("+")))


def compared(
    here,
    there,
    *,
    keys=("a", "b"),
    fields=("amount", "currency"),
    facts=None,
    sides=None,
    acceptances=(),
    earlier=(),
    **given,
) -> Outcome:
    """Both sides as lists of rows; `given` are rules, `columns` more columns and `types_there` other types there."""
    rules_keys = tuple(key(each) for each in keys)
    rules_fields = tuple(each if isinstance(each, FieldRule) else FieldRule(each, each) for each in fields)
    more, types_there = given.pop("columns", ()), TYPES | given.pop("types_there", {})
    ours = dict.fromkeys([*(c for k in rules_keys for c in k.here), *(f.here for f in rules_fields), *more])
    theirs = dict.fromkeys([*(c for k in rules_keys for c in k.there), *(f.there for f in rules_fields), *more])
    rules = Rules(name="test", keys=rules_keys, fields=rules_fields, **({"window": WINDOW, "now": NOW} | given))
    default = (Side(origin="here", rows=len(here)), Side(origin="there", rows=len(there)))
    return reconcile(
        rules, table(list(ours), here), table(list(theirs), there, types_there), sides=sides or default,
        place=str, facts=facts or Facts(), acceptances=acceptances,
        earlier=earlier,
    )  # fmt: skip


def buckets(outcome: Outcome) -> dict[str, int]:
    return {str(bucket): count for bucket, count in sorted(outcome.counts.items()) if count}


def reasons(outcome: Outcome) -> dict[str, list[str]]:
    """Bucket and codes by the key of the item."""
    return {item.key: [str(item.bucket), *(d.code for d in item.differences)] for item in outcome.items}
