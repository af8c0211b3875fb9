"""A power cut at any moment: what was acknowledged is in every image of the journal that a disk may hold then.

strace records what the receiver writes and syncs, and when it answers. From that, images are built as a disk may leave
them: each write since a file's last sync may be there, lost, torn at a sector, or there without those before it; a new
file may have no name until its directory is synced. Two receivers that are broken on purpose must lose deliveries.
"""

import contextlib
import http.client
import os
import random
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.receiver import process
from tests.receiver.conftest import booking_body

from octo_sync.journal import Journal
from octo_sync.model import Subject, SubjectKind

PROGRAM = Path(__file__).with_name("receiver.py")
SECTOR = 512
IMAGES = 5
"""Of each moment at which the power is cut."""
FILES = ("journal.sqlite", "journal.sqlite-wal")
SYNCS = ("fsync", "fdatasync")
_LINE = re.compile(r"(\d+) +(?:<\.\.\. )?(\w+)[( ](.*)")


@dataclass
class Disk:
    """What a disk holds for sure, and what is on its way to it; per file name."""

    synced: dict[str, bytearray]
    named: set[str]
    pending: dict[str, list[tuple[int, bytes | None]]] = field(default_factory=dict)
    """Writes since the last sync, as (offset, bytes); (size, None) cuts the file."""
    begun: dict[str, int] = field(default_factory=dict)

    def happened(self, event):
        """A write, a cut or a sync."""
        match event:
            case ("write", name, at, data):
                self.pending.setdefault(name, []).append((at, data))
            case ("cut", name, size):
                self.pending.setdefault(name, []).append((size, None))
            case ("sync begins", name):
                self.begun[name] = len(self.pending.get(name, []))
            case ("sync", ""):
                self.named |= {name for name in FILES if name in self.synced or self.pending.get(name)}
            case ("sync", name):
                waiting = self.pending.get(name, [])
                for at, data in waiting[: self.begun[name]]:
                    _apply(self.synced.setdefault(name, bytearray()), at, data)
                self.pending[name] = waiting[self.begun[name] :]

    def image(self, directory, chance):
        """Write one of the possible images."""
        directory.mkdir()
        worst = chance.random()
        for name in FILES:
            pending = self.pending.get(name, [])
            if name not in self.synced and not pending:
                continue
            if name not in self.named and chance.random() < 0.5:
                continue
            content = bytearray(self.synced.get(name, b""))
            for at, data in _survivors(pending, chance, worst):
                _apply(content, at, data)
            (directory / name).write_bytes(content)


def _survivors(pending, chance, worst):
    """All or none of the writes since the last sync, or some, of which some only begin or end."""
    if worst < 0.25:  # a quarter of the images: the disk had written nothing yet
        return
    share = 2.0 if worst < 0.4 else chance.random()
    for at, data in pending:
        if chance.random() >= share:
            continue
        if share > 1 or data is None or chance.random() < 0.8 or len(data) <= SECTOR:
            yield at, data
        else:
            cut = chance.randrange(SECTOR, len(data), SECTOR)
            yield (at, data[:cut]) if chance.random() < 0.5 else (at + cut, data[cut:])


def _apply(content, at, data):
    if data is None:
        content[at:] = b""
        content.extend(b"\0" * (at - len(content)))
        return
    content.extend(b"\0" * (at - len(content)))
    content[at : at + len(data)] = data


def _bytes(text):
    return bytes.fromhex(text.replace("\\x", ""))


def events(trace, directory):
    """What happened, in order: ("write", file, offset, bytes), ("cut", file, size), ("sync", file or ""), ("answer",).

    A sync stands for what was written before it began: two events, because other threads write meanwhile.
    """
    open_syncs = {}
    for line in trace.read_text().splitlines():
        found = _LINE.match(line)
        if not found:
            continue
        thread, call, rest = found.groups()
        if "resumed" in rest:
            if call in SYNCS and thread in open_syncs:
                yield "sync", open_syncs.pop(thread)
            continue
        path = re.match(r"\d+<([^>]*)>", rest)
        if path is None:
            continue
        raw = _bytes(path[1]).decode(errors="replace") if "\\x" in path[1] else path[1]
        name = Path(raw).name
        if call in SYNCS and (name in FILES or raw == str(directory)):
            which = name if name in FILES else ""
            yield "sync begins", which
            if "unfinished" in rest:
                open_syncs[thread] = which
            else:
                yield "sync", which
        elif (event := _event(call, name, rest)) is not None:
            yield event


def _event(call, name, rest):
    if call == "sendto":
        return ("answer",) if _bytes(rest.split('"')[1]).startswith(b"HTTP/1.1 200") else None
    if name not in FILES:
        return None
    if call == "pwrite64":
        _, data, after = rest.split('"')
        return "write", name, int(after.split(",")[2].split(")")[0].split()[0]), _bytes(data)
    return "cut", name, int(rest.split(",")[1].split(")")[0].split()[0])


def record(strace, directory, mode, count, trace):
    """Let a receiver take so many deliveries, one after the other, and write down what it does; then kill it."""
    calls = "pwrite64,fsync,fdatasync,ftruncate,sendto"
    command = [strace, "-f", "-qq", "-y", "-xx", "-s", "1000000", "-o", trace, "-e", f"trace={calls}"]
    with subprocess.Popen(
        [*command, sys.executable, PROGRAM, directory, mode],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    ) as child:
        try:
            address = child.stdout.readline().strip()
            assert address, "the receiver did not start"
            host = address.removeprefix("http://")
            with contextlib.closing(http.client.HTTPConnection(host, timeout=20)) as connection:
                for number in range(count):
                    headers = {"X-Octo-Sync-Secret": process.SECRET.decode("latin-1")}
                    connection.request("POST", f"/hooks/{process.ENDPOINT}", booking_body(f"b-{number}"), headers)
                    answer = connection.getresponse()
                    answer.read()
                    assert answer.status == 200
        finally:
            os.killpg(child.pid, signal.SIGKILL)


def lost(directory, acknowledged):
    """How many of the first so many deliveries an image lacks, or has without their marks; all when it was given up."""
    with Journal.open(directory / "journal.sqlite", clock=process.Clock()) as journal:
        if journal.recovered_from is not None:
            return acknowledged
        stored = {one.body for one in journal.inbox.all_deliveries()}
        dirty = {row.subject for row in journal.subjects.rows() if row.dirty}
        assert len(journal.endpoints.rows()) == 1
    return sum(
        booking_body(f"b-{number}") not in stored or Subject("acme", SubjectKind.BOOKING, (f"b-{number}",)) not in dirty
        for number in range(acknowledged)
    )


def cut(strace, tmp_path, mode, count, seed, cuts):
    """Record, then cut the power at so many moments; per image: deliveries acknowledged, of which lost."""
    live = tmp_path / "live"
    live.mkdir()
    with process.opened(live, process.Clock()):
        pass
    before = {name: bytearray((live / name).read_bytes()) for name in FILES if (live / name).exists()}
    record(strace, live, mode, count, tmp_path / "trace")
    happened = list(events(tmp_path / "trace", live))
    assert sum(event[0] == "answer" for event in happened) == count
    chance = random.Random(seed)
    answers = [number for number, event in enumerate(happened) if event[0] == "answer"]
    # Just after an answer, above all a last one, is the worst moment; the others are anywhere, also in the middle of folding.
    moments = {number + 1 for number in (*chance.sample(answers, cuts // 2), answers[-2])} | set(
        chance.sample(range(len(happened)), cuts - cuts // 2)
    )
    folding = [number for number, event in enumerate(happened) if event[:2] == ("write", FILES[0])]
    moments |= set(chance.sample(folding, min(len(folding), cuts // 4)))
    disk, acknowledged, found = Disk(before, set(before)), 0, []
    for number, event in enumerate(happened):
        if number in moments:
            for image in range(IMAGES):
                directory = tmp_path / f"image-{number}-{image}"
                disk.image(directory, chance)
                found.append((acknowledged, lost(directory, acknowledged)))
                shutil.rmtree(directory)
        acknowledged += event[0] == "answer"
        disk.happened(event)
    assert len(found) >= cuts * IMAGES // 2
    return found, len(folding)


def test_no_acknowledged_delivery_is_missing_from_any_image_r1(tmp_path, strace, tier):
    # So many that the log is folded into the database meanwhile.
    found, folded = cut(strace, tmp_path, "full", 560, f"full/{tier.seed}", tier.choose(4, 20, 40))
    assert folded > 10
    assert max(acknowledged for acknowledged, _ in found) > 500
    bad = [(acknowledged, missing) for acknowledged, missing in found if missing]
    print(f"\n{len(found)} images, {len(bad)} of them bad")  # noqa: T201
    assert bad == []


@pytest.mark.deep(10)
@pytest.mark.parametrize("mode", ["normal", "early"])
def test_a_receiver_that_is_broken_on_purpose_loses_deliveries_in_these_images(tmp_path, strace, mode):
    """The negative control: without it, images that lose nothing would prove nothing."""
    found, _ = cut(strace, tmp_path, mode, 60, mode, 40)
    bad = sum(missing > 0 for _, missing in found)
    print(f"\n{mode}: {len(found)} images, {bad} of them bad")  # noqa: T201
    assert bad > len(found) // 4
