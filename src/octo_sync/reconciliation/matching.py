"""Which rows belong together: pairs, in passes; then groups; then what is alone.

A pass takes one key, as it is or normalised, among the rows that are still alone, and pairs those whose value only one row of
each side has. What is left and shares a key all the same is a group: one side has the row more than once. Every row ends in
exactly one item.

**Told apart.** Two rows that both have a stronger key (an earlier one, of one column) and not the same are two bookings,
whatever weaker keys they share: the bookings of an order share their reseller's reference. Such rows never become a group, and
a pair only when no other row of either side has the weaker key. Rows here with another `booking_uuid` are other bookings,
whatever the keys.

The result is three tables. `pair (h, t, rule, normalised)` has the rows of items with one row on each side, `member (side, rid,
item)` the rows of all other items, and `grouped (item, rule)` those items. `rule` is the number of the key that brought both
sides together, null when there is only one side. An item's number is `2 * h` by a row here, else `2 * t + 1` by a row there.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import duckdb

from octo_sync.reconciliation.model import Rules


def match(db: duckdb.DuckDBPyConnection, rules: Rules) -> None:
    """Make `pair`, `member` and `grouped` from `h` and `t`, as `sides.load` made them."""
    db.execute("create table pair (h bigint, t bigint, rule integer, normalised boolean)")
    db.execute("create table member (side varchar, rid bigint, item bigint)")
    db.execute("create table grouped (item bigint, rule integer)")
    matching, keys = _Matching(db, rules), range(len(rules.keys))
    for key in keys:
        matching.pairs(key, f"k{key}", normalised=False)
        matching.pairs(key, f"n{key}", normalised=True)
    for key in keys:
        matching.groups(key)
    for key in keys:
        matching.repeats(key)
    matching.alone()


def telling(rules: Rules, key: int) -> list[int]:
    """The keys that tell rows apart which share `key`: stronger ones, of one column each."""
    return [i for i in range(key) if len(rules.keys[i].here) == 1]


@dataclass(slots=True)
class _Matching:
    """`left` are the tables of the rows that are in no item yet, at first all of them; `rows` how many those are.

    A statement costs milliseconds even when there is nothing to do, so a step that has no rows is not taken.
    """

    db: duckdb.DuckDBPyConnection
    rules: Rules
    left: dict[str, str] = field(default_factory=lambda: {"h": "h", "t": "t"})
    rows: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rows = {side: self._count(f"select count(*) from {side}") for side in "ht"}

    def pairs(self, key: int, name: str, *, normalised: bool) -> None:
        """One pass: `name` is the column of the key, as it is or normalised."""
        if not all(self.rows.values()):
            return
        stronger = telling(self.rules, key)
        single = (
            f"select {name} as key, min(rid) as rid{''.join(f', any_value(n{i}) as n{i}' for i in stronger)} "
            f"from {{rows}} where {name} is not null group by 1 having count(*) = 1"
        )
        apart = " or ".join(f"coalesce(h.n{i} <> t.n{i}, false)" for i in stronger) or "false"
        self.db.execute(
            f"create or replace temp table found as select key, h.rid as h, t.rid as t, {apart} as apart "
            f"from ({single.format(rows=self.left['h'])}) h join ({single.format(rows=self.left['t'])}) t using (key)"
        )
        if stronger:
            if len(self.rules.keys[key].here) > 1:
                doubtful = "true"
            else:
                doubted = "select key from found where apart"
                often = f"select {name} from {{}} where {name} in ({doubted}) group by 1 having count(*) > 1"
                doubtful = f"key in ({often.format('h')}) or key in ({often.format('t')})"
            self.db.execute(f"delete from found where apart and ({doubtful})")
        if self._count("insert into pair select h, t, ?, ? from found", [key, normalised]):
            self._take("select 'h' as side, h as rid from found union all select 't', t from found")

    def groups(self, key: int) -> None:
        """Rows that are left and share a key with a row of the other side that nothing tells apart from them."""
        if not all(self.rows.values()):
            return
        shapes = " union all ".join(
            f"select distinct '{side}' as side, n{key} as key, {self._mask(key)} as mask "
            f"from {self.left[side]} where n{key} is not null"
            for side in "ht"
        )
        self.db.execute(f"create or replace temp table shapes as {shapes}")
        rows = " union all ".join(
            f"select '{side}' as side, rid, n{key} as key, k{key} as raw, {self._mask(key)} as mask from {self.left[side]}"
            for side in "ht"
        )
        found = self._count(
            f"create or replace temp table bunch as select side, rid, key, raw from ({rows}) semi join ("
            "select a.side, a.key, a.mask from shapes a join shapes b "
            "on a.key = b.key and a.side <> b.side and a.mask & b.mask = 0"
            ") using (side, key, mask)"
        )
        if not found:
            return
        self.db.execute(
            "create or replace temp table size as select key, 2 * min(rid) filter (side = 'h') as item, count(*) as size, "
            "min(rid) filter (side = 'h') as h, min(rid) filter (side = 't') as t, min(raw) <> max(raw) as normalised "
            "from bunch group by key"
        )
        self.db.execute("insert into pair select h, t, ?, normalised from size where size = 2", [key])
        self.db.execute("insert into grouped select item, ? from size where size > 2", [key])
        self.db.execute("insert into member select side, rid, item from bunch join size using (key) where size > 2")
        self._take("select side, rid from bunch")

    def repeats(self, key: int) -> None:
        """A row that is left and shares a key with one item is that once more.

        Not a row with a stronger key, which nothing else has, or it would not be left: that says another booking. A key that
        several items have says nothing.
        """
        if not any(self.rows.values()):
            return
        db = self.db
        bare = "".join(f" and n{i} is null" for i in telling(self.rules, key))
        spare = " union all ".join(
            f"select '{side}' as side, rid, n{key} as key, id from {self.left[side]} where n{key} is not null{bare}"
            for side in "ht"
        )
        if not self._count(f"create or replace temp table spare as {spare}"):
            return
        near = " union all ".join(
            f"select '{side}' as side, rid from {side} where n{key} in (select key from spare)" for side in "ht"
        )
        if self._count(f"create or replace temp table near as {near}") == self._count("select count(*) from spare"):
            return  # they know of nobody but themselves
        db.execute(
            "create or replace temp table mate as with items as ("
            "select 2 * h as item from pair where h in (select rid from near where side = 'h') "
            "union select 2 * h from pair where t in (select rid from near where side = 't') "
            "union select item from member semi join near using (side, rid)) "
            "select 'h' as side, h as rid, item from pair join items on item = 2 * h "
            "union all select 't', t, item from pair join items on item = 2 * h "
            "union all select side, rid, item from member semi join items using (item)"
        )
        mates = " union all ".join(
            f"select item, n{key} as key, id from mate join {side} using (rid) where side = '{side}'" for side in "ht"
        )
        found = self._count(
            f"create or replace temp table joins as with mates as ({mates}), "
            "whole as (select item, min(id) as low, max(id) as high from mates group by item), "
            "alike as (select key, min(item) as item, min(low) as low, max(high) as high "
            "from mates join whole using (item) group by key having min(item) = max(item)) "
            "select spare.side, spare.rid, alike.item from spare join alike using (key) "
            "where spare.id is null or alike.low is null or (alike.low = spare.id and alike.high = spare.id)"
        )
        if not found:
            return
        db.execute("insert into grouped select 2 * h, rule from pair where 2 * h in (select item from joins)")
        db.execute(
            "insert into member select 'h', h, 2 * h from pair where 2 * h in (select item from joins) "
            "union all select 't', t, 2 * h from pair where 2 * h in (select item from joins)"
        )
        db.execute("delete from pair where 2 * h in (select item from joins)")
        db.execute("insert into member select side, rid, item from joins")
        self._take("select side, rid from joins")

    def alone(self) -> None:
        """The rest: an item for each row, or for the rows of one side that have the same first key."""
        keys = ", ".join(f"'{i} ' || n{i}" for i in range(len(self.rules.keys)))
        for side, odd in (("h", 0), ("t", 1)):
            if not self.rows[side]:
                continue
            self.db.execute(
                "create or replace temp table lone as select rid, "
                f"2 * min(rid) over (partition by coalesce({keys}, 'row ' || rid), id) + {odd} as item from {self.left[side]}"
            )
            self.db.execute("insert into grouped select distinct item, null from lone")
            self.db.execute(f"insert into member select '{side}', rid, item from lone")

    def _mask(self, key: int) -> str:
        """Which telling keys a row has, as bits.

        Two rows that are left and share `key` are told apart when they share a bit: had they the same value, then they would
        no longer be left, unless a still stronger key tells them apart.
        """
        return " + ".join(f"if(n{i} is null, 0, {1 << i})" for i in telling(self.rules, key)) or "0"

    def _take(self, taken: str) -> None:
        """Take rows away from what is left; `taken` selects their `side` and `rid`."""
        names = [f"{letter}{i}" for i in range(len(self.rules.keys)) for letter in "kn"]
        for side, rows in self.left.items():
            self.rows[side] = self._count(
                f"create or replace temp table left_{side} as select rid, id, {', '.join(names)} from {rows} "
                f"anti join (select rid from ({taken}) where side = '{side}') using (rid)"
            )
            self.left[side] = f"left_{side}"

    def _count(self, statement: str, values: Sequence[object] = ()) -> int:
        """How many rows a statement counted, or wrote."""
        row = self.db.execute(statement, values or None).fetchone()
        return int(row[0]) if row else 0
