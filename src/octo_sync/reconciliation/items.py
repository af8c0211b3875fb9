"""The items that a person may want to look at, with both sides' rows, what differs and why."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, timedelta
from decimal import Decimal
from functools import partial
from typing import Any, Protocol

import duckdb
import pyarrow as pa  # type: ignore[import-untyped] # it ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]

from octo_sync.errors import ReconcileError
from octo_sync.reconciliation import alone, evidence, naming, reasons
from octo_sync.reconciliation.comparing import DIFFERS, WITHIN
from octo_sync.reconciliation.model import Acceptance, Bucket, Difference, Earlier, Item, Kind, Rules, Side
from octo_sync.reconciliation.rows import Row, currencies, currency_of, day_of, exact, instant, meant, shown, total
from octo_sync.reconciliation.sides import wall

MOST_ITEMS = 100_000
"""More items that differ than this are no list for a person, but the wrong ledger or the wrong key."""
MOST_SETTLED = 1_000
"""Items of one bucket that nobody has to look at, to be listed; all are counted."""
_NIGHTLY = timedelta(days=1)
"""How often a side is made anew. One that is older, by more than the grace, is not about to catch up with the other."""
_LOOK_UP = ("booking_uuid", "supplier_reference", "reseller_reference")
"""Keys by which a booking of the copy is found wherever it travels."""
_Items = Mapping[int, tuple[tuple[Row, ...], tuple[Row, ...]]]
"""By number: the rows of an item, here and there."""
_HELPFUL = (
    "connection_id", "booking_uuid", "supplier_reference", "reseller_reference", "status", "is_test", "product_name",
    "option_name", "travel_date", "local_start_at", "utc_start_at", "booking_date", "utc_created_at", "utc_updated_at",
    "utc_cancelled_at", "utc_expires_at", "cancellation_refund", "currency", "currency_precision", "retail_amount",
    "net_amount", "tax_amount", "unit_count", "pax_count", "verified_at_utc",
)  # fmt: skip
"""Columns here that reasons and readers look at, where the query gives them."""


class Facts(Protocol):
    """What the copy remembers beyond the rows of `here`."""

    def bookings(self, column: str, values: Collection[str]) -> Sequence[Mapping[str, Any]]:
        """Bookings with one of the values in a column, whatever they are and wherever they travel.

        The column is `booking_uuid`, `supplier_reference` or `reseller_reference`. Each booking has these three,
        `connection_id`, `status`, `is_test`, `is_deleted`, `local_date` (null when open-dated) and `booking_date`.
        """
        ...

    def versions(self, uuids: Collection[str]) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """The versions of `core.booking_history` of each booking, oldest first."""
        ...

    def owed(self, uuids: Collection[str]) -> Collection[str]:
        """The bookings that a notification was received about which is not landed yet."""
        ...

    def is_covered(self, day: date) -> bool | None:
        """Whether all bookings that travel on a day were verified; None where nobody knows."""
        ...


@dataclass(slots=True)
class _Raw:
    """An item before it has a reason: its number, what SQL said of it, and the numbers of its rows."""

    number: int
    bucket: Bucket
    rule: int | None
    normalised: bool
    here: list[int] = field(default_factory=list)
    there: list[int] = field(default_factory=list)

    @property
    def is_pair(self) -> bool:
        return len(self.here) == 1 and len(self.there) == 1


@dataclass(slots=True)
class Maker:
    """Makes objects of items. `acceptances` are by key; the rest is as `reconcile` was given it."""

    rules: Rules
    types: Mapping[str, Kind]
    here: pa.Table
    there: pa.Table
    sides: tuple[Side, Side]
    place: Callable[[int], str]
    last: Callable[[int], Iterable[object]]
    facts: Facts
    acceptances: Mapping[str, Acceptance]
    earlier: Collection[Earlier]

    def items(self, db: duckdb.DuckDBPyConnection) -> dict[int, Item]:
        """By number: every difference, and the first of what is settled.

        Raises:
            ReconcileError: There are more differences than anybody looks at.
        """
        raw = self._chosen(db)
        rows_here = self._rows(self.here, [rid for each in raw for rid in each.here], is_here=True)
        rows_there = self._rows(self.there, [rid for each in raw for rid in each.there], is_here=False)
        items = {
            each.number: (tuple(rows_here[rid] for rid in each.here), tuple(rows_there[rid] for rid in each.there))
            for each in raw
        }
        keys = naming.keys(db, self.rules, {each.number: (each.here, each.there) for each in raw}, items, self.earlier)
        values = self._values(db)
        uuids = {str(row["booking_uuid"]) for row in rows_here.values() if row.get("booking_uuid")}
        versions, owed = self.facts.versions(uuids), set(self.facts.owed(uuids))
        swapped = evidence.swapped(
            self.rules, self.types, [each.number for each in raw if each.bucket is Bucket.MISMATCHED], values, keys
        )
        usual = evidence.commissions(db, self.rules, self.here)
        rates = self._rates([each for each in raw if each.is_pair], items, values)
        lone = self._lone(db, [each for each in raw if not (each.here and each.there)], items)
        today = self.rules.now.astimezone(UTC).date()
        made = {}
        for each in raw:
            h, t = items[each.number]
            uuid = next((str(row["booking_uuid"]) for row in h if row.get("booking_uuid")), None)
            found, remark = each.bucket, ""
            if each.is_pair:
                pair = reasons.PairCase(
                    here=h[0], there=t[0], versions=versions.get(uuid or "", ()), is_owed=uuid in owed,
                    swapped_with=swapped.get(each.number), commission=usual.get(str(h[0].get("connection_id"))),
                    rates=rates,
                )  # fmt: skip
                differences = self._field_differences(pair, values[each.number])
                if each.normalised:
                    remark = "The keys are equal but for white space, case, leading zeros or a prefix."
            else:
                found, difference = self._whole(each, h, t, lone.get(each.number))
                differences = [difference]
            bucket, acceptance = found, self.acceptances.get(keys[each.number])
            if bucket.is_difference:
                if acceptance is not None and (acceptance.until is None or acceptance.until >= today):
                    bucket = Bucket.ACCEPTED
                elif self._is_fresh(h, t):
                    bucket = Bucket.TOO_FRESH
            made[each.number] = Item(
                key=keys[each.number],
                bucket=bucket,
                found=found,
                rule=None if each.rule is None else self.rules.keys[each.rule].name,
                normalised=each.normalised,
                remark=remark,
                here=h,
                there=t,
                places=tuple(self.place(rid) for rid in each.there),
                differences=tuple(differences),
                acceptance=acceptance if bucket is Bucket.ACCEPTED else None,
                connection=next((row["connection_id"] for row in h if row.get("connection_id")), None),
                booking_uuid=uuid,
                day=day_of(self.rules, h, t),
                currency=currency_of(self.rules, h, t),
            )
        return made

    # ── rows ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _chosen(self, db: duckdb.DuckDBPyConnection) -> list[_Raw]:
        many = {Bucket(b): n for b, n in db.execute("select bucket, count(*) from plain group by 1").fetchall()}
        open_items = sum(n for bucket, n in many.items() if bucket.is_difference)
        if open_items > MOST_ITEMS:
            said = ", ".join(f"{bucket} {n:,}" for bucket, n in many.items())
            raise ReconcileError(
                f"reconcile.{self.rules.name}: {open_items:,} bookings differ ({said}); more than {MOST_ITEMS:,} are no list "
                "for a person. Is it the right ledger, the right window, the right key? Nothing was stored."
            )
        settled = ", ".join(f"'{bucket}'" for bucket in Bucket if not bucket.is_difference)
        db.execute(
            "create temp table chosen as select * from plain "
            f"qualify bucket not in ({settled}) or row_number() over (partition by bucket order by item) <= {MOST_SETTLED}"
        )
        chosen = db.execute("select item, bucket, rule, normalised from chosen order by item").fetchall()
        raw = {number: _Raw(number, Bucket(bucket), rule, normalised) for number, bucket, rule, normalised in chosen}
        members = db.execute(
            "select item, side, rid from (select item, 'h' as side, h as rid from odd union all "
            "select item, 't', t from odd union all select item, side, rid from member) "
            "semi join chosen using (item) order by item, side, rid"
        ).fetchall()
        for number, side, rid in members:
            (raw[number].here if side == "h" else raw[number].there).append(rid)
        return list(raw.values())

    def _rows(self, table: pa.Table, rids: list[int], *, is_here: bool) -> dict[int, Row]:
        rules = self.rules
        wanted = [c for key in rules.keys for c in (key.here if is_here else key.there)]
        wanted += [f.here if is_here else f.there for f in rules.fields]
        if is_here:
            wanted += [*_HELPFUL, rules.date]
        else:
            wanted += [wall(f.there) for f in rules.fields if self.types[f.here] == "instant"]
            wanted += [name for name in (rules.date_there, rules.changed_there) if name]
        columns = [name for name in dict.fromkeys(wanted) if name in table.schema.names]
        rows = table.select(columns).take(pa.array(rids, pa.int64())).to_pylist()
        return dict(zip(rids, rows, strict=True))

    def _values(self, db: duckdb.DuckDBPyConnection) -> dict[int, tuple[Any, ...]]:
        """Per pair, per field: verdict, value here, value there; then per key: verdict, key here, key there."""
        parts = [f"v{i}, h.f{i}, t.f{i}" for i in range(len(self.rules.fields))]
        parts += [f"x{i}, h.k{i}, t.k{i}" for i in range(len(self.rules.keys))]
        found = db.execute(
            f"select item, {', '.join(parts)} from odd semi join chosen using (item) "
            "join h on h.rid = odd.h join t on t.rid = odd.t"
        ).fetchall()
        return {row[0]: row[1:] for row in found}

    def _rates(
        self,
        pairs: Iterable[_Raw],
        items: Mapping[int, tuple[tuple[Row, ...], tuple[Row, ...]]],
        values: Mapping[int, tuple[Any, ...]],
    ) -> dict[tuple[str, str], Decimal]:
        at, amount = next((3 * i for i, f in enumerate(self.rules.fields) if f.here == "currency"), None), self._amount
        if at is None or amount is None:
            return {}
        found = [(values[each.number][at : at + 3], *items[each.number]) for each in pairs]
        return evidence.rates(
            (str(h), str(t), exact(here[0].get(amount[0])), exact(there[0].get(amount[1])))
            for (verdict, h, t), here, there in found
            if verdict == DIFFERS
        )

    # ── what differs ──────────────────────────────────────────────────────────────────────────────────────────────

    def _field_differences(self, pair: reasons.PairCase, values: tuple[Any, ...]) -> list[Difference]:
        currency, amount = currency_of(self.rules, (pair.here,), ()), self._amount
        amounts = (exact(pair.here.get(amount[0])), exact(pair.there.get(amount[1]))) if amount else (None, None)
        differences = []
        for i, rule in enumerate(self.rules.fields):
            verdict, h, t = values[3 * i : 3 * i + 3]
            if verdict not in (DIFFERS, WITHIN):
                continue
            kind = self.types[rule.here]
            # What one side leaves empty is 0 to the control totals too.
            delta = (t or Decimal(0)) - (h or Decimal(0)) if kind == "amount" else None
            if verdict == WITHIN:
                code, sentence = "within_tolerance", "Within the tolerance."
            else:
                case = reasons.FieldCase(
                    pair=pair, field=rule.here, kind=kind, h=h, t=t, currency=currency, meant=meant(rule.mapping, t),
                    wall_t=pair.there.get(wall(rule.there)) if kind == "instant" else None, amounts=amounts,
                )  # fmt: skip
                code, sentence = reasons.because(case)
            differences.append(Difference(rule.here, shown(h), shown(t), delta, currency, sentence, code))
        offset, told = 3 * len(self.rules.fields), {difference.field for difference in differences}
        for i, key in enumerate(self.rules.keys):
            verdict, h, t = values[offset + 3 * i : offset + 3 * i + 3]
            # A column may be a field as well, or a key for several columns there: what differs by its name is one difference.
            if verdict == DIFFERS and key.name not in told:
                told.add(key.name)
                code, sentence = reasons.why_reference(pair, key.name)
                differences.append(Difference(key.name, h, t, None, currency, sentence, code))
        return differences

    @property
    def _amount(self) -> tuple[str, str] | None:
        """The columns of the first amount, here and there."""
        return next(((f.here, f.there) for f in self.rules.fields if self.types[f.here] == "amount"), None)

    def _whole(
        self, each: _Raw, h: tuple[Row, ...], t: tuple[Row, ...], lone: alone.LoneCase | None
    ) -> tuple[Bucket, Difference]:
        """An item that is no pair: its bucket and its one difference."""
        bucket, amount = each.bucket, self._amount if len(currencies(self.rules, h, t)) <= 1 else None
        if bucket is Bucket.OUT_OF_WINDOW:
            code, sentence = "outside", f"It travels outside of {self.rules.window}."
        elif lone is None:
            code, sentence = alone.why_extra(h, t, amount)
        else:
            code, sentence = alone.why_alone(lone, is_here=bool(h))
            # A row whose own day is in the window is a difference, on whatever day the booking is here.
            if code == "other_day" and day_of(self.rules, h, t) is None:
                bucket = Bucket.OUT_OF_WINDOW
            lines = max(len(h), len(t))
            if lines > 1:
                sentence += f" It has {lines} rows with this key."
        total_h, total_t = (total(h, amount[0]), total(t, amount[1])) if amount else (None, None)
        delta = None if total_h is None and total_t is None else (total_t or Decimal(0)) - (total_h or Decimal(0))
        currency = currency_of(self.rules, h, t)
        return bucket, Difference("", shown(total_h), shown(total_t), delta, currency, sentence, code)

    def _lone(
        self,
        db: duckdb.DuckDBPyConnection,
        lone: list[_Raw],
        items: _Items,
    ) -> dict[int, alone.LoneCase]:
        """What is known about the items that only one side has."""
        twins, totals = self._twins(db, lone, items), evidence.Totals(db, self.rules, self.types)
        known = self._known({each.number: items[each.number][1][0] for each in lone if each.there})
        column = next((key.there[0] for key in self.rules.keys if key.here == ("booking_uuid",)), "")
        named = {each.number: str(items[each.number][1][0].get(column) or "").strip() for each in lone if each.there}
        uuids = {str(booking["booking_uuid"]) for bookings in known.values() for booking in bookings}
        compared, wanted = self._compared(uuids), uuids.union(named.values()) - {""}
        owed = set(self.facts.owed(wanted)) if wanted else set()
        covered: dict[date, bool | None] = {}
        cases = {}
        for each in lone:
            h, t = items[each.number]
            day = day_of(self.rules, h, t)
            if day is not None and not h and day not in covered:
                covered[day] = self.facts.is_covered(day)
            bookings = known.get(each.number, ())
            cases[each.number] = alone.LoneCase(
                row=(h or t)[0], window=self.rules.window, date=self.rules.date, known=bookings, compared=compared,
                is_owed=named.get(each.number) in owed or any(str(booking["booking_uuid"]) in owed for booking in bookings),
                is_covered=covered.get(day) if day is not None else None, twin=twins.get(each.number, ""),
                word=totals.word(t[0], partial(self.last, each.there[0])) if t else "", is_sum=bool(t) and totals.is_sum(t[0]),
            )  # fmt: skip
        return cases

    def _twins(self, db: duckdb.DuckDBPyConnection, lone: Sequence[_Raw], items: _Items) -> dict[int, str]:
        """By number: what the item of the other side is called that is alike but for a mistyped key."""
        ours = {each.here[0]: each.number for each in lone if len(each.here) == 1}
        theirs = {each.there[0]: each.number for each in lone if len(each.there) == 1}
        found = {}
        for h, t in evidence.twins(db, self.rules, self.types, (list(ours), list(theirs))):
            here, there = ours[h], theirs[t]
            found[there], found[here] = naming.alike(self.rules, items[here][0][0], items[there][1][0])
        return found

    def _known(self, rows: Mapping[int, Row]) -> dict[int, list[Row]]:
        """Bookings of the copy that have a key of a row that is only there, and no other stronger one."""
        found: dict[int, list[Row]] = defaultdict(list)
        stronger: list[tuple[str, str]] = []
        for key in self.rules.keys:
            if len(key.here) != 1 or key.here[0] not in _LOOK_UP:
                continue
            (column,), (there,) = key.here, key.there
            wanted = defaultdict(list)
            for number, row in rows.items():
                value = row.get(there)
                if value is not None and not found[number]:
                    wanted[str(value).strip()].append(number)
            for booking in self.facts.bookings(column, list(wanted)) if wanted else ():
                for number in wanted.get(str(booking[column]), ()):
                    if not any(_is_other(booking.get(c), rows[number].get(t)) for c, t in stronger):
                        found[number].append(booking)
            stronger.append((column, there))
        return found

    def _compared(self, uuids: Collection[str]) -> frozenset[str]:
        """Which of the bookings are among the rows here."""
        if not uuids or "booking_uuid" not in self.here.schema.names:
            return frozenset()
        column = self.here.column("booking_uuid")
        return frozenset(column.filter(pc.is_in(column, pa.array(sorted(uuids), column.type))).to_pylist())

    # ── when ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _is_fresh(self, h: Sequence[Row], t: Sequence[Row]) -> bool:
        """Whether a side changed so shortly before the other one was made, or since, that the next one may say the same."""
        grace, now = self.rules.grace, self.rules.now
        seen_here, seen_there = (min(now, side.as_of or now) for side in self.sides)
        changed_here = [instant(row.get("utc_updated_at") or row.get("utc_created_at")) for row in h]
        changed_there = [instant(row.get(self.rules.changed_there or "")) for row in t]
        return any(
            now - seen <= _NIGHTLY + grace and moment is not None and moment > seen - grace
            for seen, changed in ((seen_there, changed_here), (seen_here, changed_there))
            for moment in changed
        )


def _is_other(a: object, b: object) -> bool:
    """Whether both are keys, and not the same."""
    texts = [str(value).strip().upper().lstrip("0") if value is not None else "" for value in (a, b)]
    return all(texts) and texts[0] != texts[1]
