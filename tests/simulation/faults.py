"""The faults of a day: each a stretch of time in which something is wrong."""

import asyncio
import contextlib
import dataclasses
import json
from collections.abc import Awaitable, Callable
from functools import partial
from random import Random
from typing import Any

import httpx
from tests.simulation.loop import Killed
from tests.simulation.program import Program
from tests.simulation.wire import ToReceiver

from octo_sync.errors import OctoSyncError
from octo_sync.sandbox.quirks import BY_NAME as QUIRKS

__all__ = ["FORGED", "NAMED", "WINDOWS", "Window", "crash", "dealt", "pull"]

FORGED = "f0f0f0f0-0000-4000-8000-00000000f0f0"
"""A booking that only forged deliveries tell of: nothing may be kept of it, and nobody asked for it."""

CRASHES = (
    ("now", 0),
    ("before a delivery's commit", 2),
    ("before a delivery's commit", 2),
    ("after a delivery's commit", 2),
    ("before a journal commit", 6),
    ("after a journal commit", 6),
    ("before a warehouse commit", 4),
    ("after a warehouse commit", 4),
    *([("after a warehouse commit", 2)] * 3),
    ("between warehouse and journal", 2),
)
"""Where, and which time from now on at most."""
PLACES = (
    ("now", 0),
    *([("before a landing", 2), ("between warehouse and journal", 2)] * 2),
    ("before a journal write", 6),
    ("after a journal commit", 6),
    ("after a delivery's commit", 2),
)
"""Where a worker may stand still: nowhere where the server would wait for it."""


@dataclasses.dataclass(frozen=True)
class Window:
    name: str
    act: Callable[[Any], Awaitable[None]]


def _service(name, lasting, /, **params):
    """A fault of the service's own catalogue, for some time."""

    async def act(world):
        faults = world.sandbox.service.faults
        made = {
            "fault": name,
            **{key: value(world.random) if callable(value) else value for key, value in params.items()},
        }
        faults.add([made])
        if name == "read_lag":
            world.lag_until = world.loop.time() + lasting + 120
        if name in ("latency", "hang", "drip") and world.chance(0.5):
            await pull(world)
        await asyncio.sleep(world.random.uniform(lasting / 4, lasting))
        faults.clear(name)

    return Window(name, act)


async def pull(world, part="full"):
    """As a schedule would, now."""
    for program in world.programs:
        if program.alive and not program.frozen and program.keeps:
            # What keeps it from marking keeps its schedules from it too.
            with contextlib.suppress(OctoSyncError, Killed):
                program.context().run(program.keeper.pull, part)
                program.keeper.wake.set()


def _with_a_pull(name, lasting, /, **params):
    """The same, with a pull in it, so that it surely meets something."""
    inner = _service(name, lasting, **params)

    async def act(world):
        task = asyncio.ensure_future(inner.act(world))
        await asyncio.sleep(0)
        await pull(world)
        await task

    return Window(inner.name, act)


def _quirk(lasting, /, **values):
    async def act(world):
        quirks = world.sandbox.service.quirks
        quirks.update(values)
        await pull(world)
        await asyncio.sleep(world.random.uniform(lasting / 2, lasting))
        quirks.update({name: QUIRKS[name].default for name in values})

    return Window(next(iter(values)), act)


async def _lapsed_holds(world):
    """Holds lapse, stay listed, and are not found by their own id."""
    quirks = world.sandbox.service.quirks
    world.control._traffic.run(4, kinds=["reserve"], seed=world.random.random())
    await pull(world)
    quirks.update({"lapsed_holds_unreadable": True})
    await asyncio.sleep(40 * 60)
    await pull(world)
    quirks.update({"lapsed_holds_unreadable": False})


async def crash(world, down=(1.0, 90.0)):
    """One program dies somewhere, and another is started a while later."""
    program = _living(world)
    if program is None:
        return
    where, most = world.random.choice(CRASHES)
    if where == "now":
        program.kill("between")
    else:
        program.crash_at = where, world.random.randint(1, most)
        for _ in range(60):
            await asyncio.sleep(5 if down[1] > 10 else 0.5)
            if not program.alive:
                break
        else:
            if program.alive:
                program.kill("between")
    await asyncio.sleep(world.random.uniform(*down))
    if world.launch_missing():
        world.count("recovered after a crash")


async def still(world, seconds, within=300):
    """One program stands still somewhere, and goes on after so many seconds or more."""
    program = _living(world)
    if program is None:
        return
    where, most = world.random.choice(PLACES)
    if where != "now":
        program.still_for, program.still_at = seconds, (where, world.random.randint(1, most))
        for _ in range(within):
            await asyncio.sleep(1)
            if program.frozen or not program.alive:
                break
    if program.alive and not program.frozen:
        program.stand_still(seconds)
    while program.alive and program.frozen:  # noqa: ASYNC110 - the thread that stands still may end later than it was to
        await asyncio.sleep(1)


def _living(world) -> Program | None:
    living = [one for one in world.programs if one.alive and not one.frozen]
    return world.random.choice(living) if living else None


async def _crashes(world):
    for _ in range(world.random.choice((1, 2, 3))):
        if world.chance(0.5):
            await pull(world, "near")
        await crash(world)
        await asyncio.sleep(world.random.uniform(5, 60))


async def _restart(world):
    program = _living(world)
    if program is not None:
        await program.stop()
        world.count("stopped and started")
        await asyncio.sleep(world.random.uniform(0.5, 20))
        world.launch_missing()


async def _network(world):
    world.network_is_down = True
    await asyncio.sleep(world.random.uniform(10, 900))
    world.network_is_down = False


def _told(world):
    """Some changes of which the subscription hears."""
    own = [one.uuid for one in world.sandbox.service.store.bookings.values() if one.token == "all"]
    for uuid in own[:3]:
        world.control._admin.booking(uuid, {"notes": f"Note {world.random.randrange(1000)}"})


async def _disk(world):
    world.disk_is_full = True
    _told(world)
    await asyncio.sleep(world.random.uniform(3, 60))
    world.disk_is_full = False


async def _clock(world):
    world.machine_clock.off += world.random.choice((-7200, -3600, -30, 1, 45, 3600, 7200))
    world.count("clock put")
    await asyncio.sleep(world.random.uniform(60, 3600))
    world.machine_clock.off = 0.0


async def _second(world):
    """Two instances: one writer, both receive; then the first one ends, somehow."""
    first = _living(world)
    if first is None:
        return
    second = world.launch()
    await asyncio.sleep(world.random.uniform(5, 90))
    if first.alive and second.alive:
        if world.chance(0.5) or first.frozen:
            first.kill("between")
        else:
            await first.stop()
        world.count("second instance took over")


async def _subscription(kind, world):
    admin, known = world.control._admin, world.sandbox.service.store.subscriptions
    for name in [one.id for one in known.values() if one.token == "all"][:1]:
        if kind == "lost":
            admin.lose_subscription(name)
        elif kind == "doubled":
            admin.double_subscription(name)
        else:
            known[name] = dataclasses.replace(
                known[name],
                headers=known[name].headers if world.chance(0.5) else {},
                types=known[name].types[:1],
                url=known[name].url if world.chance(0.5) else "https://elsewhere.example.com/x",
            )
        world.count(f"subscription {kind}")


async def _forged(world):
    """Somebody who knows the address, but not the secret, tells of a booking there is none of."""
    sender = ToReceiver(world)
    body = json.dumps({"notificationType": "BOOKING_UPDATE", "data": {"uuid": FORGED}}).encode()
    for one in [one for one in world.sandbox.service.store.subscriptions.values() if one.token == "all"][:1]:
        headers = world.random.choice(({}, {name: value[::-1] for name, value in one.headers.items()}))
        for _ in range(world.random.choice((1, 5, 20))):
            with contextlib.suppress(httpx.HTTPError):
                answer = await sender.handle_async_request(
                    httpx.Request("POST", one.url, headers=headers, content=body)
                )
                if answer.status_code not in (401, 503):
                    world.fail(f"a forged delivery was answered {answer.status_code}")
                world.count("forged delivery refused", answer.status_code == 401)
            await asyncio.sleep(world.random.choice((0.0, 0.1, 30.0)))


async def _patched_bare(world):
    """An update loses the headers it does not repeat; one is due, because the subscription has lost types."""
    service = world.sandbox.service
    service.quirks.update({"patch_drops_headers": True})
    known = service.store.subscriptions
    for one in [one for one in known.values() if one.token == "all"][:1]:
        known[one.id] = dataclasses.replace(one, types=one.types[:1])
        for _ in range(60):
            # Its loss is seen at the next look at the subscriptions, which may be 50 minutes away.
            await asyncio.sleep(60)
            now = known.get(one.id)
            if now is None or len(now.types) > 1:
                break
        if now is not None and len(now.types) > 1:
            if not now.headers:
                world.fail("an update without headers removed the secret")
            world.count("updated whole where an update drops headers")
    service.quirks.update({"patch_drops_headers": False})


async def _created_without_answer(world):
    """The subscription is gone; making it anew succeeds, and the answer never comes."""
    service = world.sandbox.service
    before = service.faults.fired.get("create_timeout", 0)
    for name in [one.id for one in service.store.subscriptions.values() if one.token == "all"]:
        del service.store.subscriptions[name]
    service.faults.add([{"fault": "create_timeout", "count": 1}])
    for _ in range(60):
        # Its loss is seen at the next look at the subscriptions, which may be 50 minutes away.
        await asyncio.sleep(60)
        if service.faults.fired.get("create_timeout", 0) > before:
            break
    service.faults.clear("create_timeout")


async def _acknowledgements(world):
    world.acknowledgements_lost = 0.5
    await asyncio.sleep(world.random.uniform(600, 3600))
    world.acknowledgements_lost = 0.0


async def _slow(world):
    world.slow = 0.5, world.random.choice((3.0, 25.0))
    for _ in range(3):
        await pull(world, world.random.choice(("near", "bookings", "full")))
        await asyncio.sleep(world.random.uniform(1, 200))
    world.slow = ()


async def _zombie(world):
    """The writer is stopped; its lock is lost; another one takes over; then it wakes up."""
    if world.workers > 1:
        await _stands_still(world)
        return
    zombie = _living(world)
    if zombie is None or zombie.keeper is None or len([one for one in world.programs if one.alive]) > 1:
        return
    world.slow = 1.0, 5.0
    await pull(world, "full")
    await asyncio.sleep(world.random.uniform(0.0, 2.0))
    if not zombie.alive or zombie.keeper is None or zombie.crash_at is not None:
        world.slow = ()
        return
    zombie.freeze()
    world.share(zombie)
    _told(world)
    world.launch()
    # Half of them for longer than a service waits for its delivery to be answered.
    await asyncio.sleep(world.random.choice((world.random.uniform(2, 70), 150.0)))
    world.slow = ()
    zombie.thaw(world.loop)
    world.count("zombie woke up")
    await asyncio.sleep(world.random.uniform(20, 60))
    if zombie.alive:
        zombie.warehouses = []
        zombie.kill("the zombie")
    world.unshare()
    world.launch_missing()


async def _stands_still(world):
    """Shorter or longer than a session lasts in silence, and than a service waits for its delivery to be answered."""
    for _ in range(world.random.choice((2, 3))):
        world.slow = 0.7, 5.0
        await pull(world, world.random.choice(("near", "full")))
        _told(world)
        await still(world, world.random.choice((8.0, world.random.uniform(20, 90), 150.0)), within=20)
        world.slow = ()
        await asyncio.sleep(world.random.uniform(20, 60))


def _retry_after(random):
    return random.choice(("1", "30", "-5", "1000000000", "Wed, 21 Oct 2026 07:28:00 GMT", "soon", None))


def _header(random):
    return random.choice(("Retry-After", "OCTO-RateLimit-RetryAfter"))


IMPOSSIBLE = {
    "booking[ON_HOLD].utcExpiresAt": "9999-12-31T23:59:59-05:00",
    "booking[REDEEMED].utcCreatedAt": "0001-01-01T00:00:00+05:00",
    "booking[5%].unitItems": [],
    "availability[SOLD_OUT].vacancies": -(2**63),
    "availability[20%].vacancies": 2**63 - 1,
    "product.timeZone": "Mars/Phobos",
    "unit.restrictions.paxCount": 2**63 - 1,
}
"""What a service says although it cannot be so."""

_SOME = {"share": 0.4}
WINDOWS = (
    *(_with_a_pull(name, 600, **_SOME) for name in ("html_502", "html_200", "empty_200", "malformed", "chopped")),
    *(_with_a_pull(name, 600, **_SOME) for name in ("bom", "utf16", "nan", "duplicate_keys", "nul")),
    *(_with_a_pull(name, 300, **_SOME) for name in ("truncated", "reset", "redirect")),
    _with_a_pull("deep", 200, share=0.3, levels=20_000),
    _with_a_pull("status_429", 900, share=0.5, retry_after=_retry_after, header=_header),
    _with_a_pull("status_5xx", 3600, share=lambda r: r.choice((0.4, 1.0)), code=lambda r: r.choice((500, 503))),
    _with_a_pull("unauthorized", 900, share=lambda r: r.choice((0.3, 1.0))),
    _with_a_pull("empty_list", 240, share=0.6),
    _with_a_pull("cut_list", 240, share=0.5),
    _with_a_pull("hang", 300, share=0.2),
    _with_a_pull("latency", 900, share=0.6, seconds=lambda r: r.uniform(0.5, 25)),
    _with_a_pull("drip", 300, share=0.2, interval=0.2, bytes=2000),
    _with_a_pull("option_400", 600, share=0.5),
    _service("read_lag", 7200, seconds=lambda r: r.uniform(1, 5)),
    _service("delivery_lost", 7200, share=0.6),
    _service("delivery_doubled", 7200, share=0.6),
    _service("delivery_late", 7200, share=0.6, seconds=lambda r: r.choice((3.0, 60.0, 3600.0))),
    _service("delivery_reordered", 7200, share=0.6, seconds=20.0),
    _with_a_pull("gzip_bomb", 200, share=0.3, bytes=30_000_000),
    _quirk(600, ignored_capability=["pricing"]),
    _quirk(600, ignored_capability=["content", "extras"]),
    _quirk(7200, delivery_extra_fields=True),
    _quirk(7200, update_without_dates=True),
    _quirk(1800, lapsed_holds_unreadable=True),
    _quirk(1800, rate_limit_per_minute=20, rate_limit_style="seconds"),
    _quirk(1800, rate_limit_per_minute=20, rate_limit_style="date"),
    *(_quirk(1800, rate_limit_per_minute=20, rate_limit_style=style) for style in ("octo", "ratelimit", "x-ratelimit")),
    _quirk(1800, availability_days_zone="Pacific/Kiritimati"),
    _quirk(600, absent_capability=["extras"]),
    _quirk(7200, no_authentication=True),
    _quirk(600, product_id_suffix="-x"),
    _quirk(600, fields_dropped=["booking.utcUpdatedAt", "availability.unitPricing", "unitItem.extraItems"]),
    _quirk(600, fields_moved={"product.internalName": "name", "booking.contact": "contact.person"}),
    _quirk(600, cancelled_not_listed=True),
    _quirk(600, horizon_days=3),
    _quirk(1800, fields_set=IMPOSSIBLE),
    _quirk(600, entries_doubled=["booking.unitItems", "availability.unitPricing", "option.units", "unit.pricingFrom"]),
    *([Window("crashes", _crashes)] * 6),
    Window("restart", _restart),
    Window("network down", _network),
    Window("disk full", _disk),
    Window("clock put", _clock),
    Window("second instance", _second),
    *(Window("subscription", partial(_subscription, kind)) for kind in ("lost", "doubled", "edited")),
    Window("forged deliveries", _forged),
    Window("updates drop headers", _patched_bare),
    Window("created without an answer", _created_without_answer),
    Window("acknowledgements lost", _acknowledgements),
    Window("slow answers", _slow),
    Window("zombie", _zombie),
)


NAMED = (
    Window("lapsed_holds_unreadable", _lapsed_holds),
    _quirk(600, fields_dropped=["booking.pricing"]),
)
"""Those of days that name them; the others are dealt to every day."""


def dealt(seed, count):
    """The windows of this seed's storm. They are dealt from decks, so that in many days each comes as often as any other."""
    windows = []
    for place in range(seed // 2 * count, (seed // 2 + 1) * count):
        deck, card = divmod(place, len(WINDOWS))
        windows.append(Random(f"deck {deck}").sample(WINDOWS, len(WINDOWS))[card])
    return windows
