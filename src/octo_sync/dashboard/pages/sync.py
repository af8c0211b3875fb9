"""The Sync page: what the copy is worth, part by part, and what goes on."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from octo_sync.dashboard.acting import acts
from octo_sync.dashboard.coverage_map import LEGEND, CoverageMap, coverage_map
from octo_sync.dashboard.days import month_start
from octo_sync.dashboard.kinds import kind_text, schedule_text
from octo_sync.dashboard.source import Source
from octo_sync.dashboard.view import Block, Column, Filters, Item, Page, Section, Table, View, listed
from octo_sync.errors import OctoSyncError
from octo_sync.flows import wording
from octo_sync.flows.deploy import cron
from octo_sync.flows.status.report import ConnectionStatus, Status
from octo_sync.flows.webhooks.canary import Canary
from octo_sync.journal import Run

_MONTHS_BACK = 3
"""Months before this one that are in the map: as far as bookings are looked at again."""


def build(source: Source, filters: Filters) -> View:
    """The page; without a journal it leaves out what only that knows."""
    connections = [
        each
        for each in source.rows("sync_connections")
        if filters.channel in (None, each["connection_id"])
        # The key of a product begins with that of its supplier.
        and (filters.product is None or filters.product.startswith(f"{each['supplier_key']}|"))
    ]
    sections = _coverage(source, connections, filters)
    sections.append(_freshness(source, connections))
    sections += _journal(source, connections)
    sections += [_runs(source), _quarantine(source), _drift(source)]
    lead = "When each part of the copy was last verified, how, and what is still pending."
    return View("Sync", lead, sections, filters)


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
    for row in source.rows("sync_coverage", first=month_start(today, -_MONTHS_BACK)):
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
    since = wording.instant(min(verified))
    return [
        f"Bookings without a day of travel that are still asked for: {count:,}, verified since {since}; in no month."
    ]


def _map(found: CoverageMap, now: datetime) -> list[Item]:
    if not found.lines:
        return ["Nothing was asked for yet."]
    note = (
        f"Ages are counted to {wording.instant(now)}, when anything was last verified; a cell is as old as "
        "the part of it that was verified longest ago. Hold the pointer over one to see how."
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
    columns = [Column("Product"), Column("Month"), Column("How it was verified", "sentence")]
    rows = [
        (line.name, cell.month, cell.title.removeprefix(f"{line.name}, {cell.month}: "))
        for line in found.lines
        for cell in line.cells
        if cell.level != "none"
    ]
    return Table("Each cell of the map", columns, rows)


def _hidden(found: CoverageMap) -> Table:
    return listed(
        "Products that are not in the map",
        found.hidden,
        Column("Product", "text", lambda line: line.name),
        Column("Verified longest ago", "instant", lambda line: line.oldest),
        Column("Incomplete", "number", lambda line: line.incomplete),
        Column("Never answered", "number", lambda line: line.never),
    )


def _freshness(source: Source, connections: Sequence[Mapping[str, Any]]) -> Section:
    names = {each["connection_id"]: each["channel_name"] for each in connections}
    table = listed(
        "How fresh each kind of data is",
        [row for row in source.rows("sync_freshness") if row["connection_id"] in names],
        Column("Kind", "text", lambda row: kind_text(row["resource"])),
        Column("Channel", "text", lambda row: names[row["connection_id"]]),
        Column("Items", "number", "subjects"),
        Column("Verified longest ago", "instant", "oldest_verified_at"),
        Column("Verified last", "instant", "last_verified_at"),
        Column("Incomplete", "number", "incomplete_subjects"),
        Column("Missing rows", "number", "missed_rows"),
        Column("Open", "number", "open_subjects"),
        empty="Nothing was verified yet.",
    )
    note = (
        "Missing rows: no longer listed, deletion not confirmed yet. Open: never answered, incomplete, in quarantine, or to be "
        "fetched again."
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
    return [
        *_failed(found.failures),
        _backlog(found, chosen),
        _webhooks(chosen),
        *_next_runs(found),
        *acts(source, found),
    ]


def _failed(runs: Sequence[Run]) -> list[Section]:
    """The last runs that did not end well, which the copy may not know: a failed run publishes none."""
    bands: list[Item] = []
    for run in runs:
        said = f"The last run of {run.command} began {wording.instant(run.started_at)}: {run.status}. {run.error or ''}"
        bands.append(Block("band.html.j2", {"text": said.rstrip()}))
    return [Section("Last runs", bands, id="last-run")] if bands else []


def _backlog(found: Status, connections: Iterable[ConnectionStatus]) -> Section:
    table = listed(
        "Pending fetches",
        [(each.name, kind) for each in connections for kind in each.kinds.values()],
        Column("Kind", "text", lambda row: kind_text(row[1].kind)),
        Column("Connection", "text", lambda row: row[0]),
        Column("Items", "number", lambda row: row[1].subjects),
        Column("Verified", "number", lambda row: row[1].verified),
        Column("Pending", "number", lambda row: row[1].owed),
        Column("Due now", "number", lambda row: row[1].due),
        Column("In quarantine", "number", lambda row: row[1].quarantined),
        empty="Nothing was asked for yet.",
    )
    working = (
        f"{found.running.owner} has been running since {wording.instant(found.running.since)}." if found.running else ""
    )
    items: list[Item] = [table]
    if found.workers:
        at_work = [(f"{each.pid} on {each.host}", ", ".join(each.connections) or "none now") for each in found.workers]
        items.append(Table("Workers", [Column("Process"), Column("Connections")], at_work))
    for title, waiting in (
        ("Deletions waiting for confirmation", [(each.name, reason) for each in connections for reason in each.held]),
        ("Missing fields whose values are kept", [(each.name, reason) for each in connections for reason in each.kept]),
    ):
        if waiting:
            items.append(Table(title, [Column("Connection"), Column("Why")], waiting))
    return Section("Backlog", items, working or "No run in progress.", id="backlog")


def _webhooks(connections: Iterable[ConnectionStatus]) -> Section:
    table = listed(
        "Subscriptions",
        list(connections),
        Column("Connection", "text", lambda each: each.name),
        Column("State", "text", _subscribed),
        Column("Last delivery", "instant", lambda each: each.webhooks and each.webhooks.last_delivery_at),
        Column("Deliveries in 24 h", "number", lambda each: each.webhooks and each.webhooks.last_day),
        Column("Unexpected", "number", lambda each: each.webhooks and each.webhooks.odd),
        Column("Canary", "text", lambda each: _canary(each.webhooks and each.webhooks.canary)),
        empty="There is no connection.",
    )
    return Section("Webhooks", [table], id="webhooks")


def _subscribed(connection: ConnectionStatus) -> str:
    hooks = connection.webhooks
    if hooks is None:
        return "removed" if connection.webhooks_removed_at else "none, pulls only"
    state = "subscribed" if hooks.subscription_id else "not subscribed"
    silent = f", silent for {timedelta(seconds=int(hooks.silent))}, longer than usual" if hooks.silent else ""
    return state + silent


def _canary(found: Canary | None) -> str:
    return f"{found.text} ({wording.instant(found.at)})" if found else ""


def _next_runs(found: Status) -> list[Section]:
    if not found.next_runs:
        return []
    late = "late: its turn is now" if found.running else "late: it waits until octo-sync serve is started"
    table = listed(
        "When serve runs what",
        found.next_runs,
        Column("What", "text", lambda run: schedule_text(run.name)),
        Column("When", "text", lambda run: cron.words(run.expression, run.time_zone) or "as its cron text says"),
        Column("Next", "instant", lambda run: run.at, none="never"),
        Column("Last", "instant", lambda run: run.last_at, none="never"),
        Column("Remark", "text", lambda run: late if run.late else "", none=""),
        Column("Cron text", "text", lambda run: run.expression),
    )
    return [Section("Next runs", [table], id="next")]


def _runs(source: Source) -> Section:
    table = listed(
        "The last 20 runs that landed something",
        source.rows("sync_runs"),
        Column("Run", "text", "run_id"),
        Column("Command", "text", "command"),
        Column("Status", "text", "status"),
        Column("Started", "instant", "started_at_utc"),
        Column("Took", "text", lambda row: _took(row["started_at_utc"], row["ended_at_utc"]), none="not ended"),
        Column("Requests", "number", "requests"),
        Column("Items", "number", "subjects"),
        Column("Unchanged", "number", "unchanged"),
        Column("Rows written", "number", "rows_written"),
        Column("Error", "text", lambda row: row["error"] or ""),
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
    table = listed(
        "Records that could not be stored",
        found,
        Column("Key", "text", "key"),
        Column("Kind", "text", lambda row: kind_text(row["resource"])),
        Column("Connection", "text", "connection_id"),
        Column("Where", "text", "path"),
        Column("Reason", "text", "reason"),
        Column("Seen", "number", "seen_count"),
        Column("First", "instant", "first_at_utc"),
        Column("Last", "instant", "last_at_utc"),
        empty="Nothing is in quarantine: every record fitted.",
        more=_more(found, "ops.quarantine"),
    )
    return Section("Quarantine", [table], "octo-sync quarantine --retry --all tries them again.", id="quarantine")


def _drift(source: Source) -> Section:
    found = source.rows("sync_drift")
    table = listed(
        "Fields and values that no table expects",
        found,
        Column("Name", "text", "name"),
        Column("What", "text", "kind"),
        Column("Kind", "text", lambda row: kind_text(row["resource"])),
        Column("Connection", "text", "connection_id"),
        Column("Seen", "number", "seen_count"),
        Column("First", "instant", "first_seen_at_utc"),
        Column("Last", "instant", "last_seen_at_utc"),
        empty="Nothing unexpected was sent.",
        more=_more(found, "ops.schema_drift"),
    )
    return Section("Schema drift", [table], id="drift")


def _more(rows: Sequence[Mapping[str, Any]], name: str) -> str:
    """How many there are beyond those shown."""
    total = rows[0]["found"] if rows else 0
    return f"{len(rows):,} of {total:,}; all of them: /data/{name}.csv." if total > len(rows) else ""


PAGE = Page(name="sync", title="Sync", order=80, build=build, shown=frozenset({"product", "channel"}), works_empty=True)
