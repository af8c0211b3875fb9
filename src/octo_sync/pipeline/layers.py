"""Flags over `OCTO_SYNC_*` variables over `.env` over the file: one document, and where each value came from."""

import re
import tomllib
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, is_dataclass
from pathlib import Path

from octo_sync.errors import ConfigError
from octo_sync.pipeline.keys import KEYS, Key, pattern, removed
from octo_sync.pipeline.mistakes import dotted, unknown_key

PREFIX = "OCTO_SYNC_"
_LARGEST = 256 * 1024
_DEEPEST = 16
_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*?)\s*", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layers:
    """What may stand above the pipeline file; `flags` by dotted key."""

    environ: Mapping[str, str] = field(default_factory=dict)
    dotenv: Mapping[str, str] = field(default_factory=dict)
    flags: Mapping[str, object] = field(default_factory=dict)

    def variable(self, name: str) -> tuple[str, str]:
        """A variable's value and origin: the environment, then `.env`; an empty one counts as not set."""
        if value := self.environ.get(name, ""):
            return value, f"env {name}"
        return self.dotenv.get(name, ""), f".env {name}"


@dataclass(frozen=True, slots=True)
class Merged:
    """The document with every layer applied, the origin of each key set anywhere, and what could not be applied."""

    document: dict[str, object]
    origins: dict[tuple[str, ...], str]
    mistakes: list[str]
    warnings: list[str]


def dotenv(path: Path) -> dict[str, str]:
    """`NAME=value` lines; `#` comments, `export`, and single or double quotes as shells write them, nothing expanded.

    Raises `ConfigError` for a file that is there and cannot be read, and names the line that is none.
    """
    try:
        if not path.is_file():
            return {}
        with path.open("rb") as file:
            text = file.read(_LARGEST).decode("utf-8-sig")
    except (OSError, ValueError):
        raise ConfigError(f"{path} cannot be read as lines of NAME=value.") from None
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            raise ConfigError(f"{path} has a mistake in line {number}; expected NAME=value.")
        name, value = match.groups()
        if quoted := re.fullmatch(r"""(?P<q>["'])(.*)(?P=q)(?:\s+#.*)?""", value):
            found[name] = quoted[2]
        else:
            found[name] = re.split(r"\s#", value, maxsplit=1)[0].rstrip()
    return found


def merge(document: Mapping[str, object], layers: Layers) -> Merged:
    """The document with `.env`, environment and flags applied, in this order."""
    merged = Merged(_copy(document), {}, [], [])
    merged.origins.update((path, "pipeline file") for path in _leaves(merged.document))
    for origin, variables in ((".env", layers.dotenv), ("env", layers.environ)):
        for name, value in sorted(variables.items()):
            if name.startswith(PREFIX):
                _variable(merged, name, value, origin)
    for name, flag in layers.flags.items():
        path = tuple(name.split("."))
        if pattern(path) is None:
            merged.mistakes.append(f"flag {unknown_key(path)}")
        elif "token" in path:
            merged.mistakes.append(f"{name}: expected no flag, because flags show in the list of processes")
        else:
            _apply(merged, path, flag, "flag")
    for path in list(_leaves(merged.document)):
        if removed(path):
            merged.mistakes.append(unknown_key(path))
            _take_out(merged.document, path)
    return merged


def _take_out(table: dict[str, object], path: tuple[str, ...]) -> None:
    """Without what is told already, and without a table that only held it."""
    below = table[path[0]]
    if len(path) > 1 and isinstance(below, dict):
        _take_out(below, path[1:])
    if len(path) == 1 or not below:
        del table[path[0]]


def _variable(merged: Merged, name: str, value: str, origin: str) -> None:
    """A variable of two words belongs to the file; a single unknown word may be a command's own."""
    path = _path(name.removeprefix(PREFIX), merged.document)
    origin = f"{origin} {dotted([name])}"
    if pattern(path) is None:
        if removed(path):
            merged.mistakes.append(f"{origin}: {unknown_key(path)}")
        elif "__" in name:
            merged.mistakes.append(
                f"{origin}: no such key; expected {PREFIX} and a key in capitals, with __ for each dot"
            )
        return
    connections = merged.document.get("connections")
    if len(path) > 1 and path[0] == "connections" and isinstance(connections, Mapping) and path[1] not in connections:
        # Several pipelines may share one environment, so this may be meant for another.
        merged.warnings.append(f"{origin}: this pipeline has no connection {dotted(path[1:2])}; ignored")
        return
    _apply(merged, path, value, origin, variable=name)


def _copy(table: Mapping[str, object], depth: int = 0) -> dict[str, object]:
    if depth > _DEEPEST:
        raise ConfigError("The pipeline file is nested too deeply to be one.")
    return {str(key): _copy(value, depth + 1) if isinstance(value, Mapping) else value for key, value in table.items()}


def _leaves(table: Mapping[str, object], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key, value in table.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, (*path, key))
        else:
            yield (*path, key)


def _path(text: str, document: Mapping[str, object]) -> tuple[str, ...]:
    """`CONNECTIONS__ACME_EU__BASE_URL` → the key it means; names are compared without case, `-` and `_` alike."""
    path: tuple[str, ...] = ()
    here: object = document
    for word in text.lower().split("__"):
        own = list(here) if isinstance(here, Mapping) else []
        fixed = [key[-1] for key in KEYS if key[:-1] == pattern(path)]
        choices = own if "*" in fixed or not fixed else fixed
        step = next((each for each in choices if str(each).lower().replace("-", "_") == word), word)
        path = (*path, str(step))
        here = here.get(step) if isinstance(here, Mapping) else None
    return path


def _apply(merged: Merged, path: tuple[str, ...], value: object, origin: str, *, variable: str = "") -> None:
    key = KEYS[pattern(path) or ()]
    if variable and path[-1] == "token":
        # The variable holds the token itself: point at it like a file would.
        value = {"env": variable}
    elif key.table:
        merged.mistakes.append(f"{origin}: {dotted(path)} is a table; expected its keys one by one")
        return
    elif isinstance(value, str):
        value = _typed(key, path, value)
    table = merged.document
    for part in path[:-1]:
        below = table.setdefault(part, {})
        if not isinstance(below, dict):  # told when the document is checked
            return
        table = below
    if path[-2:-1] == ("token",) and path[-1] in {"env", "file"}:
        table.pop("file" if path[-1] == "env" else "env", None)
    table[path[-1]] = value
    merged.origins[path] = origin


def _typed(key: Key, path: tuple[str, ...], text: str) -> object:
    """A text from outside as the key's type wants it: itself, a TOML value, or a list with commas."""
    base = key.base
    if isinstance(base, type) and is_dataclass(base) and len(path) > len(key.path):
        base = typing.get_type_hints(base)[path[-1]]  # a part of a small table such as { include }
    if base in (str, Path) or typing.get_origin(base) is typing.Literal:
        return text
    parsed: dict[str, object]
    try:
        parsed = tomllib.loads(f"value = {text}")
    except (tomllib.TOMLDecodeError, RecursionError):
        parsed = {}
    if list(parsed) == ["value"]:
        return parsed["value"]
    if typing.get_origin(base) is tuple:
        return [part.strip() for part in text.split(",") if part.strip()]
    return text
