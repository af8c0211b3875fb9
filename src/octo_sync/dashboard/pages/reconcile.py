"""The Reconcile page: the copy against other systems, in the words of `octo-sync reconcile`.

Longer than most modules, because its tables share the filters by which each of their numbers leads to its differences.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any
from urllib.parse import urlencode

from octo_sync.dashboard.control_totals import ControlTotals
from octo_sync.dashboard.differences import called, decided, field_text, reason
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
    Tile,
    Tiles,
    View,
    listed,
)
from octo_sync.errors import QueryError
from octo_sync.flows import wording
from octo_sync.flows.reconcile.words import AGE_CLASSES, BUCKETS, age_class
from octo_sync.flows.wording import NOTHING, days_old
from octo_sync.reconciliation.model import Bucket

_VERDICTS = {
    "ok": "no more differences than allowed",
    "over": "more differences than the pipeline allows",
    "failed": "could not compare",
}
_ROWS = 200
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
    if (age := filters.more.get("age")) not in (None, "", *AGE_CLASSES):
        raise QueryError(f"The field age is {str(age)[:40]!r}; expected {', '.join(AGE_CLASSES)}.")
    runs = _by_name(source.rows("reconcile_runs"))
    lead = "This copy against ledgers, CRMs and other systems: what adds up, what does not, and for how long."
    if not runs:
        return View("Reconcile", lead, [_how_to()], filters)
    rows, problem = decided(source, source.rows("differences"))
    found = _by_name(rows)
    sections = [Section("", [problem])] if problem else []
    for number, (name, ran) in enumerate(runs.items(), 1):
        if filters.more.get("name") not in (None, "", name):
            continue
        place = f"recon-{number}"
        totals = ControlTotals(_compared(ran) or ran[0])
        counted = [totals.counted(row) for row in found[name]]
        opened = [row for row in counted if row["state"] == "open"]
        accepted = [row for row in counted if row["state"] == "accepted"]
        days = ", all days" if filters.first or filters.last else ""
        sections += [
            _summary(name, ran, opened, len(accepted), place, days),
            _totals(name, totals, counted, place, days),
            _ages(name, opened, place, days),
            _open(name, opened, source.acts.assigned(name) if source.acts and not problem else {}, place, filters),
            *([_accepted(name, accepted, place, filters)] if accepted else []),
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
    name: str,
    runs: Sequence[Mapping[str, Any]],
    opened: Sequence[Mapping[str, Any]],
    accepted: int,
    place: str,
    days: str,
) -> Section:
    """What the last run came to; `days` is said with each number, as the chosen days narrow none of them."""
    last, compared = runs[0], _compared(runs)
    note = f"{_VERDICTS.get(last['verdict'], last['verdict'])}; ran {wording.instant(last['ended_at_utc'])}"
    if compared is None:
        return Section(name, ["It could not compare yet; octo-sync reconcile says why."], note, id=place)
    note += (
        f"; travel dates {compared['window_start']} to {compared['window_end']}; "
        f"here: {compared['here_origin']}; there: {compared['there_origin']}"
    )
    fresh = sum(row["is_new"] for row in opened)
    tiles = [
        Tile(
            f"open differences{days}",
            f"{len(opened):,}",
            f"{fresh:,} new, {compared['resolved_differences'] or 0:,} no longer found",
            "bad" if opened else "good",
            href=_filtered(name, place),
            name=f"{place}-open",
        )
    ]
    if accepted:
        href = _filtered(name, place, "accepted")
        tiles.append(
            Tile(f"accepted{days}", f"{accepted:,}", "accepted by a person", href=href, name=f"{place}-accepted")
        )
    # What is open now is what the lists below have: an accepted difference is in neither.
    still = Counter(row["bucket"] for row in opened)
    for bucket, (named, meaning) in BUCKETS.items():
        if bucket is Bucket.ACCEPTED:
            continue
        count, href = compared[bucket], _filtered(name, place, "totals")
        if bucket.is_difference:
            count, href = still[bucket], _filtered(name, place, bucket=bucket)
        if count:
            what = f"{'' if bucket.has_differences else 'bookings '}{named}{days}"
            tiles.append(Tile(what, f"{count:,}", meaning, href=href, name=f"{place}-{bucket}"))
    items: list[Item] = [Tiles(tiles)]
    if last is not compared:
        items.insert(0, f"The last run failed; what is below was compared {wording.instant(compared['ended_at_utc'])}.")
    return Section(name, items, note, id=place)


def _totals(name: str, totals: ControlTotals, rows: Sequence[Mapping[str, Any]], place: str, days: str) -> Section:
    def behind(part: Mapping[str, Any]) -> str:
        chosen = {key: part[key] for key in ("bucket", "currency", "total")}
        return _filtered(name, place, "accepted" if part["state"] == "accepted" else "differences", **chosen)

    title = f"Control totals of {name}"
    return Section(
        f"{title}{days}",
        [
            totals.table(title, partial(_filtered, name, place)),
            totals.parts(f"What the differences of these totals are made of, {name}", rows, behind),
        ],
        "What each side comes to in all, cancelled bookings included, whether or not a booking is on both sides. Each "
        "difference is there minus here. The table below says which of the differences found then make it up; those that are "
        "of no amount, such as a status, are not in it.",
        id=f"{place}-totals",
    )


def _filtered(name: str, place: str, of: str = "differences", **chosen: str) -> str:
    """The address of the open, or the accepted, differences of one comparison; '' of a currency that is not known."""
    if None in chosen.values():
        return ""
    return f"reconcile?{urlencode({'name': name, **chosen})}#{place}-{of}"


def _ages(name: str, opened: Sequence[Mapping[str, Any]], place: str, days: str) -> Section:
    """How old the open differences are and, in each currency, by how much they differ: there minus here."""
    sums: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
    for row in opened:
        if row["amount"] is not None and row["currency"]:
            sums[row["bucket"], row["currency"]] += row["amount"]
    counts = Counter((row["bucket"], age_class(row["age_days"])) for row in opened)

    def there(bucket: Bucket, **chosen: str) -> str:
        return _filtered(name, place, bucket=bucket, **chosen)

    def of_age(age: str) -> Column:
        def page(bucket: Bucket) -> str:
            return there(bucket, age=age) if counts[bucket, age] else ""

        return Column(f"{age} days", "number", lambda bucket: counts[bucket, age], href=page)

    def of_currency(currency: str) -> Column:
        def money(bucket: Bucket) -> Money | None:
            return Money(sums[bucket, currency], currency, sign=True) if (bucket, currency) in sums else None

        return Column(f"Difference, {currency}", "number", money, href=partial(there, currency=currency))

    table = listed(
        f"Open differences of {name} by bucket and days since they were first found",
        [bucket for bucket in BUCKETS if any(counts[bucket, age] for age in AGE_CLASSES)],
        Column("Bucket", "text", _explained),
        *map(of_age, AGE_CLASSES),
        Column("All", "number", lambda bucket: sum(counts[bucket, age] for age in AGE_CLASSES), href=there),
        *map(of_currency, sorted({currency for _, currency in sums})),
        empty="Nothing is open: both sides agree, or the differences were accepted.",
    )
    note = (
        "A booking that only one side counts as sold is here with its whole price. Control totals count cancelled bookings "
        "too, so they do not differ by it."
    )
    return Section(f"Ageing of {name}{days}", [table], note, id=f"{place}-ages")


def _open(
    name: str, rows: Sequence[Mapping[str, Any]], assigned: Mapping[str, str], place: str, filters: Filters
) -> Section:
    """What is open; `assigned` is who is to look at which key."""
    id_, title = f"{place}-differences", f"Open differences of {name}"
    of_days, items = bool(filters.first or filters.last), _only(name, filters)
    shown = [row for row in rows if _is_wanted(row, filters)]
    if not shown:
        none = (
            f"None {'in these days' if of_days else 'of these'}; {len(rows):,} in all." if rows else "Nothing is open."
        )
        return Section(title, [*items, none], id=id_)
    who = [Column("Assigned to", "text", lambda row: assigned.get(row["recon_key"]))] if assigned else []
    table = listed(
        title,
        shown,
        *_which(),
        Column("Reason", "sentence", reason),
        *_what(),
        *who,
        Column("Age", "text", lambda row: f"{'new, ' if row['is_new'] else ''}{days_old(row['age_days'])}"),
        most=_ROWS,
    )
    note = "Where only one side counts a booking as sold, the difference is its whole retail price."
    if of_days:
        note += " Days narrow lists of differences alone, and leave out differences without a day."
    return Section(title, [*items, table], note, id=id_)


def _only(name: str, filters: Filters) -> list[Item]:
    """What a list is narrowed to, and the way back to all of it."""
    chosen = filters.more
    only = [
        bucket_text(chosen.get("bucket", "")),
        chosen.get("currency", ""),
        f"in the total of {field_text(chosen['total'])}" if chosen.get("total") else "",
        f"{chosen['age']} days old" if chosen.get("age") else "",
        f"from {filters.first}" if filters.first else "",
        f"to {filters.last}" if filters.last else "",
    ]
    facts = [
        ("Shown", f"only {', '.join(filter(None, only))}"),
        ("", Link("Show all", f"reconcile?{urlencode({'name': name})}")),
    ]
    return [Block("facts.html.j2", {"facts": facts})] if any(only) else []


def _is_wanted(row: Mapping[str, Any], filters: Filters) -> bool:
    if any(filters.more.get(name) not in (None, "", row[name]) for name in ("bucket", "currency", "total")):
        return False
    if filters.more.get("age") not in (None, "", age_class(row["age_days"])):
        return False
    if filters.first is None and filters.last is None:
        return True
    return row["day"] is not None and (filters.first or row["day"]) <= row["day"] <= (filters.last or row["day"])


def _which() -> list[Column]:
    """Of which booking, and by how much."""
    return [
        Column("Booking", "text", called, href=difference_page),
        Column("Difference", "number", difference, href=difference_page),
    ]


def _what() -> list[Column]:
    """What differs."""
    return [
        *BOTH_VALUES,
        Column("Day", "text", _day),
        Column("Channel", "text", "channel_name"),
        FIELD,
        BUCKET,
    ]


def _day(row: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a day, or that and what day it is
    is_made = row["day"] and row["travel_date"] is None and row["day"] == row["booking_date"]
    return f"{row['day']}, day of booking" if is_made else row["day"]


def difference(row: Mapping[str, Any]) -> Money | None:
    """By how much a difference's amounts differ: there minus here."""
    return None if row["amount"] is None else Money(row["amount"], row["currency"], sign=True)


def _accepted(name: str, rows: Sequence[Mapping[str, Any]], place: str, filters: Filters) -> Section:
    title = f"Accepted differences of {name}"
    table = listed(
        title,
        [row for row in rows if _is_wanted(row, filters)],
        *_which(),
        Column("Why", "sentence", "accepted_note"),
        *_what(),
        Column("By", "text", "accepted_by"),
        Column("Until", "date", "accepted_until", none="for good"),
        empty="None of these.",
        most=_ROWS,
    )
    return Section(
        title, [*_only(name, filters), table], "Still found, but not counted as open.", id=f"{place}-accepted"
    )


def bucket_text(value: Any) -> str:  # noqa: ANN401 - a bucket, or a value of an address or row that may be none
    """A bucket's name for people."""
    return str(BUCKETS.get(value, (value,))[0])


def _explained(bucket: Bucket) -> str:
    """The same with what it means: `missing here: only the other side has it`."""
    named, meaning = BUCKETS[bucket]
    return f"{named}: {meaning[:1].lower()}{meaning[1:].rstrip('.')}"


def value_text(text: str | None, row: Mapping[str, Any]) -> str | Money:
    """A value for people: an amount as money, nothing as a dash, all else as it is."""
    if text is None:
        return NOTHING
    if row["delta_amount"] is None or row["currency"] is None:
        return text
    try:
        return Money(Decimal(text), row["currency"])
    except InvalidOperation:
        return text


BUCKET = Column("Bucket", "text", lambda row: bucket_text(row["bucket"]))
FIELD = Column("Field", "text", lambda row: field_text(row["field"]))
BOTH_VALUES = (
    Column("Here", "text", lambda row: value_text(row["here_value"], row)),
    Column("There", "text", lambda row: value_text(row["there_value"], row)),
)
"""Columns of differences, on each page that has some."""


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
    return Section(
        f"Runs of {name}", [table], "All but the last column count accepted differences, too.", id=f"{place}-runs"
    )


PAGE = Page(
    name="reconcile",
    title="Reconcile",
    order=70,
    build=build,
    shown=frozenset({"dates"}),
    works_empty=True,
    fields=frozenset({"name", "bucket", "currency", "total", "age"}),
)
