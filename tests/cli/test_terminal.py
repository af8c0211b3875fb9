"""What a person sees on a terminal: colours, bars, cut and turned tables, questions; and none of it where it is not wanted."""

import fcntl
import os
import pty
import re
import select
import shlex
import signal
import struct
import subprocess
import sys
import termios
import time
import tomllib
from itertools import takewhile

import pytest
from tests.cli.conftest import CLEAN

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def _as_of_a_shell():
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    # Whoever runs the tests in the background may have it ignored.
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def on_a_terminal(program, *words, environment=None, width=100, typed=()):
    """Run on a pseudo terminal: (exit code, everything that appeared). `typed` answers the questions in turn."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    env = {k: v for k, v in CLEAN.items() if k != "COLUMNS"} | {"TERM": "xterm-256color"} | (environment or {})
    process = subprocess.Popen(
        [sys.executable, "-m", "octo_sync", *map(str, words)],
        cwd=program.directory,
        env=env,
        stdin=follower,
        stdout=follower,
        stderr=follower,
        close_fds=True,
        start_new_session=True,
        preexec_fn=_as_of_a_shell,  # noqa: PLW1509 - so that Ctrl-C is a signal
    )
    os.close(follower)
    seen, answers, end = b"", list(typed), time.monotonic() + 60
    try:
        while time.monotonic() < end:
            ready, _, _ = select.select([leader], [], [], 0.2)
            if not ready:
                if answers and seen.rstrip().endswith((b":", b"]")):
                    os.write(leader, (answers.pop(0) + "\n").encode())
                continue
            try:
                chunk = os.read(leader, 65_536)
            except OSError:
                break
            if not chunk:
                break
            seen += chunk
        code = process.wait(timeout=10)
    finally:
        os.close(leader)
        if process.poll() is None:
            process.kill()
            process.wait()
    return code, seen.decode(errors="replace").replace("\r\n", "\n")


@pytest.mark.deep(2)
def test_a_sync_shows_bars_and_colours(project, service):
    service.faults({"fault": "latency", "seconds": 0.4})

    one = {"OCTO_SYNC_CONNECTIONS__SHOP__LIMITS__CONCURRENCY": "1"}
    code, seen = on_a_terminal(project, "sync", "--full", environment=one)

    assert code == 0
    assert "\x1b[32m" in seen, "the green ok"
    assert "━" in seen
    for kind in ("products", "availability", "bookings"):
        assert kind in seen
    assert re.search(r"\d\.\d/s  0:00:\d\d left", ESCAPES.sub("", seen)), "how fast, and how long still"


@pytest.mark.deep(2, everyday=["words0-environment0"])
@pytest.mark.parametrize(
    ("words", "environment"),
    [([], {"NO_COLOR": "1"}), (["--color", "never"], {}), (["--color", "never"], {"FORCE_COLOR": "1"})],
)
def test_colours_can_be_refused(looked, words, environment):
    _, seen = on_a_terminal(looked, *words, "status", environment=environment)

    assert not re.search(r"\x1b\[[0-9;]*m", seen)
    assert "everything verified" in seen


@pytest.mark.deep(0.6)
def test_colours_can_be_wished_for_in_a_pipe(looked):
    assert "\x1b[" in looked("--color", "always", "status").stdout
    assert "\x1b[" in looked("status", "--color", "always").stdout
    assert "\x1b[" in looked("status", environment={"FORCE_COLOR": "1"}).stdout
    assert "\x1b[" not in looked("status", environment={"FORCE_COLOR": "1", "NO_COLOR": "1"}).stdout


@pytest.mark.deep(4)
def test_quiet_leaves_errors_and_data(project):
    done = project("-q", "sync")

    assert done.stderr == ""
    assert project("-q", "sql", "from range(9)", "--limit", "1").stderr == ""


@pytest.mark.deep(3)
def test_ci_gets_lines_instead_of_bars(project):
    _, seen = on_a_terminal(project, "sync", environment={"CI": "true"})

    assert "━" not in seen
    assert re.search(r"bookings +\d+/\d+", seen)


@pytest.mark.deep(4)
def test_no_line_of_a_list_is_wider_than_the_terminal(looked):
    for words in (["tables"], ["tables", "bookings"], ["runs"], ["status"]):
        _, seen = on_a_terminal(looked, *words, width=90)

        assert max(map(len, ESCAPES.sub("", seen).splitlines())) <= 90, words


@pytest.mark.deep(2)
def test_status_fits_into_80_columns_with_several_connections(project):
    path = project.directory / "pipelines/shop.toml"
    (shop,) = re.findall(r"\[connections\.shop\]\n.*\n.*\n", path.read_text())
    path.write_text(path.read_text() + shop.replace(".shop]", ".second-shop]"))

    _, seen = on_a_terminal(project, "status", width=80)

    table = ESCAPES.sub("", seen).partition("\n\n")[2].splitlines()
    assert max(map(len, table)) <= 80
    assert re.search(
        r"^shop +bookings +(\d+)/\1 +0 .*\d{4}-\d\d-\d\d\.\.\d{4}-\d\d-\d\d$", "\n".join(table), re.MULTILINE
    )


def test_rows_wider_than_the_terminal_are_turned_and_none_is_cut(looked):
    _, seen = on_a_terminal(looked, "sql", "from bookings limit 2", width=90)

    assert "-- row 2" in seen
    assert re.search(r"booking_uuid +[0-9a-f-]{36}", ESCAPES.sub("", seen))


def test_an_answer_wider_than_the_terminal_shows_its_first_columns_and_names_the_others(looked):
    columns = looked.json("ask", "14")["columns"]
    _, seen = on_a_terminal(looked, "ask", "14", width=80)
    lines = ESCAPES.sub("", seen).splitlines()
    (heads,) = [line.split() for line in lines if line.startswith("connection_id")]
    named = re.search(r"Columns that do not fit: (.*?)\. --format csv", " ".join(line.strip() for line in lines))[1]
    assert heads == columns[: len(heads)]
    assert [*heads, *named.split(", ")] == columns
    assert "is_complete" in heads
    assert max(map(len, lines)) <= 80


def test_data_cannot_give_orders_to_a_terminal(looked):
    _, seen = on_a_terminal(
        looked, "--color", "never", "sql", "--format", "csv", "select chr(27) || ']0;title' || chr(7) as x"
    )

    assert "\x1b]0;" not in seen
    assert "\x07" not in seen


@pytest.mark.deep(2)
def test_init_asks_four_things(empty, service):
    code, seen = on_a_terminal(
        empty, "init", "--no-test", "--name", "acme", typed=[service.base_url, "ACME_TOKEN", "", "03:30 Europe/Lisbon"]
    )

    assert code == 0, seen
    questions = re.findall(r"^.*: (?=http|ACME|03|\r?$)", ESCAPES.sub("", seen), re.MULTILINE)
    assert len(questions) == 4, seen
    document = tomllib.loads((empty.directory / "pipelines/acme.toml").read_text())
    assert document["connections"]["acme"]["token"] == {"env": "ACME_TOKEN"}
    assert document["destination"] == "octo.duckdb"
    assert document["schedule"] == {"time_zone": "Europe/Lisbon", "full": "30 3 * * *"}


@pytest.mark.deep(1)
def test_init_asks_nothing_of_who_says_where_the_service_and_its_token_are(empty, service):
    words = ("init", "--no-test", "--name", "acme", "--url", service.base_url, "--token-env", "ACME_TOKEN")

    code, seen = on_a_terminal(empty, *words, typed=["this is the next command"] * 4)
    again, refused = on_a_terminal(empty, *words)

    assert (code, again) == (0, 2), refused
    assert 'destination = "octo.duckdb"' in (empty.directory / "pipelines/acme.toml").read_text()
    assert "next command" not in seen
    assert "--yes overwrites it" in refused


@pytest.mark.parametrize(
    ("address", "is_told"),
    [
        ("http://example.com/octo/v1", True),
        ("https://example.com/octo/v1", False),
        ("http://127.0.0.1:9/octo/v1", False),
    ],
)
def test_init_says_when_the_token_would_travel_in_the_open(empty, address, is_told):
    done = empty("init", "--no-test", "--name", "acme", "--url", address, "--token-env", "ACME_TOKEN")

    assert done.returncode in (0, 2), done.stderr
    assert ("travels to this address unencrypted" in done.stderr) is is_told


def test_what_to_do_next_is_folded_as_a_shell_reads_it(empty):
    place = "a-directory-of-a-rather-long-name/below-another-one"
    words = ("--name", "acme", "--url", "https://api.example.com", "--token-env", "ACME_TOKEN")

    _, seen = on_a_terminal(empty, "init", "--no-test", *words, "-C", place, width=70)

    said = ESCAPES.sub("", seen).partition("\nNext\n")[2]
    assert max(map(len, said.splitlines())) <= 70
    commands = [shlex.split(line) for line in said.replace("\\\n", "").splitlines() if not line.startswith("  #")]
    assert ["octo-sync", "sync", "-C", place, "--dry-run"] in commands
    assert {each[0] for each in commands} == {"export", "octo-sync"}


def test_advice_is_folded_and_says_how_to_start_a_service_of_this_machine(fresh):
    address = {"OCTO_SYNC_CONNECTIONS__SHOP__BASE_URL": "http://127.0.0.1:9/octo/v1"}

    code, seen = on_a_terminal(fresh, "doctor", "--quick", environment=address, width=60)

    lines = tables_of(seen)
    assert code == 1
    assert max(map(len, lines)) <= 60
    advice = "→ start it: octo-sync sandbox serve, for the demo with --demo; or check connections.shop.base_url"
    assert advice in " ".join(" ".join(lines).split())


def test_an_error_is_folded_at_words(looked):
    _, seen = on_a_terminal(looked, "sync", "-p", "nobody", width=60)

    lines = ESCAPES.sub("", seen).splitlines()
    assert max(map(len, lines)) <= 60
    assert " ".join(lines).startswith('octo-sync: error: There is no pipeline "nobody"')


@pytest.mark.deep(3)
def test_init_asks_again_when_an_answer_is_wrong_and_repeats_no_token(empty, service):
    typed = ["htp:/x", service.base_url, "sk-live/12345", "A_TOKEN", "postgresql", "duckdb", "25:00", "none"]

    code, seen = on_a_terminal(empty, "init", "--no-test", "--name", "acme", typed=typed)

    assert code == 0, seen
    for wrong in (
        "expected an address such as",
        "expected the NAME of an environment variable",
        "expected its address, such as postgresql://",
        "expected a time of the day",
    ):
        assert wrong in seen
    assert "sk-live" not in seen.replace("sk-live/12345\n", "", 1), "the terminal shows it once, while it is typed"
    text = (empty.directory / "pipelines/acme.toml").read_text()
    assert 'token = { env = "A_TOKEN" }' in text
    assert "# [schedule]" in text
    assert 'destination = "octo.duckdb"' in text


@pytest.mark.deep(2, everyday=["0"])
@pytest.mark.parametrize("answered", range(4))
def test_ctrl_c_at_a_question_of_init_leaves_nothing(empty, service, answered):
    typed = [service.base_url, "ACME_TOKEN", "", ""][:answered]

    code, seen = on_a_terminal(empty, "init", "--name", "acme", "-C", "deep/er", typed=[*typed, "\x03"])

    assert code == 130, seen
    assert list(empty.directory.iterdir()) == []


@pytest.mark.deep(5)
def test_dropping_asks_first(fresh, service):
    service.refuse_a_product()
    fresh("sync")

    code, seen = on_a_terminal(fresh, "quarantine", "--drop", "--all", typed=["n"])

    assert code == 130
    assert "aborted" in seen
    assert fresh.json("quarantine")["entries"]
    assert on_a_terminal(fresh, "quarantine", "--drop", "--all", typed=["y"])[0] == 0
    assert fresh.json("quarantine")["entries"] == []


def tables_of(seen):
    """Lines as a person sees them, without colours and hints."""
    return ESCAPES.sub("", seen).splitlines()


@pytest.mark.parametrize("width", [60, 80])
def test_the_configuration_is_folded_at_words(empty, width):
    words = ("config", "--origin", "-p", "example")

    _, seen = on_a_terminal(empty, "-q", *words, width=width)

    assert max(map(len, tables_of(seen))) <= width
    assert seen.split() == empty.ok(*words).split()
    assert not re.search("# pipeline$", seen, re.MULTILINE), "where a value comes from is not torn apart"


@pytest.mark.deep(6)
@pytest.mark.parametrize("width", [60, 80, 120])
def test_what_lists_say_is_folded_at_words_and_fits(looked, width):
    for words in (
        ["tables"],
        ["tables", "fct_bookings"],
        ["runs"],
        ["ask"],
        ["check"],
        ["verify"],
        ["doctor", "--offline"],
    ):
        code, seen = on_a_terminal(looked, *words, width=width)

        assert code == 0, words
        assert max(map(len, tables_of(seen))) <= width, words
        assert "…" not in seen.replace("export SHOP_TOKEN=…", ""), (words, "nothing is cut")


@pytest.mark.deep(3)
def test_a_narrow_list_leaves_out_the_least_important_and_keeps_the_rest_whole(looked):
    narrow, wide = (tables_of(on_a_terminal(looked, "ask", width=width)[1]) for width in (80, 120))

    assert narrow[0].split() == ["no", "name", "question"]
    assert wide[0].split() == ["no", "name", "question", "parameters"]
    assert "--show prints its parameters" in " ".join(narrow[-2:])
    words = " ".join(line[31:] for line in narrow[2:] if line[:2].strip() in ("", "7")).split()
    assert "books" in words
    assert tables_of(on_a_terminal(looked, "tables", width=80)[1])[0].split() == ["table", "rows", "meaning"]
    assert "verified" in tables_of(on_a_terminal(looked, "tables", width=120)[1])[0]
    runs = tables_of(on_a_terminal(looked, "runs", width=80)[1])
    assert "Columns that do not fit: " in " ".join(runs)
    assert "Columns that do not fit: parameters. --format csv has all." in " ".join(narrow)
    assert not any("do not fit" in line for line in wide)
    assert runs[0].split()[:4] == ["run", "command", "status", "started"]
    assert re.match(r"\d{8}T\d{6}-\w{4}  sync +ok", runs[2]), "the id is whole"


@pytest.mark.deep(0.6)
def test_an_error_in_the_list_of_runs_is_folded_and_a_pipe_gets_every_column(project):
    import sqlite3
    from contextlib import closing

    why = "The service at shop could not be reached because its name is not known here; " * 3
    with closing(sqlite3.connect(project.directory / "octo.journal.sqlite")) as journal, journal:
        journal.execute("update runs set status = 'failed', error = ?", [why.strip()])

    seen = tables_of(on_a_terminal(project, "runs", width=80)[1])

    assert max(map(len, seen)) <= 80
    column = seen[0].index("error")
    rows = takewhile(lambda line: not line.startswith("Columns that do not fit"), seen[2:])
    assert " ".join(line[column:].strip() for line in rows) == why.strip()
    piped = project.ok("runs").splitlines()
    assert piped[0].split()[-3:] == ["rows", "requests", "error"]
    assert piped[2].endswith(why.strip())


def test_an_empty_answer_that_is_too_wide_names_its_columns(looked):
    _, seen = on_a_terminal(looked, "sql", "from bookings where false", width=60)

    *heads, none = tables_of(seen)
    assert max(map(len, heads)) <= 60
    assert " ".join(heads).startswith("connection_id, booking_uuid, booking_id, ")
    assert none == "No rows."
