"""The small findings worth keeping, by name: of a connection, or of the project."""

from sqlalchemy import Connection

from octo_sync.journal import sql
from octo_sync.journal.models import to_text
from octo_sync.journal.store import Table


class Settings(Table):
    """The table `settings`."""

    def get(self, name: str, *, connection: str = "") -> str | None:
        """What was noted under this name for a connection (empty: for the project), or None."""
        noted = "SELECT value FROM settings WHERE connection = ? AND name = ?"
        value: str | None = self._store.value(noted, connection, name)
        return value

    def everywhere(self, name: str) -> dict[str, str]:
        """What was noted under this name, by connection."""
        return dict(self._store.ask("SELECT connection, value FROM settings WHERE name = ?", name))

    def set(self, name: str, value: str | None, *, connection: str = "") -> None:
        """Note it; None removes the note."""
        if value is None:
            self._store.change("DELETE FROM settings WHERE connection = ? AND name = ?", connection, name)
        else:
            with self._store.writing() as opened:
                self.note(opened, name, value, connection=connection)

    def replace(self, name: str, former: str | None, value: str | None, *, connection: str = "") -> bool:
        """Note it if what is noted is still `former` (None: nothing), by another process too; whether it was."""
        now = to_text(self._store.clock.now())
        if former is None:
            return bool(self._store.change(sql.NOTE + " DO NOTHING", connection, name, value, now))
        if value is None:
            gone = "DELETE FROM settings WHERE connection = ? AND name = ? AND value = ?"
            return bool(self._store.change(gone, connection, name, former))
        noted = "UPDATE settings SET value = ?, changed_at = ? WHERE connection = ? AND name = ? AND value = ?"
        return bool(self._store.change(noted, value, now, connection, name, former))

    def note(self, opened: Connection, name: str, value: str, *, connection: str = "") -> None:
        """Note it in a transaction that does more."""
        noted = sql.NOTE + " DO UPDATE SET value = excluded.value, changed_at = excluded.changed_at"
        opened.exec_driver_sql(noted, (connection, name, value, to_text(self._store.clock.now())))
