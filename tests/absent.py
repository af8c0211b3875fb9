"""What a test needs and does not find: it is skipped and says so; where CI is set it fails, since nobody reads skips there."""

import os
from typing import NoReturn

import pytest


def absent(reason: str) -> NoReturn:
    """End the test that needs it; for what the machines of CI have."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)
