"""The demo shows a business: three channels of one supplier, and this year beside the last one."""

import base64
import contextlib
import html
import json
import os
import re
import shlex
import signal
import sqlite3
import time
import urllib.error
import urllib.request

import pytest

CHANNELS = {"Own website", "CityTrips", "Hotel desks"}


@pytest.mark.deep(12)
def test_last_year_pace_and_channels_can_be_seen(empty):
    said, _ = empty.start("demo", "-C", ".", "--bookings", "1200", "--json").communicate()
    assert json.loads(said)["equal"]

    pace = empty.json("ask", "pace")["rows"]
    assert sum(row["guests"] for row in pace) > 0
    known = [row["last_year_guests"] for row in pace if row["is_complete"]]
    assert sum(known) > 0
    assert sum(row["last_year_final"] for row in pace) > sum(known)
    by_channel = (
        "select channel_name, sum(last_year_guests) as guests from agg_pickup where is_last_year_complete group by 1"
    )
    assert {row["channel_name"] for row in empty.json("sql", by_channel)["rows"] if row["guests"]} == CHANNELS
    assert {row["channel_name"] for row in empty.json("ask", "cancellation_rate")["rows"]} == CHANNELS
    suppliers = empty.json(
        "sql", "select count(distinct supplier_key) as suppliers, count(*) as channels from dim_channel"
    )
    assert suppliers["rows"] == [{"suppliers": 1, "channels": 3}]


@pytest.mark.deep(15)
def test_what_it_says_comes_next_closes_a_month_and_shows_differences_with_buttons(empty):
    said, _ = empty.start("demo", "-C", "shown", "--bookings", "200").communicate()
    lines = [shlex.split(line, comments=True) for line in said.partition("\nNext\n")[2].splitlines()]
    (sql,) = (words for words in lines if "sql" in words)
    sold = "select sum(retail_amount) filter (where is_sold) as sold from fct_bookings group by channel_name, currency"
    amounts = {row["sum(retail_amount)"] for row in empty.json(*sql[3:])["rows"]}
    assert amounts == {row["sold"] for row in empty.json("sql", "-C", "shown", sold)["rows"]}
    (close,) = (words for words in lines if "close" in words)
    assert close[:3] == ["uv", "run", "octo-sync"]
    assert re.search(rf"^{close[-1]} +closed ", empty.ok(*close[3:]), re.MULTILINE)

    (act,) = (words for words in lines if words[0].startswith("OCTO_SYNC_DASHBOARD__TOKEN="))
    name, _, token = act[0].partition("=")
    assert act[1:4] == close[:3]
    serving = empty.start(
        *act[4:], environment={name: token, "OCTO_SYNC_DASHBOARD__BIND": "127.0.0.1:0", "BROWSER": "true"}
    )
    try:
        place = next(filter(None, (re.search(r"dashboard on (http://\S+)", line) for line in serving.stderr)))[
            1
        ].rstrip("/")

        def page(path, **headers):
            with urllib.request.urlopen(urllib.request.Request(f"{place}/{path}", headers=headers)) as answer:  # noqa: S310
                return answer.read().decode()

        with pytest.raises(urllib.error.HTTPError, match="401"):
            page("reconcile")
        known = {"Authorization": "Basic " + base64.b64encode(f"Ana:{token}".encode()).decode()}
        difference = re.search(r'"\./(difference\?[^"]*)"', page("reconcile", **known))[1]
        assert {"Accept", "Assign"} <= set(
            re.findall(r"<button[^>]*>([^<]*)", page(html.unescape(difference), **known))
        )
    finally:
        serving.send_signal(signal.SIGTERM)
        serving.communicate(timeout=60)


IN_A_GROUP_OF_ITS_OWN = "import os, sys; os.setpgid(0, 0); os.execv(sys.argv[1], sys.argv[1:])"


@pytest.mark.deep(6)
def test_ctrl_c_while_webhooks_come_is_one_line_although_it_reaches_all_processes_of_the_terminal(empty):
    demo = empty.start(*empty.arguments("demo", "-C", ".", "--bookings", "200"), program=IN_A_GROUP_OF_ITS_OWN)

    def told():
        with (
            contextlib.suppress(sqlite3.Error),
            contextlib.closing(sqlite3.connect(journal, uri=True, timeout=0.1)) as opened,
        ):
            return opened.execute("select count(*) from deliveries").fetchone()[0]

    journal, ends = f"file:{empty.directory / 'octo.journal.sqlite'}?mode=ro", time.monotonic() + 120
    while not told():
        assert demo.poll() is None
        assert time.monotonic() < ends
        time.sleep(0.01)
    os.killpg(demo.pid, signal.SIGINT)
    _, said = demo.communicate(timeout=60)
    assert (demo.returncode, said.strip()) == (
        130,
        "octo-sync: interrupted; what was finished stays, run it again to go on",
    )
