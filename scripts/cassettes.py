"""Record `cassettes/` anew, a whole pull of a small sandbox: `PYTHONPATH=. uv run python scripts/cassettes.py`."""

import asyncio
import tempfile
from datetime import date
from pathlib import Path

from tests.wire.tape import CASSETTES, Instant, pipeline, tape, transport

from octo_sync.app.project import open_project
from octo_sync.flows.sync.pull import Scope
from octo_sync.flows.sync.run import sync
from octo_sync.sandbox.config import SandboxConfig
from octo_sync.sandbox.server import Sandbox

TODAY = date(2026, 11, 20)


async def _record(base_url: str, folder: Path) -> None:
    loaded = pipeline(folder, base_url)
    with tape("full_pull.yaml", record="all"):
        async with open_project(loaded, command="record", clock=Instant(), transport=transport) as project:
            result = await sync(project.ports, Scope(), command="record", publishing=False)
            print(result.status, result.totals.by_table)


def main() -> None:
    """Record and say what it held."""
    (CASSETTES / "full_pull.yaml").unlink(missing_ok=True)
    config = SandboxConfig(products=3, bookings=25, days=20, today=TODAY)
    with Sandbox(config) as sandbox, tempfile.TemporaryDirectory() as folder:
        asyncio.run(_record(sandbox.base_url, Path(folder)))


if __name__ == "__main__":
    main()
