"""One difference of a comparison: both rows, the likely reason, what people did about it, and what they may do now."""

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from octo_sync.dashboard.differences import called, decided, label_text, reason
from octo_sync.dashboard.links import booking_page, booking_text
from octo_sync.dashboard.pages.reconcile import BOTH_VALUES, BUCKET, FIELD, difference
from octo_sync.dashboard.source import Source
from octo_sync.dashboard.view import Block, Column, Field, Filters, Item, Link, Page, Section, Table, View, form, listed
from octo_sync.errors import OctoSyncError
from octo_sync.flows import wording
from octo_sync.flows.acts import ACCEPT, ASSIGN, COMMENT, WITHDRAW
from octo_sync.flows.reconcile.words import BUCKETS
from octo_sync.flows.wording import money_text
from octo_sync.journal import Act

_Row = Mapping[str, Any]


def build(source: Source, filters: Filters) -> View:
    """The page of the difference that the address names."""
    name, key = filters.more.get("name", ""), filters.more.get("key", "")
    rows: Sequence[_Row] = source.rows("difference", recon=name, key=key)
    if not rows:
        return View(
            "Difference", "", [Section("", ["This copy has no such difference; choose one on the page Reconcile."])]
        )
    rows, problem = decided(source, rows)
    done: list[Act] = []
    trouble: list[Item] = [problem] if problem else []
    if source.acts is not None:
        try:
            done = source.acts.of(name, key)
        except OctoSyncError as error:
            trouble = [str(error)]
    sections = [
        Section("", [Block("facts.html.j2", {"facts": _facts(rows, done)})]),
        Section("Both rows", _both(rows)),
        Section("What differs", [_fields(rows)]),
    ]
    if source.acts is not None:
        note = "The tables of the copy follow when it is next published."
        sections.append(Section("Decide", [*trouble, *_forms(name, key, rows), _log(done)], note, id="decide"))
    return View(called(rows[0]), f"A difference of the comparison {name}, found by {key}.", sections, filters)


def _facts(rows: Sequence[_Row], done: Sequence[Act]) -> list[tuple[str, object]]:
    first = rows[0]
    named, meaning = BUCKETS.get(first["bucket"], (first["bucket"], ""))
    booking = booking_page(first)
    until = f" until {first['accepted_until']}" if first["accepted_until"] else ""
    accepted = f"by {first['accepted_by']}{until}: {first['accepted_note']}" if first["accepted_note"] else ""
    facts: list[tuple[str, object]] = [
        ("State", first["state"]),
        ("Assigned to", next((act.text for act in done if act.act == ASSIGN), "")),
        ("Accepted", accepted),
        ("Comparison", Link(first["recon_name"], f"reconcile?{urlencode({'name': first['recon_name']})}")),
        ("Bucket", f"{named}. {meaning}"),
        ("Difference", ", ".join(filter(None, map(_delta, rows)))),
        ("Likely reason", "; ".join(dict.fromkeys(filter(None, map(reason, rows))))),
        ("Booking", Link(booking_text(first), booking) if booking else ""),
        ("Matched by", first["match_rule"]),
        ("Connection", first["connection_id"]),
        ("Day", first["day"]),
        ("First seen", wording.instant(min(row["first_seen_at_utc"] for row in rows))),
        ("Last seen", wording.instant(max(row["last_seen_at_utc"] for row in rows))),
    ]
    return [(label, value) for label, value in facts if value]


def _both(rows: Sequence[_Row]) -> list[Item]:
    kept = next((row["both_rows"] for row in rows if row["both_rows"]), None)
    if kept is None:
        return ["They are not kept: the booking was erased, or the next comparison keeps them."]
    found = json.loads(kept)
    heads = [
        Column(side if len(values) == 1 else f"{side} {number}")
        for side, values in (("Here", found[0][1]), ("There", found[0][2]))
        for number in range(1, len(values) + 1)
    ]
    lines = [[label_text(label), *here, *there, "differs" if differs else ""] for label, here, there, differs in found]
    return [Table("Both rows, column by column", [Column("Column"), *heads, Column("Compared")], lines)]


def _fields(rows: Sequence[_Row]) -> Item:
    return listed(
        "Fields of this key that differ or differed",
        rows,
        FIELD,
        Column("State", "text", "state"),
        BUCKET,
        *BOTH_VALUES,
        Column("Difference", "number", difference),
        Column("First seen", "instant", "first_seen_at_utc"),
        Column("Last seen", "instant", "last_seen_at_utc"),
    )


def _delta(row: _Row) -> str:
    return money_text(row["amount"], row["currency"], sign=True)


def _forms(name: str, key: str, rows: Sequence[_Row]) -> list[Item]:
    back = f"difference?{urlencode({'name': name, 'key': key})}#decide"
    found: list[Item] = []
    if any(row["state"] == "open" for row in rows):
        fields = Field("text", "Why"), Field("until", "until (empty: for good)", "date", required=False)
        found.append(form(ACCEPT, "Accept", back, *fields, about=name, key=key))
    if any(row["accepted_note"] for row in rows):
        found.append(form(WITHDRAW, "Withdraw the acceptance", back, about=name, key=key))
    found.append(form(ASSIGN, "Assign", back, Field("text", "Assign to"), about=name, key=key))
    found.append(form(COMMENT, "Comment", back, Field("text", "Comment"), about=name, key=key))
    return found


def _log(done: Sequence[Act]) -> Item:
    return listed(
        "What people did",
        done,
        Column("When", "instant", lambda act: act.at),
        Column("Who", "text", lambda act: act.who),
        Column("What", "text", lambda act: act.act),
        Column("Words", "text", lambda act: act.text),
        empty="Nobody has done anything about it on this page.",
    )


PAGE = Page("difference", "Difference", 71, build, fields=frozenset({"name", "key"}), under="reconcile")
