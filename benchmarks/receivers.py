"""How many deliveries receivers of one project acknowledge on PostgreSQL, and where the server is the limit.

    apt-get install -y wrk
    PYTHONPATH=. uv run --no-sync python benchmarks/receivers.py [--receivers 1,2,4] [--share 0.25] [--seconds 10]

Each receiver is the program itself, limited to a share of one processor, as on a slow host of its own; the server, as durable
as a user's, has what is left. Each has a load generator of its own. Printed are acknowledgements a second of all together,
how many times those of the first line that is, and the processor time that a thousand cost the receivers and the server.
Fails where not all that was acknowledged is in the journal.
"""

import argparse
import contextlib
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.faults.serving import Program, asked, free_port, until
from tests.postgres import Server

import common
import receive
from octo_sync.journal import Journal
from postgres import DURABLE

CONNECTIONS, PRODUCTS = 64, 16
PIPELINE = 'journal = "{address}"\ndestination = "{address}"\n'
CONNECTION = """\
[connections.bench{number:02}]
base_url = "http://127.0.0.1:1/octo"
token = {{ env = "OCTO_BENCH_TOKEN_UNSET", default = "x" }}
"""
HELD = "select count(*) from journal.deliveries"


def processor_time(*pids):
    """Seconds that these processes and the children they have have taken, in all."""
    spent = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            if int(stat.parent.name) in pids or int(fields[1]) in pids:
                spent += int(fields[11]) + int(fields[12])
    return spent / os.sysconf("SC_CLK_TCK")


def receiver(stack, folder, share):
    """One that is ready, and its port."""
    port = free_port()
    env = {"OCTO_SYNC_WEBHOOKS__BIND": f"127.0.0.1:{port}"}
    log = folder / f"receiver-{port}.log"
    program = Program("serve", "-p", "pipeline.toml", "--only", "receiver", cwd=folder, log=log, env=env)
    stack.enter_context(program)

    def ready():
        with contextlib.suppress(OSError):
            return asked("GET", f"127.0.0.1:{port}", "/readyz")[0] == 200

    until(ready, 30, program.said)
    stack.enter_context(common.limited(program.pid, share))
    return program.pid, port


def load(port, at_once, seconds):
    """What one receiver acknowledges, of notifications to all connections."""
    return receive.wrk(f"http://127.0.0.1:{port}", at_once, seconds, endpoints=CONNECTIONS, products=PRODUCTS)


def measured(server, database, folder, count, options):
    """Acknowledgements a second of so many receivers together, the worst p99, and processor seconds: theirs, the server's."""
    with contextlib.ExitStack() as stack:
        running = [receiver(stack, folder, options.share) for _ in range(count)]
        pids, servers = [pid for pid, _ in running], server._process.pid  # noqa: SLF001 - the test's own server

        def loads(seconds):
            with ThreadPoolExecutor(count) as pool:
                url = "http://127.0.0.1:{}"
                return list(
                    pool.map(lambda one: receive.wrk(url.format(one[1]), options.connections, seconds), running)
                )

        loads(2)
        before = processor_time(*pids), processor_time(servers)
        ((held,),) = server.execute(HELD, database=database)
        found = loads(options.seconds)
        after = processor_time(*pids), processor_time(servers)
        acknowledged = sum(each["requests"] for each in found)
        ((holds,),) = server.execute(HELD, database=database)
        assert holds - held >= acknowledged, f"{acknowledged} acknowledged, {holds - held} in the journal"
    a_second = sum(each["per_second"] for each in found)
    spent = [(now - then) / (a_second * options.seconds) * 1000 for then, now in zip(before, after, strict=True)]
    return a_second, max(each["p99"] for each in found), *spent


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--receivers", default="1,2,4", help="how many at a time")
    parser.add_argument("--share", type=float, default=0.25, help="of one processor, for each receiver")
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--connections", type=int, default=16, help="for each receiver")
    options = parser.parse_args()
    print(f"{common.machine()}; {options.share:g} of a processor for each receiver")
    first = None
    with contextlib.ExitStack() as stack:
        server = Server()
        stack.callback(server.remove)
        server.stop()
        server.start(**DURABLE)
        address = server.dsn(database := server.make())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        connections = "".join(CONNECTION.format(number=number) for number in range(CONNECTIONS))
        (folder / "pipeline.toml").write_text(PIPELINE.format(address=address) + connections)
        with contextlib.closing(Journal.open(address, clock=receive.Clock())) as journal:
            receive.fill(journal, CONNECTIONS, PRODUCTS)
        for count in map(int, options.receivers.split(",")):
            a_second, p99, theirs, servers = measured(server, database, folder, count, options)
            first = first or a_second / count
            print(
                f"{count} receivers: {a_second:7,.0f} a second, {a_second / first:4.2f} x; p99 {p99:6.1f} ms; "
                f"processor a thousand: receivers {theirs:.3f} s, server {servers:.3f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
