"""Two tables compared: the engine alone, beside datacompy on what both can do (one join key, no reasons); the whole command.

    uv run --no-sync python benchmarks/reconcile.py                        # 50,000 and 1,000,000 rows, 3 runs
    uv run --no-sync python benchmarks/reconcile.py --rows 50000 --runs 1 --peers ""
    uv run --no-sync python benchmarks/reconcile.py --rows 50000 --runs 1 --peers "" --whole 50000,1000000

Both sides are read from Parquet by a process of their own; eight columns are compared, and 1 % of the rows have a fault. The
whole is `octo-sync reconcile` itself: a CSV file against a published copy, kept in the journal and published. Exit code 1 when
not all find the same numbers of rows that differ or are alone.
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
import pyarrow.csv
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
    from octo_sync.reconciliation.engine import reconcile  # noqa: PLC0415
    from octo_sync.reconciliation.model import FieldRule, KeyRule, Rules, Side, Tolerance  # noqa: PLC0415

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


FILL = """
insert into core.connections (connection_id, role, channel, base_url, supplier_id, business_time_zone, capabilities, is_active)
  values ('main', 'reseller', 'Direct', 'https://example.com', 's', 'UTC', 'pricing', true);
insert into core.suppliers (connection_id, supplier_id, name, is_deleted) values ('main', 's', 'Example', false);
insert into core.products (connection_id, product_id, internal_name, reference, time_zone, first_seen_at_utc, is_deleted)
  select 'main', product_code, product_code, product_code, 'UTC', timestamptz '2025-11-01 00:00:00+00', false
  from (select distinct product_code from read_parquet('{folder}/here.parquet'));
insert into core.bookings
  (connection_id, booking_uuid, supplier_reference, reseller_reference, status, is_test, product_id, local_start_at,
  local_date, time_zone, utc_start_at, utc_created_at, utc_confirmed_at, utc_cancelled_at, currency, currency_precision,
  retail_minor, retail_amount, net_minor, net_amount, unit_count, pax_count, verified_at_utc, first_seen_at_utc, is_deleted)
  select 'main', booking_uuid, supplier_reference, reseller_reference, status, false, product_code,
  utc_start_at at time zone 'UTC', travel_date, 'UTC', utc_start_at, timestamptz '2025-12-01 00:00:00+00',
  timestamptz '2025-12-01 00:00:00+00', case when status = 'CANCELLED' then timestamptz '2025-12-02 00:00:00+00' end,
  currency, 2, cast(retail_amount * 100 as bigint), retail_amount, cast(net_amount * 100 as bigint), net_amount, pax_count,
  pax_count, timestamptz '2026-11-22 12:00:00+00',
  timestamptz '2025-12-01 00:00:00+00', false
  from read_parquet('{folder}/here.parquet');
insert into core.booking_history
  (connection_id, booking_uuid, version_no, valid_from_utc, is_current, changed_fields, source, status, local_date, product_id,
  retail_amount, net_amount, currency, pax_count)
  select connection_id, booking_uuid, 1, first_seen_at_utc, true, '', 'schedule', status, local_date, product_id, retail_amount,
  net_amount, currency, pax_count from core.bookings;
insert into ops.coverage
  (connection_id, resource, key, travel_month, window_start, window_end, verified_at_utc, source, row_count, is_complete,
  request_seq)
  select 'main', 'bookings', month, month, min(local_date), max(local_date), timestamptz '2026-11-22 12:00:00+00', 'schedule',
  count(*), true, 1 from (select substr(cast(local_date as text), 1, 7) as month, local_date from core.bookings) group by month
"""
PIPELINE = """
[connections.main]
base_url = "http://127.0.0.1:9"
token = { env = "OCTO_BENCH_TOKEN", default = "nobody listens there" }

[reconcile.bench]
there = { file = "ledger.csv", format = { strip = "BK-?" } }
keys = ["booking_uuid=octo_uuid", "supplier_reference=no", "reseller_reference=agent"]
fields = { FIELDS }
tolerance = { EUR = 0.01, BHD = 0.001, JPY = 0 }
fail_on = "ambiguous>0"
"""


def copy(folder):
    """A project that was synced and published: what is here, and a CSV file of what is there."""
    from octo_sync.destinations.duckdb.warehouse import DuckDBWarehouse  # noqa: PLC0415 - with the other setting up
    from octo_sync.flows.publish import apply_marts, run_checks  # noqa: PLC0415
    from octo_sync.tables import all_tables, nouns  # noqa: PLC0415

    fields = ", ".join(f'{here} = "{there}"' for here, there in COMPARED.items())
    (folder / "pipelines").mkdir()
    (folder / "pipelines" / "bench.toml").write_text(PIPELINE.replace("FIELDS", fields), encoding="utf-8")
    warehouse = DuckDBWarehouse(
        folder / "octo.duckdb", folder / "octo.private.duckdb", tables=all_tables(), nouns=nouns(), now=NOW
    )
    for statement in FILL.format(folder=folder).split(";\n"):
        warehouse.run_script([statement])
    apply_marts(warehouse, folder)
    failed = [check.check.name for check in run_checks(warehouse, folder) if check.rows.rows]
    assert not failed, failed
    with warehouse.drafting(folder / "octo.read.duckdb") as draft:
        draft.publish()
    warehouse.close()
    there = pq.read_table(folder / "there.parquet").drop_columns(["start.wall"])
    there = there.set_column(
        there.schema.get_field_index("start"), "start", pc.strftime(there["start"], "%Y-%m-%dT%H:%M:%SZ")
    )
    pa.csv.write_csv(there, folder / "ledger.csv")


def whole(folder, limit, *more):
    """`octo-sync reconcile` from its first line to its end; the cost, and what was found."""
    words = ["reconcile", "bench", "--travel", f"{WINDOW[0]}..{WINDOW[1]}", "--json", *more]
    # As it is installed: modules are compiled once, and not by every process.
    env = {"PYTHONDONTWRITEBYTECODE": ""}
    cost = common.measured([sys.executable, "-m", "octo_sync", *words], cwd=folder, limit=limit, env=env)
    if not cost.finished:
        return cost, None
    [found] = json.loads(cost.out[cost.out.index("{") :])["reconciliations"]
    counts = found["counts"]
    return cost, (counts["mismatched"], counts["missing_here"] + counts["missing_there"])


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
    parser.add_argument("--whole", default="50000", help="sizes for the whole command, or nothing")
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
    return 0 if end_to_end(arguments) and equal else 1


def end_to_end(arguments):
    """The whole command beside the engine on the same rows; whether both found the same."""
    lines, equal = [], True
    for size in filter(None, arguments.whole.split(",")):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            make(folder, int(size))
            copy(folder)
            engine = common.measured(
                [sys.executable, __file__, "--child", folder], cwd=folder, limit=arguments.peer_limit
            )
            said = json.loads(engine.out.splitlines()[-1])
            whole(folder, arguments.peer_limit, "--dry-run")
            # Compared alone; compared, kept and published; the same on the next day, when what differs is known.
            for what, more in (("dry run", ["--dry-run"]), ("first", []), ("again", [])):
                cost, found = whole(folder, arguments.peer_limit, *more)
                equal = equal and found == (said["differ"], said["alone"])
                lines.append([
                    f"{int(size):,}", what, f"{said['seconds']:.2f}", f"{cost.wall:.2f}", f"{cost.cpu:.2f}",
                    f"{cost.rss / 1e6:,.0f}", *([f"{n:,}" for n in found] if found else ["not finished", ""]),
                ])  # fmt: skip
    if lines:
        print()
        head = [
            "rows each",
            "run",
            "engine s",
            "end to end s",
            "CPU s",
            "peak RSS MB",
            "rows that differ",
            "rows alone",
        ]
        print(common.table(head, lines))
    return equal


if __name__ == "__main__":
    sys.exit(main())
