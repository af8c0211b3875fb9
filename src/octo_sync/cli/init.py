"""`octo-sync init`: a pipeline file, and a first look at the service."""

import re
import shlex
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import click

from octo_sync.app.machine import stdin_is_terminal
from octo_sync.cli import console, options
from octo_sync.cli.doctor import exit_code, look_at_services, report
from octo_sync.errors import ConfigError
from octo_sync.flows.templates import filled
from octo_sync.pipeline import Pipeline, values
from octo_sync.pipeline.addresses import LAKE
from octo_sync.pipeline.keys import show as toml

_WAREHOUSE = "octo.duckdb"


@click.command(epilog=options.example("init --url https://api.example.com --token-env ACME_TOKEN"))
@click.option("--url", help="The service's base address, ending in its version, e.g. https://api.example.com/octo/v1.")
@click.option(
    "--token-env", metavar="NAME", help="The environment variable that holds the token; never the token itself."
)
@click.option(
    "--token-file",
    metavar="PATH",
    help="The file that holds the token, relative to the project; never the token itself.",
)
@click.option("--name", help="Name of the pipeline and its connection.  [default: from the address]")
@click.option(
    "--destination",
    metavar="FILE|ADDRESS",
    help="The warehouse: a DuckDB file, or a PostgreSQL address such as postgresql://octo@db.example/analytics, without "
    "its password.  [default: octo.duckdb]",
)
@click.option(
    "--nightly",
    metavar="TIME",
    help="Pull everything every night at this time, such as 03:00 (UTC) or '03:00 Europe/Lisbon'; none: not by itself.  "
    "[default: none]",
)
@options.directory()
@click.option("--yes", is_flag=True, help="Overwrite a file that is there.")
@click.option("--no-test", is_flag=True, help="Do not call the service.")
def command(
    url: str | None,
    token_env: str | None,
    token_file: str | None,
    name: str | None,
    destination: str | None,
    nightly: str | None,
    directory: Path,
    *,
    yes: bool,
    no_test: bool,
) -> int:
    """Write a pipeline file for your service, and test the connection.

    Without the address or the token's place it asks on a terminal: for these, the warehouse, and when to pull every night.
    Exit code 1 = the service does not answer, 4 = it refuses the token; the file stays in both cases.
    """
    if token_env is not None and token_file is not None:
        raise click.UsageError("Give --token-env or --token-file, not both.")
    # A pasted block of commands must not be read as answers: who gives what is needed is asked nothing.
    is_told = bool(url and (token_env or token_file))
    asking = not is_told and stdin_is_terminal()
    if not asking and not is_told:
        raise click.UsageError("Give --url and --token-env or --token-file, because nobody can be asked here.")
    url = url or _ask("Base address of the service", "", values.service_url)
    name = _checked("--name", name or _name_of(url), values.name)
    token = _token(token_env, token_file, name, directory)
    if destination is None and asking:
        destination = _ask("Warehouse (a DuckDB file, or postgresql://…)", _WAREHOUSE, _warehouse)
    destination = _checked("--destination", destination or _WAREHOUSE, _warehouse)
    if nightly is None and asking:
        nightly = _ask("Pull everything every night at (UTC; 03:00 Europe/Lisbon; none)", "03:00", _nightly)
    nightly = _checked("--nightly", nightly or "none", _nightly)
    time, _, zone = ("3:00 UTC" if nightly == "none" else nightly).partition(" ")
    hour, minute = map(int, time.split(":"))
    path = directory / "pipelines" / f"{name}.toml"
    if path.exists() and not yes:
        if not asking:
            raise click.UsageError(f"{path} is there already; --yes overwrites it.")
        click.confirm(f"{path} is there already. Overwrite it?", abort=True, err=True)
    text = filled(
        Path(__file__).with_name("pipeline.toml.j2"),
        destination=toml(destination),
        name=name,
        url=toml(url.rstrip("/")),
        token=token.toml,
        private=_private(url),
        mark="# " if nightly == "none" else "",
        zone=zone,
        hour=hour,
        minute=minute,
    )
    missing = _write(path, directory, text)
    console.outcome("wrote", str(path))
    if urlsplit(url).scheme == "http" and _private(url):
        console.note(
            "The token travels to this address unencrypted: write https:// into the file if the service has it."
        )
    code = 0 if no_test else _test(path, directory, missing)
    _next(path, directory, token, missing=bool(missing))
    return code


class _Token(NamedTuple):
    """Where a token is: how the pipeline file says it, and how it gets there."""

    toml: str
    step: str
    """The command that puts it there; empty where the service manager does."""
    why: str


def _token(variable: str | None, file: str | None, name: str, directory: Path) -> _Token:
    if variable is None and file is None:
        default = f"{name.upper().replace('-', '_')}_TOKEN"
        variable = _ask("Environment variable that holds its token", default, values.variable_name)
    if file is not None:
        # What was given may be the token itself, here as well: the error does not repeat it.
        file = _checked("--token-file", file, partial(_token_file, directory=directory))
        step = "" if file.startswith(_MANAGED) else f"install -m 0600 /dev/stdin {shlex.quote(str(directory / file))}"
        return _Token(f"{{ file = {toml(file)} }}", step, "then paste the token, Ctrl-D")
    variable = _checked("--token-env", variable or "", values.variable_name)
    return _Token(f'{{ env = "{variable}" }}', f"export {variable}=…", "or a line in .env beside the file")


_MANAGED = "$CREDENTIALS_DIRECTORY/"


def _token_file(value: object, directory: Path) -> str:
    """A path that says that it is one, or is one; a token may have a slash too."""
    text = str(value)
    if not (text.startswith(("/", "./", "../", "~/", _MANAGED)) or (directory / text).is_file()):
        raise ValueError("expected the path of a file that is there, or one that begins with / or ./")
    return str(Path(text).expanduser()) if text.startswith("~/") else text


def _warehouse(value: object) -> str:
    """A DuckDB file, or the address of a server or of Delta tables; `duckdb` means the usual file."""
    text = values.plain_text(value).strip()
    if text.lower() == "duckdb":
        return _WAREHOUSE
    if text.lower() in {"postgres", "postgresql"} or (
        "://" in text and not text.startswith(("postgresql://", LAKE, "${"))
    ):
        raise ValueError(
            "expected its address, such as postgresql://octo@db.example:5432/analytics, without a password"
        )
    return text


def _nightly(value: object) -> str:
    """`none`, or a time of the day and a time zone, `03:00 UTC`."""
    text = values.plain_text(value).strip()
    if text.lower() == "none":
        return "none"
    time, _, zone = text.partition(" ")
    if not re.fullmatch(r"([01]?\d|2[0-3]):[0-5]\d", time, re.ASCII):
        raise ValueError("expected a time of the day such as 03:00 or 03:00 Europe/Lisbon, or none")
    return f"{time} {values.time_zone(zone.strip() or 'UTC')}"


def _ask(question: str, default: str, check: Callable[[object], str]) -> str:
    """Ask until the answer is right."""

    def right(answer: str) -> str:
        try:
            return check(answer.strip())
        except ValueError as error:
            raise click.UsageError(f"{error}.") from None

    return str(click.prompt(question, default=default or None, value_proc=right, err=True))


def _checked(option: str, value: str, check: Callable[[object], str]) -> str:
    try:
        return check(value)
    except ValueError as error:
        raise ConfigError(f"{option}: {error}.") from None


def _name_of(url: str) -> str:
    """`https://api.acme-tours.com/octo/v1` → `acme-tours`."""
    host = urlsplit(url).hostname or ""
    if not host or host == "localhost" or not re.search("[a-z]", host):
        return "sandbox" if host else "octo"
    words = [w for w in host.split(".")[:-1] if w not in {"www", "api", "octo", "octo-api", "co", "com"}] or [
        host.split(".")[0]
    ]
    return re.sub(r"[^a-z0-9]+", "-", words[-1].lower()).strip("-") or "octo"


def _private(url: str) -> str:
    """The host of a private address, which the file has to permit, as TOML; empty where it need not."""
    with suppress(ValueError):
        host = urlsplit(url).hostname
        if host and values.refuse_address(values.service_url(url), allow_hosts=()):
            return toml(host)
    return ""


def _write(path: Path, directory: Path, text: str) -> tuple[str, ...]:
    """Check the file beside its place, then put it there; the mistakes about its token, which may come later."""
    made = [folder for folder in (path.parent, *path.parent.parents) if not folder.exists()]
    draft = path.with_name(f".{path.stem}.new")  # no pipeline's name, should it ever be left behind
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(text, encoding="utf-8")
        _, missing = options.without_tokens(directory, draft)
        draft.replace(path)
    except ConfigError as error:
        wrong = tuple(m for m in error.mistakes if ".token: " not in m)
        raise ConfigError(f"{path} would not be valid; nothing was written.", mistakes=wrong) from None
    finally:
        draft.unlink(missing_ok=True)
        with suppress(OSError):
            for folder in made:
                folder.rmdir()  # only when it is empty
    return missing


def _test(path: Path, directory: Path, missing: tuple[str, ...]) -> int:
    """A first look at the service; the exit code it means."""
    if missing:
        click.echo(f"octo-sync: the connection was not tested: {missing[0].partition(': ')[2]}", err=True)
        return 2
    loaded: Pipeline = options.load_pipeline(directory, str(path.absolute()))
    found = look_at_services(loaded)
    report(found)
    return exit_code(found)


def _next(path: Path, directory: Path, token: _Token, *, missing: bool) -> None:
    where = "" if directory == Path() else f" -C {shlex.quote(str(directory))}"
    several = len(list(path.parent.glob("*.toml"))) > 1
    which = (f" -p {path.stem}" if several else "") + where
    steps = [
        (f"octo-sync doctor{which}", "look at everything"),
        (f"octo-sync sync{which} --dry-run", "what would be fetched"),
        (f"octo-sync sync{which}", "make the copy"),
        (f"octo-sync tables{which}", "what is in it"),
        (f"octo-sync serve{which}", "keep it fresh: [schedule] and [webhooks] in the file"),
        (f"octo-sync deploy systemd{which}", "run that on a server; or docker, k8s, cron"),
    ]
    if missing and token.step:
        steps.insert(0, (token.step, token.why))
    console.steps(steps)
