"""What holds whatever the rows are: keys that repeat, blanks, nulls, several currencies."""

from collections import Counter
from datetime import date
from decimal import Decimal

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.reconciliation.small import buckets, compared

from octo_sync.reconciliation.model import Tolerance

# A comparison takes a tenth of a second, so few tables, of many rows, and no search for smaller ones.
QUICK = settings(
    max_examples=settings.default.max_examples // 12,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)
MIRROR = {
    "missing_here": "missing_there", "missing_there": "missing_here", "duplicate_here": "duplicate_there",
    "duplicate_there": "duplicate_here",
}  # fmt: skip

keys = st.sampled_from([None, "", " ", "1", "01", "2", "b2", "B2", "B2 ", "3", "4", "5", "6"])
values = {
    "c": st.sampled_from([None, "x", "y"]),
    "amount": st.sampled_from([None, Decimal(0), Decimal("1.00"), Decimal("1.01"), Decimal(-3), Decimal(7)]),
    "currency": st.sampled_from([None, "", "EUR", "eur", "JPY", "BHD"]),
    "guests": st.sampled_from([None, 0, 1, 2]),
    "day": st.sampled_from([None, date(2026, 10, 31), date(2026, 11, 1), date(2026, 11, 30)]),
}
rows = st.lists(st.fixed_dictionaries({"a": keys, "b": keys, **values}), max_size=25)
spellings = st.sampled_from(["{}", "0{}", " {}", "B{}", "b0{} "])
numbers = st.integers(1, 60)
told_apart = st.lists(
    st.fixed_dictionaries({"number": numbers, "spelling": spellings, "other": numbers | st.none(), **values}),
    min_size=1,
    max_size=25,
    unique_by=(lambda row: row["number"], lambda row: row["other"] or -row["number"]),
).map(
    lambda drawn: [
        row | {"a": row["spelling"].format(row["number"]), "b": row["other"] and row["spelling"].format(row["other"])}
        for row in drawn
    ]
)
"""Rows of which each has a key of its own, however it is spelled, and most a second one."""
RULES = {
    "keys": ("a", "b", "c+guests"), "fields": ("amount", "currency", "guests", "day"), "date": "day", "date_there": "day",
    "tolerance": Tolerance({"EUR": Decimal("0.01")}), "strip": "b",
}  # fmt: skip


def shape(outcome, *, mirrored=False):
    """The items as a set of what they are, however rows are numbered; counted, because rows may be equal."""

    def side(rows):
        return tuple(sorted(repr(sorted(row.items(), key=str)) for row in rows))

    return Counter(
        (
            MIRROR.get(item.bucket, str(item.bucket)) if mirrored else str(item.bucket),
            *((side(item.there), side(item.here)) if mirrored else (side(item.here), side(item.there))),
            item.normalised,
            frozenset(d.field for d in item.differences),
        )
        for item in outcome.items
    )


@QUICK
@given(rows, rows)
def test_every_row_is_in_one_item_and_the_money_of_all_buckets_is_the_money_of_both_sides(here, there):
    outcome = compared(here, there, **RULES)
    inside = Counter()
    for part in outcome.explained:
        assert part.field == "amount"
        inside["here"] += part.rows_here
        inside["there"] += part.rows_there
        inside[part.currency, "here"] += part.amount_here
        inside[part.currency, "there"] += part.amount_there
    assert (inside["here"], inside["there"]) == (len(here), len(there))
    for currency in {(row["currency"] or "").upper() or None for row in here + there}:
        for name, side in (("here", here), ("there", there)):
            total = sum(row["amount"] or 0 for row in side if ((row["currency"] or "").upper() or None) == currency)
            assert inside[currency, name] == total
    # Items that are listed hold their rows and no others; the rest are pairs.
    listed = [int(place) for item in outcome.items for place in item.places]
    assert len(set(listed)) == len(listed)
    settled = ("matched", "matched_within_tolerance", "out_of_window")
    plain = sum(outcome.counts.get(each, 0) for each in settled) - sum(i.bucket in settled for i in outcome.items)
    assert outcome.differences == sum(len(i.differences) for i in outcome.items if i.bucket not in settled)
    assert plain + len(listed) == len(there)
    assert plain + sum(len(item.here) for item in outcome.items) == len(here)


@QUICK
@given(rows)
def test_a_side_beside_itself_has_no_difference_but_what_cannot_be_told_apart(side):
    outcome = compared(side, side, **(RULES | {"keys": ("a", "b")}))
    keyless = [row for row in side if not (row["a"] or "").strip() and not (row["b"] or "").strip()]
    counts = Counter({str(bucket): n for bucket, n in outcome.counts.items()})
    assert set(counts) <= {"matched", "ambiguous", "missing_here", "missing_there", "out_of_window"} | (
        {"mismatched"} if repeated(side) else set()
    )
    assert sum(len(item.here) for item in outcome.items if not item.there) == len(keyless)
    if not repeated(side) and not keyless:
        assert set(counts) <= {"matched", "out_of_window"}


@pytest.mark.deep(2)
@QUICK
@given(told_apart)
def test_a_side_that_can_be_told_apart_is_matched_wholly_with_itself(side):
    inside = [row | {"day": row["day"] and max(row["day"], date(2026, 11, 1))} for row in side]

    assert buckets(compared(inside, inside, **RULES)) == {"matched": len(side)}


def repeated(side):
    """Whether a key is there more than once, in whatever spelling."""
    for name in "ab":
        plain = [(row[name] or "").strip().upper().removeprefix("B").lstrip("0") for row in side]
        if max(Counter(filter(None, plain)).values(), default=0) > 1:
            return True
    return False


@pytest.mark.deep(3)
@QUICK
@given(rows, rows)
def test_the_other_way_round_everything_is_mirrored(here, there):
    assert shape(compared(here, there, **RULES)) == shape(compared(there, here, **RULES), mirrored=True)


@QUICK
@given(rows, rows, st.randoms(use_true_random=False))
def test_the_order_of_rows_says_nothing(here, there, random):
    outcome = compared(here, there, **RULES)
    other = compared(random.sample(here, len(here)), random.sample(there, len(there)), **RULES)
    assert shape(outcome) == shape(other)
    assert outcome.counts == other.counts
    assert outcome.explained == other.explained
    assert {item.key for item in outcome.items} == {item.key for item in other.items}


@pytest.mark.deep(1)
@QUICK
@given(rows, rows)
def test_an_item_is_called_the_same_when_other_rows_are_there_too_and_no_two_are_called_the_same(here, there):
    more = [{"a": f"z{i}", "b": f"y{i}", "amount": Decimal(i), "currency": "EUR"} for i in range(4)]
    outcome = compared(here, there, **RULES)
    other = compared(more[:3] + here, there + more[1:], **RULES)
    names = Counter(item.key for item in outcome.items)
    assert not names or max(names.values()) == 1
    assert {item.key: str(item.bucket) for item in outcome.items}.items() <= {
        item.key: str(item.bucket) for item in other.items
    }.items()
    assert {item.key for item in other.items} - set(names) == {"a=z0", "a=z3"}
