"""The small findings worth keeping, by name: of a connection, or of the project."""

from sqlalchemy import Connection, select

from octo_sync.journal.models import Setting, columns, to_text
from octo_sync.journal.store import Store

__all__ = ["Settings"]


class Settings:
    """The table `settings`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self, name: str, *, connection: str = "") -> str | None:
        """What was noted under this name for a connection (empty: for the project), or None."""
        setting = columns(Setting)
        with self._store.reading() as opened:
            value: str | None = opened.execute(
                select(setting.value).where(setting.connection == connection, setting.name == name)
            ).scalar_one_or_none()
            return value

    def set(self, name: str, value: str | None, *, connection: str = "") -> None:
        """Note it; None removes the note."""
        with self._store.writing() as opened:
            if value is None:
                opened.exec_driver_sql("DELETE FROM settings WHERE connection = ? AND name = ?", (connection, name))
            else:
                self.note(opened, name, value, connection=connection)

    def note(self, opened: Connection, name: str, value: str, *, connection: str = "") -> None:
        """Note it in a transaction that does more."""
        opened.exec_driver_sql(
            "INSERT INTO settings (connection, name, value, changed_at) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (connection, name) DO UPDATE "
            "SET value = excluded.value, changed_at = excluded.changed_at",
            (connection, name, value, to_text(self._store.clock.now())),
        )
