"""A journal that is older than its warehouse takes for landed what may have changed since: everything is looked at again."""

import shutil

import pytest
from tests.flows.harness import Project

from octo_sync.errors import JournalError
from octo_sync.flows.sync.pull import Scope
from octo_sync.journal.numbers import Numbers
from octo_sync.model import Source


@pytest.fixture
def project(tmp_path, service):
    return Project(tmp_path / "project", service)


async def marked(project):
    """What opening the project marks for repair."""
    async with project.opened() as opened:
        return [
            row.subject for row in opened.journal.subjects.rows("main") if row.source is Source.REPAIR and row.dirty
        ]


@pytest.mark.deep(4)
async def test_a_journal_put_back_from_before_is_noticed_and_everything_is_looked_at_again(project, service):
    journal = project.pipeline.journal_path
    await project.sync(seed=1)
    shutil.copy(journal, project.directory / "before")
    service.traffic(40)
    project.remember_products()
    await project.sync(seed=2)
    shutil.copy(project.directory / "before", journal)
    service.traffic(40)
    assert len(await marked(project)) > 5
    await project.sync(seed=3)
    assert await marked(project) == []
    await project.sync(seed=4, allow_deletions=True)
    assert project.differences() == []


@pytest.mark.deep(2)
async def test_a_kill_when_the_counters_are_just_lifted_loses_no_mark(project, monkeypatch):
    journal = project.pipeline.journal_path
    await project.sync(seed=1)
    shutil.copy(journal, project.directory / "before")
    await project.sync(seed=2, scope=Scope(full=True))
    shutil.copy(project.directory / "before", journal)

    lift = Numbers.at_least

    def killed(self, **numbers):
        lift(self, **numbers)
        raise JournalError("killed")

    with monkeypatch.context() as patched:
        patched.setattr(Numbers, "at_least", killed)
        with pytest.raises(JournalError, match="killed"):
            await marked(project)
    assert len(await marked(project)) > 5


@pytest.mark.deep(3)
async def test_ordinary_runs_are_no_reason_to_look_at_everything_again(project, service):
    assert await marked(project) == [], "new"
    for seed in (1, 2):
        await project.sync(seed=seed)
        assert await marked(project) == []
        service.traffic(10)
    await project.sync(seed=3, scope=Scope(full=True))
    assert await marked(project) == []
    project.pipeline.journal_path.unlink()
    assert await marked(project) == [], "made anew, it counts from the clock on"
