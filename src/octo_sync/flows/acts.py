"""What a person may do on a page: each act is written down with who did it.

An act changes the journal alone: it marks, accepts or notes at once, or waits there for the worker.
"""

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import date

from octo_sync.errors import JournalError
from octo_sync.flows.sync.keep import SYNC
from octo_sync.flows.sync.settle import ALLOW, HELD
from octo_sync.flows.wording import plural
from octo_sync.journal import AcceptanceRow, Act, Journal
from octo_sync.model import Clock

__all__ = ["ACCEPT", "ALLOW", "ASSIGN", "COMMENT", "HELD", "RETRY", "SYNC", "WITHDRAW", "Acts"]

RETRY, ACCEPT, WITHDRAW, ASSIGN, COMMENT = "retry quarantine", "accept", "withdraw", "assign", "comment"
_ACTS = (SYNC, ALLOW, RETRY, ACCEPT, WITHDRAW, ASSIGN, COMMENT)
_LONGEST = 1_000
"""Characters that a person may write."""
_SHOWN = 50


@dataclass(frozen=True, slots=True)
class Acts:
    """What may be done, and what was."""

    opening: Callable[[], AbstractContextManager[Journal]]
    """Opens the journal."""
    clock: Clock
    reconciliations: Collection[str]
    """Their names in the pipeline."""

    def last(self) -> list[Act]:
        """The last ones, newest first. Blocking."""
        with self.opening() as journal:
            return journal.acts.last(_SHOWN)

    def of(self, name: str, key: str) -> list[Act]:
        """Those about a difference, newest first. Blocking."""
        with self.opening() as journal:
            return journal.acts.of(name, key)

    def assigned(self, name: str) -> dict[str, str]:
        """Who is to look at which differences of a reconciliation, by key. Blocking."""
        with self.opening() as journal:
            return journal.acts.latest(ASSIGN, name)

    def accepted(self) -> dict[tuple[str, str], AcceptanceRow]:
        """What was accepted, by reconciliation and key, as it is now; a copy shows it later. Blocking."""
        with self.opening() as journal:
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
        if act not in _ACTS:
            raise JournalError(f"Nobody can {act[:40]!r} here; nothing was changed.")
        about, key, text, until = (fields.get(name, "").strip() for name in ("about", "key", "text", "until"))
        if len(text) > _LONGEST or "\0" in f"{about}{key}{text}":
            raise JournalError(f"A text here has at most {_LONGEST:,} characters; nothing was changed.")
        with self.opening() as journal:
            if act in (SYNC, ALLOW, RETRY):
                outcome = self._with_copy(journal, act, about, key, text)
            elif about not in self.reconciliations:
                raise JournalError(f"The pipeline has no reconciliation {about[:40]!r}; nothing was changed.")
            elif act == ACCEPT:
                outcome = self._accept(journal, about, key, text, who, until)
            else:
                outcome = self._with_difference(journal, act, about, key, text)
            journal.acts.note(act, who=who, about=about, key=key, text=text, outcome=outcome)

    def _with_copy(self, journal: Journal, act: str, about: str, key: str, text: str) -> str | None:
        """What was done; None: the worker does it, as long as what is held is what the person was shown."""
        if act == RETRY:
            again = sum(entry.subject is not None for entry in journal.quarantine.retry("all"))
            return f"{plural(again, 'record')} to fetch again."
        if act == ALLOW:
            shown = (HELD, about, key, text)
            held = [(e.resource, e.connection, e.key, e.reason) for e in journal.quarantine.entries()]
            if shown not in held:
                raise JournalError("What was to be allowed is no longer as this page said; look at it again.")
        return None

    def _accept(self, journal: Journal, name: str, key: str, text: str, who: str, until: str) -> str:
        try:
            day = date.fromisoformat(until) if until else None
        except ValueError:
            raise JournalError(f"{until[:40]!r} is no day such as 2026-11-30; nothing was changed.") from None
        covered = journal.reconciliations.accept(name, key, note=text, by=who, until=day, now=self.clock.now())
        return f"{plural(covered, 'open difference')}, {f'until {day}' if day else 'for good'}."

    def _with_difference(self, journal: Journal, act: str, name: str, key: str, text: str) -> str:
        if act == WITHDRAW:
            journal.reconciliations.unaccept(name, key)
            return "No longer accepted."
        if not text:
            raise JournalError(f"There is nothing to {act}; nothing was changed.")
        if not journal.reconciliations.is_known(name, key):
            raise JournalError(f"No difference of {name} has the key {key[:100]}; nothing was changed.")
        return "Noted."
