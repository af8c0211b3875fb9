"""The wheel and the sdist hold what they should, and never a database, a secret or a test."""

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from scripts.lock_inputs import digest
from scripts.pictures import PAGES

ROOT = Path(__file__).resolve().parent.parent
CODE = (".py", ".md", ".sql", ".j2", ".css", ".js", ".svg", ".txt")

# What lies around in a checkout that somebody works in.
LITTER = (
    "octo.duckdb",
    "octo.read.duckdb",
    "octo.journal.sqlite",
    "octo.journal.sqlite-wal",
    ".env",
    "pipelines/octo.duckdb",
    "pipelines/.env",
    "pipelines/acme.token",
    "warehouse/octo.private.duckdb",
    "warehouse/core/octo.duckdb.wal",
    "warehouse/custom/bookings.csv",
    "src/octo_sync/octo.duckdb",
    "src/octo_sync/journal/octo.journal.sqlite",
    "src/octo_sync/__pycache__/model.cpython-311.pyc",
    "src/octo_sync/.DS_Store",
    "tests/octo.duckdb",
    "spool/bodies.ndjson",
    "deploy/docker/secrets/octo",
    "deploy/docker/octo-sync.env",
    "deploy/acme.token",
)
WANTED = ("warehouse/marts/planted.sql", "warehouse/custom/README.md", "pipelines/planted.toml")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    copy = tmp_path_factory.mktemp("checkout") / "octo-sync"
    for name in ("src", "pipelines", "warehouse", "deploy"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE"):
        shutil.copy(ROOT / name, copy / name)
    for name in (*LITTER, *WANTED):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_text("# planted\n")
    # hatchling itself, without isolation: the same backend that uv and pip call, and no network.
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-t", "sdist"],
        cwd=copy,
        check=True,
        capture_output=True,
        timeout=120,
    )
    return copy


@pytest.fixture(scope="module")
def wheel(checkout):
    return next((checkout / "dist").glob("*.whl"))


@pytest.fixture(scope="module")
def wheel_files(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.fixture(scope="module")
def sdist_files(checkout):
    with tarfile.open(next((checkout / "dist").glob("*.tar.gz"))) as archive:
        return {name.split("/", 1)[1] for name in archive.getnames()}


def _below(checkout, folder, suffixes, names=()):
    return {
        path.relative_to(checkout / folder).as_posix()
        for path in (checkout / folder).rglob("*")
        if path.is_file() and (path.suffix in suffixes or path.name in names)
    }


def _expected(checkout):
    code = _below(checkout, "src/octo_sync", CODE, ("py.typed",))
    pipelines = {path.name for path in (checkout / "pipelines").glob("*.toml")}
    unread = "core/", "spark/"
    warehouse = {n for n in _below(checkout, "warehouse", (".sql",), ("README.md",)) if not n.startswith(unread)}
    deploy = _below(checkout, "deploy", (".j2", ".sql", ".json", ".yml"), ("requirements.lock",))
    return code, pipelines, warehouse, deploy


def test_the_wheel_holds_the_package_the_pipelines_and_the_warehouse_and_nothing_else(checkout, wheel_files):
    code, pipelines, warehouse, deploy = _expected(checkout)
    expected = (
        {f"octo_sync/{name}" for name in code if not name.endswith(".md")}
        | {f"octo_sync/_pipelines/{name}" for name in pipelines}
        | {f"octo_sync/_warehouse/{name}" for name in warehouse}
        | {f"octo_sync/_deploy/{name}" for name in deploy}
    )

    assert {name for name in wheel_files if ".dist-info/" not in name} == expected
    assert {
        "octo_sync/py.typed",
        "octo_sync/_pipelines/sandbox.toml",
        "octo_sync/_pipelines/example.toml",
        "octo_sync/_warehouse/marts/planted.sql",
        "octo_sync/_deploy/systemd/octo-sync.service.j2",
        "octo_sync/_deploy/docker/.dockerignore.j2",
        "octo_sync/_deploy/docker/requirements.lock",
    } <= wheel_files
    assert any(name.endswith("licenses/LICENSE") for name in wheel_files)


def test_the_wheel_is_at_most_a_megabyte_and_a_half(wheel):
    assert wheel.stat().st_size <= 1_500_000


def test_the_sdist_holds_the_sources_of_the_wheel_and_what_a_build_needs(checkout, sdist_files):
    code, pipelines, warehouse, deploy = _expected(checkout)
    expected = (
        {f"src/octo_sync/{name}" for name in code}
        | {f"pipelines/{name}" for name in pipelines}
        | {f"warehouse/{name}" for name in warehouse}
        | {f"deploy/{name}" for name in deploy}
        | {"README.md", "CHANGELOG.md", "LICENSE", "pyproject.toml", "PKG-INFO"}
    )

    # hatchling adds .gitignore, because its own exclusions depend on it.
    assert sdist_files - {".gitignore"} == expected


def test_the_projects_addresses_are_placeholders_until_there_is_a_repository():
    """With a repository: change PLACEHOLDER here, `[project.urls]`, and the address in SECURITY.md."""
    placeholder, mail = "https://example.com/octo-sync", "`security@example.com`"
    addresses = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]

    assert set(addresses) == {"Homepage", "Documentation", "Source", "Changelog", "Issues"}
    assert [address for address in addresses.values() if not address.startswith(placeholder)] == []
    assert mail in (ROOT / "SECURITY.md").read_text(encoding="utf-8")


def test_the_pictures_of_the_docs_are_small_used_and_made_by_one_command():
    images = ROOT / "docs" / "img"
    made = {path.name for path in images.iterdir()}
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "README.md", *(ROOT / "docs").glob("*.md"))]

    assert made == {f"{name}.png" for name in PAGES} | {"demo.svg", "marts.svg"}
    assert [name for name in made if (images / name).stat().st_size > 200_000] == []
    assert [name for name in made if not any(f"img/{name})" in text for text in texts)] == []


@pytest.mark.parametrize("archive", ["wheel_files", "sdist_files"])
def test_nothing_that_lies_around_is_packed(archive, request):
    files = request.getfixturevalue(archive)

    assert [
        name for name in files if re.search(r"duckdb$|\.wal$|\.sqlite|\.env|\.token|\.csv|ndjson|\.pyc|^tests/", name)
    ] == []


def test_every_file_of_the_package_is_of_a_kind_that_is_packed():
    known = {*CODE, ".typed", ".pyc"}
    strange = [
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "src/octo_sync").rglob("*")
        if path.is_file() and path.suffix not in known
    ]

    assert strange == [], "add the kind to the include lists of wheel and sdist in pyproject.toml, or remove the file"


def test_an_installed_wheel_finds_its_pipelines_and_its_warehouse(wheel, tmp_path):
    shutil.unpack_archive(wheel, tmp_path / "site", format="zip")
    code = (
        "from pathlib import Path\n"
        "from octo_sync.pipeline import find\n"
        "from octo_sync.pipeline.shipped import local_or_shipped, shipped\n"
        "print(shipped('pipelines'), shipped('warehouse'), find('sandbox', Path.cwd()), sep='\\n')\n"
        "print(*local_or_shipped('warehouse', Path.cwd(), 'marts/planted.sql').values())\n"
        "print(shipped('deploy'))\n"
    )
    (tmp_path / "empty").mkdir()
    environ = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}

    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path / "empty", env=environ, check=True, capture_output=True, text=True
    )

    package = tmp_path / "site/octo_sync"
    assert done.stdout.splitlines() == [
        str(package / "_pipelines"),
        str(package / "_warehouse"),
        str(package / "_pipelines/sandbox.toml"),
        str(package / "_warehouse/marts/planted.sql"),
        str(package / "_deploy"),
    ]


def test_extras_and_groups_of_the_same_name_are_equal():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())

    assert set(project["project"]["optional-dependencies"]) == {"test", "delta", "mcp", "postgres", "xlsx"}
    for name, wanted in project["project"]["optional-dependencies"].items():
        assert project["dependency-groups"][name] == wanted


def test_no_python_version_is_pinned_by_a_file():
    assert not (ROOT / ".python-version").exists()
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"] == ">=3.11"


def _locked():
    """name → [(version, marker)]; a package may be locked once per Python."""
    found = {}
    for line in (ROOT / "requirements.lock").read_text().splitlines():
        if line and not line.startswith(("#", " ")):
            requirement = Requirement(line.removesuffix("\\"))
            (pin,) = requirement.specifier
            found.setdefault(canonicalize_name(requirement.name), []).append((pin.version, requirement.marker))
    return found


def _direct():
    """Every requirement in pyproject.toml that is locked: those of all groups but `docs`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    groups = [group for name, group in project["dependency-groups"].items() if name != "docs"]
    extras = project["project"]["optional-dependencies"].values()
    lines = [*project["project"]["dependencies"], *(line for group in (*groups, *extras) for line in group)]
    return [Requirement(line) for line in lines if isinstance(line, str)]


def test_the_lock_was_written_from_this_pyproject():
    lock = (ROOT / "requirements.lock").read_text()
    current = digest((ROOT / "pyproject.toml").read_text())

    assert f"# inputs: sha256:{current}\n" in lock, "requirements.lock is not current; run scripts/lock.sh"


def test_the_lock_satisfies_every_direct_requirement():
    locked = _locked()
    wrong = [
        str(requirement)
        for requirement in _direct()
        for version, _ in locked.get(canonicalize_name(requirement.name), [("", None)])
        if not version or not requirement.specifier.contains(version)
    ]

    assert wrong == []


def test_the_lock_is_closed_under_what_its_packages_require_here():
    locked = _locked()
    todo = [(canonicalize_name(each.name), frozenset(each.extras)) for each in _direct()]
    done, missing = set(), []
    while todo:
        package = todo.pop()
        if package in done:
            continue
        done.add(package)
        name, extras = package
        if name not in locked:
            missing.append(name)
        try:
            needs = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        for need in map(Requirement, needs):
            if need.marker is None or any(need.marker.evaluate({"extra": extra}) for extra in ("", *extras)):
                todo += [(canonicalize_name(need.name), frozenset(need.extras))]

    assert missing == []
    assert len(done) > 40, "the walk saw next to nothing, so it proved nothing"


def test_every_locked_package_has_hashes_and_nothing_has_an_address():
    lock = (ROOT / "requirements.lock").read_text()
    blocks = re.split(r"\n(?=[a-z])", lock.partition("\n")[2])

    assert [block for block in blocks[1:] if "--hash=sha256:" not in block] == []
    assert re.findall(r"://|\bindex\b|find-links|localhost|(?<!\w)/\w+/", lock) == []


def test_the_ci_brings_every_program_that_a_test_looks_for():
    script = (ROOT / ".ci/run").read_text(encoding="utf-8")
    brought = {name for line in re.findall(r"^tools\+?=\((.+)\)$", script, re.MULTILINE) for name in line.split()}
    named = {
        name
        for path in (ROOT / "tests").rglob("*.py")
        for name in re.findall(r'\b(?:which|tool)\("([\w-]+)"', path.read_text(encoding="utf-8"))
    }

    assert {"strace", "nginx", "promtool"} <= named
    assert named - brought == {"uv", "bash"}, "these are there anyway"


def test_a_hint_to_install_names_an_extra_and_no_package_index():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    code = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))

    named = set(re.findall(r"\{install\('(\w+)'\)\}", code))
    assert named
    assert named <= extras.keys()
    assert not re.findall(r"install ['\"]?octo-sync\[", code)
