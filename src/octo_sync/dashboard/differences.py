"""Differences as people have decided on them up to now; the copy has their decisions when it is next published."""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC
from typing import Any

from octo_sync.dashboard.source import Source
from octo_sync.errors import OctoSyncError
from octo_sync.flows.reconcile.both_rows import reference
from octo_sync.flows.wording import NOTHING

Row = Mapping[str, Any]
_FIELDS = {
    "booking_date": "day of booking",
    "booking_uuid": "uuid",
    "cancellation_refund": "refund",
    "cancelled_date": "day of cancellation",
    "channel_name": "channel",
    "connection_id": "connection",
    "currency_precision": "decimals of the currency",
    "local_start_at": "start at the venue",
    "net_amount": "net price",
    "net_minor": "net price in minor units",
    "option_id": "id of the option",
    "option_name": "option",
    "original_amount": "price before discounts",
    "original_minor": "price before discounts in minor units",
    "pax_count": "guests",
    "product_id": "id of the product",
    "product_name": "product",
    "reseller_reference": "reseller's reference",
    "retail_amount": "retail price",
    "retail_minor": "retail price in minor units",
    "supplier_reference": "supplier's reference",
    "tax_amount": "taxes",
    "tax_minor": "taxes in minor units",
    "travel_date": "day of travel",
    "unit_count": "tickets",
    "utc_cancelled_at": "cancelled at",
    "utc_confirmed_at": "confirmed at",
    "utc_created_at": "made at",
    "utc_expires_at": "hold lapses at",
    "utc_redeemed_at": "used at",
    "utc_start_at": "start",
    "utc_updated_at": "changed at the service",
    "verified_at_utc": "last verified",
}
"""What people call the columns of this side."""


def field_text(field: str) -> str:
    """A compared field: `retail price`; several of a key are joined by a plus, '' is the whole row; others as they are."""
    named = [_FIELDS.get(name, "") for name in field.split("+")]
    return " + ".join(named) if all(named) else field or "whole row"


def label_text(label: str) -> str:
    """A column of both rows, with its exact names: `retail price (retail_amount · gross)`."""
    name = label.partition(" · ")[0]
    return f"{_FIELDS[name]} ({label})" if name in _FIELDS else label


def decided(source: Source, rows: Iterable[Row]) -> tuple[list[Row], str]:
    """Rows with their `state` of now, and why that could not be read, as a sentence, where it could not.

    A row needs `recon_name`, `recon_key`, `state`, `last_seen_at_utc` and, if it has them, `accepted_…` follow.
    """
    rows = list(rows)
    if source.acts is None or not rows:
        return rows, ""
    try:
        accepted = source.acts.accepted()
    except OctoSyncError as error:
        return rows, str(error)
    return [_decided(row, accepted.get((row["recon_name"], row["recon_key"]))) for row in rows], ""


def _decided(row: Row, by: Any) -> Row:  # noqa: ANN401 - a row of the journal
    if row["state"] == "no longer found":
        return row
    # An acceptance holds up to its last day.
    holds = by is not None and (by.until is None or by.until >= row["last_seen_at_utc"].astimezone(UTC).date())
    note, who, until = (by.note, by.accepted_by, by.until) if by else (None, None, None)
    said = {"accepted_note": note, "accepted_by": who, "accepted_until": until}
    return {**row, **said, "state": "accepted" if holds else "open"}


def called(row: Row) -> str:
    """What its booking is called: by a reference, also one that only the other side has, or else its key."""
    named = row["supplier_reference"] or row["reseller_reference"] or reference(json.loads(row["kept_rows"] or "[]"))
    return str(named or row["recon_key"])


def reason(row: Row) -> str | None:
    """The likely reason; of an amount also that no revenue hangs on it, as both sides have the booking as cancelled."""
    is_amount = row["field"] and row["delta_amount"] is not None
    for label, here, there, differs in json.loads((is_amount and row["kept_rows"]) or "[]"):
        if label.split(" · ")[0] == "status" and set(here) == {"CANCELLED"} and not differs and there != [NOTHING]:
            return f"{row['reason']} Cancelled on both sides."
    found: str | None = row["reason"]
    return found
