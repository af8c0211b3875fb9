"""From an address to filters: what is asked for is checked here, and nonsense is refused with a sentence."""

from collections.abc import Mapping
from datetime import date

from octo_sync.dashboard.view import Filters, Page, Shown
from octo_sync.errors import QueryError

_FIELDS: Mapping[str, Shown] = {
    "first": "dates",
    "last": "dates",
    "product": "product",
    "channel": "channel",
    "currency": "currency",
    "tests": "tests",
}
_LONGEST = 300
_LONGEST_FIELD = 2_000
"""A key of a departure is made of four ids, each of any length."""
_MOST_DAYS = 1100
"""Three years: what is further apart is a mistake, and would draw nothing that can be read."""


def filters_of(page: Page, query: Mapping[str, str]) -> Filters:
    """The filters that an address's fields ask for; an empty field asks for nothing.

    Raises:
        QueryError: A field is not this page's, or no value of its kind.
    """
    given: dict[str, str] = {}
    more: dict[str, str] = {}
    for name, value in query.items():
        if _FIELDS.get(name) in page.shown:
            given[name] = value.strip()
        elif page.takes_more or name in page.fields or _FIELDS.get(name) == "dates":
            more[name] = value  # days are kept for the pages that have any
        else:
            raise QueryError(f"The page {page.title} has no filter {name[:40]!r}.")
    _refuse_no_text(given, {name: more[name] for name in page.fields & more.keys()})
    first, last = day_of("first", given.get("first", "")), day_of("last", given.get("last", ""))
    if not page.takes_more:
        for name in ("first", "last"):
            day_of(name, more.get(name, ""))
    if first and last and first > last:
        raise QueryError(f"The first day, {first}, is after the last one, {last}.")
    if first and last and (last - first).days > _MOST_DAYS:
        raise QueryError(f"{first} to {last} are more than {_MOST_DAYS:,} days; choose fewer.")
    if given.get("tests", "") not in ("", "1"):
        raise QueryError("The filter tests is 1 or nothing.")
    return Filters(
        first=first,
        last=last,
        product=given.get("product") or None,
        channel=given.get("channel") or None,
        currency=given.get("currency") or None,
        with_tests=given.get("tests") == "1",
        more=more,
    )


def _refuse_no_text(given: Mapping[str, str], fields: Mapping[str, str]) -> None:
    for name, value in given.items():
        if len(value) > _LONGEST or not value.isprintable():
            raise QueryError(f"The filter {name} is no text of at most {_LONGEST} characters.")
    for name, value in fields.items():
        if len(value) > _LONGEST_FIELD or "\0" in value:
            raise QueryError(f"The field {name} is no text of at most {_LONGEST_FIELD:,} characters.")


def day_of(name: str, text: str) -> date | None:
    """The day that a field names; None where it names none.

    Raises:
        QueryError: It is no day.
    """
    if not text:
        return None
    try:
        found = date.fromisoformat(text)
    except ValueError:
        raise QueryError(f"The filter {name} is {text[:40]!r}; expected a day such as 2026-11-20.") from None
    if not 1990 <= found.year <= 2200:  # noqa: PLR2004 - whatever is meant, it is none of these
        raise QueryError(f"The filter {name} is {found}; expected a day between 1990 and 2200.")
    return found
