"""`octo-sync sandbox`: the built-in OCTO service, alone."""

import signal
import sys
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from octo_sync.cli import console, options

if TYPE_CHECKING:
    from octo_sync.sandbox.config import SandboxConfig

_LOOPBACK = ("127.", "localhost", "::1")


@click.group(cls=options.DefaultGroup)
def command() -> None:
    """Run the built-in OCTO service alone, with data, webhooks and faults."""


command.default = "serve"


@command.command("serve")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65_535), default=8808, show_default=True, help="Port; 0 takes a free one."
)
@click.option(
    "--public", is_flag=True, help="Permit an address that other machines can reach; its tokens are known to all."
)
@click.option("--seed", type=int, default=7, show_default=True, help="What its data is made from.")
@click.option("--products", type=click.IntRange(1, 10_000), help="Number of products.  [default: 8]")
@click.option(
    "--bookings", type=click.IntRange(0), default=5000, show_default=True, help="Bookings of the past 90 days."
)
@click.option("--days", type=click.IntRange(1, 3650), help="Days of availability ahead.  [default: 180]")
@click.option(
    "--slots", type=click.IntRange(1), help="About this many availability slots from today on; sizes the rest."
)
@click.option(
    "--today", type=click.DateTime(["%Y-%m-%d"]), help="The clock starts at noon of this day.  [default: now]"
)
@click.option("--frozen", is_flag=True, help="The clock stands still until it is told to go on.")
@click.option("--warm", is_flag=True, help="Encode every month before listening, for measuring.")
@click.option(
    "--retry-base",
    type=click.FloatRange(0),
    default=1.0,
    show_default=True,
    help="First wait before a delivery is tried again, in seconds.",
)
@click.option("--retry-max", type=click.FloatRange(0), default=128.0, show_default=True, help="Longest such wait.")
@click.option("--retry-attempts", type=click.IntRange(1), default=8, show_default=True, help="Tries per delivery.")
def serve(*, host: str, port: int, public: bool, **size: Any) -> int:  # noqa: ANN401 - handed on as they are
    """Serve until Ctrl-C; what to call it with is printed.

    POST {"rate": 0.5, "token": "all"} to /_sandbox/traffic makes a change every two seconds, of which webhooks tell.
    """
    from octo_sync.sandbox.server import serve as run  # noqa: PLC0415 - commands start fast

    if not public and not host.startswith(_LOOPBACK):
        raise click.UsageError(
            f"{host} can be reached by other machines, and the sandbox's tokens are known to all; --public permits it."
        )
    told: list[int] = []

    def ready(base_url: str) -> None:
        _remember(told)
        _announce(base_url)

    try:
        run(_config(size), host, port, ready)
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
    from dataclasses import replace  # noqa: PLC0415 - commands start fast

    from octo_sync.sandbox.config import SandboxConfig, benchmark_config  # noqa: PLC0415

    given = {name: value for name, value in size.items() if value is not None}
    if "today" in given:
        given["today"] = given["today"].date()
    base = SandboxConfig()
    if "slots" in given:
        sized = benchmark_config(given["slots"])
        base = replace(base, products=sized.products, days=sized.days, cache_bytes=sized.cache_bytes)
    return replace(base, **given)


def _remember(told: list[int]) -> None:
    """Note which signal ends the service; the server itself swallows it."""

    def noting(number: int) -> None:
        before = signal.getsignal(number)

        def handler(given: int, frame: FrameType | None) -> None:
            told.append(given)
            if callable(before):
                before(given, frame)

        signal.signal(number, handler)

    for number in (signal.SIGINT, signal.SIGTERM):
        noting(number)


def _announce(base_url: str) -> None:
    from octo_sync.sandbox.config import DEFAULT_TOKENS  # noqa: PLC0415 - commands start fast

    origin = base_url.removesuffix("/octo/v1")
    console.label("Base URL", base_url)
    console.label("Tokens", "  ".join(t.secret for t in DEFAULT_TOKENS))
    console.label("Control", f"{origin}/_sandbox")
    usual = base_url == "http://127.0.0.1:8808/octo/v1"  # what pipelines/sandbox.toml says
    where = "" if usual else f"OCTO_SYNC_CONNECTIONS__SANDBOX__BASE_URL={base_url} "
    console.label("Sync", f"{where}octo-sync sync sandbox")
    console.note("Ctrl-C ends it.")
    sys.stdout.flush()


@command.command("reset")
@click.option("--url", default="http://127.0.0.1:8808", show_default=True, help="Where the sandbox listens.")
def reset(*, url: str) -> int:
    """Put a running sandbox back to how it started."""
    import urllib.error  # noqa: PLC0415 - commands start fast
    import urllib.request  # noqa: PLC0415

    origin = url.rstrip("/").removesuffix("/octo/v1")
    if not origin.startswith(("http://", "https://")):
        raise click.UsageError(f"--url {url!r}: expected an address such as http://127.0.0.1:8808.")
    request = urllib.request.Request(f"{origin}/_sandbox/reset", method="POST")  # noqa: S310 - http or https, as checked
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=60):
            pass
    except urllib.error.HTTPError as error:
        raise click.ClickException(f"{origin} refused: {error.code}; is it an octo-sync sandbox?") from None
    except OSError as error:
        reason = getattr(error, "reason", error)
        raise click.ClickException(
            f"no sandbox answers at {origin} ({reason}); octo-sync sandbox serve runs one"
        ) from None
    click.echo(f"{console.styled('reset', fg='green')}  {origin}")
    return 0
