"""What needs two keys, or the outside world: addresses a token may go to, tokens, caps, files that must differ.

Works on tables as they were written, so that one mistake does not hide another.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from octo_sync.errors import ConfigError
from octo_sync.model import Secret
from octo_sync.pipeline import hooks, values
from octo_sync.pipeline import mistakes as say
from octo_sync.pipeline.addresses import IN_LAKE, LAKE
from octo_sync.pipeline.connection import CAPABILITIES
from octo_sync.pipeline.layers import Layers
from octo_sync.pipeline.reconciling import ThereTable
from octo_sync.pipeline.settings import DashboardSettings, NotifySettings, PipelineFile, SyncSettings, Target
from octo_sync.pipeline.tokens import resolve

_SOME_TIME = datetime(2024, 1, 1, tzinfo=UTC)
"""Before a leap day, so that a schedule for it is found to come."""

_CURRENCY = re.compile("[A-Z]{3}", re.ASCII)
_SCHEMAS = frozenset(
    {"core", "information_schema", "main", "marts", "ops", "pg_catalog", "private", "raw", "system", "temp"}
)


def connections(
    document: Mapping[str, object], directory: Path, layers: Layers, mistakes: list[str]
) -> tuple[dict[str, Secret], list[str]]:
    """What needs two keys or the outside world; looks at raw tables, so that one mistake does not hide another."""
    tokens: dict[str, Secret] = {}
    warnings: list[str] = []
    seen: dict[str, str] = {}
    for name, table in _table(document, "connections").items():
        key = say.dotted(("connections", name))
        alike = seen.setdefault(name.lower().replace("-", "_"), name)
        if alike != name:
            mistakes.append(f'{key}: too like "{alike}"; expected names that differ in more than "-", "_" and case')
        if not isinstance(table, Mapping):
            continue
        url = _url(table, "base_url")
        mistakes += _refused(f"{key}.base_url", url, table)
        token = table.get("token")
        if isinstance(token, Mapping):
            try:
                tokens[name] = resolve(token, directory, layers, local=url is not None and values.is_loopback(url))
            except ValueError as error:
                mistakes.append(f"{key}.token: {error}")
        warnings += _unknown_capabilities(key, table.get("capabilities"))
    return tokens, warnings


def webhooks(document: Mapping[str, object], mistakes: list[str]) -> None:
    """The address that services are to deliver to."""
    table = _table(document, "webhooks")
    why = "a secret travels with every delivery; a host named in allow_hosts may be reached over http"
    mistakes += _refused("webhooks.url", _url(table, "url"), table, why_https=why)
    for name, connection in _table(document, "connections").items():
        canary = connection.get("canary") if isinstance(connection, Mapping) else None
        if canary and not table.get("url"):
            mistakes.append(
                f"connections.{name}.canary: expected webhooks.url too, because webhooks are to tell of its holds"
            )
        if isinstance(canary, Mapping) and canary and "product" not in canary:
            mistakes.append(f"connections.{name}.canary: expected product too, the id of one made for tests")


def dashboard(document: Mapping[str, object], directory: Path, layers: Layers, mistakes: list[str]) -> Secret | None:
    """The token of the dashboard, if it has one; beyond this machine it must."""
    table = _table(document, "dashboard")
    try:
        bind = values.host_and_port(table.get("bind", DashboardSettings().bind))
    except ValueError:
        return None  # its own mistake
    here = values.is_loopback(f"http://{bind}")
    token = table.get("token")
    if isinstance(token, Mapping):
        try:
            return resolve(token, directory, layers, local=here)
        except ValueError as error:
            mistakes.append(f"dashboard.token: {error}")
    elif token is None and not here:
        # Also where it is switched off: `serve --only dashboard` shows it all the same.
        mistakes.append(
            f"dashboard.bind: found {say.found(bind)}, which others can reach; expected dashboard.token too, such as "
            '{ env = "DASHBOARD_TOKEN" }, or an address of this machine alone'
        )
    return None


def notify(
    settings: NotifySettings,
    directory: Path,
    layers: Layers,
    origins: Mapping[tuple[str, ...], str],
    mistakes: list[str],
) -> dict[str, Secret]:
    """Who is told, by key; addresses are secrets, and never repeated."""
    found: dict[str, Secret] = {}
    for key in ("to", "ping", "report", "smtp"):
        target: Target = getattr(settings, key)
        if not any(target):
            continue
        told = Secret(target.text, "pipeline file")
        if not target.text:
            try:
                told = resolve(
                    target._asdict(), directory, layers, local=False, what=_WHAT.get(key, "command or address")
                )
            except ValueError as error:
                mistakes.append(f"notify.{key}: {error}")
                continue
        in_file = bool(target.text) and origins.get(("notify", key)) == "pipeline file"
        why = (
            _not_a_server(told.reveal(), is_in_the_file=in_file)
            if key == "smtp"
            else _not_told(key, told.reveal(), settings)
        )
        mistakes += [f"notify.{key}: {why}"] if why else []
        found[key] = told
    return found


_WHAT = {"smtp": "mail server", "report": "mail address"}
_FORMS = {
    "ping": ("json", 'expected an address such as "https://ping.example.com/…"'),
    "report": ("mail", 'expected mail addresses, such as "mailto:me@example.com"'),
}


def _not_a_server(text: str, *, is_in_the_file: bool) -> str | None:
    try:
        server = hooks.mail_server(text)
    except ValueError as error:
        return str(error)
    if server.password and is_in_the_file:
        return "expected { env } or { file } for an address with a password, because this file is read by many"
    return None


def _not_told(key: str, text: str, settings: NotifySettings) -> str | None:
    form, _ = hooks.hook(text)
    wanted, sentence = _FORMS.get(key, (form, None))
    return sentence if form != wanted else hooks.wrong(text, settings.allow_hosts, has_server=any(settings.smtp))


def _table(document: Mapping[str, object], key: str) -> Mapping[str, object]:
    """A table of the file; an empty one where there is none, or something else, which is its own mistake."""
    table = document.get(key)
    return table if isinstance(table, Mapping) else {}


def _url(table: Mapping[str, object], part: str) -> str | None:
    try:
        return values.service_url(table.get(part))
    except ValueError:
        return None  # its own mistake


def _refused(key: str, url: str | None, table: Mapping[str, object], **reason: str) -> list[str]:
    """The mistake of an address that no secret may go to, given the `allow_hosts` beside it."""
    hosts = table.get("allow_hosts")
    named = [host for host in hosts if isinstance(host, str)] if isinstance(hosts, list | tuple) else []
    why = url and values.refuse_address(url, allow_hosts=named, **reason)
    return [f"{key}: found {say.found(url)}; {why}"] if why else []


def _unknown_capabilities(key: str, listed: object) -> list[str]:
    unknown = []
    for item in listed if isinstance(listed, list | tuple) else ():
        capability = item.removeprefix("octo/") if isinstance(item, str) else "pricing"
        if capability not in CAPABILITIES and "/" not in capability:
            hint = values.suggest(capability, CAPABILITIES) or "; it is sent as it stands"
            unknown.append(f"{key}.capabilities: {say.found(capability)} is no capability known here{hint}")
    return unknown


def schedule(document: Mapping[str, object], mistakes: list[str]) -> None:
    """Cron expressions that mean no time, or a time that never comes."""
    table = _table(document, "schedule")
    if not table:
        return
    from octo_sync.pipeline.schedule import next_time  # noqa: PLC0415 - apscheduler takes longer than all the rest

    for part, expression in table.items():
        try:
            if part != "time_zone" and next_time(values.cron(expression), "UTC", _SOME_TIME) is None:
                mistakes.append(f"schedule.{part}: found {say.found(expression)}; such a time never comes")
        except ValueError:
            continue  # its own mistake
        except ConfigError as error:
            mistakes.append(f"schedule.{part}: {error.args[0].removeprefix('schedule: ')}")


def _other_side(key: str, there: ThereTable, file: PipelineFile | None) -> Iterator[str]:
    if len(there.kinds) != 1:
        yield f"{key}: {' and '.join(there.kinds) or 'nothing'} given; expected one of file, dsn, connection"
    if bool(there.dsn) != bool(there.sql):
        yield f"{key}: expected dsn and sql together"
    if not there.file and (there.format.where or there.format.skip_footer):
        yield f"{key}.format: where and skip_footer are for files; leave the rows out in the query"
    if there.connection and file and there.connection not in file.connections:
        hint = values.suggest(there.connection, file.connections)
        yield f"{key}.connection: there is no connection {say.found(there.connection)}{hint}"


def reconciliations(file: PipelineFile | None, mistakes: list[str]) -> None:
    """One other side each, and names that mean something."""
    for name, table in (file.reconcile if file else {}).items():
        key = f"reconcile.{name}"
        mistakes += _other_side(f"{key}.there", table.there, file)
        if not table.here and table.date not in {"travel_date", "booking_date"}:
            mistakes.append(f"{key}.date: {say.found(table.date)} needs a query in `here` that gives such a column")
        if file and table.notify:
            why = hooks.wrong(table.notify, file.notify.allow_hosts, has_server=any(file.notify.smtp))
            mistakes += [f"{key}.notify: {why}"] if why else []
        for each in table.map:
            if each not in table.fields:
                hint = values.suggest(each, table.fields)
                mistakes.append(f"{key}.map.{say.dotted([each])}: expected a column that `fields` compares{hint}")
        mistakes += [
            f'{key}.tolerance.{say.dotted([currency])}: expected a currency such as "EUR", default or relative'
            for currency in table.tolerance
            if currency not in {"default", "relative"} and not _CURRENCY.fullmatch(currency)
        ]
        if table.tolerance.get("relative", 0) > 1:
            mistakes.append(f"{key}.tolerance.relative: expected a share of 0 to 1, such as 0.01")


def spans(document: Mapping[str, object], mistakes: list[str]) -> None:
    """A cap below what it caps."""
    table, default = _table(document, "sync"), SyncSettings()
    try:
        first = values.duration(table.get("backoff", default.backoff))
        cap = values.duration(table.get("backoff_cap", default.backoff_cap))
    except ValueError:
        return
    if cap < first:
        mistakes.append(f"sync.backoff_cap: found {cap:g} s; expected at least sync.backoff, which is {first:g} s")


def paths(file: PipelineFile, directory: Path, mistakes: list[str]) -> None:
    """Names a database cannot have, and two keys that mean the same file."""
    if "://" not in file.destination:
        stem = Path(file.destination).name.partition(".")[0].lower()
        if file.destination.startswith(":") or not Path(file.destination).name.endswith(".duckdb"):
            mistakes.append(f'destination: found {say.found(file.destination)}; expected a file such as "octo.duckdb"')
        elif stem in _SCHEMAS:
            mistakes.append(
                f"destination: found {say.found(file.destination)}; expected another name, because DuckDB calls the "
                f"database {stem}, and a schema is called that"
            )
    on_a_server = "://" in file.journal
    if not on_a_server and file.journal.startswith(":"):
        mistakes.append(f'journal: found {say.found(file.journal)}; expected a file such as "octo.journal.sqlite"')
    place = file.publish.delta
    if place and lake(file) is not None:
        mistakes.append(
            "publish.delta: the destination is in Delta tables already, with what is published; leave it out"
        )
    elif "://" in place and ("@" in place or not IN_LAKE.fullmatch(LAKE + place)):
        mistakes.append("publish.delta: expected a folder of its own for Delta tables, such as s3://bucket/octo")
    taken: dict[Path, str] = {}
    warehouse = destination(file, directory)
    candidates = [] if on_a_server else [("journal", directory / file.journal)]
    candidates += [("publish.path", read_path(file, directory))]
    if isinstance(warehouse, Path):
        candidates = [
            ("destination", warehouse),
            ("the private file beside destination", beside(warehouse, "private")),
            *candidates,
        ]
    for key, path in candidates:
        other = taken.setdefault(_plain(path), key)
        if other != key:
            mistakes.append(f"{key}: {say.found(str(path))} is {other} too; expected a file of its own")


def _plain(path: Path) -> Path:
    """The path without `..` and links, as far as it exists."""
    try:
        return path.resolve()
    except (OSError, RuntimeError):
        return path


def beside(path: Path, word: str) -> Path:
    """`octo.duckdb` → `octo.<word>.duckdb`."""
    return path.with_name(f"{path.name.removesuffix('.duckdb')}.{word}.duckdb")


def destination(file: PipelineFile, directory: Path) -> Path | str:
    """The DuckDB file, the working copy of Delta tables, or the text of a `postgresql://` address."""
    if (place := lake(file)) is not None:
        return directory / f".{place.rpartition('/')[2]}.lake" / "octo.duckdb"
    return file.destination if "://" in file.destination else directory / file.destination


def lake(file: PipelineFile) -> str | None:
    """Where the warehouse's Delta tables are, as delta-rs takes it; None where it has none."""
    return file.destination.removeprefix(LAKE).rstrip("/") if file.destination.startswith(LAKE) else None


def delta(file: PipelineFile, directory: Path) -> str:
    """Where what is published goes as Delta tables, too, as delta-rs takes it; nothing where it goes nowhere."""
    place = file.publish.delta
    return place.rstrip("/") if "://" in place or not place else str((directory / place).absolute())


def read_path(file: PipelineFile, directory: Path) -> Path:
    """Where the read copy goes."""
    if file.publish.path != Path():
        return directory / file.publish.path
    warehouse = destination(file, directory)
    if isinstance(warehouse, Path) and lake(file) is None:
        return beside(warehouse, "read")
    return directory / "octo.read.duckdb"
