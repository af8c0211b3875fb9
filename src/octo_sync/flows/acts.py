"""What a person may do on a page: each act is written down with who did it.

An act changes the journal alone: it marks, accepts or notes at once, or waits there for the worker.
"""

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from datetime import date

from octo_sync.errors import JournalError
from octo_sync.flows.sync.keep import SYNC
from octo_sync.flows.sync.settle import ALLOW, HELD
from octo_sync.flows.wording import plural
from octo_sync.journal import AcceptanceRow, Act, Journal
from octo_sync.model import Clock

__all__ = ["ACCEPT", "ALLOW", "ASSIGN", "COMMENT", "HELD", "RETRY", "SYNC", "WITHDRAW", "Acts"]

RETRY, ACCEPT, WITHDRAW, ASSIGN, COMMENT = "retry quarantine", "accept", "withdraw", "assign", "comment"
_LONGEST = 1_000
"""Characters that a person may write."""
_SHOWN = 50


class Acts:
    """What may be done, and what was.

    Args:
        opening: Opens the journal.
        clock: Now.
        reconciliations: Their names in the pipeline.
    """

    def __init__(
        self,
        opening: Callable[[], AbstractContextManager[Journal]],
        clock: Clock,
        reconciliations: Collection[str],
    ) -> None:
        self._opening, self._clock, self._reconciliations = opening, clock, reconciliations

    def last(self) -> list[Act]:
        """The last ones, newest first. Blocking."""
        with self._opening() as journal:
            return journal.acts.last(_SHOWN)

    def of(self, name: str, key: str) -> list[Act]:
        """Those about a difference, newest first. Blocking."""
        with self._opening() as journal:
            return journal.acts.of(name, key)

    def assigned(self, name: str) -> dict[str, str]:
        """Who is to look at which differences of a reconciliation, by key. Blocking."""
        with self._opening() as journal:
            return journal.acts.latest(ASSIGN, name)

    def accepted(self) -> dict[tuple[str, str], AcceptanceRow]:
        """What was accepted, by reconciliation and key, as it is now; a copy shows it later. Blocking."""
        with self._opening() as journal:
            return {(one.name, one.key): one for one in journal.reconciliations.acceptances()}

    def do(self, act: str, who: str, fields: Mapping[str, str]) -> None:
        """Do it; see the constants above for `act`. Blocking.

        Args:
            act: Which.
            who: The person's name.
            fields: `about`, `key`, `text` and `until`, as far as it wants them.

        Raises:
            JournalError: There is no such act, it cannot be done with these fields, or the journal cannot be written; nothing
                was changed.
        """
        all_acts: dict[str, Callable[..., str | None]] = {
            SYNC: self._sync,
            ALLOW: self._allow,
            RETRY: self._retry,
            ACCEPT: self._accept,
            WITHDRAW: self._withdraw,
            ASSIGN: self._note,
            COMMENT: self._note,
        }
        doing = all_acts.get(act)
        if doing is None:
            raise JournalError(f"Nobody can {act[:40]!r} here; nothing was changed.")
        about, key, text = (fields.get(name, "").strip() for name in ("about", "key", "text"))
        if len(text) > _LONGEST or "\0" in f"{about}{key}{text}":
            raise JournalError(f"A text here has at most {_LONGEST:,} characters; nothing was changed.")
        with self._opening() as journal:
            outcome = doing(journal, act, about, key, text, who, fields.get("until", "").strip())
            journal.acts.note(act, who=who, about=about, key=key, text=text, outcome=outcome)

    def _sync(self, *_: object) -> None:
        """The worker pulls everything."""

    def _allow(self, journal: Journal, _: str, about: str, key: str, text: str, *__: object) -> None:
        """The worker goes on as long as what is held is what the person was shown."""
        entries = journal.quarantine.entries()
        if not any((e.resource, e.connection, e.key, e.reason) == (HELD, about, key, text) for e in entries):
            raise JournalError("What was to be allowed is no longer as this page said; look at it again.")

    def _retry(self, journal: Journal, *_: object) -> str:
        again = sum(entry.subject is not None for entry in journal.quarantine.retry("all"))
        return f"{plural(again, 'record')} to fetch again."

    def _accept(self, journal: Journal, _: str, about: str, key: str, text: str, who: str, until: str) -> str:
        try:
            day = date.fromisoformat(until) if until else None
        except ValueError:
            raise JournalError(f"{until[:40]!r} is no day such as 2026-11-30; nothing was changed.") from None
        covered = journal.reconciliations.accept(
            self._known(about), key, note=text, by=who, until=day, now=self._clock.now()
        )
        return f"{plural(covered, 'open difference')}, {f'until {day}' if day else 'for good'}."

    def _withdraw(self, journal: Journal, _: str, about: str, key: str, *__: object) -> str:
        journal.reconciliations.unaccept(self._known(about), key)
        return "No longer accepted."

    def _note(self, journal: Journal, act: str, about: str, key: str, text: str, *_: object) -> str:
        if not text:
            raise JournalError(f"There is nothing to {act}; nothing was changed.")
        if not journal.reconciliations.is_known(self._known(about), key):
            raise JournalError(f"No difference of {about} has the key {key[:100]}; nothing was changed.")
        return "Noted."

    def _known(self, name: str) -> str:
        if name not in self._reconciliations:
            raise JournalError(f"The pipeline has no reconciliation {name[:40]!r}; nothing was changed.")
        return name
