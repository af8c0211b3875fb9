"""The Sync page: what the copy is worth, part by part, and what goes on."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

from octo_sync.dashboard.coverage_map import LEGEND, CoverageMap, coverage_map
from octo_sync.dashboard.source import Source
from octo_sync.dashboard.view import Block, Column, Filters, Item, Page, Section, Table, View
from octo_sync.errors import OctoSyncError
from octo_sync.flows import wording
from octo_sync.flows.status.report import ConnectionStatus, Status

__all__ = ["PAGE"]

_MONTHS_BACK = 3
"""Months before this one that are in the map: as far as bookings are looked at again."""


def build(source: Source, filters: Filters) -> View:
    """The page; without a journal it leaves out what only that knows."""
    connections = [
        each
        for each in source.rows("sync_connections")
        if filters.channel in (None, each["connection_id"]) and _of(filters.product, each["supplier_key"])
    ]
    sections = _coverage(source, connections, filters)
    sections.append(_freshness(source, connections))
    sections += _journal(source, connections)
    sections += [_runs(source), _quarantine(source), _drift(source)]
    lead = "When each part of the copy was last verified, by which road, and what is still open."
    return View("Sync", lead, sections, filters)


def _of(product: str | None, supplier: str) -> bool:
    """Whether a product (`supplier|id`) is one of the supplier; no product is one of each."""
    return product is None or product.startswith(f"{supplier}|")


def _coverage(source: Source, connections: Sequence[Mapping[str, Any]], filters: Filters) -> list[Section]:
    now = max((each["last_verified_at_utc"] for each in connections if each["last_verified_at_utc"]), default=None)
    if now is None:
        nothing = "Nothing was verified yet: octo-sync sync pulls everything, and this map shows how far it has come."
        return [Section("Coverage", [nothing], id="coverage")]
    today = max(each["as_of_date"] for each in connections if each["as_of_date"])
    rows, suppliers = defaultdict(list), defaultdict(list)
    for each in connections:
        suppliers[each["supplier_key"]].append(each)
    chosen = {each["connection_id"] for each in connections}
    for row in source.rows("sync_coverage", first=_back(today)):
        if row["connection_id"] in chosen or (row["product_key"] and filters.product in (None, row["product_key"])):
            rows[row["supplier_key"]].append(row)
    undated = [row for row in source.rows("sync_freshness") if row["resource"] == "open_dated"]
    sections: list[Section] = []
    for key, sellers in suppliers.items():
        days = [each["as_of_date"] for each in sellers if each["as_of_date"]]
        found = coverage_map(key, rows[key], now, max(days, default=today))
        channels = ", ".join(each["channel_name"] for each in sellers)
        title = "Coverage" if len(suppliers) == 1 else f"Coverage of {channels}"
        names = {each["connection_id"] for each in sellers}
        items = [*_map(found, now), *_undated([row for row in undated if row["connection_id"] in names])]
        sections.append(Section(title, items, id=f"coverage-{len(sections) + 1}"))
    return sections


def _undated(rows: Sequence[Mapping[str, Any]]) -> list[Item]:
    """A sentence on the open-dated bookings, which are in no month of the map."""
    verified = [row["oldest_verified_at"] for row in rows if row["oldest_verified_at"]]
    if not verified:
        return []
    count = sum(row["subjects"] for row in rows)
    return [
        f"Bookings without a day of travel: {count:,}, verified since {wording.instant(min(verified))}; in no month."
    ]


def _back(today: date) -> date:
    months = today.year * 12 + today.month - 1 - _MONTHS_BACK
    return date(months // 12, months % 12 + 1, 1)


def _map(found: CoverageMap, now: datetime) -> list[Item]:
    if not found.lines:
        return ["Nothing was asked for yet."]
    note = (
        f"Ages are counted to {wording.instant(now)}, when anything was last verified; a cell is as old as "
        "the part of it that was verified longest ago. Hold the pointer over one to see by which road."
    )
    more = ""
    if found.hidden:
        count = sum(each.product_key is not None for each in found.lines)
        more = f"{count} of {count + len(found.hidden):,} products, the worst first; the others are in the table."
    items: list[Item] = [
        Block(
            "coverage_map.html.j2",
            {
                "map": found,
                "months": [wording.month(month) for month in found.months],
                "legend": LEGEND,
                "note": note,
                "more": more,
            },
        ),
        Block("details.html.j2", {"summary": "Show each part", "table": _parts(found)}),
    ]
    if found.hidden:
        items.append(Block("details.html.j2", {"summary": "The other products", "table": _hidden(found)}))
    items.append(Block("downloads.html.j2", {"name": "coverage", "fields": ""}))
    return items


def _parts(found: CoverageMap) -> Table:
    """What the cells say when a pointer is held over them, for whoever has none."""
    rows = [(cell.title,) for line in found.lines for cell in line.cells if cell.level != "none"]
    return Table("Each cell of the map", [Column("Product, month and how it was verified")], rows)


def _hidden(found: CoverageMap) -> Table:
    return Table(
        "Products that are not in the map",
        [
            Column("Product"),
            Column("Verified longest ago", "instant"),
            Column("Incomplete", "number"),
            Column("Never answered", "number"),
        ],
        [(line.name, line.oldest, line.incomplete, line.never) for line in found.hidden],
    )


def _freshness(source: Source, connections: Sequence[Mapping[str, Any]]) -> Section:
    names = {each["connection_id"]: each["channel_name"] for each in connections}
    rows = [
        (
            row["resource"],
            names[row["connection_id"]],
            row["subjects"],
            row["oldest_verified_at"],
            row["last_verified_at"],
            row["incomplete_subjects"],
            row["missed_rows"],
            row["open_subjects"],
        )
        for row in source.rows("sync_freshness")
        if row["connection_id"] in names
    ]
    table = Table(
        "How fresh each kind of data is",
        [
            Column("Kind"),
            Column("Channel"),
            Column("Subjects", "number"),
            Column("Verified longest ago", "instant"),
            Column("Verified last", "instant"),
            Column("Incomplete", "number"),
            Column("Missed rows", "number"),
            Column("Open", "number"),
        ],
        rows,
        empty="Nothing was verified yet.",
    )
    note = (
        "Missed rows were in an answer before and are no longer, and are not proven gone. Open are subjects that were never "
        "answered, are incomplete, in quarantine, or have to be asked again."
    )
    return Section("Freshness", [table], note, id="freshness")


def _journal(source: Source, connections: Sequence[Mapping[str, Any]]) -> list[Section]:
    """What the journal knows now, which is newer than the copy; nothing where there is none."""
    if source.status is None:
        return []
    try:
        found = source.status()
    except OctoSyncError as error:
        return [Section("Now", [str(error)], id="now")]
    wanted = {each["connection_id"] for each in connections}
    chosen = [each for each in found.connections if each.name in wanted or not wanted]
    return [_backlog(found, chosen), _webhooks(chosen), *_next_runs(found)]


def _backlog(found: Status, connections: Iterable[ConnectionStatus]) -> Section:
    rows = [
        (kind.kind, each.name, kind.subjects, kind.verified, kind.owed, kind.due, kind.quarantined)
        for each in connections
        for kind in each.kinds.values()
    ]
    working = (
        f"{found.running.owner} works on it since {wording.instant(found.running.since)}." if found.running else ""
    )
    table = Table(
        "What is owed a look",
        [
            Column("Kind"),
            Column("Connection"),
            Column("Subjects", "number"),
            Column("Verified", "number"),
            Column("Owed", "number"),
            Column("Due now", "number"),
            Column("In quarantine", "number"),
        ],
        rows,
        empty="Nothing was asked for yet.",
    )
    items: list[Item] = [table]
    for title, waiting in (
        ("Deletions that wait for a person", [(each.name, reason) for each in connections for reason in each.held]),
        ("Missing fields whose values are kept", [(each.name, reason) for each in connections for reason in each.kept]),
    ):
        if waiting:
            items.append(Table(title, [Column("Connection"), Column("Why")], waiting))
    return Section("Backlog", items, working or "Nobody works on it at the moment.", id="backlog")


def _webhooks(connections: Iterable[ConnectionStatus]) -> Section:
    rows: list[tuple[Any, ...]] = []
    for each in connections:
        hooks = each.webhooks
        if hooks is None:
            state = "removed by a person" if each.webhooks_removed_at else "no address is open, pulls do the work alone"
            rows.append((each.name, state, None, None, None))
            continue
        state = "subscribed" if hooks.subscription_id else "not subscribed"
        if hooks.silent:
            state += f", silent for {timedelta(seconds=int(hooks.silent))}, which is longer than usual"
        rows.append((each.name, state, hooks.last_delivery_at, hooks.last_day, hooks.odd))
    table = Table(
        "Subscriptions",
        [
            Column("Connection"),
            Column("State"),
            Column("Last delivery", "instant"),
            Column("Deliveries in 24 h", "number"),
            Column("Of these not as agreed", "number"),
        ],
        rows,
        empty="There is no connection.",
    )
    return Section("Webhooks", [table], id="webhooks")


def _next_runs(found: Status) -> list[Section]:
    if not found.next_runs:
        return []
    rows = [
        (each.name, each.expression, each.at, each.last_at, "late: serve makes up for it" if each.late else "")
        for each in found.next_runs
    ]
    table = Table(
        "When serve runs what",
        [
            Column("Schedule"),
            Column("Cron"),
            Column("Next", "instant", none="never"),
            Column("Last", "instant", none="never"),
            Column("Remark"),
        ],
        rows,
    )
    return [Section("Next runs", [table], id="next")]


def _runs(source: Source) -> Section:
    rows = [
        (
            row["run_id"],
            row["command"],
            row["status"],
            row["started_at_utc"],
            _took(row["started_at_utc"], row["ended_at_utc"]),
            row["requests"],
            row["subjects"],
            row["unchanged"],
            row["rows_written"],
            row["error"] or "",
        )
        for row in source.rows("sync_runs")
    ]
    table = Table(
        "The last 20 runs that landed something",
        [
            Column("Run"),
            Column("Command"),
            Column("Status"),
            Column("Started", "instant"),
            Column("Took", none="not ended"),
            Column("Requests", "number"),
            Column("Subjects", "number"),
            Column("Unchanged", "number"),
            Column("Rows written", "number"),
            Column("Error"),
        ],
        rows,
        empty="No run has landed anything yet.",
    )
    note = "As of when the copy was published: the run that published it is shown as it was then."
    return Section("Runs", [table], note, id="runs")


def _took(began: datetime | None, ended: datetime | None) -> str | None:
    if began is None or ended is None:
        return None
    seconds = (ended.astimezone(UTC) - began.astimezone(UTC)).total_seconds()
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.0f} min"  # noqa: PLR2004 - two minutes


def _quarantine(source: Source) -> Section:
    found = source.rows("sync_quarantine")
    rows = [
        (
            row["key"],
            row["resource"],
            row["connection_id"],
            row["path"],
            row["reason"],
            row["seen_count"],
            row["first_at_utc"],
            row["last_at_utc"],
        )
        for row in found
    ]
    table = Table(
        "Subjects and records that were left alone",
        [
            Column("Key"),
            Column("Kind"),
            Column("Connection"),
            Column("Where"),
            Column("Reason"),
            Column("Seen", "number"),
            Column("First", "instant"),
            Column("Last", "instant"),
        ],
        rows,
        empty="Nothing is in quarantine: every record fitted.",
        more=_more(found, "ops.quarantine"),
    )
    return Section("Quarantine", [table], "octo-sync quarantine retry tries them again.", id="quarantine")


def _drift(source: Source) -> Section:
    found = source.rows("sync_drift")
    rows = [
        (
            row["name"],
            row["kind"],
            row["resource"],
            row["connection_id"],
            row["seen_count"],
            row["first_seen_at_utc"],
            row["last_seen_at_utc"],
        )
        for row in found
    ]
    table = Table(
        "What services send that no table expects",
        [
            Column("Name"),
            Column("What"),
            Column("Kind"),
            Column("Connection"),
            Column("Seen", "number"),
            Column("First", "instant"),
            Column("Last", "instant"),
        ],
        rows,
        empty="Nothing unexpected was sent.",
        more=_more(found, "ops.schema_drift"),
    )
    return Section("Schema drift", [table], id="drift")


def _more(rows: Sequence[Mapping[str, Any]], name: str) -> str:
    """How many there are beyond those shown."""
    total = rows[0]["found"] if rows else 0
    return f"{len(rows):,} of {total:,}; all of them: /data/{name}.csv." if total > len(rows) else ""


PAGE = Page(name="sync", title="Sync", order=80, build=build, shown=frozenset({"product", "channel"}), works_empty=True)
