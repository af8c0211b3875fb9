"""Which addresses are open, and with which secret; kept in memory, so that a delivery costs no look into the journal."""

import asyncio
import hashlib
import hmac
import logging
from collections.abc import Sequence

from octo_sync.errors import JournalError
from octo_sync.flows.webhooks.plan import HEADER, looks_like_endpoint
from octo_sync.journal import EndpointRow, Journal

log = logging.getLogger("octo_sync")

SECRET_HEADER = HEADER.lower().encode()
"""As ASGI spells it."""

_REREAD_AFTER = 5.0
_APART = 1.0
"""Seconds from the beginning of one look into the journal to the next, whoever asks for whatever address."""
_NOBODY = hashlib.sha256(b"nobody").hexdigest()
_SEEN, _REFUSED = "seen", "refused"


class EndpointCache:
    """The addresses that are accepted now.

    What is to be noted about them (the first delivery, the first wrong secret) is noted in the background: a delivery
    does not wait for it, and refused ones cause one note per address, whoever sends how many.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._rows: dict[str, EndpointRow] = {}
        self._tried_at = float("-inf")
        """When the last reading began that has ended; `_error` says how, and is empty when it went well."""
        self._error = ""
        self._reading: asyncio.Task[None] | None = None
        self._noted: set[tuple[str, str]] = set()
        self._to_note: dict[tuple[str, str], str] = {}
        self._noting: asyncio.Task[None] | None = None

    async def admit(self, endpoint: str, secrets: Sequence[bytes]) -> EndpointRow | None:
        """The address that this secret opens, or None; `secrets` are the values of all headers of that name.

        An address that is not known may have been opened a moment ago, by another process or by a rotation: it waits for a
        look into the journal that begins after its arrival, which all who wait share. What cannot be an address waits for
        nothing.

        Raises:
            JournalError: The table could not be read, so that nobody can be told from anybody.
        """
        now = asyncio.get_running_loop().time()
        row = self._rows.get(endpoint)
        if row is None and looks_like_endpoint(endpoint):
            row = await self._looked_up(endpoint, now)
        elif now - self._tried_at > _REREAD_AFTER:
            self._begin_reading()
        digest = hashlib.sha256(secrets[0] if secrets else b"").hexdigest()
        right = hmac.compare_digest(digest, _NOBODY if row is None else row.secret_hash)
        if row is None:
            return None
        if right and len(secrets) == 1:
            return row
        self._note(_REFUSED, endpoint)
        return None

    def seen(self, endpoint: str, subscription: str) -> None:
        """An authentic delivery was stored; `subscription` is the id that it gives, or empty."""
        self._note(_SEEN, endpoint, subscription)

    async def close(self) -> None:
        """Wait for what is being read or noted."""
        for task in (self._reading, self._noting):
            if task is not None:
                await asyncio.wait([task])

    async def _looked_up(self, endpoint: str, arrived: float) -> EndpointRow | None:
        while self._tried_at < arrived and endpoint not in self._rows:
            await asyncio.wait([self._begin_reading()])
        if (row := self._rows.get(endpoint)) is None and self._error:
            raise JournalError(self._error)
        return row

    def _begin_reading(self) -> asyncio.Task[None]:
        """The reading that is under way, or a new one."""
        if self._reading is None or self._reading.done():
            self._reading = asyncio.get_running_loop().create_task(self._read())
        return self._reading

    async def _read(self) -> None:
        time = asyncio.get_running_loop().time
        await asyncio.sleep(self._tried_at + _APART - time())
        began, error = time(), "The journal could not be read."
        try:
            rows = await asyncio.to_thread(self._journal.endpoints.rows)
        except JournalError as caught:
            error = str(caught)
            log.warning("action=endpoints_unread error=%s", error)  # what was open stays open
        else:
            self._rows, error = {row.endpoint: row for row in rows}, ""
            self._noted = {note for note in self._noted if note[1] in self._rows}
        finally:
            self._tried_at, self._error = began, error

    def _note(self, what: str, endpoint: str, detail: str = "") -> None:
        note = what, endpoint
        if note in self._noted:
            return
        self._noted.add(note)
        self._to_note[note] = detail
        if self._noting is None or self._noting.done():
            self._noting = asyncio.get_running_loop().create_task(self._write())

    async def _write(self) -> None:
        while self._to_note:
            notes, self._to_note = self._to_note, {}
            seen = {endpoint: detail for (what, endpoint), detail in notes.items() if what == _SEEN}
            refused = sorted(endpoint for what, endpoint in notes if what == _REFUSED)
            try:
                if seen:
                    await asyncio.to_thread(self._journal.endpoints.seen, seen)
                if refused:
                    await asyncio.to_thread(self._journal.endpoints.refused, refused)
            except JournalError as error:
                log.warning("action=endpoints_unnoted error=%s", error)
                self._noted -= set(notes)
