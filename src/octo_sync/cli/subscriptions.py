"""`octo-sync subscriptions`: the webhook subscription of each connection."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import click

from octo_sync.app.machine import SystemClock, new_token, run_until_done
from octo_sync.app.project import open_connections
from octo_sync.cli import console, options
from octo_sync.errors import AuthenticationRefused, ConfigError, OctoSyncError
from octo_sync.flows.webhooks.subscribe import Ensured, Listed, Subscriber
from octo_sync.pipeline import Pipeline

F = TypeVar("F", bound=Callable[..., Any])
Verb = Callable[[Subscriber], Coroutine[Any, Any, Any]]

_COLOURS = {"ok": "green", "off": "yellow", "unavailable": "yellow", "failed": "red"}


def _of_each(function: F) -> F:
    """What the verbs share: the pipeline, which of its connections, and how the outcome is written."""
    text = "Only this connection; repeatable."
    only = click.option("-c", "--connection", "only", metavar="NAME", multiple=True, help=text)
    return options.with_tokens(only(options.as_json(function)))


@click.group(cls=options.Group, epilog=options.example("subscriptions ensure"))
def command() -> None:
    """Manage the webhook subscription at each service.

    `serve` does what `ensure` does every 25 seconds. All of them work beside it.
    """


@command.command("ensure", epilog=options.example("subscriptions ensure"))
@_of_each
def ensure(loaded: Pipeline, only: tuple[str, ...]) -> int:
    """Create or repair, so that each service has exactly one subscription at webhooks.url.

    Exit code 1 = no connection has one, 5 = some have none, 4 = a token is refused.
    """
    return _change("ensure", loaded, only)


@command.command("rotate", epilog=options.example("subscriptions rotate"))
@_of_each
def rotate(loaded: Pipeline, only: tuple[str, ...]) -> int:
    """Give each subscription a new address and secret, without losing a delivery.

    The old ones stay valid for an hour after the first delivery to the new address, and a day at most.
    """
    return _change("rotate", loaded, only)


@command.command("remove", epilog=options.example("subscriptions remove"))
@_of_each
@click.option("--yes", is_flag=True, help="Do not ask.")
def remove(loaded: Pipeline, only: tuple[str, ...], *, yes: bool) -> int:
    """Delete our subscriptions at the services, and accept no more deliveries.

    `serve` creates none again until `subscriptions ensure` is run.
    """
    if not yes:
        names = ", ".join(_names(loaded, only))
        options.confirm(f"Delete the subscription of {names}? Then only pulls keep the copy fresh.", "Removing")
    return _change("remove", loaded, only)


@command.command("list", epilog=options.example("subscriptions list"))
@_of_each
def list_(loaded: Pipeline, only: tuple[str, ...]) -> int:
    """List the subscriptions that each token sees: ours and others.

    Addresses are shown without their secret part.
    """
    done = _on_each(loaded, only, lambda one: one.look())
    failed = {name: result for name, result in done.items() if isinstance(result, OctoSyncError)}
    listed: list[Listed] = [each for name, found in done.items() if name not in failed for each in found]
    subscriptions = [_document(each) for each in listed]
    errors = [{"connection": name, "error": str(error)} for name, error in failed.items()]
    if console.wrote_json("subscriptions", {"subscriptions": subscriptions, "failed": errors}):
        return _code(done)
    if listed:
        heads = ("connection", "subscription", "whose", "state", "types", "since", "first delivery", "address")
        console.write_rows(heads, [_row(each) for each in listed], "table")
    for name, error in failed.items():
        click.echo(f"{name}: {error}", err=True)
    without = [n for n in done if n not in failed and not any(s.connection == n and s.whose == "ours" for s in listed)]
    if without:
        console.note(f"{', '.join(without)}: no subscription of ours. Make one: octo-sync subscriptions ensure")
    return _code(done)


def _names(loaded: Pipeline, only: tuple[str, ...]) -> list[str]:
    names = [connection.name for connection in loaded.connections]
    for name in only:
        if name not in names:
            raise click.UsageError(f"There is no connection {name!r}{options.did_you_mean(name, names) or '.'}")
    return [name for name in names if not only or name in only]


def _on_each(loaded: Pipeline, only: tuple[str, ...], verb: Verb) -> dict[str, Any]:
    """What the verb gave for each connection, side by side, or the error it raised."""
    console.warn(loaded.warnings)
    names = _names(loaded, only)

    async def every() -> list[Any]:
        async with open_connections(loaded) as (journal, clients):
            return await asyncio.gather(
                *(
                    verb(Subscriber(journal, clients[n], loaded.webhooks.url, clock=SystemClock(), tokens=new_token))
                    for n in names
                ),
                return_exceptions=True,
            )

    results = dict(zip(names, run_until_done(every()), strict=True))
    for result in results.values():
        if isinstance(result, BaseException) and not isinstance(result, OctoSyncError):
            raise result
    return results


def _change(verb: str, loaded: Pipeline, only: tuple[str, ...]) -> int:
    wanted = "off" if verb == "remove" else "ok"
    if wanted == "ok" and not loaded.webhooks.url:
        raise ConfigError(
            "webhooks.url is not set: write the public address that reaches the receiver into the pipeline file, "
            'e.g. url = "https://hooks.example.com/octo" below [webhooks].'
        )
    done = _on_each(loaded, only, lambda one: getattr(one, verb)())
    if console.wrote_json(f"subscriptions-{verb}", {"connections": [_outcome(n, r) for n, r in done.items()]}):
        return _code(done, wanted)
    for name, result in done.items():
        failed = isinstance(result, OctoSyncError)
        state, text = ("failed", str(result)) if failed else (result.state, result.text)
        word = console.styled(f"{state:<11}", fg=_COLOURS[state], bold=True)
        click.echo(f"{word}  {name}  {console.clean(text)}", err=failed)
    return _code(done, wanted)


def _code(done: dict[str, Any], wanted: str = "") -> int:
    """4 = a token is refused, 1 = it went wrong everywhere, 5 = somewhere, 0 = nowhere."""
    if any(isinstance(result, AuthenticationRefused) for result in done.values()):
        return 4
    wrong = [r for r in done.values() if isinstance(r, OctoSyncError) or (wanted and r.state != wanted)]
    return 0 if not wrong else 1 if len(wrong) == len(done) else 5


def _outcome(name: str, result: Ensured | OctoSyncError) -> dict[str, Any]:
    if isinstance(result, OctoSyncError):
        return {"connection": name, "state": "failed", "text": str(result), "subscription_id": None, "changed": {}}
    return console.fields(result, "connection", "state", "text", "subscription_id", "changed")


def _row(each: Listed) -> tuple[object, ...]:
    row = each.endpoint
    since, seen = (console.instant_text(at) for at in (row.created_at, row.seen_at)) if row else ("", "")
    types = ", ".join(kind.removesuffix("_UPDATE").lower() for kind in each.types)
    return each.connection, each.subscription_id, each.whose, each.state, types, since, seen, each.url


def _document(each: Listed) -> dict[str, Any]:
    row = each.endpoint
    times = {"since": row and row.created_at, "first_delivery_at": row and row.seen_at}
    return console.fields(each, "connection", "subscription_id", "whose", "state", "types", "url") | times
