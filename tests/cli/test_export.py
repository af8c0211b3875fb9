"""`octo-sync export`: whole files or none, exact values, nothing that a spreadsheet would run."""

import csv
import json
import os
import re
import signal
import stat
import time
from datetime import UTC, datetime
from decimal import Decimal

import openpyxl
import pyarrow.parquet as pq
import pytest
import yaml

import octo_sync
from octo_sync.errors import ConfigError
from octo_sync.flows.export import dbt, workbook
from octo_sync.flows.export.files import ExportError, formula_safe, writing

VALUES = (
    "select 1 as n, 12.5000::decimal(18,4) as amount, timestamptz '2026-01-02 03:04:05Z' as at, date '2026-01-02' as day, "
    "true as yes, 'x' as text, null::text as none, [1, 2] as list, 9007199254740993 as big, 1.5::double as f, "
    "timestamp '2026-01-02 03:04:05.25' as wall, sum(range) as total from range(3)"
)


def rows_of(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def sheet_of(path):
    return openpyxl.load_workbook(path).active


def test_a_table_is_the_same_in_every_format(looked, tmp_path):
    with octo_sync.open(looked.directory / "octo.read.duckdb") as copy:
        expected = copy.sql("select booking_uuid, retail_amount from fct_bookings order by 1").rows()
    for form in ("csv", "parquet", "xlsx", "json", "jsonl"):
        looked.ok("export", "fct_bookings", "--to", tmp_path / f"b.{form}")

    read = {
        "csv": [
            (r["booking_uuid"], r["retail_amount"])
            for r in csv.DictReader((tmp_path / "b.csv").read_text(encoding="utf-8").splitlines())
        ],
        "parquet": [(r["booking_uuid"], r["retail_amount"]) for r in pq.read_table(tmp_path / "b.parquet").to_pylist()],
        "json": [(r["booking_uuid"], r["retail_amount"]) for r in json.loads((tmp_path / "b.json").read_text())],
        "jsonl": [
            (r["booking_uuid"], r["retail_amount"])
            for r in map(json.loads, (tmp_path / "b.jsonl").read_text().splitlines())
        ],
    }
    head, *body = sheet_of(tmp_path / "b.xlsx").iter_rows(values_only=True)
    names = list(head)
    read["xlsx"] = [
        (row[names.index("booking_uuid")], None if (a := row[names.index("retail_amount")]) is None else repr(a))
        for row in body
    ]

    assert len(expected) > 50
    for form, found in read.items():
        exact = sorted((uuid, Decimal(amount) if amount not in (None, "") else None) for uuid, amount in found)
        assert exact == expected, form


@pytest.mark.deep(1)
def test_what_each_format_says_of_each_kind_of_value(looked, tmp_path):
    for form in ("csv", "parquet", "xlsx", "jsonl"):
        looked.ok("export", "--sql", VALUES, "--to", tmp_path / f"v.{form}")

    texts = ["2026-01-02T03:04:05Z", "2026-01-02"]
    assert rows_of(tmp_path / "v.csv")[1] == [
        "1", "12.5000", *texts, "true", "x", "", "[1,2]", "9007199254740993", "1.5", "2026-01-02T03:04:05.250000", "3",
    ]  # fmt: skip
    assert list(json.loads((tmp_path / "v.jsonl").read_text()).values()) == [
        1, "12.5000", *texts, True, "x", None, [1, 2], 9007199254740993, 1.5, "2026-01-02T03:04:05.250000", 3,
    ]  # fmt: skip
    (kept,) = pq.read_table(tmp_path / "v.parquet").to_pylist()
    assert kept["amount"] == Decimal("12.5000")
    assert kept["at"] == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert kept["total"] == 3
    assert str(pq.read_schema(tmp_path / "v.parquet").field("total").type) == "int64"
    cells = [cell.value for cell in list(sheet_of(tmp_path / "v.xlsx").rows)[1]]
    assert cells[:7] == [1, 12.5, datetime(2026, 1, 2, 3, 4, 5), datetime(2026, 1, 2), True, "x", None]  # noqa: DTZ001
    assert cells[7:] == ["[1,2]", "9007199254740993", 1.5, datetime(2026, 1, 2, 3, 4, 5, 250000), 3]  # noqa: DTZ001


def test_a_workbook_has_a_head_that_stays_filters_text_ids_and_each_currencys_decimals(looked, tmp_path):
    query = (
        "select '007' as booking_id, * from (values ('JPY', 0, 1200.0000::decimal(18,4)), ('EUR', 2, 12.5), ('KWD', 3, 1.125)) "
        "t(currency, currency_precision, retail_amount)"
    )
    looked.ok("export", "--sql", query, "--to", tmp_path / "v.xlsx")
    sheet = sheet_of(tmp_path / "v.xlsx")

    assert [cell.font.bold for cell in sheet[1]] == [True] * 4
    assert sheet.freeze_panes == "A2"
    assert sheet.auto_filter.ref == "A1:D4"
    assert [(c.value, c.data_type, c.number_format) for c in sheet["A"][1:]] == [("007", "s", "@")] * 3
    assert [c.number_format for c in sheet["D"][1:]] == ["#,##0", "#,##0.00", "#,##0.000"]
    assert [c.value for c in sheet["D"][1:]] == [1200, 12.5, 1.125]


def test_decimals_come_from_the_currency_where_the_row_does_not_say(looked, tmp_path):
    looked.ok("export", "agg_bookings_daily", "--to", tmp_path / "v.xlsx")
    head, *body = sheet_of(tmp_path / "v.xlsx").rows
    names = [cell.value for cell in head]
    column = next(i for i, name in enumerate(names) if name.endswith("_amount"))
    shown = {
        (row[names.index("currency")].value, row[column].number_format) for row in body if row[column].value is not None
    }

    assert "currency_precision" not in names
    assert shown
    assert {form for currency, form in shown if currency == "JPY"} <= {"#,##0"}
    assert {form for currency, form in shown if currency == "EUR"} <= {"#,##0.00"}


DANGEROUS = ["=1+1", "+1", "-1+cmd", "@SUM(A1)", "\t=1", "\r=1", '=HYPERLINK("http://x")']


def test_a_csv_holds_no_formula_and_numbers_stay_numbers(looked, tmp_path):
    quoted = ", ".join("'" + text.replace("'", "''") + "'" for text in DANGEROUS)
    query = f"select unnest([{quoted}, 'harmless', '']) as \"=head\", -5 as n, -1.5::decimal(18,4) as amount"
    looked.ok("export", "--sql", query, "--to", tmp_path / "safe.csv")
    looked.ok("export", "--sql", query, "--to", tmp_path / "raw.csv", "--raw")
    looked.ok("export", "--sql", query, "--to", tmp_path / "v.xlsx")

    head, *rows = rows_of(tmp_path / "safe.csv")
    assert head[0] == "'=head"
    assert [row[0] for row in rows] == [*("'" + text for text in DANGEROUS), "harmless", ""]
    assert {tuple(row[1:]) for row in rows} == {("-5", "-1.5000")}
    assert [row[0] for row in rows_of(tmp_path / "raw.csv")] == ["=head", *DANGEROUS, "harmless", ""]
    sheet = sheet_of(tmp_path / "v.xlsx")
    assert {cell.data_type for cell in sheet["A"] if cell.value} == {"s"}
    assert all(cell.hyperlink is None for cell in sheet["A"])


@pytest.mark.parametrize("text", [None, "", "a=b", "1", " =1"])
def test_what_is_no_formula_stays_as_it_is(text):
    assert formula_safe(text) == text


@pytest.mark.deep(3)
def test_nothing_is_overwritten_unasked_and_a_failure_leaves_what_was_there(looked, tmp_path):
    target = tmp_path / "b.csv"
    target.write_text("mine")

    refused = looked("export", "bookings", "--to", target)
    assert (refused.returncode, target.read_text()) == (2, "mine")
    assert "--force" in refused.stderr
    late = "select case when range = 199999 then error('x') else 'y' end from range(200000)"
    for form in ("csv", "parquet", "xlsx", "json"):
        failed = looked("export", "--sql", late, "--to", target, "--force", "--format", form)
        assert (failed.returncode, target.read_text()) == (2, "mine"), form
    assert sorted(p.name for p in tmp_path.iterdir()) == ["b.csv"], "nothing is left beside it"
    looked.ok("export", "bookings", "--to", target, "--force")
    assert target.read_text().startswith("connection_id,")


@pytest.mark.parametrize("words", [("export", "bookings", "--force"), ("report",)], ids=lambda words: words[0])
def test_no_file_takes_the_place_of_a_pipe_or_a_device(looked, tmp_path, words):
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)

    refused = looked(*words, "--to", pipe)

    assert (refused.returncode, pipe.is_fifo()) == (2, True)
    assert "a device or a pipe" in refused.stderr


def test_a_file_is_for_its_owner_only(looked, tmp_path):
    for form in ("csv", "xlsx"):
        looked.ok("export", "bookings", "--to", tmp_path / f"b.{form}")
        assert stat.S_IMODE((tmp_path / f"b.{form}").stat().st_mode) == 0o600


def test_an_export_that_is_stopped_leaves_nothing(looked, tmp_path):
    process = looked.start(
        "export", "--sql", "select range, 'x' || range from range(50000000)", "--to", tmp_path / "b.csv"
    )
    end = time.monotonic() + 20
    while not any(tmp_path.iterdir()) and time.monotonic() < end:
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=120)

    assert process.returncode == 143
    assert list(tmp_path.iterdir()) == []


def test_a_signal_just_after_its_file_was_made_leaves_nothing(tmp_path, monkeypatch):
    does = os.open

    def interrupted(*given):
        os.close(does(*given))
        raise KeyboardInterrupt

    monkeypatch.setattr("octo_sync.flows.export.files.os.open", interrupted)
    with pytest.raises(KeyboardInterrupt), writing(tmp_path / "b.csv", force=False):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.deep(10)
def test_more_rows_than_a_sheet_holds_and_longer_texts_are_said(looked, tmp_path):
    many = looked("export", "--sql", "select 1 as a from range(1048576)", "--to", tmp_path / "v.xlsx")
    long = looked("export", "--sql", "select repeat('x', 40000) as a", "--to", tmp_path / "v.xlsx")

    assert many.returncode == long.returncode == 1
    assert "1,048,576 rows" in many.stderr
    assert "40,000 characters" in long.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.deep(2)
def test_several_things_go_into_a_folder(looked, tmp_path):
    document = looked.json("export", "bookings", "dim_product", "dbt", "--to", tmp_path / "out", "--format", "csv")

    assert {p.name for p in (tmp_path / "out").iterdir()} == {"bookings.csv", "dim_product.csv", "dbt"}
    assert document["files"][0]["rows"] == len(rows_of(tmp_path / "out/bookings.csv")) - 1
    looked.ok("export", "marts", "--to", tmp_path / "marts/", "--format", "parquet")
    marts = {t["name"] for t in looked.json("tables")["tables"] if t["schema"] == "marts"}
    assert {p.stem for p in (tmp_path / "marts").iterdir()} == marts


@pytest.mark.deep(2)
def test_names_have_no_schema_but_where_two_are_the_same(looked, tmp_path):
    looked.ok(
        "export", "marts.coverage", "ops.coverage", "core.bookings", "bookings", "--to", tmp_path, "--format", "csv"
    )

    assert {p.name for p in tmp_path.iterdir()} == {"marts.coverage.csv", "ops.coverage.csv", "bookings.csv"}


@pytest.mark.deep(5)
def test_several_things_go_into_one_workbook_with_a_sheet_each(looked, tmp_path):
    file = tmp_path / "all.xlsx"
    (written,) = looked.json("export", "marts", "--to", file)["files"]
    marts = [t for t in looked.json("tables")["tables"] if t["schema"] == "marts"]
    book = openpyxl.load_workbook(file, read_only=True)

    assert book.sheetnames == [sheet["name"] for sheet in written["sheets"]] == [t["name"] for t in marts]
    assert [sheet["rows"] for sheet in written["sheets"]] == [t["rows"] for t in marts]
    assert written["rows"] == sum(t["rows"] for t in marts)
    for sheet, mart in zip(book, marts, strict=True):
        head, *body = sheet.iter_rows(values_only=True)
        assert len(body) == mart["rows"], mart["name"]
        assert list(head) == [c["name"] for c in looked.json("tables", f"marts.{mart['name']}")["columns"]]
    assert list(tmp_path.iterdir()) == [file]
    again = looked("export", "marts", "--to", file)
    assert (again.returncode, "--force" in again.stderr) == (2, True)
    said = looked.ok("export", "dim_channel", "weak_departures", "--format", "xlsx", "--to", file, "--force")
    assert re.fullmatch(r"\S+all\.xlsx  2 sheets, [\d,]+ rows  \S+ kB\n", said)
    assert openpyxl.load_workbook(file).sheetnames == ["dim_channel", "weak_departures"]


def test_a_table_too_long_for_a_sheet_is_named_and_nothing_is_written(looked, tmp_path, monkeypatch):
    monkeypatch.setattr(workbook, "ROWS", 4)
    with octo_sync.open(looked.directory / "octo.read.duckdb") as copy:
        tables = [(f"t{n}", copy.sql(f"from range({n})").batches()) for n in (3, 4)]
        with pytest.raises(ExportError, match="t4 has more; take csv"):
            workbook.export_together(tables, tmp_path / "v.xlsx")

    assert list(tmp_path.iterdir()) == []


def test_sheets_are_called_as_excel_can_take_it(looked, tmp_path):
    long = "a_name_that_is_longer_than_a_sheet_s"
    titles = ["History", "a/b", "A_B", f"{long}_1", f"{long}_2", ""]
    with octo_sync.open(looked.directory / "octo.read.duckdb") as copy:
        tables = ((title, copy.sql("select 1 as a").batches()) for title in titles)
        workbook.export_together(tables, tmp_path / "v.xlsx")

    wanted = ["History_2", "a_b", "A_B_2", long[:31], f"{long[:29]}_2", "rows"]
    assert openpyxl.load_workbook(tmp_path / "v.xlsx").sheetnames == wanted


def test_an_earlier_folder_of_that_name_is_said(looked, tmp_path):
    (tmp_path / "all.xlsx").mkdir()
    done = looked("export", "marts", "--to", tmp_path / "all.xlsx")

    assert done.returncode == 2
    assert "all.xlsx is a folder; name another file" in done.stderr


def test_a_question_is_exported_with_its_parameters(looked, tmp_path):
    asked = looked.json("ask", "weak_departures", "--param", "below=1")
    looked.ok("export", "weak_departures", "--param", "below=1", "--to", tmp_path / "q.jsonl")

    assert [json.loads(line) for line in (tmp_path / "q.jsonl").read_text().splitlines()] == asked["rows"]


@pytest.mark.deep(2)
def test_no_rows_are_a_head_and_nothing_else(looked, tmp_path):
    for form in ("csv", "json", "jsonl", "parquet", "xlsx"):
        looked.ok("export", "--sql", "select 1 as a, 'x' as b where false", "--to", tmp_path / f"e.{form}")

    assert (tmp_path / "e.csv").read_text() == "a,b\n"
    assert json.loads((tmp_path / "e.json").read_text()) == []
    assert (tmp_path / "e.jsonl").read_text() == ""
    assert pq.read_table(tmp_path / "e.parquet").column_names == ["a", "b"]
    assert [c.value for c in sheet_of(tmp_path / "e.xlsx")[1]] == ["a", "b"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["bookings", "--to", "x"], "Which format"),
        (["bookings", "--to", "x.ods"], "No format ends in .ods; say --format csv|"),
        (["marts", "--to", "x.ods"], "No format ends in .ods"),
        (
            ["marts", "--to", "x.csv"],
            "A file of each: --to x/ --format csv; one workbook with a sheet of each: --to x.xlsx",
        ),
        (["marts", "--to", "x.xlsx", "--format", "csv"], "A csv file holds one table"),
        (["bookings", "dbt", "--to", "x.xlsx"], "dbt is no table"),
        (["boookings", "--to", "x.csv"], 'did you mean "bookings"'),
        (["--to", "x.csv"], "Say what"),
        (["bookings", "--sql", "select 1", "--to", "x.csv"], "Say what"),
        (["--sql", "delete from bookings", "--to", "x.csv"], "not a reading statement"),
        (["--sql", "from read_csv('/etc/passwd')", "--to", "x.csv"], "no file"),
    ],
)
def test_a_mistake_is_said_and_writes_nothing(looked, words, said):
    before = sorted(looked.directory.iterdir())
    done = looked("export", *words)

    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert sorted(looked.directory.iterdir()) == before


def test_the_sources_of_dbt_describe_everything_and_their_tests_hold(looked, tmp_path):
    looked.ok("export", "dbt", "--to", tmp_path / "a.yml")
    looked.ok("export", "dbt", "--to", tmp_path / "b.yml")
    document = yaml.safe_load((tmp_path / "a.yml").read_text())
    found = {(source["schema"], table["name"]): table for source in document["sources"] for table in source["tables"]}

    assert (tmp_path / "a.yml").read_bytes() == (tmp_path / "b.yml").read_bytes()
    unique = 0
    with octo_sync.open(looked.directory / "octo.read.duckdb") as copy:
        assert set(found) == {(t.schema, t.name) for t in copy.tables()}
        for (schema, name), table in found.items():
            assert table["description"], name
            for column in table["columns"]:
                for test in column.get("data_tests", ()):
                    query = {
                        "not_null": f"select count(*) from {schema}.{name} where {column['name']} is null",
                        "unique": f"select count({column['name']}) - count(distinct {column['name']}) from {schema}.{name}",
                    }[test]
                    assert copy.sql(query).rows() == [(0,)], (schema, name, column["name"], test)
                    unique += test == "unique"
    assert unique >= 5
    assert "data_tests" in next(c for c in found["marts", "fct_bookings"]["columns"] if c["name"] == "booking_key")


@pytest.mark.deep(5)
def test_a_dbt_project_has_sources_models_tests_and_what_shows_them(looked, tmp_path):
    looked.ok("export", "dbt", "--to", tmp_path / "dbt")
    read = {path.relative_to(tmp_path / "dbt").as_posix(): path.read_text() for path in (tmp_path / "dbt").rglob("*.*")}
    documents = {name: yaml.safe_load(text) for name, text in read.items() if name.endswith(".yml")}

    core = {t["name"] for t in looked.json("tables")["tables"] if t["schema"] == "core"}
    models = {model["name"] for model in documents["models/staging.yml"]["models"]}
    assert models == {f"stg_octo__{name}" for name in core}
    assert {f"models/staging/{name}.sql" for name in models} == {name for name in read if "/staging/" in name}
    assert read["models/staging/stg_octo__bookings.sql"].endswith(
        "from {{ source('octo_core', 'bookings') }}\nwhere not is_deleted\n"
    )
    (attached,) = documents["profiles.yml"]["octo"]["outputs"]["dev"]["attach"]
    assert attached == {"path": str(looked.directory / "octo.read.duckdb"), "alias": "octo", "read_only": True}
    assert "source('octo_marts', 'fct_bookings')" in documents["models/exposures.yml"]["exposures"][0]["depends_on"]
    for name in ("dbt_project.yml", "profiles.yml"):
        (tmp_path / "dbt" / name).unlink()
    again = looked("export", "dbt", "--to", tmp_path / "dbt")
    assert (again.returncode, "--force" in again.stderr) == (2, True)
    assert not (tmp_path / "dbt" / "dbt_project.yml").exists(), "nothing is written where one file is in the way"
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "models").write_text("a file where a folder has to be")
    assert looked("export", "dbt", "--to", tmp_path / "other").returncode == 2
    assert [p.name for p in (tmp_path / "other").rglob("*") if p.is_file()] == ["models"]
    looked.ok("export", "dbt", "--to", f"{tmp_path}/folder.yml/")
    assert (tmp_path / "folder.yml" / "dbt_project.yml").exists()
    assert looked("export", "dbt", "--to", "").returncode == 2


@pytest.mark.parametrize(
    ("address", "wanted"),
    [
        ("postgresql://me%40x:s3cret@h.example:6000/my%20db?sslpassword=s3cret&sslmode=require&sslkey=k.pem",
         {"host": "h.example", "port": 6000, "user": "me@x", "dbname": "my db", "sslmode": "require", "sslkey": "k.pem"}),
        ("postgresql:///octo?host=/run/postgresql&user=me&password=s3cret&port=6001",
         {"host": "/run/postgresql", "port": 6001, "user": "me", "dbname": "octo"}),
    ],
)  # fmt: skip
def test_a_dbt_profile_names_the_database_and_nothing_secret(address, wanted):
    text = dbt.project([], address, [])["profiles.yml"]
    (found,) = yaml.safe_load(text)["octo"]["outputs"].values()
    more = {"type": "postgres", "password": "{{ env_var('PGPASSWORD', '') }}", "schema": "octo_dbt"}
    assert found == wanted | more
    assert "s3cret" not in text


def test_dbt_takes_one_host():
    with pytest.raises(ConfigError, match="several hosts"):
        dbt.project([], "postgresql://me@h1:5432,h2:5433/octo", [])


@pytest.mark.deep(2)
def test_folders_on_the_way_are_made_and_what_cannot_be_is_said(looked, tmp_path):
    looked.ok("export", "dbt", "--to", tmp_path / "models/octo/sources.yml")
    looked.ok("export", "dim_date", "--to", f"{tmp_path}/new/", "--format", "csv")

    assert "version: 2" in (tmp_path / "models/octo/sources.yml").read_text()
    assert (tmp_path / "new/dim_date.csv").is_file(), "a slash at the end says that it is a folder"
    (tmp_path / "file").touch()
    inside = looked("export", "dim_date", "--to", tmp_path / "file/x.csv")
    assert inside.returncode == 2
    assert f"{tmp_path / 'file'} is a file and no folder" in inside.stderr
    below = looked("export", "dim_date", "--to", tmp_path / "file/deeper/x.csv")
    assert below.returncode == 2
    assert "cannot be written: Not a directory; name another place" in below.stderr
