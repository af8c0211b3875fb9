"""Where webhooks are accepted: one row for each unguessable address that was ever given to a service."""

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta

from sqlalchemy import insert, select

from octo_sync.journal import sql
from octo_sync.journal.models import EndpointRow, columns, to_text
from octo_sync.journal.store import Table, chosen

_REMEMBERED = timedelta(days=400)
"""How long a retired row still tells that a subscription that turns up again was ours."""


class Endpoints(Table):
    """The `endpoints` table; `EndpointRow` draws its states."""

    def rows(self, connection: str | None = None, *, retired: bool = False) -> list[EndpointRow]:
        """The rows of one connection or of all, oldest first; those that are accepted, or with `retired` every one."""
        endpoint = columns(EndpointRow)
        wanted = chosen(select(EndpointRow).order_by(endpoint.id), connection=connection)
        if not retired:
            wanted = wanted.where(endpoint.state != "retired")
        return self._store.rows(wanted)

    def add(self, endpoint: str, *, connection: str, secret_hash: str) -> None:
        """Accept deliveries at a new address from now on, before the service hears of it. Its id must be new.

        `secret_hash` is the SHA-256 of the secret header's bytes, in lower-case hexadecimal; the secret is kept nowhere.
        """
        row = {"endpoint": endpoint, "connection": connection, "secret_hash": secret_hash}
        self._store.change(insert(EndpointRow).values(**row, created_at=self._store.clock.now()))

    def activate(self, endpoint: str, subscription_id: str) -> None:
        """The service has a subscription at this address. A retired row stays retired."""
        self._store.change(sql.ENDPOINT_ACTIVE, endpoint, subscription_id)

    def seen(self, deliveries: Mapping[str, str]) -> None:
        """Authentic deliveries have come: endpoint → subscription id as the delivery says, or an empty text.

        Only the first one of each is noted, so that calling it again costs nothing worth mentioning.
        """
        now = to_text(self._store.clock.now())
        self._each(sql.ENDPOINT_SEEN, [(endpoint, now, said) for endpoint, said in deliveries.items()])

    def refused(self, endpoints: Collection[str]) -> int:
        """Deliveries with a wrong secret have come to these addresses; how many of them that was news about.

        The next check of the subscription then moves it to a new address. What comes to unknown addresses is nobody's.
        """
        now = to_text(self._store.clock.now())
        return self._each(sql.ENDPOINT_REFUSED, [(endpoint, now) for endpoint in endpoints])

    def subscription_gone(self, connection: str, subscription_id: str) -> None:
        """The service has no such subscription any more; what is on its way to its addresses is still accepted."""
        theirs = [row.endpoint for row in self.rows(connection, retired=True) if row.subscription_id == subscription_id]
        self._each(sql.ENDPOINT_GONE, [(endpoint, subscription_id) for endpoint in theirs])

    def retire(self, endpoints: Collection[str]) -> None:
        """Accept nothing more at these addresses. Twice is fine."""
        if endpoints:
            now = self._store.clock.now()
            self._each(sql.ENDPOINT_RETIRED, [(endpoint, to_text(now)) for endpoint in endpoints])
            self._store.change("DELETE FROM endpoints WHERE retired_at < ?", to_text(now - _REMEMBERED))

    def _each(self, statement: str, rows: Sequence[tuple[str, ...]]) -> int:
        """Carry out a statement with each of these values, in one transaction; in how many rows it changed something."""
        with self._store.writing() as opened:
            return sum(opened.exec_driver_sql(statement, row).rowcount for row in sorted(rows))
