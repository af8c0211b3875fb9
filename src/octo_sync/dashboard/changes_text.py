"""What became of a booking, in words: what it was and what it is."""

from collections.abc import Mapping
from typing import Any

from octo_sync.dashboard.links import status_text
from octo_sync.flows import wording


def named(row: Mapping[str, Any]) -> str:
    """The departure's name: the option is left out where it says nothing new."""
    named = dict.fromkeys(filter(None, (row["product_name"], row["option_name"])))
    return " · ".join(named) or "product not known"


def what(row: Mapping[str, Any]) -> str:
    """In a few words: `cancelled`, `not used any more`."""
    if row["kind"] == "changed" and row["status_before"] == "REDEEMED" != row["status"]:
        return "not used any more"
    if row["kind"] == "new" and row["status"] == "CANCELLED":
        return "new, cancelled since"
    return "deleted at the service" if row["kind"] == "gone" else str(row["kind"])


def before_and_now(row: Mapping[str, Any]) -> str:
    """`guests 2 → 3; price 40.00 EUR → 60.00 EUR`; of what is new its status alone."""
    was = {name.removesuffix("_before"): value for name, value in row.items() if name.endswith("_before")}
    if row["kind"] == "gone":
        return f"was {status_text(was['status'])}"
    if was["status"] is None:
        return status_text(row["status"])

    def amount(of: Mapping[str, Any], name: str) -> str:
        return wording.money_text(of[name], of["currency"]) or wording.UNKNOWN

    told = (
        ("", status_text(was["status"]), status_text(row["status"])),
        ("day ", was["travel_date"] or "open", row["travel_date"] or "open"),
        ("", named(was), named(row)),
        ("guests ", wording.count(was["pax_count"]), wording.count(row["pax_count"])),
        ("price ", amount(was, "retail_amount"), amount(row, "retail_amount")),
        ("net price ", amount(was, "net_amount"), amount(row, "net_amount")),
    )
    return "; ".join(f"{what}{before} → {now}" for what, before, now in told if before != now)
