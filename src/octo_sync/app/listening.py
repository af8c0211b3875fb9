"""What listens in the program that runs for good: the receiver of webhooks and the dashboard, each with its own limits."""

import contextlib
import platform
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from importlib.metadata import version

from octo_sync import __version__
from octo_sync.app.machine import may_open
from octo_sync.app.places import server_size
from octo_sync.app.program import Program
from octo_sync.app.project import dashboard_source
from octo_sync.flows.status.metrics import Gauges
from octo_sync.flows.webhooks.receive import Inbox, Routing
from octo_sync.journal import Journal
from octo_sync.pipeline import STOP_WITHIN, WebhookSettings
from octo_sync.receiver.endpoints import EndpointCache
from octo_sync.receiver.metrics import Metrics
from octo_sync.receiver.routes import Receiver

_DOWNLOAD, _VISITORS = 900.0, 100
"""Seconds that an answer of the dashboard may take, downloads included, and connections to it at the same time."""
_FILES_ASIDE, _FEWEST_ASIDE = 4096, 512
"""Files and connections that are open beside those of the receiver: as many as may be, and what is kept free for them at
least (visitors, warehouse, journal, services, and connections that are being refused)."""
_QUERY_IN_ADDRESS = 65_536
"""Bytes of a request's head for the dashboard: a query of 6,000 characters, most of them escaped."""


@contextlib.asynccontextmanager
async def dashboard(program: Program) -> AsyncIterator[None]:
    """The dashboard, listening for as long as the block runs."""
    from octo_sync.dashboard import Dashboard  # noqa: PLC0415 - templates and pages, which a worker alone can do without

    pipeline, settings = program.pipeline, program.pipeline.dashboard
    app = Dashboard(
        dashboard_source(pipeline, program.clock),
        host=settings.address[0],
        allow_hosts=settings.allow_hosts,
        token=pipeline.dashboard_token,
        user_header=settings.user_header,
    )
    limits = replace(
        pipeline.webhooks,
        bind=settings.bind,
        request_timeout=_DOWNLOAD,
        max_connections=_VISITORS,
        header_limit=_QUERY_IN_ADDRESS,
    )
    try:
        async with program.means.server(app, limits, stop_within=STOP_WITHIN, key="dashboard.bind") as server:
            program.events.showing(server.url)
            yield
    finally:
        app.close()


@contextlib.asynccontextmanager
async def receiver(program: Program, journal: Journal) -> AsyncIterator[None]:
    """The receiver, listening for as long as the block runs."""
    pipeline, events, means = program.pipeline, program.events, program.means
    limits = _within_open_files(pipeline.webhooks, events.say)
    routing = Routing(pipeline, program.clock, program.time_zones)
    inbox = Inbox(journal, routing, lambda _: program.wake.set())
    endpoints = EndpointCache(journal)
    build, size = (__version__, platform.python_version(), version("duckdb")), server_size(pipeline)
    # What `/metrics` says of the journal is read on a connection of its own, which is made when somebody asks.
    with contextlib.closing(Journal(pipeline.journal, clock=program.clock)) as own:
        gauges = Gauges(pipeline, own, program.clock, build=build, requests=program.requests, size=size)
        metrics = Metrics(gauges.read)
        app = Receiver(inbox, endpoints, limits, metrics)
        try:
            async with means.server(app, limits, stop_within=STOP_WITHIN, refused=metrics.refused) as server:
                events.listening(server.url)
                yield
        finally:
            await metrics.close()
            await endpoints.close()
            await inbox.close()


def _within_open_files(limits: WebhookSettings, say: Callable[[str], object]) -> WebhookSettings:
    """As many connections as the machine lets this process have open, and the rest of the program its files."""
    files, wanted = may_open(limits.max_connections + _FILES_ASIDE), limits.max_connections
    taken = max(1, min(wanted, files - min(_FEWEST_ASIDE, files // 2)))
    if taken < wanted:
        say(
            f"This process may have {files:,} files open, so the receiver takes {taken:,} connections at the same time "
            f"instead of {wanted:,}; raise the limit (`ulimit -Hn`, `LimitNOFILE`) to {wanted + _FILES_ASIDE:,}."
        )
    return replace(limits, max_connections=taken)
