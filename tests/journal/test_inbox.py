"""Deliveries and timers: what was acknowledged is stored and marked, together or not at all."""

import time
from datetime import datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.journal.helpers import NOON, ON_A_FILE, HandClock, availability, booking, fail, plan

from octo_sync.errors import JournalError
from octo_sync.journal import Journal, Months, Received, Timer, sql
from octo_sync.journal.inbox import NOTIFIED
from octo_sync.model import Source, Subject, SubjectKind

IN_5, IN_30 = NOON + timedelta(seconds=5), NOON + timedelta(seconds=30)
PRODUCTS = Subject("acme", SubjectKind.PRODUCTS)


def product(name: str, connection: str = "acme") -> Subject:
    return Subject(connection, SubjectKind.PRODUCT, (name,))


def delivery(
    *subjects: Subject, months: tuple[Months, ...] = (), confirm: tuple[datetime, ...] = (), **given
) -> Received:
    values = {"connection": "acme", "endpoint": "e1", "received_at": NOON, "body": b"{}"} | given
    return Received(subjects=subjects, months=months, confirm_at=confirm, **values)


def dirty(journal: Journal) -> dict[Subject, Source]:
    return {row.subject: row.source for row in journal.subjects.rows() if row.dirty}


def timers(journal: Journal) -> dict[tuple[Subject, str], datetime]:
    return {(one.subject, one.name): one.due_at for one in journal.timers.rows()}


# ── deliveries ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_delivery_is_stored_as_received_and_what_it_names_is_marked(journal: Journal) -> None:
    body = b'{"notificationType":"BOOKING_UPDATE"}\xff\x00'
    number = journal.inbox.accept(
        [delivery(booking("a"), booking("b"), body=body, type="BOOKING_UPDATE", reading="odd", subscription="s1")]
    )
    (stored,) = journal.inbox.deliveries()
    assert (stored.body, stored.type, stored.reading, stored.subscription) == (body, "BOOKING_UPDATE", "odd", "s1")
    assert (stored.connection, stored.endpoint, stored.received_at) == ("acme", "e1", NOON)
    assert (stored.marks, stored.seq) == (2, number)
    assert dirty(journal) == {booking("a"): Source.NOTIFICATION, booking("b"): Source.NOTIFICATION}
    assert {row.wanted_seq for row in journal.subjects.rows()} == {number}


def test_identical_deliveries_are_all_kept_and_each_marks_again(journal: Journal) -> None:
    same = delivery(booking(), body=b"same")
    first = journal.inbox.accept([same])
    (claim,) = journal.subjects.claim(1, run_id="r")
    second = journal.inbox.accept([same, same])
    journal.subjects.landed([claim], run_id="r")
    assert [one.seq for one in journal.inbox.deliveries()] == [first, second, second]
    assert dirty(journal) == {booking(): Source.NOTIFICATION}


def test_deliveries_of_one_transaction_stay_in_the_order_in_which_they_came(journal: Journal) -> None:
    bodies = [bytes([65 + number]) * number for number in range(40)]
    journal.inbox.accept([delivery(body=body) for body in bodies])
    assert [one.body for one in journal.inbox.deliveries()] == bodies


@pytest.mark.deep(0.4, everyday=1)
@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(
    items=st.lists(
        st.tuples(
            st.binary(max_size=300),
            st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20),
        ),
        max_size=5,
    )
)
def test_any_bytes_and_any_words_come_back_as_they_went_in(journal: Journal, items) -> None:
    last = max((one.id for one in journal.inbox.deliveries()), default=0)
    journal.inbox.accept(
        [delivery(booking(words), body=body, type=words, reading=words, subscription=words) for body, words in items]
    )
    stored = journal.inbox.deliveries(after_id=last)
    assert [(one.body, one.type, one.reading, one.subscription) for one in stored] == [
        (body, words, words, words) for body, words in items
    ]
    assert {booking(words) for _, words in items} <= set(dirty(journal))


def test_delivery_that_cannot_be_stored_leaves_no_mark_and_no_timer(journal: Journal) -> None:
    bad = delivery(booking("b"), connection="")
    before = journal.inbox.accept([])
    with pytest.raises(JournalError, match="rules"):
        journal.inbox.accept([delivery(booking("a"), confirm=(IN_5,)), bad])
    assert (journal.inbox.deliveries(), dirty(journal), timers(journal)) == ([], {}, {})
    assert journal.inbox.accept([]) == before + 1


def test_marks_of_a_delivery_are_made_by_the_rules_of_every_mark(fresh, clock: HandClock) -> None:
    """One statement for many must do what the statement for one does, whatever state the subjects are in."""
    rows = []
    for road in ("mark", "receive"):
        with Journal.open(fresh(), clock=clock) as journal:
            names = ["clean", "later", "failing", "quarantined", "landing"]
            journal.numbers.at_least(seq=2**52)
            journal.subjects.mark([booking(name) for name in names], Source.SCHEDULE, priority=3)
            for claim in journal.subjects.claim(9, run_id="r"):
                match claim.subject.parts[0]:
                    case "clean":
                        journal.subjects.landed([claim], run_id="r")
                    case "later":
                        journal.subjects.release([claim])
                        journal.subjects.forget([claim.subject])
                        journal.subjects.mark([claim.subject], Source.SCHEDULE, due_at=IN_30)
                    case "failing":
                        fail(journal, claim, retry_at=IN_30)
                    case "quarantined":
                        fail(journal, claim, quarantine=True)
            everything = [booking(name) for name in [*names, "unknown"]]
            if road == "mark":
                journal.subjects.mark(everything, Source.NOTIFICATION, priority=NOTIFIED)
            else:
                journal.inbox.accept([delivery(*everything)])
            rows.append(list(journal.subjects.rows()))
    assert rows[0] == rows[1]


def test_following_deliveries_goes_on_after_the_last_id_even_when_all_were_forgotten(journal: Journal) -> None:
    journal.inbox.accept([delivery(body=b"1"), delivery(body=b"2"), delivery(body=b"3", connection="other")])
    assert [one.body for one in journal.inbox.deliveries(2)] == [b"2", b"3"]
    assert [one.body for one in journal.inbox.deliveries(connection="acme")] == [b"1", b"2"]
    last = journal.inbox.deliveries()[-1].id
    assert journal.inbox.prune(NOON + timedelta(seconds=1)) == 3
    journal.inbox.accept([delivery(body=b"4")])
    assert [one.body for one in journal.inbox.deliveries(after_id=last)] == [b"4"]
    assert [one.body for one in journal.inbox.all_deliveries()] == [b"4"]


def test_old_deliveries_are_forgotten_and_what_they_marked_stays_marked(journal: Journal) -> None:
    old, new = NOON - timedelta(days=30), NOON
    journal.inbox.accept([delivery(booking(), received_at=old), delivery(received_at=new)])
    journal.inbox.accept([delivery(connection="other", received_at=old), delivery(connection="third", received_at=new)])
    assert journal.inbox.prune(NOON - timedelta(days=1)) == 2
    assert [one.received_at for one in journal.inbox.deliveries()] == [new, new]
    assert journal.subjects.dirty_count() == 1


def test_rhythm_is_counted_by_connection_and_hour(journal: Journal) -> None:
    for minutes in (0, 10, 59, 60, 200):
        journal.inbox.accept(
            [delivery(received_at=NOON + timedelta(minutes=minutes), reading="x" if minutes == 10 else "")]
        )
    journal.inbox.accept([delivery(connection="other")])
    counts = [(one.hour.hour, one.deliveries, one.odd) for one in journal.inbox.counts(NOON, connection="acme")]
    assert counts == [(12, 3, 1), (13, 1, 0), (15, 1, 0)]
    assert len(journal.inbox.counts(NOON)) == 4
    assert journal.inbox.counts(NOON + timedelta(hours=9)) == []
    assert journal.inbox.last_delivery_at("acme") == NOON + timedelta(minutes=200)
    assert journal.inbox.last_delivery_at("nobody") is None


def test_stored_deliveries_can_mark_again_without_being_stored_again(journal: Journal) -> None:
    journal.inbox.accept([delivery()])
    journal.inbox.apply_again([delivery(booking(), confirm=(IN_5,))])
    assert len(journal.inbox.deliveries()) == 1
    assert dirty(journal) == {booking(): Source.USER}
    assert timers(journal) == {(booking(), "confirm-1"): IN_5}


def test_what_was_notified_is_handed_out_before_timers_and_those_before_a_pull(
    journal: Journal, clock: HandClock
) -> None:
    journal.subjects.mark([booking("pulled")], Source.SCHEDULE)
    journal.timers.set([Timer(subject=booking("timed"), name="hold", due_at=NOON)])
    journal.timers.fire(clock.now())
    journal.inbox.accept([delivery(booking("z-notified"))])
    handed_out = [claim.subject for claim in journal.subjects.claim(9, run_id="r")]
    assert handed_out == [booking("z-notified"), booking("timed"), booking("pulled")]


# ── months of availability ────────────────────────────────────────────────────────────────────────────────────────────


def test_months_are_marked_for_all_known_options_also_where_a_month_is_new(journal: Journal) -> None:
    journal.subjects.mark([availability("p1", o, "2026-07") for o in ("o1", "o2")], Source.SCHEDULE)
    journal.subjects.mark(
        [availability("p2", "o1", "2026-07"), availability("p1", "o1", "2026-07", "other")], Source.SCHEDULE
    )
    journal.subjects.landed(journal.subjects.claim(9, run_id="r"), run_id="r")
    journal.inbox.accept([delivery(months=(Months(product="p1", option=None, months=("2026-07", "2026-08")),))])
    wanted = {availability("p1", option, month) for option in ("o1", "o2") for month in ("2026-07", "2026-08")}
    assert set(dirty(journal)) == wanted
    assert journal.inbox.deliveries()[0].marks == 4


def test_months_of_a_named_option_leave_the_others_alone(journal: Journal) -> None:
    journal.subjects.mark([availability("p1", o, "2026-07") for o in ("o1", "o10", "o2")], Source.SCHEDULE)
    journal.subjects.landed(journal.subjects.claim(9, run_id="r"), run_id="r")
    journal.inbox.accept([delivery(months=(Months(product="p1", option="o1", months=("2026-07",)),))])
    assert set(dirty(journal)) == {availability("p1", "o1", "2026-07")}


@pytest.mark.deep(0.1, everyday=4)
@pytest.mark.parametrize(
    "name", ["p1", 'p"1', "p\\1", "p,1", "[p]", "%", "p'1", "ü", "日本", "\U0001f3db", "p 1", "p\n1"]
)
def test_months_never_reach_a_product_whose_id_only_begins_alike(journal: Journal, name: str) -> None:
    others = [f"{name}0", f"{name}-", f'{name}","o1', f"x{name}", name[:-1] or "q", f"{name}\U0010ffff"]
    journal.subjects.mark([availability(one, "o1", "2026-07") for one in [name, *others]], Source.SCHEDULE)
    journal.subjects.landed(journal.subjects.claim(99, run_id="r"), run_id="r")
    journal.inbox.accept([delivery(months=(Months(product=name, option=None, months=("2026-07", "2026-09")),))])
    assert set(dirty(journal)) == {availability(name, "o1", month) for month in ("2026-07", "2026-09")}


def test_product_nobody_knows_is_fetched_with_the_list_of_products(journal: Journal) -> None:
    journal.subjects.mark([availability("p1", "o1", "2026-07")], Source.SCHEDULE)
    journal.subjects.landed(journal.subjects.claim(9, run_id="r"), run_id="r")
    journal.inbox.accept([delivery(months=(Months(product="new", option=None, months=("2026-07",)),))])
    assert set(dirty(journal)) == {product("new"), PRODUCTS}


def test_option_nobody_knows_has_its_product_fetched(journal: Journal) -> None:
    journal.subjects.mark([availability("p1", "o1", "2026-07")], Source.SCHEDULE)
    journal.subjects.landed(journal.subjects.claim(9, run_id="r"), run_id="r")
    journal.inbox.accept([delivery(months=(Months(product="p1", option="new", months=("2026-07",)),))])
    assert set(dirty(journal)) == {product("p1")}


def test_months_outside_the_horizon_of_a_known_product_mark_nothing(journal: Journal) -> None:
    journal.subjects.mark([availability("p1", "o1", "2026-07")], Source.SCHEDULE)
    journal.subjects.landed(journal.subjects.claim(9, run_id="r"), run_id="r")
    journal.inbox.accept([delivery(months=(Months(product="p1", option=None, months=()),))])
    assert dirty(journal) == {}


def test_a_month_is_one_mark_however_many_deliveries_of_a_transaction_name_it(journal: Journal) -> None:
    journal.subjects.mark([availability("p1", "o1", "2026-07")], Source.SCHEDULE)
    same = delivery(months=(Months(product="p1", option=None, months=("2026-07",)),))
    number = journal.inbox.accept([same] * 50)
    (row,) = journal.subjects.rows()
    assert row.wanted_seq == number
    assert [one.marks for one in journal.inbox.deliveries()] == [1] * 50


@pytest.mark.deep(4)
def test_marking_months_stays_fast_with_fifty_thousand_subjects(journal: Journal) -> None:
    months = [f"20{26 + month // 12}-{month % 12 + 1:02d}" for month in range(25)]
    journal.subjects.mark(
        [availability(f"p{p}", f"o{o}", month) for p in range(1000) for o in range(2) for month in months],
        Source.SCHEDULE,
    )
    with journal.reading() as connection:
        connection.exec_driver_sql("ANALYZE subjects")
    steps = plan(journal, sql.KNOWN_OPTIONS, ("[]",))
    assert any(
        ("SEARCH known USING COVERING INDEX" in step and "key>? AND key<?" in step)
        or ("Index Cond:" in step and "key >=" in step and "key <" in step)
        for step in steps
    ), steps
    one = [delivery(months=(Months(product="p500", option=None, months=tuple(months[:2])),))]
    took = []
    for _ in range(20):
        started = time.perf_counter()
        journal.inbox.accept(one)
        took.append(time.perf_counter() - started)
    assert (
        sorted(took)[10] < 0.05
    )  # a walk over all of them takes longer; this takes one millisecond and the disk's sync
    assert journal.inbox.deliveries()[0].marks == 4


# ── timers ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_delivery_sets_its_confirming_looks_in_the_same_transaction(journal: Journal) -> None:
    journal.inbox.accept([delivery(booking(), confirm=(IN_5, IN_30))])
    assert timers(journal) == {(booking(), "confirm-1"): IN_5, (booking(), "confirm-2"): IN_30}
    assert journal.timers.next_at() == IN_5


@pytest.mark.deep(0.3, everyday=1)
def test_ten_thousand_repeats_end_with_one_of_each_confirming_look_at_the_latest_time(journal: Journal) -> None:
    for start in range(0, 10_000, 500):
        times = [NOON + timedelta(milliseconds=number) for number in range(start, start + 500)]
        journal.inbox.accept(
            [delivery(booking(), confirm=(at + timedelta(seconds=5), at + timedelta(seconds=30))) for at in times]
        )
    last = NOON + timedelta(milliseconds=9_999)
    assert timers(journal) == {
        (booking(), "confirm-1"): last + timedelta(seconds=5),
        (booking(), "confirm-2"): last + timedelta(seconds=30),
    }


def test_late_delivery_never_brings_a_confirming_look_forward(journal: Journal) -> None:
    journal.inbox.accept([delivery(booking(), confirm=(IN_30,)), delivery(booking(), confirm=(IN_5,))])
    journal.inbox.accept([delivery(booking(), confirm=(IN_5,))])
    assert timers(journal) == {(booking(), "confirm-1"): IN_30}


def test_of_a_products_availability_only_the_last_look_is_confirmed(journal: Journal) -> None:
    months = [availability("p1", "o1", "2026-07")]
    journal.subjects.mark(months, Source.SCHEDULE)
    wide = Months(product="p1", option=None, months=("2026-07",), last_look_only=True)
    journal.inbox.accept([delivery(product("p1"), months=(wide,), confirm=(IN_5, IN_30))])
    assert timers(journal) == {
        (product("p1"), "confirm-1"): IN_5,
        (product("p1"), "confirm-2"): IN_30,
        (months[0], "confirm-2"): IN_30,
    }


def test_due_timers_mark_their_subjects_once_and_are_gone(journal: Journal, clock: HandClock) -> None:
    journal.inbox.accept([delivery(booking("a"), confirm=(IN_5, IN_30))])
    journal.timers.set([Timer(subject=booking("b"), name="hold", due_at=IN_5)])
    journal.subjects.landed(journal.subjects.claim(9, run_id="r"), run_id="r")
    assert journal.timers.fire(clock.now()) == 0
    assert journal.timers.fire(clock.forward(5)) == 2
    assert dirty(journal) == {booking("a"): Source.CONFIRM, booking("b"): Source.TIMER}
    assert {claim.subject for claim in journal.subjects.claim(9, run_id="r")} == {booking("a"), booking("b")}
    assert timers(journal) == {(booking("a"), "confirm-2"): IN_30}
    assert journal.timers.fire(clock.now()) == 0


def test_confirmation_during_the_fetch_that_it_confirms_leaves_the_subject_dirty(
    journal: Journal, clock: HandClock
) -> None:
    journal.inbox.accept([delivery(booking(), confirm=(IN_5,))])
    (claim,) = journal.subjects.claim(1, run_id="r")
    journal.timers.fire(clock.forward(5))
    journal.subjects.landed([claim], run_id="r")
    assert journal.subjects.dirty_count() == 1


def test_timer_never_lifts_a_quarantine(journal: Journal, clock: HandClock) -> None:
    journal.subjects.mark([booking()], Source.SCHEDULE)
    fail(journal, journal.subjects.claim(1, run_id="r")[0], quarantine=True)
    journal.timers.set([Timer(subject=booking(), name="hold", due_at=NOON)])
    assert journal.timers.fire(clock.now()) == 1
    assert journal.subjects.claim(1, run_id="r") == []


def test_several_timers_of_one_subject_make_one_mark_from_the_more_demanding_one(
    journal: Journal, clock: HandClock
) -> None:
    journal.timers.set(
        [
            Timer(subject=booking(), name="hold", due_at=NOON),
            Timer(subject=booking(), name="x", due_at=NOON, source=Source.REPAIR),
            Timer(subject=booking(), name="verify", due_at=NOON),
        ]
    )
    assert journal.timers.fire(clock.now()) == 3
    assert dirty(journal) == {booking(): Source.REPAIR}


def test_after_a_long_stop_timers_fire_in_portions_the_oldest_first(
    journal: Journal, clock: HandClock, monkeypatch
) -> None:
    monkeypatch.setattr("octo_sync.journal.timers._FIRED_AT_ONCE", 3)
    journal.timers.set(
        [Timer(subject=booking(f"{n}"), name="hold", due_at=NOON - timedelta(hours=n)) for n in range(5)]
    )
    assert journal.timers.fire(clock.now()) == 3
    assert set(dirty(journal)) == {booking("4"), booking("3"), booking("2")}
    assert [journal.timers.fire(clock.now()) for _ in range(2)] == [2, 0]


def test_timer_set_again_is_moved_and_a_dropped_one_is_gone(journal: Journal) -> None:
    hold = Timer(subject=booking(), name="hold", due_at=IN_30)
    journal.timers.set([hold, Timer(subject=booking(), name="verify", due_at=IN_30)])
    journal.timers.set([Timer(subject=booking(), name="hold", due_at=IN_5)])
    journal.timers.set([])
    assert timers(journal) == {(booking(), "hold"): IN_5, (booking(), "verify"): IN_30}
    assert journal.timers.drop([booking(), booking("unknown")], "hold") == 1
    assert [one.name for one in journal.timers.rows(name="verify", connection="acme")] == ["verify"]
    assert journal.timers.rows(name="hold") == journal.timers.rows(connection="other") == []
    assert journal.timers.next_at() == IN_30


def test_deliveries_and_timers_survive_the_process(journal: Journal, clock: HandClock) -> None:
    journal.inbox.accept([delivery(booking(), confirm=(IN_5,))])
    with Journal.open(journal.path, clock=clock) as again:  # the first one was never closed
        assert (len(again.inbox.deliveries()), len(again.timers.rows()), again.subjects.dirty_count()) == (1, 1, 1)


# ── schema ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.deep(0.1, everyday=4)
@pytest.mark.parametrize(
    "change",
    [
        "UPDATE deliveries SET connection = ''",
        "UPDATE deliveries SET marks = -1",
        "UPDATE deliveries SET body = NULL",
        "UPDATE timers SET name = ''",
        "UPDATE timers SET \"key\" = 'not json'",
        "UPDATE timers SET source = ''",
    ],
)
def test_database_itself_refuses_what_must_not_be(journal: Journal, change: str) -> None:
    journal.inbox.accept([delivery(booking(), confirm=(IN_5,))])
    with pytest.raises(JournalError, match="rules"), journal.writing() as connection:
        connection.exec_driver_sql(change)
    assert (len(journal.inbox.deliveries()), len(journal.timers.rows())) == (1, 1)


# ── the write-ahead log ───────────────────────────────────────────────────────────────────────────────────────────────


def pages_in_the_database(journal: Journal) -> int:
    return journal.path.stat().st_size


@ON_A_FILE
def test_checkpoint_brings_what_was_committed_into_the_database_without_the_writers_connection(
    journal: Journal,
) -> None:
    journal.leave_checkpoints()
    journal._disconnect()  # as after an error: the next connection must leave it too
    journal.checkpoint()
    small = pages_in_the_database(journal)
    for _ in range(100):
        journal.inbox.accept([delivery(body=b"x" * 60_000)])
    assert pages_in_the_database(journal) == small  # by itself it would have begun after a thousand pages
    journal.checkpoint()
    assert pages_in_the_database(journal) > small + 100 * 60_000
    assert len(journal.inbox.deliveries(1000)) == 100
    journal.close()
    journal.checkpoint()
    assert [one.name for one in journal.path.parent.iterdir()] == [journal.path.name]


@ON_A_FILE
def test_folded_log_is_written_from_its_beginning_again(journal: Journal) -> None:
    journal.leave_checkpoints()
    log = journal.path.with_name(journal.path.name + "-wal")
    sizes = []
    for _ in range(5):
        for _ in range(20):
            journal.inbox.accept([delivery(body=b"x" * 60_000)])
        journal.checkpoint()
        sizes.append(log.stat().st_size)
    assert max(sizes) < 2 * sizes[0]  # not five times


@ON_A_FILE
def test_without_somebody_who_checkpoints_the_log_does_not_grow_for_ever(journal: Journal) -> None:
    for _ in range(100):
        journal.inbox.accept([delivery(body=b"x" * 60_000)])
    assert journal.path.with_name(journal.path.name + "-wal").stat().st_size < 8_000_000


def test_the_deliveries_that_name_a_booking_are_found_newest_first(journal: Journal) -> None:
    uuids = ["u-1", "u-2", "u-1", "u-1"]
    for number, uuid in enumerate(uuids):
        body = f'{{"data":{{"uuid":"{uuid}","n":{number}}}}}'.encode() + b"\xff"
        journal.inbox.accept([delivery(body=body), delivery(connection="other", body=body)])
    found = journal.inbox.about("acme", "u-1", 2)
    assert [b'"n":3' in one.body or b'"n":2' in one.body for one in found] == [True, True]
    assert [one.connection for one in found] == ["acme"] * 2
    assert found[0].id > found[1].id
    assert journal.inbox.about("acme", "u-9", 2) == []
