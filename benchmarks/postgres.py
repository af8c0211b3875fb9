"""How fast landings go into PostgreSQL, server and program on the same machine, and why rows travel as CSV.

    PYTHONPATH=. uv run python benchmarks/postgres.py [--slots N] [--not-durable]

The server is the one of the tests, but as durable as a user's: `fsync` and `full_page_writes` are on (`--not-durable`: off, as
for the tests). Prints its settings, rows per second of a first load, of a load into tables that are full, of the same once
more, of one changed month, and of ten months of as many options; publishes of all that landed, of one changed month, and what
landings and readers wait beside one; and the same rows by psycopg's binary COPY.
"""

import argparse
import contextlib
import datetime as dt
import json
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
from tests.postgres import Server

from octo_sync.destinations.base import Answered, Landing
from octo_sync.destinations.postgres.warehouse import PostgresWarehouse
from octo_sync.flows.publish import publish
from octo_sync.model import Source, Subject, SubjectKind, Window
from octo_sync.tables import all_tables, by_name, nouns

NOW = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC)
PER_MONTH = 30 * 8
DURABLE = {"fsync": "on", "full_page_writes": "on"}
SAID = (*DURABLE, "synchronous_commit", "wal_sync_method", "shared_buffers", "max_wal_size")


def month(option, number, seq, *, shift=0):
    """One option's departures in one month: eight a day with two prices each."""
    first = dt.date(2026 + number // 12, number % 12 + 1, 1)
    window = Window.month(f"{first:%Y-%m}")
    subject = Subject("main", SubjectKind.AVAILABILITY, ("p", f"option-{option}", f"{first:%Y-%m}"))
    records = []
    for index in range(PER_MONTH):
        start = f"{first + dt.timedelta(days=index // 8 % 28)}T{8 + index % 8:02d}:{index // 224:02d}:00+00:00"
        prices = [
            {
                "unitId": u,
                "currency": "EUR",
                "currencyPrecision": 2,
                "original": 5000,
                "retail": 4500 + shift,
                "net": 4000,
            }
            for u in ("adult", "child")
        ]
        records.append(
            {
                "id": start, "localDateTimeStart": start, "localDateTimeEnd": start, "utcCutoffAt": start, "allDay": False,
                "available": True, "status": "AVAILABLE", "vacancies": 10 + shift % 10, "capacity": 20, "openingHours": [],
                "unitPricing": prices,
            }
        )  # fmt: skip
    head = {
        "connection_id": "main", "product_id": "p", "option_id": f"option-{option}", "time_zone": "Europe/Lisbon",
        "window_start": str(window.start), "window_end": str(window.end), "resource": "availability",
        "subject_key": subject.key, "request_seq": seq, "verified_at_utc": NOW.isoformat(), "source": "schedule",
        "language": None, "is_primary": True, "has_pricing": True, "has_content": True, "has_extras": True,
    }  # fmt: skip
    return Answered(
        subject=subject, request_seq=seq, fetched_at=NOW, source=Source.SCHEDULE, answer_hash=f"{seq}", noun="availability",
        lines=(json.dumps({**head, "records": records}).encode(),), window=window, row_count=len(records),
    )  # fmt: skip


def timed(name, warehouse, answers):
    """Land in batches as the program does (some eight megabytes each) and say how fast it was."""
    start, rows, batch, size = time.monotonic(), 0, [], 0
    count = sum(a.row_count for a in answers)
    for answer in answers:
        batch.append(answer)
        size += answer.size
        if size > 8 << 20 or answer is answers[-1]:
            rows += warehouse.land(Landing(run_id="run", fence=1, now=NOW, answered=batch)).rows
            batch, size = [], 0
    took = time.monotonic() - start
    print(f"{name:34} {took:7.2f} s  {rows:9,} rows written  {max(rows, count) / took:9,.0f} rows/s")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--slots", type=int, default=120_000)
    parser.add_argument(
        "--not-durable", action="store_true", help="as the tests have it: fsync and full_page_writes off"
    )
    options = parser.parse_args()
    server = Server()
    try:
        if not options.not_durable:
            server.stop()
            server.start(**DURABLE)
        print("server:", ", ".join(f"{name} {server.execute(f'show {name}')[0][0]}" for name in SAID))
        load(server, options.slots)
    finally:
        server.remove()


def load(server, slots):
    """Land, publish and copy; prints each."""
    with tempfile.TemporaryDirectory() as folder:
        server.make("octo")
        warehouse = PostgresWarehouse(
            server.dsn("octo"), spool=Path(folder) / "spool", tables=all_tables(), nouns=nouns(), now=NOW
        )
        warehouse.claim_writer(1, "benchmark")
        months = max(1, slots // PER_MONTH)
        options = max(1, months // 12)
        half = [month(o, n, 10) for o in range(options // 2) for n in range(12)]
        rest = [month(o, n, 10) for o in range(options // 2, options) for n in range(12)]
        timed("first load", warehouse, half)
        timed("into tables that have rows", warehouse, rest)
        timed("the same again", warehouse, [month(o, n, 20) for o in range(options // 4) for n in range(12)])
        timed(
            "every row changed",
            warehouse,
            [month(o, n, 30, shift=1) for o in range(options // 4) for n in range(12)],
        )
        single = []
        for number in range(20):
            answer = month(number % options, number % 12, 40 + number, shift=2)
            start = time.monotonic()
            warehouse.land(Landing(run_id="run", fence=1, now=NOW, answered=[answer]))
            single.append(time.monotonic() - start)
        print(f"{'one month, every row changed':34} {sorted(single)[10] * 1000:7.0f} ms median of {len(single)}")
        several = []
        for number in range(10):
            # As notifications come: each of another option and another month.
            answers = [month(n % options, (n + number) % 12, 100 + number, shift=3 + number) for n in range(10)]
            answers = list({a.subject: a for a in answers}.values())
            start = time.monotonic()
            warehouse.land(Landing(run_id="run", fence=1, now=NOW, answered=answers))
            several.append(time.monotonic() - start)
        print(f"{'ten months of ten options, changed':34} {sorted(several)[5] * 1000:7.0f} ms median of {len(several)}")
        start = time.monotonic()
        warehouse.digest()
        print(f"{'digest':34} {time.monotonic() - start:7.2f} s")
        publishes(server, warehouse, Path(folder), options)
        roads(server, warehouse, folder)
        warehouse.close()


def publishes(server, warehouse, folder, options):
    """All that landed, one changed month, and what others wait meanwhile; prints each."""

    def published():
        start = time.monotonic()
        done = publish(warehouse, folder, folder / "unused")
        assert done.size, [failed.check.name for failed in done.failed]
        return time.monotonic() - start

    (slots,) = warehouse.query("select count(*) from core.availability").rows[0]
    print(f"{'publish, all of it new':34} {published():7.2f} s  {slots:9,} departures")
    later = []
    for number in range(3):
        warehouse.land(
            Landing(run_id="run", fence=1, now=NOW, answered=[month(number % options, 1, 200 + number, shift=20)])
        )
        later.append(published())
    print(f"{'publish, one changed month':34} {sorted(later)[1]:7.2f} s  median of {len(later)}")
    landings, reads, done = [], [], threading.Event()

    def read():
        with psycopg.connect(server.dsn("octo"), autocommit=True) as reader:
            while not done.wait(0.05):
                start = time.monotonic()
                reader.execute("select count(*) from marts.coverage").fetchall()
                reads.append(time.monotonic() - start)

    with ThreadPoolExecutor(2) as beside:
        reading, publishing = beside.submit(read), beside.submit(published)
        while not publishing.done():
            number = len(landings)
            answer = month(number % options, number % 12, 300 + number, shift=30 + number)
            start = time.monotonic()
            warehouse.land(Landing(run_id="run", fence=1, now=NOW, answered=[answer]))
            landings.append(time.monotonic() - start)
        done.set()
        reading.result()
        what = (
            f"{len(landings)} landings, {max(landings):.2f} s at most; {len(reads)} reads, {max(reads):.2f} s at most"
        )
        print(f"{'publish, beside landings and reads':34} {publishing.result():7.2f} s  {what}")


def roads(server, warehouse, folder):
    """The rows of one table from the workbench into an empty table without indexes: as CSV, and as binary rows."""
    table = by_name("core.availability_prices")
    bench = warehouse._bench  # noqa: SLF001 - the rows as a landing has them
    names = ", ".join(c.name for c in table.all_columns)
    with contextlib.closing(
        psycopg.connect(server.dsn("octo"), cursor_factory=psycopg.RawCursor, autocommit=True)
    ) as db:
        db.execute("create table copied (like core.availability_prices)")
        bench.bring(db, table, "true", ())
        path = Path(folder) / "rows.csv"
        start = time.monotonic()
        bench.db.execute(f"copy (from {table.full_name}) to '{path}' (format csv, header false, nullstr '')")
        with path.open("rb") as rows, db.cursor() as cursor, cursor.copy("copy copied from stdin (format csv)") as copy:
            while block := rows.read(1 << 20):
                copy.write(block)
        took = time.monotonic() - start
        count = db.execute("select count(*) from copied").fetchone()[0]
        print(f"{'COPY, CSV made by DuckDB':34} {took:7.2f} s  {count:9,} rows  {count / took:23,.0f} rows/s")
        db.execute("truncate copied")
        start = time.monotonic()
        plain = {"numeric(18,4)": "numeric", "integer": "int4", "bigint": "int8"}
        types = [plain.get(c.type, c.type) for c in table.all_columns]
        with db.cursor() as cursor, cursor.copy(f"copy copied ({names}) from stdin (format binary)") as copy:
            copy.set_types(types)
            found = bench.db.execute(f"from {table.full_name}")
            while some := found.fetchmany(10_000):
                for row in some:
                    copy.write_row(row)
        took = time.monotonic() - start
        print(f"{'COPY, binary rows by psycopg':34} {took:7.2f} s  {count:9,} rows  {count / took:23,.0f} rows/s")


if __name__ == "__main__":
    main()
