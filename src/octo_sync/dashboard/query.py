"""A query that a person asks in the browser: its text, and the values of its parameters, from the fields of an address.

`q` is the text; `ask` names a ready-made question in its place. What a query wants to know stands in its own head
(`-- parameter: name: type: default: meaning`), so a question that was changed keeps its fields; `p.NAME` gives a value.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from octo_sync.dashboard.source import Source
from octo_sync.errors import QueryError
from octo_sync.flows import ask
from octo_sync.flows.ask import Parameter, Value
from octo_sync.model import zone_of

FIELD = "p."
"""What a field of a parameter begins with."""
LONGEST = 6_000
"""Characters of a query; with the address's own escapes it still fits into the head of a request."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What somebody wants to know. `name` is the question's, '' for a query of their own; `text` is '' for none at all."""

    name: str
    text: str
    parameters: tuple[Parameter, ...]
    given: Mapping[str, str]

    @property
    def missing(self) -> tuple[str, ...]:
        """Parameters without a value."""
        return tuple(p.name for p in self.parameters if not self.given.get(p.name, p.default).strip())

    def values(self, source: Source) -> dict[str, Value]:
        """The values of the parameters that the text names; `today` is the day at the business.

        Raises:
            QueryError: One is missing, or not of its type.
            WarehouseError: The copy cannot be read.
        """
        used = [p for p in self.parameters if f"${p.name}" in _bare(self.text)]
        if not used:
            return {}
        return ask.filled(used, self.given, now=source.now(), time_zone=_time_zone(source))


def asked(source: Source, fields: Mapping[str, str]) -> Asked:
    """What the fields of an address ask for.

    Raises:
        QueryError: There is no such question, the text is too long, or what it says of its parameters is wrong.
    """
    given = {name.removeprefix(FIELD): value for name, value in fields.items() if name.startswith(FIELD)}
    text, name = fields.get("q", "").replace("\r\n", "\n").strip(), ""
    if len(text) > LONGEST:
        raise QueryError(
            f"The query has {len(text):,} characters, and an address takes {LONGEST:,}; octo-sync sql -f FILE takes any."
        )
    if wanted := fields.get("ask", ""):
        question = ask.find(ask.questions(source.directory), wanted)
        if question is None:
            raise QueryError(f"There is no question {wanted[:100]!r}.")
        text, name = question.file.text.strip(), question.name
    return Asked(name, text, ask.parameters_of(text), given)


def _bare(text: str) -> str:
    """The text without its comments, where a parameter's name means nothing."""
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("--"))


def _time_zone(source: Source) -> str:
    """Where `today` is: the business time zone, if all connections have the same one."""
    zones = {row["business_time_zone"] for row in source.rows("sync_connections") if row["is_active"]}
    zone = str(zones.pop() or "UTC") if len(zones) == 1 else "UTC"
    return zone if zone_of(zone) else "UTC"
