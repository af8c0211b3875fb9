"""What is wrong, before it goes wrong: the machine, the files, each service. Every finding that is not fine says what to do.

A connection costs at most five calls and nothing is written. What a service does is found out by asking, not by what it
says about itself: a capability works when its fields are there.
"""

import asyncio
import shutil
import socket
import stat
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from octo_sync.errors import AuthenticationRefused, OctoSyncError, ServiceError, ServiceUnavailable
from octo_sync.journal import LeaseRow
from octo_sync.model import Clock, Connection, Limits, Window
from octo_sync.octo import checking, endpoints, quirks
from octo_sync.octo.answer import Answer
from octo_sync.octo.client import OctoClient
from octo_sync.octo.endpoints import Call

__all__ = ["Finding", "Level", "files", "machine", "service", "with_little_patience"]

Level = Literal["ok", "warn", "fail"]
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]

_SKEW = 5.0
_ROOM = 1_000_000_000
_NO_ROOM = 100_000_000
_PATIENCE = 20.0


@dataclass(frozen=True, slots=True)
class Finding:
    """One line: what was looked at, how it is, and what to do about it."""

    area: str
    name: str
    level: Level
    text: str
    fix: str = ""
    refused: bool = False
    """Whether the service refused the token."""


# -- the machine ------------------------------------------------------------------------------------------------------


def machine(python: tuple[int, ...], versions: Mapping[str, str]) -> list[Finding]:
    """Python, libraries, time-zone data. `versions` by library."""
    text = ".".join(map(str, python[:3]))
    good = python >= (3, 11)
    found = [
        Finding("machine", "python", "ok" if good else "fail", text, "" if good else "install Python 3.11 or newer"),
        Finding("machine", "octo-sync", "ok", versions["octo-sync"]),
        _duckdb(versions["duckdb"]),
        Finding("machine", "sqlite", "ok", versions["sqlite"]),
    ]
    try:
        ZoneInfo("Europe/Lisbon")
        found.append(Finding("machine", "time zones", "ok", "time-zone data is there"))
    except (ZoneInfoNotFoundError, OSError):
        found.append(Finding("machine", "time zones", "fail", "no time-zone data", "uv pip install tzdata"))
    return found


def _duckdb(version: str) -> Finding:
    number = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    if (1, 5) <= number < (3,):
        return Finding("machine", "duckdb", "ok", version)
    return Finding("machine", "duckdb", "fail", f"{version}; 1.5 to 2 are supported", "uv pip install 'duckdb>=1.5,<3'")


# -- the files --------------------------------------------------------------------------------------------------------


def files(
    directory: Path,
    *,
    private: Iterable[Path],
    secret: Iterable[Path],
    lease: LeaseRow | None,
    alive: Callable[[int, str], bool],
    writable: Callable[[Path], bool],
    warehouse: Path | None,
    storage: str | None,
) -> list[Finding]:
    """The project's directory and files.

    Args:
        directory: The project.
        private: Files that nobody else may read: databases and journal.
        secret: Files that may hold a token.
        lease: Who works here, or worked last.
        alive: Whether a process (id, host) still runs.
        writable: Whether this user may write there.
        warehouse: The DuckDB file.
        storage: Storage version of the read copy; None when there is none.
    """
    found = [_directory(directory, writable), *_modes([*private, *secret])]
    if lease and lease.released_at is None and alive(lease.pid, lease.host):
        found.append(
            Finding(
                "files",
                "lock",
                "warn",
                f"{lease.owner} (pid {lease.pid} on {lease.host}) works here since {lease.acquired_at:%H:%M:%S} UTC",
                "octo-sync status",
            )
        )
    else:
        found.append(Finding("files", "lock", "ok", "free"))
    if storage:
        found.append(Finding("files", "storage", "ok", f"read copy in DuckDB storage version {storage}"))
    found.append(_room(directory, warehouse))
    return found


def _directory(directory: Path, writable: Callable[[Path], bool]) -> Finding:
    here = directory if directory.exists() else directory.absolute().parent
    if not here.is_dir():
        return Finding("files", "directory", "fail", f"{directory} does not exist", f"mkdir -p {directory}")
    if not writable(here):
        return Finding(
            "files", "directory", "fail", f"{here.absolute()} cannot be written", f"chmod u+w {here.absolute()}"
        )
    mode = stat.S_IMODE(here.stat().st_mode)
    if mode & 0o022 and not mode & stat.S_ISVTX:
        return Finding(
            "files",
            "directory",
            "warn",
            f"{here.absolute()} may be written by other users (mode {mode:04o})",
            f"chmod go-w {here.absolute()}",
        )
    return Finding("files", "directory", "ok", f"{here.absolute()} is writable")


def _modes(paths: Iterable[Path]) -> list[Finding]:
    there = [p for p in paths if p.is_file()]
    loose = [p for p in there if stat.S_IMODE(p.stat().st_mode) & 0o077]
    if loose:
        names = " ".join(str(p) for p in loose)
        return [Finding("files", "modes", "warn", f"other users may read {names}", f"chmod 600 {names}")]
    return [Finding("files", "modes", "ok", f"{len(there)} files, for this user only" if there else "no files yet")]


def _room(directory: Path, warehouse: Path | None) -> Finding:
    here = directory if directory.exists() else directory.absolute().parent
    free = shutil.disk_usage(here).free
    # A publish writes a whole copy beside the old one.
    size = warehouse.stat().st_size if warehouse is not None and warehouse.exists() else 0
    text = f"{free / 1e9:.1f} GB free"
    if free < max(_NO_ROOM, size):
        return Finding(
            "files", "disk", "fail", f"{text}; the next publish needs {size / 1e9:.1f} GB", "free some space"
        )
    if free < max(_ROOM, 3 * size):
        return Finding("files", "disk", "warn", text, "free some space")
    return Finding("files", "disk", "ok", text)


# -- the services -----------------------------------------------------------------------------------------------------


def with_little_patience(connection: Connection) -> Connection:
    """The connection for a look: one try, and no long waits."""
    limits: Limits = connection.limits
    short = replace(limits, attempts=1, deadline=min(limits.deadline, _PATIENCE), retry_after_cap=1.0)
    return replace(connection, limits=short)


async def service(client: OctoClient, *, clock: Clock, resolve: Resolve | None = None) -> list[Finding]:
    """Ask one service up to five questions."""
    look = _Look(client, clock)
    return await look.all(resolve or _resolve)


async def _resolve(host: str, port: int) -> Sequence[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return sorted({str(each[4][0]) for each in found})


class _Look:
    """One connection's findings, in the order they are made."""

    def __init__(self, client: OctoClient, clock: Clock) -> None:
        self._client, self._clock = client, clock
        self._connection = client.connection
        self._found: list[Finding] = []

    def _say(self, name: str, level: Level, text: str, fix: str = "", *, refused: bool = False) -> None:
        self._found.append(Finding(self._connection.name, name, level, text, fix, refused))

    async def all(self, resolve: Resolve) -> list[Finding]:
        """Every question, until one answer makes the next pointless."""
        if await self._name(resolve) and await self._supplier():
            products = await self._products()
            if products is not None:
                await self._availability(products)
                await self._bookings()
                await self._subscriptions()
        self._say("calls", "ok", f"{self._client.stats.requests} calls were made")
        return self._found

    async def _name(self, resolve: Resolve) -> bool:
        parts = urlsplit(self._connection.base_url)
        host = parts.hostname or ""
        try:
            addresses = await resolve(host, parts.port or (443 if parts.scheme == "https" else 80))
        except OSError:
            self._say("name", "fail", f"{host} has no address", f"check connections.{self._connection.name}.base_url")
            return False
        self._say("name", "ok", host if host in addresses else f"{host} is {', '.join(addresses[:3])}")
        if parts.scheme != "https" and not host.startswith(("127.", "localhost", "::1")):
            self._say("tls", "warn", "the token travels unencrypted", "use https")
        return True

    async def _send(self, name: str, call: Call) -> Answer | None:
        """The answer, or a finding that says why there is none."""
        try:
            return await self._client.send(call)
        except AuthenticationRefused as error:
            fix = f"check the token: {self._connection.token.origin}"
            self._say(name, "fail", str(error), fix, refused=True)
        except ServiceUnavailable as error:
            self._say(name, "fail", str(error), f"check connections.{self._connection.name}.base_url, then try again")
        except ServiceError as error:
            self._say(name, "fail", str(error))
        return None

    async def _supplier(self) -> bool:
        before = self._clock.now()
        answer = await self._send("answer", endpoints.supplier())
        if answer is None:
            return False
        after = self._clock.now()
        seconds = (after - before).total_seconds()
        tls = "TLS, " if self._connection.base_url.startswith("https") else ""
        name = _text(answer, "name")
        self._say(
            "answer", "ok", f"{tls}token accepted, {seconds * 1000:.0f} ms" + (f", supplier {name}" if name else "")
        )
        self._clock_skew(answer, before, after)
        return True

    def _clock_skew(self, answer: Answer, before: datetime, after: datetime) -> None:
        try:
            told = parsedate_to_datetime(answer.headers.get("date", ""))
        except (ValueError, TypeError):
            self._say("clock", "ok", "the service does not say what time it is")
            return
        told = told if told.tzinfo else told.replace(tzinfo=UTC)
        # The header has whole seconds, and was written between the two.
        skew = max((before - told).total_seconds() - 1, (told - after).total_seconds(), 0.0)
        if skew > _SKEW:
            ahead = "ahead of" if told < before else "behind"
            self._say("clock", "warn", f"this machine is {skew:.0f} s {ahead} the service", "timedatectl set-ntp true")
        else:
            self._say("clock", "ok", "agrees with the service")

    async def _products(self) -> Answer | None:
        answer = await self._send("products", endpoints.products())
        if answer is None:
            return None
        try:
            checked = checking.check_products(answer.body)
        except OctoSyncError as error:
            self._say("products", "fail", str(error))
            return None
        bad = f", {len(checked.bad)} that do not fit" if checked.bad else ""
        level: Level = "warn" if checked.bad or not checked.ids else "ok"
        fix = "octo-sync sync, then octo-sync quarantine" if checked.bad else ""
        if not checked.ids:
            fix = "ask the service to give this token products"
        self._cut("products", len(checked.ids))
        self._say("products", level, f"{len(checked.ids)} products{bad}", fix)
        self._capabilities(answer, checked, ("pricing", "content", "extras"))
        offered = quirks.languages_offered(answer.headers)
        if offered and "content" in self._connection.capabilities:
            lacking = [lang for lang in self._connection.languages if lang.split("-")[0] not in _roots(offered)]
            fix = f"languages = {[*offered]} in the pipeline file".replace("'", '"') if lacking else ""
            self._say(
                "languages",
                "warn" if lacking else "ok",
                f"offered: {', '.join(offered)}" + (f"; not {', '.join(lacking)}" if lacking else ""),
                fix,
            )
        return answer

    def _capabilities(self, answer: Answer, checked: checking.Checked, names: Iterable[str]) -> None:
        """What the answer really shows, whatever its header says."""
        asked = [c for c in self._connection.capabilities if c in names]
        echo = "octo-capabilities" in answer.headers
        unechoed = set(quirks.ignored_capabilities(asked, answer)) if echo else set()
        bare = replace(answer, headers={k: v for k, v in answer.headers.items() if k != "octo-capabilities"})
        fieldless = set(quirks.ignored_capabilities(asked, bare)) if checked.ids else set()
        for name in asked:
            by = "by its fields" + (" and the echoed header" if echo and name not in unechoed else "")
            if name in fieldless:
                other = "short" if self._connection.capability_spelling == "prefixed" else "prefixed"
                self._say(
                    f"capability {name}",
                    "warn",
                    "is echoed but none of its fields is sent" if echo and name not in unechoed else "is ignored",
                    f'capability_spelling = "{other}" in [connections.{self._connection.name}], or leave it out',
                )
            elif not checked.ids:
                self._say(f"capability {name}", "ok" if echo else "warn", "cannot be seen without a product")
            else:
                self._say(f"capability {name}", "ok", f"works ({by})")

    async def _availability(self, products: Answer) -> None:
        product, option = _first_option(products)
        if not product or not option:
            return
        today = self._clock.now().date()
        answer = await self._send(
            "availability", endpoints.availability(product, option, today, today + timedelta(days=13))
        )
        if answer is None:
            return
        try:
            checked = checking.check_availability(answer.body)
        except OctoSyncError as error:
            self._say("availability", "fail", str(error))
            return
        level: Level = "warn" if checked.bad else "ok"
        self._say("availability", level, f"{len(checked.ids)} slots of product {product} in the next 14 days")

    async def _bookings(self) -> None:
        today = self._clock.now().date()
        window = Window(today - timedelta(days=7), today + timedelta(days=7))
        answer = await self._send("bookings", endpoints.bookings(start=window.start, end=window.end))
        if answer is None:
            return
        try:
            checked = checking.check_bookings(answer.body)
        except OctoSyncError as error:
            self._say("bookings", "fail", str(error))
            return
        self._cut("bookings", len(checked.ids))
        means = quirks.booking_dates_mean(zip(checked.travel_dates, checked.created_dates, strict=True), window)
        told = {"travel": "; dates are travel dates", "creation": "; dates are creation dates"}.get(means, "")
        self._say("bookings", "warn" if checked.bad else "ok", f"{len(checked.ids)} from {window}{told}")

    def _cut(self, name: str, count: int) -> None:
        if quirks.looks_capped(count):
            self._say(
                f"{name} list",
                "warn",
                "exactly 100 records: the service may cut lists; sync asks for smaller windows then",
                "ask the service for its page size",
            )

    async def _subscriptions(self) -> None:
        try:
            answer = await self._client.send(endpoints.list_subscriptions())
        except AuthenticationRefused:
            text = "the token may not read subscriptions (octo:read.notifications); pulls work, webhooks do not"
            self._say("subscriptions", "warn", text, "ask for the ability, or schedule more pulls")
            return
        except ServiceError as error:
            self._say("subscriptions", "warn", f"cannot be read: {error}", "schedule more pulls")
            return
        try:
            listed = quirks.normalise_list(answer.json())
        except OctoSyncError:
            listed = None
        if listed is None:
            self._say("subscriptions", "warn", "an answer that is no list of subscriptions", "schedule more pulls")
            return
        self._say("subscriptions", "ok", f"readable, {len(listed.subscriptions)} there")


def _roots(languages: Iterable[str]) -> set[str]:
    return {language.split("-")[0] for language in languages}


def _text(answer: Answer, key: str) -> str:
    try:
        body = answer.json()
    except OctoSyncError:
        return ""
    value = body.get(key) if isinstance(body, dict) else None
    return "".join(c for c in str(value or "") if c.isprintable())[:60]


def _first_option(products: Answer) -> tuple[str, str]:
    """The ids of some product's option."""
    body = products.json()
    for product in body if isinstance(body, list) else ():
        options = product.get("options") if isinstance(product, dict) else None
        for option in options if isinstance(options, list) else ():
            if isinstance(option, dict) and option.get("id") and product.get("id"):
                return str(product["id"]), str(option["id"])
    return "", ""
