"""`warehouse/` holds what it says: DDL that is current, SQL with headers, checks that can fail."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from octo_sync.destinations import ddl
from octo_sync.destinations.duckdb.warehouse import DuckDBWarehouse
from octo_sync.flows.publish import apply_marts, run_checks, sql_files
from octo_sync.tables import all_tables, nouns

ROOT = Path(__file__).parents[2]


def files(kind):
    return sorted((ROOT / "warehouse" / kind).glob("*.sql"))


@pytest.mark.parametrize("table", all_tables(), ids=lambda t: t.full_name)
def test_the_ddl_of_each_table_is_current(table):
    file = ROOT / "warehouse" / "core" / f"{table.full_name}.sql"
    assert file.read_text(encoding="utf-8") == ddl.script(table), f"{file} is not current; run: scripts/write.sh"


def test_no_ddl_is_left_of_a_table_that_is_gone():
    assert {f.stem for f in files("core")} == {t.full_name for t in all_tables()}


@pytest.mark.parametrize("file", [*files("marts"), *files("checks")], ids=lambda f: f"{f.parent.name}/{f.stem}")
def test_each_file_says_its_name_grain_and_meaning(file):
    text = file.read_text(encoding="utf-8")
    assert re.search(rf"^-- name: {file.stem}$", text, re.MULTILINE)
    assert re.search(r"^-- description: \S.*\.$", text, re.MULTILINE)
    if file.parent.name == "marts":
        assert re.search(r"^-- grain: \S.*\.$", text, re.MULTILINE)


@pytest.mark.parametrize("table", all_tables(), ids=lambda t: t.full_name)
def test_each_table_and_column_has_a_meaning(table):
    assert table.description.endswith(".")
    assert table.grain.endswith(".")
    assert all(c.description.endswith(".") for c in table.all_columns), [c.name for c in table.all_columns]
    assert {*table.key} <= {c.name for c in table.columns}


@pytest.fixture(scope="module")
def _made(tmp_path_factory):
    directory = tmp_path_factory.mktemp("files")
    made = DuckDBWarehouse(
        directory / "octo.duckdb",
        directory / "octo.private.duckdb",
        tables=all_tables(),
        nouns=nouns(),
        now=datetime(2026, 11, 20, tzinfo=UTC),
    )
    yield made
    made.close()


@pytest.fixture
def warehouse(_made):
    """An empty warehouse; made once, because that takes longer than a test."""
    yield _made
    _made.run_script([f"delete from {t.full_name}" for t in all_tables() if t.schema in ("core", "ops")])


def test_marts_build_on_an_empty_warehouse_and_every_check_passes(warehouse, tmp_path):
    assert apply_marts(warehouse, tmp_path) == len(files("marts"))
    found = run_checks(warehouse, tmp_path)

    assert [checked.check.name for checked in found] == [file.stem for file in files("checks")]
    assert [checked for checked in found if checked.rows.rows] == []
    for mart in sql_files(tmp_path, "marts"):
        named = "select column_name, comment from duckdb_columns() where schema_name = 'marts' and table_name = $1"
        meanings = dict(warehouse.query(named, [mart.name]).rows)
        assert meanings
        assert [column for column, meaning in meanings.items() if not meaning] == [], "every column has a meaning"


SEVERAL_MEANINGS = {"status", "reason", "availability_id", "local_start_at", "utc_start_at", "time_zone"}


def test_a_column_whose_name_means_several_things_is_explained_in_its_mart(warehouse, tmp_path):
    """Else it would get the meaning of whichever core table comes first: a ticket the status of a departure."""
    apply_marts(warehouse, tmp_path)
    for file in files("marts"):
        columns = warehouse.query(f"select * from marts.{file.stem} limit 0").columns
        said = re.findall(r"^-- column: (\w+):", file.read_text(encoding="utf-8"), re.MULTILINE)
        assert SEVERAL_MEANINGS & {*columns} <= {*said}, file.stem


FAULTS = {
    "coverage_rows": "insert into ops.coverage (connection_id, resource, key, product_id, option_id, travel_month, "
    "window_start, window_end, row_count, is_complete) values ('c', 'availability', 'k', 'p', 'o', '2026-11', "
    "date '2026-11-01', date '2026-11-30', 3, true)",
    "coverage_holes": "insert into core.availability (connection_id, product_id, option_id, availability_id, is_deleted) "
    "values ('c', 'p', 'o', 'a', false)",
    # A connection that is there twice would count each of its departures twice.
    "departure_totals": "insert into core.connections (connection_id) values ('c'), ('c'); "
    "insert into core.availability (connection_id, product_id, option_id, "
    "availability_id, local_date, status, is_deleted) values ('c', 'p', 'o', 'a', date '2026-11-20', 'AVAILABLE', false)",
    "history_versions": "insert into core.booking_history (connection_id, booking_uuid, version_no, valid_from_utc, "
    "valid_to_utc, is_current, changed_fields) values ('c', 'b', 1, '2026-11-01', '2026-11-03', false, ''), "
    "('c', 'b', 2, '2026-11-02', '2026-11-04', false, 'status')",
    "local_dates": "insert into core.bookings (connection_id, booking_uuid, local_start_at, local_date, is_deleted) "
    "values ('c', 'b', timestamp '2026-11-20 23:30:00', date '2026-11-21', false)",
    # A connection that is there twice would count each of its bookings twice.
    "mart_totals": "insert into core.connections (connection_id) values ('c'), ('c'); "
    "insert into core.bookings (connection_id, booking_uuid, is_deleted, is_test) values ('c', 'b', false, false)",
    "known_currencies": "insert into core.bookings (connection_id, booking_uuid, retail_minor) values ('c', 'b', 1)",
    "money_exact": "insert into core.bookings (connection_id, booking_uuid, currency, currency_precision, retail_minor, "
    "retail_amount) values ('c', 'b', 'BHD', 3, 1234, 12.34)",
    "orphans": "insert into core.booking_taxes (connection_id, booking_uuid, name) values ('c', 'b', 'VAT')",
    "unique_keys": "insert into core.bookings (connection_id, booking_uuid) values ('c', 'b'), ('c', 'b')",
}


@pytest.mark.parametrize("check", [f.stem for f in files("checks")])
def test_each_check_finds_the_fault_it_is_for(warehouse, tmp_path, check):
    warehouse.run_script([FAULTS[check]])
    apply_marts(warehouse, tmp_path)
    assert check in {checked.check.name for checked in run_checks(warehouse, tmp_path) if checked.rows.rows}


def test_a_file_of_the_project_wins_over_the_shipped_one(warehouse, tmp_path):
    (tmp_path / "warehouse" / "marts").mkdir(parents=True)
    own = "-- name: dim_option\n-- grain: One row.\n-- description: Mine.\nselect 1 as mine"
    (tmp_path / "warehouse" / "marts" / "dim_option.sql").write_text(own, encoding="utf-8")
    apply_marts(warehouse, tmp_path)
    assert warehouse.query("select * from marts.dim_option").columns == ("mine",)
