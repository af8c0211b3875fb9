"""What only all rows together show: usual commissions, swapped and mistyped keys, totals rows."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain
from statistics import median_low
from typing import Any

import duckdb
import pyarrow as pa  # type: ignore[import-untyped] # it ships no types

from octo_sync.reconciliation.comparing import DIFFERS
from octo_sync.reconciliation.model import Kind, Rules
from octo_sync.reconciliation.rows import Row

_FEW, _SHARE = 5, 0.8
_PAIRS, _DRIFT = 2, Decimal("0.1")
_TYPOS, _SHORTEST = 2, 5
"""Characters that a mistyped key differs in at most, and that it has at least."""
_TOTAL = re.compile(
    r"\W*(?:(?:grand|sub)[\s-]?)?(?:total(?:s|e|betrag|summe)?|summe|gesamt(?:betrag|summe)?|zwischensumme|sum|suma|somme|somma|totaal|razem|[\u03a3\u03c3\u2211]|合計|小計)"
    r"(?:\W.{0,30})?",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Commission:
    """What a channel's agreeing pairs deduct: `pairs` of `of` deduct `rate` of the retail amount, to half a percent."""

    rate: Decimal
    pairs: int
    of: int


def commissions(db: duckdb.DuckDBPyConnection, rules: Rules, here: pa.Table) -> dict[str, Commission]:
    """By connection; those whose pairs agree on one rate, four of five at least."""
    names = ["connection_id", "retail_amount", "net_amount"]
    prices = [i for i, f in enumerate(rules.fields) if f.here in names[1:]]
    if not prices or not set(names) <= set(here.schema.names):
        return {}
    db.register("sold", here.select(names).append_column("rid", pa.array(range(here.num_rows), pa.int64())))
    found = db.execute(
        "select connection_id, cast(round((1 - net_amount / retail_amount) * 200) / 200 as decimal(9, 3)) as rate, "
        "count(*) as pairs, cast(sum(count(*)) over (partition by connection_id) as bigint) as whole "
        "from pair join sold on sold.rid = pair.h left join odd on odd.h = pair.h "
        "where retail_amount > 0 and net_amount is not null "
        f"and {' and '.join(f'coalesce(odd.v{i}, 0) <> {DIFFERS}' for i in prices)} "
        "group by 1, 2 qualify row_number() over (partition by connection_id order by pairs desc, rate) = 1"
    ).fetchall()
    db.unregister("sold")
    return {
        str(connection): Commission(rate, pairs, whole)
        for connection, rate, pairs, whole in found
        if pairs >= _FEW and pairs >= _SHARE * whole
    }


def rates(pairs: Iterable[tuple[str, str, Decimal | None, Decimal | None]]) -> dict[tuple[str, str], Decimal]:
    """By currency here and there the rate of their amounts: that of most of their pairs, two at least, to a tenth of it."""
    found = defaultdict[tuple[str, str], list[Decimal]](list)
    for here, there, h, t in pairs:
        if h and t and h != t and h * t > 0:
            found[here, there].append(t / h)
    usual = {currencies: (median_low(each), each) for currencies, each in found.items()}
    near = {currencies: sum(is_near(one, rate) for one in each) for currencies, (rate, each) in usual.items()}
    return {c: rate for c, (rate, each) in usual.items() if near[c] >= _PAIRS and 2 * near[c] >= len(each)}


def is_near(one: Decimal, rate: Decimal) -> bool:
    """Whether two rates may be of the same two currencies, some weeks apart."""
    return abs(one - rate) <= rate * _DRIFT


def twins(
    db: duckdb.DuckDBPyConnection,
    rules: Rules,
    types: Mapping[str, Kind],
    alone: tuple[Sequence[int], Sequence[int]],
) -> list[tuple[int, int]]:
    """Rows here and there that are equal in all but their keys, which differ by two characters at most.

    `alone` are the rows that are an item of their own, here and there. No other of them may be alike.
    """
    telling = [
        i for i, f in enumerate(rules.fields)
        if types[f.here] in ("amount", "instant", "date", "whole") or (types[f.here] == "text" and f.mapping is None)
    ]  # fmt: skip
    single = [i for i, key in enumerate(rules.keys) if len(key.here) == 1]
    if not all(alone) or not telling or not single:
        return []
    db.execute("create or replace temp table lonely (side varchar, rid bigint)")
    for side, rids in zip("ht", alone, strict=True):
        db.execute("insert into lonely select ?, unnest(?::bigint[])", [side, list(rids)])
    alike = " and ".join(f"upper(h.f{i}::varchar) is not distinct from upper(t.f{i}::varchar)" for i in telling)
    told = " + ".join(f"(h.f{i} is not null)::int" for i in telling if types[rules.fields[i].here] != "text") or "0"
    apart = [f"damerau_levenshtein(h.n{i}, t.n{i})" for i in single]
    near = " and ".join(f"coalesce({each} <= {_TYPOS}, true)" for each in apart)
    one = " or ".join(
        f"({each} between 1 and {_TYPOS} and length(h.k{i}) >= {_SHORTEST})"
        for i, each in zip(single, apart, strict=True)
    )
    return [
        (h, t)
        for h, t in db.execute(
            "with alike as (select h.rid as h, t.rid as t, count(*) over (partition by h.rid) as of_h, "
            f"count(*) over (partition by t.rid) as of_t, ({near}) and ({one}) as is_typo "
            "from h semi join (select rid from lonely where side = 'h') using (rid) "
            "join (select * from t semi join (select rid from lonely where side = 't') using (rid)) t "
            f"on {alike} and ({told}) >= 2) "
            "select h, t from alike where of_h = 1 and of_t = 1 and is_typo order by h"
        ).fetchall()
    ]


def swapped(
    rules: Rules,
    types: Mapping[str, Kind],
    numbers: Sequence[int],
    values: Mapping[int, tuple[Any, ...]],
    keys: Mapping[int, str],
) -> dict[int, str]:
    """Pairs of which each one's row there fits the other one's row here; by number, the other one's key.

    Two rows fit when one key of theirs is the same, or all that tells bookings apart and two things at least: an amount
    alone is the same by chance.
    """
    telling = [i for i, f in enumerate(rules.fields) if types[f.here] in ("amount", "instant", "date", "whole")]
    shapes = [(telling, 2), *(([len(rules.fields) + i], 1) for i in range(len(rules.keys)))]
    found: dict[int, str] = {}
    for places, least in shapes:
        here = {number: tuple(values[number][3 * i + 1] for i in places) for number in numbers}
        there = {number: tuple(values[number][3 * i + 2] for i in places) for number in numbers}
        by_here = defaultdict(list)
        for number, shape in here.items():
            by_here[shape].append(number)
        for number in numbers:
            h, t = here[number], there[number]
            if sum(a != b and b is not None for a, b in zip(h, t, strict=True)) < least:
                continue
            others = by_here.get(t, ())
            if len(others) == 1 and there[others[0]] == h and len(by_here[h]) == 1:
                found.setdefault(number, keys[others[0]])
    return found


class Totals:
    """Tells totals rows at the end of a sheet from bookings."""

    def __init__(self, db: duckdb.DuckDBPyConnection, rules: Rules, types: Mapping[str, Kind]) -> None:
        amounts = [i for i, f in enumerate(rules.fields) if types[f.here] == "amount"]
        sums = ", ".join(f"sum(f{i})" for i in amounts)
        self._rules = rules
        self._columns = [rules.fields[i].there for i in amounts]
        self._sums = db.execute(f"select {sums} from t").fetchall()[0] if amounts else ()

    def word(self, row: Row, cells: Callable[[], Iterable[object]]) -> str:
        """The word by which a row says that it is one; '' when it says none. One without any key may say it in all `cells`."""
        said = chain(row.values(), () if self._has_key(row) else cells())
        return next((v for v in said if isinstance(v, str) and _TOTAL.fullmatch(v.strip())), "")

    def _has_key(self, row: Row) -> bool:
        return any(
            row.get(column) is not None for key in self._rules.keys if len(key.there) == 1 for column in key.there
        )

    def is_sum(self, row: Row) -> bool:
        """Whether a row without any key has an amount that is the sum of all the others."""
        return not self._has_key(row) and any(
            row.get(column) is not None and whole is not None and row[column] != 0 and 2 * Decimal(row[column]) == whole
            for column, whole in zip(self._columns, self._sums, strict=True)
        )
