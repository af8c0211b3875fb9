"""A pull's promise: the copy equals the source, row for row, column for column, in both directions."""

import pytest


@pytest.mark.parametrize("token", ["all", "a", "b"])
async def test_a_full_pull_equals_what_the_source_shows_to_its_token(project, token):
    copy = project(token=token)
    result = await copy.sync()
    assert copy.differences() == []
    assert (result.status, result.failed, result.quarantined) == ("ok", {}, ())
