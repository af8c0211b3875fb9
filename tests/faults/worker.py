"""One sync in a process of its own, for tests that kill it or take its disk away.

    python worker.py DIRECTORY NOON [full] [publish] [batch=N]

Says `open` when it owns the project, then `ok`, `partial` or `failed`; an error that octo_sync names is said as
`error <class> <sentence>` with exit 3. Anything else is a traceback, which no test accepts.
"""

import asyncio
import datetime as dt
import os
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path
from random import SystemRandom

from octo_sync.app.project import open_project
from octo_sync.errors import OctoSyncError
from octo_sync.flows.sync.pull import Scope
from octo_sync.flows.sync.run import sync
from octo_sync.pipeline import load


class Clock:
    def __init__(self, noon):
        self._noon, self._since = noon, time.monotonic()

    def now(self):
        return self._noon + dt.timedelta(seconds=time.monotonic() - self._since)


def say(*words):
    sys.stdout.write(" ".join(words) + "\n")
    sys.stdout.flush()


async def main(directory, noon, *, full, publishing, batch):
    pipeline = load(directory / "pipeline.toml", directory=directory, environ={}, overrides={})
    if batch:
        pipeline = replace(pipeline, sync=replace(pipeline.sync, batch_bodies=batch))
    async with open_project(pipeline, command="worker", clock=Clock(noon), random=SystemRandom()) as project:
        say("open")
        result = await sync(project.ports, Scope(full=full), command="worker", publishing=publishing)
        say(result.status)


if __name__ == "__main__":
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a full disk is an error, not a death
    try:
        asyncio.run(
            main(
                Path(sys.argv[1]),
                dt.datetime.fromisoformat(sys.argv[2]),
                full="full" in sys.argv,
                publishing="publish" in sys.argv,
                batch=next((int(word.partition("=")[2]) for word in sys.argv if word.startswith("batch=")), 0),
            )
        )
    except OctoSyncError as error:
        say("error", type(error).__name__, str(error))
        os._exit(3)
