"""What services told us, durably, and what is to be looked at again later: deliveries and timers.

A delivery, its marks and its confirming looks are one transaction (R1). Of many deliveries that came together too: one
transaction, one number, one sync of the disk, and one statement per table, however many they are.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Row, select

from octo_sync.journal import sql
from octo_sync.journal.models import TimerRecord, columns, from_text, to_text
from octo_sync.journal.rows import Delivery, DeliveryCount, Months, Received, Timer
from octo_sync.journal.subjects import Subjects
from octo_sync.model import Source, Subject, SubjectKind

__all__ = ["NOTIFIED", "TIMED", "Inbox"]

NOTIFIED, TIMED = 10, 5
"""Priorities: what a service has just told us goes before what a timer recalls, and both before a pull."""
_PAGE = 1000
_PRUNED_AT_ONCE = 5000
_FIRED_AT_ONCE = 5000

_Key = tuple[str, str, str]
"""Connection, kind, key of a subject, as stored."""


class Inbox(Subjects):
    """The tables `deliveries` and `timers`."""

    # ── deliveries ────────────────────────────────────────────────────────────────────────────────────────────────

    def receive(self, items: Sequence[Received]) -> int:
        """Store deliveries, mark what they name and set the confirming looks, in one durable transaction (R1).

        The number that all of these marks share. Marks follow the rules of `mark` for a notification. Months are marked
        for every option of the product that has an availability subject, also where the month itself has none yet; an
        option that has none marks its product, and a product that has none the list of products too. Confirming looks
        are timers `confirm-1`, `confirm-2` …: a later notification moves them later, so that any number of them about
        one subject ends with one look of each.
        """
        return self._apply(items, Source.NOTIFICATION, keep=True)

    def apply_again(self, items: Sequence[Received], source: Source = Source.USER) -> int:
        """The same without storing anything: marks and confirming looks of deliveries that were stored before."""
        return self._apply(items, source, keep=False)

    def _apply(self, items: Sequence[Received], source: Source, *, keep: bool) -> int:
        with self._writing() as opened:
            number = self._next_number(opened)
            connection = self._database.driver(opened)
            marks: list[set[_Key]] = [{_key(subject) for subject in item.subjects} for item in items]
            looks: dict[tuple[str, str, str, str], str] = {}
            for item, keys, found in zip(items, marks, self._resolved(connection, items), strict=True):
                due = [(f"confirm-{place}", to_text(at)) for place, at in enumerate(item.confirm_at, start=1)]
                _confirm(looks, keys, due)
                for months, inside in found:
                    keys |= inside  # noqa: PLW2901 - in place
                    _confirm(looks, inside, due[-1:] if months.last_look_only else due)
            every = set().union(*marks)
            if every:
                rows = (_text(sorted(every)), number, NOTIFIED, source.value, to_text(self._clock.now()))
                connection.execute(sql.MARK_MANY, rows)
            if looks:
                timers = [(*key, due, Source.CONFIRM.value) for key, due in sorted(looks.items())]
                connection.execute(sql.POSTPONE_TIMERS, (_text(timers), False))
            if keep and items:
                connection.execute(sql.RECEIVE, _stored(items, marks, number))
        return number

    def _resolved(
        self,
        connection: Any,  # noqa: ANN401 - the driver's own
        items: Sequence[Received],
    ) -> Iterator[list[tuple[Months, set[_Key]]]]:
        """For each item, its months as subjects."""
        products = list(dict.fromkeys((item.connection, months.product) for item in items for months in item.months))
        known: dict[tuple[str, str], list[str]] = {}
        if products:
            # All keys of a product begin with the product; "-" is the character behind ",".
            ranges = [(name, _text([product])[:-1]) for name, product in products]
            wanted = _text([(name, f"{beginning},", f"{beginning}-") for name, beginning in ranges])
            found = connection.execute(sql.KNOWN_OPTIONS, (wanted,)).fetchone()[0]
            for place, beginning in json.loads(found):
                known.setdefault(products[place], []).append(beginning)
        for item in items:
            yield [
                (months, _subjects_of(item.connection, months, known.get((item.connection, months.product), [])))
                for months in item.months
            ]

    def deliveries(
        self,
        limit: int = 100,
        *,
        since: datetime | None = None,
        connection: str | None = None,
        after_id: int | None = None,
    ) -> list[Delivery]:
        """Up to `limit` deliveries, the oldest first: the newest ones, or with `after_id` those that follow it."""
        since_text = None if since is None else to_text(since)
        statement = sql.LAST_DELIVERIES if after_id is None else sql.DELIVERIES_AFTER
        with self._reading() as opened:
            rows = opened.exec_driver_sql(statement, (after_id or 0, connection, since_text, limit)).all()
        return sorted((_delivery(row) for row in rows), key=lambda delivery: delivery.id)

    def all_deliveries(self, *, since: datetime | None = None, connection: str | None = None) -> Iterator[Delivery]:
        """All deliveries, the oldest first, in pages: one that is stored meanwhile may be among them."""
        after = 0
        while page := self.deliveries(_PAGE, since=since, connection=connection, after_id=after):
            yield from page
            after = page[-1].id

    def last_delivery_at(self, connection: str) -> datetime | None:
        """When the newest delivery of a connection came; None when none is kept."""
        with self._reading() as opened:
            newest = opened.exec_driver_sql(
                "SELECT max(received_at) FROM deliveries WHERE connection = ?", (connection,)
            ).scalar_one()
        return None if newest is None else from_text(newest)

    def delivery_counts(self, since: datetime, *, connection: str | None = None) -> list[DeliveryCount]:
        """How many deliveries each hour (UTC) brought, per connection; hours without any are left out."""
        with self._reading() as opened:
            rows = opened.exec_driver_sql(sql.DELIVERY_COUNTS, (to_text(since), connection)).all()
        return [
            DeliveryCount(
                connection=name,
                hour=datetime.fromisoformat(f"{hour}:00:00").replace(tzinfo=UTC),
                deliveries=count,
                odd=odd,
            )
            for name, hour, count, odd in rows
        ]

    def prune_deliveries(self, before: datetime) -> int:
        """Forget deliveries received before; how many. What they marked stays marked."""
        pruned = 0
        while True:
            with self._writing() as connection:
                some = connection.exec_driver_sql(sql.PRUNE_DELIVERIES, (to_text(before), _PRUNED_AT_ONCE)).rowcount
            pruned += some
            if some < _PRUNED_AT_ONCE:
                return pruned

    # ── timers ────────────────────────────────────────────────────────────────────────────────────────────────────

    def set_timers(self, timers: Iterable[Timer]) -> None:
        """Set timers, or move those that there are, earlier or later, in one transaction."""
        rows = {(*_key(one.subject), one.name): (to_text(one.due_at), one.source.value) for one in timers}
        if rows:
            with self._writing() as connection:
                connection.exec_driver_sql(
                    sql.POSTPONE_TIMERS, (_text([(*key, *row) for key, row in rows.items()]), True)
                )

    def fire_timers(self, now: datetime) -> int:
        """Mark what is due, due at once, and forget these timers, in one transaction; how many timers fired.

        Several timers of one subject make one mark. After a long stop they fire in portions: call again until 0.
        """
        due = to_text(now)
        with self._reading() as connection:
            if not connection.exec_driver_sql(
                "SELECT EXISTS (SELECT 1 FROM timers WHERE due_at <= ?)", (due,)
            ).scalar():
                return 0  # the usual case costs no commit
        with self._writing() as connection:
            number = self._next_number(connection)
            connection.exec_driver_sql(sql.FIRE_TIMERS, (due, number, _FIRED_AT_ONCE, TIMED))
            return connection.exec_driver_sql(sql.FORGET_FIRED_TIMERS, (due, number, _FIRED_AT_ONCE)).rowcount

    def next_timer_at(self) -> datetime | None:
        """When the next timer is due, possibly in the past; None when there is none."""
        with self._reading() as connection:
            due = connection.exec_driver_sql("SELECT min(due_at) FROM timers").scalar_one()
        return None if due is None else from_text(due)

    def drop_timers(self, subjects: Iterable[Subject], name: str) -> int:
        """Forget the timers of this name, whether there are any or not; how many there were."""
        keys = _text([_key(subject) for subject in subjects])
        with self._writing() as connection:
            return connection.exec_driver_sql(sql.DROP_TIMERS, (keys, name)).rowcount

    def timers(self, *, connection: str | None = None, name: str | None = None, limit: int = _PAGE) -> list[Timer]:
        """Up to `limit` timers, the next one first."""
        timer = columns(TimerRecord)
        wanted = select(timer).order_by(timer.due_at, timer.connection, timer.kind, timer.key, timer.name).limit(limit)
        if connection is not None:
            wanted = wanted.where(timer.connection == connection)
        if name is not None:
            wanted = wanted.where(timer.name == name)
        with self._reading() as opened:
            rows = opened.execute(wanted).all()
        return [
            Timer(
                subject=Subject.from_key(row.connection, row.kind, row.key),
                name=row.name,
                due_at=row.due_at,
                source=Source(row.source),
            )
            for row in rows
        ]


def _key(subject: Subject) -> _Key:
    return subject.connection, subject.kind.value, subject.key


def _text(values: Collection[Any]) -> str:
    """As `Subject.key` spells JSON."""
    return json.dumps(values, ensure_ascii=False, separators=(",", ":"))


def _subjects_of(connection: str, months: Months, known: Sequence[str]) -> set[_Key]:
    """The months as subjects, given how the keys of the product's options begin."""
    option = None if months.option is None else _text([months.product, months.option])[:-1] + ","
    beginnings = [one for one in known if option in (None, one)]
    keys = {
        (connection, SubjectKind.AVAILABILITY.value, f'{beginning}"{month}"]')
        for beginning in beginnings
        for month in months.months
    }
    if not beginnings:
        keys.add((connection, SubjectKind.PRODUCT.value, _text([months.product])))
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
        rows.append(
            (
                item.connection,
                item.endpoint,
                to_text(item.received_at),
                item.type,
                item.reading,
                item.subscription,
                len(keys),
                begins,
                len(item.body),
            )
        )
        begins += len(item.body)
    return b"".join(item.body for item in items), _text(rows), number


def _delivery(row: Row[Any]) -> Delivery:
    values = row._asdict()
    return Delivery(**values | {"received_at": from_text(row.received_at)})
