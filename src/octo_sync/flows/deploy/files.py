"""What `octo-sync deploy` prints: files that run octo-sync on other people's machinery, filled in for one pipeline.

The folder is the registry: each folder below `deploy/` is a target, each file in it is one that is printed. A name ending in
`.j2` is a template (`quoting` quotes what it fills in), one that begins with `_` a part of others; any other file is
printed as it is. The files that lie in `deploy/` itself are the target `monitoring`.
"""

import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from octo_sync import __version__
from octo_sync.errors import ConfigError
from octo_sync.flows.deploy import cron as deploy_schedule
from octo_sync.flows.deploy.quoting import FILTERS, printable
from octo_sync.flows.export.files import write_texts
from octo_sync.flows.templates import environment
from octo_sync.pipeline import STOP_WITHIN, DashboardSettings, Pipeline, Schedule, WebhookSettings
from octo_sync.pipeline.hooks import STAND_INS
from octo_sync.pipeline.shipped import shipped

LOCK = "requirements.lock"
"""The image's packages with their hashes: of all files the one that nobody reads."""
MONITORING = "monitoring"
PROJECT = Path("/var/lib/octo-sync")
"""Where a project is put on a server, and in every container."""
_ETC = "/etc/octo-sync"
_URL = "https://hooks.example.com/octo"
_NIGHTLY = "0 3 * * *"
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}", re.ASCII)
_AS_THEY_ARE = ("body_limit", "header_limit", "header_timeout", "request_timeout", "max_connections")
"""Settings of webhooks."""
_MANAGED = "$CREDENTIALS_DIRECTORY/"
_SAFE_PATH = re.compile(r"(?:/[A-Za-z0-9._~-]+)*", re.ASCII)
_HOMES = ("/home", "/root", "/run/user")
_SAMPLE = """\
# A pipeline to begin with; `octo-sync init` writes yours, with comments.
[connections.acme]
base_url = "https://api.example.com/octo/v1"
token = { env = "ACME_TOKEN" }
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """The machine that units and crontabs are for: this one."""

    program: Path
    """The `octo-sync` that runs."""
    python: Path
    """Where its Python is installed."""
    user: str
    """Whom the project belongs to; empty when it is nobody in particular."""


@dataclass(frozen=True, slots=True)
class Token:
    """Where a token, or what `[notify]` tells, is put on a server."""

    whose: str
    """The connection, or the key of `notify`; empty for the dashboard."""
    name: str
    """Of the credential, secret or file that holds it."""
    file: str
    """Where it lies on the server."""
    variable: str
    """The variable that says where the token is, whatever the pipeline file says; empty: the file says it."""


def targets() -> list[str]:
    """What can be printed."""
    return sorted([*(path.name for path in shipped("deploy").iterdir() if path.is_dir()), MONITORING])


def _variables(document: Mapping[str, object]) -> dict[str, str]:
    """Environment variables that a pipeline file names besides tokens → the text each stands in; `{ env = … }` has none."""
    found: dict[str, str] = {}

    def walk(value: object, path: tuple[str, ...]) -> None:
        if isinstance(value, Mapping):
            own = value.get("env")
            if isinstance(own, str) and path[-1:] != ("token",):
                found[own] = ""
            for key, below in value.items():
                walk(below, (*path, str(key)))
        elif isinstance(value, str):
            found.update(dict.fromkeys(_VARIABLE.findall(value), value))

    walk(document, ())
    return found


def stand_ins(document: Mapping[str, object], environ: Mapping[str, str]) -> dict[str, str]:
    """The environment with something in the place of every secret that is not set: files are printed without any of them."""
    found = dict(environ)
    for name, text in _variables(document).items():
        whole = _VARIABLE.fullmatch(text) is not None
        found.setdefault(
            name, "postgresql://octo@db.example/octo" if whole else "1" if text else "https://example.com/"
        )
    for name, _ in _items(document.get("connections")):
        found[_variable("connections", name, "token")] = "stand-in"
    if "token" in dict(_items(document.get("dashboard"))):
        found[_variable("dashboard", "token")] = "stand-in"
    for key, told in _items(document.get("notify")):
        if isinstance(told, Mapping) and key in STAND_INS:
            found[_variable("notify", key)] = STAND_INS[key]
    return found


def _variable(*path: str) -> str:
    """The variable that stands above a key of the pipeline file."""
    return "OCTO_SYNC_" + "__".join(part.upper().replace("-", "_") for part in path)


def values(loaded: Pipeline | None, document: Mapping[str, object], host: Host, directory: Path) -> dict[str, object]:
    """Everything the templates fill in. Times in seconds, sizes in bytes.

    Args:
        loaded: The pipeline in force, or None where there is none yet: then everything is an example.
        document: Its file as it is written.
        host: This machine.
        directory: The project, absolute.

    Raises:
        ConfigError: A value cannot be written into such files.
    """
    own = (directory / "pipelines").absolute()
    path = loaded.path.absolute() if loaded else own / "acme.toml"
    inside = path.parent == own
    webhooks = loaded.webhooks if loaded else WebhookSettings()
    dashboard = loaded.dashboard if loaded else DashboardSettings()
    schedule = loaded.schedule if loaded else Schedule()
    address = urlsplit(webhooks.url if webhooks.url.startswith("https://") else _URL)
    if not _SAFE_PATH.fullmatch(address.path):
        raise ConfigError(
            f"webhooks.url: its path {unquote(address.path)!r} has characters that each proxy reads in its own way; use "
            "letters, digits, - and _."
        )
    bound, port = webhooks.address
    if port == 0:
        raise ConfigError("webhooks.bind: port 0 is another one each time, and others must know it; give it a number.")
    cron, time_zone = schedule.full or _NIGHTLY, schedule.time_zone
    below = directory.parent == PROJECT.parent
    elsewhere = list(_elsewhere(loaded, directory)) if loaded else []
    # Files of other systems, which it reads, too.
    compared = [directory / t.there.file for t in (loaded.reconciliations if loaded else {}).values() if t.there.file]
    touched = [host.program, host.python, directory, path, *(file for _, file in elsewhere), *compared]
    return {
        **{name: getattr(webhooks, name) for name in _AS_THEY_ARE},
        "version": __version__,
        "name": path.stem,
        # Whether all its databases are in PostgreSQL, so that several machines can share them.
        "several": loaded is not None and isinstance(loaded.destination, str) and isinstance(loaded.journal, str),
        "text": path.read_text(encoding="utf-8-sig") if loaded else _SAMPLE,
        # What names it on the command line; empty where there is none yet.
        "pipeline": (path.stem if inside else printable(str(path))) if loaded else "",
        "source": printable(str(path)),
        "program": printable(str(host.program)),
        "directory": printable(str(directory)),
        # The project's folder below /var/lib, where the service manager makes it.
        "state": directory.name if below else "",
        "user": host.user or "octo-sync",
        # Folders elsewhere that it writes into.
        "writable": tuple(sorted({printable(str(path.parent)) for _, path in elsewhere})),
        # Variables that put files which lie elsewhere into the project, where it is a volume.
        "moved": tuple((_variable(*key.split(".")), printable(path.name)) for key, path in elsewhere if key),
        # Whether the program, the project or a file that the pipeline names lies below a home directory.
        "at_home": any(each.is_relative_to(home) for each in touched for home in _HOMES),
        "tokens": tuple(_tokens(document if loaded else tomllib.loads(_SAMPLE), directory)),
        # Environment variables that the pipeline file names besides tokens.
        "variables": tuple(sorted(_variables(document))),
        # Empty where the pipeline has none: then the public address below is an example.
        "webhooks_url": webhooks.url,
        "bind": _reached(bound, port),
        "port": port,
        "public_host": f"[{address.hostname}]" if ":" in (address.hostname or "") else address.hostname or "",
        "public_port": address.port or 443,
        "public_path": address.path.rstrip("/"),
        "dashboard": _reached(*dashboard.address),
        "dashboard_port": dashboard.address[1],
        "stop_within": STOP_WITHIN,
        "cron": deploy_schedule.crontab(cron),
        "calendar": deploy_schedule.calendar(cron, time_zone),
        "time_zone": time_zone,
    }


def _elsewhere(loaded: Pipeline, directory: Path) -> Iterator[tuple[str, Path]]:
    """What it writes outside the project: a file's key and path; reports have no key that is worth another place."""
    files: list[tuple[str, Path | str]] = [("destination", loaded.destination), ("journal", loaded.journal)]
    if isinstance(loaded.destination, Path):
        files.append(("publish.path", loaded.publish.path))
    for table in loaded.reconciliations.values():
        files += [("", directory / report) for report in table.write]
    for key, file in files:
        if isinstance(file, Path) and not (path := file.absolute()).is_relative_to(directory):
            yield key, path


def _reached(host: str, port: int) -> str:
    """Where a proxy on this machine reaches what listens there: `0.0.0.0` and `::` are no addresses to call."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - a comparison, nothing is bound
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _tokens(document: Mapping[str, object], directory: Path) -> Iterator[Token]:
    """Where each token is put, unless it is a known one (the sandbox's)."""
    connections, dashboard = document.get("connections"), document.get("dashboard")
    tables: list[tuple[tuple[str, ...], str, object]]
    tables = [(("connections", name), name, table) for name, table in _items(connections)]
    if "token" in dict(_items(dashboard)):
        tables.append((("dashboard",), "", dashboard))
    for path, whose, table in tables:
        token = dict(_items(dict(_items(table)).get("token")))
        if token.get("default"):
            continue
        file = str(token.get("file") or "")
        if file.startswith(_MANAGED):
            held = printable(file.removeprefix(_MANAGED))
            yield Token(whose, held, f"{_ETC}/{held}", "")
        else:
            held = f"{(whose or 'dashboard').replace('_', '-')}-token"
            place = printable(str(directory / file)) if file else f"{_ETC}/{held}"
            yield Token(whose, held, place, _variable(*path, "token", "file"))
    managed: dict[str, list[str]] = {}
    for key, told in _items(document.get("notify")):
        file = str(dict(_items(told)).get("file") or "")
        if file.startswith(_MANAGED):
            managed.setdefault(printable(file.removeprefix(_MANAGED)), []).append(f"notify.{key}")
    for held, keys in managed.items():  # several may be told in the same way
        yield Token(" and ".join(keys), held, f"{_ETC}/{held}", "")


def _items(table: object) -> list[tuple[str, object]]:
    return list(table.items()) if isinstance(table, Mapping) else []


def files(target: str, filled: Mapping[str, object]) -> dict[str, str]:
    """The texts of a target's files, by their names below the place that they are written to.

    Raises:
        ConfigError: A value cannot be written into one of them.
    """
    root = shipped("deploy")
    folder = root if target == MONITORING else root / target
    # Every value goes through a filter of its file's own rules.
    templates = environment(folder, {**FILTERS, "seconds": _whole, "kib": lambda size: _whole(size / 1024)})
    found = {}
    for path in sorted(folder.iterdir()):
        if path.name.startswith("_") or not path.is_file():
            continue
        if path.suffix == ".j2":
            found[path.stem] = templates.get_template(path.name).render(filled, project=str(PROJECT))
        else:
            found[path.name] = path.read_text(encoding="utf-8")
    return found


def _whole(amount: float) -> int:
    """Whole seconds or KiB, never less than were meant."""
    return max(1, math.ceil(amount))


def write(made: Mapping[str, str], folder: Path, *, force: bool) -> list[Path]:
    """Write them into a folder, all or none of them; the paths.

    Raises:
        ConfigError: One is there already and `force` is not said, or no file can be made there.
    """
    if taken := [name for name in made if (folder / name).exists() and not force]:
        raise ConfigError(f"{folder} has {', '.join(taken)} already; --force overwrites.")
    texts = {folder / name: text for name, text in made.items()}
    write_texts(texts, force=force, mode=0o644)  # others' programs read them, and there is no secret in them
    return list(texts)
