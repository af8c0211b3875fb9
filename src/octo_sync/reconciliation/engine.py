"""The comparison from two tables to an outcome: match, compare, explain, close.

Matching and comparing are SQL over whole sides; only items that a person may want to look at become objects.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing

import duckdb
import pyarrow as pa  # type: ignore[import-untyped] # it ships no types

from octo_sync.errors import ReconcileError
from octo_sync.reconciliation.comparing import DIFFERS, WITHIN, compare, name_currencies
from octo_sync.reconciliation.items import Facts, Maker
from octo_sync.reconciliation.matching import match, telling
from octo_sync.reconciliation.model import Acceptance, Bucket, Earlier, Item, Outcome, Rules, Side
from octo_sync.reconciliation.sides import kinds, load, must_be_of_one_currency
from octo_sync.reconciliation.totals import explained, must_close, totals


def reconcile(
    rules: Rules,
    here: pa.Table,
    there: pa.Table,
    *,
    sides: tuple[Side, Side],
    place: Callable[[int], str],
    facts: Facts,
    acceptances: Sequence[Acceptance] = (),
    earlier: Collection[Earlier] = (),
    last: Callable[[int], Iterable[object]] = lambda _: (),
) -> Outcome:
    """Compare two sides.

    Args:
        rules: How.
        here: The rows of this copy; the type of a column says how its field is compared.
        there: The other side's rows with the columns that `rules` names, typed alike; beside each instant `NAME.wall`.
        sides: What the two are called and how old they are, here first.
        place: Where a row there was read, by its number.
        facts: What else the copy knows.
        acceptances: Differences that somebody lets be.
        earlier: What is open; an item of it keeps its key when others with the same reference come or go.
        last: All cells of a row there that is the last of its file, by its number; of any other none.

    Raises:
        ReconcileError: The rules do not fit the rows, nearly nothing fits, the arithmetic does not close, or
            DuckDB fails.
    """
    types = kinds(rules, here.schema)
    must_be_of_one_currency(rules, types, here)
    maker = Maker(rules, types, here, there, sides, place, last, facts, {a.key: a for a in acceptances}, earlier)
    try:
        with closing(load(rules, types, here, there)) as db:
            match(db, rules)
            name_currencies(db, rules)
            compare(db, rules, types)
            _sort(db, rules)
            made = maker.items(db)
            counts = _assign(db, made)
            money, parts = totals(db, rules, types), explained(db, rules, types)
    except duckdb.Error as error:
        # The error may hold a value, which may be anybody's name.
        raise ReconcileError(
            f"reconcile.{rules.name}: DuckDB could not compare the two sides ({type(error).__name__}), as with amounts beyond "
            "30 digits or more rows than memory holds. Nothing was stored."
        ) from None
    must_close(rules, money, parts)
    return Outcome(
        rules=rules, here=sides[0], there=sides[1], kinds=types, items=list(made.values()), counts=counts, totals=money,
        explained=parts,
    )  # fmt: skip


def _sort(db: duckdb.DuckDBPyConnection, rules: Rules) -> None:
    """What the rows alone say: `plain (item, bucket, rule, normalised)`, for every item but the pairs that are the same."""
    verdicts = [f"v{i}" for i in range(len(rules.fields))] + [f"x{i}" for i in range(len(rules.keys))]
    db.execute(
        "create table plain as select item, case when outside then 'out_of_window' "
        f"when {DIFFERS} in ({', '.join(verdicts)}) then 'mismatched' "
        f"when {WITHIN} in ({', '.join(verdicts)}) then 'matched_within_tolerance' "
        "else 'matched' end as bucket, rule, normalised from odd"
    )
    apart = [
        f"(grouped.rule = {key} and ({' or '.join(_several(i, side) for i in telling(rules, key) for side in 'ht')}))"
        for key in range(len(rules.keys))
        if telling(rules, key)
    ]
    columns = ", ".join(["day", "id", *(f"{letter}{i}" for i in range(len(rules.keys)) for letter in "kn")])
    raw = " ".join(f"when {i} then min(n{i}) = max(n{i}) and min(k{i}) <> max(k{i})" for i in range(len(rules.keys)))
    db.execute(
        "insert into plain select item, case "
        "when max(day) < $start or min(day) > $until then 'out_of_window' "
        "when count(*) filter (side = 'h') = 0 then 'missing_here' "
        "when count(*) filter (side = 't') = 0 then 'missing_there' "
        # Nobody can say which of several bookings is meant.
        f"when coalesce(min(id) <> max(id), false) or {' or '.join([*apart, 'false'])} then 'ambiguous' "
        "when count(*) filter (side = 'h') > 1 and count(*) filter (side = 't') > 1 then 'ambiguous' "
        "when count(*) filter (side = 'h') > 1 then 'duplicate_here' "
        "else 'duplicate_there' end, rule, coalesce(case rule "
        f"{raw} end, false) from ("
        f"select member.item, member.side, {columns} from member join h using (rid) where side = 'h' union all "
        f"select member.item, member.side, {columns} from member join t using (rid) where side = 't') "
        "join grouped using (item) group by item, rule",
        {"start": rules.window.start, "until": rules.window.end},
    )


def _several(key: int, side: str) -> str:
    """Whether the rows of one side have more than one value of a key, of which none is one too."""
    values = f"(coalesce(n{key}, '')) filter (side = '{side}')"
    return f"coalesce(min{values} <> max{values}, false)"


def _assign(db: duckdb.DuckDBPyConnection, made: Mapping[int, Item]) -> dict[Bucket, int]:
    """The last word on every item but plain matches, `bucket (item, bucket)`; what `Outcome.counts` says."""
    said = pa.table(
        [pa.array(made.keys(), pa.int64()), pa.array([str(item.bucket) for item in made.values()], pa.string())],
        names=["item", "bucket"],
    )
    db.register("said", said)
    db.execute(
        "create table bucket as select item, coalesce(said.bucket, plain.bucket) as bucket "
        "from plain left join said using (item)"
    )
    db.unregister("said")
    counted = db.execute(
        "select bucket, count(*)::bigint from (select bucket from bucket union all "
        "select 'matched' from pair anti join plain on plain.item = 2 * pair.h) group by 1"
    ).fetchall()
    differ = Counter(item.bucket for item in made.values() if item.bucket.has_differences for _ in item.differences)
    return {Bucket(bucket): n for bucket, n in counted} | differ
