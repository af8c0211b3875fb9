"""How persons are named: an address, a number and a name as they are compared, and whether a text repeats one. Pure."""

import re
import unicodedata
from collections.abc import Collection, Iterator
from urllib.parse import unquote

from octo_sync.destinations.erasing import ContactRow
from octo_sync.octo import records

Contact = ContactRow | records.Contact
"""As landed or as received; a text may be absent, null or empty."""

HASH = re.compile(r"[0-9a-f]{32}")
"""What stands instead of a text under the rule `hash`."""
_MAILBOX = re.compile(r"([\w.!#$%&'*+/=?^`{|}~-]{1,64})@(?=([\w-]{1,63}(?:\.[\w-]{1,63}){0,8}))")
_BEFORE, _AFTER = re.compile(r"[^\w.]|_|^\.+|\.\.+"), re.compile(r"[._-]")
_MOST_CUTS = 8
"""Signs on each side of an `@` at which an address may begin or end, so that a note made of signs costs no time."""
_ZERO = re.compile(r"\(\s*0\s*\)")
_FEWEST_DIGITS = 5
_SHORTEST_TEXT = 5
"""Characters that a person's text must have to be looked for in other texts: shorter ones are in everybody's."""

_FEWEST_LETTERS = 4
"""Of a last name that tells who it is without the first name."""
_TELLING_DIGITS, _NATIONAL_DIGITS = 7, 9
"""Fewest digits of a telephone number that tell whose it is, and how many are compared, so that country codes are not."""
_WORD, _BETWEEN_DIGITS = re.compile(r"[^\W\d_]+|\d+"), re.compile(r"[\s()+./-]")


def text_of(value: object) -> str:
    """A text of a contact without blanks around it; empty when it has none."""
    return value.strip() if isinstance(value, str) else ""


def normal_text(text: str) -> str:
    """A text as it is compared, an e-mail address too: in one spelling of its letters, small."""
    return unicodedata.normalize("NFKC", text).strip().casefold()


def normal_phone(text: str) -> str:
    """A telephone number as it is compared: its digits without leading zeros and without `(0)`; empty when it is none."""
    return former_phone(_ZERO.sub("", unicodedata.normalize("NFKC", text)))


def former_phone(text: str) -> str:
    """The same as it was compared once, when `(0)` was a digit like others: hashes are kept that were made so."""
    digits = "".join(c for c in unicodedata.normalize("NFKC", text) if c.isascii() and c.isdigit()).lstrip("0")
    return digits if len(digits) >= _FEWEST_DIGITS else ""


def name_of(contact: Contact) -> str:
    """What a contact is called: its full name, else first and last name; services send either. Empty when it has none.

    Under the rule `hash` it is the hash of that; the hashes of two parts are no name.
    """
    parts = (text_of(contact.first_name), text_of(contact.last_name))
    return text_of(contact.full_name) or " ".join(p for p in parts if p and not HASH.fullmatch(p))


def texts_of(contact: Contact) -> list[str]:
    """The texts of a contact that tell who it is, none so short that it is in everybody's."""
    found = {text_of(contact.email_address), text_of(contact.phone_number), name_of(contact)}
    return sorted(t for t in found if len(t) >= _SHORTEST_TEXT and not HASH.fullmatch(t))


def addresses_in(text: str) -> Iterator[str]:
    """Whatever in a free text may be an e-mail address, in small letters; also one that is glued to other words.

    Almost any sign may stand in an address and may as well stand beside one (`email=zoe@x.org`, `web-zoe@x.org`), so
    that an address is given with and without what comes before such a sign, and after one in its domain. A full stop
    before the `@` parts nothing: john.smith is not smith.
    """
    plain = normal_text(unquote(text))
    for local, domain in _MAILBOX.findall(plain) if "@" in plain else ():
        starts = [0, *(sign.end() for sign in _BEFORE.finditer(local))][-_MOST_CUTS:]
        ends = [*(sign.start() for sign in _AFTER.finditer(domain)), len(domain)][:_MOST_CUTS]
        yield from (f"{local[start:]}@{domain[:end]}" for start in starts for end in ends if local[start:])


def marks_of(contact: Contact) -> set[str]:
    """What a reference of a person's own booking may repeat of them, for `repeats`.

    A last name alone counts for who has an address or number: whom a service made anonymous is a Customer or a Guest.
    """
    marks = {_plain(text) for text in texts_of(contact) if _words(text)}
    parts = (name_of(contact), text_of(contact.first_name), text_of(contact.last_name))
    name, first, last = (_words("" if HASH.fullmatch(part) else part) for part in parts)
    last = last or (name.split()[-1] if " " in name else "")
    first = first or name.removesuffix(last).strip()
    orders = {name, f"{first} {last}", f"{last} {first}"} if first and last else set()
    marks |= {f" {order} " for order in orders if len(order) >= _SHORTEST_TEXT}
    phone = text_of(contact.phone_number)
    if sum(map(str.isalpha, last)) >= _FEWEST_LETTERS and (phone or text_of(contact.email_address)):
        marks.add(f" {last} ")
    digits = "" if HASH.fullmatch(phone) else normal_phone(phone)
    return marks | ({digits[-_NATIONAL_DIGITS:]} if len(digits) >= _TELLING_DIGITS else set())


def repeats(text: str, marks: Collection[str]) -> bool:
    """Whether a reference repeats one of the marks, without regard to accents, capitals, and signs between words or digits."""
    if not marks:
        return False
    digits = _BETWEEN_DIGITS.sub("", _ZERO.sub("", unicodedata.normalize("NFKC", text)))
    said = f"{_plain(unquote(text))}\n {_words(text)} \n{digits}"
    return any(mark in said for mark in marks)


def _plain(text: str) -> str:
    """In small letters without accents and apostrophes."""
    apart = unicodedata.normalize("NFKD", text.casefold())
    return "".join(c for c in apart if not unicodedata.combining(c) and c not in "'\u2019")


def _words(text: str) -> str:
    return " ".join(_WORD.findall(_plain(text)))
