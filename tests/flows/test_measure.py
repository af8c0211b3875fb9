"""What /metrics says of the copy is what the journal and the files say."""

import datetime as dt
from collections import Counter
from functools import partial
from math import inf

import psycopg
import pytest
from tests.flows.harness import NOON, Clock

from octo_sync.destinations.postgres.session import size_of
from octo_sync.errors import WarehouseError
from octo_sync.flows.status.metrics import Gauges, Requests
from octo_sync.journal import Journal, Received
from octo_sync.model import Source, Subject, SubjectKind
from octo_sync.octo.client import Stats
from octo_sync.pipeline import load
from octo_sync.receiver.metrics import CATALOGUE


@pytest.fixture
def place(tmp_path):
    path = tmp_path / "p.toml"
    path.write_text(
        '[connections.acme]\nbase_url = "https://octo.example.com"\ntoken = { env = "T" }\n'
        '[webhooks]\nurl = "https://hooks.example.com/octo"\n'
    )
    pipeline = load(path, directory=tmp_path, environ={"T": "x"}, overrides={})
    clock = Clock()
    with Journal.open(pipeline.journal, clock=clock) as journal:
        requests = Requests()
        yield (
            Gauges(pipeline, journal, clock, build=("1", "3", "2"), requests=requests),
            journal,
            clock,
            requests,
            pipeline,
        )


def land_all(journal):
    journal.subjects.landed(journal.subjects.claim(1000, run_id="r"), run_id="r")


def test_every_value_belongs_to_a_metric_and_has_its_labels(place):
    gauges, journal, *_ = place
    journal.subjects.mark([Subject("acme", SubjectKind.PRODUCTS)], Source.SCHEDULE)
    land_all(journal)
    for name, samples in gauges.read().items():
        assert name in CATALOGUE
        for labels in samples:
            assert len(labels) == len(CATALOGUE[name].labels), name


def test_staleness_is_endless_before_anything_was_asked_for_and_then_grows_with_the_oldest_verification(place):
    gauges, journal, clock, *_ = place
    stale = gauges.read()["octo_sync_staleness_seconds"]
    assert stale == {("acme", kind): inf for kind in ("supplier", "products", "bookings")}

    products, month = Subject("acme", SubjectKind.PRODUCTS), Subject("acme", SubjectKind.BOOKINGS, ("2026-11",))
    journal.subjects.mark([products], Source.SCHEDULE)
    land_all(journal)
    clock.moment += dt.timedelta(seconds=100)
    journal.subjects.mark([month], Source.SCHEDULE)
    clock.moment += dt.timedelta(seconds=10)
    found = gauges.read()
    assert found["octo_sync_staleness_seconds"] == {("acme", "products"): 110, ("acme", "bookings"): 10}
    assert found["octo_sync_unverified_subjects"]["acme", "bookings"] == 1
    assert found["octo_sync_lag_seconds"]["acme", "bookings"] == 10
    assert found["octo_sync_backlog_subjects"]["acme", "bookings"] == 1
    assert found["octo_sync_last_success_timestamp_seconds"] == {("acme", "products"): NOON.timestamp()}

    land_all(journal)
    found = gauges.read()
    assert found["octo_sync_lag_seconds"]["acme", "bookings"] == 0
    assert found["octo_sync_staleness_seconds"]["acme", "bookings"] == 0


def test_runs_are_counted_from_the_beginning_of_this_process_each_once_whoever_made_them(place):
    gauges, journal, *_ = place
    journal.runs.start("sync", "p", run_id="before", fence=1)
    journal.runs.end("before", "ok")
    assert set(gauges.read()["octo_sync_runs"].values()) == {0}
    journal.runs.start("pull", "p", run_id="open", fence=1)
    assert set(gauges.read()["octo_sync_runs"].values()) == {0}, "it has not ended"
    journal.runs.start("sync", "p", run_id="later", fence=1)
    journal.runs.end("later", "failed")
    journal.runs.end("open", "partial")
    for _ in range(2):
        counted = gauges.read()["octo_sync_runs"]
        assert {labels: count for labels, count in counted.items() if count} == {
            ("sync", "failed"): 1,
            ("pull", "partial"): 1,
        }


def test_requests_are_counted_over_all_clients_of_the_process():
    first, second, requests = Stats(), Stats(), Requests()
    requests.follow({"acme": first})
    first.requests, first.by_status, first.unanswered = 6, Counter({200: 3, 503: 1}), 1
    assert requests.counts() == {("acme", "200"): 3, ("acme", "503"): 1, ("acme", "none"): 1}
    requests.follow({"acme": second})
    second.requests, second.by_status = 2, Counter({200: 2})
    assert requests.counts() == {("acme", "200"): 5, ("acme", "503"): 1, ("acme", "none"): 1}


def test_no_count_goes_down_when_a_request_that_is_under_way_is_answered():
    stats, requests = Stats(), Requests()
    requests.follow({"acme": stats})
    stats.requests = 1
    before = requests.counts()
    stats.by_status[200] += 1
    assert before == {("acme", "none"): 0}
    assert requests.counts() == {("acme", "none"): 0, ("acme", "200"): 1}


def test_a_warehouse_on_a_server_that_is_away_hides_nothing_else_and_is_asked_once_a_minute(place):
    _, journal, clock, requests, pipeline = place
    asked = []

    def size():
        asked.append(clock.now())
        if len(asked) == 1:
            raise WarehouseError("It is away.")
        return 4096

    gauges = Gauges(pipeline, journal, clock, build=("1", "3", "2"), requests=requests, size=size)
    for seconds, expected in ((0, {}), (59, {}), (60, {("warehouse",): 4096}), (119, {("warehouse",): 4096})):
        clock.moment = NOON + dt.timedelta(seconds=seconds)
        found = gauges.read()
        assert found["octo_sync_warehouse_bytes"] == expected
        assert found["octo_sync_journal_bytes"][()] == journal.size()
    assert len(asked) == 2


def test_the_size_of_a_warehouse_on_a_server_is_that_of_its_tables(place, postgres_database):
    _, journal, clock, requests, pipeline = place
    size = partial(size_of, postgres_database)
    gauges = Gauges(pipeline, journal, clock, build=("1", "3", "2"), requests=requests, size=size)
    assert gauges.read()["octo_sync_warehouse_bytes"] == {("warehouse",): 0}
    with psycopg.connect(postgres_database) as connection:
        connection.execute("create schema marts")
        connection.execute("create table marts.t as select repeat('x', 100) as x from generate_series(1, 10000)")
        connection.execute("create table public.somebody_elses as select * from marts.t")
        (wanted,) = connection.execute("select pg_total_relation_size('marts.t')").fetchone()
    clock.moment += dt.timedelta(seconds=60)
    assert gauges.read()["octo_sync_warehouse_bytes"] == {("warehouse",): wanted}
    assert wanted > 1_000_000


def test_a_subscription_that_was_there_and_is_gone_is_a_zero_and_one_that_never_was_is_nothing(place):
    gauges, journal, *_ = place
    assert gauges.read()["octo_sync_subscription_held"] == {}
    journal.endpoints.add("e" * 32, connection="acme", secret_hash="0" * 64)
    journal.endpoints.activate("e" * 32, "s-1")
    journal.settings.set("told_at_endpoint", "e" * 32, connection="acme")
    assert gauges.read()["octo_sync_subscription_held"] == {("acme",): True}
    journal.endpoints.add("n" * 32, connection="acme", secret_hash="1" * 64)
    assert gauges.read()["octo_sync_subscription_held"] == {("acme",): True}, "it moves to a new address"
    journal.endpoints.subscription_gone("acme", "s-1")
    assert gauges.read()["octo_sync_subscription_held"] == {("acme",): False}
    journal.settings.set("subscriptions_removed_at", None, connection="acme")


def test_deliveries_and_quarantine_and_sizes_are_those_of_the_journal_and_the_files(place):
    gauges, journal, clock, _, pipeline = place
    pipeline.destination.write_bytes(b"x" * 1000)
    pipeline.publish.path.write_bytes(b"x" * 500)
    body = Received(connection="acme", endpoint="e" * 32, received_at=clock.now(), body=b"{}", subjects=())
    journal.endpoints.add("e" * 32, connection="acme", secret_hash="0" * 64)
    journal.inbox.accept([body])
    journal.quarantine.add_record("acme", "deletions-held", "k", "", "held", "r")
    found = gauges.read()
    assert found["octo_sync_last_delivery_timestamp_seconds"] == {("acme",): NOON.timestamp()}
    assert found["octo_sync_quarantine_entries"]["acme", "deletions-held"] == 1
    assert found["octo_sync_quarantine_entries"]["acme", "bookings"] == 0
    assert found["octo_sync_warehouse_bytes"] == {("warehouse",): 1000, ("read copy",): 500}
    assert found["octo_sync_published_timestamp_seconds"] == {(): pipeline.publish.path.stat().st_mtime}
    assert found["octo_sync_journal_bytes"][()] == journal.size()
