"""`octo-sync reconcile`: a ledger made of the sandbox's own state, compared on the command line and from Python."""

import csv
import datetime as dt
import json
import signal
import stat
from decimal import Decimal

import pandas as pd
import pytest
from tests.cli.conftest import finish, wait_until

import octo_sync

HEADS = ("octo_uuid", "no", "state", "gross", "currency", "day")
SECTION = """
[reconcile.ledger]
there = {{ file = "ledger*.csv" }}
keys = ["booking_uuid=octo_uuid", "supplier_reference=no"]
fields = {{ status = "state", retail_amount = "gross", currency = "currency", travel_date = "day" }}
map.status = {{ OK = ["CONFIRMED", "REDEEMED"], XX = "CANCELLED" }}
window = "-40d..+40d"
{more}
"""


def books(service):
    """What a ledger holds: what was sold, and what was sold and cancelled since; in the sandbox's own words."""
    today = dt.datetime.now(dt.UTC).date()
    window = today - dt.timedelta(days=40), today + dt.timedelta(days=40)
    found = []
    for booking in service.control("GET", "/state")["bookings"]:
        sold = booking["status"] in ("CONFIRMED", "REDEEMED", "NOSHOW")
        sold = sold or (booking["status"] == "CANCELLED" and booking["utc_confirmed_at"])
        if sold and not booking["test"] and window[0] <= dt.date.fromisoformat(booking["local_date"]) <= window[1]:
            gross = "" if booking["retail"] is None else str(Decimal(booking["retail"]).scaleb(-booking["precision"]))
            found.append(
                {
                    "octo_uuid": booking["uuid"],
                    "no": booking["supplier_reference"] or "",
                    "state": "XX" if booking["status"] == "CANCELLED" else "OK",
                    "gross": gross.replace(".", ","),
                    "currency": booking["currency"],
                    "day": "" if booking["freesale"] else booking["local_date"],
                }
            )
    assert len(found) > 30
    return sorted(found, key=lambda row: row["octo_uuid"])


def write(program, rows, name="ledger.csv"):
    with (program.directory / name).open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, HEADS, delimiter=";")
        writer.writeheader()
        writer.writerows(rows)


def ask_for(program, more=""):
    path = program.directory / "pipelines" / "shop.toml"
    path.write_text(path.read_text() + SECTION.format(more=more))


def said(program, *words):
    done = program("reconcile", *words, "--json")
    assert done.stdout, done.stderr
    [document] = json.loads(done.stdout)["reconciliations"]
    document["counts"] = {bucket: count for bucket, count in document["counts"].items() if count}
    return done.returncode, document


@pytest.fixture
def books_now(service):
    return books(service)


@pytest.mark.deep(4)
def test_a_comparison_loads_no_pandas_which_pyarrow_would(project, books_now):
    ask_for(project)
    write(project, books_now)

    done = project("reconcile", "ledger", real=True, environment={"PYTHONPROFILEIMPORTTIME": "1"})

    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert (done.returncode, loaded & {"pandas.core", "pyarrow"}) == (0, {"pyarrow"})


def test_a_ledger_that_says_the_same_is_matched_wholly(project, books_now):
    ask_for(project)
    write(project, books_now)

    code, document = said(project, "ledger")

    assert (code, document["counts"]) == (0, {"matched": len(books_now)})
    text = project.ok("reconcile", "ledger")
    assert "No difference" in text
    assert "within the limits" in text


@pytest.mark.deep(3)
def test_differences_within_the_limits_are_told_and_fail_nothing(project, books_now):
    ask_for(project, 'fail_on = "missing_there>1, mismatched>0"')
    write(project, books_now[1:])

    code, document = said(project, "ledger")

    assert (code, document["counts"]) == (0, {"matched": len(books_now) - 1, "missing_there": 1})
    assert document["breached"] == []
    write(project, books_now[2:])
    assert said(project, "ledger")[0] == 3


def test_differences_are_found_aged_shown_accepted_and_resolved(project, books_now):
    ask_for(project)
    priced = [row for row in books_now if row["gross"] not in ("", "0")]
    wrong, gone = priced[3], priced[7]
    write(project, [r | ({"gross": "0,01"} if r is wrong else {}) for r in books_now if r is not gone])

    code, document = said(project, "ledger")

    assert code == 3
    assert document["counts"] == {"matched": len(books_now) - 2, "mismatched": 1, "missing_there": 1}
    assert document["breached"]
    key = f"booking_uuid={wrong['octo_uuid']}"
    shown = project.json("sql", "select * from marts.recon_open order by bucket")["rows"]
    assert [(row["recon_key"], row["bucket"], row["field"]) for row in shown] == [
        (key, "mismatched", "retail_amount"),
        (f"booking_uuid={gone['octo_uuid']}", "missing_there", ""),
    ]
    assert all(row["is_new"] for row in shown)

    again = project("reconcile")
    assert again.returncode == 3
    assert "0 new" in again.stdout

    accepted = project.ok("reconcile", "accept", key, "--note", "a voucher", "--until", "2999-12-31")
    assert "until 2999-12-31" in accepted
    code, document = said(project, "ledger")
    assert (code, document["counts"]["accepted"]) == (3, 1)
    project.ok("reconcile", "accept", key, "--note", "a voucher", "--until", "2020-01-31")
    assert said(project, "ledger")[1]["counts"]["mismatched"] == 1, "what was accepted until a day is open after it"
    project.ok("reconcile", "accept", key, "--undo")

    write(project, books_now)
    assert said(project, "ledger")[0] == 0
    assert project.json("sql", "select * from marts.recon_open")["rows"] == []
    kept = project.json("sql", "select resolved_at_utc from ops.recon_results")["rows"]
    assert len(kept) == 2
    assert all(row["resolved_at_utc"] for row in kept)
    [listed] = project.json("reconcile", "list")["reconciliations"]
    assert (listed["name"], listed["verdict"], listed["open"]) == ("ledger", "ok", 0)


@pytest.mark.deep(5)
def test_what_was_accepted_stays_so_when_another_booking_of_the_order_differs_too(project, books_now):
    one, two = books_now[2]["octo_uuid"], books_now[5]["octo_uuid"]
    order = f"case when booking_uuid in ('{one}', '{two}') then 'R-1' else booking_uuid end as our_order"
    path = project.directory / "pipelines" / "shop.toml"
    rest = path.read_text()

    def compare(*differing):
        here = f"select *, {order} from marts.fct_bookings where booking_uuid in ('{books_now[0]['octo_uuid']}'"
        here += "".join(f", '{uuid}'" for uuid in differing) + ")"
        section = f"""
[reconcile.orders]
here = "{here}"
there = {{ file = "ledger.csv" }}
keys = ["our_order=octo_uuid"]
fields = {{ retail_amount = "gross", currency = "currency" }}
window = "-40d..+40d"
"""
        path.write_text(rest + section)
        document = said(project, "orders")[1]
        assert document["counts"].get("missing_there", 0) + document["counts"].get("accepted", 0) == len(differing)
        return {item["booking_uuid"]: item for item in document["items"]}

    write(project, books_now[:1])
    compare(one)
    project.ok("reconcile", "accept", "our_order=R-1", "--note", "paid in cash", "--until", "2999-12-31")
    both = compare(one, two)
    assert both[one]["bucket"] == "accepted"
    assert both[two]["bucket"] == "missing_there"
    assert (both[one]["key"], both[two]["key"] == "our_order=R-1") == ("our_order=R-1", False)
    assert compare(two)[two]["key"] == both[two]["key"]


@pytest.mark.deep(2)
def test_files_are_written_for_their_owner_alone(project, books_now):
    ask_for(project, 'write = ["reports/every.html"]')
    write(project, books_now[1:])

    done = project("reconcile", "ledger", "--html", "l.html", "--xlsx", "l.xlsx", "--csv", "l.csv")

    assert done.returncode == 3
    for name in ("l.html", "l.xlsx", "l.csv", "reports/every.html"):
        path = project.directory / name
        assert path.stat().st_size > 300
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert books_now[0]["octo_uuid"] in (project.directory / "l.csv").read_text()
    assert books_now[0]["octo_uuid"] in (project.directory / "l.html").read_text()


@pytest.mark.deep(2)
def test_without_a_reference_columns_are_taken_together(project, books_now):
    """Days as a person writes them, in a column that only the key names."""
    path = project.directory / "pipelines" / "shop.toml"
    section = SECTION.format(more="").replace(', travel_date = "day"', "")
    keys = '["booking_uuid=octo_uuid", "supplier_reference=no"]'
    path.write_text(
        path.read_text() + section.replace(keys, '["travel_date+retail_amount+currency=day+gross+currency"]')
    )
    once = {}
    for row in books_now:
        once.setdefault((row["day"], row["gross"], row["currency"]), []).append(row)
    single = [rows[0] for key, rows in once.items() if len(rows) == 1 and all(key)]
    assert len(single) > 10
    # On some days no two bookings are alike, and none would be missing.
    kept = single[1:]
    write(
        project, [r | {"day": f"{dt.date.fromisoformat(r['day']):%d.%m.%Y}", "octo_uuid": "", "no": ""} for r in kept]
    )

    _, document = said(project, "ledger")

    assert document["counts"]["matched"] == len(kept)
    assert set(document["counts"]) == {"matched", "missing_there"}


@pytest.mark.deep(2)
def test_another_connection_is_a_side_too(project, books_now):
    """The connection's own bookings are the other side, so that each has its counterpart."""
    path = project.directory / "pipelines" / "shop.toml"
    path.write_text(
        path.read_text()
        + """
[reconcile.mirror]
here = "select * from marts.fct_bookings where was_sold and coalesce(travel_date, booking_date) between :from and :to"
there = { connection = "shop" }
keys = ["booking_uuid", "supplier_reference"]
fields = { status = "status", retail_amount = "retail_amount", currency = "currency", travel_date = "travel_date" }
window = "-40d..+40d"
"""
    )

    code, document = said(project)

    assert (code, set(document["counts"])) == (0, {"matched"})
    assert document["counts"]["matched"] >= len(books_now)


@pytest.mark.deep(3)
def test_the_window_may_be_one_of_booking_dates(project, books_now):
    ask_for(project, 'date = "booking_date"')
    write(project, books_now)
    today = dt.datetime.now(dt.UTC).date()

    _, document = said(project, "ledger", "--travel", f"{today - dt.timedelta(days=40)}..{today}")

    made = "select count(*) as n from fct_bookings where was_sold and booking_date between current_date - 40 and current_date"
    here = sum(document["counts"].get(bucket, 0) for bucket in ("matched", "missing_there"))
    assert here == project.json("sql", made)["rows"][0]["n"]
    assert document["counts"]["matched"] > 0
    # What was booked outside of it is no difference, whenever it travels.
    assert set(document["counts"]) <= {"matched", "missing_there", "out_of_window"}


@pytest.mark.deep(4)
def test_a_dry_run_keeps_nothing_and_tells_nobody(project, books_now):
    ask_for(project, 'notify = "cp /dev/stdin told.json"')
    write(project, books_now[1:])

    assert project("reconcile", "ledger", "--dry-run").returncode == 3
    assert not (project.directory / "told.json").exists()
    assert project.json("reconcile", "list")["reconciliations"][0]["verdict"] == "never"

    assert project("reconcile", "ledger").returncode == 3
    told = json.loads((project.directory / "told.json").read_text())
    assert (told["event"], told["count"]) == ("reconcile.new_differences", 1)
    (project.directory / "told.json").unlink()
    assert project("reconcile", "ledger").returncode == 3
    assert not (project.directory / "told.json").exists(), "what is known is no news"


@pytest.mark.deep(2)
def test_a_hook_that_fails_is_said_and_changes_nothing(project, books_now):
    ask_for(project, 'notify = "false"')
    write(project, books_now[1:])

    done = project("reconcile", "ledger")

    assert done.returncode == 3
    assert "The hook of ledger failed: the command ended with 1" in done.stderr
    assert project.json("reconcile", "list")["reconciliations"][0]["open"] == 1


@pytest.mark.deep(0.3, everyday=2)
@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("", "ledger.csv"),
        ("octo_uuid;no;state;gross;currency\n", "day"),
        (
            "octo_uuid;no;state;gross;currency;day\n",
            "ledger.csv: there is no row below the header, so nothing was compared",
        ),
        ("octo_uuid;no;state;gross;currency;day\n;;;;;\n", "ledger.csv: there is no row below the header"),
        ("octo_uuid;no;state;gross;currency;day\nu;n;OK;EUR 12,00;EUR;2026-11-22\n", "line 2"),
        ("octo_uuid;no;state;gross;currency;day\nu;n;OK;12,00;EUR;31.02.2026\n", "line 2"),
        ("octo_uuid;no;state;gross;currency;day\nu;n;OK;12,00;EUR;2026-11-22\nu;n;OK\n", "line 3"),
    ],
)
def test_a_ledger_that_cannot_be_read_is_refused_and_nothing_is_kept(project, body, words):
    ask_for(project)
    (project.directory / "ledger.csv").write_text(body)

    done = project("reconcile", "ledger")

    assert (done.returncode, done.stdout) == (1, "")
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert project.json("reconcile", "list")["reconciliations"][0]["verdict"] == "never"


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["nothing"], 2, "no [reconcile.nothing]"),
        (["ledger"], 1, "project/ledger*.csv. Put the export there, or correct there.file"),
        (["accept", "booking_uuid=x", "--note", "y"], 1, "No difference of ledger is open"),
        (["accept", "booking_uuid=x", "--name", "legder", "--note", "y"], 2, 'did you mean "ledger"?'),
        (["ledger", "--html", "page.txt"], 2, "expected a file that ends in .html"),
    ],
)
def test_what_cannot_be_done_is_said(project, words, code, text):
    ask_for(project)

    done = project("reconcile", *words)

    assert done.returncode == code, done.stderr
    assert text in done.stderr


def test_a_pipeline_without_one_says_where_to_look(looked):
    done = looked("reconcile")

    assert done.returncode == 2
    assert "docs/reconciliation.md" in done.stderr


@pytest.mark.deep(6)
def test_beside_serve_it_is_kept_and_serve_shows_it(project, books_now):
    ask_for(project, "after_sync = false")
    path = project.directory / "pipelines" / "shop.toml"
    path.write_text(path.read_text() + '\n[publish]\nevery = "0.2s"\n')
    write(project, books_now[1:])
    running = project.start("serve", "--only", "worker")
    try:
        wait_until(lambda: project("publish").returncode == 6)  # it owns the project
        assert project("reconcile", "ledger").returncode == 3

        def shown():
            rows = project.json("sql", "select recon_key from marts.recon_open")["rows"]
            return [row["recon_key"] for row in rows]

        assert wait_until(shown) == [f"booking_uuid={books_now[0]['octo_uuid']}"]
    finally:
        finish(running, signal.SIGTERM)


@pytest.mark.deep(6)
def test_serve_compares_after_a_pull_of_bookings(project, books_now):
    ask_for(project)
    path = project.directory / "pipelines" / "shop.toml"
    path.write_text(path.read_text() + '\n[publish]\nevery = "0.2s"\n\n[schedule]\nbookings = "* * * * *"\n')
    write(project, books_now[1:])
    running = project.start("serve", "--only", "worker")
    try:
        found = wait_until(
            lambda: [r for r in project.json("reconcile", "list")["reconciliations"] if r["verdict"] != "never"],
            seconds=100,
        )
        assert (found[0]["verdict"], found[0]["open"]) == ("over", 1)
    finally:
        finish(running, signal.SIGTERM)


def test_from_python_it_gives_frames(project, books_now):
    ask_for(project)
    write(project, books_now[1:])

    result = octo_sync.reconcile("ledger", directory=project.directory)

    assert not result.differences().empty
    assert list(result.differences()["bucket"]) == ["missing_there"]
    assert result.counts == {"matched": len(books_now) - 1, "missing_there": 1}
    explained, totals = result.explained(), result.totals()
    for currency in set(totals["currency"]):
        mine = totals[totals["currency"] == currency].set_index("side")["amount"]
        parts = explained[explained["currency"] == currency]["difference"]
        assert sum(parts, Decimal(0)) == mine.get("there", Decimal(0)) - mine["here"]

    frame = pd.DataFrame(books_now)
    frame["gross"] = frame["gross"].str.replace(",", ".")
    given = octo_sync.reconcile(directory=project.directory, there=frame)
    assert given.counts == {"matched": len(books_now)}
    assert project.json("reconcile", "list")["reconciliations"][0]["verdict"] == "never"
