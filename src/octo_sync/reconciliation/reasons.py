"""Why the two rows of a pair differ: rules that look at what both sides say and at what the copy remembers.

The first rule that speaks is the reason: its code and a sentence. They explain what is probable; a sentence never claims what
the rows do not show.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import chain
from typing import Any

from octo_sync.reconciliation.evidence import Commission, is_near
from octo_sync.reconciliation.rows import Row, exact, plain

__all__ = ["FieldCase", "PairCase", "Reason", "because", "moment", "why_reference"]

Reason = tuple[str, str]
"""Code and sentence."""
Reasons = Iterator[Reason]
_SOLD = ("CONFIRMED", "REDEEMED", "NOSHOW")
_CENTS = 100
_CODE = 3
"""Letters of a currency's code."""
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
    rates: Mapping[tuple[str, str], Decimal] = field(default_factory=dict)
    """By currency here and there the rate at which most pairs stand to each other."""


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


def because(case: FieldCase) -> Reason:
    """Why a field differs."""
    return next(chain.from_iterable(rules(case) for rules in _RULES), ("other_value", "The values differ."))


def _of_any_field(case: FieldCase) -> Reasons:
    if case.pair.is_owed:
        yield "notification_not_landed", "A notification about this booking was received and is not fetched yet."
    if other := case.pair.swapped_with:
        yield (
            "references_swapped",
            f"This ledger row fits {other}, and that one's fits this booking: their references were swapped.",
        )
    if case.t is None:
        yield "empty_there", "The ledger has no value."
    if case.h is None:
        yield "empty_here", "This copy has no value."
    if case.pair.here.get("is_test"):
        yield "test_booking", "It is a test booking."
    if case.meant == ():
        yield "not_mapped", f"map.{case.field} does not say what {case.t!r} in the ledger means."


def _of_status(case: FieldCase) -> Reasons:
    if case.field != "status":
        return
    status, here = str(case.h).upper(), case.pair.here
    if status in ("ON_HOLD", "EXPIRED"):
        until = moment(here.get("utc_expires_at"))
        yield "hold_expired", f"It was a hold{f' until {until}' if until else ''} and never sold."
    if status in _SOLD and "CANCELLED" in (case.meant or (str(case.t).upper(),)):
        seen = moment(here.get("verified_at_utc"))
        when = f" when it was last verified, {seen}" if seen else ""
        yield (
            "cancelled_there",
            f"The ledger says cancelled; this copy had {case.h}{when}. If it was cancelled since, the next sync shows it.",
        )
    if status == "CANCELLED":
        when = moment(here.get("utc_cancelled_at"))
        yield "cancelled_here", f"Cancelled here{f' at {when}' if when else ''}; the ledger still counts it."


def _of_prices(case: FieldCase) -> Reasons:
    """Another amount of the booking in this one's place, or the same one written otherwise."""
    if case.kind != "amount":
        return
    h, t, here = case.h, case.t, case.pair.here
    if t == -h:
        yield "sign_turned", "The ledger has the opposite sign, as for a refund."
    for factor in sorted({_CENTS, 10**case.units} - {1}) if h else ():
        if t == h * factor:
            yield "minor_units", f"The ledger has {factor} times as much: minor units were taken for whole ones."
        if h == t * factor:
            yield "minor_units", f"The ledger has 1/{factor} of it: whole units were taken for minor ones."
    if case.field in ("retail_amount", "original_amount") and t == exact(here.get("net_amount")):
        price = case.field.removesuffix("_amount")
        yield "commission_left_out", f"The ledger shows the net price, {_money(case, t)}, not the {price} price."
    if case.field == "net_amount" and t == exact(here.get("retail_amount")):
        yield (
            "gross_for_net",
            f"The ledger has the retail amount, {_money(case, t)}, as net: the commission was not deducted.",
        )
    if former := _former(case):
        yield "price_changed", f"The price here was {_money(case, t)} until {former}; it changed after booking."


def _of_taxes_and_refunds(case: FieldCase) -> Reasons:
    if case.kind != "amount":
        return
    h, t, here = case.h, case.t, case.pair.here
    tax = exact(here.get("tax_amount"))
    if tax and t == h + tax:
        yield "tax_added", f"The ledger has {_money(case, tax)} more, which is the tax: tax was added twice."
    if tax and t == h - tax:
        yield "tax_left_out", f"The ledger has {_money(case, tax)} less, which is the tax: tax was left out."
    if t % 1 == 0 and h % 1 != 0 and abs(t - h) < 1:
        yield "rounded", "The ledger rounds to whole units."
    if abs(t - h) <= _FEW * case.unit:
        yield "off_by_a_little", "The amounts differ by a few minor units, as roundings do."
    if str(here.get("cancellation_refund") or "").upper() == "PARTIAL" and 0 < t < h:
        kept = f"{_money(case, t)} of {_money(case, h)}"
        yield "partly_refunded", f"Cancelled with a partial refund; the ledger keeps {kept}."
    if h and t == 2 * h:
        yield "invoiced_twice", "The ledger has twice as much: possibly invoiced twice."


def _of_rates(case: FieldCase) -> Reasons:
    if case.kind != "amount":
        return
    retail, net = (exact(case.pair.here.get(name)) for name in ("retail_amount", "net_amount"))
    usual = case.pair.commission
    others = f"{usual.pairs:,} of {usual.of:,} other pairs of this channel" if usual is not None else ""
    theirs, vat = _commission(case), _vat(case)
    if retail and usual is not None and theirs is not None and case.h:
        ours = (1 - case.h / retail).quantize(_PERCENT)
        says = f"The ledger deducts a commission of {_percent(theirs)}"
        if theirs == usual.rate != ours:
            yield "other_commission", f"{says}, as {others} do; this copy {_percent(ours)}."
        elif not vat:  # as likely
            yield "other_commission", f"{says}; {others} deduct {_percent(usual.rate)}."
    if case.field == "retail_amount" and usual is not None and net and case.h and case.t >= _TELLING * case.unit:
        own = round((1 - net / case.h) * 200) / Decimal(200)  # as finely as the usual one is known
        fits = f"With the ledger's price, this copy's net price, {_money(case, net)}, deducts a commission of"
        if round(case.t * (1 - usual.rate), case.units) == net and usual.rate != own:
            yield "other_commission", f"{fits} {_percent(usual.rate)}, as {others} do; with its own {_percent(own)}."
    # A discount, surcharge or commission of 5, 10, … 25 % is as likely.
    steps = (case.t / case.h * _STEPS).quantize(Decimal(1)) if vat and theirs is None else None
    if steps is not None and case.t != round(case.h * steps / _STEPS, case.units):
        yield "possibly_vat", f"{_apart(case)}: possibly {vat}."


def _of_clocks(case: FieldCase) -> Reasons:
    if case.kind != "instant":
        return
    (utc, local), t = case.clocks, _naive(case.t)
    if utc is None or local is None or utc == local or t is None:
        return
    if case.h.tzinfo is not None and t == local:
        yield "wall_clock_as_utc", f"The same wall clock, {local:%H:%M}: the ledger stored local time as UTC."
    if utc == (case.wall_t if case.h.tzinfo is not None else t):
        yield "wall_clock_as_utc", f"The ledger says {utc:%H:%M}, which is the time in UTC: it took UTC for local time."


def _of_days(case: FieldCase) -> Reasons:
    if case.field in ("travel_date", "utc_start_at", "local_start_at") and (former := _former(case)):
        yield "moved_here", f"This copy had {case.t:%Y-%m-%d} until {former}; it was moved since."
    if case.kind == "date":
        yield "moved_day", f"The ledger has it {_days((case.t - case.h).days)}: moved to another day."
    if case.kind != "instant":
        return
    apart, local = case.t - case.h, case.clocks[1]
    on_the_wall = case.wall_t - local if case.wall_t is not None and local is not None else timedelta(0)
    for days in (on_the_wall, apart):
        if days and days % _DAY == timedelta(0):
            yield "moved_day", f"The ledger has it {_days(days.days)} at the same time: moved to another day."
    if abs(apart) > _DAY:
        yield "moved_day", f"The ledger has it {_days(round(apart / _DAY))} at another time: moved to another day."
    yield "moved_time", f"In the ledger it starts {_span(int(apart.total_seconds()))}."


def _of_guests(case: FieldCase) -> Reasons:
    units = case.pair.here.get("unit_count")
    if case.field == "pax_count" and units is not None and case.t == units:
        yield "tickets_not_people", f"The ledger counts tickets ({units}), this copy people ({case.h})."
    if case.field == "pax_count" and (former := _former(case)):
        yield "guests_changed", f"This copy had {case.t} guests until {former}; it changed after booking."
    if case.field in ("pax_count", "unit_count"):
        more, noun = int(case.t - case.h), "guest" if case.field == "pax_count" else "ticket"
        said = f"{abs(more)} {'more' if more > 0 else 'fewer'} {noun}{'' if abs(more) == 1 else 's'}"
        yield "other_guests", f"The ledger has {said}."


def _of_the_rest(case: FieldCase) -> Reasons:
    h, t = case.amounts
    if case.field == "currency" and case.meant is None and not (len(case.t) == _CODE and case.t.isalpha()):
        yield (
            "not_mapped",
            f"{case.t!r} is no currency code; map.currency can say which it means. Amounts are not compared.",
        )
    rate = case.pair.rates.get((str(case.h), str(case.t))) if case.field == "currency" else None
    if rate and h and t and is_near(t / h, rate):
        sold = f"{_money(replace(case, currency=case.t), t)} for {_money(replace(case, currency=case.h), h)}"
        at = f"{sold} is possibly converted, at a rate of {t / h:.4g}, as others are."
        yield "converted", f"The currencies differ, so amounts are not compared. {at}"
    if case.field == "currency":
        yield "other_currency", "The currencies differ, so amounts are not compared."
    if case.field in ("product_code", "product_id", "product_name", "option_id", "option_name"):
        yield "other_product", "The products differ; if they are the same, say so in map."
    if case.kind == "amount":
        vat = _vat(case)
        yield (
            "other_amount",
            f"{_apart(case)}{f': possibly {vat}, or a discount, surcharge or commission' if vat else ''}.",
        )


_RULES = (
    _of_any_field, _of_status, _of_prices, _of_taxes_and_refunds, _of_rates, _of_clocks, _of_days, _of_guests, _of_the_rest,
)  # fmt: skip


def why_reference(pair: PairCase, key: str) -> Reason:
    """Why a key differs in a pair that another key made."""
    if pair.swapped_with:
        return "references_swapped", f"The ledger has the {key} of {pair.swapped_with}, and the other way round."
    return "other_reference", f"Matched by another key, but the ledger has another {key}."


# ── words ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _money(case: FieldCase, amount: Decimal) -> str:
    """An amount with the decimals of its currency, and more where it has more: `1,204.50 EUR`."""
    whole, _, fraction = plain(amount).partition(".")
    known = case.pair.here.get("currency_precision") is not None
    fraction = fraction.ljust(case.units if known or fraction else 0, "0")
    return f"{Decimal(whole):,}{'.' if fraction else ''}{fraction} {case.currency or ''}".rstrip()


def _percent(share: Decimal) -> str:
    return f"{plain(share * 100)} %"


def _commission(case: FieldCase) -> Decimal | None:
    """What the ledger's net price deducts of the retail price: a whole percent, exact to the last digit."""
    retail = exact(case.pair.here.get("retail_amount"))
    if case.field != "net_amount" or not retail or retail < _TELLING * case.unit:
        return None
    share = (1 - case.t / retail).quantize(_PERCENT)
    return share if 0 < share < 1 and round(retail * (1 - share), case.units) == case.t else None


def _vat(case: FieldCase) -> str:
    """At which usual rate VAT would explain the amounts, where this copy states no tax: `21 % VAT was added`; else ''."""
    if exact(case.pair.here.get("tax_amount")) or case.h < _TELLING * case.unit:
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
