"""The API as an ASGI application: faults and quirks around the routes of the brief and the specification."""

import asyncio
import collections
import logging
from typing import Any

from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from octo_sync.sandbox import api_availability, api_bookings, api_subscriptions, capabilities, render_products
from octo_sync.sandbox.broken import HTML, break_body
from octo_sync.sandbox.capabilities import View
from octo_sync.sandbox.catalog import SUPPLIER_ID
from octo_sync.sandbox.config import BASE_PATH, Token
from octo_sync.sandbox.errors import OctoError, bad_request, not_found, unauthorized
from octo_sync.sandbox.limits import Limits
from octo_sync.sandbox.messages import Answer, Call, ok, refused
from octo_sync.sandbox.service import Service
from octo_sync.sandbox.shape import shaped
from octo_sync.sandbox.themes import LANGUAGES
from octo_sync.sandbox.wire import abort, transmit

LOG = logging.getLogger("octo_sync.sandbox")
MAX_BODY = 10_000_000


class Api:
    """Serves everything below the base path.

    Args:
        service: the service behind.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._limits = Limits(service)
        self.closing = asyncio.Event()
        self.log: collections.deque[dict[str, Any]] = collections.deque(maxlen=service.config.request_log)

    def reset(self) -> None:
        """Forget counted requests and the log."""
        self._limits.reset()
        self.log.clear()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        service, request = self._service, Request(scope, receive)
        raw = scope["path"][len(BASE_PATH) :]
        path = raw.rstrip("/") or "/"
        call = Call(request.method, path, request.query_params, request.headers, await request.body())
        service.tick()
        entry: dict[str, Any] = {
            "at": service.clock.seconds(),
            "method": call.method,
            "path": raw,
            "query": request.url.query,
            "request_bytes": len(call.body),
            "capabilities": call.headers.get("octo-capabilities"),
            "token": None,
            "status": None,
        }
        self.log.append(entry)
        if fault := service.faults.pick("latency", call.method, path):
            await self._wait(float(fault.params["seconds"]))
        fault = service.faults.pick("hang", call.method, path)
        if fault is not None or self._hangs(call):
            await self._wait(float(fault.params["seconds"]) if fault else 3_600.0)
            abort(send)
        answer = self._answer(call, raw, entry)
        entry["status"] = answer.status
        entry["response_bytes"] = len(answer.body)
        created = call.method == "POST" and path.startswith("/notifications/") and answer.status < 300  # noqa: PLR2004
        if created and (fault := service.faults.pick("create_timeout", call.method, path)):
            await self._wait(float(fault.params["seconds"]))
            abort(send)
        await transmit(answer, service.faults, call, send, self._wait)

    async def _wait(self, seconds: float) -> None:
        """Wait, or until the server closes."""
        closing = asyncio.ensure_future(self.closing.wait())
        sleeping = asyncio.ensure_future(self._service.sleep(seconds))
        try:
            await asyncio.wait({closing, sleeping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            closing.cancel()
            sleeping.cancel()

    def _hangs(self, call: Call) -> bool:
        asked = call.method == "GET" and call.path.startswith("/products") and call.headers.get("octo-capabilities")
        return bool(asked and self._service.quirks["capability_header_hangs_on_products"])

    def _answer(self, call: Call, raw: str, entry: dict[str, Any]) -> Answer:
        early = self._fault_before(call) or self._limits.refuse(call.path) or self._moved(raw)
        if early is not None:
            return self._limits.counted(early, call.path)
        found: dict[str, str] = {}
        try:
            call.token, found = self._entered(call)
            entry["token"] = call.token.name
            switched: dict[str, bool] = {name: name in found for name in capabilities.KNOWN}
            call.view = View(**switched, language=capabilities.language(call.headers.get("accept-language", "")))
            call.parts = self._unprefixed(call.path).split("/")[1:]
            answer = self._routed(call)
        except OctoError as error:
            answer = self._refused(error)
        except Exception:  # a service answers, whatever happens inside
            LOG.exception("action=answer method=%s path=%s outcome=error", call.method, call.path)
            answer = self._refused(OctoError(500, "INTERNAL_SERVER_ERROR", "The sandbox failed; see its log."))
        answer = shaped(answer, self._service.quirks, call)
        self._decorate(answer, call.view, found)
        return break_body(self._limits.counted(answer, call.path), self._service.faults, call)

    def _entered(self, call: Call) -> tuple[Token, dict[str, str]]:
        """Whose request it is and which capabilities it switches on."""
        if len(call.body) > MAX_BODY:
            raise bad_request("The body is too large.")
        token = self._service.tokens.get(_bearer(call))
        if token is None and self._service.quirks["no_authentication"]:
            token = next((one for one in self._service.config.tokens if one.sees_all), None)
        if token is None:
            raise unauthorized()
        header = call.headers.get("octo-capabilities")
        if header is None and call.path != "/capabilities":
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

    def _fault_before(self, call: Call) -> Answer | None:
        faults, method, path = self._service.faults, call.method, call.path
        if fault := faults.pick("status_429", method, path):
            answer = refused(OctoError(429, "TOO_MANY_REQUESTS", "Too many requests."))
            if fault.params["retry_after"] is not None:
                answer.headers.append((str(fault.params["header"]), str(fault.params["retry_after"])))
            return answer
        if fault := faults.pick("status_5xx", method, path):
            return refused(OctoError(int(fault.params["code"]), "INTERNAL_SERVER_ERROR", "Please try again."))
        if faults.pick("html_502", method, path):
            return Answer(502, HTML, "text/html")
        if fault := faults.pick("redirect", method, path):
            return Answer(302, b"", None, [("Location", str(fault.params["location"]))])
        token = self._service.tokens.get(_bearer(call))
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
        match call.method, call.parts:
            case "GET", ["supplier"]:
                answer = ok(render_products.supplier(service.base_url, call.view))
            case "GET", ["products"]:
                products = service.store.products.values()
                answer = ok([service.encoded(render_products.product, one, call.view) for one in products])
            case "GET", ["products", product_id]:
                answer = ok(service.encoded(render_products.product, service.product(product_id), call.view))
            case "POST", ["availability"]:
                answer = api_availability.answer(service, call, by_day=False)
            case "POST", ["availability", "calendar"] if not quirks["no_calendar"]:
                answer = api_availability.answer(service, call, by_day=True)
            case "GET", ["capabilities"] if not quirks["no_capabilities_endpoint"]:
                absent = capabilities.short(quirks["absent_capability"])
                answer = ok([_capability(name) for name in capabilities.KNOWN if name not in absent])
            case _, ["bookings", *_]:
                answer = api_bookings.route(service, call)
            case _, ["notifications", *_] if "notifications" not in capabilities.short(quirks["absent_capability"]):
                answer = api_subscriptions.route(service, call)
            case _:
                raise not_found("This path")
        return answer

    def _decorate(self, answer: Answer, view: View, found: dict[str, str]) -> None:
        quirks = self._service.quirks
        if not quirks["no_capability_echo"]:
            answer.headers.append(("Octo-Capabilities", ", ".join(found.values())))
        if view.content:
            answer.headers.append(("Content-Language", view.language))
            answer.headers.append((quirks["available_languages_header"], ", ".join(LANGUAGES)))


def _bearer(call: Call) -> str:
    kind, _, secret = call.headers.get("authorization", "").partition(" ")
    return secret.strip() if kind.lower() == "bearer" else ""


def _capability(name: str) -> dict[str, object]:
    return {"id": f"octo/{name}", "revision": 1, "required": False, "dependencies": [], "docs": None}
