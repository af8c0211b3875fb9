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
