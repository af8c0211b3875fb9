"""`octo-sync init`: a pipeline file, and a first look at the service."""

import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from octo_sync.cli import console, options
from octo_sync.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from octo_sync.pipeline import Pipeline

_WAREHOUSE = "octo.duckdb"
_TEMPLATE = """\
# What octo-sync copies, from where, into what. Written by `octo-sync init`.
# Every other key, with its default and its meaning: `octo-sync config show`, and docs/configuration.md.

destination = {destination}

[connections.{name}]
base_url = {url}
token = {{ env = "{token_env}" }}  # where the token is, never the token itself; or {{ file = "…" }}
# capabilities = ["pricing", "content", "extras"]
# languages = ["en"]                    # asked for in this order
# business_time_zone = "Europe/Lisbon"  # whose days booking_date counts; travel dates are always the venue's
{channel}
{allow}
[horizon]
bookings = "-90d..+365d"                # travel dates whose bookings are kept, before and after today
availability = "0d..+365d"              # travel dates whose availability is kept

# Without a schedule `octo-sync serve` pulls nothing by itself. With webhooks it is needed too: nobody is notified of other
# tokens' bookings or of sold seats.
# [schedule]                            # cron: minute, hour, day of month, month, day of week
# time_zone = "UTC"                     # whose clock is meant
# full = "0 3 * * *"                    # everything in the horizon, every night at three
# near = "0 * * * *"                    # what takes place in the next 30 days, every hour

# [webhooks]                            # docs/webhooks.md
# url = "https://hooks.example.com/octo"    # the public address that reaches the receiver of `octo-sync serve`
# bind = "127.0.0.1:8787"               # where it listens on this machine, behind a reverse proxy
"""


@click.command()
@click.option("--url", help="The service's base address, ending in its version, e.g. https://api.example.com/octo/v1.")
@click.option(
    "--token-env", metavar="NAME", help="The environment variable that holds the token; never the token itself."
)
@click.option("--name", help="Name of the pipeline and its connection.  [default: from the address]")
@click.option(
    "--destination",
    metavar="FILE|ADDRESS",
    help="The warehouse: a DuckDB file, or a PostgreSQL address such as postgresql://octo@db.example/analytics, without "
    "its password.  [default: octo.duckdb]",
)
@click.option(
    "-C",
    "--directory",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    help="Project directory.  [default: this one]",
)
@click.option("--yes", is_flag=True, help="Overwrite a file that is there.")
@click.option("--no-test", is_flag=True, help="Do not call the service.")
def command(
    url: str | None,
    token_env: str | None,
    name: str | None,
    destination: str | None,
    directory: Path,
    *,
    yes: bool,
    no_test: bool,
) -> int:
    """Write a pipeline file for your service, and test the connection.

    On a terminal it asks for what is not given. Exit code 1 = the service does not answer, 4 = it refuses the token; the
    file stays in both cases.
    """
    from octo_sync.app import stdin_is_terminal  # noqa: PLC0415 - commands start fast
    from octo_sync.pipeline import values  # noqa: PLC0415

    asking = stdin_is_terminal()
    if not asking and not (url and token_env):
        raise click.UsageError("Give --url and --token-env, because nobody can be asked here.")
    url = url or _ask("Base address of the service", "", values.service_url)
    name = name or (_ask("Name of the pipeline", _name_of(url), values.name) if asking else _name_of(url))
    name = _checked("--name", name, values.name)
    if token_env is None:
        default = f"{name.upper().replace('-', '_')}_TOKEN"
        token_env = _ask(
            "Environment variable that holds the token (its name, not the token)", default, values.variable_name
        )
    # What was given may be the token itself: the error does not repeat it.
    token_env = _checked("--token-env", token_env, values.variable_name)
    if destination is None:
        destination = (
            _ask("Warehouse (a DuckDB file, or a postgresql:// address)", _WAREHOUSE, values.plain_text)
            if asking
            else _WAREHOUSE
        )
    path = directory / "pipelines" / f"{name}.toml"
    if path.exists() and not yes:
        if not asking:
            raise click.UsageError(f"{path} is there already; --yes overwrites it.")
        click.confirm(f"{path} is there already. Overwrite it?", abort=True, err=True)
    text = _TEMPLATE.format(
        destination=_toml(destination),
        name=name,
        url=_toml(url.rstrip("/")),
        token_env=token_env,
        channel=_line(f'# channel = "{name}"', "what reports call these sales"),
        allow=_allow(url),
    )
    missing = _write(path, directory, text)
    click.echo(f"{console.styled('wrote', fg='green', bold=True)}  {path}")
    code = 0 if no_test else _test(path, directory, missing)
    _next(path, directory, token_env, missing=bool(missing))
    return code


def _ask(question: str, default: str, check: "Callable[[object], str]") -> str:
    """Ask until the answer is right."""

    def right(answer: str) -> str:
        try:
            return check(answer.strip())
        except ValueError as error:
            raise click.UsageError(f"{error}.") from None

    return str(click.prompt(question, default=default or None, value_proc=right, err=True))


def _checked(option: str, value: str, check: "Callable[[object], str]") -> str:
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


def _toml(text: str) -> str:
    """A TOML string; JSON's are a part of them."""
    import json  # noqa: PLC0415 - commands start fast

    return json.dumps(text, ensure_ascii=False)


def _line(setting: str, remark: str) -> str:
    """A line of the file whose remark stands below the others'."""
    return f"{setting:<39} # {remark}"


def _allow(url: str) -> str:
    """The line that permits a private address, ready to be used where one was given."""
    from octo_sync.pipeline import values  # noqa: PLC0415 - commands start fast

    try:
        refused = values.refuse_address(values.service_url(url), allow_http=False, allow_hosts=())
    except ValueError:
        return ""
    host = urlsplit(url).hostname
    if not (refused and host):
        return ""
    return _line(f"allow_hosts = [{_toml(host)}]", "may be private, and spoken to over http") + "\n"


def _write(path: Path, directory: Path, text: str) -> tuple[str, ...]:
    """Check the file beside its place, then put it there; the mistakes about its token, which may come later."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.stem}.new.toml")
    try:
        draft.write_text(text, encoding="utf-8")
        _, missing = options.without_tokens(draft, directory)
        draft.replace(path)
    except ConfigError as error:
        wrong = tuple(m for m in error.mistakes if ".token: the environment variable" not in m)
        raise ConfigError(f"{path} would not be valid; nothing was written.", mistakes=wrong) from None
    finally:
        draft.unlink(missing_ok=True)
        with suppress(OSError):
            path.parent.rmdir()  # only when it is empty
    return missing


def _test(path: Path, directory: Path, missing: tuple[str, ...]) -> int:
    """A first look at the service; the exit code it means."""
    from octo_sync.cli.doctor import exit_code, look_at_services, report  # noqa: PLC0415 - commands start fast

    if missing:
        click.echo(f"octo-sync: the connection was not tested: {missing[0].partition(': ')[2]}", err=True)
        return 2
    loaded: Pipeline = options.load_pipeline(directory, str(path.absolute()))
    found = look_at_services(loaded)
    report(found)
    return exit_code(found)


def _next(path: Path, directory: Path, token_env: str, *, missing: bool) -> None:
    where = "" if directory == Path() else f" -C {directory}"
    several = len(list(path.parent.glob("*.toml"))) > 1
    which = f" {path.stem}" if several else ""
    option = f" -p {path.stem}" if several else ""
    steps = [
        (f"octo-sync doctor{which}{where}", "look at everything"),
        (f"octo-sync sync{which}{where} --dry-run", "what would be asked"),
        (f"octo-sync sync{which}{where}", "make the copy"),
        (f"octo-sync tables{option}{where}", "what is in it"),
        (f"octo-sync serve{which}{where}", "keep it fresh: [schedule] and [webhooks] in the file"),
    ]
    if missing:
        steps.insert(0, (f"export {token_env}=…", "or a line in .env beside the file"))
    click.echo("\nNext")
    width = max(len(step) for step, _ in steps)
    for step, why in steps:
        click.echo(f"  {step:<{width}}   {console.styled('# ' + why, dim=True)}")
