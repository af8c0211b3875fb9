"""What services told us, durably, and what is to be looked at again later: deliveries and timers.

A delivery, its marks and its confirming looks are one transaction (R1). Of many deliveries that came together too: one
transaction, one number, one sync of the disk, and one statement per table, however many they are.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import select, update

from octo_sync.journal import sql
from octo_sync.journal.models import Delivery, as_json, columns, from_text, key_of, to_text
from octo_sync.journal.rows import DeliveryCount, Months, Received
from octo_sync.journal.store import Table, chosen
from octo_sync.model import Source, SubjectKind

NOTIFIED = 10
"""Priority: what a service has just told us goes before what a timer recalls (`timers.py`), and both before a pull."""
_PAGE = 1000
_PRUNED_AT_ONCE = 5000

_Key = tuple[str, str, str]
"""Connection, kind, key of a subject, as stored."""


class Inbox(Table):
    """The table `deliveries`, and the timers that deliveries set."""

    # ── deliveries ────────────────────────────────────────────────────────────────────────────────────────────────

    def accept(self, items: Sequence[Received]) -> int:
        """Store deliveries, mark what they name and set the confirming looks, in one durable transaction (R1).

        The number that all of these marks share. Marks follow the rules of `mark` for a notification. Months are marked
        for every option of the product that has an availability subject, also where the month itself has none yet; an
        option that has none marks its product, and a product that has none the list of products too. Confirming looks
        are timers `confirm-1`, `confirm-2` …: a later notification moves them later, so that any number of them about
        one subject ends with one look of each.
        """
        return self._apply(items, Source.NOTIFICATION, keep=True)

    def apply_again(self, items: Sequence[Received]) -> int:
        """The same without storing anything: marks and confirming looks of deliveries that were stored before."""
        return self._apply(items, Source.USER, keep=False)

    def _apply(self, items: Sequence[Received], source: Source, *, keep: bool) -> int:
        with self._store.writing() as opened:
            number = self._store.next_number(opened)
            connection = self._store.database.driver(opened)
            marks: list[set[_Key]] = [{key_of(subject) for subject in item.subjects} for item in items]
            looks: dict[tuple[str, str, str, str], str] = {}
            known = _known_options(connection, items)
            for item, keys in zip(items, marks, strict=True):
                due = [(f"confirm-{place}", to_text(at)) for place, at in enumerate(item.confirm_at, start=1)]
                _confirm(looks, keys, due)
                for months in item.months:
                    inside = _subjects_of(item.connection, months, known[item.connection, months.product])
                    keys |= inside  # noqa: PLW2901 - in place
                    _confirm(looks, inside, due[-1:] if months.last_look_only else due)
            every = set().union(*marks)
            with self._store.database.together(opened):
                if every:
                    now = to_text(self._store.clock.now())
                    marked = as_json(sorted(every)), number, NOTIFIED, source.value, now, None
                    connection.execute(sql.MARK, marked)
                if looks:
                    timers = [(*key, due, Source.CONFIRM.value) for key, due in sorted(looks.items())]
                    connection.execute(sql.POSTPONE_TIMERS, (as_json(timers), False))
                if keep and items:
                    connection.execute(sql.RECEIVE, _stored(items, marks, number))
        return number

    def deliveries(
        self,
        limit: int = 100,
        *,
        since: datetime | None = None,
        connection: str | None = None,
        after_id: int | None = None,
    ) -> list[Delivery]:
        """Up to `limit` deliveries, the oldest first: the newest ones, or with `after_id` those that follow it."""
        delivery = columns(Delivery)
        ordered = select(Delivery).order_by(delivery.id.desc() if after_id is None else delivery.id)
        wanted = chosen(ordered, connection=connection).limit(limit)
        if after_id is not None:
            wanted = wanted.where(delivery.id > after_id)
        if since is not None:
            wanted = wanted.where(delivery.received_at >= since)
        return sorted(self._store.rows(wanted), key=lambda one: one.id)

    def all_deliveries(self, *, since: datetime | None = None, connection: str | None = None) -> Iterator[Delivery]:
        """All deliveries, the oldest first, in pages: one that is stored meanwhile may be among them."""
        after = 0
        while page := self.deliveries(_PAGE, since=since, connection=connection, after_id=after):
            yield from page
            after = page[-1].id

    def about(self, connection: str, booking_uuid: str, limit: int) -> list[Delivery]:
        """The newest deliveries of a connection that name a booking, the newest first."""
        found = [id_ for (id_,) in self._store.ask(sql.ABOUT, connection, booking_uuid.encode(), limit)]
        delivery = columns(Delivery)
        return self._store.rows(select(Delivery).where(delivery.id.in_(found)).order_by(delivery.id.desc()))

    def last_delivery_at(self, connection: str) -> datetime | None:
        """When the newest delivery of a connection came; None when none is kept."""
        newest = self._store.value("SELECT max(received_at) FROM deliveries WHERE connection = ?", connection)
        return None if newest is None else from_text(newest)

    def counts(self, since: datetime, *, connection: str | None = None) -> list[DeliveryCount]:
        """How many deliveries each hour (UTC) brought, per connection; hours without any are left out."""
        return self._store.counted(DeliveryCount, sql.DELIVERY_COUNTS, to_text(since), connection)

    def prune(self, before: datetime) -> int:
        """Forget deliveries received before; how many. What they marked stays marked."""
        pruned = 0
        while True:
            some = self._store.change(sql.PRUNE_DELIVERIES, to_text(before), _PRUNED_AT_ONCE)
            pruned += some
            if some < _PRUNED_AT_ONCE:
                return pruned

    def blank(self, is_theirs: Callable[[bytes], bool]) -> int:
        """Empty the bodies that are about them; when they came, and what they marked, stays. How many."""
        delivery, emptied, after = columns(Delivery), 0, 0
        while page := self.deliveries(_PAGE, after_id=after):
            after = page[-1].id
            ids = [one.id for one in page if one.body and is_theirs(one.body)]
            if ids:
                emptied += self._store.change(update(Delivery).where(delivery.id.in_(ids)).values(body=b""))
        return emptied


def _known_options(connection: Any, items: Sequence[Received]) -> Mapping[tuple[str, str], list[str]]:  # noqa: ANN401 - the driver's own
    """How the keys of the options begin that are known of each product whose months are to be marked."""
    products = list(dict.fromkeys((item.connection, months.product) for item in items for months in item.months))
    known: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    if products:
        # All keys of a product begin with the product; "-" is the character behind ",".
        ranges = [(name, as_json([product])[:-1]) for name, product in products]
        wanted = as_json([(name, f"{beginning},", f"{beginning}-") for name, beginning in ranges])
        found = connection.execute(sql.KNOWN_OPTIONS, (wanted,)).fetchone()[0]
        for place, beginning in json.loads(found):
            known[products[place]].append(beginning)
    return known


def _subjects_of(connection: str, months: Months, known: Sequence[str]) -> set[_Key]:
    """The months as subjects, given how the keys of the product's options begin."""
    option = None if months.option is None else as_json([months.product, months.option])[:-1] + ","
    beginnings = [one for one in known if option in (None, one)]
    keys = {
        (connection, SubjectKind.AVAILABILITY.value, f'{beginning}"{month}"]')
        for beginning in beginnings
        for month in months.months
    }
    if not beginnings:
        keys.add((connection, SubjectKind.PRODUCT.value, as_json([months.product])))
    if not known:
        keys.add((connection, SubjectKind.PRODUCTS.value, "[]"))
    return keys


def _confirm(looks: dict[tuple[str, str, str, str], str], keys: Iterable[_Key], due: Sequence[tuple[str, str]]) -> None:
    for name, at in due:
        for key in keys:
            looks[*key, name] = max(at, looks.get((*key, name), at))


def _stored(items: Sequence[Received], marks: Sequence[Collection[_Key]], number: int) -> tuple[bytes, str, int]:
    rows, begins = [], 1
    for item, keys in zip(items, marks, strict=True):
        said = item.type, item.reading, item.subscription
        rows.append(
            (item.connection, item.endpoint, to_text(item.received_at), *said, len(keys), begins, len(item.body))
        )
        begins += len(item.body)
    return b"".join(item.body for item in items), as_json(rows), number
