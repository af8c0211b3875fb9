"""Subscription records as services really send them, made equal (Q31). Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from octo_sync.octo.records import Id, Subscription

__all__ = ["SubscriptionList", "normalise", "normalise_list"]

LISTS = ("data", "subscriptions", "items", "results", "notificationSubscriptions")
MORE = ("next", "nextPage", "next_page", "nextCursor", "next_cursor", "cursor", "hasMore", "has_more")


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
    headers = record.get("headers")
    return Subscription(
        id=Id(name),
        url=url,
        notification_types=tuple(sorted({str(each).upper() for each in types}))
        if isinstance(types, list | tuple)
        else (),
        **(
            {"headers": {str(key): str(value) for key, value in headers.items()}}
            if isinstance(headers, Mapping)
            else {}
        ),
    )


def normalise_list(body: object) -> SubscriptionList | None:
    """The list answer: an array, or an object with an array in it (paged); None if it is neither (Q31)."""
    complete = True
    if isinstance(body, Mapping):
        places = [body, *(value for value in (body.get("meta"), body.get("pagination"), body.get("links")) if value)]
        complete = not any(place.get(key) for place in places if isinstance(place, Mapping) for key in MORE)
        body = next((body[key] for key in LISTS if isinstance(body.get(key), list)), None)
    if not isinstance(body, list):
        return None
    found = [normalise(record) for record in body]
    if any(record is None for record in found):
        return None
    return SubscriptionList(tuple(record for record in found if record is not None), complete)
