"""What the warehouses of one machine are tested with."""

import pytest


@pytest.fixture(scope="module")
def blank(request, tmp_path_factory):
    """A folder with a warehouse just made by the module's `opened`; to copy it is faster than to make one."""
    directory = tmp_path_factory.mktemp("blank")
    request.module.opened(directory).close()
    return directory
