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
FIELDS = frozenset({"url", "notificationTypes", "headers"})
_UNSAFE = frozenset("\r\n\0")


class SubscriptionRoutes:
    """Answers everything below /notifications.

    Args:
        service: the service behind.
    """

    def __init__(self, service: Service) -> None:
        self._service = service

    def route(self, call: Call) -> Answer:
        """One request; the path begins with /notifications."""
        parts = call.path.split("/")[2:]
        typo = parts[0:1] == ["subcriptions"]
        if parts[0:1] != ["subscriptions"] and not typo:
            raise not_found("This path")
        if not call.view.notifications:
            raise bad_request("The capability notifications must be enabled in Octo-Capabilities.")
        match call.method, parts[1:]:
            case "POST", []:
                if self._service.quirks["create_path_typo_only"] and not typo:
                    raise not_found("This path")
                return self._create(call)
            case "GET", [] if not typo:
                return self._list(call)
            case "GET" | "PATCH" | "DELETE", [subscription_id] if not typo:
                return self._one(subscription_id, call)
        raise not_found("This path")

    def _create(self, call: Call) -> Answer:
        _need(call, WRITE_NOTIFICATIONS)
        body = call.json()
        for key in ("url", "notificationTypes"):
            if key not in body:
                raise bad_request(f"{key} is required.")
        subscription = Subscription(
            id=seeded_uuid(self._service.rng),
            token=call.token.name,
            url=_url(body["url"]),
            types=_types(body["notificationTypes"]),
            headers=_headers(body.get("headers")),
        )
        self._service.store.subscriptions[subscription.id] = subscription
        return ok(self._shown(subscription), 200 if self._service.quirks["subscription_200"] else 201)

    def _list(self, call: Call) -> Answer:
        _need(call, READ_NOTIFICATIONS)
        own = [one for one in self._service.store.subscriptions.values() if one.token == call.token.name]
        rows = [self._shown(one) for one in own]
        size = self._service.quirks["subscriptions_paged"]
        if not size:
            return ok(rows)
        page = max(1, int(call.query["page"])) if call.query.get("page", "").isdigit() else 1
        answer = ok(rows[(page - 1) * size : page * size])
        if page * size < len(rows):
            link = f'<{self._service.base_url}{PATH}?page={page + 1}>; rel="next"'
            answer.headers.append(("Link", link))
        return answer

    def _one(self, subscription_id: str, call: Call) -> Answer:
        _need(call, READ_NOTIFICATIONS if call.method == "GET" else WRITE_NOTIFICATIONS)
        known = self._service.store.subscriptions
        subscription = known.get(subscription_id)
        if subscription is None or subscription.token != call.token.name:
            raise not_found("The subscription")
        if call.method == "DELETE":
            del known[subscription_id]
            if self._service.quirks["subscription_200"]:
                return ok(self._shown(subscription))
            return Answer(204, b"", None)
        if call.method == "PATCH":
            subscription = self._updated(subscription, call.json())
            known[subscription_id] = subscription
        return ok(self._shown(subscription))

    def _updated(self, before: Subscription, body: dict[str, Any]) -> Subscription:
        fields: dict[str, Any] = {}
        if "headers" in body or self._service.quirks["patch_drops_headers"]:
            fields["headers"] = _headers(body.get("headers"))
        if "url" in body:
            fields["url"] = _url(body["url"])
        if "notificationTypes" in body:
            fields["types"] = _types(body["notificationTypes"])
        return dataclasses.replace(before, **fields)

    def _shown(self, subscription: Subscription) -> dict[str, object]:
        quirks = self._service.quirks
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
