"""Marts and questions at the size of a busy operator: 40,000 bookings, 120,000 tickets, 1,000,000 departures.

The warehouse is made by SQL (no service, no landing), then every mart and every question runs on it:

    uv run python benchmarks/warehouse.py
    uv run python benchmarks/warehouse.py --postgres postgresql://localhost/bench
"""

import argparse
import tempfile
import time
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from octo_sync.destinations.duckdb.warehouse import DuckDBWarehouse
from octo_sync.flows import ask
from octo_sync.flows.publish import apply_marts, run_checks, sql_files
from octo_sync.tables import all_tables, nouns

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
FILL = Path(__file__).with_suffix(".sql")


def timed(what):
    began = time.perf_counter()
    made = what()
    return made, time.perf_counter() - began


def fastest(what, times=3):
    """What it gave, and the shortest of some tries: the machine has other work."""
    made = [timed(what) for _ in range(times)]
    return made[0][0], min(seconds for _, seconds in made)


def copied(warehouse, target):
    with warehouse.drafting(target) as draft:
        return draft.publish()


def report(warehouse, project):
    statements = [s for s in FILL.read_text(encoding="utf-8").split(";\n") if "insert" in s]
    _, seconds = timed(lambda: [warehouse.run_script([s]) for s in statements])
    print(f"filled in {seconds:.1f} s")
    warehouse.run_script(["analyze"])
    count, seconds = fastest(lambda: apply_marts(warehouse, project))
    print(f"{count} marts built in {seconds:.2f} s")
    checks, seconds = timed(lambda: run_checks(warehouse, project))
    print(f"{len(checks)} checks in {seconds:.2f} s, failed: {[c.check.name for c in checks if c.rows.rows]}")
    print("\n| mart, all rows counted | rows | ms |\n|---|---:|---:|")
    for mart in sql_files(project, "marts"):
        found, seconds = fastest(partial(warehouse.query, f"select count(*) from marts.{mart.name}"))  # noqa: S608
        print(f"| {mart.name} | {found.rows[0][0]:,} | {seconds * 1000:.0f} |")
    print("\n| question | rows | ms |\n|---|---:|---:|")
    for question in ask.questions(project):
        values = ask.values(question, dict.fromkeys(question.required, "b17"), now=NOW, time_zone="UTC")
        found, seconds = fastest(partial(warehouse.query, question.sql, values))
        print(f"| {question.number} {question.name} | {len(found.rows):,} | {seconds * 1000:.0f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--postgres", metavar="DSN", help="an empty database: schemas core, ops, raw, marts are replaced"
    )
    dsn = parser.parse_args().postgres
    if dsn:
        from tests.warehouse.engines import Postgres  # noqa: PLC0415 - psycopg is an extra

        there = Postgres(dsn)
        there.make_tables()
        there.run_script(["set enable_mergejoin = off", "set work_mem = '128MB'"])  # as sessions that publish have it
        report(there, Path(tempfile.gettempdir()))
        there.close()
        return
    with tempfile.TemporaryDirectory() as name:
        project = Path(name)
        warehouse = DuckDBWarehouse(
            project / "octo.duckdb",
            project / "octo.private.duckdb",
            tables=all_tables(),
            nouns=nouns(),
            now=NOW,
        )
        report(warehouse, project)
        size, seconds = timed(lambda: copied(warehouse, project / "octo.read.duckdb"))
        print(f"\npublished {size / 1e6:.0f} MB in {seconds:.2f} s (the copy alone)")
        warehouse.close()


if __name__ == "__main__":
    main()
