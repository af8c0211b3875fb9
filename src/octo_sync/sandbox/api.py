"""The API as an ASGI application: faults and quirks around the routes of the brief and the specification."""

import asyncio
import collections
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qsl

from octo_sync.sandbox import api_availability, capabilities, render_products
from octo_sync.sandbox.api_bookings import BookingRoutes
from octo_sync.sandbox.api_subscriptions import SubscriptionRoutes
from octo_sync.sandbox.bookings import Desk
from octo_sync.sandbox.broken import HTML, break_body
from octo_sync.sandbox.capabilities import View
from octo_sync.sandbox.catalog import SUPPLIER_ID
from octo_sync.sandbox.config import BASE_PATH, Token
from octo_sync.sandbox.errors import OctoError, bad_request, invalid, not_found, unauthorized
from octo_sync.sandbox.limits import Limits
from octo_sync.sandbox.messages import Answer, Call, ok, refused
from octo_sync.sandbox.service import Service
from octo_sync.sandbox.shape import shaped
from octo_sync.sandbox.themes import LANGUAGES
from octo_sync.sandbox.wire import Send, abort, read_body, transmit

LOG = logging.getLogger("octo_sync.sandbox")
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


class Api:
    """Serves everything below the base path.

    Args:
        service: the service behind.
        desk: the booking flow.
    """

    def __init__(self, service: Service, desk: Desk) -> None:
        self._service = service
        self._bookings = BookingRoutes(service, desk)
        self._subscriptions = SubscriptionRoutes(service)
        self._limits = Limits(service)
        self.closing = asyncio.Event()
        self.log: collections.deque[dict[str, Any]] = collections.deque(maxlen=service.config.request_log)

    def reset(self) -> None:
        """Forget counted requests and the log."""
        self._limits.reset()
        self.log.clear()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        service = self._service
        method = scope["method"]
        raw = scope["path"][len(BASE_PATH) :]
        path = raw.rstrip("/") or "/"
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        body = await read_body(receive)
        service.tick()
        entry: dict[str, Any] = {
            "at": service.clock.seconds(),
            "method": method,
            "path": raw,
            "query": scope["query_string"].decode("latin-1"),
            "request_bytes": len(body or b""),
            "capabilities": headers.get("octo-capabilities"),
            "token": None,
            "status": None,
        }
        self.log.append(entry)
        fault = service.faults.pick("latency", method, path)
        if fault is not None:
            await self._wait(float(fault.params["seconds"]))
        fault = service.faults.pick("hang", method, path)
        if fault is not None or self._hangs(method, path, headers):
            await self._wait(float(fault.params["seconds"]) if fault else 3_600.0)
            abort(send)
        if body is None:
            answer = refused(bad_request("The body is too large."))
        else:
            query = dict(parse_qsl(entry["query"], keep_blank_values=True))
            answer = self._answer(Call(method, path, query, headers, body), raw, entry)
        entry["status"] = answer.status
        entry["response_bytes"] = len(answer.body)
        created = method == "POST" and path.startswith("/notifications/") and answer.status < 300  # noqa: PLR2004
        if created and (fault := service.faults.pick("create_timeout", method, path)):
            await self._wait(float(fault.params["seconds"]))
            abort(send)
        await transmit(answer, service, method, path, send, self._wait)

    async def _wait(self, seconds: float) -> None:
        """Wait, or until the server closes."""
        closing = asyncio.ensure_future(self.closing.wait())
        sleeping = asyncio.ensure_future(self._service.sleep(seconds))
        try:
            await asyncio.wait({closing, sleeping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            closing.cancel()
            sleeping.cancel()

    def _hangs(self, method: str, path: str, headers: dict[str, str]) -> bool:
        quirk = self._service.quirks["capability_header_hangs_on_products"]
        return bool(quirk and method == "GET" and path.startswith("/products") and headers.get("octo-capabilities"))

    def _answer(self, call: Call, raw: str, entry: dict[str, Any]) -> Answer:
        method, path, headers = call.method, call.path, call.headers
        early = self._fault_before(method, path, headers) or self._limits.refuse(path) or self._moved(raw)
        if early is not None:
            self._limits.decorate(early, path)
            self._limits.count(early.status)
            return early
        found: dict[str, str] = {}
        try:
            call.token, found = self._entered(path, headers)
            entry["token"] = call.token.name
            call.view = capabilities.view(found, headers.get("accept-language", ""))
            call.path = self._unprefixed(path)
            answer = self._routed(call)
        except OctoError as error:
            answer = self._refused(error)
        except Exception:  # a service answers, whatever happens inside
            LOG.exception("action=answer method=%s path=%s outcome=error", method, path)
            answer = self._refused(OctoError(500, "INTERNAL_SERVER_ERROR", "The sandbox failed; see its log."))
        answer = shaped(answer, self._service.quirks, method, path)
        self._decorate(answer, call.view, found)
        self._limits.decorate(answer, path)
        self._limits.count(answer.status)
        return break_body(answer, self._service.faults, method, path)

    def _entered(self, path: str, headers: dict[str, str]) -> tuple[Token, dict[str, str]]:
        """Whose request it is and which capabilities it switches on."""
        token = self._service.tokens.get(_bearer(headers))
        if token is None and self._service.quirks["no_authentication"]:
            token = next((one for one in self._service.config.tokens if one.sees_all), None)
        if token is None:
            raise unauthorized()
        header = headers.get("octo-capabilities")
        if header is None and path != "/capabilities":
            raise bad_request("The header Octo-Capabilities is required; it may be empty.")
        return token, capabilities.requested(header or "", self._service.quirks)

    def _refused(self, error: OctoError) -> Answer:
        style = self._service.quirks["error_style"]
        if style == "ventrata" and error.status == 401:  # noqa: PLR2004
            error = OctoError(403, "FORBIDDEN", error.message)
        missing = error.status == 404 or error.code.startswith("INVALID_")  # noqa: PLR2004
        if style == "plain404" and missing:
            return Answer(404, b"Not Found", "text/plain")
        answer = refused(error)
        if style == "422" and error.code == "UNPROCESSABLE_ENTITY":
            answer.status = 422
        return answer

    def _fault_before(self, method: str, path: str, headers: dict[str, str]) -> Answer | None:
        faults = self._service.faults
        fault = faults.pick("status_429", method, path)
        if fault is not None:
            answer = refused(OctoError(429, "TOO_MANY_REQUESTS", "Too many requests."))
            if fault.params["retry_after"] is not None:
                answer.headers.append((str(fault.params["header"]), str(fault.params["retry_after"])))
            return answer
        fault = faults.pick("status_5xx", method, path)
        if fault is not None:
            return refused(OctoError(int(fault.params["code"]), "INTERNAL_SERVER_ERROR", "Please try again."))
        if faults.pick("html_502", method, path):
            return Answer(502, HTML, "text/html")
        fault = faults.pick("redirect", method, path)
        if fault is not None:
            return Answer(302, b"", None, [("Location", str(fault.params["location"]))])
        token = self._service.tokens.get(_bearer(headers))
        if faults.pick("unauthorized", method, path, token=token.name if token else None):
            return self._refused(unauthorized())
        return None

    def _moved(self, raw: str) -> Answer | None:
        if raw.endswith("/") and len(raw) > 1 and self._service.quirks["trailing_slash_redirect"]:
            return Answer(301, b"", None, [("Location", f"{BASE_PATH}{raw.rstrip('/')}")])
        return None

    def _unprefixed(self, path: str) -> str:
        if not self._service.quirks["supplier_path_prefix"]:
            return path
        prefix = f"/suppliers/{SUPPLIER_ID}"
        if path == prefix:
            return "/supplier"
        if not path.startswith(f"{prefix}/"):
            raise not_found("This path")
        return path[len(prefix) :]

    def _routed(self, call: Call) -> Answer:
        service, quirks = self._service, self._service.quirks
        match call.method, call.path.split("/")[1:]:
            case "GET", ["supplier"]:
                answer = ok(render_products.supplier(service.base_url, call.view))
            case "GET", ["products"]:
                products = service.store.products.values()
                answer = ok([service.encoded(render_products.product, one, call.view) for one in products])
            case "GET", ["products", product_id]:
                product = service.product(product_id)
                if product is None:
                    raise invalid("productId", product_id)
                answer = ok(service.encoded(render_products.product, product, call.view))
            case "POST", ["availability"]:
                answer = self._availability(call)
            case "POST", ["availability", "calendar"] if not quirks["no_calendar"]:
                answer = api_availability.answer(service, call, by_day=True)
            case "GET", ["capabilities"] if not quirks["no_capabilities_endpoint"]:
                absent = capabilities.short(quirks["absent_capability"])
                answer = ok([_capability(name) for name in capabilities.KNOWN if name not in absent])
            case _, ["bookings", *_]:
                answer = self._bookings.route(call)
            case _, ["notifications", *_] if "notifications" not in capabilities.short(quirks["absent_capability"]):
                answer = self._subscriptions.route(call)
            case _:
                raise not_found("This path")
        return answer

    def _availability(self, call: Call) -> Answer:
        if self._service.faults.any():
            body = call.json()
            pair = {"product_id": body.get("productId"), "option_id": body.get("optionId")}
            if self._service.faults.pick("option_400", call.method, call.path, **pair):
                raise bad_request("This option cannot be asked.")
        return api_availability.answer(self._service, call, by_day=False)

    def _decorate(self, answer: Answer, view: View, found: dict[str, str]) -> None:
        quirks = self._service.quirks
        if not quirks["no_capability_echo"]:
            answer.headers.append(("Octo-Capabilities", ", ".join(found.values())))
        if view.content:
            answer.headers.append(("Content-Language", view.language))
            answer.headers.append((quirks["available_languages_header"], ", ".join(LANGUAGES)))


def _bearer(headers: dict[str, str]) -> str:
    kind, _, secret = headers.get("authorization", "").partition(" ")
    return secret.strip() if kind.lower() == "bearer" else ""


def _capability(name: str) -> dict[str, object]:
    return {"id": f"octo/{name}", "revision": 1, "required": False, "dependencies": [], "docs": None}
