"""What every result of a reconciliation says alike: exact money, ages, the order of importance, the proof."""

import dataclasses
import datetime as dt
from decimal import Decimal

import pytest
from tests.flows.reconcile_outcome import NOW, RULES, difference, item, outcome

from octo_sync.flows.reconcile.words import (
    BUCKETS,
    age_class,
    age_days,
    by_importance,
    controls,
    items_by_importance,
    open_pairs,
    pairs,
    proven,
    value_text,
    verdict,
)
from octo_sync.flows.wording import exact, instant, money
from octo_sync.reconciliation.model import Bucket


@pytest.mark.parametrize(
    ("amount", "currency", "text", "people"),
    [
        ("1204.5", "EUR", "1204.50", "+1,204.50"),
        ("12000.00000000", "JPY", "12000", "+12,000"),
        ("-1.5", "BHD", "-1.500", "-1.500"),
        ("0.0005", "EUR", "0.0005", "+0.0005"),
        ("-0E-8", "EUR", "0.00", "0.00"),
        ("1E+3", None, "1000.00", "+1,000.00"),
        # More digits than Python's decimal context keeps: nothing may be rounded.
        ("123456789012345678901234567890.12345678", "EUR", "123456789012345678901234567890.12345678", None),
    ],
)
def test_money_is_exact_and_has_its_currencys_decimals(amount, currency, text, people):
    assert exact(Decimal(amount), currency) == text
    if people:
        assert money(Decimal(amount), currency, sign=True) == people


@pytest.mark.parametrize(
    ("field", "value", "shown"),
    [
        ("retail_amount", "1200.00000000", "1,200.00"),
        ("", "80.00000000", "80.00"),
        ("utc_start_at", "2026-11-20T09:00:00Z", "2026-11-20 09:00 UTC"),
        ("utc_start_at", "2026-11-20T09:00:30+01:00", "2026-11-20 08:00:30 UTC"),
        ("utc_start_at", "soon", "soon"),
        ("retail_amount", "a lot", "a lot"),
        ("status", "1200.00000000", "1200.00000000"),
        ("status", None, "–"),  # noqa: RUF001 - stands for nothing
    ],
)
def test_a_value_is_shown_as_what_its_field_is(field, value, shown):
    assert value_text(outcome([]), field, value, "EUR") == shown


def test_a_wall_clock_time_has_no_zone():
    assert instant(dt.datetime(2026, 11, 20, 9, 0)) == "2026-11-20 09:00"  # noqa: DTZ001 - a wall clock time


def test_days_of_age_are_days_of_utc_and_have_four_classes():
    just_yesterday = dt.datetime(2026, 11, 21, 23, 59, tzinfo=dt.UTC)

    assert age_days(difference(seen=just_yesterday), RULES) == 1
    assert age_days(difference(seen=NOW), RULES) == 0
    assert age_days(difference(seen=None), RULES) is None
    classes = [age_class(days) for days in (0, 1, 2, 7, 8, 30, 31, 400)]
    assert classes == ["0–1", "0–1", "2–7", "2–7", "8–30", "8–30", ">30", ">30"]  # noqa: RUF001 - as shown


def test_the_largest_come_first_and_currencies_take_turns():
    amounts = [("EUR", "-5"), ("EUR", "100"), ("EUR", "7"), ("JPY", "90000"), ("JPY", "-80000"), ("BHD", "0.001")]
    found = [(item(f"{c}{a}", Bucket.MISMATCHED), difference("retail_amount", delta=a, currency=c)) for c, a in amounts]
    found += [(item(k, Bucket.MISMATCHED), difference("status", new=n)) for k, n in (("a", False), ("b", True))]

    order = [i.key for i, _ in by_importance(found)]

    assert order == ["EUR100", "JPY90000", "BHD0.001", "EUR7", "JPY-80000", "EUR-5", "b", "a"]
    whole = [dataclasses.replace(i, differences=(d,)) for i, d in found]
    assert [i.key for i in items_by_importance([item("none", Bucket.MATCHED), *whole])] == [*order, "none"]


def test_only_what_somebody_has_to_look_at_is_open():
    found = outcome()

    assert {i.bucket for i, _ in open_pairs(found)} == {b for b in Bucket if b.is_difference}
    assert {i.bucket for i, _ in pairs(found.items)} == set(Bucket) == set(BUCKETS)


def test_the_control_totals_are_explained_bucket_by_bucket_to_exactly_0():
    found = controls(outcome())

    assert [(c.currency, c.field) for c in found[:3]] == [
        ("BHD", "retail_amount"), ("BHD", "net_amount"), ("EUR", "retail_amount"),
    ]  # fmt: skip
    euros, nothing = found[2], found[-2]
    assert (euros.rows_here, euros.rows_there, euros.difference) == (8, 10, Decimal("-23.97"))
    assert sum(p.difference for p in euros.parts) == Decimal("-23.97")
    assert [p.bucket for p in euros.parts][:2] == [Bucket.MISMATCHED, Bucket.MISSING_HERE]
    assert nothing.currency is None
    assert proven(found)


def test_a_part_that_is_lost_is_noticed_in_money_and_in_rows():
    whole = outcome()
    less = dataclasses.replace(whole, explained=[e for e in whole.explained if e.bucket is not Bucket.MISSING_HERE])
    rows = [dataclasses.replace(e, rows_here=e.rows_here + 1) for e in whole.explained]

    broken = controls(less)
    assert not proven(broken)
    assert {c.unexplained for c in broken if c.currency == "EUR"} == {Decimal("80.00"), Decimal("90.00")}
    assert not proven(controls(dataclasses.replace(whole, explained=rows)))


def test_without_an_amount_rows_are_the_proof():
    from octo_sync.reconciliation.model import ExplainedMoney, SideTotal

    kinds = {"status": "text"}
    totals = [SideTotal("here", "EUR", 3, {}), SideTotal("there", "EUR", 2, {})]
    part = ExplainedMoney(Bucket.MATCHED, "EUR", "", 3, 2, Decimal(0), Decimal(0))

    (c,) = controls(outcome([], kinds=kinds, totals=totals, explained=[part]))
    (lost,) = controls(outcome([], kinds=kinds, totals=totals, explained=[]))

    assert (c.field, c.rows_here, c.rows_there, c.unexplained_rows) == ("", 3, 2, 0)
    assert lost.unexplained_rows == 5


def test_the_verdict_says_which_limits():
    assert verdict(outcome()) == "over the limits: mismatched>0 (3)"
    assert verdict(outcome([])) == "within the limits: mismatched>0, missing_here>5"
    assert "fail_on" in verdict(outcome([], rules=dataclasses.replace(RULES, limits=())))
