"""Every block of docs/reading.md runs, and the copy opens with the DuckDB before the present one."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.absent import absent
from tests.cli.conftest import CLEAN

import octo_sync

PAGE = Path(__file__).resolve().parents[2] / "docs/reading.md"
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
OLDER = "1.5"
QUERY = (
    "select status, currency, count(*) as bookings, sum(retail_amount)::varchar as amount from marts.fct_bookings "
    "group by all order by all"
)


def installed(directory, requirement):
    """A folder with a library that the project does not have; absent where no package index can be reached."""
    uv = shutil.which("uv")
    if uv is None:
        absent("uv is not installed, so no other version can be tried")
    done = subprocess.run(
        [uv, "pip", "install", "--quiet", "--python", sys.executable, "--target", directory, requirement],
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )
    if done.returncode:
        absent(f"{requirement} cannot be installed: {done.stderr.strip().splitlines()[-1][:200]}")
    return directory


@pytest.mark.parametrize(("ci", "ended"), [("", pytest.skip.Exception), ("true", pytest.fail.Exception)])
def test_what_cannot_be_tried_is_skipped_but_fails_in_ci(monkeypatch, tmp_path, ci, ended):
    monkeypatch.setenv("CI", ci)
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(ended, match="uv is not installed"):
        installed(tmp_path, "polars")


def run(words, directory, libraries=None, **more):
    scripts = Path(sys.executable).parent
    env = CLEAN | {"PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"}
    env |= {"PYTHONPATH": str(libraries)} if libraries else {}
    return subprocess.run(
        words, cwd=directory, env=env, capture_output=True, text=True, check=False, timeout=120, **more
    )


def test_the_page_has_blocks_of_these_kinds_only():
    assert len(BLOCKS) >= 7
    assert {kind for kind, _ in BLOCKS} == {"bash", "python"}


@pytest.mark.deep(3, everyday=["0"])
@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_a_block_of_the_page_runs(number, project, tmp_path):
    kind, code = BLOCKS[number]
    libraries = installed(tmp_path / "libraries", "polars") if "polars" in code else None
    words = ["bash", "-euc", code] if kind == "bash" else [sys.executable, "-W", "error", "-c", code]

    done = run(words, project.directory, libraries)

    assert done.returncode == 0, (code, done.stdout, done.stderr)
    assert done.stdout, "every block shows something"


@pytest.mark.deep(1)
def test_the_copy_opens_with_an_older_duckdb_and_says_the_same(looked, tmp_path):
    libraries = installed(tmp_path / "libraries", f"duckdb=={OLDER}.*")
    program = (
        "import duckdb\n"
        f"assert duckdb.__version__.startswith('{OLDER}.'), duckdb.__version__\n"
        "with duckdb.connect('octo.read.duckdb', read_only=True) as copy:\n"
        f"    print(copy.execute({QUERY!r}).fetchall())\n"
        '    marts = [n for n, in copy.execute("select table_name from information_schema.tables '
        "where table_schema = 'marts'\").fetchall()]\n"
        "    for name in marts:\n"
        "        copy.execute(f'select * from marts.{name} limit 1').fetchall()\n"
        "    print(len(marts))\n"
    )

    done = run([sys.executable, "-c", program], looked.directory, libraries)

    assert done.returncode == 0, done.stderr
    rows, marts = done.stdout.splitlines()
    with octo_sync.open(looked.directory / "octo.read.duckdb") as copy:
        assert rows == repr(copy.sql(QUERY).rows())
        assert int(marts) == sum(t.schema == "marts" for t in copy.tables()) > 10
