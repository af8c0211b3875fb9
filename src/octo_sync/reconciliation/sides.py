"""The two sides in the form in which they are matched: tables `h` and `t` with short column names, in a DuckDB in memory.

`rid` is the row's number in its side; `k0, k1, …` are the keys and `n0, n1, …` what is left of them without white space, case,
leading zeros and a prefix; `id` is the booking that a row here is, null there; `f0, f1, …` are the compared fields; `cur` is
the currency, `day` the day that the window looks at. A user's column names never become part of a statement.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import duckdb

from octo_sync.errors import ReconcileError
from octo_sync.reconciliation.model import FieldRule, Kind, Rules

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped] # it ships no types

__all__ = ["AMOUNT", "kind_of", "kinds", "load", "wall"]

AMOUNT = "decimal(38, 8)"
"""Exact, and wider than any amount in the copy, so that sums of a million rows fit too."""
_BOOKING = "booking_uuid"
"""The column here that says which booking a row is, where the query gives it."""


def kinds(rules: Rules, here: "pa.Schema") -> dict[str, Kind]:
    """What each compared field is, by its column here, as that column's type says.

    Raises:
        ReconcileError: A column that the rules name is not there, or is of a type that nothing can be compared with.
    """
    found = {field.here: kind_of(rules, here, field.here) for field in rules.fields}
    for key in rules.keys:
        for column in key.here:
            kind_of(rules, here, column)
    for field in rules.fields:
        if field.mapping is not None and found[field.here] != "text":
            raise ReconcileError(
                f"reconcile.{rules.name}: map.{field.here} maps words, and {field.here!r} of `here` is "
                f"{here.field(field.here).type}; cast it to text in the query, or leave the map out."
            )
    return found


def kind_of(rules: Rules, here: "pa.Schema", column: str) -> Kind:
    """What the values of one column here are; a `ReconcileError` as `kinds` raises it."""
    import pyarrow as pa  # noqa: PLC0415 - only a comparison needs it

    if column not in here.names:
        raise ReconcileError(
            f"reconcile.{rules.name}: the query of `here` gives no column {column!r}. It gives {', '.join(here.names)}."
        )
    types, type_ = pa.types, here.field(column).type
    known: Sequence[tuple[Any, Kind]] = (
        (types.is_decimal, "amount"),
        (types.is_floating, "amount"),
        (types.is_integer, "whole"),
        (types.is_boolean, "flag"),
        (types.is_timestamp, "instant"),
        (types.is_date, "date"),
        (types.is_string, "text"),
        (types.is_large_string, "text"),
        (types.is_null, "text"),
    )
    for is_it, kind in known:
        if is_it(type_):
            return kind
    raise ReconcileError(
        f"reconcile.{rules.name}: column {column!r} of `here` is {type_}, which cannot be compared; "
        "cast it to text in the query, or leave it out."
    )


def wall(name: str) -> str:
    """The column of a ledger beside an instant: the wall clock as it is written there."""
    return f"{name}.wall"


def load(rules: Rules, types: Mapping[str, Kind], here: "pa.Table", there: "pa.Table") -> duckdb.DuckDBPyConnection:
    """Both sides in a fresh DuckDB, which the caller closes. `types` is what `kinds` gave.

    Raises:
        ReconcileError: `strip` is no regular expression, or a value is not what its column says (NaN, too many digits).
    """
    db = duckdb.connect(":memory:", config={"threads": "2"})
    try:
        db.execute("set TimeZone = 'UTC'")
        given = {"strip": f"^(?:{rules.strip})"} if rules.strip else {}
        if rules.strip:
            _check_strip(db, rules, given)
        makers = _Columns(rules, types, here.schema, there.schema)
        for name, rows, is_here in (("h", here, True), ("t", there, False)):
            try:
                _table(db, name, rows, [*makers.plain(is_here=is_here)], [*makers.keys(is_here=is_here)], given)
            except (duckdb.ConversionException, duckdb.OutOfRangeException):
                # The error holds the value, which may be anybody's name.
                raise ReconcileError(
                    f"reconcile.{rules.name}: a value {'here' if is_here else 'there'} is not what its column is compared as "
                    f"({', '.join(f'{f.here if is_here else f.there}: {types[f.here]}' for f in rules.fields)})."
                ) from None
        _rules_as_tables(db, rules)
    except BaseException:
        db.close()
        raise
    return db


def _check_strip(db: duckdb.DuckDBPyConnection, rules: Rules, given: Mapping[str, str]) -> None:
    try:
        db.execute("select regexp_matches('', $strip)", given).fetchall()
    except duckdb.InvalidInputException as error:
        reason = str(error).removeprefix("Invalid Input Error: ").split(": ")[0]
        raise ReconcileError(
            f"reconcile.{rules.name}: strip = {rules.strip!r} is no regular expression ({reason}); it is the beginning of a "
            'key that is no part of it, such as "BK-?".'
        ) from None


def _rules_as_tables(db: duckdb.DuckDBPyConnection, rules: Rules) -> None:
    db.execute("create table mapped (field integer, there varchar, here varchar)")
    pairs = [
        (i, value_there, value_here)
        for i, field in enumerate(rules.fields)
        for value_there, values in (field.mapping or {}).items()
        for value_here in values
    ]
    if pairs:
        # The same twice in two spellings would double the rows that it is joined to.
        one = "select cast(? as integer), upper(trim(?)), upper(trim(?))"
        db.executemany(f"insert into mapped {one} except select * from mapped", pairs)
    db.execute(f"create table tolerance (currency varchar, amount {AMOUNT})")
    if rules.tolerance.absolute:
        db.executemany("insert into tolerance values (upper(?), ?)", list(rules.tolerance.absolute.items()))


@dataclass(frozen=True, slots=True)
class _Column:
    """A column made of one of the rows, `{}` in `sql`; of none where `source` is None."""

    name: str
    source: "str | _Translated | None"
    sql: str = "{}"


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a key: `sql` makes text of it; whether that text is then normalised, or written one way only."""

    source: "str | _Translated"
    sql: str
    is_free: bool


@dataclass(frozen=True, slots=True)
class _Key:
    """A key: the name of what is left of it when it is normalised, and of itself, if that is wanted."""

    normal: str
    raw: str | None
    parts: Sequence[_Part]


@dataclass(frozen=True)
class _Translated:
    """A column whose values a `map` translates: `words` is upper-case value → the word that both sides share."""

    column: str
    words: Mapping[str, str]

    def __hash__(self) -> int:
        return hash(self.column)


@dataclass(frozen=True, slots=True)
class _Columns:
    """Which columns of the two tables are made of which columns of the rows."""

    rules: Rules
    types: Mapping[str, Kind]
    here: "pa.Schema"
    there: "pa.Schema"

    def keys(self, *, is_here: bool) -> Iterator[_Key]:
        for i, key in enumerate(self.rules.keys):
            pairs = zip(key.here, key.there, strict=True)
            yield _Key(f"n{i}", f"k{i}", [self._part(*pair, is_here=is_here) for pair in pairs])
        if is_here and _BOOKING in self.here.names:
            yield _Key("id", None, [_Part(_BOOKING, "cast({} as varchar)", is_free=True)])

    def plain(self, *, is_here: bool) -> Iterator[_Column]:
        schema = self.here if is_here else self.there
        if not is_here or _BOOKING not in schema.names:
            yield _Column("id", None, "cast(null as varchar)")
        currency: str | _Translated | None = None
        for i, field in enumerate(self.rules.fields):
            name = field.here if is_here else self._beside(field.here, field.there)
            yield _Column(f"f{i}", name, _FORMS.get(self.types[field.here], "{}"))
            if field.here == self.rules.currency:
                words = {
                    value.strip().upper(): here[0] for value, here in (field.mapping or {}).items() if len(here) == 1
                }
                currency = _Translated(name, words) if words and not is_here else name
        yield _Column("cur", currency, f"upper({_TRIMMED})" if currency else "cast(null as varchar)")
        day = self.rules.date if is_here else self.rules.date_there
        yield _Column(
            "day", day if day in schema.names else None, f"cast({'{}' if day in schema.names else 'null'} as date)"
        )

    def _part(self, here: str, there: str, *, is_here: bool) -> _Part:
        kind = kind_of(self.rules, self.here, here)
        name = here if is_here else self._beside(here, there)
        field = next((f for f in self.rules.fields if (f.here, f.there) == (here, there) and f.mapping), None)
        text = "cast({0} as varchar)"
        if kind in _WRITTEN:
            # Both sides write an amount, a day and an instant the same way.
            text = f"coalesce(cast(try_cast({{0}} as {_WRITTEN[kind]}) as varchar), {text})"
        return _Part(_Translated(name, _words(field, is_here=is_here)) if field else name, text, kind not in _WRITTEN)

    def _beside(self, here: str, there: str) -> str:
        """The column there: for a wall clock without a zone here, the wall clock there."""
        type_ = self.here.field(here).type
        is_wall = getattr(type_, "unit", None) is not None and getattr(type_, "tz", "") is None
        return wall(there) if is_wall and wall(there) in self.there.names else there


# Trimming and regular expressions are slow, and most texts need neither.
_TRIMMED = "nullif(if(contains(cast({0} as varchar), ' '), trim(cast({0} as varchar)), cast({0} as varchar)), '')"
_FORMS: Mapping[str, str] = {
    "amount": f"cast({{}} as {AMOUNT})",
    "whole": "cast({} as hugeint)",
    "text": _TRIMMED,
}
_WRITTEN: Mapping[str, str] = {"amount": AMOUNT, "date": "date", "instant": "timestamptz", "flag": "boolean"}
_SPACES = "\t\n\r \u00a0\u2007\u202f\ufeff\u200b"


def _bare(text: str) -> str:
    """Without white space and case."""
    marks = " and ".join(f"not contains({text}, '{mark}')" for mark in _SPACES if mark.isascii())
    return f"upper(if(strlen({text}) = length({text}) and {marks}, {text}, regexp_replace({text}, '[{_SPACES}]+', '', 'g')))"


def _normal(bare: str, *, strip: bool) -> str:
    """Without prefix and leading zeros; all of a prefix and one zero stay when nothing else is left. Null when it is blank."""
    rest = f"coalesce(nullif(regexp_replace({bare}, $strip, '', 'i'), ''), {bare})" if strip else bare
    return f"nullif(if(starts_with({rest}, '0'), coalesce(nullif(ltrim({rest}, '0'), ''), '0'), {rest}), '')"


def _words(field: FieldRule, *, is_here: bool) -> dict[str, str]:
    """What each mapped value is called in keys: one of the words there that stand, over whatever steps, for the same."""
    leaders: dict[tuple[Literal["h", "t"], str], tuple[Literal["h", "t"], str]] = {}

    def leader(node: tuple[Literal["h", "t"], str]) -> tuple[Literal["h", "t"], str]:
        while leaders.setdefault(node, node) != node:
            node = leaders[node]
        return node

    for value_there, values in (field.mapping or {}).items():
        for value_here in values:
            low, high = sorted((leader(("t", value_there.strip().upper())), leader(("h", value_here.strip().upper()))))
            leaders[low] = high  # "t" is the higher one: a word there leads
    side = "h" if is_here else "t"
    return {value: f"\x1e{leader((of, value))[1]}" for of, value in list(leaders) if of == side}


def _table(
    db: duckdb.DuckDBPyConnection,
    name: str,
    rows: "pa.Table",
    columns: Sequence[_Column],
    keys: Sequence[_Key],
    given: Mapping[str, str],
) -> None:
    import pyarrow as pa  # noqa: PLC0415 - only a comparison needs it

    used = [column.source for column in columns] + [part.source for key in keys for part in key.parts]
    short = {source: f"c{i}" for i, source in enumerate(dict.fromkeys(source for source in used if source is not None))}
    arrow = pa.table(
        [pa.array(range(rows.num_rows), pa.int64()), *(_array(rows, source) for source in short)],
        names=["rid", *short.values()],
    )
    made = [f"{c.sql.format(short[c.source] if c.source else '')} as {c.name}" for c in columns]
    parts = {(key.normal, j): f"{key.normal}_{j}" for key in keys for j in range(len(key.parts))}
    texts = [f"{p.sql.format(short[p.source])} as t_{parts[k.normal, j]}" for k in keys for j, p in enumerate(k.parts)]
    bares = [f"{_bare(f't_{part}')} as b_{part}" for part in parts.values()]
    joined = []
    for key in keys:
        of_key = [(parts[key.normal, j], part) for j, part in enumerate(key.parts)]
        # Composite keys are one text; null as soon as a part is blank.
        raw = [f"if(b_{part} = '', null, t_{part})" for part, _ in of_key]
        normal = [_normal(f"b_{part}", strip=bool(given)) if each.is_free else f"t_{part}" for part, each in of_key]
        joined += [f"{' || chr(31) || '.join(normal)} as {key.normal}"]
        joined += [f"{' || chr(31) || '.join(raw)} as {key.raw}"] if key.raw else []
    db.register("incoming", arrow)
    db.execute(
        f"create table {name} as select rid, {', '.join([*(c.name for c in columns), *joined])} from ("
        f"select *, {', '.join(bares)} from (select rid, {', '.join([*made, *texts])} from incoming))",
        given or None,
    )
    db.unregister("incoming")


def _array(rows: "pa.Table", source: "str | _Translated") -> "pa.ChunkedArray":
    import pyarrow as pa  # noqa: PLC0415 - only a comparison needs it
    import pyarrow.compute as pc  # type: ignore[import-untyped] # noqa: PLC0415

    if isinstance(source, str):
        return rows.column(source)
    values = rows.column(source.column).cast(pa.string())
    distinct = pc.unique(values)
    words = pa.array(
        [None if v is None else source.words.get(v.strip().upper(), v) for v in distinct.to_pylist()], pa.string()
    )
    return words.take(pc.index_in(values, distinct))
