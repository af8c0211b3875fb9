"""Why one side has no row, or has more than one."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from octo_sync.model import Window
from octo_sync.reconciliation.reasons import Reason, moment
from octo_sync.reconciliation.rows import Row, exact

_UNSOLD = ("ON_HOLD", "EXPIRED", "PENDING", "REJECTED")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoneCase:
    """A row that only one side has. `known` are bookings of the copy with a key of it, wherever they travel."""

    row: Row
    window: Window
    known: Sequence[Row] = ()
    compared: frozenset[str] = frozenset()
    """Those of the known bookings that are among the rows here, by `booking_uuid`."""
    is_covered: bool | None = None
    is_owed: bool = False
    date: str = "travel_date"
    """What the window is about, as `Rules.date` says."""
    twin: str = ""
    """The key of the item that only the other side has and that is equal but for a few characters of its key."""
    word: str = ""
    """By which the row says that it is a totals row."""
    is_sum: bool = False
    """Whether its amount is the sum of all other rows', and it has no key."""


def why_alone(case: LoneCase, *, is_here: bool) -> Reason:
    """Why the other side has no such row."""
    return _why_missing_there(case) if is_here else _why_missing_here(case)


def _why_missing_there(case: LoneCase) -> Reason:
    status = str(case.row.get("status") or "").upper()
    if case.twin:
        return "key_mistyped", f"The ledger has {case.twin}, with all else equal: possibly a mistyped key."
    if case.row.get("is_test"):
        return "test_booking", "It is a test booking."
    if status in _UNSOLD:
        return "hold_expired", f"It was never sold ({status}); leave it out of the query of `here`."
    if status == "CANCELLED":
        when = moment(case.row.get("utc_cancelled_at"))
        return (
            "cancelled_here",
            f"Cancelled here{f' at {when}' if when else ''}; the ledger may leave out cancelled bookings.",
        )
    return "unknown_there", "The ledger has no row with any of its keys."


def _why_missing_here(case: LoneCase) -> Reason:
    if case.is_owed:
        return "notification_not_landed", "A notification about it was received and is not fetched yet."
    if case.word or case.is_sum:
        says = f'It says "{case.word}"' if case.word else "Its amount is the sum of all other rows"
        return "totals_row", f"{says}: possibly a totals row. Leave it out with skip_footer or where in there.format."
    if known := _why_left_out(case):
        return known
    if case.twin:
        return "key_mistyped", f"Here it is {case.twin}, with all else equal: possibly a mistyped key."
    if case.is_covered is False:
        return "not_covered", "The copy is incomplete for that month; a full pull may bring it."
    return "unknown_here", "No booking here has any of its keys."


def _why_left_out(case: LoneCase) -> Reason | None:  # noqa: PLR0911 - one return per reason
    """What the copy knows of a booking with a key of the row; None where it knows none."""
    for known in sorted(case.known, key=lambda each: each["booking_uuid"] in case.compared):
        if known["booking_uuid"] in case.compared:
            return (
                "one_more",
                "Bookings here with the same reference have ledger rows of their own; this row is one more.",
            )
        status = str(known.get("status") or "").upper()
        day, does = _in_time(case, known)
        if known.get("is_deleted"):
            return "deleted_here", "The service says that it no longer exists; the copy keeps it as deleted."
        if known.get("is_test"):
            return "test_booking", "It is a test booking, which the marts leave out."
        if status in _UNSOLD:
            return "hold_expired", f"It was never sold ({status})."
        if isinstance(day, date) and not case.window.start <= day <= case.window.end:
            return "other_day", f"Here it {does} {day}, outside of {case.window}."
        return (
            "left_out",
            f"It is here ({status}, {does} {day}), but the query of `here` leaves it out.",
        )
    return None


def _in_time(case: LoneCase, known: Row) -> tuple[object, str]:
    """The day by which a booking is in the window or not, and what it does on it; without a travel date it is the booking's."""
    travels, booked = known.get("local_date"), known.get("booking_date")
    if case.date == "booking_date":
        return booked, "was booked on"
    return (travels, "travels on") if travels is not None else (booked, "is open-dated and was booked on")


def why_extra(here: Sequence[Row], there: Sequence[Row], amount: tuple[str, str] | None) -> Reason:
    """What a group of rows with one key is; `amount` are the columns of the first amount, here and there."""
    one, many, names = (here, there, amount) if len(here) == 1 else (there, here, amount[::-1] if amount else None)
    count = len(many)
    if len(one) == 1 and names is not None:
        whole = exact(one[0].get(names[0]))
        parts = [exact(row.get(names[1])) for row in many]
        if whole is not None and all(part is not None for part in parts):
            if sum(part for part in parts if part is not None) == whole:
                return "split", f"{count} rows share one key and add up to the amount: it was split."
            refunded = -sum(part for part in parts if part is not None and part < 0)
            if refunded and sum(part for part in parts if part is not None) + refunded == whole:
                if refunded == whole:
                    return "refunded", f"{count} rows share one key: the amount and its refund."
                if refunded < whole:
                    return "partly_refunded", f"{count} rows share one key: the amount and a refund of a part of it."
            if all(part == whole for part in parts):
                times = {2: "twice"}.get(count, f"{count} times")
                return (
                    "entered_twice",
                    f"{count} rows share one key, each with the whole amount: it was entered {times}.",
                )
    return (
        "same_key",
        f"{len(here)} row{'' if len(here) == 1 else 's'} here and {len(there)} in the ledger have the same key.",
    )
