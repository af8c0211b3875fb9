"""One writer: a lock that dies with its owner, and a number that tells a zombie from the owner."""

import pytest
from tests.journal.helpers import HandClock, kill, start

from octo_sync.errors import LeaseHeld
from octo_sync.journal import Journal, Lease

OWNER = """
lease = Lease.acquire(journal, Path(sys.argv[2]), owner="octo-sync run sandbox", clock=Clock())
journal.runs.start("run", "sandbox", run_id="theirs", fence=lease.fence)
say(lease.fence)
sys.stdin.readline()
"""


@pytest.mark.deep(0.3, everyday=1)
def test_second_process_is_told_who_holds_the_lease_and_gets_it_at_once_when_the_owner_is_killed(
    journal: Journal, path, clock: HandClock, tmp_path
) -> None:
    owner = start(OWNER, path, str(tmp_path / "lock"))
    try:
        fence = int(owner.stdout.readline())
        with pytest.raises(LeaseHeld) as refused:
            Lease.acquire(journal, tmp_path / "lock", owner="second", clock=clock)
        for part in ("octo-sync run sandbox", f"pid {owner.pid}", "since 20"):
            assert part in str(refused.value)
        assert "\n" not in str(refused.value)
        assert journal.runs.find("theirs").status == "running"
    finally:
        kill(owner)
    with Lease.acquire(journal, tmp_path / "lock", owner="next", clock=clock) as lease:
        assert lease.fence == fence + 1
        assert journal.runs.find("theirs").status == "killed"


def test_fence_grows_with_every_owner(journal: Journal, path, clock: HandClock, tmp_path) -> None:
    fences = []
    for _ in range(3):
        with Lease.acquire(journal, tmp_path / "lock", owner="test", clock=clock) as lease:
            fences.append(lease.fence)
    assert fences == [fences[0], fences[0] + 1, fences[0] + 2]
    journal.close()
    with (
        Journal.open(path, clock=clock) as reopened,
        Lease.acquire(reopened, tmp_path / "lock", owner="test", clock=clock) as lease,
    ):
        assert lease.fence == fences[-1] + 1


def test_lease_is_exclusive_within_one_process_too(journal: Journal, clock: HandClock, tmp_path) -> None:
    lease = Lease.acquire(journal, tmp_path / "lock", owner="first", clock=clock)
    clock.forward(120)
    with pytest.raises(LeaseHeld, match=r"first .*2 min"):
        Lease.acquire(journal, tmp_path / "lock", owner="second", clock=clock)
    lease.release()
    lease.release()
    noted = journal.leases.last()
    assert noted is not None
    assert (noted.owner, noted.released_at) == ("first", clock.now())
    Lease.acquire(journal, tmp_path / "lock", owner="second", clock=clock).release()


def test_owner_between_lock_and_name_plate_is_not_misnamed(journal: Journal, clock: HandClock, tmp_path) -> None:
    Lease.acquire(journal, tmp_path / "lock", owner="long gone", clock=clock).release()
    held = Lease.acquire(journal, tmp_path / "lock", owner="now", clock=clock)
    journal.leases.drop(held.fence)
    with pytest.raises(LeaseHeld, match="just begun"):
        Lease.acquire(journal, tmp_path / "lock", owner="second", clock=clock)
    held.release()


def test_former_owner_does_not_sign_off_the_present_one(journal: Journal, clock: HandClock, tmp_path) -> None:
    with Lease.acquire(journal, tmp_path / "lock", owner="now", clock=clock) as held:
        journal.leases.drop(held.fence - 1)
        with pytest.raises(LeaseHeld, match="now"):
            Lease.acquire(journal, tmp_path / "lock", owner="second", clock=clock)


def test_lease_that_could_not_be_noted_is_not_kept(journal: Journal, clock: HandClock, tmp_path, monkeypatch) -> None:
    def broken(**_: object) -> int:
        raise RuntimeError("disk")

    with monkeypatch.context() as patched:
        patched.setattr(journal.leases, "take", broken)
        with pytest.raises(RuntimeError, match="disk") as failed:
            Lease.acquire(journal, tmp_path / "lock", owner="first", clock=clock)
    assert failed.traceback  # it keeps the lock object alive, which would otherwise let go by itself
    Lease.acquire(journal, tmp_path / "lock", owner="second", clock=clock).release()
