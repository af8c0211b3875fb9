"""What the flows ask a warehouse in PostgreSQL about itself: numbers, coverage, what is known, missed and offered."""

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from octo_sync.destinations.base import Absence, Covered, KnownBookings
from octo_sync.model import Subject, Window
from octo_sync.tables.schema import Merge, Table

if TYPE_CHECKING:
    import psycopg

    Session = psycopg.Connection[Any]

__all__ = ["absences", "covered", "highest_numbers", "known_bookings", "live_rows", "mart_tables", "size"]


def highest_numbers(session: "Session") -> tuple[int, int]:
    """The highest request number and fence seen; see `Destination`."""
    row = session.execute(
        "select (select coalesce(max(request_seq), 0) from ops.coverage), "
        "(select coalesce(max(fence), 0) from ops.writer)"
    ).fetchone() or (0, 0)
    return int(row[0]), int(row[1])


def covered(session: "Session", subjects: Collection[Subject]) -> Mapping[Subject, Covered]:
    """The last landing of each subject; see `Destination`."""
    wanted = {(s.connection, str(s.kind), s.key): s for s in subjects}
    if not wanted:
        return {}
    found = session.execute(
        "select connection_id, resource, key, request_seq, answer_hash, window_start, window_end, row_count "
        "from ops.coverage where (connection_id, resource, key) in "
        "(select * from unnest($1::text[], $2::text[], $3::text[]))",
        [list(column) for column in zip(*wanted, strict=True)],
    ).fetchall()
    return {
        wanted[row[0], row[1], row[2]]: Covered(row[3], row[4], Window(row[5], row[6]) if row[5] else None, row[7])
        for row in found
    }


def known_bookings(session: "Session", connection: str, window: Window) -> KnownBookings:
    """What live bookings of a window were landed from; see `Destination`."""
    day = timedelta(days=1)
    found = session.execute(
        "select payload_digest, booking_uuid, local_date, utc_created_at::date from core.bookings "
        "where connection_id = $1 and payload_digest is not null and not is_deleted and "
        "(local_date between $2 and $3 or utc_created_at >= $4::date and utc_created_at < $5::date)",
        [connection, window.start, window.end, window.start - day, window.end + 2 * day],
    ).fetchall()
    return {digest: (uuid, travel, created) for digest, uuid, travel, created in found}


def absences(session: "Session") -> list[Absence]:
    """Rows missed at present; see `Destination`."""
    columns = "connection_id, table_name, key, resource, subject_key, misses"
    found = session.execute(f"select {columns} from ops.absences".encode()).fetchall()
    return [Absence(c, t, k, Subject.from_key(c, r, key), m) for c, t, k, r, key, m in sorted(found)]


def live_rows(session: "Session", tables: Sequence[Table]) -> Mapping[tuple[str, str], int]:
    """Live rows per connection and merged table; see `Destination`."""
    chosen = [t.full_name for t in tables if t.merge is Merge.MERGE and not t.private]
    sql = " union all ".join(
        f"select connection_id, '{t}', count(*) from {t} where not is_deleted group by 1" for t in chosen
    )
    return {(c, t): n for c, t, n in session.execute(sql.encode()).fetchall()}


def mart_tables(session: "Session") -> list[str]:
    """The marts that are tables, as SQL names them."""
    found = session.execute(
        "select c.oid::regclass::text from pg_class c where c.relkind = 'r' and c.relnamespace = to_regnamespace('marts')"
    ).fetchall()
    return sorted(name for (name,) in found)


def size(session: "Session") -> int:
    """Bytes that the tables take which others may read."""
    row = session.execute(
        "select coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint from pg_class c "
        "join pg_namespace n on n.oid = c.relnamespace where n.nspname in ('core', 'ops', 'marts') "
        "and c.relkind in ('r', 'm')"
    ).fetchone() or (0,)
    return int(row[0])
