"""Every OCTO operation as a typed method: arguments as in `endpoints`, a record and its answer as the result."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType

from octo_sync.errors import AnswerInvalid, RequestRefused
from octo_sync.octo import endpoints, records
from octo_sync.octo.answer import Answer, Reply
from octo_sync.octo.endpoints import Call, Json
from octo_sync.octo.quirks import other_path_spelling
from octo_sync.octo.subscriptions import SubscriptionList, next_page, normalise, normalise_list

__all__ = ["Operations"]

T = TypeVar("T")

PAGES = 50
"""Pages of a list that are read at most: nobody has thousands of subscriptions, and a list may have no end (R12)."""


class Operations(ABC):
    """The typed half of the client. Everything goes through `send`.

    Each method raises what `send` raises, and `AnswerInvalid` when a record is not what it should be, with the path of
    the first mistake and never a value.
    """

    @abstractmethod
    async def send(self, call: Call, *, on_start: Callable[[], int] | None = None, patient: bool = False) -> Answer:
        """Carry out one call."""

    async def supplier(self, *, language: str | None = None) -> Reply[records.Supplier]:
        """The supplier behind the token."""
        return await self._read(endpoints.supplier(language=language), records.Supplier)

    async def products(
        self, *, language: str | None = None, params: Mapping[str, str] | None = None
    ) -> Reply[list[records.Product]]:
        """All products."""
        return await self._read(endpoints.products(language=language, params=params), list[records.Product])

    async def product(self, product_id: str, *, language: str | None = None) -> Reply[records.Product]:
        """One product; `NotFound` when the service says that there is none."""
        return await self._read(endpoints.product(product_id, language=language), records.Product)

    async def availability(
        self,
        product_id: str,
        option_id: str,
        start: date | None = None,
        end: date | None = None,
        *,
        local_date: date | None = None,
        availability_ids: Sequence[str] | None = None,
        units: Sequence[Json] | UnsetType = UNSET,
        currency: str | UnsetType = UNSET,
        offer_code: str | UnsetType = UNSET,
        more: Json | None = None,
        language: str | None = None,
    ) -> Reply[list[records.Availability]]:
        """The departures of one option, by days, one day or ids."""
        call = endpoints.availability(
            product_id,
            option_id,
            start,
            end,
            local_date=local_date,
            availability_ids=availability_ids,
            units=units,
            currency=currency,
            offer_code=offer_code,
            more=more,
            language=language,
        )
        return await self._read(call, list[records.Availability])

    async def calendar(
        self,
        product_id: str,
        option_id: str,
        start: date,
        end: date,
        *,
        units: Sequence[Json] | UnsetType = UNSET,
        currency: str | UnsetType = UNSET,
        more: Json | None = None,
        language: str | None = None,
    ) -> Reply[list[records.AvailabilityCalendar]]:
        """One record per day."""
        call = endpoints.calendar(
            product_id, option_id, start, end, units=units, currency=currency, more=more, language=language
        )
        return await self._read(call, list[records.AvailabilityCalendar])

    async def reserve(
        self,
        product_id: str,
        option_id: str,
        availability_id: str | UnsetType | None = UNSET,
        *,
        unit_items: Sequence[Json],
        uuid: str | UnsetType = UNSET,
        expiration_minutes: int | UnsetType = UNSET,
        notes: str | UnsetType | None = UNSET,
        reseller_reference: str | UnsetType | None = UNSET,
        contact: Json | UnsetType = UNSET,
        currency: str | UnsetType = UNSET,
        more: Json | None = None,
        idempotent: bool = False,
    ) -> Reply[records.Booking]:
        """A reservation, on hold."""
        call = endpoints.reserve(
            product_id,
            option_id,
            availability_id,
            unit_items=unit_items,
            uuid=uuid,
            expiration_minutes=expiration_minutes,
            notes=notes,
            reseller_reference=reseller_reference,
            contact=contact,
            currency=currency,
            more=more,
            idempotent=idempotent,
        )
        return await self._read(call, records.Booking)

    async def bookings(
        self,
        *,
        start: date | None = None,
        end: date | None = None,
        local_date: date | None = None,
        reseller_reference: str | None = None,
        supplier_reference: str | None = None,
        product_id: str | None = None,
        option_id: str | None = None,
        params: Mapping[str, str] | None = None,
    ) -> Reply[list[records.Booking]]:
        """The bookings of this token that match; an empty list proves nothing (Q10)."""
        call = endpoints.bookings(
            start=start,
            end=end,
            local_date=local_date,
            reseller_reference=reseller_reference,
            supplier_reference=supplier_reference,
            product_id=product_id,
            option_id=option_id,
            params=params,
        )
        return await self._read(call, list[records.Booking])

    async def booking(self, uuid: str) -> Reply[records.Booking]:
        """One booking; `NotFound` when the service says that there is none."""
        return await self._read(endpoints.booking(uuid), records.Booking)

    async def confirm(
        self,
        uuid: str,
        *,
        contact: Json | None = None,
        reseller_reference: str | UnsetType | None = UNSET,
        email_receipt: bool | UnsetType = UNSET,
        unit_items: Sequence[Json] | UnsetType = UNSET,
        more: Json | None = None,
    ) -> Reply[records.Booking]:
        """Turn a reservation into a booking."""
        call = endpoints.confirm(
            uuid,
            contact=contact,
            reseller_reference=reseller_reference,
            email_receipt=email_receipt,
            unit_items=unit_items,
            more=more,
        )
        return await self._read(call, records.Booking)

    async def update(
        self,
        uuid: str,
        *,
        product_id: str | UnsetType = UNSET,
        option_id: str | UnsetType = UNSET,
        availability_id: str | UnsetType = UNSET,
        reseller_reference: str | UnsetType | None = UNSET,
        expiration_minutes: int | UnsetType = UNSET,
        notes: str | UnsetType | None = UNSET,
        email_receipt: bool | UnsetType = UNSET,
        unit_items: Sequence[Json] | UnsetType = UNSET,
        contact: Json | UnsetType = UNSET,
        more: Json | None = None,
    ) -> Reply[records.Booking]:
        """Change a booking; what is not given stays."""
        call = endpoints.update(
            uuid,
            product_id=product_id,
            option_id=option_id,
            availability_id=availability_id,
            reseller_reference=reseller_reference,
            expiration_minutes=expiration_minutes,
            notes=notes,
            email_receipt=email_receipt,
            unit_items=unit_items,
            contact=contact,
            more=more,
        )
        return await self._read(call, records.Booking)

    async def cancel(
        self,
        uuid: str,
        *,
        reason: str | UnsetType | None = UNSET,
        force: bool | UnsetType = UNSET,
        by_delete: bool = False,
    ) -> Reply[records.Booking]:
        """Cancel a booking or give up a reservation."""
        call = endpoints.cancel(uuid, reason=reason, force=force, by_delete=by_delete)
        return await self._read(call, records.Booking)

    async def extend(self, uuid: str, *, expiration_minutes: int | UnsetType = UNSET) -> Reply[records.Booking]:
        """Keep a reservation on hold for longer."""
        return await self._read(endpoints.extend(uuid, expiration_minutes=expiration_minutes), records.Booking)

    async def capabilities(self) -> Reply[list[records.Capability]]:
        """What the service offers; not every service has this operation (Q23)."""
        return await self._read(endpoints.capabilities(), list[records.Capability])

    async def list_subscriptions(self, *, params: Mapping[str, str] | None = None) -> Reply[SubscriptionList]:
        """All webhook subscriptions of the token, whatever shape they come in, page after page (Q31).

        `complete` is False when the list goes on and the next page cannot be told, or there are too many. The answer is
        the last page's.
        """
        query = dict(params or {})
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
        record = None
        if answer.body.lstrip()[:1] == b"{":
            record = normalise(answer.json())
        return Reply(record, answer)

    async def delete_subscription(self, subscription_id: str) -> Answer:
        """End a subscription."""
        return await self.send(endpoints.delete_subscription(subscription_id))

    def _subscription(self, answer: Answer) -> Reply[records.Subscription]:
        record = normalise(answer.json())
        if record is None:
            what = f"{answer.call.operation} was answered with something that is no subscription"
            raise AnswerInvalid(f"{what}: list the subscriptions to see what exists", status=answer.status)
        return Reply(record, answer)

    async def _read(self, call: Call, kind: type[T]) -> Reply[T]:
        answer = await self.send(call)
        problem = ""
        try:
            return Reply(_settled(msgspec.json.decode(answer.body, type=kind)), answer)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            problem = type(error).__name__ if isinstance(error, UnicodeDecodeError) else str(error)
        raise AnswerInvalid(
            f"{call.operation} ({call.method} {call.path}) was answered with a record that is not OCTO's ({problem}); "
            "nothing of it was used",
            status=answer.status,
        )


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
