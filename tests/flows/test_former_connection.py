"""A connection that has left the pipeline while its webhooks still come: it is said, and nothing of it is owed for ever."""

import asyncio

from tests.flows.harness import booking
from tests.flows.test_noticing import served
from tests.flows.virtual import lived

from octo_sync.app.project import open_journal
from octo_sync.flows.verify import claims
from octo_sync.model import Source, Subject, SubjectKind


def test_what_comes_for_a_connection_that_left_is_warned_of_and_is_not_pending(tmp_path):
    async def life(service):
        project, said = service.project(tmp_path, bookings=(-3, 3), availability=(0, 3)), []
        with open_journal(project.pipeline, service) as journal:
            journal.endpoints.add("e" * 32, connection="former", secret_hash="0" * 64)
            journal.subjects.mark([Subject("former", SubjectKind.BOOKING, ("b-1",))], Source.NOTIFICATION)
        async with served(service, project, said) as keeper:
            await asyncio.sleep(60)
            own = claims(keeper.ports, []).problems
            keeper.ports.journal.subjects.mark([booking("b-1")], Source.NOTIFICATION)
            return said, own, claims(keeper.ports, []).problems

    said, own, more = lived(life, bookings=20, days=10, products=2)
    warnings = [line for line in said if line.startswith("former: ")]
    assert ["octo-sync subscriptions remove" in line for line in warnings] == [True]
    assert not [line for line in said if "pending from before" in line]
    assert (own, more) == ([], ["1 subjects are marked and not yet landed"])
