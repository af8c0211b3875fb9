"""What differs between the two rows of a pair.

`odd` is the table of the pairs that are not simply the same: `(item, h, t, rule, normalised, outside, v0, v1, …, x0, x1, …)`.
There is a verdict `v` per compared field, then an `x` per key, which is `DIFFERS` when both sides have that key and not the
same; `outside` says that both rows travel outside of the window.
"""

from collections.abc import Mapping

import duckdb

from octo_sync.reconciliation.model import Kind, Rules

EQUAL, WITHIN, DIFFERS, NOT_COMPARED = range(4)
"""Amounts in different currencies are not compared: the currency is the difference."""


def name_currencies(db: duckdb.DuckDBPyConnection, rules: Rules) -> None:
    """A word there that stands for several currencies is, in an item, the one that its rows here have.

    What only the ledger has keeps the word: nobody knows which currency it is.
    """
    at = next((i for i, f in enumerate(rules.fields) if f.here == rules.currency), None)
    if at is None or all(len(here) == 1 for here in (rules.fields[at].mapping or {}).values()):
        return
    db.execute(
        "update t set cur = told.cur from (select met.t, min(h.cur) as cur from (select h, t from pair union all "
        "select a.rid, b.rid from member a join member b using (item) where a.side = 'h' and b.side = 't') met "
        "join h on h.rid = met.h join t on t.rid = met.t "
        f"join mapped on mapped.field = {at} and mapped.there = upper(t.f{at}) and mapped.here = h.cur "
        "group by met.t) told where told.t = t.rid"
    )


def compare(db: duckdb.DuckDBPyConnection, rules: Rules, types: Mapping[str, Kind]) -> None:
    """Make `odd` from `pair`, `h` and `t`."""
    columns, joins = [], []
    for i, field in enumerate(rules.fields):
        h, t = f"h.f{i}", f"t.f{i}"
        same = f"{h} is not distinct from {t}"
        close = "false"
        if types[field.here] == "text":
            # Nobody means another thing by another case.
            same = f"upper({h}) is not distinct from upper({t})"
            if field.mapping is not None:
                joins.append(
                    f"left join mapped m{i} on m{i}.field = {i} and m{i}.there = upper({t}) and m{i}.here = upper({h})"
                )
                # A value that the mapping names stands for what the mapping says and for nothing else.
                same = f"m{i}.field is not null or ({same} and coalesce({_is_unmapped(i)}, true))"
        elif types[field.here] == "amount":
            close = f"abs({t} - {h}) <= greatest(coalesce(tolerance.amount, $default), $relative * abs({h}))"
        verdict = f"case when {same} then {EQUAL} when {close} then {WITHIN} else {DIFFERS} end"
        if types[field.here] == "amount":
            verdict = f"case when {same} then {EQUAL} when h.cur <> t.cur then {NOT_COMPARED} else {verdict} end"
        columns.append(f"{verdict} as v{i}")
    columns += [
        f"if(h.n{i} <> t.n{i}, {DIFFERS}, {EQUAL}) as x{i}" if len(key.here) == 1 else f"{EQUAL} as x{i}"
        for i, key in enumerate(rules.keys)
    ]
    outside = "greatest(h.day, t.day) < $start or least(h.day, t.day) > $until"
    verdicts = [f"v{i} in ({WITHIN}, {DIFFERS})" for i in range(len(rules.fields))]
    verdicts += [f"x{i} = {DIFFERS}" for i in range(len(rules.keys))]
    statement = (
        "create table odd as select * from ("
        "select 2 * pair.h as item, pair.h, pair.t, pair.rule, pair.normalised, "
        f"coalesce({outside}, false) as outside, {', '.join(columns)} "
        "from pair join h on h.rid = pair.h join t on t.rid = pair.t left join tolerance on tolerance.currency = h.cur "
        f"{' '.join(joins)}) where normalised or outside or {' or '.join(verdicts)}"
    )
    given: dict[str, object] = {"start": rules.window.start, "until": rules.window.end}
    if "amount" in types.values():
        given |= {"default": rules.tolerance.default, "relative": rules.tolerance.relative}
    db.execute(statement, given)


def _is_unmapped(i: int) -> str:
    return f"upper(t.f{i}) not in (select there from mapped where field = {i})"
