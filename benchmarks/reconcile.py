"""Two tables compared: the engine alone, beside datacompy on what both can do (one join key, no reasons).

    uv run --no-sync python benchmarks/reconcile.py                        # 50,000 and 1,000,000 rows, 3 runs
    uv run --no-sync python benchmarks/reconcile.py --rows 50000 --runs 1 --peers ""

Both sides are read from Parquet by a process of their own; eight columns are compared, and 1 % of the rows have a fault. Exit
code 1 when the sides find different numbers of rows that differ or are alone.
"""

import argparse
import datetime as dt
import json
import sys
import tempfile
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import common

PEER = ["datacompy==1.1.0", "pandas>=2.2,<3", "pyarrow>=18"]
NEWEST = "2026-11-20"
NOW = dt.datetime(2026, 11, 22, 12, tzinfo=dt.UTC)
WINDOW = dt.date(2026, 1, 1), dt.date(2026, 12, 31)
COMPARED = {
    "status": "state", "retail_amount": "gross", "net_amount": "net", "currency": "cur", "utc_start_at": "start",
    "travel_date": "day", "pax_count": "pax", "product_code": "code",
}  # fmt: skip
FAULTS = 5
"""Kinds of faults: another amount, another start, other guests, missing there, missing here."""


def make(folder, rows):
    """Two Parquet files of `rows` rows; 1 % of them with a fault, the same number of each kind."""
    rng = np.random.default_rng(7)
    numbers = np.arange(rows)
    cents = pa.array(rng.integers(1_000, 100_000, rows), pa.int64())
    gross = pc.cast(pc.multiply(pc.cast(cents, pa.decimal128(19)), pa.scalar(Decimal("0.01"))), pa.decimal128(18, 4))
    starts = np.datetime64("2026-01-01T08:00", "us") + (rng.integers(0, 364 * 48, rows) * 30 * 60 * 1_000_000)
    uuids = [f"{a:016x}-{b:015x}" for a, b in zip(rng.integers(0, 2**62, rows), numbers, strict=True)]
    here = pa.table({
        "booking_uuid": uuids,
        "supplier_reference": [f"BK-{i:08d}" for i in numbers],
        "reseller_reference": [f"AG{i // 2:08d}" for i in numbers],
        "connection_id": pa.array(np.where(numbers % 2, "one", "two")),
        "status": pa.array(np.where(numbers % 9, "CONFIRMED", "CANCELLED")),
        "currency": pa.array(np.array(["EUR", "JPY", "BHD"])[numbers // 2 % 3]),
        "retail_amount": gross,
        "net_amount": gross,
        "utc_start_at": pa.array(starts, pa.timestamp("us", "UTC")),
        "travel_date": pa.array(starts.astype("datetime64[D]")),
        "pax_count": pa.array(rng.integers(1, 7, rows), pa.int64()),
        "product_code": pa.array(np.char.add("P", (numbers % 50).astype(str))),
    })  # fmt: skip
    faulty = rng.permutation(rows)[: rows // 100]
    kinds = [faulty[i::FAULTS] for i in range(FAULTS)]
    chosen = [np.isin(numbers, kind) for kind in kinds]
    amount = pc.if_else(pa.array(chosen[0]), pc.add(gross, pa.scalar(7, pa.decimal128(18, 4))), gross)
    moved = pa.array(starts + np.where(chosen[1], 1_800_000_000, 0).astype("timedelta64[us]"), pa.timestamp("us"))
    there = pa.table({
        "octo_uuid": pa.array(np.where(chosen[4], np.char.add("x", np.array(uuids)), np.array(uuids))),
        "no": pc.if_else(pa.array(chosen[4]), None, here["supplier_reference"]),
        "agent": pc.if_else(pa.array(chosen[4]), None, here["reseller_reference"]),
        "state": here["status"], "gross": pc.cast(amount, pa.decimal128(38, 8)),
        "net": pc.cast(gross, pa.decimal128(38, 8)), "cur": here["currency"],
        "start": pc.cast(moved, pa.timestamp("us", "UTC")), "start.wall": moved, "day": here["travel_date"],
        "pax": pc.add(here["pax_count"], pa.array(chosen[2].astype("int64"))), "code": here["product_code"],
    })  # fmt: skip
    pq.write_table(here, folder / "here.parquet")
    pq.write_table(there.filter(pa.array(~chosen[3])), folder / "there.parquet")


def ours(folder):
    """The engine, in this process."""
    import time  # noqa: PLC0415 - with the child's own

    from octo_sync.model import Window  # noqa: PLC0415
    from octo_sync.reconciliation import FieldRule, KeyRule, Rules, Side, Tolerance, reconcile  # noqa: PLC0415

    class Nothing:
        def bookings(self, *_):
            return ()

        def versions(self, _):
            return {}

        def owed(self, _):
            return ()

        def is_covered(self, _):
            return True

    keys = {"booking_uuid": "octo_uuid", "supplier_reference": "no", "reseller_reference": "agent"}
    rules = Rules(
        name="bench", keys=tuple(KeyRule((here,), (there,)) for here, there in keys.items()),
        fields=tuple(FieldRule(here, there) for here, there in COMPARED.items()), window=Window(*WINDOW), now=NOW,
        date_there="day", strip="BK-?",
        tolerance=Tolerance({"EUR": Decimal("0.01"), "BHD": Decimal("0.001"), "JPY": Decimal(0)}),
    )  # fmt: skip
    here, there = pq.read_table(folder / "here.parquet"), pq.read_table(folder / "there.parquet")
    sides = Side(origin="here", rows=len(here)), Side(origin="there", rows=len(there))
    began = time.perf_counter()
    outcome = reconcile(rules, here, there, sides=sides, place=str, facts=Nothing())
    seconds = time.perf_counter() - began
    counts = {str(bucket): count for bucket, count in outcome.counts.items()}
    alone = counts["missing_here"] + counts["missing_there"]
    print(json.dumps({"seconds": seconds, "differ": counts["mismatched"], "alone": alone}))


PEER_CODE = """
import json, sys, time
import datacompy, pandas as pd
here, there = (pd.read_parquet(f"{sys.argv[1]}/{name}.parquet") for name in ("here", "there"))
names = json.loads(sys.argv[2])
there = there.rename(columns={b: a for a, b in names.items()} | {"octo_uuid": "booking_uuid"})
columns = ["booking_uuid", *names]
here, there = here[columns], there[columns]
for frame in (here, there):
    for name in ("retail_amount", "net_amount"):
        frame[name] = frame[name].astype(float)
began = time.perf_counter()
found = datacompy.PandasCompare(here, there, join_columns="booking_uuid", abs_tol=0.0101)
differ = len(found.all_mismatch())
alone = len(found.df1_unq_rows) + len(found.df2_unq_rows)
print(json.dumps({"seconds": time.perf_counter() - began, "differ": differ, "alone": alone}))
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", default="50000,1000000", help="sizes of each side")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--peers", default="datacompy", help="or nothing")
    parser.add_argument("--peer-limit", type=float, default=600, help="seconds")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        ours(arguments.child)
        return 0
    print(common.machine())
    peer = common.peer_python("datacompy", PEER, exclude_newer=NEWEST) if arguments.peers else None
    if peer:
        print(common.versions(peer, ["datacompy", "pandas"]))
    lines, equal = [], True
    for size in arguments.rows.split(","):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            make(folder, int(size))
            sides = {"octo-sync": [sys.executable, __file__, "--child", folder]}
            if peer:
                sides["datacompy"] = [peer, "-c", PEER_CODE, folder, json.dumps(COMPARED)]
            costs = {side: [] for side in sides}
            for _ in range(arguments.runs):
                for side, command in sides.items():
                    costs[side].append(common.measured(command, cwd=Path.cwd(), limit=arguments.peer_limit))
        found = set()
        for side, runs in costs.items():
            done = [(cost, json.loads(cost.out.splitlines()[-1])) for cost in runs if cost.finished]
            if not done:
                lines.append([f"{int(size):,}", side, "not finished", "", "", "", "", ""])
                continue
            found |= {(said["differ"], said["alone"]) for _, said in done}
            lines.append([
                f"{int(size):,}", side, f"{common.median([said['seconds'] for _, said in done]):.2f}",
                f"{common.median([cost.wall for cost, _ in done]):.2f}",
                f"{common.median([cost.cpu for cost, _ in done]):.2f}",
                f"{max(cost.rss for cost, _ in done) / 1e6:,.0f}", f"{done[0][1]['differ']:,}", f"{done[0][1]['alone']:,}",
            ])  # fmt: skip
        equal = equal and len(found) == 1
    head = [
        "rows each",
        "side",
        "compare s",
        "process wall s",
        "CPU s",
        "peak RSS MB",
        "rows that differ",
        "rows alone",
    ]
    print(common.table(head, lines))
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
