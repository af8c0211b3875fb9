"""Who waits for a service that permits little is told which pace that is and when the run ends."""

import datetime as dt

from octo_sync.cli.progress import _say_once
from octo_sync.flows.ports import Progress

END = dt.datetime(2026, 11, 20, 12, 40, tzinfo=dt.UTC)


def test_without_a_terminal_each_pace_is_one_line_with_the_expected_end(capsys):
    progress = Progress()
    _say_once(progress)
    progress.plan("products", 1)
    for minute in range(3):
        progress.expect(END + dt.timedelta(minutes=minute), "main permits 60 requests a minute")
    progress.expect(None, "")
    progress.expect(END, "main asks to wait")
    assert capsys.readouterr().err.splitlines() == [
        "main permits 60 requests a minute: expected to end at 2026-11-20 12:40 UTC",
        "main asks to wait: expected to end at 2026-11-20 12:40 UTC",
    ]
