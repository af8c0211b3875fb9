"""How staged rows become table rows on DuckDB: SQL for each rule of `schema.Merge`.

Every statement here runs inside the landing transaction that the caller opened. Rows are compared by `row_hash`, so that
an unchanged row is never written. Work tables (`diff`, `changed_…`) are temporary and replaced each time.
Longer than most modules, so that the rules and what they share stand together.
"""

from collections.abc import Mapping, Sequence

import duckdb

from octo_sync.destinations.ddl import quoted
from octo_sync.destinations.landing import moved_departures as moving
from octo_sync.destinations.landing import versions
from octo_sync.destinations.landing.kept_values import Keeping, equal
from octo_sync.destinations.landing.losses import Losses
from octo_sync.destinations.landing.staging import FLAGS as _FLAGS
from octo_sync.destinations.landing.staging import Facts
from octo_sync.tables.schema import Merge, Noun, Table

__all__ = ["Merger"]


def key_json(table: Table, alias: str) -> str:
    """The row's key without the connection, as one text: what `ops.absences.key` holds."""
    return f"to_json([{', '.join(f'{alias}.{c}' for c in table.key if c != 'connection_id')}])::varchar"


class Merger(Keeping):
    """Merges one noun's staged rows into its tables. `written` counts the rows it touched, per table."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        *,
        catalog: str,
        noun: Noun,
        facts: Facts,
        filled: set[str],
        histories: Mapping[str, Table],
        losses: Losses,
    ) -> None:
        self.connection = connection
        self._histories = histories
        self.catalog = catalog
        self.noun = noun
        self._facts = facts
        self._changed: dict[str, tuple[int, int]] = {}
        self.written: dict[str, int] = {}
        self.absent = 0
        self.contradicted: dict[str, int] = {}
        """Per connection the rows that a list shows although their own id was not found before."""
        self._filled = filled
        self._losses = losses
        self._had_rows: set[str] = set()
        self._moved: set[str] = set()

    def merge(self, table: Table) -> None:
        """Bring the table up to date with what is staged."""
        if not self._facts.rows:
            if table.merge is Merge.MERGE and self._has_rows(table):
                self._had_rows.add(table.full_name)
        elif table.merge is Merge.MERGE:
            self._merge(table)
        elif table.merge is Merge.REPLACE:
            self._replace(table)
        elif table.merge is Merge.VERSIONS:
            self._versions(table)

    def unchanged(self, table: Table) -> bool:
        """Whether some of the records left their row in the table as it was."""
        return self._changed.get(table.full_name, (0, 0))[0] < self._facts.rows

    def _count(self, table: Table, rows: int) -> None:
        if rows:
            self.written[table.full_name] = self.written.get(table.full_name, 0) + rows

    def _keys(self, table: Table, columns: Sequence[str]) -> str:
        """Only these columns of the rows as they came: planning all of them costs more than reading them."""
        parts = ", ".join(f"{c.sql} as {c.name}" for c in table.columns if c.name in columns)
        where = f" where {_FLAGS[table.capability]}" if table.capability else ""
        return f"select {parts} from {table.source}{where}"

    def _shown(self, table: Table) -> str:
        """The keys of all that was in the answers, read or not."""
        keys = self._keys(table, table.key)
        if table.full_name != "core.bookings" or not self._facts.seen:
            return keys
        return f"{keys} union all by name select connection_id, booking_uuid from seen_bookings"

    def _has_rows(self, table: Table) -> bool:
        """Whether the table had live rows before this landing. One that had some keeps some: rows are only marked."""
        target = f"{self.catalog}.{table.full_name}"
        if target in self._filled:
            return True
        found = self._run(f"select count(*) from (select 1 from {target} where not is_deleted limit 1)") > 0
        if found:
            self._filled.add(target)
        return found

    def _merge(self, table: Table) -> None:
        target = f"{self.catalog}.{table.full_name}"
        # On a first load nothing can be missed, and looking for it costs as much as the load.
        had_rows = self._has_rows(table)
        if had_rows:
            self._had_rows.add(table.full_name)
        history = self._histories.get(table.full_name)
        changed, prune = self._compare(table, target, history)
        updates = 0
        if changed:
            names = ", ".join(c.name for c in table.columns)
            updates = self._run(
                f"delete from {target} where rowid in (select old_row from diff where old_row is not null)"
            )
            self._count(
                table,
                self._run(
                    f"insert into {target} ({names}, first_seen_at_utc, last_seen_at_utc, is_deleted, deleted_at_utc, "
                    f"row_hash, stale_columns) select {names}, coalesce(old_seen, landing_now()), landing_now(), false, null, "
                    f"row_hash, stale from diff"
                ),
            )
        self._changed[table.full_name] = (changed, updates)
        if history and changed > updates and not history.from_first_change:
            self._count(history, versions.insert_first(self._run, history, self._target(history)))
        if history and updates:
            self._count(history, versions.insert_changed(self._run, history, self._target(history), prune))
        if table.full_name in self._facts.parents:
            keys = ", ".join(table.key)
            self._run(
                f"create or replace temp table changed_{table.full_name.replace('.', '_')} as "
                f"select {keys}, old_row is not null as is_update from diff"
            )
        if table.absent_is_gone and had_rows:
            self._gone(table, target)

    def _compare(self, table: Table, target: str, history: Table | None) -> tuple[int, str]:
        """Make `diff`: what came and is not there as it came. How many rows, and the condition for where they were."""
        # Which capabilities count decides what becomes of a value that was sent unasked, so it is part of the hash.
        flags = sorted({_FLAGS[c.capability] for c in table.columns if c.capability})
        hashed = ", ".join([*(c.name for c in table.tracked), *flags, *(["_content"] if table.content else [])])
        kept = ", ".join(
            f"case when i.{_FLAGS[c.capability]} then i.{c.name} else t.{c.name} end as {c.name}"
            if self._may_lack(c)
            else f"i.{c.name}"
            for c in table.columns
        )
        incoming = f"select *, (hash({hashed}) >> 1)::bigint as row_hash from ({self._incoming(table)})"
        if table.absent_is_gone:
            # Needed twice, and planning such a select costs more than keeping its rows.
            self._run(f"create or replace temp table incoming as {incoming}")
            incoming = "from incoming"
        prune = self._prune()
        changed = self._run(
            f"create or replace temp table diff as "
            f"select {kept}, i.row_hash, t.rowid as old_row, t.first_seen_at_utc as old_seen, {self._losing(table)}"
            f"{versions.beside(history) if history else ''} "
            f"from ({incoming}) i left join {target} t on {equal(table.key, 't', 'i')}{prune} "
            f"where t.row_hash is null or t.row_hash <> i.row_hash or t.is_deleted"
        )
        if prune and history and changed and table.full_name in self._had_rows:
            if moving.find(self._run, table, target, history, prune):
                prune = ""  # their versions are on other days as well
            if moving.carry(self._run, table):
                self._moved.add(table.full_name)
                moving.leave(self._run)
        if changed and table.full_name in self._had_rows:
            self._keep_columns(table, target)
        return changed, prune

    def _prune(self) -> str:
        """Bounds that let DuckDB skip row groups; what moved to these days from others is found by `moving`."""
        if self.noun.name != "availability":
            return ""
        low, high = self.connection.execute(
            "select min(window_start), max(window_end) from staged_availability"
        ).fetchone() or (None, None)
        return f" and t.local_date between date '{low}' and date '{high}'" if low else ""

    def _gone(self, table: Table, target: str) -> None:
        """Rows that the parent's own document no longer lists."""
        flag = f" and p.{_FLAGS[table.capability]}" if table.capability else ""
        # As many rows live now as came: none is gone. Counting is cheaper than planning the update.
        surplus = self._run(
            f"select (select count(*) from {target} t semi join ({self.noun.scope}) p on {equal(table.scope, 't', 'p')}"
            f"{flag} where not t.is_deleted) - (select count(*) from (select distinct {', '.join(table.key)} from incoming))"
        )
        if not surplus:
            return
        # A row may be there for another field's sake, as for a booking's notes; one that lost values shows nothing.
        shown = f"(from incoming i anti join (from diff where lost <> '') d on {equal(table.key, 'd', 'i')})"
        gone = f"not t.is_deleted and not exists (select 1 from incoming i where {equal(table.key, 't', 'i')})"
        stays = self._spare(
            table,
            f"select t.* from {target} t semi join ({self.noun.scope}) p on {equal(table.scope, 't', 'p')}{flag} "
            f"where {gone}",
            shown,
        )
        if stays:
            self._note_older(table)
        rows = self._run(
            f"update {target} t set is_deleted = true, deleted_at_utc = landing_now() "
            f"from ({self.noun.scope}) p where {equal(table.scope, 't', 'p')}{flag} and {gone}{stays}"
        )
        self._count(table, rows)

    def _replace(self, table: Table) -> None:
        target = f"{self.catalog}.{table.full_name}"
        parent = f"changed_{table.parent.replace('.', '_')}"
        same = equal(table.parent_key, "t", "p")
        changed, updates = self._changed[table.parent]
        if not changed:
            return
        present = not table.present or table.full_name in self._facts.present
        # Columns of a capability that the answer lacked keep their old values (R10); so do all details of one.
        kept = [c for c in table.columns if self._may_lack(c) and c.capability != table.capability]
        incoming = self._incoming(table)
        if updates:
            # Asked for several times, and planning such a select costs more than keeping its rows.
            self._run(f"create or replace temp table incoming as {incoming}")
            incoming = "from incoming"
        suspects = self._suspects(table, target, incoming) if updates and present else []
        if (kept and present) or suspects:
            self._run(
                f"create or replace temp table old_details as select t.* from {target} t "
                f"semi join {parent} p on {same} and p.is_update"
            )
        if updates:
            has = _FLAGS[table.capability] if table.capability else "true"
            parts = ", ".join(f"{c.sql} as {c.name}" for c in table.columns if c.name in table.parent_key)
            answered = f"select distinct {parts} from staged_{self.noun.name} where {has}"
            stays = self._spare(
                table,
                f"select t.* from {target} t semi join {parent} p on {same} and p.is_update "
                f"anti join ({incoming}) i on {equal(table.key, 't', 'i')}",
                f"({incoming})",
            )
            self._run(
                f"delete from {target} t using {parent} p, ({answered}) a "
                f"where p.is_update and {same} and {equal(table.parent_key, 't', 'a')}{stays}"
            )
            if stays:
                self._note_stale(table, "spared", quoted(table.name))
        if table.parent in self._moved and any(c.name == "local_date" for c in table.columns):
            # What the answer said nothing of stays, on the day that its parent is on now.
            self._run(f"update {target} t set local_date = p.local_date from moved p where {same}")
        if not present:
            return
        names = ", ".join(c.name for c in table.columns)
        values = ", ".join(
            f"case when t.{_FLAGS[c.capability]} then t.{c.name} else o.{c.name} end as {c.name}"
            if c in kept
            else f"t.{c.name}"
            for c in table.columns
        )
        old = f"left join old_details o on {equal(table.key, 't', 'o')}" if kept or suspects else ""
        # Departures bring unique units; for the few others a key that comes twice is cut here.
        once = (
            ""
            if self.noun.name == "availability"
            else f"qualify row_number() over (partition by {', '.join(f't.{k}' for k in table.key)}) = 1"
        )
        fresh = f"from ({incoming}) t {old} semi join {parent} p on {same} {once}"
        if suspects:
            values += f", {self._lost_details(suspects)} as lost"
            self._run(f"create or replace temp table details as select {values} {fresh}")
            self._keep_details(table, suspects, target, incoming)
            values, fresh = names, "from details"
        self._count(table, self._run(f"insert into {target} ({names}) select {values} {fresh}"))

    def _versions(self, table: Table) -> None:
        target = f"{self.catalog}.{table.full_name}"
        key = [k for k in table.key if k != "valid_from_utc"]
        differs = " or ".join(f"t.{c.name} is distinct from i.{c.name}" for c in table.tracked if c.name not in key)
        names = ", ".join(c.name for c in table.columns)
        judged = [c for c in self._judged(table) if c.name not in key]
        losing = ", ".join(
            f"case when t.{c.name} is not null and i.{c.name} is null then '{c.name}' end" for c in judged
        )
        self._run(
            f"create or replace temp table diff as "
            f"with incoming as (select distinct on ({', '.join(key)}) * from ({self._incoming(table)})) "
            f"select {', '.join('i.' + c.name for c in table.columns)}, t.rowid as old_row, concat_ws(',', {losing}) as lost "
            f"from incoming i left join {target} t on {equal(key, 't', 'i')} and t.is_current "
            f"where t.is_current is null or {differs}"
        )
        self._keep_versions(table, judged, target, differs)
        closed = "set valid_to_utc = greatest(landing_now(), t.valid_from_utc), is_current = false"
        rows = self._run(
            f"update {target} t {closed} where t.rowid in (select old_row from diff where old_row is not null)"
        )
        flag = f" and p.{_FLAGS[table.capability]}" if table.capability else ""
        gone = f"t.is_current and not exists (select 1 from ({self._incoming(table)}) i where {equal(key, 't', 'i')})"
        stays = self._spare(
            table,
            f"select t.* from {target} t semi join ({self.noun.scope}) p on {equal(table.scope, 't', 'p')}{flag} "
            f"where {gone}",
            f"({self._incoming(table)})",
        )
        if stays:
            self._note_stale(table, "spared", quoted(table.name))
        rows += self._run(
            f"update {target} t {closed} from ({self.noun.scope}) p "
            f"where {equal(table.scope, 't', 'p')}{flag} and {gone}{stays}"
        )
        rows += self._run(f"insert into {target} ({names}) select {names} from diff")
        self._count(table, rows)

    def forget_absences(self, table: Table) -> None:
        """Rows that are in an answer again are missed no longer."""
        absences = f"{self.catalog}.ops.absences"
        if self._run(f"select count(*) from {absences} where table_name = '{table.full_name}'"):
            found = self.connection.execute(
                f"delete from {absences} a where table_name = '{table.full_name}' and exists "
                f"(select 1 from ({self._shown(table)}) t "
                f"where t.connection_id = a.connection_id and {key_json(table, 't')} = a.key) "
                f"returning connection_id, resource"
            ).fetchall()
            for connection, resource in found:
                # Its own id was asked first, and the list only because of that answer.
                if table.own_subject and resource == table.noun:
                    self.contradicted[connection] = self.contradicted.get(connection, 0) + 1

    def note_absences(self, table: Table, scope: str) -> None:
        """Record live rows inside `scope` that the complete answers did not have.

        `scope` is a select of the table's scope columns and `resource, subject_key, request_seq` of the subject to ask
        again, with an optional `condition` on `t`. A miss counts once per request (R7).
        """
        target = f"{self.catalog}.{table.full_name}"
        if table.full_name not in self._had_rows:
            return
        absences = f"{self.catalog}.ops.absences"
        key = key_json(table, "t")
        incoming = f"({self._shown(table)})"
        if table.own_subject:
            ask, subject_key, misses = f"'{table.own_subject}'", key, "0"
            # Its own document, asked for later than this answer, knows better (R6).
            said = (
                f" or {table.final} and c.row_count > 0 and c.verified_at_utc > landing_now() - interval '30 days'"
                if table.final
                else ""
            )
            newer = (
                f" and not exists (select 1 from {self.catalog}.ops.coverage c where c.connection_id = t.connection_id "
                f"and c.resource = '{table.own_subject}' and c.key = {key} and (c.request_seq > p.request_seq{said}))"
            )
        else:
            ask, subject_key, misses, newer = "p.resource", "p.subject_key", "1", ""
        going = f"not t.is_deleted and not exists (select 1 from {incoming} i where {equal(table.key, 't', 'i')})"
        if table.unsaid:
            stays = self._spare(
                table,
                f"select t.* from {target} t semi join ({scope}) p on {equal(table.scope, 't', 'p')} where {going}",
                incoming,
            )
            if stays:
                self._note_older(table)
                newer += stays
        missed = self._run(
            f"create or replace temp table missed as select t.connection_id, {key} as key, {ask} as resource, "
            f"{subject_key} as subject_key, {misses} as misses, max(p.request_seq) as request_seq "
            f"from {target} t join ({scope}) p on {equal(table.scope, 't', 'p')}{self._within(table)} "
            f"where {going}{newer} group by all"
        )
        self.absent += missed
        if missed:
            self._run(
                f"update {absences} a set misses = a.misses + m.misses, request_seq = m.request_seq, "
                f"resource = m.resource, subject_key = m.subject_key from missed m "
                f"where a.table_name = '{table.full_name}' and a.connection_id = m.connection_id and a.key = m.key "
                f"and m.request_seq > a.request_seq"
            )
            self._run(
                f"insert into {absences} select connection_id, '{table.full_name}', key, resource, subject_key, misses, "
                f"request_seq, landing_now() from missed m where not exists (select 1 from {absences} a "
                f"where a.table_name = '{table.full_name}' and a.connection_id = m.connection_id and a.key = m.key)"
            )
        if not table.own_subject and self._run(
            f"select count(*) from {absences} where table_name = '{table.full_name}'"
        ):
            # Neither shown nor missed this time: it lies outside the days that are asked for now, such as yesterday. No
            # answer will ever prove anything about it.
            self._run(
                f"delete from {absences} a using ({scope}) p where a.table_name = '{table.full_name}' "
                f"and a.connection_id = p.connection_id and a.resource = p.resource and a.subject_key = p.subject_key "
                f"and a.request_seq < p.request_seq"
            )

    @staticmethod
    def _within(table: Table) -> str:
        if table.full_name == "core.availability":
            return " and t.local_date between p.window_start and p.window_end"
        if table.full_name == "core.bookings":
            return (
                " and case p.date_meaning when 'creation' then t.utc_created_at::date else t.local_date end "
                "between p.window_start and p.window_end"
            )
        return ""
