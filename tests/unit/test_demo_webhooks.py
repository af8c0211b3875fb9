"""The demo's sentence about its webhooks is true, or the demo fails."""

import contextlib
import json
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from octo_sync.cli import acts, demo
from octo_sync.cli.acts import Told


def body(uuid, **more):
    return json.dumps({"notificationType": "BOOKING_UPDATE", "data": {"uuid": uuid, **more}}).encode()


def sent(*moments):
    return [{"attempts": [] if at is None else [{"at": at}, {"at": 99.0}]} for at in moments]


def test_it_is_counted_what_was_doubled_overtaken_and_bare():
    told = Told()
    acts._count(told, [body("a"), body("b", id="x"), body("b", id="x")], sent(1.0, 1.2, 1.1, None, 1.3))
    assert (told.received, told.repeats, told.only_uuid, told.out_of_order) == (3, 1, 1, 1)
    assert told.mixed
    acts._count(told, [body("b", id="x")], sent(1.0, 1.0, 1.2))
    assert (told.received, told.repeats, told.only_uuid, told.out_of_order) == (1, 0, 0, 0)
    assert not told.mixed


@pytest.mark.parametrize("missing", ["none", "repeats", "out_of_order", "only_uuid", "complete"])
def test_a_demo_whose_deliveries_were_not_mixed_has_failed(monkeypatch, tmp_path, missing):
    told = Told(repeats=1, out_of_order=1, only_uuid=1, complete=True)
    if missing != "none":
        setattr(told, missing, 0)
    result = SimpleNamespace(status="ok", published=SimpleNamespace(failed=[]), seconds=1.0)
    copy = SimpleNamespace(rows={}, money={}, statuses={})
    monkeypatch.setattr(demo, "_service", lambda *_: contextlib.nullcontext("http://127.0.0.1:1/octo/v1"))
    monkeypatch.setattr(acts, "ask", lambda *_: {})
    for name, given in {
        "load": None,
        "pull": (result, told, {}),
        "prove": SimpleNamespace(differences=[], copy=copy),
        "reconcile": acts.Compared(0, {}, [], 0),
        "show": tmp_path / "report.html",
    }.items():
        monkeypatch.setattr(acts, name, lambda *_, given=given: given)
    done = CliRunner().invoke(demo.command, ["-C", str(tmp_path / "demo"), "--json"], standalone_mode=False)
    assert done.exception is None
    assert done.return_value == (0 if missing == "none" else 1)
