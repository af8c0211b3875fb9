"""What `doctor` may advise, each once: what it says, and what shows beforehand that it makes nothing worse.

A finding cannot carry another advice than one of these. It rests on the finding itself, which looks at the very thing, but
where a comment says on what else. What changes the pipeline file says `KEY = VALUE in [TABLE]`, and a test follows it:
afterwards the finding is gone, and no score fell.
"""

from collections.abc import Mapping
from typing import Self


class Fix(str):
    """An advice as it is given; as a text it is what a person reads."""

    __slots__ = ("name",)

    name: str
    """Of the advice; empty for none."""

    def __new__(cls, text: str = "", name: str = "") -> Self:
        """`advise` makes them."""
        made = super().__new__(cls, text)
        made.name = name
        return made


NONE = Fix()
"""Nothing is to be done, or nothing that is known to help."""


def advise(advice: str, /, **words: object) -> Fix:
    """The advice of this name, in words for this case."""
    return Fix(ADVICE[advice].format(**words), advice)


ADVICE: Mapping[str, str] = {
    # the machine
    "duckdb": "uv pip install 'duckdb>=2,<3'",
    "zones missing": "uv pip install tzdata",
    "zones old": "update the machine's time-zone data: uv pip install -U tzdata",
    "clock": "timedatectl set-ntp true",  # the service's own clock; which of the two is wrong, nobody knows
    # the files
    "no directory": "mkdir -p {path}",
    "not writable": "chmod u+w {path}",
    "elsewhere": "set {key} to a place that can be written",
    "open directory": "chmod go-w {path}",
    "open files": "chmod 600 {paths}",
    "room": "free some space",
    "read copy": "octo-sync publish",  # it replaces the copy only by one that passed every check
    "server": "see docs/postgresql.md",
    "roles": "see Roles in docs/postgresql.md",
    "rule": "octo-sync sync",  # the rule that is in the file already is followed
    # the pipeline file
    "init": "octo-sync init",  # there is no file that it could replace
    "which": "-p NAME",  # there are several
    "correct": "correct the file, then octo-sync config validate",
    "token missing": "export {variable}=…   (or a line in .env)",
    # the copy
    "held": "octo-sync quarantine",  # it only looks
    "kept": "octo-sync drift",  # it only looks
    # a service
    "address": "check connections.{name}.base_url",
    "address, again": "check connections.{name}.base_url, then try again",  # the service did not answer
    # Nobody listens there, on this machine.
    "address, here": "start it: octo-sync sandbox serve, for the demo with --demo; or check connections.{name}.base_url",
    "token": "check the token: {origin}",  # the service refused it
    "https": "use https",
    "certificate": "have the certificate renewed or completed at the server",
    "certificate soon": "see that it is renewed in time",
    "bad records": "octo-sync sync, then octo-sync quarantine",  # the others land, and it only looks
    "no products": "ask the service to give this token products",
    "languages": "languages = {languages} in [connections.{name}]",  # the service names them as those it has
    # Asked with it: what it is to bring is there, and nothing is gone.
    "spelling": 'capability_spelling = "{spelling}" in [connections.{name}]',
    # The service does not list it, and neither spelling brings any of its fields.
    "absent": "capabilities = {capabilities} in [connections.{name}]",
    "perhaps absent": "ask whoever runs the service whether it has {capability}; if not, capabilities = {capabilities} in "
    "[connections.{name}]",  # neither spelling brings any of its fields; the service does not say what it has
    "listed": "tell whoever runs the service",  # the service lists it, and neither spelling brings its fields
    # The service knows the path (403).
    "abilities": "ask for the abilities octo:read.notifications and octo:write.notifications",
    # There is nothing to subscribe to, and nothing pulls.
    "pull": 'near = "{near}" in [schedule], so that `octo-sync serve` pulls',
    "subscriptions": "tell whoever runs the service",  # another answer than the one that is promised
    "open": "tell whoever runs the service, and keep its address to yourself",  # a token that nobody was given
    # The answers that were looked at.
    "page size": "ask the service for its page size, or for a token that sees everything",
    "date meaning": 'booking_date_means = "{means}" in [connections.{name}]',  # the answers that were looked at
    # The answers that were looked at; it begins earlier and ends no earlier.
    "look back": 'bookings = "{horizon}" in [horizon], or as long before travel as guests book',
    "prices": "tell whoever runs the service",  # the tickets or products of the same answers
    # the address for webhooks
    "unreachable": "check webhooks.url, the name, the firewall and the proxy; {start}",
    "serve": "octo-sync serve",  # it does not run
    "proxy": "see where the proxy sends the path of webhooks.url",  # the receiver runs
    "proxy answers": "let the proxy pass the path of webhooks.url to webhooks.bind, and answer nothing itself",
    "proxy path": "let the proxy pass the path of webhooks.url to webhooks.bind",
    "redirect": "set webhooks.url to the address that it leads to",
    "proxy password": "let the proxy pass the path of webhooks.url without authentication: the secret header is checked "
    "behind it",
}
