"""Copies to look at: a demo, and what becomes of it when it is empty, tiny, hostile, huge, stale, damaged or gone."""

import shutil
import subprocess
import sys
from pathlib import Path

import duckdb

MARTS = Path(__file__).parents[2] / "warehouse/marts"
READ = "octo.read.duckdb"

HOSTILE = {
    "script": "<script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">",
    "end": "</script></title></textarea></td><h1>taken</h1>",
    "turned": "\u202egnp.exe \u2066\u200f tour",
    "long": "Endless" * 43,
    "quotes": "\"'`><a href=javascript:document.title='taken'>{{ 1337*7919 }} ${1337*7919} {% x %} %s",
    "address": "javascript:document.title='taken'",
    "control": "Bell\x07 and line\u2028 and \u0000 end",
    "rows": '=HYPERLINK("http://evil.example")\nsecond line',
}
"""What a supplier could call a product."""


def make_demo(folder):
    """The demo's project, published once more so that its copy knows what the ledger was compared to."""
    run("demo", "-C", folder, "--bookings", 2500)
    run("publish", "-C", folder)


def run(*arguments):
    """The program, in a process of its own."""
    command = [sys.executable, "-m", "octo_sync", *map(str, arguments)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def changed(demo, folder, *statements):
    """A project whose copy is the demo's with statements run on it."""
    folder.mkdir()
    shutil.copytree(demo / "pipelines", folder / "pipelines")
    shutil.copy(demo / READ, folder / READ)
    with duckdb.connect(folder / READ) as copy:
        copy.execute("set timezone = 'UTC'")
        for statement, *parameters in statements:
            copy.execute(statement, *parameters)
        # Views follow by themselves; what a publish keeps as a table is made again, in the order in which they read each other.
        for name in ("dim_date", "shared_departures", "agg_occupancy_daily"):
            select = (MARTS / f"{name}.sql").read_text(encoding="utf-8").rstrip().rstrip(";")
            copy.execute(f"create or replace table marts.{name} as {select}")
    return folder


def none(demo, folder):
    """A project in which nothing was published."""
    folder.mkdir()
    shutil.copytree(demo / "pipelines", folder / "pipelines")
    return folder


def empty(demo, folder):
    """One in which nothing was pulled."""
    with duckdb.connect(demo / READ, read_only=True) as copy:
        tables = copy.execute(
            "select schema_name || '.' || table_name from duckdb_tables() where schema_name in ('core', 'ops')"
        ).fetchall()
    return changed(demo, folder, *((f"delete from {table}",) for (table,) in tables))


def tiny(demo, folder):
    """One of one product with one departure and one booking of it."""
    with duckdb.connect(demo / READ, read_only=True) as copy:
        connection, product, departure, booking = copy.execute(
            "select b.connection_id, b.product_id, a.availability_id, b.booking_uuid from core.bookings b "
            "join core.availability a using (connection_id, product_id, availability_id) "
            "where b.status = 'CONFIRMED' and a.status = 'AVAILABLE' and not b.is_test and not a.is_deleted "
            "and a.local_date between current_date + 1 and current_date + 28 order by 4 limit 1"
        ).fetchone()
    return changed(
        demo,
        folder,
        ("delete from core.products where product_id <> $1 or connection_id <> $2", [product, connection]),
        ("delete from core.options where product_id <> $1 or connection_id <> $2", [product, connection]),
        ("delete from core.availability where product_id <> $1 or availability_id <> $2", [product, departure]),
        ("delete from core.availability where connection_id <> $1", [connection]),
        ("delete from core.bookings where booking_uuid <> $1", [booking]),
        ("delete from ops.coverage where resource = 'availability' and product_id <> $1", [product]),
        ("delete from ops.recon_results",),
    )


def stale(demo, folder):
    """One of which no part was verified for twelve days."""
    return changed(demo, folder, ("update ops.coverage set verified_at_utc = verified_at_utc - interval '12 days'",))


def damaged(demo, folder):
    """One whose copy is cut off."""
    none(demo, folder)
    (folder / READ).write_bytes((demo / READ).read_bytes()[:8192])
    return folder


def hostile(demo, folder):
    """One whose supplier, products, channel, resellers and ledger say what would break a page that trusts them."""
    with duckdb.connect(demo / READ, read_only=True) as copy:
        products = copy.execute("select distinct product_id from core.products order by 1").fetchall()
    titles = [value.replace("\x00", "") for value in HOSTILE.values()]
    said = titles[0]
    return changed(
        demo,
        folder,
        *(
            ("update core.products set title = $1, internal_name = $1 where product_id = $2", [title, product])
            for title, (product,) in zip(titles, products, strict=True)
        ),
        ("update core.options set internal_name = $1, title = $1", [titles[1]]),
        ("update core.suppliers set name = $1", [said]),
        ("update core.connections set channel = $1", [titles[4]]),
        ("update core.bookings set reseller_reference = $1, cancellation_reason = $2", [said, titles[4]]),
        ("update core.bookings set supplier_reference = $1 || booking_uuid, booking_id = $2", [titles[3], titles[6]]),
        ("update core.units set title = $1, unit_type = $2", [titles[4], titles[0]]),
        (
            "update core.booking_unit_items set unit_type = $1, status = $2, supplier_reference = $3",
            [said, titles[1], titles[4]],
        ),
        ("update core.extras set title = $1, internal_name = $1", [titles[1]]),
        ("update core.booking_taxes set name = $1", [titles[4]]),
        ("update core.booking_history set changed_fields = $1, source = $2", [titles[1], said]),
        ("update ops.recon_results set reason = $1, recon_key = $2 || recon_key", [said, titles[1]]),
        ("update ops.recon_runs set there_origin = $1", [titles[4]]),
        ("update ops.runs set error = $1", [titles[1]]),
        (
            "insert into ops.quarantine values ('website', 'booking', $1, $2, $3, 3, now(), now())",
            [said, titles[5], titles[1]],
        ),
        (
            "insert into ops.schema_drift values ('website', 'booking', 'field', $1, 3, now(), now(), null)",
            [said],
        ),
    )


def huge(demo, folder, products=500):
    """One with so many products, each with its own departures and coverage, though with the demo's bookings."""
    times = -(-products // 8)
    statements = [
        f"insert into {table} select t.* replace (t.product_id || '-' || n as product_id{more}) "
        f"from {table} t, (select range as n from range(1, {times})) where {where}"
        for table, more, where in (
            ("core.products", ", t.title || ' ' || n as title", "true"),
            ("core.options", "", "true"),
            ("core.availability", "", "true"),
            ("ops.coverage", ", t.key || n as key", "t.resource = 'availability'"),
        )
    ]
    return changed(demo, folder, *((statement,) for statement in statements))
