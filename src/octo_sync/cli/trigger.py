"""`octo-sync trigger`: make the sandbox change something, so that it sends a webhook."""

import json
from pathlib import Path
from typing import Any

import click

from octo_sync.cli import console, options

_KINDS = {
    "booking": ["book", "confirm", "cancel", "note", "move"],
    "product": ["product"],
    "availability": ["closeout", "capacity"],
}
_LOOPBACK = ("http://127.", "http://localhost", "http://[::1]")


@click.command()
@click.argument("event", type=click.Choice(list(_KINDS)))
@options.reading_options
@click.option("-n", "--count", type=click.IntRange(1, 10_000), default=1, show_default=True, help="So many changes.")
@options.as_json
def command(event: str, pipeline: str | None, directory: Path, *, count: int, json_: bool) -> int:
    """Change a booking, a product or availability at the sandbox; it tells whoever subscribed."""
    loaded = options.load_pipeline(directory, pipeline)
    services = [c for c in loaded.connections if c.base_url.startswith(_LOOPBACK)]
    if not services:
        raise click.UsageError(f"{loaded.name} has no sandbox: none of its services is on this machine")
    # A service tells of a booking only the token that made it.
    changes = _change(services[0].base_url, _KINDS[event], count, services[0].token.reveal())
    if json_:
        console.document("trigger", {"changes": changes})
        return 0
    for change in changes:
        click.echo(f"{change.get('kind', event)}  {change.get('uuid') or change.get('product_id') or ''}")
    return 0


def _change(base_url: str, kinds: list[str], count: int, token: str) -> list[dict[str, Any]]:
    import urllib.error  # noqa: PLC0415 - commands start fast
    import urllib.request  # noqa: PLC0415

    request = urllib.request.Request(  # noqa: S310 - loopback, as looked at above
        f"{base_url.removesuffix('/octo/v1')}/_sandbox/traffic",
        data=json.dumps({"changes": count, "kinds": kinds, "token": token}).encode(),
        headers={"Content-Type": "application/json"},
        method="POST",
    )
    # A proxy of the environment has no business between two programs on this machine.
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(request, timeout=30) as answer:
            found: list[dict[str, Any]] = json.load(answer)["changes"]
            return found
    except urllib.error.HTTPError as error:
        raise click.ClickException(f"{base_url} is no sandbox, or refuses: it answered {error.code}") from None
    except (OSError, ValueError) as error:
        raise click.ClickException(
            f"no sandbox answers at {base_url} ({error}); `octo-sync sandbox serve` starts one"
        ) from None
