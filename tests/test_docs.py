"""Undocumented is a failing test: dependencies, pipeline keys, the configuration page."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from scripts import configuration
from tests.test_architecture import HOMES
from tests.tiers import COLLECTED

from octo_sync.model import Limits
from octo_sync.pipeline import load
from octo_sync.pipeline.connection import OPERATIONS, LimitsTable
from octo_sync.pipeline.keys import KEYS, pattern

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "pipelines/example.toml"


def _rows():
    """library → cells of its row in docs/internals/dependencies.md."""
    rows = {}
    for line in (ROOT / "docs/internals/dependencies.md").read_text().splitlines():
        if match := re.match(r"\| `([a-z0-9-]+)` \|", line):
            assert match[1] not in rows, f"{match[1]} has two lines"
            rows[match[1]] = [cell.strip() for cell in line.strip("|").split("|")]
    return rows


def test_every_command_of_the_track_record_runs_a_test(request):
    if request.config.args != ["tests"]:
        pytest.skip("only a run of the whole suite knows every test")
    found, empty = request.config.stash[COLLECTED], []
    for command in re.findall(r"`pytest ([^`]+)`", (ROOT / "docs/internals/track-record.md").read_text()):
        path, *options = shlex.split(command)
        options = dict(zip(options[::2], options[1::2], strict=True))
        assert options.keys() <= {"-k", "--tier"}, command
        words = options.get("-k", "").split(" or ")
        tests = (name for name, is_deep in found.items() if name.startswith(path) and (options or not is_deep))
        if not any(word in name for name in tests for word in words):
            empty.append(command)
    assert empty == []


def _project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def _named(lines):
    return {Requirement(line).name for line in lines if isinstance(line, str)}


def test_every_direct_dependency_has_its_line_and_every_line_its_dependency():
    project = _project()
    groups = [*project["dependency-groups"].values(), *project["project"]["optional-dependencies"].values()]
    direct = _named(project["project"]["dependencies"]) | {name for group in groups for name in _named(group)}

    assert set(_rows()) == direct


def test_every_line_about_a_dependency_says_everything():
    for name, cells in _rows().items():
        assert all(cells), f"docs/internals/dependencies.md: {name} has an empty cell"


def test_the_page_and_the_import_rules_agree_where_a_library_may_be_imported():
    project = _project()["project"]
    for name in _named([*project["dependencies"], *project["optional-dependencies"]["postgres"]]):
        home = HOMES.get(name.replace("-", "_"))
        said = set(re.findall(r"`([^`]+)`", _rows()[name][2]))

        assert said == (set(home.places) if home else set()), name


def test_the_example_has_every_key_and_is_valid(tmp_path):
    text = EXAMPLE.read_text()
    document = tomllib.loads(text)
    # A key whose default is "none" stands in a comment, ready to be used.
    commented = {f"{section}.{key}" for section, key in _commented(text)}
    present = {pattern(path) for path in _paths(document)} | {
        pattern(tuple(part.split("."))) for part in commented if pattern(tuple(part.split(".")))
    }
    assert {KEYS[path].dotted for path in set(KEYS) - present} == set()
    assert load(EXAMPLE, directory=tmp_path, environ={"ACME_TOKEN": "x"}, overrides={}).warnings == ()


def _commented(text):
    section = ""
    for line in text.splitlines():
        if match := re.match(r"\[(.*?)\]", line):
            section = match[1]
        elif match := re.match(r"# ([a-z_0-9]+) = ", line):
            yield section, match[1]


def _paths(table, path=()):
    for key, value in table.items():
        yield (*path, key)
        if isinstance(value, dict):
            yield from _paths(value, (*path, key))


_NO_DEFAULT = ("full", "availability", "bookings", "near")


def test_the_example_says_the_defaults_where_it_does_not_say_otherwise(tmp_path):
    bare = tmp_path / "example.toml"
    bare.write_text(
        '[connections.acme]\nbase_url = "https://api.example.com/octo/v1"\ntoken = { env = "ACME_TOKEN" }\n'
    )
    arguments = {"directory": tmp_path, "environ": {"ACME_TOKEN": "x"}, "overrides": {}}
    example, default = load(EXAMPLE, **arguments), load(bare, **arguments)

    own = {key for key in example.settings if key.startswith("reconcile.ledger.")}
    differ = {
        key for key in example.settings.keys() - own if example.settings[key].value != default.settings[key].value
    }

    assert differ == {f"schedule.{name}" for name in _NO_DEFAULT}


def test_every_line_of_the_example_is_commented():
    for line in EXAMPLE.read_text().splitlines():
        if re.match(r"(# )?[a-z_0-9]+ = ", line) and not line.startswith("capabilities ="):
            assert "#" in line.removeprefix("# "), line


def test_the_configuration_page_is_current():
    assert configuration.PAGE.read_text(encoding="utf-8") == configuration.render(), (
        "docs/configuration.md is not current; run: scripts/write.sh"
    )


@pytest.mark.parametrize("key", KEYS.values(), ids=lambda key: key.dotted)
def test_every_key_is_on_the_configuration_page(key):
    assert (
        f"`{key.dotted}`" in configuration.PAGE.read_text(encoding="utf-8")
        or f"[{key.dotted}]" in configuration.render()
    )
    assert key.meaning


def test_limits_of_a_connection_have_the_same_defaults_as_keys():
    for name in LimitsTable.__dataclass_fields__:
        assert getattr(LimitsTable(), name) == getattr(Limits(), name)


def test_there_are_at_most_80_keys():
    assert sum(not key.table for key in KEYS.values()) <= 80


def test_every_operation_of_the_client_can_have_capabilities_of_its_own():
    source = (ROOT / "src/octo_sync/octo/endpoints.py").read_text() + "".join(
        path.read_text() for path in (ROOT / "src/octo_sync/octo").glob("subscriptions*.py")
    )

    assert set(re.findall(r'(?:Call|_(?:ask|post|change|subscriptions))\(\s*"([a-z_]+)"', source)) == set(OPERATIONS)
