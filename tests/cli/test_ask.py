"""The ready-made questions on the command line: listed, asked, refused with a sentence."""

import csv
import datetime as dt
import io
import re
from pathlib import Path

import pytest
from tests.cli.test_terminal import ESCAPES, on_a_terminal

from octo_sync.flows import ask

QUESTIONS = ask.questions(Path("nowhere"))


def test_ask_alone_lists_the_questions(looked):
    listed = looked.json("ask")["questions"]

    assert [q["number"] for q in listed] == list(range(1, 34))
    assert all(q["question"].endswith("?") for q in listed)
    text = looked.ok("ask")
    assert len(re.findall(r"^ ?\d+  ", text, re.MULTILINE)) == 33


@pytest.mark.deep(0.3, everyday=["weak_departures", "net_owed"])
@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: q.name)
def test_every_question_runs_by_its_number_and_by_its_name(looked, question):
    given = [f"--param={name}=RS-000001" for name in question.required]
    document = looked.json("ask", question.number, *given)

    assert document["kind"] == "rows"
    assert document["name"] == question.name
    assert set(document["parameters"]) == {p.name for p in question.parameters}
    if question.number in (2, 14):
        assert document["rows"]
    shown = looked.ok("ask", question.name, *given, "--format", "csv")
    assert next(csv.reader(io.StringIO(shown))) == document["columns"]


def test_a_parameter_changes_the_answer_and_the_limit_cuts_it(looked):
    first, last = dt.date(2020, 1, 1), dt.date(2020, 1, 31)
    assert looked.json("ask", "1", "--param", f"first={first}", "--param", f"last={last}")["rows"] == []

    cut = looked.json("ask", "1", "--limit", "3", "--param", "first=today-9d")
    assert (len(cut["rows"]), cut["truncated"]) == (3, True)
    assert cut["parameters"]["last"] == str(dt.date.fromisoformat(cut["parameters"]["first"]) + dt.timedelta(days=9))


def test_a_month_is_short_for_a_person_and_its_first_day_for_a_machine(looked):
    months = [row["travel_month"] for row in looked.json("ask", "revenue_per_guest_and_seat")["rows"]]
    assert {month[7:] for month in months} == {"-01"}
    for form, split in (("table", str.split), ("md", lambda line: line.replace("|", " ").split())):
        lines = looked.ok("ask", "revenue_per_guest_and_seat", "--format", form).splitlines()[2:]
        assert [split(line)[0] for line in lines] == [month[:7] for month in months]


def test_a_whole_day_has_no_time_for_a_person(looked):
    given = ["4", "--param", "below=2", "--param", "last=today+30d"]
    rows = looked.json("ask", *given)["rows"]
    lines = looked.ok("ask", *given, "--format", "md").splitlines()

    place = [cell.strip() for cell in lines[0].split("|")].index("local_start_at")
    shown = [line.split("|")[place].strip() for line in lines[2:]]
    assert shown == [row["local_start_at"][:10] if row["is_all_day"] else row["local_start_at"] for row in rows]
    assert {row["is_all_day"] for row in rows} == {True, False}


@pytest.mark.parametrize(
    ("number", "wanted"), [("3", "fill_rate"), ("26", "is_over currency retail_amount net_amount"), ("29", "fill_rate")]
)
def test_on_80_columns_stands_what_was_asked_for(looked, number, wanted):
    _, seen = on_a_terminal(looked, "ask", number, width=80)
    head = next(line for line in ESCAPES.sub("", seen).splitlines() if set(wanted.split()) <= set(line.split()))
    assert len(head) <= 80


def test_money_per_guest_has_the_decimals_of_its_currency(looked):
    rows = looked.json("ask", "28")["rows"]
    header, _, *lines = looked.ok("ask", "28", "--format", "md").splitlines()
    place = header.split("|").index(" amount_per_guest ")
    exact = [row["amount_per_guest"] for row in rows]
    assert [line.split("|")[place].strip() for line in lines] == [
        "" if value is None else f"{value:,.{0 if row['currency'] == 'JPY' else 2}f}"
        for value, row in zip(exact, rows, strict=True)
    ]
    assert any(value and round(value, 2) != value for value in exact)


@pytest.mark.parametrize("number", ["23", "26", "30"])
def test_a_day_that_stands_for_its_month_is_said_as_the_month(looked, number):
    done = looked("ask", number, "--param", "first=2026-09-12", "--param", "last=2026-11-01")
    assert "(first 2026-09, last 2026-11)" in done.stderr
    assert "(first 2026-09-12, last 2026-11-01)" in looked("ask", "6", *done.args[-4:]).stderr


def test_what_a_question_leaves_out_is_counted(project):
    folder = project.directory / "warehouse/questions"
    folder.mkdir(parents=True)
    sold = project.json("sql", "select count(*) as n from fct_bookings where is_sold")["rows"][0]["n"]
    for which, said in (("is_sold", f"Not shown: {sold} sold bookings.\n"), ("false", "")):
        (folder / "ours.sql").write_text(f"-- not shown: sold booking: {which}\nselect 1 as x")
        done = project("ask", "ours")
        assert done.stderr.partition("ours\n")[2] == said
        assert project("export", "ours", "--to", "ours.csv", "--force").stderr == said


def test_the_sql_is_shown_to_be_changed_and_a_file_of_the_project_takes_its_place(project):
    text = project.ok("ask", "18", "--show")
    assert "marts.fct_bookings" in text
    folder = project.directory / "warehouse/questions"
    folder.mkdir(parents=True)
    (folder / "18_party_size.sql").write_text("-- question: Mine?\nselect 42 as answer")
    (folder / "ours.sql").write_text(
        "-- question: Ours?\n-- parameter: n: integer: 7: A number.\nselect $n + 1 as next"
    )

    assert project.json("ask", "18")["rows"] == [{"answer": 42}]
    assert project.json("ask", "ours")["rows"] == [{"next": 8}]
    assert [q["name"] for q in project.json("ask")["questions"]][-1] == "ours"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nothing_of_the_kind"], "There is no question"),
        (["pickup"], 'did you mean "pick_up"?'),
        (["13"], "needs booking (--param booking=…): OCTO booking uuid"),
        (["1", "--param", "first"], "expected NAME=VALUE"),
        (["1", "--param", "frist=today"], "has no parameter 'frist'; it has first, last"),
        (["1", "--param", "first=someday"], "first='someday' is no date; e.g. 2026-11-20, tomorrow, today+1d,"),
        (["4", "--param", "below=nan"], "below='nan' is no number"),
        (["21", "--param", "after=soon"], "after='soon' is no instant; e.g. 2026-11-20, 2026-11-20T12:00:00Z,"),
    ],
)
def test_a_question_that_cannot_be_asked_is_refused_in_a_sentence(looked, words, said):
    done = looked("ask", *words)

    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_without_a_copy_it_says_how_to_make_one(fresh):
    done = fresh("ask", "1")

    assert done.returncode == 1
    assert "octo-sync sync" in done.stderr
    assert fresh("ask").returncode == 0, "the list needs none"


def test_a_value_is_a_parameter_and_never_sql(looked):
    attack = "x' or 1 = 1 --"

    assert looked.json("ask", "13", "--param", f"booking={attack}")["rows"] == []


NOW = dt.datetime(2026, 3, 31, 23, 30, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("today", "2026-04-01"),
        ("today-1d", "2026-03-31"),
        ("yesterday", "2026-03-31"),
        ("tomorrow", "2026-04-02"),
        ("tomorrow+6d", "2026-04-08"),
        ("today+366d", "2027-04-02"),
        ("month", "2026-04-01"),
        ("month-1", "2026-03-01"),
        ("month-4", "2025-12-01"),
        ("month+9m", "2027-01-01"),
        ("year", "2026-01-01"),
        ("year+1", "2027-01-01"),
        ("month-1d", "2026-03-31"),
        ("year+1-1d", "2026-12-31"),
        ("2024-02-29", "2024-02-29"),
    ],
)
def test_dates_are_relative_to_the_business_day(text, day):
    (first, *_) = ask.values(
        QUESTIONS[0], {"first": text, "last": "2030-01-01"}, now=NOW, time_zone="Europe/Lisbon"
    ).values()

    assert first == dt.date.fromisoformat(day)


def test_days_are_given_in_their_order():
    with pytest.raises(ask.QueryError, match=r"first=2026-04-02 is after last=2026-04-01; expected the first day"):
        ask.values(QUESTIONS[0], {"first": "today+1d", "last": "today"}, now=NOW, time_zone="Europe/Lisbon")


@pytest.mark.parametrize(("number", "last"), [(2, "2026-12-31"), (11, "2026-03-31")])
def test_the_last_day_asked_for_is_in_the_answer(number, last):
    (question,) = [q for q in QUESTIONS if q.number == number]

    assert ask.values(question, {}, now=NOW, time_zone="Europe/Lisbon")["last"] == dt.date.fromisoformat(last)
    assert [q.name for q in QUESTIONS for p in q.parameters if p.name == "last" and "after" in p.meaning] == []


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("now", NOW),
        ("2026-03-01", dt.datetime(2026, 3, 1, tzinfo=dt.UTC)),
        ("now-24h", NOW - dt.timedelta(days=1)),
        ("now+90m", NOW + dt.timedelta(minutes=90)),
        ("2026-03-01T10:00:00+02:00", dt.datetime(2026, 3, 1, 8, tzinfo=dt.UTC)),
        ("2026-03-01 10:00", dt.datetime(2026, 3, 1, 10, tzinfo=dt.UTC)),
    ],
)
def test_instants_are_relative_to_the_moment(text, instant):
    question = ask.find(QUESTIONS, "12")

    assert ask.values(question, {"since": text}, now=NOW, time_zone="UTC") == {"since": instant}


def test_a_first_instant_and_a_last_day_are_not_compared(tmp_path):
    folder = tmp_path / "warehouse/questions"
    folder.mkdir(parents=True)
    asks = "-- parameter: first: instant: now: Since.\n-- parameter: last: date: today: Until.\nselect $first, $last"
    (folder / "own.sql").write_text(asks)
    (own,) = [q for q in ask.questions(tmp_path) if q.name == "own"]

    assert ask.values(own, {}, now=NOW, time_zone="UTC") == {"first": NOW, "last": NOW.date()}


def test_a_wrong_header_is_named_with_its_file(tmp_path):
    folder = tmp_path / "warehouse/questions"
    folder.mkdir(parents=True)
    (folder / "bad.sql").write_text("-- parameter: first: day: today: First day.\nselect $first")

    with pytest.raises(ask.QueryError, match=r"warehouse/questions/bad\.sql: .*is not `-- parameter: name"):
        ask.questions(tmp_path)


def test_a_question_of_yes_or_no_says_which_and_why(looked):
    asks = re.compile(r"(Is|Are|Was|Were|Do|Does|Did|Has|Have|Can|May)\b")
    assert {q.number for q in QUESTIONS if q.yes} == {q.number for q in QUESTIONS if asks.match(q.question)} == {14}
    rows = looked.json("ask", "14")["rows"]
    first = f"{rows[0]['connection_id']} {rows[0]['resource']}"
    assert looked.ok("ask", "14").splitlines()[0] == f"Yes: all {len(rows)} rows are fresh and complete."
    late = looked.ok("ask", "14", "--param", "at=2030-01-01").splitlines()[0]
    assert late.startswith(f"No: not fresh: {first}, ")
    assert late.endswith(f" and {len(rows) - 3} more.")
    assert looked.ok("ask", "14", "--limit", "1").startswith("connection_id"), "of one row nobody knows all"


def test_what_speaks_against_a_yes_is_named(project):
    folder = project.directory / "warehouse/questions"
    folder.mkdir(parents=True)
    ours = (
        "-- question: Is it?\n-- yes: is_so, is_known\nselect 'a' as x, 'b' as y, {} as is_so, {} as is_known where {}"
    )
    for said, *values in (
        ("Yes: all 1 rows are so and known.", "true", "true", "true"),
        ("No: not so: a b; not known: a b.", "false", "cast(null as boolean)", "true"),
        ("No: there is no row to tell it from.", "true", "true", "false"),
    ):
        (folder / "ours.sql").write_text(ours.format(*values))
        assert project.ok("ask", "ours").splitlines()[0] == said
    (folder / "ours.sql").write_text("-- yes: ok\nselect false as ok")
    assert project.ok("ask", "ours").startswith("No: not ok: False.")
    (folder / "ours.sql").write_text("-- yes: ok\nselect chr(27) || '[2J' as x, 1 as y, false as ok")
    assert "\x1b" not in project.ok("ask", "ours"), "data gives a terminal no orders"
    (folder / "ours.sql").write_text("-- yes: gone\nselect 1 as x")
    assert "names gone, which is no column of it" in project("ask", "ours").stderr
