"""The Sync, Reconcile and SQL pages without a browser: what they say is what the copy and the journal hold."""

import asyncio
import dataclasses
import datetime as dt
import html
import itertools
import re
import shutil
import threading
from pathlib import Path
from urllib.parse import quote, urlencode

import duckdb
import pytest
from tests.dashboard.conftest import READ
from tests.dashboard.test_pages import table
from tests.flows.harness import NOON
from tests.warehouse.test_recon_open import _insert, _rows

from octo_sync.dashboard import app, source
from octo_sync.dashboard.pages import sql as sql_page
from octo_sync.dashboard.query import LONGEST
from octo_sync.dashboard.source import PAGE_SECONDS
from octo_sync.destinations.duckdb.reader import DuckDBReader
from octo_sync.errors import JournalError
from octo_sync.flows import wording
from octo_sync.flows.deploy.cron import words
from octo_sync.flows.status.report import ConnectionStatus, KindStatus, NextRun, Running, Status, WebhookStatus, Working
from octo_sync.flows.webhooks.canary import Canary
from octo_sync.journal import Run


def plain(page):
    """What a page says, without its markup; cells apart."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", re.sub(r"<.?span[^>]*>", "", page))).split())


def section(page, name):
    return plain(re.search(rf'<section id="{name}">(.*?)</section>', page, re.DOTALL)[1])


@pytest.fixture
def changed(published, tmp_path):
    """A copy with statements run on it."""

    def make(*statements):
        folder = tmp_path / "changed"
        shutil.copytree(published, folder)
        with duckdb.connect(folder / READ) as copy:
            copy.execute("set timezone = 'UTC'")
            for statement in statements:
                copy.execute(statement)
        return folder

    return make


# -- Sync ---------------------------------------------------------------------------------------------------------------


async def test_the_sync_page_says_what_the_copy_is_worth(shown):
    page = plain(await shown().text("/sync"))

    assert re.search(
        r"All 8 products . 2 months verified within 1 h\. All 3 months of bookings verified within 1 h\.", page
    )
    assert "Backlog" not in page, "nobody knows it without a journal"


async def test_the_coverage_map_says_what_is_in_none_of_its_months(shown, published):
    with duckdb.connect(published / READ, read_only=True) as copy:
        ((count, since),) = copy.execute(
            "select subjects, oldest_verified_at from marts.sync_freshness where resource = 'open_dated'"
        ).fetchall()

    since_when = f"verified since {wording.instant(since)}; in no month."
    said = f"Bookings without a day of travel that are still asked for: {count}, {since_when}"
    assert count > 0
    assert said in section(await shown().text("/sync"), "coverage-1")


async def test_the_sync_page_tells_one_product_when_one_is_asked_for(shown, published):
    with duckdb.connect(published / READ, read_only=True) as copy:
        key, name = copy.execute("select product_key, product_name from marts.dim_product order by 1").fetchone()

    page = await shown().text(f"/sync?{urlencode({'product': key})}")

    assert page.count('<th scope="row"><span class="name">') == 2
    assert name in section(page, "coverage-1")


async def test_what_is_in_quarantine_and_what_drifts_is_told(shown, changed):
    folder = changed(
        "insert into ops.quarantine select 'main', 'booking', 'k' || range, '$.status', 'It is no status.', 2, now(), now() "
        "from range(101)",
        "insert into ops.schema_drift values ('main', 'booking', 'field', 'newField', 7, now(), now(), null)",
    )
    page = await shown(folder).text("/sync")

    assert "It is no status." in section(page, "quarantine")
    assert "100 of 101; all of them: /data/ops.quarantine.csv." in section(page, "quarantine")
    assert "newField field single bookings (booking) main 7" in section(page, "drift")


async def test_the_runs_are_the_last_twenty_of_sql_newest_first(shown, changed):
    folder = changed(
        "insert into ops.runs select 'run-' || range, 'sync', 'p', case range % 3 when 0 then 'failed' else 'ok' end, "
        "timestamptz '2026-11-01 03:00:00+00' + range * interval '1 day', case when range < 24 then timestamptz "
        "'2026-11-01 03:00:00+00' + range * interval '1 day' + (range * 40 + 1.5) * interval '1 second' end, "
        "range * 1000, range, range - 1, range * 10, case range % 3 when 0 then 'It broke <here>.' end from range(1, 25)",
    )
    with duckdb.connect(folder / READ, read_only=True) as copy:
        copy.execute("set timezone = 'UTC'")
        took = "epoch(ended_at_utc - started_at_utc)"
        wanted = copy.execute(
            "select run_id, command, status, strftime(started_at_utc, '%Y-%m-%d %H:%M UTC'), "
            f"case when ended_at_utc is null then 'not ended' when {took} < 120 then printf('%.1f s', {took}) "
            f"else printf('%.0f min', {took} / 60) end, format('{{:,}}', requests), format('{{:,}}', subjects), "
            "format('{:,}', unchanged), format('{:,}', rows_written), coalesce(error, '') from ops.runs "
            "order by started_at_utc desc limit 20"
        ).fetchall()

    found = table(await shown(folder).text("/sync"), "The last 20 runs that landed something")

    assert len(found) == 20
    assert [tuple(row) for row in found] == wanted
    assert found[0][4] == "not ended"


def status(**more):
    kinds = {
        "booking": KindStatus("booking", subjects=20, verified=18, owed=3, due=2, quarantined=1),
    }
    hooks = WebhookStatus("s-1", NOON, 12, 1, 7200.0, Canary(NOON, lag=1.25), None)
    waiting = {"held": ["11 rows would go."], "kept": ["It sends no `pricing`."]}
    connection = ConnectionStatus("main", kinds=kinds, webhooks=hooks, **waiting)
    return Status(
        connections=[connection],
        runs=[],
        running=Running("serve", 1, "here", NOON),
        quarantine=[],
        pii=None,
        next_runs=[NextRun("full", "0 2 * * *", NOON + dt.timedelta(hours=14), None, late=True)],
        workers=[Working(1, "here", ("main", "other")), Working(7, "there", ())],
        **more,
    )


async def test_what_the_journal_knows_stands_beside_it(shown):
    page = await shown(status=status).text("/sync")

    assert "serve has been running since 2026-11-20 12:00 UTC." in section(page, "backlog")
    assert "single bookings (booking) main 20 18 3 2 1" in section(page, "backlog")
    assert table(page, "Workers") == [["1 on here", "main, other"], ["7 on there", "none now"]]
    assert table(page, "Deletions waiting for confirmation") == [["main", "11 rows would go."]]
    assert table(page, "Missing fields whose values are kept") == [["main", "It sends no `pricing`."]]
    webhooks = section(page, "webhooks")
    assert "main subscribed, silent for 2:00:00, longer than usual 2026-11-20 12:00 UTC 12 1" in webhooks
    assert "told after 1.2 s (2026-11-20 12:00 UTC)" in webhooks
    said = "everything (full) every day at 02:00, UTC 2026-11-21 02:00 UTC never late: its turn is now 0 2 * * *"
    assert said in section(page, "next")
    idle = await shown(status=lambda: dataclasses.replace(status(), running=None)).text("/sync")
    assert "never late: it waits until octo-sync serve is started 0 2 * * *" in section(idle, "next")


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("17 2 * * *", "every day at 02:17, Europe/Lisbon"),
        ("0 7,19 * * *", "every day at 07:00 and 19:00, Europe/Lisbon"),
        ("30 6 * * mon-fri", "on Mon, Tue, Wed, Thu, Fri at 06:30, Europe/Lisbon"),
        ("*/15 * * * *", "every 15 minutes"),
        ("*/15 * * * 0", "every 15 minutes, on Sun, Europe/Lisbon"),
        ("15 * * * *", "every hour, 15 minutes past"),
        ("0 * * * *", "every hour"),
        ("* * * * *", "every minute"),
        ("*/7 * * * *", ""),
        ("5,20 * * * *", ""),
        ("0 2 1 * *", ""),
        ("0 2 * jan *", ""),
        ("0 */3 * * *", ""),
        ("* 2 * * *", ""),
        ("0 2 * * last", ""),
    ],
)
def test_a_schedule_is_said_in_words_where_these_are_few(expression, said):
    assert words(expression, "Europe/Lisbon") == said


async def test_a_run_that_failed_is_said_though_the_copy_knows_nothing_of_it(shown):
    """Whatever other commands did since; not where it was pulled well since."""

    async def said(*runs):
        made = [
            Run(
                run_id="r", command=command, pipeline="p", fence=1, options={}, status=state, started_at=NOON, counts={},
                error="It refused us." if state == "failed" else None,
            )
            for command, state in runs
        ]  # fmt: skip
        page = await shown(status=lambda: dataclasses.replace(status(), runs=made)).text("/sync")
        return re.findall(r"The last run of \S+ began 2026-11-20 12:00 UTC: [^<]*", page)

    failed = "The last run of sync began 2026-11-20 12:00 UTC: failed. It refused us."
    assert await said(("sync", "failed")) == [failed]
    assert await said(("reconcile", "ok"), ("serve", "running"), ("sync", "failed")) == [failed]
    assert await said(("serve", "killed"), ("sync", "failed")) == [
        "The last run of serve began 2026-11-20 12:00 UTC: killed.",
        failed,
    ]
    for command in ("sync", "pull"):
        assert await said((command, "ok"), ("serve", "failed"), ("demo", "failed")) == []
    assert await said(("sync", "running")) == []


async def test_a_journal_that_cannot_be_read_does_not_take_the_page_away(shown):
    def broken():
        raise JournalError("The journal is locked.")

    page = await shown(status=broken).text("/sync")

    assert section(page, "now") == "Now The journal is locked."
    assert "Freshness" in page


# -- Reconcile ----------------------------------------------------------------------------------------------------------


async def test_where_nothing_was_compared_it_says_how(shown):
    page = plain(await shown().text("/reconcile"))

    assert "Nothing was compared yet" in page
    assert "[reconcile.ledger]" in page
    assert "octo-sync reconcile ledger" in page


TOTALS = (
    '[{"side": "here", "currency": "EUR", "rows": 3, "amounts": {"retail_amount": "1204.5"}}, '
    '{"side": "there", "currency": "EUR", "rows": 4, "amounts": {"retail_amount": "1214.75"}}, '
    '{"side": "there", "currency": "JPY", "rows": 1, "amounts": {"retail_amount": "900"}}]'
)


async def test_the_reconcile_page_has_totals_ages_and_each_difference(shown, changed):
    runs, results = _rows()
    folder = changed(
        _insert("recon_runs", runs),
        _insert("recon_results", results),
        f"update ops.recon_runs set control_totals = '{TOTALS}', window_start = '2026-11-01', window_end = '2026-11-30', "
        "here_origin = 'here', there_origin = 'ledger.csv', started_at_utc = ended_at_utc, matched = 5, mismatched = 2",
    )
    with duckdb.connect(folder / READ, read_only=True) as copy:
        ages = dict(
            copy.execute(
                "select age_class, count(*) from marts.recon_open where recon_name = 'ledger' and bucket = 'mismatched' "
                "group by 1"
            ).fetchall()
        )
        ((opened,),) = copy.execute("select count(*) from marts.recon_open where recon_name = 'crm'").fetchall()
    page = await shown(folder).text("/reconcile")
    crm, ledger = 1, 3  # by their names; `gone` has differences and no run that is kept

    assert len(ages) > 2
    assert f"open differences {opened}" in section(page, f"recon-{crm}")
    assert "could not compare; ran" in section(page, f"recon-{ledger - 1}")
    assert "The last run failed; what is below was compared" in section(page, f"recon-{ledger - 1}")
    assert (
        "EUR retail price 3 1,204.50 EUR 4 1,214.75 EUR 10.25 EUR JPY retail price 0 0 JPY 1 900 JPY 900 JPY"
        in section(page, f"recon-{crm}-totals")
    )
    counts = " ".join(str(ages.get(age, 0)) for age in ("0-1", "2-7", "8-30", ">30"))
    assert f"mismatched: both sides have it and a field differs {counts} {sum(ages.values())}" in section(
        page, "recon-2-ages"
    )
    found = section(page, "recon-1-differences")
    assert re.search(r"k\d+ [+-]\d+\.\d+ EUR It's a reason\. 80\.00 EUR 90\.00 EUR", found)
    for piece in (r"80\.00 EUR", r"90\.00 EUR", r"2026-\d\d-\d\d"):
        assert re.search(f'<td><bdi><span class="at">{piece}</span>', page), "it stands on one line"


# -- SQL ----------------------------------------------------------------------------------------------------------------


def sql(text, **fields):
    return f"/sql?{urlencode({'q': text, **fields}, quote_via=quote)}"


def editor(page):
    return html.unescape(re.search(r"<textarea[^>]*>(.*?)</textarea>", page, re.DOTALL)[1])


async def test_a_query_is_answered_and_nothing_of_a_number_is_rounded(shown):
    page = await shown().text(
        sql("select 1234567 as i, cast(1001.2300 as decimal(9,4)) as d, 0.1 + 0.2::double as f, true as b")
    )

    assert section(page, "answer").endswith(
        "i d f b 1234567 1,001.23 0.30000000000000004 yes csv of sql · json of sql · parquet of sql"
    )
    page = await shown().text(sql("select 'JPY' as currency, cast(1200 as decimal(18,4)) as retail_amount"))
    assert "JPY 1,200 csv" in section(page, "answer")
    page = await shown().text(sql("select timestamp '2026-11-20 00:00' as day, timestamp '2026-11-20 00:01' as time"))
    assert "2026-11-20 2026-11-20 00:01 csv" in section(page, "answer")
    page = await shown().text(sql("select timestamp '2026-11-20' + range * interval '1 minute' as time from range(2)"))
    assert "2026-11-20 00:00 2026-11-20 00:01 csv" in section(page, "answer"), "beside a time, midnight is one"


@pytest.mark.deep(0.1, everyday=3)
@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("drop table core.bookings", "DROP is not a reading statement; the copy can only be read."),
        ("select * from read_text('/etc/passwd')", "Queries reach no file, network or extension."),
        ("install httpfs", "is not a reading statement"),
        ("selec 1", "syntax error"),
        ("select 1; select 2", "Expected one statement, found 2"),
        ("select $nothing", "nothing"),
        ("-- parameter: n: integer: many: How many.\nselect $n", "n='many' is no integer; e.g. 30."),
        ("-- parameter: n: whole: 1: How many.\nselect $n", "is not `-- parameter: name: type: default: meaning`"),
        ("x" * (LONGEST + 1), "octo-sync sql -f FILE takes any"),
    ],
)
async def test_a_wrong_query_is_told_why_and_kept(shown, text, sentence):
    page = await shown().text(sql(text))

    assert sentence in html.unescape(re.search(r'role="alert">(.*?)</p>', page, re.DOTALL)[1])
    assert editor(page) == text
    assert 'id="answer"' not in page


async def test_a_query_that_takes_too_long_is_ended(shown, monkeypatch):
    monkeypatch.setattr(sql_page, "PAGE_SECONDS", 0.2)

    page = await shown().text(sql("select sum(range) from range(20000000000)"))

    assert "The query was stopped after 0.2 s" in page


async def test_a_long_value_is_cut_and_the_page_stays_small(shown):
    page = await shown().text(
        sql(
            "select 1 as n, repeat('x', 30000000) as t, repeat('ab', 30000)::blob as b, range(10000) as l, "
            "repeat('y', 2000) as whole, {'a': repeat('z', 3000)} as s"
        )
    )

    assert f"<bdi>{'x' * 2000}…</bdi>" in page
    assert f"<bdi>{'6162' * 500}…</bdi>" in page
    assert f"<bdi>{str(list(range(1000)))[:2000]}…</bdi>" in page
    assert f"<bdi>{'y' * 2000}</bdi>" in page
    assert f"{'z' * 1990}…</bdi>" in page
    assert len(page) < 500_000


@pytest.mark.deep(1)
async def test_a_query_may_take_less_memory_than_a_page(shown):
    dashboard = shown()
    query = "select count(distinct range || repeat('x', 100)) as n from range(5000000)"

    assert "The query needs more memory than it may have" in await dashboard.text(sql(query))
    with dashboard.source.using() as opened:
        assert opened.pages.query("select current_setting('memory_limit')").rows == [("1.8 GiB",)]
        assert opened.people.query("select current_setting('memory_limit')").rows == [("488.2 MiB",)]


def test_a_query_is_ended_before_its_page_is_given_up():
    """Else nobody would ever read that it was stopped."""
    assert (PAGE_SECONDS, app._SECONDS) == (25.0, 30.0)


async def test_queries_that_take_long_hold_up_no_page_and_who_asks_meanwhile_is_told(shown, monkeypatch):
    monkeypatch.setattr(source, "_PATIENCE", 0.2)
    done, query = threading.Event(), DuckDBReader.query

    def slow(self, text, parameters=(), **more):
        with self._lock:
            if text.endswith("slow"):
                done.wait(60)
            return query(self, text, parameters, **more)

    monkeypatch.setattr(DuckDBReader, "query", slow)
    dashboard = shown()
    asking = [asyncio.create_task(dashboard.text(sql("select 7 as n -- slow"))) for _ in range(3)]
    try:
        async with asyncio.timeout(120):
            for path in ("/occupancy", "/sql", "/data/coverage.csv"):
                await dashboard.text(path)
            told = [await each for each in itertools.islice(asyncio.as_completed(asking), 2)]
    finally:
        done.set()
    for page in told:
        assert "Another query is running, and only one runs at a time; try again in a moment." in page
        assert editor(page) == "select 7 as n -- slow"
    answered = [page for page in await asyncio.gather(*asking) if page not in told]
    assert ["n 7" in section(page, "answer") for page in answered] == [True]


async def test_a_question_keeps_its_fields_when_it_is_changed(shown):
    text = "-- parameter: n: integer: 2: How many.\n-- parameter: unused: text: : Nobody asks.\nselect range from range($n)"
    dashboard = shown()

    missing = await dashboard.text(sql(text))
    page = await dashboard.text(sql(text, **{"p.n": "3", "p.unused": "x"}))

    assert "It wants to know unused: fill it in and press Run." in missing
    assert 'name="p.n" value="3"' in page
    assert "range 0 1 2 csv" in section(page, "answer")


async def test_every_ready_made_question_can_be_asked(shown):
    dashboard = shown()
    page = await dashboard.text("/sql")
    asked = re.findall(r'href="\./sql\?(ask=[^"]+)"', page)
    assert len(asked) == len(list((Path(__file__).parents[2] / "warehouse" / "questions").glob("*.sql"))) > 30
    for each in asked:
        answer = await dashboard.text(f"/sql?{each}")
        assert 'role="alert"' not in answer, each
        assert 'id="answer"' in answer or "It wants to know" in answer, each


async def test_no_other_site_can_ask(shown):
    refused = await shown().get(sql("select 1"), **{"sec-fetch-site": "cross-site"})

    assert refused.status_code == 403


async def test_without_a_copy_the_page_says_so(shown, tmp_path):
    assert "does not exist yet" in plain(await shown(tmp_path).text(sql("select 1")))


async def test_the_page_shows_every_table_with_the_meaning_of_its_columns(shown):
    page = await shown().text("/sql")

    for each in shown().source.tables():
        assert f"<code><bdi>{each.name}</bdi></code>" in page, each.full_name
    assert "When the part verified longest ago was verified." in plain(page)
