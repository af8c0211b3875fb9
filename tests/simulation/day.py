"""One virtual day of one seed."""

import asyncio
import contextlib
import gc
import shutil
import time
import traceback
from dataclasses import dataclass
from random import Random

from tests.simulation.loop import Loop
from tests.simulation.script import day
from tests.simulation.world import World

__all__ = ["Result", "run"]


@dataclass
class Result:
    seed: int
    error: str | None
    trace: str
    counters: dict
    seconds: float
    events: list


def run(seed, *, surely=None, confirms=None, workers=1):
    """The day of this seed. `surely` names its faults instead of chance: none of them, and it is a day of notifications.

    `confirms`: whether there are confirming looks. `workers`: how many share the project.
    """
    started = time.process_time()
    loop = Loop(Random(f"{seed}/threads"), workers)
    world = World(loop, seed, confirms, workers)
    world.surely = surely or ()
    world.is_stormy = seed % 2 == 1 if surely is None else bool(surely)
    error = None
    asyncio.set_event_loop(loop)
    try:
        error = loop.run_until_complete(day(world)) or world.broken
    except Exception as failed:  # noqa: BLE001 - whatever it is, the day is red
        # A program that ended takes its connections with it, and whoever looks then sees only those.
        error = world.broken or f"{type(failed).__name__}: {failed}"
        world.note("FAILED", error)
        world.events.append(traceback.format_exc())
    finally:
        asyncio.set_event_loop(None)
        _bury(world, loop)
    if error is None:
        strange = [c for c in loop.errors if "exception" in c and "never retrieved" not in c.get("message", "")]
        if strange:
            error = f"the loop was told of {strange[0]}"
    return Result(seed, error, world.trace, dict(world.counters), time.process_time() - started, world.events)


def _bury(world, loop):
    """Let go of everything, the dead included."""
    for program in world.programs:
        program.alive = False
        for thing in (*program.warehouses, *program.journals):
            with contextlib.suppress(Exception):
                thing.close()
        for lease in program.leases:
            lease._lock.release()
    with contextlib.suppress(Exception):
        world.close_server()
    world.service.alive = False
    for task in asyncio.all_tasks(loop):
        task._log_destroy_pending = False
        with contextlib.suppress(BaseException):
            task.get_coro().close()
    loop._ready.clear()
    loop._scheduled.clear()
    loop.close()
    if world.seed % 10 == 0:
        gc.collect()
    shutil.rmtree(world.folder, ignore_errors=True)
