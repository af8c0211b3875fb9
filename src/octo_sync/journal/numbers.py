"""The one counter of octo-sync: numbers of marks, of requests (R6), of changes. It only grows."""

from collections.abc import Mapping

from octo_sync.journal import sql
from octo_sync.journal.store import Table

_SHARED = "shared "


class Numbers(Table):
    """The row `seq` of the table `counters`."""

    def reserve(self, count: int) -> range:
        """A durable block of numbers from the same counter, never given out again; for `request_seq` (R6)."""
        if count < 1:
            raise ValueError("reserve at least one number")
        with self._store.writing() as connection:
            last = self._store.next_number(connection, count)
        return range(last - count + 1, last + 1)

    def last(self) -> int:
        """The last number that was given out; it grows with every mark, whoever made it."""
        return int(self._store.value("SELECT value FROM counters WHERE name = 'seq'"))

    def count(self, counts: Mapping[str, int]) -> None:
        """Add to what workers have done who do not keep the copy as a whole; it only grows."""
        rows = [(f"{_SHARED}{name}", count) for name, count in counts.items() if count]
        if rows:
            with self._store.writing() as connection:
                connection.exec_driver_sql(sql.COUNT, sorted(rows))

    def counted(self) -> dict[str, int]:
        """What they have done, all of them together, ever."""
        rows = self._store.ask("SELECT name, value FROM counters WHERE name <> 'seq'")
        return {name.removeprefix(_SHARED): value for name, value in rows}

    def at_least(self, *, seq: int = 0, fence: int = 0) -> None:
        """Lift the counters to what the warehouse has seen, where they are lower.

        Lower ones mean that this journal is older than the warehouse: it was restored, or lost commits. Mark everything
        before. A lease that was taken before must be taken again for the lifted fence.
        """
        with self._store.writing(alone=True) as connection:
            connection.exec_driver_sql("UPDATE counters SET value = ?1 WHERE name = 'seq' AND value < ?1", (seq,))
            connection.exec_driver_sql("UPDATE leases SET fence = ?1 WHERE name = 'writer' AND fence < ?1", (fence,))
