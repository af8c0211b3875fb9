"""What the parts of the program that runs for good share, and what of it touches the outside world."""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from octo_sync.app.machine import new_token
from octo_sync.app.project import Project, open_project
from octo_sync.flows.status.metrics import Requests
from octo_sync.flows.sync.keep import Keeper
from octo_sync.model import Clock
from octo_sync.pipeline import Pipeline
from octo_sync.pipeline.schedule import Schedules
from octo_sync.receiver.server import WebServer, serving


@dataclass(slots=True)
class Events:
    """What the program says while it runs; each is a sentence for a person."""

    say: Callable[[str], object] = lambda _: None
    listening: Callable[[str], object] = lambda _: None
    """Told the receiver's address when it takes deliveries."""
    showing: Callable[[str], object] = lambda _: None
    """Told the dashboard's address when it can be looked at."""
    keeping: Callable[[Keeper], object] = lambda _: None
    """Told the keeper when this process has become the writer."""


@dataclass(frozen=True, slots=True)
class Means:
    """What touches the outside world (R14): a simulation hands in its own."""

    opening: Callable[..., contextlib.AbstractAsyncContextManager[Project]] = open_project
    server: Callable[..., contextlib.AbstractAsyncContextManager[WebServer]] = serving
    schedules: Callable[..., Schedules] = Schedules
    tokens: Callable[[int], str] = new_token
    watch_every: float = 0.2
    """Seconds between two looks at whether another process has marked something."""
    tokens_every: float = 10.0
    """Seconds between two looks at the files that hold tokens."""


@dataclass(frozen=True, slots=True)
class Program:
    """What its parts share."""

    pipeline: Pipeline
    clock: Clock
    random: Random
    events: Events
    means: Means
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    time_zones: dict[tuple[str, str], str] = field(default_factory=dict)
    requests: Requests = field(default_factory=Requests)
    subscriptions: dict[str, str] = field(default_factory=dict)
    """How it stood with each connection's subscription when it was looked at last."""
