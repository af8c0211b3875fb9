"""What cannot be proven gone costs little: it is asked for again, ever more seldom, and what is held is said once."""

import asyncio
import itertools
import json

import pytest
from tests.flows.harness import QUICK, api_path, reply
from tests.flows.virtual import lived

from octo_sync.flows.sync.settle import HELD
from octo_sync.model import Source, SubjectKind

MONTH, EVE, MINUTES = "2026-12", "2026-11-30", 60
"""Availability is asked for from the day before."""
PATIENT = {"backoff": "5s", "backoff_cap": "300s", "confirm_after": ("5s", "30s")}


@pytest.mark.deep(4)
def test_a_second_proof_that_does_not_come_is_asked_for_ever_more_seldom(tmp_path):
    """A departure vanishes, and from then on the month has a record that does not fit: no answer of it is whole."""

    async def life(service):
        project = service.project(tmp_path, limits=QUICK, sync=PATIENT)
        async with service.keeping(project) as keeper:
            keeper.pull("full")
            await asyncio.sleep(60)
            subject = next(
                row.subject
                for row in keeper.ports.journal.subjects.rows("main", SubjectKind.AVAILABILITY)
                if row.subject.travel_month == MONTH
            )
            product, option, _ = subject.parts
            answers = []

            def spoil(request, response):
                asked = json.loads(request.content or "null")
                if api_path(request) != "/availability" or asked["localDateStart"] != EVE:
                    return None
                if (asked["productId"], asked["optionId"]) != (product, option):
                    return None
                answers.append(service.loop.time())
                slots = response.json()
                slots.remove(next(slot for slot in slots if slot["localDateTimeStart"].startswith(MONTH)))
                if len(answers) > 1:
                    slots[0]["localDateTimeStart"] = "tomorrow"
                return reply(slots)

            service.edit = spoil
            keeper.ports.journal.subjects.mark([subject], Source.SCHEDULE)
            keeper.wake.set()
            for _ in range(MINUTES):
                await asyncio.sleep(60)
                if len(answers) > 40:
                    break  # it is wrong already
            (absence,) = keeper.ports.warehouse.absences()
            assert absence.misses == 1
            return answers

    answers = lived(life, bookings=20, days=40, products=3)
    assert 8 <= len(answers) <= 25
    pauses = [b - a for a, b in itertools.pairwise(answers)]
    assert 4 < pauses[0] < 7, "the first second look comes as soon as ever"
    assert pauses[5] > 100
    assert max(pauses) < 330


@pytest.mark.deep(8)
def test_a_loss_that_is_held_is_noted_once_until_it_is_another(tmp_path):
    async def life(service):
        project = service.project(tmp_path, limits=QUICK, sync=PATIENT)
        async with service.keeping(project) as keeper:
            keeper.pull("full")
            await asyncio.sleep(60)
            journal, shown = keeper.ports.journal, [0]

            def hide(request, response):
                if api_path(request) != "/availability":
                    return None
                middle = len(response.json()) // 2  # not of the days beside the month
                return reply(response.json()[middle : middle + shown[0]])

            async def held():
                keeper.pull("availability")
                await asyncio.sleep(1800)
                return [(q.count, q.reason.split(" ")[0]) for q in journal.quarantine.entries() if q.resource == HELD]

            notes = [await held()]
            service.edit = hide
            notes += [await held(), await held()]
            shown[0] = 1
            notes.append(await held())
            service.edit = None
            return [*notes, await held()]

    none, first, same, other, over = lived(life, bookings=60, days=40, products=3)
    assert none == over == []
    assert same == first == [(1, first[0][1])]
    assert other == [(2, other[0][1])]
    assert int(other[0][1]) < int(first[0][1])
