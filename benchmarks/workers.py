"""How much sooner several workers of one project are done: a first pull of many connections from a service that lets wait.

    PYTHONPATH=. uv run python benchmarks/workers.py [--connections N] [--bookings N] [--latency SECONDS] [--workers 1,2,4]
        [--share 0.2]

Service, PostgreSQL (the one of the tests, `fsync` off) and workers run on the same machine; with `--share` each worker is
limited to a share of one processor, as on a slow host of its own (as root). Each connection asks one thing after the
other. Printed are wall time from the start of the workers to the last landing, processor time of the workers, subjects a
second, who landed how many connections, and whether the rows equal those of the first line.
"""

import argparse
import contextlib
import os
import tempfile
import time
from pathlib import Path

from tests.faults.serving import Sandbox, until
from tests.faults.workers import Workers, compared, landed
from tests.postgres import Server

import common
from octo_sync.tables import all_tables


def processor_time(pid):
    """Seconds of user and system that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def digests(copy):
    """Of each table that has landed: rows, and a sum over what they say; the server makes it, of ten million rows too."""
    said = "select count(*), sum(('x' || substr(md5(t::text), 1, 15))::bit(60)::bigint) from (select {} from {}) t"
    tables = [t for t in all_tables() if t.full_name.startswith(("core.", "private.booking"))]
    return {t.full_name: copy.ask(said.format(", ".join(compared(t)), landed(t))) for t in tables}


def pull(copy, workers, share):
    """Wall seconds, processor seconds, subjects, and connections by who landed them last."""
    with contextlib.ExitStack() as stack:
        began = time.monotonic()
        running = [stack.enter_context(copy.worker()) for _ in range(workers)]
        for each in running if share else ():
            stack.enter_context(common.limited(each.pid, share))
        copy.until_clean(3600)
        wall = time.monotonic() - began
        spent = sum(processor_time(each.pid) for each in running)
        ((subjects,),) = copy.ask("select count(*) from subjects where landed_seq > 0")
        by_run = copy.ask("select run_id, count(distinct connection_id) from landing.coverage group by 1")
        until(copy.published, 600, copy.said)
        for each in running:
            each.terminate()
    return wall, spent, subjects, sorted((count for _, count in by_run), reverse=True)


def main():
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--connections", type=int, default=16)
    options.add_argument("--bookings", type=int, default=60, help="of each connection, beside some 1,050 departures")
    options.add_argument("--latency", type=float, default=0.2)
    options.add_argument("--workers", default="1,2,4")
    options.add_argument("--share", type=float, default=0.0, help="of one processor, for each worker; 0: no limit")
    given = options.parse_args()
    names = [f"shop{number:03}" for number in range(given.connections)]
    first = None
    with contextlib.ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        sandbox = stack.enter_context(
            Sandbox(scratch / "sandbox", bookings=given.bookings, products=2, days=60, more=["--frozen"])
        )
        sandbox.faults({"fault": "latency", "seconds": given.latency})
        server = Server()
        stack.callback(server.remove)
        print(f"{given.connections} connections, a service that answers in {given.latency:g} s")
        for workers in map(int, given.workers.split(",")):
            address = server.dsn(server.make())
            copy = Workers(scratch / f"copy{workers}", sandbox, address, names=names, still=25000, publish="60s")
            wall, spent, subjects, counts = pull(copy, workers, given.share)
            rows = digests(copy)
            first = first or (wall, rows)
            same = "equal" if rows == first[1] else "DIFFERENT"
            print(
                f"{workers} workers: {wall:6.1f} s, {first[0] / wall:4.2f} x; processor {spent:6.1f} s; "
                f"{subjects / wall:6.1f} subjects/s; connections {counts}; tables {same}",
                flush=True,
            )


if __name__ == "__main__":
    main()
