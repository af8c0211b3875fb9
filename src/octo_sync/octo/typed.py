"""Answers as records: any call of `endpoints`, and subscriptions, which services answer in shapes of their own."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from msgspec import Struct

from octo_sync.errors import AnswerInvalid, RequestRefused
from octo_sync.octo import endpoints, records
from octo_sync.octo.answer import Answer, Reply
from octo_sync.octo.endpoints import Call
from octo_sync.octo.quirks import other_path_spelling
from octo_sync.octo.subscriptions import SubscriptionList, next_page, normalise, normalise_list

T = TypeVar("T")

PAGES = 50
"""Pages of a list that are read at most: nobody has thousands of subscriptions, and a list may have no end (R12)."""


class Typed(ABC):
    """The typed half of the client. Everything goes through `send`.

    Each method raises what `send` raises, and `AnswerInvalid` when a record is not what it should be, with the path of
    the first mistake and never a value.
    """

    @abstractmethod
    async def send(self, call: Call[Any]) -> Answer:
        """Carry out one call."""

    async def ask(self, call: Call[T]) -> Reply[T]:
        """Carry out one call and read the record that its endpoint answers with."""
        answer = await self.send(call)
        otherwise = f"{call.operation} ({call.method} {call.path}) was answered with a record that is not OCTO's"
        return Reply(_settled(answer.read(call.answers, otherwise)), answer)

    async def list_subscriptions(self) -> Reply[SubscriptionList]:
        """All webhook subscriptions of the token, whatever shape they come in, page after page (Q31).

        `complete` is False when the list goes on and the next page cannot be told, or there are too many. The answer is
        the last page's.
        """
        query: dict[str, str] = {}
        found: dict[str, records.Subscription] = {}
        for _ in range(PAGES):
            answer = await self.send(endpoints.list_subscriptions(params=query))
            body = answer.json()
            page = normalise_list(body)
            if page is None:
                what = "list_subscriptions was answered with no list of subscriptions"
                raise AnswerInvalid(what, status=answer.status)
            before = len(found)
            found.update({each.id: each for each in page.subscriptions})
            following = next_page(answer.headers, body, query)
            if following is None:
                return Reply(SubscriptionList(tuple(found.values()), page.complete), answer)
            if following == query or len(found) == before:
                break  # the same page again
            query = following
        return Reply(SubscriptionList(tuple(found.values()), complete=False), answer)

    async def get_subscription(self, subscription_id: str) -> Reply[records.Subscription]:
        """One webhook subscription."""
        return self._subscription(await self.send(endpoints.get_subscription(subscription_id)))

    async def create_subscription(
        self, url: str, notification_types: Iterable[str], headers: Mapping[str, str] | None = None
    ) -> Reply[records.Subscription]:
        """Subscribe `url`; `headers` come with every delivery. Tries both spellings of the path (Q30).

        Not idempotent: when this raises anything but `RequestRefused`, list before creating again.
        """
        call = endpoints.create_subscription(url, notification_types, headers)
        other = None
        try:
            answer = await self.send(call)
        except RequestRefused as refusal:
            other = other_path_spelling(call.path) if refusal.status in {404, 405} else None
            if other is None:
                raise
        if other is not None:
            answer = await self.send(replace(call, path=other))
        return self._subscription(answer)

    async def update_subscription(
        self,
        subscription_id: str,
        url: str,
        notification_types: Iterable[str],
        headers: Mapping[str, str] | None = None,
    ) -> Reply[records.Subscription | None]:
        """Replace everything about a subscription; None when the service answers without it, which the brief allows."""
        answer = await self.send(endpoints.update_subscription(subscription_id, url, notification_types, headers))
        return Reply(normalise(answer.json()) if answer.body.lstrip()[:1] == b"{" else None, answer)

    async def delete_subscription(self, subscription_id: str) -> Answer:
        """End a subscription."""
        return await self.send(endpoints.delete_subscription(subscription_id))

    def _subscription(self, answer: Answer) -> Reply[records.Subscription]:
        record = normalise(answer.json())
        if record is None:
            what = f"{answer.call.operation} was answered with something that is no subscription"
            raise AnswerInvalid(f"{what}: list the subscriptions to see what exists", status=answer.status)
        return Reply(record, answer)


def _settled(value: T) -> T:
    """A record in the one form it is promised in: ids as text (Q25), opening hours as a list (Q24)."""
    if isinstance(value, list):
        for each in value:
            _settled(each)
    elif isinstance(value, Struct):
        for name in value.__struct_fields__:
            held = getattr(value, name)
            if isinstance(held, int) and (name == "id" or name.endswith("_id")):
                setattr(value, name, str(held))
            elif isinstance(held, records.OpeningHours):
                setattr(value, name, [held])
            elif isinstance(held, list | Struct):
                _settled(held)
    return value
