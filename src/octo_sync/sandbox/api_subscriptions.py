"""The subscription routes: the brief's sections 2, 4 and 5."""

import dataclasses
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import UNSET, Meta, UnsetType

from octo_sync.sandbox.catalog import seeded_uuid
from octo_sync.sandbox.config import READ_NOTIFICATIONS, WRITE_NOTIFICATIONS
from octo_sync.sandbox.errors import bad_request, forbidden, not_found
from octo_sync.sandbox.events import TYPES
from octo_sync.sandbox.messages import Answer, Call, converted, ok
from octo_sync.sandbox.nouns import Subscription
from octo_sync.sandbox.service import Service

PATH = "/notifications/subscriptions"


class _Asked(msgspec.Struct, rename="camel"):
    """A body; names and values of headers are what HTTP allows."""

    url: str | UnsetType = UNSET
    notification_types: Annotated[list[Literal[TYPES]], Meta(min_length=1)] | UnsetType = UNSET  # type: ignore[valid-type]
    headers: (
        dict[Annotated[str, Meta(pattern=r"\A[!-~]+\Z")], Annotated[str, Meta(pattern=r"\A[\t -~]*\Z")]]
        | UnsetType
        | None
    ) = UNSET


def route(service: Service, call: Call) -> Answer:
    """One request; the path begins with /notifications."""
    kind, *rest = call.parts[1:] or [""]
    typo = kind == "subcriptions"
    if kind != "subscriptions" and not typo:
        raise not_found("This path")
    if not call.view.notifications:
        raise bad_request("The capability notifications must be enabled in Octo-Capabilities.")
    match call.method, rest:
        case "POST", []:
            if service.quirks["create_path_typo_only"] and not typo:
                raise not_found("This path")
            return _create(service, call)
        case "GET", [] if not typo:
            return _list(service, call)
        case "GET" | "PATCH" | "DELETE", [subscription_id] if not typo:
            return _one(service, subscription_id, call)
    raise not_found("This path")


def _create(service: Service, call: Call) -> Answer:
    _need(call, WRITE_NOTIFICATIONS)
    fields = _fields(service, call)
    if not {"url", "types"} <= fields.keys():
        raise bad_request("url and notificationTypes are required.")
    subscription = Subscription(seeded_uuid(service.rng), call.token.name, **{"headers": {}, **fields})
    service.store.subscriptions[subscription.id] = subscription
    return ok(_shown(service, subscription), 200 if service.quirks["subscription_200"] else 201)


def _list(service: Service, call: Call) -> Answer:
    _need(call, READ_NOTIFICATIONS)
    own = [one for one in service.store.subscriptions.values() if one.token == call.token.name]
    rows = [_shown(service, one) for one in own]
    size = service.quirks["subscriptions_paged"]
    if not size:
        return ok(rows)
    page = max(1, int(call.query["page"])) if call.query.get("page", "").isdigit() else 1
    answer = ok(rows[(page - 1) * size : page * size])
    if page * size < len(rows):
        link = f'<{service.base_url}{PATH}?page={page + 1}>; rel="next"'
        answer.headers.append(("Link", link))
    return answer


def _one(service: Service, subscription_id: str, call: Call) -> Answer:
    _need(call, READ_NOTIFICATIONS if call.method == "GET" else WRITE_NOTIFICATIONS)
    known = service.store.subscriptions
    subscription = known.get(subscription_id)
    if subscription is None or subscription.token != call.token.name:
        raise not_found("The subscription")
    if call.method == "DELETE":
        del known[subscription_id]
        if service.quirks["subscription_200"]:
            return ok(_shown(service, subscription))
        return Answer(204, b"", None)
    if call.method == "PATCH":
        subscription = known[subscription_id] = dataclasses.replace(subscription, **_fields(service, call))
    return ok(_shown(service, subscription))


def _fields(service: Service, call: Call) -> dict[str, Any]:
    """What a body says of a subscription, under the names of its fields."""
    asked = converted(call.json(), _Asked)
    fields: dict[str, Any] = {}
    if asked.headers is not UNSET or service.quirks["patch_drops_headers"]:
        fields["headers"] = asked.headers or {}
    if asked.url is not UNSET:
        fields["url"] = _url(asked.url)
    if asked.notification_types is not UNSET:
        fields["types"] = tuple(dict.fromkeys(asked.notification_types))
    return fields


def _shown(service: Service, subscription: Subscription) -> dict[str, object]:
    quirks = service.quirks
    body: dict[str, object] = {
        quirks["subscription_id_key"]: subscription.id,
        "url": subscription.url,
        "notificationTypes": list(subscription.types),
    }
    if quirks["subscription_headers_shown"]:
        body["headers"] = dict(subscription.headers)
    return body


def _need(call: Call, ability: str) -> None:
    if ability not in call.token.abilities:
        raise forbidden(ability)


def _url(value: str) -> str:
    try:
        parts = urlsplit(value)
        fine = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        fine = False
    if not fine or not value.isprintable() or " " in value:
        raise bad_request("url is not an http or https address.")
    return value
