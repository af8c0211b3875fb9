"""What is edited elsewhere while the program runs, and nobody tells: subscriptions at services, tokens in their files."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from math import inf

from octo_sync.errors import OctoSyncError
from octo_sync.model import Secret
from octo_sync.octo.client import OctoClient

_NONE_THERE = 240.0
"""Seconds between two looks at a subscription where the service allows none."""
_OF_PACE = 20
"""One request of so many that a service permits may ask for the subscription."""


class Looks:
    """Whose subscription is to be looked at: everybody's each time, but less often where a service permits little.

    Args:
        every: Seconds between two looks.
        states: How it stood with each connection's subscription last.
        say: Told when one is looked at less often than that.
    """

    def __init__(self, every: float, states: Mapping[str, str], say: Callable[[str], object]) -> None:
        self._every, self._states, self._say = every, states, say
        self._last: dict[str, float] = {}
        self._said: dict[str, float] = {}

    def due(self, clients: Mapping[str, OctoClient]) -> list[str]:
        """The connections to look at now; call it every `every` seconds."""
        now = asyncio.get_running_loop().time()
        found = []
        for name, client in clients.items():
            pause = self._pause(name, client)
            # The clock that calls is not this one, and may be a little early.
            if now - self._last.get(name, -inf) >= pause - self._every / 2:
                self._last[name] = now
                found.append(name)
        return found

    def _pause(self, name: str, client: OctoClient) -> float:
        if self._states.get(name) == "unavailable":
            return max(self._every, _NONE_THERE)
        pace = client.budget.permits
        pause = max(self._every, _OF_PACE * pace.seconds / pace.requests) if pace else self._every
        if pause > self._every and self._said.get(name) != pause:
            self._say(f"{name}: permits {pace}, so its subscription is looked at every {pause:,.0f} s only.")
            self._said[name] = pause
        return pause


async def watch_tokens(
    clients: Mapping[str, OctoClient],
    every: float,
    changed: Callable[[str, Secret], Awaitable[object]],
    say: Callable[[str], object],
) -> None:
    """Tell `changed` about each token that is another one in its file; until cancelled, or at once where none is in a file.

    One that cannot be read, or used, is said once and looked at again: it may be in the middle of being written.
    """
    said, known = dict[str, str](), {name: client.token for name, client in clients.items()}
    while any(client.token.again for client in clients.values()):
        await asyncio.sleep(every)
        for name, token in list(known.items()):
            problem = ""
            if token.again is None:
                continue
            try:
                fresh = await asyncio.to_thread(token.again)
                if fresh.reveal() != token.reveal():
                    await changed(name, fresh)
                    known[name] = fresh
                    say(f"{name}: there is another token in {fresh.origin}; it is used from now on.")
            except (ValueError, OctoSyncError) as error:
                problem = f"{name}: token: {str(error).removesuffix('.')}. It is looked at again until that is mended."
            if problem and said.get(name) != problem:
                say(problem)
            said[name] = problem
