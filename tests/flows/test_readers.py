"""Readers in other processes: each sees one whole publication, keeps it as long as it likes, and never holds up the writer."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.destinations.contract import DECEMBER, NOW, answered, booking, landing

from octo_sync.destinations.duckdb.warehouse import DuckDBWarehouse
from octo_sync.flows.publish import apply_marts
from octo_sync.tables import all_tables, nouns

BOOKINGS = 60

READER = """
import json, os, sys, time
import octo_sync

path, stop, kind = sys.argv[1:]
TOTALS = '''
select b.n, b.total, b.least, b.most, i.total, t.total, f.n, f.total, f.guests from
(select count(*) n, sum(retail_minor) total, min(retail_minor) least, max(retail_minor) most from core.bookings) b,
(select sum(retail_minor) total from core.booking_unit_items) i,
(select count(*) total from core.booking_taxes) t,
(select count(*) n, sum(retail_amount * 100) total, sum(unit_count) guests from fct_bookings) f
'''
seen, polls, files = [], 0, set()


def look(copy):
    global polls
    (row,) = copy.sql(TOTALS).rows()
    polls += 1
    files.add(os.stat(path).st_mtime_ns)  # the number of a file that is gone is given to the next one
    found = [int(value) for value in row]
    if not seen or found != seen[-1]:
        seen.append(found)


held = octo_sync.open(path)
look(held)
print("ready", flush=True)
while not os.path.exists(stop):
    if kind == "keeps":
        look(held)
        time.sleep(0.05)
    else:
        time.sleep(0.01)
        with octo_sync.open(path) as copy:
            look(copy)
print(json.dumps({"seen": seen, "polls": polls, "swaps": len(files)}))
"""


def whole(version):
    """What a reader sees of a publication: counts and totals that close, of one version."""
    total = BOOKINGS * 1000
    spread = (1000 - version, 1000 + version)
    return [BOOKINGS, total, *spread, 2 * total, BOOKINGS, BOOKINGS, total, 2 * BOOKINGS]


class Writer:
    """Moves money from odd bookings to even ones, more with each version, in transactions between which no total closes.

    The first state is landed. The others are written as statements: fifty landings would take most of the minute.
    """

    def __init__(self, directory):
        self.target = directory / "octo.read.duckdb"
        files = directory / "octo.duckdb", directory / "octo.private.duckdb"
        self._warehouse = DuckDBWarehouse(*files, tables=all_tables(), nouns=nouns(), now=NOW)
        self._warehouse.claim_writer(1, "test")
        self._directory = directory

        records = [booking(n, day=1 + n % 28) for n in range(BOOKINGS)]
        answer = answered("bookings", records, 1, parts=("2026-12",), window=DECEMBER)
        self._warehouse.land(landing(answer))

    def change(self, version):
        for parity, retail in ((0, 1000 - version), (1, 1000 + version)):
            chosen = f"split_part(booking_uuid, '-', 2)::int % 2 = {parity}"
            for table in ("core.bookings", "core.booking_unit_items"):
                amounts = f"retail_minor = {retail}, retail_amount = {retail}::numeric(18,4) / 100"
                self._warehouse.run_script([f"update {table} set {amounts} where {chosen}"])

    def publish(self):
        begun = time.monotonic()
        with self._warehouse.drafting(self.target) as draft:
            apply_marts(draft, self._directory)
            draft.publish()
        return time.monotonic() - begun

    def close(self):
        self._warehouse.close()


@pytest.fixture
def writer(tmp_path):
    made = Writer(tmp_path)
    yield made
    made.close()


@pytest.mark.deep(4)
def test_no_reader_sees_half_of_a_publication_or_holds_up_the_writer(writer, tmp_path, tier):
    publications = tier.choose(5, 20, 50)
    stop = tmp_path / "stop"
    writer.publish()
    readers = [start(writer.target, stop, kind) for kind in ("keeps", "opens", "opens")]
    slowest = 0.0
    try:
        for version in range(1, publications + 1):
            writer.change(version)
            slowest = max(slowest, writer.publish())
    finally:
        stop.touch()
        told = [reader.communicate(timeout=120) for reader in readers]

    # DuckDB's library counts its own objects at the end of a process, and says so.
    assert [errors.partition("nanobind: leaked")[0] for _, errors in told] == ["", "", ""]
    assert [reader.returncode for reader in readers] == [0, 0, 0]
    keeper, *openers = [json.loads(out.splitlines()[-1]) for out, _ in told]
    assert keeper["seen"] == [whole(0)], "the one that keeps it open sees what it opened, however often"
    assert keeper["polls"] > publications // 5
    for opener in openers:
        versions = [found[3] - 1000 for found in opener["seen"]]
        assert opener["seen"] == [whole(version) for version in versions], "no half of a publication"
        assert versions == sorted(set(versions)), "and never an older one after a newer one"
        assert len(versions) > publications // 5, "they must have looked while it changed, or nothing is shown"
    assert keeper["swaps"] > publications // 5
    assert slowest < 10, "a reader does not hold up a publication"


def start(path: Path, stop: Path, kind: str) -> "subprocess.Popen[str]":
    """A reader that has opened the copy."""
    process = subprocess.Popen(
        [sys.executable, "-c", READER, str(path), str(stop), kind],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "ready\n", process.communicate()
    return process
