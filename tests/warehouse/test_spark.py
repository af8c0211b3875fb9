"""The marts as Spark SQL: what is committed is as the marts are now, and makes the rows that were published."""

import contextlib
import re
import shutil
import subprocess

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from scripts import spark
from tests.absent import environment
from tests.flows.harness import NOON
from tests.warehouse.conftest import copied
from tests.warehouse.test_checks import LIVE, insert
from tests.warehouse.test_data_quality import SEEN, STARTS, starts, version
from tests.warehouse.test_filling import an_option, planting
from tests.warehouse.test_recon_open import _insert, _rows

from octo_sync.destinations.delta.together import publish, published
from octo_sync.destinations.duckdb.reader import DuckDBReader
from octo_sync.destinations.reading import SCHEMAS
from octo_sync.flows.publish import apply_marts
from octo_sync.tables import by_name

(BLOCK,) = re.findall(
    r"^```python\n(.*?)^```", (spark.WAREHOUSE / "README.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
)
SAIL = ("pysail>=0.7.2,<0.8", "pyspark-client>=4.0,<4.1", "pandas<3")
PROGRAM = """
import sys
import pyarrow.parquet
from pysail.spark import SparkConnectServer
from pyspark.sql import SparkSession

server = SparkConnectServer()
server.start()
spark = SparkSession.builder.remote(f"sc://localhost:{server.listening_address[1]}").getOrCreate()
exec(sys.argv[1])
for table in spark.sql("show tables in marts").collect():
    pyarrow.parquet.write_table(spark.table(f"marts.{table.tableName}").toArrow(), f"{table.tableName}.parquet")
"""
PLANTED = [
    # One connection's lists are by day of booking, a product is offered no more, departures of the past told no instant.
    "insert into ops.schema_drift (connection_id, resource, kind, name) values ('agents', 'bookings', 'meaning', 'creation')",
    """update core.products set is_deleted = true, deleted_at_utc = last_seen_at_utc
    where product_id = (select max(product_id) from core.products)""",
    "update core.availability set utc_start_at = null, time_zone = 'Asia/Tokyo' where availability_id like 'past-%'",
    "update ops.coverage set missing_capabilities = if(row_count % 2 = 0, 'octo/offers', 'octo/cart') where row_count % 3 > 0",
    *(
        f"insert into ops.closed_periods values ('{month}', timestamptz '{NOON}', true, '', true)"
        for month in ("2026-10", "2026-11")
    ),
    # All causes: some were not there, some are not sold any more, of others price, net price or guests were other ones.
    """insert into ops.closed_bookings
    select strftime(travel_month, '%Y-%m'), connection_id, booking_uuid, currency, retail_amount + if(n % 5 = 0, 1.25, 0),
      net_amount - if(n % 7 = 0, 3, 0), pax_count + if(n % 3 = 0, 1, 0)
    from (select *, row_number() over (order by booking_key) as n from marts.fct_bookings where is_sold or is_cancelled)
    where travel_month in ('2026-10-01', '2026-11-01') and n % 4 > 0""",
    """insert into ops.closed_totals
    select strftime(period, '%Y-%m'), kind, coalesce(tax_name, ''), connection_id, coalesce(currency, ''), bookings_now + 1,
      retail_now + 0.01, net_now
    from marts.month_totals where period in ('2026-10-01', '2026-11-01') and bookings_now > 2""",
]
ODD = [
    ("core.availability", {"vacancies": 12, "capacity": 10, "oddities": "'stands_twice:a,unknown_time_zone:b'"}),
    ("core.availability", {"availability_id": "'x'", "capacity": 2**63 - 1}),
    *(
        ("core.availability", {"availability_id": f"'{n}'", **starts(*written)})
        for n, (*written, _) in enumerate(STARTS)
    ),
    # Sail counts nanoseconds from 1970 in 64 bits, so nothing before 1677.
    (
        "core.bookings",
        {"unit_count": 0, "utc_expires_at": "timestamptz '9999-12-31 23:59:59+00'", "local_date": "'1901-01-01'"},
    ),
    *(("core.availability_history", version(*v)) for v in ((1, 1, 3, 4, ""), (2, 3, 5, 12), (3, 5, None, 15))),
]


def test_the_selects_for_spark_are_those_of_the_marts_as_they_are_now():
    committed = {path.name: path.read_text(encoding="utf-8") for path in spark.SPARK.iterdir()}
    assert committed == spark.selects(), "warehouse/spark is not current; run: scripts/write.sh"


@pytest.fixture(scope="module")
def lake(world, tmp_path_factory):
    """What readers of Delta tables have, with closed months, differences and oddities, so that each column has values."""
    folder = tmp_path_factory.mktemp("lake")
    warehouse = copied(world, folder)
    odd = [insert(by_name(name), **{**LIVE, **SEEN, **row, "connection_id": "'odd'"}) for name, row in ODD]
    runs, results = _rows()
    planted = [planting(*an_option(world))[0], _insert("recon_runs", runs), _insert("recon_results", results)]
    warehouse.run_script([*planted, *odd, *PLANTED])
    apply_marts(warehouse, world.project.directory)
    warehouse.close()
    with contextlib.closing(DuckDBReader(folder / "octo.duckdb")) as reader:
        publish(reader, published(str(folder / "lake")), NOON, SCHEMAS)
    return folder / "lake"


def kinds(table):
    """Of each column, with what Spark has in other widths as one."""
    return {
        field.name: next((name for name, is_it in WIDE.items() if is_it(field.type)), str(field.type))
        for field in table.schema
    }


WIDE = {"integer": pa.types.is_integer, "decimal": pa.types.is_decimal, "text": pa.types.is_large_string}


@pytest.mark.deep(30)
def test_spark_sql_makes_of_core_and_ops_the_rows_that_were_published(lake, tmp_path):
    """By Sail, which speaks Spark's protocol; as warehouse/README.md says how."""
    python = environment(tmp_path / "sail", *SAIL) / "python"
    shutil.copytree(spark.SPARK, tmp_path / "warehouse/spark")
    block = BLOCK.replace("s3://bucket/octo", str(lake))
    assert str(lake) in block
    done = subprocess.run(
        [python, "-W", "ignore", "-c", PROGRAM, block],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-4000:]

    names = {path.name for path in (lake / "marts").iterdir()}
    assert (
        {path.stem for path in tmp_path.glob("*.parquet")}
        == names
        == {p.stem for p in spark.WAREHOUSE.glob("marts/*.sql")}
    )
    for name in sorted(names):
        made, wanted = pq.read_table(tmp_path / f"{name}.parquet"), DeltaTable(lake / "marts" / name).to_pyarrow_table()
        assert {c for c in wanted.column_names if wanted[c].null_count == wanted.num_rows} == set(), (
            f"{name} tells little"
        )
        assert list(kinds(made).items()) == list(kinds(wanted).items()), name
        with duckdb.connect() as db:
            db.register("made", made)
            db.register("wanted", wanted)
            differing = "(from made except all from wanted) union all (from wanted except all from made)"
            assert db.sql(differing).fetchall() == [], name
