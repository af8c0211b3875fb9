"""Faults of every kind, planted at random among many bookings: each is found, named and explained, and nothing else is."""

from collections import Counter
from datetime import timedelta
from decimal import Decimal

import pytest
from tests.reconciliation.planting import CODES, END, LEDGER_AS_OF, NOW, START, STATES, VARIANTS, Found, planted

from octo_sync.model import Window
from octo_sync.reconciliation.engine import reconcile
from octo_sync.reconciliation.model import FieldRule, KeyRule, Rules, Side, Tolerance

UUID = KeyRule(("booking_uuid",), ("octo_uuid",))
SUPPLIER = KeyRule(("supplier_reference",), ("booking_no",))
RESELLER = KeyRule(("reseller_reference",), ("agent_ref",))
COMPOSITE = KeyRule(("product_code", "utc_start_at", "retail_amount"), ("code", "start_utc", "gross"))
KEYS = {
    "all keys": (UUID, SUPPLIER, RESELLER, COMPOSITE),
    "without uuid": (SUPPLIER, RESELLER, COMPOSITE),
    "composite only": (COMPOSITE,),
}
FIELDS = (
    FieldRule("status", "state", STATES),
    FieldRule("retail_amount", "gross"),
    FieldRule("net_amount", "net"),
    FieldRule("currency", "cur"),
    FieldRule("utc_start_at", "start_utc"),
    FieldRule("local_start_at", "start_local"),
    FieldRule("travel_date", "day"),
    FieldRule("pax_count", "pax"),
    FieldRule("product_code", "code", CODES),
)


def compared(world, variant):
    here, there = world.tables()
    if variant != "all keys":
        there = there.drop_columns(["octo_uuid"])
    rules = Rules(
        name="ledger", keys=KEYS[variant], fields=FIELDS, window=Window(START, END), now=NOW, date_there="day",
        changed_there="changed", grace=timedelta(hours=2), strip="BK-?",
        tolerance=Tolerance({"EUR": Decimal("0.01"), "BHD": Decimal("0.001"), "JPY": Decimal(0)}),
    )  # fmt: skip
    sides = (Side(origin="copy", rows=len(here), as_of=NOW), Side(origin="ledger", rows=len(there), as_of=LEDGER_AS_OF))
    return reconcile(rules, here, there, sides=sides, place=str, facts=world.facts)


def found(item):
    return Found(
        frozenset((row["connection_id"], row["booking_uuid"]) for row in item.here),
        frozenset(map(int, item.places)),
        str(item.bucket),
        frozenset((d.field, d.code) for d in item.differences),
        item.normalised,
    )


def check(world, variant):
    outcome = compared(world, variant)
    got, want = {found(item): item for item in outcome.items}, world.expected[variant]
    assert [(want[each], each) for each in want.keys() - got.keys()] == [], "not found, or otherwise"
    assert [got[each] for each in got.keys() - want.keys()] == [], "nothing is wrong with these"
    # Every booking is in one item, and all that were left alone match.
    assert outcome.counts["matched"] == len(world.here) - len({h for each in want for h in each.here}) + sum(
        each.bucket == "matched" for each in want
    )
    differ = [each for each in want if each.bucket not in ("matched", "matched_within_tolerance", "out_of_window")]
    assert outcome.differences + outcome.counts.get("too_fresh", 0) == sum(len(each.codes) for each in differ)
    assert len({item.key for item in outcome.items}) == len(outcome.items)
    assert all(d.reason for item in outcome.items for d in item.differences)
    return outcome


@pytest.fixture(scope="module")
def large():
    return planted(seed=1)


@pytest.mark.deep(6)
@pytest.mark.parametrize("variant", VARIANTS)
def test_among_50_000_bookings_every_planted_fault_is_found_and_explained_and_nothing_else_is(large, variant):
    check(large, variant)
    assert len(large.kinds) >= 20
    assert min(large.kinds.values()) >= 10
    assert large.invisible >= 10  # equal to what is right, so that nobody could tell


@pytest.mark.deep(3, everyday=["2"])
@pytest.mark.parametrize("seed", range(2, 5))
def test_wherever_the_faults_are_planted(seed):
    world = planted(seed, bookings=4_000, per_fault=10)
    for variant in VARIANTS:
        outcome = check(world, variant)
        by_side = Counter()
        for total in outcome.totals:
            by_side[total.side, total.currency] += total.amounts["retail_amount"]
        for part in outcome.explained:
            if part.field == "retail_amount":
                by_side["here", part.currency] -= part.amount_here
                by_side["there", part.currency] -= part.amount_there
        assert not any(by_side.values())
