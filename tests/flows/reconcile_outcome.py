"""An outcome made by hand: all buckets, three currencies and rows without one, groups, an acceptance, hostile texts."""

import datetime as dt
from decimal import Decimal

from octo_sync.model import Window
from octo_sync.reconciliation.model import (
    Acceptance,
    Bucket,
    Difference,
    ExplainedMoney,
    FieldRule,
    Item,
    KeyRule,
    Limit,
    Outcome,
    Rules,
    Side,
    SideTotal,
    Tolerance,
)

NOW = dt.datetime(2026, 11, 22, 4, 0, tzinfo=dt.UTC)
SEEN = dt.datetime(2026, 11, 22, 3, 10, tzinfo=dt.UTC)
DAY = dt.date(2026, 11, 20)
NOTE = "ledger-1.csv: left out by skip_footer: the last 2 rows, from 599 on."
UUID = "0b2c5f0e-1111-4222-8333-{:012d}"
RULES = Rules(
    name="ledger",
    keys=(KeyRule(("booking_uuid",), ("octo_uuid",)), KeyRule(("supplier_reference", "product_id"), ("no", "sku"))),
    fields=(
        FieldRule("status", "state", {"OK": ("CONFIRMED", "REDEEMED")}),
        FieldRule("retail_amount", "gross"),
        FieldRule("net_amount", "net"),
        FieldRule("currency", "currency"),
        FieldRule("utc_start_at", "start"),
        FieldRule("travel_date", "day"),
        FieldRule("pax_count", "pax"),
    ),
    window=Window(dt.date(2026, 10, 18), dt.date(2026, 11, 22)),
    now=NOW,
    tolerance=Tolerance({"EUR": Decimal("0.01"), "BHD": Decimal("0.001")}, Decimal("0.01")),
    grace=dt.timedelta(hours=2),
    limits=(Limit("mismatched", Decimal(0)), Limit("missing_here", Decimal(5))),
)
KINDS = {
    "status": "text",
    "retail_amount": "amount",
    "net_amount": "amount",
    "currency": "text",
    "utc_start_at": "instant",
    "travel_date": "date",
    "pax_count": "whole",
}


def here_row(number, amount="120.00", currency="EUR", **more):
    return {
        "booking_uuid": UUID.format(number),
        "supplier_reference": f"SUP-{number:06d}",
        "product_id": "tour-1",
        "status": "CONFIRMED",
        "retail_amount": Decimal(amount),
        "net_amount": None,
        "currency": currency,
        "utc_start_at": dt.datetime(2026, 11, 20, 9, 0, tzinfo=dt.UTC),
        "travel_date": DAY,
        "pax_count": 2,
        "product_name": "Harbour tour",
    } | more


def there_row(number, amount="120.00", currency="EUR", **more):
    return {
        "octo_uuid": UUID.format(number),
        "no": f"SUP-{number:06d}",
        "sku": "tour-1",
        "state": "OK",
        "gross": Decimal(amount),
        "net": Decimal("90.00000000"),
        "currency": currency,
        "start": dt.datetime(2026, 11, 20, 9, 0, tzinfo=dt.UTC),
        "day": DAY,
        "pax": 2,
    } | more


def difference(
    field="", here=None, there=None, delta=None, currency="EUR", reason="", code="", seen=SEEN, *, new=False
):
    amount = None if delta is None else Decimal(delta)
    return Difference(field, here, there, amount, currency, reason, code, seen, new)


def item(key, bucket, differences=(), here=(), there=(), **more):
    given = {
        "found": bucket,
        "rule": "booking_uuid" if here and there else None,
        "normalised": False,
        "remark": "",
        "places": ("ledger.csv, line 17",) if there else (),
        "connection": "shop" if here else None,
        "booking_uuid": here[0]["booking_uuid"] if here else None,
        "day": DAY,
        "currency": "EUR",
    } | more
    return Item(key=key, bucket=bucket, here=tuple(here), there=tuple(there), differences=tuple(differences), **given)


ACCEPTED = Acceptance("k-accepted", "Rounded by the bank", "Ines", NOW - dt.timedelta(days=3), dt.date(2027, 1, 31))


def items():
    """One of each bucket at least."""
    yield item(
        f"booking_uuid={UUID.format(1)}",
        Bucket.MISMATCHED,
        [
            difference(
                "retail_amount", "120.00000000", "96.00000000", "-24.00000000",
                reason="The amount there equals net, so the commission was left out.", code="commission_left_out", new=True,
            ),
            difference("travel_date", "2026-11-20", "2026-11-21", reason="Moved to another day.", code="moved"),
            difference("utc_start_at", "2026-11-20T09:00:00Z", "2026-11-20T10:00:00Z", reason="Wall clock read as UTC."),
            difference("pax_count", "2", "3", reason="Nothing known explains it."),
        ],
        [here_row(1)],
        [there_row(1, "96.00", day=dt.date(2026, 11, 21), pax=3, start=dt.datetime(2026, 11, 20, 10, 0, tzinfo=dt.UTC))],
    )  # fmt: skip
    yield item(
        "JP-1",
        Bucket.MISMATCHED,
        [difference("retail_amount", "12000", "13200", "1200", "JPY", "Tax added (10 %).", "tax_added",
                    SEEN - dt.timedelta(days=5))],
        [here_row(2, "12000", "JPY")],
        [there_row(2, "13200", "JPY")],
        currency="JPY",
    )  # fmt: skip
    yield item(
        "BH-1",
        Bucket.MISMATCHED,
        [difference("retail_amount", "1.5", "1.625", "0.125", "BHD", "The price changed after the booking.", "price_changed",
                    SEEN - dt.timedelta(days=40))],
        [here_row(3, "1.5", "BHD")],
        [there_row(3, "1.625", "BHD")],
        currency="BHD",
    )  # fmt: skip
    yield item("SUP-7", Bucket.MISSING_HERE, [difference("", None, None, "80.00", reason="Its day was never answered for.",
               seen=None, new=True)], [], [there_row(7, "80.00")])  # fmt: skip
    yield item("SUP-8", Bucket.MISSING_THERE, [difference(reason="A test booking.", currency=None)], [here_row(8)])
    yield item("SUP-9", Bucket.DUPLICATE_HERE, [difference("", "2 rows", "1 row", reason="Two rows here share the key.")],
               [here_row(9), here_row(10)], [there_row(9)])  # fmt: skip
    yield item("SUP-11", Bucket.DUPLICATE_THERE, [difference("", "1 row", "2 rows", "30.00", reason="Booked twice there.")],
               [here_row(11)], [there_row(11, n) for n in ("120.00", "30.00")],
               places=("ledger.csv, line 18", "ledger.csv, line 19"))  # fmt: skip
    yield item("SUP-12", Bucket.AMBIGUOUS, [difference(reason="Nobody can say which belong together.", currency=None)],
               [here_row(12, currency=None), here_row(13, currency=None)],
               [there_row(12, currency=None), there_row(13, currency=None)], currency=None)  # fmt: skip
    yield item("SUP-14", Bucket.TOO_FRESH, [difference("", None, None, "10.00", reason="Sold 4 minutes ago.")], [],
               [there_row(14, "10.00")], found=Bucket.MISSING_HERE)  # fmt: skip
    yield item("SUP-15", Bucket.OUT_OF_WINDOW, [], [], [there_row(15)], day=dt.date(2026, 12, 24))
    yield item("k-accepted", Bucket.ACCEPTED, [difference("retail_amount", "5.00", "5.02", "0.02", reason="Unknown.")],
               [here_row(16, "5.00")], [there_row(16, "5.02")], found=Bucket.MISMATCHED, acceptance=ACCEPTED)  # fmt: skip
    yield item("SUP-17", Bucket.MATCHED_WITHIN_TOLERANCE,
               [difference("retail_amount", "9.99", "10.00", "0.01", reason="Within the tolerance.")],
               [here_row(17, "9.99")], [there_row(17, "10.00")])  # fmt: skip
    yield item("SUP-18", Bucket.MATCHED, [], [here_row(18)], [there_row(18, no=" sup-18")], normalised=True,
               rule="supplier_reference+product_id", remark="Two lines make up the amount.")  # fmt: skip


def outcome(found=None, **more):
    """The outcome of `items()` or of others; the money of it adds up."""
    found = list(items() if found is None else found)
    counts = {bucket: sum(len(i.differences) or 1 for i in found if i.bucket is bucket) for bucket in Bucket}
    explained = []
    for bucket in Bucket:
        for currency in ("EUR", "JPY", "BHD", None):
            for field, there in (("retail_amount", "gross"), ("net_amount", "net")):
                ours = [r for i in found if i.bucket is bucket for r in i.here if r["currency"] == currency]
                theirs = [r for i in found if i.bucket is bucket for r in i.there if r["currency"] == currency]
                if ours or theirs:
                    sums = (
                        sum((r[name] or Decimal(0) for r in rows), Decimal(0))
                        for rows, name in ((ours, field), (theirs, there))
                    )
                    explained.append(ExplainedMoney(bucket, currency, field, len(ours), len(theirs), *sums))
    totals = []
    for side in ("here", "there"):
        for currency in ("EUR", "JPY", "BHD", None):
            parts = [e for e in explained if e.currency == currency]
            amounts = {
                field: sum((getattr(e, f"amount_{side}") for e in parts if e.field == field), Decimal(0))
                for field in ("retail_amount", "net_amount")
            }
            if parts:
                rows = sum(getattr(e, f"rows_{side}") for e in parts if e.field == "retail_amount")
                totals.append(SideTotal(side, currency, rows, amounts))
    given = {
        "rules": RULES,
        "here": Side(origin="octo.read.duckdb", rows=1204, as_of=SEEN, verified_from=SEEN, complete=True),
        "there": Side(origin="exports/ledger-*.csv", rows=1198, as_of=SEEN - dt.timedelta(hours=1), notes=(NOTE,)),
        "kinds": KINDS,
        "items": found,
        "counts": counts | {Bucket.MATCHED: counts[Bucket.MATCHED] + 1180},
        "totals": totals,
        "explained": explained,
        "resolved": 4,
        "breached": ("mismatched>0 (3)",) if counts[Bucket.MISMATCHED] else (),
    } | more
    return Outcome(**given)
