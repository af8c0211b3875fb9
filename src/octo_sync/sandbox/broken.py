"""Faults of a body: what a sick service sends instead."""

import gzip
import re
from collections.abc import Callable
from typing import Any

import msgspec

from octo_sync.sandbox.faults import Fault, Faults
from octo_sync.sandbox.messages import JSON, Answer, Call

HTML = b"<!doctype html><html><head><title>502 Bad Gateway</title></head><body><h1>Bad Gateway</h1></body></html>"
_NUMBER = re.compile(rb'":(-?\d+)')
_FIRST_KEY = re.compile(rb'\{("[^"\\]*"):')
_TEXT = re.compile(rb'":"')
_CHUNK = 1 << 20
Params = dict[str, Any]


def _empty(answer: Answer, _fault: Fault) -> None:
    answer.body, answer.status = b"", 200


def _html(answer: Answer, _fault: Fault) -> None:
    answer.body, answer.kind, answer.status = HTML, "text/html", 200


def _nan(answer: Answer, _fault: Fault) -> None:
    answer.body, found = _NUMBER.subn(b'":NaN', answer.body, count=1)
    if not found:
        answer.body = b"NaN"


def _nul(answer: Answer, fault: Fault) -> None:
    character = b'":"\x00' if fault.params["raw"] else b'":"\\\\u0000'
    answer.body = _TEXT.sub(character, answer.body, count=1)


def _bomb(answer: Answer, fault: Fault) -> None:
    # Members of a gzip stream may follow each other, so one compressed megabyte is repeated.
    blanks = gzip.compress(b" " * _CHUNK)
    answer.body = gzip.compress(answer.body) + blanks * max(1, int(fault.params["bytes"]) // _CHUNK)
    answer.headers.append(("Content-Encoding", "gzip"))


def _body(change: Callable[[bytes, Params], bytes]) -> Callable[[Answer, Fault], None]:
    def changed(answer: Answer, fault: Fault) -> None:
        answer.body = change(answer.body, fault.params)

    return changed


_CHANGES: dict[str, Callable[[Answer, Fault], None]] = {
    "empty_200": _empty,
    "html_200": _html,
    "malformed": _body(lambda body, _: body[:-1] + b","),
    "chopped": _body(lambda body, _: body[: max(1, len(body) // 2)]),
    "bom": _body(lambda body, _: b"\xef\xbb\xbf" + body),
    "utf16": _body(lambda body, _: body.decode().encode("utf-16")),
    "nan": _nan,
    "duplicate_keys": _body(lambda body, _: _FIRST_KEY.sub(rb"{\1:null,\1:", body, count=1)),
    "deep": _body(lambda _, params: b"[" * int(params["levels"]) + b"]" * int(params["levels"])),
    "nul": _nul,
    "gzip_bomb": _bomb,
    "big_body": _body(lambda body, params: body.ljust(int(params["bytes"]))),
}


def break_body(answer: Answer, faults: Faults, call: Call) -> Answer:
    """The answer after the body faults that fire; only successful JSON is touched."""
    if answer.status >= 300 or answer.kind != JSON:  # noqa: PLR2004 - only successes
        return answer
    if answer.body.startswith(b"["):
        if faults.pick("empty_list", call.method, call.path):
            answer.body = b"[]"
        if cut := faults.pick("cut_list", call.method, call.path):
            rows = msgspec.json.decode(answer.body, type=list[msgspec.Raw])
            drop = float(cut.params["drop"])
            answer.body = msgspec.json.encode([row for row in rows if faults.rng.random() >= drop])
    for name, change in _CHANGES.items():
        if fault := faults.pick(name, call.method, call.path):
            change(answer, fault)
    return answer
