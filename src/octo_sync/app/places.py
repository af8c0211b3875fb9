"""Where a project's data is: files of ours, or a server. The one module that tells the two apart when something is opened."""

import contextlib
import os
import shutil
import socket
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from octo_sync.app.machine import alive
from octo_sync.destinations.delta import together
from octo_sync.destinations.delta.tables import translated
from octo_sync.destinations.duckdb.publish import DuckDBDraft
from octo_sync.destinations.duckdb.reader import DuckDBReader
from octo_sync.destinations.duckdb.warehouse import DuckDBWarehouse
from octo_sync.destinations.reading import SCHEMAS
from octo_sync.destinations.warehouse import Destination
from octo_sync.errors import ConfigError
from octo_sync.flows.backup.save import Files
from octo_sync.flows.publish import make_marts
from octo_sync.model import Clock
from octo_sync.pipeline import Pipeline, checks
from octo_sync.tables import all_tables, nouns

_STUCK_AFTER = 40.0
_MEMORY = "512MB"


def duckdb_warehouse(path: Path, private: Path, clock: Clock) -> DuckDBWarehouse:
    """A warehouse in two files, made when they are not there."""
    return DuckDBWarehouse(path, private, tables=all_tables(), nouns=nouns(), now=clock.now())


def is_shared(pipeline: Pipeline) -> bool:
    """Whether several workers may work on it at the same time: both databases are on a server."""
    return isinstance(pipeline.journal, str) and isinstance(pipeline.destination, str)


def open_warehouse(pipeline: Pipeline, clock: Clock, *, patient: bool = True, beside: bool = False) -> Destination:
    """The warehouse of a pipeline, made when it is not there; this process then owns it, or works `beside` others.

    A server that is away is waited for only by who is `patient`.
    """
    if isinstance(pipeline.destination, Path):
        own = pipeline.destination, checks.beside(pipeline.destination, "private")
        if pipeline.lake is None:
            return duckdb_warehouse(*own, clock)
        from octo_sync.destinations.delta.warehouse import DeltaWarehouse  # noqa: PLC0415 - an extra that few need

        return DeltaWarehouse(pipeline.lake, *own, tables=all_tables(), nouns=nouns(), now=clock.now())
    from octo_sync.destinations.postgres.session import STUCK_AFTER  # noqa: PLC0415 - its driver is an extra
    from octo_sync.destinations.postgres.warehouse import PostgresWarehouse  # noqa: PLC0415 - the same

    spool = spool_of(pipeline)
    for left in spool.glob("*/"):
        if left.name.isdigit() and not alive(int(left.name), socket.gethostname()):
            shutil.rmtree(left, ignore_errors=True)
    return PostgresWarehouse(
        pipeline.destination,
        spool=spool / str(os.getpid()) if beside else spool,
        tables=all_tables(),
        nouns=nouns(),
        now=clock.now(),
        opening_waits=None if patient else (),
        # The others wait for the landing of one that stands still.
        stuck_after=_STUCK_AFTER if beside else STUCK_AFTER,
    )


def spool_of(pipeline: Pipeline) -> Path:
    """Where rows are that travel to or from a server; a folder in it belongs to the process whose number it has."""
    return pipeline.journal_path.with_name(f".{pipeline.name}.spool")


def files(pipeline: Pipeline, *, journal: bool = True) -> Files:
    """Where the project's files are, for what copies or replaces them whole.

    Raises:
        ConfigError: The warehouse, or the `journal` that is wanted too, is no file of ours.
    """
    if pipeline.lake is not None:
        raise ConfigError(
            "The warehouse is in Delta tables: what keeps their folder or bucket backs them up. The working copy here is "
            "made anew from them whenever it is another one."
        )
    if not isinstance(pipeline.destination, Path) or pipeline.private_path is None:
        raise ConfigError("The warehouse is in PostgreSQL: use its own tools, such as pg_dump and pg_restore.")
    if journal and isinstance(pipeline.journal, str):
        raise ConfigError(
            "The journal is in PostgreSQL: back it up with its own tools, such as pg_dump and pg_restore."
        )
    return Files(pipeline.destination, pipeline.private_path, pipeline.journal_path)


def published(pipeline: Pipeline) -> Path | str:
    """What is there to be read: the read copy, or the address of a PostgreSQL warehouse."""
    return pipeline.destination if isinstance(pipeline.destination, str) else pipeline.publish.path


def read_file(pipeline: Pipeline, scratch: Path) -> Path:
    """A DuckDB file with the published rows: the read copy, or `scratch`, made of those on the server."""
    if isinstance(pipeline.destination, Path):
        return pipeline.publish.path
    from octo_sync.destinations.postgres.workbench import snapshot  # noqa: PLC0415 - its driver is an extra

    snapshot(pipeline.destination, scratch, all_tables())
    return scratch


def server_size(pipeline: Pipeline) -> Callable[[], int] | None:
    """What asks a server how large the warehouse is; None where it is in files, whose sizes can be seen."""
    if isinstance(pipeline.destination, Path):
        return None
    from octo_sync.destinations.postgres.session import size_of  # noqa: PLC0415 - its driver is an extra

    return partial(size_of, pipeline.destination)


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
            into = together.published(self._root, self._fence)
            with self._copy() as copy, contextlib.closing(DuckDBReader(copy)) as reader:
                together.publish(reader, into, self._clock.now(), SCHEMAS)

    def shed(self) -> None:
        """Have former rows go from the place."""
        with translated(self._root):
            together.published(self._root).vacuum()

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
            spill = folder / "tmp"
            with contextlib.closing(DuckDBDraft(made, [(made, copy)], memory=_MEMORY, spill=spill)) as draft:
                make_marts(draft, self._pipeline.directory)
                draft.publish()
            yield copy
        finally:
            shutil.rmtree(folder, ignore_errors=True)
