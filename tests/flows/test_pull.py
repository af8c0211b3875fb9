"""A pull's promise: the copy equals the source, row for row, column for column, in both directions."""

import datetime as dt
from collections import Counter
from dataclasses import replace
from decimal import Decimal

import pytest
from tests import oracle
from tests.flows.harness import NOON, Asked, Wire, api_path

from octo_sync import tables
from octo_sync.flows.backup.save import mark_everything
from octo_sync.model import SubjectKind

QUIET_TABLES = {"core.booking_taxes", "core.extras", "core.booking_extra_items", "core.product_content"}


@pytest.mark.deep(1, everyday=["a"])
@pytest.mark.parametrize("token", ["all", "a", "b"])
async def test_a_full_pull_equals_what_the_source_shows_to_its_token(project, token):
    copy = project(token=token)
    result = await copy.sync()
    assert copy.differences() == []
    assert (result.status, result.failed, result.quarantined) == ("ok", {}, ())
    assert result.totals.rows > 1000


@pytest.mark.deep(1)
@pytest.mark.parametrize("languages", [("pt",), ("en", "pt", "ja"), ("ja", "de", "en")], ids="-".join)
async def test_a_full_pull_has_the_texts_of_every_language_the_service_has(project, languages):
    copy = project(languages=languages)
    await copy.sync()
    assert copy.differences() == []
    told = {language for (language,) in copy.query("select distinct language from core.product_content")}
    assert told == set(languages) - {"de"} | ({"en"} if "de" in languages else set())


@pytest.mark.deep(1)
@pytest.mark.parametrize(
    "capabilities",
    [(), ("pricing",), ("content",), ("pricing", "extras")],
    ids=lambda capabilities: "-".join(capabilities) or "none",
)
async def test_a_full_pull_has_what_the_chosen_capabilities_show_and_nothing_else(project, capabilities):
    copy = project(capabilities=capabilities, languages=("en", "pt"))
    result = await copy.sync()
    assert copy.differences() == []
    assert result.status == "ok"
    assert copy.query("select kind, name from ops.schema_drift") == []


async def test_no_table_of_the_comparison_is_empty(synced):
    """Otherwise equality would promise nothing about it."""
    found = synced().oracle()
    assert [table for table, rows in found.items() if not rows] == []
    assert {row["currency_precision"] for row in found["core.bookings"]} == {0, 2, 3}
    assert {row["time_zone"] for row in found["core.bookings"]} >= {"Pacific/Chatham", "Australia/Lord_Howe"}
    assert {row["is_freesale"] for row in found["core.bookings"]} == {True, False}


async def test_the_comparison_sees_a_change_of_any_single_column(synced):
    """A comparison that cannot fail proves nothing."""
    copy = synced()
    wanted, held = copy.oracle(), copy.warehouse()
    assert oracle.compare(wanted, held) == []
    for table, key in oracle.KEYS.items():  # a few rows of each will do
        for side in (wanted, held):
            side[table] = sorted(side[table], key=lambda row: [row[c] for c in key])[:30]
    other = {str: "x", int: 7_777, Decimal: Decimal("0.0001"), dt.date: dt.date(1999, 1, 1)}
    for table, rows in held.items():

        def noticed(table=table, rows=rows):
            return oracle.compare({table: wanted[table]}, {table: rows}) != []

        for column in rows[0]:
            row = next((r for r in rows if r[column] is not None), None)
            if row is None:
                continue
            kept = row[column]
            made = not kept if isinstance(kept, bool) else other.get(type(kept), NOON)
            row[column] = '["x"]' if column in oracle.JSON_COLUMNS else made
            assert noticed(), f"{table}.{column}"
            row[column] = None
            assert noticed(), f"{table}.{column} null"
            row[column] = kept
        gone = rows.pop()
        assert noticed(), f"a missing row of {table}"
        rows += [gone, gone]
        assert noticed(), f"a double row of {table}"
        rows.pop()


async def test_a_second_pull_of_an_unchanged_source_writes_nothing_and_renews_coverage(synced):
    copy = synced()
    before = await copy.sync()
    digests = await copy.digests()
    seen = copy.query("select resource, key, verified_at_utc from ops.coverage order by all")
    copy.clock.advance(minutes=5)
    result = await copy.sync()
    assert result.totals.rows == 0
    assert result.totals.unchanged == result.totals.subjects == before.totals.subjects > 0
    assert await copy.digests() == digests
    again = copy.query("select resource, key, verified_at_utc from ops.coverage order by all")
    assert [row[:2] for row in again] == [row[:2] for row in seen]
    assert all(new[2] > old[2] for old, new in zip(seen, again, strict=True))
    assert copy.differences() == []


async def test_equal_answers_fill_a_column_that_has_come(synced, monkeypatch):
    """What was there before it has no value in it, and the service has nothing new to say."""
    copy = synced()
    before = copy.query("select product_id, reference from core.products order by 1")
    assert any(reference for _, reference in before)
    async with copy.opened() as ports:
        ports.warehouse.run_script(["update core.products set reference = null, row_hash = null"])
    was = tables.all_tables()
    gained = [replace(t, columns=t.columns[::-1]) if t.full_name == "core.products" else t for t in was]
    monkeypatch.setattr(tables, "all_tables", lambda: gained)
    tables.form.cache_clear()
    try:
        result = await copy.sync()
    finally:
        tables.form.cache_clear()
    assert copy.query("select product_id, reference from core.products order by 1") == before
    assert 0 < result.totals.unchanged < result.totals.subjects, "other tables are as they were"


@pytest.mark.deep(0.6)
async def test_where_everything_is_marked_already_nothing_is_asked_for_twice(synced):
    """As after a restore or a rebuild: the months are fetched while the products, which tell of more, are under way."""
    copy = synced()
    asked = Counter()

    def note(request, _answer):
        asked[request.method, api_path(request), str(request.url.params), request.content] += 1

    async with copy.opened() as opened:
        marked = mark_everything(opened.journal, copy.pipeline, copy.clock)
        owed = {row.subject for row in opened.journal.subjects.rows() if row.dirty}
    assert len(owed) == marked
    await copy.sync(transport=Wire.by(note))
    months = [request for request in asked if request[1] == "/availability"]
    assert len(months) == sum(subject.kind is SubjectKind.AVAILABILITY for subject in owed) > 10
    assert {request: count for request, count in asked.items() if count > 1} == {}
    assert copy.differences() == []


@pytest.mark.deep(4)
async def test_a_pull_after_any_changes_equals_the_source_again(synced, service):
    copy = synced()
    for seed in ("one/0", "one/1", "two"):
        copy.remember_products()
        changes = service.traffic(60, seed=seed)
        assert len(changes) == 60
        assert copy.differences() != [], "the changes must be visible before the pull"
        result = await copy.sync()
        assert copy.differences() == []
        assert result.status == "ok"


@pytest.mark.deep(3)
async def test_a_pull_of_changes_and_a_pull_from_nothing_give_the_same_digest(synced, project, service):
    grown, fresh = synced(), project()
    service.traffic(40, seed="digest")
    await grown.sync()
    await fresh.sync()
    assert await grown.digests() == await fresh.digests()


@pytest.mark.deep(2)
async def test_two_connections_of_one_pipeline_do_not_mix(project):
    """Ids are unique per connection only: the same product and booking ids come through both tokens."""
    copy = project(connections={"first": Asked(token="a"), "second": Asked(token="all", languages=("pt",))})
    await copy.sync()
    assert copy.differences("first") == []
    assert copy.differences("second") == []


async def test_only_the_days_of_the_horizon_are_kept(project):
    copy = project(bookings=(-7, 12), availability=(3, 12))
    await copy.sync()
    assert copy.differences() == []
    low, high = copy.query("select min(local_date), max(local_date) from core.availability where time_zone like 'Eu%'")[
        0
    ]
    assert (low, high) == (dt.date(2026, 11, 23), dt.date(2026, 12, 2))


async def test_availability_is_kept_only_of_the_products_that_were_chosen(project, service):
    chosen = [product["id"] for product in service.state()["products"]][:2]
    copy = project()
    with copy.file.open("a") as file:
        file.write(f'[connections.main.products]\ninclude = ["{chosen[0]}", "{chosen[1]}"]\n')
    await copy.sync()
    kept = {product for (product,) in copy.query("select distinct product_id from core.availability")}
    assert kept == set(chosen)


@pytest.mark.deep(1)
async def test_what_is_asked_for_is_bounded_by_the_connections_concurrency(project):
    wires = []

    def wire(_connection):
        wires.append(Wire(lambda _request, _answer: None))
        return wires[-1]

    copy = project(limits={"concurrency": 3})
    await copy.sync(transport=wire)
    assert wires[0].most_in_flight == 3
    assert copy.differences() == []
