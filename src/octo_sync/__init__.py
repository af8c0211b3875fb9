"""octo-sync: a SQL copy of an OCTO booking service that can prove it is complete.

```python
import octo_sync

with octo_sync.open("octo.read.duckdb") as copy:
    frame = copy.table("core.bookings").df()
```
"""

import importlib
import typing

if typing.TYPE_CHECKING:
    from octo_sync.app.reading import Copy, open  # noqa: A004 - `octo_sync.open(…)` reads like the builtin it is named after
    from octo_sync.app.reconcile import reconcile
    from octo_sync.errors import OctoSyncError, QueryError, WarehouseError

__all__ = ["Copy", "OctoSyncError", "QueryError", "WarehouseError", "__version__", "open", "reconcile"]

__version__ = "0.2.0"

_HOMES = {
    "Copy": "octo_sync.app.reading",
    "OctoSyncError": "octo_sync.errors",
    "QueryError": "octo_sync.errors",
    "WarehouseError": "octo_sync.errors",
    "open": "octo_sync.app.reading",
    "reconcile": "octo_sync.app.reconcile",
}


def __getattr__(name: str) -> object:
    """Load what is asked for, when it is asked for: `import octo_sync` alone takes no time."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'octo_sync' has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
