"""The receiver of `tests/receiver/process.py`, as it is or broken on purpose, for power cuts.

python receiver.py DIRECTORY full|normal|early    `normal`: SQLite does not sync each commit; `early`: answers first
"""

import asyncio
import sys
from pathlib import Path

from tests.receiver import process

from octo_sync.flows.webhooks.receive import Inbox
from octo_sync.journal.sqlite import SQLiteFile


def normal():
    connect = SQLiteFile.connect

    def connected(self):
        connection = connect(self)
        connection.execute("PRAGMA synchronous=NORMAL")
        return connection

    SQLiteFile.connect = connected


def early():
    durable, kept = Inbox._durable, set()

    async def answered_first(self, item):
        task = asyncio.get_running_loop().create_task(durable(self, item))
        kept.add(task)
        task.add_done_callback(kept.discard)

    Inbox._durable = answered_first


if __name__ == "__main__":
    {"full": lambda: None, "normal": normal, "early": early}[sys.argv[2]]()
    asyncio.run(process.main(Path(sys.argv[1])))
