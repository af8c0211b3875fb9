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
from octo_sync.sandbox.bookings import Desk
from octo_sync.sandbox.clock import utc_text
from octo_sync.sandbox.config import Token
from octo_sync.sandbox.errors import OctoError, RefusedError
from octo_sync.sandbox.faults import CATALOGUE as FAULTS
from octo_sync.sandbox.faults import specs_of
from octo_sync.sandbox.quirks import CATALOGUE as QUIRKS
from octo_sync.sandbox.service import Service
from octo_sync.sandbox.traffic import Traffic

LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost", "testclient"})
Handler = Callable[[Request], Awaitable[Response]]


def _json(value: object, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")


class Control:
    """Answers the control routes.

    Args:
        service: the service behind.
        desk: the booking flow.
        api: whose request log is shown.
    """

    def __init__(self, service: Service, desk: Desk, api: Api) -> None:
        self._service = service
        self._api = api
        self._admin = Admin(service, desk)
        self._traffic = Traffic(service, desk, self._admin)

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
            if self._service.config.control_loopback_only and host not in LOOPBACK:
                return _json({"error": "The control plane answers loopback only."}, 403)
            self._service.tick()
            try:
                return await handler(request)
            except (ValueError, TypeError) as error:  # a RefusedError is a ValueError
                return _json({"error": str(error)}, 400)
            except OctoError as error:
                return Response(error.body(), error.status, media_type="application/json")

        return guarded

    async def _discover(self, request: Request) -> Response:
        del request
        return _json(
            {
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
        )

    def _token(self, request: Request) -> Token | None:
        text = request.query_params.get("token")
        if text is None:
            return None
        token = self._service.token_named(text)
        if token is None:
            raise RefusedError("There is no such token.")
        return token

    async def _state(self, request: Request) -> Response:
        return _json(state.whole(self._service, self._token(request)))

    async def _summary(self, request: Request) -> Response:
        return _json(state.summary(self._service, self._token(request)))

    async def _booking(self, request: Request) -> Response:
        booking = self._service.store.bookings.get(request.path_params["uuid"])
        if booking is None:
            return _json({"error": "There is no such booking."}, 404)
        return _json(state.booking_json(self._service, booking))

    async def _slots(self, request: Request) -> Response:
        store, query = self._service.store, request.query_params
        first = _date(query.get("from"), self._service.today.toordinal())
        last = _date(query.get("to"), store.last)
        rows = state.availability(self._service, first, last, query.get("product_id"), query.get("option_id"))

        return Response(b'{"slots":[' + b",".join(rows) + b"]}", media_type="application/json")

    async def _faults(self, request: Request) -> Response:
        faults = self._service.faults
        if request.method == "DELETE":
            faults.clear(request.query_params.get("fault"))
        elif request.method == "PUT":
            faults.replace(specs_of(await _body(request)))
        elif request.method == "POST":
            faults.add(specs_of(await _body(request)))
        return _json({"faults": faults.shown(), "fired": faults.fired})

    async def _quirks(self, request: Request) -> Response:
        quirks = self._service.quirks
        if request.method == "DELETE":
            quirks.reset()
        elif request.method == "PUT":
            quirks.update(await _object(request))
        return _json({"quirks": quirks.values(), "active": quirks.active()})

    async def _clock(self, request: Request) -> Response:
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
        return _json(
            {
                "now": utc_text(clock.whole()),
                "seconds": clock.seconds(),
                "offset": clock.offset,
                "frozen": clock.frozen,
                "today": self._service.today.isoformat(),
            }
        )

    async def _requests(self, request: Request) -> Response:
        if request.method == "DELETE":
            self._api.log.clear()
        return _json({"requests": list(self._api.log)})

    async def _deliveries(self, request: Request) -> Response:
        outbox = self._service.outbox
        if request.method == "DELETE":
            outbox.log.clear()
        return _json(
            {
                "idle": outbox.idle,
                "events": self._service.events.counts,
                "deliveries": [delivery.shown() for delivery in outbox.log],
            }
        )

    async def _traffic_route(self, request: Request) -> Response:
        if request.method == "DELETE":
            await self._traffic.stop()
        elif request.method == "POST":
            body = await _object(request)
            if "rate" in body:
                await self._traffic.start(float(body["rate"]), body.get("kinds"), body.get("seed"), body.get("token"))
            if "changes" in body:
                made = self._traffic.run(int(body["changes"]), body.get("kinds"), body.get("seed"), body.get("token"))
                return _json({"changes": made, "running": self._traffic.running})
        return _json({"running": self._traffic.running, "made": self._traffic.made})

    async def _admin_booking(self, request: Request) -> Response:
        booking = self._admin.booking(request.path_params["uuid"], await _object(request))
        return _json(state.booking_json(self._service, booking))

    async def _admin_create(self, request: Request) -> Response:
        return _json({"id": self._admin.create_product(await _object(request)).id}, 201)

    async def _admin_product(self, request: Request) -> Response:
        if request.method == "DELETE":
            self._admin.delete_product(request.path_params["id"], silent=request.query_params.get("silent") == "true")
            return Response(status_code=204)
        return _json({"id": self._admin.update_product(request.path_params["id"], await _object(request)).id})

    async def _admin_availability(self, request: Request) -> Response:
        return _json(self._admin.availability(await _object(request)))

    async def _admin_subscription(self, request: Request) -> Response:
        subscription_id = request.path_params["id"]
        if request.method == "DELETE":
            self._admin.lose_subscription(subscription_id)
            return Response(status_code=204)
        return _json({"id": self._admin.double_subscription(subscription_id)}, 201)

    async def _reset(self, request: Request) -> Response:
        del request
        await self._traffic.stop()
        await self._service.outbox.close()
        self._service.outbox.log.clear()
        self._service.quirks.reset()
        self._service.faults.clear()
        self._service.build()
        self._api.reset()
        return _json(state.summary(self._service))


def _date(text: str | None, otherwise: int) -> int:
    if text is None:
        return otherwise
    try:
        return dt.date.fromisoformat(text).toordinal()
    except ValueError as error:
        raise RefusedError(f"'{text}' is not a date (YYYY-MM-DD).") from error


def _instant(value: object) -> dt.datetime:
    try:
        instant = dt.datetime.fromisoformat(str(value))
    except ValueError as error:
        raise RefusedError(f"'{value}' is not an instant (ISO 8601 with offset).") from error
    if instant.tzinfo is None:
        raise RefusedError(f"'{value}' has no UTC offset.")
    return instant


async def _body(request: Request) -> object:
    try:
        return msgspec.json.decode(await request.body())
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RefusedError("The body is not valid JSON.") from error


async def _object(request: Request) -> dict[str, Any]:
    value = await _body(request)
    if not isinstance(value, dict):
        raise RefusedError("The body is not a JSON object.")
    return value
