"""Where two readings are possible, which one is taken."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest
from tests.reconciliation.small import NOW, Facts, buckets, compared, money, reasons

from octo_sync.errors import ReconcileError
from octo_sync.reconciliation import comparing
from octo_sync.reconciliation.limits import breaches
from octo_sync.reconciliation.model import Acceptance, Earlier, FieldRule, Limit, Side, Tolerance

ORDER = ("booking_uuid", "supplier_reference", "reseller_reference")


def booking(uuid, supplier=None, reseller=None, amount="10", currency="EUR", **more):
    return {
        "booking_uuid": uuid, "supplier_reference": supplier, "reseller_reference": reseller,
        "amount": Decimal(amount), "currency": currency, **more,
    }  # fmt: skip


# ── an order's bookings share the reseller's reference ────────────────────────────────────────────────────────────────


def test_an_order_is_not_a_duplicate_where_one_of_its_bookings_is_missing():
    order = [booking("u1", "B1", "R"), booking("u2", "B2", "R"), booking("u3", "B3", "R")]
    for keys in (ORDER, ORDER[1:]):
        assert buckets(compared(order, order[:1], keys=keys)) == {"matched": 1, "missing_there": 2}
        assert buckets(compared(order[:1], order, keys=keys)) == {"matched": 1, "missing_here": 2}
        assert buckets(compared(order[:2], [order[0], order[2]], keys=keys)) == {
            "matched": 1, "missing_here": 1, "missing_there": 1,
        }  # fmt: skip


def test_bookings_here_without_their_own_references_are_still_two_bookings():
    order = [booking("u1", None, "R"), booking("u2", None, "R")]
    outcome = compared(order, [], keys=ORDER[1:], columns=["booking_uuid"])
    assert buckets(outcome) == {"missing_there": 2}
    assert len({item.key for item in outcome.items}) == 2
    assert buckets(compared(order, [booking(None, None, "R")], keys=ORDER[1:], columns=["booking_uuid"])) == {
        "ambiguous": 1
    }
    first = booking("u1", "B1", "R")
    outcome = compared([first, order[1]], [first], keys=ORDER[1:], columns=["booking_uuid"])
    assert buckets(outcome) == {"matched": 1, "missing_there": 1}


def test_an_item_that_is_open_keeps_its_key_when_a_sibling_comes_or_goes():
    first, second, third = (booking(uuid, None, "R") for uuid in ("u1", "u2", "u3"))

    def keys(*here, earlier):
        items = compared(here, [], keys=ORDER[1:], columns=["booking_uuid"], earlier=earlier).items
        assert len({item.key for item in items}) == len(here)
        return [Earlier(item.key, item.booking_uuid, item.day) for item in items]

    alone = keys(second, earlier=())
    assert [one.key for one in alone] == ["reseller_reference=R"]
    three = keys(first, second, third, earlier=alone)
    assert [one.key == "reseller_reference=R" for one in three] == [False, True, False]
    assert keys(first, earlier=three) == [one for one in three if one.booking_uuid == "u1"]
    # What was another booking's, with its age and its acceptance, is nobody else's.
    assert all("#" in one.key for one in keys(first, earlier=alone))
    # Nobody had it before: all are told apart.
    assert all("#" in one.key for one in keys(first, third, earlier=alone))


def test_a_row_that_only_the_other_side_has_keeps_its_key_by_its_day():
    order = [
        booking("u1", "B1", "R", travel_date=date(2026, 11, 3)),
        booking("u2", "B2", "R", travel_date=date(2026, 11, 3)),
    ]
    more = booking(None, None, "R", travel_date=date(2026, 11, 5))

    def key(*before, day):
        earlier = [Earlier("reseller_reference=R", None, date(2026, 11, day))]
        told = compared(
            before, [*before, more], keys=ORDER, earlier=earlier, date_there="travel_date", columns=["travel_date"]
        )
        [found] = [item.key for item in told.items if item.bucket == "missing_here"]
        return found

    assert key(day=5) == "reseller_reference=R"
    assert key(*order, day=5) == "reseller_reference=R"
    assert key(*order, day=3).startswith("reseller_reference=R #")


def test_a_row_with_only_the_orders_reference_belongs_to_the_one_booking_that_is_left():
    order = [booking("u1", "B1", "R"), booking("u2", "B2", "R")]
    assert buckets(compared(order, [order[0], booking(None, None, "R")], keys=ORDER)) == {"matched": 2}


def test_a_row_more_of_an_order_is_no_duplicate_of_any_of_its_bookings():
    order = [booking("u1", "B1", "R"), booking("u2", "B2", "R")]
    known = [{**each, "status": "CONFIRMED", "local_date": date(2026, 11, 3)} for each in order]
    outcome = compared(order, [*order, booking(None, None, "R")], keys=ORDER, facts=Facts(known))
    [(name, said)] = reasons(outcome).items()
    assert said == ["missing_here", "one_more"]
    assert name.startswith("reseller_reference=R #")


def test_two_lines_without_references_of_their_own_cannot_be_told_apart():
    order = [booking("u1", "B1", "R"), booking("u2", "B2", "R")]
    outcome = compared(order, [booking(None, None, "R"), booking(None, None, "R")], keys=ORDER)
    assert buckets(outcome) == {"ambiguous": 1}
    assert buckets(compared(order, [booking(None, None, "R")], keys=ORDER)) == {"ambiguous": 1}
    assert buckets(compared(order[:1], [booking(None, None, "R")] * 2, keys=ORDER)) == {"duplicate_there": 1}
    assert buckets(compared(order[:1], [booking(None, None, "R"), booking(None, "B7", "R")], keys=ORDER)) == {
        "matched": 1, "missing_here": 1,
    }  # fmt: skip


def test_a_booking_without_a_reference_of_its_own_and_lines_that_have_one_are_ambiguous():
    one = {"b": "R"}
    for lines in ([{"a": "8", "b": "R"}, {"a": "9", "b": "R"}], [{"a": "8", "b": "R"}, {"b": "R"}]):
        assert buckets(compared([one], lines, fields=())) == {"ambiguous": 1}
        assert buckets(compared(lines, [one], fields=())) == {"ambiguous": 1}
    assert buckets(compared([one], [one, one], fields=())) == {"duplicate_there": 1}


# ── stronger and weaker keys ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_row_whose_stronger_key_says_another_booking_is_no_duplicate():
    one = booking("u1", "B1", "R1")
    outcome = compared([one], [one, booking("u9", "B1", "R1")], keys=ORDER)
    assert buckets(outcome) == {"matched": 1, "missing_here": 1}
    outcome = compared([one, booking("u9", "B1", "R1")], [one], keys=ORDER)
    assert buckets(outcome) == {"matched": 1, "missing_there": 1}


def test_a_second_line_is_a_duplicate_even_if_it_shares_a_key_only_with_the_booking_here():
    lines = [booking("u1", None, None), booking(None, "B1", None)]
    assert buckets(compared([booking("u1", "B1", "R1")], lines, keys=ORDER)) == {"duplicate_there": 1}


def test_a_weaker_key_pairs_against_a_stronger_one_only_when_nothing_else_has_it():
    one, other = booking("u1", "B1", "R1"), booking("u2", "B2", "R1")
    outcome = compared([one], [other], keys=ORDER)
    assert reasons(outcome) == {"booking_uuid=u1": ["mismatched", "other_reference", "other_reference"]}
    here = [booking("u1", "B1", "R1"), booking("u3", "B3", "R1")]
    assert buckets(compared(here, [other, here[1]], keys=ORDER)) == {
        "matched": 1,
        "missing_here": 1,
        "missing_there": 1,
    }


def test_what_only_looks_alike_is_never_paired_against_a_reference():
    keys = (*ORDER, "day+amount")
    one, other = booking("u1", "B1", "R1", day=date(2026, 11, 3)), booking("u2", "B2", "R2", day=date(2026, 11, 3))
    assert buckets(compared([one], [other], keys=keys)) == {"missing_here": 1, "missing_there": 1}
    lost = booking(None, None, None, day=date(2026, 11, 3))
    assert buckets(compared([one], [lost], keys=keys)) == {"matched": 1}


def test_rows_of_two_bookings_that_look_alike_are_ambiguous_and_equal_rows_there_are_duplicates():
    one, other = booking("u1", day=date(2026, 11, 3)), booking("u2", day=date(2026, 11, 3))
    given = {"keys": ("day+amount",), "columns": ["booking_uuid"]}
    assert buckets(compared([one, other], [one], **given)) == {"ambiguous": 1}
    assert buckets(compared([one], [one, one], **given)) == {"duplicate_there": 1}
    assert buckets(compared([one, one], [one], **given)) == {"duplicate_here": 1}


def test_a_column_that_is_key_and_field_or_a_key_twice_differs_once():
    def told(outcome):
        return [(item.key, str(item.bucket), d.field) for item in outcome.items for d in item.differences]

    outcome = compared([{"a": "1", "b": "X"}], [{"a": "1", "b": "Y"}], keys=("a", "b"), fields=("b",))
    assert told(outcome) == [("a=1", "mismatched", "b")]
    there = [{"a": "1", "agent": "Y", "voucher": "Z"}]
    outcome = compared([{"a": "1", "b": "X"}], there, keys=("a", "b=agent", "b=voucher"), fields=())
    assert told(outcome) == [("a=1", "mismatched", "b")]


# ── how keys are written ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("here", "there"),
    [
        ("BK-17", "bk-17"),
        ("BK-17", "17"),
        ("BK-17", " BK - 0017\t"),
        ("17", "BK17"),
        ("BK-0", "0"),
        ("\u00a0BK-17", "17\ufeff"),
    ],
)
def test_a_prefix_case_zeros_and_spaces_are_no_part_of_a_key_and_a_match_says_that_they_were_needed(here, there):
    outcome = compared([{"a": here}], [{"a": there}], keys=("a",), fields=(), strip="BK-?")
    assert buckets(outcome) == {"matched": 1}
    [item] = outcome.items
    assert item.normalised
    assert item.remark


def test_a_prefix_is_taken_off_at_the_start_only_and_never_leaves_nothing():
    for here, there in (("A-BK-1", "A-1"), ("BK-", ""), ("BK-", "-")):
        outcome = compared([{"a": here}], [{"a": there}], keys=("a",), fields=(), strip="BK-")
        assert buckets(outcome) == {"missing_here": 1, "missing_there": 1}
    outcome = compared([{"a": "BK-"}] * 2, [{"a": "bk-"}], keys=("a",), fields=(), strip="BK-")
    assert buckets(outcome) == {"duplicate_here": 1}


def test_the_exact_key_is_taken_first():
    outcome = compared([{"a": "7"}, {"a": "007"}], [{"a": "007"}, {"a": "7"}], keys=("a",), fields=())
    assert buckets(outcome) == {"matched": 2}
    assert outcome.items == []


def test_a_prefix_that_is_no_regular_expression_is_refused_in_a_sentence():
    with pytest.raises(ReconcileError, match=r"reconcile\.test: strip = 'BK\[' is no regular expression \(missing \]"):
        compared([{"a": "1"}], [{"a": "1"}], keys=("a",), fields=(), strip="BK[")


def test_keys_of_another_type_are_the_same_key():
    numbers = {"types_there": {"a": pa.int64()}}
    assert buckets(compared([{"a": "12"}], [{"a": 12}], keys=("a",), fields=(), **numbers)) == {"matched": 1}
    assert buckets(compared([{"a": "0012"}], [{"a": 12}], keys=("a",), fields=(), **numbers)) == {"matched": 1}
    texts = {"types_there": {"number": pa.string(), "amount": pa.string(), "day": pa.string()}}
    assert buckets(compared([{"number": 12}], [{"number": "0012"}], keys=("number",), fields=(), **texts)) == {
        "matched": 1
    }
    here, there = {"amount": Decimal("9.5"), "day": date(2026, 11, 3)}, {"amount": "9.50", "day": "2026-11-03"}
    assert buckets(compared([here], [there], keys=("amount+day",), fields=(), **texts)) == {"matched": 1}


@pytest.mark.deep(1)
def test_a_composite_key_follows_the_map_of_its_fields_both_ways():
    field = FieldRule("product", "code", {"T1": ("P1", "P2"), "T2": ("P2",), "T9": ("P9",)})
    given = {"keys": ("product+amount=code+amount",), "fields": (field,)}
    pairs = [("P1", "T1", "matched"), ("p2", "t2 ", "matched"), ("P2", "T1", "matched"), ("P1", "T2", "mismatched")]
    for here, there, bucket in pairs:
        rows = [{"product": here, "amount": Decimal(1)}], [{"code": there, "amount": Decimal(1)}]
        assert buckets(compared(*rows, **given)) == {bucket: 1}, (here, there)
    for here, there in (("P1", "T9"), ("T1", "T1"), ("P9", "P9")):
        rows = [{"product": here, "amount": Decimal(1)}], [{"code": there, "amount": Decimal(1)}]
        assert buckets(compared(*rows, **given)) == {"missing_here": 1, "missing_there": 1}, (here, there)


def test_a_map_of_a_field_goes_both_ways_and_what_it_does_not_name_stands_for_itself():
    field = FieldRule("status", "state", {"OK": ("CONFIRMED", "REDEEMED"), "XX": ("CANCELLED",)})

    def code(status, state):
        outcome = compared([{"a": "1", "status": status}], [{"a": "1", "state": state}], keys=("a",), fields=(field,))
        return next((d.code for item in outcome.items for d in item.differences), "matched")

    assert [code(status, "ok ") for status in ("CONFIRMED", "redeemed", "CANCELLED")] == [
        "matched",
        "matched",
        "cancelled_here",
    ]
    assert code("CONFIRMED", "XX") == "cancelled_there"
    assert code("PENDING", "pending") == "matched"
    assert code("CONFIRMED", "confirmed") == "matched"
    assert code("CONFIRMED", "paid") == "not_mapped"
    assert code("CONFIRMED", None) == "empty_there"
    assert code(None, "OK") == "empty_here"
    # A word that the map names means what the map says, and not itself.
    field = FieldRule("status", "state", {"CANCELLED": ("EXPIRED",)})
    assert code("EXPIRED", "CANCELLED") == "matched"
    assert code("CANCELLED", "CANCELLED") != "matched"


@pytest.mark.deep(1)
def test_a_map_may_say_the_same_twice_in_another_spelling():
    for words in ({"Paid": ("CONFIRMED",), "PAID": ("CONFIRMED",)}, {"PAID": ("CONFIRMED", "confirmed ")}):
        field = FieldRule("status", "state", words)
        rows = [{"a": "1", "status": "CONFIRMED"}], [{"a": "1", "state": "paid"}]
        assert buckets(compared(*rows, keys=("a",), fields=(field,))) == {"matched": 1}
        rows[1][0]["state"] = "void"
        assert buckets(compared(*rows, keys=("a",), fields=(field,))) == {"mismatched": 1}
        rows[0][0]["amount"], rows[1][0]["amount"] = Decimal(1), Decimal(2)
        rows[1][0]["state"] = "Paid"
        assert buckets(compared(*rows, keys=("a",), fields=(field, "amount"))) == {"mismatched": 1}


def test_a_map_for_what_is_no_word_is_refused():
    with pytest.raises(ReconcileError, match=r"map\.guests maps words"):
        compared([], [], keys=("a",), fields=(FieldRule("guests", "guests", {"two": ("2",)}),))


# ── amounts ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def amounts(here, there, **given):
    rows = [[{"a": "1", "amount": None if a is None else Decimal(a), "currency": c}] for a, c in (here, there)]
    outcome = compared(*rows, keys=("a",), **given)
    return buckets(outcome), [(d.field, d.code) for item in outcome.items for d in item.differences]


def test_amounts_of_zero_and_none_are_not_the_same():
    assert amounts(("0", "EUR"), ("0.00", "EUR"))[0] == {"matched": 1}
    assert amounts(("0", "EUR"), (None, "EUR"))[1] == [("amount", "empty_there")]
    assert amounts(("0", "EUR"), ("5", "EUR"))[1] == [("amount", "other_amount")]
    assert amounts((None, "EUR"), (None, "EUR"))[0] == {"matched": 1}


def test_a_currency_that_one_side_does_not_say_is_a_difference_and_the_amount_is_compared_all_the_same():
    assert amounts(("5", None), ("5", None))[0] == {"matched": 1}
    assert amounts(("5", None), ("5", "EUR"))[1] == [("currency", "empty_here")]
    assert amounts(("5", None), ("9", "EUR"))[1] == [("amount", "other_amount"), ("currency", "empty_here")]
    assert amounts(("5", "EUR"), ("9", "USD"))[1] == [("currency", "other_currency")]
    assert amounts(("5", "EUR"), ("5", "USD"))[1] == [("currency", "other_currency")]
    assert amounts(("5", "EUR"), ("5", "eur "))[0] == {"matched": 1}


def test_a_reason_writes_money_with_the_decimals_of_its_currency():
    here = {"a": "1", "amount": Decimal("194.4"), "currency": "EUR", "currency_precision": "2"}
    there = here | {"amount": Decimal("1210.5"), "currency": "USD"}
    more = {"a": "2", "amount": Decimal("62.8")}
    both = [here, here | more | {"amount": Decimal(10)}], [there, there | more]
    said = [item.differences[0].reason for item in compared(*both, keys=("a",), columns=("currency_precision",)).items]
    assert "1,210.50 USD for 194.40 EUR is possibly converted" in said[0]


def test_a_conversion_is_named_where_most_pairs_of_both_currencies_have_about_the_same_rate():
    def codes(*prices):
        here = [{"a": str(n), "amount": Decimal(h), "currency": "EUR"} for n, (h, _, _) in enumerate(prices)]
        there = [{"a": str(n), "amount": Decimal(t), "currency": c} for n, (_, t, c) in enumerate(prices)]
        return [item.differences[0].code for item in compared(here, there, keys=("a",)).items]

    wrong, usd = ("231.57", "7.00", "USD"), [("100", "116", "USD"), ("50", "59.1", "USD")]
    assert codes(wrong) == ["other_currency"], "one alone shows no rate"
    assert codes(*usd) == ["converted", "converted"]
    assert codes(wrong, *usd) == ["other_currency", "converted", "converted"]
    assert codes(usd[0], ("50", "59.1", "GBP")) == ["other_currency", "other_currency"], "each its own rate"
    assert codes(wrong, ("10", "90", "USD"), ("10", "40", "USD"), *usd) == ["other_currency"] * 5, "most agree on none"


def test_amounts_of_several_currencies_in_one_item_make_no_sum():
    said = set()

    def whole(*there):
        here = [{"a": "1", "amount": Decimal(90), "currency": "EUR"}]
        rows = [{"a": "1", "amount": Decimal(amount), "currency": currency} for amount, currency in there]
        [item] = compared(here, rows, keys=("a",)).items
        [d] = item.differences
        said.add(d.reason)
        return str(item.bucket), d.code, d.here_value, d.there_value, d.delta_amount

    assert whole(("50", "EUR"), ("40", "USD")) == ("duplicate_there", "same_key", None, None, None)
    assert whole(("90", "USD"), ("90", "USD")) == ("duplicate_there", "same_key", None, None, None)
    assert said == {"1 row here and 2 in the ledger have the same key."}
    assert whole(("50", "eur "), ("40", None)) == ("duplicate_there", "split", "90", "90", 0)
    assert whole(("90", "EUR"), ("90", "EUR")) == ("duplicate_there", "entered_twice", "90", "180", 90)
    both = [{"a": "1", "amount": Decimal(5), "currency": currency} for currency in ("EUR", "JPY")]
    [item] = compared([], both, keys=("a",)).items
    assert [d.delta_amount for d in item.differences] == [None]


def test_a_currency_that_is_written_another_way_there_is_the_same_money():
    euro = FieldRule("currency", "currency", {"€": ("EUR",)})
    here = [{"a": "1", "amount": Decimal(5), "currency": "EUR"}, {"a": "2", "amount": Decimal(6), "currency": "EUR"}]
    there = [{"a": "1", "amount": Decimal(9), "currency": "€ "}, {"a": "2", "amount": Decimal(6), "currency": "€"}]

    outcome = compared(
        here, [*there, {"a": "3", "amount": Decimal(2), "currency": "€"}], keys=("a",), fields=("amount", euro)
    )

    assert buckets(outcome) == {"matched": 1, "mismatched": 1, "missing_here": 1}
    assert [(d.delta_amount, d.currency) for item in outcome.items for d in item.differences] == [
        (4, "EUR"),
        (2, "EUR"),
    ]
    assert {total.currency for total in outcome.totals} == {"EUR"}
    halves = [{"a": "1", "amount": Decimal(half), "currency": "€"} for half in ("2", "3")]
    [item] = compared(here[:1], halves, keys=("a",), fields=("amount", euro)).items
    assert [d.code for d in item.differences] == ["split"]


def test_a_word_for_several_currencies_is_the_one_of_its_pair_and_amounts_are_compared():
    dollar = FieldRule("currency", "currency", {"$": ("USD", "CAD")})
    here = [{"a": str(i), "amount": Decimal(10 + i), "currency": c} for i, c in enumerate(("USD", "CAD", "CAD", "EUR"))]
    there = [row | {"currency": " $"} for row in here]
    there[0] = there[0] | {"amount": Decimal(99)}
    there.append({"a": "9", "amount": Decimal(7), "currency": "$"})

    outcome = compared(here, [*there, there[2]], keys=("a",), fields=("amount", dollar))

    assert reasons(outcome) == {
        "a=0": ["mismatched", "other_amount"], "a=2": ["duplicate_there", "entered_twice"],
        "a=3": ["mismatched", "other_currency"], "a=9": ["missing_here", "unknown_here"],
    }  # fmt: skip
    assert {(d.delta_amount, d.currency) for item in outcome.items for d in item.differences} == {
        (89, "USD"), (12, "CAD"), (None, "EUR"), (7, "$"),
    }  # fmt: skip
    assert {(t.side, t.currency): t.amounts["amount"] for t in outcome.totals if t.currency != "EUR"} == {
        ("here", "USD"): 10, ("there", "USD"): 99, ("here", "CAD"): 23, ("there", "CAD"): 35, ("there", "$"): 20,
    }  # fmt: skip


def test_an_amount_that_one_side_does_not_say_is_off_by_all_of_it():
    rows = [{"a": str(i), "amount": money(each), "currency": "EUR"} for i, each in enumerate(("10", None, "7"))]
    there = [rows[0] | {"amount": None}, rows[1] | {"amount": Decimal(4)}, rows[2]]
    outcome = compared(rows, there, keys=("a",), limits=(Limit("abs_amount_eur", Decimal(13)),))
    assert [d.delta_amount for item in outcome.items for d in item.differences] == [-10, 4]
    assert sum(part.difference for part in outcome.explained) == -6, "the control totals see it so too"
    assert breaches(outcome) == ("EUR 14 of differences, at most 13 allowed",)


def test_a_tolerance_is_of_a_currency_or_a_share_of_the_amount_whichever_is_more():
    absolute = Tolerance({"EUR": Decimal("0.01")}, default=Decimal("0.5"))
    assert amounts(("5", "EUR"), ("5.01", "EUR"), tolerance=absolute)[0] == {"matched_within_tolerance": 1}
    assert amounts(("5", "EUR"), ("5.011", "EUR"), tolerance=absolute)[0] == {"mismatched": 1}
    assert amounts(("5", "CHF"), ("5.5", "CHF"), tolerance=absolute)[0] == {"matched_within_tolerance": 1}
    share = Tolerance({"EUR": Decimal("0.01")}, relative=Decimal("0.02"))
    assert amounts(("100", "EUR"), ("102", "EUR"), tolerance=share)[0] == {"matched_within_tolerance": 1}
    assert amounts(("-100", "EUR"), ("-98", "EUR"), tolerance=share)[0] == {"matched_within_tolerance": 1}
    assert amounts(("100", "EUR"), ("102.01", "EUR"), tolerance=share)[0] == {"mismatched": 1}
    assert amounts(("0.1", "EUR"), ("0.11", "EUR"), tolerance=share)[0] == {"matched_within_tolerance": 1}


def test_limits_count_the_differences_that_are_open_each_field_of_a_booking():
    rows = [
        {"a": str(i), "amount": Decimal(10), "currency": c, "guests": 2} for i, c in enumerate(("EUR", "EUR", "JPY"))
    ]
    there = [rows[0] | {"amount": Decimal(4), "guests": 3}, rows[2] | {"amount": Decimal(3)}]
    limits = (Limit("mismatched", Decimal(2)), Limit("missing_there", Decimal(1)), Limit("abs_amount_eur", Decimal("15.99")),
              Limit("abs_amount_jpy", Decimal(7)), Limit("differences", Decimal(3)), Limit("new", Decimal(3)))  # fmt: skip
    outcome = compared(rows, there, keys=("a",), fields=("amount", "currency", "guests"), limits=limits)
    assert breaches(outcome) == (
        "3 mismatched, at most 2 allowed", "EUR 16 of differences, at most 15.99 allowed", "4 differences, at most 3 allowed",
        "4 new differences, at most 3 allowed",
    )  # fmt: skip
    assert buckets(outcome) == {"mismatched": 3, "missing_there": 1}
    accepted = compared(
        rows,
        there,
        keys=("a",),
        fields=("amount", "currency", "guests"),
        acceptances=[Acceptance("a=0", "so", "ana", NOW)],
    )
    assert (buckets(accepted), accepted.differences) == ({"accepted": 2, "mismatched": 1, "missing_there": 1}, 2)


def test_a_limit_of_a_currency_counts_both_amounts_of_a_pair_whose_currencies_differ():
    def measured(here, there, *, accepted=()):
        rows = ([{"a": "1", "amount": Decimal(a), "currency": c} for a, c in side] for side in (here, there))
        fields = ("amount", FieldRule("currency", "currency", {"€": ("EUR",), "$": ("USD", "CAD")}))
        limits = [Limit(f"abs_amount_{c}", Decimal(0)) for c in ("eur", "gbp", "usd")]
        outcome = compared(*rows, keys=("a",), fields=fields, limits=limits, acceptances=accepted)
        return [said.partition(" of ")[0] for said in breaches(outcome)]

    assert measured([(10, "EUR")], [(50, "GBP")]) == ["EUR 10", "GBP 50"]
    assert measured([(10, "GBP")], [(50, "€")]) == ["EUR 50", "GBP 10"]
    assert measured([(10, "USD")], [(50, "$")]) == ["USD 40"]
    assert measured([(10, "EUR")], [(4, "EUR"), (6, "EUR"), (50, "GBP")]) == ["GBP 50"]
    assert measured([(10, "EUR")], [(50, "GBP")], accepted=[Acceptance("a=1", "so", "ana", NOW)]) == []


# ── nothing to compare ────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_side_without_rows():
    row = {"a": "1", "amount": Decimal(3), "currency": "EUR"}
    nothing = compared([], [])
    assert (nothing.items, buckets(nothing), nothing.totals, nothing.explained) == ([], {}, [], [])
    outcome = compared([row], [])
    assert (buckets(outcome), [t.side for t in outcome.totals]) == ({"missing_there": 1}, ["here"])
    assert buckets(compared([], [row])) == {"missing_here": 1}


def test_without_fields_an_amount_or_a_day_rows_are_counted():
    outcome = compared([{"a": "1"}, {"a": "2"}], [{"a": "1"}], keys=("a",), fields=())
    assert buckets(outcome) == {"matched": 1, "missing_there": 1}
    assert [(part.bucket, part.field, part.rows_here, part.rows_there) for part in outcome.explained] == [
        ("matched", "", 1, 1), ("missing_there", "", 1, 0),
    ]  # fmt: skip
    assert outcome.items[0].day is None


def test_rows_without_any_key_are_alone():
    rows = [{"guests": 1}, {"guests": 1}, {"guests": 2}]
    outcome = compared(rows, rows, keys=("a",), fields=("guests",))
    assert buckets(outcome) == {"missing_here": 3, "missing_there": 3}
    assert len({item.key for item in outcome.items}) == 6
    again = compared(rows[::-1], rows, keys=("a",), fields=("guests",))
    assert {item.key for item in again.items} == {item.key for item in outcome.items}


def test_a_group_outside_of_the_window_is_outside_of_it():
    row = {"a": "1", "day": date(2027, 1, 1)}
    outcome = compared([row], [row, row], keys=("a",), fields=("day",), date="day", date_there="day")
    assert reasons(outcome) == {"a=1": ["out_of_window", "outside"]}
    inside = row | {"day": date(2026, 11, 30)}
    outcome = compared([row], [inside], keys=("a",), fields=("day",), date="day", date_there="day")
    assert buckets(outcome) == {"mismatched": 1}


def test_the_day_of_an_open_dated_booking_is_when_it_was_booked():
    row = {"a": "1", "booking_date": date(2026, 11, 5)}

    def day(here, there, field="travel_date"):
        given = {"columns": ["booking_date"], "date": field, "date_there": field}
        [item] = compared(here, there, keys=("a",), fields=(field,), **given).items
        return item.day

    assert day([row], []) == day([row], [{"a": "1", "travel_date": date(2026, 11, 20)}]) == date(2026, 11, 5)
    assert day([row | {"travel_date": date(2026, 11, 9)}], []) == date(2026, 11, 9)
    assert day([], [row]) is None
    assert day([row], [], "day") is None, "whoever names another day says what a row without it is"


def test_an_open_dated_booking_is_in_the_window_by_when_it_was_booked():
    row = {"a": "1", "guests": 1, "travel_date": None, "booking_date": date(2026, 11, 5)}
    given = {
        "columns": ["booking_date"], "date": "travel_date", "date_there": "travel_date", "keys": ("a",),
        "fields": ("guests", "travel_date"),
    }  # fmt: skip

    for day in (date(2026, 12, 24), date(2026, 10, 1)):
        there = row | {"guests": 2, "travel_date": day}
        assert reasons(compared([row], [there], **given)) == {"a=1": ["mismatched", "other_value", "empty_here"]}
        assert buckets(compared([row], [there, there], **given)) == {"duplicate_there": 1}
    before = row | {"booking_date": date(2026, 10, 1)}
    assert buckets(compared([before], [row], **given)) == {"out_of_window": 1}


# ── when ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_change_inside_the_grace_of_either_side_is_too_fresh():
    def bucket(here=None, there=None, seen_here=NOW, seen_there=NOW):
        outcome = compared(
            [{"a": "1", "guests": 1, "utc_updated_at": here}], [{"a": "1", "guests": 2, "changed": there}], keys=("a",),
            fields=("guests",), columns=["utc_updated_at", "changed"], changed_there="changed", grace=timedelta(hours=2),
            sides=(Side(origin="here", rows=1, as_of=seen_here), Side(origin="there", rows=1, as_of=seen_there)),
        )  # fmt: skip
        [item] = outcome.items
        assert item.found == "mismatched"
        return str(item.bucket)

    hour = timedelta(hours=1)
    assert bucket() == "mismatched"
    assert bucket(here=NOW - hour) == bucket(there=NOW - hour) == "too_fresh"
    assert bucket(here=NOW - 2 * hour) == bucket(there=NOW - 2 * hour) == "mismatched"
    # What counts is when the other side was made.
    assert bucket(here=NOW - 5 * hour, seen_there=NOW - 4 * hour) == "too_fresh"
    assert bucket(here=NOW - 5 * hour, seen_here=NOW - 4 * hour) == "mismatched"
    assert bucket(there=NOW - 5 * hour, seen_here=NOW - 4 * hour) == "too_fresh"
    # A side that is made every night has the change the next night; one that is made no more never has it.
    for age, told in ((26 * hour, "too_fresh"), (27 * hour, "mismatched"), (60 * 24 * hour, "mismatched")):
        for changed in (NOW - hour, NOW - age + hour, NOW - age - hour):
            assert bucket(here=changed, seen_there=NOW - age) == bucket(there=changed, seen_here=NOW - age) == told


def test_what_was_accepted_is_accepted_until_its_day_and_not_after():
    rows = [{"a": "1", "guests": 1}], [{"a": "1", "guests": 2}]
    accepted = Acceptance("a=1", "agreed", "ana", NOW, until=date(2026, 11, 22))

    def bucket(acceptance, now):
        [item] = compared(*rows, keys=("a",), fields=("guests",), acceptances=[acceptance], now=now).items
        assert (item.found, item.acceptance is None) == ("mismatched", item.bucket != "accepted")
        return str(item.bucket)

    assert bucket(accepted, datetime(2026, 11, 22, 23, 59, tzinfo=UTC)) == "accepted"
    assert bucket(accepted, datetime(2026, 11, 23, 0, 0, tzinfo=UTC)) == "mismatched"
    assert bucket(replace(accepted, until=None), datetime(2036, 1, 1, tzinfo=UTC)) == "accepted"
    assert bucket(replace(accepted, key="a=2"), NOW) == "mismatched"


def test_swapped_means_that_two_things_fit_at_least():
    here = [{"a": "1", "amount": Decimal(3), "guests": 1}, {"a": "2", "amount": Decimal(9), "guests": 5}]
    there = [{"a": "1", "amount": Decimal(9), "guests": 5}, {"a": "2", "amount": Decimal(3), "guests": 1}]
    outcome = compared(here, there, keys=("a",), fields=("amount", "guests"))
    assert {d.code for item in outcome.items for d in item.differences} == {"references_swapped"}
    outcome = compared(here, there, keys=("a",), fields=("amount",))
    assert {d.code for item in outcome.items for d in item.differences} == {"other_amount"}


def test_more_differences_than_anybody_looks_at_are_refused(monkeypatch):
    monkeypatch.setattr("octo_sync.reconciliation.items.MOST_ITEMS", 2)
    rows = [{"a": str(i)} for i in range(3)]
    with pytest.raises(
        ReconcileError, match=r"3 bookings differ \(missing_there 3\); more than 2 .* Nothing was stored\."
    ):
        compared(rows, [], keys=("a",), fields=())


def test_amounts_that_no_sum_can_hold_are_refused_in_a_sentence():
    rows = [{"a": str(i), "amount": Decimal(9 * 10**29), "currency": "EUR"} for i in range(2)]
    with pytest.raises(ReconcileError, match=r"reconcile\.test: .* Nothing was stored\.") as refused:
        compared(rows, rows, keys=("a",))
    assert "900000" not in str(refused.value), "a value may be anybody's name"


def test_a_row_that_is_lost_on_the_way_is_noticed(monkeypatch):
    monkeypatch.setattr(
        "octo_sync.reconciliation.engine.compare",
        lambda db, *_: (comparing.compare(db, *_), db.execute("delete from pair")),
    )
    with pytest.raises(ReconcileError, match=r"does not close: (here|there), amount in EUR: the buckets hold 0 rows"):
        compared(
            [{"a": "1", "amount": Decimal(1), "currency": "EUR"}], [{"a": "1", "amount": Decimal(1), "currency": "EUR"}]
        )


# ── what all rows together show ───────────────────────────────────────────────────────────────────────────────────────


def sales(count, **more):
    return [
        {"a": f"REF-{n:04d}", "amount": money(f"{10 + n}.50"), "currency": "EUR", "day": date(2026, 11, 1 + n)} | more
        for n in range(count)
    ]


def test_a_row_without_a_key_that_is_the_sum_of_all_others_is_possibly_a_totals_row():
    rows = sales(4)
    for amount, code in ((sum(row["amount"] for row in rows), "totals_row"), (money("50"), "unknown_here")):
        outcome = compared(rows, [*rows, {"amount": amount}], keys=("a",), fields=("amount", "currency", "day"))
        [item] = [item for item in outcome.items if item.bucket == "missing_here"]
        assert item.differences[0].code == code
    outcome = compared(rows, [*rows, {"a": "REF-9999", "amount": sum(r["amount"] for r in rows)}], keys=("a",))
    assert [item.differences[0].code for item in outcome.items] == ["unknown_here"], "a booking may be as large"


@pytest.mark.parametrize("word", ["Total", "TOTAL EUR", "Gesamtsumme", "Grand total:", "Σ", "合計", "subtotal 3"])
def test_a_row_that_says_that_it_is_a_total_is_possibly_one(word):
    rows = sales(2)
    outcome = compared(rows, [*rows, {"a": word, "amount": money("3")}], keys=("a",))
    assert [item.differences[0].code for item in outcome.items] == ["totals_row"]
    assert word in outcome.items[0].differences[0].reason


@pytest.mark.parametrize("word", ["Totalisator Tours", "Sumatra 4", "B-Total", "Summer"])
def test_a_name_that_begins_like_one_is_none(word):
    rows = sales(2)
    outcome = compared(rows, [*rows, {"a": word, "amount": money("3")}], keys=("a",))
    assert [item.differences[0].code for item in outcome.items] == ["unknown_here"]


@pytest.mark.parametrize(
    ("here", "there", "is_typo"),
    [
        ("REF-1234", "REF-1243", True),  # two characters swapped
        ("REF-1234", "REF-12345", True),
        ("REF-1234", "REF-9876", False),
        ("R1", "R2", False),  # too short to tell
    ],
)
def test_rows_that_only_one_side_has_and_that_are_alike_but_for_a_few_characters_name_each_other(here, there, is_typo):
    def one(reference, **values):
        return {"a": reference, "amount": money("33.10"), "currency": "EUR", "day": date(2026, 11, 9)} | values

    def codes(ours, theirs):
        outcome = compared(ours, theirs, keys=("a", "b"), fields=("amount", "currency", "day"))
        assert {str(item.bucket) for item in outcome.items} == {"missing_here", "missing_there"}
        return {item.differences[0].code for item in outcome.items}, [
            item.differences[0].reason for item in outcome.items
        ]

    found, said = codes([one(here)], [one(there)])
    assert found == ({"key_mistyped"} if is_typo else {"unknown_here", "unknown_there"})
    if is_typo:
        assert any(f"a={there}" in reason for reason in said)
        assert any(f"a={here}" in reason for reason in said)
    apart = {"unknown_here", "unknown_there"}
    assert codes([one(here)], [one(there, amount=money("33.20"))])[0] == apart
    assert codes([one(here)], [one(there), one("OTHER-77")])[0] == apart, "either may be meant"
    assert codes([one(here, b="AGENT-1")], [one(there, b="WHOLE-9")])[0] == apart, "another key says that it is another"


def test_what_is_alike_but_for_its_key_is_called_by_the_reference_that_both_sides_have():
    here = {"booking_uuid": "1178a5f8", "supplier_reference": "SUP-12345", "amount": money("33.10"), "currency": "EUR"}
    here |= {"day": date(2026, 11, 9)}
    keys = ("booking_uuid", "supplier_reference")
    for there, ours, theirs in (
        ({"booking_uuid": None, "supplier_reference": "SUP-12354"}, "supplier_reference=SUP-12345", "SUP-12354,"),
        ({"booking_uuid": "1178a5f9", "supplier_reference": None}, "booking_uuid=1178a5f8", "1178a5f9,"),
    ):
        outcome = compared([here], [here | there], keys=keys, fields=("amount", "currency", "day"))
        said = " ".join(item.differences[0].reason for item in outcome.items)
        assert f"Here it is {ours}, with all else equal" in said
        assert theirs in said


def commission(there, *, retail="250.00", here_net="200.00", agreeing=6, others=0, field="net_amount", keeps=0.8):
    """The reason for a price, beside pairs of which the service `keeps` a share and others with 70 % on both sides."""

    def one(n, retail, net):
        return {
            "a": f"REF-{n:04d}",
            "connection_id": "agents",
            "retail_amount": money(retail),
            "net_amount": money(net),
            "currency": "EUR",
        }

    ours = [one(n, f"{100 + n}.00", f"{(100 + n) * keeps:.2f}") for n in range(agreeing)]
    ours += [one(50 + n, "200.00", "140.00") for n in range(others)]
    outcome = compared(
        [*ours, one(99, retail, here_net)],
        [*ours, one(99, retail, here_net) | {field: money(there)}],
        keys=("a",),
        fields=(field, "currency"),
        columns=("connection_id", "retail_amount", "net_amount"),
    )
    [item] = outcome.items
    return item.differences[0].code, item.differences[0].reason


def test_a_commission_is_named_against_what_the_channels_other_pairs_deduct():
    code, reason = commission("175.00")
    assert code == "other_commission"
    assert reason == "The ledger deducts a commission of 30 %; 6 of 6 other pairs of this channel deduct 20 %."
    code, reason = commission("200.00", here_net="150.00")
    assert reason == (
        "The ledger deducts a commission of 20 %, as 6 of 6 other pairs of this channel do; this copy 40 %."
    )


def test_a_ledger_of_retail_prices_shows_which_price_here_does_not_fit_the_channels_commission():
    def retail(there, **given):
        return commission(there, **{"retail": "200.00", "field": "retail_amount", **given})

    code, reason = retail("250.00")
    assert code == "other_commission"
    assert reason == (
        "With the ledger's price, this copy's net price, 200 EUR, deducts a commission of 20 %, as 6 of 6 other pairs "
        "of this channel do; with its own 0 %."
    )
    assert retail("250.00", agreeing=4)[0] == "other_amount", "too few pairs"
    assert retail("250.00", others=2)[0] == "other_amount", "pairs that do not agree among themselves"
    assert retail("250.01")[0] == "other_amount", "not exact"
    half = {"retail": "1000.50", "here_net": "875.26", "keeps": 0.875}
    assert retail("1000.30", **half)[0] == "other_amount", "both prices fit 12.5 %"
    assert retail("25.00", retail="20.00", here_net="20.00")[0] == "other_amount", "of a small amount many are near one"
    assert retail("160.00", here_net=None)[0] == "other_amount", "the usual net price, or a discount of 20 %"
    assert retail("160.00", here_net="150.00")[0] == "other_amount", "neither price here fits it"
    assert retail("160.00", here_net="160.00")[0] == "commission_left_out"


@pytest.mark.parametrize(
    ("here", "there", "code", "reason"),
    [
        ("200", "242", "possibly_vat", "The ledger has 42 EUR more: possibly 21 % VAT was added."),
        ("119", "100", "possibly_vat", "The ledger has 19 EUR less: possibly 19 % VAT was left out."),
        ("240", "200", "possibly_vat", "The ledger has 40 EUR less: possibly 20 % VAT was left out."),
        ("100.01", "108.01", "possibly_vat", "The ledger has 8 EUR more: possibly 8 % VAT was added."),
        *(
            (here, there, "other_amount", f"{apart}: possibly {vat}, or a discount, surcharge or commission.")
            for here, there, apart, vat in (
                ("300", "240", "The ledger has 60 EUR less", "25 % VAT was left out"),
                ("100.07", "80.06", "The ledger has 20.01 EUR less", "25 % VAT was left out"),
                ("200", "210", "The ledger has 10 EUR more", "5 % VAT was added"),
                ("200", "220", "The ledger has 20 EUR more", "10 % VAT was added"),
                ("100.07", "120.08", "The ledger has 20.01 EUR more", "20 % VAT was added"),
            )
        ),
        ("99", "119.79", "other_amount", "The ledger has 20.79 EUR more."),  # of a small amount many are near one
    ],
)
def test_vat_alone_is_named_only_where_nothing_else_is_as_likely(here, there, code, reason):
    ours, theirs = ({"a": "REF-1", "amount": money(each), "currency": "EUR"} for each in (here, there))
    [item] = compared([ours], [theirs], keys=("a",)).items
    [told] = item.differences
    assert (told.code, told.reason) == (code, reason)


def test_of_a_commission_and_vat_that_both_fit_only_the_channels_usual_commission_is_named():
    assert commission("202.50", here_net="187.50")[0] == "other_amount", "19 % commission, or 8 % VAT"
    assert commission("240.00")[0] == "other_amount", "4 % commission, or 20 % VAT"
    assert commission("202.50", here_net="187.50", agreeing=4)[0] == "other_amount", "nothing usual to be told by"
    assert commission("200.00", here_net="160.00")[0] == "other_commission", "the usual 20 %, or 25 % VAT"
    assert commission("242.00")[0] == "possibly_vat", "a commission of 3.2 % is none"


def test_currencies_are_never_added_up_where_no_field_tells_them_apart():
    def outcome(*currencies):
        rows = [{"a": f"REF-{n}", "amount": money("10"), "currency": each} for n, each in enumerate(currencies)]
        return compared(rows, rows, keys=("a",), fields=("amount",), columns=("currency",))

    assert outcome("EUR", "EUR", None).counts["matched"] == 3
    with pytest.raises(ReconcileError, match="the bookings here are in EUR, USD, and currencies are never added up"):
        outcome("EUR", "USD", "EUR")


def test_a_word_for_a_currency_is_named_as_one_that_map_does_not_know():
    def told(there, **fields):
        ours, theirs = ({"a": "REF-1", "amount": money("10"), "currency": each} for each in ("EUR", there))
        field = FieldRule("currency", "currency", fields.get("mapping"))
        return [i.differences[0] for i in compared([ours], [theirs], keys=("a",), fields=("amount", field)).items]

    assert [(one.code, one.reason) for one in told("Euro")] == [
        ("not_mapped", "'Euro' is no currency code; map.currency can say which it means. Amounts are not compared.")
    ]
    assert [one.code for one in told("€")] == ["not_mapped"]
    assert [one.code for one in told("USD")] == ["other_currency"]
    assert told("Euro", mapping={"Euro": ("EUR",)}) == []
    assert [one.code for one in told("Euro", mapping={"Euro": ("USD",)})] == ["other_currency"], "the map says which"


def test_a_commission_is_not_named_where_it_may_be_chance():
    assert commission("175.01")[0] == "other_amount", "no whole percent"
    assert commission("7.00", retail="10.00", here_net="8.00")[0] == "other_amount", (
        "of a small amount many are near one"
    )
    assert commission("175.00", agreeing=4)[0] == "other_amount", "too few pairs"
    assert commission("175.00", others=2)[0] == "other_amount", "pairs that do not agree among themselves"
