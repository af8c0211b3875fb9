"""A pipeline file, completed by flags and environment, checked, as the values that everything else takes."""

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import TypeAdapter, ValidationError

from octo_sync.errors import ConfigError
from octo_sync.model import Connection, Horizon, Limits, Secret
from octo_sync.pipeline import addresses, checks, values
from octo_sync.pipeline import mistakes as say
from octo_sync.pipeline.connection import CanaryTable, ConnectionTable, ProductFilter, TokenTable
from octo_sync.pipeline.keys import KEYS, pattern
from octo_sync.pipeline.layers import Layers, dotenv, merge
from octo_sync.pipeline.reconciling import ReconcileTable
from octo_sync.pipeline.settings import (
    CareSettings,
    DashboardSettings,
    Horizons,
    NotifySettings,
    PipelineFile,
    PublishSettings,
    RetentionSettings,
    Schedule,
    SyncSettings,
    Target,
    WebhookSettings,
)
from octo_sync.pipeline.shipped import local_or_shipped

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_LARGEST_FILE = 1024 * 1024
_AS_WRITTEN = ("pii", "sync", "schedule", "webhooks", "dashboard", "notify", "log_format", "retention")
"""Keys of the file that a pipeline has under the same name."""
STOP_WITHIN = 5.0
"""Seconds that a stop waits for the landing in hand and for answers: service managers kill after ten."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A value in force and where it came from; times in seconds, sizes in bytes, a secret as its own description."""

    value: object
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """A valid pipeline; `destination` is a DuckDB file, or the text of a `postgresql://` address.

    Where the warehouse is in Delta tables, `lake` says where, and the file is the working copy of this machine.
    """

    name: str
    path: Path
    directory: Path
    destination: Path | str = field(repr=False)
    """Not shown, like `journal_url`: an address may hold a password from the environment."""
    journal_path: Path
    """The journal's file; when it is on a server, what the project's lock is named after."""
    pii: Literal["keep", "hash", "drop"]
    horizons: Horizons
    connections: tuple[Connection, ...]
    products: Mapping[str, ProductFilter]
    canaries: Mapping[str, CanaryTable]
    """Of the connections that have one."""
    sync: SyncSettings
    publish: PublishSettings
    schedule: Schedule
    webhooks: WebhookSettings
    dashboard: DashboardSettings
    dashboard_token: Secret | None
    """What a browser has to know; None where anybody on this machine may look."""
    notify: NotifySettings
    told: Mapping[str, Secret]
    """Who is told, by the key of `notify`: a command or an address."""
    log_format: Literal["sentences", "text", "json"]
    retention: RetentionSettings
    reconciliations: Mapping[str, ReconcileTable]
    settings: Mapping[str, Setting]
    warnings: tuple[str, ...] = ()
    care: CareSettings = field(default_factory=CareSettings)
    lake: str | None = field(default=None, repr=False)
    journal_url: str | None = field(default=None, repr=False)
    """The `postgresql://` address of a journal on a server."""

    @property
    def journal(self) -> Path | str:
        """Where the journal is: a file, or the text of a `postgresql://` address."""
        return self.journal_url or self.journal_path

    @property
    def private_path(self) -> Path | None:
        """The file of personal data and payloads beside the DuckDB file; None for PostgreSQL, where it is a schema."""
        return checks.beside(self.destination, "private") if isinstance(self.destination, Path) else None


def names(directory: Path) -> dict[str, Path]:
    """Every pipeline that can be named: those in `directory`/pipelines, then those that came with the program."""
    return {Path(key).stem: path for key, path in local_or_shipped("pipelines", directory, "*.toml").items()}


def find(name_or_path: str | None, directory: Path) -> Path:
    """The pipeline file that a user means: a path, a name, or None for the only one in `directory`/pipelines.

    Raises `ConfigError` when there is none or more than one.
    """
    if name_or_path is None:
        own = sorted((directory / "pipelines").glob("*.toml"))
        if len(own) == 1:
            return own[0]
        if not own:
            demo = directory / "octo-demo"
            there = f"; there is a project in {demo}: -C {demo}" if list((demo / "pipelines").glob("*.toml")) else ""
            raise ConfigError(
                f"{(directory / 'pipelines').absolute()} holds no pipeline file; octo-sync init writes one{there}."
            )
        raise ConfigError(f"Which pipeline? Name one with -p: {', '.join(path.stem for path in own)}.")
    if name_or_path.endswith(".toml") or "/" in name_or_path or "\\" in name_or_path:
        return directory / name_or_path
    known = names(directory)
    if name_or_path in known:
        return known[name_or_path]
    hint = values.suggest(name_or_path, known)
    raise ConfigError(
        f"There is no pipeline {say.found(name_or_path)}{hint or '.'} Known: {', '.join(known)}; "
        "example and sandbox come with the program."
    )


def load(path: Path, *, directory: Path, environ: Mapping[str, str], overrides: Mapping[str, object]) -> Pipeline:
    """Read, complete and check a pipeline file.

    Args:
        path: The file, as `find` returns it.
        directory: The project: relative paths in the file start here.
        environ: The process environment; the only way in (R14).
        overrides: Flags by dotted key; None means not given.

    Raises:
        ConfigError: The file cannot be read or is wrong; `mistakes` has a sentence for each.
    """
    try:
        with path.open("rb") as file:
            body = file.read(_LARGEST_FILE + 1)
        if len(body) > _LARGEST_FILE:
            raise ConfigError(f"{path} is larger than 1 MB; a pipeline file is a few lines of TOML.")
        document = tomllib.loads(body.decode("utf-8-sig"))
    except FileNotFoundError:
        raise ConfigError(f"There is no pipeline file {path}; octo-sync init writes one.") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not valid TOML.", mistakes=(f"{path}: {error}",)) from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ConfigError(f"{path} is not valid TOML.", mistakes=(f"{path}: not UTF-8 (at line {line})",)) from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or type(error).__name__}.") from None
    except ValueError:  # a path that no system takes
        raise ConfigError(f"{path} cannot be read.") from None
    except RecursionError:
        raise ConfigError(f"{path} is nested too deeply to be a pipeline file.") from None
    dotenvs: dict[str, str] = {}
    for folder in (directory, path.parent):
        dotenvs |= dotenv(folder / ".env")
    return parse(
        document,
        path=path,
        directory=directory,
        layers=Layers(environ=environ, dotenv=dotenvs, flags={k: v for k, v in overrides.items() if v is not None}),
    )


def parse(document: Mapping[str, object], *, path: Path, directory: Path, layers: Layers) -> Pipeline:
    """The same for a document that was read already.

    Raises:
        ConfigError: It is wrong; `mistakes` has a sentence for each.
    """
    merged = merge(document, layers)
    mistakes = list(merged.mistakes)
    file: PipelineFile | None = None
    try:
        file = _adapter().validate_python(merged.document)
    except ValidationError as error:
        mistakes += say.mistakes(error, merged.origins)
    tokens, warnings = checks.connections(merged.document, directory, layers, mistakes)
    checks.spans(merged.document, mistakes)
    checks.webhooks(merged.document, mistakes)
    shown_to = checks.dashboard(merged.document, directory, layers, mistakes)
    told = checks.notify(file.notify, directory, layers, merged.origins, mistakes) if file else {}
    checks.schedule(merged.document, mistakes)
    checks.reconciliations(file, mistakes)
    files = file or _files_alone(merged.document)
    if files is not None:
        before = len(mistakes)
        files = addresses.filled(files, layers, mistakes)
        if len(mistakes) == before:
            checks.paths(files, directory, mistakes)
    if mistakes or file is None or files is None:
        wrong = tuple(dict.fromkeys(mistakes))
        count = "1 mistake" if len(wrong) == 1 else f"{len(wrong)} mistakes"
        raise ConfigError(f"The pipeline file {path} has {count}.", mistakes=wrong)
    destination, name = checks.destination(files, directory), file.name or path.stem
    read_path = checks.read_path(files, directory)
    secrets: dict[tuple[str, ...], Secret | None] = {("dashboard", "token"): shown_to}
    secrets |= {("notify", key): secret for key, secret in told.items()}
    secrets |= {("connections", each, "token"): token for each, token in tokens.items()}
    computed = {"name": name, "publish.path": str(read_path)}
    computed |= {f"connections.{each}.channel": each for each, table in file.connections.items() if not table.channel}
    return Pipeline(
        name=name,
        path=path,
        directory=directory,
        destination=destination,
        lake=checks.lake(files),
        journal_path=directory / ("octo.journal.sqlite" if "://" in files.journal else files.journal),
        journal_url=files.journal if "://" in files.journal else None,
        horizons=file.horizon,
        connections=tuple(_connection(each, table, tokens[each]) for each, table in file.connections.items()),
        products={each: table.products for each, table in file.connections.items()},
        canaries={each: table.canary for each, table in file.connections.items() if table.canary.product},
        publish=replace(file.publish, path=read_path, delta=checks.delta(files, directory)),
        dashboard_token=shown_to,
        told=told,
        reconciliations=file.reconcile,
        settings=_settings(file, secrets, merged.origins, computed),
        warnings=(*merged.warnings, *warnings),
        **{each: getattr(file, each) for each in _AS_WRITTEN},
    )


def _files_alone(document: Mapping[str, object]) -> PipelineFile | None:
    """The files a document names, when they are right though another part is not: their mistakes are to be named too."""
    parts = {key: document[key] for key in ("destination", "journal", "publish") if key in document}
    stand_in = {"stand-in": {"base_url": "https://stand-in.invalid/octo", "token": {"env": "STAND_IN"}}}
    try:
        return _adapter().validate_python({**parts, "connections": stand_in})
    except ValidationError:
        return None


@cache
def _adapter() -> TypeAdapter[PipelineFile]:
    return TypeAdapter(PipelineFile)


def _connection(name: str, table: ConnectionTable, token: Secret) -> Connection:
    as_written = {each.name: getattr(table, each.name) for each in fields(Connection) if hasattr(table, each.name)}
    capabilities, limits = tuple(dict.fromkeys(table.capabilities)), Limits(**asdict(table.limits))
    read = {"name": name, "token": token, "capabilities": capabilities, "limits": limits}
    return Connection(**as_written | read | {"channel": table.channel or name})


def _settings(
    file: PipelineFile,
    secrets: Mapping[tuple[str, ...], Secret | None],
    origins: Mapping[tuple[str, ...], str],
    computed: Mapping[str, str],
) -> dict[str, Setting]:
    """Every key's value in force, flat; `computed` are those that the file may leave open."""
    flat: dict[str, Setting] = {}
    # The first of each table; looked for among all, thousands of connections took a minute.
    below = {at[:length]: where for at, where in reversed(list(origins.items())) for length in range(1, len(at))}

    def origin(path: tuple[str, ...]) -> str:
        above = [origins[path[:length]] for length in range(len(path), 0, -1) if path[:length] in origins]
        return above[0] if above else below.get(path, "default")

    def walk(table: "DataclassInstance", path: tuple[str, ...]) -> None:
        for each in fields(table):
            here, value = (*path, each.name), getattr(table, each.name)
            if here in {("connections",), ("reconcile",)}:
                for own, below in value.items():
                    walk(below, (*here, own))
            elif isinstance(value, TokenTable | Target):
                secret = secrets.get(here)
                flat[say.dotted(here)] = Setting(repr(secret) if secret else None, origin(here))
            elif pattern(here) is None:
                continue
            elif is_dataclass(value) and not isinstance(value, Horizon | type):
                if KEYS[pattern(here) or ()].table:
                    walk(value, here)
                else:
                    written = {part.name: getattr(value, part.name) for part in fields(value)}
                    is_given = value != type(value)()
                    flat[say.dotted(here)] = Setting({k: v for k, v in written.items() if v and is_given}, origin(here))
            else:
                flat[say.dotted(here)] = Setting(str(value) if isinstance(value, Horizon) else value, origin(here))

    walk(file, ())
    return flat | {key: Setting(value, flat[key].origin) for key, value in computed.items()}
