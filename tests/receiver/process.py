"""A receiver in a process of its own, for tests that kill it or take its disk away.

python process.py DIRECTORY      one connection `acme`, the endpoint and secret below; says its address on one line
"""

import asyncio
import hashlib
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path

from octo_sync.flows.webhooks.receive import Inbox, Routing
from octo_sync.journal import Journal
from octo_sync.pipeline import load
from octo_sync.receiver.endpoints import EndpointCache
from octo_sync.receiver.routes import Receiver
from octo_sync.receiver.server import serving

ENDPOINT, SECRET = "e" * 32, b"right horse \xff staple"
PIPELINE = (
    '[connections.acme]\nbase_url = "http://127.0.0.1:1/octo"\ntoken = { env = "T" }\n'
    '[webhooks]\nbind = "127.0.0.1:0"\n'
)


class Clock:
    def now(self):
        return datetime.now(UTC)


def a_pipeline(directory, more=""):
    path = directory / "p.toml"
    path.write_text(PIPELINE + more)
    return load(path, directory=directory, environ={"T": "x"}, overrides={})


def opened(directory, clock):
    journal = Journal.open(directory / "journal.sqlite", clock=clock)
    if not journal.endpoints.rows():
        journal.endpoints.add(ENDPOINT, connection="acme", secret_hash=hashlib.sha256(SECRET).hexdigest())
    return journal


async def main(directory):
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    pipeline = a_pipeline(directory)
    with opened(directory, Clock()) as journal:
        inbox, endpoints = Inbox(journal, Routing(pipeline, Clock())), EndpointCache(journal)
        async with serving(Receiver(inbox, endpoints, pipeline.webhooks), pipeline.webhooks) as server:
            sys.stdout.write(f"{server.url}\n")
            sys.stdout.flush()
            await stop.wait()
        await endpoints.close()
        await inbox.close()


if __name__ == "__main__":
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a full disk is an error, not a death
    asyncio.run(main(Path(sys.argv[1])))
