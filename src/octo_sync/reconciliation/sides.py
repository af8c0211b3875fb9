"""The two sides in the form in which they are matched: tables `h` and `t` with short column names, in a DuckDB in memory.

`rid` is the row's number in its side; `k0, k1, …` are the keys and `n0, n1, …` what is left of them without white space, case,
leading zeros and a prefix; `id` is the booking that a row here is, null there; `f0, f1, …` are the compared fields; `cur` is
the currency, `day` the day that the window looks at. A user's column names never become part of a statement.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import duckdb
import pyarrow as pa  # type: ignore[import-untyped] # it ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]

from octo_sync.errors import ReconcileError
from octo_sync.reconciliation.model import FieldRule, Kind, Rules

AMOUNT = "decimal(38, 8)"
"""Exact, and wider than any amount in the copy, so that sums of a million rows fit too."""
_BOOKING = "booking_uuid"
"""The column here that says which booking a row is, where the query gives it."""


def kinds(rules: Rules, here: pa.Schema) -> dict[str, Kind]:
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


def must_be_of_one_currency(rules: Rules, types: Mapping[str, Kind], here: pa.Table) -> None:
    """Refuse to add up amounts of several currencies where no field says which is which.

    Raises:
        ReconcileError: `fields` has amounts and no currency, and the rows here have several.
    """
    is_named = any(field.here == rules.currency for field in rules.fields)
    if is_named or "amount" not in types.values() or "currency" not in here.schema.names:
        return
    found = sorted(str(each) for each in here.column("currency").unique().to_pylist() if each is not None)
    if len(found) > 1:
        raise ReconcileError(
            f"reconcile.{rules.name}: the bookings here are in {', '.join(found)}, and currencies are never added up. Name the "
            'ledger\'s column in fields (currency = "…"), or let `here` select the bookings of one currency.'
        )


def kind_of(rules: Rules, here: pa.Schema, column: str) -> Kind:
    """What the values of one column here are; a `ReconcileError` as `kinds` raises it."""
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


def load(rules: Rules, types: Mapping[str, Kind], here: pa.Table, there: pa.Table) -> duckdb.DuckDBPyConnection:
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
        for name, rows, is_here in (("h", here, True), ("t", there, False)):
            try:
                _Side(rules, types, here.schema, rows, is_here=is_here).create(db, name, given)
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


class _Side:
    """One side on its way into its table: the columns of its rows that are needed, and what SQL makes of them."""

    def __init__(
        self, rules: Rules, types: Mapping[str, Kind], here: pa.Schema, rows: pa.Table, *, is_here: bool
    ) -> None:
        self._rules, self._types, self._here, self._rows, self._is_here = rules, types, here, rows, is_here
        self._needed: dict[str, pa.ChunkedArray | pa.Array] = {"rid": pa.array(range(rows.num_rows), pa.int64())}

    def create(self, db: duckdb.DuckDBPyConnection, name: str, given: Mapping[str, str]) -> None:
        """Make the table `name`."""
        made, texts, bares, joined = self._plain(), [], [], []
        for key, raw, parts in self._keys():
            # Composite keys are one text; null as soon as a part is blank.
            of_raw, of_key = [], []
            for j, (text, is_free) in enumerate(parts):
                part = f"{key}_{j}"
                texts.append(f"{text} as t_{part}")
                bares.append(f"{_bare(f't_{part}')} as b_{part}")
                of_raw.append(f"if(b_{part} = '', null, t_{part})")
                of_key.append(_normal(f"b_{part}", strip=bool(given)) if is_free else f"t_{part}")
            joined.append(f"{' || chr(31) || '.join(of_key)} as {key}")
            if raw:
                joined.append(f"{' || chr(31) || '.join(of_raw)} as {raw}")
        plain = [f"{sql} as {column}" for column, sql in made.items()]
        db.register("incoming", pa.table(self._needed))
        db.execute(
            f"create table {name} as select rid, {', '.join([*made, *joined])} from ("
            f"select *, {', '.join(bares)} from (select rid, {', '.join([*plain, *texts])} from incoming))",
            given or None,
        )
        db.unregister("incoming")

    def _keys(self) -> Iterator[tuple[str, str | None, list[tuple[str, bool]]]]:
        """What is left of each key is called, itself, if it is wanted, and its parts."""
        for i, key in enumerate(self._rules.keys):
            yield f"n{i}", f"k{i}", [self._part(*pair) for pair in zip(key.here, key.there, strict=True)]
        if self._is_here and _BOOKING in self._here.names:
            yield "id", None, [(f"cast({self._column(_BOOKING)} as varchar)", True)]

    def _part(self, here: str, there: str) -> tuple[str, bool]:
        """The text of a part of a key, and whether that is then normalised, or written one way only."""
        kind = kind_of(self._rules, self._here, here)
        field = next((f for f in self._rules.fields if (f.here, f.there) == (here, there) and f.mapping), None)
        column = self._column(self._name(here, there), _words(field, is_here=self._is_here) if field else {})
        text = f"cast({column} as varchar)"
        if kind in _WRITTEN:
            # Both sides write an amount, a day and an instant the same way.
            text = f"coalesce(cast(try_cast({column} as {_WRITTEN[kind]}) as varchar), {text})"
        return text, kind not in _WRITTEN

    def _plain(self) -> dict[str, str]:
        """The other columns of the table, and the SQL of each."""
        rules, columns, nothing = self._rules, self._rows.schema.names, "cast(null as varchar)"
        made = {} if self._is_here and _BOOKING in columns else {"id": nothing}
        currency = nothing
        for i, field in enumerate(rules.fields):
            name = self._name(field.here, field.there)
            made[f"f{i}"] = _FORMS.get(self._types[field.here], "{}").format(self._column(name))
            if field.here == rules.currency:
                mapped = {} if self._is_here else field.mapping or {}
                words = {value.strip().upper(): here[0] for value, here in mapped.items() if len(here) == 1}
                currency = f"upper({_TRIMMED.format(self._column(name, words))})"
        day = (rules.date if self._is_here else rules.date_there) or ""
        of_day = f"cast({self._column(day) if day in columns else 'null'} as date)"
        if self._is_here and day == "travel_date" and {day, "booking_date"} <= set(columns):
            # What is open-dated here is in the window by when it was booked.
            of_day = f"coalesce({of_day}, try_cast({self._column('booking_date')} as date))"
        return made | {"cur": currency, "day": of_day}

    def _name(self, here: str, there: str) -> str:
        """The column of this side. For a wall clock without a zone here it is the wall clock there."""
        if self._is_here:
            return here
        type_ = self._here.field(here).type
        is_wall = getattr(type_, "unit", None) is not None and getattr(type_, "tz", "") is None
        return wall(there) if is_wall and wall(there) in self._rows.schema.names else there

    def _column(self, name: str, words: Mapping[str, str] | None = None) -> str:
        """What a column is called in SQL, with its values translated: `words` is upper-case value → the word to share."""
        values = self._rows.column(name)
        if words:
            values = values.cast(pa.string())
            distinct = pc.unique(values)
            shared = [None if v is None else words.get(v.strip().upper(), v) for v in distinct.to_pylist()]
            values = pa.array(shared, pa.string()).take(pc.index_in(values, distinct))
        short = f"c{len(self._needed)}"
        self._needed[short] = values
        return short


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
    groups: list[set[tuple[str, str]]] = []
    for value_there, values in (field.mapping or {}).items():
        group = {("t", value_there.strip().upper()), *(("h", value.strip().upper()) for value in values)}
        group = group.union(*(other for other in groups if other & group))
        groups = [*(other for other in groups if not other & group), group]
    side = "h" if is_here else "t"
    # The last of a group, by which it is called, is a word there: "t" is more than "h".
    return {value: f"\x1e{max(group)[1]}" for group in groups for of, value in group if of == side}
