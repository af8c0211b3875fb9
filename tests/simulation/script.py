"""What happens in a virtual day.

Half of the days are a storm of some hours: changes, pulls, sick answers, lost deliveries, crashes, full disks, put clocks.
Then the faults end and the source stands still for T = 2 pull intervals + one pull + backoff cap + lag bound: everything
must be equal. On the other days nobody pulls once everything is there: each round of changes, told late, twice, in the wrong
order, to a program that may die, must be there after the last confirming look. At last a hold lapses, untold.
"""

import asyncio

from tests.simulation import checks
from tests.simulation.faults import NAMED, WINDOWS, Window, crash, dealt, pull, still

from octo_sync.sandbox.errors import OctoError

__all__ = ["day"]

HOUR = 3600.0
STORM = 4 * HOUR
T = 2 * 3 * HOUR + 600 + 60 + 5
PULLED = 3 * HOUR + 600 + 60 + 5
"""Until a full pull has shown what changed untold."""
SETTLED = 150.0
"""After a round: late deliveries, the last confirming look, a rest, a slow answer and a restart."""
CHANGES, WINDOW_COUNT, ROUNDS = 7, 5, 4
OF_WORKERS = ("crashes", "restart", "second instance", "zombie")
"""What happens to several workers every day; they have one other fault, and half of the rounds."""
TAKEN_OVER = 300.0
"""Until others have what one that stands still has left, and a delivery that it did not answer has come again."""
UNTOLD = 4300.0
"""Until the seeded holds have lapsed and pending bookings are decided."""

REFUSED = ("NotFound", "RequestRefused")
"""What needs no five tries to be left alone: the service has answered that it does not give it."""

TOLD = (
    *("note", "note", "note", "twice", "redeem", "closeout", "closeout", "capacity", "product", "price"),
    *("product comes", "product goes"),
)
"""Changes of which a subscription hears, and which change nothing else that it does not hear of."""


async def day(world):
    """A sentence about what is wrong, or None. Every other day is all storm, every other all notifications."""
    world.shown = {}
    script = _Script(world)
    world.launch_missing()
    wrong = await (script.stormy() if world.is_stormy else script.told())
    living = [program for program in world.programs if program.alive]
    if world.server is not None:
        world.owners.in_order(living)
    for program in living:
        await asyncio.sleep(world.random.random())
        await program.stop()
    if world.server is not None:
        world.owners.in_order([])
        world.close_server()
    checks.acknowledged_is_durable(world)
    world.count("days of storm" if world.is_stormy else "days of notifications")
    return wrong or world.broken or await checks.pulled_anew(world)


class _Script:
    def __init__(self, world):
        self.world, self.random = world, world.random
        self.service = world.sandbox.service
        self.admin, self.traffic = world.control._admin, world.control._traffic
        self.stands_still = None
        self.settled = SETTLED if world.workers == 1 else SETTLED + TAKEN_OVER

    async def stormy(self):
        """Everything at once, then the calm, in which all must come right."""
        world = self.world
        if world.chance(0.7):
            await asyncio.sleep(120)
        await self.storm()
        self.calm()
        await asyncio.sleep(T - SETTLED + self.settled)
        await self.pulled_since_a_hold_lapsed()
        return await self.equal("after the calm") or self.one_subscription()

    async def told(self):
        """No pulls once everything is there: what is told must be enough."""
        world = self.world
        await asyncio.sleep(UNTOLD)
        await pull(world)
        await asyncio.sleep(60)
        world.pulls_are_off = True
        for number in range(ROUNDS if world.workers == 1 else ROUNDS // 2):
            await self.notified_round()
            await self.retried()
            # Whoever stands still does so now, too.
            if wrong := await self.equal(f"after round {number + 1} of notified changes"):
                return wrong
            await self.everybody_goes_on()
        if wrong := await self.gap() or await self.hold():
            return wrong
        # Of the seats of that hold, and of a day that has come near, nobody is told.
        await pull(world)
        await asyncio.sleep(self.settled)
        return None

    async def pulled_since_a_hold_lapsed(self):
        """Its seats are free again, of which nobody is told: the next pull shows them."""
        world = self.world
        while True:
            now = world.now().timestamp()
            lapses = [one.expires for one in self.service.store.bookings.values() if one.expires]
            late = max((at for at in lapses if now - PULLED < at <= now), default=None)
            if late is None:
                return
            world.count("waited for a pull after a hold lapsed")
            await asyncio.sleep(late + PULLED - now)

    # -- the storm ------------------------------------------------------------------------------------------------

    async def storm(self):
        world, random = self.world, self.random
        lasts = STORM if world.workers == 1 else STORM / 2
        moments = [(random.uniform(0, lasts), self._changes, ()) for _ in range(CHANGES)]
        chosen = [
            random.choice([window for window in (*WINDOWS, *NAMED) if window.name == name]) for name in world.surely
        ]
        if not chosen and world.workers > 1:
            chosen = [*dealt(world.seed, 1), *{one.name: one for one in WINDOWS if one.name in OF_WORKERS}.values()]
        chosen = chosen or dealt(world.seed, WINDOW_COUNT)
        moments += [(random.uniform(0, lasts * 0.95), self._window, (window,)) for window in chosen]
        begun, tasks = world.loop.time(), []
        for at, act, args in sorted(moments, key=lambda one: one[0]):
            await asyncio.sleep(max(0.0, begun + at - world.loop.time()))
            tasks.append(world.loop.create_task(act(*args)))
        await asyncio.wait(tasks)
        for task in tasks:
            task.result()

    async def _changes(self):
        world, random = self.world, self.random
        for _ in range(random.choice((1, 1, 2, 4))):
            self.service.tick()
            kind = random.random()
            if kind < 0.06:
                self._product_comes()
            elif kind < 0.1:
                self._product_goes()
            else:
                for made in self.traffic.run(1, seed=random.random()):
                    world.note("change", made["kind"])
                    world.count(f"change: {made['kind']}")
            await asyncio.sleep(random.choice((0.0, 0.0, 0.01, 0.4, 3.0)))

    def _product_comes(self):
        products = self.service.store.products
        if len(products) < 5:
            original = self.random.choice(sorted(products))
            self.admin.create_product({"copy_of": original, "internal_name": f"New {len(products)}"})
            self.world._remember_products()
            self.world.note("change", "product comes")
            self.world.count("change: product comes")

    def _product_goes(self):
        products = self.service.store.products
        if len(products) > 3:
            self.world._remember_products()
            self.admin.delete_product(self.random.choice(sorted(products)))
            self.world.note("change", "product goes")
            self.world.count("change: product goes")

    async def _window(self, window: Window):
        world = self.world
        world.note("begin", window.name)
        world.count(f"fault begun: {window.name}")
        await window.act(world)
        world.note("end", window.name)

    def calm(self):
        """Everything works from now on, and the source stands still but for holds that lapse."""
        world = self.world
        faults = self.service.faults
        for name, fired in faults.fired.items():
            world.count(f"fault: {name}", fired)
        faults.clear()
        self.service.quirks.reset()
        world.network_is_down = world.disk_is_full = False
        world.machine_clock.off, world.acknowledgements_lost, world.slow = 0.0, 0.0, ()
        world.note("calm")
        for program in world.programs:
            if program.alive:
                program.crash_at = program.still_at = None
                program.thaw(world.loop)
        world.launch_missing()

    # -- what must hold -------------------------------------------------------------------------------------------

    async def equal(self, when, only=None):
        world = self.world
        found = await checks.differences(world, only=only)
        world.note("compared", when, len(found))
        if world.broken:
            return world.broken
        if found:
            return f"not equal {when}: {len(found)} differences: " + "; ".join(found[:4])
        world.count("comparisons that were equal")
        return None

    def one_subscription(self):
        own = [one for one in self.service.store.subscriptions.values() if one.token == "all"]
        wanted, whole = len(self.world.connections), {one.url for one in own if len(one.types) == 3 and one.headers}
        if len(own) != wanted or len(whole) != wanted:
            return f"subscriptions: {len(own)} at the service, {len(whole)} of them whole, instead of {wanted}"
        return None

    # -- notifications alone --------------------------------------------------------------------------------------

    async def notified_round(self):
        """Changes of which everybody is told, told badly; nobody pulls but once, slowly, at the beginning."""
        world, random, faults = self.world, self.random, self.service.faults
        world.count("rounds")
        self._told_badly()
        if world.chance(0.5):
            await pull(world, "near")
            world.count("pulls beside notifications")
            await asyncio.sleep(random.choice((0.0, 0.1, 1.0)))
        if not world.confirms and world.chance(0.4):
            # A look that is due by the wall clock would come this much later; here none is.
            world.machine_clock.off = random.choice((-60.0, 60.0))
            world.count("clock put")
        crash = None
        if world.workers > 1 and world.chance(0.4):
            self.stands_still = world.loop.create_task(self._still_soon())
        elif world.chance(0.6 if world.confirms else 0.9):
            crash = world.loop.create_task(self._crash_soon())
        # Where reads lag, only bookings do; and what is looked at once only must be seen at once.
        kinds = ("note", "twice", "redeem") if world.chance(0.6) else TOLD
        for _ in range(random.choice((2, 3, 5))):
            kind = random.choice(kinds)
            self._notified_change(kind)
            if kind == "twice":
                # The second while the first is being fetched.
                await asyncio.sleep(random.choice((0.05, 0.2, 0.6)))
                self._notified_change(kind)
            await asyncio.sleep(random.choice((0.0, 0.02, 0.3, 1.0, 4.0)))
            if world.machine_clock.off and world.chance(0.5):
                world.machine_clock.off = 0.0
        await asyncio.sleep(20)
        world.machine_clock.off = 0.0
        world.acknowledgements_lost, world.slow = 0.0, ()
        for name, fired in faults.fired.items():
            world.count(f"fault: {name}", fired)
        faults.fired.clear()
        faults.clear()
        if crash is not None:
            await crash
        await asyncio.sleep(self.settled)

    async def retried(self):
        """What answered badly five times in a row is left alone, which quarantine says: a person has it fetched again."""
        world = self.world
        keepers = [one for one in world.programs if one.alive and not one.frozen and one.keeper is not None]
        for keeper in keepers[:1]:
            quarantine = keeper.keeper.ports.journal.quarantine
            left = [one for one in keeper.context().run(quarantine.entries) if one.what == "subject"]
            for one in left:
                if one.count < world.pipeline.sync.attempts and not one.reason.startswith(REFUSED):
                    world.fail(f"left alone after {one.count} tries: {one.resource} {one.key}: {one.reason}")
            if left:
                world.count("quarantine taken up by a person", len(left))
                keeper.context().run(quarantine.retry, [one.id for one in left])
                keeper.keeper.wake.set()
                await asyncio.sleep(self.settled)

    def _told_badly(self):
        world, random, faults = self.world, self.random, self.service.faults
        if world.confirms and world.chance(0.7):
            world.lag_until = world.loop.time() + self.settled
            # Beginning later it shows what was before a change that has landed already.
            begin = random.choice((0.0, random.uniform(0.5, 8.0)))
            world.loop.call_later(begin, faults.add, [{"fault": "read_lag", "seconds": random.choice((2.0, 4.5))}])
        for name, more in (
            ("delivery_doubled", {"share": 0.4}),
            ("delivery_late", {"share": 0.3, "seconds": random.choice((2.0, 20.0))}),
            ("delivery_reordered", {"share": 0.4, "seconds": 3.0}),
        ):
            if world.chance(0.6):
                faults.add([{"fault": name, **more}])
        if world.chance(0.6):
            world.slow = 0.5, random.choice((2.0, 8.0))
        if world.chance(0.4):
            sick = random.choice(("status_5xx", "malformed", "reset", "html_502"))
            faults.add([{"fault": sick, "share": 0.2, "match": {"path": "/(bookings|products|availability).*"}}])
        if world.chance(0.3):
            world.acknowledgements_lost = 0.3

    async def _crash_soon(self):
        await asyncio.sleep(self.random.uniform(0, 6))
        await crash(self.world, down=(0.5, 6.0))

    async def _still_soon(self):
        """For longer than its connections stay its own; what is told meanwhile the others have to find."""
        await asyncio.sleep(self.random.uniform(0, 6))
        await still(self.world, self.settled + 120, within=30)

    async def everybody_goes_on(self):
        if self.stands_still is not None:
            await self.stands_still
            await asyncio.sleep(30)

    def _notified_change(self, kind):
        world, random, store = self.world, self.random, self.service.store
        own = [one for one in store.bookings.values() if one.token == "all"]
        try:
            if kind in ("note", "twice"):
                booking = self._favourite(own, surely=kind == "twice")
                self.admin.booking(booking.uuid, {"notes": f"Note {random.randrange(10_000)}"})
            elif kind == "price":
                name = random.choice(sorted(store.products))
                self.admin.update_product(name, {"price_percent": random.choice((90, 120))})
            elif kind == "product comes":
                self._product_comes()
            elif kind == "product goes":
                self._product_goes()
            elif kind == "redeem":
                confirmed = [one for one in own if one.status == "CONFIRMED"]
                if confirmed:
                    self.admin.booking(random.choice(confirmed).uuid, {"status": "REDEEMED"})
            else:
                self.traffic.run(1, kinds=[kind], seed=random.random())
        except OctoError:
            return
        world.note("told change", kind)
        world.count(f"told change: {kind}")

    def _favourite(self, own, *, surely):
        """Mostly the same few, so that changes of one booking come close together."""
        low, high = self.world.now().date().toordinal() - 5, self.world.now().date().toordinal() + 10
        near = [one for one in own if low <= one.local_date <= high] or own
        return near[0] if surely or self.random.random() < 0.6 else self.random.choice(near)

    async def gap(self):
        """Its subscription is lost. What changes until it is made again nobody is told, and is found all the same."""
        world, store = self.world, self.service.store
        if not world.chance(0.5):
            return None
        for identity in [key for key, one in store.subscriptions.items() if one.token == "all"]:
            del store.subscriptions[identity]
        for kind in ("note", "redeem", "closeout", "price"):
            self._notified_change(kind)
        for program in world.programs:
            program.kill("between")
        world.launch_missing()
        await asyncio.sleep(self.settled)
        world.count("gaps closed")
        return await self.equal("after a lost subscription") or self.one_subscription()

    async def hold(self):
        """A reservation lapses; nobody is told, nobody pulls."""
        world = self.world
        kept = {one.uuid for one in self.service.store.bookings.values() if one.status == "ON_HOLD"}
        for _ in range(10):
            self.traffic.run(1, kinds=["reserve"], seed=self.random.random())
            held = [one for one in self.service.store.bookings.values() if one.status == "ON_HOLD"]
            if any(one.token == "all" and one.uuid not in kept for one in held):
                break
        else:
            world.count("no hold could be made")
            return None
        await asyncio.sleep(60)
        crash = world.chance(0.5)
        if crash:
            for program in world.programs:
                program.kill("between")
            world.launch_missing()
        await asyncio.sleep(31 * 60)
        lapsed = {one.uuid for one in held if one.token == "all"}
        found = [
            one
            for one in await checks.differences(world, only=lambda table: table == "core.bookings")
            if any(uuid in one for uuid in lapsed)
        ]
        world.count("holds that lapsed", len(lapsed))
        return f"a hold that lapsed was not noticed: {found[:3]}" if found else world.broken
