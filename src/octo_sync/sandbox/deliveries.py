"""Webhook deliveries: sent with bounded concurrency, retried with exponential backoff. The only user of httpx here."""

import asyncio
import collections
import dataclasses
import itertools
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import httpx
import msgspec

from octo_sync.sandbox.nouns import Subscription

if TYPE_CHECKING:
    from octo_sync.sandbox.service import Service

KEPT = 20_000
_AT_ONCE = 8
Transport = httpx.AsyncBaseTransport
Sleep = Callable[[float], Awaitable[object]]


@dataclasses.dataclass(slots=True)
class Delivery:
    """One webhook call, through all its attempts."""

    id: int
    to: Subscription
    kind: str
    body: dict[str, Any]
    created: float
    state: str = "waiting"  # waiting | delivered | failed | lost | dropped
    attempts: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    held: list["Delivery"] = dataclasses.field(default_factory=list)  # sent after this one's first attempt

    def shown(self) -> dict[str, Any]:
        """The delivery as JSON; header names only, their values are secrets."""
        return {
            "id": self.id,
            "subscription_id": self.to.id,
            "token": self.to.token,
            "url": self.to.url,
            "header_names": sorted(self.to.headers),
            "notification_type": self.kind,
            "body": self.body,
            "created": self.created,
            "state": self.state,
            "attempts": self.attempts,
        }


class Outbox:
    """Sends deliveries on the running event loop; without one they wait for `start` or `drain`.

    Args:
        service: whose clock, faults and patience count.
        transport: an httpx transport, for receivers in the same process; the network when None.
    """

    def __init__(self, service: "Service", transport: Transport | None) -> None:
        self._service = service
        self._transport = transport
        self._ids = itertools.count(1)
        self._waiting: collections.deque[tuple[Delivery, float]] = collections.deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._held: list[Delivery] = []
        self._client: httpx.AsyncClient | None = None
        self._gate = asyncio.Semaphore(_AT_ONCE)
        self.log: collections.deque[Delivery] = collections.deque(maxlen=KEPT)

    def put(self, subscription: Subscription, kind: str, body: dict[str, Any]) -> None:
        """Send a webhook; faults decide whether, when and how often."""
        faults = self._service.faults
        delivery = Delivery(next(self._ids), subscription, kind, body, self._service.clock.seconds())
        self.log.append(delivery)
        if faults.pick("delivery_lost", "POST", kind):
            delivery.state = "lost"
            return
        if held := faults.pick("delivery_reordered", "POST", kind):
            self._held.append(delivery)
            self._queue(delivery, float(held.params["seconds"]))
            return
        delivery.held, self._held = self._held, []
        late = faults.pick("delivery_late", "POST", kind)
        self._queue(delivery, float(late.params["seconds"]) if late else 0.0)
        if faults.pick("delivery_doubled", "POST", kind):
            twin = dataclasses.replace(delivery, id=next(self._ids), attempts=[], held=[])
            self.log.append(twin)
            self._queue(twin, 0.0)

    def _queue(self, delivery: Delivery, delay: float) -> None:
        self._waiting.append((delivery, delay))
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return
        self.start()

    def start(self) -> None:
        """Begin sending what waits; needs a running loop."""
        while self._waiting:
            delivery, delay = self._waiting.popleft()
            task = asyncio.create_task(self._deliver(delivery, delay))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def drain(self) -> None:
        """Wait until nothing is on its way, retries included."""
        self.start()
        while self._tasks:
            await asyncio.wait(self._tasks)
            self.start()

    @property
    def idle(self) -> bool:
        """Whether nothing is waiting or on its way."""
        return not self._waiting and not self._tasks

    async def close(self) -> None:
        """Stop sending; what is unsent is dropped."""
        tasks, self._tasks = self._tasks, set()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def _deliver(self, delivery: Delivery, delay: float) -> None:
        config, sleep = self._service.config, self._service.sleep
        if delay:
            await sleep(delay)
        if delivery.state != "waiting":
            return  # held back by reordering and sent since
        delivery.state = "sending"
        for attempt in range(config.retry_attempts):
            if attempt:
                await sleep(min(config.retry_max, config.retry_base * 2.0 ** (attempt - 1)))
            done = await self._attempt(delivery)
            while delivery.held:
                self._queue(delivery.held.pop(0), 0.0)
            if done:
                delivery.state = "delivered"
                return
        delivery.state = "failed"

    async def _attempt(self, delivery: Delivery) -> bool:
        if self._client is None:
            timeout = self._service.config.delivery_timeout
            self._client = httpx.AsyncClient(transport=self._transport, timeout=timeout, trust_env=False)
        entry: dict[str, Any] = {"at": self._service.clock.seconds(), "status": None, "error": None}
        delivery.attempts.append(entry)
        headers = {**delivery.to.headers, "content-type": "application/json", "user-agent": "octo-sandbox"}
        try:
            async with self._gate:
                answer = await self._client.post(
                    delivery.to.url, content=msgspec.json.encode(delivery.body), headers=headers
                )
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            entry["error"] = type(error).__name__
            return False
        entry["status"] = answer.status_code
        return answer.is_success
