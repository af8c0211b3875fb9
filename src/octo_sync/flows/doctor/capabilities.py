"""What a service says and does about capabilities, tokens and subscriptions. Pure."""

import json
from collections.abc import Collection, Iterator
from dataclasses import replace

from octo_sync.errors import AuthenticationRefused, RateLimited, ServiceUnavailable
from octo_sync.flows.doctor.advice import advise
from octo_sync.flows.doctor.seen import Check, Kept, Seen, differs, passed, rows_of, said_in, unknown
from octo_sync.model import Connection
from octo_sync.octo import quirks
from octo_sync.octo.answer import Answer
from octo_sync.octo.subscriptions import normalise_list

NO_SUCH_PATH = frozenset({404, 405, 410, 501})

_OFTEN = "15 * * * *"

_MEANINGS = {
    "pricing": "Prices and revenue stay empty, and amounts that were known are kept and marked as old.",
    "content": "Titles and texts stay empty; reports show internal names.",
    "extras": "Extras that guests booked along are not in the copy.",
}


def authentication(seen: Seen) -> Check:
    """Whether a token is looked at."""
    name = "authentication"
    if isinstance(seen.stranger, AuthenticationRefused):
        return passed(name, "a token that nobody has is refused")
    if isinstance(seen.stranger, Answer):
        meaning = "Whoever knows the address may read there, and a wrong token of ours is not noticed."
        return differs(name, "a token that nobody has is accepted", meaning, advise("open"))
    return unknown(name, "a token that nobody has was neither accepted nor refused")


def echo(seen: Seen, connection: Connection) -> Iterator[Check]:
    """Whether answers say which capabilities are on."""
    if seen.products is None or not connection.capabilities:
        return
    if "octo-capabilities" in seen.products.headers:
        yield passed("echo", "answers say which capabilities are on")
    else:
        text = "no answer says which capabilities are on (no Octo-Capabilities header)"
        meaning = "Whether one is on is told by its fields: where an answer has no record, it cannot be told."
        yield differs("echo", text, meaning)


def _asked(connection: Connection) -> tuple[str, ...]:
    """The capabilities that are asked for with products, and can be seen there."""
    chosen = connection.capability_overrides.get("products", connection.capabilities) or ()
    asked = {quirks.spell_capability(name, "short") for name in chosen}
    return tuple(name for name in _MEANINGS if name in asked)


def ignored(answer: Answer, connection: Connection) -> frozenset[str]:
    """The capabilities without any field in an answer to `products`, whatever its header says; none without a product."""
    bare = replace(answer, headers={k: v for k, v in answer.headers.items() if k != "octo-capabilities"})
    return quirks.ignored_capabilities(_asked(connection), bare) if rows_of(answer) else frozenset()


def fruitful_spelling(seen: Seen, connection: Connection) -> str:
    """The other spelling, if it was tried and brings more than this one and loses nothing; else nothing."""
    if seen.products is None or seen.respelled is None or not rows_of(seen.respelled):
        return ""
    better = ignored(seen.respelled, connection) < ignored(seen.products, connection)
    return quirks.other_spelling(connection.capability_spelling) if better else ""


def capabilities(seen: Seen, connection: Connection) -> Iterator[Check]:
    """By their fields, whatever the answer's header says."""
    if seen.products is None:
        return
    asked, some = _asked(connection), bool(rows_of(seen.products))
    lacking, spelling = ignored(seen.products, connection), fruitful_spelling(seen, connection)
    absent = ignored(seen.respelled, connection) if spelling and seen.respelled else lacking
    for name, meaning in _MEANINGS.items():
        check = f"capability {name}"
        if name not in asked and name not in connection.capabilities:
            continue
        if name not in asked:
            yield unknown(check, "is not asked for with products (capability_overrides)")
        elif not some:
            yield unknown(check, "cannot be seen without a product")
        elif name not in lacking:
            yield passed(check, "its fields are there")
        elif spelling and name not in absent:
            text = f"none of its fields is sent; asked for in the {spelling} spelling they are there"
            yield differs(check, text, meaning, advise("spelling", spelling=spelling, name=connection.name))
        else:
            yield _lacking(name, meaning, absent, seen, connection)


def _lacking(name: str, meaning: str, absent: Collection[str], seen: Seen, connection: Connection) -> Check:
    """A capability that neither spelling brings."""
    check, text = f"capability {name}", "none of its fields is sent, in either spelling"
    if seen.respelled is None:
        return differs(check, "none of its fields is sent", meaning)
    listed = _listed(seen)
    if listed is not None and name in listed:
        return differs(check, f"{text}, though GET /capabilities lists it", meaning, advise("listed"))
    if "products" in connection.capability_overrides:
        return differs(check, text, meaning)
    # All that are absent at once, so that two findings do not say two things.
    out = {c for c in absent if listed is None or c not in listed}
    left = [c for c in connection.capabilities if quirks.spell_capability(c, "short") not in out]
    advice = "absent" if listed is not None else "perhaps absent"
    fix = advise(advice, capability=name, capabilities=json.dumps(left), name=connection.name)
    return differs(check, text + ("" if listed is None else ", and GET /capabilities has none"), meaning, fix)


def _listed(seen: Seen) -> frozenset[str] | None:
    """The capabilities that the service says it has, in short spelling; None where it does not say."""
    if seen.offered is None:
        return None
    return frozenset(quirks.spell_capability(str(row.get("id")), "short") for row in rows_of(seen.offered))


def notifications(seen: Seen, kept: Kept) -> Check:
    """Whether there are subscriptions for webhooks."""
    name, error = "subscriptions", seen.no_subscriptions
    text, fix = "subscriptions are answered with something else than a list", advise("subscriptions")
    if seen.subscriptions is not None:
        if normalise_list(said_in(seen.subscriptions)) is not None:
            return passed(name, "subscriptions can be read")
    elif error is None or (isinstance(error, ServiceUnavailable | RateLimited) and error.status not in NO_SUCH_PATH):
        return unknown(name, "subscriptions were not answered")
    elif isinstance(error, AuthenticationRefused):
        text, fix = f"the token may not read subscriptions ({error.status})", advise("abilities")
    elif error.status not in NO_SUCH_PATH:
        text = f"cannot be read ({error.status or 'refused'})"
    elif "notifications" in (_listed(seen) or ()):
        text = f"nothing is at their path ({error.status}), though GET /capabilities lists notifications"
    elif kept.pulls:
        return passed(name, f"the service has none ({error.status}); [schedule] pulls")
    else:
        text = f"the service has none ({error.status})"
        fix = advise("pull", near=_OFTEN)
    return differs(name, text, "No webhook tells of changes: the copy is as fresh as its pulls.", fix)
