"""A service of our own for every worker, and a project directory for every test that wants one; `tests/tiers.py` chooses."""

import asyncio
import shutil

import pytest

pytest_plugins = ["tests.tiers"]
pytest.register_assert_rewrite("tests.flows.harness", "tests.destinations.contract")

from tests.flows.harness import Project, Service  # noqa: E402 - after the registration
from tests.postgres import postgres_database, postgres_server  # noqa: E402, F401 - fixtures


@pytest.fixture(scope="session")
def _service():
    with Service() as running:
        yield running


@pytest.fixture
def service(_service):
    """The small service of `harness.small()`, faithful and as seeded."""
    _service.reset()
    yield _service
    _service.control("DELETE", "/faults")


@pytest.fixture(scope="session")
def _blank(_service, tmp_path_factory):
    async def make():
        blank = Project(tmp_path_factory.mktemp("template") / "blank", _service)
        async with blank.opened():
            return blank.directory

    return asyncio.run(make())


@pytest.fixture
def project(tmp_path, service, _blank):
    """Makes a project against the service: `project(languages=("en", "pt"), …)`.

    Its empty databases are copies, because DuckDB takes a quarter of a second to make them.
    """

    def make(name="project", **asked):
        shutil.copytree(_blank, tmp_path / name)
        return Project(tmp_path / name, asked.pop("service", service), **asked)

    return make


@pytest.fixture(scope="session")
def _synced(_service, tmp_path_factory):
    _service.reset()
    template = Project(tmp_path_factory.mktemp("template") / "project", _service)
    asyncio.run(template.sync())
    return template.directory


@pytest.fixture
def pulled_once(_synced):
    """The directory of a project that has been pulled once, to copy from."""
    return _synced


@pytest.fixture
def synced(_synced, tmp_path, service):
    """Makes a project that has been pulled once from the service as seeded; a copy, because a pull takes a second."""

    def make(name="synced", **asked):
        shutil.copytree(_synced, tmp_path / name)
        service.forget_requests()
        return Project(tmp_path / name, service, **asked)

    return make
