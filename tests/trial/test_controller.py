"""A controller's ten questions, each from Overview to a figure, against the service's own state and the accountant's ledger."""

import datetime as dt
from collections import Counter, defaultdict

from tests.flows.harness import NOON
from tests.trial.morning import CLOSED, DECIDED, LAST_MONTH, NAMES, OCTOBER, TODAY, called, compared
from tests.trial.person import amount, number, said
from tests.warehouse.truth import grouped, money, total

FIRST, LAST = OCTOBER


def sums(rows, field):
    """Currency → sum; nothing of those whose price nobody knows."""
    found = {currency: total(those, field) for (currency,), those in grouped(rows, "currency").items() if currency}
    return {currency: amount for currency, amount in found.items() if amount is not None}


def told(rows, column):
    """The same of a table's rows, each of a currency of its own."""
    return {currency: of for row in rows if (known := amount(row[column])) for of, currency in [known]}


async def test_net_payable(person, morning):
    await person.click("Finance")
    rows = person.table("Net payable to the supplier, by month of travel and channel")
    found = {(row["Channel"], *known) for row in rows if (known := amount(row["Net payable"]))}

    sold = grouped(morning.now.sold(*OCTOBER), "channel_name")
    wanted = {(channel, net, of) for (channel,), those in sold.items() for of, net in sums(those, "net").items()}
    assert found == wanted
    assert {channel for channel, *_ in found} == set(NAMES.values())


async def test_taxes(person, morning):
    await person.click("Finance")
    rows = person.table("Taxes in all, by name")
    found = {(row["Tax"], *amount(row["In retail"])) for row in rows if row["Tax"] != "none stated"}

    taxes = defaultdict(int)
    for booking in morning.now.sold(*OCTOBER):
        for tax in booking["raw"]["taxes"]:
            taxes[tax["name"], booking["currency"]] += money(tax["retail"], booking["raw"]["precision"])
    assert found == {(name, amount, currency) for (name, currency), amount in taxes.items()}
    assert len(found) > 3


async def test_refunds(person, morning):
    await person.click("Finance")
    rows = person.table("Cancelled bookings in all")

    gone = [
        b for b in morning.now.bookings if b["was_sold"] and b["cancelled"] and FIRST <= b["cancelled_date"] <= LAST
    ]
    for refund, column in (("FULL", "Refund due, full ones"), ("PARTIAL", "Partial, at most")):
        due = {of: value for of, value in told(rows, column).items() if value}
        assert due == sums([b for b in gone if b["raw"]["refund"] == refund], "retail") != {}


async def test_deferred(person, morning):
    await person.click("Finance")
    rows = person.table("Deferred revenue in all")

    later = [
        b for b in morning.now.bookings
        if b["was_sold"] and b["booking_date"] <= LAST and b["travel_date"] and b["travel_date"] > LAST
        and not (b["cancelled"] and b["cancelled_date"] <= LAST)
    ]  # fmt: skip
    assert told(rows, "Retail") == sums(later, "retail") != {}
    assert told(rows, "Net") == sums(later, "net")


def differing(morning):
    """uuid → by how much the ledger has more, of what is not the same on both sides."""
    here = compared(morning.now, TODAY)
    return {
        uuid: ((there or 0) - (own or 0), currency)
        for uuid in here.keys() | morning.ledger.keys()
        for own, currency in [here.get(uuid) or (None, morning.ledger[uuid][1])]
        for there in [morning.ledger[uuid][0] if uuid in morning.ledger else None]
        if own != there
    }


async def test_may_close(person, morning):
    await person.click("Finance")
    rows = person.table("May I close? Months that are over and not closed")
    (row,) = [row for row in rows if row["Travel month"] == "Oct 2026"]

    days = {b["booking_uuid"]: b["travel_date"] for b in morning.now.bookings}
    open_ones = [uuid for uuid in differing(morning) if FIRST <= (days.get(uuid) or dt.date.min) <= LAST]
    assert all(channel.knows_month(dt.date.fromisoformat(f"{LAST_MONTH}-01")) for channel in morning.now.channels)
    assert [row["Ready"], row["Bookings known"]] == ["no", "yes"]
    assert int(row["Open differences"]) == len(open_ones) > 0


async def test_adjustments(person, morning):
    await person.click("Finance")
    rows = person.table("Adjustments of closed months, the latest first")
    found = {(row["Booking"], amount(row["Net"]), amount(row["Retail"])) for row in rows}

    def of_month(truth):
        return {
            b["booking_uuid"]: b for b in truth.bookings
            if b["sold"] and b["travel_date"] and f"{b['travel_date']:%Y-%m}" == CLOSED
        }  # fmt: skip

    then, now = of_month(morning.before), of_month(morning.now)
    wanted = set()
    for uuid in then.keys() | now.keys():
        was, is_ = then.get(uuid), now.get(uuid)
        parts = ("net", "retail", "guests")
        more = [sum(s * b[part] for s, b in ((1, is_), (-1, was)) if b and b[part] is not None) for part in parts]
        if any(more):
            booking = is_ or was
            wanted.add((called(booking), *((each, booking["currency"]) for each in more[:2])))
    assert found == wanted
    assert len(wanted) > 1


async def test_ledger(person, morning):
    number_open, _ = person.tile("Open differences")
    await person.click_tile("Open differences")
    rows = person.table("Control totals of ledger")
    found = {of: value for of, value in told(rows, "Difference").items() if value}

    wanted = differing(morning)
    assert int(number_open) == len(wanted)
    by = Counter()
    for value, currency in wanted.values():
        by[currency] += value
    assert found == by


async def test_one_difference(person, morning):
    booking = next(b for b in morning.now.bookings if b["booking_uuid"] == morning.disputed)
    await person.click_tile("Open differences")
    await person.click(called(booking))
    facts = person.facts()
    (field,) = person.table("Fields of this key that differ or differed")
    did = {(row["Who"], row["What"], row["Words"]) for row in person.table("What people did")}

    there, currency = morning.ledger[morning.disputed]
    assert [amount(field[side]) for side in ("Here", "There")] == [(booking["retail"], currency), (there, currency)]
    assert amount(facts["Difference"]) == (there - booking["retail"], currency)
    assert facts["First seen"].startswith(f"{NOON:%Y-%m-%d} ")
    assert [facts["State"], facts["Assigned to"]] == ["open", DECIDED["assign"]]
    assert did == {("Ana", act, text) for act, text in DECIDED.items()}


async def test_no_price(person, morning):
    await person.click("Finance")
    (row,) = [
        row for row in person.cells("May I close? Months that are over and not closed")
        if said(row["Travel month"]) == "Oct 2026"
    ]  # fmt: skip
    await person.click(said(row["Without net price"]), within=row["Without net price"])
    found = {row["Booking"] for row in person.table("Bookings") if row["Retail"] == "unknown"}

    wanted = {called(b) for b in morning.now.sold(*OCTOBER) if b["retail"] is None}
    assert found == wanted != set()


async def test_two_currencies(person, morning):
    await person.click("Finance")
    rows = person.table("Net payable in all")

    assert told(rows, "Retail") == sums(morning.now.sold(*OCTOBER), "retail")
    assert len(told(rows, "Retail")) > 1
    assert number(next(row["Bookings"] for row in rows if row["Currency"] == "EUR")) > 1
