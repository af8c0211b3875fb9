"""The warehouse in a PostgreSQL database. psycopg is an extra: whoever imports anything from here needs it."""

from typing import Any

from octo_sync.errors import WarehouseError

try:
    import psycopg
except ImportError:
    raise WarehouseError(
        "PostgreSQL needs the package psycopg, which is not installed; run `pip install 'octo-sync[postgres]'`."
    ) from None

Session = psycopg.Connection[Any]
