"""A service larger than the one everybody has, for tests that need holds, cancelled bookings and several months."""

import pytest
from tests.flows.harness import Service, small


@pytest.fixture(scope="session")
def _larger():
    with Service(small(bookings=60, days=20, products=4)) as running:
        yield running


@pytest.fixture
def larger(_larger):
    """Four products and sixty bookings; faithful and as seeded."""
    _larger.reset()
    return _larger
