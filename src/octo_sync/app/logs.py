"""Log lines, for a person with a terminal and for machines: `action=… key=value`, or one JSON object a line.

Every line of ours says what was done and to what, by ids and counts: `log.info("action=land run=%s rows=%d", …)`. The fields of
the JSON object are read from that template, not from the text that it became, so a value may hold anything. Secrets are no part
of any line; that those which are known never show is a second wall.
"""

import json
import logging
import re
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Literal, TextIO

Form = Literal["text", "json"]

_FIELD = re.compile(r"([a-z_]+)=(\S+)")
_TEMPLATE = re.compile(rf"action=\S+(?: {_FIELD.pattern})*")
_PLACE = re.compile(r"%(?:\.\d+)?([a-z])")
_LONGEST = 4000
"""Characters of a value: a line must stay one that a collector takes."""
_HIDDEN = "[secret]"


def fields(record: logging.LogRecord) -> dict[str, Any]:
    """What a line says, by name: `action` first. A library's line, which has no names, is a `message`."""
    template = record.msg if isinstance(record.msg, str) else ""
    if not _TEMPLATE.fullmatch(template):
        return {"message": _cut(record.getMessage())}
    values = iter(record.args if isinstance(record.args, tuple) else ())
    found: dict[str, Any] = {}
    for name, text in _FIELD.findall(template):
        places = _PLACE.findall(text)
        if not places:
            found[name] = text
            continue
        taken = [next(values, None) for _ in places]
        value = taken[0] if _PLACE.fullmatch(text) else text % tuple(taken)
        found[name] = value if isinstance(value, bool | int | float) or value is None else _cut(str(value))
    return found


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


class Lines(logging.Formatter):
    """One line each: `ts` (UTC), `level`, `action` or `message`, and the line's own fields.

    As JSON an object; as text `2026-11-20T19:59:00.000Z info action=land run=… rows=12`, in which nothing can end the line or
    steer a terminal.

    Args:
        form: Which.
        secrets: Texts that no line may show.
    """

    def __init__(self, form: Form, secrets: Iterable[str] = ()) -> None:
        super().__init__()
        self._form = form
        self._secrets = sorted({each for each in secrets if each}, key=len, reverse=True)

    def _said(self, record: logging.LogRecord) -> dict[str, Any]:
        said = {
            "ts": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            **fields(record),
        }
        if record.name != "octo_sync":
            said["logger"] = record.name
        if record.exc_info and record.exc_info[0] is not None:
            # Its text may repeat what a service sent; where it was raised says enough to look further with --debug.
            said["exception"] = record.exc_info[0].__name__
        return {name: self._hidden(value) if isinstance(value, str) else value for name, value in said.items()}

    def hide(self, secret: str) -> None:
        """Show this text no more either."""
        self._secrets = sorted({*self._secrets, secret}, key=len, reverse=True)

    def _hidden(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, _HIDDEN)
        return text

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        said = self._said(record)
        if self._form == "json":
            return json.dumps(said, default=str)
        moment, level = said.pop("ts"), said.pop("level")
        return " ".join([moment, level, *(f"{name}={_word(value)}" for name, value in said.items())])


def _word(value: object) -> str:
    text = str(value)
    plain = bool(text) and text.isprintable() and not any(character in text for character in " \"='")
    return text if plain else json.dumps(text, ensure_ascii=not text.isprintable())


def hide(secret: str) -> None:
    """Let no line show this text from now on; for a token that was not known when `show` was called."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler.formatter, Lines):
            handler.formatter.hide(secret)


def show(form: Form, *, secrets: Iterable[str] = (), stream: TextIO | None = None, level: int = logging.INFO) -> None:
    """Write our lines from `level` on, and the warnings of libraries, to `stream`, stderr by default."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(Lines(form, secrets))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("octo_sync").setLevel(level)
