"""Which values and details a landing keeps although its answers have them no more (R10): SQL for what `Losses` judged.

Every statement here runs inside the landing transaction. What is kept is put back into the merge's work table of rows as they
will be (`decided`), before they are written.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import duckdb

from octo_sync.destinations.ddl import MAIN, placed, quoted
from octo_sync.destinations.landing.losses import Group, Losses, within
from octo_sync.destinations.landing.staging import FLAGS as _FLAGS
from octo_sync.destinations.landing.staging import Facts
from octo_sync.destinations.relations import equal, run, sql
from octo_sync.tables.schema import Column, Merge, Noun, Table

GONE = "i.connection_id is null"
"""Whether no row `i` came for the row `t` that is there."""


def decided(table: Table | str) -> str:
    """The work table of a table's rows that come, change or go in this landing.

    It has the table's columns as they will be, `old_row` (null: new), `lost` (columns that would lose their value), and `gone`
    unless the table keeps versions.
    """
    return f"decided_{table if isinstance(table, str) else table.full_name}".replace(".", "_")


def _lost(column: str) -> str:
    """Whether the row `d` would lose the column's value."""
    return f"list_contains(string_split(d.lost, ','), '{column}')"


def _kept(
    table: Table,
    columns: Sequence[Column],
    verdicts: Mapping[Group, Mapping[str, str]],
    by: Sequence[str] = ("doubtful", "drift"),
) -> dict[str, str]:
    """Columns of which values stay, with the condition for the rows `d` in which they do, by one of these verdicts."""
    kept = {}
    for c in columns:
        groups = [group for group, named in verdicts.items() if named.get(c.name) in by]
        if groups:
            kept[c.name] = f"{_lost(c.name)} and {within(table, groups, 'd.')}"
    # The parts of a price say nothing without each other: of one that keeps a part, all stays that would be lost.
    price = [c.name for c in columns if c.name.startswith("currency") or c.name.endswith(("_minor", "_amount"))]
    some = " or ".join(f"({kept[name]})" for name in price if name in kept)
    return kept | ({name: f"{_lost(name)} and ({some})" for name in price} if some else {})


@dataclass
class Keeping:
    """What a merge of one noun's staged rows does before it takes anything away.

    `filled` are the tables that are known to have rows, `histories` those that keep versions by the table they follow,
    `absences` the tables of which rows are missed, `unlisted` the bookings (connection, key) that answered for themselves and
    that the list of their days lacks.
    """

    db: duckdb.DuckDBPyConnection
    noun: Noun
    facts: Facts
    losses: Losses
    filled: set[str]
    histories: Mapping[str, Table]
    absences: set[str]
    unlisted: set[tuple[str, str]]
    had_rows: set[str] = field(default_factory=set, init=False)

    def _incoming(self, table: Table) -> str:
        """The rows as they came, with the flags of the capabilities that the answer really had (R10)."""
        columns = ", ".join(f"{c.sql} as {c.name}" for c in table.columns)
        flags = {_FLAGS[c] for c in (table.capability, *(c.capability for c in table.columns)) if c}
        extra = "".join(f", {flag}" for flag in sorted(flags))
        extra += ", source as _source" if table.full_name in self.histories else ""
        content = f", {table.content} as _content" if table.content else ""
        where = f" where {_FLAGS[table.capability]}" if table.capability else ""
        return f"select {columns}{extra}{content} from {table.source}{where}"

    def _may_lack(self, table: Table, column: Column) -> bool:
        """Whether some answer of this landing may lack the column's capability."""
        return column.capability not in ("", table.capability) and _FLAGS[column.capability] not in self.facts.flags

    def _judged(self, table: Table) -> list[Column]:
        """The columns whose values an answer may take away."""
        return [c for c in table.tracked if c.sql and c.name not in table.key]

    def _losing(self, table: Table) -> str:
        """What the merge selects beside each row: columns that would lose their value, and those that no answer is about."""
        if table.full_name not in self.had_rows:
            return "'' as lost, null::varchar as stale"
        lost, stale = [], []
        for c in self._judged(table):
            flag = f"i.{_FLAGS[c.capability]}" if self._may_lack(table, c) else ""
            stays = " and t.status is not distinct from i.status" if c.fades else ""
            told = f" and {flag}" if flag else ""
            lost.append(f"case when t.{c.name} is not null and i.{c.name} is null{told}{stays} then '{c.name}' end")
            if flag:
                stale.append(f"case when t.{c.name} is not null and not {flag} then '{c.name}' end")
        marks = table.merge is Merge.MERGE
        older = f"nullif(concat_ws(',', {', '.join(stale)}), '')" if stale else "null::varchar"
        whole = f"t.is_deleted or {GONE}" if marks else GONE
        lost_columns = f"case when {whole} then '' else concat_ws(',', {', '.join(lost)}) end as lost"
        return f"{lost_columns}, {older} as stale" if marks else lost_columns

    def _keep_values(self, table: Table) -> None:
        """Put back into the rows what the gate does not let go."""
        target, work, columns = placed(table), decided(table), self._judged(table)
        marks = table.merge is Merge.MERGE
        seen = self._seen(table, columns)
        if seen and marks:
            # As far as they are as verified.
            seen += " where not t.is_deleted and t.stale_columns is null"
        verdicts = self.losses.columns(table, columns, losing=work, shown=self._incoming(table), seen=seen)
        settled = self._undated(table)
        doubtful = {
            name: f"{is_lost}{settled}" for name, is_lost in _kept(table, columns, verdicts, ["doubtful"]).items()
        }
        kept = _kept(table, columns, verdicts, ["drift"]) | doubtful
        if not kept:
            return
        values = [f"{name} = case when {is_lost} then t.{name} else d.{name} end" for name, is_lost in kept.items()]
        if marks:
            # Without a hash the row is judged anew by each answer that is read.
            stale = ["d.stale", *(f"case when {is_lost} then '{name}' end" for name, is_lost in kept.items())]
            values += [f"stale = nullif(concat_ws(',', {', '.join(stale)}), '')", "row_hash = null"]
        else:
            for name, is_lost in kept.items():
                self._note_stale(table, f"(select * from {work} d where {is_lost})", quoted(f"{table.name}.{name}"))
        if doubtful and not table.private:
            self._doubt(work, " or ".join(f"({is_lost})" for is_lost in doubtful.values()))
        lost = " or ".join(f"({is_lost})" for is_lost in kept.values())
        run(self.db, f"update {work} d set {', '.join(values)} from {target} t where t.rowid = d.old_row and ({lost})")

    def _undated(self, table: Table) -> str:
        """That the row `d` is not that of a booking which its list lacks, and which has no day of travel by its own answer.

        No list shows such a booking any more, so none could decide about it.
        """
        if table.full_name != "core.bookings" or not self.unlisted:
            return ""
        keys = ", ".join(f"({quoted(connection)}, {quoted(key)})" for connection, key in sorted(self.unlisted))
        return f" and not (d.local_date is null and (d.connection_id, to_json([d.booking_uuid])::varchar) in ({keys}))"

    def _seen(self, table: Table, columns: Sequence[Column] = ()) -> str:
        """Rows of bookings that were in the answers and not read, with these columns; '' where there are none."""
        if not self.facts.seen:
            return ""
        names = [*filter(None, [table.at_own[0]]), *(c.name for c in columns)]
        return (
            f"select {', '.join(f't.{n}' for n in ['connection_id', *names])} from {placed(table)} t join seen_bookings n "
            f"on n.connection_id = t.connection_id and n.booking_uuid = t.booking_uuid"
        )

    def _spare(self, table: Table, going: str, came: str) -> str:
        """Make `spared`: rows that would go because the answers say nothing about them, and stay. '' where there are none.

        Returned is the condition for a row `t` of the table to be among them. `going` is a select of rows `t` that would go,
        `came` a relation of those that came.
        """
        names = ", ".join(c for c in ("connection_id", table.at_own[0]) if c)
        seen = self._seen(table)
        shown = f"select {names} from {came}{f' union all {seen}' if seen else ''}"
        probe = self.db.execute(f"select * from ({table.unsaid}) limit 1") if table.unsaid else None
        if probe is None or probe.fetchone() is None:
            return ""
        columns = [column[0] for column in probe.description or ()]
        same = equal(columns, "u", "t")
        found = run(
            self.db,
            f"create or replace temp table spared as select distinct {', '.join(f't.{k}' for k in table.key)} "
            f"from ({going}) t where exists (select 1 from ({table.unsaid}) u where {same})",
        )
        verdicts = self.losses.details(table, "spared", shown) if found else {}
        if doubtful := [group for group, v in verdicts.items() if v == "doubtful"]:
            self._doubt("spared", within(table, doubtful, "d."))
        kept = [group for group, v in verdicts.items() if v != "real"]
        if not kept:
            return ""
        run(self.db, f"delete from spared where not ({within(table, kept, '')})")
        return f"exists (select 1 from spared s where {equal(table.key, 's', 't')})"

    def _doubt(self, relation: str, doubtful: str) -> None:
        """Bookings of which details stay until a list decides: rows `d` of the relation."""
        if self.noun.name == "bookings":
            found = self.db.execute(
                f"select distinct connection_id, booking_uuid from {relation} d where {doubtful}"
            ).fetchall()
            self.losses.doubtful.update((str(c), str(u)) for c, u in found)

    def _note_older(self, table: Table) -> None:
        """Say of the rows that were spared that they are older as a whole."""
        run(self.db, sql("older_rows", table=placed(table), same=equal(table.key, "t", "s")))

    def _note_stale(self, table: Table, rows: str, entry: str) -> None:
        """Say in the rows that own these details that they are older: `rows` is a relation with the owner's key."""
        keys = table.parent_key or table.scope
        parts = {"owner": f"{MAIN}.{table.parent or 'core.products'}", "keys": ", ".join(keys)}
        run(self.db, sql("older_details", rows=rows, entry=entry, same=equal(keys, "t", "s"), **parts))
