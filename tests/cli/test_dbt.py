"""dbt itself builds the project that is exported, on DuckDB and on PostgreSQL."""

import json
import os
import subprocess

import pytest
from tests.absent import environment
from tests.cli.conftest import CLEAN
from tests.cli.test_postgres import _both, program, server

__all__ = ["_both", "program", "server"]

# The line after it cannot be installed without a download from outside the package index.
REQUIRED = ("dbt-core>=1.11,<1.12", "dbt-duckdb>=1.11,<2", "dbt-postgres>=1.11,<2")


@pytest.fixture(scope="module")
def dbt(tmp_path_factory):
    """The program, in an environment of its own."""
    return environment(tmp_path_factory.mktemp("dbt"), *REQUIRED) / "dbt"


def build(dbt, folder, environment):
    """What became of each node: `pass`, `success`, …"""
    done = subprocess.run(
        [dbt, "build", "--profiles-dir", ".", "--quiet"],
        cwd=folder,
        env=CLEAN | environment | {"DBT_SEND_ANONYMOUS_USAGE_STATS": "false", "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
        timeout=1200,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr
    results = json.loads((folder / "target" / "run_results.json").read_text())["results"]
    return {result["unique_id"]: result["status"] for result in results}


@pytest.mark.deep(60)
def test_dbt_builds_it_on_a_read_copy_and_its_tests_see_a_key_that_occurs_twice(dbt, looked, tmp_path):
    looked.ok("export", "dbt", "--to", tmp_path / "dbt")
    found = build(dbt, tmp_path / "dbt", {})

    assert found["model.octo.stg_octo__bookings"] == "success"
    assert sum(name.startswith("test.") for name in found) > 100
    assert set(found.values()) <= {"success", "pass", "no-op"}
    model = tmp_path / "dbt" / "models/staging/stg_octo__options.sql"
    model.write_text(f"{model.read_text()} union all {model.read_text()}")
    with pytest.raises(AssertionError, match="unique_together_stg_octo__options"):
        build(dbt, tmp_path / "dbt", {})


@pytest.mark.deep(60)
def test_dbt_builds_it_in_the_database_without_a_password_in_a_file(dbt, program, server, tmp_path):
    secret = server[1]["PGPASSWORD"]
    done = program("export", "dbt", "--to", tmp_path / "dbt")
    assert done.returncode == 0, done.stderr
    assert not [path for path in (tmp_path / "dbt").rglob("*.*") if secret in path.read_text()]
    found = build(dbt, tmp_path / "dbt", {"PGPASSWORD": secret})

    assert found["model.octo.stg_octo__bookings"] == "success"
    assert set(found.values()) <= {"success", "pass", "no-op"}
