"""The warehouse in a PostgreSQL database. psycopg is an extra: whoever imports anything from here needs it."""

from typing import Any

from octo_sync.errors import WarehouseError, install

try:
    import psycopg
except ImportError:
    raise WarehouseError(f"PostgreSQL needs the package psycopg: {install('postgres')}.") from None

Session = psycopg.Connection[Any]
