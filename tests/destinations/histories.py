"""What any warehouse must keep of the past; a second suite beside `Contract`, with the same fixtures."""

import dataclasses
import datetime as dt
from pathlib import Path

from tests.destinations.contract import (
    DECEMBER,
    NOW,
    answered,
    booking,
    december,
    departures,
    landing,
    one,
    product,
    slot,
)

from octo_sync.destinations.base import Absence, Answered, Payload
from octo_sync.flows.publish import sql_files
from octo_sync.model import Source, Subject, SubjectKind, Window

__all__ = ["Histories"]

VERSIONS = "version_no, valid_from_utc, valid_to_utc, is_current, changed_fields, source"


def at(minutes):
    return NOW + dt.timedelta(minutes=minutes)


def of(warehouse, table, *columns):
    """Version columns and these, of every row, in order; instants as minutes since the first landing."""
    return [
        tuple((value - NOW).total_seconds() / 60 if isinstance(value, dt.datetime) else value for value in row)
        for row in warehouse.query(
            f"select {', '.join([VERSIONS, *columns])} from core.{table} order by {', '.join(columns[:1])}, version_no"
        ).rows
    ]


def bookings(warehouse, *columns):
    return of(warehouse, "booking_history", "booking_uuid", *columns)


def slots(warehouse, *columns):
    return of(warehouse, "availability_history", "availability_id", *columns)


def bury(warehouse, table, key, ask, now):
    """Mark a row deleted as if two answers had proven it gone."""
    proof = {
        "connection_id": "main", "table_name": table, "key": key, "resource": str(ask.kind), "subject_key": ask.key,
        "misses": 2, "request_seq": 1, "first_missed_at_utc": now,
    }  # fmt: skip
    warehouse.write_log("ops.absences", [proof])
    return warehouse.bury([Absence("main", table, key, ask, 2)], now=now, fence=1)


def payload(text, minute, number=1):
    """An answer of one booking whose payload is kept, fetched at that minute."""
    kept = Payload("booking", f"uuid-{number}", text.encode(), text)
    return dataclasses.replace(one(booking(number), 100 + minute, payloads=(kept,)), fetched_at=at(minute))


def run(name, started, ended=None):
    """A run of the log."""
    ended_at = None if ended is None else at(ended)
    return {"run_id": name, "command": "sync", "started_at_utc": at(started), "ended_at_utc": ended_at}


BOOKING = Subject("main", SubjectKind.BOOKING, ("uuid-1",))
PRODUCT = Subject("main", SubjectKind.PRODUCT, ("p",))
MONTH = Subject("main", SubjectKind.AVAILABILITY, ("p", "o", "2026-12"))


class Histories:
    """Any warehouse passes this."""

    # -- bookings ---------------------------------------------------------------------------------------------------

    def test_every_booking_has_a_first_version_with_what_brought_it(self, warehouse):
        report = warehouse.land(landing(december([booking(1), booking(2, retail=500, tickets=1)], 10)))
        assert bookings(warehouse, "status", "retail_amount::text", "currency", "pax_count", "local_date::text") == [
            (1, 0, None, True, "", "schedule", "uuid-1", "CONFIRMED", "10.0000", "EUR", 2, "2026-12-05"),
            (1, 0, None, True, "", "schedule", "uuid-2", "CONFIRMED", "5.0000", "EUR", 1, "2026-12-05"),
        ]
        assert report.written["core.booking_history"] == 2

    def test_a_change_closes_the_version_and_opens_the_next_at_the_same_instant(self, warehouse):
        warehouse.land(landing(december([booking(1), booking(2)], 10)))
        changed = one(booking(1, status="CANCELLED", retail=900, day=6), 11)
        warehouse.land(landing(changed, minutes=7))
        warehouse.land(landing(december([booking(1, status="REDEEMED", retail=900, day=6), booking(2)], 12), minutes=9))
        assert bookings(warehouse, "status", "retail_amount::text") == [
            (1, 0, 7, False, "", "schedule", "uuid-1", "CONFIRMED", "10.0000"),
            (2, 7, 9, False, "local_date,retail_amount,status", "schedule", "uuid-1", "CANCELLED", "9.0000"),
            (3, 9, None, True, "status", "schedule", "uuid-1", "REDEEMED", "9.0000"),
            (1, 0, None, True, "", "schedule", "uuid-2", "CONFIRMED", "10.0000"),
        ]

    def test_a_repeated_delivery_and_an_equal_answer_make_no_version(self, warehouse):
        first = december([booking(1), booking(2)], 10)
        warehouse.land(landing(first))
        warehouse.land(landing(december([booking(2), booking(1)], 11), minutes=1))
        warehouse.land(landing(one(booking(1), 12), minutes=2))
        warehouse.land(landing(one(booking(1), 13), minutes=3))
        same = Answered(
            subject=first.subject, request_seq=14, fetched_at=at(4), source=Source.NOTIFICATION,
            answer_hash=first.answer_hash, noun="bookings", window=DECEMBER, unchanged=True,
        )  # fmt: skip
        warehouse.land(landing(same, minutes=4))
        assert [(row[0], row[2]) for row in bookings(warehouse)] == [(1, None), (1, None)]
        verified = warehouse.query("select verified_at_utc, source from ops.coverage where resource = 'bookings'").rows
        assert verified == [(at(4), "notification")]

    def test_a_change_of_what_the_history_does_not_have_makes_no_version(self, warehouse):
        warehouse.land(landing(december([booking(1)], 10)))
        other = {**booking(1), "supplierReference": "S-1", "cancellable": False, "utcUpdatedAt": "2026-11-19T10:00:00Z"}
        report = warehouse.land(landing(one(other, 11), minutes=1))
        assert report.written["core.bookings"] == 1
        assert [(row[0], row[2]) for row in bookings(warehouse)] == [(1, None)]

    def test_a_price_that_a_service_stopped_sending_is_not_a_change(self, warehouse):
        warehouse.land(landing(december([booking(1)], 10)))
        bare = booking(1, status="REDEEMED")
        del bare["pricing"]
        warehouse.land(landing(one(bare, 11, flags={"has_pricing": False}), minutes=1))
        assert bookings(warehouse, "retail_amount::text")[1:] == [
            (2, 1, None, True, "status", "schedule", "uuid-1", "10.0000")
        ]

    def test_a_proven_deletion_closes_the_last_version_and_a_return_opens_the_next(self, warehouse):
        warehouse.land(landing(december([booking(1), booking(2)], 10)))
        assert bury(warehouse, "core.bookings", '["uuid-1"]', BOOKING, at(5))
        assert bookings(warehouse)[0] == (1, 0, 5, False, "", "schedule", "uuid-1")
        warehouse.land(landing(one(booking(1, retail=700), 20), minutes=8))
        assert bookings(warehouse, "retail_amount::text") == [
            (1, 0, 5, False, "", "schedule", "uuid-1", "10.0000"),
            (2, 8, None, True, "is_deleted,retail_amount", "schedule", "uuid-1", "7.0000"),
            (1, 0, None, True, "", "schedule", "uuid-2", "10.0000"),
        ]

    def test_a_clock_that_was_put_back_makes_no_versions_that_overlap(self, warehouse):
        warehouse.land(landing(december([booking(1)], 10), minutes=10))
        warehouse.land(landing(one(booking(1, retail=1), 11), minutes=4))
        warehouse.land(landing(one(booking(1, retail=2), 12), minutes=12))
        assert [row[1:3] for row in bookings(warehouse)] == [(10, 10), (10, 12), (12, None)]

    def test_a_landing_of_an_older_answer_leaves_no_version(self, warehouse):
        warehouse.land(landing(one(booking(1), 20)))
        warehouse.land(landing(december([booking(1, retail=1)], 10), minutes=1))
        assert [(row[0], row[2]) for row in bookings(warehouse)] == [(1, None)]

    # -- departures -------------------------------------------------------------------------------------------------

    def test_departures_that_never_changed_have_no_versions(self, warehouse):
        warehouse.land(landing(departures([slot(5), slot(6)], 10)))
        report = warehouse.land(landing(departures([slot(5), slot(6), slot(7)], 11), minutes=1))
        assert report.written["core.availability"] == 1
        assert slots(warehouse) == []

    def test_the_first_change_writes_what_it_was_and_what_it_is(self, warehouse):
        warehouse.land(landing(departures([slot(5), slot(6)], 10)))
        warehouse.land(landing(departures([slot(5, vacancies=0), slot(6)], 11), minutes=3))
        warehouse.land(landing(departures([slot(5, vacancies=4), slot(6)], 12), minutes=5))
        start = slot(5)["id"]
        assert slots(warehouse, "status", "is_available", "vacancies", "capacity", "local_date::text") == [
            (1, 0, 3, False, "", "", start, "AVAILABLE", True, 10, 20, "2026-12-05"),
            (
                2,
                3,
                5,
                False,
                "is_available,status,vacancies",
                "schedule",
                start,
                "SOLD_OUT",
                False,
                0,
                20,
                "2026-12-05",
            ),
            (
                3,
                5,
                None,
                True,
                "is_available,status,vacancies",
                "schedule",
                start,
                "AVAILABLE",
                True,
                4,
                20,
                "2026-12-05",
            ),
        ]

    def test_a_price_or_cutoff_of_a_departure_makes_no_version(self, warehouse):
        warehouse.land(landing(departures([slot(5)], 10)))
        other = slot(5)
        other["utcCutoffAt"] = "2026-12-05T07:00:00Z"
        other["unitPricing"][0]["retail"] += 5
        report = warehouse.land(landing(departures([other], 11), minutes=1))
        assert report.written["core.availability"] == 1
        assert slots(warehouse) == []

    def test_a_departure_that_was_gone_and_came_back_tells_both(self, warehouse):
        warehouse.land(landing(departures([slot(5), slot(6)], 10)))
        key = f'["p","o","{slot(5)["id"]}"]'
        bury(warehouse, "core.availability", key, MONTH, at(2))
        assert slots(warehouse) == [], "deleted_at_utc of the row itself says it"
        warehouse.land(landing(departures([slot(5), slot(6)], 12), minutes=6))
        assert slots(warehouse, "vacancies") == [
            (1, 0, 2, False, "", "", slot(5)["id"], 10),
            (2, 6, None, True, "is_deleted", "schedule", slot(5)["id"], 10),
        ]

    def test_old_versions_of_departures_go_and_the_newest_of_each_stays(self, warehouse):
        """What is valid stays however old it is; and one that is gone, so that its return is counted on from there."""

        def month(seq, vacancies, gone=10):
            return departures([slot(5, vacancies=vacancies), slot(6), slot(7, vacancies=gone)], seq)

        warehouse.land(landing(month(10, 10), december([booking(1)], 11)))
        for minute, vacancies in enumerate((9, 8, 7), start=1):
            warehouse.land(landing(month(20 + minute, vacancies, gone=5), minutes=minute))
        warehouse.land(landing(one(booking(1, status="REDEEMED"), 30), minutes=4))
        key = f'["p","o","{slot(7)["id"]}"]'
        bury(warehouse, "core.availability", key, MONTH, at(5))
        before, kept = slots(warehouse, "vacancies"), bookings(warehouse)
        assert [(row[6], *row[:3]) for row in before] == [
            (slot(5)["id"], 1, 0, 1), (slot(5)["id"], 2, 1, 2), (slot(5)["id"], 3, 2, 3), (slot(5)["id"], 4, 3, None),
            (slot(7)["id"], 1, 0, 1), (slot(7)["id"], 2, 1, 5),
        ]  # fmt: skip

        def prune(history):
            return warehouse.prune(raw_before=None, runs_before=None, history_before=history)

        assert prune(None) == 0
        assert prune(at(1)) == 0, "it was valid until then"
        assert slots(warehouse, "vacancies") == before
        assert prune(at(2.5)) == 3
        assert slots(warehouse, "vacancies") == [row for row in before if row[2] is None or row[2] > 2.5]
        assert prune(at(5000)) == 1
        assert slots(warehouse, "vacancies") == [before[3], before[5]]
        assert bookings(warehouse) == kept
        warehouse.land(landing(month(40, 7, gone=4), minutes=6))
        assert slots(warehouse, "vacancies")[-1] == (
            (3, 6, None, True, "is_deleted,vacancies", "schedule", slot(7)["id"], 4)
        )  # fmt: skip
        (wrong,) = [check for check in sql_files(Path("nowhere"), "checks") if check.name == "history_versions"]
        assert warehouse.query(wrong.sql).rows == []

    def test_a_product_that_is_gone_closes_its_departures_that_are_to_come(self, warehouse):
        def both(seq, vacancies):
            november = answered("availability", [slot(5, month=11, vacancies=vacancies)], seq,
                                parts=("p", "o", "2026-11"), window=Window.month("2026-11"))  # fmt: skip
            return departures([slot(5, vacancies=vacancies), slot(6)], seq + 1), november

        warehouse.land(landing(answered("products", [product()], 9), *both(10, 10)))
        warehouse.land(landing(*both(20, 1), minutes=1))
        bury(warehouse, "core.products", '["p"]', PRODUCT, at(4))
        past, to_come = slot(5, month=11)["id"], slot(5)["id"]
        assert [(row[6], *row[1:4]) for row in slots(warehouse)] == [
            (past, 0, 1, False),
            (past, 1, None, True),
            (to_come, 0, 1, False),
            (to_come, 1, 4, False),
        ]

    # -- payloads and runs --------------------------------------------------------------------------------------------

    def test_old_payloads_go_and_the_newest_of_each_record_stays(self, warehouse, private):
        for minute, text in enumerate(("a", "b", "c"), start=1):
            warehouse.land(landing(payload(text, minute)))
        warehouse.land(landing(payload("other", 1, number=2)))
        runs = [run("old", 0, 1)]
        warehouse.write_log("ops.runs", runs)

        def kept():
            return [text for (text,) in private(warehouse, "select payload from {}raw.records order by payload")]

        def prune(raw):
            return warehouse.prune(raw_before=raw, runs_before=None, history_before=None)

        assert (prune(at(1)), kept()) == (0, ["a", "b", "c", "other"]), "it was fetched then, not before"
        assert (prune(at(2.5)), kept()) == (2, ["c", "other"]), "the newest of each, however old"
        assert (prune(at(5000)), kept()) == (0, ["c", "other"])
        assert warehouse.query("select run_id from ops.runs").rows == [("old",)]

    def test_old_runs_go_and_one_that_has_not_ended_stays(self, warehouse, private):
        warehouse.land(landing(payload("a", 1), payload("x", 1, number=2)))
        warehouse.land(landing(payload("b", 2)))
        warehouse.write_log("ops.runs", [run("first", 0, 1), run("second", 2, 9), run("open", 0), run("late", 4, 5)])

        def prune(before):
            return warehouse.prune(raw_before=None, runs_before=before, history_before=None)

        def kept():
            return [name for (name,) in warehouse.query("select run_id from ops.runs order by started_at_utc, 1").rows]

        assert (prune(at(0)), kept()) == (0, ["first", "open", "second", "late"]), "it started then, not before"
        assert (prune(at(3)), kept()) == (2, ["open", "late"])
        assert (prune(at(5000)), kept()) == (1, ["open"])
        assert private(warehouse, "select count(*) from {}raw.records") == [(3,)]

    # -- unit prices ------------------------------------------------------------------------------------------------

    def test_unit_prices_go_up_down_and_back_without_gap_or_overlap(self, warehouse):
        for minute, price in enumerate((1000, 1200, 900, 1000, 1000)):
            warehouse.land(landing(answered("products", [product(units=("adult",), price=price)], 10 + minute),
                                   minutes=minute))  # fmt: skip
        assert prices(warehouse) == [
            ("adult", 1000, 0, 1, False),
            ("adult", 1200, 1, 2, False),
            ("adult", 900, 2, 3, False),
            ("adult", 1000, 3, None, True),
        ]

    def test_the_price_of_a_unit_that_goes_away_ends_and_begins_anew_when_it_returns(self, warehouse):
        for minute, units in enumerate((("adult", "child"), ("adult",), ("adult",), ("adult", "child"))):
            warehouse.land(landing(answered("products", [product(units=units)], 10 + minute), minutes=minute))
        assert prices(warehouse) == [
            ("adult", 1000, 0, None, True),
            ("child", 1000, 0, 1, False),
            ("child", 1000, 3, None, True),
        ]


def prices(warehouse):
    return [
        tuple((value - NOW).total_seconds() / 60 if isinstance(value, dt.datetime) else value for value in row)
        for row in warehouse.query(
            "select unit_id, retail_minor, valid_from_utc, valid_to_utc, is_current from core.unit_prices "
            "order by unit_id, valid_from_utc"
        ).rows
    ]
