"""What `doctor` may advise, each once: what it says, and what shows beforehand that it makes nothing worse.

A finding cannot carry another advice than one of these. What changes the pipeline file names the keys and values that it means,
and a test follows it: afterwards the finding is gone, and no score fell.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

__all__ = ["ADVICE", "NONE", "Advice", "Fix", "advise"]


@dataclass(frozen=True, slots=True)
class Advice:
    """`says` has names in braces, which are given with the finding; `because` is what the advice rests on."""

    says: str
    because: str


class Fix(str):
    """An advice as it is given; as a text it is what a person reads."""

    __slots__ = ("name", "settings")

    name: str
    """Of the advice; empty for none."""
    settings: Mapping[str, object]
    """Dotted keys of the pipeline file and their new values, where that is what is advised."""

    def __new__(cls, text: str = "", name: str = "", settings: Mapping[str, object] | None = None) -> Self:
        """`advise` makes them."""
        made = super().__new__(cls, text)
        made.name, made.settings = name, settings or {}
        return made


NONE = Fix()
"""Nothing is to be done, or nothing that is known to help."""


def advise(name: str, settings: Mapping[str, object] | None = None, /, **words: object) -> Fix:
    """The advice of this name, in words for this case."""
    return Fix(ADVICE[name].says.format(**words), name, settings)


_SEEN = "the finding itself: it looks at the very thing"
_TRIED = "asked with it: what it is to bring is there, and nothing is gone"
_LISTS = "the answers that were looked at"

ADVICE: Mapping[str, Advice] = {
    # the machine
    "python": Advice("install Python 3.11 or newer", _SEEN),
    "duckdb": Advice("uv pip install 'duckdb>=1.5,<3'", _SEEN),
    "zones missing": Advice("uv pip install tzdata", _SEEN),
    "zones old": Advice("update the machine's time-zone data: uv pip install -U tzdata", _SEEN),
    "clock": Advice("timedatectl set-ntp true", "the service's own clock; which of the two is wrong, nobody knows"),
    # the files
    "no directory": Advice("mkdir -p {path}", _SEEN),
    "not writable": Advice("chmod u+w {path}", _SEEN),
    "open directory": Advice("chmod go-w {path}", _SEEN),
    "open files": Advice("chmod 600 {paths}", _SEEN),
    "room": Advice("free some space", _SEEN),
    "read copy": Advice("octo-sync publish", "it replaces the copy only by one that passed every check"),
    "server": Advice("see docs/postgresql.md", _SEEN),
    "roles": Advice("see Roles in docs/postgresql.md", _SEEN),
    "rule": Advice("octo-sync sync", "the rule that is in the file already is followed"),
    # the pipeline file
    "init": Advice("octo-sync init", "there is no file that it could replace"),
    "correct": Advice("correct the file, then octo-sync config validate", _SEEN),
    "token missing": Advice("export {variable}=…   (or a line in .env)", _SEEN),
    # the copy
    "held": Advice("octo-sync quarantine", "it only looks"),
    "kept": Advice("octo-sync drift", "it only looks"),
    # a service
    "address": Advice("check connections.{name}.base_url", _SEEN),
    "address, again": Advice("check connections.{name}.base_url, then try again", "the service did not answer"),
    "token": Advice("check the token: {origin}", "the service refused it"),
    "https": Advice("use https", _SEEN),
    "certificate": Advice("have the certificate renewed or completed at the server", _SEEN),
    "certificate soon": Advice("see that it is renewed in time", _SEEN),
    "bad records": Advice("octo-sync sync, then octo-sync quarantine", "the others land, and it only looks"),
    "no products": Advice("ask the service to give this token products", _SEEN),
    "languages": Advice("languages = {languages} in [connections.{name}]", "the service names them as those it has"),
    "spelling": Advice('capability_spelling = "{spelling}" in [connections.{name}]', _TRIED),
    "absent": Advice(
        "capabilities = {capabilities} in [connections.{name}]",
        "the service does not list it, and neither spelling brings any of its fields",
    ),
    "perhaps absent": Advice(
        "ask whoever runs the service whether it has {capability}; if not, capabilities = {capabilities} in "
        "[connections.{name}]",
        "neither spelling brings any of its fields; the service does not say what it has",
    ),
    "listed": Advice("tell whoever runs the service", "the service lists it, and neither spelling brings its fields"),
    "abilities": Advice(
        "ask for the abilities octo:read.notifications and octo:write.notifications", "the service knows the path (403)"
    ),
    "pull": Advice(
        'near = "{near}" in [schedule], so that `octo-sync serve` pulls',
        "there is nothing to subscribe to, and nothing pulls",
    ),
    "subscriptions": Advice("tell whoever runs the service", "another answer than the one that is promised"),
    "open": Advice("tell whoever runs the service, and keep its address to yourself", "a token that nobody was given"),
    "page size": Advice("ask the service for its page size, or for a token that sees everything", _LISTS),
    "date meaning": Advice('booking_date_means = "{means}" in [connections.{name}]', _LISTS),
    "look back": Advice(
        'bookings = "{horizon}" in [horizon], or as long before travel as guests book',
        _LISTS + "; it begins earlier and ends no earlier",
    ),
    "prices": Advice("tell whoever runs the service", "the tickets or products of the same answers"),
    # the address for webhooks
    "unreachable": Advice("check webhooks.url, the name, the firewall and the proxy; {start}", _SEEN),
    "serve": Advice("octo-sync serve", "it does not run"),
    "proxy": Advice("see where the proxy sends the path of webhooks.url", "the receiver runs"),
    "proxy answers": Advice(
        "let the proxy pass the path of webhooks.url to webhooks.bind, and answer nothing itself", _SEEN
    ),
    "proxy path": Advice("let the proxy pass the path of webhooks.url to webhooks.bind", _SEEN),
    "redirect": Advice("set webhooks.url to the address that it leads to", _SEEN),
    "proxy password": Advice(
        "let the proxy pass the path of webhooks.url without authentication: the secret header is checked behind it",
        _SEEN,
    ),
}
