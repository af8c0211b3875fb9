"""The demo's ledger: what an accountant's spreadsheet would hold of the sandbox's bookings, with differences planted in it.

It is made of the sandbox's own state and knows nothing of the copy. Which bookings are spoilt follows from their uuids, so the
same seed gives the same differences.
"""

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

from octo_sync.errors import OctoSyncError
from octo_sync.model import Window
from octo_sync.reconciliation.model import Outcome

Row = dict[str, str]
_HEADS = ("octo_uuid", "booking_no", "state", "gross", "currency", "day", "tickets")
_EVERY = 7
"""Of so many bookings one is spoilt first, so that the spoilt ones are not neighbours."""


@dataclass(frozen=True, slots=True)
class Planted:
    """A difference that was planted: what it is called in the summary, the booking's uuid, where and why it must be found."""

    word: str
    uuid: str
    bucket: str
    code: str


def plant(state: Mapping[str, Any], window: Window) -> tuple[list[Row], list[Planted]]:
    """The ledger's rows, the spoilt ones among them, and what was planted: always the same nine differences.

    Raises:
        OctoSyncError: There are too few bookings for that.
    """
    bookings = sorted((b for b in state["bookings"] if _is_sold(b, window)), key=lambda b: str(b["uuid"]))
    rows = {str(b["uuid"]): _row(b) for b in bookings}
    apart = iter(bookings[::_EVERY])
    between = [booking for number, booking in enumerate(bookings) if number % _EVERY]
    planted: list[Planted] = []

    def spoil(
        word: str, bucket: str, code: str, fits: Callable[[Mapping[str, Any]], bool], change: Callable[[Row], object]
    ) -> None:
        booking = next(filter(fits, apart), None)
        if booking is None and (booking := next(filter(fits, between), None)) is not None:
            between.remove(booking)
        if booking is None:
            raise OctoSyncError(
                f"Among {len(bookings):,} bookings none is left to plant a difference ({word}, {code}) in; the demo's ledger "
                "needs more of them: --bookings 200."
            )
        planted.append(Planted(word, str(booking["uuid"]), bucket, code))
        change(rows[str(booking["uuid"])])

    net = {str(b["uuid"]): b["net"] and _comma(_decimal(b, "net")) for b in bookings}

    def changed(code: str, word: str, fits: Callable[[Mapping[str, Any]], bool], **cells: Callable[[Row], str]) -> None:
        spoil(word, "mismatched", code, fits, lambda r: r.update({name: cell(r) for name, cell in cells.items()}))

    changed("commission_left_out", "amount", _has_margin, gross=lambda r: net[r["octo_uuid"]])
    changed("minor_units", "amount", _has_money, gross=lambda r: _comma(_amount(r) * 100))
    changed("cancelled_there", "status", _is("CONFIRMED"), state=lambda _: "XX")
    changed("cancelled_here", "status", _is("CANCELLED"), state=lambda _: "OK")
    changed("other_guests", "tickets", lambda _: True, tickets=lambda r: str(int(r["tickets"]) + 1))
    spoil("missing there", "missing_there", "unknown_there", _is("CONFIRMED"), lambda r: rows.pop(r["octo_uuid"]))
    doubled: list[Row] = []
    spoil("duplicate there", "duplicate_there", "entered_twice", _has_money, lambda r: doubled.append(dict(r)))
    real = [_row(b) for b in bookings]
    strangers = [_stranger(number, row, real) for number, row in enumerate([*rows.values()][:2], start=1)]
    planted += [Planted("missing here", row["octo_uuid"], "missing_here", "unknown_here") for row in strangers]
    return [*rows.values(), *doubled, *strangers], planted


def write(path: Path, rows: Sequence[Row]) -> None:
    """A file as a European spreadsheet writes it: semicolons, decimal commas, days first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, _HEADS, delimiter=";")
        writer.writeheader()
        writer.writerows(rows)


def found(outcome: Outcome, planted: Sequence[Planted]) -> tuple[list[Planted], int]:
    """What was planted and not found as it had to be, and how many differences nobody planted."""
    seen = {
        (item.key.removeprefix("booking_uuid="), str(item.bucket), difference.code)
        for item in outcome.items
        if item.bucket.is_difference
        for difference in item.differences
    }
    wanted = {(each.uuid, each.bucket, each.code): each for each in planted}
    return [each for key, each in wanted.items() if key not in seen], len(seen - wanted.keys())


def _is_sold(booking: Mapping[str, Any], window: Window) -> bool:
    """What a ledger holds: what was sold, and what was sold and cancelled since."""
    was_sold = booking["status"] in ("CONFIRMED", "REDEEMED", "NOSHOW") or (
        booking["status"] == "CANCELLED" and booking["utc_confirmed_at"]
    )
    day = date.fromisoformat(booking["local_date"])
    return bool(was_sold) and not booking["test"] and window.start <= day <= window.end


def _row(booking: Mapping[str, Any]) -> Row:
    return {
        "octo_uuid": str(booking["uuid"]),
        "booking_no": booking["supplier_reference"] or "",
        "state": "XX" if booking["status"] == "CANCELLED" else "OK",
        "gross": "" if booking["retail"] is None else _comma(_decimal(booking, "retail")),
        "currency": booking["currency"],
        "day": "" if booking["freesale"] else f"{date.fromisoformat(booking['local_date']):%d.%m.%Y}",
        "tickets": str(len(booking["unit_items"])),
    }


def _stranger(number: int, like: Row, real: Sequence[Row]) -> Row:
    """A row of its own: dearer than each real one of its currency and with more tickets, so that it is no double of any."""
    dearest = max(_amount(row) for row in real if row["currency"] == like["currency"])
    return like | {
        "octo_uuid": f"00000000-0000-4000-8000-{number:012d}",
        "booking_no": f"UNKNOWN-{number}",
        "gross": _comma(dearest + number),
        "tickets": str(max(int(row["tickets"]) for row in real) + number),
    }


def _comma(amount: Decimal) -> str:
    return f"{amount:f}".replace(".", ",")


def _amount(row: Row) -> Decimal:
    return Decimal(row["gross"].replace(",", ".") or 0)


def _decimal(booking: Mapping[str, Any], name: str) -> Decimal:
    return Decimal(booking[name]).scaleb(-booking["precision"])


def _has_money(booking: Mapping[str, Any]) -> bool:
    return bool(booking["retail"])


def _has_margin(booking: Mapping[str, Any]) -> bool:
    return bool(booking["retail"]) and bool(booking["net"]) and booking["net"] != booking["retail"]


def _is(status: str) -> Callable[[Mapping[str, Any]], bool]:
    return lambda booking: bool(booking["status"] == status)
