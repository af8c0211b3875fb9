"""The README's section on several machines, walked: the demo's project moves, one of two workers is killed."""

import json
import os
import signal

import pytest
from tests.docs.terminal import Terminal, section
from tests.faults.serving import asked, until
from tests.faults.workers import differing

EXAMPLE = "postgresql://octo@db.example/octo"


@pytest.mark.deep(50)
def test_the_demo_moves_to_several_machines_and_stays_equal_when_a_worker_is_killed(tmp_path, postgres_database):
    move, receiver, worker = (
        text.replace(EXAMPLE, postgres_database) for text in section("When one machine is not enough")
    )
    with Terminal(tmp_path) as terminal:
        # The demo's project, at other ports.
        for name in ("WEBSITE", "CITYTRIPS", "HOTELS"):
            terminal.env[f"OCTO_SYNC_CONNECTIONS__{name}__BASE_URL"] = terminal.url()
        terminal.env["OCTO_SYNC_PUBLISH__EVERY"] = "1s"
        terminal.env["OCTO_SYNC_PUBLISH__DELTA"] = str(tmp_path / "lake")
        terminal.env["OCTO_SYNC_WEBHOOKS__URL"] = f"http://127.0.0.1:{terminal.ports['8787']}"

        def typed(text):
            code, said = terminal.type(text)
            assert code == 0, said
            return said

        def status():
            """Whether nothing is pending, and the processes that work on connections."""
            found = json.loads(terminal.type("octo-sync status --json")[1])
            pending = any(kind["owed"] for one in found["connections"] for kind in one["kinds"])
            return not pending, {one["pid"] for one in found["workers"]}

        for text in ("octo-sync demo", "octo-sync sandbox serve --demo", "cd octo-demo"):
            typed(text)
        assert "equal in both" in typed(move)
        # So that both are met in the middle of their work.
        assert asked("PUT", terminal.host(), "/_sandbox/faults", [{"fault": "latency", "seconds": 0.4}])[0] == 200
        for text in (receiver, worker, worker):
            typed(text)
        killed = min(until(lambda: working if len(working := status()[1]) == 2 else None, 6, status))
        os.kill(killed, signal.SIGKILL)
        code, made = asked("POST", terminal.host(), "/_sandbox/traffic", {"changes": 20, "kinds": ["note", "redeem"]})
        assert (code, len(json.loads(made)["changes"])) == (200, 20)
        until(lambda: status()[0] and killed not in status()[1], 6, status)
        assert asked("DELETE", terminal.host(), "/_sandbox/faults")[0] == 200
        until(lambda: differing(postgres_database, tmp_path / "lake") == {}, 6, status)
        until(
            lambda: terminal.type("octo-sync verify --live")[0] == 0,
            6,
            lambda: terminal.type("octo-sync verify --live")[1],
        )
