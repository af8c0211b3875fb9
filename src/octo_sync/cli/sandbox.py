"""`octo-sync sandbox`: the built-in OCTO service, alone."""

import signal
import sys
import urllib.error
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import click

from octo_sync.cli import console, options
from octo_sync.cli.acts import ask
from octo_sync.pipeline.values import is_loopback
from octo_sync.sandbox.config import CHANNELS, SandboxConfig, demo_config
from octo_sync.sandbox.server import Sandbox

_LOOPBACK = ("127.", "localhost", "::1")
_CHANGES = {
    "booking": ["book", "confirm", "cancel", "note", "move"],
    "product": ["product"],
    "availability": ["closeout", "capacity"],
}


@click.group(cls=options.Group, epilog=options.example("sandbox serve --demo"))
def command() -> None:
    """Run the built-in OCTO service alone, with data, webhooks and faults."""


command.default = "serve"


@command.command("serve", epilog=options.example("sandbox serve --bookings 200"))
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65_535), default=8808, show_default=True, help="Port; 0 takes a free one."
)
@click.option(
    "--public", is_flag=True, help="Permit an address that other machines can reach; its tokens are known to all."
)
@click.option("--demo", is_flag=True, help="Three channels and bookings of 14 months, as `octo-sync demo` has them.")
@click.option("--seed", type=int, default=7, show_default=True, help="Seed of its data.")
@click.option("--products", type=click.IntRange(1, 10_000), help="Number of products.  [default: 8]")
@click.option("--bookings", type=click.IntRange(0), help="Bookings it holds.  [default: 5000; 2000 with --demo]")
@click.option(
    "--days", type=click.IntRange(1, 3650), help="Days of availability ahead.  [default: 180; 90 with --demo]"
)
@click.option(
    "--today", type=click.DateTime(["%Y-%m-%d"]), help="The clock starts at noon of this day.  [default: now]"
)
@click.option("--frozen", is_flag=True, help="Stop the clock.")
@options.everywhere
def serve(*, host: str, port: int, public: bool, **size: Any) -> int:  # noqa: ANN401 - handed on as they are
    """Serve until Ctrl-C; prints the address and tokens to use.

    POST {"rate": 0.5, "token": "all"} to /_sandbox/traffic makes a change, with its webhook, every two seconds.
    """
    if not public and not host.startswith(_LOOPBACK):
        raise click.UsageError(
            f"{host} can be reached by other machines, and the sandbox's tokens are known to all; --public permits it."
        )
    told: list[int] = []

    def ready(base_url: str) -> None:
        _remember(told)
        _announce(base_url, config)

    config = _config(size)
    try:
        Sandbox(config, host=host, port=port, ready=ready).run()
    except OSError as error:
        if told:
            raise
        raise click.ClickException(
            f"cannot listen on {host} port {port}: {error.strerror or error}; --port 0 takes a free one"
        ) from None
    if not told:
        return 0
    name = "interrupted" if told[0] == signal.SIGINT else "terminated"
    console.note(f"octo-sync: {name}; the sandbox kept nothing")
    return 128 + told[0]


def _config(size: dict[str, Any]) -> "SandboxConfig":
    given = {name: value for name, value in size.items() if value is not None}
    usual = demo_config() if given.pop("demo") else SandboxConfig()
    if "today" in given:
        given["today"] = given["today"].date()
    return replace(usual, **given)


def _remember(told: list[int]) -> None:
    """Note which signal ends the service; the server itself swallows it."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def noting(number: int, frame: FrameType | None) -> None:
        told.append(number)
        if callable(then := before[signal.Signals(number)]):
            then(number, frame)

    for number in before:
        signal.signal(number, noting)


def _announce(base_url: str, config: "SandboxConfig") -> None:
    origin = base_url.removesuffix("/octo/v1")
    console.label("Base URL", base_url)
    console.label("Tokens", "  ".join(t.secret for t in config.tokens))
    console.label("Control", f"{origin}/_sandbox")
    usual = base_url == "http://127.0.0.1:8808/octo/v1"  # what pipelines/sandbox.toml says, and the demo's file
    # The demo's file has a connection for each of its tokens.
    is_demo = config.tokens == CHANNELS
    named = [token.name for token in config.tokens] if is_demo else ["sandbox"]
    where = "".join(f"OCTO_SYNC_CONNECTIONS__{name.upper()}__BASE_URL={base_url} " for name in named if not usual)
    console.label("Sync", f"{where}octo-sync sync {'-C octo-demo' if is_demo else '-p sandbox'}")
    console.note("Ctrl-C ends it.")
    sys.stdout.flush()


@command.command("trigger", epilog=options.example("sandbox trigger booking -n 5"))
@click.argument("event", type=click.Choice(list(_CHANGES)))
@options.project
@click.option("-n", "--count", type=click.IntRange(1, 10_000), default=1, show_default=True, help="How many changes.")
@options.as_json
def trigger(event: str, pipeline: str | None, directory: Path, *, count: int) -> None:
    """Change bookings, products or availability at the sandbox, so that it sends webhooks.

    Only a service on this machine is ever changed.
    """
    loaded, missing = options.without_tokens(directory, pipeline)
    services = [c for c in loaded.connections if is_loopback(c.base_url)]
    if not services:
        raise click.UsageError(f"{loaded.name} has no sandbox: none of its services is on this machine")
    asked: dict[str, object] = {"changes": count, "kinds": _CHANGES[event]}
    if not any(mistake.startswith(f"connections.{services[0].name}.token: ") for mistake in missing):
        # A service tells of a booking only the token that made it.
        asked["token"] = services[0].token.reveal()
    changes = _control(services[0].base_url, "traffic", asked)["changes"]
    if console.wrote_json("trigger", {"changes": changes}):
        return
    for change in changes:
        click.echo(f"{change.get('kind', event)}  {change.get('uuid') or change.get('product_id') or ''}")


def _control(url: str, path: str, body: object) -> Any:  # noqa: ANN401 - that is what JSON is
    """What the sandbox's control plane answers to a POST."""
    origin = url.rstrip("/").removesuffix("/octo/v1")
    try:
        return ask(f"{origin}/_sandbox/{path}", body, "POST")
    except urllib.error.HTTPError as error:
        raise click.ClickException(f"{origin} refused: {error.code}; is it an octo-sync sandbox?") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise click.ClickException(
            f"no sandbox answers at {origin} ({reason}); octo-sync sandbox serve runs one"
        ) from None
