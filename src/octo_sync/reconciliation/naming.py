"""What items are called: the same today and tomorrow, whatever other rows come and go, and no two the same."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence

import duckdb
import pyarrow as pa  # type: ignore[import-untyped] # it ships no types

from octo_sync.reconciliation.model import Earlier, Rules
from octo_sync.reconciliation.rows import Row, day_of, shown

_Rows = tuple[tuple[Row, ...], tuple[Row, ...]]


def keys(
    db: duckdb.DuckDBPyConnection,
    rules: Rules,
    rids: Mapping[int, tuple[Sequence[int], Sequence[int]]],
    items: Mapping[int, _Rows],
    earlier: Collection[Earlier] = (),
) -> dict[int, str]:
    """The key of each item, by number: its first key's name and value, by a row here if there is one.

    Where several items have that value (an order's reference), each gets a mark made of all its keys; items that not even
    these tell apart are counted. An item that is open keeps the key that it has, with or without a mark.

    Args:
        db: Both sides, matched.
        rules: Whose keys.
        rids: Numbers of the rows of each item, here and there.
        items: The rows.
        earlier: What is open.
    """
    names: dict[int, str] = {}
    named: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
    for number, (here, there) in items.items():
        side = "h" if _first(rules, "h", here) else "t"
        found = _first(rules, side, here if side == "h" else there)
        if found is None:
            names[number] = _without_key(rules, here, there)
        else:
            key, value, place = found
            names[number] = f"{rules.keys[key].name}={value}"
            named[side, key].append((number, rids[number][0 if side == "h" else 1][place]))
    known: dict[str, list[Earlier]] = defaultdict(list)
    for one in earlier:
        known[one.key].append(one)
    for (side, i), owners in named.items():
        shared = set(_shared(db, side, i, owners))
        own = {number for number, _ in owners if _is_one(rules, items[number], known.get(names[number], ()))}
        claims = Counter(names[number] for number in shared & own)
        for number in [number for number, _ in owners] if earlier else shared:
            plain, marked = names[number], f"{names[number]} #{_mark(rules, *items[number])}"
            if number in shared:
                keeps = number in own and claims[plain] == 1
            else:
                keeps = number in own or not (marked in known or _is_of_others(items[number], known.get(plain, ())))
            names[number] = plain if keeps else marked
    seen: Counter[str] = Counter()
    for number, name in names.items():
        seen[name] += 1
        if seen[name] > 1:
            names[number] = f"{name} ({seen[name]})"
    return names


def alike(rules: Rules, here: Row, there: Row) -> tuple[str, str]:
    """What two rows that are alike but for their keys are called: by a key that both have, a reference before a uuid."""
    for key in sorted(range(len(rules.keys)), key=lambda i: rules.keys[i].here == ("booking_uuid",)):
        values = _value(rules, key, "h", here), _value(rules, key, "t", there)
        if all(values):
            break
    return f"{rules.keys[key].name}={values[0]}", f"{rules.keys[key].name}={values[1]}"


def _first(rules: Rules, side: str, rows: Sequence[Row]) -> tuple[int, str, int] | None:
    """The first key that any of the rows has: its number, its smallest value, and the place of the row that has it."""
    for key in range(len(rules.keys)):
        values = [(value, place) for place, row in enumerate(rows) if (value := _value(rules, key, side, row))]
        if values:
            return key, *min(values)
    return None


def _value(rules: Rules, key: int, side: str, row: Row) -> str:
    """A key of a row as people read it; '' when a part of it is blank."""
    columns = rules.keys[key].here if side == "h" else rules.keys[key].there
    parts = [(shown(row.get(column)) or "").strip() for column in columns]
    return "+".join(parts) if all(parts) else ""


def _is_one(rules: Rules, item: _Rows, earlier: Collection[Earlier]) -> bool:
    """Whether an item is one of those, by its booking; where it has none, by its day."""
    uuid, day = _booking(item[0]), day_of(rules, *item)
    return any(one.booking_uuid == uuid and (uuid is not None or one.day == day) for one in earlier)


def _is_of_others(item: _Rows, earlier: Collection[Earlier]) -> bool:
    """Whether those are other bookings than the item's: their age and their acceptance are not for it."""
    uuid = _booking(item[0])
    return uuid is not None and any(one.booking_uuid not in (None, uuid) for one in earlier)


def _booking(here: Sequence[Row]) -> str | None:
    return next((row["booking_uuid"] for row in here if row.get("booking_uuid")), None)


def _shared(db: duckdb.DuckDBPyConnection, side: str, key: int, owners: Sequence[tuple[int, int]]) -> list[int]:
    """Those of the items `(number, row)` that are not the only ones with their value of a key."""
    numbers, rids = zip(*owners, strict=True)
    db.register("owners", pa.table([pa.array(numbers, pa.int64()), pa.array(rids, pa.int64())], names=["item", "rid"]))
    rows = " union all ".join(
        f"select '{letter}' as side, rid, n{key} as key from {letter} where n{key} in (select key from mine)"
        for letter in "ht"
    )
    found = db.execute(
        f"with mine as (select owners.item, n{key} as key from owners join {side} using (rid)), rows as materialized ({rows}), "
        "owned as (select key, 2 * pair.h as item from rows join pair on rows.side = 'h' and rows.rid = pair.h "
        "union all select key, 2 * pair.h from rows join pair on rows.side = 't' and rows.rid = pair.t "
        "union all select key, member.item from rows join member using (side, rid)) "
        "select item from mine where key in (select key from owned group by key having min(item) <> max(item))"
    ).fetchall()
    db.unregister("owners")
    return [number for (number,) in found]


def _mark(rules: Rules, here: Sequence[Row], there: Sequence[Row]) -> str:
    columns = [c for key in rules.keys for c in (key.here if here else key.there)]
    columns += ["connection_id", "booking_uuid"] if here else []
    return _hash(sorted(repr([shown(row.get(column)) for column in columns]) for row in here or there))


def _without_key(rules: Rules, here: Sequence[Row], there: Sequence[Row]) -> str:
    """The name of an item without any key: its booking, else its compared values."""
    uuid = _booking(here)
    if uuid is not None:
        return f"booking_uuid={uuid}"
    columns = [f.here if here else f.there for f in rules.fields]
    return f"row={_hash(sorted(repr([shown(row.get(column)) for column in columns]) for row in here or there))}"


def _hash(value: object) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()[:12]
