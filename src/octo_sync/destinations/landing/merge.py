"""How staged rows become table rows on DuckDB: SQL for each rule of `schema.Merge`.

Every statement here runs inside the landing transaction that the caller opened. Rows are compared by `row_hash` and details by
their columns, so that nothing is written that is there already. For each table one statement decides which rows come, change
and go (`decided`), the gate (`gate.py`) puts back what must stay, and at most three carry it out: mark, delete, insert. Work
tables are temporary and replaced each time.
Longer than most modules, so that the rules and what they share stand together.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from octo_sync.destinations.base import LandingReport
from octo_sync.destinations.ddl import MAIN, placed, quoted
from octo_sync.destinations.landing import moved_departures as moving
from octo_sync.destinations.landing import versions
from octo_sync.destinations.landing.kept_values import GONE, Keeping, decided
from octo_sync.destinations.landing.staging import FLAGS as _FLAGS
from octo_sync.destinations.relations import equal, run, sql
from octo_sync.tables.schema import Merge, Table

_AUDIT = {
    "first_seen_at_utc": "coalesce(old_seen, landing_now())",
    "last_seen_at_utc": "landing_now()",
    "is_deleted": "false",
    "deleted_at_utc": "null",
    "row_hash": "row_hash",
    "stale_columns": "stale",
}
"""What a row that is written says of itself."""


def key_json(table: Table, alias: str) -> str:
    """The row's key without the connection, as one text: what `ops.absences.key` holds."""
    return f"to_json([{', '.join(f'{alias}.{c}' for c in table.key if c != 'connection_id')}])::varchar"


def _differ(table: Table, came: str) -> str:
    """Whether the row `t` that is there has something else than the one that came."""
    columns = (c.name for c in table.tracked if c.name not in table.key)
    return " or ".join(f"t.{c} is distinct from {came}.{c}" for c in columns)


@dataclass(frozen=True, slots=True)
class Changes:
    """How many rows a decision is about, how many of them are new or go, and in how many a value would be lost."""

    rows: int = 0
    new: int = 0
    gone: int = 0
    losing: int = 0

    @property
    def came(self) -> int:
        """Rows to write."""
        return self.rows - self.gone

    @property
    def updates(self) -> int:
        """Rows that were there and are written anew."""
        return self.came - self.new


@dataclass
class Merger(Keeping):
    """Merges one noun's staged rows into its tables. Rows that are inserted, changed or marked are counted in `report`."""

    report: LandingReport
    contradicted: Counter[str] = field(default_factory=Counter, init=False)
    """Per connection the rows that a list shows although their own id was not found before."""
    _changes: dict[str, Changes] = field(default_factory=dict, init=False)
    _moved: set[str] = field(default_factory=set, init=False)

    def merge(self, table: Table) -> None:
        """Bring the table up to date with what is staged."""
        if not self.facts.rows:
            if table.merge is Merge.MERGE:
                self._has_rows(table)
        elif table.merge is Merge.MERGE:
            self._merge(table)
        elif table.merge is Merge.REPLACE:
            self._details(table)
        elif table.merge is Merge.VERSIONS:
            self._versions(table)

    def unchanged(self, table: Table) -> bool:
        """Whether some of the records left their row in the table as it was."""
        return self._changes.get(table.full_name, Changes()).came < self.facts.rows

    def _count(self, table: Table, rows: int) -> None:
        if rows:
            self.report.written[table.full_name] += rows

    def _shown(self, table: Table) -> str:
        """The keys of all that was in the answers, read or not; planning all columns costs more than reading them."""
        parts = ", ".join(f"{c.sql} as {c.name}" for c in table.columns if c.name in table.key)
        where = f" where {_FLAGS[table.capability]}" if table.capability else ""
        keys = f"select {parts} from {table.source}{where}"
        if table.full_name != "core.bookings" or not self.facts.seen:
            return keys
        return f"{keys} union all by name select connection_id, booking_uuid from seen_bookings"

    def _has_rows(self, table: Table) -> bool:
        """Whether the table had rows before this landing. One that had some keeps some: rows are only marked."""
        target = placed(table)
        if target not in self.filled and run(self.db, f"select count(*) from (select 1 from {target} limit 1)"):
            self.filled.add(target)
        if target in self.filled:
            self.had_rows.add(table.full_name)
        return target in self.filled

    def _merge(self, table: Table) -> None:
        target, same = placed(table), equal(table.key, "t", "i")
        # On a first load nothing can be missed, and looking for it costs as much as the load.
        had_rows = self._has_rows(table)
        history = self.histories.get(table.full_name)
        # Which capabilities count decides what becomes of a value that was sent unasked, so it is part of the hash.
        flags = sorted({_FLAGS[c.capability] for c in table.columns if c.capability})
        hashed = ", ".join([*(c.name for c in table.tracked), *flags, *(["_content"] if table.content else [])])
        prune = self._prune()
        differs = "t.row_hash is null or t.row_hash <> i.row_hash or t.is_deleted"
        there = f"left join {target} t on {same}"
        if table.absent_is_gone and had_rows:
            near, told = self.noun.scope, ""
            if table.told:
                # More may have come than the answers speak for as a whole, as a product in a second language alone.
                keys = ", ".join(table.scope)
                near = f"select {keys} from ({near}) union select {keys} from ({self._shown(table)})"
                told = f", {table.told} as is_told"
            parts = {"near": near, "told": told, "scope": equal(table.scope, "t", "p")}
            there = sql("in_scope", table=target, same=same, **parts)
            differs = f"case when {GONE} then not t.is_deleted{' and t.is_told' if told else ''} else {differs} end"
        losing = self._losing(table) + (versions.beside(history) if history else "")
        parts = {"values": self._values(table, "t"), "losing": losing, "hashed": hashed, "there": there}
        decision = partial(sql, "decide_rows", incoming=self._incoming(table), differs=differs, **parts)
        changes = self._decide(table, decision(prune=prune))
        if prune and changes.rows and had_rows:
            if changes.new and moving.are_elsewhere(self.db, table, prune, changes.new):
                prune = ""  # their versions are on other days as well
                changes = self._decide(table, decision(prune=""))
            if moving.carry(self.db, table):
                self._moved.add(table.full_name)
                moving.leave(self.db, table)
        changes = self._let_go(table, changes)
        self._write(table, changes, _AUDIT)
        if history and changes.new and not history.from_first_change:
            self._count(history, versions.insert_first(self.db, history, decided(table)))
        if history and changes.updates:
            self._count(history, versions.insert_changed(self.db, history, decided(table), prune))

    def _details(self, table: Table) -> None:
        """Details are compared only where their parent changed; those that differ are written anew."""
        parent = self._changes[table.parent]
        if not parent.came:
            return
        target, owner = placed(table), decided(table.parent)
        self.had_rows.add(table.full_name)
        same = equal(table.parent_key, "t", "p")
        if table.parent in self._moved and any(c.name == "local_date" for c in table.columns):
            # What the answer says nothing of stays, on the day that its parent is on now.
            run(self.db, f"update {target} t set local_date = p.local_date from moved p where {same}")
        present = not table.present or table.full_name in self.facts.present
        # The check leaves each price of a departure once; for the others a key that comes twice is cut here.
        keys = ", ".join(f"i.{k}" for k in table.key)
        once = "" if self.noun.name == "availability" else f" qualify row_number() over (partition by {keys}) = 1"
        # Where every record is new there is nothing to choose from.
        some = "" if parent.new == self.facts.rows else f" semi join {owner} p on {equal(table.parent_key, 'i', 'p')}"
        came = f"({self._incoming(table)}) i{some}{once}"
        if not parent.updates:
            if present:
                names = ", ".join(c.name for c in table.columns)
                first = f"insert into {target} ({names}) select {self._values(table)} from {came}"
                self._count(table, run(self.db, first))
            return
        keys = ", ".join(f"{c.sql} as {c.name}" for c in table.columns if c.name in table.parent_key)
        asked = f" where {_FLAGS[table.capability]}" if table.capability else ""
        asked_same = equal(table.parent_key, "t", "a")
        parts = {"owner": owner, "same": same, "keys": keys, "noun": self.noun.name, "asked": asked}
        old = sql("details_there", table=target, asked_same=asked_same, **parts)
        if present:
            differs = " or ".join(f"i.{c.name} is distinct from t.{c.name}" for c in table.columns)
            parts = {"values": self._values(table, "t"), "losing": self._losing(table), "came": came, "there": old}
            decision = sql("decide_details", same=equal(table.key, "t", "i"), differs=differs, **parts)
        else:
            keys = ", ".join(f"t.{k}" for k in table.key)
            decision = f"select {keys}, t.rowid as old_row, '' as lost, true as gone from {old}"
        self._write(table, self._let_go(table, self._decide(table, decision)), {})

    def _values(self, table: Table, there: str = "") -> str:
        """The row as it will be: of the row `i` that came, and where its answer says nothing, of the one that is `there`."""
        values = {c.name: f"i.{c.name}" for c in table.columns}
        for c in table.columns:
            if self._may_lack(table, c):
                before = f" else {there}.{c.name}" if there else ""
                values[c.name] = f"case when i.{_FLAGS[c.capability]} then i.{c.name}{before} end"
        values |= {k: f"coalesce(i.{k}, {there}.{k})" for k in table.key if there}
        return ", ".join(f"{value} as {name}" for name, value in values.items())

    def _decide(self, table: Table, decision: str) -> Changes:
        """Put down which rows come, change and go, in the work table `decided(table)`; how many."""
        rows = run(self.db, f"create or replace temp table {decided(table)} as {decision}")
        if not rows:
            return Changes()
        new, gone, losing = self.db.execute(sql("counted", decided=decided(table))).fetchone() or (0, 0, 0)
        return Changes(rows, new, gone, losing)

    def _let_go(self, table: Table, changes: Changes) -> Changes:
        """Put back what the gate does not let go: values of rows that change, and rows that would go."""
        work, marks = decided(table), table.merge is Merge.MERGE
        if changes.losing:
            self._keep_values(table)
        if changes.losing and table.merge is Merge.VERSIONS:
            # What is then as it was makes no version.
            same = f"t.rowid = d.old_row and not d.gone and not ({_differ(table, 'd')})"
            stay = run(self.db, f"delete from {work} d using {placed(table)} t where {same}")
            changes = replace(changes, rows=changes.rows - stay)
        if changes.gone:
            shown = f"({self._incoming(table)})"
            if marks:
                # A row may be there for another field's sake, as for a booking's notes; one that lost values shows nothing.
                shown = f"(from {shown} i anti join (from {work} where lost <> '') d on {equal(table.key, 'd', 'i')})"
            spared = self._spare(table, f"from {work} where gone", shown)
            if spared and marks:
                self._note_older(table)
            elif spared:
                self._note_stale(table, "spared", quoted(table.name))
            if spared:
                stay = run(self.db, f"delete from {work} t where gone and {spared}")
                changes = replace(changes, rows=changes.rows - stay, gone=changes.gone - stay)
        self._changes[table.full_name] = changes
        return changes

    def _write(self, table: Table, changes: Changes, audit: Mapping[str, str]) -> None:
        """Carry out what was decided. `audit` are columns of tables in which what goes is marked; of others it is removed."""
        target, work = placed(table), decided(table)
        names = ", ".join(c.name for c in table.columns)
        if changes.gone and audit:
            marked = f"update {target} t set is_deleted = true, deleted_at_utc = landing_now()"
            self._count(table, run(self.db, f"{marked} where t.rowid in (select old_row from {work} where gone)"))
        if table.merge is Merge.VERSIONS and changes.rows > changes.new:
            closed = f"update {target} set valid_to_utc = greatest(landing_now(), valid_from_utc), is_current = false"
            self._count(table, run(self.db, f"{closed} where rowid in (select old_row from {work})"))
        elif changes.updates or (changes.gone and not audit):
            kept = " and not gone" if audit else ""
            old = f"select old_row from {work} where old_row is not null{kept}"
            run(self.db, f"delete from {target} where rowid in ({old})")
        if changes.came:
            into, values = (", ".join([names, *part]) for part in (audit, audit.values()))
            came = f"insert into {target} ({into}) select {values} from {work} where not gone"
            self._count(table, run(self.db, came))

    def _prune(self) -> str:
        """Bounds that let DuckDB skip row groups; what moved to these days from others is found by `moving`."""
        days = self.facts.days
        return f" and t.local_date between date '{days.start}' and date '{days.end}'" if days else ""

    def _versions(self, table: Table) -> None:
        """What differs, or is there no more, ends the current version; what came begins the next one."""
        self.had_rows.add(table.full_name)
        key = [k for k in table.key if k != "valid_from_utc"]
        flag = f" and p.{_FLAGS[table.capability]}" if table.capability else ""
        scope = equal(table.scope, "t", "p") + flag
        parts = {"values": self._values(table, "t"), "losing": self._losing(table), "key": ", ".join(key)}
        parts |= {"incoming": self._incoming(table), "table": placed(table), "near": self.noun.scope, "scope": scope}
        decision = sql("decide_versions", same=equal(key, "t", "i"), differs=_differ(table, "i"), **parts)
        self._write(table, self._let_go(table, self._decide(table, decision)), {})

    def forget_absences(self, table: Table) -> None:
        """Rows that are in an answer again are missed no longer."""
        if table.full_name in self.absences:
            parts = {"table": table.full_name, "shown": self._shown(table), "key": key_json(table, "t")}
            for connection, resource in self.db.execute(sql("shown_again", **parts)).fetchall():
                # Its own id was asked first, and the list only because of that answer.
                if table.own_subject and resource == table.noun:
                    self.contradicted[connection] += 1

    def note_absences(self, table: Table, scope: str) -> None:
        """Record live rows inside `scope` that the complete answers did not have.

        `scope` is a select of the table's scope columns and `resource, subject_key, request_seq` of the subject to ask
        again, of departures and bookings also of `window_start`, `window_end` and `date_meaning`.
        """
        if table.full_name not in self.had_rows:
            return
        target, key, shown = f"{MAIN}.{table.full_name}", key_json(table, "t"), f"({self._shown(table)})"
        going = f"not t.is_deleted and not exists (select 1 from {shown} i where {equal(table.key, 't', 'i')})"
        newer = ""
        asked = {"ask": "p.resource", "subject_key": "p.subject_key", "misses": 1}
        if table.own_subject:
            asked = {"ask": quoted(table.own_subject), "subject_key": key, "misses": 0}
            final = sql("final", final=table.final) if table.final else ""
            newer = " and not " + sql("newer", kind=table.own_subject, key=key, final=final)
        if table.unsaid:
            rows = f"from {target} t semi join ({scope}) p on {equal(table.scope, 't', 'p')} where {going}"
            spared = self._spare(table, f"select t.* {rows}", shown)
            if spared:
                self._note_older(table)
                newer += f" and not {spared}"
        parts = {"table": target, "scope": scope, "within": equal(table.scope, "t", "p") + self._within(table)}
        going = f"{going}{newer}{self._prune()}"
        missed = run(self.db, sql("missed", key=key, going=going, **asked, **parts))
        self.report.absent += missed
        if missed:
            for name in ("missed_again", "missed_first"):
                run(self.db, sql(name, table=table.full_name))
            self.absences.add(table.full_name)
        if not table.own_subject and table.full_name in self.absences:
            run(self.db, sql("missed_outside", table=table.full_name, scope=scope))

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
