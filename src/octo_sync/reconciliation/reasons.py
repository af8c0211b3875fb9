"""Why the two rows of a pair differ: rules that look at what both sides say and at what the copy remembers.

Each rule is a function that gives a sentence or nothing; the first one that speaks is the reason, and its name is the reason's
code. They explain what is probable; a sentence never claims what the rows do not show.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from octo_sync.reconciliation.rows import Row, exact, plain

__all__ = ["FieldCase", "PairCase", "Reason", "because", "moment", "why_reference"]

Reason = tuple[str, str]
"""Code and sentence."""
_SOLD = ("CONFIRMED", "REDEEMED", "NOSHOW")
_CENTS = 100
_FEW = 5
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

    @property
    def units(self) -> int:
        """Decimals of the currency; two where the row here does not say."""
        precision = self.pair.here.get("currency_precision")
        return 2 if precision is None else int(precision)

    @property
    def clocks(self) -> tuple[datetime | None, datetime | None]:
        """Of an instant here, both without a zone: the clock in UTC and the clock at the venue, where the row says them."""
        start, local = self.pair.here.get("utc_start_at"), self.pair.here.get("local_start_at")
        if self.h.tzinfo is not None:
            return _naive(self.h), _naive(local) if self.field == "utc_start_at" else None
        return _naive(start) if self.field == "local_start_at" else None, self.h


# ── a field ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def notification_not_landed(case: FieldCase) -> str:
    return "A notification about this booking was received and is not landed yet." if case.pair.is_owed else ""


def references_swapped(case: FieldCase) -> str:
    other = case.pair.swapped_with
    return f"This row fits {other}, and that one's fits here: their references were swapped." if other else ""


def empty_there(case: FieldCase) -> str:
    return "It is empty there." if case.t is None else ""


def empty_here(case: FieldCase) -> str:
    return "It is empty here." if case.h is None else ""


def not_mapped(case: FieldCase) -> str:
    if case.meant == ():
        return f"map.{case.field} does not say what {case.t!r} there means."
    return ""


def test_booking(case: FieldCase) -> str:
    return "It is a test booking here." if case.pair.here.get("is_test") else ""


def hold_expired(case: FieldCase) -> str:
    status = str(case.h).upper()
    if case.field == "status" and status in ("ON_HOLD", "EXPIRED"):
        until = moment(case.pair.here.get("utc_expires_at"))
        return f"Here it was held{f' until {until}' if until else ''} and never sold."
    return ""


def cancelled_there(case: FieldCase) -> str:
    if case.field == "status" and str(case.h).upper() in _SOLD and "CANCELLED" in _said(case):
        seen = moment(case.pair.here.get("verified_at_utc"))
        when = f" when it was last verified, {seen}" if seen else ""
        return f"Cancelled there; here it was {case.h}{when}. If it was cancelled since, the next sync shows it."
    return ""


def cancelled_here(case: FieldCase) -> str:
    if case.field == "status" and str(case.h).upper() == "CANCELLED":
        when = moment(case.pair.here.get("utc_cancelled_at"))
        return f"Cancelled here{f' at {when}' if when else ''}; there it still counts."
    return ""


def sign_turned(case: FieldCase) -> str:
    return "It has the other sign there, as a refund has." if _amounts(case) and case.t == -case.h else ""


def minor_units(case: FieldCase) -> str:
    if _amounts(case) and case.h != 0:
        for factor in sorted({_CENTS, 10**case.units} - {1}):
            if case.t == case.h * factor:
                return f"It is {factor} times as much there: the smallest units were taken for whole ones."
            if case.h == case.t * factor:
                return f"It is one part in {factor} there: whole units were taken for the smallest ones."
    return ""


def commission_left_out(case: FieldCase) -> str:
    net = exact(case.pair.here.get("net_amount"))
    if case.field in ("retail_amount", "original_amount") and _amounts(case) and net is not None and case.t == net:
        return f"The amount there equals the net amount here, {plain(net)}: the commission was left out."
    return ""


def gross_for_net(case: FieldCase) -> str:
    gross = exact(case.pair.here.get("retail_amount"))
    if case.field == "net_amount" and _amounts(case) and gross is not None and case.t == gross:
        return f"The net amount there equals the retail amount here, {plain(gross)}: the commission was not taken off."
    return ""


def price_changed(case: FieldCase) -> str:
    if case.kind != "amount":
        return ""
    former = _former(case)
    return f"The price was {plain(case.t)} here until {former}; it changed after booking." if former else ""


def tax_added(case: FieldCase) -> str:
    tax = exact(case.pair.here.get("tax_amount"))
    if _amounts(case) and tax and case.t == case.h + tax:
        return f"The amount there is larger by the tax here, {plain(tax)}: tax was added once more."
    return ""


def tax_left_out(case: FieldCase) -> str:
    tax = exact(case.pair.here.get("tax_amount"))
    if _amounts(case) and tax and case.t == case.h - tax:
        return f"The amount there is smaller by the tax here, {plain(tax)}: tax was left out."
    return ""


def rounded(case: FieldCase) -> str:
    if not _amounts(case) or case.t % 1 != 0 or case.h % 1 == 0:
        return ""
    return "It was rounded to whole units there." if abs(case.t - case.h) < 1 else ""


def off_by_a_little(case: FieldCase) -> str:
    if _amounts(case) and abs(case.t - case.h) <= _FEW * Decimal(1).scaleb(-case.units):
        return "They differ by a few of the smallest units, as roundings do."
    return ""


def wall_clock_as_utc(case: FieldCase) -> str:
    if case.kind != "instant":
        return ""
    (utc, local), t = case.clocks, _naive(case.t)
    if utc is None or local is None or utc == local or t is None:
        return ""
    if case.h.tzinfo is not None and t == local:
        return f"The same wall clock, {local:%H:%M}: there the local time was stored as UTC."
    if utc == (case.wall_t if case.h.tzinfo is not None else t):
        return f"There it says {utc:%H:%M}, which is the time in UTC: UTC was taken for local time."
    return ""


def moved_here(case: FieldCase) -> str:
    if case.field not in ("travel_date", "utc_start_at", "local_start_at"):
        return ""
    former = _former(case)
    return f"Here it was {case.t:%Y-%m-%d} until {former} and was moved since." if former else ""


def moved_day(case: FieldCase) -> str:
    if case.kind == "date":
        return f"There it is {_days((case.t - case.h).days)}: moved to another day."
    if case.kind != "instant":
        return ""
    apart, local = case.t - case.h, case.clocks[1]
    if (
        case.wall_t is not None
        and local is not None
        and case.wall_t.time() == local.time()
        and case.wall_t.date() != local.date()
    ):
        return f"There it is {_days((case.wall_t.date() - local.date()).days)} at the same time: moved to another day."
    if apart % _DAY == timedelta(0):
        return f"There it is {_days(apart.days)} at the same time: moved to another day."
    if abs(apart) > _DAY:
        return f"There it is {_days(round(apart / _DAY))} at another time: moved to another day."
    return ""


def moved_time(case: FieldCase) -> str:
    return f"There it starts {_span(int((case.t - case.h).total_seconds()))}." if case.kind == "instant" else ""


def tickets_not_people(case: FieldCase) -> str:
    units = case.pair.here.get("unit_count")
    if case.field == "pax_count" and units is not None and case.t == units:
        return f"There the tickets are counted ({units}), here the people in them ({case.h})."
    return ""


def guests_changed(case: FieldCase) -> str:
    if case.field != "pax_count":
        return ""
    former = _former(case)
    return f"Here they were {case.t} until {former}; it changed after booking." if former else ""


def other_guests(case: FieldCase) -> str:
    if case.field in ("pax_count", "unit_count"):
        more = int(case.t - case.h)
        return f"{abs(more)} {'guest' if abs(more) == 1 else 'guests'} {'more' if more > 0 else 'fewer'} there."
    return ""


def other_currency(case: FieldCase) -> str:
    return "Another currency; amounts are not compared." if case.field == "currency" else ""


def other_product(case: FieldCase) -> str:
    if case.field in ("product_code", "product_id", "product_name", "option_id", "option_name"):
        return "Another product; if it is the same one, say so in `map`."
    return ""


def other_amount(case: FieldCase) -> str:
    if not _amounts(case):
        return ""
    return f"There it is {plain(abs(case.t - case.h))} {'more' if case.t > case.h else 'less'}."


_FIELD_RULES: Sequence[Callable[[FieldCase], str]] = (
    notification_not_landed, references_swapped, empty_there, empty_here, test_booking, not_mapped,
    hold_expired, cancelled_there, cancelled_here,
    sign_turned, minor_units, commission_left_out, gross_for_net, price_changed, tax_added, tax_left_out, rounded,
    off_by_a_little,
    wall_clock_as_utc, moved_here, moved_day, moved_time,
    tickets_not_people, guests_changed, other_guests,
    other_currency, other_product, other_amount,
)  # fmt: skip


def because(case: FieldCase) -> Reason:
    """Why a field differs."""
    for rule in _FIELD_RULES:
        if sentence := rule(case):
            return rule.__name__, sentence
    return "other_value", "Another value."


def why_reference(pair: PairCase, key: str) -> Reason:
    """Why a key differs in a pair that another key made."""
    if pair.swapped_with:
        return "references_swapped", f"The {key} there is that of {pair.swapped_with}, and the other way round."
    return "other_reference", f"Matched by another key, but the {key} there is another one."


# ── words ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _said(case: FieldCase) -> tuple[str, ...]:
    """What the value there means here."""
    return case.meant or (str(case.t).upper(),)


def _amounts(case: FieldCase) -> bool:
    return case.kind == "amount" and case.h is not None and case.t is not None


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
