"""The user's own SQL: applied last, kept through rebuilds, and when it is broken nothing is published."""

import pytest

import octo_sync
from octo_sync.errors import WarehouseError
from octo_sync.flows.publish import publish

OWN = """\
-- name: sales_by_weekday
-- grain: One weekday and currency.
-- description: What our board looks at.
-- column: guests: People who came.
select d.weekday_name, b.currency, cast(sum(b.pax_count) as bigint) as guests
from marts.fct_bookings b
join marts.dim_date d on d.date_key = b.travel_date
where b.is_sold
group by d.weekday_name, b.currency
"""


@pytest.fixture
async def opened(synced):
    """A pulled project with its warehouse open, and a way to put files into its own warehouse folder."""
    copy = synced()
    async with copy.opened() as running:

        def put(name, text):
            file = copy.directory / "warehouse" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")

        yield copy, put, lambda: publish(running.warehouse, copy.directory, copy.directory / "octo.read.duckdb")


def rows(copy, sql):
    with octo_sync.open(copy.directory / "octo.read.duckdb") as read:
        return read.sql(sql).rows()


@pytest.mark.deep(3)
async def test_an_own_mart_reads_shipped_ones_and_is_made_anew_with_them(opened):
    copy, put, publish_it = opened
    before = publish_it().marts
    put("custom/board.sql", OWN)

    assert publish_it().marts == before + 1
    first = rows(copy, "select * from sales_by_weekday order by all")
    assert publish_it().marts == before + 1, "and again with the next publish"
    assert first == rows(copy, "select * from sales_by_weekday order by all") != []
    with octo_sync.open(copy.directory / "octo.read.duckdb") as read:
        (own,) = [t for t in read.tables() if t.name == "sales_by_weekday"]
    assert own.description.startswith("What our board looks at.")
    assert {c.name: c.description for c in own.columns}["guests"] == "People who came."


@pytest.mark.deep(1)
async def test_an_own_mart_may_be_a_table_and_be_read_by_another(opened):
    copy, put, publish_it = opened
    put("custom/z_base.sql", OWN.replace("-- grain", "-- materialize: table\n-- grain"))
    put("custom/a_top.sql", "-- name: a_top\nselect max(guests) as most from marts.sales_by_weekday")
    publish_it()

    assert rows(copy, "select most = (select max(guests) from sales_by_weekday) from a_top") == [(True,)]


@pytest.mark.deep(2)
@pytest.mark.parametrize(
    ("text", "line"),
    [
        (OWN.replace("b.pax_count", "b.no_such_column"), 5),
        (OWN.replace("group by", "grupp bei"), 9),
        (OWN.replace("marts.dim_date", "marts.dim_dates"), 7),
    ],
    ids=["column", "syntax", "table"],
)
async def test_a_broken_mart_is_named_with_its_line_and_the_old_copy_stays(opened, text, line):
    copy, put, publish_it = opened
    put("custom/board.sql", OWN)
    publish_it()
    held = rows(copy, "select * from sales_by_weekday order by all")
    put("custom/board.sql", text)

    with pytest.raises(WarehouseError) as caught:
        publish_it()
    assert str(caught.value).startswith("warehouse/custom/board.sql does not run, so nothing was published: ")
    assert f"(line {line})" in str(caught.value)
    assert rows(copy, "select * from sales_by_weekday order by all") == held
    put("custom/board.sql", OWN)
    assert publish_it().size, "and once it is mended everything goes on"


@pytest.mark.deep(3)
async def test_a_check_of_ones_own_holds_the_publish_back(opened):
    _, put, publish_it = opened
    publish_it()
    put(
        "checks/no_big_party.sql",
        "-- description: Nobody brings a crowd.\nselect * from marts.fct_bookings where pax_count > 3",
    )
    published = publish_it()

    assert [f.check.name for f in published.failed] == ["no_big_party"]
    assert published.size is None


async def test_a_check_that_does_not_run_is_named(opened):
    _, put, publish_it = opened
    put("checks/broken.sql", "select *\nfrom marts.nothing")

    with pytest.raises(WarehouseError, match=r"warehouse/checks/broken\.sql does not run.*line 2"):
        publish_it()


@pytest.mark.parametrize("name", ["Robert'); drop table core.bookings; --", "two words", "Ä"])
async def test_a_name_that_is_no_name_is_refused(opened, name):
    _, put, publish_it = opened
    put("custom/odd.sql", f"-- name: {name}\nselect 1 as one")

    with pytest.raises(WarehouseError, match="is no name for a mart"):
        publish_it()


async def test_an_own_mart_cannot_take_a_shipped_ones_name_by_accident(opened):
    _, put, publish_it = opened
    put("custom/bookings.sql", "-- name: fct_bookings\nselect 1 as one")

    with pytest.raises(
        WarehouseError, match=r"custom/bookings\.sql and warehouse/marts/fct_bookings\.sql are both called"
    ):
        publish_it()


async def test_marts_that_read_each_other_are_refused(opened):
    _, put, publish_it = opened
    put("custom/one.sql", "-- name: one\nselect * from marts.two")
    put("custom/two.sql", "-- name: two\nselect * from marts.one")

    with pytest.raises(WarehouseError, match="in a circle"):
        publish_it()
