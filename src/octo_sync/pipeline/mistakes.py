"""What is wrong with a pipeline file, as sentences: the key, what was found, what was expected."""

import re
from collections.abc import Mapping, Sequence

from pydantic import ValidationError

from octo_sync.pipeline.keys import KEYS, known_below, pattern, removed
from octo_sync.pipeline.values import suggest

_NOUNS = {
    "string_type": "a text",
    "bool_type": "true or false",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "tuple_type": 'a list in [ ], such as ["one", "two"]',
    "dict_type": "a table",
    "dataclass_type": "a table of keys",
    "too_short": "at least one",
}
_BOUNDS = {
    "greater_than_equal": ("ge", "at least"),
    "greater_than": ("gt", "more than"),
    "less_than_equal": ("le", "at most"),
    "less_than": ("lt", "less than"),
}
_BARE = re.compile(r"[A-Za-z0-9_-]{1,80}", re.ASCII)
# Below these keys nothing a user wrote is repeated: it may be a secret in the wrong place.
_SILENT = frozenset({"token", "headers", "notify"})


def dotted(path: Sequence[object]) -> str:
    """The key as TOML writes it, on one printable line; `[0]` for the place in a list."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f"{'.' if text else ''}{part if _BARE.fullmatch(str(part)) else found(str(part))}"
    return text


def found(value: object) -> str:
    """A value for a message: short, on one line, harmless to a terminal. Not for anything that may be secret."""
    if isinstance(value, str):
        shown = value if len(value) <= 60 else f"{value[:57]}..."  # noqa: PLR2004 - fits on a line
        return '"' + "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in shown).replace('"', '\\"') + '"'
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return f"{value}" if abs(value) < 1e15 else "no usable number"  # noqa: PLR2004 - fits on a line
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, list | tuple):
        return "a list"
    return "a date or a time"


def unknown_key(path: tuple[str, ...]) -> str:
    """The sentence for a key that is none."""
    if replaced := removed(path):
        return f"{dotted(path)} {replaced}"
    known = known_below(path[:-1])
    silent = "token" in path[:-1]
    hint = suggest(path[-1], known)
    name = f"{dotted(path[:-1])}.…" if silent and not hint else dotted(path)
    return f"{name}: no such key{hint}{'' if hint else '; expected one of ' + ', '.join(known)}"


def mistakes(error: ValidationError, origins: Mapping[tuple[str, ...], str]) -> list[str]:
    """A sentence for everything pydantic found."""
    errors = error.errors(include_url=False)
    lists = {each["loc"][:-1] for each in errors if each["loc"] and isinstance(each["loc"][-1], int)}
    # A list whose items are all wrong is not too short as well.
    return [_sentence(each, origins) for each in errors if each["type"] != "too_short" or each["loc"] not in lists]


def _sentence(each: Mapping[str, object], origins: Mapping[tuple[str, ...], str]) -> str:
    location: tuple[str | int, ...] = each["loc"]  # type: ignore[assignment]
    context: Mapping[str, object] = each.get("ctx") or {}  # type: ignore[assignment]
    kind = str(each["type"])
    path = tuple(str(part) for part in location if part != "[key]")
    if kind == "unexpected_keyword_argument":
        return unknown_key(path)
    key = dotted([part for part in location if part != "[key]"])
    if kind == "missing":
        known = pattern(path)
        wanted = KEYS[known].meaning if known else "it"
        return f"{key}: missing; expected {wanted[:1].lower()}{wanted[1:].rstrip('.')}"
    source = next((origins[path[:end]] for end in range(len(path), 0, -1) if path[:end] in origins), "pipeline file")
    of = "" if source == "pipeline file" else f" in {source}"
    value = each.get("input")
    problem = "" if _SILENT & set(path) or (isinstance(value, str) and "@" in value) else f"found {found(value)}{of}; "
    return f"{key}: {problem or (f'wrong{of}; ' if of else '')}{_expected(kind, context, value, each)}"


def _expected(kind: str, context: Mapping[str, object], value: object, each: Mapping[str, object]) -> str:
    if kind == "value_error":
        return str(context["error"])
    if kind in _BOUNDS:
        bound, words = _BOUNDS[kind]
        return f"expected {words} {context[bound]}"
    if kind == "literal_error":
        choices = re.findall(r"'([^']*)'", str(context["expected"]))
        hint = suggest(value, choices) if isinstance(value, str) else ""
        return f"expected one of {', '.join(choices)}{hint}"
    if kind == "too_long":
        return f"expected at most {context['max_length']}"
    return f"expected {_NOUNS[kind]}" if kind in _NOUNS else str(each["msg"])
