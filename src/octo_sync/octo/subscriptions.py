"""Subscription records as services really send them, made equal (Q31). Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

from msgspec import UNSET

from octo_sync.octo.records import Subscription

LISTS = ("data", "subscriptions", "items", "results", "notificationSubscriptions")
MORE = ("next", "nextPage", "next_page", "nextCursor", "next_cursor", "cursor", "hasMore", "has_more")
_NEXT_LINK = re.compile(r"""<([^>]*)>\s*(?:;[^,<]*)?;\s*rel\s*=\s*"?next\b""", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SubscriptionList:
    """The subscriptions of one answer. `complete` is False when it says that there is a further page."""

    subscriptions: tuple[Subscription, ...]
    complete: bool = True


def normalise(record: object) -> Subscription | None:
    """One subscription: its id under `id` or `subscriptionId`, types in any case, one type or many; None if it is none.

    (Q31; Ventrata sends `notificationType`, and ids may be numbers.)
    """
    if not isinstance(record, Mapping):
        return None
    name = record.get("id") or record.get("subscriptionId")
    url = record.get("url")
    if not isinstance(name, str | int) or isinstance(name, bool) or not isinstance(url, str):
        return None
    types = record.get("notificationTypes") or record.get("notificationType") or ()
    types = (types,) if isinstance(types, str) else types
    kinds = {str(each).upper() for each in types} if isinstance(types, list | tuple) else ()
    headers = record.get("headers")
    shown = {str(key): str(value) for key, value in headers.items()} if isinstance(headers, Mapping) else UNSET
    return Subscription(id=str(name), url=url, notification_types=tuple(sorted(kinds)), headers=shown)


def normalise_list(body: object) -> SubscriptionList | None:
    """The list answer: an array, or an object with an array in it (paged); None if it is neither (Q31)."""
    complete = True
    if isinstance(body, Mapping):
        complete = not any(place.get(key) for place in _places(body) for key in MORE)
        body = next((body[key] for key in LISTS if isinstance(body.get(key), list)), None)
    if not isinstance(body, list):
        return None
    found = [normalise(record) for record in body]
    if any(record is None for record in found):
        return None
    return SubscriptionList(tuple(record for record in found if record is not None), complete)


def next_page(headers: Mapping[str, str], body: object, asked: Mapping[str, str]) -> dict[str, str] | None:
    """The query of the page after the one that was answered with `headers` and `body`, or None when none is named.

    From the `Link` header or the body: an address, a page number, a cursor, or that there is more. `asked` is the query of
    the page at hand. Of an address only its query counts, so that no answer can lead the token elsewhere.
    """
    if match := _NEXT_LINK.search(headers.get("link", "")):
        return _query(match[1])
    for place in _places(body):
        for key in MORE:
            value = place.get(key)
            if isinstance(value, Mapping):
                value = value.get("href")
            if value is True and key in MORE[-2:]:
                page = asked.get("page", "1")
                return {**asked, "page": str(int(page) + 1)} if page.isascii() and page.isdigit() else None
            if not value or isinstance(value, bool) or not isinstance(value, str | int):
                continue
            text = str(value)
            if "?" in text or text.startswith(("http:", "https:", "/")):
                return _query(text)
            return {**asked, "page" if text.isascii() and text.isdigit() else "cursor": text}
    return None


def _places(body: object) -> list[Mapping[str, object]]:
    """Where an answer may say that there is more."""
    if not isinstance(body, Mapping):
        return []
    inner = (body.get(key) for key in ("meta", "pagination", "links", "_links"))
    return [body, *(place for place in inner if isinstance(place, Mapping))]


def _query(address: str) -> dict[str, str] | None:
    try:
        return dict(parse_qsl(urlsplit(address).query)) or None
    except ValueError:
        return None
