"""Any SQL database, by its address: one query, read only, streamed."""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, quote_plus

from sqlalchemy import URL, Engine, create_engine, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, StatementError
from sqlalchemy.pool import NullPool

from octo_sync.errors import ConfigError, LedgerError, install
from octo_sync.reconciliation.ledgers import base
from octo_sync.reconciliation.ledgers.assembling import Found, assemble
from octo_sync.reconciliation.ledgers.base import Format, Ledger, Stretch, Wanted
from octo_sync.reconciliation.ledgers.cells import ROWS, Cells

_READ_ONLY = "-c default_transaction_read_only=on -c TimeZone=UTC"


def read_sql(
    dsn: str,
    query: str,
    parameters: Mapping[str, object],
    wanted: Sequence[Wanted],
    form: Format,
    *,
    directory: Path,
) -> Ledger:
    """The rows of `query` at `dsn`, an address as SQLAlchemy has them, in a transaction that may only read.

    A SQLite file is relative to `directory`.

    `parameters` are bound where the query says `:name`; those that it does not name are left out. PostgreSQL and SQLite are
    tested. For others the driver has to be there, and that nothing is written rests on the rights of the user.

    Raises:
        ConfigError: The driver is not installed.
        LedgerError: The database cannot be reached, the query is refused, or a value is not of the wanted kind.
    """
    wanted = base.same_kinds(wanted)
    try:
        url = make_url(dsn)
    except (ArgumentError, ValueError):
        raise LedgerError(
            "The address of the ledger's database is none; write it as postgresql://user@host/database or "
            "sqlite:///folder/file.db."
        ) from None
    if url.get_backend_name() == "sqlite":
        url = url.set(database=str(directory.absolute() / Path(url.database or "").expanduser()))
    place = f"{url.host or ''}{f':{url.port}' if url.port else ''}/{url.database or ''}"
    origin = f"select at {url.get_backend_name()}://{place}"
    cells, count = Cells(wanted), 0
    with _translated(url, origin), _engine(url).connect() as connection:
        streaming = connection.execution_options(stream_results=True, max_row_buffer=ROWS)
        with streaming.execute(text(query), parameters) as result:
            if not result.returns_rows:
                raise LedgerError(f"{origin}: the statement has no rows; the other side is what a SELECT finds.")
            positions = base.find(list(result.keys()), wanted, origin)
            for batch in result.partitions(ROWS):
                cells.add([[row[at] for at in positions] for row in batch])
                count += len(batch)
    stretch = Stretch("row ", range(1, count + 1), " of the select")
    return assemble([Found(cells.columns(), stretch)], wanted, form, origin=origin, as_of=None)


def _engine(url: URL) -> Engine:
    if url.get_backend_name() == "sqlite":
        place = f"{Path(url.database or '').as_uri()}?mode=ro"
        return create_engine("sqlite://", creator=lambda: sqlite3.connect(place, uri=True), poolclass=NullPool)
    if url.drivername in {"postgresql", "postgres"}:
        url = url.set(drivername="postgresql+psycopg")
    settings = {}
    if url.drivername == "postgresql+psycopg":
        asked = url.query.get("options", "")
        settings = {
            "connect_timeout": 10,
            "application_name": "octo-sync reconciliation",
            "options": f"{asked if isinstance(asked, str) else ' '.join(asked)} {_READ_ONLY}".strip(),
        }
    return create_engine(url, connect_args=settings, poolclass=NullPool, hide_parameters=True)


@contextmanager
def _translated(url: URL, origin: str) -> Iterator[None]:
    try:
        yield
    except (ImportError, NoSuchModuleError):
        extra = f": {install('postgres')}" if url.drivername.startswith("postgres") else ""
        raise ConfigError(f"No driver for {url.drivername.split('+')[0]} is installed{extra}.") from None
    except DBAPIError as error:
        said = str(error.orig).strip().splitlines()
        raise LedgerError(
            f"{origin}: {_without_secrets(url, said[0] if said else type(error.orig).__name__)}"
        ) from None
    except StatementError as error:
        raise LedgerError(f"{origin}: {error.orig}. The query can name :from and :to.") from None


def _without_secrets(url: URL, message: str) -> str:
    """Drivers seldom repeat a password, but some do."""
    secrets = [url.password, *(value for key, value in url.query.items() if "pass" in key and isinstance(value, str))]
    for secret in filter(None, secrets):
        for form in {secret, quote(secret), quote(secret, safe=""), quote_plus(secret)}:
            message = message.replace(form, "***")
    return message
