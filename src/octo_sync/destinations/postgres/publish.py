"""Publishing on PostgreSQL: in one transaction what landed since the last publish is brought over, and checked.

`core` and `ops` are tables of their own beside `landing`, and marts are made of them. Rows are changed in place, so the
commit shows all of it at once: nobody waits for a lock, a reader in the middle of a query keeps what it reads, and grants and
views of others stay. Only when a mart's definition has changed, all are made anew: the former schema is renamed, the new one
made under its name and given the same grants; the former one is dropped when nobody holds it any more.
"""

import contextlib
import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from psycopg import errors

from octo_sync.destinations.base import Draft, Fence, Rows
from octo_sync.destinations.postgres import Session
from octo_sync.destinations.postgres.landed import LANDING, group_of
from octo_sync.destinations.postgres.rows import numbered, rows_of
from octo_sync.destinations.postgres.session import at_once, bytes_of, connect, translated, value_of
from octo_sync.destinations.postgres.sessions import Sessions, lock_out
from octo_sync.destinations.relations import equal, sql
from octo_sync.tables.schema import Table

log = logging.getLogger("octo_sync")

_FORMER = "marts_former_"
_PATIENCE = 1.0
"""Seconds to wait for readers of a former schema before leaving it to the next publish."""
_TURN = 60.0
"""Seconds to wait for the landing in hand before marts are committed."""
_MANY = 10
"""When one in so many rows of a table is new, the planner is told before marts and checks ask for them."""
_MEMORY = "128MB"
"""For a sort or a group of marts and checks: with the 4 MB of a server's default, keys of a million departures go to disk."""
_SAID = "Published by octo-sync at {at} UTC. Definitions: {definition}"
"""The comment on the schema `marts`, which every reader can see. It differs after each publish."""


class PostgresDraft(Draft):
    """What is to be published; see `Draft`."""

    def __init__(self, session: Session, name: str) -> None:
        self._session, self._name = session, name
        self._definition, self._grants, self._keeps = "", _Grants(session), False
        self.is_withdrawn = False

    def run_script(self, statements: Iterable[str]) -> None:
        """Run statements in the draft's transaction."""
        with at_once(), translated(self._name), self._session.transaction():
            for statement in statements:
                self._session.execute(statement.encode())

    def query(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] = (), *, limit: int | None = None) -> Rows:
        """Run one reading statement in the draft's transaction."""
        text, values = numbered(sql, parameters)
        with at_once(), translated(self._name), self._session.transaction():
            return rows_of(self._session.execute(text.encode(), values or None), limit)

    def kept_marts(self, marts: Mapping[str, str], definition: str) -> Collection[str]:
        """All or none: then those that are there are put aside; see `Draft`."""
        self._definition = definition
        with at_once(), translated(self._name):
            said = value_of(self._session, "select obj_description(to_regnamespace('marts'), 'pg_namespace')")
            there = {name for (name,) in self._session.execute(sql("marts")).fetchall()}
            self._keeps = str(said).endswith(definition) and there == marts.keys()
            if there and not self._keeps:
                number = _free_number(self._session)
                self._session.execute(f"alter schema marts rename to {_FORMER}{number}".encode())
            return marts if self._keeps else ()

    def publish(self) -> int:
        """Have the end of the block show it; bytes that the tables take."""
        with at_once(), translated(self._name):
            if not self._keeps:
                self._grants.give(self._session)
            at = value_of(self._session, "select to_char(now() at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.US')")
            said = _SAID.format(at=at, definition=self._definition)
            self._session.execute(f"comment on schema marts is '{said}'".encode())
            return bytes_of(self._session, ("core", "ops", "marts"))

    def withdraw(self) -> None:
        """Keep what readers have."""
        self.is_withdrawn = True


@contextlib.contextmanager
def drafting(sessions: Sessions, fence: Fence, tables: Sequence[Table]) -> Iterator[PostgresDraft]:
    """A draft in a session of its own: landings go on meanwhile, and it sees none of them.

    Raises:
        WriterFenced: A writer with a higher token than `fence` took over; readers keep what they have.
    """
    address, name = sessions.address, sessions.name
    with at_once():
        session = connect(address, lock_timeout=sessions.lock_timeout)
    try:
        with at_once(), translated(name):
            _drop_former(session)
            session.execute(f"set work_mem = '{_MEMORY}'".encode())
            # One snapshot, so that marts and checks speak of the same rows.
            session.execute("begin isolation level repeatable read")
            _bring_over(session, tables)
        draft = PostgresDraft(session, name)
        yield draft
        with at_once(), translated(name):
            if draft.is_withdrawn:
                session.execute("rollback")
            else:
                # In a session of its own, because the draft's sees who wrote when it began.
                with (
                    contextlib.closing(connect(address, lock_timeout=_TURN, landing=True)) as other,
                    other.transaction(),
                ):
                    lock_out(other, fence, name)
                    session.execute("commit")
                _drop_former(session)
    finally:
        # Whatever is not committed goes with the session.
        session.close()


def _bring_over(session: Session, tables: Sequence[Table]) -> None:
    """Make the published tables equal to what has landed, where changes are noted; what is noted later stays noted."""
    # It was just filled, or just emptied: the planner knows nothing of it.
    session.execute(f"analyze {LANDING}.changed".encode())
    noted = f"select name, bool_or(array_position(key, null) is not null) from {LANDING}.changed group by name"
    wholly = dict(session.execute(noted.encode()).fetchall())
    for table in tables:
        if table.private or table.name not in wholly:
            continue
        is_empty = value_of(session, f"select not exists (select from {table.full_name})")
        came = _bring(session, table, wholly=wholly[table.name] or is_empty)
        known = value_of(session, "select reltuples from pg_class where oid = $1::regclass", [table.full_name])
        if came * _MANY > known:
            session.execute(f"analyze {table.full_name}".encode())
    session.execute(f"delete from {LANDING}.changed".encode())


def _bring(session: Session, table: Table, *, wholly: bool) -> int:
    """Bring over the noted rows of a table, or all of them; how many there are now."""
    names = [c.name for c in table.all_columns]
    into = f"insert into {table.full_name} ({', '.join(names)}) select {', '.join(f't.{n}' for n in names)} "
    if wholly:
        session.execute(f"delete from {table.full_name}".encode())
        return session.execute(f"{into} from {LANDING}.{table.name} t".encode()).rowcount
    group, types = group_of(table), {c.name: c.type for c in table.all_columns}
    keys = ", ".join(f"key[{i}]::{types[c]} as {c}" for i, c in enumerate(group, start=1))
    noted = f"(select distinct {keys} from {LANDING}.changed where name = '{table.name}') k"
    same = equal(group, "t", "k")
    session.execute(f"delete from {table.full_name} t using {noted} where {same}".encode())
    return session.execute(f"{into} from {LANDING}.{table.name} t join {noted} on {same}".encode()).rowcount


def _free_number(session: Session) -> int:
    found = session.execute("select nspname from pg_namespace where starts_with(nspname, $1)", [_FORMER]).fetchall()
    taken = [int(tail) for (name,) in found if (tail := name.removeprefix(_FORMER)).isdigit()]
    return max(taken, default=0) + 1


def _drop_former(session: Session) -> None:
    """Drop former schemas that nobody holds or needs; the others stay for the next time."""
    for (schema,) in session.execute(
        "select nspname from pg_namespace where starts_with(nspname, $1) order by 1", [_FORMER]
    ).fetchall():
        try:
            with session.transaction():
                users = session.execute(sql("users_of_schema"), [schema]).fetchall()
                if users:
                    log.warning("action=former_marts_kept schema=%s used_by=%s", schema, ",".join(n for (n,) in users))
                    continue
                session.execute(f"set local lock_timeout = {int(_PATIENCE * 1000)}".encode())
                session.execute(f'drop schema "{schema}" cascade'.encode())
        except errors.LockNotAvailable:
            log.info("action=former_marts_held schema=%s", schema)


class _Grants:
    """Who may do what with the marts, as it is now."""

    def __init__(self, session: Session) -> None:
        self._schema = session.execute(sql("grants_on_schema")).fetchall()
        self._marts = session.execute(sql("grants_on_marts")).fetchall()
        self._defaults = session.execute(sql("grants_by_default")).fetchall()
        self._known = {name for (name,) in session.execute(sql("marts")).fetchall()}

    def give(self, session: Session) -> None:
        """Give the new marts what the former ones had, and those with a new name what is given by default."""
        names = [name for (name,) in session.execute(sql("marts")).fetchall()]
        statements = [f"grant {right} on schema marts to {who}{option}" for right, who, option in self._schema]
        statements += [f'grant {r} on marts."{mart}" to {who}{o}' for mart, r, who, o in self._marts if mart in names]
        for role, right, who, option, is_ours in self._defaults:
            statements.append(
                f"alter default privileges for role {role} in schema marts grant {right} on tables to {who}{option}"
            )
            if is_ours:
                new = (name for name in names if name not in self._known)
                statements += [f'grant {right} on marts."{name}" to {who}{option}' for name in new]
        for statement in statements:
            session.execute(statement.encode())
