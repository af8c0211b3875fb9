"""Where webhooks are accepted: before the service hears of an address, and until it is left for good."""

import hashlib

import pytest
from tests.journal.helpers import HandClock

from octo_sync.errors import JournalError
from octo_sync.journal import Journal

HASH = hashlib.sha256(b"secret").hexdigest()
ONE, TWO, THREE = (letter * 32 for letter in "abc")


def add(journal: Journal, *endpoints: str, connection: str = "acme") -> None:
    for endpoint in endpoints:
        journal.endpoints.add(endpoint, connection=connection, secret_hash=HASH)


def names(rows) -> list[str]:
    return [row.endpoint for row in rows]


def test_a_new_address_is_accepted_at_once_and_on_the_disk(journal: Journal, path, clock: HandClock) -> None:
    add(journal, ONE)
    with Journal.open(path, clock=clock) as other:
        (row,) = other.endpoints.rows()
    assert (row.endpoint, row.connection, row.secret_hash, row.state) == (ONE, "acme", HASH, "pending")
    assert (row.created_at, row.subscription_id, row.seen_at, row.refused_at, row.retired_at) == (
        clock.now(),
        None,
        None,
        None,
        None,
    )


def test_rows_come_in_the_order_they_were_made_by_connection_or_all(journal: Journal) -> None:
    add(journal, TWO, ONE)
    add(journal, THREE, connection="other")
    assert names(journal.endpoints.rows()) == [TWO, ONE, THREE]
    assert names(journal.endpoints.rows("acme")) == [TWO, ONE]
    journal.endpoints.retire([TWO])
    assert names(journal.endpoints.rows("acme")) == [ONE]
    assert names(journal.endpoints.rows("acme", retired=True)) == [TWO, ONE]


def test_an_answer_makes_it_active_and_a_retired_one_never_comes_back(journal: Journal, clock: HandClock) -> None:
    add(journal, ONE, TWO)
    journal.endpoints.activate(ONE, "s-1")
    journal.endpoints.retire([TWO])
    journal.endpoints.activate(TWO, "s-2")
    journal.endpoints.seen({TWO: "s-2"})
    one, two = journal.endpoints.rows(retired=True)
    assert (one.state, one.subscription_id) == ("active", "s-1")
    assert (two.state, two.subscription_id, two.seen_at, two.retired_at) == ("retired", None, None, clock.now())


def test_the_first_delivery_is_noted_and_no_other(journal: Journal, clock: HandClock) -> None:
    add(journal, ONE, TWO)
    journal.endpoints.activate(TWO, "s-2")
    first = clock.now()
    journal.endpoints.seen({ONE: "s-1", TWO: "said otherwise", THREE: "unknown"})
    clock.forward(60)
    journal.endpoints.seen({ONE: "later", TWO: ""})
    one, two = journal.endpoints.rows()
    assert (one.state, one.subscription_id, one.seen_at) == ("active", "s-1", first)
    assert (two.subscription_id, two.seen_at) == ("s-2", first)


def test_a_wrong_secret_is_noted_once_and_only_of_addresses_that_are_accepted(
    journal: Journal, clock: HandClock
) -> None:
    add(journal, ONE, TWO)
    journal.endpoints.retire([TWO])
    first = clock.now()
    assert journal.endpoints.refused([ONE, TWO, THREE]) == 1
    clock.forward(60)
    assert journal.endpoints.refused([ONE]) == 0
    assert [row.refused_at for row in journal.endpoints.rows(retired=True)] == [first, None]


def test_retiring_is_safe_to_repeat_and_keeps_its_time(journal: Journal, clock: HandClock) -> None:
    add(journal, ONE)
    first = clock.now()
    journal.endpoints.retire([ONE])
    clock.forward(60)
    journal.endpoints.retire([ONE])
    journal.endpoints.retire([])
    assert [row.retired_at for row in journal.endpoints.rows(retired=True)] == [first]


def test_rows_retired_more_than_a_year_ago_go(journal: Journal, clock: HandClock) -> None:
    add(journal, ONE, TWO, THREE)
    journal.endpoints.retire([ONE])
    clock.forward(86_400 * 300)
    journal.endpoints.retire([TWO])
    clock.forward(86_400 * 200)
    journal.endpoints.retire([THREE])
    assert names(journal.endpoints.rows(retired=True)) == [TWO, THREE]


def test_an_address_is_never_given_out_twice(journal: Journal) -> None:
    add(journal, ONE)
    journal.endpoints.retire([ONE])
    with pytest.raises(JournalError, match="rules"):
        add(journal, ONE)


@pytest.mark.deep(0.1, everyday=4)
@pytest.mark.parametrize(
    "change",
    [
        "UPDATE endpoints SET state = 'fine'",
        "UPDATE endpoints SET state = 'retired'",
        "UPDATE endpoints SET retired_at = '2026-07-01T12:00:00.000000Z'",
        "UPDATE endpoints SET secret_hash = 'the secret itself, by mistake'",
        "UPDATE endpoints SET secret_hash = upper(secret_hash)",
        "UPDATE endpoints SET endpoint = 'short'",
        "UPDATE endpoints SET connection = ''",
    ],
)
def test_database_itself_refuses_what_must_not_be(journal: Journal, change: str) -> None:
    add(journal, ONE)
    with pytest.raises(JournalError, match="rules"), journal.writing() as connection:
        connection.exec_driver_sql(change)
