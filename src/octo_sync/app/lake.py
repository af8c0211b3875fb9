"""What readers have, in Delta tables too, where the pipeline says so (`publish.delta`)."""

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from octo_sync.app.places import read_file, spool_of
from octo_sync.destinations.delta.tables import translated
from octo_sync.destinations.delta.together import publish, published
from octo_sync.destinations.duckdb.publish import DuckDBDraft
from octo_sync.destinations.duckdb.reader import DuckDBReader
from octo_sync.destinations.reading import SCHEMAS
from octo_sync.flows.publish import make_marts
from octo_sync.model import Clock
from octo_sync.pipeline import Pipeline

_MEMORY = "512MB"


class DeltaTables:
    """Marts, core and ops as Delta tables, written by whoever publishes; see `flows.ports.Beside`.

    Raises:
        ConfigError: delta-rs is not installed.
    """

    def __init__(self, pipeline: Pipeline, clock: Clock, fence: int) -> None:
        self._pipeline, self._clock, self._fence = pipeline, clock, fence
        self._root = pipeline.publish.delta
        with translated(self._root):
            pass

    def publish(self) -> None:
        """Write what readers have, those tables of which a row is another one."""
        with translated(self._root):
            # Looked at before any row is read: who was replaced since has older ones.
            into = published(self._root, self._fence)
            with self._copy() as copy, contextlib.closing(DuckDBReader(copy)) as reader:
                publish(reader, into, self._clock.now(), SCHEMAS)

    def shed(self) -> None:
        """Have former rows go from the place."""
        with translated(self._root):
            published(self._root).vacuum()

    @contextlib.contextmanager
    def _copy(self) -> Iterator[Path]:
        """The read copy, or one that is made of what a server has published, with its marts."""
        if isinstance(self._pipeline.destination, Path):
            yield self._pipeline.publish.path
            return
        # Of a process that was killed it is removed when the next one opens the warehouse.
        folder = spool_of(self._pipeline) / str(os.getpid()) / "lake"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700, parents=True)
        try:
            made, copy = read_file(self._pipeline, folder / "octo.duckdb"), folder / "octo.read.duckdb"
            config = {"threads": 1, "memory_limit": _MEMORY, "temp_directory": str(folder / "tmp")}
            with contextlib.closing(DuckDBDraft(made, [(made, copy)], config)) as draft:
                make_marts(draft, self._pipeline.directory)
                draft.publish()
            yield copy
        finally:
            shutil.rmtree(folder, ignore_errors=True)
