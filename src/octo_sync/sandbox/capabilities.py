"""Capabilities and languages: what a request switched on."""

import dataclasses
import re
from collections.abc import Iterable

from octo_sync.sandbox.quirks import Quirks
from octo_sync.sandbox.themes import LANGUAGES

KNOWN = ("pricing", "content", "extras", "notifications")
PREFIX = "octo/"
_WISH = re.compile(r"([a-z]+|\*)[^,;]*(?:;\s*q\s*=\s*(\d(?:\.\d+)?))?")


@dataclasses.dataclass(frozen=True, slots=True)
class View:
    """What an answer shows: the active capabilities and the language of the content."""

    pricing: bool = False
    content: bool = False
    extras: bool = False
    notifications: bool = False
    language: str = "en"

    @property
    def shape(self) -> tuple[bool, bool, bool, str]:
        """What changes the bytes of an answer."""
        return self.pricing, self.content, self.extras, self.language if self.content else ""


def short(names: Iterable[object]) -> frozenset[str]:
    """Capabilities in short form."""
    return frozenset(str(name).removeprefix(PREFIX) for name in names)


def requested(header: str, quirks: Quirks) -> dict[str, str]:
    """The capabilities a header names, known and honoured, as short name -> the spelling used."""
    ignored = short(quirks["ignored_capability"]) | short(quirks["absent_capability"])
    found: dict[str, str] = {}
    for part in header.split(","):
        spelling = part.strip().lower()
        name = spelling.removeprefix(PREFIX)
        honoured = {"any": True, "prefixed": spelling != name, "short": spelling == name}
        if name in KNOWN and name not in ignored and honoured[quirks["capability_spelling"]]:
            found.setdefault(name, spelling)
    for name in quirks["always_on"]:
        found.setdefault(str(name).removeprefix(PREFIX), PREFIX + str(name).removeprefix(PREFIX))
    return found


def language(accept: str) -> str:
    """The best language for an Accept-Language header; English when none fits."""
    for primary, quality in sorted(_WISH.findall(accept.lower()), key=lambda wish: -float(wish[1] or 1)):
        if primary == "*":
            break
        if primary in LANGUAGES and float(quality or 1):
            return str(primary)
    return LANGUAGES[0]
