"""Rebuild: a new warehouse from the payloads that are kept, over the same road as from a service.

Kept payloads stand in for the service: a client that answers from them is put where the real one is, and the worker fetches,
checks and lands. Nothing of that counts as verified afterwards: everything is marked, and what the payloads cannot give, such
as departures, comes with the next pull.
"""

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import date
from hashlib import blake2b
from pathlib import Path
from random import Random
from urllib.parse import unquote

from octo_sync.destinations.duckdb.warehouse import DuckDBWarehouse
from octo_sync.errors import NotFound
from octo_sync.flows.ports import Ports
from octo_sync.flows.sync.work import Worker
from octo_sync.journal import Journal
from octo_sync.model import Clock, Connection, Source, Subject, SubjectKind, Window
from octo_sync.octo.answer import Answer
from octo_sync.octo.client import OctoClient
from octo_sync.octo.endpoints import Call

__all__ = ["Kept", "Rebuilt", "rebuild"]

log = logging.getLogger("octo_sync")


@dataclass(slots=True)
class Rebuilt:
    """What a rebuild made: subjects and rows landed from payloads, what failed and why, and what could not be read.

    `unread` are tables of the former files, or the name of a whole file.
    """

    subjects: int = 0
    rows: int = 0
    failed: Mapping[Subject, str] | None = None
    unread: tuple[str, ...] = ()


class Kept(OctoClient):
    """A connection whose service is the payloads that are kept. It opens no socket."""

    def __init__(
        self, connection: Connection, warehouse: DuckDBWarehouse, former: Path, *, clock: Clock, random: Random
    ) -> None:
        super().__init__(connection, clock=clock, random=random)
        self._warehouse = warehouse
        gone = warehouse.deleted_keys(former, "core.bookings", "booking_uuid")
        self.travel = {
            uuid: date.fromisoformat(day) if day else None
            for uuid, day in warehouse.travel_dates(connection.name).items()
            if (connection.name, uuid) not in gone
        }
        gone = warehouse.deleted_keys(former, "core.products", "product_id")
        self._products: dict[str, list[str]] = {}
        """Payload keys per language."""
        for key in warehouse.newest_payloads(connection.name, "product"):
            product, _, language = key.rpartition("@")
            if (connection.name, product) not in gone:
                self._products.setdefault(language, []).append(key)
        self._suppliers = list(warehouse.newest_payloads(connection.name, "supplier").values())

    def subjects(self) -> list[Subject]:
        """What can be answered."""
        name = self.connection.name
        found = [Subject(name, SubjectKind.SUPPLIER)] if self._suppliers else []
        if self._products:
            found.append(Subject(name, SubjectKind.PRODUCTS))
        months = {f"{day:%Y-%m}" for day in self.travel.values() if day}
        found += [Subject(name, SubjectKind.BOOKINGS, (month,)) for month in sorted(months)]
        undated = sorted(uuid for uuid, day in self.travel.items() if day is None)
        return found + [Subject(name, SubjectKind.BOOKING, (uuid,)) for uuid in undated]

    async def send(self, call: Call, *, on_start: Callable[[], int] | None = None, patient: bool = False) -> Answer:
        """The answer that the service gave last, put together from single records."""
        del patient  # nobody is waited for
        seq = on_start() if on_start else 0
        language, body = "", b""
        if call.operation == "supplier" and self._suppliers:
            body = self._suppliers[-1].encode()
        elif call.operation == "products":
            language = self._language(call.language or "")
            body = self._list("product", self._products[language])
        elif call.operation == "bookings":
            asked = dict(call.params)
            window = Window(*(date.fromisoformat(asked[name]) for name in ("localDateStart", "localDateEnd")))
            body = self._list("booking", [u for u, day in self.travel.items() if day and _holds(window, day)])
        elif call.operation == "booking":
            body = self._list("booking", [unquote(call.path.rpartition("/")[2])])[1:-1]
        if not body:
            raise NotFound(f"No payload of {call.operation} is kept for {self.connection.name}.")
        headers = {"content-language": language} if language else {}
        return Answer(body, 200, headers, seq, blake2b(body, digest_size=16).digest(), call)

    def _language(self, asked: str) -> str:
        """The language to answer in: the one asked for, a relative of it, or the first."""
        near = [told for told in self._products if told.split("-")[0] == asked.split("-", maxsplit=1)[0]]
        return asked if asked in self._products else (near or sorted(self._products))[0]

    def _list(self, resource: str, keys: Collection[str]) -> bytes:
        found = self._warehouse.newest_payloads(self.connection.name, resource, keys)
        return b"[" + b",".join(payload.encode() for payload in found.values()) + b"]"


def _holds(window: Window, day: date) -> bool:
    return window.start <= day <= window.end


async def rebuild(ports: Ports, fresh: DuckDBWarehouse, scratch: Journal, former: tuple[Path, Path]) -> Rebuilt:
    """Fill a new warehouse from the payloads of the former private file.

    `ports` gives pipeline, privacy and numbers; `scratch` is a journal for this alone. `former` are the files of the
    warehouse and of the private data, open nowhere; either may be missing or damaged.
    """
    unread = fresh.take_over(*former, landed=False)
    clients = {
        c.name: Kept(c, fresh, former[0], clock=ports.clock, random=ports.random) for c in ports.pipeline.connections
    }
    days = [day for client in clients.values() for day in client.travel.values() if day]
    own = replace(
        ports,
        warehouse=fresh,
        journal=scratch,
        clients=clients,
        travel=Window(min(days), max(days)) if days else None,
    )
    scratch.mark([subject for client in clients.values() for subject in client.subjects()], Source.REPAIR)
    worker = Worker(own)
    await worker.drain()
    unread += fresh.take_over(*former, landed=True)
    totals = worker.lander.totals
    log.info("action=rebuild run=%s subjects=%d rows=%d", ports.run_id, totals.subjects, totals.rows)
    return Rebuilt(totals.subjects, totals.rows, {**worker.failed, **worker.lander.refused}, tuple(sorted({*unread})))
