"""One writer: a lock that dies with its owner, and a number that tells a zombie from the owner."""

import pytest
from tests.journal.helpers import HandClock, kill, start

from octo_sync.errors import LeaseHeld
from octo_sync.journal import Journal

OWNER = """
lease = journal.leases.acquire(Path(sys.argv[2]), owner="octo-sync run sandbox")
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
            journal.leases.acquire(tmp_path / "lock", owner="second")
        for part in ("octo-sync run sandbox", f"pid {owner.pid}", "since 20"):
            assert part in str(refused.value)
        assert "\n" not in str(refused.value)
        assert journal.runs.find("theirs").status == "running"
    finally:
        kill(owner)
    with journal.leases.acquire(tmp_path / "lock", owner="next") as lease:
        assert lease.fence == fence + 1
        assert journal.runs.find("theirs").status == "killed"


def test_fence_grows_with_every_owner(journal: Journal, path, clock: HandClock, tmp_path) -> None:
    fences = []
    for _ in range(3):
        with journal.leases.acquire(tmp_path / "lock", owner="test") as lease:
            fences.append(lease.fence)
    assert fences == [fences[0], fences[0] + 1, fences[0] + 2]
    journal.close()
    with (
        Journal.open(path, clock=clock) as reopened,
        reopened.leases.acquire(tmp_path / "lock", owner="test") as lease,
    ):
        assert lease.fence == fences[-1] + 1


def test_lease_is_exclusive_within_one_process_too(journal: Journal, clock: HandClock, tmp_path) -> None:
    lease = journal.leases.acquire(tmp_path / "lock", owner="first")
    clock.forward(120)
    with pytest.raises(LeaseHeld, match=r"first .*2 min"):
        journal.leases.acquire(tmp_path / "lock", owner="second")
    lease.release()
    lease.release()
    noted = journal.leases.last()
    assert noted is not None
    assert (noted.owner, noted.released_at) == ("first", clock.now())
    journal.leases.acquire(tmp_path / "lock", owner="second").release()


def test_owner_between_lock_and_name_plate_is_not_misnamed(journal: Journal, clock: HandClock, tmp_path) -> None:
    journal.leases.acquire(tmp_path / "lock", owner="long gone").release()
    held = journal.leases.acquire(tmp_path / "lock", owner="now")
    journal.leases.drop(held.fence)
    with pytest.raises(LeaseHeld, match="just begun"):
        journal.leases.acquire(tmp_path / "lock", owner="second")
    held.release()


def test_former_owner_does_not_sign_off_the_present_one(journal: Journal, clock: HandClock, tmp_path) -> None:
    with journal.leases.acquire(tmp_path / "lock", owner="now") as held:
        journal.leases.drop(held.fence - 1)
        with pytest.raises(LeaseHeld, match="now"):
            journal.leases.acquire(tmp_path / "lock", owner="second")


def test_lease_that_could_not_be_noted_is_not_kept(journal: Journal, clock: HandClock, tmp_path, monkeypatch) -> None:
    def broken(**_: object) -> int:
        raise RuntimeError("disk")

    with monkeypatch.context() as patched:
        patched.setattr(journal.leases, "take", broken)
        with pytest.raises(RuntimeError, match="disk") as failed:
            journal.leases.acquire(tmp_path / "lock", owner="first")
    assert failed.traceback  # it keeps the lock object alive, which would otherwise let go by itself
    journal.leases.acquire(tmp_path / "lock", owner="second").release()
