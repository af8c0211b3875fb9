"""What a working copy is of: a file beside it that names a landing, and is not there while the copy may be another."""

import json
from pathlib import Path

from octo_sync.destinations.delta.lake import Landed
from octo_sync.destinations.duckdb.files import schema_of_file
from octo_sync.disk import fsync, rename
from octo_sync.errors import WarehouseError, WarehouseLocked


class Note:
    """The note beside a copy, and the copy's files, which are worth nothing without it."""

    def __init__(self, *files: Path) -> None:
        self._files, self._path = files, files[0].with_suffix(".landed")

    def is_of(self, landed: Landed) -> bool:
        """Whether the copy has what has landed, no more and no less."""
        try:
            return bool(json.loads(self._path.read_bytes()) == _mark(landed))
        except (OSError, ValueError):
            return False

    @property
    def is_there(self) -> bool:
        """Whether the copy is what the note says."""
        return self._path.exists()

    def forget(self) -> None:
        """From here on the copy may be another than the lake; for good, also if the power fails."""
        if self.is_there:
            self._path.unlink()
            fsync(self._path.parent)

    def remember(self, landed: Landed) -> None:
        """The copy has what has landed."""
        fresh = self._path.with_suffix(".fresh")
        fresh.write_text(json.dumps(_mark(landed)))
        fsync(fresh)
        rename(fresh, self._path)

    def remove_copy(self) -> None:
        """Remove a copy that is not what the lake has.

        Raises:
            WarehouseLocked: Somebody has it open.
        """
        for file in self._files:
            try:
                schema_of_file(file)
            except WarehouseLocked:
                raise
            except WarehouseError:
                pass  # damaged, which is as good a reason
            for part in (file, file.with_name(f"{file.name}.wal")):
                part.unlink(missing_ok=True)


def _mark(landed: Landed) -> dict[str, str | int]:
    return {"lake": landed.id, "number": landed.number}
