"""One dialect: every file is one select that DuckDB and PostgreSQL both read, and both give the same rows."""

import datetime as dt
import re
from decimal import Decimal
from pathlib import Path

import pytest
import sqlglot

from octo_sync.flows import ask
from octo_sync.flows.publish import run_checks

WAREHOUSE = Path(__file__).parents[2] / "warehouse"
FILES = sorted(f for kind in ("marts", "checks", "questions") for f in (WAREHOUSE / kind).glob("*.sql"))
MARTS = sorted(f.stem for f in (WAREHOUSE / "marts").glob("*.sql"))
EMPTY = {"recon_open", "data_quality", "closed_periods", "period_adjustments"}
"""Marts without a row in the tests' world; what they show is tested elsewhere."""


def named(file):
    return f"{file.parent.name}/{file.stem}"


@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
@pytest.mark.parametrize("file", FILES, ids=named)
def test_each_file_is_one_select_in_both_dialects(file, dialect):
    # `:name` is how sqlglot spells a parameter of either engine.
    text = re.sub(r"\$([a-z]\w*)", r":\1", file.read_text(encoding="utf-8"))
    (parsed,) = sqlglot.parse(text, dialect=dialect)

    assert isinstance(parsed, sqlglot.exp.Query)
    assert not list(parsed.find_all(sqlglot.exp.Command))


@pytest.mark.parametrize("file", FILES, ids=named)
def test_no_file_reads_a_clock_or_draws_lots(file):
    for word in ("current_date", "current_timestamp", "localtimestamp", r"now\(\)", "random", "gen_random_uuid"):
        assert not re.search(rf"\b{word}", re.sub(r"--.*", "", file.read_text(encoding="utf-8")).lower()), word


@pytest.mark.parametrize("file", [f for f in FILES if "string_agg" in f.read_text(encoding="utf-8")], ids=named)
def test_where_order_makes_a_value_it_is_that_of_code_points(file):
    """A database has an order of texts of its own, as en_US.UTF-8: `adult` before `Baby` there, after it elsewhere."""
    for dialect in ("duckdb", "postgres"):
        parsed = sqlglot.parse_one(re.sub(r"\$([a-z]\w*)", r":\1", file.read_text(encoding="utf-8")), dialect=dialect)
        orders = [order for order in parsed.find_all(sqlglot.exp.Order) if order.find_ancestor(sqlglot.exp.GroupConcat)]
        assert orders
        for order in orders:
            assert all('COLLATE "C"' in each.sql(dialect) for each in order.expressions), order.sql(dialect)


@pytest.mark.parametrize("file", [f for f in FILES if f.parent.name == "questions"], ids=named)
def test_a_question_declares_the_parameters_it_uses(file):
    question = next(q for q in ask.questions(Path("nowhere")) if q.file.path == file)
    select = re.sub(r"--.*", "", question.sql)

    assert {p.name for p in question.parameters} == set(re.findall(r"\$([a-z]\w*)", select))
    assert question.question.endswith("?")
    assert question.description.endswith(".")
    assert len(select.strip().splitlines()) <= 55, "each question is one short query on the marts"


def plain(value):
    if isinstance(value, Decimal):
        return value.normalize() + 0
    if isinstance(value, dt.datetime) and value.tzinfo:
        return value.astimezone(dt.UTC)
    return value


@pytest.mark.parametrize("mart", MARTS)
def test_a_mart_has_the_same_rows_on_both_engines(duck, postgres, mart):
    here, there = (engine.query(f"select * from marts.{mart}") for engine in (duck, postgres))

    assert here.columns == there.columns
    assert here.rows or mart in EMPTY, f"{mart} has no row in the tests' world; let it have some, or name it in EMPTY"
    assert sorted(repr([plain(v) for v in row]) for row in here.rows) == sorted(
        repr([plain(v) for v in row]) for row in there.rows
    )


def test_every_check_passes_on_both_engines(engine, world):
    found = run_checks(engine, world.project.directory)

    assert len(found) == len(list((WAREHOUSE / "checks").glob("*.sql")))
    assert [checked for checked in found if checked.rows.rows] == []


def test_every_mart_and_column_says_what_it_means_on_postgresql_too(postgres):
    silent = postgres.query(
        "select c.relname, a.attname from pg_class c join pg_namespace n on n.oid = c.relnamespace "
        "join pg_attribute a on a.attrelid = c.oid and a.attnum >= 0 "
        "where n.nspname = 'marts' and c.relkind in ('r', 'v') "
        "and (col_description(c.oid, a.attnum) is null or obj_description(c.oid) is null)"
    )
    assert silent.rows == []


@pytest.mark.parametrize("mart", MARTS)
def test_counts_and_keys_have_types_that_bi_tools_take(duck, mart):
    """HUGEINT would reach pandas as a float."""
    types = dict(
        duck.query(
            "select column_name, data_type from duckdb_columns() where schema_name = 'marts' and table_name = $1",
            [mart],
        ).rows
    )
    assert {name: kind for name, kind in types.items() if kind in ("HUGEINT", "UHUGEINT", "NULL", "INTERVAL")} == {}


def test_every_month_in_a_mart_is_a_date_for_a_time_axis(engine):
    columns = (
        "select table_name || '.' || column_name, lower(data_type) from information_schema.columns "
        "where table_schema = 'marts' and (column_name like '%\\_month' escape '\\' or column_name = 'period')"
    )
    types = dict(engine.query(columns).rows)
    assert types.pop("dim_date.day_of_month") == "integer"
    assert {"coverage.booking_month", "fct_bookings.travel_month", "month_totals.period"} < types.keys()
    assert set(types.values()) == {"date"}
