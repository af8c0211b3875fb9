"""Acting on pages: who may, from where, and what becomes of it; nothing acts where nobody has a name."""

import contextlib
import csv
import dataclasses
import datetime as dt
import html
import io
import json
import re
from urllib.parse import parse_qsl, urlencode

import duckdb
import pytest
from tests.dashboard.conftest import READ
from tests.dashboard.test_guard import _basic
from tests.dashboard.test_own_pages import changed, plain, section, status  # noqa: F401 - a fixture
from tests.dashboard.test_pages import table, tiles
from tests.dashboard.test_today import links
from tests.flows.harness import NOON
from tests.journal.helpers import HandClock
from tests.journal.test_reconciliations import GROSS, store

from octo_sync.flows import wording
from octo_sync.flows.acts import ALLOW, COMMENT, SYNC, Acts
from octo_sync.flows.sync.settle import HELD
from octo_sync.journal import Journal
from octo_sync.model import Secret, Subject, SubjectKind

OWN = {"sec-fetch-site": "same-origin", "content-type": "application/x-www-form-urlencoded"}
ANA = {"authorization": _basic("Ana", "s3cret")}
FORM = {"act": SYNC, "back": "sync#acts"}


@pytest.fixture
def journal(tmp_path):
    with Journal.open(tmp_path / "journal.sqlite", clock=HandClock()) as journal:
        store(journal, GROSS)
        yield journal


@pytest.fixture
def acting(shown, journal):
    """A dashboard with a token, on which people may act."""

    def make(*folder, **more):
        acts = Acts(lambda: contextlib.nullcontext(journal), HandClock(), ["ledger"])
        return shown(*folder, **{"token": Secret("s3cret"), "acts": acts, **more})

    return make


async def post(dashboard, fields, **headers):
    content = fields if isinstance(fields, bytes) else urlencode(fields)
    return await dashboard.ask("POST", "/act", content=content, headers={**OWN, **ANA, **headers})


async def test_a_form_of_a_page_acts_and_leads_back_to_it(acting, journal):
    dashboard = acting()
    answer = await post(dashboard, FORM)
    assert (answer.status_code, answer.headers["location"]) == (303, "./sync#acts")
    (act,) = journal.acts.waiting(SYNC)
    assert act.who == "Ana"


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "none"},
        {"sec-fetch-site": "cross-site", "origin": "http://127.0.0.1:8788"},
        {"sec-fetch-site": "", "origin": "https://evil.example"},
        {"sec-fetch-site": "", "origin": "http://127.0.0.1:9999"},
        {"sec-fetch-site": "", "origin": "null"},
        {"sec-fetch-site": ""},
    ],
)
async def test_what_another_site_sends_does_not_act(acting, journal, headers):
    answer = await post(acting(), FORM, **headers)
    assert answer.status_code == 403
    assert "own forms" in answer.text
    assert journal.acts.last(1) == []


async def test_a_browser_that_says_only_where_the_form_came_from_acts(acting, journal):
    answer = await post(acting(), FORM, **{"sec-fetch-site": "", "origin": "http://127.0.0.1:8788"})
    assert answer.status_code == 303
    assert len(journal.acts.last(9)) == 1


@pytest.mark.parametrize("authorization", ["", _basic("Ana", "wrong")])
async def test_without_the_token_nobody_acts(acting, journal, authorization):
    assert (await post(acting(), FORM, authorization=authorization)).status_code == 401
    assert journal.acts.last(1) == []


async def test_without_a_token_or_a_header_nothing_acts_and_no_page_has_a_form(shown, journal):
    dashboard = shown(status=status)
    assert (await post(dashboard, FORM)).status_code == 405
    for path in ("/sync", "/reconcile"):
        assert 'method="post"' not in await dashboard.text(path)


@pytest.mark.parametrize(
    ("sent", "who"),
    [
        ({"x-forwarded-user": "Ana"}, "Ana"),
        ({"x-forwarded-user": "Zoë".encode()}, "Zoë"),
        ({"x-forwarded-user": b"A\xe9\x01 " + b"x" * 200}, ("A\N{REPLACEMENT CHARACTER} " + "x" * 200)[:100]),
        ({"x-forwarded-user": " "}, None),
        ({}, None),
    ],
)
async def test_a_proxy_says_who_acts(acting, journal, sent, who):
    dashboard = acting(token=None, user_header="X-Forwarded-User")
    answer = await post(dashboard, FORM, authorization=_basic("Eve", "x"), **sent)
    assert answer.status_code == (303 if who else 403)
    assert [act.who for act in journal.acts.last(9)] == ([who] if who else [])


@pytest.mark.parametrize(("authorization", "code"), [("Bearer s3cret", 303), (_basic("", "s3cret"), 403)])
async def test_a_login_without_a_name_does_not_act(acting, journal, authorization, code):
    assert (await post(acting(), FORM, authorization=authorization)).status_code == code
    assert [act.who for act in journal.acts.last(9)] == (["bearer token"] if code == 303 else [])


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"act": SYNC, "back": "https://evil.example/"}, 404),
        ({"act": SYNC, "back": "//evil.example"}, 404),
        ({"act": SYNC, "back": "nowhere"}, 404),
        ({"act": SYNC, "back": "sync\r\nset-cookie: a=b"}, 404),
        ({"act": "drop", "back": "sync"}, 409),
        ({"back": "sync"}, 409),
        (b"\xff=\xff", 400),
        (b"&".join(b"a=b" for _ in range(20)), 400),
        (b"back=sync&act=" + b"x" * 30_000, 413),
    ],
)
async def test_what_is_no_form_of_ours_changes_nothing(acting, journal, fields, code):
    answer = await post(acting(), fields)
    assert answer.status_code == code
    assert "location" not in answer.headers
    assert journal.acts.last(1) == []


async def test_a_refusal_is_a_sentence_on_a_page(acting):
    answer = await post(acting(), {"act": COMMENT, "about": "ledger", "key": "<b>", "text": "x", "back": "sync"})
    assert answer.status_code == 409
    assert "No difference of ledger has the key &lt;b&gt;" in answer.text


def forms(page):
    """What each form that acts sends when nothing is typed: its fields, by its button."""
    found = {}
    for inner in re.findall(r'<form class="filters act" method="post"[^>]*>(.*?)</form>', page, re.DOTALL):
        names = re.findall(r'name="([a-z]+)"(?: value="([^"]*)")?', inner)
        found[re.search(r"<button[^>]*>(.*?)</button>", inner)[1]] = {
            name: html.unescape(value) for name, value in names
        }
    return found


async def test_the_sync_page_has_what_may_be_done_and_what_was(acting, journal):
    subject = Subject("main", SubjectKind.BOOKING, ("b-1",))
    journal.quarantine.add_record("main", HELD, "core.bookings", "", "11 of 20 rows <are> missing.", "r")
    journal.quarantine.add_record("main", "bookings", "b-1", "$", "no text", "r", subject=subject)

    def now():
        return dataclasses.replace(status(), quarantine=journal.quarantine.entries())

    dashboard = acting(status=now)
    found = forms((await dashboard.ask("GET", "/sync", headers=ANA)).text)
    assert found.keys() == {
        "Sync now",
        "Fetch everything in quarantine again",
        "Mark these rows of core.bookings deleted",
    }
    assert found["Mark these rows of core.bookings deleted"] == {
        "act": ALLOW,
        "about": "main",
        "key": "core.bookings",
        "text": "11 of 20 rows <are> missing.",
        "back": "sync#acts",
    }
    for fields in found.values():
        assert (await post(dashboard, fields)).status_code == 303
    page = (await dashboard.ask("GET", "/sync", headers=ANA)).text
    done = [(row[1], row[2], row[3], row[5]) for row in table(page, "What people did on pages")]
    assert done == [
        ("Ana", ALLOW, "main · core.bookings", "waits for the worker"),
        ("Ana", "retry quarantine", "", "1 record to fetch again."),
        ("Ana", SYNC, "", "waits for the worker"),
    ]


async def test_where_nothing_runs_the_page_says_that_nothing_can_sync(acting):
    idle = dataclasses.replace(status(), running=None)
    page = (await acting(status=lambda: idle).ask("GET", "/sync", headers=ANA)).text
    assert "Sync now" not in forms(page)
    assert "start octo-sync serve" in section(page, "acts")


def counts(*pages):
    shown = {name: values[0] for page in pages for name, values in tiles(page).items()}
    return [shown.get(name) for name in ("recon-1-open", "recon-1-accepted", "recon-1-mismatched", "differences")]


AGES = "Open differences of ledger by bucket and days since they were first found"
BOTH = [["retail_amount · gross", ["80.00"], ["90.00", "—"], True], ["product <b>", ["Tour"], ["—", "Tour"], False]]


@pytest.fixture
def compared(changed):  # noqa: F811 - the fixture
    at = "timestamptz '2026-11-20 12:00:00+00'"
    both = json.dumps(BOTH).replace("'", "''")
    return changed(
        "insert into ops.recon_runs (recon_name, run_id, verdict, started_at_utc, ended_at_utc, window_start, window_end, "
        f"control_totals) values ('ledger', 'r1', 'over', {at}, {at}, '2026-11-01', '2026-11-30', '[]')",
        *(
            "insert into ops.recon_results (recon_name, recon_key, bucket, field, connection_id, booking_uuid, here_value, "
            f"there_value, delta_amount, currency, reason, both_rows, first_seen_at_utc, last_seen_at_utc) values ('ledger', "
            f"'{key}', '{bucket}', 'retail_amount', 'main', 'u-1', '80', '90', 10, '{currency}', 'The <ledger> has more.', "
            f"'{both}', {at}, {at})"
            for key, bucket, currency in (
                (GROSS.key, "mismatched", "EUR"),
                ("b-2", "missing_here", "EUR"),
                ("b-3", "missing_here", "JPY"),
            )
        ),
        "update ops.recon_runs set mismatched = 1, missing_here = 2",
    )


async def test_a_difference_has_both_rows_and_is_decided_on_its_page(acting, journal, compared):
    with duckdb.connect(compared / READ) as copy:
        copy.execute(
            "update ops.recon_results set booking_uuid = (select booking_uuid from core.bookings where connection_id = 'main' "
            "and supplier_reference is not null order by all limit 1) where recon_key = ?",
            [GROSS.key],
        )
        uuid, reference = copy.execute(
            "select booking_uuid, supplier_reference from core.bookings join (select distinct booking_uuid from "
            "ops.recon_results) using (booking_uuid)"
        ).fetchone()
    dashboard = acting(compared)
    path = f"/difference?{urlencode({'name': 'ledger', 'key': GROSS.key})}"
    page = (await dashboard.ask("GET", path, headers=ANA)).text
    assert table(page, "Both rows, column by column") == [
        ["retail price (retail_amount · gross)", "80.00", "90.00", "—", "differs"],
        ["product <b>", "Tour", "—", "Tour", ""],
    ]
    assert re.findall(r'booking\?find=main%7C([^"&]*)[^>]*>(?:<[^>]*>)*([^<]*)<', page) == [(uuid, reference)]
    found = forms(page)
    assert found.keys() == {"Accept", "Assign", "Comment"}
    for button, typed in (("Accept", "Paid in cash."), ("Assign", "Ben"), ("Comment", "<b>Asked</b> them.")):
        answer = await post(dashboard, {**found[button], "text": typed})
        assert (answer.status_code, answer.headers["location"]) == (303, f".{path}#decide")
    (row,) = journal.reconciliations.acceptances("ledger")
    assert (row.key, row.note, row.accepted_by, row.until) == (GROSS.key, "Paid in cash.", "Ana", None)
    page = (await dashboard.ask("GET", path, headers=ANA)).text
    assert "State accepted" in " ".join(plain(page).split())
    assert "by Ana: Paid in cash." in plain(page)
    assert "Assigned to Ben" in plain(page)
    found = forms(page)
    assert found.keys() == {"Withdraw the acceptance", "Assign", "Comment"}
    whole, start = [(await dashboard.ask("GET", path, headers=ANA)).text for path in ("/reconcile", "/")]
    assert {row[0]: row[9] for row in table(whole, "Open differences of ledger")} == {"b-2": "—", "b-3": "—"}
    assert [row[0] for row in table(whole, "Accepted differences of ledger")] == [reference]
    assert counts(whole, start) == ["2", "1", None, "2"]
    await post(dashboard, found["Withdraw the acceptance"])
    whole, start = [(await dashboard.ask("GET", path, headers=ANA)).text for path in ("/reconcile", "/")]
    assert {row[0]: row[9] for row in table(whole, "Open differences of ledger")}[reference] == "Ben"
    assert counts(whole, start) == ["3", None, "1", "3"]
    page = (await dashboard.ask("GET", path, headers=ANA)).text
    assert "State open" in " ".join(plain(page).split())
    assert "Accept" in forms(page)
    assert [row[1:] for row in table(page, "What people did")] == [
        ["Ana", "withdraw", ""],
        ["Ana", "comment", "<b>Asked</b> them."],
        ["Ana", "assign", "Ben"],
        ["Ana", "accept", "Paid in cash."],
    ]
    assert "<b>Asked" not in page


@pytest.mark.parametrize(("until", "open_now"), [("2026-11-20", "2"), ("2026-11-19", "3")])
async def test_an_acceptance_holds_up_to_its_last_day(acting, journal, compared, until, open_now):
    journal.reconciliations.accept(
        "ledger", GROSS.key, note="Paid.", by="Ben", until=dt.date.fromisoformat(until), now=NOON
    )
    page = (await acting(compared).ask("GET", "/", headers=ANA)).text
    assert tiles(page)["differences"][0] == open_now


async def test_what_was_accepted_is_listed_with_its_reason_and_counted_as_open_nowhere(shown, compared):
    with duckdb.connect(compared / READ) as copy:
        copy.execute(
            "update ops.recon_results set accepted_note = 'Paid <in> cash.', accepted_by = 'Ana' where recon_key = 'b-2'"
        )
    dashboard = shown(compared, now=lambda: NOON + dt.timedelta(hours=1))
    page = await dashboard.text("/reconcile")
    (row,) = table(page, "Accepted differences of ledger")
    assert row[0] == "b-2"
    assert [row[2], *row[-2:]] == ["Paid <in> cash.", "Ana", "for good"]
    assert {row[0] for row in table(page, "Open differences of ledger")} == {"b-3", GROSS.key}
    shown_tiles = tiles(page)
    assert {name: shown_tiles[f"recon-1-{name}"][0] for name in ("open", "accepted", "missing_here", "mismatched")} == {
        "open": "2",
        "accepted": "1",
        "missing_here": "1",
        "mismatched": "1",
    }
    assert 'href="./reconcile?name=ledger#recon-1-accepted"' in page
    address = re.search(r'href="\./(difference\?[^"]*b-2[^"]*)"', page)[1]
    assert "Paid &lt;in&gt; cash." in await dashboard.text(f"/{html.unescape(address)}")


async def test_a_bucket_and_a_currency_lead_to_their_differences(shown, compared):
    with duckdb.connect(compared / READ) as copy:
        copy.execute("update ops.recon_results set day = '2026-11-08' where recon_key = 'b-2'")
        copy.execute("update ops.recon_results set day = '2026-12-08' where recon_key = 'b-3'")
    dashboard = shown(compared, now=lambda: NOON + dt.timedelta(hours=1))
    page = await dashboard.text("/reconcile")
    (address,) = {
        html.unescape(found) for found in re.findall(r'href="\./(reconcile\?[^"#]*bucket=missing_here)["#]', page)
    }
    assert dict(parse_qsl(address.partition("?")[2])) == {"name": "ledger", "bucket": "missing_here"}
    for query, keys in (
        ("bucket=missing_here", {"b-2", "b-3"}),
        ("currency=EUR", {"b-2", GROSS.key}),
        ("bucket=missing_here&age=0%E2%80%931", {"b-2", "b-3"}),
        ("age=0%E2%80%931", {"b-2", "b-3", GROSS.key}),
        ("first=2026-11-08&last=2026-11-08", {"b-2"}),
        ("", {"b-2", "b-3", GROSS.key}),
    ):
        page = await dashboard.text(f"/reconcile?name=ledger&{query}")
        assert {row[0] for row in table(page, "Open differences of ledger")} == keys
        assert ("Show all" in page) == bool(query)
        for said in ("open differences", "Control totals of ledger", "Ageing of ledger"):
            assert (f"{said}, all days" in plain(page)) == ("first=" in query)
    assert "None in these days; 3 in all." in await dashboard.text("/reconcile?first=2026-10-01&last=2026-10-31")
    assert "None of these; 3 in all." in await dashboard.text("/reconcile?bucket=ambiguous")
    assert "None of these; 3 in all." in await dashboard.text("/reconcile?age=%3E30")
    page = await dashboard.text("/reconcile")
    address = re.search(r'href="\./(difference\?[^"]*)"', page)[1]
    assert "Both rows" in await dashboard.text(f"/{html.unescape(address)}")
    assert "no such difference" in await dashboard.text("/difference?name=ledger&key=nothing")


async def test_where_one_side_counts_a_booking_as_sold_its_whole_price_is_the_difference(shown, compared):
    """It comes before what is less; the file has amounts without their currency; a day of booking is called so."""
    at = "timestamptz '2026-11-20 12:00:00+00'"
    with duckdb.connect(compared / READ) as copy:
        copy.execute("set timezone = 'UTC'")
        (gone, kept, undated) = copy.execute(
            "select booking_uuid, supplier_reference, retail_amount, channel_name from marts.fct_bookings "
            "where currency = 'EUR' and retail_amount > 10 and supplier_reference is not null "
            "order by retail_amount desc limit 3"
        ).fetchall()
        copy.execute(f"update core.bookings set local_date = null where booking_uuid = '{undated[0]}'")
        days = dict(copy.execute("select booking_uuid, booking_date from marts.fct_bookings").fetchall())
        for (uuid, *_), code in ((gone, "cancelled_there"), (kept, "cancelled_here"), (undated, "other_value")):
            copy.execute(
                "insert into ops.recon_results (recon_name, recon_key, bucket, field, connection_id, booking_uuid, here_value, "
                "there_value, currency, reason, code, day, first_seen_at_utc, last_seen_at_utc) values ('ledger', "
                f"'key {uuid}', 'mismatched', 'status', 'main', '{uuid}', 'A', 'B', 'EUR', 'It differs.', '{code}', "
                f"'{days[uuid]}', {at}, {at})"
            )
    dashboard = shown(compared, now=lambda: NOON + dt.timedelta(hours=1))
    page = await dashboard.text("/reconcile")
    rows = table(page, "Open differences of ledger")
    euros = [row for row in rows if row[1].endswith("EUR")]
    whole = wording.money_text(10 + kept[2] - gone[2], "EUR", sign=True)
    assert [row[-2] for row in table(page, AGES)] == [whole, "+10.00 EUR"]
    assert "Control totals count cancelled bookings too, so they do not differ by it." in plain(page)
    assert [row[:2] + row[5:6] for row in euros[:3]] == [
        [gone[1], wording.money_text(-gone[2], "EUR", sign=True), str(days[gone[0]])],
        [kept[1], wording.money_text(kept[2], "EUR", sign=True), str(days[kept[0]])],
        [GROSS.key, "+10.00 EUR", "—"],
    ]
    assert [(row[0], row[1], row[5], row[6]) for row in rows if row[0] == undated[1]] == [
        (undated[1], "—", f"{days[undated[0]]}, day of booking", undated[3])
    ]
    (address,) = (found for found in links(page, "data/page/reconcile") if found.endswith("Open+differences+of+ledger"))
    heads, *lines = csv.reader(io.StringIO((await dashboard.get(f"/{address}")).text, newline=""))
    picked = [heads.index(name) for name in ("Booking", "Difference", "Here", "There", "Currency")]
    assert ["b-2", "10.0000", "80", "90", "EUR"] in [[line[n] for n in picked] for line in lines]
    address = next(found for found in links(page, r"difference\?") if gone[0] in found)
    assert wording.money_text(-gone[2], "EUR", sign=True) in plain(await dashboard.text(f"/{address}"))


@pytest.mark.parametrize(
    ("kept", "name"),
    [
        (["supplier_reference · booking_no", ["–"], ["MUS-1042"], False], "MUS-1042"),  # noqa: RUF001 - no value here
        (["reseller_reference · agent_ref", ["–"], ["A-7"], False], "A-7"),  # noqa: RUF001 - the same
        (["supplier_reference · booking_no", ["–"], ["–"], False], "b-2"),  # noqa: RUF001 - none on either side
        (["booking_uuid · octo_uuid", ["–"], ["0d3a"], False], "b-2"),  # noqa: RUF001 - no value here
    ],
)
async def test_what_only_the_ledger_has_is_called_by_the_reference_that_is_in_there(shown, compared, kept, name):
    with duckdb.connect(compared / READ) as copy:
        copy.execute(
            "update ops.recon_results set both_rows = ?, booking_uuid = null, connection_id = null where recon_key = 'b-2'",
            [json.dumps([kept])],
        )
    dashboard = shown(compared, now=lambda: NOON + dt.timedelta(hours=1))
    names = {row[0] for row in table(await dashboard.text("/reconcile"), "Open differences of ledger")}
    assert names == {name, "b-3", GROSS.key}
    page = await dashboard.text(f"/difference?{urlencode({'name': 'ledger', 'key': 'b-2'})}")
    assert re.search(r"<h1>(?:<[^>]*>)*([^<]*)", page)[1].strip() == name


@pytest.mark.parametrize(
    ("status", "field", "is_said"),
    [
        (["status · state", ["CANCELLED"], ["XX"], False], "retail_amount", True),
        (["status · state", ["CANCELLED"], ["OK"], True], "retail_amount", False),
        (["status", ["CANCELLED"], ["–"], False], "retail_amount", False),  # noqa: RUF001 - no value there
        (["status · state", ["CANCELLED"], ["XX"], False], "", False),
    ],
)
async def test_an_amount_that_differs_of_what_both_sides_have_as_cancelled_says_so(
    shown, compared, status, field, is_said
):
    with duckdb.connect(compared / READ) as copy:
        copy.execute(
            "update ops.recon_results set both_rows = ?, field = ?, booking_uuid = (select booking_uuid from core.bookings "
            "where connection_id = 'main' and status = 'CANCELLED' order by all limit 1) where recon_key = ?",
            [json.dumps([status]), field, GROSS.key],
        )
    dashboard = shown(compared, now=lambda: NOON + dt.timedelta(hours=1))
    page = await dashboard.text("/reconcile")
    said = [row for row in table(page, "Open differences of ledger") if "Cancelled on both sides." in row[2]]
    assert len(said) == is_said
    page = await dashboard.text(f"/difference?{urlencode({'name': 'ledger', 'key': GROSS.key})}")
    assert ("The <ledger> has more. Cancelled on both sides." in plain(page)) is is_said


async def test_ageing_adds_up_what_differs_of_each_currency(shown, compared):
    page = await shown(compared).text("/reconcile")
    assert [row[-3:] for row in table(page, AGES)] == [["1", "+10.00 EUR", "—"], ["2", "+10.00 EUR", "+10 JPY"]]
