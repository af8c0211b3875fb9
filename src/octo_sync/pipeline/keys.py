"""Every key of a pipeline file: its type, unit, default and meaning.

A key is one annotated line in `settings.py`, `connection.py` or `reconciling.py`. Validation, `OCTO_SYNC_*` variables,
"did you mean", `config show` and `docs/configuration.md` are all read from it, so a new key is one new line (then run
`scripts/configuration.py`). Times are seconds and sizes bytes once a file is read.
"""

import json
import re
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from typing import Any, Literal

from octo_sync.model import Horizon
from octo_sync.pipeline.settings import PipelineFile, Target
from octo_sync.pipeline.vocabulary import Says, Type


@dataclass(frozen=True, slots=True)
class Key:
    """One key as documented. `path` holds `*` where a name of the user's stands; a `table` has keys of its own."""

    path: tuple[str, ...]
    table: bool
    base: object
    kind: str
    default: str
    meaning: str

    @property
    def dotted(self) -> str:
        """The key as a user writes it, `NAME` for the user's own names."""
        return ".".join("NAME" if part == "*" else part for part in self.path)


_BARE = re.compile(r"[\w-]+", re.ASCII)
_UNITS = ((86400, "d"), (3600, "h"), (60, "m"), (1, "s"))


def show(value: object, kind: str = "") -> str:  # noqa: PLR0911 - one line for each kind of value
    """A value of a `kind` as one writes it in a pipeline file."""
    match value:
        case bool():
            return str(value).lower()
        case int() | float() if value and "duration" in kind:
            size, unit = next((each for each in _UNITS if value % each[0] == 0), (1, "s"))
            return f'"{value / size:.15g}{unit}"'
        case float() if value.is_integer():
            return str(int(value))
        case str() | Horizon():
            return json.dumps(str(value), ensure_ascii=False)  # a part of TOML's texts
        case tuple():
            return f"[{', '.join(show(item, kind) for item in value)}]"
        case Mapping():
            pairs = (f" {key if _BARE.fullmatch(key) else show(key)} = {show(each)}" for key, each in value.items())
            return f"{{{','.join(pairs)}{' ' if value else ''}}}"
        case _:
            return str(value)


def _keys(table: type[Any], path: tuple[str, ...] = ()) -> Iterator[Key]:
    hints = typing.get_type_hints(table, include_extras=True)
    for each in fields(table):
        base, *metadata = typing.get_args(hints[each.name]) or (None,)
        says = next((item for item in metadata if isinstance(item, Says)), None)
        if says is None:
            continue
        kind = next((item.text for item in metadata if isinstance(item, Type)), "")
        here = (*path, each.name)
        if typing.get_origin(base) is Literal:
            kind = " or ".join(show(item) for item in typing.get_args(base))
        is_required = each.default is MISSING and each.default_factory is MISSING
        if is_dataclass(base) and base is not Horizon and not kind:
            yield Key(here, True, base, "table", "required" if is_required else "", says.text)  # noqa: FBT003
            yield from _keys(typing.cast("type[Any]", base), here)
            continue
        if typing.get_origin(base) is dict and path == ():
            yield Key(here, True, base, "tables", "required" if is_required else "", says.text)  # noqa: FBT003
            inner = typing.get_args(base)[1]
            yield Key((*here, "*"), True, inner, "table", "", (inner.__doc__ or "").partition("\n")[0])  # noqa: FBT003
            yield from _keys(inner, (*here, "*"))
            continue
        default = says.default or ("required" if is_required else _default(each, kind))
        yield Key(here, False, base, kind, default, says.text)  # noqa: FBT003


def _default(each: "Field[Any]", kind: str) -> str:
    value = each.default if each.default_factory is MISSING else each.default_factory()
    is_nothing = value in (None, "", Target()) or (is_dataclass(value) and not isinstance(value, Horizon))
    return "none" if is_nothing else show(value, kind)


KEYS: Mapping[tuple[str, ...], Key] = types.MappingProxyType({key.path: key for key in _keys(PipelineFile)})


def pattern(path: tuple[str, ...]) -> tuple[str, ...] | None:
    """The entry of `KEYS` that a user's key belongs to, `()` for the whole file, or None when there is none.

    A table of the user's own pairs (`headers`, `capability_overrides`) takes any one more part; so does `{ env }`.
    """
    if not path:
        return ()
    generic = (path[0], "*", *path[2:]) if (path[0], "*") in KEYS and len(path) > 1 else path
    if generic in KEYS:
        return generic
    above = KEYS.get(generic[:-1])
    if above is None or above.table:
        return None
    is_taken = path[-1] in _parts(above.base) if is_dataclass(above.base) else typing.get_origin(above.base) is dict
    return generic[:-1] if is_taken else None


def _parts(base: object) -> list[str]:
    """What may stand in a key that is a small table."""
    return [each.name for each in fields(base)] if is_dataclass(base) and base is not Horizon else []


def known_below(path: tuple[str, ...]) -> list[str]:
    """What may stand in the table, or the small table, that a user's key means."""
    above = pattern(path)
    key = KEYS.get(above or ())
    within = _parts(key.base) if key and not key.table else []
    return sorted(within or (key[-1] for key in KEYS if key[:-1] == above))


_FITS_ALL = "is no longer a key, because the built-in value fits every service; delete the line"
_GONE = (
    (
        "connections.*.limits",
        "connect_timeout backoff_cap max_inflation retry_after_cap max_body max_4xx_per_minute",
        _FITS_ALL,
    ),
    ("connections.*", "allow_http", "is no longer a key; name the host in allow_hosts"),
    ("connections.*", "trailing_slash", "is no longer a key; paths are asked for as OCTO writes them"),
    ("connections.*.token", "template", "is no longer a key; let the variable or the file hold all that is sent"),
    ("dashboard.token", "template", "is no longer a key; let the variable or the file hold all that is asked for"),
    ("dashboard", "enabled", "is no longer a key; `serve --only receiver --only worker` shows no dashboard"),
    ("sync", "batch_bodies batch_bytes resume_within", _FITS_ALL),
    ("sync", "verify_budget", "is no longer a key; verify_bookings_within = 0 looks at none again"),
    ("webhooks", "check_every silence_after rest max_connections", _FITS_ALL),
    ("webhooks", "body_limit header_limit header_timeout request_timeout", _FITS_ALL),
    ("notify", "check_every", _FITS_ALL),
    ("notify", "on_stale on_quarantine on_subscription_lost", "is notify.to now, for every kind of notice"),
    ("", "care serve", _FITS_ALL),
    ("serve", "publish_every", "is publish.every now"),
    ("schedule", "products", "is no longer a key; schedule.full fetches products too"),
    ("schedule", "publish", "is no longer a key; publish.every decides, and `octo-sync publish` makes a copy at once"),
    ("reconcile.*.there", "csv xlsx parquet", "is there.file now"),
    (
        "reconcile.*.there",
        "delimiter encoding decimal dates time_zone sheet header_row",
        "is there.format.{name} now",
    ),
    ("reconcile.*", "strip", "is there.format.strip now"),
    ("reconcile.*", "relative", "is tolerance.relative now"),
    ("reconcile.*", "html xlsx csv", 'is write now: write = ["file.{name}"]'),
)
REMOVED: Mapping[tuple[str, ...], str] = {
    (*filter(None, table.split(".")), name): said.format(name=name)
    for table, names, said in _GONE
    for name in names.split()
}
"""Keys that were, and what replaces them."""


def removed(path: tuple[str, ...]) -> str | None:
    """What a user is told of a key that was, or None."""
    generic = (path[0], "*", *path[2:]) if (path[0], "*") in KEYS and len(path) > 1 else path
    return next((REMOVED[generic[:end]] for end in range(len(generic), 0, -1) if generic[:end] in REMOVED), None)
