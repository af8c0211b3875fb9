"""The Reconcile page: the copy against other systems, in the words of `octo-sync reconcile`."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any
from urllib.parse import urlencode

from octo_sync.dashboard.links import difference_page
from octo_sync.dashboard.source import Source
from octo_sync.dashboard.view import (
    Block,
    Column,
    Filters,
    Item,
    Link,
    Money,
    Page,
    Section,
    Table,
    Tile,
    Tiles,
    View,
    listed,
)
from octo_sync.flows import wording
from octo_sync.flows.reconcile.words import AGE_CLASSES, BUCKETS
from octo_sync.flows.wording import NOTHING, currency_name, days_old, money, money_text
from octo_sync.reconciliation.model import Bucket

_AGES = dict(zip(("0-1", "2-7", "8-30", ">30"), AGE_CLASSES, strict=True))
"""A class of `marts.recon_open` → how people read it."""
_VERDICTS = {"ok": "within the limits", "over": "over the limits", "failed": "could not compare"}
_ACCEPTED = 200
_WHAT = (
    "A reconciliation compares this copy with a ledger, a CRM, a channel manager's statement or another connection, puts "
    "every difference in a bucket, explains it and ages it. Name one in the pipeline file:"
)
_EXAMPLE = """\
[reconcile.ledger]
there  = { file = "exports/ledger-*.csv" }
keys   = ["booking_uuid=octo_uuid", "supplier_reference=booking_no"]
fields = { status = "state", retail_amount = "gross", currency = "currency" }"""


def build(source: Source, filters: Filters) -> View:
    """The page; where nothing was compared yet it says how to begin."""
    runs = _by_name(source.rows("reconcile_runs"))
    lead = "This copy against ledgers, CRMs and other systems: what adds up, what does not, and for how long."
    if not runs:
        return View("Reconcile", lead, [_how_to()], filters)
    chosen = filters.more
    only = {name: chosen.get(name) or None for name in ("bucket", "currency")}
    ages, opened = _by_name(source.rows("reconcile_ages")), _by_name(source.rows("reconcile_open", **only))
    accepted = _by_name(source.rows("reconcile_accepted"))
    sections = []
    for number, (name, ran) in enumerate(runs.items(), 1):
        if chosen.get("name") not in (None, "", name):
            continue
        place = f"recon-{number}"
        sections += [
            _summary(name, ran, ages[name], len(accepted[name]), place),
            _totals(name, ran, place),
            _ages(name, ages[name], place),
            _open(name, opened[name], sum(row["differences"] for row in ages[name]), place, chosen),
            *([_accepted(name, accepted[name], place)] if accepted[name] else []),
            _runs(name, ran, place),
        ]
    return View("Reconcile", lead, sections, filters)


def _by_name(rows: Sequence[Mapping[str, Any]]) -> defaultdict[str, list[Mapping[str, Any]]]:
    found: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        found[row["recon_name"]].append(row)
    return found


def _how_to() -> Section:
    return Section(
        "Nothing was compared yet",
        [
            _WHAT,
            Block("code.html.j2", {"text": _EXAMPLE}),
            "Then run it; the next publish shows it here, and serve runs it after every pull of all bookings:",
            Block("code.html.j2", {"text": "octo-sync reconcile ledger"}),
        ],
        id="how-to",
    )


def _compared(runs: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The last run that could compare."""
    return next((run for run in runs if run["verdict"] != "failed"), None)


def _summary(
    name: str, runs: Sequence[Mapping[str, Any]], ages: Sequence[Mapping[str, Any]], accepted: int, place: str
) -> Section:
    last, compared = runs[0], _compared(runs)
    note = f"{_VERDICTS.get(last['verdict'], last['verdict'])}; ran {wording.instant(last['ended_at_utc'])}"
    if compared is None:
        return Section(name, ["It could not compare yet; octo-sync reconcile says why."], note, id=place)
    note += (
        f"; travel dates {compared['window_start']} to {compared['window_end']}; "
        f"here: {compared['here_origin']}; there: {compared['there_origin']}"
    )
    opened = sum(row["differences"] for row in ages)
    fresh = sum(row["new_differences"] for row in ages)
    tiles = [
        Tile(
            "open differences",
            f"{opened:,}",
            f"{fresh:,} new, {compared['resolved_differences'] or 0:,} no longer found",
            "bad" if opened else "good",
            name=f"{place}-open",
        )
    ]
    if accepted:
        href = f"reconcile?{urlencode({'name': name})}#{place}-accepted"
        tiles.append(Tile("accepted", f"{accepted:,}", "accepted by a person", href=href, name=f"{place}-accepted"))
    # What is open now is what the lists below have: an accepted difference is in neither.
    still = Counter[str]()
    for row in ages:
        still[row["bucket"]] += row["differences"]
    for bucket, (named, meaning) in BUCKETS.items():
        count = still[bucket.value] if bucket.is_difference else compared[bucket.value]
        if bucket is not Bucket.ACCEPTED and count:
            href = _filtered(name, place, bucket=bucket.value) if bucket.is_difference else ""
            tiles.append(Tile(named, f"{count:,}", meaning, href=href, name=f"{place}-{bucket.value}"))
    items: list[Item] = [Tiles(tiles)]
    if last is not compared:
        items.insert(0, f"The last run failed; what is below was compared {wording.instant(compared['ended_at_utc'])}.")
    return Section(name, items, note, id=place)


def _totals(name: str, runs: Sequence[Mapping[str, Any]], place: str) -> Section:
    compared = _compared(runs)
    rows = _control(compared["control_totals"], partial(_filtered, name, place)) if compared else []
    table = Table(
        f"Control totals of {name}",
        [
            Column("Currency"),
            Column("Amount"),
            Column("Rows here", "number"),
            Column("Here", "money"),
            Column("Rows there", "number"),
            Column("There", "money"),
            Column("Difference", "money"),
        ],
        rows,
        empty="There are none.",
    )
    note = "Counted from the rows as they were read, before anything was matched; each difference is there minus here."
    return Section(f"Control totals of {name}", [table], note, id=f"{place}-totals")


def _filtered(name: str, place: str, **chosen: str) -> str:
    """The address of the open differences of one comparison."""
    return f"reconcile?{urlencode({'name': name, **chosen})}#{place}-differences"


def _control(text: str | None, page: Callable[..., str]) -> list[tuple[Any, ...]]:
    """A line for each currency and amount from what the run kept: `[{side, currency, rows, amounts: {name: text}}]`."""
    sides: dict[tuple[str | None, str], Mapping[str, Any]] = {}
    for total in json.loads(text or "[]"):
        sides[total["currency"], total["side"]] = total
    rows = []
    for currency in sorted({currency for currency, _ in sides}, key=lambda each: (each is None, each or "")):
        here, there = sides.get((currency, "here"), {}), sides.get((currency, "there"), {})
        counts = here.get("rows", 0), there.get("rows", 0)
        names = dict.fromkeys([*here.get("amounts", {}), *there.get("amounts", {})])
        for field in names or [""]:
            ours, theirs = _amount(here, field), _amount(there, field)
            amounts = [Money(amount, currency) if field else None for amount in (ours, theirs, theirs - ours)]
            named = Link(currency_name(currency), page(currency=currency)) if currency else currency_name(currency)
            rows.append((named, field, counts[0], amounts[0], counts[1], amounts[1], amounts[2]))
    return rows


def _amount(total: Mapping[str, Any], field: str) -> Decimal:
    try:
        return Decimal(str(total.get("amounts", {}).get(field, "0")))
    except InvalidOperation:
        return Decimal(0)


def _ages(name: str, ages: Sequence[Mapping[str, Any]], place: str) -> Section:
    counts = Counter[tuple[str, str]]()
    for row in ages:
        counts[row["bucket"], row["age_class"]] += row["differences"]

    def count(age: str, bucket: Bucket) -> int:
        return counts[bucket.value, age]

    table = listed(
        f"Open differences of {name} by bucket and age",
        [bucket for bucket in BUCKETS if any(counts[bucket.value, age] for age in _AGES)],
        Column("Bucket", "text", lambda bucket: BUCKETS[bucket][0]),
        *(Column(f"{days} days", "number", partial(count, age)) for age, days in _AGES.items()),
        Column("All", "number", lambda bucket: sum(counts[bucket.value, age] for age in _AGES)),
        empty="Nothing is open: both sides agree, or the differences were accepted.",
    )
    return Section(f"Ageing of {name}", [table], id=f"{place}-ages")


def _open(name: str, rows: Sequence[Mapping[str, Any]], total: int, place: str, chosen: Mapping[str, str]) -> Section:
    id_, title = f"{place}-differences", f"Open differences of {name}"
    only = [value for value in (_bucket(chosen.get("bucket", "")), chosen.get("currency", "")) if value]
    facts = [("Shown", f"only {', '.join(only)}"), ("", Link("Show all", f"reconcile?{urlencode({'name': name})}"))]
    items: list[Item] = [Block("facts.html.j2", {"facts": facts})] if only else []
    if not rows:
        return Section(title, [*items, "Nothing is open."], id=id_)
    note = "The largest of each currency in turn, then what has no amount; the new before the old."
    if total > len(rows) and not only:
        note += f" {len(rows):,} of {total:,} are shown; the download has all of them."
    items += [
        listed(
            title,
            rows,
            Column("Key", "text", "recon_key", href=difference_page),
            *_what(),
            Column("Reason", "text", "reason"),
            Column("Age", "text", lambda row: f"{'new, ' if row['is_new'] else ''}{days_old(row['age_days'])}"),
        ),
        Block("downloads.html.j2", {"name": "recon_open", "fields": ""}),
    ]
    return Section(title, items, note, id=id_)


def _what() -> list[Column]:
    """What differs, and by how much."""
    return [
        Column("Day", "date", "day"),
        Column("Bucket", "text", lambda row: _bucket(row["bucket"])),
        Column("Field", "text", lambda row: row["field"] or "whole row"),
        Column("Here", "text", lambda row: value_text(row["here_value"], row)),
        Column("There", "text", lambda row: value_text(row["there_value"], row)),
        Column("Difference", "number", lambda row: money_text(row["delta_amount"], row["currency"], sign=True)),
    ]


def _accepted(name: str, rows: Sequence[Mapping[str, Any]], place: str) -> Section:
    title = f"Accepted differences of {name}"
    table = listed(
        title,
        rows,
        Column("Key", "text", "recon_key", href=difference_page),
        *_what(),
        Column("Why", "text", "accepted_note"),
        Column("By", "text", "accepted_by"),
        Column("Until", "date", "accepted_until", none="for good"),
        most=_ACCEPTED,
        others="ops.recon_results has all of them",
    )
    return Section(title, [table], "Still found, but not counted as open.", id=f"{place}-accepted")


def _bucket(value: str) -> str:
    """A bucket's name for people."""
    return next((named for bucket, (named, _) in BUCKETS.items() if bucket.value == value), value)


def value_text(text: str | None, row: Mapping[str, Any]) -> str:
    """A value for people: an amount as money, nothing as a dash, all else as it is."""
    if text is None:
        return NOTHING
    if row["delta_amount"] is None or row["currency"] is None:
        return text
    try:
        return money(Decimal(text), row["currency"])
    except InvalidOperation:
        return text


def _runs(name: str, runs: Sequence[Mapping[str, Any]], place: str) -> Section:
    table = listed(
        f"The last runs of {name}",
        runs,
        Column("Run", "text", "run_id"),
        Column("Verdict", "text", lambda run: _VERDICTS.get(run["verdict"], run["verdict"])),
        Column("Ended", "instant", "ended_at_utc"),
        Column("Differences", "number", "differences"),
        Column("New", "number", "new_differences"),
        Column("No longer found", "number", "resolved_differences"),
        Column("Open afterwards", "number", "open_differences"),
    )
    return Section(f"Runs of {name}", [table], id=f"{place}-runs")


PAGE = Page(
    name="reconcile",
    title="Reconcile",
    order=70,
    build=build,
    works_empty=True,
    fields=frozenset({"name", "bucket", "currency"}),
)
