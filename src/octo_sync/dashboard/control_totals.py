"""Control totals of a comparison, and the differences that make up the difference of both sides."""

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from octo_sync.dashboard.differences import field_text
from octo_sync.dashboard.view import Column, Link, Money, Table, listed
from octo_sync.flows.reconcile.words import BUCKETS
from octo_sync.flows.wording import currency_name

_Row = Mapping[str, Any]
_REST = "in no list: within the tolerance, too recent, or outside the compared days"
_THESE = "the pairs in two currencies, and "


class ControlTotals:
    """What a run kept of both sides as they were read: `[{side, currency, rows, amounts: {name: text}}]`."""

    def __init__(self, run: _Row) -> None:
        totals = json.loads(run["control_totals"] or "[]")
        self._sides: dict[tuple[str | None, str], _Row] = {(each["currency"], each["side"]): each for each in totals}
        self._currencies = sorted(
            {currency for currency, _ in self._sides}, key=lambda each: (each is None, each or "")
        )
        self._names = list(dict.fromkeys(name for each in totals for name in each.get("amounts", {})))
        self._ended = run["ended_at_utc"]

    def counted(self, row: _Row) -> _Row:
        """A difference with the `total` that it is a part of; that of a whole row is the first one.

        A pair whose currencies differ is in the totals of both, by amounts that nobody kept: its `total` names the two.
        """
        total = None
        if row["last_seen_at_utc"] == self._ended and self._names:
            if row["delta_amount"] is not None:
                total = row["field"] or self._names[0]
            elif row["field"] == "currency":
                total = "{} here, {} there".format(*map(currency_name, _currencies(row)))
        return {**row, "total": total}

    def table(self, caption: str, page: Callable[..., str]) -> Table:
        """A line for each currency and amount; a currency leads to its differences."""
        rows = []
        for currency in self._currencies:
            here, there = self._side(currency, "here"), self._side(currency, "there")
            counts = here.get("rows", 0), there.get("rows", 0)
            for name in self._names or [""]:
                ours, theirs = _amount(here, name), _amount(there, name)
                amounts = [Money(amount, currency) if name else None for amount in (ours, theirs, theirs - ours)]
                named = Link(currency_name(currency), page(currency=currency)) if currency else currency_name(currency)
                rows.append(
                    (named, field_text(name) if name else "", counts[0], amounts[0], counts[1], amounts[1], amounts[2])
                )
        columns = [
            Column("Currency"),
            Column("Amount"),
            Column("Rows here", "number"),
            Column("Here", "money"),
            Column("Rows there", "number"),
            Column("There", "money"),
            Column("Difference", "money"),
        ]
        return Table(caption, columns, rows, empty="There are none.")

    def parts(self, caption: str, rows: Sequence[_Row], page: Callable[[_Row], str]) -> Table:
        """What each bucket adds to the difference of a currency and amount, and the rest, which no list has."""
        of: dict[tuple[Any, ...], list[Decimal]] = defaultdict(list)
        pairs: dict[tuple[str, str, str], list[_Row]] = defaultdict(list)
        for row in rows:
            if row["total"] and row["field"] == "currency":
                pairs[row["total"], row["bucket"], row["state"]].append(row)
            elif row["total"]:
                of[row["currency"], row["total"], row["bucket"], row["state"]].append(row["delta_amount"])
        found: list[dict[str, Any]] = []
        for currency, name in ((currency, name) for currency in self._currencies for name in self._names):
            there, here = (_amount(self._side(currency, side), name) for side in ("there", "here"))
            line, rest = {"currency": currency, "total": name}, there - here
            for bucket, (named, _) in BUCKETS.items():
                for state in ("open", "accepted"):
                    if deltas := of[currency, name, bucket, state]:
                        said = f"{named}, accepted" if state == "accepted" else named
                        part = {"said": said, "bucket": bucket, "state": state}
                        found.append({**line, **part, "number": len(deltas), "amount": sum(deltas, Decimal(0))})
                        rest -= found[-1]["amount"]
            of_two = {key: its for key, its in pairs.items() if rest and currency in _currencies(its[0])}
            for (total, bucket_, state), its in of_two.items():
                said = f"mismatched, {total}{', accepted' if state == 'accepted' else ''}"
                behind = {"bucket": bucket_, "state": state, "total": total, "currency": its[0]["currency"]}
                found.append({**line, "said": said, "number": len(its), "amount": None, "behind": behind})
            rest_of = f"{_THESE if of_two else ''}{_REST}"
            found += [{**line, "said": rest_of, "number": None, "amount": rest}] if rest else []

        def behind_of(part: _Row) -> str:
            return page(part.get("behind", part)) if part["number"] else ""

        return listed(
            caption,
            found,
            Column("Currency", "text", lambda row: currency_name(row["currency"])),
            Column("Amount", "text", lambda row: field_text(row["total"])),
            Column("Bucket", "text", "said"),
            Column("Differences", "number", "number", href=behind_of),
            Column(
                "Difference",
                "number",
                lambda row: None if row["amount"] is None else Money(row["amount"], row["currency"], sign=True),
                none="in the line below",
                href=lambda row: "" if row["amount"] is None else behind_of(row),
            ),
            empty="Both sides add up to the same.",
        )

    def _side(self, currency: str | None, side: str) -> _Row:
        return self._sides.get((currency, side), {})


def _currencies(row: _Row) -> list[str | None]:
    """Those of both sides, of a pair whose currencies differ."""
    return [(row[name] or "").strip().upper() or None for name in ("here_value", "there_value")]


def _amount(total: _Row, name: str) -> Decimal:
    try:
        return Decimal(str(total.get("amounts", {}).get(name, "0")))
    except InvalidOperation:
        return Decimal(0)
