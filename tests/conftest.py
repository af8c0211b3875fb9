"""A service of our own for every worker, and a project directory for every test that wants one."""

import pytest

from tests.flows.harness import Project, Service


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


@pytest.fixture
def project(tmp_path, service):
    """Makes a project against the service: `project(languages=("en", "pt"), …)`."""

    def make(name="project", **asked):
        return Project(tmp_path / name, asked.pop("service", service), **asked)

    return make
