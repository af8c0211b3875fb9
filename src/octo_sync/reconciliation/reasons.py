"""Why the two rows of a pair differ: rules that look at what both sides say and at what the copy remembers.

Each rule is a function that gives a sentence or nothing; the first one that speaks is the reason, and its name is the reason's
code. They explain what is probable; a sentence never claims what the rows do not show.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from octo_sync.reconciliation.evidence import Commission
from octo_sync.reconciliation.rows import Row, exact, plain

__all__ = ["FieldCase", "PairCase", "Reason", "because", "moment", "why_reference"]

Reason = tuple[str, str]
"""Code and sentence."""
_SOLD = ("CONFIRMED", "REDEEMED", "NOSHOW")
_CENTS = 100
_FEW = 5
_PERCENT = Decimal("0.01")
_TELLING = 10_000
"""Minor units of an amount of which a rate can be told: of 100.00 a percent is 100 of them, so that few others fit one."""
_VAT = tuple(
    Decimal(percent) / 100
    for percent in ("5", "5.5", "6", "7", "8", "8.1", "9", "10", "12", "13", "14", "15", "16", "17", "18", "19", "20", "21",
                    "22", "23", "24", "25", "25.5", "27")
)  # fmt: skip
"""Usual rates of value added tax."""
_STEPS = 20
"""Of 5 % each, in which discounts and surcharges are given."""
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairCase:
    """A row here, the row there that belongs to it, and what the copy remembers of the booking."""

    here: Row
    there: Row
    versions: Sequence[Row] = ()
    """Of `core.booking_history`, oldest first."""
    is_owed: bool = False
    """A notification was received and what it is about is not landed yet."""
    swapped_with: str | None = None
    """The key of the other item, when this one's ledger row fits that one's row here, and the other way round."""
    commission: Commission | None = None
    """What the pairs of its connection that agree deduct."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldCase:
    """One field of a pair that differs. `meant` are the values here that a mapped value there stands for; None: no mapping."""

    pair: PairCase
    field: str
    kind: str
    h: Any
    t: Any
    currency: str | None = None
    meant: tuple[str, ...] | None = None
    wall_t: datetime | None = None
    """Of an instant: the clock as it is written there."""
    amounts: tuple[Decimal | None, Decimal | None] = (None, None)
    """The first amount of the pair, here and there."""

    @property
    def units(self) -> int:
        """Decimals of the currency; two where the row here does not say."""
        precision = self.pair.here.get("currency_precision")
        return 2 if precision is None else int(precision)

    @property
    def unit(self) -> Decimal:
        """The smallest amount of the currency."""
        return Decimal(1).scaleb(-self.units)

    @property
    def clocks(self) -> tuple[datetime | None, datetime | None]:
        """Of an instant here, both without a zone: the clock in UTC and the clock at the venue, where the row says them."""
        start, local = self.pair.here.get("utc_start_at"), self.pair.here.get("local_start_at")
        if self.h.tzinfo is not None:
            return _naive(self.h), _naive(local) if self.field == "utc_start_at" else None
        return _naive(start) if self.field == "local_start_at" else None, self.h


# ── a field ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def notification_not_landed(case: FieldCase) -> str:
    return "A notification about this booking was received and is not fetched yet." if case.pair.is_owed else ""


def references_swapped(case: FieldCase) -> str:
    other = case.pair.swapped_with
    return (
        f"This ledger row fits {other}, and that one's fits this booking: their references were swapped."
        if other
        else ""
    )


def empty_there(case: FieldCase) -> str:
    return "The ledger has no value." if case.t is None else ""


def empty_here(case: FieldCase) -> str:
    return "This copy has no value." if case.h is None else ""


def not_mapped(case: FieldCase) -> str:
    if case.meant == ():
        return f"map.{case.field} does not say what {case.t!r} in the ledger means."
    return ""


def test_booking(case: FieldCase) -> str:
    return "It is a test booking." if case.pair.here.get("is_test") else ""


def hold_expired(case: FieldCase) -> str:
    status = str(case.h).upper()
    if case.field == "status" and status in ("ON_HOLD", "EXPIRED"):
        until = moment(case.pair.here.get("utc_expires_at"))
        return f"It was a hold{f' until {until}' if until else ''} and never sold."
    return ""


def cancelled_there(case: FieldCase) -> str:
    if case.field == "status" and str(case.h).upper() in _SOLD and "CANCELLED" in _said(case):
        seen = moment(case.pair.here.get("verified_at_utc"))
        when = f" when it was last verified, {seen}" if seen else ""
        return f"The ledger says cancelled; this copy had {case.h}{when}. If it was cancelled since, the next sync shows it."
    return ""


def cancelled_here(case: FieldCase) -> str:
    if case.field == "status" and str(case.h).upper() == "CANCELLED":
        when = moment(case.pair.here.get("utc_cancelled_at"))
        return f"Cancelled here{f' at {when}' if when else ''}; the ledger still counts it."
    return ""


def sign_turned(case: FieldCase) -> str:
    return "The ledger has the opposite sign, as for a refund." if _amounts(case) and case.t == -case.h else ""


def minor_units(case: FieldCase) -> str:
    if _amounts(case) and case.h != 0:
        for factor in sorted({_CENTS, 10**case.units} - {1}):
            if case.t == case.h * factor:
                return f"The ledger has {factor} times as much: minor units were taken for whole ones."
            if case.h == case.t * factor:
                return f"The ledger has 1/{factor} of it: whole units were taken for minor ones."
    return ""


def commission_left_out(case: FieldCase) -> str:
    if case.field in ("retail_amount", "original_amount") and _has_other(case, "net_amount"):
        price = case.field.removesuffix("_amount")
        return f"The ledger shows the net price, {_money(case, case.t)}, not the {price} price."
    return ""


def gross_for_net(case: FieldCase) -> str:
    if case.field == "net_amount" and _has_other(case, "retail_amount"):
        return f"The ledger has the retail amount, {_money(case, case.t)}, as net: the commission was not deducted."
    return ""


def price_changed(case: FieldCase) -> str:
    if case.kind == "amount" and (former := _former(case)):
        return f"The price here was {_money(case, case.t)} until {former}; it changed after booking."
    return ""


def tax_added(case: FieldCase) -> str:
    tax = exact(case.pair.here.get("tax_amount"))
    if _amounts(case) and tax and case.t == case.h + tax:
        return f"The ledger has {_money(case, tax)} more, which is the tax: tax was added twice."
    return ""


def tax_left_out(case: FieldCase) -> str:
    tax = exact(case.pair.here.get("tax_amount"))
    if _amounts(case) and tax and case.t == case.h - tax:
        return f"The ledger has {_money(case, tax)} less, which is the tax: tax was left out."
    return ""


def invoiced_twice(case: FieldCase) -> str:
    is_twice = _amounts(case) and case.h and case.t == 2 * case.h
    return "The ledger has twice as much: possibly invoiced twice." if is_twice else ""


def partly_refunded(case: FieldCase) -> str:
    said = str(case.pair.here.get("cancellation_refund") or "").upper()
    if said == "PARTIAL" and _amounts(case) and 0 < case.t < case.h:
        return f"Cancelled with a partial refund; the ledger keeps {_money(case, case.t)} of {_money(case, case.h)}."
    return ""


def other_commission(case: FieldCase) -> str:
    retail, usual, theirs = exact(case.pair.here.get("retail_amount")), case.pair.commission, _commission(case)
    if not retail or usual is None or theirs is None or not case.h:
        return ""
    ours = (1 - case.h / retail).quantize(_PERCENT)
    others = f"{usual.pairs:,} of {usual.of:,} other pairs of this channel"
    if theirs == usual.rate != ours:
        return f"The ledger deducts a commission of {_percent(theirs)}, as {others} do; this copy {_percent(ours)}."
    if _vat(case):  # as likely
        return ""
    return f"The ledger deducts a commission of {_percent(theirs)}; {others} deduct {_percent(usual.rate)}."


def possibly_vat(case: FieldCase) -> str:
    vat = _vat(case)
    if not vat or _commission(case) is not None:
        return ""
    # A discount, surcharge or commission of 5, 10, … 25 % is as likely.
    steps = (case.t / case.h * _STEPS).quantize(Decimal(1))
    return "" if case.t == round(case.h * steps / _STEPS, case.units) else f"{_apart(case)}: possibly {vat}."


def rounded(case: FieldCase) -> str:
    is_rounded = _amounts(case) and case.t % 1 == 0 and case.h % 1 != 0 and abs(case.t - case.h) < 1
    return "The ledger rounds to whole units." if is_rounded else ""


def off_by_a_little(case: FieldCase) -> str:
    if _amounts(case) and abs(case.t - case.h) <= _FEW * case.unit:
        return "The amounts differ by a few minor units, as roundings do."
    return ""


def wall_clock_as_utc(case: FieldCase) -> str:
    if case.kind != "instant":
        return ""
    (utc, local), t = case.clocks, _naive(case.t)
    if utc is None or local is None or utc == local or t is None:
        return ""
    if case.h.tzinfo is not None and t == local:
        return f"The same wall clock, {local:%H:%M}: the ledger stored local time as UTC."
    if utc == (case.wall_t if case.h.tzinfo is not None else t):
        return f"The ledger says {utc:%H:%M}, which is the time in UTC: it took UTC for local time."
    return ""


def moved_here(case: FieldCase) -> str:
    if case.field in ("travel_date", "utc_start_at", "local_start_at") and (former := _former(case)):
        return f"This copy had {case.t:%Y-%m-%d} until {former}; it was moved since."
    return ""


def moved_day(case: FieldCase) -> str:
    if case.kind == "date":
        return f"The ledger has it {_days((case.t - case.h).days)}: moved to another day."
    if case.kind != "instant":
        return ""
    apart, local = case.t - case.h, case.clocks[1]
    on_the_wall = case.wall_t - local if case.wall_t is not None and local is not None else timedelta(0)
    for days in (on_the_wall, apart):
        if days and days % _DAY == timedelta(0):
            return f"The ledger has it {_days(days.days)} at the same time: moved to another day."
    if abs(apart) > _DAY:
        return f"The ledger has it {_days(round(apart / _DAY))} at another time: moved to another day."
    return ""


def moved_time(case: FieldCase) -> str:
    return f"In the ledger it starts {_span(int((case.t - case.h).total_seconds()))}." if case.kind == "instant" else ""


def tickets_not_people(case: FieldCase) -> str:
    units = case.pair.here.get("unit_count")
    if case.field == "pax_count" and units is not None and case.t == units:
        return f"The ledger counts tickets ({units}), this copy people ({case.h})."
    return ""


def guests_changed(case: FieldCase) -> str:
    if case.field == "pax_count" and (former := _former(case)):
        return f"This copy had {case.t} guests until {former}; it changed after booking."
    return ""


def other_guests(case: FieldCase) -> str:
    if case.field in ("pax_count", "unit_count"):
        more, noun = int(case.t - case.h), "guest" if case.field == "pax_count" else "ticket"
        return f"The ledger has {abs(more)} {'more' if more > 0 else 'fewer'} {noun}{'' if abs(more) == 1 else 's'}."
    return ""


def converted(case: FieldCase) -> str:
    h, t = case.amounts
    if case.field != "currency" or not h or not t or h == t or h * t < 0:
        return ""
    return (
        f"The currencies differ, so amounts are not compared. {plain(t)} {case.t} for {plain(h)} {case.h} is possibly "
        f"converted, at a rate of {t / h:.4g}."
    )


def other_currency(case: FieldCase) -> str:
    return "The currencies differ, so amounts are not compared." if case.field == "currency" else ""


def other_product(case: FieldCase) -> str:
    if case.field in ("product_code", "product_id", "product_name", "option_id", "option_name"):
        return "The products differ; if they are the same, say so in map."
    return ""


def other_amount(case: FieldCase) -> str:
    if not _amounts(case):
        return ""
    vat = _vat(case)
    return f"{_apart(case)}{f': possibly {vat}, or a discount, surcharge or commission' if vat else ''}."


_FIELD_RULES: Sequence[Callable[[FieldCase], str]] = (
    notification_not_landed, references_swapped, empty_there, empty_here, test_booking, not_mapped,
    hold_expired, cancelled_there, cancelled_here,
    sign_turned, minor_units, commission_left_out, gross_for_net, price_changed, tax_added, tax_left_out, rounded,
    off_by_a_little, partly_refunded, invoiced_twice, other_commission, possibly_vat,
    wall_clock_as_utc, moved_here, moved_day, moved_time,
    tickets_not_people, guests_changed, other_guests,
    converted, other_currency, other_product, other_amount,
)  # fmt: skip


def because(case: FieldCase) -> Reason:
    """Why a field differs."""
    for rule in _FIELD_RULES:
        if sentence := rule(case):
            return rule.__name__, sentence
    return "other_value", "The values differ."


def why_reference(pair: PairCase, key: str) -> Reason:
    """Why a key differs in a pair that another key made."""
    if pair.swapped_with:
        return "references_swapped", f"The ledger has the {key} of {pair.swapped_with}, and the other way round."
    return "other_reference", f"Matched by another key, but the ledger has another {key}."


# ── words ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _said(case: FieldCase) -> tuple[str, ...]:
    """What the value there means here."""
    return case.meant or (str(case.t).upper(),)


def _money(case: FieldCase, amount: Decimal) -> str:
    """An amount with the decimals of its currency, and more where it has more: `1,204.50 EUR`."""
    whole, _, fraction = plain(amount).partition(".")
    known = case.pair.here.get("currency_precision") is not None
    fraction = fraction.ljust(case.units if known or fraction else 0, "0")
    return f"{Decimal(whole):,}{'.' if fraction else ''}{fraction} {case.currency or ''}".rstrip()


def _percent(share: Decimal) -> str:
    return f"{plain(share * 100)} %"


def _amounts(case: FieldCase) -> bool:
    return case.kind == "amount" and case.h is not None and case.t is not None


def _has_other(case: FieldCase, name: str) -> bool:
    """Whether the ledger has another amount of the booking in this one's place."""
    return _amounts(case) and case.t == exact(case.pair.here.get(name))


def _commission(case: FieldCase) -> Decimal | None:
    """What the ledger's net price deducts of the retail price: a whole percent, exact to the last digit."""
    retail = exact(case.pair.here.get("retail_amount"))
    if case.field != "net_amount" or not _amounts(case) or not retail or retail < _TELLING * case.unit:
        return None
    share = (1 - case.t / retail).quantize(_PERCENT)
    return share if 0 < share < 1 and round(retail * (1 - share), case.units) == case.t else None


def _vat(case: FieldCase) -> str:
    """At which usual rate VAT would explain the amounts, where this copy states no tax: `21 % VAT was added`; else ''."""
    if not _amounts(case) or exact(case.pair.here.get("tax_amount")) or case.h < _TELLING * case.unit:
        return ""
    for rate in _VAT:
        if case.t == round(case.h * (1 + rate), case.units):
            return f"{_percent(rate)} VAT was added"
        if case.t == round(case.h / (1 + rate), case.units):
            return f"{_percent(rate)} VAT was left out"
    return ""


def _apart(case: FieldCase) -> str:
    return f"The ledger has {_money(case, abs(case.t - case.h))} {'more' if case.t > case.h else 'less'}"


def _former(case: FieldCase) -> str:
    """Until when an earlier version had the value that the other side has; '' when none did."""
    for version in reversed(case.pair.versions):
        value = version.get(case.field if case.field != "travel_date" else "local_date")
        ended = version.get("valid_to_utc")
        if ended is not None and value is not None and value == case.t:
            return moment(ended)
    return ""


def moment(value: object) -> str:
    """A moment as sentences say it; '' for what is none."""
    return f"{value.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if isinstance(value, datetime) else ""


def _days(days: int) -> str:
    return f"{abs(days)} {'day' if abs(days) == 1 else 'days'} {'later' if days > 0 else 'earlier'}"


def _span(seconds: int) -> str:
    return f"{str(timedelta(seconds=abs(seconds))).removesuffix(':00')} h {'later' if seconds > 0 else 'earlier'}"


def _naive(value: object) -> datetime | None:
    """A clock without its zone, in UTC where it has one."""
    if not isinstance(value, datetime):
        return None
    return value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
