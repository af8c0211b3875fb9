"""The subscription routes: the brief's sections 2, 4 and 5."""

import dataclasses
from typing import Any
from urllib.parse import urlsplit

from octo_sync.sandbox.catalog import seeded_uuid
from octo_sync.sandbox.config import READ_NOTIFICATIONS, WRITE_NOTIFICATIONS
from octo_sync.sandbox.errors import bad_request, forbidden, not_found
from octo_sync.sandbox.events import TYPES
from octo_sync.sandbox.messages import Answer, Call, ok
from octo_sync.sandbox.nouns import Subscription
from octo_sync.sandbox.service import Service

PATH = "/notifications/subscriptions"
_UNSAFE = frozenset("\r\n\0")


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
    body = call.json()
    for key in ("url", "notificationTypes"):
        if key not in body:
            raise bad_request(f"{key} is required.")
    subscription = Subscription(
        id=seeded_uuid(service.rng),
        token=call.token.name,
        url=_url(body["url"]),
        types=_types(body["notificationTypes"]),
        headers=_headers(body.get("headers")),
    )
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
        subscription = _updated(service, subscription, call.json())
        known[subscription_id] = subscription
    return ok(_shown(service, subscription))


def _updated(service: Service, before: Subscription, body: dict[str, Any]) -> Subscription:
    fields: dict[str, Any] = {}
    if "headers" in body or service.quirks["patch_drops_headers"]:
        fields["headers"] = _headers(body.get("headers"))
    if "url" in body:
        fields["url"] = _url(body["url"])
    if "notificationTypes" in body:
        fields["types"] = _types(body["notificationTypes"])
    return dataclasses.replace(before, **fields)


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


def _url(value: object) -> str:
    if not isinstance(value, str):
        raise bad_request("url is not a text.")
    try:
        parts = urlsplit(value)
        fine = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        fine = False
    if not fine or not value.isprintable() or " " in value:
        raise bad_request("url is not an http or https address.")
    return value


def _types(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        raise bad_request("notificationTypes is not a list with at least one type.")
    for kind in value:
        if kind not in TYPES:
            raise bad_request(f"notificationTypes holds {kind!r}; allowed are {', '.join(TYPES)}.")
    return tuple(dict.fromkeys(value))


def _headers(value: object) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise bad_request("headers is not an object.")
    for name, text in value.items():
        if not isinstance(text, str):
            raise bad_request(f"headers: the value of '{name}' is not a text.")
        if not name or not name.isascii() or not text.isascii() or _UNSAFE & set(name + text) or " " in name:
            raise bad_request("headers holds a name or value that HTTP does not allow.")
    return dict(value)
