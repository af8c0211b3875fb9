"""Bookings, a ledger made of them, and faults planted in it at random places, each with what a comparison has to say of it.

Nothing here knows the engine: what is expected is written down from the words of the specification. No two faults meet in one
order, so that each can be judged alone.
"""

import random
import uuid
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import pyarrow as pa

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
LEDGER_AS_OF = NOW - timedelta(hours=6)
START, END = date(2026, 7, 1), date(2026, 12, 31)
UNCOVERED = END
"""A day whose bookings the copy has not verified; nothing else travels on it."""
DIGITS = {"EUR": 2, "JPY": 0, "BHD": 3}
VENUES = {"lisbon": ("Europe/Lisbon", "EUR"), "manama-agency": ("Europe/Lisbon", "BHD"), "tokyo": ("Asia/Tokyo", "JPY")}
STATES = {"OK": ("CONFIRMED", "REDEEMED"), "XX": ("CANCELLED",)}
CODES = {
    **{f"T-{100 + i}": (f"P{i:02d}",) for i in range(36)},
    # One code there for two products here, and two codes there for one.
    "T-900": ("P36", "P37"),
    "T-901": ("P38",),
    "T-902": ("P38",),
}
PRODUCTS = [f"P{i:02d}" for i in range(39)]
VARIANTS = ("all keys", "without uuid", "composite only")

Row = dict[str, object]
Codes = frozenset[tuple[str, str]]


@dataclass(frozen=True)
class Found:
    """An item: its rows here `(connection, uuid)`, its rows there by number, its bucket, and code by field."""

    here: frozenset[tuple[str, str]]
    there: frozenset[int]
    bucket: str
    codes: Codes
    normalised: bool = False


@dataclass
class Planted:
    """`expected` is per variant, of every item that is no plain match, with the kind of fault that it comes from."""

    here: list[Row]
    there: list[Row]
    facts: "Facts"
    expected: dict[str, dict[Found, str]]
    kinds: dict[str, int]
    invisible: int = 0

    def tables(self) -> tuple[pa.Table, pa.Table]:
        return pa.Table.from_pylist(self.here, HERE), pa.Table.from_pylist(self.there, THERE)


@dataclass
class Facts:
    """What the copy remembers, and what it was asked for."""

    known: list[Row] = field(default_factory=list)
    history: dict[str, list[Row]] = field(default_factory=dict)
    dirty: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._index: dict[str, dict[object, list[Row]]] = {}

    def bookings(self, column: str, values: Collection[str]) -> Sequence[Mapping[str, object]]:
        if column not in self._index:
            index = self._index[column] = defaultdict(list)
            for row in self.known:
                index[row[column]].append(row)
        return [row for value in values for row in self._index[column].get(value, ())]

    def versions(self, uuids: Collection[str]) -> Mapping[str, Sequence[Mapping[str, object]]]:
        return {each: self.history[each] for each in uuids if each in self.history}

    def owed(self, uuids: Collection[str]) -> Collection[str]:
        return self.dirty.intersection(uuids)

    def is_covered(self, day: date) -> bool | None:
        return day != UNCOVERED


_MONEY, _MOMENT, _CLOCK = pa.decimal128(18, 4), pa.timestamp("us", "UTC"), pa.timestamp("us")
HERE = pa.schema(
    [
        *((name, pa.string()) for name in ("connection_id", "booking_uuid", "supplier_reference", "reseller_reference")),
        *((name, pa.string()) for name in ("status", "product_code", "product_name", "currency")),
        ("travel_date", pa.date32()), ("local_start_at", _CLOCK), ("utc_start_at", _MOMENT), ("utc_created_at", _MOMENT),
        ("utc_updated_at", _MOMENT), ("utc_cancelled_at", _MOMENT), ("utc_expires_at", _MOMENT), ("verified_at_utc", _MOMENT),
        ("cancellation_refund", pa.string()),
        ("currency_precision", pa.int64()), ("retail_amount", _MONEY), ("net_amount", _MONEY), ("tax_amount", _MONEY),
        ("unit_count", pa.int64()), ("pax_count", pa.int64()),
    ]
)  # fmt: skip
_LEDGER_MONEY = pa.decimal128(38, 8)
THERE = pa.schema(
    [
        *((name, pa.string()) for name in ("octo_uuid", "booking_no", "agent_ref", "state", "code", "cur")),
        ("gross", _LEDGER_MONEY), ("net", _LEDGER_MONEY), ("day", pa.date32()), ("start_utc", _MOMENT),
        ("start_utc.wall", _CLOCK), ("start_local", _MOMENT), ("start_local.wall", _CLOCK), ("pax", pa.int64()),
        ("changed", _MOMENT),
    ]
)  # fmt: skip


def code_of(product: str) -> str:
    return next(code for code, products in CODES.items() if product in products)


def clocks(row: Row, moment: datetime, local: datetime) -> None:
    """Write a start into a row of the ledger; its local times were read as Lisbon's, wherever the venue is."""
    row["start_utc"], row["start_utc.wall"] = moment, moment.replace(tzinfo=None)
    row["start_local"], row["start_local.wall"] = local.replace(tzinfo=ZoneInfo("Europe/Lisbon")), local


def unit(booking: Row) -> Decimal:
    return Decimal(1).scaleb(-int(booking["currency_precision"]))


class Planter:
    """Makes the world, then plants. `per_fault` faults of each kind."""

    def __init__(self, seed: int, bookings: int, per_fault: int) -> None:
        self.random = random.Random(seed)
        self.per_fault = per_fault
        self.taken: set[tuple[object, ...]] = set()
        self.orders: list[list[Row]] = []
        self.ledger: dict[str, list[Row]] = {}
        self.gone: set[str] = set()
        self.facts = Facts()
        self.claims: list[tuple[str, dict[str, list[tuple[list[Row], list[Row], str, Codes, bool]]]]] = []
        self.second: list[Row] = []
        self.kinds: dict[str, int] = {}
        count = 0
        while count < bookings:
            order = self._order(count)
            self.orders.append(order)
            count += len(order)

    # ── the world ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _order(self, number: int) -> list[Row]:
        connection = self.random.choice(list(VENUES))
        order = []
        for i in range(self.random.choice((1, 1, 1, 2, 2, 3))):
            booking = self.booking(connection, f"BK-{number + i:07d}", f"AG{number:07d}")
            if i == 0 and self.random.random() < 0.02:
                booking["supplier_reference"] = None  # not given one yet
            order.append(booking)
            self.ledger[str(booking["booking_uuid"])] = [self.entry(booking)]
        return order

    def booking(self, connection: str, supplier: str, reseller: str) -> Row:
        rng, (zone, currency) = self.random, VENUES[connection]
        while True:
            day = START + timedelta(days=rng.randrange((END - START).days))
            local = datetime.combine(day, datetime.min.time()) + timedelta(minutes=15 * rng.randrange(32, 80))
            pax = rng.randint(1, 6)
            digits = DIGITS[currency]
            retail = Decimal(rng.randrange(20, 400) * pax * 10 ** max(digits, 2) + rng.randrange(10**digits)).scaleb(
                -digits
            )
            product = rng.choice(PRODUCTS)
            moment = local.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)
            if self.claim(product, moment, retail):
                break
        status = rng.choices(("CONFIRMED", "REDEEMED", "CANCELLED"), (80, 12, 8))[0]
        created = datetime.combine(START, datetime.min.time(), UTC) - timedelta(minutes=rng.randrange(100_000))
        return {
            "connection_id": connection, "booking_uuid": str(uuid.UUID(int=rng.getrandbits(128), version=4)),
            "supplier_reference": supplier, "reseller_reference": reseller, "status": status, "product_code": product,
            "product_name": f"Tour {product}", "currency": currency, "travel_date": day, "local_start_at": local,
            "utc_start_at": moment, "utc_created_at": created, "utc_updated_at": created,
            "utc_cancelled_at": created + timedelta(days=1) if status == "CANCELLED" else None, "utc_expires_at": None,
            "verified_at_utc": NOW - timedelta(hours=3), "currency_precision": digits, "retail_amount": retail,
            "net_amount": round(retail * Decimal("0.8"), digits), "tax_amount": round(retail * Decimal("0.06"), digits),
            "unit_count": max(1, pax - rng.choice((0, 0, 1, 2))), "pax_count": pax,
        }  # fmt: skip

    def claim(self, product: object, moment: object, amount: object) -> bool:
        """Whether nothing else has this product, start and amount."""
        key = (code_of(str(product)) if product in PRODUCTS else product, moment, amount)
        if key in self.taken:
            return False
        self.taken.add(key)
        return True

    def entry(self, booking: Row) -> Row:
        product = str(booking["product_code"])
        row: Row = {
            "octo_uuid": booking["booking_uuid"], "booking_no": booking["supplier_reference"],
            "agent_ref": booking["reseller_reference"], "cur": booking["currency"], "gross": booking["retail_amount"],
            "state": "XX" if booking["status"] == "CANCELLED" else "OK", "net": booking["net_amount"],
            "code": "T-902" if product == "P38" and self.random.random() < 0.5 else code_of(product),
            "day": booking["travel_date"], "pax": booking["pax_count"], "changed": booking["utc_created_at"],
        }  # fmt: skip
        clocks(row, booking["utc_start_at"], booking["local_start_at"])
        return row

    # ── planting ──────────────────────────────────────────────────────────────────────────────────────────────────

    def plant(self) -> Planted:
        self.random.shuffle(self.orders)
        spare = iter(self.orders)
        for name, fault in FAULTS.items():
            done = 0
            while done < self.per_fault:
                order = next(spare)
                booking = self.random.choice(order)
                expected = fault(self, booking, order)
                if expected is not None:
                    self.claims.append((name, expected))
                    done += 1
            self.kinds[name] = done
        return self._finished()

    def _finished(self) -> Planted:
        here = [b for order in self.orders for b in order if b["booking_uuid"] not in self.gone] + self.second
        there = [row for rows in self.ledger.values() for row in rows]
        self.random.shuffle(here)
        self.random.shuffle(there)
        places = {id(row): i for i, row in enumerate(there)}
        self.facts.known += [
            {
                **{n: b[n] for n in ("connection_id", "booking_uuid", "supplier_reference", "reseller_reference", "status")},
                "local_date": b["travel_date"], "booking_date": b.get("booking_date"),
                "is_test": b.get("is_test", False), "is_deleted": b.get("is_deleted", False),
            }
            for order in self.orders
            for b in order
            if not b.get("is_unknown")
        ]  # fmt: skip
        expected: dict[str, dict[Found, str]] = {variant: {} for variant in VARIANTS}
        for name, claims in self.claims:
            for variant, items in claims.items():
                for h, t, bucket, codes, normalised in items:
                    ours = frozenset((str(b["connection_id"]), str(b["booking_uuid"])) for b in h)
                    found = Found(ours, frozenset(places[id(row)] for row in t), bucket, codes, normalised)
                    assert found not in expected[variant], (name, found)
                    expected[variant][found] = name
        invisible = self.kinds.get("wall clock as UTC, winter, Lisbon", 0)
        return Planted(here, there, self.facts, expected, self.kinds, invisible)


Items = list[tuple[list[Row], list[Row], str, Codes, bool]]
Expected = dict[str, Items]
Fault = Callable[[Planter, Row, list[Row]], Expected | None]
FAULTS: dict[str, Fault] = {}


def fault(name: str) -> Callable[[Fault], Fault]:
    def register(function: Fault) -> Fault:
        FAULTS[name] = function
        return function

    return register


def item(
    here: Sequence[Row], there: Sequence[Row], bucket: str, *codes: tuple[str, str], normalised: bool = False
) -> Items:
    return [(list(here), list(there), bucket, frozenset(codes), normalised)]


def everywhere(items: Items) -> Expected:
    return dict.fromkeys(VARIANTS, items)


def by_key(items: Items, composite: Items, without: Items | None = None) -> Expected:
    return {"all keys": items, "without uuid": items if without is None else without, "composite only": composite}


def apart(booking: Row, rows: Sequence[Row]) -> Items:
    """What is left when nothing that the two sides still share says that they belong together."""
    code = "cancelled_here" if booking["status"] == "CANCELLED" else "unknown_there"
    items = item([booking], [], "missing_there", ("", code))
    return items + [each for row in rows for each in item([], [row], "missing_here", ("", "unknown_here"))]


def differs(
    p: Planter, b: Row, *codes: tuple[str, str], in_key: bool = False, bucket: str = "mismatched"
) -> Expected | None:
    """A pair whose fields differ. `in_key`: a part of the composite key is among them."""
    [row] = p.ledger[str(b["booking_uuid"])]
    if in_key and not p.claim(next(iter(CODES.get(str(row["code"]), (row["code"],)))), row["start_utc"], row["gross"]):
        p.ledger[str(b["booking_uuid"])] = [p.entry(b)]
        return None
    items = item([b], [row], bucket, *codes)
    return by_key(items, apart(b, [row]) if in_key else items)


def changed(
    field_: str, code: str, value: Callable[[Row], object], when: Callable[[Row], bool] = lambda _: True
) -> Fault:
    """A fault that puts another value into one column of the ledger."""
    column = {"retail_amount": "gross", "net_amount": "net", "status": "state", "currency": "cur", "pax_count": "pax",
              "product_code": "code"}[field_]  # fmt: skip

    def plant(p: Planter, b: Row, _: list[Row]) -> Expected | None:
        if not when(b) or b["status"] != "CONFIRMED":
            return None
        p.ledger[str(b["booking_uuid"])][0][column] = value(b)
        return differs(p, b, (field_, code), in_key=column in ("gross", "code"))

    return plant


def has_cents(b: Row) -> bool:
    rest = b["retail_amount"] % 1
    return Decimal("0.06") < rest < Decimal("0.94")


def not_whole_then(b: Row) -> bool:
    return b["currency"] == "JPY" or (gross(b) + 3 * unit(b)) % 1 != 0


def gross(b: Row) -> Decimal:
    return b["retail_amount"]


def is_large(b: Row) -> bool:
    """Of less than 10,000 minor units no rate can be told."""
    return gross(b) >= 10_000 * unit(b)


def at(amount: Decimal, factor: str, b: Row) -> Decimal:
    return round(amount * Decimal(factor), b["currency_precision"])


FAULTS |= {
    "amount": changed("retail_amount", "other_amount", lambda b: gross(b) + 7 + 77 * unit(b)),
    "few units": changed("retail_amount", "off_by_a_little", lambda b: gross(b) + 3 * unit(b), not_whole_then),
    "rounding": changed("retail_amount", "rounded", lambda b: round(gross(b)) + Decimal(0), has_cents),
    "net for gross": changed("retail_amount", "commission_left_out", lambda b: b["net_amount"]),
    "gross in the net column": changed("net_amount", "gross_for_net", gross),
    "net amount": changed("net_amount", "other_amount", lambda b: b["net_amount"] - 9 - 13 * unit(b)),
    "tax added": changed("retail_amount", "tax_added", lambda b: gross(b) + b["tax_amount"]),
    "tax left out": changed("retail_amount", "tax_left_out", lambda b: gross(b) - b["tax_amount"]),
    "refund": changed("retail_amount", "sign_turned", lambda b: -gross(b)),
    "hundredfold": changed("retail_amount", "minor_units", lambda b: 100 * gross(b)),
    "smallest units": changed(
        "retail_amount", "minor_units", lambda b: 1000 * gross(b), lambda b: b["currency"] == "BHD"
    ),
    "currency": changed("currency", "other_currency", lambda _: "USD"),
    "twice": changed("retail_amount", "invoiced_twice", lambda b: 2 * gross(b)),
    "commission of another channel": changed(
        "net_amount", "other_commission", lambda b: at(gross(b), "0.75", b), is_large
    ),
    "cancelled after last sync": changed("status", "cancelled_there", lambda _: "XX"),
    "status without a map": changed("status", "not_mapped", lambda _: "on request"),
    "guests": changed("pax_count", "other_guests", lambda b: b["pax_count"] + 1),
    "tickets for guests": changed(
        "pax_count", "tickets_not_people", lambda b: b["unit_count"], lambda b: b["unit_count"] != b["pax_count"]
    ),
    "no guests": changed("pax_count", "empty_there", lambda _: None),
    "product": changed("product_code", "other_product", lambda b: "T-100" if b["product_code"] != "P00" else "T-101"),
    "product without a map": changed("product_code", "not_mapped", lambda _: "walking"),
}


@fault("a net price with another commission here")
def _(p, b, _order):
    if not is_large(b) or b["status"] != "CONFIRMED":
        return None
    b["net_amount"] = at(gross(b), "0.7", b)
    return differs(p, b, ("net_amount", "other_commission"))


@fault("a net price as retail price here")
def _(p, b, _order):
    if (
        not is_large(b)
        or b["status"] != "CONFIRMED"
        or not p.claim(b["product_code"], b["utc_start_at"], b["net_amount"])
    ):
        return None
    b["retail_amount"], b["tax_amount"] = b["net_amount"], None
    rows = p.ledger[b["booking_uuid"]]
    return by_key(item([b], rows, "mismatched", ("retail_amount", "other_commission")), apart(b, rows))


def as_if_net(net: str) -> Fault:
    """A discount of the usual commission, in a ledger of retail prices; the copy knows another net price, or none."""

    def plant(p: Planter, b: Row, _: list[Row]) -> Expected | None:
        row = p.ledger[b["booking_uuid"]][0]
        if not is_large(b) or b["status"] != "CONFIRMED":
            return None
        row["gross"] = at(gross(b), "0.8", b)
        b["net_amount"] = row["net"] = at(gross(b), net, b) if net else None
        return differs(p, b, ("retail_amount", "other_amount"), in_key=True)

    return plant


FAULTS |= {
    "a discount as high as the commission": as_if_net(""),
    "one of a booking with another net price": as_if_net("0.7"),
}


def with_vat(factor: str, *, up: bool, code: str = "possibly_vat") -> Fault:
    def plant(p: Planter, b: Row, _: list[Row]) -> Expected | None:
        if not is_large(b) or b["status"] != "CONFIRMED":
            return None
        row = p.ledger[b["booking_uuid"]][0]
        b["tax_amount"] = b["net_amount"] = row["net"] = None
        value = at(gross(b), factor, b) if up else round(gross(b) / Decimal(factor), b["currency_precision"])
        row["gross"] = value
        return differs(p, b, ("retail_amount", code), in_key=True)

    return plant


FAULTS |= {
    "VAT on top": with_vat("1.21", up=True),
    "without VAT": with_vat("1.23", up=False),
    "a discount of 20 %, as if without VAT": with_vat("1.25", up=False, code="other_amount"),
    "a surcharge of 10 %, as if VAT": with_vat("1.1", up=True, code="other_amount"),
}


@fault("converted")
def _(p, b, _order):
    if b["status"] != "CONFIRMED" or b["currency"] != "EUR":  # a rate shows where others have it
        return None
    row = p.ledger[b["booking_uuid"]][0]
    row["cur"], row["gross"], row["net"] = "USD", at(gross(b), "1.1642", b), at(b["net_amount"], "1.1642", b)
    return differs(p, b, ("currency", "converted"), in_key=True)


@fault("another currency and another amount")
def _(p, b, _order):
    if b["status"] != "CONFIRMED":
        return None
    row = p.ledger[b["booking_uuid"]][0]
    before = sum(each["cur"] == "CHF" for rows in p.ledger.values() for each in rows)
    row["cur"], row["gross"] = "CHF", gross(b) * 2 ** (before + 2)
    return differs(p, b, ("currency", "other_currency"), in_key=True)


@fault("kept of a cancelled booking")
def _(p, b, _order):
    if b["status"] != "CANCELLED":
        return None
    b["cancellation_refund"] = "PARTIAL"
    p.ledger[b["booking_uuid"]][0]["gross"] = at(gross(b), "0.37", b)
    return differs(p, b, ("retail_amount", "partly_refunded"), in_key=True)


def with_refund(share: str, code: str) -> Fault:
    def plant(p: Planter, b: Row, _: list[Row]) -> Expected | None:
        rows = p.ledger[b["booking_uuid"]]
        back = rows[0] | {"gross": -at(gross(b), share, b)}
        if b["status"] != "CONFIRMED" or not p.claim(b["product_code"], b["utc_start_at"], back["gross"]):
            return None
        rows.append(back)
        # By the composite alone the amount is a part of the key: the booking has its row, and the refund is one more.
        alone = item([], [back], "missing_here", ("", "unknown_here"))
        return by_key(item([b], rows, "duplicate_there", ("", code)), alone)

    return plant


FAULTS |= {
    "refunded by a line": with_refund("1", "refunded"),
    "partly refunded by a line": with_refund("0.4", "partly_refunded"),
}


@fault("within the tolerance")
def _(p, b, _order):
    if b["currency"] == "JPY":
        return None
    p.ledger[b["booking_uuid"]][0]["gross"] += unit(b)
    return differs(p, b, ("retail_amount", "within_tolerance"), in_key=True, bucket="matched_within_tolerance")


@fault("cancelled here")
def _(p, b, _order):
    if b["status"] != "CANCELLED":
        return None
    p.ledger[b["booking_uuid"]][0]["state"] = "OK"
    return differs(p, b, ("status", "cancelled_here"))


@fault("held and sold there")
def _(p, b, _order):
    b["status"], b["utc_expires_at"], b["utc_cancelled_at"] = "EXPIRED", b["utc_created_at"], None
    p.ledger[b["booking_uuid"]][0]["state"] = "OK"
    return differs(p, b, ("status", "hold_expired"))


@fault("held and expired")
def _(p, b, _order):
    b["status"], b["utc_expires_at"], b["utc_cancelled_at"] = "EXPIRED", b["utc_created_at"], None
    p.ledger[b["booking_uuid"]] = []
    return everywhere(item([b], [], "missing_there", ("", "hold_expired")))


@fault("cancelled here, dropped there")
def _(p, b, _order):
    if b["status"] != "CANCELLED":
        return None
    p.ledger[b["booking_uuid"]] = []
    return everywhere(item([b], [], "missing_there", ("", "cancelled_here")))


def moved(by: timedelta, code: str) -> Fault:
    def plant(p: Planter, b: Row, _: list[Row]) -> Expected | None:
        local = b["local_start_at"] + by
        if not START <= local.date() < END:
            return None
        moment = local.replace(tzinfo=ZoneInfo(VENUES[b["connection_id"]][0])).astimezone(UTC)
        if moment - b["utc_start_at"] != by:
            return None  # over a change of the clock; planted apart
        [row] = p.ledger[b["booking_uuid"]]
        clocks(row, moment, local)
        row["day"] = local.date()
        days = [("travel_date", "moved_day")] if by >= timedelta(days=1) else []
        return differs(p, b, ("utc_start_at", code), ("local_start_at", code), *days, in_key=True)

    return plant


FAULTS |= {
    "moved day": moved(timedelta(days=1), "moved_day"),
    "moved week": moved(timedelta(days=7), "moved_day"),
    "moved time": moved(timedelta(minutes=30), "moved_time"),
    "moved day and time": moved(timedelta(days=2, minutes=-75), "moved_day"),
}


def clock_fault(zone: str, *, summer: bool, seen: bool) -> Fault:
    def plant(p: Planter, b: Row, _: list[Row]) -> Expected | None:
        if VENUES[b["connection_id"]][0] != zone or (date(2026, 10, 25) <= b["travel_date"]) is summer:
            return None
        [row] = p.ledger[b["booking_uuid"]]
        local = b["local_start_at"]
        row["start_utc"], row["start_utc.wall"] = local.replace(tzinfo=UTC), local
        return differs(p, b, ("utc_start_at", "wall_clock_as_utc"), in_key=True) if seen else everywhere([])

    return plant


FAULTS |= {
    "wall clock as UTC, summer, Lisbon": clock_fault("Europe/Lisbon", summer=True, seen=True),
    "wall clock as UTC, winter, Lisbon": clock_fault("Europe/Lisbon", summer=False, seen=False),
    "wall clock as UTC, summer, Tokyo": clock_fault("Asia/Tokyo", summer=True, seen=True),
    "wall clock as UTC, winter, Tokyo": clock_fault("Asia/Tokyo", summer=False, seen=True),
}


@fault("UTC as wall clock")
def _(p, b, _order):
    moment = b["utc_start_at"].replace(tzinfo=None)
    if moment == b["local_start_at"]:
        return None
    p.ledger[b["booking_uuid"]][0]["start_local.wall"] = moment
    return differs(p, b, ("local_start_at", "wall_clock_as_utc"))


def former(p: Planter, b: Row, **values: object) -> None:
    """An earlier version of a booking, before the present one."""
    ended = b["utc_created_at"] + timedelta(days=2)
    now = {"retail_amount": gross(b), "pax_count": b["pax_count"], "local_date": b["travel_date"], "valid_to_utc": None}
    p.facts.history[b["booking_uuid"]] = [{**now, **values, "valid_to_utc": ended}, now]


@fault("price changed after booking")
def _(p, b, _order):
    old = gross(b) - 6 - 41 * unit(b)
    former(p, b, retail_amount=old)
    p.ledger[b["booking_uuid"]][0]["gross"] = old
    return differs(p, b, ("retail_amount", "price_changed"), in_key=True)


@fault("guests changed after booking")
def _(p, b, _order):
    former(p, b, pax_count=9)
    p.ledger[b["booking_uuid"]][0]["pax"] = 9
    return differs(p, b, ("pax_count", "guests_changed"))


@fault("moved after booking")
def _(p, b, _order):
    day = b["travel_date"] - timedelta(days=3)
    if day < START:
        return None
    former(p, b, local_date=day)
    p.ledger[b["booking_uuid"]][0]["day"] = day
    return differs(p, b, ("travel_date", "moved_here"))


@fault("notification not landed")
def _(p, b, _order):
    p.facts.dirty.add(b["booking_uuid"])
    p.ledger[b["booking_uuid"]][0]["pax"] = 8
    return differs(p, b, ("pax_count", "notification_not_landed"))


# ── references ────────────────────────────────────────────────────────────────────────────────────────────────────────


def written(how: Callable[[str], str]) -> Fault:
    def plant(p: Planter, b: Row, _: list[Row]) -> Expected | None:
        if b["supplier_reference"] is None:
            return None
        [row] = p.ledger[b["booking_uuid"]]
        row["octo_uuid"], row["booking_no"] = None, how(b["supplier_reference"])
        return by_key(item([b], [row], "matched", normalised=True), [])

    return plant


FAULTS |= {
    "reference in another case": written(str.lower),
    "reference without prefix": written(lambda text: text.removeprefix("BK-")),
    "reference without leading zeros": written(lambda text: str(int(text.removeprefix("BK-")))),
    "reference with spaces": written(lambda text: f"\u00a0 {text} "),
}


@fault("lost reference")
def _(p, b, _order):
    p.ledger[b["booking_uuid"]][0]["booking_no"] = None
    return everywhere([])


@fault("all references lost")
def _(p, b, _order):
    p.ledger[b["booking_uuid"]][0] |= {"booking_no": None, "octo_uuid": None, "agent_ref": None}
    return everywhere([])


@fault("another reference")
def _(p, b, order):
    if any(each["supplier_reference"] is None for each in order):
        return None
    [row] = p.ledger[b["booking_uuid"]]
    row["booking_no"] = f"other-{b['supplier_reference']}"
    # Without the uuid, an order's reference says only of a single booking who is meant, against what the other one says.
    pair = item([b], [row], "mismatched", ("supplier_reference", "other_reference"))
    return by_key(pair, [], pair if len(order) == 1 else apart(b, [row]))


@fault("mistyped reference")
def _(p, b, order):
    if len(order) > 1 or b["supplier_reference"] is None or b["status"] != "CONFIRMED":
        return None
    [row] = p.ledger[b["booking_uuid"]]
    # Two that are mistyped the same way would be one row more of one another.
    letters = "".join(chr(ord("g") + int(digit, 16)) for digit in str(b["booking_uuid"])[:2])
    row |= {"octo_uuid": None, "agent_ref": None, "booking_no": f"{b['supplier_reference'][:-2]}{letters}"}
    alone = item([b], [], "missing_there", ("", "key_mistyped")) + item([], [row], "missing_here", ("", "key_mistyped"))
    return by_key(alone, [])


@fault("swapped references")
def _(p, b, order):
    if len(order) < 2 or any(each["supplier_reference"] is None or each["status"] != "CONFIRMED" for each in order):
        return None
    a, b = order[:2]
    [x], [y] = p.ledger[a["booking_uuid"]], p.ledger[b["booking_uuid"]]
    names = {
        "retail_amount": "gross", "net_amount": "net", "utc_start_at": "start_utc", "local_start_at": "start_local.wall",
        "travel_date": "day", "pax_count": "pax", "product_code": "code",
    }  # fmt: skip
    fields = [name for name, column in names.items() if x[column] != y[column]]
    if any(abs(x[column] - y[column]) < 1 for column in ("gross", "net")) or a["product_code"] == b["product_code"]:
        return None
    x["booking_no"], y["booking_no"] = y["booking_no"], x["booking_no"]
    swapped = ("supplier_reference", "references_swapped")
    codes = [(name, "references_swapped") for name in fields]
    if {"P36", "P37"} == {a["product_code"], b["product_code"]}:
        codes.remove(("product_code", "references_swapped"))
    return by_key(
        item([a], [x], "mismatched", swapped) + item([b], [y], "mismatched", swapped),
        [],
        item([a], [y], "mismatched", *codes) + item([b], [x], "mismatched", *codes),
    )


# ── one side only, or more than once ──────────────────────────────────────────────────────────────────────────────────


def stranger(p: Planter, b: Row, **values: object) -> Row:
    """A row of the ledger that no booking here stands behind, made after one that does."""
    while True:
        other = p.booking(b["connection_id"], f"NO-{p.random.getrandbits(48)}", f"XA{p.random.getrandbits(48)}")
        if other["status"] == "CONFIRMED":
            row = p.entry(other) | values
            p.ledger[other["booking_uuid"]] = [row]
            return row


@fault("missing here")
def _(p, b, _order):
    return everywhere(item([], [stranger(p, b)], "missing_here", ("", "unknown_here")))


@fault("missing here, of an order that is here")
def _(p, b, order):
    if any(each["supplier_reference"] is None for each in order):
        return None  # it may be the one meant
    row = stranger(p, b, agent_ref=b["reseller_reference"])
    return everywhere(item([], [row], "missing_here", ("", "unknown_here")))


@fault("missing here, month never verified")
def _(p, b, _order):
    return everywhere(item([], [stranger(p, b, day=UNCOVERED)], "missing_here", ("", "not_covered")))


@fault("missing here, notification not landed")
def _(p, b, _order):
    row = stranger(p, b)
    p.facts.dirty.add(row["octo_uuid"])
    unknown = item([], [row], "missing_here", ("", "unknown_here"))
    return by_key(item([], [row], "missing_here", ("", "notification_not_landed")), unknown, unknown)


@fault("one row more for an order")
def _(p, b, order):
    if len(order) < 2 or any(each["supplier_reference"] is None for each in order):
        return None
    row = stranger(p, b, octo_uuid=None, booking_no=None, agent_ref=b["reseller_reference"])
    unknown = item([], [row], "missing_here", ("", "unknown_here"))
    return by_key(item([], [row], "missing_here", ("", "one_more")), unknown)


@fault("totals row")
def _(p, b, _order):
    row = dict.fromkeys(p.entry(b)) | {"booking_no": f"Total {b['booking_uuid'][:8]}", "gross": gross(b)}
    p.ledger[f"a total beside {b['booking_uuid']}"] = [row]
    # By the composite alone, the column with the word is not read.
    return by_key(
        item([], [row], "missing_here", ("", "totals_row")), item([], [row], "missing_here", ("", "unknown_here"))
    )


@fault("missing there")
def _(p, b, order):
    if b["status"] == "CANCELLED":
        return None
    p.ledger[b["booking_uuid"]] = []
    return everywhere(item([b], [], "missing_there", ("", "unknown_there")))


@fault("missing there, one of an order")
def _(p, b, order):
    return FAULTS["missing there"](p, b, order) if len(order) > 1 else None


@fault("duplicate here")
def _(p, b, _order):
    p.second.append(b | {"connection_id": "second"})
    rows = p.ledger[b["booking_uuid"]]
    return everywhere(item([b, p.second[-1]], rows, "duplicate_here", ("", "entered_twice")))


@fault("duplicate there")
def _(p, b, _order):
    rows = p.ledger[b["booking_uuid"]]
    rows.append(dict(rows[0]))
    return everywhere(item([b], rows, "duplicate_there", ("", "entered_twice")))


@fault("duplicate there, written otherwise")
def _(p, b, _order):
    if b["supplier_reference"] is None:
        return None
    rows = p.ledger[b["booking_uuid"]]
    rows.append(rows[0] | {"octo_uuid": None, "booking_no": b["supplier_reference"].lower()})
    items = item([b], rows, "duplicate_there", ("", "entered_twice"))
    return by_key(items, items, item([b], rows, "duplicate_there", ("", "entered_twice"), normalised=True))


@fault("split into two lines")
def _(p, b, _order):
    rows = p.ledger[b["booking_uuid"]]
    part = round(gross(b) * Decimal("0.3"), b["currency_precision"])
    rows.append(rows[0] | {"gross": part})
    rows[0]["gross"] -= part
    if b["status"] != "CONFIRMED" or not all(
        p.claim(b["product_code"], b["utc_start_at"], row["gross"]) for row in rows
    ):
        rows[:] = [p.entry(b)]
        return None
    return by_key(item([b], rows, "duplicate_there", ("", "split")), apart(b, rows))


def left_out(code: str, bucket: str = "missing_here", entry: Row | None = None, **values: object) -> Fault:
    """A booking that the copy knows, and that is not among the rows here; `entry` is what the ledger says otherwise."""

    def plant(p: Planter, b: Row, _: list[Row]) -> Expected | None:
        if b["status"] != "CONFIRMED" or b["supplier_reference"] is None:
            return None
        rows = p.ledger[b["booking_uuid"]]
        p.gone.add(b["booking_uuid"])
        rows[0] |= entry or {}
        b |= values
        return by_key(item([], rows, bucket, ("", code)), item([], rows, "missing_here", ("", "unknown_here")))

    return plant


FAULTS |= {
    "deleted here": left_out("deleted_here", is_deleted=True),
    "test booking": left_out("test_booking", is_test=True),
    "never sold here": left_out("hold_expired", status="EXPIRED"),
    "left out by the query": left_out("left_out"),
    "travels on another day here": left_out("other_day", travel_date=END + timedelta(days=40)),
    "travels on another day here, and the ledger says none": left_out(
        "other_day", "out_of_window", {"day": None}, travel_date=END + timedelta(days=40)
    ),
    "open-dated and booked before the window": left_out(
        "other_day", travel_date=None, booking_date=START - timedelta(days=1)
    ),
}


@fault("outside the window")
def _(p, b, _order):
    return everywhere(item([], [stranger(p, b, day=END + timedelta(days=9))], "out_of_window", ("", "outside")))


@fault("too fresh, only here")
def _(p, b, _order):
    if b["status"] == "CANCELLED":
        return None
    p.ledger[b["booking_uuid"]] = []
    b["utc_updated_at"] = LEDGER_AS_OF - timedelta(hours=1)
    return everywhere(item([b], [], "too_fresh", ("", "unknown_there")))


@fault("too fresh, only there")
def _(p, b, _order):
    row = stranger(p, b, changed=NOW - timedelta(hours=1))
    return everywhere(item([], [row], "too_fresh", ("", "unknown_here")))


@fault("too fresh, changed there")
def _(p, b, _order):
    p.ledger[b["booking_uuid"]][0] |= {"pax": 11, "changed": NOW - timedelta(minutes=119)}
    return differs(p, b, ("pax_count", "other_guests"), bucket="too_fresh")


def planted(seed: int, bookings: int = 50_000, per_fault: int = 12) -> Planted:
    """A world with faults in it."""
    return Planter(seed, bookings, per_fault).plant()
