"""Log lines: every one has a name and fields, for people and for machines, and none ends early or shows a secret."""

import ast
import io
import json
import logging
import re
import sys
from pathlib import Path

import pytest

from octo_sync.app import logs
from octo_sync.cli import options
from octo_sync.pipeline import load

SOURCE = Path(__file__).resolve().parents[2] / "src/octo_sync"


def record(template, *args, level=logging.INFO, name="octo_sync", exc_info=None):
    made = logging.LogRecord(name, level, "x.py", 1, template, args, exc_info)
    made.created = 1_795_204_740.25
    return made


def as_json(*args, secrets=(), **more):
    line = logs.Lines("json", secrets).format(record(*args, **more))
    assert "\n" not in line
    return json.loads(line)


def test_a_line_is_one_json_object_with_its_fields_as_they_were():
    assert as_json("action=land run=%s subjects=%d connection=%s", "r-1", 12, "acme") == {
        "ts": "2026-11-20T19:59:00.250Z",
        "level": "info",
        "action": "land",
        "run": "r-1",
        "subjects": 12,
        "connection": "acme",
    }


def test_values_may_hold_anything():
    nasty = 'a=1 error="x"\nnext line \x1b[31m é \ud800'
    assert as_json("action=hook_failed error=%s more=%s", nasty, None)["error"] == nasty
    assert as_json("action=hook_failed error=%s more=%s", nasty, None)["more"] is None
    text = logs.Lines("text").format(record("action=hook_failed error=%s n=%d", nasty, 3))
    assert text.startswith("2026-11-20T19:59:00.250Z info action=hook_failed error=")
    assert text.endswith(" n=3")
    assert text.isprintable()


def test_part_of_a_value_may_be_filled_in():
    assert as_json("action=subscription_%s connection=%s", "made", "acme")["action"] == "subscription_made"
    assert as_json("action=look_anew reason=private_file_differs")["reason"] == "private_file_differs"


def test_a_librarys_line_is_a_message_with_its_logger():
    found = as_json("Retry %d: it=works", 3, name="stamina", level=logging.WARNING)
    assert (found["message"], found["logger"], found["level"]) == ("Retry 3: it=works", "stamina", "warning")


def test_an_exception_is_named_and_its_text_is_not_shown():
    try:
        raise ValueError("of somebody")  # noqa: TRY301 - the case
    except ValueError:
        found = as_json("action=receive_broke deliveries=%d", 1, level=logging.ERROR, exc_info=sys.exc_info())
    assert found["exception"] == "ValueError"
    assert "somebody" not in json.dumps(found)


@pytest.mark.parametrize("form", ["json", "text"])
def test_what_is_known_to_be_secret_never_shows(form):
    line = logs.Lines(form, ["t0ken", "t0ken-longer", ""]).format(
        record("action=x error=%s", "Bearer t0ken-longer and t0ken")
    )
    assert "t0ken" not in line
    assert "longer" not in line
    assert line.count("[secret]") == 2


def test_tokens_and_addresses_of_hooks_are_known_to_be_secret(tmp_path):
    path = tmp_path / "p.toml"
    path.write_text(
        '[connections.acme]\nbase_url = "https://octo.example.com"\ntoken = { env = "A" }\n[dashboard]\ntoken = { env = "D" }\n'
        '[notify]\nto = "curl -d @- \'https://x.example/in-a-command\' --retry 2"\nping = "https://x.example/ping"\n'
        '[reconcile.ledger]\nkeys = ["uuid"]\nthere = { file = "l.csv" }\nnotify = "https://x.example/ledger"\n'
    )
    loaded = load(path, directory=tmp_path, environ={"A": "of-acme", "D": "of-dashboard"}, overrides={})
    assert sorted(options._secrets(loaded)) == [
        "https://x.example/in-a-command",
        "https://x.example/ledger",
        "https://x.example/ping",
        "of-acme",
        "of-dashboard",
    ]


def test_a_very_long_value_is_cut():
    assert len(as_json("action=x error=%s", "é" * 100_000)["error"]) == 4000


def test_lines_go_to_the_stream_from_their_level_on():
    stream, root, ours = io.StringIO(), logging.getLogger(), logging.getLogger("octo_sync")
    before = root.handlers[:], root.level, ours.level
    try:
        logs.show("json", stream=stream)
        ours.info("action=a")
        ours.debug("action=b")
        logging.getLogger("other").info("c")
        logging.getLogger("other").warning("d")
    finally:
        root.handlers[:], ours.level = before[0], before[2]
        root.setLevel(before[1])
        ours.setLevel(before[2])
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line.get("action", line.get("message")) for line in lines] == ["a", "d"]


def _lines():
    """Every log call of the program: where it is, and its template."""
    for path in sorted(SOURCE.rglob("*.py")):
        if "sandbox" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(
                    func=ast.Attribute(
                        value=ast.Name(id="log"), attr="debug" | "info" | "warning" | "error" | "exception"
                    ),
                    args=[ast.Constant(value=str(template)), *rest],
                ):
                    yield f"{path.relative_to(SOURCE)}:{node.lineno}", template, len(rest)


def test_every_log_line_of_the_program_has_an_action_and_names_its_values():
    found = list(_lines())
    assert len(found) > 40
    for where, template, values in found:
        assert logs._TEMPLATE.fullmatch(template), f"{where}: expected action=… name=%s …, found {template!r}"
        assert len(re.findall(r"%[sd]", template)) == values, where
        names = re.findall(r"(\w+)=", template)
        assert len(names) == len(set(names)), where
        assert not {"ts", "level", "logger", "exception"} & set(names), where


def test_a_token_that_comes_later_is_hidden_too():
    stream = io.StringIO()
    before = logging.getLogger().handlers[:]
    try:
        logs.show("text", secrets=["first-token"], stream=stream)
        logs.hide("later-token")
        logging.getLogger("octo_sync").warning("action=x a=%s b=%s", "first-token", "later-token")
    finally:
        logging.getLogger().handlers[:] = before
    assert "a=" in stream.getvalue()
    assert "token" not in stream.getvalue().replace("[hidden]", "")
