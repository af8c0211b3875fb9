"""The morning of the trial: a company with two channels and a year behind it, a week of business, and a copy that followed it.

    20 November, noon    the first pull; September is closed; the ledger is compared
    seven days           sales, cancellations, guests who move, corrections in the month that is closed
    28 November, 8:00    the pull of the morning
    28 November, noon    after an hour of business the last pull, and the ledger again

What is true is worked out by `tests.warehouse.truth`, from the service's own state: no SQL, nothing of octo_sync or its copy.
"""

import asyncio
import contextlib
import csv
import datetime as dt
import json
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from zoneinfo import ZoneInfo

import httpx
from tests.flows.harness import NOON, Asked, Project, RunningClock, Service, Wire, api_path, small
from tests.warehouse.truth import DAY, Channel, Truth

from octo_sync.app.reading import reader
from octo_sync.app.reconcile import make
from octo_sync.flows.acts import ASSIGN, COMMENT, Acts
from octo_sync.flows.periods import close
from octo_sync.flows.sync.mirror import mirror_and_publish
from octo_sync.flows.sync.pull import Scope
from octo_sync.model import Window
from octo_sync.sandbox.config import CHANNELS

NAMES = {"website": "Own website", "citytrips": "CityTrips"}
TOKENS = tuple(token for token in CHANNELS if token.name in NAMES)
NOW = NOON + 8 * DAY
TODAY, TOMORROW = NOW.date(), NOW.date() + DAY
CLOSED, LAST_MONTH, THIS_MONTH = "2026-09", "2026-10", "2026-11"
OCTOBER = dt.date(2026, 10, 1), dt.date(2026, 10, 31)
BOOKINGS, AVAILABILITY = (-373, 70), (0, 31)
COMPARED = (-90, 60)
LEDGER = """
[reconcile]
ledger.there = { file = "ledger.csv" }
ledger.keys = ["booking_uuid=uuid"]
ledger.fields = { retail_amount = "gross", currency = "currency" }
ledger.window = "-90d..+60d"
ledger.grace = 0
"""
DECIDED = {ASSIGN: "Ben", COMMENT: "The channel sends a credit note."}
"""What a colleague did about the difference that is known since a week."""


@dataclass
class Morning:
    """A project as it stands at noon, and what is true: a week ago, at eight and now."""

    folder: Path
    before: Truth
    eight: Truth
    now: Truth
    ledger: dict[str, tuple[Decimal | None, str | None]]
    """The other side of the comparison, by uuid: amount and currency."""
    disputed: str
    """The uuid of the booking on which both sides did not agree a week ago already."""

    @property
    def departures(self):
        """As the copy can know them: those of days that are over where they are, as they were a week ago."""
        now = {d["slot"] for d in self.now.departures}
        return [*self.now.departures, *(d for d in self.before.departures if d["slot"] not in now)]

    def days_ahead(self, departure):
        """From the day that it is at the venue to that of the departure."""
        product = self.now.products[departure["product"]]
        return (departure["travel_date"] - NOW.astimezone(ZoneInfo(product["time_zone"])).date()).days


def called(booking):
    """What pages call a booking: by the supplier's reference, else by the reseller's."""
    return booking["raw"]["supplier_reference"] or booking["raw"]["reseller_reference"] or booking["booking_uuid"]


def compared(truth, day):
    """What was sold in its window, by uuid: amount and currency."""
    first, last = (day + days * DAY for days in COMPARED)
    return {
        b["booking_uuid"]: (b["retail"], b["currency"])
        for b in truth.bookings
        if b["was_sold"] and first <= (b["travel_date"] or b["booking_date"]) <= last
    }


def build(folder):
    """All of it; the project is then in `folder`."""
    with Service(small(bookings=700, days=60, past=425, tokens=TOKENS)) as service:
        project = Project(folder, service, connections={token.name: _asked(token) for token in TOKENS})
        with project.file.open("a") as file:
            file.write(LEDGER)
        unpriced = _unpriced(service)
        before = _truth(service, unpriced)
        disputed, wrong, missing = sorted(b["booking_uuid"] for b in before.sold(*OCTOBER) if b["currency"] == "EUR")[
            :3
        ]
        ledger = compared(before, NOON.date())
        ledger[disputed] = _more(ledger[disputed], "10.00")
        _pull(project, Scope(), unpriced, publishing=True)
        asyncio.run(_compare(project, ledger, closing=CLOSED))
        _week(service)
        _until(service, project, NOW - dt.timedelta(hours=4))
        eight = _truth(service, unpriced)
        open_days = Window(dt.date(2026, 9, 1), TODAY + BOOKINGS[1] * DAY)
        _pull(project, Scope(only=frozenset({"bookings"}), travel=open_days), unpriced)
        _until(service, project, NOW - dt.timedelta(minutes=20))
        _hour(service, eight)
        _until(service, project, NOW)
        _pull(project, Scope(travel=Window(TODAY - 30 * DAY, TODAY + 70 * DAY)), unpriced, publishing=True)
        now = _truth(service, unpriced)
        ledger = compared(now, TODAY)
        ledger |= {disputed: _more(ledger[disputed], "10.00"), wrong: _more(ledger[wrong], "-5.50")}
        ledger["00000000-0000-4000-8000-000000000000"] = Decimal("77.00"), "EUR"
        del ledger[missing]
        asyncio.run(_compare(project, ledger, deciding=disputed))
    return Morning(folder, before, eight, now, ledger, disputed)


def _asked(token):
    more = {} if token.name == "website" else {"products": {"include": ["42"]}}
    return Asked(
        token=token.secret,
        bookings=BOOKINGS,
        availability=AVAILABILITY,
        settings={"channel": NAMES[token.name], **more},
    )


def _pull(project, scope, unpriced, *, publishing=False):
    done = asyncio.run(project.sync(scope=scope, publishing=publishing, transport=_hiding(unpriced)))
    assert done.status == "ok"


def _until(service, project, moment):
    service.control("PUT", "/clock", {"now": moment.isoformat(), "freeze": True})
    project.clock = RunningClock(moment)


def _bookings(service):
    """Of all channels, but for test bookings."""
    return [b for b in service.control("GET", "/state")["bookings"] if not b["test"]]


def _unpriced(service):
    """Three bookings of last month whose price nobody tells."""
    used = [b for b in _bookings(service) if b["status"] == "REDEEMED" and b["local_start"]]
    return sorted(b["uuid"] for b in used if b["local_date"][:7] == LAST_MONTH)[:3]


def _hiding(unpriced):
    """The wire on which their prices are lost."""

    def edit(request, answer):
        if api_path(request) == "/bookings" and any(uuid in answer.text for uuid in unpriced):
            rows = [
                {k: v for k, v in row.items() if k != "pricing" or row["uuid"] not in unpriced} for row in answer.json()
            ]
            return httpx.Response(200, headers=answer.headers, content=json.dumps(rows))
        return None

    return Wire.by(edit)


def _week(service):
    """Sales each day; on the fifth some cancel, others move to today and tomorrow, and the closed month is corrected."""
    for day in range(1, 8):
        service.control("PUT", "/clock", {"now": (NOON + day * DAY).isoformat(), "freeze": True})
        service.traffic(10, seed=f"day {day}", kinds=["book"])
        if day == 5:
            bookings = _bookings(service)
            later = [b for b in bookings if b["status"] == "CONFIRMED" and b["local_date"] > f"{TOMORROW}"]
            _cancel(service, later[-9:])
            _move(service, later[:-9])
            _correct(service, [b for b in bookings if b["status"] == "REDEEMED" and b["local_date"][:7] == CLOSED])


def _cancel(service, bookings):
    for booking in bookings:
        service.change(booking["uuid"], status="CANCELLED", refund="FULL")


def _move(service, bookings):
    """To today and, most of them, tomorrow, where all have room; those with extras first."""
    free = {
        (slot["product_id"], slot["option_id"], slot["local_date"]): slot["availability_id"]
        for slot in service.slots(**{"from": str(TODAY), "to": str(TOMORROW)})
        if slot["available"] and (slot["vacancies"] or 0) > 20
    }
    bookings.sort(key=lambda b: not any(part["extra_items"] for part in (b, *b["unit_items"])))
    for number, booking in enumerate(bookings):
        day = str(TOMORROW if number % 3 else TODAY)
        if there := free.get((booking["product_id"], booking["option_id"], day)):
            service.change(booking["uuid"], move={"availability_id": there})


def _correct(service, travelled):
    """One is cancelled, which only the reseller gave a reference; of another a guest did not come."""
    travelled = [b for b in travelled if b["net"] and len(b["unit_items"]) > 1]
    _cancel(service, [b for b in travelled if b["reseller_reference"] and not b["supplier_reference"]][:1])
    smaller = next(b for b in travelled if b["supplier_reference"])
    service.change(smaller["uuid"], remove_unit_items=[smaller["unit_items"][0]["uuid"]])


def _hour(service, eight):
    """Three cancellations, three bookings and three holds."""
    _cancel(
        service, [b["raw"] for b in eight.sold(TODAY + 3 * DAY, TODAY + 30 * DAY) if b["status"] == "CONFIRMED"][:3]
    )
    for kind in ("book", "reserve"):
        service.traffic(3, seed=kind, kinds=[kind])


def _truth(service, unpriced):
    slots = service.slots(**{"from": str(NOON.date() - DAY), "to": str(TODAY + (AVAILABILITY[1] + 2) * DAY)})
    state = service.control("GET", "/state")
    told = Truth(
        [
            Channel(
                name, channel, "UTC", state | {"bookings": [b for b in state["bookings"] if b["token"] == name]}, slots,
                (BOOKINGS[0] - 8, BOOKINGS[1]), AVAILABILITY, BOOKINGS[0], pulled=NOON, supplier=min(NAMES),
            )
            for name, channel in NAMES.items()
        ]
    )  # fmt: skip
    for booking in [b for b in told.bookings if b["booking_uuid"] in unpriced]:
        booking.update(currency=None, retail=None, net=None, tax=None)
        booking["raw"]["taxes"] = []
    return told


def _more(told, by):
    amount, currency = told
    return amount + Decimal(by), currency


async def _compare(project, ledger, *, closing=None, deciding=None):
    """Write the ledger as the accountant has it, and compare; close a month, or decide about a difference and publish it."""
    with (project.directory / "ledger.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["uuid", "gross", "currency"])
        rows.writerows([uuid, *told] for uuid, told in ledger.items())
    async with project.opened() as opened:
        if closing:
            with contextlib.closing(reader(project.directory / "octo.read.duckdb", is_whole=True)) as copy:
                close(copy, opened.journal, closing, project.clock.now(), incomplete=False)
        make(project.pipeline, "ledger", clock=project.clock, journal=opened.journal)
        if deciding:
            acts = Acts(lambda: contextlib.nullcontext(opened.journal), project.clock, ["ledger"])
            for act, text in DECIDED.items():
                acts.do(act, "Ana", {"about": "ledger", "key": f"booking_uuid={deciding}", "text": text})
            mirror_and_publish(opened.ports)
