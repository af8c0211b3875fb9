"""An event loop with a virtual clock, and processes in it that can be killed, frozen and thawed.

When nothing is ready the loop jumps to its next timer. Work for threads is done inline, a little later than it was given,
and who gave it learns of it a little later again: so everything that may happen beside a thread does. Each callback
belongs to the process in whose context it was scheduled; what a dead process left behind is never run, not even its
`finally` clauses. One seed, one order of events.
"""

import asyncio
import contextvars
import itertools
from random import Random

__all__ = ["Killed", "Loop", "Process", "current"]

_OWNER = contextvars.ContextVar("owner", default=None)
_MOST_TURNS = 300_000
"""Turns of the loop in a day; a usual one has some ten thousand."""


class Killed(BaseException):
    """This process is dead: nothing that it still does counts."""


def current():
    """The process whose code runs now; None for the world around."""
    return _OWNER.get()


class Process:
    """Something that can be killed or frozen as a whole."""

    def __init__(self, name):
        self.name, self.alive = name, True
        self._frozen = None

    def context(self):
        context = contextvars.copy_context()
        context.run(_OWNER.set, self)
        return context

    def freeze(self):
        self._frozen = [] if self._frozen is None else self._frozen

    @property
    def frozen(self):
        return self._frozen is not None

    def thaw(self, loop):
        handles, self._frozen = self._frozen or [], None
        loop._ready.extend(handles)


def _nothing():
    pass


def _run(handle, run):
    owner = handle._context.get(_OWNER)
    if owner is None or (owner.alive and owner._frozen is None):
        run(handle)
    elif owner.alive:
        owner._frozen.append(handle)


class _Handle(asyncio.Handle):
    __slots__ = ()

    def _run(self):
        _run(self, asyncio.Handle._run)


class _TimerHandle(asyncio.TimerHandle):
    __slots__ = ()

    def _run(self):
        _run(self, asyncio.TimerHandle._run)


class _Task(asyncio.Task):
    """Tasks stand in sets: their place there must follow from the seed, not from an address in memory."""

    number = 0

    def __hash__(self):
        return self.number


class Loop(asyncio.BaseEventLoop):
    """`random` decides how long threads take; so many turns a day are enough for one process, and there are `processes`."""

    def __init__(self, random: Random, processes=1) -> None:
        super().__init__()
        self.random, self.errors, self.turns, self._most_turns = random, [], 0, processes * _MOST_TURNS
        self._virtual, self._selector, self._numbers = 0.0, self, itertools.count(1)
        self._clock_resolution = 1e-9
        self.set_task_factory(self._make_task)
        self.set_exception_handler(lambda _, context: self.errors.append(context))

    def time(self):
        return self._virtual

    def select(self, timeout):
        """Nobody but the clock ever makes anything ready."""
        self.turns += 1
        if timeout is None or self.turns > self._most_turns:
            raise RuntimeError("nothing will ever happen again" if timeout is None else "the loop spins")
        self._virtual += timeout
        return []

    def others_go_on(self, seconds):
        """For a thread that stands still in the middle of its work: everybody else lives on for so long, or longer."""
        until, left = self._virtual + seconds, len(self._ready)
        self.call_at(until, _nothing, context=contextvars.Context())
        while self._virtual < until:
            self._run_once()
        # Whoever called us is in the middle of so many.
        for _ in range(left - len(self._ready)):
            self._call_soon(_nothing, (), contextvars.Context())

    def _process_events(self, event_list):
        pass

    def _write_to_self(self):
        pass

    def _make_task(self, loop, coroutine, **more):
        task = _Task(coroutine, loop=loop, **more)
        task.number = next(self._numbers)
        return task

    def _call_soon(self, callback, args, context):
        handle = _Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_at(self, when, callback, *args, context=None):
        super_call = super().call_at(when, callback, *args, context=context)
        # The same handle, of the kind that knows its owner.
        super_call.__class__ = _TimerHandle
        return super_call

    def run_in_executor(self, _executor, func, *args):
        future = self.create_future()

        def work():
            try:
                outcome, error = func(*args), None
            except Killed:
                return
            except Exception as caught:  # noqa: BLE001 - for who waits
                outcome, error = None, caught
            self.call_later(self._while(), settle, outcome, error)

        def settle(outcome, error):
            if future.done():
                return
            if error is None:
                future.set_result(outcome)
            else:
                future.set_exception(error)

        self.call_later(self._while(), work)
        return future

    def _while(self):
        """How long a thread takes: mostly a moment, now and then as long as a fetch."""
        return self.random.expovariate(500.0) if self.random.random() < 0.9 else self.random.uniform(0.0, 0.3)
