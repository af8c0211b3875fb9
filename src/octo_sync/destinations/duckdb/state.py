"""What the flows ask a warehouse in DuckDB about itself: numbers, coverage, what is known, missed and live."""

from collections.abc import Collection, Mapping, Sequence

import duckdb

from octo_sync.destinations.base import Absence, Covered, KnownBookings
from octo_sync.model import Subject, Window
from octo_sync.tables.schema import Merge, Table

__all__ = ["absences", "covered", "highest_numbers", "known_bookings", "live_rows"]


def highest_numbers(db: duckdb.DuckDBPyConnection) -> tuple[int, int]:
    """The highest request number and fence seen; see `Destination`."""
    seq = db.execute("select coalesce(max(request_seq), 0) from ops.coverage").fetchone() or (0,)
    fence = db.execute("select coalesce(max(fence), 0) from ops.writer").fetchone() or (0,)
    return int(seq[0]), int(fence[0])


def covered(db: duckdb.DuckDBPyConnection, subjects: Collection[Subject]) -> Mapping[Subject, Covered]:
    """The last landing of each subject; see `Destination`."""
    wanted = {(s.connection, str(s.kind), s.key): s for s in subjects}
    if not wanted:
        return {}
    keys = list(wanted)
    found = db.execute(
        "select connection_id, resource, key, request_seq, answer_hash, window_start, window_end, row_count "
        "from ops.coverage semi join (select unnest($1::varchar[]) as connection_id, "
        "unnest($2::varchar[]) as resource, unnest($3::varchar[]) as key) using (connection_id, resource, key)",
        [[k[0] for k in keys], [k[1] for k in keys], [k[2] for k in keys]],
    ).fetchall()
    return {
        wanted[row[0], row[1], row[2]]: Covered(row[3], row[4], Window(row[5], row[6]) if row[5] else None, row[7])
        for row in found
    }


def known_bookings(db: duckdb.DuckDBPyConnection, connection: str, window: Window) -> KnownBookings:
    """What live bookings of a window were landed from; see `Destination`."""
    found = db.execute(
        "select payload_digest, booking_uuid, local_date, utc_created_at::date from core.bookings "
        "where connection_id = $1 and payload_digest is not null and not is_deleted and "
        "(local_date between $2 and $3 or utc_created_at::date between $2 - 1 and $3 + 1)",
        [connection, window.start, window.end],
    ).fetchall()
    return {digest: (uuid, travel, created) for digest, uuid, travel, created in found}


def absences(db: duckdb.DuckDBPyConnection) -> list[Absence]:
    """Rows missed at present; see `Destination`."""
    found = db.execute(
        "select connection_id, table_name, key, resource, subject_key, misses from ops.absences order by all"
    ).fetchall()
    return [Absence(c, t, k, Subject.from_key(c, r, s), m) for c, t, k, r, s, m in found]


def live_rows(db: duckdb.DuckDBPyConnection, tables: Sequence[Table]) -> Mapping[tuple[str, str], int]:
    """Live rows per connection and merged table; see `Destination`."""
    chosen = [t.full_name for t in tables if t.merge is Merge.MERGE and not t.private]
    sql = " union all ".join(
        f"select connection_id, '{t}', count(*) from {t} where not is_deleted group by all" for t in chosen
    )
    return {(c, t): n for c, t, n in db.execute(sql).fetchall()}
