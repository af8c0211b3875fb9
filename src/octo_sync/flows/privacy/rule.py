"""Which rule about personal data is in force, and whether what is there obeys it yet."""

from dataclasses import dataclass

from octo_sync.journal import Journal
from octo_sync.pipeline import Pipeline

_SETTING = "pii"


@dataclass(frozen=True, slots=True)
class Rule:
    """The pipeline's `pii`, the one that everything obeys which is there, and how many erasures are not done.

    `place` is what holds names and contacts: a file beside a DuckDB warehouse, a schema of a PostgreSQL one.
    """

    rule: str
    applied: str
    open_erasures: int
    place: str

    @property
    def text(self) -> str:
        """The same as words for a person."""
        words = {
            "keep": f"names and contacts in the private {self.place} alone",
            "hash": "keyed hashes alone",
            "drop": "nothing",
        }
        said = f'pii = "{self.rule}": {words[self.rule]}'
        if self.applied != self.rule:
            said += f'; what is there still follows "{self.applied}", until a command that writes'
        if self.open_erasures:
            said += f"; {self.open_erasures} erasures are not done"
        return said

    @property
    def is_settled(self) -> bool:
        """Whether nothing is left to do."""
        return self.applied == self.rule and not self.open_erasures


def rule(pipeline: Pipeline, journal: Journal | None) -> Rule:
    """The rule as it is now; without a journal nothing is there yet that could follow another one."""
    place = "schema" if isinstance(pipeline.destination, str) else "file"
    if journal is None:
        return Rule(pipeline.pii, pipeline.pii, 0, place)
    return Rule(pipeline.pii, applied_rule(journal), len(journal.erasures.open_ids()), place)


def applied_rule(journal: Journal) -> str:
    """The rule that everything obeys which is there."""
    return journal.settings.get(_SETTING) or "keep"


def note_rule(journal: Journal, mode: str) -> None:
    """From now on everything obeys it."""
    journal.settings.set(_SETTING, mode)
