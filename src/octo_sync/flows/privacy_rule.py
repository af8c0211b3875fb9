"""Which rule about personal data is in force, and whether what is there obeys it yet."""

from dataclasses import dataclass

from octo_sync.journal import Journal
from octo_sync.pipeline import Pipeline

__all__ = ["Rule", "applied_rule", "note_rule", "rule"]

_SETTING = "pii"


@dataclass(frozen=True, slots=True)
class Rule:
    """The pipeline's `pii`, the one that everything obeys which is there, and how many erasures are not done."""

    rule: str
    applied: str
    open_erasures: int

    @property
    def text(self) -> str:
        """The same as words for a person."""
        words = {
            "keep": "names and contacts in the private file alone",
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
    if journal is None:
        return Rule(pipeline.pii, pipeline.pii, 0)
    return Rule(pipeline.pii, applied_rule(journal), len(journal.open_erasures()))


def applied_rule(journal: Journal) -> str:
    """The rule that everything obeys which is there."""
    return journal.setting(_SETTING) or "keep"


def note_rule(journal: Journal, mode: str) -> None:
    """From now on everything obeys it."""
    journal.set_setting(_SETTING, mode)
