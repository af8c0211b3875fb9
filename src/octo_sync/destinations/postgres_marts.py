"""Publishing on PostgreSQL: marts are made and checked in one transaction, beside those that readers see.

The former schema is renamed, the new one made under its name, and the commit swaps them: no reader waits, and one that is in
the middle of a query keeps what it reads. The former one is dropped afterwards, at the next publish if somebody still holds
it. Grants are read before and given again: on the schema, on each mart of the same name, and by default on new ones.
"""

import contextlib
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from octo_sync.destinations.base import Rows
from octo_sync.destinations.postgres_rows import numbered, rows_of
from octo_sync.destinations.postgres_session import Passing, connect, translated
from octo_sync.destinations.postgres_sessions import check_fence
from octo_sync.destinations.postgres_state import size

if TYPE_CHECKING:
    import psycopg

__all__ = ["PostgresDraft", "drafting"]

log = logging.getLogger("octo_sync")

_FORMER = "marts_former_"
_PATIENCE = 1.0
"""Seconds to wait for readers of a former schema before leaving it to the next publish."""
_TURN = 60.0
"""Seconds to wait for the landing in hand before marts are committed."""


class PostgresDraft:
    """Marts in the making; see `Draft`."""

    def __init__(self, session: "psycopg.Connection[Any]", name: str) -> None:
        self._session, self._name = session, name
        self.is_withdrawn = False

    def run_script(self, statements: Iterable[str]) -> None:
        """Run statements in the draft's transaction."""
        with _raised(), translated(self._name), self._session.transaction():
            for statement in statements:
                self._session.execute(statement.encode())

    def query(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] = (), *, limit: int | None = None) -> Rows:
        """Run one reading statement in the draft's transaction."""
        text, values = numbered(sql, parameters)
        with _raised(), translated(self._name), self._session.transaction():
            return rows_of(self._session.execute(text.encode(), values or None), limit)

    def publish(self) -> int:
        """Have the end of the block show them; bytes that the tables take."""
        with _raised(), translated(self._name):
            return size(self._session)

    def withdraw(self) -> None:
        """Keep the former marts."""
        self.is_withdrawn = True


@contextlib.contextmanager
def drafting(address: str, name: str, fence: int, *, lock_timeout: float) -> Iterator[PostgresDraft]:
    """A draft in a session of its own: landings go on meanwhile, and it sees none of them.

    Raises:
        WriterFenced: A writer with a higher token than `fence` took over; the former marts stay.
    """
    with _raised():
        session = connect(address, lock_timeout=lock_timeout)
    try:
        with _raised(), translated(name):
            _drop_former(session)
            # One snapshot, so that marts which are tables and the checks speak of the same rows.
            session.execute("begin isolation level repeatable read")
            grants = _Grants(session)
            has_marts = session.execute("select to_regnamespace('marts') is not null").fetchone() or (False,)
            if has_marts[0]:
                session.execute(f"alter schema marts rename to {_FORMER}{_free_number(session)}".encode())
            session.execute("create schema marts")
        draft = PostgresDraft(session, name)
        yield draft
        with _raised(), translated(name):
            if draft.is_withdrawn:
                session.execute("rollback")
            else:
                grants.give(session)
                with _no_newer_writer(address, name, fence):
                    session.execute("commit")
                _drop_former(session)
    finally:
        # Whatever is not committed goes with the session.
        session.close()


@contextlib.contextmanager
def _no_newer_writer(address: str, name: str, fence: int) -> Iterator[None]:
    """Keep other writers out while the block commits. In a session of its own: the draft's sees who wrote when it began."""
    with contextlib.closing(connect(address, lock_timeout=_TURN)) as session, session.transaction():
        check_fence(session, fence, name)
        yield


@contextlib.contextmanager
def _raised() -> Iterator[None]:
    """Statements of a draft are not given twice, so what may pass is an error all the same."""
    try:
        yield
    except Passing as passing:
        raise passing.error from passing.__cause__


def _free_number(session: "psycopg.Connection[Any]") -> int:
    found = session.execute("select nspname from pg_namespace where starts_with(nspname, $1)", [_FORMER]).fetchall()
    taken = [int(tail) for (name,) in found if (tail := name.removeprefix(_FORMER)).isdigit()]
    return max(taken, default=0) + 1


def _drop_former(session: "psycopg.Connection[Any]") -> None:
    """Drop former schemas that nobody holds or needs; the others stay for the next time."""
    from psycopg import errors  # noqa: PLC0415 - an extra

    for (schema,) in session.execute(
        "select nspname from pg_namespace where starts_with(nspname, $1) order by 1", [_FORMER]
    ).fetchall():
        try:
            with session.transaction():
                users = session.execute(_USERS, [schema]).fetchall()
                if users:
                    log.warning("action=former_marts_kept schema=%s used_by=%s", schema, ",".join(n for (n,) in users))
                    continue
                session.execute(f"set local lock_timeout = {int(_PATIENCE * 1000)}".encode())
                session.execute(f'drop schema "{schema}" cascade'.encode())
        except errors.LockNotAvailable:
            log.info("action=former_marts_held schema=%s", schema)


# Views and the like outside the schema that read one inside: dropping it would drop them.
_USERS = """
select distinct un.nspname || '.' || u.relname from pg_depend d
join pg_rewrite r on r.oid = d.objid and d.classid = 'pg_rewrite'::regclass
join pg_class u on u.oid = r.ev_class join pg_namespace un on un.oid = u.relnamespace
join pg_class m on m.oid = d.refobjid and d.refclassid = 'pg_class'::regclass
join pg_namespace mn on mn.oid = m.relnamespace
where mn.nspname = $1 and un.nspname <> $1 order by 1
"""


class _Grants:
    """Who may do what with the marts, as it is now."""

    def __init__(self, session: "psycopg.Connection[Any]") -> None:
        who = "case when a.grantee = 0 then 'public' else quote_ident(pg_get_userbyid(a.grantee)) end"
        option = "case when a.is_grantable then ' with grant option' else '' end"
        not_own = "a.grantee <> n.nspowner"
        self._schema = session.execute(
            f"select a.privilege_type, {who}, {option} from pg_namespace n, aclexplode(n.nspacl) a "
            f"where n.nspname = 'marts' and {not_own}".encode()
        ).fetchall()
        self._marts = session.execute(
            f"select c.relname, a.privilege_type, {who}, {option} from pg_class c "
            "join pg_namespace n on n.oid = c.relnamespace, aclexplode(c.relacl) a "
            f"where n.nspname = 'marts' and c.relkind in ('r', 'v', 'm') and a.grantee <> c.relowner".encode()
        ).fetchall()
        self._defaults = session.execute(
            f"select quote_ident(pg_get_userbyid(d.defaclrole)), a.privilege_type, {who}, {option}, "
            "d.defaclrole = current_user::regrole from pg_default_acl d "
            "join pg_namespace n on n.oid = d.defaclnamespace, aclexplode(d.defaclacl) a "
            f"where n.nspname = 'marts' and d.defaclobjtype = 'r' and a.grantee <> d.defaclrole "
            # What is given by default of what another role makes is not ours to give, and nothing of what we make.
            "and pg_has_role(current_user, d.defaclrole, 'member')".encode()
        ).fetchall()
        self._known = {name for (name,) in session.execute(_NAMES).fetchall()}

    def give(self, session: "psycopg.Connection[Any]") -> None:
        """Give the new marts what the former ones had, and those with a new name what is given by default."""
        names = [name for (name,) in session.execute(_NAMES).fetchall()]
        statements = [f"grant {right} on schema marts to {who}{option}" for right, who, option in self._schema]
        for mart, right, who, option in self._marts:
            if mart in names:
                statements.append(f'grant {right} on marts."{mart}" to {who}{option}')
        for role, right, who, option, is_ours in self._defaults:
            statements.append(
                f"alter default privileges for role {role} in schema marts grant {right} on tables to {who}{option}"
            )
            if is_ours:
                new = (name for name in names if name not in self._known)
                statements += [f'grant {right} on marts."{name}" to {who}{option}' for name in new]
        for statement in statements:
            session.execute(statement.encode())


_NAMES = (
    "select c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace "
    "where n.nspname = 'marts' and c.relkind in ('r', 'v', 'm') order by 1"
)
