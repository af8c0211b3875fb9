"""A large DuckDB warehouse: landing one month of one option on 20,000,000 departures, and publishing a copy of 5 GB.

    PYTHONPATH=. uv run python benchmarks/large.py                    # some minutes, 15 GB of disk
    PYTHONPATH=. uv run python benchmarks/large.py --slots 1000000 --bytes 0

The departures are made by SQL; the months are landed as answers are. What is copied beyond them is incompressible ballast.
"""

import argparse
import datetime as dt
import tempfile
import time
from pathlib import Path

from benchmarks.postgres import NOW, PER_MONTH, month

from octo_sync.destinations.base import Landing
from octo_sync.destinations.duckdb.warehouse import DuckDBWarehouse
from octo_sync.tables import all_tables, nouns

FILL = """
insert into core.availability
  (connection_id, product_id, option_id, availability_id, local_start_at, local_date, time_zone, utc_start_at, status,
  is_available, vacancies, capacity, is_deleted)
select 'main', 'p', 'option-' || o, 'slot-' || d || '-' || s,
  timestamp '2026-01-01 08:00:00' + d * interval '1 day' + s * interval '1 hour',
  date '2026-01-01' + cast(d as integer), 'Europe/Lisbon',
  timestamptz '2026-01-01 08:00:00+00' + d * interval '1 day' + s * interval '1 hour', 'AVAILABLE', true, 10, 20, false
from generate_series(0, 359) as g(d) cross join generate_series(1000, {last}) as h(o) cross join generate_series(0, 7) as k(s)
"""
BALLAST = "create table main.ballast as select uuid() as noise from generate_series(1, {rows})"
BYTES_PER_ROW = 16
"""Of a random UUID, which no compression makes smaller; as hexadecimal text it would be half the size that it looks."""


def median(times):
    return sorted(times)[len(times) // 2]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--slots", type=int, default=20_000_000)
    parser.add_argument("--bytes", type=int, default=5_000_000_000, help="how large the copied file is to be")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "octo.duckdb"
        warehouse = DuckDBWarehouse(path, folder / "octo.private.duckdb", tables=all_tables(), nouns=nouns(), now=NOW)
        warehouse.claim_writer(1, "benchmark")
        began = time.monotonic()
        per_option = 360 * 8
        warehouse.run_script([FILL.format(last=999 + max(1, options.slots // per_option))])
        count = warehouse.query("select count(*) from core.availability").rows[0][0]
        print(f"{count:,} departures made in {time.monotonic() - began:.0f} s, {path.stat().st_size / 1e6:,.0f} MB")
        seq = 10

        def land(number, shift):
            nonlocal seq
            seq += 1
            answer = month(number % 10, number % 12, seq, shift=shift)
            start = time.monotonic()
            warehouse.land(Landing(run_id="run", fence=1, now=NOW + dt.timedelta(seconds=seq), answered=[answer]))
            return time.monotonic() - start

        for what, shift in (("new", 0), ("every row changed", 1), ("every row changed once more", 2)):
            times = [land(number, shift) for number in range(60)]
            print(
                f"one month of {PER_MONTH} departures, {what}: {median(times) * 1000:.0f} ms median, "
                f"{sorted(times)[-2] * 1000:.0f} ms the second slowest of {len(times)}"
            )
        publish(warehouse, folder)
        if options.bytes > path.stat().st_size:
            warehouse.run_script([BALLAST.format(rows=(options.bytes - path.stat().st_size) // BYTES_PER_ROW)])
            publish(warehouse, folder)
        warehouse.close()


def publish(warehouse, folder):
    times = []
    for _ in range(3):
        start = time.monotonic()
        with warehouse.drafting(folder / "octo.read.duckdb") as draft:
            size = draft.publish()
        times.append(time.monotonic() - start)
    print(f"a copy of {size / 1e6:,.0f} MB published in {median(times):.2f} s (median of 3)")


if __name__ == "__main__":
    main()
