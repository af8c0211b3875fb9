"""What any warehouse must do, as one suite: subclass `Contract` and give it a fixture `open_warehouse`.

Answers are made from OCTO records written out by hand here, checked the way a fetch checks them.
"""

import dataclasses
import datetime as dt
import json
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from octo_sync.destinations.base import Answered, Drift, Landing, Payload, Seen, Shown
from octo_sync.destinations.erasing import ContactRow
from octo_sync.destinations.gate import Guard
from octo_sync.destinations.landing import moved_departures as moving
from octo_sync.destinations.landing.losses import ending
from octo_sync.errors import WriterFenced
from octo_sync.flows.doctor.unpriced import unpriced
from octo_sync.flows.order import Order
from octo_sync.flows.publish import sql_files
from octo_sync.model import Source, Subject, SubjectKind, Window
from octo_sync.octo import checking
from octo_sync.tables import all_tables

NOW = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC)
DECEMBER = Window.month("2026-12")
FLAGS = {"has_pricing": True, "has_content": True, "has_extras": True}


def booking(number, *, day=5, retail=1000, status="CONFIRMED", tickets=2, name="Ana", month=12):
    """A booking as OCTO shows it; `number` names it."""
    price = {"currency": "EUR", "currencyPrecision": 2, "original": retail, "retail": retail, "net": None}
    start = f"2026-{month:02d}-{day:02d}T09:30:00+00:00"
    return {
        "uuid": f"uuid-{number}",
        "id": f"BK-{number}",
        "status": status,
        "testMode": False,
        "utcCreatedAt": "2026-11-01T10:00:00Z",
        "utcUpdatedAt": "2026-11-01T10:00:00Z",
        "productId": "p",
        "optionId": "o",
        "cancellable": True,
        "freesale": False,
        "availabilityId": start,
        "availability": {"id": start, "localDateTimeStart": start, "localDateTimeEnd": start, "allDay": False},
        "product": {"timeZone": "Europe/Lisbon"},
        "contact": {"fullName": name, "locales": ["en"]},
        "notes": None,
        "unitItems": [
            {
                "uuid": f"item-{number}-{ticket}",
                "unitId": "adult",
                "unit": {"type": "ADULT", "restrictions": {"paxCount": 1}},
                "status": status,
                "contact": {},
                "pricing": price,
                "extraItems": [{"id": "x1", "extraId": "photo", "pricing": price}] if ticket == 0 else [],
            }
            for ticket in range(tickets)
        ],
        "extraItems": [],
        "pricing": {**price, "includedTaxes": [{"name": "IVA", "original": 1, "retail": retail // 5, "net": None}]},
    }


def slot(day, *, vacancies=10, hour=9, month=12):
    """A departure as OCTO shows it."""
    start = f"2026-{month:02d}-{day:02d}T{hour:02d}:00:00+00:00"
    return {
        "id": start,
        "localDateTimeStart": start,
        "localDateTimeEnd": start,
        "utcCutoffAt": f"2026-{month:02d}-{day:02d}T08:00:00Z",
        "allDay": False,
        "available": vacancies > 0,
        "status": "AVAILABLE" if vacancies else "SOLD_OUT",
        "vacancies": vacancies,
        "capacity": 20,
        "openingHours": [],
        "unitPricing": [
            {
                "unitId": "adult",
                "currency": "EUR",
                "currencyPrecision": 2,
                "original": 1,
                "retail": 10 + day,
                "net": None,
            }
        ],
    }


def product(number=1, *, name="Tram", options=("o",), units=("adult", "child"), price=1000, title="Tram"):
    """A product as OCTO shows it."""
    return {
        "id": f"p{number}" if number != 1 else "p",
        "internalName": name,
        "timeZone": "Europe/Lisbon",
        "title": title,
        "defaultCurrency": "EUR",
        "availableCurrencies": ["EUR"],
        "pricingPer": "UNIT",
        "options": [
            {
                "id": option,
                "default": True,
                "title": title,
                "restrictions": {},
                "units": [
                    {
                        "id": unit,
                        "type": unit.upper(),
                        "restrictions": {"paxCount": 1},
                        "extras": [{"id": "photo", "restrictions": {}}],
                        "pricingFrom": [
                            {"currency": "EUR", "currencyPrecision": 2, "original": price, "retail": price, "net": None}
                        ],
                    }
                    for unit in units
                ],
            }
            for option in options
        ],
    }


CHECKS = {
    "bookings": checking.check_bookings,
    "availability": checking.check_availability,
    "products": checking.check_products,
    "supplier": checking.check_supplier,
}


def answered(
    kind,
    records,
    seq,
    *,
    parts=(),
    window=None,
    complete=True,
    meaning="travel",
    flags=None,
    language="en",
    known=None,
    **more,
):
    """A subject's answer that is ready to land, from OCTO records; what is in `known` was seen and not read."""
    subject = Subject("main", SubjectKind(kind), tuple(parts))
    noun = {"booking": "bookings", "product": "products"}.get(kind, kind)
    body = json.dumps(records[0] if noun == "supplier" else records).encode()
    settings = {"days": window} if noun == "availability" else {"known": known} if known else {}
    checked = CHECKS[noun](body, **settings)
    assert not checked.bad
    if noun == "bookings":
        more.setdefault("seen", tuple(Seen(uuid, seq) for uuid, _ in checked.seen))
    head = {
        "connection_id": "main",
        "product_id": parts[0] if kind == "availability" else None,
        "option_id": parts[1] if kind == "availability" else None,
        "time_zone": "Europe/Lisbon" if kind == "availability" else None,
        "window_start": str(window.start) if window else None,
        "window_end": str(window.end) if window else None,
        "resource": kind,
        "subject_key": subject.key,
        "request_seq": seq,
        "verified_at_utc": NOW.isoformat(),
        "source": "schedule",
        "language": language if noun == "products" else None,
        "is_primary": True,
        **FLAGS,
        **(flags or {}),
    }
    digests = getattr(checked, "digests", ()) if all(flags.values() if flags else ()) else ()
    return Answered(
        subject=subject,
        request_seq=seq,
        fetched_at=NOW,
        source=Source.SCHEDULE,
        answer_hash=f"{seq}/{hash(body)}",
        noun=noun,
        lines=tuple(
            json.dumps({**head, "payload_digest": digests or None, "records": json.loads(lines)}).encode()
            for lines in checked.records
        ),
        window=window,
        row_count=len(checked.ids) + len(more.get("seen", ())),
        complete=complete,
        date_meaning=meaning,
        **{"shown": (Shown((seq,), (*checked.ids, *(s.uuid for s in more.get("seen", ())))),), **more},
    )


def december(records, seq, **more):
    return answered("bookings", records, seq, parts=("2026-12",), window=DECEMBER, **more)


def departures(records, seq, **more):
    return answered("availability", records, seq, parts=("p", "o", "2026-12"), window=DECEMBER, **more)


def in_month(number, records, seq, **more):
    """Departures of the same option in another month of the year."""
    month = f"2026-{number:02d}"
    return answered("availability", records, seq, parts=("p", "o", month), window=Window.month(month), **more)


def one(record, seq, **more):
    return answered("booking", [record], seq, parts=(record["uuid"],), **more)


def gone(kind, key, seq):
    return Answered(
        subject=Subject("main", SubjectKind(kind), (key,)),
        request_seq=seq,
        fetched_at=NOW,
        source=Source.REPAIR,
        answer_hash="",
        noun={"booking": "bookings", "product": "products"}[kind],
        not_found=True,
        shown=(Shown((seq,), (key,)),),
    )


class InOrder:
    """A warehouse whose landings pass `Order`, as those of the flows do; some answer is always on its way."""

    def __init__(self, real):
        self._real, self._order = real, Order()
        self._order.begin("main", 0)

    def land(self, landing):
        answers = self._order.apply(landing.answered)
        report = self._real.land(dataclasses.replace(landing, answered=answers))
        self._order.landed(answers)
        return report

    def __getattr__(self, name):
        return getattr(self._real, name)


def landing(*answers, fence=1, minutes=0, run_id="run", **more):
    return Landing(run_id=run_id, fence=fence, now=NOW + dt.timedelta(minutes=minutes), answered=list(answers), **more)


def missing(warehouse, since=dt.date(2026, 11, 1)):
    """The fields that are missing, once those are ended that nothing lacks which is asked for since that day."""
    told = "select connection_id, resource, name from ops.schema_drift where kind = 'missing' order by name"
    rows = warehouse.query(told).rows
    warehouse.run_script([ending(all_tables(), *row, since=since, private=warehouse.private) for row in rows])
    return [name for _, _, name in warehouse.query(told).rows]


def say(warehouse):
    """What the live rows say, in one comparable value."""
    return [(d.table, d.rows, d.digest) for d in warehouse.digest()]


def live(warehouse, table, column):
    condition = " where not is_deleted" if table not in DETAILS else ""
    return sorted(row[0] for row in warehouse.query(f"select {column} from {table}{condition}").rows)


DETAILS = {"core.availability_prices", "core.booking_taxes", "core.booking_extra_items"}


class Contract:
    """Any warehouse passes this."""

    @pytest.fixture
    def warehouse(self, open_warehouse):
        made = open_warehouse()
        made.claim_writer(1, "test")
        yield InOrder(made)
        made.close()

    # -- landing ----------------------------------------------------------------------------------------------------

    def test_a_landing_lands_every_table_and_its_watermark(self, warehouse):
        report = warehouse.land(landing(december([booking(1)], 10), departures([slot(5)], 11)))
        assert live(warehouse, "core.bookings", "booking_uuid") == ["uuid-1"]
        assert live(warehouse, "core.booking_unit_items", "unit_item_uuid") == ["item-1-0", "item-1-1"]
        assert live(warehouse, "core.booking_taxes", "retail_minor") == [200]
        assert live(warehouse, "core.booking_extra_items", "extra_id") == ["photo"]
        assert live(warehouse, "core.availability_prices", "retail_minor") == [15]
        covered = warehouse.covered([Subject("main", SubjectKind.BOOKINGS, ("2026-12",))])
        (known,) = covered.values()
        assert (known.request_seq, known.window, known.row_count) == (10, DECEMBER, 1)
        assert report.rows >= 6
        assert report.stale == []

    def test_landing_the_same_again_writes_nothing(self, warehouse):
        warehouse.land(landing(december([booking(1), booking(2)], 10), departures([slot(5), slot(6)], 11)))
        said = say(warehouse)
        report = warehouse.land(landing(december([booking(2), booking(1)], 12), departures([slot(6), slot(5)], 13)))
        assert report.rows == 0
        assert say(warehouse) == said

    def test_an_unchanged_answer_renews_coverage_and_keeps_its_findings(self, warehouse):
        first = december([booking(1)], 10, missing_capabilities=("pricing",))
        warehouse.land(landing(first))
        same = Answered(
            subject=first.subject, request_seq=20, fetched_at=NOW, source=Source.USER, answer_hash=first.answer_hash,
            noun="bookings", window=DECEMBER, unchanged=True,
        )  # fmt: skip
        assert warehouse.land(landing(same, minutes=5)).rows == 0
        rows = warehouse.query(
            "select row_count, is_complete, missing_capabilities, request_seq, source, answer_hash from ops.coverage"
        ).rows
        assert rows == [(1, True, "pricing", 20, "user", first.answer_hash)]

    def test_a_changed_record_changes_only_its_own_rows(self, warehouse):
        warehouse.land(landing(december([booking(1), booking(2), booking(3)], 10)))
        report = warehouse.land(landing(december([booking(1), booking(2, retail=2000), booking(3)], 11), minutes=1))
        assert report.written["core.bookings"] == 1
        touched = warehouse.query(
            "select booking_uuid from core.bookings where last_seen_at_utc > first_seen_at_utc"
        ).rows
        assert touched == [("uuid-2",)]
        assert live(warehouse, "core.bookings", "retail_minor") == [1000, 1000, 2000]
        assert live(warehouse, "core.booking_taxes", "retail_minor") == [200, 200, 400]

    def test_a_ticket_that_left_its_booking_is_marked_deleted(self, warehouse):
        warehouse.land(landing(december([booking(1, tickets=3)], 10)))
        warehouse.land(landing(december([booking(1, tickets=1)], 11)))
        assert live(warehouse, "core.booking_unit_items", "unit_item_uuid") == ["item-1-0"]
        warehouse.land(landing(december([booking(1, tickets=2)], 12)))
        assert live(warehouse, "core.booking_unit_items", "unit_item_uuid") == ["item-1-0", "item-1-1"]

    def test_one_landing_may_hold_many_subjects_and_the_same_record_twice(self, warehouse):
        """A window and the booking's own document in one batch: the later request counts, once."""
        warehouse.land(landing(december([booking(1, status="ON_HOLD")], 10), one(booking(1), 11)))
        assert live(warehouse, "core.bookings", "status") == ["CONFIRMED"]
        warehouse.land(landing(one(booking(1, status="CANCELLED"), 12), december([booking(1, status="REDEEMED")], 13)))
        assert live(warehouse, "core.bookings", "status") == ["REDEEMED"]
        assert len(live(warehouse, "core.booking_unit_items", "unit_item_uuid")) == 2
        assert warehouse.query("select count(*) from core.bookings").rows == [(1,)]

    @pytest.mark.parametrize("seqs", [(10, 11), (11, 10)])
    def test_a_booking_in_two_parts_of_one_month_is_landed_once_as_the_later_part_has_it(self, warehouse, seqs):
        """A service that answers half a month at a time was asked for both halves while the booking moved."""
        first, second = december([booking(1, day=5)], seqs[0]), december([booking(1, day=20)], seqs[1])
        warehouse.land(landing(dataclasses.replace(first, request_seq=10, lines=first.lines + second.lines,
                                             shown=first.shown + second.shown)))  # fmt: skip
        rows = "select booking_uuid, local_date::text from core.bookings"
        assert warehouse.query(rows).rows == [("uuid-1", "2026-12-20" if seqs[1] > seqs[0] else "2026-12-05")]
        assert warehouse.covered([first.subject])[first.subject].answer_hash is None, "the next answer is read"
        warehouse.land(landing(december([booking(1, day=21)], 20), minutes=1))
        assert warehouse.query(rows).rows == [("uuid-1", "2026-12-21")]
        assert len(live(warehouse, "core.booking_unit_items", "unit_item_uuid")) == 2

    def test_a_departure_in_two_parts_of_one_month_is_landed_once_as_the_later_part_has_it(self, warehouse):
        moved = {**slot(20), "id": slot(5)["id"]}
        first, second = departures([slot(5)], 10), departures([moved], 11)
        both = {"lines": first.lines + second.lines, "shown": first.shown + second.shown, "row_count": 2}
        warehouse.land(landing(dataclasses.replace(first, **both)))
        assert live(warehouse, "core.availability", "local_date") == [dt.date(2026, 12, 20)]
        assert warehouse.query("select row_count from ops.coverage").rows == [(1,)]

    def test_what_is_committed_is_read_while_something_is_written(self, warehouse):
        warehouse.land(landing(december([booking(1)], 10)))
        with ThreadPoolExecutor(1) as beside, warehouse.scrubbing(1):
            asked = beside.submit(warehouse.query, "select count(*) from core.bookings")
            assert asked.result(10).rows == [(1,)]

    def test_an_empty_landing_is_no_error(self, warehouse):
        assert warehouse.land(landing()).rows == 0
        assert warehouse.land(landing(december([], 10), departures([], 11))).rows == 0

    def test_a_slot_outside_the_window_asked_for_belongs_to_another_subject(self, warehouse):
        warehouse.land(landing(departures([slot(5), slot(5, month=11)], 10)))
        assert live(warehouse, "core.availability", "local_date") == [dt.date(2026, 12, 5)]
        claimed = "select row_count, answer_hash is null from ops.coverage"
        assert warehouse.query(claimed).rows == [(1, False)], "no month claims more than is there"

    # -- departures that move -------------------------------------------------------------------------------------------

    def test_a_departure_that_keeps_its_id_and_moves_to_another_month_is_one_row(self, warehouse):
        """July alone is asked for; June still has to be."""
        warehouse.land(landing(in_month(6, [slot(5, month=6), slot(9, month=6)], 10)))
        moved = {**slot(3, month=7), "id": slot(5, month=6)["id"]}
        warehouse.land(landing(in_month(7, [moved], 11), minutes=1))
        rows = "select local_date::text from core.availability where not is_deleted order by 1"
        assert warehouse.query(rows).rows == [("2026-06-09",), ("2026-07-03",)]
        assert live(warehouse, "core.availability_prices", "local_date::text") == ["2026-06-09", "2026-07-03"]
        claimed = "select travel_month, row_count, answer_hash is null from ops.coverage order by 1"
        assert warehouse.query(claimed).rows == [("2026-06", 1, True), ("2026-07", 1, False)]
        for seq in (12, 13):
            warehouse.land(landing(in_month(6, [slot(9, month=6)], seq), minutes=seq))
            warehouse.bury(warehouse.absences(), now=NOW, fence=1)
        assert warehouse.query(rows).rows == [("2026-06-09",), ("2026-07-03",)]
        kept = "select version_no, local_date::text, is_current from core.availability_history order by 1"
        assert warehouse.query(kept).rows == [(1, "2026-06-05", False), (2, "2026-07-03", True)]

    def test_a_departure_that_moves_to_and_fro_is_where_it_was_shown_last(self, warehouse):
        """Each move makes the month that it leaves old news, so that an equal answer is read."""
        first = slot(5, month=6)
        moved = {**slot(3, month=7), "id": first["id"]}
        for seq, number, record in ((10, 6, first), (20, 7, moved), (30, 6, first), (40, 7, moved)):
            answer = in_month(number, [record], seq)
            assert all(known.answer_hash is None for known in warehouse.covered([answer.subject]).values())
            warehouse.land(landing(answer, minutes=seq))
            found = warehouse.query("select local_date::text from core.availability").rows
            assert found == [(record["localDateTimeStart"][:10],)]

    def test_among_many_new_departures_one_that_moved_into_a_month_never_asked_for_is_found(self, warehouse):
        first = slot(5, month=6)
        warehouse.land(landing(in_month(6, [first, slot(6, month=6)], 10)))
        moved = {**slot(3, month=7), "id": first["id"]}
        many = [{**slot(4, month=7), "id": f"new-{number}"} for number in range(2_500)]
        warehouse.land(landing(in_month(7, [moved, *many], 12), run_id="the next"))
        assert len(many) > moving.FEW
        found = "select local_date::text from core.availability where local_date <> date '2026-07-04' order by 1"
        assert warehouse.query(found).rows == [("2026-06-06",), ("2026-07-03",)]

    def test_a_departure_that_moved_is_not_taken_back_by_the_older_answer_of_the_month_it_left(self, warehouse):
        """Two months are asked for at once, and the answer of the month that it left comes last."""
        first, other = slot(5, month=6), slot(9, month=7)
        moved = {**slot(3, month=7, vacancies=2), "id": first["id"]}
        warehouse.land(landing(in_month(6, [first], 1), in_month(7, [other], 2)))
        warehouse.land(landing(in_month(7, [moved, other], 20), minutes=1))
        late = in_month(6, [first, slot(7, month=6)], 10)
        warehouse.land(landing(late, minutes=2))
        rows = "select local_date::text from core.availability where not is_deleted order by 1"
        assert warehouse.query(rows).rows == [("2026-06-07",), ("2026-07-03",), ("2026-07-09",)]
        claimed = "select travel_month, row_count, answer_hash is null from ops.coverage order by 1"
        assert warehouse.query(claimed).rows == [("2026-06", 1, True), ("2026-07", 2, False)]

    def test_prices_stay_with_a_departure_that_moved_without_them(self, warehouse):
        """The answer that shows it on its new day lacks the capability (R10); the next has it."""
        first = slot(5, month=6)
        moved = {**slot(3, month=7), "id": first["id"]}
        poor = {name: value for name, value in moved.items() if name not in ("unitPricing", "pricing")}
        warehouse.land(landing(in_month(6, [first], 1)))
        warehouse.land(landing(in_month(7, [poor], 2, flags={"has_pricing": False}), minutes=1))
        days = "select distinct local_date::text from core.availability_prices"
        assert warehouse.query(days).rows == [("2026-07-03",)]
        before = warehouse.query("select count(*) from core.availability_prices").rows
        warehouse.land(landing(in_month(7, [moved], 3), minutes=2))
        assert warehouse.query(days).rows == [("2026-07-03",)]
        assert warehouse.query("select count(*) from core.availability_prices").rows == before

    @pytest.mark.parametrize("is_known", [False, True])
    def test_a_departure_in_two_months_is_one_row_beside_options_without_any(self, warehouse, is_known):
        def empty(number, seq):
            month = f"2026-{number:02d}"
            return answered("availability", [], seq, parts=("p", "o2", month), window=Window.month(month))

        first = slot(5, month=6)
        moved = {**slot(3, month=7), "id": first["id"]}
        if is_known:
            warehouse.land(landing(in_month(6, [first], 1)))
        answers = in_month(6, [first, slot(8, month=6)], 11), in_month(7, [moved], 10)
        warehouse.land(landing(*answers, empty(6, 12), empty(7, 13), minutes=1))
        rows = "select local_date::text from core.availability order by 1"
        assert warehouse.query(rows).rows == [("2026-06-05",), ("2026-06-08",)]
        claimed = (
            "select travel_month, row_count, answer_hash is null from ops.coverage where option_id = 'o' order by 1"
        )
        assert warehouse.query(claimed).rows == [("2026-06", 2, False), ("2026-07", 0, True)]

    @pytest.mark.parametrize("seqs", [(20, 30), (30, 20)])
    def test_a_departure_in_two_months_of_one_landing_is_where_the_later_request_has_it(self, warehouse, seqs):
        moved = {**slot(3, month=7), "id": slot(5, month=6)["id"]}
        answers = in_month(6, [slot(5, month=6), slot(6, month=6)], seqs[0]), in_month(7, [moved], seqs[1])
        warehouse.land(landing(*answers))
        day = "2026-06-05" if seqs[0] > seqs[1] else "2026-07-03"
        rows = "select local_date::text from core.availability where availability_id = $1"
        assert warehouse.query(rows, [moved["id"]]).rows == [(day,)]
        older = answers[seqs[0] > seqs[1]].subject
        covered = warehouse.covered([a.subject for a in answers])
        assert covered[older].answer_hash is None
        assert sum(known.row_count for known in covered.values()) == 2, "no month claims more than is there"

    # -- order (R6) -------------------------------------------------------------------------------------------------

    def test_an_older_answer_of_the_same_subject_is_left_out_and_reported(self, warehouse):
        warehouse.land(landing(december([booking(1, status="NEW")], 20)))
        older = december([booking(1, status="OLD"), booking(2)], 19)
        report = warehouse.land(landing(older))
        assert report.stale == [older.subject]
        assert live(warehouse, "core.bookings", "status") == ["NEW"]
        assert warehouse.covered([older.subject])[older.subject].request_seq == 20

    @pytest.mark.parametrize("first", ["booking", "window"])
    def test_between_a_booking_and_its_window_the_later_request_wins(self, warehouse, first):
        new, old = booking(1, status="NEW"), booking(1, status="OLD")
        later, earlier = (
            (one(new, 20), december([old], 10)) if first == "booking" else (december([new], 20), one(old, 10))
        )
        warehouse.land(landing(later))
        warehouse.land(landing(earlier))
        assert live(warehouse, "core.bookings", "status") == ["NEW"]

    def test_what_is_missed_outside_the_days_asked_for_is_missed_no_longer(self, warehouse):
        warehouse.land(landing(departures([slot(5), slot(20)], 10)))
        warehouse.land(landing(departures([slot(20)], 11)))
        assert [a.misses for a in warehouse.absences()] == [1]
        later = dataclasses.replace(departures([slot(20)], 12), window=Window(dt.date(2026, 12, 6), DECEMBER.end))
        warehouse.land(landing(later))
        assert warehouse.absences() == [], "yesterday is asked for no more: nothing can prove it gone"
        assert len(warehouse.query("select 1 from core.availability where not is_deleted").rows) == 2

    def test_what_is_missed_in_a_month_that_is_asked_for_no_more_is_missed_no_longer(self, warehouse):
        warehouse.land(landing(departures([slot(5), slot(20)], 10)))
        warehouse.land(landing(departures([slot(20)], 11)))
        unasked = dataclasses.replace(
            departures([], 12), lines=(), window=None, answer_hash="", unchanged=True, noun="", row_count=0
        )
        covered = warehouse.query("select * from ops.coverage").rows
        (check,) = [check for check in sql_files(Path("nowhere"), "checks") if check.name == "coverage_rows"]
        warehouse.land(landing(dataclasses.replace(unasked, fetched_at=NOW + dt.timedelta(hours=1))))
        assert warehouse.absences() == []
        assert warehouse.query("select * from ops.coverage").rows == covered, "what was not asked was not verified"
        assert warehouse.query(check.sql).rows == []

    def test_a_booking_missing_from_an_older_window_is_not_missed(self, warehouse):
        warehouse.land(landing(one(booking(1), 20)))
        warehouse.land(landing(december([], 10)))
        assert warehouse.absences() == []

    @pytest.mark.parametrize("first", ["document", "list"])
    def test_between_a_product_and_the_list_the_later_request_wins(self, warehouse, first):
        def document(name, seq):
            return answered("product", [product(name=name)], seq, parts=("p",))

        def listed(name, seq):
            return answered("products", [product(name=name)], seq)

        later, earlier = (document, listed) if first == "document" else (listed, document)
        warehouse.land(landing(later("NEW", 20)))
        warehouse.land(landing(earlier("OLD", 10)))
        assert live(warehouse, "core.products", "internal_name") == ["NEW"]

    def test_a_booking_that_moved_is_not_taken_back_by_the_older_answer_of_its_new_window(self, warehouse):
        """It was fetched by uuid after the January window was asked for; the window's answer arrives late."""
        january = Window.month("2027-01")
        warehouse.land(landing(december([booking(1)], 10)))
        moved = booking(1, status="MOVED")
        moved["availability"]["localDateTimeStart"] = "2027-01-05T09:30:00+00:00"
        warehouse.land(landing(one(moved, 20)))
        warehouse.land(landing(answered("bookings", [], 15, parts=("2027-01",), window=january)))
        assert warehouse.absences() == []
        assert live(warehouse, "core.bookings", "status") == ["MOVED"]

    def test_a_booking_left_out_as_overruled_leaves_no_hash_that_an_equal_answer_would_meet(self, warehouse):
        """The window said OLD, asked for before NEW landed. Should it say OLD once more, that must be read."""
        window, document = december([booking(1, status="OLD")], 10), one(booking(1, status="NEW"), 20)
        warehouse.land(landing(document))
        warehouse.land(landing(window))
        assert warehouse.covered([window.subject])[window.subject].answer_hash is None
        other, older = december([booking(1, status="NEWEST")], 30), one(booking(1, status="OLD"), 25)
        warehouse.land(landing(other))
        warehouse.land(landing(older))
        assert warehouse.covered([older.subject])[older.subject].answer_hash is None
        assert live(warehouse, "core.bookings", "status") == ["NEWEST"]

    def test_a_booking_that_its_window_changed_has_its_own_answer_read_again(self, warehouse):
        document = one(booking(1), 10)
        warehouse.land(landing(document))
        warehouse.land(landing(december([booking(1, status="BY THE WINDOW")], 20)))
        assert warehouse.covered([document.subject])[document.subject].answer_hash is None

    def test_an_open_dated_booking_that_its_own_answer_changed_has_the_list_that_showed_it_read_again(self, warehouse):
        """Whichever list that was: neither its travel nor its creation is in December."""
        shown = {**booking(2), "availability": None, "availabilityId": None}
        warehouse.land(landing(december([booking(1), shown], 10)))
        warehouse.land(landing(one(shown, 11)))
        listed = Subject("main", SubjectKind.BOOKINGS, ("2026-12",))
        assert warehouse.covered([listed])[listed].answer_hash
        warehouse.land(landing(one({**shown, "status": "CANCELLED"}, 12)))
        assert warehouse.covered([listed])[listed].answer_hash is None

    @pytest.mark.parametrize("together", [True, False])
    def test_an_answer_that_equals_one_which_became_old_news_meanwhile_is_asked_for_again(self, warehouse, together):
        """It was compared before the booking landed by its own road, and lands after it or with it."""
        window = december([booking(1), booking(2)], 10)
        warehouse.land(landing(window))
        same = dataclasses.replace(window, request_seq=30, lines=(), shown=(), unchanged=True)
        between = one(booking(1, status="IN BETWEEN"), 20)
        if together:
            report = warehouse.land(landing(same, between))
        else:
            warehouse.land(landing(between))
            report = warehouse.land(landing(same))
        assert report.differing == [window.subject]
        assert warehouse.covered([window.subject])[window.subject].answer_hash is None
        warehouse.land(
            landing(dataclasses.replace(window, request_seq=40, lines=december([booking(1), booking(2)], 40).lines))
        )
        assert live(warehouse, "core.bookings", "status") == ["CONFIRMED", "CONFIRMED"]

    @pytest.mark.parametrize("first", ["document", "list"])
    def test_a_product_that_lands_by_one_road_makes_the_other_roads_answer_old_news(self, warehouse, first):
        document = answered("product", [product(name="A")], 10, parts=("p",))
        listed = answered("products", [product(name="A")], 11)
        warehouse.land(landing(document))
        warehouse.land(landing(listed))
        if first == "document":
            warehouse.land(landing(answered("product", [product(name="B")], 20, parts=("p",))))
        else:
            warehouse.land(landing(answered("products", [product(name="B")], 20)))
        other = listed.subject if first == "document" else document.subject
        assert warehouse.covered([other])[other].answer_hash is None

    # -- records that were seen and not read --------------------------------------------------------------------------

    @pytest.fixture
    def seen(self, warehouse):
        """A window with three bookings is landed; what a fetch then knows."""
        warehouse.land(landing(december([booking(1), booking(2), booking(3)], 10)))
        return warehouse.known_bookings("main", DECEMBER)

    def test_what_live_bookings_were_landed_from_is_known(self, warehouse, seen):
        assert sorted(seen.values()) == [(f"uuid-{n}", dt.date(2026, 12, 5), dt.date(2026, 11, 1)) for n in (1, 2, 3)]
        assert warehouse.known_bookings("other", DECEMBER) == {}
        assert warehouse.known_bookings("main", Window.month("2027-02")) == {}
        assert len(warehouse.known_bookings("main", Window.month("2026-11"))) == 3, "they were made in it"

    def test_what_was_seen_counts_as_present_and_is_not_written(self, warehouse, seen):
        said = say(warehouse)
        answer = december([booking(1), booking(3, retail=7)], 11, known=seen)
        assert len(answer.seen) == 1
        report = warehouse.land(landing(answer))
        assert report.written["core.bookings"] == 1
        assert report.differing == []
        assert [a.ask.parts for a in warehouse.absences()] == [("uuid-2",)]
        (known,) = warehouse.covered([answer.subject]).values()
        assert known.row_count == 2
        known = warehouse.known_bookings("main", DECEMBER)
        report = warehouse.land(landing(december([booking(n) for n in (1, 2, 3)], 12, known=known)))
        assert report.differing == []
        assert warehouse.absences() == [], "what was missed was seen again"
        assert say(warehouse) == said

    def test_a_window_of_which_nothing_is_new_is_landed_without_a_record(self, warehouse, seen):
        said = say(warehouse)
        answer = december([booking(3), booking(1)], 11, known=seen)
        assert answer.lines == ()
        assert warehouse.land(landing(answer)).rows == 0
        assert [a.ask.parts for a in warehouse.absences()] == [("uuid-2",)]
        assert say(warehouse) == said

    def test_what_a_newer_request_wrote_meanwhile_stays(self, warehouse, seen):
        """R6; but the window's bytes are not what is landed, so an equal answer is read."""
        window = december([booking(n) for n in (1, 2, 3)], 20, known=seen)
        warehouse.land(landing(one(booking(2, status="NEWER"), 30)))
        report = warehouse.land(landing(window))
        assert report.differing == []
        assert live(warehouse, "core.bookings", "status") == ["CONFIRMED", "CONFIRMED", "NEWER"]
        assert warehouse.covered([window.subject])[window.subject].answer_hash is None

    @pytest.mark.parametrize("seqs", [(20, 30), (30, 20)])
    def test_in_one_landing_the_later_request_wins_whether_it_was_read_or_seen(self, warehouse, seen, seqs):
        own, window = seqs
        answers = one(booking(2, status="OWN"), own), december([booking(n) for n in (1, 2, 3)], window, known=seen)
        report = warehouse.land(landing(*answers))
        assert ("OWN" in live(warehouse, "core.bookings", "status")) == (own > window)
        assert report.differing == []
        (one_known, all_known) = (warehouse.covered([a.subject])[a.subject] for a in answers)
        assert (one_known.answer_hash is None, all_known.answer_hash is None) == (own < window, own > window)

    @pytest.mark.parametrize("seqs", [(20, 30), (30, 20)])
    def test_a_booking_in_two_windows_of_one_landing_is_where_the_later_one_has_it(self, warehouse, seen, seqs):
        """It moved between the requests: December has it as it was, January as it is, or the other way round."""
        moved = booking(2)
        moved["availability"]["localDateTimeStart"] = "2027-01-05T09:30:00+00:00"
        january = answered("bookings", [moved], seqs[1], parts=("2027-01",), window=Window.month("2027-01"))
        warehouse.land(landing(december([booking(n) for n in (1, 2, 3)], seqs[0], known=seen), january))
        day = {True: dt.date(2027, 1, 5), False: dt.date(2026, 12, 5)}[seqs[1] > seqs[0]]
        assert warehouse.query("select local_date from core.bookings where booking_uuid = 'uuid-2'").rows == [(day,)]

    def test_a_refusal_asked_for_later_than_the_window_is_not_undone_by_what_was_seen(self, warehouse, seen):
        window = december([booking(n) for n in (1, 2, 3)], 20, known=seen)
        warehouse.land(landing(gone("booking", "uuid-2", 30)))
        assert warehouse.land(landing(window)).differing == []
        (missed,) = warehouse.absences()
        assert (missed.key, missed.misses) == ('["uuid-2"]', 1)
        assert missed.ask.parts == ("2026-12",), "its list is asked before it is believed"

    def test_contacts_that_change_and_change_back_are_landed_both_times(self, warehouse, seen, private):
        """No column of the booking's row says so; the digest must."""
        names = (
            "select distinct full_name from {}private.booking_contacts where booking_uuid = 'uuid-2' and not is_deleted"
        )
        bookings = [booking(1), booking(2, name="Changed"), booking(3)]
        report = warehouse.land(landing(december(bookings, 20, known=seen)))
        assert "core.bookings" not in report.written, "a digest alone is not a changed row"
        assert private(warehouse, names) == [("Changed",)]
        known = warehouse.known_bookings("main", DECEMBER)
        assert len(known) == 3
        back = december([booking(n) for n in (1, 2, 3)], 30, known=known)
        assert len(back.seen) == 2
        warehouse.land(landing(back))
        assert private(warehouse, names) == [("Ana",)]

    @pytest.mark.usefixtures("seen")
    def test_contacts_that_change_by_the_bookings_own_road_make_the_windows_answer_old_news(self, warehouse):
        window = Subject("main", SubjectKind.BOOKINGS, ("2026-12",))
        warehouse.land(landing(one(booking(2), 20)))
        assert warehouse.covered([window])[window].answer_hash, "nothing changed"
        warehouse.land(landing(one(booking(2, name="Changed"), 21)))
        assert warehouse.covered([window])[window].answer_hash is None

    def test_without_a_capability_nothing_is_known_and_with_it_again_everything(self, warehouse, seen):
        said, bookings = say(warehouse), [booking(n) for n in (1, 2, 3)]
        warehouse.land(landing(december(bookings, 20, flags={"has_pricing": False})))
        assert warehouse.known_bookings("main", DECEMBER) == {}
        warehouse.land(landing(december(bookings, 30)))
        assert warehouse.known_bookings("main", DECEMBER) == seen
        assert say(warehouse) == said

    def test_a_value_sent_unasked_is_kept_out_and_comes_in_with_its_capability(self, warehouse):
        """The bytes are the same both times: what they become is not."""
        unasked = {"flags": dict.fromkeys(FLAGS, False)}
        for flags in (unasked, {}):
            seq = 20 if flags else 30
            warehouse.land(
                landing(
                    december([booking(1)], seq, **flags),
                    departures([slot(5)], seq, **flags),
                    answered("products", [product()], seq, **flags),
                )
            )
            there = [
                live(warehouse, "core.bookings", "currency"),
                live(warehouse, "core.products", "title"),
                live(warehouse, "core.booking_extra_items", "extra_id"),
                live(warehouse, "core.availability_prices", "currency"),
            ]
            assert there == ([[None], [None], [], []] if flags else [["EUR"], ["Tram"], ["photo"], ["EUR"]])

    # -- absence (R7) -----------------------------------------------------------------------------------------------

    def test_an_absent_booking_is_missed_not_deleted_and_its_uuid_can_tell(self, warehouse):
        warehouse.land(landing(december([booking(1), booking(2)], 10)))
        report = warehouse.land(landing(december([booking(2)], 11)))
        assert report.absent == 1
        (absence,) = warehouse.absences()
        assert (absence.table, absence.ask) == ("core.bookings", Subject("main", SubjectKind.BOOKING, ("uuid-1",)))
        assert absence.misses < 2
        assert live(warehouse, "core.bookings", "booking_uuid") == ["uuid-1", "uuid-2"]

    def test_two_refusals_of_the_own_id_count_two_and_one_twice_counts_once(self, warehouse):
        warehouse.land(landing(december([booking(1), booking(2)], 10)))
        warehouse.land(landing(december([booking(2)], 11)))
        warehouse.land(landing(gone("booking", "uuid-1", 12)))
        before = warehouse.absences()[0].misses
        warehouse.land(landing(gone("booking", "uuid-1", 12)))
        assert warehouse.absences()[0].misses == before
        warehouse.land(landing(gone("booking", "uuid-1", 13)))
        assert warehouse.absences()[0].misses == before + 1

    def test_a_booking_that_is_shown_in_another_case_is_another_and_the_former_is_missed(self, warehouse):
        warehouse.land(landing(december([booking(1), booking(2)], 10)))
        loud = booking(1) | {"uuid": "UUID-1"}
        for seq in (11, 12):
            answer = answered("booking", [loud], seq, parts=("uuid-1",))
            warehouse.land(landing(dataclasses.replace(answer, respelled=True, answer_hash="")))
        assert live(warehouse, "core.bookings", "booking_uuid") == ["UUID-1", "uuid-1", "uuid-2"]
        assert [(absence.key, absence.misses) for absence in warehouse.absences()] == [('["uuid-1"]', 2)]

    def test_of_many_refusals_of_one_landing_each_live_row_is_missed_once(self, warehouse):
        warehouse.land(landing(december([booking(1), booking(2)], 10), answered("products", [product()], 11)))
        refused = [gone("booking", f"uuid-{n}", 20 + n) for n in (1, 2, 3)]
        report = warehouse.land(landing(*refused, gone("product", "p", 24)))
        asked = [(a.key, a.ask.kind, a.misses) for a in warehouse.absences()]
        assert sorted(asked) == [('["p"]', "products", 1), ('["uuid-1"]', "bookings", 1), ('["uuid-2"]', "bookings", 1)]
        assert report.absent == 3
        lists = [Subject("main", SubjectKind.BOOKINGS, ("2026-12",)), Subject("main", SubjectKind.PRODUCTS, ())]
        assert [c.answer_hash for c in warehouse.covered(lists).values()] == [None, None], "their bytes must be read"

    def test_a_booking_found_by_its_uuid_is_missed_no_longer(self, warehouse):
        warehouse.land(landing(december([booking(1), booking(2)], 10)))
        warehouse.land(landing(december([booking(2)], 11)))
        warehouse.land(landing(one(booking(1), 12)))
        assert warehouse.absences() == []

    def test_a_list_that_lacks_a_confirmed_booking_of_its_days_is_complete_when_one_has_it(self, warehouse):
        complete = "select is_complete, answer_hash is null from ops.coverage where resource = 'bookings'"
        warehouse.land(landing(december([booking(3), booking(4)], 1)))
        warehouse.land(landing(december([booking(4)], 2)))
        warehouse.land(landing(one(booking(3), 3)))
        assert warehouse.query(complete).rows == [(False, True)]
        warehouse.land(landing(december([booking(3), booking(4)], 4)))
        assert warehouse.query(complete).rows == [(True, False)]

    @pytest.mark.parametrize("other", [{"status": "CANCELLED"}, {"month": 11}, {"availability": None}])
    def test_a_list_is_complete_without_a_booking_that_it_need_not_show_any_more(self, warehouse, other):
        warehouse.land(landing(december([booking(3), booking(4)], 1)))
        warehouse.land(landing(december([booking(4)], 2)))
        changed = booking(3) | other if "availability" in other else booking(3, **other)
        warehouse.land(landing(one(changed, 3)))
        assert warehouse.query("select is_complete from ops.coverage where resource = 'bookings'").rows == [(True,)]
        undated = "select local_date is null, stale_columns from core.bookings where booking_uuid = 'uuid-3'"
        assert warehouse.query(undated).rows == [("availability" in other, None)]

    def test_an_incomplete_answer_proves_no_absence(self, warehouse):
        warehouse.land(landing(december([booking(1), booking(2)], 10)))
        warehouse.land(landing(december([booking(2)], 11, complete=False)))
        assert warehouse.absences() == []

    def test_an_answer_whose_dates_mean_nothing_known_proves_no_absence(self, warehouse):
        warehouse.land(landing(december([booking(1), booking(2)], 10)))
        warehouse.land(landing(december([booking(2)], 11, meaning="unknown")))
        assert warehouse.absences() == []

    def test_a_window_of_creation_dates_speaks_for_bookings_created_in_it(self, warehouse):
        warehouse.land(landing(december([booking(1), booking(2)], 10)))
        warehouse.land(landing(december([booking(2)], 11, meaning="creation")))
        assert warehouse.absences() == [], "both were created in November"
        november = answered(
            "bookings", [booking(2)], 12, parts=("2026-11",), window=Window.month("2026-11"), meaning="creation"
        )
        warehouse.land(landing(november))
        assert [a.ask.parts for a in warehouse.absences()] == [("uuid-1",)]

    def test_a_window_speaks_only_for_its_own_days(self, warehouse):
        warehouse.land(landing(december([booking(1), booking(2, day=31)], 10), departures([slot(1), slot(31)], 11)))
        warehouse.land(landing(answered("bookings", [], 12, parts=("2027-01",), window=Window.month("2027-01"))))
        half = Window(dt.date(2026, 12, 10), dt.date(2026, 12, 31))
        warehouse.land(landing(answered("availability", [], 13, parts=("p", "o", "2026-12"), window=half)))
        assert [(a.table, a.misses) for a in warehouse.absences()] == [("core.availability", 1)]
        assert "2026-12-31" in warehouse.absences()[0].key

    def test_an_absent_departure_is_missed_once_per_answer_and_forgotten_when_it_is_back(self, warehouse):
        warehouse.land(landing(departures([slot(5), slot(6)], 10)))
        warehouse.land(landing(departures([slot(6)], 11)))
        assert [a.misses for a in warehouse.absences()] == [1]
        warehouse.land(landing(departures([slot(6)], 12)))
        assert [a.misses for a in warehouse.absences()] == [2]
        warehouse.land(landing(departures([slot(5), slot(6)], 13)))
        assert warehouse.absences() == []

    def test_an_option_or_unit_that_left_its_product_is_missed(self, warehouse):
        both = answered("products", [product(options=("o", "o2"))], 10)
        warehouse.land(landing(both))
        warehouse.land(landing(answered("products", [product(options=("o",))], 11)))
        missed = {(a.table, a.ask) for a in warehouse.absences()}
        document = Subject("main", SubjectKind.PRODUCT, ("p",))
        assert ("core.options", document) in missed
        assert {ask for _, ask in missed} == {document}

    # -- bury -------------------------------------------------------------------------------------------------------

    def test_burying_marks_the_row_and_what_hangs_on_it(self, warehouse):
        warehouse.land(landing(december([booking(1), booking(2)], 10)))
        warehouse.land(landing(december([booking(2)], 11)))
        assert warehouse.bury(warehouse.absences(), now=NOW, fence=1) >= 3
        assert live(warehouse, "core.bookings", "booking_uuid") == ["uuid-2"]
        assert {
            r[0] for r in warehouse.query("select booking_uuid from core.booking_unit_items where not is_deleted").rows
        } == {"uuid-2"}
        assert warehouse.query("select count(*) from core.bookings").rows == [(2,)], "marked, not removed"
        assert warehouse.absences() == []

    def test_what_was_buried_and_comes_back_is_live_again_with_its_first_day(self, warehouse):
        warehouse.land(landing(december([booking(1), booking(2)], 10)))
        said = say(warehouse)
        warehouse.land(landing(december([booking(2)], 11)))
        warehouse.bury(warehouse.absences(), now=NOW, fence=1)
        warehouse.land(landing(december([booking(1), booking(2)], 12), minutes=9))
        assert say(warehouse) == said
        row = warehouse.query(
            "select is_deleted, deleted_at_utc, first_seen_at_utc = '2026-11-20T12:00:00Z'::timestamptz "
            "from core.bookings where booking_uuid = 'uuid-1'"
        ).rows
        assert row == [(False, None, True)]

    def test_what_was_shown_again_since_a_burial_was_decided_is_not_buried(self, warehouse, private):
        """Landings go on between the decision and the burial; the answer that shows it may be the last one for long."""
        warehouse.land(landing(december([booking(1), booking(2), booking(3)], 10), departures([slot(5), slot(6)], 11)))
        said = say(warehouse)
        warehouse.land(landing(december([booking(2)], 12), departures([slot(6)], 13)))
        decided = warehouse.absences()
        assert len(decided) == 3
        warehouse.land(landing(one(booking(1), 14), departures([slot(5), slot(6)], 15)))
        assert warehouse.bury(decided, now=NOW, fence=1)
        assert live(warehouse, "core.bookings", "booking_uuid") == ["uuid-1", "uuid-2"]
        assert len(live(warehouse, "core.availability", "availability_id")) == 2
        kept = "select distinct booking_uuid from {}private.booking_contacts where not is_deleted order by 1"
        assert [row[0] for row in private(warehouse, kept)] == ["uuid-1", "uuid-2"]
        warehouse.land(landing(one(booking(3), 16)))
        assert say(warehouse) == said

    def test_the_digest_of_a_burial_is_the_digest_of_never_having_been(self, warehouse, open_warehouse):
        warehouse.land(landing(december([booking(1), booking(2)], 10), departures([slot(5), slot(6)], 11)))
        warehouse.land(landing(december([booking(2)], 12), departures([slot(6)], 13)))
        warehouse.bury(warehouse.absences(), now=NOW, fence=1)
        other = open_warehouse("other")
        other.claim_writer(1, "test")
        other.land(landing(december([booking(2)], 10), departures([slot(6)], 11)))
        assert say(warehouse) == say(other)
        other.close()

    def test_a_buried_product_takes_its_options_units_and_coming_departures_along(self, warehouse):
        warehouse.land(
            landing(
                answered("products", [product(), product(2, options=("o9",))], 10), departures([slot(5), slot(6)], 11)
            )
        )
        warehouse.land(landing(answered("products", [product(2, options=("o9",))], 12)))
        missed = [a for a in warehouse.absences() if a.table == "core.products"]
        assert [a.ask for a in missed] == [Subject("main", SubjectKind.PRODUCT, ("p",))]
        warehouse.bury(missed, now=NOW, fence=1)
        assert live(warehouse, "core.options", "option_id") == ["o9"]
        assert live(warehouse, "core.units", "product_id") == ["p2", "p2"]
        assert live(warehouse, "core.availability", "availability_id") == []

    @pytest.mark.parametrize("what", ["core.products", "core.options"])
    def test_a_month_whose_departures_went_with_their_product_or_option_is_read_again(self, warehouse, what):
        """The answer may come back with the same bytes when the product does."""
        both = answered("products", [product(options=("o", "o2")), product(2)], 10)
        other = answered("availability", [slot(7)], 12, parts=("p2", "o", "2026-12"), window=DECEMBER)
        month = departures([slot(5), slot(6)], 11)
        warehouse.land(landing(both, month, other))
        left = [product(2)] if what == "core.products" else [product(options=("o2",)), product(2)]
        warehouse.land(landing(answered("products", left, 13)))
        gone_now = [a for a in warehouse.absences() if a.table == what]
        assert len(gone_now) == 1
        warehouse.bury(gone_now, now=NOW, fence=1)
        found = warehouse.query("select product_id, answer_hash is null, row_count from ops.coverage "
            "where resource = 'availability' order by 1").rows  # fmt: skip
        assert found == [("p", True, 0), ("p2", False, 1)]
        again = [dataclasses.replace(both, request_seq=14), departures([slot(5), slot(6)], 15)]
        warehouse.land(landing(*again))
        assert len(live(warehouse, "core.availability", "availability_id")) == 3

    # -- capabilities (R10) -----------------------------------------------------------------------------------------

    def test_without_a_capability_its_columns_and_details_keep_their_values(self, warehouse):
        warehouse.land(
            landing(december([booking(1)], 10), answered("products", [product()], 11), departures([slot(5)], 12))
        )
        said = say(warehouse)
        poor = {"has_pricing": False, "has_content": False, "has_extras": False}
        bare, bare_slot, bare_product = booking(1), slot(5), product()
        for part in (bare, *bare["unitItems"]):
            part.pop("pricing")
            part.pop("extraItems")
        bare_slot.pop("unitPricing")
        for name in ("title", "defaultCurrency", "availableCurrencies", "pricingPer"):
            bare_product.pop(name)
        bare_product["options"][0].pop("title")
        for unit in bare_product["options"][0]["units"]:
            unit.pop("pricingFrom")
            unit.pop("extras")
        warehouse.land(
            landing(
                december([bare], 20, flags=poor),
                answered("products", [bare_product], 21, flags=poor),
                departures([bare_slot], 22, flags=poor),
            )
        )
        assert say(warehouse) == said

    def test_what_no_record_shows_any_more_stays_and_is_drift_and_what_one_lost_is_gone(self, warehouse):
        def bare(number):
            return {**booking(number), "pricing": None}

        numbers = (1, 2, 3)
        warehouse.land(landing(december([booking(n) for n in numbers], 10)))
        said = say(warehouse)
        warehouse.land(landing(december([bare(n) for n in numbers], 11)))
        assert say(warehouse) == said
        assert "pricing.includedTaxes" in missing(warehouse)
        stale = warehouse.query("select stale_columns from core.bookings").rows
        assert all("retail_minor" in columns for (columns,) in stale)
        warehouse.land(landing(december([booking(n) for n in numbers], 12)))
        assert missing(warehouse) == []
        warehouse.land(landing(december([bare(1), booking(2), booking(3)], 13)))
        poor = warehouse.query("select booking_uuid from core.bookings where retail_minor is null").rows
        assert (poor, missing(warehouse)) == ([("uuid-1",)], [])

    def test_a_field_is_missing_while_a_row_that_is_asked_for_keeps_a_value_of_it(self, warehouse):
        def limited(day, **more):
            return {**slot(day, **more), "maxUnits": 5}

        first, days = in_month(11, [limited(25, month=11)], 10), (1, 2, 3, 4)
        warehouse.land(landing(first, departures([limited(day) for day in days], 11)))
        some = [slot(1), slot(2), slot(3), limited(4)]
        warehouse.land(landing(departures(some, 12), guard=Guard(rows=1)))
        warehouse.land(landing(in_month(11, [limited(25, month=11, vacancies=1)], 13)))
        assert missing(warehouse) == ["maxUnits"], "another month that shows it says nothing about December"
        warehouse.land(landing(departures([limited(1), slot(2), slot(3), limited(4)], 14)))
        assert live(warehouse, "core.availability", "max_units") == [5] * 5
        assert missing(warehouse) == ["maxUnits"]
        assert missing(warehouse, since=dt.date(2026, 12, 4)) == [], "the days before are shown by no answer any more"

    def test_a_capability_or_a_contact_is_missing_until_the_answers_that_lacked_it_have_it(self, warehouse):
        def november(seq, **more):
            record = booking(9, month=11, retail=seq)
            return answered("bookings", [record], seq, parts=("2026-11",), window=Window.month("2026-11"), **more)

        warehouse.land(landing(november(10), december([booking(1), booking(2)], 11)))
        bare = [{**booking(n), "contact": {}, "extraItems": None} for n in (1, 2)]
        poor = {"flags": {"has_extras": False}, "missing_capabilities": ("extras",)}
        warehouse.land(landing(december(bare, 12, **poor)))
        warehouse.land(landing(november(13)))
        assert missing(warehouse) == ["contact", "extras"]
        assert missing(warehouse, since=dt.date(2027, 1, 1)) == []
        warehouse.land(landing(december(bare, 14, **poor)))
        warehouse.land(landing(december([booking(1), booking(2)], 15)))
        assert missing(warehouse) == []

    def test_what_few_details_lost_is_judged_beside_all_that_came(self, warehouse):
        def netted(day, net):
            made = slot(day)
            made["unitPricing"][0]["net"] = net
            return made

        warehouse.land(landing(departures([netted(day, 7) for day in (1, 2, 3, 4)], 10)))
        warehouse.land(landing(departures([netted(day, 7 if day > 2 else None) for day in (1, 2, 3, 4)], 11)))
        assert missing(warehouse) == [], "the two that did not change show it"
        nets = warehouse.query("select net_minor from core.availability_prices order by local_date").rows
        assert nets == [(None,), (None,), (7,), (7,)]

    def test_a_value_that_one_row_alone_had_is_gone_and_of_many_such_the_second_stays(self, warehouse):
        def referred(month, reference):
            records = [booking(f"{month}-{n}", month=month) for n in (1, 2)]
            records[0]["resellerReference"] = reference
            return records

        def november(records, seq):
            return answered("bookings", records, seq, parts=("2026-11",), window=Window.month("2026-11"))

        def references():
            return [r for (r,) in warehouse.query("select reseller_reference from core.bookings order by 1").rows if r]

        warehouse.land(landing(december(referred(12, "R12"), 10), november(referred(11, "R11"), 11)))
        report = warehouse.land(landing(december(referred(12, None), 12)))
        assert (references(), missing(warehouse)) == (["R11"], [])
        assert report.lost == {("main", "bookings", "resellerReference"): (1, 0)}
        assert warehouse.land(landing(december(referred(12, None), 13))).rows == 0
        warehouse.land(landing(november(referred(11, None), 14), lost_lately=lambda: report.lost))
        assert (references(), missing(warehouse)) == (["R11"], ["resellerReference"])

    def test_a_price_of_which_a_part_is_kept_is_kept_whole(self, warehouse):
        """Two of twelve lost it, which is few, but with it the only two net prices."""

        def priced(number, retail, price):
            made = booking(number, retail=retail)
            made["unitItems"][0]["extraItems"][0]["pricing"] = price
            return made

        price = {"currency": "EUR", "currencyPrecision": 2, "original": 500, "retail": 500, "net": None}
        rest = [(n, price) for n in range(3, 13)]
        netted = [(1, {**price, "net": 400}), (2, {**price, "net": 400})]
        warehouse.land(landing(december([priced(n, 1000, p) for n, p in netted + rest], 10)))
        bare = [(1, None), (2, None)]
        warehouse.land(landing(december([priced(n, 900, p) for n, p in bare + rest], 11), guard=Guard(rows=1)))
        extras = (
            "select distinct currency, retail_minor, net_minor, net_amount from core.booking_extra_items order by 3"
        )
        assert warehouse.query(extras).rows == [("EUR", 500, 400, 4), ("EUR", 500, None, None)]
        assert missing(warehouse) == ["unitItems.extraItems.net"]
        (check,) = [check for check in sql_files(Path("nowhere"), "checks") if check.name == "money_exact"]
        assert warehouse.query(check.sql).rows == []

    def test_an_extra_without_a_name_lands_with_the_others(self, warehouse):
        unnamed = booking(1)
        unnamed["extraItems"] = [{"quantity": 1}]
        warehouse.land(landing(december([unnamed, booking(2)], 10)))
        found = warehouse.query(
            "select booking_uuid, extra_id, quantity from core.booking_extra_items where unit_item_uuid = '' order by 1"
        )
        assert found.rows == [("uuid-1", "", 1)]
        assert len(live(warehouse, "core.bookings", "booking_uuid")) == 2

    # -- one writer (R9) --------------------------------------------------------------------------------------------

    def test_a_lower_fence_is_refused_everywhere_and_nothing_is_kept(self, warehouse):
        warehouse.land(landing(december([booking(1), booking(2)], 10)))
        warehouse.land(landing(december([booking(2)], 11)))
        warehouse.claim_writer(5, "the next one")
        said, absences = say(warehouse), warehouse.absences()
        with pytest.raises(WriterFenced):
            warehouse.land(landing(december([booking(3)], 12), fence=4))
        with pytest.raises(WriterFenced):
            warehouse.bury(absences, now=NOW, fence=4)
        with pytest.raises(WriterFenced):
            warehouse.claim_writer(4, "a zombie")
        assert (say(warehouse), warehouse.absences()) == (said, absences)
        warehouse.land(landing(december([booking(1), booking(2), booking(3)], 13), fence=5))
        assert warehouse.highest_numbers() == (13, 5)

    def test_each_connection_has_an_owner_of_its_own_and_a_former_one_keeps_nothing(self, warehouse):
        warehouse.claim_writer({"": 5}, "who keeps it")
        warehouse.claim_writer({"main": 6}, "one")
        warehouse.claim_writer({"other": 7}, "two")
        warehouse.land(landing(december([booking(1)], 10), fence={"main": 6}))
        for fence in ({"main": 5}, {"main": 7}, {"main": 6, "other": 6}, {"third": 6}, {"": 6}):
            with pytest.raises(WriterFenced):
                warehouse.land(landing(december([booking(2)], 11), fence=fence))
        with pytest.raises(WriterFenced, match="newer writer"):
            warehouse.claim_writer({"main": 5}, "a zombie")
        warehouse.claim_writer({"main": 8}, "two")
        said = say(warehouse)
        with pytest.raises(WriterFenced):
            warehouse.land(landing(december([booking(2)], 11), fence={"main": 6}))
        with pytest.raises(WriterFenced):
            warehouse.bury([], now=NOW, fence={"main": 6})
        with pytest.raises(WriterFenced):
            warehouse.land(landing(december([booking(2)], 11), fence=5))
        assert say(warehouse) == said
        warehouse.land(landing(december([booking(2)], 12), fence={"main": 8}))
        warehouse.claim_writer({"": 9}, "who keeps it next")
        warehouse.land(landing(december([booking(1)], 13), fence={"main": 8, "other": 7}))
        with pytest.raises(WriterFenced):
            warehouse.claim_writer({"main": 8}, "one that was given its token before and did not use it")
        with pytest.raises(WriterFenced, match="token 9"):
            warehouse.claim_writer({"main": 11, "other": 8}, "who has one of them too late")
        warehouse.land(landing(december([booking(2)], 14), fence={"main": 8, "other": 7}))
        warehouse.claim_writer({"main": 12, "other": 13}, "both at once")
        for fence in ({"main": 8}, {"other": 7}, {"main": 13}, {"other": 12}):
            with pytest.raises(WriterFenced):
                warehouse.land(landing(december([booking(1)], 15), fence=fence))
        warehouse.land(landing(december([booking(1)], 15), fence={"main": 12, "other": 13}))

        warehouse.claim_writer(14, "a command that has it alone")
        for fence in ({"main": 12}, {"other": 13}, {"": 9}, 9):
            with pytest.raises(WriterFenced):
                warehouse.land(landing(december([booking(2)], 16), fence=fence))
        warehouse.land(landing(december([booking(2)], 17), fence=14))

    def test_what_was_committed_is_there_after_reopening(self, warehouse, open_warehouse):
        warehouse.land(landing(december([booking(1)], 10), departures([slot(5)], 11)))
        said = say(warehouse)
        warehouse.close()
        again = open_warehouse()
        assert say(again) == said
        assert again.highest_numbers() == (11, 1)
        again.close()

    # -- reading ----------------------------------------------------------------------------------------------------

    def test_bookings_of_no_price_are_counted_where_their_tickets_or_all_others_have_one(self, warehouse):
        def count():
            return unpriced(lambda sql: warehouse.query(sql).rows)

        free = [booking(n, retail=0) for n in range(1, 4)]
        warehouse.land(landing(december(free, 10)))
        assert count() == {}, "nothing says that they are not free"
        warehouse.land(landing(answered("products", [product()], 11)))
        assert count() == {"main": 3}, "their product has a price, and no booking has one"
        warehouse.land(landing(december([*free[:2], booking(3)], 12), minutes=1))
        assert count() == {}, "some are free, others are not"
        tickets = booking(1)
        tickets["pricing"] = free[0]["pricing"]
        warehouse.land(landing(december([tickets, free[1], booking(3)], 13), minutes=2))
        assert count() == {"main": 1}

    def test_a_query_takes_parameters_and_says_when_it_was_cut(self, warehouse):
        warehouse.land(landing(december([booking(n) for n in range(1, 6)], 10)))
        found = warehouse.query("select booking_id from core.bookings where booking_uuid = $1", ["uuid-3"])
        assert (found.columns, found.rows, found.truncated) == (("booking_id",), [("BK-3",)], False)
        cut = warehouse.query("select booking_id from core.bookings order by 1", limit=2)
        assert (len(cut.rows), cut.truncated) == (2, True)
        assert not warehouse.query("select 1", limit=1).truncated

    def test_live_rows_are_counted_per_connection_and_table(self, warehouse):
        warehouse.land(landing(december([booking(1), booking(2)], 10)))
        assert warehouse.live_rows()["main", "core.bookings"] == 2

    def test_a_log_is_upserted_by_its_key_and_can_be_replaced(self, warehouse):
        def row(name, count):
            return {
                "connection_id": "main", "resource": "bookings", "kind": "field", "name": name, "seen_count": count,
                "first_seen_at_utc": NOW, "last_seen_at_utc": NOW,
            }  # fmt: skip

        sql = "select name, seen_count from ops.schema_drift order by 1"
        warehouse.write_log("ops.schema_drift", [row("a", 1), row("b", 1)])
        warehouse.write_log("ops.schema_drift", [row("a", 9), row("a", 2)])
        assert warehouse.query(sql).rows == [("a", 2), ("b", 1)]
        warehouse.write_log("ops.schema_drift", [row("c", 3)], replace=True)
        assert warehouse.query(sql).rows == [("c", 3)]
        warehouse.write_log("ops.schema_drift", [], replace=True)
        assert warehouse.query(sql).rows == []

    def test_drift_is_counted(self, warehouse):
        drift = (Drift("main", "bookings", "field", "surprise"),)
        warehouse.land(landing(december([booking(1)], 10, drift=drift)))
        warehouse.land(landing(december([booking(1, retail=7)], 11, drift=drift)))
        assert warehouse.query("select name, seen_count from ops.schema_drift").rows == [("surprise", 2)]

    def test_scripts_run_in_one_transaction(self, warehouse):
        from octo_sync.errors import WarehouseError

        with pytest.raises(WarehouseError):
            warehouse.run_script(["create view marts.one as select 1 as x", "select * from no_such_table"])
        with pytest.raises(WarehouseError):
            warehouse.query("select * from marts.one")
        warehouse.run_script(["create view marts.one as select 1 as x"])
        assert warehouse.query("select * from marts.one").rows == [(1,)]

    # -- payloads ---------------------------------------------------------------------------------------------------

    def test_a_payload_is_kept_once_until_it_changes(self, warehouse, private):
        def answer(text, seq):
            made = one(booking(1), seq, payloads=(Payload("booking", "uuid-1", text, text.decode()),))
            return dataclasses.replace(made, fetched_at=NOW + dt.timedelta(minutes=seq))

        for seq, text in enumerate((b"a", b"a", b"b", b"a"), start=10):
            warehouse.land(landing(answer(text, seq)))
        found = private(warehouse, "select payload from {}raw.records order by fetched_at_utc")
        assert [row[0] for row in found] == ["a", "b", "a"]

    # -- persons ----------------------------------------------------------------------------------------------------

    def test_contacts_and_payloads_are_taken_out_with_what_core_says_of_them(self, warehouse):
        made = [booking(n, day=n, name=f"Name {n}") for n in (1, 2)]
        made[0]["resellerReference"], made[1]["unitItems"][0]["supplierReference"] = "for a@x.org", "a%40x.org"
        landing = december(made, 10)
        payloads = tuple(
            Payload("booking", f"uuid-{n}", memoryview(f'{{"name": "Name {n}"}}'.encode()), f"h{n}") for n in (1, 2)
        )
        warehouse.land(
            Landing(run_id="r", fence=1, now=NOW, answered=[dataclasses.replace(landing, payloads=payloads)])
        )
        with warehouse.scrubbing(1) as scrubber:
            assert [row.full_name for row in scrubber.contacts() if not row.unit_item_uuid] == ["Name 1", "Name 2"]
            assert [stored.booking_uuid for stored in scrubber.payloads()] == ["uuid-1", "uuid-2"]
            assert scrubber.named(["uuid-1"]) == [("main", "uuid-1")]
            assert sorted(scrubber.addressed()) == [
                (("main", "uuid-1"), "for a@x.org"), (("main", "uuid-2"), "a%40x.org"),
            ]  # fmt: skip
            assert scrubber.repeats("Name 1") == 2
            (row,) = scrubber.bookings([("main", "uuid-1")])
            items = scrubber.items([("main", "uuid-1")])
            assert len(items) == 2
        with warehouse.scrubbing(1) as scrubber:
            blank = dataclasses.replace(row, loses_key=True, reseller_reference=None)
            assert scrubber.scrub_bookings([blank], items) == 1
        with warehouse.scrubbing(1) as scrubber:
            keys = [("main", "uuid-1", ""), ("main", "uuid-1", "item-1-0")]
            marks = [
                ContactRow(connection_id=c, booking_uuid=b, unit_item_uuid=i, erased_at_utc=NOW) for c, b, i in keys
            ]
            assert scrubber.replace_contacts(marks, NOW) == 2, "one is changed, one is made"
            assert scrubber.drop_payloads([("main", "uuid-1")], [("main", "uuid-2", "other hash")]) == 1
        warehouse.shed(core=True)
        with warehouse.scrubbing(1) as scrubber:
            assert scrubber.erased() == keys
            assert scrubber.repeats("Name 1") == 0
            assert scrubber.repeats("Name 2") == 2
        found = warehouse.query("select booking_uuid, payload_digest is null from core.bookings order by 1").rows
        assert found[0] == ("uuid-1", True)
        with pytest.raises(WriterFenced), warehouse.scrubbing(0) as scrubber:
            scrubber.drop_contacts()

    # -- any order --------------------------------------------------------------------------------------------------

    def test_any_order_and_any_grouping_of_the_same_answers_say_the_same(self, open_warehouse, tier):
        """The last request of each record decides, whenever and with whatever it arrives."""
        answers = _history()
        reference = open_warehouse("reference")
        reference.claim_writer(1, "test")
        for answer in answers:
            reference.land(landing(answer))
        said = say(reference)
        reference.close()
        count = 0

        @settings(
            max_examples=tier.choose(2, 5, 20),
            deadline=None,
            suppress_health_check=list(HealthCheck),
            database=None,
            derandomize=True,
        )
        @given(st.permutations(range(len(answers))), st.lists(st.integers(1, 5), min_size=len(answers)))
        def check(order, sizes):
            nonlocal count
            count += 1
            shuffled = InOrder(open_warehouse(f"shuffled-{count}"))
            shuffled.claim_writer(1, "test")
            left = [answers[i] for i in order]
            while left:
                size = sizes[len(left) % len(sizes)]
                batch, left = left[:size], left[size:]
                # The service hands out one answer per subject and landing.
                shuffled.land(landing(*{a.subject: a for a in sorted(batch, key=lambda a: a.request_seq)}.values()))
            try:
                assert say(shuffled) == said
            finally:
                shuffled.close()

        check()


def _history():
    """A small history of answers in the order of their requests; nothing in it is ever absent."""
    rng = random.Random(20261120)
    answers = []
    state = {n: booking(n, day=n) for n in range(1, 5)}
    slots = {d: slot(d) for d in range(1, 5)}
    for seq in range(10, 18):
        number = rng.randrange(1, 5)
        state[number] = booking(number, day=number, retail=seq * 100, tickets=rng.randrange(1, 4), name=f"Name {seq}")
        slots[number] = slot(number, vacancies=rng.randrange(10))
        kind = rng.choice(["window", "booking", "booking", "departures", "products", "product"])
        if kind == "window":
            answers.append(december(list(state.values()), seq))
        elif kind == "booking":
            answers.append(one(state[number], seq))
        elif kind == "departures":
            answers.append(departures(list(slots.values()), seq))
        elif kind == "products":
            answers.append(answered("products", [product(name=f"name {seq}", price=seq)], seq))
        else:
            answers.append(answered("product", [product(name=f"name {seq}", price=seq)], seq, parts=("p",)))
    answers.append(december(list(state.values()), 30))
    answers.append(departures(list(slots.values()), 31))
    answers.append(answered("products", [product(name="last", price=31)], 32))
    return answers
