"""The control plane: /_sandbox/…, outside the API."""

# ruff: noqa: E501 - the routes read as a table, one per line

import datetime as dt
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from octo_sync.sandbox import state
from octo_sync.sandbox.admin import Admin
from octo_sync.sandbox.api import Api
from octo_sync.sandbox.api_availability import date_of
from octo_sync.sandbox.clock import utc_text
from octo_sync.sandbox.config import Token
from octo_sync.sandbox.errors import OctoError, bad_request, not_found
from octo_sync.sandbox.faults import CATALOGUE as FAULTS
from octo_sync.sandbox.faults import specs_of
from octo_sync.sandbox.messages import json_object, json_value
from octo_sync.sandbox.quirks import CATALOGUE as QUIRKS
from octo_sync.sandbox.service import Service
from octo_sync.sandbox.traffic import Traffic

LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost", "testclient"})
Handler = Callable[[Request], Awaitable[object]]


def _json(value: object, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")


class Control:
    """Answers the control routes.

    Args:
        service: the service behind.
        api: whose request log is shown.
    """

    def __init__(self, service: Service, api: Api) -> None:
        self._service = service
        self._api = api
        self._admin = Admin(service)
        self._traffic = Traffic(service, self._admin)

    def routes(self) -> list[BaseRoute]:
        """The routes, guarded."""
        return [
            Route(f"/_sandbox{path}", self._guarded(handler), methods=methods)
            for path, methods, handler, _ in self._table()
        ]

    async def aclose(self) -> None:
        """Stop background traffic."""
        await self._traffic.stop()

    def _table(self) -> list[tuple[str, list[str], Handler, str]]:
        return [
            ("", ["GET"], self._discover, "This list: routes, faults and quirks."),
            ("/state", ["GET"], self._state, "The sandbox's own truth; ?token= restricts bookings to what it sees."),
            ("/state/availability", ["GET"], self._slots, "Slots; ?product_id &option_id &from &to, all when not named."),
            ("/state/summary", ["GET"], self._summary, "Counts, and totals per currency; ?token=."),
            ("/state/bookings/{uuid}", ["GET"], self._booking, "One booking in the sandbox's own shape."),
            ("/faults", ["GET", "PUT", "POST", "DELETE"], self._faults, "Fault switches: PUT replaces, POST adds, DELETE ?fault= clears."),
            ("/quirks", ["GET", "PUT", "DELETE"], self._quirks, "Quirk switches: PUT sets some, DELETE resets all."),
            ("/clock", ["GET", "PUT"], self._clock, "PUT any of now, offset, advance (seconds), freeze (true or false)."),
            ("/requests", ["GET", "DELETE"], self._requests, "The last API requests, without token values."),
            ("/deliveries", ["GET", "DELETE"], self._deliveries, "Webhook deliveries with their attempts."),
            ("/traffic", ["GET", "POST", "DELETE"], self._traffic_route, "POST {changes, kinds, seed, token} changes now; {rate, kinds, seed, token} so many a second until DELETE."),
            ("/admin/bookings/{uuid}", ["POST"], self._admin_booking, "An administrator's change of a booking."),
            ("/admin/products", ["POST"], self._admin_create, "Create a product: {copy_of, id, internal_name}."),
            ("/admin/products/{id}", ["PATCH", "DELETE"], self._admin_product, "Change or delete a product."),
            ("/admin/availability", ["POST"], self._admin_availability, "{product_id, option_id, from, to, action: close|open|reset|capacity, capacity}."),
            ("/admin/subscriptions/{id}", ["DELETE", "POST"], self._admin_subscription, "DELETE loses a subscription; POST duplicates it."),
            ("/reset", ["POST"], self._reset, "Back to the seeded data; faults and quirks off."),
        ]  # fmt: skip

    def _guarded(self, handler: Handler) -> Handler:
        async def guarded(request: Request) -> Response:
            host = request.client.host if request.client else ""
            if host not in LOOPBACK:
                return _json({"error": "The control plane answers loopback only."}, 403)
            self._service.tick()
            try:
                found = await handler(request)
            except (ValueError, TypeError) as error:
                return _json({"error": str(error)}, 400)
            except OctoError as error:
                return Response(error.body(), error.status, media_type="application/json")
            return found if isinstance(found, Response) else _json(found)

        return guarded

    async def _discover(self, _request: Request) -> object:
        return {
            "base_url": self._service.base_url,
            "routes": [
                {"path": f"/_sandbox{path}", "methods": methods, "summary": summary}
                for path, methods, _, summary in self._table()
            ],
            "faults": [
                {"fault": kind.name, "stage": kind.stage, "summary": kind.summary, "params": kind.params}
                for kind in FAULTS
            ],
            "quirks": [
                {"quirk": one.name, "default": one.default, "summary": one.summary, "source": one.source}
                | ({"choices": one.choices} if one.choices else {})
                for one in QUIRKS
            ],
            "traffic_kinds": list(Traffic.KINDS),
        }

    def _token(self, request: Request) -> Token | None:
        text = request.query_params.get("token")
        return None if text is None else self._service.token_named(text)

    async def _state(self, request: Request) -> object:
        return state.whole(self._service, self._token(request))

    async def _summary(self, request: Request) -> object:
        return state.summary(self._service, self._token(request))

    async def _booking(self, request: Request) -> object:
        booking = self._service.store.bookings.get(request.path_params["uuid"])
        if booking is None:
            raise not_found("The booking")
        return state.booking_json(self._service, booking)

    async def _slots(self, request: Request) -> object:
        store, query = self._service.store, request.query_params
        first = date_of(query, "from") if "from" in query else self._service.today.toordinal()
        last = date_of(query, "to") if "to" in query else store.last
        rows = state.availability(self._service, first, last, query.get("product_id"), query.get("option_id"))
        return Response(b'{"slots":[' + b",".join(rows) + b"]}", media_type="application/json")

    async def _faults(self, request: Request) -> object:
        faults = self._service.faults
        if request.method == "DELETE":
            faults.clear(request.query_params.get("fault"))
        elif request.method == "PUT":
            faults.replace(specs_of(json_value(await request.body())))
        elif request.method == "POST":
            faults.add(specs_of(json_value(await request.body())))
        return {"faults": faults.shown(), "fired": faults.fired}

    async def _quirks(self, request: Request) -> object:
        quirks = self._service.quirks
        if request.method == "DELETE":
            quirks.reset()
        elif request.method == "PUT":
            quirks.update(await _object(request))
        return {"quirks": quirks.values(), "active": quirks.active()}

    async def _clock(self, request: Request) -> object:
        clock = self._service.clock
        if request.method == "PUT":
            body = await _object(request)
            if "now" in body:
                clock.set(_instant(body["now"]))
            if "offset" in body:
                clock.advance(float(body["offset"]) - clock.offset)
            if "advance" in body:
                clock.advance(float(body["advance"]))
            if body.get("freeze") is True:
                clock.freeze()
            elif body.get("freeze") is False:
                clock.thaw()
            self._service.tick()
        return {
            "now": utc_text(clock.whole()),
            "seconds": clock.seconds(),
            "offset": clock.offset,
            "frozen": clock.frozen,
            "today": self._service.today.isoformat(),
        }

    async def _requests(self, request: Request) -> object:
        if request.method == "DELETE":
            self._api.log.clear()
        return {"requests": list(self._api.log)}

    async def _deliveries(self, request: Request) -> object:
        outbox = self._service.outbox
        if request.method == "DELETE":
            outbox.log.clear()
        return {
            "idle": outbox.idle,
            "events": self._service.events.counts,
            "deliveries": [delivery.shown() for delivery in outbox.log],
        }

    async def _traffic_route(self, request: Request) -> object:
        if request.method == "DELETE":
            await self._traffic.stop()
        elif request.method == "POST":
            body = await _object(request)
            if "rate" in body:
                await self._traffic.start(float(body["rate"]), body.get("kinds"), body.get("seed"), body.get("token"))
            if "changes" in body:
                made = self._traffic.run(int(body["changes"]), body.get("kinds"), body.get("seed"), body.get("token"))
                return {"changes": made, "running": self._traffic.running}
        return {"running": self._traffic.running, "made": self._traffic.made}

    async def _admin_booking(self, request: Request) -> object:
        booking = self._admin.booking(request.path_params["uuid"], await _object(request))
        return state.booking_json(self._service, booking)

    async def _admin_create(self, request: Request) -> object:
        return _json({"id": self._admin.create_product(await _object(request)).id}, 201)

    async def _admin_product(self, request: Request) -> object:
        if request.method == "DELETE":
            self._admin.delete_product(request.path_params["id"], silent=request.query_params.get("silent") == "true")
            return Response(status_code=204)
        return {"id": self._admin.update_product(request.path_params["id"], await _object(request)).id}

    async def _admin_availability(self, request: Request) -> object:
        return self._admin.availability(await _object(request))

    async def _admin_subscription(self, request: Request) -> object:
        subscription_id = request.path_params["id"]
        if request.method == "DELETE":
            self._admin.lose_subscription(subscription_id)
            return Response(status_code=204)
        return _json({"id": self._admin.double_subscription(subscription_id)}, 201)

    async def _reset(self, _request: Request) -> object:
        await self._traffic.stop()
        await self._service.outbox.close()
        self._service.outbox.log.clear()
        self._service.quirks.reset()
        self._service.faults.clear()
        self._service.build()
        self._api.reset()
        return state.summary(self._service)


def _instant(value: object) -> dt.datetime:
    instant = dt.datetime.fromisoformat(str(value))
    if instant.tzinfo is None:
        raise bad_request(f"'{value}' has no UTC offset.")
    return instant


async def _object(request: Request) -> dict[str, Any]:
    return json_object(await request.body())
