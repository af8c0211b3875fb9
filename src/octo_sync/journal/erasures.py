"""Erasures: what was asked to be forgotten, how far that is, and the bytes of it that lie in the journal itself.

An erasure is asked for by keyed hashes and booking uuids, is durable before anything is deleted, and stays as what keeps
the erased from coming back. It lives among the settings, one row each: whoever may write the journal may ask for one, the
process that owns the warehouse carries it out.
"""

import dataclasses
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import datetime

import msgspec
from sqlalchemy import select, update
from sqlmodel import SQLModel

from octo_sync.journal.models import Act, QuarantinedRecord, Run, Setting, SubjectRow, columns
from octo_sync.journal.store import Table

_PREFIX = "erasure "
_SECRET = "privacy secret"  # noqa: S105 - the setting's name
GONE = "(erased)"
"""What stands where a text was that named somebody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """What was asked to be forgotten, and how far that is.

    `people` are keyed hashes of e-mail addresses and telephone numbers, `bookings` uuids that go whole. `contacts` are the
    (connection, booking uuid, unit item uuid) that were found to be theirs; None: not looked for yet. `key`, hex, is what
    `people` were hashed with where that is not this journal's secret: it was asked for in a project that a backup replaced.
    """

    id: str
    people: tuple[str, ...] = ()
    bookings: tuple[str, ...] = ()
    requested_at: datetime
    key: str | None = field(default=None, repr=False)
    contacts: tuple[tuple[str, str, str], ...] | None = None
    references: tuple[tuple[str, str, str], ...] = ()
    """Connection, booking uuid and keyed hash of each reference that was removed."""
    rewrites_core: bool = False
    """Whether texts of `core` repeated them, so that the whole warehouse file is rewritten."""
    carried: bool = False
    """Whether nothing is left to do but the journal's log, the copies and the search of files."""
    done_at: datetime | None = None
    counts: dict[str, int] = field(default_factory=dict)
    """What was erased, by where it lay."""
    left: tuple[str, ...] = ()
    """What is left to do, or out of reach, in sentences."""
    holding: tuple[str, ...] = ()
    """Files below the project directory that were seen to hold them, when what told who it was was still known."""


_READ = msgspec.json.Decoder(Erasure)


@dataclass(frozen=True, slots=True)
class Erased:
    """All erasures of a journal, and the key that their hashes were made with; its `repr` shows neither."""

    secret: str | None
    erasures: tuple[Erasure, ...]

    def __repr__(self) -> str:
        return f"Erased({len(self.erasures)} erasures)"


class Erasures(Table):
    """The settings that are erasures, and what goes from `deliveries`, `subjects`, `quarantined_records` and `runs`."""

    def secret(self, make: Callable[[], str]) -> str:
        """The project's key for hashes; the first who asks makes it."""
        found = self._store.settings.get(_SECRET)
        if found is None:
            self._store.settings.replace(_SECRET, None, fresh := make())
            found = self._store.settings.get(_SECRET) or fresh
        return found

    def request(self, people: Collection[str], bookings: Collection[str]) -> Erasure:
        """Ask for an erasure, durably. The owner of the warehouse notices by the counter and carries it out."""
        with self._store.writing() as opened:
            asked = Erasure(
                id=str(self._store.next_number(opened)),
                people=tuple(sorted(set(people))),
                bookings=tuple(sorted(set(bookings))),
                requested_at=self._store.clock.now(),
            )
            self._store.settings.note(opened, _PREFIX + asked.id, msgspec.json.encode(asked).decode())
        return asked

    def note(self, erasure: Erasure) -> None:
        """Write down how far it is."""
        self._store.settings.set(_PREFIX + erasure.id, msgspec.json.encode(erasure).decode())

    def rows(self) -> list[Erasure]:
        """All that were ever asked for, the oldest first: those that are done keep the erased from coming back."""
        setting = columns(Setting)
        rows = self._store.ask(select(setting.value).where(setting.name.like(f"{_PREFIX}%")))
        return sorted((_READ.decode(value) for (value,) in rows), key=lambda erasure: int(erasure.id))

    def open_ids(self) -> list[str]:
        """The ids of those that are not done; cheap enough to be asked every second."""
        setting = columns(Setting)
        is_open = setting.name.like(f"{_PREFIX}%"), setting.value.like('%"done_at":null%')
        return sorted(name.removeprefix(_PREFIX) for (name,) in self._store.ask(select(setting.name).where(*is_open)))

    def find(self, id_: str) -> Erasure | None:
        """One of them."""
        value = self._store.settings.get(_PREFIX + id_)
        return None if value is None else _READ.decode(value)

    def erased(self) -> Erased:
        """What another journal of this project must not forget."""
        return Erased(self._store.settings.get(_SECRET), tuple(self.rows()))

    def erase_again(self, erased: Erased) -> None:
        """Take over what was erased according to the journal of a project that this one replaces, to be carried out here.

        The key for hashes stays the one of this journal: what is in its warehouse was made with it. So erasures that were
        asked for under another keep that beside them, and get ids of their own, which no erasure of this journal has.
        """
        own = self._store.settings.get(_SECRET)
        if own is None and erased.secret is not None:
            self._store.settings.set(_SECRET, own := erased.secret)
        known = {_asked(erasure, own) for erasure in self.rows()}
        for erasure in erased.erasures:
            if _asked(erasure, erased.secret) in known:
                continue
            key = erasure.key or erased.secret
            undone = dataclasses.replace(erasure, carried=False, done_at=None, left=())
            fresh = str(self._store.numbers.reserve(1)[0])
            self.note(dataclasses.replace(undone, id=fresh, key=None if key == own else key))

    def repeats_in_texts(self, is_theirs: Callable[[str], bool]) -> bool:
        """Whether `blank_texts` would find anything."""
        return any(self._naming(table, name, is_theirs) for table, name in _TEXTS)

    def blank_texts(self, is_theirs: Callable[[str], bool]) -> int:
        """Replace reasons and error messages that name them; how many."""
        blanked = 0
        for table, name in _TEXTS:
            row = columns(table)
            # One at a time: others write subjects in another order.
            for id_, text in self._naming(table, name, is_theirs):
                blanked += self._store.change(
                    update(table).where(row.id == id_, row[name] == text).values({name: GONE})
                )
        return blanked

    def _naming(self, table: type[SQLModel], name: str, is_theirs: Callable[[str], bool]) -> list[tuple[int, str]]:
        column = columns(table)[name]
        rows = self._store.ask(select(columns(table).id, column).where(column.is_not(None)))
        return [(id_, text) for id_, text in rows if is_theirs(text)]


_TEXTS: tuple[tuple[type[SQLModel], str], ...] = (
    (SubjectRow, "error_message"),
    (QuarantinedRecord, "reason"),
    (Run, "error"),
    (Act, "text"),
)


def _asked(erasure: Erasure, secret: str | None) -> tuple[object, ...]:
    """What makes an erasure the same as one of another journal, whatever its id is there; `secret` is its journal's."""
    return erasure.requested_at, erasure.people, erasure.bookings, erasure.people and (erasure.key or secret)
